#!/usr/bin/env python3
"""Parsing and printing beside XLA, one run: tests/dev/bench/bench_text.py [--rounds N] TOOL ORACLE_PYTHON FILE… writes a table
of ratios. Modules of 10 kB and more; milliseconds, one thread, best of 5 in each of N rounds in which both take turns (a
noisy machine is slow for longer than five runs of a small module take)."""
import json
import math
import pathlib
import subprocess
import sys

rounds = 1
if sys.argv[1] == "--rounds":
    rounds = int(sys.argv[2])
    del sys.argv[1:3]
tool, python, *files = sys.argv[1:]
oracle = pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle" / "xla.py"
files = [f for f in files if pathlib.Path(f).stat().st_size >= 10_000]
rows = []
for f in files:
    best = None
    for _ in range(rounds):
        theirs = subprocess.run([python, oracle, "bench", f, "--repeat", "5"], capture_output=True, text=True).stdout.strip()
        if not theirs.startswith("{"):
            break
        t = json.loads(theirs)
        o = json.loads(subprocess.run([tool, "stats", "--bench", "--json", f], capture_output=True, text=True, check=True).stdout)
        now = (t["parse_ms"], o["parse_ms"], t["print_ms"], o["print_ms"])
        best = tuple(map(min, best, now)) if best else now
    if best:
        rows.append((pathlib.Path(f).name, pathlib.Path(f).stat().st_size, *best))
mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
print("| module | kB | XLA parse ms | ours | ratio | XLA print ms | ours | ratio |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
for n, size, tp, op, tw, ow in rows:
    print(f"| {n.replace('.hlo.txt', '')} | {size // 1000} | {tp:.2f} | {op:.2f} | {tp / op:.1f} | {tw:.2f} | {ow:.2f} | {tw / ow:.1f} |")
print(f"| geometric mean of {len(rows)} | | | | {mean([r[2] / r[3] for r in rows]):.1f} | | | {mean([r[4] / r[5] for r in rows]):.1f} |")
