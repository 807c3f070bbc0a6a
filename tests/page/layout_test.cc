// Layout of drawings: boxes do not overlap, edges go down, every instruction is counted once; hostile and large
// modules.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "parser/parser.h"
#include "viewer/layout/folding.h"
#include "viewer/layout/layout.h"
#include "viewer/layout/svg.h"

namespace hlo {
namespace {

std::unique_ptr<Module> parsed(const std::string& text) { return parse_module(text, std::make_shared<Universe>()); }

std::string file_text(const std::string& name) {
  std::ifstream in(std::string(HLO_TESTDATA) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A transformer of so many layers of 30 instructions, under scopes or without them.
std::string transformer(int layers, bool scopes) {
  std::string entry, shape = "f32[8,64]";
  auto line = [&](const std::string& name, const std::string& what, const std::string& scope) {
    entry += "  %" + name + " = " + what;
    if (scopes && !scope.empty()) entry += ", metadata={op_name=\"jit(f)/jit(main)/" + scope + "/op\"}";
    entry += "\n";
  };
  line("x", shape + " parameter(0)", "");
  line("mask", shape + " constant({...})", "");
  std::string x = "x";
  for (int k = 0; k < layers; ++k) {
    std::string n = std::to_string(k), layer = "layer_" + n, p = "l" + n + "_";
    for (int w = 0; w < 4; ++w)
      line(p + "w" + std::to_string(w), "f32[64,64] parameter(" + std::to_string(1 + 4 * k + w) + ")", "");
    for (int w = 0; w < 3; ++w)
      line(p + "d" + std::to_string(w),
           shape + " dot(%" + x + ", %" + p + "w" + std::to_string(w) +
               "), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
           layer + "/attention");
    line(p + "m", shape + " multiply(%" + p + "d0, %" + p + "d1)", layer + "/attention");
    line(p + "a", shape + " add(%" + p + "m, %mask)", layer + "/attention");
    line(p + "e", shape + " exponential(%" + p + "a)", layer + "/attention");
    line(p + "o", shape + " multiply(%" + p + "e, %" + p + "d2)", layer + "/attention");
    line(p + "r", shape + " add(%" + x + ", %" + p + "o)", layer);
    std::string y = p + "r";
    for (int s = 0; s < 16; ++s) {
      line(p + "t" + std::to_string(s), shape + (s % 2 ? " tanh(%" : " negate(%") + y + ")", layer + "/mlp");
      y = p + "t" + std::to_string(s);
    }
    line(p + "f", shape + " dot(%" + y + ", %" + p + "w3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
         layer + "/mlp");
    line(p + "x", shape + " add(%" + p + "r, %" + p + "f)", layer);
    x = p + "x";
  }
  return "HloModule transformer\n\nENTRY %main {\n" + entry + "  ROOT %out = f32[8,64] negate(%" + x + ")\n}\n";
}

bool overlap(const DrawnBox& a, const DrawnBox& b) {
  return a.x < b.x + b.w - 0.1f && b.x < a.x + a.w - 0.1f && a.y < b.y + b.h - 0.1f && b.y < a.y + a.h - 0.1f;
}

// What holds of every drawing.
void check(const Module& m, const Drawing& d, bool whole = true) {
  ASSERT_FALSE(d.boxes.empty());
  if (whole) {
    EXPECT_EQ(d.total, m.instruction_count());
  }
  std::set<std::string> keys;
  std::set<uint32_t> ids;
  uint64_t counted = 0;
  std::vector<std::vector<uint32_t>> children(d.boxes.size());
  float slack = 0.5f + std::max(d.width, d.height) * 1e-6f;  // of a float
  for (uint32_t k = 0; k < d.boxes.size(); ++k) {
    const DrawnBox& b = d.boxes[k];
    EXPECT_TRUE(keys.insert(b.key).second) << b.key;
    if (b.id.valid()) {
      EXPECT_TRUE(ids.insert(b.id.value).second) << b.key;
    }
    if (b.kind != BoxKind::kOpen) counted += b.count;
    if (b.kind == BoxKind::kOp) {
      EXPECT_EQ(b.count, 1u);
    }
    if (k == 0) continue;
    ASSERT_LT(b.parent, k);
    const DrawnBox& p = d.boxes[b.parent];
    ASSERT_EQ(p.kind, BoxKind::kOpen);
    ASSERT_GE(b.x, p.x - slack);
    ASSERT_GE(b.y, p.y - slack);
    ASSERT_LE(b.x + b.w, p.x + p.w + slack);
    ASSERT_LE(b.y + b.h, p.y + p.h + slack);
    children[b.parent].push_back(k);
  }
  EXPECT_LE(counted, d.total);
  EXPECT_EQ(d.folded + ids.size(), d.total);
  for (auto& list : children) {
    std::sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) { return d.boxes[a].y < d.boxes[b].y; });
    for (size_t a = 0; a < list.size(); ++a)
      for (size_t b = a + 1; b < list.size() && d.boxes[list[b]].y < d.boxes[list[a]].y + d.boxes[list[a]].h - slack;
           ++b)
        ASSERT_FALSE(overlap(d.boxes[list[a]], d.boxes[list[b]]))
            << d.boxes[list[a]].key << " " << d.boxes[list[b]].key;
  }
  ASSERT_EQ(d.edges.start.size(), d.edges.size() + 1);
  for (size_t e = 0; e < d.edges.size(); ++e) {
    uint32_t begin = d.edges.start[e], end = d.edges.start[e + 1];
    ASSERT_GE(end - begin, 4u);
    for (uint32_t k = begin + 2; k < end; k += 2) ASSERT_GE(d.edges.points[k + 1], d.edges.points[k - 1] - slack);
    const DrawnBox& to = d.boxes[d.edges.to[e]];
    EXPECT_NEAR(d.edges.points[end - 1], to.y, slack);
    EXPECT_GE(d.edges.points[end - 2], to.x - slack);
    EXPECT_LE(d.edges.points[end - 2], to.x + to.w + slack);
  }
}

Drawing drawn(const Module& m, LayoutOptions::Open open) {
  LayoutOptions options;
  options.open = open;
  return lay_out(m, options);
}

void check_all(const std::string& text) {
  auto m = parsed(text);
  for (auto open : {LayoutOptions::Open::kBest, LayoutOptions::Open::kThese, LayoutOptions::Open::kAll})
    check(*m, drawn(*m, open));
}

// No path leaves a group and comes back: what flows between the children of each group has no cycle.
void check_convex(const Module& m) {
  Folding f(m);
  const std::vector<FoldGroup>& groups = f.groups();
  // Each child of each group has a number in a topological order of the group's: children stand in one.
  std::vector<uint32_t> place(groups.size(), 0), leaf(m.inst_slots(), 0);
  std::vector<uint32_t> order = {0};
  for (size_t k = 0; k < order.size(); ++k)
    for (uint32_t c = 0; c < groups[order[k]].children.size(); ++c) {
      FoldItem item = groups[order[k]].children[c];
      (item.group ? place[item.value] : leaf[item.value]) = c;
      if (item.group) order.push_back(item.value);
    }
  EXPECT_EQ(order.size(), groups.size());
  for (size_t k = 0; k < m.inst_slots(); ++k) {
    InstId user(k);
    if (!m.alive(user) || f.hidden(user)) continue;
    for (InstId value : m.operands(user)) {
      if (f.hidden(value)) continue;
      auto path = [&](InstId i) {
        std::vector<uint32_t> out;
        uint32_t own = f.group_of(i);
        out.push_back(own != FoldGroup::kNone ? place[own] : leaf[i.value]);
        for (uint32_t g = f.home(i); g != 0; g = groups[g].parent) out.push_back(place[g]);
        std::reverse(out.begin(), out.end());
        return out;
      };
      auto a = path(value), b = path(user);
      EXPECT_LT(a, b) << m.inst_name(value) << " -> " << m.inst_name(user);
    }
  }
}

TEST(Layout, HoldsForSmallModules) {
  for (const char* name :
       {"mobilenet_v1.hlo", "linear_regression.hlo", "linear_regression_loop.hlo", "mnist_softmax.hlo", "add.hlo"}) {
    SCOPED_TRACE(name);
    check_all(file_text(name));
    check_convex(*parsed(file_text(name)));
  }
}

// More of them by HLO_LAYOUT_FILES, a folder.
TEST(Layout, HoldsForRealModules) {
  const char* more = std::getenv("HLO_LAYOUT_FILES");
  size_t read = 0;
  for (const std::string& folder : {std::string(HLO_TESTDATA) + "/modules", std::string(more ? more : "")}) {
    if (folder.empty()) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      std::string path = entry.path().string();
      if (!path.ends_with(".hlo") && !path.ends_with(".txt")) continue;
      SCOPED_TRACE(entry.path().filename().string());
      std::ifstream in(path, std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(in), {}};
      std::unique_ptr<Module> m;
      try {
        m = parsed(text);
      } catch (const Failure&) {
        continue;  // what is refused on purpose
      }
      ++read;
      check_convex(*m);
      for (auto open : {LayoutOptions::Open::kBest, LayoutOptions::Open::kAll}) check(*m, drawn(*m, open));
    }
  }
  EXPECT_GT(read, 3u);
}

TEST(Layout, FindsLayersByScopes) {
  auto m = parsed(transformer(12, true));
  check_convex(*m);
  Drawing d = drawn(*m, LayoutOptions::Open::kBest);
  check(*m, d);
  EXPECT_LE(d.boxes.size(), 130u);
  size_t repeats = 0;
  for (const DrawnBox& b : d.boxes)
    if (b.times == 12) {
      ++repeats;
      EXPECT_EQ(b.label, "layer_0 … layer_11");
    }
  EXPECT_EQ(repeats, 1u);
  for (int k = 0; k < 12; ++k)
    EXPECT_EQ(std::count_if(d.boxes.begin(), d.boxes.end(),
                            [&](const DrawnBox& b) { return b.label == "layer_" + std::to_string(k); }),
              1);
}

TEST(Layout, FindsLayersWithoutNames) {
  auto m = parsed(transformer(12, false));
  check_convex(*m);
  Folding f(*m);
  size_t repeats = 0;
  for (const FoldGroup& g : f.groups())
    if (g.kind == FoldGroup::Kind::kRepeat && g.times >= 11 && g.count >= 11 * 28) ++repeats;
  EXPECT_EQ(repeats, 1u);
}

TEST(Layout, EqualBlocksLookEqual) {
  auto m = parsed(transformer(6, true));
  Drawing d = drawn(*m, LayoutOptions::Open::kAll);
  const DrawnBox *second = nullptr, *third = nullptr;
  for (const DrawnBox& b : d.boxes) {
    if (b.label == "layer_2") second = &b;
    if (b.label == "layer_3") third = &b;
  }
  ASSERT_TRUE(second && third);
  EXPECT_NEAR(second->w, third->w, 1);
  EXPECT_NEAR(second->h, third->h, 1);
}

TEST(Layout, IsDeterministic) {
  auto m = parsed(transformer(5, true));
  EXPECT_EQ(drawing_svg(*m, drawn(*m, LayoutOptions::Open::kAll)),
            drawing_svg(*m, drawn(*m, LayoutOptions::Open::kAll)));
}

TEST(Layout, KeysOpenAndAreFoundAgain) {
  auto m = parsed(transformer(12, true));
  Folding f(*m);
  InstId wanted;
  for (size_t k = 0; k < m->inst_slots(); ++k)
    if (m->inst_name(InstId(k)) == "l7_e") wanted = InstId(k);
  LayoutOptions options;
  options.open = LayoutOptions::Open::kThese;
  for (const std::string& key : f.keys_to(wanted)) options.keys.insert(key);
  Drawing d = lay_out(f, options);
  check(*m, d);
  EXPECT_EQ(std::count_if(d.boxes.begin(), d.boxes.end(), [&](const DrawnBox& b) { return b.id == wanted; }), 1);
  options.within = f.keys_to(wanted).back();
  Drawing part = lay_out(f, options);
  check(*m, part, false);
  EXPECT_EQ(part.boxes[0].key, options.within);
  EXPECT_EQ(part.total, part.boxes[0].count);
  options.within = "no such";
  EXPECT_THROW(lay_out(f, options), Failure);
}

// What fusion leaves behind for dce would hide what is used.
TEST(Layout, ComputationsThatNothingCallsAreOneGroup) {
  std::string text = "HloModule left\n";
  for (int k = 0; k < 300; ++k) {
    const std::string n = std::to_string(k);
    text += "%c" + n + " {\n  %p" + n + " = f32[4] parameter(0)\n  ROOT %n" + n + " = f32[4] negate(%p" + n + ")\n}\n";
  }
  text += "ENTRY %m {\n  %a = f32[4] parameter(0)\n  ROOT %e = f32[4] exponential(%a)\n}\n";
  auto m = parsed(text);
  Drawing d = drawn(*m, LayoutOptions::Open::kBest);
  check(*m, d);
  ASSERT_EQ(d.boxes.size(), 4u);
  EXPECT_EQ(d.boxes[3].label, "300 computations that nothing calls");
  EXPECT_EQ(d.boxes[3].count, 600u);
  check_all(text);
}

TEST(Layout, GroupsHaveTheStrongestMark) {
  auto m = parsed(transformer(12, true));
  LayoutOptions options;
  options.marks.assign(m->inst_slots(), Mark::kSame);
  options.open = LayoutOptions::Open::kThese;
  for (size_t k = 0; k < m->inst_slots(); ++k)
    if (m->inst_name(InstId(k)) == "l7_e") options.marks[k] = Mark::kNew;
  Drawing d = lay_out(*m, options);
  EXPECT_EQ(d.boxes[0].change, Mark::kNew);
  size_t marked = 0;
  for (const DrawnBox& b : d.boxes) marked += b.change == Mark::kNew;
  EXPECT_EQ(marked, 2u);  // the module, and the repeat
}

TEST(Layout, WhatStaysStaysPut) {
  auto m = parsed(transformer(12, true));
  Drawing before = drawn(*m, LayoutOptions::Open::kBest);
  for (size_t k = 0; k < m->inst_slots(); ++k) {
    InstId i(k);
    if (m->alive(i) && m->inst_name(i) == "l0_t5") {
      m->replace_all_uses(i, m->operand(i, 0));
      m->remove(i);
    }
  }
  LayoutOptions options;
  options.before = &before;
  Drawing after = lay_out(*m, options);
  check(*m, after);
  size_t same = 0, moved = 0;
  for (const DrawnBox& b : after.boxes)
    for (const DrawnBox& old : before.boxes)
      if (b.key == old.key && b.parent != DrawnBox::kNoBox) {
        const DrawnBox &p = after.boxes[b.parent], &q = before.boxes[old.parent];
        bool near = std::abs((b.x - p.x) - (old.x - q.x)) < b.w && std::abs((b.y - p.y) - (old.y - q.y)) < b.h;
        ++(near ? same : moved);
      }
  EXPECT_GT(same, 20u);
  EXPECT_LE(moved * 10, same);
}

TEST(Layout, ShapesOfHostileModules) {
  std::string wide = "HloModule wide\nENTRY %m {\n  %p = f32[4] parameter(0)\n", list;
  for (int k = 0; k < 100000; ++k)
    wide += "  %n" + std::to_string(k) + " = f32[4] negate(%p)\n", list += (k ? ", %n" : "%n") + std::to_string(k);
  wide += "  %t = f32[400000] concatenate(" + list + "), dimensions={0}\n  ROOT %r = f32[400000] negate(%t)\n}\n";
  check_all(wide);
  std::string deep = "HloModule deep\nENTRY %m {\n  %n0 = f32[4] parameter(0)\n";
  for (int k = 1; k < 100000; ++k)
    deep += "  %n" + std::to_string(k) + " = f32[4] negate(%n" + std::to_string(k - 1) + ")\n";
  deep += "  ROOT %r = f32[4] negate(%n99999)\n}\n";
  check_all(deep);
}

TEST(Layout, DeeplyNestedCalls) {
  std::string text = "HloModule nest\n\n%c0 {\n  %a0 = f32[] parameter(0)\n  ROOT %r0 = f32[] negate(%a0)\n}\n";
  int depth = 3000;
  for (int k = 1; k < depth; ++k) {
    std::string n = std::to_string(k), b = std::to_string(k - 1);
    text += "\n%c" + n + " {\n  %a" + n + " = f32[] parameter(0)\n  ROOT %r" + n + " = f32[] call(%a" + n +
            "), to_apply=%c" + b + "\n}\n";
  }
  text += "\nENTRY %m {\n  %p = f32[] parameter(0)\n  ROOT %r = f32[] call(%p), to_apply=%c" +
          std::to_string(depth - 1) + "\n}\n";
  check_all(text);
}

TEST(Layout, ScopesThatComeBackAreSplit) {
  std::string text = "HloModule zigzag\nENTRY %m {\n  %n0 = f32[4] parameter(0)\n";
  for (int k = 1; k < 400; ++k)
    text += "  %n" + std::to_string(k) + " = f32[4] negate(%n" + std::to_string(k - 1) + "), metadata={op_name=\"a/" +
            (k / 20 % 2 ? "even" : "odd") + "/neg\"}\n";
  text += "  ROOT %r = f32[4] negate(%n399)\n}\n";
  check_all(text);
  check_convex(*parsed(text));
}

TEST(Layout, NamesAreText) {
  std::string text = R"(HloModule m
ENTRY %m {
  %p = f32[4] parameter(0)
  %a = f32[4] negate(%p), metadata={op_name="jit(f)/<script>alert(1)</script>&\"/x"}
  %b = f32[4] negate(%a), metadata={op_name="jit(f)/<script>alert(1)</script>&\"/x"}
  %c = f32[4] negate(%b), metadata={op_name="jit(f)/other/x"}
  ROOT %r = f32[4] negate(%c), metadata={op_name="jit(f)/other/x"}
}
)";
  auto m = parsed(text);
  std::string svg = drawing_svg(*m, drawn(*m, LayoutOptions::Open::kAll));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script"), std::string::npos);
}

TEST(Layout, LargeModulesAreFast) {
  auto m = parsed(transformer(2100, true));
  ASSERT_GT(m->instruction_count(), 60000u);
  auto seconds = [&](auto&& what) {
    auto begin = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::unique_ptr<Folding> f;
  double fold = seconds([&] { f = std::make_unique<Folding>(*m); });
  LayoutOptions options;
  Drawing best, all;
  double first = seconds([&] { best = lay_out(*f, options); });
  options.open = LayoutOptions::Open::kAll;
  double everything = seconds([&] { all = lay_out(*f, options); });
  std::printf("%zu instructions: folded in %.3f s, %zu boxes in %.3f s, all %zu in %.3f s\n", m->instruction_count(),
              fold, best.boxes.size(), first, all.boxes.size(), everything);
  check(*m, best), check(*m, all);
  EXPECT_LE(best.boxes.size(), 250u);
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(fold + first, 2);  // several times what it takes, for busy machines
  EXPECT_LT(everything, 6);
#endif
}

}  // namespace
}  // namespace hlo
