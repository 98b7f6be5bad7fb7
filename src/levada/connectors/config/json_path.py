r"""Parses paths into nested JSON: names of columns, and the option ``iterator``.

    temp                 the member temp of the record
    payload.temp         the member of that whole name; without a value there, the member temp of
                         the object payload
    a[0].b               an element of an array, counted from 0
    $.payload.temp       a JSONPath (RFC 9535): only the member temp of payload
    $['payload.temp']    only the member of that whole name
    items[*]             as iterator: each element of the array items is a row. Columns are then
                         looked up in the element; @ is the element itself
    $.id                 with an iterator: a member of the whole record
    key=$.id             in a schema: the column key has the value at $.id

A name in a path without ``$`` and ``@`` may have any characters but ``.`` and ``[``. A path has one
value in a row, so ``[*]`` is for iterators and for paths that begin as the iterator does: there it
is the same element. Filters, slices, ``..``, lists of selectors and indices from the end are
refused.
Cost: nothing a row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache

from levada.core.frozen import frozen
from levada.errors import UsageError

EACH = None
"""The step to each element of an array, or to the value of each member of an object."""
Step = str | int | None
Steps = tuple[Step, ...]
MAX_STEPS = 500
"""The most steps of a path."""
_INDEX = re.compile(r"0|-?[1-9][0-9]*")
_SHORTHAND = re.compile(r"[A-Za-z_\u0080-\U0010ffff][0-9A-Za-z_\u0080-\U0010ffff]*")
_SELECTOR = re.compile(
    r"""\s*(?: (?P<name> "(?:[^"\\\x00-\x1f]|\\.)*" | '(?:[^'\\\x00-\x1f]|\\.)*' )
             | (?P<slice> -?[0-9]*\s*:[\s0-9:-]*)
             | (?P<index> -?[0-9]+ )
             | (?P<each> \* )
             | (?P<filter> \? ) )\s*""",
    re.VERBOSE | re.DOTALL,
)
_LARGEST = 2**53 - 1


@frozen
class ColumnPath:
    """The places of a column's value in a record: the first that has a value counts."""

    name: str
    places: tuple[Steps, ...]


def is_path(name: str) -> bool:
    """Whether a column of JSON is more than the name of a member.

    >>> is_path("temp"), is_path("payload.temp"), is_path("$id"), is_path("CO(GT)")
    (False, True, False, False)
    """
    return _is_rooted(name) or _relative(name) not in (None, (name,))


@lru_cache(maxsize=64)
def parse_iterator(text: str) -> Steps:
    """Parses ``iterator``. Raises ``UsageError``.

    >>> parse_iterator("items[*].parts[*]")
    ('items', None, 'parts', None)
    """
    path = text.strip()
    if path.startswith("@"):
        raise UsageError(f"The iterator {text} begins at an element.", hint="Say $ for the record.")
    if _is_rooted(path):
        return _parse(path, 1, text, strict=True)
    if path.startswith("["):
        return _parse(path, 0, text, strict=False)
    return _parse(f".{path}", 0, text, strict=False)


@lru_cache(maxsize=1024)
def column_path(name: str, iterator: Steps = ()) -> ColumnPath:
    """Returns the places of a column. Raises ``UsageError`` for a path that is not supported.

    >>> column_path("a.b").places
    (('a.b',), ('a', 'b'))
    >>> column_path("$.id", ("items", None)).places, column_path("v", ("items", None)).places
    ((('id',),), (('items', None, 'v'),))
    """
    if _is_rooted(name):
        steps = _parse(name, 1, name, strict=True)
        steps = steps if name[0] == "$" else iterator + steps
        _check_single(name, steps, iterator)
        return ColumnPath(name, (steps,))
    relative = _relative(name)
    if relative is None or relative == (name,):
        return ColumnPath(name, ((*iterator, name),))
    steps = iterator + relative
    _check_single(name, steps, iterator)
    return ColumnPath(name, ((*iterator, name), steps))


def list_path(name: str) -> tuple[Steps, str] | None:
    """Returns the iterator that meets the values of a column with several in a row, and the column
    of each of them; None for a column with one value.

    >>> list_path("@.a[*].b"), list_path("a.b")
    ((('a', None), '@.b'), None)
    """
    steps = _parse(name, 1, name, strict=True) if _is_rooted(name) else _relative(name)
    if steps is None or EACH not in steps:
        return None
    last = max(i for i, step in enumerate(steps) if step is EACH) + 1
    return steps[:last], rooted_path(steps[last:], "@")


def split_alias(column: str) -> tuple[str, str]:
    """Returns the name of a column of a schema, and its path.

    >>> split_alias("key=$.id"), split_alias("a=b")
    (('key', '$.id'), ('a=b', 'a=b'))
    """
    name, _, path = column.partition("=")
    name, path = name.strip(), path.strip()
    return (name, path) if name and _is_rooted(path) else (column, column)


def show_steps(steps: Iterable[Step]) -> str:
    """Returns steps as a path.

    >>> show_steps(("items", 2, "a.b", None)), show_steps(())
    ("items[2]['a.b'][*]", '$')
    """
    text = ""
    for step in steps:
        if isinstance(step, str) and re.fullmatch(r"[^.\[\]'\"\s$@*][^.\[\]]*", step):
            text += f".{step}" if text else step
        elif isinstance(step, str):
            text += _in_brackets(step)
        else:
            text += "[*]" if step is EACH else f"[{step}]"
    return f"${text}" if text.startswith("[") else text or "$"


def _in_brackets(name: str) -> str:
    """Returns a name in brackets and quotes."""
    inner = json.dumps(name, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "['" + inner.replace("'", "\\'") + "']"


def rooted_path(steps: Iterable[Step], root: str = "$") -> str:
    """Returns steps as a JSONPath.

    >>> rooted_path(("a", None, "b c"))
    "$.a[*]['b c']"
    """
    text = root
    for step in steps:
        if isinstance(step, str):
            text += f".{step}" if _SHORTHAND.fullmatch(step) else _in_brackets(step)
        else:
            text += "[*]" if step is EACH else f"[{step}]"
    return text


def struct_fields(column: str) -> tuple[str, ...] | None:
    """Returns the fields of structs that lead to a column; None for another path, or a plain name.

    >>> struct_fields("a.b"), struct_fields("$['a.b'].c"), struct_fields("a[0]"), struct_fields("a")
    (('a', 'b'), ('a.b', 'c'), None, None)
    """
    try:
        steps = column_path(column).places[-1]
    except UsageError:
        return None
    names = tuple(step for step in steps if isinstance(step, str))
    return names if names and len(names) == len(steps) and names != (column,) else None


def path_name(steps: tuple[str, ...]) -> str:
    """Returns the shortest column that is a path of names below an element.

    >>> path_name(("a", "b")), path_name(("a.b", "c"))
    ('a.b', "@['a.b'].c")
    """
    name = ".".join(steps)
    try:
        is_same = column_path(name).places[-1] == steps
    except UsageError:
        is_same = False
    return name if is_same else rooted_path(steps, "@")


def _is_rooted(name: str) -> bool:
    """Whether a name is a JSONPath."""
    return name[:1] in ("$", "@") and (len(name) == 1 or name[1] in ".[")


@lru_cache(maxsize=1024)
def _relative(name: str) -> Steps | None:
    """Returns the steps of a path without a root; None for the plain name of a member, such as
    ``a..b`` or ``Temperature [C]``. Raises ``UsageError`` for selectors that are not supported.
    """
    if not re.search(r"[.\[]", name) or re.search(r"^[.\[]|\.\.|\.$", name):
        return None
    try:
        return _parse(f".{name}", 0, name, strict=False)
    except _NotPathError:
        return None


class _NotPathError(UsageError):
    """A text that is not a path."""


def _parse(path: str, at: int, shown: str, *, strict: bool) -> Steps:
    """Returns the steps behind the root. Raises ``UsageError``."""
    steps: list[Step] = []
    offset = len(path) - len(shown)
    while at < len(path):
        where = f"The path {shown}, column {at + 1 - offset}"
        if path.startswith("..", at):
            raise _refusal(where, "descendants (..)")
        if path[at] == "[":
            step, at = _bracket(path, at, where)
        elif path[at] == ".":
            step, at = _name(path, at + 1, where, strict=strict)
        else:
            raise _NotPathError(f"{where}: a step begins with . or [.", hint="Say a.b or a['b'].")
        steps.append(step)
        if len(steps) > MAX_STEPS:
            raise UsageError(f"The path {shown[:60]}... has more than {MAX_STEPS} steps.")
    return tuple(steps)


def _name(path: str, at: int, where: str, *, strict: bool) -> tuple[Step, int]:
    """Returns the step behind a dot, and where it ends."""
    if path.startswith("*", at) and path[at + 1 : at + 2] in ("", ".", "["):
        return EACH, at + 1
    match = (_SHORTHAND if strict else re.compile(r"[^.\[]+")).match(path, at)
    if match is None or (strict and path[match.end() : match.end() + 1] not in ("", ".", "[")):
        odd = re.compile(r"[^.\[]*").match(path, at)
        name = odd[0] if odd else ""
        raise _NotPathError(f"{where}: a name is expected.", hint=f"Say [{name or 'name'!r}].")
    return match[0], match.end()


def _bracket(path: str, at: int, where: str) -> tuple[Step, int]:
    """Returns the step in brackets, and where it ends."""
    match = _SELECTOR.match(path, at + 1)
    if match is None:
        hint = "Say [0], [*] or ['name']."
        raise _NotPathError(f"{where}: the brackets hold neither a number nor a name.", hint=hint)
    if match["filter"]:
        raise _refusal(where, "filters ([?..])")
    if match["slice"] is not None:
        raise _refusal(where, "slices ([a:b])")
    if path.startswith(",", match.end()):
        raise _refusal(where, "lists of selectors ([a, b])")
    if not path.startswith("]", match.end()):
        raise _NotPathError(f"{where}: the bracket is not closed.", hint="Close it with ].")
    end = match.end() + 1
    if match["each"]:
        return EACH, end
    if match["name"]:
        return _unquote(match["name"], where), end
    return _index(match["index"], where), end


def _index(text: str, where: str) -> int:
    if not _INDEX.fullmatch(text) or abs(int(text)) > _LARGEST:
        raise _NotPathError(f"{where}: {text} is not the number of an element.", hint="Say [0].")
    if int(text) < 0:
        raise _refusal(where, f"indices from the end ([{text}])")
    return int(text)


def _unquote(quoted: str, where: str) -> str:
    """Returns the name in quotes, by the escapes of JSON; in single quotes also of these."""
    inner = quoted[1:-1]
    if quoted[0] == "'":
        inner = re.sub(r"\\.|\"", lambda m: {"\\'": "'", '"': '\\"'}.get(m[0], m[0]), inner)
    try:
        name = json.loads(f'"{inner}"')
        name.encode()
    except ValueError as error:
        raise _NotPathError(
            f"{where}: the name {quoted} has an escape that JSON has not."
        ) from error
    assert isinstance(name, str), "a JSON string is a text"
    return name


def _refusal(where: str, selectors: str) -> UsageError:
    return UsageError(
        f"{where}: {selectors} are not supported.",
        hint="Say names and numbers, such as a.b[0], and iterator=items[*] for rows of elements.",
    )


def _check_single(name: str, steps: Steps, iterator: Steps) -> None:
    """Checks that a path has one value in a row."""
    last = max((i for i, step in enumerate(steps) if step is EACH), default=-1)
    if steps[: last + 1] != iterator[: last + 1]:
        wanted = show_steps(steps[: last + 1])
        raise UsageError(
            f"The path {name} has several values in a row.",
            hint=f"Say iterator={wanted} for a row of each, and name columns from there.",
        )
