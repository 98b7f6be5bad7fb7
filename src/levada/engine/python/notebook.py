"""Results in notebooks: frames and mappings as HTML, with a caption."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import polars as pl

from levada.core.count_text import count_text

SHOWN = 20
_STYLE = "font-family: monospace; font-size: 90%"


def frame_html(frame: pl.DataFrame, caption: str) -> str:
    """Returns the last rows of a frame as HTML, with escaped texts."""
    last = frame.tail(SHOWN)
    rows = [[_cell(value) for value in row] for row in last.rows()]
    left = frame.height - last.height
    note = f"{count_text(left, 'row')} before these" if left else ""
    return rows_html(frame.columns, rows, caption, note)


def rows_html(
    heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str, note: str = ""
) -> str:
    """Returns a table as HTML, with escaped texts.

    >>> rows_html(["a<b"], [["1"]], "").partition(">")[2]
    '<tr><th>a&lt;b</th></tr><tr><td>1</td></tr></table>'
    """
    said = ", ".join(part for part in (caption, note) if part)
    top = f"<caption>{escape(said)}</caption>" if said else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<table style="{_STYLE}">{top}<tr>{head}</tr>{body}</table>'


def _cell(value: object) -> str:
    return "" if value is None else str(value)
