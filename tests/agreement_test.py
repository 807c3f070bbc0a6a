#!/usr/bin/env python3
"""Stage pairs of XLA's dumps (testdata/agreement/pairs.jsonl): our pass makes of the first what XLA's made."""
import concurrent.futures
import json
import os
import pathlib
import tempfile

from command_line import data, expect, finish, run


def judged(place, pair):
    """What the pass and the comparison with XLA's text answered."""
    before, ours, theirs = (place / name for name in ("before.txt", "ours.txt", "theirs.txt"))
    place.mkdir()
    before.write_text(pair["before"])
    theirs.write_text(pair["after"])
    code, text, err = run("opt", f"--passes={pair['pass']}", f"--call-site={pair['pipeline']}", before)
    ours.write_text(text)
    return code, err, run("diff", ours, theirs)


with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    pairs = [json.loads(line) for line in (data / "agreement" / "pairs.jsonl").read_text().splitlines()]
    places = [pathlib.Path(directory) / str(n) for n in range(len(pairs))]
    for n, (pair, (code, err, (same, text, why))) in enumerate(zip(pairs, pool.map(judged, places, pairs))):
        expect("pass runs", code == 0, f"pair {n}, {pair['pass']}: {err}")
        expect("as XLA", same == 0, f"pair {n}, {pair['pass']}: {text[-600:]}{why}")
finish("agreement_test")
