#!/usr/bin/env python3
"""triage: a case of each verdict and complaint, what cannot be read, folders that are there, going on, limits, Ctrl-C."""
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

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
NORM = """ENTRY e {
  x = f32[8,16] parameter(0)
  w = f32[16,4] parameter(1)
  half = f32[] constant(0.5)
  hb = f32[8,16] broadcast(half), dimensions={}
  scaled = f32[8,16] multiply(x, hb), metadata={op_name="jit(f)/mul" source_file="model.py" source_line=7}
  d = f32[8,4] dot(scaled, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[8,4] tanh(d)
}
"""
SORT = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  v = s32[] parameter(2)
  w = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[5] parameter(0)
  y = s32[5] parameter(1)
  s = (f32[5], s32[5]) sort(x, y), dimensions={0}, to_apply=less
  ROOT r = s32[5] get-tuple-element(s), index=1
}
"""
SCATTER = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[3] parameter(2)
  ROOT r = f32[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add, metadata={source_file="model.py" source_line=3}
}
"""
NAN = """ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  zb = f32[4] broadcast(z), dimensions={}
  none = f32[4] multiply(x, zb)
  q = f32[4] divide(none, zb), metadata={source_file="model.py" source_line=12}
  ROOT r = f32[4] add(q, x)
}
"""
OOM = """jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.
BufferAssignment OOM Debugging.
Peak buffers:
\tBuffer 1:
\t\tSize: 16.00GiB
\t\tOperator: op_name="jit(step)/attention/dot_general" source_file="model.py" source_line=40
\t\tXLA Label: fusion
\t\tShape: f32[65536,65536]
\t\t==========================
"""
CHECK = """I0000 00:00:1786848746.938112 3845513 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f: simplification
I0000 00:00:1786848746.938141 3845513 hlo_pass_pipeline.cc:181]   HLO pass algsimp
F0000 00:00:1786848746.938150 3845513 algebraic_simplifier.cc:812] Check failed: ShapeUtil::Compatible(a, b) f32[2] vs f32[3] for instruction %add.5
*** Check failure stack trace: ***
    @     0x7f  xla::AlgebraicSimplifier::RunImpl()
"""
REFUSED = """jax.errors.JaxRuntimeError: INTERNAL: Expected instruction to have shape equal to f32[4], actual shape is f32[8]:
%tuple.78 = f32[4] tuple(%a), metadata={op_name="jit(f)" source_file="model.py" source_line=9}

Failed after layout-assignment
"""


def dump(folder, *stages, result=True):
    """A dump of these stages, each behind pass1, pass2 …; the last one is the result, too."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    for n, text in enumerate(stages):
        file = "before_optimizations" if n == 0 else f"{n:04}.simplification.after_pass{n}.before_pass{n + 1}"
        (folder / f"module_0001.jit_f.{file}.txt").write_text("HloModule jit_f\n\n" + text)
    if result:
        (folder / "module_0001.jit_f.cpu_after_optimizations.txt").write_text("HloModule jit_f\n\n" + stages[-1])
    return folder


def triage(*args, **more):
    code, out, err = run("triage", *args, "--json", **more)
    answer = json.loads(out) if out.startswith("{") else {"error": {"message": err}}
    if "error" not in answer:
        expect(f"schema of {args}", not (why := schemas.wrong(answer, "triage.json")), why)
    return code, answer


def verdict(name, got, code, word, **fields):
    at, answer = got
    good = at == code and answer.get("verdict") == word and all(answer.get(k) == v for k, v in fields.items())
    expect(name, good, json.dumps({k: v for k, v in answer.items() if k != "details"}, indent=1)[:3000])
    return answer


def rung(answer, name):
    return next(r for r in answer["rungs"] if r["rung"] == name)


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def file(name, text):
        (tmp / name).write_text(text)
        return tmp / name

    # By value.
    sound = dump(tmp / "sound", NORM, NORM.replace("scaled", "other"))
    answer = verdict("a sound dump", triage(sound), 0, "nothing", sure="tested", complaint="wrong")
    expect("drawn inputs are told", "inputs" in [n["what"] for n in answer["not_covered"]], answer["not_covered"])
    planted = dump(tmp / "planted", NORM, NORM, NORM.replace("tanh(d)", "sine(d)"))
    answer = verdict("an edited stage", triage(planted), 1, "fault", instruction="r", sure="tested", stage="0002 simplification.after_pass2", **{"pass": "pass2"})
    expect("both lines are told", "tanh" in answer["before"][0] and "sine" in answer["after"][0], answer)
    expect("what is no longer needed is not tried", rung(answer, "left-open")["outcome"] == "not needed", answer["rungs"])
    code, out, err = run("triage", planted)
    first = out.split("\n\n")[0].splitlines()
    expect("twelve lines first", code == 1 and len(first) <= 12 and first[1].startswith("fault: pass pass2") and any(line.startswith("sure: tested on 1 input") for line in first), out)
    expect("commands to repeat", f"hlo-replay bisect {planted}" in out, out)
    invalid = dump(tmp / "invalid", NORM, NORM.replace("ROOT r = f32[8,4] tanh", "ROOT r = f32[8,5] tanh"))
    verdict("a stage that is no HLO", triage(invalid), 1, "fault", sure="proved", **{"pass": "pass1"})
    inputs = file("ties.txt", "{1, 1, 1, 0, 1}\n{0, 1, 2, 3, 4}\n")
    ties = dump(tmp / "ties", SORT, SORT.replace("s32[5] get-tuple-element(s), index=1", "s32[5] constant({3, 4, 1, 2, 0})"))
    answer = verdict("ties", triage(ties, f"--inputs={inputs}"), 0, "contract", instruction="s")
    expect("what decides", answer["contracts"][0]["kind"] == "sort-ties" and answer["contracts"][0]["decides"], answer["contracts"])
    still = dump(tmp / "still", SORT, SORT)
    verdict("left open by the program, on its inputs", triage(still, f"--inputs={inputs}"), 0, "contract", instruction="s")
    verdict("…not said of drawn ones", triage(still), 0, "nothing")
    overflow = "ENTRY e {\n  x = f32[2] parameter(0)\n  e = f32[2] exponential(x)\n  ROOT r = f32[2] log(e)\n}\n"
    large = dump(tmp / "large", overflow, "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] copy(x)\n}\n")
    answer = verdict("a range that a pass widened shows in the stages' own types alone", triage(large, f"--inputs={file('large.txt', '{100, 1}')}"), 0, "contract")
    expect("…and what decides", any(c["kind"] == "range" and c["decides"] for c in answer["contracts"]), answer["contracts"])
    code, answer = triage(file("own.hlo", "HloModule m\n\n" + overflow), f"--inputs={tmp / 'large.txt'}")
    expect("what our own passes widen is open, too", (code, answer["verdict"]) == (0, "contract") and any(c["kind"] == "range" and c["decides"] for c in answer["contracts"]), answer)
    held = dump(tmp / "held", overflow, "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] copy(x)\n}\n")
    run("exec", held / "module_0001.jit_f.before_optimizations.txt", f"--inputs={tmp / 'large.txt'}", f"--out={held / 'inputs.npz'}")
    answer = verdict("the arguments that lie with a dump", triage(held), 0, "contract", inputs="inputs.npz next to it")
    answer = verdict("…but for those that are named", triage(held, f"--inputs={file('little.txt', '{1, 2}')}"), 0, "nothing", inputs=str(tmp / "little.txt"))
    run("exec", sound / "module_0001.jit_f.before_optimizations.txt", f"--out={held / 'inputs.npz'}")
    answer = verdict("…that do not fit are left, and it is told", triage(held), 0, "nothing", inputs="seed 1")
    expect("…why", any("inputs.npz" in n["why"] for n in answer["not_covered"]), answer["not_covered"])
    small = """ENTRY e {
  x = f32[4,8192] parameter(0)
  w = f32[8192,4] parameter(1)
  d = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  one = f32[] constant(1.5)
  ob = f32[4,4] broadcast(one), dimensions={}
  ROOT r = f32[4,4] multiply(d, ob)
}
"""
    verdict("what rounding would hide in the outputs, and f64 shows", triage(dump(tmp / "small", small, small.replace("1.5", "1.500003"))), 1, "fault", **{"pass": "pass1"})
    got = tmp / "got.npz"
    run("exec", sound / "module_0001.jit_f.before_optimizations.txt", f"--out={got}")
    verdict("what the device gave is right", triage(sound, f"--outputs={got}"), 0, "nothing")
    other = tmp / "other.npz"
    run("exec", planted / "module_0001.jit_f.0002.simplification.after_pass2.before_pass3.txt", f"--out={other}")
    verdict("what the device gave is wrong, and no stage is", triage(sound, f"--outputs={other}"), 1, "below")

    # NaN.
    own = dump(tmp / "nan", NAN, NAN)
    verdict("a NaN of the program", triage(own, "--complaint=nan"), 1, "program", instruction="q")
    made = dump(tmp / "nan_made", NAN.replace("divide(none, zb)", "divide(none, x)"), NAN)
    verdict("a NaN of a pass", triage(made, "--complaint=nan"), 1, "fault", **{"pass": "pass1"})
    module = file("nan.hlo", "HloModule m\n\n" + NAN)
    verdict("of a module", triage(module, "--complaint=nan"), 1, "program", instruction="q", kind="module")
    verdict("a module that is no HLO", triage(file("bad.hlo", "HloModule m\n\n" + NORM.replace("ROOT r = f32[8,4]", "ROOT r = f32[8,5]"))), 1, "program", sure="proved")

    # Crashes, memory, times.
    verdict("a check that failed", triage(file("crash.log", CHECK)), 1, "fault", complaint="crash", sure="proved", instruction="add.5", **{"pass": "algsimp"})
    STACK = CHECK.replace("algebraic_simplifier.cc", "shape_util.cc").replace("AlgebraicSimplifier", "WhileLoopConcatCodeMotion").replace("algsimp", "dce")
    verdict("a pass that we do not know, on the stack", triage(dump(tmp / "stack", NORM, NORM, result=False), f"--log={file('stack.log', STACK)}"), 1, "fault", sure="proved", **{"pass": "while-loop-concat-code-motion"})
    unwritten = "ENTRY e {\n  x = f32[3] parameter(0)\n  a = f32[3] custom-call(), custom_call_target=\"AllocateBuffer\"\n  ROOT r = f32[3] add(a, x)\n}\n"
    verdict("memory that nobody wrote to", triage(dump(tmp / "unwritten", unwritten, unwritten)), 0, "contract", instruction="a")
    verdict("…from standard input", triage("-", stdin=CHECK), 1, "fault", what="-", **{"pass": "algsimp"})
    verdict("XLA's own check", triage(file("refused.log", REFUSED)), 1, "fault", sure="proved", source="model.py:9", **{"pass": "layout-assignment"})
    verdict("no memory", triage(file("oom.log", OOM)), 1, "program", complaint="memory", sure="proved", source="model.py:40")
    verdict("a log without a fault", triage(file("fine.log", CHECK.splitlines()[0] + "\n" + CHECK.splitlines()[1] + "\n")), 2, "unknown", complaint="compile-time")
    cut = dump(tmp / "cut", NORM, NORM, result=False)
    answer = verdict("stages that end, and nobody says that it died", triage(cut), 2, "unknown", complaint="crash", **{"pass": "pass2"})
    verdict("…somebody does", triage(cut, "--complaint=crash"), 1, "fault", sure="guessed", **{"pass": "pass2"})
    verdict("…a hang", triage(cut, "--complaint=hang"), 1, "fault", sure="guessed", **{"pass": "pass2"})
    cut_whole = dump(tmp / "cut_whole", NORM, NORM, result=False)
    (cut_whole / "module_0001.jit_f.debug_options").write_text("xla_dump_to: 'x'")
    verdict("a dump of XLA's that was cut short", triage(cut_whole), 1, "fault", complaint="crash", sure="guessed", **{"pass": "pass2"})
    verdict("an edit in one that ends is found first", triage(dump(tmp / "cut_edit", NORM, NORM.replace("tanh", "sine"), NORM.replace("tanh", "sine"), result=False)), 1, "fault", sure="tested", **{"pass": "pass1"})
    part = dump(tmp / "part", NORM, NORM, NORM, result=False)
    (part / "module_0001.jit_f.before_optimizations.txt").unlink()
    verdict("some stages of a dump are no crash", triage(part), 0, "nothing", complaint="wrong")
    expect("why it is taken for a crash is told", "pass1" in answer["seen_from"], answer)
    guilty = dump(tmp / "guilty", NORM, NORM.replace("ROOT r = f32[8,4] tanh", "ROOT r = f32[8,5] tanh"), result=False)
    verdict("who broke it is named before who died of it", triage(guilty), 1, "fault", sure="proved", **{"pass": "pass1"})
    answer = verdict("a dump with its log", triage(cut, f"--log={tmp / 'crash.log'}"), 1, "fault", sure="proved", **{"pass": "algsimp"})
    answer = verdict("the peak", triage(sound, "--complaint=memory"), 1, "program")
    verdict("what takes the time", triage(sound, "--complaint=slow"), 1, "program")
    verdict("no times of passes", triage(sound, "--complaint=compile-time"), 2, "unknown")

    # Memory by the order: four arrays that are made before any is summed, or one by one; who took it from this to that.
    def scheduled(made_first):
        made = [f"  a{k} = f32[1000000] broadcast(p), dimensions={{}}" for k in range(4)]
        summed = [f"  sum{k} = f32[] reduce(a{k}, z), dimensions={{0}}, to_apply=add" for k in range(4)]
        lines = made + summed if made_first else [line for pair in zip(made, summed) for line in pair]
        return ("HloModule jit_f, is_scheduled=true\n\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\nENTRY e {\n  p = f32[] parameter(0)\n  z = f32[] constant(0)\n"
                + "\n".join(lines) + "\n  ROOT r = (f32[], f32[], f32[], f32[]) tuple(sum0, sum1, sum2, sum3)\n}\n")

    ordered = tmp / "ordered"
    ordered.mkdir()
    stem = "module_0001.jit_f."
    for name, text in (("before_optimizations", scheduled(False).replace(", is_scheduled=true", "")), ("0001.schedule.after_pipeline-start.before_latency-hiding-scheduler", scheduled(False)),
                       ("0002.schedule.after_latency-hiding-scheduler.before_dce", scheduled(True)), ("sm_9.0a_gpu_after_optimizations", scheduled(True))):
        (ordered / f"{stem}{name}.txt").write_text(text)
    code, out, err = run("memory", ordered, "--orders", "--json")
    report = json.loads(out)
    expect("memory --orders: schema", not (why := schemas.wrong(report, "memory.json")), why)
    orders = report["modules"][0]["orders"]
    expect("four arrays, or one", orders["as_it_is_bytes"] >= 16_000_000 and orders["list_bytes"] < 4_100_000 and orders["saved_bytes"] > 11_000_000 and orders["least"] == "what frees most first", orders)
    expect("the pass that did it, and how to leave it out", [p["pass"] for p in orders["passes"]] == ["latency-hiding-scheduler"] and "--xla_disable_hlo_passes=latency-hiding-scheduler" in orders["flags"], orders)
    (tmp / "good").mkdir()
    for f in ordered.iterdir():
        (tmp / "good" / f.name).write_text(scheduled(False) if "gpu" in f.name or "schedule" in f.name else f.read_text())
    orders = json.loads(run("memory", tmp / "good", "--orders", "--json")[1])["modules"][0]["orders"]
    expect("a good order stays", orders["saved_bytes"] == 0 and orders["passes"] == [] and orders["flags"] == [], orders)
    orders = json.loads(run("memory", module, "--orders", "--json")[1])["modules"][0]["orders"]
    expect("no order, nothing told", orders["as_it_is_bytes"] is None and "no order" in orders["why_not"], orders)
    expect("in words", "11.44MiB less: what frees most first" in run("memory", ordered, "--orders")[1])
    expect("not asked for", json.loads(run("memory", ordered, "--json")[1])["modules"][0]["orders"] is None)
    answer = verdict("the order of a peak", triage(ordered, "--complaint=memory"), 1, "program")
    expect("triage says so", any("by another order" in d for d in answer["details"]) and any("latency-hiding-scheduler" in d for d in answer["details"]), answer["details"])

    # Ranks, runs.
    verdict("ranks that are the same", triage(sound, dump(tmp / "rank1", NORM, NORM.replace("scaled", "other"))), 0, "nothing", complaint="ranks-differ")
    verdict("…that part in the program", triage(sound, dump(tmp / "rank2", NORM.replace("0.5", "0.25"), NORM)), 1, "program")
    verdict("…in a pass", triage(sound, dump(tmp / "rank3", NORM, NORM.replace("tanh", "sine"))), 1, "fault")
    scatter = dump(tmp / "scatter", SCATTER, SCATTER)
    answer = verdict("a scatter by atomics", triage(scatter, "--complaint=not-reproducible"), 0, "contract", instruction="r", source="model.py:3")
    verdict("unique indices", triage(dump(tmp / "unique", *[SCATTER.replace(", to_apply", ", unique_indices=true, to_apply")] * 2), "--complaint=not-reproducible"), 0, "nothing")
    verdict("whole numbers", triage(dump(tmp / "whole", *[SCATTER.replace("f32[", "s32[")] * 2), "--complaint=not-reproducible"), 0, "nothing")

    # Two runs: what they gave, chose and compiled; what has no order and reaches what differs.
    TWO = SCATTER.replace("ROOT r = f32[4]", "r = f32[4]")[:-2] + "  t = f32[4] tanh(x)\n  ROOT both = (f32[4], f32[4]) tuple(r, t)\n}\n"
    runs = [dump(tmp / f"run{k}", TWO, TWO) for k in range(2)]
    outputs = {}
    for name, text in (("as it is", TWO), ("the scatter's", TWO.replace("tuple(r, t)", "tuple(x, t)")), ("the other's", TWO.replace("tanh(x)", "sine(x)"))):
        outputs[name] = tmp / f"{len(outputs)}.npz"
        code, _, err = run("exec", file(f"{len(outputs)}.hlo", "HloModule m\n\n" + text), f"--out={outputs[name]}", "--seed=1")
        expect(f"outputs {name}", code == 0, err)

    def two_runs(name, code, word, first, second, **fields):
        return verdict(f"two runs, {name}", triage(*runs, "--complaint=not-reproducible", f"--outputs={outputs[first]}", f"--outputs-again={outputs[second]}"), code, word, **fields)

    two_runs("the same bits", 0, "nothing", "as it is", "as it is", sure="proved")
    answer = two_runs("the scatter's result differs", 0, "contract", "as it is", "the scatter's", instruction="r", sure="tested", source="model.py:3")
    expect("the programs were held against each other", rung(answer, "programs")["outcome"] == "done" and rung(answer, "choices")["outcome"] == "done", answer["rungs"])
    answer = two_runs("what no scatter reaches differs", 2, "unknown", "as it is", "the other's", instruction=None)
    expect("which output", "o1" in answer["why"], answer["why"])
    verdict("two runs, no outputs", triage(*runs, "--complaint=not-reproducible"), 0, "contract", instruction="r", sure="proved")
    verdict("two runs of two programs", triage(runs[0], dump(tmp / "run2", TWO.replace("tanh", "sine"), TWO.replace("tanh", "sine")), "--complaint=not-reproducible"), 1, "program")
    verdict("two runs that were compiled in two ways", triage(runs[0], dump(tmp / "run3", TWO, TWO.replace("tanh(x)", "negate(x)")), "--complaint=not-reproducible"), 2, "unknown")
    tuned = pathlib.Path(source) / "testdata" / "tuned" / "dump"
    otherwise = tmp / "otherwise"
    shutil.copytree(tuned, otherwise)
    for stage in otherwise.glob("*after_*config*"):
        stage.write_text(stage.read_text().replace('"block_k":"128"', '"block_k":"64"'))
    code, answer = triage(tuned, otherwise, "--complaint=not-reproducible")
    expect("two runs that were tuned otherwise", code == 0 and answer["verdict"] == "contract" and "autotuner" in answer["why"], f"{code} {answer.get('why')} {answer.get('rungs')}")

    # What cannot be.
    for name, args, words in (("nothing there", [tmp / "none"], "none"),
                              ("no module and no log", [file("prose.txt", "It is a fine day.\n")], "prose.txt"),
                              ("an unknown complaint", [sound, "--complaint=ugly"], "ugly"),
                              ("ranks of one", [sound, "--complaint=ranks-differ"], None),
                              ("an empty file", [file("empty.hlo", "")], "empty.hlo")):
        code, answer = triage(*args)
        message = answer["error"]["message"] if "error" in answer else json.dumps(answer["rungs"])
        expect(f"refused: {name}", code == 2 and (words is None or words in message), f"{code} {message}")

    # What takes more than it may is told; the other rungs answer.
    wide = "ENTRY e {\n  x = f32[300,1000,1000] parameter(0)\n  t = f32[300,1000,1000] sine(x)\n  ROOT r = f32[300,1000,1000] OP(t)\n}\n"
    big = dump(tmp / "big", wide.replace("OP", "tanh"), wide.replace("OP", "cosine"))
    verdict("judged within its memory", triage(big, "--memory-limit=0.5", "--time-limit=30", "-o", tmp / "big_report"), 1, "fault", instruction="r")
    expect("…and cut out of both", "tanh" in (tmp / "big_report" / "smallest" / "good.hlo").read_text() and "cosine" in (tmp / "big_report" / "smallest" / "bad.hlo").read_text())
    dynamic = file("dynamic.hlo", """HloModule d
ENTRY e {
  x = s32[4] parameter(0)
  n = s32[] constant(2)
  ROOT r = s32[<=4] set-dimension-size(x, n), dimensions={0}
}
""")
    code, answer = triage(dynamic, "--time-limit=20")
    expect("dynamic sizes accuse nobody", code != 1 and answer["verdict"] != "fault", answer.get("why", answer))

    # Folders.
    report = tmp / "report"
    verdict("a report", triage(planted, "-o", report), 1, "fault", folder=str(report))
    expect("what lies in it", {"triage.json", "state.json", "issue.md", "good.hlo", "bad.hlo", "module.hlo", "run_with_jax.py"} <= {f.name for f in report.iterdir()}, list(report.iterdir()))
    expect("the instruction alone, on both sides", "tanh" in (report / "smallest" / "good.hlo").read_text() and "sine" in (report / "smallest" / "bad.hlo").read_text(), list((report / "smallest").iterdir()))
    least = tmp / "least"
    verdict("the least that makes NaN", triage(module, "--complaint=nan", "-o", least), 1, "program", instruction="q")
    expect("reduced", (least / "smallest" / "module.hlo").exists() and "divide" in (least / "smallest" / "module.hlo").read_text(), list(least.rglob("*")))
    issue = (report / "issue.md").read_text()
    expect("no folders of the user's", str(tmp) not in issue and "metadata" not in issue + (report / "module.hlo").read_text() + (report / "bad.hlo").read_text(), issue)
    expect("what shows it, and what must come out", {"inputs.npz", "expected.npz"} <= {f.name for f in report.iterdir()}, list(report.iterdir()))
    expect("a text for an issue", "pass2" in issue and "tanh" in issue and "hlo-replay bisect" in issue, issue)
    (report / "note.txt").write_text("mine")
    began = time.monotonic()
    answer = verdict("once more, from what is kept", triage(planted, "-o", report), 1, "fault")
    expect("notes stay", (report / "note.txt").read_text() == "mine")
    (planted / "module_0001.jit_f.before_optimizations.txt").write_text("HloModule jit_f\n\n" + NORM.replace("0.5", "0.75"))
    code, answer = triage(planted, "-o", report)
    expect("of other files it is refused", code == 2 and "another triage" in answer["error"]["message"], answer)
    code, answer = triage(planted, "-o", report, "--force")
    expect("--force begins anew", code == 1, answer)
    mine = tmp / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("all of it")
    for more in ([], ["--force"]):
        code, answer = triage(sound, "-o", mine, *more)
        expect("a folder of the user's is left alone", code == 2 and (mine / "thesis.txt").read_text() == "all of it" and len(list(mine.iterdir())) == 1, answer)

    # Limits: a loop that takes for ever.
    LOOP = """cond {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2000000000)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  a = f32[64] get-tuple-element(s), index=1
  b = f32[64] sine(a)
  ROOT r = (s32[], f32[64]) tuple(next, b)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[64] parameter(0)
  t = (s32[], f32[64]) tuple(z, x)
  w = (s32[], f32[64]) while(t), condition=cond, body=body
  ROOT out = f32[64] get-tuple-element(w), index=1
}
"""
    loop = dump(tmp / "loop", LOOP, LOOP.replace("ROOT out = f32[64] get", "o = f32[64] get") .replace("(w), index=1\n", "(w), index=1\n  ROOT out = f32[64] negate(o)\n"))
    began = time.monotonic()
    code, answer = triage(loop, "--time-limit=4")
    passed = time.monotonic() - began
    expect("ended in its time", passed < 4 + 4, f"{passed:.1f} s")
    expect("what was stopped is said", code == 2 and answer["verdict"] == "unknown" and any(r["outcome"] == "stopped" for r in answer["rungs"]), json.dumps(answer["rungs"], indent=1))
    stopped = tmp / "stopped"
    child = subprocess.Popen([tool, "triage", str(loop), "-o", str(stopped), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(600):
        if (stopped / "state.json").exists() or child.poll() is not None:
            break
        time.sleep(0.05)
    time.sleep(0.3)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    expect("Ctrl-C ends it within a second", time.monotonic() - began < (6 if "HLO_SANITIZED" in os.environ else 1.5) and child.returncode == 2, f"{time.monotonic() - began:.2f} s, {child.returncode}: {out} {err}")
    kept = json.loads((stopped / "state.json").read_text())
    expect("what was done is kept", list(kept["answers"]) == ["check"], kept)
    left = [p for p in tmp.iterdir() if "hlo-replay" in p.name]
    expect("no half folder is left", not left, left)
    kept["answers"]["check"]["answer"]["verdict"] = "as it was kept"
    kept["answers"]["check"]["answer"]["judged"] = 0
    (stopped / "state.json").write_text(json.dumps(kept))
    code, answer = triage(loop, "-o", stopped, "--time-limit=3")
    expect("a later run goes on", rung(answer, "check")["result"] == "as it was kept", answer.get("rungs", answer))

    # A program.
    program = file("program.py", f"""import os, re, shutil, sys
folder = re.search("--xla_dump_to=([^ ]+)", os.environ["XLA_FLAGS"])[1]
for f in os.listdir({str(sound)!r}):
    shutil.copy(os.path.join({str(sound)!r}, f), folder)
if len(sys.argv) > 1:
    print(sys.argv[1], file=sys.stderr)
    sys.exit(1)
""")
    verdict("a program", triage_program := (lambda c: (c[0], json.loads(c[1])))(run("triage", "--json", "--", "python3", program)), 0, "nothing")
    verdict("one that dies", (lambda c: (c[0], json.loads(c[1])))(run("triage", "--json", "--", "python3", program, "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes")), 1, "program", complaint="memory")

finish("triage_test")
