"""Writes a number with its noun, in the singular or the plural."""

from __future__ import annotations


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun. ``plural``: "" for the noun with an s.

    >>> count_text(1, "epoch"), count_text(4000, "epoch"), count_text(0, "query", "queries")
    ('1 epoch', '4,000 epochs', '0 queries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
