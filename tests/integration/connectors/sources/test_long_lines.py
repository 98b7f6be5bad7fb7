"""A line longer than any element may be takes no memory, and is a dead letter among its
neighbours.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources import file_splitter, read_split
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.read_split import read_range
from levada.engine.engine import Engine
from levada.errors import SourceError

BOUND = 1 << 17
SPARQL = (
    "SELECT ?o FROM NAMED WINDOW <w> ON <S> [RANGE 1s STEP 1s] { "
    "WINDOW <w> { ?s <http://e/p> ?o } }"
)
CQL = "Istream(Select k From S [Now])"


@pytest.fixture(autouse=True)
def _low_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_splitter, "LONGEST_ELEMENT", BOUND)
    monkeypatch.setattr(read_split, "LONGEST_ELEMENT", BOUND)
    monkeypatch.setattr(read_split, "_BLOCK", 1 << 12)
    monkeypatch.setattr(file_splitter, "WINDOW", BOUND // 2)


def line(form: str, text: str, ts: int) -> str:
    return {
        "nt": f'<http://e/a> <http://e/p> "{text}" {ts} .\n',
        "csv": f"1,{text},{ts}\n",
        "ndjson": f'{{"k": 1, "v": "{text}", "ts": {ts}}}\n',
    }[form]


def fate(
    folder: Path, form: str, *, once: bool = True, **options: Any
) -> tuple[int, int, list[str]]:
    if form != "nt":
        options |= {"schema": "k:integer;v:string"}
    with Engine(spark=False, letters=folder.parent, partitions=1, epoch_rows=5) as engine:
        engine.stream("S", folder, format=form, **options)
        engine.register(SPARQL if form == "nt" else CQL, dialect=None if form == "nt" else "cql")
        engine.start(once=once)
        engine.await_end()
        record = engine._records()["S"]
    return record.elements, record.dead_letters, list(record.dead_letter_reasons)


@pytest.mark.parametrize("form", ["nt", "csv", "ndjson"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("packed", [False, True])
def test_one_dead_letter(tmp_path: Path, form: str, end: str, packed: bool) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    long = line(form, "x" * 10 * BOUND, 2000).rstrip("\n") + end
    behind = line(form, "z", 3000) if end else ""
    head = "k,v,ts\n" if form == "csv" else ""
    text = (head + line(form, "a", 1000) * 3 + long + behind).encode()
    if packed:
        (folder / f"a.{form}.gz").write_bytes(gzip.compress(text))
    else:
        (folder / f"a.{form}").write_bytes(text)
    elements, dead, reasons = fate(folder, form)
    assert (elements, dead) == (3 + bool(end), 1)
    assert "The line at byte" in reasons[0]


def test_what_is_just_within_the_bound_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    frame = len(line("nt", "", 2000))
    sizes = (BOUND - 1, BOUND, BOUND + 1)
    (folder / "a.nt").write_text("".join(line("nt", "x" * (n - frame), 2000) for n in sizes))
    assert fate(folder, "nt")[:2] == (2, 1)


def test_many_lines_of_more_than_the_bound_together(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.nt").write_text("".join(line("nt", f"{i}" * (BOUND // 3), 2000) for i in range(9)))
    assert fate(folder, "nt")[:2] == (9, 0)


def test_an_element_of_many_lines_is_a_fault_of_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.nt").write_text(line("nt", "a", 1000) + "\n")
    (folder / "b.nt").write_text(line("nt", "a", 2000) * (BOUND // 20) + "\n")
    (folder / "c.nt").write_text(line("nt", "a", 3000) + "\n")
    elements, dead, reasons = fate(folder, "nt", element="blankline")
    assert (elements, dead) == (2, 1)
    assert "an element of more than" in reasons[0]


def test_a_document_may_be_longer(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    text = '<http://e/a> <http://e/p> "a" .\n' * (BOUND // 10)
    (folder / "a_1000.nt").write_text(text)
    found = fate(folder, "nt", element="document", time="filename:_([0-9]+)")
    assert found == (1, 0, [])


def test_a_header_without_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k" * 20 * BOUND)
    with pytest.raises(SourceError, match=r"The header of .* has more than .* Is the file a CSV"):
        fate(path, "csv")


def test_a_line_is_looked_at_once_behind_the_bound_however_long_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.nt"
    for size in (4 * BOUND, 64 * BOUND):
        path.write_bytes(b"x" * size + b"\r\n" + line("nt", "o", 1).encode())
        seen: list[int] = []

        def counted(path: str, start: int, stop: int, room: int = 0, seen: Any = seen) -> Any:
            seen.append(stop - start)
            return read_range(path, start, stop, room)

        monkeypatch.setattr(file_splitter, "read_range", counted)
        monkeypatch.setattr(read_split, "read_range", counted)
        source = FileSource(StreamConfig.from_options("s", path), tmp_path)
        source.discover(True)
        (reference,), _ = source.take({}, 1)
        assert (reference.start, reference.stop) == (0, size + 2)
        assert sum(seen) < size + 2 * BOUND
