"""The tables of ``docs/conformance.md`` that list tests by a reason."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping

MAX_CELL = 150


def reason_table(tests: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """The lines of a table of names by reason. A long list continues in further rows.

    >>> print(*reason_table({"left out": ["a1", "b2"]}), sep="\\n")
    | reason | tests |
    |---|---|
    | left out | `a1`, `b2` |
    """
    yield "| reason | tests |"
    yield "|---|---|"
    for reason, names in tests.items():
        listed = ", ".join(f"`{name}`" for name in names)
        for place, part in enumerate(textwrap.wrap(listed, MAX_CELL, break_on_hyphens=False)):
            yield f"| {'..' if place else reason} | {part} |"
