// triage: what the rungs' answers come to.
#include <algorithm>
#include <filesystem>

#include "ir/program/buffer.h"
#include "replay/cli/triage/triage.h"
#include "replay/hunt/unordered.h"
#include "replay/installed/interpreter.h"
#include "replay/judge/contract/contract.h"
#include "replay/os/confined_path.h"
#include "replay/record/logs/log_file.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {

const Json& entry_of(const Json& j, const char* key) {
  static const Json kNull;
  const auto found = j.is_object() ? j.find(key) : j.end();
  return found == j.end() ? kNull : *found;
}

std::string text_of(const Json& j, const char* key) {
  return entry_of(j, key).is_string() ? entry_of(j, key).get<std::string>() : std::string();
}

namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

const Recording* module_named(const TriageSubject& s, const std::string& name) {
  for (const Recording& r : s.modules)
    if (r.module_name == name) return &r;
  return s.modules.size() == 1 ? &s.modules[0] : nullptr;
}

// The file of the stage that bisect labels so.
std::string file_labelled(const Recording& r, const std::string& label) {
  for (const StageRow& row : r.rows)
    if (!row.file.empty() && (row.number > 0 ? fmt::format("{:04} {}", row.number, row.name()) : row.name()) == label)
      return confined_path(r.folder, row.file);
  return {};
}

void take_stage(const TriageSubject& s, const Json& j, TriageVerdict& v) {
  v.pass = text_or_null(text_of(j, "pass")), v.pipeline = text_or_null(text_of(j, "pipeline"));
  v.stage = text_or_null(text_of(j, "bad")), v.rule = entry_of(j, "rule");
  if (const Recording* r = module_named(s, text_of(j, "module"))) {
    if (std::string file = text_of(j, "bad_file"); !file.empty()) v.file = confined_path(r->folder, file);
    v.good_file = file_labelled(*r, text_of(j, "good"));
  }
}

std::string pass_in_words(const TriageVerdict& v) {
  if (!v.pass.is_string()) return "what leads to stage " + (v.stage.is_string() ? v.stage.get<std::string>() : "?");
  std::string out = "pass " + v.pass.get<std::string>();
  if (v.pipeline.is_string()) out += " of pipeline " + v.pipeline.get<std::string>();
  if (v.stage.is_string()) out += ", stage " + v.stage.get<std::string>();
  return out;
}

// The element that shows it.
void add_output(const Json& j, TriageVerdict& v) {
  if (!entry_of(j, "output").is_object()) return;
  const Json& o = entry_of(j, "output");
  v.details.push_back(fmt::format("{}[{}]: {} before, {} after it, {} in f64", text_of(o, "name"),
                                  fmt::join(entry_of(o, "index").get<std::vector<int64_t>>(), ","), text_of(o, "good"),
                                  text_of(o, "bad"), text_of(o, "exact")));
}

// Do only those decide that hang on the types of values? In f64 they decide nothing.
bool only_of_types(const Json& j) {
  const auto& all = entry_of(j, "contracts");
  return std::none_of(all.begin(), all.end(), [](const Json& c) {
    const std::string kind = text_of(c, "kind");
    return entry_of(c, "decides") == true && kind != contract_name(Contract::kRange) &&
           kind != contract_name(Contract::kExcess) && kind != contract_name(Contract::kDenormal) &&
           kind != contract_name(Contract::kAccuracy);
  });
}

// The first site that decides, in words; empty where none does alone.
std::string take_deciding(const Json& j, TriageVerdict& v) {
  v.contracts = entry_of(j, "contracts");
  for (const Json& c : entry_of(j, "contracts"))
    if (entry_of(c, "decides") == true) {
      if (!entry_of(c, "source").is_null()) v.source = entry_of(c, "source");
      v.instruction = entry_of(c, "instruction");
      return fmt::format("{} {}", text_of(c, "instruction"), text_of(c, "what"));
    }
  return {};
}

// `WhileLoopConcatCodeMotion` as XLA names passes mostly: while-loop-concat-code-motion.
std::string pass_of_class(const std::string& name) {
  std::string out;
  for (char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '-';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::string seconds_words(double s) { return time_text(s); }

// What a log says of memory that there was not, XLA's own list of buffers among it.
std::string words_of_memory(const Evidence& e, TriageVerdict& v) {
  if (e.line.empty()) return "no line mentions memory";
  v.word = "program", v.sure = "proved", v.why = e.line;
  if (!e.buffers.empty()) {
    const NamedBuffer& b = e.buffers[0];
    v.why += fmt::format("; the largest buffer, {}{}{}", b.size, b.shape.empty() ? "" : " of " + b.shape,
                         b.source.empty() ? b.op_name.empty() ? "" : ", " + b.op_name : ", " + b.source);
    v.source = text_or_null(b.source);
    if (!b.what.empty()) v.instruction = b.what.substr(0, b.what.find(' '));
  }
  for (size_t k = 0; k < std::min<size_t>(e.buffers.size(), 4); ++k)
    v.details.push_back(
        fmt::format("{} {} {} {}", e.buffers[k].size, e.buffers[k].shape, e.buffers[k].what, e.buffers[k].source));
  return e.line;
}

}  // namespace

std::string read_verification(const TriageSubject& s, const Json& j, TriageVerdict& v) {
  if (!j.value("found", false) && j.contains("stopped") && !entry_of(j, "stopped").is_null())
    return text_of(j, "verdict");
  if (!j.value("found", false))
    return j.value("judged", 0)
               ? fmt::format("the verifier takes {}", s.kind == TriageSubject::kModule ? "it" : "every stage")
               : text_of(j, "verdict");
  take_stage(s, j, v);
  v.word = "fault", v.sure = "proved", v.decided = true;
  v.why = fmt::format("{} is no valid HLO: {}", pass_in_words(v), text_of(j, "why"));
  return "the verifier refuses " + text_of(j, "bad");
}

std::string read_bisection(const TriageSubject& s, const Json& j, int code, bool own_passes, TriageVerdict& v) {
  if (!entry_of(j, "stopped").is_null() && !j.value("found", false)) return text_of(j, "verdict");
  if (!j.value("found", false)) {
    if (code == kNo && entry_of(j, "device").is_string()) {
      v.word = "below", v.sure = "tested", v.inputs = 1, v.decided = true;
      v.why = "every stage gives the same, and what the device gave is another: " + text_of(j, "device");
      return text_of(j, "device");
    }
    if (entry_of(j, "rounding").is_array() && !entry_of(j, "rounding").empty() && v.word == "unknown") {
      v.word = "rounding", v.sure = "tested", v.inputs = 1, v.decided = true;
      v.why = "rounding turns a comparison or another step: " + entry_of(j, "rounding")[0].get<std::string>();
      return v.why;
    }
    if (code == kYes && v.word == "unknown") {
      v.word = "nothing", v.sure = "tested", v.inputs = 1;
      v.why =
          own_passes ? "none of our passes changes what it computes" : "no stage computes another thing than the first";
      v.details.push_back(text_of(j, "verdict"));
    }
    return text_of(j, "verdict");
  }
  if (text_of(j, "pass").starts_with("dynamic") && text_of(j, "why").ends_with("another shape")) {
    v.why = fmt::format("{} gives results of dynamic size another form, and these are not compared", text_of(j, "bad"));
    v.word = "unknown";
    return v.why;
  }
  take_stage(s, j, v);
  v.word = "fault", v.sure = "tested", v.inputs = 1;
  v.difference = entry_of(j, "why"), v.source = entry_of(j, "source");
  if (entry_of(j, "before").is_array()) v.before = entry_of(j, "before");
  if (entry_of(j, "after").is_array()) v.after = entry_of(j, "after");
  const Json& first = entry_of(j, "first_value_that_differs");
  if (first.is_object()) {
    v.instruction = entry_of(first, "name"), v.before_name = entry_of(first, "before");
    if (entry_of(first, "difference").is_string()) v.difference = entry_of(first, "difference");
  }
  if (entry_of(j, "inputs").is_object()) v.made = text_of(entry_of(j, "inputs"), "made");
  v.why = (own_passes ? "as hlo-replay's own passes do it, " : "") + pass_in_words(v) + ": " +
          (v.difference.is_string() ? v.difference.get<std::string>() : std::string("it gives other results"));
  if (v.rule.is_string()) v.why += ", rule " + v.rule.get<std::string>();
  // What our passes made lies beside, that it can be asked whether HLO leaves it open.
  if (const std::string made = s.scratch + "/own"; own_passes && !s.scratch.empty()) {
    std::error_code error;
    if (std::filesystem::exists(made + "/good.hlo", error) && std::filesystem::exists(made + "/bad.hlo", error))
      v.good_file = made + "/good.hlo", v.file = made + "/bad.hlo";
  }
  if (!v.file.is_string() || v.good_file.empty()) v.decided = true;
  v.in_f64 = entry_of(j, "outputs").is_string() || entry_of(j, "elements").is_object();
  if (entry_of(j, "outputs").is_string()) v.details.push_back(entry_of(j, "outputs"));
  if (std::string refused = text_of(j, "why"); refused.find("does not verify") != std::string::npos)
    v.sure = "proved", v.inputs = 0, v.decided = true;
  return text_of(j, "guilty");
}

std::string read_decision(const Json& j, TriageVerdict& v) {
  const std::string verdict = text_of(j, "verdict"), why = text_of(j, "why");
  v.decided = true;
  add_output(j, v);
  if (v.in_f64 && (verdict == "rounding" || (verdict == "contract" && only_of_types(j)))) {
    v.details.push_back(
        "what it computes differs in f64, too; the outputs do by no more than rounding on these inputs");
  } else if (verdict == "contract") {
    v.word = "contract";
    const std::string site = take_deciding(j, v);
    v.why = fmt::format("{} gives what HLO leaves open{}", pass_in_words(v), site.empty() ? "" : ": " + site);
  } else if (verdict == "rounding") {
    v.word = "rounding", v.why = fmt::format("{} rounds in another way: {}", pass_in_words(v), why);
  } else if (verdict == "unknown") {
    v.details.push_back("whether HLO leaves it open is unknown: " + why);
  } else if (verdict == "right") {
    v.details.push_back("the outputs do not show it on these inputs");
  }
  return verdict + (why.empty() ? "" : ": " + why);
}

std::string read_last_stage(const Json& j, TriageVerdict& v) {
  const std::string verdict = text_of(j, "verdict"), why = text_of(j, "why");
  std::string told = "the last stage against the first: " + verdict + (why.empty() ? "" : ": " + why);
  if (verdict == "contract" && v.word == "nothing") {
    v.word = "contract", v.decided = true;
    add_output(j, v);
    const std::string site = take_deciding(j, v);
    v.why = fmt::format("the last stage gives what the first leaves open{}", site.empty() ? "" : ": " + site);
  } else if (verdict == "rounding" && v.word == "nothing") {
    v.word = "rounding", v.decided = true, v.why = told;
    add_output(j, v);
  } else if (verdict == "wrong" && v.word == "nothing") {
    v.word = "unknown";
    v.why =
        "stage by stage nothing differs, in f64, but the last one in its own types is not what the first gives: " + why;
    add_output(j, v);
  }
  return told;
}

std::string read_nan(const TriageSubject& s, const Json& j, TriageVerdict& v) {
  if (!entry_of(j, "nan").is_object()) {
    const std::string brought = text_of(j, "nan_come_in_with");
    if (!brought.empty()) {
      v.word = "program", v.sure = "proved", v.inputs = 1, v.decided = true, v.why = "NaN come in with " + brought;
      return v.why;
    }
    if (!entry_of(j, "infinity").is_object()) return "no NaN is made in the first stage";
    const std::string text = text_of(entry_of(j, "infinity"), "text");
    v.details.push_back("no NaN is made in the first stage, and an infinity: " + text.substr(0, text.find('\n')));
    return "no NaN is made; an infinity by " + text_of(entry_of(j, "infinity"), "instruction");
  }
  const Json& n = entry_of(j, "nan");
  v.word = "program", v.sure = "tested", v.inputs = 1, v.decided = true;
  v.instruction = entry_of(n, "instruction");
  const std::string text = text_of(n, "text");
  v.why = fmt::format("{} itself makes NaN: {}",
                      s.kind == TriageSubject::kModule ? "the module" : "the first stage, before any pass,",
                      text.substr(0, text.find('\n')));
  for (size_t at = text.find('\n'); at != std::string::npos;) {
    const size_t end = text.find('\n', at + 1);
    v.details.push_back(text.substr(at + 1, end == std::string::npos ? end : end - at - 1));
    at = end;
  }
  return text_of(n, "instruction") + " makes NaN";
}

std::string read_open_sites(const TriageArgs& a, const Json& j, TriageVerdict& v) {
  v.contracts = entry_of(j, "contracts");
  const std::string verdict = text_of(j, "verdict");
  if (!a.outputs.empty()) {  // of the device
    v.inputs = 1, v.sure = "tested";
    if (verdict == "contract" || verdict == "rounding") {
      v.word = verdict, v.decided = true;
      v.why = "what the device gave is right but for what is open: " + text_of(j, "why");
    } else if (verdict == "right" && v.word == "unknown") {
      v.word = "nothing", v.why = "what the device gave is right", v.decided = true;
    } else if (verdict == "wrong" && v.word == "unknown") {
      v.word = "below", v.decided = true,
      v.why = "what the device gave is not what the module says: " + text_of(j, "why");
    }
    return verdict + ": " + text_of(j, "why");
  }
  if (entry_of(j, "contracts").empty()) return "it leaves nothing open";
  // Memory that nobody wrote to is open whatever comes in.
  for (const Json& c : entry_of(j, "contracts"))
    if (entry_of(c, "kind") == "uninitialised" && (v.word == "nothing" || v.word == "unknown")) {
      v.word = "contract", v.sure = "proved", v.decided = true;
      v.why = fmt::format("{} {}", text_of(c, "instruction"), text_of(c, "what"));
      v.instruction = entry_of(c, "instruction"), v.source = entry_of(c, "source");
      return v.why;
    }
  std::vector<std::string> words;
  for (const Json& c : entry_of(j, "contracts"))
    if (words.size() < 3) words.push_back(text_of(c, "instruction") + " " + text_of(c, "what"));
  std::string all = fmt::format("{}", fmt::join(words, "; "));
  if (!a.inputs.empty() && (v.word == "nothing" || v.word == "unknown")) {
    v.word = "contract", v.sure = "tested", v.inputs = 1, v.decided = true;
    v.why = "on these inputs the program leaves its result open: " + all;
    v.instruction = entry_of(entry_of(j, "contracts")[0], "instruction"),
    v.source = entry_of(entry_of(j, "contracts")[0], "source");
  } else {
    v.details.push_back("on random inputs the program leaves open: " + all);
  }
  return all;
}

std::string read_last_words(const TriageSubject& s, TriageVerdict& v) {
  const Evidence& e = s.evidence;
  if (v.word == "fault") return "a stage before was found";
  if (!e.instruction.empty()) v.instruction = e.instruction;
  if (!e.source.empty()) v.source = e.source;
  for (const std::string& check : e.words.checks) v.details.push_back(check);
  if (s.complaint == Complaint::kMemory) return s.vmem ? words_of_vmem(*s.vmem, v) : words_of_memory(e, v);
  if (!e.refused_after.empty()) {
    v.word = "fault", v.sure = "proved", v.decided = true, v.pass = e.refused_after;
    v.why = fmt::format("XLA's own check refuses what pass {} made: {}", e.refused_after, e.refused_why);
    return v.why;
  }
  std::vector<std::string> known;
  for (const PassInfo& p : all_passes()) known.emplace_back(p.name);
  for (const Recording& r : s.modules)
    for (const StageRow& row : r.rows) known.push_back(row.pass);
  // On the stack, in a failed check's file, entered last, next: in that order.
  LastWords stack = e.words;
  stack.entered.clear();
  std::vector<std::string> running = running_passes(stack, {}, known);
  if (running.empty() && !stack.running.empty()) running.push_back(pass_of_class(stack.running[0]));
  if (running.empty()) running = e.in_files;
  const bool named = !running.empty();
  if (!named) running = running_passes(e.words, s.unfinished, known);
  for (const Unfinished& u : s.unfinished)
    if (!u.last.empty()) {
      v.stage = u.last;
      v.details.push_back(fmt::format("the last stage of {} that was written is {}", u.module, u.last));
    }
  if (!named && !e.below.empty()) {
    v.word = "below", v.sure = "proved", v.decided = true;
    v.why = fmt::format("it failed in {}: {}", e.below, e.below_line);
    return v.why;
  }
  if (running.empty()) return e.line.empty() ? "no line names a pass" : e.line;
  v.word = "fault", v.pass = running[0], v.sure = named ? "proved" : "guessed", v.inputs = 0;
  // Stages that end tell of a compiler that died where somebody says so, or where the dump shows that it is whole.
  const bool told = s.seen_from.empty() || !s.text.empty();
  const bool whole = std::any_of(s.modules.begin(), s.modules.end(), [](const Recording& r) {
    return !r.other_files.empty() || (!r.rows.empty() && r.rows.back().kind == StageRow::kResult);
  });
  if (!told && !whole) {
    v.word = "unknown";
    v.why = fmt::format(
        "the stages that are there are correct; if the compiler died or hung after them, pass {} or a "
        "later one was running (--complaint=crash says that it did)",
        running[0]);
    return v.why;
  }
  v.why =
      fmt::format("it {} in pass {}{}",
                  s.complaint == Complaint::kHang ? "was"
                  : named                         ? "died"
                                                  : "was last",
                  running[0], e.words.checks.empty() ? e.line.empty() ? "" : ": " + e.line : ": " + e.words.checks[0]);
  if (!named) v.why += ", or in a later one that wrote nothing";
  return v.why;
}

std::string read_memory(const Json& j, TriageVerdict& v) {
  const Json* most = nullptr;
  for (const Json& m : entry_of(j, "modules"))
    if (m.contains("peak_bytes") && entry_of(m, "peak_bytes").is_number() &&
        (!most || entry_of(m, "peak_bytes").get<double>() > entry_of(*most, "peak_bytes").get<double>()))
      most = &m;
  if (!most) return "no module records its memory";
  const Json& m = *most;
  v.word = "program", v.sure = m.value("estimate", true) ? "guessed" : "proved", v.decided = true;
  v.instruction = entry_of(m, "peak_at");
  v.why = fmt::format("the peak of {}, {}, is at {}", text_of(m, "module"),
                      human_bytes(entry_of(m, "peak_bytes").get<int64_t>()), text_of(m, "peak_at"));
  if (std::string large = text_of(m, "too_large"); !large.empty()) v.why += "; " + large;
  if (!entry_of(m, "alive").empty()) {
    const Json& b = entry_of(m, "alive")[0];
    v.source = text_or_null(text_of(b, "source"));
    v.why += fmt::format("; largest there: {} {} {}{}", text_of(b, "name"), text_of(b, "shape"),
                         human_bytes(entry_of(b, "bytes").get<int64_t>()),
                         text_of(b, "source").empty() ? "" : ", " + text_of(b, "source"));
  }
  if (const Json& orders = entry_of(m, "orders"); orders.is_object() && entry_of(orders, "saved_bytes").is_number()) {
    const int64_t saved = entry_of(orders, "saved_bytes").get<int64_t>();
    const int64_t own = entry_of(orders, "as_it_is_bytes").get<int64_t>();
    for (const Json& pass : entry_of(orders, "passes"))
      v.details.push_back(fmt::format("pass {} took what is alive at once from {} to {}", text_of(pass, "pass"),
                                      human_bytes(entry_of(pass, "before_bytes").get<int64_t>()),
                                      human_bytes(entry_of(pass, "after_bytes").get<int64_t>())));
    if (saved > 0)
      v.details.push_back(
          fmt::format("by another order of the same program, {}, {} in place of {}{}", text_of(orders, "least"),
                      human_bytes(own - saved), human_bytes(own),
                      entry_of(orders, "flags").empty()
                          ? ""
                          : fmt::format("; not tried: {}",
                                        fmt::join(entry_of(orders, "flags").get<std::vector<std::string>>(), ", "))));
    else
      v.details.push_back("no order that is known here needs less");
  }
  for (const Json& row : entry_of(m, "alive_by"))
    if (v.details.size() < 6)
      v.details.push_back(
          fmt::format("{} {}", human_bytes(entry_of(row, "bytes").get<int64_t>()), text_of(row, "key")));
  return v.why;
}

std::string read_cost(const Json& j, TriageVerdict& v) {
  if (j.contains("modules") && entry_of(j, "modules").is_array() && !entry_of(j, "modules").empty() &&
      (!j.contains("instructions") || entry_of(j, "instructions").empty()))
    return fmt::format("{} modules: name one, DIR:MODULE", entry_of(j, "modules").size());
  const Json *most = nullptr, empty = Json::array();
  auto seconds = [](const Json& i) {
    if (entry_of(i, "measured_seconds").is_number()) return entry_of(i, "measured_seconds").get<double>();
    if (entry_of(i, "expected").is_object() && entry_of(entry_of(i, "expected"), "seconds").is_number())
      return entry_of(entry_of(i, "expected"), "seconds").get<double>();
    return entry_of(i, "least_seconds").is_number() ? entry_of(i, "least_seconds").get<double>() : 0.0;
  };
  double sum = 0;
  for (const Json& i : j.contains("instructions") ? entry_of(j, "instructions") : empty) {
    sum += seconds(i);
    if (!most || seconds(i) > seconds(*most)) most = &i;
  }
  if (!most || sum <= 0) return "no instruction has a time";
  const bool measured = entry_of(*most, "measured_seconds").is_number();
  v.word = "program", v.sure = measured ? "proved" : "guessed", v.decided = true;
  v.instruction = entry_of(*most, "name"), v.source = text_or_null(text_of(*most, "source"));
  v.why = fmt::format("{} takes {:.0f} % of the {} time{}", text_of(*most, "name"), 100 * seconds(*most) / sum,
                      measured ? "measured" : "expected",
                      text_of(*most, "source").empty() ? "" : ", " + text_of(*most, "source"));
  return v.why;
}

std::string read_compile_time(const Json& j, TriageVerdict& v) {
  if (j.value("told", false) == false) return "nothing records the time of a compilation";
  const Json& m = entry_of(j, "modules")[0];  // the longest
  auto seconds = [&](const char* what) {
    const Json& s = entry_of(entry_of(m, what), "seconds");
    return s.is_number() ? s.get<double>() : -1.0;
  };
  const double total = seconds("total"), passes = seconds("passes"), behind = seconds("behind");
  const double tuning =
      entry_of(m, "autotuning_seconds").is_number() ? entry_of(m, "autotuning_seconds").get<double>() : 0;
  const std::string name = text_of(m, "module").empty() ? "a module" : text_of(m, "module");
  v.why = total < 0 ? name : fmt::format("{} took {} to compile", name, seconds_words(total));
  for (const Json& what : entry_of(m, "not_told"))
    if (v.details.size() < 8) v.details.push_back("not recorded: " + what.get<std::string>());
  for (const Json& slow : entry_of(m, "slow")) {
    const std::string what = text_of(slow, "what");
    if (!what.starts_with("constant folding") || v.decided) continue;
    v.word = "program", v.sure = "proved", v.decided = true, v.pass = "constant_folding";
    const double took = entry_of(slow, "seconds").is_number() ? slow["seconds"].get<double>() : -1;
    v.why += fmt::format("{}: {}; computing it outside of the program, or an argument in its place, avoids that",
                         took < 0 ? "" : ", " + seconds_words(took) + " of it", what);
  }
  if (v.decided) return v.why;
  const Json* pass = nullptr;
  for (const Json& part : entry_of(m, "parts"))
    if (text_of(part, "phase") == "pass" && (!pass || part["seconds"].get<double>() > (*pass)["seconds"].get<double>()))
      pass = &part;
  if (passes < 0 && behind < 0 && !pass) {
    v.why += "; what of is not recorded";
    return v.why;
  }
  v.sure = "proved", v.decided = true;
  const double of_passes = passes >= 0 ? passes : pass ? (*pass)["seconds"].get<double>() : 0;
  if (behind > of_passes) {
    v.word = "below";
    v.why += fmt::format(": {} of it below HLO (emission, LLVM, ptxas), {} in its passes", seconds_words(behind),
                         passes < 0 ? "what is not recorded" : seconds_words(passes));
  } else if (tuning > 0.5 * of_passes) {
    v.word = "below";
    v.why += fmt::format(": {} of it in autotuning, which compiles and measures kernels", seconds_words(tuning));
  } else {
    v.word = "program";
    v.why += passes < 0 ? "" : fmt::format(": {} of it in HLO's passes", seconds_words(passes));
    if (behind < 0 && total >= 0) v.why += ", and how much after them is not recorded";
  }
  if (pass) {
    if (v.word == "program" || tuning > 0.5 * of_passes) v.pass = entry_of(*pass, "name");
    v.why += fmt::format("; of all passes {} takes the longest, {}", text_of(*pass, "name"),
                         seconds_words((*pass)["seconds"].get<double>()));
  }
  for (const char* phase : {"emission", "llvm", "assembler"}) {
    double sum = -1;
    for (const Json& part : entry_of(m, "parts"))
      if (text_of(part, "phase") == phase) sum = std::max(sum, 0.0) + part["seconds"].get<double>();
    if (sum >= 0)
      v.details.push_back(fmt::format("{} {}, over threads", std::string_view(phase) == "assembler" ? "ptxas" : phase,
                                      seconds_words(sum)));
  }
  return v.why;
}

std::string read_ranks(const Json& j, TriageVerdict& v) {
  v.sure = "proved", v.decided = true;
  if (entry_of(j, "ranks").empty()) {
    v.word = "nothing", v.why = "every rank has the same modules, stage by stage";
    return v.why;
  }
  const Json& r = entry_of(j, "ranks")[0];
  const std::string first = text_of(r, "first");
  const bool given = first.find("before_optimizations") != std::string::npos || first.starts_with("it is only");
  v.word = given ? "program" : "fault", v.stage = first;
  v.why = fmt::format("rank {}, module {}: {}{}", text_of(r, "rank"), text_of(r, "module"), first,
                      given ? ": the ranks were given different programs" : "");
  for (const Json& row : entry_of(j, "ranks"))
    if (v.details.size() < 8)
      v.details.push_back(
          fmt::format("{} {}: {}", text_of(row, "rank"), text_of(row, "module"), text_of(row, "first")));
  return v.why;
}

std::string read_source(const Json& j, TriageVerdict& v) {
  const std::string source = text_of(j, "source");
  // `model.py:12, jit(f)/mul`
  if (!source.empty()) v.source = source.substr(0, source.find(", "));
  return source.empty() ? "no line of the program is recorded for it" : source;
}

bool has_source_line(const TriageVerdict& v) {
  if (!v.source.is_string()) return false;
  const std::string text = v.source.get<std::string>();
  const size_t colon = text.rfind(':');
  return colon != std::string::npos && colon + 1 < text.size() &&
         std::isdigit(static_cast<unsigned char>(text[colon + 1]));
}

std::string read_flags(const Json& j, int code, TriageVerdict& v) {
  std::string verdict = text_of(j, "verdict");
  if (code != kNo || !entry_of(j, "flags").is_array() || entry_of(j, "flags").empty()) return verdict;
  v.details.push_back(
      fmt::format("it depends on flag {}", fmt::join(entry_of(j, "flags").get<std::vector<std::string>>(), " ")));
  return verdict;
}

std::string read_releases(const TriageArgs& a, const Json& j, int code, TriageVerdict& v) {
  std::string verdict = text_of(j, "verdict");
  const std::string before = text_of(j, "before"), after = text_of(j, "after");
  // Of the rows that were asked: the sides of the change, and whether both ends have the fault.
  const Json *last = nullptr, *at_before = nullptr, *at_after = nullptr, *first = nullptr;
  for (const Json& row : entry_of(j, "measured")) {
    const std::string label = text_of(row, "label");
    if (label.empty() || label.find_first_not_of("0123456789.") != std::string::npos) continue;
    if (!first) first = &row;
    last = &row;
    if (label == before) at_before = &row;
    if (label == after) at_after = &row;
  }
  if (code == kNo && at_before && at_after) {
    const bool mended = entry_of(*at_after, "good") == true;
    v.details.push_back(mended ? fmt::format("fixed between jaxlib {} and {}", before, after)
                               : fmt::format("it came between jaxlib {} and {}", before, after));
    // It is a fault of the release that was asked, where that one is on the side that has it.
    const size_t colon = a.engine.engine.find(':');
    const std::string asked = colon == std::string::npos ? "" : a.engine.engine.substr(colon + 1);
    const bool has_it = !is_release(asked) || release_before(asked, after) == mended;
    if (has_it && (v.word == "unknown" || v.word == "nothing")) return read_compilations(j, code, v);
  } else if (first && last && entry_of(*first, "known") == true && entry_of(*last, "known") == true) {
    v.details.push_back(fmt::format("{} in jaxlib {} and in {}",
                                    entry_of(*last, "good") == true ? "it is not" : "it is", text_of(*first, "label"),
                                    text_of(*last, "label")));
  }
  return verdict;
}

std::string read_kernels(const Json& j, TriageVerdict& v) {
  std::string why = text_of(j, "why");
  if (text_of(j, "verdict") != "wrong") return why;
  v.word = "below", v.sure = "tested", v.inputs = 1, v.decided = true,
  v.why = "a kernel that XLA emitted is wrong: " + why;
  if (entry_of(j, "kernels").is_object())
    for (const Json& k : entry_of(entry_of(j, "kernels"), "launched"))
      if (text_of(k, "verdict") != "equal" && text_of(k, "verdict") != "not-run") {
        v.instruction = entry_of(k, "instruction"),
        v.why = fmt::format("kernel {}: {}", text_of(k, "kernel"), text_of(k, "why"));
        break;
      }
  return why;
}

std::string read_compilations(const Json& j, int code, TriageVerdict& v) {
  if (code != kNo) {
    if (v.word == "below") v.details.push_back("no pass, left out, fixes it"), v.decided = true;
    return text_of(j, "verdict");
  }
  const Json& left_out = entry_of(j, "passes");
  if ((v.word == "fault" || v.word == "below") && left_out.is_array() && !left_out.empty()) {
    // What was found before stands; this says what heals it.
    const std::string names = fmt::format("{}", fmt::join(left_out.get<std::vector<std::string>>(), ", "));
    const bool same = v.pass.is_string() && left_out.size() == 1 && left_out[0] == v.pass;
    if (same && v.sure == "guessed") v.sure = "tested", v.inputs = 1;
    if (!v.pass.is_string()) v.pass = left_out[0];
    v.why += fmt::format("; without pass {} it does not happen", names);
    v.decided = true;
    return text_of(j, "verdict");
  }
  v.word = "fault", v.sure = "tested", v.inputs = 1, v.decided = true, v.why = text_of(j, "verdict");
  if (!entry_of(j, "passes").empty()) v.pass = entry_of(j, "passes")[0];
  return text_of(j, "verdict");
}

}  // namespace hlo
