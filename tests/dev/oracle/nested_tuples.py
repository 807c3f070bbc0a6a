#!/usr/bin/env python3
"""Stages of XLA's dumps whose values are tuples of tuples, run on the host and on the emulated grid against the evaluator.

nested_tuples.py TOOL DUMP… [--gb=8] [--backends=host,emulated] [--limit=300] [--most=N] [--valgrind=N] [--largest-text=2000000]

A stage is a text (*.txt) that has an instruction whose shape holds a tuple in a tuple. It runs as it is (--as-is) where
its arrays need no more memory than --gb; a tool built with -DHLO_SANITIZE=ON is the judge of memory, else --valgrind=N
runs the N smallest under valgrind. Prints a line for each that fails and the counts; exit 1 where one fails."""
import argparse
import pathlib
import re
import resource
import subprocess
import sys

NESTED = re.compile(r"^\s*(?:ROOT )?%?[\w.\-]+ = \((?:[^()]*, )*\(", re.M)

parser = argparse.ArgumentParser()
parser.add_argument("tool")
parser.add_argument("dumps", nargs="+")
parser.add_argument("--gb", type=float, default=8)
parser.add_argument("--backends", default="host,emulated")
parser.add_argument("--limit", type=float, default=300)
parser.add_argument("--most", type=int, default=10**9)
parser.add_argument("--valgrind", type=int, default=0)
parser.add_argument("--largest-text", type=int, default=2_000_000)
options = parser.parse_args()


def limited():
    most = int(options.gb * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def run(command, seconds, limit=True):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, preexec_fn=limited if limit else None)
    except subprocess.TimeoutExpired:
        return None, "over the time limit"
    return done.returncode, done.stdout + done.stderr


stages = []
for dump in options.dumps:
    for path in sorted(pathlib.Path(dump).rglob("*.txt")):
        if not path.is_file() or path.stat().st_size > options.largest_text:
            continue
        text = path.read_text(errors="replace")
        if text.startswith("HloModule") and NESTED.search(text):
            stages.append(path)
stages.sort(key=lambda p: p.stat().st_size)
stages = stages[: options.most]
print(f"{len(stages)} stages hold a tuple in a tuple", flush=True)
passed, left, failed = 0, {}, []
for n, stage in enumerate(stages):
    for backend in options.backends.split(","):
        command = [options.tool, "exec", str(stage), f"--backend={backend}", "--as-is", "--compare-with=evaluator", "--fill-elided=random"]
        watched = n < options.valgrind
        if watched:
            command = ["valgrind", "-q", "--error-exitcode=99", "--smc-check=all-non-file", *command]
        code, text = run(command, options.limit, limit=not watched)
        last = text.strip().splitlines()[-1][:160] if text.strip() else ""
        if code is None or code == 2 and "AddressSanitizer" not in text:
            left.setdefault(last if code is None else re.sub(r"[\w.\-]*\d[\w.\-]*", "N", last), []).append(stage)
        elif code == 0:
            passed += 1
        else:
            failed.append((stage, backend))
            print(f"FAILED {stage} {backend}: exit {code}: {last}", flush=True)
print(f"{passed} runs equal, {len(failed)} failed, {sum(map(len, left.values()))} left out")
for why, those in sorted(left.items(), key=lambda e: -len(e[1])):
    print(f"  {len(those)}: {why}")
sys.exit(bool(failed))
