"""The options for balance and for the number of partitions, and the policies that follow from
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from levada.core.integer_options import AUTO, CORES, Partitions
from levada.engine.placement.placement_options import LearnPlacementOption, PlacementOption
from levada.errors import UsageError
from levada.runtime.cost_model.partition_count import CORES as CORES_FOLLOWED
from levada.runtime.cost_model.partition_count import FIXED, LOAD, MODEL, PLACEMENT
from levada.runtime.executor import cores
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, By, balance_of

Wanted = str | bool | Mapping[str, Any] | BalanceOptions | None
"""The option ``balance``: off (also None), on, "on,choice=random", or a mapping of options."""


def balancing_of(
    wanted: Wanted,
    wish: PlacementOption | LearnPlacementOption | None,
    partitions: Partitions,
    master: str,
    interval: int,
) -> Balancing | None:
    """Returns the policy that moves groups. It also chooses the number of partitions, up to the
    cores of the master, if the user does not. ``interval``: the least time between two epochs, ms.
    Raises ``UsageError``, also if a placement has the groups.
    """
    options = balance_of(wanted)
    if options is None:
        return None
    who = _placing(wish)
    if who:
        message = f"{who} places groups, and balance would move them."
        raise UsageError(message, hint="Leave one of the two out.")
    _check_number(options, partitions)
    most = 0 if isinstance(partitions, int) else cores(master)
    return Balancing(options, most=most, least=interval / 1000)


def _check_number(options: BalanceOptions, partitions: Partitions) -> None:
    """Raises ``UsageError`` if two options would choose the number of partitions."""
    if partitions == CORES:
        raise UsageError(
            "partitions is cores, and balance says how many partitions there are.",
            hint="Leave partitions out, or say a number.",
        )
    if isinstance(partitions, int) and options.degree == By.MODEL:
        raise UsageError(
            f"partitions is {partitions}, and balance was told degree=model: that the number "
            "follows from what epochs take.",
            hint="Leave one of the two out.",
        )


def degree_by(
    partitions: Partitions,
    wish: PlacementOption | LearnPlacementOption | None,
    balancing: Balancing | None,
) -> str:
    """Returns the policy for the number of partitions during a run.

    >>> degree_by("auto", None, None), degree_by(None, None, None)
    ('model', 'fixed')
    """
    if balancing is not None and not isinstance(partitions, int):
        return MODEL if balancing.by_model else LOAD
    if wish is not None:
        return PLACEMENT
    return {AUTO: MODEL, CORES: CORES_FOLLOWED}.get(str(partitions), FIXED)


def _placing(wish: PlacementOption | LearnPlacementOption | None) -> str:
    """Returns the option that places groups; "" without one."""
    if isinstance(wish, LearnPlacementOption):
        return "What a run learns"
    return wish.path if wish is not None and (wish.groups >= 0).any() else ""
