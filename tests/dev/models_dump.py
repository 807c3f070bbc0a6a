#!/usr/bin/env python3
"""Has XLA compile what models.py wrote, a dump a program, as final_all.py and thunk_kinds.py take them:

  ORACLE_PYTHON models_dump.py HLO_DIR DUMPS [WORD…]

Each HLO_DIR/NAME.hlo for one described GPU, HLO_DIR/devices_N/NAME.hlo for N of them, into DUMPS/NAME (left alone where it is there).
Kernels' code is taken out of the dumps again, which is most of their bytes. Exit code 1 where XLA refused a program: it is named."""
import os
import pathlib
import subprocess
import sys

XLA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "oracle" / "xla.py"
FLAGS = "--xla_dump_hlo_as_proto --xla_dump_hlo_as_text"


def compiled(source, dump, partitions):
    python = os.environ.get("HLO_ORACLE_PYTHON", sys.executable)  # newest.sh starts Python by a loader of its own
    command = [python, XLA, "compile", source, "--backend", "gpu", "--dump", dump, "--large-constants", "--flags", FLAGS]
    done = subprocess.run(list(map(str, command + ["--partitions", partitions])), capture_output=True, text=True)
    for file in dump.glob("*"):
        if file.suffix in (".ll", ".ptx", ".o", ".bc", ".mlir"):
            file.unlink()
    return done


def main():
    root, dumps, words = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    refused = False
    for source in sorted([*root.glob("*.hlo"), *root.glob("devices_*/*.hlo")]):
        dump = dumps / source.stem
        if dump.exists() or words and not any(word in source.stem for word in words):
            continue
        partitions = source.parent.name.removeprefix("devices_") if source.parent != root else 1
        done = compiled(source, dump, partitions)
        told = done.stdout.strip().split("\n")[-1] if not done.returncode else f"refused ({done.returncode}): {done.stderr.strip()[-300:]}"
        print(f"{source.stem:<32} {told}", flush=True)
        refused |= bool(done.returncode)
    sys.exit(refused)


main()
