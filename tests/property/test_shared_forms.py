"""Queries that differ in the forms of their conditions below a join share it: one beside none, such
that no index tells, those of parts on the right of OPTIONAL and MINUS.

Each set is run in each mode over three phases, and compared with the naive reference; how many
joins there are is counted. ``LEVADA_CASES`` has more of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from unittest.mock import patch

import pytest

from levada.core.frame import Frame
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation import shared_slices
from levada.operators.aggregation.slicing import cell_membership
from levada.plan.execution.slice_readers import Readers
from levada.plan.sharing.sharing_modes import Sharing
from levada.runtime.task import exchange
from levada.testing.compare import same
from levada.testing.reference_model import Element, Row
from support.dynamic_queries import PHASES, Coming, World, check, counters, run
from support.generators.cql import SCHEMAS
from support.generators.cql_sketches import CqlSketch
from support.generators.grouped import body
from support.generators.sketches import STREAM, Sketch
from support.generators.texts import Asked, Drawn, rspql
from support.generators.windows import Clause
from support.query_dsl import at, query

pytestmark = pytest.mark.timeout(0)
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
PAIR = ("?x :p ?v", "?x :q ?y")
CLAUSE = Clause("step", 4000, 2000)
MANY = bool(os.environ.get("LEVADA_CASES"))


def sketched(conditions: Sequence[str | None], **said: object) -> list[Coming]:
    """A query for each, of which a third comes in each phase."""
    base = Sketch(PAIR, shown=(0, 1, 2), clause=CLAUSE)
    fields = {**base.__dict__, **said}
    return [
        Coming(Sketch(**{**fields, "condition": one}).query(f"q{i}"), i % PHASES)
        for i, one in enumerate(conditions)
    ]


def world(stream: Sequence[Element], *cuts: int) -> World:
    return World({STREAM: stream}, {STREAM: cuts})


def judged(coming: Sequence[Coming], world: World, **options: object) -> Mapping[str, Counter[str]]:
    """What is shared, by mode, of queries that say what they are to say."""
    shared = counters()
    check(coming, world, shared, **options)  # type: ignore[arg-type]
    return shared


def judged_by_off(coming: Sequence[Coming], world: World) -> Mapping[str, Counter[str]]:
    """The same, of queries that say what they say with ``off``: of dates and durations beside
    numbers the reference says something else.
    """
    shared = counters()
    got = {mode: run(coming, world, [mode] * (PHASES + 1), shared[mode]) for mode in shared}
    for each in coming:
        own = {mode: answers.reports[each.query.name] for mode, answers in got.items()}
        for mode, reports in own.items():
            difference = same(own["off"], reports)
            assert difference is None, f"{mode}: {each.query.text}\n{difference}"
    say = [any(r.solutions for r in got["off"].reports[one.query.name]) for one in coming]
    assert 3 * sum(say) > 2 * len(say), "most say something"
    return shared


NUMBERS = [at(300 * i, f":x{i % 3} :p {i % 7} ; :q :{'abc'[i % 3]}") for i in range(24)]


def test_a_condition_beside_none_is_one_join() -> None:
    """On one variable, on another, on both, and none."""
    told = (
        None,
        "?v > 2",
        "?y = :a",
        "?v > 4 && ?y IN (:a, :b)",
        None,
        "?v < 5",
        "?v >= 1 && ?v < 4",
    )
    shared = judged(sketched(told), world(NUMBERS, 8, 15))
    assert shared["relax"]["there"] <= 2 * PHASES, "the first has its own, the others share one"
    assert shared[Sharing.CONTAINMENT]["picked"], (
        "what has a condition is contained in what has none"
    )


VALUES = (
    "1", '"01"', "2.5", '"a"', '"ab"', '"b"@en', "true", '"2026-01-01"^^xsd:date', ":a",
    '"PT1H"^^xsd:duration', '"NaN"^^xsd:double', '"x"^^xsd:integer',
    '"INF"^^xsd:double', "9007199254740993", '"2026-01-01T00:00:00.0"^^xsd:dateTime',
    '"2026-01-01T00:00:00Z"^^xsd:dateTime',
)  # fmt: skip
MIXED = [at(250 * i, f":x{i % 3} :p {v} ; :q :{'abc'[i % 3]}") for i, v in enumerate(VALUES * 2)]
OTHERS = (
    None, "?v != 1", "?v != :a", "?v NOT IN (1, :a)", "?v IN (1, 2.5)", '?v < "b"', '?v >= "ab"',
    '?v < "2026-02-01"^^xsd:date', '?v != "PT1H"^^xsd:duration', "?v = true", "?v > 1 || ?v = :a",
    'STRSTARTS(STR(?v), "a")', 'STRSTARTS(STR(?v), "2")', 'REGEX(STR(?v), "^[ab]")', "!(?v > 1)",
    'CONTAINS(STR(?v), "b")', 'LANG(?v) = "en"', "ISIRI(?v)", "?v + 1 > 2",
    "?v > 1 && ?v != 2.5",
    'STRSTARTS(?v, "b")', '"a" <= STR(?v) && STR(?v) < "b"', 'STR(?v) = "01"',
    '?v >= "2026-01-01T00:00:00"^^xsd:dateTime', '?v < "2026-02-01T00:00:00"^^xsd:dateTime',
    '?v > "2026-01-01"^^xsd:date && ?v <= "2026-01-01"^^xsd:date', 'STRSTARTS(STR(?v), "2026-")',
    'REGEX(STR(?v), "^20*[0-9]")', 'REGEX(?v, "^ab?$")', "COALESCE(?v + 1, 0) = 0", "?y != ?v",
    "IF(?v > 1, ?y = :a, ?y = :b)",
    'DATATYPE(?v) = xsd:date',
)  # fmt: skip


@pytest.mark.long
def test_conditions_of_any_form_are_one_join() -> None:
    """Errors are false; NaN is no number; what a literal is decides, not how it is written."""
    shared = judged_by_off(sketched(OTHERS if MANY else OTHERS[::2]), world(MIXED, 10, 21))
    exact, relax = (shared[mode]["there"] for mode in ("exact", "relax"))
    assert exact > 3 * PHASES and relax <= 3 * PHASES, "those of two inputs stand above the joins"


ZONED = [
    f'"{text}"^^xsd:{kind}'
    for kind, texts in (
        ("dateTime", ("2026-01-01T00:00:00", "2026-01-01T00:00:00.50", "2025-12-31T24:00:00")),
        ("dateTime", ("2026-01-01T00:00:00Z", "2026-01-01T12:00:00+14:00", "2026-01-01")),
        ("date", ("2026-01-01", "2026-01-01Z", "2026-01-01-14:00", "2025-12-30", "2026-02-30")),
    )
    for text in texts
]


def test_constants_of_one_text_may_have_a_time_zone_or_not() -> None:
    """Texts that differ in a constant are planned once, by the first one's order."""
    told = [f"?v {word} {one}" for word in ("<", ">=", "=") for one in (ZONED * 2)[::2]]
    stream = [at(250 * i, f":x{i % 3} :p {v} ; :q :a") for i, v in enumerate(ZONED * 2)]
    coming = sketched(told if MANY else told[::2])
    shared = counters()
    modes = ("off", "relax")
    got = {m: run(coming, world(stream, 7, 15), [m] * (PHASES + 1), shared[m]) for m in modes}
    for each in coming:
        off, relax = (got[mode].reports[each.query.name] for mode in modes)
        assert same(off, relax) is None, each.query.text
    assert any(r.solutions for reports in got["relax"].reports.values() for r in reports)
    assert shared["relax"]["there"] <= 2 * PHASES < shared["off"]["there"]


@pytest.mark.long
def test_so_are_those_of_three_patterns_windows_and_lives() -> None:
    """A condition in the middle of a join of three; windows of other lengths beside."""
    patterns = ("?x :p ?v", "?x :q ?y", "?y :r ?s")
    clauses = (CLAUSE, Clause("range", 30_000), Clause("range", 1000), Clause("now"))
    told = (None, "?v != 2", '?s != "1"', "?v + ?v > 4", '?v != 2 && REGEX(?s, "[12]")', "?v > 3")
    coming = [
        Coming(
            Sketch(patterns, one, clause, shown=(0, 1, 3), output=output).query(f"q{i}"),
            i % 2, PHASES - i % 3 % 2, life=(None, None, 4001)[i % 3],
        )
        for i, (one, clause, output) in enumerate(
            (one, clauses[(i + j) % 4], ("RSTREAM", "ISTREAM")[(i + j) % 2])
            for j in range(2) for i, one in enumerate(told)
        )
    ]  # fmt: skip
    stream = [
        at(ts, f":x{i % 2} :p {i % 5} ; :q :y{i % 2} . :y{i % 2} :r \"{i % 4}\"")
        for i, ts in enumerate((0, 100, 900, 2000, 2000, 3100, 7000, 7900, 8000, 20_000, 20_500))
    ]  # fmt: skip
    shared = judged(
        coming, world(stream, 4, 8), mixed=("relax", "exact", "relax", Sharing.CONTAINMENT)
    )
    assert 2 * shared["relax"]["there"] < shared["exact"]["there"]


@pytest.mark.long
def test_columns_that_may_be_null_are_told_by_any_form() -> None:
    told = ("{0}.k <> 3", "{0}.n <> 'x'", "{0}.n >= 'b'", "{0}.v + {0}.k > 4",
            "{0}.k > 2 Or {0}.v > 1",
            "{0}.v <> {0}.k", "{0}.k > 1")  # fmt: skip
    clauses = (Clause("step", 3000, 1000), Clause("range", 30_000))
    found = [
        Coming(CqlSketch(("A", "A"), clauses, of).query(f"q{i}"), i % 2)
        for i, of in enumerate(((), *(((0, one),) for one in told)))
    ]
    numbers, words = (3, 2, None, 5, 0), ("x", "y", "b", "a b")
    rows = [
        Row(400 * i, (numbers[i % 5], (0.5, 7.0, None)[i % 3], words[i % 4])) for i in range(18)
    ]
    shared = judged(found, World({"A": rows}, {"A": (5, 12)}, 0, {}, {"A": SCHEMAS["A"]}))
    assert 2 * shared["relax"]["there"] < shared["exact"]["there"], f"{shared}"


RIGHT = (
    "OPTIONAL {{ WINDOW :w {{ ?x :q ?y . ?y :r ?s {} }} }}",
    "MINUS {{ WINDOW :w {{ ?x :q ?y . ?y :r ?s {} }} }}",
    "FILTER EXISTS {{ WINDOW :w {{ ?x :q ?y . ?y :r ?s {} }} }}",
    "FILTER NOT EXISTS {{ WINDOW :w {{ ?x :q ?y . ?y :r ?s {} }} }}",
)
ONLY = ("", "FILTER(?s = 1)", "FILTER(?s != 1)", "FILTER(?s > 1)", "FILTER(?s IN (0, 2))")


@pytest.mark.parametrize("output", ["RSTREAM", pytest.param("ISTREAM", marks=pytest.mark.long)])
def test_joins_on_the_right_of_what_decides_are_one(output: str) -> None:
    """Rows from before a newcomer's start are nobody's partners."""
    texts = [(right, only) for only in (ONLY if MANY else ONLY[::2]) for right in RIGHT]
    coming = [
        Coming(
            query(
                f"SELECT ?x ?v{' ?s' * right.startswith('OPTIONAL')}",
                "WINDOW :w { ?x :p ?v } " + right.format(only),
                windows={"w": CLAUSE}, output=output, name=f"q{i}",
            ),
            i % PHASES,
        )
        for i, (right, only) in enumerate(texts)
    ]  # fmt: skip
    stream = [
        at(ts, f":x{i % 3} :p {i % 2} ; :q :y{i % 2} . :y{i % 2} :r {i % 4}")
        for i, ts in enumerate((0, 700, 900, 1900, 2100, 3900, 4100, 5100, 7000, 7900, 8000, 9000))
    ]  # fmt: skip
    modes = ("relax", "exact", "relax", Sharing.CONTAINMENT)
    shared = judged(coming, world(stream, 4, 8), mixed=modes if MANY else ())
    assert 2 * shared["relax"]["there"] <= shared["exact"]["there"], f"{shared}"


def test_group_bys_that_differ_in_texts_fold_cells() -> None:
    """Cells are leaves of an index, of texts as of numbers."""
    told = ('STR(?v) < "3"', 'STRSTARTS(STR(?v), "1")', 'STR(?v) >= "2" && STR(?v) < "5"')
    asked = Asked("SELECT ?x (SUM(?v) AS ?n)", " GROUP BY ?x")
    window = {"w": (STREAM, CLAUSE)}
    coming = [
        Coming(rspql(Drawn(f"q{i}", asked, body("?x :p ?v", one), window, {}, "RSTREAM")), i % 2)
        for i, one in enumerate(told * 2)
    ]
    shared = counters()
    stream = [at(50 * i, f":x{i % 3} :p {i % 7}") for i in range(150)]
    found = list[object]()

    def seen(readers: Readers, rows: Frame, pool: TermLookup) -> cell_membership.IndexLeaves | None:
        found.append(cell_membership.match_conditions(readers, rows, pool))
        return found[-1]  # type: ignore[return-value]

    with (
        patch.object(exchange, "FEWER", 1000.0),
        patch.object(shared_slices, "match_conditions", seen),
    ):
        got = {
            mode: run(coming, world(stream, 50, 100), [mode] * (PHASES + 1), shared[mode])
            for mode in ("off", "relax")
        }
    for each in coming:
        off, relax = (got[mode].reports[each.query.name] for mode in ("off", "relax"))
        assert same(off, relax) is None and any(report.solutions for report in relax)
    assert any(one is not None for one in found), "rows are folded by cell"


AGES: dict[str | None, list[str]] = {
    None: [f'<http://e/x{i}> <http://e/age> "{i % 4}"^^{INTEGER}' for i in range(6)]
}


def test_static_rows_are_there_for_newcomers() -> None:
    """Found: of static rows a relaxed join kept those that its first queries wanted, for good."""
    told = ("?z > 2", "?z = 2", "?z < 9", "?x = :x1", "?x = :x2", "?x != :x1", "?v > 2", "?v < 2")
    coming = [
        Coming(
            query(
                "SELECT ?x ?v ?z",
                f"WINDOW :w {{ ?x :p ?v }} ?x :age ?z FILTER({one})",
                windows={"w": CLAUSE},
                name=f"q{i}",
            ),
            i % PHASES,
        )
        for i, one in enumerate(told)
    ]
    stream = [at(450 * i, f":x{i % 6} :p {i % 4}") for i in range(24)]
    shared = judged(coming, World({STREAM: stream}, {STREAM: (8, 16)}, 0, AGES))
    assert shared["relax"]["relaxed"]
