#!/usr/bin/env python3
"""Lessons: every module, pass, check and answer against the native engine; and that the check finds what is wrong.

lessons_test.py ENGINE_ASK SOURCE. The page's own reader and judge run in node (tests/page/lessons_run.js), bundled by
esbuild; 77 where one of them is not here."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ENGINE, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
LESSONS = SOURCE / "viewer/lessons"
LARGEST = 300_000   # bytes that all lessons together may add to the program
WANTED = ["reading", "simplify", "fusion", "thunks"]
MODULE = "@module m\n```\nHloModule m\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(x)\n}\n```\n"
EDIT = "@edit m Change it.\n@expect count op:sine in start = 1 | No sine.\n@wrong No sine.\n" + MODULE.split("\n", 1)[1] + "@solution\n"
# A lesson that is wrong, and what is said of it.
WRONG = {
    "no option is right": ("## S\n" + MODULE + "@choose How many?\n@answer instructions in m\n@option 3 | Three | No.\n@option 4 | Four | No.\n", "no option is 2"),
    "the right number is listed as wrong": ("## S\n" + MODULE + "@number How many?\n@answer instructions in m\n@wrong 2 | No.\n", "2 is right, and listed as wrong"),
    "the solution is none": ("## S\n" + MODULE + EDIT + MODULE.split("\n", 1)[1], "the solution is judged wrong: No sine."),
    "a pass that changes nothing": ("## S\n" + MODULE + "@run r = m fusion\n", "its passes change nothing"),
    "no such pass": ("## S\n" + MODULE + "@run r = m fussion\n", "unknown pass 'fussion'"),
    "no such module": ("## S\n" + MODULE + "@show k\n", "there is no module k"),
    "a module that is not valid": ("## S\n" + MODULE.replace("negate(x)", "negate(y)"), "module m: "),
    "an answer of no form": ("## S\n" + MODULE + "@number How many?\n@answer size of m\n@wrong 2 | No.\n", "no expression: size of m"),
    "no such order": ("## S\n" + MODULE + "@shows m\n", "lesson wrong, line 12: @shows without a question before it"),
    "an option that lacks a part": ("## S\n" + MODULE + "@choose How many?\n@option 2 | Two\n", "@option VALUE | LABEL | TOLD is wanted"),
    "a module that does not end": ("## S\n" + MODULE.removesuffix("```\n"), "``` is not closed"),
    "a module before the first step": (MODULE, "a step (`## Title`) comes first"),
    "a name that is taken": ("## S\n" + MODULE + MODULE, "not the name of a new module: m"),
    "no answer": ("## S\n" + MODULE + "@number How many?\n@wrong 2 | No.\n", "lacks @answer"),
}


def main():
    if not shutil.which("node") or not shutil.which("esbuild"):
        print("skipped: no node or no esbuild (tests/dev/setup.sh browser)")
        return 77
    size = sum(f.stat().st_size for f in LESSONS.iterdir())
    assert size < LARGEST, f"the lessons have {size} bytes"
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        subprocess.run(["esbuild", SOURCE / "tests/page/lessons_run.js", "--bundle", "--platform=node", "--log-level=warning", f"--outfile={tmp}/run.js"], check=True)

        def run(folder):
            return subprocess.run(["node", tmp / "run.js", ENGINE, folder], capture_output=True, text=True, timeout=120)

        done = run(LESSONS)
        print(done.stdout + done.stderr, end="")
        assert done.returncode == 0, "a lesson has faults"
        assert [line.split(":")[0] for line in done.stdout.splitlines()] == WANTED, done.stdout
        for k, (what, (text, said)) in enumerate(WRONG.items()):
            folder = tmp / str(k)
            folder.mkdir()
            (folder / "1_wrong.md").write_text("# Wrong\n" + text)
            done = run(folder)
            assert done.returncode == 1 and said in done.stdout, f"{what}: {done.returncode}\n{done.stdout}{done.stderr}"
        decisions = json.loads((LESSONS / "decisions.json").read_text())
        first, second = decisions["decisions"][:2]
        first["producer"] = "nobody"
        second["verdict"] = {"fused": "declined", "declined": "fused"}[second["verdict"]]
        (tmp / "0" / "decisions.json").write_text(json.dumps(decisions))
        said = run(tmp / "0").stdout
        assert "decision 1: there is no nobody" in said and "decision 2: nothing tells why" in said, said
    dumps = SOURCE.resolve().parent / "shared/dumps"
    if dumps.is_dir() and shutil.which("zstd"):
        subprocess.run([sys.executable, SOURCE / "tests/dev/docs/lesson_decisions.py", dumps, "--check"], check=True)
    print(f"{len(WRONG)} wrong lessons found; {size} bytes of lessons")
    return 0


sys.exit(main())
