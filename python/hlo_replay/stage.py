"""One row of a recording."""
from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

from . import _html as h
from ._hlo import Module
from ._notebook import _plain
from ._old import OldDict

if TYPE_CHECKING:
    from .recording import Recording


class Stage(OldDict):
    """A row of a recording: its input, a pass that ran, a pipeline that began, or the result."""

    def __init__(self, recording: Recording, index: int, row: dict[str, Any]) -> None:
        self.recording = recording
        self.index = index
        self.data = row

    @property
    def number(self) -> int | None:
        """XLA's, as the file's name has it and `DIR:MODULE:NUMBER` names it; None of the input, the result, and a stage
        without a file."""
        return self.data.get("number")

    @property
    def name(self) -> str:
        """`before_optimizations`, `fusion.after_dce` …"""
        return str(self.data["name"])

    @property
    def kind(self) -> str:
        """"input", "pass", "step", "pipeline-start" or "result"."""
        return str(self.data["kind"])

    @property
    def pass_name(self) -> str:
        """The pass that made it; empty of inputs and results."""
        return str(self.data.get("pass") or "")

    @property
    def pipeline(self) -> str:
        return str(self.data.get("pipeline") or "")

    @property
    def changed(self) -> bool:
        """Is it another module than the stage before?"""
        return bool(self.data["changed"])

    @property
    def instructions(self) -> int:
        """After it; 0 where they were not counted."""
        return int(self.data.get("instructions_after") or 0)

    @property
    def microseconds(self) -> int | None:
        """That the pass took; None where it is unknown."""
        return self.data.get("microseconds")

    @property
    def notes(self) -> list[dict[str, Any]]:
        """Rewrites and decisions of hlo-replay's passes: rule, instructions (names), text."""
        return list(self.data.get("notes") or [])

    @property
    def path(self) -> pathlib.Path | None:
        """The file of its text, that of an earlier stage where nothing changed; None where no text was written."""
        folder = self.recording._handle().folder
        for row in reversed(self.recording._all_rows()[: self.index + 1]):
            if row.data.get("file"):
                path = pathlib.Path(folder, os.path.basename(row.data["file"]))
                return path if path.suffix in (".txt", ".hlo") and path.is_file() else None
        return None

    @property
    def text(self) -> str:
        """HLO's text of the module as it was then, from the recording's files: of large constants what they kept."""
        path = self.path
        if path is not None:
            return path.read_bytes().decode("utf-8", "surrogateescape")
        return self.recording._handle().text(self.index)

    @property
    def module(self) -> Module:
        """The module as it was then: a copy of yours to run, ask or change. Ids of instructions are those of the other
        stages."""
        return self.recording._handle().module(self.index)

    def __repr__(self) -> str:
        return f"<Stage {self.index} {_plain(self.name)}: {self._counts()}>"

    def _counts(self) -> str:
        before, after = self.data.get("instructions_before") or 0, self.instructions
        counted = f"{before} → {after} instructions" if before != after else f"{after} instructions"
        edits = ", ".join(f"{self.data[key]} {word}" for key, word in
                          (("added", "new"), ("removed", "gone"), ("modified", "changed")) if self.data.get(key))
        return counted + (f" ({edits})" if edits else "")

    def _repr_html_(self) -> str:
        took = "" if self.microseconds is None else f", {h.time_text(self.microseconds / 1e6)}"
        notes = [(str(n.get("rule", "")), _plain(", ".join(n.get("instructions") or [])), _plain(n.get("text") or ""))
                 for n in self.notes]
        return h.page(f"stage {self.index}: {_plain(self.name)}", h.line(self._counts() + took),
                      h.table(("rule", "instructions", ""), notes, 20) if notes else "",
                      h.text(_plain(self.text), "text"))
