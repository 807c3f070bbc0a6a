#!/usr/bin/env python3
"""bisect --elements: what is one value by what it is, however dear its elements are, and what is not.  elements_proven_test.py HLO_REPLAY SOURCE_FOLDER"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import SUM as ADD, bisect_stages, expect, finish


def bisect(tmp, name, before, after, made_by="algsimp", header="HloModule m\n\n"):
    stages = [("", ADD + before), (made_by, ADD + after), ("dce", ADD + after)]
    return bisect_stages(pathlib.Path(tmp) / name, stages, "--elements", header=header)


def told(tmp, before, after, edits, **more):
    code, j = bisect(tmp, "sound", before, after, **more)
    expect("sound", code == 0 and j["verdict"].startswith("no bad stage"), (code, j["verdict"]))
    expect("all of it is compared", j["elements"]["changed"] == j["elements"]["compared"] > 0, j["elements"])
    for number, (was, now, names) in enumerate(edits):
        expect(f"{was} is there once", after.count(was) == 1, after.count(was))
        code, j = bisect(tmp, f"edit{number}", before, after.replace(was, now), **more)
        at = (j.get("first_value_that_differs") or {}).get("name")
        if names:
            expect(f"{now} is named", code == 1 and at in names, (code, j["verdict"], at))
        else:
            expect(f"{now} is not called good", code != 0 and "no bad stage" not in j["verdict"], (code, j["verdict"]))


# Millions of updates of what a choice of one value is, a sum of negatives, a mean under a mask, a state of which all is
# replaced.
SIMPLE = """body {{
  s = (s32[], f32[65536,1024]{{1,0}}, f32[1,65536,1024]{{2,1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  v = f32[65536,1024]{{1,0}} get-tuple-element(s), index=1
  all = f32[1,65536,1024]{{2,1,0}} get-tuple-element(s), index=2
  row = f32[1,65536,1024]{{2,1,0}} reshape(v)
  nil = s32[] constant(0)
{update}  t = f32[65536,1024]{{1,0}} tanh(v)
  ROOT next = (s32[], f32[65536,1024]{{1,0}}, f32[1,65536,1024]{{2,1,0}}) tuple(n, t, put)
}}

condition {{
  s.1 = (s32[], f32[65536,1024]{{1,0}}, f32[1,65536,1024]{{2,1,0}}) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  trips = s32[] constant(1)
  ROOT less = pred[] compare(i.1, trips), direction=LT
}}

ENTRY e {{
  x = f32[65536,1024]{{1,0}} parameter(0)
  places = s32[3145728,2]{{1,0}} parameter(1)
  added = f32[3145728]{{0}} parameter(2)
  kept = pred[65536,1024]{{1,0}} parameter(3)
  d = f32[] parameter(4)
  zero.1 = s32[] constant(0)
  zero = f32[] constant(0)
  zeros = f32[65536,1024]{{1,0}} broadcast(zero), dimensions={{}}
{operand}  scattered = f32[65536,1024]{{1,0}} scatter({of}, scatter_dims_to_operand_dims={{0,1}}, to_apply=add
  e = f32[65536,1024]{{1,0}} exponential(x)
{sums}  ds = f32[65536,1024]{{1,0}} broadcast(d), dimensions={{}}
{masked}  logs = f32[65536]{{0}} tanh(r)
  empty = f32[1,65536,1024]{{2,1,0}} broadcast(zero), dimensions={{}}
  t.1 = (s32[], f32[65536,1024]{{1,0}}, f32[1,65536,1024]{{2,1,0}}) tuple(zero.1, x, empty)
  loop = (s32[], f32[65536,1024]{{1,0}}, f32[1,65536,1024]{{2,1,0}}) while(t.1), condition=condition, body=body
  last = f32[1,65536,1024]{{2,1,0}} get-tuple-element(loop), index=2
  both = f32[65536,1024]{{1,0}} multiply(m, e)
  ROOT out = (f32[65536,1024]{{1,0}}, f32[65536]{{0}}, f32[65536,1024]{{1,0}}, f32[1,65536,1024]{{2,1,0}}) tuple(scattered, logs, both, last)
}}
"""


def simple(tmp):
    before = SIMPLE.format(
        update="  put = f32[1,65536,1024]{2,1,0} dynamic-update-slice(all, row, i, nil, nil)\n",
        operand="  chosen = f32[65536,1024]{1,0} select(kept, zeros, zeros)\n", of="chosen, places, added), update_window_dims={}, inserted_window_dims={0,1}, index_vector_dim=1",
        sums="  neg = f32[65536,1024]{1,0} negate(e)\n  r = f32[65536]{0} reduce(neg, zero), dimensions={1}, to_apply=add\n",
        masked="  ones = f32[65536,1024]{1,0} convert(kept)\n  m = f32[65536,1024]{1,0} multiply(ds, ones)\n")
    after = SIMPLE.format(
        update="  put = f32[1,65536,1024]{2,1,0} reshape(row)\n", operand="  rows = s32[1024,3072,2]{2,1,0} reshape(places)\n  windows = f32[1024,3072,1,1]{3,2,1,0} reshape(added)\n",
        of="zeros, rows, windows), update_window_dims={3,2}, inserted_window_dims={}, index_vector_dim=2",
        sums="  r.1 = f32[65536]{0} reduce(e, zero), dimensions={1}, to_apply=add\n  r = f32[65536]{0} negate(r.1)\n",
        masked="  m = f32[65536,1024]{1,0} select(kept, ds, zeros)\n")
    told(tmp, before, after, (
        ("r = f32[65536]{0} negate(r.1)", "r = f32[65536]{0} abs(r.1)", ("r", "r.1")),
        ("reduce(e, zero), dimensions={1}", "reduce(x, zero), dimensions={1}", ("r", "r.1")),
        ("select(kept, ds, zeros)", "select(kept, zeros, ds)", ("m",)),
        ("put = f32[1,65536,1024]{2,1,0} reshape(row)", "put = f32[1,65536,1024]{2,1,0} negate(row)", None),
        ("scatter_dims_to_operand_dims={0,1}", "scatter_dims_to_operand_dims={1,0}", None),
        ("scatter(zeros, rows", "scatter(ds, rows", None)))

HEADER = "HloModule m, replica_count=1, num_partitions=8\n\n"
GREATER = """greater {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ai = s32[] parameter(2)
  bi = s32[] parameter(3)
  ROOT g = pred[] compare(a, b), direction=GT
}

"""
# The best of each row's experts, what they are given, and the gradient of what they do with it.
WHOLE = GREATER + """ENTRY e {
  x = f32[64,2048,64]{2,1,0} parameter(0), sharding={devices=[8,1,1]<=[8]}
  w = f32[64,8192]{1,0} parameter(1), sharding={devices=[8,1]<=[8]}
  h = f32[64,2048,1024]{2,1,0} parameter(2), sharding={devices=[8,1,1]<=[8]}
  flat = f32[131072,64]{1,0} reshape(x), sharding={devices=[8,1]<=[8]}
  top = (f32[131072,6]{1,0}, s32[131072,6]{1,0}) custom-call(flat), custom_call_target="TopK", called_computations={greater}, metadata={op_name="top"}
  best = f32[131072,6]{1,0} get-tuple-element(top), index=0
  which = s32[131072,6]{1,0} get-tuple-element(top), index=1
  bests = f32[64,2048,6]{2,1,0} reshape(best), sharding={devices=[8,1,1]<=[8]}
  experts = s32[64,2048,6,1]{3,2,1,0} reshape(which), sharding={devices=[8,1,1,1]<=[8]}
  batch = s32[64,2048,6,1]{3,2,1,0} iota(), iota_dimension=0, sharding={devices=[8,1,1,1]<=[8]}, metadata={op_name="batch"}
  row = s32[64,2048,6,1]{3,2,1,0} iota(), iota_dimension=1, sharding={devices=[8,1,1,1]<=[8]}, metadata={op_name="row"}
  places = s32[64,2048,6,3]{3,2,1,0} concatenate(batch, row, experts), dimensions={3}, sharding={devices=[8,1,1,1]<=[8]}, metadata={op_name="places"}
  zero = f32[] constant(0)
  zeros = f32[64,2048,64]{2,1,0} broadcast(zero), dimensions={}, sharding={devices=[8,1,1]<=[8]}
  given = f32[64,2048,64]{2,1,0} scatter(zeros, places, bests), update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={0,1,2}, index_vector_dim=3, to_apply=add, sharding={devices=[8,1,1]<=[8]}, metadata={op_name="given"}
  y = f32[64,2048,8192]{2,1,0} dot(given, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}, sharding={devices=[8,1,1]<=[8]}, metadata={op_name="y"}
  grad = f32[64,1024]{1,0} dot(given, h), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}, sharding={replicated}, metadata={op_name="grad"}
  z = f32[64,2048,8192]{2,1,0} tanh(y), sharding={devices=[8,1,1]<=[8]}, metadata={op_name="z"}
  ROOT out = (f32[64,2048,8192]{2,1,0}, f32[64,1024]{1,0}) tuple(z, grad), sharding={{devices=[8,1,1]<=[8]}, {replicated}}
}
"""
GROUPS = "replica_groups=[1,8]<=[8], use_global_device_ids=true"
DIVIDED = GREATER + """later {
  c = f32[] parameter(0)
  d = f32[] parameter(1)
  ci = s32[] parameter(2)
  di = s32[] parameter(3)
  more = pred[] compare(c, d), direction=GT
  alike = pred[] compare(c, d), direction=EQ
  first = pred[] compare(ci, di), direction=LT
  tie = pred[] and(alike, first)
  ROOT or = pred[] or(more, tie)
}

ENTRY e_spmd {
  x.1 = f32[8,2048,64]{2,1,0} parameter(0), sharding={devices=[8,1,1]<=[8]}
  w.1 = f32[8,8192]{1,0} parameter(1), sharding={devices=[8,1]<=[8]}
  h.1 = f32[8,2048,1024]{2,1,0} parameter(2), sharding={devices=[8,1,1]<=[8]}
  flat.1 = f32[16384,64]{1,0} reshape(x.1)
  top.1 = (f32[16384,6]{1,0}, s32[16384,6]{1,0}) custom-call(flat.1), custom_call_target="TopK", called_computations={greater}, sharding={{devices=[8,1]<=[8]}, {devices=[8,1]<=[8]}}, metadata={op_name="top"}
  best.1 = f32[16384,6]{1,0} get-tuple-element(top.1), index=0
  which.1 = s32[16384,6]{1,0} get-tuple-element(top.1), index=1
  id = u32[] partition-id()
  nothing = s32[8]{0} constant({0, 0, 0, 0, 0, 0, 0, 0})
  own.1 = s32[1]{0} dynamic-slice(nothing, id), dynamic_slice_sizes={1}
  own.2 = s32[] reshape(own.1)
  own.3 = s32[16384,6]{1,0} broadcast(own.2), dimensions={}
  which.2 = s32[16384,6]{1,0} add(which.1, own.3), sharding={devices=[8,1]<=[8]}
  sorted = (f32[16384,6]{1,0}, s32[16384,6]{1,0}) sort(best.1, which.2), dimensions={1}, is_stable=true, to_apply=later, sharding={{devices=[8,1]<=[8]}, {devices=[8,1]<=[8]}}, metadata={op_name="top"}
  best.2 = f32[16384,6]{1,0} get-tuple-element(sorted), index=0
  which.3 = s32[16384,6]{1,0} get-tuple-element(sorted), index=1
  bests.1 = f32[8,2048,6]{2,1,0} reshape(best.2), sharding={devices=[8,1,1]<=[8]}
  experts.1 = s32[8,2048,6,1]{3,2,1,0} reshape(which.3), sharding={devices=[8,1,1,1]<=[8]}
  starts = s32[8]{0} constant({0, 8, 16, 24, 32, 40, 48, 56})
  start.1 = s32[1]{0} dynamic-slice(starts, id), dynamic_slice_sizes={1}
  start = s32[] reshape(start.1)
  firsts = s32[8,2048,6,1]{3,2,1,0} broadcast(start), dimensions={}
  batch.1 = s32[8,2048,6,1]{3,2,1,0} iota(), iota_dimension=0
  batch.2 = s32[8,2048,6,1]{3,2,1,0} add(batch.1, firsts), sharding={devices=[8,1,1,1]<=[8]}, metadata={op_name="batch"}
  row.1 = s32[8,2048,6,1]{3,2,1,0} iota(), iota_dimension=1, sharding={devices=[8,1,1,1]<=[8]}, metadata={op_name="row"}
  places.1 = s32[8,2048,6,3]{3,2,1,0} concatenate(batch.2, row.1, experts.1), dimensions={3}, sharding={devices=[8,1,1,1]<=[8]}, metadata={op_name="places"}
  all = s32[64,2048,6,3]{3,2,1,0} all-gather(places.1), channel_id=1, GROUPS, dimensions={0}, sharding={replicated}
  no = s32[] constant(0)
  one = s32[1]{0} reshape(start)
  two = s32[1]{0} reshape(no)
  less.1 = s32[3]{0} concatenate(one, two, two), dimensions={0}
  less = s32[64,2048,6,3]{3,2,1,0} broadcast(less.1), dimensions={3}
  within = s32[64,2048,6,3]{3,2,1,0} subtract(all, less), sharding={replicated}
  updates = f32[64,2048,6]{2,1,0} all-gather(bests.1), channel_id=2, GROUPS, dimensions={0}, sharding={replicated}
  zero.1 = f32[] constant(0)
  zeros.1 = f32[8,2048,64]{2,1,0} broadcast(zero.1), dimensions={}, sharding={devices=[8,1,1]<=[8]}
  given.1 = f32[8,2048,64]{2,1,0} scatter(zeros.1, within, updates), update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={0,1,2}, index_vector_dim=3, to_apply=add, sharding={devices=[8,1,1]<=[8]}, metadata={op_name="given"}
  weights = f32[64,8192]{1,0} all-gather(w.1), channel_id=3, GROUPS, dimensions={0}, sharding={replicated}
  y.1 = f32[8,2048,8192]{2,1,0} dot(given.1, weights), lhs_contracting_dims={2}, rhs_contracting_dims={0}, sharding={devices=[8,1,1]<=[8]}, metadata={op_name="y"}
  part = f32[64,1024]{1,0} dot(given.1, h.1), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
  grad.1 = f32[64,1024]{1,0} all-reduce(part), channel_id=4, GROUPS, to_apply=add, sharding={replicated}, metadata={op_name="grad"}
  z.1 = f32[8,2048,8192]{2,1,0} tanh(y.1), sharding={devices=[8,1,1]<=[8]}, metadata={op_name="z"}
  ROOT out.1 = (f32[8,2048,8192]{2,1,0}, f32[64,1024]{1,0}) tuple(z.1, grad.1), sharding={{devices=[8,1,1]<=[8]}, {replicated}}
}
""".replace("GROUPS", GROUPS)


def divided(tmp):
    told(tmp, WHOLE, DIVIDED, (
        ("0, 8, 16, 24, 32, 40, 48, 56", "0, 8, 16, 24, 32, 48, 40, 56", None),
        ("concatenate(one, two, two)", "concatenate(two, one, two)", None),
        ("scatter(zeros.1, within, updates)", "scatter(zeros.1, all, updates)", None),
        ("all-gather(bests.1), channel_id=2, " + GROUPS, "all-gather(bests.1), channel_id=2, replica_groups={{1,0,2,3,4,5,6,7}}, use_global_device_ids=true", None),
        ("all-gather(w.1), channel_id=3, " + GROUPS, "all-gather(w.1), channel_id=3, replica_groups={{0,1,2,3,4,5,7,6}}, use_global_device_ids=true", None),
        ("all-reduce(part), channel_id=4, " + GROUPS, "all-reduce(part), channel_id=4, replica_groups=[2,4]<=[8], use_global_device_ids=true", None),
        ("dot(given.1, h.1), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}", "dot(zeros.1, h.1), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}", None),
        ("sort(best.1, which.2)", "sort(best.1, own.3)", None)), made_by="spmd-partitioning", header=HEADER)


with tempfile.TemporaryDirectory() as folder:
    for case in (simple, divided):
        (pathlib.Path(folder) / case.__name__).mkdir()
        case(pathlib.Path(folder) / case.__name__)
finish("elements_proven_test")
