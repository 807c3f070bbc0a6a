// triage: a program that gives other bits each time. Two runs are held against each other: what they gave, what their
// autotuners chose, what was compiled; and what in the program has no order.
#include <algorithm>

#include "replay/cli/json_output.h"
#include "replay/cli/triage/triage.h"
#include "replay/hunt/unordered.h"
#include "replay/os/files.h"

namespace hlo {
namespace {

std::string read_two_outputs(const Json& j, TriageVerdict& v) {
  v.two_outputs = true;
  for (const Json& o : j["outputs"]) {
    const bool bits = o["different"].is_number() && o["different"].get<double>() > 0;
    if (!bits && o["equal"] == true) continue;
    v.other_bits.push_back(text_of(o, "name"));
    if (v.details.size() < 4)
      v.details.push_back(fmt::format(
          "{} has other bits in {} of {} elements{}", text_of(o, "name"), bits ? o["different"].dump() : "some",
          o["elements"].dump(),
          o["absolute"].is_number() ? fmt::format(", at most {:.3g} apart", o["absolute"].get<double>()) : ""));
  }
  if (v.other_bits.empty()) {
    v.word = "nothing", v.sure = "proved", v.decided = true, v.inputs = 1;
    v.why = "both runs gave the same bits";
    return v.why;
  }
  return fmt::format("{} of {} outputs have other bits", v.other_bits.size(), j["outputs"].size());
}

std::string read_choices(const Json& j, TriageVerdict& v) {
  if (j["same"] == true) return "both autotuners chose the same";
  std::vector<std::string> names;
  size_t changes = 0;
  for (const Json& c : j["comparisons"])
    for (const Json& change : c["changes"]) {
      ++changes;
      if (names.size() < 3 && change["first_kernels"].is_array() && !change["first_kernels"].empty() &&
          change["first_kernels"][0].is_string())
        names.push_back(change["first_kernels"][0].get<std::string>());
      if (v.details.size() < 8 && !text_of(change, "numbers").empty()) v.details.push_back(text_of(change, "numbers"));
    }
  if (changes == 0) return "kernels differ, and none of them is one that the autotuner chose for";
  v.word = "contract", v.sure = "proved", v.decided = true;
  if (!names.empty()) v.instruction = names[0];
  v.why = fmt::format(
      "the two runs' autotuners chose otherwise for {} kernel{}{}; the choices of one of them "
      "(--xla_gpu_load_autotune_results_from), or --xla_gpu_autotune_level=0, make them the same",
      changes, changes == 1 ? "" : "s", names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")));
  return fmt::format("{} kernels were chosen otherwise", changes);
}

std::string read_programs(const Json& j, TriageVerdict& v) {
  if (j["ranks"].empty()) {
    v.details.push_back("both runs compiled the same program, stage by stage");
    return "the same program in both, stage by stage";
  }
  const Json& r = j["ranks"][0];
  const std::string first = text_of(r, "first");
  const bool given = first.find("before_optimizations") != std::string::npos || first.starts_with("it is only");
  v.stage = first, v.decided = true, v.sure = "proved";
  v.word = given ? "program" : "unknown";
  v.why = fmt::format("module {}: {}: {}", text_of(r, "module"), first,
                      given ? "the two runs were given different programs"
                            : "the two compilations part there; whether release, flags and GPU were the same, the "
                              "dumps do not record");
  return v.why;
}

// The first that decides, if one does: of those that reach an output with other bits, where outputs were given.
std::string read_unordered(const Json& j, TriageVerdict& v) {
  v.decided = true;
  const Json &sites = j["contracts"], &reached = j["reached"];
  std::vector<size_t> may;  // of the sites those that can explain it
  std::vector<std::string> unexplained = v.other_bits;
  for (size_t k = 0; k < sites.size(); ++k) {
    bool any = v.other_bits.empty();
    for (const Json& o : reached[k])
      for (const std::string& name : v.other_bits)
        if (o == name) any = true, std::erase(unexplained, name);
    if (any) may.push_back(k);
  }
  v.contracts = Json::array();
  for (size_t k : may) v.contracts.push_back(sites[k]);
  if (may.empty() || !unexplained.empty()) {
    const std::string which =
        unexplained.empty()
            ? ""
            : fmt::format("{}: ",
                          fmt::join(unexplained.begin(),
                                    unexplained.begin() + std::min<ptrdiff_t>(std::ssize(unexplained), 4), ", "));
    v.word = v.two_outputs ? "unknown" : "nothing", v.sure = v.two_outputs ? "proved" : "guessed";
    v.why = fmt::format("{}{}; not seen: {}", which,
                        sites.empty() ? "no instruction is known to give other bits each time"
                                      : "no instruction that is known to give other bits each time reaches it",
                        kUnorderedNotSeen);
    if (!may.empty()) v.details.push_back("the other outputs that differ depend on instructions without an order");
    return may.empty() ? "nothing of the kind" : "not all of it";
  }
  size_t first = may[0];
  for (size_t k : may)
    if (sites[k]["decides"] == true) {
      first = k;
      break;
    }
  const Json& c = sites[first];
  v.word = "contract", v.sure = c["decides"] == true && !v.two_outputs ? "proved" : "guessed";
  if (v.two_outputs && c["decides"] == true) v.sure = "tested", v.inputs = 1;
  v.instruction = c["instruction"], v.source = c["source"];
  v.why = fmt::format("{} ({}): {}", text_of(c, "instruction"), text_of(c, "kind"), text_of(c, "what"));
  if (may.size() > 1) v.why += fmt::format("; {} more", may.size() - 1);
  for (size_t k : may)
    if (v.details.size() < 8)
      v.details.push_back(fmt::format("{} ({}): {}", text_of(sites[k], "instruction"), text_of(sites[k], "kind"),
                                      text_of(sites[k], "what")));
  return v.why;
}

}  // namespace

void add_rungs_of_runs(const TriageArgs& a, const TriageSubject& s, std::vector<TriageRung>& out) {
  const bool two = s.others.size() == 1;
  const char* kOne = "one run alone: triage RUN0 RUN1 --complaint=not-reproducible";
  TriageRung outputs{"outputs", 2, "", nullptr, nullptr, ""};
  outputs.command = fmt::format("hlo-replay compare {} {}", shell_word(a.outputs), shell_word(a.again));
  if (a.outputs.empty() || a.again.empty())
    outputs.left_out = "outputs of two runs were not given (--outputs, --outputs-again)";
  CompareArgs c;
  c.a = a.outputs, c.b = a.again, c.json = true;
  outputs.job = [c](double) { return cmd_compare(c); };
  outputs.read = [](const Json& j, int, TriageVerdict& v) { return read_two_outputs(j, v); };
  out.push_back(std::move(outputs));

  TriageRung choices{"choices", 3, "", nullptr, nullptr, two ? "" : kOne};
  if (two) choices.command = fmt::format("hlo-replay tuned {} {}", shell_word(s.label), shell_word(s.others[0]));
  TunedArgs t;
  t.file = s.spec, t.other = two ? s.others[0] : "", t.json = true;
  choices.job = [t](double) { return cmd_tuned(t); };
  choices.read = [](const Json& j, int, TriageVerdict& v) { return read_choices(j, v); };
  out.push_back(std::move(choices));

  TriageRung programs{"programs", 5, "", nullptr, nullptr, two ? "" : kOne};
  if (two) programs.command = fmt::format("hlo-replay diff {} {}", shell_word(s.label), shell_word(s.others[0]));
  programs.job = [&s](double) { return compare_ranks(s); };
  programs.read = [](const Json& j, int, TriageVerdict& v) { return read_programs(j, v); };
  out.push_back(std::move(programs));

  TriageRung sites{"unordered", 3,       "hlo-replay search " + shell_word(s.label) + " --opcode=scatter",
                   nullptr,     nullptr, ""};
  if (s.kind == TriageSubject::kLog) sites.left_out = "there is no module: triage DIR";
  sites.job = [&s](double) { return unordered_sites(s); };
  sites.read = [](const Json& j, int, TriageVerdict& v) { return read_unordered(j, v); };
  out.push_back(std::move(sites));
}

}  // namespace hlo
