"""XLA's own kernels (testdata/emitted: four of a real dump, with launches and code as XLA wrote them; buffers cut to them)
run by the fake driver: alone and as a program, sound and with a fault in them, and dumps that are damaged.

emitted_test.py HLO_REPLAY SOURCE_FOLDER FAKE_DRIVER
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import command_line
from command_line import expect as check, finish
from json_schema import Schemas

ROOT, FAKE = (pathlib.Path(a).resolve() for a in sys.argv[2:4])
DUMP = ROOT / "testdata" / "emitted"
MODULE = "module_0001.jit_f"
FINAL = MODULE + ".sm_9.0a_gpu_after_optimizations"
BUFFERS = FINAL + "-buffer-assignment.txt"
THUNKS = MODULE + ".thunk_sequence.txt"
METADATA = MODULE + ".thunk_metadata.txt"
CLAMP, SOFTMAX = MODULE + ".3.ptx", MODULE + ".7.ptx"
KERNELS = ["input_transpose_fusion", "loop_clamp_fusion_3", "wrapped_transpose_1", "triton_softmax_2"]
SCHEMAS = Schemas(ROOT / "docs" / "schemas")
ENV = {name: str(FAKE) for name in ("HLO_CUDA_DRIVER", "HLO_CUBLAS", "HLO_CUBLASLT", "HLO_CUDNN")}


def run(*words):
    return command_line.run(*words, env=ENV)


def judged(folder, *more):
    code, out, err = run("check", folder, "--kernels=dump", "--json", *more)
    answer = json.loads(out[out.index("{"):]) if "{" in out else {}
    if answer:
        why = SCHEMAS.wrong(answer, "error.json" if "error" in answer else "check.json")
        check("--json is as its schema says", not why, why)
    if not answer.get("kernels"):
        return code, {}, out + err
    return code, {k["kernel"]: k for k in answer["kernels"]["launched"]}, out + err


class Damaged:
    """A copy of the dump in which one file is another."""

    def __init__(self, **files):
        self.files = files

    def __enter__(self):
        self.kept = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.kept.name) / "dump"
        shutil.copytree(DUMP, folder)
        return folder

    def __exit__(self, *_):
        self.kept.cleanup()


def edited(name, edit):
    kept = Damaged()
    folder = kept.__enter__()
    path = folder / name
    before = path.read_text()
    after = edit(before)
    assert after != before, name
    path.write_text(after)
    return kept, folder


def sound():
    code, kernels, text = judged(DUMP)
    check("all kernels are joined", list(kernels) == KERNELS, text)
    check("all kernels are equal", code == 0 and all(k["verdict"] == "equal" for k in kernels.values()), text)
    check("whose they are", kernels.get("wrapped_transpose_1", {}).get("instruction") == "wrapped_transpose.1", text)
    code, kernels, text = judged(DUMP, "--only=softmax")
    check("--only", code == 0 and list(kernels) == ["triton_softmax_2"], text)
    code, out, err = run("check", DUMP, "--kernels=dump", "--only=nobody")
    check("--only of nobody", code == 2 and "nobody" in err, err)
    code, out, err = run("exec", DUMP, "--backend=cuda", "--kernels=dump", "--compare-with=evaluator")
    check("exec", code == 0 and "4 of XLA's kernels" in out and out.rstrip().endswith("equal"), out + err)
    for more in (["--backend=host"], ["--backend=cuda", "--nan"], ["--backend=cuda", "--precision=high"]):
        code, out, err = run("exec", DUMP, "--kernels=dump", *more)
        check(f"exec refuses {more}", code == 2 and "--kernels=dump goes with" in err, err)
    code, out, err = run("check", DUMP, "--kernels=dump", "--inputs=a.npz")
    check("check refuses inputs", code == 2 and "--inputs" in err, err)


def fault(what, name, edit, kernel, verdict, word, as_program=None):
    kept, folder = edited(name, edit)
    code, kernels, text = judged(folder)
    k = kernels.get(kernel, {})
    check(f"{what}: {kernel} is {verdict}", k.get("verdict") == verdict and word in k.get("why", ""), text)
    check(f"{what}: exit code", code == (2 if verdict == "not_run" else 1), f"{code} {text}")
    others = [n for n, o in kernels.items() if n != kernel and o["verdict"] != "equal"]
    check(f"{what}: the others are equal", len(kernels) == 4 and not others, text)
    if as_program:
        code, out, err = run("exec", folder, "--backend=cuda", "--kernels=dump", "--compare-with=evaluator")
        check(f"{what}: exec names it", code == as_program[0] and as_program[1] in out + err, f"{code} {out} {err}")
    kept.__exit__()


def faults():
    text = (DUMP / CLAMP).read_text()
    store = re.search(r"\tst\.global\S* +\t?\[(%rd\d+)\], [^;]*;", text)
    assert store, text
    # The lower bound of the clamp, 0: 1.
    zero = "%r8, 0;"
    assert zero in text, text
    fault("a wrong constant", CLAMP, lambda t: t.replace(zero, "%r8, 1006648320;"), "loop_clamp_fusion_3", "different", "off by",
          (1, "different"))
    beyond = store[0].replace(f"[{store[1]}]", f"[{store[1]}+8]")
    fault("a write behind the end", CLAMP, lambda t: t.replace(store[0], beyond), "loop_clamp_fusion_3", "wrote_outside",
          "after its result")
    far = store[0].replace(f"[{store[1]}]", f"[{store[1]}+1099511627776]")
    fault("a write far behind the end", CLAMP, lambda t: t.replace(store[0], far), "loop_clamp_fusion_3", "faults",
          "outside of all allocations", (2, "loop_clamp_fusion_3"))
    fault("nothing is written", CLAMP, lambda t: t.replace(store[0], ""), "loop_clamp_fusion_3", "different", "")
    text = (DUMP / SOFTMAX).read_text()
    store = re.search(r"st\.global\.(\S+) \[ (%rd\d+) \+ 0 \]", text)
    assert store, text
    fault("a program's write behind an allocation", SOFTMAX,
          lambda t: t.replace(store[0], f"st.global.{store[1]} [ {store[2]} + 64 ]"), "triton_softmax_2", "wrote_outside",
          "after its result", (2, "triton_softmax_2: writes"))
    fault("an instruction that is not emulated", SOFTMAX, lambda t: t.replace("griddepcontrol.wait;", "wgmma.fence.sync.aligned;"),
          "triton_softmax_2", "not_run", "wgmma.fence.sync.aligned is not emulated", (2, "wgmma"))


def joins():
    fault("a cut PTX", CLAMP, lambda t: t[:len(t) * 2 // 3], "loop_clamp_fusion_3", "not_run", "the file is cut")
    fault("another module's PTX", CLAMP, lambda t: t.replace("loop_clamp_fusion_3", "someone_elses"), "loop_clamp_fusion_3",
          "not_run", "no PTX of the dump holds an entry")
    fault("too many parameters", CLAMP,
          lambda t: t.replace("loop_clamp_fusion_3_param_1\n", "loop_clamp_fusion_3_param_1,\n\t.param .u64 more\n"),
          "loop_clamp_fusion_3", "not_run", "3 parameters")
    fault("a tensor map", CLAMP,
          lambda t: re.sub(r"\.param \.u64 \.ptr \.align \d+ loop_clamp_fusion_3_param_0",
                           ".param .align 64 .b8 loop_clamp_fusion_3_param_0[128]", t), "loop_clamp_fusion_3", "not_run",
          "128 bytes: a tensor map")
    fault("other threads", THUNKS, lambda t: t.replace("[784, 1, 1] threads: [128,", "[784, 1, 1] threads: [64,"),
          "loop_clamp_fusion_3", "not_run", ".reqntid")
    fault("metadata of no instruction", METADATA, lambda t: t.replace('"loop_clamp_fusion.3"', '"loop_clamp_fusion.4"'),
          "loop_clamp_fusion_3", "not_run", "no instruction loop_clamp_fusion.4")
    fault("a place that is too small", BUFFERS,
          lambda t: t.replace("loop_clamp_fusion.3 @0> (size=802816", "loop_clamp_fusion.3 @0> (size=802815"),
          "loop_clamp_fusion_3", "not_run", "802815 bytes")
    fault("no place", BUFFERS, lambda t: t.replace("loop_clamp_fusion.3 @0>", "somebody @0>"), "loop_clamp_fusion_3",
          "not_run", "no place for loop_clamp_fusion.3")
    kept, folder = edited(METADATA, lambda t: "")
    code, kernels, text = judged(folder)
    check("without metadata, by the kernels' names", code == 0 and len(kernels) == 4, text)
    kept.__exit__()


def refused():
    for name, word in ((BUFFERS, BUFFERS), (THUNKS, THUNKS), (FINAL + ".txt", "holds no recording")):
        with Damaged() as folder:
            (folder / name).unlink()
            code, kernels, text = judged(folder)
            check(f"without {name}", code == 2 and not kernels and word in text, text)
    with Damaged() as folder:
        for ptx in folder.glob("*.ptx"):
            ptx.unlink()
        code, kernels, text = judged(folder)
        check("without PTX", code == 2 and ".N.ptx" in text and "xla_dump_emitter_re" in text, text)
    huge = "9" * 18
    for what, name, old, new, word in (
            ("an offset beyond the allocation", BUFFERS, "offset=805120", f"offset={huge}", "leaves allocation 4"),
            ("a slice beyond the allocation", BUFFERS, "size=4096,offset=805120", "size=4097,offset=805120",
             "leaves allocation 4"),
            ("a negative offset", BUFFERS, "offset=805120", "offset=-8", "a number is missing"),
            ("a size over 64 bits", BUFFERS, "size=4096,offset=805120", f"size={huge}{huge},offset=0", "a number is missing"),
            ("two values of a name", BUFFERS, "wrapped_transpose.1 @0", "input_transpose_fusion @0", "twice"),
            ("a grid over 31 bits", THUNKS, "grid: [784", f"grid: [{huge}", "more than there can be"),
            ("no blocks", THUNKS, "grid: [784", "grid: [0", "a launch of nothing"),
            ("a negative grid", THUNKS, "grid: [784", "grid: [-1", "a number is missing"),
            ("too many threads", THUNKS, "threads: [128, 1, 1]", "threads: [1024, 1024, 1]", "more threads"),
            ("shared memory without bound", THUNKS, "shared_memory: 256", f"shared_memory: {huge}", "more than there can be"),
            ("no thunk", THUNKS, "003: kCustomKernel", "what is this", "neither a thunk nor a label"),
            ("a name that does not end", METADATA, 'wrapped_transpose.1"', "wrapped_transpose.1", "does not end")):
        kept, folder = edited(name, lambda t: t.replace(old, new))
        code, kernels, text = judged(folder)
        check(what, code == 2 and not kernels and word in text and name in text, f"{code} {text}")
        kept.__exit__()
    # An allocation that no machine has: refused before any is made.
    kept, folder = edited(BUFFERS, lambda t: t.replace("allocation 5: size 4096", f"allocation 5: size {huge}"))
    code, out, err = run("exec", folder, "--backend=cuda", "--kernels=dump")
    check("an allocation over all memory", code == 2 and "XLA's allocations take" in err, err)
    kept.__exit__()
    # Bytes that two arrays of one kernel have in common.
    kept, folder = edited(BUFFERS, lambda t: t.replace(
        " value: <7 triton_softmax.2 @0> (size=4096,offset=0)", " value: <7 triton_softmax.2 @0> (size=4096,offset=0)").replace(
        "allocation 3: size 4096,", "allocation 3: size 8192,").replace(
        " value: <3 p3 @0> (size=4096,offset=0): f32[1024]{0}\n",
        " value: <3 p3 @0> (size=4096,offset=0): f32[1024]{0}\n value: <7 triton_softmax.2 @0> (size=4096,offset=2048): f32\n").replace(
        "allocation 5: size 4096, maybe-live-out:\n value: <7 triton_softmax.2 @0> (size=4096,offset=0): f32[1,1024]{1,0}\n", ""))
    code, kernels, text = judged(folder)
    check("bytes in common", "bytes in common" in kernels.get("triton_softmax_2", {}).get("why", ""), text)
    kept.__exit__()


def others():
    """Thunks of other kinds: refused by name, or the evaluator's where that is asked for."""
    kept, folder = edited(THUNKS, lambda t: re.sub(r"003: kCustomKernel (\[.*?\]) .*", r"003: kFft \1 kFft", t))
    code, out, err = run("exec", folder, "--backend=cuda", "--kernels=dump")
    check("an unknown kind is refused by name", code == 2 and "thunk 3 (kFft of wrapped_transpose.1)" in err, err)
    code, out, err = run("exec", folder, "--backend=cuda", "--kernels=dump", "--evaluate-others", "--compare-with=evaluator")
    check("… or evaluated, and told", code == 0 and "evaluated: thunk 3 (kFft" in out, out + err)
    kept.__exit__()
    kept, folder = edited(THUNKS, lambda t: "000: kCommandBuffer [source | sink] \n" + re.sub("(?m)^", "    ", t).rstrip(" "))
    code, out, err = run("exec", folder, "--backend=cuda", "--kernels=dump", "--compare-with=evaluator")
    check("inside of a command buffer", code == 0 and "4 of XLA's kernels" in out, out + err)
    kept.__exit__()


LOOP = """HloModule jit_loop, is_scheduled=true

%fused_compare (param_0: s32[]) -> pred[] {
  %param_0 = s32[] parameter(0)
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%param_0, %three), direction=LT
}

%fused_add (param_0.1: s32[]) -> s32[] {
  %param_0.1 = s32[] parameter(0)
  %one = s32[] constant(1)
  ROOT %sum = s32[] add(%param_0.1, %one)
}

%body (state: (s32[])) -> (s32[]) {
  %state = (s32[]) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %loop_add_fusion = s32[] fusion(%i), kind=kLoop, calls=%fused_add
  ROOT %next = (s32[]) tuple(%loop_add_fusion)
}

%condition (state.1: (s32[])) -> pred[] {
  %state.1 = (s32[]) parameter(0)
  %i.1 = s32[] get-tuple-element(%state.1), index=0
  ROOT %loop_compare_fusion = pred[] fusion(%i.1), kind=kLoop, calls=%fused_compare
}

ENTRY %main (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  %copy = s32[] copy(%p)
  %first = (s32[]) tuple(%copy)
  %while = (s32[]) while(%first), condition=%condition, body=%body
  ROOT %last = s32[] get-tuple-element(%while), index=0
}
"""
LOOP_BUFFERS = """BufferAssignment:
allocation 0: size 4, parameter 0, shape |s32[]| at ShapeIndex {}:
 value: <0 p @0> (size=4,offset=0): s32[]
allocation 1: size 4, output shape is |s32[]|, maybe-live-out:
 value: <1 copy @0> (size=4,offset=0): s32[]
 value: <2 loop_add_fusion @0> (size=4,offset=0): s32[]
allocation 2: size 1, preallocated-temp:
 value: <3 loop_compare_fusion @0> (size=1,offset=0): pred[]
"""
LOOP_THUNKS = """001: kCopy  [source | next=002 (1)] kCopy
002: kWhile [prev=001 (1) | sink]   
condition:
    003: kCustomKernel [source | sink] loop_compare_fusion grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
  body:
    004: kCustomKernel [source | sink] loop_add_fusion grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
"""


def loops():
    def kernel(name, work):
        return (f".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry {name}(\n\t.param .u64 {name}_param_0,\n"
                f"\t.param .u64 {name}_param_1\n)\n.reqntid 1, 1, 1\n{{\n\t.reg .pred %p<2>;\n\tld.param.b64 %rd1, [{name}_param_0];\n"
                f"\tld.param.b64 %rd2, [{name}_param_1];\n\tld.global.b32 %r1, [%rd1];\n{work}\tret;\n}}\n")

    with tempfile.TemporaryDirectory() as kept:
        folder = pathlib.Path(kept) / "dump"
        folder.mkdir()
        name = "module_0001.jit_loop"
        final = name + ".sm_9.0a_gpu_after_optimizations"
        files = {final + ".txt": LOOP, final + "-buffer-assignment.txt": LOOP_BUFFERS, name + ".thunk_sequence.txt": LOOP_THUNKS}
        add = kernel("loop_add_fusion", "\tadd.s32 %r2, %r1, 1;\n\tst.global.b32 [%rd2], %r2;\n")
        files[name + ".1.ptx"] = add
        files[name + ".3.ptx"] = kernel("loop_compare_fusion",
                                        "\tsetp.lt.s32 %p1, %r1, 3;\n\tselp.b32 %r2, 1, 0, %p1;\n\tst.global.b8 [%rd2], %r2;\n")
        whose = ("copy", "while", "loop_compare_fusion", "loop_add_fusion")
        files[name + ".thunk_metadata.txt"] = "".join(
            f'thunk_metadata {{\n  thunk_info {{\n    profile_annotation: "{n}"\n    thunk_id: {k}\n  }}\n}}\n' for k, n in enumerate(whose, 1))
        for file, text in files.items():
            (folder / file).write_text(text)
        (pathlib.Path(kept) / "in.txt").write_text("-2\n")
        words = ["exec", folder, "--backend=cuda", "--kernels=dump", f"--inputs={kept}/in.txt", "--compare-with=evaluator"]
        code, out, err = run(*words)
        check("a loop by its condition", code == 0 and "o0 s32[] = 3" in out, out + err)
        code, out, err = run(*words, "--max-steps=4")
        check("a loop that does not end", code == 2 and "does not end within 4 steps" in err, out + err)
        code, kernels, text = judged(folder)
        check("kernels inside of a loop, one in place", code == 0 and len(kernels) == 2, text)
        (folder / (name + ".1.ptx")).write_text(add.replace("%r1, 1;", "%r1, 2;"))
        code, kernels, text = judged(folder)
        check("a wrong one inside of a loop", code == 1 and kernels["loop_add_fusion"]["verdict"] == "different", text)
        code, out, err = run(*words)
        check("… and in the program", code == 1 and "DIFFERENT" in out, out + err)


def real():
    """A real dump whole, where the checkout has ../shared unpacked."""
    for folder in (ROOT / "../dh/mobile_infer.emit/dump", ROOT / "../../dh/mobile_infer.emit/dump"):
        if not folder.exists():
            continue
        code, kernels, text = judged(f"{folder}:9945")
        verdicts = [k["verdict"] for k in kernels.values()]
        check("mobile_infer", (len(verdicts), verdicts.count("equal"), verdicts.count("not_run")) == (29, 28, 1), text)
        return


for case in (sound, faults, joins, refused, others, loops, real):
    case()
finish("emitted_test")
