"""Proposes columns for nested JSON: a column for each member that is not an object, by its path.

An object becomes columns of its members, down to ``MAX_LEVELS`` levels, unless it has more than
``MAX_MEMBERS`` names, which are then hardly names of fields. With an iterator, columns begin at the
element; the members of the records above it follow under their JSONPaths. An array is a column of
its text. Cost: Python objects, for the first rows only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.connectors.config.json_path import (
    EACH,
    Steps,
    path_name,
    rooted_path,
    show_steps,
)

MAX_LEVELS, MAX_MEMBERS = 8, 100
Cells = dict[str, list[object]]
_Names = tuple[str, ...]


def nested_columns(
    records: Sequence[object], iterator: Steps | None
) -> tuple[Cells, dict[str, str], tuple[str, ...]]:
    """Returns the values of each column, the paths of columns with another name, and notes.

    >>> nested_columns([{"a": {"b": 1}, "v": [{"x": 2}]}], None)[0]
    {'a.b': [1], 'v': [[{'x': 2}]]}
    >>> nested_columns([{"a": {"b": 1}, "v": [{"x": 2}]}], ("v", None))[:2]
    ({'x': [2], 'a.b': [1]}, {'a.b': '$.a.b'})
    """
    rows = [row for record in records for row in _rows(record, iterator or ())]
    if iterator is None:
        rows = [row for row in rows if isinstance(row[-1], dict)]
    cells: Cells = {}
    paths: dict[str, str] = {}
    elements = [row[-1] for row in rows]
    for steps in _leaves(elements):
        name = path_name(steps) if steps else "value"
        cells[name] = [_value(element, steps) for element in elements]
        if not steps:
            paths[name] = "@"
    prefixes = _prefixes(iterator or ())
    for level, prefix in enumerate(prefixes[:-1]):
        above = [row[level] for row in rows]
        inner = tuple((iterator or ())[len(prefix) :])
        for steps in _leaves(above):
            if not steps or steps == inner[: len(steps)]:
                continue
            outer = [step for step in prefix if isinstance(step, str)]
            name = path_name(steps)
            if name in cells:
                name = path_name(((outer or ["record"])[-1], *steps))
            cells[name] = [_value(element, steps) for element in above]
            paths[name] = rooted_path((*prefix, *steps))
    return cells, paths, tuple(_notes(cells, paths, iterator))


def _rows(value: object, iterator: Steps) -> Iterator[tuple[object, ...]]:
    """Yields the matches of an iterator in a record, behind those above it."""
    if EACH not in iterator[:-1]:
        yield from ((value, match) if iterator else (match,) for match in _matches(value, iterator))
        return
    inner = iterator.index(EACH) + 1
    for match in _matches(value, iterator[:inner]):
        yield from ((value, *row) for row in _rows(match, iterator[inner:]))


def _matches(value: object, steps: Steps) -> Iterator[object]:
    """Yields the values at steps."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    inner: Sequence[object] = ()
    if isinstance(value, dict):
        inner = list(value.values()) if step is EACH else [value[step]] if step in value else ()
    elif isinstance(value, list):
        here = step if isinstance(step, int) else len(value)
        inner = value if step is EACH else value[here : here + 1]
    for each in inner:
        yield from _matches(each, rest)


def _prefixes(iterator: Steps) -> list[Steps]:
    """Returns the paths of the record, of the elements above a row, and of the row."""
    inner = [i + 1 for i, step in enumerate(iterator) if step is EACH and i + 1 < len(iterator)]
    return [(), *(iterator[:i] for i in inner), *([iterator] if iterator else [])]


def _leaves(values: Sequence[object], above: _Names = ()) -> Iterator[_Names]:
    """Yields the paths of the members that are columns; () for values that are not objects."""
    objects = [value for value in values if isinstance(value, dict)]
    names = list(dict.fromkeys(name for value in objects for name in value))
    is_open = bool(names) and (not above or len(names) <= MAX_MEMBERS) and len(above) < MAX_LEVELS
    others = [value for value in values if value is not None and not isinstance(value, dict)]
    if not is_open or (above and others):
        yield above
    if is_open:
        for name in names:
            inner = [value[name] for value in objects if name in value]
            yield from _leaves(inner, (*above, name))


def _value(value: object, steps: _Names) -> object:
    """Returns the value at names; None without one."""
    return next(_matches(value, steps), None)


def _notes(cells: Cells, paths: dict[str, str], iterator: Steps | None) -> Iterator[str]:
    """Yields sentences on arrays of objects."""
    for name, values in cells.items():
        inner = [each for value in values if isinstance(value, list) for each in value]
        if inner and all(isinstance(each, dict) for each in inner) and name not in paths:
            path = show_steps((*(iterator or ()), *name.split("."), EACH))
            yield f"The column {name} is an array of objects: iterator={path} makes a row of each."
