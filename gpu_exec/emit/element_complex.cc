// Operations on complex elements: pairs of real and imaginary part.
#include <cmath>

#include "gpu_exec/emit/element_emitter.h"

namespace hlo {

using llvm::Value;

Value* ElementEmitter::complex_of(Value* re, Value* im) {
  llvm::Type* type = llvm::FixedVectorType::get(re->getType(), 2);
  return b_.CreateInsertElement(b_.CreateInsertElement(llvm::PoisonValue::get(type), re, uint64_t{0}), im, uint64_t{1});
}

Value* ElementEmitter::complex_product(Value* x, Value* y) {
  Value *a = real_part(x), *b = imaginary_part(x), *c = real_part(y), *d = imaginary_part(y);
  return complex_of(b_.CreateFSub(b_.CreateFMul(a, c), b_.CreateFMul(b, d)),
                    b_.CreateFAdd(b_.CreateFMul(a, d), b_.CreateFMul(b, c)));
}

// By the larger part of the divisor, so that no square of it is needed (Smith); what becomes NaN by zeros and
// infinities alone is what C's Annex G wants.
Value* ElementEmitter::complex_quotient(Value* x, Value* y) {
  Value *a = real_part(x), *b = imaginary_part(x), *c = real_part(y), *d = imaginary_part(y);
  llvm::Type* type = a->getType();
  auto k = [&](double v) { return llvm::ConstantFP::get(type, v); };
  auto size = [&](Value* v) { return intrinsic(llvm::Intrinsic::fabs, v); };
  auto infinite = [&](Value* v) { return b_.CreateFCmpOEQ(size(v), k(INFINITY)); };
  auto finite = [&](Value* v) { return b_.CreateFCmpOLT(size(v), k(INFINITY)); };
  auto nan = [&](Value* v) { return b_.CreateFCmpUNO(v, v); };
  Value* by_real = b_.CreateFCmpOGE(size(c), size(d));
  Value *large = b_.CreateSelect(by_real, c, d), *small = b_.CreateSelect(by_real, d, c);
  Value* ratio = b_.CreateFDiv(small, large);
  Value* divisor = b_.CreateFAdd(large, b_.CreateFMul(small, ratio));
  // (a + bi) / (c + di) is ((a + b r) + (b - a r) i) / divisor, or ((a r + b) + (b r - a) i) / divisor.
  Value *p = b_.CreateSelect(by_real, a, b), *q = b_.CreateSelect(by_real, b, a);
  Value* re = b_.CreateFDiv(b_.CreateFAdd(p, b_.CreateFMul(q, ratio)), divisor);
  Value* first = b_.CreateSelect(by_real, b, b_.CreateFMul(b, ratio));
  Value* second = b_.CreateSelect(by_real, b_.CreateFMul(a, ratio), a);
  Value* im = b_.CreateFDiv(b_.CreateFSub(first, second), divisor);
  Value* lost = b_.CreateAnd(nan(re), nan(im));
  auto instead = [&](Value* when, Value* r, Value* i) {
    when = b_.CreateAnd(lost, when);
    re = b_.CreateSelect(when, r, re), im = b_.CreateSelect(when, i, im);
  };
  auto copysign = [&](double v, Value* s) { return intrinsic(llvm::Intrinsic::copysign, k(v), s); };
  Value* zero = b_.CreateAnd(b_.CreateFCmpOEQ(c, k(0)), b_.CreateFCmpOEQ(d, k(0)));
  instead(b_.CreateAnd(zero, b_.CreateNot(b_.CreateAnd(nan(a), nan(b)))), b_.CreateFMul(copysign(INFINITY, c), a),
          b_.CreateFMul(copysign(INFINITY, c), b));
  // An infinite part counts as one, a finite one as none.
  auto unit = [&](Value* v) { return b_.CreateSelect(infinite(v), copysign(1, v), copysign(0, v)); };
  auto scaled = [&](double by, Value* p1, Value* q1, Value* p2, Value* q2, bool minus) {
    Value *l = b_.CreateFMul(p1, q1), *r = b_.CreateFMul(p2, q2);
    return b_.CreateFMul(k(by), minus ? b_.CreateFSub(l, r) : b_.CreateFAdd(l, r));
  };
  Value* over = b_.CreateAnd(b_.CreateOr(infinite(a), infinite(b)), b_.CreateAnd(finite(c), finite(d)));
  instead(over, scaled(INFINITY, unit(a), c, unit(b), d, false), scaled(INFINITY, unit(b), c, unit(a), d, true));
  Value* under = b_.CreateAnd(b_.CreateOr(infinite(c), infinite(d)), b_.CreateAnd(finite(a), finite(b)));
  instead(under, scaled(0, a, unit(c), b, unit(d), false), scaled(0, b, unit(c), a, unit(d), true));
  return complex_of(re, im);
}

// In two halves, so that only a result that is too large becomes infinite.
Value* ElementEmitter::complex_exponential(Value* z) {
  Value *re = real_part(z), *im = imaginary_part(z);
  auto k = [&](double v) { return llvm::ConstantFP::get(re->getType(), v); };
  Value* half = real_function("exp", b_.CreateFMul(re, k(0.5)));
  auto times = [&](Value* v) { return b_.CreateFMul(b_.CreateFMul(half, v), half); };
  Value *c = times(real_function("cos", im)), *s = times(real_function("sin", im));
  // Of a real number it is one; exp of minus infinity is zero in whatever direction.
  s = b_.CreateSelect(b_.CreateFCmpOEQ(im, k(0)), im, s);
  c = b_.CreateSelect(b_.CreateFCmpOEQ(im, k(0)), b_.CreateFMul(half, half), c);
  Value* none = b_.CreateFCmpOEQ(re, k(-INFINITY));
  return complex_of(b_.CreateSelect(none, k(0), c), b_.CreateSelect(none, k(0), s));
}

// The size's logarithm by the larger part, or near one by what the square exceeds it.
Value* ElementEmitter::complex_logarithm(Value* z) {
  Value *re = real_part(z), *im = imaginary_part(z);
  auto k = [&](double v) { return llvm::ConstantFP::get(re->getType(), v); };
  Value *x = intrinsic(llvm::Intrinsic::fabs, re), *y = intrinsic(llvm::Intrinsic::fabs, im);
  Value* more = b_.CreateFCmpOGT(y, x);
  Value *a = b_.CreateSelect(more, y, x), *b = b_.CreateSelect(more, x, y);
  Value* plain = b_.CreateOr(b_.CreateFCmpOEQ(a, k(0)), b_.CreateFCmpOEQ(a, k(INFINITY)));
  Value* ratio = b_.CreateSelect(plain, k(0), b_.CreateFDiv(b, a));
  Value* far =
      b_.CreateFAdd(real_function("log", a), b_.CreateFMul(k(0.5), call_math("log1p", b_.CreateFMul(ratio, ratio))));
  Value* excess = b_.CreateFAdd(b_.CreateFMul(b_.CreateFSub(a, k(1)), b_.CreateFAdd(a, k(1))), b_.CreateFMul(b, b));
  Value* near = b_.CreateFMul(k(0.5), call_math("log1p", excess));
  Value* close = b_.CreateAnd(b_.CreateFCmpOGT(a, k(0.75)), b_.CreateFCmpOLT(a, k(1.5)));
  Value* size = b_.CreateSelect(close, near, far);
  // Infinite is what has an infinite part, whatever the other one.
  Value* infinite = b_.CreateOr(b_.CreateFCmpOEQ(x, k(INFINITY)), b_.CreateFCmpOEQ(y, k(INFINITY)));
  size = b_.CreateSelect(b_.CreateFCmpUNO(x, y), b_.CreateFAdd(x, y), size);
  return complex_of(b_.CreateSelect(infinite, k(INFINITY), size), call_math("atan2", im, re));
}

// The half with the larger part first, the other by dividing; huge and tiny numbers brought nearer to one before.
Value* ElementEmitter::complex_root(Value* z) {
  Value *re = real_part(z), *im = imaginary_part(z);
  llvm::Type* type = re->getType();
  auto k = [&](double v) { return llvm::ConstantFP::get(type, v); };
  auto size = [&](Value* v) { return intrinsic(llvm::Intrinsic::fabs, v); };
  const bool wide = type->isDoubleTy();
  const int digits = wide ? 52 : 23, top = wide ? 1023 : 127;
  auto all = [&](auto compare, double limit) {
    return b_.CreateAnd(compare(size(re), limit), compare(size(im), limit));
  };
  Value* small =
      all([&](Value* v, double limit) { return b_.CreateFCmpOLT(v, k(limit)); }, std::ldexp(1.0, digits - top));
  Value* large = b_.CreateNot(
      all([&](Value* v, double limit) { return b_.CreateFCmpOLT(v, k(limit)); }, std::ldexp(1.0, top - 3)));
  auto by = [&](double tiny, double huge) {
    return b_.CreateSelect(small, k(tiny), b_.CreateSelect(large, k(huge), k(1)));
  };
  Value* scale = by(std::ldexp(1.0, 2 * digits), std::ldexp(1.0, -4));
  Value* back = by(std::ldexp(1.0, -digits), 4);
  Value *x = b_.CreateFMul(re, scale), *y = b_.CreateFMul(im, scale);
  Value* half = b_.CreateFMul(k(0.5), b_.CreateFAdd(size(x), call_math("hypot", x, y)));
  Value* larger = intrinsic(llvm::Intrinsic::sqrt, half);
  Value* other = b_.CreateFDiv(size(y), b_.CreateFMul(k(2), larger));
  Value* zero = b_.CreateFCmpOEQ(larger, k(0));
  other = b_.CreateFMul(b_.CreateSelect(zero, k(0), other), back), larger = b_.CreateFMul(larger, back);
  Value* left = b_.CreateFCmpOLT(re, k(0));
  Value *out = b_.CreateSelect(left, other, larger), *side = b_.CreateSelect(left, larger, other);
  auto signed_as = [&](Value* v, Value* s) { return intrinsic(llvm::Intrinsic::copysign, v, s); };
  // An infinite real part: the other one is no number, or nothing beside it; an infinite imaginary part outdoes both.
  Value* far = b_.CreateFCmpOEQ(size(re), k(INFINITY));
  Value* rest = b_.CreateSelect(b_.CreateFCmpUNO(im, im), im, k(0));
  out = b_.CreateSelect(far, b_.CreateSelect(left, rest, k(INFINITY)), out);
  side = b_.CreateSelect(far, b_.CreateSelect(left, k(INFINITY), rest), side);
  Value* up = b_.CreateFCmpOEQ(size(im), k(INFINITY));
  return complex_of(b_.CreateSelect(up, k(INFINITY), out), signed_as(b_.CreateSelect(up, k(INFINITY), side), im));
}

// sinh(x) cosh(x) and sin(y) cos(y) over sinh²(x) + cos²(y); far out e^-2x stands for what is left of one.
Value* ElementEmitter::complex_tanh(Value* z) {
  Value *x = real_part(z), *y = imaginary_part(z);
  llvm::Type* type = x->getType();
  auto k = [&](double v) { return llvm::ConstantFP::get(type, v); };
  Value *s = real_function("sin", y), *c = real_function("cos", y), *sh = call_math("sinh", x),
        *ch = call_math("cosh", x);
  Value* divisor = b_.CreateFAdd(b_.CreateFMul(sh, sh), b_.CreateFMul(c, c));
  Value* re = b_.CreateFDiv(b_.CreateFMul(sh, ch), divisor);
  Value* im = b_.CreateFDiv(b_.CreateFMul(s, c), divisor);
  Value* size = intrinsic(llvm::Intrinsic::fabs, x);
  Value* far = b_.CreateFCmpOGT(size, k(type->isDoubleTy() ? 22 : 11));
  Value* decay = real_function("exp", b_.CreateFMul(k(-2), size));
  re = b_.CreateSelect(far, intrinsic(llvm::Intrinsic::copysign, k(1), x), re);
  Value* turn = b_.CreateFMul(b_.CreateFMul(k(4), s), c);
  // At infinity the angle does not matter.
  turn = b_.CreateSelect(b_.CreateFCmpOEQ(size, k(INFINITY)), k(0), b_.CreateFMul(turn, decay));
  return complex_of(re, b_.CreateSelect(far, turn, im));
}

Value* ElementEmitter::complex_power(Value* x, Value* y) {
  Value* log = complex_logarithm(x);
  // x^(c + di) = exp(c log|x| - d arg x) cis(d log|x| + c arg x)
  Value* power = complex_exponential(complex_product(y, log));
  // Of zero: to the zeroth power one, to any with a positive real part zero.
  llvm::Type* type = real_part(x)->getType();
  Value *zero = llvm::ConstantFP::get(type, 0), *one = llvm::ConstantFP::get(type, 1);
  auto is_zero = [&](Value* v) {
    return b_.CreateAnd(b_.CreateFCmpOEQ(real_part(v), zero), b_.CreateFCmpOEQ(imaginary_part(v), zero));
  };
  Value* none = b_.CreateAnd(is_zero(x), b_.CreateFCmpOGT(real_part(y), zero));
  power = b_.CreateSelect(none, complex_of(zero, zero), power);
  return b_.CreateSelect(b_.CreateAnd(is_zero(x), is_zero(y)), complex_of(one, zero), power);
}

Value* ElementEmitter::complex_sign(Value* z, Value* re, Value* im) {
  auto k = [&](double c) { return llvm::ConstantFP::get(re->getType(), c); };
  Value* size = call_math("hypot", re, im);
  Value* none = b_.CreateFCmpOEQ(size, k(0));
  Value* unit = b_.CreateFDiv(z, complex_of(size, size));
  return b_.CreateSelect(none, llvm::Constant::getNullValue(z->getType()), unit);
}

Value* ElementEmitter::complex_expm1(Value* z, Value* re, Value* im) {
  auto k = [&](double c) { return llvm::ConstantFP::get(re->getType(), c); };
  // e^x cos y - 1 without taking what is nearly one from one: (e^x - 1) cos y - 2 sin²(y / 2)
  Value *more = b_.CreateFMul(call_math("expm1", re), real_function("cos", im)),
        *half = real_function("sin", b_.CreateFMul(k(0.5), im));
  return complex_of(b_.CreateFSub(more, b_.CreateFMul(k(2), b_.CreateFMul(half, half))),
                    imaginary_part(complex_exponential(z)));
}

Value* ElementEmitter::complex_log1p(Value* z, Value* re, Value* im) {
  auto k = [&](double c) { return llvm::ConstantFP::get(re->getType(), c); };
  Value* sum = b_.CreateFAdd(z, complex_of(k(1), k(0)));
  // Near zero the square of the size exceeds one by x (2 + x) + y².
  Value* excess = b_.CreateFAdd(b_.CreateFMul(re, b_.CreateFAdd(k(2), re)), b_.CreateFMul(im, im));
  Value* near = b_.CreateAnd(b_.CreateFCmpOLT(intrinsic(llvm::Intrinsic::fabs, re), k(0.5)),
                             b_.CreateFCmpOLT(intrinsic(llvm::Intrinsic::fabs, im), k(0.5)));
  Value* log = complex_logarithm(sum);
  Value* size = b_.CreateFMul(k(0.5), call_math("log1p", excess));
  return complex_of(b_.CreateSelect(near, size, real_part(log)), imaginary_part(log));
}

Value* ElementEmitter::complex_atan2(Value* y, Value* x, Value* re, Value* im) {
  // -i log((x + iy) / sqrt(x² + y²)), the first operand being y
  Value* i_times = complex_of(b_.CreateFNeg(im), re);
  Value* length = complex_root(b_.CreateFAdd(complex_product(x, x), complex_product(y, y)));
  Value* log = complex_logarithm(complex_quotient(b_.CreateFAdd(x, i_times), length));
  return complex_of(imaginary_part(log), b_.CreateFNeg(real_part(log)));
}

Value* ElementEmitter::complex(InstId inst, const std::vector<Value*>& v) {
  Opcode op = m_.op(inst);
  const Shape &out = m_.shape(inst), &in = m_.shape(m_.operand(inst, 0));
  if (!is_complex(in.type)) {
    ElementType t = component_type(out.type);
    if (op == Opcode::Complex) return complex_of(v[0], v[1]);
    if (op == Opcode::Convert) return complex_of(convert(in.type, t, v[0]), llvm::ConstantFP::get(register_type(t), 0));
    if (op == Opcode::Select) return b_.CreateSelect(v[0], v[1], v[2]);
    refuse(inst, "of complex numbers");
  }
  llvm::Type* type = register_type(component_type(in.type));
  auto k = [&](double c) { return llvm::ConstantFP::get(type, c); };
  Value *re = real_part(v[0]), *im = imaginary_part(v[0]);
  Value* one = complex_of(k(1), k(0));
  auto function = [&](const char* name, Value* x) { return real_function(name, x); };
  // A product with a zero that stays one, whatever the other factor: sin(0) cosh(inf).
  auto product = [&](Value* p, Value* q) { return b_.CreateSelect(b_.CreateFCmpOEQ(p, k(0)), p, b_.CreateFMul(p, q)); };
  switch (op) {
    case Opcode::Real:
      return re;
    case Opcode::Imag:
      return im;
    case Opcode::Add:
      return b_.CreateFAdd(v[0], v[1]);
    case Opcode::Subtract:
      return b_.CreateFSub(v[0], v[1]);
    case Opcode::Negate:
      return b_.CreateFNeg(v[0]);
    case Opcode::Compare:
      return compare(inst, in.type, v[0], v[1]);
    case Opcode::Multiply:
      return complex_product(v[0], v[1]);
    case Opcode::Divide:
      return complex_quotient(v[0], v[1]);
    case Opcode::Convert:
      if (!is_complex(out.type)) refuse(inst, "a complex number to a real one");
      return b_.CreateFPCast(v[0], register_type(out.type));
    case Opcode::Abs:
      return call_math("hypot", re, im);
    case Opcode::Sign:
      return complex_sign(v[0], re, im);
    case Opcode::Exp:
      return complex_exponential(v[0]);
    case Opcode::Expm1:
      return complex_expm1(v[0], re, im);
    case Opcode::Log:
      return complex_logarithm(v[0]);
    case Opcode::Log1p:
      return complex_log1p(v[0], re, im);
    case Opcode::Logistic:
      return complex_quotient(one, b_.CreateFAdd(one, complex_exponential(b_.CreateFNeg(v[0]))));
    case Opcode::Sqrt:
      return complex_root(v[0]);
    case Opcode::Rsqrt:
      return complex_quotient(one, complex_root(v[0]));
    case Opcode::Sine:
      return complex_of(product(function("sin", re), call_math("cosh", im)),
                        product(call_math("sinh", im), function("cos", re)));
    case Opcode::Cosine:
      return complex_of(product(function("cos", re), call_math("cosh", im)),
                        b_.CreateFNeg(product(call_math("sinh", im), function("sin", re))));
    case Opcode::Tanh:
      return complex_tanh(v[0]);
    case Opcode::Tan: {
      // -i tanh(i z)
      Value* t = complex_tanh(complex_of(b_.CreateFNeg(im), re));
      return complex_of(imaginary_part(t), b_.CreateFNeg(real_part(t)));
    }
    case Opcode::Power:
      return complex_power(v[0], v[1]);
    case Opcode::Atan2:
      return complex_atan2(v[0], v[1], re, im);
    default:
      refuse(inst, "of complex numbers");
  }
}

}  // namespace hlo
