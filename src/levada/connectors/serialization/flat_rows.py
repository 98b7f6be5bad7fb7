r"""Serializes results as one flat JSON object a row, for programs that know nothing of RDF.

    SELECT        {"query": "q", "report": "2026-11-30T12:00:00Z", "room": "hall", "top": 23}
    its changes   {"query": "q", "report": .., "change": "insert", "room": "hall", "top": 23}
    ASK           {"query": "q", "report": .., "boolean": true}
    CONSTRUCT     {"query": "q", "report": .., "subject": .., "predicate": .., "object": ..}

Numbers and booleans of XSD are those of JSON; an unbound variable is null; all other terms are
their value as a text: the IRI, the lexical form, or _:label. A number that JSON cannot write (INF,
NaN) is a text. A query without windows has the report null. If a variable has the name of a member
such as ``report``, the member begins with an underscore.

Invariants: rows keep the order of their batch; at one report deletions precede insertions. Cost: a
few vectorised passes; up to ``MAX_LOOPED_ROWS`` rows a loop, which costs less for so few.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import polars as pl

from levada.connectors.serialization.decode_terms import (
    ESCAPED_LITERAL,
    json_strings,
    per_distinct,
    plain_values,
)
from levada.connectors.serialization.serialize import MAX_LOOPED_ROWS, Batch, triples_of, word
from levada.core.array_types import Longs
from levada.core.event_time import TIMELESS, instant
from levada.core.query_model import Form
from levada.core.rdf_terms import XSD, Iri, parse_term

_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
# numerals of XSD that JSON writes in another way: +5, 007, .5, 5. (for re, and for Polars)
_SPELLINGS = (
    (r"^\+", "", ""),
    (r"^(-?)0+([0-9])", r"\g<1>\g<2>", "${1}${2}"),
    (r"^(-?)\.", r"\g<1>0.", "${1}0."),
    (r"\.($|[eE])", r"\g<1>", "${1}"),
)
_NUMERIC_TYPES = frozenset(
    XSD + name
    for name in (
        "integer", "decimal", "float", "double", "int", "long", "short", "byte",
        "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
        "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
    )
)  # fmt: skip
_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000  # ms
_BOOLEANS = {"true": "true", "1": "true", "false": "false", "0": "false"}


def flat_rows(query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    r"""Returns a line for each row of a batch; reports without a row have none.

    >>> batch = Batch(np.array([5]), columns={"n": pl.Series(['"+5"^^<%sinteger>' % XSD])})
    >>> flat_rows("q", ["n"], batch).to_list()
    ['{"query": "q", "report": "1970-01-01T00:00:00.005Z", "n": 5}\n']
    """
    if batch.form is Form.CONSTRUCT:
        batch = triples_of(batch)
        variables = list(batch.columns)
    few = len(batch.report) <= MAX_LOOPED_ROWS and batch.form is not Form.ASK
    return (_few if few else _many)(query, variables, batch)


def keyed_rows(
    query: str, variables: Sequence[str], batch: Batch, columns: Sequence[str]
) -> Iterator[tuple[str | None, str | None]]:
    """Yields the rows of a SELECT, each with its key: the value of a column, or a JSON array of the
    values of several (null if it is unbound). A row that a relation loses is None, a tombstone,
    unless another one with its key comes at the same report; then it is left out.
    """
    lines = flat_rows(query, variables, batch)
    keys = _keys(batch, columns)
    if batch.change is None:
        yield from zip(keys, lines, strict=True)
        return
    order = np.lexsort((batch.change, batch.report))
    rows = pl.DataFrame({"report": batch.report[order], "key": keys.gather(order), "line": lines})
    rows = rows.with_columns(pl.Series("comes", batch.change[order] > 0))
    replaced = pl.col("comes").any().over("report", "key")
    rows = rows.filter(pl.col("comes") | ~replaced)
    yield from rows.select("key", pl.when("comes").then("line")).iter_rows()


def _keys(batch: Batch, columns: Sequence[str]) -> pl.Series:
    """Returns the key of each row of a batch."""
    if len(columns) == 1:
        return plain_values(batch.columns[columns[0]])
    values = pl.DataFrame(
        {
            f"c{i}": json_values(batch.columns[name]).fill_null("null")
            for i, name in enumerate(columns)
        }
    )
    listed = pl.concat_str(pl.lit("["), pl.concat_str(pl.all(), separator=", "), pl.lit("]"))
    return values.select(listed.alias("key")).to_series()


def _heads(query: str, variables: Sequence[str]) -> tuple[str, str]:
    """Returns the text before the report time, and the one before the change."""
    names = []
    for name in ("query", "report", "change"):
        while name in variables:
            name = f"_{name}"
        names.append(json.dumps(name))
    value = json.dumps(query, ensure_ascii=False)
    return f"{{{names[0]}: {value}, {names[1]}: ", f", {names[2]}: "


def _few(query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    head, change = _heads(query, variables)
    names = [f", {json.dumps(name, ensure_ascii=False)}: " for name in variables]
    columns = [batch.columns[name].to_list() for name in variables]
    terms = list(zip(*columns, strict=True)) if columns else [()] * len(batch.report)
    signs = [1] * len(terms) if batch.change is None else batch.change.tolist()
    rows = sorted(zip(batch.report.tolist(), signs, terms, strict=True), key=lambda row: row[:2])
    return pl.Series(
        "line",
        [
            head
            + ("null" if report == TIMELESS else f'"{instant(report)}"')
            + ("" if batch.change is None else f'{change}"{word(sign)}"')
            + "".join(n + json_value(t) for n, t in zip(names, row, strict=True))
            + "}\n"
            for report, sign, row in rows
        ],
        pl.String,
    )


def _many(query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    head, change = _heads(query, variables)
    columns = [("report", '"' + _instants(batch.report) + '"')]
    if batch.change is not None:
        words = pl.Series(np.where(batch.change > 0, '"insert"', '"delete"')).cast(pl.String)
        columns.append(("change", words))
    if batch.form is Form.ASK:
        assert batch.booleans is not None, "an ASK batch has booleans"
        words = pl.Series(np.where(batch.booleans, "true", "false")).cast(pl.String)
        columns.append((', "boolean": ', words))
    for name in variables if batch.form is not Form.ASK else ():
        text = f", {json.dumps(name, ensure_ascii=False)}: "
        columns.append((text, json_values(batch.columns[name]).fill_null("null")))
    frame = pl.DataFrame({f"c{i}": column for i, (_, column) in enumerate(columns)})
    timeless = pl.Series(batch.report == TIMELESS)
    parts = [pl.when(timeless).then(pl.lit("null")).otherwise(pl.col("c0"))]
    for i, (text, _) in enumerate(columns[1:], 1):
        parts += [pl.lit(change if text == "change" else text), pl.col(f"c{i}")]
    lines = frame.select(pl.concat_str(pl.lit(head), *parts, pl.lit("}\n")).alias("line"))
    if batch.change is None:
        return lines.to_series()
    order = np.lexsort((batch.change, batch.report))
    return lines.to_series().gather(order)


def _instants(ms: Longs) -> pl.Series:
    """Returns ``instant`` of each time."""
    times = pl.Series(np.clip(ms, _YEAR_1, _YEAR_10000 - 1)).cast(pl.Datetime("ms"))
    whole, fine = (times.dt.strftime(f"%Y-%m-%dT%H:%M:%S{f}Z") for f in ("", "%.3f"))
    texts = whole.zip_with(pl.Series(ms % 1000 == 0), fine)
    far = np.flatnonzero((ms < _YEAR_1) | (ms >= _YEAR_10000))
    return texts.scatter(far, [instant(t) for t in ms[far].tolist()]) if len(far) else texts


def json_values(texts: pl.Series) -> pl.Series:
    """Returns each term as a value of JSON, null for null.

    >>> json_values(pl.Series(["<http://e/a>", '"x"@en', None])).to_list()
    ['"http://e/a"', '"x"', None]
    """
    return per_distinct(texts, _json_values)


def _json_values(texts: pl.Series) -> pl.Series:
    parts = texts.str.extract_groups(ESCAPED_LITERAL)
    quoted, datatype = parts.struct.field("1"), parts.struct.field("3")
    lexical = quoted.str.strip_prefix('"').str.strip_suffix('"')
    number = lexical
    for pattern, _, spelling in _SPELLINGS:
        number = number.str.replace(pattern, spelling)
    frame = pl.DataFrame(
        {
            "text": json_strings(plain_values(texts)),
            "quoted": quoted,
            "number": number,
            "boolean": lexical.replace_strict(_BOOLEANS, default=None, return_dtype=pl.String),
            "type": datatype,
        }
    )
    is_number = pl.col("type").is_in(list(_NUMERIC_TYPES)) & pl.col("number").str.contains(_NUMBER)
    is_boolean = (pl.col("type") == f"{XSD}boolean") & pl.col("boolean").is_not_null()
    value = (
        pl.when(is_number.fill_null(False))
        .then(pl.col("number"))
        .when(is_boolean.fill_null(False))
        .then(pl.col("boolean"))
        .otherwise(pl.coalesce("quoted", "text"))
    )
    return frame.select(value.alias("text")).to_series()


@lru_cache(1 << 14)
def json_value(text: str | None) -> str:
    """Returns a term as a value of JSON.

    >>> json_value('"-.5"^^<%sdecimal>' % XSD), json_value(None)
    ('-0.5', 'null')
    """
    if text is None:
        return "null"
    match = re.fullmatch(ESCAPED_LITERAL, text)
    if match is None:
        term = parse_term(text)
        return json.dumps(term.value if isinstance(term, Iri) else text, ensure_ascii=False)
    quoted, _, datatype = match.groups()
    if datatype == f"{XSD}boolean":
        return _BOOLEANS.get(quoted[1:-1], quoted)
    if datatype not in _NUMERIC_TYPES:
        return quoted
    number = quoted[1:-1]
    for pattern, spelling, _ in _SPELLINGS:
        number = re.sub(pattern, spelling, number, count=1)
    return number if re.search(_NUMBER, number) else quoted
