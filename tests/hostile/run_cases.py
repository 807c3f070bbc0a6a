"""Modules that broke the evaluator and the executors: calls of libraries, sizes, depth, caches, arrays in files."""
import json
import os
import shutil

from library_call_modules import modules
from tool import run


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


def refused(tool, file, backend, *words):
    run(tool, "exec", file, f"--backend={backend}").expect(2, *words)


def cases(tool, data, tmp):
    for n, (name, body) in enumerate(SIZES.items()):
        file = text(tmp, f"size{n}", body)
        for backend in ("evaluator", "host", "emulated") if "2^44" not in name else ("evaluator",):  # kernels need no such array
            yield f"sizes, {backend}: {name}", lambda file=file, backend=backend: refused(tool, file, backend)
    for seed in (1, 2):
        yield f"756 calls of libraries, seed {seed}", lambda seed=seed: library_calls(tool, tmp, seed, "evaluator", 36)
    yield "calls of libraries on the host", lambda: library_calls(tool, tmp, 3, "host", 6)
