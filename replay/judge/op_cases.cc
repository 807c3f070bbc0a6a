#include "replay/judge/op_cases.h"

#include "parser/parser.h"
#include "passes/scope.h"
#include "replay/compare/link.h"

namespace hlo {

std::map<std::string, std::vector<OpCase>> op_cases_of(std::string_view lines) {
  std::map<std::string, std::vector<OpCase>> out;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    OpCase c = op_case(std::string(lines.substr(0, end)));
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    const std::string name = c.name();
    if (name.starts_with("convert f4e2m1fn ") && (name[17] == 's' || name[17] == 'u')) continue;
    if (name == "popcnt s4") continue;
    out[c.op].push_back(std::move(c));
  }
  return out;
}

namespace {

// One module of all: the parameters of all, the results of all as one tuple, each case's instructions as they are. A
// single one stays what it is.
std::unique_ptr<Module> together(std::vector<LinkModule>& modules, const std::string& op) {
  if (modules.size() == 1) return std::move(modules[0].module);
  auto m = stitched(modules, {}, {}, "cases");  // each as a call
  if (op == "call") return m;                   // calls are what these try
  PassContext context;
  context.keep_notes = false;
  PassEvent event;
  run_pass(*m, *find_pass("call-inliner"), context, {}, &event);
  m->cleanup();
  return m;
}

// `why` gets a line a case. Throws Failure where one of them cannot run.
void run_together(const ExecutorInfo& executor, std::span<const OpCase> cases, OpCaseRun* run,
                  std::span<std::string> why) {
  auto universe = std::make_shared<Universe>();
  std::vector<LinkModule> modules;
  std::vector<Value> arguments;
  for (const OpCase& c : cases) {
    LinkModule one{c.name(), parse_module(c.text, universe, {}), {}, {}};
    const Module& m = *one.module;
    for (CompId comp : m.computations())
      for (InstId i : m.comp(comp).order) run->opcodes.insert(std::string(op_text(m.op(i))));
    const auto& params = m.comp(m.entry()).params;
    for (size_t k = 0; k < params.size(); ++k) {
      Value v;
      v.shape = m.shape_id(params[k]);
      v.data = std::make_shared<std::vector<char>>(from_hex(c.inputs[k]));
      arguments.push_back(std::move(v));
    }
    modules.push_back(std::move(one));
  }
  auto m = together(modules, cases[0].op);
  std::vector<Value> outputs;
  Execution e = executor.run(*m, {arguments}, 1, {});
  run->left |= e.notes.size() > 1;
  if (!e.notes.empty()) run->note = e.notes[0];
  flatten(*universe, e.results[0], &outputs);
  size_t expected = 0;
  for (const OpCase& c : cases) expected += c.outputs.size();
  if (outputs.size() != expected)
    fail(FailureKind::kInvalid, "{} outputs for {} of {} cases", outputs.size(), expected, cases.size());
  auto next = outputs.begin();
  for (size_t k = 0; k < cases.size(); ++k) {
    const auto count = static_cast<ptrdiff_t>(cases[k].outputs.size());
    why[k] = result_error(*universe, cases[k], {next, next + count});
    next += count;
  }
}

}  // namespace

OpCaseRun run_op_cases(const ExecutorInfo& executor, std::span<const OpCase> cases) {
  OpCaseRun run;
  run.why.resize(cases.size());
  try {
    run_together(executor, cases, &run, run.why);
    return run;
  } catch (const Failure& e) {
    run.together_failed = e.what();
  }
  for (size_t k = 0; k < cases.size(); ++k) try {
      run_together(executor, cases.subspan(k, 1), &run, std::span(run.why).subspan(k, 1));
      ++run.alone;
    } catch (const Failure& e) {
      run.why[k] = e.what();
    }
  return run;
}

}  // namespace hlo
