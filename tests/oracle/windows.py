"""Which elements windows hold, and when: the window table of docs/semantics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from oracle.queries import Window

NEVER = 1 << 60


@dataclass(frozen=True)
class Clock:
    """How a query looks: ``t0`` as given, ``bounds``, ``policy`` (close, change, a period)."""

    t0: int | None
    bounds: str
    policy: str | int

    def next(self, x: int, window: Window) -> int:
        """The smallest close after x."""
        first = (self.t0 or 0) + window.a
        k = (x - first) // window.b + 1
        return first + (k if self.t0 is None else max(k, 0)) * window.b


@dataclass(frozen=True)
class Stay:
    """An element's stay in a window: at the instants ``enter <= t < leave``."""

    enter: int
    leave: int
    said: object


Said = Sequence[tuple[int, object]]
"""What a stream says, in the order of times, and at one time of texts."""


def stays(window: Window, said: Said, clock: Clock) -> list[Stay]:
    """Who is in a window, and when; who never is is left out."""
    if clock.t0 is not None:
        said = [(ts, what) for ts, what in said if ts >= clock.t0]
    found = KINDS[window.kind](window, said, clock)
    return [stay for stay in found if stay.enter < stay.leave]


def stepping(window: Window) -> bool:
    """Whether a window has closes."""
    return window.kind in ("step", "paststep")


def closes(window: Window, clock: Clock, first: int, last: int) -> Iterable[int]:
    """The closes of a window in ``[first, last]``."""
    at = clock.next(first - 1, window)
    return range(at, last + 1, window.b)


def _step(window: Window, said: Said, clock: Clock) -> Iterable[Stay]:
    """Also in the past: e is 0 where a window is not."""
    a, b, e, shift = window.a, window.b, window.e, 0 if clock.bounds == "[)" else 1
    t0 = clock.t0 or 0
    for ts, what in said:
        if clock.policy == "change":
            yield Stay(ts + e, t0 + b * ((ts - t0) // b) + a, what)
        else:
            yield Stay(clock.next(ts + e - shift, window), clock.next(ts + a - shift, window), what)


def _range(window: Window, said: Said, clock: Clock) -> Iterable[Stay]:
    return (Stay(ts + window.e, ts + window.a, what) for ts, what in said)


def _now(window: Window, said: Said, clock: Clock) -> Iterable[Stay]:
    return (Stay(ts, ts + 1, what) for ts, what in said)


def _all(window: Window, said: Said, clock: Clock) -> Iterable[Stay]:
    return (Stay(ts, NEVER, what) for ts, what in said)


def _last(window: Window, said: Said, clock: Clock) -> Iterable[Stay]:
    """The last n; with a step they change with each m-th alone."""
    m = window.m or 1

    def at(number: int) -> int:
        """When the window changes to what there is behind so many."""
        number = -(-number // m) * m
        return said[number - 1][0] if number <= len(said) else NEVER

    for i, (_, what) in enumerate(said, 1):
        yield Stay(at(i), at(i + window.n), what)


def _by(window: Window, said: Said, clock: Clock) -> Iterable[Stay]:
    """The last n of each value of a column."""
    parts: dict[object, list[tuple[int, object]]] = {}
    for ts, row in said:
        parts.setdefault(dict(row)[window.key], []).append((ts, row))  # type: ignore[call-overload]
    for part in parts.values():
        yield from _last(window, part, clock)


def _session(window: Window, said: Said, clock: Clock) -> Iterable[Stay]:
    """By default at the instant of its end; on change and periodically from an element on."""
    for i, (ts, what) in enumerate(said):
        last = i
        while last + 1 < len(said) and said[last + 1][0] - said[last][0] < window.a:
            last += 1
        end = said[last][0] + window.a
        yield Stay(end, end + 1, what) if clock.policy == "close" else Stay(ts, end, what)


KINDS: dict[str, Callable[[Window, Said, Clock], Iterable[Stay]]] = {
    "step": _step, "paststep": _step, "range": _range, "past": _range, "now": _now, "all": _all,
    "triples": _last, "elements": _last, "rows": _last, "by": _by, "session": _session,
}  # fmt: skip
