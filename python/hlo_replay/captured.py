"""What a captured folder keeps next to XLA's dump (docs/formats.md): versions, flags, devices, arguments and results."""
from __future__ import annotations

import hashlib
import json
import pathlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import InputError, UsageError
from .results import Table, table

VERSION = 1


@dataclass(repr=False)
class Captured:
    """Of a folder that `hlo_replay.jax` or `hlo-replay capture` made.

    versions: by package: python, jax, jaxlib, plugins. flags: environment variables that change what is compiled,
    XLA_FLAGS among them. jax_config: options of jax that do. platform: name and version. devices: a dict a device: id,
    kind, process. process: index and count. kept: which arguments were asked for: "none", "small" or "all". calls: a
    dict the first call of each module. notes: what could not be kept.
    """

    folder: pathlib.Path
    program: list[str]
    versions: dict[str, str]
    flags: dict[str, str]
    jax_config: dict[str, Any]
    platform: dict[str, str]
    devices: list[dict[str, Any]]
    process: dict[str, int]
    kept: str
    calls: list[dict[str, Any]]
    notes: list[str]
    data: dict[str, Any] = field(repr=False)
    keeps: Any = field(default=None, repr=False)  # whose end removes the files

    def arguments(self, number: int | None = None) -> dict[str, Any]:
        """What a module's parameters were given in its first call: arrays p0, p1 … of numpy. number: XLA's of the module;
        left out where one was called. Raises hlo.UsageError where they were not kept."""
        return _read_arrays(self.folder, self._call(number), "arguments")

    def results(self, number: int | None = None) -> dict[str, Any]:
        """What that call gave: o0, o1 … ."""
        return _read_arrays(self.folder, self._call(number), "results")

    def _call(self, number: int | None) -> dict[str, Any]:
        found = [c for c in self.calls if number is None or c["number"] == number]
        if len(found) != 1:
            raise UsageError(f"{len(found) or 'no'} first calls fit; numbers of modules are "
                             + ", ".join(str(c["number"]) for c in self.calls))
        return found[0]

    def table(self) -> Table:
        """Arguments and results of the first calls, as columns: module, number, name, shape, dtype, bytes, kept."""
        rows = [{"module": c["module"], "number": c["number"], **value}
                for c in self.calls for value in [*c["arguments"], *c["results"]]]
        return table(rows, ("module", "number", "name", "shape", "dtype", "bytes", "kept", "shards"))

    def __repr__(self) -> str:
        jax = self.versions.get("jax", "?")
        return f"<Captured: jax {jax} on {len(self.devices)} devices ({self.platform.get('name', '?')}), {len(self.calls)} calls>"


def read_captured(folder: pathlib.Path, keeps: Any = None) -> Captured | None:
    """What capture.json of the folder says; None where there is none. Raises hlo.InputError where it is damaged or of
    another release."""
    file = folder / "capture.json"
    if not file.is_file():
        return None
    try:
        data = json.loads(file.read_text())
        version = data["version"]
        if version != VERSION:
            raise InputError(f"{file} was written by another release: it is version {version}, this package reads "
                             f"version {VERSION}")
        return Captured(folder, data["program"], data["versions"], data["flags"], data["jax_config"], data["platform"],
                        data["devices"], data["process"], data["kept"], data["calls"], data["notes"], data, keeps)
    except (ValueError, KeyError, TypeError) as e:
        if isinstance(e, InputError):
            raise
        raise InputError(f"{file} is damaged: {type(e).__name__}: {e}") from None


def debug_options(folder: pathlib.Path) -> dict[str, list[str]]:
    """The flags that reached XLA's compiler, as it wrote them down; lists of texts."""
    out: dict[str, list[str]] = {}
    for f in folder.glob("*debug_options"):
        for line in f.read_text(errors="replace").splitlines():
            key, colon, value = line.partition(":")
            if colon and not line.startswith(" "):
                out.setdefault(key.strip(), []).append(value.strip().strip('"'))
    return out


def fingerprint(text: str) -> str:
    """Of a module before any pass, without ids, names of instructions and source lines."""
    header, _, body = text.partition("\n")
    body = body.split("\nFileNames\n")[0] + "\n" + header.split(",", 1)[-1]
    # Tables of source lines stand between the header and the first computation.
    body = re.sub(r"(?m)^(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d+ .*\n)*", "", body)
    body = re.sub(r", (metadata|frontend_attributes)=\{[^{}]*\}", "", body)
    numbers: dict[str, str] = {}
    body = re.sub(r"%?\b[A-Za-z_][\w-]*\.\d+\b", lambda m: numbers.setdefault(m[0].lstrip("%"), f"v{len(numbers)}"), body)
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _read_arrays(folder: pathlib.Path, call: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Arrays of a call, by name (p0, o0 …), in their own types."""
    import numpy as np

    name = call.get(f"{what}_file")
    if not name or "/" in name:
        raise UsageError(f"the {what} of {call['module']} were not kept")
    out: dict[str, Any] = {}
    try:
        with np.load(folder / name, allow_pickle=False) as held:
            for told in call[what]:
                if told["name"] in held:
                    array = held[told["name"]]
                    out[told["name"]] = array.view(_named(told["dtype"], array.dtype)) if array.dtype.kind == "u" else array
    except (OSError, ValueError, TypeError) as e:
        raise InputError(f"{folder / name}: {e}") from None
    return out


def _named(name: str, otherwise: Any) -> Any:
    import ml_dtypes

    return getattr(ml_dtypes, name, None) or otherwise
