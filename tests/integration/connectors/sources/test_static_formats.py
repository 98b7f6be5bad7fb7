"""Static data: every format and packing says the same; quads are named graphs; a fault is a
sentence with its place.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.connectors.ingest import static_files as static
from levada.connectors.ingest.static_files import (
    StaticFile,
    chunks,
    cut,
    select_graphs,
    static_file,
)
from levada.engine.engine import Engine
from levada.errors import SourceError, UnknownNameError, UsageError
from levada.testing.stream_builders import write_packed, write_rdf

TRIPLES = [
    f'<http://e/s{i}> <http://e/p> "{i}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    for i in range(50)
]
QUADS = [f"{t} <http://e/g{i % 2}>" if i % 3 else t for i, t in enumerate(TRIPLES)]


def texts(file: Any, graphs: Any, start: int = 0, stop: Any = None) -> Any:
    """The triples that a static file has in these graphs."""
    found = []
    for every in chunks(file, 5, start, stop):
        chunk = (
            select_graphs(file, every, graphs, 5)
            if file.graphs.intersection(graphs)
            else every.take(np.empty(0, np.int64))
        )
        columns = (chunk.s, chunk.p, chunk.o)
        found += [" ".join(chunk.text(c, row) for c in columns) for row in range(chunk.n)]
    return sorted(found)


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("form", ["nt", "ttl", "n3", "rdf", "owl", "nq", "trig", "jsonld", "jelly"])
def test_every_format_and_packing_says_the_same(
    tmp_path: Path, form: str, packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "CHUNK", 100)
    path = write_rdf(tmp_path / f"a.{form}{packed}", TRIPLES)
    assert texts(static_file(str(path)), [None]) == sorted(TRIPLES)


@pytest.mark.parametrize("form", ["nq", "trig", "jsonld", "jelly"])
def test_graphs_of_quads_are_named_graphs(tmp_path: Path, form: str) -> None:
    file = static_file(str(write_rdf(tmp_path / f"a.{form}", QUADS)))
    assert file.graphs == {None, "http://e/g0", "http://e/g1"}
    assert texts(file, [None]) == sorted(TRIPLES[::3])
    assert texts(file, ["http://e/g1"]) == sorted(
        t for i, t in enumerate(TRIPLES) if i % 3 and i % 2
    )
    assert texts(file, [None, "http://e/g0", "http://e/g1"]) == sorted(TRIPLES)
    assert texts(file, ["http://e/other"]) == []


def test_a_graph_that_is_given_takes_all(tmp_path: Path) -> None:
    file = static_file(str(write_rdf(tmp_path / "a.trig", QUADS)), "http://e/all")
    assert texts(file, ["http://e/all"]) == sorted(TRIPLES)
    assert texts(file, [None]) == texts(file, ["http://e/g1"]) == []


def test_a_format_that_is_given_wins(tmp_path: Path) -> None:
    path = write_rdf(tmp_path / "a.ttl", TRIPLES).rename(tmp_path / "a.data")
    assert texts(static_file(str(path), form="turtle"), [None]) == sorted(TRIPLES)
    with pytest.raises(UsageError, match="does not show in its name"):
        static_file(str(path))
    with pytest.raises(UsageError, match="csv is no format of static RDF"):
        static_file(str(path), form="csv")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        (
            "a.nt",
            b"<http://e/a> <http://e/b> <http://e/c> .\n\n<http://e/a> oops .\n",
            "line 3, column 14",
        ),
        (
            "a.nq.gz",
            b"<http://e/a> <http://e/b> <http://e/c> <http://e/g> .\n<http://e/a> <http://e/b> <",
            "line 2, col",
        ),
        ("a.ttl", b"<http://e/a> <http://e/b> 1 .\n<http://e/a> , .", "line 2, column 14"),
        ("a.trig.zst", b"<http://e/a> {", "line 1, column 14"),
        ("a.rdf", b"<rdf:RDF", "line 1, column 1"),
        ("a.jsonld", b'{"@id": }', "line 1, column"),
        ("a.jelly", b"x", "not Jelly"),
        ("a.ttl", b"<http://e/a> <http://e/b> <<( <http://e/a> <http://e/b> 1 )>> .", "RDF 1.2"),
    ],
)
def test_a_fault_is_a_sentence_with_its_place(
    tmp_path: Path, name: str, data: bytes, says: str
) -> None:
    path = write_packed(tmp_path / name, data)
    with pytest.raises(SourceError, match=says) as error:
        list(chunks(static_file(str(path)), 5))
    assert str(path) in error.value.message and error.value.message.count("\n") == 0


@pytest.mark.parametrize("name", ["a.nt.gz", "a.ttl.zst", "a.trig.gz"])
def test_a_damaged_file_is_a_sentence(tmp_path: Path, name: str) -> None:
    path = write_rdf(tmp_path / name, QUADS if "trig" in name else TRIPLES)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="cannot be read"):
        list(chunks(static_file(str(path)), 5))


def test_a_graph_named_by_a_blank_node_is_refused(tmp_path: Path) -> None:
    path = write_rdf(tmp_path / "a.nq", [f"{TRIPLES[0]} _:g"])
    with pytest.raises(SourceError, match="by a blank node"):
        static_file(str(path))


def test_queries_read_graphs_of_quads(tmp_path: Path) -> None:
    path = write_rdf(
        tmp_path / "rooms.trig",
        ['<http://e/a> <http://e/name> "A"', '<http://e/a> <http://e/name> "B" <http://e/g>'],
    )
    (tmp_path / "s.nt").write_text("<http://e/a> <http://e/t> <http://e/x> 1 .\n")
    window = (
        "FROM NAMED WINDOW <http://e/w> ON <http://e/s> [NOW] WHERE { "
        "WINDOW <http://e/w> { ?r <http://e/t> ?t }"
    )
    with Engine(spark=False) as engine:
        engine.stream("http://e/s", tmp_path / "s.nt")
        engine.static(path)
        default = engine.register(f"SELECT ?n {window} ?r <http://e/name> ?n }}")
        named = engine.register(
            f"SELECT ?n {window} GRAPH <http://e/g> {{ ?r <http://e/name> ?n }} }}"
        )
        with pytest.raises(UnknownNameError, match="http://e/h"):
            engine.register(
                f"SELECT ?n FROM NAMED <http://e/h> {window} "
                f"GRAPH <http://e/h> {{ ?r <http://e/name> ?n }} }}"
            )
        every = engine.register("SELECT ?g ?n WHERE { GRAPH ?g { ?r <http://e/name> ?n } }")
        engine.start(once=True)
        engine.await_end()
        assert default.to_polars(terms=True).rows() == [(1, '"A"')]
        assert named.to_polars(terms=True).rows() == [(1, '"B"')]
        assert every.to_polars(terms=True).rows() == [(None, "<http://e/g>", '"B"')]


def test_static_data_without_a_triple_are_none() -> None:
    with Engine(spark=False) as engine:
        engine.static([])
        found = engine.register("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }")
        engine.stream("http://e/s", __file__, format="nt")
        engine.start(once=True)
        engine.await_end()
        assert found.to_polars(terms=True).rows() == [
            (None, '"0"^^<http://www.w3.org/2001/XMLSchema#integer>')
        ]


@pytest.mark.parametrize("block", [7, 100, 8_000_000])
@pytest.mark.parametrize("size", [1, 40, 61, 200, 10**6])
def test_ranges_of_a_file_have_each_line_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, block: int
) -> None:
    """Whatever the ranges and the blocks in which they are read; also without a newline at
    the end.
    """
    monkeypatch.setattr(static, "CHUNK", block)
    path = tmp_path / "a.nt"
    path.write_text("\n".join(f"{t} ." for t in TRIPLES))
    file = static_file(str(path))
    ranges = cut(file, size)
    assert len(ranges) == -(-path.stat().st_size // size)
    assert sorted(t for start, stop in ranges for t in texts(file, [None], start, stop)) == sorted(
        TRIPLES
    )


def test_what_cannot_be_cut_is_read_whole(tmp_path: Path) -> None:
    for name in ("a.nt.gz", "a.ttl", "b.nq.zst"):
        assert cut(
            StaticFile(str(write_rdf(tmp_path / name, TRIPLES)), name[2:4], frozenset({None})), 10
        ) == [(0, None)]
    (tmp_path / "none.nt").touch()
    assert cut(static_file(str(tmp_path / "none.nt")), 10) == [(0, None)]


def test_a_fault_in_a_range_has_its_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text("".join(f"{t} .\n" for t in TRIPLES[:20]) + "oops\n")
    file = static_file(str(path))
    start, stop = cut(file, 300)[-1]
    with pytest.raises(SourceError, match="line 21, column 1"):
        list(chunks(file, 5, start, stop))
