"""Documents become the same statements whatever their format, and a fault has a place."""

import io
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest

import levada
from levada.connectors.ingest.parse import documents
from levada.connectors.ingest.parse.documents import Malformed, document_chunks, parse_document
from levada.connectors.ingest.parse.fallback_parser import Refused, read_line
from levada.connectors.sources.splits import FileSplit
from levada.testing.stream_builders import write_rdf

QUADS = [
    '<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '<http://e/a> <http://e/p> "x"@en <http://e/g>',
    '_:b <http://e/p> "a \\"quoted\\" _:text\\n" <http://e/g>',
    "<http://e/a> <http://e/q> _:b",
]


def read(path: Any, form: Any) -> bytes:
    return b"".join(document_chunks(lambda: path.open("rb"), form, "http://e/"))


def dataset(text: Any) -> Any:
    found = ox.Dataset(ox.parse(text, ox.RdfFormat.N_QUADS))
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return found


@pytest.mark.parametrize("form", ["nq", "trig", "jsonld", "jelly"])
def test_every_quad_format_says_the_same(tmp_path: Path, form: str) -> None:
    path = write_rdf(tmp_path / f"a.{form}", QUADS)
    assert dataset(read(path, form)) == dataset("".join(f"{q} .\n" for q in QUADS))


@pytest.mark.parametrize("form", ["nt", "ttl", "rdf"])
def test_every_triple_format_says_the_same(tmp_path: Path, form: str) -> None:
    triples = [q.replace(" <http://e/g>", "") for q in QUADS]
    path = write_rdf(tmp_path / f"a.{form}", triples)
    assert dataset(read(path, form)) == dataset("".join(f"{t} .\n" for t in triples))


ANONYMOUS = {
    "ttl": b"@prefix : <http://e/> . [] :p [ :q 1 ] ; :r ( 1 2 ) . _:x :p _:x .",
    "trig": b"@prefix : <http://e/> . :g { [] :p [ :q 1 ] } [] :p [] .",
    "jsonld": b'{"http://e/p": {"http://e/q": [{"http://e/r": 1}, {"http://e/r": 2}]}}',
    "rdf": b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>"
    b"<rdf:Description><e:p rdf:parseType='Resource'><e:q>x</e:q></e:p></rdf:Description>"
    b"</rdf:RDF>",
}


@pytest.mark.parametrize("form", ANONYMOUS)
def test_blank_nodes_are_named_alike_every_time(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def text() -> bytes:
        return b"".join(document_chunks(lambda: io.BytesIO(ANONYMOUS[form]), form, "http://e/"))

    whole = text()
    assert b"_:n0" in whole and b"_:n1" in whole
    monkeypatch.setattr(documents, "CHUNK", 1)
    assert text() == whole == text()
    judge = dataset(
        ox.serialize(
            ox.parse(ANONYMOUS[form], documents.PARSERS[form]), format=ox.RdfFormat.N_QUADS
        )
    )
    assert dataset(whole) == judge


@pytest.mark.parametrize(
    ("form", "data", "where", "says"),
    [
        ("ttl", b"<http://e/a> <http://e/b> 1 .\n<http://e/a> <<", ", line 2, column 14",
         "end of file"),
        ("trig", b"<http://e/g> {\n <http://e/a> <http://e/b> }", ", line 2, column 28",
         "RDF object"),
        ("rdf", b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n<a",
         ", line 2, column 1", "tag"),
        ("rdf", b"<?xml version='1.0'?><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
         b"<rdf:Description rdf:ID='a b'/></rdf:RDF>", "", "rdf:ID"),
        ("jsonld", b'{"@id": "http://e/a",\n "http://e/p": }', ", line 2, column 16", "closing"),
        ("jsonld", b'{"@context": "http://e/context", "p": 1}', ", line 1, column 14",
         "http://e/context lies elsewhere, and nothing is fetched"),
        ("jelly", b"no jelly", "", "not Jelly"),
        ("jelly", b"", "", "not Jelly"),
    ],
)  # fmt: skip
def test_a_fault_has_a_place_and_a_reason(form: str, data: bytes, where: str, says: str) -> None:
    with pytest.raises(Malformed, match=says) as fault:
        list(document_chunks(lambda: io.BytesIO(data), form, "http://e/"))
    assert fault.value.location == where


@pytest.mark.parametrize("data", [b"<a> <b> <c> .\n<a> <b <c> .", b"<a> <b> <<( <a> <b> <c> )>> ."])
def test_a_document_that_is_no_rdf_1_1_is_bad_as_a_whole(data: bytes) -> None:
    reference = FileSplit(
        "s", "s", "a.ttl", "/a.ttl", "ttl", 0, len(data), 0, 1, 1, base="http://e/"
    )
    triples, lines = parse_document(np.frombuffer(data, np.uint8), reference, 1)
    ((_, reason, text),) = triples.bad
    assert (triples.n, lines.stop) == (0, 0)
    assert reason.startswith("Malformed document") and text


def test_a_document_knows_its_own_iri() -> None:
    data = np.frombuffer(b"<> <#p> <b> .", np.uint8)
    reference = FileSplit(
        "s", "s", "a.ttl", "/a.ttl", "ttl", 0, 13, 0, 1, 1, base="file:///x/a.ttl"
    )
    triples, _ = parse_document(data, reference, 1)
    found = [triples.text(column, 0) for column in (triples.s, triples.p, triples.o)]
    assert found == ["<file:///x/a.ttl>", "<file:///x/a.ttl#p>", "<file:///x/b>"]


BASES = {
    "ttl": "<p:a> <p:b> <p:c> .\n@base <BASE> . <../g> <p> <z> .",
    "trig": "BASE  <BASE> <../g> <p> <z> .",
    "rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'
    " xml:base = 'BASE'><rdf:Description rdf:about='../g'><e:p>1</e:p></rdf:Description></rdf:RDF>",
    "jsonld": '{"@context": {"@base" : "BASE"}, "@id": "../g", "http://e/p": 1}',
}


@pytest.mark.parametrize("form", BASES)
def test_absolute_base_with_dot_segments_is_refused_in_every_format(form: str) -> None:
    def converted(base: str) -> bytes:
        data = BASES[form].replace("<BASE>", f"<{base}>").replace("'BASE'", f"'{base}'")
        data = data.replace('"BASE"', f'"{base}"')
        return documents.document_text(data.encode(), form, "http://e/x/")

    for base in ("http://a/b/./c/d", "http://a/b/../c", "urn:/./c"):
        with pytest.raises(Malformed, match="segment") as fault:
            converted(base)
        assert fault.value.line == (2 if form == "ttl" else 1)
    for base in ("http://a/b/c/..", "http://a/b/c.d/e", "http://a/b/c/d?x=/../"):
        assert b"/g> <" in converted(base) and b"/./" not in converted(base)


REFERENCES = {
    "ttl": '<a> <b> "//e/../a".\n<REF> <http://e/p> <c> .',
    "trig": "@prefix : <REF> .\n{ <a> <b> : }",
    "rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<rdf:Description rdf:about="REF"><e:p>//e/../a</e:p></rdf:Description></rdf:RDF>',
    "jsonld": '{"@id": "REF", "http://e/p": "//e/../b"}',
}


@pytest.mark.parametrize("form", REFERENCES)
@pytest.mark.parametrize("reference", ["//e/a/../b", "//e/..", "//e/./?q#f", "//u@e:80/.", "///.."])
def test_reference_with_host_and_dot_segment_is_refused(form: str, reference: str) -> None:
    text = REFERENCES[form].replace("REF", reference)
    for data in (text, text.replace("/", r"\/") if form == "jsonld" else text):
        with pytest.raises(Malformed, match="segment") as fault:
            documents.document_text(data.encode(), form, "http://e/x/")
        assert f"its reference {reference} has" in str(fault.value)
        assert fault.value.line == (2 if form == "ttl" else 1)


@pytest.mark.parametrize("form", REFERENCES)
@pytest.mark.parametrize("reference", ["http://e/../a", "//e/a?/../b", "//e/a/.b/", "../c", "//e"])
def test_absolute_iri_with_dot_segment_is_read(form: str, reference: str) -> None:
    text = REFERENCES[form].replace("REF", reference)
    assert documents.document_text(text.encode(), form, "http://e/x/")


@pytest.mark.parametrize("form", ["ttl", "trig"])
def test_long_literal_of_dot_segments_is_scanned_once(form: str) -> None:
    """A scan that tries each of its segments would take hours."""
    segments = "<a://a" + "/." * 500_000
    text = f'<http://e/../a> <http://e/p> "{segments}", "<//a{"/./x" * 250_000}" .'
    assert segments.encode() in documents.document_text(text.encode(), form)


def test_document_by_a_relative_path_has_a_normal_iri(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<b> <http://e/p> <../c> .")
    (tmp_path / "below").mkdir()
    path = tmp_path / "below" / ".." / "a.ttl"
    expected = f"<{(tmp_path / 'b').as_uri()}> <http://e/p> <{(tmp_path.parent / 'c').as_uri()}>"
    text = "SELECT ?s ?o { ?s <http://e/p> ?o }"
    rows = levada.query(text, static=str(path)).to_dicts(terms=True)
    assert [f"{row['s']} <http://e/p> {row['o']}" for row in rows] == [expected]
    (tmp_path / "a.ttl").rename(tmp_path / "7.ttl")
    windowed = (
        "SELECT ?s ?o FROM NAMED WINDOW <w> ON <s> [NOW] { WINDOW <w> { ?s <http://e/p> ?o } }"
    )
    stream = (str(path.with_name("7.ttl")), {"time": "filename:([0-9])"})
    assert levada.query(windowed, {"s": stream}).to_dicts(terms=True) == [{**rows[0], "report": 7}]


def test_more_than_the_parser_s_buffer_is_one_fault() -> None:
    """pyoxigraph gives up at 16 MB without an end, and its memory error is nobody's fault but the
    document's.
    """
    long = b"x" * (17 << 20)
    for form in ("ttl", "jsonld"):
        opening = b"<http://e/a> <http://e/b> <" if form == "ttl" else b'{"@id": "'
        with pytest.raises(Malformed):
            list(document_chunks(partial(io.BytesIO, opening + long), form, ""))
    with pytest.raises(Refused, match=r"17825792 bytes.*16 MB"):
        read_line(long, quads=False, timed=False, document=1)
