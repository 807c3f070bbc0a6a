#!/usr/bin/env python3
"""triage of modules by a real jaxlib: triage_installed_test.py TOOL SOURCE. Exit 77 (skipped) where the reference's interpreter is not installed.

Cases of testdata/triage/live that jaxlib 0.10.2 gets wrong, one of each kind; a report that runs; the arguments that a program had."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOOL, SOURCE = sys.argv[1:3]
cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
PYTHON = pathlib.Path(os.environ.get("HLO_ORACLE_VENV", cache / "hlo-oracle-0.10.2")) / "bin" / "python"
if not PYTHON.exists():
    print("skipped: no interpreter with jax is here (shared/oracle/setup.sh installs one)")
    sys.exit(77)
failures = 0


def expect(name, condition, detail=""):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED {name}: {detail}")


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    environment = dict(os.environ, XDG_CACHE_HOME=str(tmp / "cache"), JAX_PLATFORMS="cpu")

    def triage(name, *more, limit=60):
        head, *parts = (pathlib.Path(SOURCE) / "testdata" / "triage" / "live" / f"{name}.txt").read_text().split("\n=== ")
        facts = dict(line[2:].split(": ", 1) for line in head.splitlines()[1:])
        parts = dict(part.split("\n", 1) for part in parts)
        (tmp / f"{name}.hlo").write_text(parts["module"])
        words = [f"--engine=installed:{PYTHON}", *(f"--{key}={facts[fact]}" for key, fact in (("target", "target"), ("xla-flags", "flags"), ("partitions", "partitions"), ("complaint", "complaint")) if fact in facts)]
        if "inputs" in parts:
            (tmp / f"{name}.txt").write_text(parts["inputs"])
            words.append(f"--inputs={tmp / name}.txt")
        done = subprocess.run([TOOL, "triage", tmp / f"{name}.hlo", *words, f"--time-limit={limit}", "--json", *more], capture_output=True, text=True, env=environment, timeout=200)
        answer = json.loads(done.stdout) if done.stdout.startswith("{") else {"verdict": done.stderr, "pass": None, "sure": None, "why": "", "details": [], "rungs": []}
        answer["code"] = done.returncode
        return answer

    def verdict(name, word, passname, code, answer, words=""):
        told = json.dumps({k: v for k, v in answer.items() if k not in ("rungs", "contracts")})
        expect(name, (answer["verdict"], answer["pass"], answer["code"]) == (word, passname, code) and words in told and answer["sure"] in ("proved", "tested") and str(tmp) not in answer["why"], told[:3000])
        return answer

    report = tmp / "report"
    answer = verdict("a wrong value", "fault", "algsimp", 1, triage("m001", "-o", report, limit=6), "6 after it")
    issue = (report / "issue.md").read_text()
    expect("its issue", issue.startswith("# Pass algsimp changes the result at b") and "(jaxlib 0.10.2, cpu)" in issue and "dynamic-slice(" in issue and str(tmp) not in issue, issue)
    ran = subprocess.run([PYTHON, report / "run_with_jax.py"], capture_output=True, text=True, env=environment, timeout=60)
    expect("its script shows it", ran.returncode == 1 and "o0[0] is 6, must be 3" in ran.stdout, ran)
    verdict("a pass that dies", "fault", "while-loop-trip-count-annotator", 1, triage("m033"), "without pass")
    verdict("below the stages", "below", "algsimp", 1, triage("m055"), "every stage gives the same")
    verdict("in front of the stages", "below", None, 1, triage("b48717"), "by way of StableHLO")
    verdict("what HLO leaves open", "contract", None, 0, triage("c_log_exp"), "leaves the range")
    verdict("a described GPU, by a flag", "fault", "cublas-gemm-rewriter", 1, triage("m098"), "it depends on flag --xla_gpu_enable_")
    verdict("several devices", "fault", "spmd-partitioning", 1, triage("m125"))
    answer = triage("b44705")
    expect("a sound one", (answer["verdict"], answer["code"]) == ("nothing", 0) and any("on this CPU" in d for d in answer["details"]), answer)

    # The arguments that a program had: those of its first calls, of one module or several, kept by capture, too; a run that XLA wrote down.
    for name, more in (("one", ""), ("several", "jax.jit(lambda x: x * 2)(np.ones(3))\n")):
        program = tmp / f"{name}.py"
        program.write_text(f"import jax, jax.numpy as jnp, numpy as np\njax.jit(lambda x: jnp.log(jnp.exp(x)))(np.array([89.0, 1.0], np.float32))\n{more}")
        done = subprocess.run([TOOL, "triage", "--json", "--", PYTHON, program], capture_output=True, text=True, env=environment, timeout=100)
        answer = json.loads(done.stdout) if done.stdout.startswith("{") else {"error": done.stderr}
        expect(f"the arguments of a program: {name}", answer.get("verdict") == "contract" and answer["inputs"].startswith("module_0000.jit__lambda.arguments.npz"), json.dumps(answer)[:2000])
    subprocess.run([TOOL, "capture", "-o", tmp / "captured", "--", PYTHON, program], capture_output=True, env=environment, timeout=100)
    done = subprocess.run([TOOL, "triage", tmp / "captured", "--json"], capture_output=True, text=True, env=environment, timeout=100)
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else {"error": done.stderr}
    expect("…of a captured folder", answer.get("verdict") == "contract" and ", of the first call" in answer["inputs"], json.dumps(answer)[:2000])
    program, dump = tmp / "program.py", tmp / "dump"
    program.write_text("import jax, jax.numpy as jnp, numpy as np\nprint(jax.jit(lambda x: jnp.log(jnp.exp(x)))(np.array([89.0, 1.0], np.float32)))\n")
    subprocess.run([PYTHON, program], env=dict(environment, XLA_FLAGS=f"--xla_dump_to={dump} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_dump_hlo_snapshots"), capture_output=True, timeout=60)
    done = subprocess.run([TOOL, "triage", dump, "--json"], capture_output=True, text=True, env=environment, timeout=60)
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else {"error": done.stderr}
    expect("a snapshot's arguments and results", answer.get("verdict") == "contract" and ".snapshot." in answer.get("inputs", ""), answer)

print(f"triage_installed_test: {'FAILED' if failures else 'passed'}")
sys.exit(bool(failures))
