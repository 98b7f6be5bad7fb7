"""Windows under the options, and the parts of a query that its windows and options decide."""

from __future__ import annotations

import pytest

from levada.core.event_time import Window, WindowKind
from levada.core.query_model import Output
from levada.errors import UsageError
from levada.language import parse
from levada.language.sparql import ast
from levada.language.translate.sparql.translate import translate
from levada.language.translate.sparql.windows import reporting, window
from levada.plan.logical.print_logical import show
from levada.plan.logical.query_options import QueryOptions, options_of, report_policy

SLIDING = ast.Range(4_000, 2_000)
ROLLING = ast.Range(4_000, None)


@pytest.mark.parametrize(
    ("spec", "options", "meaning"),
    [
        (SLIDING, QueryOptions(), Window(WindowKind.CLOSE_OPEN, 4_000, 2_000)),
        (SLIDING, QueryOptions(bounds="(]"), Window(WindowKind.CLOSE_CLOSED, 4_000, 2_000)),
        (SLIDING, QueryOptions(report="close"), Window(WindowKind.CLOSE_OPEN, 4_000, 2_000)),
        (SLIDING, QueryOptions(report="change"), Window(WindowKind.CHANGE, 4_000, 2_000)),
        (
            SLIDING,
            QueryOptions(report="change", bounds="(]"),
            Window(WindowKind.CHANGE, 4_000, 2_000),
        ),
        (
            SLIDING,
            QueryOptions(t0=7),
            Window(WindowKind.CLOSE_OPEN, 4_000, 2_000, t0=7, t0_given=True),
        ),
        (
            SLIDING,
            QueryOptions(t0=0),
            Window(WindowKind.CLOSE_OPEN, 4_000, 2_000, t0=0, t0_given=True),
        ),
        (ROLLING, QueryOptions(t0=7), Window(WindowKind.RANGE, 4_000, t0=7, t0_given=True)),
        (ROLLING, QueryOptions(report="close"), Window(WindowKind.RANGE, 4_000)),
        (ast.LastTriples(3), QueryOptions(), Window(WindowKind.COUNT, count=3)),
        (
            ast.LastTriples(3, 2),
            QueryOptions(report="close"),
            Window(WindowKind.COUNT, count=3, step=2),
        ),
        (
            ast.Range(4_000, 2_000, 500),
            QueryOptions(),
            Window(WindowKind.CLOSE_OPEN, 4_000, 2_000, to=500),
        ),
        (ast.Range(4_000, None, 500), QueryOptions(), Window(WindowKind.RANGE, 4_000, to=500)),
        (ast.Session(4_000), QueryOptions(), Window(WindowKind.ENDED, 4_000)),
        (ast.Session(4_000), QueryOptions(report="change"), Window(WindowKind.SESSION, 4_000)),
        (
            ast.Session(4_000),
            QueryOptions(period=10, t0=5),
            Window(WindowKind.SESSION, 4_000, t0=5, t0_given=True),
        ),
        (SLIDING, QueryOptions(period=10), Window(WindowKind.CLOSE_OPEN, 4_000, 2_000)),
        (ast.Instant.NOW, QueryOptions(bounds="(]"), Window(WindowKind.NOW)),
        (ast.Instant.ALL, QueryOptions(t0=-5), Window(WindowKind.ALL, t0=-5, t0_given=True)),
    ],
)
def test_a_clause_under_options(
    spec: ast.WindowSpec, options: QueryOptions, meaning: Window
) -> None:
    assert window(spec, options) == meaning


@pytest.mark.parametrize("operator", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_register_sets_the_output(operator: str) -> None:
    unit = parse(
        f"REGISTER {operator} <o> AS ASK FROM NAMED WINDOW <w> ON <s> [NOW] {{ "
        f"WINDOW <w> {{ ?s ?p ?o }} }}"
    )
    assert translate(unit).output is Output(operator)


def test_without_register_the_output_is_rstream() -> None:
    assert translate(parse("ASK FROM NAMED WINDOW <w> ON <s> [NOW] { }")).output is Output.RSTREAM


def test_show_tells_the_start_of_each_window() -> None:
    text = (
        "ASK FROM NAMED WINDOW <w> ON <s> [RANGE PT4S STEP PT2S] FROM NAMED WINDOW <n> ON <s> [NOW]"
        " FROM NAMED WINDOW <r> ON <s> [RANGE PT4S] { }"
    )
    assert show(translate(parse(text), QueryOptions(t0=1_000, report="change"))).splitlines() == [
        "ASK RSTREAM",
        "  window 0 <w> on <s> [RANGE PT4S STEP PT2S change t0 1000]",
        "  window 1 <n> on <s> [NOW] from 1000",
        "  window 2 <r> on <s> [RANGE PT4S] from 1000",
        "  (unit)",
    ]


def test_show_tells_the_report_policy() -> None:
    text = "ASK FROM NAMED WINDOW <w> ON <s> [FROM NOW-PT4S TO NOW-PT1S STEP PT2S] { }"
    shown = show(translate(parse(text), QueryOptions(period=500, nonempty=True, t0=7))).splitlines()
    assert shown[1:3] == [
        "  window 0 <w> on <s> [RANGE PT4S TO PT1S STEP PT2S close [) t0 7]",
        "  reports [EVERY PT0.5S] from 7 nonempty",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("close", {"report": "close"}),
        ("periodic:1.5m", {"period": 90_000}),
        ("change + nonempty", {"report": "change", "nonempty": True}),
        ("nonempty", {"nonempty": True}),
    ],
)
def test_report_policies(text: str, said: dict[str, object]) -> None:
    assert report_policy(text) == said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("closed", "There is no report policy closed. Did you mean close?"),
        ("periodic", "There is no report policy periodic. Did you mean periodic:?"),
        ("periodic:0", "The period of reports is not positive."),
        ("periodic:soon", "soon is not a duration."),
        ("close+change", "close+change is no report policy."),
        ("nonempty+close", "nonempty+close is no report policy."),
        ("", "There is no report policy"),
    ],
)
def test_what_is_no_report_policy(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        report_policy(text)
    assert message in str(raised.value)


def test_reports_without_content_cannot_be_left_out_and_shown() -> None:
    with pytest.raises(UsageError, match="not both"):
        options_of({"report": "nonempty", "empty_reports": True})


def test_a_clock_starts_at_t0() -> None:
    clock = reporting(QueryOptions(period=300, t0=100)).clock
    assert clock is not None
    assert (clock.next_close(-5), clock.next_close(100)) == (100, 400)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": "[]"},
        {"report": "sometimes"},
        {"period": 0},
        {"period": 1, "report": "close"},
        {"nonempty": True, "empty_reports": True},
    ],
)
def test_options_are_checked_at_birth(wrong: dict[str, str]) -> None:
    with pytest.raises(AssertionError):
        QueryOptions(**wrong)  # type: ignore[arg-type]
