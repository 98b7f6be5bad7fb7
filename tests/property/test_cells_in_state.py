"""GROUP BYs that differ in conditions on a number keep cells, and each says what it says alone.

Sets of thresholds, ranges and equalities come and go while a stream is read, in each mode of
sharing and in several on one checkpoint, and are compared with the naive reference. 2 sets, in
``relax`` and in modes in turn; ``LEVADA_CASES`` is another number, of more queries and in all
modes. That reports are put together from cells is counted.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.core import query_limits
from levada.core.rdf_terms import XSD
from levada.runtime.task import exchange
from levada.testing.reference_model import Element, literal
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings, counters
from support.generators.elements import elements
from support.generators.grouped import body, celled_sets
from support.generators.put_together import Put
from support.generators.sketches import STREAM
from support.generators.texts import Asked, Drawn, rspql
from support.generators.vocabulary import NUMBERS, SUBJECTS, decimal, iri
from support.generators.windows import Clause

SMALL = "1MB,theta=200"  # pieces of some rows each
SETS = int(os.environ.get("LEVADA_CASES", "0"))
ODD = (*(f'"{text}"^^<{XSD}double>' for text in ("NaN", "INF")), '"1"', '"01"', iri("a"))
VALUES = (*NUMBERS, literal(2), literal(3), decimal("4.5"), *ODD)
LARGE = (literal(2**53), literal(2**53 + 1))
TRIPLES = tuple(f"{iri(s)} {iri('p')} {v}" for v in VALUES for s in SUBJECTS)
LINKS = tuple(f"{iri(s)} {iri('q')} {iri(o)}" for s in SUBJECTS for o in SUBJECTS)
pytestmark = pytest.mark.timeout(0)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One stream, a dense one mostly; a few have a number that no double tells, and rows that are
    picked one by one.
    """
    lateness = draw(st.sampled_from((0, 0, 1500)))
    large = LARGE if draw(st.integers(0, 7)) == 7 else ()
    triples = (*TRIPLES, *LINKS, *(f"{iri('a')} {iri('p')} {v}" for v in large))
    if draw(st.integers(0, 3)):
        stream = dense(random.Random(draw(st.integers(0, 2**32))), triples, lateness)
    else:
        stream = draw(elements(lateness=lateness, least=6, triples=triples))
    cuts = sorted(draw(st.integers(0, len(stream))) for _ in range(PHASES - 1))
    return World({STREAM: stream}, {STREAM: cuts}, lateness)


def dense(rng: random.Random, triples: Sequence[str], lateness: int) -> tuple[Element, ...]:
    """A stream of many elements, some of them late, others repeated."""
    every = rng.sample(triples, rng.randint(8, len(triples)))
    step, now, found = rng.choice((20, 75, 130)), 0, list[Element]()
    for _ in range(rng.randint(30, 110)):
        now += rng.choice((0, step, step, 2 * step))
        late = rng.randint(0, lateness) if rng.random() < 0.2 else 0
        found.append(Element(max(now - late, 0), tuple(rng.sample(every, rng.randint(1, 3)))))
    return tuple(found)


def test_each_says_what_it_says_alone() -> None:
    shared = counters() if SETS else {"relax": Counter[str]()}

    @settings(
        max_examples=SETS or 2,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        comings(celled_sets(12 if SETS else 6)),
        worlds(),
        st.lists(st.sampled_from(MODES), min_size=PHASES + 1, max_size=PHASES + 1),
        st.sampled_from((exchange.FEWER, 1000.0)),
        st.sampled_from((100_000, 5)),
        st.sampled_from(("", SMALL)),
    )
    def each(
        coming: Sequence[Coming],
        world: World,
        mixed: Sequence[str],
        most: float,
        rows: int,
        memory: str,
    ) -> None:
        with patch.object(exchange, "FEWER", most):
            check(coming, world, shared, mixed=mixed, epoch_rows=rows, memory=memory)

    with ExitStack() as stack:
        stack.enter_context(patch.object(query_limits, "PAGE", 1))
        put = Put(stack)
        each()
    print(f"{put.cells} reports of cells, {put.sets} sets of slices; {put.joined} became one")
    assert put.cells or not SETS, "cells are kept"


CONDITIONS = ("?v > 1", "?v > 2.5", "?v > 4.0e0", "?v > 2.50", "?v > -7", "?v > 9", "?v > 3")


@pytest.mark.parametrize(
    ("pattern", "function"),
    [("?x :p ?v", "SUM(?v)"), ("?x :p ?v . ?x :q ?y", "MIN(?v)")],
)
def test_reports_are_put_together_from_cells(pattern: str, function: str) -> None:
    windows = (Clause("step", 2000, 1000), Clause("step", 5000, 2000))
    asked = Asked(f"SELECT ?x ({function} AS ?n)", " GROUP BY ?x")
    queries = [
        rspql(
            Drawn(f"q{i}", asked, body(pattern, c), {"w": (STREAM, windows[i == 4])}, {}, "RSTREAM")
        )
        for i, c in enumerate(CONDITIONS)
    ]
    triples = (*TRIPLES[: 3 * len(NUMBERS)], *LINKS)
    stream = tuple(Element(i * 60, (triples[i * 7 % len(triples)],)) for i in range(84))
    coming = [Coming(query, i % 3 == 2, PHASES - (i == 1)) for i, query in enumerate(queries)]
    with ExitStack() as stack:
        put = Put(stack)
        stack.enter_context(patch.object(exchange, "FEWER", 1000.0))
        world = World({STREAM: stream}, {STREAM: (28, 56)})
        mixed = ("relax", "off", "relax", "exact")
        check(coming, world, {"relax": Counter()}, mixed=mixed, epoch_rows=10)
    assert put.cells > put.sets, "members that want the same have the same"
    assert put.joined > 0, "what lies alike is one slice"
