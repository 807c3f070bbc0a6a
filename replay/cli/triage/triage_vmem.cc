// triage: a TPU's kernel that asks for more vmem than there is: who made it, its operands, whether a limit helps.
#include <algorithm>

#include "ir/program/buffer.h"
#include "ir/query/find_instruction.h"
#include "ir/query/source_lines.h"
#include "ir/types/tiling.h"
#include "replay/cli/engine.h"
#include "replay/cli/json_output.h"
#include "replay/cli/triage/triage.h"
#include "replay/os/files.h"
#include "replay/record/files/run.h"
#include "replay/record/start/target.h"
#include "replay/report/explain/evidence.h"

namespace hlo {
namespace {

// An array with what fills up its tiles; 0 for tuples.
int64_t bytes_in_tiles(const Module& m, ShapeId id) {
  const Shape& s = m.u()[id];
  if (!s.is_array()) return 0;
  const std::optional<TiledOrder> order = has_tiles(s) ? TiledOrder::of(s) : std::nullopt;
  const int64_t elements = s.elements_count();
  const int64_t bytes = m.u().byte_size(id);
  return order && elements > 0 ? bytes / elements * order->places() : bytes;
}

Json array_json(const Module& m, InstId i, const std::string& what) {
  return {{"what", what},
          {"name", m.inst_name(i)},
          {"shape", m.u().shape_text(m.shape_id(i))},
          {"bytes", bytes_in_tiles(m, m.shape_id(i))}};
}

// The instruction in the last stage that has it: who made it, of what. Prints an object.
int vmem_site(const TriageSubject& s, const std::string& name) {
  for (const Recording& r : s.modules) {
    const std::optional<size_t> row = final_row(r);
    if (!row) continue;
    const std::unique_ptr<Module> m = load(r.folder + "/" + r.text_file(*row));
    const InstId i = find_instruction(*m, name);
    if (!i.valid()) continue;
    Provenance stages(r, *m);
    const Opcode op = m->op(i);
    const FindingEvidence e = stages.made(i, [op](const Module& o, InstId k) { return o.op(k) == op; });
    Json operands = Json::array();
    for (InstId o : m->operands(i)) operands.push_back(array_json(*m, o, fmt::format("operand {}", operands.size())));
    operands.push_back(array_json(*m, i, "result"));
    const SourceLine line = source_line(*m, i);
    print_json({{"module", r.module_name},
                {"stage", r.rows[*row].name()},
                {"pass", e.pass.empty() ? Json() : Json(e.pass)},
                {"made_in", e.stage.empty() ? Json() : Json(e.stage)},
                {"first", e.first.empty() ? Json() : Json(e.first)},
                {"source", line.known()     ? Json(line.text())
                           : e.line.known() ? Json(e.line.text())
                                            : Json()},
                {"op_name", e.op_name.empty() ? Json() : Json(e.op_name)},
                {"arrays", operands}});
    return kYes;
  }
  print_json({{"module", Json()}});
  return kNo;
}

std::string read_vmem_site(const Json& j, TriageVerdict& v) {
  const std::string module = text_of(j, "module");
  if (module.empty()) return "no last stage of the dump has that instruction";
  std::string told = fmt::format("{} of {}", text_of(j, "stage"), module);
  if (const std::string pass = text_of(j, "pass"); !pass.empty()) {
    v.pass = pass, told += ", made by pass " + pass;
    v.details.push_back("made by pass " + pass);
  } else if (!text_of(j, "first").empty()) {
    told += ", the program's own";
    v.details.push_back("it is the program's own: no pass made it");
  }
  if (const std::string first = text_of(j, "first"); !first.empty()) v.details.push_back("it goes back to " + first);
  if (const std::string source = text_of(j, "source"); !source.empty()) v.source = source;
  for (const Json& a : j["arrays"])
    if (v.details.size() < 16)
      v.details.push_back(fmt::format("{} {}: {} {}", text_of(a, "what"), text_of(a, "name"),
                                      human_bytes(a["bytes"].get<int64_t>()), text_of(a, "shape")));
  return told;
}

// A topology of the kind that the dump was compiled for; v5e where it does not say.
std::string topology_of(const TriageSubject& s) {
  for (const Recording& r : s.modules) {
    const std::string device = target_of(r, "").device;
    for (const auto& [chip, topology] :
         {std::pair("v5p", "tpu:v5p:2x2x1"), {"v6e", "tpu:v6e:2x2"}, {"v4", "tpu:v4:2x2x1"}})
      if (device.find(chip) != std::string::npos) return topology;
  }
  return "tpu:v5e:2x2";
}

// Compiles the module as it is, which must run out of vmem, and then with the flag. Prints an object.
int try_limit(const TriageArgs& a, const std::string& file, const std::string& flag, double seconds) {
  constexpr size_t kLongestWhy = 200;
  auto why_refused = [&](const std::string& flags) -> std::optional<std::string> {
    const TemporaryFolder folder;
    EngineArgs engine = a.engine;
    engine.limit_seconds = seconds / 2, engine.offline = !a.engine.yes;
    engine.flags += (engine.flags.empty() ? "" : " ") + flags;
    try {
      compile_by_xla(engine, file, folder.path());
    } catch (const Failure& f) {
      return std::string(f.what());
    }
    return std::nullopt;
  };
  auto no_vmem = [](const std::string& why) { return vmem_overflow(why).has_value(); };
  auto told = [&](const char* outcome, const std::string& why) {
    print_json({{"outcome", outcome}, {"why", why.substr(0, std::min(why.find('\n'), kLongestWhy))}});
    return static_cast<int>(kYes);
  };
  const std::optional<std::string> as_it_is = why_refused("");
  if (!as_it_is) return told("not-seen", "libtpu compiles it as it is");
  if (!no_vmem(*as_it_is)) return told("not-seen", *as_it_is);
  const std::optional<std::string> with_limit = why_refused(flag);
  if (!with_limit) return told("fits", "");
  return told(no_vmem(*with_limit) ? "refused" : "not-seen", *with_limit);
}

TriageRung limit_rung(const TriageArgs& a, const TriageSubject& s, const VmemOverflow& v) {
  const std::string file = first_stage_of(s);
  const bool tpu = a.engine.installed() && a.engine.target.starts_with("tpu");
  const std::string target = tpu ? a.engine.target : topology_of(s);
  const std::string flag = fmt::format("--xla_tpu_scoped_vmem_limit_kib={}", vmem_limit_kib(v));
  TriageRung r{"vmem-limit", 20, "", nullptr, nullptr, ""};
  r.command = fmt::format("hlo-replay replay {} --engine={} --target={} --xla-flags={} -o fits", shell_word(file),
                          a.engine.installed() ? a.engine.engine : "installed", target, flag);
  if (file.empty())
    r.left_out = "no stage has a text";
  else if (s.modules.size() > 1)
    r.left_out = "several modules: name one, DIR:MODULE";
  else if (!tpu)
    r.left_out = "not tried: --engine=installed --target=" + target + " compiles it by libtpu, without a TPU";
  r.job = [&a, file, flag](double seconds) { return try_limit(a, file, flag, seconds); };
  r.read = [flag](const Json& j, int, TriageVerdict& verdict) {
    const std::string outcome = text_of(j, "outcome"), why = text_of(j, "why");
    std::string told = outcome == "fits"      ? "tried: libtpu refuses it as it is, and compiles it with " + flag
                       : outcome == "refused" ? fmt::format("tried: libtpu refuses it with {}, too: {}", flag, why)
                                              : "not tried: " + why;
    verdict.details.insert(verdict.details.begin(), told);
    if (outcome == "fits") verdict.why += "; " + told;
    return told;
  };
  return r;
}

}  // namespace

std::string words_of_vmem(const VmemOverflow& o, TriageVerdict& v) {
  v.word = "program", v.sure = "proved", v.decided = false;
  const std::string who = o.instruction.empty() ? "a kernel" : o.instruction;
  if (!o.instruction.empty()) v.instruction = o.instruction;
  if (!o.source.empty()) v.source = o.source;
  v.why = fmt::format("{}{} asks for {} of vmem, and {} {}", who,
                      o.custom_call      ? " (Pallas)"
                      : o.opcode.empty() ? ""
                                         : fmt::format(" ({})", o.opcode),
                      human_bytes(o.asked), o.scoped ? "its limit is" : "the chip has", human_bytes(o.limit));
  if (!o.op_name.empty()) v.why += ", " + o.op_name;
  for (const std::string& advice : vmem_advice(o)) v.details.push_back(advice);
  for (const VmemPart& p : o.parts)
    if (v.details.size() < 10)
      v.details.push_back(fmt::format("{} {}{}{}", human_bytes(p.bytes), p.what,
                                      p.window.empty() ? "" : fmt::format(", blocks {} of {}", p.window, p.whole),
                                      p.copies > 1 ? fmt::format(", {} copies", p.copies) : ""));
  return v.why;
}

void add_vmem_rungs(const TriageArgs& a, const TriageSubject& s, std::vector<TriageRung>& out) {
  const VmemOverflow& v = *s.vmem;
  TriageRung site{"vmem",  10,      "hlo-replay explain " + shell_word(s.label) + " " + shell_word(v.instruction),
                  nullptr, nullptr, ""};
  if (s.kind != TriageSubject::kDump)
    site.left_out = "there is no dump: triage DIR --log=FILE";
  else if (v.instruction.empty())
    site.left_out = "the text names no instruction";
  site.job = [&s, name = v.instruction](double) { return vmem_site(s, name); };
  site.read = [](const Json& j, int, TriageVerdict& verdict) { return read_vmem_site(j, verdict); };
  out.push_back(std::move(site));
  if (vmem_limit_kib(v) > 0) out.push_back(limit_rung(a, s, v));
}

}  // namespace hlo
