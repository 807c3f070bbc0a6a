// Drawings of states: what is open, where it stands, what differs from another state.
#include <algorithm>
#include <cmath>

#include "ir/base/base64.h"
#include "ir/base/check.h"
#include "viewer/engine/session.h"
#include "viewer/layout/folding.h"
#include "viewer/layout/layout.h"
#include "viewer/layout/svg.h"

namespace hlo {
namespace {

// Does an id mean the same in both? In states of one module, of a bench and what it began with, and of rewrites of one
// run; of two rewrites' states it does for what both have, since the run is the same.
bool ids_agree(PageSession& session, StateRef a, StateRef b) {
  if (a.module == b.module) return true;
  return session.module(a.module).origin == b || session.module(b.module).origin == a;
}

// A name alone is no change: passes that rename would colour all of the graph.
bool looks_the_same(const Module& x, InstId i, const Module& y, InstId j) {
  const Inst &a = x[i], &b = y[j];
  if (a.op != b.op || a.shape != b.shape || a.attrs != b.attrs) return false;
  if (a.op == Opcode::Constant || a.op == Opcode::Parameter) return a.operand[0] == b.operand[0];
  auto p = x.operands(i), q = y.operands(j);
  return std::equal(p.begin(), p.end(), q.begin(), q.end());
}

// Of each instruction of `s`, seen from another state: what is new here or different, what is in a fusion now, what the
// other, a later one, does not have.
std::vector<Mark> marks_against(PageSession& session, OpenState& s, StateRef against) {
  std::shared_ptr<OpenState> other = session.state(against);
  std::vector<Mark> out(s.m.inst_slots(), Mark::kSame);
  const bool by_id = ids_agree(session, s.at, against), universe = &s.m.u() == &other->m.u();
  const bool later = s.at.module == against.module && against.state > s.at.state;
  for (InstId i : s.in_order()) {
    InstId j = by_id ? (other->m.alive(i) ? i : InstId()) : other->named(s.m.inst_name(i));
    Mark& mark = out[i.value];
    if (!j.valid()) {
      mark = later ? Mark::kLeaves : s.fusion_of(i).valid() || s.m.op(i) == Opcode::Fusion ? Mark::kFused : Mark::kNew;
    } else if (!later && s.fusion_of(i).valid() && !other->fusion_of(j).valid()) {
      mark = Mark::kFused;
    } else if (by_id && universe) {
      if (!looks_the_same(s.m, i, other->m, j)) mark = Mark::kChanged;
    } else if (s.m.op(i) != other->m.op(j) ||
               s.m.u().shape_text(s.m.shape_id(i)) != other->m.u().shape_text(other->m.shape_id(j))) {
      mark = Mark::kChanged;
    }
  }
  return out;
}

struct Drawn {
  std::shared_ptr<OpenState> state;
  std::shared_ptr<const Drawing> drawing;
};

Drawn drawn(PageSession& session, const Question& q) {
  Drawn out;
  const StateRef at = q.state("at");
  out.state = session.state(at);
  LayoutOptions options;
  if (q.flag_or("all", false)) {
    options.open = LayoutOptions::Open::kAll;
  } else if (q.has("open")) {
    options.open = LayoutOptions::Open::kThese;
    for (std::string& key : q.texts("open")) options.keys.insert(std::move(key));
  }
  options.within = q.text_or("within", "");
  if (auto against = q.state_if("against")) options.marks = marks_against(session, *out.state, *against);
  // What stays put in the state that was drawn before stays where it was.
  std::shared_ptr<const Drawing> before = session.last_drawing(at.module, options.within);
  options.before = before.get();
  out.drawing = std::make_shared<const Drawing>(lay_out(out.state->folding(), options));
  session.keep_drawing(at.module, options.within, out.drawing);
  return out;
}

// Quarters of a pixel: short numbers, the same everywhere.
Json place(float v) { return std::round(static_cast<double>(v) * 4) / 4; }

// 32-bit integers of quarters of a pixel, the lowest byte first, as base64: of a large drawing they are most of the
// answer, and as JSON numbers they took longer than all of the layout.
std::string packed_places(const std::vector<float>& values) {
  std::string bytes(values.size() * 4, '\0');
  char* to = bytes.data();
  for (float v : values) {
    auto quarters = static_cast<uint32_t>(std::llround(v * 4));
    for (int shift = 0; shift < 32; shift += 8) *to++ = static_cast<char>(quarters >> shift & 0xFF);
  }
  return base64(bytes);
}

Json boxes_json(const std::vector<DrawnBox>& boxes) {
  using List = Json::array_t;
  auto column = [&](const auto& value) {
    List list;
    list.reserve(boxes.size());
    for (const DrawnBox& b : boxes) list.emplace_back(value(b));
    return list;
  };
  return {{"key", column([](const DrawnBox& b) { return b.key; })},
          {"parent", column([](const DrawnBox& b) {
             return b.parent == DrawnBox::kNoBox ? int64_t{-1} : static_cast<int64_t>(b.parent);
           })},
          {"x", column([](const DrawnBox& b) { return place(b.x); })},
          {"y", column([](const DrawnBox& b) { return place(b.y); })},
          {"w", column([](const DrawnBox& b) { return place(b.w); })},
          {"h", column([](const DrawnBox& b) { return place(b.h); })},
          {"kind", column([](const DrawnBox& b) { return box_kind_text(b.kind); })},
          {"label", column([](const DrawnBox& b) { return b.label; })},
          {"detail", column([](const DrawnBox& b) { return b.detail; })},
          {"cls", column([](const DrawnBox& b) { return drawn_class_text(b.cls); })},
          {"opcode", column([](const DrawnBox& b) { return b.opcode; })},
          {"id", column([](const DrawnBox& b) { return json_of(b.id); })},
          {"count", column([](const DrawnBox& b) { return b.count; })},
          {"times", column([](const DrawnBox& b) { return b.times; })},
          {"change", column([](const DrawnBox& b) { return mark_text(b.change); })}};
}

Json q_drawing(PageSession& session, const Question& q) {
  q.only({"at", "open", "all", "against", "within"});
  Drawn d = drawn(session, q);
  const DrawnEdges& e = d.drawing->edges;
  return {
      {"state", json_of(d.state->at)},
      {"width", place(d.drawing->width)},
      {"height", place(d.drawing->height)},
      {"boxes", boxes_json(d.drawing->boxes)},
      {"edges",
       {{"from", e.from}, {"to", e.to}, {"points", packed_places(e.points)}, {"start", e.start}, {"label", e.label}}},
      {"total", d.drawing->total},
      {"folded", d.drawing->folded}};
}

Json q_svg(PageSession& session, const Question& q) {
  q.only({"at", "open", "all", "against", "within"});
  Drawn d = drawn(session, q);
  return {{"svg", drawing_svg(d.state->m, *d.drawing)}};
}

}  // namespace

std::vector<NamedMethod> drawing_methods() { return {{"drawing", q_drawing}, {"svg", q_svg}}; }

}  // namespace hlo
