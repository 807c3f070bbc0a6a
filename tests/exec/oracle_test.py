#!/usr/bin/env python3
"""Printing, stages and results against XLA itself: oracle_test.py TOOL SOURCE [text|results]. Exit 77 (skipped) where the reference is not installed.

XLA takes seconds to start, so it lives in this process for all that it is asked, but for compilations whose flags are a process's own."""
import argparse
import contextlib
import glob
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

tool, source = sys.argv[1:3]
parts = sys.argv[3:] or ["text", "results"]
source = pathlib.Path(source)
oracle = source.parent / "shared" / "oracle"
venv = pathlib.Path(os.environ.get("HLO_ORACLE_VENV", pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "hlo-oracle-0.10.2"))
python = venv / "bin" / "python"
if not (oracle / "xla.py").exists() or not python.exists():
    print("skipped: the reference compiler is not here (shared/oracle/setup.sh installs it)")
    sys.exit(77)
if pathlib.Path(sys.executable).resolve().parent != python.parent and not os.environ.get("HLO_IN_ORACLE"):
    os.execve(python, [str(python), __file__, tool, str(source), *parts], dict(os.environ, HLO_IN_ORACLE="1"))

sys.path.insert(0, str(oracle))
import numpy as np
import xla

failures = 0


def check(name, condition, detail=""):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED {name}: {detail}")


def ours(*args):
    return subprocess.run([tool, *map(str, args)], capture_output=True, text=True, timeout=600)


def texts():
    """Every module that both read: default print byte for byte, the other styles, and protos both ways."""
    compared, styles, protos = 0, 0, 0
    with tempfile.TemporaryDirectory() as directory:
        theirs, mine = pathlib.Path(directory) / "theirs.pb", pathlib.Path(directory) / "mine.pb"
        for path in sorted(glob.glob(str(source.parent / "shared" / "corpus" / "*.txt"))) + sorted(glob.glob(str(source / "testdata" / "*.hlo"))):
            try:
                module = xla.parse(path)
                want = xla.styled(module, "default")
            except Exception:
                check("readable", ours("print", path).returncode == 0, path)
                continue
            got = ours("print", path)
            check("print", got.returncode == 0 and got.stdout == want, f"{path}: {got.stderr[:300]}")
            compared += 1

            # Elided constants stay elided here; XLA makes values up for them.
            elided = "{...}" in pathlib.Path(path).read_text()
            # The other styles, on what is not too large to be asked five times.
            text = None
            for style in ("long", "short", "canonical", "fingerprint") if os.path.getsize(path) <= 200_000 else ():
                if elided and style != "canonical":
                    continue
                got = ours("print", "--style=" + style, path)
                check("style", got.returncode == 0 and got.stdout == xla.styled(module, style), f"{style} {path}")
                text = got if style == "long" else text
                styles += 1

            # We read XLA's proto as XLA reads its own, and XLA reads ours; text → pb → text is the identity.
            theirs.write_bytes(module.as_serialized_hlo_module_proto())
            want = xla.styled(xla.parse(theirs), "long")
            got = ours("print", "--style=long", theirs)
            check("XLA's proto", got.returncode == 0 and got.stdout == want, f"{path}: {got.stderr[:300]}")
            made = ours("convert", path, mine)
            check("our proto", made.returncode == 0, f"{path}: {made.stderr[:300]}")
            back, text = ours("print", "--style=long", mine), text or ours("print", "--style=long", path)
            check("text → pb → text", back.returncode == 0 and back.stdout == text.stdout, f"{path}: {back.stderr[:300]}")
            if not elided:
                check("our proto in XLA", xla.styled(xla.parse(mine), "long") == want, path)
            protos += 1
    print(f"{compared} modules print as XLA prints them")
    print(f"{styles} prints in the other styles")
    print(f"{protos} modules as protos both ways")


def xla_runs(path, seed, out, process=False):
    """What `xla.py run` does, in this process, or in one of its own."""
    if process:
        run = subprocess.run([sys.executable, str(oracle / "xla.py"), "run", str(path), "--seed", seed, "--repeat", "1", "--out", str(out)], capture_output=True, text=True)
        check("xla runs", run.returncode == 0, f"{path}: {run.stderr[-300:]}")
        return
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            xla.cmd_run(argparse.Namespace(file=str(path), seed=int(seed), scheme="mixed", limit_gb=8, inputs=None, out=str(out), repeat=1))
    except (Exception, SystemExit) as error:
        check("xla runs", False, f"{path}: {str(error)[-300:]}")


def results():
    # Every stage of a replay is text that XLA reads; every stage computes what XLA computes for the input.
    with tempfile.TemporaryDirectory() as directory:
        stages = 0
        for name in ("mobilenet_v1", "linear_regression", "linear_regression_loop", "mnist_softmax", "add", "mul"):
            path = source / "testdata" / f"{name}.hlo"
            out = pathlib.Path(directory) / name
            done = ours(path, "-o", out, "--formats=text")
            check("replay", done.returncode == 0, done.stderr)
            reference = pathlib.Path(directory) / f"{name}.npz"
            xla_runs(path, 1, reference)
            want = np.load(reference)
            for stage in sorted(out.glob("*.txt")):
                try:
                    xla.parse(stage)
                except Exception as error:
                    check("xla reads the stage", False, f"{stage.name}: {str(error)[:200]}")
                got = pathlib.Path(directory) / "got.npz"
                done = ours("exec", stage, "--seed=1", f"--out={got}")
                check("exec", done.returncode == 0, done.stderr)
                result = np.load(got)
                for key in want.files:
                    a, b = result[key], want[key]
                    check("shape", a.shape == b.shape and a.dtype == b.dtype, f"{stage.name} {key}")
                    if a.dtype.kind == "f" and key[0] == "o":
                        worst = np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30)
                        check("result", worst < 1e-4, f"{stage.name} {key}: {worst}")
                    else:
                        check("result", np.array_equal(a, b), f"{stage.name} {key}")
                stages += 1
        print(f"{stages} stages read and computed as by XLA")

    # Small modules of the corpus and of one operation each: results equal, seeds 1 to 3. Modules whose result is random
    # (GetRngSeed) or that run long are in docs/COVERAGE.md (tests/dev/bench/bench_exec.py).
    with tempfile.TemporaryDirectory() as directory:
        runs = 0
        names = "u4_all_gather sharded_16 large_constant while_with_known linx_frag_0100 linx_frag_0428 mha_block argsort dynamic_slice_loop isolated_convolution detr__infer__1gpu".split()
        corpus = [f for f in sorted(glob.glob(str(source.parent / "shared" / "corpus" / "*.txt"))) if any(n in f for n in names)]
        for path in corpus + sorted(glob.glob(str(source / "testdata" / "modules" / "*.hlo"))):
            for seed in ("1", "2", "3") if "detr" not in path else ("1",):
                reference = pathlib.Path(directory) / "want.npz"
                # Of one device's share XLA leaves the rest of a gather over eight as the memory is: zeros in a new process.
                xla_runs(path, seed, reference, process="u4_all_gather" in path)
                done = ours("exec", path, f"--seed={seed}", "--compare-with", reference)
                check("exec as XLA", done.returncode == 0, f"{path} seed {seed}: {done.stdout[-400:]}{done.stderr[-400:]}")
                runs += 1
        print(f"{runs} runs equal to XLA's")

        # What XLA's GPU pipeline makes of them, library calls and fusions included, computes the same in every stage; so do
        # the shares of four partitions.
        for name, more in (("layer_norm", []), ("softmax", []), ("llama_block", []), ("own4", ["--partitions", "4"])):
            dump = pathlib.Path(directory) / name
            path = source / "testdata" / "modules" / f"{name}.hlo"
            subprocess.run([sys.executable, str(oracle / "xla.py"), "compile", str(path), "--backend", "gpu", "--dump", str(dump), "--large-constants", *more], capture_output=True)
            done = ours("exec", dump, "--all-stages")
            check("stages of XLA", done.returncode == 0 and done.stdout.splitlines()[-1].startswith("all "), f"{name}: {done.stdout[-400:]}{done.stderr[-300:]}")
            print(f"{name}: {done.stdout.splitlines()[-1] if done.stdout else done.stderr}")

    # Ten operations of resnet50's inference through all of XLA's stages, as checked by hand.
    with tempfile.TemporaryDirectory() as directory:
        dump = pathlib.Path(directory) / "resnet50"
        [path] = glob.glob(str(source.parent / "shared" / "corpus" / "*resnet50__infer*"))
        subprocess.run([sys.executable, str(oracle / "xla.py"), "compile", path, "--backend", "gpu", "--dump", str(dump)], capture_output=True)
        told = json.loads((source / "testdata" / "explain" / "resnet50.json").read_text())
        for name, want in told.items():
            story = json.loads(ours("explain", dump, name, "--json").stdout)
            check("explain", story["source"] == want["source"], f"{name}: {story['source']}")
            steps = [f"{e['stage']}: {e['what']}" for e in story["events"]]
            check("explain", steps == want["steps"], f"{name}: {steps}")
        print(f"{len(told)} operations of resnet50 explained as by hand")


for part in parts:
    {"text": texts, "results": results}[part]()
print("oracle_test:", "FAILED" if failures else "passed")
sys.exit(1 if failures else 0)
