"""Decides which elements enter a stream: cut, future, late, or kept. One rule for graphs and for
tuples (docs/semantics.md#progress).

In this order, by an element's event time ``ts``:

    no time             dead (``NO_TIME``, ``TWO_TIMES``, ...): the caller has said why
    outside [from, to)  cut: no element, counted nowhere
    beyond the limit    cut; the limit counts what from and to let pass, in the order of reading
    > future_above      dead ("future"): a wrong clock must not move the watermark
    < late_below        late: below the stream's watermark after the epoch before
    else                kept

Cost: a few NumPy passes over one int64 an element; Python only per late or dead element, whose text
is written out anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.splits import AnyReference, FileSplit
from levada.core.array_types import Bools
from levada.core.event_time import MAX, MIN, UNITS, distinct, instant, shown_duration
from levada.core.frozen import frozen
from levada.core.query_limits import TOLD
from levada.core.row_ranges import starts_segment
from levada.errors import escape_controls, shorten

Times = npt.NDArray[np.int64]

NO_TIME = "no time"
TWO_TIMES = "its triples have different times"
WRONG_TIME = "its time is not a number, date or dateTime"


class Dead(NamedTuple):
    """A dead letter: its place (byte; Parquet: row), the reason, its text."""

    offset: int
    reason: str
    text: str


@frozen
class Late:
    """Late elements as columns: their places in the file, their times, and their texts."""

    offset: Times
    ts: Times
    text: list[str]

    def __len__(self) -> int:
        return len(self.text)


@frozen
class AdmissionBounds:
    """The bounds of one reference in one epoch: [start, stop), the rest of the limit, and the times
    of late and future elements.
    """

    start: int = MIN
    stop: int = MAX
    limit: int | None = None
    late_below: int = MIN
    future_above: int = MAX
    arrived: int = MAX
    """The clock when the epoch was decided."""

    @property
    def future(self) -> str:
        """The reason why a future element is dead."""
        return future(self.future_above - self.arrived)

    @classmethod
    def for_split(
        cls, config: StreamConfig, reference: FileSplit, late_below: int, future_above: int
    ) -> AdmissionBounds:
        """Makes the bounds of a stream for a reference."""
        start = MIN if config.from_ is None else config.from_
        stop = MAX if config.to is None else config.to
        arrived = future_above - config.future_ms
        return cls(start, stop, reference.limit_left, late_below, future_above, arrived)

    def passes(self, least: int, greatest: int) -> bool:
        """Whether all elements with times from ``least`` to ``greatest`` are kept (apart from the
        limit).
        """
        return (
            MIN < least >= max(self.start, self.late_below)
            and greatest < self.stop
            and greatest <= self.future_above
        )


@frozen
class ElementFates:
    """One mask for each fate (a row in none was cut or had no time); ``passed`` elements count for
    the limit.

    ``max_ts`` is the greatest time of kept and late elements (MIN: none), which moves the
    watermark. ``times`` are the distinct times of the kept ones, ascending.
    """

    keep: Bools
    late: Bools
    future: Bools
    passed: int
    max_ts: int
    times: Times


def future(ahead: int) -> str:
    """Returns the reason for a time more than ``ahead`` ms ahead of the clock.

    >>> future(86_400_000), future(3_600_000)[:27]
    ('its time is more than a day ahead of the clock (future)', 'its time is more than PT1H ')
    """
    said = "a day" if ahead == UNITS["d"] else shown_duration(ahead)
    return f"its time is more than {said} ahead of the clock (future)"


def clock_times(config: StreamConfig, times: Times | None, n: int, gate: AdmissionBounds) -> Times:
    """Returns the times of ``n`` rows by a clock: the messages' own ``times``, if they have some,
    else that of the epoch that reads them. An arriving element is never late: if a heartbeat has
    declared completeness, it arrives at that instant.
    """
    if config.time_kind == "timestamp":
        assert times is not None, "messages have timestamps"
        return times
    if times is None or config.feed is None:
        times = np.full(n, gate.arrived, np.int64)
    return np.maximum(times, gate.late_below)


def admit(ts: Times, gate: AdmissionBounds) -> ElementFates:
    """Returns the fates of elements with times ``ts``, in order of reading; MIN: without a time.

    >>> bounds = AdmissionBounds(late_below=10, future_above=50)
    >>> verdict = admit(np.array([5, 20, 99, MIN, 30]), bounds)
    >>> verdict.keep.tolist(), verdict.late.tolist(), verdict.max_ts
    ([False, True, False, False, True], [True, False, False, False, False], 30)
    """
    if gate.limit is None and len(ts) and gate.passes(int(ts.min()), int(ts.max())):
        none = np.zeros(len(ts), np.bool_)
        return ElementFates(~none, none, none, len(ts), int(ts.max()), _distinct(ts))
    inside = (ts > MIN) & (ts >= gate.start) & (ts < gate.stop)
    if gate.limit is not None:
        inside &= np.cumsum(inside) <= gate.limit
    future = inside & (ts > gate.future_above)
    read = inside & ~future
    late = read & (ts < gate.late_below)
    keep = read & ~late
    max_ts = int(ts.max(initial=MIN, where=read))
    return ElementFates(
        keep, late, future, int(np.count_nonzero(inside)), max_ts, _distinct(ts[keep])
    )


def leading(ts: Times, verdict: ElementFates) -> Times:
    """Returns the row with the greatest time that moves the watermark; empty if there is none."""
    if verdict.max_ts == MIN:
        return ts[:0]
    first: Times = (ts == verdict.max_ts).argmax(keepdims=True)
    return first


def _distinct(ts: Times) -> Times:
    """Returns the sorted distinct times; ascending ones, as in most streams, need no sort."""
    if (ts[1:] >= ts[:-1]).all():
        first: Times = ts[starts_segment(ts)]
        return first
    return distinct(ts)


_1990 = 631_152_000_000
_FACTORS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
_LONGEST = 300
_SEEN = 1000  # about how many evenly spaced times are tried in other units


def likely_unit(ts: Times, config: StreamConfig, tomorrow: int, greatest: int = MIN) -> str:
    """Returns the unit that most of these times (ms, by the stream's unit) seem to have, or "". All
    must be before 1990 or after ``tomorrow``, and in that unit most between the two. ``greatest``:
    one of the times up to ``tomorrow``, such as the watermark's; from 1990 on it proves the unit,
    and no other time is examined.

    >>> seconds = np.array([1_700_000_000, 1_700_000_060])
    >>> likely_unit(seconds, StreamConfig.from_options("s", "a.nt"), 1_800_000_000_000)
    's'
    """
    if config.time_format or greatest >= _1990 or not len(ts):
        return ""
    if not (int(ts.max()) < _1990 or int(ts.min()) > tomorrow):
        return ""
    some = ts[:: max(len(ts) // _SEEN, 1)]
    held = some[some > MIN] / _FACTORS[config.unit]
    for unit, factor in _FACTORS.items():
        fits = (held * factor >= _1990) & (held * factor <= tomorrow)
        if unit != config.unit and 2 * int(np.count_nonzero(fits)) > len(held):
            return unit
    return ""


def some_reasons(
    reference: FileSplit, dead: Iterable[Dead], *, messages: bool = False
) -> list[str]:
    """Returns a few dead letters of a reference, each for another reason, with their places."""
    reasons: dict[str, str] = {}
    for d in islice(dead, 100):
        kind, reason = d.reason.split(":")[0], escape_controls(d.reason[:_LONGEST])
        reasons.setdefault(kind, f"{place_of(reference, d.offset, messages=messages)}: {reason}")
    return list(reasons.values())[:TOLD]


def place_of(reference: AnyReference, offset: int, *, messages: bool = False) -> str:
    """Describes a place in a reference for people."""
    form = getattr(reference, "format", "")
    place = "offset" if messages else "row" if form == "parquet" else "byte"
    return f"{escape_controls(reference.name)}, {place} {offset}"


def dead_records(
    reference: AnyReference, dead: Sequence[Dead], messages: Messages | None = None
) -> list[dict[str, Any]]:
    """Returns the dead letters of a reference as NDJSON-able records; of ``messages`` with their
    topics.
    """
    sources = _sources(reference, np.array([d.offset for d in dead], np.int64), messages)
    return [
        {
            "stream": reference.stream, "source": source, "offset": d.offset,
            "reason": shorten(d.reason), "text": d.text,
        }
        for source, d in zip(sources, dead, strict=True)
    ]  # fmt: skip


def _sources(reference: AnyReference, offsets: Times, messages: Messages | None) -> list[str]:
    names = None if messages is None else messages.sources(offsets)
    return [reference.name] * len(offsets) if names is None else names


def late_records(
    reference: AnyReference, late: Late, watermark: int, messages: Messages | None = None
) -> list[dict[str, Any]]:
    """Returns the late elements of a reference as NDJSON-able records; they were below
    ``watermark``. The reason has the times for people.
    """
    sources = _sources(reference, late.offset, messages)
    rows = zip(sources, late.offset.tolist(), late.ts.tolist(), late.text, strict=True)
    return [
        {
            "stream": reference.stream, "source": source, "offset": offset, "ts": ts,
            "watermark": watermark, "text": text,
            "reason": f"Its time {instant(ts)} is below the watermark {instant(watermark)}.",
        }
        for source, offset, ts, text in rows
    ]  # fmt: skip
