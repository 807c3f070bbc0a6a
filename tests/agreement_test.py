#!/usr/bin/env python3
"""Stage pairs of XLA's dumps (testdata/agreement/pairs.jsonl): our pass makes of the first what XLA's made."""
import json
import pathlib
import tempfile

from command_line import data, expect, finish, run

with tempfile.TemporaryDirectory() as directory:
    before, ours, theirs = (pathlib.Path(directory) / name for name in ("before.txt", "ours.txt", "theirs.txt"))
    for n, line in enumerate((data / "agreement" / "pairs.jsonl").read_text().splitlines()):
        pair = json.loads(line)
        before.write_text(pair["before"])
        theirs.write_text(pair["after"])
        code, text, err = run("opt", f"--passes={pair['pass']}", f"--call-site={pair['pipeline']}", before)
        expect("pass runs", code == 0, f"pair {n}, {pair['pass']}: {err}")
        ours.write_text(text)
        code, text, err = run("diff", ours, theirs)
        expect("as XLA", code == 0, f"pair {n}, {pair['pass']}: {text[-600:]}{err}")
finish("agreement_test")
