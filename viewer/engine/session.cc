#include "viewer/engine/session.h"

#include <algorithm>

#include "ir/base/check.h"

namespace hlo {
namespace {

// Instructions that thawed states may hold in all; each takes some hundred bytes with what is made beside it.
constexpr size_t kMostKept = 400000, kLeastStates = 3;

}  // namespace

PageModule& PageSession::module_unread(uint32_t number) {
  if (number >= modules_.size())
    fail(FailureKind::kUsage, "there is no module {}: {} open", number,
         modules_.empty() ? "none is" : fmt::format("0 to {} are", modules_.size() - 1));
  return *modules_[number];
}

PageModule& PageSession::module(uint32_t number) {
  PageModule& m = module_unread(number);
  if (!m.read && m.kind == PageModule::Kind::kRecording) m.recording.lineage();
  m.read = true;
  return m;
}

size_t PageSession::states(PageModule& m) {
  return m.kind == PageModule::Kind::kRewrites ? m.rewrites + 1 : lineage(m).size();
}

void PageSession::check_state(StateRef at) {
  PageModule& m = module(at.module);
  if (at.state >= states(m))
    fail(FailureKind::kUsage, "module {} has no state {}: it has {}", at.module, at.state, states(m));
}

std::shared_ptr<OpenState> PageSession::state(StateRef at) {
  check_state(at);
  for (auto k = cache_.begin(); k != cache_.end(); ++k)
    if ((*k)->at == at) {
      cache_.splice(cache_.begin(), cache_, k);
      return cache_.front();
    }
  std::shared_ptr<OpenState> made = thawed(at);
  cache_.push_front(made);
  size_t held = 0, count = 0;
  for (auto k = cache_.begin(); k != cache_.end();) {
    held += (*k)->m.inst_slots(), ++count;
    k = count > kLeastStates && held > kMostKept ? cache_.erase(k) : std::next(k);
  }
  return made;
}

std::shared_ptr<OpenState> PageSession::thawed(StateRef at) {
  PageModule& m = module(at.module);
  return std::make_shared<OpenState>(at, std::shared_ptr<const Module>(lineage(m).module(at.state)),
                                     std::vector<Heir>());
}

std::unique_ptr<Module> PageSession::copy_of(StateRef at) {
  check_state(at);
  return lineage(module(at.module)).module(at.state);
}

InstId PageSession::instruction(OpenState& state, int64_t id) {
  InstId i(static_cast<uint32_t>(id));
  if (!state.m.alive(i))
    fail(FailureKind::kUsage, "no instruction {} lives in state {} of module {}", id, state.at.state, state.at.module);
  return i;
}

const Target& PageSession::target(uint32_t number) {
  PageModule& m = module_unread(number);
  if (!m.target) m.target = m.origin ? target(m.origin->module) : target_of(m.recording, "");
  return *m.target;
}

const std::vector<FusionDecision>& PageSession::decisions(PageModule& m) {
  if (!m.decisions) m.decisions = fusion_decisions(m.recording, std::nullopt);
  return *m.decisions;
}

std::vector<Heir> PageSession::heirs_into(StateRef at) {
  auto list = lineage(module(at.module)).heirs(at.state);
  return {list.begin(), list.end()};
}

}  // namespace hlo
