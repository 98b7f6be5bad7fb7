"""What ``elastic`` counts of epochs that it has seen, and the streams that it is fed with."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from bench.elastic import Epoch, Phase, Watch, phases, rates, recovered, remote
from bench.fed import AHEAD, SIDES, Feed

WIDTH = 700


def _nothing() -> None:
    pass


def _watch(epochs: list[Epoch], firsts: dict[int, int]) -> Watch:
    """What has seen these epochs, in phases that want so many and begin with these."""
    watch = Watch(Path(), [Phase(wanted, _nothing) for wanted in firsts])
    while len(watch.seen) < len(firsts):
        watch._begin()
    for phase, first in zip(watch.seen, firsts.values(), strict=True):
        phase.first = first
    watch.epochs = epochs
    return watch


def _every_second(there: list[int], events: list[int]) -> list[Epoch]:
    return [Epoch(float(n), e, t) for n, (t, e) in enumerate(zip(there, events, strict=True))]


def test_a_feed_has_as_many_files_as_are_wanted_and_knows_their_results(tmp_path: Path) -> None:
    """Pairs are counted as by hand; who asks for fewer epochs gets no more."""
    feed = Feed(tmp_path, 1_000, 50)
    feed.reach(2)
    feed.reach(1)
    tables = [pl.read_parquet(tmp_path / side / "*.parquet") for side, _ in SIDES]
    assert [len(list((tmp_path / side).iterdir())) for side, _ in SIDES] == [2 + AHEAD] * 2
    assert [len(table) for table in tables] == [(2 + AHEAD) * 1_000] * 2
    both = tables[0].join(tables[1], on="k", suffix="_b")
    near = (pl.col("ts") - pl.col("ts_b")).abs() <= WIDTH
    assert feed.pairs(WIDTH) == len(both.filter(near)) > 0


def test_rates_are_of_the_time_since_the_epoch_before() -> None:
    """Of the first nobody knows when it began."""
    assert rates([Epoch(5.0, 7, 1), Epoch(7.0, 10, 1), Epoch(7.5, 10, 1)]) == [0.0, 5.0, 20.0]


def test_a_phase_is_told_without_the_time_until_all_are_at_work() -> None:
    """One executor; then four are wanted, and two come first: three epochs of 1, 1 and 2."""
    there, events = [1] * 5 + [1, 1, 2] + [4] * 5, [10] * 5 + [6, 4, 2] + [99, 99, 40, 44, 48]
    found = phases(_watch(_every_second(there, events), {1: 0, 4: 5}))
    assert found["1"]["epochs"] == 5 and found["1"]["events_s"] == 10
    assert found["4"] == {
        "epochs": 8,
        "events_s": 44,
        "change_s": 4.0,
        "change_epochs": 3,
        "change_events_s": 4,
        "change_slowest_s": 1.0,
    }


def test_a_phase_whose_executors_never_come_says_nothing_of_them() -> None:
    """All its epochs are those of the change."""
    found = phases(_watch(_every_second([1] * 6, [10] * 6), {1: 0, 4: 3}))
    assert found["4"]["events_s"] == 0 and found["4"]["change_s"] == 0
    assert found["4"]["change_epochs"] == 3 and found["4"]["change_events_s"] == 10


@pytest.mark.parametrize(("after", "until"), [([0, 0, 60, 60], 3), ([60, 60, 60, 60], 1)])
def test_a_kill_is_over_with_the_first_epoch_of_nine_tenths_of_two_thirds(
    after: list[int], until: int
) -> None:
    """90 before, so 54 are enough of two."""
    found = recovered(_every_second([3] * 8 + [2] * 4, [90] * 8 + after), 8)
    assert (found["before"], found["after"], found["epochs_until"]) == (90, 60, until)


def test_bytes_from_elsewhere_are_warm_apart_from_changes() -> None:
    """Five epochs from the start and from a change on are cold."""
    epochs = [
        Epoch(float(n), 1, 1 if n < 8 else 2, listed=100, remote=50 if n in (1, 9) else 2)
        for n in range(16)
    ]
    assert remote(epochs, warm=True) == 0.02
    assert remote(epochs, warm=False) == round((2 * 50 + 14 * 2) / 1_600, 4)
