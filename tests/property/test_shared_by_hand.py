"""Queries that share a join and differ in what might go wrong there: equal triples, windows, values
and terms, constants that meet. Each says what it says alone, in all modes of sharing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from levada.testing.reference_model import Element, Row
from support.dynamic_queries import MODES, PHASES, Coming, World, check, counters
from support.generators.cql import SCHEMAS
from support.generators.cql_sketches import CqlSketch
from support.generators.sketches import Sketch
from support.generators.windows import Clause
from support.query_dsl import RANGE, STREAM, at, query

pytestmark = pytest.mark.timeout(0)


def sketched(sketches: Sequence[Sketch], comes: Sequence[int] = ()) -> list[Coming]:
    """Queries that stay to the end."""
    return [
        Coming(sketch.query(f"q{i}"), comes[i] if comes else 0) for i, sketch in enumerate(sketches)
    ]


def world(stream: Sequence[Element], *cuts: int) -> World:
    """One stream, read in phases that end at these places."""
    return World({STREAM: stream}, {STREAM: cuts})


def test_an_earlier_coming_hides_no_later_one_from_a_newcomer() -> None:
    """Pairs that never count for those that saw both comings do for who saw the second alone."""
    sketch = Sketch(("?x :q ?y", "?y :q ?z"), shown=(0, 2))
    coming = [Coming(sketch.query(f"q{i}"), i) for i in range(PHASES)]
    triples = ("<http://e/b> <http://e/q> <http://e/b>",)
    stream = [Element(ts, triples) for ts in (500, 2500, 3000, 3100, 3200, 7000)]
    shared = counters()
    check(coming, world(stream, 2, 4), shared)
    assert shared["exact"]["there"] < shared["exact"]["needed"]


def test_what_a_long_window_hides_a_short_one_may_show() -> None:
    """An equal triple comes again: to a window without an end it is nothing new."""
    clauses = (Clause("all"), Clause("range", 1000), Clause("step", 2000, 1000), Clause("now"))
    found = sketched([Sketch(("?x :q ?y", "?y :r ?z"), clause=c, shown=(0, 2)) for c in clauses])
    stream = [at(ts, ":a :q :b . :b :r :c") for ts in (0, 500, 2500, 7000, 7000, 7900, 12_000)]
    shared = counters()
    check(found, world(stream, 2, 5), shared)
    assert shared["relax"]["there"] == PHASES, "all share one, whatever their windows"


INFINITE = '"INF"^^xsd:double'


@pytest.mark.long
def test_ranges_are_each_ones_own_whatever_numbers_are() -> None:
    """Borders, other datatypes, what is no number: each says what its own condition says."""
    told = ("?v > 1", "?v >= 1", "?v < 1", "?v <= 1", "?v = 1", "?v > 1 && ?v < 1", "?v >= 0.5",
            "?v > 9007199254740992", "?v >= 9007199254740993", "?v < -1.0e0", "1 < ?v",
            f"?v < {INFINITE}", f"?v = {INFINITE}", f"?v >= {INFINITE}", '?v > "-INF"^^xsd:double',
            f"?v <= {INFINITE}", "?v > 1e999", '?v = "NaN"^^xsd:double', '?v < "NaN"^^xsd:double',
            '?v = "x"^^xsd:integer', "?v = 0", "?v <= -0.0e0", "?v IN (1, :c)",
            '?v IN (9007199254740993, "1")', "?v IN (9007199254740992.0, -0.0e0, 0.5)",
            f'?v IN ({INFINITE}, "NaN"^^xsd:double)', 'sameTerm(?v, 9007199254740993)',
            'sameTerm(?v, "-0.0"^^xsd:double)', '?v IN (:c, "1")')  # fmt: skip
    found = sketched(
        [Sketch(("?x :p ?v", "?x :q ?y"), condition=one, shown=(0, 1)) for one in told],
        [i % PHASES for i in range(len(told))],
    )
    values = ("1", "1.0", "1.0e0", "0.99999999999999999", '"1"', "true", ":c", "2", "-3",
              "9007199254740993", "9007199254740992.0e0", '"NaN"^^xsd:double', '"1"^^xsd:float',
              "0.5", '"INF"^^xsd:double', '"-INF"^^xsd:double', '"-0.0"^^xsd:double',
              '"x"^^xsd:integer')  # fmt: skip
    stream = [at(300 * i, f":x{i % 2} :p {v} ; :q :y{i % 3}") for i, v in enumerate(values * 2)]
    check(found, world(stream, 9, 20), counters())


@pytest.mark.long
def test_ranges_of_instants_and_of_numbers_meet_nobody_elses_rows() -> None:
    """On one variable: conditions on instants, on numbers up to infinity, and on both."""
    told = ('?v > "2026-01-01T00:00:00Z"^^xsd:dateTime',
            '?v < "2026-01-01T00:00:00Z"^^xsd:dateTime',
            '?v >= "2026-01-01T02:00:00+02:00"^^xsd:dateTime', '?v > 5', '?v < 5', "?v >= 1e301",
            '?v = "2026-01-02T00:00:00Z"^^xsd:dateTime',
            '?v > "2025-01-01T00:00:00Z"^^xsd:dateTime'
            ' && ?v <= "2026-01-01T00:00:00Z"^^xsd:dateTime', '?v < 1e300 && ?v > -1e300',
            '?v < "2026-01-01T00:00:00Z"^^xsd:dateTime && ?v > 3',
            '?v > "2026-01-01T00:00:00.0005Z"^^xsd:dateTime',
            '"1969-01-01T00:00:00Z"^^xsd:dateTime >= ?v')  # fmt: skip
    patterns, heads = ("?x :p ?v", "?x :q ?y"), ("select", "count")
    found = sketched(
        [Sketch(patterns[: 2 - i % 2], condition=one, shown=(0,), form=heads[i % 2], clause=clause)
         for i in range(2) for one in told for clause in (Clause("step", 4000, 2000),)],
        [i % PHASES for i in range(2 * len(told))],
    )  # fmt: skip
    values = ('"2026-01-01T00:00:00Z"^^xsd:dateTime', "5", '"INF"^^xsd:double', "1e300", "1e305",
              '"2025-12-31T23:59:59.999Z"^^xsd:dateTime', '"-INF"^^xsd:double', "-7", "4",
              '"2026-01-01T00:00:00.001Z"^^xsd:dateTime', '"1960-01-01T00:00:00Z"^^xsd:dateTime',
              '"2026-01-02T01:00:00+01:00"^^xsd:dateTime', '"9999-12-31T23:59:59Z"^^xsd:dateTime',
              '"2026-03-01T00:00:00"^^xsd:dateTime', '"0001-01-01T00:00:00Z"^^xsd:dateTime',
              '"2026-01-01T00:00:00.0007Z"^^xsd:dateTime', '"a"', ":c")  # fmt: skip
    stream = [at(300 * i, f":x{i % 2} :p {v} ; :q :y{i % 3}") for i, v in enumerate(values * 2)]
    shared = counters()
    check(found, world(stream, 9, 20), shared)
    assert shared["relax"]["there"] <= 2 * PHASES, "the first has its own, the others share one"


BIG = 2**53


@pytest.mark.long
def test_lists_of_columns_values_are_each_ones_own() -> None:
    """Rows of tuples are told by their values: also integers that are no doubles, and -0.0."""
    told = (f"{{0}}.k In ({BIG}, -1)", f"{{0}}.k In ({BIG + 1})", f"{{0}}.k In (3, {BIG}, 0, 3)",
            "{0}.k In (3.0, 0.5)", f"{{0}}.k = {BIG}", f"{{0}}.k > {BIG}",
            f"{{0}}.k Between {BIG} And {BIG + 1}", "{0}.v In (0, 7.0)", "{0}.v In (-0.0, 7)",
            f"{{0}}.v In ({BIG}, 2.5)", "{0}.n In ('x')", "{0}.n In ('a b', 'y')")  # fmt: skip
    clauses = (Clause("step", 3000, 1000), Clause("range", 30_000))
    forms = ("select", "group")
    found = [
        Coming(CqlSketch(("A", "A"), clauses, of, form=forms[i % 2]).query(f"q{i}"), i // 2 % 2)
        for i, of in enumerate(((), *(((0, one),) for one in told)))
    ]
    numbers = (3, BIG, -1, BIG + 1, 0)
    doubles, words = (0.0, -0.0, 7.0, float(BIG), 2.5, 1.5), ("x", "y", "a b")
    rows = [Row(400 * i, (numbers[i % 5], doubles[i % 6], words[i % 3])) for i in range(20)]
    shared = counters()
    check(found, World({"A": rows}, {"A": (5, 12)}, 0, {}, {"A": SCHEMAS["A"]}), shared)
    assert shared["relax"]["picked"] and shared["containment"]["picked"]


LITERALS = ('"1"', '"01"', "1", "1.0", "1.0e0", '"1"@en', '"1"^^<http://e/t>')


def test_constants_are_compared_as_terms_not_as_values() -> None:
    """Literals of one value are other terms, and each pattern has its own."""
    found = sketched([Sketch((f"?x :p {one}", "?x :q ?y"), shown=(0, 1)) for one in LITERALS])
    stream = [at(500 * i, f":x{i % 3} :p {one} ; :q :y{i}") for i, one in enumerate(LITERALS * 2)]
    shared = counters()
    check(found, world(stream, 5, 11), shared)
    assert shared["relax"]["there"] <= 2 * PHASES, "the first may come alone, the others share one"
    assert shared["exact"]["there"] == len(LITERALS) * PHASES


def test_a_constant_may_stand_in_two_patterns() -> None:
    """Once the same, once another: ?x :q :a . ?x :t :a beside ?x :q :a . ?x :t :b."""
    pairs = [(a, b) for a in (":a", ":b", ":c") for b in (":a", ":b", ":c")]
    found = sketched([Sketch((f"?x :q {a}", f"?x :t {b}"), shown=(0,)) for a, b in pairs])
    stream = [
        at(300 * i, f":x{i % 2} :q {a} . :x{i % 3} :t {b}")
        for i, (a, b) in enumerate([*pairs, *reversed(pairs)])
    ]
    shared = counters()
    check(found, world(stream, 4, 9), shared)
    assert shared["relax"]["there"] <= 2 * PHASES and shared["exact"]["there"] == PHASES * 9


def test_one_pattern_may_have_two_constants_of_one_join() -> None:
    """A pattern that meets itself: ?x :q :a . ?y :q :b, both through ?x :t ?y."""
    pairs = [(":a", ":b"), (":b", ":a"), (":a", ":a"), (":c", ":b")]
    found = sketched(
        [Sketch((f"?x :q {a}", f"?y :q {b}", "?x :t ?y"), shown=(0, 1)) for a, b in pairs],
        [0, 1, 0, 2],
    )
    stream = [at(250 * i, f":x{i % 4} :q :{'abc'[i % 3]} ; :t :x{(i * 3) % 4}") for i in range(24)]
    check(found, world(stream, 6, 14), counters())


@pytest.mark.long
@pytest.mark.parametrize("then", MODES)
@pytest.mark.parametrize("before", MODES)
def test_a_checkpoint_goes_on_in_another_mode(before: str, then: str) -> None:
    """What runs goes on as it is; the mode is that of queries that come."""
    found = sketched(
        [Sketch((f"?x :q :{c}", "?x :r ?s"), shown=(0, 1), form=form)
         for c in "abc" for form in ("select", "count")],
        [0, 0, 0, 0, 1, 2],
    )  # fmt: skip
    stream = [at(300 * i, f':x{i % 2} :q :{"abc"[i % 3]} ; :r "v{i % 5}"') for i in range(18)]
    mixed = [before, before, then, then]
    check(found, world(stream, 6, 12), {}, mixed=mixed)


def test_a_long_window_on_one_constant_is_nobody_elses() -> None:
    """30 days on :a beside 5 s on the others: rows of these are gone after 5 s."""
    month = Clause("range", 30 * 86_400_000)
    brief = Clause("range", 5000)
    found = sketched(
        [
            Sketch((f"?x :q :{name}", "?x :r ?s"), clause=clause, shown=(0, 1), output=output)
            for name, clause in (("a", month), ("b", brief), ("c", brief), ("a", brief))
            for output in ("RSTREAM", "ISTREAM")
        ]
    )
    stream = [
        at(ts, f':x{i % 2} :q :{"abc"[i % 3]} ; :r "v{i % 5}"')
        for i, ts in enumerate((0, 1000, 2000, 9000, 10_000, 11_000, 86_400_000, 86_403_000))
    ]
    shared = counters()
    check(found, world(stream, 3, 6), shared)
    assert shared["relax"]["there"] <= 4 * PHASES, "the first of each window, and one of the others"


def test_equal_triples_far_apart_under_windows_of_other_lengths() -> None:
    """What a long window hides for days a short one shows anew, and the other way round."""
    spans = (1000, 10_000, 3_600_000, 2 * 86_400_000)
    clauses = [Clause("range", span) for span in spans] + [Clause("step", 7_200_000, 3_600_000)]
    found = sketched(
        [
            Sketch((f"?x :q :{name}", "?x :r ?s"), clause=clause, shown=(0, 1), output=output)
            for clause in clauses
            for name, output in (("a", "RSTREAM"), ("b", "ISTREAM"), ("a", "DSTREAM"))
        ],
        [i % 2 for i in range(3 * len(clauses))],
    )
    times = (0, 900, 5000, 11_000, 3_600_000, 3_605_000, 86_400_000, 86_400_500, 200_000_000)
    stream = [
        at(ts, f':x :q :{"ab"[i // 2 % 2]} . :x :r "v{i % 2}" . :x :q :a')
        for i, ts in enumerate(times)
    ]
    check(found, world(stream, 3, 6), counters())


def test_all_beside_now() -> None:
    """One that keeps all of one constant, and those that keep a moment of any."""
    kinds = (("all", "a"), ("now", "a"), ("now", "b"), ("now", "c"), ("all", "c"))
    found = sketched(
        [
            Sketch((f"?x :q :{name}", "?x :p ?v"), clause=Clause(kind), shown=(0, 1), output=output)
            for kind, name in kinds
            for output in ("RSTREAM", "ISTREAM")
        ]
    )
    stream = [at(400 * (i // 2), f":x{i % 3} :q :{'abc'[i % 3]} ; :p {i % 4}") for i in range(24)]
    shared = counters()
    check(found, world(stream, 5, 13), shared)
    assert shared["relax"]["there"] == PHASES, "all share one"


def test_windows_with_shifted_beginnings() -> None:
    """t0 of three queries, and of windows of other kinds."""
    clauses = (Clause("step", 4000, 2000), Clause("step", 3000, 1000), Clause("range", 2000))
    found = sketched(
        [
            Sketch((f"?x :q :{name}", "?x :p ?v"), clause=clause, shown=(0, 1), options=options)
            for clause in clauses
            for name, options in (("a", {}), ("a", {"t0": 500}), ("b", {"t0": 1300}))
        ]
    )
    stream = [at(350 * i, f":x{i % 2} :q :{'ab'[i % 2]} ; :p {i % 3}") for i in range(24)]
    shared = counters()
    check(found, world(stream, 7, 15), shared)
    assert shared["relax"]["relaxed"] * 2 > shared["relax"]["needed"]


UNBOUND = (
    "{{ ?x :q ?y }} UNION {{ ?x :p ?v }}",
    "?x :p ?v OPTIONAL {{ ?x :q ?y }}",
    "?x :p ?v BIND(IF(?v > 1, :a, 1/0) AS ?y)",
    "?x :p ?v BIND(?v + 1 AS ?y)",
    "?x :p ?v VALUES ?y {{ :a 2 UNDEF }}",
    "?x :p ?v OPTIONAL {{ ?x :q ?y }} OPTIONAL {{ ?x :t ?y }}",
)


@pytest.mark.long
@pytest.mark.parametrize("part", UNBOUND)
def test_what_may_be_unbound_is_no_key_and_no_range(part: str) -> None:
    told = (
        "?y = :a",
        "?y = :b",
        "?y IN (:a, :b)",
        "sameTerm(?y, :a)",
        "?y > 1",
        "?y > 2",
        "?y = 2",
    )
    group = "WINDOW :w {{ " + part + " ?x :r {} FILTER({}) }}"
    found = [
        Coming(
            query("SELECT ?x ?y", group.format(constant, one), windows={"w": RANGE}, name=f"q{i}"),
            i % 2,
        )
        for i, (one, constant) in enumerate((one, '"ab"') for one in told)
    ]
    words = (":q :a", ":q :b", ":p 1", ":p 2", ':r "ab"', ':r "b"', ":t :b", ":q 2")
    stream = [at(300 * i, f":x{i % 2} {words[(i * 5) % 8]} ; {words[i % 8]}") for i in range(20)]
    check(found, world(stream, 6, 13), counters())


@pytest.mark.long
@pytest.mark.parametrize(
    "mixed", [("relax", "exact", "off", "relax"), ("off", "relax", "exact", "off")]
)
def test_one_with_too_many_rows_is_suspended_whatever_the_mode(mixed: Sequence[str]) -> None:
    """Only the query on :b makes more than the bound, in the second phase; others are whole."""
    found = sketched([Sketch((f"?x :q :{c}", "?x :r ?s"), shown=(0, 1)) for c in "abcd"])
    many = [at(2500, " . ".join(f':b :r "{i}"' for i in range(60)))]
    some = [at(200 * i, f':{"abcd"[i % 4]} :q :{"abcd"[i % 4]} ; :r "{i}"') for i in range(12)]
    later = [at(3000 + i, f':{"acd"[i % 3]} :q :{"acd"[i % 3]} ; :r "{i}"') for i in range(9)]
    shared = counters()
    check(found, world([*some, *many, *later], 12, 15), shared, mixed=mixed, max_rows=50)
    assert {mode: counts["suspended"] for mode, counts in shared.items()} == dict.fromkeys(MODES, 1)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_rows_that_wait_for_their_watermark_go_with_their_query(mode: str) -> None:
    """They met in the epoch that suspended it, which was run again, and again suspended nobody."""
    found = sketched([Sketch((f"?x :q :{c}", "?x :r ?s"), shown=(0, 1)) for c in "ab"])
    many = " . ".join(f':b :r "{i}"' for i in range(60))
    first = at(1000, f':a :q :a ; :r "0" . :b :q :b . {many}')
    later = [at(9000, ':a :q :a ; :r "1"'), at(20_000, ":a :q :c")]
    waiting = World({STREAM: [first, *later]}, {STREAM: (1, 2)}, 1500)
    shared = {mode: Counter[str]()}
    check(found, waiting, shared, max_rows=50)
    assert shared[mode]["suspended"] == 1
