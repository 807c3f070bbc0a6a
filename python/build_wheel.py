#!/usr/bin/env python3
"""Builds the wheel: python/build_wheel.py [--build FOLDER] [--out FOLDER]

The program with LLVM inside, beside it the shared libraries that a bare machine lacks, found through the program's
RPATH. Left to the machine: libc and libstdc++, and what is loaded only where found (OpenBLAS, oneDNN, Graphviz, CUDA).
The wheel runs on any glibc that is not older than this machine's.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_BYTES = 60_000_000
# What every machine has that can run the wheel's Python (the list of the manylinux rules, as far as we need it).
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6",
                 "libgcc_s.so.1", "ld-linux-x86-64.so.2", "linux-vdso.so.1"}
COMPILED_IN = ["llvm-19-dev", "nlohmann-json3-dev", "libcli11-dev", "libdtl-dev"]  # their licences travel, too


def said(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def build(folder):
    subprocess.run(["bash", ROOT / "tests" / "dev" / "setup.sh"], check=True)
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DHLO_STATIC_LLVM=ON", "-DHLO_UNITY=ON",
                    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib",
                    "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags"],  # RPATH, which libraries of libraries heed
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", "hlo-replay"], check=True)
    return folder / "bin" / "hlo-replay"


def libraries(program):
    """Paths of the shared libraries that travel, by the name under which they are asked for."""
    found = {}
    for line in said("ldd", program).splitlines():
        words = line.split()
        name = os.path.basename(words[0])
        if name in OF_THE_SYSTEM:
            continue
        if len(words) < 3 or not words[2].startswith("/"):
            sys.exit(f"error: {name} is not on this machine")
        found[name] = pathlib.Path(words[2])
    return found


def licence(package):
    return pathlib.Path("/usr/share/doc", package, "copyright").read_bytes()


def package_of(library):
    # Debian lists a file under /usr/lib or, of older days, under /lib.
    path = str(library.resolve())
    for spelled in (path, path.removeprefix("/usr"), "/usr" + path):
        asked = subprocess.run(["dpkg-query", "-S", spelled], text=True, capture_output=True, check=False)
        if asked.returncode == 0:
            return asked.stdout.split(":")[0]
    sys.exit(f"error: no package owns {path}: its licence is not known")


def contents(program, version, tag, folder):
    """Yields (path in the wheel, bytes, may be executed)."""
    stripped = folder / "hlo-replay.stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    yield "hlo_replay/bin/hlo-replay", stripped.read_bytes(), True
    packages = set(COMPILED_IN)
    for name, path in sorted(libraries(program).items()):
        yield f"hlo_replay/lib/{name}", path.read_bytes(), True
        packages.add(package_of(path))
    for source in sorted((ROOT / "python" / "hlo_replay").glob("*.py")):
        yield f"hlo_replay/{source.name}", source.read_bytes(), False
    info = f"hlo_replay-{version}.dist-info"
    readme = (ROOT / "README.md").read_text()
    licences = ["LICENSE"] + sorted(f"{package}.txt" for package in packages)
    fields = ["Metadata-Version: 2.1", "Name: hlo-replay", f"Version: {version}",
              "Summary: Reads HLO, XLA's IR, replays its passes one by one, runs any stage, and shows them all",
              "License: Apache-2.0", *(f"License-File: {name}" for name in licences), "Requires-Python: >=3.8",
              "Classifier: License :: OSI Approved :: Apache Software License",
              "Classifier: Operating System :: POSIX :: Linux", "Description-Content-Type: text/markdown"]
    yield f"{info}/METADATA", ("\n".join(fields) + "\n\n" + readme).encode(), False
    yield f"{info}/WHEEL", (f"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\n"
                            f"Tag: {tag}\n").encode(), False
    yield f"{info}/entry_points.txt", b"[console_scripts]\nhlo-replay = hlo_replay:main\n", False
    yield f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), False
    for package in sorted(packages):
        yield f"{info}/licenses/{package}.txt", licence(package), False


def write(path, files, info):
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, data, executable):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same input makes the same bytes
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)

        for name, data, executable in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, executable)
        add(f"{info}/RECORD", ("".join(record) + f"{info}/RECORD,,\n").encode(), False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-wheel", help="where it is compiled")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-wheel" / "dist", help="where the wheel goes")
    args = parser.parse_args()
    folder, out = args.build.resolve(), args.out.resolve()
    version = re.search(r"^project\(hlo_replay VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{os.uname().machine}"
    program = build(folder)
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"hlo_replay-{version}-{tag}.whl"
    write(wheel, contents(program, version, tag, folder), f"hlo_replay-{version}.dist-info")
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        sys.exit(f"error: more than {MOST_BYTES // 1_000_000} MB")


main()
