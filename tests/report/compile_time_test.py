#!/usr/bin/env python3
"""compile-time: what logs and dumps tell of a compilation's time, joined; what they do not tell is unknown.  The logs are
as XLA (jaxlib 0.12.0.1) and jax print them; times of files are set by the test as XLA leaves them."""
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import expect, finish, run, source
from json_schema import Schemas

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
MODULE = "HloModule jit_f\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT r = f32[4]{0} tanh(p)\n}\n"


def answer(name, code, *args, **how):
    got, out, err = run("compile-time", *args, "--json", **how)
    expect(f"{name}: exit code {code}", got == code, f"{got} {err[:300]}")
    value = json.loads(out) if out.startswith("{") else {}
    why = schemas.wrong(value, "error.json" if code == 2 else "compile_time.json")
    expect(f"{name}: schema", not why, why)
    return value


def only(name, *args, **how):
    modules = answer(name, 0, *args, **how)["modules"]
    expect(f"{name}: one compilation", len(modules) == 1, modules)
    return modules[0]


def parts(m, phase):
    return {p["name"]: (round(p["seconds"], 6), p["runs"]) for p in m["parts"] if p["phase"] == phase}


def near(x, y):
    return x is not None and abs(x - y) < 1e-6 + 1e-6 * abs(y)


def timer(at, place, what, us):
    words = f"{us} us" if us < 1000 else f"{us / 1000:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"
    return f"I1128 11:14:{at:09.6f}   17715 {place}] {what} time: {words} ({us} us) (cumulative: {words}, max: {words}, #called: 1)\n"


def line(at, place, words):
    return f"I1128 11:14:{at:09.6f}   17715 {place}] {words}\n"


GPU = (line(1, "hlo_pass_pipeline.cc:303", "Running HLO pass pipeline on module jit_f: optimization")
       + line(1, "hlo_pass_pipeline.cc:211", "  HLO pass simplification")
       + line(1, "hlo_pass_pipeline.cc:303", "Running HLO pass pipeline on module jit_f: simplification")
       + line(1, "hlo_pass_pipeline.cc:211", "  HLO pass algsimp")
       + timer(1.1, "hlo_pass_pipeline.cc:206", "HLO pass: algsimp", 100000)
       + timer(1.1, "hlo_pass_pipeline.cc:206", "HLO pass: simplification", 100500)
       + line(1.1, "hlo_pass_pipeline.cc:303", "Running HLO pass pipeline on module jit_f: config-assigner")
       + line(1.1, "hlo_pass_pipeline.cc:211", "  HLO pass config-assigner")
       + timer(1.3, "compile_module_to_llvm_ir.cc:265", "GpuCompiler::RunBackend - IR emission for gemm_fusion_dot.2", 210811)
       + timer(1.3, "gpu_compiler.cc:2917", "GpuCompiler::RunBackend for gemm_fusion_dot.2", 220000)
       + timer(1.4, "hlo_pass_pipeline.cc:206", "HLO pass: config-assigner", 290000)
       + timer(1.5, "gpu_compiler.cc:2379", "GpuCompiler::RunHloPasses for jit_f", 409022)
       + timer(1.6, "nvptx_compiler.cc:625", "NVPTXCompiler::CompileTargetBinary - CompileToPtx for jit_f", 13693)
       + timer(1.7, "nvptx_compiler.cc:685", "NVPTXCompiler::CompileTargetBinary - PtxToCubin for jit_f", 63444)
       + timer(1.7, "nvptx_compiler.cc:625", "NVPTXCompiler::CompileTargetBinary - CompileToPtx for jit_f", 16818)
       + timer(20.7, "nvptx_compiler.cc:685", "NVPTXCompiler::CompileTargetBinary - PtxToCubin for jit_f", 19000000)
       + timer(20.8, "compile_module_to_llvm_ir.cc:265", "GpuCompiler::RunBackend - IR emission for jit_f", 19203918)
       + timer(20.9, "gpu_compiler.cc:2917", "GpuCompiler::RunBackend for jit_f", 19214735))
JAX = ("Finished tracing f for jit in 0.033078671 sec\nFinished jaxpr to MLIR module conversion jit(f) in 0.016326189 sec\n",
       "Finished XLA compilation of jit(f) in 20.125 sec\n")
CPU = "".join(line(k, "hlo_pass_pipeline.cc:303", f"Running HLO pass pipeline on module jit_{n}: fusion") + timer(k, "hlo_pass_pipeline.cc:206", "HLO pass: fusion", 500)
              + line(k, "hlo_pass_pipeline.cc:211", "  HLO pass simplification after layout assignment")
              + line(k, "hlo_pass_pipeline.cc:303", f"Running HLO pass pipeline on module jit_{n}: simplification after layout assignment")
              + timer(k, "hlo_pass_pipeline.cc:206", "HLO pass: simplification after layout assignment", 400)
              + timer(k, "cpu_compiler.cc:1369", f"Running HLO passes on [jit_{n}] for CPU", 1831)
              + line(k, "hlo_pass_pipeline.cc:303", f"Running HLO pass pipeline on module jit_{n}: HLO passes after scheduling")
              + timer(k, "ir_compiler.cc:298", f"Compiled LLVM module: __compute_module_{n}_kernel", 27089)
              + timer(k, "cpu_compiler.cc:2198", f"Compiling [jit_{n}] for CPU using JIT", 53636) for k, n in ((1, "f"), (2, "g")))
STATS = (line(33, "compilation_stats.cc:133", "Total runtime (ms) of HLO passes: 192.984") + line(33, "compilation_stats.cc:134", "Pass name, num runs, time (ms)")
         + line(33, "compilation_stats.cc:136", "config-assigner, 1, 174.963") + line(33, "compilation_stats.cc:136", "algsimp, 9, 0.259") + line(33, "x.cc:1", "well, it goes on, 3"))
FOLD = """Constant folding an instruction is taking > 1s:

  %reduce_window_sum.7 = f32[1500,1500]{1,0} reduce-window(%jit_f_.1, %constant.3), window={size=30x30 pad=14_15x14_15}, to_apply=%region_0.1, metadata={op_name="jit(f)/reduce_window_sum" source_file="model.py" source_line=5}

This isn't necessarily a bug; constant-folding is inherently a trade-off between compilation time and speed at runtime.
"""
FOLDING = "E1128 11:19:34.709323   22390 slow_operation_alarm.cc:74] " + FOLD + "E1128 11:19:54.954916   22350 slow_operation_alarm.cc:141] The operation took 21.259506923s\n" + FOLD + "Finished XLA compilation of jit(f) in 21.274746895 sec\n"
ALARM = """2025-03-19 07:30:02.045318: E external/xla/xla/service/slow_operation_alarm.cc:73]
********************************
[Compiling module reactant_loop_] Very slow compile? If you want to file a bug, run with envvar XLA_FLAGS=--xla_dump_to=/tmp/foo and attach the results.
********************************
"""
TOOK = "2025-03-19 07:30:14.895694: E external/xla/xla/service/slow_operation_alarm.cc:140] The operation took 2m12.850942799s\n\n"


def dump(folder, stages=4, kernels=2, metadata=False, name="jit_f", number=1, begin=1_700_000_000, behind=24.0):
    """As XLA leaves a GPU's, with the times at which it writes: passes 0.02 s, then `behind` seconds."""
    folder.mkdir(exist_ok=True)
    stem = f"module_{number:04}.{name}"
    files = [(f"{stem}.before_optimizations.txt", 0.0)]
    files += [(f"{stem}.{n:04}.simplification.after_algsimp.before_dce.txt", 0.001 + n * 0.001) for n in range(stages)]
    files += [(f"{stem}.sm_9.0a_gpu_after_optimizations.txt", 0.02)]
    for k in range(kernels):
        files += [(f"{stem}.{2 * k}.ir-no-opt.ll", 0.1 + k), (f"{stem}.{2 * k + 1}.ptx", 0.2 + k), (f"{stem}.{2 * k + 1}.ir-with-opt.ll", 0.7 + k)]
    files += [(f"{stem}.thunk_sequence.txt", 0.02 + behind)]
    for k, (file, _) in enumerate(files):
        (folder / file).write_text(f".version 8.5\n.target sm_90a\n.address_size 64\n\n.visible .entry fusion_{file.split('.')[2]}()\n{{\n  ret;\n}}\n" if file.endswith(".ptx") else MODULE)
    if metadata:
        us = begin * 1_000_000
        block = 'pass_metadata {{\n  pass_id: 1\n  pass_name: "{}"\n  pipeline_name: "{}"\n{}  start_timestamp_usec: {}\n  end_timestamp_usec: {}\n}}\n'
        (folder / f"module_{number:04}.metadata.textproto").write_text(
            block.format("simplification", "optimization", "", us, us + 9000) + block.format("algsimp", "simplification", "", us + 1000, us + 8000)
            + block.format("config-assigner", "config-assigner", "  module_changed: true\n", us + 10000, us + 18000))
    for file, at in files:
        ns = begin * 10**9 + round(at * 1e9)
        os.utime(folder / file, ns=(ns, ns))
    return folder


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def file(name, text):
        (tmp / name).write_text(text)
        return tmp / name

    m = only("a GPU's log", file("gpu.log", GPU))
    expect("module", m["module"] == "jit_f" and near(m["total"]["seconds"], 19.623757) and near(m["passes"]["seconds"], 0.409022) and near(m["behind"]["seconds"], 19.214735), m)
    expect("a pipeline's passes are counted once", parts(m, "pass") == {"algsimp": (0.1, 1), "config-assigner": (0.29, 1)}, m["parts"])
    expect("autotuning", near(m["autotuning_seconds"], 0.29), m)
    expect("what the autotuner tries is its own", list(parts(m, "candidates").values()) == [(0.210811, 1)] and "gemm_fusion_dot.2" in str(parts(m, "candidates")), m["parts"])
    expect("behind", parts(m, "llvm") == {"": (0.030511, 2)} and parts(m, "assembler") == {"": (19.063444, 2)} and parts(m, "emission") == {"": (19.203918, 1)}, m["parts"])
    expect("which kernel is not told", len(m["not_told"]) == 1 and "xla_dump_emitter_re" in m["not_told"][0], m["not_told"])
    code, out, _ = run("compile-time", tmp / "gpu.log")
    expect("in words", code == 0 and "98 %" in out and "ptxas" in out and "config-assigner: autotuning" in out, out)
    m = only("…from standard input", "-", stdin=JAX[0] + GPU + JAX[1])
    expect("jax's clock counts", near(m["total"]["seconds"], 20.125) and m["total"]["from"] == "jax" and near(m["tracing_seconds"], 0.033078671) and near(m["lowering_seconds"], 0.016326189), m)
    # What it calls is traced within it.
    m = only("a function that another one calls", file("inner.log", "Finished tracing g for jit in 0.01 sec\n" + "".join(JAX)))
    expect("tracing is counted once", near(m["tracing_seconds"], 0.033078671), m)
    m = only("with jax's line of its arguments", file("compiling.log", JAX[0].replace("Finished jaxpr", "Compiling f with global shapes and types (ShapedArray(float32[4]),). Argument mapping: (UnspecifiedValue,).\nFinished jaxpr") + JAX[1]))
    expect("the same", near(m["tracing_seconds"], 0.033078671) and near(m["lowering_seconds"], 0.016326189) and near(m["total"]["seconds"], 20.125), m)
    m = only("jax alone", file("jax.log", "".join(JAX)))
    expect("jax alone: the rest is unknown", m["passes"]["seconds"] is None and m["behind"]["seconds"] is None and m["parts"] == [] and len(m["not_told"]) == 2, m)
    both = answer("a CPU's log", 0, file("cpu.log", CPU))["modules"]
    expect("two modules", sorted(m["module"] for m in both) == ["jit_f", "jit_g"], both)
    for m in both:
        n = m["module"][-1]
        expect(f"CPU: {n}", parts(m, "llvm") == {f"__compute_module_{n}_kernel": (0.027089, 1)} and parts(m, "pass") == {"fusion": (0.0005, 1)} and near(m["behind"]["seconds"], 0.051805) and m["not_told"] == [], m)
    m = only("a table of passes", file("stats.log", STATS + JAX[1]))
    expect("table", parts(m, "pass") == {"config-assigner": (0.174963, 1), "algsimp": (0.000259, 9)} and near(m["passes"]["seconds"], 0.192984) and near(m["behind"]["seconds"], 20.125 - 0.192984) and m["module"] == "jit_f", m)
    m = only("a table alone", file("stats_alone.log", STATS))
    expect("a table alone has no module", m["module"] == "" and near(m["passes"]["seconds"], 0.192984) and m["total"]["seconds"] is None, m)
    m = only("a slow constant", file("fold.log", FOLDING))
    expect("slow", len(m["slow"]) == 1 and near(m["slow"][0]["seconds"], 21.259506923) and m["slow"][0]["at_least"] == 1 and "%reduce_window_sum.7" in m["slow"][0]["what"], m["slow"])
    m = only("an alarm", file("alarm.log", ALARM + TOOK + ALARM.split("\n", 1)[1]))
    expect("alarm", m["module"] == "reactant_loop_" and near(m["total"]["seconds"], 132.850942799), m)
    m = only("…that goes on", file("alarm_on.log", ALARM))
    expect("no end is told", m["total"]["seconds"] is None and m["slow"][0]["seconds"] is None, m)
    behind = timer(1.6, "nvptx_compiler.cc:625", "NVPTXCompiler::CompileTargetBinary - CompileToPtx for jit_f", 13693)
    two = [line(1, "hlo_pass_pipeline.cc:303", f"Running HLO pass pipeline on module jit_{n}: optimization") for n in "fg"]
    tried = timer(1.3, "compile_module_to_llvm_ir.cc:265", "GpuCompiler::RunBackend - IR emission for gemm_fusion_dot.2", 210811)
    ends = [timer(2, "gpu_compiler.cc:2379", f"GpuCompiler::RunHloPasses for jit_{n}", 500000) + timer(3, "gpu_compiler.cc:2917", f"GpuCompiler::RunBackend for jit_{n}", 100000) for n in "fg"]
    both = {m["module"]: m for m in answer("two at once", 0, file("two.log", two[0] + two[1] + tried + ends[0] + ends[1]))["modules"]}
    expect("two at once: what the autotuner tries is nobody's", len(both) == 3 and parts(both["jit_f"], "candidates") == {} and parts(both["jit_g"], "candidates") == {} and both[""]["notes"], both)
    both = {m["module"]: m for m in answer("one behind the other", 0, file("behind.log", two[0] + ends[0] + two[1] + tried + ends[1]))["modules"]}
    expect("one behind the other", len(both) == 2 and parts(both["jit_f"], "candidates") == {} and len(parts(both["jit_g"], "candidates")) == 1, both)
    cut = only("a log that ends in the passes", file("cut.log", GPU[: GPU.index(behind)]))
    expect("cut", cut["behind"]["seconds"] is None and cut["notes"] and near(cut["passes"]["seconds"], 0.409022), cut)
    answer("nothing told", 1, file("none.log", line(1, "a.cc:1", "it is a fine day")))
    answer("hostile numbers", 1, file("odd.log", line(1, "a.cc:1", "x time: 1e999 s (cumulative: 1 s)") + line(1, "a.cc:1", "x time: -3 s (cumulative: 1 s)") + line(1, "c.cc:1", "Total runtime (ms) of HLO passes: nan")))
    answer("a module", 2, file("m.hlo", MODULE))
    answer("--log of a log", 2, tmp / "gpu.log", f"--log={tmp / 'gpu.log'}")

    # Dumps: the files' own times, where they are XLA's.
    fresh = dump(tmp / "fresh")
    m = only("a dump as XLA left it", fresh)
    expect("by its files", near(m["passes"]["seconds"], 0.02) and near(m["behind"]["seconds"], 24) and near(m["total"]["seconds"], 24.02), m)
    expect("ptxas by kernel", parts(m, "assembler") == {"fusion_1": (0.5, 1), "fusion_3": (0.5, 1)}, m["parts"])
    code, out, _ = run(fresh)
    expect("a line in the first minute", "24.000 s below HLO" in out and "compile-time" in out, out[:600])
    m = only("…with a record of passes", dump(tmp / "whole", metadata=True))
    expect("both", near(m["behind"]["seconds"], 24) and parts(m, "pass") == {"simplification": (0.002, 1), "algsimp": (0.007, 1), "config-assigner": (0.008, 1)} and near(m["autotuning_seconds"], 0.008), m)
    expect("the first minute counts a pipeline's passes once", "passes took 17.000 ms" in run(tmp / "whole")[1], run(tmp / "whole")[1][:400])
    m = only("…and a log", tmp / "whole", f"--log={tmp / 'gpu.log'}")
    expect("the log's clock counts, the dump names kernels", near(m["total"]["seconds"], 19.623757) and parts(m, "assembler").keys() == {"fusion_1", "fusion_3"} and parts(m, "llvm") == {"": (0.030511, 2)}, m)
    for name, how in (("in order of names", lambda files: [(f, k) for k, f in enumerate(sorted(files))]), ("all at once", lambda files: [(f, 0) for f in files]),
                      ("backwards", lambda files: [(f, -k) for k, f in enumerate(sorted(files))])):
        copied = tmp / ("copied " + name)
        shutil.copytree(fresh, copied)
        for f, k in how([f.name for f in copied.iterdir()]):
            os.utime(copied / f, ns=((1_800_000_000 + k) * 10**9,) * 2)
        modules = answer(f"a copy, {name}", 1, copied)["modules"]
        expect(f"a copy, {name}: unknown", modules[0]["total"]["seconds"] is None and modules[0]["notes"], modules)
        expect(f"a copy, {name}: no line in the first minute", "below HLO" not in run(copied)[1])
    late = dump(tmp / "late", metadata=True)
    for f in late.iterdir():
        t = f.stat().st_mtime_ns + 3600 * 10**9
        os.utime(f, ns=(t, t))
    m = only("times an hour behind the passes'", late)
    expect("…are not gone by", m["behind"]["seconds"] is None and near(m["passes"]["seconds"], 0.017), m)
    whole = dump(tmp / "seconds", metadata=True)
    for f in whole.iterdir():
        os.utime(f, ns=(f.stat().st_mtime_ns // 10**9 * 10**9,) * 2)
    m = only("times cut to seconds", whole)
    expect("…are said to be", near(m["total"]["seconds"], 24) and any("whole seconds" in n for n in m["notes"]) and "about 24" in run(whole)[1] and parts(m, "assembler") == {}, m)
    short = dump(tmp / "short", behind=2.0, metadata=True)
    for f in short.iterdir():
        os.utime(f, ns=(f.stat().st_mtime_ns // 10**9 * 10**9,) * 2)
    m = only("…of a short one", short)
    expect("…tell nothing", m["total"]["seconds"] is None and near(m["passes"]["seconds"], 0.017) and "below HLO" not in run(short)[1], m)
    few = dump(tmp / "few", stages=0, kernels=0)
    answer("too few files", 1, few)
    twice = dump(tmp / "twice")
    dump(twice, number=2)
    answer2 = answer("two of one name, a log of one", 0, twice, f"--log={tmp / 'gpu.log'}")
    expect("they are not joined", len(answer2["modules"]) == 3 and answer2["problems"], answer2["problems"])
    m = only("one of two", f"{twice}:2")
    expect("one of two", m["number"] == 2, m)

    # triage goes there.
    def verdict(name, code, word, *args):
        got, out, err = run("triage", *args, "--json")
        v = json.loads(out) if out.startswith("{") else {}
        expect(f"triage, {name}", got == code and v.get("verdict") == word, f"{got} {out[:600]} {err}")
        return v
    v = verdict("ptxas", 1, "below", tmp / "gpu.log", "--complaint=compile-time")
    expect("triage says where", "below HLO" in str(v), v)
    v = verdict("a constant", 1, "program", tmp / "fold.log")
    expect("triage names it", "constant_folding" in str(v) and "reduce_window_sum.7" in str(v), v)
    verdict("jax alone", 2, "unknown", tmp / "jax.log")
    verdict("a dump", 1, "below", fresh, "--complaint=compile-time")
    verdict("a copy", 2, "unknown", tmp / "copied all at once", "--complaint=compile-time")

finish("compile_time_test")
