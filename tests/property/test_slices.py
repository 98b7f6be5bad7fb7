"""GROUP BYs over the same rows are folded once for all of them, and each says what it says alone.

Sets of other windows, functions, conditions and starts come and go while a stream with repeated
triples and disorder is read, in each mode of sharing and in several on one checkpoint, and are
compared with the naive reference, which knows of each query alone. Where slices pay is not asked
in half of the sets, so that these are made of few rows, too. 8 sets; ``LEVADA_CASES`` is another
number, of more queries. Some sets are always the same, and have slices for sure, also in state:
how often windows are put together from these is counted, and how often slices become one.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.core import query_limits
from levada.core.event_time import Window, WindowKind
from levada.core.rdf_terms import XSD
from levada.operators.aggregation import shared_slices
from levada.runtime.task import exchange
from levada.testing.reference_model import Element, ReferenceSql, Row, literal
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings, counters
from support.generators.case import CaseQuery
from support.generators.elements import elements
from support.generators.grouped import FUNCTIONS, body, grouped_sets
from support.generators.put_together import Cut, Put
from support.generators.sketches import STREAM
from support.generators.texts import Asked, Drawn, rspql
from support.generators.vocabulary import NUMBERS, SUBJECTS, TRIPLES, decimal, iri
from support.generators.windows import Clause

SETS = int(os.environ.get("LEVADA_CASES", "0"))
SMALL = "1MB,theta=200"  # pieces of some rows each
PLAIN = NUMBERS
ODD = (
    *(literal(1), literal(1.5), decimal("2.5"), literal(4)),
    *(f'"{text}"^^<{XSD}double>' for text in ("NaN", "INF")),
    *('"1"', '"01"', '"1"@en', iri("a")),
)
"""Numbers that are none or without an end; what is no number."""
LARGE = (*ODD, literal(2**53), literal(2**53 + 1))
"""Numbers that no double tells apart: rows are picked one by one."""
pytestmark = pytest.mark.timeout(0)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One stream."""
    lateness = draw(st.sampled_from((0, 0, 1500)))
    stream = draw(elements(lateness=lateness, least=6))
    cuts = sorted(draw(st.integers(0, len(stream))) for _ in range(PHASES - 1))
    return World({STREAM: stream}, {STREAM: cuts}, lateness)


class Counted:
    """``slice_for_readers``, which counts how often there were none, and some."""

    def __init__(self) -> None:
        self.none = self.some = 0

    def __call__(self, *given: Any) -> object:
        found = shared_slices.slice_for_readers(*given)
        self.none += found is None
        self.some += found is not None
        return found


@pytest.mark.long
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
        with (
            patch.object(exchange, "FEWER", most),
            patch.object(exchange, "slice_for_readers", counted),
        ):
            check(coming, world, shared, mixed=mixed, epoch_rows=rows, memory=memory)

    with ExitStack() as stack:
        stack.enter_context(patch.object(query_limits, "PAGE", 1))
        put = Put(stack)
        each()
    print(f"slices were made {counted.some} times, and {counted.none} times did not pay;")
    print(f"{put.reports} reports of {put.sets} sets, {put.joined} slices that became one")
    assert counted.some or SETS < 100, "rows are folded once for several"
    assert put.reports or SETS < 100, "windows are put together from slices"


WINDOWS = (
    *((2000, 1000, 0, None), (3000, 1000, 0, None), (4000, 2000, 0, 500), (2500, 500, 0, 1250)),
    *((60_000, 20_000, 0, None), (3000, 1000, 1500, None), (250, 250, 0, None)),
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("pattern", "function"),
    [("?x :p ?v", "MAX(?v)"), ("?x :p ?v . ?x :q ?y", "AVG(?v)")],
)
def test_windows_of_one_function_are_put_together_from_slices(pattern: str, function: str) -> None:
    queries = [
        asked(f"q{i}", body(pattern, ""), function, Clause("step", length, step, to=to), t0)
        for i, (length, step, to, t0) in enumerate(WINDOWS)
    ]
    stream = tuple(Element(i * 40, TRIPLES[i * 5 % 24 : i * 5 % 24 + 1]) for i in range(150))
    coming = [Coming(query, i % 2, PHASES - (i == 2)) for i, query in enumerate(queries)]
    with ExitStack() as stack:
        put = Put(stack)
        world = World({STREAM: stream}, {STREAM: (50, 100)})
        mixed = ("relax", "off", "relax", "exact")
        check(coming, world, {"relax": Counter()}, mixed=mixed, epoch_rows=10)
    assert put.reports > put.sets, "several windows have the same slices"
    assert put.joined > 0, "what only long windows want is one slice"


@pytest.mark.long
@pytest.mark.parametrize("conditions", [("",), ("?v > 1", "?v > 2.5", "?v > 3", "")])
def test_slices_and_cells_under_a_bound_are_put_together_range_by_range(
    conditions: Sequence[str],
) -> None:
    queries = [
        asked(
            f"q{i}{j}",
            body("?x :p ?v", condition),
            "MAX(?v)",
            Clause("step", length, step, to=to),
            t0,
        )
        for i, condition in enumerate(conditions)
        for j, (length, step, to, t0) in enumerate(WINDOWS[: 5 if len(conditions) == 1 else 2])
    ]
    triples = [
        f"{iri(f's{n * 7 % 60}')} {iri('p')} {NUMBERS[n % len(NUMBERS)]}" for n in range(420)
    ]
    stream = tuple(Element(i * 20, (triple,)) for i, triple in enumerate(triples))
    coming = [Coming(query, i % 2) for i, query in enumerate(queries)]
    world = World({STREAM: stream}, {STREAM: (150, 300)})
    with ExitStack() as stack:
        stack.enter_context(patch.object(query_limits, "PAGE", 1))
        stack.enter_context(patch.object(exchange, "FEWER", 1000.0))
        put, cut = Put(stack), Cut(stack)
        check(coming, world, {"relax": Counter()}, epoch_rows=15, memory="1MB,theta=2000")
    assert put.reports > 0, "windows are put together from slices"
    assert bool(put.cells) is (len(conditions) > 1), "and of cells where there are conditions"
    assert cut.deepest >= 2, "the groups of a report are taken range by range"
    assert cut.pieces > 0, "and so are pieces that become one, which stay apart"


@pytest.mark.parametrize("pattern", ["?x :p ?v", "?x :p ?v . ?x :q ?y"])
def test_windows_and_functions_of_dense_rows_have_slices_in_common(pattern: str) -> None:
    windows = ((2000, 1000, None), (3000, 1000, None), (4000, 2000, 500), (2500, 500, 1250))
    queries = [
        asked(f"q{i}", body(pattern, ""), FUNCTIONS[i], Clause("step", length, step), t0)
        for i, (length, step, t0) in enumerate(windows)
    ]
    stream = tuple(Element(i * 20, TRIPLES[i % 24 : i % 24 + 1]) for i in range(240))
    shared, counted = counters(), Counted()
    coming = [Coming(query, i % 2, PHASES - (i == 2)) for i, query in enumerate(queries)]
    with patch.object(exchange, "slice_for_readers", counted):
        check(coming, World({STREAM: stream}, {STREAM: (80, 150)}), shared)
    assert counted.some, "rows are folded once for several"


VALUES = (
    "",
    "?v > 1",
    "?v > 2",
    "?v >= 2.5",
    "?v < 5",
    "?v = 1.5e0",
    "?v > 1 && ?v <= 4",
    "2 > ?v",
)
ENDLESS = ("?v > 1", "?v < 'INF'^^xsd:double", "?v = 'NaN'^^xsd:double", "?v > 9007199254740993")
CHOSEN = ("?x = :a", "?x = :b", "?x IN (:c, :a)", "sameTerm(?x, :c)", "?x = :d")
BOTH = ("?x = :a && ?v > 1", "?x = :b && ?v > 2", "?x = :a && ?v > 4")


@pytest.mark.long
@pytest.mark.parametrize(
    ("conditions", "values", "pattern"),
    [
        (VALUES, PLAIN, "?x :p ?v"),
        (VALUES, ODD, "?x :p ?v . ?x :q ?y"),
        (ENDLESS, LARGE, "?x :p ?v"),
        ((*CHOSEN, *BOTH), ODD, "?x :p ?v"),
    ],
)
def test_rows_are_folded_once_for_many_conditions(
    conditions: Sequence[str], values: Sequence[str], pattern: str
) -> None:
    functions = ("COUNT(*)", "COUNT(?v)", "MIN(?v)", "MAX(?v)", "SUM(?v)", "AVG(?v)")
    windows = (Clause("step", 2000, 1000), Clause("step", 3000, 1500))
    queries = [
        asked(f"q{i}", body(pattern, condition), functions[i % (6 if values is PLAIN else 2)],
              windows[i % 5 == 4], None)
        for i, condition in enumerate(conditions)
    ]  # fmt: skip
    triples = [f"{iri(s)} {iri('p')} {v}" for v in values for s in SUBJECTS]
    triples += [f"{iri(s)} {iri('q')} {iri(o)}" for s in SUBJECTS for o in SUBJECTS[:2]]
    random.Random(7).shuffle(triples)
    stream = tuple(Element(i * 30, (triples[i % len(triples)],)) for i in range(150))
    shared, counted = counters(), Counted()
    coming = [Coming(query, i % 2, PHASES - (i == 2)) for i, query in enumerate(queries)]
    with (
        patch.object(exchange, "FEWER", 1000.0),
        patch.object(exchange, "slice_for_readers", counted),
    ):
        check(coming, World({STREAM: stream}, {STREAM: (50, 90)}), shared)
    assert shared["relax"]["picked"], "conditions are taken out"
    assert bool(counted.some) is (values is not LARGE), "rows are folded once for several"


def test_rows_of_tables_are_folded_once_for_many_conditions() -> None:
    conditions = (
        "l.v > 1",
        "l.v >= 2.5",
        "l.v < 4",
        "l.v > 2 And l.v < 7",
        "l.n = 'x'",
        "l.n = 'y'",
    )
    queries = [tuples(f"q{i}", where) for i, where in enumerate(conditions)]
    values = ((1, 1.0, "x"), (2, 2.5, "y"), (1, 9.0, "x"), (3, 7.0, "y"), (2, 3.0, "z"))
    rows = tuple(Row(i * 50, values[i * 7 % 5]) for i in range(120))
    schemas = {"A": {"k": "integer", "v": "double", "n": "string"}}
    shared, counted = counters(), Counted()
    coming = [Coming(query, i % 2, PHASES - (i == 2)) for i, query in enumerate(queries)]
    world = World({"A": rows}, {"A": (40, 80)}, schemas=schemas)
    with (
        patch.object(exchange, "FEWER", 1000.0),
        patch.object(exchange, "slice_for_readers", counted),
    ):
        check(coming, world, shared)
    assert shared["relax"]["picked"] and counted.some, "rows are folded once for several"


def tuples(name: str, where: str) -> CaseQuery:
    """A GROUP BY of tuples."""
    head = "Select l.k As k, Count(*) As n, Sum(l.v) As s From"
    tail = f"Where {where} Group By l.k"
    window = Window(WindowKind.CLOSE_OPEN, 2000, 1000)
    reference = ReferenceSql(
        f"{head} l {tail}",
        {"l": ("A", window)},
        {"A": {"k": "integer", "v": "double", "n": "string"}},
        {"k": "integer", "n": "integer", "s": "double"},
        "RSTREAM",
    )
    text = f"Rstream({head} A [Range 2 Seconds Slide 1 Second] As l {tail})"
    return CaseQuery(name, text, "cql", {}, reference)


def asked(name: str, body: str, function: str, clause: Clause, t0: int | None) -> CaseQuery:
    """A GROUP BY of subjects."""
    head = Asked(f"SELECT ?x ({function} AS ?n)", " GROUP BY ?x")
    options: dict[str, object] = {} if t0 is None else {"t0": t0}
    return rspql(Drawn(name, head, body, {"w": (STREAM, clause)}, options, "RSTREAM"))
