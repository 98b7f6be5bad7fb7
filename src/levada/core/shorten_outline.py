"""Shortens texts with many names or lines, for explanations of a thousand queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

SHOWN_NAMES = 8
"""Names that a list shows before it says how many more there are."""
SHOWN_LINES = 20
"""Lines of a shortened outline."""


def name_list(names: Sequence[str], limit: int | None = SHOWN_NAMES) -> str:
    """Returns the first names and the number of the others. ``limit``: None for all names.

    >>> name_list(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    >>> name_list(["a", "b", "c"], 2)
    'a, b, c'
    """
    if limit is None or len(names) <= limit + 1:  # one more name is as short as its number
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"


@dataclass
class _Line:
    text: str
    below: list[_Line] = field(default_factory=list)


def shorten_outline(lines: Iterable[str], limit: int = SHOWN_LINES) -> list[str]:
    """Returns an outline, whose levels are indented by two spaces, in at most ``limit`` lines.

    Upper levels are shown first. If a level does not fit, each line above shows as many of its
    lines as fit, and the number of the others. The last line has the number of all.

    >>> lines = ["edges", *(f"  {i}" for i in range(9)), "tasks"]
    >>> shorten_outline(lines, 6)
    ['edges', '  0', '  1', '  and 7 more', 'tasks', '(4 of 11 lines; --all shows all)']
    >>> shorten_outline(lines, 11) == lines
    True
    """
    lines = list(lines)
    if len(lines) <= limit:
        return lines
    top = _parse(lines)
    shown = {id(top): _fitting([top], limit - 1)}
    left = limit - 1 - _size(top, shown[id(top)])
    level = top.below[: shown[id(top)]]
    while level:
        count = _fitting(level, left)
        shown |= {id(line): count for line in level}
        left -= sum(_size(line, count) for line in level)
        level = [below for line in level for below in line.below[:count]]
    texts: list[str] = []
    _write(top, shown, "", texts)
    count = sum(not text.lstrip().startswith("and ") for text in texts)
    return [*texts, f"({count:,} of {len(lines):,} lines; --all shows all)"]


def _parse(lines: Sequence[str]) -> _Line:
    top = _Line("")
    parents = [top]
    for text in lines:
        depth = (len(text) - len(text.lstrip())) // 2
        del parents[depth + 1 :]
        line = _Line(text)
        parents[-1].below.append(line)
        parents.append(line)
    return top


def _fitting(level: Sequence[_Line], left: int) -> int:
    """Returns how many lines below each of a level fit: the largest number, 0 for none."""
    low, high = 0, max((len(line.below) for line in level), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_size(line, middle) for line in level) <= left:
            low = middle
        else:
            high = middle - 1
    return low


def _size(line: _Line, count: int) -> int:
    """Returns the lines that some of those below a line need, with that for the others."""
    return min(len(line.below), count) + (0 < count < len(line.below))


def _write(line: _Line, shown: dict[int, int], indent: str, texts: list[str]) -> None:
    count = shown.get(id(line), 0)
    for below in line.below[:count]:
        texts.append(below.text)
        _write(below, shown, indent + "  ", texts)
    if 0 < count < len(line.below):
        texts.append(f"{indent}and {len(line.below) - count:,} more")
