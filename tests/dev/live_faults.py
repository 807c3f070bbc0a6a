#!/usr/bin/env python3
"""Faults that jaxlib 0.10.2 has, named by `bisect --passes`: tests/dev/live_faults.py TOOL [PYTHON]

Programs of our own for entries of ../shared/miscompiles.md that say they were seen on that release. Exit 1 where one is not found, or another pass is named."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

LOOP = """HloModule loop
cond {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(%s)
  ROOT c = pred[] compare(i, n), direction=%s
}
body {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  two = s32[] constant(2)
  next = s32[] add(i, two)
  a = f32[] get-tuple-element(s), index=1
  one = f32[] constant(1)
  more = f32[] add(a, one)
  ROOT r = (s32[], f32[]) tuple(next, more)
}
ENTRY e {
  start = s32[] constant(%s)
  x = f32[] parameter(0)
  t = (s32[], f32[]) tuple(start, x)
  w = (s32[], f32[]) while(t), condition=cond, body=body
  ROOT out = f32[] get-tuple-element(w), index=1
}
"""
# entry: (pass, by, inputs as (numpy's type, shape, values), module)
FAULTS = {
    "M001": ("algsimp", "value", [("<f4", (8,), range(8)), ("<i4", (), [7]), ("<i4", (), [0])], """HloModule m001
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  a = f32[5] dynamic-slice(x, i), dynamic_slice_sizes={5}
  ROOT b = f32[2] dynamic-slice(a, j), dynamic_slice_sizes={2}
}
"""),
    "M002": ("algsimp", "value", [("<f4", (8,), range(8)), ("<f4", (2,), [50, 60]), ("<i4", (), [6]), ("<i4", (), [1])], """HloModule m002
ENTRY e {
  x = f32[8] parameter(0)
  c = f32[2] parameter(1)
  p = s32[] parameter(2)
  q = s32[] parameter(3)
  w = f32[4] dynamic-slice(x, p), dynamic_slice_sizes={4}
  u = f32[4] dynamic-update-slice(w, c, q)
  ROOT r = f32[8] dynamic-update-slice(x, u, p)
}
"""),
    "M003": ("algsimp", "value", [("<f4", (1, 4), [7, 1, 2, 3])], """HloModule m003
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[1,4] parameter(0)
  z = f32[] constant(0)
  p = f32[1,3] pad(x, z), padding=0_0_1x-1_0
  ROOT r = f32[1,3] reduce-window(p, z), window={size=1x2 pad=0_0x1_0}, to_apply=sum
}
"""),
    "M004": ("algsimp", "crash", [], """HloModule m004
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[6,3] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[5,3] reduce-window(x, z), window={size=1x1 pad=-1_0x0_0}, to_apply=sum
}
"""),
    "M005": ("algsimp", "value", [("|i1", (3,), [12, 3, -12])], """HloModule m005
ENTRY e {
  x = s8[3] parameter(0)
  y = s8[3] multiply(x, x)
  ROOT r = s8[3] abs(y)
}
"""),
    "M011": ("algsimp", "value", [("<f4", (2,), [-1.5, 2]), ("<f4", (2,), [-1.5, 2])], """HloModule m011
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  p = f32[2] power(a, b)
  ROOT r = f32[2] log(p)
}
"""),
    "M030": ("simplify-while-loops", "value", [("<f4", (), [0])], LOOP % (1, "LT", -2)),
    "M032": ("simplify-while-loops", "value", [("<f4", (), [0])], LOOP % (4, "LE", 5)),
}


def npy(kind, shape, values):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    values = list(values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{ {'f4': 'f', 'i4': 'i', 'i1': 'b'}[kind[1:]] }", *values)


def main():
    tool = sys.argv[1]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    python = sys.argv[2] if len(sys.argv) > 2 else cache / "hlo-oracle-0.10.2" / "bin" / "python"
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, (guilty, by, inputs, text) in FAULTS.items():
            module, arrays = pathlib.Path(directory) / f"{name}.hlo", pathlib.Path(directory) / f"{name}.npz"
            module.write_text(text)
            with zipfile.ZipFile(arrays, "w") as archive:
                for k, array in enumerate(inputs):
                    archive.writestr(f"p{k}.npy", npy(*array))
            command = [tool, "bisect", module, f"--engine=installed:{python}", "--passes", "--time-limit=60", f"--by={by}", *([f"--inputs={arrays}"] if inputs else [])]
            done = subprocess.run(command, capture_output=True, text=True)
            said = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
            found = done.returncode == 1 and f"guilty: pass {guilty}" in done.stdout
            wrong += not found
            print(f"{name} {'found' if found else 'NOT FOUND'}: {said}", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
