#!/usr/bin/env python3
"""Constants that a dump elides (`{...}`): bisect gives them values that hold through all stages.  elided_test.py HLO_REPLAY SOURCE_FOLDER"""
import pathlib
import tempfile

from command_line import bisect_stages, expect, finish


def bisect(tmp, name, stages, *more):
    return bisect_stages(pathlib.Path(tmp) / name, stages, *more)


def entry(*lines, parameters="p: f32[4,6]", result="f32[4,6]"):
    return f"ENTRY e ({parameters}) -> {result} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


P = "%p = f32[4,6]{1,0} parameter(0)"
START = entry(P, "%constant.1 = f32[6,4]{1,0} constant({...})", "%transpose.2 = f32[4,6]{1,0} transpose(%constant.1), dimensions={1,0}",
              "ROOT %multiply.3 = f32[4,6]{1,0} multiply(%p, %transpose.2)")
FOLDED = entry(P, "%constant.7 = f32[4,6]{1,0} constant({...})", "ROOT %multiply.3 = f32[4,6]{1,0} multiply(%p, %constant.7)")
RENAMED = entry("%p.0 = f32[4,6]{1,0} parameter(0)", "%constant_7_0 = f32[4,6]{1,0} constant({...})",
                "ROOT %multiply.3.0 = f32[4,6]{1,0} multiply(%p.0, %constant_7_0)", parameters="p.0: f32[4,6]")
TWO = [P, "%constant.1 = f32[4,6]{1,0} constant({...})", "%constant.2 = f32[4,6]{1,0} constant({...})"]


def two(first, second):
    return entry(*TWO, f"%add.3 = f32[4,6]{{1,0}} add(%p, %{first})", f"ROOT %multiply.4 = f32[4,6]{{1,0}} multiply(%add.3, %{second})")


ONE = entry(*TWO[:2], "%add.3 = f32[4,6]{1,0} add(%p, %constant.1)", "ROOT %multiply.4 = f32[4,6]{1,0} multiply(%add.3, %constant.1)")
LOOP = """%body (t: (s32[], f32[4,6]{more})) -> (s32[], f32[4,6]{more}) {{
  %t = (s32[], f32[4,6]{{1,0}}{more}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x = f32[4,6]{{1,0}} get-tuple-element(%t), index=1
  {table}
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %sum = f32[4,6]{{1,0}} add(%x, %{name})
  ROOT %out = (s32[], f32[4,6]{{1,0}}{more}) tuple(%next, %sum{hand})
}}

%condition (c: (s32[], f32[4,6]{more})) -> pred[] {{
  %c = (s32[], f32[4,6]{{1,0}}{more}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%j, %three), direction=LT
}}

ENTRY e (p: f32[4,6]) -> f32[4,6] {{
  %p = f32[4,6]{{1,0}} parameter(0)
  {outside}
  %zero = s32[] constant(0)
  %begin = (s32[], f32[4,6]{{1,0}}{more}) tuple(%zero, %p{given})
  %while.1 = (s32[], f32[4,6]{{1,0}}{more}) while(%begin), condition=%condition, body=%body
  ROOT %result = f32[4,6]{{1,0}} get-tuple-element(%while.1), index=1
}}
"""
CARRIED = LOOP.format(more=", f32[4,6]", table="%w = f32[4,6]{1,0} get-tuple-element(%t), index=2", name="w", hand=", %w",
                      outside="%constant.9 = f32[4,6]{1,0} constant({...})", given=", %constant.9")
SUNK = LOOP.format(more="", table="%constant.12 = f32[4,6]{1,0} constant({...})", name="constant.12", hand="", outside="", given="")
LOOKUP = entry("%p = f32[9,6]{1,0} parameter(0)", "%constant.1 = s32[4]{0} constant({...})",
               "ROOT %gather.2 = f32[4,6]{1,0} gather(%p, %constant.1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
               "index_vector_dim=1, slice_sizes={1,6}", parameters="p: f32[9,6]")

with tempfile.TemporaryDirectory() as tmp:
    code, j = bisect(tmp, "folded", [("", START), ("constant_folding", FOLDED), ("rename-instructions", RENAMED)])
    expect("folding and renaming are followed", code == 0 and "no bad stage" in j["verdict"], j["verdict"])
    expect("made-up values are told", "1 constant" in (j["elided"] or "") and "--xla_dump_large_constants" in j["elided"], j["elided"])

    wrong = FOLDED.replace("multiply(%p", "add(%p").replace("%multiply.3 =", "%add.3 =")
    code, j = bisect(tmp, "wrong", [("", START), ("constant_folding", FOLDED), ("algsimp", wrong)])
    expect("a fault beside an elided constant is named", code == 1 and j["pass"] == "algsimp", j["verdict"])

    code, j = bisect(tmp, "merged", [("", two("constant.1", "constant.2")), ("cse", ONE)])
    expect("one that takes another's place is the same", code == 0 and "constant.1 and constant.2" in (j["elided"] or ""), j)

    code, j = bisect(tmp, "exchanged", [("", two("constant.1", "constant.2")), ("algsimp", two("constant.2", "constant.1"))])
    expect("exchanged ones are named", code == 1 and j["pass"] == "algsimp", j["verdict"])

    code, j = bisect(tmp, "sunk", [("", CARRIED), ("while-loop-constant-sinking", SUNK)])
    expect("into a loop", code == 0 and "no bad stage" in j["verdict"], j)

    nowhere = FOLDED.replace("multiply(%p, %constant.7)", "subtract(%p, %constant.7)").replace("%multiply.3 =", "%subtract.8 =")
    code, j = bisect(tmp, "nowhere", [("", entry(P, "ROOT %negate.1 = f32[4,6]{1,0} negate(%p)")), ("algsimp", nowhere)])
    expect("what nothing tells is not judged", code != 1 and "no bad stage" not in j["verdict"] and j["not_judged"] == 1, (code, j))

    code, j = bisect(tmp, "lookup", [("", LOOKUP), ("algsimp", LOOKUP.replace("slice_sizes={1,6}", "slice_sizes={1,6}, indices_are_sorted=false"))])
    expect("indices", code == 0 and "no bad stage" in j["verdict"], j["verdict"])

    code, j = bisect(tmp, "cut", [("", START), ("constant_folding", FOLDED), ("algsimp", FOLDED[:90]), ("rename-instructions", RENAMED)])
    expect("one stage that cannot be read leaves the others", code != 1 and j["judged"] == 3 and j["not_judged"] == 1, (code, j["verdict"]))
    beyond = CARRIED.replace("get-tuple-element(%t), index=2", "get-tuple-element(%t), index=7")
    code, j = bisect(tmp, "beyond", [("", CARRIED), ("algsimp", beyond), ("while-loop-constant-sinking", SUNK)])
    expect("an element that is none", code in (1, 2) and "while-loop-constant-sinking" not in (j.get("guilty") or ""), (code, j["verdict"]))

    over = entry(P, '%constant.1 = f32[4,6]{1,0} constant({...}), metadata={op_name="jit(f)/k"}', "ROOT %divide.2 = f32[4,6]{1,0} divide(%p, %constant.1)")
    times = entry(P, '%constant.3 = f32[4,6]{1,0} constant({...}), metadata={op_name="jit(f)/k"}', "ROOT %multiply.4 = f32[4,6]{1,0} multiply(%p, %constant.3)")
    code, j = bisect(tmp, "reciprocal", [("", over), ("algsimp", times)])
    expect("a reciprocal", code == 0 and "reciprocal of constant.1" in (j["elided"] or ""), (code, j["verdict"], j["elided"]))
    code, j = bisect(tmp, "no_reciprocal", [("", over), ("algsimp", times.replace("/k", "/z"))])
    expect("another line's constant is not taken for one", code != 1 and j["not_judged"] == 1, (code, j["verdict"]))

    code, j = bisect(tmp, "zeros", [("", START), ("constant_folding", FOLDED)], "--fill-elided=zeros")
    expect("--fill-elided=zeros", code == 0 and j["elided"] is None, j)

finish("elided_test")
