"""hlo-replay: reads HLO, XLA's IR, of any age, replays its passes one by one, runs any stage, and shows them all.

    import hlo_replay as hlo
    module = hlo.parse(pathlib.Path("model.hlo"))
    recording = hlo.replay(module)            # our pipeline, every stage; or
    recording = hlo.open("xla_dump")          # what XLA dumped (--xla_dump_to)
    recording.stages[-1].module.run(x, y)     # run any stage
    recording.explain("dot.3")                # what became of an instruction
"""
from __future__ import annotations

import os
import sys

from ._program import PROGRAM, program
from .errors import UsageError

__all__ = [
    "Bisection", "Builder", "Captured", "Checked", "CompileTime", "Computation", "Cost", "Diff", "Error", "Explanation",
    "Finding", "Found", "InputError", "Instruction", "InternalError", "Memory", "MemoryLog", "Module", "PROGRAM", "ParseError",
    "PassDone", "PassInfo", "Passes", "Profiled", "Ran", "Recording", "Shape", "SourceFrame", "Stage", "StoppedError",
    "Summary", "Triaged", "Tuned", "UnsupportedError", "UsageError", "__version__", "backends", "diff", "main", "open",
    "parse", "parse_all", "passes", "pipelines", "replay",
]


def _only_the_command(why: str) -> None:
    """The command needs no extension: `hlo-replay` and `python -m hlo_replay` work, and each other name says why it is absent."""
    def missing(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(f"hlo_replay.{name} needs {why}; the command hlo-replay works here (also as: python -m hlo_replay)")

    for name in set(__all__) - {"PROGRAM", "UsageError", "main"}:  # what was imported before the one that failed
        globals().pop(name, None)
    globals()["__getattr__"] = missing


if sys.version_info >= (3, 11):
    try:
        from ._hlo import (Builder, Computation, Finding, Instruction, Module, PassDone, Passes, PassInfo, Shape, SourceFrame,
                           backends, parse, parse_all, passes, pipelines, version)
        from ._reports import diff
        from .errors import Error, InputError, InternalError, ParseError, StoppedError, UnsupportedError
        from .answers import Bisection, Checked, CompileTime, Found, Profiled, Ran, Triaged, Tuned
        from .captured import Captured
        from .recording import Recording, open, replay
        from .stage import Stage
        from .results import Cost, Diff, Explanation, Memory, MemoryLog, Summary
    except ImportError as error:  # built for another interpreter, not built, or numpy is missing
        _only_the_command(f"its extension, which cannot be loaded ({error})")
    else:
        __version__ = version()
else:
    _only_the_command(f"CPython 3.11 or newer; this is {sys.version.split()[0]}")


def main() -> None:
    """The command `hlo-replay`."""
    try:
        command = program()
    except UsageError as error:
        sys.exit(f"error: {error}")
    if os.path.realpath(command) == os.path.realpath(sys.argv[0]):  # the script on PATH that called this
        sys.exit(f"error: this installation of hlo_replay has no {PROGRAM}")
    os.execv(command, ["hlo-replay", *sys.argv[1:]])
