"""The rates of a stream, and the time until it is read, follow what was measured."""

from types import SimpleNamespace
from typing import Any

import pytest

from levada.connectors.sources.unread_input import Unread
from levada.engine.driver.backlog_thread import WINDOW, BacklogMeter, BacklogThread


def measured(meter: BacklogMeter, at: int, waiting: int, taken: int) -> tuple[float, float | None]:
    backlog = meter.measure(Unread(waiting, None, 0, taken), at)
    return backlog.arriving_per_second, backlog.catch_up_seconds


def test_more_arrives_than_is_read_until_nothing_arrives() -> None:
    meter = BacklogMeter()
    for at in range(60):  # 100 are read a second, 200 arrive
        arriving, left = measured(meter, at, 100 * at, 100 * at)
    assert (round(arriving), left) == (200, None)
    for at in range(60, 60 + int(WINDOW) + 1):
        arriving, left = measured(meter, at, 5900 - 100 * (at - 59), 100 * at)
    assert arriving == 0
    assert left == pytest.approx((5900 - 100 * (WINDOW + 1)) / 100)


def test_nothing_waits() -> None:
    meter = BacklogMeter()
    assert measured(meter, 0, 0, 5) == (0, 0)
    assert measured(meter, 1, 0, 25) == (20, 0)


def test_the_size_of_elements_is_unknown() -> None:
    backlog = BacklogMeter().measure(Unread(None, 100, 3, 0), 0.0)
    assert (backlog.elements, backlog.size_bytes, backlog.catch_up_seconds) == (None, 100, None)


@pytest.mark.parametrize("busy", [0, 1, 3])
def test_the_end_awaits_a_broker_that_is_busy(busy: int) -> None:
    asked: list[int] = []

    def unread(now: int) -> Unread:
        asked.append(now)
        return Unread(0, None, None, 7, is_committed=len(asked) > busy)

    sourcing: Any = SimpleNamespace(sources={"s": SimpleNamespace(unread=unread)})
    BacklogThread(sourcing).stop()
    assert len(asked) == busy + 1
