#!/usr/bin/env python3
"""How much of XLA's program our xla-gpu makes, over its dumps, and where it departs from them:

  ORACLE_PYTHON final_all.py DUMPS TOOL [--depart] [--runs PASS,…] [--only WORD] [--work DIR] [--json FILE]

DUMPS: a folder of dumps with .hlo.pb, a folder each (../shared/dumps, unpacked). Each is replayed from its
before_optimizations.hlo.pb, from after_spmd_partitioner.hlo.pb where it is for several devices; `fusion` is the share of ../shared/oracle/final.py (2 * both / (ours + theirs)) of the state behind
the pipeline `fusion`, `end` that of the last stage. --depart: the first run of a pass behind which the program, names
apart, is no longer XLA's. --runs: of each run of these passes that changes XLA's program and finds the same one in both,
whether it makes the same of it: passes that take users in the order of the compiler's memory, which no dump tells, but
our own run has. The last line has the means. Exit code 1 where a replay failed."""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"))
import agreement
import final
import xla
from first_stage import first_of_one_device, replay_options

# Pipelines that run inside of another one: their ends are no stages of the outer one's.
INNER = {"simplification", "simplification-2", "float_normalization", "reshape_mover_after_conv_canonicalization",
         "simplify_after_conv_canonicalization", "remove-no-op-reduce-precision-algebraic-simplifier"}


def dumps(folder):
    """Folders with an input; an archive's name is often there twice."""
    for path in sorted(p for p in pathlib.Path(folder).iterdir() if p.is_dir()):
        for place in (path, path / path.name):
            if source := first_of_one_device(place):
                yield path.name, place, source
                break


def share(ours, theirs):
    a, b = (collections.Counter(final.kernels(path.read_text())) for path in (ours, theirs))
    return 2 * sum((a & b).values()) / max(1, sum(a.values()) + sum(b.values()))


def our_runs(folder):
    """(pipeline, pass, text behind it), the starts of pipelines too."""
    text = None
    for row in json.loads((folder / "recording.json").read_text())["stages"]:
        if row["kind"] == "step":  # inside of a pass
            continue
        text = folder / row["file"] if row.get("file") else text
        yield row.get("pipeline"), "pipeline-start" if row["kind"] == "pipeline-start" else row.get("pass"), text


def their_runs(folder):
    text = sorted(folder.glob("*before_optimizations.txt"))[0]
    for run in xla.pass_runs(folder):
        if run["file"]:
            dumped = folder / (re.sub(r"(\.hlo)?\.(pb|txt)$", "", pathlib.Path(run["file"]).name) + ".txt")
            text = dumped if dumped.exists() else text
        yield run["pipeline"].replace(" ", "_"), run["pass"], text


def numbered(runs):
    """By pipeline, pass and how many runs of that pass there were in it."""
    count, out = collections.Counter(), {}
    for pipeline, name, text in runs:
        if name != "pipeline-start" and name:
            out[pipeline, name, count[pipeline, name]] = text
            count[pipeline, name] += 1
    return out


def first_departure(ours, theirs):
    known = {}

    def differ(key):
        for path in (ours[key], theirs[key]):
            if path not in known:
                known[path] = agreement.shape_of_program(path.read_text())
        return known[ours[key]] != known[theirs[key]]

    common = [key for key in theirs if key in ours]
    ends = list({key[0]: at for at, key in enumerate(common) if key[0] not in INNER}.values())
    start = 0
    for end in ends:
        if differ(common[end]):
            at = next(at for at in range(start, end + 1) if differ(common[at]))
            return "{}.{}".format(*common[at][:2])
        start = end + 1
    return ""


def with_texts_before(runs):
    """numbered(), with the text in front of each run."""
    count, out, before = collections.Counter(), {}, None
    for pipeline, name, text in runs:
        if name != "pipeline-start" and name:
            out[pipeline, name, count[pipeline, name]] = before, text
            count[pipeline, name] += 1
        before = text
    return out


def runs_alike(ours, theirs, passes):
    """By pass: of the runs that change XLA's program [those that start from it here, too; those that end alike]."""
    out, known = {name: [0, 0, 0] for name in passes}, {}

    def program(path):
        if path not in known:
            known[path] = agreement.shape_of_program(path.read_text())
        return known[path]

    for key, (before, after) in theirs.items():
        if key[1] not in out or key not in ours or before == after or program(before) == program(after):
            continue
        count = out[key[1]]
        count[0] += 1
        if program(ours[key][0]) == program(before):
            count[1] += 1
            count[2] += program(ours[key][1]) == program(after)
    return out


def replayed(tool, source, work):
    command = [tool, "replay", source, "--pipeline=xla-gpu", "--formats=text", "--no-verify", "--force-replay", "--json", "-o", work, "--force",
               *replay_options(source)]
    start = time.time()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    return done, time.time() - start


def judged(tool, place, source, work, depart, passes):
    done, seconds = replayed(tool, source, work)
    row = {"seconds": round(seconds, 1)}
    if done.returncode:
        return {**row, "error": done.stderr.strip().split("\n")[-1][:200]}
    runs = list(our_runs(work))
    behind = next(text for pipeline, _, text in runs if pipeline == "post-fusion_optimization")
    row["fusion"] = share(behind, next(place.glob("*.post-fusion_optimization.after_pipeline-start*.txt")))
    ends = sorted(place.glob("*_gpu_after_optimizations.txt"))
    row["end"] = share(next(work.glob("*.after_optimizations.txt")), ends[0]) if ends else None
    if depart:
        row["departs"] = first_departure(numbered(runs), numbered(their_runs(place)))
    if passes:
        row["runs"] = runs_alike(with_texts_before(runs), with_texts_before(their_runs(place)), passes)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps")
    parser.add_argument("tool")
    parser.add_argument("--depart", action="store_true")
    parser.add_argument("--runs", default="", help="passes, by commas")
    parser.add_argument("--only", default="", help="dumps with this in their names")
    parser.add_argument("--work", help="keep our replays here")
    parser.add_argument("--json", help="write all rows there")
    args = parser.parse_args()
    passes = [name for name in args.runs.split(",") if name]
    rows = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name, place, source in dumps(args.dumps):
            if args.only not in name:
                continue
            work = pathlib.Path(args.work or temporary) / name
            work.parent.mkdir(parents=True, exist_ok=True)
            row = rows[name] = judged(args.tool, place, source, work, args.depart, passes)
            told = row.get("error") or "  ".join(f"{key} {row[key]:.4f}" for key in ("fusion", "end") if row[key] is not None)
            print(f"{name:<72} {row['seconds']:>6} s  {told}  {row.get('departs', '')}  {row.get('runs', '')}", flush=True)
            if args.json:
                pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))
    for key in ("fusion", "end"):
        values = [row.get(key) or 0 for row in rows.values()]
        print(f"mean {key} {sum(values) / max(1, len(values)):.4f} of {len(values)}")
    for name in passes:
        change, same_start, alike = (sum(row["runs"][name][n] for row in rows.values() if "runs" in row) for n in range(3))
        print(f"{name}: {change} runs change XLA's program, {same_start} of them start from it here, {alike} make the same of it")
    sys.exit(any("error" in row for row in rows.values()))


main()
