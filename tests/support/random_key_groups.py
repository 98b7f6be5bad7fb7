"""Group tables by lot: what moves before each epoch, and among how many partitions; and runs of
others of which little is read, however small they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np

from levada.checkpoint.key_group_tables import Dealing
from levada.operators.state import checksummed_frames, join_state
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin

MOST = 4  # partitions


def by_lot(seed: int) -> Dealing:
    """Before each epoch: nothing moves, or some groups, or all, among so many partitions."""

    def deal(epoch: int, table: GroupTable) -> GroupTable | None:
        rng = np.random.default_rng((seed, epoch))
        parts = int(rng.choice((table.partitions, *range(1, MOST + 1))))
        share = rng.choice((0.0, 0.01, 0.5, 1.0))
        if not share and parts == table.partitions:
            return None
        to = table.partition.astype(np.int32)
        moved = (rng.random(table.groups) < share) | (to >= parts)
        to[moved] = rng.integers(0, rng.integers(1, parts + 1), np.count_nonzero(moved))
        other = np.flatnonzero(to != deal_round_robin(table.groups, parts).partition).astype(
            np.int32
        )
        return GroupTable(1, table.groups, parts, other, to[other])

    return deal


@contextmanager
def looked_up(*, small: bool) -> Iterator[None]:
    """With ``small``, small runs and frames of others are read as large ones are: what is looked
    up, by blocks.
    """
    with ExitStack() as patched:
        if small:
            for module, name, value in (
                (join_state, "MAX_WHOLE_RUN_ROWS", 0),
                (join_state, "MAX_ROWS_PER_KEY", 0),
                (join_state, "MOSTLY", 2.0),
                (checksummed_frames, "MIN_BLOCKWISE_BYTES", 64),
                (checksummed_frames, "BLOCK", 6),
            ):
                patched.enter_context(patch.object(module, name, value))
        yield
