#!/usr/bin/env python3
"""Sound dumps: does bisect accuse any, and how much of what changed does it compare?

sound_dumps.py HLO_REPLAY DUMP... [--time-limit=60] [--elements] [--triage]     a DUMP: a folder with the stages of one module, or of several

`bisect DUMP` as a user asks it (`--elements`: at chosen elements of full size). A row a dump (of all its modules): its verdict, stages judged of all, changed
instructions (where the stages were run) or values (at chosen elements) that were compared of all, seconds, GiB at most. *Wholly*: all stages judged and all that changed compared.
`--triage` asks `triage DUMP` besides: its verdict, seconds and GiB. The last line has the median share. Exit code 1 where one is accused."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def compared_of(j):
    """(compared, changed): of the instructions where the stages were run, else of the values."""
    inside, elements = j.get("inside"), j.get("elements")
    if inside:
        return inside["changed_instructions"] - inside["not_compared"], inside["changed_instructions"]
    return (elements["compared"], elements["changed"]) if elements else (0, 1)


def asked(command):
    """(exit code, stdout, stderr, seconds, GiB at most) of a command."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        out.seek(0), err.seek(0)
        return child.returncode, out.read().decode(), err.read().decode(), seconds, usage.ru_maxrss / 2**20


def triaged(tool, dump):
    with tempfile.TemporaryDirectory() as folder:
        code, out, err, seconds, peak = asked([tool, "triage", dump, "--json", f"--out={folder}/report"])
    verdict = json.loads(out).get("verdict") if out.strip().startswith("{") else err.strip()[:120]
    return f"; triage: {verdict} (exit code {code}), {seconds:.1f} s, {peak:.2f} GiB"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tool"), p.add_argument("dumps", nargs="+", type=pathlib.Path)
    p.add_argument("--time-limit", type=float, default=60)
    p.add_argument("--elements", action="store_true"), p.add_argument("--triage", action="store_true")
    a = p.parse_args()
    shares, wholly, accused = [], 0, 0
    for dump in a.dumps:
        code, out, err, seconds, peak = asked([a.tool, "bisect", dump, "--json", f"--time-limit={a.time_limit}"] + ["--elements"] * a.elements)
        name = dump.parent.name if dump.name == "dump" else dump.name
        try:
            j = json.loads(out)
        except ValueError:
            print(f"{name}: cannot be asked about: {err.strip()[:200]}", flush=True)
            continue
        modules = j.get("modules") or [j]
        compared, changed = (sum(n) for n in zip(*map(compared_of, modules)))
        judged, stages = (sum(m[key] for m in modules) for key in ("judged", "candidates"))
        share = compared / changed if changed else 1.0
        whole = code == 0 and judged == stages and compared == changed
        shares.append(share)
        wholly += whole
        accused += code == 1
        word = "ACCUSED " + str(j.get("bad_file")) if code == 1 else "wholly" if whole else "in part"
        print(f"{name}: {word}; {judged} of {stages} stages, {compared} of {changed} changed compared, {seconds:.1f} s, {peak:.2f} GiB"
              + (f", stopped {j['stopped']}" if j.get("stopped") else "") + (triaged(a.tool, dump) if a.triage else ""), flush=True)
    if not shares:
        sys.exit("no dump could be asked about")
    print(f"{len(shares)} dumps: {accused} accused, {wholly} compared wholly, median share {100 * statistics.median(shares):.1f} %")
    return 1 if accused else 0


sys.exit(main())
