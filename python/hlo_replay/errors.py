"""What goes wrong, as exceptions: `hlo.Error` and one class a kind."""
from __future__ import annotations

from typing import Any


class Error(Exception):
    """Work that could not continue: every failure of this package.

    kind: "usage", "bad_input", "unsupported", "internal" or "interrupted".
    diagnostics: of a text that does not parse, one dict an error: file, line, column (both from 1), message, hint.
    place: "file:line:column" of the first of them; None elsewhere.
    hint: what may help; None where none is known.
    """

    kind = "internal"

    def __init__(self, message: str, diagnostics: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.diagnostics: list[dict[str, Any]] = list(diagnostics or [])

    @property
    def place(self) -> str | None:
        for entry in self.diagnostics:
            if entry.get("line"):
                return f"{entry.get('file') or '<text>'}:{entry['line']}:{entry['column']}"
        return None

    @property
    def hint(self) -> str | None:
        return next((str(entry["hint"]) for entry in self.diagnostics if entry.get("hint")), None)


class UsageError(Error, ValueError):
    """Asked for what there is not, or in a way that means nothing: an unknown pass, arguments that do not fit, an
    instruction that was removed, two threads on one universe."""

    kind = "usage"


class InputError(Error, ValueError):
    """A text, file or module that is not what it should be: unreadable, or refused by the verifier."""

    kind = "bad_input"


class ParseError(InputError):
    """A text that is no HLO; `diagnostics` holds all that is wrong with it."""


class UnsupportedError(Error):
    """Right as it may be, nothing here can do it, or this machine has not the memory; the message says what."""

    kind = "unsupported"


class InternalError(Error):
    """A fault of hlo-replay itself."""

    kind = "internal"


class StoppedError(Error):
    """Work that a callback has ended by giving False."""

    kind = "interrupted"


_BY_KIND: dict[str, type[Error]] = {
    "usage": UsageError, "bad_input": InputError, "invalid": InputError, "io": InputError, "syntax": ParseError,
    "unsupported": UnsupportedError, "memory": UnsupportedError, "interrupted": StoppedError,
}


def failure(kind: str, message: str, diagnostics: list[dict[str, Any]] | None = None) -> Error:
    """The exception of that kind, by the library's words or those of --json; to be raised."""
    of = ParseError if kind == "bad_input" and diagnostics else _BY_KIND.get(kind, InternalError)
    return of(message, diagnostics)
