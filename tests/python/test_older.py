"""On a Python that has no extension: the command works, and what needs the extension says so."""
import subprocess
import sys
import unittest

OLDER = "import sys; sys.version_info = (3, 9, 2, 'final', 0); import hlo_replay; "


class Older(unittest.TestCase):
    def ran(self, code):
        return subprocess.run([sys.executable, "-B", "-c", OLDER + code], capture_output=True, text=True, timeout=60, check=False)

    def test_the_command(self):
        done = self.ran("sys.argv = ['hlo-replay', '--version']; hlo_replay.main()")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^hlo-replay \d")

    def test_an_extension_that_cannot_be_loaded(self):
        broken = "import sys; sys.modules['hlo_replay._hlo'] = None; import hlo_replay; "
        for code in ("sys.argv = ['hlo-replay', '--version']; hlo_replay.main()",
                     "import runpy; sys.argv = ['x', '--version']; runpy.run_module('hlo_replay', run_name='__main__')"):
            done = subprocess.run([sys.executable, "-B", "-c", broken + code], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"^hlo-replay \d")
        done = subprocess.run([sys.executable, "-B", "-c", broken + "hlo_replay.parse"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"ImportError: hlo_replay\.parse needs its extension, which cannot be loaded \(.*_hlo")

    def test_no_command(self):
        done = self.ran("import hlo_replay._program as p; p.PROGRAM = '/nowhere'; import os; os.environ.pop('HLO_REPLAY', None); "
                        "os.environ['PATH'] = '/nowhere'; sys.argv = ['hlo-replay', '--version']; hlo_replay.main()")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^error: there is no command hlo-replay")

    def test_what_needs_the_extension(self):
        for code in ("hlo_replay.parse", "from hlo_replay import Module", "import hlo_replay.recording"):
            done = self.ran(code)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"ImportError: hlo_replay\.\w+ needs CPython 3\.11 or newer; this is 3\.")
            self.assertNotIn("_hlo'", done.stderr)


if __name__ == "__main__":
    unittest.main()
