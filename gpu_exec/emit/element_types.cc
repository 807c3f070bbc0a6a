// Types of values: how they stand in registers and in memory, and what turns one into another.
#include <fmt/format.h>

#include <cmath>

#include "gpu_exec/emit/element_emitter.h"
#include "ir/base/check.h"

namespace hlo {

using llvm::Value;

llvm::Type* ElementEmitter::register_type(ElementType t) const {
  if (t == ElementType::Pred) return b_.getInt1Ty();
  if (is_complex(t)) return llvm::FixedVectorType::get(register_type(component_type(t)), 2);
  if (t == ElementType::F64) return b_.getDoubleTy();
  if (is_float(t)) return b_.getFloatTy();
  return b_.getIntNTy(static_cast<unsigned>(type_bits(t)));
}

llvm::Type* ElementEmitter::memory_type(ElementType t) const {
  if (t == ElementType::F32) return b_.getFloatTy();
  if (t == ElementType::F64) return b_.getDoubleTy();
  if (is_complex(t)) return register_type(t);
  return b_.getIntNTy(static_cast<unsigned>(std::max(type_bits(t), 8)));
}

Value* ElementEmitter::from_memory(ElementType t, Value* v) {
  if (t == ElementType::Pred) return b_.CreateICmpNE(v, llvm::ConstantInt::get(v->getType(), 0));
  if (t == ElementType::BF16)
    return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(v, b_.getInt32Ty()), 16), b_.getFloatTy());
  if (t == ElementType::F16) {
    Value* wide = b_.CreateFPExt(b_.CreateBitCast(v, b_.getHalfTy()), b_.getFloatTy());
    if (!options_.gpu) return wide;
    // A GPU's conversion makes one NaN of all; a total order asks for its sign, a bitcast-convert for its bits.
    Value* bits = b_.CreateZExt(v, b_.getInt32Ty());
    Value* nan = b_.CreateOr(b_.CreateShl(bits, 13), b_.getInt32(0x7f800000));  // the sign's place is filled, too
    nan = b_.CreateOr(b_.CreateAnd(nan, b_.getInt32(0x7fffffff)), b_.CreateShl(b_.CreateLShr(bits, 15), 31));
    return b_.CreateSelect(b_.CreateFCmpUNO(wide, wide), b_.CreateBitCast(nan, b_.getFloatTy()), wide);
  }
  if (is_narrow_float(t)) {
    // Few bits: every value stands in a table.
    const FloatFormat& format = *float_format(t);
    std::vector<float> all(256);
    for (uint32_t k = 0; k < 256; ++k)
      all[k] = static_cast<float>(decode_float(format, k & ((1u << type_bits(t)) - 1)));
    llvm::Constant* data = llvm::ConstantDataArray::get(b_.getContext(), all);
    llvm::Module* module = b_.GetInsertBlock()->getModule();
    std::string name = fmt::format("decode_{}", type_name(t));
    llvm::GlobalVariable* table = module->getNamedGlobal(name);
    if (!table)
      table = new llvm::GlobalVariable(*module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, name);
    return b_.CreateLoad(b_.getFloatTy(),
                         b_.CreateInBoundsGEP(b_.getFloatTy(), table, b_.CreateZExt(v, b_.getInt64Ty())));
  }
  // Less than a byte: the rest repeats the sign, or is zero.
  return is_integral(t) ? b_.CreateTrunc(v, register_type(t)) : v;
}

Value* ElementEmitter::to_memory(ElementType t, Value* v) {
  if (t == ElementType::Pred) return b_.CreateZExt(v, b_.getInt8Ty());
  if (t == ElementType::BF16)  // rounded already
    return b_.CreateTrunc(b_.CreateLShr(b_.CreateBitCast(v, b_.getInt32Ty()), 16), b_.getInt16Ty());
  if (t == ElementType::F16) {
    Value* narrow = b_.CreateBitCast(b_.CreateFPTrunc(v, b_.getHalfTy()), b_.getInt16Ty());
    if (!options_.gpu) return narrow;
    Value* bits = b_.CreateBitCast(v, b_.getInt32Ty());
    Value* payload = b_.CreateAnd(b_.CreateLShr(bits, 13), b_.getInt32(0x3ff));
    payload = b_.CreateSelect(b_.CreateICmpEQ(payload, b_.getInt32(0)), b_.getInt32(0x200), payload);
    Value* sign = b_.CreateShl(b_.CreateLShr(bits, 31), 15);
    Value* nan = b_.CreateTrunc(b_.CreateOr(b_.CreateOr(sign, payload), b_.getInt32(0x7c00)), b_.getInt16Ty());
    return b_.CreateSelect(b_.CreateFCmpUNO(v, v), nan, narrow);
  }
  if (is_narrow_float(t)) return encoded(t, v);
  if (!is_integral(t)) return v;
  return is_signed_int(t) ? b_.CreateSExt(v, memory_type(t)) : b_.CreateZExt(v, memory_type(t));
}

// The bits of a value of eight bits or fewer, which `v` holds exactly.
Value* ElementEmitter::encoded(ElementType t, Value* v) {
  const FloatFormat& f = *float_format(t);
  if (!f.has_sign) return power_of_two(v);
  llvm::Type* i32 = b_.getInt32Ty();
  Value* bits = b_.CreateBitCast(v, i32);
  Value* magnitude = b_.CreateAnd(bits, b_.getInt32(0x7fffffff));
  Value* size = b_.CreateBitCast(magnitude, b_.getFloatTy());
  // Normal numbers: the exponent moved; below them multiples of the smallest.
  uint32_t shift = static_cast<uint32_t>(23 - f.mantissa_bits);
  Value* normal = b_.CreateSub(b_.CreateLShr(magnitude, shift),
                               b_.getInt32(static_cast<uint32_t>(127 - f.bias) << f.mantissa_bits));
  double quantum = std::ldexp(1.0, 1 - f.bias - f.mantissa_bits), least = std::ldexp(1.0, 1 - f.bias);
  Value* small = b_.CreateFPToUI(b_.CreateFMul(size, llvm::ConstantFP::get(b_.getFloatTy(), 1 / quantum)), i32);
  Value* below = b_.CreateFCmpOLT(size, llvm::ConstantFP::get(b_.getFloatTy(), least));
  // The conversion's result is only used where it is defined; no poison reaches the other side.
  Value* out = b_.CreateSelect(below, b_.CreateFreeze(small), normal);
  Value* sign = b_.CreateLShr(b_.CreateAnd(bits, b_.getInt32(0x80000000u)),
                              static_cast<uint64_t>(31 - f.exponent_bits - f.mantissa_bits));
  if (f.fnuz) sign = b_.CreateSelect(b_.CreateICmpEQ(magnitude, b_.getInt32(0)), b_.getInt32(0), sign);
  if (f.has_inf)
    out = b_.CreateSelect(b_.CreateFCmpOEQ(size, llvm::ConstantFP::getInfinity(b_.getFloatTy())),
                          b_.getInt32(encode_float(f, INFINITY)), out);
  if (f.has_nan || f.has_inf) {
    uint32_t nan = encode_float(f, NAN) & ~(f.fnuz ? 0u : 1u << (f.exponent_bits + f.mantissa_bits));
    out = b_.CreateSelect(b_.CreateFCmpUNO(v, v), b_.getInt32(nan), out);
  }
  out = b_.CreateOr(out, sign);
  return b_.CreateTrunc(out, memory_type(t));
}

// The bits of f8e8m0fnu: the exponent of f32, of ties the upper one. NaN is what it has no value for, and its infinity.
Value* ElementEmitter::power_of_two(Value* v) {
  Value* bits = b_.CreateBitCast(v, b_.getInt32Ty());
  Value* code = b_.CreateLShr(b_.CreateAdd(bits, b_.getInt32(0x400000)), 23);
  // Below f32's normal numbers there are two values: 2^-127, and from half way on 2^-126.
  Value* above = b_.CreateZExt(b_.CreateICmpUGE(bits, b_.getInt32(0x600000)), b_.getInt32Ty());
  code = b_.CreateSelect(b_.CreateICmpULT(bits, b_.getInt32(0x800000)), above, code);
  // From infinity on come the NaNs and all that has a sign.
  Value* none = b_.CreateOr(b_.CreateICmpEQ(bits, b_.getInt32(0)), b_.CreateICmpUGE(bits, b_.getInt32(0x7f800000)));
  return b_.CreateTrunc(b_.CreateSelect(none, b_.getInt32(255), code), b_.getInt8Ty());
}

// The nearest value of a format of eight bits or fewer, even where two are as near; as encode_float has it.
Value* ElementEmitter::narrowed(ElementType t, Value* v) {
  const FloatFormat& f = *float_format(t);
  if (!f.has_sign) return from_memory(t, power_of_two(v));
  llvm::Type* type = b_.getFloatTy();
  auto k = [&](double c) { return llvm::ConstantFP::get(type, c); };
  Value* bits = b_.CreateBitCast(v, b_.getInt32Ty());
  uint32_t shift = static_cast<uint32_t>(23 - f.mantissa_bits);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, shift), 1);
  Value* up = b_.CreateAdd(bits, b_.CreateAdd(odd, b_.getInt32((1u << (shift - 1)) - 1)));
  Value* normal = b_.CreateBitCast(b_.CreateAnd(up, b_.getInt32(~((1u << shift) - 1))), type);
  // Adding 2^23 quanta leaves whole ones.
  double quantum = std::ldexp(1.0, 1 - f.bias - f.mantissa_bits);
  Value* size = intrinsic(llvm::Intrinsic::fabs, v);
  Value* magic = k(std::ldexp(quantum, 23));
  Value* small = b_.CreateFSub(b_.CreateFAdd(size, magic), magic);
  small = intrinsic(llvm::Intrinsic::copysign, small, v);
  Value* out = b_.CreateSelect(b_.CreateFCmpOLT(size, k(std::ldexp(1.0, 1 - f.bias))), small, normal);
  // The largest finite value: of all codes the one with the largest magnitude.
  double most = 0;
  for (uint32_t c = 0; c < (1u << type_bits(t)); ++c)
    if (double d = decode_float(f, c); std::isfinite(d)) most = std::max(most, d);
  double over = f.has_inf ? INFINITY : f.has_nan ? NAN : most;
  Value* too_large = b_.CreateFCmpOGT(intrinsic(llvm::Intrinsic::fabs, out), k(most));
  out = b_.CreateSelect(too_large, intrinsic(llvm::Intrinsic::copysign, k(over), v), out);
  if (f.fnuz) out = b_.CreateSelect(b_.CreateFCmpOEQ(out, k(0)), k(0), out);
  // Without a NaN of its own, it becomes -0.
  return b_.CreateSelect(b_.CreateFCmpUNO(v, v), f.has_nan || f.has_inf ? v : k(-0.0), out);
}

// f64 to f32 so that rounding again gives what rounding once would: of the two neighbours the odd one.
Value* ElementEmitter::to_odd(Value* v) {
  Value* near = b_.CreateFPTrunc(v, b_.getFloatTy());
  Value* back = b_.CreateFPExt(near, v->getType());
  Value* bits = b_.CreateBitCast(near, b_.getInt32Ty());
  Value* outward = b_.CreateFCmpOLT(intrinsic(llvm::Intrinsic::fabs, back), intrinsic(llvm::Intrinsic::fabs, v));
  Value* other = b_.CreateSelect(outward, b_.CreateAdd(bits, b_.getInt32(1)), b_.CreateSub(bits, b_.getInt32(1)));
  Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, b_.getInt32(1)), b_.getInt32(0));
  Value* inexact = b_.CreateFCmpONE(back, v);
  return b_.CreateBitCast(b_.CreateSelect(b_.CreateAnd(even, inexact), other, bits), b_.getFloatTy());
}

// f32 arithmetic's result as a value of the narrower type.
Value* ElementEmitter::rounded(ElementType t, Value* v) {
  if (t == ElementType::F16) {
    Value* out = b_.CreateFPExt(b_.CreateFPTrunc(v, b_.getHalfTy()), b_.getFloatTy());
    if (!options_.gpu) return out;
    return b_.CreateSelect(b_.CreateFCmpUNO(v, v), v, out);
  }
  if (t == ElementType::BF16) {
    Value* bits = b_.CreateBitCast(v, b_.getInt32Ty());
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
    Value* up = b_.CreateAnd(b_.CreateAdd(bits, b_.CreateAdd(odd, b_.getInt32(0x7fff))), b_.getInt32(0xffff0000u));
    Value* nan = b_.CreateAnd(b_.CreateOr(bits, b_.getInt32(0x400000)), b_.getInt32(0xffff0000u));
    return b_.CreateBitCast(b_.CreateSelect(b_.CreateFCmpUNO(v, v), nan, up), b_.getFloatTy());
  }
  return is_narrow_float(t) ? narrowed(t, v) : v;
}

Value* ElementEmitter::convert(ElementType from, ElementType to, Value* v) {
  llvm::Type* t = register_type(to);
  if (from == to) return v;
  if (to == ElementType::Pred)
    return is_float(from) ? b_.CreateFCmpUNE(v, llvm::ConstantFP::get(v->getType(), 0))
                          : b_.CreateICmpNE(v, llvm::ConstantInt::get(v->getType(), 0));
  if (is_float(to)) {
    if (is_float(from)) {
      if (from == ElementType::F64 && is_narrow_float(to)) return rounded(to, to_odd(v));
      return rounded(to, b_.CreateFPCast(v, t));
    }
    bool sign = is_signed_int(from);
    if (is_narrow_float(to) && type_bits(from) > 32) {
      // 53 bits hold what f64 can have; a bit for whatever lies below them keeps the direction of rounding.
      Value* size = sign ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v, b_.getFalse()) : v;
      Value* rest = b_.CreateICmpNE(b_.CreateAnd(size, 0x7ff), b_.getInt64(0));
      Value* sticky =
          b_.CreateAnd(b_.CreateOr(size, b_.CreateSelect(rest, b_.getInt64(0x800), b_.getInt64(0))), ~0x7ffull);
      size = b_.CreateSelect(b_.CreateICmpULT(size, b_.getInt64(uint64_t{1} << 53)), size, sticky);
      Value* f64 = b_.CreateUIToFP(size, b_.getDoubleTy());
      if (sign) f64 = b_.CreateSelect(b_.CreateICmpSLT(v, b_.getInt64(0)), b_.CreateFNeg(f64), f64);
      return rounded(to, to_odd(f64));
    }
    if (is_narrow_float(to) && type_bits(from) > 24)
      return rounded(to, to_odd(sign ? b_.CreateSIToFP(v, b_.getDoubleTy()) : b_.CreateUIToFP(v, b_.getDoubleTy())));
    return rounded(to, sign ? b_.CreateSIToFP(v, t) : b_.CreateUIToFP(v, t));
  }
  if (is_float(from)) {
    llvm::Intrinsic::ID id = is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {t, v->getType()}, {v});
  }
  if (from == ElementType::Pred) return b_.CreateZExt(v, t);
  return is_signed_int(from) ? b_.CreateSExtOrTrunc(v, t) : b_.CreateZExtOrTrunc(v, t);
}

// --- bits ---

Value* ElementEmitter::bits_of(ElementType t, Value* v) {
  v = to_memory(t, v);
  llvm::Type* bits = b_.getIntNTy(static_cast<unsigned>(type_bits(t)));
  return v->getType()->isIntegerTy() ? b_.CreateTrunc(v, bits) : b_.CreateBitCast(v, bits);
}

Value* ElementEmitter::from_bits(ElementType t, Value* bits) {
  llvm::Type* to = memory_type(t);
  return from_memory(t, to->isIntegerTy() ? b_.CreateZExt(bits, to) : b_.CreateBitCast(bits, to));
}

// Of the same width elements stay where they are. A wider element is cut along a new last dimension, or put together
// along it, the lowest bits first (xla/hlo/evaluator/hlo_evaluator.cc, HandleBitcastConvert):
//   u8[4,4] bitcast-convert(f32[4] A), f32[4] bitcast-convert(u8[4,4] A)
Value* ElementEmitter::bitcast_convert(const Frame& frame, InstId inst, const ElementIndex* index) {
  InstId o = m_.operand(inst, 0);
  const Shape &out = m_.shape(inst), &in = m_.shape(o);
  const int from = type_bits(in.type), to = type_bits(out.type);
  if (from == to) {
    if (in.type == out.type) return operand_element(frame, inst, 0, index);
    if (is_complex(in.type) || is_complex(out.type)) refuse(inst, "of complex numbers");
    return from_bits(out.type, bits_of(in.type, operand_element(frame, inst, 0, index)));
  }
  if (is_complex(in.type) || is_complex(out.type)) refuse(inst, "of complex numbers");
  std::vector<Value*> at = dims(index);
  if (from > to) {
    llvm::Type* whole = b_.getIntNTy(static_cast<unsigned>(from));
    Value* by =
        b_.CreateMul(b_.CreateZExtOrTrunc(at.back(), whole), llvm::ConstantInt::get(whole, static_cast<uint64_t>(to)));
    at.pop_back();
    Value* v = bits_of(in.type, element(frame, o, index_of(m_.shape_id(o), std::move(at))));
    return from_bits(out.type, b_.CreateTrunc(b_.CreateLShr(v, by), b_.getIntNTy(static_cast<unsigned>(to))));
  }
  llvm::Type* whole = b_.getIntNTy(static_cast<unsigned>(to));
  Value* all = llvm::ConstantInt::get(whole, 0);
  at.push_back(nullptr);
  for (int k = 0; k < to / from; ++k) {
    at.back() = number(k);
    Value* v = b_.CreateZExt(bits_of(in.type, element(frame, o, index_of(m_.shape_id(o), at))), whole);
    all = b_.CreateOr(all, b_.CreateShl(v, static_cast<uint64_t>(k * from)));
  }
  return from_bits(out.type, all);
}

// The exponent and the mantissa cut to that many bits, of f32 or f64, the nearest value, of ties the even one; what is
// too small for a normal number becomes zero (xla/service/elemental_ir_emitter.cc, EmitReducePrecisionIR).
Value* ElementEmitter::reduced_precision(Value* v, int exponent_bits, int mantissa_bits) {
  const bool wide = v->getType()->isDoubleTy();
  const int mantissa = wide ? 52 : 23, exponent = wide ? 11 : 8, width = wide ? 64 : 32;
  llvm::Type* type = b_.getIntNTy(static_cast<unsigned>(width));
  auto k = [&](uint64_t c) { return llvm::ConstantInt::get(type, c); };
  Value* bits = b_.CreateBitCast(v, type);
  if (mantissa_bits < mantissa) {
    const uint64_t last = uint64_t{1} << (mantissa - mantissa_bits);
    Value* keep = b_.CreateAnd(b_.CreateLShr(bits, static_cast<uint64_t>(mantissa - mantissa_bits)), 1);
    bits = b_.CreateAnd(b_.CreateAdd(b_.CreateAdd(bits, k((last >> 1) - 1)), keep), k(~(last - 1)));
  }
  if (exponent_bits < exponent) {
    const uint64_t field = ((uint64_t{1} << exponent) - 1) << mantissa;
    const uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1, reduced = (uint64_t{1} << (exponent_bits - 1)) - 1;
    Value* sign = b_.CreateAnd(bits, k(uint64_t{1} << (width - 1)));
    Value* size = b_.CreateAnd(bits, k(field));
    Value* large = b_.CreateICmpUGT(size, k((bias + reduced) << mantissa));
    Value* small = b_.CreateICmpULE(size, k((bias - reduced) << mantissa));
    bits = b_.CreateSelect(large, b_.CreateOr(sign, k(field)), b_.CreateSelect(small, sign, bits));
  }
  return b_.CreateSelect(b_.CreateFCmpUNO(v, v), v, b_.CreateBitCast(bits, v->getType()));
}

// The fraction, as a number of as many bits as the random one has, is the chance to round away from zero; values that
// the integer has none for become the nearest it has (xla/hlo/evaluator/hlo_evaluator.cc, StochasticConvertOp).
Value* ElementEmitter::stochastic_convert(InstId inst, ElementType from, ElementType random, ElementType to, Value* v,
                                          Value* chance) {
  if (!is_float(from) || !is_signed_int(to)) refuse(inst, "other than floats to signed integers");
  llvm::Type *f64 = b_.getDoubleTy(), *i64 = b_.getInt64Ty();
  auto k = [&](double c) { return llvm::ConstantFP::get(f64, c); };
  const int bits = type_bits(to), random_bits = type_bits(random);
  v = b_.CreateFPCast(v, f64);
  Value* size = intrinsic(llvm::Intrinsic::fabs, v);
  const double most = std::ldexp(1.0, bits - 1) - (bits == 64 ? 0 : 1), least = -std::ldexp(1.0, bits - 1);
  Value *high = b_.CreateFCmpOGE(v, k(most)), *low = b_.CreateFCmpOLE(v, k(least));
  // Beyond the ends and for NaN any defined number will do; it is replaced below.
  Value* inside = b_.CreateAnd(b_.CreateFCmpOLT(v, k(most)), b_.CreateFCmpOGT(v, k(least)));
  size = b_.CreateSelect(inside, size, k(0));
  Value* whole = intrinsic(llvm::Intrinsic::trunc, size);
  Value* limit = b_.CreateFPToUI(b_.CreateFMul(b_.CreateFSub(size, whole), k(std::ldexp(1.0, random_bits))), i64);
  Value* up = b_.CreateZExt(b_.CreateICmpULT(b_.CreateZExt(chance, i64), limit), i64);
  Value* out = b_.CreateAdd(b_.CreateFPToSI(whole, i64), up);
  out = b_.CreateSelect(b_.CreateFCmpOLT(v, k(0)), b_.CreateNeg(out), out);
  const int64_t last = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  out = b_.CreateSelect(high, b_.getInt64(static_cast<uint64_t>(last)), out);
  out = b_.CreateSelect(low, b_.getInt64(static_cast<uint64_t>(-last - 1)), out);
  return b_.CreateTrunc(out, register_type(to));
}

}  // namespace hlo
