#!/usr/bin/env python3
"""What a wheel's binaries ask of the system: python/wheel_symbols.py WHEEL|FOLDER

Prints for each the newest version of each library's symbols; fails where one is above what the wheel promises, where a
library is asked for that a bare machine lacks, or a symbol that is defined nowhere. Needs binutils (objdump, readelf).
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

GLIBC = (2, 28)  # Debian 10, RHEL 8, Ubuntu 20.04 and all that is younger
# Beside glibc's: gcc 8's libgcc, which came with that glibc. Of libstdc++ the wheel asks nothing.
MOST = {"GLIBC": GLIBC, "GCC": (7, 0, 0)}
OF_THE_SYSTEM = re.compile(r"lib(c\.so\.6|m\.so\.6|dl\.so\.2|pthread\.so\.0|rt\.so\.1|gcc_s\.so\.1)|ld-linux-[\w-]+\.so\.[12]")


def numbers(version):
    return tuple(map(int, version.split(".")))


def said(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def symbols(binary):
    """Of the binary: names it defines; name and version ("" where it has none) of those it asks for, weak ones apart."""
    defined, asked = set(), []
    for line in said("readelf", "-W", "--dyn-syms", binary).splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].endswith(":") or not words[0][:-1].isdigit():
            continue
        name, _, version = words[7].partition("@")
        if words[6] != "UND":
            defined.add(name)
        elif words[4] != "WEAK" or version:
            asked.append((name, version))
    return defined, asked


def faults(folder):
    """Complaints about the binaries in the folder of an unpacked wheel; prints a line about each binary."""
    found = []
    binaries = sorted(path for path in folder.rglob("*") if path.is_file() and is_elf(path))
    known = {path: symbols(path) for path in binaries}
    inside = {path.name: known[path][0] for path in binaries}
    for path in binaries:
        where = path.relative_to(folder)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "-dW", path))
        found += [f"{where} asks for {name}, which a bare machine may lack"
                  for name in needed if name not in inside and not OF_THE_SYSTEM.fullmatch(name)]
        of_ours = set().union(*(inside[name] for name in needed if name in inside))
        newest = {}
        for name, version in known[path][1]:
            library, _, number = version.partition("_")
            if not version:
                python = path.name.startswith("_hlo.") and re.match(r"_?Py", name)
                if name and name not in of_ours and not python:
                    found.append(f"{where} asks for {name}, which is defined nowhere")
            elif library not in MOST or not re.fullmatch(r"[\d.]+", number):
                found.append(f"{where} asks for {name}@{version}, of a library that differs between systems")
            else:
                newest[library] = max(newest.get(library, (0,)), numbers(number))
                if numbers(number) > MOST[library]:
                    found.append(f"{where} asks for {name}@{version}; the wheel promises {library}_{'.'.join(map(str, MOST[library]))}")
        told = ", ".join(f"{library} {'.'.join(map(str, version))}" for library, version in sorted(newest.items()))
        print(f"{where}: {path.stat().st_size / 1e6:.1f} MB, asks for {told or 'nothing of the system'}")
    return found if binaries else [f"no binaries in {folder}"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    given = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as made:
        if given.is_file():
            with zipfile.ZipFile(given) as archive:
                archive.extractall(made)
        found = faults(given if given.is_dir() else pathlib.Path(made))
    for fault in found:
        print(f"error: {fault}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
