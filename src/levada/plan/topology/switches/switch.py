"""A switch that is under way, as the catalog of a plan version has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """A query's second Emit (``node``, ``member``), muted. ``start``: from there on it counts;
    ``behind``: once all reports up to there are made it may take the place of the first (ms of
    event time). ``since``: the first plan version that has it.
    """

    name: str
    node: int
    member: int
    start: int
    behind: int
    since: int
