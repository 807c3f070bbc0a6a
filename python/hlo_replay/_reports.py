"""What is asked of modules by themselves, as results."""
from __future__ import annotations

from . import _hlo
from .results import Cost, Diff, Memory


def cost(module: _hlo.Module, device: str) -> Cost:
    return Cost.of(_hlo.module_cost(module, device))


def memory(module: _hlo.Module, by: str) -> Memory:
    return Memory.of(_hlo.module_memory(module, by)["modules"][0])


def diff(a: _hlo.Module, b: _hlo.Module) -> Diff:
    """What differs between two modules, by structure, whatever their names."""
    return Diff.of(a.name, b.name, _hlo.module_diff(a, b))
