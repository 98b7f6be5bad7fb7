"""Joins over count windows of any length are one, and each query has what it has alone: of repeated
triples, some at one instant, in disorder, while queries come and go, in all modes of sharing, on one
checkpoint and in several partitions, beside the naive reference and runs of their own. What is shared
is counted. 8 sets and 4 of CQL; ``LEVADA_CASES`` is another number of each, of up to 20 queries.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.case import CaseQuery
from cases.elements import elements
from cases.sketches import OUTPUTS, STREAM, Sketch, differing, others
from cases.windows import Clause
from coming import MODES, PHASES, Coming, World, check, comings, counters

SETS = int(os.environ.get("LEVADA_CASES", "0"))
pytestmark = pytest.mark.timeout(0)

JOINS = (
    ("?x :q ?y", "?y :q :c"),
    (":a :q ?y", "?y :p ?v"),
    ("?x :q :b", "?x :p ?v", "?x :r ?s"),
    ("?x :q ?y", "?y :q ?x"),
    ("?x :q ?y", "?x :q ?z"),
    ("?x :p ?v", "?x :q ?y"),
    (":a ?x :b", "?y ?x ?v"),
)
TRIPLES = (
    ":a :q :b",
    ":b :q :a",
    ":a :q :c",
    ":b :q :b",
    ":a :p 1",
    ":b :p 2",
    ":a :p 5",
    ':a :r "ab"',
)
OPTIONS = (
    {},
    {},
    {},
    {"t0": 500},
    {"t0": 1300},
    {"report": "periodic:700ms"},
    {"report": "nonempty"},
)
counts = st.integers(1, 9).map(lambda n: Clause("count", count=n))


@st.composite
def sets(draw: st.DrawFn) -> list[CaseQuery]:
    """Queries over one join that differ in how many triples their windows hold, and in more."""
    first = Sketch(draw(st.sampled_from(JOINS)), shown=(0, 1, 2))
    found = []
    for _ in range(draw(st.integers(2, 20 if SETS else 6))):
        one = draw(differing(first)) if draw(st.integers(0, 2)) == 0 else first
        if draw(st.booleans()):
            one = replace(one, patterns=tuple(draw(others(p)) for p in one.patterns))
        found.append(
            replace(
                one,
                clause=draw(counts),
                second=None,
                output=draw(st.sampled_from(OUTPUTS)),
                options=draw(st.sampled_from(OPTIONS)),
                form=draw(st.sampled_from(("select", "select", "distinct", "count"))),
            )
        )
    return [sketch.query(f"q{i}") for i, sketch in enumerate(found)]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A stream of few triples, which are told again and again."""
    lateness = draw(st.sampled_from((0, 0, 1500)))
    stream = draw(elements(lateness=lateness, least=8))
    cuts = sorted(draw(st.integers(0, len(stream))) for _ in range(PHASES - 1))
    return World({STREAM: stream}, {STREAM: cuts}, lateness)


mixed_modes = st.lists(st.sampled_from(MODES), min_size=PHASES + 1, max_size=PHASES + 1)


def test_each_has_what_it_has_alone() -> None:
    shared = counters()

    @settings(
        max_examples=SETS or 8,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(comings(sets()), worlds(), mixed_modes, st.integers(0, 9))
    def each(coming: list[Coming], world: World, mixed: list[str], alone: int) -> None:
        check(coming, world, shared, alone, mixed)

    each()
    print(shared)
    assert shared["relax"]["relaxed"] and not shared["exact"]["picked"]
