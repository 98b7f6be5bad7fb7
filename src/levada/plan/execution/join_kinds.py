"""Enumerations of joins and counts that the physical operators and the sealed plan share, and the
join forms that a user can choose.
"""

from __future__ import annotations

from enum import StrEnum

from levada.core.expressions import Call, Expression, Function, Var
from levada.errors import UsageError, near


class JoinKind(StrEnum):
    """The result of a join of report rows: pairs, or left rows with a partner, without one, or all
    with a mark.

    For MINUS a partner must also bind a shared variable that the left row binds.
    """

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    ANTI = "anti"
    MINUS = "minus"
    MARK = "mark"

    @property
    def returns_pairs(self) -> bool:
        """Whether right rows are in the result; otherwise they only decide on the left rows."""
        return self in (JoinKind.INNER, JoinKind.LEFT)

    @property
    def needs_partner(self) -> bool:
        """Whether only left rows with a partner are in the result."""
        return self in (JoinKind.INNER, JoinKind.SEMI)


class Order(StrEnum):
    """The part of a value that decides whether it is in a range.

    It is the value of a number or an instant; the characters of a plain string, of a string with or
    without language, or of the result of STR(); or the date, or the time of a dateTime without time
    zone.
    """

    VALUE = "value"
    STRING = "string"
    TAGGED = "tagged"
    STR = "str"
    DATE = "date"
    LOCAL = "local"


def compared_expression(name: str, order: Order) -> Expression:
    """Returns the expression of a variable that is compared."""
    return Call(Function.STR, (Var(name),)) if order is Order.STR else Var(name)


class Shown(StrEnum):
    """The number of result rows for a count of equal rows: one; the excess over the count in the
    second input; or the number of insertions minus deletions.
    """

    DISTINCT = "distinct"
    EXCEPT = "except"
    HELD = "held"


class JoinForm(StrEnum):
    """The way in which three or more parts are joined.

    Two at a time with intermediate state; at once where possible; the cheaper of both by measured
    cost; or chains and circles at once, with some parts at all partitions.
    """

    BINARY = "binary"
    MULTIWAY = "multiway"
    AUTO = "auto"
    REPLICATED = "replicated"


def join_form_of(word: str) -> JoinForm:
    """Returns the form of this name. Raises ``UsageError``.

    >>> join_form_of("multiway").name
    'MULTIWAY'
    """
    if word not in list(JoinForm):
        raise UsageError(f"There is no form of joins {word}.", hint=near(word, list(JoinForm)))
    return JoinForm(word)
