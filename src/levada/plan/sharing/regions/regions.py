"""Regions of a network: their names, their distances, and the regions with which a query may share
operators (STREAMREUSE, locality mask).

    region=east         its results go to the region east; it shares with queries of east
    region=east+west    its results go to east; it shares with queries of both
    region=east+any     its results go to east; it shares with all
    without the option  its results go anywhere; it shares with all

An operator of a query without a region is in all of them. Regions are the places of a machine file
(``engine/placement``), names, or the regions of streams.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from levada.core.frozen import frozen
from levada.errors import UsageError, near

ANY = "any"
DEFAULT_DISTANCE = 1.0
"""The distance of two regions without a configured delay."""


@frozen
class Regions:
    """The regions of an engine; (): those of its streams.

    ``delays``: from row to column; (): all regions are equally far apart.
    """

    names: tuple[str, ...] = ()
    delays: tuple[tuple[float, ...], ...] = ()

    def delay(self, one: str, other: str) -> float:
        """Returns the distance of two regions; "" is everywhere.

        >>> Regions(("a", "b"), ((0.0, 3.0), (2.0, 0.0))).delay("b", "a"), Regions().delay("a", "b")
        (2.0, 1.0)
        """
        if "" in (one, other) or one == other:
            return 0.0
        if not self.delays:
            return DEFAULT_DISTANCE
        return self.delays[self.names.index(one)][self.names.index(other)]

    def check_stream(self, stream: str, region: str) -> None:
        """Checks that the region of a stream exists. Raises ``UsageError``."""
        if region and self.names and region not in self.names:
            raise UsageError(
                f"The stream {stream} is in the region {region}, and there is none of that name.",
                hint=near(region, self.names),
            )


class Reach(NamedTuple):
    """The region of a query's results (``home``, "": anywhere), and the other regions for sharing.

    ``all``: it shares with all regions.
    """

    home: str
    others: tuple[str, ...]
    all: bool

    @staticmethod
    def parse(said: str) -> Reach:
        """Parses the text of the option, which has been validated.

        >>> Reach.parse("east+west"), Reach.parse("")
        (Reach(home='east', others=('west',), all=False), Reach(home='', others=(), all=True))
        """
        home, *others = said.split("+")
        named = tuple([name for name in others if name != ANY])
        return Reach(home, named, not home or ANY in others)

    def has(self, region: str) -> bool:
        """Whether operators of a region may be shared; those without a region always may."""
        return self.all or region in ("", self.home, *self.others)


def check_reach(query: str, said: str, regions: Regions, of_streams: Collection[str]) -> None:
    """Checks that the regions of a query exist. Raises ``UsageError``."""
    reach = Reach.parse(said)
    known = regions.names or tuple(sorted({*filter(None, of_streams)}))
    for name in (reach.home, *reach.others):
        if name and name not in known:
            named = f"The query {query} names the region {name}, and there is"
            if not known:
                hint = "Give a stream one (region=), or the engine some: regions=east,west."
                raise UsageError(f"{named} no region.", hint=hint)
            raise UsageError(f"{named} none of that name.", hint=near(name, known))
