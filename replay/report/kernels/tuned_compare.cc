// What two dumps' autotuners chose otherwise, and what that does to numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/backend_config.h"
#include "ir/cost/cost.h"
#include "replay/report/kernels/tuned.h"

namespace hlo {
namespace {

// Half a unit in the last place, relative: what one rounding does.
double unit_of(ElementType type) {
  type = component_type(type);
  if (type == ElementType::F64) return std::ldexp(1, -53);
  if (type == ElementType::F32) return std::ldexp(1, -24);
  const FloatFormat* f = float_format(type);
  return f ? std::ldexp(1, -f->mantissa_bits - 1) : 0;
}

bool computes_with_floats(ElementType t) { return is_float(t) || is_complex(t); }

// XLA sums narrow floats in f32 (cuBLAS, Triton's dots) unless the operation's own type is what it adds in.
double sum_unit(ElementType operand) { return std::min(unit_of(operand), unit_of(ElementType::F32)); }

ElementType first_type(const Module& m, InstId i) {
  const Shape* s = &m.shape(i);
  while (s->is_tuple() && !s->elements.empty()) s = &m.u()[s->elements[0]];
  return s->type;
}

struct SumReader {
  const Module& m;
  KernelSum out;

  void add(double terms, double unit, bool by_floats) {
    if (terms > out.terms) out.terms = terms, out.unit = unit;
    if (by_floats) out.exact = false;
  }

  void product(InstId i, const Dims& contracting) {
    const Shape& left = m.shape(m.operand(i, 0));
    double terms = 1;
    for (int64_t d : contracting)
      if (d >= 0 && d < left.rank()) terms *= static_cast<double>(left.dims[static_cast<size_t>(d)]);
    const bool floats = computes_with_floats(left.type);
    add(terms, sum_unit(left.type), floats);
    if (component_type(left.type) == ElementType::F32) out.may_multiply_in_tf32 = true;
  }

  // Of what its operations are over what they make: a multiplication and an addition a term.
  void counted(InstId i) {
    const Cost cost = CostAnalysis(m).of(i);
    const ElementType type = m.operand_count(i) ? m.shape(m.operand(i, 0)).type : first_type(m, i);
    const Shape* made = &m.shape(i);
    while (made->is_tuple() && !made->elements.empty()) made = &m.u()[made->elements[0]];
    const auto elements = static_cast<double>(std::max<int64_t>(1, made->elements_count()));
    const bool floats = computes_with_floats(type);
    if (floats) out.exact = false, out.rounds = true;
    if (!cost.unknown && cost.flops > 0) add(cost.flops / 2 / elements, sum_unit(type), floats);
    if (component_type(type) == ElementType::F32) out.may_multiply_in_tf32 = true;
  }

  void reduction(InstId i) {
    const Shape& from = m.shape(m.operand(i, 0));
    double terms = 1;
    for (int64_t d : m.attrs(i).ints(Attr::dimensions))
      if (d >= 0 && d < from.rank()) terms *= static_cast<double>(from.dims[static_cast<size_t>(d)]);
    // Of minima and maxima no order changes anything.
    bool sums = false;
    for (CompId c : m.called(i))
      for (InstId k : m.live_order(c))
        sums = sums || m.op(k) == Opcode::Add || m.op(k) == Opcode::Multiply || m.op(k) == Opcode::Subtract ||
               m.op(k) == Opcode::Divide || m.op(k) == Opcode::Fusion;
    if (sums) add(terms, unit_of(from.type), computes_with_floats(from.type));
  }

  void operation(InstId i) {
    const Opcode op = m.op(i);
    if (op == Opcode::Dot) product(i, m.attrs(i).ints(Attr::lhs_contracting_dims));
    if (op == Opcode::Convolution) counted(i);
    if (op == Opcode::Reduce || op == Opcode::ReduceWindow || op == Opcode::Scatter) {
      if (op == Opcode::Reduce)
        reduction(i);
      else if (computes_with_floats(first_type(m, i)))
        out.exact = false, out.terms = std::max(out.terms, 2.0), out.unit = unit_of(first_type(m, i));
    }
    if (op_info(op).cls == OpClass::Elementwise && computes_with_floats(first_type(m, i)) && op != Opcode::Copy)
      out.rounds = true;
  }
};

}  // namespace

double KernelSum::usual() const { return exact || terms < 2 ? 0 : std::sqrt(terms) * unit + result_unit; }
double KernelSum::most() const { return exact || terms < 2 ? 0 : 2 * (terms * unit + result_unit); }

KernelSum kernel_sum(const Module& m, InstId kernel) {
  SumReader r{m, {}};
  r.out.result_unit = computes_with_floats(first_type(m, kernel)) ? unit_of(first_type(m, kernel)) : 0;
  if (m.op(kernel) == Opcode::Fusion) {
    for (InstId i : m.live_order(m.called(kernel)[0])) r.operation(i);
  } else if (m.op(kernel) == Opcode::CustomCall) {
    const std::string_view text = m.u().text(m.attrs(kernel).text(Attr::backend_config));
    const BackendConfig gemm = backend_config(text, "gemm_backend_config");
    if (m.operand_count(kernel) && gemm.contains("dot_dimension_numbers") &&
        gemm["dot_dimension_numbers"].is_object()) {
      Dims contracting;
      auto list = gemm["dot_dimension_numbers"].find("lhs_contracting_dimensions");
      if (list != gemm["dot_dimension_numbers"].end() && list->is_array())
        for (const BackendConfig& d : *list)
          contracting.push_back(d.is_string()           ? atoll(d.get<std::string>().c_str())
                                : d.is_number_integer() ? d.get<int64_t>()
                                                        : -1);
      r.product(kernel, contracting);
    } else {
      r.counted(kernel);
    }
  } else {
    r.operation(kernel);
  }
  if (r.out.terms >= 2 && !r.out.exact) r.out.rounds = true;
  return r.out;
}

namespace {

std::string backend_family(const std::string& backend) {
  return backend.ends_with("_FISSION") ? backend.substr(0, backend.size() - 8) : backend;
}

// What differs between two choices, in the words of the listing.
std::vector<std::string> differences(const std::optional<TuningConfig>& a, const std::optional<TuningConfig>& b) {
  if (!a || !b || a->backend == "UNSPECIFIED_BACKEND" || b->backend == "UNSPECIFIED_BACKEND") return {"unknown"};
  std::vector<std::string> out;
  if (backend_family(a->backend) != backend_family(b->backend)) return {"back end"};
  if (a->tiles() != b->tiles()) out.emplace_back("tiles");
  if (a->split_k().value_or(1) != b->split_k().value_or(1)) out.emplace_back("split-K");
  if (a->algorithm() != b->algorithm()) out.emplace_back("algorithm");
  if (out.empty() && a->in_words() != b->in_words()) out.emplace_back("settings");
  return out;
}

bool has(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

void tell_numbers(TuningChange* c) {
  const KernelSum& s = c->sum;
  if (s.exact && !s.rounds) {
    c->numbers = "whole numbers or values that are only moved: no difference";
    return;
  }
  if (has(c->what, "unknown")) {
    c->numbers = "unknown: one side does not record what was chosen", c->most = -1;
    return;
  }
  if (s.terms < 2) {
    if (!s.exact) {
      c->numbers = "unknown: what this call sums is not known", c->most = -1;
      return;
    }
    c->numbers =
        "it sums nothing: only how functions are approximated and products contracted can differ, a few units "
        "in the last place";
    c->usual = 2 * s.result_unit, c->most = 8 * s.result_unit;
    return;
  }
  c->usual = s.usual(), c->most = s.most();
  c->numbers = fmt::format(
      "sums of {:.0f} terms may go in another order: differences of about {:.1e} of the sum of their magnitudes, at "
      "most {:.1e}",
      s.terms, c->usual, c->most);
  if (s.may_multiply_in_tf32 && (has(c->what, "back end") || has(c->what, "algorithm"))) {
    const double tf32 = std::ldexp(1, -10);  // two factors, each rounded to 11 bits
    c->numbers += fmt::format("; {:.1e} where only one of the two multiplies in TF32", tf32);
    c->most += tf32;
  }
}

}  // namespace

TuningComparison compare_tuned(const TunedModule& first, const TunedModule& second) {
  struct Side {
    std::vector<std::string> names;
    const TunedKernel* kernel = nullptr;
  };
  auto by_content = [](const TunedModule& m) {
    std::map<std::string, Side> out;
    for (const TunedKernel& k : m.kernels) {
      Side& s = out[k.content];
      s.names.push_back(k.name);
      if (!s.kernel) s.kernel = &k;
    }
    return out;
  };
  const std::map<std::string, Side> x = by_content(first), y = by_content(second);
  TuningComparison out;
  for (const auto& [content, side] : x) {
    auto other = y.find(content);
    if (other == y.end()) {
      out.only_first.insert(out.only_first.end(), side.names.begin(), side.names.end());
      continue;
    }
    TuningChange c{content,
                   side.names,
                   other->second.names,
                   side.kernel->chosen,
                   other->second.kernel->chosen,
                   side.kernel->sum,
                   {},
                   "",
                   0,
                   0};
    c.what = differences(c.first, c.second);
    if (c.what.empty()) {
      ++out.same;
      continue;
    }
    tell_numbers(&c);
    out.unknown += c.most < 0;
    out.changes.push_back(std::move(c));
  }
  for (const auto& [content, side] : y)
    if (!x.contains(content)) out.only_second.insert(out.only_second.end(), side.names.begin(), side.names.end());
  std::stable_sort(out.changes.begin(), out.changes.end(),
                   [](const TuningChange& p, const TuningChange& q) { return p.usual > q.usual; });
  return out;
}

std::string explains_difference(const TuningComparison& c, double difference) {
  double usual = 0, most = 0;
  for (const TuningChange& t : c.changes)
    if (t.most > 0) usual = std::max(usual, t.usual), most += t.most;
  if (difference <= 0) return "there is no difference to explain";
  if (usual > 0 && difference <= 4 * usual)
    return fmt::format("a difference of {:.1e} is of the size that another order of these sums makes", difference);
  if (c.unknown)
    return fmt::format("unknown: of {} kernel{} it is not known what the other choice does to numbers", c.unknown,
                       c.unknown == 1 ? "" : "s");
  if (!c.only_first.empty() || !c.only_second.empty())
    return "unknown: the two have kernels that the other has not, which are not compared here";
  if (c.changes.empty() || most == 0) return "not explained by what was chosen: no kernel that rounds chose otherwise";
  if (difference <= most)
    return fmt::format(
        "unknown: {:.1e} is larger than another order of these sums usually makes ({:.1e}) and smaller than it can "
        "make ({:.1e})",
        difference, usual, most);
  return fmt::format(
      "not explained by what was chosen: all other orders of these sums together make at most {:.1e}, unless a later "
      "operation amplifies it (a difference of large numbers, a division by a small one, a comparison)",
      most);
}

}  // namespace hlo
