#!/usr/bin/env python3
"""Faults, contracts and sound stages: what does `triage` say of each?

triage_faults.py HLO_REPLAY [NAME…] [--frozen] [--limit=SECONDS]

Each file of testdata/triage is one: what it is, its kind, what is right, its stages (behind which pass each), inputs and a log. Those that
are marked frozen were not run before the others were right; --frozen asks those alone. A fault is right where the verdict is `fault`
and the pass is the one; `contract` takes rounding, too, since HLO leaves both open; a sound one must not be accused.
Exit 1 where a sound one is accused or fewer than nine in ten are right.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "testdata" / "triage"


def read(path):
    """(facts, parts): the lines behind `# `, and the parts by name in order."""
    head, *parts = path.read_text().split("\n=== ")
    facts = {"says": head.splitlines()[0][2:], "frozen": "# frozen" in head, "cut": "# cut" in head}
    for line in head.splitlines()[1:]:
        key, colon, value = line[2:].partition(": ")
        if colon:
            facts[key] = value
    return facts, [part.split("\n", 1) for part in parts]


def lay_out(facts, parts, folder):
    """Writes a dump, inputs and a log; the words of the command."""
    dump = folder / "dump"
    dump.mkdir()
    stages = [(name, text) for name, text in parts if name not in ("inputs", "log")]
    for n, (name, text) in enumerate(stages):
        following = stages[n + 1][0] if n + 1 < len(stages) else facts["expect"].split()[1] if facts["kind"] == "hang" else "end"
        file = name if n == 0 else f"{n:04}.simplification.after_{name}.before_{following}"
        (dump / f"module_0001.m.{file}.txt").write_text(text)
    if stages and not facts["cut"]:
        (dump / "module_0001.m.cpu_after_optimizations.txt").write_text(stages[-1][1])
    words = [str(dump)] if stages else []
    for name, text in parts:
        if name in ("inputs", "log"):
            (folder / name).write_text(text)
            words.append(str(folder / name) if name == "log" and not stages else f"--{name}={folder / name}")
    return words + ([f"--complaint={facts['complaint']}"] if "complaint" in facts else [])


def right(expect, answer):
    verdict, _, what = expect.partition(" ")
    said = answer.get("verdict")
    if verdict == "no-fault":
        return said in ("nothing", "rounding", "contract")
    if verdict == "contract":
        return said in ("contract", "rounding")
    if verdict == "fault":
        return said == "fault" and answer["pass"] == what
    if verdict == "program":
        return said == "program" and answer["source"] == what
    return said == verdict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--frozen", action="store_true")
    parser.add_argument("--limit", type=float, default=60)
    args = parser.parse_args()
    rows = []
    for path in sorted(FOLDER.glob("*.txt")):
        facts, parts = read(path)
        if path.stem not in args.names if args.names else facts["frozen"] != args.frozen:
            continue
        with tempfile.TemporaryDirectory() as directory:
            words = lay_out(facts, parts, pathlib.Path(directory))
            began = time.monotonic()
            done = subprocess.run([args.tool, "triage", *words, "--json", f"--time-limit={args.limit}"], capture_output=True, text=True, timeout=3 * args.limit)
            passed = time.monotonic() - began
        answer = json.loads(done.stdout) if done.stdout.startswith("{") else {"verdict": done.stderr.strip()}
        good = right(facts["expect"], answer)
        rows.append((facts["kind"], good, answer.get("verdict"), passed))
        print(f"{'right' if good else 'WRONG':5} {path.stem:16} {facts['kind']:10} {facts['expect']:40} {answer.get('verdict')}: {str(answer.get('why'))[:150]} ({answer.get('sure')}, {passed:.1f} s)", flush=True)
    accused = sum(kind == "sound" and not good for kind, good, _, _ in rows)
    for kind in sorted({row[0] for row in rows}):
        of_kind = [row for row in rows if row[0] == kind]
        print(f"{kind:10} {sum(row[1] for row in of_kind)} of {len(of_kind)}")
    share = sum(row[1] for row in rows) / max(1, len(rows))
    print(f"all        {sum(row[1] for row in rows)} of {len(rows)} ({100 * share:.0f} %), {accused} sound ones accused, median {statistics.median(row[3] for row in rows):.1f} s" if rows else "nothing was asked")
    return 1 if accused or share < 0.9 else 0


raise SystemExit(main())
