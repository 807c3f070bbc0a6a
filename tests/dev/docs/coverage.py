#!/usr/bin/env python3
"""Writes docs/COVERAGE.md from what the program says of itself and coverage_notes.md (edit that one): tests/dev/docs/coverage.py build/bin/hlo-replay"""
import json
import pathlib
import subprocess
import sys

tool = sys.argv[1]
passes = json.loads(subprocess.run([tool, "opt", "--list-passes", "--json"], capture_output=True, text=True, check=True).stdout)["passes"]
have = [p for p in passes if p["implemented"]]
lack = [p for p in passes if not p["implemented"]]
lines = ["# Coverage", "", f"Written by `tests/dev/docs/coverage.py`. {len(have)} passes have code, {len(lack)} have none yet; those show as *not implemented* in every recording.", ""]
lines += ["| pass without code | what it would do |", "| --- | --- |"] + [f"| {p['name']}{' (' + p['aliases'] + ')' if p['aliases'] else ''} | {p['summary']} |" for p in lack]
lines += ["", (pathlib.Path(__file__).with_name("coverage_notes.md")).read_text()]
(pathlib.Path(__file__).resolve().parents[3] / "docs" / "COVERAGE.md").write_text("\n".join(lines))
