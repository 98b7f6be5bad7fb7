"""``tables``: result rows read by Spark, and reports written to a Delta table.

``source``: Spark reads 5 million result rows by the data source ``levada``; the baseline reads the
same rows from Parquet through ``mapInArrow`` with the identity. ``delta``: 20,000 reports of some
rows, 1,000 a second of event time in epochs of a second, go to a Delta table; the baseline writes
them to Parquet files. ``frames``: rows for a CQL join from a streaming DataFrame of Spark; the
baseline reads the same Parquet files itself. Each side is a process of its own, and counted first.
``ratio_cpu`` is that of ``source``; its target is two thirds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.apart import apart
from bench.measure import Tree, peak_memory
from bench.meter import side
from bench.result import Result, check_count, ratio

ROWS, REPORTS, FRAMES = 5_000_000, 20_000, 2_000_000
KEYS = 1000
PASS = "Rstream(Select k, v, w From S [Now])"
JOIN = (
    "Rstream(Select A.k, A.v, B.v As u From S [Range 20 Milliseconds] As A, S [Now] As B "
    "Where A.k = B.k)"
)
COLUMNS = "k:integer;v:double;w:string"


def write(folder: Path, rows: int, per_ms: float) -> None:
    """Writes Parquet files of rows in the order of their times."""
    folder.mkdir()
    draw = np.random.default_rng(1)
    for number, start in enumerate(range(0, rows, 250_000)):
        n = min(250_000, rows - start)
        keys = draw.integers(0, KEYS, n)
        pl.DataFrame(
            {
                "k": keys, "v": draw.random(n).round(3), "w": [f"sensor {key}" for key in keys],
                "ts": ((start + np.arange(n)) / per_ms).astype(np.int64),
            }
        ).write_parquet(folder / f"{number:05d}.parquet")  # fmt: skip


def keep(folder: str) -> dict[str, Any]:
    """Makes a checkpoint that keeps a report for each instant, and the same rows as Parquet."""
    from levada.engine.engine import Engine
    from levada.engine.status.kept_reports import KeptReports, Range

    root = Path(folder) / "ck"
    with Engine(spark=False, checkpoint=root, keep="64GB", epoch_rows=250_000) as engine:
        engine.stream("S", f"{folder}/rows", schema=COLUMNS)
        engine.register(PASS, name="q", dialect="cql")
        engine.start(once=True)
        engine.await_end()
    reports, count = KeptReports(root, "q"), 0
    (Path(folder) / "parquet").mkdir()
    columns = reports.columns({}, Range())
    for number, table in enumerate(reports.tables(columns, Range())):
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame), "a table is a frame"
        frame.write_parquet(f"{folder}/parquet/{number:05d}.parquet")
        count += frame.height
    return {"count": count}


def spark_read(folder: str, form: str) -> dict[str, Any]:
    """Spark reads all rows, by one of the two ways."""
    import levada
    from levada.runtime.spark.spark_session import start_session, stop_session

    session = start_session("local[2]", scratch=Path(folder) / f"{form}-spark")
    levada.spark.register(session)

    def rows() -> Any:
        if form == "parquet":
            frame = session.read.parquet(f"{folder}/parquet")
            return frame.mapInArrow(_identity, frame.schema)
        source = session.read.format("levada").option("checkpoint", f"{folder}/ck")
        types = "k bigint, v double, w string"
        return source.option("query", "q").option("columns", types).load()

    count = rows().count()  # what is loaded and compiled is there
    tree = Tree()
    before, began = tree.cpu(), time.perf_counter()
    rows().write.format("noop").mode("overwrite").save()
    cpu, seconds = tree.cpu() - before, time.perf_counter() - began
    stop_session(session)
    return side(count, count, seconds, cpu, memory=peak_memory())


def _identity(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def deliver(folder: str, form: str) -> dict[str, Any]:
    """An engine writes the reports, to a Delta table or to files."""
    from levada.engine.engine import Engine

    told: dict[str, Any] = {}
    for number in range(2):
        root = Path(folder) / f"{form}{number}"
        with Engine(
            spark=False, checkpoint=root, keep="64GB", epoch_rows=4000, keep_results=False
        ) as engine:
            engine.stream("S", f"{folder}/rows", schema=COLUMNS)
            files = {"out": f"{root}-out", "format": "parquet"} if form == "files" else {}
            query = engine.register(PASS, name="q", dialect="cql", **files)
            if form == "delta":
                query.to(f"delta://{root}-table", columns="k bigint;v double;w string")
            tree = Tree()
            before, began = tree.cpu(), time.perf_counter()
            engine.start(once=True)
            engine.await_end()
            cpu, seconds = tree.cpu() - before, time.perf_counter() - began
            elements = engine._records()["S"].elements
        reports = round(elements / 4)
        count = _rows_of(f"{root}-table", f"{root}-out/q")
        told = side(count, reports, seconds, cpu, memory=peak_memory())
    return told


def _rows_of(table: str, folder: str) -> int:
    if Path(table).exists():
        from deltalake import DeltaTable

        return int(DeltaTable(table).to_pyarrow_dataset().count_rows())
    return int(pl.scan_parquet(f"{folder}/*.parquet").select(pl.len()).collect().item())


def join(folder: str, form: str) -> dict[str, Any]:
    """An engine joins rows, from a streaming DataFrame of Spark or from the files."""
    from levada.engine.engine import Engine
    from levada.runtime.spark.spark_session import start_session, stop_session

    session = (
        start_session("local[2]", scratch=Path(folder) / f"{form}-spark")
        if form == "frame"
        else None
    )
    told: dict[str, Any] = {}
    for _ in range(2):
        with Engine(spark=False) as engine:
            if session is None:
                engine.stream("S", f"{folder}/rows", schema=COLUMNS)
            else:
                reader = session.readStream.schema("k long, v double, w string, ts long")
                frame = reader.option("maxFilesPerTrigger", 1).parquet(f"{folder}/rows")
                engine.stream("S", frame, tuples=True)
            query = engine.register(JOIN, name="q", dialect="cql")
            tree = Tree()
            before, began = tree.cpu(), time.perf_counter()
            engine.start(once=True)
            engine.await_end()
            cpu, seconds = tree.cpu() - before, time.perf_counter() - began
            elements = engine._records()["S"].elements
            count = query.to_polars().height
        told = side(count, elements, seconds, cpu, memory=peak_memory())
    if session is not None:
        stop_session(session)
    return told


def run(scale: float, stepped: bool) -> Result:
    """All three, each beside its baseline."""
    with tempfile.TemporaryDirectory(prefix="levada-tables-") as place:
        folders = {name: Path(place) / name for name in ("source", "delta", "frames")}
        for name, rows, per_ms in (
            ("source", ROWS, 100.0), ("delta", 4 * REPORTS, 4.0), ("frames", FRAMES, 100.0),
        ):  # fmt: skip
            folders[name].mkdir()
            write(folders[name] / "rows", max(int(rows * scale), 4000), per_ms)
        kept = apart("bench.tables:keep", folder=str(folders["source"]))["count"]
        sides = {
            name: apart(f"bench.tables:{function}", folder=str(folders[room]), form=form)
            for name, function, room, form in (
                ("source", "spark_read", "source", "levada"),
                ("parquet", "spark_read", "source", "parquet"),
                ("delta", "deliver", "delta", "delta"), ("files", "deliver", "delta", "files"),
                ("frame", "join", "frames", "frame"), ("paths", "join", "frames", "paths"),
            )
        }  # fmt: skip
    for name in ("source", "parquet"):
        check_count(name, sides[name]["count"], kept)
    for name, other in (("delta", "files"), ("frame", "paths")):
        check_count(name, sides[name]["count"], sides[other]["count"])
    more = {name: sides[name] for name in ("delta", "files", "frame", "paths")}
    ratios = {
        "ratio_delta": ratio(sides["delta"], sides["files"]),
        "ratio_frames": ratio(sides["frame"], sides["paths"]),
    }
    source, parquet = sides["source"], sides["parquet"]
    return Result("tables", source, parquet, ratio(source, parquet), {**more, **ratios})
