#!/usr/bin/env python3
"""Writes small modules for triton-softmax-rewriter: softmax, norms, single diamonds and what just misses them, and
diamonds by chance:

  probes_softmax.py DIR [--random=N]

Then as for probes.py (`oracle_compile.py`, `agreement.py --protos --pass triton-softmax-rewriter`)."""
import math
import random
import sys

import probes_rules
from probes_rules import case

probes_rules.CASES.clear()
LOWEST = {"f32": "-inf", "f64": "-inf", "bf16": "-inf", "f16": "-inf", "s32": "-2147483648", "s8": "-128", "s16": "-32768", "s64": "-9223372036854775808",
          "u8": "0", "u16": "0", "u32": "0", "u64": "0", "f8e4m3fn": "-448", "f8e5m2": "-inf"}


def dims(shape):
    return ",".join(map(str, shape))


def kept(shape):
    return ",".join(str(d) for d in range(len(shape) - 1))


def rows(name, of, kind, t, shape):
    """reduce over the last dimension and spread it again: NAME_r, NAME_b"""
    start = LOWEST[t] if kind == "max" else "0"
    return (f"{name}_z = {t}[] constant({start})\n{name}_r = {t}[{dims(shape[:-1])}] reduce({of}, {name}_z), dimensions={{{len(shape) - 1}}}, to_apply={kind}.{t}\n"
            f"{name}_b = {t}[{dims(shape)}] broadcast({name}_r), dimensions={{{kept(shape)}}}\n")


def spread(name, value, t, shape):
    return f"{name}_k = {t}[] constant({value})\n{name} = {t}[{dims(shape)}] broadcast({name}_k), dimensions={{}}\n"


def softmax(of, t, shape, p=""):
    full = f"{t}[{dims(shape)}]"
    return (rows(p + "m", of, "max", t, shape) + f"{p}s = {full} subtract({of}, {p}m_b)\n{p}e = {full} exponential({p}s)\n" + rows(p + "a", p + "e", "add", t, shape)
            + f"{p}d = {full} divide({p}e, {p}a_b)\n")


SHAPES = [(4, 8), (128, 512), (8, 128, 128), (32, 12, 64, 64), (1, 1000), (3, 7, 77), (16384, 16), (2, 32768), (1, 100000), (7,), (4096,), (1024, 1024), (2, 3, 5, 1000), (64, 4096), (5, 1, 33)]
for shape in SHAPES:
    for t in ("f32", "bf16", "f16") if shape in SHAPES[1:4] else ("f32",):
        case(f"softmax_{t}_{'x'.join(map(str, shape))}", f"x:{t}[{dims(shape)}]", softmax("x", t, shape))
for t in ("f64", "s32", "u32", "s8", "u8", "s16", "u16", "s64", "u64", "f8e4m3fn", "f8e5m2"):
    shape = (128, 512)
    case(f"max_{t}", f"x:{t}[128,512]", rows("m", "x", "max", t, shape) + f"s = {t}[128,512] subtract(x, m_b)")
    case(f"sum_{t}", f"x:{t}[128,512]", rows("m", "x", "add", t, shape) + f"s = {t}[128,512] multiply(x, m_b)")
case("any_pred", "x:pred[128,512]", "z = pred[] constant(false)\nm = pred[128] reduce(x, z), dimensions={1}, to_apply=or.pred\nb = pred[128,512] broadcast(m), dimensions={0}\nr = pred[128,512] xor(x, b)")

for shape in [(64, 768), (8, 64, 1024), (2, 512, 2560), (128, 100)]:
    for t in ("f32", "bf16"):
        full, row, n = f"{t}[{dims(shape)}]", f"{t}[{dims(shape[:-1])}]", shape[-1]
        tail = "x".join(map(str, shape)) + "_" + t
        case(f"rms_{tail}", f"x:{full} w:{t}[{n}]", f"q = {full} multiply(x, x)\n" + rows("a", "q", "add", t, shape) + spread("n", 1 / n, t, shape[:-1]) + spread("c", 1e-5, t, shape[:-1])
             + f"u = {row} multiply(a_r, n)\nv = {row} add(u, c)\ni = {row} rsqrt(v)\ng = {full} broadcast(i), dimensions={{{kept(shape)}}}\ny = {full} multiply(x, g)\nh = {full} broadcast(w), dimensions={{{len(shape) - 1}}}\nr = {full} multiply(y, h)")
        case(f"layer_{tail}", f"x:{full}", rows("a", "x", "add", t, shape) + spread("n", 1 / n, t, shape[:-1]) + f"u = {row} multiply(a_r, n)\ng = {full} broadcast(u), dimensions={{{kept(shape)}}}\ny = {full} subtract(x, g)\nq = {full} multiply(y, y)\n"
             + rows("b", "q", "add", t, shape) + spread("c", 1e-5, t, shape[:-1]) + f"v = {row} add(b_r, c)\ni = {row} rsqrt(v)\nh = {full} broadcast(i), dimensions={{{kept(shape)}}}\nr = {full} multiply(y, h)")
        case(f"mixed_{tail}", f"x:bf16[{dims(shape)}]", f"f = f32[{dims(shape)}] convert(x)\n" + softmax("f", "f32", shape) + f"r = bf16[{dims(shape)}] convert(d)")
        case(f"masked_{tail}", f"x:{full} p:pred[{dims(shape)}]", spread("k", -1e9, t, shape) + f"y = {full} select(p, x, k)\n" + softmax("y", t, shape))
        case(f"scaled_{tail}", f"x:{full}", spread("k", 0.125, t, shape) + f"y = {full} multiply(x, k)\nn = {full} tanh(y)\n" + rows("m", "n", "max", t, shape) + f"r = {full} subtract(n, m_b)")
        case(f"chain_{tail}", f"x:{full}", spread("k", 0.125, t, shape) + f"y = {full} exponential(x)\nn = {full} multiply(y, k)\n" + rows("m", "n", "max", t, shape) + f"r = {full} subtract(y, m_b)")
        case(f"sum_of_narrow_{tail}", f"x:bf16[{dims(shape)}]", f"f = f32[{dims(shape)}] convert(x)\n" + rows("m", "f", "add", "f32", shape) + f"c = bf16[{dims(shape[:-1])}] convert(m_r)\nb = bf16[{dims(shape)}] broadcast(c), dimensions={{{kept(shape)}}}\nr = bf16[{dims(shape)}] divide(x, b)")

S = (128, 512)
X = "x:f32[128,512]"
M = rows("m", "x", "max", "f32", S)
case("left", X, M + "r = f32[128,512] subtract(m_b, x)")
case("left_commuted", X, M + "r = f32[128,512] multiply(m_b, x)")
case("used_reduce", X, M + "s = f32[128,512] subtract(x, m_b)\nr = (f32[128,512], f32[128]) tuple(s, m_r)")
case("used_broadcast", X, M + "s = f32[128,512] subtract(x, m_b)\nr = (f32[128,512], f32[128,512]) tuple(s, m_b)")
case("columns", X, "z = f32[] constant(0)\na = f32[512] reduce(x, z), dimensions={0}, to_apply=add.f32\nb = f32[128,512] broadcast(a), dimensions={1}\nr = f32[128,512] divide(x, b)")
case("two_dimensions", "x:f32[16,128,512]", "z = f32[] constant(0)\na = f32[16] reduce(x, z), dimensions={1,2}, to_apply=add.f32\nb = f32[16,128,512] broadcast(a), dimensions={0}\nr = f32[16,128,512] divide(x, b)")
case("middle", "x:f32[16,128,512]", "z = f32[] constant(0)\na = f32[16,512] reduce(x, z), dimensions={1}, to_apply=add.f32\nb = f32[16,128,512] broadcast(a), dimensions={0,2}\nr = f32[16,128,512] divide(x, b)")
case("square", "x:f32[256,256]", "z = f32[] constant(0)\na = f32[256] reduce(x, z), dimensions={1}, to_apply=add.f32\nb = f32[256,256] broadcast(a), dimensions={1}\nr = f32[256,256] divide(x, b)")
case("other_producer", X + " y:f32[128,512]", M + "r = f32[128,512] subtract(y, m_b)")
case("start_parameter", X + " z:f32[]", "a = f32[128] reduce(x, z), dimensions={1}, to_apply=add.f32\nb = f32[128,512] broadcast(a), dimensions={0}\nr = f32[128,512] divide(x, b)")
case("start_other", X, "z = f32[] constant(3)\na = f32[128] reduce(x, z), dimensions={1}, to_apply=add.f32\nb = f32[128,512] broadcast(a), dimensions={0}\nr = f32[128,512] divide(x, b)")
case("parameter_spread", X + " k:f32[]", M + "e = f32[128,512] exponential(x)\nkb = f32[128,512] broadcast(k), dimensions={}\ny = f32[128,512] multiply(e, kb)\nr = f32[128,512] subtract(y, m_b)")
case("row_parameter", X + " k:f32[512]", "kb = f32[128,512] broadcast(k), dimensions={1}\ny = f32[128,512] multiply(x, kb)\n" + rows("n", "y", "max", "f32", S) + "r = f32[128,512] subtract(x, n_b)")
case("row_parameter_after", X + " k:f32[128]", M.replace("m_b = f32[128,512] broadcast(m_r)", "w = f32[128] multiply(m_r, k)\nm_b = f32[128,512] broadcast(w)") + "r = f32[128,512] subtract(x, m_b)")
case("row_parameter_between", X + " k:f32[512]", M + "kb = f32[128,512] broadcast(k), dimensions={1}\ny = f32[128,512] multiply(m_b, kb)\nr = f32[128,512] subtract(x, y)")
case("between", X, M + "y = f32[128,512] exponential(m_b)\nw = f32[128,512] negate(y)\nr = f32[128,512] multiply(x, w)")
case("chain_left", X, M + "y = f32[128,512] exponential(x)\nw = f32[128,512] cosine(y)\nr = f32[128,512] multiply(w, m_b)")
case("chain_left_used", X, M + "y = f32[128,512] exponential(x)\nw = f32[128,512] cosine(y)\ns = f32[128,512] multiply(w, m_b)\nr = (f32[128,512], f32[128,512]) tuple(s, w)")
case("remainder", X, M + "r = f32[128,512] remainder(x, m_b)")
case("compare", X, M + "r = pred[128,512] compare(x, m_b), direction=EQ")
case("power", X, M + "r = f32[128,512] power(x, m_b)")
case("minimum", X, "z = f32[] constant(inf)\na = f32[128] reduce(x, z), dimensions={1}, to_apply=min.f32\nb = f32[128,512] broadcast(a), dimensions={0}\nr = f32[128,512] subtract(x, b)")
case("product", X, "z = f32[] constant(1)\na = f32[128] reduce(x, z), dimensions={1}, to_apply=mul.f32\nb = f32[128,512] broadcast(a), dimensions={0}\nr = f32[128,512] subtract(x, b)")
case("bf16_divide", "x:bf16[128,512]", rows("m", "x", "add", "bf16", S) + "r = bf16[128,512] divide(x, m_b)")
case("f16_divide", "x:f16[128,512]", rows("m", "x", "add", "f16", S) + "r = f16[128,512] divide(x, m_b)")
case("f16_max", "x:f16[128,512]", rows("m", "x", "max", "f16", S) + "r = f16[128,512] subtract(x, m_b)")
case("reshaped", X, "y = f32[4,32,512] reshape(x)\n" + rows("m", "y", "max", "f32", (4, 32, 512)) + "r = f32[4,32,512] subtract(y, m_b)")
case("reshaped_between", X, "y = f32[4,32,512] reshape(x)\n" + rows("m", "y", "max", "f32", (4, 32, 512)) + "c = f32[128,512] reshape(m_b)\nr = f32[128,512] subtract(x, c)")
case("reshaped_rows", X, M.replace("m_b = f32[128,512] broadcast(m_r), dimensions={0}", "q = f32[4,32] reshape(m_r)\nm_b = f32[4,32,512] broadcast(q), dimensions={0,1}") + "y = f32[4,32,512] reshape(x)\nr = f32[4,32,512] subtract(y, m_b)")
case("reshaped_split", X, "y = f32[128,16,32] reshape(x)\n" + rows("m", "y", "max", "f32", (128, 16, 32)) + "c = f32[128,512] reshape(m_b)\nr = f32[128,512] subtract(x, c)")
case("reshaped_merged", "x:f32[128,16,32]", "y = f32[128,512] reshape(x)\n" + M.replace("reduce(x", "reduce(y").replace("m_b = f32[128,512] broadcast(m_r), dimensions={0}", "m_b = f32[128,16,32] broadcast(m_r), dimensions={0}") + "r = f32[128,16,32] subtract(x, m_b)")
case("transposed", "x:f32[512,128]", "y = f32[128,512] transpose(x), dimensions={1,0}\n" + M.replace("reduce(x", "reduce(y") + "r = f32[128,512] subtract(y, m_b)")
case("loop", X, """bo {
  s = (s32[], f32[128,512]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  y = f32[128,512] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  z = f32[] constant(-inf)
  m = f32[128] reduce(y, z), dimensions={1}, to_apply=max.f32
  b = f32[128,512] broadcast(m), dimensions={0}
  d = f32[128,512] subtract(y, b)
  ROOT t = (s32[], f32[128,512]) tuple(n, d)
}

co {
  s = (s32[], f32[128,512]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  l = s32[] constant(9)
  ROOT r = pred[] compare(i, l), direction=LT
}

i = s32[] constant(0)
t = (s32[], f32[128,512]) tuple(i, x)
w = (s32[], f32[128,512]) while(t), condition=co, body=bo
g = f32[128,512] get-tuple-element(w), index=1
z = f32[] constant(0)
a = f32[128] reduce(g, z), dimensions={1}, to_apply=add.f32
b = f32[128,512] broadcast(a), dimensions={0}
r = f32[128,512] divide(g, b)""")
case("two", X + " y:f32[64,4096]", softmax("x", "f32", S) + softmax("y", "f32", (64, 4096), "p") + "r = (f32[128,512], f32[64,4096]) tuple(d, pd)")
case("fast_and_slow", X + " y:f32[4,100000]", softmax("x", "f32", S) + softmax("y", "f32", (4, 100000), "p") + "r = (f32[128,512], f32[4,100000]) tuple(d, pd)")
case("slow_and_fast", X + " y:f32[4,100000]", softmax("y", "f32", (4, 100000), "p") + softmax("x", "f32", S) + "r = (f32[128,512], f32[4,100000]) tuple(d, pd)")
case("three_in_a_row", X, softmax("x", "f32", S) + rows("q", "d", "max", "f32", S) + "r = f32[128,512] subtract(d, q_b)")
case("product_before", "x:f32[128,64] y:f32[64,512]", "p = f32[128,512] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n" + softmax("p", "f32", S))
case("of_batch", "x:f32[8,16,16,64]", "z = f32[] constant(0)\na = f32[64] reduce(x, z), dimensions={0,1,2}, to_apply=add.f32\nb = f32[8,16,16,64] broadcast(a), dimensions={3}\nr = f32[8,16,16,64] subtract(x, b)")
case("iota", "x:f32[128,512]", "i = f32[128,512] iota(), iota_dimension=1\n" + M.replace("reduce(x", "reduce(i") + "s = f32[128,512] subtract(i, m_b)\nr = f32[128,512] add(x, s)")
case("argmax_like", "x:s32[128,512]", rows("m", "x", "max", "s32", S) + "r = pred[128,512] compare(x, m_b), direction=EQ")


# Each operation on the way to the sum: where Triton has it not, the diamond does not close.
FLOATS, INTS = ("f32", "bf16", "f16", "f64"), ("s32", "s8", "s64")
for ops, types, form in [
        ("sign is-finite round-nearest-afz round-nearest-even log-plus-one exponential-minus-one tan erf ceil cosine sine cbrt sqrt floor abs negate", FLOATS, "{op}(x)"),
        ("sign not popcnt count-leading-zeros abs negate", INTS, "{op}(x)"),
        ("atan2 power remainder divide minimum", FLOATS, "{op}(x, k)"),
        ("and or xor shift-left shift-right-logical shift-right-arithmetic divide remainder power minimum", INTS, "{op}(x, k)")]:
    for op in ops.split():
        for t in types:
            if op == "is-finite":
                how = f"p = pred[128,512] is-finite(x)\nn = {t}[128,512] convert(p)"
            else:
                how = f"n = {t}[128,512] {form.format(op=op)}"
            case(f"op_{op}_{t}", f"x:{t}[128,512]", spread("k", 3, t, S) + how + "\n" + rows("m", "n", "max", t, S) + f"r = {t}[128,512] subtract(x, m_b)")
for a in ("f32", "bf16", "f16", "f64", "s32", "s8", "s64", "u8", "u32", "pred", "f8e4m3fn", "f8e5m2", "s4"):
    for b in ("f32", "bf16", "s32"):
        if a != b:
            case(f"op_convert_{a}_{b}", f"x:{a}[128,512]", f"n = {b}[128,512] convert(x)\n" + rows("m", "n", "max", b, S) + f"c = {b}[128,512] convert(x)\nr = {b}[128,512] subtract(n, m_b)"
                 if b != "s32" else f"y = {b}[128,512] convert(x)\n" + rows("m", "y", "add", b, S) + f"c = {a if a != 'pred' else 's8'}[128] convert(m_r)\nd = {b}[128] convert(c)\ne = {b}[128,512] broadcast(d), dimensions={{0}}\nr = {b}[128,512] add(y, e)")
    if a in FLOATS:
        case(f"op_clamp_{a}", f"x:{a}[128,512]", spread("k", 3, a, S) + spread("l", 1, a, S) + f"n = {a}[128,512] clamp(l, x, k)\n" + rows("m", "n", "max", a, S) + f"r = {a}[128,512] subtract(n, m_b)")


UNARY = ["exponential", "tanh", "negate", "rsqrt", "abs", "cosine", "log", "sqrt", "floor", "convert", "logistic", "sign", "round-nearest-even", "is-finite", "cbrt", "reduce-precision"]


def by_chance(n):
    rng = random.Random(n)
    t = rng.choice(["f32", "f32", "bf16", "f16", "f64", "s32"])
    shape = tuple(rng.choice([1, 2, 3, 7, 8, 16, 31, 64, 100, 128, 256, 512, 768, 1000, 1024, 2048, 4096, 5000]) for _ in range(rng.choice([1, 2, 2, 2, 3, 3, 4])))
    while len(shape) > 1 and math.prod(shape) > 1 << 26:
        shape = shape[1:]
    if shape[-1] == 1:
        shape = shape[:-1] + (50,)
    full = f"{t}[{dims(shape)}]"
    lines, count, params = [], 0, [f"x:{full}"]

    def chain(of, shape, most):
        nonlocal count
        for _ in range(rng.randrange(most + 1)):
            count += 1
            name, array = f"c{count}", f"{t}[{dims(shape)}]"
            what = rng.random()
            if what < 0.5:
                op = rng.choice(UNARY if t in ("f32", "bf16", "f16", "f64") else ["negate", "abs", "not"])
                more = ", exponent_bits=5, mantissa_bits=7" if op == "reduce-precision" else ""
                if op in ("is-finite", "convert"):
                    op = "tanh" if t[0] != "s" else "abs"
                lines.append(f"{name} = {array} {op}({of}){more}")
            elif what < 0.85:
                if rng.random() < 0.3:
                    params.append(f"p{count}:{t}[]")
                    lines.append(f"{name}_k = {array} broadcast(p{count}), dimensions={{}}")
                elif shape and rng.random() < 0.3:
                    d = rng.randrange(len(shape))
                    params.append(f"p{count}:{t}[{shape[d]}]")
                    lines.append(f"{name}_k = {array} broadcast(p{count}), dimensions={{{d}}}")
                else:
                    lines.append(spread(f"{name}_k", 3 if t[0] == "s" else rng.choice([0.125, 2.5]), t, shape).strip().replace(f"{name}_k_k", f"{name}_s"))
                a, b = (of, f"{name}_k") if rng.random() < 0.6 else (f"{name}_k", of)
                lines.append(f"{name} = {array} {rng.choice(['add', 'multiply', 'subtract', 'maximum'])}({a}, {b})")
            else:
                lines.append(f"{name} = {array} {rng.choice(['multiply', 'add'])}({of}, {of})")
            of = name
        return of

    value = chain("x", shape, 2)
    for k in range(rng.choice([1, 1, 2, 2, 3])):
        row = chain(value, shape, 2)
        kind = rng.choice(["add", "max"])
        lines += [f"z{k} = {t}[] constant({LOWEST[t] if kind == 'max' else 0})", f"r{k} = {t}[{dims(shape[:-1])}] reduce({row}, z{k}), dimensions={{{len(shape) - 1}}}, to_apply={kind}.{t}"]
        middle = chain(f"r{k}", shape[:-1], 2)
        lines.append(f"b{k} = {full} broadcast({middle}), dimensions={{{kept(shape)}}}")
        right = chain(f"b{k}", shape, 1)
        left = chain(value, shape, 1)
        lines.append(f"o{k} = {full} {rng.choice(['subtract', 'divide', 'multiply', 'add', 'subtract'])}({left}, {right})")
        value = chain(f"o{k}", shape, 1)
    if value == f"o{k}" and rng.random() < 0.3:
        lines.append(f"last = {full} negate({value})")
    case(f"chance_{n}", " ".join(params), "\n".join(lines))


arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
for n in range(next((int(a.split("=")[1]) for a in sys.argv if a.startswith("--random=")), 0)):
    by_chance(n)
sys.argv = sys.argv[:1] + arguments
probes_rules.main()
