"""Three-valued logic and the functional forms: ``&& || !``, EBV, BOUND, IN, IF, COALESCE, isX
(SPARQL 1.1, 17.2, 17.4.1).

Truth is uint8: 0 false, 1 true, 2 error. The tables of 17.2: ``true || error`` is true, ``false &&
error`` is false, every other combination with an error is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core.array_types import Bytes
from levada.core.expressions import Function
from levada.core.rdf_terms import Kind
from levada.core.size_thresholds import register
from levada.operators.expressions import comparison
from levada.operators.expressions.row_blocks import (
    ERROR,
    FALSE,
    TRUE,
    Block,
    Result,
    blocks,
    general_truth,
)
from levada.operators.expressions.scalar.order import effective_boolean
from levada.operators.expressions.term_values import (
    Column,
    Identify,
    choose,
    gather,
    length,
    stack,
)

_AND = np.array([[0, 0, 0], [0, 1, 2], [0, 2, 2]], np.uint8).reshape(-1)
_OR = np.array([[0, 1, 2], [1, 1, 1], [2, 1, 2]], np.uint8).reshape(-1)
_RANK = np.array([0, 2, 1], np.uint8)
"""The order of truths in which ``||`` is the maximum. The table is its own inverse."""
MAX_STACKED_ROWS = register(f"{__name__}.MAX_STACKED_ROWS", 1 << 13)
"""Rows that ``IN`` compares with several members at once, counted once for each."""
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE, Kind.HARD_NUMBER)
_KINDS: dict[Function, tuple[Kind, ...]] = {
    Function.IS_IRI: (Kind.IRI,),
    Function.IS_BLANK: (Kind.BLANK,),
    Function.IS_LITERAL: tuple(k for k in Kind if k not in (Kind.UNBOUND, Kind.IRI, Kind.BLANK)),
    Function.IS_NUMERIC: _NUMBERS,
}
TESTS = tuple(_KINDS)


def logical_and(a: Bytes, b: Bytes) -> Bytes:
    """``&&``.

    >>> logical_and(np.array([0, 1], np.uint8), np.array([2, 2], np.uint8)).tolist()
    [0, 2]
    """
    return np.asarray(_AND[a * 3 + b])


def logical_or(a: Bytes, b: Bytes) -> Bytes:
    """``||``."""
    return np.asarray(_OR[a * 3 + b])


def column_of(truth: Bytes) -> Column:
    """Truth as a column of xsd:boolean, unbound where it is an error."""
    kind = np.where(truth == ERROR, Kind.UNBOUND, Kind.BOOLEAN).astype(np.uint8)
    man = (truth == TRUE).astype(np.int64)
    return Column(
        len(truth), None, None, kind, np.zeros(len(truth)), man, np.zeros(len(truth), np.uint8)
    )


def effective(column: Column) -> Bytes:
    """The effective boolean value of each row (17.2.2)."""
    out = np.full(column.n, ERROR, np.uint8)
    for block in blocks(column):
        out[slice(None) if block.rows is None else block.rows] = _effective(block)
    return out


def _effective(block: Block) -> Bytes | int:
    (kind,), (column,) = block.kinds, block.columns
    if kind in (Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL):
        return np.asarray(column.values()[2] != 0).view(np.uint8)
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        dbl = column.values()[1]
        return np.asarray((dbl != 0) & ~np.isnan(dbl)).view(np.uint8)
    if kind == Kind.STRING:
        return column.texts().__ne__('""').to_numpy().astype(np.uint8)
    if kind in (Kind.LANG, Kind.HARD_NUMBER, Kind.OTHER):
        return general_truth(effective_boolean, (column,), None)
    return ERROR


def test(function: Function, column: Column) -> Bytes:
    """isIRI, isBLANK, isLITERAL, isNUMERIC; an error where unbound."""
    table = np.full(256, FALSE, np.uint8)
    table[list(_KINDS[function])] = TRUE
    table[Kind.UNBOUND] = ERROR
    return table[column.kinds()]


def bind(column: Column) -> Bytes:
    """``BOUND``."""
    return column.bound().astype(np.uint8)


def is_in(value: Column, members: Sequence[Column], identify: Identify | None) -> Bytes:
    """``IN``: ``=`` to one of the members, joined by ``||``."""
    truths = np.where(value.bound(), FALSE, ERROR).astype(np.uint8)
    n = length((value, *members))
    size = max(MAX_STACKED_ROWS // max(n, 1), 1)
    for at in range(0, len(members), size):
        truths = logical_or(truths, _equal_one(value, members[at : at + size], n, identify))
    return truths


def _equal_one(
    value: Column, members: Sequence[Column], n: int, identify: Identify | None
) -> Bytes:
    """``=`` to one of the members, by one comparison of each row with each member."""
    if len(members) == 1:
        return comparison.compare(Function.EQUAL, value, members[0], identify)
    stacked = stack(members, n, identify if value.x is not None else None)
    value = gather(value, np.tile(np.arange(n), len(members)))
    truths = comparison.compare(Function.EQUAL, value, stacked, identify)
    return np.asarray(_RANK[_RANK[truths].reshape(len(members), n).max(axis=0)])


def branch(condition: Bytes, yes: Column, no: Column) -> Column:
    """``IF``: an error (unbound) where the condition is one."""
    n = next((m for m in (len(condition), yes.n, no.n) if m != 1), 1)
    which = np.array([1, 0, -1], np.int8)[np.broadcast_to(condition, n)]
    return choose(which, (yes, no))


def coalesce(columns: Sequence[Column]) -> Column:
    """``COALESCE``: the first argument that has a value."""
    if not columns:
        return Result(1).column()
    which = np.full(length(columns), -1, np.int8)
    for i, column in enumerate(columns):
        which[(which < 0) & column.bound()] = i
    return choose(which, columns)
