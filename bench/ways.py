"""The ways of an epoch on Spark, each in its turn: as one task, and spread over tasks.

An engine chooses one by itself. Before it is measured it has to know both, and so have the JVM and
the workers, whatever it chooses then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from levada.runtime.driver.parallelism import ONE, SPREAD, ParallelismPolicy


def in_turn(pace: ParallelismPolicy, *_given: Any) -> tuple[str, str]:
    """A way for an epoch, the other one for the next."""
    return ONE if pace.choice.mode == SPREAD else SPREAD, "each has its turn"


@contextmanager
def each_way_until(is_warm: Callable[[], bool]) -> Iterator[None]:
    """Has epochs take each way in turn until the warm-up is over."""
    choose = ParallelismPolicy._way

    def way(pace: ParallelismPolicy, *given: Any) -> tuple[str, str]:
        return choose(pace, *given) if is_warm() else in_turn(pace)

    with patch.object(ParallelismPolicy, "_way", way):
        yield


@contextmanager
def always(way: str) -> Iterator[None]:
    """Has every epoch that has a choice run in one way, whatever a clock says of it."""

    def fixed(*_given: Any) -> tuple[str, str]:
        return way, "it is the only one"

    with patch.object(ParallelismPolicy, "_way", fixed):
        yield
