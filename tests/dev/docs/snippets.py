#!/usr/bin/env python3
"""Every command and snippet of README.md and docs/*.md, run in a scratch folder: snippets.py HLO_REPLAY [FILE…] [--python=PYTHON] [--keep=DIR]

Taken are fenced blocks marked sh, console or python, and indented blocks that begin with a command. Behind the mark stands what
a block needs that is not here, and then it is not run: `sh.card`, `console.network`, `python.install`; the words are in NEEDS.
A block marked `text`, or not at all, is no snippet.

Of sh each line is run (with what it continues), of console each line behind `$ `. A line is right where it exits with 0, or hlo-replay
with 1 (the answer is no), and says nothing of an internal error. A python block is run as one program. All blocks of a file share a
folder with what the words of the docs name: model.hlo, out/ (its replay), dump/ (a run that jax dumped: tests/dev/docs/jax_program.py by
PYTHON, which has jax), train.py (that program), a.npz, b.npz … A command may overwrite what its -o names. Exit 1 where one failed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
NEEDS = {"card": "a card and its driver", "network": "a network", "install": "installs or builds for long", "jax": "jax", "ptxas": "the CUDA toolkit",
         "package": "the Python package, built", "tested": "run by a test of their own", "file": "a file that only the reader has"}
PACKAGE = ROOT / "build" / "python"  # the extension and all: -DHLO_PYTHON=ON
COMMANDS = ("hlo-replay ", "python3 ", "bash ", "cmake ", "ctest ", "cd ", "pip ", "printf ", "git ", "curl ", "XLA_FLAGS=", "$ ")
LIMIT_S = 300


def blocks(text):
    """(line, kind, what it needs, lines) of each snippet."""
    lines = text.split("\n")
    k = 0
    while k < len(lines):
        fence = re.match(r"( *)(```+|~~~+)\s*\{?\s*\.?([\w.+-]*)", lines[k])
        if fence:
            end = next((n for n in range(k + 1, len(lines)) if lines[n].strip() == fence[2]), len(lines))
            kind, _, needs = fence[3].partition(".")
            if kind in ("sh", "bash", "console", "python"):
                body = [line.removeprefix(fence[1]) for line in lines[k + 1:end]]
                yield k + 1, "sh" if kind == "bash" else kind, needs, body
            k = end + 1
        elif lines[k].startswith("    ") and (k == 0 or not lines[k - 1].strip()):
            end = k
            while end < len(lines) and (lines[end].startswith("    ") or (not lines[end].strip() and lines[end + 1:end + 2] and lines[end + 1].startswith("    "))):
                end += 1
            body = [line[4:] for line in lines[k:end]]
            if body[0].startswith(COMMANDS):
                yield k, "console" if body[0].startswith("$ ") else "sh", "", body
            k = end
        else:
            k += 1


def commands(kind, body):
    """(place in the block, command) of each line that is run."""
    at = 0
    while at < len(body):
        line = body[at]
        start = at
        at += 1
        if kind == "console":
            if not line.startswith("$ "):
                continue
            line = line[2:]
        elif not line.strip() or line.lstrip().startswith("#"):
            continue
        while line.endswith("\\") and at < len(body):
            line = line[:-1] + " " + body[at].removeprefix("> ").strip()
            at += 1
        yield start, line


class Scratch:
    def __init__(self, folder, tool, python):
        self.folder, self.tool = folder, tool
        bin_folder = folder / ".bin"
        bin_folder.mkdir(parents=True)
        (bin_folder / "hlo-replay").symlink_to(tool)
        if python:  # as it is called, so that it finds what is installed beside it
            (bin_folder / "python3").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
            (bin_folder / "python3").chmod(0o755)
        packages = [str(PACKAGE if PACKAGE.is_dir() else ROOT / "python"), os.environ.get("PYTHONPATH", "")]
        self.env = dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}", XDG_CACHE_HOME=str(folder / ".cache"), JAX_PLATFORMS="cpu",
                        PYTHONPATH=":".join(p for p in packages if p))
        self.env.pop("XLA_FLAGS", None)

    def run(self, command, shell=True):
        try:
            return subprocess.run(command if not shell else ["bash", "-c", command], cwd=self.folder, env=self.env, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"longer than {LIMIT_S} s")

    def fill(self, made):
        """What the docs name, from a folder in which it was made once."""
        for one in made.iterdir():
            if one.is_dir():
                shutil.copytree(one, self.folder / one.name, symlinks=True)
            else:
                shutil.copy(one, self.folder / one.name)
        for name in ("testdata", "tests", "docs", "python"):
            (self.folder / name).symlink_to(ROOT / name)


def make_fixtures(folder, tool, python):
    scratch = Scratch(folder, tool, python)
    shutil.copy(ROOT / "testdata/mobilenet_v1.hlo", folder / "model.hlo")
    shutil.copy(ROOT / "tests/dev/docs/jax_program.py", folder / "train.py")
    steps = ["hlo-replay model.hlo -o out", "hlo-replay exec model.hlo --out=a.npz", "cp a.npz b.npz", "cp a.npz o.npz", "cp model.hlo log.txt",
             "hlo-replay exec model.hlo --profile=before.json", "cp before.json after.json"]
    if python:
        steps += ["XLA_FLAGS='--xla_dump_to=dump --xla_dump_hlo_pass_re=.*' python3 train.py", "mkdir dump1 dump2",
                  "cp -r dump/module_0014.* dump1", "cp -r dump/module_0014.* dump2"]
    for step in steps:
        done = scratch.run(step)
        if done.returncode:
            sys.exit(f"{step}: exit {done.returncode}: {done.stderr[-2000:]}")
    shutil.rmtree(folder / ".bin")
    return folder


def clear_outputs(folder, command):
    """What the command writes may be there from an earlier one."""
    for name in re.findall(r"(?:-o|--out|--html|--emit|--inputs-out|--keep)[ =]([\w./-]+)", command):
        target = folder / name
        if target.resolve().is_relative_to(folder.resolve()) and not target.is_symlink():
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)


def wrong(command, done):
    said = done.stdout + done.stderr
    if "nothing is wrong with the module" in said:  # the reader's is wrong, ours is not
        return ""
    allowed = (0, 1) if re.search(r"(^|[|;&] *)hlo-replay ", command) else (0,)
    if done.returncode not in allowed or "internal error" in said or "Traceback" in said:
        return f"exit {done.returncode}: {said.strip()[-700:]}"
    return ""


def main():
    options = dict(w[2:].split("=", 1) for w in sys.argv[1:] if w.startswith("--"))
    tool, *files = [w for w in sys.argv[1:] if not w.startswith("--")]
    tool, python = pathlib.Path(tool).resolve(), options.get("python")
    files = [pathlib.Path(f).resolve() for f in files] or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    ran = failed = 0
    left = {}
    with tempfile.TemporaryDirectory() as temporary:
        top = pathlib.Path(options.get("keep", temporary)).resolve()
        made = make_fixtures(top / "made", tool, python)
        for file in files:
            found = list(blocks(file.read_text()))
            if not found:
                continue
            scratch = Scratch(top / file.relative_to(ROOT).as_posix().replace("/", "_"), tool, python)
            scratch.fill(made)
            for line, kind, needs, body in found:
                where = f"{file.relative_to(ROOT)}:{line}"
                if needs and needs not in NEEDS:
                    print(f"FAILED {where}: '{needs}' is none of {', '.join(NEEDS)}")
                    failed += 1
                    continue
                if needs and not (python and (needs == "jax" or (needs == "package" and PACKAGE.is_dir()))):
                    left[needs] = left.get(needs, 0) + 1
                    continue
                todo = [(0, "\n".join(body))] if kind == "python" else commands(kind, body)
                for at, command in todo:
                    command = command.replace("/tmp/xla_dump", "dump")  # what --help calls a dump
                    clear_outputs(scratch.folder, command)
                    done = scratch.run(["python3", "-c", command], shell=False) if kind == "python" else scratch.run(command)
                    ran += 1
                    if why := wrong(command, done):
                        failed += 1
                        print(f"FAILED {file.relative_to(ROOT)}:{line + 1 + at}: {command.splitlines()[0]}\n    {why}", flush=True)
    print(f"{ran} commands run, {failed} failed; blocks left out: {', '.join(f'{n} for {NEEDS[k]}' for k, n in sorted(left.items())) or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
