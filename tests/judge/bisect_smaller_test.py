#!/usr/bin/env python3
"""bisect with small arrays: --smaller, and by itself where chosen elements leave a stage open.  bisect_smaller_test.py HLO_REPLAY SOURCE_FOLDER"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import SUM, bisect_stages, expect, finish, source
from json_schema import Schemas

PRODUCT = """ENTRY e {{
  x = f32[131072,16384]{{1,0}} parameter(0)
  w = f32[16384,131072]{{1,0}} parameter(1)
  y = f32[131072,131072]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  two = f32[] constant({two})
  twos = f32[131072,131072]{{1,0}} broadcast(two), dimensions={{}}
  ROOT out = f32[131072,131072]{{1,0}} {op}(y, twos)
}}
"""
HALF, TIMES = PRODUCT.format(two=2, op="divide"), PRODUCT.format(two=0.5, op="multiply")
# A sort of 256 GiB, of which no element is told without all of them.
SORT = """less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=%s }

ENTRY e {
  x = f32[68719476736]{0} parameter(0)
  %s
}
"""
UP = SORT % ("LT", "ROOT s = f32[68719476736]{0} sort(x), dimensions={0}, to_apply=less")
TURNED = ("n = f32[68719476736]{0} negate(x)\n  t = f32[68719476736]{0} sort(n), dimensions={0}, to_apply=less\n"
          "  ROOT s = f32[68719476736]{0} negate(t)")
# How many ones there are: a number that only this size gives.
COUNT = SUM + """ENTRY e {
  x = f32[16384,16777216]{1,0} parameter(0)
  one = f32[] constant(1)
  zero = f32[] constant(0)
  ones = f32[16384]{0} broadcast(one), dimensions={}
  n = f32[] reduce(ones, zero), dimensions={0}, to_apply=add
  nb = f32[16384,16777216]{1,0} broadcast(n), dimensions={}
  ROOT m = f32[16384,16777216]{1,0} divide(x, nb)
}
"""
COUNTED = COUNT.replace("n = f32[] reduce(ones, zero), dimensions={0}, to_apply=add", "n = f32[] constant(16384)")

schemas = Schemas(pathlib.Path(source) / "docs" / "schemas")
with tempfile.TemporaryDirectory() as tmp:
    def bisect(name, stages, *more):
        code, j = bisect_stages(pathlib.Path(tmp) / name, stages, *more)
        if "smaller" in j:
            wrong = schemas.wrong(j, "bisect.json")
            expect(f"{name}: its JSON", not wrong, wrong)
        return code, j, j.get("smaller") or {}

    code, j, s = bisect("sound", [("", HALF), ("algsimp", TIMES)], "--smaller")
    expect("sound", code == 0 and j["verdict"].startswith("tested on a smaller program"), (code, j["verdict"]))

    code, j, s = bisect("planted", [("", HALF), ("dce", HALF), ("algsimp", PRODUCT.format(two=2, op="multiply"))], "--smaller")
    expect("a planted fault", code == 1 and j["pass"] == "algsimp" and (j["first_value_that_differs"] or {}).get("name") == "out", (code, j["verdict"]))
    expect("seen at full size, too", s.get("confirmed") is True and "seen at full size" in j["guilty"] and "131072,131072" in j["after"][0], (s, j["guilty"], j["after"]))

    code, j, s = bisect("refuted", [("", COUNT), ("constant_folding", COUNTED), ("dce", COUNTED)], "--smaller")
    expect("what only small arrays accuse", code == 0 and s.get("refuted") == ["0001 simplification.after_constant_folding"] and "no fault" in j["verdict"], (code, s, j["verdict"]))
    wrong = COUNTED.replace("divide(x, nb)", "multiply(x, nb)")
    code, j, s = bisect("behind", [("", COUNT), ("constant_folding", COUNTED), ("algsimp", wrong)], "--smaller")
    expect("a fault behind it", code == 1 and j["pass"] == "algsimp" and s.get("confirmed") is True, (code, s, j["verdict"]))

    code, j, s = bisect("open", [("", UP), ("dce", UP), ("sort-simplifier", SORT % ("GT", TURNED))])
    expect("what elements leave open", code == 0 and s.get("stages") == s.get("open") == 1 and "at smaller sizes" in j["verdict"], (code, s, j["verdict"]))
    code, j, s = bisect("asked for", [("", UP), ("dce", UP), ("sort-simplifier", SORT % ("GT", TURNED))], "--elements")
    expect("elements alone", code == 2 and not s, (code, s, j["verdict"]))
    code, j, s = bisect("guessed", [("", UP), ("dce", UP), ("sort-simplifier", SORT % ("LT", TURNED))], "--smaller")
    expect("what small arrays accuse alone is guessed", code == 1 and j["pass"] == "sort-simplifier" and s.get("confirmed") is False and "guessed" in j["guilty"], (code, s, j["guilty"]))
    code, j, s = bisect("not by itself", [("", UP), ("dce", UP), ("sort-simplifier", SORT % ("LT", TURNED))])
    expect("a guess that nobody asked for stays open", code == 2 and s.get("stages") == 0 and "with small arrays it differs" in j["unknown"][0]["why"], (code, s, j["verdict"], j["unknown"]))

    # 300 MiB: run where there is memory, else at chosen elements.
    some = [("", HALF.replace("131072", "4096").replace("16384", "64")), ("algsimp", TIMES.replace("131072", "4096").replace("16384", "64"))]
    code, j, s = bisect("memory", some, "--memory-limit=0.25")
    expect("a budget of memory", code == 0 and j["elements"] is not None, (code, j["verdict"]))

finish("bisect_smaller_test")
