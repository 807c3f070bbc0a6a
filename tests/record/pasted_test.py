#!/usr/bin/env python3
"""Texts as people paste them: excerpts, logs, torch_xla's graphs. What is read, what is told, with its line, and what is refused."""
import gzip
import json
import pathlib
import re
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import expect, finish, run, source
from json_schema import Schemas

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")

WHOLE = """HloModule m, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %zero = f32[] constant(0)
  %n = f32[4]{0} negate(%a)
  %total = f32[] reduce(%n, %zero), dimensions={0}, to_apply=%sum
  %spread = f32[4]{0} broadcast(%total), dimensions={}
  ROOT %r = f32[4]{0} add(%spread, %b)
}
"""


def lines(text, *numbers):
    """Without these lines, counted from 1."""
    return "".join(line for k, line in enumerate(text.splitlines(True), 1) if k not in numbers)


def line_of(text, part):
    return next(k for k, line in enumerate(text.splitlines(), 1) if part in line)


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def file(name, text):
        (tmp / name).write_text(text)
        return tmp / name

    def defined(text):
        """Names of the instructions that a text prints."""
        return set(re.findall(r"^\s+(?:ROOT )?%([\w.-]+) = ", text, re.M))

    def tolerant(name, text, told=(), names=(), whole=False, strict_hint=True):
        """The excerpt is read; `told`: (line, part of the warning); `names`: instructions that are there; `whole`: nothing is missing."""
        path = file("case.hlo", text)
        code, out, err = run("print", "--permissive", path)
        expect(f"{name}: read", code == 0, err)
        expect(f"{name}: the first line says so", out.startswith("// an excerpt, "), out[:100])
        expect(f"{name}: whole or not", ("nothing of the module is missing" in out.split("\n")[0]) == whole, out.split("\n")[0] + err)
        for number, part in told:
            found = [w for w in err.splitlines() if w.startswith(f"{path}:{number}: warning: ") and part in w]
            expect(f"{name}: line {number} tells {part!r}", found, err)
        expect(f"{name}: instructions", set(names) <= defined(out), (set(names) - defined(out), out))
        again = file("again.hlo", out)
        expect(f"{name}: what is printed can be read", run("print", again)[1] == out.split("\n", 1)[1], run("print", again)[2])
        code, text_, err = run("exec", "--permissive", path)
        expect(f"{name}: exec", code == (0 if whole else 2) and (whole or "is an excerpt" in err), err)
        code, text_, err = run("print", path)
        expect(f"{name}: refused without the option", code == 2, text_)
        if strict_hint:
            expect(f"{name}: …with a hint", "--permissive" in err, err)
        return out

    ALL = defined(WHOLE)

    # Nothing of a text is dropped in silence.
    stray = WHOLE.replace("negate(%a)", "negate(%a)}")
    tolerant("stray brace", stray, [(line_of(stray, "negate"), "stray '}'")], ALL, whole=True)
    tolerant("a brace too many at the end", WHOLE + "}\n", [(18, "closes nothing")], ALL, whole=True, strict_hint=False)
    between = WHOLE.replace("}\n\nENTRY", "}\n\nand then comes the main one:\n(it is short)\n\nENTRY")
    tolerant("text between computations", between, [(9, "no HLO, left out: 'and then comes the main one:' and 1 line after")], ALL, whole=True)
    tolerant("text behind", WHOLE + "\nthe end of a mail,\n3 lines\n", [(19, "and 1 line after it")], ALL, whole=True)
    tolerant("text in front", "Hello, this is it:\n" + WHOLE, [(1, "no HLO")], ALL, whole=True)
    broken = WHOLE.replace("negate(%a)", "negte(%a)")
    out = tolerant("an opcode that nobody knows", broken, [(13, "custom call of 'negte': unknown opcode")], ALL, strict_hint=False)
    expect("…is kept as a custom call", 'custom-call(%a), custom_call_target="negte"' in out, out)
    broken = WHOLE.replace("negate(%a)", "negate(%a, %%, )(")
    out = tolerant("a line in the middle that cannot be read", broken, [(13, "instruction 'n' is not read"), (14, "'n' is not defined in the text: replaced by a parameter of f32[4]{0}")], ALL - {"n"})
    broken = WHOLE.replace("  %n =", "  %n : ")
    tolerant("a line that is no instruction", broken, [(13, "no HLO, left out")], ALL - {"n"})
    twice = WHOLE.replace("  %zero =", "  %n = f32[4]{0} exponential(%a)\n  %zero =")
    out = tolerant("a name twice", twice, [(14, "a second 'n'")], ALL | {"n.again"}, strict_hint=False)
    same = WHOLE.replace("  %zero =", "  %n = f32[4]{0} negate(%a)\n  %zero =")
    tolerant("the same line twice", same, [(14, "'n' is given twice (line 12 has it first)")], ALL, whole=True, strict_hint=False)
    roots = WHOLE.replace("  %n =", "  ROOT %n =")
    tolerant("a second ROOT", roots, [(16, "a second ROOT, 'r'")], ALL, strict_hint=False)
    entries = WHOLE + "\nENTRY %other (c: f32[2]) -> f32[2] {\n  ROOT %c = f32[2]{0} parameter(0)\n}\n"
    tolerant("a second ENTRY", entries, [(19, "a second ENTRY: 'other'")], ALL | {"c"}, strict_hint=False)
    again = WHOLE.replace("ENTRY", "%sum (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}\n\nENTRY")
    tolerant("a computation twice", again, [(9, "computation 'sum' is given twice (line 3 has it first)")], ALL, whole=True, strict_hint=False)
    other = again.replace("add(%x, %y)\n}\n\nENTRY", "multiply(%x, %y)\n}\n\nENTRY")
    tolerant("two computations of one name", other, [(9, "read as 'sum.again'")], ALL, strict_hint=False)
    parameter = WHOLE.replace("%b = f32[4]{0} parameter(1)", "%b = f32[4]{0} parameter(0)")
    tolerant("a parameter twice", parameter, [(11, "parameter 0 is given twice")], ALL, strict_hint=False)
    open_one = WHOLE.replace("add(%x, %y)\n}\n", "add(%x, %y)\n")
    tolerant("a closing brace that is not there", open_one, [(8, "'sum' does not end")], ALL, whole=True, strict_hint=False)

    # Two modules in one text are two.
    two = file("two.hlo", WHOLE + "\n" + WHOLE.replace("HloModule m", "HloModule k"))
    code, out, err = run("print", "--permissive", two)
    expect("two headers", code == 0 and out.count("HloModule") == 2 and "// -----" in out and not err, err)
    expect("…one of them", run("stats", "--permissive", f"{two}@2")[1].startswith("module k"), run("stats", "--permissive", f"{two}@2")[2])
    expect("a whole text says nothing", run("print", "--permissive", file("whole.hlo", WHOLE))[1:] == run("print", tmp / "whole.hlo")[1:])

    # Excerpts.
    for sign in ("...", "…", "<elided>", "[... 200 more lines ...]", "  <snip>"):
        gap = WHOLE.replace("  %zero = f32[] constant(0)\n  %n = f32[4]{0} negate(%a)\n", sign + "\n")
        tolerant(f"gap {sign}", gap, [(12, "lines are left out here"), (13, "'zero' is not defined in the text: replaced by a parameter of f32[]")], ALL)
    cut = WHOLE[:WHOLE.index("dimensions={0}, to")]
    out = tolerant("cut in the middle of a line", cut, [(14, "does not end before"), (14, "'total' is kept as a custom call of 'reduce': it is cut off"), (14, "ROOT of computation 'main'")], {"a", "b", "zero", "n", "s", "total"})
    tolerant("cut at the end of a line", WHOLE[:WHOLE.index("  %spread")], [(14, "the ROOT of computation 'main'")], {"total"})
    tolerant("cut within the signature", WHOLE[:WHOLE.index(", b: f32[4]) -> f32[4] {")], [(9, "is cut off")], {"s"})
    tolerant("without header and begin", WHOLE[WHOLE.index("  %y = "):], [(1, "2 instructions without the begin")], ALL)
    headless = lines(WHOLE, 1)
    expect("without the header it is whole", run("print", file("h.hlo", headless))[0] == 0)
    out = tolerant("instructions alone", "".join(WHOLE.splitlines(True)[11:14]), [(2, "'a' is not defined in the text: replaced by a parameter of f32[4]{0}"), (3, "computation 'sum' is not in the text")], {"a", "n", "zero", "total"})
    expect("…keep what they are", "reduce(%n, %zero)" in out, out)
    shaped = "  %d = f32[8,4]{1,0} dot(f32[8,16]{1,0} %l, f32[16,4]{1,0} %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  %e = f32[8,4]{1,0} exponential(f32[8,4]{1,0} %d)\n"
    out = tolerant("operands with their shapes", shaped, [(1, "'l' is not defined in the text: replaced by a parameter of f32[8,16]{1,0}")], {"l", "r", "d", "e"})
    unknown = "  %d = f32[8]{0} reshape(%l)\n  %e = f32[8]{0} exponential(%d)\n"
    out = tolerant("a shape that nobody tells", unknown, [(1, "nor is its shape"), (1, "kept as a custom call of 'reshape': the shape of 'l' is not known")], {"l", "d", "e"})
    fusion = WHOLE.replace("%n = f32[4]{0} negate(%a)", "%n = f32[4]{0} fusion(%a), kind=kLoop, calls=%fused")
    out = tolerant("a fusion without its computation", fusion, [(13, "computation 'fused' is not in the text")], ALL, strict_hint=False)
    expect("…stays a fusion", "fusion(%a), kind=kLoop, calls=%fused" in out, out)
    layout = "HloModule m, entry_computation_layout={(f32[4]{0}, /*index=1*/s32[2,3]{1,0})->f32[4]{0}}\n\nENTRY %main {\n  ...\n  ROOT %n = f32[4]{0} negate(%a)\n}\n"
    out = tolerant("parameters by the header alone", layout, [(3, "parameter 1 of computation 'main' is not in the text: one of s32[2,3]{1,0}")], {"a", "n"})
    big = "HloModule m\n\nENTRY %main (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n" + "".join(f"  %v{k} = f32[4]{{0}} negate(%{f'v{k - 1}' if k else 'p'})\n" for k in range(3000)) + "}\n"
    tolerant("2,000 lines of 3,000", lines(big, *range(2001, 4000)), [(2000, "ROOT")], {"v0", "v1995"})
    neuron = WHOLE.replace("negate(%a)", 'custom-call(%a), custom_call_target="AwsNeuronTransferWithStaticRing", api_version=API_VERSION_UNSPECIFIED')
    expect("Neuron's API version", run("print", file("neuron.hlo", neuron))[1].count("api_version=API_VERSION_UNSPECIFIED") == 1)

    # Every command that reads modules.
    gap = file("gap.hlo", WHOLE.replace("  %n = f32[4]{0} negate(%a)\n", "  ...\n"))
    for command in (["stats"], ["memory"], ["cost"], ["summary"], ["view", "-o", tmp / "page.html"], ["verify"], ["convert"]):
        code, out, err = run(*command, "--permissive", gap, *([tmp / "o.pb"] if command == ["convert"] else []))
        expect(f"{command[0]}: takes an excerpt", code == 0 and out.startswith(f"an excerpt, {gap}: "), f"{code} {out[:200]} {err}")
        expect(f"{command[0]}: tells the gap", f"{gap}:13: warning: lines are left out here" in err, err)
        expect(f"{command[0]}: not without", run(command[0], gap, *([tmp / "p.pb"] if command == ["convert"] else command[1:]))[0] == 2)
    code, out, err = run("search", "--permissive", gap, "total")
    expect("search takes an excerpt", code == 0 and out.startswith("an excerpt") and "#total" in out and "13: warning" in err, out + err)
    for command in (["exec"], ["replay", "-o", tmp / "replayed"], ["bisect"], ["opt", "--passes=dce"], ["reduce", "-o", tmp / "less"], ["whatif", "--disable=dce"]):
        code, out, err = run(*command, "--permissive", gap)
        expect(f"{command[0]}: refuses an excerpt", code == 2 and f"{gap} is an excerpt" in err, f"{code} {out[:200]} {err}")
    code, out, err = run("diff", "--permissive", gap, tmp / "whole.hlo")
    expect("diff takes it", code == 1 and "an excerpt" in out, out + err)
    code, out, err = run("stats", "--permissive", "--json", gap)
    found = json.loads(out)
    expect("--json has the notes", found["excerpts"][0]["gaps"] == 1 and found["excerpts"][0]["incomplete"] and found["excerpts"][0]["notes"][0]["line"] == 13, out[:400])
    expect("…as the schema says", not schemas.wrong(found, "stats.json"), schemas.wrong(found, "stats.json"))
    folder = tmp / "dump"
    folder.mkdir()
    (folder / "module_0001.m.before_optimizations.txt").write_text(WHOLE)
    (folder / "module_0001.m.after_optimizations.txt").write_text(gap.read_text())
    code, out, err = run("stats", "--permissive", f"{folder}:0001:after_optimizations")
    expect("a stage of a folder", code == 0 and out.startswith("an excerpt, "), out + err)

    # Logs.
    def log(text, start=0):
        return "".join(f"I0000 00:00:1700000000.{start + k:06} 77 hlo_module.cc:12] {line}\n" for k, line in enumerate(text.splitlines()))

    passes = """I0000 00:00:1786848746.000100 38 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f.5: simplification
I0000 00:00:1786848746.000200 38 hlo_pass_pipeline.cc:181]   HLO pass algsimp
I0000 00:00:1786848746.000300 38 hlo_pass_pipeline.cc:187]   Number of instructions: 57
I0000 00:00:1786848746.000400 38 hlo_pass_pipeline.cc:176] HLO pass: algsimp time: 1.5 ms (34 us) (cumulative: 34 us, max: 34 us, #called: 1)
I0000 00:00:1786848746.000500 38 hlo_pass_pipeline.cc:181]   HLO pass dce
F0000 00:00:1786848747.000500 38 hlo_instruction.cc:1234] Check failed: operand_count() == 2 (1 vs. 2)
*** Check failure stack trace: ***
Aborted
"""
    path = file("passes.log", passes)
    for command in (["open", path], [path]):
        code, out, err = run(*command)
        expect("a log is opened", code == 0 and "simplification on jit_f.5: 2 passes, 1.500 ms" in out and "last pass entered: dce (line 5" in out and
               "line 6: failed at hlo_instruction.cc:1234: Check failed: operand_count() == 2" in out and "last words: Aborted" in out and "over 1.000 s" in out, out + err)
    code, out, err = run("open", path, "--json")
    expect("…as JSON", code == 0 and json.loads(out)["last_pass"] == "dce" and not schemas.wrong(json.loads(out), "log.json"), out[:300] + err)
    code, out, err = run("print", path)
    expect("a log without a module is named", code == 2 and "a log of XLA" in err and "open" in err, err)
    path = file("jax.log", "WARNING:2025-01-01 10:00:00,000:jax._src.dispatch:171: Finished XLA compilation of jit(f) in 0.25 sec\nDEBUG:jax._src.interpreters.pxla:Compiling f\n")
    expect("a log of jax", "XLA compilation of jit(f) in 250.000 ms" in run("open", path)[1], run("open", path))
    path = file("module.log", log("Compiling\n" + WHOLE + "\ndone in 3 ms"))
    expect("a module in a log", defined(run("print", path)[1]) == ALL, run("print", path)[2])
    path = file("two.log", passes[:passes.index("F0000")] + log(WHOLE) + "I0000 00:00:1.5 7 x.cc:9] between them\n" + log(WHOLE.replace("HloModule m", "HloModule k")))
    code, out, err = run("open", path)
    expect("modules of a log are listed", code == 0 and f"module: m  ({path}@1)" in out and f"module: k  ({path}@2)" in out, out + err)
    expect("…and read", run("print", f"{path}@2")[1].startswith("HloModule k"), run("print", f"{path}@2"))
    half = log(WHOLE).splitlines(True)
    code, out, err = run("stats", "--permissive", file("half.log", "".join(half[10:])))
    expect("a log that begins in the middle", code == 0 and out.startswith("an excerpt") and "6 instructions read" in out, out + err)
    mixed = log(WHOLE).splitlines(True)
    mixed.insert(12, "W0000 00:00:1.5 9 other.cc:3] something else went on\n")
    code, out, err = run("print", "--permissive", file("mixed.log", "".join(mixed)))
    expect("a line of another thread within a module", code == 0 and ALL <= defined(out) and "mixed.log:13: warning: no HLO, left out: 'something else" in err, out + err)

    # torch_xla's graphs.
    GRAPH = "[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  step (/app/train.py:41)\n\nRoot Hashes: (00aa)\n\n## BEGIN_GRAPH\n{}\nGraph Hash: {}\n\n## END_GRAPH\n\n#OUTPUT_SHARDING_BEGIN\n\nf32[4] {{replicated}}\n\n#OUTPUT_SHARDING_END\n\n"
    graphs = file("graphs.txt", GRAPH.format(WHOLE, "00ffee") + GRAPH.format(WHOLE.replace("HloModule m", "HloModule "), "00ddee"))
    code, out, err = run("print", graphs)
    expect("torch_xla's graphs", code == 0 and re.findall(r"HloModule ([\w.]+)", out) == ["m", "graph_00ddee"], out + err)
    expect("…one by number, one by hash", run("print", f"{graphs}@2")[1] == run("print", f"{graphs}:00ddee")[1] and run("stats", f"{graphs}:00ff")[1].startswith("module m:"), run("print", f"{graphs}:00ddee"))
    expect("…without their ends", run("print", file("cut.txt", graphs.read_text().replace("## END_GRAPH\n", "")))[1] == out)

    # Folders as they are sent: nobody unpacks one here, and none is taken for something else.
    sent = pathlib.Path(directory) / "sent"
    sent.mkdir()
    plain = sent / "dump.tar"
    with tarfile.open(plain, "w") as archive:
        archive.add(file("inside.hlo", WHOLE), "module_0001.m.before_optimizations.txt")
    (sent / "dump.tgz").write_bytes(gzip.compress(plain.read_bytes()))
    (sent / "renamed.bin").write_bytes(plain.read_bytes())
    for name in ("dump.tar", "dump.tgz", "renamed.bin"):
        code, out, err = run("cost", sent / name)
        expect(f"{name} is packed", code == 2 and "is a packed folder: unpack it first" in err, out + err)
    code, out, err = run("open", plain)
    expect("open: a packed folder", code == 2 and "is a packed folder" in err, out + err)
    code, out, err = run("open", sent)
    expect("open: packed folders in a folder", code == 2 and "dump.tar in it is a packed folder" in err, out + err)
    code, out, err = run("open", file("one.hlo", WHOLE))
    expect("open: a module", code == 2 and "is not a folder; of a module by itself" in err, out + err)

finish("pasted_test")
