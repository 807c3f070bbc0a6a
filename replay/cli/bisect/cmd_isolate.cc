// isolate: every distinct fusion alone, run on the values that a run gives it, the worst first.
#include <algorithm>
#include <map>

#include "ir/base/hash.h"
#include "ir/eval/compare.h"
#include "ir/print/print.h"
#include "ir/query/fingerprint.h"
#include "ir/verify/verifier.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/hunt/extract.h"
#include "replay/os/files.h"

namespace hlo {
namespace {

struct Isolated {
  InstId inst;       // the first of its kind
  size_t times = 1;  // in the module
  std::string problem;
  bool equal = true;
  std::string why;
  double worst = 0, seconds = 0;  // relative to f64
};

// Kernels and library calls: what runs by itself on a device.
bool stands_alone(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::Fusion:
    case Opcode::CustomCall:
    case Opcode::Dot:
    case Opcode::Convolution:
    case Opcode::Sort:
    case Opcode::Scatter:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter:
    case Opcode::Gather:
    case Opcode::Fft:
    case Opcode::Cholesky:
    case Opcode::TriangularSolve:
      return !m.has_side_effect(i);
    default:
      return false;
  }
}

std::vector<Isolated> distinct(const Module& m) {
  Fingerprints prints(m);
  std::map<uint64_t, size_t> known;
  std::vector<Isolated> list;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (!stands_alone(m, i)) continue;
      uint64_t h = prints.instruction(i);
      for (InstId o : m.operands(i)) h = hash_combine(h, hash_bytes(m.u().shape_text(m.shape_id(o))));
      auto [at, fresh] = known.emplace(h, list.size());
      if (fresh)
        list.push_back({i, 1, "", true, "", 0, 0});
      else
        ++list[at->second].times;
    }
  return list;
}

// What all of them are run with.
struct Alone {
  const IsolateArgs& a;
  const InputOptions& inputs;
  const ExecutorInfo &executor, &reference;
  Values& values;
  OutputFolder* out;  // null: nothing is kept
};

void run_alone(const Module& m, Isolated& one, const Alone& r) {
  std::string name(m.inst_name(one.inst));
  try {
    std::vector<InstId> cuts(m.operands(one.inst).begin(), m.operands(one.inst).end());
    std::erase_if(cuts, [&](InstId o) { return m.op(o) == Opcode::Constant; });
    auto part = extracted(m, {one.inst}, cuts);
    std::vector<VerifyError> errors = verify_module(*part, 1);
    if (!errors.empty()) fail(FailureKind::kUnsupported, "it does not make a module by itself: {}", errors[0].message);
    for (InstId p : part->comp(part->entry()).params)
      if (!r.values.find((*part)[p].name))
        fail(FailureKind::kUnsupported,
             "its operand {} has no value: the run did not come to it, or 4 GiB of values were kept before it",
             part->inst_name(p));
    InputOptions own = r.inputs;
    own.file.clear(), own.snapshot.clear();
    Session alone(*part, own);
    alone.set_arguments(r.values.arguments(*part, r.a.seed, r.inputs.positive));
    if (r.out) {
      const std::string file = name_in_files(name);
      r.out->write(file + ".hlo", lossless_text(*part));
      save_arrays(m.u(), r.out->temporary() + "/" + file + ".npz", alone.arguments(), {});
    }
    Execution times;
    Value got = alone.run(*part, r.executor, eval_options(r.a), 1, false, &times);
    one.seconds = times.run_s;
    Value high = alone.run(*part, *find_executor("evaluator"), eval_options(r.a), 1, true);
    Value expected = alone.run(*part, r.reference, eval_options(r.a), 1, false);
    Comparison c = compare_results(m.u(), got, expected, r.a.tolerance, &high);
    one.equal = c.equal;
    if (!c.equal) one.why = c.first_difference()->why;
    one.worst = error_against(m.u(), got, high);
  } catch (const Failure& e) {
    one.problem = e.what();
  }
}

int show(const IsolateArgs& a, const Module& m, const std::vector<Isolated>& list) {
  const Universe& u = m.u();
  size_t bad = 0, unknown = 0, all = 0;
  Json json = Json::array();
  if (!a.json) fmt::print("{:<40} {:>6} {:>12} {:>10}  {}\n", "instruction", "times", "worst error", "seconds", "");
  for (const Isolated& one : list) {
    std::string name(m.inst_name(one.inst));
    all += one.times, bad += !one.equal, unknown += !one.problem.empty();
    Json j{{"name", name},
           {"opcode", op_text(m.op(one.inst))},
           {"shape", u.shape_text(m.shape_id(one.inst))},
           {"times", one.times},
           {"equal", one.equal && one.problem.empty()},
           {"worst_error", one.problem.empty() ? finite_or_null(one.worst) : Json()},
           {"seconds", one.problem.empty() ? Json(one.seconds) : Json()},
           {"why", one.why},
           {"problem", one.problem}};
    json.push_back(j);
    if (a.json) continue;
    if (!one.problem.empty())
      fmt::print("{:<40} {:>6} {:>12} {:>10}  {}\n", name, one.times, "", "", one.problem);
    else
      fmt::print("{:<40} {:>6} {:>12.3g} {:>10.6f}  {}\n", name, one.times, one.worst, one.seconds,
                 one.equal ? "equal" : "different: " + one.why);
  }
  if (a.json)
    print_json(
        {{"equal", bad == 0}, {"instructions", all}, {"different", bad}, {"not_run", unknown}, {"kernels", json}});
  else
    fmt::print("{} of {} instructions are distinct; {} differ, {} could not be run\n", list.size(), all, bad, unknown);
  return bad ? kNo : unknown ? kBad : kYes;
}

}  // namespace

int cmd_isolate(const IsolateArgs& a) {
  const ExecutorInfo& executor = checked_executor(a);
  const ExecutorInfo* reference = a.reference.empty() ? nullptr : find_executor(a.reference);
  if (!a.reference.empty() && !reference) fail(FailureKind::kUsage, "unknown backend '{}'", a.reference);
  Loaded loaded;
  auto m = load_verified(a.file, !a.no_verify, &loaded);
  InputOptions inputs = input_options(a);
  inputs.snapshot = loaded.arguments;
  settle_elided(*m, inputs);
  check_supported(*m);
  std::vector<Isolated> list = distinct(*m);
  if (list.empty() && a.json)
    print_json({{"equal", Json()}, {"instructions", 0}, {"different", 0}, {"not_run", 0}, {"kernels", Json::array()}});
  if (list.empty())
    fail(FailureKind::kUsage, "{} has no fusion and nothing else that runs as a separate kernel", a.file);
  Session session(*m, inputs);
  Values values(*m, session, eval_options(a));
  std::unique_ptr<OutputFolder> out;
  if (!a.out.empty()) out = std::make_unique<OutputFolder>(a.out, a.force, "isolate", read_by(a));
  for (Isolated& one : list) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    run_alone(*m, one, {a, inputs, executor, reference ? *reference : *find_executor("evaluator"), values, out.get()});
  }
  if (out) out->commit();
  auto rank = [](const Isolated& x) { return !x.problem.empty() ? 2 : x.equal ? 1 : 0; };
  std::stable_sort(list.begin(), list.end(), [&](const Isolated& x, const Isolated& y) {
    return std::tuple(rank(x), -x.worst) < std::tuple(rank(y), -y.worst);
  });
  return show(a, *m, list);
}

}  // namespace hlo
