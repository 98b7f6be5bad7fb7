"""Answers of an engine to a CQL query over integers."""

from __future__ import annotations

from pathlib import Path

from levada.engine.engine import Engine

Rows = list[tuple[str, ...]]


def answers(
    folder: Path, text: str, rows: list[tuple[int, int]], view: str = ""
) -> dict[int, Rows]:
    """The rows of each report of ``Rstream(text)`` over the stream A (a, b integer), a row a
    second.
    """
    path = folder / "a.csv"
    path.write_text("a,b,ts\n" + "".join(f"{a},{b},{1000 * i}\n" for i, (a, b) in enumerate(rows)))
    found: dict[int, Rows] = {}
    with Engine(spark=False, checkpoint=folder / "checkpoint") as engine:
        engine.stream("A", path, schema={"a": "integer", "b": "integer"})
        query = engine.register(f"{view}Rstream({text})", name="q", dialect="cql")
        engine.start(once=True)
        for result in query.results():
            assert result.time is not None
            got = [
                tuple(value.split('"')[1] if value else "" for value in row)
                for row in result.rows.rows()
            ]
            found.setdefault(result.time, []).extend(got)
    return found
