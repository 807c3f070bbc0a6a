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

    def test_what_needs_the_extension(self):
        for code in ("hlo_replay.parse", "from hlo_replay import Module", "import hlo_replay.recording"):
            done = self.ran(code)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"ImportError: hlo_replay\.\w+ needs CPython 3\.11 or newer; this is 3\.")
            self.assertNotIn("_hlo'", done.stderr)


if __name__ == "__main__":
    unittest.main()
