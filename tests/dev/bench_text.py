#!/usr/bin/env python3
"""Parsing and printing beside XLA, one run: tests/dev/bench_text.py TOOL ORACLE_PYTHON FILE… writes a table of ratios.
Modules of 10 kB and more; milliseconds, best of 5, one thread."""
import json
import math
import pathlib
import subprocess
import sys

tool, python, *files = sys.argv[1:]
oracle = pathlib.Path(__file__).resolve().parents[3] / "shared" / "oracle" / "xla.py"
files = [f for f in files if pathlib.Path(f).stat().st_size >= 10_000]
rows = []
for f in files:
    theirs = subprocess.run([python, oracle, "bench", f, "--repeat", "5"], capture_output=True, text=True).stdout.strip()
    if not theirs.startswith("{"):
        continue
    t = json.loads(theirs)
    o = json.loads(subprocess.run([tool, "stats", "--bench", "--json", f], capture_output=True, text=True, check=True).stdout)
    rows.append((pathlib.Path(f).name, pathlib.Path(f).stat().st_size, t["parse_ms"], o["parse_ms"], t["print_ms"], o["print_ms"], o.get("parse_growth", 0)))
mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
print("| module | kB | XLA parse ms | ours | ratio | XLA print ms | ours | ratio |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
for n, size, tp, op, tw, ow, _ in rows:
    print(f"| {n.replace('.hlo.txt', '')} | {size // 1000} | {tp:.2f} | {op:.2f} | {tp / op:.1f} | {tw:.2f} | {ow:.2f} | {tw / ow:.1f} |")
print(f"| geometric mean of {len(rows)} | | | | {mean([r[2] / r[3] for r in rows]):.1f} | | | {mean([r[4] / r[5] for r in rows]):.1f} |")
