// Calls of LAPACK and cuSOLVER, as jax makes them, against what XLA's CPU backend gives (testdata/eval/lapack.jsonl,
// written by tests/dev/oracle/lapack_cases.py): a call for CUDA must give what the same function gives on the CPU.
#include "ir/library/lapack.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "ir/eval/evaluator.h"
#include "ir/library/library_calls.h"
#include "parser/parser.h"
#include "replay/judge/op_cases.h"

namespace hlo {
namespace {

// Eigenvectors and Schur vectors are right with any factor of size 1, and rounding decides which: their sizes count.
void take_sizes(const Universe& u, std::vector<char>* bytes, ShapeId shape) {
  ElementType t = u[shape].type;
  for (size_t at = 0; at < bytes->size(); at += static_cast<size_t>(storage_bytes(t))) {
    char* to = bytes->data() + at;
    if (is_complex(t)) store_complex(t, to, std::abs(load_complex(t, to)));
    if (is_float(t)) store_double(t, to, std::fabs(load_double(t, to)));
  }
}
std::string hex(const std::vector<char>& bytes) {
  std::string out;
  for (char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::vector<OpCase> cases() {
  std::vector<OpCase> out;
  std::ifstream file(HLO_TESTDATA "/eval/lapack.jsonl");
  for (std::string line; std::getline(file, line);) out.push_back(op_case(line));
  return out;
}

TEST(Lapack, AsXla) {
  std::set<std::string> seen;
  for (OpCase c : cases()) {
    SCOPED_TRACE(c.name() + "\n" + c.text);
    auto m = parse_module(c.text, std::make_shared<Universe>());
    for (CompId comp : m->computations())
      for (InstId i : m->comp(comp).order)
        if (std::optional<LapackCall> call = lapack_call(*m, i, nullptr))
          seen.insert(std::string(call->library) + " " + std::string(call->routine));
    std::vector<Value> arguments, outputs;
    const auto& params = m->comp(m->entry()).params;
    for (size_t k = 0; k < params.size(); ++k) {
      Value v;
      v.shape = m->shape_id(params[k]);
      v.data = std::make_shared<std::vector<char>>(from_hex(c.inputs[k]));
      arguments.push_back(std::move(v));
    }
    flatten(m->u(), Evaluator(*m).run(arguments), &outputs);
    if (c.op.starts_with("eig") || c.op.starts_with("schur"))
      for (size_t k = 0; k < outputs.size(); ++k) {
        std::vector<char> want = from_hex(c.outputs[k]);
        take_sizes(m->u(), &want, outputs[k].shape), take_sizes(m->u(), outputs[k].data.get(), outputs[k].shape);
        c.outputs[k] = hex(want);
      }
    EXPECT_EQ(result_error(m->u(), c, outputs), "");
  }
  // All of the table but gesvdp, which jax takes where its algorithm is named, and gesvdj's code computes.
  for (const char* known : {"lapack potrf",
                            "lapack getrf",
                            "lapack geqrf",
                            "lapack geqp3",
                            "lapack orgqr",
                            "lapack ormqr",
                            "lapack gesdd",
                            "lapack gesvd",
                            "lapack syevd",
                            "lapack geev",
                            "lapack gees",
                            "lapack gehrd",
                            "lapack sytrd",
                            "lapack trsm",
                            "lapack gtsv",
                            "cusolver potrf",
                            "cusolver getrf",
                            "cusolver geqrf",
                            "cusolver orgqr",
                            "cusolver ormqr",
                            "cusolver gesvd",
                            "cusolver gesvdj",
                            "cusolver syevd",
                            "cusolver geev",
                            "cusolver sytrd",
                            "cuhybrid geev",
                            "cuhybrid geqp3",
                            "cusparse gtsv",
                            "cu lu_pivots_to_permutation"})
    EXPECT_TRUE(seen.count(known)) << known;
}

std::string error_of(const std::string& body) {
  auto m = parse_module("HloModule m\nENTRY e {\n" + body + "\n}", std::make_shared<Universe>());
  return library_call_error(*m, m->comp(m->entry()).root);
}

TEST(Lapack, SaysWhatDoesNotFit) {
  const std::string a = "a = f32[2,5,3] parameter(0)\n", call = "custom-call(a), custom_call_target=";
  EXPECT_EQ(error_of(a + "ROOT r = (f32[2,5,3], f32[2,3]) " + call + "\"lapack_sgeqrf_ffi\", backend_config={}"), "");
  EXPECT_EQ(error_of(a + "ROOT r = (f32[2,5,3], f32[2,4]) " + call + "\"lapack_sgeqrf_ffi\", backend_config={}"),
            "result 1 is f32[2,4], expected f32[2,3]");
  EXPECT_EQ(error_of(a + "ROOT r = (f32[2,5,3], f32[2,3]) " + call + "\"lapack_dgeqrf_ffi\", backend_config={}"),
            "operand 0 is of f32, expected f64");
  // A module made wider to find rounding keeps its targets.
  EXPECT_EQ(error_of("a = f64[5,3] parameter(0)\nROOT r = (f64[5,3], f64[3]) " + call +
                     "\"lapack_sgeqrf_ffi\", backend_config={}"),
            "");
  EXPECT_EQ(
      error_of(a + "ROOT r = (f32[2,5,3], s32[2]) " + call + "\"cusolver_potrf_ffi\", backend_config={lower = true}"),
      "operand 0 is f32[2,5,3], expected f32[2,5,5]");
  EXPECT_EQ(error_of("a = f32[4,4] parameter(0)\nROOT r = (f32[4,4], s32[]) " + call +
                     "\"lapack_spotrf_ffi\", backend_config={}"),
            "its configuration has no uplo");
  EXPECT_EQ(error_of("a = f32[4,4] parameter(0)\nROOT r = (f32[4,4], s32[]) " + call +
                     "\"lapack_spotrf_ffi\", backend_config={uplo = 90 : ui8}"),
            "its configuration has uplo = 90, expected the code of one of LU");
  EXPECT_EQ(error_of("a = f32[4] parameter(0)\nROOT r = (f32[4], s32[]) " + call +
                     "\"lapack_spotrf_ffi\", backend_config={uplo = 76 : ui8}"),
            "operand 0 is f32[4], expected an array of rank 2 or more");
  EXPECT_EQ(
      error_of("ROOT r = (f32[4], s32[]) custom-call(), custom_call_target=\"lapack_spotrf_ffi\", backend_config={}"),
      "it has no operands");
  EXPECT_EQ(error_of("a = f32[3,5] parameter(0)\nt = f32[3] parameter(1)\nROOT r = f32[3,5] custom-call(a, t), "
                     "custom_call_target=\"lapack_sorgqr_ffi\", backend_config={}"),
            "3 factors for matrices of 3 x 5");
  EXPECT_EQ(error_of("a = f32[4,4] parameter(0)\nROOT r = (f32[4,4], f32[3], s32[]) " + call +
                     "\"lapack_sgehrd_ffi\", backend_config={high = 9 : i32, low = 1 : i32}"),
            "rows 1 to 9 of 4");
  EXPECT_FALSE(is_library_target("lapack_sgesdd"));  // of before the typed interface: its operands are others
}

// What sizes do not tell: a = z·t·z^H, and z's columns are orthonormal.
TEST(Lapack, SchurVectorsMakeTheMatrixAgain) {
  using Complex = std::complex<double>;
  auto m = parse_module(
      "HloModule m\nENTRY e {\na = c128[3,3] constant({{(1,2), (3,-1), (0,1)}, {(-2,0.5), (4,1), (1,1)}, {(0.25,0), "
      "(2,-3), "
      "(-1,1)}})\ns = (c128[3,3], c128[3,3], c128[3], s32[], s32[]) custom-call(a), "
      "custom_call_target=\"lapack_zgees_ffi\", "
      "backend_config={mode = 86 : ui8, sort = 78 : ui8}\nROOT r = (c128[3,3], (c128[3,3], c128[3,3], c128[3], s32[], "
      "s32[])) tuple(a, s)\n}",
      std::make_shared<Universe>());
  std::vector<Value> v;
  flatten(m->u(), Evaluator(*m).run({}), &v);
  auto at = [&](size_t k, int i, int j) { return load_complex(ElementType::C128, v[k].bytes() + (i * 3 + j) * 16); };
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      Complex made = 0, unit = 0;
      for (int k = 0; k < 3; ++k) {
        unit += std::conj(at(2, k, i)) * at(2, k, j);
        for (int l = 0; l < 3; ++l) made += at(2, i, k) * at(1, k, l) * std::conj(at(2, j, l));
      }
      EXPECT_LT(std::abs(made - at(0, i, j)), 1e-13);
      EXPECT_LT(std::abs(unit - Complex(i == j)), 1e-13);
    }
}

// Matrices without rows or columns, and of numbers that are none.
TEST(Lapack, Edges) {
  auto run = [](const std::string& shape, const std::string& results, const std::string& behind, const char* value) {
    auto m = parse_module("HloModule m\nENTRY e {\nc = f32[] constant(" + std::string(value) + ")\na = " + shape +
                              " broadcast(c), dimensions={}\nROOT r = " + results +
                              " custom-call(a), custom_call_target=" + behind + "\n}",
                          std::make_shared<Universe>());
    std::vector<Value> outputs;
    flatten(m->u(), Evaluator(*m).run({}), &outputs);
    return outputs;
  };
  EXPECT_EQ(run("f32[0,3]", "(f32[0,3], s32[0], s32[])", "\"lapack_sgetrf_ffi\", backend_config={}", "1").size(), 3u);
  EXPECT_EQ(run("f32[0,0]", "(f32[0,0], f32[0], s32[])",
                "\"lapack_ssyevd_ffi\", backend_config={mode = 86 : ui8, uplo = 76 : ui8}", "1")
                .size(),
            3u);
  EXPECT_EQ(run("f32[0,0]", "(f32[0,0], f32[0], s32[])",
                "\"lapack_sgehrd_ffi\", backend_config={high = 0 : i32, low = 1 : i32}", "1")
                .size(),
            3u);
  auto info = [](const Value& v) { return load_int(ElementType::S32, v.bytes()); };
  EXPECT_NE(
      info(run("f32[2,2]", "(f32[2], f32[2], c64[2,2], c64[2,2], s32[])",
               "\"lapack_sgeev_ffi\", backend_config={compute_left = 86 : ui8, compute_right = 86 : ui8}", "inf")[4]),
      0);
}

}  // namespace
}  // namespace hlo
