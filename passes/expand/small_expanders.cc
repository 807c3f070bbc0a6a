// Expanders of a rule or two each: logistic-expander, dynamic-index-splitter, hlo-get-dimension-size-rewriter,
// variadic-op-splitter, reduce-precision, gpu_hlo_support_checker.
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// Calls f on every instruction of non-fused computations, in post order as it was at the start.
template <class F>
bool each(Module& m, F f) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c))
      if (m.alive(i)) changed |= f(i);
  return changed;
}

}  // namespace

//   logistic(A)      →      1 / (1 + exp(-A))
bool run_logistic_expander(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Logistic)) return false;
  std::vector<InstId> found;
  each(m, [&](InstId i) {
    if (m.op(i) == Opcode::Logistic && !m.has_control(i)) found.push_back(i);
    return false;
  });
  bool changed = false;
  for (InstId i : found) {
    if (!ctx.spend(m, "logistic", {i})) return changed;
    InstId x = m.operand(i, 0);
    InstId one = make_scalar_like(m, x, 1);
    CompId c = m.parent(i);
    InstId n = make(m, c, Opcode::Negate, {x}, {}, m.shape_id(x));
    InstId e = make(m, c, Opcode::Exp, {n}, {}, m.shape_id(x));
    InstId d = make(m, c, Opcode::Add, {one, e}, {}, m.shape_id(x));
    InstId q = make(m, c, Opcode::Divide, {one, d}, {}, m.shape_id(i));
    changed |= m.replace(i, q);
  }
  return changed;
}

//   dynamic-slice(A, s32[2] I)      →      dynamic-slice(A, I[0], I[1])
bool run_dynamic_index_splitter(Module& m, PassContext& ctx) {
  if (!m.has_any({Opcode::DynamicSlice, Opcode::DynamicUpdateSlice})) return false;
  return each(m, [&](InstId i) {
    bool slice = m.op(i) == Opcode::DynamicSlice;
    if (!slice && m.op(i) != Opcode::DynamicUpdateSlice) return false;
    size_t first = slice ? 1 : 2;
    if (m.shape(m.operand(i, 0)).rank() == 0) {
      if (m.has_control(i) || !ctx.spend(m, "index of a scalar", {i})) return false;
      return m.replace(i, m.operand(i, slice ? 0 : 1));
    }
    if (m.operand_count(i) != first + 1 || m.shape(m.operand(i, first)).rank() != 1) return false;
    if (m.has_control(i) || !ctx.spend(m, "index vector split", {i})) return false;
    InstId index = m.operand(i, first);
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).begin() + static_cast<ptrdiff_t>(first));
    CompId c = m.parent(i);
    for (int64_t d = 0; d < m.shape(m.operand(i, 0)).rank(); ++d) {
      InstId piece = make(m, c, Opcode::Slice, {index},
                          attrs_of(m.u(), Opcode::Slice, {{Attr::slice, std::vector<SliceDim>{{d, d + 1, 1}}}}));
      ops.push_back(make(m, c, Opcode::Reshape, {piece}, {}, m.u().scalar(m.shape(index).type)));
    }
    InstId to = m.add(c, {.op = m.op(i), .shape = m.shape_id(i), .operands = ops, .attrs = m[i].attrs});
    return m.replace(i, to);
  });
}

//   get-dimension-size(A), dimensions={0} of a static array      →      constant
bool run_get_dimension_size_rewriter(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::GetDimensionSize)) return false;
  return each(m, [&](InstId i) {
    if (m.op(i) != Opcode::GetDimensionSize || m.has_control(i)) return false;
    const Shape& s = m.shape(m.operand(i, 0));
    if (s.is_dynamic()) {
      ctx.note(m, "dynamic dimension", {i}, "its size is not known before the program runs");
      return false;
    }
    if (!ctx.spend(m, "static size", {i})) return false;
    InstId c = make_scalar(m, m.parent(i), ElementType::S32,
                           static_cast<double>(s.dims[static_cast<size_t>(m.attrs(i).ints(Attr::dimensions)[0])]));
    return m.replace(i, c);
  });
}

//   concatenate of 300      →      concatenate(concatenate of 128, concatenate of 128, the other 44)
bool run_variadic_op_splitter(Module& m, PassContext& ctx) {
  constexpr size_t kMost = 128;
  bool changed = false;
  auto is_long = [&](InstId i) { return m.operand_count(i) > kMost; };
  for (InstId i : all_of_opcode(m, Opcode::Concatenate, is_long)) {
    if (!ctx.spend(m, "long concatenate split", {i})) return changed;
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
    while (ops.size() > kMost) {
      std::vector<InstId> next;
      for (size_t at = 0; at < ops.size(); at += kMost) {
        std::vector<InstId> group(ops.begin() + static_cast<ptrdiff_t>(at),
                                  ops.begin() + static_cast<ptrdiff_t>(std::min(at + kMost, ops.size())));
        if (at && group.size() < kMost)
          next.insert(next.end(), group.begin(), group.end());
        else
          next.push_back(make(m, m.parent(i), Opcode::Concatenate, group, m[i].attrs));
      }
      ops = std::move(next);
    }
    InstId to = make(m, m.parent(i), Opcode::Concatenate, ops, m[i].attrs, m.shape_id(i));
    changed |= m.replace(i, to);
  }
  return changed;
}

// Inserts reduce-precision behind float operations when asked to: reduce-precision{exponent_bits=5 mantissa_bits=10}.
// The pipeline of 2019 asks for nothing, so it changes nothing there.
bool run_reduce_precision(Module& m, PassContext& ctx) {
  int64_t exponent = ctx.number("exponent_bits"), mantissa = ctx.number("mantissa_bits");
  if (!exponent) return false;
  return each(m, [&](InstId i) {
    const Shape& s = m.shape(i);
    if (s.type != ElementType::F32 || m.op(i) == Opcode::ReducePrecision || m.op(i) == Opcode::Constant ||
        m.op(i) == Opcode::Parameter)
      return false;
    auto users = m.users(i);
    if (users.size() == 1 && m.op(users[0]) == Opcode::ReducePrecision) return false;
    if (!ctx.spend(m, "precision reduced", {i})) return false;
    AttrsId attrs =
        attrs_of(m.u(), Opcode::ReducePrecision, {{Attr::exponent_bits, exponent}, {Attr::mantissa_bits, mantissa}});
    InstId r =
        m.add(m.parent(i), {.op = Opcode::ReducePrecision, .shape = m.shape_id(i), .operands = {i}, .attrs = attrs});
    m.replace_all_uses(i, r);
    return true;
  });
}

// Refuses what the back end of 2019 could not take: arrays whose layout is not dense.
bool run_gpu_hlo_support_checker(Module& m, PassContext&) {
  each(m, [&](InstId i) {
    const Shape& s = m.shape(i);
    if (s.is_array() && s.layout.sparse)
      fail(FailureKind::kUnsupported, "GPU backend does not support sparse arrays: instruction {} has shape {}",
           m.inst_name(i), m.u().shape_text(m.shape_id(i)));
    if (s.is_array() && !s.has_layout)
      fail(FailureKind::kUnsupported, "instruction {} has no dense layout: {}", m.inst_name(i),
           m.u().shape_text(m.shape_id(i)));
    return false;
  });
  return false;
}

}  // namespace hlo
