"""Input that wants to break in: every module of tests/hostile/ yields cases; all of them must hold.

hostile_test.py TOOL SOURCE_FOLDER [WORD…]: only cases whose names hold a WORD.
"""
import importlib.util
import os
import pathlib
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True


def cases_of(path, tool, data, tmp):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.cases(tool, data, tmp)


def main():
    tool, source, words = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    folder = source / "tests" / "hostile"
    sys.path.insert(0, str(folder))
    passed, failed, slow = 0, [], []
    for path in sorted(folder.glob("*_cases.py")):
        with tempfile.TemporaryDirectory(prefix="hlo-hostile-") as tmp:
            for name, case in cases_of(path, tool, source / "testdata" / "hostile", pathlib.Path(tmp)):
                if words and not any(word in name for word in words):
                    continue
                start = time.monotonic()
                try:
                    case()
                    passed += 1
                except Exception:  # pylint: disable=broad-except
                    failed.append(name)
                    print(f"FAILED {path.stem}: {name}\n{traceback.format_exc(limit=3)}")
                slow.append((time.monotonic() - start, name))
    for seconds, name in sorted(slow, reverse=True)[:5]:
        print(f"{seconds:6.2f} s  {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
