"""What the commands tell of modules that lie in memory: by way of a file."""
from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from ._program import report
from .results import Cost, Diff, Memory

if TYPE_CHECKING:
    from ._hlo import Module


def _written(module: Module, folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "wb") as out:
        out.write(module.print(lossless=True).encode("utf-8", "surrogateescape"))
    return path


def cost(module: Module, device: str) -> Cost:
    with tempfile.TemporaryDirectory(prefix="hlo-replay-") as made:
        gpu = [f"--gpu={device}"] if device else []
        return Cost.of(report("cost", *gpu, "--", _written(module, made, "module.hlo")))


def memory(module: Module, by: str) -> Memory:
    with tempfile.TemporaryDirectory(prefix="hlo-replay-") as made:
        return Memory.of(report("memory", f"--by={by}", "--", _written(module, made, "module.hlo"))["modules"][0])


def diff(a: Module, b: Module) -> Diff:
    """What differs between two modules, by structure, whatever their names."""
    with tempfile.TemporaryDirectory(prefix="hlo-replay-") as made:
        first, second = _written(a, made, "first.hlo"), _written(b, made, "second.hlo")
        return Diff.of(a.name, b.name, report("diff", "--", first, second))
