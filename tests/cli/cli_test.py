#!/usr/bin/env python3
"""The command line from outside: exit codes, messages, files that appear whole or not at all."""
import gzip
import json
import os
import pathlib
import shutil
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, page_files, run, source

with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    out = tmp / "out"
    mobilenet = data / "mobilenet_v1.hlo"
    code, text, err = run(mobilenet, "-o", out)
    expect("replay", code == 0, err)
    expect("first line names the pipeline", text.startswith("pipeline xla-2019"), text[:80])
    expect("one line of passes without code", [line for line in err.splitlines() if "have no code here" in line] == err.splitlines() and "--verbose" in err, err)
    expect("…which the listing has", "not implemented" not in text and "not implemented" in run("open", out, "--stages")[1])
    recording = json.loads((out / "recording.json").read_text())
    files = [s["file"] for s in recording["stages"] if "file" in s]
    for f in files:
        for twin in (f, f[:-4] + ".dot"):
            expect("stage file", (out / twin).is_file(), twin)
    expect("drawings are asked for", not [f.name for f in out.iterdir() if f.suffix in (".svg", ".png") or f.suffix == ".html" and f.name != "index.html"])
    code, text, err = run("view", out, "-o", tmp / "drawn", "--formats=html,svg")
    expect("drawn stages", code == 0 and all("<svg" in (tmp / "drawn" / (f[:-4] + end)).read_text() for f in files for end in (".html", ".svg")), err)
    shutil.rmtree(tmp / "drawn", ignore_errors=True)
    expect("xla's names", any(".0002.simplification.after_algsimp.before_simplify-sorts.txt" in f for f in files), files)
    carried = page_files(out / "index.html")
    expect("index", carried["page.json"]["title"] == recording["module"] and
           ("module/lineage.hlol" in carried or len(carried["answers.json"]) > len(files)), list(carried)[:5])
    for end in ("-buffer-assignment.txt", ".thunk_sequence.txt", ".thunk_sequence_after_thunk_passes.txt"):
        expect(end, any(f.name.endswith(end) for f in out.iterdir()))
    for f in files:
        code, text, err = run("opt", "--passes=", out / f)
        expect("stage reads back", code == 0 and text == (out / f).read_text(), f)
    code, text, err = run(mobilenet, "-o", out)
    expect("an existing folder is kept", code == 2 and "--force" in err, err)
    expect("nothing is left beside", [p.name for p in tmp.iterdir()] == ["out"], list(tmp.iterdir()))
    code, text, err = run(mobilenet, "-o", out, "--force", "--formats=text", "--json")
    expect("--force replaces", code == 0 and json.loads(text)["version"] == 1 and not (out / "index.html").exists(), err)
    code, text, err = run(mobilenet, "-o", tmp / "no" / "such")
    expect("unwritable folder", code == 2 and "does not exist" in err, err)
    code, text, err = run(mobilenet, "-o", tmp / "withptx", "--formats=ptx")
    expect("ptx, where there is libdevice", list((tmp / "withptx").glob("*.ptx")) if code == 0 else "libdevice" in err, err)
    small = tmp / "every.hlo"
    small.write_text("HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  n = f32[4] negate(p)\n  ROOT r = f32[4] add(n, n)\n}\n")
    for formats in ("dot", "dot,json", "text,proto,dot"):
        code, text, err = run("replay", small, "-o", tmp / "every", "--force", "--every-pass", f"--formats={formats}")
        rows = [r for r in json.loads((tmp / "every" / "recording.json").read_text())["stages"] if r.get("number", 0) > 0]
        ends = {"dot": ".dot", "json": ".json", "text": ".txt", "proto": ".hlo.pb"}
        for f in formats.split(","):
            count = len([p for p in (tmp / "every").iterdir() if p.name.startswith("module_") and p.name.endswith(ends[f])])
            expect(f"--every-pass --formats={formats}: a {f} for each pass", code == 0 and count >= len(rows) > 20, (count, len(rows), err))
    code, text, err = run("replay", small, "-o", tmp / "every", "--force", "--every-pass", "--formats=buffers")
    expect("--every-pass in no format of a stage", code == 2 and "--every-pass" in err, err)
    shutil.rmtree(tmp / "every")
    code, text, err = run(mobilenet, "-o", tmp / "x", "--formats=pdf")
    expect("unknown format", code == 2 and "unknown format" in err, err)
    code, text, err = run(mobilenet, "-o", tmp / "x", "--disable-passes=algsmp")
    expect("unknown pass", code == 2 and "unknown pass 'algsmp'; did you mean 'algsimp'?" in err, err)
    # Twins: there and back is the identity, whatever the form.
    for source_file in sorted(data.glob("*.hlo")) + [data / "text" / "twins.hlo"]:
        run("convert", source_file, tmp / "a.hlo")
        plain = (tmp / "a.hlo").read_text()
        for ending in (".pb", ".pb.gz", ".pbtxt", ".json"):
            twin = tmp / ("twin" + ending)
            code, text, err = run("convert", source_file, twin)
            expect("convert to " + ending, code == 0, err)
            code, text, err = run("convert", twin, tmp / "b.hlo")
            expect("convert from " + ending, code == 0 and (tmp / "b.hlo").read_text() == plain, f"{source_file}: {err}")
    # Instructions stand in memory as the ids of a proto grow, by which XLA puts them back, however many are left out.
    (tmp / "ids.hlo").write_text("HloModule m\nENTRY e { a = f32[] constant(1)\n b = f32[] constant(2)\n ROOT p = f32[] parameter(0) }\n")
    run("convert", tmp / "ids.hlo", tmp / "ids.pbtxt")
    first = 1 << 32
    swapped = (tmp / "ids.pbtxt").read_text().replace(f"id: {first}\n", f"id: {first + 9}\n")
    (tmp / "swapped.pbtxt").write_text(swapped)
    code, text, err = run("opt", "--passes=", tmp / "swapped.pbtxt")
    expect("opt by ids", code == 0 and 0 < text.find("%b = ") < text.find("%a = "), text + err)
    code, text, err = run("print", tmp / "swapped.pbtxt")  # every command reads them so
    expect("print by ids", code == 0 and 0 < text.find("%b = ") < text.find("%a = "), text + err)
    # …but not in a scheduled module, in which operands come first, in bodies of fusions too.
    (tmp / "planned.hlo").write_text("HloModule m, is_scheduled=true\nf { p = f32[] parameter(0)\n ROOT n = f32[] negate(p) }\n"
                                     "ENTRY e { a = f32[] parameter(0)\n ROOT x = f32[] fusion(a), kind=kLoop, calls=f }\n")  # fmt: skip
    run("convert", tmp / "planned.hlo", tmp / "planned.pbtxt")
    late = (tmp / "planned.pbtxt").read_text()
    expect("ids of the fusion's body", f": {first}\n" in late, late[:200])
    (tmp / "planned.pbtxt").write_text(late.replace(f": {first}\n", f": {first + 9}\n"))
    code, text, err = run("opt", "--passes=", tmp / "planned.pbtxt")
    expect("scheduled protos", code == 0 and 0 < text.find("%p = ") < text.find("%n = "), text + err)
    code, text, err = run("replay", tmp / "swapped.pbtxt", "--pipeline=xla-gpu", "--formats=text", "--every-pass", "-o", tmp / "by_ids")
    stage = sorted((tmp / "by_ids").glob("*.0002.*.txt"))[0].read_text() if code == 0 else ""
    expect("replay by ids", 0 < stage.find("%b = ") < stage.find("%a = "), stage + err)
    shutil.rmtree(tmp / "by_ids", ignore_errors=True)
    # A field that we do not know survives from proto to proto.
    strange = tmp / "strange.pb"
    run("convert", data / "add.hlo", strange)
    strange.write_bytes(strange.read_bytes() + b"\xfa\xbf\x0c\x03abc")  # field 25599
    run("convert", strange, tmp / "again.pb.gz")
    run("convert", tmp / "again.pb.gz", tmp / "again.pb")
    expect("unknown fields survive", b"\xfa\xbf\x0c\x03abc" in (tmp / "again.pb").read_bytes())
    (tmp / "broken.pb").write_bytes(strange.read_bytes()[:-40])
    code, text, err = run("print", tmp / "broken.pb")
    expect("broken proto", code == 2 and err.startswith("error:"), err)
    # HLO text may stand packed; a stream cut short says so.
    packed = gzip.compress((data / "add.hlo").read_bytes())
    (tmp / "add.hlo.gz").write_bytes(packed)
    expect("packed text", run("print", tmp / "add.hlo.gz")[1] == run("print", data / "add.hlo")[1])
    (tmp / "cut.hlo.gz").write_bytes(packed[:-20])
    code, text, err = run("print", tmp / "cut.hlo.gz")
    expect("truncated gzip", code == 2 and "truncated" in err, err)
    (tmp / "elided.hlo").write_text("HloModule e\nENTRY e { ROOT c = f32[99]{0} constant({...}) }\n")
    code, text, err = run("convert", tmp / "elided.hlo", tmp / "elided.pb")
    expect("elided constants of a proto", code == 0 and "1 elided constant" in err, err)
    (tmp / "empty.hlo").write_text("")
    code, text, err = run("print", tmp / "empty.hlo")
    expect("empty file", code == 2 and "is empty" in err and "truncated" not in err, err)
    # Results compared: equal, different, judged by a reference, types from the note beside the arrays.
    for seed in (1, 2):
        run("exec", mobilenet, f"--seed={seed}", "--out", tmp / f"{seed}.npz")
    code, text, err = run("compare", tmp / "1.npz", tmp / "1.npz")
    expect("compare equal", code == 0 and text.splitlines()[-1] == "equal", text + err)
    code, text, err = run("compare", tmp / "1.npz", tmp / "2.npz", "--json")
    expect("compare different", code == 1 and json.loads(text)["outputs"][0]["index"][0] == 0, text[:200] + err)
    code, text, err = run("exec", mobilenet, "--compare-with", tmp / "1.npz")
    expect("exec --compare-with", code == 0 and text.splitlines()[-1] == "equal", text + err)
    code, text, err = run("exec", mobilenet, "--compare-with", tmp / "2.npz", "--json")
    expect("exec differs", code == 1 and json.loads(text)["equal"] is False, text[:200])
    code, text, err = run("compare", tmp / "2.npz", tmp / "1.npz", "--tolerance=10")
    expect("--tolerance", code == 0, text + err)
    code, text, err = run("exec", mobilenet, "--compare-with", out / files[-1])
    expect("exec against a stage", code == 0 and text.splitlines()[-1] == "equal", text + err)
    code, text, err = run("exec", out, "--all-stages")
    expect("all stages", code == 0 and text.splitlines()[-1].startswith("all "), text[-300:] + err)
    code, text, err = run("exec", mobilenet, "--exact", "--compare-with", tmp / "1.npz")
    expect("--exact", code == 0 and text.splitlines()[-1] == "equal", text + err)
    # Small integers as numbers (ours) and as bits (numpy's uint8, as XLA's come); others are no such numbers.
    (tmp / "small.hlo").write_text("HloModule m\nENTRY e { p = s4[3] parameter(0)\n ROOT r = s4[3] negate(p) }\n")

    def npy(descr, values):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(values)},), }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(v & 255 for v in values)

    for name, descr, given in (("numbers", "|i1", (-3, 7, 0)), ("bits", "|u1", (13, 7, 0))):
        (tmp / f"{name}.npy").write_bytes(npy(descr, given))
        with zipfile.ZipFile(tmp / f"{name}.npz", "w") as z:
            z.writestr("o0.npy", npy(descr, (3, -7, 0) if descr == "|i1" else (3, 9, 0)))
        code, text, err = run("exec", tmp / "small.hlo", "--inputs", tmp / f"{name}.npy", "--compare-with", tmp / f"{name}.npz")
        expect(f"s4 as {name}", code == 0 and text.splitlines()[-1] == "equal", text + err)
    (tmp / "large.npy").write_bytes(npy("|u1", (40, 7, 0)))
    code, text, err = run("exec", tmp / "small.hlo", "--inputs", tmp / "large.npy")
    expect("no s4", code == 2 and "holds 40, which is no s4" in err, err)
    (tmp / "many.hlo").write_text("HloModule m, replica_count=9223372036854775807, num_partitions=4\nENTRY e { p = u32[] partition-id()\n ROOT r = u32[] replica-id(), control-predecessors={p} }\n")
    code, text, err = run("exec", tmp / "many.hlo")
    expect("too many devices", code == 2 and "are simulated" in err, err)
    damaged = tmp / "cut.npz"
    damaged.write_bytes((tmp / "1.npz").read_bytes()[:-2000])
    code, text, err = run("compare", tmp / "1.npz", damaged)
    expect("damaged npz", code == 2 and "cut.npz" in err, err)
    high = tmp / "high.npz"
    code, text, err = run("exec", mobilenet, "--precision=high", "--out", high)
    expect("high precision", code == 0 and "f64[1,1000]" in text, text + err)
    code, text, err = run("compare", tmp / "1.npz", tmp / "2.npz", "--reference", high)
    expect("compare with a reference", code == 1 and "against the reference" in text, text + err)
    small = tmp / "small.hlo"
    small.write_text("HloModule s\nENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(0)\n b = f32[3] broadcast(z), dimensions={}\n s = f32[3] subtract(x, x)\n d = f32[3] divide(s, b), metadata={op_name=\"jit(f)/div\" source_file=\"m.py\" source_line=7}\n ROOT r = f32[3] add(d, x) }\n")
    code, text, err = run("exec", small, "--nan")
    expect("--nan names the place", code == 1 and "d (divide in computation e)" in err and "m.py:7" in err and "operand 1: b" in err, err)
    code, text, err = run("exec", small, "--trace", tmp / "trace")
    rows = {r["name"]: r for r in json.loads((tmp / "trace" / "trace.json").read_text())["values"]}
    expect("--trace", code == 0 and rows["d"]["nan"] == 3 and rows["s"]["max"] == 0 and rows["x"]["checksum"], rows)
    (tmp / "x.txt").write_text("{1, 2.5, 3}\n")
    code, text, err = run("exec", tmp / "small.hlo", "--inputs", tmp / "x.txt", "--out", tmp / "x.npz")
    expect("literals as inputs", code == 0, err)
    run("exec", small, "--inputs", tmp / "x.txt", "--out", tmp / "y.npz")
    expect("NaN at the same places are equal", run("compare", tmp / "x.npz", tmp / "y.npz")[0] == 0)
    (tmp / "bf16.hlo").write_text("HloModule h\nENTRY e { x = bf16[4] parameter(0)\n ROOT y = bf16[4] add(x, x) }\n")
    (tmp / "x.txt").write_text("{1, 2.5}\n")
    code, text, err = run("exec", small, "--inputs", tmp / "x.txt")
    expect("a literal that does not fit", code == 2 and "x.txt:1:" in err and "parameter 0 (x)" in err and "truncated" not in err, err)
    code, text, err = run("exec", mobilenet, "--inputs", tmp / "x.npz")
    expect("an input of another shape", code == 2 and "p0" in err, err)
    code, text, err = run("exec", tmp / "bf16.hlo", "--out", tmp / "none.npz")
    with zipfile.ZipFile(tmp / "none.npz") as z, zipfile.ZipFile(tmp / "renamed.npz", "w") as y:
        y.writestr("weights.npy", z.read("p0.npy"))
    code, text, err = run("exec", tmp / "bf16.hlo", "--inputs", tmp / "renamed.npz")
    expect("no input of that name", code == 2 and "none of the arrays p0" in err, err)
    code, text, err = run("exec", small, "--inputs", tmp / "1.npz")
    expect("inputs beyond the parameters", code == 2 and "p0" in err, err)
    code, text, err = run("exec", small, "--trace", tmp / "trace")
    expect("--trace keeps what is there", code == 2 and "--force" in err, err)
    code, text, err = run("exec", small, "--trace", tmp / "trace", "--force")
    expect("--trace --force", code == 0, err)
    for factor, same in (("1", True), ("1.002", False)):
        (tmp / f"times{factor}.hlo").write_text("HloModule m\nENTRY e { p = f32[64]{0} parameter(0)\n  c = f32[] constant(" + factor +
                                               ")\n  b = f32[64]{0} broadcast(c), dimensions={}\n  ROOT r = f32[64]{0} multiply(p, b) }\n")
        for first, second in (("1", factor), (factor, "1")):  # neither side is excused by the other's being exact
            code, text, err = run("exec", tmp / f"times{first}.hlo", "--compare-with", tmp / f"times{second}.hlo")
            expect(f"{first} times against {second} times", code == (0 if same else 1), text + err)
    code, text, err = run("exec", small, "--compare-with=evalutor")
    expect("--compare-with of nothing", code == 2 and "no such file" in err and "backend" in err, err)
    (tmp / "far.hlo").write_text("HloModule f\nENTRY e { p = f32[2000000000] parameter(0)\n ROOT r = f32[2000000000] custom-call(p), custom_call_target=\"nobody\" }\n")
    code, text, err = run("exec", tmp / "far.hlo")
    expect("refused before inputs are made", code == 2 and "custom-call target \"nobody\"" in err, err)
    (tmp / "two_devices.hlo").write_text("HloModule t, num_partitions=2\nENTRY e { i = u32[] partition-id()\n f = f32[] convert(i)\n o = f32[] constant(1)\n s = f32[] subtract(o, f)\n d = f32[] divide(o, s)\n ROOT r = f32[] multiply(d, f) }\n")
    code, text, err = run("exec", tmp / "two_devices.hlo", "--nan")
    expect("--nan on the second device", code == 1 and "d (divide" in err, err)
    code, text, err = run("exec", tmp / "elided.hlo")
    expect("elided constants are made up, and that is said", code == 0 and "made up by seed 1" in err and "xla_dump_large_constants" in err, err)
    code, text, err = run("exec", tmp / "elided.hlo", "--json")
    expect("in JSON, too", code == 0 and json.loads(text)["elided_constants"][0]["constants"] == 1, text)
    code, text, err = run("exec", tmp / "elided.hlo", "--fill-elided=refuse")
    expect("elided constants refused", code == 2 and "is elided" in err, err)
    code, text, err = run("exec", tmp / "elided.hlo", f"--compare-with={tmp / 'elided.hlo'}")
    expect("the same in both", code == 0 and "equal" in text, text + err)
    code, text, err = run("exec", tmp / "elided.hlo", "--fill-elided=zeros")
    expect("--fill-elided", code == 0 and "max 0" in text, text + err)
    (tmp / "seeds.hlo").write_text("HloModule s\nENTRY e { s = u64[] custom-call(), custom_call_target=\"GetRngSeed\"\n a = f32[] constant(0)\n b = f32[] constant(1)\n r = f32[] rng(a, b), distribution=rng_uniform\n ROOT t = (u64[], f32[]) tuple(s, r) }\n")
    drawn = [run("exec", tmp / "seeds.hlo", f"--rng-seed={seed}")[1] for seed in (7, 7, 8)]
    expect("--rng-seed", drawn[0].split(" s\n")[1] == drawn[1].split(" s\n")[1] and "o0 u64[] = 7" in drawn[0], drawn[0] + drawn[1])
    expect("--rng-seed draws others", drawn[0].splitlines()[2] != drawn[2].splitlines()[2], drawn[0] + drawn[2])
    (tmp / "loop.hlo").write_text("HloModule l\nb { p = s32[] parameter(0)\n o = s32[] constant(0)\n ROOT r = s32[] add(p, o) }\nc { p = s32[] parameter(0)\n ROOT t = pred[] constant(true) }\nENTRY e { z = s32[] constant(1)\n ROOT w = s32[] while(z), condition=c, body=b }\n")
    code, text, err = run("exec", tmp / "loop.hlo", "--max-steps=100")
    expect("--max-steps", code == 2 and "does not end within 100 steps" in err, err)
    # bisect, reduce and extract.
    folder = tmp / "norm"
    norm = mobilenet.parent / "modules" / "layer_norm.hlo"
    code, text, err = run("replay", norm, "-o", folder, "--formats=text", "--pipeline=xla-2019")
    expect("stages to edit", code == 0, err)
    code, text, err = run("bisect", folder)
    expect("no bad stage", code == 0 and text.splitlines()[-1].startswith("no bad stage"), text + err)
    stage = sorted(folder.glob("*after_algsimp*"))[-1]
    kept = stage.read_text()
    edits = (
        ("constant(1e-05)", "constant(0.01)", 1, "constant(0.01)"),
        (" sqrt(", " rsqrt(", 1, "rsqrt("),
        (" divide(", " multiply(", 1, "multiply("),
        (" subtract(", " add(", 1, "add("),
        ("dimensions={1}, to_apply", "dimensions={0}, to_apply", 1, "dimensions={0}"),
        ("constant(0.001953125)", "constant(0.00390625)", 1, "constant(0.00390625)"),
        ("f32[64,512]", "f32[65,512]", 1, "f32[65,512]"),
        ("ENTRY ", "ENTRI ", 2, ""),
        ("sqrt.", "root.", 0, ""),
        ("HloModule", "// a harmless remark\nHloModule", 0, ""),
    )
    for old, new, wanted, part in edits:
        expect("the edit applies", old in kept, old)
        stage.write_text(kept.replace(old, new))
        code, text, err = run("bisect", folder)
        lines = text.splitlines()
        expect(f"bisect: {old} to {new}", code == wanted and (code != 1 or (lines[-1].startswith("guilty: pass algsimp") and part in text)), f"{code} {text}{err}")
    stage.write_text(kept)
    # A folder of several modules: one that cannot be judged does not keep the others from it.
    several = tmp / "several"
    several.mkdir()
    for number in (1, 2, 3):
        good = "c = f32[2] constant({1, 2})\n ROOT r = f32[2] add(p, c)"
        after = ("k = f32[2] constant({...})\n ROOT s = f32[2] subtract(p, k)", good, good.replace("add", "subtract"))[number - 1]
        for name, body in (("before_optimizations", good), ("0001.optimization.after_algsimp.before_dce", after)):
            (several / f"module_{number:04}.m{number}.{name}.txt").write_text(f"HloModule m{number}\nENTRY e {{ p = f32[2] parameter(0)\n {body} }}\n")
    code, text, err = run("bisect", several, "--resume", tmp / "several.json")
    expect("bisect of several modules", code == 1 and "not compared" in text and "guilty: pass algsimp" in text.splitlines()[-1], text + err)
    code, text, err = run("bisect", several, "--resume", tmp / "several.json", "--json")
    expect("bisect of several modules, resumed", code == 1 and json.loads(text)["module"] == "m3", text + err)
    (several / "module_0003.m3.0001.optimization.after_algsimp.before_dce.txt").unlink()
    code, text, err = run("bisect", several, "--json")
    expect("nothing bad in several modules", code == 2 and [m["found"] for m in json.loads(text)["modules"]] == [False, False], text + err)
    code, text, err = run("bisect", norm, "--pipeline=xla-2019", "--check=! grep -q fusion {}", "--json", "--resume", tmp / "seen.json", "-o", tmp / "report")
    found = json.loads(text)
    expect("bisect by a command", code == 1 and found["pass"] == "fusion" and found["rewrite"] == 1 and (tmp / "report" / "bad.hlo").exists(), text + err)
    code, text, err = run("bisect", norm, "--check=false", "--resume", tmp / "seen.json")
    expect("bisect goes on with its own search only", code == 2 and "another search" in err, err)
    code, text, err = run("bisect", norm, "--check=false")
    expect("an oracle that always fails", code == 2 and "is bad already" in text, text + err)
    code, text, err = run("bisect", norm, "--check=nonsense-command-nobody-has {}")
    expect("an oracle that cannot be run", code == 2 and "cannot be run" in err, err)
    code, text, err = run("bisect", norm, "--regex=(")
    expect("an expression that is none", code == 2 and "regular expression" in err, err)
    code, text, err = run("reduce", small, "--nan", "-o", tmp / "reduced", "--scrub", "--json")
    r = json.loads(text)
    expect("reduce --nan", code == 0 and r["instructions"] <= 5 and r["finished"], text + err)
    code, text, err = run("exec", tmp / "reduced" / "module.hlo", "--nan", *(("--inputs", tmp / "reduced" / "inputs.npz") if (tmp / "reduced" / "inputs.npz").exists() else ()))
    expect("what is reduced still goes wrong", code == 1 and "makes" in err, err)
    code, text, err = run("reduce", small, "--nan", "-o", tmp / "reduced")
    expect("reduce keeps what is there", code == 2 and "--force" in err, err)
    code, text, err = run("reduce", norm, "--passes=algsimp", "-o", tmp / "nothing")
    expect("nothing to reduce", code == 2 and "nothing is wrong" in err and not (tmp / "nothing").exists(), err)
    code, text, err = run("reduce", norm, "--check=! grep -q 'sqrt(' {}", "-o", tmp / "by_command")
    expect("reduce by a command", code == 0 and "sqrt(" in text and text.count("=") < 8, text + err)
    own = tmp / "temporary"  # where other tests at the same time leave nothing
    own.mkdir()
    os.environ["TMPDIR"] = str(own)
    # (Longer than it takes to start a process: others are asked one after another.)
    code, text, err = run("reduce", norm, "--check=sleep 0.02; ! grep -q 'sqrt(' {}", "--jobs=3", "-o", tmp / "by_commands")
    alike = (tmp / "by_command" / "module.hlo").read_text() == (tmp / "by_commands" / "module.hlo").read_text()
    expect("several commands at once reduce to the same", code == 0 and alike, text + err)
    expect("they leave nothing", not list(own.glob("*")), sorted(own.glob("*")))
    code, text, err = run("reduce", norm, "--check=exit 127", "--jobs=3", "-o", tmp / "no_command")
    expect("a command that cannot be run, of several", code == 2 and "cannot be run" in err, err)
    for backend in ("evaluator", "host"):
        one, several = tmp / f"{backend}_one", tmp / f"{backend}_several"
        run("reduce", small, "--nan", f"--backend={backend}", "-o", one)
        code, text, err = run("reduce", small, "--nan", f"--backend={backend}", "--jobs=3", "-o", several)
        alike = all((one / f).read_text() == (several / f).read_text() for f in ("module.hlo", "README.md"))
        expect(f"several runs at once reduce to the same ({backend})", code == 0 and alike, text + err)
    del os.environ["TMPDIR"]
    expect("runs leave nothing", not list(own.glob("*")), sorted(own.glob("*")))
    code, text, err = run("reduce", norm, "--passes=algsimp", "--jobs=3", "-o", tmp / "nothing")
    expect("nothing to reduce, of several", code == 2 and "nothing is wrong" in err, err)
    code, text, err = run("reduce", norm, "--passes=algsimp", "--jobs=3", "--backend=cuda", "-o", tmp / "nothing")
    expect("several processes and one device", code == 2 and ("--jobs" in err or "cuda" in err), err)
    # capture and bisect --program, on a program that does as if it had XLA.
    (tmp / "program.py").write_text(
        "import os, pathlib, re, sys\n"
        "flags = os.environ['XLA_FLAGS']\n"
        "off = re.findall(r'--xla_disable_hlo_passes=(\\S*)', flags)\n"
        "to = re.search(r'--xla_dump_to=(\\S+)', flags)\n"
        "text = 'HloModule m\\nENTRY e { p = f32[] parameter(0)\\n ROOT r = f32[] %s(p) }\\n'\n"
        "if to and 'quiet' not in sys.argv:\n"
        "    d = pathlib.Path(to[1])\n"
        "    d.mkdir(exist_ok=True)\n"
        "    (d / 'module_0000.m.before_optimizations.txt').write_text(text % 'negate')\n"
        "    for n, name in enumerate(('algsimp', 'cse', 'dce', 'fusion')):\n"
        "        (d / f'module_0000.m.{n + 1:04}.optimization.after_{name}.before_x.txt').write_text(text % ('abs', 'sine', 'cosine', 'tanh')[n])\n"
        "gone = off[-1].split(',') if off else []\n"
        "if 'two' in sys.argv: sys.exit(0 if {'cse', 'fusion'} <= set(gone) else 1)\n"
        "fuel = re.search(r'--xla_fuel=cse=(\\d+)', flags)\n"
        "if fuel and 'fuel' in sys.argv and int(fuel[1]) < 7: print('Out of fuel for \"cse\": number', fuel[1])\n"
        "if fuel and 'fuel' in sys.argv: sys.exit(int(fuel[1]) > 5)\n"
        "sys.exit(0 if 'cse' in gone else 1)\n"
    )
    program = (sys.executable, tmp / "program.py")
    code, text, err = run("capture", "-o", tmp / "captured", "--", *program)
    expect("capture", code == 0 and "5 stages" in text and "exit code 1" in err and (tmp / "captured" / "module_0000.m.before_optimizations.txt").exists(), text + err)
    code, text, err = run("capture", "-o", tmp / "captured", "--", *program)
    expect("capture keeps what is there", code == 2 and "--force" in err, err)
    code, text, err = run("capture", "-o", tmp / "nothing", "--", *program, "quiet")
    expect("capture of nothing", code == 2 and "dumped nothing" in err and not (tmp / "nothing").exists(), err)
    code, text, err = run("bisect", f"--program={sys.executable} {tmp / 'program.py'}")
    expect("bisect --program", code == 1 and text.splitlines()[-1] == "guilty: with --xla_disable_hlo_passes=cse it exits 0", text + err)
    expect("the stages are asked too", "after_cse.before_x.txt: gives other results than the stage before: " in text, text)
    code, text, err = run("bisect", f"--program={sys.executable} {tmp / 'program.py'} two", "-o", tmp / "two")
    expect("passes that stand in for each other", code == 1 and "--xla_disable_hlo_passes=cse,fusion it exits 0, without any of them alone" in text.splitlines()[-1], text + err)
    expect("the stages are kept", (tmp / "two" / "dump" / "module_0000.m.before_optimizations.txt").exists() and json.loads((tmp / "two" / "report.json").read_text())["guilty"] == ["cse", "fusion"])
    code, text, err = run("bisect", f"--program={sys.executable} {tmp / 'program.py'} fuel")
    expect("bisect --program by fuel", code == 1 and text.splitlines()[-1] == "guilty: decision 6 of cse: with --xla_fuel=cse=5 it exits 0, with one more it does not" and "number 5" in text, text + err)
    os.environ["XLA_FLAGS"] = "--xla_disable_hlo_passes=fusion"
    code, text, err = run("bisect", f"--program={sys.executable} {tmp / 'program.py'} two")
    del os.environ["XLA_FLAGS"]
    expect("passes left out already stay out", code == 1 and "=fusion,cse it exits 0" in text.splitlines()[-1], text + err)
    # A compilation that dies in a pass, which has written no stage, and one that hangs unless a pass is left out.
    (tmp / "dies.py").write_text(
        "import os, pathlib, re, signal, sys, time\n"
        "flags = os.environ['XLA_FLAGS']\n"
        "off = (re.findall(r'--xla_disable_hlo_passes=(\\S*)', flags) or [''])[-1].split(',')\n"
        "d = pathlib.Path((re.search(r'--xla_dump_to=(\\S+)', flags) or ['', '/nonexistent'])[1])\n"
        "text = 'HloModule m\\nENTRY e { p = f32[] parameter(0)\\n ROOT r = f32[] %s(p) }\\n'\n"
        "if d.name == 'dump':\n"
        "    d.mkdir(exist_ok=True)\n"
        "    (d / 'module_0000.m.before_optimizations.txt').write_text(text % 'negate')\n"
        "    (d / 'module_0000.m.0001.simplification.after_cse.before_dot-merger.txt').write_text(text % 'abs')\n"
        "if 'hangs' in sys.argv and not {'dot-merger', 'cse'} & set(off): time.sleep(100)\n"
        "if 'hangs' in sys.argv: sys.exit(0)\n"
        "if 'last' in sys.argv and 'reshape-mover' not in off:\n"
        "    print('F1126 12:00:00.000000  123 reshape_mover.cc:45] Check failed: a == b (1 vs. 2) no')\n"
        "    print('    @ 0x1  xla::ReshapeMover::RunImpl()\\n    @ 0x2  xla::HloPassFix<xla::ReshapeMover>::RunImpl()\\n    @ 0x3 xla::HloPassPipeline::RunImpl()')\n"
        "    sys.stdout.flush(), os.kill(os.getpid(), signal.SIGABRT)\n"
        "if 'next' in sys.argv and 'dot-merger' not in off: sys.exit(3)\n"
        "if 'never' in sys.argv: sys.exit(3)\n"
    )
    dies = f"{sys.executable} {tmp / 'dies.py'}"
    code, text, err = run("bisect", f"--program={dies} last")
    expect("XLA's last words come first", code == 1 and text.splitlines()[0] == "XLA's last words: reshape_mover.cc:45: Check failed: a == b (1 vs. 2) no" and
           "on its stack, innermost first: ReshapeMover\n" in text and text.splitlines()[-1] == "guilty: with --xla_disable_hlo_passes=reshape-mover it exits 0", text + err)
    code, text, err = run("bisect", f"--program={dies} next", "--json")
    got = json.loads(text)
    expect("the pass behind the last stage is asked, though it wrote none", code == 1 and got["guilty"] == ["dot-merger"] == got["last_words"]["running"] and
           got["last_words"]["unfinished"] == [{"module": "m", "last": "simplification.after_cse", "next": "dot-merger"}], text + err)
    code, text, err = run("bisect", f"--program={dies} never")
    expect("no pass heals it: where it died is said", code == 2 and "exits 3 in a compilation, probably in dot-merger; no pass left out fixes it" in text, text + err)
    code, text, err = run("bisect", f"--program={dies} hangs", "--run-limit=2", "--json")
    got = json.loads(text)
    expect("a run without end has a limit, from the first one", code == 1 and got["guilty"] == ["dot-merger"] and got["last_words"]["ending"] == "did not end within 2 s" and
           len(got["ended"]) >= 1 and got["runs"] < 12, text + err)
    code, text, err = run("bisect", "--program=true", "--verify")
    expect("a program is judged by itself", code == 2 and "--program" in err, err)
    code, text, err = run("bisect", "--program=true")
    expect("a program that is fine", code == 0 and "nothing to look for" in text, text + err)
    code, text, err = run("bisect")
    expect("bisect what?", code == 2 and "--program" in err, err)

    # explain, on our own recording.
    explained = tmp / "explained"
    run("replay", mobilenet, "-o", explained, "--formats=text,buffers,thunks")
    code, text, err = run("explain", explained, "convolution.36")
    expect("history of an instruction", code == 0 and "rule forward convolution" in text and "source: mobilenet/first_conv3x3/Conv2D" in text and "buffer: " in text, text + err)
    code, text, err = run("explain", explained, "convolution.36", "--json")
    events = json.loads(text)["events"]
    expect("history as JSON", code == 0 and events[0]["what"] == "is there from the start" and any(e["what"].startswith("replaced by") for e in events), text[:300])
    code, text, err = run("explain", explained, "multiply_nowhere")
    expect("history of nothing", code == 2 and "has an instruction 'multiply_nowhere'" in err, err)
    code, text, err = run("explain", explained, "--pass", "algsimp")
    expect("what a pass did", code == 0 and "× convert to the same type" in text, text + err)
    code, text, err = run("explain", explained, "--pass", "algsmp")
    expect("a pass that did not run", code == 2 and "no run of a pass" in err, err)
    code, text, err = run("explain", explained, "--why-not", "nobody", "noone")
    expect("names that there are not", code == 2 and "has an instruction 'nobody'" in err, text + err)
    code, text, err = run("explain", explained)
    expect("explain what?", code == 2 and "--why-not" in err, err)
    # Times of a run, by the kernel that took the instruction: trace events (gzipped), nsys' and nvprof's tables.
    kernel = json.loads(run("explain", explained, "convolution.36", "--json")[1])["events"][-1]["name"]
    import gzip
    (tmp / "t.json.gz").write_bytes(gzip.compress(json.dumps({"traceEvents": [{"ph": "X", "name": kernel, "ts": 0, "dur": 3000, "args": {"hlo_op": kernel}}, {"ph": "X", "name": "other", "ts": 5000, "dur": 1000, "args": {"hlo_op": "other"}}]}).encode()))
    c_name = "".join(c if c.isalnum() else "_" for c in kernel)
    (tmp / "t.csv").write_text(f'Time (%),Total Time (ns),Instances,Name\n75.0,3000000,1,"{c_name}(float*)"\n25.0,1000000,2,other\n')
    (tmp / "n.csv").write_text(f'==1== Profiling result:\n"Type","Time(%)","Time","Calls","Name"\n,%,ms,,\n"GPU activities",75.0,3.0,1,"{c_name}"\n"GPU activities",25.0,1.0,2,"other"\n')
    for trace in ("t.json.gz", "t.csv", "n.csv"):
        code, text, err = run("explain", explained, "convolution.36", "--trace", tmp / trace)
        expect(f"time of {trace}", code == 0 and f"time: 3.000 ms in 1 call(s) of {kernel}, 75.0 % of the trace" in text, text[-300:] + err)
    (tmp / "no.csv").write_text("a,b\n1,2\n")
    code, text, err = run("explain", explained, "convolution.36", "--trace", tmp / "no.csv")
    expect("no trace", code == 2 and "neither a trace" in err, err)
    code, text, err = run("extract", mobilenet, "--constants", tmp / "constants.npz")
    expect("constants", code == 0 and "13 arrays, 52 bytes of constants" in text, text + err)
    code, text, err = run("compare", tmp / "constants.npz", tmp / "constants.npz")
    expect("constants as arrays", code == 0, text + err)
    (tmp / "elided.hlo").write_text("HloModule m\nENTRY e { ROOT c = f32[100] constant({...}) }\n")
    code, text, err = run("extract", tmp / "elided.hlo", "--constants", tmp / "elided.npz")
    expect("only elided constants", code == 2 and "--xla_dump_large_constants" in err, text + err)
    code, text, err = run("extract", mobilenet, "maximum.43")
    expect("extract: no such instruction", code == 2 and "did you mean 'maximum.44'" in err, err)
    code, text, err = run("extract", mobilenet, "maximum.44", "--hops=1", "-o", tmp / "part.hlo", "--inputs-out", tmp / "part.npz")
    expect("extract", code == 0, err)
    code, text, err = run("exec", tmp / "part.hlo", "--inputs", tmp / "part.npz")
    expect("what was extracted runs", code == 0 and "f32[1,112,112,32]" in text, text + err)
    (tmp / "index.hlo").write_text("HloModule i\nENTRY e { x = f32[3] parameter(0)\n i = s32[20] parameter(1)\n r = s32[20,1] reshape(i)\n g = f32[20] gather(x, r), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n ROOT t = (f32[20], s32[20]) tuple(g, i) }\n")
    code, text, err = run("exec", tmp / "index.hlo", "--fit-inputs", "--json")
    expect("--fit-inputs", code == 0 and json.loads(text)["outputs"][1]["max"] == 2, text + err)
    run("exec", tmp / "bf16.hlo", "--out", tmp / "h.npz")
    code, text, err = run("compare", tmp / "h.npz", tmp / "h.npz")
    expect("types beside the arrays", code == 0 and "bf16[4]" in text, text + err)
    (tmp / "two.hlo").write_text("HloModule a\nENTRY e { ROOT r = f32[] parameter(0) }\n// -----\nHloModule b\nENTRY e { ROOT r = s32[] parameter(0) }\n")
    code, text, err = run("print", tmp / "two.hlo")
    expect("several modules", code == 0 and "HloModule a" in text and "HloModule b" in text, err)
    code, text, err = run("stats", str(tmp / "two.hlo") + "@2")
    expect("one of several", code == 0 and "module b" in text, text + err)
    code, text, err = run("exec", tmp / "two.hlo")
    expect("which of several", code == 2 and "two.hlo@1" in err, err)
    code, text, err = run("fmt", "--check", tmp / "two.hlo")
    expect("fmt --check", code == 1, text + err)
    code, text, err = run("fmt", "--write", tmp / "two.hlo")
    code, text, err = run("fmt", "--check", tmp / "two.hlo")
    expect("fmt --write", code == 0, text + err)
    (tmp / "bad.hlo").write_text("HloModule a\nENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[5] negate(p) }\n")
    for verb in (("opt", "--passes=dce"), ("exec",), ("verify",)):
        code, text, err = run(*verb, tmp / "bad.hlo")
        expect("an input that does not verify", code == 1 and "has shape f32[5]" in err, f"{verb}: {code} {err}")
    (tmp / "typo.hlo").write_text("HloModule a\nENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[4] negat(p) }\n")
    code, text, err = run("verify", "--json", tmp / "typo.hlo")
    expect("diagnostics as JSON", code == 2 and json.loads(text)["errors"][0]["line"] == 3, text)
    (tmp / "sparse.hlo").write_text("HloModule a\nENTRY e { p = f32[4] parameter(0)\n c = f32[4]sparse{2} constant({1: 7})\n ROOT r = f32[4] add(p, c) }\n")
    code, text, err = run("opt", "--passes=gpu_hlo_support_checker", tmp / "sparse.hlo")
    expect("sparse arrays on the GPU", code == 2 and "does not support sparse arrays" in err, err)
    code, text, err = run("prnt", mobilenet)
    expect("unknown command", code == 2 and "did you mean 'print'?" in err and err.startswith("error:"), err)
    code, text, err = run("print", "--stile=long", mobilenet)
    expect("unknown option", code == 2 and err.startswith("error:"), err)
    code, text, err = run("stats", "--jsn", mobilenet)
    expect("misspelt option", code == 2 and "did you mean '--json'?" in err and "see hlo-replay stats --help" in err, err)
    code, text, err = run("exec", mobilenet, "--whole")
    expect("an option without the one that it belongs to", code == 2 and "--whole requires --all-stages" in err, err)
    cut = tmp / "cut.hlo"
    cut.write_text(mobilenet.read_text()[:20000].rsplit("%", 1)[0] + "%arg")
    code, text, err = run("print", cut)
    expect("truncated file", code == 2 and "is the file truncated?" in err, err)
    code, text, err = run("opt", "--passes=x", mobilenet)
    expect("unknown pass of opt", code == 2 and "error: unknown pass 'x'" in err, err)
    # Inside of a pass that shows its steps: copies that a loop asks for, then without those that nobody needs.
    (tmp / "loop.hlo").write_text("""HloModule loop

body {
  state = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  a = f32[8] get-tuple-element(state), index=1
  b = f32[8] get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  sum = f32[8] add(a, b)
  ROOT out = (s32[], f32[8], f32[8]) tuple(next, b, sum)
}

goes_on {
  state = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(i, ten), direction=LT
}

ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[8], f32[8]) tuple(zero, x, y)
  ROOT loop = (s32[], f32[8], f32[8]) while(start), condition=goes_on, body=body
}
""")
    copies = []
    for step in ("adding_copies_to_resolve_interference", "removing_unnecessary_copies", "adding_special-case_copies"):
        code, text, err = run("opt", "--passes=copy-insertion", f"--at-step={step}", tmp / "loop.hlo")
        expect(f"step {step}", code == 0 and not err, err)
        copies.append(text.count(" copy("))
    whole = run("opt", "--passes=copy-insertion", tmp / "loop.hlo")[1].count(" copy(")
    expect("copies by step", copies == [9, 9, 12] and whole == 6, f"{copies} {whole}")  # XLA 0.10.2: 9, 9, 12, then 6 behind its dce
    code, text, err = run("opt", "--passes=copy-insertion", "--at-step=nowhere", tmp / "loop.hlo")
    expect("unknown step", code == 2 and not text and "no pass shows a step 'nowhere'" in err and "'adding_special-case_copies'" in err, err)
    code, text, err = run("opt", "--passes=dce", "--at-step=nowhere", tmp / "loop.hlo")
    expect("a pass without steps", code == 2 and "shown: none" in err, err)
    code, text, err = run("opt", "--passes=cudnn-conv-algorithm-picker", mobilenet)
    expect("pass without code", code == 2 and "not implemented" in err, err)
    # A call whose dim_labels are of other ranks than its arrays (once written out of bounds).
    odd = os.path.join(directory, "odd_conv.hlo")
    with open(odd, "w") as f:
        f.write(
            "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  f = f32[4] parameter(1)\n"
            "  c = (f32[4], u8[0]) custom-call(x, f), window={size=3x3 pad=1_2x1_1}, dim_labels=b01f_01io->b01f, "
            'custom_call_target="__cudnn$convForward"\n  g = f32[4] get-tuple-element(c), index=0\n  ROOT r = f32[4] add(g, x)\n}\n'
        )
    code, text, err = run("opt", "--passes=conv-padding-legalization,cudnn-fused-convolution-rewriter", odd)
    expect("odd convolution call", code == 0 and "window={size=3x3 pad=1_2x1_1}" in text, err)
    code, text, err = run("exec", odd)
    expect("odd convolution call runs", code == 2 and "dim_labels or a window of other ranks" in err, (code, err))

    code, text, err = run(out)
    expect("folder", code == 0 and "replayed through xla-2019" in text, err)
    for stage in ("1:0002", "before_optimizations", "before_opt", "after_optimizations"):
        code, text, err = run("print", f"{out}:{stage}")
        expect("stage as input", code == 0 and text.startswith("HloModule"), (stage, err))
    for stage in ("simplification.after_algsimp", "algsimp"):
        code, text, err = run("print", f"{out}:{stage}")
        expect("never the first of several stages", code == 2 and "fits" in err and f"{out}:0002" in err and f"{out}:0004" in err, (stage, err))
    code, text, err = run("print", f"{out}:1:9999")
    expect("no such stage", code == 2 and "has no stage" in err, err)
    code, text, err = run("diff", f"{out}:1:0001", f"{out}:1:0002")
    expect("diff of two stages", code == 1 and text.strip().splitlines()[-1].startswith("different:"), text[-200:])
    code, text, err = run("diff", f"{out}:1:1", f"{out}:1:1")
    expect("diff of one stage", code == 0 and text.strip() == "same", text)
    code, text, err = run("diff", out, out)
    expect("diff of folders", code == 0, text)

    code, text, err = run("exec", mobilenet, "--seed=1", f"--out={tmp}/a.npz", "--json")
    expect("exec", code == 0 and "run_s" in json.loads(text), err)
    code, text, err = run("exec", f"{out}:after_optimizations", f"--inputs={tmp}/a.npz", f"--out={tmp}/b.npz")
    expect("exec of the last stage on saved inputs", code == 0, err)
    (tmp / "cut.npz").write_bytes((tmp / "a.npz").read_bytes()[:1000])
    code, text, err = run("exec", mobilenet, f"--inputs={tmp}/cut.npz")
    expect("damaged npz", code == 2 and "cannot read" in err, err)
    code, text, err = run("exec", mobilenet, "--backend=cuda", env={"HLO_CUDA_DRIVER": "none"})
    expect("backend without a card", code == 2 and "cuda" in err, err)

    for name, text_in, part in (
        ("not hlo", "hello world\n", "error:"),
        ("truncated", mobilenet.read_text()[:3000], "error:"),
        ("stablehlo", "module @m { stablehlo.add }", "StableHLO"),
        ("unknown opcode", "HloModule m\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] addd(p, p) }", "did you mean 'add'?"),
    ):
        code, text, err = run("print", "-", stdin=text_in)
        expect(name, code == 2 and part in err and text == "", err)
        code, text, err = run("-", "-o", tmp / "bad", stdin=text_in)
        expect(name + " leaves nothing", code == 2 and not (tmp / "bad").exists())
    code, text, err = run("verify", "-", stdin="HloModule m\nENTRY e { p = f32[2] parameter(0)\n ROOT r = f32[3] negate(p) }")
    expect("verify says no", code == 1 and "error:" in err, err)
    code, text, err = run("-", "-o", tmp / "y", stdin="HloModule m, is_scheduled=true\nENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] negate(p) }")
    expect("optimised module", code == 2 and "--force-replay" in err, err)
    code, text, err = run("stats", mobilenet, "--json")
    expect("stats", code == 0 and json.loads(text)["instructions"] == 119, err)
    code, text, err = run("convert", mobilenet, tmp / "m.json")
    expect("convert to json", code == 0 and json.loads((tmp / "m.json").read_text())["version"] == 2, err)
    code, text, err = run("convert", mobilenet, tmp / "m.svg")
    expect("convert to svg", code == 0 and "<svg" in (tmp / "m.svg").read_text(), err)
    code, text, err = run("opt", "--list-passes", "--json")
    expect("list of passes", code == 0 and any(p["name"] == "algsimp" for p in json.loads(text)["passes"]), err)
    code, text, err = run("--help")
    expect("help", code == 0 and "Examples" in text)
    code, text, err = run("print", mobilenet, "--nonsense")
    expect("unknown flag", code == 2)

    # A folder as XLA dumps it, made by hand: stages, names with dots, a damaged file.
    dump = tmp / "dump"
    dump.mkdir()
    head = "HloModule jit_f.1\nENTRY e {{ p = f32[] parameter(0)\n ROOT r = f32[] {}(p) }}\n"
    (dump / "module_0003.jit_f.1.before_optimizations.txt").write_text(head.format("negate"))
    (dump / "module_0003.jit_f.1.0001.optimization.after_pipeline-start.before_algsimp.txt").write_text(head.format("negate"))
    (dump / "module_0003.jit_f.1.0002.optimization.after_algsimp.before_dce.txt").write_text(head.format("abs"))
    (dump / "module_0003.jit_f.1.0003.optimization.after_dce.before_pipeline-end.txt").write_text("HloModule cut\nENTRY e {")
    code, text, err = run("open", dump, "--json")
    stages = json.loads(text)["modules"][0]["stages"]
    change = [s for s in stages if s.get("pass") == "algsimp"]
    # Another operation of the same name is another instruction.
    expect("xla folder", code == 0 and change and (change[0]["added"], change[0]["removed"], change[0]["modified"]) == (1, 1, 0), text)
    expect("damaged stage is told", "0003" in json.loads(text)["modules"][0]["problems"][0], text)
    code, text, err = run("exec", f"{dump}:3:0002")
    expect("exec of an imported stage", code == 0, err)
    # What TensorFlow wrote in 2018: graphs in a row, and the console's words about them.
    graphs = tmp / "graphs"
    graphs.mkdir()
    for k in range(3):
        nodes = "".join(f'  {n} [label="n{n}"];\n' for n in range(k + 2))
        (graphs / f"hlo_graph_{k}.dot").write_text("digraph G {\nrankdir = TB;\nnode [shape=box];\n" + nodes + "  0 -> 1 [tooltip=\"x\"];\n}\n")
    code, text, err = run("open", graphs, "--json")
    r = json.loads(text)["modules"][0]
    expect("graphs without a log", code == 0 and [s["instructions_after"] for s in r["stages"]] == [2, 3, 4] and "log" in r["missing"][0], text)
    (graphs / "xla_log.txt").write_text("".join(
        f"2018-06-08 I hlo_graph_dumper.cc:1416] computation cluster_0[_XlaCompiledKernel=true,_XlaNumConstantArgs=1].v82 [CPU:\n{what}]: /tmp/hlo_graph_{k}.dot\n"
        for k, what in enumerate(("pipeline start, before inline", "after inline, before algsimp", "after algsimp, before dce"))))
    code, text, err = run("open", graphs, "--json")
    r = json.loads(text)["modules"][0]
    expect("graphs with their log", r["module"] == "cluster_0" and [s["pass"] for s in r["stages"]] == ["pipeline-start", "inline", "algsimp"], text)
    code, text, err = run("view", graphs, "-o", tmp / "graphs.view")
    expect("pages of graphs", code == 0 and "<svg" in (tmp / "graphs.view" / "hlo_graph_2.html").read_text() and
           "hlo_graph_2.html" in (tmp / "graphs.view" / "index.html").read_text(), err)
    code, text, err = run("exec", f"{graphs}:1:0001")
    expect("a graph does not run", code == 2 and "only a graph" in err, err)
    mine = tmp / "mine.txt"
    mine.write_text("days of work\n")
    code, text, err = run("view", mobilenet, "-o", mine)
    expect("a page replaces no other file", code == 2 and "--force" in err and mine.read_text() == "days of work\n", err)
    for more in (["--force"], []):  # then it is a page, which may be made anew
        code, text, err = run("view", mobilenet, "-o", mine, *more)
        expect("a page replaces a page", code == 0 and "<!doctype" in mine.read_text()[:20], err)
    (tmp / "empty").mkdir()
    code, text, err = run(tmp / "empty")
    expect("empty folder", code == 2 and "no recording" in err, err)

finish("cli_test")
