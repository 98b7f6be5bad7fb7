"""The known results of the workloads, against their definitions; the files as both sides
read them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from bench.data import SILENCE, Events, events, groups_at_closes, pairs_within, write, write_rounds
from bench.growth import WIDTHS, keys_for
from bench.queries import SHAPES, expected, of_shapes
from bench.srbench import (
    HOUR,
    MINUTE,
    Weather,
    _triples,
    query,
    supply_of,
    write_hours,
    write_timed,
)
from bench.srbench import write_rounds as write_days
from bench.steady import Supply
from hypothesis import given
from hypothesis import strategies as st

from levada.language import parse

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=30)


def stream(rows: list[tuple[int, int]]) -> Events:
    k, ts = np.array(sorted(rows, key=lambda row: row[1]), np.int64).T
    return Events(k, np.zeros(len(k)), ts)


@given(ROWS, ROWS, st.integers(0, 50))
def test_pairs_within_are_counted(
    a: list[tuple[int, int]], b: list[tuple[int, int]], width: int
) -> None:
    pairs = sum(k == m and abs(t - u) <= width for k, t in a for m, u in b)
    assert pairs_within(stream(a), stream(b), width) == pairs


@given(ROWS, st.integers(1, 4), st.integers(1, 9))
def test_groups_at_closes_are_counted(rows: list[tuple[int, int]], steps: int, step: int) -> None:
    width = steps * step
    held = {
        (k, close) for k, t in rows for close in range(0, 200, step) if close - width <= t < close
    }
    assert groups_at_closes(stream(rows), width, step) == len(held)


def test_w1_and_w2_have_the_results_that_the_design_names() -> None:
    a, b = (events(seed, 1_000_000, 100_000, 1.0) for seed in (1, 2))
    assert pairs_within(a, b, 60_000) == 1_164_224
    assert groups_at_closes(events(1, 1_000_000, 1000, 1.0), 60_000, 10_000) == 105_000


def read(folder: Path) -> Events:
    """The rows of a folder of Parquet files, in the order of their names."""
    frame = pl.concat([pl.read_parquet(file) for file in sorted(folder.iterdir())])
    return Events(frame["k"].to_numpy(), frame["v"].to_numpy(), frame["ts"].to_numpy())


def test_rounds_are_apart_and_their_results_add_up(tmp_path: Path) -> None:
    warm, work = events(3, 70, 5, 0.01), events(1, 50, 5, 0.01)
    write_rounds(tmp_path / "data", "s", warm, work, 3, 10)
    supply = Supply(tmp_path / "data", tmp_path / "read", rounds=3, warm=70, rows=50, epoch=10)
    supply.follow(10**6, lambda: False)
    whole = read(tmp_path / "read" / "s")
    assert whole.n == 70 + 3 * 50 + 1 and supply.total == 220
    gaps = np.flatnonzero(np.diff(whole.ts) >= SILENCE) + 1
    assert gaps.tolist() == [70, 120, 170, 220]  # the warm-up, the rounds, the end
    assert (
        (whole.ts[gaps] - 10_000 - work.ts[0]) % 10_000 == 0
    ).all()  # closes fall in each as in the first
    own = Events(whole.k[:-1], whole.v[:-1], whole.ts[:-1])
    assert pairs_within(own, own, 500) == pairs_within(warm, warm, 500) + 3 * pairs_within(
        work, work, 500
    )
    groups = [groups_at_closes(s, 6000, 1000) for s in (own, warm, work)]
    assert groups[0] == groups[1] + 3 * groups[2]


def test_files_hold_the_rows_in_order_of_names_and_of_file_times(tmp_path: Path) -> None:
    whole = events(1, 25, 5, 1.0)
    number = write(tmp_path / "s", whole, 10, "w")
    write(
        tmp_path / "s", Events(np.zeros(1, np.int64), np.zeros(1), np.array([99])), 10, "w", number
    )
    files = sorted((tmp_path / "s").iterdir())
    assert [len(pl.read_parquet(f)) for f in files] == [10, 10, 5, 1]
    assert (
        files == sorted(files, key=lambda f: f.stat().st_mtime)
        and len({f.stat().st_mtime for f in files}) == 4
    )
    assert pl.read_parquet(files[1])["ts"].to_list() == whole.ts[10:20].tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_growth_has_about_equal_results(width: int) -> None:
    keys = keys_for(width, 1000)
    a, b = (events(seed, 10_000, keys, 0.01) for seed in (1, 2))
    assert pairs_within(a, b, width) == pytest.approx(11_640, rel=0.1)


def minima(weather: Weather) -> dict[tuple[int, str], float]:
    """(close in hours, station) -> minimum of three hours, from the times and speeds alone."""
    found: dict[tuple[int, str], float] = {}
    for ts, _, speeds in weather.minutes():
        first = ts // HOUR + 1
        for close in range(first, first + 3):
            for station, speed in enumerate(speeds.tolist()):
                found[close, str(station)] = min(found.get((close, str(station)), np.inf), speed)
    return found


@pytest.mark.parametrize("weather", [Weather(8), Weather(4, warm=100, days=2)])
def test_w3_has_its_results(weather: Weather) -> None:
    assert sum(m >= 74 for m in minima(weather).values()) == weather.results > 0


def test_thresholds_have_their_results() -> None:
    weather = Weather(8)
    found = sum(m >= t for m in minima(weather).values() for t in (74.0, 74.001, 74.002))
    assert expected(weather, 3) == found > 0


def test_both_texts_of_w3_hold_the_same_triples(tmp_path: Path) -> None:
    weather = Weather(4, warm=60)
    write_timed(tmp_path / "timed.nt", weather)
    write_hours(tmp_path / "hours", weather)
    timed = [line.rsplit(" ", 2) for line in (tmp_path / "timed.nt").read_text().splitlines()]
    assert len(timed) == 1500 * weather.minute_rows
    hours = [path.read_text().splitlines() for path in sorted((tmp_path / "hours").iterdir())]
    assert [len(hour) for hour in hours] == [60 * weather.minute_rows] * 24
    of_day = [f"{triple} ." for triple, ts, _ in timed if int(ts) >= weather.start]
    assert of_day == [line for hour in hours for line in hour]
    assert {int(ts) % MINUTE for _, ts, _ in timed} == {MINUTE // 2}


def test_rounds_of_w3_follow_one_another_and_have_its_results_each(tmp_path: Path) -> None:
    weather = Weather(4, warm=60, days=2)
    write_days(tmp_path / "data", weather, 2)
    sizes: dict[str, Any] = {**supply_of(weather, 2, 720)}
    supply = Supply(tmp_path / "data", tmp_path / "read", **sizes)
    supply.follow(10**6, lambda: False)
    files = sorted((tmp_path / "read" / "w3").iterdir())
    text = "".join(file.read_text() for file in files)
    write_timed(tmp_path / "one.nt", weather)
    assert text.startswith((tmp_path / "one.nt").read_text())
    lines = text.splitlines()
    assert len(lines) == supply.total + 2 == (60 + 4 * 1440) * weather.minute_rows + 2
    assert (
        len({line.split(" ", 1)[0] for line in lines}) == (60 + 4 * 1440) * 4 + 2
    )  # no observation comes twice
    found: dict[tuple[int, int], float] = {}
    for minutes in (weather.calm(), weather.round(0), weather.round(1)):
        for ts, _, speeds in minutes:
            for close in range(ts // HOUR + 1, ts // HOUR + 4):
                for station, speed in enumerate(speeds.tolist()):
                    found[close, station] = min(found.get((close, station), np.inf), speed)
    assert sum(m >= 74 for m in found.values()) == 2 * weather.results > 0


def test_texts_hold_the_triples_that_are_said_one_by_one(tmp_path: Path) -> None:
    weather = Weather(8, warm=3)
    write_timed(tmp_path / "w3.nt", weather)
    minutes = weather.minutes()
    expected = [
        f"{triple} {ts} ." for ts, serial, speeds in minutes for triple in _triples(serial, speeds)
    ]
    assert (tmp_path / "w3.nt").read_text().splitlines() == expected


def test_the_shapes_are_different_queries_that_parse() -> None:
    texts = list(of_shapes(SHAPES))
    assert len(set(texts)) == SHAPES
    for text in [*texts[::17], query()]:
        parse(text)
