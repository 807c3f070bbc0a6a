"""What tests of the command line share."""
import os
import pathlib
import subprocess
import sys

tool, source = sys.argv[1:3]
data = pathlib.Path(source) / "testdata"
failures = 0


def run(*args, stdin=None, env=None):
    done = subprocess.run([tool, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


def expect(name, condition, detail=""):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED {name}: {detail}")


def finish(test):
    print(f"{test}:", "FAILED" if failures else "passed")
    sys.exit(1 if failures else 0)
