"""All columns of frames: their content, unit, dtype and writer.

A row belongs to a member (``OP``), has terms in slots, event times by window or a report time, and
maybe a weight. Names that begin with ``#`` serve operators and state and are never shown:
``visible_columns`` returns the others.

    op              int32     the member that a row belongs to                  ingest, edges
    x0 y0, x1 y1    uint64    slot: halves of the identity, a seeded xxh3_128
                              of the canonical text; 0, 0 is unbound            ingest, Extend
    k0 d0 m0 c0     uint8 float64 int64 uint8    slot: its value's Kind,
                              double, mantissa (or ms), decimal scale           ingest, Extend
    lo0 hi0 prev0   int64 ms  window: least and greatest event time, greatest
                              earlier time of any triple (MIN: none)            ingest, joins
    w               int8      weight: how often the row comes (+) or goes (-)   count windows
    u               int64 ms  of rows with a weight and event times: the first
                              instant at which the row does not count any more,
                              whatever its windows say (MAX: none is known)     versions
    r               int64 ms  report time, where rows are of a report           Report
    g               uint16    the group that decides where the row is           exchange

    #k #h           uint64    halves of the key that rows meet by               keyed state
    #s #e           int64 ms  the row counts in [s, e)                          intervals
    #n              int64     a count or a net weight                           tallies
    #rows           int64     the number of rows in a group                     groups by changes
    #g              int64     a GROUP BY's group, numbered within a call        best values
    #i              int64     the place of a sum in its group                   exact sums
    #at             int64     where something begins in another frame           directories
    #o              int64     the order in which rows came                      runs
    #f              bool      whether a row of a run has been whole before      runs
    #q              int64     a row's number in its sequence                    count windows
    #of             int64     the sequence of a row among an epoch's            count windows
    #on             int8      whether an equal row was there before             count windows
    #v              int8      the sign of static rows before they are settled   static data
    #d              float64   the number that decides the cell of a slice       slices in state
    #leaf           int64     the cell of a slice, while it is added up         slices in state
    #wanted         int64     a bit for each window in which it is wanted       slices in state

Cost: the name of a slot's column is looked up in a table, not built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

OP = "op"
WEIGHT = "w"
UNTIL = "u"
REPORT = "r"
PLACE = "g"

KEY, CHECK = "#k", "#h"
BEGIN, END = "#s", "#e"
LEFT = "#left"
COUNT = "#n"
STANDING = "#rows"
GROUP = "#g"
SUM = "#i"
AT = "#at"
ORDER = "#o"
WHOLE = "#f"
NUMBER = "#q"
SEQUENCE = "#of"
STOOD = "#on"
SIGN = "#v"
VALUE = "#d"
LEAF = "#leaf"
WANTED = "#wanted"

_SLOT = "xykdmc"
_WINDOW = ("lo", "hi", "prev")


def _number(letter: str) -> Callable[[int], str]:
    @cache
    def name(number: int) -> str:
        return f"{letter}{number}"

    return name


x, y = _number("x"), _number("y")
kind, double, mantissa, scale = (_number(letter) for letter in "kdmc")
least, greatest, earlier = (_number(word) for word in _WINDOW)


@cache
def is_visible(name: str) -> bool:
    """Whether a column is more than an operator's own.

    >>> [name for name in ("op", "x0", "#k", "w") if is_visible(name)]
    ['op', 'x0', 'w']
    """
    return not name.startswith("#")


@cache
def is_slot(name: str) -> bool:
    """Whether a column is a facet of a slot.

    >>> [name for name in ("op", "x0", "m12", "lo0", "prev1") if is_slot(name)]
    ['x0', 'm12']
    """
    return name[0] in _SLOT and name[1:].isdigit()


@cache
def is_time(name: str) -> bool:
    """Whether a column is an event time of a window, or ends a row.

    >>> [name for name in ("op", "x0", "lo0", "prev1", "u") if is_time(name)]
    ['lo0', 'prev1', 'u']
    """
    if name == UNTIL:
        return True
    return any(name.startswith(word) and name[len(word) :].isdigit() for word in _WINDOW)


def visible_columns(names: Iterable[str]) -> list[str]:
    """Returns the columns that are not internal to operators, in order.

    >>> visible_columns(["op", "x0", "#s", "#e"])
    ['op', 'x0']
    """
    return [name for name in names if is_visible(name)]
