#!/usr/bin/env python3
"""hlo_replay.jax in a jax of its own: jax_test.py TOOL SOURCE. Exit 77 (skipped) where the reference's interpreter is not installed, or
the package's extension was not built (-DHLO_PYTHON=ON) for its Python.

Each trap is shown to bite without the care, then not with it."""
import os
import pathlib
import sys
import subprocess

tool, source = sys.argv[1:3]
cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
python = pathlib.Path(os.environ.get("HLO_ORACLE_VENV", cache / "hlo-oracle-0.10.2")) / "bin" / "python"
if not os.environ.get("HLO_IN_ORACLE"):
    if not python.exists():
        print("skipped: no interpreter with jax is here (shared/oracle/setup.sh installs one)")
        sys.exit(77)
    package = pathlib.Path(tool).resolve().parents[1] / "python"
    environment = dict(os.environ, HLO_IN_ORACLE="1", JAX_PLATFORMS="cpu", HLO_REPLAY=tool, XLA_FLAGS="--xla_disable_hlo_passes=cse",
                       PYTHONPATH=str(package))
    if subprocess.run([python, "-c", "import hlo_replay"], env=environment, capture_output=True, check=False).returncode:
        print(f"skipped: no package for {python} in {package}")
        sys.exit(77)
    os.execve(python, [str(python), "-W", "ignore", __file__, tool, source], environment)

import contextlib
import gc
import io
import logging
import re
import shutil

logging.disable(logging.ERROR)  # of a plugin for cards that are not there

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import hlo_replay as hlo
import hlo_replay.jax as hj
from hlo_replay.jax import _compile, _tool

failures = 0
DUMP = {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}


def expect(name, condition, detail=""):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED {name}: {detail}")


def refused(name, word, call):
    try:
        call()
    except hj.Error as e:
        expect(name, word in str(e), e)
    else:
        expect(name, False, "not refused")


def f(x):
    return jnp.tanh(x) + x


x4, x8, s32 = jnp.arange(4.0), jnp.arange(8.0), jnp.int32


def traps(tmp):
    # Flags: the process's, jax's own and the caller's pass lists, each of which replaces the others.
    jax.config.update("jax_compiler_enable_remat_pass", False)
    bare = tmp / "bare"
    jax.jit(f).lower(x4).compile(compiler_options={**DUMP, "xla_dump_to": str(bare), "xla_disable_hlo_passes": "algsimp"})
    expect("lists replace each other", hlo.open(bare).debug_options()["xla_disable_hlo_passes"] == ["algsimp"])
    recorded = hj.record(f, x4, folder=tmp / "lists", disable_passes=["algsimp", "dce"])
    expect("lists are merged", sorted(recorded.debug_options()["xla_disable_hlo_passes"]) == ["algsimp", "cse", "dce", "rematerialization"],
           recorded.debug_options())
    expect("the passes are left out", not any(s.pass_name == "algsimp" and s.data.get("file") and s.kind == "pass" for s in recorded.stages))
    jax.config.update("jax_compiler_enable_remat_pass", True)
    refused("a flag that did not arrive", "was not asked", lambda: _compile.settle(tmp / "lists", {"xla_disable_hlo_passes": "fusion"}))
    with hj.capture(disable_passes=["fusion"]) as run:
        jax.jit(f)(x4)
    expect("capture merges, too", {"cse", "fusion"} <= set(run["f"].debug_options()["xla_disable_hlo_passes"]), run["f"].debug_options())

    # A flag of the process is read once; one of a compilation counts for it alone.
    os.environ["XLA_FLAGS"] += " --xla_llvm_disable_expensive_passes=true"
    expect("too late for the process", "xla_llvm_disable_expensive_passes" not in hj.record(f, x4).debug_options())
    os.environ["XLA_FLAGS"] = os.environ["XLA_FLAGS"].split()[0]
    flagged = hj.record(f, x4, flags={"xla_llvm_disable_expensive_passes": True}).debug_options()
    expect("in time for one compilation", flagged["xla_llvm_disable_expensive_passes"] == ["true"], flagged)
    expect("and for no other", "xla_llvm_disable_expensive_passes" not in hj.record(f, x4).debug_options())

    # jax's persistent cache answers in the compiler's place.
    for name, value in (("jax_compilation_cache_dir", str(tmp / "cache")), ("jax_persistent_cache_min_compile_time_secs", 0), ("jax_persistent_cache_min_entry_size_bytes", -1)):
        jax.config.update(name, value)
    cached = jax.jit(lambda x: f(x) * 3)
    cached.lower(x4).compile()
    expect("something is cached", list((tmp / "cache").iterdir()))
    lowered = cached.lower(x4)  # alive: what is remembered goes with it

    def stages_of_a_plain_compilation():
        lowered.compile(compiler_options={**DUMP, "xla_dump_to": str(tmp / "hit")})
        found = bool(list((tmp / "hit").glob("*before_optimizations.txt")))
        shutil.rmtree(tmp / "hit", ignore_errors=True)
        return found
    expect("a hit on disk dumps no stages", not stages_of_a_plain_compilation())
    jax.clear_caches()
    with _compile.no_caches():
        expect("a hit in memory dumps no stages", [stages_of_a_plain_compilation() for _ in range(2)] == [True, False])
    for k in range(3):
        expect("record goes past the cache", len(hj.record(cached, x4, folder=tmp / "past").stages) > 5)
        shutil.rmtree(tmp / "past")
        if k == 1:
            jax.clear_caches()
    with hj.capture() as run:
        cached(x4)
    expect("capture goes past the cache", len(run.modules) == 1 and run.modules[0].stages, run.notes)
    expect("the cache is set back", jax.config.jax_enable_compilation_cache)
    from jax._src import compilation_cache
    jax.jit(lambda x: f(x) * 4).lower(x4).compile()
    expect("and used again", len(list((tmp / "cache").iterdir())) >= 2)
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()

    # jit's own cache; module ids; everything set back.
    from jax._src import compiler
    before, jitted = compiler.compile_or_get_cached, jax.jit(f)
    jitted(x4)
    with hj.capture(tmp / "one") as one:
        jitted(x4)
        jitted(x8)
    expect("what jit had compiled is compiled again", [m.function for m in one.modules] == ["f", "f"], one.notes)
    with hj.capture() as two:
        jitted(x8)
        jitted(x4)
    expect("module ids change", not {m.number for m in one.modules} & {m.number for m in two.modules})
    pairs = one.match(two)
    expect("matched by function and fingerprint", [(a.stages[0].text.count("f32[8]") > 0, b.spec == two.modules[1 - k].spec) for k, (a, b) in enumerate(pairs)] == [(False, True), (True, True)], pairs)
    refused("several modules of a function", "2 modules", lambda: one["f"])
    expect("a folder for each: nothing over another", len({m.folder for m in one.modules}) == 2)
    expect("one run for the commands", len(_tool.ask("open", one.folder)["modules"]) == 2)
    expect("the compiler is set back", compiler.compile_or_get_cached is before)
    try:
        with hj.capture():
            raise ValueError
    except ValueError:
        expect("set back after a failure", compiler.compile_or_get_cached is before and jax.config.jax_enable_compilation_cache)
    folder, kept = two.folder, two.modules[0]
    del two, pairs
    gc.collect()
    expect("a temporary folder stays while a module of it does", kept.stages and folder.exists())
    del kept
    gc.collect()
    expect("and goes with the last", not folder.exists())
    refused("a folder that holds something", "not empty", lambda: hj.record(f, x4, folder=tmp / "one"))

    # What was compiled ahead of time is not compiled here.
    ahead = jax.jit(f).lower(x4).compile()
    with hj.capture() as run:
        ahead(x4)
    expect("ahead of time: said", not run.modules and "ahead of time" in run.notes[0], run.notes)
    with hj.capture() as run:
        jax.jit(f).lower(x4).compile()
    expect("compiled ahead of time inside", len(run.modules) == 1)

    # Names that no file can have; arguments that are left out; a function that compiles more than itself.
    def many(x, unused, *, scale):
        with jax.ensure_compile_time_eval():
            more = float(jnp.sum(jnp.arange(3) * 2))
        return f(x) * scale + more
    many.__name__ = "g" * 300
    folder = tmp / "long"
    long = hj.record(many, x4, x8, scale=x4, folder=folder)
    expect("short names", long.module_name.startswith("jit_ggg") and max(len(p.name) for p in folder.iterdir()) < 250, long.module_name)
    expect("one module of all that it compiles", len(list(folder.glob("*before_optimizations.txt"))) == 1)
    expect("arguments that are left out", long.check().verdict == "right", long.check())
    with hj.capture() as run:
        jax.jit(many)(x4, x8, scale=x4)
    expect("capture has the others, too", len(run.modules) > 1 and sum(m.function.startswith("ggg") for m in run.modules) == 1, run.modules)
    processes = jax.process_count
    jax.process_count = lambda: 2
    try:
        refused("several processes", "process 0 of 2", lambda: hj.record(f, x4))
    finally:
        jax.process_count = processes


def m1(x, i, j):
    inner = lax.dynamic_slice(x, (i,), (5,), allow_negative_indices=False)
    return lax.dynamic_slice(inner, (j,), (2,), allow_negative_indices=False)


def m2(x, p, q, c):
    u = lax.dynamic_update_slice(lax.dynamic_slice(x, (p,), (4,), allow_negative_indices=False), c, (q,), allow_negative_indices=False)
    return lax.dynamic_update_slice(x, u, (p,), allow_negative_indices=False)


def m3(x):
    return lax.reduce_window(lax.pad(x, 0.0, ((0, 0, 2), (-1, 0, 0))), 0.0, lax.add, (1, 2), (1, 1), ((0, 0), (1, 0)))


def loop(start, end):
    return lambda a: lax.while_loop(lambda s: s[0] < end if start < end else s[0] <= end, lambda s: (s[0] + 2, s[1] + 1.0), (s32(start), a))[1]


def m55(x):
    b = x * 2
    u = lax.dynamic_update_slice(b, lax.slice(b, (0, 0, 0), (5, 1, 1)), (s32(1), s32(0), s32(0)))
    return lax.reshape(u, (1, 6, 1))


# Numbers of ../shared/miscompiles.md; function, arguments, pass (None: below HLO).
FAULTS = {
    "M001": (m1, (x8, s32(7), s32(0)), "algsimp"),
    "M002": (m2, (x8, s32(6), s32(1), jnp.array([100.0, 101.0])), "algsimp"),
    "M003": (m3, (jnp.array([[7.0, 1, 2, 3]]),), "algsimp"),
    "M005": (lambda x: jnp.abs(x * x), (jnp.array([12, -5, 3], jnp.int8),), "algsimp"),
    "M011": (lambda a: jnp.log(lax.pow(a, a)), (jnp.array([-1.5, 2.0]),), "algsimp"),
    "M030": (loop(-2, 1), (jnp.float32(0),), "simplify-while-loops"),
    "M032": (loop(5, 4), (jnp.float32(0),), "simplify-while-loops"),
    "M055": (m55, (jnp.arange(1, 7, dtype=jnp.int32).reshape(6, 1, 1),), None),
}
# What decides, and the opcode that does.
DISPUTES = {
    "range": ("exponential", lambda x: jnp.log(jnp.exp(x)), (jnp.array([89.0, 1.0]),)),
    "range, again": ("multiply", lambda x: jnp.sqrt(x * x), (jnp.array([1e30, 1.0]),)),
    "denormals": ("multiply", lambda x: x * 1e-3, (jnp.array([1e-37, 1e-30]),)),
    "sort-ties": ("sort", lambda k, v: lax.sort((k, v), num_keys=1, is_stable=False)[1], (jnp.array([1.0, 2.0] * 20), jnp.arange(40))),
    "random": ("rng", lambda a, b: lax.rng_uniform(a, b, (5,)) + 1, (jnp.float32(0), jnp.float32(1))),
    "reduce-order": ("reduce", lambda x: lax.reduce(x, jnp.float32(0), lambda a, b: a - b, (0, 1)), (jnp.arange(64.0 * 33).reshape(64, 33),)),
}


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


SOUND = {
    "softmax": (jax.nn.softmax, (normal(0, 8, 64),)),
    "products": (lambda a, b: jnp.tanh(a @ b), (normal(0, 64, 128), normal(1, 128, 32))),
    "a gradient": (jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), (normal(0, 100),)),
    "layer norm": (lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5), (normal(0, 8, 64),)),
    "a scan": (lambda x: lax.scan(lambda c, a: (c * 0.9 + a, c), 0.0, x), (normal(0, 100),)),
    "a random key": (lambda k: jax.random.normal(k, (10,)), (jax.random.key(3),)),
    "bf16": (lambda x: x * x + x, (normal(0, 64).astype(jnp.bfloat16),)),
    "numbers of Python and numpy": (lambda x, y: x * y, (np.arange(5), 3.0)),
    "no arguments": (lambda: jnp.arange(3.0) * 2, ()),
    "i4 and f8": (lambda a, b: {"none": None, "a": a + a, "b": (b * b).astype(jnp.bfloat16)}, (jnp.arange(5).astype(jnp.int4), x4.astype(jnp.float8_e4m3fn))),
    "a convolution": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), (normal(0, 2, 3, 16, 16), normal(1, 4, 3, 3, 3))),
    # Defined, or left open and the same in both.
    "out of range, the same in both": (lambda x: x.astype(jnp.int32), (jnp.array([3e9, jnp.nan, -7e9, 1.5]),)),
    "donated": (jax.jit(lambda s: {"a": s["a"] + 1}, donate_argnums=0), ({"a": x4 + 0},)),
}


def checks():
    for name, (fn, arguments, guilty) in FAULTS.items():
        c = hj.check(fn, *arguments)
        expect(name, c.verdict == "wrong" and c.departs["pass"] == guilty and c.departs["below_hlo"] == (guilty is None), c)
        expect(f"{name}: source line", guilty is None or "jax_test.py:" in (c.departs["source"] or ""), c.departs)
        expect(f"{name} in words", repr(c).startswith("wrong: "), c)
    for name, (opcode, fn, arguments) in DISPUTES.items():
        c = hj.check(fn, *arguments)
        named = [(d["kind"], d["opcode"]) for d in c.decides]
        expect(name, c.verdict == "contract" and named == [(name.split(",")[0], opcode)], c)
        expect(f"{name}: source line", all("jax_test.py:" in d["source"] for d in c.decides), c.decides)
    for name, (fn, arguments) in SOUND.items():
        c = hj.check(fn, *arguments)
        expect(name, c.verdict == "right", c)
        expect(f"{name}: operation by operation", c.reference and c.reference["verdict"] in ("right", "rounding"), c)
    expect("operation by operation, not asked", hj.check(f, x4, by_operations=False).reference is None)
    c = hj.check(lambda x: lax.linalg.cholesky(x), jnp.eye(3))
    expect("a call of LAPACK", c.verdict == "right", c)
    c = hj.check(lambda x: jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((3,), jnp.float32), x), jnp.ones(3))
    expect("unknown", c.verdict == "unknown" and "custom-call" in c.why, c)
    b = hj.bisect(m1, *FAULTS["M001"][1])
    expect("bisect", b.found and b.pass_name == "algsimp" and "jax_test.py:" in (b.source_line or ""), b)
    expect("bisect of a sound one", hj.bisect(f, x4).found is False)
    triages()
    static = jax.jit(lambda x, n: x * n, static_argnums=1)
    refused("static arguments", "functools.partial", lambda: hj.check(static, x4, 3))
    expect("static arguments are recorded", hj.record(static, x4, 3).function == "<lambda>" or hj.record(static, x4, 3).stages)
    refused("no function", "no function", lambda: hj.record(7))


def triages():
    """One call from a function and its arguments to the culprit."""
    t = hj.triage(m1, *FAULTS["M001"][1])
    expect("triage: a fault by the arguments that it had", (t.verdict, t.pass_name, t.sure) == ("fault", "algsimp", "tested") and "jax_test.py:" in (t.source or "") and repr(t).startswith("fault: pass algsimp"), t)
    t = hj.triage(lambda x: jnp.log(jnp.exp(x)), jnp.array([1.0, 89.0]))
    expect("triage: a contract", t.verdict == "contract" and t.recording.folder.exists(), t)
    t = hj.triage(f, x4, time_limit=30)
    expect("triage: nothing wrong", t.verdict == "nothing", t)
    t = hj.triage(m55, *FAULTS["M055"][1])
    expect("triage: below the stages", t.verdict == "below", t)
    with tempfile.TemporaryDirectory() as tmp:
        t = hj.triage(lambda x: x / (x * 0), x4, complaint="nan", report=pathlib.Path(tmp) / "report")
        report = pathlib.Path(t.report or tmp)
        issue = (report / "issue.md").read_text() if t.report else ""
        expect("triage: a NaN of the program, and a report", t.verdict == "program" and "jax_test.py:" in (t.source or "") and "jax_test.py:" in issue and (report / "inputs.npz").exists(), (t, issue))
        folder = pathlib.Path(tmp) / "recorded"
        hj.triage(m1, *FAULTS["M001"][1], folder=folder)
        answer = _tool.ask("triage", folder)
        expect("triage of that folder takes the arguments that it had", answer["inputs"].endswith(".arguments.npz, of the first call") and answer["verdict"] == "fault", answer)
    t = hj.triage(lambda x: jnp.ones((1 << 40,)) + x, jnp.float32(1))
    expect("triage: no memory", t.complaint == "memory" and t.verdict == "program", t)
    refused("triage: static arguments", "functools.partial", lambda: hj.triage(jax.jit(lambda x, n: x * n, static_argnums=1), x4, 3))


def replacements():
    recorded = hj.record(f, x4)
    late, early = recorded.stage("after_optimizations").text, recorded.stages[0].text
    wanted = np.zeros(4)
    behind = hj.replace(f, late.replace(" tanh(", " negate("))
    expect("behind the passes", np.array_equal(behind(x4), wanted) and behind.way == "behind", behind.way)
    stable = hj.replace(f, early.replace(" tanh(", " negate("))
    expect("before the passes", np.array_equal(stable(x4), wanted) and stable.way == "stablehlo", stable.way)
    expect("compiled as it was given", " negate(" in stable.module.stages[0].text and " tanh(" not in stable.module.stages[0].text)
    expect("the function itself is as it was", np.allclose(jax.jit(f)(x4), np.tanh(np.arange(4.0)) + np.arange(4)))
    expect("by its own name", np.allclose(behind(x4), wanted) and np.allclose(jax.jit(lambda x: jnp.tanh(x))(x4), np.tanh(np.arange(4.0))))
    # A pass that is left out, and ours: both compute the same.
    for name, text in (("the same stage", late), ("before", early)):
        expect(name, np.allclose(hj.replace(f, text)(x4), f(x4)))
    refused("other arguments", "f32[8]", lambda: behind(x8))
    refused("another signature", "is wanted", lambda: hj.replace(f, "HloModule m\nENTRY e { ROOT p = f32[5] parameter(0) }\n")(x4))
    refused("what the verifier refuses", "not right", lambda: hj.replace(f, early.replace("f32[4]{0} tanh(", "f32[3]{0} tanh(")))
    refused("fusions", "StableHLO carries no fusion", lambda: hj.replace(f, late.replace("is_scheduled=true, ", ""), way="stablehlo"))
    refused("a schedule", "is_scheduled", lambda: hj.replace(f, late, way="stablehlo"))
    layouts = "HloModule m\nENTRY e { p = f32[2,3]{1,0} parameter(0) ROOT c = f32[2,3]{0,1} copy(p) }\n"
    turn = lambda x: lax.fori_loop(0, 5, lambda i, s: (s[1], s[0] + i), (x, x * 2))
    recorded = hj.record(turn, x4)
    refused("copies that are missing", "lacks copies", lambda: hj.replace(turn, recorded.stages[0].text, way="behind"))
    for stage, way in (("before_optimizations", "stablehlo"), ("after_optimizations", "behind")):
        loop_ = hj.replace(turn, recorded.stage(stage).text)
        expect(f"a loop, {way}", loop_.way == way and all(np.array_equal(a, b) for a, b in zip(loop_(x4), turn(x4))), loop_.way)
    random = lambda k: jax.random.uniform(k, (3,))
    key = jax.random.key(0)
    again = hj.replace(random, hj.record(random, key).stages[0].text)
    expect("shardings are carried", again.way == "stablehlo" and np.array_equal(again(key), random(key)), again.way)
    refused("layouts", "layout [2,3]{0,1}", lambda: hj.replace(lambda x: x * 1, layouts, way="stablehlo"))
    custom = 'HloModule m\nENTRY e { p = f32[4]{0} parameter(0) ROOT c = f32[4]{0} custom-call(p), custom_call_target="nobody" }\n'
    refused("custom calls", "custom-call (c)", lambda: hj.replace(f, custom, way="stablehlo"))
    donated = jax.jit(f, donate_argnums=0)
    refused("aliasing", "input_output_alias", lambda: hj.replace(donated, hj.record(donated, x4 + 0).stages[0].text, way="stablehlo"))
    refused("aliasing behind", "aliasing", lambda: hj.replace(donated, late)(x4 + 0))
    refused("no such way", "unknown way", lambda: hj.replace(f, early, way="sideways"))
    refused("no module", "not int", lambda: hj.replace(f, 7))


def one_recording(tmp):
    """record and capture give hlo_replay's Recording; old spellings warn; what is kept."""
    recorded = hj.record(f, x4, folder=tmp / "kept", keep="all")
    expect("one noun", type(recorded) is hlo.Recording and type(recorded.stages[0]) is hlo.Stage and isinstance(recorded.stages[0].module, hlo.Module))
    told = recorded.captured
    expect("what is kept", told.versions["jax"] == jax.__version__ and told.kept == "all" and told.table()["name"] == ["p0"], told)
    expect("its arguments", np.array_equal(told.arguments()["p0"], np.arange(4.0, dtype=np.float32)) and told.arguments(recorded.number), told.arguments())
    low = hj.record(lambda a: a + a, x4.astype(jnp.bfloat16)).captured
    expect("narrow types in their own", low.arguments()["p0"].dtype == jnp.bfloat16, low.arguments())
    stem = f"module_{recorded.number:04}.jit_f"
    expect("its files", all((tmp / "kept" / (stem + end)).exists() for end in (".arguments.npz", ".stablehlo.mlir")), list((tmp / "kept").iterdir()))
    again = hlo.open(tmp / "kept")
    expect("opened again", again.fingerprint == recorded.fingerprint and again.exec(0).inputs == stem + ".arguments.npz, of the first call", again.exec(0).inputs)
    expect("nothing is kept where none is asked for", not list(hj.record(f, x4, keep="none").folder.glob("*.npz")))
    def drawn(key, n):
        return jax.random.normal(key, (3,)) * n
    refused("no such choice", "there are none, small, all", lambda: hj.record(f, x4, keep="some"))
    refused("no such choice of capture", "there are none, small, all", lambda: hj.capture(arguments="some").__enter__())
    with hj.capture(tmp / "captured") as run:
        jax.jit(f)(x4)
        jax.jit(drawn)(jax.random.key(1), 2.0)
    expect("one noun of capture", type(run) is hlo.Recording and all(type(m) is hlo.Recording for m in run.modules))
    module = run["f"]
    expect("captured arguments and results", len(list(module.folder.glob("*.arguments.npz")) + list(module.folder.glob("*.results.npz"))) == 2, list(module.folder.iterdir()))
    expect("checked by what lies there", module.check().verdict == "right" and module.check().inputs, module.check())
    expect("a key of jax", run["drawn"].check().verdict in ("right", "rounding"), run["drawn"].check())
    import warnings
    for name, ask in (("a place", lambda: run[0]), ("going over it", lambda: list(run)), ("len", lambda: len(run)), ("text", lambda: recorded.text("after_optimizations")),
                      ("stages as dicts", lambda: recorded.stages[0]["name"]), ("bisect's dict", lambda: hj.bisect(f, x4)["found"]), ("before", lambda: recorded.before),
                      ("Module", lambda: hj.Module), ("Run", lambda: hj.Run), ("name", lambda: recorded.name)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            ask()
        expect(f"{name}: warns", [w.category for w in seen if "will go" in str(w.message)], seen)


def documentation():
    """The snippets of docs/jax.md, one after the other."""
    text = (pathlib.Path(source) / "docs" / "jax.md").read_text()
    folder = tempfile.TemporaryDirectory()
    file = pathlib.Path(folder.name) / "model.py"
    file.write_text("\n".join(re.findall(r"```python.tested\n(.*?)```", text, re.S)))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(file.read_text(), str(file), "exec"), {"__name__": "snippets"})
    for line in re.findall(r"# (contract: .*|\[0\. .*)$", text, re.M):
        expect("docs/jax.md says what comes out", line in out.getvalue(), out.getvalue())
    folder.cleanup()


with tempfile.TemporaryDirectory() as directory:
    tempfile.tempdir = directory  # what is recorded without a folder
    traps(pathlib.Path(directory))
    one_recording(pathlib.Path(directory))
    checks()
    replacements()
    documentation()
print("jax_test:", "FAILED" if failures else "passed")
sys.exit(1 if failures else 0)
