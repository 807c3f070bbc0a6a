// What bisect says: the same keys whatever was found.
#pragma once
#include <string>
#include <vector>

#include "replay/cli/command.h"
#include "replay/hunt/bisect.h"
#include "replay/hunt/by_elements.h"
#include "replay/hunt/inside/search.h"
#include "replay/os/progress.h"

namespace hlo {

BisectOptions search_options(Progress& progress, bool every);

// What stands in the report, by either mode.
struct Finding {
  Json json;
  std::string guilty;  // the last line
  std::string good_text, bad_text;
};

// What the two stages differ in: where values part if they can be run, else the differing lines.
void describe(const BisectArgs& a, const Module& good, const Module& bad, const Session* session, Finding& f);
// The same from what was found inside, the first finding of a stage.
void describe_inside(const Module& good, const Module& bad, const InsideStage& stage, Finding& f);
// The same from what chosen elements tell.
void describe_elements(const Module& good, const Module& bad, const ElementsFinding& w, Finding& f);
// What was compared inside and what the inputs tell: `inside` and `inputs` of the answer.
void add_inside(Json& j, const Candidates& row, const InsideSearch& s, const std::string& inputs);
// The same of what was compared at chosen elements: `elements` of the answer.
void add_elements(Json& j, const Candidates& row, const ElementsSearch& s, const ElementsOptions& options);
// In words, `; the stages were not run: …`: that object, and `smaller` of the answer.
std::string elements_in_words(const Json& e, const Json& smaller);
// Two of its `sampled` in one: of the value of which the smallest part was seen, that.
void add_sampled(Json& all, const Json& part);
// The same answers of two parts of a folder's stages, the second behind the first: counts are added up.
void add_told(Json& all, const Json& part);
void add_counts(Json& j, const Candidates& row, const Bisection& b, bool numbers);
int report(const BisectArgs& a, const Finding& f);
// Where nothing was found: what that means; `code` is the exit code.
Json nothing(const BisectArgs& a, const Candidates& row, const Bisection& b, const std::string& judge, int* code,
             const Json* inside = nullptr);
// By what a search was stopped: `after 5 s`, `by a signal`.
std::string ended_in_words(const BisectArgs& a);
// What was judged until then; the counts of the answer stand in `j`. And each: `verdicts` of the answer.
std::string stopped_in_words(const BisectArgs& a, const Candidates& row, const Bisection& b, const Json& j);
void add_verdicts(Json& j, const Candidates& row, const Bisection& b);
// Where all stages agree: whether the device does, by --outputs or the backend; an exit code.
int below_hlo(const BisectArgs& a, const Module& last, const std::string& path, Session& session, Json& told);
// The stages from `from` to in front of `to`.
Candidates stages_between(const Candidates& all, size_t from, size_t to);
// A module through our pipeline: its stages, then the rewrites of the pass.
int bisect_module(const BisectArgs& a);
int tell(const BisectArgs& a, const Json& j, int code);

}  // namespace hlo
