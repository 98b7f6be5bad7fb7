"""Scanners of N-Triples terms (RDF 1.1 N-Triples, section 7): from the first byte of a term to the
byte after its last.

Each proves that the bytes are a well-formed term of a kind whose text it understands, and returns
REFUSED (negative) otherwise: refusing a valid term only costs time, because pyoxigraph then
decides. Valid but refused are, for instance, IRIs with escapes, user info, IP literals or
private-use characters, labels beyond ASCII, and unusual language tags.

Invariant: at least PAD newlines follow the last line, and no class of bytes within a term contains
the newline; so no scanner leaves the buffer. Cost: about a nanosecond a byte.
"""

from __future__ import annotations

from levada.core.rdf_terms import RDF
from levada.kernels import fuse, part
from levada.kernels.text.byte_ops import (
    ALNUM,
    ALPHA,
    DIGIT,
    HEX,
    IN_HOST,
    IN_IRI,
    IN_STRING,
    LABEL,
    SCHEME,
    SPACE,
    UPPER,
    View,
    W,
    byte,
    first_bytes,
    is_in,
    routine,
    word,
)
from levada.kernels.text.literals import NO_VALUE, XSD_SIZE, datatype_code, in_xsd

REFUSED = -1

_HTTP = W(int.from_bytes(b"http://\0", "little"))
_RDF_TAIL = W(int.from_bytes(RDF[32:40].encode(), "little"))  # "-syntax-"


@part
def skip_space(view: View, i: int) -> int:
    """The first byte from i on that is neither space nor tab."""
    while is_in(byte(view, i), SPACE):
        i += 1
    return i


@part
def line_end(view: View, i: int) -> int:
    """The end of the line: the first line feed or carriage return from i on."""
    while byte(view, i) != 10 and byte(view, i) != 13:
        i += 1
    return i


@part
def _continuation_bits(view: View, i: int) -> int:
    """The low six bits of a UTF-8 continuation byte, or a negative number that keeps every sum with
    it negative.
    """
    c = byte(view, i)
    return c & 63 if c & 0xC0 == 0x80 else -(1 << 40)


@routine
def code_point(view: View, i: int) -> tuple[int, int]:
    """The character beyond ASCII at i: (end, code point); REFUSED if ill-formed, a surrogate or a
    noncharacter.
    """
    c, second = byte(view, i), _continuation_bits(view, i + 1)
    if c < 0xE0:
        point = ((c & 31) << 6) + second
        return (i + 2, point) if c >= 0xC2 and point >= 0x80 else (REFUSED, 0)
    third = _continuation_bits(view, i + 2)
    if c < 0xF0:
        point = ((c & 15) << 12) + (second << 6) + third
        surrogate, no_character = (
            0xD800 <= point < 0xE000,
            0xFDD0 <= point <= 0xFDEF or point >= 0xFFFE,
        )
        return (
            (i + 3, point)
            if point >= 0x800 and not surrogate and not no_character
            else (REFUSED, 0)
        )
    point = ((c & 7) << 18) + (second << 12) + (third << 6) + _continuation_bits(view, i + 3)
    well_formed = c <= 0xF4 and 0x10000 <= point <= 0x10FFFF and (point & 0xFFFE) != 0xFFFE
    return (i + 4, point) if well_formed else (REFUSED, 0)


@routine
def _iri_unusual(view: View, i: int) -> int:
    """Past a percent escape, or a character beyond ASCII that RFC 3987 allows everywhere (ucschar);
    else REFUSED.
    """
    c = byte(view, i)
    if c == 37:
        return i + 3 if is_in(byte(view, i + 1), HEX) and is_in(byte(view, i + 2), HEX) else REFUSED
    if c < 0x80:
        return REFUSED
    end, point = code_point(view, i)
    if point < 0xA0 or 0xE000 <= point < 0xF900 or 0xFFF0 <= point < 0x10000 or point >= 0xE0000:
        return REFUSED
    return end


@fuse
def _scheme(view: View, i: int) -> int:
    """Past ``scheme:``, or REFUSED."""
    if not is_in(byte(view, i), ALPHA):
        return REFUSED
    while is_in(byte(view, i), SCHEME):
        i += 1
    return i + 1 if byte(view, i) == 58 else REFUSED


@part
def _authority(view: View, i: int) -> int:
    """Past a registered name and port; REFUSED for user info and IP literals."""
    while True:
        while is_in(byte(view, i), IN_HOST):
            i += 1
        c = byte(view, i)
        if c != 37 and c < 0x80:
            break
        i = _iri_unusual(view, i)
        if i == REFUSED:
            return REFUSED
    if byte(view, i) == 58:
        i += 1
        while is_in(byte(view, i), DIGIT):
            i += 1
    c = byte(view, i)
    return i if c == 47 or c == 62 or c == 63 or c == 35 else REFUSED


@part
def _path(view: View, i: int) -> int:
    """Past path, query, fragment and ``>``."""
    fragment = False
    while True:
        while is_in(byte(view, i), IN_IRI):
            i += 1
        c = byte(view, i)
        if c == 62:
            return i + 1
        if c == 35 and not fragment:
            fragment = True
            i += 1
        else:
            i = _iri_unusual(view, i)
            if i == REFUSED:
                return REFUSED


@routine
def scan_iri(view: View, i: int) -> int:
    """An absolute IRI (RFC 3987), ``<`` at i: past ``>``, or REFUSED."""
    i += 1
    if first_bytes(word(view, i), 7) == _HTTP:
        i = _authority(view, i + 7)
    else:
        i = _scheme(view, i)
        if i != REFUSED and byte(view, i) == 47 and byte(view, i + 1) == 47:
            i = _authority(view, i + 2)
    return _path(view, i) if i != REFUSED else REFUSED


@routine
def scan_blank(view: View, i: int) -> int:
    """Scans a blank node with an ASCII label, ``_`` at i: past the label, or REFUSED. Dots at its
    end are not part of it.
    """
    if byte(view, i + 1) != 58 or not (is_in(byte(view, i + 2), ALNUM) or byte(view, i + 2) == 95):
        return REFUSED
    i += 3
    while is_in(byte(view, i), LABEL):
        i += 1
    if byte(view, i) >= 0x80 or byte(view, i) == 58:
        return REFUSED
    while byte(view, i - 1) == 46:
        i -= 1
    return i


@fuse
def _escape(view: View, i: int) -> tuple[int, bool]:
    """Past the backslash and the letter at i, and whether the canonical text writes it otherwise;
    else REFUSED.
    """
    c = byte(view, i + 1)
    if c == 117 or c == 85 or c == 39:  # u U '
        return i + 2, True
    # n t " \ r b f
    same = c == 110 or c == 116 or c == 34 or c == 92 or c == 114 or c == 98 or c == 102
    return (i + 2, False) if same else (REFUSED, False)


@routine
def scan_string(view: View, i: int) -> tuple[int, bool]:
    """A quoted string, the opening quote at i: (place of the closing quote or REFUSED, whether a
    canonical copy is due).
    """
    i += 1
    rewrite = False
    while True:
        while is_in(byte(view, i), IN_STRING):
            i += 1
        c = byte(view, i)
        if c == 34:
            return i, rewrite
        if c == 92:
            i, other = _escape(view, i)
            rewrite = rewrite or other
        elif c >= 0x80:
            i, _ = code_point(view, i)
        elif c == 10 or c == 13:
            return REFUSED, False
        else:
            rewrite = True
            i += 1
        if i == REFUSED:
            return REFUSED, False


@fuse
def _subtag(view: View, i: int) -> tuple[int, int, int, bool]:
    """Letters and digits from i on: (end, letters, digits, whether one is upper case)."""
    letters, numbers, upper = 0, 0, False
    while is_in(byte(view, i), ALNUM):
        c = byte(view, i)
        numbers += 1 if is_in(c, DIGIT) else 0
        letters += 0 if is_in(c, DIGIT) else 1
        upper = upper or is_in(c, UPPER)
        i += 1
    return i, letters, numbers, upper


@routine
def scan_language(view: View, i: int) -> tuple[int, bool]:
    """A usual language tag (BCP 47: language, script, region), ``@`` at i: (end or REFUSED, whether
    one is upper case).
    """
    i, letters, numbers, upper = _subtag(view, i + 1)
    if numbers > 0 or letters < 2 or letters > 3:
        return REFUSED, False
    stage = 0
    while byte(view, i) == 45:
        i, letters, numbers, capital = _subtag(view, i + 1)
        upper = upper or capital
        if stage == 0 and letters == 4 and numbers == 0:
            stage = 1
        elif stage < 2 and ((letters == 2 and numbers == 0) or (letters == 0 and numbers == 3)):
            stage = 2
        else:
            return REFUSED, False
    return i, upper


@fuse
def _in_rdf(view: View, i: int) -> bool:
    """Whether the bytes at i may be the RDF namespace (langString, dirLangString need a tag)."""
    return bool(word(view, i + 32) == _RDF_TAIL)


@routine
def scan_datatype(view: View, i: int) -> tuple[int, int]:
    """A datatype, ``^`` at i: (end or REFUSED, place in ``literals.DATATYPES`` or NO_VALUE)."""
    if byte(view, i + 1) != 94 or byte(view, i + 2) != 60:
        return REFUSED, NO_VALUE
    if in_xsd(view, i + 3):
        name = end = i + 3 + XSD_SIZE
        while is_in(byte(view, end), ALNUM):
            end += 1
        code = datatype_code(view, name, end - name)
        if byte(view, end) == 62 and code != NO_VALUE:
            return end + 1, code
    elif _in_rdf(view, i + 3):
        return REFUSED, NO_VALUE
    return scan_iri(view, i + 2), NO_VALUE
