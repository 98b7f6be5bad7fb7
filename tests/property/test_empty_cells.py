"""Aggregates of CQL ignore rows without a value, as those of SQLite do, however they group."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_random_cases import examples

from levada.engine.engine import Engine

COLUMNS = (
    "Count(*) As n, Count(v) As c, Sum(v) As s, Avg(v) As a, Min(v) As mi, Max(v) As ma, "
    "Sum(Distinct v) As sd, Sum(d) As fs, Avg(d) As fa, Min(d) As fi, "
    "Min(t) As ti, Sum(v + d) As vd"
)
Row = tuple[str, int | None, float | None, str | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.none() | st.integers(-3, 3),
        st.none() | st.integers(-2, 2).map(lambda n: n / 2),
        st.none() | st.sampled_from("xy"),
    ),
    min_size=1,
    max_size=8,
)


def by_levada(folder: Path, text: str, rows: list[Row]) -> dict[int, set[tuple[object, ...]]]:
    path = folder / "m.csv"
    lines = (",".join("" if v is None else str(v) for v in (*row, i)) for i, row in enumerate(rows))
    path.write_text("k,v,d,t,ts\n" + "".join(f"{line}\n" for line in lines))
    schema = {"k": "string", "v": "integer", "d": "double", "t": "string"}
    found: dict[int, set[tuple[object, ...]]] = {}
    with Engine(spark=False, checkpoint=folder / "checkpoint") as engine:
        engine.stream("M", path, schema=schema)
        query = engine.register(text, name="q", dialect="cql")
        engine.start(once=True)
        for result in query.results():
            assert result.time is not None
            found[result.time] = {tuple(map(plain, row)) for row in result.rows.rows()}
    return found


def plain(term: str | None) -> object:
    if term is None:
        return None
    text = term.split('"')[1]
    return text if text.isalpha() else float(text)


def by_sqlite(text: str, rows: list[Row]) -> set[tuple[object, ...]]:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE M (k TEXT, v INTEGER, d REAL, t TEXT)")
    base.executemany("INSERT INTO M VALUES (?, ?, ?, ?)", rows)
    found = base.execute(text).fetchall()
    base.close()
    return {tuple(float(v) if isinstance(v, int) else v for v in row) for row in found}


@examples(25)
@given(ROWS, st.sampled_from(["[Range 3 Milliseconds]", "[Range Unbounded]", "[Rows 3]"]))
def test_an_empty_cell_is_ignored_by_every_aggregate(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], window: str
) -> None:
    for select, group in ((f"Select k, {COLUMNS}", " Group By k"), (f"Select {COLUMNS}", "")):
        folder = tmp_path_factory.mktemp("cql")
        found = by_levada(folder, f"Rstream({select} From M {window}{group})", rows)
        for i in range(len(rows)):
            content = rows[: i + 1] if "Unbounded" in window else rows[max(i - 2, 0) : i + 1]
            assert found[i] == by_sqlite(f"{select} From M{group}", content)
