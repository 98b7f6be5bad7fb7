"""The queries of Nexmark over windows say what DuckDB says over the rows of each window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from levada.engine.engine import Engine
from support.nexmark import SCHEMAS, SIDE, STEP, TEXTS, WINDOW, as_cql, as_sql, events

SIDE_ROWS = pl.DataFrame({"key": list(range(0, 100, 3)), "value": [f"v{k}" for k in range(34)]})
Reports = dict[int, Counter[tuple[Any, ...]]]


def test_a_few_events_have_the_rows_of_duckdb(tmp_path: Path) -> None:
    some = ("q4", "q5", "q7", "q11", "q13", "q21")
    check(tmp_path, events(600, pace=50), {name: TEXTS[name] for name in some})


@pytest.mark.long
def test_a_hundred_thousand_events_have_the_rows_of_duckdb(tmp_path: Path) -> None:
    check(tmp_path, events(100_000), TEXTS)


def check(
    folder: Path, rows: Mapping[str, list[tuple[Any, ...]]], texts: Mapping[str, str]
) -> None:
    """Compares each report of each text with DuckDB's rows."""
    frames = {
        name: pl.DataFrame(stream, schema=[*SCHEMAS[name], "ts"], orient="row")
        for name, stream in rows.items()
    }
    answers = run(folder, frames, texts)
    with duckdb.connect() as judge:
        judge.register("side", SIDE_ROWS.to_arrow())
        for name, frame in frames.items():
            judge.register(f"all_{name}", frame.to_arrow())
        for name, text in texts.items():
            step = STEP if " hop}" in text else WINDOW
            last = max(int(frame["ts"].max()) for frame in frames.values())  # type: ignore[arg-type]
            expected: Reports = {}
            for end in range(step, last + WINDOW + 1, step):
                if rows_of_window := solutions(judge, text, end):
                    expected[end] = rows_of_window
            assert expected, f"{name} has no rows"
            assert answers[name].keys() == expected.keys(), name
            for end, bag in expected.items():
                assert answers[name][end] == bag, (name, end, bag - answers[name][end])


def run(
    folder: Path, frames: Mapping[str, pl.DataFrame], texts: Mapping[str, str]
) -> dict[str, Reports]:
    """The reports of each text in Levada."""
    with Engine(spark=False, checkpoint=folder / "checkpoint") as engine:
        for name, frame in frames.items():
            frame.write_csv(folder / f"{name}.csv")
            engine.stream(name, folder / f"{name}.csv", schema=dict(SCHEMAS[name]))
        SIDE_ROWS.write_csv(folder / "side.csv")
        engine.table("Side", folder / "side.csv", schema=dict(SIDE["Side"]))
        queries = {
            name: engine.register(as_cql(text), name=name, dialect="cql", bounds="[)")
            for name, text in texts.items()
        }
        engine.start(once=True)
        return {name: reports(query) for name, query in queries.items()}


def reports(query: Any) -> Reports:
    """The rows of each report that has some."""
    return {
        report.time: Counter(plain(row) for row in report.to_polars().rows())
        for report in query.results()
        if report.rows.height
    }


def solutions(judge: duckdb.DuckDBPyConnection, text: str, end: int) -> Counter[tuple[Any, ...]]:
    """DuckDB's rows of a text over the window that ends there."""
    start = end - WINDOW
    for name in SCHEMAS:
        judge.execute(
            f"Create Or Replace Temp Table {name} As Select *, {start} As window_start, "
            f"{end} As window_end From all_{name} Where ts >= {start} And ts < {end}"
        )
    return Counter(map(plain, judge.execute(as_sql(text)).fetchall()))


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row whose numbers are doubles, with the digits that engines agree on."""
    return tuple(float(f"{v:.12g}") if isinstance(v, (int, float, Decimal)) else v for v in row)
