// Operations on elements: arithmetic, mathematical functions, comparisons.
#include <fmt/format.h>

#include <cmath>

#include "gpu_exec/emit/element_emitter.h"
#include "ir/base/check.h"

namespace hlo {

using llvm::Value;

Value* ElementEmitter::intrinsic(llvm::Intrinsic::ID id, Value* a, Value* b) {
  if (b) return b_.CreateBinaryIntrinsic(id, a, b);
  return b_.CreateUnaryIntrinsic(id, a);
}

Value* ElementEmitter::call_math(const char* name, Value* a, Value* b) {
  bool wide = a->getType()->isDoubleTy();
  std::string full =
      options_.gpu ? fmt::format("__nv_{}{}", name, wide ? "" : "f") : fmt::format("{}{}", name, wide ? "" : "f");
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  std::vector<llvm::Type*> types{a->getType()};
  std::vector<Value*> args{a};
  if (b) types.push_back(b->getType()), args.push_back(b);
  llvm::FunctionCallee f = module->getOrInsertFunction(full, llvm::FunctionType::get(a->getType(), types, false));
  auto* function = llvm::cast<llvm::Function>(f.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  return b_.CreateCall(f, args);
}

Value* ElementEmitter::real_function(const char* name, Value* a) {
  if (options_.gpu) return call_math(name, a);
  std::string_view n = name;
  namespace I = llvm::Intrinsic;
  return intrinsic(n == "exp" ? I::exp : n == "log" ? I::log : n == "sin" ? I::sin : I::cos, a);
}

// A rational function up to 9, where it is one in f32; odd powers over even ones as Eigen has it.
Value* ElementEmitter::tanh(Value* a) {
  if (options_.gpu || a->getType()->isDoubleTy()) return call_math("tanh", a);
  llvm::Type* t = a->getType();
  auto k = [&](double c) { return llvm::ConstantFP::get(t, c); };
  Value* x = intrinsic(llvm::Intrinsic::minimum, intrinsic(llvm::Intrinsic::maximum, a, k(-7.90531110763549805)),
                       k(7.90531110763549805));
  Value* x2 = b_.CreateFMul(x, x);
  auto poly = [&](std::initializer_list<double> c) {
    Value* p = nullptr;
    for (double v : c) p = p ? b_.CreateFAdd(b_.CreateFMul(p, x2), k(v)) : k(v);
    return p;
  };
  Value* top =
      b_.CreateFMul(x, poly({-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
                             1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03}));
  Value* bottom = poly({1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03});
  Value* small = b_.CreateFCmpOLT(intrinsic(llvm::Intrinsic::fabs, a), k(0.0004));
  return b_.CreateSelect(small, a, b_.CreateFDiv(top, bottom));
}

Value* ElementEmitter::divide(ElementType t, Value* a, Value* b, bool remainder) {
  llvm::Type* type = a->getType();
  Value *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
  Value* by_zero = b_.CreateICmpEQ(b, zero);
  if (!is_signed_int(t)) {
    Value* safe = b_.CreateSelect(by_zero, one, b);
    if (remainder) return b_.CreateSelect(by_zero, a, b_.CreateURem(a, safe));
    return b_.CreateSelect(by_zero, llvm::Constant::getAllOnesValue(type), b_.CreateUDiv(a, safe));
  }
  Value* least = llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getIntegerBitWidth()));
  Value* over = b_.CreateAnd(b_.CreateICmpEQ(a, least), b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type)));
  Value* safe = b_.CreateSelect(b_.CreateOr(by_zero, over), one, b);
  if (remainder) return b_.CreateSelect(by_zero, a, b_.CreateSelect(over, zero, b_.CreateSRem(a, safe)));
  return b_.CreateSelect(by_zero, llvm::Constant::getAllOnesValue(type),
                         b_.CreateSelect(over, least, b_.CreateSDiv(a, safe)));
}

// Of integers, wrapping. To a negative power it is 0 but for 1 and -1.
Value* ElementEmitter::power(bool sign, Value* base, Value* exponent) {
  llvm::Type* type = base->getType();
  Value *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
  Value *minus_one = llvm::Constant::getAllOnesValue(type), *result = variable(type, one),
        *square = variable(type, base), *left = variable(type, exponent);
  loop(number(0), number(type->getIntegerBitWidth()), number(1), "power", [&](Value*) {
    Value *s = b_.CreateLoad(type, square), *e = b_.CreateLoad(type, left), *r = b_.CreateLoad(type, result);
    Value* odd = b_.CreateTrunc(e, b_.getInt1Ty());
    b_.CreateStore(b_.CreateSelect(odd, b_.CreateMul(r, s), r), result);
    b_.CreateStore(b_.CreateMul(s, s), square), b_.CreateStore(b_.CreateLShr(e, 1), left);
  });
  Value* power = b_.CreateLoad(type, result);
  if (!sign) return power;
  Value* odd = b_.CreateTrunc(exponent, b_.getInt1Ty());
  Value* inverse = b_.CreateSelect(b_.CreateICmpEQ(base, minus_one), b_.CreateSelect(odd, minus_one, one), zero);
  inverse = b_.CreateSelect(b_.CreateICmpEQ(base, one), one, inverse);
  return b_.CreateSelect(b_.CreateICmpSLT(exponent, zero), inverse, power);
}

Value* ElementEmitter::compare(InstId inst, ElementType t, Value* a, Value* b) {
  std::string_view d = u_.text(m_.attrs(inst).text(Attr::direction)), kind = u_.text(m_.attrs(inst).text(Attr::type));
  if (is_complex(t)) {
    if (d != "EQ" && d != "NE") refuse(inst, "order of complex numbers");
    Value* same = b_.CreateFCmpOEQ(a, b);
    Value* both = b_.CreateAnd(b_.CreateExtractElement(same, uint64_t{0}), b_.CreateExtractElement(same, uint64_t{1}));
    return d == "EQ" ? both : b_.CreateNot(both);
  }
  if (kind == "TOTALORDER" && is_float(t)) {
    // Bits as numbers, those of negative ones reversed.
    auto key = [&](Value* v) {
      unsigned width = v->getType()->isDoubleTy() ? 64 : 32;
      Value* bits = b_.CreateBitCast(v, b_.getIntNTy(width));
      Value* negative = b_.CreateLShr(b_.CreateAShr(bits, width - 1), uint64_t{1});
      return b_.CreateXor(bits, negative);
    };
    a = key(a), b = key(b);
    t = ElementType::S64;
  }
  using P = llvm::CmpInst::Predicate;
  bool sign = is_signed_int(t);
  P p;
  if (is_float(t))
    p = d == "EQ"   ? P::FCMP_OEQ
        : d == "NE" ? P::FCMP_UNE
        : d == "LT" ? P::FCMP_OLT
        : d == "LE" ? P::FCMP_OLE
        : d == "GT" ? P::FCMP_OGT
                    : P::FCMP_OGE;
  else
    p = d == "EQ"   ? P::ICMP_EQ
        : d == "NE" ? P::ICMP_NE
        : d == "LT" ? (sign ? P::ICMP_SLT : P::ICMP_ULT)
        : d == "LE" ? (sign ? P::ICMP_SLE : P::ICMP_ULE)
        : d == "GT" ? (sign ? P::ICMP_SGT : P::ICMP_UGT)
                    : (sign ? P::ICMP_SGE : P::ICMP_UGE);
  return b_.CreateCmp(p, a, b);
}

// Of a real number.
Value* ElementEmitter::real_unary(InstId inst, Value* a) {
  namespace I = llvm::Intrinsic;
  auto k = [&](double c) { return llvm::ConstantFP::get(a->getType(), c); };
  switch (m_.op(inst)) {
    case Opcode::Ceil:
      return intrinsic(I::ceil, a);
    case Opcode::Floor:
      return intrinsic(I::floor, a);
    case Opcode::RoundNearestAfz:
      return options_.gpu ? call_math("round", a) : intrinsic(I::round, a);
    case Opcode::RoundNearestEven:
      return intrinsic(I::roundeven, a);
    case Opcode::Sqrt:
      return intrinsic(I::sqrt, a);
    case Opcode::Rsqrt:
      return b_.CreateFDiv(k(1), intrinsic(I::sqrt, a));
    case Opcode::Exp:
      return real_function("exp", a);
    case Opcode::Log:
      return real_function("log", a);
    case Opcode::Sine:
      return real_function("sin", a);
    case Opcode::Cosine:
      return real_function("cos", a);
    case Opcode::Tanh:
      return tanh(a);
    case Opcode::Logistic: {
      Value* e = real_function("exp", b_.CreateFNeg(a));
      return b_.CreateFDiv(k(1), b_.CreateFAdd(k(1), e));
    }
    case Opcode::Tan:
      return call_math("tan", a);
    case Opcode::Expm1:
      return call_math("expm1", a);
    case Opcode::Log1p:
      return call_math("log1p", a);
    case Opcode::Cbrt:
      return call_math("cbrt", a);
    case Opcode::Erf:
      return call_math("erf", a);
    case Opcode::Acos:
      return call_math("acos", a);
    case Opcode::Asin:
      return call_math("asin", a);
    case Opcode::Acosh:
      return call_math("acosh", a);
    case Opcode::Asinh:
      return call_math("asinh", a);
    case Opcode::Atanh:
      return call_math("atanh", a);
    case Opcode::Sinh:
      return call_math("sinh", a);
    case Opcode::Cosh:
      return call_math("cosh", a);
    default:
      refuse(inst, "the emitter has no code for it");
  }
}

Value* ElementEmitter::unary(InstId inst, ElementType t, Value* a) {
  Opcode op = m_.op(inst);
  namespace I = llvm::Intrinsic;
  llvm::Type* type = a->getType();
  bool real = is_float(t);
  auto k = [&](double c) { return llvm::ConstantFP::get(type, c); };
  switch (op) {
    case Opcode::Abs:
      if (real) return intrinsic(I::fabs, a);
      if (!is_signed_int(t)) return a;
      return b_.CreateBinaryIntrinsic(I::abs, a, b_.getFalse());
    case Opcode::Negate:
      return real ? b_.CreateFNeg(a) : b_.CreateNeg(a);
    case Opcode::Not:
      return b_.CreateNot(a);
    case Opcode::Popcnt:
      return intrinsic(I::ctpop, a);
    case Opcode::CountLeadingZeros:
      return b_.CreateBinaryIntrinsic(I::ctlz, a, b_.getFalse());
    case Opcode::Sign:
      if (real) {
        Value* one = intrinsic(I::copysign, k(1), a);
        Value* keep = b_.CreateOr(b_.CreateFCmpUNO(a, a), b_.CreateFCmpOEQ(a, k(0)));
        return b_.CreateSelect(keep, a, one);
      }
      {
        Value *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
        Value* up = b_.CreateSelect(b_.CreateICmpEQ(a, zero), zero, one);
        if (!is_signed_int(t)) return up;
        return b_.CreateSelect(b_.CreateICmpSLT(a, zero), llvm::Constant::getAllOnesValue(type), up);
      }
    default:
      break;
  }
  if (!real) refuse(inst, fmt::format("of {}", type_name(t)));
  return real_unary(inst, a);
}

Value* ElementEmitter::binary(InstId inst, ElementType t, Value* a, Value* b) {
  Opcode op = m_.op(inst);
  namespace I = llvm::Intrinsic;
  bool real = is_float(t), sign = is_signed_int(t);
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  if (real && reducing_ && options_.reassociate) flags.setAllowReassoc();
  // A product and the sum it goes into may be rounded once, as in XLA's own code. (Narrower types round each.)
  bool own = t == ElementType::F32 || t == ElementType::F64;
  if (own && (op == Opcode::Add || op == Opcode::Subtract || op == Opcode::Multiply)) flags.setAllowContract(true);
  b_.setFastMathFlags(flags);
  switch (op) {
    case Opcode::Add:
      return t == ElementType::Pred ? b_.CreateOr(a, b) : real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Opcode::Subtract:
      return real ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case Opcode::Multiply:
      return t == ElementType::Pred ? b_.CreateAnd(a, b) : real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Opcode::Divide:
      return real ? b_.CreateFDiv(a, b) : divide(t, a, b, false);
    case Opcode::Remainder:
      return real ? call_math("fmod", a, b) : divide(t, a, b, true);
    case Opcode::Maximum:
      if (t == ElementType::Pred) return b_.CreateOr(a, b);
      return intrinsic(real ? I::maximum : sign ? I::smax : I::umax, a, b);
    case Opcode::Minimum:
      if (t == ElementType::Pred) return b_.CreateAnd(a, b);
      return intrinsic(real ? I::minimum : sign ? I::smin : I::umin, a, b);
    case Opcode::And:
      return b_.CreateAnd(a, b);
    case Opcode::Or:
      return b_.CreateOr(a, b);
    case Opcode::Xor:
      return b_.CreateXor(a, b);
    case Opcode::Power:
      if (!real) return power(sign, a, b);
      return options_.gpu ? call_math("pow", a, b) : intrinsic(I::pow, a, b);
    case Opcode::Atan2:
      if (!real) refuse(inst, "of integers");
      return call_math("atan2", a, b);
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical: {
      llvm::Type* type = a->getType();
      unsigned bits = type->getIntegerBitWidth();
      Value* width = llvm::ConstantInt::get(type, bits);
      Value* fits = b_.CreateICmpULT(b, width);
      Value* by = b_.CreateSelect(fits, b, llvm::ConstantInt::get(type, 0));
      if (op == Opcode::ShiftRightArithmetic)
        return b_.CreateSelect(fits, b_.CreateAShr(a, by), b_.CreateAShr(a, llvm::ConstantInt::get(type, bits - 1)));
      return b_.CreateSelect(fits, op == Opcode::ShiftLeft ? b_.CreateShl(a, by) : b_.CreateLShr(a, by),
                             llvm::ConstantInt::get(type, 0));
    }
    default:
      refuse(inst, "the emitter has no code for it");
  }
}

// Scalars stand for all elements.
Value* ElementEmitter::operand_element(const Frame& frame, InstId inst, size_t k, const ElementIndex* index) {
  InstId o = m_.operand(inst, k);
  if (m_.shape(o).rank() == 0 && m_.shape(inst).rank() != 0) return scalar_operand(frame, o);
  return element(frame, o, index);
}

// LLVM aborts where an instruction does not fit its operands: what has no meaning for a type is refused by name before.
void ElementEmitter::check_types(InstId inst) const {
  Opcode op = m_.op(inst);
  auto type_of = [&](size_t k) { return m_.shape(m_.operand(inst, k)).type; };
  const size_t count = m_.operand_count(inst);
  const ElementType t = type_of(0), out = m_.shape(inst).type;
  bool fits = true;
  switch (op) {
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
    case Opcode::Popcnt:
    case Opcode::CountLeadingZeros:
      fits = is_integral(t) || t == ElementType::Pred;
      break;
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
      fits = is_integral(t);
      break;
    case Opcode::IsFinite:
    case Opcode::ReducePrecision:
    case Opcode::StochasticConvert:
      fits = is_float(t);
      break;
    case Opcode::Select:
      fits = t == ElementType::Pred;
      break;
    default:
      break;
  }
  if (!fits) refuse(inst, fmt::format("no meaning for {}", type_name(t)));
  if (op == Opcode::BitcastConvert || op == Opcode::Convert || op == Opcode::StochasticConvert || op == Opcode::Complex)
    return;
  const size_t first = op == Opcode::Select ? 1 : 0;
  for (size_t k = first + 1; k < count; ++k)
    fits = fits && register_type(type_of(k)) == register_type(type_of(first)) &&
           is_signed_int(type_of(k)) == is_signed_int(type_of(first));
  if (count > first + 1 && op != Opcode::Compare) fits = fits && register_type(out) == register_type(type_of(first));
  if (!fits) refuse(inst, "its types differ");
}

Value* ElementEmitter::elementwise(const Frame& frame, InstId inst, const ElementIndex* index) {
  Opcode op = m_.op(inst);
  const Shape& out = m_.shape(inst);
  const size_t count = m_.operand_count(inst);
  auto value = [&](size_t k) { return operand_element(frame, inst, k, index); };
  auto type_of = [&](size_t k) { return m_.shape(m_.operand(inst, k)).type; };
  const ElementType t = type_of(0);
  check_types(inst);
  if (op == Opcode::BitcastConvert) return bitcast_convert(frame, inst, index);
  if (is_complex(t) || is_complex(out.type)) {
    std::vector<Value*> values;
    for (size_t k = 0; k < count; ++k) values.push_back(value(k));
    return complex(inst, values);
  }
  switch (op) {
    case Opcode::Select: {
      Value *c = value(0), *a = value(1), *b = value(2);
      return b_.CreateSelect(c, a, b);
    }
    case Opcode::Clamp: {
      ElementType ct = out.type;
      bool real = is_float(ct), sign = is_signed_int(ct);
      namespace I = llvm::Intrinsic;
      Value *lo = value(0), *x = value(1), *hi = value(2);
      x = intrinsic(real ? I::maximum : sign ? I::smax : I::umax, x, lo);
      return intrinsic(real ? I::minimum : sign ? I::smin : I::umin, x, hi);
    }
    case Opcode::Compare: {
      Value *a = value(0), *b = value(1);
      return compare(inst, t, a, b);
    }
    case Opcode::Convert:
      return convert(t, out.type, value(0));
    case Opcode::IsFinite: {
      Value* a = intrinsic(llvm::Intrinsic::fabs, value(0));
      return b_.CreateFCmpOLT(a, llvm::ConstantFP::getInfinity(a->getType()));
    }
    case Opcode::ReducePrecision: {
      const AttrSet& a = m_.attrs(inst);
      return rounded(t, reduced_precision(value(0), static_cast<int>(a.integer(Attr::exponent_bits)),
                                          static_cast<int>(a.integer(Attr::mantissa_bits))));
    }
    case Opcode::StochasticConvert: {
      Value *v = value(0), *chance = value(1);
      return stochastic_convert(inst, t, type_of(1), out.type, v, chance);
    }
    // Of a real number.
    case Opcode::Real:
      return value(0);
    case Opcode::Imag:
      return llvm::Constant::getNullValue(register_type(out.type));
    default:
      break;
  }
  if (count == 1) return rounded(out.type, unary(inst, t, value(0)));
  if (count == 2) {
    Value *a = value(0), *b = value(1);
    return rounded(out.type, binary(inst, t, a, b));
  }
  refuse(inst, "the emitter has no code for it");
}

}  // namespace hlo
