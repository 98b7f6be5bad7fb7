"""Event time and windows: the one place that decides a boundary (docs/semantics.md#windows).

All times are integer milliseconds since 1970-01-01T00:00Z. ``MIN`` and ``MAX`` are minus and plus
infinity; real event times lie strictly between, and the arithmetic below saturates at them.

A window is two monotone functions: an element with time ``ts`` is in it at the instants ``enter(ts)
<= tau < leave(ts)``. With closes at ``c_k = t0 + range + k * step``, ``next(x)`` the smallest close
> x and ``last(x)`` the greatest ``t0 + k * step`` <= x:

                  definition                          enter              leave
    CLOSE_OPEN    range, step, on close, bounds [)    next(ts + to)      next(ts + range)
    CLOSE_CLOSED  the same, bounds (]                 next(ts + to - 1)  next(ts + range - 1)
    CHANGE        range, step, on content change      ts + to            last(ts) + range
    RANGE         range, per element                  ts + to            ts + range
    NOW                                               ts                 ts + 1
    ALL                                               ts                 MAX
    COUNT         the last ``count`` triples or rows  ts                 ended by a row of weight -1
    SESSION       elements less than ``range`` apart  ts                 ended by a row of weight -1
    ENDED         the same, at the session's end c    c                  c + 1
    NUMBERS       of a count window's rows: how far by number they reach, and not by time

``to`` is 0 but for a window in the past (FROM NOW-range TO NOW-to), whose content at tau happened
in [tau - range, tau - to). A COUNT window changes after each ``step``-th triple only: then ts is
that of the triple after which the content changed. An ENDED window's rows have the end of their
session in place of ts.

Three kinds are not windows of a query. CLOCK is its periodic report policy: it is always empty and
closes at t0 + k * step. STATIC represents static graphs that may be replaced; their rows come and
go (by a row of weight -1) at the instants of replacements. NUMBERS is behind a shared count window
and has the numbers of the rows (``operators/windowing/report_count_bound``).

``t0`` is 0 unless given; a t0 that is given means k >= 0, and elements before it are in no window
(``start``). The functions take and return ints or int64 arrays alike.
``kernels.time.window_intervals`` is their compiled twin.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from levada.core.frozen import frozen
from levada.core.integer_options import MAX_INTEGER
from levada.core.row_ranges import starts_segment
from levada.errors import UsageError

# Durations and times as users write them, in integer milliseconds.


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_ISO_DURATION = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_ISO_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?"
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def parse_duration(text: str | int) -> int:
    """Milliseconds of ``100ms``, ``1s``, ``1.5m``, ``2h``, ``1d``, ``PT1S`` or a bare number (ms);
    not negative.

    >>> parse_duration("10s"), parse_duration("PT1M30S"), parse_duration(250)
    (10000, 90000, 250)
    """
    word = str(text).strip()
    if match := _DURATION.fullmatch(word):
        return _to_whole_ms(float(match[1]) * UNITS[match[2] or "ms"], word)
    if word.startswith("P") and (match := _ISO_DURATION.fullmatch(word)) and any(match.groups()):
        weeks, days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return _to_whole_ms(
            ((weeks * 7 + days) * 24 + hours) * 3_600_000 + minutes * 60_000 + seconds * 1000, word
        )
    if re.match(r"-?P.*[YM]", word.split("T")[0]):
        raise UsageError(f"The duration {word} has years or months, which have no fixed length.")
    raise UsageError(
        f"{word or 'An empty text'} is not a duration.",
        hint="Say for example 100ms, 10s, 5m, 2h or PT10S.",
    )


def shown_duration(ms: int) -> str:
    """A duration of so many milliseconds as ISO 8601 writes it, in days and below.

    >>> [shown_duration(ms) for ms in (10_800_000, 93_600_000, 86_400_000, 90_500, 250, 0)]
    ['PT3H', 'P1DT2H', 'P1D', 'PT1M30.5S', 'PT0.25S', 'PT0S']
    """
    days, rest = divmod(ms, UNITS["d"])
    hours, rest = divmod(rest, UNITS["h"])
    minutes, rest = divmod(rest, UNITS["m"])
    seconds = f"{rest // 1000}.{rest % 1000:03d}".rstrip("0").rstrip(".")
    named = ((hours, f"{hours}H"), (minutes, f"{minutes}M"), (rest, f"{seconds}S"))
    time = "".join(word for count, word in named if count)
    day = f"{days}D" if days else ""
    return f"P{day}T{time}" if time else f"P{day}" if day else "PT0S"


def _to_whole_ms(milliseconds: float, word: str) -> int:
    if not milliseconds < MAX_INTEGER:
        raise UsageError(
            f"The duration {word} is longer than any stream: {MAX_INTEGER:.0e} ms and more."
        )
    if abs(milliseconds - round(milliseconds)) > 1e-6:
        raise UsageError(f"The duration {word} is finer than a millisecond.")
    return round(milliseconds)


def parse_time(text: str | int | datetime.date) -> int:
    """Milliseconds since 1970-01-01T00:00Z of an ISO date or dateTime (without zone: UTC) or of an
    integer (ms).

    >>> parse_time("1970-01-01T00:00:01.500Z"), parse_time("1970-01-02"), parse_time(7)
    (1500, 86400000, 7)
    """
    word = text.isoformat() if isinstance(text, datetime.date) else str(text).strip()
    if re.fullmatch(r"[+-]?\d{1,18}", word):
        return int(word)
    if _ISO_TIME.fullmatch(word):
        try:
            moment = datetime.datetime.fromisoformat(word)
        except ValueError as error:
            raise UsageError(f"{word} is not a time: {error}.") from error
        moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return (moment - _EPOCH) // datetime.timedelta(milliseconds=1)
    hint = "Say for example 2013-01-01T05:00:00Z or an integer of milliseconds."
    raise UsageError(f"{word or 'An empty text'} is not a time.", hint=hint)


MIN = -(2**62)
MAX = 2**62

TIMELESS = MIN
"""The report of a query without windows, which is answered once: shown as null."""

Times = npt.NDArray[np.int64]


def distinct(times: Times) -> Times:
    """The distinct times, in order. (``np.unique`` hashes, and slots fill up where times are
    multiples of a step: microseconds each in place of some ten nanoseconds.)

    >>> distinct(np.array([3000, 1000, 3000])).tolist()
    [1000, 3000]
    """
    ordered: Times = times if (times[1:] > times[:-1]).all() else np.sort(times)
    return ordered[starts_segment(ordered)]


def in_sorted(ordered: Times, times: Times) -> npt.NDArray[np.bool_]:
    """Flags the times that are in a sorted array."""
    at = np.searchsorted(ordered, times)
    is_member = np.zeros(len(times), np.bool_)
    inside = at < len(ordered)
    is_member[inside] = ordered[at[inside]] == times[inside]
    return is_member


class WindowKind(IntEnum):
    """How a window's content follows from event times; its numbers are in parameter tables."""

    CLOSE_OPEN = 0
    CLOSE_CLOSED = 1
    CHANGE = 2
    RANGE = 3
    NOW = 4
    ALL = 5
    COUNT = 6
    SESSION = 7
    ENDED = 8
    CLOCK = 9
    STATIC = 10
    NUMBERS = 11

    @property
    def on_close(self) -> bool:
        """Whether such a window reports at its closes (else at every change of its content)."""
        return self in (WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED, WindowKind.CLOCK)

    @property
    def by_session(self) -> bool:
        """Whether the content is a session."""
        return self in (WindowKind.SESSION, WindowKind.ENDED)

    @property
    def endless(self) -> bool:
        """Whether time alone never empties such a window."""
        return self in (WindowKind.ALL, WindowKind.COUNT, WindowKind.SESSION)


def reporting_windows(kinds: Sequence[WindowKind]) -> tuple[int, ...]:
    """Returns the windows of a query, including its clock, that decide when it is evaluated: the
    clock alone if there is one, else all.

    >>> reporting_windows([WindowKind.RANGE, WindowKind.CLOCK])
    (1,)
    >>> reporting_windows([WindowKind.RANGE, WindowKind.NOW])
    (0, 1)
    """
    clocks = tuple(i for i, kind in enumerate(kinds) if kind is WindowKind.CLOCK)
    return clocks or tuple(range(len(kinds)))


@frozen
class Window:
    """A window as a value: its kind and its parameters (ms; ``count``, and the step of a count
    window, in triples or rows).

    ``range`` is a session's gap. ``to`` says how far in the past a window ends. ``t0_given`` says
    that t0 was set by the user: then only closes with k >= 0 exist, and only elements from t0 on
    count.

    >>> Window(WindowKind.CLOSE_OPEN, range=4000, step=2000).enter(2500)
    4000
    >>> Window(WindowKind.CLOSE_OPEN, range=4000, step=2000).leave(2500)
    8000
    """

    kind: WindowKind
    range: int = 0
    step: int = 1
    t0: int = 0
    t0_given: bool = False
    count: int = 0
    to: int = 0

    def __post_init__(self) -> None:
        assert self.step > 0, "a step is positive"
        assert self.range >= 0, "a range is not negative"
        assert 0 <= self.to <= self.range, "a window ends after it starts, and not in the future"

    @property
    def start(self) -> int:
        """Elements before this time are in no window; static data are there whatever t0."""
        return self.t0 if self.t0_given and self.kind is not WindowKind.STATIC else MIN

    @property
    def reach(self) -> int:
        """Elements so far apart, or farther, are never in the window together (ms); MAX: there is
        no such distance.

        Not of sessions, which may be of any length: there no element's triples are joined before
        the window.
        """
        match self.kind:
            case WindowKind.ALL | WindowKind.COUNT:
                return MAX
            case WindowKind.NOW:
                return 1
            case _:
                return self.range

    @property
    def stays(self) -> int:
        """Returns how long an element is in the window at most, from its time on (ms); MAX:
        forever. For NUMBERS: for how many elements.
        """
        match self.kind:
            case WindowKind.CLOSE_OPEN | WindowKind.CLOSE_CLOSED:
                return self.range + self.step
            case WindowKind.CHANGE | WindowKind.RANGE | WindowKind.NUMBERS:
                return self.range
            case WindowKind.NOW | WindowKind.ENDED:
                return 1
            case _:
                return MAX

    def next_close(self, x: int) -> int:
        """The smallest close > x (on-close windows only); MIN and MAX map to themselves."""
        if x <= MIN or x >= MAX:
            return x
        first = self.t0 + self.range
        close = first + ((x - first) // self.step + 1) * self.step
        return max(close, first) if self.t0_given else close

    def enter(self, ts: int) -> int:
        """The first instant at which an element of time ``ts`` is in the window; MIN and MAX map to
        themselves.
        """
        if ts <= MIN or ts >= MAX:
            return ts
        match self.kind:
            case WindowKind.CLOSE_OPEN:
                return self.next_close(ts + self.to)
            case WindowKind.CLOSE_CLOSED:
                return self.next_close(ts + self.to - 1)
            case _:
                return ts + self.to

    def leave(self, ts: int) -> int:
        """The first instant at which it no longer is; MIN and MAX map to themselves (an element
        that never was).
        """
        if ts <= MIN or ts >= MAX:
            return ts
        match self.kind:
            case WindowKind.CLOSE_OPEN:
                return self.next_close(ts + self.range)
            case WindowKind.CLOSE_CLOSED:
                return self.next_close(ts + self.range - 1)
            case WindowKind.CHANGE:
                return self.t0 + self.step * ((ts - self.t0) // self.step) + self.range
            case WindowKind.RANGE:
                return ts + self.range
            case WindowKind.NOW | WindowKind.ENDED:
                return ts + 1
            case _:
                return MAX

    def describe(self) -> str:
        """One line for explain: ``[RANGE PT4S STEP PT2S close [)]``."""
        length, to, step = map(shown_duration, (self.range, self.to, self.step))
        span = f"RANGE {length}" + f" TO {to}" * bool(self.to)
        bounds = {
            WindowKind.CLOSE_OPEN: " close [)",
            WindowKind.CLOSE_CLOSED: " close (]",
            WindowKind.CHANGE: " change",
        }
        match self.kind:
            case WindowKind.NOW | WindowKind.ALL | WindowKind.STATIC:
                return f"[{self.kind.name}]"
            case WindowKind.NUMBERS:
                return f"[ROWS {self.range or 'n'}]"
            case WindowKind.COUNT:
                return f"[ROWS {self.count}" + f" STEP {self.step}" * (self.step > 1) + "]"
            case WindowKind.SESSION | WindowKind.ENDED:
                report = "change" if self.kind is WindowKind.SESSION else "close"
                return f"[SESSION {length} {report}]"
            case WindowKind.CLOCK:
                return f"[EVERY {step}]"
            case WindowKind.RANGE:
                return f"[{span}]"
            case _:
                t0 = f" t0 {self.t0}" if self.t0_given else ""
                return f"[{span} STEP {step}{bounds[self.kind]}{t0}]"


def order(ts: Times, text: list[str]) -> npt.NDArray[np.int64]:
    """The order in which operators see elements: by (ts, canonical N-Triples); row numbers."""
    return np.array(sorted(range(len(text)), key=lambda i: (int(ts[i]), text[i])), dtype=np.int64)


def instant(ms: int) -> str:
    """An event time for people.

    >>> instant(1500), instant(MAX)
    ('1970-01-01T00:00:01.500Z', 'end')
    """
    if ms <= MIN:
        return "-"
    if ms >= MAX:
        return "end"
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
    except OverflowError:  # beyond the years 1 to 9999
        return f"{ms} ms"
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds") + "Z"
