"""The order of ORDER BY, MIN and MAX as ranks (SPARQL 1.1, 15.1 and 18.5.1.5).

Unbound < blank nodes < IRIs < literals. Among literals numbers are first, then booleans, then
dates, times and durations (each type apart), then strings and all other literals by lexical form
(code points), datatype and language. Numbers compare by value: as doubles, and where more than 15
digits make doubles too coarse by the rest, of any length; NaN is below all numbers. Values that
SPARQL's order does not distinguish have equal ranks, so 1 and 1.0 tie.

A row's key is (class, number, rest, text, tail). All numeric columns need one sort of a float64
column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core.array_types import Bytes, Doubles, Longs
from levada.core.rdf_terms import MOST_CHARACTERS, STRING, Blank, Iri, Kind, Literal, Term
from levada.operators.expressions import lexical_forms
from levada.operators.expressions.row_blocks import blocks, combinations
from levada.operators.expressions.scalar import times
from levada.operators.expressions.scalar.literals import Text, value_of
from levada.operators.expressions.scalar.numbers import EXACT, double
from levada.operators.expressions.term_values import Column

_UNBOUND, _BLANK, _IRI, _NUMBER, _BOOLEAN, _TIME = range(6)
_DURATION = _TIME + len(times.TYPES)
_TEXT = _DURATION + 1
_EXACT_AS_DOUBLE = 10**15
_GREATEST = float(np.finfo(np.float64).max)
_BELOW_ALL = Decimal(-(10 ** (MOST_CHARACTERS + 1)))
_MS = times.SECOND // 1000
_EPOCH = times.days_before(1970, 1, 1) * times.DAY
_Key = tuple[int, float, float, str, str]
_INTEGER, _DOUBLE = int(Kind.INTEGER), int(Kind.DOUBLE)


@dataclass
class _Keys:
    """The keys of n rows; the texts only of rows of the classes that have them."""

    cls: Bytes
    number: Doubles
    rest: Doubles
    text: list[tuple[Longs, pl.Series]]
    tail: list[tuple[Longs, pl.Series]]


def compare_rank(column: Column) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Returns a number for each row, ordered as SPARQL orders their terms: for MIN, MAX and
    sorting.

    Equal numbers are equal in order. Unbound rows are first. The result is int64, or float64 for
    columns of plain numbers.
    """
    kinds = column.kinds()
    if (kinds == _INTEGER).all():
        return column.values()[2]
    if (kinds == _DOUBLE).all() and not np.isnan(column.values()[1]).any():
        return column.values()[1]
    return _dense(_keys(column))


def order_rank(columns: Sequence[Column], descending: Sequence[bool]) -> Longs:
    """The dense rank (from 0) of each row by several keys, each ascending or descending; equal
    ranks are ties.
    """
    assert columns, "an order has at least one key"
    n = max(c.n for c in columns)
    rank = np.zeros(n, np.int64)
    for column, down in zip(columns, descending, strict=True):
        column_rank = np.unique(compare_rank(column), return_inverse=True)[1].astype(np.int64)
        if down:
            column_rank = column_rank.max(initial=0) - column_rank
        rank = np.unique(
            rank * (column_rank.max(initial=0) + 1) + column_rank, return_inverse=True
        )[1].astype(np.int64)
    return rank


def order_rows(
    columns: Sequence[Column], descending: Sequence[bool], tiebreak_texts: Sequence[pl.Series]
) -> Longs:
    """The positions of the rows in order; ties by the texts (null first, by code points), then by
    position.
    """
    rank = order_rank(columns, descending)
    texts = [t.alias(f"t{i}") for i, t in enumerate(tiebreak_texts)]
    frame = pl.DataFrame([pl.Series("rank", rank), *texts]).with_row_index("row")
    names = ["rank", *(t.name for t in texts)]
    return (
        frame.sort(names, nulls_last=False, maintain_order=True)["row"].to_numpy().astype(np.int64)
    )


def _keys(column: Column) -> _Keys:
    n = column.n
    keys = _Keys(np.zeros(n, np.uint8), np.zeros(n), np.zeros(n), [], [])
    for block in blocks(column):
        kind = Kind(block.kinds[0])
        rows = np.arange(n) if block.rows is None else block.rows
        if not _plain(kind, block.columns[0], rows, keys):
            _by_terms(block.columns[0], rows, keys)
    return keys


def _plain(kind: Kind, column: Column, rows: Longs, keys: _Keys) -> bool:
    """Writes the keys of a block from its facets or texts. Returns False if its terms must be
    read.
    """
    match kind:
        case Kind.UNBOUND:
            return True
        case Kind.IRI | Kind.BLANK:
            keys.cls[rows] = _IRI if kind == Kind.IRI else _BLANK
            keys.text.append((rows, column.texts().str.strip_prefix("<").str.strip_suffix(">")))
        case Kind.STRING:
            keys.cls[rows] = _TEXT
            keys.text.append((rows, lexical_forms.lexicals(column.texts())))
            keys.tail.append((rows, pl.Series([STRING]).new_from_index(0, len(rows))))
        case Kind.BOOLEAN | Kind.DATETIME:
            keys.cls[rows] = _BOOLEAN if kind == Kind.BOOLEAN else _TIME
            keys.number[rows] = column.values()[2]
        case Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT | Kind.DOUBLE:
            return _numbers(kind, column, rows, keys)
        case _:
            return False
    return True


def _numbers(kind: Kind, column: Column, rows: Longs, keys: _Keys) -> bool:
    _, dbl, man, scale = column.values()
    if kind in (Kind.INTEGER, Kind.DECIMAL):
        if (np.abs(man) >= _EXACT_AS_DOUBLE).any():
            return False
        keys.number[rows] = man / 10.0 ** scale.astype(np.float64)
    else:
        value = dbl.astype(np.float32) if kind == Kind.FLOAT else dbl
        keys.number[rows] = np.where(np.isnan(dbl), -np.inf, value)
        keys.rest[rows] = np.where(np.isnan(dbl), -1.0, 0.0)
    keys.cls[rows] = _NUMBER
    return True


def _by_terms(column: Column, rows: Longs, keys: _Keys) -> None:
    """The keys of a block from its distinct terms."""
    codes, distinct = combinations((column,), None)
    term_keys = [_key(term) for (term,) in distinct]
    cls, number, rest, text, tail = zip(*term_keys, strict=True)
    keys.cls[rows] = np.array(cls, np.uint8)[codes]
    keys.number[rows] = np.array(number)[codes]
    keys.rest[rows] = np.array(rest)[codes]
    keys.text.append((rows, pl.Series(text, dtype=pl.String).gather(codes)))
    keys.tail.append((rows, pl.Series(tail, dtype=pl.String).gather(codes)))


def _key(term: Term | None) -> _Key:
    """The key of one term: the oracle of ``_plain``."""
    if not isinstance(term, Literal):
        cls = _UNBOUND if term is None else _BLANK if isinstance(term, Blank) else _IRI
        text = "" if term is None else term.value if isinstance(term, Iri) else str(term)
        return cls, 0.0, 0.0, text, ""
    match value_of(term):
        case bool(flag):
            return _BOOLEAN, float(flag), 0.0, "", ""
        case int() | Decimal() | float() as number:
            return (_NUMBER, *_number_key(number), "")
        case times.Timestamp() as stamp:
            ms, finer = divmod(stamp.instant - _EPOCH, _MS)
            return _TIME + times.TYPES.index(stamp.datatype), float(ms), float(finer), "", ""
        case times.Duration() as duration:
            return (
                _DURATION,
                duration.months * 30.436875 * 86400 + duration.time / times.SECOND,
                0.0,
                "",
                "",
            )
        case Text(lexical, language):
            return _TEXT, 0.0, 0.0, lexical, f"{term.datatype}@{language}" if language else STRING
        case _:
            return _TEXT, 0.0, 0.0, term.lexical, term.datatype


def _number_key(number: int | Decimal | float) -> tuple[float, float, str]:
    """Returns (nearest double, the rest above that double, the rest beyond a double). NaN is below
    minus infinity, and the rest distinguishes the two.
    """
    if number != number:
        return -np.inf, -1.0, ""
    value = double(number)
    if isinstance(number, float):
        return value, 0.0, ""
    value = min(max(value, -_GREATEST), _GREATEST)
    more = EXACT.subtract(Decimal(number), _middle(value))
    rest = _greatest_double_below(more)
    least = _BELOW_ALL if rest == -np.inf else Decimal(rest)
    return value, rest, _order_preserving_text(EXACT.subtract(more, least))


def _middle(value: float) -> Decimal:
    """Returns the number with this nearest double that equals it for SPARQL, the one of at most 15
    digits, if it exists.
    """
    short = Decimal(format(value, ".15g"))
    return short if double(short) == value else Decimal(value)


def _greatest_double_below(number: Decimal) -> float:
    """The greatest double that is not greater."""
    near = min(double(number), _GREATEST)
    return (
        near if near == -np.inf or Decimal(near) <= number else float(np.nextafter(near, -np.inf))
    )


def _order_preserving_text(number: Decimal) -> str:
    """A number from 0 on as characters that are ordered as numbers are; 0 is "".

    >>> nine, more, ten = map(_order_preserving_text, (Decimal(9), Decimal("9.5"), Decimal(10)))
    >>> nine < more < ten
    True
    """
    whole, _, fraction = format(number, "f").partition(".")
    return f"{len(whole):04}{whole}.{fraction.rstrip('0')}" if number else ""


def _dense(keys: _Keys) -> Longs:
    """The dense rank of keys: the texts are ranked first, then all parts are numbers."""
    n = len(keys.cls)
    parts: list[npt.NDArray[Any]] = [keys.cls, keys.number, keys.rest]
    parts += [_text_rank(n, texts) for texts in (keys.text, keys.tail) if texts]
    varying = [p for p in parts if n and not (p == p[0]).all()]
    if len(varying) <= 1:
        return np.unique(varying[0] if varying else np.zeros(n), return_inverse=True)[1].astype(
            np.int64
        )
    order = np.lexsort(varying[::-1])
    steps = np.zeros(n, np.int64)
    for part in varying:
        steps[1:] |= part[order[1:]] != part[order[:-1]]
    rank = np.empty(n, np.int64)
    rank[order] = np.cumsum(steps)
    return rank


def _text_rank(n: int, parts: list[tuple[Longs, pl.Series]]) -> npt.NDArray[Any]:
    """Returns the rank by code points of the texts of some rows; 0 for a missing or empty text (as
    numeric terms have).
    """
    rows = np.concatenate([rows for rows, _ in parts])
    texts = pl.concat([texts for _, texts in parts])
    out = np.zeros(n, np.uint32)
    out[rows] = np.where((texts == "").to_numpy(), 0, texts.rank("dense").to_numpy())
    return out
