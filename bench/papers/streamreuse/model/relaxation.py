"""Relaxation: the least operator of which both an operator and a query are filters, and the filters
(STREAMREUSE, section 3.1).

``relax(o, q)`` has the union of conditions, columns and instants and the longer ranges; and, beside
what both show, the columns that the compensations look at. It is the least of its form: whatever is
usable for both is usable for it. A *compensation* has all conditions of its query (filters are
idempotent), its columns, its ranges where the operator's are longer, its instants where the
operator has more.

A filter above cannot repair an aggregate over a longer window or weaker conditions. So groupings
are relaxed in what they show and when, and in conditions on attributes by which they group; else
what is below them is shared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from bench.papers.streamreuse.model.conditions import Where
from bench.papers.streamreuse.model.descriptor import Descriptor
from bench.papers.streamreuse.model.windows import Instants
from levada.core.frozen import frozen


@frozen
class Compensation:
    """What makes an operator's rows a query's; None or (): nothing to do.

    ``ranges``: of each source that is cut, how long the query's window is, in ms. ``group``: the
    coarser groups that are put together.
    """

    where: Where | None = None
    columns: frozenset[str] | None = None
    ranges: tuple[tuple[str, int], ...] = ()
    instants: Instants | None = None
    group: frozenset[str] | None = None

    @property
    def nothing(self) -> bool:
        """Whether the operator's rows are the query's."""
        return self == Compensation()


def relaxable(operator: Descriptor, wanted: Descriptor) -> bool:
    """Whether the base conditions hold, so that an operator can be made to serve both."""
    if operator.base != wanted.base:
        return False
    if operator.group is None or wanted.group is None:
        return operator.group is wanted.group
    seen = operator.where.beyond(wanted.where) | wanted.where.beyond(operator.where)
    return (
        operator.group == wanted.group
        and operator.windows.ranges == wanted.windows.ranges
        and seen <= operator.group
    )


def relax(operator: Descriptor, wanted: Descriptor) -> Descriptor:
    """The least operator that serves both; both must be ``relaxable``."""
    assert relaxable(operator, wanted), "the base conditions hold"
    conditions = operator.where | wanted.where
    columns = operator.columns | wanted.columns
    if operator.group is None:
        columns |= operator.where.beyond(conditions) | wanted.where.beyond(conditions)
    return replace(
        operator,
        where=conditions,
        columns=columns,
        windows=operator.windows | wanted.windows,
        aggregates=operator.aggregates | wanted.aggregates,
    )


def least(demands: Iterable[Descriptor]) -> Descriptor:
    """The least operator that serves all; the order does not matter."""
    return reduce(relax, demands)


def compensation(operator: Descriptor, wanted: Descriptor) -> Compensation:
    """What is left to do for a query where an operator is usable."""
    own, theirs = operator.windows, wanted.windows
    cut = tuple(
        (source, short)
        for source, long, short in zip(wanted.sources, own.ranges, theirs.ranges, strict=True)
        if short < long
    )
    shown = operator.columns if operator.group is None else operator.aggregates
    wants = wanted.columns if wanted.group is None else wanted.aggregates
    return Compensation(
        wanted.where if wanted.where != operator.where else None,
        wanted.columns if wants != shown else None,
        cut,
        theirs.instants if theirs.instants != own.instants else None,
        wanted.group if wanted.group != operator.group else None,
    )
