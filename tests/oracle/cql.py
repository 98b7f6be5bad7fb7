"""CQL: relations of rows as structures, their texts and their results. Rows are bags; what has no
value is None, and comparisons with it have none (SQL's three values).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import fsum
from typing import TypeAlias

from oracle.looks import content, differences, instants
from oracle.queries import Window
from oracle.reports import Frozen, Report, bag
from oracle.solve import frozen
from oracle.terms import number, string
from oracle.windows import Clock, stays

SCHEMAS: dict[str, dict[str, str]] = {
    "A": {"k": "integer", "v": "double", "s": "string"},
    "B": {"k": "integer", "w": "integer", "s": "string"},
}
Value: TypeAlias = int | float | str | None
Row = dict[str, Value]


@dataclass(frozen=True)
class Of:
    """A function, operator or aggregate; a column (``col``, its name), a constant (``is``)."""

    op: str
    args: tuple[Of, ...] = ()
    of: Value = None


@dataclass(frozen=True)
class Choice:
    """Select .. From .. Where .. Group By .. Having."""

    tables: tuple[tuple[str, Window], ...]  # by their aliases
    items: tuple[tuple[str, Of], ...]
    where: Of | None = None
    group: tuple[str, ...] = ()
    having: Of | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Relation:
    """One Select, or two by Union or Except. ``output``: BOTH, ISTREAM, DSTREAM, RSTREAM."""

    name: str
    choices: tuple[Choice, ...]
    by: str = "Union"
    output: str = "BOTH"
    policy: str | int = "close"
    nonempty: bool = False
    empty: bool = False
    t0: int | None = None
    bounds: str = "[)"
    until: int | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(w.stream for c in self.choices for _, w in c.tables))


def relation_text(query: Relation) -> str:
    """The text of a query."""
    body = f" {query.by} ".join(_choice(c) for c in query.choices)
    return body if query.output == "BOTH" else f"{query.output.capitalize()}({body})"


def _choice(one: Choice) -> str:
    items = ", ".join(f"{_text(of)} As {name}" for name, of in one.items)
    tables = ", ".join(f"{w.stream} [{_brackets(w)}] As {alias}" for alias, w in one.tables)
    found = f"Select {'Distinct ' if one.distinct else ''}{items} From {tables}"
    if one.where is not None:
        found += f" Where {_text(one.where)}"
    if one.group:
        found += f" Group By {', '.join(one.group)}"
    return found if one.having is None else f"{found} Having {_text(one.having)}"


def _brackets(window: Window) -> str:
    return {
        "step": f"Range {window.a} ms Slide {window.b} ms", "range": f"Range {window.a} ms",
        "now": "Now", "all": "Range Unbounded", "rows": f"Rows {window.n}",
        "by": f"Partition By {window.key} Rows {window.n}",
    }[window.kind]  # fmt: skip


def _text(of: Of) -> str:
    args = [_text(a) for a in of.args]
    if of.op in ("col", "is"):
        quoted = isinstance(of.of, str) and of.op == "is"
        return f"'{of.of}'" if quoted else str(of.of)
    if of.op == "count*":
        return "Count(*)"
    if of.op in AGGREGATES:
        return f"{of.op.capitalize()}({args[0]})"
    if of.op == "not":
        return f"(Not {args[0]})"
    if of.op in ("in", "not in"):
        return f"({args[0]} {of.op} ({', '.join(args[1:])}))"
    if of.op in ("between", "not between"):
        return f"({args[0]} {of.op} {args[1]} And {args[2]})"
    return "(" + f" {of.op} ".join(args) + ")"


def relation_reports(
    query: Relation, said: Mapping[str, Sequence[tuple[int, object]]]
) -> dict[int, Report]:
    """The reports of a query that say something."""
    clock = Clock(query.t0, query.bounds, query.policy)
    windows = [w for c in query.choices for _, w in c.tables]
    held = [(w, stays(w, said[w.stream], clock)) for w in windows]
    times = sorted({ts for stream in query.streams for ts, _ in said[stream]})
    results: list[tuple[int, list[Frozen]]] = []
    for at in instants(held, clock, times):
        if query.until is not None and at > query.until:
            break
        now = [[dict(r) for r in content(own, at)] for _, own in held]  # type: ignore[call-overload]
        if any(now):
            results.append((at, [_frozen(row) for row in _result(query, now)]))
        elif not query.nonempty:
            results.append((at, []))
    found = {}
    for at, new, old in differences(results, query.output):
        rows = old if query.output == "DSTREAM" else new
        found[at] = Report(bag(rows), bag(old) if query.output == "BOTH" else frozenset())
    return {at: r for at, r in found.items() if not r.empty}


def _result(query: Relation, held: Sequence[list[Row]]) -> list[Row]:
    first = len(query.choices[0].tables)
    left = _chosen(query.choices[0], held[:first], any(held))
    if len(query.choices) == 1:
        return left
    right = _chosen(query.choices[1], held[first:], any(held))
    names = [name for name, _ in query.choices[0].items]
    right = [dict(zip(names, row.values(), strict=True)) for row in right]
    if query.by == "Union":
        return left + right
    taken, found = Counter(tuple(row.values()) for row in right), []
    for row in left:
        if taken[tuple(row.values())]:
            taken[tuple(row.values())] -= 1
        else:
            found.append(row)
    return found


def _chosen(one: Choice, held: Sequence[list[Row]], there: bool) -> list[Row]:
    """``there``: whether something that the query names holds something."""
    rows = [
        {f"{alias}.{c}": v for (alias, _), own in zip(one.tables, each, strict=True)
         for c, v in own.items()}
        for each in product(*held)
    ]  # fmt: skip
    rows = [row for row in rows if one.where is None or _value(one.where, row) is True]
    if one.group or any(_aggregated(of) for _, of in one.items):
        found = _groups(one, rows) if there else []
    else:
        found = [{name: _value(of, row) for name, of in one.items} for row in rows]
    if one.distinct:
        found = [dict(t) for t in dict.fromkeys(tuple(row.items()) for row in found)]
    return found


def _groups(one: Choice, rows: list[Row]) -> list[Row]:
    groups: dict[tuple[Value, ...], list[Row]] = {} if one.group else {(): []}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in one.group), []).append(row)
    return [
        {name: _over(of, members) for name, of in one.items}
        for members in groups.values()
        if one.having is None or _over(one.having, members) is True
    ]


def _sum(own: list[Value]) -> int | float | None:
    """Of doubles it is rounded once; of integers one beyond 64 bits has no value."""
    if any(isinstance(v, float) for v in own):
        return fsum(own)  # type: ignore[arg-type]
    return _within(sum(own))  # type: ignore[arg-type]


def _within(of: int) -> int | None:
    return of if -(2**63) <= of < 2**63 else None


AGGREGATES: dict[str, Callable[[list[Value]], Value]] = {
    "count": lambda own: len([v for v in own if v is not None]),
    "sum": lambda own: None if None in own else _sum(own),
    "avg": lambda own: None if None in own else float(_sum(own) or 0) / len(own),
    "min": lambda own: None if None in own else min(own),  # type: ignore[type-var]
    "max": lambda own: None if None in own else max(own),  # type: ignore[type-var]
}


def _aggregated(of: Of) -> bool:
    return of.op == "count*" or of.op in AGGREGATES or any(_aggregated(a) for a in of.args)


def _over(of: Of, rows: list[Row]) -> Value:
    """An expression over the rows of a group."""
    if of.op == "count*":
        return len(rows)
    if of.op in AGGREGATES:
        return AGGREGATES[of.op]([_value(of.args[0], row) for row in rows])
    if _aggregated(of):
        args = tuple(Of("is", of=_over(a, rows)) for a in of.args)
        return _value(Of(of.op, args), {})
    return _value(of, rows[0])


def _value(of: Of, row: Row) -> Value:
    """An expression over a row."""
    if of.op == "col":
        return row[str(of.of)]
    if of.op == "is":
        return of.of
    args = [_value(a, row) for a in of.args]
    if of.op in ("and", "or"):
        decides = of.op == "or"
        return decides if decides in args else None if None in args else not decides
    if of.op in ("in", "not in"):
        found = [_compared("=", args[0], a) for a in args[1:]]
        inside = True if True in found else None if None in found else False
        return inside if of.op == "in" or inside is None else not inside
    if of.op in ("between", "not between"):
        both = Of("and", (Of("is", of=_compared(">=", args[0], args[1])),
                          Of("is", of=_compared("<=", args[0], args[2]))))  # fmt: skip
        inside = _value(both, row)  # type: ignore[assignment]
        return inside if of.op == "between" or inside is None else not inside
    if None in args:
        return None
    if of.op == "not":
        return not args[0]
    return _compared(of.op, *args)


def _compared(op: str, left: Value, right: Value) -> Value:
    """Comparisons and sums; a double beside an integer makes it a double."""
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    found = OPERATORS[op](left, right)
    return found if isinstance(found, bool | float | str | None) else _within(found)


OPERATORS: dict[str, Callable[..., Value]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip


def _frozen(row: Row) -> Frozen:
    return frozen({f"?{n}": _term(v) for n, v in row.items() if v is not None})


def _term(value: Value) -> str:
    if isinstance(value, str):
        return string(value)
    assert value is not None
    return number("double" if isinstance(value, float) else "integer", Fraction(value))
