#!/usr/bin/env python3
"""bisect --elements: stages too large to run, judged at chosen elements.  elements_test.py HLO_REPLAY SOURCE_FOLDER"""
import pathlib
import tempfile

from command_line import bisect_stages, expect, finish


def bisect(tmp, name, stages, *more):
    return bisect_stages(pathlib.Path(tmp) / name, stages, *more)


SUM = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

"""
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
    # The right way of the fault is another axis, a factor.
    for name, text, at in (("axis", BIG.format(two=2, scale=DIVIDE, dim=0), "out"), ("factor", BIG.format(two=2, scale=TIMES, dim=1), "scaled")):
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
    code, j = bisect(tmp, "step", [("", first), ("algsimp", LOOP.format(step=times.replace("(2)", "(3)"), trips=10))])
    expect("another step", code == 1 and j["first_value_that_differs"]["name"] == "d", (code, j["verdict"], j["guilty"]))


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
    expect("...and what stands between them is told", "1 stages before it that cannot be judged" in j["guilty"], j["guilty"])
    expect("...with the value that differs", (j["first_value_that_differs"] or {}).get("name") == "scaled", j["first_value_that_differs"])


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


def weak(tmp):
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


with tempfile.TemporaryDirectory() as tmp:
    weak(tmp)
    large(tmp)
    loops(tmp)
    tied(tmp)
    unknown(tmp)
    unreadable(tmp)
finish("elements_test")
