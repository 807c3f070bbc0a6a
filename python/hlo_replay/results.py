"""What recordings and modules answer, as plain data: numbers, texts, and tables that are dicts of lists of one length, as
pandas.DataFrame takes them. `data` of each is the whole object of the command's `--json` (docs/schemas/)."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _html as h
from ._notebook import _plain

Table = dict[str, list[Any]]


def table(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> Table:
    """Rows as columns: those named, and all others that a row has."""
    rows = list(rows)
    names = list(columns) + sorted({key for row in rows for key in row} - set(columns))
    return {name: [row.get(name) for row in rows] for name in names}


def _rows(t: Table, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    def cell(value: Any) -> Any:
        return _plain(value) if isinstance(value, str) else "" if value is None else value

    return [tuple(map(cell, row)) for row in zip(*(t[c] for c in columns))]


@dataclass(repr=False)
class Cost:
    """What a module needs at least, by counting (`hlo-replay cost`).

    seconds: of one call on `device`, by its data sheet: the slower of memory and arithmetic of each kernel, summed.
    flops, transcendentals: operations. bytes: read and written. loops_without_trip_count: counted once each.
    instructions: a table, the most expensive first: name, opcode, class, times, flops, transcendentals, bytes_read,
    bytes_written, least_seconds, bound ("memory" or "compute"), op_name, source.
    """

    module: str
    device: str
    seconds: float
    flops: float
    transcendentals: float
    bytes: float
    loops_without_trip_count: int
    instructions: Table
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Cost:
        columns = ("name", "opcode", "class", "times", "flops", "transcendentals", "bytes_read", "bytes_written",
                   "least_seconds", "bound", "op_name", "source")
        return cls(data["module"], data["device"], data["least_seconds"], data["flops"], data["transcendentals"],
                   data["bytes"], data["loops_without_trip_count"], table(data["instructions"], columns), data)

    def __repr__(self) -> str:
        return (f"<Cost of {_plain(self.module)} on {self.device}: at least {h.time_text(self.seconds)}, "
                f"{self.flops:.4g} flops, {h.bytes_text(self.bytes)}>")

    def _repr_html_(self) -> str:
        columns = ("name", "opcode", "times", "least_seconds", "bound", "flops", "op_name", "source")
        rows = [(*row, h.Bar(row[3] / self.seconds if self.seconds else 0)) for row in _rows(self.instructions, columns)]
        rows = [(n, o, t, h.time_text(s), *rest) for n, o, t, s, *rest in rows]
        return h.page(f"cost of {_plain(self.module)} on {self.device}",
                      h.line(f"at least {h.time_text(self.seconds)}: {self.flops:.4g} operations, "
                             f"{h.bytes_text(self.bytes)} moved"),
                      h.table(("kernel", "opcode", "times", "at least", "bound", "flops", "op_name", "source", ""), rows, 25))


@dataclass(repr=False)
class MemoryLog:
    """What a program printed when memory ran out, joined to a dump (`hlo-replay memory --log`).

    found: a line reports that memory ran out. complaints: a table: kind ("allocation", "rematerialization" or "other"),
    line, text, times, asked_bytes, limit_bytes, allocations (a list of dicts: selector, module, bytes, kind, largest, source;
    several: which one is meant is unknown), modules, why_not. buffers: a table of those that XLA lists: size, what, shape,
    op_name, joined.
    """

    found: bool
    complaints: Table
    buffers: Table
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> MemoryLog:
        return cls(data["found"], table(data["complaints"], ("kind", "line", "text", "times", "asked_bytes", "limit_bytes",
                                                             "allocations", "modules", "why_not")),
                   table(data["buffers"], ("size", "what", "shape", "op_name", "joined")), data)

    def __bool__(self) -> bool:
        return self.found

    def __repr__(self) -> str:
        return f"<MemoryLog: {len(self.complaints['kind'])} complaints, {len(self.buffers['size'])} buffers>"

    def _repr_html_(self) -> str:
        columns = ("kind", "line", "times", "asked_bytes", "text", "why_not")
        return h.page("memory ran out" if self.found else "no line reports that memory ran out",
                      h.table(columns, _rows(self.complaints, columns), 30))


@dataclass(repr=False)
class Memory:
    """What a module holds on its device (`hlo-replay memory`); all sizes in bytes, None where unknown.

    source: where the numbers are from, "XLA's buffer assignment" or ours. estimate: the module was not scheduled yet.
    alive: a table of what is alive where most is: name, bytes, shape, kind, op_name, source. alive_by: the same summed:
    key, bytes. allocations: bytes, kind, values, largest. Empty unless asked for:

    stages: the peak after each pass: stage, pass, bytes (None: unknown), scheduled. changes: what passes changed, the
    largest rise first: pass, stage, before_bytes, after_bytes, estimate. levers: changes that were compiled, the one that
    needs least first: kind, what, how, source, compiled, allocated_before, allocated_after, helps, why_not. log: what
    the program printed; None unless given.
    """

    module: str
    source: str
    estimate: bool
    allocated: int | None
    arguments: int
    constants: int
    outputs: int
    temporaries: int
    peak: int | None
    peak_at: str
    alive: Table
    alive_by: Table
    allocations: Table
    notes: list[str]
    data: dict[str, Any] = field(repr=False)
    log: MemoryLog | None = None

    @property
    def stages(self) -> Table:
        return table((self.data.get("stages") or {}).get("stages", ()), ("stage", "pass", "bytes", "scheduled"))

    @property
    def changes(self) -> Table:
        return table((self.data.get("stages") or {}).get("changes", ()), ("pass", "stage", "before_bytes", "after_bytes", "estimate"))

    @property
    def levers(self) -> Table:
        return table((self.data.get("tried") or {}).get("levers", ()), ("kind", "what", "how", "source", "compiled",
                                                                       "allocated_before", "allocated_after", "helps", "why_not"))

    @classmethod
    def of(cls, data: dict[str, Any], log: dict[str, Any] | None = None) -> Memory:
        return cls(data["module"], data["from"], data["estimate"], data["allocated_bytes"], data["argument_bytes"],
                   data["constant_bytes"], data["output_bytes"], data["temporary_bytes"], data["peak_bytes"],
                   data["peak_at"], table(data["alive"], ("name", "bytes", "shape", "kind", "op_name", "source")),
                   table(data["alive_by"], ("key", "bytes")),
                   table(data["allocations"], ("bytes", "kind", "values", "largest")), data["notes"], data,
                   MemoryLog.of(log) if log else None)

    def __repr__(self) -> str:
        return (f"<Memory of {_plain(self.module)}: {h.bytes_text(self.allocated)} allocated, "
                f"{h.bytes_text(self.peak)} alive at the peak>")

    def _repr_html_(self) -> str:
        sizes = (("allocated", self.allocated), ("arguments", self.arguments), ("constants", self.constants),
                 ("outputs", self.outputs), ("temporaries", self.temporaries), ("alive at the peak", self.peak))
        whole = self.peak or 1
        by = [(key, h.bytes_text(size), h.Bar(size / whole)) for key, size in _rows(self.alive_by, ("key", "bytes"))]
        largest = [(name, h.bytes_text(size), *rest) for name, size, *rest in
                   _rows(self.alive, ("name", "bytes", "kind", "shape", "op_name", "source"))]
        return h.page(f"memory of {_plain(self.module)}",
                      h.line(f"by {self.source}" + (", an estimate" if self.estimate else "")
                             + (f"; most is alive at {_plain(self.peak_at)}" if self.peak_at else "")),
                      h.table(("", "size"), [(what, h.bytes_text(size)) for what, size in sizes]),
                      h.table(("alive there, by", "size", ""), by, 15),
                      h.table(("value", "size", "kind", "shape", "op_name", "source"), largest, 15))


@dataclass(repr=False)
class Summary:
    """What costs time and memory, summed by source line, scope, class or pass (`hlo-replay summary`).

    rows: a table, the most expensive first: key, least_seconds, flops, bytes, kernels, instructions, peak_bytes; by pass: key,
    runs, changed, added, removed, modified, microseconds.
    """

    by: str
    device: str | None
    rows: Table
    problems: list[str]
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Summary:
        columns = (("key", "runs", "changed", "added", "removed", "modified", "microseconds") if data["by"] == "pass" else
                   ("key", "least_seconds", "flops", "bytes", "kernels", "instructions", "peak_bytes"))
        return cls(data["by"], data["device"], table(data["rows"], columns), data["problems"], data)

    def __repr__(self) -> str:
        return f"<Summary by {self.by}: {len(self.rows['key'])} rows>"

    def _repr_html_(self) -> str:
        heads = tuple(self.rows)
        rows = [tuple(h.time_text(v) if head == "least_seconds" and isinstance(v, float) else v
                      for head, v in zip(heads, row)) for row in _rows(self.rows, heads)]
        return h.page(f"summary by {self.by}" + (f" on {self.device}" if self.device else ""),
                      h.table((self.by, *heads[1:]), rows, 30), *(h.line(_plain(p), "bad") for p in self.problems))


@dataclass(repr=False)
class Diff:
    """What differs between two modules (`hlo-replay diff`).

    same: the same computation, layouts included, whatever names say. removed, added, modified, moved: instructions.
    differences: a table of kinds of difference: sign ("+" only in the second, "-" only in the first, "~" in both, ">"
    moved), name, name_in_second, place, what (a list), first, second (both lines), count (how many are like it).
    """

    first: str
    second: str
    same: bool
    removed: int
    added: int
    modified: int
    moved: int
    differences: Table
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, first: str, second: str, data: dict[str, Any]) -> Diff:
        columns = ("kind", "sign", "name", "name_in_second", "place", "what", "first", "second", "count", "names")
        return cls(first, second, data["same"], data["removed"], data["added"], data["modified"], data["moved"],
                   table(data["differences"], columns), data)

    def __bool__(self) -> bool:
        """True where there are differences."""
        return not self.same

    def _counts(self) -> str:
        if self.same:
            return "the same"
        return f"{self.removed} removed, {self.added} added, {self.modified} modified, {self.moved} moved"

    def __repr__(self) -> str:
        return f"<Diff of {_plain(self.first)} and {_plain(self.second)}: {self._counts()}>"

    def _repr_html_(self) -> str:
        lines: list[tuple[str, str]] = []
        t = self.differences
        for sign, place, what, first, second, count in zip(t["sign"], t["place"], t["what"], t["first"], t["second"],
                                                           t["count"]):
            like = f"   ({count} like it)" if count and count > 1 else ""
            where = f"   in {place}" if place else ""
            if sign == ">":
                lines.append((sign, second + where + like))
                continue
            if first:
                lines.append(("-", first + ("" if second else where + like)))
            if second:
                lines.append(("+", second + where + like))
            if what and (sign == "~" or not (first or second)):
                lines.append(("~", "  " + "; ".join(what)))
        return h.page(f"{_plain(self.first)} → {_plain(self.second)}", h.line(self._counts()),
                      h.changes((sign, _plain(said)) for sign, said in lines))


@dataclass(repr=False)
class Explanation:
    """What became of an instruction (`hlo-replay explain`).

    events: a table, stage by stage: stage, what ("is there from the start", "changed", "replaced by a", "fused into f",
    "unknown"), name (what it is called from there on), before, after (its lines), rules (of hlo-replay's passes), file.
    source: source line and op_name. buffers, thunks: lines that name it at the end. unread: stages that could not be
    read.
    """

    name: str
    events: Table
    source: str
    buffers: list[str]
    thunks: list[str]
    unread: list[str]
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, name: str, data: dict[str, Any]) -> Explanation:
        return cls(name, table(data["events"], ("stage", "what", "name", "before", "after", "rules", "file")),
                   data["source"], data["buffers"], data["thunks"], data["unread"], data)

    def __repr__(self) -> str:
        what = self.events["what"]
        return f"<Explanation of {_plain(self.name)}: {len(what)} events{', at last ' + _plain(what[-1]) if what else ''}>"

    def _repr_html_(self) -> str:
        parts = []
        e = self.events
        for stage, what, before, after, rules in zip(e["stage"], e["what"], e["before"], e["after"], e["rules"]):
            said = f"{stage}: {what}" + (f" ({', '.join(rules)})" if rules else "")
            lines = [(sign, _plain(text)) for sign, text in (("-", before), ("+", after)) if text]
            parts.append(h.line(_plain(said)) + (h.changes(lines) if lines else ""))
        more = [("source", self.source)] if self.source else []
        more += [("buffer", b) for b in self.buffers] + [("thunk", t) for t in self.thunks]
        return h.page(f"what became of {_plain(self.name)}", *parts, h.table(("", ""), [(k, _plain(v)) for k, v in more]))
