#!/usr/bin/env python3
"""Every library call, Triton fusion, sort, scatter and user's call of XLA's final modules, by class: what the evaluator,
the emulated kernels and the CUDA executor make of it.

  final_calls.py HLO_REPLAY FOLDER… [--only=WORD] [--backends=evaluator,emulated,cuda] [--fake=LIBRARY] [--most=N]
                 [--seconds=N] [--jobs=N] [--keep=DIR]

Of each FOLDER, at any depth, every *after_optimizations.txt. No module is run: each distinct call (target, shapes,
configuration and what it calls; the autotuner's choices apart) is cut out with parameters for its operands
(cut_calls.py), made smaller where it is large, and run alone: by the evaluator, by the emulated kernels and by the CUDA
executor on the fake driver and libraries of --fake (libfake_cuda.so of the build), both held against the evaluator. What
still takes too much work is told as too large. Prints a row a class:

  calls     in all modules
  distinct  of them, and how many were made smaller
  equal     as the evaluator has it, by kernels or a library (of the evaluator: that it runs)
  inside    as the evaluator has it, because the executor handed it to the evaluator
  refused, too large, different

then a line for each reason with the first call that has it. Exit code 1 where a call differs, or fails in another way
than by a refusal."""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from cut_calls import Cut, modules, shrink

# Classes by the target of a custom-call, then by the kind of a fusion.
TARGETS = {
    "__cublas$gemm": "cuBLAS product",
    "__cublas$lt$matmul": "cuBLASLt product",
    "__cublas$lt$matmul$f8": "cuBLASLt product, f8",
    "__cublas$triangularSolve": "triangular solve",
    "__cudnn$convForward": "convolution",
    "__cudnn$convBiasActivationForward": "convolution, bias and activation",
    "__cudnn$convBackwardFilter": "convolution, backward filter",
    "__cudnn$convBackwardInput": "convolution, backward input",
    "__cudnn$norm": "cuDNN norm",
    "TopK": "top-k",
    "__gpu$TopK": "top-k",
}
PREFIXES = {"xla.gpu.ext.cub_sort": "CUB sort", "__cub$": "CUB sort", "xla.gpu.ext.cub_scan": "CUB scan", "cusolver": "cuSOLVER",
            "__cusolver": "cuSOLVER", "lapack_": "LAPACK"}
KINDS = {"__triton_nested_gemm_fusion": "Triton, nested product", "__triton_gemm": "Triton, product", "__triton": "Triton",
         "__custom_fusion": "custom fusion", "__cudnn$fusion": "cuDNN fusion"}
ALONE = {"sort": "sort", "scatter": "scatter", "fft": "fft", "topk": "top-k", "cholesky": "cuSOLVER",
         "triangular-solve": "triangular solve", "convolution": "plain convolution", "dot": "plain product",
         "select-and-scatter": "select and scatter", "rng-bit-generator": "random bits"}
EVALUATED, EXECUTED = 1 << 31, 1 << 25  # elements of work


def bodies(computations):
    """Computations that are a kernel's inside, or applied to elements."""
    inside = set()
    for lines in computations.values():
        for one in lines.values():
            if one.op not in ("while", "conditional", "call", "async-start", "async-update", "async-done"):
                inside.update(one.called(computations))
    return inside


def class_of(one, computations, every):
    """The class of a call; None: not one of those that are judged."""
    if one.op == "custom-call":
        target = re.search(r'custom_call_target="([^"]*)"', one.attributes).group(1)
        if target.startswith("__cudnn$fmha"):
            return "attention, backward" if "Backward" in target else "attention, forward"
        return TARGETS.get(target) or next((c for p, c in PREFIXES.items() if target.startswith(p)), f"call of {target}")
    if one.op == "fusion":
        kind = re.search(r'"kind":"([^"]*)"', one.attributes)
        if kind and kind.group(1) in KINDS:
            return KINDS[kind.group(1)]
        held = {line.op for name in one.called(computations) for line in computations[name].values()}
        return next((f"fusion with {ALONE[op]}" for op in ALONE if op in held), "fusion" if every else None)
    return ALONE.get(one.op)


def calls_of(path, every):
    """(class, cut) of every call of a file; a library's call inside of a custom fusion is one, too."""
    for computations in modules(path):
        inside = bodies(computations)
        for name, lines in computations.items():
            for one in lines.values():
                if (name not in inside or one.op == "custom-call") and (kind := class_of(one, computations, every)):
                    yield kind, Cut(one, lines, computations)


def run_one(a, cut, file):
    """By backend: (outcome, why)."""
    file.write_text(cut.text())
    out = {}
    for backend in a.backends:
        if cut.work() > (EVALUATED if backend == "evaluator" else EXECUTED):
            out[backend] = "too large", f"{cut.work():.1e} elements of work"
            continue
        command = [a.tool, "exec", file, "--fit-inputs", "--json", f"--backend={backend}"]
        if backend != "evaluator":
            command.append("--compare-with=evaluator")
        fakes = {} if a.fake.name == "none" else {f"HLO_{n}": str(a.fake) for n in ("CUDA_DRIVER", "CUBLAS", "CUBLASLT", "CUDNN")}
        environment = {**os.environ, **fakes}
        start = time.monotonic()
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=a.seconds, env=environment)
        except subprocess.TimeoutExpired:
            out[backend] = "too large", f"over {a.seconds} s"
            continue
        out[backend] = outcome(done)
        if a.times:
            print(f"{time.monotonic() - start:7.2f} s {backend} {file.name} {cut.work():.1e}", file=sys.stderr, flush=True)
    return out


def outcome(done):
    lines = done.stderr.strip().splitlines()
    error = next((line for line in lines if "error: " in line), lines[-1] if lines else "")
    if done.returncode == 2:
        return "refused", error
    if done.returncode not in (0, 1):
        return "different", f"exit code {done.returncode}: {error}"
    told = json.loads(done.stdout)
    if done.returncode == 1:
        return "different", "; ".join(c["why"] for c in told["comparison"] if not c["equal"]) or error
    within = [n for n in told["notes"] if "in the evaluator" in n]
    return ("inside", within[0]) if within else ("equal", "")


def in_general(text):
    """A reason without files, names and sizes."""
    text = re.sub(r"^.*?error: ", "", text)
    text = re.sub(r"%?[A-Za-z_][\w\-]*(?:\.[\w\-]+)*\.\d+(?:\.\w+)*|^[\w\-.]+(?= \()", "NAME", text)
    return re.sub(r"[\d.]+(?:e\+\d+)? elements of work", "SOME elements of work", re.sub(r"\d+ of \d+", "N of N", text))[:200]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--only", default="", help="classes whose name holds it")
    parser.add_argument("--every", action="store_true", help="all other fusions as well")
    parser.add_argument("--backends", default="evaluator,emulated,cuda", type=lambda s: s.split(","))
    parser.add_argument("--fake", type=pathlib.Path, help="library in the place of CUDA's; none: the GPU of this machine")
    parser.add_argument("--most", default=100_000, type=int, help="elements of work that a call is made as small as")
    parser.add_argument("--seconds", default=60, type=int)
    parser.add_argument("--jobs", default=1, type=int)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the modules that were cut out")
    parser.add_argument("--times", action="store_true", help="seconds of each run, on stderr")
    a = parser.parse_args()
    a.fake = (a.fake or a.tool.parent.parent / "tests" / "libfake_cuda.so").resolve()
    calls, distinct = collections.Counter(), {}
    for path in sorted(p for folder in a.folders for p in folder.rglob("*after_optimizations.txt")):
        for kind, cut in calls_of(path, a.every):
            if a.only not in kind:
                continue
            calls[kind] += 1
            kept = distinct.setdefault((kind, cut.key()), [0, cut, path])
            kept[0] += 1
    for _, cut, _ in distinct.values():
        shrink(cut, a.most)
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        work = a.keep or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        runs = {key: pool.submit(run_one, a, cut, work / f"{key[1]}.hlo") for key, (_, cut, _) in distinct.items()}
        results = {key: run.result() for key, run in runs.items()}
    return report(a, calls, distinct, results)


def report(a, calls, distinct, results):
    bad = 0
    print(f"{'class':34} {'calls':>6} {'distinct':>8} {'smaller':>8}  " + "  ".join(f"{b + ': ':>12}equal inside refused large different" for b in a.backends))
    reasons = collections.defaultdict(list)
    for kind, count in sorted(calls.items(), key=lambda x: (-x[1], x[0])):
        mine = [key for key in distinct if key[0] == kind]
        cells = []
        for backend in a.backends:
            outcomes = collections.Counter(results[key][backend][0] for key in mine)
            cells.append(f"{'':12}" + " ".join(f"{outcomes[w] or '':>{n}}" for w, n in (("equal", 5), ("inside", 6), ("refused", 7), ("too large", 5), ("different", 9))))
            bad += outcomes["different"]
            for key in mine:
                what, why = results[key][backend]
                if why:
                    reasons[backend, kind, what, in_general(why)].append(key)
        print(f"{kind:34} {count:>6} {len(mine):>8} {sum(distinct[key][1].smaller for key in mine):>8}  " + "  ".join(cells))
    print()
    for (backend, kind, what, why), keys in sorted(reasons.items()):
        count, cut, path = distinct[keys[0]]
        print(f"{backend}: {kind}: {what}: {sum(distinct[k][0] for k in keys)} calls, {len(keys)} distinct ({cut.call.name} of {path.parent.name if path.parent.name != 'dump' else path.parent.parent.name}, {keys[0][1]}): {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
