"""LSBench's queries over a generated social network: the engine says what the reference says,
whatever the partitions and epochs.

By default some users for a minute; with ``LEVADA_CONFORMANCE`` (``make conformance``) more of them
for longer.
"""

from __future__ import annotations

import os
from functools import cache

import pytest
from generated import said, speaks
from lsbench import POSTS, Network, case, friendships, streams

from levada.testing.compare import same
from levada.testing.reference_model import Report

WHOLE = bool(os.environ.get("LEVADA_CONFORMANCE"))
NETWORK = (
    Network(users=300, friends=6, channels=30, tags=20, seconds=300, acts=10)
    if WHOLE
    else Network()
)
CASE = case(NETWORK)


@cache
def judged() -> dict[str, list[Report]]:
    """What the reference says."""
    return CASE.expected()


@cache
def found(partitions: int, rows: int) -> dict[str, list[Report]]:
    """What an engine says with all queries."""
    return said(CASE, epoch_rows=rows, partitions=partitions)


@pytest.mark.long
@pytest.mark.parametrize("name", [query.name for query in CASE.queries])
def test_it_says_what_the_reference_says(name: str) -> None:
    expected = judged()[name]
    for partitions, rows in ((1, 61), (4, 173)):
        assert same(expected, found(partitions, rows)[name]) is None
    assert sum(speaks([report]) for report in expected) > 1, "several reports"


def test_a_few_are_known_by_many_and_say_more() -> None:
    network = Network(users=400, seconds=200)
    known = sorted((len(friends) for friends in friendships(network, 1)), reverse=True)
    assert known[0] > 8 * known[200], "a power law has a long tail"
    names = {
        f"<http://example.org/u{u}>"
        for u, f in enumerate(friendships(network, 1))
        if len(f) >= known[40]
    }
    said_by = [
        element.triples[0].split()[0]
        for element in streams(network)[POSTS]
        if "creator_of" in element.triples[0]
    ]
    assert sum(user in names for user in said_by) > 0.2 * len(said_by)
