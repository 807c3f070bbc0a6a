#!/usr/bin/env python3
"""Edits planted by chance into programs too large to run: which of them does bisect --elements name?

plants_unrun.py make HLO_REPLAY OUT.jsonl DUMP... --seed=S --count=N   draws N edits in the largest module of each dump
plants_unrun.py judge HLO_REPLAY OUT.jsonl [--limit=SECONDS] [--only=DUMP]   asks bisect about each; a table by dump

Edits are those of plants.py, carried through later stages as there. Nothing can be evaluated here, so an edit counts where the
entry's result reads the instruction, it verifies, and it is none of those that change no value by their text: an operand
defined by the same text, a dimension of size 1 moved, `<` made `!=` in a loop's condition. A constant of f32 that is another
one by its last bit is counted apart (rounding is no fault). Of what is not named the edit is printed, to be looked at.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import plants

CALLED = re.compile(r"(?:to_apply|calls|body|condition|true_computation|false_computation|select|scatter)=%?([\w.-]+)|(?:branch_computations|called_computations)=\{([^}]*)\}")


def computations(text):
    """name of each computation -> {instruction: (line, operands, called computations)}; the entry's name; the roots."""
    all_, roots, entry, current = {}, {}, None, None
    for line in text.split("\n"):
        head = re.match(r"(ENTRY )?%?([\w.-]+)(?: \(.*\) -> .*)? \{$", line)
        if head and not line.startswith(" "):
            current = head.group(2)
            all_[current] = {}
            if head.group(1):
                entry = current
            continue
        line = re.sub(r"/\*.*?\*/", "", line)  # of long tuples
        m = plants.LINE.match(line)
        if not m or current is None:
            continue
        prefix, name, _, _, behind = m.groups()
        operands, rest = plants.balanced(behind)
        called = [n for one, many in CALLED.findall(rest) for n in ([one] if one else re.findall(r"[\w.-]+", many))]
        all_[current][name] = (line, re.findall(r"%([\w.-]+)", operands), called)
        if "ROOT" in prefix:
            roots[current] = name
    return all_, entry, roots


def live(text):
    """What the entry's result is made of: instruction -> the computation that holds it; and who applies each computation."""
    all_, entry, roots = computations(text)
    seen, work, callers = {}, [(entry, roots[entry])], collections.defaultdict(set)
    while work:
        where, name = work.pop()
        if name in seen or name not in all_.get(where, {}):
            continue
        seen[name] = where
        _, operands, called = all_[where][name]
        work += [(where, o) for o in operands]
        for c in called:
            callers[c].add(name)
            if c in roots:
                work.append((c, roots[c]))
    return seen, callers, all_


def decides_loop(where, all_, text):
    """Is it a loop's condition, or called by one?"""
    seen, work = set(), [where]
    while work:
        c = work.pop()
        if re.search(r"condition=%?" + re.escape(c) + r"(?![\w.-])", text):
            return True
        for holder, rows in all_.items():
            if holder not in seen and any(c in called for _, _, called in rows.values()):
                seen.add(holder)
                work.append(holder)
    return False


def changes_nothing(plant, all_, where, text):
    """By the text alone."""
    old, new = plants.LINE.match(plant["old"]), plants.LINE.match(plant["new"])
    rows = all_[where]

    def meant(name, depth=6):
        if name not in rows or depth == 0:
            return name
        m = plants.LINE.match(plants.without_notes(rows[name][0]))
        if not m or m.group(4) == "parameter":
            return name
        return (m.group(3), m.group(4), re.sub(r"%[\w.-]+", "", m.group(5)), *(meant(o, depth - 1) for o in rows[name][1]))

    old_rest, new_rest = (plants.balanced(m.group(5)) for m in (old, new))
    if plant["kind"] == "swap" and re.search(r"direction=(EQ|NE)", old_rest[1]):
        return True
    if plant["kind"] in ("operand", "init", "swap", "mask"):
        return [meant(n) for n in re.findall(r"%([\w.-]+)", old_rest[0])] == [meant(n) for n in re.findall(r"%([\w.-]+)", new_rest[0])]
    if plant["kind"] == "direction":  # a loop that counts up by one
        return "LT" in old_rest[1] and "NE" in new_rest[1] and decides_loop(where, all_, text)
    if plant["kind"] in ("reshape", "permutation"):
        dims = plants.numbers(re.search(r"\[([\d,]*)\]", old.group(3)).group(1))
        perm = plants.numbers(re.search(r"dimensions=\{([\d,]*)\}", old_rest[1]).group(1))
        if plant["kind"] == "permutation":
            other = plants.numbers(re.search(r"dimensions=\{([\d,]*)\}", new_rest[1]).group(1))
            return all(a == b or dims[k] == 1 for k, (a, b) in enumerate(zip(perm, other)))
        kept = [p for k, p in enumerate(perm) if dims[k] != 1]
        return kept == sorted(kept)
    return False


def largest(dump):
    files = sorted(dump.glob("*gpu_after_optimizations.txt"), key=lambda f: -f.stat().st_size)
    return files[0].name.split(".sm_")[0]


def module_folder(dump, tmp):
    """A folder with the files of the dump's largest module alone, as links."""
    name = largest(dump)
    place = pathlib.Path(tmp) / "dump"
    place.mkdir()
    for f in dump.glob(name + ".*"):
        (place / f.name).symlink_to(f)
    return place


def make(a):
    with open(a.out, "a") as out:
        for dump in a.dumps:
            r, found, tried, seen = random.Random(f"{a.seed} {dump}"), 0, collections.Counter(), set()
            with tempfile.TemporaryDirectory() as tmp:
                place = module_folder(dump, tmp)
                while found < a.count and sum(tried.values()) < 200 * a.count:
                    plant = plants.draw(r, [place], a.tool)
                    if not plant or (plant["file"], plant["old"], plant["new"]) in seen:
                        tried["nothing to edit"] += 1
                        continue
                    seen.add((plant["file"], plant["old"], plant["new"]))
                    text = (place / plant["file"]).read_text()
                    alive, _, all_ = live(text)
                    if plant["instruction"] not in alive:
                        tried["not live"] += 1
                        continue
                    if changes_nothing(plant, all_, alive[plant["instruction"]], text):
                        tried["no other value"] += 1
                        continue
                    edited = pathlib.Path(tmp) / plant["file"]
                    edited.write_text(text.replace(plant["old"], plant["new"], 1))
                    if subprocess.run([a.tool, "verify", edited], capture_output=True).returncode != 0:
                        tried["not a module"] += 1
                        continue
                    found += 1
                    plant["dump"] = str(dump)
                    out.write(json.dumps(plant) + "\n"), out.flush()
            print(dump, found, dict(tried), flush=True)
    return 0


def last_bit(row):
    """Is it a constant of f32 that changed by no more than rounding?"""
    if row["kind"] != "constant" or " f32[" not in row["old"]:
        return False
    old, new = (float(re.search(r"constant\((.*?)\)", row[k]).group(1)) for k in ("old", "new"))
    return abs(new - old) <= 2e-7 * abs(old) or abs(new - old) < 1e-40


def score(row, answer, text):
    """(what was said, in detail)"""
    if not answer.get("found"):
        verdict = str(answer.get("verdict", ""))
        if answer.get("died"):  # a crash is no verdict
            return "DIED", verdict
        if verdict.startswith("no bad stage"):
            return "NO BAD STAGE", ""
        here = [u["why"] for u in answer.get("unknown", []) if u["stage"].startswith(f"{row['stage']:04} ")]
        if here:
            return "unknown", here[0][:200]
        if answer.get("stopped"):
            return "not reached", verdict[:80]
        return "MISSED", f"the stage was judged good: {verdict[:80]}"
    if answer.get("bad_file") != row["file"]:
        return "OTHER STAGE", f"{answer.get('bad')}: {answer.get('why')}"
    name = (answer.get("first_value_that_differs") or {}).get("name")
    if name is None and answer.get("stopped"):  # what was found by then
        name = ((answer.get("elements") or {}).get("findings") or [{}])[0].get("after")
    _, callers, all_ = live(text)
    home = next((c for c, rows in all_.items() if row["instruction"] in rows), None)
    names, work = {row["instruction"]}, [home]
    while work:  # what applies the computation that holds it
        for by in callers.get(work.pop(), ()):
            if by not in names:
                names.add(by)
                work += [c for c, rows in all_.items() if by in rows]
    if name in names:
        return "named", ""
    return "stage only", f"{name}: {answer.get('why')}"


def judge(a):
    table = collections.defaultdict(collections.Counter)
    for row in map(json.loads, open(a.out)):
        dump = pathlib.Path(row["dump"])
        if a.only and a.only not in row["dump"]:
            continue
        with tempfile.TemporaryDirectory() as tmp:
            place = module_folder(dump, tmp)
            paths = plants.stages(place)
            at = next(k for k, (_, p) in enumerate(paths) if p.name == row["file"])
            edited = ""
            for path, text in plants.carried(paths, at, row["instruction"], row["old"], row["new"]):
                path.unlink()
                path.write_text(text)
                edited = edited or text
            begin = time.monotonic()
            try:
                run = subprocess.run([a.tool, "bisect", place, "--elements", "--json", f"--time-limit={a.limit}"], capture_output=True, text=True, timeout=a.limit + 30)
                answer = json.loads(run.stdout)
            except subprocess.TimeoutExpired:
                answer = {"found": False, "verdict": "it did not end", "died": True}
            except ValueError:
                answer = {"found": False, "verdict": f"exit code {run.returncode}: {run.stderr.strip()[-200:]}", "died": True}
        said, detail = score(row, answer, edited)
        if last_bit(row):
            said = "last bit: " + said
        name = dump.parent.name if dump.name == "dump" else dump.name
        table[name][said] += 1
        print(f"{said:12} {row['kind']:11} {name} {row['stage']:04} {row['instruction']}, {time.monotonic() - begin:.1f} s {detail}", flush=True)
        if said != "named":
            print(f"  - {row['old'].strip()[:300]}\n  + {row['new'].strip()[:300]}", flush=True)
    total = collections.Counter()
    for name in sorted(table):
        total.update(table[name])
        print(f"{name:18} " + ", ".join(f"{n} {word}" for word, n in sorted(table[name].items())))
    count = sum(n for word, n in total.items() if not word.startswith("last bit"))
    print(f"{total['named']} of {count} named; " + ", ".join(f"{n} {word}" for word, n in sorted(total.items())))
    return 0 if total["named"] >= .9 * count > 0 else 1


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["make", "judge"])
    p.add_argument("tool"), p.add_argument("out")
    p.add_argument("dumps", nargs="*", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--limit", type=float, default=90, help="for one bisect")
    p.add_argument("--only", default="", help="dumps whose path has this")
    a = p.parse_args()
    return make(a) if a.what == "make" else judge(a)


if __name__ == "__main__":
    sys.exit(main())
