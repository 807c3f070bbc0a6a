#!/usr/bin/env python3
"""Writes small modules that take a pass through what it may meet, to be compiled by the oracle and scored:

  probes.py FAMILY DIR      structure: every two of 28 operations that move data, one behind the other
                            elementwise: two arithmetic operations, of f32, s32 and u32, 640 pairs each
                            dots: products behind and in front of what moves data
                            narrow: messages of elements of less than a byte, on 4 devices
                            collectives, collectives_more, collectives_rest, loops: per-device programs for 4 and 2 devices, as manual regions, which
                            XLA's partitioner takes apart unchanged: what its passes do to collectives is seen so

Then `xla.py compile FILE --backend gpu --dump D --large-constants`, with `--partitions 4`, 2 for loops,
and `agreement.py … D…`. Each file keeps some sixteen expressions apart, so that a difference names one of them."""
import pathlib
import random
import re
import sys

taken = 0


def fresh(prefix="t"):
    global taken
    taken += 1
    return f"{prefix}_{taken}"


def dims(d):
    return ",".join(map(str, d))


def f32(d):
    return f"f32[{dims(d)}]"


def reducer(name, op, element="f32"):
    return f"{name} {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n  ROOT c = {element}[] {op}(a, b)\n}}\n"


def module(folder, name, functions, lines, outputs):
    """outputs: (name, shape text) of each expression."""
    shapes, names = ", ".join(s for _, s in outputs), ", ".join(n for n, _ in outputs)
    text = f"HloModule {name}\n{functions}ENTRY main {{\n{lines}  ROOT r = ({shapes}) tuple({names})\n}}\n"
    (folder / f"{name}.hlo").write_text(text)


# --- what moves data: (operand, its dimensions) → lines, result, its dimensions; None where it does not apply ---


def line(d, text, before=""):
    n = fresh()
    return before + f"  {n} = {f32(d)} {text}\n", n, d


def scalar(value, element="f32"):
    n = fresh("k")
    return f"  {n} = {element}[] constant({value})\n", n


def spread(value, d):
    pre, k = scalar(value)
    b = fresh("b")
    return pre + f"  {b} = {f32(d)} broadcast({k}), dimensions={{}}\n", b


def sliced(x, d, ranges):
    out = [(hi - lo + step - 1) // step for lo, hi, step in ranges]
    return line(out, f"slice({x}), slice={{" + ",".join(f"[{lo}:{hi}:{step}]" for lo, hi, step in ranges) + "}")


def whole(d):
    return [(0, n, 1) for n in d]


def padded(x, d, low, high, interior, value):
    pre, k = scalar(value)
    out = [d[0] + low + high + interior * (d[0] - 1)] + d[1:]
    zero = "".join("x0_0" for _ in d[1:])
    return line(out, f"pad({x}, {k}), padding={low}_{high}_{interior}{zero}", pre)


def dynamic(x, d, size, index):
    pre, zero = scalar(0, "s32")
    rest = "".join(f", {zero}" for _ in d[1:])
    out = [size] + d[1:]
    return line(out, f"dynamic-slice({x}, {index}{rest}), dynamic_slice_sizes={{{dims(out)}}}", pre)


def transposed(x, d, order):
    return line([d[k] for k in order], f"transpose({x}), dimensions={{{dims(order)}}}")


def joined(x, d, along, other, before=""):
    out = list(d)
    out[along] *= 2
    return line(out, f"concatenate({x}, {other}), dimensions={{{along}}}", before)


def reduced(x, d, along, init, function):
    pre, k = scalar(init)
    out = [n for a, n in enumerate(d) if a != along]
    return line(out, f"reduce({x}, {k}), dimensions={{{along}}}, to_apply={function}", pre)


def beside(x, d, op, value):
    pre, b = spread(value, d) if d else scalar(value)
    return line(d, f"{op}({x}, {b})", pre)


def through_bf16(x, d):
    n = fresh()
    return line(d, f"convert({n})", f"  {n} = bf16[{dims(d)}] convert({x})\n")


def own_choice(x, d):
    n = fresh()
    return line(d, f"select({n}, {x}, {x})", f"  {n} = pred[{dims(d)}] broadcast(pr), dimensions={{}}\n")


def with_tangent(x, d):
    n = fresh()
    return joined(x, d, len(d) - 1, n, f"  {n} = {f32(d)} tan({x})\n")


def beside_constant(x, d):
    pre, b = spread(2, d)
    return joined(x, d, 0, b, pre)


MOVES = {
    "add_one": lambda x, d: line(d[:1] + [1] + d[1:], f"reshape({x})"),
    "drop_one": lambda x, d: 1 in d and line(d[: d.index(1)] + d[d.index(1) + 1 :], f"reshape({x})"),
    "flat": lambda x, d: len(d) > 1 and line([d[0] * d[1]] + d[2:], f"reshape({x})"),
    "split": lambda x, d: d and d[-1] > 3 and d[-1] % 2 == 0 and line(d[:-1] + [2, d[-1] // 2], f"reshape({x})"),
    "turn": lambda x, d: len(d) > 1 and transposed(x, d, list(range(len(d)))[::-1]),
    "swap": lambda x, d: len(d) > 2 and transposed(x, d, [1, 0] + list(range(2, len(d)))),
    "rows": lambda x, d: line([3] + d, f"broadcast({x}), dimensions={{{dims(range(1, len(d) + 1))}}}"),
    "between": lambda x, d: d
    and line([d[0], 5] + d[1:], f"broadcast({x}), dimensions={{{dims([0] + list(range(2, len(d) + 1)))}}}"),
    "reverse": lambda x, d: d and line(d, f"reverse({x}), dimensions={{{len(d) - 1}}}"),
    "but_first": lambda x, d: d and d[0] > 1 and sliced(x, d, [(1, d[0], 1)] + whole(d[1:])),
    "first": lambda x, d: d and d[0] > 1 and sliced(x, d, [(0, 1, 1)] + whole(d[1:])),
    "stride": lambda x, d: d and d[-1] > 2 and sliced(x, d, whole(d[:-1]) + [(0, d[-1], 2)]),
    "pad": lambda x, d: d and padded(x, d, 1, 2, 0, 0),
    "pad_negative": lambda x, d: d and d[0] > 2 and padded(x, d, 1, -2, 0, 0),
    "pad_interior": lambda x, d: d and d[0] > 1 and padded(x, d, 0, 0, 1, 1),
    "twice": lambda x, d: d and joined(x, d, 0, x),
    "beside_constant": lambda x, d: d and beside_constant(x, d),
    "beside_other": lambda x, d: d and with_tangent(x, d),
    "dynamic_slice": lambda x, d: d and d[0] > 1 and dynamic(x, d, d[0] - 1, "one"),
    "dynamic_row": lambda x, d: d and d[0] > 1 and dynamic(x, d, 1, "idx"),
    "sum": lambda x, d: d and reduced(x, d, len(d) - 1, 0, "add"),
    "max": lambda x, d: d and reduced(x, d, 0, "-inf", "max"),
    "window_of_one": lambda x, d: d
    and (lambda pre, k: line(d, f"reduce-window({x}, {k}), window={{size={'x'.join('1' for _ in d)}}}, to_apply=add", pre))(*scalar(0)),
    "negate": lambda x, d: line(d, f"negate({x})"),
    "bf16": through_bf16,
    "times": lambda x, d: beside(x, d, "multiply", 3),
    "select": own_choice,
    "clamp": lambda x, d: (lambda a, b: line(d, f"clamp({a[1]}, {x}, {b[1]})", a[0] + b[0]))(scalar(-1), scalar(1)),
}
PARAMETERS = "  idx = s32[] parameter(0)\n  pr = pred[] parameter(1)\n  one = s32[] constant(1)\n"
REDUCERS = reducer("add", "add") + reducer("max", "maximum")


def structure(folder):
    for base in ([2, 4, 3], [1, 6, 4]):
        for first, inner in MOVES.items():
            text, outputs = PARAMETERS + f"  x = {f32(base)} parameter(2)\n", []
            for outer in MOVES.values():
                s = fresh("s")
                a = inner(s, base)
                b = a and outer(a[1], a[2])
                if not b:
                    continue
                e = fresh("e")
                source = "sine" if len(outputs) % 2 else "logistic"
                text += f"  {s} = {f32(base)} {source}(x)\n" + a[0] + b[0] + f"  {e} = {f32(b[2])} cosine({b[1]})\n"
                outputs.append((e, f32(b[2])))
            if outputs:
                module(folder, f"structure_{first}_{base[0]}", REDUCERS, text, outputs)


# --- products ---


def dot(a, da, b, db, left, right, batch=()):
    out = [da[k] for k in batch] + [n for k, n in enumerate(da) if k != left and k not in batch]
    out += [n for k, n in enumerate(db) if k != right and k not in batch]
    both = f"lhs_batch_dims={{{dims(batch)}}}, rhs_batch_dims={{{dims(batch)}}}, " if batch else ""
    return line(out, f"dot({a}, {b}), {both}lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}")


def dots(folder):
    names, count, choose = list(MOVES), 0, random.Random(3)
    chunks = [names[k : k + 4] for k in range(0, len(names), 4)]

    def write(parameters, text, outputs):
        nonlocal count
        if not outputs:
            return
        head = PARAMETERS + "".join(f"  {n} = {f32(d)} parameter({k + 2})\n" for k, (n, d) in enumerate(parameters))
        module(folder, f"dots_{count}", REDUCERS, head + text, outputs)
        count += 1

    def closed(piece, outputs):
        e = fresh("e")
        outputs.append((e, f32(piece[2])))
        return f"  {e} = {f32(piece[2])} cosine({piece[1]})\n"

    for side in (0, 1):  # what moves data on one side
        for chunk in chunks:
            parameters, text, outputs = [("x", [4, 6])], "", []
            for name in chunk:
                s = fresh("s")
                moved = MOVES[name](s, [4, 6])
                if not moved:
                    continue
                text += f"  {s} = f32[4,6] sine(x)\n" + moved[0]
                for along, n in enumerate(moved[2]):
                    q = fresh("q")
                    parameters.append((q, [5, n]))
                    mine, other = (moved[1], moved[2], along), (q, [5, n], 1)
                    (a, da, left), (b, db, right) = (mine, other) if side == 0 else (other, mine)
                    piece = dot(a, da, b, db, left, right)
                    text += piece[0] + closed(piece, outputs)
            write(parameters, text, outputs)
    shapes = {"x": [4, 6], "y": [6, 5], "bx": [2, 4, 6], "by": [2, 6, 5], "v": [6], "o1": [1, 6], "o2": [6, 1], "c1": [4, 1], "c2": [1, 5]}
    products = [("x", "y", 1, 0), ("x", "v", 1, 0), ("v", "v", 0, 0), ("o1", "y", 1, 0), ("c1", "c2", 1, 0), ("x", "o2", 1, 0)]
    for chunk in chunks:  # behind a product
        text, outputs = "", []
        for name in chunk:
            for a, b, left, right, batch in [p + ((),) for p in products] + [("bx", "by", 2, 1, (0,))]:
                piece = dot(a, shapes[a], b, shapes[b], left, right, batch)
                moved = MOVES[name](piece[1], piece[2])
                if moved:
                    text += piece[0] + moved[0] + closed(moved, outputs)
        write(list(shapes.items()), text, outputs)
    pairs = [(a, b) for a in names for b in names]  # on both
    choose.shuffle(pairs)
    for k in range(0, 240, 6):
        text, outputs = "", []
        for first, second in pairs[k : k + 6]:
            s, t = fresh("s"), fresh("s")
            a, b = MOVES[first](s, [4, 6]), MOVES[second](t, [4, 6])
            fits = a and b and [(p, q) for p, n in enumerate(a[2]) for q, m in enumerate(b[2]) if n == m]
            if not fits:
                continue
            left, right = choose.choice(fits)
            piece = dot(a[1], a[2], b[1], b[2], left, right)
            text += f"  {s} = f32[4,6] sine(x)\n  {t} = f32[4,6] tan(y)\n" + a[0] + b[0] + piece[0] + closed(piece, outputs)
        write([("x", [4, 6]), ("y", [4, 6])], text, outputs)


# --- arithmetic ---


def arithmetic(element, d="4,3"):
    """Name → function of an operand's name that gives lines and a result."""
    made = {}
    floating, signed = element == "f32", element != "u32"

    def constant(value):
        k, b = fresh("k"), fresh("b")
        return f"  {k} = {element}[] constant({value})\n  {b} = {element}[{d}] broadcast({k}), dimensions={{}}\n", b

    def put(name, text, before=lambda x: ("", {})):
        def make(x):
            pre, names = before(x)
            n = fresh()
            return pre + f"  {n} = {element}[{d}] " + text.format(x=x, **names) + "\n", n

        made[name] = make

    def beside_value(op, value, left=False):
        def before(x):
            pre, b = constant(value)
            return pre, {"b": b}

        put(f"{op} {value} {left}", f"{op}({{b}}, {{x}})" if left else f"{op}({{x}}, {{b}})", before)

    def beside_own(op, other):
        def before(x):
            n = fresh()
            return f"  {n} = {element}[{d}] {other}({x})\n", {"o": n}

        put(f"{op} {other}", f"{op}({{x}}, {{o}})", before)

    def converted(via):
        def before(x):
            n = fresh()
            return f"  {n} = {via}[{d}] convert({x})\n", {"o": n}

        put(f"via {via}", "convert({o})", before)

    def clamped(low, high):
        def before(x):
            (p, a), (q, b) = constant(low), constant(high)
            return p + q, {"a": a, "b": b}

        put(f"clamp {low} {high}", "clamp({a}, {x}, {b})", before)

    def chosen(direction, value):
        def before(x):
            pre, b = constant(value)
            c = fresh()
            return pre + f"  {c} = pred[{d}] compare({x}, {b}), direction={direction}\n", {"c": c, "b": b}

        put(f"select {direction} {value}", "select({c}, {x}, {b})", before)

    for value in ["0", "1", "2", "4", "3"] + (["-1"] if signed else []) + (["0.5"] if floating else []):
        for op in ["add", "subtract", "multiply", "divide", "maximum", "minimum"]:
            beside_value(op, value)
        beside_value("subtract", value, True), beside_value("divide", value, True)
    for op in ["negate"] + (["abs"] if signed else []):
        put(op, f"{op}({{x}})")
    for op in ["add", "subtract", "multiply", "divide", "maximum"]:
        put(f"{op} self", f"{op}({{x}}, {{x}})"), put(f"{op} y", f"{op}({{x}}, y)"), put(f"y {op}", f"{op}(y, {{x}})")
    for op in ["add", "subtract", "multiply"]:
        beside_own(op, "negate")
    clamped(0, 1), clamped(1, 3), chosen("GT", 0), chosen("GE", 1)
    if floating:
        for op in ["exponential", "log", "sqrt", "rsqrt", "cbrt", "tanh", "sine", "floor", "ceil", "sign", "logistic"]:
            put(op, f"{op}({{x}})")
        for op in ["exponential-minus-one", "log-plus-one", "round-nearest-even"]:
            put(op, f"{op}({{x}})")
        for value in ["0", "1", "2", "3", "-1", "0.5", "-0.5", "-2"]:
            beside_value("power", value)
        beside_value("power", "2", True)
        for op, other in [("multiply", "exponential"), ("multiply", "sqrt"), ("multiply", "rsqrt"), ("divide", "sqrt"), ("divide", "exponential")]:
            beside_own(op, other)
        for via in ["f64", "bf16", "s32"]:
            converted(via)
        put("reduce-precision", "reduce-precision({x}), exponent_bits=8, mantissa_bits=7")
        return made
    for value in ["0", "1", "2", "7", "8", "-1" if signed else "4294967295"]:
        for op in ["and", "or", "xor"]:
            beside_value(op, value)
    for value in ["0", "1", "4", "31", "32"]:
        for op in ["shift-left", "shift-right-logical"] + (["shift-right-arithmetic"] if signed else []):
            beside_value(op, value)
    for value in ["1", "2", "8", "3"]:
        beside_value("remainder", value)
    for op in ["not", "popcnt", "count-leading-zeros"]:
        put(op, f"{op}({{x}})")
    for op in ["and", "or", "xor", "remainder"]:
        put(f"{op} self", f"{op}({{x}}, {{x}})"), put(f"{op} y", f"{op}({{x}}, y)")
    beside_own("and", "not"), beside_own("or", "not")
    for via in ["s64", "s8", "f32", "pred"]:
        converted(via)
    return made


def elementwise(folder):
    for element in ["f32", "s32", "u32"]:
        made, choose = arithmetic(element), random.Random(7)
        pairs = [(a, b) for a in made for b in made]
        choose.shuffle(pairs)
        alone = [(a, None) for a in made]
        shape = f"{element}[4,3]"
        for k in range(0, 640, 16):
            text, outputs = "".join(f"  {n} = {shape} parameter({p})\n" for p, n in enumerate("xyw")), []
            for first, second in pairs[k : k + 16] + alone[k : k + 16]:
                s = fresh("s")
                text += f"  {s} = {shape} " + ("sine(x)" if element == "f32" and choose.random() < 0.5 else "add(x, w)") + "\n"
                lines, n = made[first](s)
                text += lines
                if second:
                    lines, n = made[second](n)
                    text += lines
                outputs.append((n, shape))
            module(folder, f"elementwise_{element}_{k // 16}", "", text, outputs)


# --- several devices ---


def manual(name, text, devices):
    """A program of one device as a module whose manual region it is: parameters and results are parts of larger arrays."""
    out, entry, body = [], False, False

    def full(shape):
        element, d = re.match(r"(\w+)\[([\d,]*)\]", shape).groups()
        d = d.split(",") if d else []
        if not d:
            return shape, "replicated"
        tiles = dims([devices] + [1] * (len(d) - 1))
        return f"{element}[{dims([int(d[0]) * devices] + d[1:])}]", f"devices=[{tiles}]{dims(range(devices))}"

    def given_back(x, shape, tag):
        whole_shape, sharding = full(shape)
        out.append(f'  {x}.{tag} = {shape} custom-call({x}), custom_call_target="Sharding", sharding={{manual}}')
        return whole_shape, f'{whole_shape} custom-call({x}.{tag}), custom_call_target="SPMDShardToFullShape", sharding={{{sharding}}}'

    for row in text.strip().split("\n"):
        row = row.strip()
        head = re.match(r"(ENTRY )?([\w.-]+) \{$", row)
        if head:
            entry, body = bool(head[1]), head[2].startswith("body")
            out.append(row)
            continue
        if not row or row == "}" or not (entry or body):
            out.append(row)
            continue
        root, n, shape, op, rest = re.match(r"(ROOT )?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$", row).groups()
        parts = re.findall(r"\w+\[[\d,]*\]", shape)
        tuple_shape = shape.startswith("(")
        manual_sharding = "sharding={" + ",".join(["{manual}"] * len(parts)) + "}" if tuple_shape else "sharding={manual}"
        if op == "parameter" and entry:
            whole_shape, sharding = full(shape)
            out.append(f"  {n}.f = {whole_shape} parameter({rest.split(')')[0]}), sharding={{{sharding}}}")
            out.append(f'  {n}.s = {whole_shape} custom-call({n}.f), custom_call_target="Sharding", sharding={{{sharding}}}')
            out.append(f'  {n} = {shape} custom-call({n}.s), custom_call_target="SPMDFullToShardShape", sharding={{manual}}')
        elif op == "parameter":
            out.append("  " + row)
        elif root and entry and tuple_shape:
            wholes = []
            for k, (x, part) in enumerate(zip((a.strip() for a in rest.rsplit(")", 1)[0].split(",")), parts)):
                whole_shape, call = given_back(x, part, f"o{k}")
                out.append(f"  out.{k} = {call}")
                wholes.append(whole_shape)
            out.append(f"  ROOT all = ({', '.join(wholes)}) tuple({', '.join(f'out.{k}' for k in range(len(parts)))})")
        elif root and entry:
            out.append(f"  {n} = {shape} {op}({rest}, {manual_sharding}")
            out.append(f"  ROOT all = {given_back(n, shape, 'o')[1]}")
        else:
            out.append(f"  {root or ''}{n} = {shape} {op}({rest}, {manual_sharding}")
    return f"HloModule {name}\n" + "\n".join(out) + "\n"


ALL = "{{0,1,2,3}}"
GLOBAL = "use_global_device_ids=true"


def collective(n, op, x, channel, groups=ALL, to_apply=None, shape="f32[8]", along=None):
    extra = f", dimensions={{{along}}}" if along is not None else ""
    extra += f", to_apply={to_apply}" if to_apply else ""
    return f"{n} = {shape} {op}({x}), channel_id={channel}, replica_groups={groups}, {GLOBAL}{extra}"


def own_part(x, table, size, shape="f32[8]", result="d"):
    rest = "".join(", zz" for _ in shape[4:-1].split(",")[1:])
    sizes = [size] + [int(n) for n in shape[4:-1].split(",")[1:]]
    return ["pid = u32[] partition-id()", f"tb = s32[4] constant({{{dims(table)}}})", "zz = s32[] constant(0)",
            "ds = s32[1] dynamic-slice(tb, pid), dynamic_slice_sizes={1}", "of = s32[] reshape(ds)",
            f"{result} = f32[{dims(sizes)}] dynamic-slice({x}, of{rest}), dynamic_slice_sizes={{{dims(sizes)}}}"]  # fmt: skip


def program(parameters, lines, root, functions):
    text = functions + "ENTRY main {\n" + "".join(f"  p{k} = {t} parameter({k})\n" for k, t in enumerate(parameters))
    return text + "".join(f"  {row}\n" for row in lines) + f"  ROOT {root}\n}}\n"


def collectives(folder):
    kinds = {"add": reducer("add", "add"), "max": reducer("max", "maximum"), "min": reducer("min", "minimum"), "mul": reducer("mul", "multiply")}
    cases, f = {}, "f32[8]"
    pairs = [("{{0,1},{2,3}}", "{{0,2},{1,3}}"), ("{{0,2},{1,3}}", "{{0,1},{2,3}}"), ("{{0,1},{2,3}}", "{{0,1},{2,3}}"), ("{{0,3},{1,2}}", "{{0,1},{2,3}}")]
    for kind, function in kinds.items():
        op = {"add": "add", "max": "maximum", "min": "minimum", "mul": "multiply"}[kind]
        alone = collective("r", "all-reduce", "p0", 1, "{{0},{1},{2},{3}}", kind)
        cases[f"alone_{kind}"] = program([f], [alone], "o = f32[8] negate(r)", function)
        for k, (first, second) in enumerate(pairs):
            rows = [collective("r", "all-reduce", "p0", 1, first, kind), collective("q", "all-reduce", "r", 2, second, kind)]
            cases[f"twice_{kind}_{k}"] = program([f], rows, "o = f32[8] negate(q)", function)
        for name, t, along in [("all-reduce", f, None), ("reduce-scatter", "f32[2]", 0)]:
            rows = [collective(n, name, p, c, ALL, kind, t, along) for n, p, c in [("r", "p0", 1), ("q", "p1", 2)]]
            cases[f"joined_{name}_{kind}"] = program([f, f], rows + [f"s = {t} {op}(r, q)"], f"o = {t} negate(s)", function)
        for groups, table, size in [(ALL, [0, 2, 4, 6], 2), ("{{0,1},{2,3}}", [0, 4, 0, 4], 4), ("{{0,2},{1,3}}", [0, 0, 4, 4], 4), (ALL, [2, 0, 4, 6], 2)]:
            rows = [collective("r", "all-reduce", "p0", 1, groups, kind)] + own_part("r", table, size)
            cases[f"part_{kind}_{table[1]}{table[2]}{size}"] = program([f], rows, f"o = f32[{size}] negate(d)", function)
            rows.insert(1, collective("w", "all-reduce", "p1", 2, "{{0,1},{2,3}}", kind))
            rows[0] = collective("r", "all-reduce", "p0", 1, ALL, kind)
            cases[f"split_{kind}_{table[1]}{table[2]}{size}"] = program([f, f], rows, f"o = (f32[{size}], f32[8]) tuple(d, w)", function)
    for op in ["add", "multiply", "maximum", "subtract"]:
        rows = [collective(n, "all-gather", p, c, ALL, None, "f32[32]", 0) for n, p, c in [("r", "p0", 1), ("q", "p1", 2)]]
        cases[f"gathered_{op}"] = program([f, f], rows + [f"s = f32[32] {op}(r, q)"], "o = f32[32] negate(s)", "")
    for table in ([0, 8, 16, 24], [8, 0, 16, 24]):
        rows = [collective("r", "all-gather", "p0", 1, ALL, None, "f32[32]", 0)] + own_part("r", table, 8, "f32[32]")
        cases[f"own_{table[0]}"] = program([f], rows, "o = f32[8] negate(d)", "")
    for narrow in ["bf16", "f8e4m3fn", "s8"]:
        rows = [collective("r", "all-gather", "p0", 1, ALL, None, "f32[32]", 0), f"c = {narrow}[32] convert(r)", "w = f32[32] convert(c)"]
        cases[f"narrowed_{narrow}"] = program([f], rows, "o = f32[32] negate(w)", "")
        rows = ["c = f32[8] convert(p0)", collective("r", "all-gather", "c", 1, ALL, None, "f32[32]", 0)]
        cases[f"widened_{narrow}"] = program([f"{narrow}[8]"], rows, "o = f32[32] negate(r)", "")
    for k, (shape, gathered, along) in enumerate([("f32[1,8]", "f32[1,32]", 1), ("f32[8,1,3]", "f32[32,1,3]", 0), ("f32[1,8]", "f32[4,8]", 0)]):
        rows = [collective("r", "all-gather", "p0", 1, ALL, None, gathered, along)]
        cases[f"ones_{k}"] = program([shape], rows, f"o = {gathered} negate(r)", "")
    for k, (shape, gathered, along) in enumerate([("f32[3,8]", "f32[3,32]", 1), ("f32[3,8]", "f32[12,8]", 0)]):
        rows = [f"b = {shape} broadcast(p0), dimensions={{1}}", collective("r", "all-gather", "b", 1, ALL, None, gathered, along)]
        cases[f"spread_{k}"] = program([f], rows, f"o = {gathered} negate(r)", "")
    for element in ["u16", "s16"]:
        for op in ["add", "multiply", "maximum", "minimum"]:
            rows = [collective("r", "all-reduce", "p0", 1, ALL, "f", f"{element}[8]")]
            cases[f"promoted_{element}_{op}"] = program([f"{element}[8]"], rows, f"o = {element}[8] not(r)", reducer("f", op, element))
    for name, text in cases.items():
        name = "collectives_" + name.replace("-", "_")
        (folder / f"{name}.hlo").write_text(manual(name, text, 4))


def collectives_more(folder):
    """Five passes that `collectives` reaches a few times only."""
    add, cases, f = reducer("add", "add"), {}, "f32[8]"
    # all-gather-bcast-reorder: what was broadcast in front of the gathered dimension, behind it, of several dimensions
    spreads = [("f32[8]", "f32[3,8]", "1", "f32[3,32]", 1), ("f32[8]", "f32[3,8]", "1", "f32[12,8]", 0), ("f32[8]", "f32[8,3]", "0", "f32[32,3]", 0),
               ("f32[4,8]", "f32[4,5,8]", "0,2", "f32[4,5,32]", 2), ("f32[4,8]", "f32[4,5,8]", "0,2", "f32[16,5,8]", 0), ("f32[4,8]", "f32[4,5,8]", "0,2", "f32[4,20,8]", 1),
               ("f32[4,8]", "f32[2,4,8]", "1,2", "f32[2,4,32]", 2), ("f32[4,8]", "f32[2,4,8]", "1,2", "f32[2,16,8]", 1), ("f32[6]", "f32[2,3,6]", "2", "f32[2,3,24]", 2),
               ("f32[6]", "f32[6,3,2]", "0", "f32[24,3,2]", 0), ("f32[]", "f32[4,4]", "", "f32[16,4]", 0), ("f32[6]", "f32[1,6]", "1", "f32[1,24]", 1)]  # fmt: skip
    for k, (shape, wide, map_, gathered, along) in enumerate(spreads):
        rows = [f"b = {wide} broadcast(p0), dimensions={{{map_}}}", collective("r", "all-gather", "b", 1, ALL, None, gathered, along)]
        if shape == "f32[]":
            rows = ["one = f32[1] slice(p0), slice={[0:1]}", "sc = f32[] reshape(one)"] + [r.replace("broadcast(p0)", "broadcast(sc)") for r in rows]
        cases[f"spread_{k}"] = program([f if shape == "f32[]" else shape], rows, f"o = {gathered} negate(r)", "")
    # all-gather-dynamic-slice-simplifier: of rows, of columns, of three dimensions, cut more than once
    owns = [("f32[8]", "f32[32]", 0, 8), ("f32[8,3]", "f32[32,3]", 0, 8), ("f32[2,5]", "f32[8,5]", 0, 2), ("f32[1,5]", "f32[4,5]", 0, 1), ("f32[4,2,3]", "f32[16,2,3]", 0, 4),
            ("f32[6]", "f32[24]", 0, 6), ("f32[16]", "f32[64]", 0, 16), ("f32[3,7]", "f32[12,7]", 0, 3)]  # fmt: skip
    for k, (shape, gathered, along, size) in enumerate(owns):
        for name, table in [("own", [0, size, 2 * size, 3 * size]), ("other", [size, 0, 2 * size, 3 * size])]:
            rows = [collective("r", "all-gather", "p0", 1, ALL, None, gathered, along)] + own_part("r", table, size, gathered)
            cases[f"{name}_{k}"] = program([shape], rows, f"o = {shape} negate(d)", "")
    # all-gather-remove-degenerate-dims
    ones = [("f32[1,8]", "f32[1,32]", 1), ("f32[8,1,3]", "f32[32,1,3]", 0), ("f32[1,1,8]", "f32[1,1,32]", 2), ("f32[8,1]", "f32[32,1]", 0), ("f32[1,6,1,2]", "f32[1,24,1,2]", 1),
            ("bf16[1,8]", "bf16[1,32]", 1), ("f32[1,8]", "f32[4,8]", 0), ("f32[3,1,4]", "f32[3,1,16]", 2), ("f32[1,4,4]", "f32[1,4,16]", 2), ("f32[2,1,1]", "f32[8,1,1]", 0), ("s8[1,5]", "s8[1,20]", 1)]  # fmt: skip
    for k, (shape, gathered, along) in enumerate(ones):
        rows = [collective("r", "all-gather", "p0", 1, ALL, None, gathered, along)]
        cases[f"ones_{k}"] = program([shape], rows, f"o = {gathered} negate(r)", "")
    # all-reduce-splitter: a slice of all's sum that is a part of a smaller group's, which another sum has
    for k, (groups, table, size) in enumerate([("{{0,1},{2,3}}", [0, 4, 0, 4], 4), ("{{0,2},{1,3}}", [0, 0, 4, 4], 4), ("{{0,1},{2,3}}", [0, 8, 0, 8], 8), ("{{0,2},{1,3}}", [0, 0, 8, 8], 8)]):
        for kind in ("add", "max", "mul"):
            function = reducer(kind, {"add": "add", "max": "maximum", "mul": "multiply"}[kind])
            shape = f"f32[{2 * size}]"
            rows = [collective("r", "all-reduce", "p0", 1, ALL, kind, shape), collective("w", "all-reduce", "p1", 2, groups, kind, shape)] + own_part("r", table, size, shape)
            cases[f"split_{kind}_{k}"] = program([shape, shape], rows, f"o = (f32[{size}], {shape}) tuple(d, w)", function)
    # reduce-scatter-reassociate
    for kind, op in [("add", "add"), ("max", "maximum"), ("min", "minimum"), ("mul", "multiply")]:
        function = reducer(kind, op)
        for k, (shape, part, along) in enumerate([("f32[8]", "f32[2]", 0), ("f32[8,3]", "f32[2,3]", 0), ("f32[3,8]", "f32[3,2]", 1), ("f32[4,4]", "f32[1,4]", 0)]):
            rows = [collective(n, "reduce-scatter", p, c, ALL, kind, part, along) for n, p, c in [("r", "p0", 1), ("q", "p1", 2)]]
            cases[f"joined_{kind}_{k}"] = program([shape, shape], rows + [f"s = {part} {op}(r, q)"], f"o = {part} negate(s)", function)
        rows = [collective(n, "reduce-scatter", p, c, ALL, kind, "f32[2]", 0) for n, p, c in [("r", "p0", 1), ("q", "p1", 2), ("v", "p2", 3)]]
        cases[f"joined_three_{kind}"] = program([f] * 3, rows + [f"s = f32[2] {op}(r, q)", f"sv = f32[2] {op}(s, v)"], "o = f32[2] negate(sv)", function)
    for name, text in cases.items():
        (folder / f"collectives_more_{name}.hlo").write_text(manual(f"more_{name}", text, 4))


def collectives_rest(folder):
    """Six passes that both reach a few times only, with other types and shapes, and near misses."""
    names = {"add": "add", "max": "maximum", "min": "minimum", "mul": "multiply"}
    cases = {}
    # all-reduce-simplifier: of one device each, and of what all devices have
    for t in ("f32[4,3]", "s32[8]", "bf16[6]", "f64[2,2,2]"):
        for kind in ("add", "max"):
            function = reducer(kind, names[kind], t.split("[")[0])
            cases[f"alone_{t}_{kind}"] = program([t], [collective("r", "all-reduce", "p0", 1, "{{0},{1},{2},{3}}", kind, t)], f"o = {t} negate(r)", function)
            rows = [f"q = {t} negate(p0)", collective("r", "all-reduce", "q", 1, ALL, kind, t), collective("w", "all-reduce", "r", 2, ALL, kind, t)]
            cases[f"again_{t}_{kind}"] = program([t], rows, f"o = {t} negate(w)", function)
    # all-gather-optimizer, and where the gathers differ
    for t, whole, along in [("f32[8,3]", "f32[32,3]", 0), ("f32[3,8]", "f32[3,32]", 1), ("s32[8]", "s32[32]", 0), ("bf16[2,4]", "bf16[8,4]", 0)]:
        for op in ("add", "multiply", "maximum", "divide"):
            rows = [collective(n, "all-gather", p, c, ALL, None, whole, along) for n, p, c in [("r", "p0", 1), ("q", "p1", 2)]]
            cases[f"gathered_{t}_{op}"] = program([t, t], rows + [f"s = {whole} {op}(r, q)"], f"o = {whole} negate(s)", "")
    # all-reduce-reassociate: three sums, other types, one of them used twice
    for t in ("f32[4,3]", "s32[8]", "f64[2,2,2]"):
        for kind, op in names.items():
            function = reducer(kind, op, t.split("[")[0])
            rows = [collective(n, "all-reduce", p, c, ALL, kind, t) for n, p, c in [("r", "p0", 1), ("q", "p1", 2), ("v", "p2", 3)]]
            cases[f"joined_{t}_{kind}"] = program([t, t], rows[:2] + [f"s = {t} {op}(r, q)"], f"o = {t} negate(s)", function)
            cases[f"joined_three_{t}_{kind}"] = program([t] * 3, rows + [f"s = {t} {op}(r, q)", f"sv = {t} {op}(s, v)"], f"o = {t} negate(sv)", function)
            cases[f"joined_used_{t}_{kind}"] = program([t, t], rows[:2] + [f"s = {t} {op}(r, q)"], f"o = ({t}, {t}) tuple(s, r)", function)
    # collective-quantizer: gathers, exchanges of other shapes
    for narrow in ("bf16", "f8e5m2", "s8", "f16"):
        for t, whole, along in [("[8,3]", "[32,3]", 0), ("[3,8]", "[3,32]", 1)]:
            rows = [collective("r", "all-gather", "p0", 1, ALL, None, f"f32{whole}", along), f"c = {narrow}{whole} convert(r)", f"w = f32{whole} convert(c)"]
            cases[f"narrowed_{narrow}_{along}"] = program([f"f32{t}"], rows, f"o = f32{whole} negate(w)", "")
            rows = [f"c = f32{t} convert(p0)", collective("r", "all-gather", "c", 1, ALL, None, f"f32{whole}", along)]
            cases[f"widened_{narrow}_{along}"] = program([f"{narrow}{t}"], rows, f"o = f32{whole} negate(r)", "")
    # all-reduce-promotion: in other shapes, and what is scattered
    for element in ("u16", "s16"):
        for shape, part, along in [("[4,3]", "[1,3]", 0), ("[2,8]", "[2,2]", 1)]:
            function = reducer("f", "add", element)
            rows = [collective("r", "all-reduce", "p0", 1, ALL, "f", f"{element}{shape}")]
            cases[f"promoted_{element}_{along}"] = program([f"{element}{shape}"], rows, f"o = {element}{shape} not(r)", function)
            rows = [collective("r", "reduce-scatter", "p0", 1, ALL, "f", f"{element}{part}", along)]
            cases[f"promoted_part_{element}_{along}"] = program([f"{element}{shape}"], rows, f"o = {element}{part} not(r)", function)
    # all-gather-dynamic-slice-simplifier
    for k, (shape, gathered, size) in enumerate([("f32[5,2]", "f32[20,2]", 5), ("f32[2,2,2,2]", "f32[8,2,2,2]", 2), ("f32[10]", "f32[40]", 10), ("f32[7,1]", "f32[28,1]", 7)]):
        rows = [collective("r", "all-gather", "p0", 1, ALL, None, gathered, 0)] + own_part("r", [0, size, 2 * size, 3 * size], size, gathered)
        cases[f"own_{k}"] = program([shape], rows, f"o = {shape} negate(d)", "")
    for name, text in cases.items():
        name = "rest_" + re.sub(r"\W+", "_", name)
        (folder / f"collectives_{name}.hlo").write_text(manual(name, text, 4))


def loops(folder):
    for f in ("f32[8]", "f64[8]", "f32[4,2]"):
        loops_of(folder, f)


def loops_of(folder, f):
    """Sums over devices that a loop adds up."""
    element, of_two = f.split("[")[0], f.split("[")[0] + "[2,4]"
    reduced = collective("r", "all-reduce", "y", 1, "{{0,1}}", "add", f)
    bodies = {
        "added": [f"y = {f} sine(v2)", reduced, f"a = {f} add(v1, r)"],
        "added_left": [f"y = {f} sine(v2)", reduced, f"a = {f} add(r, v1)"],
        "scaled": [f"y = {f} sine(v2)", reduced, f"m = {f} multiply(r, r)", f"a = {f} add(v1, m)"],
        "read": [f"y = {f} multiply(v1, v2)", reduced, f"a = {f} add(v1, r)"],
        "some": [f"y = {f} sine(v2)", reduced, "k = s32[] constant(3)", "c = pred[] compare(i, k), direction=LT", f"cb = {f.replace(element, 'pred')} broadcast(c), dimensions={{}}",
                 f"z = {element}[] constant(0)", f"zb = {f} broadcast(z), dimensions={{}}", f"few = {f} select(cb, r, zb)", f"a = {f} add(v1, few)"],
        "reshaped": [f"y = {of_two} reshape(v2)", collective("r", "all-reduce", "y", 1, "{{0,1}}", "add", of_two), f"q = {f} reshape(r)", f"a = {f} add(v1, q)"],
    }  # fmt: skip
    state = f"(s32[], {f}, {f})"
    for name, body in bodies.items():
        elements = f"  i = s32[] get-tuple-element(s), index=0\n  v1 = {f} get-tuple-element(s), index=1\n  v2 = {f} get-tuple-element(s), index=2\n"
        text = reducer("add", "add", element)
        text += f"cond {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(5)\n  ROOT l = pred[] compare(i, n), direction=LT\n}}\n"
        text += f"body {{\n  s = {state} parameter(0)\n{elements}  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
        text += "".join(f"  {row}\n" for row in body) + f"  w = {f} cosine(v2)\n  ROOT t = {state} tuple(j, a, w)\n}}\n"
        text += f"ENTRY main {{\n  p0 = {f} parameter(0)\n  p1 = {f} parameter(1)\n  z = s32[] constant(0)\n  t = {state} tuple(z, p0, p1)\n"
        text += f"  w = {state} while(t), condition=cond, body=body\n  g = {f} get-tuple-element(w), index=1\n  h = {f} get-tuple-element(w), index=2\n"
        text += f"  ROOT r = ({f}, {f}) tuple(g, h)\n}}\n"
        name = "loops_" + name + "_" + re.sub(r"\W+", "_", f)
        (folder / f"{name}.hlo").write_text(manual(name, text, 2))


def narrow(folder):
    """Messages of less than a byte an element (sub-byte-collective-normalization)."""
    cases = {}
    shapes = ["[8]", "[7]", "[3,8]", "[3,5]", "[4,7]", "[6,4]", "[8,1]", "[1,8]", "[4,3,2]", "[4,8,16]", "[2,2,2,4]", "[8,5]", "[2,5]", "[16,6]"]
    for element in ("s4", "u4", "s2", "u2", "f4e2m1fn", "pred", "s8"):
        for shape in shapes if element in ("s4", "u2") else shapes[:6]:
            t, sizes = element + shape, [int(n) for n in shape[1:-1].split(",")]

            def with_size(d, size):
                return f"{element}[{dims(sizes[:d] + [size] + sizes[d + 1 :])}]"

            gathers = [(f"gather{d}", [collective("r", "all-gather", "p0", 1, ALL, None, with_size(d, sizes[d] * 4), d)], with_size(d, sizes[d] * 4)) for d in range(len(sizes))]
            pairs = "channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"
            rest = [("permute", [f"r = {t} collective-permute(p0), {pairs}"], t), ("broadcast", [f"r = {t} collective-broadcast(p0), channel_id=1, replica_groups={{{{0,1,2,3}}}}"], t),
                    ("reduce", [collective("r", "all-reduce", "p0", 1, ALL, "f", t)], t)]  # fmt: skip
            for groups, size in ((ALL, 4), ("{{0,1},{2,3}}", 2)):
                rest += [(f"exchange{d}_{size}", [f"r = {t} all-to-all(p0), channel_id=1, replica_groups={groups}, dimensions={{{d}}}"], t) for d in range(len(sizes)) if sizes[d] % size == 0]
            for name, rows, out in gathers + rest:
                function = reducer("f", "and" if element == "pred" else "add", element) if name == "reduce" else ""
                cases[f"{name}_{t}"] = program([t], rows, f"o = {out} reverse(r), dimensions={{0}}", function)
            # Between transposes, so that the minor dimension is another one.
            if len(sizes) == 2:
                turned = f"{element}[{sizes[1]},{sizes[0]}]"
                rows = [f"x = {turned} transpose(p0), dimensions={{1,0}}", f"r = {turned} collective-permute(x), {pairs}"]
                cases[f"turned_{t}"] = program([t], rows, f"o = {t} transpose(r), dimensions={{1,0}}", "")
            # Among what computes.
            both = f"({t}, {t})"
            rows = [f"n = {t} not(p0)", f"r = {t} collective-permute(n), {pairs}", f"m = {t} not(r)", f"q = {t} collective-permute(n), {pairs.replace('channel_id=1', 'channel_id=2')}"]
            if not element.startswith("f"):
                cases[f"around_{t}"] = program([t], rows, f"o = {both} tuple(m, q)", "")
    for name, text in cases.items():
        name = "narrow_" + re.sub(r"\W+", "_", name)
        (folder / f"collectives_{name}.hlo").write_text(manual(name, text, 4))


FAMILIES = {"structure": structure, "elementwise": elementwise, "dots": dots, "collectives": collectives, "collectives_more": collectives_more, "collectives_rest": collectives_rest, "narrow": narrow, "loops": loops}


def command(families, usage):
    """What `FAMILY DIR` asks for."""
    if len(sys.argv) != 3 or sys.argv[1] not in families:
        sys.exit(usage)
    target = pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    families[sys.argv[1]](target)
    print(len(list(target.glob("*.hlo"))), "modules in", target)


if __name__ == "__main__":
    command(FAMILIES, __doc__)
