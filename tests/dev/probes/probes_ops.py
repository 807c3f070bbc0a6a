#!/usr/bin/env python3
"""More families of `probes.py`, for operations that have a form of their own:

  probes_ops.py FAMILY DIR      reductions, windows, gathers, scatters, sorts, convolutions, whiles, conditionals

To be compiled by the oracle and scored as those of `probes.py` are."""
import itertools
import random

from probes import MOVES, PARAMETERS, REDUCERS, command, dims, dot, f32, fresh, line, module, padded, reducer, scalar, sliced, spread, whole

OPS = {"add": ("add", 0), "max": ("maximum", "-inf"), "min": ("minimum", "inf"), "mul": ("multiply", 1)}
ALL_REDUCERS = "".join(reducer(n, op) for n, (op, _) in OPS.items())


class Sheet:
    """A module in the making: expressions of a few inputs, written out when there are enough of them."""

    def __init__(self, folder, name, functions, parameters, per_module=10):
        self.folder, self.name, self.functions, self.parameters = folder, name, functions, parameters
        self.per_module, self.count = per_module, 0
        self.text, self.outputs = "", []

    def add(self, text, result, shape):
        self.text += text
        self.outputs.append((result, shape))
        if len(self.outputs) >= self.per_module:
            self.flush()

    def close(self, piece):
        """A piece (lines, name, dimensions) of f32, read by something no rule looks through."""
        e = fresh("e")
        self.add(piece[0] + f"  {e} = {f32(piece[2])} cosine({piece[1]})\n", e, f32(piece[2]))

    def flush(self):
        if self.outputs:
            module(self.folder, f"{self.name}_{self.count}", self.functions, self.parameters + self.text, self.outputs)
            self.count += 1
        self.text, self.outputs = "", []


def source(of, d, shape=None):
    s = fresh("s")
    return f"  {s} = {shape or f32(d)} sine({of})\n", s


def over(x, d, axes, function, init):
    pre, k = scalar(init)
    out = [n for a, n in enumerate(d) if a not in axes]
    return line(out, f"reduce({x}, {k}), dimensions={{{dims(axes)}}}, to_apply={function}", pre)


def reductions(folder):
    choose = random.Random(11)
    sheet = Sheet(folder, "reductions", ALL_REDUCERS, PARAMETERS + "  x = f32[2,4,3] parameter(2)\n  y = f32[1,6,4] parameter(3)\n  v = f32[4] parameter(4)\n")
    bases = {"x": [2, 4, 3], "y": [1, 6, 4], "v": [4]}
    for base, d in bases.items():
        for name, inner in MOVES.items():
            pre, s = source(base, d)
            moved = inner(s, d)
            if not moved or not moved[2]:
                continue
            rank = len(moved[2])
            subsets = [c for n in range(1, rank + 1) for c in itertools.combinations(range(rank), n)]
            for axes in choose.sample(subsets, min(3, len(subsets))):
                function = choose.choice(list(OPS))
                pre, s = source(base, d)
                moved = inner(s, d)
                init = OPS[function][1] if choose.random() < 0.8 else 2
                r = over(moved[1], moved[2], axes, function, init)
                sheet.close((pre + moved[0] + r[0], r[1], r[2]))
    for base, d in bases.items():  # what comes behind
        for name, outer in MOVES.items():
            for axes in choose.sample([c for n in range(1, len(d) + 1) for c in itertools.combinations(range(len(d)), n)], 1):
                function = choose.choice(list(OPS))
                pre, s = source(base, d)
                r = over(s, d, axes, function, OPS[function][1])
                moved = outer(r[1], r[2])
                if moved:
                    sheet.close((pre + r[0] + moved[0], moved[1], moved[2]))
    d = [2, 4, 3]
    for first, second in itertools.product(OPS, OPS):  # reductions of reductions
        for init in (None, 1):
            pre, s = source("x", d)
            a = over(s, d, (choose.randrange(3),), first, OPS[first][1] if init is None else init)
            b = over(a[1], a[2], (choose.randrange(2),), second, OPS[second][1] if init is None else init)
            sheet.close((pre + a[0] + b[0], b[1], b[2]))
    for value, function in itertools.product([0, 1, 3], OPS):  # of something spread
        pre, b = spread(value, d)
        for axes in [(0,), (1, 2), (0, 1, 2)]:
            r = over(b, d, axes, function, OPS[function][1])
            z = fresh("z")
            out = f32(r[2])
            sheet.add(pre + r[0] + f"  {z} = {out} add({r[1]}, {source_of(out, sheet)})\n", z, out)
            pre, b = spread(value, d)
    for axes in [(0,), (1,), (0, 1)]:  # of an iota, a product, a sum of constants
        n = fresh()
        r = over(n, [4, 6], axes, "add", 0)
        sheet.close((f"  {n} = f32[4,6] iota(), iota_dimension={axes[0]}\n" + r[0], r[1], r[2]))
    sheet.flush()


def source_of(shape, sheet):
    """An instruction of the shape made from a parameter, so that a constant result stays in the module."""
    n = fresh("g")
    b = fresh("g")
    sheet.text += f"  {n} = f32[] sine(w0)\n" if "w0" in sheet.parameters else f"  {n} = f32[] convert(idx)\n"
    sheet.text += f"  {b} = {shape} broadcast({n}), dimensions={{}}\n"
    return b


def variadic(folder):
    """Maxima with their places, as jax writes them, under what moves data."""
    choose = random.Random(5)
    function = """arg {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  ne = pred[] compare(a, a), direction=NE
  o = pred[] or(gt, ne)
  eq = pred[] compare(a, b), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  both = pred[] and(eq, lt)
  p = pred[] or(o, both)
  va = f32[] select(o, a, b)
  vi = s32[] select(p, i, j)
  ROOT r = (f32[], s32[]) tuple(va, vi)
}
"""
    sheet = Sheet(folder, "variadic", ALL_REDUCERS + function, PARAMETERS + "  x = f32[2,4,3] parameter(2)\n  y = f32[1,6,4] parameter(3)\n  v = f32[4] parameter(4)\n", 6)
    for base, d in {"x": [2, 4, 3], "y": [1, 6, 4], "v": [4]}.items():
        for name, inner in list(MOVES.items()):
            pre, s = source(base, d)
            m = inner(s, d)
            if not m or not m[2] or choose.random() < 0.3:
                continue
            axis = choose.randrange(len(m[2]))
            out = [n for a, n in enumerate(m[2]) if a != axis]
            io, r, g0, g1, k0, k1 = (fresh() for _ in range(6))
            text = pre + m[0] + f"  {io} = s32[{dims(m[2])}] iota(), iota_dimension={axis}\n  {k0} = f32[] constant(-inf)\n  {k1} = s32[] constant(0)\n"
            text += f"  {r} = ({f32(out)}, s32[{dims(out)}]) reduce({m[1]}, {io}, {k0}, {k1}), dimensions={{{axis}}}, to_apply=arg\n"
            text += f"  {g1} = s32[{dims(out)}] get-tuple-element({r}), index=1\n"
            which = choose.randrange(3)
            if which == 0:  # the place alone
                sheet.add(text, g1, f"s32[{dims(out)}]")
                continue
            if which == 1:
                text += f"  {g0} = {f32(out)} get-tuple-element({r}), index=0\n"
            else:  # a maximum beside it, of the same input
                q = over(m[1], m[2], (axis,), "max", "-inf")
                text, g0 = text + q[0], q[1]
            both, bi = fresh(), fresh()
            text += f"  {bi} = {f32(out)} convert({g1})\n  {both} = {f32(out)} add({g0}, {bi})\n"
            sheet.add(text, both, f32(out))
    sheet.flush()


def windowed(x, d, size, function, init, stride=None, pads=None, base=None, dilate=None):
    pre, k = scalar(init)
    stride, pads = stride or [1] * len(d), pads or [(0, 0)] * len(d)
    base, dilate = base or [1] * len(d), dilate or [1] * len(d)
    out = []
    for n, w, s, (lo, hi), b, r in zip(d, size, stride, pads, base, dilate):
        span = (n - 1) * b + 1 + lo + hi - ((w - 1) * r + 1)
        if span < 0:
            return None
        out.append(span // s + 1)
    window = "size=" + "x".join(map(str, size))
    if any(s != 1 for s in stride):
        window += " stride=" + "x".join(map(str, stride))
    if any(p != (0, 0) for p in pads):
        window += " pad=" + "x".join(f"{lo}_{hi}" for lo, hi in pads)
    if any(b != 1 for b in base):
        window += " lhs_dilate=" + "x".join(map(str, base))
    if any(r != 1 for r in dilate):
        window += " rhs_dilate=" + "x".join(map(str, dilate))
    return line(out, f"reduce-window({x}, {k}), window={{{window}}}, to_apply={function}", pre)


def windows(folder):
    choose = random.Random(13)
    head = PARAMETERS + "  x = f32[4,6] parameter(2)\n  y = f32[1,6,5] parameter(3)\n  v = f32[40] parameter(4)\n  w0 = f32[] parameter(5)\n  big = f32[3,100] parameter(6)\n"
    sheet = Sheet(folder, "windows", ALL_REDUCERS, head, 8)
    bases = {"x": [4, 6], "y": [1, 6, 5], "v": [40]}
    for base, d in bases.items():
        for name, inner in MOVES.items():
            for _ in range(3):
                pre, s = source(base, d)
                m = inner(s, d)
                if not m or not m[2]:
                    continue
                size = [choose.choice([1, 1, 2, n]) for n in m[2]]
                stride = [choose.choice([1, 1, 2]) for _ in m[2]]
                pads = [choose.choice([(0, 0), (0, 0), (1, 0), (1, 1)]) for _ in m[2]]
                base_dilation = [choose.choice([1, 1, 1, 2]) for _ in m[2]]
                dilate = [choose.choice([1, 1, 1, 2]) for _ in m[2]]
                function = choose.choice(list(OPS))
                r = windowed(m[1], m[2], size, function, OPS[function][1], stride, pads, base_dilation, dilate)
                if r:
                    sheet.close((pre + m[0] + r[0], r[1], r[2]))
    for base, d in list(bases.items()) + [("big", [3, 100])]:  # running sums, both ways
        for axis in range(len(d)):
            n = d[axis]
            for pads in [(n - 1, 0), (0, n - 1), (n, 0), (n - 1, 1)]:
                for function in choose.sample(list(OPS), 2):
                    pre, s = source(base, d)
                    size = [n if a == axis else 1 for a in range(len(d))]
                    r = windowed(s, d, size, function, OPS[function][1], pads=[pads if a == axis else (0, 0) for a in range(len(d))])
                    sheet.close((pre + r[0], r[1], r[2]))
    for value in (1, 2):  # running sums of something spread
        for d in ([40], [4, 6]):
            pre, b = spread(value, d)
            size = [1] * (len(d) - 1) + [d[-1]]
            r = windowed(b, d, size, "add", 0, pads=[(0, 0)] * (len(d) - 1) + [(d[-1] - 1, 0)])
            shape = f32(d)
            z = fresh("z")
            sheet.add(pre + r[0] + f"  {z} = {shape} add({r[1]}, {source_of(shape, sheet)})\n", z, shape)
    for low, high, interior, value in [(1, 2, 0, 0), (2, 0, 0, 0), (0, 3, 1, 0), (1, 1, 0, 1), (-1, 2, 0, 0)]:  # padding before
        for function in OPS:
            pre, s = source("x", [4, 6])
            m = padded(s, [4, 6], low, high, interior, OPS[function][1] if value == 0 else value)
            r = windowed(m[1], m[2], [2, 1], function, OPS[function][1], choose.choice([[1, 1], [2, 1]]))
            sheet.close((pre + m[0] + r[0], r[1], r[2]))
    for base, d in bases.items():  # what comes behind
        for name, outer in MOVES.items():
            pre, s = source(base, d)
            size = [choose.choice([1, 2, n]) for n in d]
            r = windowed(s, d, size, "add", 0, pads=[choose.choice([(0, 0), (w - 1, 0)]) for w in size])
            m = r and outer(r[1], r[2])
            if m:
                sheet.close((pre + r[0] + m[0], m[1], m[2]))
    sheet.flush()


GATHERS = [  # operand, indices, offset, collapsed, start_index_map, index_vector_dim, slice sizes
    ([6, 4], [5, 1], [1], [0], [0], 1, [1, 4]),
    ([6, 4], [5], [1], [0], [0], 1, [1, 4]),
    ([6, 4], [5, 2], [], [0, 1], [0, 1], 1, [1, 1]),
    ([6, 4], [2, 5], [], [0, 1], [1, 0], 0, [1, 1]),
    ([6, 4], [2, 3, 1], [2], [0], [0], 2, [1, 4]),
    ([6, 4], [2, 3, 1], [0], [0], [0], 2, [1, 4]),
    ([6, 4], [2, 3], [2], [1], [1], 2, [3, 1]),
    ([6, 4], [1, 1], [1], [0], [0], 1, [1, 4]),
    ([6, 4], [1], [0, 1], [], [0], 0, [2, 4]),
    ([6, 4], [2], [0, 1], [], [0, 1], 0, [2, 3]),
    ([6, 4], [5, 1], [1, 2], [], [0], 1, [6, 4]),
    ([6, 4], [5, 1], [1, 2], [], [1], 1, [2, 3]),
    ([4], [5, 1], [], [0], [0], 1, [1]),
    ([3], [5], [], [0], [0], 1, [1]),
    ([1], [5], [], [0], [0], 1, [1]),
    ([1, 1], [5, 1], [1], [0], [0], 1, [1, 1]),
    ([2, 6, 4], [5, 1], [1, 2], [0], [0], 1, [1, 6, 4]),
    ([2, 6, 4], [5, 2], [1], [0, 1], [0, 1], 1, [1, 1, 4]),
    ([2, 6, 4], [3, 2, 2], [2], [0, 2], [2, 0], 2, [1, 6, 1]),
]


def gathers(folder):
    choose = random.Random(17)
    head = PARAMETERS + "".join(f"  x{dims_name(d)} = {f32(d)} parameter({k + 2})\n" for k, d in enumerate(GATHER_OPERANDS))
    start = len(GATHER_OPERANDS) + 2
    head += "".join(f"  i{dims_name(d)} = s32[{dims(d)}] parameter({k + start})\n" for k, d in enumerate(GATHER_INDICES))
    sheet = Sheet(folder, "gathers", REDUCERS, head, 6)

    def gather(x, spec, indices, index_type="s32"):
        d, n, offset, collapsed, start_map, vector, sizes = spec
        batch = [m for k, m in enumerate(n) if k != vector]
        kept = [s for k, s in enumerate(sizes) if k not in collapsed]
        out, b, o = [], iter(batch), iter(kept)
        for k in range(len(batch) + len(kept)):
            out.append(next(o) if k in offset else next(b))
        more = choose.choice(["", "", ", indices_are_sorted=true"])
        return line(out, f"gather({x}, {indices}), offset_dims={{{dims(offset)}}}, collapsed_slice_dims={{{dims(collapsed)}}}, start_index_map={{{dims(start_map)}}}, index_vector_dim={vector}, slice_sizes={{{dims(sizes)}}}{more}")

    def indices_of(n):
        kind = choose.randrange(5)
        i = "i" + dims_name(n)
        made = fresh("ix")
        shape = f"s32[{dims(n)}]"
        if kind == 0:
            count = 1
            for m in n:
                count *= m
            values = [choose.randrange(4) for _ in range(count)]
            return f"  {made} = {shape} constant({nested(values, n)})\n", made
        if kind == 1:
            return f"  {made} = {shape} iota(), iota_dimension={choose.randrange(len(n))}\n", made
        if kind == 2:
            pre, k = scalar(choose.choice([0, 1, 9]), "s32")
            return pre + f"  {made} = {shape} broadcast({k}), dimensions={{}}\n", made
        return "", i

    for spec in GATHERS:
        for _ in range(3):
            pre, s = source("x" + dims_name(spec[0]), spec[0])
            lines, indices = indices_of(spec[1])
            g = gather(s, spec, indices)
            sheet.close((pre + lines + g[0], g[1], g[2]))
        for name in choose.sample(list(MOVES), 12):  # what comes before and behind
            pre, s = source("x" + dims_name(spec[0]), spec[0])
            lines, indices = indices_of(spec[1])
            m = MOVES[name](s, spec[0])
            if m and m[2] == spec[0]:
                g = gather(m[1], spec, indices)
                sheet.close((pre + lines + m[0] + g[0], g[1], g[2]))
            pre, s = source("x" + dims_name(spec[0]), spec[0])
            g = gather(s, spec, "i" + dims_name(spec[1]))
            m = MOVES[name](g[1], g[2])
            if m:
                sheet.close((pre + g[0] + m[0], m[1], m[2]))
        small = [max(1, n - 2) for n in spec[0]]  # out of a padded array
        for value, low in ((0, 1), (3, 0)):
            pre, s = source("x" + dims_name(spec[0]), spec[0])
            cut = sliced(s, spec[0], [(0, m, 1) for m in small])
            k = scalar(value)
            p = line(spec[0], f"pad({cut[1]}, {k[1]}), padding=" + "x".join(f"{low if n - m else 0}_{n - m - (low if n - m else 0)}" for n, m in zip(spec[0], small)), k[0])
            g = gather(p[1], spec, "i" + dims_name(spec[1]))
            sheet.close((pre + cut[0] + p[0] + g[0], g[1], g[2]))
    sheet.flush()


def nested(values, d):
    if not d:
        return str(values[0])
    if len(d) == 1:
        return "{" + ", ".join(map(str, values)) + "}"
    part = len(values) // d[0]
    return "{" + ", ".join(nested(values[k * part : (k + 1) * part], d[1:]) for k in range(d[0])) + "}"


def dims_name(d):
    return "x".join(map(str, d))


GATHER_OPERANDS = [list(d) for d in dict.fromkeys(tuple(g[0]) for g in GATHERS)]
GATHER_INDICES = [list(d) for d in dict.fromkeys(tuple(g[1]) for g in GATHERS)]


def scatters(folder):
    choose = random.Random(19)
    head = PARAMETERS + "".join(f"  x{dims_name(d)} = {f32(d)} parameter({k + 2})\n" for k, d in enumerate(GATHER_OPERANDS))
    start = len(GATHER_OPERANDS) + 2
    head += "".join(f"  i{dims_name(d)} = s32[{dims(d)}] parameter({k + start})\n" for k, d in enumerate(GATHER_INDICES))
    second = "second {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n"
    sheet = Sheet(folder, "scatters", ALL_REDUCERS + second, head, 6)

    def scatter(x, spec, indices, updates, function, flags=None):
        """The gather's twin: updates have the gather's result shape."""
        d, n, offset, collapsed, start_map, vector, sizes = spec
        flags = flags if flags is not None else choose.choice(["", "", ", indices_are_sorted=true", ", unique_indices=true"])
        return line(d, f"scatter({x}, {indices}, {updates}), update_window_dims={{{dims(offset)}}}, inserted_window_dims={{{dims(collapsed)}}}, scatter_dims_to_operand_dims={{{dims(start_map)}}}, index_vector_dim={vector}{flags}, to_apply={function}")

    def update_dims(spec):
        d, n, offset, collapsed, start_map, vector, sizes = spec
        batch = iter([m for k, m in enumerate(n) if k != vector])
        kept = iter([s for k, s in enumerate(sizes) if k not in collapsed])
        total = len(n) - (vector < len(n)) + len(sizes) - len(collapsed)
        return [next(kept) if k in offset else next(batch) for k in range(total)]

    def updates_of(spec):
        d = update_dims(spec)
        k, b, u = fresh("k"), fresh("b"), fresh("u")
        kind = choose.randrange(3)
        if kind == 0:
            return f"  {k} = f32[] constant({choose.choice([0, 1])})\n  {b} = {f32(d)} broadcast({k}), dimensions={{}}\n", b, d
        if kind == 1 or not d:
            return f"  {k} = f32[] convert(idx)\n  {b} = {f32(d)} broadcast({k}), dimensions={{}}\n  {u} = {f32(d)} cosine({b})\n", u, d
        return f"  {b} = {f32(d)} iota(), iota_dimension={choose.randrange(len(d))}\n  {u} = {f32(d)} tanh({b})\n", u, d

    def operand_of(spec):
        if choose.random() < 0.3:
            return spread(choose.choice([0, 0, 1]), spec[0])
        return source("x" + dims_name(spec[0]), spec[0])

    def one(spec, function):
        pre, s = operand_of(spec)
        u = updates_of(spec)
        r = scatter(s, spec, "i" + dims_name(spec[1]), u[1], function)
        return pre + u[0] + r[0], r[1], r[2]

    functions = list(OPS) + ["second", "second", "add"]
    for spec in GATHERS:
        for _ in range(3):
            sheet.close(one(spec, choose.choice(functions)))
        for name in choose.sample(list(MOVES), 9):
            a = one(spec, choose.choice(functions))
            m = MOVES[name](a[1], a[2])
            if m:
                sheet.close((a[0] + m[0], m[1], m[2]))
        a, b = one(spec, "add"), one(spec, "add")  # added to one another, or to something else
        n = fresh()
        sheet.close((a[0] + b[0] + f"  {n} = {f32(spec[0])} add({a[1]}, {b[1]})\n", n, spec[0]))
        for left in (True, False):
            a, n = one(spec, choose.choice(["add", "max"])), fresh()
            pre, s = source("x" + dims_name(spec[0]), spec[0])
            both = f"{a[1]}, {s}" if left else f"{s}, {a[1]}"
            sheet.close((a[0] + pre + f"  {n} = {f32(spec[0])} add({both})\n", n, spec[0]))
        if len(spec[0]) > 1:
            a = one(spec, choose.choice(functions))
            order = list(range(len(spec[0])))
            choose.shuffle(order)
            m = line([spec[0][k] for k in order], f"transpose({a[1]}), dimensions={{{dims(order)}}}")
            sheet.close((a[0] + m[0], m[1], m[2]))
        cut = [(choose.randrange(2), n, 1) if n > 2 else (0, n, 1) for n in spec[0]]
        a = one(spec, choose.choice(functions))
        m = sliced(a[1], spec[0], cut)
        sheet.close((a[0] + m[0], m[1], m[2]))
    sheet.flush()


def comparator(name, kinds, key=0, direction="LT", order=None):
    text = f"{name} {{\n"
    for k, t in enumerate(kinds):
        text += f"  l{k} = {t}[] parameter({2 * k})\n  r{k} = {t}[] parameter({2 * k + 1})\n"
    tail = f", type={order}" if order else ""
    return text + f"  ROOT c = pred[] compare(l{key}, r{key}), direction={direction}{tail}\n}}\n"


def sorts(folder):
    choose = random.Random(23)
    functions = comparator("up", ["f32"]) + comparator("down", ["f32"], direction="GT") + comparator("total", ["f32"], order="TOTALORDER")
    functions += comparator("pair", ["f32", "s32"]) + comparator("pair_down", ["f32", "s32"], direction="GT") + comparator("pair_total", ["f32", "s32"], order="TOTALORDER")
    functions += comparator("by_place", ["f32", "s32"], key=1) + comparator("ints", ["s32"]) + comparator("place_first", ["s32", "f32"])
    functions += comparator("three", ["f32", "f32", "f32"], key=1) + comparator("ints_down", ["s32"], direction="GT")
    head = PARAMETERS + "  x = f32[5,8] parameter(2)\n  y = f32[1,8] parameter(3)\n  v = f32[40] parameter(4)\n  w0 = f32[] parameter(5)\n"
    sheet = Sheet(folder, "sorts", REDUCERS + functions, head, 8)
    bases = {"x": [5, 8], "y": [1, 8], "v": [40]}
    for base, d in bases.items():
        for axis in range(len(d)):
            for stable, name in itertools.product(("", ", is_stable=true"), ("up", "down", "total")):
                pre, s = source(base, d)
                r = line(d, f"sort({s}), dimensions={{{axis}}}{stable}, to_apply={name}")
                sheet.close((pre + r[0], r[1], r[2]))
            for stable, name in itertools.product(("", ", is_stable=true"), ("pair", "pair_down", "pair_total", "by_place")):
                for used in ((0,), (1,), (0, 1)):
                    pre, s = source(base, d)
                    io, r = fresh(), fresh()
                    where = choose.choice([axis, axis, 0])
                    text = pre + f"  {io} = s32[{dims(d)}] iota(), iota_dimension={where}\n"
                    text += f"  {r} = ({f32(d)}, s32[{dims(d)}]) sort({s}, {io}), dimensions={{{axis}}}{stable}, to_apply={name}\n"
                    parts = []
                    for k in used:
                        g, c = fresh(), fresh()
                        text += f"  {g} = {'s32' if k else 'f32'}[{dims(d)}] get-tuple-element({r}), index={k}\n"
                        if k:
                            text += f"  {c} = {f32(d)} convert({g})\n"
                        parts.append(c if k else g)
                    if len(parts) == 2:
                        n = fresh()
                        text += f"  {n} = {f32(d)} add({parts[0]}, {parts[1]})\n"
                        parts = [n]
                    if choose.random() < 0.3 and d[axis] > 3:
                        m = sliced(parts[0], d, [(0, 3, 1) if a == axis else (0, n, 1) for a, n in enumerate(d)])
                        sheet.close((text + m[0], m[1], m[2]))
                    else:
                        sheet.close((text, parts[0], d))
        for name, move in MOVES.items():
            pre, s = source(base, d)
            m = move(s, d)
            if m and m[2]:
                axis = choose.randrange(len(m[2]))
                r = line(m[2], f"sort({m[1]}), dimensions={{{axis}}}, to_apply={choose.choice(['up', 'down'])}")
                sheet.close((pre + m[0] + r[0], r[1], r[2]))
            pre, s = source(base, d)
            r = line(d, f"sort({s}), dimensions={{{len(d) - 1}}}, to_apply=up")
            m = move(r[1], r[2])
            if m:
                sheet.close((pre + r[0] + m[0], m[1], m[2]))
    for used in itertools.chain.from_iterable(itertools.combinations(range(3), n) for n in (1, 2, 3)):
        text, names = "", []
        for base in "abc":
            s = fresh("s")
            text += f"  {s} = f32[40] {dict(a='sine', b='tan', c='tanh')[base]}(v)\n"
            names.append(s)
        r = fresh()
        text += f"  {r} = (f32[40], f32[40], f32[40]) sort({', '.join(names)}), dimensions={{0}}, to_apply=three\n"
        parts = []
        for k in used:
            g = fresh()
            text += f"  {g} = f32[40] get-tuple-element({r}), index={k}\n"
            parts.append(g)
        while len(parts) > 1:
            n = fresh()
            text += f"  {n} = f32[40] add({parts[0]}, {parts[1]})\n"
            parts = [n] + parts[2:]
        sheet.close((text, parts[0], [40]))
    for _ in range(3):  # a permutation turned around
        pre, s = source("v", [40])
        io, r, g, q, h = (fresh() for _ in range(5))
        text = pre + f"  {io} = s32[40] iota(), iota_dimension=0\n  {r} = (f32[40], s32[40]) sort({s}, {io}), dimensions={{0}}, is_stable=true, to_apply=pair\n"
        text += f"  {g} = s32[40] get-tuple-element({r}), index=1\n  {q} = (s32[40], f32[40]) sort({g}, {s}), dimensions={{0}}, to_apply=place_first\n"
        text += f"  {h} = f32[40] get-tuple-element({q}), index=1\n"
        sheet.close((text, h, [40]))
    sheet.flush()


CONVS = [  # input, kernel, labels, window, groups
    ([2, 9, 9, 4], [1, 1, 4, 8], "b01f_01io->b01f", "size=1x1", ""),
    ([2, 9, 9, 4], [3, 3, 4, 8], "b01f_01io->b01f", "size=3x3", ""),
    ([2, 9, 9, 4], [3, 3, 4, 8], "b01f_01io->b01f", "size=3x3 pad=1_1x1_1", ""),
    ([2, 9, 9, 4], [3, 3, 4, 8], "b01f_01io->b01f", "size=3x3 stride=2x2 pad=1_1x1_1", ""),
    ([2, 9, 9, 4], [3, 3, 4, 8], "b01f_01io->b01f", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", ""),
    ([2, 9, 9, 4], [3, 3, 4, 8], "b01f_01io->b01f", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", ""),
    ([2, 9, 9, 4], [3, 3, 1, 4], "b01f_01io->b01f", "size=3x3 pad=1_1x1_1", ", feature_group_count=4"),
    ([2, 9, 9, 4], [3, 3, 1, 8], "b01f_01io->b01f", "size=3x3", ", feature_group_count=4"),
    ([2, 9, 9, 4], [3, 3, 2, 8], "b01f_01io->b01f", "size=3x3", ", feature_group_count=2"),
    ([2, 9, 9, 4], [1, 1, 1, 4], "b01f_01io->b01f", "size=1x1", ", feature_group_count=4"),
    ([2, 9, 9, 4], [9, 9, 4, 8], "b01f_01io->b01f", "size=9x9", ""),
    ([2, 9, 9, 4], [9, 9, 1, 4], "b01f_01io->b01f", "size=9x9", ", feature_group_count=4"),
    ([2, 4, 9, 9], [8, 4, 3, 3], "bf01_oi01->bf01", "size=3x3 pad=1_1x1_1", ""),
    ([2, 9, 4], [3, 4, 8], "b0f_0io->b0f", "size=3", ""),
    ([2, 9, 4], [3, 1, 4], "b0f_0io->b0f", "size=3 pad=1_1", ", feature_group_count=4"),
    ([2, 9, 4], [1, 4, 8], "b0f_0io->b0f", "size=1", ""),
    ([2, 5, 6, 7, 3], [2, 2, 2, 3, 4], "b012f_012io->b012f", "size=2x2x2", ""),
    ([2, 9, 9, 4], [3, 3, 4, 8], "b01f_01io->b01f", "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", ""),
    ([4, 9, 9, 2], [4, 9, 9, 8], "f01b_i01o->01bf", "size=9x9 pad=1_1x1_1", ""),
    ([4, 9, 9, 2], [3, 3, 2, 8], "b01f_01io->b01f", "size=3x3", ", batch_group_count=2"),
    ([4, 5], [5, 3], "bf_io->bf", "", ""),
    ([3, 3, 4, 8], [20, 9, 9, 4], "01fb_o01i->b01f", "size=9x9 pad=8_8x8_8", ""),
]


def conv_result(spec, x=None):
    d, k, labels, window, groups = spec
    parts = dict(p.split("=") for p in window.split())
    left, rest = labels.split("_")
    right, out = rest.split("->")
    d = x or d
    spatial = [c for c in left if c.isdigit()]
    get = lambda key, default: parts.get(key, "x".join([default] * len(spatial))).split("x") if spatial else []
    size, stride, pads = get("size", "1"), get("stride", "1"), get("pad", "0_0")
    base, dilate = get("lhs_dilate", "1"), get("rhs_dilate", "1")
    result = []
    batch_groups = int(groups.split("batch_group_count=")[1]) if "batch_group" in groups else 1
    for c in out:
        if c == "b":
            result.append(d[left.index("b")] // batch_groups)
        elif c == "f":
            result.append(k[right.index("o")])
        else:
            a = int(c)
            lo, hi = map(int, pads[a].split("_"))
            n = (d[left.index(c)] - 1) * int(base[a]) + 1 + lo + hi
            w = (k[right.index(c)] - 1) * int(dilate[a]) + 1
            result.append((n - w) // int(stride[a]) + 1)
    return result


def convolutions(folder):
    choose = random.Random(29)
    for number, spec in enumerate(CONVS):
        d, k, labels, window, groups = spec
        out = conv_result(spec)
        head = PARAMETERS + f"  x = {f32(d)} parameter(2)\n  kern = {f32(k)} parameter(3)\n  w0 = f32[] parameter(4)\n"
        sheet = Sheet(folder, f"convolutions_{number}", ALL_REDUCERS, head, 7)
        win = f"window={{{window}}}, " if window else ""

        def conv(a, b, result):
            return line(result, f"convolution({a}, {b}), {win}dim_labels={labels}{groups}")

        def fresh_pair():
            (p, s), (q, t) = source("x", d), source("kern", k)
            return p + q, s, t

        pre, s, t = fresh_pair()
        c = conv(s, t, out)
        sheet.close((pre + c[0], c[1], c[2]))
        left = labels.split("_")[0]
        rest = labels.split("_")[1]
        right, outs = rest.split("->")
        feature = outs.index("f")
        # scaled and shifted along the features, as batch normalisation leaves it
        for constant in (True, False):
            pre, s, t = fresh_pair()
            c = conv(s, t, out)
            b, a, g, m = (fresh() for _ in range(4))
            vec = f32([out[feature]])
            spread_dims = f"dimensions={{{feature}}}"
            values = ", ".join(str(choose.randrange(1, 5)) for _ in range(out[feature]))
            text = pre + c[0]
            if constant:
                kb, kg, kk = fresh("k"), fresh("k"), fresh("k")
                text = text.replace(f"sine(kern)", "cosine(kern)")
                text += f"  {kb} = {vec} constant({{{values}}})\n  {kg} = {vec} constant({{{values}}})\n"
            else:
                kb, kg = fresh("k"), fresh("k")
                z0 = fresh()
                text += f"  {z0} = {vec} broadcast(w0), dimensions={{}}\n  {kb} = {vec} tanh({z0})\n  {kg} = {vec} sine({z0})\n"
            text += f"  {b} = {f32(out)} broadcast({kb}), {spread_dims}\n  {a} = {f32(out)} add({c[1]}, {b})\n"
            text += f"  {g} = {f32(out)} broadcast({kg}), {spread_dims}\n  {m} = {f32(out)} multiply({a}, {g})\n"
            sheet.close((text, m, out))
        # a constant kernel, scaled
        pre, s = source("x", d)
        kb, kk = fresh(), fresh()
        io = fresh()
        text = pre + f"  {io} = {f32(k)} iota(), iota_dimension=0\n"
        c = conv(s, io, out)
        n = fresh()
        p2, b2 = spread(3, out)
        sheet.close((text + c[0] + p2 + f"  {n} = {f32(out)} multiply({c[1]}, {b2})\n", n, out))
        # padding in front
        for value, low, high, interior in [(0, 1, 1, 0), (0, 0, 2, 0), (1, 1, 1, 0), (0, 0, 0, 1), (0, 1, 0, 1), (0, -1, 2, 0)]:
            spatial = [a for a, ch in enumerate(left) if ch.isdigit()]
            if not spatial:
                continue
            padding = "x".join(f"{low}_{high}_{interior}" if a in spatial else "0_0" for a in range(len(d)))
            wide = [n + low + high + interior * (n - 1) if a in spatial else n for a, n in enumerate(d)]
            pre, s, t = fresh_pair()
            kp = scalar(value)
            p = line(wide, f"pad({s}, {kp[1]}), padding={padding}", kp[0])
            c = conv(p[1], t, conv_result(spec, wide))
            sheet.close((pre + p[0] + c[0], c[1], c[2]))
        # transposes and reverses around
        for target in ("x", "kern", "out"):
            if target == "out":
                pre, s, t = fresh_pair()
                c = conv(s, t, out)
                order = list(range(len(out)))
                choose.shuffle(order)
                m = line([out[a] for a in order], f"transpose({c[1]}), dimensions={{{dims(order)}}}")
                sheet.close((pre + c[0] + m[0], m[1], m[2]))
                continue
            shape = d if target == "x" else k
            order = list(range(len(shape)))
            choose.shuffle(order)
            inverse = [order.index(a) for a in range(len(order))]
            pre, s, t = fresh_pair()
            turned = [shape[a] for a in inverse]
            z0, z1, z2 = fresh(), fresh(), fresh()
            text = pre + f"  {z1} = {f32(turned)} reshape({s if target == 'x' else t})\n  {z2} = {f32(turned)} tan({z1})\n"
            m = line([turned[a] for a in order], f"transpose({z2}), dimensions={{{dims(order)}}}")
            c = conv(m[1], t, out) if target == "x" else conv(s, m[1], out)
            sheet.close((text + m[0] + c[0], c[1], c[2]))
        spatial = [a for a, ch in enumerate(right) if ch.isdigit()]
        if spatial:
            pre, s, t = fresh_pair()
            m = line(k, f"reverse({t}), dimensions={{{dims(spatial)}}}")
            c = conv(s, m[1], out)
            sheet.close((pre + m[0] + c[0], c[1], c[2]))
        sheet.flush()


def whiles(folder):
    choose = random.Random(31)
    kinds = {
        "plain": "sine({v})",
        "kept": None,
        "of_counter": "add({v}, {if})",
        "of_other": "add({v}, {o})",
        "counted": "add({v}, {one})",
        "swapped": "{o}",
        "constant": "{k}",
        "doubled": "multiply({v}, {two})",
    }
    limits = [("LT", 5, 1, 0), ("LE", 5, 1, 0), ("GT", 0, -1, 7), ("GE", 3, -1, 7), ("NE", 6, 2, 0), ("LT", 1, 1, 0), ("LT", 0, 1, 0), ("LT", 9, 3, 1), ("LT", "p", 1, 0), ("GT", 8, 1, 0)]
    for number in range(60):
        direction, limit, step, start = choose.choice(limits) if number >= len(limits) else limits[number]
        mirrored = choose.random() < 0.25
        count = choose.randrange(2, 6)
        chosen = [choose.choice(list(kinds)) for _ in range(count)]
        scalar_state = [choose.random() < 0.3 for _ in range(count)]
        shapes = ["f32[]" if s else "f32[4]" for s in scalar_state]
        state = "(s32[], " + ", ".join(shapes) + (", s32[])" if limit == "p" else ")")
        text = reducer("add", "add") + f"cond {{\n  st = {state} parameter(0)\n  i = s32[] get-tuple-element(st), index=0\n"
        text += f"  n = s32[] get-tuple-element(st), index={count + 1}\n" if limit == "p" else f"  n = s32[] constant({limit})\n"
        swap = dict(LT="GT", LE="GE", GT="LT", GE="LE", NE="NE")
        text += f"  ROOT l = pred[] compare({'n, i' if mirrored else 'i, n'}), direction={swap[direction] if mirrored else direction}\n}}\n"
        text += f"body {{\n  st = {state} parameter(0)\n  i = s32[] get-tuple-element(st), index=0\n  fi = f32[] convert(i)\n  fib = f32[4] broadcast(fi), dimensions={{}}\n"
        text += "  one = f32[] constant(1)\n  oneb = f32[4] broadcast(one), dimensions={}\n  two = f32[] constant(2)\n  twob = f32[4] broadcast(two), dimensions={}\n"
        for k, shape in enumerate(shapes):
            text += f"  v{k} = {shape} get-tuple-element(st), index={k + 1}\n"
        results = []
        for k, (kind, shape) in enumerate(zip(chosen, shapes)):
            b = "" if scalar_state[k] else "b"
            others = [j for j in range(count) if j != k and shapes[j] == shape]
            other = f"v{choose.choice(others)}" if others else f"v{k}"
            form = kinds[kind]
            if form is None:
                results.append(f"v{k}")
            elif form in ("{o}",):
                results.append(other)
            elif form == "{k}":
                results.append(f"two{b}")
            else:
                text += f"  r{k} = {shape} " + form.format(v=f"v{k}", o=other, one=f"one{b}", two=f"two{b}", **{"if": f"fi{b}"}) + "\n"
                results.append(f"r{k}")
        text += f"  st1 = s32[] constant({step})\n  j = s32[] add(i, st1)\n"
        if limit == "p":
            text += f"  n = s32[] get-tuple-element(st), index={count + 1}\n"
        text += f"  ROOT t = {state} tuple(j, {', '.join(results)}{', n' if limit == 'p' else ''})\n}}\n"
        text += f"ENTRY main {{\n  x = f32[4] parameter(0)\n  y = f32[] parameter(1)\n  m = s32[] parameter(2)\n  z = s32[] constant({start})\n"
        text += "  k3 = f32[] constant(3)\n  k3b = f32[4] broadcast(k3), dimensions={}\n  k0 = f32[] constant(0)\n  k0b = f32[4] broadcast(k0), dimensions={}\n  sx = f32[4] sine(x)\n  sy = f32[] sine(y)\n"
        starts = [choose.choice(["k3", "k0", "y", "sy", "sy"]) if s else choose.choice(["k3b", "k0b", "x", "sx", "sx"]) for s in scalar_state]
        text += f"  init = {state} tuple(z, {', '.join(starts)}{', m' if limit == 'p' else ''})\n  w = {state} while(init), condition=cond, body=body\n"
        outputs = []
        for k in range(count):
            if choose.random() < 0.7 or (k == count - 1 and not outputs):
                text += f"  g{k} = {shapes[k]} get-tuple-element(w), index={k + 1}\n  e{k} = {shapes[k]} cosine(g{k})\n"
                outputs.append((f"e{k}", shapes[k]))
        if choose.random() < 0.3:
            text += "  gi = s32[] get-tuple-element(w), index=0\n  ei = s32[] add(gi, m)\n"
            outputs.append(("ei", "s32[]"))
        text += f"  ROOT r = ({', '.join(s for _, s in outputs)}) tuple({', '.join(n for n, _ in outputs)})\n}}\n"
        (folder / f"whiles_{number}.hlo").write_text(f"HloModule whiles_{number}\n{text}")
    for number in range(20):  # rows read and written by the counter
        n, step = choose.choice([(4, 1), (5, 1), (1, 1), (6, 2)])
        state = f"(s32[], f32[{n},3], f32[{n},3], f32[3], f32[{n},3])"
        text = f"cond {{\n  st = {state} parameter(0)\n  i = s32[] get-tuple-element(st), index=0\n  n = s32[] constant({n})\n  ROOT l = pred[] compare(i, n), direction=LT\n}}\n"
        text += f"body {{\n  st = {state} parameter(0)\n  i = s32[] get-tuple-element(st), index=0\n  xs = f32[{n},3] get-tuple-element(st), index=1\n  ys = f32[{n},3] get-tuple-element(st), index=2\n"
        text += f"  c = f32[3] get-tuple-element(st), index=3\n  zs = f32[{n},3] get-tuple-element(st), index=4\n  zz = s32[] constant(0)\n"
        text += "  row = f32[1,3] dynamic-slice(xs, i, zz), dynamic_slice_sizes={1,3}\n  v = f32[3] reshape(row)\n"
        update = choose.choice(["add(c, v)", "multiply(c, v)", "sine(v)", "maximum(c, v)"])
        text += f"  u = f32[3] {update}\n  ub = f32[1,3] {choose.choice(['reshape(u)', 'broadcast(u), dimensions={1}'])}\n"
        text += f"  nys = f32[{n},3] dynamic-update-slice(ys, ub, i, zz)\n"
        second = choose.choice(["zs", "nzs", "nys2"])
        if second == "nzs":
            text += f"  nzs = f32[{n},3] dynamic-update-slice(zs, row, i, zz)\n"
        if second == "nys2":
            text += f"  nys2 = f32[{n},3] dynamic-update-slice(zs, ub, i, zz)\n"
        text += f"  st1 = s32[] constant({step})\n  j = s32[] add(i, st1)\n  ROOT t = {state} tuple(j, xs, nys, {choose.choice(['u', 'c'])}, {second})\n}}\n"
        text += f"ENTRY main {{\n  x = f32[{n},3] parameter(0)\n  y = f32[3] parameter(1)\n  z = s32[] constant(0)\n  k0 = f32[] constant(0)\n  k0b = f32[{n},3] broadcast(k0), dimensions={{}}\n"
        text += f"  sx = f32[{n},3] sine(x)\n  init = {state} tuple(z, sx, k0b, y, k0b)\n  w = {state} while(init), condition=cond, body=body\n"
        outputs = []
        for k, shape in ((2, f"f32[{n},3]"), (3, "f32[3]"), (4, f"f32[{n},3]")):
            if choose.random() < 0.7 or k == 4 and not outputs:
                text += f"  g{k} = {shape} get-tuple-element(w), index={k}\n  e{k} = {shape} cosine(g{k})\n"
                outputs.append((f"e{k}", shape))
        text += f"  ROOT r = ({', '.join(s for _, s in outputs)}) tuple({', '.join(m for m, _ in outputs)})\n}}\n"
        (folder / f"whiles_rows_{number}.hlo").write_text(f"HloModule whiles_rows_{number}\n{text}")


def conditionals(folder):
    choose = random.Random(37)
    steps = ["sine({a})", "add({a}, {b})", "multiply({a}, {b})", "{b}", "negate({a})", "{a}", "{k}", "{dot}", "maximum({a}, {b})", "{sum}"]
    for number in range(70):
        branches = choose.choice([0, 0, 2, 3, 4])  # 0: by a predicate
        outs = choose.randrange(1, 4)
        count = branches or 2
        text, shape = reducer("add", "add"), "f32[4,4]"
        result = f"({', '.join([shape] * outs)})"
        inputs = choose.randrange(2, 4)
        operand = f"({', '.join([shape] * inputs)})"
        shared = choose.random() < 0.2
        for k in range(count):
            text += f"branch{k} {{\n  st = {operand} parameter(0)\n"
            for j in range(inputs):
                text += f"  a{j} = {shape} get-tuple-element(st), index={j}\n"
            results = []
            heavy = choose.random() < 0.5
            for j in range(outs):
                form = choose.choice(steps)
                a, b = (f"a{choose.randrange(inputs)}" for _ in range(2))
                if j and choose.random() < 0.2:
                    results.append(results[0])
                    continue
                if form == "{k}":
                    text += f"  k{j} = f32[] constant({j + 1})\n  r{j} = {shape} broadcast(k{j}), dimensions={{}}\n"
                elif form == "{dot}":
                    if not heavy:
                        results.append(a)
                        continue
                    text += f"  r{j} = {shape} dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                elif form == "{sum}":
                    text += f"  k{j} = f32[] constant(0)\n  q{j} = f32[4] reduce({a}, k{j}), dimensions={{0}}, to_apply=add\n  r{j} = {shape} broadcast(q{j}), dimensions={{1}}\n"
                elif "(" not in form:
                    results.append(form.format(a=a, b=b))
                    continue
                else:
                    text += f"  r{j} = {shape} {form.format(a=a, b=b)}\n"
                results.append(f"r{j}")
            text += f"  ROOT t = {result} tuple({', '.join(results)})\n}}\n"
        text += f"ENTRY main {{\n  x = {shape} parameter(0)\n  y = {shape} parameter(1)\n  n = s32[] parameter(2)\n  p = pred[] parameter(3)\n"
        text += f"  sx = {shape} sine(x)\n  sy = {shape} tan(y)\n  sz = {shape} tanh(x)\n"
        constant = choose.random() < 0.2
        for k in range(count):
            operands = [choose.choice(["sx", "sy", "sz", "x", "y"]) for _ in range(inputs)]
            text += f"  t{k} = {operand} tuple({', '.join(operands)})\n"
        which = ["t0"] * count if shared else [f"t{k}" for k in range(count)]
        if branches:
            text += f"  kn = s32[] constant({choose.randrange(-1, count + 1)})\n"
            names = ", ".join(f"branch{k}" for k in range(count))
            text += f"  c = {result} conditional({'kn' if constant else 'n'}, {', '.join(which)}), branch_computations={{{names}}}\n"
        else:
            text += f"  kp = pred[] constant({choose.choice(['true', 'false'])})\n  np = pred[] not(p)\n"
            by = "kp" if constant else choose.choice(["p", "p", "np"])
            text += f"  c = {result} conditional({by}, {', '.join(which)}), true_computation=branch0, false_computation=branch1\n"
        outputs = []
        for j in range(outs):
            if choose.random() < 0.75 or not outputs and j == outs - 1:
                text += f"  g{j} = {shape} get-tuple-element(c), index={j}\n  e{j} = {shape} cosine(g{j})\n"
                outputs.append((f"e{j}", shape))
        text += f"  ROOT r = ({', '.join(s for _, s in outputs)}) tuple({', '.join(m for m, _ in outputs)})\n}}\n"
        (folder / f"conditionals_{number}.hlo").write_text(f"HloModule conditionals_{number}\n{text}")


FAMILIES = {
    "reductions": reductions,
    "variadic": variadic,
    "windows": windows,
    "gathers": gathers,
    "scatters": scatters,
    "sorts": sorts,
    "convolutions": convolutions,
    "whiles": whiles,
    "conditionals": conditionals,
}

if __name__ == "__main__":
    command(FAMILIES, __doc__)
