"""Where a delivery takes a query's reports: a topic, a table.

A target has a place of its own for how far it is, and writes what an epoch gave and that place in
one transaction: so it has each report once, whenever who writes is killed, and nobody must look at
what it has. Opening it ends the transaction that somebody before has left open, and keeps that one
from writing again (fencing). What does not answer is ``TargetAwayError``, and opened again later;
every other ``SinkError`` is for people.
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
    """How far a target is: the last ``epoch`` that it has; the id of the last ``report`` in it
    (MIN: none); ``since``: the plan version that first had the query, which tells apart those that
    came under one name.
    """

    epoch: int = 0
    report: int = MIN
    since: int = 0


@frozen
class Piece:
    """What an epoch gave of a query, and where a target is that has it."""

    query: QueryPlan
    batch: Batch
    position: Position


class Target(Protocol):
    """A topic or a table, for one query of one checkpoint. ``name``: its URL for people, without
    user and password. ``skips``: reports that are gone may be missing. ``whole``: it needs all from
    the query's beginning. ``unwritable``: the results that its format could not hold, until they
    are fetched.
    """

    unwritable: list[Unwritable]

    @property
    def name(self) -> str:
        """Its URL for people."""

    @property
    def skips(self) -> bool:
        """Whether reports that are gone may be missing."""

    @property
    def whole(self) -> bool:
        """Whether it needs all reports from the query's beginning."""

    def check(self, query: str, form: Form, output: Output, variables: tuple[str, ...]) -> None:
        """Raises ``UsageError`` if it cannot hold the results of such a query."""

    def open(self, known: Position | None) -> Position | None:
        """Takes it, and tells how far it is; ``known``: how far the checkpoint knows it to be; None
        of both: nothing was written yet. Raises ``SinkError``.
        """

    def write(self, piece: Piece) -> None:
        """Writes a piece and its position, in one transaction. Raises ``SinkError``: then it is to
        be opened again.
        """

    def close(self) -> None:
        """Gives it free, whatever has happened."""


def skips_of(who: str, options: Mapping[str, Any]) -> bool:
    """Whether reports that are gone are left out (``lost=``). Raises ``UsageError``."""
    lost = str(options.get("lost") or "stop")
    if lost not in _LOST:
        raise UsageError(f"{who}: lost is stop or skip, not {lost}.", hint=near(lost, _LOST))
    return lost == "skip"
