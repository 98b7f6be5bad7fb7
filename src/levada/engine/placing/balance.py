"""What an engine was told of balance, as what decides in its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from levada.engine.placing.wish import Learning, Wish
from levada.errors import UsageError
from levada.runtime.balance.balancing import Balancing
from levada.runtime.balance.options import BalanceOptions, balance_of
from levada.runtime.local import cores

Wanted = str | bool | Mapping[str, Any] | BalanceOptions | None
"""off (also nothing), on, "on,choice=random", a mapping of options."""


def balancing_of(
    wanted: Wanted,
    wish: Wish | Learning | None,
    partitions: int | str | None,
    master: str,
    interval: int,
) -> Balancing | None:
    """What moves groups. How many partitions there are it says too, up to the cores of the master,
    if the user does not. ``interval``: the least between two epochs, ms. Raises ``UsageError``,
    also if a placement has the groups.
    """
    options = balance_of(wanted)
    if options is None:
        return None
    who = _placing(wish)
    if who:
        message = f"{who} places groups, and balance would move them."
        raise UsageError(message, hint="Leave one of the two out.")
    most = 0 if isinstance(partitions, int) else cores(master)
    return Balancing(options, most=most, least=interval / 1000)


def _placing(wish: Wish | Learning | None) -> str:
    """What says where groups are; "" if nothing does."""
    if isinstance(wish, Learning):
        return "What a run learns"
    return wish.path if wish is not None and (wish.groups >= 0).any() else ""
