"""The log of the choices for queries that were added and removed: reasons for separate joins, and
regions. ``explain --shared`` shows it; nothing depends on it.

The last ``MAX_ENTRIES`` entries of each kind are kept, so the log does not grow with the number of
queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeVar

import msgspec

from levada.plan.sharing.pending_queries import Order
from levada.plan.sharing.regions.operator_sites import Chosen

MAX_ENTRIES = 200
HIDDEN = "\0"
"""The beginning of names of queries that stand in for others while these are planned."""


class Site(msgspec.Struct):
    """The site of a query, as ``plan.sharing.regions.operator_sites.Chosen``."""

    region: str
    site: str
    candidates: list[dict[str, str | int | float | None]] = []
    masked: dict[str, int] = {}


class ConsideredOrder(msgspec.Struct):
    """A considered join order, as ``plan.sharing.pending_queries.Order``."""

    order: str
    cost: float
    chosen: bool


class StoredDecisions(msgspec.Struct):
    """The content of a journal's file: [plan version, event], and by query the reason for a
    separate join, the site, and the considered join orders. ``failed_migrations``: how often a
    failure of Levada has ended the migrations of a run.
    """

    log: list[tuple[int, str]] = []
    separate_joins: dict[str, str] = {}
    sites: dict[str, Site] = {}
    orders: dict[str, list[ConsideredOrder]] = {}
    failed_migrations: int = 0


@dataclass(slots=True)
class Journal:
    """The journal of a topology. ``new``: it has entries that its file lacks."""

    kept: StoredDecisions = field(default_factory=StoredDecisions)
    new: bool = False

    def record(self, version: int, what: str) -> None:
        """Records an event of this plan version."""
        self.kept.log = [*self.kept.log, (version, what)][-MAX_ENTRIES:]
        self.new = True

    def record_choice(self, version: int, query: str, apart: str, chosen: Chosen | None) -> None:
        """Records the choices for an added query."""
        if apart:
            self.kept.separate_joins = _keep_latest(self.kept.separate_joins, query, apart)
            self.record(version, f"{query} has a join of its own: {apart}")
        if chosen is not None:
            site = Site(
                chosen.region, chosen.site, [asdict(c) for c in chosen.candidates],
                dict(chosen.masked),
            )  # fmt: skip
            self.kept.sites = _keep_latest(self.kept.sites, query, site)
            self.record(version, f"{query} stands in {chosen.site or 'all regions'}")

    def record_orders(self, version: int, query: str, orders: Sequence[Order]) -> None:
        """Records the considered join orders of a query; an event if its own order was
        not chosen.
        """
        considered = [ConsideredOrder(one.order, round(one.cost, 1), one.chosen) for one in orders]
        self.kept.orders = _keep_latest(self.kept.orders, query, considered)
        self.new = True
        for one in considered if len(considered) > 1 else ():
            if one.chosen:
                self.record(version, f"{query} joins {one.order}, as that adds least")

    def hide(self) -> None:
        """Drops the entries of queries that stand in for others."""
        kept = self.kept
        kept.log = [(version, what) for version, what in kept.log if HIDDEN not in what]
        kept.orders = {
            query: orders for query, orders in kept.orders.items() if HIDDEN not in query
        }

    def remove_query(self, query: str) -> None:
        """Drops the entries of a removed query."""
        kept = (self.kept.separate_joins, self.kept.sites, self.kept.orders)
        self.new = self.new or any(query in entries for entries in kept)
        self.kept.orders.pop(query, None)
        self.kept.separate_joins.pop(query, None)
        self.kept.sites.pop(query, None)


def show_orders(orders: Mapping[str, Sequence[ConsideredOrder]]) -> Iterator[str]:
    """Yields lines with the considered join orders, by query."""
    yield from ("orders of joins",) if orders else ()
    for query, looked in orders.items():
        yield f"  {query}"
        for one in looked:
            chosen = ", chosen" if one.chosen else ""
            yield f"    {one.order}: adds {one.cost:,.0f} ns an element{chosen}"


V = TypeVar("V")


def _keep_latest(of: Mapping[str, V], query: str, value: V) -> dict[str, V]:
    others = [(name, each) for name, each in of.items() if name != query]
    return dict([*others, (query, value)][-MAX_ENTRIES:])
