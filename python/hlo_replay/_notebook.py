"""How modules and what recordings answer are drawn in a notebook (`_repr_html_`)."""
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from . import _html as h

if TYPE_CHECKING:
    from ._hlo import Module


def module(m: Module) -> str:
    """A module at a glance: what goes in and out, which operations, its text."""
    try:
        entry = m.entry
    except Exception:  # a module under construction shows itself, too
        return h.page(f"module {_plain(m.name)}", h.line("empty: it has no entry computation yet"))
    counts = Counter(_plain(i.opcode) for i in m)
    all_of_them = sum(counts.values())
    devices = f", {m.replica_count} replicas, {m.num_partitions} partitions" if m.replica_count * m.num_partitions > 1 else ""
    scheduled = ", scheduled" if m.is_scheduled else ""
    rows = [(name, count, h.Bar(count / all_of_them)) for name, count in counts.most_common(12)]
    ins = [(_plain(p.name), _plain(str(p.shape)), _size(p.shape.bytes), _plain(p.op_name)) for p in entry.parameters]
    root = entry.root
    return h.page(
        f"module {_plain(m.name)}",
        h.line(f"{all_of_them:,} instructions in {len(m.computations):,} computations{devices}{scheduled}"),
        h.line(f"result {_plain(root.name)}: {_plain(str(root.shape))}"),
        h.table(("parameter", "shape", "size", "op_name"), ins, 8),
        h.table(("operation", "count", ""), rows),
        h.text(_plain(_beginning(m)), "text"),
    )


def _beginning(m: Module) -> str:
    """The text, or of a large module that of its entry."""
    return m.print() if len(m) <= 5000 else m.entry.text


def _size(count: int | None) -> str:
    return h.bytes_text(count)


def _plain(text: str) -> str:
    """Bytes of a file that are no UTF-8 as question marks: a page holds none of them."""
    return text.encode("utf-8", "replace").decode()
