"""How many partitions there are to be: the degree of declustering (Parallel windowed joins, W27).

More, where suppliers outnumber consumers by beta; fewer, where there is no supplier. The paper does
not say which node leaves and when the rule that shrinks at rest comes to an end. Here: after
some quiet reorganizations, and only to as many as have their work done in ``supplier_threshold`` of
the time that an epoch may take; more come first where work does not fit into all of that time. So
what makes partitions leave, and what brings them back, lie a factor of two apart. Under a backlog
none leaves. Numbers of partitions are dense, so it is the last ones that leave, and groups go to
others by their weights; of what is there, partitions that are new get the same part of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from levada.core.array_types import Doubles, Ints
from levada.plan.execution.key_group_table import GroupTable
from levada.runtime.rebalancing.partition_classes import Kind
from levada.runtime.rebalancing.partition_load import Measured
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions


def wants_more(measured: Measured, kinds: Sequence[Kind], options: BalanceOptions) -> bool:
    """Whether suppliers outnumber consumers by beta, or there is a backlog behind the stages."""
    suppliers, consumers = (kinds.count(k) for k in (Kind.SUPPLIER, Kind.CONSUMER))
    if not measured.hurried:
        return suppliers > options.beta * consumers
    busiest = float(measured.seconds.max())
    # else it waits for what is not divided: the driver, the reading
    return 0 < busiest >= options.supplier_threshold * measured.span


def degree(
    measured: Measured, kinds: Sequence[Kind], options: BalanceOptions, most: int, quiet: int
) -> int:
    """The number of partitions from now on; ``quiet``: the reorganizations without a supplier up
    to this one, ``most``: that there may be (0: as many as there are).
    """
    now = len(measured.seconds)
    if not most:
        return now
    if wants_more(measured, kinds, options):
        wanted = (
            2 * now if measured.hurried else max(_partitions_needed(measured, options), now + 1)
        )
        return max(min(wanted, most), now)
    if measured.hurried or quiet < options.quiet:
        return now
    return min(max(_partitions_needed(measured, options), options.least_partitions), now)


def _partitions_needed(measured: Measured, options: BalanceOptions) -> int:
    """How many have the work done in the part of an epoch's time that is meant for it."""
    time = options.supplier_threshold * measured.available
    return max(math.ceil(float(measured.seconds.sum()) / time), 1) if time > 0 else 1


def spread(table: GroupTable, weights: Doubles, parts: int) -> Ints:
    """The partition of each group over another number of them."""
    over = _fewer if parts < table.partitions else _groups_for_new
    return over(table, weights, parts)


def _fewer(table: GroupTable, weights: Doubles, parts: int) -> Ints:
    """The groups of those that leave, heaviest first, to and fro over those that stay, from the
    idlest on.
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
    """Of each partition's groups, heaviest first, those in the places of new partitions go."""
    out = table.partition.astype(np.int32)
    order = np.lexsort((-weights, out))
    first = np.searchsorted(out[order], np.arange(table.partitions))
    place = (np.arange(len(order)) - first[out[order]]) % parts
    goes = place >= table.partitions
    out[order[goes]] = place[goes]
    return out
