"""RDF terms as values of the query path, and the kinds of terms on the data path.

The query path (few terms, once per query) uses the classes below. The data path never makes an
object per term: there a term is columns (``core/frame.py``), and ``Kind`` is its ``k`` facet.

Identity is syntactic: two terms are the same iff their canonical N-Triples texts are ("01" is not
"1"). The canonical text is what pyoxigraph prints: language tags in lower case, no
``^^xsd:string``, escapes decoded where N-Triples allows.
"""

from __future__ import annotations

import re
from enum import IntEnum

from levada.core.frozen import frozen

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
STRING = XSD + "string"
LANG_STRING = RDF + "langString"

MOST_CHARACTERS = 1000
"""A literal of more characters that is no string has no value; a longer number is an error as a
result (docs/semantics.md#results).
"""

SPECIAL = '["\\\\\x00-\x1f\x7f\ufffe\uffff]'
"""The characters that a canonical text escapes, as a regular expression."""
_SPECIAL = re.compile(SPECIAL)
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}


class Kind(IntEnum):
    """The kind of a term (facet ``k``, uint8). The exact numeric kinds have their value in the
    facets d, m, c.

    HARD_*: a number or time that the kernels could not represent exactly (more than 18 digits, INF,
    years beyond 9999 ...): its text decides, and ingest ships that text whenever a slot has the
    value facets.
    """

    UNBOUND = 0
    IRI = 1
    BLANK = 2
    STRING = 3  # simple literal, xsd:string
    LANG = 4  # language-tagged string
    INTEGER = 10  # xsd:integer and derived types, value m
    DECIMAL = 11  # value m / 10**c
    FLOAT = 12  # value d
    DOUBLE = 13  # value d
    BOOLEAN = 14  # value m (0 or 1)
    DATETIME = 15  # with a time zone and whole milliseconds: m = ms since the epoch
    HARD_NUMBER = 20
    HARD_TIME = 21  # dateTime without zone, or finer than ms
    OTHER = 30  # any other datatype, and ill-typed literals of the above


NUMERIC = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE)


@frozen
class Iri:
    """An absolute IRI, without angle brackets."""

    value: str

    def __str__(self) -> str:
        return f"<{self.value}>"


@frozen
class Blank:
    """A blank node by its label."""

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"


@frozen
class Literal:
    """A literal: lexical form, datatype IRI, and language tag ("" if none; then the datatype is not
    rdf:langString).

    >>> str(Literal("5", XSD + "integer"))
    '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """

    lexical: str
    datatype: str = STRING
    language: str = ""

    def __str__(self) -> str:
        lexical = self.lexical
        body = "".join(_escape(c) for c in lexical) if _SPECIAL.search(lexical) else lexical
        quoted = f'"{body}"'
        if self.language:
            return f"{quoted}@{self.language.lower()}"
        return quoted if self.datatype == STRING else f"{quoted}^^<{self.datatype}>"


Term = Iri | Blank | Literal


def equals_itself_alone(term: Term) -> bool:
    """Whether ``=`` holds of a term and of no other one: an IRI, a plain string.

    >>> equals_itself_alone(Literal("a")), equals_itself_alone(Literal("1", XSD + "integer"))
    (True, False)
    """
    if isinstance(term, Literal):
        return term.datatype == STRING and not term.language
    return isinstance(term, Iri)


def _escape(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    return f"\\u{ord(c):04X}" if _SPECIAL.match(c) else c


def parse_term(text: str) -> Term:
    """The term of a canonical N-Triples text (as this module and the intake print it).

    >>> parse_term('"a"@en').language
    'en'
    """
    if text.startswith("<"):
        return Iri(text[1:-1])
    if text.startswith("_:"):
        return Blank(text[2:])
    end = text.rindex('"')
    lexical = _unescape(text[1:end])
    tail = text[end + 1 :]
    if tail.startswith("@"):
        return Literal(lexical, LANG_STRING, tail[1:])
    return Literal(lexical, tail[3:-1]) if tail.startswith("^^") else Literal(lexical)


_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    i = 0
    while i < len(text):
        if text[i] != "\\":
            out.append(text[i])
            i += 1
        elif text[i + 1] in "uU":
            width = 4 if text[i + 1] == "u" else 8
            out.append(chr(int(text[i + 2 : i + 2 + width], 16)))
            i += 2 + width
        else:
            out.append(_UNESCAPES.get(text[i + 1], text[i + 1]))
            i += 2
    return "".join(out)
