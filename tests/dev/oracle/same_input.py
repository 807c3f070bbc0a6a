#!/usr/bin/env python3
"""Does a pass of ours make of a stage's .hlo.pb what XLA's own pass makes of the same file?

  ORACLE_PYTHON same_input.py HLO_REPLAY DUMPS WORK_DIR --pass NAME [--pass NAME…] [--limit-mb 6]

agreement.py --protos hands a tool the file of a stage and asks for the stage that XLA dumped next. Inside of XLA an array's users then stood
in an order that no file tells, by which some passes go; XLA itself, given the file, may arrive elsewhere. So for each such case of the dumps
under DUMPS XLA's pass alone is run on the file (oracle_proto.py, kept in WORK_DIR) and three texts are compared as agreement.py does:
  XLA again      XLA's pass on the file, and the stage of its dump
  ours, file     our pass and XLA's pass on the file
  ours, dump     our pass on the file, and the stage of the dump: what agreement.py says
each as a count of the cases that agree, and the mean share of kernels. copy-insertion is judged at the step that agreement.py pairs it with.
Exit code 1 where ours differs from XLA's on a file."""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "shared" / "oracle"))
import agreement  # noqa: E402
import xla  # noqa: E402

STEPS = {"copy-insertion": "adding_special-case_copies"}


def cases(folder, name):
    """(pipeline, earlier file, later file)"""
    if name in STEPS:
        yield from ((pipeline, before, after) for _, pipeline, before, after in xla.copy_steps(folder))
        return
    yield from ((pipeline, before, after) for found, pipeline, before, after in xla.changes(folder) if found == name)


def agreed(mine, theirs):
    same = agreement.shape_of_program(mine) == agreement.shape_of_program(theirs)
    return same, 1.0 if same else agreement.share_of(mine, theirs)


def judge(tool, name, pipeline, before, after, run):
    """The three answers of a case, each (same, share); None where our pass ends without a module."""
    made = [later for _, _, later in cases(run, name)] if run.exists() else []
    theirs = (made[0] if made else before).read_text()  # none made: given the file, XLA's pass changes nothing
    command = [tool, "opt", f"--passes={name}", f"--call-site={pipeline}", before.with_suffix(".hlo.pb")]
    if name in STEPS:
        command.append(f"--at-step={STEPS[name]}")
    ours = subprocess.run(command, capture_output=True, text=True)
    if ours.returncode:
        print(f"{before}: {ours.stderr.strip()}", flush=True)
        return None
    dumped = after.read_text()
    return agreed(theirs, dumped), agreed(ours.stdout, theirs), agreed(ours.stdout, dumped)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool"), parser.add_argument("dumps", type=pathlib.Path), parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--pass", dest="names", action="append", required=True)
    parser.add_argument("--limit-mb", type=float, default=6)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    records = []
    print(f"| {'pass':<28} | cases | XLA again |       | ours, file |       | ours, dump |       |\n| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in args.names:
        found = [case for folder in sorted(args.dumps.iterdir()) if folder.is_dir() for case in cases(folder, name)]
        found = [case for case in found if case[1].stat().st_size <= 1e6 * args.limit_mb and case[1].with_suffix(".hlo.pb").exists()]
        work = args.work / name
        if found and not work.exists():
            # What XLA does behind the pass may fail, for want of what other passes would have done: its dump is there by then.
            files = [str(before.with_suffix(".hlo.pb")) for _, before, _ in found]
            subprocess.run([sys.executable, HERE / "oracle_proto.py", work, "--only", name, *files], capture_output=True)
        answers = []
        for number, (pipeline, before, after) in enumerate(found):
            run = work / f"{number:03}"
            if not any(ran["pass"] == name for ran in xla.pass_runs(run)):
                print(f"{before}: XLA's pass did not run", flush=True)
                continue
            answer = judge(args.tool, name, pipeline, before, after, run) or ((False, 0.0),) * 3
            answers.append(answer)
            records.append({"pass": name, "before": str(before), "xla_again": answer[0], "ours_file": answer[1], "ours_dump": answer[2]})
        if answers:
            row = " | ".join(f"{sum(a[k][0] for a in answers)} | {sum(a[k][1] for a in answers) / len(answers):.3f}" for k in range(3))
            print(f"| {name:<28} | {len(answers)} | {row} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(records, indent=1))
    return 0 if all(r["ours_file"][0] for r in records) else 1


if __name__ == "__main__":
    sys.exit(main())
