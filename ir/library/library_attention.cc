#include "ir/library/attention.h"

#include <algorithm>

#include "ir/base/checked.h"
#include "ir/library/library_rules.h"

namespace hlo {

BackendConfig attention_config(const Module& m, InstId call) {
  return backend_config(m.u().text(m.attrs(call).text(Attr::backend_config)), "cudnn_fmha_backend_config");
}

std::optional<AttentionForm> attention_form(const Module& m, InstId call) {
  if (m.op(call) != Opcode::CustomCall) return std::nullopt;
  std::string_view target = m.u().text(m.attrs(call).text(Attr::custom_call_target));
  AttentionForm f;
  if (f.backward = target.ends_with("Backward"); f.backward) target.remove_suffix(std::string_view("Backward").size());
  if (f.biased = target == "__cudnn$fmhaScaleBiasSoftmax"; !f.biased && target != "__cudnn$fmhaSoftmax")
    return std::nullopt;
  const BackendConfig config = attention_config(m, call);
  const std::string mask = word(config, "mask_type", "NO_MASK");
  f.causal = mask == "CAUSAL" || mask == "PADDING_CAUSAL", f.padded = mask == "PADDING" || mask == "PADDING_CAUSAL";
  f.scale = number(config, "fmha_scale", 1);
  auto count = [&](const char* name, double absent) {
    const double n = number(config, name, absent);
    return n > 0 && n < 1e15 ? static_cast<int64_t>(n) : 0;
  };
  f.window = count("sliding_window_length", 0), f.segments = std::max<int64_t>(count("max_seg_per_batch", 1), 1);
  if (f.biased) f.bias = f.backward ? 5 : 3;
  f.operands = (f.backward ? 6 : 3) + (f.biased ? 1 : 0);
  if (f.padded || f.packed()) f.q_lengths = f.operands++, f.kv_lengths = f.operands++;
  if (f.packed()) f.q_offsets = f.operands++, f.kv_offsets = f.operands++;
  if (mask != "NO_MASK" && !f.causal && !f.padded)
    f.why = fmt::format("mask {} is not supported", mask);
  else if (number(config, "dropout_rate", 0) != 0)
    f.why = "dropout is not supported";
  else if (flag(config, "is_paged_attention"))
    f.why = "keys and values in pages are not supported";
  else if (f.packed() && f.biased)
    f.why = "a bias of several sequences in a row is not supported";
  else if (!m.called(call).empty())
    f.why = "a function of the scores is not supported";
  return f;
}

namespace library_rules {
namespace {

using namespace attention_products;

// Lengths and offsets of sequences of q and k.
bool integers_fit(LibraryCall& c, const AttentionForm& f, int64_t batch) {
  const Checked rows = Checked(batch) * f.segments;
  auto fits = [&](size_t k, Checked least, const char* what) {
    return c.operand(k, Kind::kInteger) &&
           c.expect(c.in(k).elements_count() >= least.capped(), "operand {} is {}, expected {} {}", k,
                    c.text(c.in_id(k)), least.capped(), what);
  };
  if (f.q_lengths && !(fits(f.q_lengths, rows, "lengths") && fits(f.kv_lengths, rows, "lengths"))) return false;
  if (!f.q_offsets) return true;
  auto token_wise = [&](size_t k) {
    const Shape& s = c.in(k);
    return c.expect(s.layout.minor_to_major.empty() || s.layout.minor_to_major == Dims{3, 2, 1, 0},
                    "operand {} is {}, expected one of several sequences token by token", k, c.text(c.in_id(k)));
  };
  return fits(f.q_offsets, rows, "offsets") && fits(f.kv_offsets, rows, "offsets") && token_wise(0) && token_wise(1) &&
         c.expect(c.in(1).dims == c.in(2).dims, "v is {}, expected one like k where offsets serve both",
                  c.text(c.in_id(2)));
}

bool bias_fits(LibraryCall& c, const AttentionForm& f, const Dims& scores) {
  if (!f.bias) return true;
  bool fits = c.in(f.bias).rank() == 4;
  for (size_t d = 0; fits && d < 4; ++d) fits = c.in(f.bias).dims[d] == 1 || c.in(f.bias).dims[d] == scores[d];
  return c.expect(fits, "operand {} is {}, expected a bias of scores [{}]", f.bias, c.text(c.in_id(f.bias)),
                  fmt::join(scores, ","));
}

// How many logs of sums there are: one for each row of scores, of several sequences in a row each has as many.
int64_t statistics(const AttentionForm& f, const Dims& scores) {
  return (Checked(scores[0]) * scores[1] * scores[2] * f.segments).capped();
}

// Of heads' dimensions, where q has more heads than k and v.
Dims with_heads(Dims dims, const BackendConfig& numbers, int64_t heads) {
  const Dims batch = list(numbers, "rhs_batch_dimensions");
  if (batch.size() == 2 && batch[1] >= 0 && batch[1] < static_cast<int64_t>(dims.size()))
    dims[static_cast<size_t>(batch[1])] = heads;
  return dims;
}

bool numbers_there(LibraryCall& c, const BackendConfig& config, std::initializer_list<const char*> names, bool packed) {
  for (const char* name : names)
    if (!c.expect(config.contains(name) && config[name].is_object(), "its configuration has no {}", name)) return false;
  const BackendConfig& scores = config[*names.begin()];
  const Dims token{0, 2}, last{3};
  const bool tokens = list(scores, "lhs_batch_dimensions") == token && list(scores, "rhs_batch_dimensions") == token &&
                      list(scores, "lhs_contracting_dimensions") == last &&
                      list(scores, "rhs_contracting_dimensions") == last;
  return c.expect(!packed || tokens, "several sequences in a row are [batch, tokens, heads, elements]");
}

bool forward_fits(LibraryCall& c, const AttentionForm& f, const BackendConfig& config) {
  if (!(c.results(1, 3, true) && c.result(0, Kind::kFloat) &&
        numbers_there(c, config, {kScores, kWeighted}, f.packed())))
    return false;
  std::optional<Dims> scores =
      product_dims(c, c.in_id(0), c.in_id(1), c.in(0).dims, c.in(1).dims, config[kScores], {.grouped = true});
  if (!scores) return false;
  auto shape = config.find("intermediate_tensor_shape");
  Dims named = shape != config.end() && shape->is_object() ? list(*shape, "dimensions") : Dims{};
  if (!c.expect(scores->size() == 4 && named == *scores,
                "its scores are [{}] by intermediate_tensor_shape, expected the four dimensions [{}]",
                fmt::join(named, ","), fmt::join(*scores, ",")))
    return false;
  std::optional<Dims> out = product_dims(c, c.in_id(0), c.in_id(2), *scores,
                                         with_heads(c.in(2).dims, config[kWeighted], (*scores)[1]), config[kWeighted]);
  const Dims k_batch = list(config[kScores], "rhs_batch_dimensions"),
             v_batch = list(config[kWeighted], "rhs_batch_dimensions");
  if (!out || !c.result_dims(0, *out) ||
      !c.expect(v_batch.size() == 2 &&
                    c.in(1).dims[static_cast<size_t>(k_batch[1])] == c.in(2).dims[static_cast<size_t>(v_batch[1])],
                "v is {}, expected as many heads as of {}", c.text(c.in_id(2)), c.text(c.in_id(1))))
    return false;
  return bias_fits(c, f, *scores) && integers_fit(c, f, (*scores)[0]) &&
         (c.result_count() < 3 || (c.result(1, Kind::kFloat) && c.result_size(1, statistics(f, *scores))));
}

bool backward_fits(LibraryCall& c, const AttentionForm& f, const BackendConfig& config) {
  if (!(c.results(4, f.biased ? 5 : 4, true) &&
        numbers_there(c, config, {kScoresAgain, kToKey, kToQuery, kToValue}, f.packed()) &&
        c.operand_dims(f.biased ? 6 : 5, c.in(4).dims) && c.expect(c.in(0).rank() == 4, "q is no four dimensions")))
    return false;
  // Scores of q and k as of dout and v.
  auto product = [&](size_t l, size_t r) {
    return product_dims(c, c.in_id(l), c.in_id(r), c.in(l).dims, c.in(r).dims, config[kScoresAgain], {.grouped = true});
  };
  std::optional<Dims> scores = product(0, 1), also = product(4, 2);
  if (!scores || !also ||
      !c.expect(scores->size() == 4 && *scores == *also, "its scores are [{}] of q and k, [{}] of the gradient and v",
                fmt::join(*scores, ","), fmt::join(*also, ",")) ||
      !c.operand_size(3, statistics(f, *scores)))
    return false;
  const Dims batch = list(config[kScoresAgain], "rhs_batch_dimensions");
  const int64_t heads = c.in(1).dims[static_cast<size_t>(batch[1])];
  if (!(c.expect(heads > 0 && c.in(2).dims[static_cast<size_t>(batch[1])] == heads,
                 "v is {}, expected as many heads as of {}", c.text(c.in_id(2)), c.text(c.in_id(1))) &&
        bias_fits(c, f, *scores) && integers_fit(c, f, (*scores)[0])))
    return false;
  struct Gradient {
    size_t result, with;
    const char* product;
  };
  for (auto [result, with, name] : {Gradient{0, 1, kToQuery}, {1, 0, kToKey}, {2, 4, kToValue}}) {
    const Dims side = result == 0 ? with_heads(c.in(with).dims, config[name], (*scores)[1]) : c.in(with).dims;
    std::optional<Dims> made = product_dims(c, c.in_id(with), c.in_id(with), *scores, side, config[name]);
    if (!made || !c.result(result, Kind::kFloat)) return false;
    if (result) (*made)[1] = heads;
    if (!c.result_dims(result, *made)) return false;
  }
  return c.result_count() < 5 || (c.result(3, Kind::kFloat) && c.result_dims(3, c.in(5).dims));
}

}  // namespace

bool is_attention(LibraryCall& c) {
  const std::optional<AttentionForm> f = attention_form(c.module(), c.inst());
  if (!(f && c.expect(f->why.empty(), "{}", f->why) && c.operands(f->operands, f->operands))) return false;
  for (size_t k = 0; k < (f->q_lengths ? f->q_lengths : f->operands); ++k)
    if (!c.operand(k, Kind::kFloat, f->backward ? (k == 3 ? 0 : 4) : (k < 3 ? 0 : 4))) return false;
  const BackendConfig config = attention_config(c.module(), c.inst());
  return f->backward ? backward_fits(c, *f, config) : forward_fits(c, *f, config);
}

}  // namespace library_rules
}  // namespace hlo
