"""Residual conditions: evaluated on the (row, member) pairs that an index has found but cannot
decide.

A member pays for the pairs that its keys and ranges leave, whatever other members want. Pairs are
evaluated some at a time, with only the columns that conditions read.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs
from levada.core.expressions import Call, Expression, Var, variables
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.errors import ExcessError
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import truth
from levada.operators.rows.filter_extend import PIECE, scope
from levada.operators.rows.predicate_index import PredicateIndexReader, ProbeBatch
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

_ROUNDS = (0, 1, 8, 64, 1 << 62)
"""Of the pairs of a row those up to these numbers are asked at once, until enough is known."""


def true_of(
    node: PlanNode[s.Pick],
    condition: Expression,
    rows: Frame,
    row: Longs,
    member: Longs | Ints,
    *,
    pool: TermLookup,
) -> Bools:
    """Flags the pairs for which the condition is true. The condition is over the slots of ``rows``
    and the constants of the pick's members. Raises ``ExcessError``, which names one of these.
    """
    read = {int(v) for v in variables(condition)}
    names = [n for n in rows.columns if col.is_slot(n) and int(n[1:]) in read]
    some, width = rows.select(names), max(read, default=-1) + 1
    truths = np.zeros(len(row), np.bool_)
    turn, pool.spent.turn = pool.spent.turn, node.id
    try:
        for at in range(0, len(row), PIECE):
            piece = slice(at, at + PIECE)
            asked = some.take(row[piece]).with_(op=member[piece].astype(np.int32))
            truths[piece] = truth(condition, scope(node, asked, pool, width))
    except ExcessError as error:
        error.node = node.id
        raise
    finally:
        pool.spent.turn = turn
    return truths


def by_other_slots(expression: Expression, slots: Mapping[int, int]) -> Expression:
    """A condition over the slots of a pick's input as one over others."""
    match expression:
        case Var(name):
            return Var(str(slots[int(name)]))
        case Call(function, args):
            return Call(function, tuple([by_other_slots(arg, slots) for arg in args]))
        case _:
            return expression


class ResidualPredicates(NamedTuple):
    """Members of a pick that select rows by a condition. ``members`` and ``bits``: the member and
    the bits of each owner that the finder returns; ``every``: all of these bits. ``tells``: the
    condition is true wherever the finder is sure.
    """

    pick: PlanNode[s.Pick]
    finder: PredicateIndexReader
    condition: Expression
    first: int
    members: Longs
    bits: Longs
    every: int
    tells: bool

    def add(self, classes: Longs, rows: Frame, pool: TermLookup, *, all_of: bool) -> None:
        """Adds the bits of the members that want each row to its ``classes``. ``all_of``: also if
        the row already has some.
        """
        leaves = self.finder.leaves(rows, pool)
        for low, high in pairwise(_ROUNDS):
            lacking = (classes & self.every) != self.every if all_of else classes == 0
            open_ = np.flatnonzero(lacking)
            size = max(_PAIRS // max(min(high - low, len(self.members)), 1), 64)
            for at in range(0, len(open_), size):
                part = open_[at : at + size]
                part_leaves = (leaves[0][part], leaves[1][part])
                row, owner, sure = self.finder.owners(part_leaves, ProbeBatch(low, high))
                true = sure if self.tells else np.zeros(len(sure), np.bool_)
                self._ask(classes, rows, (part[row], owner - self.first, true), pool)

    def _ask(
        self, classes: Longs, rows: Frame, pairs: tuple[Longs, Longs, Bools], pool: TermLookup
    ) -> None:  # fmt: skip
        """Adds the bits of pairs of a row and a member, of which some are known to be ``true``."""
        row, positions, true = pairs
        left = np.flatnonzero(~true)
        if len(left):
            members = self.members[positions[left]]
            true[left] = true_of(self.pick, self.condition, rows, row[left], members, pool=pool)
        np.bitwise_or.at(classes, row[true], self.bits[positions[true]])


_PAIRS = register(f"{__name__}._PAIRS", 1 << 21)
"""Pairs that are found at once, at most, but for those of a few rows."""
