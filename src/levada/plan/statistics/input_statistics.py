"""Collects the statistics of operators to be joined as a ``Problem``: its parts down to their
leaves, and the alternative binary joins.

The statistics of a part are known if it is a triple pattern or a scan, with conditions above it, in
a window of bounded length over a stream with statistics. If those of one part are not known, there
is no problem. A condition is assumed to leave a third of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from levada.core.event_time import MAX, Window
from levada.core.expressions import requires_values
from levada.core.query_model import TriplePattern
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import LOST
from levada.plan.statistics.join_cost import BinaryJoin, Part, Problem
from levada.plan.statistics.statistics import Measures, RowStatistics, Values

FILTER_SELECTIVITY = 1 / 3  # the share of rows that a condition leaves
TERM, TIMES = 32, 24  # bytes of a term and of a window's times in a row that is exchanged


def problem_of(
    group: Sequence[Op], whole: Op, measures: Measures, windows: Sequence[Window]
) -> Problem | None:
    """Returns the problem of a group of parts that ``whole`` joins two at a time.

    None: the statistics of some part are not known.
    """
    parts = [part_of(part, measures, windows) for part in group]
    known = tuple([part for part in parts if part is not None])
    two = _two(whole, {id(part): i for i, part in enumerate(group)})
    if len(known) < len(parts) or isinstance(two, int):
        return None
    return Problem(known, two, measures.partitions)


def part_of(op: Op, measures: Measures, windows: Sequence[Window]) -> Part | None:
    """Returns the statistics of a part."""
    seen = _statistics_of(op, measures)
    if seen is None or not op.windows:
        return None
    reach = min(windows[w].reach for w in op.windows)
    if reach == MAX or any(v not in seen.values for v in op.variables):
        return None
    width = TERM * len(op.variables) + TIMES * len(op.windows)
    at = op.placed if op.placed not in (HOME, LOST) else ()
    values = {v: seen.values[v] for v in op.variables}
    return Part(seen.rate, seen.rate * reach / 1000, width, values, at)


def values_of(op: Op, measures: Measures) -> Mapping[str, Values]:
    """Returns statistics of the values of an operator's variables; a join has those of
    its inputs.
    """
    seen = _statistics_of(op, measures)
    if seen is not None:
        return seen.values
    values: dict[str, Values] = {}
    if isinstance(op.spec, p.Join | p.Filter | p.Occur | p.Hold | p.MultiwayJoin | p.LinkedJoin):
        for below in op.inputs:
            values = {**values_of(below, measures), **values}
    return values


def _statistics_of(op: Op, measures: Measures) -> RowStatistics | None:
    match op.spec:
        case p.Match(TriplePattern() as pattern, str(stream)):
            return measures.triples(stream, pattern)
        case p.Scan(str(stream), columns):
            statistics = measures.tuples(stream)
            return (
                None
                if statistics is None
                else _rename_values(statistics, dict(zip(op.variables, columns, strict=True)))
            )
        case p.Rename(sources):
            statistics = _statistics_of(op.inputs[0], measures)
            return (
                None
                if statistics is None
                else _rename_values(statistics, dict(zip(op.variables, sources, strict=True)))
            )
        case p.Filter(condition):
            statistics = _statistics_of(op.inputs[0], measures)
            left = 1.0 if requires_values(condition) else FILTER_SELECTIVITY
            return None if statistics is None else statistics._replace(rate=statistics.rate * left)
        case p.Occur() | p.Hold():
            return _statistics_of(op.inputs[0], measures)
        case _:
            return None


def _rename_values(statistics: RowStatistics, sources: Mapping[str, str]) -> RowStatistics:
    """Returns the statistics under other names."""
    values = {v: statistics.values[c] for v, c in sources.items() if c in statistics.values}
    return RowStatistics(statistics.rate, values)


def _two(op: Op, number: Mapping[int, int]) -> BinaryJoin | int:
    """Returns the binary joins of a tree."""
    share = 1.0
    while id(op) not in number and isinstance(op.spec, p.Filter | p.Extend):
        share *= FILTER_SELECTIVITY if isinstance(op.spec, p.Filter) else 1.0
        (op,) = op.inputs
    if id(op) in number:
        return number[id(op)]
    assert isinstance(op.spec, p.Join), "a tree of joins of two over the parts"
    left, right = (_two(below, number) for below in op.inputs)
    first, second = (by is not None for by in op.exchange)
    return BinaryJoin(left, right, op.placed, (first, second), share)
