"""hlo-replay inside jax: what XLA makes of a function, and whether it is right.

    import hlo_replay.jax as hj
    hj.record(f, x)             # every stage of its compilation
    with hj.capture() as run:   # of all that is compiled inside
        train_step(state, batch)
    hj.check(f, x)              # right, rounding, contract, wrong, unknown, and what decides
    hj.bisect(f, x)             # the pass that differs
    hj.triage(f, x)             # all of it: the cause, how sure, what was tried; a report
    hj.replace(f, stage)(x)     # an edited stage in its place
"""
from typing import Any

from .._old import old as _old
from ..answers import Bisection, Checked, Triaged
from ..recording import Recording
from ..stage import Stage
from ._compile import capture
from ._record import bisect, check, record, triage
from ._replace import Replaced, replace
from ._tool import Error

__all__ = ["Bisection", "Checked", "Error", "Recording", "Replaced", "Stage", "Triaged", "bisect", "capture", "check",
           "record", "replace", "triage"]


def __getattr__(name: str) -> Any:
    if name in ("Module", "Run"):  # before they were recordings
        _old(f"hlo_replay.jax.{name}", "write hlo_replay.Recording")
        return Recording
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
