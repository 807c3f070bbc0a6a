"""Calls of a final module as modules of their own, as small as their form allows (used by final_calls.py).

A text is taken apart into instructions; a call gets parameters for its operands. `shrink` makes it smaller: dimensions
that go together by the rules of HLO (elementwise, products, reductions, bitcasts by groups of the same elements, the
library's configuration) are divided together, where nothing (a constant, a window, a slice) says how many they are."""
import hashlib
import math
import re

LEAST = (16, 8, 4, 2)  # no dimension below this, one after the other until the work is little enough


def closing(text, at):
    """The place of the parenthesis that closes the one at `at`; quoted words apart."""
    depth = 0
    for m in re.compile(r'"(?:[^"\\]|\\.)*"|[()]').finditer(text, at):
        depth += {"(": 1, ")": -1}.get(m.group(), 0)
        if depth == 0:
            return m.start()
    raise ValueError(text[at : at + 80])


class Line:
    """An instruction as it is printed: NAME = SHAPE OPCODE(OPERANDS), ATTRIBUTES. `arrays`: [type, dims, layout's text] of its
    result or of all in its tuple; `form`: the shape with {} for each of them."""

    def __init__(self, text):
        self.root = text.startswith("ROOT ")
        self.name, rest = text[5 if self.root else 0 :].split(" = ", 1)
        end = closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
        self.set_shape(rest[:end])
        rest = rest[end:].lstrip()
        start = rest.index("(")
        self.op, end = rest[:start], closing(rest, start)
        self.inside, self.attributes = rest[start + 1 : end], rest[end + 1 :]
        self.operands = re.findall(r"%[\w.\-]+", self.inside) if self.op not in ("constant", "parameter") else []

    def set_shape(self, text):
        self.arrays = []

        def array(m):
            self.arrays.append([m.group(1), [int(n) for n in m.group(2).split(",") if n], m.group(3) or ""])
            return "\0"

        self.form = re.sub(r"(\w+)\[([\d,]*)\](\{[^{}]*\})?", array, text)

    @property
    def shape(self):
        parts = iter(self.arrays)
        return re.sub("\0", lambda _: "{}[{}]{}".format((a := next(parts))[0], ",".join(map(str, a[1])), a[2]), self.form)

    def called(self, computations):
        return [n for n in re.findall(r"%[\w.\-]+", self.attributes) if n in computations]

    def text(self):
        return f"{'ROOT ' if self.root else ''}{self.name} = {self.shape} {self.op}({self.inside}){self.attributes}"


def element_of(shape, index):
    """The shape of an element of a tuple."""
    depth, start, parts = 0, 1, []
    for at, letter in enumerate(shape):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(shape[start:at].strip())
            start = at + 1
    return parts[index]


QUOTED = r'\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}'
NOT_READ = re.compile(rf", (?:metadata|frontend_attributes|control-predecessors|origin)={QUOTED}|/\*index=\d+\*/")


def modules(path):
    """The computations of each module of a file: name → {instruction's name → Line}, in order."""
    computations, lines = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("HloModule") and computations:
            yield computations
            computations = {}
        if lines is None and line.endswith("{") and line.startswith(("%", "ENTRY ")):
            lines = computations[re.search(r"%[\w.\-]+", line).group()] = {}
        elif line.startswith("}"):
            lines = None
        elif lines is not None and " = " in line:
            text = NOT_READ.sub("", line.strip())
            for name, index in re.findall(r"(%[\w.\-]+)#(\d+)", text):  # an element of a tuple, as XLA 0.12 writes it
                made = f"{name}.element.{index}"
                lines[made] = Line(f"{made} = {element_of(lines[name].shape, int(index))} get-tuple-element({name}), index={index}")
            one = Line(re.sub(r"(%[\w.\-]+)#(\d+)", r"\1.element.\2", text))
            lines[one.name] = one
    if computations:
        yield computations


# What was tuned, and what only says how: no part of the meaning.
TUNED = re.compile(r'"(?:algorithm|tuning_knobs|block_level_fusion_config|triton_gemm_config|reification_cost)":'
                   r'(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\[[^\[\]]*\])|"(?:selected_algorithm|workspace_size)":"?[\w.\-]*"?')
ENTRY = "%main.cut"


class Cut:
    """One call with parameters for its operands (constants that the text has stay): computations by name, the entry last."""

    def __init__(self, one, lines, computations):
        entry, parameters = {}, 0
        for name in one.operands:
            if name in entry:
                continue
            made = lines[name]
            if made.op == "constant" and "..." not in made.inside:
                entry[name] = Line(made.text().removeprefix("ROOT "))
            else:
                entry[name] = Line(f"{name} = {made.shape} parameter({parameters})")
                parameters += 1
        needed, waiting = [], one.called(computations)
        while waiting:
            name = waiting.pop()
            needed = [n for n in needed if n != name] + [name]
            waiting += [n for line in computations[name].values() for n in line.called(computations)]
        self.call = Line(one.text() if one.root else "ROOT " + one.text())
        entry[one.name] = self.call
        self.computations = {n: {k: Line(line.text()) for k, line in computations[n].items()} for n in reversed(needed)}
        self.computations[ENTRY] = entry
        self.smaller = False

    def text(self):
        out = ["HloModule cut, is_scheduled=true", ""]
        for name, lines in self.computations.items():
            out += [f"{'ENTRY ' if name == ENTRY else ''}{name} {{", *(f"  {one.text()}" for one in lines.values()), "}", ""]
        return "\n".join(out)

    def key(self):
        """The same for calls that differ in names and in what was tuned alone."""
        names = {}
        text = re.sub(r"%[\w.\-]+", lambda m: names.setdefault(m.group(), f"%{len(names)}"), TUNED.sub("", self.text()))
        return hashlib.sha256(re.sub(r"u8\[\d+\]\{0\}\)", "u8[])", text).encode()).hexdigest()[:16]

    def elided(self):
        return any(one.op == "constant" and "..." in one.inside for lines in self.computations.values() for one in lines.values())

    def work(self, name=ENTRY):
        """Elements that it makes and reads, of products and convolutions those that they sum."""
        lines = self.computations[name]
        total = 0
        for one in lines.values():
            total += sum(math.prod(a[1]) for a in one.arrays)
            total += math.prod(one.arrays[0][1]) * summed(one, lines) if one.arrays else 0
            total += sum(self.work(n) for n in one.called(self.computations))
        return total


def numbers(text, name):
    """The first `name={1,2}` or `"name":["1","2"]` of a text."""
    m = re.search(rf'\b{name}"?[=:][{{\[]([\d",]*)[}}\]]', text)
    return [int(n) for n in re.findall(r"\d+", m.group(1))] if m else []


def summed(one, lines):
    """Of an element of the first result, how many products are summed."""
    if one.op == "reduce-window":
        return math.prod(int(n) for n in re.search(r"size=([\dx]+)", one.attributes).group(1).split("x"))
    if one.op == "dot" or "dot_dimension_numbers" in one.attributes:
        dims = lines[one.operands[0]].arrays[0][1]
        contracted = numbers(one.attributes, "lhs_contracting_dims") or numbers(one.attributes, "lhs_contracting_dimensions")
        return 2 * math.prod(dims[d] for d in contracted)
    if any(word in one.attributes or word == one.op for word in MATRICES):
        return lines[one.operands[0]].arrays[0][1][-1]
    if c := convolution(one, lines):
        # As many as taps and features of a group for each element of y, whichever of the three is made.
        taps = math.prod(c["w"][1][d] for d in c["w_spatial"]) * c["w"][1][c["w_in"]]
        return max(1, math.prod(c["y"][1]) * taps // max(1, math.prod(one.arrays[0][1])))
    return 0


def convolution(one, lines):
    """The arrays of a convolution by role, and their dimensions; None: it is none."""
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", one.attributes)
    if not labels or len(one.operands) < 2:
        return None
    left, right, made = lines[one.operands[0]].arrays[0], lines[one.operands[1]].arrays[0], one.arrays[0]
    x, w, y = (made, right, left) if "convBackwardInput" in one.attributes else (left, made, right) if "convBackwardFilter" in one.attributes else (left, right, made)
    of = lambda k, letter: labels.group(k).index(letter)
    spatial = lambda k: [of(k, c) for c in "0123456789" if c in labels.group(k)]
    return {"x": x, "w": w, "y": y, "x_batch": of(1, "b"), "x_feature": of(1, "f"), "x_spatial": spatial(1), "w_in": of(2, "i"), "w_out": of(2, "o"),
            "w_spatial": spatial(2), "y_batch": of(3, "b"), "y_feature": of(3, "f"), "y_spatial": spatial(3)}


# --- smaller ---

MOVED = {"reverse", "copy", "convert", "bitcast-convert", "select", "clamp", "sort"}  # beside the elementwise: dimension by dimension


class Together:
    """Which dimensions are divided together: (computation, instruction, array, dimension) in sets."""

    def __init__(self, cut):
        self.cut, self.parent, self.fixed, self.scores = cut, {}, set(), None
        for name, lines in cut.computations.items():
            for one in lines.values():
                self.rule(name, lines, one)

    def root(self, place):
        while (up := self.parent.get(place, place)) != place:
            place = up
        return place

    def tie(self, a, b):
        a, b = self.root(a), self.root(b)
        if a != b:
            self.parent[a] = b
            if a in self.fixed:
                self.fixed.add(b)

    def fix(self, place):
        self.fixed.add(self.root(place))

    def size(self, place):
        return self.cut.computations[place[0]][place[1]].arrays[place[2]][1][place[3]]

    def same(self, c, a, k, b, j):
        """Two arrays dimension by dimension; other sizes stay as they are."""
        lines = self.cut.computations[c]
        left, right = lines[a].arrays[k][1], lines[b].arrays[j][1]
        for d in range(max(len(left), len(right))):
            if len(left) == len(right) and left[d] == right[d]:
                self.tie((c, a, k, d), (c, b, j, d))
            else:
                self.fix_all(c, a), self.fix_all(c, b)

    def fix_all(self, c, name):
        for k, array in enumerate(self.cut.computations[c][name].arrays):
            for d in range(len(array[1])):
                self.fix((c, name, k, d))

    def rule(self, c, lines, one):
        place = lambda name, d, k=0: (c, name, k, d)
        ops = one.operands
        if one.op == "constant" and one.arrays[0][1]:
            self.fix_all(c, one.name)
        elif one.op == "broadcast":
            for k, d in enumerate(numbers(one.attributes, "dimensions")):
                self.tie(place(ops[0], k), place(one.name, d))
        elif one.op == "transpose":
            for d, k in enumerate(numbers(one.attributes, "dimensions")):
                self.tie(place(ops[0], k), place(one.name, d))
        elif one.op in ("bitcast", "reshape"):
            self.grouped(c, ops[0], one.name)
        elif one.op == "reduce":
            gone = numbers(one.attributes, "dimensions")
            for k, name in enumerate(ops[: len(ops) // 2]):
                if k:
                    self.same(c, ops[0], 0, name, 0)
                kept = [d for d in range(len(lines[name].arrays[0][1])) if d not in gone]
                for d, from_ in enumerate(kept):
                    self.tie(place(name, from_), place(one.name, d, k))
        elif one.op == "dot" or "gemm_backend_config" in one.attributes:
            self.product(c, lines, one)
        elif "cudnn_fmha" in one.attributes:
            self.attention(c, lines, one)
        elif conv := convolution(one, lines):
            self.convolved(c, lines, one, conv)
        elif one.op == "slice":
            bounds = re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", one.attributes.split("slice={", 1)[1])
            for d, (low, high, _) in enumerate(bounds):
                if int(low) == 0 and int(high) == lines[ops[0]].arrays[0][1][d] == one.arrays[0][1][d]:
                    self.tie(place(ops[0], d), place(one.name, d))
                else:
                    self.fix(place(ops[0], d)), self.fix(place(one.name, d))
        elif one.op in ("dynamic-slice", "dynamic-update-slice"):
            part = one.name if one.op == "dynamic-slice" else ops[1]
            if one.op == "dynamic-update-slice":
                self.same(c, ops[0], 0, one.name, 0)
            for d, n in enumerate(lines[ops[0]].arrays[0][1]):
                if lines[part].arrays[0][1][d] == n:
                    self.tie(place(ops[0], d), place(part, d))
                else:
                    self.fix(place(ops[0], d)), self.fix(place(part, d))
        elif one.op == "concatenate":
            along = numbers(one.attributes, "dimensions")[0]
            for name in ops:
                for d in range(len(one.arrays[0][1])):
                    if d == along:
                        self.fix(place(name, d)), self.fix(place(one.name, d))
                    else:
                        self.tie(place(name, d), place(one.name, d))
        elif one.op == "fusion":
            self.inside(c, lines, one)
        elif one.op == "scatter":
            self.scattered(c, lines, one)
        elif one.op in MATRICES or any(w in one.attributes for w in MATRICES):
            for name in ops:
                self.square(c, lines, name, one)
        elif one.op == "tuple":
            k = 0
            for name in ops:
                for j in range(len(lines[name].arrays)):
                    for d in range(len(one.arrays[k][1])):
                        self.tie(place(name, d, j), place(one.name, d, k))
                    k += 1
        elif one.op == "get-tuple-element" and len(one.arrays) == 1 and "(" not in lines[ops[0]].form[1:]:
            index = int(re.search(r"index=(\d+)", one.attributes).group(1))
            for d in range(len(one.arrays[0][1])):
                self.tie(place(ops[0], d, index), place(one.name, d))
        elif one.op in MOVED or (ops and one.op not in SHAPED):
            for name in ops:
                if lines[name].arrays[0][1] or one.op not in ("select", "clamp"):
                    for k in range(len(one.arrays)):
                        self.same(c, name, 0, one.name, k)
        elif one.op not in ("parameter", "iota", "constant"):
            for name in (one.name, *ops):
                self.fix_all(c, name)

    def grouped(self, c, a, b):
        """The same elements in memory's order: the major dimensions of equal groups go together, the others stay."""
        order = []
        for name in (a, b):
            _, dims, layout = self.cut.computations[c][name].arrays[0]
            minor = [int(n) for n in re.findall(r"\d+", layout.split(":")[0])] or list(range(len(dims)))[::-1]
            order.append([d for d in minor[::-1] if dims[d] != 1])
        left, right = order
        size = lambda name, d: self.size((c, name, 0, d))
        while left and right:
            i = j = 1
            p, q = size(a, left[0]), size(b, right[0])
            while p != q and i <= len(left) and j <= len(right):
                if p < q:
                    p *= size(a, left[i]) if i < len(left) else 0
                    i += 1
                else:
                    q *= size(b, right[j]) if j < len(right) else 0
                    j += 1
                if not p or not q:
                    return self.fix_all(c, a), self.fix_all(c, b)
            self.tie((c, a, 0, left[0]), (c, b, 0, right[0]))
            for d in left[1:i]:
                self.fix((c, a, 0, d))
            for d in right[1:j]:
                self.fix((c, b, 0, d))
            left, right = left[i:], right[j:]

    def product(self, c, lines, one):
        words = ("dims", "dims") if one.op == "dot" else ("dimensions", "dimensions")
        lb, rb, lc, rc = (numbers(one.attributes, f"{side}_{kind}_{words[0]}") for side, kind in
                          (("lhs", "batch"), ("rhs", "batch"), ("lhs", "contracting"), ("rhs", "contracting")))
        left, right = one.operands[:2]
        for l, r in zip(lc, rc):
            self.tie((c, left, 0, l), (c, right, 0, r))
        out = 0
        for k in range(max(len(lb), len(rb))):
            for name, batch in ((left, lb), (right, rb)):
                if batch:
                    self.tie((c, name, 0, batch[k]), (c, one.name, 0, out))
            out += 1
        for name, batch, gone in ((left, lb, lc), (right, rb, rc)):
            for d in range(len(lines[name].arrays[0][1])):
                if d not in batch and d not in gone:
                    self.tie((c, name, 0, d), (c, one.name, 0, out))
                    out += 1
        result = one.arrays[0][1]
        for name in one.operands[2:]:
            dims = lines[name].arrays[0][1]
            for d, n in enumerate(dims):
                if n == result[len(result) - len(dims) + d]:
                    self.tie((c, name, 0, d), (c, one.name, 0, len(result) - len(dims) + d))
                else:
                    self.fix_all(c, name), self.fix_all(c, one.name)
        for k, array in enumerate(one.arrays[1:], 1):
            if array[1] == result:
                self.same(c, one.name, 0, one.name, k)

    def attention(self, c, lines, one):
        """Batches, heads, lengths and features of the operands and results, by the numbers of two of the products."""
        words = ("lhs_batch", "lhs_contracting", "rhs_batch", "rhs_contracting")
        of = lambda which: [numbers(one.attributes.split(f'"{which}_dot_dimension_numbers"')[1], w + "_dimensions") for w in words]
        rest = lambda name, *taken: next(d for d in range(4) if d not in sum(taken, []))
        back = "Backward" in one.attributes
        q, k, v = one.operands[:3]
        places = {}

        def name_dims(array, **dims):
            for word, d in dims.items():
                place = (c, array[0], array[1], d)
                if word not in places:
                    places[word] = place
                elif self.size(place) == self.size(places[word]):
                    self.tie(place, places[word])
                else:
                    self.fix(place), self.fix(places[word])

        def side(array, batch, length, contracted, letters):
            name_dims(array, B=batch[0], N=batch[1], **{letters[0]: length, letters[1]: contracted})

        lb, lc, rb, rc = of("bmm2_grad_gemm2" if back else "bmm1")
        side((q, 0), lb, rest(q, lb, lc), lc[0], "TH")
        side((k, 0), rb, rest(k, rb, rc), rc[0], "SH")
        if back:
            gradient, out = one.operands[4], one.operands[6 if "Bias" in one.attributes else 5]
            side((gradient, 0), lb, rest(gradient, lb, lc), lc[0], "TV")
            side((out, 0), lb, rest(out, lb, lc), lc[0], "TV")
            side((v, 0), rb, rest(v, rb, rc), rc[0], "SV")
            name_dims((one.operands[3], 0), B=0, N=1, T=2)
            for index, letters in enumerate(("TH", "SH", "SV")):
                side((one.name, index), [0, 1], 2, 3, letters)
        else:
            _, _, rb, rc = of("bmm2")
            side((v, 0), rb, rc[0], rest(v, rb, rc), "SV")
            side((one.name, 0), [0, 1], 2, 3, "TV")
            if len(one.arrays) > 2:
                name_dims((one.name, 1), B=0, N=1, T=2)
        self.scores = [places[w] for w in "BNTS"]
        at = 5 if back else 3
        if "Bias" in one.attributes:
            name_dims((one.operands[at], 0), B=0, N=1, T=2, S=3)
        for name in one.operands[at + ("Bias" in one.attributes) + back :]:  # lengths of sequences, places
            self.fix_all(c, name)
            self.fix(places["B"])

    def convolved(self, c, lines, one, conv):
        roles = {id(conv[r]): r for r in "xwy"}
        names = {}
        for name in one.operands[:2]:
            names[roles[id(lines[name].arrays[0])]] = name
        names[roles[id(one.arrays[0])]] = one.name
        place = lambda role, d: (c, names[role], 0, d)
        if "batch_group_count" in one.attributes:
            for name in names.values():
                self.fix_all(c, name)
        self.tie(place("x", conv["x_batch"]), place("y", conv["y_batch"]))
        for role, word in (("x", "x_feature"), ("w", "w_in"), ("w", "w_out"), ("y", "y_feature")):
            if "feature_group_count" in one.attributes:
                self.fix(place(role, conv[word]))
        if "feature_group_count" not in one.attributes:
            self.tie(place("x", conv["x_feature"]), place("w", conv["w_in"]))
            self.tie(place("w", conv["w_out"]), place("y", conv["y_feature"]))
        for role in "xwy":
            for d in conv[role + "_spatial"]:
                self.fix(place(role, d))
        if len(one.operands) > 2:
            self.tie((c, one.operands[2], 0, 0), place("y", conv["y_feature"]))
        if len(one.operands) > 3:
            self.same(c, one.operands[3], 0, names["y"], 0)

    def square(self, c, lines, name, one):
        """Matrices: what has the size of the triangles' side goes with it."""
        side = (c, one.operands[0], 0, len(lines[one.operands[0]].arrays[0][1]) - 1)
        for who, array in ((name, lines[name].arrays[0]), *((one.name, a) for a in one.arrays[:1])):
            for d, n in enumerate(array[1]):
                place = (c, who, 0, d)
                if n == self.size(side):
                    self.tie(place, side)
                elif lines[name].arrays[0][1] == one.arrays[0][1]:
                    self.tie((c, name, 0, d), (c, one.name, 0, d))
                else:
                    self.fix(place)

    def scattered(self, c, lines, one):
        """Windows go with the operand's dimensions where they fill them, the updates' others with the indices'."""
        count = len(one.arrays)
        window = numbers(one.attributes, "update_window_dims")
        gone = numbers(one.attributes, "inserted_window_dims") + numbers(one.attributes, "input_batching_dims")
        vector = int(re.search(r"index_vector_dim=(\d+)", one.attributes).group(1))
        indices = one.operands[count]
        if "batching" in one.attributes:
            return [self.fix_all(c, n) for n in (one.name, *one.operands)]
        for k in range(count):
            operand, update = one.operands[k], one.operands[count + 1 + k]
            for d in range(len(one.arrays[k][1])):
                self.tie((c, operand, 0, d), (c, one.name, k, d))
            kept = [d for d in range(len(lines[operand].arrays[0][1])) if d not in gone]
            for d, w in zip(kept, window):
                a, b = (c, operand, 0, d), (c, update, 0, w)
                if self.size(a) == self.size(b):
                    self.tie(a, b)
                else:
                    self.fix(a), self.fix(b)
            rows = [d for d in range(len(lines[indices].arrays[0][1])) if d != vector]
            others = [d for d in range(len(lines[update].arrays[0][1])) if d not in window]
            for i, u in zip(rows, others):
                self.tie((c, indices, 0, i), (c, update, 0, u))
        if vector < len(lines[indices].arrays[0][1]):
            self.fix((c, indices, 0, vector))

    def inside(self, c, lines, one):
        body = one.called(self.cut.computations)[0]
        inner = self.cut.computations[body]
        parameters = {int(p.inside): p.name for p in inner.values() if p.op == "parameter"}
        pairs = [(name, parameters[k]) for k, name in enumerate(one.operands)]
        pairs.append((one.name, next(p.name for p in inner.values() if p.root)))
        for outer, within in pairs:
            for k, array in enumerate(inner[within].arrays):
                for d in range(len(array[1])):
                    self.tie((c, outer, k, d), (body, within, k, d))


MATRICES = ("cholesky", "triangular-solve", "potrf", "triangularSolve")
# Instructions of which a rule above says nothing, and whose dimensions are not their operands' one by one.
SHAPED = {"pad", "gather", "scatter", "reduce-window", "select-and-scatter", "custom-call", "while", "conditional", "call", "map", "fft",
          "get-tuple-element", "reduce", "dot", "convolution", "set-dimension-size", "async-start", "async-done", "cholesky", "triangular-solve",
          "topk", "rng-bit-generator"}


def shrink(cut, most):
    """Divides dimensions of a cut until its work is at most `most` elements, as far as that goes."""
    spatial(cut, most)
    if cut.work() <= most:
        return
    together = Together(cut)
    sets = {}
    for c, lines in cut.computations.items():
        for one in lines.values():
            for k, array in enumerate(one.arrays):
                for d in range(len(array[1])):
                    place = (c, one.name, k, d)
                    sets.setdefault(together.root(place), []).append(place)
    free = [places for root, places in sets.items() if root not in together.fixed]
    for least in LEAST:
        while cut.work() > most:
            best = None
            for places in free:
                sizes = [together.size(p) for p in places]
                factor = next((f for f in (2, 3, 5, 7, 11, 13) if all(n % f == 0 and n // f >= least for n in sizes)), None)
                if factor and (best is None or max(sizes) > best[0]):
                    best = (max(sizes), factor, places)
            if not best:
                break
            for c, name, k, d in best[2]:
                cut.computations[c][name].arrays[k][1][d] //= best[1]
            cut.smaller = True
    for lines in cut.computations.values():
        for one in lines.values():
            resize(one, lines)
    if together.scores:
        sizes = ",".join(f'"{together.size(p)}"' for p in together.scores)
        cut.call.attributes = re.sub(r'("intermediate_tensor_shape":\{[^{}]*"dimensions":\[)[^\]]*', rf"\g<1>{sizes}", cut.call.attributes)


def spatial(cut, most):
    """A convolution over fewer places: what its window makes of a smaller x."""
    one, lines = cut.call, cut.computations[ENTRY]
    conv = convolution(one, lines)
    while conv and cut.work() > most:
        window = {k: v.split("x") for k, v in re.findall(r"(\w+)=([\dx_\-]+)", re.search(r"window=\{([^{}]*)\}", one.attributes).group(1))}
        x = [conv["x"][1][d] for d in conv["x_spatial"]]
        k = x.index(max(x))
        get = lambda word, default: window.get(word, [default] * len(x))[k]
        low, high = map(int, get("pad", "0_0").split("_"))
        stride, left, right = int(get("stride", "1")), int(get("lhs_dilate", "1")), int(get("rhs_dilate", "1"))
        reach = (int(get("size", "1")) - 1) * right + 1
        made = lambda n: (low + high + (n - 1) * left + 1 - reach) // stride + 1
        old = conv["y"][1][conv["y_spatial"][k]]
        if made(x[k]) != old or x[k] <= max(8, 2 * reach):
            return
        conv["x"][1][conv["x_spatial"][k]] = n = max(x[k] // 2, 2 * reach, 5)
        conv["y"][1][conv["y_spatial"][k]] = made(n)
        for side in lines[one.operands[3]].arrays if len(one.operands) > 3 else []:
            side[1][conv["y_spatial"][k]] = made(n)
        cut.smaller = True


def resize(one, lines):
    """Sizes that an attribute repeats."""
    if one.op == "slice":
        sizes = iter(zip(lines[one.operands[0]].arrays[0][1], one.arrays[0][1]))

        def bounds(m):
            whole, part = next(sizes)
            return f"[0:{part}]" if whole == part else m.group()

        head, tail = one.attributes.split("slice={", 1)
        inside, rest = tail.split("}", 1)
        one.attributes = head + "slice={" + re.sub(r"\[\d+:\d+(?::\d+)?\]", bounds, inside) + "}" + rest
    if "operand_layout_constraints={" in one.attributes:
        wanted = ", ".join(lines[name].shape for name in one.operands)
        one.attributes = re.sub(r"operand_layout_constraints=\{(?:[^{}]|\{[^{}]*\})*\}", "operand_layout_constraints={" + wanted + "}", one.attributes)
    if one.op == "dynamic-slice":
        one.attributes = re.sub(r"dynamic_slice_sizes=\{[\d,]*\}", "dynamic_slice_sizes={%s}" % ",".join(map(str, one.arrays[0][1])), one.attributes)
