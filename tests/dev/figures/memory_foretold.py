#!/usr/bin/env python3
"""How near the memory that a dump foretells is to what the allocator had at its peak.

memory_foretold.py HLO_REPLAY DUMPS     DUMPS: shared/dumps-h200 unpacked, a folder a program: dump/, NAME.profile.json

The peak is the process's: of all modules that ran in it the largest, and arrays that it keeps between calls lie in it, too.
A row a program: the assignment by `memory DIR --json` of the module that takes the most, the measured peak, their
ratio. Exit code 1 where fewer than eight of nine programs are within 6 %."""
import json
import pathlib
import subprocess
import sys


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2])
    near = count = 0
    for program in sorted(p for p in root.iterdir() if (p / "dump").is_dir() and (p / f"{p.name}.profile.json").exists()):
        measured = json.loads((program / f"{program.name}.profile.json").read_text())
        peak = measured["peak"]
        run = subprocess.run([tool, "memory", program / "dump", "--json"], capture_output=True, text=True)
        foretold = max(m["allocated_bytes"] for m in json.loads(run.stdout)["modules"])
        count += 1
        ratio = foretold / peak
        near += abs(ratio - 1) <= .06
        print(f"{program.name:18} foretold {foretold / 2**20:10.1f} MiB, measured {peak / 2**20:10.1f} MiB, {ratio:.3f}", flush=True)
    print(f"{near} of {count} within 6 %")
    return 0 if count and near * 9 >= count * 8 else 1


sys.exit(main())
