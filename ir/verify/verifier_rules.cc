#include "ir/verify/verifier_rules.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/base/checked.h"
#include "ir/inference/shape_inference.h"
#include "ir/sharding/aliasing.h"
#include "ir/sharding/sharding.h"
#include "ir/verify/operation_rules.h"

namespace hlo {

void OperationRules::run() {
  control();
  sharding();
  if (m_.attrs(i_).has(Attr::output_to_operand_aliasing)) aliases();
  if (settled_ && !mixed_) one_precision();
  elementwise();
  typed_and_moved();
  reduced_and_ordered();
  paired_and_collective();
  called();
}

void OperationRules::elementwise() {
  switch (m_.op(i_)) {
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
      if (!integral(type(0)) && type(0) != ElementType::Pred) shape("works on preds and integers, not on {}", text(0));
      return;
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
      // Floats pass, as in XLA, whose compilers then refuse them.
      if (type(0) == ElementType::Pred) shape("does not shift {}", text(0));
      return;
    case Opcode::Complex:
      if (type(0) != ElementType::F32 && type(0) != ElementType::F64)
        shape("takes parts of type f32 or f64, not {}", text(0));
      return;
    case Opcode::Popcnt:
    case Opcode::CountLeadingZeros:
      if (!integral(type(0))) shape("works on integers, not on {}", text(0));
      return;
    case Opcode::Floor:
    case Opcode::Ceil:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::IsFinite:
    case Opcode::Erf:
    case Opcode::ReducePrecision:
      if (!is_float(type(0))) return shape("works on floats, not on {}", text(0));
      if (m_.op(i_) == Opcode::ReducePrecision) {
        if (a_.integer(Attr::exponent_bits) < 1) attribute("needs at least one exponent bit");
        if (a_.integer(Attr::mantissa_bits) < 0) attribute("has a negative number of mantissa bits");
        result(m_.operand(i_, 0));
      }
      return;
    case Opcode::Real:
    case Opcode::Imag:
      if (!is_float(type(0)) && !is_complex(type(0))) shape("works on floats and complex numbers, not on {}", text(0));
      return;
    case Opcode::Acos:
    case Opcode::Acosh:
    case Opcode::Asin:
    case Opcode::Asinh:
    case Opcode::Atan2:
    case Opcode::Atanh:
    case Opcode::Cosh:
    case Opcode::Exp:
    case Opcode::Expm1:
    case Opcode::Log:
    case Opcode::Log1p:
    case Opcode::Logistic:
    case Opcode::Cosine:
    case Opcode::Sine:
    case Opcode::Sinh:
    case Opcode::Tan:
    case Opcode::Tanh:
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
    case Opcode::Cbrt:
      if (settled_ && m_.op(i_) == Opcode::Cbrt && is_complex(type(0)))
        return shape("works on floats, not on {}", text(0));
      if (!is_float(type(0)) && !is_complex(type(0))) shape("works on floats and complex numbers, not on {}", text(0));
      return;
    case Opcode::Negate:
    case Opcode::Sign:
    case Opcode::Abs:
      if (type(0) == ElementType::Pred) shape("does not work on {}", text(0));
      if ((m_.op(i_) == Opcode::Sign || (settled_ && m_.op(i_) == Opcode::Abs)) && is_unsigned_int(type(0)))
        shape("does not work on {}", text(0));
      return;
    default:
      return;
  }
}

void OperationRules::typed_and_moved() {
  switch (m_.op(i_)) {
    case Opcode::Maximum:
    case Opcode::Minimum:
      // XLA takes complex numbers here, which its compilers then cannot order.
      if (!settled_ && is_complex(type(0))) shape("does not order {}", text(0));
      return;
    case Opcode::Subtract:
    case Opcode::Divide:
    case Opcode::Power:
    case Opcode::Remainder:
      if (settled_ && type(0) == ElementType::Pred) shape("does not work on {}", text(0));
      return;
    case Opcode::Reshape:
      if (settled_ && in(0).is_array() && out().is_array() && !alike_types(type(0), out().type))
        shape("changes the element type of {} to {}", text(0), text(i_));
      return;
    case Opcode::Compare:
      if (settled_ && (integral(type(0)) || type(0) == ElementType::Pred) && u_.text(a_.text(Attr::type)) == "FLOAT")
        attribute("compares {} as floats", text(0));
      return;
    case Opcode::Convert:
      if (!settled_ && is_complex(type(0)) && !is_complex(out().type)) shape("turns complex numbers into {}", text(i_));
      return;
    case Opcode::BitcastConvert:
      return bitcast_convert();
    case Opcode::StochasticConvert:
      if (!is_float(type(0))) shape("converts floats, not {}", text(0));
      if (!is_unsigned_int(type(1))) return shape("takes unsigned random bits, not {}", text(1));
      if (type_bits(type(0)) != type_bits(type(1))) shape("takes random bits of the operand's width");
      if (in(0).dims != in(1).dims) shape("takes as many random numbers as elements");
      return;
    case Opcode::Iota:
      if (!out().is_array() || out().rank() == 0)
        return shape("gives an array of at least one dimension, not {}", text(i_));
      if (out().type == ElementType::Pred) shape("does not count in preds");
      return;
    case Opcode::Constant:
      return;
    case Opcode::Rng:
      return rng();
    case Opcode::RngBitGenerator:
      if (settled_ && !out().is_tuple()) return;  // XLA judges tuples alone
      if (!out().is_tuple() || out().elements.size() != 2) return shape("gives a state and bits");
      if (!u_.compatible(out().elements[0], m_.shape_id(m_.operand(i_, 0)))) shape("changes the shape of its state");
      return;
    case Opcode::Pad:
      for (const PaddingDim& p : *a_.get<std::vector<PaddingDim>>(Attr::padding))
        if (p.interior < 0) attribute("has negative interior padding");
      return;
    case Opcode::Copy:
    case Opcode::OptBarrier:
      result(m_.operand(i_, 0));
      return;
    case Opcode::DynamicSlice:
      return indices(1);
    case Opcode::DynamicUpdateSlice:
      return indices(2);
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize: {
      const Dims& d = a_.ints(Attr::dimensions);
      if (d.size() == 1 && (d[0] < 0 || d[0] >= in(0).rank())) attribute("has no dimension {}", d[0]);
      if (m_.op(i_) == Opcode::SetDimensionSize && (in(1).rank() || type(1) != ElementType::S32))
        shape("takes its size as an s32[], not {}", text(1));
      return;
    }
    default:
      return;
  }
}

void OperationRules::reduced_and_ordered() {
  switch (m_.op(i_)) {
    case Opcode::Map:
      return map();
    case Opcode::Reduce:
      return reducer(a_.comp(Attr::to_apply), m_.operand_count(i_) / 2);
    case Opcode::ReduceWindow:
      window();
      return reducer(a_.comp(Attr::to_apply), m_.operand_count(i_) / 2);
    case Opcode::SelectAndScatter:
      return select_and_scatter();
    case Opcode::Convolution: {
      window();
      const DimLabels* d = a_.get<DimLabels>(Attr::dim_labels);
      int64_t groups = a_.integer(Attr::batch_group_count, 1);
      if (settled_ && d && groups > 0 && in(1).dims[static_cast<size_t>(d->kernel_output)] % groups)
        attribute("has a batch_group_count of {}, which does not divide its output features", groups);
      return;
    }
    case Opcode::Sort: {
      const Dims& d = a_.ints(Attr::dimensions);
      if (d.size() != 1 || d[0] < 0 || d[0] >= in(0).rank())
        attribute("has no dimension {} to sort", d.empty() ? -1 : d[0]);
      return;
    }
    case Opcode::TopK:
      if (in(0).rank() && a_.integer(Attr::k) > in(0).dims.back())
        attribute("takes {} of {} elements", a_.integer(Attr::k), in(0).dims.back());
      return;
    case Opcode::Gather:
      return gather();
    case Opcode::Scatter:
      return scatter();
    case Opcode::Cholesky:
      square(0);
      return;
    case Opcode::TriangularSolve:
      return triangular_solve();
    case Opcode::Fft:
      return fft();
    case Opcode::BatchNormTraining:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormGrad:
      return batch_norm();
    case Opcode::AfterAll:
      for (InstId o : m_.operands(i_))
        if (!settled_ && !m_.shape(o).is_token()) shape("waits for tokens, not for {}", text(o));
      return;
    case Opcode::AddDependency:
      token(1);
      return;
    case Opcode::Infeed:
      token(0);
      return;
    case Opcode::Outfeed:
      if (const ShapeId* s = a_.get<ShapeId>(Attr::outfeed_shape);
          s && !u_.compatible(*s, m_.shape_id(m_.operand(i_, 0))))
        shape("sends {}, outfeed_shape says {}", text(0), u_.shape_text_plain(*s));
      token(1);
      return;
    case Opcode::Send:
      token(1);
      single_done(Opcode::SendDone);
      return;
    case Opcode::Recv:
      token(0);
      single_done(Opcode::RecvDone);
      return;
    case Opcode::SendDone:
      if (carried()) return;
      return done_of({Opcode::Send});
    case Opcode::RecvDone:
      if (carried()) return;
      return done_of({Opcode::Recv});
    default:
      return;
  }
}

void OperationRules::paired_and_collective() {
  switch (m_.op(i_)) {
    case Opcode::CopyStart:
      return copy_start();
    case Opcode::CopyDone:
      done_of({Opcode::CopyStart});
      if (in(0).is_tuple() && !in(0).elements.empty() && !u_.compatible(in(0).elements[0], m_.shape_id(i_)))
        shape("gives {}, its copy-start {}", text(i_), u_.shape_text_plain(in(0).elements[0]));
      return;
    case Opcode::AllReduceStart:
      single_done(Opcode::AllReduceDone);
      groups();
      return reducer(a_.comp(Attr::to_apply), 1);
    case Opcode::AllReduceDone:
      return done_of({Opcode::AllReduceStart});
    case Opcode::AllGatherStart:
      single_done(Opcode::AllGatherDone);
      groups();
      return gather_start();
    case Opcode::AllGatherDone:
      done_of({Opcode::AllGatherStart});
      return second_of_start();
    case Opcode::CollectivePermuteStart:
      single_done(Opcode::CollectivePermuteDone);
      permute();
      return permute_start();
    case Opcode::CollectivePermuteDone:
      done_of({Opcode::CollectivePermuteStart});
      return second_of_start();
    case Opcode::CollectivePermute:
      return permute();
    case Opcode::AsyncStart:
      return async_start();
    case Opcode::AsyncUpdate:
      async_users();
      async_update();
      return done_of({Opcode::AsyncStart, Opcode::AsyncUpdate});
    case Opcode::AsyncDone:
      done_of({Opcode::AsyncStart, Opcode::AsyncUpdate});
      return async_done();
    case Opcode::AllReduce:
      groups();
      if (a_.has(Attr::channel_id) && a_.integer(Attr::channel_id) < 1)
        collective("has channel {}", a_.integer(Attr::channel_id));
      return reducer(a_.comp(Attr::to_apply), 1);
    case Opcode::ReduceScatter:
      groups();
      gathered(true);
      return reducer(a_.comp(Attr::to_apply), 1);
    case Opcode::AllGather:
      groups();
      return gathered(false);
    case Opcode::AllToAll:
      groups();
      return all_to_all();
    case Opcode::CollectiveBroadcast:
      groups();
      if (settled_ && m_.operand_count(i_)) result(m_.operand(i_, 0));
      return;
    case Opcode::RaggedAllToAll:
      return ragged_all_to_all();
    default:
      return;
  }
}

void OperationRules::called() {
  switch (m_.op(i_)) {
    case Opcode::RngGetAndUpdateState:
      if (!out().is_array() || out().type != ElementType::U64 || out().dims != Dims{2})
        shape("gives u64[2], not {}", text(i_));
      return;
    case Opcode::Scan:
      return scan();
    case Opcode::ScaledDot:
      return scaled_dot();
    case Opcode::RaggedDot:
      return ragged_dot();
    case Opcode::DynamicReshape:
      return dynamic_reshape();
    case Opcode::CustomCall:
      return custom_call();
    case Opcode::Call:
      // XLA takes calls to other threads (its own two releases), what runs a module does not.
      if (!settled_) thread(a_.comp(Attr::to_apply));
      return;
    case Opcode::While:
      thread(a_.comp(Attr::body));
      return thread(a_.comp(Attr::condition));
    case Opcode::Conditional:
      for (CompId c : a_.called) thread(c);
      return conditional();
    case Opcode::Fusion:
      thread(a_.comp(Attr::calls));
      for (InstId inner : m_.comp(a_.comp(Attr::calls)).order)
        if (m_.alive(inner) && m_.op(inner) == Opcode::Fusion &&
            m_.attrs(inner).comp(Attr::calls) == a_.comp(Attr::calls))
          error_("fusion", "contains itself");
      return;
    default:
      return;
  }
}

void OperationRules::bitcast_convert() {
  if (!in(0).is_array() || !out().is_array()) return shape("converts arrays");
  if (is_complex(type(0)) != is_complex(out().type)) return shape("does not turn {} into {}", text(0), text(i_));
  int from = type_bits(type(0)), to = type_bits(out().type);
  Dims want = in(0).dims;
  if (from > to) {
    want.push_back(from / to);
  } else if (from < to) {
    if (want.empty() || want.back() != to / from) return shape("takes {} elements to one of {}", to / from, text(i_));
    want.pop_back();
  }
  if (want != out().dims) shape("gives {} for {}", text(i_), text(0));
}

void OperationRules::rng() {
  if (m_.operand_count(i_) != 2) return shape("takes two operands, not {}", m_.operand_count(i_));
  for (size_t n = 0; n < 2; ++n)
    if (!in(n).is_scalar()) return shape("takes scalars, operand {} is a {}", n, text(n));
  if (type(0) != type(1)) return shape("takes two operands of one type, not {} and {}", text(0), text(1));
  if (!out().is_array() || (mixed_ ? !same_float_or_equal(out().type, type(0)) : out().type != type(0)))
    return shape("gives {} for operands of type {}", text(i_), text(0));
  bool normal = u_.text(a_.text(Attr::distribution)) == "rng_normal";
  ElementType t = type(0);
  if (normal ? !is_float(t) : !is_float(t) && !integral(t) && t != ElementType::Pred)
    shape("does not draw {}", text(i_));
}

void OperationRules::indices(size_t first) {
  for (size_t n = first; n < m_.operand_count(i_); ++n) {
    if (!in(n).is_array() || !integral(type(n))) return shape("takes integers as indices, not {}", text(n));
    if (n > first && type(n) != type(first))
      return shape("takes indices of one type, not {} and {}", text(first), text(n));
    bool vector = m_.operand_count(i_) == first + 1 && in(n).rank() == 1;
    if (settled_ && vector && in(n).dims[0] != in(0).rank())
      return shape("takes {} indices into {}, not {}", in(0).rank(), text(0), text(n));
    if (!vector && in(n).rank() != 0) return shape("takes scalars as indices, not {}", text(n));
  }
}

void OperationRules::map() {
  const Dims& d = a_.ints(Attr::dimensions);
  for (size_t k = 0; k < d.size(); ++k)
    if (d[k] != static_cast<int64_t>(k)) return attribute("maps other dimensions than all of them in order");
  for (size_t n = 1; n < m_.operand_count(i_); ++n)
    if (in(n).dims != in(0).dims && !(settled_ && (in(n).is_scalar() || in(0).is_scalar())))
      shape("maps arrays of different dimensions: {} and {}", text(0), text(n));
  if (!m_.shape(m_.comp(a_.comp(Attr::to_apply)).root).is_scalar())
    error_("calls", "maps by a function that gives no scalar");
}

void OperationRules::window() {
  const Window* w = a_.get<Window>(Attr::window);
  if (!w) return;
  for (const WindowDim& d : w->dims) {
    if (d.size < 1) return attribute("has a window of size {}", d.size);
    if (d.stride < 1) return attribute("has a window of stride {}", d.stride);
    if (d.lhs_dilate < 1 || d.rhs_dilate < 1) return attribute("has a window that is dilated by less than one");
  }
}

void OperationRules::reducer(CompId f, size_t n) {
  const Computation& c = m_.comp(f);
  if (m_.op(i_) != Opcode::Reduce && m_.op(i_) != Opcode::ReduceWindow && c.params.size() == 2 * m_.operand_count(i_) &&
      n == 1)
    n = m_.operand_count(i_);
  if (c.params.size() != 2 * n)
    return error_("calls", fmt::format("reduces by {}, which takes {} parameters, not {}", m_.comp_name(f),
                                       c.params.size(), 2 * n));
  const Shape& root = m_.shape(c.root);
  bool reduction = m_.op(i_) == Opcode::Reduce || m_.op(i_) == Opcode::ReduceWindow;
  // A reducer of one value may return it in a tuple; the result is one then too.
  bool several = n != 1 || (reduction && root.is_tuple());
  if (several ? !root.is_tuple() || root.elements.size() != n : !root.is_scalar())
    return error_("calls", fmt::format("reduces by {}, which returns {}", m_.comp_name(f), text(c.root)));
  for (size_t k = 0; k < 2 * n; ++k)
    if (!m_.shape(c.params[k]).is_scalar())
      return error_("calls", fmt::format("reduces by {}, which takes {}", m_.comp_name(f), text(c.params[k])));
  for (size_t k = 0; k < n; ++k) {
    ElementType accumulator = m_.shape(c.params[k]).type, element = m_.shape(c.params[n + k]).type;
    ElementType returned = several ? u_[root.elements[k]].type : root.type;
    // XLA's verifier is strict here, mixed precision or not; between passes the accumulator may be wider.
    if (settled_ && reduction ? accumulator != returned : !same_float_or_equal(accumulator, returned))
      return error_("calls", fmt::format("reduces by {}, which returns {} for {}", m_.comp_name(f), type_name(returned),
                                         type_name(accumulator)));
    if (settled_ && !mixed_ && reduction && (type(k) != element || type(m_.operand_count(i_) / 2 + k) != accumulator))
      return error_("calls", fmt::format("reduces {} by {}, which takes {} and {}", text(k), m_.comp_name(f),
                                         type_name(accumulator), type_name(element)));
    if (reduction && !same_float_or_equal(type(k), element))
      return error_("calls",
                    fmt::format("reduces {} by {}, which takes {}", text(k), m_.comp_name(f), type_name(element)));
    if (reduction && !same_float_or_equal(type(m_.operand_count(i_) / 2 + k), accumulator))
      return error_("calls", fmt::format("starts with {}, {} takes {}", text(m_.operand_count(i_) / 2 + k),
                                         m_.comp_name(f), type_name(accumulator)));
    if (!reduction && k < m_.operand_count(i_) && !same_float_or_equal(type(k), element))
      return error_("calls",
                    fmt::format("reduces {} by {}, which takes {}", text(k), m_.comp_name(f), type_name(element)));
  }
}

bool OperationRules::square(size_t n) {
  const Shape& s = in(n);
  if (!is_float(s.type) && !is_complex(s.type))
    return shape("works on floats and complex numbers, not on {}", text(n)), false;
  if (s.rank() < 2 || s.dims[s.dims.size() - 1] != s.dims[s.dims.size() - 2])
    return shape("takes square matrices, not {}", text(n)), false;
  return true;
}

void OperationRules::triangular_solve() {
  if (!square(0)) return;
  const Shape &x = in(0), &y = in(1);
  if (x.type != y.type) return shape("takes operands of one type, not {} and {}", text(size_t{0}), text(size_t{1}));
  if (x.rank() != y.rank()) return shape("takes operands of one rank, not {} and {}", text(size_t{0}), text(size_t{1}));
  for (int d = 0; d + 2 < x.rank(); ++d)
    if (x.dims[static_cast<size_t>(d)] != y.dims[static_cast<size_t>(d)])
      return shape("takes as many matrices as right sides");
  size_t side = y.dims.size() - (a_.flag(Attr::left_side) ? 2 : 1);
  if (x.dims.back() != y.dims[side]) shape("takes sides of {} elements, not {}", x.dims.back(), text(1));
}

void OperationRules::fft() {
  std::string_view kind = u_.text(a_.text(Attr::fft_type));
  const Dims& length = a_.ints(Attr::fft_length);
  if (length.empty() || length.size() > 3)
    return attribute("transforms one to three dimensions, not {}", length.size());
  if (in(0).rank() < static_cast<int>(length.size())) return;
  bool real = kind == "RFFT";
  if (real ? !is_float(type(0)) : !is_complex(type(0))) return shape("{} does not take {}", kind, text(0));
  for (size_t k = 0; k < length.size(); ++k) {
    int64_t have = in(0).dims[in(0).dims.size() - length.size() + k], want = length[k];
    if (kind == "IRFFT" && k + 1 == length.size()) want = want / 2 + 1;
    if (have != want && !(settled_ && (kind == "FFT" || kind == "IFFT")))
      return shape("of length {} takes {} elements, not {}", length[k], want, have);
  }
}

void OperationRules::batch_norm() {
  int64_t f = a_.integer(Attr::feature_index);
  if (f < 0 || f >= in(0).rank()) return attribute("has no feature dimension {}", f);
  if (!is_float(type(0))) return shape("works on floats, not on {}", text(0));
  int64_t count = in(0).dims[static_cast<size_t>(f)];
  size_t per_feature = m_.op(i_) == Opcode::BatchNormTraining ? 3 : m_.op(i_) == Opcode::BatchNormInference ? 5 : 4;
  for (size_t n = 1; n < per_feature; ++n) {
    if (in(n).rank() != 1 || in(n).dims[0] != count) shape("takes {} numbers as operand {}, not {}", count, n, text(n));
    if (!same_float_or_equal(type(n), type(0))) shape("takes floats as operand {}, not {}", n, text(n));
  }
  if (m_.op(i_) == Opcode::BatchNormGrad && in(4).dims != in(0).dims)
    shape("takes a gradient of the operand's shape, not {}", text(4));
}

void verify_operation(const Module& m, InstId inst, bool settled, bool mixed,
                      const std::function<void(std::string_view rule, std::string message)>& error) {
  OperationRules(m, inst, settled, mixed, error).run();
}

}  // namespace hlo
