"""What tests of the command line share."""
import base64
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

tool, source = sys.argv[1:3]
data = pathlib.Path(source) / "testdata"
failures = 0
# The reducer of modules that sum.
SUM = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

"""


def run(*args, stdin=None, env=None):
    done = subprocess.run([tool, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


def expect(name, condition, detail=""):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED {name}: {detail}")


def bisect_stages(folder, stages, *more, header="HloModule m\n\n"):
    """bisect over a dump made of `stages`: (pass, text of the module behind its header) in order, the first one before any pass. Exit code and answer."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    for n, (made_by, text) in enumerate(stages):
        file = "before_optimizations" if n == 0 else f"{n:04}.simplification.after_{made_by}.before_next"
        (folder / f"module_0000.m.{file}.txt").write_text(header + text)
    code, text, err = run("bisect", folder, "--json", *more)
    return code, json.loads(text) if text.startswith("{") else {"verdict": err, "elided": "", "elements": None}


def finish(test):
    print(f"{test}:", "FAILED" if failures else "passed")
    sys.exit(1 if failures else 0)


def page_files(page):
    """What a page of `view` carries, by name; JSON as values."""
    text = pathlib.Path(page).read_text()
    data = re.search('id="hlo-data">([A-Za-z0-9+/=]*)<', text).group(1)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(data)), mode="r:gz") as archive:
        files = {f.name: archive.extractfile(f).read() for f in archive}
    return {name: json.loads(bytes_) if name.endswith(".json") else bytes_ for name, bytes_ in files.items()}
