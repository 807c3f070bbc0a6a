#!/usr/bin/env python3
"""Dumps of XLA's TPU compiler (libtpu, no TPU needed), made and judged.

  tpu_dumps.py make ORACLE WORK [--target v5e:2x2] [--seconds 400] [FILE…]
      compiles each FILE (by default the corpus and testdata/*.hlo, the smallest first) into WORK/NAME. ORACLE is the interpreter that
      `../shared/oracle/newest.sh tpu` prints. Behind the last HLO stage the compiler goes on to machine code, which takes most of its
      time and is not waited for.
  tpu_dumps.py judge TOOL WORK [--oracle ORACLE] [--evaluate SECONDS] [NAME…]
      a row of Markdown for each dump: stages, those that `verify` refuses, those whose text XLA and we print differently (with --oracle),
      what `bisect` says of the stages' results, each judged against the first (with --evaluate: seconds a dump may take).
Exit 1 where a stage is refused, prints differently or has another result."""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import oracle_batch
import xla_dumps

ROOT = pathlib.Path(__file__).resolve().parents[3]
NO_STAGE = re.compile(
    r"(-values|buffer-assignment|live-range|memory-usage-report|basic_compiler_metadata|execution_options|hlo_module_config|target_arguments|tpu_comp_env|transfer_stats)\.txt$"
)


def default_files():
    corpus = (ROOT.parent / "shared" / "corpus").glob("*.hlo.txt")
    return sorted([*corpus, *(ROOT / "testdata").glob("*.hlo")], key=lambda f: f.stat().st_size)


def stages(folder):
    return sorted(f for f in folder.glob("module_*.txt") if not NO_STAGE.search(f.name))


def compile_until_last_stage(command, folder, seconds):
    """The compiler's exit code; None where it was ended behind the last stage or out of time."""
    log = open(f"{folder}.log", "w")
    child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    began = time.time()
    while child.poll() is None:
        time.sleep(0.2)
        written = max((f.stat().st_mtime for f in folder.glob("*memory-usage-report.txt")), default=None)
        if time.time() - began > seconds or (written and time.time() - written > 20):
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None
    return child.returncode


def make(args):
    args.work.mkdir(parents=True, exist_ok=True)
    failed = 0
    for file in args.files or default_files():
        name = file.name.removesuffix(".txt").removesuffix(".hlo")
        folder, source = args.work / name, args.work / f"{name}.hlo"
        if folder.exists():
            continue
        source.write_text(xla_dumps.prepared(name, file.read_text()))
        command = [args.oracle, xla_dumps.oracle, "compile", source, "--backend", "tpu", "--target", args.target, "--large-constants", "--dump", folder]
        began = time.time()
        code = compile_until_last_stage(list(map(str, command)), folder, args.seconds)
        done = any(folder.glob("*after_optimizations.txt")) if folder.exists() else False
        lines = pathlib.Path(f"{folder}.log").read_text(errors="replace").strip().splitlines()
        failed += not done
        print(f"{name}: {len(stages(folder)) if folder.exists() else 0} stages{'' if done else ', NO final module'}, {time.time() - began:.0f} s{'; ' + lines[-1][:150] if code and lines else ''}", flush=True)
    return 1 if failed else 0


def judge_printing(oracle, tool, files):
    """How many stages print differently; the first; how many differ in nothing but that XLA 0.12 writes `order=TOTAL` where 0.10 wrote
    `type=TOTALORDER`, as we do; why XLA did not read others."""
    different, first, order, unread = 0, "", 0, collections.Counter()
    for file in files:
        answer = oracle.ask(file.read_text())
        if not answer["ok"]:
            unread[answer.get("error", "XLA aborts").splitlines()[-1][:100]] += 1
            continue
        ours = subprocess.run([tool, "print", str(file)], capture_output=True, text=True).stdout.rstrip("\n")
        xlas = answer["prints"]["default"].rstrip("\n")
        if ours.replace("type=TOTALORDER", "order=TOTAL") != xlas:
            different += 1
            first = first or file.name
        elif ours != xlas:
            order += 1
    return different, first, order, unread


def judge_results(tool, folder, seconds):
    """(whether a stage is bad, what bisect says) of a dump's stages against its first."""
    try:
        done = subprocess.run([tool, "bisect", str(folder), "--json"], capture_output=True, text=True, timeout=seconds)
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return False, f"not within {seconds:.0f} s"
    except ValueError:
        return False, (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:160]
    if "verdict" not in answer:
        return False, answer.get("error", {}).get("message", done.stdout[:160])[:160] if isinstance(answer.get("error"), dict) else str(answer.get("error"))[:160]
    words = [f"{answer['judged']} of {answer['candidates']} judged"]
    words.append("BAD: " + answer["verdict"][:160] if answer["found"] else "equal")
    words += [f"{reason['stages']} × {reason['why']}" for reason in answer["reasons"]]
    return answer["found"], "; ".join(words)


def judge(args):
    oracle = oracle_batch.Oracle(args.oracle) if args.oracle else None
    tool = str(args.tool)
    bad = 0
    print("| module | stages | refused by verify | printed differently | results |\n| --- | --- | --- | --- | --- |")
    folders = {f: stages(f) for f in args.work.iterdir() if f.is_dir()}
    for folder, files in sorted(folders.items(), key=lambda item: sum(f.stat().st_size for f in item[1])):
        if not files or (args.names and not any(n in folder.name for n in args.names)):
            continue
        refused = [f.name for f in files if subprocess.run([tool, "verify", str(f)], capture_output=True).returncode]
        printed, results = "", ""
        if oracle:
            different, first, order, unread = judge_printing(oracle, tool, files)
            printed = f"{different}" + (f" ({first})" if different else "") + (f", {order} but for `order=`" if order else "")
            printed += "".join(f"; {n} unread: {why}" for why, n in unread.items())
            bad += different
        if args.evaluate:
            found, results = judge_results(tool, folder, args.evaluate)
            bad += found
        bad += len(refused)
        print(f"| {folder.name} | {len(files)} | {len(refused)}{' (' + refused[0] + ')' if refused else ''} | {printed} | {results} |", flush=True)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("make")
    p.add_argument("oracle")
    p.add_argument("work", type=pathlib.Path)
    p.add_argument("--target", default="v5e:2x2")
    p.add_argument("--seconds", type=float, default=400)
    p.add_argument("files", type=pathlib.Path, nargs="*")
    p = commands.add_parser("judge")
    p.add_argument("tool", type=pathlib.Path)
    p.add_argument("work", type=pathlib.Path)
    p.add_argument("--oracle")
    p.add_argument("--evaluate", type=float)
    p.add_argument("names", nargs="*")
    args = parser.parse_args()
    return make(args) if args.command == "make" else judge(args)


if __name__ == "__main__":
    sys.exit(main())
