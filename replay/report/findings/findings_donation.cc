// Arguments that results could take the place of, and what their not being donated costs.
#include <algorithm>
#include <set>

#include "ir/sharding/aliasing.h"
#include "replay/report/findings/findings_parts.h"

namespace hlo {
namespace {

constexpr size_t kMostValues = 10000;  // that are looked at on the way to a parameter

// Has the value all elements of the parameter, in another order?
bool only_reorders(const Module& m, InstId value, InstId parameter) {
  return m.operand_count(value) == 1 && m.shape(value).elements_count() == m.shape(parameter).elements_count() &&
         all_operations(m, value, [&](InstId i) {
           const Opcode op = m.op(i);
           return op == Opcode::Transpose || op == Opcode::Copy || op == Opcode::Bitcast || op == Opcode::Reshape;
         });
}

// Does the loop carry the parameter unchanged, for its body to read?
bool hands_on(const FindingsInput& in, InstId loop, InstId parameter) {
  const Module& m = in.m;
  const CompId body = m.attrs(loop).comp(Attr::body);
  const InstId state = m.comp(body).params[0];
  for (InstId element : m.users(state))
    if (m.op(element) == Opcode::GetTupleElement && in.origin(element) == parameter &&
        std::any_of(m.users(element).begin(), m.users(element).end(), [&](InstId u) { return !m.is_root(u); }))
      return true;
  return false;
}

// Is the value made of the parameter element by element, as a state's new value is of the old one: a way of operands of
// one shape?
// A loop that reads the parameter in all its runs leaves no place for what it makes of it.
bool made_of(const FindingsInput& in, InstId value, InstId parameter) {
  const Module& m = in.m;
  std::vector<InstId> list{in.origin(value)};
  std::set<InstId> seen{list[0]};
  const Dims& dims = m.shape(parameter).dims;
  for (size_t k = 0; k < list.size() && k < kMostValues; ++k) {
    InstId i = list[k];
    if (i == parameter) return true;
    auto go = [&](InstId o) {
      o = in.origin(o);
      const Shape& s = m.shape(o);
      const bool state = s.is_array() ? s.dims == dims || only_reorders(m, o, parameter)
                                      : m.op(o) == Opcode::Fusion || m.op(o) == Opcode::CustomCall;
      if ((state || m.op(o) == Opcode::GetTupleElement) && seen.insert(o).second) list.push_back(o);
    };
    if (m.op(i) == Opcode::GetTupleElement && m.op(m.operand(i, 0)) == Opcode::While) {
      InstId init = m.operand(m.operand(i, 0), 0);
      const auto at = static_cast<size_t>(m.attrs(i).integer(Attr::index));
      if (hands_on(in, m.operand(i, 0), parameter)) continue;
      if (m.op(init) == Opcode::Tuple && at < m.operand_count(init)) go(m.operand(init, at));
      continue;
    }
    // A product mixes the elements: what it reads is no older state of its result.
    if (m.op(i) == Opcode::Parameter || kernel_product(m, i).valid()) continue;
    for (InstId o : m.operands(i)) go(o);
  }
  return false;
}

}  // namespace

std::vector<ModuleFinding> missing_donation(const FindingsInput& in) {
  const Module& m = in.m;
  const InstId root = m.comp(m.entry()).root;
  const std::set<int64_t> donated = donated_parameters(m);
  std::set<int64_t> aliased;
  for (const AliasEntry& a : parse_aliases(m.config().input_output_alias))
    aliased.insert(a.output.empty() ? 0 : a.output[0]);
  std::vector<InstId> results;
  std::vector<int64_t> numbers;  // of results; -1: the only one
  if (m.op(root) == Opcode::Tuple) {
    for (size_t k = 0; k < m.operand_count(root); ++k)
      if (!aliased.contains(static_cast<int64_t>(k)))
        results.push_back(m.operand(root, k)), numbers.push_back(static_cast<int64_t>(k));
  } else if (m.shape(root).is_array() && aliased.empty()) {
    results.push_back(root), numbers.push_back(-1);
  }
  std::vector<InstId> parameters = m.comp(m.entry()).params;
  std::erase_if(parameters,
                [&](InstId p) { return !m.shape(p).is_array() || donated.contains(m.parameter_number(p)); });
  std::stable_sort(parameters.begin(), parameters.end(),
                   [&](InstId a, InstId b) { return array_size(m, a) > array_size(m, b); });
  ModuleFinding f;
  f.kind = "missing-donation";
  double all = 0;
  for (InstId p : m.comp(m.entry()).params) all += array_size(m, p);
  std::vector<bool> taken(results.size(), false);
  for (InstId p : parameters) {
    if (array_size(m, p) < 0.001 * all || f.others.size() >= 10000) break;
    for (size_t k = 0; k < results.size(); ++k) {
      if (taken[k] || m.shape_id(results[k]) != m.shape_id(p) || !made_of(in, results[k], p)) continue;
      taken[k] = true;
      f.others.push_back(p), f.results.push_back(numbers[k]);
      f.bytes += array_size(m, p);
      break;
    }
  }
  // Small change is not worth a word: a parameter that is passed through costs more by its name than by its bytes.
  if (f.others.empty() || f.bytes < 0.01 * all || f.bytes < 1024) return {};
  f.inst = f.others[0];
  f.what = f.others.size() == 1
               ? fmt::format("{} is not donated, though a result of its shape is computed from it", in.in_words(f.inst))
               : fmt::format(
                     "{} parameters, {} together, are not donated, though results of their shapes are computed from "
                     "them; the largest: {}",
                     f.others.size(), size_text(f.bytes), in.in_words(f.inst));
  f.advice = "if the caller does not read them afterwards: jax.jit(…, donate_argnums=…)";
  return {f};
}

std::vector<ModuleFinding> retyped_state(const FindingsInput& in) {
  const Module& m = in.m;
  const InstId root = m.comp(m.entry()).root;
  std::set<int64_t> aliased, taken;
  for (const AliasEntry& a : parse_aliases(m.config().input_output_alias))
    aliased.insert(a.number), taken.insert(a.output.empty() ? 0 : a.output[0]);
  std::vector<ModuleFinding> out;
  for (int64_t number : donated_parameters(m)) {
    if (aliased.contains(number) || number >= static_cast<int64_t>(m.comp(m.entry()).params.size())) continue;
    const InstId p = m.comp(m.entry()).params[static_cast<size_t>(number)];
    if (!m.shape(p).is_array() || m.op(root) != Opcode::Tuple) continue;
    for (size_t k = 0; k < m.operand_count(root); ++k) {
      const InstId result = m.operand(root, k);
      const Shape &from = m.shape(p), &to = m.shape(result);
      if (taken.contains(static_cast<int64_t>(k)) || !to.is_array() || to.dims != from.dims || to.type == from.type ||
          !made_of(in, result, p))
        continue;
      taken.insert(static_cast<int64_t>(k));
      ModuleFinding f;
      f.kind = "retyped-state", f.inst = f.odd = in.origin(result), f.others = {p};
      f.bytes = array_size(m, result);
      f.what = fmt::format("{} is donated, but what is computed from it is {}: it cannot take its place",
                           in.in_words(p), m.u().shape_text_plain(m.shape_id(result)));
      f.advice = fmt::format("give it back as {}: cast what is written into it, not the whole", type_name(from.type));
      if (f.bytes >= 1024) out.push_back(std::move(f));
      break;
    }
  }
  return out;
}

void donation_with_copies(std::vector<ModuleFinding>* all) {
  auto donation = std::find_if(all->begin(), all->end(), [](const auto& f) { return f.kind == "missing-donation"; });
  if (donation == all->end()) return;
  ModuleFinding found = *donation;
  size_t copies = 0;
  std::erase_if(*all, [&](const ModuleFinding& f) {
    const bool of_it = f.kind == "copy-at-loop" && !f.others.empty() &&
                       std::find(found.others.begin(), found.others.end(), f.others[0]) != found.others.end();
    if (of_it) ++copies, found.seconds += f.seconds;
    return of_it;
  });
  if (!copies) return;
  found.what += fmt::format("; {} before loops that write over them", copies == 1 ? "it is copied" : "they are copied");
  *std::find_if(all->begin(), all->end(), [](const auto& f) { return f.kind == "missing-donation"; }) = found;
}

}  // namespace hlo
