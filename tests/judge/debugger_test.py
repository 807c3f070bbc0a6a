#!/usr/bin/env python3
"""diff, step, link and isolate from outside."""
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run


def shuffled(text, seed):
    """The same module under other names."""
    names = sorted(set(re.findall(r"%([A-Za-z_][\w.\-]*)", text)))
    new = [f"n{i}" for i in range(len(names))]
    random.Random(seed).shuffle(new)
    table = dict(zip(names, new))
    return re.sub(r"%([A-Za-z_][\w.\-]*)", lambda m: "%" + table[m.group(1)], text)


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    mobilenet = data / "mobilenet_v1.hlo"
    code, text, err = run("print", "--style=default", mobilenet)
    plain = text

    # diff: other names are no difference; each change is told once and where it is.
    a, b = tmp / "a.hlo", tmp / "b.hlo"
    a.write_text(plain)
    b.write_text(shuffled(plain, 1))
    code, text, err = run("diff", a, b)
    expect("other names", code == 0 and "same structure" in text, text + err)
    c, d = tmp / "c.hlo", tmp / "d.hlo"
    dead = ["d1 = f32[2] negate(p)", "d2 = f32[2] cosine(p)"]
    for path, rows in ((c, dead), (d, dead[::-1])):
        path.write_text("HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  " + "\n  ".join(rows) + "\n  ROOT r = f32[2] sine(p)\n}\n")
    code, text, err = run("diff", c, d)
    expect("what nobody reads in another order", code == 0 and "same structure" in text, text + err)
    d.write_text(d.read_text().replace("cosine", "tan"))
    code, text, err = run("diff", c, d)
    expect("what nobody reads is another", code == 1 and "opcode" in text, text + err)
    code, text, err = run("diff", "--by=text", a, b)
    expect("other text", code == 1 and text.strip().splitlines()[-1].startswith("different:"), text[-200:])
    edits = {
        "layout": (r"(?s)%convert\.110 = f32\[1,1000\]\{1,0\}", "%convert.110 = f32[1,1000]{0,1}", "layout: {1,0} → {0,1}"),
        "opcode": (r"= (f32\[1,1000\]\{1,0\}) exponential\(", r"= \1 tanh(", "opcode: exponential → tanh"),
        "literal": (r"constant\(3136\)", "constant(3137)", "literal: 3136 → 3137"),
    }
    for name, (pattern, to, what) in edits.items():
        changed, n = re.subn(pattern, to, plain, count=1)
        expect(f"the text has what {name} edits", n == 1, pattern)
        b.write_text(shuffled(changed, 2))
        code, text, err = run("diff", a, b, "--json")
        d = json.loads(text)
        expect(f"one {name} edited under other names", code == 1 and not d["names_agree"] and d["modified"] == 1 and
               d["added"] == d["removed"] == 0 and what in json.dumps(d, ensure_ascii=False), text[:1200])
    module = "HloModule m\nENTRY e {{\n  p = f32[8,4] parameter(0)\n  {}\n  ROOT r = f32[8,4] add(t, p)\n}}\n"
    a.write_text(module.format("t = f32[8,4] negate(p)"))
    b.write_text(module.format("s = f32[4,8] transpose(p), dimensions={1,0}\n  n = f32[4,8] negate(s)\n  t = f32[8,4] transpose(n), dimensions={1,0}"))
    code, text, err = run("diff", a, b, "--run")
    expect("other structure, equal results", code == 0 and text.strip().endswith("results equal"), text + err)
    b.write_text(module.format("t = f32[8,4] abs(p)"))
    code, text, err = run("diff", a, b, "--run")
    expect("other results", code == 1 and "results differ" in text and "first value that differs is t" in text, text + err)
    b.write_text("HloModule m\nf {\n  q = f32[8,4] parameter(0)\n  t = f32[8,4] negate(q)\n  ROOT r = f32[8,4] add(t, q)\n}\n"
                 "ENTRY e {\n  p = f32[8,4] parameter(0)\n  ROOT g = f32[8,4] fusion(p), kind=kLoop, calls=f\n}\n")
    page = tmp / "d.html"
    code, text, err = run("diff", a, b, "--json", f"--html={page}")
    d = json.loads(text)
    expect("moved into a fusion", d["moved"] == 2 and d["added"] == 1 and
           {l["place"] for l in d["differences"] if l["kind"] == "moved"} == {"e → f"}, text)
    expect("page", "e → f" in page.read_text() and "<table>" in page.read_text())
    # Who cannot be read is named, beside a folder, too.
    for sides in ((tmp, tmp / "not_there"), (tmp / "not_there", tmp)):
        code, text, err = run("diff", *sides)
        expect("what is not there is what is wrong", code == 2 and "not_there" in err, err)
    # Operands that are the same instruction are one parameter of what stands alone.
    twice = tmp / "twice.hlo"
    twice.write_text("HloModule m\nf {\n  q = f32[4] parameter(0)\n  s = f32[4] parameter(1)\n  ROOT t = f32[4] multiply(q, s)\n}\n"
                     "ENTRY e {\n  p = f32[4] parameter(0)\n  n = f32[4] negate(p)\n  ROOT g = f32[4] fusion(n, n), kind=kLoop, calls=f\n}\n")
    code, text, err = run("isolate", twice)
    expect("isolate of an operand that comes twice", code == 0 and "no value" not in text, text + err)
    code, text, err = run("diff", a, b, f"--html={page}")
    expect("a page is not overwritten", code == 2 and "--force" in err, err)
    repeated = "HloModule m\nENTRY e {{\n  p = f32[8] parameter(0)\n{}  ROOT r = f32[8] add(v9, p)\n}}\n"
    lines = lambda op: "".join(f"  v{i} = f32[8] {op}({'p' if i == 0 else f'v{i-1}'})\n" for i in range(10))
    a.write_text(repeated.format(lines("negate")))
    b.write_text(repeated.format(lines("abs")))
    code, text, err = run("diff", a, b, "--json")
    d = json.loads(text)
    expect("a pattern is told once, with its count", len(d["differences"]) <= 3 and max(l["count"] for l in d["differences"]) >= 8, text)

    # Two folders: the first stage that differs, though one lacks a pass.
    one, two = tmp / "one", tmp / "two"
    run(mobilenet, "-o", one, "--formats=text")
    run(mobilenet, "-o", two, "--formats=text", "--disable-passes=reshape-mover")
    code, text, err = run("diff", one, two)
    expect("first stage that differs", code == 1 and "reshape-mover" in text.strip().splitlines()[-1] and
           "which the first alone has" in text, text[-300:])
    three = tmp / "three"
    shutil.copytree(one, three)
    for f in three.glob("*.txt"):
        if "-buffer-" not in f.name:
            f.write_text(shuffled(f.read_text(), 3))
    code, text, err = run("diff", one, three)
    expect("folders under other names", code == 0 and text.startswith("same:"), text[-300:] + err)

    # step: forwards, back, breaks by pass, rule and instruction, edits, results.
    script = "\n".join(["until algsimp", "notes", "diff", "exec", "back 2", "list", "break reshape-mover", "continue",
                        f"save {tmp}/s.hlo", f"load {tmp}/s.hlo", "next", "skip", "disable cse", "fuel algsimp 2",
                        "delete", "break maximum.44", "back 100", "next", "users maximum.44", "print maximum.44", "quit"])
    code, text, err = run("step", mobilenet, stdin=script)
    expect("step", code == 0, err + text[-300:])
    for part in ("algsimp: changed, 29 rewrites", "multiply by one: multiply, rsqrt", "results equal those of the first step",
                 "break at pass reshape-mover", "#18 text of", "%convolution.46 = "):
        expect("step shows", part in text, (part, text[-1500:]))
    code, text, err = run("step", mobilenet, stdin="break maximum.44\ncontinue\nfuel cse 0\nback\nnext\nnext 100\nexec\n")
    expect("break at an instruction", "break at instruction maximum.44" in text, text)
    code, text, err = run("step", mobilenet, stdin="break 'x\nnonsense\nnext\n")
    expect("a wrong command is told and the rest goes on", code == 2 and "no command 'nonsense'" in text and "#1 " in text, text)
    edited = (one / sorted(f.name for f in one.glob("*.0002.*.txt"))[0]).read_text().replace(" exponential(", " tanh(")
    (tmp / "edited.hlo").write_text(edited)
    code, text, err = run("step", tmp / "edited.hlo", "--pipeline=xla-2019", "--from=dce", stdin="next\nwhere\n")
    expect("goes on from a pass", code == 0 and "next: simplification / dce" in text, text)
    code, text, err = run("step", mobilenet, stdin=f"until algsimp\nload {tmp}/edited.hlo\nnext 3\nexec\n")
    expect("an edit is run through the passes behind it", "results differ from those of the first step" in text, text)
    code, text, err = run("replay", tmp / "edited.hlo", "--from=dce", "-o", tmp / "rest", "--json")
    expect("replay from a pass", code == 0 and [s["pass"] for s in json.loads(text)["stages"] if s["kind"] == "pass"][0] == "dce", text[:600])

    # link: a 2018 thread's two clusters, with the graph before and behind clustering, and without.
    add, mul = data / "link/add.hlo", data / "link/mul.hlo"
    code, text, err = run("link", add, mul, "--json")
    edges = json.loads(text)["edges"]
    expect("equal candidates are ambiguous", len(edges) == 2 and all(e["ambiguous"] and e["confidence"] <= 0.5 for e in edges), text)
    code, text, err = run("link", add, mul, "--json", "--graph", data / "link/after_clustering.pbtxt", "--emit", tmp / "both.hlo")
    edges = json.loads(text)["edges"]
    expect("the graph proves the edge", [(e["from"], e["result"], e["to"], e["parameter"], e["confidence"]) for e in edges] ==
           [("cluster_0", 0, "cluster_1", 0, 1.0)], text)
    (tmp / "in.txt").write_text("2\n3\n3\n")
    code, text, err = run("exec", tmp / "both.hlo", f"--inputs={tmp}/in.txt")
    expect("(2 + 3) * 3", code == 0 and "o0 s32[] = 15" in text, text + err)
    code, text, err = run("link", add, mul, "--json", "--graph", data / "link/before_clustering.pbtxt")
    expect("linked clusters, place unknown", all(e["ambiguous"] and "the graph links the clusters" in e["evidence"]
                                                 for e in json.loads(text)["edges"]), text)
    code, text, err = run("link", add, mul, "--edge", "0.o0=1.p1", "--emit", tmp / "other.hlo")
    expect("said by hand", code == 0 and "1 links, 3 parameters left" in text, text + err)
    for wrong in ("0.o1=1.p0", "1.o0=0.p0", "0.p0=1.o0", "x.o0=1.p0"):
        code, text, err = run("link", add, mul, "--edge", wrong, "--emit", tmp / "wrong.hlo")
        expect("a wrong edge", code == 2 and not (tmp / "wrong.hlo").exists(), (wrong, text, err))
    cut = (data / "link/after_clustering.pbtxt").read_text()
    for length in range(40, len(cut), 90):
        (tmp / "cut.pbtxt").write_text(cut[:length])
        code, text, err = run("link", "--graph", tmp / "cut.pbtxt", "-o", tmp / "cut.dot", "--force")
        expect("a damaged graph as far as it goes", code == 0 and "digraph" in (tmp / "cut.dot").read_text(), (length, err))
    for end in ("svg", "png", "html", "json"):
        code, text, err = run("link", add, mul, "--graph", data / "link/after_clustering.pbtxt", "-o", tmp / f"l.{end}")
        expect("drawn", code == 0 and (tmp / f"l.{end}").stat().st_size > 300, (end, err))
    # init → train → train … → eval as jax compiles them: true edges above a half, nothing false.
    run_of_jax = data / "link/jax_run"
    code, text, err = run("link", *sorted(run_of_jax.glob("*.hlo")), "--json", "--emit", tmp / "one.hlo")
    found = {(e["from"], e["result"], e["to"], e["parameter"]): e["confidence"] for e in json.loads(text)["edges"]}
    true = {("jit_init", k, "jit_train", k) for k in range(9)} | {("jit_train", k, "jit_train", k) for k in range(9)}
    true |= {("jit_train", 4 + k, "jit_evaluate", k) for k in range(4)} | {("jit__threefry_seed", 0, "jit_init", 0)}
    expect("every true edge is found", true <= found.keys(), true - found.keys())
    expect("no false one above a half", {e for e, c in found.items() if c > 0.5} <= true, found)
    expect("state is told from inputs", [p["role"] for p in json.loads(text)["modules"][2]["parameters"]] ==
           ["state"] * 9 + ["input"] * 3, text[:500])
    code, text, err = run("verify", tmp / "one.hlo")
    expect("all in one module", code == 0, err)

    # isolate: every distinct kernel of a module, the worst first.
    code, text, err = run("isolate", f"{one}:after_optimizations", "-o", tmp / "kernels", "--json")
    kernels = json.loads(text)["kernels"]
    expect("isolate", code == 0 and len(kernels) > 10 and all(k["equal"] for k in kernels), text[:300] + err)
    expect("worst first", [k["worst_error"] for k in kernels] == sorted((k["worst_error"] for k in kernels), reverse=True), text[:500])
    name = kernels[0]["name"]
    code, text, err = run("exec", tmp / "kernels" / f"{name}.hlo", f"--inputs={tmp}/kernels/{name}.npz")
    expect("a kernel runs alone on its inputs", code == 0, err)

    # Profiles, counted costs, and the host's kernels from outside.
    trace, page, table = tmp / "p.json", tmp / "p.html", tmp / "p.txt"
    code, text, err = run("exec", mobilenet, "--backend=host", "--compare-with=evaluator", "--profile", trace, "--profile", page, "--profile", table)
    expect("profile", code == 0 and "Time(%)" in text and "equal" in text, err + text[-300:])
    events = json.loads(trace.read_text())["traceEvents"]
    expect("trace events", all(e["ph"] in ("X", "M") and isinstance(e["pid"], int) for e in events), events[:3])
    spans = [e for e in events if e["ph"] == "X"]
    expect("spans", len(spans) > 15 and all(e["dur"] >= 0 and e["ts"] >= 0 and e["args"]["hlo_op"] == e["name"] for e in spans), spans[:2])
    expect("in order", [e["ts"] for e in spans] == sorted(e["ts"] for e in spans))
    conv = [e for e in spans if e["name"] == "convolution.36"][0]["args"]
    expect("costs and source", conv["op_name"] == "mobilenet/first_conv3x3/Conv2D" and conv["flops"] > 2e7, conv)
    expect("page and table", "convolution.36" in page.read_text() and table.read_text().count("\n") > 15)
    code, text, err = run("exec", mobilenet, "--profile", trace)
    expect("a profile is not overwritten", code == 2 and "--force" in err, err)
    code, text, err = run("exec", mobilenet, "--profile", tmp / "p.xyz")
    expect("format of a profile", code == 2 and "ending decides" in err, err)
    code, text, err = run("diff", "--profile", trace, trace)
    expect("the same trace", code == 0 and "same within 5 %" in text, text[-300:])
    slow = json.loads(trace.read_text())
    first = next(e for e in slow["traceEvents"] if e.get("name") == "convolution.36")
    longer = 1e5  # microseconds: what came behind it comes later, else it would lie within it
    for e in slow["traceEvents"]:
        if e["ph"] == "X" and e["ts"] > first["ts"]:
            e["ts"] += longer
    first["dur"] += longer
    (tmp / "slow.json").write_text(json.dumps(slow))
    code, text, err = run("diff", "--profile", trace, tmp / "slow.json", "--json")
    d = json.loads(text)
    expect("what became slower", code == 1 and d["by_op_name"][0]["name"] == "mobilenet/first_conv3x3/Conv2D" and
           d["by_class"][0]["name"] == "convolution", text[:400])
    (tmp / "no.json").write_text("{}")
    code, text, err = run("diff", "--profile", trace, tmp / "no.json")
    expect("no trace", code == 2 and "no trace" in err, err)
    dot = tmp / "dot.hlo"
    dot.write_text("HloModule m\nENTRY e {\n a = f32[16,32] parameter(0)\n b = f32[32,8] parameter(1)\n"
                   " ROOT d = f32[16,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n")
    code, text, err = run("cost", dot, "--json", "--gpu=h100")
    d = json.loads(text)
    expect("cost", code == 0 and d["flops"] == 2 * 16 * 32 * 8 and d["bytes"] == 4 * (16 * 32 + 32 * 8 + 16 * 8), text)
    code, text, err = run("cost", dot, "--gpu=GTX")
    expect("unknown device", code == 2 and "H100" in err, err)
    code, text, err = run("occupancy", f"{one}:after_optimizations", "--gpu=A10G,H100", "--json")
    if code == 2:
        expect("occupancy says what it needs", "ptxas" in err or "libdevice" in err, err)
    else:
        expect("occupancy", code == 0 and all(0 < k["occupancy"] <= 1 and k["registers"] > 0 for k in json.loads(text)["kernels"]), text[:300])
    loop = data / "kernels/loop.hlo"
    code, text, err = run("exec", loop, "--backend=host", "--profile", tmp / "loop.json")
    spans = [e for e in json.loads((tmp / "loop.json").read_text())["traceEvents"] if e["ph"] == "X"]
    expect("ten steps of a loop", code == 0 and sum(e["name"].startswith("cosine") or "fusion" in e["name"] for e in spans) >= 10, [e["name"] for e in spans])

    # Below HLO: all stages agree with each other; does the device?
    stages, gave = tmp / "stages", tmp / "gave.npz"
    run("replay", data / "linear_regression.hlo", "-o", stages, "--formats=text")
    run("exec", data / "linear_regression.hlo", "--out", gave)
    code, text, err = run("bisect", stages, "--outputs", gave)
    expect("the device agrees", code == 0 and "gave.npz agrees with all of them" in text, text + err)
    run("exec", data / "linear_regression.hlo", "--out", gave, "--seed=7")
    code, text, err = run("bisect", stages, "--outputs", gave)
    expect("the fault is below", code == 1 and "The fault is below HLO" in text and "hlo-replay isolate" in text, text + err)
    code, text, err = run("bisect", stages, "--outputs", gave, "--json")
    expect("as JSON", code == 1 and "below HLO" in json.loads(text)["device"], text + err)
    (tmp / "cut.npz").write_bytes(gave.read_bytes()[:100])
    code, text, err = run("bisect", stages, "--outputs", tmp / "cut.npz")
    expect("damaged outputs, before the search", code == 2 and text == "" and "cut.npz" in err, text + err)
    code, text, err = run("bisect", data / "linear_regression.hlo", "--outputs", gave)
    expect("outputs of a module", code == 2 and "--outputs needs a folder" in err, text + err)
    code, text, err = run("bisect", stages, "--backend=host")
    expect("the host's kernels agree", code == 0 and "backend host agrees" in text, text + err)

finish("debugger_test")
