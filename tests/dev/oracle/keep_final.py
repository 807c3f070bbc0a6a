#!/usr/bin/env python3
"""Keeps of XLA's dumps (with .hlo.pb) what tests/passes/final_test.cc judges xla-gpu by, in testdata/final/.

  keep_final.py DUMP...      folders of one module each; NAME is the folder's own

NAME.input.hlo.pb.gz: the module as XLA was given it; NAME.fused.hlo.pb.gz: where XLA's post-fusion optimization begins.
What we make of the first is counted into testdata/final/kernels.txt by HLO_UPDATE=1 build/tests/final_test."""
import gzip
import pathlib
import sys

STAGES = {"input": "*.before_optimizations.hlo.pb", "fused": "*.post-fusion_optimization.after_pipeline-start.*.hlo.pb"}

if len(sys.argv) < 2 or any(a.startswith("-") for a in sys.argv[1:]):
    sys.exit(__doc__)
target = pathlib.Path(__file__).resolve().parents[3] / "testdata" / "final"
target.mkdir(exist_ok=True)
for dump in map(pathlib.Path, sys.argv[1:]):
    for stage, pattern in STAGES.items():
        found = sorted(dump.glob(pattern))
        if len(found) != 1:
            sys.exit(f"{dump}: {len(found)} files {pattern}")
        # mtime=0: the same dump gives the same bytes.
        (target / f"{dump.name}.{stage}.hlo.pb.gz").write_bytes(gzip.compress(found[0].read_bytes(), 9, mtime=0))
