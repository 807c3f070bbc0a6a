#!/usr/bin/env python3
"""bisect --elements: stages too large to run, judged at chosen elements.  elements_test.py HLO_REPLAY SOURCE_FOLDER"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import zipfile

from command_line import SUM, bisect_stages, expect, finish, source, tool
from json_schema import Schemas


def bisect(tmp, name, stages, *more):
    return bisect_stages(pathlib.Path(tmp) / name, stages, *more)


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
LOOP = """body {{
  s = (s32[], f32[65536,65536]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[65536,65536]{{1,0}} get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  {step}
  ROOT r = (s32[], f32[65536,65536]{{1,0}}) tuple(n, u)
}}

condition {{
  s = (s32[], f32[65536,65536]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  ten = s32[] constant({trips})
  ROOT p = pred[] compare(i, ten), direction=LT
}}

ENTRY e {{
  p = f32[65536,65536]{{1,0}} parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[65536,65536]{{1,0}}) tuple(zero, p)
  w = (s32[], f32[65536,65536]{{1,0}}) while(t), condition=condition, body=body
  ROOT g = f32[65536,65536]{{1,0}} get-tuple-element(w), index=1
}}
"""


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


# Few elements, or such as are alike, tell little: what happens to agree there is not the same.
WEAK = """ENTRY e {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  {index}
  x = f32[65536,65536]{{1,0}} parameter(2)
  rows = s32[65536,65536]{{1,0}} iota(), iota_dimension=0
  columns = s32[65536,65536]{{1,0}} iota(), iota_dimension=1
  mask = pred[65536,65536]{{1,0}} compare(rows, columns), direction={direction}
  zero = f32[] constant(0)
  zeros = f32[65536,65536]{{1,0}} broadcast(zero), dimensions={{}}
  y = f32[65536,65536]{{1,0}} select(mask, x, zeros)
  {turn}
  ROOT out = (s32[], f32[65536,65536]{{1,0}}) tuple(m, t)
}}
"""


# A mask that is seldom true hides what it is made of.
HIDDEN = """ENTRY e {{
  p = pred[65536,65536]{{1,0}} parameter(0)
  x = f32[65536,65536]{{1,0}} parameter(1)
  y = f32[65536,65536]{{1,0}} parameter(2)
  z = f32[65536,65536]{{1,0}} parameter(3)
  w = f32[65536,65536]{{1,0}} parameter(4)
  u = f32[65536,65536]{{1,0}} parameter(5)
  v.{n} = f32[65536,65536]{{1,0}} add({which}, x)
  least.{n} = f32[65536,65536]{{1,0}} minimum(x, y)
  most.{n} = f32[65536,65536]{{1,0}} maximum(z, v.{n})
  d.{n} = f32[65536,65536]{{1,0}} subtract(least.{n}, most.{n})
  c.{n} = f32[] constant(0.9)
  cs.{n} = f32[65536,65536]{{1,0}} broadcast(c.{n}), dimensions={{}}
  over.{n} = pred[65536,65536]{{1,0}} compare(d.{n}, cs.{n}), direction=GT
  none.{n} = pred[65536,65536]{{1,0}} not(over.{n})
  ROOT r = pred[65536,65536]{{1,0}} and(none.{n}, p)
}}
"""


def weak(tmp):
    code, j = bisect(tmp, "hidden", [("", HIDDEN.format(n=1, which="w")), ("algsimp", HIDDEN.format(n=2, which="u"))], "--elements")
    expect("what a mask hides is not called good", code != 0, (code, j["verdict"]))
    bare = HIDDEN.replace("  over.{n} =", "  ROOT r =")[:HIDDEN.index("  none.{n}") - len("over.{n}") + len("ROOT r")] + "}}\n"
    code, j = bisect(tmp, "never true", [("", bare.format(n=1, which="w")), ("algsimp", bare.format(n=2, which="u"))], "--elements")
    expect("what is never true is not called good", code != 0, (code, j["verdict"]))
    most, same = "m = s32[] maximum(a, b)", "t = f32[65536,65536]{1,0} add(y, x)"
    first = WEAK.format(index=most, direction="GE", turn=same)
    code, j = bisect(tmp, "swapped", [("", first), ("algsimp", WEAK.format(index="m = s32[] maximum(b, a)", direction="GE", turn=same))])
    expect("swapped", code == 0, (code, j["verdict"]))
    for name, text in (("one of two", WEAK.format(index="m = s32[] copy(a)", direction="GE", turn=same)),
                       ("the other of two", WEAK.format(index="m = s32[] copy(b)", direction="GE", turn=same)),
                       ("the sum", WEAK.format(index="m = s32[] add(a, b)", direction="GE", turn=same)),
                       ("the diagonal", WEAK.format(index=most, direction="GT", turn=same)),
                       ("the other triangle", WEAK.format(index=most, direction="LE", turn=same)),
                       ("turned", WEAK.format(index=most, direction="GE", turn="z = f32[65536,65536]{1,0} transpose(x), dimensions={1,0}\n  t = f32[65536,65536]{1,0} add(y, z)"))):
        code, j = bisect(tmp, name, [("", first), ("algsimp", text)])
        expect(f"{name} is not called good", code != 0, (code, j["verdict"]))


# What cannot be evaluated, or differs by no more than rounding, and is another value all the same.
def large_entry(lines, reducer=SUM):
    return reducer + "ENTRY e {\n  p = f32[65536,65536]{1,0} parameter(0)\n" + lines + "}\n"


def certain(tmp):
    def times(number):
        return large_entry(f"""  c = f32[] constant({number})
  cs = f32[65536,65536]{{1,0}} broadcast(c), dimensions={{}}
  ROOT r = f32[65536,65536]{{1,0}} multiply(p, cs)
""")

    def is_infinite(number):
        return large_entry(f"""  c = f32[] constant({number})
  cs = f32[65536,65536]{{1,0}} broadcast(c), dimensions={{}}
  a = f32[65536,65536]{{1,0}} abs(p)
  ROOT r = pred[65536,65536]{{1,0}} compare(a, cs), direction=EQ
""")

    def of_itself(direction):
        return large_entry(f"""  a = f32[65536,65536]{{1,0}} abs(p)
  ROOT r = pred[65536,65536]{{1,0}} compare(a, a), direction={direction}
""")

    def reduced(op, number):
        return large_entry(f"""  z = f32[] constant({number})
  ROOT r = f32[] reduce(p, z), dimensions={{0,1}}, to_apply=add
""", SUM.replace(" add(a", f" {op}(a"))

    def doubled(root):
        return large_entry("""  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0,1}, to_apply=add
""", SUM.replace(" add(a, b)", f" add({root})"))

    def single(op):  # nothing else tells whether names mean what they did
        return f'ENTRY e {{\n  p = f32[65536,65536]{{1,0}} parameter(0)\n  ROOT r = f32[65536,65536]{{1,0}} {op}(p, p), metadata={{op_name="jit(f)/add"}}\n}}\n'

    def padded(number):  # both numbers are there before and behind
        return large_entry(f"""  zero = s32[] constant(0)
  one = s32[] constant(1)
  n = s32[] constant({number})
  i = s32[65536,65536]{{1,0}} iota(), iota_dimension=0
  ns = s32[65536,65536]{{1,0}} broadcast(n), dimensions={{}}
  j = s32[65536,65536]{{1,0}} add(i, ns)
  k = s32[65536]{{0}} iota(), iota_dimension=0
  ones = s32[65536]{{0}} broadcast(one), dimensions={{}}
  zeros = s32[65536]{{0}} broadcast(zero), dimensions={{}}
  m = s32[65536]{{0}} add(k, ones)
  ROOT r = (s32[65536,65536]{{1,0}}, s32[65536]{{0}}, s32[65536]{{0}}) tuple(j, m, zeros)
""")

    def called(operand):
        return large_entry(f"""  t = f32[65536,65536]{{1,0}} {operand}
  ROOT r = f32[65536,65536]{{1,0}} custom-call(t), custom_call_target="mine"
""")

    def difference(operands):
        return large_entry(f"""  z = f32[] constant(0)
  one = f32[] constant(1)
  ones = f32[65536,65536]{{1,0}} broadcast(one), dimensions={{}}
  th = f32[65536,65536]{{1,0}} tanh(p)
  l = f32[] reduce(th, z), dimensions={{0,1}}, to_apply=add
  sb = f32[65536,65536]{{1,0}} subtract({operands})
  ROOT r = (f32[], f32[65536,65536]{{1,0}}) tuple(l, sb)
""")

    def summed(operand):
        return large_entry(f"""  t = f32[65536,65536]{{1,0}} {operand}
  s = f32[65536,65536]{{1,0}} sine(t)
  z = f32[] constant(0)
  ROOT r = f32[65536]{{0}} reduce(s, z), dimensions={{0}}, to_apply=add
""")

    def squares(first):
        return large_entry(f"""  z = f32[] constant(0)
  two = f32[] constant(2)
  s = f32[65536,65536]{{1,0}} multiply(p, p)
  q = f32[] reduce(s, z), dimensions={{0,1}}, to_apply=add
  r = f32[] reduce(s, {first}), dimensions={{0,1}}, to_apply=add
  ROOT t = (f32[], f32[], f32[]) tuple(q, r, two)
""")

    def largest(first, terms, of="maximum"):
        return large_entry(f"""  q = f32[65536,65536]{{1,0}} parameter(1)
  d = f32[65536,65536]{{1,0}} dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  a = f32[65536,65536]{{1,0}} {terms}
  z = f32[] constant({first})
  c = f32[] constant(0.04)
  h = f32[65536]{{0}} reduce(a, {"z" if first else "c"}), dimensions={{1}}, to_apply=add
  i = f32[] constant({"-inf" if of == "maximum" else "inf"})
  m = f32[] reduce(h, i), dimensions={{0}}, to_apply=add
  ROOT r = (f32[], f32[]) tuple(m, c)
""".replace("constant(None)", "constant(0)"), SUM.replace(" add(a", f" {of}(a"))

    for name, good, bad, found in (
            ("an extreme that begins with a number", largest("-inf", "abs(d)"), largest(None, "abs(d)"), "h"),
            ("an extreme that begins with zero", largest("inf", "copy(d)", "minimum"), largest(None, "copy(d)", "minimum"), "h"),
            ("what moves elements alone is named", summed("reverse(p), dimensions={1}"), summed("transpose(p), dimensions={0,1}"), "t"),
            ("the last bit of a literal", times("1"), times("1.0000001192092896"), "c"),
            ("a number in the place of infinity", is_infinite("inf"), is_infinite("3e+38"), "c"),
            ("what asked for NaN is never true", of_itself("NE"), of_itself("LT"), "r"),
            ("the least of what was the largest", reduced("maximum", "-inf"), reduced("minimum", "-inf"), "r"),
            ("the least of what was a sum", reduced("add", "0"), reduced("minimum", "0"), "r"),
            ("the only instruction", single("add"), single("maximum"), "r"),
            ("a sum of twice the last", doubled("a, b"), doubled("b, b"), "r"),
            ("another number of those that there are", padded(1), padded(0), "n"),
            ("a sum that begins with two", reduced("add", "0"), reduced("add", "2"), "z"),
            ("a sum of squares that begins with another constant", squares("z"), squares("two"), "r"),
            ("an operand of an unknown call, transposed", called("transpose(p), dimensions={1,0}"), called("copy(p)"), "t"),
            ("a difference turned round", difference("ones, th"), difference("th, ones"), "sb")):
        code, j = bisect(tmp, name, [("", good), ("algsimp", bad)])
        expect(f"{name}: bad", code == 1, (code, j["verdict"], j["unknown"]))
        expect(f"{name}: named", j.get("first_value_that_differs", {}).get("name") == found, j.get("first_value_that_differs"))


# One instruction is another one, and what it is made of, or what is made of it, costs more than there is.
def alone(tmp):
    big = "f32[65536,65536]{1,0}"

    def sums(how):
        return large_entry(f"""  z = f32[] constant(0)
  th = {big} tanh(p)
  a = f32[] reduce(p, z), dimensions={{0,1}}, to_apply=add
  b = f32[] reduce(th, z), dimensions={{0,1}}, to_apply=add
  c = f32[] {how}
  cs = {big} broadcast(c), dimensions={{}}
  ROOT r = {big} multiply(p, cs)
""")

    def moved(how):
        return large_entry(f"""  y = {big} custom-call(p), custom_call_target="mine"
  w = {big} custom-call(p, y), custom_call_target="other"
  t = {big} {how}
  ROOT r = ({big}, {big}) tuple(t, w)
""")

    def begins(square, first):
        return large_entry(f"""  z = f32[] constant(0)
  two = f32[] constant(2)
  {square} = {big} multiply(p, p)
  r = f32[] reduce({square}, {first}), dimensions={{0,1}}, to_apply=add
  ROOT t = (f32[], f32[]) tuple(r, two)
""")

    def chosen(sides):
        return large_entry(f"""  z = f32[] constant(0)
  a = f32[] reduce(p, z), dimensions={{0,1}}, to_apply=add
  as = {big} broadcast(a), dimensions={{}}
  i = s32[65536,65536]{{1,0}} iota(), iota_dimension=0
  j = s32[65536,65536]{{1,0}} iota(), iota_dimension=1
  m = pred[65536,65536]{{1,0}} compare(i, j), direction=GE
  ch = {big} select(m, {sides})
  ROOT r = f32[] reduce(ch, z), dimensions={{0,1}}, to_apply=add
""")

    def compared(direction, zeros="zs"):
        return large_entry(f"""  z = f32[] constant(0)
  zs = {big} broadcast(z), dimensions={{}}
  g = pred[65536,65536]{{1,0}} compare(p, {zeros}), direction={direction}
  ROOT r = {big} select(g, p, zs)
""")

    def tree(op):
        return large_entry(f"""  z = f32[] constant(0)
  h = f32[65536]{{0}} reduce(p, z), dimensions={{1}}, to_apply=add
  s.1 = f32[65536]{{0}} sine(h)
  ROOT r = f32[] reduce(s.1, z), dimensions={{0}}, to_apply=add
""", SUM.replace(" add(a", f" {op}(a"))

    def product(of):
        return large_entry(f"""  z = f32[] constant(0)
  q = f32[65536,65536]{{1,0}} parameter(1)
  th = {big} tanh(p)
  d = {big} dot(p, {of}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  l = f32[] reduce(d, z), dimensions={{0,1}}, to_apply=add
  ROOT r = (f32[], {big}) tuple(l, th)
""")

    def step(how):  # of an optimizer: a part of it rests on all that there is
        return large_entry(f"""  v = {big} parameter(1)
  z = f32[] constant(0)
  th = {big} tanh(p)
  l = f32[] reduce(th, z), dimensions={{0,1}}, to_apply=add
  ls = {big} broadcast(l), dimensions={{}}
  s = {big} multiply(ls, v)
  rate = f32[] constant(0.0003)
  rates = {big} broadcast(rate), dimensions={{}}
  x = {big} multiply(s, rates)
  u = {big} {how}
  ROOT r = bf16[65536,65536]{{1,0}} convert(u)
""")

    def quotient(how):
        text = LOOP.format(step="u = f32[65536,65536]{1,0} tanh(v)", trips=10)
        return text.replace("  ROOT g =", "  g =")[:-2] + f"""  v = {big} parameter(1)
  d = {big} parameter(2)
  c = f32[] constant(0.1)
  cs = {big} broadcast(c), dimensions={{}}
  x = {big} multiply(g, cs)
  y = {big} add(x, v)
  q = {big} divide({how}, d)
  ROOT r = ({big}, {big}) tuple(q, y)
}}
"""

    def widened(of):
        text = LOOP.format(step="u = f32[65536,65536]{1,0} tanh(v)", trips=10)
        return text.replace("  ROOT g =", "  g =")[:-2] + f"""  q = {big} parameter(1)
  a = {big} multiply(q, g)
  b = {big} tanh(q)
  h = bf16[65536,65536]{{1,0}} convert({of})
  i = bf16[65536,65536]{{1,0}} convert(g)
  m = bf16[65536,65536]{{1,0}} multiply(h, i)
  ROOT r = ({big}, {big}, bf16[65536,65536]{{1,0}}) tuple(a, b, m)
}}
"""

    def attention(operands):
        qkv = "bf16[4,4096,16,128]{3,1,2,0}"
        result = "(bf16[4,16,4096,128]{3,1,2,0}, u8[0]{0})"
        config = '{"cudnn_fmha_backend_config":{"bmm1_dot_dimension_numbers":{"lhs_batch_dimensions":["0","2"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["3"]},"bmm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},"intermediate_tensor_shape":{"dimensions":["4","16","4096","4096"],"element_type":"BF16"},"fmha_scale":0.1,"dropout_rate":0.0,"mask_type":"NO_MASK","is_flash_attention":true}}'
        rows = "\n".join(f"  {n} = {qkv} parameter({k})" for k, n in enumerate("qkv"))
        return f"""ENTRY e {{
{rows}
  t = {result} custom-call({operands}), custom_call_target="__cudnn$fmhaSoftmax", backend_config={config}
  ROOT r = bf16[4,16,4096,128]{{3,1,2,0}} get-tuple-element(t), index=0
}}
"""

    for name, stages, found in (
            ("a step's difference", [step("subtract(p, x)"), step("maximum(p, x)")], "u"),
            ("a quotient of a constant", [quotient("y"), quotient("cs")], "q"),
            ("another value converted", [widened("a"), widened("b")], "h"),
            ("attention to other keys", [attention("q, k, v"), attention("q, v, v")], "t"),
            ("the least of two sums", [sums("add(a, b)"), sums("minimum(a, b)")], "c"),
            ("another one of two sums", [sums("subtract(a, b)"), sums("subtract(a, a)")], "c"),
            ("a result of a call in another order", [moved("transpose(y), dimensions={1,0}"), moved("copy(y)")], "t"),
            ("another call's result", [moved("copy(y)"), moved("copy(w)")], "t"),
            ("a sum that begins with two, its terms renamed before", [begins("q", "z"), begins("q.1", "z"), begins("q.1", "two")], "r"),
            ("sides of a choice turned round", [chosen("as, p"), chosen("p, as")], "ch"),
            ("whether equal ones count", [compared("GT"), compared("GE")], "g"),
            ("a reducer that two apply", [tree("add"), tree("minimum")], "h"),
            ("a product of another matrix", [product("q"), product("th")], "d")):
        code, j = bisect(tmp, name, [("" if k == 0 else "algsimp", text) for k, text in enumerate(stages)], "--elements")
        expect(f"{name}: bad", code == 1, (code, j["verdict"], j["unknown"]))
        expect(f"{name}: named", (j.get("first_value_that_differs") or {}).get("name") == found, j.get("first_value_that_differs"))


# What looks alike and is sound: nobody is accused, whatever cannot be told.
ONE_TRIP = """body {{
  s = (s32[], f32[65536,65536]{{1,0}}, f32[65536,65536]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  v = f32[65536,65536]{{1,0}} get-tuple-element(s), index=1
  w = f32[65536,65536]{{1,0}} get-tuple-element(s), index=2
  d = f32[65536,65536]{{1,0}} dot(v, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = (s32[], f32[65536,65536]{{1,0}}, f32[65536,65536]{{1,0}}) tuple(n, v, d)
}}
condition {{
  s = (s32[], f32[65536,65536]{{1,0}}, f32[65536,65536]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  ROOT c = pred[] compare(i, one), direction=LT
}}
ENTRY e {{
  p = f32[65536,65536]{{1,0}} parameter(0)
  z = s32[] constant(0)
  d.1 = f32[65536,65536]{{1,0}} dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = (s32[], f32[65536,65536]{{1,0}}, f32[65536,65536]{{1,0}}) tuple(z, p, p)
  l = (s32[], f32[65536,65536]{{1,0}}, f32[65536,65536]{{1,0}}) while(t), condition=condition, body=body
  g = f32[65536,65536]{{1,0}} get-tuple-element(l), index=2
  c = f32[65536,65536]{{1,0}} copy({of})
  ROOT r = (f32[65536,65536]{{1,0}}, f32[65536,65536]{{1,0}}) tuple(c, d.1)
}}
"""


def not_accused(tmp):
    big = "f32[65536,65536]{1,0}"

    def marked(how):
        return large_entry(f"""  y = {big} dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  q = {big} custom-call(y), custom_call_target="some_mark"
  t = {big} copy({how})
  ROOT r = ({big}, {big}) tuple(t, q)
""")

    def not_negative(how):
        return large_entry(f"""  z = f32[] constant(0)
  s = {big} multiply(p, p)
  n = f32[] reduce(s, z), dimensions={{0,1}}, to_apply=add
  a = f32[] {how}
  ROOT r = f32[] sqrt(a)
""")

    def within(how):
        return large_entry(f"""  x = {big} sine(p)
  i = s32[65536,1]{{1,0}} custom-call(x), custom_call_target="indices"
  z = s32[] constant(0)
  n = s32[] constant(65535)
  c = s32[65536,1]{{1,0}} {how}
  ROOT g = f32[65536,65536]{{1,0}} gather(p, c), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,65536}}
""")

    def largest_square(first, last="copy(m)"):
        from_ = ("-inf", "-3.4e38", "0", "1").index(first)  # by other names: a literal of the same one is another number
        return large_entry(f"""  q = f32[65536,65536]{{1,0}} parameter(1)
  d = {big} dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = {big} multiply(d, d)
  c.{from_} = f32[] constant({first})
  m = f32[] reduce(s, c.{from_}), dimensions={{0,1}}, to_apply=add
  one = f32[] constant(1)
  ROOT r = f32[] {last}
""", SUM.replace(" add(a", " maximum(a"))

    for name, before, after in (
            ("the largest square, from zero on", largest_square("-inf"), largest_square("0")),
            ("the largest square, from the least number on", largest_square("-inf"), largest_square("-3.4e38")),
            ("at least one, twice", largest_square("-inf", "maximum(m, one)"), largest_square("1", "maximum(m, one)")),
            ("a loop of one trip", ONE_TRIP.format(of="g"), ONE_TRIP.format(of="d.1")),
            ("a mark taken away", marked("q"), marked("y")),
            ("what is not negative", not_negative("abs(n)"), not_negative("copy(n)")),
            ("an index that is in bounds", within("clamp(z, i, n)"), within("copy(i)"))):
        code, j = bisect(tmp, name, [("", before), ("algsimp", after)])
        expect(f"{name}: not accused", code != 1, (code, j["verdict"], j.get("first_value_that_differs")))


# A side of a choice that no draw of the parameter ever takes.
RARE = """ENTRY e {{
  x = f32[65536,65536]{{1,0}} parameter(0)
  q = f32[65536,65536]{{1,0}} multiply(x, x)
  n = f32[65536,65536]{{1,0}} negate(q)
  l = f32[65536,65536]{{1,0}} log-plus-one(n)
  w = f32[65536,65536]{{1,0}} negate(l)
  c = f32[] constant(5)
  cs = f32[65536,65536]{{1,0}} broadcast(c), dimensions={{}}
  m = pred[65536,65536]{{1,0}} compare(w, cs), direction=LT
  d = f32[] constant(-2.5)
  ds = f32[65536,65536]{{1,0}} broadcast(d), dimensions={{}}
  a = f32[65536,65536]{{1,0}} add(w, ds)
  s = f32[65536,65536]{{1,0}} sqrt(w)
  b = f32[65536,65536]{{1,0}} add(s, ds)
  f = f32[65536,65536]{{1,0}} select(m, {sides})
  ROOT r = f32[65536,65536]{{1,0}} multiply(f, x)
}}
"""


def rare(tmp):
    first = RARE.format(sides="a, b")
    code, j = bisect(tmp, "sides turned round", [("", first), ("algsimp", RARE.format(sides="b, a"))])
    expect("sides turned round: bad", code == 1 and j["first_value_that_differs"]["name"] == "f", (code, j["verdict"], j["unknown"]))
    code, j = bisect(tmp, "one side alone", [("", first), ("algsimp", RARE.format(sides="a, a"))])
    expect("one side alone is not called good", code != 0, (code, j["verdict"]))


def folded(tmp):
    """A constant folded in a type of few digits accuses nobody."""
    def entry(lines, of):
        return f"""ENTRY e {{
  p = bf16[65536,65536]{{1,0}} parameter(0)
{lines}  cs = bf16[65536,65536]{{1,0}} broadcast({of}), dimensions={{}}
  ROOT r = bf16[65536,65536]{{1,0}} multiply(p, cs)
}}
"""
    code, j = bisect(tmp, "folded", [("", entry("  c = f32[] constant(0.1)\n  d = bf16[] convert(c)\n", "d")), ("constant_folding", entry("  k = bf16[] constant(0.10009765625)\n", "k"))])
    expect("folded in its own type", code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))
    code, j = bisect(tmp, "not that", [("", entry("  c = f32[] constant(0.1)\n  d = bf16[] convert(c)\n", "d")), ("constant_folding", entry("  k = bf16[] constant(0.10107421875)\n", "k"))], "--elements")
    expect("a neighbour of what it is rounded to is not called good", code != 0, (code, j["verdict"]))
    count = "  one = s32[] constant(1)\n  two = s32[] constant(2)\n  m = s32[] multiply(two, {})\n  q = bf16[] convert(m)\n"
    code, j = bisect(tmp, "integers", [("", entry(count.format("two"), "q")), ("constant_folding", entry("  k = bf16[] constant(4)\n", "k"))])
    expect("integers folded", code == 0, (code, j["verdict"]))
    code, j = bisect(tmp, "other integers", [("", entry(count.format("one"), "q")), ("constant_folding", entry("  k = bf16[] constant(4)\n", "k"))])
    expect("folded to another number", code == 1, (code, j["verdict"]))


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


# A value that a constant makes small beside others, where nothing was.
SMALL = """ENTRY e {{
  x = f32[4,1,65536,1024]{{3,2,1,0}} parameter(0)
  y = f32[4,2,65536,1024]{{3,2,1,0}} parameter(1)
  z = f32[] constant(0)
  k = f32[] constant(1.1920929e-07)
  s = f32[] reduce(y, z), dimensions={{0,1,2,3}}, to_apply=add
  v = f32[] multiply(s, k)
  p = f32[4,2,65536,1024]{{3,2,1,0}} pad(x, {value}), padding=0_0x1_0x0_0x0_0
  a = f32[4,2,65536,1024]{{3,2,1,0}} add(y, p)
  ROOT r = (f32[4,2,65536,1024]{{3,2,1,0}}, f32[]) tuple(a, v)
}}
"""


def small(tmp):
    code, j = bisect(tmp, "small", [("", SUM + SMALL.format(value="z")), ("algsimp", SUM + SMALL.format(value="v"))], "--elements")
    expect("what is small on most inputs is not called good", code != 0, (code, j["verdict"]))


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


# A sum that begins with another number under new names, which types of few digits cannot tell; the next stage has it right again.
DENOMINATOR = """ENTRY e {{
  x = f32[1,1024]{{1,0}} parameter(0)
  h = bf16[4]{{0}} parameter(1)
  e = f32[1,1024]{{1,0}} exponential(x)
  {0}
  d = f32[1,1024]{{1,0}} divide(e, b)
  ROOT out = (f32[1,1024]{{1,0}}, bf16[4]{{0}}) tuple(d, h)
}}
"""


def taken_back(tmp):
    rows = """z = f32[] constant(0)
  r.1 = f32[1]{0} reduce(e, z), dimensions={1}, to_apply=add
  b = f32[1,1024]{1,0} broadcast(r.1), dimensions={0}"""
    flat = """c.2 = f32[] constant(0.0204081628)
  t.2 = f32[1024]{0} bitcast(e)
  r.2 = f32[] reduce(t.2, c.2), dimensions={0}, to_apply=add
  b = f32[1,1024]{1,0} broadcast(r.2), dimensions={}"""
    again = flat.replace("0.0204081628", "0")
    stages = [("", SUM + DENOMINATOR.format(rows)), ("degenerate", SUM + DENOMINATOR.format(flat)), ("softmax", SUM + DENOMINATOR.format(again))]
    code, j = bisect(tmp, "taken_back", stages, "--elements")
    expect("the stage that another one takes back", code == 1 and "degenerate" in (j["bad_file"] or ""), (code, j["verdict"], j["unknown"]))
    expect("its instruction", (j["first_value_that_differs"] or {}).get("name") == "r.2", j["first_value_that_differs"])
    code, j = bisect(tmp, "never_taken", [stages[0], (stages[1][0], stages[1][1].replace("0.0204081628", "0")), stages[2]], "--elements")
    expect("none is taken back where none differs", code == 0, (code, j["verdict"]))


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
    certain(tmp)
    alone(tmp)
    not_accused(tmp)
    updates(tmp)
    rare(tmp)
    folded(tmp)
    small(tmp)
    many(tmp)
    through_mlir(tmp)
    wide(tmp)
    weak(tmp)
    large(tmp)
    loops(tmp)
    trips(tmp)
    tied(tmp)
    unknown(tmp)
    unreadable(tmp)
    stopped(tmp)
    taken_back(tmp)
finish("elements_test")
