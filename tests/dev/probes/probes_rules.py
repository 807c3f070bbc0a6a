#!/usr/bin/env python3
"""Writes a small module for each rule of algsimp, one expression a module, with the near misses of its conditions:

  probes_rules.py DIR

Then as for probes.py: `xla.py compile FILE --backend gpu --dump D --large-constants`, and `agreement.py … D…`.
A case is `name | parameters | body`: parameters as `x:f32[4,8]`, the body's last line is the root; `add`, `max`, `min`,
`mul`, `and`, `or` name reducers of the type that follows the dot (`add.f32`)."""
import pathlib
import re
import sys

CASES = []


def case(name, parameters, body):
    CASES.append((name, parameters, body))


def each(types, name, parameters, body):
    for t in types:
        case(f"{name}_{t}", parameters.replace("TT", t), body.replace("TT", t))


REDUCERS = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}


def text_of(name, parameters, body):
    functions = ""
    for op, t in sorted(set(re.findall(r"\b(add|mul|max|min|and|or)\.(\w+)", body))):
        functions += (
            f"{op}.{t} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n"
            f"  ROOT c = {t}[] {REDUCERS[op]}(a, b)\n}}\n\n"
        )
    if "\n\n" in body:  # computations of the case's own in front
        own, body = body.rsplit("\n\n", 1)
        functions += own.strip() + "\n\n"
    lines = []
    of_tuples = re.sub(r"\([^)]*\)", lambda m: m[0].replace(" ", ""), parameters)
    for n, p in enumerate(re.findall(r"(\w+):(\S+)", of_tuples)):
        lines.append(f"  {p[0]} = {p[1]} parameter({n})")
    body_lines = [l.strip() for l in body.strip().split("\n") if l.strip()]
    body_lines[-1] = "ROOT " + body_lines[-1]
    lines += ["  " + l for l in body_lines]
    return f"HloModule {name}\n\n{functions}ENTRY main {{\n" + "\n".join(lines) + "\n}\n"


# --- what computes element by element ---

F, I = ["f32", "bf16", "f64"], ["s32", "u32", "s8", "u8", "s64"]
for op, value in [("add", 0), ("subtract", 0), ("multiply", 1), ("multiply", 0), ("divide", 1), ("power", 0), ("power", 1),
                  ("power", 2), ("power", 3)]:
    each(["f32", "s32"] if op != "power" else ["f32", "f64"], f"{op}_{value}_right", "x:TT[4,8]",
         f"k = TT[] constant({value})\nb = TT[4,8] broadcast(k), dimensions={{}}\nr = TT[4,8] {op}(x, b)")
    if op != "power":
        each(["f32", "s32"], f"{op}_{value}_left", "x:TT[4,8]",
             f"k = TT[] constant({value})\nb = TT[4,8] broadcast(k), dimensions={{}}\nr = TT[4,8] {op}(b, x)")
each(["f32", "f64", "f16"], "power_minus_one", "x:TT[4]",
     "k = TT[] constant(-1)\nb = TT[4] broadcast(k), dimensions={}\nr = TT[4] power(x, b)")
each(["f32", "f64"], "power_half_exp", "x:TT[4]",
     "e = TT[4] exponential(x)\nk = TT[] constant(0.5)\nb = TT[4] broadcast(k), dimensions={}\nr = TT[4] power(e, b)")
each(["f32", "f64"], "power_half_abs", "x:TT[4]",
     "e = TT[4] abs(x)\nk = TT[] constant(0.5)\nb = TT[4] broadcast(k), dimensions={}\nr = TT[4] power(e, b)")
case("power_half_plain", "x:f32[4]", "k = f32[] constant(0.5)\nb = f32[4] broadcast(k), dimensions={}\nr = f32[4] power(x, b)")
case("power_of_exp", "x:f32[4] y:f32[4]", "e = f32[4] exponential(x)\nr = f32[4] power(e, y)")
case("power_complex_3", "x:c64[4]", "k = c64[] constant((3,0))\nb = c64[4] broadcast(k), dimensions={}\nr = c64[4] power(x, b)")
each(["f32", "s32"], "add_constants", "x:TT[4]",
     "k = TT[4] constant({1,2,3,4})\nm = TT[4] constant({5,6,7,9})\na = TT[4] add(x, k)\nr = TT[4] add(a, m)")
each(["f32", "s32"], "add_constants_spread", "x:TT[4]",
     "k = TT[] constant(3)\nm = TT[] constant(5)\nkb = TT[4] broadcast(k), dimensions={}\nmb = TT[4] broadcast(m), dimensions={}\n"
     "a = TT[4] add(x, kb)\nr = TT[4] add(a, mb)")
each(["f32", "s32"], "add_constants_left", "x:TT[4]",
     "k = TT[] constant(3)\nm = TT[] constant(5)\nkb = TT[4] broadcast(k), dimensions={}\nmb = TT[4] broadcast(m), dimensions={}\n"
     "a = TT[4] add(kb, x)\nr = TT[4] add(mb, a)")
each(["f32", "s32"], "add_sub_constants", "x:TT[4]",
     "k = TT[] constant(3)\nm = TT[] constant(5)\nkb = TT[4] broadcast(k), dimensions={}\nmb = TT[4] broadcast(m), dimensions={}\n"
     "a = TT[4] subtract(kb, x)\nr = TT[4] add(a, mb)")
each(["f32", "s32"], "sub_constant_any_rank", "x:TT[2,4]",
     "k = TT[4] constant({1,2,3,4})\nkb = TT[2,4] broadcast(k), dimensions={1}\nr = TT[2,4] subtract(x, kb)")
each(["f32", "s32"], "x_plus_y_minus_x", "x:TT[4] y:TT[4]", "d = TT[4] subtract(y, x)\nr = TT[4] add(x, d)")
each(["f32", "s32"], "y_minus_x_plus_x", "x:TT[4] y:TT[4]", "d = TT[4] subtract(y, x)\nr = TT[4] add(d, x)")
each(["f32", "s32"], "x_minus_x", "x:TT[4]", "r = TT[4] subtract(x, x)")
each(["f32", "s32"], "x_minus_x_minus_y", "x:TT[4] y:TT[4]", "d = TT[4] subtract(x, y)\nr = TT[4] subtract(x, d)")
each(["f32", "s32"], "x_minus_x_plus_y", "x:TT[4] y:TT[4]", "d = TT[4] add(y, x)\nr = TT[4] subtract(x, d)")
each(["f32", "s32"], "x_plus_y_then_minus", "x:TT[4] y:TT[4]", "d = TT[4] add(y, x)\nr = TT[4] subtract(d, x)")
each(["s32"], "x_minus_y_then_minus_x", "x:TT[4] y:TT[4]", "d = TT[4] subtract(x, y)\nr = TT[4] subtract(d, x)")
for swap in ("A, u", "u, A"):
    for base, ind in (("z", "const"), ("z", "var")):
        index = "i = s32[] constant(2)" if ind == "const" else "i = s32[] parameter(2)"
        case(f"add_dus_{ind}_{swap[0]}", "A:f32[8,8] v:f32[2,8]",
             f"k = f32[] constant(0)\nz = f32[8,8] broadcast(k), dimensions={{}}\n{index}\nj = s32[] constant(0)\n"
             f"u = f32[8,8] dynamic-update-slice(z, v, i, j)\nr = f32[8,8] add({swap})")
for t in ("f32", "s32"):
    for common in ("y", "x"):
        for value in ("2", "3"):
            case(f"distribute_{t}_{common}_{value}", f"A:{t}[4] B:{t}[4]",
                 f"k = {t}[] constant({value})\nC = {t}[4] broadcast(k), dimensions={{}}\n"
                 + (f"l = {t}[4] multiply(A, C)\n" if common == "y" else f"l = {t}[4] multiply(C, A)\n")
                 + f"m = {t}[4] multiply(B, C)\nr = {t}[4] add(l, m)")
    case(f"distribute_param_{t}", f"A:{t}[4] B:{t}[4] C:{t}[4]",
         f"l = {t}[4] multiply(A, C)\nm = {t}[4] multiply(C, B)\nr = {t}[4] add(l, m)")
    case(f"distribute_sub_{t}", f"A:{t}[4] B:{t}[4] C:{t}[4]",
         f"l = {t}[4] multiply(A, C)\nm = {t}[4] multiply(C, B)\nr = {t}[4] subtract(l, m)")
each(["f32", "s32"], "neg_times_neg", "x:TT[4] y:TT[4]", "a = TT[4] negate(x)\nb = TT[4] negate(y)\nr = TT[4] multiply(a, b)")
each(["f32", "s32"], "neg_neg", "x:TT[4]", "a = TT[4] negate(x)\nr = TT[4] negate(a)")
each(["pred", "s32"], "not_not", "x:TT[4]", "a = TT[4] not(x)\nr = TT[4] not(a)")
each(["f32", "s32", "f64"], "abs_times_abs", "x:TT[4]", "a = TT[4] abs(x)\nr = TT[4] multiply(a, a)")
each(["f32"], "abs_abs", "x:TT[4]", "a = TT[4] abs(x)\nr = TT[4] abs(a)")
each(["f32"], "abs_exp", "x:TT[4]", "a = TT[4] exponential(x)\nr = TT[4] abs(a)")
each(["f32"], "abs_square", "x:TT[4]", "a = TT[4] multiply(x, x)\nr = TT[4] abs(a)")
each(["f32", "s32", "bf16"], "times_pred", "x:TT[4] p:pred[4]", "a = TT[4] convert(p)\nr = TT[4] multiply(x, a)")
each(["f32"], "times_pred_left", "x:TT[4] p:pred[4]", "a = TT[4] convert(p)\nr = TT[4] multiply(a, x)")
each(["f32", "s32"], "products_of_constants", "x:TT[4] y:TT[4]",
     "k = TT[4] constant({1,2,3,4})\nm = TT[4] constant({5,6,7,9})\na = TT[4] multiply(x, k)\nb = TT[4] multiply(m, y)\nr = TT[4] multiply(a, b)")
each(["f32", "s32"], "product_of_constant", "x:TT[4]",
     "k = TT[4] constant({1,2,3,4})\nm = TT[4] constant({5,6,7,9})\na = TT[4] multiply(k, x)\nr = TT[4] multiply(m, a)")
each(["f32", "s32"], "scale_into_broadcast", "x:TT[4,8] y:TT[8]",
     "k = TT[] constant(3)\nkb = TT[4,8] broadcast(k), dimensions={}\na = TT[4,8] multiply(x, kb)\nb = TT[4,8] broadcast(y), dimensions={1}\n"
     "r = TT[4,8] multiply(a, b)")
each(["f32"], "scale_into_scalar_broadcast", "x:TT[4,8] y:TT[]",
     "k = TT[] constant(3)\nkb = TT[4,8] broadcast(k), dimensions={}\na = TT[4,8] multiply(kb, x)\nb = TT[4,8] broadcast(y), dimensions={}\n"
     "r = TT[4,8] multiply(b, a)")
each(["f32", "s32"], "spread_constants_of_products", "x:TT[4]",
     "k = TT[] constant(3)\nm = TT[] constant(5)\nkb = TT[4] broadcast(k), dimensions={}\nmb = TT[4] broadcast(m), dimensions={}\n"
     "a = TT[4] multiply(x, kb)\nr = TT[4] multiply(a, mb)")
each(["f32"], "exp_times_exp", "x:TT[4] y:TT[4]", "a = TT[4] exponential(x)\nb = TT[4] exponential(y)\nr = TT[4] multiply(a, b)")
each(["f32"], "exp_over_exp", "x:TT[4] y:TT[4]", "a = TT[4] exponential(x)\nb = TT[4] exponential(y)\nr = TT[4] divide(a, b)")
each(["f32"], "over_exp", "x:TT[4] y:TT[4]", "b = TT[4] exponential(y)\nr = TT[4] divide(x, b)")
each(["f32"], "over_power", "x:TT[4] y:TT[4] z:TT[4]", "b = TT[4] power(y, z)\nr = TT[4] divide(x, b)")
each(["f32"], "over_sqrt", "x:TT[4] y:TT[4]", "b = TT[4] sqrt(y)\nr = TT[4] divide(x, b)")
each(["f32"], "over_sqrt_itself", "y:TT[4]", "b = TT[4] sqrt(y)\nr = TT[4] divide(b, b)")
each(["f32"], "over_rsqrt", "x:TT[4] y:TT[4]", "b = TT[4] rsqrt(y)\nr = TT[4] divide(x, b)")
each(["f32"], "sqrt_squared", "x:TT[4]", "e = TT[4] exponential(x)\na = TT[4] sqrt(e)\nr = TT[4] multiply(a, a)")
each(["f32"], "sqrt_squared_unknown", "x:TT[4]", "a = TT[4] sqrt(x)\nr = TT[4] multiply(a, a)")
each(["f32"], "rsqrt_squared", "x:TT[4]", "e = TT[4] exponential(x)\na = TT[4] rsqrt(e)\nr = TT[4] multiply(a, a)")
each(["f32", "c64"], "sqrt_of_square", "x:TT[4]", "a = TT[4] multiply(x, x)\nr = TT[4] sqrt(a)")
each(["f32"], "rsqrt_of_power", "x:TT[4]",
     "e = TT[4] exponential(x)\nk = TT[] constant(-2)\nb = TT[4] broadcast(k), dimensions={}\np = TT[4] power(e, b)\nr = TT[4] rsqrt(p)")
each(["f32"], "rsqrt_of_inverse", "x:TT[4]",
     "e = TT[4] abs(x)\nk = TT[] constant(1)\nb = TT[4] broadcast(k), dimensions={}\np = TT[4] divide(b, e)\nr = TT[4] rsqrt(p)")
each(["f32", "c64"], "log_exp", "x:TT[4]", "a = TT[4] exponential(x)\nr = TT[4] log(a)")
each(["f32", "c64"], "log_power", "x:TT[4] y:TT[4]", "a = TT[4] power(x, y)\nr = TT[4] log(a)")
each(["f32"], "log_sqrt", "x:TT[4]", "a = TT[4] sqrt(x)\nr = TT[4] log(a)")
each(["f32"], "log_rsqrt", "x:TT[4]", "a = TT[4] rsqrt(x)\nr = TT[4] log(a)")
each(["f32"], "log_sqrt_used", "x:TT[4]", "a = TT[4] sqrt(x)\nb = TT[4] log(a)\nr = TT[4] add(a, b)")
each(["f32"], "exp_zero", "x:TT[4]", "k = TT[] constant(0)\nb = TT[4] broadcast(k), dimensions={}\ne = TT[4] exponential(b)\nr = TT[4] add(x, e)")
case("complex_of_parts", "x:c64[4]", "a = f32[4] real(x)\nb = f32[4] imag(x)\nr = c64[4] complex(a, b)")
case("real_of_complex", "x:f32[4] y:f32[4]", "c = c64[4] complex(x, y)\nr = f32[4] real(c)")
case("imag_of_complex", "x:f32[4] y:f32[4]", "c = c64[4] complex(x, y)\nr = f32[4] imag(c)")
case("real_of_real", "x:f32[4]", "r = f32[4] real(x)")
case("imag_of_real", "x:f32[4]", "r = f32[4] imag(x)")
for t, values in (("u32", (1, 2, 8, 6)), ("s32", (1, 2, 8, 6)), ("s8", (4,)), ("u8", (4,)), ("s64", (16,)), ("s32", (-4,))):
    for v in values:
        for op in ("divide", "remainder"):
            case(f"{op}_{t}_{v}".replace("-", "m"), f"x:{t}[4]",
                 f"k = {t}[] constant({v})\nb = {t}[4] broadcast(k), dimensions={{}}\nr = {t}[4] {op}(x, b)")
case("divide_scalar_s32_4", "x:s32[]", "k = s32[] constant(4)\nr = s32[] divide(x, k)")
each(["f32", "bf16", "f64", "f16"], "divide_by_constant", "x:TT[4]",
     "k = TT[] constant(3)\nb = TT[4] broadcast(k), dimensions={}\nr = TT[4] divide(x, b)")
each(["f32"], "divide_by_array", "x:TT[4]", "k = TT[4] constant({1,2,3,4})\nr = TT[4] divide(x, k)")
each(["f32"], "divide_by_array_spread", "x:TT[2,4]",
     "k = TT[4] constant({1,2,3,4})\nb = TT[2,4] broadcast(k), dimensions={1}\nr = TT[2,4] divide(x, b)")
each(["f32"], "divide_quotients", "x:TT[4] y:TT[4] z:TT[4] w:TT[4]", "a = TT[4] divide(x, y)\nb = TT[4] divide(z, w)\nr = TT[4] divide(a, b)")
each(["f32", "s32"], "divide_quotient_left", "x:TT[4] y:TT[4] z:TT[4]", "a = TT[4] divide(x, y)\nr = TT[4] divide(a, z)")
each(["f32"], "divide_quotient_right", "x:TT[4] y:TT[4] z:TT[4]", "a = TT[4] divide(x, y)\nr = TT[4] divide(z, a)")
each(["f32"], "divide_pred_by_spread", "p:pred[4] y:TT[]", "a = TT[4] convert(p)\nb = TT[4] broadcast(y), dimensions={}\nr = TT[4] divide(a, b)")
each(["f32"], "divide_by_spread", "x:TT[4] y:TT[]", "b = TT[4] broadcast(y), dimensions={}\nr = TT[4] divide(x, b)")
for op in ("and", "or"):
    for t, values in (("pred", ("true", "false")), ("s32", (0, -1)), ("u8", (0, 255, 1))):
        for v in values:
            for swap in ("x, b", "b, x"):
                case(f"{op}_{t}_{v}_{swap[0]}".replace("-", "m"), f"x:{t}[4]",
                     f"k = {t}[] constant({v})\nb = {t}[4] broadcast(k), dimensions={{}}\nr = {t}[4] {op}({swap})")
for form in ("v, k", "k, v"):
    for t in ("s32", "u32", "f32"):
        d = "LT" if form[0] == "v" else "GT"
        case(f"and_of_compares_{t}_{form[0]}", f"v:{t}[]",
             f"k = {t}[] constant(5)\nm = {t}[] constant(3)\na = pred[] compare({form}), direction={d}\n"
             f"b = pred[] compare({form.replace('k', 'm')}), direction={d}\nr = pred[] and(a, b)")
case("and_of_compares_array", "v:s32[4]",
     "k = s32[] constant(5)\nm = s32[] constant(3)\nkb = s32[4] broadcast(k), dimensions={}\nmb = s32[4] broadcast(m), dimensions={}\n"
     "a = pred[4] compare(v, kb), direction=LT\nb = pred[4] compare(v, mb), direction=LT\nr = pred[4] and(a, b)")
for t in ("u32", "s32", "f32"):
    for d in ("LT", "GE", "GT", "LE", "EQ", "NE"):
        for swap in ("x, b", "b, x"):
            case(f"compare_zero_{t}_{d}_{swap[0]}", f"x:{t}[4]",
                 f"k = {t}[] constant(0)\nb = {t}[4] broadcast(k), dimensions={{}}\nr = pred[4] compare({swap}), direction={d}")
        case(f"compare_self_{t}_{d}", f"x:{t}[4]", f"r = pred[4] compare(x, x), direction={d}")
for d in ("LT", "GE", "GT", "LE"):
    case(f"compare_exp_{d}", "x:f32[4]",
         f"e = f32[4] exponential(x)\nk = f32[] constant(0)\nb = f32[4] broadcast(k), dimensions={{}}\nr = pred[4] compare(e, b), direction={d}")
    case(f"compare_abs_left_{d}", "x:s32[4]",
         f"e = s32[4] abs(x)\nk = s32[] constant(0)\nb = s32[4] broadcast(k), dimensions={{}}\nr = pred[4] compare(b, e), direction={d}")
    for a, b in (("m", "x"), ("m", "y"), ("x", "m"), ("y", "m")):
        for f in ("maximum", "minimum"):
            for t in ("f32", "s32"):
                case(f"compare_{d}_{f}_{a}{b}_{t}", f"x:{t}[4] y:{t}[4]", f"m = {t}[4] {f}(x, y)\nr = pred[4] compare({a}, {b}), direction={d}")
for d in ("EQ", "NE"):
    for v in ("true", "false"):
        for swap in ("x, b", "b, x"):
            case(f"compare_pred_{d}_{v}_{swap[0]}", "x:pred[4]",
                 f"k = pred[] constant({v})\nb = pred[4] broadcast(k), dimensions={{}}\nr = pred[4] compare({swap}), direction={d}")
case("compare_select_ge", "x:s32[4] y:s32[4]",
     "c = pred[4] compare(x, y), direction=GE\none = s32[] constant(1)\nzero = s32[] constant(0)\no = s32[4] broadcast(one), dimensions={}\n"
     "z = s32[4] broadcast(zero), dimensions={}\ns = s32[4] select(c, o, z)\nr = pred[4] compare(s, z), direction=NE")
for f, values in (("maximum", ("-inf", "0")), ("minimum", ("inf", "0"))):
    for v in values:
        each(["f32", "bf16"], f"{f}_{v}".replace("-", "m"), "x:TT[4]",
             f"k = TT[] constant({v})\nb = TT[4] broadcast(k), dimensions={{}}\nr = TT[4] {f}(x, b)")
for t, lo, hi in (("s32", -2147483648, 2147483647), ("u8", 0, 255), ("s8", -128, 127), ("u32", 0, 4294967295), ("pred", "false", "true")):
    for f, v in (("maximum", lo), ("minimum", hi), ("maximum", hi), ("minimum", lo)):
        case(f"{f}_{t}_{v}".replace("-", "m"), f"x:{t}[4]", f"k = {t}[] constant({v})\nb = {t}[4] broadcast(k), dimensions={{}}\nr = {t}[4] {f}(b, x)")
for f in ("maximum", "minimum"):
    case(f"{f}_self", "x:f32[4]", f"r = f32[4] {f}(x, x)")
    for form in ("i, x", "i, y", "x, i", "y, i"):
        case(f"{f}_twice_{form[0]}{form[3]}", "x:f32[4] y:f32[4]", f"i = f32[4] {f}(x, y)\nr = f32[4] {f}({form})")
    other = "minimum" if f == "maximum" else "maximum"
    for a, b in ((1, 3), (3, 1), (2, 2)):
        for t in ("f32", "s32"):
            for form in ("m, hb", "hb, m"):
                case(f"clamp_of_{f}_{a}_{b}_{t}_{form[0]}", f"x:{t}[4]",
                     f"lo = {t}[] constant({a})\nhi = {t}[] constant({b})\nlb = {t}[4] broadcast(lo), dimensions={{}}\n"
                     f"hb = {t}[4] broadcast(hi), dimensions={{}}\nm = {t}[4] {other}(x, lb)\nr = {t}[4] {f}({form})")
    case(f"clamp_scalars_{f}", "x:f32[]", f"lo = f32[] constant(1)\nhi = f32[] constant(2)\nm = f32[] {other}(x, lo)\nr = f32[] {f}(m, hi)")
    for g in ("cbrt", "erf", "logistic", "tanh", "exponential", "negate"):
        case(f"{f}_of_{g}", "x:f32[4] y:f32[4]", f"a = f32[4] {g}(x)\nb = f32[4] {g}(y)\nr = f32[4] {f}(a, b)")
for form in ("lo, c", "c, lo", "hi, c", "c, hi"):
    for f in ("maximum", "minimum"):
        case(f"{f}_with_clamp_{form[0]}_{form[-1]}", "lo:f32[4] x:f32[4] hi:f32[4]", f"c = f32[4] clamp(lo, x, hi)\nr = f32[4] {f}({form})")
case("clamp_clamp", "lo:f32[] x:f32[4] hi:f32[]", "c = f32[4] clamp(lo, x, hi)\nr = f32[4] clamp(lo, c, hi)")
case("clamp_clamp_other", "lo:f32[] x:f32[4] hi:f32[] h2:f32[]", "c = f32[4] clamp(lo, x, hi)\nr = f32[4] clamp(lo, c, h2)")
each(["s32", "f32", "u32"], "remainder_twice", "x:TT[4] y:TT[4]", "a = TT[4] remainder(x, y)\nr = TT[4] remainder(a, y)")
for v in (3, 4, 5):
    case(f"iota_remainder_{v}", "x:s32[4]", f"i = s32[4] iota(), iota_dimension=0\nk = s32[] constant({v})\nb = s32[4] broadcast(k), dimensions={{}}\nm = s32[4] remainder(i, b)\nr = s32[4] add(m, x)")
    case(f"iota_plus_remainder_{v}", "x:s32[4]", f"i = s32[4] iota(), iota_dimension=0\nk = s32[] constant({v})\nb = s32[4] broadcast(k), dimensions={{}}\na = s32[4] add(i, b)\nm = s32[4] remainder(a, b)\nr = s32[4] add(m, x)")
    case(f"iota2_remainder_{v}", "x:s32[2,4]", f"i = s32[2,4] iota(), iota_dimension=1\nk = s32[] constant({v})\nb = s32[2,4] broadcast(k), dimensions={{}}\nm = s32[2,4] remainder(i, b)\nr = s32[2,4] add(m, x)")
case("iota_plus_remainder_u8", "x:u8[250]", "i = u8[250] iota(), iota_dimension=0\nk = u8[] constant(9)\nb = u8[250] broadcast(k), dimensions={}\na = u8[250] add(i, b)\nm = u8[250] remainder(a, b)\nr = u8[250] add(m, x)")
case("iota_plus_remainder_u8_fits", "x:u8[240]", "i = u8[240] iota(), iota_dimension=0\nk = u8[] constant(9)\nb = u8[240] broadcast(k), dimensions={}\na = u8[240] add(i, b)\nm = u8[240] remainder(a, b)\nr = u8[240] add(m, x)")
each(["f32", "pred"], "select_same", "p:pred[4] x:TT[4]", "r = TT[4] select(p, x, x)")
for v in ("true", "false"):
    case(f"select_const_{v}", "x:f32[4] y:f32[4]", f"k = pred[] constant({v})\nb = pred[4] broadcast(k), dimensions={{}}\nr = f32[4] select(b, x, y)")
    w = "false" if v == "true" else "true"
    case(f"select_to_pred_{v}", "p:pred[4]", f"k = pred[] constant({v})\nb = pred[4] broadcast(k), dimensions={{}}\nm = pred[] constant({w})\nc = pred[4] broadcast(m), dimensions={{}}\nr = pred[4] select(p, b, c)")
    case(f"select_pred_half_{v}", "p:pred[4] q:pred[4]", f"k = pred[] constant({v})\nb = pred[4] broadcast(k), dimensions={{}}\nr = pred[4] select(p, b, q)")
    case(f"select_pred_half2_{v}", "p:pred[4] q:pred[4]", f"k = pred[] constant({v})\nb = pred[4] broadcast(k), dimensions={{}}\nr = pred[4] select(p, q, b)")
case("select_not", "p:pred[4] x:f32[4] y:f32[4]", "n = pred[4] not(p)\nr = f32[4] select(n, x, y)")
for d in ("LT", "GE", "GT", "LE", "EQ", "NE"):
    for t in ("pred", "f32", "s32"):
        for form in ("x, y", "y, x"):
            case(f"select_compare_{d}_{t}_{form[0]}", f"x:{t}[4] y:{t}[4]", f"c = pred[4] compare(x, y), direction={d}\nr = {t}[4] select(c, {form})")
for form in ("xs, d", "d, xs"):
    for p in ("pred[]", "pred[8,4]"):
        case(f"select_dus_{form[0]}_{len(p)}", f"p:{p} xs:f32[8,4] x:f32[1,4] i:s32[]",
             f"z = s32[] constant(0)\nd = f32[8,4] dynamic-update-slice(xs, x, i, z)\nr = f32[8,4] select(p, {form})" if p != "pred[]" else
             f"z = s32[] constant(0)\nd = f32[8,4] dynamic-update-slice(xs, x, i, z)\npb = pred[8,4] broadcast(p), dimensions={{}}\nr = f32[8,4] select(pb, {form})")

# --- conversions ---
for a, b in (("s8", "s32"), ("bf16", "f32"), ("f32", "bf16"), ("s32", "f32"), ("u8", "s16"), ("f32", "f64"), ("pred", "s32"), ("s32", "s8"), ("f16", "f32"),
             ("s16", "f32"), ("u32", "s64"), ("s32", "u32"), ("pred", "f32"), ("f8e4m3fn", "bf16")):
    case(f"convert_back_{a}_{b}", f"x:{a}[4]", f"m = {b}[4] convert(x)\nr = {a}[4] convert(m)")
for op in ("add", "subtract", "multiply", "divide", "remainder", "and"):
    for a, b in (("s8", "s32"), ("u8", "u32"), ("u8", "s32"), ("s16", "s64"), ("s4", "s32")):
        case(f"convert_{op}_{a}_{b}", f"x:{a}[4] y:{a}[4]", f"xx = {b}[4] convert(x)\nyy = {b}[4] convert(y)\no = {b}[4] {op}(xx, yy)\nr = {a}[4] convert(o)")
case("bitcast_convert_chain", "x:f32[4]", "a = s32[4] bitcast-convert(x)\nr = u32[4] bitcast-convert(a)")
case("bitcast_convert_back", "x:f32[4]", "a = s32[4] bitcast-convert(x)\nr = f32[4] bitcast-convert(a)")
case("bitcast_convert_split_back", "x:f32[4]", "a = s16[4,2] bitcast-convert(x)\nr = f32[4] bitcast-convert(a)")
case("bitcast_convert_split", "x:f32[4]", "r = s8[4,4] bitcast-convert(x)")
case("bitcast_convert_join", "x:u8[4,4]", "r = f32[4] bitcast-convert(x)")
case("bitcast_convert_concat", "x:f32[4] y:f32[4]", "a = s32[4] bitcast-convert(x)\nb = s32[4] bitcast-convert(y)\nc = s32[8] concatenate(a, b), dimensions={0}\nr = f32[8] bitcast-convert(c)")
case("bitcast_convert_concat_mixed", "x:f32[4] y:u32[4]", "a = s32[4] bitcast-convert(x)\nb = s32[4] bitcast-convert(y)\nc = s32[8] concatenate(a, b), dimensions={0}\nr = f32[8] bitcast-convert(c)")
for e, m in ((8, 23), (8, 7), (5, 10)):
    case(f"reduce_precision_{e}_{m}", "x:f32[4]", f"r = f32[4] reduce-precision(x), exponent_bits={e}, mantissa_bits={m}")
case("reduce_precision_bf16", "x:bf16[4]", "r = bf16[4] reduce-precision(x), exponent_bits=8, mantissa_bits=7")

# --- constants, iotas, broadcasts ---
each(["f32", "s32", "pred"], "constant_equal", "x:TT[4]", "k = TT[4] constant({1,1,1,1})\nr = TT[4] maximum(x, k)")
each(["s32", "f32", "u8", "s64"], "constant_iota", "x:TT[6]", "k = TT[6] constant({0,1,2,3,4,5})\nr = TT[6] maximum(x, k)")
each(["s32", "f32"], "constant_strided", "x:TT[6]", "k = TT[6] constant({0,3,6,9,12,15})\nr = TT[6] maximum(x, k)")
each(["s32"], "constant_from_one", "x:TT[6]", "k = TT[6] constant({1,2,3,4,5,6})\nr = TT[6] maximum(x, k)")
each(["s32"], "constant_down", "x:TT[4]", "k = TT[4] constant({0,-2,-4,-6})\nr = TT[4] maximum(x, k)")
case("constant_two", "x:s32[2]", "k = s32[2] constant({0,1})\nr = s32[2] maximum(x, k)")
case("constant_rank2", "x:s32[2,2]", "k = s32[2,2] constant({{0,1},{2,3}})\nr = s32[2,2] maximum(x, k)")
case("constant_negative_zero", "x:f32[2]", "k = f32[2] constant({0,-0})\nr = f32[2] maximum(x, k)")
case("constant_nan", "x:f32[2]", "k = f32[2] constant({nan,nan})\nr = f32[2] maximum(x, k)")
case("constant_tuple", "x:s32[2]", "t = (s32[2], f32[]) constant(({4,9}, 2))\na = s32[2] get-tuple-element(t), index=0\nr = s32[2] maximum(x, a)")
case("iota_one", "x:s32[1,4]", "i = s32[1,4] iota(), iota_dimension=0\nr = s32[1,4] maximum(x, i)")
case("broadcast_reshape", "x:f32[4]", "r = f32[1,4] broadcast(x), dimensions={1}")
case("broadcast_transpose", "x:f32[4,8]", "r = f32[8,4] broadcast(x), dimensions={1,0}")
case("broadcast_of_reshape", "x:f32[4]", "a = f32[4,1] reshape(x)\nr = f32[4,1,8] broadcast(a), dimensions={0,1}")
case("broadcast_of_reshape2", "x:f32[4]", "a = f32[1,4] reshape(x)\nr = f32[8,1,4,2] broadcast(a), dimensions={1,2}")
case("broadcast_of_one", "x:f32[4,1]", "r = f32[4,1,8] broadcast(x), dimensions={0,1}")
case("broadcast_of_iota", "x:s32[2,4]", "i = s32[4] iota(), iota_dimension=0\nb = s32[2,4] broadcast(i), dimensions={1}\nr = s32[2,4] maximum(b, x)")
case("broadcast_twice", "x:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nr = f32[3,2,4] broadcast(a), dimensions={1,2}")
for user in ("r = f32[4,2] reshape(b)", "r = f32[2,4] reverse(b), dimensions={0}", "r = f32[4,2] transpose(b), dimensions={1,0}",
             "r = f32[1,2] slice(b), slice={[0:1], [1:3]}", "r = f32[1,4] dynamic-slice(b, i, i), dynamic_slice_sizes={1,4}"):
    op = user.split()[3].split("(")[0]
    case(f"spread_scalar_{op}", "x:f32[] i:s32[]", f"b = f32[2,4] broadcast(x), dimensions={{}}\n{user}")
    case(f"spread_scalar_two_{op}", "x:f32[] i:s32[]", f"b = f32[2,4] broadcast(x), dimensions={{}}\n{user.replace('r =', 'c =')}\nn = f32[2,4] negate(b)\nr = ({user.split()[2]}, f32[2,4]) tuple(c, n)")
case("sink_two", "x:f32[4] y:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nb = f32[2,4] broadcast(y), dimensions={1}\nr = f32[2,4] add(a, b)")
case("sink_scalar_other", "x:f32[4]", "k = f32[] constant(2)\na = f32[2,4] broadcast(x), dimensions={1}\nb = f32[2,4] broadcast(k), dimensions={}\nr = f32[2,4] power(a, b)")
case("sink_unary", "x:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nr = f32[2,4] cosine(a)")
case("sink_convert", "x:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nr = s32[2,4] convert(a)")
case("sink_select", "x:f32[4] p:pred[4] y:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nb = pred[2,4] broadcast(p), dimensions={1}\nc = f32[2,4] broadcast(y), dimensions={1}\nr = f32[2,4] select(b, a, c)")
case("sink_compare", "x:f32[4] y:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nb = f32[2,4] broadcast(y), dimensions={1}\nr = pred[2,4] compare(a, b), direction=LT")
case("sink_clamp", "x:f32[4] l:f32[] h:f32[]", "a = f32[2,4] broadcast(x), dimensions={1}\nr = f32[2,4] clamp(l, a, h)")
case("sink_other_dims", "x:f32[4] y:f32[4]", "a = f32[4,4] broadcast(x), dimensions={1}\nb = f32[4,4] broadcast(y), dimensions={0}\nr = f32[4,4] add(a, b)")
case("sink_two_users", "x:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nb = f32[2,4] cosine(a)\nc = f32[2,4] sine(a)\nr = f32[2,4] subtract(b, c)")

# --- reshapes and transposes ---
case("reshape_same", "x:f32[4,8]", "r = f32[4,8] reshape(x)")
case("reshape_reshape", "x:f32[4,8]", "a = f32[32] reshape(x)\nr = f32[8,4] reshape(a)")
case("reshape_empty", "x:f32[0,8]", "r = f32[8,0] reshape(x)")
case("reshape_rng", "", "a = f32[] constant(0)\nb = f32[] constant(1)\ng = f32[4,8] rng(a, b), distribution=rng_uniform\nr = f32[32] reshape(g)")
case("transpose_rng", "", "a = f32[] constant(0)\nb = f32[] constant(1)\ng = f32[4,8] rng(a, b), distribution=rng_uniform\nr = f32[8,4] transpose(g), dimensions={1,0}")
case("hoist_transpose", "x:f32[8,6]", "a = f32[2,4,6] reshape(x)\nb = f32[6,2,4] transpose(a), dimensions={2,0,1}\nr = f32[6,8] reshape(b)")
case("hoist_transpose_not", "x:f32[8,6]", "a = f32[2,4,6] reshape(x)\nb = f32[6,4,2] transpose(a), dimensions={2,1,0}\nr = f32[6,8] reshape(b)")
case("reshape_broadcast", "x:f32[4]", "a = f32[2,3,4] broadcast(x), dimensions={2}\nr = f32[6,4] reshape(a)")
case("reshape_broadcast_first", "x:f32[4]", "a = f32[4,2,3] broadcast(x), dimensions={0}\nr = f32[4,6] reshape(a)")
case("reshape_broadcast_not", "x:f32[4]", "a = f32[2,3,4] broadcast(x), dimensions={2}\nr = f32[2,12] reshape(a)")
case("reshape_broadcast_split", "x:f32[4]", "a = f32[6,4] broadcast(x), dimensions={1}\nr = f32[2,3,4] reshape(a)")
for t in ("s32", "f32", "u8"):
    case(f"reshape_iota_split_{t}", f"x:{t}[3,4]", f"i = {t}[12] iota(), iota_dimension=0\na = {t}[3,4] reshape(i)\nr = {t}[3,4] maximum(a, x)")
    case(f"reshape_iota_merge_{t}", f"x:{t}[12]", f"i = {t}[3,4] iota(), iota_dimension=1\na = {t}[12] reshape(i)\nr = {t}[12] maximum(a, x)")
case("reshape_iota_merge_0", "x:s32[12]", "i = s32[3,4] iota(), iota_dimension=0\na = s32[12] reshape(i)\nr = s32[12] maximum(a, x)")
case("reshape_iota_keep", "x:s32[3,8]", "i = s32[3,2,4] iota(), iota_dimension=0\na = s32[3,8] reshape(i)\nr = s32[3,8] maximum(a, x)")
case("reshape_iota_one", "x:s32[1,12]", "i = s32[12] iota(), iota_dimension=0\na = s32[1,12] reshape(i)\nr = s32[1,12] maximum(a, x)")
case("reshape_iota_3", "x:s32[2,3,4]", "i = s32[24] iota(), iota_dimension=0\na = s32[2,3,4] reshape(i)\nr = s32[2,3,4] maximum(a, x)")
case("reshape_iota_outer", "x:s32[5,3,4]", "i = s32[5,12] iota(), iota_dimension=1\na = s32[5,3,4] reshape(i)\nr = s32[5,3,4] maximum(a, x)")
case("reshape_iota_cross", "x:s32[4,6]", "i = s32[6,4] iota(), iota_dimension=0\na = s32[4,6] reshape(i)\nr = s32[4,6] maximum(a, x)")
for ind in ("i, z", "z, i"):
    case(f"reshape_dus_{ind[0]}", "x:f32[8,4] u:f32[2,4] i:s32[]", f"z = s32[] constant(0)\nd = f32[8,4] dynamic-update-slice(x, u, {ind})\nr = f32[1,8,4] reshape(d)")
case("reshape_dus_delete", "x:f32[1,8,4] u:f32[1,2,4] i:s32[]", "z = s32[] constant(0)\nd = f32[1,8,4] dynamic-update-slice(x, u, z, i, z)\nr = f32[8,4] reshape(d)")
case("reshape_dus_merge", "x:f32[8,4] u:f32[2,4] i:s32[]", "z = s32[] constant(0)\nd = f32[8,4] dynamic-update-slice(x, u, i, z)\nr = f32[32] reshape(d)")
case("chain_back", "x:f32[1,4,8]", "a = f32[4,1,8] reshape(x)\nb = f32[4,8,1] transpose(a), dimensions={0,2,1}\nr = f32[1,4,8] reshape(b)")
case("chain_transposes", "x:f32[2,4,8]", "a = f32[4,2,8] transpose(x), dimensions={1,0,2}\nb = f32[4,2,1,8] reshape(a)\nr = f32[2,4,1,8] transpose(b), dimensions={1,0,2,3}")
case("chain_transposes_back", "x:f32[2,4,8]", "a = f32[4,2,8] transpose(x), dimensions={1,0,2}\nb = f32[4,2,1,8] reshape(a)\nc = f32[2,1,4,8] transpose(b), dimensions={1,2,0,3}\nr = f32[2,4,8] reshape(c)")
case("transpose_identity", "x:f32[4,8]", "r = f32[4,8] transpose(x), dimensions={0,1}")
case("transpose_transpose", "x:f32[2,4,8]", "a = f32[4,8,2] transpose(x), dimensions={1,2,0}\nr = f32[2,8,4] transpose(a), dimensions={2,1,0}")
case("transpose_back", "x:f32[2,4,8]", "a = f32[4,8,2] transpose(x), dimensions={1,2,0}\nr = f32[2,4,8] transpose(a), dimensions={2,0,1}")
case("transpose_ones", "x:f32[1,4,1]", "r = f32[4,1,1] transpose(x), dimensions={1,2,0}")
case("transpose_one_of", "x:f32[1,4,8]", "r = f32[4,1,8] transpose(x), dimensions={1,0,2}")
for t in ("f32", "bf16"):
    case(f"transpose_dot_{t}", f"x:{t}[4,8] y:{t}[8,6]", f"d = {t}[4,6] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\nr = {t}[6,4] transpose(d), dimensions={{1,0}}")
case("transpose_dot_batch", "x:f32[2,4,8] y:f32[2,8,6]", "d = f32[2,4,6] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\nr = f32[2,6,4] transpose(d), dimensions={0,2,1}")
case("transpose_dot_batch_moved", "x:f32[2,4,8] y:f32[2,8,6]", "d = f32[2,4,6] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\nr = f32[4,2,6] transpose(d), dimensions={1,0,2}")
case("transpose_dot_precision", "x:f32[4,8] y:f32[8,6]", "d = f32[4,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,default}\nr = f32[6,4] transpose(d), dimensions={1,0}")
case("transpose_dot_two_users", "x:f32[4,8] y:f32[8,6]", "d = f32[4,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nt = f32[6,4] transpose(d), dimensions={1,0}\nr = (f32[6,4], f32[4,6]) tuple(t, d)")
case("transpose_dot_free2", "x:f32[4,5,8] y:f32[8,6]", "d = f32[4,5,6] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}\nr = f32[6,4,5] transpose(d), dimensions={2,0,1}")
case("transpose_broadcast", "x:f32[4]", "b = f32[4,8] broadcast(x), dimensions={0}\nr = f32[8,4] transpose(b), dimensions={1,0}")
case("transpose_broadcast2", "x:f32[4,5]", "b = f32[4,8,5] broadcast(x), dimensions={0,2}\nr = f32[8,5,4] transpose(b), dimensions={1,2,0}")
case("transpose_broadcast2_sorted", "x:f32[4,5]", "b = f32[4,8,5] broadcast(x), dimensions={0,2}\nr = f32[8,4,5] transpose(b), dimensions={1,0,2}")
for flags in ("", ", unique_indices=true"):
    case(f"transpose_scatter{len(flags)}", "x:f32[8,4] i:s32[3,1] u:f32[3,4]", f"s = f32[8,4] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1{flags}, to_apply=add.f32\nr = f32[4,8] transpose(s), dimensions={{1,0}}")

# --- slices ---
case("slice_all", "x:f32[4,8]", "r = f32[4,8] slice(x), slice={[0:4], [0:8]}")
for name, s in (("inside", "[2:6]"), ("exact", "[2:10]"), ("before", "[0:2]"), ("behind", "[10:12]"), ("across", "[1:6]"), ("stride", "[2:10:2]")):
    b, e, *st = (int(v) for v in s.strip("[]").split(":"))
    n = (e - b + (st[0] if st else 1) - 1) // (st[0] if st else 1)
    case(f"slice_pad_{name}", "x:f32[8] v:f32[]", f"p = f32[12] pad(x, v), padding=2_2\nr = f32[{n}] slice(p), slice={{{s}}}")
    case(f"slice_pad_const_{name}", "x:f32[8]", f"v = f32[] constant(0)\np = f32[12] pad(x, v), padding=2_2\nr = f32[{n}] slice(p), slice={{{s}}}")
case("slice_pad_2d", "x:f32[8,4] v:f32[]", "p = f32[12,5] pad(x, v), padding=2_2x0_1\nr = f32[8,4] slice(p), slice={[2:10], [0:4]}")
case("slice_pad_2d_part", "x:f32[8,4] v:f32[]", "p = f32[12,5] pad(x, v), padding=2_2x0_1\nr = f32[4,4] slice(p), slice={[3:7], [0:4]}")
case("slice_pad_interior", "x:f32[4] v:f32[]", "p = f32[7] pad(x, v), padding=0_0_1\nr = f32[3] slice(p), slice={[0:3]}")
case("slice_slice", "x:f32[20]", "a = f32[10] slice(x), slice={[5:15]}\nr = f32[4] slice(a), slice={[2:6]}")
case("slice_slice_stride", "x:f32[20]", "a = f32[10] slice(x), slice={[0:20:2]}\nr = f32[4] slice(a), slice={[2:6]}")
case("slice_broadcast_added", "x:f32[4]", "b = f32[8,4] broadcast(x), dimensions={1}\nr = f32[2,4] slice(b), slice={[1:3], [0:4]}")
case("slice_broadcast_both", "x:f32[4]", "b = f32[8,4] broadcast(x), dimensions={1}\nr = f32[2,2] slice(b), slice={[1:3], [0:2]}")
for at in (0, 3, 4, 6):
    case(f"slice_scalar_concat_{at}", "x:f32[4] y:f32[1] z:f32[2]", f"c = f32[7] concatenate(x, y, z), dimensions={{0}}\nr = f32[1] slice(c), slice={{[{at}:{at + 1}]}}")
for s, n in (("[0:4]", 4), ("[4:5]", 1), ("[0:5]", 5), ("[1:5]", 4), ("[4:7]", 3), ("[1:3]", 2), ("[0:6:2]", 3)):
    case(f"slice_concat_{s[1:-1].replace(':', '_')}", "x:f32[4,2] y:f32[1,2] z:f32[2,2]", f"c = f32[7,2] concatenate(x, y, z), dimensions={{0}}\nr = f32[{n},2] slice(c), slice={{{s}, [0:2]}}")
case("slice_window_last", "x:f32[8]", "z = f32[] constant(0)\nw = f32[8] reduce-window(x, z), window={size=8 pad=7_0}, to_apply=add.f32\nr = f32[1] slice(w), slice={[7:8]}")
case("slice_window_last_2d", "x:f32[4,8]", "z = f32[] constant(0)\nw = f32[4,8] reduce-window(x, z), window={size=1x8 pad=0_0x7_0}, to_apply=add.f32\nr = f32[4,1] slice(w), slice={[0:4], [7:8]}")
case("slice_reshape", "x:f32[8,4]", "a = f32[32] reshape(x)\nr = f32[16] slice(a), slice={[0:16]}")
case("slice_reshape_not", "x:f32[8,4]", "a = f32[32] reshape(x)\nr = f32[17] slice(a), slice={[0:17]}")
case("slice_reshape_split", "x:f32[32]", "a = f32[8,4] reshape(x)\nr = f32[4,4] slice(a), slice={[0:4], [0:4]}")
case("slice_reshape_from", "x:f32[32]", "a = f32[8,4] reshape(x)\nr = f32[4,4] slice(a), slice={[2:6], [0:4]}")
case("slice_reverse", "x:f32[8,4]", "a = f32[8,4] reverse(x), dimensions={0}\nr = f32[3,2] slice(a), slice={[1:4], [0:2]}")
case("slice_reverse_stride", "x:f32[8,4]", "a = f32[8,4] reverse(x), dimensions={0}\nr = f32[3,2] slice(a), slice={[1:6:2], [0:2]}")
for s, n in (("[2:3:4]", 1), ("[0:8:8]", 1), ("[3:8:5]", 1), ("[0:8:2]", 4), ("[7:8:1]", 1)):
    case(f"slice_stride_{s[1:-1].replace(':', '_')}", "x:f32[8]", f"r = f32[{n}] slice(x), slice={{{s}}}")
case("slice_iota", "x:s32[4]", "i = s32[8] iota(), iota_dimension=0\ns = s32[4] slice(i), slice={[2:6]}\nr = s32[4] maximum(s, x)")
case("slice_constant", "x:f32[2]", "k = f32[4] constant({4,3,2,9})\ns = f32[2] slice(k), slice={[1:3]}\nr = f32[2] maximum(s, x)")
case("slice_dus", "x:f32[8] u:f32[2]", "i = s32[] constant(3)\nd = f32[8] dynamic-update-slice(x, u, i)\nr = f32[2] slice(d), slice={[3:5]}")
case("slice_transpose", "x:f32[8,4]", "t = f32[4,8] transpose(x), dimensions={1,0}\nr = f32[2,8] slice(t), slice={[0:2], [0:8]}")

# --- dynamic slices ---
case("ds_scalar", "x:f32[]", "r = f32[] dynamic-slice(x), dynamic_slice_sizes={}")
case("ds_whole", "x:f32[4] i:s32[]", "r = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}")
case("ds_whole_dim", "x:f32[4,8] i:s32[] j:s32[]", "r = f32[2,8] dynamic-slice(x, i, j), dynamic_slice_sizes={2,8}")
case("ds_const", "x:f32[4,8]", "i = s32[] constant(1)\nj = s32[] constant(7)\nr = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}")
case("ds_const_negative", "x:f32[4,8]", "i = s32[] constant(-1)\nj = s32[] constant(7)\nr = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}")
case("ds_broadcast", "x:f32[8] i:s32[]", "b = f32[4,8] broadcast(x), dimensions={1}\nr = f32[1,2] dynamic-slice(b, i, i), dynamic_slice_sizes={1,2}")
case("ds_broadcast_added", "x:f32[8] i:s32[]", "z = s32[] constant(0)\nb = f32[4,8] broadcast(x), dimensions={1}\nr = f32[1,8] dynamic-slice(b, i, z), dynamic_slice_sizes={1,8}")
case("ds_reshape_one", "x:f32[8,4] i:s32[]", "z = s32[] constant(0)\na = f32[1,8,4] reshape(x)\nr = f32[1,2,4] dynamic-slice(a, z, i, z), dynamic_slice_sizes={1,2,4}")
case("ds_reshape_merge", "x:f32[8,4] i:s32[]", "a = f32[32] reshape(x)\nr = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}")
case("ds_transpose", "x:f32[8,4] i:s32[]", "z = s32[] constant(0)\na = f32[4,8] transpose(x), dimensions={1,0}\nr = f32[1,8] dynamic-slice(a, i, z), dynamic_slice_sizes={1,8}")
case("ds_iota", "i:s32[]", "a = s32[8] iota(), iota_dimension=0\nr = s32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}")
case("ds_iota_two", "i:s32[]", "a = s32[8] iota(), iota_dimension=0\nr = s32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}")
case("ds_iota_u32", "i:u32[]", "a = s32[8] iota(), iota_dimension=0\nr = s32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}")
case("ds_iota_f32", "i:s32[]", "a = f32[8] iota(), iota_dimension=0\nr = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}")
case("ds_iota_s64", "i:s64[]", "a = s64[8] iota(), iota_dimension=0\nr = s64[1] dynamic-slice(a, i), dynamic_slice_sizes={1}")
case("ds_iota_scaled", "i:s32[]", "a = s32[8] iota(), iota_dimension=0\nk = s32[] constant(4)\nb = s32[8] broadcast(k), dimensions={}\nm = s32[8] multiply(a, b)\nr = s32[1] dynamic-slice(m, i), dynamic_slice_sizes={1}")
case("ds_ds", "x:f32[16,8] i:s32[] j:s32[]", "z = s32[] constant(0)\na = f32[8,8] dynamic-slice(x, i, z), dynamic_slice_sizes={8,8}\nr = f32[2,8] dynamic-slice(a, j, z), dynamic_slice_sizes={2,8}")
case("ds_concat", "x:f32[4] y:f32[4] i:s32[]", "c = f32[8] concatenate(x, y), dimensions={0}\nr = f32[1] dynamic-slice(c, i), dynamic_slice_sizes={1}")
case("ds_dus_same", "x:f32[8] u:f32[2] i:s32[]", "d = f32[8] dynamic-update-slice(x, u, i)\nr = f32[2] dynamic-slice(d, i), dynamic_slice_sizes={2}")
case("ds_pad", "x:f32[4] v:f32[] i:s32[]", "p = f32[8] pad(x, v), padding=2_2\nr = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}")
case("dus_spread_const", "u:f32[2]", "k = f32[] constant(3)\nb = f32[8] broadcast(k), dimensions={}\ni = s32[] constant(2)\nr = f32[8] dynamic-update-slice(b, u, i)")
case("dus_spread_const_over", "u:f32[2]", "k = f32[] constant(3)\nb = f32[8] broadcast(k), dimensions={}\ni = s32[] constant(7)\nr = f32[8] dynamic-update-slice(b, u, i)")
case("dus_spread_param", "u:f32[2] k:f32[]", "b = f32[8] broadcast(k), dimensions={}\ni = s32[] constant(2)\nr = f32[8] dynamic-update-slice(b, u, i)")
case("dus_whole", "x:f32[8] u:f32[8] i:s32[]", "r = f32[8] dynamic-update-slice(x, u, i)")
case("dus_whole_dim", "x:f32[8,4] u:f32[2,4] i:s32[] j:s32[]", "r = f32[8,4] dynamic-update-slice(x, u, i, j)")
case("dus_empty", "x:f32[8] u:f32[0] i:s32[]", "r = f32[8] dynamic-update-slice(x, u, i)")
case("dus_dus_ds", "x:f32[8] u:f32[2] i:s32[] j:s32[]", "s = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}\nd = f32[4] dynamic-update-slice(s, u, j)\nr = f32[8] dynamic-update-slice(x, d, i)")
case("dus_of_ds", "x:f32[8] i:s32[]", "s = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}\nr = f32[8] dynamic-update-slice(x, s, i)")
case("dus_constant_scalar", "x:f32[8]", "k = f32[] constant(3)\nu = f32[1] broadcast(k), dimensions={}\ni = s32[] constant(2)\nr = f32[8] dynamic-update-slice(x, u, i)")

# --- gathers, scatters, sorts, maps, barriers, conditionals ---
G = "offset_dims={OFF}, collapsed_slice_dims={COL}, start_index_map={MAP}, index_vector_dim={V}, slice_sizes={SZ}"


def gather(off, col, start, v, sizes):
    return G.replace("OFF", off).replace("COL", col).replace("MAP", start).replace("{V}", v).replace("SZ", sizes)


case("gather_empty", "x:f32[0,4] i:s32[3,1]", "r = f32[3,0,4] gather(x, i), " + gather("1,2", "", "0", "1", "0,4"))
for n in (1, 2, 3, 4, 5):
    case(f"gather_small_{n}", f"x:f32[{n}] i:s32[6]", f"r = f32[6] gather(x, i), " + gather("", "0", "0", "1", "1"))
    case(f"gather_small_const_{n}", f"i:s32[6]", f"x = f32[{n}] constant({{{','.join(str(v * v + 2) for v in range(n))}}})\nr = f32[6] gather(x, i), " + gather("", "0", "0", "1", "1"))
case("gather_small_u32", "x:f32[3] i:u32[6]", "r = f32[6] gather(x, i), " + gather("", "0", "0", "1", "1"))
case("gather_small_vector", "x:f32[3] i:s32[6,1]", "r = f32[6] gather(x, i), " + gather("", "0", "0", "1", "1"))
case("gather_pad", "x:f32[8,4] v:f32[] i:s32[3,1]", "p = f32[8,6] pad(x, v), padding=0_0x1_1\nr = f32[3,6] gather(p, i), " + gather("1", "0", "0", "1", "1,6"))
case("gather_pad_const", "x:f32[8,4] i:s32[3,1]", "v = f32[] constant(0)\np = f32[8,6] pad(x, v), padding=0_0x1_1\nr = f32[3,6] gather(p, i), " + gather("1", "0", "0", "1", "1,6"))
case("gather_pad_indexed", "x:f32[8,4] v:f32[] i:s32[3,1]", "p = f32[10,4] pad(x, v), padding=1_1x0_0\nr = f32[3,4] gather(p, i), " + gather("1", "0", "0", "1", "1,4"))
case("gather_reshape_pad", "x:f32[8,4] v:f32[] i:s32[3,1]", "p = f32[8,6] pad(x, v), padding=0_0x1_1\nq = f32[8,2,3] reshape(p)\nr = f32[3,2,3] gather(q, i), " + gather("1,2", "0", "0", "1", "1,2,3"))
case("gather_reshape_pad_one", "x:f32[8,4] v:f32[] i:s32[3,1]", "p = f32[8,6] pad(x, v), padding=0_0x1_1\nq = f32[8,1,6] reshape(p)\nr = f32[3,1,6] gather(q, i), " + gather("1,2", "0", "0", "1", "1,1,6"))
case("gather_broadcast", "x:f32[] i:s32[3,1]", "b = f32[8,4] broadcast(x), dimensions={}\nr = f32[3,4] gather(b, i), " + gather("1", "0", "0", "1", "1,4"))
case("gather_iota_indices", "x:f32[8,4]", "i = s32[8,1] iota(), iota_dimension=0\nr = f32[8,4] gather(x, i), " + gather("1", "0", "0", "1", "1,4"))
S = "update_window_dims={WIN}, inserted_window_dims={INS}, scatter_dims_to_operand_dims={MAP}, index_vector_dim=VV"


def scatter(win, ins, start, v):
    return S.replace("WIN", win).replace("INS", ins).replace("MAP", start).replace("VV", v)


case("scatter_empty_updates", "x:f32[8] i:s32[0,1] u:f32[0]", "r = f32[8] scatter(x, i, u), " + scatter("", "0", "0", "1") + ", to_apply=add.f32")
case("scatter_no_indices", "x:f32[8] i:s32[0] u:f32[8]", "r = f32[8] scatter(x, i, u), " + scatter("0", "", "", "0") + ", to_apply=add.f32")
for flags in ("", ", unique_indices=true", ", indices_are_sorted=true"):
    for n in ("3", "6"):
        case(f"add_scatters_{len(flags)}_{n}", f"x:f32[8,4] y:f32[8,4] i:s32[3,1] u:f32[3,4] j:s32[{n},1] v:f32[{n},4]",
             "s = f32[8,4] scatter(x, i, u), " + scatter("1", "0", "0", "1") + f"{flags}, to_apply=add.f32\n"
             "t = f32[8,4] scatter(y, j, v), " + scatter("1", "0", "0", "1") + f"{flags}, to_apply=add.f32\nr = f32[8,4] add(s, t)")
for form in ("y, s", "s, y"):
    case(f"add_scatter_{form[0]}", "x:f32[8,4] y:f32[8,4] i:s32[3,1] u:f32[3,4]", "s = f32[8,4] scatter(x, i, u), " + scatter("1", "0", "0", "1") + f", to_apply=add.f32\nr = f32[8,4] add({form})")
for f in ("add", "multiply"):
    case(f"map_{f}", "x:f32[4] y:f32[4]", f"f {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] {f}(a, b)\n}}\n\nr = f32[4] map(x, y), dimensions={{0}}, to_apply=f")
case("map_parameter", "x:f32[4] y:f32[4]", "f {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n\nr = f32[4] map(x, y), dimensions={0}, to_apply=f")
case("map_constant", "x:f32[4]", "f {\n  a = f32[] parameter(0)\n  ROOT b = f32[] constant(4)\n}\n\nr = f32[4] map(x), dimensions={0}, to_apply=f")
case("map_deep", "x:f32[4]", "f {\n  a = f32[] parameter(0)\n  n = f32[] negate(a)\n  ROOT b = f32[] cosine(n)\n}\n\nr = f32[4] map(x), dimensions={0}, to_apply=f")
LESS = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n\n"
LESS2 = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  v = s32[] parameter(2)\n  w = s32[] parameter(3)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n\n"
case("sort_one", "x:f32[1,4]", LESS + "r = f32[1,4] sort(x), dimensions={0}, to_apply=less")
case("sort_pair_one", "x:f32[1,4] y:s32[1,4]", LESS2 + "r = (f32[1,4], s32[1,4]) sort(x, y), dimensions={0}, to_apply=less")
case("sort_empty", "x:f32[0]", LESS + "r = f32[0] sort(x), dimensions={0}, to_apply=less")
case("barrier_unused", "x:f32[4] y:f32[4]", "n = f32[4] negate(y)\nt = (f32[4], f32[4]) tuple(x, n)\nb = (f32[4], f32[4]) opt-barrier(t)\ng = f32[4] get-tuple-element(b), index=0\nr = f32[4] cosine(g)")
case("barrier_used", "x:f32[4] y:f32[4]", "n = f32[4] negate(y)\nt = (f32[4], f32[4]) tuple(x, n)\nb = (f32[4], f32[4]) opt-barrier(t)\ng = f32[4] get-tuple-element(b), index=0\nh = f32[4] get-tuple-element(b), index=1\nr = f32[4] add(g, h)")
case("conditional_convert", "p:pred[] x:f32[4]", "one {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] cosine(a)\n}\n\ntwo {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] sine(a)\n}\n\ni = s32[] convert(p)\nr = f32[4] conditional(i, x, x), branch_computations={one, two}")

# --- padding and joining ---
case("pad_nothing", "x:f32[4] v:f32[]", "r = f32[4] pad(x, v), padding=0_0")
case("pad_empty", "x:f32[0] v:f32[]", "r = f32[4] pad(x, v), padding=2_2")
case("pad_interior_one", "x:f32[1,4] v:f32[]", "r = f32[2,4] pad(x, v), padding=1_0_3x0_0")
case("pad_negative", "x:f32[8] v:f32[]", "r = f32[7] pad(x, v), padding=-2_1")
case("pad_negative_both", "x:f32[8] v:f32[]", "r = f32[4] pad(x, v), padding=-2_-2")
case("pad_negative_interior", "x:f32[8] v:f32[]", "r = f32[13] pad(x, v), padding=-2_0_1")
case("pad_shift", "x:f32[8] v:f32[]", "r = f32[8] pad(x, v), padding=-1_1")
case("pad_broadcast", "x:f32[4] v:f32[]", "b = f32[8,4] broadcast(x), dimensions={1}\nr = f32[8,6] pad(b, v), padding=0_0x1_1")
case("pad_broadcast_added", "x:f32[4] v:f32[]", "b = f32[8,4] broadcast(x), dimensions={1}\nr = f32[9,4] pad(b, v), padding=0_1x0_0")
case("pad_broadcast_two", "x:f32[4,5] v:f32[]", "b = f32[8,4,5] broadcast(x), dimensions={1,2}\nr = f32[8,6,5] pad(b, v), padding=0_0x1_1x0_0")
case("pad_broadcast_scalar", "x:f32[] v:f32[]", "b = f32[8] broadcast(x), dimensions={}\nr = f32[9] pad(b, v), padding=0_1")
case("pad_pad", "x:f32[4]", "v = f32[] constant(0)\na = f32[6] pad(x, v), padding=1_1\nr = f32[8] pad(a, v), padding=1_1")
case("concat_one", "x:f32[4]", "r = f32[4] concatenate(x), dimensions={0}")
case("concat_empty", "x:f32[4] y:f32[0] z:f32[2]", "r = f32[6] concatenate(x, y, z), dimensions={0}")
case("concat_empty_rest", "x:f32[4] y:f32[0]", "r = f32[4] concatenate(x, y), dimensions={0}")
case("concat_nested", "x:f32[4] y:f32[3] z:f32[2]", "a = f32[7] concatenate(x, y), dimensions={0}\nr = f32[9] concatenate(z, a), dimensions={0}")
case("concat_nested_used", "x:f32[4] y:f32[3] z:f32[2]", "a = f32[7] concatenate(x, y), dimensions={0}\nb = f32[9] concatenate(z, a), dimensions={0}\nr = (f32[7], f32[9]) tuple(a, b)")
case("concat_nested_dim", "x:f32[4,2] y:f32[3,2] z:f32[7,2]", "a = f32[7,2] concatenate(x, y), dimensions={0}\nr = f32[7,4] concatenate(a, z), dimensions={1}")
case("concat_slices", "x:f32[8,2]", "a = f32[3,2] slice(x), slice={[0:3], [0:2]}\nb = f32[5,2] slice(x), slice={[3:8], [0:2]}\nr = f32[8,2] concatenate(a, b), dimensions={0}")
case("concat_slices_part", "x:f32[8,2]", "a = f32[3,2] slice(x), slice={[0:3], [0:2]}\nb = f32[4,2] slice(x), slice={[3:7], [0:2]}\nr = f32[7,2] concatenate(a, b), dimensions={0}")
case("concat_slices_gap", "x:f32[8,2]", "a = f32[3,2] slice(x), slice={[0:3], [0:2]}\nb = f32[4,2] slice(x), slice={[4:8], [0:2]}\nr = f32[7,2] concatenate(a, b), dimensions={0}")
case("concat_slices_and", "x:f32[8] y:f32[2]", "a = f32[3] slice(x), slice={[0:3]}\nb = f32[4] slice(x), slice={[3:7]}\nr = f32[9] concatenate(a, b, y), dimensions={0}")
case("concat_slices_other_dim", "x:f32[8,4]", "a = f32[3,2] slice(x), slice={[0:3], [0:2]}\nb = f32[5,2] slice(x), slice={[3:8], [1:3]}\nr = f32[8,2] concatenate(a, b), dimensions={0}")
for form in ("b, x", "x, b"):
    case(f"concat_spread_{form[0]}", "x:f32[4] k:f32[]", f"b = f32[3] broadcast(k), dimensions={{}}\nr = f32[7] concatenate({form}), dimensions={{0}}")
    case(f"concat_spread_const_{form[0]}", "x:f32[4,2]", f"k = f32[] constant(0)\nb = f32[4,3] broadcast(k), dimensions={{}}\nr = f32[4,5] concatenate({form}), dimensions={{1}}")
case("concat_spread_three", "x:f32[4] k:f32[]", "b = f32[3] broadcast(k), dimensions={}\nr = f32[10] concatenate(b, x, b), dimensions={0}")
case("concat_same", "x:f32[1,4]", "r = f32[3,4] concatenate(x, x, x), dimensions={0}")
case("concat_same_wide", "x:f32[2,4]", "r = f32[4,4] concatenate(x, x), dimensions={0}")
case("concat_same_middle", "x:f32[4,1,2]", "r = f32[4,3,2] concatenate(x, x, x), dimensions={1}")
case("concat_broadcasts", "x:f32[] y:f32[]", "a = f32[3] broadcast(x), dimensions={}\nb = f32[3] broadcast(x), dimensions={}\nr = f32[6] concatenate(a, b), dimensions={0}")

# --- reductions ---
for f in ("add", "max", "mul"):
    case(f"reduce_empty_{f}", "x:f32[0,4] i:f32[]", f"r = f32[4] reduce(x, i), dimensions={{0}}, to_apply={f}.f32")
    case(f"reduce_ones_{f}", "x:f32[1,4] i:f32[]", f"r = f32[4] reduce(x, i), dimensions={{0}}, to_apply={f}.f32")
    case(f"reduce_none_{f}", "x:f32[4] i:f32[]", f"r = f32[4] reduce(x, i), dimensions={{}}, to_apply={f}.f32")
    case(f"reduce_reduce_{f}", "x:f32[3,4,5]", f"i = f32[] constant(0)\na = f32[3,5] reduce(x, i), dimensions={{1}}, to_apply={f}.f32\nr = f32[3] reduce(a, i), dimensions={{1}}, to_apply={f}.f32")
    case(f"reduce_reduce_init_{f}", "x:f32[3,4,5] j:f32[]", f"i = f32[] constant(0)\na = f32[3,5] reduce(x, j), dimensions={{1}}, to_apply={f}.f32\nr = f32[3] reduce(a, i), dimensions={{1}}, to_apply={f}.f32")
    case(f"reduce_concat_{f}", "x:f32[3,4] y:f32[3,4]", f"i = f32[] constant(0)\na = f32[6,4] concatenate(x, y), dimensions={{0}}\nr = f32[4] reduce(a, i), dimensions={{0}}, to_apply={f}.f32")
    case(f"reduce_concat_uneven_{f}", "x:f32[3,4] y:f32[2,4]", f"i = f32[] constant(0)\na = f32[5,4] concatenate(x, y), dimensions={{0}}\nr = f32[4] reduce(a, i), dimensions={{0}}, to_apply={f}.f32")
    case(f"reduce_concat_scalar_{f}", "x:f32[3] y:f32[2]", f"i = f32[] constant(0)\na = f32[5] concatenate(x, y), dimensions={{0}}\nr = f32[] reduce(a, i), dimensions={{0}}, to_apply={f}.f32")
    case(f"reduce_concat_kept_{f}", "x:f32[3,4] y:f32[3,4]", f"i = f32[] constant(0)\na = f32[6,4] concatenate(x, y), dimensions={{0}}\nr = f32[6] reduce(a, i), dimensions={{1}}, to_apply={f}.f32")
    case(f"reduce_broadcast_scalar_{f}", "x:f32[] i:f32[]", f"b = f32[3,4] broadcast(x), dimensions={{}}\nr = f32[] reduce(b, i), dimensions={{0,1}}, to_apply={f}.f32")
    case(f"reduce_broadcast_kept_{f}", "x:f32[5] i:f32[]", f"b = f32[3,5] broadcast(x), dimensions={{1}}\nr = f32[3] reduce(b, i), dimensions={{1}}, to_apply={f}.f32")
    case(f"reduce_broadcast_added_{f}", "x:f32[5] i:f32[]", f"b = f32[3,5] broadcast(x), dimensions={{1}}\nr = f32[5] reduce(b, i), dimensions={{0}}, to_apply={f}.f32")
case("reduce_broadcast_added_zero", "x:f32[5]", "i = f32[] constant(0)\nb = f32[3,5] broadcast(x), dimensions={1}\nr = f32[5] reduce(b, i), dimensions={0}, to_apply=add.f32")
case("reduce_broadcast_added_s32", "x:s32[5]", "i = s32[] constant(0)\nb = s32[3,5] broadcast(x), dimensions={1}\nr = s32[5] reduce(b, i), dimensions={0}, to_apply=add.s32")
case("reduce_negate", "x:f32[3,4]", "i = f32[] constant(0)\nn = f32[3,4] negate(x)\nr = f32[3] reduce(n, i), dimensions={1}, to_apply=add.f32")
case("reduce_negate_used", "x:f32[3,4]", "i = f32[] constant(0)\nn = f32[3,4] negate(x)\na = f32[3] reduce(n, i), dimensions={1}, to_apply=add.f32\nr = (f32[3], f32[3,4]) tuple(a, n)")
case("reduce_negate_s32", "x:s32[3,4]", "i = s32[] constant(0)\nn = s32[3,4] negate(x)\nr = s32[3] reduce(n, i), dimensions={1}, to_apply=add.s32")
case("reduce_transpose", "x:f32[3,4,5] i:f32[]", "t = f32[5,3,4] transpose(x), dimensions={2,0,1}\nr = f32[5,3] reduce(t, i), dimensions={2}, to_apply=add.f32")
case("reduce_transpose_all", "x:f32[3,4] i:f32[]", "t = f32[4,3] transpose(x), dimensions={1,0}\nr = f32[] reduce(t, i), dimensions={0,1}, to_apply=add.f32")
case("reduce_reshape_kept", "x:f32[3,4,5] i:f32[]", "t = f32[3,20] reshape(x)\nr = f32[3] reduce(t, i), dimensions={1}, to_apply=add.f32")
case("reduce_reshape_reduced", "x:f32[3,4,5] i:f32[]", "t = f32[3,20] reshape(x)\nr = f32[20] reduce(t, i), dimensions={0}, to_apply=add.f32")
case("reduce_reshape_split", "x:f32[3,20] i:f32[]", "t = f32[3,4,5] reshape(x)\nr = f32[3,4] reduce(t, i), dimensions={2}, to_apply=add.f32")
case("reduce_reshape_one", "x:f32[3,4] i:f32[]", "t = f32[3,1,4] reshape(x)\nr = f32[3] reduce(t, i), dimensions={1,2}, to_apply=add.f32")
case("reduce_pad", "x:f32[3,4]", "i = f32[] constant(0)\np = f32[3,6] pad(x, i), padding=0_0x1_1\nr = f32[3] reduce(p, i), dimensions={1}, to_apply=add.f32")
case("reduce_dot", "x:f32[3,4] y:f32[3,4]", "i = f32[] constant(0)\np = f32[3,4] multiply(x, y)\nr = f32[3] reduce(p, i), dimensions={1}, to_apply=add.f32")
case("reduce_select", "p:pred[4] x:f32[4]", "i = f32[] constant(0)\nb = f32[4] broadcast(i), dimensions={}\ns = f32[4] select(p, x, b)\nr = f32[] reduce(s, i), dimensions={0}, to_apply=add.f32")
for f in ("add", "max"):
    for pad, n in (("", 5), ("pad=3_0", 8), ("pad=1_2", 8)):
        case(f"window_pad_{f}_{n}_{len(pad)}", "x:f32[6]", f"i = f32[] constant({'0' if f == 'add' else '-inf'})\np = f32[8] pad(x, i), padding=1_1\nr = f32[{n}] reduce-window(p, i), window={{size=4 {pad}}}, to_apply={f}.f32")
    case(f"window_ones_{f}", "x:f32[6] i:f32[]", f"r = f32[6] reduce-window(x, i), window={{size=1}}, to_apply={f}.f32")
    case(f"window_ones_pad_{f}", "x:f32[6] i:f32[]", f"r = f32[8] reduce-window(x, i), window={{size=1 pad=1_1}}, to_apply={f}.f32")
    case(f"window_all_{f}", "x:f32[6,3] i:f32[]", f"r = f32[1,3] reduce-window(x, i), window={{size=6x1}}, to_apply={f}.f32")
    case(f"window_empty_{f}", "x:f32[0] i:f32[]", f"r = f32[3] reduce-window(x, i), window={{size=2 pad=2_2}}, to_apply={f}.f32")
    case(f"window_scan_{f}", "x:f32[6]", f"i = f32[] constant({'0' if f == 'add' else '-inf'})\nr = f32[6] reduce-window(x, i), window={{size=6 pad=5_0}}, to_apply={f}.f32")
    case(f"window_pad_convert_{f}", "x:bf16[6]", f"j = bf16[] constant({'0' if f == 'add' else '-inf'})\ni = f32[] constant({'0' if f == 'add' else '-inf'})\np = bf16[10] pad(x, j), padding=2_2\nq = f32[10] convert(p)\nr = f32[7] reduce-window(q, i), window={{size=4}}, to_apply={f}.f32")
    case(f"window_pad_2d_{f}", "x:f32[6,6]", f"i = f32[] constant({'0' if f == 'add' else '-inf'})\np = f32[8,8] pad(x, i), padding=1_1x1_1\nr = f32[7,7] reduce-window(p, i), window={{size=2x2}}, to_apply={f}.f32")
    case(f"window_pad_one_{f}", "x:f32[1,6]", f"i = f32[] constant({'0' if f == 'add' else '-inf'})\np = f32[5,6] pad(x, i), padding=2_2x0_0\nr = f32[3,6] reduce-window(p, i), window={{size=3x1}}, to_apply={f}.f32")
    case(f"window_pad_one_b_{f}", "x:f32[1,1]", f"i = f32[] constant({'0' if f == 'add' else '-inf'})\np = f32[5,5] pad(x, i), padding=2_2x2_2\nr = f32[3,3] reduce-window(p, i), window={{size=3x3}}, to_apply={f}.f32")
for t in ("s32", "s64", "f32"):
    case(f"window_cumsum_const_{t}", f"x:{t}[6]", f"i = {t}[] constant(0)\nk = {t}[] constant(3)\nb = {t}[6] broadcast(k), dimensions={{}}\nw = {t}[6] reduce-window(b, i), window={{size=6 pad=5_0}}, to_apply=add.{t}\nr = {t}[6] maximum(w, x)")

# --- products ---


def dot(name, x, y, out, dims, pre="", xs="x", ys="y"):
    case(name, f"x:{x} y:{y}", f"{pre}r = {out} dot({xs}, {ys}), {dims}".rstrip(", "))


D = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
dot("dot_empty", "f32[4,0]", "f32[0,6]", "f32[4,6]", D)
dot("dot_outer", "f32[4]", "f32[6]", "f32[4,6]", "")
dot("dot_outer_bf16", "bf16[4]", "bf16[6]", "f32[4,6]", "")
dot("dot_batch_only", "f32[4,5]", "f32[4,6]", "f32[4,5,6]", "lhs_batch_dims={0}, rhs_batch_dims={0}")
dot("dot_ones", "f32[1,8]", "f32[8,1]", "f32[1,1]", D)
dot("dot_contract_one", "f32[4,1]", "f32[1,6]", "f32[4,6]", D)
dot("dot_batch_one", "f32[1,4,8]", "f32[1,8,6]", "f32[1,4,6]", "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")
dot("dot_free_one", "f32[4,1,8]", "f32[8,6]", "f32[4,1,6]", "lhs_contracting_dims={2}, rhs_contracting_dims={0}")
case("dot_concat", "x:f32[4,3] z:f32[4,5]", "y = f32[8,2] constant({{1,2},{3,4},{5,6},{7,8},{9,1},{2,3},{4,5},{6,7}})\nc = f32[4,8] concatenate(x, z), dimensions={1}\nr = f32[4,2] dot(c, y), " + D)
case("dot_concat_param", "x:f32[4,3] z:f32[4,5] y:f32[8,2]", "c = f32[4,8] concatenate(x, z), dimensions={1}\nr = f32[4,2] dot(c, y), " + D)
case("dot_ds_const", "i:s32[]", "k = f32[4,2] constant({{1,2},{3,4},{5,6},{7,8}})\nm = f32[2,2] constant({{1,2},{9,4}})\nz = s32[] constant(0)\ns = f32[1,2] dynamic-slice(k, i, z), dynamic_slice_sizes={1,2}\nr = f32[1,2] dot(s, m), " + D)
case("dot_gather_const", "i:s32[]", "k = f32[4,2] constant({{1,2},{3,4},{5,6},{7,8}})\nm = f32[2,4] constant({{1,2,3,5},{9,4,5,6}})\nz = s32[] constant(0)\ns = f32[2,1] dynamic-slice(m, z, i), dynamic_slice_sizes={2,1}\nr = f32[4,1] dot(k, s), " + D)
case("dot_transposes", "x:f32[8,4] y:f32[6,8]", "a = f32[4,8] transpose(x), dimensions={1,0}\nb = f32[8,6] transpose(y), dimensions={1,0}\nr = f32[4,6] dot(a, b), " + D)
case("dot_transposes_batch", "x:f32[2,8,4] y:f32[2,6,8]", "a = f32[2,4,8] transpose(x), dimensions={0,2,1}\nb = f32[2,8,6] transpose(y), dimensions={0,2,1}\nr = f32[2,4,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")
case("dot_transposes_batch_moved", "x:f32[4,2,8] y:f32[8,2,6]", "a = f32[2,4,8] transpose(x), dimensions={1,0,2}\nb = f32[2,8,6] transpose(y), dimensions={1,0,2}\nr = f32[2,4,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")
case("dot_transpose_reshape", "x:f32[4,2,3]", "y = f32[6,2] constant({{1,2},{3,4},{5,6},{7,8},{9,1},{2,3}})\na = f32[4,3,2] transpose(x), dimensions={0,2,1}\nb = f32[4,6] reshape(a)\nr = f32[4,2] dot(b, y), " + D)
case("dot_transpose_reshape_param", "x:f32[4,2,3] y:f32[6,2]", "a = f32[4,3,2] transpose(x), dimensions={0,2,1}\nb = f32[4,6] reshape(a)\nr = f32[4,2] dot(b, y), " + D)
case("dot_broadcast", "x:f32[8] y:f32[8,6]", "a = f32[4,8] broadcast(x), dimensions={1}\nr = f32[4,6] dot(a, y), " + D)
case("dot_reverse", "x:f32[4,8] y:f32[8,6]", "a = f32[4,8] reverse(x), dimensions={1}\nb = f32[8,6] reverse(y), dimensions={0}\nr = f32[4,6] dot(a, b), " + D)
case("dot_vector", "x:f32[8] y:f32[8]", "r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}")
case("dot_matvec", "x:f32[4,8] y:f32[8]", "r = f32[4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
case("dot_vecmat", "x:f32[8] y:f32[8,4]", "r = f32[4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}")
case("dot_matvec_left", "x:f32[8,4] y:f32[8]", "r = f32[4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}")
case("dot_scaled", "x:f32[4,8] y:f32[8,6]", "k = f32[] constant(3)\nb = f32[4,8] broadcast(k), dimensions={}\na = f32[4,8] multiply(x, b)\nr = f32[4,6] dot(a, y), " + D)
case("dot_then_scaled", "x:f32[4,8] y:f32[8,6]", "k = f32[] constant(3)\nd = f32[4,6] dot(x, y), " + D + "\nb = f32[4,6] broadcast(k), dimensions={}\nr = f32[4,6] multiply(d, b)")
case("dot_s32", "x:s32[4,8] y:s32[8,6]", "r = s32[4,6] dot(x, y), " + D)
case("dot_c64", "x:c64[4,8] y:c64[8,6]", "r = c64[4,6] dot(x, y), " + D)
case("copy_copy", "x:f32[4,8]", "a = f32[4,8] copy(x)\nb = f32[4,8] copy(a)\nr = f32[4,8] cosine(b)")
case("gte_tuple", "x:f32[4] y:f32[4]", "t = (f32[4], f32[4]) tuple(x, y)\nr = f32[4] get-tuple-element(t), index=1")
case("reverse_reverse", "x:f32[4,8]", "a = f32[4,8] reverse(x), dimensions={0}\nr = f32[4,8] reverse(a), dimensions={0}")
case("reverse_one", "x:f32[1,8]", "r = f32[1,8] reverse(x), dimensions={0}")
case("reverse_part", "x:f32[1,8]", "r = f32[1,8] reverse(x), dimensions={0,1}")
case("reverse_add", "x:f32[4] y:f32[4]", "a = f32[4] reverse(x), dimensions={0}\nb = f32[4] reverse(y), dimensions={0}\nr = f32[4] add(a, b)")

# --- what the first round of answers asked for ---
for d1 in ("GE", "LT", "EQ", "NE", "GT", "LE"):
    for d2 in ("NE", "EQ"):
        case(f"compare_select_{d1}_{d2}", "x:s32[4] y:s32[4]",
             f"c = pred[4] compare(x, y), direction={d1}\none = s32[] constant(1)\nzero = s32[] constant(0)\no = s32[4] broadcast(one), dimensions={{}}\n"
             f"z = s32[4] broadcast(zero), dimensions={{}}\ns = s32[4] select(c, o, z)\nr = pred[4] compare(s, z), direction={d2}")
for name, form, a, b, k in (("swapped", "z, s", 1, 0, 0), ("inverse", "s, z", 0, 1, 0), ("one", "s, z", 1, 0, 1), ("two", "s, z", 2, 0, 0)):
    case(f"compare_select_{name}", "x:s32[4] y:s32[4]",
         f"c = pred[4] compare(x, y), direction=GE\nkz = s32[] constant({k})\nka = s32[] constant({a})\nkb = s32[] constant({b})\no = s32[4] broadcast(ka), dimensions={{}}\n"
         f"q = s32[4] broadcast(kb), dimensions={{}}\nz = s32[4] broadcast(kz), dimensions={{}}\ns = s32[4] select(c, o, q)\nr = pred[4] compare({form}), direction=NE")
case("compare_select_f32", "x:f32[4] y:f32[4]",
     "c = pred[4] compare(x, y), direction=GE\none = f32[] constant(1)\nzero = f32[] constant(0)\no = f32[4] broadcast(one), dimensions={}\n"
     "z = f32[4] broadcast(zero), dimensions={}\ns = f32[4] select(c, o, z)\nr = pred[4] compare(s, z), direction=NE")
case("compare_select_scalar", "x:s32[] y:s32[]",
     "c = pred[] compare(x, y), direction=GE\no = s32[] constant(1)\nz = s32[] constant(0)\ns = s32[] select(c, o, z)\nr = pred[] compare(s, z), direction=NE")
case("compare_select_param", "c:pred[4]",
     "one = s32[] constant(1)\nzero = s32[] constant(0)\no = s32[4] broadcast(one), dimensions={}\n"
     "z = s32[4] broadcast(zero), dimensions={}\ns = s32[4] select(c, o, z)\nr = pred[4] compare(s, z), direction=NE")
case("compare_convert_pred", "c:pred[4]", "zero = s32[] constant(0)\nz = s32[4] broadcast(zero), dimensions={}\ns = s32[4] convert(c)\nr = pred[4] compare(s, z), direction=NE")
for t in ("f16", "bf16", "f64", "s8", "u32", "c64"):
    v = [f"({v},0)" for v in range(6)] if t == "c64" else [str(v) for v in range(6)]
    case(f"constant_iota2_{t}", f"x:{t}[6]", f"k = {t}[6] constant({{{','.join(v)}}})\nr = {t}[6] add(x, k)")
    v = [f"({2 * v},0)" for v in range(6)] if t == "c64" else [str(2 * v) for v in range(6)]
    case(f"constant_strided2_{t}", f"x:{t}[6]", f"k = {t}[6] constant({{{','.join(v)}}})\nr = {t}[6] add(x, k)")
case("constant_iota_f32_2", "x:f32[2]", "k = f32[2] constant({0,1})\nr = f32[2] add(x, k)")
for t, n in (("u32", 4), ("u8", 16), ("s32", 8), ("s64", 4)):
    case(f"iota_remainder2_{t}", f"x:{t}[{n}]", f"i = {t}[{n}] iota(), iota_dimension=0\nk = {t}[] constant({n})\nb = {t}[{n}] broadcast(k), dimensions={{}}\nm = {t}[{n}] remainder(i, b)\nr = {t}[{n}] add(m, x)")
    case(f"iota_remainder3_{t}", f"x:{t}[{n}]", f"i = {t}[{n}] iota(), iota_dimension=0\nk = {t}[] constant({n + 3})\nb = {t}[{n}] broadcast(k), dimensions={{}}\na = {t}[{n}] add(i, b)\nm = {t}[{n}] remainder(a, b)\nr = {t}[{n}] add(m, x)")
OFF = "offset_dims={%s}, collapsed_slice_dims={%s}, start_index_map={%s}, index_vector_dim=%d, slice_sizes={%s}"
for name, pads, op_shape, out in (("lowhigh", "0_0x2_0x0_3", "8,4,5", "8,6,8"), ("interior", "0_0x1_1_1x0_0", "8,4,5", "8,9,5"), ("negative", "0_0x-1_1x0_0", "8,4,5", "8,4,5"),
                                  ("indexed_too", "1_0x1_1x0_0", "8,4,5", "9,6,5"), ("negative_only", "0_0x-1_0x0_0", "8,4,5", "8,3,5")):
    o = out.split(",")
    case(f"gather_pad2_{name}", f"x:f32[{op_shape}] v:f32[] i:s32[3,1]", f"p = f32[{out}] pad(x, v), padding={pads}\nr = f32[3,{o[1]},{o[2]}] gather(p, i), " + OFF % ("1,2", "0", "0", 1, f"1,{o[1]},{o[2]}"))
    case(f"gather_pad2_two_users_{name}", f"x:f32[{op_shape}] v:f32[] i:s32[3,1]", f"p = f32[{out}] pad(x, v), padding={pads}\ng = f32[3,{o[1]},{o[2]}] gather(p, i), " + OFF % ("1,2", "0", "0", 1, f"1,{o[1]},{o[2]}") + f"\nr = (f32[3,{o[1]},{o[2]}], f32[{out}]) tuple(g, p)")
case("gather_pad_part", "x:f32[8,4] v:f32[] i:s32[3,2]", "p = f32[8,6] pad(x, v), padding=0_0x1_1\nr = f32[3,3] gather(p, i), " + OFF % ("1", "0", "0,1", 1, "1,3"))
case("gather_pad_batch", "x:f32[2,8,4] v:f32[] i:s32[2,3,1]", "p = f32[2,8,6] pad(x, v), padding=0_0x0_0x1_1\nr = f32[2,3,6] gather(p, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,6}")
case("gather_pad_batch_padded", "x:f32[2,8,4] v:f32[] j:s32[2,3,1]", "z = s32[] constant(0)\ni = s32[4,3,1] pad(j, z), padding=1_1x0_0x0_0\np = f32[4,8,4] pad(x, v), padding=1_1x0_0x0_0\nr = f32[4,3,4] gather(p, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4}")
case("gather_pad_transposed_offset", "x:f32[8,4,5] v:f32[] i:s32[3,1]", "p = f32[8,6,5] pad(x, v), padding=0_0x1_1x0_0\nr = f32[6,3,5] gather(p, i), " + OFF % ("0,2", "0", "0", 1, "1,6,5"))
case("gather_reshape_pad_split_kept", "x:f32[8,4] v:f32[] i:s32[3,1]", "p = f32[8,6] pad(x, v), padding=0_0x1_1\nq = f32[2,4,6] reshape(p)\nr = f32[3,4,6] gather(q, i), " + OFF % ("1,2", "0", "0", 1, "1,4,6"))
case("gather_reshape_pad_merge", "x:f32[2,4,4] v:f32[] i:s32[3,1]", "p = f32[2,4,6] pad(x, v), padding=0_0x0_0x1_1\nq = f32[8,6] reshape(p)\nr = f32[3,6] gather(q, i), " + OFF % ("1", "0", "0", 1, "1,6"))
case("gather_reshape_pad_const", "x:f32[2,4,4] i:s32[3,1]", "v = f32[] constant(0)\np = f32[2,4,6] pad(x, v), padding=0_0x0_0x1_1\nq = f32[8,6] reshape(p)\nr = f32[3,6] gather(q, i), " + OFF % ("1", "0", "0", 1, "1,6"))
for name, a, dim, b in (("a", "6,4", 1, "3,8"), ("b", "6,4", 0, "3,8"), ("c", "2,3,4", 1, "6,4"), ("d", "2,3,4", 0, "6,4"), ("e", "2,3,4", 2, "2,12"), ("f", "2,3,4", 1, "2,12"),
                        ("g", "24", 0, "2,1,12"), ("h", "1,24", 1, "4,6"), ("i", "4,6", 1, "2,2,6"), ("j", "4,6", 0, "2,2,6"), ("k", "4,6", 0, "2,2,3,2"), ("l", "4,6", 1, "2,2,3,2"),
                        ("m", "4,6", 0, "24"), ("n", "4,6", 1, "24"), ("o", "4,6", 1, "6,4"), ("p", "8,3,2", 0, "2,2,2,6"), ("q", "3,1,4", 0, "3,4"), ("r", "3,1,4", 2, "12"), ("s", "3,4,1", 1, "12,1"), ("t", "12,1", 0, "3,4,1"), ("u", "2,6,5", 1, "2,2,3,5"), ("v", "2,6,5", 2, "2,2,3,5"), ("w", "2,6,5", 1, "12,5")):
    case(f"reshape_iota2_{name}", f"x:s32[{b}]", f"i = s32[{a}] iota(), iota_dimension={dim}\na = s32[{b}] reshape(i)\nr = s32[{b}] maximum(a, x)")
for t in ("f32", "bf16", "s32"):
    case(f"reshape_iota3_{t}", f"x:{t}[3,4]", f"i = {t}[12] iota(), iota_dimension=0\nr = {t}[3,4] reshape(i)")
for f in ("add", "max"):
    init = "0" if f == "add" else "-inf"
    for name, x, p, size, stride, n in (("small", "1,1", "2_2x0_0", "2x1", "1x1", "4,1"), ("stride", "1,4", "2_2x0_0", "3x1", "2x1", "2,4"), ("cover", "1,4", "2_2x0_0", "5x1", "1x1", "1,4"),
                                        ("wide", "1,4", "1_1x0_0", "3x1", "1x1", "1,4"), ("two", "2,4", "1_1x0_0", "3x1", "1x1", "2,4"), ("uneven", "1,4", "1_2x0_0", "2x1", "1x1", "3,4"),
                                        ("other", "1,4", "1_1x1_1", "2x2", "1x1", "2,5"), ("kept", "1,4", "1_1x0_0", "2x1", "1x1", "2,4"), ("unpadded", "1,4", "0_0x0_0", "1x1", "1x1", "1,4")):
        px = [int(v) for v in x.split(",")]
        pp = [tuple(int(w) for w in v.split("_")) for v in p.split("x")]
        d = ",".join(str(a + lo + hi) for a, (lo, hi) in zip(px, pp))
        case(f"window_one_{name}_{f}", f"x:f32[{x}]", f"i = f32[] constant({init})\np = f32[{d}] pad(x, i), padding={p}\nr = f32[{n}] reduce-window(p, i), window={{size={size} stride={stride}}}, to_apply={f}.f32")
    case(f"window_one_nopad_{f}", "x:f32[1,4]", f"i = f32[] constant({init})\nr = f32[3,4] reduce-window(x, i), window={{size=3x1 pad=2_2x0_0}}, to_apply={f}.f32")
    case(f"window_one_init_{f}", "x:f32[1,4] i:f32[]", f"p = f32[5,4] pad(x, i), padding=2_2x0_0\nr = f32[3,4] reduce-window(p, i), window={{size=3x1}}, to_apply={f}.f32")
    case(f"window_one_3d_{f}", "x:f32[2,1,4]", f"i = f32[] constant({init})\np = f32[2,5,4] pad(x, i), padding=0_0x2_2x0_0\nr = f32[2,3,4] reduce-window(p, i), window={{size=1x3x1}}, to_apply={f}.f32")
    case(f"window_one_3d2_{f}", "x:f32[1,1,4]", f"i = f32[] constant({init})\np = f32[5,5,4] pad(x, i), padding=2_2x2_2x0_0\nr = f32[3,3,4] reduce-window(p, i), window={{size=3x3x1}}, to_apply={f}.f32")
    case(f"window_one_convert_{f}", "x:bf16[1,4]", f"j = bf16[] constant({init})\ni = f32[] constant({init})\np = bf16[5,4] pad(x, j), padding=2_2x0_0\nq = f32[5,4] convert(p)\nr = f32[3,4] reduce-window(q, i), window={{size=3x1}}, to_apply={f}.f32")
    for n, pad, size, out in ((6, "5_0", 6, 6), (6, "3_0", 4, 6), (6, "1_1", 2, 7), (16, "1_0", 2, 16), (30, "1_0", 2, 30), (30, "3_3", 7, 30)):
        lo, hi = (int(v) for v in pad.split("_"))
        case(f"window_convert2_{f}_{n}_{pad}_{size}", f"x:bf16[{n}]", f"j = bf16[] constant({init})\ni = f32[] constant({init})\np = bf16[{n + lo + hi}] pad(x, j), padding={pad}\nq = f32[{n + lo + hi}] convert(p)\nr = f32[{n + lo + hi - size + 1}] reduce-window(q, i), window={{size={size}}}, to_apply={f}.f32")
        case(f"window_pad2_{f}_{n}_{pad}_{size}", f"x:f32[{n}]", f"i = f32[] constant({init})\nq = f32[{n + lo + hi}] pad(x, i), padding={pad}\nr = f32[{n + lo + hi - size + 1}] reduce-window(q, i), window={{size={size}}}, to_apply={f}.f32")
    case(f"window_pad_used_{f}", "x:f32[6]", f"i = f32[] constant({init})\np = f32[8] pad(x, i), padding=1_1\nw = f32[7] reduce-window(p, i), window={{size=2}}, to_apply={f}.f32\nr = (f32[7], f32[8]) tuple(w, p)")
    case(f"window_pad_other_value_{f}", "x:f32[6]", f"i = f32[] constant({init})\nj = f32[] constant(3)\np = f32[8] pad(x, j), padding=1_1\nr = f32[7] reduce-window(p, i), window={{size=2}}, to_apply={f}.f32")
    case(f"window_pad_dilated_{f}", "x:f32[6]", f"i = f32[] constant({init})\np = f32[11] pad(x, i), padding=0_0_1\nr = f32[10] reduce-window(p, i), window={{size=2}}, to_apply={f}.f32")
    case(f"window_pad_negative_{f}", "x:f32[6]", f"i = f32[] constant({init})\np = f32[6] pad(x, i), padding=-1_1\nr = f32[5] reduce-window(p, i), window={{size=2}}, to_apply={f}.f32")
for name, body in (
    ("types", "j = s64[] convert(i)\nz = s64[] constant(0)\nw = s32[] constant(0)\na = f32[8,8] dynamic-slice(x, i, w), dynamic_slice_sizes={8,8}\nr = f32[2,8] dynamic-slice(a, j, z), dynamic_slice_sizes={2,8}"),
    ("const_outer", "k = s32[] constant(3)\nz = s32[] constant(0)\na = f32[8,8] dynamic-slice(x, i, z), dynamic_slice_sizes={8,8}\nr = f32[2,8] dynamic-slice(a, k, z), dynamic_slice_sizes={2,8}"),
    ("used", "z = s32[] constant(0)\na = f32[8,8] dynamic-slice(x, i, z), dynamic_slice_sizes={8,8}\nb = f32[2,8] dynamic-slice(a, i, z), dynamic_slice_sizes={2,8}\nr = (f32[8,8], f32[2,8]) tuple(a, b)"),
    ("both", "a = f32[8,4] dynamic-slice(x, i, i), dynamic_slice_sizes={8,4}\nr = f32[2,2] dynamic-slice(a, i, i), dynamic_slice_sizes={2,2}"),
    ("reshape", "z = s32[] constant(0)\na = f32[1,8] dynamic-slice(x, i, z), dynamic_slice_sizes={1,8}\nb = f32[8] reshape(a)\nr = f32[2] dynamic-slice(b, i), dynamic_slice_sizes={2}"),
):
    case(f"ds_ds_{name}", "x:f32[16,8] i:s32[]", body)
D2 = "lhs_contracting_dims={%s}, rhs_contracting_dims={%s}"
case("dot_transposes_other", "x:f32[4,8] y:f32[8,6]", "a = f32[8,4] transpose(x), dimensions={1,0}\nb = f32[6,8] transpose(y), dimensions={1,0}\nr = f32[4,6] dot(a, b), " + D2 % ("0", "1"))
case("dot_transposes_left", "x:f32[8,4] y:f32[8,6]", "a = f32[4,8] transpose(x), dimensions={1,0}\nr = f32[4,6] dot(a, y), " + D2 % ("1", "0"))
case("dot_transposes_used", "x:f32[8,4] y:f32[6,8]", "a = f32[4,8] transpose(x), dimensions={1,0}\nb = f32[8,6] transpose(y), dimensions={1,0}\nd = f32[4,6] dot(a, b), " + D2 % ("1", "0") + "\nr = (f32[4,6], f32[4,8]) tuple(d, a)")
case("dot_transposes_free2", "x:f32[8,4,5] y:f32[6,8]", "a = f32[4,5,8] transpose(x), dimensions={1,2,0}\nb = f32[8,6] transpose(y), dimensions={1,0}\nr = f32[4,5,6] dot(a, b), " + D2 % ("2", "0"))
case("dot_transposes_con2", "x:f32[8,5,4] y:f32[6,8,5]", "a = f32[4,8,5] transpose(x), dimensions={2,0,1}\nb = f32[8,5,6] transpose(y), dimensions={1,2,0}\nr = f32[4,6] dot(a, b), " + D2 % ("1,2", "0,1"))
case("dot_transposes_s32", "x:s32[8,4] y:s32[6,8]", "a = s32[4,8] transpose(x), dimensions={1,0}\nb = s32[8,6] transpose(y), dimensions={1,0}\nr = s32[4,6] dot(a, b), " + D2 % ("1", "0"))
case("dot_transposes_precision", "x:f32[8,4] y:f32[6,8]", "a = f32[4,8] transpose(x), dimensions={1,0}\nb = f32[8,6] transpose(y), dimensions={1,0}\nr = f32[4,6] dot(a, b), operand_precision={high,highest}, " + D2 % ("1", "0"))
B3 = "lhs_batch_dims={%s}, rhs_batch_dims={%s}, lhs_contracting_dims={%s}, rhs_contracting_dims={%s}"
case("dot_transposes_batches", "x:f32[3,2,4,8] y:f32[3,2,8,6]", "a = f32[2,3,4,8] transpose(x), dimensions={1,0,2,3}\nb = f32[2,3,8,6] transpose(y), dimensions={1,0,2,3}\nr = f32[2,3,4,6] dot(a, b), " + B3 % ("0,1", "0,1", "3", "2"))
case("dot_transposes_batches_swap", "x:f32[3,2,8,4] y:f32[3,2,6,8]", "a = f32[2,3,4,8] transpose(x), dimensions={1,0,3,2}\nb = f32[2,3,8,6] transpose(y), dimensions={1,0,3,2}\nr = f32[2,3,4,6] dot(a, b), " + B3 % ("0,1", "0,1", "3", "2"))
case("dot_transposes_differ", "x:f32[3,2,4,8] y:f32[3,2,6,8]", "a = f32[2,3,4,8] transpose(x), dimensions={1,0,2,3}\nb = f32[2,3,8,6] transpose(y), dimensions={1,0,3,2}\nr = f32[2,3,4,6] dot(a, b), " + B3 % ("0,1", "0,1", "3", "2"))
case("dot_transposes_batch_last", "x:f32[8,4,2] y:f32[8,6,2]", "a = f32[2,4,8] transpose(x), dimensions={2,1,0}\nb = f32[2,8,6] transpose(y), dimensions={2,0,1}\nr = f32[2,4,6] dot(a, b), " + B3 % ("0", "0", "2", "1"))
for name, x, u, idx, y in (("add_front", "8,4", "2,4", "i, z", "1,8,4"), ("add_middle", "8,4", "2,4", "i, z", "8,1,4"), ("add_back", "8,4", "2,4", "i, z", "8,4,1"), ("drop_middle", "8,1,4", "2,1,4", "i, z, z", "8,4"),
                           ("drop_indexed", "8,1,4", "2,1,4", "i, i, z", "8,4"), ("drop_two", "1,8,1,4", "1,2,1,4", "z, i, z, z", "8,4"), ("move", "1,8,4", "1,2,4", "z, i, z", "8,1,4"), ("all_one", "1,8", "1,1", "z, i", "8"), ("ones_update", "8,4", "1,1", "i, i", "1,8,4")):
    case(f"reshape_dus2_{name}", f"x:f32[{x}] u:f32[{u}] i:s32[]", f"z = s32[] constant(0)\nd = f32[{x}] dynamic-update-slice(x, u, {idx})\nr = f32[{y}] reshape(d)")
case("reshape_dus_used", "x:f32[8,4] u:f32[2,4] i:s32[]", "z = s32[] constant(0)\nd = f32[8,4] dynamic-update-slice(x, u, i, z)\na = f32[1,8,4] reshape(d)\nr = (f32[1,8,4], f32[8,4]) tuple(a, d)")
case("sink_select_scalar", "x:f32[4] p:pred[] y:f32[4]", "a = f32[2,4] broadcast(x), dimensions={1}\nb = pred[2,4] broadcast(p), dimensions={}\nc = f32[2,4] broadcast(y), dimensions={1}\nr = f32[2,4] select(b, a, c)")
case("sink_select_pred_only", "x:f32[] p:pred[4] y:f32[]", "a = f32[2,4] broadcast(x), dimensions={}\nb = pred[2,4] broadcast(p), dimensions={1}\nc = f32[2,4] broadcast(y), dimensions={}\nr = f32[2,4] select(b, a, c)")
case("sink_compare_scalar", "x:f32[4] y:f32[]", "a = f32[2,4] broadcast(x), dimensions={1}\nb = f32[2,4] broadcast(y), dimensions={}\nr = pred[2,4] compare(a, b), direction=LT")
case("sas_empty", "x:f32[4,0] s:f32[2,0] v:f32[]", "ge {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=GE\n}\n\nr = f32[4,0] select-and-scatter(x, s, v), window={size=2x1 stride=2x1}, select=ge, scatter=add.f32")
case("sas_no_source", "x:f32[1,4] s:f32[0,4] v:f32[]", "ge {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=GE\n}\n\nr = f32[1,4] select-and-scatter(x, s, v), window={size=2x1 stride=2x1}, select=ge, scatter=add.f32")
case("xor_self", "x:s32[4]", "r = s32[4] xor(x, x)")
case("and_self", "x:s32[4]", "r = s32[4] and(x, x)")
case("or_self", "x:s32[4]", "r = s32[4] or(x, x)")
case("min_clamp_scalars", "x:s32[]", "a = s32[] constant(3)\nb = s32[] constant(9)\nr = s32[] clamp(a, x, b)")
case("clamp_const", "x:f32[4]", "a = f32[] constant(3)\nb = f32[] constant(9)\nc = f32[4] clamp(a, x, b)\nr = f32[4] clamp(a, c, b)")
case("select_bcast_pred", "p:pred[] x:f32[4] y:f32[4]", "b = pred[4] broadcast(p), dimensions={}\nr = f32[4] select(b, x, y)")
case("select_select", "p:pred[4] q:pred[4] x:f32[4] y:f32[4]", "a = f32[4] select(p, x, y)\nr = f32[4] select(p, a, y)")
case("tan_convert", "x:bf16[4]", "a = f32[4] convert(x)\nb = f32[4] tanh(a)\nr = bf16[4] convert(b)")
case("convert_convert", "x:bf16[4]", "a = f32[4] convert(x)\nr = f64[4] convert(a)")
case("convert_iota", "x:f32[4]", "a = s32[4] iota(), iota_dimension=0\nb = f32[4] convert(a)\nr = f32[4] add(b, x)")
case("convert_constant", "x:f32[4]", "a = s32[4] constant({3,1,4,1})\nb = f32[4] convert(a)\nr = f32[4] add(b, x)")
case("convert_broadcast", "x:s32[4] y:f32[2,4]", "a = s32[2,4] broadcast(x), dimensions={1}\nb = f32[2,4] convert(a)\nr = f32[2,4] add(b, y)")
case("negate_sub", "x:f32[4] y:f32[4]", "a = f32[4] subtract(x, y)\nr = f32[4] negate(a)")
case("negate_const_mul", "x:f32[4]", "k = f32[] constant(3)\nb = f32[4] broadcast(k), dimensions={}\na = f32[4] multiply(x, b)\nr = f32[4] negate(a)")
case("add_negate", "x:f32[4] y:f32[4]", "a = f32[4] negate(y)\nr = f32[4] add(x, a)")
case("sub_negate", "x:f32[4] y:f32[4]", "a = f32[4] negate(y)\nr = f32[4] subtract(x, a)")
case("mul_minus_one", "x:f32[4]", "k = f32[] constant(-1)\nb = f32[4] broadcast(k), dimensions={}\nr = f32[4] multiply(x, b)")
case("zero_minus", "x:f32[4]", "k = f32[] constant(0)\nb = f32[4] broadcast(k), dimensions={}\nr = f32[4] subtract(b, x)")
case("add_self", "x:f32[4]", "r = f32[4] add(x, x)")
case("div_self", "x:f32[4]", "r = f32[4] divide(x, x)")
case("mul_div", "x:f32[4] y:f32[4]", "a = f32[4] divide(x, y)\nr = f32[4] multiply(a, y)")
case("mul_recip", "x:f32[4] y:f32[4]", "k = f32[] constant(1)\nb = f32[4] broadcast(k), dimensions={}\na = f32[4] divide(b, y)\nr = f32[4] multiply(x, a)")
case("pow_pow", "x:f32[4] y:f32[4] z:f32[4]", "a = f32[4] power(x, y)\nr = f32[4] power(a, z)")
case("mul_pow", "x:f32[4] y:f32[4] z:f32[4]", "a = f32[4] power(x, y)\nb = f32[4] power(x, z)\nr = f32[4] multiply(a, b)")
case("sqrt_mul", "x:f32[4] y:f32[4]", "a = f32[4] sqrt(x)\nb = f32[4] sqrt(y)\nr = f32[4] multiply(a, b)")
case("rsqrt_sqrt", "x:f32[4]", "a = f32[4] rsqrt(x)\nb = f32[4] sqrt(x)\nr = f32[4] multiply(a, b)")
case("rsqrt_rsqrt", "x:f32[4]", "a = f32[4] rsqrt(x)\nr = f32[4] multiply(a, a)")
case("x_times_rsqrt", "x:f32[4]", "a = f32[4] rsqrt(x)\nr = f32[4] multiply(a, x)")
case("x_over_sqrt", "x:f32[4]", "a = f32[4] sqrt(x)\nr = f32[4] divide(x, a)")
case("log1p_expm1", "x:f32[4]", "a = f32[4] exponential-minus-one(x)\nr = f32[4] log-plus-one(a)")
case("exp_log", "x:f32[4]", "a = f32[4] log(x)\nr = f32[4] exponential(a)")
case("log_of_product", "x:f32[4] y:f32[4]", "a = f32[4] multiply(x, y)\nr = f32[4] log(a)")
case("floor_floor", "x:f32[4]", "a = f32[4] floor(x)\nr = f32[4] floor(a)")
case("sign_abs", "x:f32[4]", "a = f32[4] sign(x)\nb = f32[4] abs(x)\nr = f32[4] multiply(a, b)")
case("not_compare", "x:f32[4] y:f32[4]", "a = pred[4] compare(x, y), direction=LT\nr = pred[4] not(a)")
case("not_compare_s32", "x:s32[4] y:s32[4]", "a = pred[4] compare(x, y), direction=LT\nr = pred[4] not(a)")
case("shift_zero", "x:s32[4]", "k = s32[] constant(0)\nb = s32[4] broadcast(k), dimensions={}\nr = s32[4] shift-left(x, b)")
case("shift_shift", "x:s32[4]", "k = s32[] constant(2)\nb = s32[4] broadcast(k), dimensions={}\na = s32[4] shift-left(x, b)\nr = s32[4] shift-left(a, b)")
case("popcnt_not", "x:s32[4]", "a = s32[4] not(x)\nr = s32[4] popcnt(a)")
case("is_finite_convert", "x:bf16[4]", "a = f32[4] convert(x)\nr = pred[4] is-finite(a)")
case("max_zero_exp", "x:f32[4]", "a = f32[4] exponential(x)\nk = f32[] constant(0)\nb = f32[4] broadcast(k), dimensions={}\nr = f32[4] maximum(a, b)")
case("max_iota_zero", "x:s32[4]", "a = s32[4] iota(), iota_dimension=0\nk = s32[] constant(0)\nb = s32[4] broadcast(k), dimensions={}\nm = s32[4] maximum(a, b)\nr = s32[4] add(m, x)")
case("abs_iota", "x:s32[4]", "a = s32[4] iota(), iota_dimension=0\nm = s32[4] abs(a)\nr = s32[4] add(m, x)")
case("and_iota_one", "x:s32[2]", "a = s32[2] iota(), iota_dimension=0\nk = s32[] constant(1)\nb = s32[2] broadcast(k), dimensions={}\nm = s32[2] and(a, b)\nr = s32[2] add(m, x)")
case("compare_iota", "x:s32[4]", "a = s32[4] iota(), iota_dimension=0\nk = s32[] constant(4)\nb = s32[4] broadcast(k), dimensions={}\nr = pred[4] compare(a, b), direction=LT")
case("compare_iota_negative", "x:s32[4]", "a = s32[4] iota(), iota_dimension=0\nk = s32[] constant(-1)\nb = s32[4] broadcast(k), dimensions={}\nr = pred[4] compare(a, b), direction=GT")
case("select_iota_zero", "x:f32[4] y:f32[4]", "a = s32[4] iota(), iota_dimension=0\nk = s32[] constant(0)\nb = s32[4] broadcast(k), dimensions={}\nc = pred[4] compare(a, b), direction=GE\nr = f32[4] select(c, x, y)")
case("dus_zero_broadcast_add_twice", "x:f32[8] u:f32[2] i:s32[]", "k = f32[] constant(0)\nz = f32[8] broadcast(k), dimensions={}\nd = f32[8] dynamic-update-slice(z, u, i)\na = f32[8] add(x, d)\nr = f32[8] add(a, d)")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, parameters, body in CASES:
        (folder / f"{name}.hlo").write_text(text_of(name, parameters, body))
    print(len(list(folder.glob("*.hlo"))), "modules in", folder)


if __name__ == "__main__":
    main()
