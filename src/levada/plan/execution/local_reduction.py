"""Decides what a task sends to an operator that evaluates whole reports in one place.

Such an operator is the work of one task, regardless of the number of partitions. Often its work
splits into two steps (Gray et al., Data Cube, 1997: distributive and algebraic functions). Each
sending task does the first step on its own rows:

    PARTIALS   incremental aggregates: one row for a report in place of all its rows
    VALUES     aggregates of the same distinct values: each value of a report once
    FIRST      ORDER BY with LIMIT: as many rows of a report as are shown
    NETTED     marks of windows without columns: one weight for an instant

WHOLE: all rows are sent. The reduction follows from the step alone, so a plan is the same for any
number of partitions. The number of rows decides whether it is applied (``operators/fewer``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from levada.core.expressions import AggregateFunction, random
from levada.plan.execution import steps as s

_A = AggregateFunction
_BEST = (_A.MIN, _A.MAX, _A.SAMPLE)
_SUMS = (_A.COUNT, _A.SUM, _A.AVG, _A.SUM_REST)


class ReducedRows(StrEnum):
    """The rows that are sent, as listed above."""

    PARTIALS = "partials"
    VALUES = "values"
    FIRST = "first"
    NETTED = "netted"
    WHOLE = "whole"


class LocalReduction(NamedTuple):
    """The rows that are sent; ``why``: a sentence without its dot."""

    what: ReducedRows
    why: str


def find_reduction(step: s.Step, at: int = 0) -> LocalReduction | None:
    """Returns the reduction of the rows of input ``at``.

    None: the step does not evaluate reports in one place, or needs all rows as they are.
    """
    match step:
        case s.Panes(keys=()):
            return LocalReduction(
                ReducedRows.PARTIALS, "each task sends its partial aggregates of a pane"
            )
        case s.RGroup(keys=()):
            return _reduction_of_reports(step)
        case s.Running(keys=()) if at == 0:
            return _reduction_of_changes(step)
        case s.Running() | s.Snapshot() if at > 0:
            return LocalReduction(
                ReducedRows.NETTED, "each task sends the weight of an instant once"
            )
        case s.Snapshot():
            return LocalReduction(ReducedRows.WHOLE, "a whole result is all of its rows")
        case s.ROrder(in_order=True):
            return None
        case s.ROrder(limit=None):
            return LocalReduction(ReducedRows.WHOLE, "an order without LIMIT is of all rows")
        case s.ROrder(keys, offset, limit) if limit is not None:
            if any(random(key) for key, _ in keys):
                return LocalReduction(ReducedRows.WHOLE, "the order is drawn where all rows are")
            return LocalReduction(
                ReducedRows.FIRST, f"each task sends its first {offset + limit} of a report"
            )
    return None


def _reduction_of_reports(step: s.RGroup) -> LocalReduction:
    specs = step.aggregates
    if any(a.function is _A.GROUP_CONCAT for a in specs):
        if _is_one_set(specs):
            return LocalReduction(
                ReducedRows.VALUES, "each task sends the distinct values of a report once"
            )
        return LocalReduction(ReducedRows.WHOLE, "a GROUP_CONCAT is in the order of all strings")
    if step.apart or not any(a.distinct and a.function not in _BEST for a in specs):
        return LocalReduction(
            ReducedRows.PARTIALS, "each task sends its partial aggregates of a report"
        )
    if _is_one_set(specs):
        return LocalReduction(
            ReducedRows.VALUES, "each task sends the distinct values of a report once"
        )
    return LocalReduction(
        ReducedRows.WHOLE, "DISTINCT sees the values of all tasks, and other aggregates all rows"
    )


def _is_one_set(specs: tuple[s.Aggregate, ...]) -> bool:
    """Whether all aggregates follow from the distinct values of one slot, or of the rows."""
    (slot,) = slots if len(slots := {a.slot for a in specs}) == 1 else (None,)
    return slot is not None and all(a.distinct or a.function in _BEST for a in specs)


def _reduction_of_changes(step: s.Running) -> LocalReduction:
    for a in step.aggregates:
        if a.distinct:
            return LocalReduction(
                ReducedRows.WHOLE, "DISTINCT by changes counts the values of all tasks"
            )
        if a.function not in _SUMS:
            return LocalReduction(
                ReducedRows.WHOLE, f"{a.function.value} by changes keeps the values of all tasks"
            )
    return LocalReduction(
        ReducedRows.PARTIALS, "each task sends what a report changes, but for doubles"
    )
