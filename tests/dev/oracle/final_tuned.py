#!/usr/bin/env python3
"""Share of the kernels of real dumps that xla-gpu ends with, by its defaults and as XLA's autotuner chose:

  ORACLE_PYTHON final_tuned.py DUMPS TOOL [--show=N] [--only=WORD]

DUMPS: a folder of folders with dump/ and NAME.pbtxt (../shared/dumps-h200, unpacked). Each program's own module, the one
with the largest …after_optimizations.txt, is replayed twice from its first stage; the share is that of
../shared/oracle/final.py (2 * both / (ours + theirs)) of the last stages, with configurations down to what the autotuner
chooses: keys that other releases add, and the mark of launches that overlap, are no difference."""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"))
import final

CHOSEN = {"fusion_backend_config", "gemm_backend_config", "cudnn_conv_backend_config", "cudnn_fmha_backend_config", "sizes"}
NEW_KEYS = {"waves_per_eu", "group_size", "num_tiles_per_pid"}  # of XLA's settings of 2026
ABSENT = (0, "0", 0.0, False, None, "", [], {}, "DEFAULT_MATH", "DEFAULT", "ALG_UNSET")


def without_defaults(value):
    if isinstance(value, dict):
        kept = {k: without_defaults(v) for k, v in value.items() if k not in NEW_KEYS}
        return {k: v for k, v in sorted(kept.items()) if v not in ABSENT}
    if isinstance(value, list):
        return [without_defaults(v) for v in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def with_chosen_configs(text):
    text = re.sub(r', frontend_attributes=\{xla\.pdl_launch="true"\}', "", text)
    out, at, word = [], 0, ", backend_config="
    while (start := text.find(word, at)) >= 0:
        begin = start + len(word)
        try:
            value, length = json.JSONDecoder().raw_decode(text[begin:])
        except ValueError:
            out.append(text[at:begin])
            at = begin
            continue
        kept = without_defaults({k: v for k, v in value.items() if k in CHOSEN}) if isinstance(value, dict) else value
        out += [text[at:start], word + json.dumps(kept) if kept else ""]
        at = begin + length
    return "".join(out) + text[at:]


final.with_plain_configs = with_chosen_configs


def kernels(path):
    return collections.Counter(final.kernels(path.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", type=pathlib.Path)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--show", type=int, default=0, help="the first N kernels that only one side has")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    shares = []
    for folder in sorted(args.dumps.iterdir()):
        ends = sorted((folder / "dump").glob("*gpu_after_optimizations.txt"), key=lambda p: p.stat().st_size)
        if not ends or not (folder / f"{folder.name}.pbtxt").exists() or args.only not in folder.name:
            continue
        theirs = kernels(ends[-1])
        number = re.search(r"module_(\d+)", ends[-1].name)[1]
        row = []
        for how in ("none", folder / f"{folder.name}.pbtxt"):
            with tempfile.TemporaryDirectory() as out:
                subprocess.run([args.tool, "replay", f"{folder / 'dump'}:{number}", "-o", out + "/r", "--force-replay", "--formats=text", f"--autotune-results={how}"],
                               check=True, capture_output=True)
                ours = kernels(next(pathlib.Path(out, "r").glob("*.after_optimizations.txt")))
            both = sum((ours & theirs).values())
            row.append(2 * both / (sum(ours.values()) + sum(theirs.values())))
        shares.append(row)
        print(f"{folder.name:<20} {sum(theirs.values()):>5} kernels  defaults {row[0]:.4f}  as chosen {row[1]:.4f}")
        for side, extra in (("ours", ours - theirs), ("theirs", theirs - ours)):
            for (_, kernel), n in list(extra.items())[: args.show]:
                print(f"  only {side} ({n}): {kernel[:600]}")
    mean = [sum(row[k] for row in shares) / max(1, len(shares)) for k in (0, 1)]
    print(f"mean of {len(shares)}: {mean[0]:.4f}, {mean[1]:.4f}")


main()
