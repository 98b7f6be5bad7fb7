"""The intake waits for an output that is behind; which may go on while one looks."""

from __future__ import annotations

from typing import Any

from levada.engine.delivery.delivery_manager import Deliveries


class Goes:
    """An output that has had one more epoch at each look."""

    query, why, holds, failure, over, progress = "q", "", False, None, False, None
    broken = False

    def __init__(self) -> None:
        self.looks = 0
        self.target = self

    name = "t"

    @property
    def reached(self) -> int:
        self.looks += 1
        return self.looks


class Full:
    """An index with more than it may keep."""

    def is_full(self) -> bool:
        return True


def test_an_output_that_goes_on_while_one_looks_stops_nothing() -> None:
    deliveries: Any = Deliveries(lasting=False)
    deliveries.all = [Goes()]
    assert deliveries.held_by(Full()) == "The results of q wait for t."
