#!/usr/bin/env python3
"""Builds the wheel: python/build_wheel.py [--build FOLDER] [--out FOLDER] [--machine=x86_64|aarch64]

scikit-build-core (python/pyproject.toml) makes it: one libhlo_replay.so with LLVM and all other libraries inside, over it
the command and two extensions, for CPython 3.11 and for the stable ABI of 3.12 and later. What it does not know is done
here: headers of a newer CPython (Debian 13's, unpacked next to them), an older glibc to link against (wheel_parts.py), a look
at every symbol that is asked for (wheel_symbols.py), licences, and the platform's name. Left to the machine: glibc 2.28
or newer and libgcc, and what is loaded only where found (OpenBLAS, oneDNN, Graphviz, CUDA).

For another machine than this one (--machine=aarch64) this machine's wheel is made first; its binaries are replaced by
those that Debian's g++-aarch64-linux-gnu makes with Debian's LLVM for that machine.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import wheel_parts
import wheel_symbols

ROOT = wheel_parts.ROOT
MOST_BYTES = 60_000_000
# Their licences travel, too.
COMPILED_IN = ["llvm-19-dev", "nlohmann-json3-dev", "libcli11-dev", "libdtl-dev", "libjs-codemirror",
               "libfmt-dev", "libprotobuf-dev", "libzip-dev", "libzstd-dev", "zlib1g-dev", "libstdc++-12-dev"]


def stable_headers(machine):
    """Include folders of a CPython that has the stable ABI of 3.12: Debian 13's; any from 3.12 on would do."""
    include = wheel_parts.unpacked("trixie", machine, "libpython3.13-dev") / "usr" / "include"
    return [next(include.glob("python3.*")), include]


def complete(wheel, strip="strip"):
    """Strips what was linked, adds all licences and README; unpacked in a folder."""
    program = wheel / "hlo_replay" / "bin" / "hlo-replay"
    linked = [program, *(wheel / "hlo_replay").glob("*.so"), *(wheel / "hlo_replay" / "lib").glob("*.so*")]
    subprocess.run([strip, "--strip-unneeded", *linked], check=True)
    program.chmod(0o755)
    info = next(wheel.glob("*.dist-info"))
    licences = info / "licenses"
    licences.mkdir(exist_ok=True)
    shutil.copy(ROOT / "LICENSE", licences)
    shutil.copy(ROOT / "viewer" / "engine" / "made" / "emscripten.copyright", licences / "emscripten.txt")
    for package in COMPILED_IN:
        shutil.copy(pathlib.Path("/usr/share/doc", package, "copyright"), licences / f"{package}.txt")
    fields, body = (info / "METADATA").read_text().rstrip("\n") + "\n", (ROOT / "README.md").read_text()
    fields += "".join(f"License-File: {p.name}\n" for p in sorted(licences.iterdir()))
    (info / "METADATA").write_text(f"{fields}Description-Content-Type: text/markdown\n\n{body}")


def configured(machine):
    """CMake's definitions for the wheel of that machine."""
    defined = {"HLO_PYTHON_STABLE_HEADERS": ";".join(map(str, stable_headers(machine))),
               "HLO_OLDER_GLIBC": wheel_parts.older_glibc(machine)}
    if machine == os.uname().machine:
        return {**defined, "HLO_ARCHIVES": wheel_parts.archives(machine)}
    root, triplet = wheel_parts.other_machine(machine), f"{machine}-linux-gnu"
    archives = wheel_parts.archives(machine, f"{triplet}-")
    return {**defined, "HLO_ARCHIVES": archives, "CMAKE_TOOLCHAIN_FILE": ROOT / "python" / f"{machine}.cmake",
            "CMAKE_CXX_FLAGS": f"-isystem {root}/usr/include/{triplet}", "HLO_LLVM_ROOT": root,
            "HLO_LIBZ": root / "usr" / "lib" / triplet / "libz.a", "HLO_LIBZSTD": root / "usr" / "lib" / triplet / "libzstd.a",
            "ZLIB_LIBRARY": root / "usr" / "lib" / triplet / "libz.a", "ZLIB_INCLUDE_DIR": root / "usr" / "include",
            "Protobuf_LIBRARY": archives / "libprotobuf.a", "Protobuf_INCLUDE_DIR": "/usr/include",
            "fmt_DIR": f"/usr/lib/{os.uname().machine}-linux-gnu/cmake/fmt",  # its headers serve every machine
            "HLO_PYTHON_HEADERS": f"{root}/usr/include/python3.11;{root}/usr/include",
            "HLO_PYTHON_SUFFIX": f".cpython-311-{triplet}.so", "Python_EXECUTABLE": ROOT / "build" / "venv" / "bin" / "python",
            "HLO_PYTHON": "ON", "HLO_SHARED_COMMAND": "ON", "HLO_STATIC_LLVM": "ON", "HLO_UNITY": "ON", "HLO_LINES": "OFF",
            "SKBUILD": "ON", "CMAKE_BUILD_TYPE": "RelWithDebInfo"}


def cross_built(machine, build, unpacked):
    """Replaces the binaries in an unpacked wheel of this machine by those for another, and its tag."""
    tree = build / f"tree-{machine}"
    defined = configured(machine)
    subprocess.run(["cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", *(f"-D{name}={value}" for name, value in defined.items())],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", tree, "--target", "hlo_python", "-j2"], check=True)
    for path in unpacked.rglob("*"):
        if path.is_file() and wheel_symbols.is_elf(path):
            path.unlink()
    subprocess.run(["cmake", "--install", tree, "--component", "wheel", "--prefix", unpacked], check=True,
                   stdout=subprocess.DEVNULL)
    about = next(unpacked.glob("*.dist-info")) / "WHEEL"
    about.write_text(about.read_text().replace(os.uname().machine, machine))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-wheel", help="where it is compiled")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-wheel" / "dist", help="where the wheel goes")
    parser.add_argument("--machine", choices=sorted(wheel_parts.DEBIAN), default=os.uname().machine, help="whose wheel")
    args = parser.parse_args()
    folder, out, here = args.build.resolve(), args.out.resolve(), os.uname().machine
    subprocess.run(["bash", ROOT / "tests" / "dev" / "setup.sh", "python",
                    *([args.machine] if args.machine != here else [])], check=True)
    tag = f"py3-none-manylinux_{'_'.join(map(str, wheel_symbols.GLIBC))}_{here}"
    made = folder / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    out.mkdir(parents=True, exist_ok=True)
    python = ROOT / "build" / "venv" / "bin" / "python"
    defined = configured(here)
    subprocess.run([python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--wheel-dir", made,
                    "-C", f"build-dir={folder / 'tree'}", "-C", f"wheel.tags={tag}",
                    *(word for name, value in defined.items() for word in ("-C", f"cmake.define.{name}={value}")),
                    ROOT / "python"], check=True)
    unpacked = made / "unpacked"
    with zipfile.ZipFile(next(made.glob("*.whl"))) as archive:
        archive.extractall(unpacked)
    if args.machine != here:
        cross_built(args.machine, folder, unpacked)
    complete(unpacked, "strip" if args.machine == here else f"{args.machine}-linux-gnu-strip")
    found = wheel_symbols.faults(unpacked)
    if found:
        sys.exit("\n".join(f"error: {fault}" for fault in found))
    subprocess.run([python, "-m", "wheel", "pack", "--dest-dir", out, unpacked], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"})  # the same input makes the same bytes
    tag = tag.replace(here, args.machine)
    wheel = max(out.glob(f"hlo_replay-*-{tag}.whl"), key=lambda path: path.stat().st_mtime)
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB, sha256 {hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]}")
    if size > MOST_BYTES:
        sys.exit(f"error: more than {MOST_BYTES // 1_000_000} MB")


main()
