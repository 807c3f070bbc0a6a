"""Compiling with every stage dumped, whatever else is set, and everything set back."""
from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import pathlib
import re
import tempfile
from typing import Any, Iterator, Mapping, Sequence

import jax

from . import _tool
from .. import _keep
from ..captured import debug_options
from ..recording import Recording
from ._run import Folder

_untyped: Any = jax  # some of its functions have no types

# All that a question may need. The last ones are not known to every release.
_DUMP = {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True, "xla_dump_large_constants": True}
_MAYBE = {"xla_dump_module_metadata": True}
_LONGEST = 80  # of a module's name: stages of longer ones have file names that no system takes


def refuse_many_processes() -> None:
    if jax.process_count() > 1:
        raise _tool.failure("unsupported", f"this is process {jax.process_index()} of {jax.process_count()}: run "
                            "`hlo-replay capture` around each of them, with a separate folder")


def disabled_passes(more: Sequence[str]) -> list[str]:
    """The whole list: the flag's, jax's own and the caller's. Each of them alone would replace the others."""
    out: list[str] = []
    for word in os.environ.get("XLA_FLAGS", "").split():
        if word.startswith("--xla_disable_hlo_passes="):
            out += word.split("=", 1)[1].split(",")
    if not getattr(jax.config, "jax_compiler_enable_remat_pass", True):
        out.append("rematerialization")
    return list(dict.fromkeys([p for p in [*out, *more] if p]))


def options_for(folder: pathlib.Path, disable: Sequence[str], flags: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {**_DUMP, **{k.lstrip("-"): v for k, v in flags.items()}, "xla_dump_to": str(folder)}
    asked = options.pop("xla_disable_hlo_passes", "")
    if jax.default_backend() in ("gpu", "cuda", "rocm"):  # of no other platform; `tuned` reads it
        options.setdefault("xla_gpu_dump_autotune_results_to", str(folder / "autotune_results.pbtxt"))
    passes = disabled_passes([*str(asked).split(","), *disable])
    if passes:
        options["xla_disable_hlo_passes"] = ",".join(passes)
    return options


def short_name(name: str) -> str:
    """A name of which every stage can be a file; the same for the same name."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST - 13]}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def shorten(computation: Any) -> None:
    """Gives an MLIR module a name of that length, in place."""
    from jaxlib.mlir import ir

    attributes = computation.operation.attributes
    name = ir.StringAttr(attributes["sym_name"]).value
    if short_name(name) != name:
        with computation.context:
            attributes["sym_name"] = ir.StringAttr.get(short_name(name))


@contextlib.contextmanager
def no_caches() -> Iterator[None]:
    """jax's persistent cache would give executables without a compilation; it is off in here, and as it was afterwards."""
    from jax.experimental.compilation_cache import compilation_cache

    before = _untyped.config.jax_enable_compilation_cache
    _untyped.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        _untyped.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()  # it would remember for ever that it was not used


def settle(folder: pathlib.Path, options: Mapping[str, Any]) -> None:
    """Raises Error where a compilation did not dump, or not with the flags that it was to have."""
    if not any(f.name.endswith("before_optimizations.txt") for f in folder.iterdir()):
        raise _tool.failure("unsupported", f"the compiler dumped nothing into {folder}: it runs on another machine, or "
                            "a cache before it answered")
    reached = debug_options(folder)
    if reached:
        missing = set(filter(None, str(options.get("xla_disable_hlo_passes", "")).split(","))) - set(
            reached.get("xla_disable_hlo_passes", []))
        if missing:
            raise _tool.failure("unsupported", f"the compiler was not asked to leave out {', '.join(sorted(missing))}: "
                                f"it had {reached.get('xla_disable_hlo_passes')}")
    elif options.get("xla_disable_hlo_passes"):
        raise _tool.failure("unsupported", "the compiler does not write down which flags reached it")


def compile_lowered(lowered: Any, within: Folder, disable: Sequence[str], flags: Mapping[str, Any]) -> Any:
    """Compiles by jax's public way, with compiler options: flags of the process stay as they are."""
    shorten(lowered.compiler_ir("stablehlo"))
    # A name that no compilation had: jax remembers executables by their options, and would compile nothing.
    unique = pathlib.Path(tempfile.mkdtemp(prefix=".dump-", dir=within.path.parent))
    options = options_for(unique, disable, flags)
    with no_caches():
        try:
            compiled = lowered.compile(compiler_options={**options, **_MAYBE})
        except Exception as e:  # a release that does not know one of them
            if not re.search("No such compile option|unknown", str(e), re.I):
                raise
            compiled = lowered.compile(compiler_options=options)
        finally:
            unique.rename(within.path)  # which is empty
    settle(within.path, options)
    return compiled


@contextlib.contextmanager
def capture(folder: str | os.PathLike[str] | None = None, *, arguments: str = "small", disable_passes: Sequence[str] = (),
            flags: Mapping[str, Any] | None = None) -> Iterator[Recording]:
    """Everything that is compiled inside becomes one recording, a folder for each compilation.

        with hlo_replay.jax.capture("dump") as run:
            train_step(state, batch)
        run["train_step"].memory()

    `arguments`: what each compiled function is called with first is kept: "none", "small" (256 MiB together) or "all";
    what it gave for them is, too, where all of them are. Versions, flags, devices and the lowering are kept always
    (`run["train_step"].captured`).

    Functions that were compiled before are compiled again: jax's caches are cleared. What was compiled ahead
    of time (`lowered.compile()` before) is not compiled here, and nothing can be dumped of it.
    `disable_passes`, `flags`: XLA's, for what is compiled inside alone; they are compared with what reached the
    compiler. Every function that was compiled with them is forgotten afterwards.
    """
    refuse_many_processes()
    from jax._src import compiler  # no public way reaches every compilation of a process

    original = getattr(compiler, "compile_or_get_cached", None)
    if original is None:
        raise _tool.failure("unsupported", f"jax {jax.__version__} compiles in a way that this package does not know; "
                            "`hlo-replay capture -- python3 PROGRAM` captures a whole program")
    if arguments not in _keep.CHOICES:
        raise _tool.failure("usage", f"arguments={arguments!r}: there are {', '.join(_keep.CHOICES)}")
    from jax._src.interpreters import pxla

    within = Folder(folder)
    run = Recording(None, str(within.path), captures=True, keeps=within)
    keeper = _keep.Keeper(None, arguments)
    wanted = dict(flags or {})
    failures: list[Exception] = []
    numbers = itertools.count(1)  # of compilations, of several threads maybe

    @functools.wraps(original)
    def dumped(backend: Any, computation: Any, devices: Any, compile_options: Any, *args: Any, **kwargs: Any) -> Any:
        shorten(computation)
        name = str(computation.operation.attributes["sym_name"]).strip('"')
        target = within.path / f"{next(numbers):04}.{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}"
        target.mkdir()
        options = options_for(target, disable_passes, wanted)
        kept = compile_options.env_option_overrides
        names = set(options) | set(_MAYBE)
        own = [o for o in kept if o[0] not in names]
        # A function's own list counts, too.
        for key, value in kept:
            if key == "xla_disable_hlo_passes":
                options[key] = ",".join(dict.fromkeys([*options.get(key, "").split(","), *str(value).split(",")])).strip(",")
        compile_options.env_option_overrides = own + list(options.items())
        try:
            executable = original(backend, computation, devices, compile_options, *args, **kwargs)
        finally:
            compile_options.env_option_overrides = kept
        try:
            run._changed()
            settle(target, options)
            keeper.compiled(executable, computation, str(target))
        except Exception as e:
            failures.append(e)
        return executable

    _untyped.clear_caches()
    compiler.compile_or_get_cached = dumped
    call = keeper.watch_calls(pxla)
    try:
        with no_caches():
            yield run
    finally:
        compiler.compile_or_get_cached = original
        if call is not None:
            setattr(pxla.ExecuteReplicated, "__call__", call)
        if disable_passes or wanted:
            _untyped.clear_caches()
        run.notes += [str(e) for e in failures]
        if not run.modules and not failures:
            run.notes.append("nothing was compiled: what was called had been compiled ahead of time, or nothing was")
    if failures and (disable_passes or wanted):
        raise failures[0]
