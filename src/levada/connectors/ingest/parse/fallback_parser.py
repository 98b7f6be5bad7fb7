"""Parses one line by pyoxigraph, which decides about the lines that the byte kernel refuses.

pyoxigraph parses one line a call, because after an error it loses valid lines of the same parse. It
does not know Levada's event time before the dot: a small tokeniser splits that term off first, and
pyoxigraph decides about the rest.

Cost: 2 to 10 us a line.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import NamedTuple

import pyoxigraph as ox
import xxhash

from levada.connectors.ingest.parse.document_limits import (
    DEEPEST,
    DIRECTION,
    TRIPLE,
    beyond_rdf_11,
    names_direction,
)
from levada.connectors.ingest.parse.literal_values import Facets, event_time, facets_of
from levada.connectors.sources.file_errors import encoding_fault, is_of_data, reason
from levada.core.event_time import MIN
from levada.core.rdf_terms import Kind
from levada.kernels.text.canonical_text import BLANK_SIZE, ENGINE

_TOKEN = re.compile(
    rb"""(?P<iri> <[^<>"\s]*> )
       | (?P<literal> "(?:[^"\\]|\\.)*" (?: [ \t]*@[A-Za-z0-9-]+ | [ \t]*\^\^[ \t]*<[^<>"\s]*> )? )
       | (?P<blank> _:[^\s<>"\#]+ )
       | (?P<number> [+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)? )
       | (?P<dot> \. )
       | (?P<comment> \#.* )
       | (?P<space> [ \t]+ )""",
    re.VERBOSE | re.DOTALL,
)
VERSION = "VERSION (RDF 1.2) is not taken."
_VERSION = re.compile(rb"[ \t]*VERSION[ \t]*[\"']")
_LAST_WORD = re.compile(rb"(.*[ \t])([^ \t\"<>_@^#][^ \t\"<>]*?)[ \t]*\.[ \t\r]*", re.DOTALL)
_SHOWN = 100  # characters of a word
_TRIPLE = re.compile(rb'[^"]*<<')
_MESSAGE = re.compile(r"^Parser error at line \d+ (.*?)(?: \(line \d+\))?$", re.DOTALL)


class Row(NamedTuple):
    """A statement: canonical texts and kinds of its terms (graph: "" and UNBOUND), its value, its
    time.
    """

    texts: tuple[str, str, str, str]
    kinds: tuple[int, int, int, int]
    value: Facets
    time: int


class Refused(Exception):  # noqa: N818  # an answer, not an error: it never leaves intake
    """The line is not a statement; the message gives the reason."""


def read_line(
    text: bytes, *, quads: bool, timed: bool, document: int, unit_power: int = 0
) -> Row | None:
    """Returns the statement of one line (without line end); None: blank or comment. Raises
    ``Refused`` for any error of the parser.
    """
    try:
        return _statement(text, quads, timed, document, unit_power)
    except Refused as fault:
        raise Refused(encoding_fault(text) or str(fault)) from None
    except BaseException as error:
        if not is_of_data(error):
            raise
        raise Refused(f"It cannot be read: {reason(error)}.") from None


def _statement(text: bytes, quads: bool, timed: bool, document: int, unit_power: int) -> Row | None:
    text = text.removeprefix(BOM_UTF8)  # some editors write a byte order mark
    if not timed:
        if _VERSION.match(text):
            raise Refused(VERSION)
        quad = _quad(text, quads)
        return None if quad is None else _row(quad, document, MIN)
    split = _split_time(text)
    if split is None:
        if _VERSION.match(text):
            raise Refused(VERSION)
        if b"#" not in text and not text.rstrip().endswith(b"."):
            raise Refused("No dot stands at the end of the line.")
        _check_word_of_time(text, quads)
        _quad(text, quads)
        raise Refused("No event time stands before the dot. Say time=arrival for the clock.")
    rest, term = split
    return _row(_timed_quad(rest, term, quads), document, _time(term, unit_power))


def _check_word_of_time(text: bytes, quads: bool) -> None:
    """Raises ``Refused`` if only an invalid time is between a statement and its dot."""
    match = _LAST_WORD.fullmatch(text)
    if match is None:
        return
    try:
        _quad(match[1] + b" .", quads)
    except Refused:
        return
    word = match[2].decode(errors="replace")[:_SHOWN]
    raise Refused(f"The event time {word} is no dateTime or integer within range.")


def _timed_quad(rest: bytes, term: bytes, quads: bool) -> ox.Quad:
    """Returns the statement without its time. If only the whole line is a statement, the term that
    was split off is its object. If neither is, the fault is the one before the time.
    """
    try:
        quad = _quad(rest, quads)
    except Refused as fault:
        try:
            _quad(rest[: rest.rindex(b".")] + b" " + term + b" .", quads)
        except Refused as whole:
            raise (whole if str(whole) == DIRECTION else fault) from None
        raise Refused(
            "No event time stands before the dot. Say time=arrival for the clock."
        ) from None
    assert quad is not None, "a line that ends in a dot is a statement or malformed"
    return quad


def _quad(text: bytes, quads: bool) -> ox.Quad | None:
    """Parses a line by pyoxigraph."""
    if text.count(b"<<") > DEEPEST:  # its terms are freed recursively
        raise Refused(f"Triples within triples more than {DEEPEST} levels deep are not taken.")
    try:
        statements = list(
            ox.parse(input=text, format=ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES)
        )
    except SyntaxError as error:
        if _TRIPLE.match(text):
            raise Refused(TRIPLE) from None
        if names_direction(str(error)):
            raise Refused(DIRECTION) from None
        message = _MESSAGE.match(error.msg or "")
        where = message[1] if message else str(error)
        raise Refused(
            f"Malformed {where if where.startswith('between') else 'at ' + where}."
        ) from None
    except MemoryError:  # the parser's buffer is full
        raise Refused(
            f"It has {len(text)} bytes, and a line of more than 16 MB is read only if all its "
            "terms are written plainly."
        ) from None
    assert len(statements) <= 1, "one line holds one statement at most"
    if statements and (beyond := beyond_rdf_11(statements[0].object)):
        raise Refused(beyond)
    return statements[0] if statements else None


def _split_time(text: bytes) -> tuple[bytes, bytes] | None:
    """Returns the line without the last literal or number before its dot, and that term; None if
    there is none.
    """
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        if match.lastgroup not in ("space", "comment"):
            tokens.append(match)
        at = match.end()
    if (
        len(tokens) < 2
        or tokens[-1].lastgroup != "dot"
        or tokens[-2].lastgroup not in ("literal", "number")
    ):
        return None
    term = tokens[-2]
    if term.lastgroup == "number" and text[term.start() - 1 : term.start()] not in (b" ", b"\t"):
        return None
    return text[: term.start()] + b" .", term[0]


def _time(term: bytes, unit_power: int) -> int:
    """Returns the event time in the term, in ms."""
    if not term.startswith(b'"'):
        term = b'"' + term + b'"'
    quad = _quad(b"<a:a> <a:a> " + term + b" .", False)
    assert quad is not None, "the line holds a statement"
    literal = quad.object
    assert isinstance(literal, ox.Literal), "a quoted term is a literal"
    time = (
        None if literal.language else event_time(literal.value, literal.datatype.value, unit_power)
    )
    if time is None:
        raise Refused(f"The event time {literal} is not a number, date or dateTime within range.")
    return time


def _row(quad: ox.Quad, document: int, time: int) -> Row:
    graph = quad.graph_name
    terms = (quad.subject, quad.predicate, quad.object, graph)
    texts, kinds = [], []
    value = Facets(Kind.UNBOUND)
    for term in terms:
        if isinstance(term, ox.DefaultGraph):
            texts.append("")
            kinds.append(int(Kind.UNBOUND))
        elif isinstance(term, ox.BlankNode):
            texts.append(blank_text(term.value, document))
            kinds.append(int(Kind.BLANK))
        else:
            texts.append(str(term))
            kinds.append(int(Kind.IRI))
    if isinstance(quad.object, ox.Literal):
        value = literal_facets(quad.object)
        kinds[2] = int(value.kind)
    elif isinstance(quad.object, ox.BlankNode | ox.NamedNode):
        value = Facets(kinds[2])
    return Row(tuple(texts), tuple(kinds), value, time)  # type: ignore[arg-type]


def literal_facets(literal: ox.Literal) -> Facets:
    """Returns the facets of a literal."""
    return (
        Facets(Kind.LANG) if literal.language else facets_of(literal.value, literal.datatype.value)
    )


def blank_text(label: str, document: int) -> str:
    """Returns the canonical text of a blank node: unique to its document.

    >>> blank_text("a", 1) == blank_text("a", 2)
    False
    >>> blank_text("g" + "0" * 32, int(ENGINE))
    '_:g00000000000000000000000000000000'
    """
    if document == ENGINE and len(label) == BLANK_SIZE - 2:
        return f"_:{label}"
    return f"_:b{xxhash.xxh3_128_intdigest(document.to_bytes(8, 'little') + label.encode()):032x}"
