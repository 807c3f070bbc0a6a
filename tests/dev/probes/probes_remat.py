#!/usr/bin/env python3
"""Writes scheduled programs that need more memory than a small card has, for rematerialization: by chance, of kernels of one and of two results,
bitcasts, products, loops, branches, updates in place and control dependencies.

  probes_remat.py HLO_REPLAY DIR COUNT [SEED]          DIR/N.hlo, and DIR/N.hlo.pb for XLA

Then, for several sizes of the card, `oracle_proto.py DUMP --only post-scheduling-passes,remat-pipeline,rematerialization --memory BYTES DIR/*.pb` and
agreement.py over DUMP/* with `opt --passes=rematerialization{memory=BYTES}`: arguments and results are small beside what lies between them."""
import pathlib
import random
import subprocess
import sys

WIDE = ["f32[64,32]", "f32[32,64]", "f32[2048]", "f32[16,128]", "f32[2,1024]"]


class Program:
    def __init__(self, chance):
        self.chance, self.bodies, self.taken = chance, [], 0

    def name(self, prefix="v"):
        self.taken += 1
        return f"{prefix}.{self.taken}"

    def kernel(self, rows, operands, shapes):
        """A fusion of elementwise operations; with two shapes it gives two arrays."""
        k, body = self.name("kernel"), self.name("body")
        lines = [f"  p{n}.{body} = {shape} parameter({n})" for n, (_, shape) in enumerate(operands)]
        made = []
        for n, shape in enumerate(shapes):
            at = f"p{(n + self.chance.randrange(len(operands))) % len(operands)}.{body}"
            here = operands[int(at[1 : at.index('.')])][1]
            if here != shape:
                lines.append(f"  b{n}.{body} = {shape} bitcast({at})")
                at = f"b{n}.{body}"
            lines.append(f"  r{n}.{body} = {shape} {self.chance.choice(['negate', 'abs', 'cosine', 'tanh'])}({at})")
            made.append(f"r{n}.{body}")
        used = {line.split("(")[1].split(")")[0] for line in lines if "parameter" not in line}
        for n, (_, shape) in enumerate(operands):
            if f"p{n}.{body}" not in used:
                at = made[0]
                if shape != shapes[0]:
                    lines.append(f"  c{n}.{body} = {shapes[0]} bitcast(p{n}.{body})")
                else:
                    lines.append(f"  c{n}.{body} = {shapes[0]} sine(p{n}.{body})")
                lines.append(f"  s{n}.{body} = {shapes[0]} add({at}, c{n}.{body})")
                made[0] = f"s{n}.{body}"
        result = shapes[0] if len(shapes) == 1 else "(" + ", ".join(shapes) + ")"
        if len(shapes) > 1:
            lines.append(f"  ROOT t.{body} = {result} tuple({', '.join(made)})")
        else:
            last = next(n for n in range(len(lines) - 1, -1, -1) if lines[n].strip().startswith(made[0] + " "))
            lines[last] = lines[last].replace("  ", "  ROOT ", 1)
        self.bodies.append(f"{body} {{\n" + "\n".join(lines) + "\n}\n")
        kind = self.chance.choice(["kLoop", "kLoop", "kInput"])
        rows.append(f"{k} = {result} fusion({', '.join(name for name, _ in operands)}), kind={kind}, calls={body}")
        if len(shapes) == 1:
            return [(k, shapes[0])]
        out = []
        for n, shape in enumerate(shapes):
            g = self.name("part")
            rows.append(f"{g} = {shape} get-tuple-element({k}), index={n}")
            out.append((g, shape))
        return out

    def spread(self, rows, small):
        """A kernel that makes much of little: the first choice of whoever looks for what to compute again."""
        k, body, shape = self.name("spread"), self.name("body"), self.chance.choice(WIDE)
        self.bodies.append(f"{body} {{\n  p.{body} = f32[] parameter(0)\n  ROOT b.{body} = {shape} broadcast(p.{body}), dimensions={{}}\n}}\n")
        rows.append(f"{k} = {shape} fusion({small}), kind=kLoop, calls={body}")
        return [(k, shape)]

    def block(self, rows, values, small, size, depth):
        for _ in range(size):
            which, pick = self.chance.random(), lambda: self.chance.choice(values[-8:] if self.chance.random() < 0.35 else values)
            if which < 0.2 and small:
                values += self.spread(rows, self.chance.choice(small))
            elif which < 0.55:
                values += self.kernel(rows, [pick() for _ in range(self.chance.choice([1, 1, 2]))], [self.chance.choice(WIDE)])
            elif which < 0.75:
                values += self.kernel(rows, [pick() for _ in range(self.chance.choice([1, 2]))], [self.chance.choice(WIDE), self.chance.choice(WIDE)])
            elif which < 0.87:
                b, (of, _), shape = self.name("cast"), pick(), self.chance.choice(WIDE)
                rows.append(f"{b} = {shape} bitcast({of})")
                values.append((b, shape))
            elif which < 0.94 or depth == 0:
                (a, shape), n = pick(), self.name("plain")
                other = [name for name, s in values if s == shape]
                rows.append(f"{n} = {shape} add({a}, {self.chance.choice(other)})")
                if self.chance.random() < 0.3 and len(rows) > 3:
                    before = rows[self.chance.randrange(len(rows) - 1)].split(" ")[0]
                    rows[-1] += f", control-predecessors={{{before}}}"
                values.append((n, shape))
            else:
                values += self.loop(rows, [pick() for _ in range(2)], depth - 1)

    def loop(self, rows, state, depth):
        body, cond, whole = self.name("body"), self.name("cond"), "(" + ", ".join(["s32[]"] + [shape for _, shape in state]) + ")"
        inner = [f"s.{body} = {whole} parameter(0)", f"i.{body} = s32[] get-tuple-element(s.{body}), index=0", f"one.{body} = s32[] constant(1)", f"j.{body} = s32[] add(i.{body}, one.{body})"]
        values = []
        for n, (_, shape) in enumerate(state):
            inner.append(f"x{n}.{body} = {shape} get-tuple-element(s.{body}), index={n + 1}")
            values.append((f"x{n}.{body}", shape))
        self.block(inner, values, [], self.chance.randrange(4, 10), depth)
        last = [self.chance.choice([name for name, shape in values if shape == wanted]) for _, wanted in state]
        inner.append(f"ROOT r.{body} = {whole} tuple(j.{body}, {', '.join(last)})")
        self.bodies.append(f"{body} {{\n" + "".join(f"  {row}\n" for row in inner) + "}\n")
        self.bodies.append(f"{cond} {{\n  s.{cond} = {whole} parameter(0)\n  i.{cond} = s32[] get-tuple-element(s.{cond}), index=0\n  n.{cond} = s32[] constant(2)\n  ROOT c.{cond} = pred[] compare(i.{cond}, n.{cond}), direction=LT\n}}\n")
        z, init, w = self.name("zero"), self.name("init"), self.name("loop")
        rows += [f"{z} = s32[] constant(0)", f"{init} = {whole} tuple({z}, {', '.join(name for name, _ in state)})", f"{w} = {whole} while({init}), condition={cond}, body={body}"]
        out = []
        for n, (_, shape) in enumerate(state):
            g = self.name("left")
            rows.append(f"{g} = {shape} get-tuple-element({w}), index={n + 1}")
            out.append((g, shape))
        return out


def program(seed):
    p = Program(random.Random(seed))
    rows, values = ["p0 = f32[] parameter(0)", "p1 = f32[2048] parameter(1)"], [("p1", "f32[2048]")]
    p.block(rows, values, ["p0"], p.chance.randrange(12, 60), 1)
    ends = [name for name, shape in values if shape == "f32[2048]"]
    last = [f"ROOT end = (f32[2048], f32[2048]) tuple({ends[-1]}, {p.chance.choice(ends)})"] if p.chance.random() < 0.5 else [f"ROOT end = f32[2048] negate({ends[-1]})"]
    return f"HloModule m{seed}, is_scheduled=true\n" + "".join(p.bodies) + "ENTRY main {\n" + "".join(f"  {row}\n" for row in rows + last) + "}\n"


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    folder, first = pathlib.Path(sys.argv[2]), int(sys.argv[4]) if len(sys.argv) == 5 else 1
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + int(sys.argv[3])):
        file = folder / f"{seed}.hlo"
        file.write_text(program(seed))
        done = subprocess.run([sys.argv[1], "convert", file, file.with_suffix(".hlo.pb")], capture_output=True, text=True)
        if done.returncode:
            print(f"{file}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
