// The command line. Nothing else opens files.
#ifdef __linux__
#include <malloc.h>
#endif
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "gpu_exec/executor.h"
#include "ir/base/source.h"
#include "ir/buffer.h"
#include "ir/eval/evaluator.h"
#include "ir/print.h"
#include "ir/verifier.h"
#include "parser/parser.h"
#include "parser/proto_reader.h"
#include "passes/pipelines.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/cli/other_files.h"
#include "replay/files.h"
#include "replay/made_order.h"
#include "replay/npz.h"
#include "replay/progress.h"
#include "replay/recording.h"
#include "replay/replayer.h"
#include "replay/terminal.h"

namespace hlo {

std::unique_ptr<Module> load_verified(const std::string& spec, bool verify, Loaded* rest, const LoadOptions& options) {
  Loaded all = load_all(spec, options);
  auto m = std::move(all.module);
  if (rest) *rest = std::move(all);
  std::vector<VerifyError> errors = verify ? verify_module(*m) : std::vector<VerifyError>{};
  if (errors.empty()) return m;
  std::string text;
  for (const VerifyError& e : errors) text += fmt::format("{}: {} [{}]\n", spec, e.message, e.rule);
  fail(FailureKind::kInvalid, "{}the module does not verify; --no-verify goes on all the same", text);
}

namespace {
namespace fs = std::filesystem;

// --- commands ---

struct ReplayArgs {
  std::string file, out, pipeline = "xla-2019", formats, only, disabled, from, stop_after;
  std::vector<std::string> fuel;
  std::string sm = "sm_90a";
  bool force = false, json = false, force_replay = false, no_verify = false;
};

void stage_table(const Recording& r, bool all) {
  fmt::print("{:>5}  {:<52} {:>7}  {:>13}  {:>7} {:>7} {:>7}  {:>10}\n", "stage", "pass", "changed", "instructions",
             "new", "gone", "other", "time");
  std::string pipeline;
  for (const StageRow& row : r.rows) {
    if (row.kind == StageRow::kPipelineStart) continue;
    if (!all && !row.changed && row.implemented && !row.disabled && row.kind == StageRow::kPass) continue;
    if (row.pipeline != pipeline && !row.pipeline.empty()) {
      pipeline = row.pipeline;
      fmt::print("       {}\n", printable(pipeline));
    }
    std::string time =
        row.microseconds < 0 ? "" : fmt::format("{:.2f} ms", static_cast<double>(row.microseconds) / 1000);
    std::string changed = !row.implemented               ? "not implemented"
                          : row.disabled                 ? "disabled"
                          : row.kind == StageRow::kInput ? ""
                          : row.changed                  ? "yes"
                                                         : "no";
    fmt::print("{:>5}  {:<52} {:>7}  {:>5} → {:<5}  {:>7} {:>7} {:>7}  {:>10}\n",
               row.number >= 0 && row.changed ? fmt::format("{:04}", row.number) : "",
               "  " + printable(row.pass.empty() ? row.name() : row.pass), changed, row.before, row.after,
               row.added ? std::to_string(row.added) : "", row.removed ? std::to_string(row.removed) : "",
               row.modified ? std::to_string(row.modified) : "", time);
  }
}

int cmd_replay(const ReplayArgs& a) {
  std::string folder = a.out;
  ReplayOptions options;
  options.pipeline = a.pipeline;
  if (!find_pipeline(a.pipeline)) {
    std::string known;
    for (const std::string& p : pipeline_names()) known += (known.empty() ? "" : ", ") + p;
    fail(FailureKind::kUsage, "unknown pipeline '{}'; there are {}", a.pipeline, known);
  }
  if (!a.formats.empty()) options.formats = words(a.formats);
  for (const std::string& f : options.formats) {
    if (!known_format(f)) fail(FailureKind::kUsage, "unknown format '{}'", f);
    if (!format_available(f)) fail(FailureKind::kUnsupported, "format '{}' is not implemented", f);
  }
  options.passes.only = words(a.only), options.passes.disabled = words(a.disabled);
  for (const auto& set : {options.passes.only, options.passes.disabled})
    for (const std::string& name : set) pass_or_fail(name);
  for (const std::string& f : a.fuel) {
    size_t eq = f.find('=');
    if (eq == std::string::npos || eq + 1 == f.size() || f.find_first_not_of("0123456789", eq + 1) != std::string::npos)
      fail(FailureKind::kUsage, "--fuel is written PASS=N, not '{}'", f);
    options.passes.fuel[std::string(pass_or_fail(f.substr(0, eq)).name)] = atoll(f.c_str() + eq + 1);
  }
  options.passes.verify = !a.no_verify;
  options.stop_after = a.stop_after, options.sm = a.sm;
  if (!a.from.empty()) pass_or_fail(a.from);
  options.passes.from = a.from;
  auto m = load_verified(a.file, !a.no_verify);
  std::string why = already_optimised(*m);
  if (!why.empty() && !a.force_replay) {
    fail(FailureKind::kUsage,
         "{} is already optimised: {}. Look at it with `hlo-replay print`, `hlo-replay convert … .svg` or `hlo-replay "
         "exec`, or replay all the same with --force-replay",
         a.file, why);
  }
  if (folder.empty()) folder = fs::path(a.file == "-" ? "stdin" : a.file).stem().string() + ".replay";
  OutputFolder out(folder, a.force);
  if (!a.json)
    fmt::print("pipeline {}: {} passes, module {} of {} instructions\n", a.pipeline,
               count_passes(*find_pipeline(a.pipeline)), m->name, m->instruction_count());
  std::fflush(stdout);
  Recording r = [&] {
    Progress progress("replaying " + a.file);
    options.progress = [&](size_t done, size_t all, const std::string& what) { progress.at(done, all, what); };
    return replay(*m, options, out);
  }();
  out.commit();
  size_t passes = 0, stages = 0;
  std::set<std::string> missing;
  for (const StageRow& row : r.rows) {
    passes += row.kind == StageRow::kPass;
    stages += row.changed;
    if (!row.implemented && !row.disabled) missing.insert(row.pass);
  }
  if (a.json) {
    print_json(Json::parse(recording_json(r)));
    return kYes;
  }
  stage_table(r, true);
  fmt::print("{} pass runs, {} stages written to {}", passes, stages + 1, folder);
  if (options.formats.contains("html") || options.formats.contains("page")) fmt::print("; open {}/index.html", folder);
  fmt::print("\n");
  for (const std::string& p : r.problems) fmt::print(stderr, "warning: {}\n", p);
  if (!missing.empty()) {
    std::string list;
    for (const std::string& n : missing) list += (list.empty() ? "" : ", ") + n;
    fmt::print(stderr, "warning: {} passes of this pipeline are not implemented and did nothing: {}\n", missing.size(),
               list);
  }
  return kYes;
}

}  // namespace

int cmd_folder(const std::string& folder, bool json) {
  std::vector<Recording> all;
  try {
    all = open_folder(folder);
  } catch (const Failure&) {
    if (open_graph_folder(folder, json)) return kYes;
    throw;
  }
  if (json) {
    Json out = Json::array();
    for (const Recording& r : all) out.push_back(Json::parse(recording_json(r)));
    print_json({{"modules", out}, {"graphs", Json::array()}});
    return kYes;
  }
  for (const Recording& r : all) {
    size_t stages = 0, runs = 0;
    for (const StageRow& row : r.rows) stages += !row.file.empty(), runs += row.kind == StageRow::kPass;
    fmt::print("module {:04} {} ({}): {} stages, {} pass runs\n", r.module_number, printable(r.module_name),
               r.source == "xla" ? "dumped by XLA" : "replayed through " + printable(r.pipeline), stages, runs);
    stage_table(r, r.source != "xla");
    std::vector<const StageRow*> slow;
    for (const StageRow& row : r.rows)
      if (row.microseconds > 0 && row.kind == StageRow::kPass) slow.push_back(&row);
    std::stable_sort(slow.begin(), slow.end(), [](auto* x, auto* y) { return x->microseconds > y->microseconds; });
    if (!slow.empty()) fmt::print("slowest passes:");
    for (size_t i = 0; i < slow.size() && i < 5; ++i)
      fmt::print("{} {} {:.1f} ms", i ? "," : "", printable(slow[i]->pass),
                 static_cast<double>(slow[i]->microseconds) / 1000);
    if (!slow.empty()) fmt::print("\n");
    for (const std::string& f : r.other_files) fmt::print("also: {}\n", printable(f));
    for (const std::string& f : r.missing) fmt::print("missing: {}\n", printable(f));
    for (const std::string& f : r.problems) fmt::print("problem: {}\n", printable(f));
  }
  const Recording& first = all[0];
  const StageRow* big = nullptr;
  for (const StageRow& row : first.rows)
    if (row.number > 0 && row.changed &&
        (!big || row.added + row.removed + row.modified > big->added + big->removed + big->modified))
      big = &row;
  if (big) {
    fmt::print("next: hlo-replay print {}:{:04}\n", folder, big->number);
    fmt::print("      hlo-replay exec {}:before_optimizations --out=OUT.npz\n      hlo-replay view {}\n", folder,
               folder);
  }
  return kYes;
}

namespace {

struct OptArgs {
  std::string file, passes, call_site, style = "default";
  bool list = false, json = false, no_verify = false;
  std::vector<std::string> fuel;
};

int list_passes(bool json) {
  Json out = Json::array();
  for (const PassInfo& p : all_passes()) {
    if (json) {
      out.push_back({{"name", p.name},
                     {"aliases", p.aliases},
                     {"summary", p.summary},
                     {"options", p.options},
                     {"implemented", p.run != nullptr}});
      continue;
    }
    fmt::print("{:<36} {}{}{}{}\n", p.name, p.summary, p.options.empty() ? "" : fmt::format(" {{{}}}", p.options),
               p.aliases.empty() ? "" : fmt::format(" (also {})", p.aliases), p.run ? "" : " [not implemented]");
  }
  if (json) print_json({{"passes", out}});
  return kYes;
}

int cmd_opt(const OptArgs& a) {
  if (a.list) return list_passes(a.json);
  if (a.file.empty()) fail(FailureKind::kUsage, "opt needs a FILE");
  std::vector<WantedPass> list = wanted_passes(a.passes);
  PrintOptions style;
  if (!PrintOptions::by_name(a.style, &style)) fail(FailureKind::kUsage, "unknown style '{}'", a.style);
  if (a.style == "default") style.large_constants = style.stable_order = true, style.lossless = true;
  auto m = load_verified(a.file, !a.no_verify);
  if (!a.call_site.empty()) put_in_order_made(*m);
  PipelineOptions options;
  options.verify = !a.no_verify;
  Json ran = Json::array();
  bool changed = false;
  for (const WantedPass& w : list) {
    const PassInfo& p = *w.pass;
    PassContext context;
    context.keep_notes = a.json;
    if (!a.call_site.empty()) context.options = call_site_options(p.name, a.call_site);
    for (const auto& [key, value] : w.options) context.options[key] = value;
    for (const std::string& f : a.fuel) {
      size_t eq = f.find('=');
      if (eq == std::string::npos) fail(FailureKind::kUsage, "--fuel is written PASS=N, not '{}'", f);
      if (&pass_or_fail(f.substr(0, eq)) == &p) context.fuel = atoll(f.c_str() + eq + 1);
    }
    PassEvent event;
    run_pass(*m, p, context, options, &event);
    if (a.json) {
      Json notes = Json::array();
      for (const Note& n : event.notes)
        notes.push_back({{"rule", n.rule}, {"instructions", n.names}, {"text", n.text}});
      ran.push_back({{"pass", p.name},
                     {"changed", event.changed},
                     {"rewrites", event.rewrites},
                     {"microseconds", event.microseconds},
                     {"notes", notes}});
      changed |= event.changed;
    }
  }
  if (a.json)
    print_json({{"module", m->name}, {"changed", changed}, {"instructions", m->instruction_count()}, {"passes", ran}});
  else
    std::cout << print_module(*m, style);
  return kYes;
}

struct PrintArgs {
  std::string file, style = "default", dialect;
  bool no_metadata = false, compact_gte = false, color = false, permissive = false, large = false;
};

int cmd_print(const PrintArgs& a) {
  PrintOptions style;
  if (!PrintOptions::by_name(a.style, &style))
    fail(FailureKind::kUsage, "unknown style '{}'; there are default, long, short, canonical and fingerprint", a.style);
  if (a.no_metadata) style.metadata = false;
  if (a.large) style.large_constants = true;
  style.compact_gte = a.compact_gte;
  style.color = a.color;
  if (a.dialect == "2019") {
    style.dialect_2019 = style.operand_shapes = style.large_constants = true;
    style.lossless = true;
    style.stack_tables = style.index_comments = false;
  } else if (!a.dialect.empty()) {
    fail(FailureKind::kUsage, "unknown dialect '{}'; there is 2019", a.dialect);
  }
  Input in = read_input(a.file);
  size_t count = read_parts(&in);
  for (size_t i = 0; i < count; ++i) {
    if (in.chosen && in.chosen != i + 1) continue;
    auto m = std::move(load_part(in, i, {.permissive = a.permissive, .universe = nullptr}).module);
    if (i && !in.chosen) std::cout << "// -----\n\n";
    std::cout << print_module(*m, style);
  }
  return kYes;
}

int cmd_verify(const std::string& file, bool json, const std::string& layouts, bool mixed) {
  if (layouts != "auto" && layouts != "binding" && layouts != "free")
    fail(FailureKind::kUsage, "--layouts is auto, binding or free, not '{}'", layouts);
  Layouts how = layouts == "auto" ? Layouts::kAuto : layouts == "free" ? Layouts::kFree : Layouts::kBinding;
  Precision precision = mixed ? Precision::kMixed : Precision::kAuto;
  Input in = read_input(file);
  size_t count = read_parts(&in);
  Json list = Json::array();
  size_t instructions = 0, computations = 0;
  try {
    for (size_t i = 0; i < count; ++i) {
      if (in.chosen && in.chosen != i + 1) continue;
      auto m = std::move(load_part(in, i).module);
      instructions += m->instruction_count(), computations += m->computations().size();
      for (const VerifyError& e : verify_module(*m, 20, how, Moment::kSettled, precision)) {
        list.push_back({{"rule", e.rule}, {"line", Json()}, {"column", Json()}, {"message", e.message}, {"hint", ""}});
        if (!json) fmt::print(stderr, "{}: error: {} [{}]\n", file, e.message, e.rule);
      }
    }
  } catch (const SyntaxFailure& e) {
    if (!json) throw;
    for (const auto& entry : e.entries())
      list.push_back({{"rule", "syntax"},
                      {"line", entry.line},
                      {"column", entry.column},
                      {"message", entry.message},
                      {"hint", entry.hint}});
    print_json({{"verified", false}, {"instructions", Json()}, {"computations", Json()}, {"errors", list}});
    return kBad;
  }
  if (json)
    print_json(
        {{"verified", list.empty()}, {"instructions", instructions}, {"computations", computations}, {"errors", list}});
  else if (list.empty())
    fmt::print("{}: verified, {} instructions in {} computations\n", file, instructions, computations);
  return list.empty() ? kYes : kNo;
}

// The text that `fmt` gives a file: its leading comment, then each module without loss.
std::string formatted(const std::string& file) {
  Input in = read_input(file);
  size_t count = read_parts(&in);
  if (in.log) fail(FailureKind::kUnsupported, "{}: text with log prefixes is not formatted", file);
  // The comment lines that the file begins with stay; others would be lost.
  size_t head = 0;
  while (head < in.text.size()) {
    size_t end = std::min(in.text.find('\n', head), in.text.size());
    std::string_view line = std::string_view(in.text).substr(head, end - head);
    size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos &&
        (line.substr(first, 2) != "//" || line.substr(first).starts_with("// -----")))
      break;
    head = std::min(end + 1, in.text.size());
  }
  std::string_view rest = std::string_view(in.text).substr(head);
  for (size_t at = 0; at < rest.size(); ++at) {
    if (rest[at] == '"' || rest[at] == '\'') {
      size_t stop = at + 1;
      while (stop < rest.size() && rest[stop] != rest[at]) stop += rest[stop] == '\\' ? 2 : 1;
      at = stop;
    } else if (rest.substr(at, 2) == "//" && !rest.substr(at).starts_with("// -----")) {
      fail(FailureKind::kUnsupported, "{}:{}: a comment would be lost", file, place_of(in.text, head + at).line);
    } else if (rest.substr(at, 2) == "/*") {
      size_t stop = rest.find("*/", at);
      if (!rest.substr(at).starts_with("/*index=") && !rest.substr(at).starts_with("/*i"))
        fail(FailureKind::kUnsupported, "{}:{}: a comment would be lost", file, place_of(in.text, head + at).line);
      at = stop == std::string_view::npos ? rest.size() : stop + 1;
    }
  }
  std::string out = in.text.substr(0, head);
  for (size_t i = 0; i < count; ++i) {
    if (i) out += "// -----\n\n";
    out += lossless_text(*load_part(in, i).module);
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

int cmd_fmt(const std::vector<std::string>& files, bool check, bool write, bool json) {
  if (json && !check && !write) fail(FailureKind::kUsage, "--json goes with --check or --write");
  Json list = Json::array();
  if (check == write && check) fail(FailureKind::kUsage, "--check and --write exclude each other");
  int code = kYes;
  for (const std::string& file : files) {
    std::string text = formatted(file);
    if (check || write) {
      const bool same = text == read_file(file);
      list.push_back({{"file", file}, {"formatted", same}, {"written", write && !same}});
      if (same) continue;
      if (write) write_file(file, text);
      if (!json) fmt::print("{} {}\n", file, write ? "formatted" : "is not formatted");
      if (check) code = kNo;
    } else {
      std::cout << text;
    }
  }
  if (json) print_json({{"formatted", code == kYes}, {"files", list}});
  return code;
}

int cmd_stats(const std::string& file, bool json, bool bench) {
  Input in = read_input(file);
  auto m = load(file);
  const Universe& u = m->u();
  std::map<std::string, size_t> ops, types, calls;
  int64_t parameters = 0, literals = 0;
  size_t elided = 0, collectives = 0;
  for (CompId c : m->computations())
    for (InstId i : m->comp(c).order) {
      if (!m->alive(i)) continue;
      ++ops[std::string(op_text(m->op(i)))];
      ++types[std::string(type_name(m->shape(i).type))];
      if (m->op(i) == Opcode::Parameter && c == m->entry()) parameters += u.leaf_bytes(m->shape_id(i));
      if (m->op(i) == Opcode::Constant) literals += u.leaf_bytes(m->shape_id(i)), elided += m->literal(i).elided;
      collectives += op_info(m->op(i)).cls == OpClass::Collective;
      if (m->op(i) == Opcode::CustomCall) ++calls[std::string(u.text(m->attrs(i).text(Attr::custom_call_target)))];
    }
  Json out{{"module", m->name},
           {"computations", m->computations().size()},
           {"instructions", m->instruction_count()},
           {"parameter_bytes", parameters},
           {"literal_bytes", literals},
           {"elided_constants", elided},
           {"collectives", collectives},
           {"opcodes", ops},
           {"types", types},
           {"custom_calls", calls},
           {"distinct_shapes", u.shape_count()},
           {"distinct_attributes", u.attrs_count()},
           {"parse_ms", Json()},
           {"print_ms", Json()}};
  if (bench) {
    double parse = 1e300, print = 1e300;
    // A fifth of a second to warm caches, heap and clock, then the best of five.
    auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < 5;) {
      auto t0 = std::chrono::steady_clock::now();
      ParseOptions options;
      options.file = in.label;
      auto again = parse_module(in.text, std::make_shared<Universe>(), options);
      auto t1 = std::chrono::steady_clock::now();
      std::string text = print_module(*again);
      auto t2 = std::chrono::steady_clock::now();
      if (t2 - begin < std::chrono::milliseconds(200)) continue;
      ++k;
      parse = std::min(parse, std::chrono::duration<double>(t1 - t0).count() * 1e3),
      print = std::min(print, std::chrono::duration<double>(t2 - t1).count() * 1e3);
    }
    out["parse_ms"] = parse, out["print_ms"] = print;
  }
  if (json) {
    print_json(out);
    return kYes;
  }
  fmt::print("module {}: {} instructions in {} computations\n", m->name, m->instruction_count(),
             m->computations().size());
  fmt::print("parameters {}, literals {}{}\n", human_bytes(parameters), human_bytes(literals),
             elided ? fmt::format(", {} constants elided", elided) : "");
  std::vector<std::pair<std::string, size_t>> sorted(ops.begin(), ops.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  for (const auto& [name, n] : sorted) fmt::print("  {:>7} {}\n", n, name);
  for (const auto& [name, n] : calls) fmt::print("custom-call {} × {}\n", name, n);
  if (bench)
    fmt::print("parse_ms {:.3f}  print_ms {:.3f}\n", out["parse_ms"].get<double>(), out["print_ms"].get<double>());
  return kYes;
}

const CLI::App* named_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* c : app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; })) return c;
  return nullptr;
}

// "did you mean 'exec'?" of a first word that is no command. Empty where it may be meant for a file: `x.hlo`, `DIR:7`.
std::string nearest_command(const CLI::App& app, const std::string& word) {
  const bool plain = !word.empty() && std::isalpha(static_cast<unsigned char>(word[0])) &&
                     word.find_first_of(".:/@\\") == std::string::npos;
  std::pair<int, bool> best = {word.size() < 3 ? 2 : 4, false};  // so many edits are too many
  std::string nearest;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (const std::pair d(edit_distance(sub->get_name(), word), sub->get_name()[0] != word[0]); d < best)
      best = d, nearest = sub->get_name();
  if (!plain && best.first > 2) return "";
  return nearest.empty() ? "see hlo-replay --help" : fmt::format("did you mean '{}'?", nearest);
}

// "; did you mean '--json'?" for the first flag that its command does not have. `args`: the command last, as CLI11
// takes them.
std::string nearest_option(const CLI::App& app, const std::vector<std::string>& args) {
  const CLI::App* command = args.empty() ? nullptr : named_command(app, args.back());
  if (!command) return "";
  for (auto arg = args.rbegin(); arg != args.rend(); ++arg) {
    std::string name = arg->substr(0, arg->find('='));
    if (!name.starts_with("--") || name == "--") continue;
    std::string nearest;
    int distance = 3;
    bool known = false;
    for (const CLI::Option* o : command->get_options())
      for (const std::string& long_name : o->get_lnames()) {
        known |= "--" + long_name == name;
        if (int d = edit_distance(long_name, name.substr(2)); d < distance) distance = d, nearest = long_name;
      }
    if (!known) return nearest.empty() ? "" : fmt::format("; did you mean '--{}'?", nearest);
  }
  return "";
}

int run(int argc, char** argv) {
  CLI::App app{"hlo-replay: reads HLO of any age, replays XLA's passes over it, runs it, and shows every stage"};
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", std::string("hlo-replay ") + kVersion);
  app.footer(
      "Examples:\n"
      "  hlo-replay testdata/mobilenet_v1.hlo -o out       every pass over the module, every stage in out/\n"
      "  hlo-replay DUMPDIR                                what XLA's dump folder holds\n"
      "  hlo-replay opt --passes=algsimp,dce model.hlo     the module after these passes\n"
      "  hlo-replay exec out:0007 --seed=1 --out=o.npz     run a stage\n"
      "FILE is a path, - for standard input, or a stage of a recording: DIR:NNNN or DIR:stage-name.\n"
      "Exit codes: 0 fine or same, 1 the answer is no, 2 usage, unreadable or unsupported.");
  int code = kYes;
  auto command = [&](const char* name, const char* help, const char* example) {
    CLI::App* c = app.add_subcommand(name, help);
    c->footer(std::string("Example:\n  ") + example);
    return c;
  };

  ReplayArgs replay_args;
  CLI::App* c = command("replay", "run a pipeline over a module and write every stage",
                        "hlo-replay replay testdata/mobilenet_v1.hlo -o out --formats=text,html");
  c->add_option("FILE", replay_args.file, "module or stage")->required();
  c->add_option("-o,--out", replay_args.out, "folder to make (NAME.replay)");
  c->add_option("--pipeline", replay_args.pipeline, "xla-2019 or xla-gpu");
  c->add_option(
      "--formats", replay_args.formats,
      "text,dot,page,buffers,thunks (these if nothing is said), drawn: svg,png,html, and json,proto,ll,ptx,sass");
  c->add_option("--sm", replay_args.sm, "architecture for ll, ptx and sass: sm_75 to sm_90a");
  c->add_option("--passes-only", replay_args.only, "run only these passes");
  c->add_option("--disable-passes", replay_args.disabled, "leave these out");
  c->add_option("--from", replay_args.from, "leave out what comes before the first run of this pass");
  c->add_option("--stop-after", replay_args.stop_after, "number or name of a stage");
  c->add_option("--fuel", replay_args.fuel, "PASS=N: at most N rewrites by that pass");
  c->add_flag("--force", replay_args.force, "replace an existing folder");
  c->add_flag("--force-replay", replay_args.force_replay, "replay a module that is optimised already");
  c->add_flag("--no-verify", replay_args.no_verify, kNoVerifyHelp);
  c->add_flag("--json", replay_args.json, "the recording on standard output");
  c->callback([&] { code = cmd_replay(replay_args); });

  std::string folder;
  bool json = false;
  c = command("open", "what a recording or XLA dump folder holds (also: hlo-replay DIR)",
              "hlo-replay open /tmp/xla_dump");
  c->add_option("DIR", folder)->required();
  c->add_flag("--json", json);
  c->callback([&] { code = cmd_folder(folder, json); });

  OptArgs opt_args;
  c = command("opt", "run passes and print the module",
              "hlo-replay opt --passes='algsimp{layout_sensitive=true},dce' model.hlo");
  c->add_option("FILE", opt_args.file);
  c->add_option("--passes", opt_args.passes, "a,b{option=value}");
  c->add_option("--call-site", opt_args.call_site, "pipeline of XLA whose options the passes take");
  c->add_option("--style", opt_args.style, "print style");
  c->add_option("--fuel", opt_args.fuel, "PASS=N");
  c->add_flag("--list-passes", opt_args.list, "all passes");
  c->add_flag("--no-verify", opt_args.no_verify, kNoVerifyHelp);
  c->add_flag("--json", opt_args.json, "what each pass did, in place of the module");
  c->callback([&] { code = cmd_opt(opt_args); });

  std::string file, second;
  PrintArgs print_args;
  c = command("print", "read modules and print them as XLA does", "hlo-replay print --style=short model.hlo");
  c->add_option("FILE", print_args.file)->required();
  c->add_option("--style", print_args.style, "default, long, short, canonical or fingerprint");
  c->add_option("--dialect", print_args.dialect, "2019: typed operands, no header fields");
  c->add_flag("--large-constants", print_args.large, "every constant in full");
  c->add_flag("--compact-gte", print_args.compact_gte, "%t#1 in place of get-tuple-elements");
  c->add_flag("--no-metadata", print_args.no_metadata);
  c->add_flag("--color", print_args.color);
  c->add_flag("--permissive", print_args.permissive, "keep unknown attributes and header fields, skip text behind");
  c->callback([&] { code = cmd_print(print_args); });

  std::vector<std::string> files;
  bool fmt_check = false, fmt_write = false;
  c = command("fmt", "the text of modules in one form, without loss", "hlo-replay fmt --check testdata/*.hlo");
  c->add_option("FILE", files)->required();
  c->add_flag("--check", fmt_check, "exit 1 where a file differs");
  c->add_flag("--write", fmt_write, "rewrite files that differ");
  c->add_flag("--json", json, "with --check or --write: the files");
  c->callback([&] { code = cmd_fmt(files, fmt_check, fmt_write, json); });

  c = command("verify", "check every invariant", "hlo-replay verify model.hlo");
  c->add_option("FILE", file)->required();
  std::string layouts = "auto";
  c->add_option("--layouts", layouts, "auto (binding where a module is scheduled), binding or free");
  bool mixed = false;
  c->add_flag("--allow-mixed-precision", mixed,
              "operations may take f32 beside bf16 (taken for granted where layouts have tiles, as a TPU's do)");
  c->add_flag("--json", json);
  c->callback([&] { code = cmd_verify(file, json, layouts, mixed); });

  ConvertArgs convert_args;
  c = command("convert", "from one format to another, by the files' endings", "hlo-replay convert model.hlo model.svg");
  c->add_option("IN", convert_args.in)->required();
  c->add_option("OUT", convert_args.out, ".hlo .txt .pb .pb.gz .pbtxt .json .dot .svg .png, kernels: .ll .ptx")
      ->required();
  c->add_option("--sm", convert_args.sm, "architecture for .ll and .ptx: sm_75 to sm_90a");
  c->add_flag("--json", convert_args.json, "what was written");
  c->callback([&] { code = cmd_convert(convert_args); });

  ExecArgs exec_args;
  c = command("exec", "run a module", "hlo-replay exec testdata/mobilenet_v1.hlo --seed=1 --out=out.npz");
  c->add_option("FILE", exec_args.file, "a module, or a folder with --all-stages")->required();
  add_run_options(c, exec_args);
  c->add_option("--like", exec_args.like, "module before partitioning, whose shapes inputs and outputs have");
  c->add_option("--precision", exec_args.precision, "own, or high: floats in f64");
  c->add_option("--out", exec_args.out, ".npz for inputs p0 … and outputs o0 …");
  c->add_option("--compare-with", exec_args.compare_with, "a backend, another module, or OUT.npz; exit 1 if different");
  c->add_option("--trace", exec_args.trace, "new folder for statistics of every instruction's value");
  c->add_option("--profile", exec_args.profile,
                "file for every instruction's time: .json (trace events), .html or .txt");
  c->add_flag("--force", exec_args.force, "replace the folder of --trace, the files of --profile");
  c->add_flag("--nan", exec_args.nan,
              "the first instruction that makes a NaN which no operand has, and the first that makes an infinity of "
              "finite ones");
  c->add_option("--replace-kernel", exec_args.replace_kernel,
                "NAME=FILE.ll or .ptx (repeat): run that in the place of a kernel; names as in the PTX of a replay");
  c->add_option("--kernel-cache", exec_args.kernel_cache,
                "folder that keeps compiled kernels between runs (or HLO_KERNEL_CACHE)");
  c->add_flag("--ignore-memory", exec_args.ignore_memory,
              "Run it even where it takes more memory than the machine can give");
  c->add_flag("--as-is", exec_args.as_is,
              "kernels of the module's own instructions (else those before fusion are fused first)");
  c->add_flag("--exact", exec_args.exact, "no library for large products: sums in one plain order");
  c->add_flag("--all-stages", exec_args.all_stages, "FILE is a folder: every stage against the first");
  c->add_option("--repeat", exec_args.repeat, "best of so many runs")->check(CLI::Range(1, 1000000));
  c->add_flag("--json", exec_args.json);
  c->callback([&] { code = cmd_exec(exec_args); });

  CompareArgs compare_args;
  c = command("compare", "are two results the same?", "hlo-replay compare a.npz b.npz");
  c->add_option("A", compare_args.a)->required();
  c->add_option("B", compare_args.b)->required();
  c->add_option("--reference", compare_args.reference, ".npz of exec --precision=high, to judge what differs");
  c->add_option("--module", compare_args.module, "whose outputs these are: tells bf16 and f8 from integers");
  c->add_option("--tolerance", compare_args.tolerance, "share of the largest magnitude, in place of the types' own");
  c->add_flag("--json", compare_args.json);
  c->callback([&] { code = cmd_compare(compare_args); });

  DiffArgs diff_args;
  c = command("diff", "two modules or stages by structure, or two folders: the first stage that differs",
              "hlo-replay diff out:0003 out:0004\n  hlo-replay diff dump_of_monday dump_of_today");
  c->add_option("A", diff_args.a)->required();
  c->add_option("B", diff_args.b)->required();
  c->add_option("--by", diff_args.by, "structure (whatever the names) or text");
  c->add_flag("--run", diff_args.run, "run both on the same inputs: exit 1 only where results differ");
  c->add_flag("--profile", diff_args.profile,
              "A and B are traces (exec --profile=A.json, or a profiler's): time by class and op_name");
  c->add_option("--most", diff_args.most, "kinds of difference to show");
  c->add_option("--html", diff_args.html, "page to write");
  c->add_flag("--force", diff_args.force, "replace the page");
  c->add_flag("--json", diff_args.json);
  add_run_options(c, diff_args.how);
  c->callback([&] { code = cmd_diff(diff_args); });

  bool force = false;
  std::string view_formats;
  c = command("view", "pages that step through a recording", "hlo-replay view /tmp/xla_dump");
  c->add_option("DIR", folder)->required();
  c->add_option("-o,--out", second, "folder to make (DIR.view)");
  c->add_flag("--force", force);
  c->add_option("--formats", view_formats, "text, dot, page, and drawn: html, svg, png (text,dot,page)");
  c->callback([&] { code = cmd_view(folder, second, view_formats, force); });

  bool bench = false;
  c = command("stats", "what a module is made of", "hlo-replay stats --bench model.hlo");
  c->add_option("FILE", file)->required();
  c->add_flag("--json", json);
  c->add_flag("--bench", bench, "time parsing and printing, best of 5");
  c->callback([&] { code = cmd_stats(file, json, bench); });

  add_debug_commands(app, &code);

  // `hlo-replay FILE` replays, `hlo-replay DIR` opens.
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    fmt::print("{}", app.help());
    return kBad;
  }
  const bool known = named_command(app, args[0]);
  std::error_code error;
  if (!known && !fs::exists(args[0], error))
    if (std::string hint = nearest_command(app, args[0]); !hint.empty())
      fail(FailureKind::kUsage, "no command and no file is called '{}'; {}", args[0], hint);
  if (!known && (args[0] == "-" || args[0][0] != '-'))
    args.insert(args.begin(), fs::is_directory(args[0], error) ? "open" : "replay");
  // `--passes=` asks for none; CLI11 would take the next word as its value.
  std::erase(args, std::string("--passes="));
  std::reverse(args.begin(), args.end());
  const std::vector<std::string> given = args;  // CLI11 empties it
  try {
    app.parse(args);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e), kYes;  // --help
    fail(FailureKind::kUsage, "{}{}; see hlo-replay {}--help", e.what(), nearest_option(app, given),
         !named_command(app, given.back()) ? "" : given.back() + " ");
  }
  return code;
}

}  // namespace
}  // namespace hlo

int main(int argc, char** argv) {
  hlo::open_standard_streams();
  hlo::catch_interrupts();
#ifdef __linux__
  // Modules come and go; giving their pages back to the system each time costs more than parsing does.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
  std::ios::sync_with_stdio(false);
  hlo::note_json_asked(argc, argv);
  try {
    return hlo::end_of_output(hlo::run(argc, argv));
  } catch (const hlo::Failure& e) {
    hlo::print_json_error(e);
    hlo::end_of_output(2);
    hlo::complain((e.kind() == hlo::FailureKind::kSyntax ? "" : "error: ") + std::string(e.what()));
    return e.kind() == hlo::FailureKind::kInvalid ? 1 : 2;
  } catch (const std::bad_alloc&) {
    hlo::print_json_error("memory", "no memory is left for this");
    hlo::end_of_output(2);
    std::fputs("error: no memory is left for this (of this machine, or of a limit such as ulimit -v)\n", stderr);
    return 2;
  } catch (const std::length_error&) {
    hlo::print_json_error("memory", "this takes more memory than any machine has");
    hlo::end_of_output(2);
    std::fputs("error: this takes more memory than any machine has\n", stderr);
    return 2;
  } catch (const std::exception& e) {
    hlo::print_json_error("internal", e.what());
    hlo::end_of_output(2);
    hlo::complain("error: " + std::string(e.what()));
    return 2;
  }
}
