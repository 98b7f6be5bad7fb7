"""``= != < > <= >=`` and sameTerm on columns (SPARQL 1.1, 17.3, 17.4.1.7, 17.4.1.8).

The two kinds of a block decide the comparison:

    numbers               in integers of one scale, or promoted to float or double; exact or left to
                          the general path
    two booleans, times   by their mantissa
    two strings           ``=`` by identity; ``<`` by the code points of their lexical forms
    IRIs and blank nodes  ``=`` by identity, ``<`` is an error
    different classes     ``=`` is false, ``<`` is an error
    a hard number         by its nearest double unless that is too close to decide
    anything with a hard time or a literal of another datatype: the general path
    (``operators.expressions.scalar.order``), but a number against another datatype is an error at
    once

Results are three-valued: 0 false, 1 true, 2 error. Cost: 1 to 3 ns a row for one kind, 10 to 20 for
mixed kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from levada.core.array_types import Bools, Bytes
from levada.core.expressions import Function
from levada.core.rdf_terms import Kind, Term
from levada.operators.expressions import lexical_forms, numeric
from levada.operators.expressions.numeric import EXACT, NUMBERS, Undecided
from levada.operators.expressions.row_blocks import ERROR, FALSE, Block, blocks, general_truth
from levada.operators.expressions.scalar import order as scalar
from levada.operators.expressions.term_values import Column, Identify, length

OPERATORS = (
    Function.EQUAL,
    Function.NOT_EQUAL,
    Function.LESS,
    Function.GREATER,
    Function.LESS_EQUAL,
    Function.GREATER_EQUAL,
)
_UFUNC: dict[Function, Callable[..., Bools]] = {
    Function.EQUAL: np.equal,
    Function.LESS: np.less,
    Function.GREATER: np.greater,
    Function.LESS_EQUAL: np.less_equal,
    Function.GREATER_EQUAL: np.greater_equal,
}
_NODES = (Kind.IRI, Kind.BLANK)
_STRINGS = (Kind.STRING, Kind.LANG)
_NUMERIC = (*NUMBERS, Kind.HARD_NUMBER)
_TIMES = (Kind.DATETIME, Kind.HARD_TIME)
_MANTISSA = (Kind.BOOLEAN, Kind.DATETIME)


def negate(truth: Bytes) -> Bytes:
    """``!`` of three-valued truth."""
    return np.array([1, 0, 2], np.uint8)[truth]


def compare(operator: Function, a: Column, b: Column, identify: Identify | None) -> Bytes:
    """The truth of ``a operator b`` in each row; unbound arguments are errors."""
    if operator is Function.NOT_EQUAL:
        return negate(compare(Function.EQUAL, a, b, identify))
    rule = _equal if operator is Function.EQUAL else _order
    out = np.full(length((a, b)), ERROR, np.uint8)
    for block in blocks(a, b):
        truth = rule(operator, block, identify)
        if block.rows is None:
            out[:] = truth
        else:
            out[block.rows] = truth
    return out


def _equal(operator: Function, block: Block, identify: Identify | None) -> Bytes | int:
    a, b = block.kinds
    if Kind.UNBOUND in (a, b):
        return ERROR
    if a in _NODES or b in _NODES:
        return _identical(block, identify).view(np.uint8) if a == b else FALSE
    if Kind.OTHER in (a, b):
        return _with_other(a if b == Kind.OTHER else b, block)
    if _class(a) != _class(b):
        return FALSE
    if a in _STRINGS:
        return _identical(block, identify).view(np.uint8) if a == b else FALSE
    return _by_value(operator, block)


def _with_other(kind: int, block: Block) -> Bytes | int:
    """Equality with a literal of another datatype."""
    if kind in _NUMERIC:
        return ERROR
    return FALSE if kind == Kind.LANG else general_truth(scalar.equal, block.columns, None)


def _class(kind: int) -> int:
    for i, kinds in enumerate((_STRINGS, _NUMERIC, _TIMES)):
        if kind in kinds:
            return i
    return kind + 10


def _order(operator: Function, block: Block, identify: Identify | None) -> Bytes | int:
    a, b = block.kinds
    if Kind.UNBOUND in (a, b) or a in _NODES or b in _NODES:
        return ERROR
    if Kind.OTHER in (a, b):
        return (
            ERROR
            if not {Kind.OTHER, *_TIMES}.issuperset((a, b))
            else _general_order(operator, block)
        )
    if _class(a) != _class(b):
        return ERROR
    if a == b == Kind.STRING:
        return _by_lexical(operator, *block.columns)
    return _general_order(operator, block) if a in _STRINGS else _by_value(operator, block)


def _by_lexical(operator: Function, a: Column, b: Column) -> Bytes:
    x, y = lexical_forms.lexicals(a.texts()), lexical_forms.lexicals(b.texts())
    if len(x) == 1:
        x = x.new_from_index(0, len(y))
    ordered = {
        Function.LESS: x.__lt__,
        Function.GREATER: x.__gt__,
        Function.LESS_EQUAL: x.__le__,
        Function.GREATER_EQUAL: x.__ge__,
    }
    return ordered[operator](y).to_numpy().astype(np.uint8)


def _by_value(operator: Function, block: Block) -> Bytes:
    """Two numbers, booleans or times: vectorised where facets decide, else by the general path."""
    operands = comparable_operands(block)
    if operands is None:
        return _general_order(operator, block)
    left, right, undecided = operands
    out = np.asarray(_UFUNC[operator](left, right)).view(np.uint8)
    if undecided is not None:
        n = length(block.columns)
        rows = np.flatnonzero(np.broadcast_to(undecided, n))
        out = np.broadcast_to(out, n).copy()
        out[rows] = general_truth(_SCALAR[operator], block.columns, rows)
    return out


def comparable_operands(block: Block) -> tuple[Any, Any, Undecided] | None:
    """A block of two numbers, booleans or times as two arrays that compare as they do, and the rows
    undecided.
    """
    (a, b), (left, right) = block.kinds, block.columns
    if a == b and (a in _MANTISSA or a == Kind.INTEGER):
        return left.values()[2], right.values()[2], None
    if a in EXACT and b in EXACT:
        x, y, _, undecided = numeric.align(left, right)
        return x, y, undecided
    if a in NUMBERS and b in NUMBERS:
        target = numeric.wider_kind(a, b)
        v, lost = numeric.floats(left, a, target)
        w, too = numeric.floats(right, b, target)
        return v, w, numeric.either_undecided(lost, too)
    if {a, b} <= {*NUMBERS, Kind.HARD_NUMBER}:
        return _nearest_doubles(
            left, right, numeric.wider_kind(a, b) if Kind.FLOAT in (a, b) else Kind.DOUBLE
        )
    return None


def _nearest_doubles(a: Column, b: Column, target: Kind) -> tuple[Any, Any, Undecided]:
    """Compares numbers, some of them hard, by their nearest doubles; undecided where these are too
    close.
    """
    (x, lost), (y, too) = numeric.nearest_doubles(a), numeric.nearest_doubles(b)
    close = 1e-6 if target == Kind.FLOAT else 1e-14
    with np.errstate(invalid="ignore"):
        undecided = ~(np.abs(x - y) > close * np.maximum(np.abs(x), np.abs(y)))
    return x, y, undecided | lost | too


def _general_order(operator: Function, block: Block) -> Bytes:
    return general_truth(_SCALAR[operator], block.columns, None)


def _decide(accept: tuple[int, ...]) -> Callable[[Term, Term], bool]:
    return lambda a, b: scalar.order(a, b) in accept


_SCALAR: dict[Function, Callable[[Term, Term], bool]] = {
    Function.EQUAL: scalar.equal,
    Function.LESS: _decide((-1,)),
    Function.GREATER: _decide((1,)),
    Function.LESS_EQUAL: _decide((-1, 0)),
    Function.GREATER_EQUAL: _decide((1, 0)),
}


def _identical(block: Block, identify: Identify | None) -> Bools:
    a, b = block.columns
    return identical(a, b, identify)


def identical(a: Column, b: Column, identify: Identify | None) -> Bools:
    """Whether two columns have the same term in each row, by identities, else texts."""
    if a.x is None and b.x is None:
        same = a.texts().__eq__(b.texts()) if a.n >= b.n else b.texts().__eq__(a.texts())
        return same.fill_null(False).to_numpy()
    assert identify is not None, "a comparison of terms by identity needs the hash of texts"
    (ax, ay), (bx, by) = a.identify(identify), b.identify(identify)
    return np.asarray((ax == bx) & (ay == by))


def same_term(a: Column, b: Column, identify: Identify | None) -> Bytes:
    """``sameTerm``."""
    truth = identical(a, b, identify).astype(np.uint8)
    truth[~(a.bound() & b.bound())] = ERROR
    return truth
