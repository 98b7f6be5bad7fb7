r"""Names columns: fills the gaps of a header, and writes any name in a mapping.

Empty and repeated names of a header are numbered, so that each column has a name. In a mapping
``{name}`` is a column. A name with a brace, a quote, a backslash, an angle bracket or a blank at
its ends is in quotes: ``{"a<b"}``, within a quoted literal ``{\"a<b\"}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_PLAIN = r'[^{}"\\\s<>](?:[^{}"\\<>\r\n]*[^{}"\\\s<>])?'
PLACE = r"\{(?:" + _PLAIN + r'|"(?:[^"\\]|\\.)*")\}'
"""The pattern of a place for a value, without groups."""
_PLACES = re.compile(r"\{(?:(" + _PLAIN + r')|"((?:[^"\\]|\\.)*)")\}')
_IN_LITERAL = re.compile(r"\{(?:(" + _PLAIN + r')|\\"((?:[^"\\]|\\\\(?:\\["\\]|[^"\\]))*)\\")\}')


def number_names(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the names with numbers for repeated ones, and names for empty ones.

    >>> number_names(("ts", "v", "", "v"))
    ('ts', 'v_1', 'column_3', 'v_2')
    """
    count, seen = Counter(names), Counter[str]()
    if len(count) == len(names) and "" not in count:
        return tuple(names)
    result = []
    for i, name in enumerate(names, 1):
        seen[name] += 1
        number = f"_{seen[name]}" if count[name] > 1 else ""
        unique = f"{name}{number}" if name else f"column_{i}"
        while unique != name and unique in count:
            unique += "_"
        result.append(unique)
    return tuple(result)


def place_of(name: str) -> str:
    """Returns the notation of a column in a mapping.

    >>> place_of("CO(GT)"), place_of('5" pipe')
    ('{CO(GT)}', '{"5\\\\" pipe"}')
    """
    if re.fullmatch(_PLAIN, name):
        return f"{{{name}}}"
    escaped = re.sub(r'["\\]', lambda match: "\\" + match[0], name)
    return f'{{"{escaped}"}}'


def split_places(text: str, *, literal: bool = False) -> Iterator[tuple[str, bool]]:
    r"""Splits a term's text into pieces, each with a flag for column names. ``literal``: the text
    has the escapes of a quoted literal.

    >>> list(split_places("<http://e/{Type of mobile}/t>"))
    [('<http://e/', False), ('Type of mobile', True), ('/t>', False)]
    >>> list(split_places(r'"{\"a<b\"} km"', literal=True))
    [('"', False), ('a<b', True), (' km"', False)]
    """
    at = 0
    for place in (_IN_LITERAL if literal else _PLACES).finditer(text):
        if place.start() > at:
            yield text[at : place.start()], False
        quoted = place[2] or ""
        for _ in range(1 + literal):
            quoted = re.sub(r"\\(.)", r"\1", quoted)
        yield place[1] or quoted, True
        at = place.end()
    if at < len(text):
        yield text[at:], False
