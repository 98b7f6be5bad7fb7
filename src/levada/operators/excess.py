"""What an operator must not exceed in an epoch, so that one query cannot take the memory of all.

An operator that would make more raises ``ExcessError``, which names a member; the driver suspends
the queries that it serves and runs the epoch without them. The bounds follow from the data alone:
an epoch that is run again exceeds them again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.errors import ExcessError
from levada.kernels.keyed.groups import group
from levada.model import limits
from levada.model.arrays import Bools, Ints, Longs
from levada.model.frame import Frame
from levada.plan.sealed.plan import PlanNode


def too_many(node: PlanNode, op: Ints, most: int) -> ExcessError:
    """The error of the member with most rows; ``op``: the members of the rows that are too many."""
    return most_of(node, np.bincount(op), most)


def most_of(node: PlanNode, rows: Longs, most: int) -> ExcessError:
    """The same, by how many rows each member has."""
    member = int(rows.argmax())
    kind = type(node.step).__name__
    message = f"An operator ({kind}) would make more than {most:,} rows in one epoch."
    return ExcessError(message, node=node.id, member=member)


def check_reports(node: PlanNode, rows: Frame, most: int) -> None:
    """Raises ``ExcessError`` for a query that has more than so many solutions in one report, here:
    who reads it has to hold all of it.
    """
    if rows.n <= most:
        return
    codes, first = group(rows["op"].astype(np.uint64), rows["r"].view(np.uint64))
    solutions = np.bincount(codes)
    worst = int(solutions.argmax())
    if int(solutions[worst]) > most:
        message = f"One of its reports would have more than {most:,} solutions."
        raise ExcessError(message, node=node.id, member=int(rows["op"][first[worst]]))


def check_texts(sizes: Longs) -> Bools:
    """Which texts are too long, from the bytes that each would have. Raises ``ExcessError`` if the
    others are too many.
    """
    too_long: Bools = sizes > limits.LONGEST_TEXT
    if int(sizes.sum(where=~too_long)) > limits.MOST_TEXTS:
        most = f"{limits.MOST_TEXTS:,}"
        raise ExcessError(f"An operator would compute texts of more than {most} bytes at once.")
    return too_long


def blamed(error: ExcessError, node: PlanNode, frames: Sequence[Frame | None]) -> ExcessError:
    """The error with its place in the plan: this node, and of its members the one with most rows,
    where the operator has not said.
    """
    if error.node < 0:
        ops = [frame["op"] for frame in frames if frame is not None and frame.n]
        error.node = node.id
        error.member = int(np.bincount(np.concatenate(ops)).argmax()) if ops else 0
    return error
