#!/usr/bin/env python3
"""Does `whatif --disable` move kernels, bytes and peak as XLA's own move when it compiles without the pass?

  ORACLE_PYTHON whatif_shows.py TOOL WORK [--pass P,Q] [--json FILE] MODULE…

Each module is compiled by the oracle as it is and with --xla_disable_hlo_passes=P, for each P; ours starts from XLA's own
before_optimizations. Kernels and bytes of XLA's final modules are counted by `cost`, as ours are; its peak is its own live
range. A row says both changes; `sign`: both go the same way (or neither goes anywhere), `size`: ours as a part of XLA's.
The last lines count, by figure, in how many rows the sign is XLA's and in how many the size is within a tenth of the
larger side's whole figure."""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

ORACLE = pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"
PASSES = "priority-fusion,multi_output_fusion,algsimp,triton-gemm-rewriter,cse"
FIGURES = ("kernels", "bytes", "peak")


def asked(tool, *words):
    done = subprocess.run([tool, *map(str, words), "--json"], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr.strip()[-200:]


def compiled(module, folder, disabled):
    """The number of its module in the oracle's dump of it, and how it is asked for; None where XLA refuses."""
    if not folder.exists():
        command = [sys.executable, ORACLE / "xla.py", "compile", module, "--backend", "gpu", "--dump", folder, "--large-constants"]
        done = subprocess.run(list(map(str, command + (["--disable", disabled] if disabled else []))), capture_output=True, text=True)
        if done.returncode:
            print(f"{module.name} without {disabled or 'nothing'}: XLA refuses: {done.stderr.strip()[-200:]}", file=sys.stderr)
            shutil.rmtree(folder, ignore_errors=True)
    # The client compiles nothing else, but for helpers of its own behind it.
    numbers = sorted(p.name.split(".")[0] for p in folder.glob("module_*.before_optimizations.txt")) if folder.exists() else []
    number = numbers[0].removeprefix("module_") if numbers else None
    return number and (number, folder if len(numbers) == 1 else f"{folder}:{number}")  # of one module a number is a stage


def figures_of_xla(tool, spec):
    code, cost, why = asked(tool, "cost", spec)
    _, memory, _ = asked(tool, "memory", spec)
    if code or not memory.get("modules"):
        return None
    return {"kernels": len(cost["instructions"]), "bytes": cost["bytes"], "peak": memory["modules"][0]["peak_bytes"]}


def figures_of_ours(side):
    return {"kernels": side["kernels"], "bytes": side["bytes"], "peak": side["peak_bytes"]}


def sign(x):
    return (x > 0) - (x < 0)


def compared(name, disabled, theirs, ours):
    row = {"module": name, "pass": disabled}
    told = []
    for figure in FIGURES:
        (a, b), (x, y) = [(side[0][figure], side[1][figure]) for side in (theirs, ours)]
        xla, own, whole = b - a, y - x, max(a, b, 1)
        row[figure] = {"xla": [a, b], "ours": [x, y], "sign": sign(xla) == sign(own), "near": abs(xla - own) <= 0.1 * whole,
                       "size": round(own / xla, 3) if xla else None}
        told.append(f"{figure} {a:.6g} → {b:.6g} | {x:.6g} → {y:.6g} {'' if row[figure]['sign'] else 'SIGN'}")
    print(f"{name} without {disabled}\n    XLA | ours: " + "\n                ".join(told), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("modules", nargs="+", type=pathlib.Path)
    parser.add_argument("--pass", dest="passes", default=PASSES)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    for module in args.modules:
        name = module.name.split(".")[0]
        base = compiled(module, args.work / f"{name}+", "")
        before = base and figures_of_xla(args.tool, base[1])
        for disabled in args.passes.split(",") if before else []:
            folder = args.work / f"{name}+{disabled}"
            other = compiled(module, folder, disabled)
            after = other and figures_of_xla(args.tool, other[1])
            start = next((args.work / f"{name}+").glob(f"module_{base[0]}.*.before_optimizations.txt"))
            code, ours, why = asked(args.tool, "whatif", start, f"--disable={disabled}")
            if not after or code == 2:
                print(f"{name} without {disabled}: {why or 'nothing to compare with'}", flush=True)
                continue
            rows.append(compared(name, disabled, (before, after), tuple(figures_of_ours(ours[side]) for side in ("as_is", "changed"))))
    for figure in FIGURES:
        print(f"{figure}: sign as XLA's in {sum(row[figure]['sign'] for row in rows)}, change within a tenth in {sum(row[figure]['near'] for row in rows)} of {len(rows)}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))


main()
