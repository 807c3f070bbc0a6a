#include "replay/report/findings/try_finding.h"

#include <algorithm>
#include <set>

#include "ir/inference/shape_inference.h"
#include "ir/query/find_instruction.h"
#include "ir/sharding/aliasing.h"
#include "ir/verify/verifier.h"
#include "passes/rewrite.h"
#include "replay/report/findings/findings_parts.h"

namespace hlo {
namespace {

// A copy of the first stage on its way to be another program.
class Editing {
 public:
  Editing(const ModuleFinding& f, const Module& first, const Module& last)
      : f_(f), last_(last), held_(first.clone()), m_(*held_) {
    m_.ensure_users();
    at_ = find_instruction(m_, f.evidence.first);
  }

  FindingEdit run() {
    FindingEdit out;
    const std::string why = change(&out.words);
    if (!why.empty()) return {nullptr, why};
    m_.cleanup();
    if (const auto errors = verify_module(m_, 1); !errors.empty())
      return {nullptr, "the changed module does not verify: " + errors[0].message};
    out.module = std::move(held_);
    return out;
  }

 private:
  // Why it cannot be made; empty where it was.
  std::string change(std::string* words) {
    if (f_.kind == "missing-donation") return donate(words);
    if (f_.kind == "repeated-gather") return gather_once(words);
    if (!at_.valid()) return "the first stage does not say where";
    if (f_.kind == "one-hot-product") return look_up(words);
    if (f_.kind == "widened-product" || f_.kind == "f32-product") return narrow_operands(words);
    if (f_.kind == "widened-by-scalar") return narrow_scalar(words);
    if (f_.kind == "transposed-parameter") return store_transposed(words);
    if (f_.kind == "padded-product") return pad_evenly(words);
    if (f_.kind == "copy-at-loop") return donate_origin(words);
    if (f_.kind == "constant-in-loop") return constant_in_body(words);
    for (const char* kind :
         {"sort-for-a-few", "distances-by-differences", "expanded-operand", "product-in-loop", "retyped-state"})
      if (f_.kind == kind) return "the program is to say it otherwise; no edit of the module is known that would";
    return "no change of the module is the advice";
  }

  // `{ {0}: (3, {}, may-alias), … }` with one more.
  void add_alias(int64_t result, int64_t parameter) {
    std::string& text = m_.edit_config().input_output_alias;
    const std::string entry =
        fmt::format("{{{}}}: ({}, {{}}, may-alias)", result < 0 ? "" : std::to_string(result), parameter);
    if (parse_aliases(text).empty())
      text = "{ " + entry + " }";
    else
      text = text.substr(0, text.rfind('}')) + ", " + entry + " }";
  }

  std::string donate(std::string* words) {
    for (size_t k = 0; k < f_.others.size() && k < f_.results.size(); ++k)
      add_alias(f_.results[k], last_.parameter_number(f_.others[k]));
    *words = f_.others.size() == 1 ? "donated" : fmt::format("all {} donated", f_.others.size());
    return {};
  }

  // What a loop begins with and writes over: given up by the caller.
  std::string donate_origin(std::string* words) {
    const InstId from = f_.others.empty() ? InstId() : f_.others[0];
    if (!from.valid() || last_.op(from) != Opcode::Parameter || last_.parent(from) != last_.entry())
      return "another order of reading and writing is the program's to find";
    const int64_t number = last_.parameter_number(from);
    if (donated_parameters(m_).contains(number)) return "the argument is donated already";
    // The result that it becomes: of its shape, not taken yet.
    const InstId root = m_.comp(m_.entry()).root, parameter = m_.comp(m_.entry()).params[static_cast<size_t>(number)];
    std::set<int64_t> taken;
    for (const AliasEntry& a : parse_aliases(m_.config().input_output_alias))
      taken.insert(a.output.empty() ? -1 : a.output[0]);
    if (m_.op(root) != Opcode::Tuple) return "no result takes its place";
    for (size_t k = 0; k < m_.operand_count(root); ++k)
      if (m_.u().compatible(m_.shape_id(m_.operand(root, k)), m_.shape_id(parameter)) &&
          !taken.contains(static_cast<int64_t>(k))) {
        add_alias(static_cast<int64_t>(k), number);
        *words = fmt::format("parameter {} donated", number);
        return {};
      }
    return "no result of its shape takes its place";
  }

  std::string gather_once(std::string* words) {
    size_t gone = 0;
    for (CompId c : m_.computations()) {
      const std::vector<InstId> order = m_.post_order(c);
      std::vector<InstId> kept;
      for (InstId i : order) {
        if (m_.op(i) != Opcode::Gather) continue;
        auto same = std::find_if(kept.begin(), kept.end(), [&](InstId k) {
          return m_.shape_id(k) == m_.shape_id(i) && m_[k].attrs == m_[i].attrs &&
                 std::equal(m_.operands(k).begin(), m_.operands(k).end(), m_.operands(i).begin(), m_.operands(i).end());
        });
        if (same == kept.end())
          kept.push_back(i);
        else
          m_.replace_all_uses(i, *same), ++gone;
      }
    }
    if (!gone) return "in the first stage they are no two gathers of the same values";
    *words = "gathered once";
    return {};
  }

  static ElementType narrow_type(const Module& m, InstId i) {
    const ElementType t = m.shape(i).type;
    return is_narrow(t) ? t : ElementType::BF16;
  }
  // `i` as a narrow value: what was made wide, or a conversion.
  InstId narrow(InstId i, ElementType type) {
    if (m_.op(i) == Opcode::Convert && m_.shape(m_.operand(i, 0)).type == type) return m_.operand(i, 0);
    return make_convert(m_, i, type);
  }

  std::string narrow_operands(std::string* words) {
    if (m_.operand_count(at_) < 2) return "the first stage has no product there";
    ElementType type = ElementType::BF16;
    if (f_.kind == "widened-product" && !f_.others.empty()) type = narrow_type(last_, f_.others[0]);
    for (size_t k = 0; k < 2; ++k) {
      const InstId o = m_.operand(at_, k);
      if (m_.shape(o).type == ElementType::F32) m_.set_operand(at_, k, narrow(o, type));
    }
    *words = fmt::format("its operands are {}", type_name(type));
    return {};
  }

  // All that is f32 behind the scalar becomes narrow, but for sums, which jax makes in f32.
  std::string narrow_scalar(std::string* words) {
    if (m_.op(at_) != Opcode::Convert || m_.user_count(at_) != 1) return "the first stage has no conversion there";
    const ElementType type = m_.shape(m_.operand(at_, 0)).type;
    const std::string place = source_line(m_, m_.users(at_)[0]).text();
    std::set<InstId> wide;
    // Where a line was unrolled, each of its copies.
    for (const InstId meets : scalar_meets(m_)) {
      if (!place.empty() && source_line(m_, meets).text() != place) continue;
      const std::set<InstId> more = wide_behind(m_, m_.callers(), meets);
      wide.insert(more.begin(), more.end());
    }
    for (InstId i : wide)
      if (!m_.called(i).empty() && m_.op(i) != Opcode::Call && m_.op(i) != Opcode::Reduce)
        return fmt::format("what is f32 after it runs through {} ({})", m_.inst_name(i), op_text(m_.op(i)));
    const auto callers = m_.callers();
    for (InstId i : wide)
      if (m_.op(i) == Opcode::Parameter)
        for (InstId call : callers[m_.parent(i).value])
          if (const InstId given = m_.operand(call, static_cast<size_t>(m_.parameter_number(i))); !wide.contains(given))
            return fmt::format("{} is called with other values, too", m_.comp_name(m_.parent(i)));
    for (InstId i : wide) retype(i, type, wide);
    *words = fmt::format("the scalar and {} instructions after it are {}", wide.size(), type_name(type));
    return {};
  }

  void retype(InstId i, ElementType type, const std::set<InstId>& wide) {
    if (m_.op(i) == Opcode::Reduce) {
      for (size_t k = 0; k < m_.operand_count(i); ++k)
        if (wide.contains(m_.operand(i, k))) m_.set_operand(i, k, make_convert(m_, m_.operand(i, k), ElementType::F32));
      const std::vector<InstId> users = m_.users_copy(i);
      const InstId out = make_convert(m_, i, type);
      for (InstId u : users) swap_operand(u, i, out);
      if (m_.is_root(i)) m_.set_root(m_.parent(i), out);
      keep_type(out, wide);
      return;
    }
    if (m_.op(i) != Opcode::Parameter && m_.op(i) != Opcode::Call)
      for (size_t k = 0; k < m_.operand_count(i); ++k) {
        const InstId o = m_.operand(i, k);
        if (!wide.contains(o) && m_.shape(o).is_array() && m_.shape(o).type == ElementType::F32)
          m_.set_operand(i, k, narrow(o, type));
      }
    m_.set_shape(i, m_.u().with_type(m_.shape_id(i), type));
    keep_type(i, wide);
  }
  // What is no part of it reads f32 as before.
  void keep_type(InstId i, const std::set<InstId>& wide) {
    InstId back;
    for (InstId u : m_.users_copy(i)) {
      if (wide.contains(u) || (m_.op(u) == Opcode::Convert && m_.shape(u).type != ElementType::F32)) continue;
      if (u == back) continue;
      if (!back.valid()) back = make_convert(m_, i, ElementType::F32);
      if (u != back) swap_operand(u, i, back);
    }
    if (m_.is_root(i) && m_.parent(i) == m_.entry()) m_.set_root(m_.entry(), make_convert(m_, i, ElementType::F32));
  }
  void swap_operand(InstId user, InstId from, InstId to) {
    for (size_t k = 0; k < m_.operand_count(user); ++k)
      if (m_.operand(user, k) == from) m_.set_operand(user, k, to);
  }

  std::string store_transposed(std::string* words) {
    if (m_.op(at_) != Opcode::Transpose) return "a pass chose the order: no operation of the program";
    const InstId p = m_.operand(at_, 0);
    if (m_.op(p) != Opcode::Parameter || m_.parent(p) != m_.entry())
      return "the transposition is in a computation that is called";
    const Dims by = m_.attrs(at_).ints(Attr::dimensions);
    Dims back(by.size());
    for (size_t k = 0; k < by.size(); ++k) back[static_cast<size_t>(by[k])] = static_cast<int64_t>(k);
    const ShapeId stored = m_.u().with_default_layout(m_.shape_id(at_)), old = m_.shape_id(p);
    const auto number = static_cast<size_t>(m_.parameter_number(p));
    std::vector<InstId> users = m_.users_copy(p);
    m_.set_shape(p, stored);
    if (number < m_.config().entry_params.size()) m_.edit_config().entry_params[number] = stored;
    std::erase(users, at_);
    if (!users.empty()) {
      const InstId other =
          make(m_, m_.parent(p), Opcode::Transpose, {p}, dims_attr(m_.u(), Opcode::Transpose, back), old);
      for (InstId u : users) swap_operand(u, p, other);
    }
    m_.replace_all_uses(at_, p);
    m_.remove(at_);
    *words = fmt::format("parameter {} stored transposed", number);
    return {};
  }

  std::string pad_evenly(std::string* words) {
    InstId convolution = at_;
    if (m_.op(convolution) == Opcode::Pad && m_.user_count(at_) == 1) convolution = m_.users(at_)[0];
    if (m_.op(convolution) != Opcode::Convolution) return "another size of the dimension is the model's to choose";
    const auto* window = m_.attrs(convolution).get<Window>(Attr::window);
    if (!window) return "its convolution has no window";
    Window even = *window;
    for (WindowDim& d : even.dims) d.pad_low = d.pad_high = std::max(d.pad_low, d.pad_high);
    const ShapeId shape = m_.shape_id(convolution);
    m_.set_attr(convolution, Attr::window, even);
    const std::vector<InstId> operands(m_.operands(convolution).begin(), m_.operands(convolution).end());
    const Inferred inferred = infer_shape(m_, Opcode::Convolution, operands, m_.attrs(convolution));
    if (!inferred.shape.valid() || m_.u()[inferred.shape].dims != m_.u()[shape].dims)
      return "with the same padding on both sides its result has another size";
    *words = "padded alike on both sides";
    return {};
  }

  // The index that the rows of ones are made of, where it stands beside the product and has a row for each.
  InstId index_of(InstId compare, CompId beside, int64_t rows) {
    const FindingsInput in(m_, none_, default_device_spec());
    for (InstId o : m_.operands(compare)) {
      InstId i = o;
      for (int steps = 0; steps < 100; ++steps) {
        i = in.computed(i, beside);
        const bool fits = m_.parent(i) == beside && m_.shape(i).is_array() && m_.shape(i).elements_count() == rows;
        const Opcode op = m_.op(i);
        if (op == Opcode::Iota) break;
        const bool moves =
            op == Opcode::Broadcast || op == Opcode::Reshape || op == Opcode::Convert || op == Opcode::Bitcast;
        if (fits && !moves) return i;
        if (!moves) break;
        i = m_.operand(i, 0);
      }
    }
    return {};
  }

  std::string look_up(std::string* words) {
    if (m_.op(at_) != Opcode::Dot) return "the first stage has no product there";
    const AttrSet& a = m_.attrs(at_);
    if (!a.ints(Attr::lhs_batch_dims).empty() || a.ints(Attr::lhs_contracting_dims).size() != 1)
      return "the product has more than rows and a table";
    const FindingsInput in(m_, none_, default_device_spec());
    for (size_t side = 0; side < 2; ++side) {
      const InstId compare = one_hot_rows(in, m_.operand(at_, side));
      if (!compare.valid()) continue;
      const InstId ones = m_.operand(at_, side), table = m_.operand(at_, 1 - side);
      const int64_t along = a.ints(side ? Attr::lhs_contracting_dims : Attr::rhs_contracting_dims)[0];
      const int64_t classes = m_.shape(table).dims[static_cast<size_t>(along)];
      const int64_t rows = m_.shape(ones).elements_count() / std::max<int64_t>(1, classes);
      if (side || m_.shape(table).rank() != 2) return "the table is no matrix after the rows";
      const InstId index = index_of(compare, m_.parent(at_), rows);
      if (!index.valid()) return "the indices are not at hand where the product is";
      const int64_t width = m_.shape(table).dims[static_cast<size_t>(1 - along)];
      const InstId flat = make_reshape(m_, index, {rows, 1});
      const AttrsId how = attrs_of(m_.u(), Opcode::Gather,
                                   {{Attr::offset_dims, Dims{1}},
                                    {Attr::collapsed_slice_dims, Dims{along}},
                                    {Attr::start_index_map, Dims{along}},
                                    {Attr::index_vector_dim, int64_t{1}},
                                    {Attr::slice_sizes, along == 0 ? Dims{1, width} : Dims{width, 1}}});
      const InstId taken = make(m_, m_.parent(at_), Opcode::Gather, {table, flat}, how,
                                m_.u().array(m_.shape(table).type, {rows, width}));
      m_.set_meta(taken, m_[at_].meta);
      InstId out = make_reshape(m_, taken, m_.shape(at_).dims);
      if (m_.shape(out).type != m_.shape(at_).type) out = make_convert(m_, out, m_.shape(at_).type);
      m_.replace_all_uses(at_, out);
      m_.remove(at_);
      *words = "rows taken by a gather";
      return {};
    }
    return "the first stage multiplies no such rows";
  }

  std::string constant_in_body(std::string* words) {
    const FindingsInput in(m_, none_, default_device_spec());
    size_t done = 0;
    for (CompId c : m_.computations())
      for (InstId loop : m_.post_order(c)) {
        if (m_.op(loop) != Opcode::While || m_.op(m_.operand(loop, 0)) != Opcode::Tuple) continue;
        const InstId init = m_.operand(loop, 0);
        const CompId body = m_.attrs(loop).comp(Attr::body);
        for (size_t k = 0; k < m_.operand_count(init); ++k)
          if (in.computed(m_.operand(init, k)) == at_) done += made_in_body(body, static_cast<int64_t>(k));
      }
    if (!done) return "no loop of the first stage carries it as it is";
    *words = "made in the body";
    return {};
  }
  size_t made_in_body(CompId body, int64_t index) {
    InstId value = at_;
    while (m_.op(value) == Opcode::Broadcast || m_.op(value) == Opcode::Reshape) value = m_.operand(value, 0);
    if (m_.op(value) != Opcode::Constant || m_.shape(value).rank() != 0) return 0;
    const InstId root = m_.comp(body).root;
    for (InstId element : m_.users_copy(m_.comp(body).params[0])) {
      if (m_.op(element) != Opcode::GetTupleElement || m_.attrs(element).integer(Attr::index) != index) continue;
      const InstId scalar = m_.clone_inst(value, body, {});
      const InstId here = make_broadcast(m_, body, scalar, {}, m_.shape_id(element));
      size_t done = 0;
      for (InstId u : m_.users_copy(element))
        if (u != root) swap_operand(u, element, here), ++done;
      return done;
    }
    return 0;
  }

  const ModuleFinding& f_;
  const Module& last_;
  std::unique_ptr<Module> held_;
  Module& m_;
  InstId at_;
  const ModuleCost none_{};
};

}  // namespace

FindingEdit edit_for(const ModuleFinding& finding, const Module& first, const Module& last) {
  try {
    return Editing(finding, first, last).run();
  } catch (const Failure& e) {
    return {nullptr, std::string(e.what()).substr(0, std::string(e.what()).find('\n'))};
  }
}

}  // namespace hlo
