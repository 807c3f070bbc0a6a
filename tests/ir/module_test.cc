// The working form and its recorded stages.
#include <gtest/gtest.h>

#include "ir/print/print.h"
#include "ir/snapshot.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"

namespace hlo {
namespace {

std::unique_ptr<Module> parse(const std::string& text) { return parse_module(text, std::make_shared<Universe>()); }
InstId named(const Module& m, std::string_view name) {
  for (size_t i = 0; i < m.inst_slots(); ++i)
    if (m.alive(InstId(i)) && m.inst_name(InstId(i)) == name) return InstId(i);
  ADD_FAILURE() << name;
  return InstId();
}
std::string names(const Module& m, std::span<const InstId> list) {
  std::string out;
  for (InstId i : list) out += std::string(m.inst_name(i)) + " ";
  return out;
}

const char* kFan = R"(HloModule m
ENTRY e {
  p = f32[] parameter(0)
  a = f32[] negate(p)
  b = f32[] abs(p)
  c = f32[] floor(p)
  d = f32[] add(p, p)
  ROOT t = (f32[], f32[], f32[], f32[]) tuple(a, b, c, d)
})";

// xla/hlo/ir/hlo_instruction.cc: removing a user moves the last one into the hole; twice an operand, once a user.
TEST(Users, KeepXlasOrder) {
  auto m = parse(kFan);
  InstId p = named(*m, "p"), b = named(*m, "b"), t = named(*m, "t");
  EXPECT_EQ(names(*m, m->users(p)), "a b c d ");
  EXPECT_EQ(m->use_count(p), 5u);
  m->set_operand(t, 1, p);
  EXPECT_EQ(names(*m, m->users(p)), "a b c d t ");
  m->remove(b);
  EXPECT_EQ(names(*m, m->users(p)), "a t c d ");
}

TEST(Users, LongListsStayExact) {
  std::string text = "HloModule m\nENTRY e {\n p = f32[] parameter(0)\n";
  for (int i = 0; i < 500; ++i) text += " n" + std::to_string(i) + " = f32[] negate(p)\n";
  auto m = parse(text + " ROOT r = f32[] abs(p)\n}");
  InstId p = named(*m, "p");
  ASSERT_EQ(m->user_count(p), 501u);
  for (int i = 0; i < 500; i += 2) m->remove(named(*m, "n" + std::to_string(i)));
  std::set<InstId> left(m->users(p).begin(), m->users(p).end());
  EXPECT_EQ(left.size(), 251u);
  EXPECT_EQ(m->user_count(p), 251u);
  EXPECT_TRUE(left.contains(named(*m, "n499")));
}

TEST(Replace, MovesUsesRootAndName) {
  auto m = parse(kFan);
  InstId a = named(*m, "a"), p = named(*m, "p");
  InstId n = m->add(m->entry(), {.op = Opcode::Negate, .shape = m->shape_id(a), .operands = {p}});
  EXPECT_EQ(m->inst_name(n), "negate");
  EXPECT_TRUE(m->replace(a, n));
  EXPECT_FALSE(m->alive(a));
  EXPECT_EQ(m->inst_name(n), "a") << "an instruction of the same opcode takes the name over";
  EXPECT_TRUE(verify_module(*m).empty());
}

TEST(Replace, RefusesControlDependenciesUnlessRelayed) {
  auto m = parse(kFan);
  InstId a = named(*m, "a"), b = named(*m, "b"), c = named(*m, "c");
  m->add_control(b, a);
  EXPECT_FALSE(m->replace(a, c));
  EXPECT_TRUE(m->replace(a, c, {.relay_control = true}));
  EXPECT_EQ(names(*m, m->control_preds(c)), "b ");
}

TEST(Snapshot, SharesAndThaws) {
  std::string text = "HloModule m\nENTRY e {\n p = f32[] parameter(0)\n n0 = f32[] negate(p)\n";
  for (int i = 1; i < 2000; ++i) text += fmt::format(" n{} = f32[] negate(n{})\n", i, i - 1);
  auto m = parse(text + "}");
  Recorder recorder(m->universe());
  Snapshot first = recorder.freeze(*m);
  std::string before = print_module(*m);
  Snapshot same = recorder.freeze(*m);
  EXPECT_EQ(recorder.records(), 2001u) << "a stage without a change writes nothing";
  EXPECT_TRUE(diff_stages(first, same).modified.empty());
  InstId n5 = named(*m, "n5"), n7 = named(*m, "n7");
  m->set_operand(n7, 0, n5);
  InstId extra = m->add(m->entry(), {.op = Opcode::Abs, .shape = m->shape_id(n5), .operands = {n5}});
  m->remove(named(*m, "n6"));
  Snapshot second = recorder.freeze(*m);
  StageDiff d = diff_stages(first, second);
  EXPECT_EQ(d.added, std::vector<InstId>{extra});
  EXPECT_EQ(d.modified, std::vector<InstId>{n7});
  EXPECT_EQ(d.removed.size(), 1u);
  EXPECT_EQ(print_module(*first.thaw()), before);
  EXPECT_EQ(print_module(*second.thaw()), print_module(*m));
  EXPECT_EQ(second.instruction_count(), m->instruction_count());
}

TEST(Snapshot, LongOperandListsAreNotWrittenOver) {
  auto m = parse(kFan);
  Recorder recorder(m->universe());
  Snapshot first = recorder.freeze(*m);
  std::string before = print_module(*m);
  m->set_operand(named(*m, "t"), 0, named(*m, "b"));
  Snapshot second = recorder.freeze(*m);
  EXPECT_EQ(print_module(*first.thaw()), before);
  EXPECT_NE(print_module(*second.thaw()), before);
}

// Orders, parameters, threads, names and the header are parts of a stage, too.
TEST(Snapshot, EveryChangeIsSeen) {
  auto m = parse(
      "HloModule m\nENTRY e {\n b = f32[] parameter(1)\n p = f32[] parameter(0)\n c = f32[] constant(1)\n "
      "d = f32[] add(p, c)\n ROOT r = f32[] add(d, b)\n}");
  Recorder recorder(m->universe());
  CompId e = m->entry();
  InstId p = named(*m, "p"), c = named(*m, "c"), d = named(*m, "d"), b = named(*m, "b"), r = named(*m, "r");
  auto check = [&](const char* what) {
    EXPECT_EQ(print_module(*recorder.freeze(*m).thaw()), print_module(*m)) << what;
  };
  check("as it was");
  m->set_order(e, {p, c, b, d, r});
  m->set_scheduled(true);
  check("order");
  m->set_computation_name(e, m->u().str("other"));
  check("name of a computation");
  m->set_thread(e, m->u().str("side"));
  check("thread");
  m->set_module_name("n");
  check("name of the module");
  m->edit_config().replica_count = 2;
  check("config");
  m->edit_stack().files = {"a.py"};
  m->edit_stack().functions = {"f"};
  m->edit_stack().locations.push_back({1, 1, 1, 1, 1, 1});
  m->edit_stack().frames.push_back({1, 0});
  check("stack");
  m->set_params(e, {b, p});
  m->set_parameter_number(b, 0), m->set_parameter_number(p, 1);
  check("parameters");
  EXPECT_EQ(recorder.freeze(*m).thaw()->comp(e).params, (std::vector<InstId>{b, p}));
  // A clone of what is frozen is all new to another recorder.
  Recorder other(m->universe());
  auto copy = m->clone();
  EXPECT_EQ(print_module(*other.freeze(*copy).thaw()), print_module(*m));
}

TEST(Snapshot, EditsAreCountedWhereSomethingChanges) {
  auto m = parse(kFan);
  InstId t = named(*m, "t"), a = named(*m, "a");
  uint64_t before = m->edits();
  m->set_order(m->entry(), std::vector<InstId>(m->comp(m->entry()).order));
  m->set_root(m->entry(), t);
  m->set_name(a, (*m)[a].name);
  m->set_shape(a, m->shape_id(a));
  m->set_scheduled(false);
  m->set_operand(t, 0, a);
  EXPECT_EQ(m->edits(), before);
  Recorder(m->universe()).freeze(*m);
  EXPECT_EQ(m->edits(), before) << "recording changes nothing";
  m->set_operand(t, 0, named(*m, "b"));
  EXPECT_GT(m->edits(), before);
}

TEST(Heirs, AreLoggedWhereAsked) {
  auto m = parse(kFan);
  InstId a = named(*m, "a"), b = named(*m, "b"), p = named(*m, "p");
  m->replace_all_uses(a, b);
  EXPECT_TRUE(m->take_heirs().empty()) << "nobody asked";
  m->keep_heirs(true);
  InstId made = m->add_derived(b, {.op = Opcode::Abs, .shape = m->shape_id(b), .operands = {p}});
  m->replace(b, made);
  std::unordered_map<InstId, InstId> copies;
  CompId copy = m->clone_computation(m->entry(), "clone", &copies);
  std::vector<Heir> heirs = m->take_heirs();
  ASSERT_EQ(heirs.size(), 2 + m->size(copy));
  EXPECT_EQ(heirs[0], (Heir{b, made, HeirKind::kDerived}));
  EXPECT_EQ(heirs[1], (Heir{b, made, HeirKind::kReplaced}));
  for (size_t k = 2; k < heirs.size(); ++k) {
    EXPECT_EQ(heirs[k].kind, HeirKind::kCloned);
    EXPECT_EQ(copies.at(heirs[k].from), heirs[k].to);
  }
  EXPECT_TRUE(m->take_heirs().empty()) << "taken";
}

TEST(Clone, OperandListsAreNotShared) {
  auto m = parse(kFan);
  std::string before = print_module(*m);
  auto copy = m->clone();
  copy->set_operand(named(*copy, "t"), 0, named(*copy, "b"));
  EXPECT_EQ(print_module(*m), before);
  m->set_operand(named(*m, "t"), 0, named(*m, "c"));
  EXPECT_NE(print_module(*copy), print_module(*m));
}

// Copies stand in memory, and among the users of what they read, as what they are copies of.
TEST(Clone, OrderAndUsersStay) {
  auto m = parse(kFan);
  const CompId e = m->entry();
  const InstId p = named(*m, "p"), a = named(*m, "a"), b = named(*m, "b"), c = named(*m, "c"), d = named(*m, "d");
  m->set_operand(a, 0, b);  // d moves to its place
  m->set_operand(a, 0, p);
  EXPECT_EQ(names(*m, m->users(p)), "d b c a ");
  const InstId t = m->comp(e).root;
  m->set_order(e, {d, t, c, p, b, a});
  std::unordered_map<InstId, InstId> map;
  const CompId copy = m->clone_computation(e, "clone", &map);
  auto copied = [&](std::span<const InstId> list) {
    std::vector<InstId> out;
    for (InstId i : list) out.push_back(map.at(i));
    return out;
  };
  EXPECT_EQ(m->live_order(copy), copied(m->live_order(e)));
  const std::vector<InstId> users = copied(m->users_copy(p));
  EXPECT_EQ(m->users_copy(map.at(p)), users);
  m->set_operand(map.at(b), 0, map.at(a));  // the lists are whole: one leaves
  EXPECT_EQ(m->user_count(map.at(p)), 3u);
  EXPECT_EQ(m->user_count(p), 4u);
}

TEST(Order, DeadEndsAndControlDependencies) {
  auto m = parse(
      "HloModule m\nENTRY e {\n p = f32[] parameter(0)\n a = f32[] negate(p)\n b = f32[] abs(p)\n ROOT c = f32[] "
      "floor(p), control-predecessors={b}\n}");
  EXPECT_EQ(names(*m, m->post_order(m->entry())), "p a b c ");
}

// Orders are kept until something is edited that they follow.
TEST(Order, IsThatOfNow) {
  auto m = parse(
      "HloModule m\nf {\n q = f32[] parameter(0)\n ROOT s = f32[] sine(q)\n}\nENTRY e {\n p = f32[] parameter(0)\n a "
      "= f32[] negate(p)\n b = f32[] abs(p)\n c = f32[] add(a, b)\n ROOT d = f32[] call(c), to_apply=f\n}");
  const CompId e = m->entry();
  const InstId a = named(*m, "a"), b = named(*m, "b"), c = named(*m, "c"), d = named(*m, "d"), p = named(*m, "p");
  auto order = [&] { return names(*m, m->post_order(e)); };
  auto comps = [&](std::vector<CompId> list) {
    std::string out;
    for (CompId i : list) out += std::string(m->comp_name(i)) + " ";
    return out;
  };
  EXPECT_EQ(order(), "p a b c d ");
  EXPECT_EQ(comps(m->computation_post_order()), "f e ");
  m->set_operand(c, 0, b), m->set_operand(c, 1, a);
  EXPECT_EQ(order(), "p b a c d ");
  m->add_control(a, b);
  EXPECT_EQ(order(), "p a b c d ");
  m->drop_control(b);
  EXPECT_EQ(order(), "p b a c d ");
  const InstId n = m->add(e, {.op = Opcode::Negate, .shape = m->shape_id(p), .operands = {p}, .name = "n"});
  EXPECT_EQ(order(), "p b a c d n ");
  EXPECT_EQ(m->count(Opcode::Negate), 2u);
  m->set_order(e, {p, n, a, b, c, d});
  EXPECT_EQ(order(), "p n b a c d ");
  m->replace_all_uses(a, n);
  EXPECT_EQ(order(), "p a b n c d ");
  m->remove(a);
  EXPECT_EQ(order(), "p b n c d ");
  EXPECT_EQ(m->count(Opcode::Negate), 1u);
  EXPECT_EQ(m->instruction_count(), 7u);
  const CompId g = m->clone_computation(m->called(d)[0], "g");
  EXPECT_EQ(comps(m->computation_post_order()), "f e f.g ");
  m->replace_called(d, m->called(d)[0], g);
  m->remove_uncalled_computations();
  EXPECT_EQ(comps(m->computation_post_order()), "f.g e ");
  EXPECT_EQ(comps(m->nonfusion_computations()), "f.g e ");
  EXPECT_EQ(m->count(Opcode::Sine), 1u);
  EXPECT_FALSE(m->has_any({Opcode::Sort, Opcode::Dot}));
  EXPECT_TRUE(m->has_any({Opcode::Sort, Opcode::Abs}));
  m->set_scheduled(true);
  EXPECT_EQ(order(), "p b n c d ");
}

}  // namespace
}  // namespace hlo
