"""Strings of JSON and RDF with escapes and bytes of all kinds: each is read as Python's strict
decoders read it, or is a dead letter, and its neighbours are read.
"""

import json
import re

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import document_text
from levada.connectors.ingest.parse.ntriples import parse
from levada.connectors.ingest.tables.json_rows import HALF, NOT_JSON, json_rows
from levada.connectors.sources.splits import FileSplit

PIECES = [
    b"a", "é😀".encode(), b"\\n", b"\\/", b"\\\\", b'\\"', b"\\u0041", b"\\u0000", b"\\uFFFE",
    b"\\uD83D", b"\\ud83d", b"\\uDE00", b"\\ude00", b"\\uD7FF", b"\\uE000", b"\\u00", b"\\x",
    b"\\U0001F600", b"\\U0000D800", b"\\U00110000", b"ud83d", b"\x00", b"\x1f", b"\x7f", b"\xff",
    b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\xe2\x82",
]  # fmt: skip
BODY = st.lists(st.sampled_from(PIECES), max_size=5).map(b"".join)


def read(*lines: bytes) -> tuple[list[str], list[str]]:
    data = np.frombuffer(b"\n".join(lines), np.uint8)
    reference = FileSplit("s", "s", "a", "a", "ndjson", 0, len(data), 0, 1, len(lines))
    rows = json_rows(data, ["v"], reference)
    return rows.table["v"].to_list(), [dead.reason for dead in rows.dead]


def strict_json(body: bytes) -> str | None:
    """The string by Python's ``json``, None if it is not text."""
    try:
        value = json.loads(b'"%s"' % body)
        value.encode()
    except ValueError:
        return None
    assert isinstance(value, str)
    return value


def strict_turtle(body: bytes) -> str | None:
    """The string by Turtle's escapes, None if it is not text."""
    letters = dict(zip("tbnrf\"'\\", "\t\b\n\r\f\"'\\", strict=True))

    def character(found: re.Match[str]) -> str:
        digits = found[1] or found[2]
        return chr(int(digits, 16)) if digits else letters[found[3]]

    try:
        escape = r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))"
        value = re.sub(escape, character, body.decode(), flags=re.DOTALL)
        value.encode()
    except (ValueError, KeyError, OverflowError):
        return None
    return value


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (rb'{"v": "\ud800"}', HALF),
        (rb'{"v": "\\\uD83d\\udc00"}', HALF),
        (rb'{"v": "\udc00\ud800"}', HALF),
        (rb'{"v": "\ud83d\ud83d\ude00"}', HALF),
        (rb'{"v": "\ude00"}', HALF),
        (rb'{"v": "x", "other": {"n": ["\ud800"]}}', HALF),
        (rb'{"v": "x", "\ud800": 1}', HALF),
        (b'{"v": "x", "other": "\xed\xa0\x80"}', NOT_JSON),
        (b'{"v": "\xc0\x80"}', NOT_JSON),
    ],
)
def test_a_line_with_half_a_character_is_dead_alone(line: bytes, reason: str) -> None:
    good = rb'{"v": "\ud83d\uDE00 C:\\ud800"}'
    assert read(good, line, good) == (["😀 C:\\ud800"] * 2, [reason])


@given(BODY)
@example(b"\\\\\\uD83D")
@example(b"\\uD83D\\\\uDE00")
def test_a_string_of_ndjson_is_read_as_strict_json_reads_it(body: bytes) -> None:
    values, dead = read(b'{"v": "%s"}' % body, b'{"v": "next"}')
    value = strict_json(body)
    assert values == ([] if value is None else [value]) + ["next"]
    assert len(dead) == (value is None)


@given(BODY)
def test_a_string_of_json_ld_is_read_as_strict_json_reads_it(body: bytes) -> None:
    assert document_string(b'{"a:p": "%s"}' % body, "jsonld") == strict_json(body)


@given(BODY, st.sampled_from(["ttl", "trig", "nt", "nq"]))
def test_a_string_of_turtle_is_read_by_its_escapes(body: bytes, form: str) -> None:
    assert document_string(b'<a:s> <a:p> "%s" .' % body, form) == strict_turtle(body)


@given(BODY)
def test_a_string_of_a_line_is_read_by_its_escapes(body: bytes) -> None:
    line = b'<a:s> <a:p> "%s" .' % body
    found = parse(line, quads=False, timed=False, seed=1, document=1)
    value = strict_turtle(body)
    assert (found.n, len(found.bad)) == (int(value is not None), int(value is None))
    if value is not None:
        assert found.text(found.o, 0) == str(ox.Literal(value))


def document_string(document: bytes, form: str) -> str | None:
    """The one object of a document, None if it is refused."""
    try:
        text = document_text(document, form)
    except Malformed:
        return None
    (quad,) = ox.parse(text, format=ox.RdfFormat.N_QUADS)
    assert isinstance(quad.object, ox.Literal)
    return quad.object.value
