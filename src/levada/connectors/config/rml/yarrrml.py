"""Translates YARRRML, which is RML in YAML, to RML in Turtle by the library ``yatter``.

The YAML is read by a safe loader, and is bounded before the library sees it: aliases make a small
file large. The library opens and fetches nothing. Cost: Python objects, once for a file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from levada.core.code_loading import load_module
from levada.core.distribution import install_command
from levada.errors import UsageError

MAX_VALUES = 100_000
"""The most values of a document, repeated ones included."""
MAPPINGS = ("mappings", "mapping", "m")
"""The names of the section that makes a document YARRRML."""


def is_yarrrml(document: object) -> bool:
    """Whether a YAML document is YARRRML.

    >>> is_yarrrml({"mappings": {}}), is_yarrrml({"triples": []})
    (True, False)
    """
    return isinstance(document, dict) and any(name in document for name in MAPPINGS)


def to_turtle(path: str, document: Any) -> str:
    """Returns the RML of a YARRRML document. Raises ``UsageError``."""
    _check_size(path, document)
    try:
        yatter = load_module("yatter")
    except ModuleNotFoundError as error:
        raise UsageError(
            "YARRRML needs yatter, which is not installed.", hint=install_command("rml")
        ) from error
    with _captured_log() as sentences:
        try:
            turtle = yatter.translate(document)
        except Exception as error:  # the library raises what its code meets in a wrong document
            raise _fault(path, f"{type(error).__name__}: {error}") from error
    if turtle is None:
        raise _fault(path, sentences[-1] if sentences else "yatter does not say why")
    return str(turtle)


def _fault(path: str, reason: str) -> UsageError:
    return UsageError(
        f"The mapping {path} is not YARRRML that can be translated: {reason}.",
        hint="Its sections are prefixes and mappings; a mapping has sources, s and po.",
    )


def _check_size(path: str, document: object) -> None:
    """Counts the values of a document, those of aliases once for each."""
    left, count = [document], 0
    while left:
        value = left.pop()
        count += 1
        if count > MAX_VALUES:
            raise UsageError(f"The mapping {path} has more than {MAX_VALUES:,} values.")
        if isinstance(value, dict):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            left += value


class _Capture(logging.Handler):
    """Collects the errors of a log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


@contextmanager
def _captured_log() -> Iterator[list[str]]:
    """Collects the errors that the library logs, in place of its own handlers."""
    logger, capture = logging.getLogger("yatter.constants"), _Capture()
    handlers, propagate = logger.handlers[:], logger.propagate
    logger.handlers[:], logger.propagate = [capture], False
    try:
        yield capture.sentences
    finally:
        logger.handlers[:], logger.propagate = handlers, propagate
