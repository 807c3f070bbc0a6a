#!/usr/bin/env python3
"""The runnable corpus through `exec` and through XLA's CPU backend, on the same inputs:
tests/dev/bench_exec.py TOOL ORACLE_PYTHON CORPUS WORK_DIR [--seeds 1,2,3] [NAME…] writes a table of verdicts, worst errors and seconds."""
import argparse
import json
import math
import pathlib
import resource
import subprocess
import sys

NAMES = "u4_all_gather sharded_16 sharded_computation isolated_convolution large_constant while_with_known linx_frag_0100 linx_frag_0428 mha_block argsort dynamic_slice_loop thunk_coverage detr__infer__1gpu detr__infer__8gpu imagenette__infer resnet50__infer fp8_gemm_loop imagenette__train clip__train mobilenet_v2 resnet50__train".split()
p = argparse.ArgumentParser()
p.add_argument("tool"), p.add_argument("python"), p.add_argument("corpus"), p.add_argument("work"), p.add_argument("names", nargs="*")
p.add_argument("--seeds", default="1,2,3"), p.add_argument("--repeat", default="2")
a = p.parse_args()
oracle = pathlib.Path(__file__).resolve().parents[3] / "shared" / "oracle" / "xla.py"
pathlib.Path(a.work).mkdir(exist_ok=True)
ratios = []
print("| module | seeds equal | worst error | our seconds | XLA's | ratio |\n| --- | --- | --- | --- | --- | --- |", flush=True)
for name in a.names or NAMES:
    (file,) = pathlib.Path(a.corpus).glob(f"*{name}*")
    scheme = "positive" if "train" in name else "mixed"
    equal, worst, ours, theirs, note = [], 0.0, math.inf, math.inf, ""
    for seed in a.seeds.split(","):
        out = pathlib.Path(a.work) / f"{name}.{seed}.npz"
        reference = subprocess.run([a.python, oracle, "run", file, "--seed", seed, "--scheme", scheme, "--out", out, "--repeat", a.repeat, "--limit-gb", "12"], capture_output=True, text=True)
        if reference.returncode:
            note = reference.stderr.strip()[-80:]
            continue
        theirs = min(theirs, json.loads(reference.stdout)["run_s"])
        run = subprocess.run([a.tool, "exec", file, "--seed", seed, "--scheme", scheme, "--compare-with", out, "--json"], capture_output=True, text=True)
        out.unlink()
        if run.returncode == 2:
            note = run.stderr.strip()[:120]
            continue
        result = json.loads(run.stdout)
        ours = min(ours, result["run_s"])
        worst = max([worst] + [c.get("relative", 0) for c in result["comparison"]])
        if result["equal"]:
            equal.append(seed)
        else:
            note = result["verdict"][:120]
    if ours < math.inf and theirs < math.inf:
        ratios.append(max(ours, 1e-6) / max(theirs, 1e-6))
    print(f"| {file.name.replace('.hlo.txt', '')} | {', '.join(equal)} | {worst:.2g} | {ours:.4g} | {theirs:.4g} | {ratios[-1] if ratios else 0:.2f} | {note}", flush=True)
print(f"| geometric mean of {len(ratios)} | | | | | {math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1)):.2f} |")
print(f"peak memory of a child: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20:.1f} GiB", file=sys.stderr)
