#!/usr/bin/env python3
"""What --engine=installed makes of corpus modules: tests/dev/faults/installed_shows.py TOOL [--python PY]… [--targets cpu,gpu:H200,tpu:v5e:2x2] [MODULE…]

A row a module, interpreter and target: stages, whether the folder opens as the same recording, what the way through StableHLO lost, and the command's time over
that of the compilation itself with the same dumps (../shared/oracle/xla.py compile, a process of its own). Needs the interpreters of ../shared/oracle."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
SHARED = ROOT.parent / "shared"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
MODULES = ("xla__multihost__fp8_gemm_loop", "xla__cpubench__argsort_axis_1024x512_bf16", "xla__cpubench__mha_block_1x12x128x64_bf16",
           "xla__cpubench__topk_logits_k10_1x50000_bf16", "xla__multihost__while_with_known_trip_count")
DUMP = "--xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_dump_large_constants --xla_dump_module_metadata"


def timed(command, **how):
    start = time.time()
    done = subprocess.run(command, capture_output=True, text=True, **how)
    return done, time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--python", action="append")
    parser.add_argument("--targets", default="cpu,gpu:H200,tpu:v5e:2x2")
    args = parser.parse_args()
    pythons = args.python or [CACHE / "hlo-oracle-0.10.2" / "bin" / "python", CACHE / "hlo-oracle-0.12.0.1" / "python"]
    wrong = 0
    print("| module | XLA | target | stages | pass runs | from the folder | lost on the way | command | compilation | ratio |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for module in args.modules:
        file = SHARED / "corpus" / f"{module}.hlo.txt"
        for python in pythons:
            for target in args.targets.split(","):
                if target.startswith("tpu") and "0.12" not in str(python):
                    continue
                with tempfile.TemporaryDirectory() as directory:
                    out, alone = pathlib.Path(directory) / "out", pathlib.Path(directory) / "alone"
                    alone.mkdir()
                    env = dict(os.environ, HLO_REPLAY_CACHE="", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
                    command = [args.tool, "replay", file, f"--engine=installed:{python}", f"--target={target}", "-o", out]
                    done, ours = timed(command, env=env)
                    if done.returncode:
                        wrong += 1
                        print(f"| {module} | {python} | {target} | {done.stderr.strip().splitlines()[-1][:200]} |")
                        continue
                    facts = json.loads((out / "engine.json").read_text())
                    baseline = [python, SHARED / "oracle" / "xla.py", "compile", file, "--backend", target.split(":")[0], "--dump", alone, "--large-constants", "--flags", DUMP]
                    theirs = min(timed(baseline, env=env)[1] for _ in range(2))
                    ours = min(ours, timed([*command, "--force"], env=env)[1])
                    opened = json.loads(subprocess.run([args.tool, "open", out, "--json"], capture_output=True, text=True, env=env).stdout)["modules"][0]
                    asked = json.loads(subprocess.run([*command, "--force", "--json"], capture_output=True, text=True, env=env).stdout)
                    plain = lambda stages: [{k: v for k, v in s.items() if k != "microseconds"} for s in stages]  # another compilation has other times
                    same = plain(opened["stages"]) == plain(asked["stages"])
                    wrong += not same
                    stages, runs = sum("file" in s for s in opened["stages"]), sum(s["kind"] == "pass" for s in opened["stages"])
                    lost = "; ".join(facts["lost"]) or ("nothing" if facts["same_as_file"] else "restated")
                    print(f"| {re.sub('^[a-z]+__', '', module)} | {facts['jaxlib']} | {target} | {stages} | {runs} | {'the same' if same else 'ANOTHER'} | {lost[:80]} | {ours:.2f} s | {theirs:.2f} s | {ours / theirs:.2f} |", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
