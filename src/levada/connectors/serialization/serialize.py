r"""Serializes results to records of NDJSON, CSV and TSV, many reports at a time (quads:
``construct_quads``).

    SELECT        {"query": "q3", "report": 10, "head": {"vars": ["s"]}, "results": {..}}
    its changes   {"query": "q3", "report": 10, "change": "insert", "head": .., "results": ..}
    ASK           {"query": "q3", "report": 10, "head": {}, "boolean": true}
    CONSTRUCT     {"query": "q3", "report": 10, "graph": "<a> <b> <c> .\n"}

CSV and TSV have one line per solution: the column ``report``, for a relation then ``change``, then
the variables; ASK has the column ``boolean``; CONSTRUCT a line per triple with subject, predicate
and object. Lines end with a line feed. The one report of a query without windows has no time: null,
in CSV and TSV an empty field.

Invariants: the reports of a batch do not fall, and neither do those of its lines (at one report
deletes precede inserts); solutions keep their order within a report; a line of NDJSON contains a
whole report. Cost: vectorised per distinct term (``decode_terms``) and per row, without Python per
row or report; a small batch is written a term at a time (``serialize_rows``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.connectors.serialization import serialize_rows
from levada.connectors.serialization.decode_terms import (
    csv_values,
    json_strings,
    json_terms,
    tsv_values,
)
from levada.connectors.serialization.result_formats import HEADED, Format
from levada.core.event_time import TIMELESS
from levada.core.query_model import Form
from levada.core.text_columns import join_lines

Times = npt.NDArray[np.int64]
_TRIPLE = (
    r"^(\S+) (\S+) (.+) \.$"  # a line of canonical N-Triples: only its object may contain a blank
)
_NO_TIMES: Times = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Batch:
    """Results of one query, sorted by report.

    ``report`` int64[n] in ms: of each solution (SELECT), of each line (ASK, CONSTRUCT). ``columns``
    (SELECT) has a Series of canonical N-Triples texts per variable, null is unbound. ``change``
    int8[n] (+1, -1) only for a relation's changes. ``booleans`` bool[n] (ASK). ``graphs`` Series[n]
    of N-Triples (CONSTRUCT). ``empty``: reports without a result that are to be shown
    (``empty_reports``); none of them is in ``report``.
    """

    report: Times
    form: Form = Form.SELECT
    columns: dict[str, pl.Series] = field(default_factory=dict)
    change: npt.NDArray[np.int8] | None = None
    booleans: npt.NDArray[np.bool_] | None = None
    graphs: pl.Series | None = None
    empty: Times = field(default_factory=lambda: _NO_TIMES)

    def __post_init__(self) -> None:
        n = len(self.report)
        assert all(column.len() == n for column in self.columns.values()), (
            "a column has a value per solution"
        )
        assert self.change is None or len(self.change) == n, (
            "each solution of a relation has its sign"
        )
        assert self.form is not Form.ASK or (
            self.booleans is not None and len(self.booleans) == n
        ), "ASK has booleans"
        assert self.form is not Form.CONSTRUCT or (
            self.graphs is not None and self.graphs.len() == n
        ), "graphs are there"
        assert n < 2 or bool((self.report[1:] >= self.report[:-1]).all()), (
            "a batch is sorted by report"
        )

    @property
    def size(self) -> int:
        """Estimates the bytes of its texts."""
        graphs = () if self.graphs is None else (self.graphs,)
        return sum(int(text.estimated_size()) for text in (*self.columns.values(), *graphs))


def ndjson(query: str, variables: Sequence[str], batch: Batch) -> bytes:
    """Returns a batch as NDJSON, one whole line per report (a relation: per report and sign).

    >>> batch = Batch(np.array([5]), columns={"x": pl.Series(["<http://e/a>"])})
    >>> ndjson("q", ["x"], batch).decode().strip()[:56]
    '{"query": "q", "report": 5, "head": {"vars": ["x"]}, "re'
    """
    return join_lines(lines(Format.NDJSON, query, variables, batch))


def csv(query: str, variables: Sequence[str], batch: Batch, *, header: bool = True) -> bytes:
    r"""Returns a batch as CSV, with its header unless it continues a file.

    >>> csv("q", ["x"], Batch(np.array([5]), columns={"x": pl.Series(['"a"'])}))
    b'report,x\n5,a\n'
    """
    return (heading(Format.CSV, variables, batch) if header else b"") + join_lines(
        lines(Format.CSV, query, variables, batch)
    )


def tsv(query: str, variables: Sequence[str], batch: Batch, *, header: bool = True) -> bytes:
    r"""Returns a batch as TSV, with its header unless it continues a file.

    >>> tsv("q", ["x"], Batch(np.array([5]), columns={"x": pl.Series(['"a"'])}))
    b'report\t?x\n5\t"a"\n'
    """
    return (heading(Format.TSV, variables, batch) if header else b"") + join_lines(
        lines(Format.TSV, query, variables, batch)
    )


def lines(form: Format, query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    """Returns the records of a batch as texts with their line ends, in report order."""
    if (
        batch.form is Form.SELECT
        and len(batch.report) <= serialize_rows.MAX_LOOPED_ROWS
        and not len(batch.empty)
    ):
        return few_lines(form, query, variables, batch)
    return many_lines(form, query, variables, batch)


def many_lines(form: Format, query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    """Returns ``lines``, vectorised: for many rows."""
    if form is Format.NDJSON:
        return _json_lines(query, variables, batch)
    convert = csv_values if form is Format.CSV else tsv_values
    return _table_lines("," if form is Format.CSV else "\t", convert, variables, batch)


def few_lines(form: Format, query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    """Returns ``lines`` of a SELECT without empty reports, a term at a time: for few rows."""
    relation = batch.change is not None
    signs = batch.change.tolist() if batch.change is not None else [1] * len(batch.report)
    columns = [batch.columns[name].to_list() for name in variables]
    terms = zip(*columns, strict=True) if columns else ((),) * len(batch.report)
    rows = [(r, s, t) for r, s, t in zip(batch.report.tolist(), signs, terms, strict=True)]
    rows.sort(key=lambda row: row[:2])  # deletions before insertions
    match form:
        case Format.NDJSON:
            encoded = serialize_rows.json_lines(query, variables, rows, relation=relation)
        case Format.CSV:
            encoded = serialize_rows.table_lines(
                ",", serialize_rows.csv_value, rows, relation=relation
            )
        case Format.TSV:
            encoded = serialize_rows.table_lines(
                "\t", serialize_rows.tsv_value, rows, relation=relation
            )
    return pl.Series("line", list(encoded), pl.String)


def heading(form: Format, variables: Sequence[str], batch: Batch) -> bytes:
    """Returns the line at the top of a file: only CSV and TSV have one."""
    if form not in HEADED:
        return b""
    fixed = ["report"] if batch.change is None else ["report", "change"]
    if form is Format.TSV:
        names = (
            ["boolean"]
            if batch.form is Form.ASK
            else ["?" + name for name in _show(variables, batch)]
        )
        return ("\t".join([*fixed, *(name.replace("\t", " ") for name in names)]) + "\n").encode()
    names = ["boolean"] if batch.form is Form.ASK else _show(variables, batch)
    return (",".join([*fixed, *map(serialize_rows.csv_field, names)]) + "\n").encode()


def _show(variables: Sequence[str], batch: Batch) -> list[str]:
    return ["subject", "predicate", "object"] if batch.form is Form.CONSTRUCT else list(variables)


def _json_lines(query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    prefix = f'{{"query": {json.dumps(query, ensure_ascii=False)}, "report": '
    match batch.form:
        case Form.SELECT:
            frame, body = _bindings(variables, batch)
        case Form.ASK:
            word = pl.when(pl.col("value")).then(pl.lit("true")).otherwise(pl.lit("false"))
            frame = pl.DataFrame({"report": batch.report, "value": batch.booleans})
            frame, body = (
                _with_empty(frame, batch, False),
                pl.concat_str(pl.lit(', "head": {}, "boolean": '), word),
            )
        case Form.CONSTRUCT:
            assert batch.graphs is not None, "a CONSTRUCT batch has graphs"
            frame = pl.DataFrame({"report": batch.report, "value": json_strings(batch.graphs)})
            frame, body = (
                _with_empty(frame, batch, '""'),
                pl.concat_str(pl.lit(', "graph": '), pl.col("value")),
            )
    line = pl.concat_str(pl.lit(prefix), _time("null"), body, pl.lit("}\n"))
    return frame.select(line.alias("line")).to_series()


def _time(none: str) -> pl.Expr:
    """Returns the column ``report`` as text; ``none`` for that of a query without windows."""
    report = pl.col("report")
    return pl.when(report == TIMELESS).then(pl.lit(none)).otherwise(report.cast(pl.String))


def _bindings(variables: Sequence[str], batch: Batch) -> tuple[pl.DataFrame, pl.Expr]:
    """Returns one row per line with the bindings joined, and an expression for the text after the
    time.
    """
    members = [
        (json.dumps(name, ensure_ascii=False) + ": " + json_terms(batch.columns[name])).alias(
            f"v{i}"
        )
        for i, name in enumerate(variables)
    ]
    rows = pl.DataFrame({"report": batch.report})
    sign = batch.change if batch.change is not None else np.ones(len(batch.report), np.int8)
    content = (
        pl.concat_str(pl.col([m.name for m in members]), separator=", ", ignore_nulls=True)
        if members
        else pl.lit("")
    )
    rows = rows.with_columns(pl.Series("sign", sign), *members).select(
        "report", "sign", pl.concat_str(pl.lit("{"), content, pl.lit("}")).alias("value")
    )
    grouped = rows.group_by("report", "sign", maintain_order=True).agg(pl.col("value"))
    # faster than a join inside agg
    grouped = grouped.with_columns(pl.col("value").list.join(", "))
    if batch.change is not None:
        grouped = grouped.sort("report", "sign", maintain_order=True)
    head = json.dumps({"vars": list(variables)}, ensure_ascii=False)
    word = pl.when(pl.col("sign") > 0).then(pl.lit("insert")).otherwise(pl.lit("delete"))
    change = [pl.lit(', "change": "'), word, pl.lit('"')] if batch.change is not None else []
    opening = pl.lit(f', "head": {head}, "results": {{"bindings": [')
    body = pl.concat_str(*change, opening, pl.col("value"), pl.lit("]}"))
    return _with_empty(grouped, batch, ""), body


def _with_empty(frame: pl.DataFrame, batch: Batch, value: object) -> pl.DataFrame:
    """Returns the lines' frame with the empty reports in their places (a relation's: inserts of
    nothing).
    """
    if not len(batch.empty):
        return frame
    empty = pl.DataFrame({"report": batch.empty}).with_columns(pl.lit(value).alias("value"))
    if "sign" in frame.columns:
        empty = empty.with_columns(pl.lit(1, pl.Int8).alias("sign"))
    return pl.concat([frame, empty.select(frame.columns)]).sort("report", maintain_order=True)


def _table_lines(
    separator: str,
    convert: Callable[[pl.Series], pl.Series],
    variables: Sequence[str],
    batch: Batch,
) -> pl.Series:
    if batch.form is Form.CONSTRUCT:
        batch = triples_of(batch)
    columns = [pl.DataFrame({"report": batch.report}).select(_time("")).to_series()]
    if batch.change is not None:
        columns.append(
            pl.Series("change", np.where(batch.change > 0, "insert", "delete")).cast(pl.String)
        )
    if batch.form is Form.ASK:
        assert batch.booleans is not None, "an ASK batch has booleans"
        columns.append(
            pl.Series("boolean", np.where(batch.booleans, "true", "false")).cast(pl.String)
        )
    else:
        columns += [convert(batch.columns[name]).fill_null("") for name in _show(variables, batch)]
    frame = pl.DataFrame([column.alias(f"c{i}") for i, column in enumerate(columns)])
    if batch.change is not None:
        keys = pl.DataFrame({"report": batch.report, "sign": batch.change})
        order = pl.arg_sort_by("report", "sign", maintain_order=True)
        frame = frame[keys.select(order)["report"]]
    line = pl.concat_str(pl.concat_str(pl.all(), separator=separator), pl.lit("\n"))
    return frame.select(line.alias("line")).to_series()


def triples_of(batch: Batch) -> Batch:
    """Returns a CONSTRUCT batch as solutions, one per triple."""
    assert batch.graphs is not None, "a CONSTRUCT batch has graphs"
    frame = pl.DataFrame({"report": batch.report, "line": batch.graphs.str.split("\n")}).explode(
        "line"
    )
    frame = frame.filter(pl.col("line").str.len_bytes() > 0)
    parts = frame["line"].str.extract_groups(_TRIPLE).struct
    columns = {
        name: parts.field(str(i)) for i, name in enumerate(("subject", "predicate", "object"), 1)
    }
    return Batch(frame["report"].to_numpy(), Form.CONSTRUCT, columns, graphs=frame["line"])
