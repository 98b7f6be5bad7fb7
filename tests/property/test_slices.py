"""GROUP BYs over the same rows are folded once for all of them, and each says what it says alone.

Sets of other windows, functions, conditions and starts come and go while a stream with repeated
triples and disorder is read, in each mode of sharing and in several on one checkpoint, and are
compared with the naive reference, which knows of each query alone. Where slices pay is not asked
in half of the sets, so that these are made of few rows, too. 8 sets; ``LEVADA_CASES`` is another
number, of more queries. One set is always the same, and has slices for sure.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.case import CaseQuery
from cases.elements import elements
from cases.grouped import FUNCTIONS, grouped_sets
from cases.sketches import STREAM
from cases.texts import Asked, Drawn, rspql
from cases.vocabulary import TRIPLES
from cases.windows import Clause
from coming import MODES, PHASES, Coming, World, check, comings, counters
from levada.operators.group import slices
from levada.runtime.task import exchange
from levada.testing.question import Element

SETS = int(os.environ.get("LEVADA_CASES", "0"))
pytestmark = pytest.mark.timeout(0)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One stream."""
    lateness = draw(st.sampled_from((0, 0, 1500)))
    stream = draw(elements(lateness=lateness, least=6))
    cuts = sorted(draw(st.integers(0, len(stream))) for _ in range(PHASES - 1))
    return World({STREAM: stream}, {STREAM: cuts}, lateness)


class Counted:
    """``slices.sliced``, which counts how often there were none, and some."""

    def __init__(self) -> None:
        self.none = self.some = 0

    def __call__(self, *given: Any) -> object:
        found = slices.sliced(*given)
        self.none += found is None
        self.some += found is not None
        return found


def test_each_says_what_it_says_alone() -> None:
    shared, counted = counters(), Counted()

    @settings(
        max_examples=SETS or 8,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        comings(grouped_sets(9 if SETS else 5)),
        worlds(),
        st.lists(st.sampled_from(MODES), min_size=PHASES + 1, max_size=PHASES + 1),
        st.sampled_from((exchange.FEWER, 1000.0)),
    )
    def each(coming: Sequence[Coming], world: World, mixed: Sequence[str], most: float) -> None:
        with patch.object(exchange, "FEWER", most), patch.object(exchange, "sliced", counted):
            check(coming, world, shared, mixed=mixed)

    each()
    print(f"slices were made {counted.some} times, and {counted.none} times did not pay")
    assert counted.some or not SETS, "rows are folded once for several"


@pytest.mark.parametrize("body", ["?x :p ?v", "?x :p ?v . ?x :q ?y"])
def test_windows_and_functions_of_dense_rows_have_slices_in_common(body: str) -> None:
    windows = ((2000, 1000, None), (3000, 1000, None), (4000, 2000, 500), (2500, 500, 1250))
    queries = [
        asked(f"q{i}", body, FUNCTIONS[i], Clause("step", length, step), t0)
        for i, (length, step, t0) in enumerate(windows)
    ]
    stream = tuple(Element(i * 20, TRIPLES[i % 24 : i % 24 + 1]) for i in range(240))
    shared, counted = counters(), Counted()
    coming = [Coming(query, i % 2, PHASES - (i == 2)) for i, query in enumerate(queries)]
    with patch.object(exchange, "sliced", counted):
        check(coming, World({STREAM: stream}, {STREAM: (80, 150)}), shared)
    assert counted.some, "rows are folded once for several"


def asked(name: str, body: str, function: str, clause: Clause, t0: int | None) -> CaseQuery:
    """A GROUP BY of subjects."""
    head = Asked(f"SELECT ?x ({function} AS ?n)", " GROUP BY ?x")
    options: dict[str, object] = {} if t0 is None else {"t0": t0}
    text = f"WINDOW :w {{ {body} }}"
    return rspql(Drawn(name, head, text, {"w": (STREAM, clause)}, options, "RSTREAM"))
