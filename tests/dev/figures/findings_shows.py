#!/usr/bin/env python3
"""Findings on six programs of our own, two inefficiencies planted in each, for the GPU and for the CPU.

  python3 findings_shows.py TOOL WORK [--python ORACLE_PYTHON] [--only WORD] [--json FILE]

findings_programs.py's programs are compiled by XLA (../shared/oracle/newest.sh) for the described H200 and for the CPU, into WORK, left alone
where a dump is there. `hlo-replay DIR --try --json` tells what looks odd, where, how much of the bound is to be gained, and what came of
it. A plant is found where a finding names its line; a row of each of the 24 says what was told. Behind it: the findings that no plant
explains, and those whose advice, tried, gained nothing. Exit code 1 where fewer than 20 are found, or a finding is advised that changes nothing."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "findings_programs.py"
ORACLE = HERE.parents[3] / "shared" / "oracle"
BACKENDS = ("gpu", "cpu")
LEAST = 20


def compile_one(name, backend):
    """Run by XLA's own Python; XLA_FLAGS say where the stages go."""
    sys.path[:0] = [str(ORACLE), str(HERE)]
    import xla

    jax = xla.quiet_jax()
    import findings_programs

    jax.config.update("jax_enable_x64", name in findings_programs.IN_F64)
    from jaxlib import _jax

    function, shapes = findings_programs.PROGRAMS[name]
    devices = xla.gpu_devices(str(ORACLE / "h200.pbtxt"), 1) if backend == "gpu" else jax.devices("cpu")[:1]
    module = function.trace(*shapes).lower(lowering_platforms=("cuda" if backend == "gpu" else "cpu",)).compiler_ir("stablehlo")
    client = devices[0].client
    compiled = client.compile if backend == "gpu" else client.compile_and_load
    compiled(module, _jax.DeviceList(tuple(devices)), xla.options_for(devices))


def dumped(python, work, name, backend):
    folder = work / f"{name}_{backend}"
    if not folder.exists():
        flags = f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_module_metadata=true --xla_gpu_autotune_level=0"
        env = dict(os.environ, XLA_FLAGS=flags, PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([python, __file__, "--child", name, backend], env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name} for {backend}: XLA refuses: {done.stderr.strip()[-600:]}")
        for file in folder.iterdir():
            if file.suffix in (".ll", ".ptx", ".o", ".s", ".bc", ".mlir"):
                file.unlink()
    numbers = sorted({p.name.split(".")[0].removeprefix("module_") for p in folder.glob(f"module_*.jit_{name}.*before_optimizations.txt")})
    return f"{folder}:{numbers[0]}"


def plants():
    """By program: {line: kind}."""
    found, name = {}, None
    text = PROGRAMS.read_text().split("\n")
    for number, line in enumerate(text, 1):
        name = re.match(r"def (\w+)\(", line)[1].replace("image_loss", "image_training") if re.match(r"def \w+\(", line) else name
        if "  # planted: " in line:
            found.setdefault(name, {})[number] = line.split("  # planted: ")[1]
    return found


def asked(tool, spec, backend, python):
    words = [tool, "open", spec, "--try", "--json"]
    if backend == "cpu":  # our passes are a GPU's
        words += [f"--engine=installed:{python}", "--target=cpu"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout)["modules"][0]["findings"]


def line_of(finding):
    match = re.match(re.escape(PROGRAMS.name) + r":(\d+)", pathlib.PurePath(finding["source"]).name)
    return int(match[1]) if match else None


def time_text(seconds):
    return f"{seconds * 1e6:.4g} us"


def gains(finding):
    """What was foretold, what came of it, and whether it may stand: (foretold, compiled, fault or '')."""
    tried = finding["tried"]
    told = [time_text(finding["least_seconds"])] if finding["least_seconds"] else []
    told += [f"{finding['bytes'] / 2**20:.4g} MiB"] if finding["bytes"] else []
    foretold = ", ".join(told) or "not counted"
    if not tried["compiled"]:
        return foretold, f"not tried: {tried['what']}", ""
    time = tried["seconds_before"] - tried["seconds_after"]
    memory = tried["allocated_before"] - tried["allocated_after"]
    fault = "" if tried["helps"] else "CHANGES NOTHING"
    if finding["least_seconds"] and time > 1.01 * finding["least_seconds"]:
        fault = "MORE THAN FORETOLD"
    return foretold, f"{time_text(time)}, {memory / 2**20:.4g} MiB", fault


def row_of(name, backend, line, kind, findings):
    of_line = [f for f in findings if line_of(f) == line]
    # Of several that name the line the one that was tried tells most.
    best = next(iter(sorted(of_line, key=lambda f: (not f["tried"]["compiled"], -f["least_seconds"]))), None)
    row = {"program": name, "backend": backend, "line": line, "kind": kind, "found": best is not None, "finding": best and best["kind"]}
    if best:
        row["foretold"], row["compiled"], row["fault"] = gains(best)
        row["tried"], row["helps"] = best["tried"]["compiled"], bool(best["tried"]["helps"])
        row["advice"] = best["advice"]
    return row


def printed(row):
    print(f"{row['backend']} {row['program']}:{row['line']} ({row['kind']}): {row['finding'] or 'NOT FOUND'}")
    if row["found"]:
        print(f"    foretold {row['foretold']}; compiled {row['compiled']} {row['fault']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--python", help="XLA's (what newest.sh prints)")
    parser.add_argument("--only", default="", help="programs or backends whose NAME_BACKEND holds this word; the exit code is of all 24")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    python = args.python or subprocess.run(["bash", ORACLE / "newest.sh"], capture_output=True, text=True, check=True).stdout.strip()
    args.work.mkdir(parents=True, exist_ok=True)
    rows, others, useless = [], [], 0
    for name, planted in plants().items():
        for backend in BACKENDS:
            if args.only not in f"{name}_{backend}":
                continue
            findings = asked(args.tool, dumped(python, args.work, name, backend), backend, python)
            for line, kind in planted.items():
                rows.append(row_of(name, backend, line, kind, findings))
                printed(rows[-1])
            for f in findings:
                foretold, compiled, fault = gains(f)
                useless += f["tried"]["compiled"] and not f["tried"]["helps"]
                if line_of(f) not in planted:
                    others.append({"program": name, "backend": backend, "kind": f["kind"], "source": f["source"], "foretold": foretold, "compiled": compiled, "fault": fault, "what": f["what"]})
    print("\nfindings that no plant explains:")
    for o in others:
        print(f"{o['backend']} {o['program']} {o['kind']} at {o['source'] or 'no line'}: foretold {o['foretold']}; compiled {o['compiled']} {o['fault']}\n    {o['what'][:160]}")
    for backend in BACKENDS:
        of = [r for r in rows if r["backend"] == backend and r["found"]]
        print(f"{backend}: {len(of)} of {sum(r['backend'] == backend for r in rows)} found at their line, {sum(r['tried'] for r in of)} tried, {sum(r['helps'] for r in of)} help, "
              f"{sum(r['fault'] == 'MORE THAN FORETOLD' for r in of)} gain more than was foretold")
    print(f"{useless} findings whose advice, tried, changes nothing; {len(others)} at no planted line")
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "others": others}, indent=1))
    sys.exit(sum(r["found"] for r in rows) < LEAST or useless > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        compile_one(*sys.argv[2:])
    else:
        main()
