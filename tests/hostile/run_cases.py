"""Modules that broke the evaluator and the executors: calls of libraries, sizes, depth, caches, arrays in files."""
import json
import os
import random
import shutil
import struct
import warnings
import zipfile

from library_call_modules import modules
from tool import SANITIZED, run


def library_calls(tool, tmp, seed, backend, count):
    """All of a seed in one process, as stages of a folder; twice, with other bytes in fresh memory."""
    folder = tmp / f"calls_{seed}_{backend}"
    folder.mkdir()
    kept = []
    (folder / "module_0001.m.0000.run.after_pipeline-start.before_call.txt").write_text("HloModule m\nENTRY e {\n  ROOT r = f32[] constant(0)\n}\n")
    for n, (right, text) in enumerate(modules(seed, count)):
        kept.append((right, text))
        (folder / f"module_0001.m.{n + 1:04}.run.after_call.before_call.txt").write_text(text)
    said = []
    for perturb in ("85", "170"):
        env = dict(os.environ, MALLOC_PERTURB_=perturb)
        r = run(tool, "exec", folder, "--all-stages", "--json", f"--backend={backend}", seconds=60, env=env)
        stages = json.loads(r.out)["stages"]
        assert len(stages) == len(kept) + 1, f"{len(stages)} of {len(kept)} ran: {r.err[-300:]}"
        for (right, text), stage in zip(kept, stages[1:]):
            assert not right or stage["result"] != "refused", f"refused, but right: {stage['detail']}\n{text}"
            assert "std::" not in stage.get("detail", "") and "internal" not in stage.get("detail", ""), (stage, text)
        said.append([dict(s, detail=s.get("detail", "")) for s in stages])
    for (right, text), first, second in zip(kept, said[0][1:], said[1][1:]):
        assert first == second, f"two runs, two results: {first} {second}\n{text}"
    shutil.rmtree(folder)


def text(tmp, name, body):
    file = tmp / f"{name}.hlo"
    file.write_text("HloModule m\n" + body)
    return file


HUGE = "u32[4611686018427387908]"  # 2^62 + 4 elements: 16 bytes, if 64 bits wrap
HUGE_BUFFER = f'b = {HUGE} custom-call(), custom_call_target="AllocateBuffer"\n'
SIZES = {
    "read beyond a size that wraps": "ENTRY e {\n a = u8[16] parameter(0)\n " + HUGE_BUFFER + " i = s64[] constant(64)\n"
        " ROOT d = u32[64] dynamic-slice(b, i), dynamic_slice_sizes={64}\n}\n",
    "write beyond a size that wraps": "ENTRY e {\n v = u32[2] constant({7, 8})\n " + HUGE_BUFFER + " i = s64[] constant(64)\n"
        f" c = {HUGE} dynamic-update-slice(b, v, i)\n ROOT d = u32[2] dynamic-slice(c, i), dynamic_slice_sizes={{2}}\n}}\n",
    "write far beyond a size that wraps": "ENTRY e {\n v = u32[2] constant({7, 8})\n " + HUGE_BUFFER +
        f" i = s64[] constant(40000000)\n c = {HUGE} dynamic-update-slice(b, v, i)\n"
        " ROOT d = u32[2] dynamic-slice(c, i), dynamic_slice_sizes={2}\n}\n",
    "a parameter whose size wraps": "ENTRY e {\n ROOT p = f32[4611686018427387904] parameter(0)\n}\n",
    "a broadcast whose size wraps": "ENTRY e {\n c = c128[] constant((1, 2))\n ROOT b = c128[1152921504606846977] broadcast(c), dimensions={}\n}\n",
    "an iota of 2^58 elements": "ENTRY e {\n i = s8[288230376151711744] iota(), iota_dimension=0\n"
        " ROOT s = s8[1] slice(i), slice={[7:8]}\n}\n",
    "values whose sum wraps": "ENTRY e {\n c = f32[] constant(1)\n" + "".join(
        f" b{k} = f32[2147483648,256] broadcast(c), dimensions={{}}\n s{k} = f32[1,1] slice(b{k}), slice={{[0:1], [0:1]}}\n"
        for k in range(5)) + " t = f32[1,1] add(s0, s1)\n ROOT r = f32[1,1] add(s2, t)\n}\n",
    "an array of 2^44 bytes": "ENTRY e {\n c = f32[] constant(1)\n b = f32[4398046511104] broadcast(c), dimensions={}\n"
        " ROOT s = f32[1] slice(b), slice={[7:8]}\n}\n",
}


def refused(tool, file, backend):
    """By the verifier where it sees it (1); by the executor, which does not lean on the verifier."""
    first = run(tool, "exec", file, f"--backend={backend}")
    first.expect(1 if "does not verify" in first.err else 2)
    run(tool, "exec", file, f"--backend={backend}", "--no-verify").expect(2, "error: ")


def folder_of(folder, bodies):
    """Modules without parameters as stages, which one process runs one by one."""
    folder.mkdir()
    for n, body in enumerate(["ENTRY e {\n  ROOT r = f32[] constant(0)\n}\n"] + bodies):
        (folder / f"module_0001.m.{n:04}.run.after_x.before_x.txt").write_text("HloModule m\n" + body)
    return folder


def operations(tool, tmp, backend):
    """Every kind of operation on every kind of type: what verifies is run or refused by name."""
    unary = ["not", "popcnt", "count-leading-zeros", "negate", "abs", "sign", "exponential", "is-finite", "real", "cbrt"]
    binary = ["and", "shift-left", "shift-right-arithmetic", "shift-right-logical", "atan2", "power", "remainder", "maximum"]
    bodies = []
    for kind, one in [("pred", "true"), ("s8", "3"), ("u4", "3"), ("bf16", "1.5"), ("f32", "1.5"), ("f8e4m3fn", "1.5"), ("c64", "(1, 2)")]:
        for op in unary + binary:
            result = "pred" if op == "is-finite" else "f32" if (op, kind) == ("real", "c64") else kind
            operands = "b" if op in unary else "b, b"
            bodies.append(f"ENTRY e {{\n c = {kind}[] constant({one})\n b = {kind}[4] broadcast(c), dimensions={{}}\n"
                          f" ROOT r = {result}[4] {op}({operands})\n}}\n")
    bodies.append("add {\n a = f64[] parameter(0)\n b = f64[] parameter(1)\n ROOT s = f64[] add(a, b)\n}\n"
                  "ENTRY e {\n i = f32[8] iota(), iota_dimension=0\n z = f64[] constant(0)\n"
                  " ROOT r = f64[] reduce(i, z), dimensions={0}, to_apply=add\n}\n")
    r = run(tool, "exec", folder_of(tmp / f"operations_{backend}", bodies), "--all-stages", "--json", f"--backend={backend}", seconds=60)
    stages = json.loads(r.out)["stages"]
    assert len(stages) == len(bodies) + 1, stages[-1]
    for stage in stages:
        assert "internal" not in stage.get("detail", ""), stage


def chain(op, length, shape="f32[4]"):
    lines = [f" v{k} = {shape} {op.format(a=f'v{k - 1}' if k else 'p')}\n" for k in range(length)]
    return f"ENTRY e {{\n p = {shape} parameter(0)\n" + "".join(lines) + f" ROOT r = {shape} negate(v{length - 1})\n}}\n"


def diamond(length):
    """A norm whose row goes through that many operations before it is summed."""
    lines = [f" v{k} = f32[8,16]{{1,0}} cosine({f'v{k - 1}' if k else 'p'})\n" for k in range(length)]
    return ("add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
            "ENTRY e {\n p = f32[8,16]{1,0} parameter(0)\n z = f32[] constant(0)\n" + "".join(lines)
            + f" r = f32[8]{{0}} reduce(v{length - 1}, z), dimensions={{1}}, to_apply=add\n"
            " b = f32[8,16]{1,0} broadcast(r), dimensions={0}\n ROOT d = f32[8,16]{1,0} divide(p, b)\n}\n")


def calls(length):
    first = "fn0 {\n p = f32[4] parameter(0)\n ROOT r = f32[4] add(p, p)\n}\n"
    rest = "".join(f"fn{k} {{\n p = f32[4] parameter(0)\n ROOT c = f32[4] call(p), to_apply=fn{k - 1}\n}}\n" for k in range(1, length))
    return first + rest + f"ENTRY e {{\n p = f32[4] parameter(0)\n ROOT c = f32[4] call(p), to_apply=fn{length - 1}\n}}\n"


def nested(tool, file, backend):
    """Refused, but where the stack has no limit."""
    result = run(tool, "exec", file, f"--backend={backend}")
    assert result.code == 0 or "nested" in result.err, result.err


def many_elements(count):
    shape = "(" + ", ".join(["f32[]"] * count) + ")"
    lines = [" p = f32[] parameter(0)\n", f" t = {shape} tuple({', '.join(['p'] * count)})\n"]
    lines += [f" g{k} = f32[] get-tuple-element(t), index={k}\n" for k in range(count)]
    lines += [f" u = {shape} tuple({', '.join(f'g{k}' for k in range(count))})\n", f" h = f32[] get-tuple-element(u), index={count - 1}\n"]
    return "ENTRY e {\n" + "".join(lines) + " ROOT s = f32[] negate(h)\n}\n"


def parts(count):
    return f"ENTRY e {{\n p = f32[4] parameter(0)\n ROOT c = f32[{4 * count}] concatenate({', '.join(['p'] * count)}), dimensions={{0}}\n}}\n"


# 14 GiB of weights: more than a limit of 6 GiB, and more or less than the machine has.
def large_model():
    lines, last = ["ENTRY e {\n x = bf16[8,4096] parameter(0)\n"], "x"
    for k in range(112):
        lines.append(f" w{k} = bf16[4096,16384] parameter({k + 1})\n d{k} = bf16[8,16384] dot({last}, w{k}), "
                     f"lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n sl{k} = bf16[8,4096] slice(d{k}), slice={{[0:8], [0:4096]}}\n")
        last = f"sl{k}"
    return "".join(lines) + f" ROOT r = bf16[8,4096] negate({last})\n}}\n"


def large_values():
    """8 GiB of values at once that no order of execution avoids, 4 kB of parameters."""
    lines = ["ENTRY e {\n p = f32[1024] parameter(0)\n b = f32[1024,131072] broadcast(p), dimensions={0}\n"]
    lines += [f" c{k} = (f32[1024,131072], s32[1024,131072]) topk(b), k=131072, largest=true\n" for k in range(8)]
    lines += [f" g{k} = f32[1024,131072] get-tuple-element(c{k}), index=0\n" for k in range(8)]
    return "".join(lines) + " ROOT t = (" + ", ".join(["f32[1024,131072]"] * 8) + ") tuple(" + ", ".join(f"g{k}" for k in range(8)) + ")\n}\n"


def cache_of_pipes(tool, tmp):
    """Where a cached kernel should be, a pipe: it is compiled anew, and takes the pipe's place."""
    file = text(tmp, "piped", "ENTRY e {\n p = f32[1001] parameter(0)\n ROOT r = f32[1001] exponential(p)\n}\n")
    cache = tmp / "pipes"
    command = ["exec", file, "--backend=host", f"--kernel-cache={cache}"]
    run(tool, *command).expect(0)
    for kernel in cache.iterdir():
        kernel.unlink()
        os.mkfifo(kernel)
    run(tool, *command).expect(0)


def flipped_cache(tool, tmp):
    """A bit that has turned over in a cached kernel is compiled anew: the same result, never a crash."""
    file = text(tmp, "cached", "ENTRY e {\n p = f32[1000] parameter(0)\n e = f32[1000] exponential(p)\n ROOT r = f32[1000] add(e, p)\n}\n")
    cache = tmp / "cache"
    command = ["exec", file, "--backend=host", f"--kernel-cache={cache}"]
    right = run(tool, *command).expect(0).out.split("\n")[1]
    kernel = next(cache.glob("*.kernels"))
    whole = kernel.read_bytes()
    draw = random.Random(7)
    for place in [whole.index(b"\x7fELF") + 24] + [draw.randrange(len(whole)) for _ in range(24)]:
        kernel.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1:])
        assert run(tool, *command).expect(0).out.split("\n")[1] == right
    kernel.write_bytes(whole[: len(whole) // 2])
    assert run(tool, *command).expect(0).out.split("\n")[1] == right
    assert kernel.read_bytes() == whole


def npy(dictionary, payload=bytes(16), version=(1, 0), size=None):
    head = dictionary.encode() + b"\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", len(head) if size is None else size)
    return b"\x93NUMPY" + bytes(version) + length + head + payload


RIGHT_HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
HEADERS = {
    "a negative dimension": npy(RIGHT_HEADER.replace("(4,)", "(-4,)")),
    "two negative dimensions": npy(RIGHT_HEADER.replace("(4,)", "(-2, -2)")),
    "a fraction": npy(RIGHT_HEADER.replace("(4,)", "(1.4,)")),
    "no closing parenthesis": npy(RIGHT_HEADER.replace("(4,)", "(4,")),
    "an integer as shape": npy(RIGHT_HEADER.replace("(4,)", "4")),
    "a shape that wraps": npy(RIGHT_HEADER.replace("(4,)", "(4294967296, 4294967296, 4)")),
    "version 9": npy(RIGHT_HEADER, version=(9, 0)),
    "version 2 of odd length": npy(RIGHT_HEADER, version=(2, 0), size=1 << 31),
    "a field twice": npy(RIGHT_HEADER.replace("}", "'shape': (4,)}")),
    "an unknown field": npy(RIGHT_HEADER.replace("}", "'strides': (4,)}")),
    "a header cut behind fortran_order": npy("{'descr': '<f4', 'fortran_order'"),
    "no fortran_order": npy("{'descr': '<f4', 'shape': (4,)}"),
    "objects": npy(RIGHT_HEADER.replace("<f4", "|O")),
    "a header that goes on": npy(RIGHT_HEADER + " 7"),
    "nothing": b"",
    "magic only": b"\x93NUMPY",
}


def damaged_array(tool, tmp, body):
    (tmp / "a.npy").write_bytes(body)
    run(tool, "exec", tmp / "one.hlo", f"--inputs={tmp / 'a.npy'}").expect(2, "a.npy")
    with zipfile.ZipFile(tmp / "a.npz", "w") as archive:
        archive.writestr("p0.npy", body)
    run(tool, "exec", tmp / "one.hlo", f"--inputs={tmp / 'a.npz'}").expect(2, "a.npz", "p0")


def archive_bomb(tool, tmp, shape, name, *words):
    """256 MB of zeros in 256 kB: measured against the parameter before a byte of them is unpacked."""
    file = tmp / "bomb.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open(name + ".npy", "w", force_zip64=True) as member:
            member.write(npy(RIGHT_HEADER.replace("(4,)", shape), b""))
            zeros = bytes(1 << 24)
            for _ in range(16):
                member.write(zeros)
        archive.writestr("p0.npy", npy(RIGHT_HEADER)) if name != "p0" else None
    run(tool, "exec", tmp / "one.hlo", f"--inputs={file}", gigabytes=0.5, seconds=2).expect(*words)


def two_arrays(tool, tmp):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(tmp / "two.npz", "w") as archive:
            archive.writestr("p0.npy", npy(RIGHT_HEADER))
            archive.writestr("p0.npy", npy(RIGHT_HEADER, bytes(range(16))))
    run(tool, "exec", tmp / "one.hlo", f"--inputs={tmp / 'two.npz'}").expect(2, "two arrays p0")


def good_arrays(tool, tmp):
    for version in ((1, 0), (2, 0), (3, 0)):
        (tmp / "good.npy").write_bytes(npy(RIGHT_HEADER, struct.pack("<4f", 1, 2, 3, 4), version))
        run(tool, "exec", tmp / "one.hlo", f"--inputs={tmp / 'good.npy'}").expect(0, "min 1  max 4")


def cases(tool, data, tmp):
    yield "diff --run of a module that does not verify", lambda: run(
        tool, "diff", "--run", data / "reverse_dimension.hlo", data / "reverse_dimension.hlo").expect(1, "names dimension 5 of 4")
    for ending in ("ptx", "ll"):
        yield f"kernels of a module that does not verify: {ending}", lambda ending=ending: run(
            tool, "convert", data / "reverse_dimension.hlo", tmp / f"x.{ending}").expect(1, "names dimension 5 of 4")
    for n, (name, body) in enumerate(SIZES.items()):
        file = text(tmp, f"size{n}", body)
        for backend in ("evaluator", "host", "emulated") if "2^44" not in name else ("evaluator",):  # kernels need no such array
            yield f"sizes, {backend}: {name}", lambda file=file, backend=backend: refused(tool, file, backend)
    for seed in (1, 2):
        yield f"756 calls of libraries, seed {seed}", lambda seed=seed: library_calls(tool, tmp, seed, "evaluator", 36)
    yield "calls of libraries on the host", lambda: library_calls(tool, tmp, 3, "host", 2)
    yield "operations by type, host", lambda: operations(tool, tmp, "host")
    yield "operations by type, emulated", lambda: operations(tool, tmp, "emulated")

    for name, body in {"additions": chain("add({a}, p)", 10000), "transposes": chain("transpose({a}), dimensions={{1,0}}", 10000, "f32[4,4]"),
                       "reverses": chain("reverse({a}), dimensions={{0}}", 10000)}.items():
        file = text(tmp, f"chain_{name}", body)
        yield f"a chain of 10,000 {name} on the host", lambda file=file: run(tool, "exec", file, "--backend=host").expect(0)
    narrow = text(tmp, "chain_narrow", chain("negate({a})", 3000, "f8e4m3fn[4]"))
    for backend in ("host", "emulated"):
        yield f"a chain of 3,000 roundings, {backend}", lambda backend=backend: run(
            tool, "exec", narrow, f"--backend={backend}", seconds=10).expect(0, "min -1.5")
    for length, said in ((20, "fusion(p)"), (20000, "divide(p, b")):
        yield f"triton-softmax-rewriter on a diamond of {length:,}", lambda length=length, said=said: run(
            tool, "opt", "--style=short", "--passes=triton-softmax-rewriter", text(tmp, f"diamond_{length}", diamond(length))).expect(0, said)
    deep = text(tmp, "calls_8000", calls(8000))
    for backend in ("evaluator", "host"):
        yield f"8,000 nested calls, {backend}", lambda backend=backend: nested(tool, deep, backend)
    shallow = text(tmp, "calls_500", calls(500))
    for backend in ("evaluator", "host"):
        yield f"500 nested calls, {backend}", lambda backend=backend: run(tool, "exec", shallow, f"--backend={backend}").expect(0)
    for name, operand, starts, sizes in (("none", "f32[]", 0, ""), ("two", "f32[4,5]", 2, "2,3")):
        yield f"inputs that fit a vector of {name} starts", lambda name=name, operand=operand, starts=starts, sizes=sizes: run(tool, "exec", text(
            tmp, f"starts_{name}", f"ENTRY e {{\n p = {operand} parameter(0)\n i = s32[{starts}] parameter(1)\n"
            f" ROOT r = f32[{sizes}] dynamic-slice(p, i), dynamic_slice_sizes={{{sizes}}}\n}}\n"), "--fit-inputs").expect(0)
    yield "40,000 elements of a tuple", lambda: run(tool, "exec", text(tmp, "elements", many_elements(40000)), seconds=3).expect(0)
    yield "5,000 parts side by side on the host", lambda: run(
        tool, "exec", text(tmp, "parts", parts(5000)), "--backend=host", seconds=3).expect(0, "f32[20000]")
    yield "a reshape of nothing on the host", lambda: run(tool, "exec", text(
        tmp, "nothing", "ENTRY e {\n p = f32[1,0] parameter(0)\n q = f32[0] reshape(p)\n ROOT r = f32[0] negate(q)\n}\n"), "--backend=host").expect(0)
    yield "pipes in place of cached kernels", lambda: cache_of_pipes(tool, tmp)
    yield "bits turned over in cached kernels", lambda: flipped_cache(tool, tmp)

    text(tmp, "one", "ENTRY e {\n ROOT p = f32[4] parameter(0)\n}\n")
    yield "arrays as they should be", lambda: good_arrays(tool, tmp)
    for name, body in HEADERS.items():
        yield f"an array with {name}", lambda body=body: damaged_array(tool, tmp, body)
    yield "two arrays of one name", lambda: two_arrays(tool, tmp)
    yield "an archive larger than its header says", lambda: archive_bomb(tool, tmp, "(4,)", "p0", 2, "size does not fit")
    yield "an archive larger than the parameter", lambda: archive_bomb(tool, tmp, "(67108864,)", "p0", 2, "f32[4]")
    yield "an array that nobody asked for", lambda: archive_bomb(tool, tmp, "(67108864,)", "other", 0)
    if SANITIZED:  # no limit of address space there: it would all be run
        return
    large, values = text(tmp, "large", large_model()), text(tmp, "values", large_values())
    for backend in ("evaluator", "host", "emulated"):
        yield f"14 GiB of weights in 6, {backend}", lambda backend=backend: run(tool, "exec", large, f"--backend={backend}").expect(
            2, "14.00GiB", "limit of address space", "parameters", "ways out")
    yield "8 GiB of values in 6", lambda: run(tool, "exec", values).expect(2, "values", "ways out")
    yield "8 GiB of values in 6, all the same", lambda: run(
        tool, "exec", values, "--ignore-memory", gigabytes=0.4).expect(2, "no memory")
