"""What an epoch costs, by its counters and files (judge 6): texts only where they are shown, work
that follows the new rows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.checkpoint import state_files
from levada.core.frame import unpack
from levada.engine.engine import Engine
from levada.kernels.terms.term_dictionary import Terms
from levada.operators.state.checksummed_frames import unpack_checked
from levada.runtime.task import entry_points
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, T, element, query, step

BOTH = {"w": (S, Clause("range", 3000)), "v": (T, Clause("range", 3000))}


class Seen:
    """The texts of all blobs and state files of a run, and what was read and written of state."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: set[str] = set()
        self.written: list[int] = []
        for name in ("intake", "stage"):
            monkeypatch.setattr(entry_points, name, self._sending(getattr(entry_points, name)))
        monkeypatch.setattr(state_files, "write", self._writing(state_files.write))

    def _take(self, frames: Any) -> Any:
        for name in {n.rsplit(".", 1)[0] for n in frames if n.endswith(".id")}:
            terms = Terms.from_frames(frames, name)
            self.texts.update(terms.texts(terms.x, terms.y).to_pylist())
        return frames

    def _sending(self, function: Any) -> Any:
        def send(*args: Any) -> Any:
            sent = function(*args)
            for target, blob in sent:
                if target >= 0:
                    self._take(unpack(blob)[0])
            return sent

        return send

    def _writing(self, write: Any) -> Any:
        def wrapped(root: Any, folder: Any, stem: Any, buffers: Any) -> Any:
            if folder == "state":
                data = np.frombuffer(b"".join(map(bytes, buffers)), np.uint8)
                frames = self._take(unpack_checked(data, stem)[0])
                self.written.append(sum(f.n for f in frames.values()))
            return write(root, folder, stem, buffers)

        return wrapped


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from levada.runtime.executor import resolve

    resolve.cache_clear()
    yield Seen(monkeypatch)
    resolve.cache_clear()


def go(tmp_path: Path, query: Any, left: Any, right: Any = None, epoch_rows: int = 1000) -> Any:
    """Runs a query; returns the manifests of its epochs."""
    manifests = []
    with Engine(
        spark=False, checkpoint=tmp_path / "ck", epoch_rows=epoch_rows, partitions=2, seed=7
    ) as engine:
        engine.stream(S, write_lines(tmp_path / "s.nt", left))
        if right is not None:
            engine.stream(T, write_lines(tmp_path / "t.nt", right))
        engine.register(query.text, name=query.name)
        engine._on_epoch(manifests.append)
        engine.start(once=True)
        engine.await_end()
    return manifests


@pytest.mark.parametrize(
    ("head", "tail", "shown", "hidden"),
    [
        ("SELECT ?n", "", {"n"}, {"key", "m"}),
        ("SELECT ?key", "", {"key"}, {"n", "m"}),
        ("SELECT (COUNT(*) AS ?c)", "", set(), {"key", "n", "m"}),
        ("SELECT (SUM(?n) AS ?c)", "", set(), {"key", "n", "m"}),
        ("SELECT ?key (MAX(?n) AS ?c)", " GROUP BY ?key", {"key"}, {"m"}),
        ("ASK", "", set(), {"key", "n", "m"}),
    ],
)
def test_only_what_is_shown_travels_as_text(
    tmp_path: Path, seen: Any, head: str, tail: str, shown: Any, hidden: Any
) -> None:
    left = [element(200 * i, f"key{i % 4} p {100 + i}") for i in range(40)]
    right = [element(300 * i, f"key{i % 4} q m{i}") for i in range(25)]
    shows = query(
        head, "WINDOW :w { ?key :p ?n } WINDOW :v { ?key :q ?m }", tail=tail, name="q", windows=BOTH
    )
    manifests = go(tmp_path, shows, left, right, epoch_rows=10)
    assert sum(m.counts.solutions for m in manifests) > 20
    numbers = tuple(f'"{100 + i}"' for i in range(40))
    marks = {"key": "<http://e/key", "n": numbers, "m": "<http://e/m"}
    for variable in hidden:
        assert not [t for t in seen.texts if t.startswith(marks[variable])], (
            f"the texts of ?{variable}"
        )
    for variable in shown:
        assert [t for t in seen.texts if t.startswith(marks[variable])], f"no text of ?{variable}"


def test_a_filter_on_text_needs_it_and_a_filter_on_numbers_does_not(
    tmp_path: Path, seen: Any
) -> None:
    left = [element(200 * i, f"key{i % 4} p {100 + i}") for i in range(40)]
    right = [element(300 * i, f"key{i % 4} q m{i}") for i in range(25)]
    body = (
        "WINDOW :w { ?key :p ?n } WINDOW :v { ?key :q ?m } "
        "FILTER(?n > 105 && STRLEN(STR(?m)) + ?n > 3)"
    )
    go(
        tmp_path,
        query("SELECT (COUNT(*) AS ?c)", body, name="q", windows=BOTH),
        left,
        right,
        epoch_rows=10,
    )
    assert [t for t in seen.texts if t.startswith("<http://e/m")]
    assert not [t for t in seen.texts if t.startswith(('"1', "<http://e/key"))]


def with_range(name: Any, milliseconds: Any) -> Any:
    """A query with windows of another range."""
    longer = {
        w: (on, Clause(c.kind, milliseconds, c.step)) for w, (on, c) in _windows(name).items()
    }
    tail, output = ("", "ISTREAM") if name == "join" else ("GROUP BY ?a", "RSTREAM")
    head, body = _parts(name)
    return query(head, body, tail, windows=longer, output=output)


def _parts(name: Any) -> Any:
    if name == "join":
        return "SELECT ?a ?n ?m", "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :q ?m }"
    return "SELECT ?a (SUM(?n) AS ?c)", "WINDOW :w { ?a :p ?n }"


def _windows(name: Any) -> Any:
    return BOTH if name == "join" else {"w": (S, step(3000, 500))}


@pytest.mark.long
@pytest.mark.parametrize("name", ["join", "panes"])
def test_the_work_of_an_epoch_follows_its_new_rows_not_the_window(
    tmp_path: Path, seen: Any, name: str
) -> None:
    """Windows of 20 and of 200 epochs, keys that never meet: rows given to operators and rows
    written to state are alike.
    """
    left = [element(10 * i, f"a{i % 50} p {i}") for i in range(8000)]
    right = [element(10 * i, f"b{i % 50} q {i}") for i in range(8000)]
    work = {}
    for milliseconds in (4_000, 40_000):
        seen.written.clear()
        folder = tmp_path / str(milliseconds)
        folder.mkdir()
        manifests = go(
            folder,
            with_range(name, milliseconds),
            left,
            right if name == "join" else None,
            epoch_rows=200,
        )
        assert len(manifests) >= 40
        running = manifests[:-1]  # the end reports what the open windows hold: more for longer ones
        work[milliseconds] = (sum(m.input_rows for m in running), sum(seen.written))
    small, big = work[4_000], work[40_000]
    assert small[0] > 0
    assert small[1] > 0
    assert big[0] <= 1.1 * small[0], "rows that operators were given"
    assert big[1] <= 2.0 * small[1], (
        "rows written to state: merging adds a generation, not a window"
    )
