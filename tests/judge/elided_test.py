#!/usr/bin/env python3
"""Constants that a dump elides (`{...}`): bisect gives them values that hold through all stages.  elided_test.py HLO_REPLAY SOURCE_FOLDER"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import bisect_stages, expect, finish, run


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

    # What a pass made of made-up values is no fault of its; what comes behind it is judged from there on.
    begin = entry(P, "%constant.1 = f32[4,6]{1,0} constant({...})", "%constant.2 = f32[4,6]{1,0} constant({...})", "%subtract.3 = f32[4,6]{1,0} subtract(%p, %constant.1)",
                  "ROOT %add.5 = f32[4,6]{1,0} add(%subtract.3, %constant.2)")
    lost = entry(P, "%constant.9 = f32[4,6]{1,0} constant({...})", "ROOT %add.6 = f32[4,6]{1,0} add(%p, %constant.9)")
    moved = entry(P, "%constant.9 = f32[4,6]{1,0} constant({...})", "ROOT %add.7 = f32[4,6]{1,0} add(%constant.9, %p)")
    bad = entry(P, "%constant.9 = f32[4,6]{1,0} constant({...})", "ROOT %multiply.7 = f32[4,6]{1,0} multiply(%constant.9, %p)")
    code, j = bisect(tmp, "lost_elements", [("", begin), ("cse", begin), ("simplify-while-loops", lost)], "--elements")
    expect("...nor at chosen elements", code == 2 and j["found"] is False, (code, j["verdict"]))
    for more in ([], ["--outputs-only"]):
        way = " ".join(more)
        code, j = bisect(tmp, "lost" + way, [("", begin), ("cse", begin), ("simplify-while-loops", lost), ("algsimp", moved), ("dce", moved)], *more)
        expect(f"a folded constant accuses nobody {way}", code == 2 and j["found"] is False and j["judged"] == 4 and j["not_judged"] == 1 and
               "constant.9" in j["unknown"][0]["why"] and j["unknown"][0]["stage"].startswith("0002"), (code, j["verdict"]))
        code, j = bisect(tmp, "behind" + way, [("", begin), ("cse", begin), ("simplify-while-loops", lost), ("algsimp", bad)], *more)
        expect(f"a fault behind it is named {way}", code == 1 and j["pass"] == "algsimp" and j["bad"].startswith("0003") and j["good"].startswith("0002"), (code, j.get("guilty"), j["verdict"]))
    small = entry("%p = f32[] parameter(0)", "%constant.1 = f32[40]{0} constant({...})", "%slice.2 = f32[1]{0} slice(%constant.1), slice={[3:4]}",
                  "%reshape.3 = f32[] reshape(%slice.2)", "ROOT %multiply.4 = f32[] multiply(%p, %reshape.3)", parameters="p: f32[]", result="f32[]")
    folded = entry("%p = f32[] parameter(0)", "%constant.5 = f32[] constant(17.5)", "ROOT %multiply.4 = f32[] multiply(%p, %constant.5)", parameters="p: f32[]", result="f32[]")
    code, j = bisect(tmp, "small", [("", small), ("constant_folding", folded), ("dce", folded)])
    expect("nor does a small one", code == 2 and j["not_judged"] == 1 and "constant.5" in j["unknown"][0]["why"], (code, j["verdict"]))
    code, j = bisect(tmp, "small_bad", [("", small), ("constant_folding", folded), ("algsimp", folded.replace("multiply(%p", "subtract(%p"))])
    expect("a fault behind a small one", code == 1 and j["pass"] == "algsimp", (code, j["verdict"]))

    # Values that the dump has elsewhere.
    whole = ", ".join("{" + ", ".join(str(6 * r + c + 1) for c in range(4)) + "}" for r in range(6))
    plain = pathlib.Path(tmp) / "plain.hlo"
    plain.write_text("HloModule m\n\n" + START.replace("{...}", "{" + whole + "}"))
    flat = [6 * r + c + 1 for c in range(4) for r in range(6)]
    true_fold = FOLDED.replace("{...}", "{" + ", ".join("{" + ", ".join(map(str, flat[6 * r:6 * r + 6])) + "}" for r in range(4)) + "}")

    def with_values(name, stages, beside):
        folder = pathlib.Path(tmp) / name
        folder.mkdir()
        for n, (made_by, text) in enumerate(stages):
            file = "before_optimizations" if n == 0 else f"{n:04}.simplification.after_{made_by}.before_next"
            (folder / f"module_0000.m.{file}.txt").write_text("HloModule m\n\n" + text)
        code, out, err = run("convert", plain, folder / beside)
        expect("converted", code == 0, err)
        return folder
    for beside in ("module_0000.m.before_optimizations.hlo.pb", "module_0000.m.hlo_unoptimized_snapshot.pb"):
        folder = with_values("own_" + beside, [("", START), ("constant_folding", true_fold), ("dce", FOLDED)], beside)
        code, out, err = run("bisect", folder, "--json")
        j = json.loads(out)
        expect(f"own values from {beside}", code == 0 and "no bad stage" in j["verdict"] and beside in (j["elided"] or "") and "made up" not in j["elided"], (code, j["verdict"], j["elided"], err))
        stage = f"{folder}:0:before_optimizations"
        code, out, err = run("exec", stage, f"--compare-with={plain}")
        expect("exec takes them", code == 0 and beside in err and "made up" not in err, (code, out, err))
        code, out, err = run("diff", "--run", stage, plain)
        expect("diff --run takes them", code == 0 and beside in err, (code, out, err))
        code, out, err = run("exec", stage, "--json", "--fill-elided=refuse")
        told = json.loads(out)["elided_constants"][0]
        expect("exec says so", code == 0 and beside in told["own"] and told["constants"] == 0, (code, told, err))
        code, out, err = run("isolate", stage)
        expect("isolate takes them", beside in err and "made up" not in err, (code, err))
    (folder / "module_0000.m.before_optimizations.hlo.pb").write_bytes(b"\x0a\xff\xff\xff\x7fno proto")
    (folder / beside).unlink()
    code, out, err = run("bisect", folder, "--json")
    j = json.loads(out)
    expect("a damaged file is told", "before_optimizations.hlo.pb:" in (j["elided"] or "") and "made up" in j["elided"] and code == 2, (code, j["elided"], err))
    code, j = bisect(tmp, "later", [("", START.replace("{...}", "{" + whole + "}")), ("dce", START)])
    expect("stage 0 has it whole", code == 0 and "no bad stage" in j["verdict"] and "earlier ones" in (j["elided"] or ""), (code, j["verdict"], j["elided"]))

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

    for name, made in (("iota", "%seen.1 = f32[4,6]{1,0} iota(), iota_dimension=1"),
                       ("broadcast", "%one.1 = f32[] constant(3), %seen.1 = f32[4,6]{1,0} broadcast(%one.1), dimensions={}")):
        seen = entry(P, *made.split(", %"), "ROOT %multiply.3 = f32[4,6]{1,0} multiply(%p, %seen.1)")
        seen = seen.replace("\n  seen.1", "\n  %seen.1")
        code, j = bisect(tmp, name, [("", START), ("algsimp", seen), ("algsimp", seen)])
        expect(f"an elided constant that became {name}", code != 1 and not j["found"] and "seen.1" in json.dumps(j["unknown"]), (code, j["verdict"], j.get("unknown")))
        gone = seen.replace("multiply(%p, %seen.1)", "add(%p, %seen.1)").replace("%multiply.3", "%add.3")
        code, j = bisect(tmp, name + "_wrong", [("", START), ("algsimp", seen), ("dot", gone)])
        expect(f"a fault behind what became {name}", code == 1 and j["pass"] == "dot", (code, j["verdict"]))

    # Too large to run: chosen elements leave it open, and at smaller sizes nobody is accused.
    large = entry("%p = f32[65536,98304]{1,0} parameter(0)", "%constant.1 = f32[65536]{0} constant({...})",
                  "%broadcast.2 = f32[65536,98304]{1,0} broadcast(%constant.1), dimensions={0}",
                  "ROOT %multiply.3 = f32[65536,98304]{1,0} multiply(%p, %broadcast.2)", parameters="p: f32[65536,98304]", result="f32[65536,98304]")
    counts = large.replace("%constant.1 = f32[65536]{0} constant({...})", "%seen.1 = f32[65536]{0} iota(), iota_dimension=0").replace("(%constant.1)", "(%seen.1)")
    code, j = bisect(tmp, "large", [("", large), ("algsimp", counts)])
    expect("a large one that became iota", code == 2 and not j.get("found") and not j.get("verdict", "tested on").startswith("tested on"), (code, j))

    code, j = bisect(tmp, "zeros", [("", START), ("constant_folding", FOLDED)], "--fill-elided=zeros")
    expect("--fill-elided=zeros", code == 0 and j["elided"] is None, j)

finish("elided_test")
