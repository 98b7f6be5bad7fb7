"""The sequences of count windows: the rows of a member, or the rows that agree in some slots,
ordered by (ts, canonical text of the whole row).

Texts are compared only where rows of one sequence share an instant: the order across sequences
decides nothing. Cost: a hash probe a row and a sort by counting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs, Words
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.rows.route_rows import key_of
from levada.operators.rows.term_columns import column
from levada.plan.execution.plan import PlanNode


@frozen
class Sequences:
    """Rows by sequence, each one's in order: the sequence ``of`` each row; of each sequence its key
    ``k, h``, where it begins (``starts``) and how many rows it has (``size``).
    """

    rows: Frame
    of: Ints
    k: Words
    h: Words
    starts: Longs
    size: Longs


def in_sequences(node: PlanNode, frame: Frame, pool: TermLookup, keys: Sequence[int]) -> Sequences:
    """Rows of all members as sequences by these slots of input 0."""
    k, h = key_of(frame, keys)
    codes, first = group(k, h)
    order = in_order(frame[col.least(0)], codes)
    rows, of = frame.take(order), codes[order]
    if len(tied := np.flatnonzero(_is_tied(of, rows[col.least(0)]))):
        slots = range(len(node.input_layouts[0].slots))
        rows = rows.take(_by_texts(rows, of, tied, slots, pool))
    size = np.bincount(of, minlength=len(first))
    return Sequences(rows, of, k[first], h[first], np.cumsum(size) - size, size)


def _is_tied(of: Ints, ts: Longs) -> Bools:
    """Whether the row before or behind is of the same sequence and time."""
    same = (of[1:] == of[:-1]) & (ts[1:] == ts[:-1])
    tied = np.zeros(len(of), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    return tied


def _by_texts(rows: Frame, of: Ints, tied: Longs, slots: range, pool: TermLookup) -> Longs:
    """The order in which tied rows are by their texts as well."""
    some = rows.take(tied)
    texts = [column(some, i, pool).texts().fill_null("") for i in slots]
    ranks = [t.rank("dense").to_numpy() for t in reversed(texts)]
    order = np.arange(rows.n)
    order[tied] = tied[in_order(*ranks, some[col.least(0)], of[tied])]
    return order
