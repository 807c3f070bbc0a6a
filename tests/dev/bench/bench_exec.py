#!/usr/bin/env python3
"""The runnable corpus through `exec` and through XLA's CPU backend, on the same inputs:
tests/dev/bench/bench_exec.py TOOL ORACLE_PYTHON CORPUS WORK_DIR [--seeds 1,2,3] [--backend host] [NAME…] writes a table of verdicts, worst errors and seconds."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import zipfile

NAMES = "u4_all_gather sharded_16 sharded_computation isolated_convolution large_constant while_with_known linx_frag_0100 linx_frag_0428 mha_block argsort dynamic_slice_loop thunk_coverage detr__infer__1gpu detr__infer__8gpu imagenette__infer resnet50__infer fp8_gemm_loop imagenette__train clip__train mobilenet_v2 resnet50__train".split()
p = argparse.ArgumentParser()
p.add_argument("tool"), p.add_argument("python"), p.add_argument("corpus"), p.add_argument("work"), p.add_argument("names", nargs="*")
p.add_argument("--seeds", default="1,2,3"), p.add_argument("--repeat", default="2"), p.add_argument("--backend", default="evaluator")
a = p.parse_args()
oracle = pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle" / "xla.py"
pathlib.Path(a.work).mkdir(exist_ok=True)
ratios, compiling = [], []


def measured(command):
    """Exit code, what it wrote, and its peak memory in GiB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return child.returncode, out.read(), err.read(), usage.ru_maxrss / 2**20


def drawn_outputs(file):
    """Outputs that are the seed of a run, which PJRT draws: numbers of the entry's results."""
    text = file.read_text()
    calls = set(re.findall(r"([\w.-]+) = u64\[\] custom-call\(\), custom_call_target=\"GetRngSeed\"", text))
    root = re.search(r"ROOT [^=]*=\s*\(.*?\)\s*tuple\((.*?)\)", text[text.rindex("ENTRY") :], re.S) if calls else None
    return [k for k, name in enumerate(re.findall(r"%?([\w.-]+)", root[1])) if name in calls] if root else []


print("| module | seeds equal | worst error | our seconds | XLA's | ratio | our GiB | XLA's |\n| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
for name in a.names or NAMES:
    (file,) = pathlib.Path(a.corpus).glob(f"*{name}*")
    scheme = "positive" if "train" in name else "mixed"
    equal, worst, ours, theirs, our_gib, their_gib, note = [], 0.0, math.inf, math.inf, 0.0, 0.0, ""
    for seed in a.seeds.split(","):
        out, own = (pathlib.Path(a.work) / f"{name}.{seed}.{who}.npz" for who in ("xla", "ours"))
        code, text, err, gib = measured([a.python, oracle, "run", file, "--seed", seed, "--scheme", scheme, "--out", out, "--repeat", a.repeat, "--limit-gb", "12"])
        if code:
            note = err.strip()[-80:]
            continue
        theirs, their_gib = min(theirs, json.loads(text)["run_s"]), max(their_gib, gib)
        their_compile = json.loads(text)["compile_s"]
        # A seed that XLA draws itself is an input of the comparison.
        drawn = [str(int.from_bytes(zipfile.ZipFile(out).read(f"o{k}.npy")[-8:], "little")) for k in drawn_outputs(file)]
        command = [a.tool, "exec", file, "--seed", seed, "--scheme", scheme, "--backend", a.backend, "--repeat", a.repeat, "--json"] + (["--rng-seed", drawn[0]] if drawn else [])
        code, text, err, gib = measured(command + ["--out", own])
        if code:
            note = err.strip()[:120]
            continue
        ours, our_gib = min(ours, json.loads(text)["run_s"]), max(our_gib, gib)
        compiling.append((json.loads(text)["compile_s"], their_compile))
        code, text, err, _ = measured([a.tool, "compare", own, out, "--module", file, "--json"])
        result = json.loads(text)
        worst = max([worst] + [c.get("relative", 0) for c in result["outputs"]])
        if not result["equal"]:  # the reference in f64 decides
            code, text, err, _ = measured(command + ["--compare-with", out])
            result = json.loads(text)
        out.unlink(), own.unlink()
        if result["equal"]:
            equal.append(seed)
        else:
            note = result["verdict"][:120]
    if ours < math.inf and theirs < math.inf:
        ratios.append(max(ours, 1e-6) / max(theirs, 1e-6))
    print(f"| {file.name.replace('.hlo.txt', '')} | {', '.join(equal)} | {worst:.2g} | {ours:.4g} | {theirs:.4g} | {ratios[-1] if ratios else 0:.2f} | {our_gib:.2f} | {their_gib:.2f} | {note}", flush=True)
print(f"| geometric mean of {len(ratios)} | | | | | {math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1)):.2f} |")
if a.backend != "evaluator":
    print(f"compile time: {math.exp(sum(math.log(max(x, 1e-4) / max(y, 1e-4)) for x, y in compiling) / max(len(compiling), 1)):.2f} of XLA's (geometric mean)")
