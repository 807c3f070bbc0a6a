#!/usr/bin/env python3
"""--engine=installed: which Python is asked, what is asked of it, and what is said where it refuses, aborts or hangs. The jaxlib of these tests is an actor
(fake_jaxlib below); where the oracle's is installed, one real compilation closes the test."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run, source, tool
from json_schema import Schemas

MODULE = "HloModule m\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  n = f32[4]{0} negate(p)\n  ROOT s = f32[4]{0} sqrt(n)\n}\n"

# What the driver uses of jaxlib, acting as FAKE_JAXLIB says. "Compiling" writes the stages that XLA_FLAGS ask for.
ACTOR = '''
import os, re, signal, sys, time
act = os.environ.get("FAKE_JAXLIB", "")
class _Anything:
    def __init__(self, *a, **k): pass
class Device:
    id, device_kind = 0, "an actor"
    client = None
def compile_it(module, devices, options):
    flags = os.environ["XLA_FLAGS"]
    if act == "flags": open(os.environ["FAKE_FLAGS"], "w").write(flags)
    if act == "abort":
        sys.stderr.write("F1124 11:11:11.000000 7 layout.cc:12] Check failed: rank == 2 (3 vs. 2)\\n"); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGABRT)
    if act == "unknown flag":
        sys.stderr.write("Unknown flag in XLA_FLAGS: --xla_foo=1\\n"); sys.stderr.flush(); os.abort()
    if act == "hang": time.sleep(600)
    if act == "refuse": raise RuntimeError("INVALID_ARGUMENT: it does not please me")
    if "--xla_dump_to" not in flags and not act.startswith("crash"): return
    folder = (re.search("--xla_dump_to=([^ ]+)", flags) or [0, "/dev/null"])[1]
    left_out = re.search("disable_hlo_passes=[^ ]*first-pass", flags)
    texts = {"before_optimizations": "n = f32[4]{0} negate(p)", "0001.simple.after_first-pass.before_second": "n = f32[4]{0} abs(p)" if "wrong" in flags else "n = f32[4]{0} negate(p)\\n  x = f32[4]{0} abs(p)", "cpu_after_optimizations": "n = f32[4]{0} negate(p)"}
    if act == "silent": texts = {}
    from jaxlib.version import __version__ as version
    newer = tuple(map(int, version.split("."))) >= (0, 13, 2)
    if act == "crash when newer":
        if newer and not left_out: os.abort()
        return
    if act == "releases" and newer and not left_out and "--xla_old_way" not in flags:
        texts["0001.simple.after_first-pass.before_second"] = texts["cpu_after_optimizations"] = "m = f32[4]{0} negate(p)\\n  n = f32[4]{0} abs(m)"
    if act == "by another way":
        texts["0001.simple.after_first-pass.before_second"] = texts["cpu_after_optimizations"] = "n = f32[4]{0} cosine(p)" if left_out else "m = f32[4]{0} negate(p)\\n  n = f32[4]{0} abs(m)" if newer else "n = f32[4]{0} negate(p)"
    if act.startswith("kernels "):   # of all passes, without the first, without the second
        out = (re.search("disable_hlo_passes=([^ ]*)", flags) or [0, ""])[1].split(",")
        one = [f"k{n} = f32[4]{{0}} sine(p)" for n in range(int(act.split()[1 if not out[0] else 2 if "first-pass" in out else 3]) - 2)]
        last = "\\n  ".join(one + ["n = f32[4]{0} negate(p)"])
        texts = {"before_optimizations": "n = f32[4]{0} negate(p)", "0001.simple.after_first-pass.before_second-pass": "n = f32[4]{0} abs(p)", "0002.simple.after_second-pass.before_pipeline-end": last, "cpu_after_optimizations": last}
    if "wrong" in flags: texts["cpu_after_optimizations"] = "n = f32[4]{0} abs(p)"
    for name, line in texts.items():
        open(f"{folder}/module_0001.m.{name}.txt", "w").write("HloModule m\\n\\nENTRY e {\\n  p = f32[4]{0} parameter(0)\\n  " + line + "\\n  ROOT s = f32[4]{0} sqrt(n)\\n}\\n")
class Client:
    platform_version = "actor 1"
    def devices(self): return [Device()] * 2
    def compile_and_load(self, *a): compile_it(*a)
Device.client = Client()
'''
FILES = {
    "jaxlib/__init__.py": "",
    "jaxlib/version.py": "__version__ = '0.10.99'",
    "jaxlib/actor.py": ACTOR,
    "jaxlib/xla_client.py": """
from jaxlib.actor import Client, _Anything
class CompileOptions:
    def __init__(self): self.executable_build_options = _Anything()
class DeviceAssignment:
    create = staticmethod(lambda a: a)
make_cpu_client = Client
def make_c_api_device_topology(*a, **k): raise RuntimeError('no such chip')
load_pjrt_plugin_dynamically = initialize_pjrt_plugin = lambda *a: None
""",
    "jaxlib/_jax.py": """
class mlir:
    hlo_to_stablehlo = staticmethod(lambda proto: b'ML\\xefR' + proto)
    deserialize_portable_artifact = staticmethod(lambda data: data)
    @staticmethod
    def mlir_module_to_xla_computation(data, **k):
        class Computation:
            as_serialized_hlo_module_proto = staticmethod(lambda: open(__import__('os').environ['FAKE_PROTO'], 'rb').read())
        return Computation
DeviceList = tuple
""",
    "jaxlib/_hlo.py": "class XlaComputation: pass",
    "jaxlib/mlir/__init__.py": "",
    "jaxlib/mlir/ir.py": """
import contextlib
class Context:
    append_dialect_registry = load_all_available_dialects = lambda *a: None
    __enter__ = lambda self: self
    __exit__ = lambda *a: None
class Location:
    unknown = staticmethod(lambda c=None: contextlib.nullcontext())
class DialectRegistry: pass
class Module:
    @staticmethod
    def parse(text):
        class Parsed:
            class operation:
                write_bytecode = staticmethod(lambda file: file.write(b'ML\\xefR'))
        return Parsed
""",
    "jaxlib/mlir/dialects/__init__.py": "",
    "jaxlib/mlir/dialects/stablehlo.py": "register_dialect = lambda c: None",
    "jaxlib/mlir/dialects/chlo.py": "register_dialect = lambda c: None",
    "jaxlib/mlir/_mlir_libs/__init__.py": "",
    "jaxlib/mlir/_mlir_libs/_jax_mlir_ext.py": "register_dialects = lambda r: None",
    "numpy.py": "int32 = 'i4'\narray = lambda a, dtype: a",
    "libtpu.py": "get_library_path = lambda: '/nowhere'",
}


def python_of(folder, version="0.10.99", files=FILES):
    """An interpreter that has the actor: a script that is this Python with a folder of its own on its path."""
    for name, text in files.items():
        path = folder / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name != "jaxlib/version.py" else f"__version__ = '{version}'")
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    program = folder / "bin" / "python3"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    shutil.copy(program, folder / "bin" / "python")
    return program


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    actor, old, none = python_of(tmp / "actor"), python_of(tmp / "old", "0.4.1"), python_of(tmp / "none", files={})
    module, stable = tmp / "m.hlo", tmp / "m.mlir"
    module.write_text(MODULE)
    stable.write_text("module @m {\n  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n    return %a : tensor<4xf32>\n  }\n}\n")
    quiet = {"HLO_REPLAY_PYTHON": "", "VIRTUAL_ENV": "", "XLA_FLAGS": "", "XDG_CACHE_HOME": str(tmp / "cache")}

    def ask(command, *args, act="", **env):
        return run(command, module, *args, env={**quiet, "FAKE_JAXLIB": act, **env})

    def installed(python=actor):
        return f"--engine=installed:{python}"

    # --- whom it asks ---
    for name, env, word in (("HLO_REPLAY_PYTHON", {"HLO_REPLAY_PYTHON": str(actor), "VIRTUAL_ENV": str(tmp / "old")}, "HLO_REPLAY_PYTHON"),
                            ("an active venv", {"VIRTUAL_ENV": str(tmp / "actor"), "PATH": f"{tmp}/none/bin:/usr/bin:/bin"}, "virtual environment"),
                            ("PATH, past one without jaxlib", {"PATH": f"{tmp}/none/bin:{tmp}/actor/bin:/usr/bin:/bin"}, "python3 on PATH"),
                            ("a venv without jaxlib is passed", {"VIRTUAL_ENV": str(tmp / "none"), "PATH": f"{tmp}/actor/bin:/usr/bin:/bin"}, "python3 on PATH")):
        code, out, err = ask("replay", "--engine=installed", "-o", tmp / "found", "--force", **env)
        expect(name, code == 0 and word in out and "jaxlib 0.10.99" in out, f"{code} {out} {err}")
    code, out, err = ask("replay", "--engine=installed", "-o", tmp / "x", PATH=f"{tmp}/none/bin")
    expect("nobody has jaxlib", code == 2 and "none/bin/python3" in err and "--engine=installed:PYTHON" in err and not (tmp / "x").exists(), err)
    code, out, err = ask("replay", installed(tmp / "actor"), "-o", tmp / "venv")
    expect("a folder is a virtual environment", code == 0, err)
    for wrong, said in ((tmp, "no virtual environment"), ("/no/python", "no such program"), ("no-such-python", "on PATH"), ("", "names no Python")):
        code, out, err = ask("replay", installed(wrong), "-o", tmp / "x")
        expect(f"no interpreter: {wrong}", code == 2 and said in err, err)
    code, out, err = ask("replay", installed(old), "-o", tmp / "x")
    expect("a jaxlib that is too old", code == 2 and "0.4.1 is too old" in err, err)
    code, out, err = ask("replay", installed(none), "-o", tmp / "x")
    expect("an interpreter without jaxlib", code == 2 and "no jaxlib" in err and "pip install" in err, err)
    code, out, err = ask("replay", "--engine=someones", "-o", tmp / "x")
    expect("another engine", code == 2 and "installed:PYTHON" in err, err)

    # --- releases: nothing is taken from PyPI that nobody allowed ---
    code, out, err = ask("replay", "--engine=installed:0.10.2", "--offline", "-o", tmp / "x")
    expect("--offline", code == 2 and "--offline" in err, err)
    code, out, err = ask("replay", "--engine=installed:0.10.2", "-o", tmp / "x")
    expect("nobody is there to be asked", code == 2 and "--yes" in err, err)
    code, out, err = ask("replay", "--engine=installed:0.12.0.1", "--yes", "-o", tmp / "x", PATH="/nowhere")
    expect("no Python for that release", code == 2 and "Python 3.12" in err and "HLO_REPLAY_PYTHON_3_12" in err, err)
    python_of(tmp / "cache" / "hlo-replay" / "releases" / "0.10.99")
    (tmp / "cache" / "hlo-replay" / "releases" / "0.10.99" / "has-cpu").write_text("")
    code, out, err = ask("replay", "--engine=installed:0.10.99", "--offline", "-o", tmp / "release")
    expect("a release that is there", code == 0 and "release 0.10.99" in out, err)

    # --- targets ---
    for target, said in (("gpu:H300", "H200"), ("gpu:no.pbtxt", "no such file"), ("tpu:v5e", "topology"), ("vpu", "cpu, gpu:NAME"), (f"gpu:{module}", "gpu_device_info")):
        code, out, err = ask("replay", installed(), f"--target={target}", "-o", tmp / "x")
        expect(f"target {target}", code == 2 and said in err, err)
    code, out, err = ask("replay", installed(), "--target=tpu:v5e:2x2", "-o", tmp / "x")
    expect("a target that the plugin does not take", code == 2 and "no such chip" in err, err)
    code, out, err = ask("replay", installed(), "--target=gpu:H200", "-o", tmp / "x")
    expect("no CUDA plugin", code == 2 and "jax-cuda" in err, err)

    # --- how it ends ---
    code, out, err = ask("replay", installed(), "-o", tmp / "x", act="abort")
    expect("a CHECK failure", code == 2 and "aborted while compiling" in err and "Check failed: rank == 2" in err and not (tmp / "x").exists(), err)
    code, out, err = ask("replay", installed(), "--xla-flags=--xla_foo=1", "-o", tmp / "x", act="unknown flag")
    expect("a flag that it does not know", code == 2 and "does not know a flag" in err and "--xla_foo=1" in err, err)
    code, out, err = ask("replay", installed(), "-o", tmp / "x", act="refuse")
    expect("an error of XLA's", code == 2 and "it does not please me" in err, err)
    code, out, err = ask("replay", installed(), "-o", tmp / "x", act="silent")
    expect("nothing dumped", code == 2 and "dumped nothing" in err and not (tmp / "x").exists(), err)
    start = time.time()
    code, out, err = ask("replay", installed(), "--time-limit=0.7", "-o", tmp / "x", act="hang")
    expect("a time limit", code == 2 and "not done after 0.7 s" in err and time.time() - start < 10, err)
    child = subprocess.Popen([tool, "replay", str(module), installed(), "-o", str(tmp / "x")], env={**os.environ, **quiet, "FAKE_JAXLIB": "hang"}, stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    start = time.time()
    err = child.communicate(timeout=20)[1]
    expect("Ctrl-C", child.returncode == 2 and time.time() - start < 1.5 and "interrupted" in err and not [p for p in tmp.iterdir() if p.name.startswith("x")], f"{child.returncode} {time.time() - start} {err}")

    # --- flags: the user's behind the environment's, disable lists joined into one, the dump's last ---
    kept = tmp / "flags"
    code, out, err = ask("replay", installed(), "--xla-flags=--xla_a=1 --xla_disable_hlo_passes=b", "--disable-passes=c", "--partitions=2", "-o", tmp / "flagged", act="flags",
                         XLA_FLAGS="--xla_disable_hlo_passes=a --xla_b=2", FAKE_FLAGS=str(kept))
    flags = kept.read_text().split() if kept.exists() else []
    expect("flags", code == 0 and flags.index("--xla_b=2") < flags.index("--xla_a=1") and "--xla_disable_hlo_passes=b,c" in flags and "--xla_force_host_platform_device_count=2" in flags
           and flags.index("--xla_disable_hlo_passes=b,c") > flags.index("--xla_disable_hlo_passes=b") and "--xla_dump_hlo_pass_re=.*" in flags, f"{flags} {err}")

    # --- what comes of it ---
    code, out, err = ask("replay", installed(), "-o", tmp / "made")
    expect("replay", code == 0 and "3 stages" in out and "FILE's structure" in out, f"{out} {err}")
    code, out, err = ask("replay", installed(), "-o", tmp / "made")
    expect("an existing folder stays", code == 2 and "--force" in err, err)
    from_command = json.loads(ask("replay", installed(), "-o", tmp / "json", "--json")[1])
    from_folder = json.loads(run("open", tmp / "json", "--json", env=quiet)[1])["modules"][0]
    expect("the same recording from the folder", from_command["stages"] == from_folder["stages"] and len(from_command["stages"]) == 3, from_folder)
    schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
    for name, value, schema in (("replay --json", from_command, "recording"), ("engine.json", json.loads((tmp / "json" / "engine.json").read_text()), "engine")):
        expect(f"{name} is as its schema says", not schemas.wrong(value, schema + ".json"), schemas.wrong(value, schema + ".json"))
    expect("who compiled it", from_command["engine"]["jaxlib"] == "0.10.99" and from_command["engine"]["same_as_file"] is True, from_command.get("engine"))
    module.write_text(MODULE.replace("HloModule m", "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }").replace("p = f32[4]{0} parameter(0)\n", "p = f32[4]{0} parameter(0)\n  b = f32[4]{0} bitcast(p)\n").replace("negate(p)", "negate(b)"))
    lost = json.loads(ask("replay", installed(), "-o", tmp / "lossy", "--json")[1])["engine"]
    expect("what was lost", lost["same_as_file"] is False and "input_output_alias" in lost["lost"] and "all 1 bitcast" in lost["lost"], lost)
    module.write_text(MODULE)
    code, out, err = ask("replay", installed(), "--formats=svg", "-o", tmp / "x")
    expect("an option of our own passes", code == 2 and "--formats" in err, err)
    code, out, err = run("replay", stable, installed(), "-o", tmp / "stable", env=quiet)
    expect("StableHLO", code == 0 and "3 stages" in out, err)

    # --- other commands ---
    code, out, err = run("print", stable, env=quiet)
    expect("MLIR without an engine says how", code == 2 and "--engine=installed" in err, err)
    expect("a proto for the actor", run("convert", module, tmp / "m.pb")[0] == 0)
    code, out, err = run("convert", stable, tmp / "back.hlo", installed(), env={**quiet, "FAKE_PROTO": str(tmp / "m.pb")})
    expect("convert StableHLO", code == 0 and "negate" in (tmp / "back.hlo").read_text(), err)
    code, out, err = ask("convert", tmp / "y.hlo", installed())
    expect("convert HLO needs no engine", code == 2 and "no StableHLO" in err, err)
    code, out, err = ask("diff", installed(), "--flags-b=--wrong")
    expect("diff of two compilations", code == 1 and "first stage that differs: simple.after_first-pass" in out and "kernels" in out, f"{code} {out} {err}")
    both = json.loads(ask("diff", installed(), "--flags-a=--right", "--flags-b=--wrong", "--json")[1])
    expect("diff --json is as its schema says", not schemas.wrong(both, "diff.json"), schemas.wrong(both, "diff.json"))
    expect("diff --json", both["same"] is False and both["compilations"]["b"]["flags"].endswith("--wrong") and both["compilations"]["a"]["kernels"] > 0, both)
    code, out, err = ask("diff", installed(), "--flags-b=--nothing", "-o", tmp / "two")
    expect("diff: no difference, both kept", code == 0 and (tmp / "two" / "a" / "engine.json").exists() and (tmp / "two" / "b").exists(), err)
    expect("diff: where no flag is set none is told", out.count("XLA_FLAGS:") == 1, out)
    code, out, err = ask("diff", installed())
    expect("diff of the same", code == 2 and "--flags-b" in err, err)
    code, out, err = ask("bisect", installed(), "--xla-flags=--wrong")
    expect("bisect of a compilation", code == 1 and "guilty: pass first-pass" in out, f"{code} {out} {err}")
    code, out, err = ask("bisect", installed())
    expect("bisect: all good", code == 0, f"{code} {out} {err}")

    code, out, err = ask("triage", installed(), "--xla-flags=--wrong", "--json")
    told = json.loads(out)
    expect("triage: a stage of a compilation", code == 1 and told["verdict"] == "fault" and told["pass"] == "first-pass" and told["sure"] == "tested", told)
    expect("triage: its schema", not schemas.wrong(told, "triage.json"), schemas.wrong(told, "triage.json"))

    # --- over releases, flags and passes ---
    for version in ("0.13.0", "0.13.1", "0.13.2", "0.13.3", "0.13.4"):
        python_of(tmp / "cache" / "hlo-replay" / "releases" / version, version)
        (tmp / "cache" / "hlo-replay" / "releases" / version / "has-cpu").write_text("")
    releases = ("--releases=0.13.0..newest", "--offline", "--by=kernels")
    code, out, err = ask("bisect", *releases, "-o", tmp / "change", act="releases")
    expect("which release", code == 1 and "between 0.13.1 (2 kernels) and 0.13.2 (3 kernels)" in out and "guilty: pass first-pass" in out and "first stage that differs: simple.after_first-pass" in out, f"{code} {out} {err}")
    report = json.loads((tmp / "change" / "report.json").read_text())
    expect("its report", not schemas.wrong(report, "bisect_xla.json") and (tmp / "change" / "before").is_dir() and report["monotone"] is True, schemas.wrong(report, "bisect_xla.json"))
    code, out, err = ask("bisect", *releases, "--json", act="releases")
    again = json.loads(out)
    expect("what was answered is remembered", again["before"] == "0.13.1" and again["compilations"] == 3 and again["remembered"] > 4 and not schemas.wrong(again, "bisect_xla.json"), again)
    shutil.rmtree(tmp / "cache" / "hlo-replay" / "answers")
    code, out, err = ask("bisect", *releases, act="by another way")
    expect("a figure that comes back by another way is no proof", code == 1 and "guilty" not in out and "in 0.13.2 without first-pass it is 2 kernels again, but by another module" in out and "first stage that differs: simple.after_first-pass" in out, f"{code} {out} {err}")
    shutil.rmtree(tmp / "cache" / "hlo-replay" / "answers")
    code, out, err = ask("bisect", *releases, act="")
    expect("no release differs", code == 0 and "0.13.0 and 0.13.4 agree: 2 kernels" in out, f"{code} {out} {err}")
    shutil.rmtree(tmp / "cache" / "hlo-replay" / "answers")
    code, out, err = ask("bisect", "--releases=0.13.0..0.13.4", "--offline", "--by=crash", act="crash when newer")
    expect("which release crashes", code == 1 and "0.13.1" in out and "0.13.2" in out, f"{code} {out} {err}")
    code, out, err = ask("bisect", "--engine=installed:0.13.4", "--offline", "--xla-flags=--xla_some=1 --xla_old_way --xla_more=2", "--flags", "--by=kernels", act="releases")
    expect("which flag", code == 1 and "by flag --xla_old_way" in out, f"{code} {out} {err}")
    code, out, err = ask("bisect", "--engine=installed:0.13.3", "--offline", "--passes", "--by=crash", act="crash when newer")
    expect("a crash before any stage", code == 2 and "none of the 0 passes" in out, f"{code} {out} {err}")
    # Of a figure: what makes it more, what makes it less, and which of them matters.
    passes = ("--engine=installed:0.13.4", "--offline", "--passes")
    shutil.rmtree(tmp / "cache" / "hlo-replay" / "answers")
    for act, said, guilty in (("kernels 4 2 6", "4 kernels; 1 of 2 passes make it more than it would be, most of all first-pass: without it 2 kernels (-50 %); 1 make it less, most of all second-pass: without it 6 kernels (+50 %)", 1),
                              ("kernels 4 6 8", "4 kernels; no pass makes it more than it is; 2 make it less, most of all second-pass: without it 8 kernels (+100 %)", 1),
                              ("kernels 4 2 3", "4 kernels; 2 of 2 passes make it more than it would be, most of all first-pass: without it 2 kernels (-50 %)", 1),
                              ("kernels 4 4 4", "4 kernels, whichever pass is left out (by 1 %)", 0),
                              ("kernels 402 401 404", "402 kernels, whichever pass is left out (by 1 %)", 0)):
        code, out, err = ask("bisect", *passes, "--by=kernels", act=act)
        expect(f"each pass: {act}", code == guilty and said in out, f"{code} {out} {err}")
        shutil.rmtree(tmp / "cache" / "hlo-replay" / "answers")
    for wrong, said in (("0.13.0", "0.8.0..newest"), ("0.13.0..0.14.0", "no release '0.14.0'"), ("0.13.4..0.13.0", "is not before")):
        code, out, err = ask("bisect", f"--releases={wrong}", "--offline", "--by=kernels")
        expect(f"releases {wrong}", code == 2 and said in err, err)
    code, out, err = ask("bisect", "--engine=installed:0.13.4", "--offline", "--flags", "--by=beauty")
    expect("another measure", code == 2 and "kernels" in err, err)
    code, out, err = ask("bisect", "--engine=installed:0.13.4", "--offline", "--flags", "--by=kernels")
    expect("no flag to ask about", code == 2 and "--xla-flags" in err, err)

    # --- the real one ---
    real = pathlib.Path(os.environ.get("HLO_ORACLE_VENV", pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "hlo-oracle-0.10.2")) / "bin" / "python"
    if real.exists():
        for target in ("cpu", "gpu:H200"):
            code, out, err = run("replay", data / "mnist_softmax.hlo" if (data / "mnist_softmax.hlo").exists() else module, installed(real), f"--target={target}", "-o", tmp / target.replace(":", "_"), "--json", env={"XLA_FLAGS": ""})
            made = json.loads(out) if code == 0 else {}
            expect(f"jaxlib for {target}", code == 0 and len([s for s in made["stages"] if s.get("file")]) > 5 and made["engine"]["jaxlib"], err)
        code, out, err = run("bisect", module, installed(real), "--passes", "--by=time", "--target=cpu", env={"XLA_FLAGS": "", "XDG_CACHE_HOME": str(tmp / "cache")})
        other = run("bisect", module, installed(real), "--passes", "--by=time", "--target=gpu:H200", env={"XLA_FLAGS": "", "XDG_CACHE_HOME": str(tmp / "cache")})
        expect("the time of another machine", other[0] == 2 and "cannot be measured: it is not this machine" in other[1] + other[2] and "--by=kernels" in other[1] + other[2], other)
        expect("the time of this machine is measured", code in (0, 1) and re.search(r"± .* by \d+ runs", out), f"{code} {out} {err}")
    else:
        print("no oracle here: the real compilation is left out")

finish("installed_test")
