"""Converts RDF documents (Turtle, TriG, RDF/XML, JSON-LD, Jelly; N-Triples and N-Quads too) to
N-Quads text for ``connectors.ingest.parse.ntriples``.

pyoxigraph and pyjelly parse. pyoxigraph prints the statements as N-Quads, a chunk at a time, and
from there on a document is text of lines. Anonymous blank nodes, which the parsers name at random,
are named n0, n1, ... by first appearance: the same document results in the same text, on any
machine. Nothing is fetched: a JSON-LD context by URL comes from a file that the operator has
declared (``json_ld_contexts``), or is an error. Input that would crash a parser
is refused before (``connectors.ingest.parse.document_limits``).

Cost: about 1.5 us a statement (Jelly, whose parser is Python: 10), one chunk in memory.
Specifications: RDF 1.1 Turtle, TriG, RDF/XML, JSON-LD 1.1, Jelly 1.1.
"""

from __future__ import annotations

import io
import json
import re
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import IO, Any, cast
from xml.parsers import expat

import msgspec
import numpy as np
import pyoxigraph as ox

from levada.connectors.ingest.parse.document_limits import (
    DIRECTION,
    TRIPLE,
    Bounded,
    Malformed,
    beyond_rdf_11,
    names_direction,
)
from levada.connectors.ingest.parse.json_ld_contexts import (
    check_chains,
    declared_contexts,
    replace_contexts,
)
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.sources.file_errors import is_of_data, reason
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bytes
from levada.kernels.text.blank_nodes import blank_places, relabel
from levada.kernels.text.xxh3 import identify_slices, schedule

# Rewrites JSON-LD with type maps into a form that pyoxigraph reads.
#
# In a map of ``@container: @type`` the type of a node is its key. pyoxigraph 0.5 refuses such a
# node if it has an ``@id``, since it looks for a type before that. Under ``@nest`` the same
# identifier follows the type, and means the same (JSON-LD 1.1 API, 5.1.2, step 14). It also refuses
# ``@set`` beside ``@type``, which does not affect statements. The context that the term of a key
# has would not reach the nodes within a node (5.1.2, step 13.8.2): such a document is refused. A
# document is rewritten if its first megabyte declares such a map; its text and its values are in
# memory then.


_ID, _NEST = "@id", "@nest"
_DECLARED = re.compile(rb'"@container"\s*:\s*(?:\[[^\]]*)?"@type"')


def declares_type_map(text: bytes) -> bool:
    """Whether a text has a term whose values are maps by type.

    >>> declares_type_map(b'{"@context": {"of": {"@id": "e:of", "@container": "@type"}}}')
    True
    """
    return _DECLARED.search(text) is not None


def nest_ids(text: bytes) -> bytes:
    """Returns a document with the identifiers of nodes in type maps under ``@nest``. Raises
    ``ValueError`` for invalid JSON, and ``Malformed``.
    """
    document = json.loads(text)
    maps, ids, scoped = set[str](), {_ID}, set[str]()
    for terms in _contexts(document):
        for name, definition in terms.items():
            term = definition if isinstance(definition, dict) else {_ID: definition}
            container = _as_list(term.get("@container"))
            if "@type" in container:
                maps.add(name)
                term["@container"] = [kind for kind in container if kind != "@set"]
            if term.get(_ID) == _ID:
                ids.add(name)
            if "@context" in term:
                scoped.add(name)
    for value in _objects(document):
        for name in maps.intersection(value):
            by_type = value[name] if isinstance(value[name], dict) else {}
            for kind in scoped.intersection(by_type):
                if sum(1 for _ in _objects(by_type[kind])) > len(_as_list(by_type[kind])):
                    raise Malformed(f"the context of {kind}, a key of a type map, is not supported")
            for node in (node for nodes in by_type.values() for node in _as_list(nodes)):
                if isinstance(node, dict) and (keys := ids.intersection(node)):
                    nested = {key: node.pop(key) for key in keys}
                    node[_NEST] = [*_as_list(node.get(_NEST)), nested]
    return json.dumps(document).encode()


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects of a document, without those of its contexts."""
    for part in _as_list(value):
        if isinstance(part, dict):
            yield part
            for name, inner in part.items():
                if name != "@context":
                    yield from _objects(inner)
        elif isinstance(part, list):
            yield from _objects(part)


def _contexts(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the contexts of a document, and those within them."""
    for part in _as_list(value):
        for inner in part.values() if isinstance(part, dict) else _as_list(part):
            if isinstance(inner, dict | list):
                yield from _contexts(inner)
        if isinstance(part, dict):
            yield from (
                terms for terms in _as_list(part.get("@context")) if isinstance(terms, dict)
            )


Opener = Callable[[], IO[bytes]]
CHUNK = 100_000  # statements
LARGEST = 1_000_000_000  # the most bytes of N-Quads in an element, and in all messages of a chunk
PARSERS = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "nq": ox.RdfFormat.N_QUADS,
    "ttl": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "rdf": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}
_SHOWN = 500
_PLACE = re.compile(
    r"^(?:Parser error )?(?:at|between) line \d+(?: (?:at |between )?columns? \d+)?.*?: ", re.DOTALL
)
_SEARCHED = 64 << 20  # bytes of a document in which a refused statement is located
_RDF_12 = re.compile(
    rb"""\"{3}(?:[^"\\]|\\.|"(?!""))*+\"{3} | \'{3}(?:[^'\\]|\\.|'(?!''))*+\'{3}
       | "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | <[^<>"\s]*> | \#[^\r\n]* | \\.
       | (?P<triple> << ) | (?P<reifier> ~ ) | (?P<annotation> \{\| )
       | (?P<direction> @[A-Za-z0-9-]+--(?:ltr|rtl) )""",
    re.VERBOSE | re.DOTALL,
)
_REFUSED = {
    "reifier": "A reifier (~, RDF 1.2) is not taken.",
    "annotation": "An annotation ({| |}, RDF 1.2) is not taken.",
}
# references with a host; bounded by characters that no part matches, so a scan is linear
_ABSOLUTE = re.compile(rb"<[a-z][a-z0-9+.-]*:(//[^<>\"']*)>", re.IGNORECASE)
_BRACKETED, _QUOTED = re.compile(rb"<(//[^<>\"']*)"), re.compile(rb"[\"'](//[^<>\"']*)[\"']")
_DOT_SEGMENT = re.compile(rb"/\.\.?(?:/|\Z)")
_REFERENCES = {"ttl": _BRACKETED, "trig": _BRACKETED, "rdf": _QUOTED, "jsonld": _QUOTED}
_TAIL = re.compile(r" \(line \d+\)$")


def document_chunks(opened: Opener, form: str, base: str) -> Iterator[bytes]:
    r"""Yields the statements of a document as N-Quads, in chunks. ``base`` is the document's IRI.
    Raises ``Malformed``.

    >>> list(document_chunks(lambda: io.BytesIO(b"<a> <b> [] ."), "ttl", "http://e/"))
    [b'<http://e/a> <http://e/b> _:n0 .\n']
    """
    names: dict[bytes, int] = {}
    try:
        with opened() as file:
            statements = iter(_statements(file, form, base))
            while (first := next(statements, None)) is not None:
                printed = _Print()
                some = chain((first,), islice(statements, CHUNK - 1))
                ox.serialize(some, printed, format=ox.RdfFormat.N_QUADS)
                text = printed.getvalue()
                if fault := beyond_rdf_11_in(text):
                    raise refusal(opened, form, fault)
                if b"/." in text and form in _REFERENCES:
                    _check_references(opened, form, text)
                yield _rename(text, names)
    except SyntaxError as error:
        raise _syntax(error, opened, form) from None
    except MemoryError:  # the parser's buffer is full
        raise Malformed("it has a term of more than 16 MB, or ends nowhere") from None


def beyond_rdf_11_in(text: bytes) -> str:
    """Returns the fault of the first term of N-Quads that RDF 1.1 does not have; "" if there is
    none.
    """
    if any(sign in text for sign in (b"--ltr", b"--rtl", b"<<(")):
        for quad in ox.parse(text, format=ox.RdfFormat.N_QUADS):
            if fault := beyond_rdf_11(quad.object):
                return fault
    return ""


def _has_dot_segment(reference: bytes) -> bool:
    """Whether the path of a reference such as ``//host/path?query`` has a segment . or .."""
    path = re.split(rb"[?#]", reference, maxsplit=1)[0]
    return _DOT_SEGMENT.search(path, 2) is not None


def _check_references(opened: Opener, form: str, text: bytes) -> None:
    """Raises ``Malformed`` for a reference with a host and dot segments: the parsers keep these
    (RFC 3986, 5.2.4). Absolute IRIs have a right to theirs.
    """
    if not (dotted := sorted(set(filter(_has_dot_segment, _ABSOLUTE.findall(text))))):
        return
    with opened() as file:
        head = file.read(_SEARCHED).removeprefix(BOM_UTF8).replace(b"\\/", b"/")
    for match in _REFERENCES[form].finditer(head):
        if not _has_dot_segment(match[1]):
            continue
        at = bisect_left(dotted, match[1])
        if at < len(dotted) and dotted[at].startswith(match[1]):  # it may be of a prefix
            reference = match[1].decode(errors="replace")[:_SHOWN]
            why = f"its reference {reference} has a segment . or .., which is not resolved"
            line = head.count(b"\n", 0, match.start()) + 1
            raise Malformed(why, line, match.start() - head.rfind(b"\n", 0, match.start()))


class _Print(io.BytesIO):
    """Collects the N-Quads of some statements within a limit: a long prefix makes a short document
    any size.
    """

    def write(self, data: Any) -> int:
        if self.tell() > LARGEST:
            raise _too_large()
        return super().write(data)


def _too_large() -> Malformed:
    return Malformed("it is larger than a gigabyte as N-Quads")


def document_text(data: bytes, form: str, base: str = "") -> bytes:
    r"""Returns a document in memory as N-Quads. Raises ``Malformed`` for any error of its parser.

    >>> document_text(b"<?xml version='1.0' encoding='UTG-8'?><a/>", "rdf")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    levada...document_limits.Malformed: Only UTF-8 is supported by the RDF/XML parser
    """
    parts, size = [], 0
    try:
        for text in document_chunks(lambda: io.BytesIO(data), form, base):
            size += len(text)
            if size > LARGEST:
                raise _too_large()
            parts.append(text)
    except Malformed:
        raise
    except BaseException as error:
        if not is_of_data(error):
            raise
        raise Malformed(reason(error)) from None
    return b"".join(parts)


def parse_document(data: Bytes, reference: FileSplit, seed: int) -> tuple[Triples, FileSplit]:
    """Returns the statements of a document of a stream, and the reference to their N-Quads text.

    An ill-formed document has no statements, but one bad place: it is dead as a whole.
    """
    raw = data.tobytes()
    try:
        text = document_text(raw, reference.format, reference.base)
        triples = parse(text, quads=True, timed=False, seed=seed, document=reference.document)
        if triples.bad:
            raise refusal(lambda: io.BytesIO(raw), reference.format, triples.bad[0][1])
        return triples, msgspec.structs.replace(reference, start=0, stop=len(text))
    except Malformed as fault:
        triples = parse(b"", quads=True, timed=False, seed=seed, document=reference.document)
        triples.bad.append(_bad(raw, fault))
        return triples, msgspec.structs.replace(reference, start=0, stop=0)


def refusal(opened: Opener, form: str, why: str) -> Malformed:
    """Returns the fault of a document with a refused statement. It includes the first place of RDF
    1.2 syntax in Turtle and TriG, whose parser does not report the places of statements.
    """
    match = None
    if form in ("ttl", "trig") and why in (TRIPLE, DIRECTION):
        with opened() as file:
            head = file.read(_SEARCHED).removeprefix(BOM_UTF8)
        match = next((m for m in _RDF_12.finditer(head) if m.lastgroup), None)
    if match is None:
        return Malformed(why.rstrip("."))
    line = head.count(b"\n", 0, match.start()) + 1
    column = match.start() - head.rfind(b"\n", 0, match.start())
    return Malformed(_REFUSED.get(str(match.lastgroup), why).rstrip("."), line, column)


def _bad(raw: bytes, fault: Malformed) -> tuple[int, str, str]:
    """Returns the place, the reason and the line of a fault."""
    lines = raw.split(b"\n", fault.line) if fault.line else []
    start = sum(len(line) + 1 for line in lines[: fault.line - 1]) if fault.line else 0
    shown = (lines[fault.line - 1] if 0 < fault.line <= len(lines) else raw)[:_SHOWN]
    return start, fault_of(fault), shown.decode(errors="replace")


def fault_of(fault: Malformed) -> str:
    """Describes a fault in a sentence, with its place."""
    where = f"line {fault.line}, column {fault.column}: " if fault.line else ""
    return f"Malformed document: {where}{fault}"


def _statements(file: IO[bytes], form: str, base: str) -> Iterable[Any]:
    if form == "jelly":
        # imported here: few streams are Jelly
        from levada.connectors.ingest.parse.jelly import jelly_quads

        return jelly_quads(file)
    bounded = Bounded(file, form)
    if form == "jsonld":
        text = b"".join(iter(bounded.read, b""))
        if declared_contexts():
            text = replace_contexts(text, base)
        check_chains(text)
        bounded = Bounded(io.BytesIO(text), form)
        if declares_type_map(bounded.peek()):
            return _type_maps(bounded, base)
    return ox.parse(cast(IO[bytes], bounded), format=PARSERS[form], base_iri=base or None)


def _type_maps(file: Bounded, base: str) -> Iterator[ox.Quad]:
    """Yields the statements of JSON-LD with type maps."""
    text = b"".join(iter(file.read, b""))
    try:
        rewritten = nest_ids(text)
    except ValueError:  # the parser reports it with its place
        rewritten = text
    try:
        yield from ox.parse(rewritten, format=ox.RdfFormat.JSON_LD, base_iri=base or None)
    except SyntaxError as error:
        if rewritten is text:
            raise
        raise SyntaxError(error.msg) from None  # the place is in the rewritten text


def _syntax(error: SyntaxError, opened: Opener, form: str) -> Malformed:
    message = error.msg or str(error)
    reason = _TAIL.sub("", _PLACE.sub("", message))
    if "LoadDocumentCallback" in reason:
        return _context_fault(opened)
    if names_direction(reason):
        reason = DIRECTION
    line, column = error.lineno or 0, error.offset or 0
    if not line and form == "rdf":
        line, column = _xml_place(opened)
    reason = reason.rstrip(".").replace("\n", "\\n").replace("\r", "\\r")
    return Malformed(reason, line, column)


def _context_fault(opened: Opener) -> Malformed:
    """Returns the fault of a JSON-LD document with a remote context: the first one, and its
    place.
    """
    with opened() as file:
        head = file.read(_SEARCHED).removeprefix(BOM_UTF8)
    try:
        name = next(_remote_contexts(msgspec.json.decode(head)), "")
    except (msgspec.DecodeError, RecursionError):
        name = ""
    at = head.find(msgspec.json.encode(name)) if name else -1
    place = (head.count(b"\n", 0, at) + 1, at - head.rfind(b"\n", 0, at)) if at >= 0 else (0, 0)
    context = f"context {name[:_SHOWN]}" if name else "context"
    message = f"its {context} lies elsewhere, and nothing is fetched; give it by --context URL=FILE"
    return Malformed(message, *place)


def _remote_contexts(document: Any) -> Iterator[str]:
    """Yields the contexts that a JSON-LD document names by their IRIs."""
    values = [document]
    while values:
        match values.pop():
            case list() as items:
                values += reversed(items)
            case dict() as members:
                contexts = members.get("@context")
                for context in contexts if isinstance(contexts, list) else [contexts]:
                    name = context.get("@import") if isinstance(context, dict) else context
                    if isinstance(name, str):
                        yield name
                values += reversed(members.values())


def _xml_place(opened: Opener) -> tuple[int, int]:
    """Returns where a document stops being XML, which its parser does not report; (0, 0) if it is
    XML.
    """
    with opened() as file:
        try:
            expat.ParserCreate().ParseFile(file)
        except expat.ExpatError as error:
            return error.lineno, error.offset + 1
        except (LookupError, ValueError):  # an encoding that expat does not support
            pass
    return 0, 0


def _rename(text: bytes, names: dict[bytes, int]) -> bytes:
    """Returns the text with its blank nodes numbered by first appearance. ``names`` contains those
    of the previous chunks, and receives these.
    """
    if b"_:" not in text:
        return text
    data = np.frombuffer(text, np.uint8)
    start, size = (np.empty(text.count(b"_:"), np.int64) for _ in range(2))
    count = blank_places(data, start, size)
    start, size = start[:count], size[:count]
    x, y = np.empty(count, np.uint64), np.empty(count, np.uint64)
    identify_slices(data, start, size, schedule(0), x, y)
    _, first, inverse = np.unique(
        np.stack([x, y], axis=1), axis=0, return_index=True, return_inverse=True
    )
    number = np.empty(len(first), np.int64)
    order = np.argsort(first)
    labels = [
        text[a : a + n]
        for a, n in zip(start[first[order]].tolist(), size[first[order]].tolist(), strict=True)
    ]
    number[order] = [names.setdefault(label, len(names)) for label in labels]
    out = np.empty(len(text) + 20 * count, np.uint8)
    return out[: relabel(data, start, size, number[inverse.reshape(-1)], out)].tobytes()
