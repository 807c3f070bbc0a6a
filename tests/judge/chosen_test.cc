// Chosen elements against the whole evaluator, which makes all arrays.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <set>

#include "ir/eval/evaluator.h"
#include "ir/eval/widen.h"
#include "ir/types/literal.h"
#include "parser/parser.h"
#include "replay/judge/chosen/elements/elements.h"
#include "tests/common/random_module.h"

namespace hlo {
namespace {

size_t array_count(const Universe& u, ShapeId id) {
  size_t n = u[id].is_array();
  for (ShapeId e : u[id].elements) n += array_count(u, e);
  return n;
}
std::vector<Value> arrays_of(const Universe& u, const Value& v) {
  std::vector<Value> all;
  flatten(u, v, &all);
  std::erase_if(all, [&](const Value& a) { return !u[a.shape].is_array(); });
  return all;
}

// The entry of a module, widened: what it computes, and the value of each expression as the evaluator has it.
struct Flat {
  std::unique_ptr<Module> narrow, m;
  std::vector<Expr> expressions;
  std::vector<Value> values;

  explicit Flat(const std::string& text, uint64_t seed = 1) {
    narrow = parse_module(text, std::make_shared<Universe>(), {"chosen", 20});
    m = widened_module(*narrow);
    Universe& u = m->u();
    std::map<uint32_t, Value> traced;
    EvalOptions options;
    options.trace = [&](InstId i, std::span<const Value>, const Value& v) {
      if (m->parent(i) == m->entry()) traced[i.value] = v;
    };
    std::vector<Value> arguments;
    for (const Value& v : seeded_arguments(*narrow, seed, false)) arguments.push_back(widened_value(u, v));
    Evaluator(*m, options).run(std::move(arguments));
    std::map<uint32_t, std::vector<ExprId>> leaves;
    uint32_t parameters = 0;
    for (InstId i : m->post_order(m->entry())) {
      std::vector<ExprId>& own = leaves[i.value];
      std::vector<ExprId> operands;
      if (m->op(i) != Opcode::Constant && m->op(i) != Opcode::Parameter)
        for (InstId o : m->operands(i)) operands.insert(operands.end(), leaves[o.value].begin(), leaves[o.value].end());
      if (m->op(i) == Opcode::Tuple) {
        own = operands;
      } else if (m->op(i) == Opcode::GetTupleElement) {
        const auto& elements = m->shape(m->operand(i, 0)).elements;
        const auto index = static_cast<size_t>(m->attrs(i).integer(Attr::index));
        size_t first = 0;
        for (size_t k = 0; k < index; ++k) first += array_count(u, elements[k]);
        for (size_t k = 0; k < array_count(u, elements[index]); ++k) own.push_back(operands[first + k]);
      } else {
        const std::vector<Value> arrays = arrays_of(u, traced.at(i.value));
        for (uint32_t k = 0; k < arrays.size(); ++k) {
          own.push_back(static_cast<ExprId>(expressions.size()));
          const bool parameter = m->op(i) == Opcode::Parameter;
          expressions.push_back({parameter ? Expr::kParameter : Expr::kOperation, parameter ? parameters++ : k, m.get(),
                                 i, arrays[k].shape, operands});
          values.push_back(arrays[k]);
        }
      }
    }
  }
  const Shape& shape(ExprId e) const { return m->u()[expressions[e].shape]; }
  ChosenElements::Leaf leaf() {
    return [this](ExprId e, std::span<const int64_t> indices, char* out) {
      const auto width = static_cast<size_t>(storage_bytes(shape(e).type));
      for (int64_t i : indices)
        std::memcpy(out, values[e].bytes() + static_cast<size_t>(i) * width, width), out += width;
    };
  }
  std::string name(ExprId e) const {
    return fmt::format("{} ({}) leaf {}", m->inst_name(expressions[e].inst), op_text(m->op(expressions[e].inst)),
                       expressions[e].leaf);
  }
  double magnitude(ExprId e) const {
    const Shape& s = shape(e);
    double most = 0;
    if (!is_float(s.type) && !is_complex(s.type)) return 0;
    for (int64_t i = 0; i < s.elements_count(); ++i) {
      const double x = std::abs(load_complex(s.type, values[e].bytes() + i * storage_bytes(s.type)));
      if (std::isfinite(x)) most = std::max(most, x);
    }
    return most;
  }
};

bool near(ElementType type, const char* a, const char* b, double tolerance) {
  if (!is_float(type) && !is_complex(type)) return std::memcmp(a, b, static_cast<size_t>(storage_bytes(type))) == 0;
  const std::complex<double> x = load_complex(type, a), y = load_complex(type, b);
  auto one = [&](double p, double q) {
    return (std::isnan(p) && std::isnan(q)) || p == q || std::fabs(p - q) <= tolerance;
  };
  return one(x.real(), y.real()) && one(x.imag(), y.imag());
}

void expect_near(const Flat& f, ExprId e, std::span<const int64_t> at, const std::vector<char>& got, double tolerance) {
  const ElementType type = f.shape(e).type;
  const int64_t width = storage_bytes(type);
  for (size_t k = 0; k < at.size(); ++k) {
    const char *x = got.data() + static_cast<int64_t>(k) * width, *y = f.values[e].bytes() + at[k] * width;
    if (near(type, x, y, tolerance)) continue;
    std::string a, b;
    append_element(a, type, x), append_element(b, type, y);
    ADD_FAILURE() << f.name(e) << " element " << at[k] << ": " << a << " for " << b;
    return;
  }
}

// Each expression from what its operands are, then the last ones from the parameters. Opcodes that have been evaluated
// by themselves go into `ruled`.
void check(Flat& f, std::set<Opcode>* ruled = nullptr, bool all_ruled = true, double precision = 1e-12) {
  double scale = 1;
  for (ExprId e = 0; e < f.expressions.size(); ++e) scale = std::max(scale, f.magnitude(e));
  ChosenElements whole(f.expressions, f.leaf(), {});
  for (ExprId e = 0; e < f.expressions.size(); ++e) {
    const Expr& x = f.expressions[e];
    const int64_t n = f.shape(e).elements_count();
    if (!n || x.kind != Expr::kOperation) continue;
    std::vector<int64_t> all, some;
    for (int64_t i = 0; i < n; ++i) all.push_back(i);
    for (int64_t i = n - 1; i >= 0; i -= 3) some.push_back(i);
    double own = f.magnitude(e);
    for (ExprId o : x.operands) own = std::max(own, f.magnitude(o));
    const double tolerance = precision * std::max(1.0, own * own);
    ChosenElements::Options options;
    options.cut = [e](ExprId other) { return other != e; };
    ChosenElements alone(f.expressions, f.leaf(), options);
    expect_near(f, e, all, alone.at(e, all), tolerance);
    ChosenElements part(f.expressions, f.leaf(), options);
    expect_near(f, e, some, part.at(e, some), tolerance);
    if (alone.uninterpreted().empty()) {
      if (ruled) ruled->insert(f.m->op(x.inst));
    } else {
      EXPECT_FALSE(all_ruled) << f.name(e) << ": " << alone.uninterpreted().begin()->second;
    }
    if (scale < 1e4) expect_near(f, e, some, whole.at(e, some), 1e3 * precision * scale);
  }
}

TEST(ChosenElements, RandomModules) {
  std::set<Opcode> ruled;
  std::vector<uint64_t> seeds;
  for (uint64_t first : {uint64_t{1}, kSmallIntegersFrom, kLargeFrom, kNestedFrom})
    for (uint64_t k = 0; k < (first == 1 ? 600 : first == kLargeFrom ? 20 : 100); ++k) seeds.push_back(first + k);
  for (uint64_t seed : seeds) {
    if (HasFailure()) break;
    const std::string text = random_module(seed, 30);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    Flat f(text, seed);
    check(f, &ruled, false);
  }
  std::string names;
  for (Opcode op : ruled) names += fmt::format(" {}", op_text(op));
  printf("by their elements:%s\n", names.c_str());
  for (Opcode op : {Opcode::Add, Opcode::Select, Opcode::Broadcast, Opcode::Transpose, Opcode::Slice, Opcode::Pad,
                    Opcode::Concatenate, Opcode::Reverse, Opcode::DynamicSlice, Opcode::DynamicUpdateSlice,
                    Opcode::Gather, Opcode::Scatter, Opcode::Dot, Opcode::Reduce, Opcode::Sort, Opcode::Iota})
    EXPECT_TRUE(ruled.contains(op)) << op_text(op);
}

const char* const kSums = R"(
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
most { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] maximum(x, y) }
last { x = f32[] parameter(0)
 ROOT y = f32[] parameter(1) }
odd { x = f32[] parameter(0)
 y = f32[] parameter(1)
 d = f32[] multiply(y, y)
 ROOT r = f32[] add(x, d) }
ge { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = pred[] compare(x, y), direction=GE }
gt { x = f32[] parameter(0)
 y = f32[] parameter(1)
 i = s32[] parameter(2)
 j = s32[] parameter(3)
 ROOT r = pred[] compare(x, y), direction=GT }
argmax { x = f32[] parameter(0)
 i = s32[] parameter(1)
 y = f32[] parameter(2)
 j = s32[] parameter(3)
 p = pred[] compare(x, y), direction=GE
 a = f32[] select(p, x, y)
 b = s32[] select(p, i, j)
 ROOT r = (f32[], s32[]) tuple(a, b) }
two { x = f32[] parameter(0)
 i = f32[] parameter(1)
 y = f32[] parameter(2)
 j = f32[] parameter(3)
 a = f32[] add(x, j)
 b = f32[] multiply(i, y)
 ROOT r = (f32[], f32[]) tuple(a, b) }
square { x = f32[] parameter(0)
 y = f32[] parameter(1)
 d = f32[] multiply(x, x)
 ROOT r = f32[] add(y, d) }
)";

void check_body(const std::string& body, double precision = 1e-12) {
  SCOPED_TRACE(body);
  Flat f("HloModule m\n" + std::string(kSums) + "ENTRY e {\n" + body + "\n}");
  check(f, nullptr, true, precision);
}

TEST(ChosenElements, Moves) {
  for (const char* body : {
           "a = f32[5,7] parameter(0)\nz = f32[] constant(9)\nROOT r = f32[5,20] pad(a, z), padding=-1_1x-2_3_2",
           "a = s32[4,6] parameter(0)\nb = s32[4,1] parameter(1)\nROOT r = s32[4,13] concatenate(a, b, a), "
           "dimensions={1}",
           "a = s8[3,4,5] parameter(0)\nROOT r = s8[5,3,4] transpose(a), dimensions={2,0,1}",
           "a = u16[3,4,5] parameter(0)\nROOT r = u16[3,4,5] reverse(a), dimensions={0,2}",
           "a = f32[9,8] parameter(0)\nROOT r = f32[3,3] slice(a), slice={[1:8:3], [0:8:3]}",
           "a = f32[3,1] parameter(0)\nROOT r = f32[2,3,4] broadcast(a), dimensions={1,2}",
           "ROOT r = c64[2,3,4] iota(), iota_dimension=1",
           "a = s32[2,3]{0,1} parameter(0)\nROOT r = s32[3,2]{0,1} bitcast(a)",
           "a = f32[16,256]{1,0:T(8,128)} parameter(0)\nROOT r = f32[2,2,8,128]{3,2,1,0:T(8,128)} bitcast(a)",
           "a = f32[4,3] parameter(0)\nROOT r = (f32[4,3], f32[4,3]) tuple(a, a)",
           "a = u32[3,2] parameter(0)\nROOT r = u8[3,2,4] bitcast-convert(a)",
           "a = u8[3,8] parameter(0)\nROOT r = u64[3] bitcast-convert(a)",
           "a = f32[8] parameter(0)\nROOT r = f32[8] custom-call(a), custom_call_target=\"Sharding\"",
           "a = f32[5,7] parameter(0)\nROOT r = s32[] get-dimension-size(a), dimensions={1}",
           "ROOT c = (s32[2], f32[3]) constant(({1, 2}, {3, 4, 5}))",
           "a = f32[6,6] parameter(0)\ni = s32[] constant(5)\nj = s32[] constant(-1)\nROOT r = f32[3,2] "
           "dynamic-slice(a, i, j), dynamic_slice_sizes={3,2}",
           "a = f32[6,6] parameter(0)\nb = f32[2,3] parameter(1)\ni = s32[] constant(9)\nj = s32[] "
           "constant(2)\nROOT r = f32[6,6] dynamic-update-slice(a, b, i, j)",
       })
    check_body(body);
}

TEST(ChosenElements, GathersAndScatters) {
  for (const char* body : {
           "a = f32[9,5,4] parameter(0)\ni = s32[3,2] constant({{0,1},{20,-3},{7,4}})\nROOT r = f32[3,2,4] gather(a, "
           "i), offset_dims={1,2}, collapsed_slice_dims={1}, start_index_map={0,1}, index_vector_dim=1, "
           "slice_sizes={2,1,4}",
           "a = f32[3,7,4] parameter(0)\ni = s32[3,5] constant({{0,1,2,3,4},{6,5,4,9,2},{-1,0,3,3,6}})\nROOT r = "
           "f32[3,5,4] gather(a, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
           "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4}",
           "a = f32[9,4] parameter(0)\ni = s32[6,1] constant({{3},{0},{3},{11},{-1},{3}})\nu = f32[6,4] "
           "parameter(1)\nROOT r = f32[9,4] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, "
           "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
           "a = f32[9,4] parameter(0)\ni = s32[6,1] constant({{3},{0},{3},{11},{-1},{3}})\nu = f32[6,4] "
           "parameter(1)\nROOT r = f32[9,4] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, "
           "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last",
           "a = f32[9,4] parameter(0)\ni = s32[5,2] constant({{3,1},{2,0},{8,0},{3,3},{3,2}})\nu = f32[5,2,2] "
           "parameter(1)\nROOT r = f32[9,4] scatter(a, i, u), update_window_dims={1,2}, inserted_window_dims={}, "
           "scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=odd",
           "a = f32[9] parameter(0)\nb = f32[9] parameter(1)\ni = s32[4,1] constant({{3},{0},{3},{3}})\nu = f32[4] "
           "parameter(2)\nv = f32[4] parameter(3)\nROOT r = (f32[9], f32[9]) scatter(a, b, i, u, v), "
           "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
           "to_apply=two",
           "a = f32[3,5] parameter(0)\ni = s32[3,2,1] constant({{{0},{0}},{{4},{1}},{{7},{2}}})\nu = f32[3,2] "
           "parameter(1)\nROOT r = f32[3,5] scatter(a, i, u), update_window_dims={}, inserted_window_dims={1}, "
           "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, "
           "index_vector_dim=2, to_apply=add",
       })
    check_body(body);
}

TEST(ChosenElements, Reductions) {
  for (const char* body : {
           "a = f32[5,6,7] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[6] reduce(a, z), dimensions={0,2}, "
           "to_apply=add",
           "a = f32[5,6,7] parameter(0)\nz = f32[] constant(-inf)\nROOT r = f32[5,7] reduce(a, z), dimensions={1}, "
           "to_apply=most",
           "a = f32[5,6] parameter(0)\nz = f32[] constant(2)\nROOT r = f32[5] reduce(a, z), dimensions={1}, "
           "to_apply=odd",
           "a = f32[5,6] parameter(0)\ni = s32[5,6] iota(), iota_dimension=1\nz = f32[] constant(-inf)\nk = s32[] "
           "constant(0)\nROOT r = (f32[5], s32[5]) reduce(a, i, z, k), dimensions={1}, to_apply=argmax",
           // Longer than what is made step by step, of an odd number of steps.
           "a = f32[3,131] parameter(0)\ni = s32[3,131] iota(), iota_dimension=1\nz = f32[] constant(-inf)\nk = s32[] "
           "constant(0)\nROOT r = (f32[3], s32[3]) reduce(a, i, z, k), dimensions={1}, to_apply=argmax",
           "a = f32[9,8] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[5,8] reduce-window(a, z), "
           "window={size=3x2 stride=2x1 pad=1_1x0_1}, to_apply=add",
           "a = f32[9] parameter(0)\nz = f32[] constant(1)\nROOT r = f32[16] reduce-window(a, z), window={size=3 "
           "pad=1_2 lhs_dilate=2 rhs_dilate=2}, to_apply=odd",
           "a = f32[8,6] parameter(0)\ns = f32[4,3] parameter(1)\nz = f32[] constant(0)\nROOT r = f32[8,6] "
           "select-and-scatter(a, s, z), window={size=2x2 stride=2x2}, select=ge, scatter=add",
           "a = f32[5,6] parameter(0)\nb = f32[5,6] parameter(1)\nROOT r = f32[5,6] map(a, b), dimensions={0,1}, "
           "to_apply=square",
       })
    check_body(body);
}

TEST(ChosenElements, Lines) {
  for (const char* dimension : {"0", "1", "2"})
    check_body(
        fmt::format("a = f32[5,6,7] parameter(0)\nb = s32[5,6,7] parameter(1)\nROOT r = (f32[5,6,7], "
                    "s32[5,6,7]) sort(a, b), dimensions={{{}}}, is_stable=true, to_apply=gt",
                    dimension));
  check_body("a = f32[4,9] parameter(0)\nROOT r = (f32[4,3], s32[4,3]) topk(a), k=3, largest=true");
  check_body("a = f32[4,9] parameter(0)\nROOT r = (f32[4,3], s32[4,3]) custom-call(a), custom_call_target=\"TopK\"");
  check_body("a = f32[4,4] parameter(0)\nROOT r = f32[4,4] cholesky(a), lower=true");
  check_body("a = c64[2,8] parameter(0)\nROOT r = c64[2,8] fft(a), fft_type=FFT, fft_length={8}");
}

TEST(ChosenElements, Products) {
  for (const char* body : {
           "a = f32[3,5,4] parameter(0)\nb = f32[4,3,6] parameter(1)\nROOT r = f32[3,5,6] dot(a, b), "
           "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
           "a = s8[5,4] parameter(0)\nb = s8[4,6] parameter(1)\nROOT r = s32[5,6] dot(a, b), "
           "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
           "a = c64[5,4,2] parameter(0)\nb = c64[2,4] parameter(1)\nROOT r = c64[5] dot(a, b), "
           "lhs_contracting_dims={2,1}, rhs_contracting_dims={0,1}",
           "a = f32[2,9,8,6] parameter(0)\nb = f32[3,2,3,8] parameter(1)\nROOT r = f32[2,5,8,8] convolution(a, b), "
           "window={size=3x2 stride=2x1 pad=1_1x0_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, "
           "feature_group_count=2",
           "a = f32[3,4,7] parameter(0)\nb = f32[6,4,3] parameter(1)\nROOT r = f32[3,6,13] convolution(a, b), "
           "window={size=3 pad=2_2 lhs_dilate=2 rhs_dilate=2}, dim_labels=bf0_oi0->bf0",
           "a = f32[6,5,4] parameter(0)\nb = f32[3,4,8] parameter(1)\nROOT r = f32[3,5,8] convolution(a, b), "
           "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, batch_group_count=2",
       })
    check_body(body);
}

TEST(ChosenElements, LibraryCalls) {
  const std::string gemm =
      R"(\"dot_dimension_numbers\":{\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[],\"lhs_contracting_dimensions\":[1],\"rhs_contracting_dimensions\":[0]})";
  auto call = [](std::string shape, std::string operands, std::string target, std::string config) {
    std::string quoted = config;
    for (size_t at = 0; (at = quoted.find("\\\"", at)) != std::string::npos; ++at) quoted.erase(at, 1);
    return "ROOT r = " + shape + " custom-call(" + operands + "), custom_call_target=\"" + target +
           "\", backend_config=" + quoted;
  };
  const std::string ab =
      "a = f32[5,4] parameter(0)\nb = f32[4,6] parameter(1)\nc = f32[5,6] parameter(2)\nd = f32[6] "
      "parameter(3)\n";
  check_body(ab + call("(f32[5,6], s8[0])", "a, b, c", "__cublas$gemm",
                       R"({"gemm_backend_config":{"alpha_real":2,"beta":0.5,)" + gemm + "}}"));
  for (const char* epilogue : {"DEFAULT", "RELU", "GELU"})
    check_body(ab + call("(f32[5,6], s8[0])", "a, b", "__cublas$lt$matmul",
                         R"({"gemm_backend_config":{"alpha_real":2,"beta":0,"epilogue":")" + std::string(epilogue) +
                             "\"," + gemm + "}}"));
  check_body(ab + call("(f32[5,6], s8[0])", "a, b, c, d", "__cublas$lt$matmul",
                       R"({"gemm_backend_config":{"alpha_real":1,"beta":1,"epilogue":"BIAS_RELU",)" + gemm + "}}"));
  check_body(ab + call("(f32[5,6], f32[5,6], s8[0])", "a, b, d", "__cublas$lt$matmul",
                       R"({"gemm_backend_config":{"alpha_real":1,"beta":0,"epilogue":"BIAS_GELU_AUX",)" + gemm + "}}"));
}

TEST(ChosenElements, CudnnConvolutions) {
  const std::string window = ", window={size=3x2 stride=2x1 pad=1_1x0_1}, dim_labels=b01f_01io->b01f";
  const std::string x = "x = f32[2,9,8,6] parameter(0)\n", k = "k = f32[3,2,6,4] parameter(1)\n",
                    y = "y = f32[2,5,8,4] parameter(2)\n";
  auto call = [&](std::string before, std::string shape, std::string operands, std::string kind, std::string config) {
    check_body(before + "ROOT r = (" + shape + ", u8[0]) custom-call(" + operands + ")" + window +
               ", custom_call_target=\"__cudnn$conv" + kind +
               "\", backend_config={\"cudnn_conv_backend_config\":" + config + "}");
  };
  const std::string plain = R"({"conv_result_scale":1,"activation_mode":"kNone","side_input_scale":0})";
  const std::string k0 = "k = f32[3,2,6,4] parameter(0)\n", y1 = "y = f32[2,5,8,4] parameter(1)\n";
  call(x + k, "f32[2,5,8,4]", "x, k", "Forward", plain);
  call(k0 + y1, "f32[2,9,8,6]", "y, k", "BackwardInput", plain);
  call(x + y1, "f32[3,2,6,4]", "x, y", "BackwardFilter", plain);
  call(x + k + y + "b = f32[4] parameter(3)\n", "f32[2,5,8,4]", "x, k, b, y", "BiasActivationForward",
       R"({"conv_result_scale":1.5,"activation_mode":"kRelu","side_input_scale":0.5})");
}

// The evaluator rounds scores to f32.
TEST(ChosenElements, Attention) {
  const std::string numbers =
      R"("intermediate_tensor_shape":{"dimensions":["2","3","5","6"]},"bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]},"bmm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]})";
  const std::string qkv =
      "q = f32[2,5,3,4] parameter(0)\nk = f32[2,6,3,4] parameter(1)\nv = f32[2,6,3,7] parameter(2)\n";
  for (const char* mask : {"NO_MASK", "CAUSAL"}) {
    const std::string config = R"(, backend_config={"cudnn_fmha_backend_config":{"fmha_scale":0.5,"mask_type":")" +
                               std::string(mask) + "\"," + numbers + "}}";
    check_body(qkv + "ROOT r = (f32[2,3,5,7], u8[0]) custom-call(q, k, v), custom_call_target=\"__cudnn$fmhaSoftmax\"" +
                   config,
               1e-6);
    check_body(qkv +
                   "b = f32[1,3,5,6] parameter(3)\nROOT r = (f32[2,3,5,7], f32[2,3,5], u8[0]) custom-call(q, k, v, b), "
                   "custom_call_target=\"__cudnn$fmhaScaleBiasSoftmax\"" +
                   config,
               1e-6);
  }
}

// Heads of q that share those of k and v; rows and columns by lengths, windows and sequences.
TEST(ChosenElements, AttentionMasks) {
  const std::string numbers =
      R"("intermediate_tensor_shape":{"dimensions":["2","4","5","6"]},"bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]},"bmm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]})";
  const std::string qkv =
      "q = f32[2,5,4,4] parameter(0)\nk = f32[2,6,2,4] parameter(1)\nv = f32[2,6,2,4] parameter(2)\n";
  const std::string
      lengths = "ql = s32[2] constant({3,5})\nkl = s32[2] constant({4,2})\n",
      packed =
          "ql = s32[2,2] constant({{2,3},{4,0}})\nkl = s32[2,2] constant({{3,2},{6,0}})\n"
          "qo = s32[2,3] constant({{0,32,80},{160,160,160}})\nko = s32[2,3] constant({{0,24,48},{96,96,96}})\n";
  struct MaskedCase {
    const char* mask;
    std::string constants;
    const char *operands, *sums;
  };
  for (const MaskedCase& c :
       {MaskedCase{R"("mask_type":"NO_MASK")", "", "", "f32[2,4,5]"},
        {R"("mask_type":"CAUSAL","sliding_window_length":2)", "", "", "f32[2,4,5]"},
        {R"("mask_type":"PADDING_CAUSAL")", lengths, ", ql, kl", "f32[2,4,5]"},
        {R"("mask_type":"PADDING","max_seg_per_batch":2)", packed, ", ql, kl, qo, ko", "f32[4,4,5]"}})
    check_body(qkv + c.constants + "ROOT r = (f32[2,4,5,4], " + c.sums + ", u8[0]) custom-call(q, k, v" + c.operands +
                   "), custom_call_target=\"__cudnn$fmhaSoftmax\", backend_config={\"cudnn_fmha_backend_config\":"
                   "{\"fmha_scale\":0.5," +
                   c.mask + "," + numbers + "}}",
               1e-6);
}

// Instructions of a module's entry by name, and expressions of them.
struct Made {
  std::unique_ptr<Module> m;
  std::vector<Expr> expressions;
  explicit Made(const std::string& body)
      : m(parse_module("HloModule m\nENTRY e {\n" + body + "\n}", std::make_shared<Universe>(), {"made", 20})) {}
  InstId named(std::string_view name) const {
    for (InstId i : m->comp(m->entry()).order)
      if (m->inst_name(i) == name) return i;
    return InstId();
  }
  ExprId add(std::string_view name, std::vector<ExprId> operands = {}) {
    const InstId i = named(name);
    expressions.push_back({m->op(i) == Opcode::Parameter ? Expr::kParameter : Expr::kOperation, 0, m.get(), i,
                           m->shape_id(i), std::move(operands)});
    return static_cast<ExprId>(expressions.size() - 1);
  }
};

void put(char*& out, double v) { std::memcpy(out, &v, 8), out += 8; }
double double_at(const std::vector<char>& bytes, size_t k) {
  double v;
  std::memcpy(&v, bytes.data() + 8 * k, 8);
  return v;
}

// Arrays that no memory has: elements are functions of their indices.
TEST(ChosenElements, LargerThanMemory) {
  Made made(R"( a = f64[1000000,4096] parameter(0)
 b = f64[4096,1000000] parameter(1)
 d = f64[1000000,1000000] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT t = f64[1000000,1000000] transpose(d), dimensions={1,0})");
  const ExprId a = made.add("a"), b = made.add("b"), d = made.add("d", {a, b}), t = made.add("t", {d});
  ChosenElements chosen(
      made.expressions,
      [&](ExprId e, std::span<const int64_t> at, char* out) {
        for (int64_t i : at)
          put(out, e == a ? static_cast<double>(i / 4096 + i % 4096) : static_cast<double>(i / 1000000 - i % 1000000));
      },
      {});
  std::vector<int64_t> at;
  for (int64_t k = 0; k < 64; ++k) at.push_back(k * 12345678987 % 1000000000000);
  const std::vector<char> got = chosen.at(t, at);
  for (size_t k = 0; k < at.size(); ++k) {
    const int64_t column = at[k] / 1000000, row = at[k] % 1000000;
    double sum = 0;
    for (int64_t j = 0; j < 4096; ++j) sum += static_cast<double>(row + j) * static_cast<double>(j - column);
    EXPECT_NEAR(double_at(got, k), sum, 1e-12 * std::fabs(sum)) << at[k];
  }
  EXPECT_LE(chosen.evaluated(), 64 * 2 + 64 * 2 * 4096);
  // What is known is not asked for again.
  const int64_t before = chosen.evaluated();
  EXPECT_EQ(chosen.at(t, at), got);
  EXPECT_EQ(chosen.evaluated(), before);
}

TEST(ChosenElements, BudgetAndStop) {
  Made made(R"( a = f64[100,100] parameter(0)
 ROOT d = f64[100,100] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0})");
  const ExprId a = made.add("a"), d = made.add("d", {a, a});
  int64_t asked = 0;
  auto leaf = [&](ExprId, std::span<const int64_t> at, char* out) {
    asked += static_cast<int64_t>(at.size());
    for (size_t k = 0; k < at.size(); ++k) put(out, 1);
  };
  ChosenElements::Options options;
  options.most_elements = 150;
  ChosenElements small(made.expressions, leaf, options);
  const std::vector<int64_t> at{17};
  EXPECT_THROW(small.at(d, at), Failure);
  EXPECT_LE(small.evaluated(), 150);
  EXPECT_EQ(asked, 0);
  options.most_elements = 201;
  EXPECT_EQ(double_at(ChosenElements(made.expressions, leaf, options).at(d, at), 0), 100);
  options.stop = [] { return true; };
  EXPECT_THROW(ChosenElements(made.expressions, leaf, options).at(d, at), Failure);
}

TEST(ChosenElements, LongChains) {
  Made made(R"( a = s32[8] parameter(0)
 i = s32[] parameter(1)
 s = s32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}
 r = s32[] reshape(s)
 ROOT n = s32[] add(i, i))");
  const ExprId a = made.add("a"), i = made.add("i");
  ExprId sum = i, slice = i;
  for (int k = 0; k < 100000; ++k) sum = made.add("n", {sum, i});
  for (int k = 0; k < 100000; ++k) slice = made.add("s", {a, slice});
  ChosenElements chosen(made.expressions,
                        [&](ExprId e, std::span<const int64_t> at, char* out) {
                          for (int64_t x : at) {
                            const int32_t v = e == i ? 1 : static_cast<int32_t>((x * 3 + 1) % 8);
                            std::memcpy(out, &v, 4), out += 4;
                          }
                        },
                        {});
  const std::vector<int64_t> zero{0};
  EXPECT_EQ(load_int(ElementType::S32, chosen.at(sum, zero).data()), 100001);
  int64_t at = 1;
  for (int k = 0; k < 100000; ++k) at = (at * 3 + 1) % 8;
  EXPECT_EQ(load_int(ElementType::S32, chosen.at(slice, zero).data()), at);
}

TEST(ChosenElements, WhatHasNoRule) {
  Made made(R"( a = f64[1000] parameter(0)
 c = f64[1000] custom-call(a), custom_call_target="mine"
 f = c128[1000] fft(c), fft_type=FFT, fft_length={1000}
 ROOT r = f64[1000] real(f))");
  const ExprId a = made.add("a"), c = made.add("c", {a}), f = made.add("f", {c}), r = made.add("r", {f});
  std::set<ExprId> asked;
  ChosenElements::Options options;
  options.most_whole = 100;
  ChosenElements chosen(
      made.expressions,
      [&](ExprId e, std::span<const int64_t> at, char* out) {
        asked.insert(e);
        for (size_t k = 0; k < at.size(); ++k) put(out, 3), put(out, 0);
      },
      options);
  const std::vector<int64_t> at{7};
  EXPECT_EQ(double_at(chosen.at(r, at), 0), 3);
  EXPECT_EQ(asked, std::set<ExprId>{f});
  ASSERT_EQ(chosen.uninterpreted().size(), 1u);
  EXPECT_TRUE(chosen.uninterpreted().contains(f));
  ChosenElements call(
      made.expressions, [](ExprId, std::span<const int64_t>, char* out) { put(out, 5); }, options);
  EXPECT_EQ(double_at(call.at(c, at), 0), 5);
  EXPECT_EQ(call.uninterpreted().at(c), "custom-call target \"mine\"");
}

TEST(ChosenElements, Branches) {
  Made made(R"( p = pred[] parameter(0)
 i = s32[] parameter(1)
 a = f64[4] parameter(2)
 ROOT b = f64[4] parameter(3))");
  const ExprId p = made.add("p"), i = made.add("i"), a = made.add("a"), b = made.add("b");
  auto branch = [&](ExprId by) {
    made.expressions.push_back(
        {Expr::kBranch, 0, made.m.get(), InstId(), made.m->shape_id(made.named("a")), {by, a, b}});
    return static_cast<ExprId>(made.expressions.size() - 1);
  };
  const ExprId by_pred = branch(p), by_number = branch(i);
  const std::vector<int64_t> at{3, 1};
  for (int64_t value : {0, 1, -1, 5}) {
    ChosenElements chosen(made.expressions,
                          [&](ExprId e, std::span<const int64_t> indices, char* out) {
                            for (int64_t x : indices) {
                              if (e == p) *out = value != 0;
                              if (e == i) store_int(ElementType::S32, out, value);
                              if (e == a || e == b) put(out, static_cast<double>(x + (e == b ? 10 : 0)));
                            }
                          },
                          {});
    EXPECT_EQ(double_at(chosen.at(by_pred, at), 0), value ? 3 : 13);
    EXPECT_EQ(double_at(chosen.at(by_number, at), 1), value == 0 ? 1 : 11);
  }
}

}  // namespace
}  // namespace hlo
