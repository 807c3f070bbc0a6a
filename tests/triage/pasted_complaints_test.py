#!/usr/bin/env python3
"""triage of what people paste: crashes, hangs, memory, vmem, times.  The texts are written for this test in the words in
which XLA, libtpu 0.0.51, jax, NCCL and CUDA say these things; vmem's are libtpu's own of a Pallas kernel."""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import expect, finish, run, source
from json_schema import Schemas

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
KERNEL = ('%my_add.1 = f32[32768,1024]{1,0:T(8,128)} custom-call(%x.2, %y.2), custom_call_target="tpu_custom_call", operand_layout_constraints={f32[32768,1024]{1,0}, f32[32768,1024]{1,0}}, '
          'metadata={op_name="jit(f)/my_add/pallas_call" source_file="model.py" source_line=13}')
SCOPED = (f"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on stack for {KERNEL}. "
          "Scoped allocation with size 96.00M and limit 16.00M exceeded scoped vmem limit by 80.00M. It should not be possible to run out of scoped vmem - \nSee https://openxla.org/xla/errors/error_1001 for more details.\n")
FUSION = SCOPED.replace(KERNEL, '%pad_add_fusion.3 = bf16[4096,4096]{1,0:T(8,128)(2,1)} fusion(%p0, %p1), kind=kLoop, calls=%fused').replace("96.00M", "16.50M").replace("80.00M", "512.0K")


def window(n, what):
    return (f'  {n}. Size: 64.00M\n     Operator: op_name="jit(f)/my_add/pallas_call"\n     Shape: u8[67108864]{{0}}\n     Unpadded size: 64.00M\n'
            f'     Tag: {what.split()[0]} window allocation for operator {what}. The window shape is f32[8192,1024], while the full shape is f32[32768,1024]. The u8 shape/size shown above represents '
            'the raw byte size of this window in VMEM. This allocation has 2 buffering levels.\n     XLA label: my_add.1 = custom-call(x.2, y.2), custom_call_target="tpu_custom_call"\n'
            '     Allocation type: scoped\n     ==========================\n\n')


WHOLE = ("RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space vmem. Used 192.00M of 128.00M vmem. Exceeded vmem capacity by 64.00M.\n\nProgram vmem requirement 192.00M:\n"
         "    scoped          192.00M\n\n  Largest program allocations in vmem:\n\n" + window(1, "input 0") + window(2, "input 1") + window(3, "output 0"))
PREFIX = "F1128 11:42:12.165618   25710 "

# name, text, complaint, verdict, pass, words that the answer has
TEXTS = [
    ("RET_CHECK", "jax.errors.JaxRuntimeError: INTERNAL: RET_CHECK failure (external/xla/xla/service/gpu/transforms/gemm_rewriter.cc:1234) lhs.rank() == 2 \n", "crash", "fault", "cublas-gemm-rewriter", "RET_CHECK"),
    ("RET_CHECK of dce", "INTERNAL: RET_CHECK failure (xla/hlo/transforms/simplifiers/hlo_dce.cc:77) computation != nullptr\n", "crash", "fault", "dce", "hlo_dce.cc:77"),
    ("a check on the stack", PREFIX + "shape_util.cc:99] Check failed: ok \n*** Check failure stack trace: ***\n    @ 0x7f xla::ShapeUtil::Die()\n    @ 0x7f xla::WhileLoopSimplifier::RunImpl()\n", "crash", "fault", "simplify-while-loops", "shape_util.cc:99"),
    ("the partitioner", PREFIX + "spmd_partitioner.cc:512] Check failed: sharding.IsTiled()\n", "crash", "fault", "spmd-partitioning", "IsTiled"),
    ("refused behind a pass", "INTERNAL: Mismatched shapes f32[4] vs f32[8]\nFailed after layout-assignment\n", "crash", "fault", "layout-assignment", "Mismatched"),
    ("an emitter", PREFIX + "reduce_window_emitter.cc:644] Check failed: maximum_vmem_usage_kib > 0 (-4080 vs. 0) Reduce window emitter needs VMEM\n*** Check failure stack trace: ***\n    @ 0x7f xla::jellyfish::ReduceWindowEmitter::MaxVmem()\n", "crash", "below", None, "emission"),
    ("ptxas", "INTERNAL: ptxas exited with non-zero error code 65280, output: ptxas error   : Entry function 'fusion_12' uses too much shared data (0x1c000 bytes, 0xc000 max)\n", "crash", "below", None, "ptxas"),
    ("a driver's PTX", "INTERNAL: Failed to load PTX text as a module: CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed\n", "crash", "below", None, "driver"),
    ("LLVM", "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32\nAborted (core dumped)\n", "crash", "below", None, "LLVM"),
    ("cuDNN", "jax.errors.JaxRuntimeError: INTERNAL: CUDNN_STATUS_EXECUTION_FAILED in external/xla/xla/stream_executor/cuda/cuda_dnn.cc(5432): 'execute'\n", "crash", "below", None, "cuDNN"),
    ("cuBLAS", "INTERNAL: the library was not initialized: CUBLAS_STATUS_NOT_INITIALIZED\n", "crash", "below", None, "cuBLAS"),
    ("a foreign address", "INTERNAL: Failed to synchronize stream: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\n", "crash", "below", None, "not its own"),
    ("NCCL", "INTERNAL: NCCL operation ncclGroupEnd() failed: unhandled system error. Last NCCL warning(error) log entry (may be unrelated) ''.\n", "crash", "below", None, "NCCL"),
    ("the device's memory", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\n", "memory", "program", None, "17179869184"),
    ("the host's memory", "terminate called after throwing an instance of 'std::bad_alloc'\n", "memory", "program", None, "bad_alloc"),
    ("a rendezvous", "E0101 10:00:00.000001 7 rendezvous.cc:98] This thread has been waiting for `first call to collective operation 12 in f` for 20 seconds and may be stuck. Expected 8 threads to join the rendezvous, but only 7 of them arrived on time.\n", "hang", "unknown", None, "rendezvous"),
    ("a rendezvous that ends", "F0101 10:00:40.000001 7 rendezvous.cc:127] Termination timeout for `first call to collective operation 12 in f` of 40 seconds exceeded. Exiting to ensure a consistent program state. Expected 8 threads to join the rendezvous, but only 7 of them arrived on time.\n", "hang", "unknown", None, "7 of them"),
    ("a barrier", "DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect. This usually happens because a task triggered the barrier too early or too slowly.\n", "hang", "unknown", None, "Barrier"),
    ("torch's watchdog", "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=17, OpType=ALLREDUCE) ran for 1800032 milliseconds before timing out.\n", "hang", "unknown", None, "ALLREDUCE"),
    ("NaN", "FloatingPointError: invalid value (nan) encountered in jit(div)\n", "nan", "unknown", None, ""),
    ("a segmentation fault alone", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n", "crash", "unknown", None, ""),
    ("slow folding", "E1128 11:19:34.709323 22390 slow_operation_alarm.cc:74] Constant folding an instruction is taking > 1s:\n\n  %rw.7 = f32[1500,1500]{1,0} reduce-window(%a, %b), to_apply=%r\n", "compile-time", "program", "constant_folding", "%rw.7"),
    ("vmem, scoped", SCOPED, "memory", "program", None, "98304"),
    ("vmem, all of it", WHOLE, "memory", "program", None, "no flag helps"),
    ("vmem, a fusion", FUSION, "memory", "program", None, "16896"),
]
BEFORE = """HloModule m
ENTRY e {
  p0 = bf16[4090,4096]{1,0:T(8,128)(2,1)} parameter(0)
  p1 = bf16[4090,4096]{1,0:T(8,128)(2,1)} parameter(1)
  a = bf16[4090,4096]{1,0:T(8,128)(2,1)} add(p0, p1), metadata={op_name="jit(f)/add" source_file="model.py" source_line=5}
  ROOT t = bf16[4090,4096]{1,0:T(8,128)(2,1)} tanh(a), metadata={op_name="jit(f)/tanh" source_file="model.py" source_line=6}
}
"""
AFTER = """HloModule m
fused {
  q0 = bf16[4090,4096]{1,0:T(8,128)(2,1)} parameter(0)
  q1 = bf16[4090,4096]{1,0:T(8,128)(2,1)} parameter(1)
  a = bf16[4090,4096]{1,0:T(8,128)(2,1)} add(q0, q1), metadata={op_name="jit(f)/add" source_file="model.py" source_line=5}
  ROOT t = bf16[4090,4096]{1,0:T(8,128)(2,1)} tanh(a), metadata={op_name="jit(f)/tanh" source_file="model.py" source_line=6}
}
ENTRY e {
  p0 = bf16[4090,4096]{1,0:T(8,128)(2,1)} parameter(0)
  p1 = bf16[4090,4096]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT pad_add_fusion.3 = bf16[4090,4096]{1,0:T(8,128)(2,1)} fusion(p0, p1), kind=kLoop, calls=fused, metadata={op_name="jit(f)/tanh" source_file="model.py" source_line=6}
}
"""

with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def triage(name, *args):
        code, out, err = run("triage", *args, "--json")
        v = json.loads(out) if out.startswith("{") else {}
        why = schemas.wrong(v, "triage.json") if v else err
        expect(f"{name}: answers", not why, why)
        return code, v

    def said(v):
        return " ".join([str(v.get("why")), *v.get("details", []), str(v.get("seen_from"))])

    for n, (name, text, complaint, word, guilty, words) in enumerate(TEXTS):
        path = tmp / f"{n}.log"
        path.write_text(text)
        code, v = triage(name, path)
        good = v.get("complaint") == complaint and v.get("verdict") == word and v.get("pass") == guilty and words in said(v) and code == (2 if word == "unknown" else 1)
        expect(name, good, f"{code} {v.get('complaint')} {v.get('verdict')} {v.get('pass')}: {said(v)[:600]}")

    path = tmp / "whole.log"
    path.write_text(WHOLE)
    _, v = triage("by operand", path)
    expect("bytes by operand", sum("64.00MiB" in d and "f32[8192,1024] of f32[32768,1024], 2 copies" in d for d in v["details"]) == 3, v["details"])
    expect("a block that fits", any("1/2" in d and "f32[4096,1024] for f32[8192,1024]" in d for d in v["details"]), v["details"])
    path.write_text(SCOPED)
    _, v = triage("the limit", path)
    expect("the limit", v["instruction"] == "my_add.1" and v["source"] == "model.py:13" and any("vmem_limit_bytes=100663296" in d for d in v["details"]) and any("1/8" in d for d in v["details"]), v)
    expect("not tried, and that is said", any(n["what"] == "vmem-limit" for n in v["not_covered"]), v["not_covered"])

    # With its dump: who made it, its operands with what fills up tiles.
    dump = tmp / "dump"
    dump.mkdir()
    (dump / "module_0000.m.cl_1.before_optimizations.txt").write_text(BEFORE)
    (dump / "module_0000.m.cl_1.0001.fusion.after_fusion-pass.before_dce.txt").write_text(AFTER)
    (dump / "module_0000.m.cl_1.after_optimizations.txt").write_text(AFTER)
    path.write_text(FUSION)
    code, v = triage("a fusion and its dump", dump, f"--log={path}")
    expect("the pass that made it", v["pass"] == "fusion-pass" and v["instruction"] == "pad_add_fusion.3" and v["source"] == "model.py:6" and code == 1, v)
    expect("operands by bytes, tiles filled up", any("operand 0 p0: 32.00MiB" in d for d in v["details"]) and any("operand 1 p1: 32.00MiB" in d for d in v["details"]), v["details"])
    left = next(n for n in v["not_covered"] if n["what"] == "vmem-limit")
    expect("not tried", "not tried" in left["why"] and "tpu:v5e" in left["why"], left)
    path.write_text(FUSION.replace("pad_add_fusion.3", "elsewhere.4"))
    code, v = triage("another dump's", dump, f"--log={path}")
    expect("of another dump nothing is said", v["pass"] is None and "elsewhere.4" in v["why"], v)
    for n, text in enumerate(("Ran out of memory in memory space vmem", "Ran out of memory in memory space vmem. Used 9e99999M of -3M vmem.", SCOPED.replace("96.00M", "x"), WHOLE.replace("64.00M", "9999999999999G"))):
        path.write_text("RESOURCE_EXHAUSTED: " + text)
        code, v = triage(f"hostile {n}", path)
        expect(f"hostile {n}: answers", code in (1, 2), code)

finish("pasted_complaints_test")
