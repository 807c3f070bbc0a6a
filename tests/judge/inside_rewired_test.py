"""bisect inside: instructions that read another value than they did, where what reads them cancels it or these inputs do
not tell.

inside_rewired_test.py HLO_REPLAY SOURCE_FOLDER
"""
import re
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


def folded():
    """A bound that a pass folds, and no index of these inputs reaches."""
    clamped = """  x = f32[16] parameter(0)
  i = s32[4] parameter(1)
  likewise = s32[] constant(15)
  ends = s32[1] constant({15})
  last = s32[] reshape(ends)
  bound = s32[4] broadcast(last), dimensions={}
  zero = s32[] constant(0)
  zeros = s32[4] broadcast(zero), dimensions={}
  j = s32[4] clamp(zeros, i, bound)
  g = f32[4] gather(x, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  ROOT r = (s32[], f32[4]) tuple(likewise, g)"""
    right = clamped.replace("  ends = s32[1] constant({15})\n  last = s32[] reshape(ends)\n", "  c = s32[] constant(15)\n").replace("broadcast(last)", "broadcast(c)")
    sound("a bound folded", [clamped, right])
    named("a bound folded to more", [clamped, right.replace("c = s32[] constant(15)", "c = s32[] constant(17)")], "c")


def copies():
    """What only hands a value on, and another one than it did."""
    carried = """body {
  s = (s32[], f32[8]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(k, one)
  w = f32[8] sine(v)
  ROOT t = (s32[], f32[8]) tuple(next, w)
}

cond {
  s = (s32[], f32[8]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT l = pred[] compare(k, three), direction=LT
}

ENTRY e {
  x = f32[2,4] parameter(0)
  zero = s32[] constant(0)
  a = f32[2,4] tanh(x)
  b = f32[2,4] exponential(a)
  row = f32[8] reshape(b)
  s = (s32[], f32[8]) tuple(zero, row)
  l = (s32[], f32[8]) while(s), condition=cond, body=body
  v = f32[8] get-tuple-element(l), index=1
  c = f32[2,4] cosine(b)
  ROOT r = (f32[8], f32[2,4]) tuple(v, c)
}
"""
    named("a reshape that a loop begins with", [carried, carried.replace("row = f32[8] reshape(b)", "row = f32[8] reshape(a)")], "row")
    read = """  x = f32[2,4] parameter(0)
  a = f32[2,4] tanh(x)
  b = f32[2,4] exponential(a)
  c = f32[2,4] copy(b)
  d = f32[4,2] transpose(c), dimensions={1,0}
  ROOT r = (f32[4,2], f32[2,4]) tuple(d, b)"""
    named("a copy of another value", [read, read.replace("copy(b)", "copy(a)")], "c")
    # A pass may read a value in another place, where its reader undoes that.
    sound("a copy of another value, and its reader changes with it", [read, read.replace("copy(b)", "copy(a)").replace("  d =", "  b.1 = f32[2,4] exponential(c)\n  d =").replace("transpose(c)", "transpose(b.1)")])


def new_names():
    """No name is left of the stage before: by what stands beside what is read, which nothing reads any more."""
    inner = """  a = s32[4] add(p, p)
  n = pred[4] compare(p, a), direction=LT
  b = s32[4] select(n, a, p)
  row = s32[4,1] reshape(b)
  low = s32[4,1] constant({{0},{1},{0},{2}})
  ge = pred[4,1] compare(row, low), direction=GE
  g = f32[4] gather(t, row), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  s = f32[4,1] select(ge, first, second)
"""
    body = inner.replace("first", "u").replace("second", "w") + "  ROOT r = (f32[4], f32[4,1]) tuple(g, s)\n"
    before = "inner {\n  p = s32[4] parameter(0)\n  t = f32[16] parameter(1)\n  u = f32[4,1] parameter(2)\n  w = f32[4,1] parameter(3)\n" + body + "}\n\n" + """ENTRY e {
  k = s32[4] parameter(0)
  t = f32[16] parameter(1)
  u = f32[4,1] parameter(2)
  w = f32[4,1] parameter(3)
  ROOT c = (f32[4], f32[4,1]) call(k, t, u, w), to_apply=inner
}
"""
    after = "ENTRY e {\n  k = s32[4] parameter(0)\n  t = f32[16] parameter(1)\n  u = f32[4,1] parameter(2)\n  w = f32[4,1] parameter(3)\n"
    after += re.sub(r"(?<![\w\[=])(a|n|b|row|low|ge|g|s)(?=[ ,)])", r"\1.0", body.replace("(p, ", "(k, ").replace("p)", "k)")) + "}\n"
    sound("new names alone", [before, after])
    named("a reshape of another value under new names", [before, after.replace("reshape(b.0)", "reshape(a.0)")], "row.0")


def between():
    """What is wired anew is the nearest that reads what others read, too."""
    parts = """  x = f32[2,12] parameter(0)
  all = f32[2,12] tanh(x)
  one.1 = f32[2,4] slice(all), slice={[0:2], [0:4]}
  two.1 = f32[2,4] slice(all), slice={[0:2], [4:8]}
  one.r = f32[8] reshape(one.1)
  two.r = f32[8] reshape(two.1)
  sum = f32[8] add(one.r, two.r)
  more = f32[8] sine(two.r)
  ROOT r = (f32[8], f32[8]) tuple(sum, more)"""
    moved = """  x = f32[2,12] parameter(0)
  all.b = f32[2,12] tanh(x)
  one.6 = f32[2,4] slice(all.b), slice={[0:2], [0:4]}
  copy.34 = f32[2,4] copy(one.6)
  two.7 = f32[2,4] slice(all.b), slice={[0:2], [4:8]}
  copy.35 = f32[2,4] copy(two.7)
  one.r = f32[8] reshape(copy.34)
  two.r = f32[8] reshape(copy.35)
  sum = f32[8] add(one.r, two.r)
  more = f32[8] sine(two.r)
  ROOT r = (f32[8], f32[8]) tuple(sum, more)"""
    sound("slices under other names, copied", [parts, moved])
    named("a copy, new, of the other slice", [parts, moved.replace("copy(two.7)", "copy(one.6)")], "copy.35")
    read = """  x = f32[2,4] parameter(0)
  old = f32[4,2] transpose(x), dimensions={1,0}
  flat = f32[8] reshape(old)
  a = f32[4,2] tanh(old)
  s = f32[4,2] sine(a)
  ROOT r = (f32[4,2], f32[8]) tuple(s, flat)"""
    chain = read.replace("  s =", "  first = f32[8] reshape(a)\n  second = f32[4,2] reshape(first)\n  third = f32[8] reshape(second)\n  fourth = f32[4,2] reshape(third)\n  s =").replace("sine(a)", "sine(fourth)")
    sound("reshapes between", [read, chain])
    named("one of the reshapes between", [read, chain.replace("reshape(second)", "reshape(old)")], "third")
    held = """  x = f32[8] parameter(0)
  a = f32[8] tanh(x)
  t = (f32[8]) tuple(a)
  ROOT g = f32[8] get-tuple-element(t), index=0"""
    named("a tuple of another value", [held, held.replace("tuple(a)", "tuple(x)")], "t")


def given_twice():
    """What it gave is still given by another that gave it before, so that no name has moved on."""
    text = """  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  two = f32[] constant(2)
  twos = f32[4,4] broadcast(two), dimensions={}
  one = f32[4,4] multiply(x, twos)
  again = f32[4,4] multiply(x, twos)
  far = f32[] constant(1e+06)
  bound = f32[4,4] broadcast(far), dimensions={}
  least = f32[4,4] maximum(one, bound)
  s = f32[4,4] sine(y)
  ROOT r = (f32[4,4], f32[4,4], f32[4,4]) tuple(least, s, again)"""
    named("one of two that are the same", [text, text.replace("one = f32[4,4] multiply(x, twos)", "one = f32[4,4] multiply(x, y)")], "one")
    sound("two that are the same change names", [text, text.replace("least = f32[4,4] maximum(one,", "least = f32[4,4] maximum(again,")])


def beside_rewritten():
    """With what it was, all is as it was: what else the pass has rewritten does not make up for it."""
    text = """  x = f32[8,8] parameter(0)
  y = f32[8] parameter(1)
  i = s32[8,8] iota(), iota_dimension=0
  j = s32[8,8] iota(), iota_dimension=1
  keep = pred[8,8] compare(i, j), direction=GE
  zero = f32[] constant(0)
  zeros = f32[8,8] broadcast(zero), dimensions={}
  m = f32[8,8] select(keep, x, zeros)
  far = f32[] constant(1e+06)
  bound = f32[8,8] broadcast(far), dimensions={}
  p = f32[8,8] add(m, x)
  least = f32[8,8] maximum(p, bound)
  n = f32[8,8] multiply(m, zeros)
  t = f32[8,8] transpose(n), dimensions={1,0}
  s = f32[8] sine(y)
  ROOT r = (f32[8,8], f32[8,8], f32[8]) tuple(least, t, s)"""
    other = text.replace("  t = f32[8,8] transpose(n), dimensions={1,0}", "  turned = f32[8,8] transpose(m), dimensions={1,0}\n  u = f32[8,8] multiply(turned, zeros)").replace("tuple(least, t,", "tuple(least, u,")
    sound("a transpose moved", [text, other])
    named("an iota along another dimension beside it", [text, other.replace("iota_dimension=1", "iota_dimension=0")], "j")
    softmax = SOFTMAX.replace("f32[4,16]", "f32[16,16]").replace("row = f32[4]", "row = f32[16]").replace("total = f32[4]", "total = f32[16]").replace("f32[4,3]", "f32[16,3]")
    moved = softmax.replace("  below = f32[16,16] subtract(logits, rows)\n", "  flat = f32[256] reshape(logits)\n  line = f32[256] reshape(rows)\n  less = f32[256] subtract(flat, line)\n  below.1 = f32[16,16] reshape(less)\n")
    moved = moved.replace("exponential(below)", "exponential(below.1)")
    sound("a reshape moved in a softmax", [softmax, moved])
    named("a softmax's maximum along another dimension beside it", [softmax, moved.replace("dimensions={1}, to_apply=most", "dimensions={0}, to_apply=most")], "row")


def new_operations():
    """Under names that are all new an operation may have become a copy."""
    text = """  x = f32[4,8] parameter(0)
  s = f32[4,8] sine(x)
  t = f32[8,4] transpose(s), dimensions={1,0}
  c = f32[8,4] cosine(t)
  ROOT r = (f32[8,4], f32[8,4]) tuple(c, t)"""
    renamed = re.sub(r"\b([xstcr])(?= =|[,)])", r"\1.0", text)
    sound("new names", [text, renamed])
    named("a transpose that is a reshape", [text, renamed.replace("transpose(s.0), dimensions={1,0}", "reshape(s.0)")], "t.0")


def in_comparators():
    """Bits of what is compared, which are converted to be looked at."""
    text = """order {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  k = s32[] parameter(3)
  zero = f32[] constant(0)
  none = pred[] compare(b, zero), direction=EQ
  clean = f32[] select(none, zero, b)
  left = s32[] bitcast-convert(a)
  right = s32[] bitcast-convert(clean)
  ROOT less = pred[] compare(left, right), direction=LT
}

ENTRY e {
  x = f32[64] parameter(0)
  p = f32[64] exponential(x)
  i = s32[64] iota(), iota_dimension=0
  s = (f32[64], s32[64]) sort(p, i), dimensions={0}, to_apply=order
  ROOT r = s32[64] get-tuple-element(s), index=1
}
"""
    j = named("a comparator's bits of another value", [text, text.replace("bitcast-convert(clean)", "bitcast-convert(zero)")], "s")
    applied = ((j["first_value_that_differs"] or {}).get("applied") or {}).get("name")
    inside_test.expect("the instruction that reads them", applied == "right", str(applied))


def made_stable():
    """A comparator that is a part of the new one, once with its sides exchanged."""
    body = """  zero{0} = s32[] constant(0)
  below{0} = pred[] compare({1}, zero{0}), direction=LT
  most{0} = s32[] constant(2147483647)
  turned{0} = s32[] xor(most{0}, {1})
  key{0} = s32[] select(below{0}, turned{0}, {1})
"""
    side = lambda n, bits: body.replace("{0}", f".{n}").replace("{1}", bits)
    entry = """ENTRY e {
  x = f32[64] parameter(0)
  i = s32[64] iota(), iota_dimension=0
SORT
  ROOT r = s32[64] get-tuple-element(s), index=1
}
"""
    before = "order {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  i = s32[] parameter(2)\n  k = s32[] parameter(3)\n"
    before += "  l = s32[] bitcast-convert(a)\n  r = s32[] bitcast-convert(b)\n" + side(1, "l") + side(2, "r") + "  ROOT less = pred[] compare(key.1, key.2), direction=LT\n}\n\n"
    before += entry.replace("SORT", "  s = (f32[64], s32[64]) sort(x, i), dimensions={0}, is_stable=true, to_apply=order")
    after = "order.clone {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  i = s32[] parameter(2)\n  k = s32[] parameter(3)\n  m = s32[] parameter(4)\n  n = s32[] parameter(5)\n"
    after += "  pl = s32[] bitcast-convert(p)\n  pr = s32[] bitcast-convert(q)\n" + side(11, "pl") + side(12, "pr") + "  first = pred[] compare(key.11, key.12), direction=LT\n"
    after += "  ql = s32[] bitcast-convert(q)\n  qr = s32[] bitcast-convert(p)\n" + side(13, "ql") + side(14, "qr") + "  second = pred[] compare(key.13, key.14), direction=LT\n"
    after += "  tie = pred[] compare(first, second), direction=EQ\n  place = pred[] compare(m, n), direction=LT\n  ROOT one = pred[] select(tie, place, first)\n}\n\n"
    after += entry.replace("SORT", "  j = s32[64] iota(), iota_dimension=0\n  sorted = (f32[64], s32[64], s32[64]) sort(x, i, j), dimensions={0}, to_apply=order.clone\n  gx = f32[64] get-tuple-element(sorted), index=0\n"
                           "  gi = s32[64] get-tuple-element(sorted), index=1\n  s = (f32[64], s32[64]) tuple(gx, gi)")
    sound("a sort made stable", [before, after])
    for what, old, new, instruction in (("a direction", "below.14 = pred[] compare(qr, zero.14), direction=LT", "below.14 = pred[] compare(qr, zero.14), direction=GT", "below.14"),
                                        ("an operation", "turned.11 = s32[] xor", "turned.11 = s32[] and", "turned.11")):
        assert old in after, old
        j = named(f"a sort made stable with another {what}", [before, after.replace(old, new)], "sorted")
        applied = ((j["first_value_that_differs"] or {}).get("applied") or {}).get("name")
        inside_test.expect(f"{what} of its comparator", applied == instruction, str(applied))
    twice = "  x = f32[16,8] parameter(0)\n  i = s32[] parameter(1)\n  zero = s32[] constant(0)\n  ROOT d = f32[4,8] dynamic-slice(x, i, zero), dynamic_slice_sizes={4,8}"
    renamed = twice.replace("zero", "none").replace("ROOT d", "ROOT d.0")
    named("an index that is read twice", [twice, renamed.replace("(x, i, none)", "(x, none, none)")], "d.0")


def on_devices():
    """A loop in which devices wait for each other."""
    text = """body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1
  h = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(k, one)
  w = f32[8] sine(v)
  all = f32[8] all-reduce(w), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum
  row = f32[2,4] reshape(all)
  late = f32[2,4] add(row, row)
  flat = f32[8] reshape(late)
  ROOT t = (s32[], f32[8], f32[8]) tuple(next, flat, h)
}

cond {
  s = (s32[], f32[8], f32[8]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT l = pred[] compare(k, three), direction=LT
}

ENTRY e {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  a = f32[8] tanh(x)
  s = (s32[], f32[8], f32[8]) tuple(zero, a, a)
  l = (s32[], f32[8], f32[8]) while(s), condition=cond, body=body
  ROOT v = f32[8] get-tuple-element(l), index=1
}
"""
    header = ", num_partitions=2"
    sound("the same loop", [text, text.replace("add(row, row)", "add(row, row), metadata={op_name=\"late\"}")], header=header)
    named("a reshape in a loop on two devices", [text, text.replace("reshape(all)", "reshape(v)")], "row", header=header)
    named("an operation in a loop on two devices", [text, text.replace("sine(v)", "tanh(v)")], "w", header=header)
    named("what later trips on two devices tell", [text, text.replace("sine(v)", "sine(h)")], "w", header=header)
    named("a trip more on two devices", [text, text.replace("constant(3)", "constant(4)")], "three", header=header)


def main():
    cancelled(), other_constants(), folded(), copies(), new_names(), between(), given_twice(), beside_rewritten(), new_operations(), in_comparators(), made_stable(), on_devices()
    print("inside_rewired_test:", "FAILED" if inside_test.failed else "passed")
    return 1 if inside_test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
