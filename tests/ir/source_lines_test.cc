// Source lines of instructions and kernels: from frames and from metadata, the user's own first.
#include <gtest/gtest.h>

#include "ir/query/source_lines.h"
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
  m->edit_stack().frames[0].parent = 2;
  EXPECT_EQ(source_stack(*m, named(*m, "n")).size(), 2u);
  m->edit_stack().locations[1].file = -5;
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

TEST(SourceLines, TheUsersOwnFrameBeforeALibrarys) {
  auto m = parse(kFrames);
  m->edit_stack().files[1] = "/usr/lib/python3.11/site-packages/flax/linen/linear.py";
  EXPECT_EQ(source_line(*m, named(*m, "n")).text(), "/home/me/model/train.py:38");
  EXPECT_EQ(source_stack(*m, named(*m, "n")).size(), 2u);  // the whole stack has it still
  // Where all are a library's, the innermost.
  m->edit_stack().files[0] = "/opt/site-packages/other/train.py";
  EXPECT_EQ(source_line(*m, named(*m, "n")).line, 7);
  for (const char* file : {"/a/dist-packages/x.py", "/a/jax/_src/lax.py", "/v/lib/python3.12/functools.py",
                           "<frozen importlib>", "/src/torch/nn/functional.py", "/w/flax/nnx/module.py"})
    EXPECT_TRUE(is_library_file(file)) << file;
  for (const char* file : {"train.py", "/home/me/jax/train.py", "/home/me/torch/model.py",
                           "/home/lib/models/python3.py", "/me/site-packages", "jax.py", ""})
    EXPECT_FALSE(is_library_file(file)) << file;
}

const char* kProductFusion = R"(HloModule m, is_scheduled=true
f {
  a = f32[64,64] parameter(0)
  b = f32[64,64] parameter(1)
  d = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="dense/dot" source_file="m.py" source_line=5}
  ROOT n = f32[64,64] negate(d), metadata={op_name="loss/neg" source_file="m.py" source_line=9}
}
ENTRY e {
  x = f32[64,64] parameter(0)
  ROOT k = f32[64,64] fusion(x, x), kind=kOutput, calls=f, metadata={op_name="loss/neg" source_file="m.py" source_line=9}
})";

TEST(SourceLines, OfAProductsFusionTheProducts) {
  auto m = parse(kProductFusion);
  EXPECT_EQ(kernel_source_line(*m, named(*m, "k")).text(), "m.py:5");
  EXPECT_EQ(kernel_op_name(*m, named(*m, "k")), "dense/dot");
  EXPECT_EQ(kernel_source_stack(*m, named(*m, "k"))[0].line, 5);
  EXPECT_EQ(main_operation(*m, named(*m, "k")), named(*m, "d"));
}

// `conv` is called from lines 10 and 20; most of the time is spent in it.
const char* kHelper = R"(HloModule m, is_scheduled=true

FileNames
1 "net.py"

FunctionNames
1 "conv"
2 "forward"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}
2 {file_name_id=1 function_name_id=2 line=10 end_line=10 column=1 end_column=2}
3 {file_name_id=1 function_name_id=2 line=20 end_line=20 column=1 end_column=2}

StackFrames
1 {file_location_id=2 parent_frame_id=1}
2 {file_location_id=3 parent_frame_id=2}
3 {file_location_id=1 parent_frame_id=2}
4 {file_location_id=1 parent_frame_id=3}


ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] abs(p), metadata={stack_frame_id=3}
  b = f32[4] negate(a), metadata={stack_frame_id=4}
  ROOT c = f32[4] floor(b), metadata={stack_frame_id=2}
})";

TEST(SourceLines, OfAHelperThatMostOfAStepSharesTheLineThatCallsIt) {
  auto m = parse(kHelper);
  const InstId a = named(*m, "a"), b = named(*m, "b"), c = named(*m, "c");
  EXPECT_EQ(source_line(*m, a).text(), "net.py:3");
  using Weights = std::vector<std::pair<InstId, double>>;
  const UserFrames shared(*m, Weights{{a, 4}, {b, 3}, {c, 1}});
  EXPECT_EQ(shared.helpers(), std::set<std::string>{"net.py:3"});
  EXPECT_EQ(shared.kernel(a).text(), "net.py:10");
  EXPECT_EQ(shared.kernel(b).text(), "net.py:20");
  EXPECT_EQ(shared.kernel(c).text(), "net.py:20");
  // A share of it is no most, and what one line alone calls is no helper of several.
  EXPECT_TRUE(UserFrames(*m, Weights{{a, 1}, {b, 1}, {c, 4}}).helpers().empty());
  EXPECT_EQ(UserFrames(*m, Weights{{a, 4}, {c, 1}}).kernel(a).text(), "net.py:3");
}

}  // namespace
}  // namespace hlo
