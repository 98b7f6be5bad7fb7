"""Times of elements from epoch to epoch: what is kept says what all of them would, and an epoch
writes what is new.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Times, Window, WindowKind
from levada.core.frame import Frame
from levada.engine.engine import Engine
from levada.operators.state import element_time_log
from levada.operators.state.checksummed_frames import unpack_checked
from levada.operators.state.element_time_log import KeptTimes
from levada.operators.state.state_parts import State, read_head
from levada.operators.windowing.element_times import (
    EventTimes,
    occurrences,
    retain,
    span,
    steps,
    times,
)
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, element, query, register

K = WindowKind
KEY = "times.0"
moments = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=14)
cuts = st.lists(st.integers(0, 10), max_size=3).map(sorted)


class Files:
    """The state files of a partition, in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.name = ""

    def read(self, name: str) -> Any:
        return unpack_checked(np.frombuffer(self.blobs[name], np.uint8), name)

    def state(self) -> State:
        head = read_head(self.read(self.name)[1]) if self.name else None
        return State(head, self.name, self.read)

    def close(self, state: State) -> int:
        """Writes the state; how many bytes these are."""
        if not state.changed:
            return 0
        self.name = str(len(self.blobs))
        self.blobs[self.name] = b"".join(state.finish())
        return len(self.blobs[self.name])


def epoch(
    files: Files,
    arrived: list[Frame],
    w: int,
    window: Window,
    start: int = MIN,
    *,
    counted: bool = False,
) -> tuple[EventTimes, State]:
    """One epoch of a stream in this window."""
    state = files.state()
    kept = KeptTimes(state, KEY, arrived, w, with_counts=counted)
    kept.keep(retain(kept.seen, [window], start, w, show_empty=False))
    files.close(state)
    return kept.seen, state


def seen_by(pairs: list[tuple[int, int]]) -> Frame:
    """What a task says of triples (time, number of the triple)."""
    ts = np.array([at for at, _ in pairs], np.int64)
    which = np.array([number for _, number in pairs], np.uint64)
    return occurrences(ts, [(which, which + np.uint64(7)), (which, which)])


@pytest.mark.parametrize("few", [0, 2, element_time_log.MERGED_PART_ROWS])
@given(pairs=moments, watermarks=cuts, m=st.integers(1, 4), start=st.sampled_from((MIN, 0, 3)))
def test_steps_are_each_mth_distinct_triple(
    few: int, pairs: list[tuple[int, int]], watermarks: list[int], m: int, start: int
) -> None:
    window = Window(K.COUNT, count=2, step=m)
    ordered = [ts for ts, _ in sorted(set(pairs)) if ts >= start]
    expected = sorted(set(ordered[m - 1 :: m]))
    files, found, low = Files(), list[int](), MIN
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(element_time_log, "MERGED_PART_ROWS", few)
        for w in [*watermarks, MAX]:
            now = [p for p in pairs if low <= p[0] < w]
            ahead = [p for p in pairs if p[0] >= w][:1]  # read early, and again by another task
            arrived = [seen_by(now), seen_by(now[::2] + ahead)]
            seen, _ = epoch(files, arrived, w, window, start, counted=True)
            found += [
                t for t in steps(window, seen, max(start, window.start)).tolist() if low <= t < w
            ]
            low = w
    assert found == expected


def test_steps_over_many_epochs(random_seed: int) -> None:
    """In which pieces come, go and become one."""
    drawn = np.random.default_rng(random_seed)
    window = Window(K.COUNT, count=2, step=7)
    files, ordered, found = Files(), list[tuple[int, int]](), list[int]()
    pieces = 0
    for n in range(400):
        low, w = 50 * n, 50 * (n + 1)
        ts = drawn.integers(low, w + 40 * 50, 40).tolist()  # most are far ahead
        pairs = [(t, int(x)) for t, x in zip(ts, drawn.integers(1, 4, 40), strict=True)]
        ordered += pairs
        seen, state = epoch(files, [seen_by(pairs)], w, window, counted=True)
        found += [t for t in steps(window, seen, MIN).tolist() if low <= t < w]
        pieces = max(pieces, len(state.pieces(KEY)))
    right = [t for t, _ in sorted(set(ordered))][6::7]
    assert found == sorted({t for t in right if t < 400 * 50})
    assert 1 < pieces < 16


def test_what_was_not_counted_counts_nothing() -> None:
    """A stream is counted from the plan on in which some query asks for it, and no longer."""
    files, window = Files(), Window(K.COUNT, count=2, step=3)
    epoch(files, [times(np.array([1, 20]))], 5, window)
    seen, state = epoch(files, [occurrences(np.array([30]))], 25, window, counted=True)
    assert seen.ts.tolist() == [1, 20] and seen.total.tolist() == [0, 0]
    assert [sum(state.frame(p)["n"]) for p in state.pieces(KEY)] == [1]
    seen, _ = epoch(files, [times(np.array([30, 31]))], 40, window)
    assert seen.ts[-3:].tolist() == [20, 30, 31]


CHANGE = (Window(K.CHANGE, 300), Window(K.SESSION, 9), Window(K.CLOSE_OPEN, 100, 10))


@pytest.mark.parametrize("window", CHANGE, ids=lambda w: w.kind.name)
def test_what_is_kept_says_what_all_times_would(window: Window, random_seed: int) -> None:
    drawn = np.random.default_rng(random_seed)
    files, all_ts = Files(), set[int]()

    def instants(ts: Times, low: int, w: int) -> set[int]:
        found = {
            i
            for pair in zip(*span(window, EventTimes.from_times(ts), MIN), strict=True)
            for i in pair
        }
        return {int(i) for i in found if low <= i < w}

    for n in range(300):
        low, w = 7 * n, 7 * (n + 1)
        ts = drawn.integers(low, w + 25, drawn.integers(0, 6))
        all_ts |= set(ts.tolist())
        seen, state = epoch(files, [times(ts)], w, window)
        right = np.array(sorted(t for t in all_ts if t < w), np.int64)
        assert instants(seen.ts, low, w) == instants(right, low, w), n
        rows = sum(p.rows for p in state.pieces(KEY))
        assert rows < 4 * min(len(all_ts), 330) + 2 * element_time_log.MERGED_PART_ROWS
        assert len(state.pieces(KEY)) < 16


def test_a_burst_is_let_go_where_one_time_of_it_stays() -> None:
    """Of an endless window the first time matters for ever."""
    files, window = Files(), Window(K.ALL)
    epoch(files, [times(np.arange(100_000))], 0, window)
    _, state = epoch(files, [], 200_000, window)
    assert sum(p.rows for p in state.pieces(KEY)) < 5


def test_an_epoch_writes_what_is_new(tmp_path: Path) -> None:
    """300 epochs of 40 elements in a window that holds all of them."""
    epochs, each = 300, 40
    lines = [element(10 * i, f"a{i % 9} p {i % 7}") for i in range(epochs * each)]
    write_lines(tmp_path / "s.nt", lines)
    window = {"w": (S, Clause("range", 10**9))}  # reports when anything comes or goes
    asked = query("SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?a :q ?o }", name="q", windows=window)
    written: list[int] = []
    known: set[Path] = set()

    def count(_: Any) -> None:
        files = set((tmp_path / "ck" / "state").iterdir())
        written.append(sum(path.stat().st_size for path in files - known))
        known.update(files)

    with Engine(
        spark=False, checkpoint=tmp_path / "ck", epoch_rows=each, partitions=1, keep_results=False
    ) as engine:
        engine.stream(S, tmp_path / "s.nt")
        register(engine, [asked])
        engine._on_epoch(count)
        engine.start(once=True)
        engine.await_end()
    assert len(written) >= epochs
    written = written[:epochs]
    once = 8 * each * epochs  # bytes of all times
    assert sum(written) > once
    assert np.median(written[200:]) < np.median(written[:50]) + 2000
    assert sum(written) < 10 * once + 3000 * epochs, "written whole, they would be 150 times"
