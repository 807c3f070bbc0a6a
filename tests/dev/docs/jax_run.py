#!/usr/bin/env python3
"""Every command on every module of a run that jax makes: jax_run.py JAX_PYTHON HLO_REPLAY [--keep=DIR] [--dump=DIR] [--only=WORD]

tests/dev/docs/jax_program.py is compiled with --xla_dump_hlo_pass_re=.*, and each command asked about each module as DIR:MODULE
(and :STAGE). Judged are exit codes, what stands on standard error, and whether the answer fits what is known from elsewhere:
XLA's own text, its memory report, the other stages. Printed are a row a command, then what failed; exit 1 where anything did.
--dump takes a folder that is there already; --keep leaves the run in DIR."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LAST, FIRST = "after_optimizations", "before_optimizations"


class Wrong(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Wrong(what)


class Run:
    def __init__(self, tool, dump, scratch):
        self.tool, self.dump, self.scratch, self.seconds = tool, dump, scratch, 0.0

    def __call__(self, *words, codes=(0,), stdin=""):
        start = time.monotonic()
        done = subprocess.run([self.tool, *map(str, words)], input=stdin, capture_output=True, text=True, timeout=300, cwd=self.scratch)
        self.seconds += time.monotonic() - start
        said = f"{' '.join(map(str, words))}: exit {done.returncode}: {(done.stderr or done.stdout)[:600]}"
        expect(done.returncode in codes, said)
        expect("internal error" not in done.stderr and "Traceback" not in done.stderr, said)
        return done.stdout

    def json(self, *words, **more):
        text = self(*words, "--json", **more)
        try:
            return json.loads(text)
        except ValueError as e:
            raise Wrong(f"{' '.join(map(str, words))}: no JSON: {e}") from e


class Module:
    """One module of the dump: how it is asked for, and what its files say themselves."""

    def __init__(self, dump, number, name):
        self.number, self.name, self.where = number, name, f"{dump}:{number}"
        self.files = {f.name.removeprefix(f"module_{number}.{name}."): f for f in dump.glob(f"module_{number}.{name}.*")}
        self.last = next(f for n, f in self.files.items() if n.endswith("after_optimizations.txt"))
        self.text = self.last.read_text()
        self.instructions = len(re.findall(r"^\s+(?:ROOT )?%?[\w.\-]+ = ", self.text, re.M))
        entry = self.text[self.text.index("\nENTRY "):]
        self.root = re.search(r"ROOT %?([\w.\-]+) = ", entry)[1]
        assigned = next(f for n, f in self.files.items() if n.endswith("buffer-assignment.txt")).read_text()
        # What each thread has for itself is no memory of the device.
        self.bytes = sum(int(size) for size, rest in re.findall(r"^allocation \d+: size (\d+)(.*)", assigned, re.M) if "thread-local" not in rest)

    def stage(self, name):
        return f"{self.where}:{name}"


def ask_open(run, m):
    out = run.json("open", m.where)
    expect([x["module"] for x in out["modules"]] == [m.name], "another module")
    rows = out["modules"][0]["stages"]
    expect(rows[-1]["name"] == LAST and rows[-1]["instructions_after"] == m.instructions, f"{m.instructions} instructions by the text")
    expect("instructions" in run("open", m.where), "nothing about instructions")


def ask_memory(run, m):
    for by in ("line", "scope", "value"):
        one = run.json("memory", m.where, f"--by={by}")["modules"][0]
        expect(one["allocated_bytes"] == m.bytes, f"{one['allocated_bytes']} bytes, XLA's assignment says {m.bytes}")
        expect(one["peak_bytes"] <= one["allocated_bytes"], "more alive than allocated")
        expect(sum(r["bytes"] for r in one["alive_by"]) <= one["peak_bytes"], "rows hold more than the peak")


def ask_summary(run, m):
    for by in ("line", "scope", "class", "module", "pass"):
        expect(run.json("summary", m.where, f"--by={by}")["by"] == by, f"not by {by}")


def ask_cost(run, m):
    out = run.json("cost", m.where, "--most=100000")
    expect(out["module"] == m.name and out["flops"] >= 0 and out["bytes"] > 0, "no cost")
    for i in out["instructions"]:
        expect(f"{i['name']} = " in m.text, f"no {i['name']} in the text")


def ask_stats(run, m):
    expect(run.json("stats", m.stage(LAST))["instructions"] == m.instructions, "another count")


def ask_print(run, m):
    # XLA numbers frames anew, and orders what nobody orders, where it prints what it has parsed: computations as a set.
    def plain(text):
        text = re.sub(r",? ?stack_frame_id=\d+", "", text[re.search(r"^(%|ENTRY)", text, re.M).start():])
        return sorted(text.rstrip().split("\n\n"))
    mine, theirs = plain(run("print", m.stage(LAST))), plain(m.text)
    expect(len(mine) == len(theirs), "another number of computations")
    for a, b in zip(mine, theirs):
        expect(a.strip() == b.strip(), f"not XLA's own text: {next((x for x in zip(a.split(chr(10)), b.split(chr(10))) if x[0] != x[1]), '')}")


def ask_fmt(run, m):
    (run.scratch / "f.hlo").write_text(run("fmt", m.stage(LAST)))
    expect(run("fmt", "f.hlo") == (run.scratch / "f.hlo").read_text(), "fmt of fmt differs")


def ask_verify(run, m):
    for stage in (FIRST, LAST):
        run("verify", m.stage(stage))


def ask_convert(run, m):
    for end in ("pb", "json", "pbtxt", "dot", "hlo"):
        run("convert", m.stage(LAST), f"c.{end}")
        expect((run.scratch / f"c.{end}").stat().st_size > 0, "an empty file")
    for end in ("pb", "json", "pbtxt"):
        expect(run("print", f"c.{end}").count("\n") == run("print", "c.hlo").count("\n"), f"not the same by way of {end}")


def ask_exec(run, m):
    run("exec", m.stage(FIRST), "--fit-inputs", "--out=first.npz")
    out = run.json("exec", m.stage(LAST), "--fit-inputs", "--compare-with=first.npz")
    expect(out, "no answer")


def ask_exec_host(run, m):
    run("exec", m.stage(LAST), "--fit-inputs", "--out=last.npz")
    run("exec", m.stage(LAST), "--fit-inputs", "--backend=host", "--compare-with=last.npz")


def ask_exec_stages(run, m):
    run.json("exec", m.where, "--all-stages", "--fit-inputs")


def ask_nan(run, m):
    run.json("exec", m.stage(LAST), "--nan", "--fit-inputs", codes=(0, 1))


def ask_bisect(run, m):
    out = run.json("bisect", m.where)
    expect(out["found"] is False, f"a bad stage in a sound dump: {out['verdict']}")


def ask_diff(run, m):
    run.json("diff", m.stage(LAST), m.stage(LAST))
    out = run.json("diff", m.stage(FIRST), m.stage(LAST), codes=(0, 1))
    expect(out, "no answer")


def ask_explain(run, m):
    out = run.json("explain", m.where, m.root)
    expect(out["events"], "no events")


def ask_explain_pass(run, m):
    rows = run.json("open", m.where)["modules"][0]["stages"]
    ran = next((r["pass"] for r in rows if r["kind"] == "pass" and r["changed"]), None)
    run.json("explain", m.where, "--pass", ran or "none", codes=(0,) if ran else (2,))


def ask_why_not(run, m):
    run.json("explain", m.where, "--why-not", m.root, m.root, codes=(1, 2))


def ask_extract(run, m):
    run("extract", m.stage(LAST), m.root, "--hops=1", "-o", "e.hlo")
    run("verify", "e.hlo")


def ask_isolate(run, m):
    out = run.json("isolate", m.stage(LAST), "--fit-inputs", "--backend=host", codes=(0, 2))
    if "error" in out:
        expect("nothing else that runs as a kernel" in out["error"]["message"], out["error"]["message"])
        return
    expect(out["different"] == 0, "a kernel alone gives other values")
    for k in out["kernels"]:  # of a branch that is not taken
        expect(not k["problem"] or "no value" in k["problem"], k["problem"])


def ask_reduce(run, m):
    out = run.json("reduce", m.stage(LAST), "--regex=ROOT", "--most=30", "-o", "r", "--force")
    expect(out["finished"] and out["instructions"] <= out["instructions_before"], "it grew")


def ask_step(run, m):
    expect("instructions" in run("step", m.stage(FIRST), stdin="next\nnext\nback\nprint\nquit\n"), "nothing said")


def ask_opt(run, m):
    run("verify", "-", stdin=run("opt", "--passes=algsimp,cse,dce", m.stage(FIRST)))


def ask_replay(run, m):
    run("replay", m.stage(FIRST), "--pipeline=xla-gpu", "-o", "out", "--force")
    run("exec", f"out:{FIRST}", "--fit-inputs", "--out=o.npz")
    run("exec", f"out:{LAST}", "--fit-inputs", "--compare-with=o.npz")


def ask_view(run, m):
    run("view", m.where, "-o", "v.html")
    expect(m.name in (run.scratch / "v.html").read_text(), "a page of another module")


def ask_occupancy(run, m):
    run("occupancy", m.stage(LAST), codes=(0, 2))  # 2: needs ptxas


def of_the_run(run, modules):
    out = run.json("open", run.dump)
    expect(len(out["modules"]) == len(modules), f"{len(out['modules'])} of {len(modules)} modules")
    for command in ("memory", "summary", "cost", "link", "bisect"):
        run.json(command, run.dump, codes=(0, 1))
    run("view", run.dump, "-o", "all.html")
    # A name that several have is refused, a part that one has is taken.
    expect("train_step" in run("open", f"{run.dump}:train_step"), "not found by name")
    run("open", f"{run.dump}:init", codes=(2,))


def make_dump(python, folder):
    env = dict(os.environ, XLA_FLAGS=f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.*", JAX_PLATFORMS="cpu")
    done = subprocess.run([python, HERE / "jax_program.py"], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the program failed:\n{done.stderr[-3000:]}")
    print(done.stdout.strip())


def main():
    options = dict(w[2:].split("=", 1) for w in sys.argv[1:] if w.startswith("--"))
    python, tool = [w for w in sys.argv[1:] if not w.startswith("--")]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(options.get("keep", folder)).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        dump = pathlib.Path(options["dump"]).resolve() if "dump" in options else scratch / "dump"
        if not dump.exists():
            make_dump(python, dump)
        found = {tuple(re.match(r"module_(\d+)\.([^.]+)\.", f.name).groups()) for f in dump.glob("module_*after_optimizations.txt")}
        modules = [Module(dump, *each) for each in sorted(found)]
        print(f"{len(modules)} modules, {sum(m.instructions for m in modules)} instructions at the end, {len(list(dump.iterdir()))} files")
        asks = {k.removeprefix("ask_"): f for k, f in globals().items() if k.startswith("ask_") and options.get("only", "") in k}
        failures = []
        print(f"{'command':16} {'modules':>7} {'right':>6} {'median s':>9} {'most s':>7}")
        for what, ask in asks.items():
            times = []
            for m in modules:
                run = Run(pathlib.Path(tool).resolve(), dump, scratch)
                try:
                    ask(run, m)
                except (Wrong, subprocess.TimeoutExpired, KeyError, StopIteration) as e:
                    failures.append(f"{what} {m.number} {m.name}: {type(e).__name__} {e}")
                times.append(run.seconds)
            wrong = sum(f.startswith(f"{what} ") for f in failures)
            print(f"{what:16} {len(modules):7} {len(modules) - wrong:6} {statistics.median(times):9.2f} {max(times):7.2f}", flush=True)
        try:
            of_the_run(Run(pathlib.Path(tool).resolve(), dump, scratch), modules)
            print("the run as a whole: right")
        except (Wrong, KeyError) as e:
            failures.append(f"the run: {e}")
    print(*failures, sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
