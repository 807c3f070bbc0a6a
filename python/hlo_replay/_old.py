"""Old spellings: they work for one more version and say what to write."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any


def old(what: str, instead: str, level: int = 3) -> None:
    """Warns the caller of the function that calls this (level 3)."""
    warnings.warn(f"{what} will go with the next version: {instead}", DeprecationWarning, stacklevel=level)


class OldDict:
    """An answer that was a dict: its keys are those of `data`, the object of `--json`."""

    data: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        old(f"{type(self).__name__}[{key!r}]", f"write .{key}, or .data[{key!r}]")
        return self.data[key]

    def get(self, key: str, default: Any = None) -> Any:
        old(f"{type(self).__name__}.get({key!r})", f"write .{key}, or .data.get({key!r})")
        return self.data.get(key, default)

    def keys(self) -> Iterator[str]:
        old(f"{type(self).__name__}.keys()", "write .data.keys()")
        return iter(self.data)
