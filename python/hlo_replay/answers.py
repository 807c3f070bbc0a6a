"""What the command line answers about a recording, as typed results next to those of results.py. `data` of each is the
whole object of `--json` (docs/schemas/); `table()` gives its rows as a dict of columns, as pandas and polars take them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _html as h
from ._notebook import _plain
from ._old import OldDict
from .results import Table, _rows, table


@dataclass(repr=False)
class Bisection(OldDict):
    """Where a recording goes wrong (`hlo-replay bisect`).

    found: something is bad. verdict: the answer in words. good, bad: names of the last good stage and the first bad one;
    pass_name: the pass between them. rewrite, rule, instructions: of hlo-replay's pipelines, the rewrite of that pass.
    asked: how many stages were compared. source_line: of the first value that differs; None where it is unknown.
    inputs: where the inputs are from: the arguments that the program had, a file or a seed; empty where an oracle decided.
    """

    found: bool
    verdict: str
    good: str | None
    bad: str | None
    pass_name: str | None
    rewrite: int | None
    rule: str | None
    instructions: list[str]
    asked: int
    data: dict[str, Any] = field(repr=False)
    source_line: str | None = None

    @property
    def inputs(self) -> str:
        told = self.data.get("inputs") or {}
        return str(self.data.get("inputs_from") or told.get("made") or "")

    @classmethod
    def of(cls, data: dict[str, Any]) -> Bisection:
        return cls(data["found"], data["verdict"], data["good"], data["bad"], data["pass"], data["rewrite"],
                   data["rule"], data["instructions"], data["judged"], data, data.get("source_line"))

    def __bool__(self) -> bool:
        return self.found

    def __repr__(self) -> str:
        return f"<Bisection: {_plain(self.verdict)}>"

    def _repr_html_(self) -> str:
        rows = [("last good stage", self.good), ("first bad stage", self.bad), ("pass", self.pass_name),
                ("rewrite", self.rewrite), ("rule", self.rule), ("instructions", ", ".join(self.instructions)),
                ("judgements", self.asked)]
        value = self.data.get("first_value_that_differs")
        if value:
            rows.append(("first value that differs", f"{value['name']}: {value['difference']}"))
        return h.page("bisect", h.line(_plain(self.verdict), "bad" if self.found else ""),
                      h.table(("", ""), [(k, _plain(str(v))) for k, v in rows if v not in (None, "")]))


@dataclass(repr=False)
class Checked:
    """Is a compiled result right (`hlo-replay check`)?

    verdict: "right", "rounding", "contract", "wrong" or "unknown"; why: in words. outputs: a dict a leaf of the result:
    how many elements differ, the worst one as compiled, as written, in f64. contracts: where the run leaves what HLO
    promises: instruction, source line, what, whether it decides. other_bits: why numbers that are right have other bits
    than the evaluator's. reference: verdict, why and outputs of the function run operation by operation; None where that
    was not asked. `departs`: of a wrong one, the stage, pass and source line where it first differs; below_hlo where all
    stages agree. inputs: where the inputs are from.
    """

    verdict: str
    why: str
    outputs: list[dict[str, Any]]
    contracts: list[dict[str, Any]]
    other_bits: list[dict[str, Any]]
    reference: dict[str, Any] | None
    departs: dict[str, Any] | None
    data: dict[str, Any] = field(repr=False)
    recording: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, data: dict[str, Any], recording: Any = None) -> Checked:
        return cls(data["verdict"], data["why"], data["outputs"], data["contracts"], data["other_bits"], data["reference"],
                   data["departs"], data, recording)

    @property
    def inputs(self) -> str:
        return str(self.data.get("inputs_from") or "")

    @property
    def decides(self) -> list[dict[str, Any]]:
        """Those of `contracts` on which the elements that differ depend."""
        return [c for c in self.contracts if c["decides"]]

    def table(self) -> Table:
        """Outputs as columns."""
        return table(self.outputs, ("name", "shape", "verdict", "elements", "different", "rounded", "open", "wrong"))

    def __repr__(self) -> str:
        lines = [f"{self.verdict}: {self.why}"]
        lines += [f"  {c['instruction']} ({c['source'] or c['op_name']}) {c['what']}" for c in self.decides]
        if self.reference and self.reference["verdict"] not in ("right", "rounding"):
            lines.append(f"  operation by operation: {self.reference['why']}")
        if self.departs:
            lines.append(f"  {self.departs['verdict']}")
            if self.departs["instruction"]:
                lines.append(f"  first {self.departs['instruction']} ({self.departs['source'] or self.departs['op_name']})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        t = self.table()
        columns = ("name", "shape", "verdict", "elements", "different", "wrong")
        return h.page("check", h.line(_plain(f"{self.verdict}: {self.why}"), "bad" if self.verdict == "wrong" else ""),
                      h.table(columns, _rows(t, columns), 30))


@dataclass(repr=False)
class Triaged:
    """From "it is wrong" to the cause (`hlo-replay triage`).

    verdict: "fault" (of a pass of the compiler), "contract" (HLO leaves it open), "rounding", "program" (its own),
    "below" (HLO), "nothing" (wrong was found) or "unknown"; why: in words; sure: "proved", "tested" or "guessed".
    stage, pass_name, rule, instruction, source: the cause, None where it is not known; source: `model.py:12`.
    `rungs`: a dict for each step that was tried: `rung`, outcome, seconds, result, command. not_covered: what was not, and why.
    """

    complaint: str
    verdict: str
    why: str
    sure: str
    stage: str | None
    pass_name: str | None
    rule: str | None
    instruction: str | None
    source: str | None
    rungs: list[dict[str, Any]]
    not_covered: list[dict[str, Any]]
    data: dict[str, Any] = field(repr=False)
    recording: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, data: dict[str, Any], recording: Any = None) -> Triaged:
        return cls(data["complaint"], data["verdict"], data["why"], data["sure"], data["stage"], data["pass"], data["rule"],
                   data["instruction"], data["source"], data["rungs"], data["not_covered"], data, recording)

    @property
    def report(self) -> str | None:
        """The folder that was made; None where none was asked for."""
        return self.data["folder"] or None

    def table(self) -> Table:
        """What was tried, as columns."""
        return table(self.rungs, ("rung", "outcome", "seconds", "result", "command"))

    def __getattr__(self, name: str) -> Any:
        from ._old import old
        import pathlib

        if name == "passname":
            old("Triaged.passname", "write .pass_name")
            return self.pass_name
        if name == "answer":
            old("Triaged.answer", "write .data")
            return self.data
        if name == "folder":
            old("Triaged.folder", "write .report")
            return pathlib.Path(self.report) if self.report else None
        raise AttributeError(name)

    def __repr__(self) -> str:
        lines = [f"{self.verdict}: {self.why}"]
        if self.instruction:
            lines.append(f"  {self.instruction}" + (f" ({self.source})" if self.source else ""))
        lines += [f"  {title}: {self.data[key][0]}" for title, key in (("before", "before"), ("after it", "after"))
                  if self.data[key]]
        lines += [f"  {d}" for d in self.data["details"][:6]]
        left = ", ".join(n["what"] for n in self.not_covered)
        lines.append(f"sure: {self.sure}" + (f"; not covered: {left}" if left else ""))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = ("rung", "outcome", "seconds", "result")
        return h.page("triage", h.line(_plain(f"{self.verdict}: {self.why}"), "bad" if self.verdict == "fault" else ""),
                      h.table(columns, _rows(self.table(), columns), 30))


@dataclass(repr=False)
class _Rows:
    """An answer whose rows are the point."""

    rows: Table
    problems: list[str]
    data: dict[str, Any] = field(repr=False)

    def table(self) -> Table:
        """The rows as columns."""
        return self.rows

    def __len__(self) -> int:
        return len(next(iter(self.rows.values()), []))

    def __bool__(self) -> bool:
        return len(self) > 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} rows>"

    def _repr_html_(self) -> str:
        columns = tuple(name for name, column in self.rows.items() if not any(isinstance(v, (list, dict)) for v in column))
        return h.page(type(self).__name__, h.table(columns, _rows(self.rows, columns), 50),
                      *(h.line(_plain(p), "bad") for p in self.problems))


def _columns(rows: Sequence[dict[str, Any]], *columns: str) -> Table:
    return table(rows, columns)


@dataclass(repr=False)
class Found(_Rows):
    """Instructions that fit (`hlo-replay search`): stage, module, computation, instruction, opcode, shape, op_name,
    source. found: how many fit, also where fewer are rows."""

    found: int = 0

    @classmethod
    def of(cls, data: dict[str, Any]) -> Found:
        rows = _columns(data["instructions"], "stage", "module", "computation", "instruction", "opcode", "shape", "op_name",
                        "source")
        return cls(rows, data["problems"], data, data["found"])


@dataclass(repr=False)
class CompileTime(_Rows):
    """What the time of compilations went into (`hlo-replay compile-time`): a row a part: module, phase, name, seconds,
    runs, autotuning, from. `told`: does anything record a time? modules: each compilation's whole answer."""

    told: bool = False
    modules: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> CompileTime:
        parts = [{"module": m["module"], **part} for m in data["modules"] for part in m["parts"]]
        rows = _columns(parts, "module", "phase", "name", "seconds", "runs", "autotuning", "from")
        return cls(rows, data["problems"], data, data["told"], data["modules"])


@dataclass(repr=False)
class Tuned(_Rows):
    """What XLA's autotuner chose (`hlo-replay tuned`): a row a kernel: module, instruction, became, op_name, chosen (in
    words; None: not known). comparisons: of two recordings what they chose otherwise; same: did they choose the same,
    None of one."""

    same: bool | None = None
    comparisons: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Tuned:
        kernels = [{"module": m["name"], **k, "chosen": k["chosen"]["in_words"] if k["chosen"] else None}
                   for m in data["modules"] for k in m["kernels"]]
        rows = _columns(kernels, "module", "instruction", "became", "op_name", "chosen")
        return cls(rows, data["problems"], data, data["same"], data["comparisons"])


@dataclass(repr=False)
class Profiled(_Rows):
    """A profile joined to instructions (`hlo-replay profile`), most time first: instruction, module, opcode, count,
    seconds, share, bound_seconds, op_name, source; by line, scope, class or module: key, seconds, share, count,
    instructions, bound_seconds. joined_share: of the time that names an instruction; None where none does."""

    joined_share: float | None = None

    @classmethod
    def of(cls, data: dict[str, Any]) -> Profiled:
        if data["by"] == "op":
            rows = _columns(data["instructions"], "instruction", "module", "opcode", "count", "seconds", "share",
                            "bound_seconds", "op_name", "source")
        else:
            rows = _columns(data["rows"], "key", "seconds", "share", "count", "instructions", "bound_seconds")
        return cls(rows, data["problems"], data, data["joined_share"])


@dataclass(repr=False)
class Ran(_Rows):
    """A stage that was run (`hlo-replay exec`): a row an output: name, shape, min, max, mean, nan, inf, value. inputs:
    where the inputs are from: the arguments that the program had, a file or a seed."""

    inputs: str = ""

    @classmethod
    def of(cls, data: dict[str, Any], inputs: str) -> Ran:
        rows = _columns(data["outputs"], "name", "shape", "min", "max", "mean", "nan", "inf", "value")
        return cls(rows, [], data, data["inputs_from"] or inputs)
