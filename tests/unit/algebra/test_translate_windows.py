"""Windows under the options, and the parts of a query that its windows and options decide."""

from __future__ import annotations

import pytest

from levada.algebra.nodes import Output
from levada.algebra.options import QueryOptions
from levada.algebra.show import show
from levada.algebra.translate import translate
from levada.algebra.translate_windows import window
from levada.model.time import Window, WindowKind
from levada.syntax import ast, parse

SLIDING = ast.Range(4_000, 2_000)
ROLLING = ast.Range(4_000, None)


@pytest.mark.parametrize(
    ("spec", "options", "meaning"),
    [
        (SLIDING, QueryOptions(), Window(WindowKind.CLOSE_OPEN, 4_000, 2_000)),
        (SLIDING, QueryOptions(bounds="(]"), Window(WindowKind.CLOSE_CLOSED, 4_000, 2_000)),
        (SLIDING, QueryOptions(report="close"), Window(WindowKind.CLOSE_OPEN, 4_000, 2_000)),
        (SLIDING, QueryOptions(report="change"), Window(WindowKind.CHANGE, 4_000, 2_000)),
        (SLIDING, QueryOptions(report="change", bounds="(]"), Window(WindowKind.CHANGE, 4_000, 2_000)),
        (SLIDING, QueryOptions(t0=7), Window(WindowKind.CLOSE_OPEN, 4_000, 2_000, t0=7, t0_given=True)),
        (SLIDING, QueryOptions(t0=0), Window(WindowKind.CLOSE_OPEN, 4_000, 2_000, t0=0, t0_given=True)),
        (ROLLING, QueryOptions(t0=7), Window(WindowKind.RANGE, 4_000, t0=7, t0_given=True)),
        (ROLLING, QueryOptions(report="close"), Window(WindowKind.RANGE, 4_000)),
        (ast.LastTriples(3), QueryOptions(), Window(WindowKind.COUNT, count=3)),
        (ast.Instant.NOW, QueryOptions(bounds="(]"), Window(WindowKind.NOW)),
        (ast.Instant.ALL, QueryOptions(t0=-5), Window(WindowKind.ALL, t0=-5, t0_given=True)),
    ],
)
def test_a_clause_under_options(spec: ast.WindowSpec, options: QueryOptions, meaning: Window) -> None:
    assert window(spec, options) == meaning


@pytest.mark.parametrize("operator", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_register_sets_the_output(operator: str) -> None:
    unit = parse(f"REGISTER {operator} <o> AS ASK FROM NAMED WINDOW <w> ON <s> [NOW] {{ WINDOW <w> {{ ?s ?p ?o }} }}")
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
        "  window 0 <w> on <s> [RANGE 4000 STEP 2000 change t0 1000]",
        "  window 1 <n> on <s> [NOW] from 1000",
        "  window 2 <r> on <s> [RANGE 4000] from 1000",
        "  (unit)",
    ]


@pytest.mark.parametrize("wrong", [{"bounds": "[]"}, {"report": "sometimes"}])
def test_options_are_checked_at_birth(wrong: dict[str, str]) -> None:
    with pytest.raises(AssertionError):
        QueryOptions(**wrong)  # type: ignore[arg-type]
