"""Documents and lines that make a parser raise, whatever it likes: each is one dead letter, and the
messages beside it are read as without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.parse import documents, fallback_parser, message_batches, ntriples
from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import document_text, parse_document
from levada.connectors.ingest.parse.message_batches import MUCH, parse_messages
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.sources.message_headers import MessageHeaders
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.splits import FileSplit

XML = """<?xml version="1.0" encoding="{}"?><rdf:RDF xmlns:e="http://e/" \
xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="http://e/{}">\
<e:p>1</e:p></rdf:Description></rdf:RDF>"""
LINE = "<http://e/{}> <http://e/p> <http://e/o> {}."
QUAD = LINE.format("q", "<http://e/g> ")


def reference(form: str) -> FileSplit:
    return FileSplit("s", "s", "a", "a", form, 0, 0, 0, 1, 1)


def read(
    form: str, payloads: Sequence[str], formats: Sequence[str] = (), element: str = "message"
) -> tuple[list[str], list[tuple[int, str]]]:
    """The subjects of the messages' statements; the offsets and reasons of what is dead."""
    data = np.frombuffer("".join(f"{text}\n" for text in payloads).encode(), np.uint8)
    starts = np.cumsum([0, *(len(text.encode()) + 1 for text in payloads)])
    offsets = np.arange(len(payloads))
    said = Messages(starts, offsets, offsets, beside=MessageHeaders(formats=list(formats)))
    config = StreamConfig.from_options(
        "s", "ws://e/x", format=form, time="arrival", element=element
    )
    triples, _, where = parse_messages(data, said, reference(form), config, 1)
    places = where.offset(np.array([place for place, _, _ in triples.bad], np.int64))
    bad = [(at, why) for at, (_, why, _) in zip(places.tolist(), triples.bad, strict=True)]
    return subjects(triples), sorted(bad)


def subjects(triples: Triples) -> list[str]:
    return [triples.text(triples.s, row) for row in range(triples.n)]


@pytest.mark.parametrize("encoding", ["UTG-8", "UTF-7", "UTF-16", "hex", "utf-8\x00"])
def test_a_declaration_with_another_encoding_is_one_dead_letter(encoding: str) -> None:
    payloads = [XML.format("UTF-8", k) for k in range(20)]
    payloads[7] = XML.format(encoding, 7)
    found, bad = read("rdf", payloads)
    assert found == [f"<http://e/{k}>" for k in range(20) if k != 7]
    ((offset, reason),) = bad
    assert offset == 7
    assert reason.startswith("Malformed document: ")


@pytest.mark.parametrize("form", ["nt", "nq", "ttl"])
def test_a_header_that_names_the_format_is_of_its_message_alone(form: str) -> None:
    payloads = [LINE.format(k, "") for k in range(9)]
    payloads[4] = XML.format("UTF-7", 4)
    found, bad = read(form, payloads, [""] * 4 + ["rdf"] + [""] * 4)
    assert found == [f"<http://e/{k}>" for k in range(9) if k != 4]
    assert [offset for offset, _ in bad] == [4]


@pytest.mark.parametrize("element", ["message", "line"])
def test_a_header_does_not_let_messages_beside_it_name_graphs(element: str) -> None:
    payloads = [QUAD, QUAD, LINE.format("t", ""), QUAD]
    plain = read("nt", payloads, element=element)
    assert plain[0] == ["<http://e/t>"]
    found, bad = read("nt", payloads, ["nq", "", "", "nt"], element)
    assert found == ["<http://e/q>", "<http://e/t>"]
    assert bad == [letter for letter in plain[1] if letter[0] in (1, 3)]


def test_whatever_a_parser_raises_is_of_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object, **more: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(documents.ox, "parse", fail)
    with pytest.raises(Malformed, match="KeyError: 'odd'"):
        document_text(b"<a> <b> <c> .", "ttl")
    triples, _ = parse_document(np.frombuffer(b"<a>", np.uint8), reference("ttl"), 1)
    assert [reason for _, reason, _ in triples.bad] == ["Malformed document: KeyError: 'odd'"]


@pytest.mark.parametrize("raising", [RecursionError("deep"), LookupError("odd")])
def test_whatever_a_parser_raises_is_of_its_line(
    monkeypatch: pytest.MonkeyPatch, raising: Exception
) -> None:
    whole = fallback_parser._row

    def fail(quad: object, document: int, time: int) -> object:
        if "bad" in str(quad):
            raise raising
        return whole(quad, document, time)  # type: ignore[arg-type]

    monkeypatch.setattr(fallback_parser, "_row", fail)
    texts = [f"<http://e/{name}> <http://e/p> <http://e/\\u00e9> ." for name in ("a", "bad", "c")]
    triples = parse("\n".join(texts).encode(), quads=False, timed=False, seed=1, document=1)
    assert subjects(triples) == ["<http://e/a>", "<http://e/c>"]
    ((place, reason, text),) = triples.bad
    assert (place, text) == (len(texts[0]) + 1, texts[1])
    assert reason.startswith("It cannot be read: ")


def test_a_literal_whose_value_raises_is_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ntriples.facets_of

    def fail(lexical: str, datatype: str) -> object:
        if lexical.startswith("7"):
            raise ArithmeticError("odd")
        return whole(lexical, datatype)

    monkeypatch.setattr(ntriples, "facets_of", fail)
    monkeypatch.setattr(fallback_parser, "facets_of", fail)
    datatype, ones = "<http://www.w3.org/2001/XMLSchema#decimal>", "1" * 40
    texts = [f'<http://e/{k}> <http://e/p> "{k}.{ones}"^^{datatype} .' for k in (6, 7, 8)]
    triples = parse("\n".join(texts).encode(), quads=False, timed=False, seed=1, document=1)
    assert subjects(triples) == ["<http://e/6>", "<http://e/8>"]
    assert [reason for _, reason, _ in triples.bad] == ["It cannot be read: odd."]


def test_a_document_that_expands_is_refused_before_it_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A long prefix makes a statement of ten bytes as long as itself."""
    monkeypatch.setattr(documents, "LARGEST", 1 << 20)
    text = f"@prefix a: <http://e/{'x' * 10_000}> .\n" + "a:a a:b a:c .\n" * 100_000
    with pytest.raises(Malformed, match="larger than a gigabyte"):
        document_text(text.encode(), "ttl")


def test_messages_that_are_too_large_together_lose_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_batches, "LARGEST", 100_000)
    large = f"@prefix a: <http://e/{'x' * 10_000}> .\na:a a:b a:c .\n a:a a:b a:d ."
    small = [f"<http://e/{k}> <http://e/p> 1 ." for k in range(3)]
    found, bad = read("ttl", [small[0], large, small[1], large, small[2]])
    assert [subject for subject in found if len(subject) < 100] == [
        f"<http://e/{k}>" for k in range(3)
    ]
    assert [reason for _, reason in bad] == [MUCH]
