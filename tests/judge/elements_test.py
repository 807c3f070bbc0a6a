#!/usr/bin/env python3
"""bisect --elements: stages too large to run, judged at chosen elements.  elements_test.py HLO_REPLAY SOURCE_FOLDER"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import SUM, bisect_stages, expect, finish, source, tool
from elements_modules import LOOP, bisect
from json_schema import Schemas


# A row's softmax of a product whose arrays take 100 GiB and more.
BIG = """ENTRY e {{
  x = f32[131072,16384]{{1,0}} parameter(0)
  w = f32[16384,131072]{{1,0}} parameter(1)
  y = f32[131072,131072]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  two = f32[] constant({two})
  twos = f32[131072,131072]{{1,0}} broadcast(two), dimensions={{}}
  {scale}
  bias = f32[131072]{{0}} parameter(2)
  biases = f32[131072,131072]{{1,0}} broadcast(bias), dimensions={{{dim}}}
  ROOT out = f32[131072,131072]{{1,0}} add(scaled, biases)
}}
"""
DIVIDE = "scaled = f32[131072,131072]{1,0} divide(y, twos)"
TIMES = "scaled = f32[131072,131072]{1,0} multiply(y, twos)"
FIRST = BIG.format(two=2, scale=DIVIDE, dim=1)
# x / 2 + b, through a transposed product and a fusion.
OTHER_WAY = """fused {
  t = f32[131072,131072]{1,0} parameter(0)
  c = f32[] constant(0.5)
  cs = f32[131072,131072]{1,0} broadcast(c), dimensions={}
  m = f32[131072,131072]{1,0} multiply(t, cs)
  b = f32[131072]{0} parameter(1)
  bs = f32[131072,131072]{1,0} broadcast(b), dimensions={0}
  ROOT s = f32[131072,131072]{1,0} add(bs, m)
}

ENTRY e {
  x = f32[131072,16384]{1,0} parameter(0)
  w = f32[16384,131072]{1,0} parameter(1)
  y.1 = f32[131072,131072]{1,0} dot(w, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  bias = f32[131072]{0} parameter(2)
  f = f32[131072,131072]{1,0} fusion(y.1, bias), kind=kLoop, calls=fused
  ROOT out = f32[131072,131072]{1,0} transpose(f), dimensions={1,0}
}
"""


def large(tmp):
    code, j = bisect(tmp, "sound", [("", FIRST), ("algsimp", BIG.format(two=0.5, scale=TIMES, dim=1)), ("fusion", OTHER_WAY)])
    expect("sound", code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))
    expect("all compared", j["elements"] and j["elements"]["changed"] == j["elements"]["compared"] > 0, j["elements"])
    seen = j["elements"]["sampled"]  # all else is one expression
    expect("by some elements", seen["values"] > 0 and 0 < seen["seen"] < 200 and seen["of"] == 131072**2, seen)
    expect("one escapes", .999999 < seen["one_escapes"] < 1, seen)
    expect("a hundredth escapes", abs(seen["hundredth_escapes"] - .99 ** seen["seen"]) < 1e-3, seen)
    expect("in words", f'{seen["seen"]} of {seen["of"]} ({seen["least"]}): one wrong element there escapes with a chance of over 99.9 %' in j["verdict"] + j.get("text", ""), j["verdict"])
    # The right way of the fault is another axis, a factor.
    for name, text, at in (("axis", BIG.format(two=2, scale=DIVIDE, dim=0), "biases"), ("factor", BIG.format(two=2, scale=TIMES, dim=1), "scaled")):
        code, j = bisect(tmp, name, [("", FIRST), ("dce", FIRST), ("algsimp", text)])
        expect(name, code == 1 and j["pass"] == "algsimp", (code, j["verdict"], j["guilty"]))
        told = j["first_value_that_differs"]
        expect(f"{name}: the instruction", told and told["name"] == at, told)


BRACES = SUM.replace("{", "{{").replace("}", "}}")  # for str.format


def loops(tmp):
    twice = "d = f32[65536,65536]{1,0} add(v, v)\n  u = f32[65536,65536]{1,0} tanh(d)"
    times = ("c = f32[] constant(2)\n  b = f32[65536,65536]{1,0} broadcast(c), dimensions={}\n"
             "  d = f32[65536,65536]{1,0} multiply(v, b)\n  u = f32[65536,65536]{1,0} tanh(d)")
    first = LOOP.format(step=twice, trips=10)
    code, j = bisect(tmp, "loop", [("", first), ("algsimp", LOOP.format(step=times, trips=10))])
    expect("a loop's body", code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))
    code, j = bisect(tmp, "trips", [("", first), ("algsimp", LOOP.format(step=twice, trips=11))])
    expect("another number of trips is not called good", code != 0, (code, j["verdict"]))
    code, j = bisect(tmp, "one more", [("", first), ("algsimp", LOOP.format(step=twice, trips=10).replace("direction=LT", "direction=LE"))])
    expect("one trip more", code == 1 and j["first_value_that_differs"]["name"] == "p", (code, j["verdict"], j["guilty"]))
    expect("...by how many", "11 times instead of 10" in (j["why"] or ""), j["why"])
    code, j = bisect(tmp, "as many", [("", first), ("algsimp", LOOP.format(step=twice, trips=10).replace("direction=LT", "direction=NE"))])
    expect("as many trips by another comparison: not accused", code != 1, (code, j["verdict"], j["guilty"]))
    code, j = bisect(tmp, "step", [("", first), ("algsimp", LOOP.format(step=times.replace("(2)", "(3)"), trips=10))])
    expect("another step", code == 1 and j["first_value_that_differs"]["name"] == "d", (code, j["verdict"], j["guilty"]))


# The same loop with its first trip in front of it, or two trips in one.
PEELED = """body {{
  s = (s32[], f32[65536,65536]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[65536,65536]{{1,0}} get-tuple-element(s), index=1
  {step}
  one = s32[] constant({by})
  n = s32[] add(i, one)
  ROOT r = (s32[], f32[65536,65536]{{1,0}}) tuple(n, u)
}}

condition {{
  s = (s32[], f32[65536,65536]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(10)
  ROOT p = pred[] compare(i, ten), direction=LT
}}

ENTRY e {{
  p = f32[65536,65536]{{1,0}} parameter(0)
  begin = s32[] constant({begin})
  {first}
  t = (s32[], f32[65536,65536]{{1,0}}) tuple(begin, first)
  w = (s32[], f32[65536,65536]{{1,0}}) while(t), condition=condition, body=body
  ROOT g = f32[65536,65536]{{1,0}} get-tuple-element(w), index=1
}}
"""


def trips(tmp):
    one = "d = f32[65536,65536]{1,0} add(v, v)\n  u = f32[65536,65536]{1,0} tanh(d)"
    two = "d = f32[65536,65536]{1,0} add(v, v)\n  h = f32[65536,65536]{1,0} tanh(d)\n  d.1 = f32[65536,65536]{1,0} add(h, h)\n  u = f32[65536,65536]{1,0} tanh(d.1)"
    front = "d.2 = f32[65536,65536]{1,0} add(p, p)\n  first = f32[65536,65536]{1,0} tanh(d.2)"
    nothing = "first = f32[65536,65536]{1,0} copy(p)"
    whole = LOOP.format(step=one, trips=10)
    for name, text in (("a trip in front", PEELED.format(step=one, by=1, begin=1, first=front)),
                       ("two trips in one", PEELED.format(step=two, by=2, begin=0, first=nothing))):
        code, j = bisect(tmp, name, [("", whole), ("dce", whole), ("loop-double-buffer-transformer", text), ("cse", text)])
        expect(name, code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))
    for name, text in (("a trip in front, and once more", PEELED.format(step=one, by=1, begin=0, first=front)),
                       ("another trip in front", PEELED.format(step=one, by=1, begin=1, first=front.replace("add", "multiply"))),
                       ("two trips in one, one too many", PEELED.format(step=two, by=1, begin=1, first=nothing)),
                       ("two other trips in one", PEELED.format(step=two.replace("tanh(d.1)", "tanh(h)"), by=2, begin=0, first=nothing))):
        code, j = bisect(tmp, name, [("", whole), ("loop-double-buffer-transformer", text)])
        expect(f"{name} is not called good", code != 0 and "no bad stage" not in j["verdict"], (code, j["verdict"]))


# What reads values that are made of one another: drawn apart they would differ.
TIED = BRACES + """ENTRY e {{
  x = f32[65536,2048]{{1,0}} parameter(0)
  zero = f32[] constant(0)
  c = f32[] parameter(1)
  cs = f32[65536,2048]{{1,0}} broadcast(c), dimensions={{}}
  xc = f32[65536,2048]{{1,0}} multiply(x, cs)
  s = f32[65536]{{0}} reduce(x, zero), dimensions={{1}}, to_apply=add
  {last}
  ROOT out = (f32[65536]{{0}}, f32[65536,2048]{{1,0}}, f32[65536]{{0}}) tuple(s, xc, t)
}}
"""


def tied(tmp):
    before = "t = f32[65536]{0} reduce(xc, zero), dimensions={1}, to_apply=add"
    after = "cv = f32[65536]{0} broadcast(c), dimensions={}\n  t = f32[65536]{0} multiply(s, cv)"
    code, j = bisect(tmp, "tied", [("", TIED.format(last=before)), ("algsimp", TIED.format(last=after))])
    expect("a sum of multiples", code == 0, (code, j["verdict"], j["guilty"]))
    code, j = bisect(tmp, "not tied", [("", TIED.format(last=before)), ("algsimp", TIED.format(last=after.replace("multiply", "add")))])
    expect("no multiple", code != 0, (code, j["verdict"], j["guilty"]))


def unknown(tmp):
    call = 'ENTRY e {{\n  x = f32[65536,65536]{{1,0}} parameter(0)\n  ROOT y = f32[65536,65536]{{1,0}} custom-call(x), custom_call_target="{}"\n}}\n'
    code, j = bisect(tmp, "same call", [("", call.format("mine")), ("dce", call.format("mine"))])
    expect("an opaque call is a function", code == 0, (code, j["verdict"]))
    code, j = bisect(tmp, "other call", [("", call.format("mine")), ("dce", call.format("yours"))])
    expect("another call is not judged", code == 2 and j["guilty"] is None, (code, j["verdict"], j["guilty"]))


# Too much for the evaluator, but not for the memory: what chosen elements leave open would be run.
LONG = """ENTRY e {{
  x = f32[4096,4096]{{1,0}} parameter(0)
  w = f32[4096,4096]{{1,0}} parameter(1)
  y = f32[4096,4096]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  {scale}
  ROOT out = f32[4096,4096]{{1,0}} add(scaled, x)
}}
"""


def unreadable(tmp):
    first, same, other = (LONG.format(scale="scaled = f32[4096,4096]{1,0} " + s) for s in ("add(y, y)", "subtract(y, neg)", "subtract(y, y)"))
    same = same.replace("  scaled", "  neg = f32[4096,4096]{1,0} negate(y)\n  scaled")
    code, j = bisect(tmp, "cut", [("", first), ("cse", first[:len(first) // 2]), ("algsimp", same)])
    expect("a stage that cannot be read decides nothing", code == 2 and j["elements"] and j["elements"]["changed"] == j["elements"]["compared"] > 0, j["verdict"])
    expect("...and is told by name and reason", j["unknown"] and j["unknown"][0]["stage"].startswith("0001 ") and "truncated" in j["unknown"][0]["why"], j.get("unknown"))
    expect("...all others are judged", (j["judged"], j["not_judged"]) == (2, 1), j["verdict"])
    code, j = bisect(tmp, "cut before", [("", first), ("cse", first[:len(first) // 2]), ("algsimp", other)])
    expect("the stage behind it is held against the last that can be read", code == 1 and j["good"] == "before_optimizations" and j["pass"] == "algsimp", (code, j["good"], j["bad"]))
    expect("...and what stands between them is told", "or the stage before it, which cannot be compared" in j["guilty"], j["guilty"])
    expect("...with the value that differs", (j["first_value_that_differs"] or {}).get("name") == "scaled", j["first_value_that_differs"])
    wrong = same.replace("w = f32[4096,4096]", "w = f32[4095,4096]")
    code, j = bisect(tmp, "not valid", [("", first), ("dce", first), ("algsimp", wrong)])
    expect("a stage that does not verify is bad", code == 1 and j["pass"] == "algsimp" and "dot" in j["why"], (code, j["verdict"], j.get("why")))


def until(folder, *more, said=None, sent=signal.SIGTERM):
    """bisect, with a signal half a second after it said that: exit code, what it printed, seconds from when it was asked to end."""
    child = subprocess.Popen([tool, "bisect", folder, "--fill-elided=zeros", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begin = time.monotonic()
    before = ""
    if said:
        while said not in before and (line := child.stderr.readline()):
            before += line
        time.sleep(0.5)
        begin = time.monotonic()
        child.send_signal(sent)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
    return child.returncode, out, before + err, time.monotonic() - begin


def chain(first, length=20):
    """Every value another one where the first is: a stage that takes its time."""
    rows = ["p = f32[65536,65536]{1,0} parameter(0)", f"v0 = f32[65536,65536]{{1,0}} {first}(p)", f"v1 = f32[65536,65536]{{1,0}} add(v0, p)"]
    rows += [f"v{k} = f32[65536,65536]{{1,0}} {'add' if k % 2 else 'subtract'}(v{k - 1}, v{k - 2})" for k in range(2, length)]
    return "ENTRY e {\n  " + "\n  ".join(rows) + f"\n  ROOT r = f32[65536,65536]{{1,0}} negate(v{length - 1})\n}}\n"


def stopped(tmp):
    schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
    # Another number of trips leaves it open, and random bits keep arrays as large as they are, so that the stages are run:
    # one product of many seconds, which does not look up.
    folder = pathlib.Path(tmp) / "runs"
    small = LOOP.replace("65536,65536", "6144").replace("{{1,0}}", "{{0}}").format(step="u = f32[6144]{0} tanh(v)", trips="TRIPS")
    entry = LONG.replace("4096", "6144").format(scale="\n  ".join((
        "zero = s32[] constant(0)", "v = f32[6144]{0} parameter(2)", "k = u64[2]{0} parameter(3)",
        "bits = (u64[2]{0}, u32[6144]{0}) rng-bit-generator(k), algorithm=rng_three_fry", "t = (s32[], f32[6144]{0}) tuple(zero, v)",
        "l = (s32[], f32[6144]{0}) while(t), condition=condition, body=body", "g = f32[6144]{0} get-tuple-element(l), index=1",
        "gs = f32[6144,6144]{1,0} broadcast(g), dimensions={1}", "scaled = f32[6144,6144]{1,0} add(y, gs)")))
    text = small[:small.index("ENTRY")] + entry
    folder.mkdir()
    for n, (file, trips) in enumerate((("before_optimizations", 10), ("0001.simplification.after_dce.before_next", 10), ("0002.simplification.after_algsimp.before_next", 11))):
        (folder / f"module_0000.m.{file}.txt").write_text("HloModule m\n\n" + text.replace("TRIPS", str(trips)).replace("ten", f"n{trips}").replace("ROOT p ", f"ROOT p{trips} "))
    for way, more, how in (("time limit", ["--time-limit=4"], {}), ("Ctrl-C", [], {"said": "are run", "sent": signal.SIGINT}), ("SIGTERM", [], {"said": "are run"})):
        code, out, err, seconds = until(folder, "--json", *more, **how)
        expect(f"{way}: within a second", seconds < (1 if how else 5), seconds)
        j = json.loads(out) if out.startswith("{") else {}
        expect(f"{way}: what was judged", code == 2 and [v["verdict"] for v in j.get("verdicts", [])] == ["good", "good", "unknown"] and j["judged"] == 2 and "are run" in err, (code, out[:300], err))
        expect(f"{way}: as docs/schemas has it", not schemas.wrong(j, "bisect.json"), schemas.wrong(j, "bisect.json"))
        expect(f"{way}: what ended it", j.get("stopped") == ("by a signal" if how else "after 4 s"), j.get("stopped"))
        expect(f"{way}: what chosen elements told", j.get("elements") and j["elements"]["changed"] > j["elements"]["compared"], j.get("elements"))
        code, out, err, seconds = until(folder, *more, **how)
        expect(f"{way}: in words", code == 2 and f"stopped {j['stopped']}" in out and "2 of 3 " in out and out.startswith("not compared: 0002 "), (code, out, err))
    # In the midst of many stages; what is found by then is found.
    folder = pathlib.Path(tmp) / "found"
    folder.mkdir()
    for k in range(1000):
        (folder / f"module_0000.m.{k:04}.simplification.after_algsimp.before_next.txt").write_text("HloModule m\n\n" + chain(("sine", "tanh")[k % 2]))
    code, out, err, seconds = until(folder, "--json", "--time-limit=3")
    j = json.loads(out) if out.startswith("{") else {}
    expect("what was found", code == 1 and j.get("found") and j["bad"] == "0001 simplification.after_algsimp" and 1 < j["judged"] < 1000, (code, out[:300], err))
    expect("...as docs/schemas has it", not schemas.wrong(j, "bisect.json"), schemas.wrong(j, "bisect.json"))
    expect("...by which value", j and j["elements"]["findings"][0]["after"] == "v0", out[:300])
    expect("...and what ended it", j.get("stopped") == "after 3 s" and seconds < 4, (j.get("stopped"), seconds))
    code, out, err, seconds = until(folder, "--time-limit=3")
    expect("...in words", code == 1 and "stopped after 3 s" in out and out.endswith("guilty: pass algsimp of pipeline simplification, stage 0001 simplification.after_algsimp\n"), (code, out, err))
    # Within the first stage that is judged.
    folder = pathlib.Path(tmp) / "at once"
    folder.mkdir()
    for k in range(2):
        (folder / f"module_0000.m.{k:04}.simplification.after_algsimp.before_next.txt").write_text("HloModule m\n\n" + chain(("sine", "tanh")[k], 400))
    code, out, err, seconds = until(folder, "--json", "--time-limit=0.05")
    j = json.loads(out) if out.startswith("{") else {}
    expect("at once", code == 2 and j.get("stopped") == "after 0.05 s" and len(j["verdicts"]) < 2 and seconds < 1.05, (code, out[:300], err, seconds))


def many(tmp):
    """A stage takes some seconds: one is run, sixty are not."""
    steps = "".join(f"  y{k} = f32[4096,4096]{{1,0}} {('sine', 'cosine')[k % 2]}({f'y{k - 1}' if k else 'x'})\n" for k in range(40))
    def entry(of):
        return f"ENTRY e {{\n  x = f32[4096,4096]{{1,0}} parameter(0)\n{steps}  ROOT r = f32[4096,4096]{{1,0}} add(y39, {of})\n}}\n"
    stages = [("", entry("x"))] + [("dce", entry("x"))] * 60
    code, j = bisect(tmp, "many", stages)
    expect("sound stages", code == 0 and j["elements"], (code, j["verdict"], j["elements"]))
    code, j = bisect(tmp, "many, a fault", stages + [("algsimp", entry("y0"))])
    expect("a fault in the last", code == 1 and j["pass"] == "algsimp" and j["elements"], (code, j["verdict"]))


# Names that mean something else in the next stage, as behind a way through MLIR: the metadata tells what is what.
THROUGH_MLIR = """HloModule m, entry_computation_layout={{(f32[96,2048,4096]{{2,1,0}}, f32[4096]{{0}})->f32[96,2048,4096]{{2,1,0}}}}

FileNames
1 "model.py"

FunctionNames
1 "layer"

FileLocations
{locations}

StackFrames
{frames}

ENTRY e {{
  x = f32[96,2048,4096]{{2,1,0}} parameter(0)
  w = f32[4096]{{0}} parameter(1)
  {n[0]} = f32[96,2048,4096]{{2,1,0}} broadcast(w), dimensions={{2}}{sharding}
  {n[1]} = f32[96,2048,4096]{{2,1,0}} sine(x){sharding}, metadata={{op_name="jit(f)/sin" stack_frame_id={f[0]}}}
  {n[2]} = f32[96,2048,4096]{{2,1,0}} {last}, metadata={{op_name="jit(f)/mul" stack_frame_id={f[1]}}}
  {n[3]} = f32[96,2048,4096]{{2,1,0}} exponential({n[2]}), metadata={{op_name="jit(f)/exp" stack_frame_id={f[1]}}}
  ROOT {n[4]} = f32[96,2048,4096]{{2,1,0}} subtract({n[3]}, {n[1]}){sharding}
}}
"""


def through_mlir(tmp):
    def stage(names, turned, last, sharding=""):
        lines = ["1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=1}", "1 {file_name_id=1 function_name_id=1 line=8 end_line=8 column=1 end_column=1}"]
        if turned:
            lines.reverse()
        locations = "\n".join(f"{k + 1}{line[1:]}" for k, line in enumerate(lines))
        frames = "\n".join(f"{k} {{file_location_id={k} parent_frame_id={k}}}" for k in (1, 2))
        return THROUGH_MLIR.format(n=names, f=(2, 1) if turned else (1, 2), last=last.format(n=names), locations=locations, frames=frames, sharding=sharding)

    first = stage(["a", "b", "c", "d", "r"], False, "multiply({n[1]}, {n[0]})")
    code, j = bisect_stages(pathlib.Path(tmp) / "through MLIR", [("", first), ("shardy-xla", stage(["c", "d", "r", "b", "a"], True, "multiply({n[0]}, {n[1]})", ", sharding={replicated}"))], "--elements", header="")
    expect("names of another meaning", code == 0 and j["elements"]["changed"] == j["elements"]["compared"], (code, j["verdict"], j["unknown"]))
    code, j = bisect_stages(pathlib.Path(tmp) / "through MLIR, other", [("", first), ("shardy-xla", stage(["c", "d", "r", "b", "a"], True, "add({n[0]}, {n[1]})"))], "--elements", header="")
    expect("another operation is not called good", code != 0, (code, j["verdict"], j["unknown"]))


# An update that few elements show: by chance none of those that are looked at.
SCATTER = """ENTRY e {{
  p = f32[4,2048,32000]{{2,1,0}} parameter(0)
  i = s32[4,2048]{{1,0}} parameter(1)
  c = f32[] constant(-0.0001)
  u = f32[4,2048,1]{{2,1,0}} broadcast(c), dimensions={{}}
  s = f32[4,2048,32000]{{2,1,0}} sine(p)
  n = s32[4,2048,1,1]{{3,2,1,0}} reshape(i)
  a = s32[4,2048,1,1]{{3,2,1,0}} iota(), iota_dimension=0
  b = s32[4,2048,1,1]{{3,2,1,0}} iota(), iota_dimension=1
  at = s32[4,2048,1,3]{{3,2,1,0}} concatenate(a, b, n), dimensions={{3}}
  ROOT r = f32[4,2048,32000]{{2,1,0}} {root}
}}
"""
UPDATED = "scatter(s, at, u), update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={0,1,2}, index_vector_dim=3, to_apply=add"
BATCHED = "scatter(s, n, u), update_window_dims={}, inserted_window_dims={2}, scatter_dims_to_operand_dims={2}, input_batching_dims={0,1}, scatter_indices_batching_dims={0,1}, index_vector_dim=3, to_apply=add"


# An index for each of many batches: 2,097,152 of them, of which one element has six.
WIDE = """ENTRY e {{
  p = f32[128,2048,64]{{2,1,0}} parameter(0)
  i = s32[128,2048,8]{{2,1,0}} parameter(1)
  u = f32[128,2048,8]{{2,1,0}} parameter(2)
  n = s32[128,2048,8,1]{{3,2,1,0}} reshape(i)
  {zeros}
  z = f32[128,2048,64]{{2,1,0}} scatter(o, n, u), update_window_dims={{}}, inserted_window_dims={{2}}, scatter_dims_to_operand_dims={{2}}, input_batching_dims={{0,1}}, scatter_indices_batching_dims={{0,1}}, index_vector_dim=3, to_apply=add
  {sum}
}}
"""


def wide(tmp):
    """An accumulator that is added behind the scatter, not before."""
    zeros = "c = f32[] constant(0)\n  o = f32[128,2048,64]{2,1,0} broadcast(c), dimensions={}"
    first = SUM + WIDE.format(zeros=zeros, sum="ROOT r = f32[128,2048,64]{2,1,0} add(p, z)")
    code, j = bisect(tmp, "wide", [("", first), ("algsimp", SUM + WIDE.format(zeros="o = f32[128,2048,64]{2,1,0} copy(p)", sum="ROOT r = f32[128,2048,64]{2,1,0} copy(z)"))], "--elements")
    expect("many indices", code == 0, (code, j["verdict"], j["unknown"]))
    code, j = bisect(tmp, "wide, twice", [("", first), ("algsimp", SUM + WIDE.format(zeros="o = f32[128,2048,64]{2,1,0} copy(p)", sum="ROOT r = f32[128,2048,64]{2,1,0} add(p, z)"))], "--elements")
    expect("added twice", code == 1, (code, j["verdict"], j["unknown"]))


def updates(tmp):
    code, j = bisect(tmp, "batched", [("", SUM + SCATTER.format(root=BATCHED)), ("normalizer", SUM + SCATTER.format(root=UPDATED))], "--elements")
    expect("a scatter without batch dimensions", code == 0, (code, j["verdict"], j["unknown"]))
    code, j = bisect(tmp, "dropped", [("", SUM + SCATTER.format(root=BATCHED)), ("normalizer", SUM + SCATTER.format(root="copy(s)"))], "--elements")
    expect("a dropped scatter is not called good", code != 0, (code, j["verdict"]))


# Two arrays that random numbers never make equal, as the program's own are here and there; the sum of a row has another value there.
EQUAL = """ENTRY e {{
  x = f32[64,32]{{1,0}} parameter(0)
  y = f32[64,32]{{1,0}} parameter(1)
  k = s32[] parameter(2)
  e.{n} = pred[64,32]{{1,0}} compare(x, y), direction=EQ
  s.{n} = f32[64,32]{{1,0}} add({sum})
  ROOT r = f32[64,32]{{1,0}} select(e.{n}, s.{n}, x)
}}
"""


def keep_arguments(folder, arrays):
    """arrays: (name, numpy's type, dimensions, bytes) each, as `capture --arguments=all` keeps them."""
    with zipfile.ZipFile(pathlib.Path(folder) / "module_0000.m.arguments.npz", "w") as file:
        for name, kind, dims, data in arrays:
            head = str({"descr": kind, "fortran_order": False, "shape": tuple(dims)}).encode()
            head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
            file.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)


def kept(tmp):
    stages = [("", EQUAL.format(n=1, sum="x, y")), ("dce", EQUAL.format(n=2, sum="y, x")), ("algsimp", EQUAL.format(n=3, sum="x, x"))]
    wrong = [*stages[:2], ("algsimp", EQUAL.format(n=3, sum="k.b, y").replace("  e.3 =", "  k.f = f32[] convert(k)\n  k.b = f32[64,32]{1,0} broadcast(k.f), dimensions={}\n  e.3 ="))]
    x = [(k * 37 % 1009) / 7 for k in range(64 * 32)]
    y = [v if k == x.index(max(x)) or k % 5 == 0 else v + 1 for k, v in enumerate(x)]
    arrays = [("p0", "<f4", (64, 32), struct.pack(f"<{len(x)}f", *x)), ("p1", "<f4", (64, 32), struct.pack(f"<{len(y)}f", *y)), ("p2", "<i4", (), struct.pack("<i", 3))]

    def at_elements(name, stages, arrays, *more):
        code, j = bisect(tmp, name, stages, "--elements", *more)
        if not arrays:
            return code, j
        keep_arguments(pathlib.Path(tmp) / name, arrays)
        ran = subprocess.run([tool, "bisect", str(pathlib.Path(tmp) / name), "--json", "--elements", *more], capture_output=True, text=True, check=False)
        return ran.returncode, json.loads(ran.stdout) if ran.stdout else {"verdict": ran.stderr, "elements": None}

    code, j = at_elements("random equal", wrong, [])
    expect("random numbers do not reach it", code != 1 and j["elements"]["kept"] == [], (code, j["verdict"]))
    code, j = at_elements("kept equal", wrong, arrays)
    expect("the program's own arguments do", code == 1 and j["pass"] == "algsimp", (code, j["verdict"]))
    expect("said to be so", j["elements"] and j["elements"]["kept"] == ["p0", "p1", "p2"], j["elements"])
    code, j = at_elements("kept sound", stages, arrays)
    expect("correct with these", code != 1 and j["elements"]["kept"] == ["p0", "p1", "p2"], (code, j["verdict"]))
    code, j = at_elements("kept, a seed", wrong, arrays, "--seed=3")
    expect("a seed is asked for", code != 1 and j["elements"]["kept"] == [], (code, j["verdict"]))
    code, j = at_elements("kept of another", wrong, [("p0", "<f4", (8, 32), bytes(8 * 32 * 4))])
    expect("of another shape", code == 2 and "does not fit module m: array p0 is a <f4[8,32]" in str(j), (code, j))


with tempfile.TemporaryDirectory() as tmp:
    kept(tmp)
    updates(tmp)
    many(tmp)
    through_mlir(tmp)
    wide(tmp)
    large(tmp)
    loops(tmp)
    trips(tmp)
    tied(tmp)
    unknown(tmp)
    unreadable(tmp)
    stopped(tmp)
finish("elements_test")
