"""What tests of bisect --elements share."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import bisect_stages


def bisect(tmp, name, stages, *more):
    return bisect_stages(pathlib.Path(tmp) / name, stages, *more)


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
