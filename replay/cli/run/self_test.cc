#include "replay/cli/run/self_test.h"

#include <chrono>

#include "parser/parser.h"
#include "replay/cli/command.h"
#include "replay/judge/arguments/session.h"
#include "replay/judge/judge.h"
#include "replay/judge/op_cases.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace {

struct Outcome {
  size_t cases = 0, modules = 0, failed = 0;
  std::string where;  // the executor's own words for the device

  void take_note(const std::string& note) {
    const size_t at = note.find(" kernels on ");
    if (at == std::string::npos) return;
    const size_t from = at + std::string_view(" kernels on ").size(), end = note.find(", ", from);
    where = note.substr(from, end == std::string::npos ? std::string::npos : end - from);
  }
  void failure(std::string_view name, const std::string& why) {
    ++failed;
    fmt::print("FAILED {}: {}\n", printable(name), printable(why));
    std::fflush(stdout);
  }
};

void try_operations(const ExecutorInfo& executor, const std::string& only, Outcome* outcome) {
  constexpr size_t kBatch = 60;
  for (auto& [op, list] : op_cases_of(self_test_data().operations)) {
    std::erase_if(list, [&](const OpCase& c) { return c.name().find(only) == std::string::npos; });
    for (std::span<const OpCase> rest = list; !rest.empty();) {
      std::span<const OpCase> batch = rest.first(std::min(rest.size(), kBatch));
      rest = rest.subspan(batch.size());
      const OpCaseRun run = run_op_cases(executor, batch);
      outcome->cases += batch.size();
      outcome->take_note(run.note);
      bool any = false;
      for (size_t k = 0; k < batch.size(); ++k) {
        if (run.why[k].empty()) continue;
        any = true;
        const std::string& text = batch[k].text;
        const size_t root = text.find("ROOT ");
        outcome->failure(
            batch[k].name(),
            fmt::format("{} in {}", run.why[k],
                        root == std::string::npos ? text : text.substr(root, text.find('\n', root) - root)));
      }
      // Each runs by itself: what is wrong is in the module of all.
      if (!any && !run.together_failed.empty())
        outcome->failure(fmt::format("{} cases of {} in one module", batch.size(), op), run.together_failed);
    }
  }
}

constexpr double kOwnTolerance = -1;  // the types' own

void try_modules(const ExecutorInfo& executor, const std::string& only, Outcome* outcome) {
  for (const SelfTestModule& one : self_test_data().modules) {
    if (one.name.find(only) == std::string_view::npos) continue;
    ++outcome->modules;
    try {
      auto m = parse_module(std::string(one.text), std::make_shared<Universe>(), {});
      Session session(*m, {});
      EvalOptions options;
      Execution times;
      Value got = session.run(*m, executor, options, 2, false, &times);  // a graph is launched from the second run on
      if (!times.notes.empty()) outcome->take_note(times.notes[0]);
      Value want = session.run(*m, *find_executor("evaluator"), options, 1, false);
      Comparison c = compare_results(m->u(), got, want, kOwnTolerance);
      if (!c.equal) {
        Value reference = session.run(*m, *find_executor("evaluator"), options, 1, true);
        c = compare_results(m->u(), got, want, kOwnTolerance, &reference);
      }
      if (!c.equal)
        outcome->failure(one.name, fmt::format("{}: {}", c.first_difference()->name, c.first_difference()->why));
    } catch (const Failure& e) {
      outcome->failure(one.name, e.what());
    }
  }
}

}  // namespace

int self_test(const ExecutorInfo& executor, const std::string& only) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  try_operations(executor, only, &outcome);
  try_modules(executor, only, &outcome);
  if (outcome.cases + outcome.modules == 0)
    fail(FailureKind::kUsage, "--self-test={}: no operation or module is called so", only);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("self-test of {}{}: {} operations and {} modules in {:.0f} s, {}\n", executor.name,
             outcome.where.empty() ? "" : " on " + outcome.where, outcome.cases, outcome.modules, seconds,
             outcome.failed ? fmt::format("{} failed", outcome.failed) : "all as they should be");
  return outcome.failed ? kNo : kYes;
}

}  // namespace hlo
