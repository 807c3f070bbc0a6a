"""bisect inside: instructions that read another value than they did, where what reads them cancels it or these inputs do
not tell.

inside_rewired_test.py HLO_REPLAY SOURCE_FOLDER
"""
import sys

import inside_test
from inside_test import named, sound

MAXIMUM = "most {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT m = f32[] maximum(a, b)\n}\n\n"
# What is subtracted in a softmax cancels out: in exact numbers any row of numbers does.
SOFTMAX = MAXIMUM + """ENTRY e {
  x = f32[4,16] parameter(0)
  w = f32[16,3] parameter(1)
  eighth = f32[] constant(0.125)
  scale = f32[4,16] broadcast(eighth), dimensions={}
  logits = f32[4,16] multiply(x, scale)
  least = f32[] constant(-inf)
  row = f32[4] reduce(logits, least), dimensions={1}, to_apply=most
  rows = f32[4,16] broadcast(row), dimensions={0}
  below = f32[4,16] subtract(logits, rows)
  powers = f32[4,16] exponential(below)
  zero = f32[] constant(0)
  total = f32[4] reduce(powers, zero), dimensions={1}, to_apply=sum
  totals = f32[4,16] broadcast(total), dimensions={0}
  shares = f32[4,16] divide(powers, totals)
  ROOT r = f32[4,3] dot(shares, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def cancelled():
    for what, old, new, instruction in (
        ("a softmax's maximum of another array", "reduce(logits,", "reduce(x,", "row"),
        ("a softmax's maximum of a constant", "reduce(logits,", "reduce(scale,", "row"),
        ("a softmax without its maximum", "exponential(below)", "exponential(logits)", "powers"),
        ("a softmax less another array", "subtract(logits, rows)", "subtract(logits, scale)", "below"),
    ):
        named(what, [SOFTMAX, SOFTMAX.replace(old, new)], instruction)
    # Sums in another order, under the names that there were.
    terms = """  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  z = f32[8] parameter(2)
  one = f32[8] add(x, y)
  two = f32[8] add(one, z)
  ROOT s = f32[8] sine(two)"""
    sound("terms in another order", [terms, terms.replace("add(x, y)", "add(y, z)").replace("add(one, z)", "add(x, one)")])


def other_constants():
    """Of numbers that are larger than both the maximum is the same."""
    text = MAXIMUM + """ENTRY e {
  x = f32[4,16] parameter(0)
  nothing = f32[] constant(0)
  least = f32[] constant(-inf)
  powers = f32[4,16] exponential(x)
  most.1 = f32[4] reduce(powers, least), dimensions={1}, to_apply=most
  total = f32[4] reduce(powers, nothing), dimensions={1}, to_apply=sum
  low = f32[4] broadcast(least), dimensions={}
  bound = f32[4] maximum(total, low)
  ROOT r = (f32[4], f32[4]) tuple(most.1, bound)
}
"""
    named("a maximum that begins with another number", [text, text.replace("reduce(powers, least)", "reduce(powers, nothing)")], "most.1")
    positive = MAXIMUM + """ENTRY e {
  x = f32[4] parameter(0)
  nothing = f32[] constant(0)
  least = f32[] constant(-1)
  power = f32[] exponential(nothing)
  first = f32[] maximum(power, least)
  second = f32[] add(first, nothing)
  all = f32[4] broadcast(second), dimensions={}
  ROOT r = f32[4] multiply(x, all)
}
"""
    named("one of two scalars", [positive, positive.replace("maximum(power, least)", "maximum(power, nothing)")], "first")
    sound("the same number by another name", [positive.replace("constant(-1)", "constant(0)"), positive.replace("constant(-1)", "constant(0)").replace("maximum(power, least)", "maximum(power, nothing)")])


def main():
    cancelled(), other_constants()
    print("inside_rewired_test:", "FAILED" if inside_test.failed else "passed")
    return 1 if inside_test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
