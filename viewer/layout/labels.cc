#include "viewer/layout/labels.h"

#include <algorithm>

#include "ir/print/print.h"

namespace hlo {
namespace {

constexpr size_t kMostLetters = 34, kMostConstants = 4, kLongestName = 200;
constexpr float kLetter = 6.3f, kLine = 14, kLeastBox = 56;

size_t letters_of(std::string_view text) {
  size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::string short_constant(const Module& m, InstId i) {
  if (m.op(i) == Opcode::Broadcast) i = m.operand(i, 0);
  if (m.literal(i).elided) return "{…}";
  return shown_text(literal_text(m.u(), m.literal_id(i), false), 16);
}

}  // namespace

std::string_view box_kind_text(BoxKind kind) {
  static constexpr std::string_view kNames[] = {"op", "folded", "open"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view drawn_class_text(DrawnClass cls) {
  static constexpr std::string_view kNames[] = {"parameter",  "constant",    "elementwise", "movement",
                                                "reduction",  "contraction", "fusion",      "library",
                                                "collective", "control",     "tuple",       "other"};
  return kNames[static_cast<size_t>(cls)];
}

std::string_view mark_text(Mark mark) {
  static constexpr std::string_view kNames[] = {"same", "leaves", "changed", "fused", "new"};
  return kNames[static_cast<size_t>(mark)];
}

DrawnClass drawn_class(const Module& m, InstId i) {
  Opcode op = m.op(i);
  if (op == Opcode::Parameter) return DrawnClass::kParameter;
  if (op == Opcode::Constant || op == Opcode::Iota) return DrawnClass::kConstant;
  switch (op_info(op).cls) {
    case OpClass::Elementwise:
    case OpClass::Rng:
      return DrawnClass::kElementwise;
    case OpClass::Move:
    case OpClass::Gather:
      return DrawnClass::kMovement;
    case OpClass::Reduce:
    case OpClass::Window:
    case OpClass::Scatter:
    case OpClass::BatchNorm:
    case OpClass::Sort:
      return DrawnClass::kReduction;
    case OpClass::Dot:
    case OpClass::Conv:
    case OpClass::LinearAlgebra:
      return DrawnClass::kContraction;
    case OpClass::Fusion:
      return DrawnClass::kFusion;
    case OpClass::Custom:
      return DrawnClass::kLibrary;
    case OpClass::Collective:
    case OpClass::Io:
      return DrawnClass::kCollective;
    case OpClass::Call:
      return DrawnClass::kControl;
    case OpClass::Async:
      return m.called(i).empty() ? DrawnClass::kOther : drawn_class(m, m.comp(m.called(i)[0]).root);
    case OpClass::Tuple:
      return DrawnClass::kTuple;
    default:
      return DrawnClass::kOther;
  }
}

std::string shown_text(std::string_view text, size_t letters) {
  size_t n = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    if ((static_cast<unsigned char>(text[k]) & 0xC0) == 0x80) continue;
    if (++n == letters && letters_of(text.substr(k)) > 1) return std::string(text.substr(0, k)) + "…";
  }
  return std::string(text);
}

void describe(const Folding& f, InstId i, DrawnBox* box) {
  const Module& m = f.module();
  box->key = fmt::format("i{}", i.value);
  box->id = i;
  box->label = shown_text(m.inst_name(i), kLongestName);
  box->opcode = op_text(m.op(i));
  box->cls = drawn_class(m, i);
  box->detail = shown_text(m.u().shape_text_plain(m.shape_id(i)), 60);
  if (m.op(i) == Opcode::GetTupleElement) box->detail += fmt::format(" · #{}", m.attrs(i).integer(Attr::index));
  if (StrId target = m.attrs(i).text(Attr::custom_call_target); target.valid())
    box->detail = fmt::format("{} · {}", shown_text(m.u().text(target), 40), box->detail);
  if (m.op(i) == Opcode::Constant && m.shape(i).is_array() && m.shape(i).elements_count() <= 8)
    box->detail += " " + short_constant(m, i);
  for (CompId c : m.called(i))
    if (InstId root = m.comp(c).root; root.valid() && f.hidden(root))
      box->detail += fmt::format(" · {}", op_text(m.op(root)));
  size_t told = 0;
  auto operands = m.operands(i);
  for (size_t k = 0; k < operands.size() && told < kMostConstants; ++k) {
    if (!f.hidden(operands[k])) continue;
    box->detail += fmt::format(" · {}: {}", k, short_constant(m, operands[k]));
    ++told;
  }
}

void describe(const Folding& f, const FoldGroup& g, DrawnBox* box) {
  const Module& m = f.module();
  if (g.kind == FoldGroup::Kind::kCall)
    describe(f, g.inst, box);
  else if (g.kind == FoldGroup::Kind::kParameters)
    box->cls = DrawnClass::kParameter;
  else if (g.kind == FoldGroup::Kind::kResults)
    box->cls = DrawnClass::kTuple;
  else if (g.kind == FoldGroup::Kind::kComputation || g.kind == FoldGroup::Kind::kUncalled)
    box->cls = DrawnClass::kControl;
  box->key = g.key, box->label = shown_text(g.label, kLongestName), box->count = g.count, box->times = g.times;
  std::string inside = fmt::format("{} ops", g.count);
  if (g.times > 1) inside = fmt::format("{} × {} ops{}", g.times, g.count / g.times, g.alike ? "" : ", alike");
  auto some = [&](uint32_t n, const char* what) {
    if (n) inside += fmt::format(" · {} {}", n, what);
  };
  if (g.kind == FoldGroup::Kind::kCall && m.op(g.inst) == Opcode::Fusion) {
    inside += " · " + box->detail;
  } else if (g.kind != FoldGroup::Kind::kParameters && g.kind != FoldGroup::Kind::kResults) {
    some(g.contractions, g.contractions == 1 ? "dot" : "dots");
    some(g.fusions, g.fusions == 1 ? "fusion" : "fusions");
    some(g.library, g.library == 1 ? "library call" : "library calls");
    some(g.collectives, g.collectives == 1 ? "collective" : "collectives");
    some(g.loops, g.loops == 1 ? "loop" : "loops");
  }
  box->detail = std::move(inside);
}

void measure(DrawnBox* box) {
  size_t title = letters_of(box->label) + (box->times > 1 ? 5 : 0) + (box->kind == BoxKind::kFolded ? 2 : 0);
  size_t letters = std::min(kMostLetters, std::max(title, letters_of(box->detail)));
  box->w = std::max(kLeastBox, static_cast<float>(letters) * kLetter + 14);
  box->h = box->kind == BoxKind::kFolded ? 2 * kLine + 14 : 2 * kLine + 8;
}

}  // namespace hlo
