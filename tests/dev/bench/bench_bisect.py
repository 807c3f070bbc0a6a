"""What `bisect` and `exec --all-stages` of a sound dump cost, by time over one evaluation of its first stage.

bench_bisect.py HLO_REPLAY DUMP... [--rounds=3] [--seed=1]

DUMP is an unpacked folder of one module's stages. In turns, the best of the rounds each:
  one evaluation   HLO_REPLAY exec FIRST_STAGE --seed=SEED --json: `run_s`, the evaluating part alone, and the processor time
                   (user and system) of the whole command
  bisect           HLO_REPLAY bisect DUMP --seed=SEED --json: the processor time of the whole command: reading every stage,
                   evaluating, comparing; its wall time
  all stages       HLO_REPLAY exec DUMP --all-stages --seed=SEED --json: the processor time of the whole command
Printed: stages; processor seconds of all three; `ratio` of bisect and of all stages, the processor time of one command over the other's, which other
work on the machine changes least; `wall/run_s`, which says nothing where an evaluation takes less than reading the texts.
Last the medians: of all, and of the dumps whose evaluation takes 0.05 s or more.
Exit code 1 where a dump is not judged good.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time


def timed(command):
    """(the answer, exit code, wall seconds, processor seconds)."""
    begin = time.monotonic()
    p = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = p.stdout.read()
    p.stderr.read()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    return json.loads(out or b"{}"), p.returncode, time.monotonic() - begin, used.ru_utime + used.ru_stime


def measure(tool, dump, rounds, seed):
    first = next(iter(sorted(dump.glob("module_*.before_optimizations.txt"))), None)
    if not first:
        return None
    best = {}

    def keep(name, value):
        best[name] = min(best.get(name, value), value)

    for _ in range(rounds):
        answer, code, wall, cpu = timed([tool, "exec", first, f"--seed={seed}", "--json"])
        if code:
            return None
        keep("run", answer["run_s"]), keep("exec_wall", wall), keep("exec", cpu)
        answer, code, wall, cpu = timed([tool, "bisect", dump, f"--seed={seed}", "--json"])
        keep("wall", wall), keep("bisect", cpu)
        best["stages"], best["code"] = answer.get("candidates", 0), code
        answer, code, wall, cpu = timed([tool, "exec", dump, "--all-stages", f"--seed={seed}", "--json"])
        keep("all", cpu)
        best["code"] = max(best["code"], code)
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tool"), p.add_argument("dumps", nargs="+", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    print("| dump | stages | one evaluation, run_s | exec, processor s | bisect, processor s | ratio | all stages, processor s | ratio | bisect, wall/run_s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    ratios, large, all_stages, wrong = [], [], [], 0
    for dump in a.dumps:
        m = measure(a.tool, dump, a.rounds, a.seed)
        if not m:
            print(f"| {dump.name} | its first stage cannot be evaluated |", flush=True)
            continue
        ratio = m["bisect"] / max(m["exec"], 1e-9)
        ratios.append(ratio)
        all_stages.append(m["all"] / max(m["exec"], 1e-9))
        if m["run"] >= 0.05:
            large.append(ratio)
        wrong += m["code"] != 0
        bad = "" if m["code"] == 0 else f" (exit code {m['code']})"
        print(f"| {dump.name}{bad} | {m['stages']} | {m['run']:.4f} | {m['exec']:.3f} | {m['bisect']:.3f} | {ratio:.1f} | "
              f"{m['all']:.3f} | {all_stages[-1]:.1f} | {m['wall'] / max(m['run'], 1e-9):.1f} |", flush=True)
    for what, of in (("bisect, all", ratios), ("bisect, 0.05 s or more", large), ("all stages", all_stages)):
        if of:
            print(f"median of {len(of)} ({what}): {statistics.median(of):.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
