"""Classifies partitions: suppliers are above one threshold of occupancy, consumers below another,
and neutral ones between (Parallel windowed joins, W14).

Hysteresis: a partition that took groups in the last reorganization gives none in this one, and one
that gave takes none. So no group oscillates before the effect of the last move is measured.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from levada.core.array_types import Doubles
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions


class Kind(StrEnum):
    """The role of a partition in a reorganization."""

    SUPPLIER = "supplier"
    NEUTRAL = "neutral"
    CONSUMER = "consumer"


def classes(
    occupancy: Doubles, options: BalanceOptions, gave: Collection[int], took: Collection[int]
) -> list[Kind]:
    """Returns the class of each partition. ``gave`` and ``took``: those of the last
    reorganization.
    """
    return [_kind(f, options, p in gave, p in took) for p, f in enumerate(occupancy.tolist())]


def _kind(occupancy: float, options: BalanceOptions, gave: bool, took: bool) -> Kind:
    if occupancy > options.supplier_threshold:
        return Kind.NEUTRAL if took else Kind.SUPPLIER
    if occupancy < options.consumer_threshold:
        return Kind.NEUTRAL if gave else Kind.CONSUMER
    return Kind.NEUTRAL
