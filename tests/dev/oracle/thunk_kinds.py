#!/usr/bin/env python3
"""Schedules, buffers and thunks of ours beside XLA's own, from a stage of its dumps on.

  thunk_kinds.py TOOL DUMPS WORK [--from=STAGE] [--names WORD…] [--order] [--json=OUT]

Each folder of DUMPS that holds a dump is taken at STAGE (words of a stage's name; `pre-scheduling-passes.after_pipeline-start`
if nothing is said: what XLA hands to its scheduler; `final`: its last stage, scheduled already, so that buffers and thunks
alone are ours; `input`: from the beginning on). TOOL runs the rest of xla-gpu on it into WORK/NAME. A row a dump: thunks of
each kind that only one side has, command buffers, bytes of all allocations ours and XLA's, and with --order (an interpreter
that has jaxlib: ../shared/oracle/setup.sh prints one) the share of kernels and of their order in the final text.
Exit 0 where all counts are the same, 1 where not, 2 where a run failed.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import time

from first_stage import first_of_one_device, replay_options

LINE = re.compile(r"^\s*\d{3,}: (k[A-Za-z0-9]+)\s+\[")


def kinds(text):
    return collections.Counter(m.group(1) for m in map(LINE.match, text.splitlines()) if m)


def one(folder, pattern):
    found = sorted(folder.glob(pattern))
    return found[0] if found else None


def source(dump, stage):
    if stage == "input":
        return first_of_one_device(dump)
    if stage == "final":
        return one(dump, "*gpu_after_optimizations.hlo.pb")
    return one(dump, f"*{stage}*.hlo.pb")


def total(text):
    found = re.search(r"Total bytes used: (\d+)", text)
    return int(found.group(1)) if found else 0


def compare(tool, dump, work, stage, order):
    row = {"name": dump.name}
    file = source(dump, stage)
    if not file:
        row["error"] = f"no stage {stage}"
        return row
    if stage not in ("final", "input"):
        # opt puts the instructions back into the order in which XLA made them, which ties of the schedule go by.
        ordered = subprocess.run([tool, "opt", "--passes=hlo-memory-scheduler", "--call-site=gpu-schedule", "--no-verify", str(file)],
                                 capture_output=True, text=True)
        if ordered.returncode:
            row["error"] = ordered.stderr.strip()[-300:]
            return row
        file = work / (dump.name + ".txt")
        file.write_text(ordered.stdout)
    command = ["nice", tool, "replay", str(file), "--pipeline=xla-gpu", "--formats=text,buffers,thunks", "--force-replay",
               "--force", "--no-verify", "-o", str(work / dump.name)]
    if stage == "final":
        command.append("--passes-only=dce")
    elif stage != "input":
        command.append("--from=legalize-scheduling-annotations")
    else:
        command += replay_options(file)
    begin = time.time()
    run = subprocess.run(command, capture_output=True, text=True)
    row["seconds"] = round(time.time() - begin, 2)
    if run.returncode:
        row["error"] = run.stderr.strip()[-300:]
        return row
    out = work / dump.name
    theirs = one(dump, "*thunk_sequence.txt")
    if theirs:
        a, b = kinds(one(out, "*.thunk_sequence.txt").read_text()), kinds(theirs.read_text())
        row["thunks"] = {k: [a[k], b[k]] for k in sorted(set(a) | set(b))}
        row["same"] = a == b
    after = one(dump, "*thunk_sequence_after_thunk_passes.txt")
    if after:
        a, b = (kinds(f.read_text())["kCommandBuffer"] for f in (one(out, "*thunk_sequence_after_thunk_passes.txt"), after))
        row["command_buffers"] = [a, b]
    ours = total(one(out, "*-buffer-assignment.txt").read_text())
    row["bytes"] = [ours, total((one(dump, "*buffer-assignment-values.txt") or one(dump, "*buffer-assignment.txt")).read_text())]
    if order:
        sys.path.insert(0, order)
        import final
        x, y = (final.kernels(f.read_text()) for f in (one(out, "*.after_optimizations.txt"), one(dump, "*gpu_after_optimizations.txt")))
        both = sum((collections.Counter(x) & collections.Counter(y)).values())
        row["share"] = 2 * both / (len(x) + len(y)) if x or y else 1.0
        import difflib
        blocks = difflib.SequenceMatcher(None, x, y, autojunk=False).get_matching_blocks() if max(len(x), len(y)) < 2500 else []
        row["order"] = 2 * sum(b.size for b in blocks) / (len(x) + len(y)) if blocks and (x or y) else 1.0 if x == y else None
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tool")
    p.add_argument("dumps", type=pathlib.Path)
    p.add_argument("work", type=pathlib.Path)
    p.add_argument("--from", dest="stage", default="pre-scheduling-passes.after_pipeline-start")
    p.add_argument("--names", nargs="*", default=[])
    p.add_argument("--order", help="the folder with final.py")
    p.add_argument("--json")
    a = p.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for dump in sorted(d for d in a.dumps.iterdir() if d.is_dir()):
        if a.names and not any(n in dump.name for n in a.names):
            continue
        row = compare(a.tool, dump, a.work, a.stage, a.order)
        rows.append(row)
        apart = {k: v for k, v in row.get("thunks", {}).items() if v[0] != v[1]}
        ours, theirs = row.get("bytes", [0, 0])
        print(f"{row['name'][:60]:60} ", row.get("error") or
              f"{'same' if row.get('same') else 'no thunks of XLA' if 'same' not in row else apart} "
              f"buffers {row.get('command_buffers', '-')} bytes {ours / max(1, theirs):.4f} {row['seconds']} s "
              + (f"share {row['share']:.4f} order {row['order']}" if "share" in row else ""), flush=True)
    judged = [r for r in rows if "same" in r]
    ratios = [r["bytes"][0] / r["bytes"][1] for r in rows if r.get("bytes", [0, 0])[1]]
    print(f"{sum(r['same'] for r in judged)} of {len(judged)} with XLA's thunks; bytes within 1 %: "
          f"{sum(abs(x - 1) < 0.01 for x in ratios)} of {len(ratios)}, worst {max(ratios, default=0):.3f}, least {min(ratios, default=0):.3f}")
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(2 if any("error" in r for r in rows) else 0 if all(r["same"] for r in judged) else 1)


if __name__ == "__main__":
    main()
