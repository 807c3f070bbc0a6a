"""What users get of the library: the names that the shared library exports, the installed prefix, and docs/example
built against it.

install_test.py SOURCE_FOLDER BUILD_FOLDER LIBRARY
"""
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD, LIBRARY = map(pathlib.Path, sys.argv[1:4])
FAILED = []
passed = 0


def check(holds, what):
    global passed
    if holds:
        passed += 1
    else:
        FAILED.append(what)
        print("FAILED:", what)


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, check=False, **more)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-4000:])
    check(done.returncode == 0, f"exit code {done.returncode} of {' '.join(map(str, words))[:200]}")
    return done.stdout


def exported():
    """Every name is of include/hlo/: a class, a function or the exception's type."""
    headers = "\n".join(h.read_text() for h in (SOURCE / "include/hlo").glob("*.h"))
    classes = set(re.findall(r"class HLO_EXPORT (\w+)", headers))
    functions = set(re.findall(r"HLO_EXPORT [\w:<>,&* ]*?[ >&*](\w+)\(", headers))
    check(len(classes) >= 9 and len(functions) >= 20, f"the headers declare {len(classes)} classes, {len(functions)} functions")
    seen = set()
    for line in run("nm", "-D", "-C", "--defined-only", LIBRARY).splitlines():
        name = line.split(" ", 2)[2]
        found = re.fullmatch(r"(?:typeinfo for |typeinfo name for |vtable for )?hlo::api::(\w+)(::.*|\(.*\).*|\[abi.*)?", name)
        known = found and found.group(1) in (classes | functions)
        check(known, f"exported, and in no header: {name}")
        if found:
            seen.add(found.group(1))
    check(functions <= seen, f"declared and not exported: {functions - seen}")


def headers_stand_alone():
    """Standard C++ and their own, nothing else."""
    for header in sorted((SOURCE / "include/hlo").glob("*.h")):
        for name in re.findall(r'#include [<"]([^>"]+)', header.read_text()):
            check(name.startswith("hlo/") or re.fullmatch(r"[a-z_]+", name), f"{header.name} includes {name}")


def example(folder):
    prefix, build = folder / "prefix", folder / "build"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    for path in ("include/hlo/hlo.h", "bin/hlo-replay"):
        check((prefix / path).is_file(), f"{path} is not installed")
    check(list(prefix.glob("lib*/**/hlo_replayConfigVersion.cmake")), "no version file is installed")
    run("cmake", "-S", SOURCE / "docs/example", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    run("cmake", "--build", build)
    said = run(build / "example")
    for words in ("same is a multiply of shape f32[4]{0}", "dce: 1 rewrite", "{2, 4, 6, 8} both times", "line 4: "):
        check(words in said, f"the example does not say '{words}':\n{said}")
    check("hlo-replay" in run(prefix / "bin/hlo-replay", "--version"), "the installed command has no version")


exported()
headers_stand_alone()
with tempfile.TemporaryDirectory() as scratch:
    example(pathlib.Path(scratch))
documented = (SOURCE / "docs/library.md").read_text()
check((SOURCE / "docs/example/main.cc").read_text() in documented, "docs/library.md does not show docs/example/main.cc as it is")
print(f"{passed} passed, {len(FAILED)} failed")
sys.exit(1 if FAILED else 0)
