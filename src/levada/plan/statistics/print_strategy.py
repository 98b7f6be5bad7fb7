"""Prints the choices for a query's joins with their reasons."""

from __future__ import annotations

from collections.abc import Iterator

from levada.core.count_text import count_text
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.statistics.choose_join_strategy import TWO, Candidate, Chosen, JoinStrategyRequest

HEAD = (
    "form",
    "rows exchanged/s",
    "bytes/s",
    "state",
    "CPU us/s",
    "busiest x partitions",
    "why not",
)


def sentences(wanted: JoinStrategyRequest | None) -> Iterator[str]:
    """Returns a sentence for each join with a choice of form or of partition key.

    None: there was no choice.
    """
    if wanted is None:
        return
    for chosen in wanted.chosen:
        form = describe_candidate(chosen.choice.chosen)
        if chosen.star and not chosen.choice.chosen.copied:
            form = f"co-partitioned by ?{chosen.star}, in one step or two at a time as it turns out"
        yield (
            f"The join of {_parts(chosen)} is {form}, by what is known of its streams, over "
            f"{count_text(chosen.partitions, 'partition')}."
        )
    yield from wanted.notes


def tables(wanted: JoinStrategyRequest | None) -> Iterator[str]:
    """Returns a sentence and a table of all candidates for each choice."""
    if wanted is None:
        return
    for chosen, sentence in zip(wanted.chosen, sentences(wanted), strict=False):
        rows = [HEAD, *(_row(chosen, one) for one in chosen.choice.candidates)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(_align(row, widths)).rstrip() for row in rows)
        yield "\n".join([sentence, *(f"  {line}" for line in lines)])
    yield from wanted.notes


def explain_joins_at_home(root: Op) -> Iterator[str]:
    """Returns a sentence for each join at one home: it has no variable that is always bound.

    The sentence also states why the join is not spread over partitions.
    """
    waiting, seen = [root], set[int]()
    while waiting:
        op = waiting.pop()
        if id(op) in seen:
            continue
        seen.add(id(op))
        waiting += op.inputs
        if isinstance(op.spec, p.Join | p.ReportJoin) and op.placed == HOME:
            left, right = (" ".join(f"?{v}" for v in part.variables) for part in op.inputs)
            yield f"The join of ({left}) and ({right}) is at one home: {_why_at_home(op)}."


def _why_at_home(op: Op) -> str:
    if isinstance(op.spec, p.ReportJoin):
        return "its rows are of reports"
    if op.weighted or any(part.weighted for part in op.inputs):
        return "rows of it are taken back"
    if not all(part.windows for part in op.inputs):
        return "a part of it is static"
    if any(part.placed == HOME for part in op.inputs):
        return "so is a part of it"
    if len({v for part in op.inputs for v in part.variables}) < len(
        [v for part in op.inputs for v in part.variables]
    ):
        return "several variables that its parts share may be unbound"
    return "no variable is shared, and it is not known that one part is small"


def describe_candidate(one: Candidate) -> str:
    """Returns the form of a candidate and its hub variable.

    >>> from levada.plan.statistics.join_cost import Cost
    >>> describe_candidate(Candidate("x", 1, 0, Cost()))
    'replicated: by ?x, 1 part to all'
    """
    if one.by == TWO:
        return one.form
    copied = f", {one.copied} part{'s' * (one.copied > 1)} to all" if one.copied else ""
    return f"{one.form}: by ?{one.by}{copied}"


def _row(chosen: Chosen, one: Candidate) -> tuple[str, ...]:
    cost = one.cost
    figures = (cost.rows, cost.bytes, cost.state, cost.cpu, cost.busiest)
    return (
        describe_candidate(one),
        *(f"{x:,.0f}" for x in figures),
        chosen.choice.why_not(one) or "chosen",
    )


def _align(row: tuple[str, ...], widths: list[int]) -> Iterator[str]:
    """Aligns names to the left and figures to the right."""
    for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.ljust(width) if at in (0, len(row) - 1) else cell.rjust(width)


def _parts(chosen: Chosen) -> str:
    return ", ".join(f"({part})" for part in chosen.parts)
