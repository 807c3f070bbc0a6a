"""hlo-replay inside jax: what XLA makes of a function, and whether it is right.

    import hlo_replay.jax as hj
    hj.record(f, x)             # every stage of its compilation
    with hj.capture() as run:   # of all that is compiled inside
        train_step(state, batch)
    hj.check(f, x)              # right, rounding, contract, wrong, unknown, and what decides
    hj.bisect(f, x)             # which pass departs
    hj.triage(f, x)             # all of it: the culprit, how sure, what was tried; a report
    hj.replace(f, stage)(x)     # an edited stage in its place
"""
from ._compile import capture
from ._record import Checked, Recording, Triaged, bisect, check, record, triage
from ._replace import Replaced, replace
from ._run import Module, Run
from ._tool import Error

__all__ = ["Checked", "Error", "Module", "Recording", "Replaced", "Run", "Triaged", "bisect", "capture", "check",
           "record", "replace", "triage"]
