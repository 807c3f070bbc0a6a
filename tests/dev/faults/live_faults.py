#!/usr/bin/env python3
"""Faults that releases of jaxlib have: what does `triage FILE --engine=installed:VERSION` say of each?

live_faults.py HLO_REPLAY [NAME…] [--releases=0.6.0,…] [--limit=SECONDS] [--live-only] [--not-live]

Programs of our own for entries of ../shared/miscompiles.md, testdata/triage/live/*.txt: what it is, what is right to say, target and flags, the
module, inputs, and what must come out, written by hand. A case is *live* in a release where that release does wrong, seen without triage: it
does not compile (complaint crash), a stage says another thing (annotation), or what it gives is not what must come out: run on this CPU by
jax, for another target its last stage evaluated. Of the live ones triage must name pass or layer, `proved` or `tested`; --not-live asks the others, too, which must not be accused.
Releases come from PyPI (--yes), one after the other. A table at the end; exit 1 where one of them is wrong.
"""
import argparse
import ast
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
FOLDER, DRIVER = ROOT / "testdata" / "triage" / "live", ROOT / "python" / "hlo_replay" / "_driver.py"
RELEASES = "0.6.0,0.7.2,0.8.2,0.9.2,0.10.2,0.12.0.1"
TYPES = {"pred": "bool", "s8": "int8", "u8": "uint8", "s32": "int32", "s64": "int64", "f32": "float32"}


def read(path):
    head, *parts = path.read_text().split("\n=== ")
    facts = {"says": head.splitlines()[0][2:]}
    for line in head.splitlines()[1:]:
        key, colon, value = line[2:].partition(": ")
        if colon:
            facts[key] = value
    return facts, dict(part.split("\n", 1) for part in parts)


def engine_words(facts, release):
    words = [f"--engine=installed:{release}", "--yes"]
    words += [f"--target={facts['target']}"] if "target" in facts else []
    words += [f"--xla-flags={facts['flags']}"] if "flags" in facts else []
    return words + ([f"--partitions={facts['partitions']}"] if "partitions" in facts else [])


class Case:
    def __init__(self, tool, path, folder):
        self.tool, self.name, self.folder = tool, path.stem, folder
        self.facts, parts = read(path)
        self.module = folder / f"{path.stem}.hlo"
        self.module.write_text(parts["module"])
        self.inputs = []
        if "inputs" in parts:
            (folder / "inputs.txt").write_text(parts["inputs"])
            self.inputs = [f"--inputs={folder / 'inputs.txt'}"]
        self.right = None
        if "complaint" not in self.facts:
            self.run("exec", self.module, *self.inputs, f"--out={folder / 'right.npz'}")
            if "right" in parts:  # what our evaluator gives must be what was written by hand
                by_hand = ast.literal_eval(parts["right"].strip().replace("{", "[").replace("}", "]").replace("nan", "1e999-1e999").replace("inf", "1e999")) if "nan" not in parts["right"] and "inf" not in parts["right"] else None
                if by_hand is not None and flat(by_hand) != flat(self.arrays(folder / "right.npz")["o0"]):
                    raise SystemExit(f"{self.name}: the evaluator gives {self.arrays(folder / 'right.npz')['o0']}, must be {by_hand}")

    def run(self, *words):
        return subprocess.run([self.tool, *map(str, words)], capture_output=True, text=True, timeout=900)

    def arrays(self, file):
        """Of an .npz, by our own command: this needs no numpy."""
        out = {}
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if name.endswith(".npy"):
                    out[name[:-4]] = npy(archive.read(name))
        return out

    def live(self, release):
        """(live?, in words)"""
        facts = self.facts
        dump = self.folder / f"dump_{release}"
        if "target" in facts or "partitions" in facts or "complaint" in facts:
            done = self.run("replay", self.module, *engine_words(facts, release), "-o", dump, "--force")
            if "complaint" in facts:
                return done.returncode != 0, (done.stderr.strip().splitlines() or ["it compiles"])[-1][:300]
            if done.returncode:
                return None, done.stderr.strip().splitlines()[-1][:300]
            if "partitions" in facts:  # every stage by bisect alone: results of several devices are put together there
                done = self.run("bisect", dump, *self.inputs, "--json")
                answer = json.loads(done.stdout) if done.stdout.startswith("{") else {}
                return answer.get("found"), str(answer.get("verdict", done.stderr))[:200]
            if "annotation" in facts:  # wrong is what a stage says of it, whoever reads that
                key = facts["annotation"].split('"')[0]
                said = [text[text.index(key):][:40] for text in (f.read_text(errors="replace") for f in sorted(dump.glob("*.txt"))) if key in text]
                return bool(said) and not any(facts["annotation"] in text for text in said), (said or ["it says nothing of it"])[0]
            got = self.folder / f"got_{release}.npz"
            for spec in (f"{dump}:after_optimizations", f"{dump}:0001:after_optimizations"):  # beside it may lie what the autotuner compiles
                done = self.run("exec", spec, f"--inputs={self.folder / 'right.npz'}", f"--out={got}")
                if done.returncode == 0:
                    break
            if done.returncode:
                return None, done.stderr.strip().splitlines()[-1][:300]
            return self.differs(got)
        question = {"do": "run", "input": str(self.module), "form": "hlo", "platform": "cpu", "target": "", "partitions": 1, "shardy": False, "plain": "", "runs": 0, "inputs": str(self.folder / "right.npz"),
                    "output": str(self.folder / f"got_{release}.npz"), "types": self.types(), "output_types": []}
        (self.folder / "question.json").write_text(json.dumps(question))
        base = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        python = base / "hlo-replay" / "releases" / release / "bin" / "python"
        (self.folder / "driver.py").write_text(DRIVER.read_text())  # beside it lies a package that is called jax
        done = subprocess.run([python, self.folder / "driver.py", self.folder / "question.json", self.folder / "answer.json", self.folder / "phase"], capture_output=True, text=True, timeout=300)
        answer = json.loads((self.folder / "answer.json").read_text()) if done.returncode == 0 else {"ok": False, "message": done.stderr[-300:]}
        if not answer["ok"]:
            return None, answer.get("message")
        return self.differs(self.folder / f"got_{release}.npz")

    def types(self):
        out = []
        for line in self.module.read_text().split("ENTRY")[1].splitlines():
            if " parameter(" in line:
                out.append((int(line.split(" parameter(")[1].split(")")[0]), TYPES[line.split(" = ")[1].split("[")[0]]))
        return [kind for _, kind in sorted(out)]

    def differs(self, got):
        right, got = self.arrays(self.folder / "right.npz"), self.arrays(got)
        for name in sorted(n for n in right if n.startswith("o")):
            a, b = flat(right[name]), flat(got.get(name, []))
            top = max([abs(x) for x in a if x == x and abs(x) != float("inf")] or [0])
            for k, (x, y) in enumerate(zip(a, b)):
                if (x != x) != (y != y) or abs(x - y) > 1e-4 * top:
                    return True, f"{name}[{k}] is {y:g}, must be {x:g}"
            if len(a) != len(b):
                return True, f"{name} has {len(b)} elements"
        return False, "it gives what it must"

    def triage(self, release, limit, *more):
        complaint = [f"--complaint={self.facts['complaint']}"] if "complaint" in self.facts else []
        began = time.monotonic()
        done = self.run("triage", self.module, *engine_words(self.facts, release), *self.inputs, *complaint, f"--time-limit={limit}", "--json", *more)
        passed = time.monotonic() - began
        return (json.loads(done.stdout) if done.stdout.startswith("{") else {"verdict": "error", "why": done.stderr.strip()[-300:], "sure": "", "pass": None}), passed


def npy(data):
    """An array of numpy's form as nested nothing: a flat list of numbers."""
    import struct

    length = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10 : 10 + length].decode())
    kind, body = head["descr"][1:], data[10 + length :]
    if head["descr"].endswith("b1"):
        return list(body)
    code = {"f4": "f", "f8": "d", "i1": "b", "u1": "B", "i4": "i", "i8": "q", "u4": "I", "u2": "H", "i2": "h", "f2": "e"}[kind]
    return list(struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body))


def flat(x):
    return [v for part in x for v in flat(part)] if isinstance(x, list) else [x]


def right(expect, answer):
    word, _, what = expect.partition(" ")
    kinds = [what] if "|" not in what else what.split("|")
    if word == "fault":
        return answer["verdict"] == "fault" and answer["pass"] in kinds and answer["sure"] in ("proved", "tested") or answer["verdict"] in kinds
    return answer["verdict"] == word


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--releases", default=RELEASES)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--live-only", action="store_true", help="which are live, triage is not asked")
    parser.add_argument("--not-live", action="store_true", help="ask of those, too, that are not")
    args = parser.parse_args()
    table, wrong = {}, 0
    for path in sorted(FOLDER.glob("*.txt")):
        if args.names and path.stem not in args.names:
            continue
        for release in args.releases.split(","):
            with tempfile.TemporaryDirectory() as directory:
                case = Case(args.tool, path, pathlib.Path(directory))
                live, seen = case.live(release)
                row = table.setdefault(path.stem, {})
                if not live and (not args.not_live or live is None) or args.live_only:
                    row[release] = {True: "live", False: "-", None: "?"}[live]
                    print(f"{path.stem:12} {release:9} {row[release]:5} {seen}", flush=True)
                    continue
                answer, passed = case.triage(release, args.limit)
            good = right(case.facts["expect"], answer) if live else answer["verdict"] not in ("fault", "below", "program")
            wrong += not good
            row[release] = f"{'' if good else 'WRONG '}{answer['verdict']} {answer['pass'] or ''}, {answer['sure']}, {passed:.1f} s" if live else "-" if good else f"WRONG: not live, {answer['verdict']}"
            print(f"{path.stem:12} {release:9} {'live' if live else 'sound':5} {'right' if good else 'WRONG'} {seen} => {answer['verdict']} {answer['pass']} {answer.get('rule')} ({answer['sure']}, {passed:.1f} s): {str(answer['why'])[:300]}", flush=True)
    releases = args.releases.split(",")
    print("\n| case | " + " | ".join(releases) + " |\n|" + " --- |" * (len(releases) + 1))
    for name, row in table.items():
        print(f"| {name} | " + " | ".join(row.get(r, "") for r in releases) + " |")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
