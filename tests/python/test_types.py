"""Stubs and the package itself under mypy --strict, and a program that uses them."""
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import unittest

import hlo_replay as hlo

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path(hlo.__file__).resolve().parent


class Types(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_mypy(self):
        def mypy(*what):
            return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir",
                                   str(PACKAGE.parent / "mypy"), *map(str, what)], capture_output=True, text=True, check=False,
                                  cwd=PACKAGE.parent)

        done = mypy(*(p for end in ("py", "pyi") for p in sorted(PACKAGE.glob(f"*.{end}")) if p.name != "_driver.py"))  # which runs with the user's jaxlib, in a process of its own
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        done = mypy(HERE / "sample.py")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        wrong = PACKAGE.parent / "wrong.py"
        wrong.write_text("import hlo_replay as hlo\nhlo.parse(7)\nx: int = hlo.Module('m').name\n")
        done = mypy(wrong)
        self.assertEqual(done.stdout.count("error:"), 2, done.stdout)

    def test_docstrings(self):
        missing = []
        for name in hlo.__all__:
            value = getattr(hlo, name)
            if callable(value) and not (inspect.getdoc(value) or "").strip():
                missing.append(name)
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
