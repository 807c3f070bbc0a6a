#!/usr/bin/env python3
"""clang-tidy over the batches of a build folder: tests/dev/tidy.py BUILD [--all] [--jobs N]

Without --all it judges what changed since the commit in tests/dev/tidy_base.txt, at which the whole tree was clean: the
batches that hold a changed source, and for a changed header one batch that includes it. --all judges every batch, and
writes HEAD into that file when all are clean and nothing is uncommitted. Exit code 1 where clang-tidy found something.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ROOT / "tests/dev/tidy_base.txt"
# Not ours to judge, or judged by their own tools.
WITHOUT = re.compile(r"/tests/|\.pb\.cc$|/assets\.cc$|/nb_combined\.cpp$|_data\.cc$|/cmake_pch\.")


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)


def changed_files():
    """Paths below ROOT that differ from the base; None where the base is not known here."""
    base = BASE.read_text().split()[0] if BASE.exists() else ""
    if not base or git("cat-file", "-e", base + "^{commit}").returncode != 0:
        return None
    names = git("diff", "--name-only", "--no-renames", "--diff-filter=d", base).stdout.splitlines()
    names += git("ls-files", "--others", "--exclude-standard").stdout.splitlines()
    if any(name in (".clang-tidy", "tests/dev/tidy.py") for name in names):
        return None
    return {name for name in names if name.endswith((".cc", ".h", ".def"))}


def members(batch):
    """The sources of a batch, the batch itself where it is one file."""
    text = pathlib.Path(batch).read_text(errors="replace")
    found = re.findall(r'#include "([^"]+\.(?:cc|cpp))"', text) if "/Unity/" in batch else []
    return found or [batch]


def below_root(path):
    try:
        return pathlib.Path(path).resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return None


def wanted(batches, changed):
    """The batches that hold what changed; of a header the first that names it."""
    chosen, seen = [], set()
    headers = {name for name in changed if not name.endswith(".cc")}
    for batch in batches:
        sources = [name for name in map(below_root, members(batch)) if name]
        named = set()
        for source in sources:
            text = (ROOT / source).read_text(errors="replace")
            named |= {h for h in re.findall(r'#include "([^"]+)"', text) if h in headers}
            own = str(pathlib.PurePosixPath(source).with_suffix(".h"))
            named |= {own} & headers
        if changed.intersection(sources) or named - seen:
            chosen.append(batch)
            seen |= named
    return chosen


def without_precompiled(command):
    """clang cannot read g++'s precompiled headers: the command without them."""
    words, out, skip = shlex.split(command), [], False
    for k, word in enumerate(words):
        if skip:
            skip = False
        elif word == "-include" and "cmake_pch" in words[k + 1]:
            skip = True
        elif word not in ("-Winvalid-pch", "-fpch-preprocess") and not word.startswith("--param="):
            out.append(word)
    return shlex.join(out)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("--all", action="store_true")
    options.add_argument("--jobs", type=int, default=2)
    a = options.parse_args()
    rows = json.loads((a.build / "compile_commands.json").read_text())
    rows = [{**row, "command": without_precompiled(row["command"])} for row in rows if not WITHOUT.search(row["file"])]
    folder = a.build / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(rows))
    batches = sorted({row["file"] for row in rows})
    changed = None if a.all else changed_files()
    chosen = batches if changed is None else wanted(batches, changed)
    print(f"{len(chosen)} of {len(batches)} batches", flush=True)

    def judge(batch):
        return subprocess.run(["clang-tidy", "-p", str(folder), "--quiet", batch], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for batch, run in zip(chosen, pool.map(judge, chosen)):
            if run.returncode != 0:
                failed += 1
                print(f"{batch}: clang-tidy ended with {run.returncode}\n{run.stdout}", flush=True)
    if a.all and not failed and not git("status", "--porcelain").stdout:
        BASE.write_text(git("rev-parse", "HEAD").stdout)
    return 1 if failed else 0


sys.exit(main())
