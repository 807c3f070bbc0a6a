#!/usr/bin/env python3
"""Instructions (callgrind) of two builds side by side: parse, print, passes, replay, on named corpus modules.

  bench_instructions.py BASE_HLO_REPLAY HLO_REPLAY [--json OUT] [FILE…]

Small differences of time drown in noise; callgrind counts. Printed: instructions of each, in millions, and their ratio.
Of `replay` the fixed part (start, LLVM's constructors) is taken off: what `--version` takes."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parents[4] / "shared" / "corpus"
NAMED = ["xla__tools_data__mobilenet_v2", "rocm__resnet50__infer__1gpu__predict_step_m1589", "rocm__imagenette__train__allgpu__train_step_m0747",
         "rocm__detr__infer__1gpu__predict_step_m0468", "rocm__llama3_8b__train__allgpu__train_step_m0099"]
PASSES = "algsimp,cse,dce,tuple-simplifier,constant-folding,reshape-mover"


def instructions(command):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, command)], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if not found or run.returncode > 1:
        sys.exit(f"{command}: {run.stderr[-2000:]}")
    return int(found[1])


def works(binary, file, folder):
    out = folder / "out"
    yield "parse", [binary, "stats", file]
    yield "print", [binary, "fmt", file]
    yield "passes", [binary, "opt", f"--passes={PASSES}", file]
    yield "replay", [binary, "replay", file, "--pipeline=xla-gpu", "--formats=text", "-o", out, "--force"]


def main():
    words = sys.argv[1:]
    out = words.pop(words.index("--json") + 1) if "--json" in words else None
    words = [w for w in words if w != "--json"]
    base, new, files = words[0], words[1], [pathlib.Path(f) for f in words[2:]] or [CORPUS / f"{n}.hlo.txt" for n in NAMED]
    start = {b: instructions([b, "--version"]) for b in (base, new)}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for file in files:
            both = zip(works(base, file, folder), works(new, file, folder))
            for (what, one), (_, two) in both:
                counts = []
                for binary, command in ((base, one), (new, two)):
                    counts.append(instructions(command) - start[binary])
                    shutil.rmtree(folder / "out", ignore_errors=True)
                rows.append({"module": file.name.removesuffix(".hlo.txt"), "work": what, "base": counts[0], "new": counts[1], "ratio": counts[1] / counts[0]})
                r = rows[-1]
                print(f"{r['module'][:48]:48} {what:8} {counts[0] / 1e6:10.1f} M {counts[1] / 1e6:10.1f} M  {r['ratio']:.3f}", flush=True)
    print(f"worst {max(r['ratio'] for r in rows):.3f}")
    if out:
        pathlib.Path(out).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
