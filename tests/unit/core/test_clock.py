"""A clock that a step of the wall clock does not move at once."""

import pytest

from levada.core.clock import PATIENCE, STEP, ClockStep, SteadyClock
from levada.testing.stream_builders import ManualClock

HOUR = 3_600_000


class Machine:
    """A machine whose wall clock steps, and a clock on it that told of the steps."""

    def __init__(self) -> None:
        self.shift, self.elapsed, self.steps = 0, ManualClock(5), list[ClockStep]()
        self.clock = SteadyClock(lambda: 1000 + self.elapsed() + self.shift, self.elapsed,
                                 self.steps.append)  # fmt: skip

    def after(self, ms: int) -> int:
        """The clock's time so much later, less the start."""
        self.elapsed.advance(ms)
        return self.clock() - 1005


@pytest.mark.parametrize("size", [STEP + 1, 700_000, 25 * HOUR, -STEP - 1, -24 * HOUR])
def test_a_step_and_back_does_not_move_the_clock(size: int) -> None:
    machine = Machine()
    assert machine.after(10) == 10
    machine.shift = size
    assert machine.after(5000) == 5010
    assert machine.after(PATIENCE - 1) == 5009 + PATIENCE
    machine.shift = 0
    assert machine.after(10) == 5019 + PATIENCE
    assert [(step.size, step.state) for step in machine.steps] == [
        (size, "lasts"),
        (size, "stepped back"),
    ]


@pytest.mark.parametrize("size", [25 * HOUR, -24 * HOUR])
def test_a_step_that_stays_is_followed(size: int) -> None:
    machine = Machine()
    machine.shift = size
    assert machine.after(1) == 1
    assert machine.after(PATIENCE) == size + 1 + PATIENCE
    assert machine.after(1) == size + 2 + PATIENCE
    assert [step.state for step in machine.steps] == ["lasts", "followed"]


def test_a_step_upon_a_step_is_waited_for_anew() -> None:
    machine = Machine()
    machine.shift = HOUR
    assert machine.after(1) == 1
    machine.shift = 2 * HOUR
    assert machine.after(PATIENCE) == 1 + PATIENCE
    assert machine.after(PATIENCE) == 2 * HOUR + 1 + 2 * PATIENCE
    assert [step.size for step in machine.steps] == [HOUR, 2 * HOUR, 2 * HOUR]


def test_a_clock_that_drifts_is_followed_without_a_word() -> None:
    machine = Machine()
    for n in range(1, 100):
        machine.shift = n * STEP
        assert machine.after(0) == n * STEP
    assert not machine.steps


def test_a_reading_that_was_torn_is_no_step() -> None:
    elapsed = iter([0, 0, *(1000, 4000), *(4001, 4001)])
    clock = SteadyClock(lambda: 0, lambda: next(elapsed), lambda step: None)
    clock.wall = iter([500, 4001]).__next__
    assert clock() == 4001
    assert clock.step is None


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (ClockStep(0, HOUR), "stepped forward by PT1H at 1970-01-01T00:00:00Z: Levada counts on"),
        (ClockStep(0, -HOUR, "stepped back"), "stepped back by PT1H at 1970-01-01T00:00:00Z, and"),
        (ClockStep(0, -HOUR, "followed"), "and stayed so: Levada follows it now."),
    ],
)
def test_a_step_is_a_sentence(step: ClockStep, text: str) -> None:
    assert text in str(step)
