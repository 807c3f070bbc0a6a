#!/usr/bin/env python3
"""Writes testdata/eval/ops.jsonl: every opcode over its element types on interesting values, with what XLA's CPU backend
gives. tests/dev/oracle/op_cases.py OUT.jsonl (with the oracle's interpreter). A case is {"op", "type", "text", "inputs",
"outputs"}; arrays are the hex of their bytes, one byte an element below eight bits. A module that XLA refuses or that
aborts it has no "outputs" and is left out; tests/exec/ops_test.cc holds what is written by hand."""
import json
import pathlib
import subprocess
import sys

FLOATS = ["f32", "f64", "bf16", "f16", "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3", "f8e3m4", "f8e8m0fnu", "f4e2m1fn"]
WIDE_FLOATS = FLOATS[:4]
INTS = ["s32", "s64", "s16", "s8", "s4", "s2", "u32", "u64", "u16", "u8", "u4", "u2"]
COMPLEX = ["c64", "c128"]
ALL = ["pred"] + INTS + FLOATS + COMPLEX


def dtype(t):
    import ml_dtypes
    import numpy as np

    names = {"pred": "bool", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128", "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fn": "float4_e2m1fn"}
    if t in names:
        n = names[t]
    elif t.startswith("f8"):
        n = "float8_" + t[2:]
    elif t[0] in "su":
        n = {"s": "int", "u": "uint"}[t[0]] + t[1:]
    else:
        n = "float" + t[1:]
    return np.dtype(getattr(ml_dtypes, n, None) or n)


def bits(t):
    return {"pred": 1, "c64": 64, "c128": 128, "bf16": 16}.get(t) or int("".join(c for c in (t[1:].split("e")[0]) if c.isdigit()))


def values(t, which=0):
    """Interesting values of a type: limits, zeros, NaN, infinities, denormals."""
    import numpy as np

    d = dtype(t)
    if t == "pred":
        return np.array([True, False, True, False] if which == 0 else [True, True, False, False])
    if t[0] in "su":
        n = int(t[1:])
        low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if t[0] == "s" else (0, (1 << n) - 1)
        a = [low, high, 0, 1, high // 2, low + 1, high - 1, 5, 3, 7]
        b = [high, 0, low, 1, 2, high, 3, 1, 2, low]
        clip = lambda v: min(max(v, low), high)
        return np.array([clip(v) for v in (a if which == 0 else b)]).astype(d)
    if t in COMPLEX:
        a = [1 + 2j, -0.5 + 0.25j, 3 - 4j, 0.125j, -2.0, 0.75 - 0.5j]
        b = [0.5 - 1j, 2 + 1j, -1 - 1j, 1 + 0.5j, 0.25 + 3j, -0.5 - 2j]
        return np.array(a if which == 0 else b, d)
    a = [0.0, -0.0, 1.0, -1.5, float("nan"), float("inf"), float("-inf"), 0.3, -2.75, 100.0, 1e-3, -0.7, 0.5, 2.5, 6.0, -3.5]
    b = [-0.0, 0.0, 2.0, 0.5, 1.0, float("inf"), 3.0, -0.3, 0.75, 7.0, float("nan"), -1.25, 2.5, 2.0, 0.25, -3.5]
    out = np.array(a if which == 0 else b, np.float64)
    if t in ("f32", "f64", "bf16", "f16"):
        tops = {"f32": 3.4028235e38, "f64": 1.7976931348623157e308, "bf16": 3.38e38, "f16": 65504.0}
        out = np.concatenate([out, [tops[t], -tops[t]] if which == 0 else [1.0, 2.0]])
    return out.astype(d)


def hexed(a):
    import numpy as np

    a = np.asarray(a)
    if a.dtype.name in ("int4", "int2", "uint4", "uint2"):
        a = a.astype(np.int8 if a.dtype.name[0] == "i" else np.uint8)
    return np.ascontiguousarray(a).tobytes().hex()


def shape(t, dims):
    return f"{t}[{','.join(map(str, dims))}]"


def module(entry, before=""):
    return f"HloModule case\n{before}\nENTRY e {{\n{entry}\n}}\n"


def ordered(t):
    return t not in COMPLEX


def reducer(name, op, t):
    return f"{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = {t}[] {op}(a, b)\n}}\n"


def cases():
    import numpy as np

    def case(op, t, text, *inputs):
        return {"op": op, "type": t, "text": text, "inputs": [np.asarray(i) for i in inputs]}

    # --- elementwise ---
    unary = {
        "abs": INTS + FLOATS + COMPLEX, "negate": INTS + FLOATS + COMPLEX, "sign": [t for t in INTS if t[0] == "s"] + FLOATS + COMPLEX, "not": ["pred"] + INTS,
        "popcnt": INTS, "count-leading-zeros": INTS, "is-finite": FLOATS, "real": ["f32", "f64"] + COMPLEX, "imag": ["f32", "f64"] + COMPLEX,
    }
    for op in ("ceil", "floor", "round-nearest-afz", "round-nearest-even", "cbrt", "erf"):
        unary[op] = FLOATS
    for op in "exponential exponential-minus-one log log-plus-one logistic sqrt rsqrt sine cosine tan tanh".split():
        unary[op] = FLOATS + COMPLEX
    for op in "acos acosh asin asinh atanh cosh sinh".split():
        unary[op] = ["f32", "f64", "bf16", "f16"] + COMPLEX
    for op, types in unary.items():
        for t in types:
            x = values(t)
            out = "pred" if op == "is-finite" else {"c64": "f32", "c128": "f64"}.get(t, t) if op in ("abs", "real", "imag") else t
            yield case(op, t, module(f"  x = {shape(t, x.shape)} parameter(0)\n  ROOT r = {shape(out, x.shape)} {op}(x)"), x)
    for t in ALL:
        x = values(t)
        yield case("copy", t, module(f"  x = {shape(t, x.shape)} parameter(0)\n  ROOT r = {shape(t, x.shape)} copy(x)"), x)
    binary = {
        "add": ALL, "subtract": ALL[1:], "multiply": ALL, "divide": ALL[1:], "remainder": INTS + FLOATS, "maximum": ALL[:-2], "minimum": ALL[:-2], "power": INTS + FLOATS + COMPLEX,
        "and": ["pred"] + INTS, "or": ["pred"] + INTS, "xor": ["pred"] + INTS, "shift-left": INTS, "shift-right-arithmetic": INTS, "shift-right-logical": INTS,
        "atan2": ["f32", "f64", "bf16", "f16"] + COMPLEX, "complex": ["f32", "f64"], "mulhi": ["s32", "u32", "s64", "u64", "s8", "u8", "s16", "u16"],
    }
    for op, types in binary.items():
        for t in types:
            x, y = values(t), values(t, 1)
            out = {"f32": "c64", "f64": "c128"}[t] if op == "complex" else t
            yield case(op, t, module(f"  x = {shape(t, x.shape)} parameter(0)\n  y = {shape(t, y.shape)} parameter(1)\n  ROOT r = {shape(out, x.shape)} {op}(x, y)"), x, y)
    for t in ALL:
        x, y = values(t), values(t, 1)
        p = np.arange(len(x)) % 3 == 0
        s = shape(t, x.shape)
        ps = shape("pred", x.shape)
        yield case("select", t, module(f"  p = {ps} parameter(0)\n  x = {s} parameter(1)\n  y = {s} parameter(2)\n  ROOT r = {s} select(p, x, y)"), p, x, y)
        for direction in ["EQ", "NE", "LT", "LE", "GT", "GE"][: 6 if ordered(t) else 2]:
            yield case("compare", t, module(f"  x = {s} parameter(0)\n  y = {s} parameter(1)\n  ROOT r = {ps} compare(x, y), direction={direction}"), x, y)
        if t in FLOATS:
            yield case("compare", t, module(f"  x = {s} parameter(0)\n  y = {s} parameter(1)\n  ROOT r = {ps} compare(x, y), direction=LT, type=TOTALORDER"), x, y)
        if ordered(t) and t != "pred":
            low, high = np.array(1).astype(dtype(t)), np.array(2 if t in ("f8e8m0fnu",) else 1 if t in ("s2",) else 3).astype(dtype(t))
            yield case("clamp", t, module(f"  l = {t}[] parameter(0)\n  x = {s} parameter(1)\n  h = {t}[] parameter(2)\n  ROOT r = {s} clamp(l, x, h)"), low, x, high)
    for a in ALL:
        x = values(a)
        s = x.shape
        for b in ALL:
            if a in COMPLEX and b not in COMPLEX:
                continue
            yield case("convert", f"{a} {b}", module(f"  x = {shape(a, s)} parameter(0)\n  ROOT r = {shape(b, s)} convert(x)"), x)
            if bits(a) == bits(b) and bits(a) >= 8 and "pred" not in (a, b) and a not in COMPLEX and b not in COMPLEX:
                yield case("bitcast-convert", f"{a} {b}", module(f"  x = {shape(a, s)} parameter(0)\n  ROOT r = {shape(b, s)} bitcast-convert(x)"), x)
    for a, b in (("s32", "u8"), ("f64", "s16"), ("bf16", "u8")):
        x = values(a)
        yield case("bitcast-convert", f"{a} {b}", module(f"  x = {shape(a, x.shape)} parameter(0)\n  ROOT r = {shape(b, (len(x), bits(a) // bits(b)))} bitcast-convert(x)"), x)
        y = np.frombuffer(np.ascontiguousarray(x).tobytes(), dtype(b)).reshape(len(x), -1)
        yield case("bitcast-convert", f"{b} {a}", module(f"  x = {shape(b, y.shape)} parameter(0)\n  ROOT r = {shape(a, x.shape)} bitcast-convert(x)"), y)
    for a, b in (("u8", "u4"), ("s8", "u4"), ("u8", "s4"), ("s8", "u2"), ("s16", "s4"), ("s32", "u4"), ("f32", "u2"), ("u16", "s2"), ("u4", "u2"), ("f8e5m2", "u4")):
        x = values(a)
        n = bits(a) // bits(b)
        yield case("bitcast-convert", f"{a} {b}", module(f"  x = {shape(a, x.shape)} parameter(0)\n  ROOT r = {shape(b, (len(x), n))} bitcast-convert(x)"), x)
        y = np.resize(values(b), (5, n))
        yield case("bitcast-convert", f"{b} {a}", module(f"  x = {shape(b, y.shape)} parameter(0)\n  ROOT r = {shape(a, (5,))} bitcast-convert(x)"), y)
    # Complex numbers far out, near one, on the axes.
    for t in COMPLEX:
        x = np.array([1e30 + 2e30j, -3e-30 + 1e-30j, 1e-30 - 0.5j, 300 + 2j, -60 + 0.5j, 0, 1 + 1e-4j, -1 + 0.002j, 9 - 9j, 0.5, -4j, 1e-3 + 1e-3j], dtype(t))
        small = x[[2, 4, 5, 6, 7, 8, 9, 10, 11]]
        s, few = shape(t, x.shape), shape(t, small.shape)
        for op in ("abs", "sign", "log", "log-plus-one", "sqrt", "rsqrt", "logistic", "tanh"):
            yield case(op, t, module(f"  x = {s} parameter(0)\n  ROOT r = {shape(t if op != 'abs' else {'c64': 'f32', 'c128': 'f64'}[t], x.shape)} {op}(x)"), x)
        for op in ("exponential", "exponential-minus-one", "sine", "cosine", "tan"):
            yield case(op, t, module(f"  x = {few} parameter(0)\n  ROOT r = {few} {op}(x)"), small)
        y = np.roll(small, 4)
        for op in ("divide", "power", "atan2"):
            # (On the cut of atan2 the sign of a zero decides.)
            first = np.where(small == 0, 0.25 + 0.25j, small).astype(dtype(t)) if op == "atan2" else small
            yield case(op, t, module(f"  x = {few} parameter(0)\n  y = {few} parameter(1)\n  ROOT r = {few} {op}(x, y)"), first, y)
    for t in WIDE_FLOATS:
        x = values(t)
        for e, m in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 0), (3, 1), (2, 4), (6, 23), (8, 22)):
            yield case("reduce-precision", t, module(f"  x = {shape(t, x.shape)} parameter(0)\n  ROOT r = {shape(t, x.shape)} reduce-precision(x), exponent_bits={e}, mantissa_bits={m}"), x)
    # --- movement, all types ---
    for t in ALL:
        flat = values(t)
        x = np.resize(flat, (3, 4))
        s = shape(t, x.shape)
        par = f"  x = {s} parameter(0)\n"
        zero = flat[2]
        one = lambda op, out, args, attrs, *more: case(op, t, module(par + f"  ROOT r = {t}[{out}] {op}({args}){attrs}"), x, *more)
        yield one("broadcast", "2,3,4", "x", ", dimensions={1,2}")
        yield one("reshape", "2,6", "x", "")
        yield one("transpose", "4,3", "x", ", dimensions={1,0}")
        yield one("reverse", "3,4", "x", ", dimensions={0,1}")
        yield one("slice", "2,2", "x", ", slice={[1:3], [0:4:2]}")
        yield one("concatenate", "3,8", "x, x", ", dimensions={1}")
        yield case("pad", t, module(par + f"  z = {t}[] parameter(1)\n  ROOT r = {t}[4,8] pad(x, z), padding=2_-1x-1_2_1"), x, zero)
        i, j = np.array(2, np.int32), np.array(-1, np.int32)
        index = "  i = s32[] parameter(1)\n  j = s32[] parameter(2)\n"
        yield case("dynamic-slice", t, module(par + index + f"  ROOT r = {t}[2,2] dynamic-slice(x, i, j), dynamic_slice_sizes={{2,2}}"), x, i, j)
        u = np.resize(values(t, 1), (2, 2))
        yield case("dynamic-update-slice", t, module(par + index + f"  u = {t}[2,2] parameter(3)\n  ROOT r = {s} dynamic-update-slice(x, u, i, j)"), x, i, j, u)
        g = np.array([[2, 1], [0, 3], [9, -5]], np.int32)
        yield case("gather", t, module(par + f"  g = s32[3,2] parameter(1)\n  ROOT r = {t}[3,1,2] gather(x, g), offset_dims={{1,2}}, collapsed_slice_dims={{}}, start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,2}}"), x, g)
        yield case("gather", t, module(par + f"  g = s32[3,2] parameter(1)\n  ROOT r = {t}[3,4,2] gather(x, g), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=2, slice_sizes={{1,4}}"), x, g)
        yield case("scatter", t, module(par + f"  g = s32[2] parameter(1)\n  u = {t}[2,4] parameter(2)\n  ROOT r = {s} scatter(x, g, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=second", f"second {{\n  a = {t}[] parameter(0)\n  ROOT b = {t}[] parameter(1)\n}}\n"), x, np.array([2, 7], np.int32), np.resize(values(t, 1), (2, 4)))
        # Windows that overlap, of an update whose window comes first: index by index, the last one counts.
        second = f"second {{\n  a = {t}[] parameter(0)\n  ROOT b = {t}[] parameter(1)\n}}\n"
        yield case("scatter", t, module(f"  x = {t}[8] parameter(0)\n  g = s32[2] parameter(1)\n  u = {t}[3,2] parameter(2)\n  ROOT r = {t}[8] scatter(x, g, u), update_window_dims={{0}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=second", second), np.resize(values(t), 8), np.array([2, 3], np.int32), np.resize(values(t, 1), (3, 2)))
        pair = f"pair {{\n  a = {t}[] parameter(0)\n  b = s32[] parameter(1)\n  c = {t}[] parameter(2)\n  d = s32[] parameter(3)\n  e = s32[] add(b, d)\n  ROOT r = ({t}[], s32[]) tuple(c, e)\n}}\n"
        yield case("scatter", t, module(par + f"  y = s32[3,4] parameter(1)\n  g = s32[5,1] parameter(2)\n  u = {t}[5,4] parameter(3)\n  v = s32[5,4] parameter(4)\n  ROOT r = ({s}, s32[3,4]) scatter(x, y, g, u, v), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=pair", pair), x, np.arange(12, dtype=np.int32).reshape(3, 4), np.array([[2], [0], [2], [7], [0]], np.int32), np.resize(values(t, 1), (5, 4)), np.arange(20, dtype=np.int32).reshape(5, 4))
        if t != "pred":
            yield case("iota", t, module(f"  ROOT r = {t}[2,2] iota(), iota_dimension=1"))
        yield case("bitcast", t, module(f"  x = {t}[3,4]{{1,0}} parameter(0)\n  ROOT r = {t}[12]{{0}} bitcast(x)"), x)
        yield case("tuple", t, module(par + f"  ROOT r = ({s}, {s}) tuple(x, x)"), x)
        yield case("get-tuple-element", t, module(par + f"  y = {t}[] parameter(1)\n  a = ({s}, {t}[]) tuple(x, y)\n  ROOT r = {t}[] get-tuple-element(a), index=1"), x, zero)
        yield case("opt-barrier", t, module(par + f"  ROOT r = {s} opt-barrier(x)"), x)
        yield case("call", t, module(par + f"  ROOT r = {s} call(x), to_apply=f", f"f {{\n  ROOT p = {s} parameter(0)\n}}\n"), x)
        yield case("conditional", t, module(f"  p = pred[] parameter(0)\n  x = {s} parameter(1)\n  y = {s} parameter(2)\n  ROOT r = {s} conditional(p, x, y), true_computation=f, false_computation=g", f"f {{\n  ROOT p = {s} parameter(0)\n}}\ng {{\n  q = {s} parameter(0)\n  ROOT t = {s} reverse(q), dimensions={{0}}\n}}\n"), np.array(False), x, x)
        yield case("while", t, module(f"  x = {s} parameter(0)\n  z = s32[] constant(0)\n  i = (s32[], {s}) tuple(z, x)\n  w = (s32[], {s}) while(i), condition=c, body=b\n  ROOT r = {s} get-tuple-element(w), index=1", f"c {{\n  p = (s32[], {s}) parameter(0)\n  k = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(3)\n  ROOT l = pred[] compare(k, n), direction=LT\n}}\nb {{\n  p = (s32[], {s}) parameter(0)\n  k = s32[] get-tuple-element(p), index=0\n  o = s32[] constant(1)\n  m = s32[] add(k, o)\n  v = {s} get-tuple-element(p), index=1\n  w = {s} reverse(v), dimensions={{1}}\n  ROOT t = (s32[], {s}) tuple(m, w)\n}}\n"), x)
        if ordered(t):
            keys = np.resize(values(t), (2, 6))
            cmp = f"lt {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=LT{', type=TOTALORDER' if t in FLOATS else ''}\n}}\n"
            yield case("sort", t, module(f"  k = {t}[2,6] parameter(0)\n  i = s32[2,6] iota(), iota_dimension=1\n  ROOT r = ({t}[2,6], s32[2,6]) sort(k, i), dimensions={{1}}, is_stable=true, to_apply=lt", cmp), keys)
        # reductions: sums of small numbers, so that no order of adding matters
        small = np.resize(np.array([1, 0, 1, 1, 0, 1]), (3, 4)).astype(dtype(t))
        ops = ["and", "or"] if t == "pred" else ["add", "multiply"] + (["maximum", "minimum"] if ordered(t) else []) + (["and", "or", "xor"] if t in INTS else [])
        for op in ops:
            init = np.array(0 if op in ("add", "or", "xor", "maximum") else 1).astype(dtype(t))
            red = reducer("f", op, t)
            yield case("reduce", t, module(f"  x = {s} parameter(0)\n  z = {t}[] parameter(1)\n  ROOT r = {t}[3] reduce(x, z), dimensions={{1}}, to_apply=f", red), small, init)
            yield case("reduce-window", t, module(f"  x = {s} parameter(0)\n  z = {t}[] parameter(1)\n  ROOT r = {t}[2,5] reduce-window(x, z), window={{size=2x2 pad=0_0x1_1}}, to_apply=f", red), small, init)
            yield case("scatter", t, module(f"  x = {s} parameter(0)\n  g = s32[3] parameter(1)\n  u = {t}[3,4] parameter(2)\n  ROOT r = {s} scatter(x, g, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f", red), small, np.array([1, 0, 1], np.int32), small)
            yield case("map", t, module(f"  x = {s} parameter(0)\n  y = {s} parameter(1)\n  ROOT r = {s} map(x, y), dimensions={{0,1}}, to_apply=f", red), small, small)
            yield case("all-reduce", t, module(f"  x = {s} parameter(0)\n  ROOT r = {s} all-reduce(x), replica_groups={{}}, to_apply=f", red), small)
        if t != "pred" and ordered(t):
            sel = f"ge {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n}}\n" + reducer("f", "add", t)
            yield case("select-and-scatter", t, module(f"  x = {s} parameter(0)\n  u = {t}[3,2] parameter(1)\n  z = {t}[] parameter(2)\n  ROOT r = {s} select-and-scatter(x, u, z), window={{size=1x2 stride=1x2}}, select=ge, scatter=f", sel), small, small[:, :2], np.array(0).astype(dtype(t)))
            # Windows that overlap and stick out, and one that says where its greatest stands.
            yield case("select-and-scatter", t, module(f"  x = {s} parameter(0)\n  u = {t}[3,3] parameter(1)\n  z = {t}[] parameter(2)\n  ROOT r = {s} select-and-scatter(x, u, z), window={{size=2x3 stride=1x2 pad=0_1x2_2}}, select=ge, scatter=f", sel), np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]]).astype(dtype(t)), np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0]]).astype(dtype(t)), np.array(0).astype(dtype(t)))
            first = f"first {{\n  a = {t}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {t}[] parameter(2)\n  j = s32[] parameter(3)\n  q = pred[] compare(a, b), direction=GE\n  v = {t}[] select(q, a, b)\n  k = s32[] select(q, i, j)\n  ROOT r = ({t}[], s32[]) tuple(v, k)\n}}\n"
            yield case("reduce-window", t, module(f"  x = {s} parameter(0)\n  i = s32[3,4] iota(), iota_dimension=1\n  z = {t}[] parameter(1)\n  m = s32[] constant(-1)\n  ROOT r = ({t}[3,2], s32[3,2]) reduce-window(x, i, z, m), window={{size=2x2 stride=1x2 pad=0_1x0_0}}, to_apply=first", first), np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]]).astype(dtype(t)), np.array(0).astype(dtype(t)))
        if t != "pred":
            yield case("dot", t, module(f"  x = {s} parameter(0)\n  y = {t}[4,3] parameter(1)\n  ROOT r = {t}[3,3] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"), small, small.reshape(4, 3))
            yield case("dot", t, module(f"  x = {t}[2,3,2] parameter(0)\n  y = {t}[2,2,3] parameter(1)\n  ROOT r = {t}[2,3,3] dot(x, y), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}"), small.reshape(2, 3, 2), small.reshape(2, 2, 3))
            image, kernel = np.resize(small, (1, 4, 4, 2)), np.resize(small, (2, 2, 2, 3))
            for window, out in (("size=2x2", "1,3,3,3"), ("size=2x2 stride=2x1 pad=1_0x0_1", "1,2,4,3"), ("size=2x2 lhs_dilate=2x2", "1,6,6,3"), ("size=2x2 rhs_dilate=2x2 rhs_reversal=1x1", "1,2,2,3")):
                yield case("convolution", t, module(f"  x = {t}[1,4,4,2] parameter(0)\n  k = {t}[2,2,2,3] parameter(1)\n  ROOT r = {t}[{out}] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f"), image, kernel)
            yield case("convolution", t, module(f"  x = {t}[1,4,4,2] parameter(0)\n  k = {t}[2,2,1,4] parameter(1)\n  ROOT r = {t}[1,3,3,4] convolution(x, k), window={{size=2x2}}, dim_labels=b01f_01io->b01f, feature_group_count=2"), image, np.resize(small, (2, 2, 1, 4)))
            yield case("convolution", t, module(f"  x = {t}[2,4,4,2] parameter(0)\n  k = {t}[2,2,2,4] parameter(1)\n  ROOT r = {t}[1,3,3,4] convolution(x, k), window={{size=2x2}}, dim_labels=b01f_01io->b01f, batch_group_count=2"), np.resize(small, (2, 4, 4, 2)), np.resize(small, (2, 2, 2, 4)))
    # --- batch norm, linear algebra, random bits ---
    for t in WIDE_FLOATS:
        d = dtype(t)
        x = (np.arange(24).reshape(2, 3, 4) * 0.25 - 2).astype(d)
        f = (np.arange(4) * 0.5 + 0.5).astype(d)
        v = f"{t}[4]"
        head = f"  x = {t}[2,3,4] parameter(0)\n  s = {v} parameter(1)\n  o = {v} parameter(2)\n"
        yield case("batch-norm-training", t, module(head + f"  ROOT r = ({t}[2,3,4], {v}, {v}) batch-norm-training(x, s, o), epsilon=0.001, feature_index=2"), x, f, f)
        yield case("batch-norm-inference", t, module(head + f"  m = {v} parameter(3)\n  w = {v} parameter(4)\n  ROOT r = {t}[2,3,4] batch-norm-inference(x, s, o, m, w), epsilon=0.001, feature_index=2"), x, f, f, f, f)
        yield case("batch-norm-grad", t, module(head + f"  w = {v} parameter(3)\n  g = {t}[2,3,4] parameter(4)\n  ROOT r = ({t}[2,3,4], {v}, {v}) batch-norm-grad(x, s, o, w, g), epsilon=0.001, feature_index=2"), x, f, f, f, x)
    for t in ("f32", "f64", "c64", "c128"):
        d = dtype(t)
        r = np.random.default_rng(7)
        m = r.standard_normal((2, 5, 5)) + (1j * r.standard_normal((2, 5, 5)) if t in COMPLEX else 0)
        spd = (m @ np.conj(np.swapaxes(m, 1, 2)) + 5 * np.eye(5)).astype(d)
        for lower in ("true", "false"):
            yield case("cholesky", t, module(f"  x = {t}[2,5,5] parameter(0)\n  ROOT r = {t}[2,5,5] cholesky(x), lower={lower}"), spd)
            if t in ("f32", "c64"):
                # Not positive definite: no number at all.
                yield case("cholesky", t, module(f"  x = {t}[2,2] parameter(0)\n  ROOT r = {t}[2,2] cholesky(x), lower={lower}"), np.array([[1, 2], [2, 1]]).astype(d))
            for left in ("true", "false"):
                for unit in ("true", "false"):
                    for how in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
                        b = (r.standard_normal((2, 5, 3) if left == "true" else (2, 3, 5))).astype(d)
                        # Both triangles are there: only one counts.
                        yield case("triangular-solve", t, module(f"  a = {t}[2,5,5] parameter(0)\n  b = {shape(t, b.shape)} parameter(1)\n  ROOT r = {shape(t, b.shape)} triangular-solve(a, b), left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={how}"), (spd / 10).astype(d), b)
    for real, t in (("f32", "c64"), ("f64", "c128")):
        r = np.random.default_rng(8)
        for dims in ((8,), (2, 6), (3, 5, 4)):
            x = (r.standard_normal(dims) + 1j * r.standard_normal(dims)).astype(dtype(t))
            for n in range(1, len(dims) + 1):
                length = ",".join(map(str, dims[-n:]))
                half = dims[:-1] + (dims[-1] // 2 + 1,)
                for kind in ("FFT", "IFFT"):
                    yield case("fft", t, module(f"  x = {shape(t, dims)} parameter(0)\n  ROOT r = {shape(t, dims)} fft(x), fft_type={kind}, fft_length={{{length}}}"), x)
                yield case("fft", t, module(f"  x = {shape(real, dims)} parameter(0)\n  ROOT r = {shape(t, half)} fft(x), fft_type=RFFT, fft_length={{{length}}}"), x.real.copy())
                yield case("fft", t, module(f"  x = {shape(t, half)} parameter(0)\n  ROOT r = {shape(real, dims)} fft(x), fft_type=IRFFT, fft_length={{{length}}}"), np.fft.rfftn(x.real, axes=range(len(dims) - n, len(dims))).astype(dtype(t)))
    for algorithm, words in (("rng_philox", 3), ("rng_philox", 2), ("rng_three_fry", 2), ("rng_default", 2)):
        for t in ("u8", "u16", "u32", "u64", "s32", "f32"):
            for dims in ((5, 3), (4, 3), (7,), ()):
                if t == "f32":
                    continue  # XLA takes no floats
                state = np.array([0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFE, 77][:words], np.uint64)
                yield case("rng-bit-generator", t, module(f"  x = u64[{words}] parameter(0)\n  ROOT r = (u64[{words}], {shape(t, dims)}) rng-bit-generator(x), algorithm={algorithm}"), state)
    for t in ("f32", "f64", "bf16", "f16"):
        for to, u in (("s8", "u32"), ("s16", "u16"), ("s32", "u32")):
            x = values(t)
            u = {"f32": "u32", "f64": "u64", "bf16": "u16", "f16": "u16"}[t]
            yield case("stochastic-convert", f"{t} {to}", module(f"  x = {shape(t, x.shape)} parameter(0)\n  y = {shape(u, x.shape)} parameter(1)\n  ROOT r = {shape(to, x.shape)} stochastic-convert(x, y)"), x, np.resize(values(u), x.shape))
    for t in ["f32", "bf16", "s32", "f64", "f16"]:
        x = np.array([[3, 1, 2, 5, 4, 2], [0, -1, 7, 7, 2, 3]]).astype(dtype(t))
        yield case("topk", t, module(f"  x = {t}[2,6] parameter(0)\n  ROOT r = ({t}[2,3], s32[2,3]) topk(x), k=3, largest=true"), x)
    # The total order: NaNs of both signs, both zeros, infinities, equals; of integers what a double does not hold.
    for t in ALL[1:]:
        if t in COMPLEX:
            continue
        if t in FLOATS:
            x = np.array([[0.0, -0.0, 1.0, -1.5, np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 2.0, np.nan, -1.5]])
            x = np.copysign(np.abs(x), [[1, -1, 1, -1, 1, 1, -1, -1, 1, 1, 1, -1, -1]]).astype(dtype(t))
        else:
            n, sign = bits(t), t[0] == "s"
            high = (1 << (n - sign)) - 1
            x = np.array([[high, high - 1, 0, high - 2 if n > 2 else 0, -high - 1 if sign else 0, high - 1, 1]], object).astype(dtype(t))
        n = x.shape[1]
        for largest in ("true", "false"):
            yield case("topk", t, module(f"  x = {t}[1,{n}] parameter(0)\n  ROOT r = ({t}[1,{n}], s32[1,{n}]) topk(x), k={n}, largest={largest}"), x)
        for order, how in (("", "plain"), (", type=TOTALORDER", "total")):
            if t in WIDE_FLOATS:
                less = f"g {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=GT{order}\n}}\n\n"
                yield case("topk", f"{t} {how} call", module(f"  x = {t}[1,{n}] parameter(0)\n  ROOT r = ({t}[1,{n}], s32[1,{n}]) custom-call(x), custom_call_target=\"TopK\", called_computations={{g}}", less), x)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for op, attrs, out in (
        ("all-gather", ", replica_groups={}, dimensions={0}", "f32[3,4]"), ("all-to-all", ", replica_groups={{0}}, dimensions={0}", "f32[3,4]"), ("collective-permute", ", source_target_pairs={{0,0}}", "f32[3,4]"),
        ("collective-broadcast", ", replica_groups={{0}}", "f32[3,4]"), ("get-dimension-size", ", dimensions={1}", "s32[]"),
    ):
        yield case(op, "f32", module(f"  x = f32[3,4] parameter(0)\n  ROOT r = {out} {op}(x){attrs}"), x)
    for op in ("partition-id", "replica-id"):
        yield case(op, "u32", module(f"  ROOT r = u32[] {op}()"))
    yield case("reduce-scatter", "f32", module("  x = f32[3,4] parameter(0)\n  ROOT r = f32[3,4] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=f", reducer("f", "add", "f32")), x)
    yield case("after-all", "token", module("  t = token[] after-all()\n  x = f32[3,4] parameter(0)\n  ROOT r = f32[3,4] add-dependency(x, t)"), x)
    yield case("constant", "f32", module("  c = f32[2] constant({1, -0.5})\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] add(c, x)"), x[0, :2].copy())
    yield case("parameter", "f32", module("  ROOT x = f32[3,4] parameter(0)"), x)


def child():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"))
    import xla

    jax = xla.quiet_jax()
    import numpy as np
    from jaxlib import _jax

    device = jax.devices("cpu")[0]
    for line in sys.stdin:
        wanted = int(line)
        c = ALL_CASES[wanted]
        try:
            path = pathlib.Path(f"/tmp/op_case_{sys.argv[2]}.hlo")
            path.write_text(c["text"])
            executable = device.client.compile_and_load(xla.as_mlir(path), _jax.DeviceList((device,)), xla.options_for((device,)))
            buffers = [jax.device_put(v, device) for v in c["inputs"]]
            outs = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
            answer = {"outputs": [hexed(np.asarray(g[0])) for g in outs]}
        except Exception as e:
            answer = {"error": str(e)[:200]}
        print(json.dumps(answer), flush=True)


ALL_CASES = list(cases())
if sys.argv[1:2] == ["--child"]:
    child()
elif __name__ == "__main__":
    process, kept, lost = None, [], {}
    for n, c in enumerate(ALL_CASES):
        if process is None:
            process = subprocess.Popen([sys.executable, __file__, "--child", str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            process.stdin.write(f"{n}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            process.kill()
            process, answer = None, {"error": "abort"}
        else:
            answer = json.loads(line)
        if "error" in answer:
            lost.setdefault(c["op"], []).append((c["type"], answer["error"][:80]))
            continue
        kept.append({"op": c["op"], "type": c["type"], "text": c["text"], "inputs": [hexed(i) for i in c["inputs"]], "outputs": answer["outputs"]})
    pathlib.Path(sys.argv[1]).write_text("".join(json.dumps(k) + "\n" for k in kept))
    print(len(kept), "cases of", len(ALL_CASES))
    for op, list_ in lost.items():
        print("not taken by XLA:", op, len(list_), list_[:3])
