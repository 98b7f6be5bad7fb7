"""Writes the triples of rows as lines of N-Triples or N-Quads, by a mapping
(``levada.connectors.config.row_mapping``).

    columns --terms--> texts of terms --lines--> a text for each row

A triple with a missing value is left out. A column may be a list: then a term has a text for each
of its values, and a triple one line for each combination of its terms. A value that makes a term
of RML ill-formed (an IRI with a blank in it, ``"x"^^xsd:integer``) leaves the triple out, with a
fault. The terms of native mappings are checked by the parser of the lines. Cost: a few string
operations of Polars a triple and row; no Python object a value.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
import polars as pl

from levada.connectors.config.mapping_formula import column_of, compile_, names_of
from levada.connectors.config.rml.triples_maps import IRI_REST, LANGUAGE, label_of
from levada.connectors.config.row_mapping import Part, RowMapping, Term
from levada.connectors.ingest.tables.value_kinds import (
    BOOLEAN,
    CONTAINER,
    NUMBER,
    kind_column,
)
from levada.core.frozen import frozen
from levada.core.rdf_terms import XSD

ROW_NUMBER, AT = "\x1frow", "\x1fat"
"""The columns of the numbers of rows, for ``row`` parts, and of the places of rows in a frame."""
AT_ROW = pl.int_range(pl.len(), dtype=pl.Int64).alias(AT)
MAX_COMBINATIONS = 20_000_000
"""The most texts that a call makes of lists."""
_UNSAFE = r"[^A-Za-z0-9._~-]"
_NOT_IRI_SAFE = r"[\x00-,/:-@\[-^`{-}\x7f-\x9f\u{e000}-\u{f8ff}\u{f0000}-\u{10ffff}]"
"""The characters that are not ``iunreserved`` (RFC 3987)."""
_ESCAPED = r'["\\\n\r]'
_NO_IRI = r"[\x00-\x20<>]"  # characters that could end an IRI, or its line
_NO_UNSAFE_IRI = r'[\x00-\x1f<>"\\]'
_ABSOLUTE = r"^[A-Za-z][A-Za-z0-9+.-]*:"
_IRI = f"<[A-Za-z][A-Za-z0-9+.-]*:{IRI_REST}>"
_UNSAFE_IRI = r'<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x1f<>"\\]*>'
_TIME, _ZONE = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?", r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_DATE = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_DOUBLE = rf"{_DECIMAL}(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN"
LEXICAL = {
    "hexBinary": r"(?:[0-9A-Fa-f]{2})*",
    "boolean": r"true|false|0|1",
    "decimal": _DECIMAL,
    "double": _DOUBLE,
    "float": _DOUBLE,
    "date": _DATE + _ZONE,
    "time": _TIME + _ZONE,
    "dateTime": f"{_DATE}T{_TIME}{_ZONE}",
    **dict.fromkeys(("integer", "long", "int", "short", "byte"), r"[+-]?[0-9]+"),
    "nonNegativeInteger": r"\+?[0-9]+|-0+",
    "positiveInteger": r"\+?0*[1-9][0-9]*",
}
"""The lexical forms of datatypes of XSD whose literals are checked."""


class Fault(NamedTuple):
    """A term of a row that is not well-formed, or a value that is not one."""

    row: int
    reason: str
    text: str


class RowLines(NamedTuple):
    """The lines of each row, as one text, and the faults."""

    texts: pl.Series
    faults: list[Fault]


def row_lines(frame: pl.DataFrame, mapping: RowMapping) -> RowLines:
    """Returns the lines of rows. ``frame``: the columns of the mapping, with those of the kinds of
    values (``value_kinds``), and ``ROW_NUMBER``. Raises ``ValueError`` for too many combinations.
    """
    if not mapping.is_rml:
        return RowLines(frame.select(text=_native_text(mapping))["text"], [])
    frame, faults = _without_containers(frame, mapping)
    lists, columns = _lists(frame), frozenset(frame.columns)
    single = [triple for triple in mapping.triples if not _names_of(triple) & lists]
    texts, more = _single_lines(frame, single, columns)
    faults += more
    listed = [triple for triple in mapping.triples if _names_of(triple) & lists]
    if not listed:
        return RowLines(texts, faults)
    columns_of_texts = [texts, *(_list_lines(frame, each, columns, lists) for each in listed)]
    checked = {term for triple in single for term in triple}
    for term in dict.fromkeys(term for triple in listed for term in triple):
        if term not in checked and _check_of(term):
            faults += _faults(_explode_lists(frame, term, lists), _check_term(term, columns))
    joined = pl.DataFrame({str(i): series for i, series in enumerate(columns_of_texts)})
    text = joined.select(text=pl.concat_str(pl.all(), ignore_nulls=True))["text"]
    return RowLines(text, faults)


def _single_lines(
    frame: pl.DataFrame, triples: Sequence[Sequence[Term]], columns: frozenset[str]
) -> tuple[pl.Series, list[Fault]]:
    """Returns the lines of triples without lists. Each value is written once for all its triples,
    and so is each term that is checked.
    """
    if not triples:
        return pl.Series("text", [""] * frame.height, pl.String), []
    terms = list(dict.fromkeys(term for triple in triples for term in triple))
    values: dict[str, pl.Expr] = {}
    pieces: dict[Part, list[str | pl.Expr]] = {}
    for part in dict.fromkeys(part for term in terms for part in term):
        pieces[part] = []
        for piece in _pieces(part, columns):
            if isinstance(piece, pl.Expr):
                values[name := f"\x1fvalue {len(values)}"] = piece
                piece = pl.col(name)
            pieces[part].append(piece)
    frame = frame.with_columns(each.alias(name) for name, each in values.items())
    written: dict[Term, list[str | pl.Expr]] = {}
    faults: list[Fault] = []
    for i, term in enumerate(terms):
        check = _check_of(term)
        if check is None and all(part.how != "base" for part in term):
            written[term] = [piece for part in term for piece in pieces[part]]
            continue
        text, sound = pl.col(f"\x1fterm {i}"), pl.col(f"\x1fsound {i}")
        frame = frame.with_columns(_term_text(term, pieces.__getitem__).alias(f"\x1fterm {i}"))
        written[term] = [text]
        if check is not None:
            frame = frame.with_columns(check[0](text).alias(f"\x1fsound {i}"))
            bad = frame.select(AT_ROW, text=text, bad=~sound).filter(pl.col("bad"))
            faults += [Fault(row, check[1], each) for row, each, _ in bad.iter_rows()]
            written[term] = [pl.when(sound).then(text)]
    lines = [_line([written[term] for term in triple]) for triple in triples]
    # a select would have one row for constants
    return frame.with_columns(text=pl.concat_str(*lines, ignore_nulls=True))["text"], faults


def with_formulas(frame: pl.DataFrame, let: tuple[tuple[str, str], ...]) -> pl.DataFrame:
    """Returns the texts of a mapping of RML with the columns of formulas. Raises ``ValueError`` for
    a formula over lists.
    """
    types = dict.fromkeys(frame.columns, "string")
    made = []
    for name, formula in let:
        for column in names_of(formula):
            if isinstance(frame.schema[column], pl.List):
                shown = reference_of(column)
                raise ValueError(f"{shown} has several values, and a function takes one")
        made.append(compile_(formula, types)[0].alias(name))
    return frame.with_columns(made)


# -- lists --


def _names_of(terms: Iterable[Term]) -> frozenset[str]:
    """Returns the columns of terms."""
    parts = (part for term in terms for part in term)
    return frozenset(part.text for part in parts if part.how not in ("text", "base", "row"))


def _explode_lists(frame: pl.DataFrame, term: Term, lists: frozenset[str]) -> pl.DataFrame:
    """Returns the columns of a term and the row of each combination of their values."""
    names = [name for name in frame.columns if name in _names_of([term])]
    kinds = [kind_column(name) for name in names if kind_column(name) in frame.columns]
    table = frame.select(*map(column_of, [*names, *kinds, ROW_NUMBER]), AT_ROW)
    table.columns = [*names, *kinds, ROW_NUMBER, AT]
    of_lists = [name for name in names if name in lists]
    if of_lists:
        sizes = [column_of(name).list.len().fill_null(0).cast(pl.Float64) for name in of_lists]
        check_size(float(table.select(n=pl.reduce(lambda a, b: a * b, sizes))["n"].sum()))
    for name in of_lists:
        both = [each for each in (name, kind_column(name)) if each in table.columns]
        table = table.explode(*both)
    return table


def check_size(count: float) -> None:
    """Raises ``ValueError`` for too many combinations."""
    if count > MAX_COMBINATIONS:
        raise ValueError(f"its lists make more than {MAX_COMBINATIONS:,} combinations")


def _list_lines(
    frame: pl.DataFrame, triple: Sequence[Term], columns: frozenset[str], lists: frozenset[str]
) -> pl.Series:
    """Returns the lines of a triple some of whose columns are lists."""
    rows = _combine_terms(frame, triple, columns, lists)
    of_rows = (
        rows.select(AT, term_line([str(i) for i in range(len(triple))]).alias("text"))
        .group_by(AT)
        .agg(pl.col("text").str.join(""))
    )
    every = pl.DataFrame({AT: np.arange(frame.height)})
    return every.join(of_rows, on=AT, how="left", maintain_order="left")["text"]


def term_rows(frame: pl.DataFrame, terms: Sequence[Term]) -> pl.DataFrame:
    """Returns the texts of terms in each row: columns 0, 1, .. for the terms, and ``AT`` for the
    row. A row without some term has none, and one with lists has all combinations. Terms that are
    ill-formed are left out, without a fault: ``row_lines`` has those.
    """
    mapping = RowMapping((), (), (), (tuple(terms),), is_rml=True)
    frame, _ = _without_containers(frame, mapping)
    return _combine_terms(frame, terms, frozenset(frame.columns), _lists(frame))


def term_line(columns: Sequence[str]) -> pl.Expr:
    """Returns the line of a triple or quad whose terms are these columns."""
    return _line([[pl.col(name)] for name in columns])


def _combine_terms(
    frame: pl.DataFrame, terms: Sequence[Term], columns: frozenset[str], lists: frozenset[str]
) -> pl.DataFrame:
    rows = pl.DataFrame({AT: np.arange(frame.height)})
    for i, term in enumerate(terms):
        text = _check_term(term, columns).text.alias(str(i))
        texts = _explode_lists(frame, term, lists).select(column_of(AT), text).drop_nulls()
        counts = rows[AT].value_counts(name="a").join(texts[AT].value_counts(name="b"), on=AT)
        check_size(float((counts["a"].cast(pl.Float64) * counts["b"]).sum()))
        rows = rows.join(texts, on=AT, maintain_order="left")
    return rows


def _lists(frame: pl.DataFrame) -> frozenset[str]:
    return frozenset(n for n, kind in frame.schema.items() if isinstance(kind, pl.List))


def _without_containers(
    frame: pl.DataFrame, mapping: RowMapping
) -> tuple[pl.DataFrame, list[Fault]]:
    """Returns the frame without values that are arrays or objects, and a fault for each."""
    faults: list[Fault] = []
    for name in mapping.needed_columns:
        kinds = kind_column(name)
        if kinds not in frame.columns:
            continue
        column = frame[kinds]
        is_list = isinstance(column.dtype, pl.List)
        is_container = column.list.contains(CONTAINER) if is_list else column == CONTAINER
        if not (rows := is_container.fill_null(False).arg_true().to_list()):
            continue
        what = f"{reference_of(name)} is an array or an object, not a value"
        faults += [Fault(row, what, "") for row in rows]
        value = pl.when(pl.col(kinds) != CONTAINER).then(column_of(name)).alias(name)
        if not is_list:
            frame = frame.with_columns(value)
            continue
        values = frame.select(AT_ROW, column_of(name).alias(name), pl.col(kinds))
        values = values.explode(name, kinds)
        lists = values.with_columns(value).group_by(AT).agg(column_of(name).alias(name), kinds)
        lists = frame.select(AT_ROW).join(lists, on=AT, how="left", maintain_order="left")
        frame = frame.with_columns(lists[name], lists[kinds])
    return frame, faults


def reference_of(column: str) -> str:
    """Returns a column as a mapping of RML names it.

    >>> reference_of("@.a"), reference_of("a"), reference_of("@id")
    ('$.a', 'a', '@id')
    """
    return f"${column[1:]}" if column[:2] in ("@", "@.", "@[") else column


# -- terms --


@frozen
class _Checked:
    """The text of a term, null if it is ill-formed, and why it could be."""

    term: Term
    text: pl.Expr
    unchecked: pl.Expr
    reason: str = ""


def _check_term(term: Term, columns: frozenset[str]) -> _Checked:
    text = _term_text(term, lambda part: _pieces(part, columns))
    if (check := _check_of(term)) is None:
        return _Checked(term, text, text)
    is_sound, reason = check
    return _Checked(term, pl.when(is_sound(text)).then(text), text, reason)


def _faults(table: pl.DataFrame, checked: _Checked) -> Iterator[Fault]:
    """Yields the ill-formed values of a term."""
    bad = checked.unchecked.is_not_null() & checked.text.is_null()
    faulty = table.select(column_of(AT), text=checked.unchecked, bad=bad).filter(pl.col("bad"))
    for row, text in zip(faulty[AT].to_list(), faulty["text"].to_list(), strict=True):
        yield Fault(row, checked.reason, text)


def _check_of(term: Term) -> tuple[Callable[[pl.Expr], pl.Expr], str] | None:
    """Returns the condition for a sound term, and what an ill-formed one is; None if each is
    sound.
    """
    hows = {part.how for part in term}
    last = term[-1].text if term[-1].how == "text" else ""
    typed = re.fullmatch(rf'"\^\^<{re.escape(XSD)}(\w+)>', last)
    if typed and typed[1] in LEXICAL:
        pattern = rf'^"(?:{LEXICAL[typed[1]]})"\^\^'
        return (lambda text: text.str.contains(pattern)), f"it is not a xsd:{typed[1]}"
    if "language" in hows:
        return (lambda text: text.str.contains(f'"@{LANGUAGE}$')), "its language tag is ill-formed"
    if term[0] == Part('"') and hows & {"whole", "iri_safe", "iri", "unsafe"}:
        return _is_typed, "it is not a literal of its datatype"
    if "unsafe" in hows:
        return (lambda text: text.str.contains(f"^{_UNSAFE_IRI}$")), "it is not an IRI"
    if "whole" in hows:
        return (lambda text: text.str.contains(f"^{_IRI}$")), "it is not an IRI"
    return None


def _is_typed(text: pl.Expr) -> pl.Expr:
    """Returns whether a literal with a datatype of the data is sound."""
    sound = text.str.contains(rf"\^\^{_IRI}$")
    for name, pattern in LEXICAL.items():
        other = ~text.str.ends_with(f'"^^<{XSD}{name}>')
        sound &= other | text.str.contains(rf'^"(?:{pattern})"\^\^')
    return sound


def _term_text(term: Term, pieces_of: Callable[[Part], Iterable[str | pl.Expr]]) -> pl.Expr:
    """Returns the text of a term of RML."""
    pieces: list[str | pl.Expr] = []
    for i, part in enumerate(term):
        if part.how == "base":  # the parts between it and the bracket are an IRI, maybe relative
            inner = [piece for each in term[i + 1 : -1] for piece in pieces_of(each)]
            value = pl.concat_str(*_merge_texts(inner))
            is_absolute = value.str.contains(_ABSOLUTE)
            pieces.append(pl.when(is_absolute).then(value).otherwise(pl.lit(part.text) + value))
            pieces.append(term[-1].text)
            break
        pieces += pieces_of(part)
    return pl.concat_str(*_merge_texts(pieces))


def _line(terms: Iterable[Iterable[str | pl.Expr]]) -> pl.Expr:
    pieces = [piece for term in terms for piece in (*term, " ")]
    return pl.concat_str(*_merge_texts([*pieces, ".\n"]))


def _merge_texts(pieces: Iterable[str | pl.Expr]) -> Iterator[pl.Expr]:
    """Yields the pieces of a line, neighbouring texts as one: a concatenation costs by piece."""
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if is_text:
            yield pl.lit("".join(map(str, group)))
        else:
            yield from (piece for piece in group if isinstance(piece, pl.Expr))


def _pieces(part: Part, columns: frozenset[str]) -> Iterator[str | pl.Expr]:
    """Yields the pieces of a part of a term of RML."""
    value = column_of(part.text)
    match part.how:
        case "text" | "base":
            yield part.text
        case "natural":
            yield from ('"', _escape(value), _datatype(part.text, columns))
        case "row":
            yield column_of(ROW_NUMBER).cast(pl.String)
        case "unsafe":
            yield value.str.replace_all(_NO_UNSAFE_IRI, "\x01")
        case "language":
            yield pl.when(value.str.contains("[^A-Za-z0-9-]")).then(pl.lit("?")).otherwise(value)
        case _:
            yield _notation(value, part)


def _datatype(name: str, columns: frozenset[str]) -> str | pl.Expr:
    """Returns what follows the text of a literal whose datatype is that of its value."""
    if kind_column(name) not in columns:
        return '"'
    kind, value = column_of(kind_column(name)), column_of(name)
    is_double = value.str.contains("[.eE]")
    number = pl.when(is_double).then(pl.lit(f'"^^<{XSD}double>'))
    return (
        pl.when(kind == NUMBER)
        .then(number.otherwise(pl.lit(f'"^^<{XSD}integer>')))
        .when(kind == BOOLEAN)
        .then(pl.lit(f'"^^<{XSD}boolean>'))
        .otherwise(pl.lit('"'))
    )


def _notation(value: pl.Expr, part: Part) -> pl.Expr:
    """Returns a text as its place writes it."""
    match part.how:
        # a blank keeps the IRI malformed, so that a value cannot inject triples
        case "whole":
            return value.str.replace_all(_NO_IRI, " ")
        case "iri":
            return _map_(value, _UNSAFE, lambda text: urllib.parse.quote(text, safe=""))
        case "iri_safe":
            return _map_(value, _NOT_IRI_SAFE, _quote_unreserved)
        case "label":
            return _map_(value, "[^A-Za-z0-9]", label_of)
        case "blank":
            return _map_(value, "[^A-Za-z0-9]", lambda text: "_" + text.encode().hex())
        case "raw":
            return value
        case _:
            return _escape(value)


def _quote_unreserved(text: str) -> str:
    """Percent-encodes a text; keeps letters beyond ASCII."""
    return re.sub(
        "[\x00-,/:-@\\[-^`{-}\x7f-\x9f\ue000-\uf8ff\U000f0000-\U0010ffff]",
        lambda match: urllib.parse.quote(match[0], safe=""),
        text,
    )


def _escape(value: pl.Expr) -> pl.Expr:
    def escape_all(series: pl.Series) -> pl.Series:
        if not series.str.contains(_ESCAPED).any():
            return series
        for raw, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            series = series.str.replace_all(raw, escape, literal=True)
        return series

    return value.map_batches(escape_all, return_dtype=pl.String)


def _map_(value: pl.Expr, odd: str, convert: Callable[[str], str]) -> pl.Expr:
    """Converts texts with odd characters, each distinct one by Python; returns the others
    unchanged.
    """

    def convert_all(series: pl.Series) -> pl.Series:
        marked = series.str.contains(odd).fill_null(False)
        if not marked.any():
            return series
        distinct = series.filter(marked).unique()
        made = pl.Series([convert(text) for text in distinct.to_list()], dtype=pl.String)
        return series.replace(distinct, made)

    return value.map_batches(convert_all, return_dtype=pl.String)


# -- native mappings --


@lru_cache(maxsize=16)
def _native_text(mapping: RowMapping) -> pl.Expr:
    """Returns the lines of a row; a triple with a missing value has none."""
    types = mapping.types()
    lines = []
    for triple in mapping.triples:
        parts = [part for term in triple for part in (*term, Part(" "))]
        pieces = (
            piece
            for part in (*parts, Part(".\n"))
            for piece in _native_pieces(part, types.get(part.text, ""))
        )
        lines.append(pl.concat_str(*_merge_texts(pieces)))
    return pl.concat_str(*lines, ignore_nulls=True)


def _native_pieces(part: Part, kind: str) -> Iterator[str | pl.Expr]:
    """Yields the pieces of a part: texts and values."""
    if part.how == "text":
        yield part.text
    elif part.how == "value":
        yield from ('"', _typed_value(part, kind), '"' if kind == "string" else f'"^^<{XSD}{kind}>')
    else:
        yield _typed_value(part, kind)


def _typed_value(part: Part, kind: str) -> pl.Expr:
    """Returns a value of a type as its place writes it."""
    value = _lexical(part.text, kind)
    if kind in ("integer", "boolean") and part.how != "blank":
        return value  # nothing in it is escaped
    if part.how in ("value", "literal") and kind != "string":
        return value
    return _notation(value, part)


def _lexical(name: str, kind: str) -> pl.Expr:
    """Returns a value's text: that of a string, else its XSD form, doubles as in tuples (2, not
    2.0).
    """
    value = column_of(name)
    if kind != "double":
        return value.cast(pl.String)
    special = {"inf": "INF", "-inf": "-INF"}
    return value.cast(pl.String).str.strip_suffix(".0").replace(special)
