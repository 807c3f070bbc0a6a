#!/usr/bin/env python3
"""What the Python package costs: tests/dev/bench/bench_python.py [--instructions=1000000]

Run with the package importable (the wheel, or PYTHONPATH=build/python build/venv/bin/python). Prints a row of
docs/PERFORMANCE.md a measurement: the best of five.
"""
import argparse
import pathlib
import subprocess
import sys
import time


def best(work, times=5):
    took = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def row(what, seconds):
    print(f"| {what} | {seconds:.3f} s |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--instructions", type=int, default=1_000_000)
    n = parser.parse_args().instructions
    empty = best(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    row("`import hlo_replay`, over an empty program",
        best(lambda: subprocess.run([sys.executable, "-c", "import hlo_replay"], check=True)) - empty)
    import hlo_replay as hlo

    lines = "".join(f"  n{k} = f32[64]{{0}} add(n{max(k - 1, 0)}, n{k // 2})\n" if k else
                    "  n0 = f32[64]{0} parameter(0)\n" for k in range(n - 1))
    text = f"HloModule big\n\nENTRY main {{\n{lines}  ROOT r = f32[64]{{0}} negate(n{n - 2})\n}}\n"
    made = []
    row(f"`hlo.parse`, {n:,} instructions", best(lambda: made.append(hlo.parse(text)), 2))
    module = made[-1]
    row("`module.columns()`", best(module.columns))
    row("`module.edges()`", best(module.edges))
    row("walk as objects: `[i for i in module]`", best(lambda: [i for i in module]))
    row("walk as objects, opcode, name and operands of each",
        best(lambda: [(i.opcode, i.name, len(i.operands)) for i in module], 2))
    small = hlo.parse(pathlib.Path(__file__).resolve().parents[3] / "testdata" / "mnist_softmax.hlo")
    inputs = small.seeded_inputs(1)
    row("`module.run`, mnist_softmax, evaluator", best(lambda: small.run(*inputs)))
    row("`hlo.replay`, mnist_softmax", best(lambda: hlo.replay(small)))


main()
