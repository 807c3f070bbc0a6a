#!/usr/bin/env python3
"""Sound dumps: does bisect accuse any, and how much of what changed does it compare?

sound_dumps.py HLO_REPLAY DUMP... [--time-limit=60]     a DUMP: a folder with the stages of one module, or of several

`bisect DUMP` as a user asks it. A row a dump (of all its modules): its verdict, stages judged of all, changed instructions (where the stages were run)
or values (at chosen elements) that were compared of all, seconds. *Wholly*: all stages judged and all that changed compared.
Behind it the median share. Exit code 1 where one is accused."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time


def compared_of(j):
    """(compared, changed): of the instructions where the stages were run, else of the values."""
    inside, elements = j.get("inside"), j.get("elements")
    if inside:
        return inside["changed_instructions"] - inside["not_compared"], inside["changed_instructions"]
    return (elements["compared"], elements["changed"]) if elements else (0, 1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tool"), p.add_argument("dumps", nargs="+", type=pathlib.Path)
    p.add_argument("--time-limit", type=float, default=60)
    a = p.parse_args()
    shares, wholly, accused = [], 0, 0
    for dump in a.dumps:
        begin = time.monotonic()
        run = subprocess.run([a.tool, "bisect", dump, "--json", f"--time-limit={a.time_limit}"], capture_output=True, text=True)
        seconds = time.monotonic() - begin
        name = dump.parent.name if dump.name == "dump" else dump.name
        try:
            j = json.loads(run.stdout)
        except ValueError:
            print(f"{name}: cannot be asked about: {run.stderr.strip()[:200]}", flush=True)
            continue
        modules = j.get("modules") or [j]
        compared, changed = (sum(n) for n in zip(*map(compared_of, modules)))
        judged, stages = (sum(m[key] for m in modules) for key in ("judged", "candidates"))
        share = compared / changed if changed else 1.0
        whole = run.returncode == 0 and judged == stages and compared == changed
        shares.append(share)
        wholly += whole
        accused += run.returncode == 1
        word = "ACCUSED " + str(j.get("bad_file")) if run.returncode == 1 else "wholly" if whole else "in part"
        print(f"{name}: {word}; {judged} of {stages} stages, {compared} of {changed} changed compared, {seconds:.1f} s"
              + (f", stopped {j['stopped']}" if j.get("stopped") else ""), flush=True)
    if not shares:
        sys.exit("no dump could be asked about")
    print(f"{len(shares)} dumps: {accused} accused, {wholly} compared wholly, median share {100 * statistics.median(shares):.1f} %")
    return 1 if accused else 0


sys.exit(main())
