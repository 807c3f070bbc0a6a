#!/usr/bin/env python3
"""Hostile texts: every one ends with a clean exit code, soon, and without eating memory."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from bombs import B

tool = sys.argv[1]
# Under sanitizers memory is not ours to count.
sanitized = "asan" in str(pathlib.Path(tool).resolve())
failures = 0
with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory) / "bomb.hlo"
    for verb in ("print", "verify"):
        for name, text in B.items():
            data = text.encode() if isinstance(text, str) else text
            path.write_bytes(data)
            limit = 4 * len(data) + (64 << 20)

            def cap():
                # Room for what a refusal may need and the tables that an accepted text fills.
                if not sanitized:
                    resource.setrlimit(resource.RLIMIT_DATA, (limit + (64 << 20), limit + (64 << 20)))

            try:
                done = subprocess.run([tool, verb, path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, preexec_fn=cap)
                problem = f"exit {done.returncode}: {done.stderr[-200:]}" if done.returncode not in (0, 1, 2) else ""
                if b"bad_alloc" in done.stderr:
                    problem = "out of memory"
            except subprocess.TimeoutExpired:
                problem = "does not end"
            if problem:
                failures += 1
                print(f"FAILED {verb} {name}: {problem}")
print(f"bombs_test: {2 * len(B)} runs, {failures} failed")
sys.exit(1 if failures else 0)
