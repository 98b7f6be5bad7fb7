"""The explanation of shared folds for ``explain --sharing``: GROUP BYs that aggregate rows once for
all of them (``operators/aggregation/slicing``), as they follow from the plan. The rows of each
epoch decide whether it pays.

    folded once
      rows of Occur
        SUM in [RANGE PT4S STEP PT2S close [)], put together from slices: a
        SUM in [RANGE PT8S STEP PT4S close [)], put together from slices: b
        COUNT, AVG in [RANGE PT9S STEP PT2S close [)]: c

Windows that are put together from slices share these as their state. If members differ in
conditions on a number, they are put together from cells: slices of rows that the same members want.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from levada.core.frozen import frozen
from levada.plan.execution.plan import At, Plan
from levada.plan.execution.slice_readers import Reader, readers_of
from levada.plan.topology.print_topology import describe
from levada.plan.topology.topology import Topology


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


def show_folded_rows(folded_rows: tuple[Folded, ...]) -> Iterator[str]:
    """Yields the lines of the text form."""
    yield from ("folded once",) if folded_rows else ()
    for one in folded_rows:
        yield f"  rows of {one.operator}"
        for fold in one.folds:
            text = f"{', '.join(fold.functions)} in {' '.join(fold.windows)}"
            made = "cells" if fold.of_cells else "slices"
            how = f", put together from {made}" if fold.of_slices else ""
            yield f"    {text}{how}: {', '.join(fold.queries)}"
