// Where instructions come from, and what looks odd about a module.
#include <gtest/gtest.h>

#include "ir/source_lines.h"
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

const char* kFrames = R"(HloModule m

FileNames
1 "/home/me/model/train.py"
2 "/home/me/model/layers.py"

FunctionNames
1 "train_step"
2 "Dense.__call__"

FileLocations
1 {file_name_id=1 function_name_id=1 line=38 end_line=38 column=4 end_column=9}
2 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=8 end_column=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


body {
  p = f32[4] parameter(0)
  n = f32[4] negate(p), metadata={op_name="jit(f)/dense/neg" stack_frame_id=2}
  ROOT b = f32[4] bitcast(n)
}

ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] abs(p), metadata={op_name="jit(f)/abs" stack_frame_id=1}
  o = f32[4] floor(a), metadata={op_name="jit(f)/floor" source_file="old.py" source_line=3}
  x = f32[4] ceil(o), metadata={op_name="jit(f)/ceil" stack_frame_id=77 source_file="old.py" source_line=9}
  ROOT f = f32[4] fusion(x), kind=kLoop, calls=body
})";

TEST(SourceLines, ComeFromFramesAndFromMetadata) {
  auto m = parse(kFrames);
  EXPECT_EQ(source_line(*m, named(*m, "n")).text(), "/home/me/model/layers.py:7");
  EXPECT_EQ(source_line(*m, named(*m, "n")).brief(), "model/layers.py:7");
  EXPECT_EQ(source_line(*m, named(*m, "n")).function, "Dense.__call__");
  EXPECT_EQ(source_line(*m, named(*m, "a")).text(), "/home/me/model/train.py:38");
  EXPECT_EQ(source_line(*m, named(*m, "o")).text(), "old.py:3");
  EXPECT_FALSE(source_line(*m, named(*m, "f")).known());
}

TEST(SourceLines, TheWholeStackOnDemand) {
  auto m = parse(kFrames);
  std::vector<SourceLine> stack = source_stack(*m, named(*m, "n"));
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack[0].line, 7);
  EXPECT_EQ(stack[1].function, "train_step");
  EXPECT_EQ(source_stack(*m, named(*m, "o")).size(), 1u);
  EXPECT_TRUE(source_stack(*m, named(*m, "f")).empty());
}

TEST(SourceLines, FramesThatAreNotThereOrCallEachOther) {
  auto m = parse(kFrames);
  EXPECT_EQ(source_line(*m, named(*m, "x")).text(), "old.py:9");
  m->stack.frames[0].parent = 2;
  EXPECT_EQ(source_stack(*m, named(*m, "n")).size(), 2u);
  m->stack.locations[1].file = -5;
  // A frame without a place: that of its caller.
  EXPECT_EQ(source_line(*m, named(*m, "n")).text(), "/home/me/model/train.py:38");
}

TEST(SourceLines, OfAKernelThoseOfTheOperationNearestToItsResult) {
  auto m = parse(kFrames);
  EXPECT_EQ(kernel_source_line(*m, named(*m, "f")).text(), "/home/me/model/layers.py:7");
  EXPECT_EQ(kernel_op_name(*m, named(*m, "f")), "jit(f)/dense/neg");
  EXPECT_EQ(scope_of("jit(f)/dense/neg"), "jit(f)/dense");
  EXPECT_EQ(scope_of("neg"), "");
}

}  // namespace
}  // namespace hlo
