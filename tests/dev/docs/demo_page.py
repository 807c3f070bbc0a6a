#!/usr/bin/env python3
"""docs/demo.html: a page with a fault to be found. demo_page.py HLO-REPLAY [OUT.html]

testdata/demo/model.hlo is what jax made of testdata/demo/model.py; --again=PYTHON (one with jax) makes it anew. It is
replayed by the passes of xla-gpu that come before fusion, and the stages are kept as a compiler would have dumped them,
one of them wrong: where transpose-folding puts the transpose of the attention's weights into a dot, the dot takes them
as they stand. They are square, so nothing complains. All stages from there on have it.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
MODEL = SOURCE / "testdata/demo/model.hlo"
PASS = "after_transpose-folding"
FAULT = re.compile(r"(%dot\.3 = .*rhs_contracting_dims=)\{2\}")
NOTE = ("This tagger gives wrong scores: somewhere between jax and the GPU a pass has broken it. Nothing is asked of a network here: "
        "press 'Find the fault' at the left, and the page runs the stages, finds the pass and shows the line of the program.")


def make_model(binary, python):
    with tempfile.TemporaryDirectory() as folder:
        proto, text = os.path.join(folder, "model.pb"), os.path.join(folder, "model.hlo")
        subprocess.run([python, "model.py", proto], check=True, cwd=MODEL.parent, stderr=subprocess.DEVNULL)
        subprocess.run([binary, "convert", proto, text], check=True, stdout=subprocess.DEVNULL)
        MODEL.write_text(pathlib.Path(text).read_text().replace(f"{MODEL.parent}/", ""))


def make_dump(binary, folder):
    """The stages with the fault, and the program beside them."""
    replayed = os.path.join(folder, "replayed")
    subprocess.run([binary, "replay", str(MODEL), "--pipeline=xla-gpu-unfused", "--formats=text", "-o", replayed], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    dump = os.path.join(folder, "tagger")
    os.mkdir(dump)
    wrong = False
    # By number; the result, which has none, comes last.
    for file in sorted(pathlib.Path(replayed).glob("module_*.txt"), key=lambda f: (".after_optimizations" in f.name, f.name)):
        text = file.read_text()
        wrong = wrong or PASS in file.name
        if wrong and ".before_optimizations" not in file.name:
            text, count = FAULT.subn(r"\1{1}", text)
            if count != 1:
                raise SystemExit(f"{file.name}: the dot that is to be wrong is not there")
        (pathlib.Path(dump) / file.name).write_text(text)
    if not wrong:
        raise SystemExit(f"no stage is {PASS}")
    shutil.copy(MODEL.parent / "model.py", os.path.join(dump, "module_0001.jit_tag.model.py"))
    return dump


def main():
    words = argparse.ArgumentParser()
    words.add_argument("binary")
    words.add_argument("out", nargs="?", default=str(SOURCE / "docs/demo.html"))
    words.add_argument("--again", metavar="PYTHON")
    asked = words.parse_args()
    binary = os.path.abspath(asked.binary)
    if asked.again:
        make_model(binary, os.path.abspath(asked.again))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, "view", make_dump(binary, folder), "-o", os.path.abspath(asked.out), "--note", NOTE, "--force"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
