// What is open behind a page: modules with their states, and those of the states that were looked at last, thawed.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "replay/compare/diff.h"
#include "replay/os/files.h"
#include "replay/record/recording/recording.h"
#include "replay/record/start/target.h"
#include "replay/report/explain/decisions.h"
#include "replay/report/findings/tried_findings.h"
#include "replay/report/kernels/expected.h"
#include "replay/report/kernels/kernels.h"
#include "replay/report/overview/measured_page.h"
#include "viewer/engine/question.h"

namespace hlo {

class Folding;
struct Drawing;

// A state that somebody looks at. All but the module is made when it is first asked for. Immutable to callers.
class OpenState {
 public:
  OpenState(StateRef at, std::shared_ptr<const Module> m, std::vector<Heir> heirs);
  ~OpenState();
  OpenState(const OpenState&) = delete;
  OpenState& operator=(const OpenState&) = delete;

  const StateRef at;
  const Module& m;
  const std::shared_ptr<const Module> module;
  const std::vector<Heir> heirs;  // of a state that is made anew: from ids of the state in front

  // The text, as it reads back; `in_full`: large constants, too, so that nothing is lost.
  struct Text {
    std::string whole;
    std::vector<uint32_t> start;  // of each line, and behind the last
    std::vector<InstId> id;       // that the line defines
    std::string_view line(size_t k) const {
      return std::string_view(whole).substr(start[k], start[k + 1] - start[k] - 1);
    }
  };
  const Text& text(bool in_full = false);
  uint32_t line_of(InstId i);  // UINT32_MAX where it has none
  const std::vector<std::vector<InstId>>& callers();
  InstId named(std::string_view name);  // the first of that name in print order; invalid: there is none
  const ModuleCost& cost(const DeviceSpec& device);
  const ExpectedTime& expected(const Target& target);
  const Folding& folding();
  const std::vector<InstId>& in_order();  // all that live, in the text's order
  // The fusion whose body it stands in; invalid: it stands in none.
  InstId fusion_of(InstId i);

 private:
  std::unique_ptr<Text> texts_[2];  // without and with large constants
  std::vector<uint32_t> line_of_;
  std::vector<InstId> order_;
  std::vector<std::vector<InstId>> callers_;
  bool callers_known_ = false;
  std::unordered_map<std::string_view, InstId> names_;
  std::unordered_map<std::string, ModuleCost> costs_;       // by device
  std::unordered_map<std::string, ExpectedTime> expected_;  // likewise
  std::unique_ptr<Folding> folding_;
};

// A module of the session. Its states are a lineage's, or those behind each rewrite of one run of a pass, which are
// made when somebody looks at them.
struct PageModule {
  enum class Kind { kRecording, kBench, kRewrites } kind = Kind::kRecording;
  Recording recording;  // of a bench what was done there
  std::string function;
  std::vector<std::string> lost;                         // what could not be read when it was opened
  bool read = false;                                     // the lineage is there
  std::optional<Target> target;                          // once asked for
  std::optional<std::vector<FusionDecision>> decisions;  // likewise
  std::optional<StateRef> origin;                        // of a bench: its state 0 is a copy of that one, ids the same
  std::vector<TriedFinding> tried;                       // what came of its findings, where the page carries it
  std::shared_ptr<const PageMeasured> measured;          // of its last state, where the page carries it
  // Of kRewrites: the run of the pass, and how many of its rewrites may be asked for.
  size_t row = 0;
  const PassInfo* pass = nullptr;
  std::map<std::string, std::string> options;
  size_t rewrites = 0;
  // Of a bench: the options that each row's pass ran with.
  std::map<size_t, std::map<std::string, std::string>> row_options;
};

class PageSession {
 public:
  PageSession() = default;

  // engine_open.cc
  void open_path(const std::string& path);
  void put(std::string name, std::string bytes);
  void open_files();  // those that were put
  // A module of its own that begins with that state; its number.
  uint32_t add_bench(std::unique_ptr<Module> m, const std::string& name, std::optional<StateRef> origin);
  // The one with the states between the rewrites of a row; the same at each call.
  uint32_t rewrites_of(uint32_t module, size_t row);

  size_t size() const { return modules_.size(); }
  // Its stages read; throws Failure(kUsage) where there is no such module.
  PageModule& module(uint32_t number);
  PageModule& module_unread(uint32_t number);
  Lineage& lineage(PageModule& m) { return m.recording.lineage(); }
  size_t states(PageModule& m);
  void check_state(StateRef at);
  // Thawed, from the cache where it is there. What is returned stays valid for the holder.
  std::shared_ptr<OpenState> state(StateRef at);
  // A copy that may be changed.
  std::unique_ptr<Module> copy_of(StateRef at);
  // Of that state what `id` is. Throws Failure(kUsage) where nothing of that number lives there.
  InstId instruction(OpenState& state, int64_t id);
  // What it was compiled for; of a bench what it came from.
  const Target& target(uint32_t module);
  const std::vector<FusionDecision>& decisions(PageModule& m);
  // The last one of that module and group, so that the next can keep its places; null where there is none.
  std::shared_ptr<const Drawing> last_drawing(uint32_t module, const std::string& within) const {
    return module == drawn_module_ && within == drawn_within_ ? drawn_ : nullptr;
  }
  void keep_drawing(uint32_t module, const std::string& within, std::shared_ptr<const Drawing> drawing) {
    drawn_module_ = module, drawn_within_ = within, drawn_ = std::move(drawing);
  }

 private:
  std::vector<std::unique_ptr<PageModule>> opened_folder(const std::string& folder) const;
  std::vector<std::unique_ptr<PageModule>> opened_bytes(const std::string& label, std::string bytes) const;
  void replace(std::vector<std::unique_ptr<PageModule>> modules);
  static std::set<std::string> written(std::vector<std::pair<std::string, std::string>>& files,
                                       const std::string& folder);
  std::shared_ptr<OpenState> thawed(StateRef at);
  // Of kRewrites: run anew, with so much fuel.
  std::unique_ptr<Module> rewritten(PageModule& m, size_t count, std::vector<Heir>* heirs);

  std::vector<std::unique_ptr<PageModule>> modules_;
  std::vector<std::pair<std::string, std::string>> put_;
  std::unique_ptr<TemporaryFolder> folder_;  // of what was put
  // The one looked at last in front; bounded by instructions.
  std::list<std::shared_ptr<OpenState>> cache_;
  uint32_t drawn_module_ = 0;
  std::string drawn_within_;
  std::shared_ptr<const Drawing> drawn_;
};

// --- what groups of questions share ---

using Method = Json (*)(PageSession&, const Question&);
struct NamedMethod {
  std::string_view name;
  Method method;
};
// One list a file.
std::vector<NamedMethod> stage_methods();     // questions_stages.cc
std::vector<NamedMethod> text_methods();      // questions_text.cc
std::vector<NamedMethod> op_methods();        // questions_op.cc
std::vector<NamedMethod> search_methods();    // questions_search.cc
std::vector<NamedMethod> do_methods();        // questions_do.cc
std::vector<NamedMethod> rewrite_methods();   // questions_rewrites.cc
std::vector<NamedMethod> value_methods();     // questions_values.cc
std::vector<NamedMethod> drawing_methods();   // questions_drawing.cc
std::vector<NamedMethod> cost_methods();      // questions_cost.cc
std::vector<NamedMethod> overview_methods();  // questions_overview.cc

// What is opened may be wrong and is shown; passes, schedules and the evaluator take right modules alone
// (check_verifies).
ModuleDiff states_diff(PageSession& session, StateRef a, StateRef b);
// What was measured of that state; null: nothing.
const PageMeasured* measured_at(PageSession& session, StateRef at);
inline Json json_of(InstId i) { return i.valid() ? Json(i.value) : Json(); }
Json row_json(const StageRow& row, size_t number);
Json module_info(PageSession& session, uint32_t number);

}  // namespace hlo
