"""The least time between epochs follows their fixed cost, unless it is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.cli.app.app_file import App, Options
from levada.cli.app.run_app import EPOCH_WITH_FILES, _epoch
from levada.engine.engine import Engine
from levada.runtime.cost_model.epoch_time_trend import LONGEST, SHORTEST, Interval


def learned(fixed: float, each: float, sizes: tuple[int, ...]) -> Interval:
    """The interval after epochs of these numbers of elements."""
    interval = Interval(None)
    for _ in range(20):
        for elements in sizes:
            interval.learn(elements, fixed + each * elements)
    return interval


@pytest.mark.parametrize("fixed", [12.0, 20.0, 60.0])
def test_the_fixed_cost_takes_half_a_core_whatever_elements_cost(fixed: float) -> None:
    for each in (0.0005, 0.01):
        interval = learned(fixed, each, (100, 1_000, 5_000, 20_000))
        assert interval.ms == pytest.approx(2 * fixed, rel=0.15)


def test_very_cheap_and_very_dear_epochs_stay_within_the_bounds() -> None:
    assert learned(0.1, 0.001, (10, 10_000)).ms == SHORTEST
    assert learned(3_000.0, 0.001, (10, 10_000)).ms == LONGEST


def test_a_cost_is_not_shown_before_it_is_measured() -> None:
    interval = Interval(None)
    assert interval.measured_cost == 0.0
    interval.learn(10, 8.0)
    assert interval.measured_cost == interval.cost > 0.0


def test_an_epoch_that_was_held_up_hardly_counts() -> None:
    interval = learned(20.0, 0.001, (100, 1_000, 10_000))
    interval.learn(1_000, 5_000.0)
    assert interval.ms < 80.0


def test_first_epochs_that_load_kernels_are_forgotten() -> None:
    interval = Interval(None)
    interval.learn(1_000, 4_000.0)
    for _ in range(12):
        interval.learn(1_000, 21.0)
    assert interval.ms < 60.0


@pytest.mark.parametrize("setting", [0, 250])
def test_a_set_interval_stays(setting: int) -> None:
    interval = Interval(setting)
    interval.learn(100, 500.0)
    assert interval.ms == setting


def test_files_and_settings_decide_the_interval_of_a_run(tmp_path: Path) -> None:
    for options, expected in (
        (Options(), None),
        (Options(out="results"), EPOCH_WITH_FILES),
        (Options(out="results", epoch=20), 20),
        (Options(out="results", delay=250), None),
        (Options(epoch=0), 0),
    ):
        assert _epoch(App(options=options)) == expected, options


def test_status_shows_the_interval_and_the_cost(tmp_path: Path) -> None:
    lines = [f"<http://e/a> <http://e/p> {i} {i} .\n" for i in range(50)]
    (tmp_path / "s.nt").write_text("".join(lines))
    with Engine(spark=False, epoch_rows=5) as engine:
        engine.stream("http://e/s", tmp_path / "s.nt")
        engine.register(
            "SELECT ?o FROM NAMED WINDOW <http://e/w> ON <http://e/s> [RANGE PT0.01S STEP PT0.01S]"
            " WHERE { WINDOW <http://e/w> { ?s ?p ?o } }",
            name="q",
        )
        engine.start(once=True)
        engine.await_end()
        costs = engine.status().epoch_costs
    assert costs is not None
    assert costs.interval_ms >= SHORTEST and costs.fixed_cpu_ms > 0
