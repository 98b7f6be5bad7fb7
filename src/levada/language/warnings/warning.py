"""A warning: a probable slip in a query that can run.

It is a value. The caller shows it: ``levada check`` on standard error, an engine as a Python
warning when the query is registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.errors import Span, point_at, shorten

MAX_SHOWN = 10  # warnings of a query
MAX_SENTENCE = 400  # characters of a message, and of a hint


class QuerySlip(UserWarning):
    """A warning about a registered query; logs keep the warnings of queries apart."""


@frozen
class QueryWarning:
    """One sentence with its place in the query's text (None: it is about the ontology), and a hint.

    ``of_data``: it may disappear when more streams or static data are named.
    """

    message: str
    span: Span | None
    hint: str = ""
    of_data: bool = False

    def shown(self, text: str) -> str:
        """Returns the text for people, with the line of the query and a caret.

        >>> print(QueryWarning("It shows nothing.", Span(1, 5)).shown("ASK {}"))
        Warning: line 1, column 5: It shows nothing.
          ASK {}
              ^
        """
        message, hint = (shorten(each, MAX_SENTENCE) for each in (self.message, self.hint))
        if self.span is None:
            return " ".join(filter(None, (f"Warning: {message}", hint)))
        where = f"Warning: line {self.span.line}, column {self.span.column}: {message}"
        return "\n".join([where, *point_at(text, self.span), *([hint] if hint else [])])


def sort_by_place(warnings: Iterable[QueryWarning]) -> tuple[QueryWarning, ...]:
    """Returns the warnings in the order of their places."""
    return tuple(sorted(warnings, key=lambda w: (w.span.line, w.span.column) if w.span else (0, 0)))


def show_warnings(warnings: Sequence[QueryWarning], text: str) -> list[str]:
    """Returns the first warnings about a text for people, and the number of further ones.

    >>> show_warnings([QueryWarning("It shows nothing.", Span(1, 5))] * 12, "ASK {}")[-1]
    'Warning: 2 more warnings are not shown.'
    """
    rest = len(warnings) - MAX_SHOWN
    counted = count_text(rest, "more warning is", "more warnings are")
    more = [f"Warning: {counted} not shown."] if rest > 0 else []
    return [*(warning.shown(text) for warning in warnings[:MAX_SHOWN]), *more]
