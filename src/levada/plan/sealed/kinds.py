"""What joins and counts keep: words that the physical operators and the sealed plan share."""

from __future__ import annotations

from enum import StrEnum


class Semi(StrEnum):
    """Which rows a semi-join keeps; of MINUS a partner must also bind a shared variable that the
    left row binds; MARK keeps all.
    """

    EXISTS = "exists"
    NOT_EXISTS = "not exists"
    MINUS = "minus"
    MARK = "mark"


class Shown(StrEnum):
    """What follows from the count of equal rows: each once; as often as there are more than in the
    second input; as often as they have been inserted and not deleted.
    """

    DISTINCT = "distinct"
    EXCEPT = "except"
    HELD = "held"
