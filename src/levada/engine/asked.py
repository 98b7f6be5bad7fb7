"""A query as a user asks for it: a text, a name, the language and the options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from levada.algebra.options import QueryOptions
from levada.syntax.dialects.recognise import dialect_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that is to be registered: its text and name, and what ``Engine.register`` takes
    beside them. ``dialect`` None is the one that the text shows.

    >>> Asked("Select k From A [Range 5 s]", "pairs").spoken
    'cql'
    """

    text: str
    name: str
    dialect: str | None = None
    options: QueryOptions = field(default_factory=QueryOptions)

    @property
    def spoken(self) -> str:
        """The dialect of the text, given or shown. Raises ``UsageError`` for one that is none."""
        return dialect_of(self.text, self.dialect).name


@contextmanager
def note(name: str) -> Iterator[None]:
    """Notes on an error which query it is about (PEP 678), once."""
    try:
        yield
    except Exception as error:
        if name not in getattr(error, "__notes__", ()):
            error.add_note(name)
        raise
