"""Answers that were plainly wrong once: NaN and infinities, what bisect has judged, library scratch, names that do not
meet, and files that are no modules."""
import json
import pathlib
import tempfile

from command_line import data, expect, finish, run

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
            found = json.loads(out)["nan"] if out else None
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
    last = out.splitlines()[-1]
    expect("bisect counts what it judged", code == 2 and "3 of 6 judged" in last and "3 could not be judged: 2 × cannot evaluate custom-call: " in last and
           "1 × " in last and 'target "nobody"' in last, out + err)
    expect("bisect shows the worst error", "the worst error is " in last and "(0.0001 is allowed), at o0[" in last and
           "of stage 0001 optimization.after_algsimp" in last, last)
    code, out, err = run("bisect", tmp, "--json")
    d = json.loads(out)
    expect("bisect as JSON", (d["candidates"], d["judged"], d["not_judged"]) == (6, 3, 3) and sum(r["stages"] for r in d["reasons"]) == 3 and
           0 < d["worst_error"] < d["tolerance"] == 1e-4 and d["worst_at"].startswith("o0["), out)
    for k in (2, 3, 4):
        next(tmp.glob(f"*.000{k}.*")).unlink()
    next(tmp.glob("*.0001.*")).unlink()
    code, out, err = run("bisect", tmp, "--resume", tmp / "seen.json")
    again = run("bisect", tmp, "--resume", tmp / "seen.json")
    expect("all good and the same", code == 0 and "2 of 2 judged" in out and "every element of every result is the same" in out and again[1] == out, out + err)


with tempfile.TemporaryDirectory() as folder:
    for number, test in enumerate(PARTS):
        place = pathlib.Path(folder) / str(number)
        place.mkdir()
        test(place)
finish("answers_test")
