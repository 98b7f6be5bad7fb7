"""The reasons why joins of queries are not shared: the obstacle of a join, and the differences
between nearly equal joins.

A join that could be shared is described by its *parts*: the patterns and scans below it, with a
star where other queries may want another term, and the conditions that stay there. Its *candidates*
are joins whose parts are mostly the same, the nearest first, with the parts that only one of both
has. Variable names are not part of it. If all parts are equal, the joins differ in the variables
that connect them, or in windows that cannot be one.

Cost: the pairs of different joins, for ``explain`` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from levada.core.expressions import Var
from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.plan.execution.joins import JoinKind, Order
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sharing.parameterize import is_time_join
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.share_relaxed_joins import WHOLE, Block
from levada.plan.sharing.show_condition import show_condition

MAX_CANDIDATES = 3
"""The maximum number of shown candidates."""
NOTHING = "it has no join"
INSIDE = "its join is in a path, a sub-select or an aggregate below others"
STATIC = "its join is of static data, which are read once"
TOGETHER = "its join is one step of all its parts, which others share if it is equal"
WEIGHTS = (
    "rows of its join are taken back (a session, a relation, replaced data, count windows that are "
    "not one, or count by value or in steps)"
)
PRODUCT = "its join has no variable in common: it would pair everything with everything"
REPORTS = "its join is of reports"
COMPARED = {
    Order.VALUE: "a comparison with a number",
    Order.STRING: "a comparison with a string",
    Order.TAGGED: "a comparison with a string",
    Order.STR: "a comparison of a text",
    Order.DATE: "a comparison with a date",
    Order.LOCAL: "a comparison with a time without zone",
}


@frozen
class Candidate:
    """Queries whose join is nearly that of another query, with the parts that only one of both has.

    There are none if the same parts are connected in another way.
    """

    queries: tuple[str, ...]
    more: tuple[str, ...]
    less: tuple[str, ...]


def explain_no_join(root: Op) -> str:
    """Returns why a query has no join that could be shared."""
    return next(_reasons(root, ""), NOTHING)


def has_time_join(root: Op) -> bool:
    """Whether a query has a join whose rows could contain, or be contained in, those of another
    query.
    """
    return is_time_join(root) or any(map(has_time_join, root.inputs))


def _reasons(op: Op, outer: str) -> Iterator[str]:
    """Yields why each join cannot be shared; ``outer``: the reason of the operators above."""
    if isinstance(op.spec, p.Join):
        yield outer or _join_obstacle(op)
    if isinstance(op.spec, p.MultiwayJoin | p.LinkedJoin):
        yield outer or TOGETHER
    if isinstance(op.spec, p.ReportJoin) and op.spec.kind is JoinKind.INNER:
        yield outer or REPORTS
    inner = outer
    if isinstance(op.spec, WHOLE):
        inner = outer or (STATIC if isinstance(op.spec, p.StaticSubplan) else INSIDE)
    for child in op.inputs:
        yield from _reasons(child, inner)


def _join_obstacle(op: Op) -> str:
    """Returns why a join itself cannot be shared."""
    assert isinstance(op.spec, p.Join), "a join"
    if op.weighted or op.windows is None or op.spec.negative:
        return WEIGHTS
    if not op.windows:
        return STATIC
    return PRODUCT if not is_time_join(op) else WEIGHTS


def candidates(relaxations: Relaxations, names: Iterable[str]) -> dict[str, tuple[Candidate, ...]]:
    """Returns for each query the joins of other queries that are nearly its, the nearest first;
    without those that have none. A join of many queries is compared once.
    """
    joins = _list_joins(relaxations)
    nearest = {key: _find_nearest(key, joins) for key in joins}
    by_query = {}
    for name in names:
        keys = {key for key, block in relaxations.shareable_joins(name) if block.is_join}
        ranked = sorted(
            {one: None for key in keys for one in nearest[key] if one[2] not in keys},
            key=lambda one: (one[0], one[1].queries),
        )
        if ranked:
            by_query[name] = tuple(dict.fromkeys(one for _, one, _ in ranked))[:MAX_CANDIDATES]
    return by_query


_Joins = dict[object, tuple[Counter[str], list[str]]]
"""The parts of each join, and its queries, by the key of the join."""


def _list_joins(relaxations: Relaxations) -> _Joins:
    joins: _Joins = {}
    for name in relaxations.names:
        for key, block in relaxations.shareable_joins(name):
            if block.is_join:
                if key not in joins:
                    joins[key] = Counter(parts(block)), []
                joins[key][1].append(name)
    return joins


def _find_nearest(key: object, joins: _Joins) -> list[tuple[int, Candidate, object]]:
    """Returns the joins that have at least half of a join's parts, with the number of parts that
    only one of both has.
    """
    mine, _ = joins[key]
    ranked = []
    for other, (theirs, queries) in joins.items():
        both = (mine & theirs).total()
        if other != key and 2 * both >= max(mine.total(), theirs.total()):
            more, less = mine - theirs, theirs - mine
            candidate = Candidate(tuple(queries), tuple(more.elements()), tuple(less.elements()))
            ranked.append((more.total() + less.total(), candidate, other))
    return ranked


def parts(block: Block) -> Iterator[str]:
    """Yields the patterns and conditions of a join, as other queries may have them."""
    yield from _parts(block.relaxed)
    ranges = {test.range: test.order for test in block.tests}
    yield from (COMPARED[order] for order in ranges.values())
    yield from ("a condition on a term" for key in block.keys if not key.source)
    cql = reads_table(block.relaxed)
    yield from (show_condition(condition, cql=cql) for condition in block.rest)


def reads_table(op: Op) -> bool:
    """Whether an operator reads tables of CQL."""
    return isinstance(op.spec, p.Scan) or any(map(reads_table, op.inputs))


def _parts(op: Op) -> Iterator[str]:
    match op.spec:
        case p.Match(pattern, stream, _, lifted):
            yield _show_pattern(pattern, lifted) + ("" if stream else " of static data")
        case p.Select(pattern):
            taken = [v.name if isinstance(v, Var) else "" for v in pattern.positions]
            yield _show_pattern(
                pattern, [at for at, name in enumerate(taken) if name.startswith(".")]
            )
            return
        case p.Scan(stream):
            yield f"{stream}"
        case p.Filter(condition):
            yield show_condition(condition, cql=reads_table(op))
        case p.Extend(expression):
            yield f"BIND {show_condition(expression, cql=reads_table(op))}"
        case p.Join() | p.MultiwayJoin() | p.LinkedJoin() | p.Rename() | p.Occur() | p.Numbered():
            pass
        case other:
            yield type(other).__name__
            return
    for child in op.inputs:
        yield from _parts(child)


def _show_pattern(pattern: TriplePattern, lifted: Sequence[int]) -> str:
    """Returns a pattern with a star where other queries may want another term."""
    places = [
        "*" if at in lifted else "-" if isinstance(term, Var) else str(term)
        for at, term in enumerate(pattern.positions)
    ]
    return f"({' '.join(places)})"
