#!/usr/bin/env python3
"""--backend=cuda from the command line, on the fake driver (tests/fake_cuda): results, errors, what is left behind."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

tool, source, fake = sys.argv[1:4]
data = pathlib.Path(source) / "testdata"
failures = 0


def expect(name, condition, detail=""):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED {name}: {str(detail)[:600]}")


def run(*args, stdin=None, **env):
    whole = {**os.environ, "HLO_CUDA_DRIVER": fake, **{k: str(v) for k, v in env.items()}}
    done = subprocess.run([tool, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=300, env=whole)
    return done.returncode, done.stdout, done.stderr


LOOP = """HloModule loop

b {
  t = (s32[], f32[2,9,8,4], f32[3,3,4,4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[2,9,8,4] get-tuple-element(t), index=1
  w = f32[3,3,4,4] get-tuple-element(t), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[2,9,8,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  ROOT r = (s32[], f32[2,9,8,4], f32[3,3,4,4]) tuple(next, y, w)
}

c {
  t = (s32[], f32[2,9,8,4], f32[3,3,4,4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(TRIPS)
  ROOT r = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[2,9,8,4] parameter(0)
  w = f32[3,3,4,4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[2,9,8,4], f32[3,3,4,4]) tuple(zero, x, w)
  l = (s32[], f32[2,9,8,4], f32[3,3,4,4]) while(t), condition=c, body=b
  ROOT r = f32[2,9,8,4] get-tuple-element(l), index=1
}
"""

with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)
    log = tmp / "log"

    def clean(name):
        text = log.read_text()
        expect(name + ": nothing is asked that no document names", "undocumented" not in text, text)
        expect(name + ": nothing left behind", "left behind: 0 allocations, 0 contexts, 0 modules, 0 streams, 0 events, 0 graphs" in text, text)
        return text

    # Every small module, each schedule: equal, run as one graph where nothing asks the host.
    schedules = 0
    for module in sorted((data / "gpu").glob("small_*.hlo")):
        code, text, err = run("exec", module, "--backend=cuda", "--repeat=3", "--compare-with=evaluator", HLO_FAKE_CUDA_LOG=log)
        expect(module.name, code == 0 and text.endswith("equal\n") and "run as one graph" in text and "note:" not in text, text + err)
        clean(module.name)
        if module.stem.endswith("_flat"):
            expect(f"{module.name}: one row fusion", "(1 instructions as 1 kernels" in text, text)
        schedules += 1
    expect("modules", schedules >= 13, schedules)

    # The steps of the lowering as a recording: stages that verify, compute the same, and whose history is known.
    code, text, err = run("replay", data / "mnist_softmax.hlo", "--pipeline=xla-gpu", "--lower=cuda", "-o", tmp / "lowered")
    expect("replay --lower=cuda", code == 0, text + err)
    rows = json.loads((tmp / "lowered/recording.json").read_text())["stages"] if code == 0 else []
    lowered = [r for r in rows[[r["kind"] for r in rows].index("result") + 1:] if r.get("file")]
    expect("replay --lower=cuda: stages", len(lowered) >= 2, rows[-5:])
    run("exec", f"{tmp}/lowered:before_optimizations", "--out", tmp / "first.npz")
    for row in lowered:
        code, text, err = run("exec", f"{tmp}/lowered:{row['file']}", "--compare-with", tmp / "first.npz")
        expect(f"lowered: {row['name']} computes the same", code == 0, text + err)
    code, text, err = run("bisect", tmp / "lowered")
    expect("lowered: bisect finds nothing", code == 0 and "no bad stage" in text, text + err)

    # What asks the host, in pieces: a loop until its data say so, branches, several devices on one card; and lanes of their own for asynchronous calls, in one
    # graph with the rest. Every value has its place before the run: memory is taken once.
    for name, graphs, streams, allocations in (("loops", "parts of it as 3 graphs", 1, 9), ("branches", "parts of it as 5 graphs", 1, 6), ("lanes", "run as one graph", 4, 9), ("devices", "", 1, 20)):
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=cuda", "--repeat=3", "--compare-with=evaluator", HLO_FAKE_CUDA_LOG=log)
        expect(name, code == 0 and text.endswith("equal\n") and graphs in text and ("runs in the evaluator" in text) == (name == "devices"), text + err)
        did = clean(name)
        expect(f"{name}: streams", f"cuStreamCreate {streams}\n" in did and ("cuStreamWaitEvent" in did) == (name == "lanes"), did)
        expect(f"{name}: memory", f"cuMemAlloc_v2 {allocations}\n" in did, did)
        if name == "lanes":
            expect("lanes: memory is filled, copies are copies", "cuMemsetD32Async 4\n" in did and "cuMemcpyDtoDAsync_v2 2\n" in did, did)
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=emulated", "--as-is", "--compare-with=evaluator")
        expect(f"{name} as it is, emulated", code == 0 and text.endswith("equal\n"), text + err)
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=cuda", f"--trace={tmp}/{name}")
        expect(f"{name}: watched", code == 0 and len(list((tmp / name).iterdir())) > 0, err)
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=cuda", f"--profile={tmp}/{name}.json")
        expect(f"{name}: timed", code == 0 and len(json.loads((tmp / f"{name}.json").read_text())["traceEvents"]) > 5, err)

    # A scheduled module of XLA's may change its parameters; the next run has them as they were.
    code, text, err = run("exec", data / "gpu" / "donated.hlo", "--backend=cuda", "--as-is", "--repeat=3", "--compare-with=evaluator", HLO_FAKE_CUDA_LOG=log)
    expect("donated", code == 0 and text.endswith("equal\n") and "cuMemcpyHtoDAsync_v2 9\n" in clean("donated"), text + err + log.read_text())

    # A large product in a fusion is the library's, between a kernel in front and one behind; of a matrix and few vectors it is a sum of rows or columns.
    for name, parts in (("gemm_fusion", "(2 instructions as 2 kernels on PTX interpreter (sm_90a), 1 by cuBLAS 12.0.0, run as one graph)"), ("vector_products", "(10 instructions as 9 kernels on PTX interpreter (sm_90a), run as one graph)")):
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=cuda", "--repeat=2", "--compare-with=evaluator", HLO_CUBLAS=fake, HLO_FAKE_CUDA_LOG=log)
        expect(name, code == 0 and text.endswith("equal\n") and parts in text, text + err)
        clean(name)
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=emulated", "--compare-with=evaluator")
        expect(f"{name}, emulated", code == 0 and text.endswith("equal\n"), text + err)

    # Products by the library: the fake one stands for cuBLAS.
    for name in ("small_gemm", "../mnist_softmax"):
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=cuda", "--compare-with=evaluator", HLO_CUBLAS=fake, HLO_FAKE_CUDA_LOG=log)
        expect(f"{name} by the library", code == 0 and "by cuBLAS 12.0.0" in text, text + err)
        expect(f"{name}: it was asked", "cublasGemmStridedBatchedEx" in clean(name), log.read_text())

    # With epilogues, factors and mixed types: by cuBLASLt, of several algorithms the fastest; what it has no form for is
    # the evaluator's.
    for name, count in (("products", 13), ("products_f8", 5)):
        code, text, err = run("exec", data / "gpu" / f"{name}.hlo", "--backend=cuda", "--repeat=3", "--compare-with=evaluator", HLO_CUBLAS=fake, HLO_CUBLASLT=fake, HLO_FAKE_CUDA_LOG=log)
        expect(f"{name} by the library", code == 0 and text.endswith("equal\n") and f"{count} by cuBLAS 12.0.0 and cuBLASLt 12.0.0" in text, text + err)
        expect(f"{name}: what is left", text.count("note:") == (name == "products_f8") and ("run as one graph" if name == "products" else "parts of it as ") in text, text)
        calls = int(re.search(r"cublasLtMatmul (\d+)", clean(name))[1])
        expect(f"{name}: measured once, then the fastest", calls == {"products": 11 * (2 * 2 + 2), "products_f8": 5 * (2 + 2 * 2 + 2)}[name], calls)  # those of eight bits are tried out first
        if name == "products":
            for measured in (11 * 2 * 2, 0):
                code, text, err = run("exec", data / "gpu" / "products.hlo", "--backend=cuda", f"--kernel-cache={tmp}/products", HLO_CUBLAS=fake, HLO_CUBLASLT=fake, HLO_FAKE_CUDA_LOG=log)
                calls = int(re.search(r"cublasLtMatmul (\d+)", clean(name))[1])
                expect("products: choices are kept", code == 0 and calls == measured + 11, f"{calls} {err}")
        expect(f"{name}: descriptors given back", "descriptors" not in log.read_text(), log.read_text())
    # Of eight-bit products the library gets those that it documents, and another way is chosen before the run for others.
    unknown = {"no_sixteen", "too_narrow", "five_of_four", "both_five"}
    code, text, err = run("exec", data / "gpu" / "f8_types.hlo", "--backend=cuda", "--compare-with=evaluator", HLO_CUBLAS=fake, HLO_CUBLASLT=fake, HLO_FAKE_CUDA_LOG=log)
    expect("eight-bit products", code == 0 and text.endswith("equal\n") and "7 by cuBLAS 12.0.0 and cuBLASLt 12.0.0" in text and set(re.findall(r"note: (\w+) \(", text)) == unknown, text + err)
    clean("eight-bit products")
    # An asynchronous call that changes one of its operands in place, in a loop.
    for flags in ((), ("--as-is",)):
        code, text, err = run("exec", data / "gpu" / "async_update.hlo", "--backend=cuda", "--repeat=3", "--compare-with=evaluator", *flags, HLO_FAKE_CUDA_LOG=log)
        expect("an asynchronous update in a loop", code == 0 and text.endswith("equal\n") and "note:" not in text and "graphs)" in text, text + err)
        clean("an asynchronous update in a loop")
    # What is added lies where the result will: it is not added once more by every algorithm that is tried.
    code, text, err = run("exec", data / "gpu" / "accumulate.hlo", "--backend=cuda", "--compare-with=evaluator", HLO_CUBLAS=fake, HLO_CUBLASLT=fake, HLO_FAKE_CUDA_LOG=log)
    expect("accumulate", code == 0 and text.endswith("equal\n") and "2 by cuBLAS 12.0.0 and cuBLASLt 12.0.0" in text and "cuMemcpyDtoDAsync" not in clean("accumulate"), text + err)
    code, text, err = run("exec", data / "gpu" / "products.hlo", "--backend=cuda", HLO_CUBLAS=fake, HLO_CUBLASLT=fake, HLO_FAKE_CUDA_FAIL="cublasLtMatmul", HLO_FAKE_CUDA_LOG=log)
    expect("cublasLtMatmul fails", code == 2 and "cublasLtMatmul: status 13" in err, f"{code} {err}")
    clean("cublasLtMatmul fails")
    for library in ("HLO_CUBLAS", "HLO_CUBLASLT", "HLO_CUDNN"):
        code, text, err = run("exec", data / "gpu" / "small_gemm.hlo", "--backend=cuda", HLO_FAKE_CUDA_LOG=log, **{library: tmp / "none.so"})
        expect(f"no {library}", code == 2 and f"{library} names " in err and "none.so, which cannot be loaded" in err, f"{code} {err}")
        clean(f"no {library}")
    code, text, err = run("exec", data / "gpu" / "small_gemm.hlo", "--backend=cuda", HLO_CUBLAS="libm.so.6", HLO_FAKE_CUDA_LOG=log)
    expect("another library", code == 2 and "HLO_CUBLAS names libm.so.6, which has no cublasCreate_v2" in err, f"{code} {err}")
    clean("another library")

    # Convolutions by cuDNN, forward and back, with what stands behind them, moved to layouts that it has engines for; of its engines those that keep f32, and of
    # these the fastest, whose number is kept where kernels are.
    kept = tmp / "choices"
    for measured in (9 * 2 * 2 + 3 * 3 * 2, 0):
        code, text, err = run("exec", data / "gpu" / "convolutions.hlo", "--backend=cuda", f"--kernel-cache={kept}", "--compare-with=evaluator", HLO_CUDNN=fake, HLO_FAKE_CUDA_LOG=log)
        expect("convolutions by the library", code == 0 and text.endswith("equal\n") and "14 by cuDNN 9.1.0" in text, text + err)
        expect("convolutions: what is left", text.count("note:") == 1 and "note: elu (" in text, text)
        calls = int(re.search(r"cudnnBackendExecute (\d+)", clean("convolutions"))[1])
        expect("convolutions: measured once", calls == measured + 14, calls)
        expect("convolutions: descriptors given back", "descriptors" not in log.read_text(), log.read_text())
    # TF32 is asked for by name, and only where the module does not forbid it; it is seen in the numbers.
    product = """HloModule m
ENTRY e {{
  x = f32[2,9,8,4] parameter(0)
  w = f32[3,3,4,8] parameter(1)
  l = f32[40,30] parameter(2)
  r = f32[30,50] parameter(3)
  c = f32[2,9,8,8] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f{0}
  d = f32[40,50] dot(l, r), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{0}
  ROOT t = (f32[2,9,8,8], f32[40,50]) tuple(c, d)
}}
"""
    (tmp / "open.hlo").write_text(product.format(""))
    (tmp / "exact.hlo").write_text(product.format(", operand_precision={highest,highest}"))
    # Which engine is the fastest is chance, so the one that rounds is alone where rounding must show.
    for name, options, wanted, engines in (("open", (), 0, 4), ("open", ("--tolerance=1e-5",), 1, 1), ("exact", ("--tolerance=1e-5",), 0, 4)):
        code, text, err = run("exec", tmp / f"{name}.hlo", "--backend=cuda", "--precision=tf32", *options, "--compare-with=evaluator", HLO_CUDNN=fake, HLO_CUBLAS=fake, HLO_CUBLASLT=fake, HLO_FAKE_CUDNN_ENGINES=engines)
        rounded = ["o0 f32[2,9,8,8]: DIFFERENT" in text, "o1 f32[40,50]: DIFFERENT" in text]
        expect(f"tf32, {name} {options}", code == wanted and "note:" not in text and rounded == [wanted == 1] * 2, text + err)
    code, text, err = run("exec", tmp / "open.hlo", "--backend=cuda", "--tolerance=1e-5", "--compare-with=evaluator", HLO_CUDNN=fake, HLO_CUBLAS=fake, HLO_CUBLASLT=fake)
    expect("f32 stays f32", code == 0, text + err)
    code, text, err = run("exec", tmp / "open.hlo", "--precision=tf32")
    expect("tf32 elsewhere", code == 2 and "--precision=tf32 goes with --backend=cuda" in err, err)
    code, text, err = run("exec", "--self-test", "--backend=cuda", "--precision=tf32")
    expect("tf32 and the self-test", code == 2 and "with neither --self-test nor --all-stages" in err, text[-200:] + err)
    code, text, err = run("exec", tmp / "open.hlo", "--backend=cuda", "--precision=tf16", HLO_CUDA_DRIVER=tmp / "none.so")
    expect("no such precision", code == 2 and "unknown precision 'tf16'; there are own, high and tf32" in err, err)
    # An epilogue that the library has no engine for goes into a kernel behind the convolution.
    code, text, err = run("exec", data / "gpu" / "convolution_epilogue.hlo", "--backend=cuda", "--compare-with=evaluator", HLO_CUDNN=fake)
    expect("an epilogue apart", code == 0 and text.endswith("equal\n") and "1 by cuDNN" in text and "note:" not in text, text + err)
    # Filters as jax writes them are brought into a layout of cuDNN's first: a card takes others and computes something else.
    for t in ("f16", "bf16", "f32", "f64"):
        code, text, err = run("exec", data / "gpu" / f"filters_{t}.hlo", "--backend=cuda", "--compare-with=evaluator", HLO_CUDNN=fake, HLO_FAKE_CUDA_LOG=log)
        expect(f"filters in {t}", code == 0 and text.count(": equal") == 13 and "12 by cuDNN 9.1.0" in text and "note:" not in text, text + err)
        clean(f"filters in {t}")
    # The memory that a library works in is no value: where somebody reads it there are zeros, as in the evaluator, and nothing is filled otherwise.
    conv = (" x = f32[2,8,8,4] parameter(0)\n w = f32[3,3,4,4] parameter(1)\n c = (f32[2,8,8,4], u8[4096]) custom-call(x, w), window={size=3x3 pad=1_1x1_1}, "
            "dim_labels=b01f_01io->b01f, custom_call_target=\"__cudnn$convForward\"\n")
    product = (" x = f32[16,8] parameter(0)\n w = f32[8,16] parameter(1)\n c = (f32[16,16], s8[4096]) custom-call(x, w), custom_call_target=\"__cublas$lt$matmul\", "
               "backend_config={\"gemm_backend_config\":{\"alpha_real\":1,\"alpha_imag\":0,\"beta\":0,\"epilogue\":\"DEFAULT\",\"dot_dimension_numbers\":"
               "{\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]}}}\n")
    for kind, body, shape, scratch in (("convolution", conv, "f32[2,8,8,4]", "u8"), ("product", product, "f32[16,16]", "s8")):
        read = {"the result": " ROOT r = f32[] constant(0)\n".replace("f32[] constant(0)", f"({shape}, {scratch}[4096]) tuple(y, s)"),
                "a reader": f" n = {scratch}[4096] negate(s)\n ROOT r = ({shape}, {scratch}[4096]) tuple(y, n)\n", "nobody": f" ROOT r = ({shape}) tuple(y)\n"}
        for reader, end in read.items():
            parts = f" y = {shape} get-tuple-element(c), index=0\n" + (f" s = {scratch}[4096] get-tuple-element(c), index=1\n" if reader != "nobody" else "")
            text = "HloModule m\nENTRY e {\n" + body + parts + end + "}\n"
            code, text, err = run("exec", "-", "--backend=cuda", "--repeat=2", "--compare-with=evaluator", stdin=text, HLO_CUDNN=fake, HLO_CUBLAS=fake, HLO_CUBLASLT=fake, HLO_FAKE_CUDA_LOG=log)
            expect(f"scratch of a {kind} for {reader}", code == 0 and text.endswith("equal\n") and "1 by cu" in text, text + err)
            expect(f"scratch of a {kind} for {reader}: filled", ("cuMemsetD8Async" in clean("scratch")) == (reader != "nobody"), log.read_text())
    launches = []
    for trips in (3, 7):
        code, text, err = run("exec", "-", "--backend=cuda", "--compare-with=evaluator", stdin=LOOP.replace("TRIPS", str(trips)), HLO_CUDNN=fake, HLO_FAKE_CUDA_LOG=log)
        expect("a filter in a loop", code == 0 and text.endswith("equal\n") and "1 by cuDNN 9.1.0" in text, text + err)
        launches.append(int(re.search(r"launches (\d+)", clean("a filter in a loop"))[1]))
    expect("a filter in a loop is laid out once", launches[1] - launches[0] == 4 * 2, launches)  # the counter and its end
    code, text, err = run("exec", data / "gpu" / "convolutions.hlo", "--backend=cuda", HLO_CUDNN=fake, HLO_FAKE_CUDA_FAIL="cudnnBackendExecute", HLO_FAKE_CUDA_LOG=log)
    expect("cudnnBackendExecute fails", code == 2 and "cudnnBackendExecute: status 5000" in err, f"{code} {err}")
    clean("cudnnBackendExecute fails")

    code, text, err = run("exec", data / "gpu" / "products.hlo", "--backend=cuda", "--compare-with=evaluator")
    expect("no library", code == 0 and "and 8 more" in text and text.endswith("equal\n"), text + err)

    # Fused first, or as it is.
    module = "HloModule m\nENTRY e {\n p = f32[4,4] parameter(0)\n s = f32[4,4] sine(p)\n c = f32[4,4] cosine(s)\n ROOT n = f32[4,4] negate(c)\n}\n"
    for backend in ("cuda", "host"):
        for flags, kernels in (((), 1), (("--as-is",), 3)):
            code, text, err = run("exec", "-", f"--backend={backend}", "--compare-with=evaluator", *flags, stdin=module)
            expect(f"{kernels} kernels on {backend}", code == 0 and f"({kernels} instructions as {kernels} kernels on " in text and text.endswith("equal\n"), text + err)

    # What has no kernel runs in the evaluator and is told.
    module = "HloModule m\nENTRY e {\n p = c64[4,4] parameter(0)\n c = c64[4,4] fft(p), fft_type=FFT, fft_length={4}\n ROOT r = c64[4,4] add(c, c)\n}\n"
    code, text, err = run("exec", "-", "--backend=cuda", stdin=module)
    expect("left to the evaluator", code == 0 and "note: c (fft) runs in the evaluator" in text, text + err)
    code, text, err = run("exec", "-", "--backend=cuda", "--json", stdin=module)
    expect("in JSON too", code == 0 and any("(fft)" in n for n in json.loads(text)["notes"]), text + err)

    # So do the newest calls of libraries.
    numbers = '"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}'
    calls = {"silu": ("f32[16,16]", "a, b, v", "__cublas$lt$matmul", '{"gemm_backend_config":{"alpha_real":1,"beta":0,"epilogue":"BIAS_SILU",%s}}' % numbers),
             "scaled": ("f32[16,16]", "a, b, sa, sb", "__cublas$lt$matmul$mx", '{"gemm_backend_config":{"alpha_real":1,"beta":0,%s}}' % numbers),
             "grouped": ("f32[2,16,16]", "a, b, n", "__cublas$lt$groupedMatmul", '{"grouped_gemm_backend_config":{"ragged_dot_dimension_numbers":{%s,"lhs_ragged_dimensions":["1"],"rhs_group_dimensions":[]}}}' % numbers),
             "scanned": ("f32[16,32]", "a", "xla.gpu.ext.cub_scan", '{"kind":"SUM","row_length":"32","vector_length":"1"}')}
    module = ("HloModule m\nENTRY e {\n a = f32[16,32] parameter(0)\n b = f32[32,16] parameter(1)\n v = f32[16] parameter(2)\n sa = f32[16,2] parameter(3)\n"
              " sb = f32[2,16] parameter(4)\n n = s32[2] constant({20, 12})\n" +
              "".join(f' {k} = ({shape}, {"u8" if k == "scanned" else "s8"}[4096]) custom-call({operands}), custom_call_target="{target}", backend_config={config}\n {k}.r = {shape} get-tuple-element({k}), index=0\n'
                      for k, (shape, operands, target, config) in calls.items()) +
              " ROOT r = (" + ", ".join(c[0] for c in calls.values()) + ") tuple(" + ", ".join(k + ".r" for k in calls) + ")\n}\n")
    code, text, err = run("exec", "-", "--backend=cuda", "--compare-with=evaluator", stdin=module, HLO_CUBLAS=fake, HLO_CUBLASLT=fake)
    expect("the newest calls", code == 0 and text.endswith("equal\n") and all(f"{k} ({c[2]}) runs in the evaluator" in text for k, c in calls.items()), text + err)

    module = "HloModule m\nENTRY e {\n p = f32[3,4] parameter(0)\n q = f32[4,5] parameter(1)\n ROOT d = s32[3,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    code, text, err = run("exec", "-", "--backend=cuda", stdin=module)
    expect("a product of floats as integers", code == 0 and "note: no kernel for d (dot): floats summed as integers" in text, text + err)

    # Failures of the driver: named, exit 2, everything given back.
    reductions = data / "kernels" / "reductions.hlo"
    for call, n in (("cuLaunchKernel", 3), ("cuMemcpyDtoHAsync_v2", 2), ("cuModuleLoadDataEx", 1), ("cuStreamCreate", 1), ("cuModuleGetFunction", 2)):
        code, text, err = run("exec", reductions, "--backend=cuda", HLO_FAKE_CUDA_FAIL=f"{call}:{n}", HLO_FAKE_CUDA_LOG=log)
        expect(call, code == 2 and call.removesuffix("_v2") in err and "CUDA_ERROR_LAUNCH_FAILED" in err, f"{code} {err}")
        clean(call)
    code, text, err = run("exec", reductions, "--backend=cuda", HLO_FAKE_CUDA_FAIL="cuLaunchKernel:3")
    expect("the kernel at fault", re.search(r"the last work begun was \w+ of ", err), err)
    code, text, err = run("exec", reductions, "--backend=cuda", HLO_FAKE_CUDA_MEMORY=100000)
    expect("too little memory", code == 2 and re.search(r"needs .* on the device \(parameters .*, constants .*, values .*\)", err), err)
    code, text, err = run("exec", reductions, "--backend=cuda", HLO_FAKE_CUDA_FAIL="cuInit")
    expect("no driver to use", code == 2 and "cuInit: CUDA_ERROR" in err, err)
    code, text, err = run("exec", reductions, "--backend=cuda", HLO_CUDA_DRIVER=tmp / "none.so")
    expect("no driver", code == 2 and "no CUDA driver here" in err, err)
    endless = "HloModule m\nb {\n s = s32[] parameter(0)\n ROOT r = s32[] add(s, s)\n}\nc {\n s = s32[] parameter(0)\n ROOT r = pred[] constant(true)\n}\nENTRY e {\n p = s32[] parameter(0)\n ROOT w = s32[] while(p), condition=c, body=b\n}\n"
    code, text, err = run("exec", "-", "--backend=cuda", "--max-steps=20", stdin=endless, HLO_FAKE_CUDA_LOG=log)
    expect("a loop without end", code == 2 and "w: it does not end within 20 steps" in err, err)
    clean("a loop without end")
    # Several devices, two of which share the one card: as the evaluator's.
    (tmp / "collectives.hlo").write_text("""HloModule collectives, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY e {
  p = f32[8] parameter(0)
  id = u32[] replica-id()
  number = f32[] convert(id)
  numbers = f32[8] broadcast(number), dimensions={}
  own = f32[8] add(p, numbers)
  all = f32[8] all-reduce(own), replica_groups={{0,1}}, to_apply=add
  other = f32[8] collective-permute(own), source_target_pairs={{0,1},{1,0}}
  gathered = f32[16] all-gather(other), replica_groups={{0,1}}, dimensions={0}
  ROOT r = (f32[8], f32[16]) tuple(all, gathered)
}
""")
    code, text, err = run("exec", tmp / "collectives.hlo", "--backend=cuda", "--compare-with=evaluator", HLO_FAKE_CUDA_LOG=log)
    expect("several devices", code == 0 and text.endswith("equal\n") and "o1 f32[16]" in text, text + err)
    clean("several devices")

    # A profile with the device's clock.
    code, text, err = run("exec", data / "mobilenet_v1.hlo", "--backend=cuda", f"--profile={tmp}/p.json", HLO_FAKE_CUDA_LOG=log)
    events = [e for e in json.loads((tmp / "p.json").read_text())["traceEvents"] if e.get("ph") == "X"]
    expect("profile", code == 0 and len(events) > 8 and all(e["dur"] >= 0 for e in events), text + err)
    clean("profile")

    # An edited kernel in the place of ours: what it computes is what comes out.
    add_one = data / "gpu" / "small_fusion.hlo"
    for ending in ("ptx", "ll"):
        code, text, err = run("convert", add_one, tmp / f"k.{ending}")
        original = (tmp / f"k.{ending}").read_text()
        edited = original.replace("0f3F800000", "0f40000000") if ending == "ptx" else original.replace("1.000000e+00", "2.000000e+00")
        expect(f"{ending} to edit", code == 0 and edited != original, original[:500])
        (tmp / f"edited.{ending}").write_text(edited)
        name = re.search(r"\.entry (\w+)\(", (tmp / "k.ptx").read_text())[1]
        code, text, err = run("exec", add_one, "--backend=cuda", f"--replace-kernel={name}={tmp}/k.{ending}", "--compare-with=evaluator")
        expect(f"our own {ending}", code == 0 and text.endswith("equal\n"), text + err)
        code, text, err = run("exec", add_one, "--backend=cuda", f"--replace-kernel={name}={tmp}/edited.{ending}", "--compare-with=evaluator")
        expect(f"edited {ending}", code == 1 and "different" in text, text + err)
    code, text, err = run("exec", add_one, "--backend=cuda", f"--replace-kernel=nobody={tmp}/k.ptx")
    expect("no such kernel", code == 2 and "no kernel is called nobody" in err and name in err, err)
    (tmp / "bad.ll").write_text("define void @f( {\n")
    code, text, err = run("exec", add_one, "--backend=cuda", f"--replace-kernel={name}={tmp}/bad.ll")
    expect("bad LLVM IR", code == 2 and "bad.ll:2:1: error" in err, err)
    (tmp / "bad.ptx").write_text((tmp / "k.ptx").read_text().replace("add.rn.f32", "frobnicate.f32"))
    code, text, err = run("exec", add_one, "--backend=cuda", f"--replace-kernel={name}={tmp}/bad.ptx")
    expect("bad PTX", code == 2 and "bad.ptx: cuModuleLoadDataEx" in err and "frobnicate" in err, err)
    code, text, err = run("exec", add_one, f"--replace-kernel={name}={tmp}/k.ptx")
    expect("not on the evaluator", code == 2 and "--backend=cuda" in err, err)
    # Wild kernels are caught as a card would.
    wild = (tmp / "k.ptx").read_text()
    wild = re.sub(r"(st\.global\.f32\s+\[%rd\d+)\]", r"\1+8000000]", wild)
    (tmp / "wild.ptx").write_text(wild)
    code, text, err = run("exec", add_one, "--backend=cuda", f"--replace-kernel={name}={tmp}/wild.ptx", HLO_FAKE_CUDA_LOG=log)
    expect("a wild store", code == 2 and "CUDA_ERROR_ILLEGAL_ADDRESS" in err and name in err, err)
    clean("a wild store")

    # The kernel cache: the same results, files that are kept, on the host too; what is damaged is made anew.
    cache = tmp / "cache"
    for backend in ("cuda", "host"):
        for k in range(3):
            code, text, err = run("exec", data / "kernels" / "fusions.hlo", f"--backend={backend}", f"--kernel-cache={cache}", "--compare-with=evaluator")
            expect(f"cache {backend} {k}", code == 0 and text.endswith("equal\n"), text + err)
            kept = sorted(cache.iterdir())
            if k == 1:
                for file in kept:
                    file.write_bytes(b"LLVM of another time\n")
        expect(f"cache {backend}", kept and all(f.name.endswith(".kernels") for f in kept), kept)

    # The self-test that a user runs: all of it is a test of its own (self_test).
    libraries = {"HLO_CUBLAS": fake, "HLO_CUBLASLT": fake, "HLO_CUDNN": fake}
    code, text, err = run("exec", "--self-test=convolution", "--backend=cuda", HLO_FAKE_CUDA_LOG=log, **libraries)
    expect("self-test", code == 0 and re.fullmatch(r"self-test of cuda on PTX interpreter \(sm_90a\): \d\d+ operations and \d modules in \d+ s, all as they should be\n", text), text + err)
    clean("self-test")
    code, text, err = run("exec", "--self-test=convolution", "--backend=cuda", HLO_FAKE_CUDA_FAIL="cudnnBackendExecute", HLO_FAKE_CUDA_LOG=log, **libraries)
    expect("self-test: failures", code == 1 and re.search(r"^FAILED convolution f32: cudnnBackendExecute: status 5000", text, re.M) and re.search(r", \d+ failed\n$", text), text + err)
    clean("self-test: failures")
    for args, said in ((("--self-test",), "no CUDA driver here"), (("--self-test", "--backend=evaluator", add_one), "--self-test goes with no FILE"), (("--self-test=nobody", "--backend=evaluator"), "--self-test=nobody: no operation or module is called so"), ((), "FILE is required")):
        code, text, err = run("exec", *(("--backend=cuda",) if "--backend=evaluator" not in args else ()), *args, HLO_CUDA_DRIVER=tmp / "none.so")
        expect(f"self-test: {said}", code == 2 and said in err, f"{code} {text} {err}")

    # tests/gpu/card.py, rehearsed.
    if (pathlib.Path(tool).parent.parent / "tests" / "ops_test").exists() and len(sys.argv) > 4 and sys.argv[4] == "rehearse":
        done = subprocess.run([sys.executable, pathlib.Path(source) / "tests" / "gpu" / "card.py", tmp / "results", "--jobs=2"], capture_output=True, text=True, timeout=600, env={**os.environ, "HLO_CUDA_DRIVER": fake, "HLO_TOOL": tool})
        told = json.loads((tmp / "results" / "results.json").read_text())["parts"]
        right = {part: [row["ok"] for row in rows] for part, rows in told.items()}
        expect("rehearsal", done.returncode == 0 and all(all(row) for row in right.values()) and len(right["equal"]) >= 15 and {"self-test", "tests", "times"} <= set(right), done.stdout + done.stderr)
print("cuda_test:", "FAILED" if failures else "passed")
sys.exit(1 if failures else 0)
