"""The applications of ``examples/streaming``, which operators and functions in Python make, give
what plain Python gives over the same input.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from bench.applications import write
from bench.streaming import fraud_detection, linear_road, spike_detection, word_count
from bench.streaming.application import Answer, Frames

from levada import Engine
from levada.cli.app.app_file import App, load_app
from levada.core import user_functions

FOLDER = Path(__file__).parents[2] / "examples" / "streaming"


def check(expected: list[Answer], got: list[Answer]) -> None:
    """Equal as bags, doubles but for their last digits."""
    assert expected, "the query is asked for something"
    assert len(got) == len(expected)
    for one, other in zip(sorted(expected), sorted(got), strict=True):
        for a, b in zip(one, other, strict=True):
            assert a == b or (
                isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-12)
            )


@pytest.fixture(name="app")
def declared_app() -> Iterator[App]:
    """The app file, whose functions are declared as long as the test runs."""
    before = {*user_functions.DECLARED}
    try:
        yield load_app(FOLDER / "app.yaml")
    finally:
        for iri in {*user_functions.DECLARED} - before:
            del user_functions.DECLARED[iri]
        sys.modules.pop("applications", None)


def answers(
    app: App, name: str, streams: Frames, folder: Path, rows: int, partitions: int
) -> list[Answer]:
    """The rows of one query, from files of so many rows, in epochs of as many."""
    write(folder, streams, rows)
    query = next(query for query in app.queries if query.name == name)
    with Engine(spark=False, partitions=partitions, epoch_rows=rows) as engine:
        for stream in streams:
            engine.stream(stream, folder / stream)
        asked = engine.register(query.text, name=name, dialect="cql")
        engine.start(once=True)
        engine.await_end()
        table = asked.to_polars().with_columns(pl.col("report").dt.epoch("ms"))
    return table.rows()


@pytest.mark.parametrize("partitions", [1, 3])
def test_words_of_sentences_are_counted(app: App, partitions: int, tmp_path: Path) -> None:
    sentences = word_count.sentences(120, 3)
    said = word_count.split(sentences).with_columns(ts=pl.col("ts") // 16 * 16)
    expected = word_count.answers({"Words": said})["counts"]
    streams = {"Sentences": sentences}
    got = answers(app, "word_count", streams, tmp_path, 50, partitions)
    check(expected, got)


def test_frauds_are_found(app: App, tmp_path: Path) -> None:
    moves = fraud_detection.model(3)
    module: Any = sys.modules["applications"]
    streams = fraud_detection.over(moves, 1500, 3)
    table = np.zeros((18, 18))
    for i, j, missing, _, _ in streams["Model"].iter_rows():
        table[i, j] = missing
    module.MISSING = table
    expected = fraud_detection.answers(streams)["frauds"]
    only = {"Transactions": streams["Transactions"]}
    check(expected, answers(app, "frauds", only, tmp_path, 400, 2))


def test_spikes_are_found(app: App, tmp_path: Path) -> None:
    streams = spike_detection.make(4500, 3)
    expected = spike_detection.answers(streams)["spikes"]
    check(expected, answers(app, "spikes", streams, tmp_path, 1200, 2))


def test_tolls_are_those_of_linear_road(app: App, tmp_path: Path) -> None:
    streams = linear_road.make(20_000, 5)
    said = linear_road.answers(streams)
    assert said["alarms"], "there are accidents, where tolls are free"
    got = answers(app, "tolls", streams, tmp_path, 1000, 2)
    check(said["tolls"], got)
