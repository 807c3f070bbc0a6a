// Findings held against the first stage.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "replay/os/interrupt.h"
#include "replay/report/explain/explain.h"
#include "replay/report/findings/findings_parts.h"
#include "replay/report/overview/module_findings.h"

namespace hlo {
namespace {

// Passes that pad what the program can ask for otherwise, and how.
struct PaddingPass {
  std::string_view pass, advice;
};
constexpr std::array<PaddingPass, 4> kPaddingPasses = {{
    {"cublas-pad-for-gemms",
     "make the dimension in the model such that the product needs no padding (a multiple of 8)"},
    {"cudnn_pad_for_convolutions", "make the number of features one that tensor cores take (a multiple of 8)"},
    {"conv-padding-legalization",
     "the padding differs between the two sides; a symmetric one needs no separate kernel"},
    {"cudnn-conv-padding", "the padding differs between the two sides; a symmetric one needs no separate kernel"},
}};

bool f32_operands(const Module& m, InstId i) {
  if (m.operand_count(i) < 2) return true;  // it is no product there, and nothing is told by it
  const Shape &a = m.shape(m.operand(i, 0)), &b = m.shape(m.operand(i, 1));
  return a.is_array() && b.is_array() && a.type == ElementType::F32 && b.type == ElementType::F32;
}

FindingEvidence evidence_for(const ModuleFinding& f, Provenance& stages) {
  const InstId odd = f.odd.valid() ? f.odd : f.inst;
  if (f.kind == "widened-product" || f.kind == "f32-product") return stages.became(odd, f32_operands);
  if (f.kind == "padded-product")
    return stages.made(odd, [](const Module& m, InstId i) { return m.op(i) == Opcode::Pad; });
  if (f.kind == "transposed-parameter" || f.kind == "copy-at-loop" || f.kind == "copy-of-donated")
    return stages.made(
        odd, [](const Module& m, InstId i) { return m.op(i) == Opcode::Copy || m.op(i) == Opcode::Transpose; });
  if (f.kind == "constant-in-loop")
    return stages.made(odd, [](const Module& m, InstId i) { return m.op(i) == Opcode::Broadcast; });
  // The program's own operations: what is odd about them is no instruction that a pass could have made.
  FindingEvidence e = stages.made(odd, [](const Module&, InstId) { return true; });
  if (f.kind == "unfused-chain" || f.kind == "single-reader" || f.kind == "tiny-products")
    e.whose = FindingEvidence::kUnknown, e.stage.clear(), e.pass.clear();
  return e;
}

// Where it stands in the program: what a pass made of a value without a place is placed by what reads it.
void place(const FindingsInput& in, Provenance& stages, ModuleFinding* f) {
  FindingEvidence& e = f->evidence;
  const bool padded = f->kind == "padded-product" && e.whose == FindingEvidence::kPass;
  const InstId root = in.m.comp(in.m.entry()).root;
  if (f->kind == "missing-donation" && !f->results.empty()) {  // state has no line but that of its new value
    const int64_t k = f->results[0];
    InstId made = k < 0 || in.m.op(root) != Opcode::Tuple ? root : in.m.operand(root, static_cast<size_t>(k));
    const FindingEvidence of = stages.made(in.computed(made), [](const Module&, InstId) { return true; });
    if (of.line.known()) e.line = of.line, e.stack = of.stack;
  }
  if (e.line.known() && !padded) return;
  for (InstId reader : padded ? f->others : readers(in.m, f->inst)) {
    const InstId product = kernel_product(in.m, reader);
    FindingEvidence of = stages.made(product.valid() ? product : reader, [](const Module&, InstId) { return true; });
    if (padded && !of.first.empty()) e.first = of.first;
    if (!of.line.known()) continue;
    e.line = std::move(of.line), e.stack = std::move(of.stack), e.op_name = std::move(of.op_name);
    return;
  }
}

// False: a pass did it, and nothing that the program says otherwise changes it.
bool can_be_helped(ModuleFinding* f) {
  const FindingEvidence& e = f->evidence;
  if (e.whose == FindingEvidence::kProgram && f->kind == "padded-product" && f->advice.starts_with("ask which")) {
    f->advice = "the program pads it: give it the padded size from the start, or let the product take it as it is";
    return true;
  }
  if (e.whose != FindingEvidence::kPass) return true;
  if (f->kind == "widened-product" || f->kind == "f32-product" || f->kind == "constant-in-loop") return false;
  if (f->kind != "padded-product") return true;
  for (const PaddingPass& p : kPaddingPasses)
    if (p.pass == e.pass) {
      f->advice = p.advice;
      return true;
    }
  return false;
}

}  // namespace

std::vector<ModuleFinding> all_findings(const FindingsInput& in, Provenance& stages) {
  std::vector<ModuleFinding> out = all_findings(in);
  if (!stages.known()) {
    for (ModuleFinding& f : out) f.evidence = stages.made(f.odd.valid() ? f.odd : f.inst, {});
    return out;
  }
  std::vector<ModuleFinding> scalars = scalars_that_widen(in, stages);
  std::set<InstId> explained;  // f32 where it is used: told where it begins
  for (const ModuleFinding& f : scalars) explained.insert(f.others.begin(), f.others.end());
  std::erase_if(out, [&](ModuleFinding& f) {
    if (f.kind == "f32-product" && explained.contains(f.inst)) return true;
    f.evidence = evidence_for(f, stages);
    place(in, stages, &f);
    return !can_be_helped(&f);
  });
  constexpr size_t kAsked = 4;  // pairs whose decisions are looked up: files of decisions are long
  size_t asked = 0;
  for (ModuleFinding& f : out) {
    if ((f.kind != "single-reader" && f.kind != "unfused-chain") || asked++ >= kAsked) continue;
    if (std::string why = stages.why_apart(f.inst, f.others[0]); !why.empty()) f.advice = "kept apart: " + why;
  }
  out.insert(out.end(), std::make_move_iterator(scalars.begin()), std::make_move_iterator(scalars.end()));
  std::stable_sort(out.begin(), out.end(), [](const ModuleFinding& x, const ModuleFinding& y) {
    return std::pair(x.seconds, x.bytes) > std::pair(y.seconds, y.bytes);
  });
  return out;
}

std::vector<ModuleFinding> module_findings(const ModuleOverview& o, Provenance& stages) {
  if (!o.last) return {};
  std::vector<ModuleFinding> out = all_findings(FindingsInput(*o.last, o.cost, o.target.spec), stages);
  const UserFrames frames = user_frames(*o.last, o.cost);
  for (ModuleFinding& f : out)
    if (SourceLine line = frames.of(f.evidence.stack); line.known()) f.evidence.line = std::move(line);
  return out;
}

UserFrames user_frames(const Module& m, const ModuleCost& cost) {
  std::vector<std::pair<InstId, double>> weights;
  for (const KernelCost& k : cost.kernels) weights.emplace_back(k.inst, k.seconds);
  return UserFrames(m, weights);
}

bool FindingTried::helps() const {
  if (outcome != kCompiled) return false;
  return seconds_after < 0.999 * seconds || bytes_after < 0.999 * bytes ||
         (least_freed > 0 && bytes - bytes_after >= least_freed);
}

std::string evidence_text(const ModuleFinding& f) {
  const FindingEvidence& e = f.evidence;
  std::vector<std::string> parts;
  if (e.first_stage.empty())
    parts.emplace_back("there are no stages that show where it comes from");
  else if (e.whose == FindingEvidence::kPass)
    parts.push_back(fmt::format("made by {}{}", e.stage, e.first.empty() ? "" : fmt::format(" of {}", e.first)));
  else if (e.whose == FindingEvidence::kProgram && !e.first.empty())
    parts.push_back(fmt::format("the program's own: {} of {}", e.first, e.first_stage));
  else if (!e.first.empty())
    parts.push_back(fmt::format("goes back to {} of {}", e.first, e.first_stage));
  else
    parts.push_back(fmt::format("what it was in {} is unknown", e.first_stage));
  if (f.seconds > 0) parts.push_back(fmt::format("costs {} by its bound", time_text(f.seconds)));
  if (f.bytes > 0) parts.push_back(fmt::format("frees {} at most", size_text(f.bytes)));
  const FindingTried& t = f.tried;
  if (t.outcome == FindingTried::kNotTried)
    parts.push_back(t.words.empty() ? std::string("not tried") : "not tried: " + t.words);
  else
    parts.push_back(fmt::format("tried ({}): {} → {}, {} → {} allocated{}", t.words, time_text(t.seconds),
                                time_text(t.seconds_after), size_text(t.bytes), size_text(t.bytes_after),
                                t.helps() ? "" : ": it changes nothing"));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string Provenance::why_apart(InstId a, InstId b) {
  try {
    const PairDecisions said =
        why_not_fused(recording_, std::string(last_.inst_name(a)), std::string(last_.inst_name(b)));
    if (!said.last.empty()) return said.last;
    if (!said.lines.empty()) return said.lines.back();
  } catch (const Failure&) {
    if (interrupted()) throw;  // nothing is recorded of them
  }
  return {};
}

}  // namespace hlo
