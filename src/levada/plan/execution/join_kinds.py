"""What joins and counts keep: words that the physical operators and the sealed plan share; and of
which form joins are, where that can be chosen.
"""

from __future__ import annotations

from enum import StrEnum

from levada.core.expressions import Call, Expression, Function, Var
from levada.errors import UsageError, near


class JoinKind(StrEnum):
    """What a join of report rows gives: pairs, or left rows that have a partner, or none, or all
    with a mark.

    Of MINUS a partner must also bind a shared variable that the left row binds.
    """

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    ANTI = "anti"
    MINUS = "minus"
    MARK = "mark"

    @property
    def returns_pairs(self) -> bool:
        """Whether the right rows are in the result, and do not merely decide on the left ones."""
        return self in (JoinKind.INNER, JoinKind.LEFT)

    @property
    def needs_partner(self) -> bool:
        """Whether only left rows with a partner are in the result."""
        return self in (JoinKind.INNER, JoinKind.SEMI)


class Order(StrEnum):
    """By what of a row it is told to be within a range: the value of a number or an instant; the
    characters of a plain string, of one with a language or without, of what STR() makes of it; the
    date, or the time of a dateTime, that has no time zone.
    """

    VALUE = "value"
    STRING = "string"
    TAGGED = "tagged"
    STR = "str"
    DATE = "date"
    LOCAL = "local"


def compared_expression(name: str, order: Order) -> Expression:
    """What of a variable is compared."""
    return Call(Function.STR, (Var(name),)) if order is Order.STR else Var(name)


class Shown(StrEnum):
    """What follows from the count of equal rows: each once; as often as there are more than in the
    second input; as often as they have been inserted and not deleted.
    """

    DISTINCT = "distinct"
    EXCEPT = "except"
    HELD = "held"


class JoinForm(StrEnum):
    """How three and more parts are joined: two at a time, what is joined kept as state; or at once,
    where that can be; or, there, as costs less, which is measured; or chains and circles at once,
    with some of their parts at all partitions.
    """

    BINARY = "binary"
    MULTIWAY = "multiway"
    AUTO = "auto"
    REPLICATED = "replicated"


def join_form_of(word: str) -> JoinForm:
    """The form of this name. Raises ``UsageError``.

    >>> join_form_of("multiway").name
    'MULTIWAY'
    """
    if word not in list(JoinForm):
        raise UsageError(f"There is no form of joins {word}.", hint=near(word, list(JoinForm)))
    return JoinForm(word)
