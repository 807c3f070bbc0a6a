// triage -o: the least that still shows what is wrong.
#include <filesystem>
#include <tuple>

#include "replay/cli/engine.h"
#include "replay/cli/triage/triage.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace {

// The module with less and less of it, as long as the installed XLA dies at the same line, or the same pass is named.
std::optional<TriageRung> reduced_rung(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found,
                                       const std::string& folder) {
  const bool named = found.word == "fault" && found.pass.is_string();
  if (s.compiled_from.empty() || !named || is_stablehlo(s.compiled_from)) return std::nullopt;
  const bool crash = s.complaint == Complaint::kCrash;
  if (s.complaint == Complaint::kHang || (crash && s.compiled)) return std::nullopt;
  ReduceArgs e;
  static_cast<RunArgs&>(e) = a;
  e.inputs.clear();
  const std::string& check = s.evidence.words.checks.empty() ? std::string() : s.evidence.words.checks[0];
  const std::string mark = crash ? check.empty() ? "crashed (" : check.substr(0, check.find(": "))
                                 : fmt::format("guilty: pass {} ", found.pass.get<std::string>());
  // What dies does so before it is run; what does not may never end.
  auto ask = [&](const std::string& tool) {
    const std::string engine = engine_in_command(a), grep = "2>&1 | grep -qF " + shell_word(mark);
    return crash ? fmt::format("d=$(mktemp -d); {} replay {{}}{} -o $d/x {}; r=$?; rm -r $d; exit $((1 - r))", tool,
                               engine, grep)
                 : fmt::format("if {} bisect {{}}{} --time-limit=10 {}; then exit 1; else exit 0; fi", tool, engine,
                               grep);
  };
  e.check = ask(shell_word(std::filesystem::read_symlink("/proc/self/exe").string()));
  e.file = s.compiled_from, e.json = e.force = true, e.out = folder + "/reduced";
  TriageRung r{"smallest", 1, "", nullptr, nullptr, ""};
  r.command = fmt::format("hlo-replay reduce {} --check={}", shell_word(s.label), shell_word(ask("hlo-replay")));
  r.job = [e, &a, &s](double seconds) {
    ReduceArgs within = e;
    within.seconds = seconds / 2;
    const int code = cmd_reduce(within);
    show_reduced(a, s, e.out, seconds / 4);
    return code;
  };
  r.read = [](const Json& j, int, TriageVerdict&) {
    return fmt::format("{} of {} instructions{}", j["instructions"].get<int64_t>(),
                       j["instructions_before"].get<int64_t>(), j["finished"] == true ? "" : ", not finished");
  };
  return r;
}

}  // namespace

std::optional<TriageRung> smallest_rung(const TriageArgs& a, const TriageSubject& s, const TriageVerdict& found,
                                        const std::string& folder, bool again) {
  TriageRung r{"smallest", 1, "", nullptr, nullptr, ""};
  const std::string first = first_stage_of(s);
  const bool stage =
      found.word == "fault" && s.kind != TriageSubject::kModule && !found.good_file.empty() && found.file.is_string();
  if (!again)
    if (std::optional<TriageRung> by_compiling = reduced_rung(a, s, found, folder)) return by_compiling;
  if (stage && found.instruction.is_string()) {
    // What stands for the pass is not here: the instruction and its operands, as they are on both sides.
    std::vector<ExtractArgs> parts;
    for (const auto& [file, name, out] :
         {std::tuple(found.file.get<std::string>(), found.instruction, "bad.hlo"),
          {found.good_file, found.before_name.is_string() ? found.before_name : found.instruction, "good.hlo"}}) {
      if (!name.is_string()) continue;
      ExtractArgs e;
      static_cast<RunArgs&>(e) = a;
      e.file = file, e.instruction = name.get<std::string>(), e.hops = 2, e.json = true, e.out = folder + "/" + out;
      e.inputs.clear();
      parts.push_back(e);
    }
    r.command = fmt::format("hlo-replay extract {} {} --hops=2", shell_word(found.file.get<std::string>()),
                            shell_word(found.instruction.get<std::string>()));
    r.job = [parts](double) {
      for (const ExtractArgs& e : parts) cmd_extract(e);
      return kYes;
    };
    r.read = [](const Json& j, int, TriageVerdict&) {
      return fmt::format("{} instructions", j["instructions"].is_number() ? j["instructions"].get<int64_t>() : 0);
    };
    return r;
  }
  if (stage) return std::nullopt;
  const bool nan = found.word == "program" && s.complaint == Complaint::kNan && found.sure == "tested";
  const bool own = found.word == "fault" && s.kind == TriageSubject::kModule && found.pass.is_string() && !stage;
  if (first.empty() || (!nan && !own)) return std::nullopt;
  ReduceArgs e;
  static_cast<RunArgs&>(e) = a;
  e.file = first, e.nan = nan, e.json = e.force = true, e.out = folder + "/reduced";
  if (own) e.passes = found.pass.get<std::string>();
  r.command = fmt::format("hlo-replay reduce {}{}{}", shell_word(s.kind == TriageSubject::kModule ? s.label : first),
                          nan ? " --nan" : " --passes=" + shell_word(e.passes), inputs_in_command(a));
  r.job = [e](double seconds) {
    ReduceArgs within = e;
    within.seconds = seconds * 2 / 3;
    return cmd_reduce(within);
  };
  r.read = [](const Json& j, int, TriageVerdict&) {
    return fmt::format("{} of {} instructions{}", j["instructions"].get<int64_t>(),
                       j["instructions_before"].get<int64_t>(), j["finished"] == true ? "" : ", not finished");
  };
  return r;
}

}  // namespace hlo
