#!/usr/bin/env python3
"""Mutants of every format through every command: tests/dev/faults/fuzz_commands.py TOOL [--runs N] [--seed S] [--keep FOLDER]

A run takes a seed file or folder of one format, mutates it, and gives it to a command that reads that format, with
limits of time, memory and processes (tests/hostile/tool.py). Prints a table of formats by outcomes. What ends with a
signal, does not end, says a raw C++ message or writes beside its own folder is kept (the input and its command) and
makes exit 1. A run depends on the seed and its number only: --first=N --runs=1 repeats one.
"""
import argparse
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests" / "hostile"))
sys.path.insert(0, str(ROOT / "tests" / "dev" / "faults"))
import tool as hostile  # noqa: E402
from fuzz_mutate import mutate_file, mutate_folder  # noqa: E402

DATA = ROOT / "testdata"


# -- seeds ------------------------------------------------------------------------------------------------------------

def hlo_texts():
    """Small modules of many kinds, from the tests' own data."""
    texts = [p.read_text() for p in sorted(DATA.glob("*.hlo")) + sorted((DATA / "kernels").glob("*.hlo")) +
             sorted((DATA / "gpu").glob("small_*.hlo"))]
    for path in sorted((DATA / "passes").glob("*.hlo")):
        for case in path.read_text().split("// CASE:")[1:]:
            texts.append("//" + case.split("// EXPECT")[0])
    for name in ("cases.jsonl", "dialects.jsonl"):
        for line in (DATA / "text" / name).read_text().splitlines():
            row = json.loads(line)
            if "prints" in row and "prelude" not in row:
                texts.append(row["text"])
    for line in (DATA / "eval" / "ops.jsonl").read_text().splitlines()[::40]:
        texts.append(json.loads(line)["text"])
    return [t for t in texts if len(t) < 200_000]


def make_seeds(tool, folder):
    """{format: [path]}: files and folders to be mutated, made by the tool itself where it writes them."""
    folder.mkdir()
    seeds = collections.defaultdict(list)

    def made(*args):
        hostile.run(tool, *args, seconds=60)

    for k, text in enumerate(hlo_texts()):
        path = folder / f"{k:04}.hlo"
        path.write_text(text)
        seeds["hlo"].append(path)
    small = sorted(DATA.glob("*.hlo")) + sorted((DATA / "kernels").glob("*.hlo"))
    small = [p for p in small if p.stat().st_size < 60_000]
    for path in small:
        for ending in ("pb", "pb.gz", "pbtxt", "json"):
            out = folder / f"{path.stem}.{ending}"
            made("convert", path, out)
            if out.exists():
                seeds[ending].append(out)
        packed = folder / f"{path.stem}.hlo.gz"
        packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        seeds["hlo.gz"].append(packed)
    for name in ("mnist_softmax", "add", "linear_regression"):
        path, out = DATA / f"{name}.hlo", folder / f"{name}.npz"
        made("exec", path, "--seed=1", f"--out={out}")
        seeds["npz"].append(out)
        for which in ("xla-2019", "xla-gpu"):
            made("replay", path, "-o", folder / f"{name}.{which}", f"--pipeline={which}", "--formats=text,dot,buffers,thunks")
            recording = folder / f"{name}.{which}"
            seeds["recording"].append(recording)
            dump = folder / f"{name}.{which}.dump"  # XLA's names without the recording: what XLA leaves
            shutil.copytree(recording, dump)
            for p in list(dump.glob("*.json")) + list(dump.glob("*.html")):
                p.unlink()
            seeds["xla_dump"].append(dump)
        for ending in ("json", "txt"):
            out = folder / f"{name}.profile.{ending}"
            made("exec", path, "--backend=host", f"--profile={out}")
            seeds["trace"].append(out)
    header = b"\x93NUMPY\x01\x00" + b"\x76\x00"
    for descr, shape, size in (("<f4", "(4,)", 16), ("<i8", "(2, 3)", 48), ("|b1", "()", 1)):
        said = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(0x75).encode() + b"\n"
        path = folder / f"a{size}.npy"
        path.write_bytes(header + said + bytes(range(size)))
        seeds["npy"].append(path)
    seeds["graphdef"] += [folder / p.name for p in (DATA / "link").glob("*.pbtxt") if shutil.copy(p, folder)]
    table = folder / "nsys.csv"
    table.write_text("Time (%),Total Time (ns),Instances,Name\n75.0,3000000,1,\"fusion(float*)\"\n25.0,1000000,2,dot_1\n")
    nvprof = folder / "nvprof.csv"
    nvprof.write_text("==1== Profiling result:\n\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Name\"\n,%,ms,,\n"
                      "\"GPU activities\",75.0,3.0,1,\"fusion\"\n\"GPU activities\",25.0,1.0,2,\"other\"\n")
    seeds["trace"] += [table, nvprof]
    for kind, pattern in (("xplane", "*.xplane.pb.gz"), ("compile_cache", "cache/*-cache"), ("snapshot", "*snapshot.*"), ("torch_graphs", "torch_xla*.txt")):
        for source in sorted((DATA / "profiles").glob(pattern)):
            path = folder / source.name.removesuffix(".gz")
            path.write_bytes(gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes())
            seeds[kind].append(path)
    seeds["trace"].append(folder / "jax_cpu.trace.json")
    seeds["trace"][-1].write_bytes(gzip.decompress((DATA / "profiles" / "jax_cpu.trace.json.gz").read_bytes()))
    tuned = folder / "tuned.autotune_results.pbtxt"
    shutil.copy(DATA / "tuned" / "f8_matmul.pbtxt", tuned)
    older = folder / "older.autotune_results.pbtxt"
    older.write_text('version: 3\nresults { device: "CUDA: 9.0" hlo: "{ }" result { run_time { nanos: 5 } triton { block_m: 32 split_k: 4 } } }\n')
    binary = folder / "tuned.autotune_results.pb"
    binary.write_bytes(bytes.fromhex("0a036465761a190a080a061a0461626364120d0a0b0802120712050880012002"))
    seeds["tuning"] += [tuned, older, binary]
    graphs = folder / "graphs"
    graphs.mkdir()
    for k in range(3):
        nodes = "".join(f"  {n} [label=\"n{n}\", shape=box];\n" for n in range(k + 2))
        (graphs / f"hlo_graph_{k}.dot").write_text("digraph G {\nrankdir = TB;\n" + nodes + "  0 -> 1 [tooltip=\"x\"];\n}\n")
    (graphs / "xla_log.txt").write_text("".join(
        f"2018-06-08 I hlo_graph_dumper.cc:1416] computation cluster_0.v82 [CPU:\n{what}]: /tmp/hlo_graph_{k}.dot\n"
        for k, what in enumerate(("pipeline start, before inline", "after inline, before algsimp", "after algsimp, before dce"))))
    seeds["dot"].append(graphs)
    cache = folder / "cache"
    made("exec", DATA / "mnist_softmax.hlo", "--backend=host", f"--kernel-cache={cache}")
    seeds["kernel_cache"].append(cache)
    real = sorted((ROOT.parent / "shared" / "dumps").glob("*.tar.zst"), key=lambda p: p.stat().st_size)[:4]
    if shutil.which("zstd"):
        for archive in real:
            out = folder / archive.name.split(".")[0]
            out.mkdir()
            packed = subprocess.run(["zstd", "-dc", archive], check=True, stdout=subprocess.PIPE).stdout
            subprocess.run(["tar", "-x", "-C", out], check=True, input=packed)
            seeds["xla_dump"].append(out)
    return dict(seeds)


# -- commands ---------------------------------------------------------------------------------------------------------

PASSES = ["algsimp", "cse", "dce", "fusion", "layout-assignment", "copy-insertion", "reshape-mover", "constant_folding",
          "call-inliner", "dot_decomposer", "batchnorm_expander", "flatten-call-graph", "tuple-simplifier"]
RUN = ["--max-steps=2000", "--fit-inputs", "--fill-elided=random"]


def module_command(rng, path, seeds):
    """A command that reads one module; `run/` is where it may write. {in} is the mutant."""
    plain = DATA / "mnist_softmax.hlo"
    passes = ",".join(rng.sample(PASSES, rng.randrange(1, 4)))
    step = "until algsimp\nnotes\ndiff\nexec\nnext\nback\nprint\nquit\n"
    choices = [
        (3, ["verify", path]), (1, ["verify", "--json", path]), (2, ["print", path]),
        (2, ["print", f"--style={rng.choice(['default', 'long', 'short', 'canonical', 'fingerprint'])}", path]),
        (1, ["print", "--permissive", "--dialect=2019", "--compact-gte", "--color", path]), (1, ["fmt", path]),
        (1, ["fmt", "--check", path]), (1, ["stats", "--json", path]), (1, ["cost", path]), (1, ["occupancy", path]),
        (4, ["convert", path, "out." + rng.choice(["hlo", "pb", "pb.gz", "pbtxt", "json", "dot", "svg", "ll", "ptx"])]),
        (4, ["exec", path, *RUN]), (3, ["exec", path, "--backend=host", *RUN]), (2, ["exec", path, "--backend=emulated", *RUN]),
        (1, ["exec", path, "--nan", *RUN]), (1, ["exec", path, "--trace=trace", *RUN]), (1, ["exec", path, "--precision=high", *RUN]),
        (1, ["exec", path, "--compare-with=host", *RUN]), (1, ["exec", path, "--profile=p.html", *RUN]),
        (3, ["opt", f"--passes={passes}", path]), (1, ["opt", "--json", f"--passes={passes}", path]),
        (3, ["replay", path, "-o", "out", "--formats=text,dot"]), (1, ["replay", path, "-o", "out"]),
        (1, ["replay", path, "-o", "out", "--pipeline=xla-gpu", "--formats=text"]),
        (1, ["replay", path, "-o", "out", "--force-replay", "--formats=text,json,proto,buffers,thunks"]),
        (2, ["whatif", path, rng.choice(["--batch=3", "--batch=p:5", "--disable=priority-fusion,algsimp", "--gpu=A100", "--set=algsimp.fixpoint=true"])]),
        (1, ["bisect", path, *RUN]), (1, ["reduce", path, f"--passes={passes}", "--most=30", "-o", "out", *RUN]),
        (1, ["reduce", path, "--nan", "--most=30", "-o", "out", *RUN]), (1, ["reduce", path, "--verify", "--most=30", "-o", "out"]),
        (1, ["extract", path, rng.choice(["r", "root", "dot", "x", "fusion"]), "-o", "e.hlo", "--inputs-out=e.npz", *RUN]),
        (1, ["diff", path, plain]), (1, ["diff", plain, path, "--html=d.html"]), (1, ["diff", path, rng.choice(seeds["hlo"]), "--by=text"]),
        (1, ["isolate", path, "-o", "out", *RUN]), (1, ["link", path, plain, "-o", "l.html"]), (1, ["link", plain, path, "--emit=l.hlo"]),
        (1, ("stdin", step, ["step", path, *RUN])),
    ]
    return rng.choices([c for _, c in choices], [w for w, _ in choices])[0]


def folder_command(rng, path, files):
    stages = [f"{path}:{rng.randrange(3)}:{rng.randrange(8):04}", f"{path}:{rng.randrange(3)}", f"{path}:before_optimizations", f"{path}:after_optimizations", f"{path}:fusion"]
    return rng.choice([
        ["open", path], ["open", "--json", path], [path], ["view", path, "-o", "out"], ["exec", path, "--all-stages", *RUN],
        ["bisect", path, *RUN], ["bisect", path, "--regex=f32", "-o", "out"], ["bisect", path, "--verify"], ["explain", path, "dot"],
        ["explain", path, rng.choice(["r", "fusion", "softmax", "fusion.1"])], ["explain", path, "--pass", "algsimp"],
        ["explain", path, "--why-not", "dot", "fusion"], ["diff", path, rng.choice(files)], ["diff", rng.choice(files), path],
        ["link", path, "-o", "l.json"], ["print", rng.choice(stages)], ["verify", rng.choice(stages)],
        ["exec", rng.choice(stages), *RUN], ["isolate", rng.choice(stages), "-o", "out", *RUN], ["cost", rng.choice(stages)]])


def command(rng, kind, path, seeds):
    module = DATA / "mnist_softmax.hlo"
    if kind in ("hlo", "hlo.gz", "pb", "pb.gz", "pbtxt", "json"):
        return module_command(rng, path, seeds)
    if kind in ("npz", "npy"):
        if (DATA / f"{path.stem}.hlo").exists():  # the module whose values these were
            module = DATA / f"{path.stem}.hlo"
        return rng.choice([["exec", DATA / "add.hlo", f"--inputs={path}"], ["exec", module, f"--inputs={path}"],
                           ["compare", path, rng.choice(seeds["npz"])], ["compare", rng.choice(seeds["npz"]), path],
                           ["compare", path, path, f"--reference={path}", f"--module={module}"],
                           ["exec", module, f"--compare-with={path}"], ["exec", module, "--backend=host", f"--inputs={path}"]])
    if kind == "tuning":
        stage = sorted((DATA / "tuned" / "dump").iterdir())[0]
        return rng.choice([["tuned", path], ["tuned", path, "--json"], ["tuned", stage, f"--results={path}"],
                           ["opt", "--passes=autotuner", f"--autotune-results={path}", stage]])
    if kind == "trace":
        recording = rng.choice(seeds["recording"])
        return rng.choice([["explain", recording, "dot", f"--trace={path}"], ["explain", recording, "fusion", f"--trace={path}"],
                           ["diff", "--profile", path, rng.choice(seeds["trace"])],
                           ["diff", "--profile", rng.choice(seeds["trace"]), path, "--json"],
                           ["profile", path, DATA / "profiles/dump", "--spans"], ["profile", path, module, "--by=line", "--json"]])
    if kind == "xplane":
        return rng.choice([["profile", path, "--spans", "--json"], ["profile", path, DATA / "profiles/dump", "--by=class"], ["print", f"{path}:f"],
                           ["exec", f"{path}:jit_multiply"], ["profile", path, "--at=1"], ["open", path.parent],
                           ["cost", DATA / "profiles/dump", f"--profile={path}"], ["explain", DATA / "profiles/dump:jit_f", "sort.5", f"--trace={path}"]])
    if kind in ("compile_cache", "snapshot", "torch_graphs"):
        return rng.choice([["print", path], ["exec", path], ["print", f"{path}:jit_f"], ["stats", f"{path}@2", "--json"], ["open", path.parent], ["convert", path, "o.pb"]])
    if kind == "graphdef":
        return rng.choice([["link", f"--graph={path}", "-o", "g." + rng.choice(["dot", "svg", "html", "json"])],
                           ["link", DATA / "link/add.hlo", DATA / "link/mul.hlo", f"--graph={path}", "--json"],
                           ["link", DATA / "link/add.hlo", DATA / "link/mul.hlo", f"--graph={path}", "--emit=both.hlo"],
                           ["convert", path, "g.svg"], ["open", path]])
    if kind == "kernel_cache":
        return ["exec", module, "--backend=host", f"--kernel-cache={path}"]
    if kind == "dot":
        return rng.choice([["open", path], ["open", "--json", path], ["view", path, "-o", "out"], ["print", f"{path}:1:0001"],
                           ["explain", path, "n1"]])
    return folder_command(rng, path, seeds["recording"] + seeds["xla_dump"])


# -- runs -------------------------------------------------------------------------------------------------------------

def outcome_of(tool, args, given, work, seconds):
    environment = dict(os.environ, TMPDIR=str(work / "tmp"), HLO_KERNEL_CACHE="")
    stdin = subprocess.DEVNULL
    if given is not None:
        (work / "stdin").write_text(given)
        stdin = open(work / "stdin", "rb")
    try:
        with open(work / "stdout", "wb") as out:
            result = hostile.run(tool, *args, seconds=seconds, stdin=stdin, stdout=out, cwd=work / "run", env=environment)
        return f"exit {result.code}", result.err
    except AssertionError as failure:
        said = str(failure)
        if said.startswith("no end"):
            return "hang", said
        if said.startswith("a raw message"):
            return "raw message", said
        code = re.match(r"exit (-?\d+)", said)
        return (f"signal {-int(code[1])}" if code and int(code[1]) < 0 else "other exit"), said
    finally:
        if given is not None:
            stdin.close()


def one(tool, seeds, options, number, scratch):
    """Returns (format, outcome, the command in words, what was said, seconds)."""
    rng = random.Random(f"{options.seed}/{number}")
    kinds = [k for k in sorted(seeds) if not options.only or k in options.only]
    kind = rng.choices(kinds, [6 if k == "hlo" else 2 if k in ("recording", "xla_dump") else 1 for k in kinds])[0]
    seed = rng.choice(seeds[kind])
    work = scratch / f"{number:06}"
    for name in ("in", "run", "tmp"):
        (work / name).mkdir(parents=True)
    mutant = work / "in" / seed.name
    if seed.is_dir():
        shutil.copytree(seed, mutant)
        mutate_folder(rng, mutant)
    else:
        mutant.write_bytes(mutate_file(rng, seed.read_bytes(), rng.choice(seeds[kind]).read_bytes()))
    args = command(rng, kind, mutant, seeds)
    given = None
    if isinstance(args, tuple):
        _, given, args = args
    before = sorted(p.name for p in (work / "in").iterdir())
    started = time.monotonic()
    outcome, said = outcome_of(tool, args, given, work, options.seconds)
    if outcome == "hang" and options.seconds < 60:  # a busy machine is no hang: once more, with three times the time
        shutil.rmtree(work / "run")
        (work / "run").mkdir()
        outcome, said = outcome_of(tool, args, given, work, options.seconds * 3)
    took = time.monotonic() - started
    beside = sorted(p.name for p in (work / "in").iterdir()) != before or \
        {p.name for p in work.iterdir()} - {"in", "run", "tmp", "stdin", "stdout"}
    if beside and outcome.startswith("exit"):
        outcome, said = "wrote beside", f"in the input's folder or above its own: {outcome}"
    words = " ".join(str(a).replace(str(mutant), f"in/{seed.name}").replace(str(DATA), "testdata") for a in args)
    if not outcome.startswith("exit"):
        kept = options.keep / f"{number:06}_{kind}_{outcome.replace(' ', '_')}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        shutil.copytree(work / "in", kept / "in", symlinks=True, ignore=lambda d, names: [
            n for n in names if not (os.path.isfile(os.path.join(d, n)) or os.path.isdir(os.path.join(d, n)))])
        (kept / "command").write_text(f"# --seed={options.seed} --first={number} --runs=1\nhlo-replay {words}\n{said}\n")
    shutil.rmtree(work, ignore_errors=True)
    return kind, outcome, words, said, took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tool", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--only", action="append", help="this format only (repeat)")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/fuzz"), help="folder for what failed")
    options = parser.parse_args()
    options.keep = options.keep.resolve()
    table, failed, slow = collections.defaultdict(collections.Counter), [], []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hlo-fuzz-") as tmp:
        scratch = pathlib.Path(tmp)
        seeds = make_seeds(options.tool, scratch / "seeds")
        unknown = set(options.only or ()) - set(seeds)
        if unknown:
            sys.exit(f"error: no format {', '.join(sorted(unknown))}; formats are {', '.join(sorted(seeds))}")
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            numbers = range(options.first, options.first + options.runs)
            for number, row in zip(numbers, pool.map(lambda n: one(options.tool, seeds, options, n, scratch), numbers)):
                kind, outcome, words, said, took = row
                table[kind][outcome] += 1
                slow.append((took, number, words))
                if not outcome.startswith("exit"):
                    failed.append(number)
                    print(f"{number}: {outcome}: {words}\n    {said[-300:]}".replace("\n\n", "\n"), flush=True)
    columns = sorted({o for row in table.values() for o in row})
    print(f"| format | runs | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 2)}")
    for kind, row in sorted(table.items()) + [("all", sum(table.values(), collections.Counter()))]:
        print(f"| {kind} | {sum(row.values())} | {' | '.join(str(row[c] or '') for c in columns)} |")
    for took, number, words in sorted(slow, reverse=True)[:5]:
        print(f"{took:6.1f} s  {number}: {words}")
    print(f"{options.runs} runs, seed {options.seed}, {time.monotonic() - started:.0f} s; {len(failed)} failed" +
          (f", kept in {options.keep.name}/" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
