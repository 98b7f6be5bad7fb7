"""Defines the interface of targets to which a delivery writes a query's reports: a topic, a table.

A target stores its own position, and writes the results of an epoch and the position in one
transaction. So it has each report once, whenever the writer is killed, and its content need not be
read. Opening it ends the open transaction of a previous writer, and prevents that one from writing
again (fencing). An unavailable target is ``TargetAwayError``, and is opened again later; every
other ``SinkError`` requires a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.unwritable_results import Unwritable
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.core.query_model import Form, Output
from levada.errors import UsageError, near
from levada.plan.execution.plan import QueryPlan

_LOST = ("stop", "skip")


class Position(msgspec.Struct, frozen=True):
    """The position of a target: the last ``epoch`` in it; the id of the last ``report`` in it (MIN:
    none); ``since``: the plan version that first had the query, which distinguishes queries of one
    name.
    """

    epoch: int = 0
    report: int = MIN
    since: int = 0


@frozen
class Piece:
    """The results of a query in an epoch, and the position of a target that has them."""

    query: QueryPlan
    batch: Batch
    position: Position


class Target(Protocol):
    """A topic or a table, for one query of one checkpoint. ``name``: its URL for people, without
    user and password. ``skips``: dropped reports may be missing. ``whole``: it needs all reports
    from the query's beginning. ``interval_ms``: the results of so long are written together.
    ``unwritable``: the results that its format could not represent,
    until they are fetched.
    """

    unwritable: list[Unwritable]

    @property
    def name(self) -> str:
        """The URL for people."""

    @property
    def skips(self) -> bool:
        """Whether dropped reports may be missing."""

    @property
    def whole(self) -> bool:
        """Whether it needs all reports from the query's beginning."""

    @property
    def interval_ms(self) -> int:
        """The time for which results are gathered into one write, ms; 0: each epoch is one."""

    def check(self, query: str, form: Form, output: Output, variables: tuple[str, ...]) -> None:
        """Raises ``UsageError`` if the target cannot represent the results of such a query."""

    def open(self, known: Position | None) -> Position | None:
        """Opens the target and returns its position. ``known``: the position in the checkpoint.
        None for both: nothing was written yet. Raises ``SinkError``.
        """

    def write(self, piece: Piece) -> None:
        """Writes a piece and its position, in one transaction. Raises ``SinkError``: then open it
        again.
        """

    def close(self) -> None:
        """Closes the target, in any state."""


def skips_of(who: str, options: Mapping[str, Any]) -> bool:
    """Whether dropped reports are skipped (``lost=``). Raises ``UsageError``."""
    lost = str(options.get("lost") or "stop")
    if lost not in _LOST:
        raise UsageError(f"{who}: lost is stop or skip, not {lost}.", hint=near(lost, _LOST))
    return lost == "skip"
