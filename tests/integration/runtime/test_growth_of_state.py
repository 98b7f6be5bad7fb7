"""An engine that runs for long holds few files and descriptors, and its epochs cost what they did:
whatever waits for a watermark, a window or a reader.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.core import column_names as col
from levada.core.frame import Frame
from levada.engine.engine import Engine
from levada.operators.state import ordered_buffer
from levada.operators.state.checksummed_frames import unpack_checked
from levada.operators.state.ordered_buffer import OrderedBuffer
from levada.operators.state.state_parts import State, read_head
from levada.runtime.task.stage_task import TIME
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, element, judge, query, register, step

EPOCHS = 750
FILES = 60
DESCRIPTORS = 40


def grown(folder: Path, asked: Any, epochs: int = EPOCHS, **options: Any) -> list[tuple[int, ...]]:
    """Files, descriptors and rows of state touched, by epoch, of a run of one element an epoch."""
    write_lines(folder / "s.nt", [element(1000 * i, f"a{i} p {i}") for i in range(epochs)])
    found: list[tuple[int, ...]] = []

    def tell(manifest: Any) -> None:
        files = len(os.listdir(folder / "ck" / "state"))
        found.append((files, len(os.listdir("/proc/self/fd")), manifest.state_rows))

    with Engine(
        spark=False, checkpoint=folder / "ck", epoch_rows=1, partitions=1, keep_results=False
    ) as engine:
        engine.stream(S, folder / "s.nt", **options)
        register(engine, [asked])
        engine._on_epoch(tell)
        engine.start(once=True)
        engine.await_end()
    return found


def asked(select: str, clause: Clause, **more: Any) -> Any:
    return query(select, "WINDOW :w { ?a :p ?n }", name="q", windows={"w": (S, clause)}, **more)


WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "waiting for the watermark": (
        asked("SELECT ?a ?n", step(60_000, 60_000)),
        {"lateness": "10000s"},
    ),
    "waiting for a report": (asked("SELECT ?a ?n", step(10**8, 10**8)), {}),
}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_files_and_descriptors_do_not_grow(tmp_path: Path, way: str) -> None:
    question, options = WAYS[way]
    before = len(os.listdir("/proc/self/fd"))
    found = grown(tmp_path, question, **options)
    assert len(found) >= EPOCHS
    files, descriptors, touched = map(list, zip(*found, strict=True))
    assert max(files) < FILES
    assert max(descriptors) < before + DESCRIPTORS
    early, late = touched[100:250], touched[600:750]
    assert sum(late) < 2 * sum(early) + 20 * len(late), "a row is rewritten about log n times"


class Files:
    """Pending rows from epoch to epoch, in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.name = ""

    def read(self, name: str) -> Any:
        return unpack_checked(np.frombuffer(self.blobs[name], np.uint8), name)

    def state(self) -> State:
        return State(
            read_head(self.read(self.name)[1]) if self.name else None, self.name, self.read
        )

    def close(self, state: State, epoch: int) -> None:
        if state.changed:
            self.name = str(epoch)
            self.blobs[self.name] = b"".join(state.finish())


def _of(n: int) -> dict[str, Any]:
    """The columns of rows of one member and group."""
    return {"op": np.zeros(n, np.int32), col.PLACE: np.zeros(n, np.uint16)}


def test_what_waits_comes_up_once_at_its_time(random_seed: int) -> None:
    """Against a list: rows in any order, a watermark that moves in any steps."""
    drawn, key = np.random.default_rng(random_seed), "pending.0.0.0"
    files, waiting = Files(), np.empty(0, np.int64)
    w, pieces = 0, 0
    for epoch in range(400):
        state = files.state()
        new = w + drawn.integers(0, 500, drawn.integers(0, 9))
        w += int(drawn.integers(0, 12)) * int(drawn.random() < 0.7)
        waits = OrderedBuffer(state, key, TIME)
        up = [rows[TIME] for rows in waits.take_below(w)]
        left = np.sort(new[new >= w])
        if len(left):
            waits.add(Frame({**_of(len(left)), TIME: left}))
        files.close(state, epoch)
        pieces = max(pieces, len(state.pieces(key)))
        right = np.sort(waiting[waiting < w])
        assert np.array_equal(np.sort(np.concatenate([np.empty(0, np.int64), *up])), right), epoch
        waiting = np.concatenate([waiting[waiting >= w], left])
        assert sum(p.rows for p in state.pieces(key)) == len(waiting), epoch
    assert 1 < pieces < 16


def test_large_pieces_are_put_together_with_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_buffer, "MOST_ROWS", 64)
    state = State(None, "", lambda name: pytest.fail("nothing is written"))
    for i in range(0, 4000, 4):
        rows = np.arange(i, i + 4)
        OrderedBuffer(state, "k", TIME).add(Frame({**_of(4), TIME: rows}))
    sizes = [p.rows for p in state.pieces("k")]
    assert sum(sizes) == 4000
    assert max(sizes) < 3 * 64
    assert sum(np.array(sizes) < 64) < 12


def test_rows_that_wait_in_many_epochs_are_answered_as_ever(
    tmp_path: Path, random_seed: int
) -> None:
    drawn = random.Random(random_seed)
    elements = [element(100 * i, f"a{i % 7} p {i}") for i in range(150)]
    for _ in range(300):  # neighbours change places, within the lateness
        i = drawn.randrange(len(elements) - 1)
        if abs(elements[i].ts - 100 * i) < 1500 and abs(elements[i + 1].ts - 100 * i) < 1500:
            elements[i : i + 2] = elements[i + 1], elements[i]
    write_lines(tmp_path / "s.nt", elements)
    question = asked("SELECT ?a ?n", Clause("range", 900))
    sink = MemorySink()
    with Engine(
        spark=False, checkpoint=tmp_path / "ck", epoch_rows=2, partitions=2, sink=sink
    ) as engine:
        engine.stream(S, tmp_path / "s.nt", lateness="5s")
        register(engine, [question])
        engine.start(once=True)
        engine.await_end()
    judge([question], {S: sorted(elements, key=lambda e: e.ts)}, sink.reports)
