"""What was chosen for queries when they came and went: a log, why some have joins of their own, in
which region each stands. It is told (``explain --shared``), and nothing goes by it.

Of each kind the last ``MOST`` are kept, so it does not grow with queries that come and go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeVar

import msgspec

from levada.plan.sharing.pending_queries import Order
from levada.plan.sharing.regions.operator_sites import Chosen

MOST = 200


class Site(msgspec.Struct):
    """Where a query stands, as ``plan.sharing.regions.operator_sites.Chosen``."""

    region: str
    site: str
    candidates: list[dict[str, str | int | float | None]] = []
    masked: dict[str, int] = {}


class Looked(msgspec.Struct):
    """An order of joins that was looked at, as ``plan.sharing.pending_queries.Order``."""

    order: str
    cost: float
    chosen: bool


class Kept(msgspec.Struct):
    """What the file of a journal has: [plan version, what happened]; by query why it is apart,
    where it stands, and which orders of its joins were looked at.
    """

    log: list[tuple[int, str]] = []
    apart: dict[str, str] = {}
    sites: dict[str, Site] = {}
    orders: dict[str, list[Looked]] = {}


@dataclass(slots=True)
class Journal:
    """The journal of a topology. ``new``: there is something that its file has not."""

    kept: Kept = field(default_factory=Kept)
    new: bool = False

    def record(self, version: int, what: str) -> None:
        """What the plan of this version has changed."""
        self.kept.log = [*self.kept.log, (version, what)][-MOST:]
        self.new = True

    def record_choice(self, version: int, query: str, apart: str, chosen: Chosen | None) -> None:
        """What was chosen for a query."""
        if apart:
            self.kept.apart = _keep_latest(self.kept.apart, query, apart)
            self.record(version, f"{query} has a join of its own: {apart}")
        if chosen is not None:
            site = Site(
                chosen.region, chosen.site, [asdict(c) for c in chosen.candidates],
                dict(chosen.masked),
            )  # fmt: skip
            self.kept.sites = _keep_latest(self.kept.sites, query, site)
            self.record(version, f"{query} stands in {chosen.site or 'all regions'}")

    def record_orders(self, version: int, query: str, orders: Sequence[Order]) -> None:
        """Which orders of a query's joins were looked at; told where its own was not taken."""
        considered = [Looked(one.order, round(one.cost, 1), one.chosen) for one in orders]
        self.kept.orders = _keep_latest(self.kept.orders, query, considered)
        self.new = True
        for one in considered if len(considered) > 1 else ():
            if one.chosen:
                self.record(version, f"{query} joins {one.order}, as that adds least")

    def remove_query(self, query: str) -> None:
        """A query that has gone."""
        kept = (self.kept.apart, self.kept.sites, self.kept.orders)
        self.new = self.new or any(query in entries for entries in kept)
        self.kept.orders.pop(query, None)
        self.kept.apart.pop(query, None)
        self.kept.sites.pop(query, None)


def show_orders(orders: Mapping[str, Sequence[Looked]]) -> Iterator[str]:
    """The orders of joins that were looked at, by query, in lines."""
    yield from ("orders of joins",) if orders else ()
    for query, looked in orders.items():
        yield f"  {query}"
        for one in looked:
            chosen = ", chosen" if one.chosen else ""
            yield f"    {one.order}: adds {one.cost:,.0f} ns an element{chosen}"


V = TypeVar("V")


def _keep_latest(of: Mapping[str, V], query: str, value: V) -> dict[str, V]:
    others = [(name, each) for name, each in of.items() if name != query]
    return dict([*others, (query, value)][-MOST:])
