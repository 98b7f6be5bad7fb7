"""How long is measured: rounds until what counts is steady, handed out ahead of a side, and counted
as often as they came.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from bench import aggregate, join, meter, operators, steady
from bench.measure import Cpu
from bench.meter import Meter
from bench.operator_data import Size
from bench.steady import LEAST_JVM, Mark, Span, Supply, find_span
from bench.ways import each_way_until

from levada.checkpoint.manifest import Choice
from levada.runtime.driver.parallelism import ONE, SPREAD, ParallelismPolicy, Pressure


def marks(*costs: float, rows: int = 1000, epochs: int = 15) -> list[Mark]:
    """Those of rounds that cost so many CPU-seconds each, of so many epochs."""
    return [
        Mark(rows * i, Cpu(jvm=cpu), float(i), epochs * i)
        for i, cpu in enumerate(accumulate(costs, initial=0.0))
    ]


@pytest.mark.parametrize(
    ("costs", "span"),
    [
        ((3.0,), Span(0, 1, False)),  # fewer than two rounds
        ((9.0, 1.0, 1.04), Span(1, 3, True)),  # what it was like at first does not count
        ((1.2, 1.2, 1.08), Span(1, 3, False)),  # it still becomes faster
        ((1.0, 1.0, 1.2), Span(1, 3, False)),  # or slower
        ((0.9, 0.9), Span(0, 2, False)),  # less than two CPU-seconds count
        ((9.0, 0.5, 0.6, 0.6, 0.5), Span(1, 5, True)),  # halves of two rounds
    ],
)
def test_what_counts_are_two_halves_that_cost_the_same(
    costs: tuple[float, ...], span: Span
) -> None:
    assert find_span(marks(*costs)) == span


def test_at_least_thirty_epochs_count_or_a_minute_of_cpu() -> None:
    assert find_span(marks(*[3.0] * 20, epochs=3)) == Span(10, 20, True)
    assert find_span(marks(*[10.0] * 20, epochs=3)) == Span(14, 20, True)
    assert find_span(marks(*[3.0] * 9, epochs=3)) == Span(0, 9, False)


def test_rounds_of_the_warm_up_do_not_count() -> None:
    assert find_span(marks(*[3.0] * 12, epochs=3), warm=2) == Span(2, 12, True)
    assert find_span(marks(*[3.0] * 12, epochs=3), warm=3) == Span(3, 12, False)
    assert find_span(marks(*[3.0] * 2, epochs=3), warm=2) == Span(1, 2, False)


def test_a_jvm_is_measured_for_longer() -> None:
    assert find_span(marks(1.0, 1.0)).steady and not find_span(marks(1.0, 1.0), LEAST_JVM).steady
    assert find_span(marks(*[1.0] * 30), LEAST_JVM) == Span(10, 30, True)


def supplied(folder: Path, rounds: int) -> Supply:
    """Rounds of 1000 rows, of which a file's name is all; epochs of 500, warm-up of 2000."""
    for name in ("warm", "end", *(steady.name_of(i) for i in range(rounds))):
        (folder / name / "s").mkdir(parents=True)
        (folder / name / "s" / f"{name}.x").touch()
    return Supply(folder, folder / "into", rounds, warm=2000, rows=1000, epoch=500)


def test_rounds_are_handed_out_ahead_and_then_the_end(tmp_path: Path) -> None:
    supply = supplied(tmp_path, 9)

    def there() -> set[str]:
        return {file.stem for file in (tmp_path / "into" / "s").iterdir()}

    assert there() == {"warm"}
    supply.follow(0, lambda: False)
    assert there() == {"warm"}  # four epochs are to be read
    supply.follow(1000, lambda: True)
    assert there() == {"warm", "000"}  # one round at least
    supply.follow(1500, lambda: False)
    assert supply.handed == 1
    supply.follow(2000, lambda: False)
    assert there() == {"warm", "000", "001"} and supply.total == 4000
    supply.follow(3000, lambda: True)
    assert there() == {"warm", "000", "001", "end"} and supply.total == 4000
    assert not supply.is_read(4000) and supply.is_read(4001)
    supply.follow(3500, lambda: False)
    assert supply.handed == 2


def test_there_are_no_more_rounds_than_were_prepared(tmp_path: Path) -> None:
    supply = supplied(tmp_path, 2)
    supply.follow(10**6, lambda: False)
    assert supply.ended and supply.handed == 2


def run(
    monkeypatch: pytest.MonkeyPatch,
    supply: Supply,
    cost: Callable[[int], float],
    part: str = "driver",
) -> Meter:
    """A side that reads an epoch after the other, each at so many CPU-seconds by its place."""
    spent = {part: 0.0}
    monkeypatch.setattr(meter.Tree, "cpu", lambda self, scan=True: Cpu(**spent))
    seen = Meter(supply.warm, supply)
    for epoch in range(10**4):
        rows = min((epoch + 1) * supply.epoch, supply.total + supply.ended)
        spent[part] += cost(epoch)
        seen.see(rows)
        if seen.over.is_set():
            return seen
    raise AssertionError("it comes to an end")


def test_a_side_that_becomes_faster_is_measured_when_it_does_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = run(monkeypatch, supplied(tmp_path, 60), lambda epoch: max(4.0 - epoch / 8, 0.25)).side(
        5
    )
    assert told["steady"] and told["rows_per_cpu_s"] == pytest.approx(2000, rel=0.1)
    assert told["rounds"] >= 4 and told["cpu_s"] >= steady.LEAST
    assert (
        told["rounds_in_all"] >= told["rounds_before"] + told["rounds"]
        and told["rounds_in_all"] < 60
    )
    assert len(told["by_round"]) == told["rounds_in_all"]
    assert told["epochs"] == 2 * told["rounds"]


def test_rounds_in_which_the_jvm_becomes_cheaper_are_warm_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So slowly that successive rounds are alike, but for six epochs they are not."""
    seen = run(monkeypatch, supplied(tmp_path, 60), lambda epoch: max(3.0 - epoch / 20, 0.5), "jvm")
    told = seen.side(5)
    assert seen.is_warm and 45 < told["settled_epochs"] <= 62
    assert told["warm_epochs"] >= told["settled_epochs"]
    assert told["steady"] and told["epochs"] >= steady.EPOCHS
    assert told["spread"]["upper"] == told["spread"]["median"] == 1000


def test_epochs_of_the_warm_up_take_each_way_in_turn() -> None:
    warm, pace = False, ParallelismPolicy()
    with each_way_until(lambda: warm):
        ways = []
        for _ in range(4):
            way, _ = ParallelismPolicy._way(pace, {}, {}, Pressure())
            pace.choice = Choice(mode=way)
            ways.append(way)
        warm = True
        pace._large = True
        assert ParallelismPolicy._way(pace, {}, {}, Pressure())[0] == SPREAD, (
            "the engine's own choice"
        )
    assert ways == [SPREAD, ONE] * 2


def test_the_spread_is_of_full_epochs() -> None:
    cpu = [(1000, Cpu(2.0)), (1000, Cpu(1.0)), (1000, Cpu(0.5)), (100, Cpu(9.0)), (0, Cpu(1.0))]
    assert meter.spread(cpu) == {"lower": 750, "median": 1000, "upper": 1500, "apart": 0.75}
    assert meter.spread([])["median"] == 0


def test_a_side_that_does_not_become_steady_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ever_slower = run(monkeypatch, supplied(tmp_path / "a", 12), lambda epoch: 0.1 * epoch).side(5)
    assert not ever_slower["steady"] and ever_slower["rounds_in_all"] == 12
    dear = run(monkeypatch, supplied(tmp_path / "b", 60), lambda epoch: 5.0 + epoch).side(5)
    assert not dear["steady"] and 3 < dear["rounds_in_all"] < 20  # MOST


@pytest.mark.long
@pytest.mark.parametrize("bench", [aggregate, join], ids=["aggregate", "join"])
def test_the_results_of_rounds_are_those_of_one_as_many_times(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = bench.Shape(n=600, keys=20, epoch=200, warm=2, rounds=4)
    side = bench.both(shape, ("levada",), stepped=True)["levada"]  # it checks the count
    assert side["rounds_in_all"] == 4 and 1 <= side["rounds"] <= 4 and not side["steady"]
    assert side["count"] % side["rounds_in_all"] == 0 and side["count"] > 100


def test_an_operator_is_measured_for_as_long_as_is_asked() -> None:
    size = {"epoch": 1000, "window": 1000, "groups": 10, "measured": 1000}
    short = operators.cost("Match", size, 0.0)
    long = operators.cost("Match", size, short["cpu_s"] + 0.1)
    assert (
        long["cpu_s"] >= short["cpu_s"] + 0.1
        and long["rows"] > short["rows"] == Size(**size).measured
    )
