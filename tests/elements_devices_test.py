#!/usr/bin/env python3
"""bisect --elements: stages for several devices, at chosen elements of chosen devices.  elements_devices_test.py HLO_REPLAY SOURCE_FOLDER"""
import pathlib
import tempfile

from command_line import bisect_stages, expect, finish, source, tool

HEADER = "HloModule m, replica_count=1, num_partitions=8\n\n"
ADD = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

"""
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


with tempfile.TemporaryDirectory() as folder:
    for case in (sums, gathers, permutes, loops):
        case(folder)
finish("elements_devices_test")
