"""Kernels of command buffers joined to instructions: a rule a case, on XSpaces and modules written here."""
import json
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import expect, finish, page_files, run, source
from json_schema import Schemas
from xspace import gpu, kernel

SCHEMAS = Schemas(pathlib.Path(source) / "docs" / "schemas")
A = "f32[64,64]{1,0}"
BODY = f"""
%f_negate (p: {A}) -> {A} {{
  %p = {A} parameter(0)
  ROOT %n = {A} negate(%p)
}}
%f_exp (q: {A}) -> {A} {{
  %q = {A} parameter(0)
  ROOT %e = {A} exponential(%q)
}}
%f_again (r: {A}) -> {A} {{
  %r = {A} parameter(0)
  ROOT %e2 = {A} exponential(%r)
}}
"""


def call(name, of, target):
    return f'  %{name} = {A} custom-call({of}), custom_call_target="{target}"\n'


def fusion(name, of, calls):
    return f"  %{name} = {A} fusion({of}), kind=kLoop, calls=%{calls}\n"


def module(rows, root, name="jit_g", more=""):
    return f"HloModule {name}, is_scheduled=true\n{BODY}{more}\nENTRY %main (x: {A}) -> {A} {{\n  %x = {A} parameter(0)\n{rows}  ROOT %last = {A} add(%{root}, %x)\n}}\n"


class Case:
    """A module and a profile in a folder of their own; answers by instruction: (spans, microseconds)."""

    def __init__(self, text, *planes):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.module, self.profile = self.path / "m.hlo", self.path / "host.xplane.pb"
        self.module.write_text(text)
        self.profile.write_bytes(b"".join(planes))
        code, out, error = run("profile", self.profile, self.module, "--json", "--spans")
        expect("exit code", code == 0, error)
        self.seen = json.loads(out)
        self.rows = {i["instruction"]: (i["count"], round(i["seconds"] * 1e6, 3)) for i in self.seen["instructions"]}


def graph(kernels, launches=1, op="command_buffer_1", graph=2, every=1000, first=0):
    """(name, node, at, took[, stream]) launched so often."""
    return [kernel(k[0], op, first + n * every + k[2], k[3], graph, graph << 32 | k[1], 10 + n * 7 + graph * 1000, stream=k[4] if len(k) > 4 else 1)
            for n in range(launches) for k in kernels]


PRODUCTS = (fusion("loop_negate_fusion.1", "%x", "f_negate") + call("gemm.2", "%loop_negate_fusion.1, %x", "__cublas$lt$matmul") +
            call("gemm.3", "%gemm.2, %x", "__cublas$lt$matmul") + fusion("loop_exp_fusion.4", "%gemm.3", "f_exp"))
NVJET = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT"


def names():
    """A fusion's kernel is its name, with `_`; fusions that do the same share the kernel of one of them."""
    rows = fusion("loop_exp_fusion.1", "%x", "f_exp") + fusion("loop_negate_fusion", "%loop_exp_fusion.1", "f_negate") + fusion("loop_exp_fusion", "%loop_negate_fusion", "f_again")
    case = Case(module(rows, "loop_exp_fusion"), gpu(graph([("loop_exp_fusion_1", 0, 0, 5), ("loop_negate_fusion", 1, 6, 3), ("loop_exp_fusion_1", 2, 10, 7)], 3)))
    expect("fusions", case.rows == {"loop_exp_fusion.1": (3, 15.0), "loop_negate_fusion": (3, 9.0), "loop_exp_fusion": (3, 21.0)}, case.rows)
    expect("nothing is ambiguous", case.seen["ambiguous_seconds"] == 0 and case.seen["joined_share"] == 1, case.seen)
    expect("runs", case.seen["modules"][0]["runs"] == 3, case.seen["modules"])
    k = case.seen["instructions"][0]["kernel"]
    expect("details", (k["name"], k["registers"], k["static_shared_bytes"], k["dynamic_shared_bytes"], k["grid"], k["block"], k["occupancy"]) ==
           ("loop_exp_fusion_1", 32, 1024, 2048, [256, 1, 1], [128, 1, 1], 0.5), k)
    sheet = json.loads(run("profile", case.profile, case.module, "--gpu=H100", "--json")[1])["instructions"][0]["kernel"]
    expect("and by the data sheet", sheet["estimated_occupancy"] == 1 and sheet["limiter"] == "warps", sheet)
    device = case.seen["devices"][0]
    expect("between", [round(device[key] * 1e6, 3) for key in ("span_seconds", "busy_seconds", "between_seconds", "between_within_runs")] == [2017, 45, 1972, 6], device)


def libraries():
    """Library kernels by order: what clears a workspace stands in front, what sums parts behind."""
    nodes = [("loop_negate_fusion_1", 0, 0, 5), ("Memset 0", 4, 6, 1), (NVJET, 5, 8, 40), ("cublasLt_splitKreduce_kernel", 6, 50, 2),
             ("Memset 0", 7, 53, 1), (NVJET, 8, 55, 60), ("loop_exp_fusion_4", 3, 116, 9)]
    case = Case(module(PRODUCTS, "loop_exp_fusion.4"), gpu(graph(nodes, 2)))
    expect("products", case.rows == {"loop_negate_fusion.1": (2, 10.0), "gemm.2": (6, 86.0), "gemm.3": (4, 122.0), "loop_exp_fusion.4": (2, 18.0)}, case.rows)
    expect("calls, not kernels", {i["instruction"]: i["calls"] for i in case.seen["instructions"]}["gemm.2"] == 2, case.seen["instructions"])
    # A kernel too many is nobody's; the compiled ones around it are who they are.
    case = Case(module(PRODUCTS, "loop_exp_fusion.4"), gpu(graph(nodes[:3] + [(NVJET, 9, 49, 1)] + nodes[3:], 2)))
    expect("no call is left", "gemm.2" not in case.rows and "loop_exp_fusion.4" in case.rows and "no call of that kind" in case.seen["unjoined"][0]["why"], case.seen["unjoined"])


def ambiguous():
    """Three kernels of two calls of cuDNN: the second is of either, split, and said."""
    rows = (fusion("loop_negate_fusion.1", "%x", "f_negate") + call("conv.2", "%loop_negate_fusion.1, %x", "__cudnn$convForward") +
            call("conv.3", "%conv.2, %x", "__cudnn$convForward") + fusion("loop_exp_fusion.4", "%conv.3", "f_exp"))
    nodes = [("loop_negate_fusion_1", 0, 0, 5), ("sm90_xmma_fprop_a", 4, 8, 10), ("sm90_xmma_fprop_b", 5, 20, 4), ("sm90_xmma_fprop_c", 6, 30, 20), ("loop_exp_fusion_4", 3, 60, 9)]
    case = Case(module(rows, "loop_exp_fusion.4"), gpu(graph(nodes)))
    expect("split", case.rows["conv.2"] == (2, 12.0) and case.rows["conv.3"] == (2, 22.0), case.rows)
    expect("said", round(case.seen["ambiguous_seconds"] * 1e6, 3) == 4 and case.seen["joined_share"] == 1, case.seen["ambiguous_seconds"])
    expect("of each its part", {i["instruction"]: round(i["ambiguous_seconds"] * 1e6, 3) for i in case.seen["instructions"]}["conv.2"] == 2, case.seen["instructions"])
    expect("spans of either", [s["ways"] for s in case.seen["spans"]] == [1, 1, 2, 2, 1, 1], case.seen["spans"])
    expect("in words", "ambiguous: 4.000 us" in run("profile", case.profile, case.module)[1], run("profile", case.profile, case.module)[1])


def loops():
    """A body's buffer is launched once an iteration; the bound counts iterations, not kernels."""
    more = f"""
%f_tanh (t: {A}) -> {A} {{
  %t = {A} parameter(0)
  ROOT %tanh = {A} tanh(%t)
}}
%body (s: (s32[], {A})) -> (s32[], {A}) {{
  %s = (s32[], {A}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %v = {A} get-tuple-element(%s), index=1
  %loop_exp_fusion.9 = {A} fusion(%v), kind=kLoop, calls=%f_exp
  %gemm.9 = {A} custom-call(%loop_exp_fusion.9, %v), custom_call_target="__cublas$lt$matmul"
  %loop_negate_fusion.9 = {A} fusion(%gemm.9), kind=kLoop, calls=%f_tanh
  ROOT %o = (s32[], {A}) tuple(%i, %loop_negate_fusion.9)
}}
%cond (c: (s32[], {A})) -> pred[] {{
  %c = (s32[], {A}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%j, %ten), direction=LT
}}
"""
    rows = (fusion("loop_negate_fusion.1", "%x", "f_negate") + f"  %zero = s32[] constant(0)\n  %init = (s32[], {A}) tuple(%zero, %loop_negate_fusion.1)\n"
            f"  %loop = (s32[], {A}) while(%init), condition=%cond, body=%body\n  %out = {A} get-tuple-element(%loop), index=1\n")
    body = [("loop_exp_fusion_9", 0, 0, 5), ("Memset 0", 3, 6, 1), (NVJET, 4, 8, 40), ("loop_negate_fusion_9", 2, 60, 4)]
    planes = [kernel("loop_negate_fusion_1", "loop_negate_fusion.1", run * 10000, 3) for run in range(2)]
    for turn in range(2):
        planes += graph(body, 10, "command_buffer_5", 5 + turn, 100, turn * 10000 + 50)
    case = Case(module(rows, "out", more=more), gpu(planes))
    expect("iterations", case.rows["gemm.9"] == (40, 820.0) and case.rows["loop_exp_fusion.9"] == (20, 100.0) and case.rows["loop_negate_fusion.1"] == (2, 6.0), case.rows)
    expect("none is the entry's", case.rows["loop_negate_fusion.9"] == (20, 80.0), case.rows)
    told = answer("memory", case.module, f"--profile={case.profile}")["modules"][0]
    turns = {v["name"]: v["turns"] for v in told["alive"]}
    expect("lives in a loop", turns.get("gemm.9", turns.get("loop_exp_fusion.9")) == 10 and turns["x"] == 1, turns)
    expect("two runs, twenty calls", case.seen["modules"][0]["runs"] == 2 and {i["instruction"]: i["calls"] for i in case.seen["instructions"]}["gemm.9"] == 20, case.seen)


def copies():
    """Memcpy nodes and the driver's own kernels are copies."""
    rows = (fusion("loop_negate_fusion.1", "%x", "f_negate") + f"  %copy.2 = {A} copy(%x)\n" + fusion("loop_exp_fusion.4", "%copy.2", "f_exp") +
            f"  %copy.5 = {A} copy(%x)\n" + fusion("loop_exp_fusion.6", "%copy.5", "f_again") + f"  %sum = {A} add(%loop_exp_fusion.4, %loop_exp_fusion.6)\n  %sum.2 = {A} add(%sum, %loop_negate_fusion.1)\n")
    nodes = [("loop_negate_fusion_1", 0, 0, 5), ("MemcpyD2D", 1, 8, 10), ("loop_exp_fusion_4", 2, 20, 9), ("memcpy128", 3, 30, 11), ("loop_exp_fusion_4", 4, 42, 9)]
    case = Case(module(rows, "sum.2"), gpu(graph(nodes)))
    expect("copies", case.rows["copy.2"] == (1, 10.0) and case.rows["copy.5"] == (1, 11.0) and case.rows["loop_exp_fusion.6"] == (1, 9.0), case.rows)


def streams():
    """Kernels beside each other: by the order in which the graph was made, not by time; no kernel is part of another."""
    nodes = [("loop_negate_fusion_1", 0, 50, 5), ("Memset 0", 4, 0, 1), (NVJET, 5, 2, 60, 2), ("Memset 0", 6, 4, 1, 2), (NVJET, 7, 6, 40, 3), ("loop_exp_fusion_4", 3, 3, 9, 2)]
    case = Case(module(PRODUCTS, "loop_exp_fusion.4"), gpu(graph(nodes)))
    expect("streams", case.rows == {"loop_negate_fusion.1": (1, 5.0), "gemm.2": (2, 61.0), "gemm.3": (2, 41.0), "loop_exp_fusion.4": (1, 9.0)}, case.rows)
    expect("busy once", [round(case.seen["devices"][0][key] * 1e6, 3) for key in ("busy_seconds", "span_seconds")] == [61, 62] and case.seen["devices"][0]["streams"] == 3, case.seen["devices"])
    two = Case(module(PRODUCTS, "loop_exp_fusion.4"), gpu(graph(nodes)), gpu(graph(nodes), 1))
    expect("two devices", two.rows["gemm.2"] == (4, 122.0) and len(two.seen["devices"]) == 2, two.seen["devices"])


def alike():
    """Rows of the same names: as many buffers as rows have them in order; else each kernel is of either."""
    rows = fusion("loop_exp_fusion.1", "%x", "f_exp") + fusion("loop_negate_fusion.1", "%loop_exp_fusion.1", "f_negate") + call("fft.1", "%loop_negate_fusion.1", "user_call")
    rows += fusion("loop_exp_fusion.2", "%fft.1", "f_again") + fusion("loop_negate_fusion.2", "%loop_exp_fusion.2", "f_negate")
    pair = [("loop_exp_fusion_1", 0, 0, 5), ("loop_negate_fusion_1", 1, 6, 3)]
    case = Case(module(rows, "loop_negate_fusion.2"), gpu(graph(pair, 2, "command_buffer_9", 4, first=100) + graph(pair, 2, "command_buffer_1", 2)))
    expect("in order", case.rows == {"loop_exp_fusion.1": (2, 10.0), "loop_negate_fusion.1": (2, 6.0), "loop_exp_fusion.2": (2, 10.0), "loop_negate_fusion.2": (2, 6.0)} and case.seen["ambiguous_seconds"] == 0, case.seen["instructions"])
    case = Case(module(rows, "loop_negate_fusion.2"), gpu(graph(pair, 2)))
    expect("of either", case.rows["loop_exp_fusion.1"] == (2, 5.0) and case.rows["loop_exp_fusion.2"] == (2, 5.0) and abs(case.seen["ambiguous_seconds"] - 16e-6) < 1e-12, case.seen["instructions"])


def another_compilation():
    """Names, kernels or counts that disagree: nothing is joined, and it is said."""
    def refused(name, text, kernels, words):
        case = Case(text, gpu(kernels))
        expect(f"{name}: nothing is joined", case.seen["joined_seconds"] == 0 and not case.rows, case.rows)
        expect(f"{name}: said", "another compilation" in case.seen["unjoined"][0]["why"] and words in case.seen["unjoined"][0]["why"], case.seen["unjoined"])
        return case

    text = module(PRODUCTS, "loop_exp_fusion.4")
    good = [("loop_negate_fusion_1", 0, 0, 5), ("Memset 0", 4, 6, 1), (NVJET, 5, 8, 40), (NVJET, 6, 55, 60), ("loop_exp_fusion_4", 3, 116, 9)]
    expect("the right one", Case(text, gpu(graph(good))).seen["joined_share"] == 1)
    refused("kernels", text, graph([("loop_negate_fusion_1", 0, 0, 5), ("loop_tanh_fusion_8", 1, 6, 50)]), "loop_tanh_fusion_8")
    # The names are there, in another order; one is not there at all.
    refused("order", text, graph([("loop_exp_fusion_4", 0, 0, 50), ("loop_negate_fusion_1", 1, 50, 9)]), "2 of 2 names")
    refused("one more", text, graph([("loop_exp_fusion_4", 0, 0, 50), ("input_reduce_fusion", 1, 50, 9)]), "input_reduce_fusion")
    refused("instructions", text, [kernel("loop_tanh_fusion_8", "loop_tanh_fusion.8", 0, 9), kernel("loop_exp_fusion_4", "loop_exp_fusion.4", 10, 1)], "loop_tanh_fusion.8")
    # An instruction of that name is there, and does something else than the kernel.
    refused("kernel of a fusion", text, [kernel("loop_exp_fusion_4", "loop_negate_fusion.1", 0, 9), kernel("loop_exp_fusion_4", "loop_exp_fusion.4", 10, 1)], "loop_exp_fusion_4")
    often = [kernel("loop_exp_fusion_4", "loop_exp_fusion.4", n * 10, 5) for n in range(40)] + [kernel("loop_negate_fusion_1", "loop_negate_fusion.1", 500 + n, 1) for n in range(2)]
    refused("counts", text, often, "where others ran")
    case = Case(text, gpu(graph([(k[0], k[1], k[2], k[3]) for k in good], 1, graph=3)))
    # Two modules of one name: the one that has these kernels.
    both = pathlib.Path(case.folder.name) / "run"
    both.mkdir()
    (both / "module_0001.jit_g.sm_9.0a_gpu_after_optimizations.txt").write_text(text)
    (both / "module_0007.jit_g.sm_9.0a_gpu_after_optimizations.txt").write_text(module(fusion("loop_exp_fusion", "%x", "f_exp"), "loop_exp_fusion"))
    seen = json.loads(run("profile", case.profile, both, "--json")[1])
    expect("the module with these kernels, not the one with the number", seen["joined_share"] == 1 and [m["selector"] for m in seen["modules"] if m["count"]] == ["0001"], seen)


def damaged():
    """Cut at each of many places: read as what it is or refused by name, with exit code 2."""
    text = module(PRODUCTS, "loop_exp_fusion.4")
    case = Case(text, gpu(graph([("loop_negate_fusion_1", 0, 0, 5), (NVJET, 5, 8, 40), (NVJET, 6, 55, 60), ("loop_exp_fusion_4", 3, 116, 9)])))
    whole = case.profile.read_bytes()
    cut = case.path / "cut.xplane.pb"
    for end in (3, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:end])
        for command in (["profile", cut, case.module], ["cost", case.module, f"--profile={cut}"], ["summary", case.module, f"--profile={cut}"]):
            code, _, error = run(*command)
            expect(f"{command[0]} cut at {end}", code == 2 and "cut.xplane.pb" in error and "truncated" in error, (code, error))
    # Without what tells launches apart nothing is guessed.
    bare = [kernel("loop_negate_fusion_1", "command_buffer_1", 0, 5), kernel("loop_exp_fusion_4", "command_buffer_1", 9, 5)]
    case = Case(text, gpu(bare))
    expect("neither launch nor node", case.seen["joined_seconds"] == 0, case.seen)


def first_minute():
    """A profile in the folder or beside it is found, said, and spoken of first; a damaged one is no refusal."""
    text = module(PRODUCTS, "loop_exp_fusion.4")
    nodes = [("loop_negate_fusion_1", 0, 0, 5), ("Memset 0", 4, 6, 1), (NVJET, 5, 8, 40), (NVJET, 6, 55, 60), ("loop_exp_fusion_4", 3, 116, 9)]
    case = Case(text, gpu(graph(nodes, 4)))
    root = case.path / "work"
    dump = root / "dump"
    dump.mkdir(parents=True)
    (dump / "module_0001.jit_g.sm_9.0a_gpu_after_optimizations.txt").write_text(text)

    def look(*args):
        code, out, error = run(dump, *args)
        expect("exit code", code == 0, error)
        return out

    expect("none", "measured" not in look("--gpu=H100").replace("(measured over bound", ""), look())
    for place in ("dump", ".", "plugins/profile/2026_01_02", "dump/plugins/profile/2026_01_02"):
        at = root / place
        at.mkdir(parents=True, exist_ok=True)
        older = at.parent / "2026_01_01"
        if "plugins" in place:
            older.mkdir()
            (older / "host.xplane.pb").write_bytes(b"older")
        shutil.copy(case.profile, at / "host.xplane.pb")
        out = look()
        expect(f"found in {place}", "one call, measured: 115.000 us of kernels and 10.000 us between them, the average of 4" in out, out)
        rows = [line.split() for line in out.splitlines() if ": " in line and "%" in line]
        expect("measured first", [r[0] for r in rows if len(r) > 6 and r[1] == "us"][:4] == ["10.000", "101.000", "9.000", "5.000"], rows)
        expect("what is measured is not foretold", "expected" not in out and "expected about" in look("--profile=none"), out)
        expect("not asked for", "measured:" not in look("--profile=none"), look("--profile=none"))
        (at / "host.xplane.pb").unlink()
    shutil.copy(case.profile, dump / "host.xplane.pb")
    code, out, error = run(f"{dump}:0001")
    expect("the only module by its number", code == 0 and "the average of 4" in out and not list(root.glob("*.replay")), out + error)
    (dump / "host.xplane.pb").unlink()
    code, _, error = run(f"{dump}:after_opt")
    expect("a stage without a command", code == 2 and "names a stage" in error, error)
    expect("by name", "the average of 4" in look(f"--profile={case.profile}"))
    data = json.loads(run("open", dump, f"--profile={case.profile}", "--json")[1])["modules"][0]["overview"]["measured"]
    expect("as JSON", (data["runs"], round(data["seconds"] * 1e6, 3), round(data["between_seconds"] * 1e6, 3)) == (4, 115, 10), data)
    (dump / "other.xplane.pb").write_bytes(gpu(graph([("loop_tanh_fusion_8", 0, 0, 5)])))
    expect("another compilation is said", "not measured" in look() and "another compilation" in look(), look())
    (dump / "other.xplane.pb").write_bytes(case.profile.read_bytes()[:-5])
    expect("a cut one that nobody named is said", "not measured" in look() and "truncated" in look(), look())
    expect("a cut one that was named is refused", run(dump, f"--profile={dump}/other.xplane.pb")[0] == 2)
    shutil.copy(case.profile, dump / "a.xplane.pb")
    (dump / "other.xplane.pb").unlink()
    shutil.copy(case.profile, dump / "b.xplane.pb")
    expect("several hosts", "2 devices of 2 hosts, one call: 125.000 us to 125.000 us on a:0, the slowest" in look(), look())
    cost = json.loads(run("cost", dump, f"--profile={case.profile}", "--json")[1])["instructions"]
    expect("cost, of one run", {i["name"]: round((i["measured_seconds"] or 0) * 1e6, 3) for i in cost}["gemm.3"] == 60, cost)
    out = run("explain", dump, "gemm.3", f"--profile={case.profile}")[1]
    expect("explain", "0.240 ms in 4 call(s) of gemm.3, 52.2 % of the trace" in out, out)


def answer(command, *args, code=0):
    got, out, error = run(command, *args, "--json")
    expect(f"{command} {' '.join(map(str, args[1:]))}: exit code {code}", got == code, f"{got} {error}")
    why = SCHEMAS.wrong(json.loads(out), f"{command}.json")
    expect(f"{command}: as its schema says", not why, why)
    return json.loads(out)


NET = """HloModule net, entry_computation_layout={(f32[512,256]{1,0}, f32[256,512]{1,0})->f32[512]{0}}
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[512,256]{1,0} parameter(0)
  w = f32[256,512]{1,0} parameter(1)
  u = f32[512,256]{1,0} sine(x), metadata={op_name="rows/sin"}
  d = f32[512,512]{1,0} dot(u, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="dense/dot"}
  e = f32[512,512]{1,0} exponential(d), metadata={op_name="act/exp"}
  zero = f32[] constant(0)
  s = f32[512]{0} reduce(e, zero), dimensions={1}, to_apply=add, metadata={op_name="rows/sum"}
  wide = f32[512,512]{1,0} broadcast(s), dimensions={0}
  n = f32[512,512]{1,0} divide(e, wide), metadata={op_name="rows/divide"}
  t = f32[512,512]{1,0} tanh(n), metadata={op_name="act/tanh"}
  ROOT last = f32[512]{0} reduce(t, zero), dimensions={0}, to_apply=add, metadata={op_name="columns/sum"}
}
"""


def dump_of_net(root):
    """A dump of that program as our passes leave it, and the names of its kernels in order."""
    (root / "net.hlo").write_text(NET)
    expect("replayed", run("replay", root / "net.hlo", "-o", root / "out", "--formats=text")[0] == 0)
    dump = root / "dump"
    dump.mkdir()
    (dump / "module_0001.net.before_optimizations.txt").write_text(NET)
    shutil.copy(root / "out" / "module_0001.net.after_optimizations.txt", dump / "module_0001.net.sm_9.0a_gpu_after_optimizations.txt")
    kernels = [k["name"] for k in answer("cost", f"{root}/out:after_optimizations")["instructions"]]
    text = (root / "out" / "module_0001.net.after_optimizations.txt").read_text().split("ENTRY")[1]
    return dump, sorted(kernels, key=lambda name: text.index(f"%{name} ="))


def ran(names, took, first=0, every=5):
    """A run of these kernels, each `every` us behind the one before."""
    out, at = [], first
    for name, us in zip(names, took):
        kind = NVJET if name.startswith(("cublas", "custom-call")) else name.replace(".", "_").replace("-", "_")
        out.append(kernel(kind, name, at, us, module="net"))
        at += us + every
    return out


def what_if():
    """What stays takes what was measured; what comes what is expected of it, times what others took over that."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        dump, names = dump_of_net(root)
        took = [10 * (k + 1) for k in range(len(names))]
        profile = root / "host.xplane.pb"
        close = lambda a, b: abs(a - b) < 1e-9  # noqa: E731

        def measured(scale=1, seen=names):
            planes = [k for n in range(3) for k in ran(seen, [scale * t for t in took], n * 10000)]
            profile.write_bytes(gpu(planes, program=1))

        measured()
        bare = answer("whatif", dump, "--disable=priority-fusion", "--profile=none")
        expect("without a profile", bare["measured"] is None and bare["as_is"]["measured_seconds"] is None and all(k[s]["foretold_seconds"] is None for k in bare["kernels"] for s in ("as_is", "changed") if k[s]), bare)
        w = answer("whatif", dump, "--disable=priority-fusion")
        expect("found beside the folder", w["measured"]["problem"] == "" and w["measured"]["runs"] == 3 and w["measured"]["profile"] == str(profile), w["measured"])
        expect("as it is, all is measured", close(w["as_is"]["measured_seconds"], sum(took) * 1e-6) and w["as_is"]["foretold_seconds"] == 0 and w["as_is"]["measured_kernels"] == len(names), w["as_is"])
        expect("between", close(w["as_is"]["between_seconds"], 5e-6 * (len(names) - 1)), w["as_is"])
        y = w["changed"]
        expect("changed, some is", y["foretold_seconds"] > 0 and y["measured_kernels"] < y["kernels"] and y["measured_seconds"] < w["as_is"]["measured_seconds"], y)
        by_name = dict(zip(names, took))
        for k in w["kernels"]:
            if k["as_is"]:
                expect("of a kernel that goes", close(k["as_is"]["measured_seconds"], by_name[k["as_is"]["name"]] * 1e-6) and k["as_is"]["foretold_seconds"] is None, k)
            if k["changed"]:
                expect("of one that comes", k["changed"]["measured_seconds"] is None and k["changed"]["foretold_seconds"] > 0, k)
        expect("a side's foretold is its kernels'", close(y["foretold_seconds"], sum(k["changed"]["foretold_seconds"] for k in w["kernels"] if k["changed"])), w)
        expect("the bound beside it", (w["as_is"]["seconds"], y["seconds"]) == (bare["as_is"]["seconds"], bare["changed"]["seconds"]), w)
        code, text, error = run("whatif", dump, "--disable=priority-fusion")
        rows = {line[:22].strip(): line[22:].split() for line in text.splitlines()}
        expect("in words", code == 0 and rows["time of one call"] and rows["of it measured"] and rows["predicted"] and rows["between kernels"] and "measured by" in text and "predicted: what is expected" in text, text)
        measured(2)
        twice = answer("whatif", dump, "--disable=priority-fusion")
        expect("what is foretold goes by what was measured", close(twice["changed"]["foretold_seconds"], 2 * y["foretold_seconds"]), twice["changed"])
        there = answer("whatif", dump, "--gpu=A100")
        expect("on another card nothing is measured", there["changed"]["measured_kernels"] == 0 and there["changed"]["measured_seconds"] == 0 and there["changed"]["foretold_seconds"] > there["as_is"]["measured_seconds"], there)
        expect("…but foretold by what ran here", any(n.startswith("predicted: what is expected") for n in there["notes"]), there["notes"])
        same = answer("whatif", dump, "--disable=rng-expander", code=1)
        expect("what changes nothing", same["as_is"] == same["changed"], same)
        measured(1, names[:-1])
        part = answer("whatif", dump, "--disable=rng-expander", code=1)["as_is"]
        expect("a kernel that was not seen", part["measured_kernels"] == len(names) - 1 and part["foretold_seconds"] > 0, part)
        profile.write_bytes(gpu(graph([("loop_tanh_fusion_8", 0, 0, 5)]), program=1))
        other = answer("whatif", dump, "--disable=priority-fusion")
        expect("another compilation is said", other["measured"]["problem"] and other["as_is"]["measured_seconds"] is None and any("not measured" in n for n in other["notes"]), other["notes"])
        profile.write_bytes(profile.read_bytes()[:-5])
        expect("a damaged one that lies there is said", "truncated" in answer("whatif", dump, "--disable=priority-fusion")["measured"]["problem"])
        expect("…that is named is refused", run("whatif", dump, "--disable=cse", f"--profile={profile}")[0] == 2)
        expect("a file that no folder is around", run("whatif", root / "net.hlo", "--disable=cse", f"--profile={profile}")[0] == 2)


def memory():
    """When what is alive at the peak begins and ends, in time of a measured run: the average of all."""
    more = f"""
%f_sum (a: {A}, b: {A}) -> {A} {{
  %a = {A} parameter(0)
  %b = {A} parameter(1)
  ROOT %ab = {A} add(%a, %b)
}}
"""
    rows = (fusion("loop_negate_fusion.1", "%x", "f_negate") + fusion("loop_exp_fusion.2", "%loop_negate_fusion.1", "f_exp") +
            fusion("loop_exp_fusion.3", "%loop_negate_fusion.1", "f_again") + fusion("loop_add_fusion.4", "%loop_exp_fusion.2, %loop_exp_fusion.3", "f_sum"))
    # The second run's third kernel begins and ends 2 us later. It is made where the first one's result lies.
    planes = [k for at, late in ((0, 0), (1000, 2)) for k in
              (kernel("loop_negate_fusion_1", "loop_negate_fusion.1", at, 5), kernel("loop_exp_fusion_2", "loop_exp_fusion.2", at + 10, 4),
               kernel("loop_exp_fusion_2", "loop_exp_fusion.3", at + 20 + late, 7), kernel("loop_add_fusion_4", "loop_add_fusion.4", at + 30 + late, 6))]
    case = Case(module(rows, "loop_add_fusion.4", more=more), gpu(planes))
    us = lambda value: value if value is None else round(value * 1e6, 3)  # noqa: E731
    told = answer("memory", case.module, f"--profile={case.profile}")["modules"][0]
    lives = {v["name"]: (us(v["begins_seconds"]), us(v["ends_seconds"]), v["turns"]) for v in told["alive"]}
    expect("lives", lives == {"x": (0, 37, 1), "loop_negate_fusion.1": (0, 14, 1), "loop_exp_fusion.2": (10, 37, 1)}, lives)
    expect("the peak", (told["peak_at"], us(told["peak_seconds"]), us(told["step_seconds"])) == ("loop_exp_fusion.2", 10, 37), told)
    expect("of a profile", told["measured"]["runs"] == 2 and told["measured"]["problem"] == "", told["measured"])
    text = run("memory", case.module, f"--profile={case.profile}")[1]
    expect("in words", "at loop_exp_fusion.2, measured at 10.000 us of 37.000 us" in text and "10.000 us to 37.000 us" in text and "times are since the begin of a run of 37.000 us" in text, text)
    without = answer("memory", case.module)["modules"][0]
    expect("as ever without one", without["measured"] is None and without["peak_seconds"] is None and [v["name"] for v in without["alive"]] == [v["name"] for v in told["alive"]] and all(v["turns"] is None for v in without["alive"]), without)
    dump = case.path / "dump"
    dump.mkdir()
    stem = "module_0001.jit_g.sm_9.0a_gpu_after_optimizations"
    (dump / f"{stem}.txt").write_text(case.module.read_text())
    expect("found beside a folder", answer("memory", dump)["modules"][0]["peak_seconds"] == told["peak_seconds"])
    expect("none asked for", answer("memory", dump, "--profile=none")["modules"][0]["peak_seconds"] is None)
    # By XLA's own ranges: of a bitcast, which no kernel makes, what the kernel in front of it was.
    bytes_ = 64 * 64 * 4
    names = ["x", "loop_negate_fusion.1", "bits", "loop_exp_fusion.2", "loop_exp_fusion.3", "loop_add_fusion.4", "last"]
    ranges = {"x": (0, 7), "loop_negate_fusion.1": (1, 4), "bits": (2, 4), "loop_exp_fusion.3": (4, 5)}
    (dump / f"{stem}-buffer-assignment.txt").write_text("BufferAssignment:\n" + "".join(
        f"allocation {k}: size {bytes_}, {'parameter 0, shape |f32[64,64]| at ShapeIndex {}' if name == 'x' else 'preallocated-temp'}:\n"
        f" value: <{k} {name} @0> (size={bytes_},offset=0): f32[64,64]{{1,0}}\n" for k, name in enumerate(ranges)) + "\nTotal bytes used: 0\n")
    (dump / f"{stem}-live-range.txt").write_text(
        "HloLiveRange (max 6):\n  InstructionSequence:\n" + "".join(f"    {k}:{name}\n" for k, name in enumerate(names)) +
        "  BufferLiveRange:\n" + "".join(f"    {name}{{}}:{a}-{b}\n" for name, (a, b) in ranges.items()) + "  Live ranges at 4 (peak):\n")
    told = answer("memory", dump)["modules"][0]
    lives = {v["name"]: (us(v["begins_seconds"]), us(v["ends_seconds"])) for v in told["alive"]}
    expect("XLA's ranges", "XLA's" in told["from"] and lives == {"x": (0, 37), "loop_negate_fusion.1": (0, 28), "bits": (5, 28), "loop_exp_fusion.3": (21, 37)} and us(told["peak_seconds"]) == 21, told)


def hosts():
    """Devices of hosts are told apart, never added up: least, median, most, the slowest by its name; any can be shown."""
    nodes = [("loop_negate_fusion_1", 0, 0, 5), ("Memset 0", 4, 6, 1), (NVJET, 5, 8, 40), (NVJET, 6, 55, 60), ("loop_exp_fusion_4", 3, 116, 9)]
    longer = lambda by: [(*n[:3], n[3] + (by if n[0] == "loop_exp_fusion_4" else 0)) for n in nodes]  # noqa: E731
    text = module(PRODUCTS, "loop_exp_fusion.4")
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        dump = root / "dump"
        dump.mkdir()
        (dump / "module_0001.jit_g.sm_9.0a_gpu_after_optimizations.txt").write_text(text)
        (root / "east.xplane.pb").write_bytes(gpu(graph(nodes, 4)) + gpu(graph(longer(8), 4), 1))
        (root / "west.xplane.pb").write_bytes(gpu(graph(longer(2), 4)) + gpu(graph(longer(30), 4), 1))

        def told(*args):
            return answer("open", dump, *args)["modules"][0]["overview"]["measured"]

        us = lambda value: round(value * 1e6, 3)  # noqa: E731
        m = told()
        expect("devices", [(d["host"], d["device"], d["label"], us(d["seconds"]), d["runs"]) for d in m["devices"]] ==
               [("east", "/device:GPU:0", "east:0", 115, 4), ("east", "/device:GPU:1", "east:1", 123, 4), ("west", "/device:GPU:0", "west:0", 117, 4), ("west", "/device:GPU:1", "west:1", 145, 4)], m["devices"])
        expect("the slowest is shown", (m["shown"], m["slowest"], us(m["seconds"]), us(m["between_seconds"]), m["runs"]) == ("west:1", "west:1", 145, 10, 4), m)
        expect("least, median, most", [us(m[f"{key}_call_seconds"]) for key in ("least", "median", "most")] == [125, 130, 155], m)
        for name, seconds in (("east:1", 123), ("east", 123), ("west:0", 117)):
            expect(f"shown: {name}", us(told(f"--profile-device={name}")["seconds"]) == seconds, told(f"--profile-device={name}"))
        expect("by number, the slower host's", told("--profile-device=0")["shown"] == "west:0")
        code, _, error = run(dump, "--profile-device=north:0")
        expect("no such device", code == 2 and "east:0, east:1, west:0, west:1" in error, error)
        text_ = run(dump)[1]
        expect("in words", "one call, measured: 145.000 us of kernels and 10.000 us between them" in text_ and
               "4 devices of 2 hosts, one call: 125.000 us to 155.000 us on west:1, the slowest, median 130.000 us; shown: west:1" in text_ and
               "host west: 127.000 us to 155.000 us on west:1" in text_ and "host east: 125.000 us to 133.000 us on east:1" in text_, text_)
        expect("memory", us(answer("memory", dump, "--profile-device=east:0")["modules"][0]["step_seconds"]) == 125, answer("memory", dump))
        costs = {i["name"]: i["measured_seconds"] for i in answer("cost", dump, f"--profile={root}", "--profile-device=east:1")["instructions"]}
        expect("cost, of a folder of profiles", us(costs["loop_exp_fusion.4"]) == 17, costs)
        text_ = run("summary", dump, f"--profile={root}")[1]
        expect("summary", "145.000 us" in text_ and "4 devices of 2 hosts" in text_, text_)
        expect("a page", run("view", dump, "--profile-device=east:1", "-o", root / "page.html")[0] == 0)
        carried = page_files(root / "page.html")
        if carried["page.json"]["engine"] == "none":
            roofs = [a for name, a in carried.items() if name.startswith("answers/") and "bytes_per_s" in a]
            expect("a page without an engine", any(roof["profile"] == "the average of 4 runs on east:1, by east.xplane.pb" and us(roof["measured_seconds"]) == 123 for roof in roofs), roofs)
        else:
            page = carried["module_0001/measured.json"]
            expect("measured.json, as its schema says", not SCHEMAS.wrong(page, "measured.json"), SCHEMAS.wrong(page, "measured.json"))
            expect("…of that device, without the folder", page["run"]["shown"] == "east:1" and page["run"]["profile"] == "east.xplane.pb" and page["stage"] == "after_optimizations", page["run"])
            rows = {i["name"]: (us(i["seconds"]), i["turns"], i["kernel"]["registers"], i["kernel"]["occupancy"]) for i in page["instructions"]}
            expect("…and its instructions", rows["loop_exp_fusion.4"] == (17, 1, 32, 0.5), rows)
        expect("a folder without any", run("cost", dump, f"--profile={dump}")[0] == 2)
        # A host whose profile is damaged, or of another compilation, is no other host's matter.
        (root / "west.xplane.pb").write_bytes((root / "west.xplane.pb").read_bytes()[:-5])
        expect("a damaged one is said", told()["shown"] == "east:1" and "west.xplane.pb" in told()["joined"], told())
        expect("…of a folder that was named it is refused", run("cost", dump, f"--profile={root}")[0] == 2)
        (root / "west.xplane.pb").write_bytes(gpu(graph([("loop_tanh_fusion_8", 0, 0, 5)])))
        m = told()
        expect("another compilation", m["shown"] == "east:1" and [bool(d["problem"]) for d in m["devices"]] == [False, False, True], m)
        expect("…in words", "2 devices of 1 host" in run(dump)[1] and "1 more have no time of the module" in run(dump)[1], run(dump)[1])
        for file in root.glob("*.pb"):
            file.unlink()
        expect("a device of nothing", run(dump, "--profile-device=0")[0] == 2)


for test in (names, libraries, ambiguous, loops, copies, streams, alike, another_compilation, damaged, first_minute, what_if, memory, hosts):
    test()
finish("profile_graphs_test")
