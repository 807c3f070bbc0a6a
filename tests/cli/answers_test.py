"""Answers that were plainly wrong once: NaN and infinities, what bisect has judged, library scratch, names that do not
meet, and files that are no modules."""
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, page_files, run

PARTS = []


def part(f):
    PARTS.append(f)
    return f


def entry(body, before="", header="HloModule m"):
    return f"{header}\n{before}\nENTRY e {{\n{body}\n}}\n"


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }"
MAX = "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }"
INF = " x = f32[3] constant({inf, -inf, 2})\n"


@part
def a_file_behind_an_option_that_repeats(tmp):
    f = tmp / "f.hlo"
    f.write_text(entry(" x = f32[2] parameter(0)\n n = f32[2] negate(x)\n ROOT m = f32[2] negate(n)"))
    for words in (("opt", "--passes=algsimp", "--fuel=algsimp=0", f), ("opt", "--passes=algsimp", "--fuel", "algsimp=0", f),
                  ("exec", f"--profile={tmp}/p.json", f), ("link", "--edge=0.o0=1.p0", f, f)):
        code, text, err = run(*words)
        expect(f"{words[0]} {words[1]}: the file is taken as the file", code == 0, text + err)


@part
def merged_dots_have_both_histories(tmp):
    f = tmp / "dots.hlo"
    f.write_text(entry(" x = f32[64,32] parameter(0)\n w = f32[32,64] parameter(1)\n v = f32[32,48] parameter(2)\n"
                       " d1 = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                       " d2 = f32[64,48] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                       " ROOT t = (f32[64,64], f32[64,48]) tuple(d1, d2)"))
    run("replay", f, "--pipeline=xla-gpu", "-o", tmp / "dots")
    for new, words in (("dot", "was d1, d2"), ("concatenate", "made from w, v")):
        code, text, err = run("explain", tmp / "dots", new)
        expect(f"{new} has both histories", code == 0 and words in text, text + err)


@part
def memory_of_what_is_updated_in_place(tmp):
    """XLA's live range lists a value before and after an update in place: one array."""
    dump = tmp / "inplace"
    dump.mkdir()
    start = "module_0001.jit_f."
    text = entry(" x = f32[16]{0} parameter(0)\n c = f32[16]{0} copy(x)\n ROOT n = f32[16]{0} negate(c)",
                 header="HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[16]{0})->f32[16]{0}}")
    (dump / f"{start}before_optimizations.txt").write_text(text)
    (dump / f"{start}cpu_after_optimizations.txt").write_text(text)
    (dump / f"{start}cpu_after_optimizations-buffer-assignment.txt").write_text(
        "BufferAssignment:\nallocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:\n"
        " value: <0 x @0> (size=64,offset=0): f32[16]{0}\nallocation 1: size 64, output shape is |f32[16]|, maybe-live-out:\n"
        " value: <1 c @0> (size=64,offset=0): f32[16]{0}\n value: <2 n @0> (size=64,offset=0): f32[16]{0}\n\nTotal bytes used: 128 (128B)\n")
    (dump / f"{start}cpu_after_optimizations-live-range.txt").write_text(
        "HloLiveRange (max 3):\n  InstructionSequence:\n    0:x\n    1:c\n    2:n\n  BufferLiveRange:\n    x{}:0-3\n    c{}:1-2\n    n{}:2-3\n"
        "  Live ranges at 2 (peak):\n    x{}: 64 bytes (cumulative: 64 bytes)\n    c{}: 64 bytes (cumulative: 128 bytes)\n    n{}: 64 bytes (cumulative: 192 bytes)\n")
    code, text, err = run("memory", dump, "--json")
    one = json.loads(text)["modules"][0] if code == 0 else {}
    expect("what is updated in place is counted once", one.get("peak_bytes") == 128 == one.get("allocated_bytes") and "live" not in str(one.get("notes")), text + err)


@part
def memory_of_kernels_with_several_results(tmp):
    """XLA's live range counts the results of a tuple as pointers where it looks for the peak: here between f and its users."""
    dump = tmp / "several"
    dump.mkdir()
    start = "module_0001.jit_f."
    text = entry(" x = f32[16]{0} parameter(0)\n f = (f32[64]{0}, f32[64]{0}) custom-call(x), custom_call_target=\"t\"\n a = f32[64]{0} get-tuple-element(f), index=0\n"
                 " b = f32[64]{0} get-tuple-element(f), index=1\n c = f32[64]{0} add(a, b)\n ROOT n = f32[16]{0} slice(c), slice={[0:16]}",
                 header="HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[16]{0})->f32[16]{0}}")
    (dump / f"{start}before_optimizations.txt").write_text(text)
    (dump / f"{start}gpu_after_optimizations.txt").write_text(text)
    (dump / f"{start}gpu_after_optimizations-buffer-assignment.txt").write_text(
        "BufferAssignment:\nallocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:\n"
        " value: <0 x @0> (size=64,offset=0): f32[16]{0}\nallocation 1: size 64, output shape is |f32[16]|, maybe-live-out:\n"
        " value: <1 n @0> (size=64,offset=0): f32[16]{0}\nallocation 2: size 784, preallocated-temp:\n"
        " value: <2 f{} @0> (size=16,offset=768): (f32[64]{0}, f32[64]{0})\n value: <3 f{0} @0> (size=256,offset=0): f32[64]{0}\n"
        " value: <4 f{1} @0> (size=256,offset=256): f32[64]{0}\n value: <5 c @0> (size=256,offset=512): f32[64]{0}\n\nTotal bytes used: 912 (912B)\n")
    ranges = ("HloLiveRange (max 6):\n  InstructionSequence:\n    0:x\n    1:f\n    2:a\n    3:b\n    4:c\n    5:n\n"
              "  BufferLiveRange:\n    x{}:0-6\n    f{}:1-3\n    f{0}:1-4\n    f{1}:1-3\n    c{}:4-5\n    n{}:5-6\n")
    told = "  Live ranges at 5 (peak):\n    c{}: 256 bytes (cumulative: 256 bytes)\n    x{}: 64 bytes (cumulative: 320 bytes)\n    n{}: 64 bytes (cumulative: 384 bytes)\n"
    file = dump / f"{start}gpu_after_optimizations-live-range.txt"
    for words, name in ((told, "by the ranges"), ("", "without a peak of XLA's")):
        file.write_text(ranges + words)
        code, text, err = run("memory", dump, "--json")
        one = json.loads(text)["modules"][0] if code == 0 else {}
        expect(f"results weigh what they are, {name}", one.get("peak_bytes") == 64 + 16 + 2 * 256 and one.get("peak_at") == "f", text + err)
        expect(f"…and the other number is explained, {name}", ("calls n the peak, where 384 bytes" in str(one["notes"])) == bool(words), text)
    file.write_text(ranges.replace("f{1}:1-3", "f{1}:9223372036854775807-0") + told)
    expect("a range that ends before it begins", run("memory", dump)[0] == 0)


@part
def nan_of_none(tmp):
    f = tmp / "nan.hlo"
    both = entry(" x = f32[2] constant({inf, -inf})\n z = f32[] constant(0)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add", ADD)
    softmax = entry(" p = f32[2,2] parameter(0)\n m = pred[2,2] constant({{1,1},{0,0}})\n n = f32[] constant(-inf)\n"
                    " nb = f32[2,2] broadcast(n), dimensions={}\n x = f32[2,2] select(m, p, nb)\n"
                    " top = f32[2] reduce(x, n), dimensions={1}, to_apply=max\n tb = f32[2,2] broadcast(top), dimensions={0}\n"
                    " s = f32[2,2] subtract(x, tb)\n ROOT r = f32[2,2] exponential(s)", MAX)
    mixed = entry(" a = f32[3] constant({nan, inf, 1})\n b = f32[3] constant({1, inf, 1})\n ROOT s = f32[3] subtract(a, b)")
    rows = entry(" a = f32[2,2] constant({{nan, 1}, {inf, -inf}})\n z = f32[] constant(0)\n ROOT s = f32[2] reduce(a, z), dimensions={1}, to_apply=add", ADD)
    dot = entry(" a = f32[2,2] constant({{nan, 1}, {inf, 1}})\n b = f32[2,1] constant({{0}, {1}})\n"
                " ROOT s = f32[2,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    fused = entry(INF + " ROOT s = f32[3] fusion(x), kind=kLoop, calls=f",
                  "f { q = f32[3] parameter(0)\n n = f32[3] negate(q)\n ROOT s = f32[3] add(n, q) }")
    called = entry(INF + " ROOT s = f32[3] call(x), to_apply=f", "f { q = f32[3] parameter(0)\n ROOT s = f32[3] subtract(q, q) }")
    loop = entry(INF + " i = s32[] constant(0)\n t = (s32[], f32[3]) tuple(i, x)\n ROOT w = (s32[], f32[3]) while(t), condition=c, body=b",
                 "b { p = (s32[], f32[3]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n o = s32[] constant(1)\n j = s32[] add(i, o)\n"
                 " v = f32[3] get-tuple-element(p), index=1\n s = f32[3] subtract(v, v)\n ROOT t = (s32[], f32[3]) tuple(j, s) }\n"
                 "c { p = (s32[], f32[3]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n k = s32[] constant(2)\n ROOT l = pred[] compare(i, k), direction=LT }")
    for name, text, elements in (
            ("-inf - -inf", entry(INF + " ROOT s = f32[3] subtract(x, x)"), 2),
            ("0 * inf", entry(INF + " z = f32[] constant(0)\n b = f32[3] broadcast(z), dimensions={}\n ROOT s = f32[3] multiply(x, b)"), 2),
            ("a sum of both infinities", both, 1), ("a row that is masked whole", softmax, 2),
            ("a NaN beside one that comes in", mixed, 1), ("a row beside one that has a NaN", rows, 1),
            ("a product beside one that has a NaN", dot, 1), ("in a fusion", fused, 2), ("in a called computation", called, 2), ("in a loop", loop, 2)):
        f.write_text(text)
        for backend in ("evaluator", "host"):
            code, out, err = run("exec", f, "--nan", "--json", f"--backend={backend}")
            found = json.loads(out)["nan"] if code == 1 else None
            expect(f"--nan: {name}, {backend}", code == 1 and found and found["instruction"] == "s" and found["elements"] == elements and
                   not json.loads(out)["infinity"], (code, out[:900], err[:300]))
        code, out, err = run("reduce", f, "--nan", "--json", "--force", "-o", tmp / "small")
        expect(f"reduce --nan: {name}", code == 0 and "NaN" in json.loads(out)["fault"], (code, out[:300], err[:300]))
    f.write_text(mixed)
    code, out, err = run("exec", f, "--nan")
    expect("the element is shown", "first at [1]: of inf, inf" in err and "operand 0: a f32[3]" in err and "1 NaN  1 infinite" in err, err)


@part
def infinities(tmp):
    f = tmp / "inf.hlo"
    f.write_text(entry(" a = f32[2] constant({1e38, 1})\n b = f32[2] multiply(a, a)\n c = f32[2] multiply(b, b)\n d = f32[2] negate(c)\n ROOT s = f32[2] add(c, d)"))
    code, out, err = run("exec", f, "--nan", "--json")
    found = json.loads(out)
    expect("both are told", code == 1 and found["nan"]["instruction"] == "s" and found["infinity"]["instruction"] == "b", out + err)
    for backend in ("evaluator", "host"):
        f.write_text(entry(" a = f32[2] constant({88, 1e3})\n ROOT g = f32[2] fusion(a), kind=kLoop, calls=f",
                           "f { q = f32[2] parameter(0)\n ROOT x = f32[2] exponential(q) }"))
        code, out, err = run("exec", f, "--nan", f"--backend={backend}")
        expect(f"an infinity, no NaN, {backend}", code == 1 and "the first infinity (no NaN is made): x (exponential" in err and
               "operands are finite" in err, err)
    code, out, err = run("reduce", f, "--nan", "--json", "-o", tmp / "small_inf")
    expect("reduce of an infinity", code == 0 and "infinity" in json.loads(out)["fault"], out + err)
    for name, text, said in (
            ("infinities that constants bring", entry(INF + " ROOT n = f32[3] negate(x)"), "makes a NaN or an infinity\n"),
            ("NaN that constants bring", entry(" x = f32[2] constant({nan, 1})\n o = f32[2] constant({1, 1})\n ROOT n = f32[2] add(x, o)"),
             "NaN come in with constant x (1 NaN)"),
            ("a fusion's own constant", entry(" p = pred[2] parameter(0)\n ROOT n = f32[2] fusion(p), kind=kLoop, calls=f",
             "f { q = pred[2] parameter(0)\n i = f32[2] constant({-inf, -inf})\n z = f32[2] constant({0, 0})\n ROOT s = f32[2] select(q, z, i) }"),
             "makes a NaN or an infinity\n"),
            ("a largest of masked ones", entry(" x = f32[2,2] constant({{1, 2}, {-inf, -inf}})\n n = f32[] constant(-inf)\n"
             " ROOT s = f32[2] reduce(x, n), dimensions={1}, to_apply=max", MAX), "makes a NaN or an infinity\n")):
        f.write_text(text)
        for backend in ("evaluator", "host"):
            code, out, err = run("exec", f, "--nan", f"--backend={backend}")
            expect(f"--nan: {name}, {backend}", code == 0 and said in out, (code, out, err))
    code, out, err = run("reduce", f, "--nan", "-o", tmp / "nothing")
    expect("nothing to reduce", code == 2 and "nothing is wrong" in err, err)


@part
def what_bisect_judged(tmp):
    def stage(number, name, op, divisor="3"):
        (tmp / f"module_0001.m.{number}{name}.txt").write_text(entry(
            f" p = f32[4] parameter(0)\n c = f32[] constant({divisor})\n b = f32[4] broadcast(c), dimensions={{}}\n"
            f" n = f32[4] negate(p)\n q = f32[4] {op}\n ROOT r = f32[4] multiply(q, n)"))

    stage("", "before_optimizations", "divide(p, b)")
    stage("0001.", "optimization.after_algsimp.before_dce", "multiply(p, b)", "0.33333334")
    for k in (2, 3):
        stage(f"000{k}.", "optimization.after_dce.before_cse", f'custom-call(p, b), custom_call_target="nobody"')
    (tmp / "module_0001.m.0004.optimization.after_cse.before_x.txt").write_text("HloModule m\nENTRI\n")
    stage("0005.", "optimization.after_x", "divide(p, b)")
    code, out, err = run("bisect", tmp)
    expect("what is healed by its user is no fault", code == 2 and "3 of 6 checked" in out and "2 × cannot evaluate custom-call: " in out and
           "inner values compared" in out, out + err)
    code, out, err = run("bisect", tmp, "--outputs-only")
    last = out.splitlines()[-1]
    expect("bisect counts what it judged", code == 2 and "3 of 6 checked" in last and "3 could not be compared: 2 × cannot evaluate custom-call: " in last and
           "1 × " in last and 'target "nobody"' in last, out + err)
    expect("bisect shows the worst error", "the worst error is " in last and "(0.0001 is allowed), at o0[" in last and
           "of stage 0001 optimization.after_algsimp" in last, last)
    code, out, err = run("bisect", tmp, "--json", "--outputs-only")
    d = json.loads(out)
    expect("bisect as JSON", (d["candidates"], d["judged"], d["not_judged"]) == (6, 3, 3) and sum(r["stages"] for r in d["reasons"]) == 3 and
           0 < d["worst_error"] < d["tolerance"] == 1e-4 and d["worst_at"].startswith("o0["), out)
    for k in (2, 3, 4):
        next(tmp.glob(f"*.000{k}.*")).unlink()
    next(tmp.glob("*.0001.*")).unlink()
    code, out, err = run("bisect", tmp, "--resume", tmp / "seen.json")
    again = run("bisect", tmp, "--resume", tmp / "seen.json")
    expect("all good and the same", code == 0 and "2 of 2 checked" in out and "every element of every result is the same" in out and again[1] == out, out + err)


@part
def scratch(tmp):
    f = tmp / "scratch.hlo"
    conv = (" x = f32[4,8,8,16] parameter(0)\n w = f32[3,3,16,16] parameter(1)\n"
            " c = (f32[4,8,8,16], u8[{}]) custom-call(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f, custom_call_target=\"__cudnn$convForward\"\n"
            " ROOT r = f32[4,8,8,16] get-tuple-element(c), index=0")
    for header, body, bytes_moved in (
            ("cuDNN", conv.format(1 << 26), 4 * (2 * 4 * 8 * 8 * 16 + 9 * 16 * 16)),
            ("cuBLAS", " a = s8[8,8] parameter(0)\n b = s8[8,8] parameter(1)\n c = (s8[8,8], s8[4194304]) custom-call(a, b), custom_call_target=\"__cublas$gemm\"\n"
             " ROOT r = s8[8,8] get-tuple-element(c), index=0", 3 * 64),
            ("sort", " k = u8[256] parameter(0)\n v = u8[256] parameter(1)\n c = (u8[256], u8[256], u8[7168]) custom-call(k, v), custom_call_target=\"__cub$DeviceRadixSort\"\n"
             " ROOT r = u8[256] get-tuple-element(c), index=1", 4 * 256),
            ("today's sort", " k = u8[256] parameter(0)\n v = u8[256] parameter(1)\n c = (u8[256], u8[256], u8[7168]) custom-call(k, v), custom_call_target=\"xla.gpu.ext.cub_sort_pairs\"\n"
             " ROOT r = u8[256] get-tuple-element(c), index=1", 4 * 256),
            ("cuSOLVER", " a = f32[8,8] parameter(0)\n c = (f32[8,8], f32[4096], s32[]) custom-call(a), custom_call_target=\"__cusolver$cholesky\"\n"
             " ROOT r = f32[8,8] get-tuple-element(c), index=0", 2 * 256 + 4),
            ("somebody's own", " k = f32[256] parameter(0)\n c = (f32[256], u8[512]) custom-call(k), custom_call_target=\"mine\"\n"
             " ROOT r = f32[256] get-tuple-element(c), index=0", 2 * 1024 + 512)):
        f.write_text(entry(body))
        code, out, err = run("cost", f, "--json", "--no-verify")
        expect(f"scratch of {header}", code == 0 and json.loads(out)["bytes"] == bytes_moved, out[:300] + err)


@part
def why_not_of_strangers(tmp):
    f = tmp / "m.hlo"
    f.write_text(entry(" p = f32[8] parameter(0)\n q = f32[8] parameter(1)\n one = f32[8] sine(p)\n two = f32[8] cosine(one)\n three = f32[8] tanh(two)\n"
                       " apart = f32[8] exponential(q)\n called = f32[8] call(q), to_apply=other\n"
                       " ROOT t = (f32[8], f32[8], f32[8]) tuple(three, apart, called)", "other { z = f32[8] parameter(0)\n ROOT inside = f32[8] floor(z) }"))
    run("replay", f, "-o", tmp / "r", "--formats=text", "--passes-only=dce")
    for first, second, code, words in (
            ("one", "nobody", 2, "has an instruction 'nobody'"), ("tow", "three", 2, "did you mean 'two'?"), ("one", "thre", 2, "did you mean 'three'?"),
            ("one", "inside", 1, "different computations (one in e, inside in other"), ("one", "apart", 1, "neither leads to the other"),
            ("three", "one", 1, "one does not feed three itself"), ("one", "two", 1, "no decision about one and two is recorded")):
        got, out, err = run("explain", tmp / "r", "--why-not", first, second)
        expect(f"--why-not {first} {second}", got == code and words in (err if code == 2 else out), out + err)
    stage = next(p for p in sorted((tmp / "r").glob("*.txt")))
    (tmp / "x").mkdir()
    (tmp / "x/module_0001.m.before_optimizations.txt").write_text(stage.read_text())
    (tmp / "x/module_0001.m.after_optimizations.txt").write_text(stage.read_text().replace("%two", "%later").replace("%one", "%sooner"))
    got, out, err = run("explain", tmp / "x", "--why-not", "one", "later", "--json")
    expect("never in one stage", got == 1 and "never in one stage: one is last in before_optimizations, later in after_optimizations" in json.loads(out)["meet"], out + err)


def reordered(text, seed):
    """The same module under other names, its computations and instructions in another order that still holds."""
    import random
    import re
    chance = random.Random(seed)
    head, computations, body, name = [], [], None, None
    for line in text.splitlines():
        if line.endswith("{") and " = " not in line and not line.startswith("HloModule"):
            name, body = line, []
        elif line == "}" and body is not None:
            computations.append((name, body))
            body = None
        elif body is not None:
            body.append(line)
        elif not computations:
            head.append(line)
    result, made = {}, []
    for name, body in computations:
        rows = {re.match(r"\s*(?:ROOT )?%([\w.\-]+) = ", line)[1]: line for line in body}
        needs = {k: {n for n in re.findall(r"%([\w.\-]+)", line.split(" = ", 1)[1]) if n in rows and n != k} for k, line in rows.items()}
        order = []
        while needs:
            free = sorted(k for k, n in needs.items() if not n)
            k = chance.choice(free)
            order.append(rows[k])
            del needs[k]
            for n in needs.values():
                n.discard(k)
        made.append([name, *order, "}"])
    # Who is called stands before who calls.
    named = {re.match(r"(?:ENTRY )?%?([\w.\-]+)", c[0])[1]: c for c in made}
    calls = {k: {n for line in c[1:] for n in re.findall(r"(?:calls|to_apply|body|condition)=%([\w.\-]+)", line)} for k, c in named.items()}
    out = []
    while calls:
        k = chance.choice(sorted(k for k, n in calls.items() if not n))
        out += named[k]
        del calls[k]
        for n in calls.values():
            n.discard(k)
    text = "\n".join(head + out) + "\n"
    names = sorted(set(re.findall(r"%([A-Za-z_][\w.\-]*)", text)))
    new = [f"n{i}" for i in range(len(names))]
    chance.shuffle(new)
    table = dict(zip(names, new))
    return re.sub(r"%([A-Za-z_][\w.\-]*)", lambda m: "%" + table[m[1]], text)


TWINS = """HloModule m
%f1 (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %dead = f32[4]{0} cosine(%a)
  %also = f32[4]{0} sine(%b)
  %m = f32[4]{0} maximum(%a, %b)
  ROOT %s = f32[4]{0} add(%m, %b)
}
%f2 (a.1: f32[4], b.1: f32[4]) -> f32[4] {
  %a.1 = f32[4]{0} parameter(0)
  %b.1 = f32[4]{0} parameter(1)
  %m.1 = f32[4]{0} maximum(%a.1, %b.1)
  ROOT %s.1 = f32[4]{0} subtract(%m.1, %b.1)
}
%f3 (a.2: f32[4]) -> f32[4] {
  %a.2 = f32[4]{0} parameter(0)
  %c.2 = f32[4]{0} constant({1, 2, 3, 4})
  %m.2 = f32[4]{0} maximum(%a.2, %c.2)
  ROOT %s.2 = f32[4]{0} multiply(%m.2, %a.2)
}
ENTRY %e (p: f32[4], q: f32[4]) -> (f32[4], f32[4], f32[4], f32[4]) {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  %u = f32[4]{0} negate(%q)
  %v = f32[4]{0} exponential(%q)
  %fusion = f32[4]{0} fusion(%p, %q), kind=kLoop, calls=%f1
  %fusion.1 = f32[4]{0} fusion(%q, %p), kind=kLoop, calls=%f2
  %fusion.2 = f32[4]{0} fusion(%p), kind=kLoop, calls=%f3
  %fusion.3 = f32[4]{0} fusion(%q), kind=kLoop, calls=%f3
  ROOT %t = (f32[4]{0}, f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(%fusion, %fusion.1, %fusion.2, %fusion.3)
}
"""


@part
def equal_modules_are_equal(tmp):
    f, g = tmp / "f.hlo", tmp / "g.hlo"
    texts = [TWINS]
    for name in ("mobilenet_v1.hlo",):
        texts.append(run("print", "--style=default", data / name)[1])
    for number, text in enumerate(texts):
        f.write_text(text)
        for seed in range(6):
            g.write_text(reordered(text, seed))
            code, out, err = run("diff", f, g)
            expect(f"module {number}, order {seed}", code == 0 and "same structure" in out, out + err)
    f.write_text(TWINS)
    edits = {"opcode in a fusion": ("%s = f32[4]{0} add", "%s = f32[4]{0} power"), "operands in a fusion": ("maximum(%a, %b)", "maximum(%b, %b)"),
             "a constant": ("{1, 2, 3, 4}", "{1, 2, 3, 5}"), "a call's operands": ("fusion(%q, %p)", "fusion(%q, %q)"),
             "what nobody reads": ("%v = f32[4]{0} exponential", "%v = f32[4]{0} tanh"), "what nobody reads in a fusion": ("cosine(%a)", "tan(%a)"),
             "an attribute": ("fusion(%p), kind=kLoop", "fusion(%p), kind=kInput"), "results": ("tuple(%fusion, %fusion.1,", "tuple(%fusion.1, %fusion,")}
    for name, (old, new) in edits.items():
        for seed in range(4):
            expect(f"{name} is in the text", TWINS.count(old) == 1)
            g.write_text(reordered(TWINS.replace(old, new), seed))
            code, out, err = run("diff", f, g, "--json")
            d = json.loads(out)
            expect(f"{name} edited, order {seed}", code == 1 and (d["modified"], d["added"], d["removed"], d["moved"]) == (1, 0, 0, 0), out[:1500] + err)
    # One value shared, or made twice: not the same graph, though the same results.
    f.write_text(entry(" p = f32[4] parameter(0)\n a = f32[4] sine(p)\n b = f32[4] sine(p)\n ROOT r = f32[4] add(a, b)"))
    g.write_text(entry(" p = f32[4] parameter(0)\n a = f32[4] sine(p)\n ROOT r = f32[4] add(a, a)"))
    code, out, err = run("diff", f, g)
    expect("shared is not made twice", code == 1, out + err)


@part
def elements_that_nobody_reads(tmp):
    whole = (" p = f32[4] parameter(0)\n t = (f32[4], f32[4], (f32[4], f32[4])) custom-call(p), custom_call_target=\"x\"\n a = f32[4] get-tuple-element(t), index=0\n"
             " {}\n ROOT r = f32[4] {}(a)")
    dead = "b = f32[4] get-tuple-element(t), index=1\n c = (f32[4], f32[4]) get-tuple-element(t), index=2\n d = f32[4] get-tuple-element(c), index=0"
    stages = ("before_optimizations", "0001.p.after_algsimp.before_dce", "after_optimizations")
    for side, extra, op in (("old", dead, "sine"), ("new", "", "sine"), ("other", "", "tan")):
        (tmp / side).mkdir()
        for k, stage in enumerate(stages):
            (tmp / side / f"module_0001.m.{stage}.txt").write_text(entry(whole.format(extra, op if k else "sine")))
    for first, second in (("old", "new"), ("new", "old")):
        code, out, err = run("diff", tmp / first, tmp / second)
        expect(f"{first} and {second}", code == 0 and "get-tuple-elements without users" in out and out.startswith("same"), out + err)
    code, out, err = run("diff", tmp / "old", tmp / "other", "--json")
    d = json.loads(out)
    expect("another difference is the first one", code == 1 and "algsimp" in d["verdict"] and (d["modified"], d["removed"], d["added"]) == (1, 0, 0), out + err)
    # What is read, or ordered, counts.
    for name, text in (("read", entry(whole.format(dead, "sine")).replace("sine(a)", "sine(b)")),
                       ("ordered", entry(whole.format(dead, "sine")).replace("ROOT r = f32[4] sine(a)", "ROOT r = f32[4] sine(a), control-predecessors={b}"))):
        (tmp / name).mkdir()
        for stage in stages:
            (tmp / name / f"module_0001.m.{stage}.txt").write_text(text)
        code, out, err = run("diff", tmp / name, tmp / "new")
        expect(f"an element that is {name}", code == 1 and "first stage that differs" in out, out + err)


@part
def an_heir_by_the_data(tmp):
    before = (" p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n add.402 = f32[4] add(p, q)\n add.403 = f32[4] add(add.402, q)\n ROOT n = f32[4] negate(add.403)")
    after = (" p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n add.402 = f32[4] add(p, q)\n {0}.1 = {1} {0}({2}){3}\n {0}.2 = {1} {0}(q){3}\n"
             " add.9 = {1} add({0}.1, {0}.2)\n {4}\n ROOT n = f32[4] negate(back)")
    cases = {"reshape": ("reshape", "f32[2,2]", "add.402", "", "back = f32[4] reshape(add.9)"), "bitcast": ("bitcast", "f32[2,2]", "add.402", "", "back = f32[4] bitcast(add.9)"),
             "convert": ("convert", "f64[4]", "add.402", "", "back = f32[4] convert(add.9)")}
    for name, (op, shape, of, more, back) in cases.items():
        place = tmp / name
        place.mkdir()
        (place / "module_0001.m.before_optimizations.txt").write_text(entry(before))
        (place / "module_0001.m.after_optimizations.txt").write_text(entry(after.format(op, shape, of, more, back)))
        for which, ancestor in ((f"{op}.1", "add.402"), (f"{op}.2", "q")):
            code, out, err = run("explain", place, which, "--json")
            events = [e for e in json.loads(out)["events"] if e["name"] == which] if code == 0 else []
            expect(f"{which} comes from {ancestor}", events and events[0]["what"].split(",")[0] == f"made from {ancestor}", out + err)


@part
def computations_by_name(tmp):
    text = entry(" p = f32[4] parameter(0)\n s = f32[4] sine(p)\n ROOT c = f32[4] cosine(s)")
    fused = entry(" p = f32[4] parameter(0)\n ROOT call = f32[4] call(p), to_apply=command_buffer_1",
                  "command_buffer_1 { a = f32[4] parameter(0)\n s = f32[4] sine(a)\n ROOT c = f32[4] cosine(s) }")
    dump = tmp / "dump"
    dump.mkdir()
    (dump / "module_0001.m.before_optimizations.txt").write_text(text)
    (dump / "module_0001.m.0001.p.after_command-buffer-scheduling.before_x.txt").write_text(fused)
    (dump / "module_0001.m.after_optimizations.txt").write_text(fused)
    code, out, err = run("explain", dump, "command_buffer_1")
    for words in ("computation command_buffer_1", "command-buffer-scheduling", "called by: %call", "in e", "%s = ", "%c = ", "from e"):
        expect(f"a command buffer: {words}", code == 0 and words in out, out + err)
    code, out, err = run("explain", dump, "%command_buffer_1", "--json")
    d = json.loads(out) if code == 0 else {}
    expect("as JSON", d.get("computation") == "command_buffer_1" and len(d["holds"]) == 2 and len(d["called_by"]) == 1, out + err)
    code, out, err = run("explain", dump, "command_buffer_7")
    expect("none of the name", code == 2 and "command_buffer_7" in err, out + err)
    code, out, err = run("extract", f"{dump}:after_optimizations", "command_buffer_1")
    expect("extracted", code == 0 and "cosine" in out and "sine" in out and "call" not in out.replace("ENTRY", ""), out + err)
    code, out, err = run("extract", dump, "command_buffer_1")
    expect("extracted from the last stage that has it", code == 0 and "cosine" in out and "of" in err and ":after_optimizations" in err, out + err)
    code, out, err = run("extract", dump, "command_bufer_1")
    expect("a near name of the last stage", code == 2 and "did you mean" in err, out + err)
    code, out, err = run("extract", f"{dump}:after_optimizations", "command_bufer_1")
    expect("a near name", code == 2 and "did you mean 'command_buffer_1'" in err, out + err)
    code, out, err = run("search", dump, "command_buffer", "--json")
    d = json.loads(out) if code in (0, 1) else {}
    expect("found", code == 0 and [c["computation"] for c in d["computations"]] == ["command_buffer_1"], out + err)


COPIES = {
    "donated": ("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }", " p = f32[4]{0} parameter(0), metadata={op_name=\"p\" source_file=\"a.py\" source_line=1}\n"
                " k = f32[4]{0} copy(p)\n w = f32[4]{0} negate(k), metadata={op_name=\"w\" source_file=\"a.py\" source_line=5}\n r = f32[4]{0} sine(k), metadata={op_name=\"r\" source_file=\"a.py\" source_line=9}\n"
                " ROOT t = (f32[4]{0}, f32[4]{0}) tuple(w, r)", ("donated parameter", "w (a.py:5)", "r (a.py:9)", "p (a.py:1)")),
    "returned": ("HloModule m", " p = f32[4]{0} parameter(0)\n k = f32[4]{0} copy(p)\n s = f32[4]{0} sine(p)\n ROOT t = (f32[4]{0}, f32[4]{0}) tuple(k, s)", ("result", "parameter p", "result {0}", "caller's")),
    "constant": ("HloModule m", " c = f32[4]{0} constant({1, 2, 3, 4})\n p = f32[4]{0} parameter(0)\n k = f32[4]{0} copy(c)\n ROOT t = (f32[4]{0}, f32[4]{0}) tuple(k, p)", ("result", "constant c", "result {0}")),
    "layout": ("HloModule m", " p = f32[4,2]{1,0} parameter(0)\n k = f32[4,2]{0,1} copy(p)\n ROOT s = f32[4,2]{0,1} sine(k)", ("layout", "{1,0}", "{0,1}", "s takes")),
    "two": ("HloModule m", " p = f32[4]{0} parameter(0)\n v = f32[4]{0} sine(p)\n k = f32[4]{0} copy(v)\n ROOT t = (f32[4]{0}, f32[4]{0}) tuple(v, k)", ("two results", "result {0}", "result {1}")),
    "late": ("HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }", " p = f32[4]{0} parameter(0)\n i = s32[] parameter(1)\n one = f32[1]{0} constant({1})\n k = f32[4]{0} copy(p)\n"
             " u = f32[4]{0} dynamic-update-slice(k, one, i)\n r = f32[4]{0} sine(p)\n ROOT t = (f32[4]{0}, f32[4]{0}) tuple(u, r)", ("u writes into the donated buffer of p", "r reads p after it")),
    "kept": ("HloModule m", " p = f32[4]{0} parameter(0)\n i = s32[] parameter(1)\n one = f32[1]{0} constant({1})\n k = f32[4]{0} copy(p)\n ROOT u = f32[4]{0} dynamic-update-slice(k, one, i)", ("did not donate", "u writes")),
    "nothing": ("HloModule m", " p = f32[4]{0} parameter(0)\n k = f32[4]{0} copy(p)\n ROOT s = f32[4]{0} sine(k)", ("unknown",)),
}


@part
def why_a_copy(tmp):
    for name, (header, body, words) in COPIES.items():
        dump = tmp / name
        dump.mkdir()
        (dump / "module_0001.m.before_optimizations.txt").write_text(entry(body, header=header))
        code, out, err = run("explain", dump, "k")
        line = next((l for l in out.splitlines() if l.startswith("why: ")), "")
        for word in words:
            expect(f"copy {name}: {word}", code == 0 and word in line, out + err)
    body = ("b { s = (s32[], s32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n k = s32[] copy(i)\n o = s32[] constant(1)\n n = s32[] add(k, o)\n x = s32[] multiply(k, k)\n ROOT t = (s32[], s32[]) tuple(n, x) }\n"
            "c { s.1 = (s32[], s32[]) parameter(0)\n j = s32[] get-tuple-element(s.1), index=0\n e = s32[] constant(3)\n ROOT l = pred[] compare(j, e), direction=LT }")
    (tmp / "loop").mkdir()
    (tmp / "loop/module_0001.m.before_optimizations.txt").write_text(
        entry(" z = s32[] constant(0)\n p = s32[] parameter(0)\n a = (s32[], s32[]) tuple(p, p)\n ROOT w = (s32[], s32[]) while(a), condition=c, body=b", body))
    code, out, err = run("explain", tmp / "loop", "k")
    expect("copy of a loop's state", code == 0 and "why: loop state: n writes element 0" in out and "x reads what was there before" in out, out + err)


DECISIONS = """fusion_steps {
  update_priority {
    producer_name: "one"
    consumer_names: "two"
    us_fused: 5.5
    us_unfused: 4.25
  }
}
fusion_steps {
  producer_ineligible {
    producer_name: "two"
    reason: "it is too large"
  }
}
"""


@part
def the_last_decision_in_words(tmp):
    body = " p = f32[8] parameter(0)\n {0} = f32[8] sine(p)\n {1} = f32[8] cosine({0})\n ROOT {2} = f32[8] tanh({1})"
    dump = tmp / "dump"
    dump.mkdir()
    (dump / "module_0001.m.before_optimizations.txt").write_text(entry(body.format("one", "two", "three")))
    (dump / "module_0001.m.after_optimizations.txt").write_text(entry(body.format("sine_1", "cosine_2", "tanh_3")))
    (dump / "module_0001.m.priority_fusion_dump.txt").write_text(DECISIONS)
    for first, second in (("one", "two"), ("sine_1", "cosine_2"), ("one", "cosine_2"), ("two", "one")):
        code, out, err = run("explain", dump, "--why-not", first, second)
        expect(f"{first} and {second}", code == 0 and out.startswith("5.5 µs fused, 4.25 µs apart: priority-fusion did not fuse one into two: it saves nothing"), out + err)
    code, out, err = run("explain", dump, "--why-not", "two", "three", "--raw")
    expect("ineligible, and the line", code == 0 and out.startswith("priority-fusion did not fuse two into three: it is too large") and "producer_ineligible: producer_name" in out, out + err)
    code, out, err = run("explain", dump, "--why-not", "two", "p")
    expect("no advice to make a file that is there", code == 1 and "--xla_dump" not in out, out + err)
    code, out, err = run("explain", dump, "--why-not", "one", "two", "--json")
    d = json.loads(out)
    expect("as JSON", code == 0 and d["last"].startswith("5.5 µs") and len(d["decisions"]) == 1, out + err)


LL = """; ModuleID = 'm'
source_filename = "m"
target datalayout = "e"
define void @fusion(ptr %arg0, ptr %arg1) {
entry:
  %1 = load float, ptr %arg0
  %add.2 = fadd float %1, %1
  store float %add.2, ptr %arg1
  ret void
}
"""
PTX = """.version 8.0
.target sm_90a
.visible .entry fusion(.param .u64 fusion_param_0)
.reqntid 128, 1, 1
{
  .reg .b64 %rd<3>;
  mov.u32 %r1, %tid.x;
  add.s32 %r2, %r1, %r1;
  ret;
}
"""
GRAPH = 'node {\n  name: "a"\n  op: "Placeholder"\n}\nnode {\n  name: "b"\n  op: "Neg"\n  input: "a"\n  attr {\n    key: "T"\n    value {\n      type: DT_FLOAT\n    }\n  }\n}\n'


@part
def files_that_are_no_modules(tmp):
    place = tmp / "module_0000.a_inference_f_17__XlaMustCompile_true_config_proto_6001324581131673121_executor_type_11160318154034397263__21"
    named = lambda ending: pathlib.Path(f"{place}.{ending}")
    rows = (("ir-with-opt.ll", LL, "LLVM IR"), ("ptx", PTX, "PTX"), ("mlir", "module @a {\n}\n", "as_text(dialect=\"hlo\")"),
            ("thunk_schedule", "Total order:\n0 kKernel\n", "order in which XLA's thunks run"), ("sm_8.6_gpu_after_optimizations-buffer-assignment.txt", "BufferAssignment:\n", "explain"),
            ("debug_options", "xla_dump_to: \"x\"\n", "settings"), ("config.pbtxt", "seed: 1\n", "settings"), ("html", "<html></html>", "page"), ("o", "\x7fELF", "machine code"),
            ("ctf.json", json.dumps({"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}), "diff --profile"),
            ("pbtxt", GRAPH, "hlo-replay convert"), ("before_optimizations.dot", "digraph g { a -> b }\n", "convert"), ("csv", "Time (%),Name\n", "--trace"),
            ("cubin", "", "is empty"), ("priority_fusion_dump.txt", "fusion_steps {\n}\n", "--why-not"), ("memory-usage-report.pb", "\x0a\x02ab", "memory"))
    for ending, text, words in rows:
        named(ending).write_text(text, encoding="latin-1")
        for command in ((), ("print",), ("verify",), ("exec",), ("stats",)):
            code, out, err = run(*command, named(ending))
            expect(f"{ending} by {command}", code == 2 and words in err and "expected" not in err and "\n" not in err.strip(), err)
        code, out, err = run("diff", named(ending), named(ending))
        expect(f"diff of {ending}", code in (0, 2) and "expected" not in err, err)
    # What it is called does not make it so.
    named("ll").write_text(entry(" ROOT p = f32[] parameter(0)"))
    expect("HLO under another name", run("print", named("ll"))[0] == 0)
    code, out, err = run("diff", named("ptx"), named("ir-with-opt.ll"))
    expect("of two kinds", code == 2 and "two of a kind" in err, err)
    named("before_optimizations.txt").write_text(entry(" ROOT p = f32[4] parameter(0)"))
    code, out, err = run(tmp)
    expect("the folder opens by its long names", code == 0 and "a_inference_f_17__XlaMustCompile_true" in out, out + err)
    code, out, err = run("print", f"{tmp}:before_optimizations")
    expect("a stage of it", code == 0 and "ENTRY %e" in out, out + err)


@part
def kernels_compared(tmp):
    def pair(ending, first, second):
        (tmp / f"a.{ending}").write_text(first), (tmp / f"b.{ending}").write_text(second)
        return run("diff", tmp / f"a.{ending}", tmp / f"b.{ending}")

    renamed = LL.replace("%1", "%x").replace("%add.2", "%sum").replace("@fusion", "@k").replace("ModuleID = 'm'", "ModuleID = 'n'")
    code, out, err = pair("ll", LL, renamed)
    expect("LLVM IR under other names", code == 0 and out == "same but for names and remarks\n", out + err)
    code, out, err = pair("ll", LL, renamed.replace("fadd float %x, %x", "fadd float %sum, %x"))
    expect("other operands", code == 1 and "1 with other operands" in out, out + err)
    code, out, err = pair("ll", LL, LL.replace("fadd", "fmul"))
    expect("another instruction", code == 1 and "-  %add.2 = fadd" in out and "+  %add.2 = fmul" in out and "1 lines only in the first" in out, out + err)
    code, out, err = pair("ptx", PTX, PTX.replace("%r1,", "%r7,").replace("%r1;", "%r7;").replace("fusion", "other"))
    expect("PTX under other names", code == 0 and "same but for names" in out, out + err)
    for old, new in (("%tid.x", "%ctaid.x"), ("%r1, %r1;", "%r1, %r2;"), ("add.s32", "sub.s32"), ("128, 1", "64, 1")):
        code, out, err = pair("ptx", PTX, PTX.replace(old, new))
        expect(f"PTX with {new}", code == 1 and out.splitlines()[-1].startswith("different"), out + err)
    code, out, err = run("diff", tmp / "a.ptx", tmp / "a.ptx", "--json")
    expect("as JSON", code == 0 and json.loads(out)["same_text"], out)


@part
def graphs(tmp):
    folder = tmp / "graphs"
    folder.mkdir()
    for name, text in (("mark_for_compilation.pbtxt", GRAPH.replace('op: "Neg"', 'op: "Neg"\n  device: "/gpu:0"')), ("before_mark_for_compilation.pbtxt", GRAPH),
                       ("encapsulate_subgraphs_after.pbtxt", GRAPH.replace('"b"', '"cluster_0"'))):
        (folder / name).write_text(text)
    code, out, err = run(folder)
    lines = [l for l in out.splitlines() if ".pbtxt: " in l]
    expect("a succession of graphs", code == 0 and [l.split(".")[0] for l in lines] == ["before_mark_for_compilation", "mark_for_compilation", "encapsulate_subgraphs_after"] and
           'device "" → "/gpu:0"' in out and "+ cluster_0 (Neg)" in out and "- b (Neg)" in out, out + err)
    code, out, err = run("open", folder, "--json")
    expect("as JSON", code == 0 and [g["nodes"] for g in json.loads(out)["graphs"]] == [2, 2, 2], out + err)
    code, out, err = run("diff", folder / "before_mark_for_compilation.pbtxt", folder / "encapsulate_subgraphs_after.pbtxt")
    expect("node by node", code == 1 and "1 nodes only in the first, 1 only in the second" in out, out + err)
    for ending, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("dot", b"digraph")):
        code, out, err = run("convert", folder / "mark_for_compilation.pbtxt", tmp / f"g.{ending}")
        expect(f"GraphDef to {ending}", code == 0 and (tmp / f"g.{ending}").read_bytes().startswith(magic), err)
    code, out, err = run("convert", tmp / "g.dot", tmp / "h.png")
    expect("a .dot of 2017 to .png", code == 0 and (tmp / "h.png").read_bytes().startswith(b"\x89PNG"), err)
    code, out, err = run("convert", folder / "mark_for_compilation.pbtxt", tmp / "g.hlo")
    expect("no module of it", code == 2 and "becomes .dot, .svg or .png" in err, err)
    # --xla_dump_hlo_as_dot alone: graphs are all there is.
    dots = tmp / "dots"
    dots.mkdir()
    for stage in ("before_optimizations", "sm_8.6_gpu_after_optimizations"):
        (dots / f"module_0031.cluster_0__XlaCompiledKernel_true_.67.{stage}.dot").write_text("digraph g { a -> b }\n")
    (dots / "module_0031.cluster_0__XlaCompiledKernel_true_.67.thunk_schedule").write_text("0 kKernel\n")
    code, out, err = run(dots)
    expect("a dump of graphs", code == 0 and "cluster_0" in out and "--xla_dump_hlo_as_text" in out and ".thunk_schedule" in out, out + err)
    code, out, err = run("view", dots, "-o", tmp / "pages")
    expect("its pages", code == 0 and (tmp / "pages/index.html").exists() and len(list((tmp / "pages").glob("*.dot"))) == 2, out + err)


@part
def whose_kernels(tmp):
    # ptxas as far as it is asked here, and a place without it.
    tools = tmp / "tools"
    tools.mkdir()
    (tools / "ptxas").write_text("#!/bin/sh\nfor k in fusion other; do echo \"ptxas info    : Function properties for $k\"\necho '    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads'\n"
                                 "echo 'ptxas info    : Used 64 registers, 4096 bytes smem'\ndone\n")
    (tools / "ptxas").chmod(0o755)
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    dump = tmp / "dump"
    dump.mkdir()
    module = entry(" p = f32[4096] parameter(0)\n ROOT r = f32[4096] fusion(p), kind=kLoop, calls=f", "f { q = f32[4096] parameter(0)\n ROOT n = f32[4096] negate(q) }")
    (dump / "module_0001.m.before_optimizations.txt").write_text(module)
    (dump / "module_0001.m.ptx").write_text(PTX + PTX.split("\n", 2)[2].replace("fusion", "other").replace(".reqntid 128, 1, 1\n", ""))
    for given in (dump, f"{dump}:before_optimizations", dump / "module_0001.m.ptx"):
        code, out, err = run("occupancy", given, env=path)
        expect(f"XLA's own kernels, of {given}", code == 0 and "XLA's own kernels, " in out and "m.ptx for sm_90a" in out and "8 bytes of registers spill" in out and
               "does not say how many threads" in out, out + err)
    code, out, err = run("occupancy", dump, "--json", "--gpu=H100,A100", env=path)
    rows = json.loads(out)["kernels"] if code == 0 else []
    expect("XLA's own as JSON", [(r["kernel"], r["made_by"], r.get("threads"), r["registers"]) for r in rows] ==
           [("fusion", "xla", 128, 64), ("other", "xla", None, 64)] * 2 and rows[0]["occupancy"] == 0.5 and rows[0]["limiter"] == "registers", out + err)
    (dump / "module_0001.m.ptx").write_text("nothing\n")
    code, out, err = run("occupancy", dump, env=path)
    expect("no PTX in it", code == 2 and "holds no kernel" in err, out + err)
    (dump / "module_0001.m.ptx").unlink()
    code, out, err = run("occupancy", dump, env=path)
    expect("ours", code == 2 and "libdevice" in err or code == 0 and "kernels that hlo-replay compiles from" in out and "not XLA's own" in out, out + err)


# --- findings and who made what is odd ---

def dumped(folder, first, last, stage="simplification.after_{}.before_dce", by="algsimp", end="sm_9.0_gpu_after_optimizations", middle=None):
    """A dump of three stages: the first, the one that a pass left, the last (the same, where no other is given)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "module_0001.m.before_optimizations.txt").write_text(first)
    (folder / f"module_0001.m.0001.{stage.format(by)}.txt").write_text(middle or last)
    (folder / f"module_0001.m.{end}.txt").write_text(last)
    return folder


def found_in(folder, *options):
    code, out, err = run("open", folder, "--json", *options)
    return json.loads(out)["modules"][0]["findings"] if code == 0 else [{"kind": err}]


PLACE = ', metadata={op_name="jit(f)/dense/dot_general" source_file="net.py" source_line=%d}'
NARROW = entry(" a = bf16[512,512] parameter(0)\n b = bf16[512,512] parameter(1)\n"
               " ROOT d = f32[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}" + PLACE % 7)
WIDE = entry(" a = bf16[512,512] parameter(0)\n b = bf16[512,512] parameter(1)\n c.1 = f32[512,512] convert(a)\n c.2 = f32[512,512] convert(b)\n"
             " ROOT d = f32[512,512] dot(c.1, c.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}" + PLACE % 7)


@part
def what_a_pass_widened_is_not_the_users(tmp):
    kinds = [f["kind"] for f in found_in(dumped(tmp / "pass", NARROW, WIDE, by="float-normalization-bf16"))]
    expect("the line multiplies bf16: nothing is said", kinds == [], kinds)
    (f,) = found_in(dumped(tmp / "user", WIDE, WIDE)) or [{}]
    expect("the program does it: said, with the first stage's instruction", f["kind"] == "widened-product" and f["evidence"]["whose"] == "program" and
           f["evidence"]["first_instruction"] == "d" and f["evidence"]["pass"] is None and f["source"] == "net.py:7" and not f["tried"]["compiled"], f)
    code, out, err = run(tmp / "user")
    expect("in words", code == 0 and "the program's own: d of before_optimizations" in out and "not tried" in out, out + err)


PRODUCT = " x = bf16[64,1000] parameter(0)\n w = bf16[1000,512] parameter(1)\n"
PADS = PRODUCT + (" z = bf16[] constant(0)\n p.1 = bf16[64,1024] pad(x, z), padding=0_0x0_24%s\n p.2 = bf16[1024,512] pad(w, z), padding=0_24x0_0%s\n"
                  " ROOT d = bf16[64,512] dot(p.1, p.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}")


@part
def who_pads_is_asked(tmp):
    first = entry(PRODUCT + " ROOT d = bf16[64,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}" + PLACE % 9)
    last = entry(PADS % ("", "") + PLACE % 9)
    kinds = [f["kind"] for f in found_in(dumped(tmp / "splitk", first, last, "hlo_normalization.after_{}.before_dce", "splitk-rewriter"))]
    expect("splitk-rewriter pads for itself: no advice", "padded-product" not in kinds, kinds)
    found = [f for f in found_in(dumped(tmp / "cublas", first, last, "hlo_normalization.after_{}.before_dce", "cublas-pad-for-gemms")) if f["kind"] == "padded-product"]
    expect("cublas-pad-for-gemms pads to a multiple of 8", found and all(f["evidence"]["pass"] == "cublas-pad-for-gemms" and f["source"] == "net.py:9" and "multiple of 8" in f["advice"] for f in found), found)
    own = entry(PADS % (PLACE % 3, PLACE % 3) + PLACE % 9)
    found = [f for f in found_in(dumped(tmp / "own", own, own)) if f["kind"] == "padded-product"]
    expect("the program pads: said so, and no multiple of 8 of 1000", found and all(f["evidence"]["whose"] == "program" and f["source"] == "net.py:3" and "multiple" not in f["advice"] for f in found), found)


SCALED = """ q = bf16[512,512] parameter(0)
 k = bf16[512,512] parameter(1)
 s = bf16[512,512] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 c = f32[512,512] convert(s), metadata={op_name="convert" source_file="net.py" source_line=18 source_column=%d}
 h = f32[] constant(11.3)
 w = f32[512,512] broadcast(h), dimensions={}
 e = f32[512,512] divide(c, w), metadata={op_name="div" source_file="net.py" source_line=18 source_column=8}
 v = f32[512,512] convert(k)
 ROOT o = f32[512,512] dot(e, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="dot" source_file="net.py" source_line=20}"""


@part
def f32_is_told_where_it_begins(tmp):
    found = found_in(dumped(tmp / "implicit", entry(SCALED % 8), entry(SCALED % 8)))
    expect("a numpy scalar", [(f["kind"], f["source"], f["evidence"]["first_instruction"]) for f in found if "scalar" in f["kind"]] == [("widened-by-scalar", "net.py:18", "c")] and
           not [f for f in found if f["kind"] == "f32-product"], found)
    found = found_in(dumped(tmp / "written", entry(SCALED % 4), entry(SCALED % 4)))
    expect("a conversion that somebody wrote is meant", not [f for f in found if "scalar" in f["kind"]], found)


@part
def advice_is_tried(tmp):
    one_hot = entry(""" i = s32[256] parameter(0)
 t = f32[8192,512] parameter(1)
 wide = s32[256,8192] broadcast(i), dimensions={0}
 n = s32[256,8192] iota(), iota_dimension=1
 eq = pred[256,8192] compare(wide, n), direction=EQ
 v = f32[256,8192] convert(eq)
 ROOT d = f32[256,512] dot(v, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    dump = dumped(tmp / "gpu", one_hot, one_hot)
    (dump / "module_0001.m.gpu_target_config.pbtxt").write_text((data.parent / "ir" / "target" / "targets" / "a100_sxm_80.pbtxt").read_text())
    found = [f for f in found_in(dump, "--try") if f["kind"] == "one-hot-product"]
    tried = found[0]["tried"] if found else {}
    expect("a lookup by a product, changed and compiled", tried.get("compiled") and tried["helps"] and tried["seconds_after"] < tried["seconds_before"], found)
    answer = tmp / "tried.json"
    answer.write_text(run("open", dump, "--try", "--json")[1])
    code, out, err = run("view", dump, f"--tried={answer}", "-o", tmp / "tried.html")
    # As a file that its engine reads; without an engine in the answer that was made beforehand.
    kept = [f for part in page_files(tmp / "tried.html").values() if isinstance(part, dict) for f in part.get("findings") or []] if code == 0 else []
    expect("a page carries what came of it", [f["tried"] for f in kept if f["kind"] == "one-hot-product"] == [tried], (err, kept))
    answer.write_text(run("open", dump, "--json")[1])
    for name, args, words in (("that was not tried", [dump], "has no tried finding of a module of"), ("no dump", [dump / "module_0001.m.before_optimizations.txt"], "--tried is of a page of a dump")):
        code, out, err = run("view", *args, f"--tried={answer}", "-o", tmp / "none.html")
        expect(name, code == 2 and words in err, err)
    answer.write_text("[]")
    code, out, err = run("view", dump, f"--tried={answer}", "-o", tmp / "none.html")
    expect("no answer of it", code == 2 and "`hlo-replay open DIR --try --json` prints" in err, err)
    found = [f for f in found_in(dumped(tmp / "cpu", one_hot, one_hot, end="cpu_after_optimizations"), "--try") if f["kind"] == "one-hot-product"]
    expect("for another device: not tried, and why", found and not found[0]["tried"]["compiled"] and "--engine=installed" in found[0]["tried"]["what"], found)
    code, out, err = run("open", dump, "--engine=installed")
    expect("--engine without --try", code == 2 and "--engine goes with --try" in err, out + err)
    code, out, err = run("open", dump, "--stages", "--try")
    expect("--stages with --try", code == 2, out + err)


FRAMES = """HloModule m

FileNames
1 "net.py"
2 "/v/site-packages/flax/linen/linear.py"

FunctionNames
1 "step"
2 "__call__"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=99 end_line=99 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


ENTRY e {
  x = f32[64,64] parameter(0)
  ROOT d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="dot" stack_frame_id=2}
}
"""


@part
def the_whole_stack(tmp):
    f = tmp / "f.hlo"
    f.write_text(FRAMES)
    dump = dumped(tmp / "dump", FRAMES, FRAMES)
    for words in (("cost", f), ("summary", f), ("open", dump), ("explain", dump, "d"), ("search", f, "d")):
        code, out, err = run(*words)
        expect(f"{words[0]}: the user's own line", code == 0 and "net.py:12" in out and "linear.py" not in out, out + err)
        code, out, err = run(*words, "--frames")
        expect(f"{words[0]} --frames", code == 0 and "at /v/site-packages/flax/linen/linear.py:99 __call__" in out and "at net.py:12 step" in out, out + err)
    code, out, err = run("summary", f, "--by=class", "--frames")
    expect("frames of classes", code == 2 and "--by=line" in err, out + err)


with tempfile.TemporaryDirectory() as folder:
    for number, test in enumerate(PARTS):
        place = pathlib.Path(folder) / str(number)
        place.mkdir()
        test(place)
finish("answers_test")
