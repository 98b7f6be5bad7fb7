"""Random streams: ties, gaps, repeated triples, split elements, disorder within the lateness.

Times are multiples of 250 ms, often of a second, so that they meet the boundaries of windows, some
a millisecond beside them. A third of the streams repeats triples, at one ts or later; a third
splits elements into several of the same ts.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from levada.testing.reference_model import Element, Row, Value
from support.generators.vocabulary import TRIPLES

YEAR = 365 * 24 * 3600 * 1000
_STEPS = (500, 0, 250, 1000, 0, 1, 250, 999, 0, 500, 2000)
BASES = (0, 0, 0, 0, 999, -3000, 1_356_998_400_000)
LATENESSES = (0, 0, 500, 1500)


@st.composite
def times(draw: st.DrawFn, *, size: int, base: int, gap: bool) -> list[int]:
    """``size`` event times in ascending order from ``base`` on; with ``gap`` sometimes with a year
    between.
    """
    steps = draw(st.lists(st.sampled_from(_STEPS), min_size=size, max_size=size))
    if gap and size and draw(st.integers(0, 4)) == 4:
        steps[draw(st.integers(0, size - 1))] = YEAR
    found: list[int] = []
    now = base
    for step in steps:
        now += step
        found.append(now)
    return found


@st.composite
def elements(
    draw: st.DrawFn,
    *,
    lateness: int = 0,
    base: int = 0,
    gap: bool = False,
    least: int = 1,
    triples: Sequence[str] = TRIPLES,
) -> tuple[Element, ...]:
    """An RDF stream in order of arrival: ``least`` to 16 elements, more where they are repeated or
    split.
    """
    graph = st.lists(st.sampled_from(triples), min_size=1, max_size=4)
    graphs = draw(st.lists(graph, min_size=draw(st.sampled_from((least, 6, 6))), max_size=16))
    moments = draw(times(size=len(graphs), base=base, gap=gap))
    stream = [Element(ts, tuple(found)) for ts, found in zip(moments, graphs, strict=True)]
    form = draw(st.sampled_from(("plain", "repeated", "split")))
    if form == "repeated":
        stream += [Element(draw(st.sampled_from(stream)).ts, e.triples) for e in stream[::2]]
        stream.sort(key=lambda e: e.ts)
    if form == "split":
        stream = [Element(e.ts, (triple,)) for e in stream for triple in e.triples]
    return tuple(stream[i] for i in draw(arrival([e.ts for e in stream], lateness)))


@st.composite
def rows(
    draw: st.DrawFn,
    values: st.SearchStrategy[tuple[Value, ...]],
    *,
    lateness: int,
    base: int,
    gap: bool,
) -> tuple[Row, ...]:
    """A tuple stream of 1 to 16 rows in order of arrival."""
    found = draw(st.lists(values, min_size=draw(st.sampled_from((1, 6, 6))), max_size=16))
    stream = [
        Row(ts, v)
        for ts, v in zip(draw(times(size=len(found), base=base, gap=gap)), found, strict=True)
    ]
    return tuple(stream[i] for i in draw(arrival([r.ts for r in stream], lateness)))


@st.composite
def arrival(draw: st.DrawFn, ascending: Sequence[int], lateness: int) -> list[int]:
    """An order of arrival in which no time is more than ``lateness`` below the largest before it.

    Each element is delayed by at most the lateness. If e arrives after f although its time is
    smaller, then e.ts + lateness >= e.ts + delay(e) >= f.ts + delay(f) >= f.ts.
    """
    if lateness == 0:
        return list(range(len(ascending)))
    size = len(ascending)
    delays = draw(st.lists(st.integers(0, lateness), min_size=size, max_size=size))
    return sorted(range(size), key=lambda i: ascending[i] + delays[i])
