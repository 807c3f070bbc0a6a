// XLA's files about memory, and what a module holds by them or by our own assignment.
#include <gtest/gtest.h>

#include "ir/print/print.h"
#include "ir/program/buffer.h"
#include "parser/parser.h"
#include "passes/backend/backend.h"
#include "replay/report/memory/buffer_file.h"
#include "replay/report/memory/memory_report.h"
#include "tests/common/state_module.h"

namespace hlo {
namespace {

std::unique_ptr<Module> parse(const std::string& text) { return parse_module(text, std::make_shared<Universe>()); }

TEST(BufferFile, IsReadAsWeWriteIt) {
  auto m = parse(kState);
  BufferAssignment b = assign_buffers(*m);
  BufferFile file = read_buffer_file(buffer_assignment_text(*m, b), "b.txt");
  ASSERT_EQ(file.allocations.size(), b.allocations.size());
  int64_t sum = 0;
  for (size_t k = 0; k < b.allocations.size(); ++k) {
    EXPECT_EQ(file.allocations[k].size, b.allocations[k].size);
    EXPECT_EQ(file.allocations[k].parameter, b.allocations[k].parameter);
    EXPECT_EQ(file.allocations[k].values.size(), b.allocations[k].values.size());
    if (b.allocations[k].kind != Allocation::kThreadLocal) sum += b.allocations[k].size;
  }
  EXPECT_EQ(file.total(), sum);
}

TEST(BufferFile, XlasWords) {
  const char* text =
      "BufferAssignment:\n"
      "allocation 0: size 512, parameter 1, shape |f32[8,16]| at ShapeIndex {0,1}:\n"
      " value: <3 p{0,1} @0> (size=512,offset=0): f32[8,16]{1,0}\n"
      "allocation 1: size 64, color 2, output shape is |(f32[8], f32[8])|, maybe-live-out:\n"
      " value: <17 while.1{1} (phi) @2> (size=32,offset=32): f32[8]{0}\n"
      "allocation 2: size 4, thread-local:\n"
      " value: <5 add.0 @0> (size=4,offset=0): f32[]\n"
      "allocation 3: size 100, preallocated-temp:\n\nTotal bytes used: 680\n";
  BufferFile file = read_buffer_file(text, "b.txt");
  ASSERT_EQ(file.allocations.size(), 4u);
  EXPECT_EQ(file.allocations[0].parameter, 1);
  EXPECT_EQ(file.allocations[0].values[0].instruction, "p");
  EXPECT_EQ(file.allocations[0].values[0].index, (Dims{0, 1}));
  EXPECT_TRUE(file.allocations[1].live_out && file.allocations[1].output);
  EXPECT_EQ(file.allocations[1].values[0].instruction, "while.1");
  EXPECT_EQ(file.allocations[1].values[0].offset, 32);
  EXPECT_EQ(file.total(), 676);
}

TEST(BufferFile, WhatIsNoneIsRefusedWithItsLine) {
  for (const char* text :
       {"", "HloModule m\n", "BufferAssignment:\nallocation x: size 3:\n",
        "BufferAssignment:\nallocation 0: size -3:\n", "BufferAssignment:\n value: <1 a @0> (size=4,offset=0): f32[]\n",
        "BufferAssignment:\nallocation 0: size 4:\n value: <1 a\n",
        "BufferAssignment:\nallocation 0: size 99999999999999999999999:\n",
        "BufferAssignment:\nallocation 0: size 4, shape |f\n"})
    EXPECT_THROW(read_buffer_file(text, "b.txt"), Failure) << text;
  const char* huge =
      "BufferAssignment:\nallocation 0: size 9223372036854775807, constant:\nallocation 1: size 9223372036854775807, "
      "constant:\n";
  EXPECT_EQ(read_buffer_file(huge, "b.txt").total(), INT64_MAX);
}

TEST(BufferFile, ThePeakOfALiveRange) {
  const char* text =
      "HloLiveRange (max 7):\n  InstructionSequence:\n    0:p\n    1:f\n  BufferLiveRange:\n    p{}:0-7\n    "
      "f{1}:1-3\n  Live ranges "
      "at 1 (peak):\n"
      "    f{1}: 4096 bytes (cumulative: 4096 bytes)\n    p{}: 16 bytes (cumulative: 4112 bytes)\n  Live ranges at "
      "3:\n    q{}: 9 bytes (cumulative: 9 bytes)\n";
  LivePeak peak = read_live_range_file(text, "l.txt");
  EXPECT_EQ(peak.at, 1);
  ASSERT_EQ(peak.values.size(), 2u);
  EXPECT_EQ(peak.values[0].instruction, "f");
  EXPECT_EQ(peak.values[0].index, Dims{1});
  EXPECT_EQ(peak.total(), 4112);
  ASSERT_EQ(peak.ranges.size(), 2u);
  EXPECT_EQ(peak.ranges[1].instruction, "f");
  EXPECT_EQ(peak.ranges[1].index, Dims{1});
  EXPECT_EQ(peak.ranges[1].first, 1);
  EXPECT_EQ(peak.ranges[1].last, 3);
  EXPECT_EQ(read_live_range_file("nothing here", "l.txt").at, -1);
  for (const char* wrong : {"    p\n", "    p{}:\n", "    p{}:0-x\n", "    p{0:0-1\n"})
    EXPECT_THROW(read_live_range_file(std::string("  BufferLiveRange:\n") + wrong, "l.txt"), Failure) << wrong;
}

TEST(MemoryReport, OfOurOwnAssignment) {
  auto m = parse(kState);
  MemoryReport r = memory_report(*m, nullptr);
  const int64_t w = 512 * 256 * 4, x = 512 * 64 * 4, y = 64 * 256 * 4;
  EXPECT_EQ(r.arguments, w + x + y);
  EXPECT_EQ(r.peak, w + x + y + w);  // the result is made where the product lies
  ASSERT_FALSE(r.alive.empty());
  int64_t alive = 0;
  for (const MemoryValue& v : r.alive) alive += v.bytes;
  EXPECT_EQ(alive, r.peak);
  EXPECT_FALSE(r.estimate);
  m->set_scheduled(false);
  EXPECT_TRUE(memory_report(*m, nullptr).estimate);
}

// A loop's state is one array under several names: counted once.
TEST(MemoryReport, AliveIsNeverMoreThanAllocated) {
  auto m = parse(R"(HloModule m
cond { c = (s32[], f32[1000], f32[1000]) parameter(0)
 n = s32[] get-tuple-element(c), index=0
 k = s32[] constant(3)
 ROOT lt = pred[] compare(n, k), direction=LT }
body { b = (s32[], f32[1000], f32[1000]) parameter(0)
 n = s32[] get-tuple-element(b), index=0
 one = s32[] constant(1)
 next = s32[] add(n, one)
 x = f32[1000] get-tuple-element(b), index=1
 w = f32[1000] get-tuple-element(b), index=2
 y = f32[1000] add(x, w)
 ROOT t = (s32[], f32[1000], f32[1000]) tuple(next, y, w) }
ENTRY e { p = f32[1000] parameter(0)
 z = s32[] constant(0)
 q = f32[1000] negate(p)
 r = f32[1000] exponential(p)
 t = (s32[], f32[1000], f32[1000]) tuple(z, q, r)
 l = (s32[], f32[1000], f32[1000]) while(t), condition=cond, body=body
 o = f32[1000] get-tuple-element(l), index=1
 ROOT u = f32[1000] negate(o) })");
  MemoryReport r = memory_report(*m, nullptr);
  int64_t sum = 0;
  for (const MemoryValue& v : r.alive) sum += v.bytes;
  EXPECT_GE(r.peak, 3 * 4000);
  EXPECT_LT(r.peak, 4 * 4000);  // p, one state and w of the loop, or p, o and the result
  EXPECT_LE(r.peak, r.allocated);
  EXPECT_EQ(sum, r.peak);
}

}  // namespace
}  // namespace hlo
