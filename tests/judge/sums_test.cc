// Reductions written in one way (replay/judge/chosen/elements/sums.h) against the evaluator, and against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/eval/evaluator.h"
#include "ir/eval/widen.h"
#include "ir/types/literal.h"
#include "parser/parser.h"
#include "replay/judge/chosen/elements/elements.h"
#include "replay/judge/chosen/elements/sums.h"
#include "replay/judge/chosen/walk/expression_walk.h"

namespace hlo {
namespace {

constexpr const char* kAdders = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
)";

std::shared_ptr<const Module> wide_module(const std::string& text, const std::shared_ptr<Universe>& u) {
  return std::shared_ptr<const Module>(widened_module(*parse_module(text, u, {"sums", 4})));
}

std::string entry(const std::string& lines) {
  std::string text = "HloModule m\n";
  text += kAdders;
  text += "ENTRY e {\n  zero = f32[] constant(0)\n  one = f32[] constant(1)\n  low = f32[] constant(-inf)\n";
  text += lines;
  text += "}\n";
  return text;
}

// The expression of the entry's result.
ExprId walked(Expressions& all, const std::shared_ptr<const Module>& m) {
  return ExpressionWalk(all, m, nullptr).run().result.id;
}

struct Pair {
  const char *name, *a, *b;
  bool same;
};

const Pair kPairs[] = {
    {"a product made in pieces", R"(  x = f32[4,262144]{1,0} parameter(0)
  y = f32[262144,3]{1,0} parameter(1)
  ROOT r = f32[4,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)",
     R"(  x = f32[4,262144]{1,0} parameter(0)
  y = f32[262144,3]{1,0} parameter(1)
  p = f32[4,64,4096]{2,1,0} reshape(x)
  q = f32[64,4096,3]{2,1,0} reshape(y)
  d = f32[64,4,3] dot(p, q), lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
  ROOT r = f32[4,3] reduce(d, zero), dimensions={0}, to_apply=add
)",
     true},
    {"a tree of sums", R"(  x = f32[1000]{0} parameter(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
)",
     R"(  x = f32[1000]{0} parameter(0)
  p = f32[1024]{0} pad(x, zero), padding=0_24
  q = f32[32,32]{1,0} reshape(p)
  h = f32[32]{0} reduce(q, zero), dimensions={1}, to_apply=add
  ROOT r = f32[] reduce(h, zero), dimensions={0}, to_apply=add
)",
     true},
    {"padded by another number", R"(  x = f32[1000]{0} parameter(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
)",
     R"(  x = f32[1000]{0} parameter(0)
  p = f32[1024]{0} pad(x, one), padding=0_24
  ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=add
)",
     false},
    {"rows of a tree", R"(  x = f32[8,1000]{1,0} parameter(0)
  ROOT r = f32[8]{0} reduce(x, low), dimensions={1}, to_apply=max
)",
     R"(  x = f32[8,1000]{1,0} parameter(0)
  p = f32[8,1024]{1,0} pad(x, low), padding=0_0x0_24
  q = f32[8,32,32]{2,1,0} bitcast(p)
  h = f32[8,32]{1,0} reduce(q, low), dimensions={1}, to_apply=max
  ROOT r = f32[8]{0} reduce(h, low), dimensions={1}, to_apply=max
)",
     true},
    {"columns of a transposed one", R"(  x = f32[6,10]{1,0} parameter(0)
  ROOT r = f32[10]{0} reduce(x, zero), dimensions={0}, to_apply=add
)",
     R"(  x = f32[6,10]{1,0} parameter(0)
  t = f32[10,6]{1,0} transpose(x), dimensions={1,0}
  ROOT r = f32[10]{0} reduce(t, zero), dimensions={1}, to_apply=add
)",
     true},
    {"rows for columns", R"(  x = f32[8,8]{1,0} parameter(0)
  ROOT r = f32[8]{0} reduce(x, zero), dimensions={0}, to_apply=add
)",
     R"(  x = f32[8,8]{1,0} parameter(0)
  ROOT r = f32[8]{0} reduce(x, zero), dimensions={1}, to_apply=add
)",
     false},
    {"another initial value", R"(  x = f32[8,8]{1,0} parameter(0)
  ROOT r = f32[8]{0} reduce(x, zero), dimensions={0}, to_apply=add
)",
     R"(  x = f32[8,8]{1,0} parameter(0)
  ROOT r = f32[8]{0} reduce(x, one), dimensions={0}, to_apply=add
)",
     false},
    {"the last is missing", R"(  x = f32[100]{0} parameter(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
)",
     R"(  x = f32[100]{0} parameter(0)
  s = f32[99]{0} slice(x), slice={[0:99]}
  ROOT r = f32[] reduce(s, zero), dimensions={0}, to_apply=add
)",
     false},
    {"nothing is taken together", R"(  x = f32[4,5]{1,0} parameter(0)
  ROOT r = f32[4,5]{1,0} copy(x)
)",
     R"(  x = f32[4,5]{1,0} parameter(0)
  y = f32[4,1,5]{2,1,0} reshape(x)
  ROOT r = f32[4,5]{1,0} reduce(y, zero), dimensions={1}, to_apply=add
)",
     true},
    {"repeated and summed in another order", R"(  x = f32[4,6]{1,0} parameter(0)
  h = f32[4]{0} reduce(x, zero), dimensions={1}, to_apply=add
  ROOT r = f32[4,3]{1,0} broadcast(h), dimensions={0}
)",
     R"(  x = f32[4,6]{1,0} parameter(0)
  b = f32[4,3,6]{2,1,0} broadcast(x), dimensions={0,2}
  ROOT r = f32[4,3]{1,0} reduce(b, zero), dimensions={2}, to_apply=add
)",
     true},
    {"all at once and one after the other", R"(  x = f32[4,6,5]{2,1,0} parameter(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0,1,2}, to_apply=add
)",
     R"(  x = f32[4,6,5]{2,1,0} parameter(0)
  h = f32[4,5]{1,0} reduce(x, zero), dimensions={1}, to_apply=add
  t = f32[5,4]{1,0} transpose(h), dimensions={1,0}
  g = f32[5]{0} reduce(t, zero), dimensions={1}, to_apply=add
  ROOT r = f32[] reduce(g, zero), dimensions={0}, to_apply=add
)",
     true},
    {"a product whose operand is transposed first", R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  ROOT r = f32[5,5]{1,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  t = f32[5,6]{1,0} transpose(x), dimensions={1,0}
  ROOT r = f32[5,5]{1,0} dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)",
     true},
    {"a product with its sides swapped", R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,7]{1,0} broadcast(one), dimensions={}
  z = f32[6,7]{1,0} sine(y)
  ROOT r = f32[5,7]{1,0} dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,7]{1,0} broadcast(one), dimensions={}
  z = f32[6,7]{1,0} sine(y)
  d = f32[7,5]{1,0} dot(z, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = f32[5,7]{1,0} transpose(d), dimensions={1,0}
)",
     true},
    {"a product as a sum of products", R"(  x = f32[4,6]{1,0} parameter(0)
  v = f32[6]{0} reduce(x, zero), dimensions={0}, to_apply=add
  w = f32[6]{0} sine(v)
  ROOT r = f32[4]{0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)",
     R"(  x = f32[4,6]{1,0} parameter(0)
  v = f32[6]{0} reduce(x, zero), dimensions={0}, to_apply=add
  w = f32[6]{0} sine(v)
  b = f32[4,6]{1,0} broadcast(w), dimensions={1}
  m = f32[4,6]{1,0} multiply(x, b)
  ROOT r = f32[4]{0} reduce(m, zero), dimensions={1}, to_apply=add
)",
     true},
    {"a padded product", R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  ROOT r = f32[5,5]{1,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  p = f32[8,5]{1,0} pad(x, zero), padding=0_2x0_0
  q = f32[8,5]{1,0} pad(y, zero), padding=0_2x0_0
  ROOT r = f32[5,5]{1,0} dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     true},
    {"a product padded on one side only", R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  ROOT r = f32[5,5]{1,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  p = f32[8,5]{1,0} pad(x, zero), padding=1_1x0_0
  q = f32[8,5]{1,0} pad(y, one), padding=1_1x0_0
  ROOT r = f32[5,5]{1,0} dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     true},
    {"two products of which one is moved by a row", R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  ROOT r = f32[5,5]{1,0} dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     R"(  x = f32[6,5]{1,0} parameter(0)
  y = f32[6,5]{1,0} sine(x)
  p = f32[8,5]{1,0} pad(x, zero), padding=1_1x0_0
  q = f32[8,5]{1,0} pad(y, zero), padding=2_0x0_0
  ROOT r = f32[5,5]{1,0} dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
     false},
    {"a batch, and dimensions in one", R"(  x = f32[3,4,5,6]{3,2,1,0} parameter(0)
  y = f32[3,4,5,6]{3,2,1,0} sine(x)
  ROOT r = f32[3,4,4]{2,1,0} dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2,3}, rhs_contracting_dims={2,3}
)",
     R"(  x = f32[3,4,5,6]{3,2,1,0} parameter(0)
  y = f32[3,4,5,6]{3,2,1,0} sine(x)
  a = f32[3,4,30]{2,1,0} reshape(x)
  b = f32[3,4,30]{2,1,0} reshape(y)
  c = f32[3,30,4]{2,1,0} transpose(b), dimensions={0,2,1}
  ROOT r = f32[3,4,4]{2,1,0} dot(a, c), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
)",
     true},
    {"a sum of maxima", R"(  x = f32[4,6]{1,0} parameter(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
)",
     R"(  x = f32[4,6]{1,0} parameter(0)
  h = f32[4]{0} reduce(x, low), dimensions={1}, to_apply=max
  ROOT r = f32[] reduce(h, zero), dimensions={0}, to_apply=add
)",
     false},
    {"a product of transposed ones", R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  ROOT r = f32[4,6]{1,0} multiply(x, y)
)",
     R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  t = f32[6,4]{1,0} transpose(x), dimensions={1,0}
  s = f32[6,4]{1,0} transpose(y), dimensions={1,0}
  m = f32[6,4]{1,0} multiply(s, t)
  ROOT r = f32[4,6]{1,0} transpose(m), dimensions={1,0}
)",
     true},
    {"a difference of transposed ones, turned round", R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  ROOT r = f32[4,6]{1,0} subtract(x, y)
)",
     R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  t = f32[6,4]{1,0} transpose(x), dimensions={1,0}
  s = f32[6,4]{1,0} transpose(y), dimensions={1,0}
  m = f32[6,4]{1,0} subtract(s, t)
  ROOT r = f32[4,6]{1,0} transpose(m), dimensions={1,0}
)",
     false},
    {"of a square one, not transposed back", R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  ROOT r = f32[4,4]{1,0} multiply(x, y)
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  t = f32[4,4]{1,0} transpose(x), dimensions={1,0}
  s = f32[4,4]{1,0} transpose(y), dimensions={1,0}
  ROOT r = f32[4,4]{1,0} multiply(t, s)
)",
     false},
    {"a negated broadcast", R"(  x = f32[4]{0} parameter(0)
  b = f32[3,4]{1,0} broadcast(x), dimensions={1}
  ROOT r = f32[3,4]{1,0} negate(b)
)",
     R"(  x = f32[4]{0} parameter(0)
  n = f32[4]{0} negate(x)
  ROOT r = f32[3,4]{1,0} broadcast(n), dimensions={1}
)",
     true},
    {"a padded transposed one", R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  t = f32[6,4]{1,0} transpose(x), dimensions={1,0}
  ROOT r = f32[9,5]{1,0} pad(t, one), padding=1_2x0_1
)",
     R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  p = f32[5,9]{1,0} pad(x, one), padding=0_1x1_2
  ROOT r = f32[9,5]{1,0} transpose(p), dimensions={1,0}
)",
     true},
    {"padded at the other end", R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  t = f32[4,4]{1,0} transpose(x), dimensions={1,0}
  ROOT r = f32[5,5]{1,0} pad(t, one), padding=1_0x0_1
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  p = f32[5,5]{1,0} pad(x, one), padding=1_0x0_1
  ROOT r = f32[5,5]{1,0} transpose(p), dimensions={1,0}
)",
     false},
    {"joined transposed ones", R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  t = f32[6,4]{1,0} transpose(x), dimensions={1,0}
  s = f32[6,4]{1,0} transpose(y), dimensions={1,0}
  ROOT r = f32[6,8]{1,0} concatenate(t, s), dimensions={1}
)",
     R"(  x = f32[4,6]{1,0} parameter(0)
  y = f32[4,6]{1,0} parameter(1)
  c = f32[8,6]{1,0} concatenate(x, y), dimensions={0}
  ROOT r = f32[6,8]{1,0} transpose(c), dimensions={1,0}
)",
     true},
    {"joined along the other dimension", R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  t = f32[4,4]{1,0} transpose(x), dimensions={1,0}
  s = f32[4,4]{1,0} transpose(y), dimensions={1,0}
  c = f32[4,8]{1,0} concatenate(t, s), dimensions={1}
  ROOT r = f32[32]{0} reshape(c)
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  c = f32[8,4]{1,0} concatenate(x, y), dimensions={0}
  ROOT r = f32[32]{0} reshape(c)
)",
     false},
    {"an update of a transposed one", R"(  x = f32[4,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  y = f32[2,2]{1,0} parameter(3)
  ROOT r = f32[4,4]{1,0} dynamic-update-slice(x, y, i, j)
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  y = f32[2,2]{1,0} parameter(3)
  t = f32[4,4]{1,0} transpose(x), dimensions={1,0}
  s = f32[2,2]{1,0} transpose(y), dimensions={1,0}
  d = f32[4,4]{1,0} dynamic-update-slice(t, s, j, i)
  ROOT r = f32[4,4]{1,0} transpose(d), dimensions={1,0}
)",
     true},
    {"an update whose indices are not turned", R"(  x = f32[4,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  y = f32[2,2]{1,0} parameter(3)
  ROOT r = f32[4,4]{1,0} dynamic-update-slice(x, y, i, j)
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  y = f32[2,2]{1,0} parameter(3)
  t = f32[4,4]{1,0} transpose(x), dimensions={1,0}
  s = f32[2,2]{1,0} transpose(y), dimensions={1,0}
  d = f32[4,4]{1,0} dynamic-update-slice(t, s, i, j)
  ROOT r = f32[4,4]{1,0} transpose(d), dimensions={1,0}
)",
     false},
    {"a part of a transposed one", R"(  x = f32[4,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  y = f32[2,2]{1,0} parameter(3)
  ROOT r = f32[2,3]{1,0} dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  y = f32[2,2]{1,0} parameter(3)
  t = f32[4,4]{1,0} transpose(x), dimensions={1,0}
  d = f32[3,2]{1,0} dynamic-slice(t, j, i), dynamic_slice_sizes={3,2}
  ROOT r = f32[2,3]{1,0} transpose(d), dimensions={1,0}
)",
     true},
    {"a transposed iota", R"(  ROOT r = f32[4,6]{1,0} iota(), iota_dimension=0
)",
     R"(  i = f32[6,4]{1,0} iota(), iota_dimension=1
  ROOT r = f32[4,6]{1,0} transpose(i), dimensions={1,0}
)",
     true},
    {"an iota along the other dimension", R"(  ROOT r = f32[4,4]{1,0} iota(), iota_dimension=0
)",
     R"(  ROOT r = f32[4,4]{1,0} iota(), iota_dimension=1
)",
     false},
    {"an outer product", R"(  x = f32[4]{0} parameter(0)
  y = f32[6]{0} parameter(1)
  ROOT r = f32[4,6]{1,0} dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={}
)",
     R"(  x = f32[4]{0} parameter(0)
  y = f32[6]{0} parameter(1)
  a = f32[4,6]{1,0} broadcast(x), dimensions={0}
  b = f32[4,6]{1,0} broadcast(y), dimensions={1}
  ROOT r = f32[4,6]{1,0} multiply(b, a)
)",
     true},
    {"a solver's call", R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,2]{1,0} parameter(1)
  ROOT r = f32[4,2]{1,0} triangular-solve(x, y), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,2]{1,0} parameter(1)
  c = (f32[4,2]{1,0}, s8[0]{0}) custom-call(x, y), custom_call_target="__cublas$triangularSolve", backend_config={"left_side":true,"lower":true,"transpose_a":"NO_TRANSPOSE","unit_diagonal":false}
  ROOT r = f32[4,2]{1,0} get-tuple-element(c), index=0
)",
     true},
    {"a solver's call, upper", R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,2]{1,0} parameter(1)
  ROOT r = f32[4,2]{1,0} triangular-solve(x, y), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
)",
     R"(  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,2]{1,0} parameter(1)
  c = (f32[4,2]{1,0}, s8[0]{0}) custom-call(x, y), custom_call_target="__cublas$triangularSolve", backend_config={"left_side":true,"lower":false,"transpose_a":"NO_TRANSPOSE","unit_diagonal":false}
  ROOT r = f32[4,2]{1,0} get-tuple-element(c), index=0
)",
     false},
    {"a part of a joined product", R"(  x = f32[3,4]{1,0} parameter(0)
  y = f32[4,5]{1,0} parameter(1)
  z = f32[4,6]{1,0} parameter(2)
  ROOT r = f32[3,5]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)",
     R"(  x = f32[3,4]{1,0} parameter(0)
  y = f32[4,5]{1,0} parameter(1)
  z = f32[4,6]{1,0} parameter(2)
  c = f32[4,11]{1,0} concatenate(y, z), dimensions={1}
  d = f32[3,11]{1,0} dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[3,5]{1,0} slice(d), slice={[0:3], [0:5]}
)",
     true},
    {"another part of a joined product", R"(  x = f32[3,4]{1,0} parameter(0)
  y = f32[4,5]{1,0} parameter(1)
  z = f32[4,6]{1,0} parameter(2)
  ROOT r = f32[3,5]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)",
     R"(  x = f32[3,4]{1,0} parameter(0)
  y = f32[4,5]{1,0} parameter(1)
  z = f32[4,6]{1,0} parameter(2)
  c = f32[4,11]{1,0} concatenate(y, z), dimensions={1}
  d = f32[3,11]{1,0} dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[3,5]{1,0} slice(d), slice={[0:3], [1:6]}
)",
     false},
};

TEST(Sums, OneNumberForWhatIsOneSum) {
  for (const Pair& p : kPairs) {
    SCOPED_TRACE(p.name);
    const auto u = std::make_shared<Universe>();
    const auto a = wide_module(entry(p.a), u), b = wide_module(entry(p.b), u);
    Expressions all;
    const ExprId x = walked(all, a), y = walked(all, b);
    EXPECT_EQ(x == y, p.same);
  }
}

std::string loop(const std::string& body, const std::string& state, const std::string& init) {
  std::string text =
      "HloModule m\nbody {\n  s = " + state + " parameter(0)\n" + body + "}\ncondition {\n  s = " + state;
  text += R"( parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  zero = s32[] constant(0)
)";
  text += "  t = " + state + " tuple(" + init + ")\n  w = " + state + " while(t), condition=condition, body=body\n";
  return text + "  ROOT r = f32[4,4]{1,0} get-tuple-element(w), index=1\n}\n";
}

TEST(Sums, LoopsByWhatATripMakes) {
  const std::string two = "(s32[], f32[4,4]{1,0})", three = "(s32[], f32[4,4]{1,0}, s32[])",
                    given = "(s32[], f32[4,4]{1,0}, f32[4,4]{1,0})";
  const std::string one = R"(  i = s32[] get-tuple-element(s), index=0
  x = f32[4,4]{1,0} get-tuple-element(s), index=1
  c = s32[] constant(1)
  j = s32[] add(i, c)
)";
  auto counted = [&](const std::string& by, const std::string& step) {
    return one + "  k = s32[] get-tuple-element(s), index=2\n  d = s32[] constant(" + step +
           ")\n  l = s32[] add(k, d)\n" + "  f = f32[] convert(" + by +
           ")\n  b = f32[4,4]{1,0} broadcast(f), dimensions={}\n" +
           "  z = f32[4,4]{1,0} add(x, b)\n  ROOT r = (s32[], f32[4,4]{1,0}, s32[]) tuple(j, z, l)\n";
  };
  const std::string plain = one + R"(  f = f32[] convert(i)
  b = f32[4,4]{1,0} broadcast(f), dimensions={}
  z = f32[4,4]{1,0} add(x, b)
  ROOT r = (s32[], f32[4,4]{1,0}) tuple(j, z)
)";
  auto handed = [&](const std::string& kept) {
    return one + "  g = f32[4,4]{1,0} get-tuple-element(s), index=2\n" +
           "  t = f32[4,4]{1,0} transpose(g), dimensions={1,0}\n  u = f32[4,4]{1,0} transpose(t), dimensions={1,0}\n" +
           "  z = f32[4,4]{1,0} add(x, g)\n  ROOT r = (s32[], f32[4,4]{1,0}, f32[4,4]{1,0}) tuple(j, z, " + kept +
           ")\n";
  };
  const struct {
    const char* name;
    std::string a, b;
    bool same;
  } cases[] = {
      {"a second counter", loop(plain, two, "zero, x"), loop(counted("k", "1"), three, "zero, x, zero"), true},
      {"a second counter by two", loop(plain, two, "zero, x"), loop(counted("k", "2"), three, "zero, x, zero"), false},
      {"a counter that nobody reads", loop(plain, two, "zero, x"), loop(counted("i", "2"), three, "zero, x, zero"),
       true},
      {"handed on, transposed twice", loop(handed("g"), given, "zero, x, y"), loop(handed("u"), given, "zero, x, y"),
       true},
      {"handed on, transposed", loop(handed("g"), given, "zero, x, y"), loop(handed("t"), given, "zero, x, y"), false},
      {"begun with another", loop(handed("g"), given, "zero, x, y"), loop(handed("g"), given, "zero, x, x"), false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto u = std::make_shared<Universe>();
    const auto a = wide_module(c.a, u), b = wide_module(c.b, u);
    Expressions all;
    const ExprId x = walked(all, a), y = walked(all, b);
    EXPECT_EQ(x == y, c.same);
  }
}

TEST(Sums, TermsOfTwo) {
  const auto u = std::make_shared<Universe>();
  Expressions all;
  const auto a = wide_module(entry(R"(  x = f32[8,64]{1,0} parameter(0)
  y = f32[8,64]{1,0} cosine(x)
  ROOT r = f32[8]{0} reduce(y, zero), dimensions={1}, to_apply=add
)"),
                             u);
  const auto b = wide_module(entry(R"(  x = f32[8,64]{1,0} parameter(0)
  y = f32[8,64]{1,0} sine(x)
  ROOT r = f32[8]{0} reduce(y, zero), dimensions={1}, to_apply=add
)"),
                             u);
  const ExprId x = walked(all, a), y = walked(all, b);
  const std::optional<SumTerms> terms = sum_terms(all, *u, x, y);
  ASSERT_TRUE(terms);
  EXPECT_EQ(terms->dims, (Dims{8, 64}));
  EXPECT_NE(terms->now, terms->before);
  EXPECT_EQ(all[terms->now].m->op(all[terms->now].inst), Opcode::Cosine);
  EXPECT_FALSE(sum_terms(all, *u, x, terms->now));
}

// A chain of what sums are looked through, of a few elements.
class Chain {
 public:
  explicit Chain(uint64_t seed) : random_(seed) {}

  std::string text() {
    dims_.resize(1 + pick(3));
    for (int64_t& d : dims_) d = 1 + pick(6);
    add(fmt::format("parameter(0)"));
    max_ = pick(2) != 0;
    const auto steps = 2 + pick(8);
    for (int64_t k = 0; k < steps; ++k) step();
    std::string root = lines_.back();
    lines_.back() = "  ROOT " + root.substr(2);
    std::string all;
    for (const std::string& l : lines_) all += l;
    return entry(all);
  }

 private:
  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  std::string shape() const {
    std::string dims, layout;
    for (size_t d = 0; d < dims_.size(); ++d) {
      dims += fmt::format("{}{}", d ? "," : "", dims_[d]);
      layout += fmt::format("{}{}", d ? "," : "", dims_.size() - 1 - d);
    }
    return dims_.empty() ? "f32[]" : fmt::format("f32[{}]{{{}}}", dims, layout);
  }
  void add(const std::string& what) {
    name_ = fmt::format("v{}", lines_.size());
    lines_.push_back(fmt::format("  {} = {} {}\n", name_, shape(), what));
  }
  void step() {
    const auto rank = static_cast<int64_t>(dims_.size());
    const std::string from = name_;
    switch (pick(15)) {
      case 0:
      case 1: {  // reduce
        std::string over;
        Dims kept;
        for (int64_t d = 0; d < rank; ++d) {
          if (pick(2))
            over += fmt::format("{}{}", over.empty() ? "" : ",", d);
          else
            kept.push_back(dims_[static_cast<size_t>(d)]);
        }
        dims_ = kept;
        return add(fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", from, max_ ? "low" : "zero", over,
                               max_ ? "max" : "add"));
      }
      case 2: {  // pad
        if (!rank) return;
        std::string pads;
        for (int64_t& d : dims_) {
          const int64_t low = pick(3), high = pick(3), inside = pick(3) / 2;
          pads += fmt::format("{}{}_{}_{}", pads.empty() ? "" : "x", low, high, inside);
          d += low + high + inside * (d - 1);
        }
        return add(fmt::format("pad({}, {}), padding={}", from, pick(4) ? (max_ ? "low" : "zero") : "one", pads));
      }
      case 3: {  // transpose
        std::vector<int64_t> order(dims_.size());
        for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
        std::shuffle(order.begin(), order.end(), random_);
        Dims to;
        std::string by;
        for (int64_t d : order)
          to.push_back(dims_[static_cast<size_t>(d)]), by += fmt::format("{}{}", by.empty() ? "" : ",", d);
        dims_ = to;
        return add(fmt::format("transpose({}), dimensions={{{}}}", from, by));
      }
      case 4: {  // reshape
        int64_t n = 1;
        for (int64_t d : dims_) n *= d;
        dims_.clear();
        while (n > 1) {
          int64_t d = 2;
          while (n % d || (d < n && pick(2))) ++d;
          dims_.push_back(d), n /= d;
        }
        return add(fmt::format("reshape({})", from));
      }
      case 5: {  // slice
        std::string slices;
        for (int64_t& d : dims_) {
          const int64_t start = pick(2) * pick(d), limit = pick(2) ? d : start + 1 + pick(d - start),
                        stride = 1 + pick(2);
          slices += fmt::format("{}[{}:{}:{}]", slices.empty() ? "" : ",", start, limit, stride);
          d = (limit - start + stride - 1) / stride;
        }
        return add(fmt::format("slice({}), slice={{{}}}", from, slices));
      }
      case 6: {  // broadcast
        if (rank > 3) return;
        std::string onto;
        const int64_t at = pick(rank + 1);
        for (int64_t d = 0; d < rank; ++d) onto += fmt::format("{}{}", d ? "," : "", d + (d >= at));
        dims_.insert(dims_.begin() + at, 1 + pick(3));
        return add(fmt::format("broadcast({}), dimensions={{{}}}", from, onto));
      }
      case 7: {  // dot, of this value with itself, elementwise changed
        const std::vector<std::string> ways = {"sine", "negate", "copy"};
        add(fmt::format("{}({})", ways[static_cast<size_t>(pick(3))], from));
        const std::string other = name_;
        std::string batch, over;
        Dims b, own;
        for (int64_t d = 0; d < rank; ++d) {
          const int64_t size = dims_[static_cast<size_t>(d)], role = pick(3);
          std::string* list = role == 0 ? &batch : role == 1 ? &over : nullptr;
          if (list) *list += fmt::format("{}{}", list->empty() ? "" : ",", d);
          if (role == 0) b.push_back(size);
          if (role == 2) own.push_back(size);
        }
        if (2 * own.size() + b.size() > 5) return;
        dims_ = b;
        dims_.insert(dims_.end(), own.begin(), own.end());
        dims_.insert(dims_.end(), own.begin(), own.end());
        const bool swap = pick(2);
        return add(
            fmt::format("dot({0}, {1}), lhs_batch_dims={{{2}}}, rhs_batch_dims={{{2}}}, "
                        "lhs_contracting_dims={{{3}}}, rhs_contracting_dims={{{3}}}",
                        swap ? other : from, swap ? from : other, batch, over));
      }
      case 8: {  // a product, element by element
        add(fmt::format("cosine({})", from));
        return add(fmt::format("multiply({}, {})", name_, from));
      }
      case 9: {  // a mask of its own indices
        if (!rank) return;
        const std::string before = shape();
        add(fmt::format("iota(), iota_dimension={}", pick(rank)));
        const std::string iota = name_;
        lines_.push_back(fmt::format("  m{} = pred{} compare({}, {}), direction={}\n", lines_.size(), before.substr(3),
                                     iota, from, pick(2) ? "LT" : "GE"));
        const std::string mask = fmt::format("m{}", lines_.size() - 1);
        return add(fmt::format("select({}, {}, {})", mask, pick(2) ? iota : from, from));
      }
      case 10: {  // joined with itself, changed
        if (!rank || dims_.size() > 4) return;
        add(fmt::format("sine({})", from));
        const int64_t along = pick(rank);
        dims_[static_cast<size_t>(along)] *= 2;
        return add(fmt::format("concatenate({}, {}), dimensions={{{}}}", pick(2) ? name_ : from, from, along));
      }
      case 11: {  // a part from somewhere
        if (!rank) return;
        std::string at, sizes;
        for (int64_t& d : dims_) {
          at += fmt::format(", {}", number(pick(d + 1)));
          d = 1 + pick(d);
          sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", d);
        }
        return add(fmt::format("dynamic-slice({}{}), dynamic_slice_sizes={{{}}}", from, at, sizes));
      }
      case 12: {  // a part of itself, changed, put somewhere
        if (!rank) return;
        std::string at, slices;
        const Dims all = dims_;
        for (int64_t& d : dims_) {
          at += fmt::format(", {}", number(pick(d + 1)));
          d = 1 + pick(d);
          slices += fmt::format("{}[0:{}]", slices.empty() ? "" : ",", d);
        }
        add(fmt::format("slice({}), slice={{{}}}", from, slices));
        add(fmt::format("cosine({})", name_));
        dims_ = all;
        return add(fmt::format("dynamic-update-slice({}, {}{})", from, name_, at));
      }
      case 13: {  // of a transposed twin that is transposed back
        Dims to(dims_.rbegin(), dims_.rend());
        std::string by;
        for (int64_t d = rank; d-- > 0;) by += fmt::format("{}{}", by.empty() ? "" : ",", d);
        const Dims own = dims_;
        dims_ = to;
        add(fmt::format("transpose({}), dimensions={{{}}}", from, by));
        add(fmt::format("negate({})", name_));
        dims_ = own;
        add(fmt::format("transpose({}), dimensions={{{}}}", name_, by));
        return add(fmt::format("subtract({}, {})", from, name_));
      }
      default: {  // reverse
        if (!rank) return;
        return add(fmt::format("reverse({}), dimensions={{{}}}", from, pick(rank)));
      }
    }
  }

  std::string number(int64_t n) {
    lines_.push_back(fmt::format("  n{} = s32[] constant({})\n", lines_.size(), n));
    return fmt::format("n{}", lines_.size() - 1);
  }

  std::mt19937_64 random_;
  Dims dims_;
  bool max_ = false;
  std::string name_;
  std::vector<std::string> lines_;
};

TEST(Sums, ChainsByChanceAreWhatTheEvaluatorHas) {
  size_t sums = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string text = Chain(seed).text();
    SCOPED_TRACE(text);
    const auto u = std::make_shared<Universe>();
    const auto m = wide_module(text, u);
    Expressions all;
    const ExprId e = walked(all, m);
    for (const Expr& x : all.all()) sums += x.kind == Expr::kSum;
    const InstId p = m->comp(m->entry()).params[0];
    Value in;
    in.shape = m->shape_id(p);
    const int64_t n = m->shape(p).elements_count();
    in.data = std::make_shared<std::vector<char>>(static_cast<size_t>(n) * 8);
    for (int64_t k = 0; k < n; ++k) {
      const double x = std::sin(static_cast<double>(k + 1) * 37.0);
      std::memcpy(in.data->data() + k * 8, &x, 8);
    }
    const Value want = Evaluator(*m).run({in});
    ChosenElements elements(all.all(),
                            [&](ExprId, std::span<const int64_t> at, char* out) {
                              for (int64_t i : at) std::memcpy(out, in.bytes() + i * 8, 8), out += 8;
                            },
                            {});
    const int64_t count = (*u)[want.shape].elements_count();
    std::vector<int64_t> at;
    for (int64_t k = 0; k < count; ++k) at.push_back(k);
    if (at.empty()) continue;
    const std::vector<char> got = elements.at(e, at);
    for (int64_t k = 0; k < count; ++k) {
      double x = 0, y = 0;
      std::memcpy(&x, got.data() + k * 8, 8), std::memcpy(&y, want.bytes() + k * 8, 8);
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) < 1e-9 * std::max(1.0, std::fabs(y)))
          << "element " << k << ": " << x << " for " << y;
    }
  }
  EXPECT_GT(sums, 1000u);
}

}  // namespace
}  // namespace hlo
