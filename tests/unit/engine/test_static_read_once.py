"""Static files are read once for equal joins, whenever their queries come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from asking import STREAM, element, feed
from levada import Engine
from levada.runtime.task.static import reader
from levada.testing.memory_sink import MemorySink
from levada.testing.streams import write_lines

TEXT = """PREFIX : <http://e/>
SELECT {} FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S]
WHERE {{ WINDOW :w {{ ?x :p ?v }} ?x :kind ?k {} }}"""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The static files that are read, as often as they are."""
    found: list[str] = []
    plain = reader.chunks

    def counted(file: Any, *rest: Any) -> Any:
        found.append(Path(file.path).name)
        return plain(file, *rest)

    with patch.object(reader, "chunks", counted):
        yield found


def kinds(sink: MemorySink, name: str) -> list[list[str]]:
    """What a query says of kinds, report by report."""
    return [
        sorted(dict(s)["k"].strip("<>").removeprefix("http://e/") for s in r.solutions.elements())
        for r in sink.reports.get(name, [])
    ]


def test_equal_join_that_comes_later_reads_no_file(tmp_path: Path, opened: list[str]) -> None:
    path, static = write_lines(tmp_path / "s.nt", []), tmp_path / "kinds.nt"
    static.write_text("<http://e/a> <http://e/kind> <http://e/Room> .\n")
    sink = MemorySink()

    def engine() -> Engine:
        found = Engine(spark=False, checkpoint=tmp_path / "c", sink=sink, partitions=1)
        found.stream(STREAM, path)
        found.static(static)
        return found

    texts = {
        "first": TEXT.format("?x ?v ?k", ""),
        "same": TEXT.format("?x ?v ?k", ""),
        "less": TEXT.format("?k", ""),
        "other": TEXT.format("?k", "FILTER(?v > 0)"),
        "changed": TEXT.format("?x ?v ?k", ""),
    }
    read = []
    with engine() as running:
        running.start()
        for i, (name, text) in enumerate(texts.items()):
            if name == "changed":
                static.write_text("<http://e/a> <http://e/kind> <http://e/Store> .\n")
            running.register(text, name=name)
            feed(running, path, [element(1000 * i + 500, f"a p {i + 1}")])
            read.append(len(opened))
    assert read == [1, 1, 1, 1, 2], "what is there now is read, by whoever comes then"
    with engine() as running, pytest.warns(UserWarning, match="has changed since it was read"):
        for name, text in texts.items():
            running.register(text, name=name)
        running.start(once=True)
        running.await_end()
    assert kinds(sink, "first") == [["Room", "Room"], ["Room", "Room"], ["Room"]]
    assert kinds(sink, "same") == [["Room"], ["Room", "Room"], ["Room"]]
    assert kinds(sink, "less") == [["Room", "Room"], ["Room"]]
    assert kinds(sink, "changed") == [["Store"]]
