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

from ._program import PROGRAM

if sys.version_info >= (3, 11):
    from ._hlo import (Builder, Computation, Finding, Instruction, Module, PassDone, Passes, PassInfo, Shape, SourceFrame,
                       backends, parse, parse_all, passes, pipelines, version)
    from ._reports import diff
    from .errors import Error, InputError, InternalError, ParseError, StoppedError, UnsupportedError, UsageError
    from .answers import Bisection, Checked, CompileTime, Found, Profiled, Ran, Triaged, Tuned
    from .captured import Captured
    from .recording import Recording, open, replay
    from .stage import Stage
    from .results import Cost, Diff, Explanation, Memory, Summary

    __version__ = version()
else:  # the command needs no extension
    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(f"hlo_replay.{name} needs CPython 3.11 or newer; this is {sys.version.split()[0]}, where the "
                          "command hlo-replay works (also as: python -m hlo_replay)")

__all__ = [
    "Bisection", "Builder", "Captured", "Checked", "CompileTime", "Computation", "Cost", "Diff", "Error", "Explanation",
    "Finding", "Found", "InputError", "Instruction", "InternalError", "Memory", "Module", "PROGRAM", "ParseError",
    "PassDone", "PassInfo", "Passes", "Profiled", "Ran", "Recording", "Shape", "SourceFrame", "Stage", "StoppedError",
    "Summary", "Triaged", "Tuned", "UnsupportedError", "UsageError", "__version__", "backends", "diff", "main", "open",
    "parse", "parse_all", "passes", "pipelines", "replay",
]


def main() -> None:
    """The command `hlo-replay`."""
    os.execv(PROGRAM, ["hlo-replay", *sys.argv[1:]])
