"""The joins of queries by level, as in the filter tree of STREAMREUSE: an upper level is common to
everything below it, so the join of a new query is found on a way from the top.

    lattice
      http://e/s: 4 queries
        join of (- <http://e/p> *), (- <http://e/q> -): 3
          <http://e/c0>: 2
            [RANGE PT4S close [)]: a
            [RANGE PT9S close [)]: b
          <http://e/c1>: 1
            [RANGE PT4S close [)]: c
        rows grouped of (- <http://e/q> -): 1
          ..

    sources       the streams, and whether there are static data
    joins         the relaxed join, by the texts of its patterns, and of the conditions that all of
                  its queries have; or the rows that GROUP BYs read. Two with equal text differ in
                  the variables that connect them
    conditions    the terms, comparisons and conditions that were lifted out of it
    windows       the window of all its patterns, or one for each, in order; grouped rows have none

Columns are not a level: those of a join are the union of the columns that its queries read. The
sharing mode and the order of arrival decide whether joins with equal ways are one
(``explain_sharing``).

Cost: linear in the queries, for ``explain`` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import and_

from levada.core.count_text import count_text
from levada.core.event_time import WindowKind
from levada.core.frozen import frozen
from levada.core.names import display_name
from levada.core.rdf_terms import Literal
from levada.core.size_thresholds import register
from levada.plan.physical.operators import Op
from levada.plan.sharing.explain_not_shared import hide_names, parts
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.share_equal_operators import Key
from levada.plan.sharing.share_relaxed_joins import Block, BlockDemand

MAX_CHILDREN = register(f"{__name__}.MAX_CHILDREN", 5)
"""The maximum number of entries shown below one."""
ALL, EACH = "all rows", "each in its own windows"


@frozen
class Level:
    """The common value of some queries at a level (``kind``), and the levels below."""

    kind: str
    text: str
    queries: tuple[str, ...]
    below: tuple[Level, ...] = ()


@frozen
class _Way:
    """A join's way from the top: for each level its value and the parts of its text."""

    query: str
    steps: tuple[tuple[object, tuple[str, ...]], ...]


KINDS = ("sources", "joins", "conditions", "windows")


def levels(relaxations: Relaxations) -> tuple[Level, ...]:
    """Returns the joins of all queries that others could share."""
    ways = []
    for name in relaxations.names:
        for key, block in relaxations.shareable_joins(name):
            ways.append(_Way(name, tuple(_steps(key, block))))
    return tuple(_branches(ways, 0))


def _branches(ways: Sequence[_Way], level: int) -> Iterator[Level]:
    if level == len(KINDS):
        return
    apart: dict[object, list[_Way]] = {}
    for way in ways:
        apart.setdefault(way.steps[level][0], []).append(way)
    for branch in apart.values():
        queries = tuple(dict.fromkeys(way.query for way in branch))
        text = _text(level, [way.steps[level][1] for way in branch])
        yield Level(KINDS[level], text, queries, tuple(_branches(branch, level + 1)))


def _text(level: int, ways: Sequence[tuple[str, ...]]) -> str:
    """Returns the parts that all ways have; other parts do not belong to their join."""
    first = ways[0]
    common = reduce(and_, map(Counter, ways)) if any(way != first for way in ways) else None
    parts = first if common is None else tuple(_common_parts(first, common))
    if KINDS[level] == "windows":
        return " ".join(parts)
    if KINDS[level] == "joins":
        return f"{parts[0]} {', '.join(parts[1:])}"
    return ", ".join(parts)


def _common_parts(parts: Iterable[str], common: Counter[str]) -> Iterator[str]:
    for part in parts:
        if common[part]:
            common[part] -= 1
            yield part


def _steps(key: Key, block: Block) -> Iterator[tuple[object, tuple[str, ...]]]:
    streams = tuple(dict.fromkeys(map(display_name, _streams(block.relaxed)))) or ("static data",)
    yield streams, streams
    what = "join of" if block.is_join else "rows grouped of"
    yield key, (what, *parts(block))
    wants = block.wants
    yield (wants.terms, wants.tests, wants.rest), tuple(_conditions(wants)) or (ALL,)
    yield wants.windows, tuple(_windows(block)) or (EACH,)


def _windows(block: Block) -> Iterator[str]:
    """Yields the window of all patterns, or of each; a numbered count window shows its numbers."""
    windows = block.wants.windows
    if len(windows) > 1 and block.leaves:
        windows = tuple([windows[at] for at in block.leaves])
    yield from (w.describe() for w in windows if w.kind is not WindowKind.COUNT or w.count)


def _streams(op: Op) -> Iterator[str]:
    """Returns the streams that are read below, from left to right."""
    stream = getattr(op.spec, "stream", None)
    if stream:
        yield stream
    for child in op.inputs:
        yield from _streams(child)


def _conditions(wants: BlockDemand) -> Iterator[str]:
    """Yields the demand by terms, by ranges and by other conditions."""
    yield from (" or ".join(map(str, terms)) for _, terms in wants.terms)
    for _, function, term, _ in wants.tests:
        yield f"{function.value} {term.lexical if isinstance(term, Literal) else term}"
    yield from map(hide_names, wants.rest)


def show_levels(levels: Sequence[Level]) -> Iterator[str]:
    """Yields the lines of the text form, with the first of many."""
    if levels:
        yield "lattice"
    yield from _lines(levels, 1)


def _lines(levels: Sequence[Level], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for one in levels[:MAX_CHILDREN]:
        if one.kind == KINDS[-1]:
            yield f"{indent}{one.text}: {_show_names(one.queries)}"
            continue
        yield f"{indent}{one.text}: {_show_count(one)}"
        yield from _lines(one.below, depth + 1)
    if len(levels) > MAX_CHILDREN:
        left = len({query for one in levels[MAX_CHILDREN:] for query in one.queries})
        more = len(levels) - MAX_CHILDREN
        queries = count_text(left, "query", "queries")
        yield f"{indent}and {more:,} more {levels[0].kind}, of {queries}"


def _show_count(one: Level) -> str:
    count = len(one.queries)
    if one.kind != KINDS[0]:
        return f"{count:,}"
    return count_text(count, "query", "queries")


def _show_names(queries: Sequence[str]) -> str:
    names = ", ".join(islice(queries, MAX_CHILDREN))
    return (
        names
        if len(queries) <= MAX_CHILDREN
        else f"{names} and {len(queries) - MAX_CHILDREN:,} more"
    )
