"""A user's request for a query: a text, a name, the language and the options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.language.dialects.detect import dialect_of
from levada.plan.logical.query_options import QueryOptions


@frozen
class QueryRequest:
    """A query to register: its text, its name and its options, as in ``Engine.register``. If
    ``dialect`` is None, it is detected from the text.

    >>> QueryRequest("Select k From A [Range 5 s]", "pairs").spoken
    'cql'
    """

    text: str
    name: str
    dialect: str | None = None
    options: QueryOptions = field(default_factory=QueryOptions)

    @property
    def spoken(self) -> str:
        """Returns the dialect of the text, declared or detected. Raises ``UsageError`` for an
        unknown one.
        """
        return dialect_of(self.text, self.dialect).name


def check_batch(batch: object) -> None:
    """Raises ``UsageError`` unless the batch is a sequence of ``QueryRequest``.

    >>> check_batch([QueryRequest("Select k From A [Range 5 s]", "pairs")])
    """
    wrong_type = f"A {type(batch).__name__}"
    if isinstance(batch, Sequence):
        wrong_type = next(
            (f"A {type(one).__name__}" for one in batch if not isinstance(one, QueryRequest)), ""
        )
    if wrong_type:
        raise UsageError(
            f"{wrong_type} is no query to register.",
            hint="register_all takes a list of levada.QueryRequest(text, name).",
        )


@contextmanager
def note(name: str) -> Iterator[None]:
    """Adds the query's name to an error as a note (PEP 678), once."""
    try:
        yield
    except Exception as error:
        if name not in getattr(error, "__notes__", ()):
            error.add_note(name)
        raise
