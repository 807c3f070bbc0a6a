#!/usr/bin/env python3
"""Everything that needs a GPU, in one command that builds nothing: card.py [OUT] [--parts=A,B…] [--jobs=N] [--seconds=N]

From a bundle (tests/gpu/bundle.sh) or from a checkout that is built. HLO_CUDA_DRIVER names another driver: with
build/tests/libfake_cuda.so it is a rehearsal, on small modules only. Parts, in this order:

  self-test  operations and modules that the program carries
  kernels    XLA's own kernels of dumps (dumps/NAME.emit of the bundle): each alone, then the program they make
  equal      modules against the evaluator, several at once
  times      the same modules one after another, next to jax where the machine has it
  finals     XLA's final modules as they are, next to what jax measured when the dump was made
  calls      each distinct call of XLA's final modules (final_calls.py)
  tests      kernels_test and ops_test on this GPU
  sweep      products and copies by size and type, by torch where the machine has it

Each part ends in time (--seconds for all; what was not reached is said). OUT holds results.json and gpu.md, a table.
Exit code 1 where something is wrong."""
import argparse
import concurrent.futures
import datetime
import glob
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
BUNDLED = (HERE / "bin" / "hlo-replay").exists()
ROOT = HERE if BUNDLED else HERE.parent.parent
DATA = ROOT / "testdata"
MODULES = ROOT / "modules" if BUNDLED else ROOT.parent / "shared" / "corpus"
PARTS = ("self-test", "kernels", "equal", "times", "finals", "calls", "tests", "sweep")


class Card:
    """The tool with its libraries, and what was found."""

    def __init__(self, a):
        self.a, self.end, self.failed, self.results = a, time.monotonic() + a.seconds, False, {}
        self.environment = dict(os.environ)
        self.tool = [str(ROOT / "bin" / "hlo-replay")] if BUNDLED else [os.environ.get("HLO_TOOL", str(ROOT / "build" / "bin" / "hlo-replay"))]
        self.libraries = []
        if BUNDLED:
            self.libraries.append(str(HERE / "lib"))
            self.environment["HLO_LIBDEVICE"] = str(HERE / "lib" / "libdevice.10.bc")
        if "HLO_CUDA_DRIVER" not in os.environ:  # CUDA's libraries: in a toolkit, or next to jax as wheels
            wheels = [d for p in sys.path for d in sorted(glob.glob(p + "/nvidia/*/lib"))]
            self.libraries += [d for d in (*wheels, "/usr/local/cuda/lib64") if os.path.isdir(d)]
        self.environment["LD_LIBRARY_PATH"] = ":".join([*self.libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
        if BUNDLED and self.run("--version")[0] != 0:  # an older libc than the bundle's: with its own loader
            self.tool = [str(HERE / "lib" / "ld-linux-x86-64.so.2"), "--library-path", f"{HERE}/lib/libc:{self.environment['LD_LIBRARY_PATH']}", *self.tool]

    def left(self):
        return self.end - time.monotonic()

    def run(self, *args, seconds=120, cwd=None):
        """(exit code or None where time ran out, standard output, standard error, seconds)"""
        start, limit = time.monotonic(), max(1.0, min(seconds, self.left()))
        try:
            done = subprocess.run([*self.tool, *map(str, args)], capture_output=True, text=True, errors="replace", timeout=limit, env=self.environment, cwd=cwd)
        except subprocess.TimeoutExpired:
            return None, "", f"error: no end in {limit:.0f} s", time.monotonic() - start
        return done.returncode, done.stdout, done.stderr, time.monotonic() - start

    def told(self, part, name, ok, text, **more):
        """ok: True, False, or None where it was not run."""
        self.results.setdefault(part, []).append({"name": name, "ok": ok, "text": text, **more})
        self.failed = self.failed or ok is False
        print(f"{part}: {name}: {'' if ok else 'NOT RUN ' if ok is None else 'WRONG '}{text}", flush=True)

    def at_once(self, work, items):
        with concurrent.futures.ThreadPoolExecutor(self.a.jobs) as pool:
            list(pool.map(work, items))


def first_error(code, text):
    if code and code < 0 or code and code > 2:
        return f"exit code {code}: {text.strip()[-200:]}"
    line = next((line for line in text.splitlines() if "error: " in line), text.strip().splitlines()[-1] if text.strip() else "")
    return re.sub(r"^.*?error: ", "", line)[:200]


def self_test(card):
    code, out, err, seconds = card.run("exec", "--self-test=filters_bf16" if card.rehearsal else "--self-test", "--backend=cuda", seconds=200)
    lines = out.strip().splitlines()
    card.told("self-test", "all", None if code in (None, 2) else code == 0, lines[-1] if lines else first_error(code, err), seconds=seconds, failed=[line for line in lines if line.startswith("FAILED")])
    for line in lines[:-1][:40]:
        print("   ", line)


def tests(card):
    asked = "Kernels.StableSortsAsTheyAre:Kernels.CodeForEveryArchitecture" if card.rehearsal else "*Cuda*:Kernels.*"
    runs = [("bundle", [*card.tool, "--run-tests"])]
    if not BUNDLED:
        built = pathlib.Path(card.tool[0]).resolve().parent.parent / "tests"
        runs = [(name, [str(built / name)]) for name in ("ops_test", "kernels_test")]
    for name, command in runs:
        try:
            done = subprocess.run([*command, f"--gtest_filter={asked}"], capture_output=True, text=True, errors="replace", timeout=max(1, min(150, card.left())), env=card.environment, cwd=ROOT)
            verdict = sorted(set(re.findall(r"^\[ +(?:OK|FAILED) +\] \S+", done.stdout, re.M)))
            card.told("tests", name, done.returncode == 0, f"{sum('OK' in v for v in verdict)} passed, {sum('FAILED' in v for v in verdict)} failed", verdict=verdict)
            for line in [line for line in done.stdout.splitlines() if "FAILED" in line or "Failure" in line][:20]:
                print("   ", line)
        except subprocess.TimeoutExpired as e:
            card.told("tests", name, None, "no end in time: " + ((e.stdout or b"").decode(errors="replace").strip().splitlines() or [""])[-1][:150])


def largest(folder):
    """The final module of a dump's own program: the largest."""
    return max(folder.rglob("*gpu_after_optimizations.txt"), key=lambda p: p.stat().st_size, default=None)


def kernels(card):
    def alone(folder, module):
        code, out, err, seconds = card.run("check", module, "--kernels=dump", "--json", seconds=90)
        try:
            rows = json.loads(out)["kernels"]["launched"]
        except (ValueError, KeyError):
            card.told("kernels", folder.name, None, first_error(code, err))
            return
        count = {v: sum(r["verdict"] == v for r in rows) for v in dict.fromkeys(r["verdict"] for r in rows)}
        others = [r for r in rows if r["verdict"] != "equal"]
        card.told("kernels", folder.name, code != 1, f"{count}", seconds=seconds, rows=others)
        for r in others[:12]:
            print("   ", json.dumps(r)[:500])

    def program(folder, module):
        code, out, err, seconds = card.run("exec", module, "--backend=cuda", "--kernels=dump", "--evaluate-others", "--compare-with=evaluator", "--json", seconds=90)
        card.told("kernels", folder.name + ", the program", *verdict_of(code, out, err), seconds=seconds)

    runs = []
    for folder in sorted((ROOT / "dumps").glob("*.emit")) if BUNDLED else []:
        final = largest(folder)
        number = re.match(r"module_(\d+)", final.name).group(1)
        runs += [(work, folder, f"{final.parent}:{number}") for work in (alone, program)]
    card.at_once(lambda run: run[0](*run[1:]), runs)


def verdict_of(code, out, err):
    if code in (None, 2):
        return None, first_error(code, err)
    try:
        told = json.loads(out)
    except ValueError:
        return False, first_error(code, err)
    why = "; ".join(c["why"] for c in told["comparison"] if not c["equal"]) if told.get("comparison") else ""
    return code == 0, (told.get("verdict") or "ran") + (f": {why[:300]}" if why else "")


def listed(card):
    if card.rehearsal:
        names = ("loops", "lanes", "branches", "devices", "accumulate", "vector_products")
        return sorted(DATA.glob("kernels/*.hlo")) + sorted(DATA.glob("gpu/small_*.hlo")) + [DATA / "gpu" / f"{n}.hlo" for n in names]
    own = [DATA / "mobilenet_v1.hlo", *sorted(DATA.glob("gpu/*.hlo")), *sorted(DATA.glob("kernels/*.hlo"))]
    return own + sorted([*MODULES.glob("*.hlo"), *MODULES.glob("*.hlo.txt")])


def short(path):
    return re.sub(r"\.hlo(\.txt)?$", "", path.name)


def equal(card):
    def one(path):
        scheme = "positive" if "train" in path.name else "mixed"
        code, out, err, seconds = card.run("exec", path, "--backend=cuda", f"--scheme={scheme}", "--fit-inputs", "--compare-with=evaluator", "--json", seconds=150)
        ok, text = verdict_of(code, out, err)
        inside = [n for n in json.loads(out)["notes"] if "in the evaluator" in n] if ok is not None and out.startswith("{") else []
        card.told("equal", short(path), ok, text, seconds=seconds, inside=inside)

    card.at_once(one, sorted(listed(card), key=lambda p: -p.stat().st_size))


def calls(card):
    script, folder = HERE / "dev" / "final_calls.py", ROOT / "finals"
    if not BUNDLED or not folder.is_dir():
        return
    wrapper = card.a.out / "tool.sh"
    wrapper.write_text('#!/bin/sh\nexec ' + " ".join(f"'{t}'" for t in card.tool) + ' "$@"\n')
    wrapper.chmod(0o755)
    try:
        done = subprocess.run([sys.executable, str(script), str(wrapper), str(folder), "--backends=cuda", "--fake=none", f"--jobs={card.a.jobs}", "--seconds=40"], capture_output=True, text=True, env=card.environment, timeout=max(1, min(200, card.left())))
        (card.a.out / "calls.txt").write_text(done.stdout + done.stderr)
        card.told("calls", "all", done.returncode == 0, "see calls.txt")
        wrapper.unlink()
        print(done.stdout[-5000:])
    except subprocess.TimeoutExpired:
        card.told("calls", "all", None, "no end in time")


def compared(card):
    """The modules that are timed, the largest first: not those that are small for the emulator's sake."""
    paths = [p for p in listed(card) if card.rehearsal or not p.name.startswith("small_")]
    return sorted(paths, key=lambda p: -p.stat().st_size)


def times(card):
    paths = compared(card)
    if card.jax:
        card.jax.wait(min(60, card.left() / 3))
    rows, worst = [], []
    for path in paths:
        if card.left() < 5:
            card.told("times", short(path), None, "not reached")
            continue
        code, out, err, _ = card.run("exec", path, "--backend=cuda", "--fit-inputs", f"--repeat={2 if card.rehearsal else 20}", "--json", seconds=60)
        if code != 0:
            card.told("times", short(path), None, first_error(code, err))
            continue
        told = json.loads(out)
        theirs, why = card.jax.seconds(path) if card.jax else (None, "")
        ours = told["run_s"]
        ratio = ours / theirs if theirs else None
        inside = sum("in the evaluator" in n for n in told["notes"])
        if ratio:
            rows.append(ratio)
            worst += [(ratio, path)] if ratio > 1.3 else []
        card.told("times", short(path), True, f"{ours * 1e3:.3f} ms" + (f", jax {theirs * 1e3:.3f} ms: {ratio:.2f}" if ratio else f"; jax: {why}" if why else ""), ours=ours, jax=theirs, compile=told["compile_s"], inside=inside)
    for ratio, path in sorted(worst, reverse=True)[:10]:
        if card.left() > 30:
            profiled(card, short(path), path)
    if rows:
        card.told("times", "ratio to jax", True, f"median {statistics.median(rows):.2f}, worst {max(rows):.2f}, of {len(rows)}")


def profiled(card, name, path, *options):
    """Where the time goes, into OUT/profiles.txt."""
    file = card.a.out / "profile.txt"
    code, _, err, _ = card.run("exec", path, "--backend=cuda", "--fit-inputs", f"--profile={file}", "--force", *options, seconds=40)
    with open(card.a.out / "profiles.txt", "a") as out:
        out.write(f"== {name}\n" + (err + "\n".join(line[:220] for line in file.read_text().splitlines()[:24]) if code == 0 else first_error(code, err)) + "\n")


class Jax:
    """A process of time_jax.py a module: they compile at once, and are asked one after another."""

    def __init__(self, paths, most):
        self.waiting, self.processes, self.lock = list(paths), {}, threading.Lock()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(most)]
        for thread in self.threads:
            thread.start()

    def work(self):
        while True:
            with self.lock:
                if not self.waiting:
                    return
                path = self.waiting.pop(0)
            said = tempfile.TemporaryFile("w+", errors="replace")
            process = subprocess.Popen([sys.executable, str(HERE / "time_jax.py"), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
            ready = process.stdout.readline().strip() == "ready"
            self.processes[path] = process, said, ready

    def wait(self, seconds):
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0, end - time.monotonic()))
        with self.lock:
            self.waiting.clear()

    def seconds(self, path):
        """(seconds a call, or None; why)"""
        process, said, ready = self.processes.pop(path, (None, None, False))
        if not process:
            return None, "not compiled in time"
        try:
            out, _ = process.communicate("go\n", timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, "no end in 30 s"
        if not ready or process.returncode != 0:
            said.seek(0)
            return None, f"exit code {process.returncode}: {(said.read().strip().splitlines() or [''])[-1][:200]}"
        return float(out), ""

    def end(self):
        with self.lock:
            self.waiting.clear()
        for process, *_ in self.processes.values():
            process.kill()


def finals(card):
    for folder in sorted((ROOT / "dumps").glob("*")) if BUNDLED else []:
        if folder.name.endswith(".emit"):
            continue
        final, profile = largest(folder), next(folder.glob("*.profile.json"), None)
        measured = json.loads(profile.read_text())["step_s"]["min"] if profile else None
        code, out, err, seconds = card.run("exec", final, "--backend=cuda", "--as-is", "--fit-inputs", "--repeat=10", "--json", seconds=60)
        if code != 0:
            card.told("finals", folder.name, None, first_error(code, err), seconds=seconds)
            continue
        told = json.loads(out)
        inside = [n for n in told["notes"] if "in the evaluator" in n]
        card.told("finals", folder.name, True, f"{told['run_s'] * 1e3:.3f} ms" + (f", jax {measured * 1e3:.3f} ms: {told['run_s'] / measured:.2f}" if measured else "") + (f"; {inside[0][:200]}" if inside else ""), ours=told["run_s"], jax=measured, inside=inside, seconds=seconds)
        if card.left() > 60:
            profiled(card, folder.name, final, "--as-is")


def sweep(card):
    if card.rehearsal:
        return
    done = subprocess.run([sys.executable, str(HERE / "sweep.py")], capture_output=True, text=True, timeout=max(1, min(90, card.left())))
    (card.a.out / "sweep.txt").write_text(done.stdout + done.stderr)
    card.told("sweep", "all", done.returncode == 0 or None, f"{len(done.stdout.splitlines())} rows in sweep.txt")
    print(done.stdout, done.stderr[-500:])


def table(card):
    lines = [f"# On a GPU\n\n{card.name}, {datetime.date.today()}, by `tests/gpu/card.py`.\n"]
    for part, rows in card.results.items():
        right = sum(r["ok"] is True for r in rows)
        lines.append(f"\n## {part}: {right} of {len(rows)} right, {sum(r['ok'] is False for r in rows)} wrong\n\n| | |\n|---|---|")
        lines += [f"| {r['name']} | {'' if r['ok'] else 'not run: ' if r['ok'] is None else '**wrong**: '}{r['text'].replace('|', chr(92) + '|')} |" for r in rows]
    (card.a.out / "gpu.md").write_text("\n".join(lines) + "\n")
    (card.a.out / "results.json").write_text(json.dumps({"gpu": card.name, "parts": card.results}, indent=1))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=pathlib.Path(os.environ.get("OUT", "gpu-results")))
    parser.add_argument("--parts", default=",".join(PARTS), type=lambda s: s.split(","))
    parser.add_argument("--jobs", default=8, type=int)
    parser.add_argument("--seconds", default=1800, type=int)
    a = parser.parse_args()
    if unknown := [p for p in a.parts if p not in PARTS]:
        parser.error(f"no part {unknown[0]}; parts: {', '.join(PARTS)}")
    a.out.mkdir(parents=True, exist_ok=True)
    card = Card(a)
    code, out, err, _ = card.run("exec", DATA / "add.hlo", "--backend=cuda")
    if code != 0:
        print(f"no GPU can be used: {first_error(code, out + err)}")
        return 2
    found = re.search(r"kernels on (.*?\(\w+\))", out + err)
    card.name = found.group(1) if found else "?"
    card.rehearsal = "interpreter" in card.name
    print(f"on {card.name}", flush=True)
    has_jax = "times" in a.parts and subprocess.run([sys.executable, "-c", "import jax"], capture_output=True).returncode == 0
    card.jax = Jax(compared(card), a.jobs) if has_jax else None  # compiles while other parts run
    for part in PARTS:
        if part not in a.parts:
            continue
        if card.left() < 5:
            card.told(part, "all", None, "not reached")
            continue
        start = time.monotonic()
        {"self-test": self_test, "tests": tests, "kernels": kernels, "equal": equal, "calls": calls, "times": times, "finals": finals, "sweep": sweep}[part](card)
        print(f"== {part}: {time.monotonic() - start:.1f} s", flush=True)
        table(card)
    if card.jax:
        card.jax.end()
    return 1 if card.failed else 0


if __name__ == "__main__":
    sys.exit(main())
