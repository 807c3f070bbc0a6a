#!/usr/bin/env python3
"""Does `hlo-replay verify` accept what XLA's verifier accepts, and refuse what it refuses?

verify_mutants.py PROGRAM DUMPS... --pythons=A,B --cache=FOLDER [--seed=N] [--count=N] [--list=KIND] [--kinds=A,B] [--holding=TEXT] [--limit=BYTES]

Takes small stage texts (*.txt below the folders DUMPS), changes one thing in each (a shape, an operand, an attribute, a group, a computation ...), and asks the interpreters A and B, which
have two releases of XLA, and the program. XLA is asked in one process: jaxlib verifies what a registered transformation hands back before it goes on (../shared/oracle/verify.py, whose
verdict this is), and a second transformation behind the verifier ends the compilation there. A text that ends the process is "unclear" and counts nowhere, as does one on which the two
releases do not agree, and a change of what the oracle takes from elsewhere (counts of devices, the entry's layout); a text that XLA's parser refuses is told apart. Layouts do not count in
that place of XLA's CPU pipeline, and precisions may be mixed: the program is asked likewise. Verdicts are kept in the cache by the text's hash.

Small stages have no collectives with groups: `--holding=replica_groups={{ --limit=400000 --kinds=groups` looks at larger ones, for those alone.
"""
import argparse
import collections
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import select
import subprocess
import sys

SEED = 20261127  # fixed before the first run
LIMIT = 60_000
PAUSE = 20  # seconds for one verdict


# --- XLA, in a process of its own ---


def child():
    import logging

    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import jax
    from jax.extend import xla as hook
    from jaxlib import _hlo

    jax.numpy.zeros(())
    handed, reached = [], []

    def swap(_):
        return handed.pop() if handed else None

    def stop(_):
        if reached is not None and armed:
            reached.append(1)
            raise RuntimeError("behind the verifier")
        return None

    armed = []
    hook.register_hlo_module_transformation(swap, name="verify", stage=hook.PipelineStage.PRE_SCHEDULER, platforms="cpu")
    hook.register_hlo_module_transformation(stop, name="stop", stage=hook.PipelineStage.POST_SCHEDULER, platforms="cpu")
    leaves = lambda s: sum((leaves(part) for part in s.tuple_shapes()), []) if s.is_tuple() else [s]
    described = lambda s: jax.ShapeDtypeStruct(s.dimensions(), s.numpy_dtype())

    def verdict(text):
        try:
            proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        except Exception as error:
            return "unreadable", str(error)[-400:]
        try:
            shape = _hlo.XlaComputation(proto).program_shape()
            if any(part.is_tuple() for part in shape.parameter_shapes()):
                return "unclear", "tuple parameter"
            results = [described(part) for part in leaves(shape.result_shape())]
            made = lambda *_: tuple(jax.numpy.zeros(p.shape, p.dtype) for p in results) if shape.result_shape().is_tuple() else jax.numpy.zeros(results[0].shape, results[0].dtype)
            lowered = jax.jit(made, keep_unused=True).lower(*[described(part) for part in shape.parameter_shapes()])
        except Exception as error:
            return "unclear", str(error)[:400]
        handed[:], reached[:], armed[:] = [proto], [], [1]
        try:
            lowered.compile()
            return "ok", ""
        except Exception as error:
            message = str(error)
            if reached:
                return "ok", ""
            if "hlo_module.cc" in message:
                return "unclear", message[:400]
            return ("refused" if re.search("INTERNAL|FAILED_PRECONDITION|INVALID_ARGUMENT", message) else "unclear"), message[:400]
        finally:
            armed.clear()

    for line in sys.stdin:
        answers.write(json.dumps(verdict(json.loads(line))) + "\n")
        answers.flush()


class Oracle:
    def __init__(self, python, cache):
        self.python, self.process = python, None
        self.path = cache / f"verdicts-{hashlib.sha1(python.encode()).hexdigest()[:8]}.jsonl"
        self.known = {}
        if self.path.exists():
            for line in self.path.open():
                key, verdict, message = json.loads(line)
                self.known[key] = (verdict, message)
        self.file = self.path.open("a")

    def ask(self, text):
        key = hashlib.sha1(text.encode()).hexdigest()
        if key not in self.known:
            self.known[key] = tuple(self._ask(text))
            self.file.write(json.dumps([key, *self.known[key]]) + "\n")
            self.file.flush()
        return self.known[key]

    def _ask(self, text):
        if self.process is None:
            env = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1", JAX_ENABLE_X64="1", OMP_NUM_THREADS="1")
            self.process = subprocess.Popen([self.python, __file__, "--child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        try:
            self.process.stdin.write(json.dumps(text).encode() + b"\n")
            self.process.stdin.flush()
            ready = select.select([self.process.stdout], [], [], PAUSE)[0]
            line = self.process.stdout.readline() if ready else b""
        except BrokenPipeError:
            line = b""
        if line:
            return json.loads(line)
        self.process.kill()
        self.process.wait()
        self.process = None
        return "unclear", "the process ended"


# --- one change ---

TYPES = ["f32", "bf16", "f16", "s32", "u32", "pred", "f64", "s8", "c64"]
SHAPE = re.compile(r"\b(pred|[sufc]\d+\w*|bf16)\[([0-9,]*)\](\{[^{}]*\})?")
LINE = re.compile(r"^(\s+)(ROOT )?(%?[\w.\-]+) = (.*)$")
OPCODE = re.compile(r"(?<=[\s)])([a-z][a-z0-9\-]*)\(")
SWAPS = [["add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or", "xor", "shift-left", "power", "remainder", "atan2", "complex"],
         ["negate", "abs", "exponential", "tanh", "not", "sqrt", "floor", "sign", "copy", "convert", "bitcast", "is-finite", "popcnt", "real", "imag", "reshape", "optimization-barrier"],
         ["all-reduce", "all-reduce-start"], ["all-gather-done", "all-reduce-done", "copy-done", "async-done", "collective-permute-done"], ["call", "map", "fusion"], ["send", "recv"], ["send-done", "recv-done"],
         ["slice", "dynamic-slice"], ["parameter", "iota", "constant"], ["broadcast", "transpose", "reshape"], ["tuple", "after-all", "opt-barrier"], ["get-tuple-element", "bitcast"]]


class Text:
    """Lines of a module, and which computation each is in."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.inside, self.comps, comp = [], [], -1
        for line in self.lines:
            if re.match(r"^(ENTRY )?%?[\w.\-]+ .*\{$|^(ENTRY )?%?[\w.\-]+ \{$", line):
                comp = len(self.comps)
                self.comps.append(line.removeprefix("ENTRY ").split()[0])
                self.inside.append(-1)
            else:
                if line.startswith("}"):
                    comp = -1
                self.inside.append(comp if LINE.match(line) else -1)
        self.rows = [k for k, at in enumerate(self.inside) if at >= 0]

    def parts(self, k):
        """head up to the opcode, opcode, operands, attributes"""
        line = self.lines[k]
        found = OPCODE.search(line, line.index(" = ") + 2)
        if not found:
            return None
        depth, at = 0, found.end() - 1
        for at in range(found.end() - 1, len(line)):
            depth += {"(": 1, ")": -1}.get(line[at], 0)
            if depth == 0:
                break
        return line[: found.start()], found.group(1), line[found.end() : at], line[at + 1 :]

    def with_line(self, k, line):
        return "\n".join(self.lines[:k] + [line] + self.lines[k + 1 :])


def names(operands):
    return list(re.finditer(r"%[\w.\-]+", operands))


def replaced(text, match, new):
    return text[: match.start()] + new + text[match.end() :]


def other_number(chance, value):
    return str(chance.choice([value + 1, max(value - 1, 0), value * 2 + 1, 0, 1, value + 7, -1 if chance.random() < 0.2 else value + 2]))


def change_shape(what):
    def change(chance, t):
        k = chance.choice(t.rows)
        parts = t.parts(k)
        if not parts:
            return None
        found = [m for m in SHAPE.finditer(parts[0]) if what == "type" or m.group(2)]
        if not found:
            return None
        m = chance.choice(found)
        kind, dims, layout = m.group(1), m.group(2), m.group(3) or ""
        if what == "type":
            kind = chance.choice([x for x in TYPES if x != kind])
        elif what == "dimension":
            sizes = dims.split(",")
            at = chance.randrange(len(sizes))
            size = int(sizes[at])
            sizes[at] = str(chance.choice([size + 1, max(size - 1, 0), size * 2]))
            dims = ",".join(sizes)
        elif what == "rank":
            sizes = dims.split(",")
            return t.with_line(k, replaced(t.lines[k], m, f"{kind}[{','.join(sizes[:-1] if chance.random() < 0.5 else sizes + ['1'])}]"))
        elif what == "layout":
            order = layout[1:-1].split(":")[0].split(",") if layout else []
            if len(order) < 2:
                return None
            fresh = order[:]
            chance.shuffle(fresh)
            layout = "{" + ",".join(fresh) + layout[1:-1][len(",".join(order)) :] + "}"
        elif what == "memory":
            if not layout or ":" in layout:
                return None
            layout = layout[:-1] + f":S({chance.choice([1, 2, 5])})}}"
        return t.with_line(k, replaced(t.lines[k], m, f"{kind}[{dims}]{layout}"))

    return change


def change_operand(what):
    def change(chance, t):
        k = chance.choice(t.rows)
        parts = t.parts(k)
        found = names(parts[2]) if parts else []
        if not found:
            return None
        m = chance.choice(found)
        if what == "other":
            before = [LINE.match(t.lines[r]).group(3) for r in t.rows if t.inside[r] == t.inside[k] and r < k]
            before = [n for n in before if n != m.group()]
            if not before:
                return None
            fresh = replaced(parts[2], m, chance.choice(before))
        elif what == "drop":
            shown = [x.group() for x in found if x is not m]
            fresh = ", ".join(shown)
        elif what == "twice":
            fresh = parts[2] + ", " + m.group()
        else:  # order
            if len(found) < 2:
                return None
            shown = [x.group() for x in found]
            a, b = chance.sample(range(len(shown)), 2)
            shown[a], shown[b] = shown[b], shown[a]
            fresh = ", ".join(shown)
        if "[" in parts[2] and what != "other":
            return None  # operands with shapes
        return t.with_line(k, f"{parts[0]}{parts[1]}({fresh}){parts[3]}")

    return change


def change_opcode(chance, t):
    k = chance.choice(t.rows)
    parts = t.parts(k)
    for family in SWAPS:
        if parts and parts[1] in family:
            return t.with_line(k, f"{parts[0]}{chance.choice([x for x in family if x != parts[1]])}({parts[2]}){parts[3]}")
    return None


def attributes(rest):
    """spans of `, name=value` within braces and quotes"""
    out, depth, quoted, start = [], 0, False, None
    for at, c in enumerate(rest + ","):
        if c == '"' and rest[at - 1 : at] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += {"{": 1, "}": -1, "(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            if start is not None:
                out.append((start, at))
            start = at
    return out


SPECIAL = ("metadata", "backend_config", "frontend_attributes", "sharding", "replica_groups", "source_target_pairs", "channel_id", "to_apply", "calls", "body", "condition", "select", "scatter",
           "control-predecessors", "origin", "original_value", "branch_computations", "called_computations", "async_execution_thread", "statistics", "is_host_transfer")


def change_attribute(wanted, drop=False):
    def change(chance, t):
        rows = [k for k in t.rows if any(f", {w}=" in t.lines[k] for w in wanted)] if wanted else t.rows
        if not rows:
            return None
        k = chance.choice(rows)
        parts = t.parts(k)
        if not parts:
            return None
        spans = [s for s in attributes(parts[3]) if (parts[3][s[0] : s[1]][2:].split("=")[0] in wanted if wanted else not parts[3][s[0] : s[1]][2:].startswith(SPECIAL))]
        if not spans:
            return None
        a, b = chance.choice(spans)
        head = f"{parts[0]}{parts[1]}({parts[2]})"
        if drop:
            return t.with_line(k, head + parts[3][:a] + parts[3][b:])
        numbers = [m for m in re.finditer(r"(?<![\w.\-])\d+(?![\w.])|(?<=[x_])\d+", parts[3][a:b])]
        if not numbers:
            return None
        m = chance.choice(numbers)
        return t.with_line(k, head + parts[3][:a] + replaced(parts[3][a:b], m, other_number(chance, int(m.group()))) + parts[3][b:])

    return change


def change_computation(chance, t):
    rows = [k for k in t.rows if re.search(r"(to_apply|calls|body|condition|select|scatter)=%", t.lines[k])]
    if not rows or len(t.comps) < 3:
        return None
    k = chance.choice(rows)
    m = chance.choice(list(re.finditer(r"\b(to_apply|calls|body|condition|select|scatter)=(%[\w.\-]+)", t.lines[k])))
    return t.with_line(k, replaced(t.lines[k], m, m.group(1) + "=" + chance.choice([c for c in t.comps if c != m.group(2)])))


def change_thread(chance, t):
    k = chance.choice([k for k, line in enumerate(t.lines) if "async_execution_thread" in line] or [-1])
    return None if k < 0 else t.with_line(k, re.sub(r', (async_)?execution_thread="\w+"', chance.choice(["", ', async_execution_thread="other"']), t.lines[k], count=1))


def change_add(chance, t):
    k = chance.choice(t.rows)
    extra = chance.choice(["sharding={replicated}", "sharding={devices=[2,2]<=[4]}", "sharding={maximal device=3}", "sharding={devices=[2,1]0,1}", "sharding={{replicated}, {replicated}}", "sharding={manual}",
                           "control-predecessors={%s}", "channel_id=1", 'origin={{"a"}}', "output_to_operand_aliasing={{}: (0, {})}", "to_apply=%c", "calls=%c", "dimensions={0}", "use_global_device_ids=true",
                           "operand_precision={highest,highest}", "is_host_transfer=true", 'frontend_attributes={a="b"}', "is_composite=true", "custom_call_has_side_effect=true"])
    extra = extra.replace("%s", LINE.match(t.lines[chance.choice(t.rows)]).group(3)).replace("%c", chance.choice(t.comps) if t.comps else "%x")
    return t.with_line(k, t.lines[k] + ", " + extra)


def change_header(chance, t):
    line = t.lines[0]
    if chance.random() < 0.4:
        m = chance.choice([m for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", line)] or [None])
        return t.with_line(0, replaced(line, m, other_number(chance, int(m.group())))) if m else None
    if chance.random() < 0.3:
        m = chance.choice(list(SHAPE.finditer(line)) or [None])
        return t.with_line(0, replaced(line, m, f"{chance.choice(TYPES)}[{m.group(2)}]{m.group(3) or ''}")) if m else None
    extra = chance.choice(["num_partitions=2", "num_partitions=8", "replica_count=4", "input_output_alias={ {}: (0, {}, may-alias) }", "input_output_alias={ {0}: (0, {}, may-alias) }",
                           "input_output_alias={ {0}: (0, {}), {1}: (0, {}) }", "buffer_donor={ (0, {}) }", "buffer_donor={ (1, {0}) }"])
    return None if extra.split("=")[0] in line else t.with_line(0, line + ", " + extra)


def change_root(chance, t):
    comp = chance.randrange(len(t.comps)) if t.comps else 0
    rows = [k for k in t.rows if t.inside[k] == comp]
    roots = [k for k in rows if "ROOT " in t.lines[k]]
    if len(rows) < 2 or not roots:
        return None
    to = chance.choice([k for k in rows if k != roots[0]])
    lines = t.lines[:]
    lines[roots[0]] = lines[roots[0]].replace("ROOT ", "", 1)
    lines[to] = re.sub(r"^(\s+)", r"\1ROOT ", lines[to], count=1)
    return "\n".join(lines)


def change_order(chance, t):
    k = chance.choice(t.rows)
    near = [r for r in t.rows if t.inside[r] == t.inside[k] and 0 < abs(r - k) < 6]
    if not near:
        return None
    lines, r = t.lines[:], chance.choice(near)
    lines[k], lines[r] = lines[r], lines[k]
    return "\n".join(lines)


def change_parameter(chance, t):
    rows = [k for k in t.rows if " parameter(" in t.lines[k]]
    if not rows:
        return None
    k = chance.choice(rows)
    return t.with_line(k, re.sub(r" parameter\((\d+)\)", lambda m: f" parameter({chance.choice([int(m.group(1)) + 1, max(int(m.group(1)) - 1, 0)])})", t.lines[k]))


def change_drop(chance, t):
    k = chance.choice(t.rows)
    if "ROOT " in t.lines[k] or any(LINE.match(t.lines[k]).group(3) in re.findall(r"%[\w.\-]+", t.parts(r)[2]) for r in t.rows if r != k and t.parts(r)):
        return None
    return "\n".join(t.lines[:k] + t.lines[k + 1 :])


KINDS = {
    "shape: dimension": change_shape("dimension"), "shape: type": change_shape("type"), "shape: rank": change_shape("rank"), "shape: layout": change_shape("layout"), "shape: memory": change_shape("memory"),
    "operand: other": change_operand("other"), "operand: dropped": change_operand("drop"), "operand: one more": change_operand("twice"), "operand: order": change_operand("order"),
    "opcode": change_opcode, "attribute: number": change_attribute(()), "attribute: dropped": change_attribute((), drop=True),
    "attribute: dimensions": change_attribute(("dimensions", "slice", "padding", "window", "index", "iota_dimension", "dynamic_slice_sizes")),
    "attribute: numbers of products": change_attribute(("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims", "dim_labels", "offset_dims", "collapsed_slice_dims", "start_index_map",
                                                        "index_vector_dim", "slice_sizes", "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")),
    "groups": change_attribute(("replica_groups", "source_target_pairs", "channel_id")), "groups: dropped": change_attribute(("replica_groups", "source_target_pairs", "channel_id", "use_global_device_ids"), drop=True),
    "sharding": change_attribute(("sharding",)), "computation": change_computation, "thread": change_thread, "something added": change_add, "header": change_header, "root": change_root,
    "order": change_order, "parameter": change_parameter, "instruction dropped": change_drop,
}


def mutants(bases, seed, count, rare=False, kinds=()):
    """`rare`: kinds that only few stages allow, groups and threads, are looked for in all of them (the first run gave a kind up where 60 stages by chance did not allow it)."""
    chance, out, kinds = random.Random(seed), [], list(kinds or KINDS)
    texts = [(path, Text(text)) for path, text in bases]
    while len(out) < count and kinds:
        kind = chance.choice(kinds)
        tries = itertools.chain((chance.choice(texts) for _ in range(60)), chance.sample(texts, len(texts)) if rare else ())
        for path, t in tries:
            made = KINDS[kind](chance, t) if t.rows else None
            if made and made != "\n".join(t.lines):
                out.append((kind, path, made))
                break
        else:
            kinds.remove(kind)
    return out


def candidates(folders, seed, per_folder=14, limit=LIMIT, holding=""):
    chance, out = random.Random(seed), []
    for root in folders:
        here = collections.defaultdict(list)
        for path in sorted(pathlib.Path(root).rglob("*.txt")):
            if path.stat().st_size < limit:
                with path.open(errors="replace") as file:
                    if file.readline().startswith("HloModule") and (not holding or holding in file.read()):
                        here[path.parent].append(path)
        for folder in sorted(here):
            chance.shuffle(here[folder])
            out += here[folder][:per_folder]
    return out


def asked(text):
    """The text without what the oracle does not see: its module takes devices and the entry's layout from the program that it stands in for."""
    head, _, rest = text.partition("\n")
    at = head.find("entry_computation_layout={")
    if at >= 0:
        depth, end = 0, at + len("entry_computation_layout=")
        while end < len(head):
            depth += {"{": 1, "}": -1}.get(head[end], 0)
            end += 1
            if depth == 0:
                break
        head = head[:at].rstrip(", ") + head[end:]
    return re.sub(r", (num_partitions|replica_count)=-?\d+", "", head) + "\n" + rest


def ours(program, text, path):
    """By the rules that jaxlib's verifier goes by there: layouts do not count, f32 may stand beside bf16."""
    path.write_text(asked(text))
    done = subprocess.run([program, "verify", "--layouts=free", "--allow-mixed-precision", str(path)], capture_output=True, text=True, errors="replace")
    return {0: "ok", 1: "refused"}.get(done.returncode, "unreadable" if done.returncode == 2 else "crash"), done.stderr.strip().split("\n")[0][-300:]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("dumps", nargs="+")
    arguments.add_argument("--pythons", required=True)
    arguments.add_argument("--cache", required=True)
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--count", type=int, default=2000)
    arguments.add_argument("--rare", action="store_true")
    arguments.add_argument("--kinds", default="", help="these kinds of changes alone")
    arguments.add_argument("--holding", default="", help="stages that hold this text alone")
    arguments.add_argument("--limit", type=int, default=LIMIT, help="bytes of the largest stage")
    arguments.add_argument("--list", default="", help="prints those on which we differ, whose kind begins so")
    a = arguments.parse_args()
    cache = pathlib.Path(a.cache)
    cache.mkdir(exist_ok=True)
    oracles = [Oracle(p, cache) for p in a.pythons.split(",")]
    bases = []
    for path in candidates(a.dumps, SEED, limit=a.limit, holding=a.holding):
        text = path.read_text(errors="replace")
        if all(o.ask(text)[0] == "ok" for o in oracles):
            bases.append((path, text))
    print(f"{len(bases)} stages to begin with", flush=True)
    table, differ, unlike, unclear, unasked = collections.defaultdict(collections.Counter), [], 0, 0, 0
    texts = dict(bases)
    for kind, path, text in mutants(bases, a.seed, a.count, a.rare, [k for k in KINDS if k in a.kinds.split(",")]):
        verdicts = [o.ask(text) for o in oracles]
        said = {v for v, _ in verdicts}
        if "unclear" in said:
            unclear += 1
            continue
        accepts = {v == "ok" for v in said}
        if len(accepts) > 1:
            unlike += 1
            continue
        if asked(text) == asked(texts[path]):
            unasked += 1
            continue
        mine, message = ours(a.program, text, cache / "mutant.hlo")
        truth = "accepted" if True in accepts else "unreadable" if "unreadable" in said else "refused"
        table[kind][truth, mine == "ok"] += 1
        if (mine == "ok") != (truth == "accepted"):
            differ.append({"kind": kind, "base": path.name, "xla": truth, "says": verdicts[0][1], "ours": mine, "message": message, "key": hashlib.sha1(text.encode()).hexdigest()})
            (cache / "differ").mkdir(exist_ok=True)
            (cache / "differ" / (differ[-1]["key"][:12] + ".hlo")).write_text(text)
    total = sum(table.values(), collections.Counter())
    show = lambda name, c: print(f"{name:32} accepted {c['accepted', True]:4} of {c['accepted', True] + c['accepted', False]:4}   refused {c['refused', False]:4} of {c['refused', True] + c['refused', False]:4}"
                                 f"   unreadable {c['unreadable', False]:4} of {c['unreadable', True] + c['unreadable', False]:4}")
    for kind in sorted(table):
        show(kind, table[kind])
    show("all", total)
    print(f"unclear {unclear}, releases differ {unlike}, of what the oracle does not see {unasked}")
    (cache / f"differ-{a.seed}.json").write_text(json.dumps(differ, indent=1))
    for d in differ:
        if a.list and d["kind"].startswith(a.list):
            print(json.dumps(d))


if __name__ == "__main__":
    child() if sys.argv[1:] == ["--child"] else main()
