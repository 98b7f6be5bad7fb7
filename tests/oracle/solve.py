"""The solutions of a group over what windows and static graphs hold at one instant: SPARQL 1.1's
algebra (18.2 to 18.5), by loops over bags.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from oracle.expressions import Solution, aggregated, evaluate, holds
from oracle.queries import (
    Bind,
    Exists,
    Filter,
    Group,
    In,
    Item,
    Minus,
    Optional,
    Part,
    Select,
    Sub,
    Triple,
    Union,
    Values,
)
from oracle.terms import RANKS, BadError, normal, rank, value
from oracle.times import Time

Three = tuple[str, str, str]


@dataclass(frozen=True)
class Data:
    """What is read: the graph of patterns that stand outside, and those of windows and names.
    ``merged``: windows are no graphs, but part of that one.
    """

    default: Collection[Three]
    named: Mapping[str, Collection[Three]]
    merged: bool = False

    def graph(self, name: str) -> Collection[Three]:
        if self.merged and not name.startswith("<"):
            return self.default
        return self.named.get(name, ())


def solutions(select: Select, data: Data) -> list[dict[str, str]]:
    """What a SELECT shows, in its order."""
    rows = group(select.parts, data, data.default, {})
    return shown(select, rows)


def shown(select: Select, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Grouping, expressions, order, projection, DISTINCT, LIMIT."""
    rows = _grouped(select, rows) if select.aggregated else [_extended(select, r) for r in rows]
    names = [i.name for i in select.items]
    rows = [{n: row[n] for n in names if n in row} for row in rows]
    if select.distinct:
        rows = [dict(t) for t in dict.fromkeys(tuple(r.items()) for r in rows)]
    if select.order:
        rows.sort(key=lambda row: [row.get(n, "") for n in names])  # ties: by texts
        for name, down in reversed(select.order):
            rows.sort(key=lambda row: rank(row.get(name)), reverse=down)
    return rows if select.limit is None else rows[: select.limit]


def _extended(select: Select, row: dict[str, str]) -> dict[str, str]:
    found = dict(row)
    for item in select.items:
        _bind(found, item, [row])
    return found


def _bind(row: dict[str, str], item: Item, members: Sequence[Solution]) -> None:
    """Gives a name its value, if there is one."""
    if item.value is not None:
        with suppress(BadError):
            row[item.name] = aggregated(item.value, members, row)


def _grouped(select: Select, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    groups: dict[tuple[str | None, ...], list[dict[str, str]]] = {}
    if not select.group:
        groups[()] = []
    for row in rows:
        groups.setdefault(tuple(row.get(v) for v in select.group), []).append(row)
    found = []
    for key, members in groups.items():
        own = {v: t for v, t in zip(select.group, key, strict=True) if t is not None}
        if select.having is not None and not _having(select, members, own):
            continue
        for item in select.items:
            _bind(own, item, members)
        found.append(own)
    return found


def _having(select: Select, members: Sequence[Solution], own: Solution) -> bool:
    assert select.having is not None
    try:
        return holds(aggregated(select.having, members, own), {})
    except BadError:
        return False


def group(
    parts: Group, data: Data, graph: Collection[Three], outer: Solution
) -> list[dict[str, str]]:
    """The solutions of a group; ``outer`` are values put in the place of variables (EXISTS)."""
    rows: list[dict[str, str]] = [{}]
    filters: list[Filter | Exists] = []
    for part in parts:
        if isinstance(part, Filter | Exists):
            filters.append(part)
        else:
            rows = _with(rows, part, data, graph, outer)
    return [r for r in rows if all(_keeps(f, r, data, graph, outer) for f in filters)]


def _with(
    rows: list[dict[str, str]], part: Part, data: Data, graph: Collection[Three], outer: Solution
) -> list[dict[str, str]]:
    """The solutions of what stands before, with a part."""
    if isinstance(part, Triple):
        return [found for row in rows for found in _matches(part, row, graph, outer)]
    if isinstance(part, Bind):
        return [_bound(row, part, outer) for row in rows]
    if isinstance(part, Optional):
        return _optional(rows, part, data, graph, outer)
    if isinstance(part, Minus):
        right = group(part.parts, data, graph, outer)
        return [r for r in rows if not any(r.keys() & o.keys() and _agree(r, o) for o in right)]
    return _joined(rows, _right(part, data, graph, outer))


def _right(
    part: Part, data: Data, graph: Collection[Three], outer: Solution
) -> list[dict[str, str]]:
    """The solutions of a part by itself."""
    if isinstance(part, In):
        return group(part.parts, data, data.graph(part.graph), outer)
    if isinstance(part, Union):
        return group(part.left, data, graph, outer) + group(part.right, data, graph, outer)
    if isinstance(part, Values):
        return [{part.name: t} for t in part.terms if outer.get(part.name, t) == t]
    assert isinstance(part, Sub)
    return shown(part.select, group(part.select.parts, data, graph, {}))


def _matches(
    pattern: Triple, row: dict[str, str], graph: Collection[Three], outer: Solution
) -> list[dict[str, str]]:
    found = []
    for triple in graph:
        own = dict(row)
        for asked, term in zip((pattern.s, pattern.p, pattern.o), triple, strict=True):
            if asked.startswith("?"):
                if asked in outer and outer[asked] != term:
                    break
                if own.setdefault(asked, term) != term:
                    break
            elif asked != term:
                break
        else:
            found.append(own)
    return found


def _bound(row: dict[str, str], part: Bind, outer: Solution) -> dict[str, str]:
    try:
        return {**row, part.name: evaluate(part.value, {**outer, **row})}
    except BadError:
        return row


def _optional(
    rows: list[dict[str, str]], part: Optional, data: Data, graph: Collection[Three],
    outer: Solution,
) -> list[dict[str, str]]:  # fmt: skip
    """LeftJoin: the filters of the inner group are its condition."""
    inner = tuple(p for p in part.parts if not isinstance(p, Filter | Exists))
    filters = [p for p in part.parts if isinstance(p, Filter | Exists)]
    right, found = group(inner, data, graph, outer), []
    for row in rows:
        both = [
            b for b in _joined([row], right)
            if all(_keeps(f, b, data, graph, outer) for f in filters)
        ]  # fmt: skip
        found += both or [row]
    return found


def _keeps(
    part: Filter | Exists, row: dict[str, str], data: Data, graph: Collection[Three],
    outer: Solution,
) -> bool:  # fmt: skip
    if isinstance(part, Filter):
        return holds(part.condition, {**outer, **row})
    return bool(group(part.parts, data, graph, {**outer, **row})) is not part.negated


def _agree(one: Solution, two: Solution) -> bool:
    return all(two.get(name, term) == term for name, term in one.items())


def _joined(left: list[dict[str, str]], right: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{**a, **b} for a in left for b in right if _agree(a, b)]


def frozen(row: Solution) -> tuple[tuple[str, object], ...]:
    """A solution as it is compared. Which of equal numbers of several types is the least or
    greatest (``?lo``, ``?hi``) is not said.
    """
    return tuple(sorted((name, _normal(name, term)) for name, term in row.items()))


PLAIN = frozenset(
    ("?x", "?y", "?z", "?v", "?u", "?s", "?t", "?d", "?m", "?h", "?k", "?f", "?o", "?j", "?i")
)
"""Names that patterns give terms of the data, as they are written there."""


def _normal(name: str, term: str) -> object:
    if name in PLAIN:
        return term
    kind, of = value(term)
    if name not in ("?lo", "?hi") or kind not in RANKS or isinstance(of, Time):
        return normal(term)
    return ("number", float(of) if of == of else "NaN")
