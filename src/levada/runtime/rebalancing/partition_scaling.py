"""Decides the number of partitions: the degree of declustering (Parallel windowed joins, W27).

It grows if suppliers outnumber consumers by beta, and shrinks if there is no supplier. The paper
does not say which node leaves, or when shrinking at rest ends. Here it shrinks after some quiet
reorganizations, to the fewest partitions that finish their work in ``supplier_threshold`` of the
available time of an epoch. It grows if the work does not fit into all of that time. So the
conditions for leaving and returning are a factor of two apart. Under a backlog it does not shrink.
Partition numbers are dense, so the last ones leave, and their groups go to others by weight. New
partitions get the same part of each present one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from levada.core.array_types import Doubles, Ints
from levada.plan.execution.key_group_table import GroupTable
from levada.runtime.rebalancing.partition_load import Kind, Measured
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions


def wants_more(measured: Measured, kinds: Sequence[Kind], options: BalanceOptions) -> bool:
    """Whether suppliers outnumber consumers by beta, or there is a backlog of the stages."""
    suppliers, consumers = (kinds.count(k) for k in (Kind.SUPPLIER, Kind.CONSUMER))
    if not measured.hurried:
        return suppliers > options.beta * consumers
    busiest = float(measured.seconds.max())
    # otherwise it waits for undivided work: the driver, the reading
    return 0 < busiest >= options.supplier_threshold * measured.span


def degree(
    measured: Measured, kinds: Sequence[Kind], options: BalanceOptions, most: int, quiet: int
) -> int:
    """Returns the number of partitions from now on. ``quiet``: the reorganizations without a
    supplier up to this one. ``most``: the largest number (0: the present one).
    """
    now = len(measured.seconds)
    if not most:
        return now
    if wants_more(measured, kinds, options):
        target = (
            2 * now if measured.hurried else max(_partitions_needed(measured, options), now + 1)
        )
        return max(min(target, most), now)
    if measured.hurried or quiet < options.quiet:
        return now
    return min(max(_partitions_needed(measured, options), options.least_partitions), now)


def _partitions_needed(measured: Measured, options: BalanceOptions) -> int:
    """Returns the number of partitions that finish the work in the intended part of an epoch's
    time.
    """
    time = options.supplier_threshold * measured.available
    return max(math.ceil(float(measured.seconds.sum()) / time), 1) if time > 0 else 1


def spread(table: GroupTable, weights: Doubles, parts: int) -> Ints:
    """Assigns each group to a partition, for another number of partitions."""
    moves = _fewer if parts < table.partitions else _groups_for_new
    return moves(table, weights, parts)


def _fewer(table: GroupTable, weights: Doubles, parts: int) -> Ints:
    """Assigns the groups of partitions that leave, heaviest first, to the remaining ones, to and
    fro from the idlest on.
    """
    out = table.partition.astype(np.int32)
    (homeless,) = np.nonzero(out >= parts)
    left = np.bincount(out, weights, minlength=parts)[:parts]
    idlest = np.argsort(left, kind="stable").astype(np.int32)
    to_and_fro = np.concatenate([idlest, idlest[::-1]])
    order = homeless[np.argsort(-weights[homeless], kind="stable")]
    out[order] = to_and_fro[np.arange(len(order)) % len(to_and_fro)]
    return out


def _groups_for_new(table: GroupTable, weights: Doubles, parts: int) -> Ints:
    """Assigns groups of each partition to new partitions, taken from the list of its groups by
    weight.
    """
    out = table.partition.astype(np.int32)
    order = np.lexsort((-weights, out))
    first = np.searchsorted(out[order], np.arange(table.partitions))
    place = (np.arange(len(order)) - first[out[order]]) % parts
    goes = place >= table.partitions
    out[order[goes]] = place[goes]
    return out
