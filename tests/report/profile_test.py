"""Where users' data lies: profiles joined to instructions, modules inside of profiles, caches and snapshots."""
import gzip
import json
import pathlib
import shutil
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run
from xspace import field, plane

PROFILES = data / "profiles"
XPLANE, TRACE, DUMP = PROFILES / "jax_cpu.xplane.pb.gz", PROFILES / "jax_cpu.trace.json.gz", PROFILES / "dump"


def answer(*args, code=0):
    done = run(*args, "--json")
    expect(f"exit code of {args}", done[0] == code, done)
    return json.loads(done[1])


def joined():
    own = answer("profile", XPLANE)
    expect("all joined", own["joined_share"] == 1 and own["named_seconds"] > 0, own["joined_share"])
    top = own["instructions"][0]
    expect("source lines", all(i["source"].startswith("/home/me/lib/model.py:") for i in own["instructions"][:3]), own["instructions"][:3])
    expect("shares", abs(sum(i["share"] for i in own["instructions"]) - 1) < 1e-6)
    f = [m for m in own["modules"] if m["name"] == "jit_f"][0]
    expect("two runs, number 9", (f["runs"], f["number"]) == (2, 9), f)
    expect("what names nothing is told", own["unnamed"] and "no instruction" in own["unnamed"][0]["why"], own["unnamed"])
    # The same through the dump, and through trace events.
    names = [(i["instruction"], i["count"]) for i in own["instructions"]]
    for profile in (XPLANE, TRACE):
        other = answer("profile", profile, f"{DUMP}:jit_f")
        expect(f"{profile.name} with the dump", [(i["instruction"], i["count"]) for i in other["instructions"]] == names, other["instructions"])
        expect(f"{profile.name} joined", other["joined_share"] == 1, other["joined_share"])
    # Loops are not counted beside what runs in them.
    expect("no while", not [n for n, _ in names if n.startswith("while")], names)
    body = [i for i in own["instructions"] if i["count"] == 6]
    expect("a body of three trips, twice", body, names)
    # Slice → instruction, instruction → slices.
    one = answer("profile", XPLANE, f"--op={top['instruction']}")
    expect("spans of one", len(one["spans"]) == top["count"] and len(one["instructions"]) == 1, one["spans"])
    at = one["spans"][0]
    there = answer("profile", XPLANE, f"--at={(at['begin'] + at['seconds'] / 2) * 1e3}")["spans"]
    expect("what ran then", [s["instruction"] for s in there] == [top["instruction"]], there)
    expect("no such instruction", run("profile", XPLANE, "--op=nothing")[0] == 1)
    lines = answer("profile", XPLANE, "--by=line")["rows"]
    expect("by line", abs(sum(r["seconds"] for r in lines) - own["joined_seconds"]) < 1e-9 and len(lines) > 1, lines)


def beside():
    """Measured times beside bounds."""
    cost = answer("cost", f"{DUMP}:jit_f", f"--profile={XPLANE}")["instructions"]
    seen = {i["instruction"]: i["seconds"] for i in answer("profile", XPLANE)["instructions"]}
    ran = [m["runs"] for m in answer("profile", XPLANE)["modules"] if m["name"] == "jit_f"][0]
    measured = {i["name"]: i["measured_seconds"] for i in cost if i["measured_seconds"] is not None}
    expect("cost, of one run", measured.keys() == seen.keys() and all(abs(measured[n] * ran - seen[n]) < 1e-12 for n in seen), (measured, seen))
    expect("cost without", answer("cost", f"{DUMP}:jit_f")["instructions"][0]["measured_seconds"] is None)
    rows = answer("summary", f"{DUMP}:jit_f", "--by=class", f"--profile={TRACE}")["rows"]
    expect("summary", abs(ran * sum(r["measured_seconds"] for r in rows) - sum(seen.values())) < 1e-6, rows)
    top = max(seen, key=seen.get)
    time = answer("explain", f"{DUMP}:jit_f", top, f"--profile={XPLANE}")["time"]
    expect("explain", abs(time["seconds"] - seen[top]) < 1e-9, time)


def not_joined():
    """Other modules, no modules, several of one name: never the first of them."""
    other = answer("profile", TRACE, f"{DUMP}:jit_multiply")
    expect("another module", other["joined_seconds"] == 0 and "no module 'jit_f'" in other["unjoined"][0]["why"], other["unjoined"])
    expect("modules are needed", run("profile", TRACE)[0] == 2 and "hlo-replay profile" in run("profile", TRACE)[2])
    with tempfile.TemporaryDirectory() as tmp:
        text = next(DUMP.glob("*jit_f.cpu_after*")).read_text()
        for number in (1, 2):
            (pathlib.Path(tmp) / f"module_000{number}.jit_f.after_optimizations.txt").write_text(text)
        twice = answer("profile", TRACE, tmp)
        expect("two of a name", twice["joined_seconds"] == 0 and "2 modules" in twice["unjoined"][0]["why"], twice["unjoined"])


def devices():
    """Planes as GPUs and TPUs have them, written here."""
    with tempfile.TemporaryDirectory() as tmp:
        module = pathlib.Path(tmp) / "m.hlo"
        module.write_text("HloModule jit_g\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  fusion.1 = f32[8]{0} negate(p)\n  ROOT copy.2 = f32[8]{0} copy(fusion.1)\n}\n")
        stat = lambda number, text: field(1, number) + field(5, text)  # noqa: E731
        gpu = plane("/device:GPU:0", stats=["hlo_op", "hlo_module"], events=[(1, "kernel_a", "", []), (2, "memcpy", "", [])],
                    lines=[("Stream #1", 1_700_000_000_000_000_000, [(1, 0, 5_000_000, [stat(1, "fusion.1"), stat(2, "jit_g")]),
                                                                     (1, 6_000_000, 5_000_000, [stat(1, "fusion.1"), stat(2, "jit_g")]), (2, 12_000_000, 1_000_000, [])]),
                           ("XLA Ops", 1_700_000_000_000_000_000, [(1, 0, 9_000_000, [stat(1, "fusion.1"), stat(2, "jit_g")])])])
        tpu = plane("/device:TPU:0", stats=["hlo_category"], events=[(1, "%copy.2 = f32[8]{0} copy(%fusion.1)", "copy.2", [stat(1, "copy")]), (2, "jit_g(77)", "", []), (3, "%gone.1 = f32[8]{0} add()", "", [])],
                    lines=[("XLA Modules", 1_700_000_000_000_000_000, [(2, 0, 9_000_000, [])]),
                           ("XLA Ops", 1_700_000_000_000_000_000, [(1, 1_000_000, 2_000_000, []), (3, 4_000_000, 100_000, []), (9, 0, 1, [])])])
        file = pathlib.Path(tmp) / "host.xplane.pb"
        file.write_bytes(gpu + tpu)
        seen = answer("profile", file, module)
        rows = {i["instruction"]: (i["count"], round(i["seconds"] * 1e6, 6)) for i in seen["instructions"]}
        expect("streams, and a TPU's operations", rows == {"fusion.1": (2, 10.0), "copy.2": (1, 2.0)}, seen)
        expect("what the module does not have", round(seen["unjoined"][0]["seconds"] * 1e6, 6) == 0.1 and "gone" not in rows, seen["unjoined"])
        expect("derived lines are not counted twice", round(seen["named_seconds"] * 1e6, 6) == 12.1, seen["named_seconds"])
        expect("events without metadata are told", "1 events" in str(seen["problems"]), seen["problems"])
        expect("no modules inside", run("print", file)[0] == 2 and "without a module" in run("print", file)[2])


def modules_inside():
    code, out, _ = run("print", f"{XPLANE}:f")
    expect("by function", code == 0 and out.startswith("HloModule jit_f,"), out[:60])
    for wanted in ("9", "jit_f(9)", "jit_f"):
        expect(f"by {wanted}", run("print", f"{XPLANE}:{wanted}")[1] == out)
    code, _, error = run("print", XPLANE)
    expect("several: candidates", code == 2 and "jit_f(9)" in error and "4 modules" in error, error)
    expect("one that is not there", run("stats", f"{XPLANE}:nothing")[0] == 2)
    expect("it runs", run("exec", f"{XPLANE}:jit_multiply")[0] == 0)
    entries = answer(PROFILES / "cache")["entries"]
    expect("the cache", [m["name"] for e in entries for m in e["modules"]] == ["jit_f", "jit_f"] and not any(e["problem"] for e in entries), entries)
    for entry in (PROFILES / "cache").iterdir():
        expect(f"{entry.name} runs", run("exec", entry)[0] == 0, run("exec", entry))
    with tempfile.TemporaryDirectory() as tmp:
        deeper = pathlib.Path(tmp) / "plugins" / "profile" / "2026_11_24"
        deeper.mkdir(parents=True)
        for file in [XPLANE, *PROFILES.glob("*snapshot.pb"), *(PROFILES / "cache").iterdir()]:
            shutil.copy(file, deeper)
        folder = answer(tmp)["entries"]
        expect("profiles and snapshots are listed", {"a profile", "a snapshot", "an entry of a compilation cache"} == {e["what"] for e in folder} and len(folder) == 4, folder)
        expect("as text", "next: hlo-replay" in run(tmp)[1], run(tmp))
    for ending in ("pb", "txt"):
        snapshot = PROFILES / f"jit__lambda.execution_0000.hlo_unoptimized_snapshot.{ending}"
        expect(f"snapshot {ending}", "0.945" in run("exec", snapshot)[1], run("exec", snapshot))
    graphs = PROFILES / "torch_xla_graphs.txt"
    expect("graphs of torch_xla", run("print", f"{graphs}@2")[1].startswith("HloModule IrToHlo.7") and "2 modules" in run("stats", graphs)[2])
    with tempfile.TemporaryDirectory() as tmp:
        ir = pathlib.Path(tmp) / "ir.txt"
        ir.write_text("## BEGIN_GRAPH\nIR {\n  %0 = f32[] prim::Constant()\n}\n## END_GRAPH\n")
        expect("torch's own notation", run("print", ir)[0] == 2 and "XLA_SAVE_TENSORS_FMT=hlo" in run("print", ir)[2])
        graph = pathlib.Path(tmp) / "g.pb"
        graph.write_bytes(field(1, field(1, "a") + field(2, "Const") + field(3, "")))
        expect("a binary GraphDef", run("print", graph)[0] == 2 and "TF_DUMP_GRAPH_FMT=TXT" in run("print", graph)[2], run("print", graph))
        tpu = pathlib.Path(tmp) / "jit_f-0-cache"
        tpu.write_bytes(zlib.compress(b"\0\0\0\7" + b"code without a module " * 9))
        expect("a program without HLO", run("print", tpu)[0] == 2 and "no HLO" in run("print", tpu)[2], run("print", tpu))


def hostile():
    whole = gzip.decompress(XPLANE.read_bytes())
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        file = tmp / "x.xplane.pb"

        def refused(name, content, words):
            file.write_bytes(content)
            for command in (["profile", file], ["print", f"{file}:jit_f"], ["explain", DUMP, "x", f"--trace={file}"]):
                code, _, error = run(*command)
                expect(f"{name}: {command[0]}", code == 2 and len(error) < 2000, (code, error[:300]))
            expect(name, words in run("profile", file)[2], run("profile", file)[2])

        for cut in (1, 40, 1000, len(whole) - 3):
            refused(f"cut at {cut}", whole[:cut], "truncated")
        refused("empty", b"", "names instructions")
        refused("no planes", field(4, "host"), "without any plane")
        deep = b""
        for _ in range(20000):
            deep = field(3, deep)
        refused("deep", field(1, deep), "")
        file.write_bytes(plane("/host:metadata", stats=["Hlo Proto"], events=[(1, "jit_f(1)", "", [field(1, 1) + field(6, b"\x07" * 50)])]))
        expect("a module that is none", run("print", f"{file}:jit_f")[0] == 2)
        file.write_bytes(plane("/host:CPU", lines=[("a", -5, [(1, -7, -9, []), (1, 1 << 62, 1 << 62, [])]), ("b", 1 << 62, [(1, 0, 3, [field(1, 1) + field(7, 99)])])],
                               events=[(1, "x", "", [])], stats=["hlo_op"]))
        expect("odd numbers", run("profile", file, DUMP)[0] in (0, 1), run("profile", file, DUMP))
        bomb = tmp / "jit_b-1-cache"
        bomb.write_bytes(zlib.compress(b"\0" * (1 << 30), 9))
        code, _, error = run("print", bomb)
        expect("a bomb", code == 2 and "times as much" in error, error)
        bomb.write_bytes(zlib.compress(b"\0\0\0\1x" * 100)[:-5])
        expect("a cut entry", run("print", bomb)[0] == 2 and "truncated" in run("print", bomb)[2], run("print", bomb))
        for text in ('{"traceEvents": 7}', '{"traceEvents": [{"ph": "X", "ts": "a", "dur": 1, "args": {"hlo_op": "x"}}]}', '[{"ph": 1, "ts": {}, "dur": []}]', "{"):
            bad = tmp / "t.json"
            bad.write_text(text)
            expect(f"trace {text}", run("profile", bad, DUMP)[0] in (1, 2), run("profile", bad, DUMP))


joined()
beside()
not_joined()
devices()
modules_inside()
hostile()
finish("profile_test")
