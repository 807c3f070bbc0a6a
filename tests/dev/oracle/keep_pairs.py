#!/usr/bin/env python3
"""Keeps stage pairs of XLA's own dumps, on which a pass of ours does what XLA's did, as testdata/agreement/pairs.jsonl.

  keep_pairs.py [--add] [--most=N] AGREE.json...      files that agreement.py --json wrote; --add keeps what is there already

At most eight (N) small ones a pass, of dumps that are still there; tests/passes/agreement_test.cc repeats them without XLA."""
import json
import pathlib
import re
import sys


def plain(text):
    """Without what the comparison does not look at: metadata, tables of sources, the header's configuration."""
    text = re.sub(r", metadata=\{[^{}]*\}", "", text)
    text = re.sub(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d.*\n)*", "\n", text)
    header, rest = text.split("\n", 1)
    fields = re.findall(r", (?:is_scheduled|replica_count|num_partitions)=\w+", header)
    # Layouts that say how large an element is are not those that a header without them stands for.
    layout = re.search(r", entry_computation_layout=\{.*?\)->.*?\}(?=, [a-z_]+=|$)", header)
    if layout and "E(" in layout[0]:
        fields.append(layout[0])
    text = "HloModule pair" + "".join(fields) + "\n" + rest
    return re.sub(r"\n{3,}", "\n\n", text)


if not any(a.endswith(".json") for a in sys.argv[1:]):
    sys.exit(__doc__)
target = pathlib.Path(__file__).resolve().parents[3] / "testdata" / "agreement" / "pairs.jsonl"
kept = {}
most = next((int(a[7:]) for a in sys.argv[1:] if a.startswith("--most=")), 8)
for path in [a for a in sys.argv[1:] if not a.startswith("--")]:
    for row in json.loads(pathlib.Path(path).read_text()):
        if row["kind"] != "change" or row["verdict"] != "agree" or row["pass"] == "layout-assignment":
            continue
        if not pathlib.Path(row["before"]).exists():
            continue
        before, after = (plain(pathlib.Path(row[key]).read_text()) for key in ("before", "after"))
        if len(before) + len(after) > 24000 and not row["pass"].startswith(("qr_", "eigh_", "rng-expander")):
            continue
        kept.setdefault(row["pass"], {})[(before, after)] = row["pipeline"]
out = []
if "--add" in sys.argv:
    out = [json.loads(line) for line in target.read_text().splitlines()]
for name in sorted(kept):
    known = {(row["before"], row["after"]) for row in out if row["pass"] == name}
    pairs = sorted((item for item in kept[name].items() if item[0] not in known), key=lambda item: (len(item[0][0]), item[0]))
    out += [{"pass": name, "pipeline": pipeline, "before": before, "after": after} for (before, after), pipeline in pairs[: max(0, most - len(known))]]
out.sort(key=lambda row: row["pass"])
target.write_text("".join(json.dumps(row) + "\n" for row in out))
print(len(out), "pairs of", len(kept), "passes")
