"""Which partitions give and which take: suppliers are above one threshold of occupancy, consumers
below another, and neutral is what lies between (Parallel windowed joins, W14).

Hysteresis: who has taken in the last reorganization gives nothing in this one, and who has given
takes nothing. So no group goes to and fro before it is known what the last move did.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from levada.core.array_types import Doubles
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions


class Kind(StrEnum):
    """What a partition is in a reorganization."""

    SUPPLIER = "supplier"
    NEUTRAL = "neutral"
    CONSUMER = "consumer"


def classes(
    occupancy: Doubles, options: BalanceOptions, gave: Collection[int], took: Collection[int]
) -> list[Kind]:
    """The class of each partition; ``gave`` and ``took``: those of the last reorganization."""
    return [_kind(f, options, p in gave, p in took) for p, f in enumerate(occupancy.tolist())]


def _kind(occupancy: float, options: BalanceOptions, gave: bool, took: bool) -> Kind:
    if occupancy > options.supplier_threshold:
        return Kind.NEUTRAL if took else Kind.SUPPLIER
    if occupancy < options.consumer_threshold:
        return Kind.NEUTRAL if gave else Kind.CONSUMER
    return Kind.NEUTRAL
