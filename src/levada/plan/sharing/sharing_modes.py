"""The sharing modes of an engine, which all give the same results."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from levada.errors import UsageError, near
from levada.plan.execution.joins import JoinForm
from levada.plan.sharing.regions.regions import Regions

if TYPE_CHECKING:  # checking a query needs none of its operators
    from levada.plan.sharing.join_orders.running_subjoins import Forced
    from levada.plan.statistics.statistics import Measures


class Sharing(StrEnum):
    """How much queries share.

    ``relax``, the default: equal operators, and joins that differ in constants, conditions and
    windows (``share_relaxed_joins``). ``exact``: equal operators alone. ``off``: the intake alone,
    so each query has operators and state of its own. ``containment``, for tests: equal operators,
    and joins whose rows are contained in those of a running join (``containment``).
    """

    OFF = "off"
    EXACT = "exact"
    CONTAINMENT = "containment"
    RELAX = "relax"


DEFAULT = Sharing.RELAX
OFFERED = (Sharing.RELAX, Sharing.EXACT, Sharing.OFF)
"""The modes that users are offered."""


class Planning(NamedTuple):
    """Settings for queries that are added from now on: the sharing mode, the join form, and the
    regions.

    ``measures``: statistics of streams (None: none). ``orders``: overrides join orders, for tests.
    ``looks``: the number of epochs between two searches for better orders of running queries; 0: no
    search.
    """

    sharing: Sharing = DEFAULT
    joins: JoinForm = JoinForm.BINARY
    regions: Regions = Regions()
    measures: Measures | None = None
    orders: Forced | None = None
    looks: int = 64


def sharing_of(word: str) -> Sharing:
    """Returns the mode of this name; a ``Sharing`` is returned as it is. Raises ``UsageError``.

    >>> sharing_of("off").name
    'OFF'
    """
    if not isinstance(word, Sharing) and word not in OFFERED:
        hint = near(word, OFFERED)
        raise UsageError(f"There is no sharing {word or repr(word)}.", hint=hint)
    return Sharing(word)
