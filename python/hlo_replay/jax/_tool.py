"""All that this package asks of hlo-replay goes through here: the command with --json, a child for each question."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

try:
    from ..errors import Error as Error, failure as failure
except ImportError:  # the sources alone, without the extension

    class Error(Exception):  # type: ignore[no-redef]
        """Work that could not go on. kind: "usage", "unsupported", "invalid" …, as --json tells it."""

        kind = "internal"

    def failure(kind: str, message: str, diagnostics: Any = None) -> Error:  # type: ignore[misc]
        error = Error(message)
        error.kind = kind
        return error


def program() -> str:
    """The command: $HLO_REPLAY, the one of this package, or the one on PATH."""
    own = pathlib.Path(__file__).resolve().parent.parent / "bin" / "hlo-replay"
    for found in (os.environ.get("HLO_REPLAY"), str(own), shutil.which("hlo-replay")):
        if found and os.access(found, os.X_OK):
            return found
    raise failure("usage", f"there is no command hlo-replay: neither $HLO_REPLAY nor {own} nor one on PATH")


def run(*words: Any) -> tuple[int, str, str]:
    """Its exit code, what it printed, what it complained of. Ctrl-C ends the child, too."""
    with subprocess.Popen([program(), *map(str, words)], text=True, errors="replace", stdin=subprocess.DEVNULL,
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


def ask(command: str, *words: Any) -> dict[str, Any]:
    """The object that the command prints with --json. Raises Error where it fails."""
    code, out, said = run(command, *words, "--json")
    try:
        told = json.loads(out)
    except ValueError:
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        raise failure("internal", f"hlo-replay {command}: {ended}: {said.strip()[-2000:]}") from None
    if "error" in told:
        raise failure(told["error"]["kind"], told["error"]["message"], told["error"].get("diagnostics") or [])
    return dict(told)


def convert(source: Any, target: Any) -> None:
    """A module in the format of the target's ending."""
    code, _, said = run("convert", source, target)
    if code:
        raise failure("invalid", said.strip())
