"""What a benchmark says: one JSON object for machines, a table for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Side = Mapping[str, Any]


class CountError(Exception):
    """A side gave another number of results than are known; its speed says nothing."""


def check_count(side: str, count: int, expected: int) -> None:
    """The number of results comes first."""
    if count != expected:
        raise CountError(f"{side} gave {count:,} results; {expected:,} are right.")


@dataclass(frozen=True, slots=True)
class Result:
    """A benchmark's two sides and how they compare: ``ratio_cpu`` is that of rows per CPU-second.
    ``more``: further figures.
    """

    bench: str
    levada: Side
    baseline: Side | None = None
    ratio_cpu: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The one line of ``--json``."""
        fixed = {
            "bench": self.bench,
            "levada": self.levada,
            "baseline": self.baseline,
            "ratio_cpu": self.ratio_cpu,
        }
        return json.dumps(fixed | dict(self.more))

    def show(self, console: Console) -> None:
        """A column a side, and the ratios below."""
        table = Table(title=self.bench, title_justify="left", box=None)
        table.add_column("")
        sides = {"levada": self.levada} | (
            {"baseline": self.baseline} if self.baseline is not None else {}
        )
        for name in sides:
            table.add_column(name, justify="right", overflow="fold")
        columns = [_flat(side) for side in sides.values()]
        for key in dict.fromkeys(k for column in columns for k in column):
            table.add_row(key, *(_cell(column.get(key)) for column in columns))
        console.print(table)
        ratios = {"ratio_cpu": self.ratio_cpu} | dict(self.more)
        for key, value in _flat(ratios).items():
            if value is not None:
                console.print(Text(f"{key}  {_cell(value)}"))


def ratio(levada: Side, baseline: Side) -> float:
    """How many times the rows per CPU-second."""
    return round(float(levada["rows_per_cpu_s"]) / float(baseline["rows_per_cpu_s"]), 2)


def best(sides: list[dict[str, Any]]) -> dict[str, Any]:
    """The side with the most rows per CPU-second."""
    return max(sides, key=lambda side: side["rows_per_cpu_s"])


def _flat(values: Mapping[str, Any], stem: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{stem}{key}.")
        elif not isinstance(value, list):  # a table has no room for it
            flat[f"{stem}{key}"] = value
    return flat


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
