"""What relaxed joins cost, as a status tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from levada.plan.topology.dear import in_vain


@dataclass(frozen=True, slots=True)
class RelaxedStatus:
    """A relaxed join, of late: rows that it was ``given``, pairs that it has ``made``, those that
    some query ``wanted``, rows that queries had of them (``picked``); its work, by what its queries
    would at least have without each other. Where that is large a newcomer has a join of its own.
    """

    join: str
    given: int
    made: int
    wanted: int
    picked: int
    work: float


def relaxed(met: Mapping[str, Sequence[int]]) -> Iterator[RelaxedStatus]:
    """What has been counted of each, by node and member.

    >>> [one.join for one in relaxed({"7 0": [100, 900, 30, 100]})]
    ['Join 7']
    """
    for at, counts in met.items():
        node, member = at.split()
        name = f"Join {node}" + (f" ({member})" if member != "0" else "")
        given, made, wanted, picked = counts
        work = round(in_vain(counts), 2)
        yield RelaxedStatus(name, given, made, wanted, picked, work)
