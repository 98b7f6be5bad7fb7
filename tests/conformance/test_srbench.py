"""SRBench's queries over generated stations: the engine says what the reference says, on one
partition and on four, in epochs of any size.

By default a few stations for some hours; with ``LEVADA_CONFORMANCE`` (``make conformance``) more of
them for a day and a half.
"""

from __future__ import annotations

import os
from functools import cache

import pytest
from generated import said, speaks
from srbench import HOUR, Weather, case

from levada.testing.compare import same
from levada.testing.reference_model import Report

WHOLE = bool(os.environ.get("LEVADA_CONFORMANCE"))
WEATHER = Weather(stations=20, span=36 * HOUR, day=24 * HOUR) if WHOLE else Weather()
CASE = case(WEATHER)
SILENT = {"p8"}
"""Published texts that say nothing: Q8 misspells the name of a vocabulary; see docs/dialects.md."""


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
    for partitions, rows in ((1, 401), (4, 997)):
        assert same(expected, found(partitions, rows)[name]) is None
    assert speaks(expected) == (name not in SILENT)
    assert name.startswith("p") or sum(speaks([report]) for report in expected) > 1, (
        "several reports"
    )
