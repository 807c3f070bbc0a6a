"""bisect looks inside: faults that the outputs hardly tell, legal rewrites that it must not call faults, partial sums
across the partitioner, inputs that tell nothing.

inside_test.py HLO_REPLAY SOURCE_FOLDER
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TOOL = sys.argv[1]
failed = []


def expect(what, ok, why=""):
    if not ok:
        failed.append(what)
        print(f"FAILED {what}: {why}")


def bisect(texts, *options, header=""):
    """The answer to a folder of stages, which are the lines of the entry (or whole modules), and the exit code."""
    with tempfile.TemporaryDirectory() as tmp:
        for k, text in enumerate(texts):
            name = "before_optimizations" if k == 0 else f"{k:04}.p.after_pass{k}.before_x"
            if "ENTRY" not in text:
                text = "ENTRY e {\n" + text + "\n}\n"
            (pathlib.Path(tmp) / f"module_0001.m.{name}.txt").write_text(f"HloModule m{header}\n\n{ADDER}{text}")
        r = subprocess.run([TOOL, "bisect", tmp, "--json", *options], capture_output=True, text=True, timeout=60)
    try:
        return json.loads(r.stdout), r.returncode
    except ValueError:
        return {"found": None, "verdict": r.stderr, "first_value_that_differs": None}, r.returncode


ADDER = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT added = f32[] add(a, b)\n}\n\n"
NORM = """  x = f32[8,64] parameter(0)
  w = f32[64,4] parameter(1)
  zero = f32[] constant(0)
  total = f32[8] reduce(x, zero), dimensions={1}, to_apply=sum
  n = f32[] constant(64)
  nb = f32[8] broadcast(n), dimensions={}
  mean = f32[8] divide(total, nb)
  mb = f32[8,64] broadcast(mean), dimensions={0}
  centred = f32[8,64] subtract(x, mb)
  square = f32[8,64] multiply(centred, centred)
  var = f32[8] reduce(square, zero), dimensions={1}, to_apply=sum
  eps = f32[] constant(1e-06)
  eb = f32[8] broadcast(eps), dimensions={}
  safe = f32[8] add(var, eb)
  r = f32[8] rsqrt(safe)
  rb = f32[8,64] broadcast(r), dimensions={0}
  norm = f32[8,64] multiply(centred, rb)
  ROOT d = f32[8,4] dot(norm, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""


def named(what, texts, instruction, **rest):
    j, code = bisect(texts, **rest)
    found = j["first_value_that_differs"] or {}
    expect(what, code == 1 and j["found"] and found.get("name") == instruction, json.dumps(j, indent=1)[:1500])
    return j


def sound(what, texts, *options, **rest):
    j, code = bisect(texts, *options, **rest)
    expect(what, code == 0 and not j["found"], json.dumps(j, indent=1)[:1500])
    return j


CONV = """  x = f32[2,6,6,3] parameter(0)
  k = f32[3,3,3,4] parameter(1)
  w = f32[4,5] parameter(2)
  c = f32[2,6,6,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  rows = f32[72,4] reshape(c)
  ROOT d = f32[72,5] dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
# The same by library calls, of a padded input and transposed kernels.
CALLS = """  x = f32[2,6,6,3] parameter(0)
  k = f32[3,3,3,4] parameter(1)
  w = f32[4,5] parameter(2)
  zero = f32[] constant(0)
  padded = f32[2,8,8,3] pad(x, zero), padding=0_0x1_1x1_1x0_0
  turned = f32[4,3,3,3] transpose(k), dimensions={3,0,1,2}
  call = (f32[2,6,6,4], u8[16]) custom-call(padded, turned), window={size=3x3}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward", backend_config={"cudnn_conv_backend_config":{"conv_result_scale":1,"activation_mode":"kNone"}}
  c = f32[2,6,6,4] get-tuple-element(call), index=0
  rows = f32[72,4] reshape(c)
  other = f32[5,4] transpose(w), dimensions={1,0}
  product = (f32[72,5], s8[16]) custom-call(rows, other), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"alpha_real":1,"alpha_imag":0,"beta":0,"epilogue":"DEFAULT","dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}
  ROOT d = f32[72,5] get-tuple-element(product), index=0"""


def products():
    """Products that are written in another way are not computed again, and wrong ones are seen."""
    j = sound("library calls", [CONV, CALLS, CONV])
    again = sound("stages that are the one before", [CONV, CONV, CALLS, CALLS, CALLS])
    told = again["inside"]
    expect("all are counted", again["judged"] == 5 and told["values"] == told["same"] + told["new"] == 20, told)
    scalar = "  s = f32[] parameter(0)\n  b = f32[4,8] broadcast(s), dimensions={}\n  ROOT t = f32[8,4] transpose(b), dimensions={1,0}"
    sound("a transpose of a scalar's broadcast", [scalar, scalar.replace("transpose(b), dimensions={1,0}", "broadcast(s), dimensions={}")])
    inside = j["inside"]
    # zero, the pad and two transposes.
    expect("products are not computed again", inside["evaluated"] == inside["evaluated_first"] + 4, str(inside))
    for what, old, new in (
        ("spatial dimensions of the kernel changed places", "dim_labels=b01f_o01i", "dim_labels=b01f_o10i"),
        ("the padding at the other side", "padding=0_0x1_1x1_1x0_0", "padding=0_0x2_0x1_1x0_0"),
        ("padding with another number", "constant(0)", "constant(0.5)"),
        ("a call that scales", '"conv_result_scale":1', '"conv_result_scale":2'),
        ("a gemm that scales", '"alpha_real":1', '"alpha_real":0.5'),
        ("a kernel turned in another way", "dimensions={3,0,1,2}", "dimensions={3,1,0,2}"),
        ("a window that is reversed", "window={size=3x3}", "window={size=3x3 rhs_reversal=1x1}"),
    ):
        j, code = bisect([CONV, CALLS.replace(old, new)])
        expect(what, code == 1 and j["found"], json.dumps(j, indent=1)[:1500])


# A convolution, a scale, a bias, a residual and an activation, as algebra and as the call that cuDNN has for them.
PLAIN = """  x = f32[2,6,6,3] parameter(0)
  k = f32[3,3,3,4] parameter(1)
  b = f32[4] parameter(2)
  side = f32[2,6,6,4] parameter(3)
  c = f32[2,6,6,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  bb = f32[2,6,6,4] broadcast(b), dimensions={3}
  half = f32[] constant(-64)
  hb = f32[2,6,6,4] broadcast(half), dimensions={}
  hs = f32[2,6,6,4] multiply(side, hb)
  sum = f32[2,6,6,4] add(c, hs)
  all = f32[2,6,6,4] add(sum, bb)
  zero = f32[] constant(0)
  zb = f32[2,6,6,4] broadcast(zero), dimensions={}
  y = f32[2,6,6,4] maximum(all, zb)
  ROOT r = f32[2,6,6,4] sine(y)"""
FUSED = """  x = f32[2,6,6,3] parameter(0)
  k = f32[3,3,3,4] parameter(1)
  b = f32[4] parameter(2)
  side = f32[2,6,6,4] parameter(3)
  call = (f32[2,6,6,4], u8[16]) custom-call(x, k, b, side), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$convBiasActivationForward", backend_config={"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":1,"side_input_scale":-64,"leakyrelu_alpha":0}}
  y = f32[2,6,6,4] get-tuple-element(call), index=0
  ROOT r = f32[2,6,6,4] sine(y)"""
# With the kernel the other way round, as layout normalization leaves it.
TURNED = FUSED.replace("custom-call(x, k,", "custom-call(x, turned,").replace("b01f_01io->", "b01f_o01i->").replace(
    "  call =", "  turned = f32[4,3,3,3] transpose(k), dimensions={3,0,1,2}\n  call =")
# What may be wrong inside of the call, and what bisect names.
IN_FUSED = (
    ("a bias that is another", "  call =", "  n = f32[4] negate(b)\n  call =", "custom-call(x, k, b,", "custom-call(x, k, n,"),
    ("no bias", "custom-call(x, k, b, side)", "custom-call(x, k)"),
    ("no side input", "custom-call(x, k, b, side)", "custom-call(x, k, b)"),
    ("another side input", "  call =", "  n = f32[2,6,6,4] negate(side)\n  call =", "k, b, side)", "k, b, n)"),
    ("a side input of another scale", '"side_input_scale":-64', '"side_input_scale":-60'),
    ("another activation", "kRelu", "kNone"),
    ("an activation that leaks", '"kRelu"', '"kLeakyRelu"', '"leakyrelu_alpha":0', '"leakyrelu_alpha":0.25'),
    ("a scale", '"conv_result_scale":1', '"conv_result_scale":1.25'),
    ("a window that moves", "pad=1_1x1_1", "pad=0_2x1_1"),
    ("a window that is reversed", "pad=1_1x1_1", "pad=1_1x1_1 rhs_reversal=1x1"),
    ("spatial dimensions that changed places", "b01f_01io", "b01f_10io"),
    ("another input", "  call =", "  n = f32[2,6,6,3] negate(x)\n  call =", "custom-call(x,", "custom-call(n,"),
    ("another kernel", "  call =", "  n = f32[3,3,3,4] abs(k)\n  call =", "custom-call(x, k,", "custom-call(x, n,"),
    ("features in another place", "  call =", "  n = f32[2,6,6,4] reverse(side), dimensions={3}\n  call =", "k, b, side)", "k, b, n)"),
)


def replaced(text, *pairs):
    for old, new in zip(pairs[::2], pairs[1::2]):
        if old not in text:
            raise AssertionError(old)
        text = text.replace(old, new, 1)
    return text


def fused_convolutions():
    """The convolution in a call with an epilogue is the one that was there before; what is wrong in either is seen."""
    j = sound("a convolution with its epilogue", [PLAIN, FUSED, TURNED, FUSED, PLAIN])
    # The epilogue, once, and the transpose.
    expect("it is not computed again", j["inside"]["evaluated"] == j["inside"]["evaluated_first"] + 2, str(j["inside"]))
    sound("the other way", [FUSED, PLAIN, TURNED])
    for what, *pairs in IN_FUSED:
        wrong = replaced(FUSED, *pairs)
        for before in ([PLAIN], [PLAIN, FUSED], [FUSED, TURNED]):
            j, code = bisect([*before, wrong, wrong + "\n"])
            expect(f"{what} behind {len(before)}", code == 1 and j["found"] and j["bad"].startswith(f"{len(before):04}"), json.dumps(j, indent=1)[:1500])


def sorting(*comparator):
    """A stage that sorts with the positions beside it by that comparator, of elements a, b and positions i, j."""
    return ("before {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
            + "".join(f"  {line}\n" for line in comparator[:-1]) + f"  ROOT {comparator[-1]}\n}}\n\n"
            "ENTRY e {\n  x = f32[8,64] parameter(0)\n  n = s32[8,64] iota(), iota_dimension=1\n"
            "  s = (f32[8,64], s32[8,64]) sort(x, n), dimensions={1}, is_stable=true, to_apply=before\n"
            "  v = f32[8,64] get-tuple-element(s), index=0\n  p = s32[8,64] get-tuple-element(s), index=1\n"
            "  ROOT t = (f32[8,64], s32[8,64]) tuple(v, p)\n}\n")


LESS = sorting("r = pred[] compare(a, b), direction=LT")
SAME_ORDER = {
    "sides changed": sorting("r = pred[] compare(b, a), direction=GT"),
    "positions, too": sorting("l = pred[] compare(a, b), direction=LT", "g = pred[] compare(b, a), direction=LT",
                              "e = pred[] compare(l, g), direction=EQ", "k = pred[] compare(i, j), direction=LT",
                              "r = pred[] select(e, k, l)"),
    "twice as large": sorting("two = f32[] constant(2)", "c = f32[] multiply(a, two)", "d = f32[] multiply(b, two)",
                              "r = pred[] compare(c, d), direction=LT"),
}
OTHER_ORDER = {
    "the other way round": sorting("r = pred[] compare(a, b), direction=GT"),
    "by magnitude": sorting("c = f32[] abs(a)", "d = f32[] abs(b)", "r = pred[] compare(c, d), direction=LT"),
    "ties by the later position": sorting("l = pred[] compare(a, b), direction=LT", "g = pred[] compare(b, a), direction=LT",
                                          "e = pred[] compare(l, g), direction=EQ", "k = pred[] compare(i, j), direction=GT",
                                          "r = pred[] select(e, k, l)"),
    "by positions alone": sorting("r = pred[] compare(j, i), direction=LT"),
}


def sorts():
    """A sort whose comparator is written in another way asks for the same order, or it does not."""
    for what, other in SAME_ORDER.items():
        j = sound(f"sort, {what}", [LESS, other, LESS])
        # Constants of the comparator are none of the stage's.
        expect(f"not sorted again, {what}", j["inside"]["evaluated"] == j["inside"]["evaluated_first"], str(j["inside"]))
    for what, other in OTHER_ORDER.items():
        j, code = bisect([LESS, other])
        expect(f"seen, {what}", code == 1 and j["found"], json.dumps(j, indent=1)[:1500])


# One product of matrices, and what dot_decomposer makes of it.
DOT = """  x = f32[2,6,8] parameter(0)
  w = f32[8,4,3] parameter(1)
  ROOT d = f32[2,6,4,3] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}"""
FLAT = """  x = f32[2,6,8] parameter(0)
  rows = f32[12,8] reshape(x)
  w = f32[8,4,3] parameter(1)
  columns = f32[8,12] reshape(w)
  p = f32[12,12] dot(rows, columns), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[2,6,4,3] reshape(p)"""


def dots():
    j = sound("a dot of reshaped operands", [DOT, FLAT, DOT])
    expect("is not computed again", j["inside"]["evaluated"] == j["inside"]["evaluated_first"], str(j["inside"]))
    square = "  x = f32[4,4] parameter(0)\n  y = f32[4,4] parameter(1)\n  ROOT d = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    for what, old, new in (("another dimension", "lhs_contracting_dims={1}", "lhs_contracting_dims={0}"),
                           ("the sides changed places", "dot(x, y)", "dot(y, x)"),
                           ("the other's other dimension", "rhs_contracting_dims={0}", "rhs_contracting_dims={1}")):
        named(f"a dot, {what}", [square, square.replace(old, new)], "d")
    mixed = DOT.replace("w = f32[8,4,3] parameter(1)", "w0 = f32[8,4,3] parameter(1)\n  t = f32[8,3,4] transpose(w0), dimensions={0,2,1}\n  w = f32[8,4,3] reshape(t)")
    named("a dot of a reshape that mixes", [DOT, mixed], "d")
    batched = ("  x = f32[3,4,8] parameter(0)\n  y = f32[3,8,4] parameter(1)\n"
               "  ROOT d = f32[3,4,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")
    named("a batched dot", [batched, batched.replace("rhs_contracting_dims={1}", "rhs_contracting_dims={2}").replace("y = f32[3,8,4]", "z = f32[3,8,4]").replace(
        "  ROOT d", "  y = f32[3,4,8] reshape(z)\n  ROOT d")], "d")


def every_stage():
    """exec --all-stages: what no stage before had is evaluated alone, and says what all of it would."""
    def stages(texts, *options):
        with tempfile.TemporaryDirectory() as tmp:
            for k, text in enumerate(texts):
                name = "before_optimizations" if k == 0 else f"{k:04}.p.after_pass{k}.before_x"
                (pathlib.Path(tmp) / f"module_0001.m.{name}.txt").write_text("HloModule m\n\n" + ADDER + (text if "ENTRY" in text else "ENTRY e {\n" + text + "\n}\n"))
            r = subprocess.run([TOOL, "exec", tmp, "--all-stages", "--json", *options], capture_output=True, text=True, timeout=60)
        return json.loads(r.stdout), r.returncode

    def judged(what, texts, *wanted):
        for backend in ("evaluator", "host"):
            j, code = stages(texts, f"--backend={backend}")
            got = [s["result"] for s in j["stages"]]
            expect(f"{what} by {backend}", got == list(wanted) and code == (1 if "different" in wanted else 2 if "refused" in wanted else 0), j)

    judged("all equal", [NORM, NORM, NORM.replace("divide(total, nb)", "multiply(total, rec)").replace(
        "  n = f32[] constant(64)\n  nb = f32[8] broadcast(n)", "  n = f32[] constant(0.015625)\n  rec = f32[8] broadcast(n)")], "first", "equal", "equal")
    wrong = NORM.replace("subtract(x, mb)", "multiply(x, mb)")
    judged("a fault, and it is gone", [NORM, NORM, wrong, wrong, NORM], "first", "equal", "different", "different", "equal")
    judged("two faults", [NORM, wrong, NORM.replace("add(var, eb)", "subtract(var, eb)").replace("1e-06", "0.5")], "first", "different", "different")
    judged("sorts", [LESS, *SAME_ORDER.values(), OTHER_ORDER["by magnitude"], LESS], "first", "equal", "equal", "equal", "different", "equal")
    judged("convolutions with an epilogue", [PLAIN, FUSED, TURNED, PLAIN], "first", "equal", "equal", "equal")
    for what, *pairs in IN_FUSED:
        judged(f"a convolution's epilogue, {what}", [PLAIN, FUSED, replaced(FUSED, *pairs), TURNED], "first", "equal", "different", "equal")
    judged("dots", [DOT, FLAT, DOT.replace("dot(x, w)", "dot(x, h)").replace("  ROOT d", "  h = f32[8,4,3] multiply(w, w)\n  ROOT d")],
           "first", "equal", "different")
    j, code = stages([NORM, NORM.replace("rsqrt(safe)", 'custom-call(safe), custom_call_target="nobody"'), wrong])
    expect("what cannot be run is refused, the others are judged",
           [s["result"] for s in j["stages"]] == ["first", "refused", "different"] and code == 1, j)
    loop = """step {
  s = (s32[], f32[4]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(k, one)
  f = f32[] convert(k)
  fb = f32[4] broadcast(f), dimensions={}
  w = f32[4] add(v, fb)
  ROOT r = (s32[], f32[4]) tuple(next, w)
}

more {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ten = s32[] constant(10)
  ROOT l = pred[] compare(i, ten), direction=LT
}

ENTRY e {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[4]) tuple(zero, x)
  ROOT loop = (s32[], f32[4]) while(init), condition=more, body=step
}
"""
    # Wrong in the last trip alone, which no look at a few of them shows.
    late = loop.replace("w = f32[4] add(v, fb)", "nine = s32[] constant(9)\n  last = pred[] compare(k, nine), direction=EQ\n"
                        "  lb = pred[4] broadcast(last), dimensions={}\n  u = f32[4] add(v, fb)\n  w = f32[4] select(lb, v, u)")
    judged("a loop that is wrong in its last trip", [loop, loop.replace("add(v, fb)", "add(fb, v)"), late], "first", "equal", "different")
    # A quotient that becomes a product is one but for rounding; what reads it is taken as it was.
    quotient = ("  x = f32[64] parameter(0)\n  c = f32[] constant(3)\n  cb = f32[64] broadcast(c), dimensions={}\n"
                "  q = f32[64] divide(x, cb)\n  t = f32[64] tanh(q)\n  ROOT r = f32[64] multiply(t, t)")
    third = quotient.replace("constant(3)", "constant(0.333333343)").replace("divide(", "multiply(")
    texts = [quotient, third, third.replace("multiply(t, t)", "multiply(t, t), metadata={op_name=\"r\"}"), third + "\n"]

    def how(texts, *options):
        j, code = stages(texts, *options)
        return [(s["result"], s["judged"]) for s in j["stages"]], [s["rounded"] for s in j["stages"]], code

    got = how(texts)
    expect("judged by operations, the last whole", got == (
        [("first", "whole"), ("equal", "by_operations"), ("equal", "by_operations"), ("equal", "whole")], [0, 1, 1, 0], 0), got)
    got = how(texts, "--whole")
    expect("--whole", got == ([("first", "whole")] + [("equal", "whole")] * 3, [0] * 4, 0), got)
    # Rounding that adds up is what the last stage is evaluated whole for: all of them are then.
    amplified = ("  x = f32[64] parameter(0)\n  one = f32[] constant(1)\n  ob = f32[64] broadcast(one), dimensions={}\n"
                 "  q = f32[64] divide(x, x)\n  e = f32[64] subtract(q, ob)\n  l = f32[] constant(1e+06)\n"
                 "  lb = f32[64] broadcast(l), dimensions={}\n  ROOT r = f32[64] multiply(e, lb)")
    turned = amplified.replace("  q = f32[64] divide(x, x)", "  d = f32[64] divide(ob, x)\n  q = f32[64] multiply(x, d)")
    got = how([amplified, turned, turned + "\n"])
    expect("rounding that adds up", got == ([("first", "whole"), ("different", "whole"), ("different", "whole")], [0, 0, 0], 1), got)
    # More than rounding is none.
    got = how([quotient, third.replace("0.333333343", "0.3333345"), third])
    expect("more than rounding", got[0][1][1] == "whole", got)
    # Nothing of a fault behind a stage that was judged so is lost.
    judged("a fault behind", [quotient, third, third.replace("tanh", "sine"), third], "first", "equal", "different", "equal")
    # Operands that are transposed or padded are computed where something other than a product asks for them.
    turn = ("  x = f32[4,8] parameter(0)\n  w = f32[8,8] parameter(1)\n  t = f32[8,4] transpose(x), dimensions={1,0}\n"
            "  d = f32[4,8] dot(t, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n  n = f32[8,4] negate(t)\n"
            "  ROOT r = (f32[4,8], f32[8,4], f32[8,4]) tuple(d, n, t)")
    judged("a transpose that a product and others read", [turn, turn.replace("lhs_contracting_dims={0}", "lhs_contracting_dims={1}").replace("dot(t", "dot(x"),
           turn.replace("negate", "abs")], "first", "equal", "different")
    draw = "  lo = f32[] constant(0)\n  hi = f32[] constant(1)\n  ROOT r = f32[8] rng(lo, hi), distribution=rng_uniform"
    j, code = stages([draw, draw + "\n"])
    expect("numbers that are drawn are drawn in each stage", [s["result"] for s in j["stages"]] == ["first", "equal"], j)


LOOP = """fewer {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(40)
  ROOT less = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  three = s32[] constant(3)
  third = s32[] remainder(i, three)
  late = s32[] add(third, three)
  wraps = pred[] compare(third, one), direction=LT
  below = pred[] compare(i, three), direction=GT
  both = pred[] and(wraps, below)
  at = s32[] select(both, late, third)
  af = f32[] convert(at)
  ab = f32[8] broadcast(af), dimensions={}
  s = f32[8] sine(v)
  m = f32[8] multiply(s, ab)
  h = f32[] constant(0.01)
  hb = f32[8] broadcast(h), dimensions={}
  step = f32[8] multiply(m, hb)
  w = f32[8] add(v, step)
  ROOT t = (s32[], f32[8]) tuple(next, w)
}

ENTRY e {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  loop = (s32[], f32[8]) while(init), condition=fewer, body=body
  ROOT r = f32[8] get-tuple-element(loop), index=1
}
"""


def loops():
    """What the first trip does not tell."""
    named("a loop that ends a trip later", [LOOP, LOOP.replace("direction=LT\n}", "direction=LE\n}")], "less")
    named("a loop that ends a trip earlier", [LOOP, LOOP.replace("constant(40)", "constant(39)")], "n")
    named("a loop that no longer ends", [LOOP, LOOP.replace("compare(i, n), direction=LT", "compare(i, i), direction=EQ")], "less")
    # The condition's operation stands under another name, which leaves the loop to tell.
    sooner = LOOP.replace("constant(40)", "constant(39)").replace("n = ", "bound = ").replace("(i, n)", "(i, bound)")
    j, code = bisect([LOOP, sooner])
    expect("a trip less, by another name", code == 1 and j["found"], json.dumps(j, indent=1)[:800])
    sound("a condition that is written in another way", [LOOP, LOOP.replace("compare(i, n), direction=LT", "compare(n, i), direction=GT")])
    # In the first trip `third` is zero, like much else.
    named("what is not chosen there", [LOOP, LOOP.replace("late = s32[] add(", "late = s32[] multiply(")], "late")
    named("what later trips tell", [LOOP, LOOP.replace("sine(v)", "tanh(v)")], "s")
    named("an operation that became a copy", [LOOP, LOOP.replace("step = f32[8] multiply(m, hb)", "step = f32[8] copy(m)")], "step")
    gone = LOOP.replace("s = f32[8] sine(v)", "u = f32[8] tanh(v)").replace("multiply(s, ab)", "multiply(u, ab)")
    j, code = bisect([LOOP, gone])
    expect("in a later trip, by another name", code == 1 and (j["first_value_that_differs"] or {}).get("name") in ("u", "m"), json.dumps(j, indent=1)[:1500])
    branches = LOOP.replace("fewer {", "one_way {\n  v = f32[8] parameter(0)\n  ROOT s = f32[8] sine(v)\n}\n\nother {\n  v = f32[8] parameter(0)\n"
                            "  ROOT c = f32[8] cosine(v)\n}\n\nfewer {").replace("  s = f32[8] sine(v)\n", "  s = f32[8] conditional(below, v, v), "
                            "true_computation=one_way, false_computation=other\n")
    sound("branches", [branches, branches.replace("add(v, step)", "add(step, v)")])
    named("a branch that the first trip does not take", [branches, branches.replace("ROOT s = f32[8] sine(v)", "ROOT s = f32[8] tanh(v)")], "s")


def regions():
    """Computations that an instruction applies: it is named, and what is another one in there."""
    def inner(what, texts, instruction, within):
        j = named(what, texts, instruction)
        told = (j["first_value_that_differs"] or {}).get("applied") or {}
        expect(f"{what}: inside", told.get("name") in within.split(" or ") and told.get("after"), json.dumps(j, indent=1)[:800])

    either = "either {\n  p = pred[] parameter(0)\n  q = pred[] parameter(1)\n  ROOT any = pred[] or(p, q)\n}\n\n"
    texts = either + ("ENTRY e {\n  x = f32[8,16] parameter(0)\n  c = f32[] constant(100)\n  cb = f32[8,16] broadcast(c), dimensions={}\n"
                      "  far = pred[8,16] compare(x, cb), direction=GT\n  no = pred[] constant(false)\n"
                      "  found = pred[8] reduce(far, no), dimensions={1}, to_apply=either\n  ROOT r = f32[8] convert(found)\n}\n")
    inner("a reduction that these inputs do not tell", [texts, texts.replace(" or(p, q)", " xor(p, q)")], "found", "any")
    sound("a reduction that is written in another way", [texts, texts.replace(" or(p, q)", " maximum(p, q)")])
    other = NORM.replace("to_apply=sum\n  eps", "to_apply=most\n  eps")
    most = "most {\n  s = f32[] parameter(0)\n  t = f32[] parameter(1)\n  ROOT joined = f32[] add(s, t)\n}\n\nENTRY e {\n" + other + "\n}\n"
    inner("a reduction", [most, most.replace("joined = f32[] add(", "joined = f32[] maximum(")], "var", "joined")
    first = ("first {\n  v = f32[] parameter(0)\n  i = s32[] parameter(1)\n  w = f32[] parameter(2)\n  k = s32[] parameter(3)\n  ge = pred[] compare(v, w), direction=GE\n"
             "  x = f32[] select(ge, v, w)\n  y = s32[] select(ge, i, k)\n  ROOT t = (f32[], s32[]) tuple(x, y)\n}\n\n"
             "ENTRY e {\n  x = f32[8,16] parameter(0)\n  n = s32[8,16] iota(), iota_dimension=1\n  low = f32[] constant(-inf)\n  zero = s32[] constant(0)\n"
             "  m = (f32[8], s32[8]) reduce(x, n, low, zero), dimensions={1}, to_apply=first\n  ROOT at = s32[8] get-tuple-element(m), index=1\n}\n")
    inner("the place of the largest, where ties are", [first, first.replace("direction=GE", "direction=GT")], "m", "ge")
    # The wrong order is the one that was there before sorting.
    sorts = ("before {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT lt = pred[] compare(a, b), direction=LT\n}\n\n"
             "ENTRY e {\n  x = f32[16] parameter(0)\n  i = s32[16] iota(), iota_dimension=0\n  s = (f32[16], s32[16]) sort(x, i), dimensions={0}, to_apply=before\n"
             "  k = f32[16] get-tuple-element(s), index=0\n  n = s32[16] get-tuple-element(s), index=1\n  one = f32[1] slice(k), slice={[3:4]}\n"
             "  ROOT r = (f32[1], s32[16]) tuple(one, n)\n}\n")
    inner("a comparator", [sorts, sorts.replace("direction=LT", "direction=NE")], "s", "lt")


    # Of keys that are positive, and each another one, neither signs nor ties tell.
    signs = sorts.replace("ROOT lt", "n = f32[] negate(a)\n  m = f32[] negate(b)\n  ROOT lt").replace("sort(x, i)", "sort(y, i)").replace(
        "iota_dimension=0\n", "iota_dimension=0\n  u = f32[16] convert(i)\n  y = f32[16] reverse(u), dimensions={0}\n").replace("compare(a, b), direction=LT", "compare(m, n), direction=LT")
    inner("a comparator that these keys do not tell", [signs, signs.replace("n = f32[] negate(a)", "n = f32[] abs(a)").replace("m = f32[] negate(b)", "m = f32[] abs(b)").replace("compare(m, n)", "compare(n, m)")], "s", "n or m")
    scaled = sorts.replace("ROOT lt = pred[] compare(a, b)", "one = f32[] constant(1)\n  minus = f32[] constant(-1)\n  n = f32[] multiply(a, one)\n"
                           "  m = f32[] multiply(b, one)\n  ROOT lt = pred[] compare(n, m)")
    inner("what reads another one in a comparator", [scaled, scaled.replace("n = f32[] multiply(a, one)", "n = f32[] multiply(a, minus)")], "s", "n")
    sound("a comparator that leaves ties", [signs, signs.replace("compare(m, n), direction=LT", "compare(m, n), direction=LE")])


def renamed():
    """Where a pass gives other names, what an instruction is by its place counts."""
    def other_names(text):
        return re.sub(r"\b(total|nb|mean|mb|centred|square|var|eps|eb|safe|rb|norm|zero|n)\b(?= =|[,)])", r"\1.0", text)

    sound("other names", [NORM, other_names(NORM), other_names(NORM)])
    for what, old, new, name in (("a constant", "constant(1e-06)", "constant(1e-05)", "eps.0"), ("an operation", " subtract(x", " add(x", "centred.0"),
                                 ("a product", "multiply(centred, rb)", "subtract(centred, rb)", "norm.0")):
        named(f"{what} under another name", [NORM, other_names(NORM.replace(old, new))], name)
    chosen = ("  x = f32[16] parameter(0)\n  c = f32[] constant(100)\n  cb = f32[16] broadcast(c), dimensions={}\n"
              "  far = pred[16] compare(x, cb), direction=GT\n  s = f32[16] sine(x)\n  t = f32[16] cosine(x)\n"
              "  ROOT r = f32[16] select(far, s, t)")
    named("a bound that they do not reach", [chosen, chosen.replace("c = f32[] constant(100)", "c_1 = f32[] constant(90)").replace("broadcast(c)", "broadcast(c_1)")], "c_1")
    count = ("  i = s32[] parameter(0)\n  x = f32[4] parameter(1)\n  five = s32[] constant(77)\n  lt = pred[] compare(i, five), direction=LT\n  y = f32[4] sine(x)\n"
             "  ROOT r = f32[4] select(lt, x, y)")
    named("a comparison of scalars", [count, count.replace("direction=LT", "direction=LE")], "lt")


def key_and_payload(tie, first="LT"):
    """A stage that sorts keys with a payload and positions beside them."""
    return f"""before {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  i = s32[] parameter(4)
  j = s32[] parameter(5)
  lt = pred[] compare(a, b), direction={first}
  gt = pred[] compare(b, a), direction={first}
  eq = pred[] compare(lt, gt), direction=EQ
  tie = pred[] compare({tie}
  ROOT s = pred[] select(eq, tie, lt)
}}

ENTRY e {{
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  n = s32[8] iota(), iota_dimension=0
  ROOT sort = (f32[8], f32[8], s32[8]) sort(p, q, n), dimensions={{0}}, to_apply=before
}}
"""


def applied(line, entry, declared="  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"):
    return f"f {{\n{declared}  ROOT r = {line}\n}}\n\nENTRY e {{\n  x = f32[8,8] parameter(0)\n  one = f32[] constant(-inf)\n{entry}\n}}\n"


def applied_elsewhere():
    """Computations that are applied are compared on ties, zeros and infinities, whatever the inputs give."""
    good = key_and_payload("i, j), direction=LT")
    named("ties by the later position", [good, key_and_payload("i, j), direction=GT")], "sort")
    named("ties by a payload", [key_and_payload("c, d), direction=LT"), key_and_payload("c, d), direction=GT")], "sort")
    named("ties the wrong way round, of a payload", [key_and_payload("c, d), direction=LT"), key_and_payload("d, c), direction=LT")], "sort")
    with tempfile.TemporaryDirectory() as tmp:
        inputs = pathlib.Path(tmp) / "u.npz"
        with zipfile.ZipFile(inputs, "w") as z:
            for name, first in (("p0", 1), ("p1", 100)):
                head = "{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }"
                head += " " * ((-len(head) - 11) % 64) + "\n"
                z.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                           + struct.pack("<8f", *(first + 3 * k % 8 for k in range(8))))
        j, code = bisect([good, key_and_payload("i, j), direction=GT")], f"--inputs={inputs}")
        expect("keys that never tie", code == 1 and (j["first_value_that_differs"] or {}).get("name") == "sort", j["verdict"])
    sound("ties written the other way round", [good, key_and_payload("j, i), direction=GT")])
    le = LESS.replace("direction=LT", "direction=LE")
    named("LT made LE", [LESS, le], "s")
    total = LESS.replace("direction=LT", "direction=LT, type=TOTALORDER")
    expect("total order differs from the plain one at most where it may", bisect([total, total])[1] == 0)
    clip = "  ROOT y = f32[8] reduce(x, one), dimensions={1}, to_apply=f"
    maximum = applied("f32[] maximum(a, b)", clip)
    shifted = maximum.replace("  ROOT r = f32[] maximum(a, b)", "  m = f32[] maximum(a, b)\n  h = f32[] constant(-8)\n  ROOT r = f32[] maximum(m, h)")
    named("a reducer that is another below what the inputs give", [maximum, shifted], "y")
    window = applied("f32[] maximum(a, b)", "  ROOT y = f32[4,4] reduce-window(x, one), window={size=2x2 stride=2x2}, to_apply=f")
    named("a window's reducer", [window, window.replace("  ROOT r = f32[] maximum(a, b)", "  m = f32[] maximum(a, b)\n  h = f32[] constant(-8)\n  ROOT r = f32[] maximum(m, h)")], "y")


MASKED = """  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
  i = s32[4,4] iota(), iota_dimension=0
  j = s32[4,4] iota(), iota_dimension=1
  keep = pred[4,4] compare(i, j), direction=GE
  d = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[] constant(0.25)
  hb = f32[4,4] broadcast(h), dimensions={}
  scores = f32[4,4] multiply(d, hb)
  low = f32[] constant(-1e+09)
  lows = f32[4,4] broadcast(low), dimensions={}
  s = f32[4,4] select(keep, scores, lows)
  least = f32[] constant(-inf)
  m = f32[4] reduce(s, least), dimensions={1}, to_apply=most
  mb = f32[4,4] broadcast(m), dimensions={0}
  c = f32[4,4] subtract(s, mb)
  ROOT e = f32[4,4] exponential(c)"""
MOST = "most {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n\n"


def with_other_names(text, *edits):
    """The same with another name for each instruction but the parameters."""
    text = replaced(text, *edits)
    for name in re.findall(r"^  (?:ROOT )?(\w+) = (?!\S+ parameter)", text, flags=re.M):
        text = re.sub(rf"\b{name}\b(?= =|[,)])(?!=)", f"{name}.77", text)
    return text


def renamed_and_wrong():
    """What the guilty pass names anew, or what stands beside a mask, is looked at all the same."""
    def whole(body):
        return MOST + "ENTRY e {\n" + body + "\n}\n"

    sound("names alone", [whole(MASKED), whole(with_other_names(MASKED)), whole(with_other_names(MASKED))])
    named("beside a mask", [whole(MASKED), whole(MASKED.replace("multiply(d, hb)", "divide(d, hb)"))], "scores")
    named("beside a mask, renamed", [whole(MASKED), whole(with_other_names(MASKED, "multiply(d, hb)", "divide(d, hb)"))], "scores.77")
    for what, name, *edit in (("a least value", "least.77", "constant(-inf)", "constant(-3e+38)"),
                              ("a mask", "low.77", "constant(-1e+09)", "constant(-1e+08)"),
                              ("a comparison", "keep.77", "i, j), direction=GE", "i, j), direction=GT"),
                              ("a scale", "h.77", "constant(0.25)", "constant(0.25000003)")):
        wrong = whole(with_other_names(MASKED, *edit))
        named(f"{what} in the stage that renames", [whole(MASKED), wrong, wrong], name)


# A condition, and a body up to its counter: what is carried is v.
NINE_TRIPS = """cond {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(9)
  ROOT less = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
"""


def annotations():
    """What the device goes by is recomputed."""
    loop = NINE_TRIPS + """  w = f32[8] sine(v)
  ROOT t = (s32[], f32[8]) tuple(next, w)
}

ENTRY e {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  loop = (s32[], f32[8]) while(init), condition=cond, body=body, backend_config={"known_trip_count":{"n":"9"},"known_init_step":{"init":"0","step":"1"},"known_induction_variable":{"tuple_index":"0"}}
  ROOT r = f32[8] get-tuple-element(loop), index=1
}
"""
    bare = re.sub(r", backend_config=.*", "", loop)
    sound("right annotations", [bare, loop, loop])
    for old, new in (('"n":"9"', '"n":"8"'), ('"init":"0"', '"init":"1"'), ('"step":"1"', '"step":"2"'), ('"tuple_index":"0"', '"tuple_index":"1"')):
        j = named(f"annotation {new}", [bare, loop.replace(old, new)], "loop")
        expect("the annotation is told", "the module makes it" in (j["why"] or ""), j["why"])
        named(f"annotation {new} later", [bare, loop, loop.replace(old, new)], "loop")
    slices = """  x = f32[16,4] parameter(0)
  three = s32[] constant(3)
  zero = s32[] constant(0)
  ROOT s = f32[2,4] dynamic-slice(x, three, zero), dynamic_slice_sizes={2,4}, backend_config={"dynamic_slice_config":{"byte_offset":"48","byte_stride":"0"}}"""
    plain = re.sub(r", backend_config=.*", "", slices)
    sound("a slice's place", [plain, slices])
    named("a slice's wrong place", [plain, slices.replace('"48"', '"64"')], "s")
    # As releases from 2026 on write it.
    linear = slices.replace('{"byte_offset":"48","byte_stride":"0"}', '{"byte_offset":"0","byte_stride":"0","linear":{"byte_offset":"48","byte_stride":"0"}}')
    sound("a slice's place, linear", [plain, linear])
    named("a slice's wrong place, linear", [plain, linear.replace('"48"', '"64"')], "s")


def promises():
    """What a pass says of indices is looked at with the indices that there are."""
    lines = """  x = f32[16] parameter(0)
  i = s32[4,1] constant({{3},{1},{2},{0}})
  ROOT g = f32[4] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"""
    said = lines + ", indices_are_sorted=true"
    j = named("indices that are not sorted", [lines, lines, said], "g")
    expect("it is told", "and they are not" in (j["why"] or ""), j["why"])
    rising = "{{0},{1},{2},{3}}"
    sound("indices that are sorted", [lines.replace("{{3},{1},{2},{0}}", rising), said.replace("{{3},{1},{2},{0}}", rising)])
    sound("a promise of the user's", [said, said, said.replace("ROOT g", "ROOT other")])
    scatter = """  x = f32[16] parameter(0)
  u = f32[4] parameter(1)
  i = s32[4,1] constant({{0},{1},{1},{5}})
  ROOT s = f32[16] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"""
    named("indices that are not unique", [scatter, scatter + ", unique_indices=true"], "s")
    sound("and these are sorted", [scatter, scatter + ", indices_are_sorted=true"])


def in_fusions():
    """What reads a fusion's parameter leads to the fusion's operand, where a pass gives other names."""
    text = """body {
  p = f32[8] parameter(0)
  q = f32[] parameter(1)
  qb = f32[8] broadcast(q), dimensions={}
  ROOT m = f32[8] maximum(p, qb)
}

ENTRY e {
  x = f32[8] parameter(0)
  low = f32[] constant(-1e+09)
  f = f32[8] fusion(x, low), kind=kLoop, calls=body
  ROOT y = f32[8] cosine(f)
}
"""
    wrong = with_other_names(text, "constant(-1e+09)", "constant(-1e+08)")
    sound("names of a fusion's operands", [text, with_other_names(text)])
    named("a fusion's bound", [text, wrong, wrong], "low.77")


def nested_pipeline():
    """A pipeline that begins inside of a pass shows what the pass has done."""
    text = "HloModule m\n\nENTRY e {\n  x = f32[8] parameter(0)\n  ROOT r = f32[8] sine(x)\n}\n"
    rows = {"0001.spmd-partitioner.after_pipeline-start.before_shardy-xla": text,
            "0002.spmd-partitioner.after_shardy-xla.before_spmd-partitioning": text,
            "0003.spmd-cleanup.after_pipeline-start.before_dce": text.replace("sine", "cosine"),
            "0004.spmd-cleanup.after_dce.before_pipeline-end": text.replace("sine", "cosine")}
    # Passes in front of it that changed nothing have written nothing: it is the next that the pipeline around it writes.
    silent = {"0001.spmd-partitioner.after_pipeline-start.before_flatten-call-graph": text,
              "0002.spmd-cleanup.after_pipeline-start.before_dce": text.replace("sine", "cosine"),
              "0003.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter": text.replace("sine", "cosine")}
    for stages in (rows, silent):
        with tempfile.TemporaryDirectory() as tmp:
            for name, body in stages.items():
                (pathlib.Path(tmp) / f"module_0001.m.{name}.txt").write_text(body)
            r = subprocess.run([TOOL, "bisect", tmp, "--json"], capture_output=True, text=True, timeout=60)
        j = json.loads(r.stdout)
        expect("the pass that runs around it", (j["pass"], j["pipeline"]) == ("spmd-partitioning", "spmd-partitioner"), (j["pass"], j["pipeline"]))


def reads_another():
    """What reads another value that there was, of the same shape."""
    text = """turn {
  p = f32[4,4] parameter(0)
  ROOT t = f32[4,4] transpose(p), dimensions={1,0}
}

ENTRY e {
  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  one = f32[4,4] fusion(x), kind=kLoop, calls=turn
  far = f32[] constant(1e+06)
  bound = f32[4,4] broadcast(far), dimensions={}
  least = f32[4,4] maximum(one, bound)
  s = f32[4,4] sine(y)
  q = f32[4,4] reshape(s)
  c = f32[4,4] cosine(q)
  ROOT r = (f32[4,4], f32[4,4], f32[4,4]) tuple(least, c, s)
}
"""
    named("a fusion, which these inputs do not tell", [text, text.replace("fusion(x)", "fusion(y)")], "one")
    named("a reshape", [text, text.replace("reshape(s)", "reshape(x)")], "q")
    near = text.replace("constant(1e+06)", "constant(0)")
    named("a fusion that they tell", [near, near.replace("fusion(x)", "fusion(y)")], "one")
    # Names that have moved on by one.
    layers = """  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  z = f32[8] parameter(2)
  s.1 = f32[8] sine(x)
  s.2 = f32[8] sine(y)
  s.3 = f32[8] sine(z)
  far = f32[] constant(1e+06)
  bound = f32[8] broadcast(far), dimensions={}
  m.1 = f32[8] maximum(s.1, bound)
  m.2 = f32[8] maximum(s.2, bound)
  m.3 = f32[8] maximum(s.3, bound)
  ROOT r = (f32[8], f32[8], f32[8]) tuple(m.1, m.2, m.3)"""
    moved = re.sub(r"\b([sm])\.(\d)", lambda m: f"{m.group(1)}.{int(m.group(2)) % 3 + 1}", layers)
    sound("names that have moved on", [layers, moved])


def words():
    """ "no bad stage" is said where all was compared, and only there."""
    j = sound("all compared", [NORM, NORM.replace("add(var, eb)", "add(eb, var)"), NORM])
    expect("said", j["verdict"].startswith("no bad stage") and j["inside"]["not_compared"] == 0, j["verdict"])
    foreign = NORM.replace("rsqrt(safe)", 'custom-call(safe), custom_call_target="nobody"')
    j, _ = bisect([foreign, foreign.replace("rb = f32[8,64] broadcast(r)", "minus = f32[8] negate(r)\n  rb = f32[8,64] broadcast(minus)")])
    expect("not said", not j["verdict"].startswith("no bad stage") and j["inside"]["not_compared"] > 0, j["verdict"])
    expect("where", j["inside"]["not_compared_where"][0]["first"] == "minus", j["inside"]["not_compared_where"])


def beside_rewritten():
    """A pass rewrites what makes an operand, and the reader is another one; memory of a call is no value."""
    # The autotuner fills in how a library computes; what is wrong beside it is seen, though nothing behind it tells.
    deaf = CALLS.split("  turned")[0] + """  turned = f32[4,3,3,3] transpose(k), dimensions={3,0,1,2}
  call = (f32[2,6,6,4], u8[16]) custom-call(padded, turned), window={size=3x3}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward", backend_config={"cudnn_conv_backend_config":{"conv_result_scale":1,"activation_mode":"kNone"}}
  c = f32[2,6,6,4] get-tuple-element(call), index=0
  far = f32[] constant(1e+06)
  bound = f32[2,6,6,4] broadcast(far), dimensions={}
  ROOT r = f32[2,6,6,4] maximum(c, bound)"""
    tuned = deaf.replace('"conv_result_scale"', '"algorithm":{"algo_id":"58","workspace_size":"0"},"conv_result_scale"')
    sound("a tuned call", [deaf, tuned])
    named("beside a tuned call", [deaf, tuned.replace("{3,0,1,2}", "{3,1,0,2}")], "turned")
    # Where what reads it is written in another way, too, it is not called compared.
    lines = """  x = f32[16] parameter(0)
  s = f32[16] sine(x)
  t = f32[16] add(s, s)
  far = f32[] constant(1e+06)
  bound = f32[16] broadcast(far), dimensions={}
  ROOT r = f32[16] maximum(t, bound)"""
    j, _ = bisect([lines, lines.replace("sine(x)", "tanh(x)").replace("add(s, s)", "multiply(s, bound)")])
    expect("not told beside what was rewritten", not j["verdict"].startswith("no bad stage"), j["verdict"])
    wrong = CALLS.replace("rows = f32[72,4] reshape(c)", "neg = f32[2,6,6,4] negate(c)\n  rows = f32[72,4] reshape(neg)")
    before = CONV.replace("rows = f32[72,4] reshape(c)", "neg = f32[2,6,6,4] tanh(c)\n  rows = f32[72,4] reshape(neg)")
    named("a reader beside what was rewritten", [before, wrong, wrong], "neg")
    grown = CALLS.replace("u8[16]", "u8[782]").replace("s8[16]", "s8[99]")
    sound("memory that grows", [CONV, CALLS, grown, CALLS])


TWICE = """  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
  t = f32[4,4] transpose(w), dimensions={1,0}
  d = f32[4,4] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[4,4] negate(d)"""
TOGETHER = """f {
  p = f32[4,4] parameter(0)
  q = f32[4,4] parameter(1)
  o = f32[4,4] bitcast(p)
  u = f32[4,4] transpose(q), dimensions={1,0}
  v = f32[4,4] bitcast(u)
  ROOT e = f32[4,4] dot(o, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
  g = f32[4,4] fusion(x, w), kind=kCustom, calls=f
  ROOT r = f32[4,4] negate(g)
}
"""
CARRIED = """fewer {
  p = (s32[], s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  j = s32[] get-tuple-element(p), index=1
  v = f32[8] get-tuple-element(p), index=2
  a = f32[8] get-tuple-element(p), index=3
  s = f32[8] sine(v)
  w = f32[8] add(s, a)
  ROOT t = (s32[], s32[], f32[8], f32[8]) tuple(next, j, w, a)
}

ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], s32[], f32[8], f32[8]) tuple(zero, zero, x, y)
  loop = (s32[], s32[], f32[8], f32[8]) while(init), condition=fewer, body=body
  ROOT r = f32[8] get-tuple-element(loop), index=2
}
"""
SHORTER = """sooner {
  p.1 = (s32[], f32[8], f32[8]) parameter(0)
  i.1 = s32[] get-tuple-element(p.1), index=0
  n.1 = s32[] constant(5)
  ROOT less.1 = pred[] compare(i.1, n.1), direction=LT
}

inner {
  p.2 = (s32[], f32[8], f32[8]) parameter(0)
  i.2 = s32[] get-tuple-element(p.2), index=0
  one.2 = s32[] constant(1)
  next.2 = s32[] add(i.2, one.2)
  v.2 = f32[8] get-tuple-element(p.2), index=1
  a.2 = f32[8] get-tuple-element(p.2), index=2
  s.2 = f32[8] sine(v.2)
  w.2 = f32[8] add(s.2, a.2)
  ROOT t.2 = (s32[], f32[8], f32[8]) tuple(next.2, w.2, a.2)
}

ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  init.1 = (s32[], f32[8], f32[8]) tuple(zero, x, y)
  loop.1 = (s32[], f32[8], f32[8]) while(init.1), condition=sooner, body=inner
  ROOT r = f32[8] get-tuple-element(loop.1), index=1
}
"""
CHOSEN = """  x = f32[8] parameter(0)
  p = pred[8] parameter(1)
  a = f32[] constant(3)
  ab = f32[8] broadcast(a), dimensions={}
  b = f32[] constant(5)
  bb = f32[8] broadcast(b), dimensions={}
  s = f32[8] select(p, ab, bb)
  ROOT r = f32[8] multiply(s, x)"""


def by_places():
    """What a pass writes anew, under other names: the cause is told, not what reads it."""
    sound("a product and its operands in a fusion", [TWICE, TOGETHER])
    named("a transpose that became a reshape in it", [TWICE, TOGETHER.replace("transpose(q), dimensions={1,0}", "reshape(q)")], "u")
    named("a fusion that is given another operand", [TWICE, TOGETHER.replace("fusion(x, w)", "fusion(w, w)")], "g")
    named("another contraction", [TWICE, TOGETHER.replace("rhs_contracting_dims={0}", "rhs_contracting_dims={1}")], "e")
    sound("a loop that carries less", [CARRIED, SHORTER])
    named("another element in it", [CARRIED, SHORTER.replace("v.2 = f32[8] get-tuple-element(p.2), index=1", "v.2 = f32[8] get-tuple-element(p.2), index=2")], "v.2")
    named("another step in it", [CARRIED, SHORTER.replace("one.2 = s32[] constant(1)", "one.2 = s32[] constant(2)")], "one.2")
    named("another operation in it", [CARRIED, SHORTER.replace("sine(v.2)", "cosine(v.2)")], "s.2")
    anew = re.sub(r"\b(a|ab|b|bb|s)\b(?= =|[,)])", r"\1.1", CHOSEN)
    sound("other names", [CHOSEN, anew])
    named("choices that changed places under other names", [CHOSEN, anew.replace("select(p, ab.1, bb.1)", "select(p, bb.1, ab.1)")], "s.1")
    # The memory that a library's call works in says nothing about what it computes.
    mute = CALLS.replace("  rows = f32[72,4] reshape(c)", "  no = f32[] constant(0)\n  nb = f32[2,6,6,4] broadcast(no), dimensions={}\n"
                         "  none = f32[2,6,6,4] multiply(c, nb)\n  rows = f32[72,4] reshape(none)")
    named("a transpose behind which nothing tells", [mute, mute.replace("u8[16]", "u8[782]").replace("transpose(k), dimensions={3,0,1,2}", "reshape(k)")], "turned")
    # Of a comparator that is written in another way the values tell which of its instructions is wrong.
    first = key_and_payload("c, d), direction=LT").replace("lt = pred[] compare(a, b)", "m = f32[] negate(a)\n  n = f32[] negate(b)\n  lt = pred[] compare(m, n)").replace(
        "gt = pred[] compare(b, a)", "gt = pred[] compare(n, m)")
    other = first.replace("m = f32[] negate(a)", "z = f32[] constant(0)\n  m = f32[] subtract(z, a)").replace("n = f32[] negate(b)", "n = f32[] subtract(z, b)")
    sound("a comparator that is written in another way", [first, other])
    j = named("what is wrong beside it", [first, other.replace("compare(c, d)", "compare(d, c)")], "sort")
    told = (j["first_value_that_differs"] or {}).get("applied") or {}
    expect("the comparison", told.get("name") == "tie", json.dumps(told))


def huge():
    """Numbers of 1e12 and more, beside which those around 1 are lost in sums."""
    gate = """  p = f32[256] parameter(0)
  c = f32[] constant(50)
  cb = f32[256] broadcast(c), dimensions={}
  x = f32[256] multiply(p, cb)
  e = f32[256] exponential(x)
  one = f32[] constant(1)
  ob = f32[256] broadcast(one), dimensions={}
  more = f32[256] add(e, ob)
  s = f32[256] divide(ob, more)
  ROOT r = f32[256] multiply(x, s)"""
    sound("a gate", [gate, gate.replace("add(e, ob)", "add(ob, e)")])
    named("a gate without its one", [gate, gate.replace("divide(ob, more)", "divide(ob, e)")], "s")
    # Looked into, a loop's only trip gives what the loop does.
    looped = gate.replace("  p = f32[256] parameter(0)\n", "  t = (s32[], f32[256]) parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n"
                          "  u = s32[] constant(1)\n  n = s32[] add(i, u)\n  p = f32[256] get-tuple-element(t), index=1\n")
    looped = looped.replace("ROOT r", "r") + "\n  ROOT o = (s32[], f32[256]) tuple(n, r)\n"
    loop = ("body {\n" + looped + "}\n\nless {\n  t = (s32[], f32[256]) parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n"
            "  l = s32[] constant(1)\n  ROOT go = pred[] compare(i, l), direction=LT\n}\n\nENTRY e {\n  p = f32[256] parameter(0)\n"
            "  z = s32[] constant(0)\n  t = (s32[], f32[256]) tuple(z, p)\n  w = (s32[], f32[256]) while(t), condition=less, body=body\n"
            "  q = f32[256] get-tuple-element(w), index=1\n  ROOT d = f32[256] sine(q)\n}\n")
    sound("a loop of one trip that is taken apart", [loop, gate.replace("ROOT r", "r") + "\n  ROOT d = f32[256] sine(r)"])


def transposed_iotas():
    """What is said of both is said of each of them: layout normalization makes rows of columns, and a diagonal stays one."""
    before = """  x = f32[8,8] parameter(0)
  zero = f32[] constant(0)
  zb = f32[8,8] broadcast(zero), dimensions={}
  rows = s32[8,8] iota(), iota_dimension=0
  columns = s32[8,8] iota(), iota_dimension=1
  diagonal = pred[8,8] compare(rows, columns), direction=EQ
  ROOT s = f32[8,8] select(diagonal, x, zb)"""
    after = before.replace("rows = s32[8,8] iota(), iota_dimension=0", "rows = s32[8,8] iota(), iota_dimension=1")
    after = after.replace("columns = s32[8,8] iota(), iota_dimension=1", "columns = s32[8,8] iota(), iota_dimension=0")
    sound("a diagonal", [before, after])
    named("no diagonal", [before.replace("EQ", "GE"), after.replace("EQ", "GE")], "rows")


def reduce_precision():
    """To what the type has anyway: nothing, in f64, too."""
    before = """  x = bf16[8,64] parameter(0)
  w = bf16[64,4] parameter(1)
  d = bf16[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = bf16[8,4] reduce-precision(d), exponent_bits=8, mantissa_bits=7
  ROOT s = bf16[8,4] sine(r)"""
    sound("one that is none", [before, before.replace("sine(r)", "sine(d)").replace("  r = bf16[8,4] reduce-precision(d), exponent_bits=8, mantissa_bits=7\n", "")])
    j, code = bisect([before, before.replace("mantissa_bits=7", "mantissa_bits=2")])
    expect("one that is one", code == 1, json.dumps(j, indent=1)[:800])


def main():
    by_places()
    reduce_precision()
    transposed_iotas()
    huge()
    applied_elsewhere()
    renamed_and_wrong()
    annotations()
    promises()
    in_fusions()
    nested_pipeline()
    reads_another()
    words()
    beside_rewritten()
    products(), fused_convolutions(), sorts(), dots(), every_stage(), loops(), regions(), renamed()
    # What moves the outputs by less than rounding does.
    later = NORM.replace("constant(1e-06)", "constant(1e-05)")
    j = named("epsilon of a norm", [NORM, NORM, later, later], "eps")
    expect("its stage", j["bad"].startswith("0002"), j["bad"])
    expect("how much the outputs move", "outputs move by" in j["outputs"], j["outputs"])
    expect("the outputs alone do not tell", not bisect([NORM, later], "--outputs-only")[0]["found"])
    named("a sign in a norm", [NORM, NORM.replace("subtract(x, mb)", "add(x, mb)")], "centred")
    # A fusion is looked into.
    fused = ("f {\n  p = f32[8,64] parameter(0)\n  q = f32[8] parameter(1)\n  mb = f32[8,64] broadcast(q), dimensions={0}\n"
             "  ROOT centred = f32[8,64] subtract(p, mb)\n}\n\nENTRY e {\n" +
             NORM.replace("  mb = f32[8,64] broadcast(mean), dimensions={0}\n  centred = f32[8,64] subtract(x, mb)",
                          "  g = f32[8,64] fusion(x, mean), kind=kLoop, calls=f").replace("centred, centred", "g, g").replace("multiply(centred", "multiply(g") + "\n}\n")
    sound("a fusion", [NORM, fused])
    named("in a fusion", [NORM, fused, fused.replace("subtract(p, mb)", "add(p, mb)")], "centred")
    # A gate whose operand lies at zero: in f32 it falls to the other side, in f64 all is the same.
    plain = ("  p = f32[8] parameter(0)\n  q = f32[8] parameter(1)\n  s = f32[] constant(1e-09)\n  sb = f32[8] broadcast(s), dimensions={}\n"
             "  small = f32[8] multiply(p, sb)\n  x = f32[16] concatenate(small, q), dimensions={0}\n  one = f32[] constant(1)\n"
             "  ob = f32[16] broadcast(one), dimensions={}\n  lift = f32[16] add(x, ob)\n  z = f32[] constant(0)\n"
             "  zb = f32[16] broadcast(z), dimensions={}\n  gt = pred[16] compare(x, zb), direction=GT\n  ROOT r = f32[16] select(gt, lift, x)")
    gate = plain.replace("  z = f32[] constant(0)\n", "  y = f32[16] subtract(lift, ob)\n  z = f32[] constant(0)\n").replace("compare(x", "compare(y")
    j = sound("rounding through a gate", [plain, plain, gate, gate + "\n"])
    expect("which one", len(j["rounding"]) == 1 and j["rounding"][0].startswith("0002") and "gt gives another value" in j["rounding"][0] and
           "rounding at a discontinuity" in j["verdict"], j)
    # What is wrong in these types alone is told all the same; behind a gate that has turned f64 cannot tell it from rounding.
    wrong = gate.replace("  lift = f32[16] add(x, ob)", "  b = bf16[16] convert(x)\n  xx = f32[16] convert(b)\n  lift = f32[16] add(xx, ob)")
    j, code = bisect([plain, wrong])
    expect("bf16 by a gate", code == 1 and j["found"] and j["bad"].startswith("0001"), json.dumps(j, indent=1)[:1500])
    j, code = bisect([plain, gate, wrong, wrong])
    expect("bf16 behind a gate is not called good", code != 0 and (j["found"] and j["bad"].startswith("0002") or any("000" in json.dumps(u) for u in j["unknown"])),
           json.dumps(j, indent=1)[:1500])
    # What the outputs do not tell at all.
    chosen = ("  x = f32[16] parameter(0)\n  c = f32[] constant(100)\n  cb = f32[16] broadcast(c), dimensions={}\n"
              "  far = pred[16] compare(x, cb), direction=GT\n  s = f32[16] sine(x)\n  t = f32[16] cosine(x)\n"
              "  ROOT r = f32[16] select(far, s, t)")
    j = named("a branch that is not taken", [chosen, chosen.replace(" sine(x)", " tanh(x)")], "s")
    expect("insensitive", "insensitive to s" in j["outputs"], j["outputs"])
    named("a comparison that is never true", [chosen, chosen.replace("direction=GT", "direction=EQ")], "far")
    named("a bound", [chosen, chosen.replace("constant(100)", "constant(99)")], "c")
    named("a new name", [chosen, chosen.replace("s = f32[16] sine(x)", "u = f32[16] tanh(x)").replace("far, s, t", "far, u, t").replace("GT", "LT")], "far")

    # Legal: values inside change and their users heal them.
    product = ("  x = f32[16] parameter(0)\n  y = f32[16] parameter(1)\n  c = f32[] constant(3)\n  cb = f32[16] broadcast(c), dimensions={}\n"
               "  d = f32[16] divide(x, cb)\n  e = f32[16] multiply(d, cb)\n  ROOT r = f32[16] add(e, y)")
    sound("a division turned into a product", [product, product.replace("constant(3)", "constant(0.333333343)").replace("divide(x", "multiply(x").replace("multiply(d, cb)", "divide(d, cb)")])
    folded = product.replace("  e = f32[16] multiply(d, cb)\n", "").replace("add(e, y)", "add(x, y)").replace("  d = f32[16] divide(x, cb)\n", "")
    sound("what cancels is gone", [product, folded, folded])
    turned = ("  x = f32[4,8] parameter(0)\n  t = f32[8,4] transpose(x), dimensions={1,0}\n  n = f32[8,4] tanh(t)\n  ROOT r = f32[4,8] transpose(n), dimensions={1,0}")
    sound("transposes that cancel", [turned, "  x = f32[4,8] parameter(0)\n  ROOT n = f32[4,8] tanh(x)"])
    narrow = product.replace("  ROOT r", "  h = bf16[16] convert(e)\n  k = f32[16] convert(h)\n  ROOT r").replace("add(e, y)", "add(k, y)")
    sound("a conversion there and back", [narrow, product], "--tolerance=0.01")

    # Loops: the first trip is looked into.
    loop = NINE_TRIPS + """  s = f32[8] sine(v)
  h = f32[] constant(0.001)
  hb = f32[8] broadcast(h), dimensions={}
  step = f32[8] multiply(s, hb)
  w = f32[8] add(v, step)
  ROOT t = (s32[], f32[8]) tuple(next, w)
}

ENTRY e {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  loop = (s32[], f32[8]) while(init), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(loop), index=1
}
"""
    # Another element of a tuple, which these inputs do not tell.
    elements = ("  x = f32[16] parameter(0)\n  y = f32[16] parameter(1)\n  m = (f32[16], f32[16]) sort(x, y), dimensions={0}, to_apply=before\n"
                "  left = f32[16] get-tuple-element(m), index=0\n  right = f32[16] get-tuple-element(m), index=1\n  c = f32[] constant(100)\n"
                "  cb = f32[16] broadcast(c), dimensions={}\n  ROOT r = f32[16] maximum(left, cb)")
    order = ("before {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  k = f32[] parameter(2)\n  l = f32[] parameter(3)\n"
             "  ROOT lt = pred[] compare(p, q), direction=LT\n}\n\nENTRY e {\n")
    elements = order + elements + "\n}\n"
    named("another element of a tuple", [elements, elements.replace("(m), index=0", "(m), index=1")], "left")
    both = elements.replace("maximum(left, cb)", "subtract(left, right)")
    sound("elements under each other's names", [both, both.replace("(m), index=0", "(m), index=2").replace("(m), index=1", "(m), index=0").replace(
        "index=2", "index=1").replace("subtract(left, right)", "subtract(right, left)")])
    sound("a loop whose body is written in another way", [loop, loop.replace("add(v, step)", "add(step, v)"), loop.replace("multiply(s, hb)", "multiply(hb, s)")])
    named("in a loop", [loop, loop.replace("sine(v)", "tanh(v)")], "s")

    # Partial sums.
    whole = """  x = f32[8,16] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[16,4] parameter(1), sharding={devices=[4,1]<=[4]}
  y = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[8,4] tanh(y), sharding={replicated}"""
    parts = """  x = f32[8,4] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[4,4] parameter(1), sharding={devices=[4,1]<=[4]}
  dot.1 = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="layer/out" source_file="net.py" source_line=7}
  ar = f32[8,4] all-reduce(dot.1), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=sum
  ROOT t = f32[8,4] tanh(ar)"""
    four = ", num_partitions=4"
    split = "sharding={devices=[4,1]<=[4]}"
    own = f"  x = f32[8,4] parameter(0), {split}\n  s = f32[8,4] sine(x)\n  t = f32[8,4] multiply(s, s)\n  ROOT r = f32[8,4] cosine(t), {split}"
    shards = own.replace("f32[8,4]", "f32[2,4]")
    named("where the devices' results are put together", [own, shards, shards.replace("multiply(s", "subtract(s")], "t", header=four)
    # Where stages behind the partitioner have no shardings any more (XLA 0.12), those of the last whole stage count.
    columns = own.replace(split, "sharding={devices=[1,4]<=[4]}")
    bare = own.replace(f", {split}", "").replace("f32[8,4]", "f32[8,1]")
    sound("shardings that only whole stages have", [own.replace(f", {split}", ""), columns, bare, bare], header=four)
    named("a part where no sharding is told", [own.replace(f", {split}", ""), columns, bare, bare.replace("multiply(s", "subtract(s")], "t", header=four)
    missing = parts.replace(parts.split("\n")[3] + "\n", "").replace("tanh(ar)", "tanh(dot.1)")
    sound("the partitioner's partial sums", [whole, parts, parts], header=four)
    j = named("an all-reduce is missing", [whole, missing, missing], "dot.1", header=four)
    expect("it is called what it is", "an all-reduce is missing" in (j["partial_sums"] or ""), j["partial_sums"])
    expect("its source line", (j["source"] or "").startswith("net.py:7"), j["source"])
    j = named("an all-reduce is lost later", [whole, parts, missing], "t", header=four)
    expect("that too is called what it is", "an all-reduce is missing" in (j["partial_sums"] or ""), j["partial_sums"])

    # A loop that makes large what rounding makes small: the logistic map, written in two ways. What one operation gives
    # is named there all the same.
    logistic = """state {
  p = (s32[], f64[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f64[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  r = f64[] constant(3.9)
  rs = f64[8] broadcast(r), dimensions={}
  y = f64[8] multiply(rs, x)
  WAY
  ROOT t = (s32[], f64[8]) tuple(n, z)
}
less {
  p = (s32[], f64[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(120)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  a = f64[8] parameter(0)
  s = f64[8] logistic(a)
  zero = s32[] constant(0)
  t = (s32[], f64[8]) tuple(zero, s)
  w = (s32[], f64[8]) while(t), condition=less, body=state
  g = f64[8] get-tuple-element(w), index=1
  ROOT out = f64[8] OUT(g)
}"""
    one_way = logistic.replace("WAY", "o = f64[] constant(1)\n  os = f64[8] broadcast(o), dimensions={}\n  d = f64[8] subtract(os, x)\n  z = f64[8] multiply(y, d)")
    other_way = logistic.replace("WAY", "q = f64[8] multiply(y, x)\n  z = f64[8] subtract(y, q)")
    j, code = bisect([one_way.replace("OUT", "sine"), other_way.replace("OUT", "sine")])
    expect("what rounding grows into accuses nobody", not j["found"] and j["unknown"] and "moves the results as far" in j["rounding"][0], j["verdict"])
    j, code = bisect([one_way.replace("OUT", "sine"), other_way.replace("OUT", "sine")], "--outputs-only")
    expect("nor is it called good where f64 was not asked", code == 2 and not j["found"] and len(j["unknown"]) == 1, j["verdict"])
    named("behind such a loop", [one_way.replace("OUT", "sine"), one_way.replace("OUT", "cosine")], "out")

    # Inputs that tell nothing are said, and others taken.
    nan = "  x = f32[8,8] parameter(0)\n  l = f32[8,8] log(x)\n  s = f32[8,8] sine(l)\n  ROOT r = f32[8,8] add(s, l)"
    j = sound("NaN", [nan, nan])
    expect("others are taken", "positive" in j["inputs"]["made"] and j["inputs"]["with_nan"] == 0, j["inputs"])
    named("seen with others", [nan, nan.replace("sine(l)", "cosine(l)")], "s")
    flat = "  x = f32[8,8] parameter(0)\n  z = f32[8,8] subtract(x, x)\n  ROOT s = f32[8,8] sine(z)"
    j = sound("zeros", [flat, flat])
    expect("zeros are said", j["inputs"]["all_zero"] == 1 and j["inputs"]["outputs_that_tell_nothing"] == 1, j["inputs"])
    sliced = ("  x = f32[16] parameter(0)\n  i = s32[] parameter(1)\n  ROOT s = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}")
    clamped = ("  x = f32[16] parameter(0)\n  i = s32[] parameter(1)\n  lo = s32[] constant(0)\n  hi = s32[] constant(13)\n"
               "  c = s32[] clamp(lo, i, hi)\n  ROOT s = f32[4] dynamic-slice(x, c), dynamic_slice_sizes={4}")
    sound("an index that is clamped where it would be", [sliced, clamped])

    # Nothing that cannot be computed is called good or bad.
    foreign = NORM.replace("rsqrt(safe)", 'custom-call(safe), custom_call_target="nobody"')
    j, code = bisect([NORM, foreign])
    expect("unknown", code == 2 and not j["found"] and j["inside"]["without_value"] > 0, j)
    j, code = bisect([foreign, foreign.replace("subtract(x, mb)", "add(x, mb)")])
    expect("seen before what cannot be computed", code in (1, 2), j["verdict"])
    keys = list(bisect([NORM, NORM])[0])
    expect("the same keys", keys == list(bisect([NORM, later])[0]) == list(j), keys)
    print("inside_test:", "FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
