#include "replay/record/start/made_order.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hlo {
namespace {

// `add` and 5 of `add.5`.
std::pair<std::string_view, uint64_t> numbered_name(std::string_view name) {
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size() || name.size() - dot > 10 ||
      name.find_first_not_of("0123456789", dot + 1) != std::string_view::npos)
    return {name, 0};
  return {name.substr(0, dot), std::stoull(std::string(name.substr(dot + 1)))};
}

// Was the instruction made by a pass? One that the program came with is called as its op_name ends (`add.5`,
// op_name="jit(f)/add") or, where it has none, is a constant.
bool made_by_pass(const Module& m, InstId i) {
  if (m.op(i) == Opcode::Constant || m.op(i) == Opcode::Parameter || m.op(i) == Opcode::Tuple) return false;
  auto base = [](std::string_view name) { return numbered_name(name).first; };
  std::string_view origin = m.u().text(StrId(m.u()[m[i].meta].op_name));
  if (size_t slash = origin.rfind('/'); slash != std::string_view::npos) origin = origin.substr(slash + 1);
  return base(base(m.inst_name(i))) != base(origin);
}

}  // namespace

void put_in_order_made(Module& m) {
  // The partitioner makes a program anew, in another order than names tell.
  if (m.comp_name(m.entry()).ends_with("_spmd")) return;
  std::unordered_map<CompId, size_t> printed;
  for (CompId c : m.computations()) printed.emplace(c, printed.size());
  for (CompId c : m.computations()) {
    int64_t last = -1;
    bool others = false, fits = true;
    for (InstId i : m.live_order(c)) {
      if (!m.users(i).empty() || m.is_root(i) || !m.control_succs(i).empty()) continue;
      bool parameter = m.op(i) == Opcode::Parameter;
      fits &= !parameter || (!others && m.parameter_number(i) > last);
      if (parameter) last = m.parameter_number(i);
      others |= !parameter;
    }
    std::vector<InstId> order, late;
    if (fits) order = m.comp(c).params;
    // A root that a pass made stands among what it made, and what is dead behind the root stays behind it.
    // So does, behind a root that the program came with, what is dead and made by a pass, where nothing dead of the
    // program follows.
    std::vector<bool> inside;  // of late
    bool behind = false, past = false;
    const std::vector<InstId> live = m.live_order(c);
    size_t program_until = 0;
    for (size_t k = 0; k < live.size(); ++k)
      if (m.users(live[k]).empty() && !made_by_pass(m, live[k])) program_until = k;
    for (size_t k = 0; k < live.size(); ++k) {
      const InstId i = live[k];
      if (fits && m.op(i) == Opcode::Parameter) continue;
      const bool used = !m.users(i).empty() && !m.is_root(i), made = made_by_pass(m, i);
      behind |= m.is_root(i) && made;
      past |= m.is_root(i);
      if ((used && made) || (m.is_root(i) && made) || (!used && (behind || (past && made && k > program_until)))) {
        late.push_back(i), inside.push_back(used);
      } else {
        order.push_back(i);
      }
    }
    // Passes number what they make as they make it.
    std::unordered_map<std::string_view, std::vector<std::pair<uint64_t, size_t>>> places;
    for (size_t k = 0; k < late.size(); ++k) {
      if (!inside[k]) continue;
      auto [root, number] = numbered_name(m.inst_name(late[k]));
      places[root].emplace_back(number, k);
    }
    const std::vector<InstId> as_printed = late;
    for (auto& [root, list] : places) {
      std::vector<size_t> slots;
      for (auto [number, k] : list) slots.push_back(k);
      std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t n = 0; n < slots.size(); ++n) late[slots[n]] = as_printed[list[n].second];
    }
    order.insert(order.end(), late.begin(), late.end());
    // Callees are printed in the order in which their callers stand.
    std::vector<size_t> slots;
    std::vector<std::pair<size_t, InstId>> callers;
    for (size_t k = 0; k < order.size(); ++k) {
      InstId i = order[k];
      if (m.called(i).empty() || m.users(i).empty() || m.is_root(i)) continue;
      size_t first = SIZE_MAX;
      for (CompId callee : m.called(i)) first = std::min(first, printed[callee]);
      slots.push_back(k), callers.emplace_back(first, i);
    }
    std::stable_sort(callers.begin(), callers.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t n = 0; n < slots.size(); ++n) order[slots[n]] = callers[n].second;
    m.set_order(c, std::move(order));
  }
}

}  // namespace hlo
