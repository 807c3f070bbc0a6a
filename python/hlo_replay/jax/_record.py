"""One function: recorded, checked, bisected."""
from __future__ import annotations

import functools
import os
import pathlib
import tempfile
from typing import Any, Callable, Mapping, Sequence

import jax

from . import _arrays, _compile, _tool
from ._run import Folder, Module

_untyped: Any = jax  # some of its functions have no types


class Recording(Module):
    """A function's compilation: every stage (`stages`, `text`, `ask`), and the compiled function itself."""

    def __init__(self, within: Folder, compiled: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]],
                 lowered: Any, function: Callable[..., Any]) -> None:
        super().__init__(within.path, within)
        self._function = function
        self.compiled = compiled  # of jax; called with the arguments that are no static ones
        self._arguments = arguments
        self._lowered = lowered

    def run(self) -> tuple[pathlib.Path, pathlib.Path]:
        """Runs what was compiled with the arguments that it was recorded with: files of what went in and what came out."""
        args, kwargs = self._arguments
        flat, tree = jax.tree_util.tree_flatten((args, kwargs))
        if tree != self._lowered.in_tree:
            raise _tool.failure("unsupported", "the function has static arguments; give one without them: "
                                "functools.partial(f, static=…)")
        kept = kept_arguments(self._lowered, _parameters(self), len(flat))
        given = [_arrays.host(flat[k]) for k in kept]  # before: the run may take its arguments over
        out = _untyped.block_until_ready(self.compiled(*args, **kwargs))
        inputs, outputs = self.folder / "inputs.npz", self.folder / "outputs.npz"
        _arrays.write(inputs, "p", given)
        _arrays.write(outputs, "o", jax.tree_util.tree_leaves(out))
        return inputs, outputs

    def run_by_operations(self) -> pathlib.Path:
        """Runs the function with the same arguments operation by operation, each compiled alone (jax.disable_jit): a file
        of what came out."""
        args, kwargs = self._arguments
        with jax.disable_jit():
            out = _untyped.block_until_ready(self._function(*args, **kwargs))
        outputs = self.folder / "outputs_by_operations.npz"
        _arrays.write(outputs, "o", jax.tree_util.tree_leaves(out))
        return outputs

    def check(self, by_operations: bool = True) -> "Checked":
        """`by_operations`: the module that XLA was given is held against the function run operation by operation, too:
        what is wrong in front of XLA shows there."""
        # First: a run may take its arguments over.
        reference = [f"--reference={self.run_by_operations()}"] if by_operations else []
        inputs, outputs = self.run()
        return Checked(self, _tool.ask("check", self.before, f"--inputs={inputs}", f"--outputs={outputs}",
                                       f"--dump={self.folder}", *reference))

    def bisect(self) -> dict[str, Any]:
        inputs, outputs = self.run()
        answer = self.ask("bisect", f"--inputs={inputs}", f"--outputs={outputs}")
        answer["source_line"] = None
        first = answer.get("first_value_that_differs") or {}
        for name in filter(None, (first.get("before"), first.get("name"))):
            try:
                answer["source_line"] = self.ask("explain", name)["source"] or None
            except _tool.Error:
                continue  # no stage's but that one's
            if answer["source_line"]:
                break
        return answer


class Triaged:
    """The answer of triage.

    verdict: "fault" (of a pass of the compiler), "contract" (HLO leaves it open), "rounding", "program" (its own),
    "below" (HLO), "nothing" (wrong was found) or "unknown"; why: in words; sure: "proved", "tested" or "guessed".
    stage, passname, rule, instruction, source: the culprit, None where it is not known; source: `model.py:12`.
    rungs: a dict a thing that was tried: rung, outcome, seconds, result, command. not_covered: what was not, and why.
    folder: of the report; None where none was asked for. recording: what was compiled; None where that failed.
    answer: all that `hlo-replay triage --json` tells (docs/schemas/triage.json).
    """

    def __init__(self, recording: Recording | None, answer: dict[str, Any]) -> None:
        self.recording = recording
        self.answer = answer
        self.complaint: str = answer["complaint"]
        self.verdict: str = answer["verdict"]
        self.why: str = answer["why"]
        self.sure: str = answer["sure"]
        self.stage: str | None = answer["stage"]
        self.passname: str | None = answer["pass"]
        self.rule: str | None = answer["rule"]
        self.instruction: str | None = answer["instruction"]
        self.source: str | None = answer["source"]
        self.rungs: list[dict[str, Any]] = answer["rungs"]
        self.not_covered: list[dict[str, Any]] = answer["not_covered"]
        self.folder = pathlib.Path(answer["folder"]) if answer["folder"] else None

    def __repr__(self) -> str:
        lines = [f"{self.verdict}: {self.why}"]
        if self.instruction:
            lines.append(f"  {self.instruction}" + (f" ({self.source})" if self.source else ""))
        lines += [f"  {title}: {self.answer[key][0]}" for title, key in (("before", "before"), ("behind it", "after")) if self.answer[key]]
        lines += [f"  {d}" for d in self.answer["details"][:6]]
        left = ", ".join(n["what"] for n in self.not_covered)
        lines.append(f"sure: {self.sure}" + (f"; not covered: {left}" if left else ""))
        return "\n".join(lines)


class Checked:
    """The answer of check. verdict: "right", "rounding", "contract", "wrong" or "unknown"; why: in words.

    outputs: a dict a leaf of the result: how many elements differ, the worst one as compiled, as written, in f64.
    contracts: where the run leaves what HLO promises: instruction, source line, what, whether it decides.
    other_bits: why numbers that are right have other bits than the evaluator's, and the instructions that leave it open.
    reference: verdict, why and outputs of the function run operation by operation, held against the module that XLA was
    given; None where that was not asked.
    departs: of a wrong one, the stage, pass and source line where it first departs; below_hlo where all stages agree.
    """

    def __init__(self, recording: Recording, answer: dict[str, Any]) -> None:
        self.recording = recording
        self.verdict: str = answer["verdict"]
        self.why: str = answer["why"]
        self.outputs: list[dict[str, Any]] = answer["outputs"]
        self.contracts: list[dict[str, Any]] = answer["contracts"]
        self.other_bits: list[dict[str, Any]] = answer["other_bits"]
        self.reference: dict[str, Any] | None = answer["reference"]
        self.departs: dict[str, Any] | None = answer["departs"]

    @property
    def decides(self) -> list[dict[str, Any]]:
        return [c for c in self.contracts if c["decides"]]

    def __repr__(self) -> str:
        lines = [f"{self.verdict}: {self.why}"]
        lines += [f"  {c['instruction']} ({c['source'] or c['op_name']}) {c['what']}" for c in self.decides]
        if self.reference and self.reference["verdict"] not in ("right", "rounding"):
            lines.append(f"  operation by operation: {self.reference['why']}")
        if self.departs:
            lines.append(f"  {self.departs['verdict']}")
            if self.departs["instruction"]:
                lines.append(f"  first {self.departs['instruction']} ({self.departs['source'] or self.departs['op_name']})")
        return "\n".join(lines)


def lower(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if hasattr(fn, "lower"):
        return fn.lower(*args, **kwargs)
    if not callable(fn):
        raise _tool.failure("usage", f"{fn!r} is no function")
    return jax.jit(fn).lower(*args, **kwargs)


def kept_arguments(lowered: Any, parameters: int, flat: int) -> list[int]:
    """jax leaves out arguments that are not used."""
    kept = getattr(lowered, "_lowering", None)
    kept = getattr(kept, "compile_args", {}).get("kept_var_idx")
    if kept is not None and len(kept) == parameters:
        return sorted(kept)
    if parameters == flat:
        return list(range(flat))
    raise _tool.failure("unsupported", f"the module has {parameters} parameters, the function {flat} arguments, and "
                        f"jax {jax.__version__} does not say which is which")


def record(fn: Callable[..., Any], *args: Any, folder: str | os.PathLike[str] | None = None,
           disable_passes: Sequence[str] = (), flags: Mapping[str, Any] | None = None, **kwargs: Any) -> Recording:
    """Lowers and compiles a function for these arguments, with every stage kept.

    `fn`: a function, or one of jax.jit. `folder`: where; a temporary one otherwise. `disable_passes`, `flags`: XLA's,
    for this compilation alone, beside those that the process has; that they reached the compiler is checked.
    """
    return _recorded(Folder(folder), fn, args, kwargs, disable_passes, flags)


def _recorded(target: Folder, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
              disable_passes: Sequence[str], flags: Mapping[str, Any] | None) -> Recording:
    _compile.refuse_many_processes()
    lowered = lower(fn, args, kwargs)
    compiled, _ = _compile.compile_lowered(lowered, target, disable_passes, flags or {})
    return Recording(target, compiled, (args, kwargs), lowered, fn)


def _parameters(module: Module) -> int:
    """How many the entry has, by the module's header."""
    layout = module.before.read_text().split("\n", 1)[0].split("entry_computation_layout={(", 1)[1].split(")->", 1)[0]
    depth = commas = 0
    for c in layout:
        depth += (c in "([{") - (c in ")]}")
        commas += c == "," and depth == 0
    return commas + 1 if layout.strip() else 0


def check(fn: Callable[..., Any], *args: Any, **how: Any) -> Checked:
    """Is what jax compiles of this function right for these arguments? Runs it, and the module that it was lowered to
    in its own precision and in f64; that module is held against the function run operation by operation (not with
    `by_operations=False`). Takes what `record` takes."""
    by_operations = bool(how.pop("by_operations", True))
    return record(fn, *args, **how).check(by_operations)


def bisect(fn: Callable[..., Any], *args: Any, **how: Any) -> dict[str, Any]:
    """Which stage of the compilation changes what the function computes for these arguments, by which pass, of which
    source line: the answer of `hlo-replay bisect --json`, and `source_line` of the first value that differs. Takes what
    `record` takes."""
    return record(fn, *args, **how).bisect()


def triage(fn: Callable[..., Any], *args: Any, complaint: str | None = None, time_limit: float = 120,
           report: str | os.PathLike[str] | None = None, folder: str | os.PathLike[str] | None = None,
           disable_passes: Sequence[str] = (), flags: Mapping[str, Any] | None = None, **kwargs: Any) -> Triaged:
    """From "it is wrong" to the culprit, for one function and these arguments: compiles and runs it, and asks
    `hlo-replay triage` of its stages, with the arguments and what it gave. Where the compiler or the run fails, what
    they said is asked.

    `complaint`: "wrong" (where none is told), "nan", "crash", "memory", "slow" …, as the command takes it. `time_limit`:
    seconds for the rungs together. `report`: a folder to make, with what an issue needs. `folder`, `disable_passes`,
    `flags`: as `record` takes them. A compiler that ends the process ends this one, too: then
    `hlo-replay triage -- python3 PROGRAM`. Raises Error where nothing can be asked (static arguments, several processes).
    """
    words = [f"--time-limit={time_limit:g}"]
    words += [f"--complaint={complaint}"] if complaint else []
    words += [f"--out={os.fspath(report)}"] if report is not None else []
    target = Folder(folder)
    recording = None
    try:
        recording = _recorded(target, fn, args, kwargs, disable_passes, flags)
        inputs, outputs = recording.run()
        words += [f"--inputs={inputs}", f"--outputs={outputs}"]
    except jax.errors.JaxRuntimeError as e:
        log = target.path / "failure.log"
        log.write_text(f"{type(e).__module__}.{type(e).__name__}: {e}\n")
        if any(f.name.endswith("before_optimizations.txt") for f in target.path.iterdir()):
            words.append(f"--log={log}")
        else:
            return Triaged(None, _tool.ask("triage", log, *words))
    return Triaged(recording, _tool.ask("triage", target.path, *words))
