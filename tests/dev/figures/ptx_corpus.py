#!/usr/bin/env python3
"""Every kernel of every module through ptxas: ptx_corpus.py TOOL WORK MODULE… replays each through xla-2019 and assembles
the PTX of its last stage; a folder among the modules is an XLA dump (xla.py compile), whose final module is taken as it
is. Prints a line a module, with what has no code by name, and the sums."""
import pathlib
import re
import shutil
import subprocess
import sys

tool, work = sys.argv[1], pathlib.Path(sys.argv[2])
ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
work.mkdir(exist_ok=True)
total = {"modules": 0, "kernels": 0, "without": 0, "refused": 0, "failed": 0}
for name in map(pathlib.Path, sys.argv[3:]):
    if name.is_dir():
        stages = sorted(name.glob("*after_optimizations.txt")) or sorted(name.glob("module_*.*[0-9].*.txt"))
        command = [tool, "convert", stages[-1], work / "k.ptx"] if stages else None
    else:
        shutil.rmtree(work / "out", ignore_errors=True)
        command = [tool, "replay", name, "-o", work / "out", "--pipeline=xla-2019", "--formats=ptx", "--force-replay"]
    if not command:
        print(f"{name.name}: no stages", flush=True)
        continue
    (work / "k.ptx").unlink(missing_ok=True)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    ptx = work / "k.ptx" if name.is_dir() else next((work / "out").glob("*.ptx"), None) if (work / "out").exists() else None
    if done.returncode or not ptx or not ptx.exists():
        total["refused"] += 1
        print(f"{name.name}: refused: {done.stderr.strip()[-150:]}", flush=True)
        continue
    kernels = len(re.findall(r"\.entry ", ptx.read_text()))
    without = re.findall(r"no kernel for (.*)", done.stderr)
    total["modules"] += 1
    total["kernels"] += kernels
    total["without"] += len(without)
    verdict = "none"
    if kernels:
        assembled = subprocess.run([ptxas, "-arch=sm_90a", "-O1", ptx, "-o", work / "k.cubin"], capture_output=True, text=True)
        verdict = "ptxas takes them" if assembled.returncode == 0 else "ptxas REFUSES: " + assembled.stderr[:300]
        total["failed"] += assembled.returncode != 0
    print(f"{name.name}: {kernels} kernels, {verdict}" + (f"; no code: {'; '.join(w[:90] for w in without[:4])}" + (f" and {len(without) - 4} more" if len(without) > 4 else "") if without else ""), flush=True)
print(total)
sys.exit(1 if total["failed"] else 0)
