"""A partition's state as an epoch begins: its own list of pieces, or, where groups have moved,
what the new table says of the lists of all who had its groups (``windows/state/taken_over``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from levada.model.frame import Frame
from levada.runtime.context import Context, load_groups
from levada.windows.state.pieces import State, read_head
from levada.windows.state.taken_over import Part, taken_over

Opener = Callable[[str], tuple[Mapping[str, Frame], Any]]


def open_state(context: Context, stage: int, partition: int, opener: Opener) -> State:
    """The state of a partition in a stage. Raises ``CheckpointError``."""
    had = partial(_had, context, stage, opener)
    if context.lies and (moved := _moved(context, partition, had)) is not None:
        alike, parts = moved
        head = taken_over(alike, parts) if alike or parts else None
        return State(head, "", opener)
    own = had(partition)
    return State(own and own.head, own.file if own else "", opener)


def _moved(
    context: Context, partition: int, had: Callable[[int], Part | None]
) -> tuple[Part | None, list[Part]] | None:
    """From whom a partition takes the instants of elements, and from whom groups; None: it has
    what it had.
    """
    before, now = load_groups(context.lies), load_groups(context.groups)
    mine = now.partition == partition
    owners = np.unique(before.partition[mine]).tolist()
    if owners == [partition] and (before.partition[~mine] != partition).all():
        return None
    parts = []
    for owner in owners:
        theirs = before.partition == owner
        if (part := had(owner)) is not None:
            groups = None if mine[theirs].all() else theirs & mine
            parts.append(part._replace(groups=groups))
    return had(partition if partition < before.partitions else 0), parts


def _had(context: Context, stage: int, opener: Opener, partition: int) -> Part | None:
    """All that a partition had; None: nothing."""
    name = context.state.get(f"{stage}.{partition}")
    return None if name is None else Part(read_head(opener(name)[1]), name, None)
