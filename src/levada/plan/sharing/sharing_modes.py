"""How much queries share: the modes of an engine, which all give the same results."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from levada.errors import UsageError, near
from levada.plan.execution.join_kinds import JoinForm
from levada.plan.sharing.regions.regions import Regions

if TYPE_CHECKING:  # who only checks a query needs none of its operators
    from levada.plan.sharing.join_orders.running_subjoins import Forced
    from levada.plan.statistics.statistics import Measures


class Sharing(StrEnum):
    """``off``: the intake alone, so that each query has operators and state of its own. ``exact``:
    what is equal. ``containment``: also joins whose rows are among those of a join that runs
    (``containment``). ``relax``: also joins that differ in constants (``relax``).
    """

    OFF = "off"
    EXACT = "exact"
    CONTAINMENT = "containment"
    RELAX = "relax"


DEFAULT = Sharing.EXACT


class Planning(NamedTuple):
    """How queries are planned that come from now on: how much they share, the form of joins, the
    regions; ``share_limit``: the most rows of state of a join that a newcomer relaxes (0: any);
    ``measures``: what is known of streams (None: nothing).
    ``orders``: who says the orders of joins in place of what is measured, for tests. ``looks``: so
    many epochs pass from one look for better orders of queries that run to the next; 0: none is.
    """

    sharing: Sharing = DEFAULT
    joins: JoinForm = JoinForm.BINARY
    regions: Regions = Regions()
    share_limit: int = 0
    measures: Measures | None = None
    orders: Forced | None = None
    looks: int = 64


def sharing_of(word: str) -> Sharing:
    """The mode of this name. Raises ``UsageError``.

    >>> sharing_of("off").name
    'OFF'
    """
    if word not in list(Sharing):
        hint = near(word, list(Sharing))
        raise UsageError(f"There is no sharing {word or repr(word)}.", hint=hint)
    return Sharing(word)
