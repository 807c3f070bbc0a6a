#!/usr/bin/env python3
"""whatif and what replay goes by: the pipeline of a module's time, GPUs by name and file, a text for every pass, where a
sharded module starts."""
import json
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run

# x is a batch of 8 with a weight whose first dimension is 8, too; a loop, a mean, a bias that is made to fit.
BATCH = """HloModule net, entry_computation_layout={(f32[8,16]{1,0}, f32[16,8]{1,0}, f32[8]{0})->(f32[8,8]{1,0}, f32[])}
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
body { s = (s32[], f32[8,8]{1,0}) parameter(0) n = s32[] get-tuple-element(s), index=0 v = f32[8,8]{1,0} get-tuple-element(s), index=1
  one = s32[] constant(1) m = s32[] add(n, one) half = f32[] constant(0.5) wide = f32[8,8]{1,0} broadcast(half), dimensions={}
  less_of_it = f32[8,8]{1,0} multiply(v, wide) ROOT t = (s32[], f32[8,8]{1,0}) tuple(m, less_of_it) }
less { s = (s32[], f32[8,8]{1,0}) parameter(0) n = s32[] get-tuple-element(s), index=0 three = s32[] constant(3) ROOT l = pred[] compare(n, three), direction=LT }
ENTRY e {
  x = f32[8,16]{1,0} parameter(0), metadata={op_name="x"}
  w = f32[16,8]{1,0} parameter(1), metadata={op_name="w"}
  b = f32[8]{0} parameter(2), metadata={op_name="b"}
  d = f32[8,8]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="dense/dot"}
  bias = f32[8,8]{1,0} broadcast(b), dimensions={1}
  y = f32[8,8]{1,0} add(d, bias), metadata={op_name="dense/add"}
  t = f32[8,8]{1,0} tanh(y), metadata={op_name="tanh"}
  zero = s32[] constant(0)
  state = (s32[], f32[8,8]{1,0}) tuple(zero, t)
  loop = (s32[], f32[8,8]{1,0}) while(state), condition=less, body=body
  out = f32[8,8]{1,0} get-tuple-element(loop), index=1
  flat = f32[64]{0} reshape(out)
  none = f32[] constant(0)
  sum = f32[] reduce(flat, none), dimensions={0}, to_apply=add, metadata={op_name="sum"}
  ROOT r = (f32[8,8]{1,0}, f32[]) tuple(out, sum)
}
"""
ONE = """HloModule one, entry_computation_layout={(f32[1,4,6]{2,1,0}, f32[6,5]{1,0}, f32[5]{0})->f32[1,4,5]{2,1,0}}
ENTRY e {
  x = f32[1,4,6]{2,1,0} parameter(0)
  w = f32[6,5]{1,0} parameter(1)
  b = f32[5]{0} parameter(2)
  rows = f32[4,6]{1,0} reshape(x)
  d = f32[4,5]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  back = f32[1,4,5]{2,1,0} reshape(d)
  table = f32[1,4,5]{2,1,0} constant({ { {1,2,3,4,5}, {1,1,1,1,1}, {2,2,2,2,2}, {0,1,0,1,0} } })
  row = f32[1,5]{1,0} reshape(b)
  wide = f32[1,4,5]{2,1,0} broadcast(row), dimensions={0,2}
  s = f32[1,4,5]{2,1,0} add(back, wide)
  ROOT r = f32[1,4,5]{2,1,0} add(s, table)
}
"""
SLICED = BATCH.replace("  t = f32[8,8]{1,0} tanh(y)", "  part = f32[4,8]{1,0} slice(y), slice={[0:4], [0:8]}\n  both = f32[8,8]{1,0} concatenate(part, part), dimensions={0}\n  t = f32[8,8]{1,0} tanh(both)")
OLD = "HloModule old\n\nENTRY %e (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(f32[4]{0} %p)\n}\n"
NEW = "HloModule fresh\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n"
SHARDED = NEW.replace("HloModule fresh", "HloModule split, num_partitions=2").replace("parameter(0)", "parameter(0), sharding={devices=[2]<=[2]}")

with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def file(name, text):
        (tmp / name).write_text(text)
        return tmp / name

    def what_if(*args, code=0):
        got, out, err = run("whatif", *args, "--json")
        expect(f"whatif {' '.join(map(str, args[1:]))}: exit code {code}", got == code, f"{got} {err}")
        return json.loads(out)

    def refused(part, *args):
        got, out, err = run("whatif", *args)
        expect(f"refused: {args[1:]}", got == 2 and part in err and not out, (got, err))

    def kernels(answer, state):
        return [k["op_name"] for k in answer["kernels"] if k["state"] == state]

    net = file("net.hlo", BATCH)
    # --- without a pass ---
    fused = what_if(net, "--disable=priority-fusion")
    expect("more kernels without fusion", fused["changed"]["kernels"] > fused["as_is"]["kernels"], fused)
    expect("…which move more", fused["changed"]["bytes"] > fused["as_is"]["bytes"] and fused["changed"]["seconds"] > fused["as_is"]["seconds"], fused)
    expect("where it parts", fused["concerned"] == "fusion.priority-fusion" and fused["first_difference"] == "fusion.after_priority-fusion" and fused["shared_pass_runs"] > 100, fused)
    expect("sums of sides", all(sum(side["by_kind"].values()) == side["kernels"] for side in (fused["as_is"], fused["changed"])), fused)
    states = [k["state"] for k in fused["kernels"]]
    expect("kernels add up", fused["same_kernels"] + states.count("gone") + states.count("changed") == fused["as_is"]["kernels"] and
           fused["same_kernels"] + states.count("new") + states.count("changed") == fused["changed"]["kernels"], fused)
    idle = what_if(net, "--disable=rng-expander", code=1)
    expect("a pass that did nothing", idle["first_difference"] == "" and not idle["kernels"] and idle["as_is"] == idle["changed"], idle)
    code, text, err = run("whatif", net, "--disable=priority-fusion", "--most=1")
    expect("in words", code == 0 and "first stage that differs: fusion.after_priority-fusion" in text and re.search(r"^kernels +\d+ +\d+ +\+\d+$", text, re.M) and "… and" in text, text)
    # --- another GPU, by name and by file; options ---
    there = what_if(net, "--gpu=A100")
    expect("another GPU", there["as_is"]["gpu"] == "H200" and there["changed"]["gpu"] == "A100" and there["changed"]["seconds"] != there["as_is"]["seconds"], there)
    option = what_if(net, "--set=fusion-wrapper.gpu=A100", code=1)
    expect("an option of one pass", option["change"]["set"] == [{"pass": "fusion-wrapper", "option": "gpu", "value": "A100"}], option)
    both = what_if(net, "--set", "algsimp.fixpoint=true", "--disable=priority-fusion,cse", "--batch=32")
    expect("several changes", both["change"]["disabled"] == ["cse", "priority-fusion"] and both["concerned"] == "", both)
    # --- the batch ---
    wide = what_if(net, "--batch=64")
    expect("the batch was found", any("batch 8 → 64" in n and n.split("parameter")[1].startswith(" x;") for n in wide["notes"]), wide["notes"])
    expect("more work", 6 < wide["changed"]["flops"] / wide["as_is"]["flops"] < 9, wide)
    expect("by name", what_if(net, "--batch=x:64")["changed"] == wide["changed"])
    same = what_if(net, "--batch=8")
    expect("the same size", same["as_is"] == same["changed"], same)
    one = what_if(file("one.hlo", ONE), "--batch=3")
    expect("a batch of one", 2.5 < one["changed"]["flops"] / one["as_is"]["flops"] < 3.5, one)
    refused("part: the batch is sliced", file("sliced.hlo", SLICED), "--batch=16")
    refused("would go with the batch", net, "--batch=w:32")
    refused("no parameter of the entry", net, "--batch=nobody:32")
    refused("N above 0", net, "--batch=0")
    # --- refusals ---
    refused("whatif takes", net)
    refused("priority-fusion", net, "--disable=priority-fusoin")
    refused("has no pass fusion_merger", net, "--disable=fusion_merger")
    refused("A100-SXM-80", net, "--gpu=A10000")
    refused("PASS.OPTION=VALUE", net, "--set=algsimp")
    refused("no option", net, "--set=algsimp.nothing=1")
    refused("is already optimised", file("done.hlo", BATCH.replace("HloModule net", "HloModule net, is_scheduled=true")), "--disable=cse")

    # --- replay: whose time, which GPU ---
    def replay(*args, to="out"):
        code, text, err = run("replay", *args, "--force", "-o", tmp / to, "--formats=text")
        expect(f"replay {args[1:]}", code == 0, err)
        return text, err

    old, fresh = file("old.hlo", OLD), file("fresh.hlo", NEW)
    expect("a text of 2019", replay(old)[0].startswith("pipeline xla-2019"))
    expect("…stays in its time", replay(f"{tmp}/out:before_optimizations", to="again")[0].startswith("pipeline xla-2019"))
    expect("…but where asked", replay(old, "--pipeline=xla-gpu")[0].startswith("pipeline xla-gpu"))
    expect("a text of today", replay(fresh)[0].startswith("pipeline xla-gpu:"))
    expect("a GPU is of today", replay(old, "--gpu=A100")[0].startswith("pipeline xla-gpu:"))
    expect("every XLA prints the layout", replay(file("long.hlo", run("print", "--style=long", fresh)[1]))[0].startswith("pipeline xla-gpu:"))
    expect("2019's dialect", replay(file("dialect.hlo", run("print", "--dialect=2019", fresh)[1]))[0].startswith("pipeline xla-2019"))
    code, text, err = run("replay", fresh, "--gpu=no/such.pbtxt", "-o", tmp / "x")
    expect("no such file", code == 2 and "no such file" in err, err)
    code, text, err = run("replay", fresh, f"--gpu={fresh}", "-o", tmp / "x")
    expect("no description", code == 2 and "gpu_device_info" in err, err)
    described = file("gpu.pbtxt", """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_block_optin: 101376 threads_per_core_limit: 2048
 core_count: 10 fpus_per_core: 128 memory_bandwidth: 100000000000 l2_cache_size: 1000000 clock_rate_ghz: 1 registers_per_block_limit: 65536
 cuda_compute_capability { major: 8 minor: 0 } }""")
    slow = what_if(net, f"--gpu={described}")
    expect("a GPU by its file", slow["changed"]["seconds"] > slow["as_is"]["seconds"], slow)
    expect("…for replay", replay(fresh, f"--gpu={described}")[0].startswith("pipeline xla-gpu:"))
    # --- a text for every pass; passes without code ---
    text, err = replay(fresh, "--every-pass")
    rows = json.loads((tmp / "out" / "recording.json").read_text())["stages"]
    ran = [r for r in rows if r["kind"] in ("pass", "pipeline-start") and r.get("implemented", True)]
    expect("a text for every pass", len(ran) > 150 and all((tmp / "out" / r["file"]).is_file() for r in ran), len(ran))
    expect("none for what did not run", all("file" not in r for r in rows if not r.get("implemented", True)))
    expect("the stages read back", run("open", tmp / "out", "--stages")[0] == 0 and run("print", f"{tmp}/out:1:1")[0] == 0)
    replay(old, "--every-pass")
    rows = json.loads((tmp / "out" / "recording.json").read_text())["stages"]
    passes = [r for r in rows if r["kind"] == "pass"]
    expect("…of 2019", len(passes) > 40 and all("file" in r for r in passes if r.get("implemented", True)), len(passes))
    expect("…of which one has no code", {r["pass"] for r in passes if not r.get("implemented", True)} == {"cudnn-conv-algorithm-picker"})
    text, err = replay(fresh, "--verbose")
    expect("passes without code by name", "  ragged_dot_rewriter: " in err and "not implemented" in text, err)
    # --- shardings ---
    text, err = replay(file("split.hlo", SHARDED))
    expect("a module to be partitioned", "p is sharded over 2 partitions" in err, err)
    expect("…in the first line", text.startswith("not partitioned: p is sharded over 2 partitions"), text[:200])
    said = json.loads((tmp / "out" / "recording.json").read_text()).get("problems", [])
    expect("…in the recording", any("sharded over 2 partitions" in p for p in said), said)
    eight = SHARDED.replace("num_partitions=2", "num_partitions=8")
    for name, attribute, divided in (
        ("listed", "sharding={devices=[8]0,1,2,3,4,5,6,7}", True), ("transposed", "sharding={devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", True), ("mesh", "sharding={mesh['a'=8], [{'a'}]}", True),
        ("Shardy", r'frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>"}', True), ("Shardy, an axis and more", r'frontend_attributes={a="b",xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\", ?}]>"}', True),
        ("repeated", "sharding={devices=[1,8]<=[8] last_tile_dim_replicate}", False), ("manual tiles", "sharding={devices=[1,8]<=[8] last_tile_dims={manual}}", False), ("replicated", "sharding={replicated}", False),
        ("one device", "sharding={maximal device=3}", False), ("mesh without an axis", "sharding={mesh['a'=8], [{}]}", False), ("Shardy, open", r'frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{?}], replicated={\"x\"}>]>"}', False),
    ):
        module = file("eight.hlo", eight.replace("sharding={devices=[2]<=[2]}", attribute))
        text, err = replay(module)
        expect(f"sharded, {name}: replay", ("not partitioned: p is sharded over 8 partitions" in text.split("\n")[0]) == divided, text[:300] + err)
        notes = what_if(module, "--gpu=A100")["notes"]
        expect(f"sharded, {name}: whatif", any("sharded over 8" in n for n in notes) == divided, notes)
        code, text, err = run("exec", module, "--json")
        expect(f"sharded, {name}: exec", code == 0 and any("sharded over 8" in n for n in json.loads(text)["notes"]) == divided, text[:300] + err)
        expect(f"sharded, {name}: exec in words", run("exec", module)[1].startswith("not partitioned: ") == divided)
    text, err = replay(file("replicas.hlo", SHARDED.replace("num_partitions=2", "replica_count=2")))
    expect("sharded over replicas", text.startswith("not partitioned: p is sharded over 2 replicas"), text[:200])
    expect("…in a program that is manual", "sharded" not in replay(file("manual.hlo", SHARDED.replace("devices=[2]<=[2]", "manual")))[1])
    dump = tmp / "dump"
    dump.mkdir()
    (dump / "module_0001.split.before_optimizations.txt").write_text(SHARDED)
    (dump / "module_0001.split.after_spmd_partitioner.txt").write_text(NEW.replace("HloModule fresh", "HloModule split, num_partitions=2"))
    text, err = replay(f"{dump}:split")
    expect("starts behind the partitioner", "starts from after_spmd_partitioner" in text and "sharded" not in err, text[:200])
    expect("…whatif, too", any("after_spmd_partitioner" in n for n in what_if(f"{dump}:split", "--gpu=A100")["notes"]))

# The GPU that a dump was compiled for is the one that its stages are taken on for.
with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    targets = data.parent / "ir" / "target" / "targets"

    def dump_for(name, target):
        folder = tmp / name
        folder.mkdir()
        (folder / "module_0001.net.before_optimizations.txt").write_text(BATCH)
        (folder / "module_0001.net.0001.simplification.after_dce.before_cse.txt").write_text(BATCH)
        (folder / "module_0001.net.gpu_target_config.pbtxt").write_text(target)
        return folder

    a100 = dump_for("a100", (targets / "a100_sxm_80.pbtxt").read_text())
    code, out, err = run("replay", a100, "-o", tmp / "out_a")
    expect("a dump's own GPU", code == 0 and "for the GPU of the dump, NVIDIA A100" in out, out + err)
    code, out, err = run("replay", a100, "--gpu=H200", "-o", tmp / "out_h")
    expect("another GPU by name", code == 0 and "GPU of the dump" not in out, out + err)
    first = next(a100.glob("*before_optimizations.txt"))
    code, out, err = run("replay", first, "-o", tmp / "out_f")
    expect("a file in a dump", code == 0 and "for the GPU of the dump, NVIDIA A100" in out, out + err)
    shutil.copy(first, tmp / "alone.hlo")
    code, out, err = run("replay", tmp / "alone.hlo", "-o", tmp / "out_g")
    expect("a file by itself", code == 0 and "GPU of the dump" not in out, out + err)
    code, out, err = run("whatif", a100, "--gpu=H200", "--json")
    answer = json.loads(out)
    expect("whatif's two GPUs", "A100" in answer["as_is"]["gpu"] and answer["changed"]["gpu"] == "H200", out[:400])
    code, out, err = run("whatif", a100, "--disable=algsimp", "--json")
    answer = json.loads(out)
    expect("whatif on one GPU", "A100" in answer["as_is"]["gpu"] and answer["changed"]["gpu"] == answer["as_is"]["gpu"], out[:400])
    old = dump_for("v100", (targets / "v100.pbtxt").read_text())
    for command in (["replay", old, "-o", tmp / "out_v"], ["whatif", old, "--disable=cse"]):
        code, out, err = run(*command)
        expect(f"{command[0]}: a GPU without its passes", code == 2 and "older than Ampere" in err and not (tmp / "out_v").exists(), err)
    code, out, err = run("replay", old, "--gpu=A100", "-o", tmp / "out_va")
    expect("another GPU for it", code == 0, err)
    amd = dump_for("amd", (targets / "h200.pbtxt").read_text().replace('platform_name: "CUDA"', 'platform_name: "ROCM"'))
    code, out, err = run("replay", amd, "-o", tmp / "out_r")
    expect("no GPU of NVIDIA's", code == 2 and "ROCM" in err and "--gpu=NAME" in err, err)
    bare = dump_for("bare", 'gpu_device_info { core_count: 132 }\nplatform_name: "CUDA"\n')
    code, out, err = run("replay", bare, "-o", tmp / "out_b")
    expect("a description that says too little", code == 2 and "gpu_target_config.pbtxt: the GPU's description has no" in err and "--gpu=NAME" in err, err)
    code, out, err = run("opt", "--passes=layout-assignment", next(amd.glob("*0001*.txt")))
    expect("opt asks for it, too", code == 2 and "ROCM" in err, err)
    code, out, err = run("opt", "--passes=dce", next(amd.glob("*0001*.txt")))
    expect("dce asks for no GPU", code == 0, err)

# Which user of an array came first no stage tells; a replay of the stages before it does.
with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    with tarfile.open(data / "users" / "sharded_computation.tar.gz") as archive:
        archive.extractall(tmp)
    before, after = next(tmp.glob("*0064*.hlo.pb")), next(tmp.glob("*0065*.txt"))
    joined = ["opt", "--passes=multi_output_fusion", "--call-site=fusion"]

    def as_xla(*arguments):
        code, out, err = run(*joined, *arguments)
        (tmp / "ours.hlo").write_text(out)
        return code == 0 and run("diff", tmp / "ours.hlo", after)[0] == 0, err

    good, err = as_xla(before)
    expect("users by a replay", good and "a replay from before_optimizations: of 15 arrays with several users all" in err, err)
    good, err = as_xla(f"{tmp}:1:0064")
    expect("users by a replay, of DIR:STAGE", good, err)
    good, err = as_xla("--users=listed", before)
    expect("users as listed", not good and not err, err)
    shutil.copy(before, tmp / "alone.hlo.pb")
    good, err = as_xla(tmp / "alone.hlo.pb")
    expect("a stage by itself", not good and "that of the file" in err, err)
    code, out, err = run(*joined, "--users=replayed", tmp / "alone.hlo.pb")
    expect("asked for, and not to be had", code == 2 and "no stage of a folder that XLA dumped" in err, err)
    code, out, err = run("opt", "--passes=dce", "--users=replayed", before)
    expect("replayed up to where", code == 2 and "--call-site" in err, err)
    code, out, err = run("opt", "--passes=multi_output_fusion", "--call-site=fusion2", "--users=replayed", before)
    expect("no such pipeline", code == 2 and "does not run multi_output_fusion in fusion2" in err, err)
    proto = next(tmp.glob("*before_optimizations.hlo.pb"))
    proto.write_bytes(proto.read_bytes()[:3000])
    code, out, err = run("replay", f"{tmp}:pjit_ref_func", "--formats=text", "-o", tmp / "by_text")
    expect("a .hlo.pb that is damaged, and a text that is not", code == 0 and "starts from before_optimizations, by its text: " in out and "truncated, damaged" in out, out[:400] + err)
    for start in tmp.glob("*before_optimizations*"):
        start.write_text("HloModule broken")
    good, err = as_xla(before)
    expect("a first stage that is damaged", not good and "replay of the stages before failed" in err, err)
    code, out, err = run("opt", "--passes=dce", "--users=some", before)
    expect("an unknown order", code == 2, err)

finish("whatif_test")
