"""Writes rows of a user's table as lines of N-Triples or N-Quads with their times: a row is one
line, whatever its columns contain.

A line break within a literal becomes its escape. A row with a column that is not exactly one term
(empty, two terms, a comment) could otherwise be read as another statement, or as none. It becomes
an ill-formed line, so that the whole row becomes a dead letter. Cost: a few string operations of
Polars a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_IRI = r'<[^<>"\x00-\x20]*>'
_BLANK = r'_:[^<>"#\x00-\x20]+'
_LITERAL = rf'"(?:[^"\\]|\\.)*"(?:[ \t]*@[A-Za-z0-9-]+|[ \t]*\^\^[ \t]*{_IRI})?'
_TERM = rf"(?s)^\s*(?:{_IRI}|{_BLANK}|{_LITERAL})\s*$"
_QUOTED = rf"(?s)^{_LITERAL}$"
_NO_TIME = r'["\\#\r\n]'  # characters that no time contains
MARK = "not one term in each column: "


def statement_lines(rows: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    r"""Returns the line of each row. ``columns`` are subject, predicate, object, perhaps the graph
    (null: none), and the time.

    >>> row = pl.DataFrame({"s": ["<a:s>"], "p": ["<a:p>"], "o": ['"x"'], "ts": [5]})
    >>> statement_lines(row, ("s", "p", "o", "ts")).to_list()
    ['<a:s> <a:p> "x" 5 .\n']
    """
    *terms, time = columns
    # a column of nulls has no type
    rows = rows.with_columns(pl.col(name).cast(pl.String) for name in terms)
    whole = [
        pl.col(name).str.contains(_TERM).fill_null(len(terms) > 3 and name == terms[3])
        for name in terms
    ]
    timed = pl.lit(True)
    if rows[time].dtype == pl.String:
        text = pl.col(time)
        timed = (~text.str.contains(_NO_TIME) | text.str.contains(_QUOTED)).fill_null(True)
    mark = pl.when(pl.all_horizontal(*whole, timed)).then(pl.lit("")).otherwise(pl.lit(MARK))
    parts = [pl.col(name).fill_null("") for name in terms]
    line = pl.concat_str(*parts, _time(rows, time).fill_null(""), pl.lit("."), separator=" ")
    line = line.str.replace_all("\n", r"\n", literal=True).str.replace_all(
        "\r", r"\r", literal=True
    )
    return rows.select(line=pl.concat_str(mark, line, pl.lit("\n")))["line"]


def text_lines(rows: pl.DataFrame, column: str) -> pl.Series:
    r"""Returns a column of lines unchanged; null is no line.

    >>> text_lines(pl.DataFrame({"line": ["<a:s> <a:p> <a:o> 5 .", None]}), "line").to_list()
    ['<a:s> <a:p> <a:o> 5 .\n']
    """
    line = pl.concat_str(pl.col(column).str.strip_chars("\n\r"), pl.lit("\n"))
    return rows.select(line=line)["line"].drop_nulls()


def _time(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Returns the event time of each row as an additional term: a literal unchanged, else in
    quotes; without a zone it is UTC.
    """
    time = pl.col(name)
    kind = rows[name].dtype
    if isinstance(kind, pl.Datetime):
        utc = time.dt.convert_time_zone("UTC") if kind.time_zone else time
        time = utc.dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ")
    elif kind.is_integer():
        return time.cast(pl.String)
    time = time.cast(pl.String)
    quoted = pl.concat_str(pl.lit('"'), time, pl.lit('"'))
    return pl.when(time.str.contains(_QUOTED)).then(time).otherwise(quoted)
