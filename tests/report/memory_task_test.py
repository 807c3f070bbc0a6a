#!/usr/bin/env python3
"""memory as a task: what a log says joined to a dump (--log), the peak stage by stage (--stages), levers compiled by our passes (--try).  The dump is
XLA's of a small training step (testdata/memory/); logs are in the words of XLA, tsl's BFC allocator and PJRT."""
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run, source
from json_schema import Schemas

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
DUMP = pathlib.Path(data) / "memory"


def answer(name, code, *args, **how):
    got, out, err = run("memory", *args, "--json", **how)
    expect(f"{name}: exit code {code}", got == code, f"{got} {err[:300]}")
    value = json.loads(out) if out.startswith("{") else {}
    why = schemas.wrong(value, "error.json" if code == 2 else "memory.json")
    expect(f"{name}: schema", not why, why)
    return value


module = answer("plain", 0, DUMP)["modules"][0]
TEMPORARIES = module["temporary_bytes"]
MIB = 1 << 20
ROUNDED = (TEMPORARIES + 255) // 256 * 256  # as the allocator does
expect("the dump", module["from"] == "XLA's buffer assignment" and TEMPORARIES // MIB == 368 and module["stages"] is None and module["tried"] is None, module["from"])
code, out, err = run("memory", DUMP)
expect("lines with their largest value", any("two_layers.py:9" in l and "values, the largest" in l for l in out.splitlines()), out)

LOGS = {
    "runtime": f"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate {TEMPORARIES} bytes.\n",
    "runtime, rounded": "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 368.00MiB.\n",
    "a driver's": f"E1128 11:00:00.000000 7 cuda_executor.cc:10] failed to allocate 368.00MiB ({TEMPORARIES} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
    "BFC": f"W1128 11:00:00.000000 7 bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 368.00MiB (rounded to {ROUNDED})requested by op \n",
    "TPU": "RESOURCE_EXHAUSTED: Attempting to reserve 368.00M at the bottom of memory. That was not possible.\n",
}
with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def log(text):
        (tmp / "log").write_text(text)
        return f"--log={tmp / 'log'}"

    for name, text in LOGS.items():
        v = answer(name, 0, DUMP, log("Traceback\n" + text * 3))["log"]
        c = v["complaints"]
        expect(f"{name}: the allocation", len(c) == 1 and c[0]["times"] == 3 and c[0]["line"] == 2 and [(a["kind"], a["module"], a["bytes"]) for a in c[0]["allocations"]] == [("temporary", "jit_train_step", TEMPORARIES)], c)
        expect(f"{name}: its line", c[0]["allocations"][0]["source"].startswith("two_layers.py:") if c and c[0]["allocations"] else False, c)
    code, out, err = run("memory", DUMP, log(LOGS["runtime"]))
    expect("in words", code == 0 and "the temporaries of jit_train_step (0001): 368.00MiB" in out and "alive at its peak, at loop_convert_fusion.1" in out and "two_layers.py:9" in out, out)
    code, out, err = run("memory", DUMP, log(LOGS["runtime"]), "--stages")
    expect("in words, with stages", code == 0 and 0 < out.find("the temporaries of jit_train_step (0001): 368.00MiB") < out.find("stage by stage"), out)
    code, out, err = run("memory", DUMP, "--log=-", stdin=LOGS["runtime"])
    expect("standard input", code == 0 and "368.00MiB" in out, out + err)

    # What does not join is said: another size, several that fit, the allocator's other blocks.
    v = answer("another size", 1, DUMP, log("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3221225472 bytes.\n"))["log"]["complaints"][0]
    expect("another size", v["allocations"] == [] and "no allocation of this module" in v["why_not"], v)
    v = answer("several", 0, DUMP, log("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2097152 bytes.\n"))["log"]["complaints"][0]
    expect("several", len(v["allocations"]) == 12, v["allocations"])
    bfc = ("I1128 1 7 bfc_allocator.cc:1100]      Summary of in-use Chunks by size: \nI1128 1 7 bfc_allocator.cc:1103] 9 Chunks of size 2097152 totalling 18.0MiB\n"
           f"I1128 1 7 bfc_allocator.cc:1103] 1 Chunks of size {ROUNDED} totalling 368.00MiB\nI1128 1 7 bfc_allocator.cc:1103] 3 Chunks of size 1073741824 totalling 3.00GiB\n"
           "I1128 1 7 bfc_allocator.cc:1110] Stats: \nLimit:                     64000000000\nInUse:                      4000000000\n")
    v = answer("blocks", 0, DUMP, log(LOGS["BFC"] + bfc))["log"]
    expect("blocks", v["blocks"] and v["blocks"]["count"] == 13 and v["blocks"]["joined_count"] == 10 and [b["bytes"] for b in v["blocks"]["not_joined"]] == [1 << 30] and v["in_use_bytes"] == 4000000000 and v["pool_bytes"] == 64000000000, v)
    code, out, err = run("memory", DUMP, log(LOGS["BFC"] + bfc))
    expect("blocks in words", "13 blocks in use" in out and "not joined: 3 of 1.00GiB" in out, out)

    # Rematerialization: by the name that its log tells, else by size.
    remat = "W1128 14:37:16.369941 9160 hlo_rematerialization.cc:3231] Can't reduce memory use below 300.00MiB (314572800 bytes) by rematerialization; only reduced to {0}.00MiB ({1} bytes), down from 500.00MiB (524288000 bytes) originally\n"
    v = answer("rematerialization", 0, DUMP, log(remat.format(390, 390 * MIB)))["log"]["complaints"][0]
    expect("rematerialization", v["kind"] == "rematerialization" and v["limit_bytes"] == 300 * MIB and v["reached_bytes"] == 390 * MIB and v["before_bytes"] == 500 * MIB and [m["module"] for m in v["modules"]] == ["jit_train_step"], v)
    v = answer("of another size", 1, DUMP, log(remat.format(3900, 3900 * MIB)))["log"]["complaints"][0]
    expect("of another size", v["modules"] == [] and v["why_not"], v)
    v = answer("by name", 0, DUMP, log("I1 hlo_rematerialization.cc:3209] Rematerialized 7 instructions in module jit_train_step; 9 net instructions added\n" + remat.format(3900, 3900 * MIB)))["log"]["complaints"][0]
    expect("by name", [m["module"] for m in v["modules"]] == ["jit_train_step"], v)
    v = answer("another's name", 1, DUMP, log("I1 hlo_rematerialization.cc:3209] Rematerialized 7 instructions in module jit_other; 9 net instructions added\n" + remat.format(390, 390 * MIB)))["log"]["complaints"][0]
    expect("another's name", v["modules"] == [] and "jit_other" in v["why_not"], v)

    # Buffers that XLA lists.
    peak = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 368.00MiB.\nPeak buffers:\n\tBuffer 1:\n\t\tSize: 64.00MiB\n\t\tXLA Label: {}\n\t\tShape: {}\n\t\t==========================\n"
    v = answer("buffers", 0, DUMP, log(peak.format("gemm_fusion_dot.6", "bf16[8192,4096]{1,0}")))["log"]["buffers"]
    expect("buffers", v[0]["joined"][0]["instruction"] == "gemm_fusion_dot.6" and v[0]["joined"][0]["source"] == "two_layers.py:8", v)
    v = answer("buffers of others", 0, DUMP, log(peak.format("gemm_fusion_dot.6", "bf16[1,4096]{1,0}")))["log"]["buffers"]
    expect("buffers of others", v[0]["joined"] == [], v)

    # A log that tells nothing; hostile ones.
    v = answer("nothing told", 1, DUMP, log("all is well\n"))["log"]
    expect("nothing told", v["found"] is False and v["complaints"] == [], v)
    for n, text in enumerate(("trying to allocate ", "trying to allocate 99999999999999999999999 bytes", "trying to allocate 1.0.0GiB", "trying to allocate 9e99GiB", "trying to allocate 99999999999GiB (",
                              "Can't reduce memory use below x; only reduced to", "9999999999999999999 Chunks of size 1 totalling", "9 Chunks of size 9223372036854775807 totalling 1B\n9 Chunks of size 9223372036854775807 t", "Limit: -5\nInUse: x")):
        code, out, err = run("memory", DUMP, log("RESOURCE_EXHAUSTED " + text + "\n"), "--json")
        expect(f"hostile {n}", code == 1 and not schemas.wrong(json.loads(out), "memory.json"), f"{code} {err}")
    answer("a log that is not there", 2, DUMP, f"--log={tmp / 'nowhere'}")

    # Stage by stage.
    v = answer("stages", 0, DUMP, "--stages")["modules"][0]["stages"]
    expect("stages", len(v["stages"]) == 4 and [s["scheduled"] for s in v["stages"]] == [False, False, False, True] and all(s["bytes"] > 0 for s in v["stages"]), v["stages"])
    expect("stages: the last as --orders has it", v["stages"][-1]["bytes"] == answer("orders", 0, DUMP, "--orders")["modules"][0]["orders"]["as_it_is_bytes"], v["stages"][-1])
    rises = [c["after_bytes"] - c["before_bytes"] for c in v["changes"]]
    expect("stages: the largest rise first", rises == sorted((r for r in rises if r > 0), reverse=True) + sorted(r for r in rises if r < 0), rises)
    code, out, err = run("memory", DUMP, "--stages")
    expect("stages in words", code == 0 and "3 of 4 stages have no schedule" in out and "an estimate" in out, out)
    broken = tmp / "broken"
    shutil.copytree(DUMP, broken)
    next(broken.glob("*0048*")).write_text("HloModule m\nENTRY e {\n  p = f32[\n")
    v = answer("a stage that cannot be read", 0, broken, "--stages")["modules"][0]["stages"]
    expect("a stage that cannot be read", [s["bytes"] is None for s in v["stages"]] == [False, False, True, False] and v["stages"][2]["why_not"], v["stages"])

    # Levers, by our passes.
    v = answer("try", 0, DUMP, "--try")["modules"][0]["tried"]
    kinds = {l["kind"]: l for l in reversed(v["levers"])}
    expect("try: donation and recomputation", {"donate", "rematerialize"} <= set(kinds) and v["why_not"] == "", [l["what"] for l in v["levers"]])
    compiled = [l for l in v["levers"] if l["compiled"]]
    expect("try: the best first", compiled and [l["allocated_after"] for l in compiled] == sorted(l["allocated_after"] for l in compiled), compiled)
    expect("try: each is held against the same", all(l["allocated_before"] == v["allocated_bytes"] and l["helps"] == (l["allocated_after"] < 0.995 * l["allocated_before"]) for l in compiled), compiled)
    expect("try: recomputation", "two_layers.py" in kinds["rematerialize"]["what"] and "jax.checkpoint" in kinds["rematerialize"]["how"] and kinds["rematerialize"]["source"].startswith("two_layers.py:"), kinds.get("rematerialize"))
    expect("try: donation", kinds["donate"]["foretold_bytes"] == 12 * MIB and 0 < kinds["donate"]["allocated_before"] - kinds["donate"]["allocated_after"] <= 12 * MIB, kinds.get("donate"))
    code, out, err = run("memory", DUMP, "--try")
    expect("try in words", code == 0 and "tried: each change compiled by our passes" in out and "predicted at most" in out and "donate_argnums" in out and "of them make it no less" in out and "note: the dump's own compilation allocates 400.00MiB" in out, out)

    # What is compiled computes the same.
    v = answer("changed modules", 0, DUMP, "--try", "-o", tmp / "changed")["modules"][0]["tried"]
    files = [l["file"] for l in v["levers"] if l["file"]]
    expect("changed modules: written", len(files) >= 3 and all((tmp / "changed" / f).exists() for f in files), files)
    for l in v["levers"]:
        if l["file"]:
            text = (tmp / "changed" / l["file"]).read_text()
            expect(f"{l['file']}: {l['kind']}", ("opt-barrier" in text) == (l["kind"] == "rematerialize") and ("may-alias" in text) == (l["kind"] == "donate"), l)
            small = tmp / "small.hlo"
            first = tmp / "first.hlo"
            # With small arrays: 8192, 512 and 2048 have no other meaning here.
            for file, source_text in ((small, text), (first, next(DUMP.glob("*before_optimizations.txt")).read_text())):
                for large, few in (("8192", "8"), ("2048", "6"), ("512", "4")):
                    source_text = re.sub(rf"(?<![0-9.]){large}(?=[],])", few, source_text)
                file.write_text(source_text)
            code, out, err = run("exec", first, "--seed=1", f"--compare-with={small}")
            expect(f"{l['file']}: the same results", code == 0, out + err)
    code, out, err = run("memory", DUMP, "-o", tmp / "x")
    expect("-o alone", code == 2 and "-o goes with --try" in err, err)

    # What jax.lax.scan stacks up: jax.checkpoint around the layer. jax's own allocates as much.
    SCAN = (DUMP.with_name("memory_scan") / "module_0001.jit_loss.before_optimizations.txt").read_text()

    def scanned(name, text):
        folder = tmp / name
        folder.mkdir()
        (folder / "module_0001.jit_loss.before_optimizations.txt").write_text(text)
        shutil.copy(next(DUMP.glob("*.pbtxt")), folder / "module_0001.jit_loss.gpu_target_config.pbtxt")
        code, out, err = run(folder / "module_0001.jit_loss.before_optimizations.txt", "--pipeline=xla-gpu", "-o", tmp / f"{name}.out")
        expect(f"{name}: replayed", code == 0, err)
        shutil.copy(tmp / f"{name}.out" / "module_0001.jit_loss.after_optimizations.txt", folder / "module_0001.jit_loss.sm_8.0_gpu_after_optimizations.txt")
        levers = answer(name, 0, folder, "--try", "-o", tmp / f"{name}.changed")["modules"][0]["tried"]["levers"]
        return [l for l in levers if "scan" in l["what"]]

    found = scanned("scan", SCAN)
    expect("scan: one lever", len(found) == 1 and found[0]["kind"] == "rematerialize" and "jax.lax.scan" in found[0]["how"] and found[0]["source"].startswith("scan.py:"), found)
    def same(name, file):
        code, out, err = run("exec", tmp / name / "module_0001.jit_loss.before_optimizations.txt", "--seed=1", f"--compare-with={tmp / (name + '.changed') / file}")
        expect(f"{name}: the same results", code == 0, out + err)

    if found:
        l = found[0]
        less = l["allocated_before"] - l["allocated_after"]
        expect("scan: bytes", l["helps"] and 0.8 * l["foretold_bytes"] < less <= l["foretold_bytes"], l)
        same("scan", l["file"])
    # Not where a slice of the stack stays as it was.
    LAST = re.search(r"(%lt\S* = pred\[\] compare\(%\S+#0, %(constant\S*)\), direction=LT, metadata={op_name=\"jit\(loss\)/jvp)", SCAN)
    short = SCAN.replace(f"%{LAST[2]} = s32[] constant(6)", f"%{LAST[2]} = s32[] constant(5)")
    expect("scan: five of six", short != SCAN and scanned("short", short) == [])
    # A stack that the program reads, too, is kept; the others are not.
    read = SCAN.replace("  ROOT %tuple.5 = (f32[6,32,64]{2,1,0}, f32[6,64,32]{2,1,0}) tuple(%while.27#2, %while.27#3)",
                        "  %one = f32[1,1,1]{2,1,0} slice(%while.17#3), slice={[5:6], [3:4], [2:3]}\n  %number = f32[] reshape(%one)\n"
                        "  %all = f32[6,32,64]{2,1,0} broadcast(%number), dimensions={}\n  %sum = f32[6,32,64]{2,1,0} add(%while.27#2, %all)\n"
                        "  ROOT %tuple.5 = (f32[6,32,64]{2,1,0}, f32[6,64,32]{2,1,0}) tuple(%sum, %while.27#3)")
    kept = scanned("read", read)
    arrays = [int(re.search(r"\((\d+) arrays", l["what"])[1]) for l in found + kept]
    expect("scan: a stack that is read", read != SCAN and len(arrays) == 2 and arrays[1] == arrays[0] - 1, (found, kept))
    if kept:
        same("read", kept[0]["file"])

    # What cannot be asked.
    one = tmp / "one.hlo"
    one.write_text("HloModule m\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT r = f32[4]{0} tanh(p)\n}\n")
    for name, args, words in (("stages of a file", ["--stages"], "a folder of stages"), ("try of a file", ["--try"], "a folder of stages"), ("an engine alone", ["--engine=installed"], "--engine goes with --try")):
        code, out, err = run("memory", one, *args)
        expect(name, code == 2 and words in err, err)

finish("memory_task_test")
