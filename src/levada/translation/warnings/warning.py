"""A warning: what is surely a slip in a query that can be run.

It is a value. Who shows it decides where: ``levada check`` on standard error, an engine as a
warning of Python's when the query is registered.
"""

from __future__ import annotations

from levada.errors import Span, pointed
from levada.frozen import frozen


@frozen
class QueryWarning:
    """One sentence, where in the query's text it is about something, and what to do.

    ``of_data``: it may be gone when more streams or static data are named.
    """

    message: str
    span: Span
    hint: str = ""
    of_data: bool = False

    def shown(self, text: str) -> str:
        """For people, with the line of the text and a caret.

        >>> print(QueryWarning("It shows nothing.", Span(1, 5)).shown("ASK {}"))
        Warning: line 1, column 5: It shows nothing.
          ASK {}
              ^
        """
        where = f"Warning: line {self.span.line}, column {self.span.column}: {self.message}"
        return "\n".join([where, *pointed(text, self.span), *([self.hint] if self.hint else [])])
