"""RDF 1.2 in data and queries is refused by name, in each syntax alike."""

from __future__ import annotations

import io

import numpy as np
import pytest

from levada.errors import QuerySyntaxError
from levada.intake.parse import bounds
from levada.intake.parse.bounds import DIRECTION, Bounded, Malformed
from levada.intake.parse.documents import parse_document
from levada.intake.parse.lines import TRIPLE
from levada.intake.parse.ntriples import parse
from levada.sources.reference import Reference
from levada.syntax.sparql.parser import parse as parse_query

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


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ttl", DIRECTED),
        ("trig", b"<a:g> { <a:a> <a:b> 'a'@en--ltr }"),
        ("jsonld", b'{"a:p": {"@value": "a", "@language": "en", "@direction": "rtl"}}'),
        ("jsonld", b'{"a:p": {"@value": "a", "@direction": "rtl"}}'),
        ("jsonld", b'{"@context": {"@direction" : "ltr"}, "a:p": "a"}'),
    ],
)
def test_a_document_with_a_base_direction_is_a_dead_letter(form: str, text: bytes) -> None:
    reference = Reference("s", "s", "a", "a", form, 0, len(text), 0, 1, 1)
    found, _ = parse_document(np.frombuffer(text, np.uint8), reference, 1)
    assert (found.n, len(found.bad)) == (0, 1)
    assert DIRECTION.rstrip(".") in found.bad[0][1]


def test_a_direction_that_two_blocks_share_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"a:p": {"@value": "a", "@direction": %s}}'
    for block in range(1, len(text)):
        monkeypatch.setattr(bounds, "BLOCK", block)
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


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ('FILTER(?o != "a"@en--rtl)', "base direction (RDF 1.2"),
        ("?s <a:p> << <a:a> <a:b> <a:c> >>", "triple as a term (RDF 1.2"),
        ("<<( <a:a> <a:b> <a:c> )>> <a:p> ?s", "triple as a term (RDF 1.2"),
    ],
)
def test_a_query_with_rdf_12_is_refused_by_name(condition: str, word: str) -> None:
    with pytest.raises(QuerySyntaxError) as error:
        parse_query(f"SELECT ?s WHERE {{ ?s ?p ?o . {condition} }}")
    assert word in str(error.value)
