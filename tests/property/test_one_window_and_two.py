"""Queries that join the same patterns, one of them in one window, another in two or three, share
the join, and each says what it says alone.

They come and go, in each mode of sharing and in several on one checkpoint, over repeated triples
and disorder, and are compared with the naive reference. Which of them read the rows of a join with
times of each pattern is counted, so that a test of nothing fails. ``LEVADA_CASES`` is another
number of sets.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.operators import operator_registry
from levada.operators.operator_context import Inputs, Operator, OperatorContext
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.testing.reference_model import Row
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings, counters
from support.generators.case import CaseQuery
from support.generators.cql import SCHEMAS
from support.generators.cql_sketches import CqlSketch
from support.generators.elements import elements
from support.generators.windows import Clause
from support.query_dsl import S, at, query

SETS = int(os.environ.get("LEVADA_CASES", "0"))
pytestmark = pytest.mark.timeout(0)

PATTERNS = (
    ("?x :q ?y", "?x :p ?v"), ("?x :q ?y", "?y :q ?z"), ("?x :q {term}", "?x :p ?v"),
    ("?x :q ?y", "?y :p ?v", "?y :r ?s"), ("?x :q ?y", "?x :p ?v", "?y :q {term}"),
    ("{term} :q ?y", "?y :p ?v", "?y :q ?z"),
)  # fmt: skip
CLAUSES = (
    Clause("step", 4000, 2000), Clause("range", 3000), Clause("range", 1000),
    Clause("step", 3000, 1000), Clause("range", 30_000), Clause("step", 5000, 1500, to=1000),
    Clause("range", 4000, to=1000), Clause("now"), Clause("all"), Clause("step", 2000, 2000),
)  # fmt: skip
OTHERS = (Clause("count", count=3), Clause("session", 1000))
"""Windows in which rows do not count by their times alone."""
CONDITIONS = ("", "", "FILTER(?v > {n})", "FILTER(?v >= {n} && ?v < 5)", "FILTER(?v != {n})",
              "FILTER(?y = {term})", "BIND(?v + 1 AS ?more)")  # fmt: skip
TAILS = ("", "", "", "OPTIONAL { WINDOW :{w} { ?x :r ?o } }",
         "MINUS { WINDOW :{w} { ?x :q :c } }",
         "FILTER EXISTS { WINDOW :{w} { ?x :p ?e . ?x :q ?f } }")  # fmt: skip
HEADS = ("*", "*", "*", "?x", "?x ?v", "DISTINCT ?x", "?x (COUNT(*) AS ?n)", "(COUNT(*) AS ?n)")
OPTIONS = ({}, {}, {}, {"t0": 500}, {"t0": 1300}, {"bounds": "(]"}, {"report": "change"},
           {"report": "periodic:1700ms"}, {"report": "nonempty"})  # fmt: skip


@st.composite
def windowed(draw: st.DrawFn) -> list[CaseQuery]:
    """Queries of one join or two, whose patterns stand in one window or in several."""
    forms = draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2, unique=True))
    many = draw(st.integers(3, 8))
    return [_one(draw, f"q{i}", draw(st.sampled_from(forms))) for i in range(many)]


def _one(draw: st.DrawFn, name: str, patterns: Sequence[str]) -> CaseQuery:
    own = [f"w{draw(st.sampled_from((0, 0, 0, 1, 1, 2)))}" for _ in patterns]
    if draw(st.booleans()):
        own = own[:1] * len(patterns)
    few = CLAUSES if draw(st.integers(0, 9)) else OTHERS
    windows = {w: draw(st.sampled_from(few)) for w in dict.fromkeys(own)}
    groups = [
        f"WINDOW :{w} {{ {' . '.join(p for p, of in zip(patterns, own, strict=True) if of == w)} }}"
        for w in draw(st.permutations([*windows]))
    ]
    there = {name for name in ("?v", "?x", "?y") if any(name in p for p in patterns)}
    condition, tail = draw(st.sampled_from(CONDITIONS)), draw(st.sampled_from(TAILS))
    head = draw(st.sampled_from(HEADS))
    if any(name in condition and name not in there for name in ("?v", "?y")):
        condition = ""
    if not {"?x", "?v"} & {*head.split()} <= there:
        head = "*"
    group = " ".join([*groups, tail if "?x" in there else "", condition])
    words = {"{term}": draw(st.sampled_from((":a", ":b", ":c"))), "{w}": own[0],
             "{n}": draw(st.sampled_from("125"))}  # fmt: skip
    for word, said in words.items():
        group = group.replace(word, said)
    return query(
        f"SELECT {head}", group, "GROUP BY ?x" if head.startswith("?x (") else "", name=name,
        windows=windows, output=draw(st.sampled_from(("RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM"))),
        **draw(st.sampled_from(OPTIONS)),
    )  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A stream with repeated triples and disorder."""
    lateness = draw(st.sampled_from((0, 0, 1500)))
    stream = draw(elements(lateness=lateness, least=6))
    cuts = sorted(draw(st.integers(0, len(stream))) for _ in range(PHASES - 1))
    return World({S: stream}, {S: cuts}, lateness)


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many rows of joins with times of each pattern were of one window, by who put these
    together.
    """
    found = Counter[str]()
    for step in (s.ByWindow, s.Report, s.Panes, s.Changes, s.Deltas):
        monkeypatch.setitem(
            operator_registry.OPERATORS, step, _counted(operator_registry.OPERATORS[step], found)
        )
    return found


def _counted(own: Operator, found: Counter[str]) -> Operator:
    def counted(node: PlanNode[Any], inputs: Inputs, env: OperatorContext) -> Frame | None:
        by_window = isinstance(node.step, s.ByWindow)
        rows = () if by_window else node.step.rows or ()
        if (frame := inputs[0]) is not None and (by_window or len({*rows}) < len(rows)):
            found[type(node.step).__name__] += frame.n
        return own(node, inputs, env)

    return counted


mixed_modes = st.lists(st.sampled_from(MODES), min_size=PHASES + 1, max_size=PHASES + 1)


def test_each_says_what_it_says_alone(together: Counter[str]) -> None:
    shared = counters()

    @settings(
        max_examples=SETS or 2, deadline=None, print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(comings(windowed()), worlds(), mixed_modes, st.integers(0, 7))
    def each(coming: Sequence[Coming], of: World, mixed: Sequence[str], alone: int) -> None:
        check(coming, of, shared, alone, mixed)

    each()
    print(shared, together)
    assert together.total() or SETS < 20, f"some have rows of one window: {shared}"


@pytest.mark.long
def test_what_one_window_hides_another_may_show(together: Counter[str]) -> None:
    """Equal triples come again; each is hidden as long as its own window has the one before."""
    long, short = Clause("range", 9000), Clause("range", 1000)
    step, past = Clause("step", 2000, 1000), Clause("range", 4000, to=1000)
    pairs = ((long,), (short,), (step,), (past,), (long, short), (short, long), (step, past),
             (Clause("now"), Clause("all")), (Clause("all"),),
             (Clause("step", 3000, 1000),))  # fmt: skip
    found = []
    for i, clauses in enumerate(pairs):
        windows = dict(zip("wu", clauses, strict=False))
        group = f"WINDOW :w {{ ?x :q ?y }} WINDOW :{[*windows][-1]} {{ ?y :r ?z }}"
        for head, more in (("SELECT *", ""), ("SELECT (COUNT(*) AS ?n)", ""),
                           ("SELECT *", " BIND(STR(?z) AS ?t)")):  # fmt: skip
            one = query(head, group + more, name=f"q{len(found)}", windows=windows,
                        output=("RSTREAM", "ISTREAM", "DSTREAM")[i % 3])  # fmt: skip
            found.append(Coming(one, i % PHASES))
    times = (0, 400, 900, 2500, 2500, 3100, 7000, 7000, 7900, 12_000, 12_500, 22_000)
    stream = [at(ts, (":a :q :b . :b :r :c", ":b :r :c", ":a :q :b")[i % 3])
              for i, ts in enumerate(times)]  # fmt: skip
    shared = counters()
    check(found, World({S: stream}, {S: (4, 8)}), shared)
    assert shared["relax"]["there"] == PHASES, "all share one join"
    assert {*together} == {"ByWindow", "Report", "Panes", "Changes", "Deltas"}


def test_tables_of_cql_have_windows_of_their_own_anyway() -> None:
    """``S [Range 5] a, S [Range 5] b`` beside ``S [Range 5] a, S [Range 9] b``."""
    ranges = ((3000, 3000), (3000, 9000), (9000, 1000), (1000, 1000))
    found = [
        Coming(
            CqlSketch(("A", "A"), tuple([Clause("range", ms) for ms in each])).query(f"q{i}"),
            i % PHASES,
        )
        for i, each in enumerate(ranges)
    ]
    rows = [Row(700 * i, (i % 3, float(i % 2), "x")) for i in range(16)]
    shared = counters()
    check(found, World({"A": rows}, {"A": (5, 10)}, 0, {}, {"A": SCHEMAS["A"]}), shared)
    assert shared["relax"]["there"] <= 2 * PHASES
