#!/usr/bin/env python3
"""Edits planted by chance into real dumps: which of them does bisect name?

plants.py make HLO_REPLAY OUT.jsonl DUMP... --seed=S --count=N   draws edits and decides which of them change a value
plants.py judge HLO_REPLAY OUT.jsonl [--limit=SECONDS]           asks bisect about each that does; a table by kind of edit

A DUMP is a folder with one module's stages, as XLA dumps them. An edit changes one instruction's line in a stage drawn by chance,
half of the time among the lines that the pass before it wrote, and the same line wherever a later stage still holds it.
Whether it changes a value is decided without bisect: the stage and the edited stage are both evaluated whole, on up to 50
inputs of the kinds in `array` (bounds of indices, ties, small integers, signed zeros, NaN, infinities, negative bases), and
their results compared bit by bit. What has no effect on any is left out and counted; what cannot be evaluated in time is
undecided and counts as missed. Named is the stage and the instruction, or the one in a computation that it applies.
Needs numpy (the reference compiler's interpreter has it).
"""
import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

INPUTS = 50
LINE = re.compile(r"^(\s*(?:ROOT )?)%?([\w.-]+) = (\(?[^=]*?) ([a-z][\w-]*)\((.*)$")

OPCODES = [{"add", "subtract", "multiply", "maximum", "minimum"}, {"and", "or", "xor"}, {"sine", "cosine", "tanh", "exponential", "logistic"},
           {"floor", "ceil", "round-nearest-even", "round-nearest-afz"}, {"negate", "abs", "sign"}, {"sqrt", "rsqrt", "cbrt"},
           {"shift-left", "shift-right-logical", "shift-right-arithmetic"}, {"divide", "remainder", "power"}]
DIRECTIONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]


def stages(folder):
    """(number, path) of the numbered stages and the ends, in order."""
    out = []
    for f in folder.glob("module_*.txt"):
        m = re.match(r"module_\d+\..*?\.(\d{4})\.", f.name)
        if m:
            out.append((int(m.group(1)), f))
        elif f.name.endswith("before_optimizations.txt"):
            out.append((-1, f))
        elif re.search(r"\.(?:cpu|gpu|sm_[\w.]+)?_?\w*after_optimizations\.txt$", f.name):
            out.append((10**6, f))
    return sorted(out, key=lambda row: (row[0], row[1].name))


def numbers(text):
    return [int(n) for n in re.findall(r"-?\d+", text)]


def replace_attribute(rest, key, new):
    return re.sub(key + r"=\{[^{}]*\}", lambda _: f"{key}={{{new}}}", rest, count=1)


# Each kind: (random, prefix of the line, opcode, rest of the line behind `(`, names by shape) -> new (opcode, rest), or None.
def edit_operand(r, line, by_shape):
    refs = re.findall(r"(?:(\w+\[[\d,]*\](?:\{[^}]*\})?) )?%([\w.-]+)", line["operands"])
    if not refs:
        return None
    shape, name = r.choice(refs)
    shape = shape or line["shapes"].get(name, "")
    others = [n for n in by_shape.get(bare(shape), []) if n != name and line["order"][n] < line["order"][line["name"]]]
    if not others:
        return None
    new = r.choice(others)
    return line["opcode"], re.sub(r"%" + re.escape(name) + r"(?![\w.-])", "%" + new, line["operands"], count=1) + line["rest"]


def edit_swap(r, line, by_shape):
    if line["opcode"] not in ("subtract", "divide", "power", "remainder", "compare", "atan2", "shift-left", "concatenate"):
        return None
    refs = re.findall(r"%[\w.-]+", line["operands"])
    if len(refs) != 2 or refs[0] == refs[1] or bare(line["shapes"].get(refs[0][1:], "a")) != bare(line["shapes"].get(refs[1][1:], "b")):
        return None
    swapped = line["operands"].replace(refs[0], "%\0").replace(refs[1], refs[0]).replace("%\0", refs[1])
    return line["opcode"], swapped + line["rest"]


def edit_opcode(r, line, by_shape):
    for family in OPCODES:
        if line["opcode"] in family:
            return r.choice(sorted(family - {line["opcode"]})), line["operands"] + line["rest"]
    return None


def edit_direction(r, line, by_shape):
    m = re.search(r"direction=(\w\w)", line["rest"])
    if not m:
        return None
    return line["opcode"], line["operands"] + line["rest"].replace(m.group(0), "direction=" + r.choice([d for d in DIRECTIONS if d != m.group(1)]), 1)


def edit_dimension(r, line, by_shape):
    m = re.search(r"dimensions=\{([\d,]+)\}", line["rest"])
    if not m or line["opcode"] == "transpose":
        return None
    dims = numbers(m.group(1))
    at = r.randrange(len(dims))
    dims[at] = max(0, dims[at] + r.choice([-1, 1]))
    return line["opcode"], line["operands"] + replace_attribute(line["rest"], "dimensions", ",".join(map(str, dims)))


def edit_permutation(r, line, by_shape):
    m = re.search(r"dimensions=\{([\d,]+)\}", line["rest"])
    if not m or line["opcode"] != "transpose":
        return None
    dims = numbers(m.group(1))
    if len(dims) < 2:
        return None
    a, b = r.sample(range(len(dims)), 2)
    dims[a], dims[b] = dims[b], dims[a]
    return line["opcode"], line["operands"] + replace_attribute(line["rest"], "dimensions", ",".join(map(str, dims)))


def next_float(value, r):
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<i", bits + r.choice([-1, 1]) if bits not in (0, -2**31) else 1))[0]


def edit_constant(r, line, by_shape):
    m = re.fullmatch(r"(-?[\d.]+(?:e[+-]?\d+)?|-?inf|true|false)\)(.*)", line["operands"] + line["rest"], re.S)
    if line["opcode"] != "constant" or not m:
        return None
    kind, old = line["shape"].split("[")[0], m.group(1)
    if kind == "pred":
        new = {"true": "false", "false": "true"}.get(old)
    elif kind.startswith(("s", "u")):
        new = str(max(0 if kind[0] == "u" else -2**31, int(old) + r.choice([-1, 1])))
    elif kind == "f32":
        new = {"-inf": "-3e+38", "inf": "3e+38"}.get(old) or repr(np.float32(next_float(float(old), r)).item())
    else:  # the step of the narrower type is some hundredth of the value
        new = {"-inf": "-6e+04", "inf": "6e+04"}.get(old) or f"{float(old) * r.choice([0.98, 1.02]) or 0.01:.4g}"
    return new and ("constant", new + ")" + m.group(2))


def edit_init(r, line, by_shape):
    if line["opcode"] not in ("reduce", "reduce-window"):
        return None
    refs = re.findall(r"%([\w.-]+)", line["operands"])
    if len(refs) != 2:
        return None
    others = [n for n in by_shape.get(bare(line["shapes"].get(refs[1], "")), []) if n != refs[1] and n in line["constants"]]
    if not others:
        return None
    return line["opcode"], line["operands"].replace("%" + refs[1], "%" + r.choice(others)) + line["rest"]


def edit_mask(r, line, by_shape):
    if line["opcode"] != "select":
        return None
    refs = re.findall(r"%[\w.-]+", line["operands"])
    if len(refs) != 3 or refs[1] == refs[2]:
        return None
    return "select", line["operands"].replace(refs[1], "%\0").replace(refs[2], refs[1]).replace("%\0", refs[2]) + line["rest"]


def edit_slice(r, line, by_shape):
    m = re.search(r"slice=\{([^{}]*)\}", line["rest"])
    if line["opcode"] != "slice" or not m:
        return None
    parts = re.findall(r"\[(\d+):(\d+)(:\d+)?\]", m.group(1))
    at, step = r.randrange(len(parts)), r.choice([-1, 1])
    rows = [(int(a) + step * (k == at), int(b) + step * (k == at), c) for k, (a, b, c) in enumerate(parts)]
    if any(a < 0 for a, _, _ in rows):
        return None
    return "slice", line["operands"] + replace_attribute(line["rest"], "slice", ", ".join(f"[{a}:{b}{c}]" for a, b, c in rows))


def edit_pad(r, line, by_shape):
    m = re.search(r"(?<![\w=])pad(?:ding)?=([\d_x-]+)", line["rest"])
    if not m:
        return None
    found = [k for k, n in enumerate(re.findall(r"(-?\d+)_(-?\d+)", m.group(1))) if n[0] != n[1]]
    if not found:
        return None
    parts = m.group(1).split("x")
    at = r.choice(found)
    ends = parts[at].split("_")
    ends[0], ends[1] = ends[1], ends[0]
    parts[at] = "_".join(ends)
    return line["opcode"], line["operands"] + line["rest"].replace(m.group(0), m.group(0).replace(m.group(1), "x".join(parts)), 1)


def edit_group(r, line, by_shape):
    m = re.search(r"(replica_groups|source_target_pairs)=(\{\{.*?\}\}|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?)", line["rest"])
    if not m:
        return None
    if m.group(2).startswith("["):
        text = m.group(2)
        flipped = re.sub(r"^\[(\d+),(\d+)\]<=\[(\d+)\]$", r"[\1,\2]<=[\2,\1]T(1,0)", text)
        return None if flipped == text else (line["opcode"], line["operands"] + line["rest"].replace(text, flipped, 1))
    rows = [numbers(row) for row in re.findall(r"\{([\d,]+)\}", m.group(2))]
    if len(rows) < 2:
        return None
    a, b = r.sample(range(len(rows)), 2)
    at = r.randrange(len(rows[a]))
    rows[a][at], rows[b][at] = rows[b][at], rows[a][at]
    text = "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in rows) + "}"
    return line["opcode"], line["operands"] + line["rest"].replace(m.group(2), text, 1)


def edit_reshape(r, line, by_shape):
    """A transpose that became a reshape of the same shape, or of what a bitcast does by layout."""
    if line["opcode"] != "transpose":
        return None
    dims = numbers(line["shape"].split("[")[1].split("]")[0])
    operand = re.findall(r"%([\w.-]+)", line["operands"])
    if not operand or np.prod(dims or [1]) < 2:
        return None
    rest = re.sub(r", dimensions=\{[\d,]*\}", "", line["rest"], count=1)
    return "reshape", line["operands"] + rest


def edit_index(r, line, by_shape):
    """Of a get-tuple-element another index; of an iota another dimension."""
    m = re.search(r"(index|iota_dimension)=(\d+)", line["rest"])
    if not m:
        return None
    return line["opcode"], line["operands"] + line["rest"].replace(m.group(0), f"{m.group(1)}={max(0, int(m.group(2)) + r.choice([-1, 1]))}", 1)


KINDS = {
    "operand": edit_operand, "swap": edit_swap, "opcode": edit_opcode, "direction": edit_direction, "dimension": edit_dimension,
    "permutation": edit_permutation, "constant": edit_constant, "init": edit_init, "mask": edit_mask, "slice": edit_slice, "pad": edit_pad,
    "group": edit_group, "reshape": edit_reshape, "index": edit_index,
}  # comparators, offsets and trip counts are directions, operands and constants of the computations that hold them


def bare(shape):
    return re.sub(r"\{.*", "", shape).strip()


def balanced(text):
    """(operands up to the parenthesis that closes them, the rest with it)"""
    depth, quoted = 1, False
    for k, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif not quoted and c in "({":
            depth += 1
        elif not quoted and c in ")}":
            depth -= 1
            if depth == 0:
                return text[:k], text[k:]
    return text, ""


def parsed(text):
    """The instruction lines of a stage, each with what edits need of its computation."""
    lines, scope = [], {"shapes": {}, "order": {}, "constants": set(), "by_shape": collections.defaultdict(list)}
    for number, full in enumerate(text.split("\n")):
        if full.startswith(("ENTRY", "%")) or full.endswith("{"):
            scope = {"shapes": {}, "order": {}, "constants": set(), "by_shape": collections.defaultdict(list)}
        m = LINE.match(full)
        if not m or full.startswith("HloModule"):
            continue
        prefix, name, shape, opcode, behind = m.groups()
        operands, rest = balanced(behind)
        scope["shapes"][name] = shape
        scope["order"][name] = number
        scope["by_shape"][bare(shape)].append(name)
        if opcode == "constant":
            scope["constants"].add(name)
        lines.append({"number": number, "full": full, "prefix": prefix, "name": name, "shape": shape, "opcode": opcode,
                      "operands": operands, "rest": rest, **scope})
    return lines


def without_notes(line):
    return re.sub(r", (?:metadata|backend_config)=\{.*", "", line)


def carried(paths, at, name, old, new):
    """(path, edited text) of the stage and the later ones that still hold the line."""
    before, after = without_notes(old), without_notes(new)
    out = []
    for number, path in paths[at:]:
        text = path.read_text()
        lines, changed = text.split("\n"), False
        for k, line in enumerate(lines):
            if without_notes(line) == before:
                lines[k], changed = line.replace(before, after, 1), True
                break
        if not changed:
            break
        out.append((path, "\n".join(lines)))
    return out


BITS = {"bf16": 2, "f8": 1, "s4": 1, "u4": 1, "s2": 1, "u2": 1, "f4": 1}


def array(r, kind, dims, style):
    """Inputs of one leaf. Styles: 0 plain, 1 ties, 2 bounds of indices, 3 signed zeros and negative bases, 4 NaN and infinities, 5 extremes."""
    size = int(np.prod(dims)) if dims else 1
    gen = np.random.default_rng(r.getrandbits(32))
    if kind == "pred":
        return gen.integers(0, 2, size).astype(np.bool_).reshape(dims)
    if kind[0] in "su" and kind[1:].isdigit():
        bits = int(kind[1:])
        low, high = (0, 2**bits - 1) if kind[0] == "u" else (-2**(bits - 1), 2**(bits - 1) - 1)
        edges = [v for v in (0, 1, 2, 3, 7, 8, 15, 16, 31, 63, 64, 127, 128, 255, 256, 511, 512, 1023, 1024, -1, -2, low, high) if low <= v <= high]
        values = [gen.integers(0, min(high, 5) + 1, size), gen.integers(0, min(high, 2) + 1, size), gen.choice(np.array(edges, dtype=object), size),
                  gen.integers(max(low, -3), min(high, 4), size), gen.integers(0, min(high, 1000) + 1, size), gen.choice(np.array([low, high, 0], dtype=object), size)][style]
        store = bits if bits >= 8 else 8
        wide = np.array(values, dtype=object)
        if bits < 8:
            return np.array([int(v) & (2**bits - 1) for v in wide], dtype=np.uint8).reshape(dims)
        return wide.astype({"s": "int", "u": "uint"}[kind[0]] + str(store)).reshape(dims)
    if kind.startswith("c"):
        plain = gen.standard_normal(size) + 1j * gen.standard_normal(size)
        return plain.astype(np.complex64 if kind == "c64" else np.complex128).reshape(dims)
    plain = [gen.standard_normal(size), gen.integers(-2, 3, size) * 1.0, gen.uniform(0, 1, size), np.where(gen.random(size) < .3, gen.choice([-0.0, 0.0, -1.0, -2.0, -0.5], size), gen.standard_normal(size) - .5),
             np.where(gen.random(size) < .05, gen.choice([np.nan, np.inf, -np.inf], size), gen.standard_normal(size)), gen.choice([1e30, -1e30, 1e-30, 1.0, -1.0, 100.0, -100.0], size)][style]
    with np.errstate(all="ignore"):
        if kind in ("f32", "f64", "f16"):
            return plain.astype({"f32": np.float32, "f64": np.float64, "f16": np.float16}[kind]).reshape(dims)
        if kind == "bf16":
            return (plain.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(dims)
    return gen.integers(0, 120, size).astype(np.uint8).reshape(dims)  # f8 and smaller: bits of finite values


def leaves(text):
    """(type, dimensions) of the entry's parameters, leaves in order."""
    entry = text[re.search(r"^ENTRY ", text, re.M).start():]
    rows = {}
    for m in re.finditer(r"= (\(.*?\)|\w+\[[^=]*?) parameter\((\d+)\)", entry[:entry.index("\n}")]):
        rows[int(m.group(2))] = [(kind, numbers(dims)) for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", m.group(1))]
    return [leaf for k in sorted(rows) for leaf in rows[k]]


def write_inputs(path, text, index):
    r = random.Random(index * 7919 + 1)
    arrays, types = {}, {}
    for k, (kind, dims) in enumerate(leaves(text)):
        arrays[f"p{k}"] = array(r, kind, dims, index % 6)
        if kind in ("bf16", "s4", "u4", "s2", "u2") or kind.startswith(("f8", "f4")):
            types[f"p{k}"] = kind
    np.savez(path, **arrays)
    if types:
        import zipfile
        with zipfile.ZipFile(path, "a") as z:
            z.writestr("types.json", json.dumps(types))


def outputs(path):
    with np.load(path, allow_pickle=False) as z:
        return {k: z[k].tobytes() for k in z.files if k.startswith("o")}


def decide(tool, original, edited, seconds):
    """The first input on which the two give other bits: its index; None: none of them; raises RuntimeError where it cannot be told."""
    begin, text = time.monotonic(), original.read_text()
    for index in range(INPUTS):
        if time.monotonic() - begin > seconds:
            raise RuntimeError(f"no answer in {seconds} s after {index} inputs")
        with tempfile.TemporaryDirectory() as tmp:
            got = []
            write_inputs(f"{tmp}/in.npz", text, index)
            for k, module in enumerate((original, edited)):
                run = subprocess.run([tool, "exec", module, f"--inputs={tmp}/in.npz", "--exact", f"--out={tmp}/{k}.npz"], capture_output=True, text=True, timeout=seconds)
                if run.returncode != 0:
                    raise RuntimeError((run.stderr or run.stdout)[-200:])
                got.append(outputs(f"{tmp}/{k}.npz"))
            if got[0] != got[1]:
                return index
    return None


def draw(r, dumps, tool):
    """One edit that reads and verifies, or None."""
    folder = r.choice(dumps)
    paths = stages(folder)
    at = r.randrange(1, len(paths))
    text = paths[at][1].read_text()
    lines = parsed(text)
    if r.random() < .5:
        earlier = {without_notes(line) for line in paths[at - 1][1].read_text().split("\n")}
        fresh = {line["name"] for line in lines if without_notes(line["full"]) not in earlier}
        near = [line for line in lines if line["name"] in fresh or any(n in fresh for n in re.findall(r"%([\w.-]+)", line["operands"]))]
        lines = near or lines
    kind = r.choice(sorted(KINDS))
    r.shuffle(lines)
    for line in lines[:400]:
        made = KINDS[kind](r, line, line["by_shape"])
        if not made:
            continue
        new = f"{line['prefix']}%{line['name']} = {line['shape']} {made[0]}({made[1]}"
        if line["full"].lstrip().startswith(("ROOT %", "%")) and new != line["full"]:
            return {"dump": str(folder), "stage": paths[at][0], "file": paths[at][1].name, "instruction": line["name"], "kind": kind, "old": line["full"], "new": new}
    return None


def make(a):
    r, rows, tried, seen = random.Random(a.seed), [], collections.Counter(), set()
    with open(a.out, "w") as out:
        while sum(row["effect"] != "none" for row in rows) < a.count and sum(tried.values()) < 40 * a.count:
            plant = draw(r, a.dumps, a.tool)
            if not plant:
                tried["nothing to edit"] += 1
                continue
            key = (plant["file"], plant["dump"], plant["old"], plant["new"])
            if key in seen:
                tried["drawn before"] += 1
                continue
            seen.add(key)
            paths = stages(pathlib.Path(plant["dump"]))
            at = next(k for k, (_, p) in enumerate(paths) if p.name == plant["file"])
            with tempfile.TemporaryDirectory() as tmp:
                edited = pathlib.Path(tmp) / plant["file"]
                edited.write_text(paths[at][1].read_text().replace(plant["old"], plant["new"], 1))
                if subprocess.run([a.tool, "verify", edited], capture_output=True).returncode != 0:
                    tried["not a module"] += 1
                    continue
                try:
                    index = decide(a.tool, paths[at][1], edited, a.seconds)
                    plant["effect"] = "none" if index is None else "value"
                    plant["input"] = index
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    plant["effect"], plant["why"] = "undecided", str(error)
            tried[plant["effect"]] += 1
            rows.append(plant)
            out.write(json.dumps(plant) + "\n"), out.flush()
    print(dict(tried))


def judge(a):
    table = collections.defaultdict(collections.Counter)
    for row in map(json.loads, open(a.out)):
        if row["effect"] == "none":
            continue
        if row["effect"] == "undecided":
            table[row["kind"]]["undecided"] += 1
            continue
        folder = pathlib.Path(row["dump"])
        paths = stages(folder)
        at = next(k for k, (_, p) in enumerate(paths) if p.name == row["file"])
        with tempfile.TemporaryDirectory() as tmp:
            place = pathlib.Path(tmp) / "dump"
            place.mkdir()
            for f in folder.glob("module_*.txt"):
                shutil.copy(f, place / f.name)
            for path, text in carried(paths, at, row["instruction"], row["old"], row["new"]):
                (place / path.name).write_text(text)
            begin = time.monotonic()
            try:
                run = subprocess.run([a.tool, "bisect", place, "--json"], capture_output=True, text=True, timeout=a.limit)
                answer = json.loads(run.stdout)
            except (subprocess.TimeoutExpired, ValueError) as error:
                answer = {"found": False, "verdict": str(error)[-300:]}
        found = answer.get("first_value_that_differs") or {}
        stage = answer.get("found") and answer.get("bad_file") == row["file"]
        # What a sort or a reduction applies is named beside it.
        names = {found.get("name"), (found.get("applied") or {}).get("name")}
        said = "named" if stage and row["instruction"] in names else "other instruction" if stage else "other stage" if answer.get("found") else "missed"
        # Nothing bad was said to be found, and that not all was compared.
        if said == "missed" and str(answer.get("verdict", "")).startswith("nothing bad found, but"):
            said = "missed, told"
        table[row["kind"]][said] += 1
        print(f"{said:18} {row['kind']:11} {folder.name} {row['stage']} {row['instruction']}, {time.monotonic() - begin:.1f} s: "
              f"{answer.get('bad_file') if answer.get('found') else answer.get('verdict')} {found.get('name', '')} {(found.get('applied') or {}).get('name', '')}", flush=True)
    total = collections.Counter()
    for kind in sorted(table):
        total.update(table[kind])
        print(f"{kind:12} " + ", ".join(f"{n} {word}" for word, n in sorted(table[kind].items())))
    count = sum(total.values())
    print(f"{total['named']} of {count} named ({100 * total['named'] / max(1, count):.1f} %); " + ", ".join(f"{n} {word}" for word, n in sorted(total.items()) if word != "named"))
    return 0 if count and total["named"] >= .97 * count else 1


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["make", "judge"])
    p.add_argument("tool"), p.add_argument("out")
    p.add_argument("dumps", nargs="*", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=400)
    p.add_argument("--seconds", type=float, default=60, help="for deciding about one edit")
    p.add_argument("--limit", type=float, default=300, help="for one bisect")
    a = p.parse_args()
    return make(a) if a.what == "make" else judge(a)


if __name__ == "__main__":
    sys.exit(main())
