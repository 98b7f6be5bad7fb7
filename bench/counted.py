"""What CQELS Cloud's Fig. 6a has of joins and aggregates (its C41), in one process: for
``multiway``.

    five        five streams in count windows of 100,000 rows each, joined by one key, of which one
                row in a hundred finds its key in the others
    aggregate   a sum by 1,000 keys over a count window of a million rows

Rows a CPU-second after the windows are full; results of the join are the same in each form.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.apart import apart
from bench.data import Events, write
from bench.marks import Marks
from bench.result import check_count
from levada import Engine

ROWS, MATCHED, KEYS = 100_000, 0.01, 1_000
LARGE = 1_000_000
FILES = 5  # a window
MORE = 2  # windows behind the first, which fills
OWN = 1_000_000_000


def prepare(folder: Path, rows: int, large: int) -> None:
    """Writes five streams whose rows come in turn, and the one that is added up."""
    n = rows * (1 + MORE)
    for number in range(5):
        rng = np.random.default_rng(number)
        alone = (number + 1) * OWN + np.arange(n, dtype=np.int64)
        shared = rng.integers(0, max(rows * KEYS // ROWS, 1), n)
        k = np.where(rng.random(n) < MATCHED, shared, alone)
        ts = np.arange(n, dtype=np.int64) * 5 + number
        write(folder / "ABCDE"[number], Events(k, rng.random(n), ts), rows // FILES)
    rng, n = np.random.default_rng(9), large * 2
    ts = np.arange(n, dtype=np.int64)
    write(folder / "L", Events(rng.integers(0, KEYS, n), rng.random(n), ts), large // FILES // 2)


def joined(rows: int) -> str:
    """The join of five count windows in CQL."""
    shown = ", ".join(["A.k", *(f"{name}.v As v{name}" for name in "ABCDE")])
    read = ", ".join(f"{name} [Rows {rows}]" for name in "ABCDE")
    return (
        f"Istream(Select {shown} From {read} Where "
        + " And ".join(f"A.k = {name}.k" for name in "BCDE")
        + ")"
    )


def added(rows: int) -> str:
    """The aggregate in CQL."""
    return f"Istream(Select k, Sum(v) As s From L [Rows {rows}] Group By k)"


def side(folder: str, streams: str, text: str, form: str, epoch: int, full: int) -> dict[str, Any]:
    """One run: results, and rows a CPU-second behind the first ``full`` ones."""
    marks = Marks()
    with (
        tempfile.TemporaryDirectory(prefix="levada-counted-") as into,
        Engine(
            spark=False, checkpoint=Path(into) / "c", partitions=1, seed=7, epoch_rows=epoch,
            keep_results=False, join=form,
        ) as engine,
    ):  # fmt: skip
        for name in streams:
            engine.stream(name, f"{folder}/{name}", format="parquet")
        engine.register(text, name="q", dialect="cql")
        engine._on_epoch(marks.see)
        engine.start(once=True, keep_open=True)
        engine.await_end()
    cost = marks.behind(full)
    return {"count": marks.results, "us": round(cost, 3), "rows_a_cpu_s": round(1e6 / cost)}


def run(scale: float) -> dict[str, Any]:
    """Both; of the join each form."""
    rows, large = (max(int(n * scale), 100) for n in (ROWS, LARGE))
    with tempfile.TemporaryDirectory(prefix="levada-counted-") as folder:
        prepare(Path(folder), rows, large)
        given = {"folder": folder, "streams": "ABCDE", "text": joined(rows), "full": rows * 5}
        five = {
            form: apart("bench.counted:side", form=form, epoch=rows, **given)
            for form in ("binary", "auto")
        }
        check_count("auto", five["auto"]["count"], five["binary"]["count"])
        aggregate = apart(
            "bench.counted:side", folder=folder, streams="L", text=added(large), form="binary",
            epoch=large // FILES // 2, full=large,
        )  # fmt: skip
    return {"five": five, "aggregate": aggregate}
