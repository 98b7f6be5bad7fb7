"""Reads many records with one call of a library. If that raises, reads them by halves, so that an
unreadable record is alone and its neighbours are read.

Cost: one call without faults; log2(records) calls more for each unreadable record.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from levada.connectors.sources.file_errors import is_of_data, reason

Read = Callable[[int, int], pl.DataFrame]


def read_by_halves(read: Read, count: int) -> tuple[pl.DataFrame | None, dict[int, str]]:
    """Returns the rows of ``count`` records (None: there are none), and why some cannot be read.
    ``read`` returns those from .. to (exclusive), or raises.

    >>> def read(low: int, high: int) -> pl.DataFrame:
    ...     if low <= 2 < high:
    ...         raise ValueError("odd")
    ...     return pl.DataFrame({"n": range(low, high)})
    >>> rows, faults = read_by_halves(read, 4)
    >>> rows["n"].to_list(), faults
    ([0, 1, 3], {2: 'odd'})
    """
    faults: dict[int, str] = {}
    frames = _frames(read, 0, count, faults)
    if len(frames) > 1:
        return pl.concat(frames, rechunk=True), faults
    return next(iter(frames), None), faults


def _frames(read: Read, low: int, high: int, faults: dict[int, str]) -> list[pl.DataFrame]:
    if low == high:
        return []
    try:
        return [read(low, high)]
    except BaseException as error:
        if not is_of_data(error):
            raise
        if high - low == 1:
            faults[low] = reason(error)
            return []
    middle = (low + high) // 2
    return _frames(read, low, middle, faults) + _frames(read, middle, high, faults)
