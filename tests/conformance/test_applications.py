"""BriskStream's four applications in CQL give what plain Python gives over the same input."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from bench.applications import write
from bench.streaming import fraud_detection, word_count
from bench.streaming.all import APPLICATIONS
from bench.streaming.application import Answer, Application, Frames

from levada import Engine

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("LEVADA_DSPBENCH", ROOT.parent / "shared" / "data" / "dspbench"))
MODEL, BOOK = (DATA / "paragroup" / "Datasets" / name for name in ("FD/model.txt", "WC/book.dat"))
SIZES = {"WC": 3000, "FD": 3000, "SD": 4500, "LR": 40_000}


def found(app: Application, streams: Frames, folder: Path, rows: int) -> dict[str, list[Answer]]:
    """What all queries of an application answer, from files of so many rows, in epochs of as
    many.
    """
    write(folder, streams, rows)
    with Engine(spark=False, partitions=2, epoch_rows=rows) as engine:
        for name in streams:
            if name in app.relations:
                engine.stream(name, folder / name, sign="sign")
            else:
                engine.stream(name, folder / name)
        asked = {
            name: engine.register(text, name=name, dialect="cql")
            for name, text in app.queries.items()
        }
        engine.start(once=True)
        engine.await_end()
        tables = {name: query.to_polars() for name, query in asked.items()}
    return {
        name: table.with_columns(pl.col("report").dt.epoch("ms")).rows() if table.height else []
        for name, table in tables.items()
    }


def check(expected: Mapping[str, list[Answer]], got: Mapping[str, list[Answer]]) -> None:
    """Equal as bags, doubles but for their last digits."""
    assert set(expected) == set(got)
    for query, rows in expected.items():
        assert rows, f"{query} is asked for something"
        assert len(got[query]) == len(rows), query
        for one, other in zip(sorted(rows), sorted(got[query]), strict=True):
            assert all(map(_same, one, other)), (query, one, other)


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return one == other


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_equals_plain_python(name: str, tmp_path: Path) -> None:
    app, n = APPLICATIONS[name], SIZES[name]
    streams = app.make(n, 3)
    check(app.answers(streams), found(app, streams, tmp_path, -(-n // 4)))


def test_input_is_a_function_of_the_seed() -> None:
    for app in APPLICATIONS.values():
        one, same, other = (app.make(2000, seed) for seed in (1, 1, 2))
        assert all(one[name].equals(same[name]) for name in one)
        assert not all(one[name].equals(other[name]) for name in one)


@pytest.mark.skipif(not MODEL.exists(), reason=f"{MODEL} is absent")
def test_frauds_by_the_published_model(tmp_path: Path) -> None:
    app = APPLICATIONS["FD"]
    streams = fraud_detection.over(fraud_detection.read_model(MODEL), 1000, seed=5)
    expected = app.answers(streams)
    got = found(app, streams, tmp_path, 500)
    check({"signals": expected["signals"]}, {"signals": got["signals"]})
    assert len(got["frauds"]) == len(expected["frauds"])


@pytest.mark.skipif(not BOOK.exists(), reason=f"{BOOK} is absent")
def test_words_of_the_published_book(tmp_path: Path) -> None:
    words = BOOK.read_text(errors="replace").split()[:3000]
    lines = [" ".join(words[i : i + 10]) for i in range(0, len(words), 10)]
    ts = [word_count.ROOM * i for i in range(len(lines))]
    streams = {"Words": word_count.split(pl.DataFrame({"text": lines, "ts": ts}))}
    check(APPLICATIONS["WC"].answers(streams), found(APPLICATIONS["WC"], streams, tmp_path, 1000))
