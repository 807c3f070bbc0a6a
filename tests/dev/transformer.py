"""A transformer's forward pass as HLO text, the same for the same numbers: transformer.py [LAYERS] > transformer.hlo

12 layers are 1,260 instructions, reducers' included: what a first look at a real model is timed on.
"""
import sys

BATCH, SEQUENCE, WIDTH, HEADS, HIDDEN = 2, 16, 64, 4, 256
DEPTH = WIDTH // HEADS


class Text:
    def __init__(self):
        self.lines, self.parameters, self.count, self.shared = [], 0, 0, {}

    def put(self, name, shape, operation):
        """One instruction; its name."""
        self.count += 1
        self.lines.append(f"  {name}.{self.count} = f32[{shape}] {operation}")
        return f"{name}.{self.count}"

    def parameter(self, shape):
        self.parameters += 1
        return self.put("p", shape, f"parameter({self.parameters - 1})")

    def scalar(self, value, shape):
        constant = self.put("constant", "", f"constant({value})")
        return self.put("broadcast", shape, f"broadcast({constant}), dimensions={{}}")

    def once(self, value, shape):
        """The same scalar wherever it is asked for; with a shape, spread over it."""
        if (value, shape) not in self.shared:
            self.shared[value, shape] = self.scalar(value, shape) if shape else self.put("constant", "", f"constant({value})")
        return self.shared[value, shape]

    def spread(self, what, shape, dimensions):
        return self.put("broadcast", shape, f"broadcast({what}), dimensions={{{dimensions}}}")

    def two(self, operation, a, b, shape):
        return self.put(operation, shape, f"{operation}({a}, {b})")


def normalised(t, x, rows):
    """Layer normalisation of f32[rows,WIDTH]."""
    full, zero = f"{rows},{WIDTH}", t.once(0, "")
    total = t.put("reduce", str(rows), f"reduce({x}, {zero}), dimensions={{1}}, to_apply=sum")
    mean = t.two("divide", total, t.once(WIDTH, str(rows)), str(rows))
    centred = t.two("subtract", x, t.spread(mean, full, 0), full)
    squares = t.two("multiply", centred, centred, full)
    total = t.put("reduce", str(rows), f"reduce({squares}, {zero}), dimensions={{1}}, to_apply=sum")
    variance = t.two("divide", total, t.once(WIDTH, str(rows)), str(rows))
    shifted = t.two("add", variance, t.once(1e-5, str(rows)), str(rows))
    factor = t.spread(t.put("rsqrt", str(rows), f"rsqrt({shifted})"), full, 0)
    scaled = t.two("multiply", centred, factor, full)
    scaled = t.two("multiply", scaled, t.spread(t.parameter(str(WIDTH)), full, 1), full)
    return t.two("add", scaled, t.spread(t.parameter(str(WIDTH)), full, 1), full)


def dense(t, x, rows, width, out):
    product = t.put("dot", f"{rows},{out}", f"dot({x}, {t.parameter(f'{width},{out}')}), "
                    "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    return t.two("add", product, t.spread(t.parameter(str(out)), f"{rows},{out}", 1), f"{rows},{out}")


def attention(t, x, rows):
    parts, split = [], f"{BATCH},{SEQUENCE},{HEADS},{DEPTH}"
    heads = f"{BATCH},{HEADS},{SEQUENCE},{DEPTH}"
    for _ in range(3):
        reshaped = t.put("reshape", split, f"reshape({dense(t, x, rows, WIDTH, WIDTH)})")
        parts.append(t.put("transpose", heads, f"transpose({reshaped}), dimensions={{0,2,1,3}}"))
    query, key, value = parts
    square, line = f"{BATCH},{HEADS},{SEQUENCE},{SEQUENCE}", f"{BATCH},{HEADS},{SEQUENCE}"
    scores = t.put("dot", square, f"dot({query}, {key}), lhs_batch_dims={{0,1}}, lhs_contracting_dims={{3}}, "
                   "rhs_batch_dims={0,1}, rhs_contracting_dims={3}")
    scores = t.two("multiply", scores, t.scalar(DEPTH ** -0.5, square), square)
    least = t.put("constant", "", "constant(-inf)")
    largest = t.put("reduce", line, f"reduce({scores}, {least}), dimensions={{3}}, to_apply=largest")
    shifted = t.two("subtract", scores, t.spread(largest, square, "0,1,2"), square)
    powers = t.put("exponential", square, f"exponential({shifted})")
    total = t.put("reduce", line, f"reduce({powers}, {t.once(0, '')}), dimensions={{3}}, to_apply=sum")
    weights = t.two("divide", powers, t.spread(total, square, "0,1,2"), square)
    mixed = t.put("dot", heads, f"dot({weights}, {value}), lhs_batch_dims={{0,1}}, lhs_contracting_dims={{3}}, "
                  "rhs_batch_dims={0,1}, rhs_contracting_dims={2}")
    back = t.put("transpose", split, f"transpose({mixed}), dimensions={{0,2,1,3}}")
    return dense(t, t.put("reshape", f"{rows},{WIDTH}", f"reshape({back})"), rows, WIDTH, WIDTH)


def gelu(t, x, shape):
    cube = t.two("multiply", t.two("multiply", x, x, shape), x, shape)
    inner = t.two("add", x, t.two("multiply", cube, t.scalar(0.044715, shape), shape), shape)
    gate = t.put("tanh", shape, f"tanh({t.two('multiply', inner, t.scalar(0.797885, shape), shape)})")
    half = t.two("multiply", x, t.scalar(0.5, shape), shape)
    return t.two("multiply", half, t.two("add", gate, t.scalar(1, shape), shape), shape)


def transformer(layers=12):
    t, rows = Text(), BATCH * SEQUENCE
    full = f"{rows},{WIDTH}"
    x = t.parameter(full)
    for _ in range(layers):
        x = t.two("add", x, attention(t, normalised(t, x, rows), rows), full)
        hidden = dense(t, normalised(t, x, rows), rows, WIDTH, HIDDEN)
        hidden = gelu(t, hidden, f"{rows},{HIDDEN}")
        x = t.two("add", x, dense(t, hidden, rows, HIDDEN, WIDTH), full)
    t.lines[-1] = "  ROOT " + t.lines[-1].lstrip()
    reducers = "".join(f"{name} {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] {op}(a, b)\n}}\n\n"
                       for name, op in (("sum", "add"), ("largest", "maximum")))
    text = "HloModule transformer\n\n" + reducers + "ENTRY main {\n" + "\n".join(t.lines) + "\n}\n"
    return text, t.count + 6


if __name__ == "__main__":
    sys.stdout.write(transformer(int(sys.argv[1]) if len(sys.argv) > 1 else 12)[0])
