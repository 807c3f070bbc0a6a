// What stands behind the last fusion: orders, memory and thunks as XLA makes them. Texts of whole dumps beside XLA's:
// tests/dev/oracle/thunk_kinds.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ir/analysis/schedule/schedule_update.h"
#include "ir/program/thunk.h"
#include "parser/parser.h"
#include "passes/backend/backend.h"
#include "passes/buffers/xla_heap.h"
#include "passes/schedule/memory_scheduler.h"
#include "passes/scope.h"

namespace hlo {
namespace {

std::unique_ptr<Module> scheduled(const std::string& text) {
  auto m = parse_module(text, std::make_shared<Universe>(), {"test", 20});
  if (!m->config().is_scheduled) schedule_module(*m);
  return m;
}
InstId named(const Module& m, std::string_view name) {
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.inst_name(i) == name) return i;
  ADD_FAILURE() << name;
  return {};
}
std::pair<int, int64_t> place(const Module& m, const BufferAssignment& b, std::string_view name, size_t leaf = 0) {
  const BufferValue& v = b.values[static_cast<size_t>(b.leaf_values(m, named(m, name)).at(leaf))];
  return {v.allocation, v.offset};
}
std::vector<std::string> kinds(const std::vector<Thunk>& list) {
  std::vector<std::string> out;
  for (const Thunk& t : list) {
    out.push_back(t.kind);
    for (const auto& [label, inner] : t.nested)
      for (const std::string& k : kinds(inner)) out.push_back(" " + k);
  }
  return out;
}
using Words = std::vector<std::string>;

// xla/hlo/ir/hlo_schedule.cc: what a pass adds to a scheduled module runs as soon as its operands are there.
Words order_after(const std::string& text, std::string_view pass) {
  auto m = parse_module(text, std::make_shared<Universe>(), {"test", 20});
  PassContext context;
  PassEvent event;
  run_pass(*m, *find_pass(pass), context, {}, &event);
  Words out;
  for (InstId i : m->live_order(m->entry())) out.push_back(std::string(op_text(m->op(i))));
  return out;
}

TEST(ScheduleUpdate, AddedOnesRunAsSoonAsTheirOperandsAreThere) {
  EXPECT_EQ(
      order_after(R"(HloModule m, is_scheduled=true
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] sine(a)
  c = f32[8] logistic(a)
  d = f32[8] cosine(b)
  ROOT r = f32[8] add(c, d)
})",
                  "logistic-expander"),
      (Words{"constant", "broadcast", "parameter", "negate", "exponential", "add", "divide", "sine", "cosine", "add"}));
}

TEST(ScheduleUpdate, AStartRunsWhereItsMessageRan) {
  EXPECT_EQ(order_after(R"(HloModule m, is_scheduled=true
s { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = f32[] add(x, y) }
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] sine(a)
  ROOT c = f32[8] all-reduce(a), replica_groups={}, to_apply=s
})",
                        "async-collective-creator"),
            (Words{"parameter", "sine", "all-reduce-start", "all-reduce-done"}));
}

TEST(ScheduleUpdate, WhatNowReadsALaterOneRunsAfterIt) {
  auto m = parse_module(R"(HloModule m, is_scheduled=true
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] sine(a)
  c = f32[8] cosine(a)
  d = f32[8] sine(c)
  ROOT r = f32[8] add(b, d)
})",
                        std::make_shared<Universe>(), {"test", 20});
  const std::vector<InstId> before = m->live_order(m->entry());
  m->set_operand(named(*m, "b"), 0, named(*m, "d"));
  update_schedule(*m, m->entry(), before);
  Words out;
  for (InstId i : m->live_order(m->entry())) out.push_back(std::string(m->inst_name(i)));
  EXPECT_EQ(out, (Words{"a", "c", "d", "b", "r"}));
  m->set_operand(named(*m, "c"), 0, named(*m, "b"));  // a cycle
  const std::vector<InstId> as_it_was = m->live_order(m->entry());
  update_schedule(*m, m->entry(), as_it_was);
  EXPECT_EQ(m->live_order(m->entry()), as_it_was);
}

TEST(MemoryOrder, NeedsLessThanThePostOrder) {
  // Two sums of what is made wide: both wide ones first, or one after the other.
  auto m = parse_module(R"(HloModule m
s { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = f32[] add(x, y) }
ENTRY e {
  p = f32[8] parameter(0)
  z = f32[] constant(0)
  a = f32[8,64] broadcast(p), dimensions={0}
  b = f32[8,64] broadcast(p), dimensions={0}
  c = f32[8,64] negate(b), control-predecessors={a}
  d = f32[8] reduce(a, z), dimensions={1}, to_apply=s
  e = f32[8] reduce(c, z), dimensions={1}, to_apply=s
  ROOT r = f32[8] add(e, d)
})",
                        std::make_shared<Universe>(), {"test", 20});
  const PointsTo points(*m, true);
  const Sharing sharing(*m, named_gpu_target("H200"));
  const Orders orders = memory_orders(*m, points, sharing);
  const auto& best = orders.back().second;
  ASSERT_EQ(orders.back().first, m->entry());
  const int64_t least = peak_of_order(*m, m->entry(), best, points, sharing);
  EXPECT_LE(least, peak_of_order(*m, m->entry(), m->post_order(m->entry()), points, sharing));
  EXPECT_LE(least, peak_of_order(*m, m->entry(), depth_first_order(*m, m->entry(), points), points, sharing));
  // What frees the most first: a wide array that can be summed up is, before another one is made.
  const auto list = list_order(*m, m->entry(), points);
  auto at = [&](std::string_view n) { return std::find(list.begin(), list.end(), named(*m, n)) - list.begin(); };
  EXPECT_LT(at("d"), at("c"));
}

// xla/service/heap_simulator/heap_simulator.cc: what must lie where another value lies is counted beside it for the
// moment in which it is made (ShareWith allocates again), what may take an operand's place instead of it.
TEST(MemoryOrder, IsChosenByXlasCount) {
  auto need = [](const std::string& last) {
    auto m = parse_module(
        "HloModule m\nENTRY e {\n p = f32[8] parameter(0)\n u = f32[1] parameter(1)\n i = s32[] constant(0)\n"
        " c = f32[8] copy(p)\n ROOT d = f32[8] " +
            last + "\n}",
        std::make_shared<Universe>(), {"test", 20});
    const Sharing sharing(*m, named_gpu_target("H200"));
    std::vector<InstId> order;
    for (InstId i : m->live_order(m->entry())) order.push_back(i);
    return minimum_memory(*m, {{m->entry(), order}}, *sharing.flow, sharing.aliases);
  };
  const int64_t arguments = 32 + 4;
  EXPECT_EQ(need("dynamic-update-slice(c, u, i)"), arguments + 32 + 32);
  EXPECT_EQ(need("negate(c)"), arguments + 32);
  EXPECT_EQ(need("add(c, p)"), arguments + 32);
  EXPECT_EQ(need("reverse(c), dimensions={0}"), arguments + 32 + 32);
}

// A loop's state is one place, counted twice where a value of it begins; the loop begins where its body does.
TEST(MemoryOrder, CountsLoopsWithWhatRunsInside) {
  auto m = parse_module(R"(HloModule m
condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  t = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  k = s32[] add(j, one)
  x = f32[8] get-tuple-element(t), index=1
  wide = f32[8,100] broadcast(x), dimensions={0}
  w1 = f32[8,1] slice(wide), slice={[0:8], [0:1]}
  w = f32[8] reshape(w1)
  ROOT u = (s32[], f32[8]) tuple(k, w)
}
ENTRY e {
  p = (s32[], f32[8]) parameter(0)
  q = s32[] get-tuple-element(p), index=0
  y = f32[8] get-tuple-element(p), index=1
  c = s32[] copy(q)
  d = f32[8] copy(y)
  v = (s32[], f32[8]) tuple(c, d)
  ROOT l = (s32[], f32[8]) while(v), condition=condition, body=body
})",
                        std::make_shared<Universe>(), {"test", 20});
  const Sharing sharing(*m, named_gpu_target("H200"));
  Orders orders;
  for (CompId c : m->nonfusion_computations()) orders.emplace_back(c, m->post_order(c));
  const int64_t need = minimum_memory(*m, orders, *sharing.flow, sharing.aliases);
  EXPECT_GT(need, 36 + 36 + 3200);             // arguments, state, what the body makes
  EXPECT_LT(need, 36 + 36 + 3200 + 36 + 100);  // pointers, and a state that is made anew beside the old one
}

TEST(Scheduled, InstructionsSayWhatTheyWereScheduledAs) {
  auto m = scheduled(R"(HloModule m, is_scheduled=true
inner {
  x = f32[8] parameter(0)
  c = f32[] constant(2)
  b = f32[8] broadcast(c), dimensions={}
  ROOT y = f32[8] multiply(x, b)
}
ENTRY e {
  p = f32[8] parameter(0), metadata={op_name="arguments"}
  ROOT f = f32[8] fusion(p), kind=kLoop, calls=inner
})");
  PassContext context;
  PassEvent event;
  EXPECT_TRUE(run_pass(*m, *find_pass("scheduling-instruction-annotator"), context, {}, &event));
  auto said = [&](std::string_view name) {
    const uint32_t s = m->u()[(*m)[named(*m, name)].meta].scheduling_name;
    return s == StrId::kNone ? std::string_view() : m->u().text(StrId(s));
  };
  EXPECT_EQ(said("p"), "p");
  EXPECT_EQ(m->u().text(StrId(m->u()[(*m)[named(*m, "p")].meta].op_name)), "arguments");
  EXPECT_EQ(said("f"), "f");
  EXPECT_EQ(said("b"), "b");
  EXPECT_EQ(said("c"), "");
  EXPECT_FALSE(run_pass(*m, *find_pass("scheduling-instruction-annotator"), context, {}, &event));
}

constexpr const char* kChain = R"(HloModule m, is_scheduled=true
twice {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
turned {
  x = f32[8,8] parameter(0)
  ROOT y = f32[8,8] transpose(x), dimensions={1,0}
}
ENTRY e {
  p = f32[64] parameter(0)
  a = f32[64] fusion(p), kind=kLoop, calls=twice
  b = f32[64] fusion(a), kind=kLoop, calls=twice
  c = f32[8,8] bitcast(b)
  d = f32[8,8] fusion(c), kind=kLoop, calls=turned
  ROOT r = f32[8,8] copy(d)
})";

TEST(XlaBuffers, AResultLiesWhereItsOperandLay) {
  auto m = scheduled(kChain);
  const BufferAssignment b = assign_buffers(*m);
  EXPECT_FALSE(overwritten_value(*m, b));
  EXPECT_EQ(place(*m, b, "a"), place(*m, b, "b"));  // element by element
  EXPECT_NE(place(*m, b, "c"), place(*m, b, "d"));  // one that turns reads what it would have written
  EXPECT_NE(place(*m, b, "d"), place(*m, b, "r"));  // copies are copies
  EXPECT_NE(place(*m, b, "p"), place(*m, b, "a"));  // the caller's
  // The result is free until it is written: what is made first lies in it.
  EXPECT_EQ(place(*m, b, "a"), place(*m, b, "r"));
  EXPECT_EQ(b.total(), 3 * 256);
}

TEST(XlaBuffers, DonatedArgumentsAreWrittenOver) {
  std::string text = R"(HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  p = f32[4,64] parameter(0)
  u = f32[1,64] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  ROOT d = f32[4,64] dynamic-update-slice(p, u, i, z)
})";
  auto m = scheduled(text);
  BufferAssignment b = assign_buffers(*m);
  EXPECT_FALSE(overwritten_value(*m, b));
  EXPECT_EQ(place(*m, b, "p"), place(*m, b, "d"));
  text.replace(text.find(", input_output_alias"), text.find("\n") - text.find(", input_output_alias"), "");
  m = scheduled(text);
  b = assign_buffers(*m);
  EXPECT_FALSE(overwritten_value(*m, b));
  EXPECT_NE(place(*m, b, "p"), place(*m, b, "d"));
}

TEST(XlaBuffers, MessagesSendWhatLiesThere) {
  auto m = scheduled(R"(HloModule m, is_scheduled=true, replica_count=2
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
ENTRY e {
  p = f32[64] parameter(0)
  a = f32[64] negate(p)
  s = (f32[64], f32[128]) all-gather-start(a), replica_groups={{0,1}}, dimensions={0}
  g = f32[128] all-gather-done(s)
  t = (f32[128], f32[128]) collective-permute-start(g), source_target_pairs={{0,1},{1,0}}
  h = f32[128] collective-permute-done(t)
  u = f32[128] all-reduce-start(h), replica_groups={{0,1}}, to_apply=sum
  v = f32[128] all-reduce-done(u)
  ROOT r = f32[128] transpose(v), dimensions={0}
})");
  const BufferAssignment b = assign_buffers(*m);
  EXPECT_FALSE(overwritten_value(*m, b));
  EXPECT_EQ(place(*m, b, "s", 0), place(*m, b, "a"));
  EXPECT_EQ(place(*m, b, "s", 1), place(*m, b, "g"));
  EXPECT_NE(place(*m, b, "g"), place(*m, b, "a"));
  EXPECT_EQ(place(*m, b, "t", 0), place(*m, b, "g"));
  EXPECT_EQ(place(*m, b, "t", 1), place(*m, b, "h"));
  EXPECT_EQ(place(*m, b, "u"), place(*m, b, "v"));
}

TEST(XlaHeap, CountsWhatBeginsAndEnds) {
  // Of two of one size the one that is there longer lies in front: the second, while small ones come and go.
  const Heap heap =
      simulate_heap({{0, 256, 0, 10, 0, {}}, {1, 256, 10, 14, 1, {}}, {2, 1, 11, 11, 2, {}}, {3, 1, 12, 12, 3, {}}});
  EXPECT_EQ(heap.offsets.at(0), 256);
  EXPECT_EQ(heap.offsets.at(1), 0);
  EXPECT_EQ(heap.size, 512);
  // Where they are there equally long, the first one.
  EXPECT_EQ(simulate_heap({{0, 256, 0, 10, 0, {}}, {1, 256, 10, 14, 1, {}}}).offsets.at(0), 0);
}

TEST(XlaHeap, PlacesAreHandedOn) {
  // A result takes the place of an operand that ends with it, where it may.
  Heap heap = simulate_heap({{0, 256, 0, 5, 0, {}}, {1, 256, 5, 9, 1, {0}}});
  EXPECT_EQ(heap.offsets.at(1), heap.offsets.at(0));
  EXPECT_EQ(heap.size, 256);
  EXPECT_EQ(simulate_heap({{0, 256, 0, 6, 0, {}}, {1, 256, 5, 9, 1, {0}}}).size, 512);
  // Not that of a buffer of several values…
  heap = simulate_heap({{0, 256, 0, 2, 0, {}}, {0, 256, 6, 8, 1, {}}, {1, 256, 8, 9, 2, {0}}});
  EXPECT_NE(heap.offsets.at(1), heap.offsets.at(0));
  // …but while none of these is there.
  EXPECT_EQ(simulate_heap({{0, 256, 0, 2, 0, {}}, {0, 256, 6, 8, 1, {}}, {1, 256, 3, 5, 2, {}}}).size, 256);
}

TEST(Thunks, ByKind) {
  auto m = scheduled(R"(HloModule m, is_scheduled=true
twice {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
moved {
  x = f32[64] parameter(0)
  ROOT y = f32[64] copy(x)
}
sliced {
  a = f32[4,64] parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  s = f32[1,64] dynamic-slice(a, i, z), dynamic_slice_sizes={1,64}
  ROOT c = f32[1,64] copy(s)
}
counted {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT more = s32[] add(i, one)
}
less {
  i = s32[] parameter(0)
  three = s32[] constant(3)
  ROOT compared = pred[] compare(i, three), direction=LT
}
body {
  t = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[64] get-tuple-element(t), index=1
  n = s32[] fusion(i), kind=kLoop, calls=counted
  w = f32[64] fusion(v), kind=kLoop, calls=twice
  ROOT r = (s32[], f32[64]) tuple(n, w)
}
condition {
  t = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ROOT l = pred[] fusion(i), kind=kLoop, calls=less
}
ENTRY e {
  p = f32[64] parameter(0)
  q = f32[4,64] parameter(1)
  k = s32[] parameter(2)
  z = s32[] constant(0)
  zero = s32[] copy(z)
  start = f32[64] fusion(p), kind=kLoop, calls=moved
  init = (s32[], f32[64]) tuple(zero, start)
  loop = (s32[], f32[64]) while(init), condition=condition, body=body
  a = f32[64] get-tuple-element(loop), index=1
  s = f32[1,64] fusion(q, k), kind=kCustom, calls=sliced, backend_config={"fusion_backend_config":{"kind":"__custom_fusion"}}
  c = (f32[64], u8[0]) custom-call(a), custom_call_target="__cudnn$convForward"
  h = f32[64] get-tuple-element(c), index=0
  ROOT r = (f32[64], f32[1,64]) tuple(h, s)
})");
  const BufferAssignment b = assign_buffers(*m);
  EXPECT_FALSE(overwritten_value(*m, b));
  const std::vector<Thunk> list = build_thunks(*m, b);
  EXPECT_EQ(kinds(list), (Words{"kCopy", "kCopy", "kWhile", " kCustomKernel", " kCustomKernel", " kCustomKernel",
                                "kDynamicSliceFusion", " kCopy", "kConvolution"}));
  EXPECT_EQ(thunks_text(*m, list),
            "001: kCopy               [source       | next=003 (2)] kCopy\n"
            "002: kCopy               [source       | next=003 (1)] kCopy\n"
            "003: kWhile              [prev=002 (1) | next=008 (1)]   \n"
            "condition:\n"
            "    004: kCustomKernel [source | sink] l grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes\n"
            "  body:\n"
            "    005: kCustomKernel [source | sink] n grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes\n"
            "    006: kCustomKernel [source | sink] w grid: [1, 1, 1] threads: [64, 1, 1]  shared_memory: 0 bytes\n"
            "008: kDynamicSliceFusion [prev=003 (1) | sink        ] params=1, results=1\n"
            "    007: kCopy [source | sink] kCopy\n"
            "009: kConvolution        [prev=003 (2) | sink        ] kConvolution\n");
}

TEST(Thunks, MessagesRunBesideTheRestOrAreWaitedForAtOnce) {
  auto m = scheduled(R"(HloModule m, is_scheduled=true, num_partitions=4
exchange {
  x = f32[64] parameter(0)
  ROOT y = f32[64] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
}
twice {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
ENTRY e {
  p = f32[64] parameter(0)
  s = ((f32[64]), f32[64]) async-start(p), calls=exchange, backend_config={"collective_backend_config":{"is_sync":false}}
  a = f32[64] fusion(p), kind=kLoop, calls=twice
  d = f32[64] async-done(s)
  g = (f32[64], f32[256]) all-gather-start(d), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, backend_config={"collective_backend_config":{"is_sync":true}}
  h = f32[256] all-gather-done(g)
  ROOT r = (f32[64], f32[256]) tuple(a, h)
})");
  const std::vector<Thunk> list = build_thunks(*m, assign_buffers(*m));
  EXPECT_EQ(kinds(list), (Words{"kAsyncStart", " kAllToAll", "kCustomKernel", "kAsyncDone", "kAllGather"}));
  EXPECT_EQ(list[0].description, "stream=communication_stream[0], async_id=2");
  EXPECT_EQ(list[2].description, "async_id=2");
  EXPECT_EQ(list[0].stream, "communication_stream[0]");
  EXPECT_EQ(list[0].async_id, list[2].async_id);
  EXPECT_TRUE(list[1].stream.empty() && list[3].stream.empty());
}

// Four computation streams in turn over the post order, the entry computation first, then its loops; a name counts.
TEST(Thunks, WhatIsStartedRunsOnStreamsInTurn) {
  auto m = scheduled(R"(HloModule m, is_scheduled=true
twice {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
inside {
  x = f32[64] parameter(0)
  ROOT y = f32[64] fusion(x), kind=kLoop, calls=twice
}
inside.1 {
  x = f32[64] parameter(0)
  ROOT y = f32[64] fusion(x), kind=kLoop, calls=twice
}
less {
  i = s32[] parameter(0)
  k = s32[] constant(4)
  ROOT l = pred[] compare(i, k), direction=LT
}
condition {
  t = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ROOT l = pred[] fusion(i), kind=kLoop, calls=less
}
next {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT n = s32[] add(i, one)
}
body {
  t = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[64] get-tuple-element(t), index=1
  s = ((f32[64]), f32[64], u32[]) async-start(a), calls=inside
  n = s32[] fusion(i), kind=kLoop, calls=next
  d = f32[64] async-done(s)
  ROOT r = (s32[], f32[64]) tuple(n, d)
}
ENTRY e {
  p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  z = s32[] parameter(2)
  init = (s32[], f32[64]) tuple(z, p)
  loop = (s32[], f32[64]) while(init), condition=condition, body=body
  c = (f32[64], f32[64], u32[]) copy-start(q)
  s = ((f32[64]), f32[64], u32[]) async-start(q), calls=inside.1, frontend_attributes={_xla_stream_annotation="3"}
  e = f32[64] copy-done(c)
  d = f32[64] async-done(s)
  a = f32[64] get-tuple-element(loop), index=1
  ROOT r = (f32[64], f32[64], f32[64]) tuple(a, e, d)
})");
  const std::vector<Thunk> list = build_thunks(*m, assign_buffers(*m));
  std::vector<std::string> found;
  std::function<void(const std::vector<Thunk>&)> collect = [&](const std::vector<Thunk>& thunks) {
    for (const Thunk& t : thunks) {
      if (t.kind == "kAsyncStart")
        found.push_back(fmt::format("{} {} {}", m->inst_name(t.inst), t.stream, t.nested[0].second[0].kind));
      if (t.kind == "kAsyncDone") found.push_back(fmt::format("{} {}", m->inst_name(t.inst), t.description));
      for (const auto& [label, inner] : t.nested) collect(inner);
    }
  };
  collect(list);
  ASSERT_EQ(found.size(), 6u) << thunks_text(*m, list);
  EXPECT_TRUE(found[0].ends_with("computation_stream[1] kCustomKernel")) << found[0];
  EXPECT_EQ(found[2], "c computation_stream[0] kCopy");
  EXPECT_TRUE(found[3].ends_with("computation_stream[3] kCustomKernel")) << found[3];
  EXPECT_NE(thunks_json(*m, list).find("\"stream\":\"computation_stream[3]\",\"async_id\":"), std::string::npos);
}

TEST(Thunks, FiveInARowAreOneCommandBuffer) {
  auto m = scheduled(R"(HloModule m, is_scheduled=true
twice {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
ENTRY e {
  p = f32[64] parameter(0)
  a = f32[64] fusion(p), kind=kLoop, calls=twice
  b = f32[64] fusion(a), kind=kLoop, calls=twice
  c = f32[64] fusion(b), kind=kLoop, calls=twice
  d = f32[64] fusion(c), kind=kLoop, calls=twice
  ROOT r = f32[64] fusion(d), kind=kLoop, calls=twice
})");
  EXPECT_EQ(kinds(with_command_buffers(build_thunks(*m, assign_buffers(*m)))),
            (Words{"kCommandBuffer", " kCustomKernel", " kCustomKernel", " kCustomKernel", " kCustomKernel",
                   " kCustomKernel"}));
  auto shorter = scheduled(R"(HloModule m, is_scheduled=true
twice {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
ENTRY e {
  p = f32[64] parameter(0)
  a = f32[64] fusion(p), kind=kLoop, calls=twice
  ROOT b = f32[64] fusion(a), kind=kLoop, calls=twice
})");
  EXPECT_EQ(kinds(with_command_buffers(build_thunks(*shorter, assign_buffers(*shorter)))),
            (Words{"kCustomKernel", "kCustomKernel"}));
}

}  // namespace
}  // namespace hlo
