"""What is said of one member where all have the same windows is what each says by itself."""

import random

import numpy as np
import pytest

from levada.core.event_time import MAX, Window, WindowKind
from levada.operators.windowing.window_intervals import watermark
from levada.plan.execution.shapes import Member
from levada.plan.execution.window_table import WindowTable

STREAMS = {"a": 0, "b": 1, "c": 2}


def member(rng: random.Random, width: int) -> Member:
    """A member of so many windows."""
    windows = tuple(
        Window(WindowKind.CLOSE_OPEN, range=1000 * rng.randrange(1, 4), step=500)
        for _ in range(width)
    )
    return Member((0,), windows, tuple(rng.choice("abcd") for _ in range(width)))


@pytest.mark.parametrize("seed", range(40))
def test_watermarks_are_those_of_each(seed: int) -> None:
    rng = random.Random(seed)
    width, size = rng.randrange(4), rng.randrange(1, 6)
    first = member(rng, width)
    members = [first if seed % 2 else member(rng, width) for _ in range(size)]
    members = [one._replace(start=rng.randrange(9)) for one in members]
    table = WindowTable.from_members(members, STREAMS)
    same = len({(one.windows, tuple(map(STREAMS.get, one.streams))) for one in members}) == 1
    assert table.is_uniform == same and (table.has_one_stream or not same)
    streams = np.array([rng.randrange(100) for _ in STREAMS], np.int64)
    expected = [
        min((int(streams[STREAMS[s]]) for s in one.streams if s in STREAMS), default=MAX)
        for one in members
    ]
    assert watermark(table, streams).tolist() == expected
    assert watermark(table, np.empty(0, np.int64)).tolist() == [MAX] * size


def test_of_nobody() -> None:
    table = WindowTable.from_members([], STREAMS)
    assert table.is_uniform and watermark(table, np.zeros(3, np.int64)).tolist() == []
