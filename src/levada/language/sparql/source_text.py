r"""The text of a query as the parser sees it: escapes decoded, positions of the original.

SPARQL 1.1 section 19.2: ``\u00E9`` and ``\U0001F600`` stand for their characters anywhere in the
text, before the grammar is applied. A backslash that is itself escaped (``"\\u0041"`` in a string)
begins no code point escape.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from levada.core.frozen import frozen
from levada.errors import QuerySyntaxError, Span

_HALF = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[^uU])", re.DOTALL)


@frozen
class Source:
    """``text`` as written and ``decoded`` as parsed; a shift is (decoded offset, original minus
    decoded from there on).
    """

    text: str
    decoded: str
    shifts: tuple[tuple[int, int], ...] = ()

    def span(self, offset: int) -> Span:
        """Returns the line and column in the original text of an offset in the decoded one."""
        place = bisect_right(self.shifts, (offset, len(self.text)))
        return place_of(self.text, offset + (self.shifts[place - 1][1] if place else 0))


def place_of(text: str, offset: int) -> Span:
    r"""Line and column of an offset.

    >>> place_of("ab\ncd", 4)
    Span(line=2, column=2)
    """
    start = text.rfind("\n", 0, offset) + 1
    return Span(text.count("\n", 0, offset) + 1, offset - start + 1)


def decode(text: str) -> Source:
    r"""Decodes code point escapes; QuerySyntaxError for one that is no character.

    >>> decode(r"<http://e/\u0061>").decoded
    '<http://e/a>'
    """
    check_characters(text)
    if "\\u" not in text and "\\U" not in text:
        return Source(text, text)
    pieces: list[str] = []
    shifts: list[tuple[int, int]] = []
    done = length = 0
    for match in _ESCAPE.finditer(text):
        digits = match.group(1) or match.group(2)
        if digits is None:
            continue
        pieces += (text[done : match.start()], _character(digits, text, match.start()))
        length += match.start() - done + 1
        done = match.end()
        shifts.append((length, done - length))
    return Source(text, "".join(pieces) + text[done:], tuple(shifts))


def check_characters(text: str) -> None:
    """Raises ``QuerySyntaxError`` for half of a character (a surrogate): a Python text may contain
    one, a stream cannot.
    """
    if (half := _HALF.search(text)) is not None:
        raise QuerySyntaxError(
            f"U+{ord(half.group()):04X} is half of a character, and no text of its own.",
            span=place_of(text, half.start()),
            text=_HALF.sub("\N{REPLACEMENT CHARACTER}", text),
            hint="Decode what the query is read from as what it is, such as UTF-8.",
        )


def _character(digits: str, text: str, offset: int) -> str:
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise QuerySyntaxError(
            f"{digits} is no Unicode character.", span=place_of(text, offset), text=text
        )
    return chr(code)
