#!/usr/bin/env python3
"""Verdict and print of XLA's parser on many texts: reads JSON lines {"text", "styles"} from standard input, answers a
JSON line each: {"ok", "error"|"prints"}. A text that aborts XLA is answered {"ok": false, "abort": true}."""
import json
import os
import pathlib
import subprocess
import sys


def child():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"))
    if os.environ.get("HLO_ORACLE"):
        sys.path.insert(0, os.environ["HLO_ORACLE"])
    import xla

    hlo = xla.bindings()
    for line in sys.stdin:
        case = json.loads(line)
        try:
            module = hlo.hlo_module_from_text(case["text"])
            prints = {}
            for style in case["styles"]:
                prints[style] = xla.styled(module, style)
            answer = {"ok": True, "prints": prints}
        except Exception as e:
            answer = {"ok": False, "error": str(e)[:600]}
        print(json.dumps(answer), flush=True)


class Oracle:
    def __init__(self, python=sys.executable):
        self.python, self.process = python, None

    def ask(self, text, styles=("default",)):
        if self.process is None:
            self.process = subprocess.Popen([self.python, __file__, "--child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps({"text": text, "styles": list(styles)}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.kill()
            self.process = None
            return {"ok": False, "abort": True}
        return json.loads(line)


if __name__ == "__main__":
    child()
