"""The cells that a member wants are together its interval, whoever else wants what."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.array_types import Ints
from levada.core.frame import Frame
from levada.operators.aggregation.slicing.cell_membership import CellIndex, Cells
from levada.operators.aggregation.slicing.cell_tree import Columns
from levada.operators.rows.predicate_index import Entries, Index, PredicateIndexReader
from levada.operators.rows.range_keys import NO_TEXTS, Bounds, RangeKey
from levada.plan.execution.joins import Order

BORDERS = (0.0, 1.0, 2.0, 3.0, 5.0)
INTERVALS = st.tuples(
    st.sampled_from((-np.inf, *BORDERS)), st.sampled_from((*BORDERS, np.inf)), st.booleans(),
    st.booleans(),
)  # fmt: skip
ROWS = st.tuples(st.sampled_from((-1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 7.0)), st.integers(0, 2))


def added(columns: Columns, codes: Ints, count: int) -> Columns:
    """Partials added up."""
    return {name: np.bincount(codes, c, count).astype(np.int64) for name, c in columns.items()}


@given(st.lists(INTERVALS, min_size=1, max_size=9), st.lists(ROWS, min_size=1, max_size=30))
def test_cells_are_what_members_want(
    intervals: list[tuple[float, float, bool, bool]], rows: list[tuple[float, int]]
) -> None:
    low, high, above, below = (np.array(column) for column in zip(*intervals, strict=True))
    n = len(intervals)
    wants = Entries(
        np.zeros(n, np.int32), (), Bounds(low, high, above, below, np.ones(n, np.bool_)),
        np.arange(n),
    )  # fmt: skip
    index = Index.build(wants, by_number=True)
    values, groups = (np.array(column) for column in zip(*rows, strict=True))
    leaf = index.leaves(Frame({"op": np.zeros(len(rows), np.int32)}, len(rows)), (), values)
    wanting = CellIndex(
        PredicateIndexReader((), RangeKey(0, Order.VALUE), index, index, NO_TEXTS),
        np.empty(0, np.int64),
        {},
    )
    cells = Cells.ancestors_of(wanting, leaf, groups)  # each row is a slice
    found = cells.nodes.partials({"n": np.ones(len(rows), np.int64)}, added)["n"]
    place, member = cells.owners
    total = np.zeros((n, 3), np.int64)
    np.add.at(total, (member, groups[cells.nodes.slices[place]]), found[place])
    over = np.where(above[:, None], values > low[:, None], values >= low[:, None])
    under = np.where(below[:, None], values < high[:, None], values <= high[:, None])
    right = np.stack([(over & under)[:, groups == g].sum(axis=1) for g in range(3)], axis=1)
    assert total.tolist() == right.tolist()
