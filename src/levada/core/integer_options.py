"""Parses whole numbers of options: counts, and seeds."""

from __future__ import annotations

import operator
import re
from typing import Any, Literal

from levada.errors import UsageError, near

MAX_INTEGER = 10**18
"""The largest number that anything takes: it fits into 64 bits with room to add."""
MOST_PARTITIONS = 10_000
AUTO: Literal["auto"] = "auto"
CORES: Literal["cores"] = "cores"
Partitions = int | Literal["auto", "cores"] | None
"""A number; as what epochs take says, from as many as there are cores on; as many as there are
cores, while these come and go; None: what the checkpoint has, of a new one the cores.
"""


def check_count(value: Any, what: str, least: int = 1, most: int = MAX_INTEGER) -> int:
    """The number, if it is a whole one within these bounds. Raises ``UsageError``.

    >>> check_count(5, "epoch_rows")
    5
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise UsageError(
            f"{what} is {value!r}, which is no whole number from {least:,} to {most:,}."
        )
    return number


_TEXT = re.compile(r"([0-9][0-9_]{0,24})([kM]?)")
_UNITS = {"": 1, "k": 1000, "M": 1_000_000}


def parse_count(text: str, what: str, least: int = 1, most: int = MAX_INTEGER) -> int:
    """The number that a text says. Raises ``UsageError``.

    >>> parse_count("5000", "limit"), parse_count("100k", "limit"), parse_count("2M", "limit")
    (5000, 100000, 2000000)
    """
    match = _TEXT.fullmatch(text)
    number = int(match[1]) * _UNITS[match[2]] if match else None
    try:
        return check_count(text if number is None else number, what, least, most)
    except UsageError as error:
        raise UsageError(error.message, hint="Write it as 5000, 100k or 2M.") from None


def check_partitions(value: Any) -> Partitions:
    """The number of partitions that a user gives. Raises ``UsageError``.

    >>> check_partitions("auto"), check_partitions(3)
    ('auto', 3)
    """
    if value is None or (isinstance(value, str) and value in (AUTO, CORES)):
        return AUTO if value == AUTO else CORES if value == CORES else None
    try:
        return check_count(value, "partitions", most=MOST_PARTITIONS)
    except UsageError as error:
        words = near(value, (AUTO, CORES)) if isinstance(value, str) else ""
        raise UsageError(
            error.message,
            hint=words or "Or say auto: up to the cores, as epochs take least; or cores.",
        ) from None
