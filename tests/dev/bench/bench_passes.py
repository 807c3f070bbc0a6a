#!/usr/bin/env python3
"""The time of our passes beside XLA's own, on the same modules: its metadata's clock (no stage is dumped), ours of `replay`.

  ORACLE_PYTHON bench_passes.py HLO_REPLAY WORK_DIR FILE…

Compared are the passes that both have and ran, from the input to where XLA schedules, each summed over its runs in a pipeline, each the best of three compilations.
Rows that are pipelines are left out, and so is the writing of texts: XLA dumps no stage, ours are not counted. Both begin with the same module: the
one that XLA dumps before its first pass. Last the passes by our time, then those over XLA's time by more than a tenth of a millisecond in any module."""
import collections
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

ORACLE = pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"
sys.path.insert(0, str(ORACLE))
import xla  # noqa: E402

REPEAT = 3


def best(runs):
    """Of each pass the smallest time, of dictionaries pass → microseconds: a machine that others use too stops every run somewhere for milliseconds."""
    return {key: min(run[key] for run in runs) for key in runs[0] if all(key in run for run in runs)}


def theirs(file, folder):
    runs = []
    for _ in range(REPEAT):
        shutil.rmtree(folder, ignore_errors=True)
        flags = f"--xla_dump_module_metadata=true --xla_dump_hlo_as_text=true --xla_dump_to={folder} --xla_gpu_autotune_level=0 --xla_dump_large_constants=true"
        command = [sys.executable, str(ORACLE / "xla.py"), "_compile", str(file), "--backend", "gpu", "--target", str(ORACLE / "h200.pbtxt"), "--partitions", "1"]
        if subprocess.run(command, env=dict(os.environ, XLA_FLAGS=flags), capture_output=True).returncode:
            return None, None
        time = collections.Counter()
        nested = {run["pipeline"] for run in xla.pass_runs(folder)}
        for run in xla.pass_runs(folder):
            if run["pass"] not in nested:
                time[run["pass"], run["pipeline"].replace(" ", "_")] += run["us"]
        runs.append(time)
    return best(runs), next(folder.glob("*before_optimizations.txt"))


def ours(tool, file, folder):
    runs = []
    for _ in range(REPEAT):
        command = [tool, "replay", "--pipeline=xla-gpu", "--formats=text", "--no-verify", "--json", "--force", "-o", str(folder / "ours"), str(file)]
        stages = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["stages"]
        time = collections.Counter()
        for stage in stages:
            if stage["kind"] == "pass" and stage.get("implemented", True):
                time[stage["pass"], stage["pipeline"].replace(" ", "_")] += stage.get("microseconds", 0)
        runs.append(time)
    return best(runs)


def main():
    tool, work, files = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    total = collections.defaultdict(lambda: [0, 0])
    ratios, over = [], []
    print("| module | passes | XLA ms | ours | ratio |\n| --- | --- | --- | --- | --- |")
    for file in files:
        folder = work / re.sub(r"\.hlo(\.txt)?$", "", pathlib.Path(file).name)
        xla_time, start = theirs(file, folder)
        if not xla_time:
            print(f"| {folder.name} | not compiled | | | |", flush=True)
            continue
        our_time = ours(tool, start, folder)
        both = sorted(set(xla_time) & set(our_time))
        a, b = sum(xla_time[k] for k in both), sum(our_time[k] for k in both)
        for k in both:
            total[k[0]][0] += xla_time[k]
            total[k[0]][1] += our_time[k]
            if our_time[k] > xla_time[k] + 100:
                over.append((our_time[k] - xla_time[k], folder.name, *k, xla_time[k], our_time[k]))
        ratios.append(b / a)
        print(f"| {folder.name} | {len(both)} | {a / 1000:.1f} | {b / 1000:.1f} | {b / a:.2f} |", flush=True)
    print(f"| geometric mean of {len(ratios)} | | | | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} |\n")
    print("| pass | XLA ms | ours | ratio |\n| --- | --- | --- | --- |")
    for name, (a, b) in sorted(total.items(), key=lambda row: -row[1][1]):
        print(f"| {name} | {a / 1000:.1f} | {b / 1000:.1f} | {b / max(a, 1):.2f} |")
    print("\n| over XLA's | pass | pipeline | XLA ms | ours |\n| --- | --- | --- | --- | --- |")
    for _, module, name, pipeline, a, b in sorted(over, reverse=True):
        print(f"| {module} | {name} | {pipeline} | {a / 1000:.2f} | {b / 1000:.2f} |")


if __name__ == "__main__":
    main()
