"""Pairs of rows for a join: counted first, then materialised in batches.

A pair is two row numbers, and is found in a nanosecond or two; its row costs fifty, and the
operators above as much again. So if there is more than one batch, all pairs are searched once more,
and only counted, before a second batch is made: a query with too many pairs is detected before it
has used much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from levada.core.event_time import MAX
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.errors import ExcessError
from levada.operators.operator_context import OperatorContext
from levada.operators.row_limit import most_rows, too_many
from levada.operators.rows import shared_input_filter
from levada.plan.execution import steps as s
from levada.plan.execution.joins import is_arranged
from levada.plan.execution.plan import PlanNode

MOST_PAIRS = register(f"{__name__}.MOST_PAIRS", 1_000_000)  # of one piece of the result
Rows = npt.NDArray[np.intp]


@frozen
class Pairs:
    """Pairs of row i of a left frame and row j of a right one."""

    a: Frame
    i: Rows
    b: Frame
    j: Rows

    def cut(self, most: int) -> Iterator[Pairs]:
        """The same in parts of at most so many."""
        if len(self.i) <= most:
            yield self
            return
        for at in range(0, len(self.i), most):
            part = slice(at, at + most)
            yield Pairs(self.a, self.i[part], self.b, self.j[part])


def batch_pairs(
    node: PlanNode[s.Join], find_pairs: Callable[[], Iterable[Pairs]], env: OperatorContext
) -> Iterator[Sequence[Pairs]]:  # fmt: skip
    """Yields batches of at most ``MOST_PAIRS`` pairs; the pairs of one row are never divided.

    ``find_pairs`` returns the same pairs at each call. Raises ``ExcessError`` for too many pairs,
    before the second batch.
    """
    batch: list[Pairs] = []
    rows = 0
    few = True
    for pairs in find_pairs():
        for part in pairs.cut(MOST_PAIRS):
            if rows and rows + len(part.i) > MOST_PAIRS:
                if few:
                    _count(node, find_pairs(), env)
                    few = False
                yield batch
                batch, rows = [], 0
            batch.append(part)
            rows += len(part.i)
    if few:
        _count(node, batch, env)
    if batch:
        yield batch


def _count(node: PlanNode[s.Join], matches: Iterable[Pairs], env: OperatorContext) -> None:
    """Raises ``ExcessError`` for too many pairs."""
    total, most = 0, MAX if _is_picked(node, env) else most_rows(node, env.limits)
    for pairs in matches if most < MAX else ():
        total += len(pairs.i)
        if total > most:
            raise _too_many(node, pairs, env)


def _too_many(node: PlanNode[s.Join], pairs: Pairs, env: OperatorContext) -> ExcessError:
    side = int(is_arranged(node.step, 0))
    rows, at = (pairs.b, pairs.j) if side else (pairs.a, pairs.i)
    if node.step.relaxed and env.shares is not None:
        some = rows.take(at[:MOST_PAIRS])
        return shared_input_filter.blame(
            node, side, some, env.limits, shares=env.shares, pool=env.pool
        )
    return too_many(node, rows["op"][at], env.limits)


def _is_picked(node: PlanNode[s.Join], env: OperatorContext) -> bool:
    """Whether only picks, or reports with picks above them, read the pairs. Then the rows that
    these want are counted instead of the pairs.
    """
    if not node.step.relaxed or env.shares is None:
        return False
    nodes = env.shares.plan.nodes
    return all(isinstance(nodes[c.node].step, s.Pick | s.Report) for c in node.consumers)
