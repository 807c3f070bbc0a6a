#!/usr/bin/env python3
"""Around a pass, seen from the command line: fuel inside passes, options with types, and the lowering as stages."""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import data, expect, finish, run

TIDY = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  dead = f32[4] cosine(p)
  n = f32[4] negate(p)
  t = (f32[4]) tuple(n)
  g = f32[4] get-tuple-element(t), index=0
  ROOT r = f32[4] abs(g)
}
"""


def fuel():
    _, as_it_was, _ = run("opt", "-", "--passes=dce", "--fuel=dce=0", stdin=TIDY)
    code, text, err = run("opt", "-", "--passes=copy-insertion", "--fuel=copy-insertion=0", stdin=TIDY)
    expect("without fuel nothing changes", code == 0 and text == as_it_was and "cosine" in text, text + err)
    code, text, err = run("opt", "-", "--passes=copy-insertion", "--fuel=copy-insertion=0", "--json", stdin=TIDY)
    one = json.loads(text)["passes"][0]
    expect("and it says so", not one["changed"] and one["rewrites"] == 0, one)
    code, text, err = run("opt", "-", "--passes=copy-insertion", "--json", stdin=TIDY)
    one = json.loads(text)["passes"][0]
    expect("what is tidied counts", one["changed"] and one["rewrites"] > 0 and one["notes"] and one["claimed"], one)
    code, text, err = run("opt", "-", "--passes=copy-insertion", "--fuel=copy-insertion=1", "--json", stdin=TIDY)
    expect("one rewrite", json.loads(text)["passes"][0]["rewrites"] == 1, text)


def options():
    for wrong, said in {"dot-merger{max_size_mib=a}": "takes a number", "fusion{may_duplicate=perhaps}": "true or false",
                        "cse{nobody=1}": "no option"}.items():
        code, out, err = run("opt", "-", f"--passes={wrong}", stdin=TIDY)
        expect(f"{wrong} is refused", code == 2 and said in err, (code, err))
    code, out, err = run("opt", "--list-passes", "--json")
    rows = {p["name"]: p for p in json.loads(out)["passes"]}
    expect("atomic rows say why", len(rows["layout-assignment"]["atomic"]) > 10 and rows["dce"]["atomic"] == "", rows["layout-assignment"])


def lowering():
    with tempfile.TemporaryDirectory() as folder:
        for executor in ("host", "emulated"):
            to = pathlib.Path(folder) / executor
            code, out, err = run("replay", data / "modules" / "softmax.hlo", "--pipeline=xla-gpu", f"--lower={executor}", "--out", to, "--formats=text")
            expect(f"lowered for {executor}", code == 0, out + err)
            if code:
                continue
            recording = json.loads((to / "recording.json").read_text())
            name = "lower-host" if executor == "host" else "lower-cuda"
            steps = [s for s in recording["stages"] if s.get("pipeline") == name and s["kind"] == "pass"]
            names = [s["pass"] for s in steps]
            expect(f"{executor}: its steps are stages", "fusion" in names and "copy-insertion" in names and "schedule" in names, names)
            written = [s["file"] for s in steps if s["changed"]]
            expect(f"{executor}: with texts", len(written) >= 2 and all((to / f).exists() for f in written), written)
            last = to / written[-1]
            code, out, err = run("verify", last, "--layouts=free")
            expect(f"{executor}: the last verifies", code == 0, err)
        code, out, err = run("replay", data / "modules" / "softmax.hlo", "--lower=nobody", "--out", pathlib.Path(folder) / "x")
        expect("an unknown executor", code == 2 and "nobody" in err, (code, err))


fuel()
options()
lowering()
finish("steps_test")
