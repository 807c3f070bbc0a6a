#!/usr/bin/env python3
"""How far kernels on a card are from their bounds: joins jax's profiles with the final modules of their dumps, prints
measured over bound by class and size, and writes what the program and its tests keep of it.

  measured_bounds.py HLO_REPLAY DUMPS [--card=H200] [--write]

DUMPS holds NAME/dump and NAME/vm.xplane.pb of NAME, each a profile of RUNS calls. Run by a python that has jax. With
--write: testdata/measured (modules, seconds of their kernels in one call) and replay/report/kernels/measured_bounds.def."""
import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import warnings

from jax.profiler import ProfileData

warnings.simplefilter("ignore")
RUNS = 5
ROOT = pathlib.Path(__file__).resolve().parents[3]
SIZES = [0, 2e-6, 1e-5, 1e-4]  # seconds of a bound from which a row's kernels begin


def spans_of(profile):
    """Device spans: by the instruction that the profiler names, and by the kernel's name where it names a command buffer."""
    named, kernels, shortest = collections.defaultdict(list), collections.defaultdict(list), []
    for plane in ProfileData.from_file(str(profile)).planes:
        if not plane.name.startswith("/device:GPU"):
            continue
        for line in plane.lines:
            for event in line.events if line.name.startswith("Stream") else []:
                stats = dict(event.stats)
                seconds = event.duration_ns * 1e-9
                shortest.append(seconds)
                op = str(stats.get("hlo_op", ""))
                if op.startswith("command_buffer"):
                    kernels[event.name].append(seconds)
                else:
                    named[op].append(seconds)
    return named, kernels, shortest


def final_module(dump):
    return max(dump.glob("*gpu_after_optimizations.txt"), key=lambda f: f.stat().st_size)


def measured(program, folder, card):
    """[(class, bound of a run, seconds of a run, name, limit, runs in one call)] of kernels that one span stands for each time they run."""
    module = final_module(folder / "dump")
    text = subprocess.run([program, "print", "--no-metadata", module], capture_output=True, text=True, check=True).stdout
    told = json.loads(subprocess.run([program, "cost", module, f"--gpu={card}", "--json"], capture_output=True, text=True,
                                     check=True).stdout)
    named, kernels, shortest = spans_of(folder / "vm.xplane.pb")
    out = []
    for k in told["instructions"]:
        times, name = k["times"], k["name"]
        if name in named and len(named[name]) % (RUNS * times) == 0:
            spans = named[name]  # of a library's call they may be several
        else:
            spans = kernels.get(re.sub(r"[.-]", "_", name), [])
            if len(spans) != RUNS * times:  # kernels that two instructions share cannot be told apart
                continue
        if k["least_seconds"] > 0 and k["known"]:
            out.append((k["class"], k["least_seconds"] / times, sum(spans) / RUNS / times, name, k["bound"], times))
    return text, out, shortest


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("dumps", type=pathlib.Path)
    words.add_argument("--card", default="H200")
    words.add_argument("--write", action="store_true")
    a = words.parse_args()
    table, kept, texts, shortest = collections.defaultdict(list), {}, {}, []
    for folder in sorted(a.dumps.iterdir()):
        if not (folder / "vm.xplane.pb").exists():
            continue
        texts[folder.name], kernels, spans = measured(a.program, folder, a.card)
        shortest += spans
        kept[folder.name] = {name: float(f"{took * times:.4g}") for _, _, took, name, _, times in kernels}
        print(f"{folder.name}: {len(kernels)} kernels joined, {sum(k[2] for k in kernels) * 1e3:.3f} ms of one run each")
        for kind, bound, took, name, limit, _ in kernels:
            table[kind, max(n for n, s in enumerate(SIZES) if bound >= s)].append(took / bound)
            if took < bound:
                print(f"  FASTER THAN ITS BOUND: {name} ({kind}, {limit}) {took:.3g} s, bound {bound:.3g} s")
    print(f"shortest of {len(shortest)} spans: {min(shortest) * 1e6:.3f} us")
    rows = []
    for (kind, size), ratios in sorted(table.items()):
        low, high = (min(ratios), max(ratios)) if len(ratios) < 4 else (
            statistics.quantiles(ratios, n=10, method="inclusive")[0], statistics.quantiles(ratios, n=10, method="inclusive")[8])
        rows.append((kind, SIZES[size], low, high, len(ratios)))
        print(f"{kind:<16} from {SIZES[size] * 1e6:>5.0f} us: {low:>6.2f} to {high:>6.2f} times, median "
              f"{statistics.median(ratios):.2f}, {len(ratios)} kernels")
    if not a.write:
        return
    out = ROOT / "testdata/measured"
    for name, text in texts.items():
        (out / f"{name}.hlo").write_text(text)
    (out / f"{a.card.lower()}.json").write_text(json.dumps({"card": a.card, "seconds": kept}, indent=1, sort_keys=True) + "\n")
    lines = [f'MEASURED("{kind}", {size:g}, {low:.2g}, {high:.2g}, {count})' for kind, size, low, high, count in rows if count >= 3]
    (ROOT / "replay/report/kernels/measured_bounds.def").write_text(
        f"// MEASURED(class, seconds of a bound from which on, measured over bound: nine of ten from, nine of ten to, kernels).\n"
        f"// Written by tests/dev/figures/measured_bounds.py from {len(texts)} programs on an {a.card}.\n" + "\n".join(lines) + "\n")


main()
