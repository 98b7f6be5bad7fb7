"""Distinguishes lines of JSON from one array or object that spans several lines.

NDJSON has a JSON value on each line, and a line that is an object is a row. The last element of an
array over lines looks like such a row, since no comma follows it. So the first value of a text
decides: if it continues after its line, the text is not NDJSON, and no row of it is read. But if a
whole object on one line follows it, only its own lines are damaged. Cost: a pass over the first
line, or over the first megabyte if that line is not a whole value.
"""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from contextlib import suppress

from levada.connectors.sources.regular_files import open_file

HEAD = 1 << 20  # bytes that are examined
NOT_LINES = "one JSON array or object over several lines, and NDJSON has an object on each line"
_FIRST = 1 << 12
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


def spans_lines(text: bytes) -> bool:
    r"""Whether the first value of a text continues after its line; ``text`` may be cut anywhere.

    >>> spans_lines(b'[\n{"a": 1},\n{"a": 2}\n]'), spans_lines(b'{"a": 1}\n{"a": 2}')
    (True, False)
    """
    if len(text) > HEAD:
        text = text[: text.rfind(b"\n", 0, HEAD) + 1]
    try:
        return _goes_on(text)
    except json.JSONDecodeError as error:
        value = error.doc
        at_end = error.pos >= len(value) - 1 or error.msg.startswith("Unterminated string")
        # lines after a damaged one do not continue it, unless it is their last member
        return at_end and (value.count("\n") > 1 or (value[:1] == "[" and text[-1:] == b"\n"))
    except RecursionError:
        return False


def file_spans_lines(path: str | os.PathLike[str]) -> bool:
    """Applies ``spans_lines`` to a plain file. Raises ``OSError``."""
    with open_file(path, buffering=0) as file:
        first = file.read(_FIRST)
        with suppress(json.JSONDecodeError, RecursionError):
            if not (goes_on := _goes_on(first)) or len(first) < _FIRST:
                return goes_on
        return spans_lines(first + file.read(HEAD + 1 - len(first)))


def _goes_on(text: bytes) -> bool:
    """Whether a line ends within the first value, and no row follows it. Raises ``JSONDecodeError``
    if that is incomplete, and ``RecursionError``.
    """
    text = text.removeprefix(BOM_UTF8).replace(b"\r", b"\n")
    value = text.decode("utf-8", "replace").strip()
    end = _DECODER.raw_decode(value)[1]
    lines = value[:end].split("\n")
    if len(lines) == 1:
        return False
    return any(map(_is_row, lines)) or not _is_row(value[end:].lstrip().partition("\n")[0])


def _is_row(line: str) -> bool:
    """Whether a line is an object."""
    try:
        return isinstance(_DECODER.decode(line), dict)
    except (json.JSONDecodeError, RecursionError):
        return False
