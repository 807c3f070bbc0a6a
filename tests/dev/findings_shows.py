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
ORACLE = HERE.parents[2] / "shared" / "oracle"
BACKENDS = ("gpu", "cpu")
LEAST = 20


def compile_one(name, backend):
    """Run by XLA's own Python; XLA_FLAGS say where the stages go."""
    sys.path[:0] = [str(ORACLE), str(HERE)]
    import xla

    jax = xla.quiet_jax()
    import findings_programs
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
        if "# planted: " in line:
            found.setdefault(name, {})[number] = line.split("# planted: ")[1]
    return found


def lines_of(finding):
    """Of findings_programs.py, all that the finding tells."""
    return {int(n) for n in re.findall(re.escape(PROGRAMS.name) + r":(\d+)", json.dumps(finding))}
