"""Windows that the random cases seldom make: gaps, odd ratios, huge ranges, negative times, ties,
and kinds side by side.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.generators import CaseQuery, Clause
from support.query_dsl import OUTPUTS, RANGE, TUMBLING, at, check, query

ELEMENTS = (
    at(1000, ":a :p 1, 2 ; :q :b . :b :p 3 ; :q :b"),
    at(1500, ":b :p 4 ; :r :b . :c :p :c"),
    at(5000, ":a :p 1 . :p :p :p"),
    at(9000, ":a :q :a"),
)
NEGATIVE = (
    at(-5000, ":a :p 1"),
    at(-4000, ":a :p 2 . :b :p 1"),
    at(-1, ":c :p 1"),
    at(0, ":d :p 1"),
    at(1, ":a :p 1"),
)
TIES = (
    at(1000, ":a :p 1, 2, 3"),
    at(1000, ":b :p 1, 2"),
    at(1000, ":a :p 1"),
    at(2000, ":a :p 3"),
    at(2000, ":a :p 2"),
    at(2001, ":z :z :z . :y :p :x"),
)
YEARS = 10**13

STEPPED = {
    "a gap between windows": Clause("step", 1000, 3000),
    "a window of a millisecond": Clause("step", 1, 1000),
    "a range that is no multiple of the step": Clause("step", 5000, 2000),
    "a step that is no multiple of the range": Clause("step", 3000, 7000),
    "centuries": Clause("step", YEARS, YEARS // 10),
}
OTHERS = {
    "centuries per element": Clause("range", YEARS),
    "one triple": Clause("count", count=1),
    "more triples than there are": Clause("count", count=10**9),
    "all": Clause("all"),
    "now": Clause("now"),
}


def three(clause: Clause, name: str, **options: Any) -> list[CaseQuery]:
    """The pattern ``?s :p ?o`` over this window, under R, I and D."""
    windows = {"w": clause}
    return [
        query(
            "SELECT ?s ?o",
            "WINDOW :w { ?s :p ?o }",
            windows=windows,
            output=o,
            name=f"{o[0]}{name}",
            **options,
        )
        for o in OUTPUTS
    ]


@pytest.mark.parametrize("name", STEPPED)
def test_step_windows_under_all_options(name: str) -> None:
    clause = STEPPED[name]
    asked = []
    every: tuple[dict[str, Any], ...] = (
        {},
        {"bounds": "(]"},
        {"report": "change"},
        {"t0": 1500},
        {"t0": -1300},
        {"t0": 1500, "bounds": "(]"},
    )
    for i, options in enumerate(every):
        asked += three(clause, str(i), **options)
    check(*asked, silent=True, s=ELEMENTS)


@pytest.mark.parametrize("name", OTHERS)
def test_other_windows(name: str) -> None:
    asked = [q for i, t0 in enumerate((1500, -1300)) for q in three(OTHERS[name], str(i), t0=t0)]
    check(*three(OTHERS[name], "x"), *asked, silent=True, s=ELEMENTS)


@pytest.mark.parametrize("name", [n for n in STEPPED if n != "centuries"])
def test_negative_times(name: str) -> None:
    clause = STEPPED[name]
    asked = [*three(clause, "a"), *three(clause, "b", t0=-4000), *three(clause, "c", bounds="(]")]
    check(*asked, *three(clause, "d", empty_reports=True), silent=True, s=NEGATIVE)


def test_negative_times_per_element_and_count() -> None:
    per_element, count = Clause("range", 3000), Clause("count", count=2)
    asked = [*three(per_element, "a"), *three(per_element, "b", t0=-4000)]
    check(*asked, *three(count, "c"), *three(count, "d", t0=-4000), silent=True, s=NEGATIVE)


def test_centuries_reported_on_change() -> None:
    check(*three(Clause("step", YEARS, 1000), "x", report="change"), silent=True, s=ELEMENTS)


def test_last_triples_with_ties() -> None:
    windows = {"w": Clause("count", count=3)}
    grouped = "SELECT ?s (COUNT(*) AS ?n) (MAX(?o) AS ?m)"
    asked = [
        query(
            grouped,
            "WINDOW :w { ?s :p ?o }",
            "GROUP BY ?s",
            windows=windows,
            output=o,
            name=f"g{o}",
        )
        for o in OUTPUTS
    ]
    check(*asked, *three(windows["w"], "x"), s=TIES, silent=True)


JOINED = "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :q ?v }"
EITHER = "{ WINDOW :w { ?s :p ?o } } UNION { WINDOW :v { ?s :q ?v } }"
PAIRS = (
    (Clause("all"), Clause("step", 3000, 2000)),
    (Clause("now"), RANGE),
    (Clause("step", 5000, 2000), Clause("step", 2000, 3000)),
    (Clause("count", count=4), TUMBLING),
    (RANGE, Clause("count", count=2)),
)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_two_kinds_side_by_side(pair: tuple[Clause, Clause]) -> None:
    windows = dict(zip(("w", "v"), pair, strict=True))
    asked = [
        query("SELECT *", group, windows=windows, output=o, name=f"{o[0]}{i}")
        for i, group in enumerate((JOINED, EITHER))
        for o in OUTPUTS
    ]
    check(*asked, s=ELEMENTS, silent=True)


VALUES = (at(1200, ":a :v 1"), at(1200, ":b :v 7"), at(2500, ":a :v 2"), at(12000, ":c :v 3"))
BODIES = {
    "joined": ("SELECT *", "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :v ?x }", ""),
    "optional": ("SELECT *", "WINDOW :w { ?s :p ?o } OPTIONAL { WINDOW :v { ?s :v ?x } }", ""),
    "grouped": (
        "SELECT ?s (SUM(?x) AS ?t) (COUNT(?x) AS ?n)",
        "WINDOW :w { ?s :p ?o } OPTIONAL { WINDOW :v { ?s :v ?x } }",
        "GROUP BY ?s",
    ),
    "crossed": ("SELECT ?s ?y ?x", "WINDOW :w { ?s :p ?o } WINDOW :v { ?y :v ?x }", ""),
    "asked": ("ASK", "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :v ?x } FILTER(?x > ?o)", ""),
}


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("silent", [False, True], ids=["lively", "silent"])
def test_two_streams(pair: tuple[Clause, Clause], silent: bool) -> None:
    windows = dict(zip(("w", "v"), pair, strict=True))
    asked = [
        query(head, group, tail, windows=windows, on={"v": "t"}, output=o, name=f"{o[0]}{name}")
        for name, (head, group, tail) in BODIES.items()
        for o in OUTPUTS
    ]
    check(*asked, s=ELEMENTS, t=() if silent else VALUES, silent=True)
