// reduce --sizes: the same program with small arrays.
#include <filesystem>

#include "ir/print/print.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/cli/smaller_words.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

SmallerOptions smaller_options(const ReduceArgs& a) {
  SmallerOptions o;
  o.keep = a.keep, o.stop = interrupted;
  if (a.work > 0) o.most_work = a.work;
  return o;
}

// What a plan tells, as `--json` has it.
Json plan_json(const SmallerPlan& plan, const std::string& module, size_t stages) {
  return {{"module", module},
          {"stages", stages},
          {"sizes", sizes_json(plan)},
          {"within", plan.within},
          {"flops_before", plan.before.flops},
          {"flops", plan.after.flops},
          {"bytes_before", plan.before.bytes},
          {"bytes", plan.after.bytes},
          {"out", Json()},
          {"text", Json()}};
}

void print_plan(const SmallerPlan& plan) {
  for (const SmallerPlan::Size& s : plan.sizes) {
    if (s.before != s.after)
      fmt::print("{:>12} → {}\n", s.before, s.after);
    else
      fmt::print("{:>12} stays: {}{}{}\n", s.before, s.where, s.where.empty() ? "" : " ", s.why);
  }
  fmt::print("{:.3g} → {:.3g} floating-point operations, {:.3g} → {:.3g} bytes read and written{}\n", plan.before.flops,
             plan.after.flops, plan.before.bytes, plan.after.bytes, plan.within ? "" : ": more than it was to take");
}

int tell_nothing(const ReduceArgs& a, const Json& j, const SmallerPlan& plan) {
  if (a.json)
    print_json(j);
  else
    print_plan(plan), fmt::print("no size can be cut: nothing was written\n");
  return kNo;
}

int smaller_module(const ReduceArgs& a) {
  const std::string out = a.out.empty() ? fs::path(a.file).stem().string() + ".smaller.hlo" : a.out;
  if (out != "-") check_output_file(out, a.force, read_by(a));
  const std::unique_ptr<Module> m = load_verified(a.file, !a.no_verify);
  const SmallerStages one{1, [&](size_t) { return m->clone(); }, [](size_t) { return std::string(); }};
  const SmallerPlan plan = plan_smaller(one, smaller_options(a));
  Json j = plan_json(plan, m->name(), 1);
  if (!plan.choice.cuts_anything()) return tell_nothing(a, j, plan);
  const std::string text = lossless_text(*with_sizes(*m, plan.choice));
  j["out"] = out;
  if (a.json && out == "-") j["text"] = text;
  if (!a.json || out != "-") write_file(out, text);
  if (a.json) return print_json(j), kYes;
  if (out != "-") print_plan(plan), fmt::print("see {}\n", out);
  return kYes;
}

// All stages of a module of a folder, under the names that they have there.
int smaller_stages(const ReduceArgs& a) {
  const Recording r = select_module(a.file);
  std::string folder = a.out.empty() ? fs::path(r.folder).filename().string() + ".smaller" : a.out;
  OutputFolder out(folder, a.force, "reduce", read_by(a));
  std::vector<std::string> files;
  for (const StageRow& s : r.rows)
    if (s.file.ends_with(".txt") || s.file.ends_with(".hlo")) files.push_back(s.file);
  if (files.empty()) fail(FailureKind::kUsage, "{} has no stages as texts", a.file);
  Progress progress("making smaller " + a.file);
  const SmallerStages stages{files.size(),
                             [&](size_t k) { return load_verified(confined_path(r.folder, files[k]), !a.no_verify); },
                             [&](size_t k) { return files[k]; }};
  const SmallerPlan plan = plan_smaller(stages, smaller_options(a));
  Json j = plan_json(plan, r.module_name, files.size());
  if (!plan.choice.cuts_anything()) return tell_nothing(a, j, plan);
  for (size_t k = 0; k < files.size(); ++k) {
    std::unique_ptr<Module> m;
    try {
      m = stages.load(k);
    } catch (const Failure& e) {
      complain(fmt::format("note: {} is left out: {}", files[k], e.what()));
      continue;
    }
    out.write(files[k], lossless_text(*with_sizes(*m, plan.choice)));
    if (interrupted()) fail(FailureKind::kUsage, "interrupted; nothing was written");
  }
  out.commit();
  j["out"] = folder;
  if (a.json) return print_json(j), kYes;
  print_plan(plan);
  fmt::print("{} stages in {}\n", files.size(), folder);
  return kYes;
}

}  // namespace

Json sizes_json(const SmallerPlan& plan) {
  Json all = Json::array();
  for (const SmallerPlan::Size& s : plan.sizes)
    all.push_back({{"before", s.before},
                   {"after", s.after},
                   {"shapes", s.arrays},
                   {"where", s.where.empty() ? Json() : Json(s.where)},
                   {"why", s.why.empty() ? Json() : Json(s.why)}});
  return all;
}

std::string sizes_in_words(const Json& sizes) {
  constexpr size_t kMost = 6;
  std::string out;
  size_t cut = 0;
  for (const Json& s : sizes) {
    const auto before = s["before"].get<int64_t>(), after = s["after"].get<int64_t>();
    if (before == after) continue;
    if (++cut <= kMost) out += fmt::format("{}{} → {}", cut > 1 ? ", " : "", before, after);
  }
  return cut > kMost ? fmt::format("{} and {} more", out, cut - kMost) : out;
}

std::string guessed_in_words(const SmallerPlan& plan) {
  return fmt::format("; guessed: tested on a smaller program ({}), and not confirmed at full size",
                     sizes_in_words(sizes_json(plan)));
}

std::string confirmed_in_words(const Json& sizes) {
  return fmt::format("; found by a smaller program ({}), and seen at full size, too, at chosen elements",
                     sizes_in_words(sizes));
}

std::string refuted_in_words(const Json& refuted) {
  std::string out;
  for (const Json& label : refuted) out += (out.empty() ? "" : ", ") + label.get<std::string>();
  return out.empty() ? out
                     : fmt::format(
                           ". With small arrays {} differ{} from what is before, at full size, at chosen "
                           "elements, nothing does: no fault",
                           out, refuted.size() == 1 ? "s" : "");
}

std::string tested_in_words(const SmallerPlan& plan) {
  return fmt::format("tested on a smaller program ({}): ", sizes_in_words(sizes_json(plan)));
}

std::optional<SmallerPlan> smaller_plan(const BisectArgs& a, const std::vector<std::string>& paths, bool roomy) {
  Progress progress("making smaller " + a.file);
  SmallerOptions o;
  o.stop = interrupted, o.roomy = roomy;
  SmallerPlan plan = plan_smaller({paths.size(), [&](size_t k) { return load_verified(paths[k], !a.no_verify); },
                                   [&](size_t k) { return fs::path(paths[k]).filename().string(); }},
                                  o);
  if (!plan.choice.cuts_anything()) return std::nullopt;
  return plan;
}

std::optional<SmallerPlan> plan_of_stages(const BisectArgs& a, const std::vector<std::string>& paths) {
  if (!a.smaller) return std::nullopt;
  std::optional<SmallerPlan> plan = smaller_plan(a, paths, false);
  if (!plan) complain("note: no size of the program can be cut: its stages are compared as they are");
  return plan;
}

int cmd_smaller(const ReduceArgs& a) {
  if (!a.by_running() || a.slower > 0 || a.nan || !a.passes.empty() || !a.pipeline.empty())
    fail(FailureKind::kUsage, "--sizes makes a smaller program and asks nothing of it: no --check, --passes, --nan …");
  return names_modules(a.file) ? smaller_stages(a) : smaller_module(a);
}

}  // namespace hlo
