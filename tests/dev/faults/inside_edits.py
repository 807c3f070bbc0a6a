"""Faults planted into real dumps at places where the outputs hardly move: does bisect name stage and instruction?

inside_edits.py HLO_REPLAY DUMPS [--only=PART] [--keep]      the table below
inside_edits.py HLO_REPLAY FOLDER STAGE INSTRUCTION OLD NEW  one edit of one's own

DUMPS holds a folder for each dump. An edit changes the line of one instruction, in stage STAGE (its number) and in every
later one that still has an instruction of that name: the text OLD becomes NEW (`swap`: the two operands change places;
`drop`: the instruction becomes a copy of its operand). Exit code 0 where all are named.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# dump, stage, instruction, old, new, what it is.
EDITS = [
    ("imagenette__infer", 12, "sub.41", " subtract(", " add(", "x - mean of the first norm"),
    ("imagenette__infer", 12, "constant.18", "constant(1e-05)", "constant(1e-06)", "epsilon of all norms"),
    ("imagenette__infer", 14, "sub.75", " subtract(", " add(", "x - mean of the last norm"),
    ("imagenette__infer", 10, "mul.83", " multiply(", " add(", "the first norm's scale"),
    ("imagenette__infer", 9, "reduce_window_max.7", "pad=0_0x0_1x0_1x0_0", "pad=0_0x1_0x1_0x0_0", "pooling shifted by one"),
    ("mha_block", 12, "sub.0", None, "swap", "sign of the exponent"),
    ("mha_block", 12, "constant.5", "constant(0.125)", "constant(0.126)", "scale of the scores"),
    ("mha_block", 12, "reduce", "dimensions={2}", "dimensions={1}", "the softmax's shift over the wrong dimension"),
    ("sharded_computation", 12, "reduce.25", "dimensions={3}", "dimensions={2}", "softmax's maximum over the wrong dimension"),
    ("sharded_computation", 12, "negate.0", " negate(", " abs(", "a sign in the gradient"),
    ("sharded_computation", 14, "slice.5", "[1:2]", "[2:3]", "start of a slice"),
    ("linx_frag_0100", 8, "erf_inv.1", "direction=EQ", "direction=GT", "a comparison that is never true"),
    ("linx_frag_0100", 8, "constant.48", "constant(0.00573950773)", "constant(0.00572950773)", "coefficient of a branch not taken here"),
    ("linx_frag_0100", 9, "max.5", " maximum(", " minimum(", "a bound"),
    ("argsort", 10, "constant.5", "constant(511)", "constant(510)", "bound of indices"),
    ("argsort", 10, "add.1", " add(", " subtract(", "wrap-around of negative indices, of which there are none"),
]


def stages(folder):
    """(number, path) of the stages in order; what has no number stands where bisect has it: at the ends."""
    out = []
    for f in folder.glob("module_*.txt"):
        m = re.match(r"module_\d+\..*?\.(\d{4})\.", f.name)
        late = f.name.endswith("after_optimizations.txt")
        if m or late:
            out.append((10 ** 6 if late else int(m.group(1)), f))
        elif f.name.endswith("after_spmd_partitioner.txt"):
            out.append((-1, f))
    return sorted(out)


def edited(text, name, old, new):
    def line(m):
        if new == "swap":
            return re.sub(r"\((%[\w.-]+), (%[\w.-]+)\)", r"(\2, \1)", m.group(0), count=1)
        if new == "drop":
            return re.sub(r"^(\s*(?:ROOT )?%\S+ = \S+) [\w-]+\((%[\w.-]+)\).*", r"\1 copy(\2)", m.group(0))
        return m.group(0).replace(old, new, 1)

    return re.sub(r"^\s*(?:ROOT )?%" + re.escape(name) + r" = .*$", line, text, flags=re.M)


def try_edit(tool, folder, stage, name, old, new, keep=False, arguments=()):
    """(named, the answer, seconds)."""
    with tempfile.TemporaryDirectory() as tmp:
        place = pathlib.Path(tmp) / "dump"
        place.mkdir()
        first, changed = None, 0
        for f in folder.glob("module_*.txt"):
            shutil.copy(f, place / f.name)
        for number, f in stages(place):
            if number < stage:
                continue
            text = f.read_text()
            after = edited(text, name, old, new)
            if after != text:
                f.write_text(after)
                changed += 1
                first = first or f
        if not changed:
            return False, {"verdict": f"{name}: nothing to edit"}, 0
        begin = time.monotonic()
        r = subprocess.run([tool, "bisect", place, "--json", *arguments], capture_output=True, text=True)
        seconds = time.monotonic() - begin
        if keep:
            shutil.copytree(place, keep, dirs_exist_ok=True)
    try:
        answer = json.loads(r.stdout)
    except ValueError:
        return False, {"verdict": r.stderr[-300:] or f"exit code {r.returncode}"}, seconds
    found = answer["first_value_that_differs"] or {}
    named = answer["found"] and answer["bad_file"] == first.name and found.get("name") == name
    return named, answer, seconds


def main():
    if len(sys.argv) == 7:
        tool, folder, stage, name, old, new = sys.argv[1:]
        named, answer, seconds = try_edit(tool, pathlib.Path(folder), int(stage), name, old, new)
        print(json.dumps(answer, indent=1))
        return 0 if named else 1
    p = argparse.ArgumentParser()
    p.add_argument("tool"), p.add_argument("dumps", type=pathlib.Path)
    p.add_argument("--only", default="")
    p.add_argument("--keep", type=pathlib.Path)
    a = p.parse_args()
    named = tried = 0
    for dump, stage, name, old, new, what in EDITS:
        if a.only not in f"{dump} {name}":
            continue
        folder = next((f.parent for f in sorted(a.dumps.rglob("module_*.before_optimizations.txt")) if dump in str(f)), None)
        if not folder:
            print(f"{dump}: no such dump")
            continue
        tried += 1
        ok, answer, seconds = try_edit(a.tool, folder, stage, name, old, new, a.keep)
        named += ok
        found = answer.get("first_value_that_differs") or {}
        told = f"{answer.get('bad')}: {found.get('name')}; {answer.get('outputs') or answer.get('why')}" if answer.get("found") else answer.get("verdict")
        print(f"{'named ' if ok else 'MISSED'} {dump} {stage} {name} ({what}), {seconds:.1f} s: {told}", flush=True)
    print(f"{named} of {tried} named")
    return 0 if named == tried else 1


if __name__ == "__main__":
    sys.exit(main())
