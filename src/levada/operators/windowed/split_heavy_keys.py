"""Divides a heavy key's work among several partitions: each new row is probed in one of them
(Parallel windowed joins, W54).

The partitions that share a divided group have all rows of it, of both sides, and so the same state:
occurrences, repeats and waiting rows are the same in each. A pair is found by its newer row, so it
is enough that each new row probes in one of them, chosen by a hash of the row. Probing and its
output are divided; receiving and keeping rows is not. This pays where a key has many partners,
since pairs grow by the square.

Invariant: all partitions assign a row to the same partition, and it is one of those that share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs
from levada.core.frame import Frame
from levada.operators.operator_context import OperatorContext
from levada.operators.state.join_state import Run, build_run
from levada.operators.state.retractions import whole_key
from levada.plan.execution.key_group_table import SplitKeyGroup
from levada.plan.execution.plan import PlanNode

_HALF = np.uint64(32)


def route_own_rows(node: PlanNode, new: Run, env: OperatorContext) -> Run:
    """The new rows of a side that meet others here."""
    keep = own_here(node, new, env)
    return new if keep is None else build_run(new.rows.where(keep))


def own_here(node: PlanNode, new: Run, env: OperatorContext) -> Bools | None:
    """Flags the new rows of a side that probe here; None: all."""
    heavy = env.place.division.divided_groups(node.id)
    return own_rows(new.rows, heavy, env.place.partition) if heavy else None


def own_rows(rows: Frame, heavy: Sequence[SplitKeyGroup], partition: int) -> Bools | None:
    """Flags the new rows that this partition probes; None: all."""
    group = rows[col.PLACE]
    keep = np.ones(rows.n, np.bool_)
    for h in heavy:
        at = np.flatnonzero(group == h.group)
        if len(at):
            keep[at] = np.array(h.parts)[_lots(rows.take(at), len(h.parts))] == partition
    return None if keep.all() else keep


def _lots(rows: Frame, many: int) -> Longs:
    """Returns a number below ``many`` for each row, by its columns and its time."""
    shown = {n for n in rows.columns if n == col.WHOLE or _identifies_rows(n)}
    _, h = whole_key(rows, rows.columns.keys() - shown)
    return (((h >> _HALF) * np.uint64(many)) >> _HALF).astype(np.int64)


def _identifies_rows(name: str) -> bool:
    """Whether a column is part of the identity of a row, or its time."""
    return (col.is_slot(name) and name[0] in "xm") or name.startswith("lo")
