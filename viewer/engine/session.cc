#include "viewer/engine/session.h"

#include <algorithm>

#include "ir/base/check.h"
#include "passes/pipelines/pipelines.h"

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
  std::vector<Heir> heirs;
  std::unique_ptr<Module> made =
      m.kind == PageModule::Kind::kRewrites ? rewritten(m, at.state, &heirs) : lineage(m).module(at.state);
  return std::make_shared<OpenState>(at, std::move(made), std::move(heirs));
}

std::unique_ptr<Module> PageSession::copy_of(StateRef at) {
  check_state(at);
  PageModule& m = module(at.module);
  std::vector<Heir> unused;
  return m.kind == PageModule::Kind::kRewrites ? rewritten(m, at.state, &unused) : lineage(m).module(at.state);
}

// A pass does the same on the same module, whatever its fuel, until that is spent.
std::unique_ptr<Module> PageSession::rewritten(PageModule& m, size_t count, std::vector<Heir>* heirs) {
  std::unique_ptr<Module> out = copy_of(*m.origin);
  if (count == 0) return out;
  Lineage two(out->universe());
  two.add(*out);
  PassContext context;
  context.options = m.options;
  context.fuel = static_cast<int64_t>(count);
  context.keep_notes = false;
  PassEvent event;
  run_pass(*out, *m.pass, context, {}, &event);
  if (event.rewrites != static_cast<int64_t>(count))
    fail(FailureKind::kInternal, "{} makes {} rewrites where it made {}", m.pass->name, event.rewrites, count);
  two.add(*out);
  auto list = two.heirs(1);
  heirs->assign(list.begin(), list.end());
  return out;
}

uint32_t PageSession::rewrites_of(uint32_t number, size_t row) {
  PageModule& m = module(number);
  if (row >= m.recording.rows.size())
    fail(FailureKind::kUsage, "module {} has no row {}: it has {}", number, row, m.recording.rows.size());
  const StageRow& r = m.recording.rows[row];
  if (m.kind == PageModule::Kind::kRecording && m.recording.source != "hlo-replay")
    fail(FailureKind::kUnsupported, "{} was run by XLA, whose dump does not record its rewrites", r.name());
  const PassInfo* pass = r.kind == StageRow::kPass ? find_pass(r.pass) : nullptr;
  if (!pass || !pass->run) fail(FailureKind::kUsage, "row {} ({}) is no run of a pass", row, r.name());
  if (r.rewrites < 1) fail(FailureKind::kUsage, "{} made no rewrite in row {}", r.name(), row);
  int before = -1;
  for (size_t k = 0; k < row; ++k)
    if (m.recording.rows[k].stage >= 0) before = m.recording.rows[k].stage;
  if (before < 0) fail(FailureKind::kUsage, "the state before row {} could not be read", row);
  const StateRef origin{number, static_cast<uint32_t>(before)};
  for (uint32_t k = 0; k < modules_.size(); ++k) {
    const PageModule& other = *modules_[k];
    if (other.kind == PageModule::Kind::kRewrites && other.origin == origin && other.row == row) return k;
  }
  auto made = std::make_unique<PageModule>();
  made->kind = PageModule::Kind::kRewrites, made->read = true;
  made->origin = origin, made->row = row, made->pass = pass, made->rewrites = static_cast<size_t>(r.rewrites);
  if (auto own = m.row_options.find(row); own != m.row_options.end())
    made->options = own->second;
  else
    made->options = call_site_options(pass->name, r.pipeline);
  made->recording.module_name = m.recording.module_name, made->recording.source = "bench";
  made->recording.pipeline = fmt::format("rewrites of {}", r.name());
  made->recording.module_number = static_cast<int>(modules_.size() + 1);
  made->function = m.function;
  modules_.push_back(std::move(made));
  return static_cast<uint32_t>(modules_.size() - 1);
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

}  // namespace hlo
