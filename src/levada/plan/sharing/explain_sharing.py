"""The explanation of sharing, for ``explain --sharing``: what each query shares, operators with
their users, relaxed joins, reasons against relaxation, nearly equal joins, GROUP BYs that aggregate
rows together (``show_folded_rows``), and arrangements (``show_arrangements``).

    4 queries, sharing relax: 15 operators in place of 23
    queries
      a, b: 4 of 6 operators shared, with 3 other queries
      ..
    shared
      Match of http://e/s, (- <http://e/q> -): a, b, c, d
      Join of http://e/s, [RANGE PT4S STEP PT2S close [)]: a, b, c
    relaxed
      Join: 3 of (- <http://e/p> *), 2 of window
        <http://e/c0> [RANGE PT4S STEP PT2S close [)]: a
        <http://e/c1> [RANGE PT4S STEP PT2S close [)]: b
        <http://e/c2> [RANGE PT9S STEP PT2S close [)]: c
    not relaxed
      d: no other query has its join with other constants, conditions or windows
        nearly that of a, b, c: it has (- <http://e/r> *); they have (- <http://e/p> *)

Operators are members of the topology's nodes, named as in ``print_topology``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np

from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.core.rdf_terms import Literal, Term
from levada.core.shorten_outline import SHOWN_NAMES, name_list, shorten_outline
from levada.plan.execution.joins import Order, Pick, RelaxedStream
from levada.plan.execution.leaves import Scan
from levada.plan.execution.plan import At, Plan
from levada.plan.execution.slice_readers import Reader, readers_of
from levada.plan.migration.migration import show_switches
from levada.plan.physical.operators import Op
from levada.plan.sharing.decision_log import ConsideredOrder, show_orders
from levada.plan.sharing.explain_arrangements import (
    SharedRows,
    list_arrangements,
    show_arrangements,
)
from levada.plan.sharing.explain_not_shared import (
    Candidate,
    candidates,
    explain_no_join,
    has_time_join,
)
from levada.plan.sharing.regions.operator_sites import Chosen
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.share_equal_operators import Key
from levada.plan.sharing.share_relaxed_joins import BlockDemand
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.sharing.show_condition import show_condition
from levada.plan.sharing.unprofitable_joins import join_below_pick
from levada.plan.topology.print_topology import SharedMember, describe, describe_windows
from levada.plan.topology.topology import Topology

# The explanation of shared folds for ``explain --sharing``: GROUP BYs that aggregate rows once for
# all of them (``operators/aggregation/slicing``), as they follow from the plan. The rows of each
# epoch decide whether it pays.
#
#     folded once
#       rows of Occur
#         SUM in [RANGE PT4S STEP PT2S close [)], put together from slices: a
#         SUM in [RANGE PT8S STEP PT4S close [)], put together from slices: b
#         COUNT, AVG in [RANGE PT9S STEP PT2S close [)]: c
#
# Windows that are put together from slices share these as their state. If members differ in
# conditions on a number, they are put together from cells: slices of rows that the same members
# want.


@frozen
class Fold:
    """A GROUP BY: its functions and windows, and its queries.

    ``of_slices``: its reports are combined from slices, which all GROUP BYs of its function share.
    ``of_cells``: slices are divided by the members that want them.
    """

    functions: tuple[str, ...]
    windows: tuple[str, ...]
    queries: tuple[str, ...]
    of_slices: bool = False
    of_cells: bool = False


@frozen
class Folded:
    """The operator whose rows are aggregated once, with the GROUP BYs."""

    operator: str
    folds: tuple[Fold, ...]


def list_folded_rows(topology: Topology) -> Iterator[Folded]:
    """Yields the GROUP BYs that aggregate rows together, by operator. Seals the topology."""
    plan = topology.seal()
    nodes = dict(zip(topology.graph.order(), describe(topology), strict=True))
    users = {(n, m.number): m.queries for n, node in nodes.items() for m in node.members}
    for number in plan.order:
        for readers in readers_of(plan, plan.nodes[number]):
            by: dict[int, list[Fold]] = {}
            for reader in readers.readers:
                for below, fold in _folds(plan, reader, users):
                    by.setdefault(below, []).append(fold)
            for folds in by.values():
                if len(folds) > 1:
                    yield Folded(nodes[number].name, tuple(folds))


def _folds(
    plan: Plan, reader: Reader, users: Mapping[At, tuple[str, ...]]
) -> Iterator[tuple[int, Fold]]:
    """Yields the members of a GROUP BY, each with the producer's member that it reads."""
    panes = reader.panes
    functions = tuple([spec.function.value for spec in panes.step.aggregates])
    for at in np.flatnonzero(panes.alive).tolist():
        member = panes.members[at]
        below = member.inputs[0]
        if len(reader.way) > 1:  # through a pick
            below = plan.nodes[panes.inputs[0]].members[below].inputs[0]
        windows = dict.fromkeys(member.windows[row].describe() for row in panes.step.rows)
        cells = reader.kept and reader.pick is not None
        yield below, Fold(functions, tuple(windows), users[panes.id, at], reader.kept, cells)


def show_folded_rows(folded_rows: tuple[Folded, ...], limit: int | None) -> Iterator[str]:
    """Yields the lines of the text form. ``limit``: of the names of queries."""
    yield from ("folded once",) if folded_rows else ()
    for one in folded_rows:
        yield f"  rows of {one.operator}"
        for fold in one.folds:
            text = f"{', '.join(fold.functions)} in {' '.join(fold.windows)}"
            made = "cells" if fold.of_cells else "slices"
            how = f", put together from {made}" if fold.of_slices else ""
            yield f"    {text}{how}: {name_list(fold.queries, limit)}"


ANY = "any"
ALONE = "no other query has its join with other constants, conditions or windows"
EQUAL = "{} the same join, with nothing different"
MODE = "sharing is {}"
UNCONTAINED = "no other query's join surely has the rows of its own, nor the other way round"
_INDEXED = {1: "term", 2: "range"}
"""The kinds of differences that an index evaluates."""
_RANGES = {
    Order.VALUE: "",
    Order.STRING: " of strings",
    Order.TAGGED: " of prefixes",
    Order.STR: " of texts",
    Order.DATE: " of dates",
    Order.LOCAL: " of times without zone",
}
ALONE_ROWS = "no other GROUP BY reads its rows under other conditions"
EQUAL_ROWS = "{} the same rows for a GROUP BY, with nothing different"
OTHERWISE = "the same patterns and conditions, but other variables in common, or other windows"


@frozen
class Shared:
    """An operator of several queries."""

    operator: str
    queries: tuple[str, ...]


@frozen
class Picked:
    """The rows that queries pick from a relaxed join: by terms, comparisons, conditions and
    windows.

    "any": they have no condition where other queries have one.
    """

    wants: tuple[str, ...]
    queries: tuple[str, ...]


@frozen
class Relaxed:
    """A relaxed join, or the rows that GROUP BYs read, by name.

    It has the kinds of differences between its queries with the number of values of each, and the
    picks.
    """

    operator: str
    differ: tuple[tuple[str, int], ...]
    picks: tuple[Picked, ...]


@frozen
class QueryShare:
    """The operators of a query, how many of them it shares, and with how many ``others``."""

    operators: int
    shared: int
    others: int


@frozen
class SharingSummary:
    """The explanation: the numbers of operators, shared and apart.

    ``shares``: what each query shares. ``not_relaxed``: reasons by query. ``candidates``: nearly
    equal joins by query. ``folded``: shared aggregations. ``kept``: arrangements with their
    readers. ``ends``: the ends of queries that have one. ``regions``: the sites of queries.
    ``orders``: considered join orders by query. ``switches``: the instant (ms) up to which a
    migrating query must have reported.
    """

    sharing: str
    queries: int
    operators: int
    apart: int
    shares: dict[str, QueryShare]
    shared: tuple[Shared, ...]
    relaxed: tuple[Relaxed, ...]
    folded: tuple[Folded, ...]
    not_relaxed: dict[str, str]
    candidates: dict[str, tuple[Candidate, ...]]
    ends: dict[str, str]
    regions: dict[str, Chosen]
    orders: dict[str, list[ConsideredOrder]] = field(default_factory=dict)
    switches: dict[str, int] = field(default_factory=dict)
    kept: tuple[SharedRows, ...] = ()


def describe_sharing(
    topology: Topology, roots: Mapping[str, Op], ends: Mapping[str, str] | None = None
) -> SharingSummary:
    """Returns the explanation for a topology.

    ``roots``: the last operator of each query, by name. ``ends``: the ends of queries that have
    one.
    """
    nodes = describe(topology)
    members = [(node.name, member) for node in nodes for member in node.members]
    relaxed = tuple(_relaxed_joins(topology))
    picking = {query for join in relaxed for pick in join.picks for query in pick.queries}
    others = [name for name in topology.queries if name not in picking]
    near = candidates(topology.sharing.relaxations, others)
    equal = _list_equal_joins(topology.sharing.relaxations)
    return SharingSummary(
        str(topology.sharing.mode),
        len(topology.queries),
        len(members),
        sum(len(member.queries) for _, member in members),
        count_shares(member.queries for _, member in members),
        tuple(
            _shared_operator(name, member) for name, member in members if len(member.queries) > 1
        ),
        relaxed,
        tuple(list_folded_rows(topology)),
        {name: _why(topology, name, roots[name], equal) for name in others},
        near,
        dict(ends or {}),
        dict(topology.sharing.sites.chosen),
        dict(topology.sharing.journal.kept.orders),
        {name: switch.behind for name, switch in topology.switches.items()},
        tuple(list_arrangements(topology)),
    )


def count_shares(users: Iterable[tuple[str, ...]]) -> dict[str, QueryShare]:
    """Returns what each query shares, from the queries of each operator.

    >>> count_shares([("a", "b"), ("a",)])["a"]
    QueryShare(operators=2, shared=1, others=1)
    """
    groups: dict[tuple[str, ...], int] = Counter(users)
    by_query: dict[str, list[tuple[str, ...]]] = {}
    for group in groups:
        for query in group:
            by_query.setdefault(query, []).append(group)
    unions: dict[frozenset[tuple[str, ...]], int] = {}  # alike for the queries of one kind
    shares = {}
    for query, each in by_query.items():
        shared = frozenset(group for group in each if len(group) > 1)
        if shared not in unions:
            unions[shared] = len(set().union(*shared))
        shares[query] = QueryShare(
            sum(groups[group] for group in each),
            sum(groups[group] for group in shared),
            max(unions[shared] - 1, 0),
        )
    return shares


def _shared_operator(name: str, member: SharedMember) -> Shared:
    return Shared(f"{name} {member.detail}".strip(), member.queries)


_Equal = dict[tuple[Key, BlockDemand], dict[str, None]]
"""Queries by what is the same of their joins: the key of the join, and what they want of it."""


def _list_equal_joins(relaxations: Relaxations) -> _Equal:
    equal: _Equal = {}
    for name in relaxations.names:
        for key, block in relaxations.shareable_joins(name):
            equal.setdefault((key, block.wants), {})[name] = None
    return equal


def _why(topology: Topology, query: str, root: Op, equal_joins: _Equal) -> str:
    """Returns why no join of a query is relaxed."""
    if topology.sharing.mode is Sharing.CONTAINMENT and has_time_join(root):
        return UNCONTAINED
    if topology.sharing.mode is not Sharing.RELAX:
        return MODE.format(topology.sharing.mode)
    relaxations = topology.sharing.relaxations
    if query in relaxations.apart:
        return relaxations.apart[query]
    joins = list(relaxations.shareable_joins(query))
    if not joins:
        return explain_no_join(root)
    wants = [(key, block.wants) for key, block in joins]
    others = len({name for want in wants for name in equal_joins[want]}) - 1
    joined = any(block.is_join for _, block in joins)
    alone, equal = (ALONE, EQUAL) if joined else (ALONE_ROWS, EQUAL_ROWS)
    have = count_text(others, "other query has", "other queries have")
    return equal.format(have) if others else alone


def _relaxed_joins(topology: Topology) -> Iterator[Relaxed]:
    """Yields the relaxed joins and sets with their picks."""
    nodes = dict(zip(topology.graph.order(), describe(topology), strict=True))
    picks_by_source: dict[At, list[At]] = {}
    for number in nodes:
        node = topology.graph.nodes[number]
        if isinstance(node.shape.step, Pick):
            for member, at in node.members.index.items():
                source = join_below_pick(topology.graph.nodes, node.inputs[0], member.inputs[0])
                picks_by_source.setdefault(source, []).append((number, at))
    for (join, _), picks in picks_by_source.items():
        if topology.sharing.mode is Sharing.CONTAINMENT and len(picks) == 1:
            continue  # a family of its leader alone: no other query has the join
        wants = [dict(_wants(topology, pick)) for pick in picks]
        kinds = sorted({kind for pick_wants in wants for kind in pick_wants})
        counts = {kind: len({pick_wants.get(kind, ANY) for pick_wants in wants}) for kind in kinds}
        differ = {kind: count for kind, count in counts.items() if count > 1}
        users = [{m.number: m.queries for m in nodes[n].members}[at] for n, at in picks]
        yield Relaxed(
            nodes[join].name,
            tuple([(_name_difference(kind, kinds), count) for kind, count in differ.items()]),
            tuple(
                Picked(tuple(pick_wants.get(kind, ANY) for kind in differ), queries)
                for pick_wants, queries in zip(wants, users, strict=True)
            ),
        )


_Kind = tuple[int, int, str]
"""The kind of a difference: a pattern, terms of a column, ranges of a column, a condition, times;
the column; and the text of the pattern or of the range.
"""


def _name_difference(kind: _Kind, kinds: Sequence[_Kind]) -> str:
    """Returns the name of a kind of difference between queries."""
    which, _, text = kind
    if which not in _INDEXED:
        return text
    alike = [other for other in kinds if other[0] == which and other[2] == text]
    return f"{_INDEXED[which]}{text} {alike.index(kind) + 1}"


def _wants(topology: Topology, pick: At) -> Iterator[tuple[_Kind, str]]:
    """Yields the demand of a pick with its place: a pattern, a column, all columns, times."""
    node = topology.graph.nodes[pick[0]]
    member, step = node.members[pick[1]], node.shape.step
    assert isinstance(step, Pick), "a pick"
    columns = node.shape.inputs[0][1].slots
    for key in step.keys:
        pattern = _pattern(topology, *pick, key.source) if key.source else ""
        where = (0, 0, pattern) if pattern else (1, columns[key.slot], "")
        yield where, " ".join(str(member.constants[i]) for i in key.params)
    for number in sorted({test.range for test in step.tests}):
        range_tests = [test for test in step.tests if test.range == number]
        comparisons = [
            f"{test.function.value} {_short(member.constants[test.param])}" for test in range_tests
        ]
        yield (
            (2, columns[range_tests[0].slot], _RANGES[range_tests[0].order]),
            " and ".join(comparisons),
        )
    if step.rest:
        cql = _reads_table(topology, pick[0])
        texts = [show_condition(one, member.constants, cql=cql) for one in step.rest]
        yield (3, 0, "condition"), " and ".join(texts)
    yield (4, 0, "window"), " ".join(describe_windows(member))


def _reads_table(topology: Topology, number: int) -> bool:
    """Whether the rows of a node are of tables of CQL."""
    node = topology.graph.nodes[number]
    return isinstance(node.shape.step, Scan) or any(
        _reads_table(topology, below) for below in node.inputs
    )


def _short(term: Term | None) -> str:
    return term.lexical if isinstance(term, Literal) else str(term)


def _pattern(topology: Topology, number: int, member: int, source: tuple[int, ...]) -> str:
    """Returns the text of the relaxed pattern at the end of a way."""
    for i in source[:-1]:
        node = topology.graph.nodes[number]
        number, member = node.inputs[i], node.members[member].inputs[i]
        if isinstance((node := topology.graph.nodes[number]).shape.step, RelaxedStream):
            number, member = node.inputs[0], node.members[member].inputs[0]
    constants = topology.graph.nodes[number].members[member].constants
    texts = ["-" if term is None else str(term) for term in constants]
    texts[source[-1]] = "*"
    return f"({' '.join(texts)})"


def show_sharing(explanation: SharingSummary, *, whole: bool = True) -> str:
    """Returns the text form. Not ``whole``: in 20 lines."""
    queries = count_text(explanation.queries, "query", "queries")
    operators = count_text(explanation.operators, "operator")
    head = f"{queries}, sharing {explanation.sharing}: {operators}"
    lines = [
        f"{head} in place of {explanation.apart:,}",
        *_lines(explanation, None if whole else SHOWN_NAMES),
    ]
    return "\n".join(lines if whole else shorten_outline(lines))


def show_shares(shares: Mapping[str, QueryShare], limit: int | None) -> Iterator[str]:
    """Yields lines with what queries share, those of one kind together. ``limit``: of names."""
    yield from ("queries",) if shares else ()
    for share, queries in group_queries(shares):
        operators = f"{share.shared} of {count_text(share.operators, 'operator')} shared"
        others = count_text(share.others, "other query", "other queries")
        more = f", with {others}" if share.others else ""
        yield f"  {name_list(queries, limit)}: {operators}{more}"


V = TypeVar("V")


def group_queries(values: Mapping[str, V]) -> Iterator[tuple[V, list[str]]]:
    """Yields each value with the queries that have it, in the order of the first ones."""
    groups: dict[V, list[str]] = {}
    for query, value in values.items():
        groups.setdefault(value, []).append(query)
    yield from groups.items()


def _lines(explanation: SharingSummary, limit: int | None) -> Iterator[str]:
    yield from show_shares(explanation.shares, limit)
    yield from ("shared",) if explanation.shared else ()
    for one in explanation.shared:
        yield f"  {one.operator}: {name_list(one.queries, limit)}"
    yield from ("relaxed",) if explanation.relaxed else ()
    for join in explanation.relaxed:
        differ = ", ".join(f"{count:,} of {kind}" for kind, count in join.differ)
        yield f"  {join.operator}: {differ or 'no difference'}"
        for pick in join.picks:
            wants = " ".join(pick.wants) or ANY
            yield f"    {wants}: {name_list(pick.queries, limit)}".replace(" :", ":")
    yield from show_folded_rows(explanation.folded, limit)
    yield from show_arrangements(explanation.kept, limit)
    yield from ("not relaxed",) if explanation.not_relaxed else ()
    reasons = {
        query: (why, explanation.candidates.get(query, ()))
        for query, why in explanation.not_relaxed.items()
    }
    for (why, nearest), queries in group_queries(reasons):
        yield f"  {name_list(queries, limit)}: {why}"
        for near in nearest:
            yield f"    nearly that of {name_list(near.queries, limit)}: {_difference(near)}"
    yield from ("leave by themselves",) if explanation.ends else ()
    for query, end in explanation.ends.items():
        yield f"  {query}: {end}"
    yield from ("regions",) if explanation.regions else ()
    for query, chosen in explanation.regions.items():
        yield f"  {query}: stands in {chosen.site or 'all'}"
        for site, count in chosen.masked.items():
            yield f"    {site} has {count} of its parts, and is out of its reach"
    yield from show_orders(explanation.orders)
    yield from show_switches(explanation.switches)


def _difference(near: Candidate) -> str:
    sides = (("it has", near.more), ("they have", near.less))
    phrases = [f"{who} {' and '.join(what)}" for who, what in sides if what]
    return "; ".join(phrases) or OTHERWISE
