#!/usr/bin/env python3
"""bisect --elements: stages for several devices, at chosen elements of chosen devices.  elements_devices_test.py HLO_REPLAY SOURCE_FOLDER"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import SUM as ADD, bisect_stages, expect, finish, source, tool

HEADER = "HloModule m, replica_count=1, num_partitions=8\n\n"
ALL = "replica_groups=[1,8]<=[8], use_global_device_ids=true"
PAIRS = "replica_groups=[4,2]<=[8], use_global_device_ids=true"


def bisect(tmp, name, before, after, made_by="algsimp"):
    stages = [("", ADD + "ENTRY e {\n" + before + "\n}\n"), (made_by, ADD + "ENTRY e {\n" + after + "\n}\n")]
    return bisect_stages(pathlib.Path(tmp) / name, stages, "--elements", header=HEADER)


def sound(tmp, name, before, after):
    code, j = bisect(tmp, name, before, after)
    expect(name, code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))


def bad(tmp, name, before, after, instruction):
    code, j = bisect(tmp, name, before, after)
    told = j.get("first_value_that_differs") or {}
    expect(name, code == 1 and told.get("name") == instruction, (code, j["verdict"], told, j.get("why")))


# Two products of 8 GiB a device, taken together by all devices, of which each keeps its own columns.
TAKEN = """  x = f32[65536,2048]{1,0} parameter(0)
  w = f32[2048,32768]{1,0} parameter(1)
  v = f32[2048,32768]{1,0} parameter(2)
  y = f32[65536,32768]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[65536,32768]{1,0} dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
OWN = """  id = u32[] partition-id()
  table = s32[8]{0} constant({0, 4096, 8192, 12288, 16384, 20480, 24576, 28672})
  one = s32[1]{0} dynamic-slice(table, id), dynamic_slice_sizes={1}
  column = s32[] reshape(one)
  zero = s32[] constant(0)
"""
SUMS = TAKEN + f"""  sy = f32[65536,32768]{{1,0}} all-reduce(y), channel_id=1, {ALL}, to_apply=add
  sz = f32[65536,32768]{{1,0}} all-reduce(z), channel_id=2, {ALL}, to_apply=add
  sum = f32[65536,32768]{{1,0}} add(sy, sz)
""" + OWN + """  ROOT out = f32[65536,4096]{1,0} dynamic-slice(sum, zero, column), dynamic_slice_sizes={65536,4096}"""


def sums(tmp):
    scattered = TAKEN + "  sum = f32[65536,32768]{1,0} add(y, z)\n"
    by = "channel_id=3, {groups}, use_global_device_ids=true, dimensions={{{dim}}}, to_apply=add"
    scatter = "  ROOT out = f32[65536,4096]{1,0} reduce-scatter(sum), "
    right = by.format(groups="replica_groups=[1,8]<=[8]", dim=1)
    sound(tmp, "reduce-scatter", SUMS, scattered + scatter + right)
    bad(tmp, "another order of devices", SUMS, scattered + scatter + right.replace("[1,8]<=[8]", "{{1,0,2,3,4,5,6,7}}"), "out")
    bad(tmp, "one of them alone", SUMS, TAKEN + scatter.replace("sum", "y") + right, "out")
    # From a sum that lies in another order, and is another one.
    turned = TAKEN.replace("y = f32[65536,32768]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "yt = f32[32768,65536]{1,0} dot(w, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}\n  y = f32[65536,32768]{1,0} transpose(yt), dimensions={1,0}")
    add, less = ("  sum = f32[65536,32768]{1,0} " + op for op in ("add(y, z)\n", "subtract(y, z)\n"))
    sound(tmp, "a sum that lies in another order", TAKEN + add + scatter + right, turned + add + scatter + right)
    bad(tmp, "another sum that lies in another order", TAKEN + add + scatter + right, turned + less + scatter + right, "sum")
    first, other = (part + scatter.replace("sum", "y") + right for part in (TAKEN, turned.replace("dot(w, x)", "dot(v, x)")))
    bad(tmp, "another product that lies in another order", first, other, "y")
    # The sum that a reduce-scatter is made of is no array of its result's dimensions.
    sine, tanh = ("  p = f32[32768,65536]{1,0} parameter(0)\n  w = f32[32768,65536]{1,0} {op}(p)\n  y = f32[65536,32768]{1,0} transpose(w), dimensions={1,0}\n".replace("{op}", op)
                  + scatter.replace("sum", "y").replace("65536,4096", "65536,16384") + right.replace("[1,8]<=[8]", "[4,2]<=[8]") for op in ("sine", "tanh"))
    bad(tmp, "another operation in front of a transpose", sine, tanh, "w")
    # The last device's columns alone are others.
    bad(tmp, "the last device", SUMS, SUMS.replace("28672", "28160"), "table")
    # As calls that run beside the rest, of both arrays at once.
    both = TAKEN + f"""  started = (f32[65536,32768]{{1,0}}, f32[65536,32768]{{1,0}}) all-reduce-start(y, z), channel_id=7, {ALL}, to_apply=add
  done = (f32[65536,32768]{{1,0}}, f32[65536,32768]{{1,0}}) all-reduce-done(started)
  sy = f32[65536,32768]{{1,0}} get-tuple-element(done), index=0
  sz = f32[65536,32768]{{1,0}} get-tuple-element(done), index=1
""" + SUMS[SUMS.index("  sum ="):]
    sound(tmp, "both at once", SUMS, both)
    code, j = bisect(tmp, "the same one twice", SUMS, both.replace("index=1", "index=0"))
    expect("the same one twice is not called good", code != 0, (code, j["verdict"]))


GATHER = """  p = bf16[8,65536,1024]{2,1,0} parameter(0)
"""


def gathers(tmp):
    whole = GATHER + f"  all = bf16[64,65536,1024]{{2,1,0}} all-gather(p), channel_id=1, {ALL}, dimensions={{{{0}}}}\n"
    before = whole.replace("{{0}}", "{0}") + "  ROOT out = bf16[65536,64,1024]{2,1,0} transpose(all), dimensions={1,0,2}"
    turned = GATHER + "  t = bf16[65536,8,1024]{2,1,0} transpose(p), dimensions={1,0,2}\n"
    gather = "  ROOT out = bf16[65536,64,1024]{2,1,0} all-gather(t), channel_id=2, " + ALL + ", dimensions={1}"
    sound(tmp, "another dimension first", before, turned + gather)
    bad(tmp, "in another order", before, turned + gather.replace("[1,8]<=[8]", "[1,8]<=[2,4]T(1,0)"), "out")
    # Pairs of neighbours hand theirs on to the pairs.
    pairs = GATHER + f"  two = bf16[16,65536,1024]{{2,1,0}} all-gather(p), channel_id=3, {PAIRS}, dimensions={{0}}\n"
    rest = "  all = bf16[64,65536,1024]{2,1,0} all-gather(two), channel_id=4, replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true, dimensions={0}\n"
    last = "  ROOT out = bf16[65536,64,1024]{2,1,0} transpose(all), dimensions={1,0,2}"
    sound(tmp, "in two steps", before, pairs + rest + last)
    bad(tmp, "two steps of one kind", before, pairs + rest.replace("[2,4]<=[4,2]T(1,0)", "[2,4]<=[8]") + last, "all")


def permutes(tmp):
    pairs = "{{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}"
    start = "  p = f32[65536,65536]{1,0} parameter(0)\n  q = f32[65536,65536]{1,0} tanh(p)\n"
    before = start + f"  ROOT out = f32[65536,65536]{{1,0}} collective-permute(q), channel_id=1, source_target_pairs={pairs}"
    after = f"  p = f32[65536,65536]{{1,0}} parameter(0)\n  c = f32[65536,65536]{{1,0}} collective-permute(p), channel_id=1, source_target_pairs={pairs}\n  ROOT out = f32[65536,65536]{{1,0}} tanh(c)"
    sound(tmp, "moved before", before, after)
    bad(tmp, "one pair is missing", before, after.replace("{7,0}", "{6,0}").replace("{6,7},", ""), "out")
    # What nobody sends is 0, and exp(0) is none.
    less = before.replace(",{7,0}", "").replace("tanh", "exponential")
    code, j = bisect(tmp, "nobody sends", less, after.replace(",{7,0}", "").replace("tanh", "exponential"))
    expect("where nobody sends", code == 1, (code, j["verdict"]))


LOOP = """body {{
  s = (s32[], f32[8192,65536]{{1,0}}, f32[32,1024,65536]{{2,1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8192,65536]{{1,0}} get-tuple-element(s), index=1
  w = f32[32,1024,65536]{{2,1,0}} get-tuple-element(s), index=2
  zero = s32[] constant(0)
  {layer}
  u = f32[8192,65536]{{1,0}} {op}(v, l)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT r = (s32[], f32[8192,65536]{{1,0}}, f32[32,1024,65536]{{2,1,0}}) tuple(n, u, w)
}}

condition {{
  s = (s32[], f32[8192,65536]{{1,0}}, f32[32,1024,65536]{{2,1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(32)
  ROOT p = pred[] compare(i, n), direction=LT
}}

ENTRY e {{
  v = f32[8192,65536]{{1,0}} parameter(0)
  w = f32[32,1024,65536]{{2,1,0}} parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8192,65536]{{1,0}}, f32[32,1024,65536]{{2,1,0}}) tuple(zero, v, w)
  while = (s32[], f32[8192,65536]{{1,0}}, f32[32,1024,65536]{{2,1,0}}) while(t), condition=condition, body=body
  ROOT g = f32[8192,65536]{{1,0}} get-tuple-element(while), index=1
}}
"""


def loops(tmp):
    """The counter is one number on all devices, so that a layer may be gathered before it is chosen or behind that."""
    slice_first = ("d = f32[1,1024,65536]{2,1,0} dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,1024,65536}\n"
                   f"  a = f32[1,8192,65536]{{2,1,0}} all-gather(d), channel_id=1, {ALL}, dimensions={{1}}\n"
                   "  l = f32[8192,65536]{1,0} reshape(a)")
    gather_first = (f"a = f32[32,8192,65536]{{2,1,0}} all-gather(w), channel_id=1, {ALL}, dimensions={{1}}\n"
                    "  d = f32[1,8192,65536]{2,1,0} dynamic-slice(a, i, zero, zero), dynamic_slice_sizes={1,8192,65536}\n"
                    "  l = f32[8192,65536]{1,0} reshape(d)")
    def asked(name, before, after):
        return bisect_stages(pathlib.Path(tmp) / name, [("", before), ("while-loop-all-gather", after)], "--elements", header=HEADER)
    code, j = asked("loop", LOOP.format(layer=slice_first, op="add"), LOOP.format(layer=gather_first, op="add"))
    expect("gathered before", code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))
    code, j = asked("loop of another", LOOP.format(layer=slice_first, op="add"), LOOP.format(layer=gather_first, op="subtract"))
    expect("another operation in the loop", code == 1 and j["first_value_that_differs"]["name"] == "u", (code, j["verdict"]))


# A layer of a model, over its whole arrays and as the partitioner divides them between eight devices: columns of the first
# matrix, rows of the second one, and rows of a table in which each device finds those that are its own.
WHOLE = """body {
  s = (s32[], f32[64,512]{1,0}, f32[32,512,2048]{2,1,0}, f32[32,2048,512]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[64,512]{1,0} get-tuple-element(s), index=1
  w = f32[32,512,2048]{2,1,0} get-tuple-element(s), index=2
  u = f32[32,2048,512]{2,1,0} get-tuple-element(s), index=3
  zero = s32[] constant(0)
  wi = f32[1,512,2048]{2,1,0} dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,512,2048}, metadata={op_name="wi"}
  wl = f32[512,2048]{1,0} reshape(wi)
  h = f32[64,2048]{1,0} dot(v, wl), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[1,8]<=[8]}, metadata={op_name="up"}
  t = f32[64,2048]{1,0} tanh(h), sharding={devices=[1,8]<=[8]}, metadata={op_name="tanh"}
  ui = f32[1,2048,512]{2,1,0} dynamic-slice(u, i, zero, zero), dynamic_slice_sizes={1,2048,512}, metadata={op_name="ui"}
  ul = f32[2048,512]{1,0} reshape(ui)
  d = f32[64,512]{1,0} dot(t, ul), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}, metadata={op_name="down"}
  n = f32[64,512]{1,0} add(v, d), sharding={replicated}, metadata={op_name="add"}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[64,512]{1,0}, f32[32,512,2048]{2,1,0}, f32[32,2048,512]{2,1,0}) tuple(j, n, w, u)
}

condition {
  s = (s32[], f32[64,512]{1,0}, f32[32,512,2048]{2,1,0}, f32[32,2048,512]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(32)
  ROOT p = pred[] compare(i, n), direction=LT
}

ENTRY e {
  tokens = s32[64]{0} parameter(0), sharding={replicated}
  table = f32[16384,512]{1,0} parameter(1), sharding={devices=[8,1]<=[8]}
  w = f32[32,512,2048]{2,1,0} parameter(2), sharding={devices=[1,1,8]<=[8]}
  u = f32[32,2048,512]{2,1,0} parameter(3), sharding={devices=[1,8,1]<=[8]}
  rows = s32[64,1]{1,0} reshape(tokens)
  v = f32[64,512]{1,0} gather(table, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,512}, sharding={replicated}, metadata={op_name="embed"}
  zero = s32[] constant(0)
  t = (s32[], f32[64,512]{1,0}, f32[32,512,2048]{2,1,0}, f32[32,2048,512]{2,1,0}) tuple(zero, v, w, u)
  l = (s32[], f32[64,512]{1,0}, f32[32,512,2048]{2,1,0}, f32[32,2048,512]{2,1,0}) while(t), condition=condition, body=body, sharding={{replicated}, {replicated}, {devices=[1,1,8]<=[8]}, {devices=[1,8,1]<=[8]}}
  g = f32[64,512]{1,0} get-tuple-element(l), index=1
  ROOT out = f32[64,512]{1,0} tanh(g), sharding={devices=[1,8]<=[8]}, metadata={op_name="out"}
}
"""
DIVIDED = ADD + """body_spmd {
  s = (s32[], f32[64,512]{1,0}, f32[32,512,256]{2,1,0}, f32[32,256,512]{2,1,0}) parameter(0)
  i.1 = s32[] get-tuple-element(s), index=0
  v.1 = f32[64,512]{1,0} get-tuple-element(s), index=1
  w.1 = f32[32,512,256]{2,1,0} get-tuple-element(s), index=2
  u.1 = f32[32,256,512]{2,1,0} get-tuple-element(s), index=3
  zero.1 = s32[] constant(0)
  wi.1 = f32[1,512,256]{2,1,0} dynamic-slice(w.1, i.1, zero.1, zero.1), dynamic_slice_sizes={1,512,256}, metadata={op_name="wi"}
  wl.1 = f32[512,256]{1,0} reshape(wi.1)
  h.1 = f32[64,256]{1,0} dot(v.1, wl.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[1,8]<=[8]}, metadata={op_name="up"}
  t.1 = f32[64,256]{1,0} tanh(h.1), sharding={devices=[1,8]<=[8]}, metadata={op_name="tanh"}
  ui.1 = f32[1,256,512]{2,1,0} dynamic-slice(u.1, i.1, zero.1, zero.1), dynamic_slice_sizes={1,256,512}, metadata={op_name="ui"}
  ul.1 = f32[256,512]{1,0} reshape(ui.1)
  d.1 = f32[64,512]{1,0} dot(t.1, ul.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="down"}
  sum = f32[64,512]{1,0} all-reduce(d.1), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=add, sharding={replicated}, metadata={op_name="down"}
  n.1 = f32[64,512]{1,0} add(v.1, sum), sharding={replicated}, metadata={op_name="add"}
  one.1 = s32[] constant(1)
  j.1 = s32[] add(i.1, one.1)
  ROOT r.1 = (s32[], f32[64,512]{1,0}, f32[32,512,256]{2,1,0}, f32[32,256,512]{2,1,0}) tuple(j.1, n.1, w.1, u.1)
}

condition_spmd {
  s.2 = (s32[], f32[64,512]{1,0}, f32[32,512,256]{2,1,0}, f32[32,256,512]{2,1,0}) parameter(0)
  i.2 = s32[] get-tuple-element(s.2), index=0
  n.2 = s32[] constant(32)
  ROOT p.2 = pred[] compare(i.2, n.2), direction=LT
}

ENTRY e_spmd {
  param = s32[64]{0} parameter(0), sharding={replicated}
  param.1 = f32[2048,512]{1,0} parameter(1), sharding={devices=[8,1]<=[8]}
  param.2 = f32[32,512,256]{2,1,0} parameter(2), sharding={devices=[1,1,8]<=[8]}
  param.3 = f32[32,256,512]{2,1,0} parameter(3), sharding={devices=[1,8,1]<=[8]}
  rows.1 = s32[64,1]{1,0} reshape(param)
  low = s32[] constant(0)
  lows = s32[64,1]{1,0} broadcast(low), dimensions={}
  high = s32[] constant(16383)
  highs = s32[64,1]{1,0} broadcast(high), dimensions={}
  within = s32[64,1]{1,0} clamp(lows, rows.1, highs), metadata={op_name="embed"}
  id = u32[] partition-id()
  starts = s32[8]{0} constant({0, 2048, 4096, 6144, 8192, 10240, 12288, 14336})
  first = s32[1]{0} dynamic-slice(starts, id), dynamic_slice_sizes={1}, metadata={op_name="embed"}
  start = s32[] reshape(first)
  firsts = s32[64,1]{1,0} broadcast(start), dimensions={}
  last = s32[] constant(2047)
  end = s32[] add(start, last)
  ends = s32[64,1]{1,0} broadcast(end), dimensions={}
  before = pred[64,1]{1,0} compare(within, firsts), direction=LT, metadata={op_name="embed"}
  behind = pred[64,1]{1,0} compare(within, ends), direction=GT, metadata={op_name="embed"}
  others = pred[64,1]{1,0} or(before, behind), metadata={op_name="embed"}
  flat = pred[64]{0} reshape(others)
  mask = pred[64,512]{1,0} broadcast(flat), dimensions={0}
  own = s32[64,1]{1,0} subtract(within, firsts), metadata={op_name="embed"}
  found = f32[64,512]{1,0} gather(param.1, own), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,512}, metadata={op_name="embed"}
  nothing = f32[] constant(0)
  zeros = f32[64,512]{1,0} broadcast(nothing), dimensions={}
  kept = f32[64,512]{1,0} select(mask, zeros, found), metadata={op_name="embed"}
  embedded = f32[64,512]{1,0} all-reduce(kept), channel_id=2, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=add, sharding={replicated}, metadata={op_name="embed"}
  zero.3 = s32[] constant(0)
  t.3 = (s32[], f32[64,512]{1,0}, f32[32,512,256]{2,1,0}, f32[32,256,512]{2,1,0}) tuple(zero.3, embedded, param.2, param.3)
  l.3 = (s32[], f32[64,512]{1,0}, f32[32,512,256]{2,1,0}, f32[32,256,512]{2,1,0}) while(t.3), condition=condition_spmd, body=body_spmd, sharding={{replicated}, {replicated}, {devices=[1,1,8]<=[8]}, {devices=[1,8,1]<=[8]}}
  g.3 = f32[64,512]{1,0} get-tuple-element(l.3), index=1
  places = s32[8]{0} constant({0, 64, 128, 192, 256, 320, 384, 448})
  place = s32[1]{0} dynamic-slice(places, id), dynamic_slice_sizes={1}
  column = s32[] reshape(place)
  part = f32[64,64]{1,0} dynamic-slice(g.3, zero.3, column), dynamic_slice_sizes={64,64}
  ROOT out.3 = f32[64,64]{1,0} tanh(part), sharding={devices=[1,8]<=[8]}, metadata={op_name="out"}
}
"""


def divided(tmp):
    def asked(name, after):
        return bisect_stages(pathlib.Path(tmp) / name, [("", WHOLE), ("spmd-partitioning", after), ("dce", after)], "--elements", header=HEADER)
    code, j = asked("divided", DIVIDED)
    expect("divided", code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))
    expect("all of it is compared", j["elements"]["changed"] == j["elements"]["compared"] > 20, j["elements"])
    for name, was, now in (("sums of four devices", "channel_id=1, replica_groups=[1,8]", "channel_id=1, replica_groups=[2,4]"),
                           ("no sum", "add(v.1, sum)", "add(v.1, d.1)"),
                           ("the end of a part", "last = s32[] constant(2047)", "last = s32[] constant(2046)"),
                           ("another device's rows", "6144, 8192", "8192, 6144"),
                           ("a part's column", "320, 384", "384, 320"),
                           ("one trip less", "n.2 = s32[] constant(32)", "n.2 = s32[] constant(31)")):
        expect(f"{name} is there", was in DIVIDED)
        code, j = asked(name, DIVIDED.replace(was, now))
        expect(f"{name} is not called good", code != 0 and "no bad stage" not in j["verdict"], (code, j["verdict"]))


with tempfile.TemporaryDirectory() as folder:
    for case in (sums, gathers, permutes, loops, divided):
        case(folder)
finish("elements_devices_test")
