#!/usr/bin/env python3
"""bisect --elements: what is bad by which instruction, what is not called good, who is not accused.  elements_named_test.py HLO_REPLAY SOURCE_FOLDER"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import SUM, expect, finish
from elements_modules import LOOP, bisect


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
    # That it is true at the same elements there may be by the draws, which the seed decides.
    for most in ("0.9", "0.7"):
        first, other = (bare.format(n=n, which=which).replace("constant(0.9)", f"constant({most})") for n, which in ((1, "w"), (2, "u")))
        code, j = bisect(tmp, f"true by chance over {most}", [("", first), ("algsimp", other)], "--elements", "--seed=7")
        expect("what is seldom true is not called good", code != 0, (code, j["verdict"]))
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

    def shares(first):  # of so large sums
        return large_entry(f"""  z = f32[] constant(0)
  little = f32[] constant(1e-06)
  e = f32[65536,65536]{{1,0}} exponential(p)
  total = f32[65536]{{0}} reduce(e, {first}), dimensions={{1}}, to_apply=add
  sb = f32[65536,65536]{{1,0}} broadcast(total), dimensions={{0}}
  d = f32[65536,65536]{{1,0}} divide(e, sb)
  ROOT r = (f32[65536,65536]{{1,0}}, f32[]) tuple(d, little)
""")

    def filled(op, fill):  # beside what a mask fills in all else is small
        return large_entry(f"""  keep = pred[65536,65536]{{1,0}} parameter(1)
  fill = f32[] constant({fill})
  low = f32[65536,65536]{{1,0}} broadcast(fill), dimensions={{}}
  scores = f32[65536,65536]{{1,0}} {op}(p, p)
  ROOT masked = f32[65536,65536]{{1,0}} select(keep, scores, low)
""")

    def below(dimension):  # what a softmax is less by cancels out
        rows, big = "f32[262144,128]{1,0}", "f32[262144,128,128]{2,1,0}"
        return large_entry(f"""  z = f32[] constant(0)
  low = f32[] constant(-inf)
  q = {big} reshape(p)
  x = {big} tanh(q)
  most = {rows} reduce(x, low), dimensions={{{dimension}}}, to_apply=max
  mb = {big} broadcast(most), dimensions={{0,1}}
  d = {big} subtract(x, mb)
  e = {big} exponential(d)
  total = {rows} reduce(e, z), dimensions={{2}}, to_apply=add
  sb = {big} broadcast(total), dimensions={{0,1}}
  ROOT r = {big} divide(e, sb)
""", SUM + SUM.replace("add {", "max {").replace(" add(a", " maximum(a"))

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
            ("a large sum that begins with a little", shares("z"), shares("little"), "total"),
            ("a softmax's largest along another dimension", below(2), below(1), "most"),
            ("what a mask leaves", filled("add", "-2.38e+38"), filled("multiply", "-2.38e+38"), "scores"),
            ("what a mask of a thousand millions leaves", filled("add", "-1e+09"), filled("multiply", "-1e+09"), "scores"),
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
            ("a sum that begins with two, its terms and itself renamed", [begins("q", "z"), begins("q.1", "z"), begins("q.1", "two").replace("  r =", "  r.1 =").replace("tuple(r,", "tuple(r.1,")], "r.1"),
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


# A value that a mask of positions leaves on a diagonal, a band, a few rows: hardly one of the elements that are looked at is there.
PLACES = """ENTRY e {{
  p = f32[65536,65536]{{1,0}} parameter(0)
  x = f32[65536,65536]{{1,0}} parameter(1)
  i = s32[65536,65536]{{1,0}} iota(), iota_dimension=0
  j = s32[65536,65536]{{1,0}} iota(), iota_dimension=1
  k = s32[] constant(12345)
  ks = s32[65536,65536]{{1,0}} broadcast(k), dimensions={{}}
  z = f32[] constant(0)
  zs = f32[65536,65536]{{1,0}} broadcast(z), dimensions={{}}
  {mask}
  s = f32[65536,65536]{{1,0}} select(m, x, zs)
  {root}
}}
"""


def places(tmp):
    big, line = "f32[65536,65536]{1,0}", "pred[65536,65536]{1,0}"
    masks = (("a diagonal", f"m = {line} compare(i, j), direction=EQ"),
        ("another diagonal", f"o = s32[65536,65536]{{1,0}} add(i, ks)\n  m = {line} compare(o, j), direction=EQ"),
        ("a row", f"m = {line} compare(i, ks), direction=EQ"),
        ("what is not beside the diagonal", f"d = s32[65536,65536]{{1,0}} subtract(i, j)\n  a = s32[65536,65536]{{1,0}} abs(d)\n  one = s32[] constant(1)\n  ones = s32[65536,65536]{{1,0}} broadcast(one), dimensions={{}}\n  m = {line} compare(a, ones), direction=LT"),
        ("a row of floats", f"f = {big} convert(i)\n  g = {big} convert(ks)\n  m = {line} compare(f, g), direction=EQ"),
        ("a diagonal, flat", "fi = s32[4294967296]{0} bitcast(i)\n  fj = s32[4294967296]{0} bitcast(j)\n  fm = pred[4294967296]{0} compare(fi, fj), direction=EQ\n  m = pred[65536,65536]{1,0} bitcast(fm)"))
    for name, mask in masks:
        first = PLACES.format(mask=mask, root=f"ROOT r = {big} add(p, s)")
        code, j = bisect(tmp, name, [("", first), ("dce", first), ("algsimp", PLACES.format(mask=mask, root=f"ROOT r = {big} subtract(p, s)"))], "--elements")
        expect(f"{name}: bad", code == 1 and (j["first_value_that_differs"] or {}).get("name") == "r", (code, j["verdict"], j["unknown"]))
        code, j = bisect(tmp, f"{name}, inside", [("", first), ("algsimp", PLACES.format(mask=mask, root=f"px = {big} add(p, x)\n  ROOT r = {big} select(m, px, p)"))], "--elements")
        expect(f"{name}: the sum within the choice", code == 0, (code, j["verdict"], j["unknown"]))


def unseen(tmp):
    """What differs at no element that is looked at, whatever else changed in the stage."""
    big, line = "f32[65536,65536]{1,0}", "pred[65536,65536]{1,0}"

    def entry(direction, rest):
        return large_entry(f"""  q = {big} parameter(1)
  z = f32[] constant(0)
  zs = {big} broadcast(z), dimensions={{}}
  m = {line} compare(p, q), direction={direction}
  {rest}
""")
    times = f"n = {big} convert(m)\n  w = {big} multiply(n, q)\n  ROOT r = f32[65536]{{0}} reduce(w, z), dimensions={{1}}, to_apply=add"
    chosen = f"w.1 = {big} select(m, q, zs)\n  ROOT r = f32[65536]{{0}} reduce(w.1, z), dimensions={{1}}, to_apply=add"
    inverted, other_side = f"n = {line} not(m)\n  ROOT r = {big} select(n, zs, q)", f"ROOT r = {big} select(m, q, zs)"
    for name, before, after in (("whether equal ones count", times, chosen), ("whether equal ones count, inverted", inverted, other_side)):
        code, j = bisect(tmp, f"{name}, bad", [("", entry("LT", before)), ("algsimp", entry("LE", after))], "--elements")
        expect(f"{name}: bad", code == 1 and (j["first_value_that_differs"] or {}).get("name") == "m", (code, j["verdict"], j["unknown"]))
        code, j = bisect(tmp, f"{name}, sound", [("", entry("LT", before)), ("algsimp", entry("LT", after))], "--elements")
        expect(f"{name}: the same comparison", code == 0, (code, j["verdict"], j["unknown"]))

    def least(number, rest):  # of what is never so small
        return large_entry(f"""  e = {big} exponential(p)
  c = f32[] constant({number})
  cs = {big} broadcast(c), dimensions={{}}
  m = {big} maximum(e, cs)
  {rest}
""")
    double, twice = f"ROOT r = {big} add(m, m)", f"t = f32[] constant(2)\n  ts = {big} broadcast(t), dimensions={{}}\n  ROOT r.1 = {big} multiply(m, ts)"
    code, j = bisect(tmp, "a least number", [("", least("1e-30", double)), ("algsimp", least("2e-30", twice))], "--elements")
    expect("another least number is not called good", code != 0, (code, j["verdict"], j["unknown"]))
    code, j = bisect(tmp, "a least number, sound", [("", least("1e-30", double)), ("algsimp", least("1e-30", twice))], "--elements")
    expect("the same least number", code == 0, (code, j["verdict"], j["unknown"]))


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
    big = "f32[65536,65536]{1,0}"  # beside values of one, at every element; and a literal, rounded
    def sum_of(number, other):
        return large_entry(f"""  q = {big} parameter(1)
  k = f32[] constant({number})
  ks = {big} broadcast(k), dimensions={{}}
  c = f32[] constant({other})
  cs = {big} broadcast(c), dimensions={{}}
  x = {big} multiply(p, ks)
  y = {big} multiply(q, cs)
  e = {big} exponential(y)
  a.{1 if number else 0} = {big} add(e, x)
  ROOT r = {big} multiply(a.{1 if number else 0}, e)
""")
    code, j = bisect(tmp, "small terms", [("", sum_of("1e-7", "0.1")), ("algsimp", sum_of("0", "0.1"))], "--elements")
    expect("a small term left out is not called good", code != 0, (code, j["verdict"]))
    third = large_entry(f"""  c = f32[] constant(3)
  cs = {big} broadcast(c), dimensions={{}}
  d = {big} divide(p, cs)
  e = {big} exponential(d)
  ROOT r = {big} multiply(e, p)
""")
    code, j = bisect(tmp, "rounded", [("", third), ("algsimp", third.replace("constant(3)", "constant(0.333333343)").replace("divide", "multiply"))], "--elements")
    expect("the reciprocal of a literal, rounded", code == 0, (code, j["verdict"], j["unknown"]))


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


with tempfile.TemporaryDirectory() as tmp:
    certain(tmp)
    alone(tmp)
    not_accused(tmp)
    rare(tmp)
    places(tmp)
    unseen(tmp)
    folded(tmp)
    small(tmp)
    weak(tmp)
    taken_back(tmp)
finish("elements_named_test")
