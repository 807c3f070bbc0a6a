"""What was compiled: a folder that XLA dumped into, a folder below it for each compilation."""
from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import tempfile
import weakref
from typing import Any, Iterator

from . import _tool

_HEADER = re.compile(r"HloModule ([^,\s]+)")


class Folder:
    """Where something is dumped: the caller's folder, or a temporary one that goes with the last that needs it."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        if path is None:
            self.path = pathlib.Path(tempfile.mkdtemp(prefix="hlo-replay-jax-"))
            weakref.finalize(self, shutil.rmtree, str(self.path), True)
            return
        self.path = pathlib.Path(path).absolute()
        if self.path.exists() and any(self.path.iterdir()):
            raise _tool.failure("usage", f"{path} is not empty: what one run dumps lies over what the other one did")
        self.path.mkdir(parents=True, exist_ok=True)


class Module:
    """One compiled module. `spec` names it to every command: `hlo-replay memory SPEC`.

    name: XLA's, `jit_f`; function: `f`; number: XLA's module id, another one in the next compilation.
    fingerprint: of the module before any pass, without ids, names of instructions and source lines: two compilations
    of one function for the same arguments have the same.
    """

    def __init__(self, folder: pathlib.Path, within: Folder | None = None) -> None:
        self.folder = folder
        self._within = within
        first = [f for f in folder.iterdir() if f.name.endswith("before_optimizations.txt")]
        if len(first) != 1:
            raise _tool.failure("invalid", f"{folder} holds {len(first)} modules before optimization, one is wanted")
        self.before = first[0]  # the module as it was lowered
        text = self.before.read_text()
        header = _HEADER.match(text)
        if not header:
            raise _tool.failure("invalid", f"{self.before} is no module")
        self.name = header[1]
        self.function = self.name[4:] if self.name.startswith("jit_") else self.name
        self.number = int(self.before.name.split("_")[1].split(".")[0])
        self.fingerprint = _fingerprint(text)

    @property
    def spec(self) -> str:
        return str(self.folder)

    @property
    def stages(self) -> list[dict[str, Any]]:
        """A row a stage, as `hlo-replay open --json` tells them; `file` is below `folder`."""
        return list(self.ask("open")["modules"][0]["stages"])

    def text(self, stage: str = "before_optimizations") -> str:
        """A stage's HLO, by its name, a part of it, or its pass."""
        code, out, said = _tool.run("print", f"{self.folder}:{stage}")
        if code:
            raise _tool.failure("usage", said.strip())
        return out

    def ask(self, command: str, *words: Any) -> dict[str, Any]:
        """Any command about it that has --json: summary, memory, explain, cost …"""
        return _tool.ask(command, self.spec, *words)

    def debug_options(self) -> dict[str, list[str]]:
        """The flags that reached the compiler, as it wrote them down; lists of texts."""
        out: dict[str, list[str]] = {}
        for f in self.folder.glob("*debug_options"):
            for line in f.read_text(errors="replace").splitlines():
                key, colon, value = line.partition(":")
                if colon and not line.startswith(" "):
                    out.setdefault(key.strip(), []).append(value.strip().strip('"'))
        return out

    def __repr__(self) -> str:
        return f"<hlo_replay.jax module {self.name} in {self.folder}>"


def _fingerprint(text: str) -> str:
    body = text[text.index("\n"):]
    body = body.split("\nFileNames\n")[0] + "\n" + text.split("\nFileNames\n")[0].split("\n", 1)[0].split(",", 1)[-1]
    # Tables of source lines stand between the header and the first computation.
    body = re.sub(r"(?m)^(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d+ .*\n)*", "", body)
    body = re.sub(r", (metadata|frontend_attributes)=\{[^{}]*\}", "", body)
    numbers: dict[str, str] = {}
    body = re.sub(r"%?\b[A-Za-z_][\w-]*\.\d+\b", lambda m: numbers.setdefault(m[0].lstrip("%"), f"v{len(numbers)}"), body)
    return hashlib.sha256(body.encode()).hexdigest()[:16]


class Run:
    """Everything that was compiled. `folder` is read by every command: `hlo-replay FOLDER`."""

    def __init__(self, within: Folder) -> None:
        self.folder = within.path
        self._within = within
        self.modules: list[Module] = []
        self.notes: list[str] = []  # what could not be had

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def __getitem__(self, which: str | int) -> Module:
        """By place, or the one module of a function. Several: by `find`."""
        if isinstance(which, int):
            return self.modules[which]
        found = self.find(which)
        if len(found) != 1:
            names = ", ".join(sorted({m.function for m in self.modules})) or "nothing"
            raise _tool.failure("usage", f"{len(found)} modules of a function {which!r} were compiled; there is {names}")
        return found[0]

    def find(self, function: str) -> list[Module]:
        return [m for m in self.modules if function in (m.function, m.name)]

    def match(self, other: "Run") -> list[tuple[Module, Module]]:
        """The same modules of another run: by function and fingerprint. Module numbers tell nothing."""
        left = list(other.modules)
        pairs = []
        for m in self.modules:
            twin = next((o for o in left if (o.function, o.fingerprint) == (m.function, m.fingerprint)), None)
            if twin:
                left.remove(twin)
                pairs.append((m, twin))
        return pairs

    def __repr__(self) -> str:
        return f"<hlo_replay.jax run of {len(self.modules)} modules in {self.folder}>"
