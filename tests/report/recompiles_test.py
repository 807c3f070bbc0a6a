#!/usr/bin/env python3
"""recompiles: a loop of jax that compiles for five reasons (testdata/recompiles/loop.py), by its cache, its dump, its log and two of them
together: each reason is named.  What nobody tells is unknown; what is no recompilation is none."""
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run, source
from json_schema import Schemas
import json

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
LOOP = pathlib.Path(data) / "recompiles"


def answer(name, code, *args, **how):
    got, out, err = run("recompiles", *args, "--json", **how)
    expect(f"{name}: exit code {code}", got == code, f"{got} {err[:300]}")
    value = json.loads(out) if out.startswith("{") else {}
    why = schemas.wrong(value, "error.json" if code == 2 else "recompiles.json")
    expect(f"{name}: schema", not why, why)
    return value


def reasons(v, function):
    found = [f for f in v["functions"] if f["function"] == function]
    return {r["kind"]: r for f in found for r in f["reasons"]}


def seen(v):
    return {f["function"]: {r["kind"]: r["compilations"] for r in f["reasons"]} for f in v["functions"]}


# The log alone.
v = answer("log", 1, LOOP / "log.txt")
expect("log: each reason", seen(v) == {"step": {"dimension": 2, "sharding": 2}, "loss": {"function": 2}, "scaled": {"weak-type": 1}, "top": {"static": 1}}, seen(v))
expect("log: the sizes", reasons(v, "step")["dimension"]["values"] == ["4", "6", "8"] and reasons(v, "step")["dimension"]["where"].startswith("dimension 0 of argument 1"), reasons(v, "step"))
expect("log: the static argument", "3, before 2" in reasons(v, "top")["static"]["where"], reasons(v, "top"))
expect("log: seconds", v["seconds_lost"] and v["seconds_unknown"] == 0 and v["again"] == 8, v["seconds_lost"])

# The cache alone: constants in full, no weak types.
v = answer("cache", 1, LOOP / "cache")
expect("cache: the constant", "constant" in reasons(v, "loss") and "f32[16]" in reasons(v, "loss")["constant"]["where"].replace("f32[1,16]", "f32[16]"), reasons(v, "loss"))
expect("cache: keys are told", all(m["key"].startswith("jit_") for f in v["functions"] for m in f["modules"]), v)
expect("cache: the shardings", any(r["kind"] == "sharding" for r in [*reasons(v, "step").values()]), seen(v))

# The cache with the log: in the log's order, joined by key.
v = answer("cache and log", 1, LOOP / "cache", f"--log={LOOP / 'log.txt'}")
expect("cache and log: each reason", {k: set(r) for k, r in seen(v).items()} == {"step": {"dimension", "sharding"}, "loss": {"constant"}, "scaled": {"weak-type"}, "top": {"static"}}, seen(v))
expect("cache and log: the names", "x" in reasons(v, "step")["dimension"]["where"] and reasons(v, "step")["dimension"]["values"] == ["4", "6", "8"], reasons(v, "step"))
expect("cache and log: seconds of jax", all(m["from"] == "jax" for f in v["functions"] for m in f["modules"]), v)

# The dump: its texts leave the constant out, and that is said.
v = answer("dump", 1, LOOP / "dump")
expect("dump: a constant that is not told", "elided-constant" in reasons(v, "loss") and "f32[" in reasons(v, "loss")["elided-constant"]["where"], reasons(v, "loss"))
expect("dump: another program", "program" in reasons(v, "top") and len(reasons(v, "top")["program"]["values"]) == 2, reasons(v, "top"))
expect("dump: the place", next(f for f in v["functions"] if f["function"] == "step")["place"].startswith("loop.py:"), v["functions"])
expect("dump: seconds unknown", all(m["seconds"] is None or m["from"] for f in v["functions"] for m in f["modules"]), v)
v = answer("dump and log", 1, LOOP / "dump", f"--log={LOOP / 'log.txt'}")
expect("dump and log: weak type and static", "weak-type" in reasons(v, "scaled") and "static" in reasons(v, "top"), seen(v))

code, out, err = run("recompiles", LOOP / "cache", f"--log={LOOP / 'log.txt'}")
expect("in words", code == 1 and "step (loop.py:" in out and "by dimension 0 of argument 1, x: 4, 6, 8" in out and "Seconds" not in out and "lost" in out.splitlines()[0], out)

with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def module(name, body, header="", number=1, folder="d", flags=None):
        (tmp / folder).mkdir(exist_ok=True)
        (tmp / folder / f"module_{number:04}.{name}.before_optimizations.txt").write_text(f"HloModule {name}{header}\n\nENTRY e {{\n{body}\n}}\n")
        if flags is not None:
            (tmp / folder / f"module_{number:04}.{name}.debug_options").write_text(flags)

    # Donation, a flag, a constant of one element, devices; and one that is no recompilation.
    add = "  p = f32[4]{0} parameter(0)\n  ROOT r = f32[4]{0} add(p, p)"
    module("jit_f", add, number=1, flags="xla_a: true\n")
    module("jit_f", add, ", input_output_alias={ {}: (0, {}, may-alias) }", number=2, flags="xla_a: true\n")
    module("jit_f", add, number=3, flags='xla_a: true\nxla_b: "7"\n')
    for n, value in ((4, 1), (5, 2)):
        module("jit_g", f"  p = f32[] parameter(0)\n  c = f32[] constant({value})\n  ROOT r = f32[] multiply(p, c)", number=n)
    module("jit_once", add, number=6)
    v = answer("donation, flag, constant", 1, tmp / "d")
    expect("each by name", seen(v) == {"f": {"donation": 1, "flag": 1}, "g": {"constant": 1}}, seen(v))
    expect("values", reasons(v, "g")["constant"]["values"] == ["1", "2"] and reasons(v, "f")["flag"]["where"] == "xla_b" and reasons(v, "f")["donation"]["values"] == ["not donated", "donated"], v["functions"])
    module("jit_once", add, folder="one")
    v = answer("one of each", 0, tmp / "one")
    expect("none again", v["again"] == 0 and v["functions"] == [], v)
    module("jit_h", add, number=1, folder="twice")
    module("jit_h", add, number=2, folder="twice")
    expect("nothing differs", list(reasons(answer("twice", 1, tmp / "twice"), "h")) == ["unknown"])
    # Of the persistent cache's hits nothing was lost.
    (tmp / "hit.log").write_text("".join(f"Compiling jit(f) with global shapes and types (ShapedArray(float32[{n}]),). Argument mapping: (UnspecifiedValue,).\n"
                                         f"Persistent compilation cache hit for 'jit_f' with key 'jit_f-{n}'\nFinished XLA compilation of jit(f) in 0.01 sec\n" for n in (1, 2)))
    v = answer("hits", 0, tmp / "hit.log")
    expect("hits are no compilations", v["again"] == 0 and v["compilations"] == 2, v)
    # Older releases write lists.
    (tmp / "old.log").write_text("".join(f"Compiling f with global shapes and types [ShapedArray(float32[{n}])]. Argument mapping: [UnspecifiedValue].\n" for n in (1, 2)))
    v = answer("an older release", 1, tmp / "old.log")
    expect("an older release: the size", reasons(v, "f")["dimension"]["values"] == ["1", "2"] and v["seconds_lost"] is None and v["seconds_unknown"] == 1, v)
    # Hostile: cut off, brackets that do not end, nothing at all, a module that cannot be read.
    for n, text in enumerate(("Compiling jit(f) with global shapes and types (ShapedArray(float32[4", "Compiling jit(f) with global shapes and types ))))", "Compiling  with global shapes and types (((((((((")):
        (tmp / "bad.log").write_text(text * 2 + "\n" + text)
        expect(f"hostile {n}", run("recompiles", tmp / "bad.log")[0] in (0, 1), n)
    (tmp / "empty.log").write_text("nothing\n")
    answer("no log", 2, tmp / "empty.log")
    answer("not there", 2, tmp / "nowhere")
    module("jit_f", "  p = f32[", number=9)
    v = answer("one that cannot be read", 1, tmp / "d")
    expect("is told", any("not compared" in n for n in v["notes"]), v["notes"])

finish("recompiles_test")
