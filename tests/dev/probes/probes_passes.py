#!/usr/bin/env python3
"""Writes small modules for the passes besides algsimp, each a pass's rule or what just misses it:

  probes_passes.py DIR

Then as for probes.py (`oracle_compile.py`, with `--flags=--xla_enable_hlo_passes_only=PASS` for what earlier passes hide,
and `agreement.py`)."""
import re

import probes_rules
from probes_rules import case

probes_rules.CASES.clear()


def fn(name, parameters, body):
    """A computation of its own, for the front of a case's body."""
    of_tuples = re.sub(r"\([^)]*\)", lambda m: m[0].replace(" ", ""), parameters)
    lines = [f"  {p.split(':')[0]} = {p.split(':')[1]} parameter({n})" for n, p in enumerate(of_tuples.split())]
    body_lines = [l.strip() for l in body.strip().split("\n") if l.strip()]
    body_lines[-1] = "ROOT " + body_lines[-1]
    return f"{name} {{\n" + "\n".join(lines + ["  " + l for l in body_lines]) + "\n}\n\n"


# --- constant_folding ---
K4 = "k = f32[4] constant({3,1,4,1})\nm = f32[4] constant({5,9,2,6})\n"
for op in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "atan2"):
    case(f"fold_{op}", "x:f32[4]", K4 + f"a = f32[4] {op}(k, m)\nr = f32[4] add(a, x)")
for op in ("negate", "abs", "exponential", "log", "sine", "cosine", "tanh", "sqrt", "rsqrt", "floor", "ceil", "sign", "logistic", "cbrt", "round-nearest-even", "tan", "erf", "log-plus-one", "exponential-minus-one"):
    case(f"fold_{op}", "x:f32[4]", K4 + f"a = f32[4] {op}(k)\nr = f32[4] add(a, x)")
for t in ("s32", "u8", "pred", "bf16", "f16", "f64", "s8", "u64", "c64"):
    case(f"fold_convert_{t}", f"x:{t}[4]", f"k = f32[4] constant({{3,1,4,1.5}})\na = {t}[4] convert(k)\nr = {t}[4] {'or' if t == 'pred' else 'add'}(a, x)")
for t in ("s32", "u32", "s8"):
    for op in ("add", "subtract", "multiply", "divide", "remainder", "and", "or", "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"):
        case(f"fold_{op}_{t}", f"x:{t}[4]", f"k = {t}[4] constant({{{'-3' if t[0] == 's' else '3'},1,4,0}})\nm = {t}[4] constant({{5,9,0,2}})\na = {t}[4] {op}(k, m)\nr = {t}[4] add(a, x)")
case("fold_compare", "x:pred[4]", K4 + "a = pred[4] compare(k, m), direction=LT\nr = pred[4] or(a, x)")
case("fold_select", "x:f32[4]", K4 + "p = pred[4] constant({1,0,1,0})\na = f32[4] select(p, k, m)\nr = f32[4] add(a, x)")
case("fold_clamp", "x:f32[4]", K4 + "l = f32[] constant(2)\nh = f32[] constant(3)\na = f32[4] clamp(l, k, h)\nr = f32[4] add(a, x)")
case("fold_reduce", "x:f32[]", K4 + "z = f32[] constant(0)\na = f32[] reduce(k, z), dimensions={0}, to_apply=add.f32\nr = f32[] add(a, x)")
case("fold_dot", "x:f32[]", K4 + "a = f32[] dot(k, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}\nr = f32[] add(a, x)")
case("fold_transpose", "x:f32[3,2]", "k = f32[2,3] constant({{3,1,4},{1,5,9}})\na = f32[3,2] transpose(k), dimensions={1,0}\nr = f32[3,2] add(a, x)")
case("fold_reshape", "x:f32[3,2]", "k = f32[2,3] constant({{3,1,4},{1,5,9}})\na = f32[3,2] reshape(k)\nr = f32[3,2] add(a, x)")
case("fold_slice", "x:f32[2]", K4 + "a = f32[2] slice(k), slice={[1:3]}\nr = f32[2] add(a, x)")
case("fold_pad", "x:f32[6]", K4 + "z = f32[] constant(7)\na = f32[6] pad(k, z), padding=1_1\nr = f32[6] add(a, x)")
case("fold_pad_spread", "x:f32[6]", "z = f32[] constant(7)\nk = f32[4] broadcast(z), dimensions={}\na = f32[6] pad(k, z), padding=1_1\nr = f32[6] add(a, x)")
case("fold_concat", "x:f32[8]", K4 + "a = f32[8] concatenate(k, m), dimensions={0}\nr = f32[8] add(a, x)")
case("fold_reverse", "x:f32[4]", K4 + "a = f32[4] reverse(k), dimensions={0}\nr = f32[4] add(a, x)")
case("fold_ds", "x:f32[2]", K4 + "i = s32[] constant(3)\na = f32[2] dynamic-slice(k, i), dynamic_slice_sizes={2}\nr = f32[2] add(a, x)")
case("fold_dus", "x:f32[4]", K4 + "i = s32[] constant(3)\nu = f32[2] constant({7,8})\na = f32[4] dynamic-update-slice(k, u, i)\nr = f32[4] add(a, x)")
case("fold_iota", "x:s32[4]", "i = s32[4] iota(), iota_dimension=0\nk = s32[4] constant({3,1,4,1})\na = s32[4] multiply(i, k)\nr = s32[4] add(a, x)")
case("fold_iota_alone", "x:f32[4]", "i = s32[4] iota(), iota_dimension=0\na = f32[4] convert(i)\nr = f32[4] add(a, x)")
case("fold_broadcasts", "x:f32[4]", "k = f32[] constant(3)\nb = f32[4] broadcast(k), dimensions={}\nc = f32[4] sine(b)\nr = f32[4] add(c, x)")
case("fold_broadcast_mixed", "x:f32[4]", "k = f32[] constant(3)\nb = f32[4] broadcast(k), dimensions={}\nm = f32[4] constant({5,9,2,6})\nc = f32[4] multiply(b, m)\nr = f32[4] add(c, x)")
case("fold_map", "x:f32[4]", fn("f", "a:f32[] b:f32[]", "c = f32[] add(a, b)\nd = f32[] sine(c)") + K4 + "a = f32[4] map(k, m), dimensions={0}, to_apply=f\nr = f32[4] add(a, x)")
case("fold_call", "x:f32[4]", fn("f", "a:f32[4] b:f32[4]", "c = f32[4] add(a, b)") + K4 + "a = f32[4] call(k, m), to_apply=f\nr = f32[4] add(a, x)")
case("fold_conditional", "x:f32[4]", fn("f", "a:f32[4]", "c = f32[4] sine(a)") + fn("g", "a:f32[4]", "c = f32[4] cosine(a)") + K4 + "p = pred[] constant(true)\na = f32[4] conditional(p, k, m), true_computation=f, false_computation=g\nr = f32[4] add(a, x)")
case("fold_sort", "x:f32[4]", fn("less", "a:f32[] b:f32[]", "c = pred[] compare(a, b), direction=LT") + K4 + "a = f32[4] sort(k), dimensions={0}, to_apply=less\nr = f32[4] add(a, x)")
case("fold_gather", "x:f32[2]", K4 + "i = s32[2] constant({3,0})\na = f32[2] gather(k, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\nr = f32[2] add(a, x)")
case("fold_scatter", "x:f32[4]", K4 + "i = s32[2,1] constant({{3},{0}})\nu = f32[2] constant({7,8})\na = f32[4] scatter(k, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add.f32\nr = f32[4] add(a, x)")
case("fold_conv", "x:f32[1,3,1]", "k = f32[1,4,1] constant({{{1},{2},{3},{4}}})\nm = f32[2,1,1] constant({{{5}},{{6}}})\na = f32[1,3,1] convolution(k, m), window={size=2}, dim_labels=b0f_0io->b0f\nr = f32[1,3,1] add(a, x)")
case("fold_window", "x:f32[3]", K4 + "z = f32[] constant(0)\na = f32[3] reduce-window(k, z), window={size=2}, to_apply=add.f32\nr = f32[3] add(a, x)")
case("fold_big", "x:f32[3000,3000]", "k = f32[] constant(3)\nb = f32[3000,3000] broadcast(k), dimensions={}\ni = f32[3000,3000] iota(), iota_dimension=0\nc = f32[3000,3000] power(b, i)\nr = f32[3000,3000] add(c, x)")
case("fold_bitcast_convert", "x:s32[4]", K4 + "a = s32[4] bitcast-convert(k)\nr = s32[4] add(a, x)")
case("fold_complex", "x:c64[4]", K4 + "a = c64[4] complex(k, m)\nr = c64[4] add(a, x)")
case("fold_rng_bits", "x:u32[4]", "k = u64[2] constant({3,1})\na = (u64[2], u32[4]) rng-bit-generator(k), algorithm=rng_default\nb = u32[4] get-tuple-element(a), index=1\nr = u32[4] add(b, x)")
case("fold_fft", "x:c64[4]", K4 + "a = c64[4] complex(k, m)\nb = c64[4] fft(a), fft_type=FFT, fft_length={4}\nr = c64[4] add(b, x)")
case("fold_while", "x:s32[]", fn("b", "s:(s32[])", "i = s32[] get-tuple-element(s), index=0\none = s32[] constant(2)\nn = s32[] add(i, one)\nr = (s32[]) tuple(n)") + fn("c", "s:(s32[])", "i = s32[] get-tuple-element(s), index=0\nl = s32[] constant(9)\nr = pred[] compare(i, l), direction=LT") + "z = s32[] constant(0)\nt = (s32[]) tuple(z)\nw = (s32[]) while(t), condition=c, body=b\ng = s32[] get-tuple-element(w), index=0\nr = s32[] add(g, x)")
case("fold_param_constant", "x:f32[4]", fn("f", "a:f32[4] b:f32[4]", "s = f32[4] sine(b)\nc = f32[4] add(a, s)") + K4 + "a = f32[4] call(x, m), to_apply=f\nb = f32[4] call(k, m), to_apply=f\nr = f32[4] add(a, b)")
case("fold_param_constant_both", "x:f32[4]", fn("f", "a:f32[4] b:f32[4]", "s = f32[4] sine(b)\nc = f32[4] add(a, s)") + K4 + "a = f32[4] call(k, m), to_apply=f\nr = f32[4] add(a, x)")
case("fold_tuple_select", "x:f32[4]", K4 + "t = (f32[4], f32[4]) tuple(k, m)\na = f32[4] get-tuple-element(t), index=1\nb = f32[4] sine(a)\nr = f32[4] add(b, x)")
case("fold_dead_operand", "x:f32[4]", K4 + "a = f32[4] sine(k)\nb = f32[4] add(a, m)\nr = f32[4] add(b, x)")

# --- cse ---
case("cse_twice", "x:f32[4] y:f32[4]", "a = f32[4] add(x, y)\nb = f32[4] add(x, y)\nr = f32[4] multiply(a, b)")
case("cse_commuted", "x:f32[4] y:f32[4]", "a = f32[4] add(x, y)\nb = f32[4] add(y, x)\nr = f32[4] multiply(a, b)")
case("cse_not_commuted", "x:f32[4] y:f32[4]", "a = f32[4] subtract(x, y)\nb = f32[4] subtract(y, x)\nr = f32[4] multiply(a, b)")
case("cse_chain", "x:f32[4]", "a = f32[4] sine(x)\nb = f32[4] sine(x)\nc = f32[4] cosine(a)\nd = f32[4] cosine(b)\nr = f32[4] multiply(c, d)")
case("cse_constants", "x:f32[4]", "k = f32[4] constant({3,1,4,1})\nm = f32[4] constant({3,1,4,1})\na = f32[4] add(x, k)\nb = f32[4] divide(a, m)\nr = f32[4] power(b, k)")
case("cse_constants_types", "x:f32[4]", "k = f32[] constant(1)\nm = s32[] constant(1)\nc = f32[] convert(m)\na = f32[4] broadcast(k), dimensions={}\nb = f32[4] broadcast(c), dimensions={}\nd = f32[4] add(x, a)\nr = f32[4] power(d, b)")
case("cse_iotas", "x:s32[4] y:s32[4]", "i = s32[4] iota(), iota_dimension=0\nj = s32[4] iota(), iota_dimension=0\na = s32[4] add(i, x)\nb = s32[4] add(j, x)\nr = s32[4] multiply(a, b)")
case("cse_iota_operands", "x:s32[4]", "i = s32[4] iota(), iota_dimension=0\nj = s32[4] iota(), iota_dimension=0\na = s32[4] power(i, j)\nr = s32[4] add(a, x)")
case("cse_reduce", "x:f32[3,4]", "z = f32[] constant(0)\na = f32[3] reduce(x, z), dimensions={1}, to_apply=add.f32\nb = f32[3] reduce(x, z), dimensions={1}, to_apply=add.f32\nr = f32[3] multiply(a, b)")
case("cse_reduce_copies", "x:f32[3,4]", fn("f", "a:f32[] b:f32[]", "c = f32[] add(a, b)") + fn("g", "a:f32[] b:f32[]", "c = f32[] add(a, b)") + "z = f32[] constant(0)\na = f32[3] reduce(x, z), dimensions={1}, to_apply=f\nb = f32[3] reduce(x, z), dimensions={1}, to_apply=g\nr = f32[3] multiply(a, b)")
case("cse_reduce_swapped", "x:f32[3,4]", fn("f", "a:f32[] b:f32[]", "c = f32[] add(a, b)") + fn("g", "a:f32[] b:f32[]", "c = f32[] add(b, a)") + "z = f32[] constant(0)\na = f32[3] reduce(x, z), dimensions={1}, to_apply=f\nb = f32[3] reduce(x, z), dimensions={1}, to_apply=g\nr = f32[3] multiply(a, b)")
case("cse_rng", "", "a = f32[] constant(0)\nb = f32[] constant(1)\ng = f32[4] rng(a, b), distribution=rng_uniform\nh = f32[4] rng(a, b), distribution=rng_uniform\nr = f32[4] subtract(g, h)")
case("cse_dots_precision", "x:f32[4,4]", "a = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}\nb = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nr = f32[4,4] subtract(a, b)")
case("cse_gte", "x:f32[4] y:f32[4]", "t = (f32[4], f32[4]) opt-barrier(x, y)\na = f32[4] get-tuple-element(t), index=0\nb = f32[4] get-tuple-element(t), index=0\nr = f32[4] subtract(a, b)".replace("opt-barrier(x, y)", "tuple(x, y)"))
case("cse_slices", "x:f32[8]", "a = f32[4] slice(x), slice={[0:4]}\nb = f32[4] slice(x), slice={[0:4]}\nc = f32[4] slice(x), slice={[4:8]}\nd = f32[4] subtract(a, c)\nr = f32[4] power(d, b)")
case("cse_while", "x:f32[4]", fn("bo", "s:(s32[], f32[4])", "i = s32[] get-tuple-element(s), index=0\none = s32[] constant(1)\nn = s32[] add(i, one)\na = f32[4] get-tuple-element(s), index=1\nc = f32[4] sine(a)\nr = (s32[], f32[4]) tuple(n, c)") + fn("co", "s:(s32[], f32[4])", "i = s32[] get-tuple-element(s), index=0\nl = s32[] constant(9)\nr = pred[] compare(i, l), direction=LT")
     + "z = s32[] constant(0)\nt = (s32[], f32[4]) tuple(z, x)\nv = (s32[], f32[4]) while(t), condition=co, body=bo\nw = (s32[], f32[4]) while(t), condition=co, body=bo\na = f32[4] get-tuple-element(v), index=1\nb = f32[4] get-tuple-element(w), index=1\nr = f32[4] subtract(a, b)")
case("cse_custom_call", "x:f32[4]", 'a = f32[4] custom-call(x), custom_call_target="foo"\nb = f32[4] custom-call(x), custom_call_target="foo"\nr = f32[4] subtract(a, b)')
case("cse_custom_call_effect", "x:f32[4]", 'a = f32[4] custom-call(x), custom_call_target="foo", custom_call_has_side_effect=true\nb = f32[4] custom-call(x), custom_call_target="foo", custom_call_has_side_effect=true\nr = f32[4] subtract(a, b)')

# --- tuples ---
case("tuple_back", "x:(f32[4], s32[])", "a = f32[4] get-tuple-element(x), index=0\nb = s32[] get-tuple-element(x), index=1\nr = (f32[4], s32[]) tuple(a, b)")
case("tuple_swapped", "x:(f32[4], f32[4])", "a = f32[4] get-tuple-element(x), index=0\nb = f32[4] get-tuple-element(x), index=1\nr = (f32[4], f32[4]) tuple(b, a)")
case("tuple_part", "x:(f32[4], f32[4], s32[])", "a = f32[4] get-tuple-element(x), index=0\nb = f32[4] get-tuple-element(x), index=1\nr = (f32[4], f32[4]) tuple(a, b)")
case("tuple_nested", "x:f32[4] y:f32[4]", "t = (f32[4], f32[4]) tuple(x, y)\nu = ((f32[4], f32[4]), f32[4]) tuple(t, x)\ng = (f32[4], f32[4]) get-tuple-element(u), index=0\na = f32[4] get-tuple-element(g), index=1\nr = f32[4] sine(a)")
case("tuple_incompatible", "x:(f32[4], f32[4])", "a = f32[4] get-tuple-element(x), index=0\nr = (f32[4], f32[4]) tuple(a, a)")

# --- sorts ---
LT = fn("less", "a:f32[] b:f32[] v:s32[] w:s32[]", "c = pred[] compare(a, b), direction=LT")
LT2 = fn("less", "a:f32[] b:f32[] v:s32[] w:s32[]", "c = pred[] compare(a, b), direction=LT\nd = pred[] compare(a, b), direction=EQ\ne = pred[] compare(v, w), direction=LT\nf = pred[] and(d, e)\ng = pred[] or(c, f)")
case("sort_unused", "x:f32[8] y:s32[8]", LT + "s = (f32[8], s32[8]) sort(x, y), dimensions={0}, to_apply=less\nr = f32[8] get-tuple-element(s), index=0")
case("sort_unused_key", "x:f32[8] y:s32[8]", LT + "s = (f32[8], s32[8]) sort(x, y), dimensions={0}, to_apply=less\nr = s32[8] get-tuple-element(s), index=1")
case("sort_unused_compared", "x:f32[8] y:s32[8]", LT2 + "s = (f32[8], s32[8]) sort(x, y), dimensions={0}, to_apply=less\nr = f32[8] get-tuple-element(s), index=0")
case("sort_unused_root", "x:f32[8] y:s32[8]", LT + "r = (f32[8], s32[8]) sort(x, y), dimensions={0}, to_apply=less")
LT3 = fn("less", "a:f32[] b:f32[] v:s32[] w:s32[] t:f32[] u:f32[]", "c = pred[] compare(a, b), direction=LT")
case("sort_unused_middle", "x:f32[8] y:s32[8] z:f32[8]", LT3 + "s = (f32[8], s32[8], f32[8]) sort(x, y, z), dimensions={0}, to_apply=less\na = f32[8] get-tuple-element(s), index=0\nb = f32[8] get-tuple-element(s), index=2\nr = f32[8] add(a, b)")
case("sort_unused_stable", "x:f32[8] y:s32[8]", LT + "s = (f32[8], s32[8]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less\nr = f32[8] get-tuple-element(s), index=0")
case("sort_stable_iota", "x:f32[8]", LT + "y = s32[8] iota(), iota_dimension=0\nr = (f32[8], s32[8]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less")
case("sort_stable_iota_other", "x:f32[8,4]", LT + "y = s32[8,4] iota(), iota_dimension=1\nr = (f32[8,4], s32[8,4]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less")
case("sort_stable_alone", "x:f32[8]", fn("less", "a:f32[] b:f32[]", "c = pred[] compare(a, b), direction=LT") + "r = f32[8] sort(x), dimensions={0}, is_stable=true, to_apply=less")
case("sort_stable_pair", "x:f32[8] y:s32[8]", LT + "r = (f32[8], s32[8]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less")
case("sort_stable_shared", "x:f32[8] z:f32[8]", LT + "y = s32[8] iota(), iota_dimension=0\na = (f32[8], s32[8]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less\nb = (f32[8], s32[8]) sort(z, y), dimensions={0}, is_stable=true, to_apply=less\nc = f32[8] get-tuple-element(a), index=0\nd = s32[8] get-tuple-element(b), index=1\ne = f32[8] convert(d)\nr = f32[8] add(c, e)")
case("sort_stable_total", "x:f32[8]", fn("less", "a:f32[] b:f32[]", "c = pred[] compare(a, b), direction=LT, type=TOTALORDER") + "r = f32[8] sort(x), dimensions={0}, is_stable=true, to_apply=less")
case("sort_permutation", "x:f32[8]", LT + fn("lt", "a:s32[] b:s32[] v:f32[] w:f32[]", "c = pred[] compare(a, b), direction=LT") + "y = s32[8] iota(), iota_dimension=0\na = (f32[8], s32[8]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less\nb = s32[8] get-tuple-element(a), index=1\nc = f32[8] get-tuple-element(a), index=0\nd = (s32[8], f32[8]) sort(b, c), dimensions={0}, to_apply=lt\nr = f32[8] get-tuple-element(d), index=1")
case("sort_permutation_iota", "x:f32[8]", LT + fn("lt", "a:s32[] b:s32[] v:s32[] w:s32[]", "c = pred[] compare(a, b), direction=LT") + "y = s32[8] iota(), iota_dimension=0\na = (f32[8], s32[8]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less\nb = s32[8] get-tuple-element(a), index=1\nd = (s32[8], s32[8]) sort(b, y), dimensions={0}, to_apply=lt\nr = s32[8] get-tuple-element(d), index=1")

# --- loops ---


def loop(state, body, cond, init, tail, parameters="x:f32[4]"):
    """state: names and shapes; body and cond see s_NAME; body ends with n_NAME for each (those without stay)."""
    items = [s.split(":") for s in state.split()]
    shape = "(" + ", ".join(t for _, t in items) + ")"
    unpack = "".join(f"s_{n} = {t} get-tuple-element(s), index={k}\n" for k, (n, t) in enumerate(items))
    outs = ", ".join((f"n_{n}" if f"n_{n} =" in body else f"s_{n}") for n, _ in items)
    b = fn("bo", f"s:{shape.replace(' ', '')}", unpack + body + f"\nr = {shape} tuple({outs})")
    c = fn("co", f"s:{shape.replace(' ', '')}", "".join(f"s_{n} = {t} get-tuple-element(s), index={k}\n" for k, (n, t) in enumerate(items) if f"s_{n}" in cond) + cond)
    ins = ", ".join(f"i_{n}" for n, _ in items)
    return parameters, b + c + init + f"\nt = {shape} tuple({ins})\nw = {shape} while(t), condition=co, body=bo\n" + "".join(f"o_{n} = {t} get-tuple-element(w), index={k}\n" for k, (n, t) in enumerate(items) if f"o_{n}" in tail) + tail


STEP = "one = s32[] constant(1)\nn_i = s32[] add(s_i, one)\n"
C9 = "l = s32[] constant(9)\nr = pred[] compare(s_i, l), direction=LT"
Z = "i_i = s32[] constant(0)\n"
for name, args in {
    "dead": loop("i:s32[] a:f32[4] b:f32[4]", STEP + "n_a = f32[4] sine(s_a)\nn_b = f32[4] cosine(s_b)", C9, Z + "i_a = f32[4] sine(x)\ni_b = f32[4] cosine(x)", "r = f32[4] negate(o_a)"),
    "dead_linked": loop("i:s32[] a:f32[4] b:f32[4]", STEP + "n_a = f32[4] add(s_a, s_b)\nn_b = f32[4] cosine(s_b)", C9, Z + "i_a = f32[4] sine(x)\ni_b = f32[4] cosine(x)", "r = f32[4] negate(o_a)"),
    "invariant": loop("i:s32[] a:f32[4] b:f32[4]", STEP + "n_a = f32[4] add(s_a, s_b)", C9, Z + "i_a = f32[4] sine(x)\ni_b = f32[4] cosine(x)", "c = f32[4] negate(o_a)\nr = f32[4] add(c, o_b)"),
    "same_twice": loop("i:s32[] a:f32[4] b:f32[4] c:f32[4]", STEP + "d = f32[4] add(s_a, s_b)\nn_a = f32[4] add(d, s_c)", C9, Z + "i_a = f32[4] sine(x)\ni_b = f32[4] cosine(x)\ni_c = f32[4] negate(i_b)", "r = f32[4] negate(o_a)"),
    "scalar_constant": loop("i:s32[] a:f32[4] k:f32[]", STEP + "kb = f32[4] broadcast(s_k), dimensions={}\nn_a = f32[4] multiply(s_a, kb)", C9, Z + "i_a = f32[4] sine(x)\ni_k = f32[] constant(2)", "r = f32[4] negate(o_a)"),
    "limit_in_state": loop("i:s32[] a:f32[4] l:s32[]", STEP + "n_a = f32[4] sine(s_a)", "r = pred[] compare(s_i, s_l), direction=LT", Z + "i_a = f32[4] sine(x)\ni_l = s32[] constant(7)", "r = f32[4] negate(o_a)"),
    "constant_both": loop("i:s32[] a:f32[4] k:f32[]", STEP + "n_k = f32[] constant(2)\nkb = f32[4] broadcast(s_k), dimensions={}\nn_a = f32[4] multiply(s_a, kb)", C9, Z + "i_a = f32[4] sine(x)\ni_k = f32[] constant(2)", "r = f32[4] negate(o_a)"),
    "constant_differs": loop("i:s32[] a:f32[4] k:f32[]", STEP + "n_k = f32[] constant(3)\nkb = f32[4] broadcast(s_k), dimensions={}\nn_a = f32[4] multiply(s_a, kb)", C9, Z + "i_a = f32[4] sine(x)\ni_k = f32[] constant(2)", "r = f32[4] negate(o_a)"),
    "trip_zero": loop("i:s32[] a:f32[4]", STEP + "n_a = f32[4] sine(s_a)", C9, "i_i = s32[] constant(9)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_one": loop("i:s32[] a:f32[4]", STEP + "n_a = f32[4] sine(s_a)", C9, "i_i = s32[] constant(8)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_le": loop("i:s32[] a:f32[4]", STEP + "n_a = f32[4] sine(s_a)", C9.replace("LT", "LE"), Z + "i_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_ne": loop("i:s32[] a:f32[4]", STEP + "n_a = f32[4] sine(s_a)", C9.replace("LT", "NE"), Z + "i_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_gt_swapped": loop("i:s32[] a:f32[4]", STEP + "n_a = f32[4] sine(s_a)", C9.replace("compare(s_i, l), direction=LT", "compare(l, s_i), direction=GT"), Z + "i_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_down": loop("i:s32[] a:f32[4]", "one = s32[] constant(-1)\nn_i = s32[] add(s_i, one)\nn_a = f32[4] sine(s_a)", "l = s32[] constant(0)\nr = pred[] compare(s_i, l), direction=GT", "i_i = s32[] constant(9)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_subtract": loop("i:s32[] a:f32[4]", "one = s32[] constant(1)\nn_i = s32[] subtract(s_i, one)\nn_a = f32[4] sine(s_a)", "l = s32[] constant(0)\nr = pred[] compare(s_i, l), direction=GT", "i_i = s32[] constant(9)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_two": loop("i:s32[] a:f32[4]", "one = s32[] constant(2)\nn_i = s32[] add(s_i, one)\nn_a = f32[4] sine(s_a)", C9, Z + "i_a = f32[4] sine(x)", "c = f32[] convert(o_i)\nd = f32[4] broadcast(c), dimensions={}\nr = f32[4] add(o_a, d)"),
    "trip_times": loop("i:s32[] a:f32[4]", "one = s32[] constant(2)\nn_i = s32[] multiply(s_i, one)\nn_a = f32[4] sine(s_a)", C9, "i_i = s32[] constant(1)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_unknown": loop("i:s32[] a:f32[4]", STEP + "n_a = f32[4] sine(s_a)", C9, "i_i = s32[] parameter(1)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_s64": loop("i:s64[] a:f32[4]", "one = s64[] constant(1)\nn_i = s64[] add(s_i, one)\nn_a = f32[4] sine(s_a)", "l = s64[] constant(9)\nr = pred[] compare(s_i, l), direction=LT", "i_i = s64[] constant(0)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_u8": loop("i:u8[] a:f32[4]", "one = u8[] constant(1)\nn_i = u8[] add(s_i, one)\nn_a = f32[4] sine(s_a)", "l = u8[] constant(200)\nr = pred[] compare(s_i, l), direction=LT", "i_i = u8[] constant(0)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_wide": loop("i:s32[] a:f32[4]", "one = s32[] constant(1000)\nn_i = s32[] add(s_i, one)\nn_a = f32[4] sine(s_a)", "l = s32[] constant(1000000)\nr = pred[] compare(s_i, l), direction=LT", Z + "i_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_and": loop("i:s32[] a:f32[4]", STEP + "n_a = f32[4] sine(s_a)", "l = s32[] constant(9)\nm = s32[] constant(5)\np = pred[] compare(s_i, l), direction=LT\nq = pred[] compare(s_i, m), direction=LT\nr = pred[] and(p, q)", Z + "i_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "trip_flag": loop("i:s32[] a:f32[4] p:pred[]", STEP + "n_a = f32[4] sine(s_a)\nl = s32[] constant(5)\nn_p = pred[] compare(n_i, l), direction=LT", "r = pred[] copy(s_p)".replace("copy(s_p)", "and(s_p, s_p)"), Z + "i_a = f32[4] sine(x)\ni_p = pred[] constant(true)", "r = f32[4] negate(o_a)"),
    "counter_twice": loop("i:s32[] j:s32[] a:f32[4]", STEP + "n_j = s32[] add(s_j, one)\nc = f32[] convert(s_j)\nd = f32[4] broadcast(c), dimensions={}\nn_a = f32[4] add(s_a, d)", C9, Z + "i_j = s32[] constant(5)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
    "nested_tuple": loop("i:s32[] t:(f32[4],f32[4])", STEP + "a = f32[4] get-tuple-element(s_t), index=0\nb = f32[4] get-tuple-element(s_t), index=1\nc = f32[4] add(a, b)\nn_t = (f32[4], f32[4]) tuple(b, c)", C9, Z + "ia = f32[4] sine(x)\nib = f32[4] cosine(x)\ni_t = (f32[4], f32[4]) tuple(ia, ib)", "r = f32[4] get-tuple-element(o_t), index=1"),
    "swap": loop("i:s32[] a:f32[4] b:f32[4]", STEP + "c = f32[4] sine(s_b)\nn_a = f32[4] add(c, c)\nn_b = f32[4] negate(s_a)", C9, Z + "i_a = f32[4] sine(x)\ni_b = f32[4] cosine(x)", "r = f32[4] negate(o_a)"),
    "accumulate": loop("i:s32[] a:f32[9,4]", STEP + "c = f32[] convert(s_i)\nd = f32[1,4] broadcast(c), dimensions={}\nz = s32[] constant(0)\nn_a = f32[9,4] dynamic-update-slice(s_a, d, s_i, z)", C9, Z + "k = f32[] constant(0)\ni_a = f32[9,4] broadcast(k), dimensions={}", "r = f32[9,4] negate(o_a)"),
    "read_row": loop("i:s32[] a:f32[4] m:f32[9,4]", STEP + "z = s32[] constant(0)\nd = f32[1,4] dynamic-slice(s_m, s_i, z), dynamic_slice_sizes={1,4}\ne = f32[4] reshape(d)\nn_a = f32[4] add(s_a, e)", C9, Z + "i_a = f32[4] sine(x)\ni_m = f32[9,4] parameter(1)", "r = f32[4] negate(o_a)"),
    "constant_table": loop("i:s32[] a:f32[4] m:f32[3,4]", STEP + "z = s32[] constant(0)\nd = f32[1,4] dynamic-slice(s_m, s_i, z), dynamic_slice_sizes={1,4}\ne = f32[4] reshape(d)\nn_a = f32[4] add(s_a, e)", C9, Z + "i_a = f32[4] sine(x)\ni_m = f32[3,4] constant({{1,2,3,4},{5,6,7,9},{8,1,2,4}})", "r = f32[4] negate(o_a)"),
    "invariant_work": loop("i:s32[] a:f32[4] b:f32[4]", STEP + "c = f32[4] exponential(s_b)\nn_a = f32[4] add(s_a, c)", C9, Z + "i_a = f32[4] sine(x)\ni_b = f32[4] cosine(x)", "r = f32[4] negate(o_a)"),
    "invariant_dot": loop("i:s32[] a:f32[64,64] b:f32[64,64]", STEP + "c = f32[64,64] dot(s_b, s_b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nn_a = f32[64,64] add(s_a, c)", C9, Z + "i_a = f32[64,64] sine(y)\ni_b = f32[64,64] cosine(y)", "r = f32[64,64] negate(o_a)", "y:f32[64,64]"),
    "no_counter": loop("p:pred[] a:f32[4]", "n_a = f32[4] sine(s_a)\nk = f32[] constant(0)\nq = f32[] reduce(n_a, k), dimensions={0}, to_apply=add.f32\nn_p = pred[] compare(q, k), direction=GT", "r = pred[] or(s_p, s_p)", "i_p = pred[] constant(true)\ni_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"),
}.items():
    case(f"loop_{name}", args[0], args[1])

# --- branches ---
F1, F2 = fn("one", "a:f32[4]", "b = f32[4] cosine(a)"), fn("two", "a:f32[4]", "b = f32[4] sine(a)")
case("cond_true", "x:f32[4] y:f32[4]", F1 + F2 + "p = pred[] constant(true)\nr = f32[4] conditional(p, x, y), true_computation=one, false_computation=two")
case("cond_false", "x:f32[4] y:f32[4]", F1 + F2 + "p = pred[] constant(false)\nr = f32[4] conditional(p, x, y), true_computation=one, false_computation=two")
for k in (0, 1, 2, -1):
    case(f"cond_index_{k}".replace("-", "m"), "x:f32[4] y:f32[4]", F1 + F2 + f"p = s32[] constant({k})\nr = f32[4] conditional(p, x, y), branch_computations={{one, two}}")
case("cond_one_branch", "p:s32[] x:f32[4]", F1 + "r = f32[4] conditional(p, x), branch_computations={one}")
case("cond_cheap", "p:pred[] x:f32[4] y:f32[4]", F1 + F2 + "r = f32[4] conditional(p, x, y), true_computation=one, false_computation=two")
D1, D2 = fn("one", "a:f32[4,4]", "b = f32[4,4] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}"), fn("two", "a:f32[4,4]", "b = f32[4,4] sine(a)")
case("cond_costly", "p:pred[] x:f32[4,4] y:f32[4,4]", D1 + D2 + "r = f32[4,4] conditional(p, x, y), true_computation=one, false_computation=two")
case("cond_costly_index", "p:s32[] x:f32[4,4] y:f32[4,4]", D1 + D2 + "r = f32[4,4] conditional(p, x, y), branch_computations={one, two}")
E1, E2 = fn("one", "a:f32[4]", "b = f32[4] add(a, a)"), fn("two", "a:f32[4] ", "b = f32[4] copy(a)")
T = "(f32[4], f32[4,4])"
G1 = fn("one", f"a:{T.replace(' ', '')}", "b = f32[4,4] get-tuple-element(a), index=1\nc = f32[4,4] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nd = f32[4] get-tuple-element(a), index=0\nr = (f32[4,4], f32[4]) tuple(c, d)")
G2 = fn("two", f"a:{T.replace(' ', '')}", "b = f32[4,4] get-tuple-element(a), index=1\nd = f32[4] get-tuple-element(a), index=0\ne = f32[4] sine(d)\nr = (f32[4,4], f32[4]) tuple(b, e)")
TT = f"t = {T} tuple(x, y)\n"
CC = "c = (f32[4,4], f32[4]) conditional(p, t, t), true_computation=one, false_computation=two\n"
case("cond_unused_result", "p:pred[] x:f32[4] y:f32[4,4]", G1 + G2 + TT + CC + "r = f32[4,4] get-tuple-element(c), index=0")
case("cond_unused_result_1", "p:pred[] x:f32[4] y:f32[4,4]", G1 + G2 + TT + CC + "r = f32[4] get-tuple-element(c), index=1")
case("cond_all_used", "p:pred[] x:f32[4] y:f32[4,4]", G1 + G2 + TT + CC + "a = f32[4,4] get-tuple-element(c), index=0\nb = f32[4] get-tuple-element(c), index=1\nd = f32[4,4] broadcast(b), dimensions={0}\nr = f32[4,4] add(a, d)")
H1 = fn("one", f"a:{T.replace(' ', '')}", "b = f32[4,4] get-tuple-element(a), index=1\nc = f32[4,4] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
H2 = fn("two", f"a:{T.replace(' ', '')}", "b = f32[4,4] get-tuple-element(a), index=1\nc = f32[4,4] sine(b)")
case("cond_unused_operand", "p:pred[] x:f32[4] y:f32[4,4]", H1 + H2 + TT + "r = f32[4,4] conditional(p, t, t), true_computation=one, false_computation=two")
J1 = fn("one", "a:f32[4,4]", "b = f32[4,4] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nr = (f32[4,4], f32[4,4]) tuple(b, b)")
J2 = fn("two", "a:f32[4,4]", "b = f32[4,4] sine(a)\nr = (f32[4,4], f32[4,4]) tuple(b, b)")
case("cond_same_results", "p:pred[] y:f32[4,4]", J1 + J2 + "c = (f32[4,4], f32[4,4]) conditional(p, y, y), true_computation=one, false_computation=two\na = f32[4,4] get-tuple-element(c), index=0\nb = f32[4,4] get-tuple-element(c), index=1\nr = f32[4,4] subtract(a, b)")
case("cond_equal_branches", "p:pred[] y:f32[4,4]", D1 + D1.replace("one {", "two {") + "r = f32[4,4] conditional(p, y, y), true_computation=one, false_computation=two")
case("cond_dead", "p:pred[] y:f32[4,4]", D1 + D2 + "c = f32[4,4] conditional(p, y, y), true_computation=one, false_computation=two\nr = f32[4,4] negate(y)")
case("cond_three", "p:s32[] y:f32[4,4]", D1 + D2 + fn("three", "a:f32[4,4]", "b = f32[4,4] cosine(a)") + "r = f32[4,4] conditional(p, y, y, y), branch_computations={one, two, three}")
case("cond_in_loop", *loop("i:s32[] a:f32[4]", "p = pred[] constant(true)\n" + STEP + "n_a = f32[4] conditional(p, s_a, s_a), true_computation=one, false_computation=two", C9, Z + "i_a = f32[4] sine(x)", "r = f32[4] negate(o_a)"))
probes_rules.CASES[-1] = (probes_rules.CASES[-1][0], probes_rules.CASES[-1][1], F1 + F2 + probes_rules.CASES[-1][2])

# --- calls ---
case("call_one", "x:f32[4] y:f32[4]", fn("f", "a:f32[4] b:f32[4]", "c = f32[4] add(a, b)\nd = f32[4] sine(c)") + "r = f32[4] call(x, y), to_apply=f")
case("call_twice", "x:f32[4] y:f32[4]", fn("f", "a:f32[4] b:f32[4]", "c = f32[4] add(a, b)\nd = f32[4] sine(c)") + "u = f32[4] call(x, y), to_apply=f\nr = f32[4] call(u, y), to_apply=f")
case("call_identity", "x:f32[4] y:f32[4]", fn("f", "a:f32[4] b:f32[4]", "c = f32[4] add(a, b)").replace("ROOT c", "c").replace("b = f32[4] parameter(1)", "ROOT b = f32[4] parameter(1)") + "r = f32[4] call(x, y), to_apply=f")
case("call_nested", "x:f32[4]", fn("g", "a:f32[4]", "c = f32[4] sine(a)") + fn("f", "a:f32[4]", "c = f32[4] call(a), to_apply=g\nd = f32[4] call(c), to_apply=g") + "r = f32[4] call(x), to_apply=f")
case("call_tuple", "x:f32[4]", fn("f", "a:f32[4]", "c = f32[4] sine(a)\nd = (f32[4], f32[4]) tuple(a, c)") + "t = (f32[4], f32[4]) call(x), to_apply=f\nr = f32[4] get-tuple-element(t), index=1")
case("call_not_inlineable", "x:f32[4]", fn("f", "a:f32[4]", "c = f32[4] sine(a)") + 'r = f32[4] call(x), to_apply=f, frontend_attributes={inlineable="false"}')

# --- slices that sink ---
SL = "a = f32[4] slice(x), slice={[0:4]}\nb = f32[4] slice(y), slice={[0:4]}\nc = f32[4] slice(x), slice={[4:8]}\nd = f32[4] slice(y), slice={[4:8]}\n"
case("sink_both", "x:f32[8] y:f32[8]", SL + "e = f32[4] add(a, b)\nf = f32[4] add(c, d)\nr = (f32[4], f32[4]) tuple(e, f)")
case("sink_half", "x:f32[8] y:f32[8]", SL + "e = f32[4] add(a, b)\nf = f32[4] subtract(c, d)\nr = (f32[4], f32[4]) tuple(e, f)")
case("sink_small", "x:f32[8] y:f32[8]", "a = f32[2] slice(x), slice={[0:2]}\nb = f32[2] slice(y), slice={[0:2]}\nc = f32[4] slice(x), slice={[4:8]}\nd = f32[4] slice(y), slice={[4:8]}\ne = f32[2] add(a, b)\nf = f32[4] add(c, d)\nr = (f32[2], f32[4]) tuple(e, f)")
case("sink_unary", "x:f32[8]", "a = f32[4] slice(x), slice={[0:4]}\nb = f32[4] slice(x), slice={[4:8]}\ne = f32[4] sine(a)\nf = f32[4] sine(b)\nr = (f32[4], f32[4]) tuple(e, f)")
case("sink_overlap", "x:f32[8] y:f32[8]", "a = f32[6] slice(x), slice={[0:6]}\nb = f32[6] slice(y), slice={[0:6]}\nc = f32[6] slice(x), slice={[2:8]}\nd = f32[6] slice(y), slice={[2:8]}\ne = f32[6] add(a, b)\nf = f32[6] add(c, d)\nr = (f32[6], f32[6]) tuple(e, f)")
case("sink_other_config", "x:f32[8] y:f32[8]", "a = f32[4] slice(x), slice={[0:4]}\nb = f32[4] slice(y), slice={[4:8]}\nc = f32[4] slice(x), slice={[4:8]}\nd = f32[4] slice(y), slice={[0:4]}\ne = f32[4] add(a, b)\nf = f32[4] add(c, d)\nr = (f32[4], f32[4]) tuple(e, f)")
case("sink_select", "p:pred[8] x:f32[8] y:f32[8]", SL + "p0 = pred[4] slice(p), slice={[0:4]}\np1 = pred[4] slice(p), slice={[4:8]}\ne = f32[4] select(p0, a, b)\nf = f32[4] select(p1, c, d)\nr = (f32[4], f32[4]) tuple(e, f)")
case("sink_2d", "x:f32[8,4] y:f32[8,4]", "a = f32[8,2] slice(x), slice={[0:8], [0:2]}\nb = f32[8,2] slice(y), slice={[0:8], [0:2]}\nc = f32[8,2] slice(x), slice={[0:8], [2:4]}\nd = f32[8,2] slice(y), slice={[0:8], [2:4]}\ne = f32[8,2] add(a, b)\nf = f32[8,2] add(c, d)\nr = (f32[8,2], f32[8,2]) tuple(e, f)")
case("sink_strided", "x:f32[8] y:f32[8]", "a = f32[4] slice(x), slice={[0:8:2]}\nb = f32[4] slice(y), slice={[0:8:2]}\nc = f32[4] slice(x), slice={[1:8:2]}\nd = f32[4] slice(y), slice={[1:8:2]}\ne = f32[4] add(a, b)\nf = f32[4] add(c, d)\nr = (f32[4], f32[4]) tuple(e, f)")
case("sink_types", "x:f32[8]", "a = f32[4] slice(x), slice={[0:4]}\nb = f32[4] slice(x), slice={[4:8]}\ne = s32[4] convert(a)\nf = s32[4] convert(b)\nr = (s32[4], s32[4]) tuple(e, f)")

# --- reshapes that move ---
for r1, r2, name in (("a = f32[8] reshape(x)", "b = f32[8] reshape(y)", "both"), ("a = f32[8] reshape(x)", "b = f32[8] sine(z)", "one"), ("a = f32[8] reshape(x)", "b = f32[8] constant({1,2,3,4,5,6,7,9})", "constant")):
    case(f"move_{name}", "x:f32[2,4] y:f32[2,4] z:f32[8]", f"{r1}\n{r2}\nr = f32[8] add(a, b)")
case("move_scalar", "x:f32[2,4] k:f32[]", "a = f32[8] reshape(x)\nb = f32[8] broadcast(k), dimensions={}\nr = f32[8] add(a, b)")
case("move_vector", "x:f32[2,4] k:f32[2]", "a = f32[2,2,2] reshape(x)\nb = f32[2,2,2] broadcast(k), dimensions={0}\nr = f32[2,2,2] add(a, b)")
case("move_transposes", "x:f32[2,4] y:f32[2,4]", "a = f32[4,2] transpose(x), dimensions={1,0}\nb = f32[4,2] transpose(y), dimensions={1,0}\nr = f32[4,2] add(a, b)")
case("move_transposes_differ", "x:f32[2,3,4] y:f32[3,2,4]", "a = f32[4,3,2] transpose(x), dimensions={2,1,0}\nb = f32[4,3,2] transpose(y), dimensions={2,0,1}\nr = f32[4,3,2] add(a, b)")
case("move_used", "x:f32[2,4] y:f32[2,4]", "a = f32[8] reshape(x)\nb = f32[8] reshape(y)\nc = f32[8] add(a, b)\nd = f32[8] reverse(a), dimensions={0}\nr = f32[8] multiply(c, d)")
case("move_chain", "x:f32[2,4] y:f32[2,4]", "a = f32[8] reshape(x)\nb = f32[8] reshape(y)\nc = f32[8] add(a, b)\nd = f32[8] sine(c)\nr = f32[8] multiply(c, d)")
case("move_unary", "x:f32[2,4]", "a = f32[8] reshape(x)\nr = f32[8] sine(a)")
case("move_select", "p:pred[2,4] x:f32[2,4] y:f32[2,4]", "q = pred[8] reshape(p)\na = f32[8] reshape(x)\nb = f32[8] reshape(y)\nr = f32[8] select(q, a, b)")
case("move_select_scalar", "p:pred[] x:f32[2,4] y:f32[2,4]", "q = pred[8] broadcast(p), dimensions={}\na = f32[8] reshape(x)\nb = f32[8] reshape(y)\nr = f32[8] select(q, a, b)")
case("move_rng", "x:f32[2,4]", "k = f32[] constant(0)\nm = f32[] constant(1)\ng = f32[8] rng(k, m), distribution=rng_uniform\na = f32[8] reshape(x)\nr = f32[8] add(a, g)")
case("move_ones", "x:f32[1,8] y:f32[1,8]", "a = f32[8] reshape(x)\nb = f32[8] reshape(y)\nr = f32[8] add(a, b)")
case("move_compare", "x:f32[2,4] y:f32[2,4]", "a = f32[8] reshape(x)\nb = f32[8] reshape(y)\nr = pred[8] compare(a, b), direction=LT")
case("move_convert", "x:f32[2,4]", "a = f32[8] reshape(x)\nr = s32[8] convert(a)")
case("move_clamp", "x:f32[2,4] l:f32[] h:f32[]", "a = f32[8] reshape(x)\nr = f32[8] clamp(l, a, h)")
case("move_pred_used_twice", "x:f32[2,4] y:f32[2,4]", "a = f32[8] reshape(x)\nb = f32[8] reshape(y)\nc = f32[8] add(a, b)\nd = f32[8] subtract(a, b)\nr = (f32[8], f32[8]) tuple(c, d)")
case("move_iota", "x:s32[2,4]", "a = s32[8] reshape(x)\ni = s32[8] iota(), iota_dimension=0\nr = s32[8] add(a, i)")

# --- converts that move ---
for op in ("r = f32[8] concatenate(a, b), dimensions={0}", "r = f32[4,1] reshape(a)", "r = f32[2] slice(a), slice={[0:2]}", "r = f32[6] pad(a, k), padding=1_1"):
    n = op.split("] ")[1].split("(")[0]
    for t in ("bf16", "s8", "f64"):
        case(f"cm_down_{n}_{t}", f"x:{t}[4] y:{t}[4]", f"a = f32[4] convert(x)\nb = f32[4] convert(y)\nk = f32[] constant(0)\n{op}" + ("\nz = f32[8] sine(r)" if "[8]" in op else ""))
case("cm_down_transpose", "x:bf16[4,2]", "a = f32[4,2] convert(x)\nr = f32[2,4] transpose(a), dimensions={1,0}")
case("cm_down_used", "x:bf16[4,2]", "a = f32[4,2] convert(x)\nb = f32[2,4] transpose(a), dimensions={1,0}\nr = (f32[2,4], f32[4,2]) tuple(b, a)")
case("cm_down_constant", "x:bf16[4]", "a = f32[4] convert(x)\nk = f32[2] constant({1,2.5})\nr = f32[6] concatenate(a, k), dimensions={0}")
case("cm_down_constant_lossy", "x:bf16[4]", "a = f32[4] convert(x)\nk = f32[2] constant({1.001,2.5})\nr = f32[6] concatenate(a, k), dimensions={0}")
case("cm_down_types", "x:bf16[4] y:f16[4]", "a = f32[4] convert(x)\nb = f32[4] convert(y)\nr = f32[8] concatenate(a, b), dimensions={0}")
case("cm_up_transpose", "x:f32[4,2]", "b = f32[2,4] transpose(x), dimensions={1,0}\nr = bf16[2,4] convert(b)")
case("cm_up_concat", "x:f32[4] y:f32[4]", "b = f32[8] concatenate(x, y), dimensions={0}\nr = bf16[8] convert(b)")
case("cm_up_pad", "x:f32[4] v:f32[]", "b = f32[6] pad(x, v), padding=1_1\nr = bf16[6] convert(b)")
case("cm_up_used", "x:f32[4] y:f32[4]", "b = f32[8] concatenate(x, y), dimensions={0}\nc = bf16[8] convert(b)\nr = (bf16[8], f32[8]) tuple(c, b)")
case("cm_up_widen", "x:bf16[4] y:bf16[4]", "b = bf16[8] concatenate(x, y), dimensions={0}\nr = f32[8] convert(b)")
case("cm_up_pred", "x:f32[4] y:f32[4]", "b = f32[8] concatenate(x, y), dimensions={0}\nr = pred[8] convert(b)")
case("fp_chain", "x:f32[4]", "a = bf16[4] convert(x)\nb = f32[4] convert(a)\nr = f32[4] sine(b)")
case("fp_chain3", "x:f32[4]", "a = bf16[4] convert(x)\nb = f32[4] convert(a)\nc = f16[4] convert(b)\nr = f16[4] negate(c)")
case("fp_chain_int", "x:f32[4]", "a = s32[4] convert(x)\nb = f32[4] convert(a)\nr = f32[4] sine(b)")
case("fp_bf16_math", "x:bf16[4] y:bf16[4]", "a = bf16[4] divide(x, y)\nb = bf16[4] tanh(a)\nr = bf16[4] add(b, y)")
for t in ("bf16", "f16", "f8e4m3fn", "f8e5m2", "s4", "u4"):
    for op in ("add(x, y)", "tanh(x)", "divide(x, y)", "maximum(x, y)", "power(x, y)", "negate(x)"):
        if t in ("s4", "u4") and op[0] in "tp" or (t == "u4" and op[0] == "n"):
            continue
        case(f"norm_{t}_{op.split('(')[0]}", f"x:{t}[4] y:{t}[4]", f"r = {t}[4] {op}")
    case(f"norm_{t}_reduce", f"x:{t}[4,3]", f"z = {t}[] constant(0)\nr = {t}[4] reduce(x, z), dimensions={{1}}, to_apply=add.{t}")
    case(f"norm_{t}_compare", f"x:{t}[4] y:{t}[4]", f"r = pred[4] compare(x, y), direction=LT")
    case(f"norm_{t}_select", f"p:pred[4] x:{t}[4] y:{t}[4]", f"r = {t}[4] select(p, x, y)")
    case(f"norm_{t}_concat", f"x:{t}[4] y:{t}[4]", f"r = {t}[8] concatenate(x, y), dimensions={{0}}")
    if t[0] not in "su":
        case(f"norm_{t}_dot", f"x:{t}[16,16] y:{t}[16,16]", f"r = {t}[16,16] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
    case(f"norm_{t}_sort", f"x:{t}[8]", fn("less", f"a:{t}[] b:{t}[]", "c = pred[] compare(a, b), direction=LT") + f"r = {t}[8] sort(x), dimensions={{0}}, to_apply=less")
    case(f"norm_{t}_scatter", f"x:{t}[8] i:s32[2,1] u:{t}[2]", f"r = {t}[8] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add.{t}")

# --- dots ---
D = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
case("merge_left", "x:f32[8,16] y:f32[16,4] z:f32[16,6]", f"a = f32[8,4] dot(x, y), {D}\nb = f32[8,6] dot(x, z), {D}\nr = (f32[8,4], f32[8,6]) tuple(a, b)")
case("merge_right", "x:f32[8,16] y:f32[16,4] z:f32[6,16]", f"a = f32[8,4] dot(x, y), {D}\nb = f32[6,4] dot(z, y), {D}\nr = (f32[8,4], f32[6,4]) tuple(a, b)")
case("merge_three", "x:f32[8,16] y:f32[16,4] z:f32[16,6] w:f32[16,2]", f"a = f32[8,4] dot(x, y), {D}\nb = f32[8,6] dot(x, z), {D}\nc = f32[8,2] dot(x, w), {D}\nr = (f32[8,4], f32[8,6], f32[8,2]) tuple(a, b, c)")
case("merge_dependent", "x:f32[8,8] y:f32[8,8]", f"a = f32[8,8] dot(x, y), {D}\nb = f32[8,8] dot(x, a), {D}\nr = (f32[8,8], f32[8,8]) tuple(a, b)")
case("merge_transposed", "x:f32[8,16] y:f32[16,4] z:f32[6,16]", f"a = f32[8,4] dot(x, y), {D}\nb = f32[8,6] dot(x, z), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}\nr = (f32[8,4], f32[8,6]) tuple(a, b)")
case("merge_other_contraction", "x:f32[8,8] y:f32[8,4] z:f32[8,6]", f"a = f32[8,4] dot(x, y), {D}\nb = f32[8,6] dot(x, z), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\nr = (f32[8,4], f32[8,6]) tuple(a, b)")
case("merge_batch", "x:f32[2,8,16] y:f32[2,16,4] z:f32[2,16,6]", "a = f32[2,8,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\nb = f32[2,8,6] dot(x, z), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\nr = (f32[2,8,4], f32[2,8,6]) tuple(a, b)")
case("merge_types", "x:bf16[8,16] y:bf16[16,4] z:bf16[16,6]", f"a = f32[8,4] dot(x, y), {D}\nb = bf16[8,6] dot(x, z), {D}\nr = (f32[8,4], bf16[8,6]) tuple(a, b)")
case("merge_precision", "x:f32[8,16] y:f32[16,4] z:f32[16,6]", f"a = f32[8,4] dot(x, y), {D}, operand_precision={{highest,highest}}\nb = f32[8,6] dot(x, z), {D}\nr = (f32[8,4], f32[8,6]) tuple(a, b)")
case("merge_vector", "x:f32[8,16] y:f32[16] z:f32[16,6]", f"a = f32[8] dot(x, y), {D}\nb = f32[8,6] dot(x, z), {D}\nr = (f32[8], f32[8,6]) tuple(a, b)")
case("merge_through_transpose", "x:f32[8,16] y:f32[16,4] z:f32[16,6]", f"t = f32[16,8] transpose(x), dimensions={{1,0}}\na = f32[8,4] dot(x, y), {D}\nb = f32[8,6] dot(t, z), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\nr = (f32[8,4], f32[8,6]) tuple(a, b)")
case("merge_through_reshape", "x:f32[8,16] y:f32[16,4] z:f32[16,6]", f"t = f32[2,4,16] reshape(x)\na = f32[8,4] dot(x, y), {D}\nb = f32[2,4,6] dot(t, z), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}\nr = (f32[8,4], f32[2,4,6]) tuple(a, b)")
case("merge_same", "x:f32[8,8] y:f32[8,4]", f"a = f32[8,8] dot(x, x), {D}\nb = f32[8,4] dot(x, y), {D}\nr = (f32[8,8], f32[8,4]) tuple(a, b)")
for l, r_, o, dims in (("4,5,8", "8,6", "4,5,6", "lhs_contracting_dims={2}, rhs_contracting_dims={0}"), ("8,4,5", "8,6", "4,5,6", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"), ("4,3,8", "3,8,6", "4,6", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"),
                       ("4,3,8", "8,3,6", "4,6", "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}"), ("4,2,8", "8,2,6", "2,4,6", "lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
                       ("2,8", "2,8,6", "2,6", "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}"), ("2,3,4,8", "3,2,8,6", "3,2,4,6", "lhs_batch_dims={1,0}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}"),
                       ("2,8", "2,8", "2", "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}"), ("4,8", "6,8", "4,6", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"), ("8,4", "8,6", "4,6", "lhs_contracting_dims={0}, rhs_contracting_dims={0}")):
    n = f"{l}_{r_}_{dims.count('{1}')}{dims.count('{0}')}".replace(",", "")
    case(f"dots_{n}", f"x:f32[{l}] y:f32[{r_}]", f"r = f32[{o}] dot(x, y), {dims}")
    case(f"dotb_{n}", f"x:bf16[{l}] y:bf16[{r_}]", f"r = f32[{o}] dot(x, y), {dims}")
    case(f"doti_{n}", f"x:s32[{l}] y:s32[{r_}]", f"r = s32[{o}] dot(x, y), {dims}")
for lt, rt, ot in (("bf16", "f32", "f32"), ("s8", "s8", "s32"), ("f16", "f16", "f32"), ("bf16", "bf16", "bf16"), ("s8", "s8", "s8"), ("f32", "f32", "f64"), ("f64", "f64", "f32"), ("f32", "f32", "bf16"), ("s32", "s32", "f32"), ("pred", "pred", "s32"), ("u8", "s8", "s32"), ("f8e4m3fn", "f8e5m2", "f32")):
    case(f"dot_types_{lt}_{rt}_{ot}", f"x:{lt}[16,32] y:{rt}[32,16]", f"r = {ot}[16,16] dot(x, y), {D}")
    case(f"dot_vec_types_{lt}_{rt}_{ot}", f"x:{lt}[16,32] y:{rt}[32]", f"r = {ot}[16] dot(x, y), {D}")

# --- without elements, and dynamic sizes ---
case("zero_sized", "x:f32[0,4]", "a = f32[0,4] sine(x)\nr = f32[0,4] negate(a)")
case("zero_sized_concat", "x:f32[0,4] y:f32[2,4]", "a = f32[0,4] sine(x)\nr = f32[2,4] concatenate(a, y), dimensions={0}")
case("zero_sized_param_used", "x:f32[0]", "z = f32[] constant(0)\na = f32[] reduce(x, z), dimensions={0}, to_apply=add.f32\nr = f32[] add(a, z)")
case("gds_static", "x:f32[3,4]", "a = s32[] get-dimension-size(x), dimensions={1}\nr = s32[] add(a, a)")
case("dds_concat", "a:s32[] b:s32[] c:s32[]", "x = s32[1] reshape(a)\ny = s32[1] reshape(b)\nz = s32[1] reshape(c)\nd = s32[2] concatenate(x, y), dimensions={0}\nr = s32[3] concatenate(d, z), dimensions={0}")
case("dds_slice", "a:s32[1] b:s32[2]", "d = s32[3] concatenate(a, b), dimensions={0}\nr = s32[2] slice(d), slice={[1:3]}")
case("dds_reshape_broadcast", "a:s32[]", "d = s32[1] broadcast(a), dimensions={}\nr = s32[] reshape(d)")
case("dds_reshape_reshape", "a:s32[]", "d = s32[1] reshape(a)\nr = s32[] reshape(d)")
case("dds_convert", "a:s32[1]", "r = s32[1] convert(a)")
case("logistic_f32", "x:f32[4]", "r = f32[4] logistic(x)")
case("logistic_bf16", "x:bf16[4]", "r = bf16[4] logistic(x)")
case("logistic_c64", "x:c64[4]", "r = c64[4] logistic(x)")
for t in ("f32", "bf16", "f64", "f16"):
    for d in ("LT", "GE", "EQ"):
        case(f"total_{t}_{d}", f"x:{t}[4] y:{t}[4]", f"r = pred[4] compare(x, y), direction={d}, type=TOTALORDER")
for a, b in (("f32[4]", "s8[4,4]"), ("s8[4,4]", "f32[4]"), ("u16[2]", "u8[2,2]"), ("u8[2]", "u16[]"), ("f64[3]", "s32[3,2]"), ("s4[8]", "s8[4]"), ("s32[]", "u8[4]")):
    if b == "s8[4]" or a == "s4[8]":
        a, b = "s8[4]", "s4[4,2]"
    case(f"bits_{a}_{b}".replace("[", "_").replace("]", "").replace(",", "x"), f"x:{a}", f"r = {b} bitcast-convert(x)")
for kind in ("training", "inference", "grad"):
    for t, e in (("f32", ""), ("bf16", ""), ("f64", "")):
        for f in (0, 1, 3):
            d = [2, 3, 4, 5]
            s = ",".join(map(str, d))
            if kind == "training":
                case(f"bn_{kind}_{t}_{f}", f"x:{t}[{s}] a:{t}[{d[f]}] b:{t}[{d[f]}]", f"r = ({t}[{s}], {t}[{d[f]}], {t}[{d[f]}]) batch-norm-training(x, a, b), epsilon=0.001, feature_index={f}")
            elif kind == "inference":
                case(f"bn_{kind}_{t}_{f}", f"x:{t}[{s}] a:{t}[{d[f]}] b:{t}[{d[f]}] m:{t}[{d[f]}] v:{t}[{d[f]}]", f"r = {t}[{s}] batch-norm-inference(x, a, b, m, v), epsilon=0.001, feature_index={f}")
            else:
                case(f"bn_{kind}_{t}_{f}", f"x:{t}[{s}] a:{t}[{d[f]}] m:{t}[{d[f]}] v:{t}[{d[f]}] g:{t}[{s}]", f"r = ({t}[{s}], {t}[{d[f]}], {t}[{d[f]}]) batch-norm-grad(x, a, m, v, g), epsilon=0.001, feature_index={f}")
for t in ("u32", "u64", "u16", "u8", "s32"):
    for shape in ("[7]", "[4,6]", "[3,5]", "[]"):
        for alg, st in (("rng_default", 2), ("rng_philox", 3), ("rng_philox", 2), ("rng_three_fry", 2)):
            case(f"rbg_{t}_{shape[1:-1].replace(',', 'x')}_{alg}_{st}", f"s:u64[{st}]", f"r = (u64[{st}], {t}{shape}) rng-bit-generator(s), algorithm={alg}")
case("dedup", "x:f32[3,4]", fn("f", "a:f32[] b:f32[]", "c = f32[] add(a, b)") + fn("g", "a:f32[] b:f32[]", "c = f32[] add(a, b)") + "z = f32[] constant(0)\na = f32[3] reduce(x, z), dimensions={1}, to_apply=f\nb = f32[4] reduce(x, z), dimensions={0}, to_apply=g\nr = (f32[3], f32[4]) tuple(a, b)")
case("dedup_constant", "x:f32[3] y:f32[3]", fn("f", "a:f32[]", "k = f32[] constant(3)\nc = f32[] add(a, k)\nd = f32[] sine(c)") + fn("g", "a:f32[]", "k = f32[] constant(4)\nc = f32[] add(a, k)\nd = f32[] sine(c)") + "a = f32[3] map(x), dimensions={0}, to_apply=f\nb = f32[3] map(y), dimensions={0}, to_apply=g\nr = (f32[3], f32[3]) tuple(a, b)")
for k in (1, 3):
    for t in ("f32", "bf16", "s32", "u32"):
        case(f"topk_{k}_{t}", f"x:{t}[4,64]", f"r = ({t}[4,{k}], s32[4,{k}]) topk(x), k={k}, largest=true")
        case(f"topk_small_{k}_{t}", f"x:{t}[4,64]", f"r = ({t}[4,{k}], s32[4,{k}]) topk(x), k={k}, largest=false")
        case(f"topk_values_{k}_{t}", f"x:{t}[64]", f"a = ({t}[{k}], s32[{k}]) topk(x), k={k}, largest=true\nr = {t}[{k}] get-tuple-element(a), index=0")
for f, i in (("add", "0"), ("max", "-inf"), ("mul", "1")):
    for n in (8, 16, 33, 1024):
        case(f"scan_{f}_{n}", f"x:f32[{n}]", f"i = f32[] constant({i})\nr = f32[{n}] reduce-window(x, i), window={{size={n} pad={n - 1}_0}}, to_apply={f}.f32")
        case(f"scan_excl_{f}_{n}", f"x:f32[{n}]", f"i = f32[] constant({i})\nr = f32[{n}] reduce-window(x, i), window={{size={n} pad={n}_-1}}, to_apply={f}.f32")
        case(f"scan_rev_{f}_{n}", f"x:f32[{n}]", f"i = f32[] constant({i})\nr = f32[{n}] reduce-window(x, i), window={{size={n} pad=0_{n - 1}}}, to_apply={f}.f32")
    case(f"scan_2d_{f}", f"x:f32[4,64]", f"i = f32[] constant({i})\nr = f32[4,64] reduce-window(x, i), window={{size=1x64 pad=0_0x63_0}}, to_apply={f}.f32")
    case(f"scan_2d0_{f}", f"x:f32[64,4]", f"i = f32[] constant({i})\nr = f32[64,4] reduce-window(x, i), window={{size=64x1 pad=63_0x0_0}}, to_apply={f}.f32")

if __name__ == "__main__":
    probes_rules.main()
