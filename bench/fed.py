"""Both streams of W1 for as long as somebody reads them: files of an epoch each, which appear when
they are wanted; so a run may wait for what has no time of its own, such as executors that start.

An event a millisecond of each stream, keys uniform. Files are made elsewhere and renamed: a reader
that looks for new ones sees whole files alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.data import Events, events, later, pairs_within, write

AHEAD = 3
"""Epochs of files that are there before they are read, so that none is waited for."""
EVERY = 1.5  # s between two sentences
SIDES = (("a", "v"), ("b", "w"))


class Feed:
    """The streams below a folder; ``rows`` of each in an epoch, keys up to ``keys``."""

    def __init__(self, folder: Path, rows: int, keys: int) -> None:
        self._folder, self._rows, self._keys = folder, rows, keys
        self._made: list[tuple[Events, Events]] = []
        for side, _ in SIDES:
            (folder / side).mkdir()

    def reach(self, epochs: int) -> None:
        """Has so many epochs of files be there, and some more."""
        while len(self._made) < epochs + AHEAD:
            number = len(self._made)
            pair = tuple(
                later(events(2 * number + i, self._rows, self._keys, 1.0), number * self._rows)
                for i in range(len(SIDES))
            )
            for (side, value), part in zip(SIDES, pair, strict=True):
                beside = self._folder / f"{side}-made"
                write(beside, part, self._rows, value, number)
                name = f"{number:05}.parquet"
                (beside / name).rename(self._folder / side / name)
            self._made.append((pair[0], pair[1]))

    def pairs(self, width: int) -> int:
        """The results of W1 over all that has been made, in windows of so many ms."""
        a, b = (_joined([pair[i] for pair in self._made]) for i in range(len(SIDES)))
        return pairs_within(a, b, width)


def _joined(parts: list[Events]) -> Events:
    k, v, ts = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ["k", "v", "ts"]
    )
    return Events(k, v, ts)


@contextmanager
def telling(told: Callable[[], str]) -> Iterator[None]:
    """Says on standard error where a run stands while it is at work, so that it is never silent."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(EVERY):
            print(told(), file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, name="bench telling", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
