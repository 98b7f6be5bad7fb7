"""The reference's report times and contents against the definitions of windows, at every instant of
a small world.

Here a window is what the texts say it is: ``[c - a, c)`` of the last close c, the last n
occurrences, and so on; nothing uses ``enter`` and ``leave``. Times are a few milliseconds, so that
every instant can be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.event_time import Window, WindowKind
from levada.testing.reference import Element, ReferenceQuery, evaluate, report_times
from levada.testing.window_membership import occurrences, stays

K = WindowKind
FIRST, LAST = -12, 80
patient = settings(max_examples=60, deadline=None)
NAMES = "abcd"

SPANS = (K.CLOSE_OPEN, K.CLOSE_CLOSED, K.CHANGE, K.RANGE)


@st.composite
def any_window(draw: st.DrawFn) -> Window:
    """A window; those with a range are in the past in half of the cases."""
    kind = draw(
        st.sampled_from((*SPANS, *SPANS, K.NOW, K.ALL, K.COUNT, K.COUNT, K.SESSION, K.ENDED))
    )
    range_, given_t0 = draw(st.integers(1, 8)), draw(st.booleans())
    to = draw(st.integers(0, range_ - 1)) if kind in SPANS and draw(st.booleans()) else 0
    step = draw(st.integers(1, 5))
    t0 = draw(st.integers(-3, 3)) if given_t0 else 0
    return Window(kind, range_, step, t0, given_t0, draw(st.integers(1, 4)), to)


windows = any_window()
moments = st.lists(st.tuples(st.integers(-5, 25), st.sampled_from(NAMES)), max_size=10)


def elements(pairs: Sequence[tuple[int, str]]) -> list[Element]:
    return [Element(ts, (f"<e:{name}> <e:p> <e:o>",)) for ts, name in pairs]


def is_close(window: Window, tau: int) -> bool:
    """tau = t0 + a + k*b for a whole k, not negative if t0 is given."""
    k, rest = divmod(tau - window.t0 - window.range, window.step)
    return window.kind.on_close and rest == 0 and (k >= 0 or not window.t0_given)


def inside(
    window: Window, pairs: Sequence[tuple[int, str]], tau: int
) -> frozenset[tuple[int, str]]:
    """The occurrences in the window at tau, by the words of the definitions."""
    counted = sorted({(ts, name) for ts, name in pairs if not window.t0_given or ts >= window.t0})
    a, b, t0, y = window.range, window.step, window.t0, window.to
    closes = [c for c in range(FIRST - 20, tau + 1) if is_close(window, c)]
    match window.kind:
        case K.CLOSE_OPEN:
            return frozenset(
                x for x in counted if closes and closes[-1] - a <= x[0] < closes[-1] - y
            )
        case K.CLOSE_CLOSED:
            return frozenset(
                x for x in counted if closes and closes[-1] - a < x[0] <= closes[-1] - y
            )
        case K.CHANGE:
            opened = {
                x: max(o for o in range(FIRST - 20, LAST) if (o - t0) % b == 0 and o <= x[0])
                for x in counted
            }
            return frozenset(x for x in counted if x[0] + y <= tau < opened[x] + a)
        case K.RANGE:
            return frozenset(x for x in counted if tau - a < x[0] <= tau - y)
        case K.NOW:
            return frozenset(x for x in counted if x[0] == tau)
        case K.ALL:
            return frozenset(x for x in counted if x[0] <= tau)
        case K.COUNT:
            come = [x for x in counted if x[0] <= tau]
            return frozenset(come[: len(come) // b * b][-window.count :])
        case K.SESSION:
            come = [x for x in counted if x[0] <= tau]
            return frozenset(
                x for x in come if unbroken([t for t, _ in come if t >= x[0]] + [tau], a)
            )
        case K.ENDED:
            before = [x for x in counted if x[0] < tau]
            ends = any(x[0] + a == tau for x in before[-1:])
            return frozenset(
                x for x in before if ends and unbroken([t for t, _ in before if t >= x[0]], a)
            )
    raise AssertionError(f"{window.kind} is no window of a query")


def unbroken(times: Sequence[int], gap: int) -> bool:
    """Whether no two neighbours of these times are a gap apart."""
    return all(b - a < gap for a, b in pairwise(times))


@patient
@given(windows, moments)
def test_content_at_every_instant(window: Window, pairs: list[tuple[int, str]]) -> None:
    held = stays(window, occurrences(elements(pairs)))
    for tau in range(FIRST, LAST):
        found = {(s.ts, str(s.item)[3]) for s in held if s.enter <= tau < s.leave}
        assert found == inside(window, pairs, tau), tau


clocks = st.none() | st.builds(
    Window, st.just(K.CLOCK), step=st.integers(1, 5), t0=st.integers(-3, 3), t0_given=st.booleans()
)


def expected_times(
    two: Sequence[Window], pairs: Sequence[tuple[int, str]], clock: Window | None = None
) -> list[int]:
    contents = {tau: [inside(w, pairs, tau) for w in two] for tau in range(FIRST - 1, LAST)}
    changes = [tau for tau in range(FIRST, LAST) if contents[tau] != contents[tau - 1]]
    found = []
    before = False
    last = clock.next_close(changes[-1] - 1) if clock and changes else max(changes, default=FIRST)
    for tau in range(FIRST, last + max(w.step for w in two) + 1):
        changed = any(
            contents[tau][i] != contents[tau - 1][i]
            for i, w in enumerate(two)
            if not w.kind.on_close
        )
        if is_close(clock, tau) if clock else changed or any(is_close(w, tau) for w in two):
            now = any(contents[tau])
            ended = any(contents[LAST - 1]) and tau > last
            if (now or before) and not ended:
                found.append(tau)
            before = now
    return found


@patient
@given(st.lists(windows, min_size=1, max_size=2), moments, clocks)
def test_report_times(
    two: list[Window], pairs: list[tuple[int, str]], clock: Window | None
) -> None:
    held = {str(i): stays(w, occurrences(elements(pairs))) for i, w in enumerate(two)}
    named = {str(i): w for i, w in enumerate(two)}
    assert report_times(named, held, (), clock) == expected_times(two, pairs, clock)


@patient
@given(windows, moments)
def test_what_a_query_sees(window: Window, pairs: list[tuple[int, str]]) -> None:
    query = ReferenceQuery("SELECT ?s { GRAPH <e:w> { ?s ?p ?o } }", {"e:w": ("s", window)})
    for report in evaluate(query, {"s": elements(pairs)}):
        names = sorted(text[3] for solution in report.solutions.elements() for _, text in solution)
        assert names == sorted({name for _, name in inside(window, pairs, report.time)})
