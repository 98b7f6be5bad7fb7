"""Queries that are made of each other share what they have in common, and each says what it says
alone.

They come and go while streams with repeated triples and disorder are read, in each mode of sharing
and in several on one checkpoint, and are compared with the naive reference, which knows of each
query alone, and one of a set with a run of its own (``coming``). What is shared is counted, so that
a test of nothing fails. 40 sets and 18 of CQL, of up to 10 queries; ``LEVADA_CASES`` is another
number of each, of up to 40 queries, and of sets with a bound of rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from levada.operators.matching import pattern_table
from levada.plan.execution import plan
from levada.plan.execution.pattern_text import MOST_COUNTED
from levada.plan.execution.plan import FULL
from levada.plan.topology import catalog_members
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings, counters
from support.generators.case import CaseQuery
from support.generators.cql import SCHEMAS
from support.generators.cql_sketches import VALUES, cql_sketched_sets
from support.generators.elements import elements, rows
from support.generators.sketches import STREAM, sketched_sets
from support.generators.vocabulary import STATIC

SETS = int(os.environ.get("LEVADA_CASES", "0"))
MOST = 40 if SETS else 10
"""The most queries of a set."""
PARTS = 2
ALL_PARTS = [pytest.param(i, marks=[pytest.mark.long] * (i > 0)) for i in range(PARTS)]
pytestmark = pytest.mark.timeout(0)

mixed_modes = st.lists(st.sampled_from(MODES), min_size=PHASES + 1, max_size=PHASES + 1)
latenesses = st.sampled_from((0, 0, 1500))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One stream, and static graphs for the dialects that merge these with windows."""
    lateness = draw(latenesses)
    stream = draw(elements(lateness=lateness, least=6))
    return World({STREAM: stream}, {STREAM: _cuts(draw, len(stream))}, lateness, STATIC)


@st.composite
def tuple_worlds(draw: st.DrawFn) -> World:
    """Three streams of tuples."""
    lateness = draw(latenesses)
    streams = {}
    for name, schema in SCHEMAS.items():
        values = st.tuples(*(VALUES[kind] for kind in schema.values()))
        streams[name] = draw(rows(values, lateness=lateness, base=0, gap=False))
    cuts = {name: _cuts(draw, len(found)) for name, found in streams.items()}
    return World(streams, cuts, lateness, {}, SCHEMAS)


def _cuts(draw: st.DrawFn, size: int) -> list[int]:
    return sorted(draw(st.integers(0, size)) for _ in range(PHASES - 1))


def judge(
    queries: st.SearchStrategy[list[CaseQuery]], worlds: st.SearchStrategy[World], number: int,
    first: int, **options: Any,
) -> dict[str, Counter[str]]:  # fmt: skip
    """Judges so many sets, which follow from ``first``, in all modes; what is shared."""
    shared = counters()

    @seed(first)
    @settings(
        max_examples=number,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(comings(queries), worlds, mixed_modes, st.integers(0, 9), st.sampled_from((FULL, 2)))
    def each(
        coming: Sequence[Coming], world: World, mixed: Sequence[str], alone: int, full: int
    ) -> None:
        with full_with(full):
            check(coming, world, shared, alone, mixed, **options)

    each()
    print(f"{shared}")
    return shared


@contextmanager
def full_with(places: int) -> Iterator[None]:
    """Nodes take no newcomers with so many places; the patterns of full ones are never few."""
    few = MOST_COUNTED if places == FULL else 0
    with (
        patch.object(plan, "FULL", places),
        patch.object(catalog_members, "FULL", places),
        patch.object(pattern_table, "MOST_COUNTED", few),
    ):
        yield


def is_shared(shared: Mapping[str, Counter[str]]) -> None:
    """A third of the joins is shared, and a third relaxed; of few sets at least some are."""
    off, exact, relax = (shared[mode] for mode in ("off", "exact", "relax"))
    assert shared["containment"]["picked"], f"some are contained in others: {shared}"
    assert off["there"] == off["needed"] and not off["picked"] + exact["picked"]
    assert relax["there"] < exact["there"] and relax["picked"], f"some are relaxed: {shared}"
    assert relax["asked"] or SETS < 100, f"some have conditions of other forms: {shared}"
    least = 3 if SETS else 6
    assert relax["there"] * least <= relax["needed"] * (least - 1), f"joins are shared: {shared}"
    assert relax["relaxed"] * least >= relax["needed"], f"joins are relaxed: {shared}"


@pytest.mark.long
@pytest.mark.parametrize("part", ALL_PARTS)
def test_each_says_what_it_says_alone(part: int, random_seed: int) -> None:
    sets = (SETS or 40) // PARTS
    is_shared(judge(sketched_sets(MOST), worlds(), sets, PARTS * random_seed + part))


@pytest.mark.long
@pytest.mark.parametrize("part", ALL_PARTS)
def test_each_says_in_cql_what_it_says_alone(part: int, random_seed: int) -> None:
    sets = (SETS or 18) // PARTS
    is_shared(judge(cql_sketched_sets(MOST), tuple_worlds(), sets, PARTS * random_seed + part))


@pytest.mark.long
def test_those_with_too_many_rows_are_suspended_and_the_others_go_on(random_seed: int) -> None:
    shared = judge(sketched_sets(10), worlds(), SETS or 10, random_seed, max_rows=3)
    assert sum(counts["suspended"] for counts in shared.values()), f"some are: {shared}"
