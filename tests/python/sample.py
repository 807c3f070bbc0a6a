"""A program that uses the package as its stubs say; test_types.py has mypy read it."""
from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

import hlo_replay as hlo


def names_of(module: hlo.Module) -> list[str]:
    return [i.name for i in module if i.opcode == "dot" and i.shape.dims]


def used(i: hlo.Instruction) -> dict[str, int]:
    return {user.name: len(user.operands) for user in i.users}


def judge(module: hlo.Module) -> bool:
    return not module.verify()


def main(path: str) -> None:
    module = hlo.parse(pathlib.Path(path))
    columns: dict[str, np.ndarray[Any, Any]] = module.columns()
    out = module.run(*module.seeded_inputs(1), backend="host")
    with hlo.replay(module, disabled=["fusion"], progress=lambda done, of, what: None) as recording:
        stage: hlo.Stage = recording.stages[-1]
        print(stage.text, stage.module.name, stage.changed, stage.pass_name)
        found: hlo.Bisection = recording.bisect(oracle=judge)
        print(found.found, recording.explain("dot").events["what"], recording.cost().seconds, recording.memory().peak)
        print(recording.diff(0, -1).added, recording.summary().rows, recording.view())
        checked: hlo.Checked = recording.check(inputs="a.npz", outputs="a.npz")
        triaged: hlo.Triaged = recording.triage("wrong")
        held: hlo.Memory = recording.memory(log="train.log", stages=True, tries=True)
        printed: hlo.MemoryLog | None = held.log
        print(held.stages, held.changes, held.levers, printed and printed.complaints, recording.memory_log("train.log").buffers)
        captured: hlo.Captured | None = recording.captured
        names: list[str] = recording.search(opcode="dot").table()["instruction"]
        ran: hlo.Ran = recording.exec(0, seed=1)
        times: hlo.CompileTime = recording.compile_time()
        chosen: hlo.Tuned = recording.tuned(recording)
        timed: hlo.Profiled = recording.profile("host.xplane.pb", by="line")
        print(checked.decides, triaged.pass_name, captured and captured.versions, names, ran.inputs, times.told, chosen.same,
              timed.joined_share, [m.fingerprint for m in recording.modules])
    builder = hlo.Builder(hlo.Module("f"), "main")
    x = builder.parameter("f32[2]")
    builder.build(builder.op("add", [x, builder.constant(np.ones(2, np.float32))]))
    try:
        hlo.parse(b"")
    except hlo.ParseError as e:
        print(e.place, e.hint, e.kind, e.diagnostics)
    print(columns, out, names_of(module), used(module["dot"]), judge(module), module.reduce(judge, most=3))
