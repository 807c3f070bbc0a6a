#!/usr/bin/env python3
"""check: each kind of contract once where it decides and once where it is there and does not; right, rounding, wrong,
unknown; which stage departs."""
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import expect, finish, run

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
SUB = ADD.replace("add {", "sub {").replace("add(", "subtract(")
LAST = "last { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\n"
PAIRS = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  v = s32[] parameter(2)
  w = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT
}
"""
SCATTER = "scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"

# kind: parameters, their values, computations, what is open, what another compiler gives for it.
CONTRACTS = {
    "convert-range": ("x = f32[3]", "{3e9, nan, 1.5}", "", "s32[3] convert(x)", "s32[3] constant({-2147483648, -2147483648, 1})"),
    "integer-division": ("x = s32[3]", "{7, -2147483648, 9}", "", "s32[3] divide(x, s32[3] constant({0, -1, 2}))", "s32[3] constant({0, 0, 4})"),
    "shift-amount": ("x = s32[3]", "{3, 3, 3}", "", "s32[3] shift-left(x, s32[3] constant({33, 2, -1}))", "s32[3] constant({6, 12, -2147483648})"),
    "sort-ties": ("x = f32[5] y = s32[5]", "{1, 1, 1, 0, 1}\n{0, 1, 2, 3, 4}", PAIRS,
                  "s32[5] get-tuple-element((f32[5], s32[5]) sort(x, y), dimensions={0}, to_apply=less), index=1", "s32[5] constant({3, 4, 1, 2, 0})"),
    "sort-nan": ("x = f32[4] y = s32[4]", "{2, nan, 1, 0}\n{0, 1, 2, 3}", PAIRS,
                 "s32[4] get-tuple-element((f32[4], s32[4]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less), index=1",
                 "s32[4] constant({3, 2, 0, 1})"),
    "unique-indices": ("x = f32[4] i = s32[3,1] u = f32[3]", "{0, 0, 0, 0}\n{{1}, {1}, {2}}\n{1, 2, 3}", ADD,
                       f"f32[4] {SCATTER}, unique_indices=true, to_apply=add", "f32[4] constant({0, 2, 3, 0})"),
    "sorted-indices": ("x = f32[4] i = s32[3,1] u = f32[3]", "{0, 0, 0, 0}\n{{2}, {1}, {3}}\n{1, 2, 3}", ADD,
                       f"f32[4] {SCATTER}, indices_are_sorted=true, to_apply=add", "f32[4] constant({0, 0, 1, 3})"),
    "scatter-order": ("x = f32[4] i = s32[3,1] u = f32[3]", "{0, 0, 0, 0}\n{{1}, {1}, {2}}\n{1, 2, 3}", LAST,
                      f"f32[4] {SCATTER}, to_apply=last", "f32[4] constant({0, 1, 3, 0})"),
    "reduce-order": ("x = f32[4]", "{1, 2, 3, 4}", SUB, "f32[] reduce(x, f32[] constant(0)), dimensions={0}, to_apply=sub", "f32[] constant(10)"),
    "reduce-init": ("x = f32[4]", "{1, 2, 3, 4}", ADD, "f32[] reduce(x, f32[] constant(5)), dimensions={0}, to_apply=add", "f32[] constant(25)"),
    "random": ("x = f32[]", "0", "", "f32[3] rng(x, f32[] constant(1)), distribution=rng_uniform", "f32[3] constant({0.5, 0.25, 0.125})"),
    "uninitialised": ("x = f32[]", "0", "", 'f32[3] custom-call(), custom_call_target="AllocateBuffer"', "f32[3] constant({7, 7, 7})"),
    "range": ("x = f32[2]", "{100, 1}", "", "f32[2] log(f32[2] exponential(x))", "f32[2] constant({100, 1})"),
    "excess-precision": ("x = f32[2]", "{1.001, 1.5}", "", "f32[2] convert(bf16[2] convert(x))", "f32[2] constant({1.001, 1.5})"),
    "denormals": ("x = f32[2]", "{1e-37, 1}", "", "f32[2] multiply(x, f32[2] constant({0.001, 1}))", "f32[2] constant({0, 1})"),
    "accuracy": ("x = f32[2]", "{1, 2}", "", "f32[2] tanh(x)", "f32[2] constant({0.7616, 0.96402758})"),
}


def module(parameters, computations, value, other="f32[] add(q, q)"):
    lines = [p + f" parameter({k})" for k, p in enumerate(parameters.replace("] ", "]\n").splitlines())]
    shape = value.split(" ")[0]
    return (f"HloModule m\n{computations}ENTRY e {{\n  " + "\n  ".join(lines) + f"\n  q = f32[] parameter({len(lines)})\n  open = {flat(value)[0]}"
            f"\n  two = {other}\n  ROOT r = ({shape}, f32[]) tuple(open, two)\n}}\n").replace("  open =", flat(value)[1] + "  open =")


def flat(value):
    """Nested calls as instructions of their own: HLO has no expressions."""
    made = []
    while True:
        inner = None
        # The innermost operand that has a shape and an opcode of its own.
        for found in re.finditer(r"(?<=[(\s,])((?:\([^()]*\)|[a-z0-9]+\[[^\]]*\]) [a-z-]+\((?:[^()]|\{[^{}]*\})*\)(?:, (?:dimensions|to_apply|is_stable|slice)=[^,()\s]+)*)(?=[,)])", value):
            inner = found
            break
        if not inner or inner.start() == 0:
            break
        name = f"t{len(made)}"
        made.append(f"{name} = {inner[1]}")
        value = value[:inner.start()] + name + value[inner.end():]
    return value, "".join(f"  {m}\n" for m in made)


with tempfile.TemporaryDirectory() as directory:
    tmp = pathlib.Path(directory)

    def write(name, text):
        (tmp / name).write_text(text)
        return tmp / name

    def got(name, text, inputs):
        code, _, err = run("exec", write(name + ".hlo", text), f"--inputs={inputs}", f"--out={tmp / name}.npz")
        expect(f"{name} runs", code == 0, err + text)
        return tmp / (name + ".npz")

    def check(name, text, inputs, outputs, *more):
        code, out, err = run("check", write(name + ".check.hlo", text), f"--inputs={inputs}", f"--outputs={outputs}", *more, "--json")
        answer = json.loads(out or "{}")
        expect(f"{name}: exit code", code == {"wrong": 1, "unknown": 2}.get(answer.get("verdict"), 0), f"{code} {err} {out[:300]}")
        return answer

    for kind, (parameters, values, computations, value, other) in CONTRACTS.items():
        text = module(parameters, computations, value)
        inputs = write("in.txt", values + "\n3\n")
        answer = check(kind, text, inputs, got("other", module(parameters, computations, other), inputs))
        sites = [c for c in answer.get("contracts", []) if c["kind"] == kind]
        expect(f"{kind} decides", answer.get("verdict") == "contract" and sites and sites[0]["decides"] is True, f"{answer}\n{text}")
        # The same instruction, and what differs is another output.
        answer = check(kind, text, inputs, got("wrong", module(parameters, computations, value, "f32[] multiply(q, q)"), inputs))
        expect(f"{kind} does not reach", answer.get("verdict") == "wrong" and not any(c["decides"] for c in answer["contracts"]), answer)
        expect(f"{kind}: the element", [o["wrong"] for o in answer.get("outputs", [])] == [0, 1], answer)

    # Values that flow on: only elements that the open ones reach are excused.
    ON = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[4] convert(x)
  s = s32[4] SHIFT
  ROOT r = s32[4] add(s, s32[4] constant({1, 1, 1, 1}))
}
""".replace("add(s, s32[4] constant({1, 1, 1, 1}))", "add(s, one)").replace("  s =", "  one = s32[4] constant({1, 1, 1, 1})\n  s =")
    inputs = write("in.txt", "{3e9, 1, 2, 3}\n")
    flow = ON.replace("SHIFT", "reverse(i), dimensions={0}")
    answer = check("flow", flow, inputs, got("a", ON.replace("SHIFT", "constant({3, 2, 1, 77})"), inputs))
    expect("what the open element reaches", answer["verdict"] == "contract" and answer["outputs"][0]["open"] == 1, answer)
    answer = check("flow", flow, inputs, got("a", ON.replace("SHIFT", "constant({3, 9, 1, 77})"), inputs))
    expect("what it does not reach", answer["verdict"] == "wrong" and answer["outputs"][0]["wrong"] == 1 and answer["outputs"][0]["index"] == [1], answer)
    expect("one element is open all the same", answer["outputs"][0]["open"] == 1, answer)

    # What is kept out of range goes through moves and calls, and the one instruction is named.
    call = """HloModule m
f { v = f32[2] parameter(0) w = f32[2] reverse(v), dimensions={0} ROOT l = f32[2] log(w) }
ENTRY e {
  x = f32[2] parameter(0)
  k = f32[2] exponential(x)
  n = f32[2] negate(k)
  a = f32[2] abs(n)
  s = f32[2] exponential(a)
  c = f32[2] call(a), to_apply=f
  ROOT r = (f32[2], f32[2]) tuple(c, s)
}
"""
    inputs = write("in.txt", "{1, 100}\n")
    answer = check("call", call, inputs, got("a", call.replace("call(a), to_apply=f", "constant({100, 1})"), inputs))
    expect("range, through calls", answer["verdict"] == "contract" and {c["instruction"] for c in answer["contracts"] if c["decides"]} == {"k"}, answer)

    # Two sites of one kind: the one that decides.
    two = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  a = s32[2] convert(x)
  n = f32[2] negate(x)
  b = s32[2] convert(n)
  ROOT r = (s32[2], s32[2]) tuple(a, b)
}
"""
    inputs = write("in.txt", "{3e9, 1}\n")
    answer = check("two", two, inputs, got("a", two.replace("convert(n)", "constant({0, -1})"), inputs))
    expect("of two the one that decides", {c["instruction"]: c["decides"] for c in answer["contracts"]} == {"a": False, "b": True}, answer)

    # Defined by HLO, however odd: no excuse.
    for name, parameters, values, value, other in (
            ("integers wrap", "x = s8[2]", "{12, 2}", "s8[2] abs(s8[2] multiply(x, x))", "s8[2] constant({-112, 4})"),
            ("starts are clamped", "x = f32[8] i = s32[]", "{0, 1, 2, 3, 4, 5, 6, 7}\n7", "f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}", "f32[2] constant({7, 7})"),
            ("NaN stays", "x = f32[2]", "{-1.5, 2}", "f32[2] log(f32[2] power(x, x))", "f32[2] constant({-0.608, 1.3862944})"),
            ("a stable sort", "x = f32[3] y = s32[3]", "{1, 1, 0}\n{0, 1, 2}",
             "s32[3] get-tuple-element((f32[3], s32[3]) sort(x, y), dimensions={0}, is_stable=true, to_apply=less), index=1", "s32[3] constant({2, 1, 0})")):
        computations = PAIRS if "sort" in value else ""
        inputs = write("in.txt", values + "\n3\n")
        answer = check(name, module(parameters, computations, value), inputs, got("other", module(parameters, computations, other), inputs))
        expect(name, answer.get("verdict") == "wrong" and not answer["contracts"], answer)
        expect(f"{name}: numbers as text", "-nan" not in json.dumps(answer), answer)

    # Rounding: a sum that cancels, added up in another order, and one that no order gives.
    sum_ = module("x = f32[4]", ADD, "f32[] reduce(x, f32[] constant(0)), dimensions={0}, to_apply=add")
    inputs = write("in.txt", "{1e8, 1.25, -1e8, 0.5}\n3\n")
    answer = check("order", sum_, inputs, got("a", module("x = f32[4]", ADD, "f32[] constant(0.5)"), inputs))
    expect("rounding", answer["verdict"] == "rounding" and answer["outputs"][0]["rounded"] == 1, answer)
    answer = check("order", sum_, inputs, got("a", module("x = f32[4]", ADD, "f32[] constant(500)"), inputs))
    expect("more than rounding", answer["verdict"] == "wrong", answer)
    # Whole numbers have no rounding.
    inputs = write("in.txt", "{1000, 1, -1000, 2}\n3\n")
    answer = check("whole", sum_, inputs, got("a", module("x = f32[4]", ADD, "f32[] constant(3.0001)"), inputs))
    expect("sums of whole numbers are exact", answer["verdict"] == "wrong", answer)
    answer = check("same", sum_, inputs, got("a", sum_, inputs))
    expect("right", answer["verdict"] == "right" and answer["outputs"][0]["different"] == 0, answer)
    # A comparison that rounding tips over.
    tip = """HloModule m
""" + ADD + """ENTRY e {
  x = f32[3] parameter(0)
  z = f32[] constant(0)
  s = f32[] reduce(x, z), dimensions={0}, to_apply=add
  c = f32[] constant(0.6)
  ROOT p = pred[] compare(s, c), direction=GT
}
"""
    inputs = write("in.txt", "{0.1, 0.2, 0.3}\n")
    answer = check("tips", tip, inputs, got("a", tip.replace("direction=GT", "direction=LE"), inputs))
    expect("a comparison tips over", answer["verdict"] == "rounding", answer)
    inputs = write("in.txt", "{0.1, 0.2, 0.5}\n")
    answer = check("tips", tip, inputs, got("a", tip.replace("direction=GT", "direction=LE"), inputs))
    expect("a comparison that does not", answer["verdict"] == "wrong", answer)

    # In bf16 an intermediate that is kept in f32 is rounding like any other, not a dispute.
    chain = """HloModule m
ENTRY e {
  x = T[4096] parameter(0)
  y = T[4096] parameter(1)
  a = T[4096] multiply(x, y)
  b = T[4096] add(a, y)
  c = T[4096] multiply(b, x)
  ROOT d = T[4096] subtract(c, y)
}
"""
    wide = chain.replace("T[4096] parameter", "bf16[4096] parameter").replace("  a =", "  u = f32[4096] convert(x)\n  v = f32[4096] convert(y)\n  a =")
    wide = wide.replace("T[", "f32[").replace("(x, y)", "(u, v)").replace(", y)", ", v)").replace(", x)", ", u)").replace("ROOT d", "d").replace("\n}", "\n  ROOT o = bf16[4096] convert(d)\n}")
    code, _, err = run("exec", write("wide.hlo", wide), "--seed=3", f"--out={tmp / 'wide.npz'}")
    answer = check("bf16", chain.replace("T[", "bf16["), tmp / "wide.npz", tmp / "wide.npz")
    expect("bf16 kept in f32", answer.get("verdict") in ("right", "rounding") and answer["outputs"][0]["different"] > 100, f"{err} {answer}")

    # Two contracts at once: inf * 0 as written, 3.7e-44 where the range is kept, 0 where that is flushed, too.
    both = module("x = f32[2] y = f32[2]", "", "f32[2] multiply(f32[2] exponential(x), f32[2] exponential(y))")
    inputs = write("in.txt", "{100, 1}\n{-200, 1}\n3\n")
    answer = check("both", both, inputs, got("a", module("x = f32[2] y = f32[2]", "", "f32[2] constant({0, 7.389056})"), inputs))
    joint = [c for c in answer["contracts"] if c["together"]]
    expect("range and denormals together", answer["verdict"] == "contract" and any(c["decides"] for c in joint) and
           all(c["kind"] == "range" and c["together"] == ["denormals"] for c in joint), answer)
    code, out, err = run("check", write("both.hlo", both), f"--inputs={inputs}", f"--outputs={tmp / 'a.npz'}")
    expect("together, in words", code == 0 and "together with denormals" in out, out + err)
    answer = check("both", both, inputs, got("a", module("x = f32[2] y = f32[2]", "", "f32[2] constant({5, 7.389056})"), inputs))
    expect("neither explains it", answer["verdict"] == "wrong" and answer["outputs"][0]["wrong"] == 1, answer)

    # Right, and the user sees other bits: what leaves them open is named.
    def bits(name, parameters, values, value, other, kinds, computations=""):
        inputs = write("in.txt", values + "\n3\n")
        answer = check(name, module(parameters, computations, value), inputs, got("other", module(parameters, computations, other), inputs))
        expect(f"{name}: right", answer["verdict"] == "right", answer)
        expect(f"{name}: {kinds}", {b["kind"] for b in answer["other_bits"]} == set(kinds), answer)
        return answer

    bits("the same bits", "x = f32[2]", "{nan, -0}", "f32[2] negate(x)", "f32[2] negate(x)", [])
    made = module("x = f32[3]", "", "f32[3] bitcast-convert(u32[3] constant({2143289345, 1065353216, 2147483648}))")
    written = module("x = f32[3]", "", "f32[3] bitcast-convert(u32[3] constant({2143289344, 1065353216, 0}))")
    inputs = write("in.txt", "{1, 1, 1}\n3\n")
    answer = check("payload", written, inputs, got("other", made, inputs))
    expect("payload and sign", answer["verdict"] == "right" and {b["kind"]: b["elements"] for b in answer["other_bits"]} == {"nan-payload": 1, "signed-zero": 1} and
           "is the number" in answer["why"], answer)
    one_by_one = "f32[1] slice(x), slice={[0:1]}"
    for k in range(1, 64):
        one_by_one = f"f32[1] add({one_by_one}, f32[1] slice(x), slice={{[{k}:{k + 1}]}})"
    answer = bits("order", "x = f32[64]", "{" + ", ".join(str(0.1 * k + 1 / 3) for k in range(64)) + "}",
                  "f32[] reduce(x, f32[] constant(0)), dimensions={0}, to_apply=add", f"f32[] reshape({one_by_one})", ["sum-order"], ADD)
    expect("the instruction is named", answer["other_bits"] and answer["other_bits"][0]["instructions"][0]["instruction"] == "open", answer)

    # What lies in front of the module: a reference that does something else.
    plain = module("x = f32[2]", "", "f32[2] sine(x)")
    inputs = write("in.txt", "{0.5, 1.5}\n3\n")
    right = got("a", plain, inputs)
    answer = check("reference", plain, inputs, right, f"--reference={right}")
    expect("the reference agrees", answer["verdict"] == "right" and answer["reference"]["verdict"] == "right", answer)
    other = got("b", module("x = f32[2]", "", "f32[2] cosine(x)"), inputs)
    code, out, err = run("check", write("plain.hlo", plain), f"--inputs={inputs}", f"--outputs={right}", f"--reference={other}", "--json")
    answer = json.loads(out)
    expect("in front of XLA", code == 1 and answer["verdict"] == "right" and answer["reference"]["verdict"] == "wrong" and "is before XLA" in answer["reference"]["why"], out + err)
    code, out, err = run("check", tmp / "plain.hlo", f"--inputs={inputs}", f"--outputs={right}", f"--reference={other}")
    expect("in front of XLA, in words", code == 1 and "that XLA was given" in out and "reference: " in out, out + err)

    # Cannot be run: unknown. Wrong use: refused.
    odd = module("x = f32[2]", "", 'f32[2] custom-call(x), custom_call_target="nobody"')
    inputs = write("in.txt", "{1, 2}\n3\n")
    answer = check("unknown", odd, inputs, got("a", module("x = f32[2]", "", "f32[2] negate(x)"), inputs))
    expect("unknown", answer["verdict"] == "unknown" and "nobody" in answer["why"], answer)
    for words in ((), ("--inputs=" + str(inputs),), ("--inputs=" + str(inputs), "--outputs=" + str(tmp / "none.npz"))):
        code, out, err = run("check", tmp / "a.hlo", *words)
        expect(f"refused {words}", code == 2 and err.strip(), err)
    code, out, err = run("check", write("c.hlo", sum_), f"--inputs={inputs}", f"--outputs={tmp / 'a.npz'}")
    expect("of another shape", code == 2 and err.strip(), err)

    # A folder whose second stage departs.
    folder = tmp / "dump"
    folder.mkdir()
    good = module("x = f32[2]", "", "f32[2] add(x, x)")
    bad = module("x = f32[2]", "", "f32[2] multiply(x, x)")
    for name, text in (("before_optimizations", good), ("0001.simplification.after_pipeline-start.before_algsimp", good),
                       ("0002.simplification.after_algsimp.before_dce", bad), ("cpu_after_optimizations", bad)):
        (folder / f"module_0001.m.{name}.txt").write_text(text)
    inputs = write("in.txt", "{1, 3}\n3\n")
    answer = check("departs", good, inputs, got("a", bad, inputs), f"--dump={folder}")
    expect("departs", answer["departs"]["pass"] == "algsimp" and not answer["departs"]["below_hlo"], answer)
    got("a", module("x = f32[2]", "", "f32[2] negate(x)"), inputs)
    for stage in folder.iterdir():
        stage.write_text(good)
    answer = check("below", good, inputs, tmp / "a.npz", f"--dump={folder}")
    expect("below HLO", answer["departs"]["below_hlo"] and answer["departs"]["pass"] is None, answer)
    code, out, err = run("check", write("d.hlo", good), f"--inputs={inputs}", f"--outputs={tmp / 'a.npz'}")
    expect("in words", code == 1 and out.startswith("wrong: ") and "compiled -3, as written 6" in out, out + err)

finish("check_test")
