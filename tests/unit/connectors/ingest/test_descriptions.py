"""Elements by subject have all that their blank nodes reach, in every syntax."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements, elements_of
from levada.connectors.ingest.parse.documents import parse_document
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.subject_descriptions import describe_subjects
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.splits import FileSplit
from levada.connectors.spool.row_batches import Shape
from levada.core.event_time import MAX, MIN

Triple = tuple[str, str, str]


def read(triples: list[Triple]) -> Triples:
    text = "".join(f"{s} <a:p{p}> {o} .\n" for s, p, o in triples)
    return parse(text.encode(), quads=False, timed=False, seed=1, document=1)


def twin(triples: list[Triple]) -> list[set[int]]:
    """The rows of each element, by the definition and with sets."""
    rows = {s: [i for i, t in enumerate(triples) if t[0] == s] for s, _, _ in triples}
    blank = [s for s in rows if s.startswith("_:")]

    def reaches(start: set[str], but: str = "") -> set[str]:
        seen, queue = {*start, but}, list(start - {but})
        while queue:
            for i in rows[queue.pop()]:
                if (o := triples[i][2]) in blank and o not in seen:
                    seen.add(o)
                    queue.append(o)
        return seen

    referred = {o for s, _, o in triples if s != o}
    about = {s for s in rows if s not in blank or s not in referred}
    covered = reaches(about)
    for s in rows:
        if s not in covered:
            about.add(s)
            covered |= reaches({s})
    elements: list[set[int]] = []
    last = None
    for i, (s, _, o) in enumerate(triples):
        if s in about:
            if s != last:
                elements.append(set())
            last = s
            others = reaches({o}, s) - {s} if o in blank else set()
            elements[-1] |= {i} | {k for node in others for k in rows[node]}
    return elements


NODES = st.sampled_from(["<a:1>", "<a:2>", *(f"_:{name}" for name in "abcdef")])


@given(st.lists(st.tuples(NODES, NODES), max_size=14))
def test_elements_of_a_document_are_those_of_the_definition(pairs: Any) -> None:
    triples = [(s, str(i), o) for i, (s, o) in enumerate(pairs)]
    found, number = describe_subjects(read(triples))
    elements: list[set[int]] = [set() for _ in range(int(number.max(initial=-1)) + 1)]
    for row, e in enumerate(number.tolist()):
        elements[e].add(int(found.text(found.p, row)[4:-1]))
    assert elements == twin(triples)
    assert len(number) == sum(map(len, elements)) and (np.diff(number) >= 0).all()


def test_a_document_of_too_many_shared_nodes_is_one_bad_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("levada.connectors.ingest.subject_descriptions._SHARED", 0)
    chain = [(f"_:n{i}", "0", f"_:n{i + 1}") for i in range(50)]
    found, number = describe_subjects(
        read([*chain, *((f"<a:{i}>", "0", "_:n0") for i in range(100))])
    )
    assert found.n == len(number) == 0
    assert "share so many blank nodes" in found.bad[0][1]


OBSERVATIONS = """
@prefix e: <http://e/> .
e:o1 e:result [ e:value 1 ; e:unit [ e:name "C" ] ] ; e:parts ( 1 [ e:value 2 ] 3 ) ; e:t 1000 .
e:o2 e:result [ e:value 4 ] ; e:t 2000 .
[] e:t 3000 ; e:by [ e:name "x" ] .
e:o3 e:t 4000 .
"""
SHARED = """
@prefix e: <http://e/> .
e:o1 e:by _:s ; e:t 1000 .
e:o2 e:by _:s ; e:t 2000 .
_:s e:name "s" ; e:next _:r .
_:r e:next _:s .
"""


def store(text: str) -> list[ox.Quad]:
    return list(ox.parse(text, format=ox.RdfFormat.TURTLE))


def by_document(text: bytes, form: str) -> tuple[Triples, Elements]:
    config = StreamConfig.from_options(
        "s", f"a.{form}", time="predicate:http://e/t", element="subject"
    )
    data = np.frombuffer(text, np.uint8)
    where = FileSplit("s", "s", "a", "/x", form, 0, len(data), 0, 1, 0)
    triples, where = parse_document(data, where, 1)
    triples, number = describe_subjects(triples)
    bounds: Any = {"late_below": MIN, "future_above": MAX}
    return triples, elements_of(triples, config, where, seed=1, number=number, **bounds)


def by_lines(text: bytes) -> tuple[Triples, Elements]:
    config = StreamConfig.from_options("s", "a.nt", time="predicate:http://e/t", element="subject")
    where = FileSplit("s", "s", "a", "/x", "nt", 0, len(text), 0, 1, 0)
    triples = parse(text, quads=False, timed=False, seed=1, document=1)
    bounds: Any = {"late_below": MIN, "future_above": MAX}
    return triples, elements_of(triples, config, where, seed=1, **bounds)


def shapes(triples: Triples, found: Elements) -> list[tuple[int, list[str]]]:
    """The time of each element, and its triples but for the names of blank nodes."""
    assert not found.dead
    texts = [
        " ".join(
            "_:" if (text := triples.text(c, row)).startswith("_:") else text
            for c in (triples.s, triples.p, triples.o)
        )
        for row in range(triples.n)
    ]
    rows = [np.flatnonzero(found.element == e) for e in range(found.elements)]
    each = [(int(found.ts[at[0]]), sorted(texts[row] for row in at)) for at in rows]
    return sorted(each)


@pytest.mark.long
@pytest.mark.parametrize("form", ["ttl", "trig", "rdf", "jsonld", "nt", "nq"])
@pytest.mark.parametrize("text", [OBSERVATIONS, SHARED])
def test_elements_are_the_same_in_every_syntax(text: str, form: str) -> None:
    expected = shapes(*by_document(text.encode(), "ttl"))
    kinds = {"ttl": ox.RdfFormat.TURTLE, "trig": ox.RdfFormat.TRIG, "rdf": ox.RdfFormat.RDF_XML}
    kinds |= {"jsonld": ox.RdfFormat.JSON_LD, "nt": ox.RdfFormat.N_TRIPLES}
    kinds |= {"nq": ox.RdfFormat.N_QUADS}
    written = ox.serialize(store(text), format=kinds[form])
    assert written is not None
    assert shapes(*by_document(written, form)) == expected
    if text == OBSERVATIONS and form == "nt":
        assert shapes(*by_lines(written)) == expected
        assert [ts for ts, _ in expected] == [1000, 2000, 3000, 4000]


def test_a_shared_node_is_in_the_elements_of_all_that_reach_it() -> None:
    triples, found = by_document(SHARED.encode(), "ttl")
    assert (found.elements, found.triples) == (2, 10)
    assert [len(triples) for _, triples in shapes(triples, found)] == [5, 5]


def test_a_dead_element_shows_its_own_lines() -> None:
    text = "<http://e/a> <http://e/p> [ <http://e/q> 1 ] .\n<http://e/b> <http://e/t> 5 ."
    _, found = by_document(text.encode(), "ttl")
    (dead,) = found.dead
    assert dead.reason == "no time" and sorted(dead.text.split("\n")) == sorted([
        "<http://e/a> <http://e/p> _:n0 .",
        '_:n0 <http://e/q> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    ])  # fmt: skip


VALUES: st.SearchStrategy[str] = st.recursive(
    st.integers(0, 9).map(str),
    lambda inner: (
        st.lists(st.tuples(st.integers(0, 3), inner), max_size=3).map(
            lambda pairs: "[ " + " ; ".join(f"e:p{p} {o}" for p, o in pairs) + " ]"
        )
        | st.lists(inner, max_size=3).map(lambda items: f"( {' '.join(items)} )")
    ),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.booleans(), st.lists(VALUES, max_size=3)), min_size=1, max_size=4))
def test_what_a_parser_writes_as_lines_has_the_same_elements(subjects: Any) -> None:
    text = "@prefix e: <http://e/> .\n"
    for i, (named, values) in enumerate(subjects):
        pairs = [f"e:q{k} {value}" for k, value in enumerate(values)]
        text += f"{f'e:o{i}' if named else '[]'} {' ; '.join([*pairs, f'e:t {i}'])} .\n"
    expected = shapes(*by_document(text.encode(), "ttl"))
    for form, kind in (("ttl", ox.RdfFormat.TURTLE), ("jsonld", ox.RdfFormat.JSON_LD)):
        written = text if form == "ttl" else ox.serialize(store(text), format=kind)
        assert written is not None
        lines = ox.serialize(ox.parse(written, format=kind), format=ox.RdfFormat.N_TRIPLES)
        assert lines is not None and shapes(*by_lines(lines)) == expected


def test_elements_are_the_same_in_whatever_pieces_a_file_is_read(tmp_path: Path) -> None:
    text = OBSERVATIONS + "".join(
        f"e:n{i} e:result [ e:value {i} ; e:parts ( {i} [ e:value 1 ] ) ] ; e:t {5000 + i} .\n"
        for i in range(50)
    )
    lines = ox.serialize(store(text), format=ox.RdfFormat.N_TRIPLES)
    assert lines is not None
    config = StreamConfig.from_options(
        "s", tmp_path / "a.nt", time="predicate:http://e/t", element="subject"
    )
    expected = shapes(*by_document(text.encode(), "ttl"))
    for size in (len(lines) // 3, len(lines) // 2):  # the file grows
        source = FileSource(config, tmp_path)
        found: list[tuple[int, list[str]]] = []
        position: Any = {}
        for there, final in ((size, False), (len(lines), True)):
            (tmp_path / "a.nt").write_bytes(lines[:there])
            source.discover(final=final, position=position)
            while (taken := source.take(position, 1))[0]:
                (reference,), position = taken
                piece = shapes(*by_lines(lines[reference.start : reference.stop]))
                assert len(piece) == reference.elements
                found += piece
        assert sorted(found) == expected


class Graph:
    """The part of an RDFLib graph that is needed: N-Triples in any order."""

    def __init__(self, text: str) -> None:
        lines = ox.serialize(store(text), format=ox.RdfFormat.N_TRIPLES)
        assert lines is not None
        self._text = "".join(reversed(lines.decode().splitlines(keepends=True)))

    def triples(self, triple: Any) -> Any:
        raise NotImplementedError

    def serialize(self, destination: None = None, format: str = "nt") -> str:
        return self._text


@pytest.mark.parametrize("text", [OBSERVATIONS, SHARED])
def test_a_graph_from_python_has_the_same_elements(text: str) -> None:
    config = StreamConfig.from_options("s", "a.nt", time="predicate:http://e/t", element="subject")
    (lines,) = Shape(config, ("s", "p", "o", "ts")).batches(Graph(text))
    assert isinstance(lines, pl.Series)
    assert shapes(*by_lines("".join(lines).encode())) == shapes(*by_document(text.encode(), "ttl"))
