"""Prints the stable text form of a query's operators, for ``explain --stage physical``.

Each operator is a line, with its inputs below it. An exchange is printed before the input that it
moves. A flag that is set is printed by its name:

    (emit) -> (?room ?t) stage 2
      (rorder (asc ?room) 0) -> (?room ?t) stage 2
        exchange by operator
        (report) -> (?room ?t) stage 1
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, get_args

from levada.core import expressions
from levada.core.rdf_terms import Term
from levada.plan.lowering.rdf_merge import PLACES
from levada.plan.physical.operators import (
    Applied,
    Entailed,
    Extend,
    Filter,
    Match,
    Op,
    Rename,
    Scan,
)
from levada.plan.physical.partitioning import ALL_PARTITIONS

_TERMS = get_args(Term)
_EXPRESSIONS = get_args(expressions.Expression)
_PLACE = re.compile(r"<\.\.\d>|(?<=[?( ])\.\d(?=[ )]|$)")  # of a term, of a variable
_SIDES = ("left", "right")
_LONG_LISTS = ("alternatives", "alike")  # lists of possibly thousands of elements


def show_operators(root: Op) -> str:
    """Returns the text form of a tree of operators."""
    return "\n".join(operator_lines(root))


def operator_lines(op: Op, depth: int = 0) -> Iterator[str]:
    """Returns the lines of an operator and its inputs, indented."""
    if isinstance(op.spec, Applied):
        yield from _apply(op, op.spec.terms, depth)
        return
    details = [_detail(part.name, getattr(op.spec, part.name)) for part in fields(op.spec)]
    head = " ".join([type(op.spec).__name__.lower(), *filter(None, details)])
    names = _word(tuple(expressions.Var(name) for name in op.variables))
    yield f"{'  ' * depth}({head}) -> {names} stage {op.stage}"
    for i, child in enumerate(op.inputs):
        by = op.exchange[i] if i < len(op.exchange) else None
        if by is not None:
            keys = " ".join(f"?{name}" for name in by if name) or "operator"
            way = "to all" if by == ALL_PARTITIONS else f"by {keys}"
            yield f"{'  ' * (depth + 1)}exchange {way}"
        yield from operator_lines(child, depth + 1)


def show_part(op: Op) -> str:
    """Returns a short text of a part of a conjunction: its pattern or stream."""
    while op.inputs and isinstance(op.spec, Filter | Extend | Rename):
        op = op.inputs[0]
    match op.spec:
        case Match(pattern) | Entailed(pattern):
            return " ".join(map(_word, pattern.positions))
        case Scan(stream):
            return stream
        case spec:
            return f"{type(spec).__name__} of {' '.join(f'?{v}' for v in op.variables)}"


def _apply(op: Op, terms: tuple[Term, ...], depth: int) -> Iterator[str]:
    """Returns the lines of a tree of operators with the names and terms to which it is applied."""
    (tree,) = op.inputs
    called = {f"<{place.value}>": str(term) for place, term in zip(PLACES, terms, strict=False)}
    called |= dict(zip(tree.variables, op.variables, strict=True))
    for line in operator_lines(tree, depth):
        yield _PLACE.sub(lambda m: called[m.group()], line)


def _detail(name: str, value: Any) -> str:
    """Returns the text of an operator's field: the name of a flag, or the length of a long list.

    The stage ``optimized`` shows the elements of such lists.
    """
    if value is True:
        return name
    if value and isinstance(value, tuple) and all(isinstance(side, bool) for side in value):
        sides = _SIDES if len(value) == len(_SIDES) else tuple(map(str, range(len(value))))
        sides = tuple([side for side, is_set in zip(sides, value, strict=True) if is_set])
        return " ".join([name, *sides]) if sides else ""
    if name in _LONG_LISTS:
        return f"{len(value)} {name}" if value else ""
    return _word(value)


def _word(value: Any) -> str:
    """Returns a value as text; an absent value is empty."""
    if value is None or value is False or value == ():
        return ""
    if isinstance(value, _EXPRESSIONS):
        return expressions.show(value)
    if isinstance(value, _TERMS):
        return str(value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], bool):
        return f"{'desc' if value[1] else 'asc'} {_word(value[0])}"
    if isinstance(value, (tuple, frozenset)):
        return "(" + " ".join(_word(item) or "-" for item in value) + ")"
    if isinstance(value, Enum):
        return str(value.value)
    if is_dataclass(value):
        parts = (_detail(part.name, getattr(value, part.name)) for part in fields(value))
        return "(" + " ".join(filter(None, parts)) + ")"
    return str(value)
