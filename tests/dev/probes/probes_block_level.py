#!/usr/bin/env python3
"""Writes modules for fusion-block-level-rewriter, 150 of them, to be compiled by the oracle and scored (probes.py):

  probes_block_level.py DIR

Sums of several types and functions, lengths, rows and columns, of what was reshaped, converted or multiplied before, with
something behind them; transposes of three and four dimensions, of arguments, bitcasts and results, and their near misses."""
import pathlib
import sys

NEUTRAL = {"add": "0", "maximum": "0", "minimum": "0", "and": "-1", "or": "0", "multiply": "1", "xor": "0"}
LENGTHS = (1, 2, 3, 7, 16, 31, 32, 64, 100, 127, 128, 129, 255, 256, 512, 1000, 1024, 1500, 2048, 4096, 10000, 65536, 100000)
MATRICES = ((4, 8), (16, 16), (7, 9), (128, 256), (256, 128), (1000, 3), (3, 1000), (64, 1024), (1024, 1024), (4096, 4096), (1, 128), (128, 1), (5, 4000), (33, 33), (100000, 8), (20, 5000))
CUBES = (("4,8,16", "2", "4,8"), ("4,8,16", "1", "4,16"), ("4,8,16", "0", "8,16"), ("4,8,16", "1,2", "4"), ("4,8,16", "0,2", "8"), ("4,8,16", "0,1", "16"), ("4,8,16", "0,1,2", ""),
         ("2,3,5,7", "3", "2,3,5"), ("2,3,5,7", "1,3", "2,5"), ("8,16,32,64", "2", "8,16,64"))  # fmt: skip
RESHAPES = (("16,2048", "128,256"), ("128,256", "16,2048"), ("32768", "128,256"), ("6,10", "12,5"), ("12,5", "60"), ("128,256", "32768"), ("4,8,16", "32,16"), ("4,8,16", "4,128"), ("32,16", "4,8,16"))
TRANSPOSES = (("7,5,3", "2,1,0"), ("100,3,200", "2,1,0"), ("2,3,4,5", "3,1,2,0"), ("2,3,4,5", "3,2,1,0"), ("2,3,4,5", "0,3,2,1"), ("8,8,8,8", "3,0,2,1"), ("1,64,1,128", "3,2,1,0"), ("64,128", "1,0"),
              ("1000,4,1000", "2,1,0"), ("4,4,4", "2,1,0"), ("3,7,2", "2,1,0"), ("2,7,2", "2,1,0"), ("256,1,256", "2,1,0"), ("33,2,65", "2,1,0"), ("8,16,32", "2,0,1"), ("8,16,32", "1,2,0"),
              ("8,16,32", "0,2,1"), ("8,16,32", "1,0,2"))  # fmt: skip


def function(op, t):
    return f"f {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT c = {t}[] {op}(a, b)\n}}\n"


def permuted(shape, order):
    sizes = shape.split(",")
    return ",".join(sizes[int(k)] for k in order.split(","))


def modules():
    def reduced(name, t, shape, dims, result, op="add"):
        start = "false" if t == "pred" else NEUTRAL[op]
        yield name, function(op, t) + f"ENTRY e {{\n  p = {t}[{shape}] parameter(0)\n  z = {t}[] constant({start})\n  ROOT r = {t}[{result}] reduce(p, z), dimensions={{{dims}}}, to_apply=f\n}}\n"

    for t in ("s32", "u32", "s64", "s8", "s16", "f32", "pred"):
        for op in ("and", "or") if t == "pred" else ("add", "maximum"):
            yield from reduced(f"of_{t}_{op}", t, "1000", "0", "", op)
    for op in ("minimum", "and", "or", "multiply", "xor"):
        yield from reduced(f"by_{op}", "s32", "128", "0", "", op)
    for length in LENGTHS:
        yield from reduced(f"length_{length}", "s32", str(length), "0", "")
    for a, b in MATRICES:
        yield from reduced(f"rows_{a}_{b}", "s32", f"{a},{b}", "1", f"{a}")
        yield from reduced(f"columns_{a}_{b}", "s32", f"{a},{b}", "0", f"{b}")
    for shape, dims, result in CUBES:
        yield from reduced(f"cube_{shape}_{dims}", "s32", shape, dims, result)
    for a, b in ((128, 256), (1000, 64)):
        m, head = f"s32[{a},{b}]", function("add", "s32") + f"ENTRY e {{\n  p = s32[{a},{b}] parameter(0)\n"
        tail = f"\n  z = s32[] constant(0)\n  ROOT r = s32[{a}] reduce(x, z), dimensions={{1}}, to_apply=f\n}}\n"
        before = [f"q = s32[{b}] parameter(1)\n  y = {m} broadcast(q), dimensions={{1}}\n  x = {m} multiply(p, y)", f"x = {m} negate(p)", f"x = {m} popcnt(p)", f"y = s8[{a},{b}] convert(p)\n  x = {m} convert(y)",
                  f"x = {m} iota(), iota_dimension=1", f"x = {m} reverse(p), dimensions={{0}}", f"y = {m} add(p, p)\n  x = {m} multiply(y, p)"]  # fmt: skip
        for k, lines in enumerate(before):
            yield f"behind_{k}_{a}_{b}", head + "  " + lines + tail
        yield f"product_{a}_{b}", f"ENTRY e {{\n  p = {m} parameter(0)\n  q = s32[{b}] parameter(1)\n  ROOT r = s32[{a}] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
    for shape, to in RESHAPES:
        sizes = to.split(",")
        yield f"reshaped_{shape}_{to}", function("add", "s32") + f"ENTRY e {{\n  p = s32[{shape}] parameter(0)\n  n = s32[{shape}] negate(p)\n  x = s32[{to}] reshape(n)\n  z = s32[] constant(0)\n  ROOT r = s32[{','.join(sizes[:-1])}] reduce(x, z), dimensions={{{len(sizes) - 1}}}, to_apply=f\n}}\n"
    sum_of = function("add", "s32") + "ENTRY e {\n  p = s32[128,256] parameter(0)\n  z = s32[] "
    yield "followed", sum_of + "constant(0)\n  r = s32[128] reduce(p, z), dimensions={1}, to_apply=f\n  ROOT n = s32[128] negate(r)\n}\n"
    yield "given_start", sum_of + "parameter(1)\n  ROOT r = s32[128] reduce(p, z), dimensions={1}, to_apply=f\n}\n"
    yield "other_start", sum_of + "constant(5)\n  ROOT r = s32[128] reduce(p, z), dimensions={1}, to_apply=f\n}\n"
    yield "two", sum_of + "constant(0)\n  r = s32[128] reduce(p, z), dimensions={1}, to_apply=f\n  n = s32[128,256] negate(p)\n  q = s32[128] reduce(n, z), dimensions={1}, to_apply=f\n  ROOT t = (s32[128], s32[128]) tuple(r, q)\n}\n"
    for t in ("f32", "s32", "bf16", "s8", "u8", "f64", "c64", "pred"):
        yield f"transposed_{t}", f"ENTRY e {{\n  p = {t}[8,16,32] parameter(0)\n  ROOT r = {t}[32,16,8] transpose(p), dimensions={{2,1,0}}\n}}\n"
    for shape, order in TRANSPOSES:
        yield f"transposed_{shape}_{order}", f"ENTRY e {{\n  p = f32[{shape}] parameter(0)\n  ROOT r = f32[{permuted(shape, order)}] transpose(p), dimensions={{{order}}}\n}}\n"
    for shape, to in (("8,512", "8,16,32"), ("4096", "8,16,32"), ("128,32", "8,16,32"), ("10,60", "10,6,10"), ("600", "10,6,10"), ("600", "10,5,12")):
        yield f"bitcast_{shape}_{to}", f"ENTRY e {{\n  p = f32[{shape}] parameter(0)\n  x = f32[{to}] reshape(p)\n  ROOT r = f32[{permuted(to, '2,1,0')}] transpose(x), dimensions={{2,1,0}}\n}}\n"
    yield "negated_first", "ENTRY e {\n  p = f32[8,16,32] parameter(0)\n  x = f32[8,16,32] negate(p)\n  ROOT r = f32[32,16,8] transpose(x), dimensions={2,1,0}\n}\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in modules():
        name = name.replace(",", "x")
        (folder / f"{name}.hlo").write_text(f"HloModule {name}\n{text}")
        count += 1
    print(count, "modules in", folder)


main()
