"""The parser of ``--slice``: slices of event time of this length, and the number of key groups by
which rows are counted in them.

    1d    1mo    1d,groups=65536

Few groups cost little: 4,096 are a few KB a node and task, 65,536 are sixteen times as much, which
is packed, written and read once an epoch (docs/decisions/0075-counts-of-4096-groups.md). A run that
learns its placement counts the finest groups: the group table measures the gain of a step.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from levada.errors import UsageError

LENGTHS = ("1d", "1mo")
FINEST, USUAL = 1 << 16, 1 << 12
LEARNED = f"{LENGTHS[0]},groups={FINEST}"


class Slicing(NamedTuple):
    """The options of the send graph. ``length``: of a slice ("": nothing is counted). ``groups``:
    the number of groups.
    """

    length: str
    groups: int

    def __str__(self) -> str:
        return self.length if self.groups in (0, USUAL) else f"{self.length},groups={self.groups}"


@lru_cache(maxsize=4)
def slicing_of(said: str) -> Slicing:
    """Parses the option. Raises UsageError if it is invalid.

    >>> slicing_of("1mo").groups, slicing_of("1d,groups=64").groups, slicing_of("").groups
    (4096, 64, 0)
    """
    if not said:
        return Slicing("", 0)
    length, comma, more = (part.strip() for part in said.partition(","))
    if length not in LENGTHS:
        raise UsageError(f"There are no slices of {length}.", hint="Say 1d or 1mo.")
    word, _, number = (part.strip() for part in more.partition("="))
    if comma and word != "groups":
        raise UsageError(
            f"Slices have no {word!r}.", hint=f"Say such as {length},groups={FINEST}, or {length}."
        )
    return Slicing(length, groups_said(number) if comma else USUAL)


def groups_said(number: str) -> int:
    """Parses a number of groups, a divisor of 65,536. Raises UsageError if it is not one.

    >>> groups_said("4096")
    4096
    """
    groups = int(number) if number.isdecimal() and len(number) < 9 else 0
    if not 1 <= groups <= FINEST or FINEST % groups:
        raise UsageError(
            f"Rows cannot be counted by {number or 'no number of'} groups.",
            hint=f"Say a power of two up to {FINEST:,}: groups={FINEST}.",
        )
    return groups


def check_slices(said: str, *, learned: bool = False) -> str:
    """Checks the option and returns its stored form. ``learned``: of a run that learns its
    placement, which counts the finest groups. Raises UsageError.

    >>> check_slices("1d"), check_slices("1mo", learned=True)
    ('1d', '1mo,groups=65536')
    """
    slicing = slicing_of(said)
    if not learned:
        return str(slicing)
    if "groups" in said and slicing.groups != FINEST:
        raise UsageError(
            f"A placement that is learned is of {FINEST:,} groups, and {said} counts "
            f"{slicing.groups:,}.",
            hint=f"Say --slice {slicing.length}.",
        )
    return str(slicing._replace(groups=FINEST)) if said else LEARNED
