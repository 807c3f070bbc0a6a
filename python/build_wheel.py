#!/usr/bin/env python3
"""Builds the wheel: python/build_wheel.py [--build FOLDER] [--out FOLDER]

scikit-build-core (python/pyproject.toml) makes it: one libhlo_replay.so with LLVM inside, over it the command and two
extensions, for CPython 3.11 and for the stable ABI of 3.12 and later. What it does not know is done here: headers of a
newer CPython (Debian 13's, unpacked beside), the shared libraries that a bare machine lacks, which travel along under
the library's RPATH, their licences, and the platform's name. Left to the machine: libc and libstdc++, and what is
loaded only where found (OpenBLAS, oneDNN, Graphviz, CUDA). The wheel runs on any glibc that is not older than this
machine's.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hlo-replay"
MOST_BYTES = 60_000_000
# What every machine has that can run the wheel's Python (the list of the manylinux rules, as far as we need it).
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6",
                 "libgcc_s.so.1", "ld-linux-x86-64.so.2", "linux-vdso.so.1"}
COMPILED_IN = ["llvm-19-dev", "nlohmann-json3-dev", "libcli11-dev", "libdtl-dev", "libjs-codemirror", "emscripten"]  # their licences travel, too
STABLE_HEADERS = "libpython3.13-dev"  # of Debian 13; any CPython from 3.12 on would do for the stable ABI


def said(*command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def stable_headers():
    """Include folders of a CPython that has the stable ABI of 3.12; fetched once from Debian's mirror, by apt."""
    home = CACHE / STABLE_HEADERS
    if not home.is_dir():
        mirror = said("apt-get", "indextargets", "--format", "$(SITE)", "Identifier: Packages", "Codename: bookworm",
                      "Component: main").split()[0]
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            work = pathlib.Path(made)
            for folder in ("lists/partial", "cache/archives/partial", "out"):
                (work / folder).mkdir(parents=True)
            (work / "sources.list").write_text(
                f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} trixie main\n")
            apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={work}/lists", "-o", f"Dir::Cache={work}/cache",
                   "-o", f"Dir::Etc::sourcelist={work}/sources.list", "-o", "Dir::Etc::sourceparts=-",
                   "-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User=root"]
            subprocess.run([*apt, "update"], check=True, cwd=work)
            subprocess.run([*apt, "download", STABLE_HEADERS], check=True, cwd=work)
            subprocess.run(["dpkg-deb", "-x", next(work.glob("*.deb")), work / "out"], check=True)
            (work / "out").rename(home)
    include = home / "usr" / "include"
    return [next(include.glob("python3.*")), include]


def libraries(library):
    """Paths of the shared libraries that travel, by the name under which they are asked for."""
    found = {}
    for line in said("ldd", library).splitlines():
        words = line.split()
        name = os.path.basename(words[0])
        if name in OF_THE_SYSTEM:
            continue
        if len(words) < 3 or not words[2].startswith("/"):
            sys.exit(f"error: {name} is not on this machine")
        found[name] = pathlib.Path(words[2])
    return found


def package_of(library):
    # Debian lists a file under /usr/lib or, of older days, under /lib.
    path = str(library.resolve())
    for spelled in (path, path.removeprefix("/usr"), "/usr" + path):
        asked = subprocess.run(["dpkg-query", "-S", spelled], text=True, capture_output=True, check=False)
        if asked.returncode == 0:
            return asked.stdout.split(":")[0]
    sys.exit(f"error: no package owns {path}: its licence is not known")


def complete(wheel):
    """Strips what was linked, adds the libraries that travel and all licences; unpacked in a folder."""
    program = wheel / "hlo_replay" / "bin" / "hlo-replay"
    linked = [program, *(wheel / "hlo_replay").glob("*.so"), *(wheel / "hlo_replay" / "lib").glob("*.so*")]
    subprocess.run(["strip", "--strip-unneeded", *linked], check=True)
    program.chmod(0o755)
    packages = set(COMPILED_IN)
    for name, path in libraries(program).items():
        if path.is_relative_to(wheel):
            continue
        shutil.copy(path.resolve(), wheel / "hlo_replay" / "lib" / name)
        packages.add(package_of(path))
    info = next(wheel.glob("*.dist-info"))
    licences = info / "licenses"
    licences.mkdir(exist_ok=True)
    shutil.copy(ROOT / "LICENSE", licences)
    for package in sorted(packages):
        shutil.copy(pathlib.Path("/usr/share/doc", package, "copyright"), licences / f"{package}.txt")
    fields, body = (info / "METADATA").read_text().rstrip("\n") + "\n", (ROOT / "README.md").read_text()
    fields += "".join(f"License-File: {p.name}\n" for p in sorted(licences.iterdir()))
    (info / "METADATA").write_text(f"{fields}Description-Content-Type: text/markdown\n\n{body}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-wheel", help="where it is compiled")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-wheel" / "dist", help="where the wheel goes")
    args = parser.parse_args()
    folder, out = args.build.resolve(), args.out.resolve()
    subprocess.run(["bash", ROOT / "tests" / "dev" / "setup.sh", "python", "engine"], check=True)
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{os.uname().machine}"
    made = folder / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    out.mkdir(parents=True, exist_ok=True)
    python = ROOT / "build" / "venv" / "bin" / "python"
    headers = ";".join(map(str, stable_headers()))
    subprocess.run([python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--wheel-dir", made,
                    "-C", f"build-dir={folder / 'tree'}", "-C", f"wheel.tags={tag}",
                    "-C", f"cmake.define.HLO_PYTHON_STABLE_HEADERS={headers}", ROOT / "python"], check=True)
    unpacked = made / "unpacked"
    with zipfile.ZipFile(next(made.glob("*.whl"))) as archive:
        archive.extractall(unpacked)
    complete(unpacked)
    subprocess.run([python, "-m", "wheel", "pack", "--dest-dir", out, unpacked], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"})  # the same input makes the same bytes
    wheel = max(out.glob(f"hlo_replay-*-{tag}.whl"), key=lambda path: path.stat().st_mtime)
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB, sha256 {hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]}")
    if size > MOST_BYTES:
        sys.exit(f"error: more than {MOST_BYTES // 1_000_000} MB")


main()
