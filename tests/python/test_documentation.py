"""The snippets of docs/in_python.md: they run one after another, and mypy --strict takes them."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import hlo_replay as hlo
from test_module import ROOT

PAGE = ROOT / "docs" / "in_python.md"


def snippets():
    """(line, text) of each."""
    text = PAGE.read_text()
    return [(text[:m.start(1)].count("\n") + 1, m[1]) for m in re.finditer(r"^```python\.tested\n(.*?)^```$", text, re.S | re.M)]


class Snippets(unittest.TestCase):
    def test_they_run(self):
        found = snippets()
        self.assertGreaterEqual(len(found), 20)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            os.chdir(scratch)
            try:
                pathlib.Path("model.hlo").write_text((ROOT / "testdata" / "mnist_softmax.hlo").read_text())
                module = hlo.parse(pathlib.Path("model.hlo"))
                hlo.replay(module, out="out")
                inputs = module.seeded_inputs(1)
                outputs = module.run(*inputs)
                arrays = {f"p{k}": a for k, a in enumerate(inputs)}
                arrays |= {f"o{k}": a for k, a in enumerate(outputs if isinstance(outputs, tuple) else (outputs,))}
                np.savez("a.npz", **arrays)
                names = {}
                for line, text in found:
                    with self.subTest(line=line):
                        exec(compile("\n" * (line - 1) + text, str(PAGE), "exec"), names)
            finally:
                os.chdir(before)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_their_types(self):
        package = pathlib.Path(hlo.__file__).resolve().parent.parent
        with tempfile.TemporaryDirectory() as scratch:
            program = pathlib.Path(scratch) / "snippets.py"
            program.write_text("\n".join(text for _, text in snippets()))
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(package / "mypy"),
                                   str(program)], capture_output=True, text=True, check=False, cwd=package)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
