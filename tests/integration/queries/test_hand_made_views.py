"""Reports over views, relations and queries in brackets: whole results, and policies that their
changes do not decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from levada.core.event_time import Window, WindowKind
from levada.testing.compare import same
from levada.testing.reference_model import ReferenceSql, Report, Row
from support.generators import Case, CaseQuery
from support.generators.windows import reporting
from support.sql_cases import ALL, NOW, RANGE, RELATION, A, sql
from support.stepped_runs import run_case

SLIDE = Window(WindowKind.CLOSE_OPEN, 2000, 1000)
G = (
    "Register Relation G (k Integer, n Integer) As Select k, Count(*) From A [Range 2 s] "
    "Group By k; "
)
TYPES = {"k": "integer", "n": "integer"}
GROUPS = {"G": sql("Select k, Count(*) From A Group By k", {"A": ("A", RANGE)}, TYPES)}
B = (Row(1500, (1, 1.0)), Row(9500, (2, 4.0)))
FEW = (*A[:3], Row(9_400, (2, 1.0, "x")), Row(20_700, (1, 3.0, "x")))


def check(
    text: str, reference: ReferenceSql, options: dict[str, Any], **streams: tuple[Row, ...]
) -> list[Report]:
    """Runs a text under options in several cuts; each equals the reference, which says
    something.
    """
    reference = replace(reference, empty_reports="empty_reports" in options, **reporting(options))
    case = Case(
        streams,
        (CaseQuery("q", text, "cql", options, reference),),
        0,
        {},
        RELATION,
        frozenset({"R"}),
    )
    expected = case.expected()["q"]
    assert expected, "it says nothing"
    for rows, partitions in ((1000, 1), (1, 3)):
        difference = same(expected, run_case(case, epoch_rows=rows, partitions=partitions)["q"])
        assert difference is None, difference
    return expected


def test_rstream_says_a_relation_at_each_of_its_changes() -> None:
    """The count of what is not read changes, too: that is a report, whatever is said at it."""
    reports = check(
        f"{G}Rstream(Select k From G Where k = 1)",
        sql("Select k From G Where k = 1", {"G": ("G", ALL)}, {"k": "integer"}, "RSTREAM",
            views=GROUPS),
        {}, A=(*A, Row(7500, (1, 1.0, "x"))),
    )  # fmt: skip
    assert [r.time for r in reports] == [1000, 2000, 4000, 5000, 7000, 7500, 8000, 9000]


@pytest.mark.long
@pytest.mark.parametrize("output", ["RSTREAM", "ISTREAM", "DSTREAM", "RELATION"])
@pytest.mark.parametrize(
    "policy", ["periodic:1700ms", "periodic:700ms+nonempty", "nonempty", "change+nonempty"]
)
def test_policies_over_a_view(output: str, policy: str) -> None:
    body = "Select G.k, n From G, B [Range 2 s] Where G.k = B.k"
    on = {"G": ("G", ALL), "B": ("B", RANGE)}
    text = body if output == "RELATION" else f"{output.capitalize()}({body})"
    asked = sql("Select G.k, n From G, B Where G.k = B.k", on, TYPES, output, views=GROUPS)
    check(f"{G}{text}", asked, {"report": policy}, A=FEW, B=B)


@pytest.mark.parametrize(
    "options", [{"empty_reports": True}, {"empty_reports": True, "report": "periodic:900ms"}]
)
def test_empty_reports_over_a_view(options: dict[str, Any]) -> None:
    on = {"G": ("G", ALL), "B": ("B", SLIDE)}
    asked = sql("Select G.k, n From G, B Where G.k = B.k", on, TYPES, "ISTREAM", views=GROUPS)
    text = f"{G}Istream(Select G.k, n From G, B [Range 2 s Slide 1 s] Where G.k = B.k)"
    reports = check(text, asked, options, A=FEW, B=B)
    assert any(not r.solutions for r in reports)


def test_closes_beside_a_relation_go_up_to_the_last_element_beneath() -> None:
    """The relation holds something for ever; the last element of its stream is in no window."""
    view = {"V": sql("Select k From A Where v < 2", {"A": ("A", ALL)}, {"k": "integer"})}
    asked = sql(
        "Select V.k As k From V, B",
        {"V": ("V", ALL), "B": ("B", SLIDE)},
        {"k": "integer"},
        "RSTREAM",
        views=view,
    )
    text = "Register Relation V (k Integer) As Select k From A Where v < 2; "
    check(f"{text}Rstream(Select V.k As k From V, B [Range 2 s Slide 1 s])", asked, {}, A=FEW, B=B)
    plain = sql(
        "Select k From V Union All Select k From B",
        {"V": ("V", ALL), "B": ("B", SLIDE)},
        {"k": "integer"},
        "RSTREAM",
        views=view,
    )
    reports = check(
        f"{text}Rstream(Select k From V Union Select k From B [Range 2 s Slide 1 s])",
        plain,
        {},
        A=FEW,
        B=B,
    )
    assert reports[-1].time == 20_000


def test_a_stream_that_is_an_rstream_over_a_view() -> None:
    views = {
        **GROUPS,
        "S": sql("Select k, n From G", {"G": ("G", ALL)}, TYPES, "RSTREAM", views=GROUPS),
    }
    asked = sql(
        "Select k, Sum(n) From S Group By k", {"S": ("S", NOW)}, TYPES, "RSTREAM", views=views
    )
    text = f"{G}Register Stream S (k Integer, n Integer) As Rstream(Select k, n From G); "
    check(f"{text}Rstream(Select k, Sum(n) As n From S [Now] Group By k)", asked, {}, A=A)
