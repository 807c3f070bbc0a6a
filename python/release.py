#!/usr/bin/env python3
"""One folder to upload: python/release.py [--out FOLDER] [--machines=x86_64,aarch64] [--parts=wheels,sdist,docs] [--rehearsal]

Wheels, a source archive that pip builds, docs as a site, a Dockerfile, SHA256SUMS and what CHANGELOG.md says of the
version. Refuses, by name, what is not committed, a version that CHANGELOG.md does not have or calls unreleased, a tag
that is there already, an engine of the page that is older than its sources, a machine whose wheel cannot be built
here. --rehearsal makes the folder all the same, from what is committed, and says what a release would be refused for.
"""
import argparse
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import wheel_parts

ROOT = wheel_parts.ROOT


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, stdout=subprocess.PIPE).stdout


def version():
    return re.search(r"project\(hlo_replay VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def changes(of):
    """CHANGELOG.md's section about that version, its heading first; empty where it has none."""
    section = re.search(rf"^## {re.escape(of)}\b.*?(?=^## |\Z)", (ROOT / "CHANGELOG.md").read_text(), re.M | re.S)
    return section[0].rstrip() + "\n" if section else ""


def refusals(of):
    """Why this is no release."""
    told = changes(of)
    if not told:
        yield f"CHANGELOG.md has no section `## {of}`"
    elif not re.match(rf"## {re.escape(of)} \(\d{{4}}-\d\d-\d\d\)\n", told):
        yield f"CHANGELOG.md's heading is `{told.splitlines()[0]}`; a release's is `## {of} (YEAR-MONTH-DAY)`"
    elif len(told.splitlines()) < 3:
        yield f"CHANGELOG.md says nothing of {of}"
    if git("status", "--porcelain", "--untracked-files=no"):
        yield "there are changes that are not committed"
    made = subprocess.run(["sha256sum", "--check", "--quiet", "viewer/engine/made/inputs.sha256"], cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode:
        yield f"the page's engine is older than {made.stdout.partition(':')[0]}: bash tests/dev/engine_made.sh"
    if git("tag", "--list", f"v{of}").strip():
        yield f"there is a tag v{of} already"


def metadata(of):
    """PKG-INFO of the source archive, as python/pyproject.toml says it; older Pythons, without an extension, take the wheel."""
    project = (ROOT / "python" / "pyproject.toml").read_text()
    said = {key: re.search(rf'^{key} = "([^"]*)"', project, re.M)[1] for key in ("description", "license")}
    requires = re.search(r"^dependencies = \[(.*)\]", project, re.M)[1]
    lines = ["Metadata-Version: 2.4", "Name: hlo-replay", f"Version: {of}", f"Summary: {said['description']}",
             f"License-Expression: {said['license']}", "License-File: LICENSE", "Requires-Python: >=3.11",
             *(f"Requires-Dist: {one}" for one in re.findall(r'"([^"]*)"', requires)),
             "Description-Content-Type: text/markdown", "", (ROOT / "README.md").read_text()]
    return "\n".join(lines)


def from_the_root():
    """python/pyproject.toml as it has to be at the root."""
    text = (ROOT / "python" / "pyproject.toml").read_text()
    first = text.splitlines()[0]
    for was, is_now in ((first, "# Made by python/release.py. `bash tests/dev/setup.sh` installs what a build needs, on Debian 12."),
                        ('requires-python = ">=3.9" # before 3.11 the command alone: hlo_replay/__init__.py',
                         'requires-python = ">=3.11"'),
                        ('cmake.source-dir = ".."', 'cmake.source-dir = "."'),
                        ('wheel.packages = ["hlo_replay"]', 'wheel.packages = ["python/hlo_replay"]'),
                        ('input = "../CMakeLists.txt"', 'input = "CMakeLists.txt"')):
        if was not in text:
            sys.exit(f"error: python/pyproject.toml has no `{was}`")
        text = text.replace(was, is_now)
    return text


def sdist(of, out):
    """The source archive: what is committed, and at its root what pip looks for."""
    name = f"hlo_replay-{of}"
    when = int(git("log", "-1", "--format=%ct"))
    path = out / f"{name}.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(git("archive", f"--prefix={name}/", "HEAD"))) as committed, \
            path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=when, filename="") as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made:
        for entry in committed:
            made.addfile(entry, committed.extractfile(entry) if entry.isfile() else None)
        for added, text in (("PKG-INFO", metadata(of)), ("pyproject.toml", from_the_root())):
            entry = tarfile.TarInfo(f"{name}/{added}")
            entry.size, entry.mtime, entry.mode = len(text.encode()), when, 0o644
            made.addfile(entry, io.BytesIO(text.encode()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-wheel" / "release", help="the folder; made again")
    parser.add_argument("--machines", default=",".join(wheel_parts.DEBIAN), help="whose wheels")
    parser.add_argument("--parts", default="wheels,sdist,docs")
    parser.add_argument("--rehearsal", action="store_true")
    args = parser.parse_args()
    machines, parts, of, out = args.machines.split(","), args.parts.split(","), version(), args.out.resolve()
    unknown = [*(m for m in machines if m not in wheel_parts.DEBIAN), *(p for p in parts if p not in ("wheels", "sdist", "docs"))]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    refused = list(refusals(of))
    for why in refused:
        print(f"{'a release would be refused' if args.rehearsal else 'error'}: {why}", file=sys.stderr)
    if refused and not args.rehearsal:
        sys.exit(1)
    if out.exists() and not (out / "SHA256SUMS").exists() and any(out.iterdir()):
        sys.exit(f"error: {out} is there and no release of before: it is left alone")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "SHA256SUMS").write_text("")  # until it is complete
    for machine in machines if "wheels" in parts else []:
        made = subprocess.run([sys.executable, ROOT / "python" / "build_wheel.py", f"--machine={machine}", f"--out={out}"], check=False)
        if made.returncode:
            sys.exit(f"error: no wheel for {machine}: see above; --machines= leaves it out")
    if "sdist" in parts:
        sdist(of, out)
    if "docs" in parts:
        subprocess.run(["bash", ROOT / "tests" / "dev" / "docs.sh", out / "site"], check=True)
    (out / "CHANGES.md").write_text(changes(of))
    shutil.copy(ROOT / "python" / "Dockerfile", out)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out)}\n"
            for path in sorted(out.rglob("*")) if path.is_file() and path.name != "SHA256SUMS"]
    (out / "SHA256SUMS").write_text("".join(sums))
    for path in sorted(out.iterdir()):
        size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
        print(f"{size / 1e6:8.1f} MB  {os.path.relpath(path)}")
    print(f"hlo-replay {of}: {out}" + (" (a rehearsal)" if args.rehearsal else ""))


main()
