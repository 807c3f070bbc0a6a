#!/usr/bin/env python3
"""Programs that can be run: does bisect say the same at chosen elements as by whole evaluation?

verdicts_alike.py HLO_REPLAY DUMP... [--seed=S] [--limit=SECONDS]     a DUMP: a folder with one module's stages

Each dump is asked about twice as it is and twice with an edit of plants.py drawn into it that changes a value for some of a few
inputs: `bisect DIR` with all stages run, and `bisect DIR --elements`. A row a question: what each says, and whether that is the
same. `unknown` at elements is no other verdict, but counted. What takes longer than the limit either way is left out, by name.
Exit code 1 where the two contradict each other: one names a stage that the other calls good, or names another one."""
import argparse
import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import plants

plants.INPUTS = 6


def asked(tool, folder, limit, *more):
    """(`bad` with its file, `good`, `unknown`, or None where it took too long)"""
    run = subprocess.run([tool, "bisect", folder, "--json", f"--time-limit={limit}", *more], capture_output=True, text=True)
    try:
        j = json.loads(run.stdout)
    except ValueError:
        return None, run.stderr.strip()[-200:]
    if j.get("stopped"):
        return None, "over the limit"
    if j.get("found"):
        return "bad", j.get("bad_file")
    return ("good", "") if str(j.get("verdict", "")).startswith("no bad") else ("unknown", "")


def edited(folder, tool, r, place, limit):
    """A copy of the dump with an edit that changes a value; its description. None: none was found in 40 draws."""
    paths = plants.stages(folder)
    for _ in range(40):
        plant = plants.draw(r, [folder], tool)
        if not plant:
            continue
        at = next(k for k, (_, p) in enumerate(paths) if p.name == plant["file"])
        one = place / plant["file"]
        one.write_text(paths[at][1].read_text().replace(plant["old"], plant["new"], 1))
        if subprocess.run([tool, "verify", one], capture_output=True).returncode != 0:
            continue
        try:
            if plants.decide(tool, paths[at][1], one, limit) is None:
                continue
        except (RuntimeError, subprocess.TimeoutExpired):
            continue
        for f in folder.glob("module_*.txt"):
            shutil.copy(f, place / f.name)
        for path, text in plants.carried(paths, at, plant["instruction"], plant["old"], plant["new"]):
            (place / path.name).write_text(text)
        return f"{plant['kind']} of {plant['instruction']} in {plant['stage']:04}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tool"), p.add_argument("dumps", nargs="+", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--limit", type=float, default=60, help="for one question")
    a = p.parse_args()
    said, ran = collections.Counter(), 0
    for dump in a.dumps:
        r = random.Random(f"{a.seed} {dump.name}")
        with tempfile.TemporaryDirectory() as tmp:
            place = pathlib.Path(tmp)
            for folder, words in ((dump, "as it is"), (place, edited(dump, a.tool, r, place, a.limit))):
                if words is None:
                    said["no edit drawn"] += 1
                    continue
                whole, where = asked(a.tool, folder, a.limit)
                few, there = asked(a.tool, folder, a.limit, "--elements")
                if whole is None or few is None:
                    answer = "left out"
                elif (whole, where) == (few, there):
                    answer = "the same"
                elif "unknown" in (whole, few):
                    answer = f"whole {whole}, elements {few}"
                else:
                    answer = "CONTRADICTS"
                ran += folder is dump and answer != "left out"
                said[("edited: " if folder is not dump else "sound: ") + answer] += 1
                print(f"{dump.name}: {words}: {answer}" + (f": {whole} {where} / {few} {there}" if answer != "the same" else ""), flush=True)
    print(f"{ran} dumps: " + ", ".join(f"{n} {word}" for word, n in sorted(said.items())))
    return 1 if any("CONTRADICTS" in word for word in said) else 0


sys.exit(main())
