"""All that this package asks of hlo-replay goes through here: the command with --json, a child for each question."""
from __future__ import annotations

from typing import Any

from .._program import report, run as run
from ..errors import Error as Error, failure as failure


def ask(command: str, *words: Any) -> dict[str, Any]:
    """The object that the command prints with --json. Raises Error where it fails."""
    return dict(report(command, *map(str, words)))


def convert(source: Any, target: Any) -> None:
    """A module in the format of the target's ending."""
    code, _, said = run("convert", source, target)
    if code:
        raise failure("invalid", said.strip())
