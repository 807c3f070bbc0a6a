"""One function: recorded, checked, bisected."""
from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Callable, Mapping, Sequence

import jax

from .. import _keep
from ..answers import Bisection, Checked, Triaged
from ..recording import Recording
from . import _compile, _tool
from ._run import Folder

_untyped: Any = jax  # some of its functions have no types


class Compiled:
    """What hlo_replay.jax.record compiled: the function, and the arguments that it was compiled for."""

    def __init__(self, within: Folder, compiled: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]],
                 lowered: Any, function: Callable[..., Any], kept: str) -> None:
        self.folder = within.path
        self.compiled = compiled  # of jax; called with the arguments that are no static ones
        self._arguments = arguments
        self._lowered = lowered
        self._function = function
        self._keeper = _keep.Keeper(str(within.path), kept, str(within.path))
        found = _keep._modules(os.listdir(self.folder))
        if len(found) != 1:
            raise _tool.failure("invalid", f"{self.folder} holds {len(found)} modules before optimization, one is wanted")
        (self.number, self.name), = found
        self._keeper.lowered(str(self.folder), self.number, self.name, lowered.compiler_ir("stablehlo"))
        if kept != "none":
            try:
                self._call()
            except _tool.Error as e:
                self._keeper.note(str(self.folder), str(e))
                self._keeper.write(str(self.folder))

    @property
    def first(self) -> pathlib.Path:
        """The module as it was lowered."""
        return next(f for f in self.folder.iterdir() if f.name.endswith("before_optimizations.txt"))

    def _call(self) -> Any:
        args, kwargs = self._arguments
        flat, tree = jax.tree_util.tree_flatten((args, kwargs))
        if tree != self._lowered.in_tree:
            raise _tool.failure("unsupported", "the function has static arguments; give one without them: "
                                "functools.partial(f, static=…)")
        kept = kept_arguments(self._lowered, _parameters(self.first), len(flat))
        return self._keeper.call(str(self.folder), self.number, self.name, [flat[k] for k in kept])

    def run(self) -> tuple[pathlib.Path, pathlib.Path]:
        """Runs what was compiled with the arguments that it was recorded with: files of what went in and what came out."""
        args, kwargs = self._arguments
        self._keeper.arguments = "all"
        call = self._call()  # before: the run may take its arguments over
        out = _untyped.block_until_ready(self.compiled(*args, **kwargs))
        if call is not None:
            self._keeper.after(call, jax.tree_util.tree_leaves(out))
        files = [call[1].get(what) if call else None for what in ("arguments_file", "results_file")]
        if not all(files):
            raise _tool.failure("unsupported", f"the arguments or results of {self.name} are on devices of other processes")
        return self.folder / str(files[0]), self.folder / str(files[1])

    def run_by_operations(self) -> pathlib.Path:
        """Runs the function with the same arguments operation by operation, each compiled alone (jax.disable_jit): a file
        of what came out."""
        args, kwargs = self._arguments
        with jax.disable_jit():
            out = _untyped.block_until_ready(self._function(*args, **kwargs))
        outputs = self.folder / "outputs_by_operations.npz"
        _keep._save(str(outputs), self._keeper.arrays("o", jax.tree_util.tree_leaves(out), []))
        return outputs

    def checked(self, recording: Recording, by_operations: bool) -> dict[str, Any]:
        """The answer of `hlo-replay check`. `by_operations`: the module that XLA was given is compared with the function
        run operation by operation, too: what is wrong before XLA shows there."""
        # First: a run may take its arguments over.
        self._keeper.arguments = "all"
        reference = [f"--reference={self.run_by_operations()}"] if by_operations else []
        inputs, outputs = self.run()
        return _tool.ask("check", self.first, f"--inputs={inputs}", f"--outputs={outputs}", f"--dump={self.folder}",
                         *reference)


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
           disable_passes: Sequence[str] = (), flags: Mapping[str, Any] | None = None, keep: str = "small",
           **kwargs: Any) -> Recording:
    """Lowers and compiles a function for these arguments, with every stage kept.

    `fn`: a function, or one of jax.jit. `folder`: where; a temporary one otherwise. `disable_passes`, `flags`: XLA's,
    for this compilation alone, next to those that the process has; that they reached the compiler is checked. `keep`: of
    the arguments: "none", "small" (256 MiB together) or "all".
    """
    return _recorded(Folder(folder), fn, args, kwargs, disable_passes, flags, keep)


def _recorded(target: Folder, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
              disable_passes: Sequence[str], flags: Mapping[str, Any] | None, keep: str = "small") -> Recording:
    _compile.refuse_many_processes()
    if keep not in _keep.CHOICES:
        raise _tool.failure("usage", f"keep={keep!r}: there are {', '.join(_keep.CHOICES)}")
    lowered = lower(fn, args, kwargs)
    compiled = _compile.compile_lowered(lowered, target, disable_passes, flags or {})
    return Recording(None, str(target.path), of_jax=Compiled(target, compiled, (args, kwargs), lowered, fn, keep),
                     keeps=target)


def _parameters(first: pathlib.Path) -> int:
    """How many the entry has, by the module's header."""
    layout = first.read_text().split("\n", 1)[0].split("entry_computation_layout={(", 1)[1].split(")->", 1)[0]
    depth = commas = 0
    for c in layout:
        depth += (c in "([{") - (c in ")]}")
        commas += c == "," and depth == 0
    return commas + 1 if layout.strip() else 0


def check(fn: Callable[..., Any], *args: Any, **how: Any) -> Checked:
    """Is what jax compiles of this function right for these arguments? Runs it, and the module that it was lowered to
    in its own precision and in f64; that module is compared with the function run operation by operation (not with
    `by_operations=False`). Takes what `record` takes."""
    by_operations = bool(how.pop("by_operations", True))
    return record(fn, *args, **how).check(by_operations=by_operations)


def bisect(fn: Callable[..., Any], *args: Any, **how: Any) -> Bisection:
    """Which stage of the compilation changes what the function computes for these arguments, by which pass, of which
    source line. Takes what `record` takes."""
    return record(fn, *args, **how).bisect()


def triage(fn: Callable[..., Any], *args: Any, complaint: str | None = None, time_limit: float = 120,
           report: str | os.PathLike[str] | None = None, folder: str | os.PathLike[str] | None = None,
           disable_passes: Sequence[str] = (), flags: Mapping[str, Any] | None = None, **kwargs: Any) -> Triaged:
    """From "it is wrong" to the cause, for one function and these arguments: compiles and runs it, and asks
    `hlo-replay triage` of its stages, with the arguments and what it gave. Where the compiler or the run fails, what
    they answered is asked.

    `complaint`: "wrong" (the default), "nan", "crash", "memory", "slow" …, as the command takes it. `time_limit`:
    seconds for all steps together. `report`: a folder to make, with what an issue needs. `folder`, `disable_passes`,
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
        inputs, outputs = recording._of_jax.run()
        words += [f"--inputs={inputs}", f"--outputs={outputs}"]
    except jax.errors.JaxRuntimeError as e:
        log = target.path / "failure.log"
        log.write_text(f"{type(e).__module__}.{type(e).__name__}: {e}\n")
        if any(f.name.endswith("before_optimizations.txt") for f in target.path.iterdir()):
            words.append(f"--log={log}")
        else:
            return Triaged.of(_tool.ask("triage", log, *words))
    return Triaged.of(_tool.ask("triage", target.path, *words), recording)
