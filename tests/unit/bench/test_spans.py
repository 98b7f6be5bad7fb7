"""Sets of values, against plain sets over a few half integers."""

from __future__ import annotations

import pytest
from bench.papers.streamreuse.model.value_intervals import (
    Segments,
    Spans,
    between,
    greater,
    less,
    points,
    values,
)
from hypothesis import given, settings
from hypothesis import strategies as st

VALUES = st.integers(0, 6)
DOMAIN = [n / 2 for n in range(-2, 16)]


def _between(ends: tuple[int, int]) -> Spans:
    return between(min(ends), max(ends))


ONE = st.one_of(
    st.builds(values, VALUES, VALUES),
    st.tuples(VALUES, VALUES).map(_between),
    st.builds(less, VALUES),
    st.builds(greater, VALUES),
)
SPANS = st.lists(ONE, max_size=3).map(lambda found: _union(found))


def _union(found: list[Spans]) -> Spans:
    whole = values()
    for one in found:
        whole = whole | one
    return whole


def inside(found: Spans) -> set[float]:
    return {v for v in DOMAIN if found.has(v)}


@settings(max_examples=50)
@given(SPANS, SPANS)
def test_unions_and_intersections_are_those_of_sets(one: Spans, other: Spans) -> None:
    assert inside(one | other) == inside(one) | inside(other)
    assert inside(one & other) == inside(one) & inside(other)


@settings(max_examples=50)
@given(SPANS, SPANS)
def test_cover_is_inclusion_and_equal_sets_are_equal(one: Spans, other: Spans) -> None:
    assert one.covers(other) == (inside(one) >= inside(other))
    assert (one == other) == (inside(one) == inside(other))
    assert one.hull().covers(one)


@settings(max_examples=50)
@given(st.lists(SPANS, min_size=1, max_size=5), st.lists(st.integers(0, 4), max_size=3), SPANS)
def test_segments_tell_which_sets_hold_both_ends(
    sets: list[Spans], gone: list[int], asked: Spans
) -> None:
    held, there = Segments(), dict(enumerate(sets))
    for number, found in there.items():
        for part in found.parts:
            held.add(*part, 1 << number)
    for number in gone:
        held.remove(1 << number)
        there.pop(number, None)
    for low, high in asked.parts:
        expected = {
            number
            for number, found in there.items()
            if any(a <= low < b for a, b in found.parts)
            and any(a < high <= b for a, b in found.parts)
        }
        assert held.holding(low, high) == sum(1 << number for number in expected)
    cuts = {cut for found in there.values() for part in found.parts for cut in part}
    assert set(held.cuts) <= cuts, "no cut is left of what is gone"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (values("b", "a"), "'a' or 'b'"),
        (between(1, 2) | values(7), "[1, 2] or 7"),
        (less(3), "< 3"),
        (greater(3), "> 3"),
        (greater(3) & less(5), "(3, 5)"),
        (values(), "never"),
        (less(3) | between(3), "any"),
    ],
)
def test_what_is_told_of_them(found: Spans, text: str) -> None:
    assert str(found) == text


def test_only_single_values_are_points() -> None:
    assert points(values(3, 1)) == [1, 3]
    assert points(values(1) | between(2, 3)) is None and points(less(2)) is None
