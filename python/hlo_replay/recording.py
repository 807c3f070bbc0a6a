"""Recordings: all stages of a module, our own or XLA's, and what they answer."""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from . import _hlo
from . import _html as h
from ._hlo import Module
from ._notebook import _plain
from ._old import old
from ._program import report, run
from .answers import Bisection, Checked, CompileTime, Found, Profiled, Ran, Triaged, Tuned
from .captured import Captured, debug_options, fingerprint, read_captured
from .errors import Error, UsageError, failure
from .results import Cost, Diff, Explanation, Memory, MemoryLog, Summary, Table, table
from .stage import Stage

Progress = Callable[[int, int, str], object]
"""Called during long work: how much is done, of how much (0: unknown), and what is at hand. False ends it with
hlo.StoppedError; what it raises comes out of the call."""


class _Kept:
    """A folder that goes with its owner."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="hlo-replay-")
        self.cleanup = weakref.finalize(self, shutil.rmtree, self.name, True)


class Recording:
    """All stages of a module: of `hlo.replay`, `hlo.open`, `hlo_replay.jax.record` or `hlo_replay.jax.capture`. Of a folder
    with several modules `modules` has one recording each, and what is about one module is asked of those.

    It has temporary files where it was made into no folder that you named: `close()` removes them, as leaving a `with`
    does, and the end of the object. Every call of a closed one raises hlo.UsageError; modules taken from it live on.
    compiled: of `hlo_replay.jax.record` the compiled function, else None. notes: what `capture` could not have.
    """

    def __init__(self, handle: _hlo.RecordingHandle | None, name: str = "", *, part: bool = False, of_jax: Any = None,
                 captures: bool = False, keeps: Any = None) -> None:
        self._opened = handle
        self._name = name or (handle.folder if handle else "")
        self._parts: list[Recording] | None = None
        self._part = part  # of a folder that has others
        self._of_jax = of_jax  # what was compiled, to be run: hlo_replay.jax
        self._captures = captures  # by hlo_replay.jax.capture: it grows while that goes on
        self._keeps = keeps  # whose end removes the files
        self._kept: _Kept | None = None  # of pages
        self._closed = False
        self._rows: list[Stage] | None = None
        self.compiled: Any = getattr(of_jax, "compiled", None)
        self.notes: list[str] = []

    def close(self) -> None:
        """Lets go of files and stages; a second time nothing happens."""
        self._closed = True
        self._rows = None
        for one in self._parts or []:
            one.close()
        if self._opened:
            self._opened.close()
        self._keeps = self._of_jax = None
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

    def _changed(self) -> None:
        """The folder holds more than before."""
        self._opened = self._parts = self._rows = None

    @property
    def _own(self) -> _hlo.RecordingHandle:
        if self._open()._opened is None:
            self._opened = _hlo.open_recording(self._name)
        assert self._opened is not None
        return self._opened

    @property
    def _modules(self) -> list[Recording]:
        """Those of a folder with several; of one module: none."""
        if self._open()._parts is None:
            if self._captures and not any(pathlib.Path(self._name).glob("*/*")):
                self._parts = []
            else:
                parts = self._own.modules()
                self._parts = [] if len(parts) == 1 else [Recording(one, self._name, part=True, keeps=self._keeps) for one in parts]
        return self._parts or []

    def _handle(self) -> _hlo.RecordingHandle:
        if self._open()._modules:
            names = ", ".join(f"{k}: {_plain(m.module_name)}" for k, m in enumerate(self._modules[:20]))
            raise UsageError(f"{self._name} holds {len(self._modules)} modules; ask one of .modules ({names})")
        return self._own

    @property
    def spec(self) -> str:
        """As the command line names it, all modules of a folder where it has several."""
        if self._open()._modules:
            return self._name
        handle = self._own
        return f"{handle.folder}:{handle.selector}" if self._part else handle.folder

    def ask(self, command: str, *words: Any) -> dict[str, Any]:
        """Any command about it that has --json, for what has no method here: its object (docs/schemas/)."""
        return dict(report(command, self.spec, *map(str, words)))

    def _all_rows(self) -> list[Stage]:
        handle = self._handle()
        if self._rows is None:
            self._rows = [Stage(self, k, row) for k, row in enumerate(handle.rows())]
        return self._rows

    @property
    def folder(self) -> pathlib.Path:
        """Where the files are."""
        return pathlib.Path(self._name if self._open()._modules or self._captures else self._own.folder)

    @property
    def modules(self) -> list[Recording]:
        """One recording a module, in order; itself alone where there is one."""
        many = list(self._open()._modules)
        if not many and self._captures:
            if not any(pathlib.Path(self._name).glob("*/*")):
                return []
            return [Recording(self._own, self._name, part=True, keeps=self._keeps)]
        return many or [self]

    def find(self, function: str) -> list[Recording]:
        """The modules of a function: `train_step`, or XLA's name of it, `jit_train_step`."""
        return [m for m in self.modules if function in (m.module_name, m.function)]

    def match(self, other: Recording) -> list[tuple[Recording, Recording]]:
        """The same modules of another run, by function and fingerprint: module numbers differ from run to run."""
        left = list(other.modules)
        pairs = []
        for m in self.modules:
            twin = next((o for o in left if (o.function, o.fingerprint) == (m.function, m.fingerprint)), None)
            if twin:
                left.remove(twin)
                pairs.append((m, twin))
        return pairs

    def __getitem__(self, name: str | int) -> Recording:
        """The module of that name: `jit_train_step`, or the function `train_step`."""
        if isinstance(name, int):
            old(f"recording[{name}]", f"write recording.modules[{name}]")
            return self.modules[name]
        found = self.find(name)
        if len(found) == 1:
            return found[0]
        names = ", ".join(_plain(m.module_name) for m in self.modules[:20]) or "nothing"
        raise UsageError(f"{len(found) or 'no'} module{'s are' if len(found) > 1 else ' is'} called {name!r}; there "
                         f"{'are' if len(self.modules) > 1 else 'is'} {names}")

    @property
    def module_name(self) -> str:
        """XLA's name: `jit_train_step`."""
        return self._handle().name

    @property
    def function(self) -> str:
        """The function of jax: `train_step`."""
        return re.sub("^p?jit_", "", self.module_name)

    @property
    def number(self) -> int:
        """XLA's number of the module, another one in the next compilation."""
        found = re.match(r"module_(\d+)\.", self._first_file().name)
        return int(found[1]) if found else 1

    @property
    def fingerprint(self) -> str:
        """Of the module before any pass, without ids, names of instructions and source lines: two compilations of one
        function for the same arguments have the same."""
        return fingerprint(self._first_file().read_text(errors="replace"))

    def _first_file(self) -> pathlib.Path:
        folder = pathlib.Path(self._handle().folder)
        name = self.module_name
        found = sorted(f for f in folder.iterdir() if f.name.endswith("before_optimizations.txt") and f".{name}." in f.name)
        if len(found) > 1:  # by number, where several modules have one name
            selector = self._handle().selector
            found = [f for f in found if f.name.startswith(f"module_{selector.split(':')[-1].zfill(4)}.")] or found
        if not found:
            raise UsageError(f"{folder} has no text of the first stage of {name}")
        return found[0]

    @property
    def captured(self) -> Captured | None:
        """Versions, flags, devices, arguments: of what `hlo_replay.jax` or `hlo-replay capture` made; None of another
        folder. Raises hlo.InputError where the folder is of another release."""
        return read_captured(self.folder, self._keeps)

    def debug_options(self) -> dict[str, list[str]]:
        """The flags that reached XLA's compiler, as it wrote them down; lists of texts."""
        return debug_options(self.folder)

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
        """Rows in order: input, passes, result. The first call reads and matches the texts of XLA's dump."""
        return list(self._all_rows())

    def __len__(self) -> int:
        if self._captures:
            old("len() of what capture() gives", "write len(run.modules)")
            return len(self.modules)
        return len(self._modules) or len(self.stages)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        if self._captures:
            old("going over what capture() gives", "write run.modules")
            return iter(self.modules)
        return iter(self.stages)

    def stage(self, which: int | str | Stage) -> Stage:
        """By index (from the end where negative), by name, by pass, or by a part of a name that one stage alone has.

        Raises hlo.UsageError where none or several fit.
        """
        rows = self.stages
        if isinstance(which, Stage):
            return which
        if isinstance(which, str):
            found = ([s for s in rows if s.name == which] or [s for s in rows if which and s.pass_name == which]
                     or [s for s in rows if which and which in s.name])
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
        """Stages as columns: index, number, name, kind, pipeline, pass, changed, instructions_before, instructions_after, added,
        removed, modified, rewrites, microseconds (None: unknown)."""
        rows: list[dict[str, Any]] = [{"index": s.index, **s.data} for s in self.stages]
        columns = ("index", "number", "name", "kind", "pipeline", "pass", "changed", "instructions_before", "instructions_after",
                   "added", "removed", "modified", "rewrites", "microseconds")
        wide = table(rows, columns)
        return {name: wide[name] for name in columns}

    def diff(self, a: int | str | Stage | Recording = 0, b: int | str | Stage = -1) -> Diff:
        """What stage `b` has that `a` has not and the other way round; by identity, so that nothing is guessed. `a`:
        another recording: what that one's stage `b` has and this one's has not."""
        if isinstance(a, Recording):
            mine, other = self.stage(b), a.stage(b)
            return Diff.of(mine.name, other.name, _hlo.module_diff(mine.module, other.module))
        first, second = self.stage(a), self.stage(b)
        return Diff.of(first.name, second.name, self._handle().diff(first.index, second.index))

    def explain(self, name: str) -> Explanation:
        """What became of the instruction of that name, in every stage. Raises hlo.UsageError, naming near ones."""
        return Explanation.of(name, self._handle().explain(name))

    def cost(self, device: str = "") -> Cost:
        """Of the last stage. device: `H100`, `A100` …; what the dump was compiled for where it is left out."""
        return Cost.of(self._handle().cost(device))

    def memory(self, by: str = "line", *, log: str | os.PathLike[str] | None = None, stages: bool = False,
               tries: bool = False) -> Memory:
        """Of the last stage, by XLA's buffer assignment where the dump has it. by: line, scope or value.

        log: a file of what the program printed when memory ran out. stages: the peak after each pass. tries: compile
        changes that may need less memory by our passes; that takes as long as several replays.
        """
        handle = self._handle()
        words = [f"--log={os.fspath(log)}"] if log is not None else []
        words += ["--stages"] if stages else []
        words += ["--try"] if tries else []
        if not words:
            return Memory.of(handle.memory(by)["modules"][0])
        told = report("memory", f"--by={by}", *words, "--", self.spec)
        return Memory.of(told["modules"][0], told["log"])

    def memory_log(self, log: str | os.PathLike[str]) -> MemoryLog:
        """What the program printed when memory ran out, joined to all modules. log: a file."""
        return MemoryLog.of(report("memory", f"--log={os.fspath(log)}", "--", self.spec)["log"])

    def summary(self, by: str = "line", device: str = "") -> Summary:
        """Time and memory of all modules by line, scope, class or module; by pass: what passes did."""
        if not self._open()._modules and by in ("line", "scope", "class"):
            return Summary.of(self._own.summary(by, device))
        return Summary.of(report("summary", f"--by={by}", *([f"--gpu={device}"] if device else []), "--", self.spec))

    def view(self, out: str | os.PathLike[str] | None = None, *, open_browser: bool = False) -> pathlib.Path:
        """One page that shows every stage, offline; its path. out: the file to write; left out, one that goes with the
        recording."""
        if out is None:
            if self._kept is None:
                self._kept = _Kept()
            out = pathlib.Path(tempfile.mkdtemp(dir=self._kept.name)) / "recording.html"
        code, _, said = run("view", "-o", os.path.abspath(out), "--", self.spec)
        if code:
            raise failure("io", said.strip().removeprefix("error: "))
        page = pathlib.Path(out)
        if open_browser:
            import webbrowser

            webbrowser.open(page.resolve().as_uri())
        return page

    def bisect(self, oracle: Callable[[Module], bool | None] | None = None, *, every: bool = True,
               inputs: str | os.PathLike[str] | None = None, seed: int | None = None) -> Bisection:
        """Which pass turns good into bad.

        oracle: called with a stage's module: True where it is good, False where it is bad, None where that is unknown; what it
        raises comes out of the call. It is asked a logarithmic number of times, of the last one first; where that is good
        and `every` is true, of all. None: stages are run on the same inputs, and values inside are compared. inputs: a
        file with p0, p1 … (.npz); seed: they are random. Neither: the arguments that the program had, where they are kept
        with the folder (Bisection.inputs says so), else random ones.
        """
        if oracle is None:
            return self._bisected(inputs, seed)
        outcome, good, bad, asked = self._handle().bisect(oracle, every)
        rows = self.stages
        if outcome == "found":
            before, after = rows[good], rows[bad]
            verdict = f"{after.name} is the first that is bad, {before.name} is good"
            return Bisection(True, verdict, before.name, after.name, after.pass_name or None, None, None, [], asked, {})
        words = {"all good": "no stage is bad" if every else "the last stage is good",
                 "first bad": "the very first stage is bad already"}
        bad_name = rows[0].name if outcome == "first bad" else None
        return Bisection(outcome == "first bad", words.get(outcome, "the oracle did not decide"), None, bad_name, None, None,
                         None, [], asked, {})

    def _bisected(self, inputs: str | os.PathLike[str] | None, seed: int | None) -> Bisection:
        words = _inputs(inputs, seed)
        if self._of_jax and not words:
            given, got = self._of_jax.run()
            words = [f"--inputs={given}", f"--outputs={got}"]
        answer = report("bisect", *words, "--", self.spec)
        answer["source_line"] = None
        first = answer.get("first_value_that_differs") or {}
        for name in filter(None, (first.get("before"), first.get("name"))):
            try:
                answer["source_line"] = self.explain(name).source or None
            except Error:
                continue  # no stage's but that one's
            if answer["source_line"]:
                break
        return Bisection.of(answer)

    def check(self, *, inputs: str | os.PathLike[str] | None = None, outputs: str | os.PathLike[str] | None = None,
              by_operations: bool = True) -> Checked:
        """Is what was compiled right, or rounding, or what HLO leaves open?

        inputs, outputs: files of what the compiled module was given (p0 …) and gave (o0 …). Left out: what
        `hlo_replay.jax.record` compiled runs with the arguments that it had, and the function besides operation by
        operation (not with by_operations=False); of a captured folder what is in it.
        """
        if self._of_jax and inputs is None and outputs is None:
            return Checked.of(self._of_jax.checked(self, by_operations), self)
        words = [f"--inputs={os.fspath(inputs)}"] if inputs is not None else []
        words += [f"--outputs={os.fspath(outputs)}"] if outputs is not None else []
        return Checked.of(report("check", *words, "--", self.spec), self)

    def triage(self, complaint: str | None = None, *, time_limit: float = 120,
               out: str | os.PathLike[str] | None = None) -> Triaged:
        """What is the cause: the compiler, the program, rounding, or what HLO leaves open. complaint: "wrong" (the
        default), "nan", "crash", "memory", "slow" …; time_limit: seconds; out: a folder to make, with what an issue needs."""
        words = [f"--time-limit={time_limit:g}"]
        words += [f"--complaint={complaint}"] if complaint else []
        words += [f"--out={os.fspath(out)}"] if out is not None else []
        return Triaged.of(report("triage", *words, self.spec), self)  # behind -- stands a program

    def exec(self, stage: int | str | Stage = -1, *, inputs: str | os.PathLike[str] | None = None, seed: int | None = None,
             backend: str = "evaluator") -> Ran:
        """A stage, run as the command line does: on the arguments that the program had, where they are kept with the
        folder, else on random ones. Module.run takes arrays."""
        row = self.stage(stage)
        words = _inputs(inputs, seed)
        with tempfile.TemporaryDirectory(prefix="hlo-replay-") as made:
            where = row.path
            if where is None:  # a replay without texts
                where = pathlib.Path(made) / "module.hlo"
                where.write_text(row.text, errors="surrogateescape")
            said = os.fspath(inputs) if inputs is not None else f"seed {1 if seed is None else seed}"
            return Ran.of(report("exec", f"--backend={backend}", *words, "--", where), said)

    def search(self, name: str = "", *, opcode: str = "", op_name: str = "", shape: str = "", line: str = "",
               most: int = 100) -> Found:
        """Instructions of the last stages by a part of their name, op_name, shape or source line (`model.py:12`), or by
        opcode."""
        asked = {"opcode": opcode, "op-name": op_name, "shape": shape, "line": line}
        words = [f"--{key}={value}" for key, value in asked.items() if value]
        return Found.of(report("search", f"--most={most}", *words, "--", self.spec, *([name] if name else [])))

    def compile_time(self, log: str | os.PathLike[str] | None = None) -> CompileTime:
        """What the time of the compilation went into. log: a file of what the program printed while it compiled."""
        return CompileTime.of(report("compile-time", *([f"--log={os.fspath(log)}"] if log is not None else []), "--", self.spec))

    def tuned(self, other: Recording | None = None, *, results: Sequence[str | os.PathLike[str]] = ()) -> Tuned:
        """What XLA's autotuner chose, kernel by kernel; with `other` what that one's chose otherwise. results: files of
        the autotuner's, next to those in the folder."""
        words = [f"--results={os.fspath(r)}" for r in results]
        return Tuned.of(report("tuned", "--all", *words, "--", self.spec, *([other.spec] if other else [])))

    def profile(self, path: str | os.PathLike[str], by: str = "op", device: str = "", most: int = 30) -> Profiled:
        """A profile (.xplane.pb, trace events) joined to the instructions. by: op, line, scope, class or module."""
        words = [f"--by={by}", f"--most={most}", *([f"--gpu={device}"] if device else [])]
        return Profiled.of(report("profile", *words, "--", os.fspath(path), self.spec))

    def reduce(self, faulty: Callable[[Module], bool], stage: int | str | Stage = -1, **options: Any) -> Module:
        """The smallest module that is still faulty, of a stage: Module.reduce."""
        return self.stage(stage).module.reduce(faulty, **options)

    # Spellings of hlo_replay.jax before its recordings were these.

    @property
    def name(self) -> str:
        """An old spelling of module_name."""
        old("recording.name", "write recording.module_name")
        return self.module_name

    @property
    def before(self) -> pathlib.Path:
        """An old spelling: the file of stages[0].text."""
        old("recording.before", "write recording.stages[0].text")
        return self._first_file()

    def text(self, stage: int | str | Stage = 0) -> str:
        """An old spelling of stage(…).text."""
        old("recording.text(STAGE)", "write recording.stage(STAGE).text")
        return self.stage(stage).text

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


def _inputs(inputs: str | os.PathLike[str] | None, seed: int | None) -> list[str]:
    if inputs is not None and seed is not None:
        raise UsageError("inputs come from a file or from a seed, not from both")
    return [f"--inputs={os.fspath(inputs)}"] if inputs is not None else [f"--seed={seed}"] if seed is not None else []


def open(folder: str | os.PathLike[str]) -> Recording:  # pylint: disable=redefined-builtin
    """What a folder holds: of `hlo-replay replay`, or as XLA dumps it (`--xla_dump_to`); its modules and their stages.

    Raises hlo.InputError where there is none.
    """
    if not os.fspath(folder):
        raise UsageError("a folder is wanted, not an empty name")
    where = os.path.abspath(os.fsdecode(folder))
    return Recording(_hlo.open_recording(where), where)


def replay(module: Module, pipeline: str = "", *, out: str | os.PathLike[str] | None = None,
           only: Iterable[str] = (), disabled: Iterable[str] = (), fuel: Mapping[str, int] | None = None, again: bool = False,
           formats: Iterable[str] = ("text", "dot", "page", "buffers", "thunks"), progress: Progress | None = None) -> Recording:
    """Takes a copy of the module through a pipeline (`hlo.pipelines()`), every stage recorded. Where none is named, it is
    that of the module's time: xla-2019 for texts of 2019, else xla-gpu.

    out: a new folder for the files, index.html among them; left out, they go with the recording. only, disabled: passes.
    fuel: most rewrites of a pass. again: take a module that is optimised already, and replace `out`. Raises hlo.UsageError
    for names that do not exist, hlo.InputError for modules that do not verify, hlo.Error where `out` is there already.
    """
    where = "" if out is None else os.path.abspath(os.fsdecode(out))
    return Recording(_hlo.replay_module(module, where, pipeline, _words(only), _words(disabled), dict(fuel or {}),
                                        _words(formats), again, progress))


def _words(of: Iterable[str]) -> set[str]:
    if isinstance(of, str):
        raise TypeError("a list of names is wanted, not one text")
    return set(of)
