"""Windows of members as parameter arrays for the kernels that decide when rows count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Longs
from levada.core.event_time import MIN, Window, WindowKind
from levada.plan.execution.shapes import Member


@dataclass(frozen=True)
class WindowTable:
    """Windows of members as parameter arrays, shape (windows, members): a row of an array is one
    window's column.
    """

    kind: npt.NDArray[np.uint8]
    range: Longs
    step: Longs
    t0: Longs
    has_t0: npt.NDArray[np.bool_]
    to: Longs
    stream: Ints
    start: Longs  # for each window and member: earlier elements do not count

    @staticmethod
    def from_members(members: Sequence[Member], streams: Mapping[str, int]) -> WindowTable:
        """Returns the table of these members."""
        width = max((len(m.windows) for m in members), default=0)
        shape = (width, len(members))
        kind, has_t0 = np.zeros(shape, np.uint8), np.zeros(shape, np.bool_)
        range_, t0, to, start = (np.zeros(shape, np.int64) for _ in range(4))
        step = np.ones(shape, np.int64)
        stream = np.full(shape, -1, np.int32)
        for i, m in enumerate(members):
            for j, (w, name) in enumerate(zip(m.windows, m.streams, strict=False)):
                kind[j, i], range_[j, i], step[j, i], t0[j, i] = w.kind, w.range, w.step, w.t0
                has_t0[j, i], to[j, i] = w.t0_given, w.to
                stream[j, i] = streams.get(name, -1)
                start[j, i] = MIN if w.kind is WindowKind.STATIC else max(m.start, w.start)
        return WindowTable(kind, range_, step, t0, has_t0, to, stream, start)

    @cached_property
    def has_one_stream(self) -> bool:
        """Whether each window is of one stream for all members. The table must be whole."""
        return bool((self.stream == self.stream[:, :1]).all())

    @cached_property
    def streams_of_first(self) -> tuple[int, ...]:
        """The streams of the first member's windows. The table must be whole."""
        return tuple([i for i in self.stream[:, 0].tolist() if i >= 0])

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all members have the same windows of the same streams, except for starts.

        The table must be whole.
        """
        return all(bool((column == column[:, :1]).all()) for column in self._columns[:-1])

    @cached_property
    def has_numbers(self) -> bool:
        """Whether the window after that of the times is a window of numbers for all members.

        The table must be whole.
        """
        return len(self.kind) > 1 and bool((self.kind[1] == WindowKind.NUMBERS).all())

    def params(
        self, j: int
    ) -> tuple[npt.NDArray[np.uint8], Longs, Longs, Longs, npt.NDArray[np.bool_], Longs]:
        """Returns window j of all members as the leading arguments of the interval kernels."""
        return self.kind[j], self.range[j], self.step[j], self.t0[j], self.has_t0[j], self.to[j]

    def pick(self, rows: Sequence[int]) -> WindowTable:
        """Returns these windows only, in this order."""
        at = list(rows)
        return WindowTable(*(column[at] for column in self._columns))

    def select_members(self, members: Longs) -> WindowTable:
        """Returns the table of these members, in this order."""
        return WindowTable(*(column.take(members, axis=1) for column in self._columns))

    def copy(self) -> WindowTable:
        """Returns a copy."""
        return WindowTable(*(column.copy() for column in self._columns))

    def put(self, j: int, i: int, window: Window) -> None:
        """Sets window j of member i in a table that is not yet shared; the stream stays."""
        self.kind[j, i], self.range[j, i], self.step[j, i] = window.kind, window.range, window.step
        self.t0[j, i], self.has_t0[j, i], self.to[j, i] = window.t0, window.t0_given, window.to
        self.start[j, i] = max(int(self.start[j, i]), window.start)

    @property
    def _columns(self) -> tuple[Any, ...]:
        return (
            self.kind,
            self.range,
            self.step,
            self.t0,
            self.has_t0,
            self.to,
            self.stream,
            self.start,
        )
