"""Limits what a document may demand of its parser, before the parser reads it: its nesting depth,
and the expansion of its entities.

pyoxigraph's parsers of JSON-LD and of triples as terms recurse once a level, and RDF/XML's replaces
entities of any size: a small file could crash the process, or take all memory. So a document is
read through ``Bounded``, which checks each block before it passes it on. ``DEEPEST`` levels of
brackets or elements are more than people or programs ever write, and a thousandth of the depth that
crashes a process. Entities of XML are for short names of namespaces, and may expand a document up
to ``GROWTH`` times.

    JSON-LD        { [                      strings
    Turtle, TriG   [ ( { <<                 strings of four kinds, IRIs, comments, escapes
    RDF/XML        elements, entities       comments, CDATA, instructions, declarations

A byte order mark is removed here. The parser reports ill-formed documents: these automata need only
be correct as far as it reads. Cost: one pass, about 500 MB a CPU-second; a block in memory.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping
from typing import IO

import numpy as np
import pyoxigraph as ox

from levada.connectors.sources.file_errors import encoding_fault
from levada.core.array_types import Bytes, Ints
from levada.core.frozen import frozen
from levada.kernels.nesting_depth import CLOSES, OPENS, WIDTH, descend

DEEPEST = 500  # levels of brackets or elements in a document, of triples within triples in a line
BLOCK = 1 << 20
ENTITY = 1 << 16  # bytes that one entity expands to
GROWTH = 20  # bytes of all entities after expansion, by bytes of the document after the first block

ATTRIBUTES = 1000  # of an element of XML: the parser compares each with all
_WINDOW = 2000  # bytes: more attributes have such a window without the beginning of an element
_ATTRIBUTE = re.compile(rb"""(?<![^\s"'<>=])[^\s"'<>=]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+')\s*+""")

_ENTITIES = re.compile(rb'<!ENTITY\s*(?:%\s*)?([\w.:-]{1,250})\s+"([^"]*)"\s*>')
_USES = re.compile(rb"&([\w.:-]{1,250});")
_DECLARED = b"<!ENTITY"
DIRECTION = "A literal with a base direction (RDF 1.2) is not taken."
TRIPLE = "A triple as a term (RDF 1.2) is not taken."
_OVERLAP = 200  # bytes of the previous block in which the word may begin
# base directions of JSON-LD and RDF/XML, some of which the parser drops, with their context
_DIRECTED = re.compile(
    rb'"@direction"\s*(?:[^\s:]|:\s*[^\sn])'
    rb'|"@language"\s*:\s*"[\w-]+--(?:ltr|rtl)"|"[\w-]+--(?:ltr|rtl)"\s*:'
)
_ITS = re.compile(rb"""xmlns:([\w.-]+)\s*=\s*["']http://www\.w3\.org/2005/11/its["']""")
_DIR = re.compile(rb"""(?<![\w.-])([\w.-]+):dir\s*=\s*["']""")
# an absolute base with dot segments, which the parsers do not remove (RFC 3986, 5.2.4)
_DOTTED_BASE = re.compile(
    rb"""(?:"@base"\s*:\s*"|\bbase\s*<|\bxml:base\s*=\s*["'])[a-z][a-z0-9+.-]*:[^<>"'?\#]*?/\.\.?/""",
    re.IGNORECASE,
)
_OTHER = b""  # all bytes without an entry in a mode
Rules = Mapping[int, Mapping[bytes, int]]


# not named as an error: it becomes a dead letter or a SourceError
class Malformed(Exception):  # noqa: N818
    """The fault of an ill-formed document, and its place (from 1; 0: unknown)."""

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.line, self.column = line, column

    @property
    def location(self) -> str:
        """``, line 3, column 5``, or empty if the parser does not report it."""
        return f", line {self.line}, column {self.column}" if self.line else ""


def beyond_rdf_11(term: object) -> str:
    """Returns why a term of pyoxigraph's is not one of RDF 1.1; "" if it is."""
    if isinstance(term, ox.Triple):
        return TRIPLE
    return DIRECTION if getattr(term, "direction", None) is not None else ""


def names_direction(fault: str) -> bool:
    """Whether a parser's message is about an unsupported base direction."""
    return "base direction" in fault or any(end in fault for end in ("--ltr'", "--rtl'"))


@frozen
class Automaton:
    """The automaton for ``kernels.nesting_depth``: the kind of each byte, and the steps of each
    mode.
    """

    kinds: Bytes
    table: Ints


def automaton(rules: Rules) -> Automaton:
    """Returns the steps of each mode by the bytes that it names: the next mode, with a change of
    the depth.

    >>> brackets = automaton({0: {b"([": 0 | OPENS, b")]": 0 | CLOSES, b"": 0}})
    >>> [int(brackets.table[brackets.kinds[byte]]) for byte in b"(]x"]
    [64, 128, 0]
    """
    named = sorted({byte for steps in rules.values() for key in steps for byte in key})
    rows = [tuple(_step(steps, byte) for steps in rules.values()) for byte in named]
    other = tuple(steps[_OTHER] for steps in rules.values())
    columns = [other, *sorted({*rows} - {other})]
    assert len(columns) <= WIDTH, "kinds fit into four bits"
    kinds = np.zeros(256, np.uint8)
    for byte, row in zip(named, rows, strict=True):
        kinds[byte] = columns.index(row)
    table = np.zeros((max(rules) + 1, WIDTH), np.int32)
    for kind, column in enumerate(columns):
        table[list(rules), kind] = column
    return Automaton(kinds, table.reshape(-1))


def _step(steps: Mapping[bytes, int], byte: int) -> int:
    return next((to for key, to in steps.items() if byte in key), steps[_OTHER])


_JSON = {
    0: {b"[{": 0 | OPENS, b"]}": 0 | CLOSES, b'"': 1, _OTHER: 0},
    1: {b'"': 0, b"\\": 2, _OTHER: 1},
    2: {_OTHER: 1},
}


def _turtle() -> Rules:
    plain = {
        b"[({": 0 | OPENS, b"])}": 0 | CLOSES, b"<": 1, b">": 3, b'"': 4, b"'": 10, b"#": 16,
        b"\\": 17, _OTHER: 0,
    }  # fmt: skip
    rules: dict[int, Mapping[bytes, int]] = {
        0: plain,
        1: {b"<": 0 | OPENS, b">": 0, _OTHER: 2},  # after <: a triple, or an IRI
        2: {b">": 0, _OTHER: 2},
        3: {**plain, b">": 0 | CLOSES},
        16: {b"\r\n": 0, _OTHER: 16},
        17: {_OTHER: 0},  # an escape in a name
    }
    for first, quote in ((4, b'"'), (10, b"'")):
        one, two, short, escape, long, ends = range(first, first + 6)
        rules |= {
            one: {quote: two, b"\\": escape, _OTHER: short},
            two: {**plain, quote: long},  # an empty string, or a long one begins
            short: {quote: 0, b"\\": escape, _OTHER: short},
            escape: {_OTHER: short},
            long: {quote: ends, b"\\": 18 + first, _OTHER: long},
            ends: {quote: 19 + first, b"\\": 18 + first, _OTHER: long},
            18 + first: {_OTHER: long},
            19 + first: {quote: 0, b"\\": 18 + first, _OTHER: long},
        }
    return rules


_XML = {
    0: {b"<": 1, _OTHER: 0},
    1: {b"/": 6, b"?": 7, b"!": 9, b">": 0 | OPENS, _OTHER: 2},
    2: {b">": 0 | OPENS, b"/": 5, b'"': 3, b"'": 4, _OTHER: 2},
    3: {b'"': 2, _OTHER: 3},
    4: {b"'": 2, _OTHER: 4},
    5: {b">": 0, b"/": 5, b'"': 3, b"'": 4, _OTHER: 2},
    6: {b">": 0 | CLOSES, _OTHER: 6},
    7: {b"?": 8, _OTHER: 7},  # an instruction
    8: {b">": 0, b"?": 8, _OTHER: 7},
    9: {b"-": 10, b"[": 15, b">": 0, _OTHER: 14},
    10: {b"-": 13, b">": 0, _OTHER: 14},
    11: {b"-": 12, _OTHER: 11},  # a comment
    12: {b"-": 13, _OTHER: 11},
    13: {b">": 0, b"-": 13, _OTHER: 11},
    14: {b">": 0, b"<": 1, _OTHER: 14},  # a declaration
    15: {b"]": 16, _OTHER: 15},  # CDATA
    16: {b"]": 17, _OTHER: 15},
    17: {b">": 0, b"]": 17, _OTHER: 15},
}
AUTOMATA = {
    "jsonld": automaton(_JSON),
    "ttl": automaton(_turtle()),
    "trig": automaton(_turtle()),
    "rdf": automaton(_XML),
}


class Bounded:
    """A document as its parser reads it; ``read`` raises ``Malformed`` before it would return a
    byte that is nested too deeply, or an entity that expands too far.
    """

    def __init__(self, file: IO[bytes], form: str) -> None:
        self._file = file
        self._automaton, self._form, self._end = AUTOMATA.get(form), form, b""
        self._state = np.zeros(2, np.int64)
        self._block, self._at = b"", 0
        self._size, self._lines = 0, 0  # bytes and line ends before the block
        self._entities = Entities() if form == "rdf" else None
        self._its: tuple[set[bytes], set[bytes]] = set(), set()  # prefixes: all, and those with dir

    def read(self, size: int = -1) -> bytes:
        """Returns at most ``size`` bytes; none at the end."""
        if self._at == len(self._block):
            self._fill()
        piece = self._block[self._at : self._at + size if size >= 0 else None]
        self._at += len(piece)
        return piece

    def peek(self) -> bytes:
        """Returns the first block without consuming it."""
        if not self._size and not self._block:
            self._fill()
        return self._block

    def _fill(self) -> None:
        self._size += len(self._block)
        self._lines += self._block.count(b"\n")
        self._block, self._at = self._file.read(BLOCK), 0
        if not self._size:
            if fault := encoding_fault(self._block):
                raise Malformed(fault.rstrip("."))
            self._block = self._block.removeprefix(BOM_UTF8)
        if self._entities is not None:
            self._entities.check(self._block, self._size)
            self._check_attributes()
        if self._automaton is not None:
            self._check_depth(self._automaton)
            self._check_words(self._end + self._block)

    def _check_words(self, seen: bytes) -> None:
        self._check_base(seen)
        if self._form in ("jsonld", "rdf"):
            self._check_direction(seen)
        self._end = seen[-_OVERLAP:]

    def _check_base(self, seen: bytes) -> None:
        match = _DOTTED_BASE.search(seen) if b"/." in seen else None
        if match:
            at = max(match.start() - len(self._end), 0)
            raise Malformed(
                "its base has a segment . or .., which is not resolved", *self._place(at)
            )

    def _check_direction(self, seen: bytes) -> None:
        if self._form == "jsonld":
            match = _DIRECTED.search(seen)
            is_directed = match is not None
        else:
            match = None
            for prefixes, pattern in zip(self._its, (_ITS, _DIR), strict=True):
                prefixes.update(pattern.findall(seen))
            is_directed = not self._its[0].isdisjoint(self._its[1])
        if is_directed:
            at = 0 if match is None else max(match.start() - len(self._end), 0)
            raise Malformed(DIRECTION.rstrip("."), *(self._place(at) if match else ()))

    def _check_depth(self, automaton: Automaton) -> None:
        text = np.frombuffer(self._block, np.uint8)
        at = descend(text, automaton.kinds, automaton.table, self._state, DEEPEST)
        if at >= 0:
            raise Malformed(f"it nests more than {DEEPEST} levels deep", *self._place(at))

    def _check_attributes(self) -> None:
        block = self._block
        starts = range(0, len(block) - _WINDOW, _WINDOW)
        if any(block.find(b"<", at, at + _WINDOW) < 0 for at in starts):
            count, end = 0, 0
            for match in _ATTRIBUTE.finditer(block):
                count, end = (count + 1 if match.start() == end else 1), match.end()
                if count > ATTRIBUTES:
                    reason = f"an element has more than {ATTRIBUTES:,} attributes"
                    raise Malformed(reason, *self._place(match.start()))

    def _place(self, at: int) -> tuple[int, int]:
        """Returns the line and column of a byte of the block."""
        line = self._lines + self._block.count(b"\n", 0, at) + 1
        return line, at - self._block.rfind(b"\n", 0, at)


class Entities:
    """The entities of an RDF/XML document: the size of each, and the total of their uses."""

    def __init__(self) -> None:
        self._size: dict[bytes, int] = {}
        self._expanded = 0
        self._typed = False  # whether there is a document type declaration
        self._end = b""  # the end of the previous block, in which a declaration may begin

    def check(self, block: bytes, before: int) -> None:
        """Checks the next block, after ``before`` bytes. Raises ``Malformed``."""
        seen = self._end + block
        self._end = block[-len(_DECLARED) + 1 :]
        self._typed = self._typed or b"<!D" in seen or b"<!d" in seen
        if self._typed and _DECLARED in seen:
            self._declare(block, before)
        if not self._size:
            return
        for name, uses in Counter(_USES.findall(block)).items():
            self._expanded += uses * self._size.get(name, 0)
        if self._expanded > BLOCK + GROWTH * (before + len(block)):
            raise Malformed(f"its entities expand to more than {GROWTH} times its size")

    def _declare(self, block: bytes, before: int) -> None:
        declarations = _ENTITIES.findall(block)
        if before or len(declarations) != block.count(_DECLARED):
            raise Malformed(
                "an entity stands behind its first megabyte, has a name that is not ASCII, or is "
                "no text between double quotes"
            )
        for name, value in declarations:
            uses = Counter(_USES.findall(value))
            size = len(value) + sum(n * self._size.get(use, 0) for use, n in uses.items())
            if size > ENTITY:
                raise Malformed(f"its entity {name.decode()} expands to more than {ENTITY} bytes")
            self._size[name] = size
