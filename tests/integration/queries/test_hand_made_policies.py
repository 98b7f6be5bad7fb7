"""Windows in the past, count windows with a step, sessions; periodic and non-empty reports: what
they say, and beside each other.
"""

from __future__ import annotations

from typing import Any

import pytest

from levada.testing.reference_model import Report
from support.generators import Case, Clause
from support.query_dsl import OUTPUTS, STREAM, TUMBLING, at, check, query, values
from support.stepped_runs import run_case

ELEMENTS = (
    at(1000, ":a :p 1, 2 ; :q :b"),
    at(1500, ":b :p 4 ; :q :c"),
    at(4000, ":a :p 1 . :z :z :z"),
    at(4400, ":c :p 5 . :a :q :a"),
    at(9000, ":a :p 7"),
)


def numbers(reports: list[Report], name: str = "o") -> dict[int, str]:
    """What ?o is at each report: the numbers, sorted, as one text."""
    found = values(reports, name)
    return {
        r.time: " ".join(text.split('"')[1] for text in texts)
        for r, texts in zip(reports, found, strict=True)
    }


def said(clause: Clause, output: str = "RSTREAM", **options: Any) -> dict[int, str]:
    """What ``SELECT ?o`` of ``?s :p ?o`` says over this window; engine and reference agree."""
    asked = query(
        "SELECT ?o", "WINDOW :w { ?s :p ?o }", windows={"w": clause}, output=output, **options
    )
    return {time: text for time, text in numbers(check(asked, s=ELEMENTS)["q"]).items() if text}


def test_a_window_in_the_past_that_steps() -> None:
    """[tau - 4 s, tau - 2 s) at the closes 0, 2, 4, ... s."""
    assert said(Clause("step", 4000, 2000, to=2000)) == {4000: "1 2 4", 8000: "1 5", 12_000: "7"}
    assert said(Clause("step", 4000, 2000, to=2000), bounds="(]") == {
        4000: "1 2 4",
        6000: "1",
        8000: "5",
        12_000: "7",
    }


def test_a_window_in_the_past_for_each_element() -> None:
    """What is from 1 s to 2 s old: it reports when something comes in and when it goes."""
    assert said(Clause("range", 2000, to=1000), "ISTREAM") == {
        2000: "1 2",
        2500: "4",
        5000: "1",
        5400: "5",
        10_000: "7",
    }
    assert said(Clause("range", 2000, to=1000), "DSTREAM") == {
        3000: "1 2",
        3500: "4",
        6000: "1",
        6400: "5",
        11_000: "7",
    }


def test_each_third_triple() -> None:
    """The order is (time, text), over all triples: a p 1, a p 2, a q b | b p 4, b q c, a p 1 | z z
    z, a q a, c p 5.
    """
    assert said(Clause("count", count=3, step=3)) == {1000: "1 2", 4000: "1 4", 4400: "5"}
    assert said(Clause("count", count=1, step=3)) == {4000: "1", 4400: "5"}
    assert said(Clause("count", count=5, step=3)) == {1000: "1 2", 4000: "1 2 4", 4400: "1 5"}


def test_sessions_at_their_end_and_on_change() -> None:
    """With a gap of 2 s: [1000, 1500], [4000, 4400], [9000]."""
    assert said(Clause("session", 2000)) == {3500: "1 2 4", 6400: "1 5", 11_000: "7"}
    changing = {1000: "1 2", 1500: "1 2 4", 4000: "1", 4400: "1 5", 9000: "7"}
    assert said(Clause("session", 2000), report="change") == changing
    assert said(Clause("session", 2000), "DSTREAM", report="change") == {
        3500: "1 2 4",
        6400: "1 5",
        11_000: "7",
    }
    assert said(Clause("session", 2500)) == {3500 + 500: "1 2 4", 6900: "1 5", 11_500: "7"}
    assert said(Clause("session", 2501)) == {6901: "1 2 4 5", 11_501: "7"}


def test_periodic_reports_look_at_what_is_there() -> None:
    rolling = {1200: "1 2", 1800: "1 2 4", 2400: "4", 4200: "1", 4800: "1 5", 9000: "7", 9600: "7"}
    assert said(Clause("range", 1000), report="periodic:600ms") == rolling
    assert said(Clause("step", 4000, 4000), report="periodic:3s") == {
        6000: "1 2 4",
        9000: "1 5",
        12_000: "7",
        15_000: "7",
    }
    assert said(Clause("session", 2000), report="periodic:2s") == {
        2000: "1 2 4",
        4000: "1",
        6000: "1 5",
        10_000: "7",
    }
    assert said(Clause("range", 1000), "ISTREAM", report="periodic:600ms", t0=1300) == {
        1900: "4",
        4300: "1",
        4900: "5",
        9100: "7",
    }


def test_without_content_there_is_no_report_to_compare_with() -> None:
    """Between the windows with content are empty ones: under nonempty the content of 4 s follows on
    that of 1 s.
    """
    clause = Clause("step", 1000, 1000)
    assert said(clause, "DSTREAM") == {3000: "1 2 4", 6000: "1 5", 11_000: "7"}
    assert said(clause, "DSTREAM", report="nonempty") == {5000: "2 4", 10_000: "1 5"}
    assert said(clause, report="nonempty") == said(clause)
    assert said(clause, "ISTREAM", report="close+nonempty") == {
        2000: "1 2 4",
        5000: "5",
        10_000: "7",
    }


KINDS = {
    "past": Clause("step", 5000, 2000, to=1000),
    "past on change": Clause("range", 3000, to=500),
    "each third triple": Clause("count", count=4, step=3),
    "session": Clause("session", 1500),
}
POLICIES = ("close", "change", "periodic:700ms", "nonempty", "periodic:1s+nonempty")
BODIES = {
    "joined": ("SELECT *", "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :q ?x }", ""),
    "optional": ("SELECT *", "WINDOW :w { ?s :p ?o } OPTIONAL { WINDOW :v { ?s :q ?x } }", ""),
    "counted": ("SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?s :p ?o } WINDOW :v { ?y :q ?x }", ""),
    "asked": ("ASK", "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :q ?x }", ""),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_beside_a_window_that_steps(kind: str) -> None:
    """Every policy, form and output in one engine."""
    windows = {"w": KINDS[kind], "v": TUMBLING}
    asked = [
        query(head, group, tail, windows=windows, output=o, name=f"{name}{i}{o[0]}", report=policy)
        for name, (head, group, tail) in BODIES.items()
        for i, policy in enumerate(POLICIES)
        for o in OUTPUTS
    ]
    check(*asked, s=ELEMENTS, silent=True)


def test_a_gap_of_a_year_costs_nothing() -> None:
    year = 365 * 24 * 3600 * 1000
    elements = (*ELEMENTS, at(year, ":a :p 3"))
    every: tuple[dict[str, Any], ...] = ({}, {"report": "change"}, {"report": "periodic:1s"})
    for clause in KINDS.values():
        asked = tuple(
            query(
                "SELECT ?o",
                "WINDOW :w { ?s :p ?o }",
                windows={"w": clause},
                output=o,
                name=f"{o}{i}",
                **options,
            )
            for i, options in enumerate(every)
            for o in ("RSTREAM", "ISTREAM")
            if not (
                clause.kind == "count" and i == 2 and o == "RSTREAM"
            )  # it holds something all the year
        )
        for name, reports in run_case(Case({STREAM: elements}, asked), epoch_rows=2).items():
            assert reports[-1].time >= year or clause.kind == "count", name
            assert len(reports) < 40, name
