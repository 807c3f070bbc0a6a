#!/usr/bin/env python3
"""PTX of kernels through ptxas, where the CUDA toolkit is installed; skipped (77) where it is not."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run

ptxas = shutil.which("ptxas") or next((p for p in ("/usr/local/cuda/bin/ptxas",) if os.access(p, os.X_OK)), None)
if not ptxas:
    print("ptx_test: skipped, there is no ptxas here")
    raise SystemExit(77)
kernels = 0
with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def assembled(file, name):
        global kernels
        text = file.read_text()
        entries = re.findall(r"\.entry (\w+)", text)
        kernels += len(entries)
        expect(f"{name}: kernels", entries, text[:200])
        done = subprocess.run([ptxas, "-arch=sm_90a", file, "-o", tmp / "out.cubin"], capture_output=True, text=True)
        expect(f"{name}: ptxas", done.returncode == 0, done.stderr[:500])

    for module in sorted((data / "kernels").glob("*.hlo")):
        code, text, err = run("convert", module, tmp / "k.ptx")
        expect(module.name, code == 0 and "warning" not in err, err)
        assembled(tmp / "k.ptx", module.name)
    for module in (data / "mobilenet_v1.hlo", data / "link/jax_run/0012.jit_train.hlo"):
        code, text, err = run(module, "-o", tmp / "out", "--formats=text,ll,ptx", "--force")
        expect(module.name, code == 0 and "no kernel" not in err, err)
        (ptx,) = (tmp / "out").glob("*.ptx")
        assembled(ptx, module.name)
        for end in ("ir-no-opt.ll", "ir-with-opt.ll", "ir-no-opt-noconst.ll", "ir-with-opt-noconst.ll"):
            (ll,) = (tmp / "out").glob(f"*.{end}")
            expect(end, "define ptx_kernel" in ll.read_text(), ll.name)
    # The machine's own code: ptxas' report, and what nvdisasm prints (a stand-in here: it is not in every toolkit).
    (tmp / "bin").mkdir()
    (tmp / "bin" / "nvdisasm").write_text("#!/bin/sh\ntest -s \"$2\" && echo \"disassembled $1\"\n")
    (tmp / "bin" / "nvdisasm").chmod(0o755)
    for path, has in ((f"{tmp}/bin:{os.environ['PATH']}", True), ("/usr/bin:/bin", bool(shutil.which("nvdisasm", path="/usr/bin:/bin:/usr/local/cuda/bin")))):
        code, text, err = run(data / "linear_regression.hlo", "-o", tmp / "sass", "--formats=text,sass", "--force", env={"PATH": path})
        expect("sass", code == 0 and ("no .sass" in err) == (not has), err)
        expect("ptxas' report", any("registers" in f.read_text() for f in (tmp / "sass").glob("*.ptxas.txt")), err)
        expect("sass's file", bool(list((tmp / "sass").glob("*.sass"))) == has, path)
    # A function that libdevice has, and a kernel that there is no code for, named.
    code, text, err = run("convert", "-", tmp / "x.ptx", stdin="HloModule m\nENTRY e {\n p = f32[64] parameter(0)\n ROOT r = f32[64] tan(p)\n}\n")
    expect("libdevice", code == 0, err)
    assembled(tmp / "x.ptx", "tan")
    code, text, err = run("convert", "-", tmp / "s4.ptx", stdin="HloModule m\nENTRY e {\n p = s4[64] parameter(0)\n ROOT r = s4[64] add(p, p)\n}\n")
    expect("integers of less than a byte", code == 0 and not err, err)
    assembled(tmp / "s4.ptx", "add of s4")
    code, text, err = run("convert", "-", tmp / "y.ll", stdin="HloModule m\nf {\n p = s32[64] parameter(0)\n q = u8[64,4] bitcast(p)\n ROOT r = u8[64,4] add(q, q)\n}\nENTRY e {\n p = s32[64] parameter(0)\n ROOT r = u8[64,4] fusion(p), kind=kLoop, calls=f\n}\n")
    expect("what has no code is named", code == 0 and "no kernel for q (bitcast): it changes the type" in err, err)
print(f"{kernels} kernels")
finish("ptx_test")
