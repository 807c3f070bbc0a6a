#!/usr/bin/env python3
"""--json: every command gives one object, found or not, as docs/schemas/ says; failures give one, too."""
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, page_files, run, source
from json_schema import Schemas

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
seen = set()


def answer(name, schema, code, *args, **how):
    """Runs a command with --json: its exit code, one object, the schema."""
    before = ["--json"] if args[0] == "capture" else []
    got, out, err = run(args[0], *before, *args[1:], *([] if before else ["--json"]), **how)
    expect(f"{name}: exit code {code}", got == code, f"{got} {err[:300]}")
    try:
        value = json.loads(out)
    except json.JSONDecodeError as e:
        expect(f"{name}: one object", False, f"{e}: {out[:200]!r} {err[:300]}")
        return {}
    expect(f"{name}: an object", isinstance(value, dict), out[:200])
    why = schemas.wrong(value, schema + ".json")
    expect(f"{name}: as {schema}.json says", not why, why)
    seen.add(schema)
    return value


def refused(name, kind, code, *args, **how):
    error = answer(name, "error", code, *args, **how).get("error", {})
    expect(f"{name}: kind {kind}", error.get("kind") == kind and error.get("message"), error)
    return error


# The judge of this test says no where it should.
item = {"instruction": "s", "opcode": "add", "computation": "e", "elements": 1, "text": ""}
for good, value, schema in ((True, {"formatted": True, "files": []}, "fmt"), (False, {"formatted": 1, "files": []}, "fmt"),
                            (False, {"formatted": True}, "fmt"), (False, {"formatted": True, "files": [], "more": 1}, "fmt"),
                            (False, {"formatted": True, "files": [{}]}, "fmt"), (False, {"error": {"kind": "odd", "message": "", "diagnostics": []}}, "error"),
                            (False, {"version": 2, "module": "m", "values": []}, "trace"), (False, {}, "diff")):
    expect(f"validator {schema} {value}", good == (not schemas.wrong(value, schema + ".json")), schemas.wrong(value, schema + ".json"))

MODULE = """HloModule m
ENTRY e {
  p = f32[4]{0} parameter(0)
  n = f32[4]{0} negate(p)
  s = f32[4]{0} sqrt(n)
  z = f32[4]{0} add(s, p)
  ROOT r = (f32[4]{0}, f32[4]{0}) tuple(z, n)
}
"""

with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def file(name, text):
        (tmp / name).write_text(text)
        return tmp / name

    one, two = file("one.hlo", MODULE), file("two.hlo", MODULE.replace("sqrt(n)", "abs(n)"))
    same = file("same.hlo", MODULE.replace("  ", " "))
    broken, typo = file("broken.hlo", MODULE.replace("ROOT r = (f32[4]{0}, f32[4]{0})", "ROOT r = (f32[3]{0}, f32[4]{0})")), file("typo.hlo", MODULE.replace("sqrt", "sqrd"))
    norm, mobilenet = data / "modules" / "layer_norm.hlo", data / "mobilenet_v1.hlo"

    # Every command that answers has --json; those that print or converse have none.
    commands = re.findall(r"^  ([a-z]+) +\S", run("--help")[1].split("ubcommands:")[1], re.M)
    expect("commands are listed", len(commands) > 15 and "bisect" in commands, commands)
    for command in commands:
        expect(f"{command} --json", ("--json" in run(command, "--help")[1]) != (command in ("print", "step", "mcp")), command)

    # --- recordings and folders ---
    answer("replay", "recording", 0, "replay", norm, "-o", tmp / "rec", "--formats=text")
    refused("replay: no such XLA", "usage", 2, "replay", norm, "--engine=installed:/no/python", "-o", tmp / "x")
    answer("replay: a module that is done", "error", 2, "replay", file("done.hlo", MODULE.replace("m\n", "m, is_scheduled=true\n", 1)), "-o", tmp / "x")
    answer("whatif", "whatif", 0, "whatif", norm, "--disable=priority-fusion")
    expect("whatif: nothing differs", answer("whatif: nothing differs", "whatif", 1, "whatif", norm, "--disable=rng-expander")["kernels"] == [])
    refused("whatif: nothing to change", "usage", 2, "whatif", norm)
    refused("whatif: no batch", "usage", 2, "whatif", norm, "--batch=nobody:4")
    stages = answer("open", "open", 0, "open", tmp / "rec")["modules"][0]["stages"]
    expect("open by folder", json.loads(run(tmp / "rec", "--json")[1])["modules"][0]["stages"] == stages)
    expect("recording.json is the same", json.loads((tmp / "rec" / "recording.json").read_text())["stages"] == stages)
    expect("recording.json", not schemas.wrong(json.loads((tmp / "rec" / "recording.json").read_text()), "recording.json"))
    (tmp / "empty").mkdir()
    refused("open: nothing there", "io", 2, "open", tmp / "empty")
    graphs = tmp / "graphs"
    graphs.mkdir()
    for name in ("before", "after"):
        (graphs / f"{name}_clustering.pbtxt").write_text((data / "link" / f"{name}_clustering.pbtxt").read_text())
    expect("open: graphs", len(answer("open: graphs", "open", 0, "open", graphs)["graphs"]) == 2)
    expect("view", (pathlib.Path(answer("view", "view", 0, "view", tmp / "rec", "-o", tmp / "page.html")["page"])).exists())
    expect("view: no page", answer("view: no page", "view", 0, "view", tmp / "rec", "-o", tmp / "texts", "--formats=text")["page"] is None)
    refused("lesson: none of that name", "usage", 2, "lesson", "nothing", "-o", tmp / "lessons.html")
    of_program = answer("--version", "version", 0, "--version")
    if of_program["page_engine"] == "none":
        refused("lesson: without the engine", "unsupported", 2, "lesson", "-o", tmp / "lessons.html")
        seen.add("lesson")
    else:
        expect("lesson", answer("lesson", "lesson", 0, "lesson", "fusion", "-o", tmp / "lessons.html")["lesson"] == "fusion")
        expect("lesson: the list", answer("lesson: the list", "lesson", 0, "lesson", "-o", tmp / "lessons.html")["lesson"] is None)
    for name in ("one", "two"):
        (tmp / "several").mkdir(exist_ok=True)
        for stage in ("before_optimizations", "after_optimizations"):
            (tmp / "several" / f"module_000{1 + (name == 'two')}.{name}.{stage}.txt").write_text(MODULE.replace("HloModule m", f"HloModule {name}"))
    (tmp / "several" / "module_0003.cut.before_optimizations.txt").write_text("HloModule cut\nENTRY e {")
    run_of = answer("open: a run", "open", 0, "open", tmp / "several")
    expect("open: a run", len(run_of["modules"]) == 3 and sorted(run_of["look_first"]) == ["0001", "0002", "0003"], run_of)
    answer("view: a run", "view", 2, "view", tmp / "several", "-o", tmp / "several.html")
    expect("memory: a run", [bool(m["problem"]) for m in answer("memory: a run", "memory", 2, "memory", tmp / "several")["modules"]] == [False, False, True])
    expect("summary: a run", len(answer("summary: a run", "summary", 2, "summary", tmp / "several", "--by=module")["problems"]) == 1)
    refused("a module that is ambiguous", "usage", 2, "cost", f"{tmp}/several:")
    refused("view: nothing there", "io", 2, "view", tmp / "empty")
    # Somebody else's index.html shows no stage.
    (tmp / "foreign").mkdir()
    for name, text in (("before_optimizations", MODULE), ("0001.p.after_dce.before_x", MODULE), ("after_optimizations", MODULE.replace("sqrt(n)", "abs(n)"))):
        (tmp / "foreign" / f"module_0001.m.{name}.txt").write_text(text)
    (tmp / "foreign" / "index.html").write_text("<p>of a web server")
    seen_page = answer("view beside a foreign page", "view", 0, "view", tmp / "foreign")
    expect("a foreign page is none of ours", seen_page["page"] == f"{tmp}/foreign.html" and page_files(seen_page["page"])["page.json"]["title"] == "m", seen_page)

    run("replay", norm, "-o", tmp / "full", "--formats=text,buffers,thunks,json")
    for pattern, schema in (("*.thunk_schedule.json", "thunk_schedule"), ("*.after_optimizations.json", "module")):
        value = json.loads(next((tmp / "full").glob(pattern)).read_text())
        expect(schema, value and not (why := schemas.wrong(value, schema + ".json")), why)
        seen.add(schema)

    # --- texts ---
    expect("opt", answer("opt", "opt", 0, "opt", "--passes=dce,algsimp", one)["passes"][0]["pass"] == "dce")
    expect("opt: no pass", answer("opt: no pass", "opt", 0, "opt", "--passes=", one) == {"module": "m", "changed": False, "instructions": 5, "passes": []})
    answer("opt: list", "opt", 0, "opt", "--list-passes")
    refused("opt: unknown pass", "usage", 2, "opt", "--passes=nonsense", one)
    expect("verify", answer("verify", "verify", 0, "verify", one)["errors"] == [])
    expect("verify: no", answer("verify: no", "verify", 1, "verify", broken)["errors"][0]["line"] == 7)
    expect("verify: syntax", answer("verify: syntax", "verify", 2, "verify", typo)["errors"][0]["line"] == 5)
    expect("fmt: no", [f["formatted"] for f in answer("fmt: no", "fmt", 1, "fmt", "--check", same)["files"]] == [False])
    expect("fmt: written", answer("fmt: written", "fmt", 0, "fmt", "--write", same)["files"][0]["written"])
    expect("fmt", answer("fmt", "fmt", 0, "fmt", "--check", same)["formatted"])
    refused("fmt: no place for JSON", "usage", 2, "fmt", same)
    expect("convert", answer("convert", "convert", 0, "convert", one, tmp / "one.pb")["format"] == "pb")
    expect("convert: proto to proto", answer("convert: proto", "convert", 0, "convert", tmp / "one.pb", tmp / "two.pb.gz")["module"] is None)
    elided = file("elided.hlo", "HloModule e\nENTRY e { ROOT c = f32[99]{0} constant({...}) }\n")
    expect("convert: warnings", len(answer("convert: elided", "convert", 0, "convert", elided, tmp / "e.pb")["warnings"]) == 1)
    answer("convert: graph", "convert", 0, "convert", data / "link" / "before_clustering.pbtxt", tmp / "g.dot")
    refused("convert: unknown ending", "usage", 2, "convert", one, tmp / "one.xyz")
    refused("convert: both to standard output", "usage", 2, "convert", one, "-")
    answer("stats", "stats", 0, "stats", one)
    expect("stats: bench", answer("stats: bench", "stats", 0, "stats", one, "--bench")["parse_ms"] > 0)
    error = refused("stats: syntax", "syntax", 2, "stats", typo)
    expect("places of syntax errors", [(d["line"], d["hint"]) for d in error["diagnostics"]] == [(5, "did you mean 'sqrt'?")], error)
    refused("stats: no file", "io", 2, "stats", tmp / "nowhere.hlo")

    # --- memory and sums ---
    expect("memory", answer("memory", "memory", 0, "memory", tmp / "full")["modules"][0]["alive"])
    answer("memory: of our own assignment", "memory", 0, "memory", one, "--by=scope")
    refused("memory: no such key", "usage", 2, "memory", one, "--by=colour")
    for key in ("line", "scope", "class", "module", "pass"):
        expect(f"summary by {key}", answer(f"summary by {key}", "summary", 0, "summary", tmp / "full", f"--by={key}")["rows"])
    answer("summary: nothing", "summary", 0, "summary", file("none.hlo", "HloModule p\nENTRY e { ROOT p = f32[] parameter(0) }"))
    refused("summary: no such folder", "io", 2, "summary", tmp / "nowhere")

    # --- runs ---
    ran = answer("exec", "exec", 0, "exec", one, "--out", tmp / "1.npz", "--trace", tmp / "trace")
    expect("exec: not asked", ran["equal"] is None and ran["nan"] is None and ran["comparison"] == [], ran)
    expect("trace.json", not (why := schemas.wrong(json.loads((tmp / "trace" / "trace.json").read_text()), "trace.json")), why)
    seen.add("trace")
    expect("exec: equal", answer("exec: equal", "exec", 0, "exec", one, "--compare-with", tmp / "1.npz")["equal"])
    expect("exec: different", answer("exec: different", "exec", 1, "exec", two, "--compare-with", one)["equal"] is False)
    expect("exec: nan", answer("exec: nan", "exec", 1, "exec", one, "--nan")["nan"]["instruction"] == "s")
    expect("exec: no nan", answer("exec: no nan", "exec", 0, "exec", two, "--nan")["nan"] is None)
    refused("exec: the verifier refuses it", "invalid", 1, "exec", broken)
    refused("exec: no backend", "usage", 2, "exec", one, "--backend=abacus")
    whole = answer("exec: all stages", "exec", 0, "exec", tmp / "rec", "--all-stages")
    expect("exec: all stages", whole["different"] == 0 and whole["first_bad"] is None, whole)
    answer("exec: a stage differs", "exec", 1, "exec", tmp / "foreign", "--all-stages")
    run("exec", two, "--out", tmp / "2.npz")
    answer("compare", "compare", 0, "compare", tmp / "1.npz", tmp / "1.npz")
    answer("compare: different", "compare", 1, "compare", tmp / "1.npz", tmp / "2.npz")
    refused("compare: no arrays", "io", 2, "compare", tmp / "1.npz", tmp / "nowhere.npz")
    given = file("in.txt", "{1, 2, 3, 4}\n")
    run("exec", one, f"--inputs={given}", "--out", tmp / "3.npz"), run("exec", two, f"--inputs={given}", "--out", tmp / "4.npz")
    expect("check: right", answer("check: right", "check", 0, "check", one, f"--inputs={given}", "--outputs", tmp / "3.npz")["verdict"] == "right")
    wrong = answer("check: wrong", "check", 1, "check", one, f"--inputs={given}", "--outputs", tmp / "4.npz", "--dump", tmp / "foreign")
    expect("check: wrong", wrong["verdict"] == "wrong" and wrong["departs"]["verdict"], wrong)
    open_ = file("open.hlo", "HloModule o\nENTRY e { p = f32[4] parameter(0) ROOT c = s8[4] convert(p) }\n")
    run("exec", open_, "--inputs", file("far.txt", "{1, 2, 3, 4}\n"), "--out", tmp / "5.npz")
    far = file("far.txt", "{1e9, 2, 3, 4}\n")
    expect("check: contract", answer("check: contract", "check", 0, "check", open_, f"--inputs={far}", "--outputs", tmp / "5.npz")["contracts"][0]["decides"])
    unknown = file("nobody.hlo", "HloModule u\nENTRY e { p = f32[4] parameter(0) ROOT c = s8[4] custom-call(p), custom_call_target=\"nobody\" }\n")
    expect("check: unknown", answer("check: unknown", "check", 2, "check", unknown, f"--inputs={far}", "--outputs", tmp / "5.npz")["outputs"] == [])
    refused("check: no inputs", "usage", 2, "check", one)
    expect("isolate", answer("isolate", "isolate", 0, "isolate", file("reduce.hlo", (data / "modules" / "softmax.hlo").read_text()), "--backend=host")["kernels"])
    expect("isolate: nothing", answer("isolate: nothing", "isolate", 2, "isolate", one)["kernels"] == [])
    expect("cost", answer("cost", "cost", 0, "cost", one)["instructions"])
    answer("cost: nothing", "cost", 0, "cost", file("p.hlo", "HloModule p\nENTRY e { ROOT p = f32[] parameter(0) }"))
    expect("search", [i["instruction"] for i in answer("search", "search", 0, "search", one, "--opcode=sqrt")["instructions"]] == ["s"])
    expect("search: a run", answer("search: a run", "search", 2, "search", tmp / "several", "z")["found"] == 2)
    expect("search: nothing", answer("search: nothing", "search", 1, "search", one, "no such name")["found"] == 0)
    refused("search: for nothing", "usage", 2, "search", one)
    tuned = data / "tuned"
    expect("tuned", answer("tuned", "tuned", 0, "tuned", tuned / "dump")["modules"][0]["kernels"])
    expect("tuned: results", answer("tuned: results", "tuned", 0, "tuned", tuned / "f8_matmul.pbtxt")["results"][0]["entries"])
    expect("tuned: two", answer("tuned: two", "tuned", 0, "tuned", tuned / "dump", tuned / "dump")["same"] is True)
    answer("tuned: nothing", "tuned", 1, "tuned", one)
    refused("tuned: a file that is none", "io", 2, "tuned", tmp / "no such file")
    profiles = data / "profiles"
    expect("profile", answer("profile", "profile", 0, "profile", profiles / "jax_cpu.xplane.pb.gz", "--spans")["spans"])
    expect("profile by line", answer("profile by line", "profile", 0, "profile", profiles / "jax_cpu.trace.json.gz", profiles / "dump", "--by=line", "--gpu=H100")["rows"])
    expect("profile: another module", answer("profile: nothing", "profile", 0, "profile", profiles / "jax_cpu.trace.json.gz", one)["unjoined"])
    refused("profile: no profile", "io", 2, "profile", one)
    expect("cost: measured", answer("cost: measured", "cost", 0, "cost", f"{profiles}/dump:jit_f", f"--profile={profiles}/jax_cpu.xplane.pb.gz")["instructions"][0]["measured_seconds"])
    answer("summary: measured", "summary", 0, "summary", f"{profiles}/dump:jit_f", f"--profile={profiles}/jax_cpu.trace.json.gz")
    expect("open: a cache", answer("open: a cache", "open", 0, "open", profiles / "cache")["entries"])
    refused("cost: no card", "usage", 2, "cost", one, "--gpu=Z80")
    # ptxas, rehearsed: what the tool is asked, not the tool.
    tools = tmp / "tools"
    tools.mkdir()
    (tools / "ptxas").write_text("#!/bin/sh\necho \"ptxas info    : Function properties for fusion\"\necho '    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads'\n"
                                 "echo 'ptxas info    : Used 64 registers, 4096 bytes smem'\n")
    (tools / "ptxas").chmod(0o755)
    path = {"PATH": f"{tools}:/usr/bin:/bin"}
    ptx = file("k.ptx", ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry fusion(.param .u64 a)\n.reqntid 128, 1, 1\n{ ret; }\n")
    expect("occupancy", answer("occupancy", "occupancy", 0, "occupancy", ptx, env=path)["kernels"][0]["threads"] == 128)
    answer("occupancy: ours", "occupancy", 0, "occupancy", two, env=path)
    refused("occupancy: no kernel", "unsupported", 2, "occupancy", file("none.ptx", ".version 8.0\n.target sm_90a\n"), env=path)

    # --- what is wrong ---
    expect("diff: same", answer("diff: same", "diff", 0, "diff", one, same)["same"])
    expect("diff", answer("diff", "diff", 1, "diff", one, two)["differences"])
    expect("diff: run", answer("diff: run", "diff", 1, "diff", one, two, "--run")["first_value_that_differs"]["name"] == "s")
    expect("diff: text", answer("diff: text", "diff", 1, "diff", one, two, "--by=text")["text"])
    expect("diff: folders", answer("diff: folders", "diff", 0, "diff", tmp / "foreign", tmp / "foreign")["stages"] == 3)
    (tmp / "changed").mkdir()
    for f in (tmp / "foreign").glob("*.txt"):
        (tmp / "changed" / f.name).write_text(f.read_text().replace("add(s, p)", "multiply(s, p)") if "0001.p" in f.name else f.read_text())
    expect("diff: folders differ", "0001" in answer("diff: folders differ", "diff", 1, "diff", tmp / "foreign", tmp / "changed")["first_stage"])
    for name in ("foreign", "changed"):
        (tmp / name / "module_0002.n.before_optimizations.txt").write_text(MODULE.replace("HloModule m", "HloModule n"))
        (tmp / name / "module_0002.n.after_optimizations.txt").write_text(MODULE.replace("HloModule m", "HloModule n"))
    both = answer("diff: two modules", "diff", 1, "diff", tmp / "foreign", tmp / "changed")
    expect("diff: two modules", [m["same"] for m in both["modules"]] == [False, True] and not both["same"], both)
    answer("diff: kernels", "diff", 0, "diff", ptx, ptx)
    answer("diff: graphs", "diff", 1, "diff", graphs / "before_clustering.pbtxt", graphs / "after_clustering.pbtxt")
    run("exec", one, "--profile", tmp / "t.json")
    answer("diff: profiles", "diff", 0, "diff", "--profile", tmp / "t.json", tmp / "t.json")
    refused("diff: of two kinds", "usage", 2, "diff", one, ptx)
    expect("bisect: nothing", answer("bisect: nothing", "bisect", 0, "bisect", norm, "--passes-only=dce")["found"] is False)
    expect("bisect", answer("bisect", "bisect", 1, "bisect", norm, "--check=! grep -q fusion {}", "-o", tmp / "report")["rewrite"])
    run("bisect", norm, "--check=! grep -q fusion {}", "--resume", tmp / "judged.json")
    judged = json.loads((tmp / "judged.json").read_text())
    expect("judgements", judged["judged"] and not schemas.wrong(judged, "judgements.json"), schemas.wrong(judged, "judgements.json"))
    seen.add("judgements")
    report = json.loads((tmp / "report" / "report.json").read_text())
    expect("report.json", not schemas.wrong(report, "bisect.json"), schemas.wrong(report, "bisect.json"))
    expect("bisect: folder", answer("bisect: folder", "bisect", 1, "bisect", tmp / "foreign")["bad_file"].endswith("after_optimizations.txt"))
    expect("bisect: modules", len(answer("bisect: modules", "bisect", 0, "bisect", tmp / "foreign", "--check=true")["modules"]) == 2)
    expect("bisect: all unknown", answer("bisect: all unknown", "bisect", 2, "bisect", tmp / "changed", "--check=exit 125")["found"] is False)
    expect("bisect: a program that is fine", answer("bisect: program", "bisect", 0, "bisect", "--program=true")["verdict"].startswith("nothing to look for"))
    compiles = file("compiles.sh", f"""flags="$XLA_FLAGS"; dump=${{flags##*--xla_dump_to=}}; dump=${{dump%% *}}
case "$flags" in *--xla_dump_to=*) mkdir -p "$dump"; cp {tmp}/changed/module_0001* "$dump"/;; esac
case "$flags" in *disable_hlo_passes=*dce*) exit 0;; esac; exit 1
""")
    expect("bisect: program", answer("bisect: guilty", "bisect", 1, "bisect", f"--program=sh {compiles}")["guilty"] == ["dce"])
    expect("capture", answer("capture", "open", 0, "capture", "-o", tmp / "captured", "--", "sh", compiles)["modules"])
    refused("capture: nothing compiled", "usage", 2, "capture", "-o", tmp / "nothing", "--", "true")
    expect("words behind -- are the program's", run("capture", "-o", tmp / "nothing", "--", "true", "--json")[1] == "")
    reduced = answer("reduce", "reduce", 0, "reduce", one, "--nan", "-o", tmp / "reduced")
    expect("reduce", reduced["fault"] and reduced["instructions"] < reduced["instructions_before"], reduced)
    expect("reduce: nothing is wrong", answer("reduce: nothing", "reduce", 2, "reduce", two, "--nan", "-o", tmp / "r2")["fault"] is None)
    expect("explain", answer("explain", "explain", 0, "explain", f"{tmp / 'foreign'}:0001", "s")["events"])
    wide = file("wide.hlo", "HloModule wide\nENTRY e {\n  p = f32[4096] parameter(0)\n  ROOT r = f32[32,128] reshape(p)\n}\n")
    small = answer("reduce: sizes", "reduce_sizes", 0, "reduce", wide, "--sizes", "-o", tmp / "small.hlo")
    expect("reduce: sizes", [s["after"] for s in small["sizes"] if s["before"] == 4096] == [32] and (tmp / "small.hlo").exists(), small)
    kept = answer("reduce: no size", "reduce_sizes", 1, "reduce", wide, "--sizes", "--keep=4096,128,32", "-o", tmp / "nosize.hlo")
    expect("reduce: no size", kept["out"] is None and kept["sizes"][0]["why"] and not (tmp / "nosize.hlo").exists(), kept)
    refused("reduce: sizes and a fault", "usage", 2, "reduce", wide, "--sizes", "--nan")
    refused("reduce: keep without sizes", "usage", 2, "reduce", wide, "--keep=32", "--nan")
    answer("explain: times", "explain", 0, "explain", f"{tmp / 'foreign'}:0001", "s", f"--trace={tmp}/t.json")
    refused("explain: two modules have it", "usage", 2, "explain", tmp / "foreign", "s")
    refused("explain: no such instruction", "usage", 2, "explain", tmp / "foreign", "nobody")
    expect("explain: why not", answer("explain: why not", "explain", 1, "explain", tmp / "foreign", "--why-not", "s", "z")["decisions"] == [])
    expect("explain: pass", answer("explain: pass", "explain", 0, "explain", tmp / "rec", "--pass=algsimp")["runs"])
    expect("explain: no such pass", answer("explain: no pass", "explain", 2, "explain", tmp / "rec", "--pass=nonsense")["runs"] == [])
    expect("extract", answer("extract", "extract", 0, "extract", one, "z", "--hops=0")["text"].startswith("HloModule"))
    expect("extract: files", answer("extract: files", "extract", 0, "extract", one, "z", "--hops=0", "-o", tmp / "z.hlo", "--inputs-out", tmp / "z.npz")["arrays"] == ["p0", "p1"])
    answer("extract: constants", "extract", 0, "extract", mobilenet, f"--constants={tmp}/c.npz")
    refused("extract: no such instruction", "usage", 2, "extract", one, "nobody")
    link = data / "link"
    expect("link", answer("link", "link", 0, "link", link / "add.hlo", link / "mul.hlo", "--edge=0.o0=1.p0", "--emit", tmp / "both.hlo")["emitted"]["links"])
    expect("link: nothing", answer("link: nothing", "link", 0, "link", one, file("t.hlo", "HloModule t\nENTRY e { ROOT p = s8[7] parameter(0) }"))["edges"] == [])
    expect("link: a graph", answer("link: a graph", "link", 0, "link", "--graph", link / "after_clustering.pbtxt")["nodes"])
    refused("link: one module", "usage", 2, "link", one)
    # Of the command line itself.
    refused("an unknown option", "usage", 2, "stats", one, "--nonsense")
    for words, hint in ((["ech", "x"], "did you mean 'exec'?"), (["bisct"], "did you mean 'bisect'?"), (["frobnicate", one], "see hlo-replay --help"), (["verfy", one], "did you mean 'verify'?")):
        code, text, err = run(*words)
        expect(f"unknown command {words[0]}", code == 2 and text == "" and f"no command and no file is called '{words[0]}'" in err and hint in err, err)
    expect("a file that is not there", "cannot read nowhere.hlo" in run("nowhere.hlo")[2])
    version = re.search(r"project\(\w+ VERSION ([0-9.]+)", (pathlib.Path(source) / "CMakeLists.txt").read_text())[1]
    expect("--version", run("--version")[1].splitlines()[0] == f"hlo-replay {version}" == f"hlo-replay {of_program['version']}", version)
    expect("… and of what the page's engine is made", len(run("--version")[1].splitlines()) == (1 if of_program["page_engine"] == "same" else 2), of_program)

seen |= {"triage"}  # tests/triage/triage_test.py, every answer of it
seen |= {"compile_time"}  # tests/report/compile_time_test.py, every answer of it
seen |= {"recompiles"}  # tests/report/recompiles_test.py
seen |= {"engine", "bisect_xla"}  # tests/triage/installed_test.py, which has an XLA to ask
with tempfile.TemporaryDirectory() as directory:
    log = pathlib.Path(directory) / "log.txt"
    log.write_text("I0000 00:00:1.5 7 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module m: p\n")
    expect("open: a log", answer("open: a log", "log", 0, "open", log)["pipelines"][0]["module"] == "m")
    part = pathlib.Path(directory) / "part.hlo"
    part.write_text("ENTRY e {\n  ...\n  ROOT r = f32[4]{0} negate(a)\n}\n")
    told = answer("stats: an excerpt", "stats", 0, "stats", "--permissive", part)["excerpts"]
    expect("stats: an excerpt tells", told[0]["gaps"] == 1 and not schemas.wrong(told, "excerpts.json"), told)
    elided = pathlib.Path(directory) / "elided.hlo"
    elided.write_text("HloModule e\nENTRY e {\n c = f32[20] constant({...})\n ROOT n = f32[20] negate(c)\n}\n")
    told = answer("exec: elided constants", "exec", 0, "exec", elided)["elided_constants"]
    expect("exec: elided constants tell", told[0]["first"] == "c" and not schemas.wrong(told, "elided_constants.json"), told)
    seen |= {"excerpts", "expected", "elided_constants", "measured_run"}  # parts of the others
    seen |= {"measured"}  # of a page: tests/report/profile_graphs_test.py
expect("every schema was tried", seen == {name[:-5] for name in schemas.all}, {name[:-5] for name in schemas.all} ^ seen)
finish("json_test")
