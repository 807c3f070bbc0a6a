"""A module in a function's place."""
from __future__ import annotations

import importlib
import os
import pathlib
import re
import tempfile
from typing import Any, Callable

import jax

from . import _compile, _tool
from ._record import lower
from ..recording import Recording
from ..stage import Stage
from ._run import Folder

# What becomes another thing, or nothing, on the way HLO → StableHLO → HLO.
_NOT_STABLE = re.compile(r" (fusion|bitcast|custom-call|copy-start|copy-done|async-start|async-update|async-done|[a-z-]+-start|[a-z-]+-done|"
                         r"infeed|outfeed|send|recv|add-dependency|domain|set-dimension-size|get-dimension-size|partition-id|"
                         r"rng-get-and-update-state|rng-seed)\(")
_HEADER = re.compile(r"HloModule ([^,\s]+)(.*)")
_LAYOUT = re.compile(r"\[([0-9,<=]+)\]\{([0-9,]*)([^}]*)\}")


def replace(fn: Callable[..., Any], module: Any, *, way: str = "") -> "Replaced":
    """A function that runs `module` in the place of what jax makes of `fn`.

    module: a stage that was edited, or what our pipeline made from one: HLO text, a file of any format that hlo-replay
    reads, or a stage of a recording. Its parameters and results are those of the function's module.
    way: how it gets there; the one that carries it, where none is given.
      `behind`:    it takes the place of what XLA's passes have made (jaxlib 0.10.2 and later, CPU): XLA schedules it and
                   makes code of it, no other pass sees it. Its layouts, fusions and bitcasts stay as they are.
      `stablehlo`: it is compiled in the function's place, by all of XLA's passes.
    Raises Error, by name, for what neither way carries.
    """
    return Replaced(fn, _text_of(module), way)


class Replaced:
    """Called as the function is. `way`, `module` (stages of the last compilation) show how it was done."""

    def __init__(self, fn: Callable[..., Any], text: str, way: str) -> None:
        self._fn = fn
        self.text = text
        ways = {"behind": _not_behind, "stablehlo": _not_stablehlo}
        if way and way not in ways:
            raise _tool.failure("usage", f"unknown way {way!r}; there are `behind` and `stablehlo`")
        _verify(text)
        refused = []
        for name in [way] if way else ["stablehlo", "behind"]:
            why = ways[name](text)
            if not why:
                self.way = name
                break
            refused.append(f"{name}: {why}")
        else:
            raise _tool.failure("unsupported", "the module cannot be put in the function's place; " + "; ".join(refused))
        self.module: Recording | None = None
        self._compiled: dict[Any, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lowered = lower(self._fn, args, kwargs)
        key = (lowered.in_tree, str(jax.tree_util.tree_leaves(lowered.in_avals)))
        if key not in self._compiled:
            self._compiled[key] = (self._behind if self.way == "behind" else self._stablehlo)(lowered)
        return self._compiled[key](*args, **kwargs)

    def _compile(self, lowered: Any) -> Any:
        within = Folder(None)
        compiled = _compile.compile_lowered(lowered, within, (), {})
        self.module = Recording(None, str(within.path), keeps=within)
        return compiled

    def _stablehlo(self, lowered: Any) -> Any:
        lowering: Any = getattr(lowered, "_lowering", None)
        if not hasattr(lowering, "_hlo"):
            raise _tool.failure("unsupported", f"jax {jax.__version__} keeps what it has lowered where this package does "
                                "not look")
        own = lowering._hlo
        _same_signature(_before(lowered), self.text, layouts=False)
        lowering._hlo = _stable(self.text, own)
        try:
            return self._compile(lowered)
        finally:
            lowering._hlo = own

    def _behind(self, lowered: Any) -> Any:
        xla = _xla()
        name = f"hlo_replay.{id(self)}"
        wanted = _name(_before(lowered))
        told: list[Any] = []

        def put(proto: bytes) -> bytes | None:
            try:
                theirs = _as_text(proto)
                if _name(theirs) != wanted:
                    return None  # another one that is compiled meanwhile
                _same_signature(theirs, self.text, layouts=True)
                told.append(True)
                return _as_proto(_renamed(self.text, wanted))
            except Exception as e:  # told behind the compiler, which is in the middle of its work
                told.append(e)
                return None

        xla.register_hlo_module_transformation(put, name=name, platforms="cpu")
        try:
            compiled = self._compile(lowered)
        finally:
            xla.clear_hlo_module_transformation(name, platforms="cpu")
        for failure in told:
            if isinstance(failure, Exception):
                raise failure
        if not told:
            raise _tool.failure("unsupported", "the compiler did not ask for the module after its passes")
        return compiled


def _xla() -> Any:
    return importlib.import_module("jax.extend.xla")


def _name(text: str) -> str:
    header = _HEADER.match(text)
    return header[1] if header else ""


def _text_of(module: Any) -> str:
    """Any form of a module as text."""
    if isinstance(module, str) and module.lstrip().startswith("HloModule"):
        return module
    if isinstance(module, (str, os.PathLike)):
        code, out, said = _tool.run("print", module)
        if code:
            raise _tool.failure("invalid", said.strip())
        return out
    if isinstance(module, (Recording, Stage)):
        return module.stage(0).text if isinstance(module, Recording) else module.text
    raise _tool.failure("usage", f"a module is HLO text or a file, not {type(module).__name__}")


def _files(text: str | bytes, given: str, wanted: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / ("in" + given), pathlib.Path(folder) / ("out" + wanted)
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
        _tool.convert(source, target)
        return target.read_bytes()


def _as_text(proto: bytes) -> str:
    return _files(proto, ".pb", ".hlo").decode()


def _as_proto(text: str) -> bytes:
    return _files(text, ".hlo", ".pb")


def _renamed(text: str, name: str) -> str:
    """Of that name, and without a schedule: XLA's own comes afterwards."""
    return re.sub(r"^(HloModule) [^,\s]+(, is_scheduled=true)?", rf"\1 {name}", text, count=1)


def _verify(text: str) -> None:
    """What the verifier refuses ends XLA's process."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "module.hlo"
        file.write_text(text)
        answer = _tool.ask("verify", file)
    if answer.get("errors"):
        first = answer["errors"][0]
        raise _tool.failure("invalid", f"the module is not right: {first.get('message', first)}")


def _not_behind(text: str) -> str:
    try:
        _xla().register_hlo_module_transformation
    except (ImportError, AttributeError):
        return f"jax {jax.__version__} has no jax.extend.xla.register_hlo_module_transformation (0.10.2 and later have)"
    platform = jax.default_backend()
    if platform != "cpu":
        return f"tried on the CPU alone, not on {platform}"
    # Where values need copies that are not there, code generation aborts or gives wrong results.
    if not re.match(r"HloModule [^,\s]+, is_scheduled=true", text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "module.hlo"
            file.write_text(text)
            if _tool.ask("opt", "--passes=copy-insertion", file)["changed"]:
                return "it lacks copies that copy-insertion makes; a stage after all passes (after_optimizations) has them"
    return ""


def _not_stablehlo(text: str) -> str:
    """What of it StableHLO does not carry."""
    header = text.split("\n", 1)[0]
    for what in ("is_scheduled", "input_output_alias", "buffer_donor"):
        if what + "=" in header:
            return f"StableHLO carries no {what}"
    for found in _NOT_STABLE.finditer(text):
        before = text[text.rfind("\n", 0, found.start()) + 1:found.start()]
        line = text[found.start():(text + "\n").index("\n", found.end())]
        if found[1] == "custom-call" and 'custom_call_target="Sharding"' in line:
            continue
        names = re.findall(r"(\S+) = ", before)
        return f"StableHLO carries no {found[1]}" + (f" ({names[-1].lstrip('%')})" if names else "")
    for dims, order, rest in _LAYOUT.findall(text):
        rank = dims.count(",") + 1
        if rest or order != ",".join(str(d) for d in reversed(range(rank))):
            return f"StableHLO carries no layout [{dims}]{{{order}{rest}}}"
    return ""


def _entry(text: str) -> str:
    """The types of parameters and results, by the header or by the entry itself."""
    found = re.search(r"entry_computation_layout=\{(.*?->.*?)\}(?:, [a-z_]+=|$)", text.split("\n", 1)[0])
    if found:
        return found[1]
    # The canonical form has it.
    canonical = _as_text(_as_proto(text))
    found = re.search(r"entry_computation_layout=\{(.*?->.*?)\}(?:, [a-z_]+=|$)", canonical.split("\n", 1)[0])
    return found[1] if found else ""


def _same_signature(theirs: str, ours: str, layouts: bool) -> None:
    def plain(entry: str) -> str:
        entry = re.sub(r"/\*.*?\*/|\s", "", entry)
        return entry if layouts else _LAYOUT.sub(r"[\1]", entry).replace("{}", "")

    a, b = plain(_entry(theirs)), plain(_entry(ours))
    if a != b:
        raise _tool.failure("usage", f"the module is a {b}, in the function's place a {a} is wanted")
    if layouts:
        alias = [re.search(r"(input_output_alias|buffer_donor)=\{.*?\}(?=, [a-z_]+=|$)", t.split("\n", 1)[0]) for t in (theirs, ours)]
        one, two = (m[0] if m else "none" for m in alias)
        if one != two:
            raise _tool.failure("unsupported", f"aliasing is decided before the passes: the function's module has {one}, this one {two}")


def _before(lowered: Any) -> str:
    return str(lowered.compiler_ir("hlo").as_hlo_text())


def _stable(text: str, own: Any) -> Any:
    """The module as jax's compiler takes it, with the attributes that jax gave its own."""
    from jaxlib.mlir import ir

    for name in ("jaxlib._jax", "jaxlib.xla_extension"):  # its name before 0.6.1
        try:
            library = importlib.import_module(name)
            convert = library.mlir.hlo_to_stablehlo
            break
        except (AttributeError, ImportError):
            pass
    else:
        raise _tool.failure("unsupported", f"the jaxlib of jax {jax.__version__} does not make StableHLO of HLO") from None
    try:
        # Libraries that read HLO themselves do not know the wide ids of today's protos.
        reader = getattr(library, "hlo_module_from_text", None)
        made = convert(reader(text).as_serialized_hlo_module_proto() if reader else _as_proto(text))
    except Exception as e:
        raise _tool.failure("unsupported", f"jaxlib makes no StableHLO of it: {str(e).strip()[:500]}") from None
    with own.context, ir.Location.unknown(own.context):
        module = ir.Module.parse(made)
        for name in list(own.operation.attributes):
            key = getattr(name, "name", name)
            module.operation.attributes[key] = own.operation.attributes[key]
    return module
