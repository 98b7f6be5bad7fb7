"""Whole numbers as users give them: how many of something, and seeds."""

from __future__ import annotations

import operator
from typing import Any

from levada.errors import UsageError

MOST = 10**18
"""The largest number that anything takes: it fits into 64 bits with room to add."""


def check_count(value: Any, what: str, least: int = 1, most: int = MOST) -> int:
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
