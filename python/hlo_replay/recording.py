"""Recordings: all stages of a module, our own or XLA's, and what they tell."""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from . import _hlo
from . import _html as h
from ._hlo import Module
from ._notebook import _plain
from ._program import report, run
from .errors import UsageError, failure
from .results import Cost, Diff, Explanation, Memory, Summary, Table, table

Progress = Callable[[int, int, str], object]
"""Told of long work: how much is done, of how much (0: nobody knows), and what is at hand. False ends it with
hlo.StoppedError; what it raises comes out of the call."""


class _Kept:
    """A folder that goes with its owner."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="hlo-replay-")
        self.cleanup = weakref.finalize(self, shutil.rmtree, self.name, True)


class Stage:
    """A row of a recording: its input, a pass that ran, a pipeline that began, or the result."""

    def __init__(self, recording: Recording, index: int, row: dict[str, Any]) -> None:
        self.recording = recording
        self.index = index
        self.data = row

    @property
    def name(self) -> str:
        """`before_optimizations`, `fusion.after_dce` …"""
        return str(self.data["name"])

    @property
    def kind(self) -> str:
        """"input", "pass", "step", "pipeline-start" or "result"."""
        return str(self.data["kind"])

    @property
    def pass_name(self) -> str:
        """The pass that made it; empty of inputs and results."""
        return str(self.data.get("pass") or "")

    @property
    def pipeline(self) -> str:
        return str(self.data.get("pipeline") or "")

    @property
    def changed(self) -> bool:
        """Is it another module than the stage before?"""
        return bool(self.data["changed"])

    @property
    def instructions(self) -> int:
        """Behind it; 0 where nobody has counted."""
        return int(self.data.get("instructions_after") or 0)

    @property
    def microseconds(self) -> int | None:
        """That the pass took; None where it is unknown."""
        return self.data.get("microseconds")

    @property
    def notes(self) -> list[dict[str, Any]]:
        """Rewrites and decisions of our own passes: rule, instructions (names), text."""
        return list(self.data.get("notes") or [])

    @property
    def text(self) -> str:
        """HLO's text of the module as it was then, from the recording's files: of large constants what they kept."""
        handle = self.recording._handle()
        for row in reversed(self.recording._all_rows()[: self.index + 1]):
            if row.data.get("file"):
                path = pathlib.Path(handle.folder, os.path.basename(row.data["file"]))
                if path.suffix in (".txt", ".hlo") and path.is_file():
                    return path.read_bytes().decode("utf-8", "surrogateescape")
                break
        return handle.text(self.index)

    @property
    def module(self) -> Module:
        """The module as it was then: a copy of yours to run, ask or change. Ids of instructions are those of the other
        stages."""
        return self.recording._handle().module(self.index)

    def __repr__(self) -> str:
        return f"<Stage {self.index} {_plain(self.name)}: {self._counts()}>"

    def _counts(self) -> str:
        before, after = self.data.get("instructions_before") or 0, self.instructions
        counted = f"{before} → {after} instructions" if before != after else f"{after} instructions"
        edits = ", ".join(f"{self.data[key]} {word}" for key, word in
                          (("added", "new"), ("removed", "gone"), ("modified", "changed")) if self.data.get(key))
        return counted + (f" ({edits})" if edits else "")

    def _repr_html_(self) -> str:
        took = "" if self.microseconds is None else f", {h.time_text(self.microseconds / 1e6)}"
        notes = [(str(n.get("rule", "")), _plain(", ".join(n.get("instructions") or [])), _plain(n.get("text") or ""))
                 for n in self.notes]
        return h.page(f"stage {self.index}: {_plain(self.name)}", h.line(self._counts() + took),
                      h.table(("rule", "instructions", ""), notes, 20) if notes else "",
                      h.text(_plain(self.text), "text"))


@dataclass(repr=False)
class Bisection:
    """Where a recording goes wrong (`hlo-replay bisect`).

    found: something is bad. verdict: the answer in words. good, bad: names of the last good stage and the first bad one;
    pass_name: the pass between them. rewrite, rule, instructions: of our own pipelines, the rewrite of that pass.
    asked: how many judgements it took.
    """

    found: bool
    verdict: str
    good: str | None
    bad: str | None
    pass_name: str | None
    rewrite: int | None
    rule: str | None
    instructions: list[str]
    asked: int
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Bisection:
        return cls(data["found"], data["verdict"], data["good"], data["bad"], data["pass"], data["rewrite"],
                   data["rule"], data["instructions"], data["judged"], data)

    def __bool__(self) -> bool:
        return self.found

    def __repr__(self) -> str:
        return f"<Bisection: {_plain(self.verdict)}>"

    def _repr_html_(self) -> str:
        rows = [("last good stage", self.good), ("first bad stage", self.bad), ("pass", self.pass_name),
                ("rewrite", self.rewrite), ("rule", self.rule), ("instructions", ", ".join(self.instructions)),
                ("judgements", self.asked)]
        value = self.data.get("first_value_that_differs")
        if value:
            rows.append(("first value that differs", f"{value['name']}: {value['difference']}"))
        return h.page("bisect", h.line(_plain(self.verdict), "bad" if self.found else ""),
                      h.table(("", ""), [(k, _plain(str(v))) for k, v in rows if v not in (None, "")]))


class Recording:
    """All stages of a module, made by `hlo.replay` or `hlo.open`; of a folder with several modules `modules` has one
    each, and what is about one module is asked of those.

    It holds files of its own where it was replayed into none that you named: `close()` removes them, as leaving a `with`
    does, and the end of the object. Every call of a closed one raises hlo.UsageError; modules taken from it live on.
    """

    def __init__(self, handle: _hlo.RecordingHandle, name: str = "", *, part: bool = False) -> None:
        parts = handle.modules()
        self._own = handle
        self._name = name or handle.folder
        self._modules = [] if len(parts) == 1 else [Recording(one, self._name, part=True) for one in parts]
        self._part = part  # of a folder that has others
        self._kept: _Kept | None = None  # of pages
        self._closed = False
        self._rows: list[Stage] | None = None

    def close(self) -> None:
        """Lets go of files and stages; a second time nothing happens."""
        self._closed = True
        self._rows = None
        for one in self._modules:
            one.close()
        self._own.close()
        if self._kept:
            self._kept.cleanup()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open(self) -> Recording:
        if self._closed:
            raise UsageError("this recording is closed")
        return self

    def _handle(self) -> _hlo.RecordingHandle:
        if self._open()._modules:
            names = ", ".join(f"{k}: {_plain(m.module_name)}" for k, m in enumerate(self._modules[:20]))
            raise UsageError(f"{self._name} holds {len(self._modules)} modules; ask one of .modules ({names})")
        return self._own

    def _spec(self) -> str:
        """As the command names it, all modules of a folder where it has several."""
        if self._open()._modules:
            return self._name
        handle = self._own
        return f"{handle.folder}:{handle.selector}" if self._part else handle.folder

    def _all_rows(self) -> list[Stage]:
        handle = self._handle()
        if self._rows is None:
            self._rows = [Stage(self, k, row) for k, row in enumerate(handle.rows())]
        return self._rows

    @property
    def folder(self) -> pathlib.Path:
        return pathlib.Path(self._handle().folder)

    @property
    def modules(self) -> list[Recording]:
        """One recording a module, in order; itself alone where there is one."""
        return list(self._open()._modules) or [self]

    def __getitem__(self, name: str) -> Recording:
        """The module of that name: `jit_train_step`, or the function `train_step`."""
        found = [m for m in self.modules if name in (m.module_name, re.sub("^p?jit_", "", m.module_name))]
        if len(found) == 1:
            return found[0]
        names = ", ".join(_plain(m.module_name) for m in self.modules[:20])
        raise UsageError(f"{'several modules are' if found else 'no module is'} called {name!r}; there are {names}")

    @property
    def module_name(self) -> str:
        return self._handle().name

    @property
    def source(self) -> str:
        """Who wrote the stages: "hlo-replay" or "xla"."""
        return self._handle().source

    @property
    def pipeline(self) -> str:
        """Ours; empty of XLA's."""
        return self._handle().pipeline

    @property
    def problems(self) -> list[str]:
        """Files that could not be read, and why."""
        return self._handle().problems

    @property
    def stages(self) -> list[Stage]:
        """Rows in order: input, passes, result. The first call reads and matches the texts of a foreign dump."""
        return list(self._all_rows())

    def __len__(self) -> int:
        return len(self._modules) or len(self.stages)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def stage(self, which: int | str | Stage) -> Stage:
        """By index (from the end where negative), by name, or by a part of a name that one stage alone has.

        Raises hlo.UsageError where none or several fit.
        """
        rows = self.stages
        if isinstance(which, Stage):
            return which
        if isinstance(which, str):
            found = [s for s in rows if s.name == which] or [s for s in rows if which and which in s.name]
            changed = [s for s in found if s.changed]
            if len(found) == 1 or len(changed) == 1:
                return (found if len(found) == 1 else changed)[0]
            near = ", ".join(_plain(s.name) for s in (found or rows)[:10])
            raise UsageError(f"{'several stages fit' if found else 'no stage fits'} {which!r}: {near} …")
        if not isinstance(which, int):
            raise TypeError(f"a stage is named by its index or its name, not by {type(which).__name__}")
        if not -len(rows) <= which < len(rows):
            raise UsageError(f"there are {len(rows)} stages, from 0")
        return rows[which]

    def table(self) -> Table:
        """Stages as columns: index, name, kind, pipeline, pass, changed, instructions_before, instructions_after, added,
        removed, modified, rewrites, microseconds (None: unknown)."""
        rows: list[dict[str, Any]] = [{"index": s.index, **s.data} for s in self.stages]
        columns = ("index", "name", "kind", "pipeline", "pass", "changed", "instructions_before", "instructions_after",
                   "added", "removed", "modified", "rewrites", "microseconds")
        wide = table(rows, columns)
        return {name: wide[name] for name in columns}

    def diff(self, a: int | str | Stage, b: int | str | Stage) -> Diff:
        """What stage `b` has that `a` has not and the other way round; by identity, so that nothing is guessed."""
        first, second = self.stage(a), self.stage(b)
        return Diff.of(first.name, second.name, self._handle().diff(first.index, second.index))

    def explain(self, name: str) -> Explanation:
        """What became of the instruction of that name, in every stage. Raises hlo.UsageError, naming near ones."""
        return Explanation.of(name, self._handle().explain(name))

    def cost(self, device: str = "") -> Cost:
        """Of the last stage. device: `H100`, `A100` …; what the dump was compiled for where it is left out."""
        return Cost.of(self._handle().cost(device))

    def memory(self, by: str = "line") -> Memory:
        """Of the last stage, by XLA's buffer assignment where the dump has it. by: line, scope or value."""
        return Memory.of(self._handle().memory(by)["modules"][0])

    def summary(self, by: str = "line", device: str = "") -> Summary:
        """Time and memory of all modules by line, scope, class or module; by pass: what passes did."""
        return Summary.of(report("summary", f"--by={by}", *([f"--gpu={device}"] if device else []), "--", self._spec()))

    def view(self, out: str | os.PathLike[str] | None = None, *, open_browser: bool = False) -> pathlib.Path:
        """One page that shows every stage, offline; its path. out: the file to write; left out, one that goes with the
        recording."""
        if out is None:
            if self._kept is None:
                self._kept = _Kept()
            out = pathlib.Path(tempfile.mkdtemp(dir=self._kept.name)) / "recording.html"
        code, _, said = run("view", "-o", os.path.abspath(out), "--", self._spec())
        if code:
            raise failure("io", said.strip().removeprefix("error: "))
        page = pathlib.Path(out)
        if open_browser:
            import webbrowser

            webbrowser.open(page.resolve().as_uri())
        return page

    def bisect(self, oracle: Callable[[Module], bool | None] | None = None, *, every: bool = True) -> Bisection:
        """Which pass turns good into bad.

        oracle: told of a stage's module, True where it is good, False where it is bad, None where it cannot tell; what it
        raises comes out of the call. It is asked a logarithmic number of times, of the last one first; where that is good
        and `every` is true, of all. None: stages are run on the same inputs, and values inside are compared.
        """
        if oracle is None:
            return Bisection.of(report("bisect", "--", self._spec()))
        outcome, good, bad, asked = self._handle().bisect(oracle, every)
        rows = self.stages
        if outcome == "found":
            before, after = rows[good], rows[bad]
            verdict = f"{after.name} is the first that is bad, {before.name} is good"
            return Bisection(True, verdict, before.name, after.name, after.pass_name or None, None, None, [], asked, {})
        words = {"all good": "no stage is bad" if every else "the last stage is good",
                 "first bad": "the very first stage is bad already"}
        bad_name = rows[0].name if outcome == "first bad" else None
        return Bisection(outcome == "first bad", words.get(outcome, "the oracle could not tell"), None, bad_name, None, None,
                         None, [], asked, {})

    def reduce(self, faulty: Callable[[Module], bool], stage: int | str | Stage = -1, **options: Any) -> Module:
        """The smallest module that is still faulty, of a stage: Module.reduce."""
        return self.stage(stage).module.reduce(faulty, **options)

    def __repr__(self) -> str:
        if self._closed:
            return "<Recording, closed>"
        if self._modules:
            return f"<Recording {_plain(self._name)}: {len(self._modules)} modules>"
        return f"<Recording of {_plain(self.module_name)} by {self.source}: {len(self.stages)} stages>"

    def _repr_html_(self) -> str:
        if self._closed:
            return h.page("a recording, closed")
        if self._modules:
            listed = [(k, _plain(m.module_name), len(m.stages)) for k, m in enumerate(self._modules)]
            return h.page(_plain(self._name), h.table(("modules[k]", "name", "stages"), listed, 100))
        stages = self.stages
        shown = [s for s in stages if s.changed or s.kind in ("input", "result")]
        most = max((s.instructions for s in shown), default=0) or 1
        rows = [(s.index, _plain(s.name), s.data.get("instructions_before") or "", s.instructions or "",
                 h.Bar(s.instructions / most), s.data.get("added") or "", s.data.get("removed") or "",
                 s.data.get("modified") or "", "" if s.microseconds is None else h.time_text(s.microseconds / 1e6))
                for s in shown]
        by = f"by hlo-replay's pipeline {self.pipeline}" if self.source == "hlo-replay" else "dumped by XLA"
        heads = ("stage", "name", "before", "after", "instructions", "new", "gone", "changed", "time")
        return h.page(f"module {_plain(self.module_name)}", h.line(f"{len(stages)} stages {by}, {len(shown)} shown: those that "
                      "changed something"), h.table(heads, rows, 60), *(h.line(_plain(p), "bad") for p in self.problems[:5]))


def open(folder: str | os.PathLike[str]) -> Recording:  # pylint: disable=redefined-builtin
    """What a folder holds: of `hlo-replay replay`, or as XLA dumps it (`--xla_dump_to`); its modules and their stages.

    Raises hlo.InputError where there is none.
    """
    where = os.path.abspath(os.fsdecode(folder))
    return Recording(_hlo.open_recording(where), where)


def replay(module: Module, pipeline: str = "", *, out: str | os.PathLike[str] | None = None,
           only: Iterable[str] = (), disabled: Iterable[str] = (), fuel: Mapping[str, int] | None = None, again: bool = False,
           formats: Iterable[str] = ("text", "dot", "page", "buffers", "thunks"), progress: Progress | None = None) -> Recording:
    """Takes a copy of the module through a pipeline (`hlo.pipelines()`), every stage recorded. Where none is named, it is
    that of the module's time: xla-2019 for texts of 2019, else xla-gpu.

    out: a new folder for the files, index.html among them; left out, they go with the recording. only, disabled: passes.
    fuel: most rewrites of a pass. again: take a module that is optimised already, and replace `out`. Raises hlo.UsageError
    for names that nobody has, hlo.InputError for modules that do not verify, hlo.Error where `out` is there already.
    """
    where = "" if out is None else os.path.abspath(os.fsdecode(out))
    return Recording(_hlo.replay_module(module, where, pipeline, _words(only), _words(disabled), dict(fuel or {}),
                                        _words(formats), again, progress))


def _words(of: Iterable[str]) -> set[str]:
    if isinstance(of, str):
        raise TypeError("a list of names is wanted, not one text")
    return set(of)
