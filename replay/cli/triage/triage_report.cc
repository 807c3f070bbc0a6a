// triage -o: the folder for a report, as who has to mend it would want it.
#include <algorithm>
#include <filesystem>

#include "ir/print/print.h"
#include "replay/cli/engine.h"
#include "replay/cli/json_output.h"
#include "replay/cli/triage/triage.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/input.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostLinesInline = 80, kLargestArrays = 64 << 20, kLongestTitle = 120;

std::string word(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_string() ? printable(j[key].get<std::string>()) : std::string();
}

// `model.py:12` of `/home/somebody/model.py:12`.
std::string base_of_path(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The same of all paths in a sentence.
std::string base_of_paths(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" ,;()\"", at), text.size());
    const std::string part = text.substr(at, end - at);
    out += part.starts_with('/') ? base_of_path(part) : part;
    if (end < text.size()) out += text[end];
    at = end + 1;
  }
  return out;
}

// A module without source files, scopes and stack frames, which name folders of whoever reports it. As it stands where
// it cannot be read.
std::string without_paths(const std::string& file) {
  try {
    return print_module(*load(file), {.metadata = false, .large_constants = true, .stack_tables = false});
  } catch (const Failure&) {
    const std::string text = read_file(file);
    return text.find('\0') == std::string::npos ? text : std::string();
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (from.empty()) return text;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string compiler_words(const TriageArgs& a, const TriageSubject& s) {
  if (s.compiler.empty()) return {};
  std::string out = s.compiler + ", " + a.engine.target;
  if (a.engine.partitions != 1) out += fmt::format(", {} devices", a.engine.partitions);
  return out;
}

std::string title_of_issue(const TriageArgs& a, const TriageSubject& s, const Json& j) {
  const std::string pass = word(j, "pass"), instruction = word(j, "instruction"), verdict = word(j, "verdict");
  std::string out = word(j, "why");
  if (verdict == "fault" && !pass.empty())
    out = s.complaint == Complaint::kCrash  ? fmt::format("Pass {} dies", pass)
          : s.complaint == Complaint::kHang ? fmt::format("Pass {} does not end", pass)
          : word(j, "why").find("no valid HLO") != std::string::npos || word(j, "sure") == "proved"
              ? fmt::format("Pass {} makes invalid HLO", pass)
              : fmt::format("Pass {} changes the result", pass);
  if (s.complaint == Complaint::kMemory && out.find(": ") != std::string::npos) {
    // What raised it says nothing: `jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: …`.
    const size_t known = out.find("RESOURCE_EXHAUSTED: ");
    out = known == std::string::npos ? out : out.substr(known + 20);
    out = out.size() > kLongestTitle ? out.substr(0, out.rfind(". ", kLongestTitle)).substr(0, kLongestTitle) : out;
  }
  if (s.complaint == Complaint::kNan && verdict == "program")
    out = fmt::format("The program itself makes NaN{}", instruction.empty() ? "" : " at " + instruction);
  if (verdict == "below") out = "Wrong result, though every HLO stage is right";
  if (verdict == "fault" && !instruction.empty() && !pass.empty()) out += " at " + instruction;
  if (out.size() > kLongestTitle) out = out.substr(0, out.find(": "));
  const std::string who = compiler_words(a, s);
  return who.empty() ? out : fmt::format("{} ({})", out, who);
}

// How to run the module that lies in the report.
std::string steps(const TriageArgs& a, const TriageSubject& s, const Json& j) {
  std::string out = "python3 run_with_jax.py\n", environment;
  if (!a.engine.flags.empty() && !s.compiler.empty()) environment = a.engine.flags;
  if (s.complaint != Complaint::kCrash && s.complaint != Complaint::kHang && !s.compiler.empty() && !s.runs)
    return {};  // there is none of that device here, and the stages are what was judged
  if (!environment.empty()) out = fmt::format("XLA_FLAGS='{}' {}", environment, out);
  const std::string pass = word(j, "pass");
  if (j["why"].get<std::string>().find("without pass") != std::string::npos && !pass.empty())
    out += fmt::format(
        "XLA_FLAGS='{}--xla_disable_hlo_passes={}' python3 run_with_jax.py   # without that pass it does "
        "not happen\n",
        environment.empty() ? "" : environment + " ", pass);
  return out;
}

std::string listed(const Json& j, const char* title, const char* key) {
  if (j[key].empty()) return {};
  std::string out = fmt::format("\n{}:\n\n```\n", title);
  for (const Json& line : j[key]) {
    std::string text = printable(line.get<std::string>());
    if (const size_t at = text.find(", metadata={"); at != std::string::npos)
      if (const size_t end = text.find('}', at); end != std::string::npos) text.erase(at, end + 1 - at);
    out += text + "\n";
  }
  return out + "```\n";
}

std::string issue_text(const TriageArgs& a, const TriageSubject& s, const Json& j, const std::string& module,
                       bool smallest, bool script) {
  std::string out = fmt::format("# {}\n\n{}\n", title_of_issue(a, s, j), base_of_paths(word(j, "why")));
  for (const Json& d : j["details"]) {
    const std::string text = printable(d.get<std::string>());
    if (s.complaint == Complaint::kMemory || s.complaint == Complaint::kNan) out += "\n- " + base_of_paths(text);
    if (text.find(" before, ") != std::string::npos || text.find(" as the module says") != std::string::npos ||
        text.starts_with("fixed between") || text.starts_with("it came") || text.starts_with("it is in") ||
        text.starts_with("it depends on flag"))
      out += "\n" + text + "\n";
  }
  const std::string shown = module.substr(0, module.find_last_not_of('\n') + 1);
  if (!module.empty() && std::count(module.begin(), module.end(), '\n') <= kMostLinesInline)
    out += fmt::format("\n**The module**{}:\n\n```\n{}\n```\n", smallest ? " (reduced; `smallest/`)" : "", shown);
  if (std::string how = steps(a, s, j); script && !how.empty())
    out += fmt::format("\n**To see it**, next to the files of this report{}:\n\n```\n{}```\n",
                       s.compiler.empty() ? "" : ", with " + s.compiler, how);
  out += "\n**Where**\n\n";
  for (const auto& [title, key] : {std::pair("Pass", "pass"),
                                   {"Pipeline", "pipeline"},
                                   {"Stage", "stage"},
                                   {"Rule", "rule"},
                                   {"Instruction", "instruction"}})
    if (!word(j, key).empty()) out += fmt::format("- {}: `{}`\n", title, word(j, key));
  if (std::string source = word(j, "source"); source.find(':') != std::string::npos)
    out += fmt::format("- Source: `{}`\n", base_of_path(source));
  out += listed(j, "Before", "before") + listed(j, "After it", "after");
  out += fmt::format("\n**How sure**: {}", word(j, "sure"));
  if (j["inputs_tested"].get<int>() > 0) out += fmt::format(", on {} input", j["inputs_tested"].get<int>());
  out += ".\n\n**With hlo-replay**:\n\n```\n";
  const std::string given = s.kind == TriageSubject::kLog                                  ? "crash.log"
                            : s.kind == TriageSubject::kModule || !s.compiled_from.empty() ? "module.hlo"
                                                                                           : "xla_dump";
  for (const Json& r : j["rungs"])
    if (r["outcome"] == "done" && !word(r, "command").empty() && r["rung"] != "smallest")
      out +=
          replaced(replaced(word(r, "command"), shell_word(s.label), given), shell_word(a.inputs), "inputs.npz") + "\n";
  const std::string who = compiler_words(a, s);
  return out +
         fmt::format("```\n\n**Versions**: hlo-replay {}; {}{}.\n", kVersion,
                     who.empty() ? "XLA: of the dump, whose release its files do not record: fill in jaxlib's" : who,
                     a.engine.flags.empty() || who.empty() ? "" : ", XLA_FLAGS=" + a.engine.flags);
}

// A file of arrays that a rung left, if it is not too large to send.
bool write_arrays(OutputFolder& out, const std::string& from, const std::string& name) {
  std::error_code error;
  const auto size = fs::file_size(from, error);
  if (error || static_cast<int64_t>(size) > kLargestArrays) return false;
  out.write(name, read_file(from));
  return true;
}

}  // namespace

void write_report(OutputFolder& out, const TriageArgs& a, const TriageSubject& s, const TriageVerdict& v,
                  const Json& j) {
  out.write("triage.json", j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  if (v.word != "fault" && v.word != "program" && v.word != "below") return;
  if (!v.good_file.empty() && v.file.is_string()) {
    out.write("good.hlo", without_paths(v.good_file));
    out.write("bad.hlo", without_paths(v.file.get<std::string>()));
  }
  const std::string source = s.kind == TriageSubject::kLog   ? ""
                             : s.compiled_from.empty()       ? first_stage_of(s)
                             : is_stablehlo(s.compiled_from) ? first_stage_of(s)
                                                             : s.compiled_from;
  std::string module = source.empty() ? "" : without_paths(source), least;
  if (!module.empty()) {
    out.write("module.hlo", module);
    // The script runs it on one device.
    if (a.engine.partitions == 1) out.write("run_with_jax.py", jax_script());
    if (!write_arrays(out, s.scratch + "/shown.npz", "inputs.npz") && a.inputs.ends_with(".npz"))
      write_arrays(out, a.inputs, "inputs.npz");
    write_arrays(out, s.scratch + "/expected.npz", "expected.npz");
  }
  bool runs = !module.empty() && a.engine.partitions == 1;
  for (const auto& [name, content] : v.smallest) {
    if (name == "smallest/module.hlo") least = content;
    runs = runs || name == "smallest/run_with_jax.py";
  }
  out.write("issue.md", issue_text(a, s, j, least.empty() ? module : least, !least.empty(), runs));
}

}  // namespace hlo
