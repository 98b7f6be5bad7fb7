"""RDF 1.2 in data and queries is refused by name, in each syntax alike."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pyoxigraph as ox
import pytest

from levada.connectors.config.mapping_file import load_mapping
from levada.connectors.ingest.parse import document_limits
from levada.connectors.ingest.parse.document_limits import DIRECTION, TRIPLE, Bounded, Malformed
from levada.connectors.ingest.parse.documents import (
    beyond_rdf_11_in,
    document_text,
    parse_document,
)
from levada.connectors.ingest.parse.fallback_parser import VERSION
from levada.connectors.ingest.parse.jelly import _Terms
from levada.connectors.ingest.parse.ntriples import parse
from levada.connectors.ingest.static_files import check_sound, static_file, static_source
from levada.connectors.sources.splits import FileSplit
from levada.errors import QuerySyntaxError, SourceError, UsageError
from levada.language.sparql.parser import parse as parse_query
from levada.server.problem_json import Problem
from levada.server.sparql.graph_content import TAKES, triples_sent

DIRECTED = b'<a:a> <a:b> "a"@en--rtl .'


def line_faults(line: bytes, *, timed: bool, quads: bool = False) -> list[str]:
    found = parse(line, quads=quads, timed=timed, seed=1, document=1)
    assert found.n == 0
    return [reason for _, reason, _ in found.bad]


@pytest.mark.parametrize("quads", [False, True])
def test_a_line_of_rdf_12_is_refused_by_name(quads: bool) -> None:
    for timed, end in ((False, b" ."), (True, b" 1000 ."), (True, b" .")):
        line = DIRECTED.replace(b" .", end)
        assert line_faults(line, timed=timed, quads=quads) == [DIRECTION]
    for triple in (b"<<( <a:a> <a:b> <a:c> )>>", b"<< <a:a> <a:b> <a:c> >>"):
        line = b"<a:a> <a:b> " + triple
        assert line_faults(line + b" 1000 .", timed=True, quads=quads) == [TRIPLE]
        assert line_faults(line + b" .", timed=False, quads=quads) == [TRIPLE]


XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://a/" {} '
    'xmlns:its="http://www.w3.org/2005/11/its"><rdf:Description><a:p {}>a</a:p>'
    "</rdf:Description></rdf:RDF>"
)
VERSIONS = 'rdf:version="1.2" its:version="2.0"'
TEXTS = [
    ("nt", DIRECTED.decode()),
    ("nt", '<a:a> <a:b> "a"@en--sideways .'),
    ("nq", '<a:a> <a:b> "a"@en--rtl <a:g> .'),
    ("ttl", DIRECTED.decode()),
    ("ttl", "<a:a> <a:b> 'a'@en--ltr, 'b'@en ."),
    ("ttl", '<a:a> <a:b> """a"""@en--sideways .'),
    ("trig", "<a:g> { <a:a> <a:b> 'a'@en--ltr }"),
    ("jsonld", '{"a:p": {"@value": "a", "@language": "en", "@direction": "rtl"}}'),
    ("jsonld", '{"a:p": {"@value": "a", "@language": "en", "\\u0040direction": "rtl"}}'),
    ("jsonld", '{"a:p": {"@value": "a", "@direction": "rtl"}}'),
    ("jsonld", '{"@context": {"@direction" : "ltr"}, "a:p": "a"}'),
    ("jsonld", '{"@context": {"p": {"@id": "a:p", "@direction": "ltr"}}, "p": "a"}'),
    ("jsonld", '{"@context": {"dir": "@direction"}, "a:p": {"@value": "a", "dir": "rtl"}}'),
    ("jsonld", '{"a:p": {"@value": "a", "@language": "en--rtl"}}'),
    ("jsonld", '{"@context": {"p": {"@id": "a:p", "@container": "@language"}}, '
               '"p": {"en--ltr": "a"}}'),
    ("rdf", XML.format(VERSIONS, 'xml:lang="en" its:dir="rtl"')),
    ("rdf", XML.format("", 'xml:lang="en" its:dir="rtl"')),
    ("rdf", XML.format(VERSIONS + " its:dir='ltr' xml:lang='en'", "")),
    ("rdf", XML.format("", "t:dir = 'rtl'  xmlns:t='http://www.w3.org/2005/11/its'")),
    ("rdf", XML.format("", 'xml:lang="en--rtl"')),
]  # fmt: skip
TRIPLES = [
    ("ttl", "<< <a:a> <a:b> <a:c> >> <a:d> <a:e> ."),
    ("trig", "<a:g> { <a:a> <a:b> <<( <a:a> <a:b> <a:c> )>> }"),
    ("rdf", XML.format('rdf:version="1.2"', 'rdf:annotation="http://a/t"')),
]
CASES = [(*case, DIRECTION) for case in TEXTS] + [(*case, TRIPLE) for case in TRIPLES]
"""Format, text and reason."""


@pytest.mark.parametrize(("form", "text", "fault"), CASES)
def test_rdf_12_is_refused_alike_in_every_format(
    tmp_path: Path, form: str, text: str, fault: str
) -> None:
    data = text.encode()
    fault = fault.rstrip(".")
    with pytest.raises(Malformed, match=re.escape(fault)):
        document_text(data, form)
    found, _ = parse_document(np.frombuffer(data, np.uint8), reference(form, len(data)), 1)
    assert (found.n, len(found.bad)) == (0, 1)
    assert fault in found.bad[0][1]
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(SourceError, match=re.escape(fault)):
        check_sound(static_source(tmp_path / "a", form=form))
    media = next((name for name, word in TAKES.items() if word == form), None)
    if media is not None:
        with pytest.raises(Problem, match=re.escape(fault)):
            triples_sent(data, media, "")


def test_rdf_12_in_jelly_is_refused_by_name() -> None:
    triple = ox.Triple(ox.NamedNode("a:a"), ox.NamedNode("a:b"), ox.NamedNode("a:c"))
    assert beyond_rdf_11_in(jelly_terms(triple)) == TRIPLE
    with pytest.raises(Malformed, match=re.escape(DIRECTION.rstrip("."))):
        jelly_terms("en--rtl")


def jelly_terms(term: ox.Triple | str) -> bytes:
    """A statement with a term, as the adapter of Jelly gives it."""
    terms = _Terms.__new__(_Terms)
    found = terms.literal("a", term) if isinstance(term, str) else terms.quoted_triple(term)
    quad = terms.triple((ox.NamedNode("a:a"), ox.NamedNode("a:b"), found))
    return ox.serialize([quad], format=ox.RdfFormat.N_QUADS) or b""


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ttl", '<a:a> <a:b> "a--rtl\\"@en--rtl ", " <<( " .'),
        ("jsonld", '{"a:p": ["en--rtl", "@direct"]}'),
        ("rdf", XML.format('xmlns:o="http://o/" o:dir="rtl"', "")),
        ("rdf", XML.format("", "").replace(">a<", ">o:dir='rtl'<")),
    ],
)
def test_what_only_looks_like_rdf_12_is_read(form: str, text: str) -> None:
    assert document_text(text.encode(), form)


def test_a_mapping_with_a_base_direction_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    path.write_text('triples:\n  - <http://e/{k}> <http://e/p> "{v}"@en--rtl\n')
    with pytest.raises(UsageError, match=r"RDF 1\.2"):
        load_mapping(path)


def reference(form: str, size: int) -> FileSplit:
    return FileSplit("s", "s", "a", "a", form, 0, size, 0, 1, 1)


def test_a_direction_that_two_blocks_share_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"a:p": {"@value": "a", "@direction": %s}}'
    for block in range(1, len(text)):
        monkeypatch.setattr(document_limits, "BLOCK", block)
        with pytest.raises(Malformed, match=r"RDF 1\.2"):
            read_all(text % b'"rtl"')
        read_all(text % b"null")


def read_all(text: bytes) -> None:
    file = Bounded(io.BytesIO(text), "jsonld")
    while file.read():
        pass


def test_a_wrong_third_term_is_the_fault_of_a_line_with_a_time() -> None:
    (fault,) = line_faults(b"<a:a> <a:b> foo 1000 .", timed=True)
    assert fault.startswith("Malformed between columns 13 and 16: The object")


@pytest.mark.parametrize("quads", [False, True])
@pytest.mark.parametrize("line", [b'VERSION "1.2"', b" VERSION '1.2'"])
def test_version_of_lines_is_refused_by_name(line: bytes, quads: bool) -> None:
    for timed in (False, True):
        assert line_faults(line, timed=timed, quads=quads) == [VERSION]


PREFIX = b"@prefix e: <a:> . # << ~ {| of a comment\ne:a e:b '''~''', \"<<\", <a:~>, e:a\\~b .\n"


@pytest.mark.parametrize("form", ["ttl", "trig"])
@pytest.mark.parametrize(
    ("statement", "column", "fault"),
    [
        (b"e:a e:b <<( e:c e:d e:e )>> .", 9, TRIPLE),
        (b"<< e:c e:d e:e >> e:a e:b .", 1, TRIPLE),
        (b"<< e:c e:d e:e ~ e:r >> e:a e:b .", 1, TRIPLE),
        (b"e:a e:b e:c ~ e:r .", 13, "A reifier (~, RDF 1.2) is not taken."),
        (b"e:a e:b e:c ~ .", 13, "A reifier (~, RDF 1.2) is not taken."),
        (b"e:a e:b e:c {| e:d e:e |} .", 13, "An annotation ({| |}, RDF 1.2) is not taken."),
        (b'e:a e:b "c"@en-GB--ltr .', 12, DIRECTION),
    ],
)
def test_rdf_12_in_document_is_refused_with_its_place(
    form: str, statement: bytes, column: int, fault: str
) -> None:
    text = PREFIX + statement
    reference = FileSplit("s", "s", "a", "a", form, 0, len(text), 0, 1, 1)
    found, _ = parse_document(np.frombuffer(text, np.uint8), reference, 1)
    place = f"Malformed document: line 3, column {column}: "
    assert found.bad == [(len(PREFIX), place + fault.rstrip("."), statement.decode())]


def test_rdf_12_in_static_file_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_bytes(PREFIX + b"e:a e:b e:c {| e:d e:e |} .")
    with pytest.raises(SourceError, match=r"line 3, column 13 .*An annotation \("):
        check_sound(static_file(str(path)))


@pytest.mark.parametrize("word", ["soon", "2020-01-01T00:00:00Z", "1.5.2"])
def test_word_that_is_no_time_is_named(word: str) -> None:
    (fault,) = line_faults(f"<a:a> <a:b> <a:c> {word} .".encode(), timed=True)
    assert fault == f"The event time {word} is no dateTime or integer within range."


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'"a" <a:b> <a:c>', "between columns 1 and 4: The subject"),
        (b'<a:a> "b" <a:c>', "between columns 7 and 10: The predicate"),
        (b"<a:a> _:b <a:c>", "between columns 7 and 10: The predicate"),
        (b"<a:a> <a:b>", "at column 13: The object"),
        (b"<a:a>", "at column 7: The predicate"),
        (b"<a:a> <a:b> e:c", "between columns 13 and 16: The object"),
        (b'<a:a> <a:b> "c"^^e:d', "between columns 18 and 21: A literal datatype"),
        (b"<a:a> <a:b> <c>", "between columns 13 and 16: No scheme"),
    ],
)
def test_wrong_term_of_line_is_named_with_its_place(line: bytes, fault: str) -> None:
    for timed, end in ((False, b" ."), (True, b" .")):
        (found,) = line_faults(line + end, timed=timed)
        assert found.startswith(f"Malformed {fault}"), found


@pytest.mark.parametrize(
    ("context", "name", "column"),
    [
        ('"https://e.example/c"', "https://e.example/c", 14),
        ('[{"p": "a:b"}, "https://e.example/c"]', "https://e.example/c", 29),
        ('{"@import": "https://e.example/c"}', "https://e.example/c", 26),
        ('{"p": {"@id": "a:b", "@context": "https://e.example/c"}}', "https://e.example/c", 47),
        ('"c.jsonld"', "c.jsonld", 14),
    ],
)
def test_context_that_lies_elsewhere_is_named_with_its_place(
    context: str, name: str, column: int
) -> None:
    text = f'{{"@context": {context}, "@id": "a:a", "p": {{"q": "c"}}}}'.encode()
    base = "http://e/base"
    reference = FileSplit("s", "s", "a", "a", "jsonld", 0, len(text), 0, 1, 1, base=base)
    found, _ = parse_document(np.frombuffer(text, np.uint8), reference, 1)
    fault = (
        f"line 1, column {column}: its context {name} lies elsewhere, and nothing is fetched; "
        "give it by --context URL=FILE"
    )
    assert [reason for _, reason, _ in found.bad] == [f"Malformed document: {fault}"]


def test_version_of_query_is_refused_by_name() -> None:
    for head in ('VERSION "1.2"', "PREFIX : <a:> version '1.2'"):
        with pytest.raises(QuerySyntaxError, match=r"(?i)VERSION \(SPARQL 1\.2\)"):
            parse_query(f"{head} SELECT * WHERE {{ ?s ?p ?o }}")


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ("?s <a:p> ?o ~ ?r", "A reifier (RDF 1.2"),
        ("?s <a:p> ?o~?r", "A reifier (RDF 1.2"),
        ("?s <a:p> ?o {| <a:q> ?r |}", "An annotation (RDF 1.2"),
        ('?s <a:p> "a"@en--ltr', "base direction (RDF 1.2"),
        ("FILTER(isTRIPLE(?o))", "isTRIPLE (SPARQL 1.2)"),
        ("BIND(TRIPLE(?s, ?p, ?o) AS ?t)", "TRIPLE (SPARQL 1.2)"),
        ("BIND(LANGDIR(?o) AS ?t)", "LANGDIR (SPARQL 1.2)"),
        ('FILTER(?o != "a"@en--rtl)', "base direction (RDF 1.2"),
        ("?s <a:p> << <a:a> <a:b> <a:c> >>", "triple as a term (RDF 1.2"),
        ("<<( <a:a> <a:b> <a:c> )>> <a:p> ?s", "triple as a term (RDF 1.2"),
    ],
)
def test_a_query_with_rdf_12_is_refused_by_name(condition: str, word: str) -> None:
    with pytest.raises(QuerySyntaxError) as error:
        parse_query(f"SELECT ?s WHERE {{ ?s ?p ?o . {condition} }}")
    assert word in str(error.value)
