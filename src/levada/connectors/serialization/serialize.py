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
row or report; a small batch is written a term at a time (``serialize``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.connectors.serialization.decode_terms import (
    csv_values,
    json_strings,
    json_terms,
    tsv_values,
)
from levada.connectors.serialization.result_formats import HEADED, Format
from levada.core.event_time import TIMELESS
from levada.core.query_model import Form
from levada.core.rdf_terms import XSD, Blank, Iri, Literal, parse_term
from levada.core.text_columns import join_lines

# Serializes small batches, a term at a time: the slow twin of the vectorised serialization, and
# faster than it for few rows.
#
# A vectorised call costs some milliseconds for any number of rows. With ten thousand queries that
# each have a row or two an epoch that would be most of the work. Here a row costs some
# microseconds. Both write the same bytes: each is the other's oracle in the tests. At
# ``MAX_LOOPED_ROWS`` rows their costs are equal.


MAX_LOOPED_ROWS = 200  # rows
_LITERAL = re.compile(r'("(?:.*)")(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_NUMBER = re.compile(
    r'"(?:([+-]?[0-9]+)"\^\^<X#integer>|([+-]?[0-9]*\.[0-9]+)"\^\^<X#decimal>'
    r'|([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+)"\^\^<X#double>)'.replace(
        "X#", re.escape(XSD)
    )
)
Text = str | None


@lru_cache(1 << 14)
def json_term(text: str) -> str:
    """Returns a term as a JSON object.

    >>> json_term("_:b")
    '{"type": "bnode", "value": "b"}'
    """
    if match := _LITERAL.fullmatch(text):
        quoted, language, datatype = match.groups()
        if language:
            return f'{{"type": "literal", "value": {quoted}, "xml:lang": "{language}"}}'
        tail = f', "datatype": "{datatype}"}}' if datatype else "}"
        return f'{{"type": "literal", "value": {quoted}{tail}'
    term = parse_term(text)
    if isinstance(term, Blank):
        return f'{{"type": "bnode", "value": "{term.label}"}}'
    assert isinstance(term, Iri), "a term is a literal, a blank node or an IRI"
    return f'{{"type": "uri", "value": {json.dumps(term.value, ensure_ascii=False)}}}'


@lru_cache(1 << 14)
def csv_value(text: str) -> str:
    """Returns a term as a CSV field."""
    match parse_term(text):
        case Iri(value):
            return csv_field(value)
        case Literal(lexical):
            return csv_field(lexical)
        case Blank():
            return csv_field(text)


def csv_field(value: str) -> str:
    """Returns a plain text as a CSV field, in quotes if it needs them.

    >>> csv_field("a, b")
    '"a, b"'
    """
    return '"' + value.replace('"', '""') + '"' if any(c in value for c in '",\r\n') else value


@lru_cache(1 << 14)
def tsv_value(text: str) -> str:
    """Returns a term as a TSV field; plain numbers in their short Turtle form."""
    match = _NUMBER.fullmatch(text)
    return next(filter(None, match.groups())) if match else text


Row = tuple[int, int, tuple[Text, ...]]  # report, sign, terms


def json_lines(
    query: str, variables: Sequence[str], rows: Sequence[Row], *, relation: bool
) -> Iterator[str]:
    """Yields NDJSON lines of solutions that are sorted by report, and by sign within one."""
    names = [json.dumps(name, ensure_ascii=False) for name in variables]
    prefix = f'{{"query": {json.dumps(query, ensure_ascii=False)}, "report": '
    head = json.dumps({"vars": list(variables)}, ensure_ascii=False)
    for (report, sign), members in groupby(rows, key=lambda row: row[:2]):
        change = f', "change": "{word(sign)}"' if relation else ""
        bindings = ", ".join(_binding(names, terms) for _, _, terms in members)
        results = f'"results": {{"bindings": [{bindings}]}}'
        yield f'{prefix}{json_report(report)}{change}, "head": {head}, {results}}}\n'


def _binding(names: Sequence[str], terms: tuple[Text, ...]) -> str:
    bound = zip(names, terms, strict=True)
    return (
        "{"
        + ", ".join(f"{name}: {json_term(text)}" for name, text in bound if text is not None)
        + "}"
    )


def table_lines(
    separator: str, convert: Callable[[str], str], rows: Sequence[Row], *, relation: bool
) -> Iterator[str]:
    """Yields CSV or TSV lines of solutions in order."""
    for report, sign, terms in rows:
        change = [word(sign)] if relation else []
        fields = ("" if text is None else convert(text) for text in terms)
        yield separator.join(["" if report == TIMELESS else str(report), *change, *fields]) + "\n"


def json_report(report: int) -> str:
    """Returns a report time; null for that of a query without windows.

    >>> json_report(TIMELESS), json_report(5)
    ('null', '5')
    """
    return "null" if report == TIMELESS else str(report)


def word(sign: int) -> str:
    """Returns the word for a sign."""
    return "insert" if sign > 0 else "delete"


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
    if batch.form is Form.SELECT and len(batch.report) <= MAX_LOOPED_ROWS and not len(batch.empty):
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
            encoded = json_lines(query, variables, rows, relation=relation)
        case Format.CSV:
            encoded = table_lines(",", csv_value, rows, relation=relation)
        case Format.TSV:
            encoded = table_lines("\t", tsv_value, rows, relation=relation)
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
    return (",".join([*fixed, *map(csv_field, names)]) + "\n").encode()


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
