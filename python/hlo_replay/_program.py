"""The command `hlo-replay`, for what it reports: one answer has one home, and a child's end is no end of ours."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

from .errors import failure

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "hlo-replay")


def program() -> str:
    """The command: $HLO_REPLAY, the one of this package, or (of the sources alone) the one on PATH."""
    for found in (os.environ.get("HLO_REPLAY"), PROGRAM, shutil.which("hlo-replay")):
        if found and os.access(found, os.X_OK):
            return found
    raise failure("usage", f"there is no command hlo-replay: neither $HLO_REPLAY nor {PROGRAM} nor one on PATH")


def run(*words: str | os.PathLike[str]) -> tuple[int, str, str]:
    """Runs it with those words: its exit code, what it printed, and what it complained of.

    Raises KeyboardInterrupt when Ctrl-C is pressed, after the child has cleaned up.
    """
    with subprocess.Popen([program(), *(os.fspath(word) for word in words)], text=True, errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            out, said = child.communicate()
        except BaseException:
            child.terminate()
            try:
                child.wait(2)
            except subprocess.TimeoutExpired:
                child.kill()
            raise
    return child.returncode, out, said


def report(*words: str | os.PathLike[str]) -> Any:
    """The object that the command prints with --json. Raises hlo.Error where it fails."""
    code, out, said = run(words[0], "--json", *words[1:])
    try:
        told = json.loads(out)
    except ValueError:
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        raise failure("internal", f"hlo-replay {words[0]!s}: {ended}: {said.strip()[-2000:]}") from None
    if isinstance(told, dict) and "error" in told:
        error = told["error"]
        raise failure(error["kind"], error["message"], error.get("diagnostics") or [])
    return told
