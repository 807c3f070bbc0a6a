#include <algorithm>

#include "ir/print/print.h"
#include "ir/print/printer.h"
#include "viewer/engine/session.h"
#include "viewer/layout/folding.h"

namespace hlo {
namespace {

PrintOptions text_options() {
  PrintOptions print;
  print.stable_order = print.lossless = true;
  return print;
}

}  // namespace

OpenState::OpenState(StateRef ref, std::shared_ptr<const Module> thawed, std::vector<Heir> between)
    : at(ref), m(*thawed), module(std::move(thawed)), heirs(std::move(between)) {
  m.ensure_users();
}
OpenState::~OpenState() = default;

const std::vector<InstId>& OpenState::in_order() {
  if (order_.empty())
    for (CompId c : print_order(m, true)) {
      std::vector<InstId> own = print_order(m, c);
      order_.insert(order_.end(), own.begin(), own.end());
    }
  return order_;
}

const OpenState::Text& OpenState::text(bool in_full) {
  std::unique_ptr<Text>& kept = texts_[in_full];
  if (kept) return *kept;
  auto out = std::make_unique<Text>();
  PrintOptions print = text_options();
  print.large_constants = in_full;
  out->whole = print_module(m, print);
  if (out->whole.size() >= UINT32_MAX) fail(FailureKind::kUnsupported, "the module's text is longer than 4 GiB");
  if (!out->whole.ends_with('\n')) out->whole += '\n';
  out->start.push_back(0);
  for (size_t at = 0; (at = out->whole.find('\n', at)) != std::string::npos;)
    out->start.push_back(static_cast<uint32_t>(++at));
  size_t lines = out->start.size() - 1;
  out->id.resize(lines);
  // The computations end the text: each has a line in front of its instructions, one behind, and a blank one.
  const std::vector<CompId> computations = print_order(m, true);
  size_t below = 0;
  for (CompId c : computations) below += m.size(c) + 3;
  HLO_CHECK(below <= lines, "{} lines of computations in a text of {}", below, lines);
  size_t at = lines - below;
  for (CompId c : computations) {
    ++at;
    for (InstId i : print_order(m, c)) out->id[at++] = i;
    at += 2;
  }
  kept = std::move(out);
  return *kept;
}

uint32_t OpenState::line_of(InstId i) {
  if (line_of_.empty()) {
    line_of_.assign(m.inst_slots() + 1, UINT32_MAX);
    // As in `text`, without printing all of it: what is in front, then of each computation a line, its instructions,
    // two lines.
    const PrintOptions print = text_options();
    Printer front(m, print);
    front.preamble();
    auto line = static_cast<uint32_t>(std::count(front.out.begin(), front.out.end(), '\n'));
    for (CompId c : print_order(m, true)) {
      ++line;
      for (InstId inside : print_order(m, c)) line_of_[inside.value] = line++;
      line += 2;
    }
  }
  return i.value < line_of_.size() ? line_of_[i.value] : UINT32_MAX;
}

const std::vector<std::vector<InstId>>& OpenState::callers() {
  if (!callers_known_) callers_ = m.callers(), callers_known_ = true;
  return callers_;
}

InstId OpenState::named(std::string_view name) {
  if (names_.empty())
    for (InstId i : in_order()) names_.try_emplace(m.inst_name(i), i);
  auto found = names_.find(name);
  return found == names_.end() ? InstId() : found->second;
}

const ModuleCost& OpenState::cost(const DeviceSpec& device) {
  auto found = costs_.find(std::string(device.name));
  if (found == costs_.end()) found = costs_.emplace(device.name, module_cost(m, device)).first;
  return found->second;
}

const ExpectedTime& OpenState::expected(const Target& target) {
  auto found = expected_.find(std::string(target.spec.name));
  if (found == expected_.end())
    found =
        expected_.emplace(target.spec.name, expected_time(m, cost(target.spec), target.spec, target.platform)).first;
  return found->second;
}

const Folding& OpenState::folding() {
  if (!folding_) folding_ = std::make_unique<Folding>(m);
  return *folding_;
}

InstId OpenState::fusion_of(InstId i) {
  for (InstId caller : callers()[m.parent(i).value])
    if (m.op(caller) == Opcode::Fusion) return caller;
  return {};
}

}  // namespace hlo
