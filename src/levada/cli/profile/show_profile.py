"""``levada profile``: a profile as tables or as JSON.

The JSON has all fields of ``cli/app/profile``:

    {"elements",
     "operators": [{"name", "stage", "rows", "fixed_us", "row_ns",
                    "sizes": {"1000": {"p5", "p50", "p95"}}}],     ns a row
     "edges": [{"from", "to", "rows", "selectivity", "bytes"}],
     "driver": {"fixed_us", "element_ns"},
     "epochs": [{"elements", "epochs", "measured_ms", "predicted_ms"}]}
"""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table
from rich.text import Text

from levada.cli.app.app_file import App
from levada.cli.app.profile.measure_profile import profile
from levada.cli.app.profile.profile import Profile
from levada.core.count_text import count_text
from levada.core.integer_options import parse_count
from levada.errors import UsageError

MAX_SAMPLE = 100_000_000


def show(app: App, sample: str, *, as_json: bool) -> None:
    """Measures an application and prints its profile. Raises ``UsageError``."""
    if not app.queries:
        raise UsageError("There is no query.", hint="Give query files, or an app file with --app.")
    elements, shown = parse_count(sample, "--sample", most=MAX_SAMPLE), Console(stderr=True)
    with shown.status("[dim]Levada is starting[/dim]") as status:
        measured = profile(app, elements, lambda now: status.update(f"[dim]{now}[/dim]"))
    if as_json:
        print(json.dumps(tell(measured)))
    else:
        print_tables(measured, Console())


def print_tables(measured: Profile, console: Console) -> None:
    """Prints a profile as tables."""
    console.print(
        f"{count_text(measured.elements, 'element')} in each of {len(measured.epochs)} runs; "
        "CPU time"
    )
    for table in (_operators(measured), _edges(measured), _epochs(measured)):
        console.print()
        console.print(table)
    fixed, each = measured.driver
    console.print(f"\nThe driver takes {fixed:,.0f} us an epoch and {each:,.1f} ns an element.")


def tell(measured: Profile) -> dict[str, object]:
    """Returns a profile as JSON-able values."""
    return {
        "elements": measured.elements,
        "operators": [
            {
                "name": c.name,
                "stage": c.stage,
                "rows": round(c.rows, 6),
                "fixed_us": round(c.fixed, 2),
                "row_ns": round(c.each, 2),
                "sizes": {
                    str(size): dict(zip(("p5", "p50", "p95"), map(_short, q), strict=True))
                    for size, q in c.quantiles.items()
                },
            }
            for c in measured.costs
        ],
        "edges": [
            {
                "from": e.producer,
                "to": e.consumer,
                "rows": round(e.rows, 6),
                "selectivity": round(e.selectivity, 6),
                "bytes": round(e.bytes, 1),
            }
            for e in measured.edges
        ],
        "driver": {
            "fixed_us": round(measured.driver[0], 2),
            "element_ns": round(measured.driver[1], 2),
        },
        "epochs": [
            {
                "elements": e.elements,
                "epochs": e.epochs,
                "measured_ms": round(e.measured, 3),
                "predicted_ms": round(e.predicted, 3),
            }
            for e in measured.epochs
        ],
    }


def _short(value: float) -> float:
    return round(value, 2)


def _table(title: str, *heads: str) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    for i, head in enumerate(heads):
        table.add_column(head, justify="right" if i else "left", overflow="fold")
    return table


def _operators(measured: Profile) -> Table:
    """Returns a table with a line for each operator; quantiles are ns a row."""
    sizes = [f"at {e.elements:,}: p5 p50 p95" for e in measured.epochs]
    heads = ("stage", "rows/element", "us/epoch", "ns/row")
    table = _table("operators", "operator", *heads, *sizes)
    for c in measured.costs:
        quantiles = [
            " ".join(f"{v:,.0f}" for v in c.quantiles[e.elements])
            if e.elements in c.quantiles
            else "-"
            for e in measured.epochs
        ]
        table.add_row(
            Text(c.name), str(c.stage), f"{c.rows:.3g}", f"{c.fixed:,.0f}", f"{c.each:,.1f}",
            *quantiles,
        )  # fmt: skip
    return table


def _edges(measured: Profile) -> Table:
    table = _table("edges", "from -> to", "selectivity", "bytes/row")
    for e in measured.edges:
        table.add_row(
            Text(f"{e.producer} -> {e.consumer}"), f"{e.selectivity:.3g}", f"{e.bytes:,.0f}"
        )
    return table


def _epochs(measured: Profile) -> Table:
    table = _table("an epoch, in one process", "elements", "epochs", "measured ms", "predicted ms")
    for e in measured.epochs:
        table.add_row(f"{e.elements:,}", str(e.epochs), f"{e.measured:.2f}", f"{e.predicted:.2f}")
    return table
