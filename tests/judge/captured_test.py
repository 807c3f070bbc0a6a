#!/usr/bin/env python3
"""A captured folder is judged on its own inputs: captured_test.py TOOL. Exit 77 (skipped) where the reference's interpreter is not
installed.

Three programs of jax, one of them on two devices, are run under `hlo-replay capture`. In a copy of each dump every stage from one on
gets an edit that acts only on values that the program has and drawn ones do not: bisect names that stage by the folder's arguments, and
finds nothing with --seed. What does not fit, and what another release wrote, is refused."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

tool = pathlib.Path(sys.argv[1]).resolve()
cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
python = pathlib.Path(os.environ.get("HLO_ORACLE_VENV", cache / "hlo-oracle-0.10.2")) / "bin" / "python"
if not python.exists():
    print("skipped: no interpreter with jax is here (shared/oracle/setup.sh installs one)")
    sys.exit(77)

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

@jax.jit
def limited(x, w):  # a value of the program lies near the limit
    return jnp.where(x > 1e6, 0.0, x) @ w

@jax.jit
def masked(tokens, table):  # tokens behind the vocabulary
    return jnp.where((tokens > 50255)[:, None], 0.0, table[tokens % 16])

mesh = Mesh(np.array(jax.devices()), ("d",))

@jax.jit
def over_devices(x, scale):
    return jnp.sum(jnp.where(x < -3e5, 1.0, x * scale), axis=0)

x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(6, 8)
x[2, 3] = 7e5
limited(x, np.ones((8, 4), np.float32))
masked(np.array([3, 50256, 7, 1, 50255, 9], np.int32), jnp.arange(32.0).reshape(16, 2))
y = np.linspace(-2, 2, 64, dtype=np.float32).reshape(16, 4)
y[9, 1] = -2.9e5
y = jax.device_put(y, NamedSharding(mesh, P("d", None)))
over_devices(y, 2.0)
"""


def beside(operation, limit):
    """A select's last operand goes through `operation` with a limit that no drawn number is near to."""
    def edit(text):
        def put(m):
            name, shape, operands, last = m.groups()
            return (f"  %planted.c = f32[] constant({limit})\n  %planted.b = {shape} broadcast(%planted.c), dimensions={{}}\n"
                    f"  %planted.m = {shape} {operation}({last}, %planted.b)\n{name} = {shape} select({operands}, %planted.m)")
        return re.sub(r"^( *(?:ROOT )?%\S+) = (\S+) select\((%\S+, %\S+), (%\S+)\)", put, text, count=1, flags=re.M)
    return edit


# Edits of a stage's text that change nothing but what the arguments below reach.
PLANTS = {"limited": beside("minimum", "5e+05"), "masked": lambda text: text.replace("direction=GT", "direction=GE"),
          "over_devices": beside("maximum", "-5e+05")}
failures = 0


def expect(name, condition, detail=""):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED {name}: {detail}")


def run(*words, **environment):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False,
                          env=dict(os.environ, JAX_PLATFORMS="cpu", **environment))


def ask(*words):
    done = run(tool, *words, "--json")
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, {"error": {"message": done.stdout + done.stderr}}


def number_of(folder, name):
    return next(f.name for f in folder.iterdir() if re.fullmatch(rf"module_\d+\.jit_{name}\.before_optimizations\.txt", f.name))[7:11]


def sound(captured):
    told = json.loads((captured / "capture.json").read_text())
    expect("versions, flags, devices", told["versions"]["jaxlib"] and "xla_force_host_platform_device_count=2" in told["flags"]["XLA_FLAGS"]
           and len(told["devices"]) == 2 and told["jax_config"]["jax_enable_x64"] is False, told)
    calls = {c["module"]: c for c in told["calls"]}
    shards = calls["jit_over_devices"]["arguments"][0]["shards"]
    expect("shards by device", [s["index"] for s in shards] == [[[0, 8], [0, 4]], [[8, 16], [0, 4]]], shards)
    for name in PLANTS:
        stem = f"module_{number_of(captured, name)}.jit_{name}"
        expect(f"{name}: files", all((captured / (stem + end)).exists() for end in (".arguments.npz", ".results.npz", ".stablehlo.mlir")),
               sorted(os.listdir(captured)))
        spec = f"{captured}:{name}"
        code, answer = ask("check", spec)
        expect(f"{name}: check", code == 0 and answer["verdict"] in ("right", "rounding") and answer["inputs_from"] == f"{stem}.arguments.npz, of the first call", answer)
        code, answer = ask("bisect", spec)
        expect(f"{name}: bisect", code == 0 and not answer["found"] and answer["inputs_from"], answer)
        code, answer = ask("exec", spec + ":after_optimizations")
        expect(f"{name}: exec", code == 0 and answer["inputs_from"], answer)
        results = captured / (stem + ".results.npz")
        code, answer = ask("exec", spec + ":after_optimizations", f"--compare-with={results}")
        expect(f"{name}: exec gives what the program got", code == 0 and answer["equal"], answer)
        code, answer = ask("exec", captured / f"{stem}.before_optimizations.txt", "--seed=1")
        expect(f"{name}: a seed draws", code == 0 and answer["inputs_from"] is None, answer)
        code, answer = ask("exec", "--all-stages", spec)
        expect(f"{name}: all stages", code == 0 and answer["inputs_from"] and answer["different"] == 0, answer)


def planted(captured, tmp):
    for name, edit in PLANTS.items():
        folder = tmp / f"planted_{name}"
        number = number_of(captured, name)
        folder.mkdir()
        for f in captured.iterdir():
            if f.is_file() and (f.name.startswith(f"module_{number}.") or f.name == "capture.json"):
                shutil.copy(f, folder / f.name)
        stages = sorted(f for f in folder.glob(f"module_{number}.jit_{name}.[0-9]*.txt") if edit(f.read_text()) != f.read_text())
        if not stages:
            expect(f"{name}: a stage to edit", False, sorted(os.listdir(folder)))
            continue
        first = next(f for f in stages if ".after_pipeline-start" not in f.name and f >= stages[len(stages) // 2])
        last = next(folder.glob("*after_optimizations.txt"))
        for f in [*(f for f in stages if f >= first), last]:
            f.write_text(edit(f.read_text()))
        code, answer = ask("bisect", folder)
        expect(f"{name}: named on its own inputs", code == 1 and answer["bad_file"] == first.name and answer["inputs_from"], answer)
        code, answer = ask("bisect", folder, "--seed=1")
        expect(f"{name}: random inputs do not reach it", code != 1 and not answer.get("found"), answer)


def refused(captured, tmp):
    number = number_of(captured, "limited")
    folder = tmp / "refused"
    folder.mkdir()
    for f in filter(pathlib.Path.is_file, captured.glob(f"module_{number}.*")):
        shutil.copy(f, folder / f.name)
    told = json.loads((captured / "capture.json").read_text())
    arguments = folder / f"module_{number}.jit_limited.arguments.npz"
    for name, version, words in (("of another release", told["version"] + 1, "another release"), ("damaged", None, "damaged")):
        (folder / "capture.json").write_text(json.dumps(dict(told, version=version)))
        for command in ("check", "bisect", "exec"):
            code, answer = ask(command, f"{folder}:before_optimizations" if command == "exec" else folder)
            expect(f"{command}: {name}", code == 2 and words in answer["error"]["message"], answer)
    (folder / "capture.json").unlink()
    other = next(captured.glob("module_*.jit_masked.arguments.npz"))
    shutil.copy(other, arguments)
    for command in ("check", "bisect", "exec"):
        code, answer = ask(command, f"{folder}:before_optimizations" if command == "exec" else folder)
        expect(f"{command}: arguments that do not fit", code == 2 and "does not fit module jit_limited" in answer["error"]["message"], answer)
    code, answer = ask("bisect", folder, "--seed=1")
    expect("a seed goes without them", code == 0, answer)


SPLIT = """
import json, pathlib, shutil, sys
import numpy as np
captured, top = map(pathlib.Path, sys.argv[1:])
told = json.loads((captured / "capture.json").read_text())
call = next(c for c in told["calls"] if c["module"] == "jit_limited")
stem = f"module_{call['number']:04}.jit_limited"
held = dict(np.load(captured / f"{stem}.arguments.npz"))
call["arguments"][0].update(kept=False, shards=[{"device": d, "index": [[3 * (d % 2), 3 * (d % 2) + 3], [0, 8]]} for d in range(4)])
for k in range(2):
    folder = top / f"process_{k}"
    folder.mkdir(parents=True)
    for f in captured.glob(f"{stem}*.txt"):
        shutil.copy(f, folder / f.name)
    (folder / "capture.json").write_text(json.dumps(dict(told, calls=[call], process={"index": k, "count": 2})))
    np.savez(folder / f"{stem}.arguments.npz", **{f"p0.device{k}": held["p0"][3 * k:3 * k + 3], "p1": held["p1"]})
"""


def several_processes(captured, tmp):
    """Each has written the shards of its own devices: together they are the whole array."""
    done = run(python, "-c", SPLIT, captured, tmp / "ranks")
    expect("split", done.returncode == 0, done.stderr)
    results = next(captured.glob("*.jit_limited.results.npz"))
    one = tmp / "ranks" / "process_0"
    code, answer = ask("exec", f"{one}:before_optimizations", f"--compare-with={results}")
    expect("shards of two processes", code == 0 and answer["equal"] and answer["inputs_from"].endswith("of the first call, shards of 2 processes"), answer)
    shutil.rmtree(tmp / "ranks" / "process_1")
    code, answer = ask("exec", f"{one}:before_optimizations")
    expect("a process whose folder is not there", code == 0 and "p0 not kept whole: random (seed 1)" in answer["inputs_from"], answer)
    arrays = next(one.glob("*.arguments.npz"))
    done = run(python, "-c", "import sys, numpy as np; a = dict(np.load(sys.argv[1])); del a['p1']; np.savez(sys.argv[1], **a)", arrays)
    code, answer = ask("exec", f"{one}:before_optimizations")
    expect("nothing of its arguments is whole", code == 0 and answer["inputs_from"] is None, answer)
    (one / "capture.json").write_text((one / "capture.json").read_text().replace('"shards": [{"device": 0', '"shards": [{"device": -1e3'))
    code, answer = ask("exec", f"{one}:before_optimizations")
    expect("damaged shards", code in (0, 2) and "internal" not in str(answer.get("error", "")), answer)


def by_environment(tmp, program):
    hook = tmp / "hook"
    done = run(tool, "capture", f"--hook={hook}")
    expect("hook", done.returncode == 0 and "HLO_REPLAY_CAPTURE" in done.stdout, done)
    done = run(python, program, PYTHONPATH=str(hook), HLO_REPLAY_CAPTURE=str(tmp / "hooked"), HLO_REPLAY_ARGUMENTS="none",
               XLA_FLAGS="--xla_force_host_platform_device_count=2")
    expect("a program under the hook", done.returncode == 0, done.stderr[-2000:])
    code, answer = ask("open", tmp / "hooked")
    names = {m["module"] for m in answer.get("modules", [])}
    expect("its modules", code == 0 and {f"jit_{n}" for n in PLANTS} <= names, answer)
    folders = list((tmp / "hooked").iterdir())
    expect("a folder a process, no arguments where none are asked for", len(folders) == 1 and (folders[0] / "capture.json").exists()
           and not list(folders[0].glob("*.arguments.npz")), folders)


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    program = tmp / "program.py"
    program.write_text(PROGRAM)
    done = run(tool, "capture", "-o", tmp / "captured", "--", python, program, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    expect("capture", done.returncode == 0, done.stdout + done.stderr)
    sound(tmp / "captured")
    planted(tmp / "captured", tmp)
    refused(tmp / "captured", tmp)
    several_processes(tmp / "captured", tmp)
    by_environment(tmp, program)
print("captured_test:", "FAILED" if failures else "passed")
sys.exit(1 if failures else 0)
