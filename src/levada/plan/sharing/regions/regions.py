"""Regions of a network: which there are, how far they are from each other, which of them a query
may share operators with (STREAMREUSE, locality mask).

    region=east         its results go to the region east; it shares with queries of east
    region=east+west    its results go to east; it shares with queries of both
    region=east+any     its results go to east; it shares with all
    not said            its results go anywhere; it shares with all

An operator of a query without a region is in all of them. Regions are the places of a machine file
(``engine/placing/regions``), names, or those that streams name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from levada.core.frozen import frozen
from levada.errors import UsageError, near

ANY = "any"
FAR = 1.0
"""What is between two regions where nothing says how far they are from each other."""


@frozen
class Regions:
    """The regions of an engine; (): those that its streams name. ``delays``: from row to column;
    (): all are equally far from each other.
    """

    names: tuple[str, ...] = ()
    delays: tuple[tuple[float, ...], ...] = ()

    def delay(self, one: str, other: str) -> float:
        """How far it is from one region to another; "" is everywhere.

        >>> Regions(("a", "b"), ((0.0, 3.0), (2.0, 0.0))).delay("b", "a"), Regions().delay("a", "b")
        (2.0, 1.0)
        """
        if "" in (one, other) or one == other:
            return 0.0
        if not self.delays:
            return FAR
        return self.delays[self.names.index(one)][self.names.index(other)]

    def check_stream(self, stream: str, region: str) -> None:
        """Whether there is the region of a stream. Raises ``UsageError``."""
        if region and self.names and region not in self.names:
            raise UsageError(
                f"The stream {stream} is in the region {region}, and there is none of that name.",
                hint=near(region, self.names),
            )


class Reach(NamedTuple):
    """Where a query's results go (``home``, "": anywhere); the other regions whose operators it may
    share, of ``all`` any.
    """

    home: str
    others: tuple[str, ...]
    all: bool

    @staticmethod
    def parse(said: str) -> Reach:
        """By the text of the option, which has been read.

        >>> Reach.parse("east+west"), Reach.parse("")
        (Reach(home='east', others=('west',), all=False), Reach(home='', others=(), all=True))
        """
        home, *others = said.split("+")
        named = tuple([name for name in others if name != ANY])
        return Reach(home, named, not home or ANY in others)

    def has(self, region: str) -> bool:
        """Whether operators of a region may be shared: those that are everywhere always."""
        return self.all or region in ("", self.home, *self.others)


def check_reach(query: str, said: str, regions: Regions, of_streams: Collection[str]) -> None:
    """Whether there are the regions of a query. Raises ``UsageError``."""
    reach = Reach.parse(said)
    known = regions.names or tuple(sorted({*filter(None, of_streams)}))
    for name in (reach.home, *reach.others):
        if name and name not in known:
            named = f"The query {query} names the region {name}, and there is"
            if not known:
                hint = "Give a stream one (region=), or the engine some: regions=east,west."
                raise UsageError(f"{named} no region.", hint=hint)
            raise UsageError(f"{named} none of that name.", hint=near(name, known))
