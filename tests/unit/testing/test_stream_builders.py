"""Files of elements and rows, as Levada reads them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyoxigraph as ox
import pytest

from levada.testing.reference_model import Element, Row
from levada.testing.stream_builders import (
    ManualClock,
    lines,
    time_term,
    write_csv,
    write_directory,
    write_graph,
    write_lines,
)

STREAM = [
    Element(1500, ("<a:s> <a:p> <a:o>", '<a:s> <a:p> "x"@en')),
    Element(-2000, ("<a:s> <a:p> _:b",)),
]


@pytest.mark.parametrize(
    ("ts", "text"),
    [
        (1500, "1970-01-01T00:00:01.5Z"),
        (-2000, "1969-12-31T23:59:58Z"),
        (1007, "1970-01-01T00:00:01.007Z"),
    ],
)
def test_time_as_date_time(ts: int, text: str) -> None:
    assert time_term(ts, "dateTime") == f'"{text}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def test_one_line_a_triple() -> None:
    assert (
        list(lines(STREAM, "typed"))[2]
        == '<a:s> <a:p> _:b "-2000"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    )
    assert list(lines(STREAM)) == [
        "<a:s> <a:p> <a:o> 1500 .",
        '<a:s> <a:p> "x"@en 1500 .',
        "<a:s> <a:p> _:b -2000 .",
    ]


def test_compressed_files_are_reproducible(tmp_path: Path) -> None:
    a, b = (write_lines(tmp_path / f"{name}.nt.gz", STREAM).read_bytes() for name in "ab")
    assert a == b
    assert gzip.decompress(a).decode().splitlines() == list(lines(STREAM))


def test_directory_cuts_in_order(tmp_path: Path) -> None:
    stream = [Element(i, (f"<a:s> <a:p> <a:o{i}>",)) for i in range(7)]
    folder = write_directory(tmp_path / "d", stream, files=3)
    files = sorted(folder.iterdir())
    assert [f.name for f in files] == ["0000.nt", "0001.nt", "0002.nt"]
    assert [line for f in files for line in f.read_text().splitlines()] == list(lines(stream))
    assert all(f.read_text() for f in files)


def test_more_files_than_elements(tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "d", STREAM[:1], files=3, ending=".nt.gz")
    assert [
        len(gzip.decompress(f.read_bytes()).splitlines()) for f in sorted(folder.iterdir())
    ] == [0, 0, 2]


def test_static_graph_is_ntriples(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "g.nt", STREAM[0].triples)
    assert len(list(ox.parse(path.read_bytes(), ox.RdfFormat.N_TRIPLES))) == 2


def test_csv(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [Row(5, (1, 2.5, "a, b", True))], ["k", "v", "n", "f"])
    assert path.read_text() == 'k,v,n,f,ts\n1,2.5,"a, b",true,5\n'


@pytest.mark.long
def test_clock_moves_only_forward() -> None:
    clock = ManualClock(10)
    clock.advance(5)
    assert clock() == 15
    with pytest.raises(AssertionError, match="backwards"):
        clock.advance(-1)
