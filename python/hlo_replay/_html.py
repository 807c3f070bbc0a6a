"""What notebooks show: pieces of HTML that need nothing from anywhere, every name escaped."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = """<style>
.hlor{font:13px/1.45 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:72em;padding:.4em .6em;border:1px solid #ddd;border-radius:6px;overflow:auto}
.hlor h4{margin:.2em 0 .3em;font-size:14px}.hlor p{margin:.2em 0;color:#444}
.hlor table{border-collapse:collapse;margin:.4em 0;width:auto}
.hlor th,.hlor td{padding:1px .7em 1px 0;text-align:left!important;border:0;background:none;vertical-align:top}
.hlor th{border-bottom:1px solid #bbb;font-weight:600}.hlor td.n,.hlor th.n{text-align:right!important;font-variant-numeric:tabular-nums}
.hlor pre,.hlor code{font:12px/1.4 ui-monospace,monospace;color:#1a1a1a;background:none}
.hlor pre{margin:.3em 0;padding:.3em .5em;background:#f6f6f6;overflow:auto;max-height:32em;white-space:pre}
.hlor .add{background:#e3f6e3;display:block}.hlor .del{background:#fbe6e4;display:block}.hlor .mod{background:#fdf4d7;display:block}
.hlor .bar{display:inline-block;height:.7em;background:#6d9bd1;vertical-align:baseline}.hlor .bad{color:#a4262c}
.hlor summary{cursor:pointer;color:#234e8a}
</style>"""
_MOST_TEXT = 20000  # characters of a text that a page holds


def page(title: str, *parts: str) -> str:
    """One box. `title` is plain text, `parts` are HTML."""
    return f'{_STYLE}<div class="hlor"><h4>{escape(title)}</h4>{"".join(parts)}</div>'


def line(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], most: int = 40) -> str:
    """Rows of plain values; numbers are at the right. At most that many rows (`most`), and how many there are beyond."""
    rows = list(rows)
    numeric = [bool(rows) and all(isinstance(r[k], (int, float)) or r[k] == "" for r in rows) for k in range(len(heads))]
    out = ["<table><tr>"]
    out += [f'<th{_class(numeric[k])}>{escape(head)}</th>' for k, head in enumerate(heads)]
    out.append("</tr>")
    for row in rows[:most]:
        out.append("<tr>" + "".join(f"<td{_class(numeric[k])}>{_cell(v)}</td>" for k, v in enumerate(row)) + "</tr>")
    out.append("</table>")
    if len(rows) > most:
        out.append(line(f"… and {len(rows) - most} more"))
    return "".join(out)


def _class(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _cell(value: Any) -> str:
    if isinstance(value, Bar):
        return value.html()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return escape(str(value))


class Bar:
    """A share from 0 to 1, drawn."""

    def __init__(self, share: float) -> None:
        self.share = min(max(share, 0.0), 1.0)

    def html(self) -> str:
        return f'<span class="bar" style="width:{self.share * 8:.2f}em"></span>&nbsp;{self.share:.0%}'


def text(body: str, summary: str = "", shown: bool = False) -> str:
    """A text as it is, cut where it is long; with a summary it opens on a click."""
    cut = body[:_MOST_TEXT]
    if len(body) > len(cut):
        cut = cut[: cut.rfind("\n") + 1 or len(cut)]
        cut += f"… {len(body) - len(cut):,} more characters"
    inside = f"<pre>{escape(cut)}</pre>"
    return f"<details{' open' if shown else ''}><summary>{escape(summary)}</summary>{inside}</details>" if summary else inside


def changes(lines: Iterable[tuple[str, str]], most: int = 200) -> str:
    """Lines with their sign: + and - and ~, and a blank for what is the same."""
    lines = list(lines)
    kinds = {"+": "add", "-": "del", "~": "mod", ">": "mod"}
    out = []
    for sign, said in lines[:most]:
        whole = escape(f"{sign} {said}")
        out.append(f'<span class="{kinds[sign]}">{whole}</span>' if sign in kinds else whole + "\n")
    more = line(f"… and {len(lines) - most} more lines") if len(lines) > most else ""
    return f"<pre>{''.join(out)}</pre>{more}"


def bytes_text(count: float | None) -> str:
    if count is None:
        return "unknown"
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.2f} {units[0]}"


def time_text(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3f}\u00a0{unit}"
    return f"{seconds * 1e9:.0f}\u00a0ns"
