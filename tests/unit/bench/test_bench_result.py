"""What a benchmark shows to people, whatever its figures are named by."""

from __future__ import annotations

from io import StringIO

from bench.result import Result
from rich.console import Console


def test_figures_may_be_named_by_numbers() -> None:
    """Such as those of each degree; a list has no room in a table."""
    out = StringIO()
    more = {"w1_100": {"ms": {1: 2.5, 8: 1_000}, "each": [1, 2]}, "loss": None}
    Result("degree", {"count": 3}, more=more).show(Console(file=out, width=80))
    assert out.getvalue().split("\n")[2:] == [
        " count       3 ",
        "w1_100.ms.1  2.5",
        "w1_100.ms.8  1,000",
        "",
    ]
