#!/usr/bin/env python3
"""A folder of many modules as one run: how a module and a stage are named, and that every command takes them so."""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, page_files, run, tool

TABLES = """
FileNames
1 "/home/me/train.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

"""
# One stage of a training step, `n` rows; what the passes do to it.
STEP = """HloModule NAME, SCHEDULEDentry_computation_layout={(f32[N,256]{1,0}, f32[N,256]{1,0})->(f32[N,256]{1,0}, f32[])}
TABLES
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  w = f32[N,256]{1,0} parameter(0), metadata={op_name="state.params['w']"}
  g = f32[N,256]{1,0} parameter(1), metadata={op_name="grads"}
  EXTRA
  n = f32[N,256]{1,0} subtract(w, m), metadata={op_name="jit(NAME)/update/sub" stack_frame_id=1}
  z = f32[] constant(0)
  l = f32[] reduce(n, z), dimensions={0,1}, to_apply=add, metadata={op_name="jit(NAME)/loss/reduce_sum" stack_frame_id=1}
  ROOT t = (f32[N,256]{1,0}, f32[]) tuple(n, l)
}
"""
EXTRAS = ["o = f32[] constant(1)\n  u = f32[N,256]{1,0} broadcast(o), dimensions={}\n  m = f32[N,256]{1,0} multiply(g, u)",
          "m = f32[N,256]{1,0} copy(g)", "m = f32[N,256]{1,0} negate(g)"]
CONFIG = (data.parent / "ir" / "target" / "targets" / "h200.pbtxt").read_text()


def stage(name, rows, which):
    text = STEP.replace("EXTRA", EXTRAS[which]).replace("NAME", name).replace("N,", f"{rows},").replace("TABLES", TABLES)
    return text.replace("SCHEDULED", "is_scheduled=true, " if which == 2 else "")


def write_module(folder, number, name, rows, damaged=False):
    start = f"module_{number:04}.{name}."
    for k, file in enumerate(("before_optimizations.txt", "0001.simplification.after_algsimp.before_dce.txt", "sm_9.0_gpu_after_optimizations.txt")):
        (folder / (start + file)).write_text(stage(name, rows, k))
    (folder / (start + "0003.fusion.after_priority-fusion.before_dce.txt")).write_text(stage(name, rows, 1).replace("copy(g)", "negate(g)"))
    (folder / (start + "gpu_target_config.pbtxt")).write_text(CONFIG)
    (folder / (start + "debug_options")).write_text("xla_dump_to: \"x\"\n")
    for k in range(3):
        (folder / f"{start}{k}.ir-no-opt.ll").write_text("; nothing\n")
    if damaged:
        (folder / (start + "sm_9.0_gpu_after_optimizations.txt")).write_text("HloModule cut\nENTRY e {")


NAMES = ["jit_init", "jit_train_step", "jit_eval_step", "jit__metrics", "jit_convert_element_type"]


def write_run(folder):
    """Thirty modules of one program."""
    folder.mkdir()
    for k in range(30):
        name = NAMES[k] if k < len(NAMES) else "jit_train_step" if k == 20 else f"jit_op_{k}"
        write_module(folder, 2 * k, name, 2048 if k == 1 else 64 if k == 20 else 8 + k, damaged=k == 29)


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    dump = tmp / "dump"
    write_run(dump)

    # The index.
    code, out, err = run(dump)
    lines = out.splitlines()
    rows = [l for l in lines if l.startswith("    00")]
    expect("index", code == 0 and "a run of 30 modules" in lines[0] and "NVIDIA H200" in lines[0] and len(rows) == 30, out + err)
    expect("the dearest module in front", rows[0].split()[:2] == ["0002", "train_step"] and "% of the time" in rows[0] and "most memory" in rows[0], rows[0])
    expect("compiled twice, for other shapes", "compiled 2 times, for other arguments each" in rows[0], rows[0])
    expect("what cannot be read stands last, with its reason", rows[-1].split()[0] == "0058" and "error:" in rows[-1], rows[-1])
    expect("functions", {"init", "train_step", "eval_step", "metrics", "convert_element_type"} <= {r.split()[1] for r in rows}, out)
    expect("files are counted, not listed", "90 .ir-no-opt.ll" in out and "30 .debug_options" in out and len(lines) < 60, out)
    code, out, err = run("open", dump, "--json")
    told = json.loads(out)
    expect("the same as JSON", code == 0 and len(told["modules"]) == 30 and told["look_first"][0] == "0002" and told["graphs"] == [], out[:300])

    # How a module and a stage are named.
    final = (dump / "module_0002.jit_train_step.sm_9.0_gpu_after_optimizations.txt").read_text()
    code, want, err = run("print", dump / "module_0002.jit_train_step.0001.simplification.after_algsimp.before_dce.txt")
    for spec in ("2:1", "0002:0001", "2:algsimp", "2:simplification.after_algsimp", "0002:simplif", "2:after_ALG",
                 "2:module_0002.jit_train_step.0001.simplification.after_algsimp.before_dce.txt"):
        code, out, err = run("print", f"{dump}:{spec}")
        expect(f"stage by {spec}", code == 0 and out == want, err)
    for module in ("eval", "eval_step", "jit_eval_step", "4", "0004", "module_0004"):
        code, out, err = run("print", f"{dump}:{module}:priority")
        expect(f"module by {module}", code == 0 and "jit_eval_step" in out and "negate" in out, err)
    code, out, err = run("print", f"{dump}:metrics:before_optimizations")
    expect("a function with an underscore", code == 0 and "jit__metrics" in out, err)

    # Never silently the first.
    def ambiguous(spec, *words, command=("print",)):
        code, out, err = run(*command, spec)
        expect(f"{spec} is refused", code == 2 and not out and all(w in err for w in words), f"{code} {out[:100]} {err}")

    ambiguous(f"{dump}:train_step:1", "fits 2 modules", ":0002:1", ":0040:1")
    ambiguous(f"{dump}:train_step", "2 modules", ":0002:STAGE", ":0040:STAGE")
    ambiguous(f"{dump}:algsimp", "30 modules", "MODULE:STAGE", ":0002:algsimp")
    ambiguous(f"{dump}:2:after_", "fits", ":0002:0001", ":0002:0003")
    ambiguous(f"{dump}:nothing", "no module", "MODULE:STAGE")
    ambiguous(f"{dump}:2:nothing", "no stage 'nothing'", ":0002:0001", "before_optimizations")
    ambiguous(f"{dump}:99:1", "no module '99'")
    ambiguous(f"{dump}:", "MODULE:STAGE")
    ambiguous(f"{dump}::", "no module ''", ":0002")
    ambiguous(f"{dump}", "is a folder")
    for command in ("bisect", "view", "memory", "cost", "summary", "open"):
        ambiguous(f"{dump}:train_step", "fits 2 modules", ":0002", ":0040", command=(command,))

    ambiguous_name = run("extract", dump, "n")
    expect("extract: several modules have it", ambiguous_name[0] == 2 and "modules:" in ambiguous_name[2] and ":0002:" in ambiguous_name[2], ambiguous_name)
    none = run("extract", dump, "nobody")
    expect("extract: no module has it", none[0] == 2 and "no stage of" in none[2], none)
    one = run("extract", f"{dump}:2", "n")
    expect("extract: of one module its last stage", one[0] == 0 and one[1].startswith("HloModule") and ":0002:" in one[2], one)

    # Every command by module.
    spec = f"{dump}:2:1"
    for command in (["print", spec], ["verify", spec], ["stats", spec], ["fmt", spec], ["convert", spec, "-"], ["opt", "--passes=dce", spec],
                    ["exec", spec, "--out", tmp / "o.npz"], ["replay", spec, "-o", tmp / "replayed", "--formats=text"],
                    ["diff", spec, spec], ["extract", spec, "n"], ["isolate", spec, "-o", tmp / "isolated"],
                    ["explain", f"{dump}:2", "n"], ["bisect", f"{dump}:eval", "--check=true"], ["exec", f"{dump}:eval", "--all-stages"],
                    ["diff", f"{dump}:2", f"{dump}:2"], ["open", f"{dump}:2"], ["open", f"{dump}:2", "--stages"], ["view", f"{dump}:2", "-o", tmp / "view2.html"],
                    ["cost", f"{dump}:2"], ["memory", f"{dump}:2"], ["summary", f"{dump}:2", "--by=scope"], ["summary", f"{dump}:2", "--by=pass"],
                    ["cost", f"{dump}:2:1"], ["memory", f"{dump}:2:1"], ["summary", f"{dump}:2:1"]):
        code, out, err = run(*command)
        # The planted `negate` is what bisect and --all-stages are to find.
        planted = command[0] == "exec" and "--all-stages" in command
        expect(f"{command[0]} {' '.join(map(str, command[1:]))}", code == (1 if planted else 0), f"{code} {out[-200:]} {err[-300:]}")
    code, out, err = run("bisect", f"{dump}:eval")
    expect("bisect names the stage of that module", code == 1 and "0003" in out and "priority-fusion" in out, out + err)

    # bisect over a run: the largest module first, like ones once.
    several = tmp / "several"
    several.mkdir()
    for number, name, rows, stages in ((1, "jit_a", 8, (0, 1)), (2, "jit_big", 8, (0, 0)), (3, "jit_c", 8, (0, 1)), (4, "jit_d", 9, (0, 1))):
        for k, file in zip(stages, ("before_optimizations", "0001.simplification.after_algsimp.before_dce")):
            text = stage(name, rows, k)
            if number == 2:
                text = text.replace("  n = ", "  more = f32[8,256]{1,0} negate(m)\n  n = ")
            (several / f"module_{number:04}.{name}.{file}.txt").write_text(text)
    code, out, err = run("bisect", several, "--json")
    told = json.loads(out)
    expect("the order of bisect", code == 0 and [o["number"] for o in told["order"]] == [2, 1, 3, 4], (code, told["order"], err))
    expect("like ones are judged once", [o["like"] for o in told["order"]] == [None, None, 1, None] and [m["module"] for m in told["modules"]] == ["jit_big", "jit_a", "jit_d"] and
           {o["outcome"] for o in told["order"]} == {"nothing found"}, told["order"])
    code, out, err = run("bisect", several)
    expect("...and told", code == 0 and "module 0003 jit_c: as module 0001" in out and out.index("module 0002") < out.index("module 0001 "), out)
    code, out, err = run("bisect", several, "--time-limit=0.000001")
    expect("a time limit tells what was judged", code == 2 and "not begun" in out, (code, out, err))
    code, out, err = run("bisect", several, "--time-limit=0.000001", "--json")
    told = json.loads(out)
    expect("...as JSON", code == 2 and {o["outcome"] for o in told["order"]} <= {"stopped", "not begun"} and "nothing found" not in told["verdict"], (code, out, err))

    # Over the whole run: one module that cannot be read does not stop the others.
    for command in ("memory", "cost"):
        code, out, err = run(command, dump)
        expect(f"{command} over the run", code == 2 and len([l for l in out.splitlines() if "jit_" in l]) == 30 and "unknown" in out.splitlines()[-1], out + err)
        code, out, err = run(command, dump, "--json")
        modules = json.loads(out)["modules"]
        keys = {tuple(m) for m in modules}
        expect(f"{command} --json: the same keys for each", len(modules) == 30 and len(keys) == 1 and sum(bool(m["problem"]) for m in modules) == 1, err)
    for by in ("line", "scope", "class", "module"):
        code, out, err = run("summary", dump, f"--by={by}")
        expect(f"summary by {by}", code == 2 and "all of 29 modules" in out and "jit_op_29" in err, out + err)
    code, out, err = run("summary", dump, "--by=line")
    expect("by line", "/home/me/train.py:7" in out, out)
    code, out, err = run("summary", dump, "--by=pass", "--json")
    expect("by pass", code == 0 and {"algsimp", "priority-fusion"} <= {r["key"] for r in json.loads(out)["rows"]}, out + err)
    code, out, err = run("view", dump, "-o", tmp / "run.html")
    carried = page_files(tmp / "run.html")
    expect("the page of a run", code == 0 and ("module_0058/lineage.hlol" in carried or sum("\"rows\"" in q for q in carried["answers.json"]) == 30), err + str(list(carried)[:9]))
    expect("… says what could not be read", any("module 0058" in n for n in carried["page.json"]["notices"]), carried["page.json"])
    code, out, err = run("view", dump, "-o", tmp / "pages", "--formats=text,page")
    expect("a folder of a run", code == 0 and all((tmp / "pages" / p / "index.html").exists() for p in
           ("", "module_0002.jit_train_step", "module_0058.jit_op_29")), err)
    code, out, err = run("link", dump)
    expect("link leaves out what it cannot read", code == 0 and "30 modules" in out or "29 modules" in out, out[-200:] + err)

    # The first minute with one module.
    code, out, err = run(f"{dump}:2")
    expect("compiled for what", "CUDA, NVIDIA H200 141GB HBM3e (sm_9.0)" in out and "1 partition" in out, out)
    expect("dearest kernel, with its line", " reduction " in out and "me/train.py:7" in out and "memory" in out, out)
    expect("memory", "6.00MiB allocated (4.00MiB arguments" in out and "6.00MiB alive at the peak" in out, out)
    expect("a state that is not donated", "not donated" in out and "parameter 0 state.params['w'] (f32[2048,256], 2.00MiB)" in out, out)
    expect("passes", "0003  fusion priority-fusion" in out and "0001  simplification algsimp" in out, out)
    expect("short", len(out.splitlines()) <= 60 and "next: hlo-replay" in out, len(out.splitlines()))
    code, out, err = run("open", f"{dump}:2", "--json")
    findings = json.loads(out)["modules"][0]["findings"]
    expect("findings as JSON", {"missing-donation"} <= {f["kind"] for f in findings} and findings[0]["instruction"], findings)
    code, out, err = run(f"{dump}:58")
    expect("a module whose last stage is damaged", code == 0 and "cannot be read" in out and "priority-fusion" in out, out + err)

    # Digits are a number, never a part of a name.
    ambiguous(f"{dump}:25:1", "no module '25'")

    # A folder of one module: DIR:MODULE:STAGE, by name DIR:STAGE, too.
    single = tmp / "single"
    single.mkdir()
    write_module(single, 7, "jit_f", 16)
    for spec in ("algsimp", "f:1", "7:1", "0007:0001", "jit_f:algsimp", "before_optimizations", "sm_9.0_gpu_after", "after_optimizations"):
        code, out, err = run("print", f"{single}:{spec}")
        expect(f"single:{spec}", (code == 0) == (spec != "sm_9.0_gpu_after") and ("HloModule jit_f" in out) == (code == 0), err)
    ambiguous(f"{single}:jit_f", "is a module", "after_optimizations")
    code, out, err = run("memory", f"{single}:jit_f")
    expect("the module of a folder of one", code == 0 and "alive at the peak" in out, out + err)
    # DIR:NUMBER is the module of that number for every command, as in a folder of several.
    for command in (["open"], [], ["memory"], ["cost"], ["summary"], ["tuned"], ["view", "-o", tmp / "single.html", "--force"], ["bisect", "--check=true"],
                    ["explain", "--pass=algsimp"], ["search", "--opcode=reduce"], ["occupancy"], ["link"],
                    ["replay", "--formats=text", "--force", "-o", tmp / "single.replay"], ["whatif", "--disable=algsimp"], ["exec", "--all-stages"], ["extract", "n"]):
        for number in ("7", "0007"):
            code, out, err = run(*command[:1], f"{single}:{number}", *command[1:])
            named = run(*command[:1], f"{single}:jit_f", *command[1:])
            expect(f"{command} of DIR:{number}", code == named[0] and "no module" not in err and len(out.splitlines()) == len(named[1].splitlines()), (code, named[0], out[-200:], err[-300:]))
        # Stage 1 of it, as it was written before.
        code, out, err = run(*command[:1], f"{single}:0001", *command[1:])
        expect(f"{command} of DIR:0001", code == 2 and "no module '0001'" in err and f"{single}:0007:0001" in err, (code, out[-200:], err[-300:]))
    for command in ("print", "exec", "verify", "stats", "isolate"):
        code, out, err = run(command, f"{single}:7")
        expect(f"{command} takes a stage", code == 2 and "is a module" in err and f"{single}:7:after_optimizations" in err, (code, err))
        code, out, err = run(command, f"{single}:1")
        expect(f"{command} of what was a stage's number", code == 2 and f"{single}:0007:1" in err, (code, err))
    code, out, err = run("diff", f"{single}:1", f"{single}:3")
    expect("diff of what were stages", code == 2 and f"{single}:0007:1" in err, (code, err))
    code, out, err = run("print", f"{single}:{'9' * 30}")
    expect("a number beyond all", code == 2 and "no module" in err and not out, (code, err))
    both = tmp / "both"
    both.mkdir()
    write_module(both, 1, "jit_f", 16)
    code, out, err = run("print", f"{both}:0001")
    expect("a number that module and stage have", code == 2 and "is a module" in err and f"{both}:0001:0001" in err, (code, err))
    expect("...is the module", run("cost", f"{both}:1")[1] == run("cost", f"{both}:jit_f")[1])

    # Whoever only looks writes nothing, neither into the folder nor where it is called.
    here = tmp / "here"
    here.mkdir()

    def files(*folders):
        return sorted((str(f), f.stat().st_size, f.stat().st_mtime_ns) for folder in folders for f in [folder, *folder.rglob("*")])
    looked = files(single, here)
    for command in (["open"], [], ["open", "--stages"], ["open", "--json"], ["memory"], ["cost"], ["summary"], ["summary", "--by=pass"], ["tuned"], ["bisect"], ["explain", "--pass=algsimp"],
                    ["search", "--opcode=reduce"], ["occupancy"], ["link"], ["whatif", "--disable=algsimp"], ["exec", "--all-stages"], ["open", "--try"]):
        for spec in (single, f"{single}:7", f"{single}:jit_f"):
            subprocess.run([pathlib.Path(tool).resolve(), *command[:1], spec, *command[1:]], cwd=here, capture_output=True, timeout=300)
            expect(f"{command} {spec} writes nothing", files(single, here) == looked, files(single, here))
    for command in (["print"], ["verify"], ["stats"], ["fmt"], ["cost"], ["memory"], ["summary"], ["tuned"], ["search", "--opcode=reduce"], ["exec"], ["isolate"], ["opt", "--passes=dce"],
                    ["occupancy"], []):
        subprocess.run([pathlib.Path(tool).resolve(), *command[:1], f"{single}:7:1", *command[1:]], cwd=here, capture_output=True, timeout=300)
        expect(f"{command} of a stage writes nothing", files(single, here) == looked, files(single, here))

    # Folders below: recordings of ours, and dumps of several processes.
    outer = tmp / "outer"
    outer.mkdir()
    for name in ("a", "b"):
        (tmp / f"{name}.hlo").write_text(stage("jit_" + name, 16, 0))
        run("replay", tmp / f"{name}.hlo", "-o", outer / name, "--formats=text")
    write_module_folder = outer / "host_1" / "dump"
    write_module_folder.mkdir(parents=True)
    write_module(write_module_folder, 3, "jit_c", 16)
    code, out, err = run(outer)
    expect("folders below are a run", code == 0 and "a run of 3 modules" in out, out + err)
    for spec in ("a:before_optimizations", "jit_b:0001", "host_1:algsimp", "host_1/dump:1", "3:1", "jit_c:1"):
        code, out, err = run("print", f"{outer}:{spec}")
        expect(f"outer:{spec}", code == (0 if spec != "jit_b:0001" else code) and (code != 0 or "HloModule jit_" in out), err)
    ambiguous(f"{outer}:1:1", "fits 2 modules", f"{outer}:a:1", f"{outer}:b:1")
    # Links lead nowhere.
    (outer / "link").symlink_to(dump)
    code, out, err = run(outer)
    expect("links are not followed", "a run of 3 modules" in out, out)
    # A colon in a folder's name.
    odd = tmp / "x:y"
    odd.mkdir()
    write_module(odd, 1, "jit_f", 16)
    code, out, err = run("print", f"{odd}:1:1")
    expect("a colon in a folder's name", code == 0 and "jit_f" in out, err)

    # One name, two functions: not one that was compiled twice (what `recompiles` says, too).
    pair = tmp / "pair"
    pair.mkdir()
    for number, rows, line in ((0, 64, 7), (2, 128, 90)):
        write_module(pair, number, "jit_step", rows)
        for file in pair.glob(f"module_{number:04}*.txt"):
            file.write_text(file.read_text().replace(" line=7 end_line=7 ", f" line={line} end_line={line} "))
    code, out, err = run(pair)
    expect("two functions of one name", code == 0 and "a run of 2 modules" in out and "compiled 2 times" not in out, out + err)
    code, out, err = run("recompiles", pair)
    expect("recompiles counts alike", "step" not in out.replace(str(pair), ""), out + err)


finish("run_test")
