"""The state of one translation: names that the query declares, fresh variables, errors with their
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Term
from levada.errors import Span, UnsupportedError
from levada.language.sparql import ast
from levada.plan.logical.nodes import InGraph, Node, Source, Unit


class Stamp(NamedTuple):
    """The latest arrival of a triple in one of these windows.

    The triple has the three ``terms``, or it matches one of ``patterns`` with the variable.
    """

    terms: tuple[Var | Term, ...]
    windows: tuple[int, ...]
    patterns: tuple[TriplePattern, ...] = ()


class Marked(NamedTuple):
    """An EXISTS inside an expression: the variable of its value, its pattern, its place; or a
    ``stamp``.

    ``below``: it is in an aggregate, so its value belongs to the grouped solutions.
    """

    variable: str
    pattern: Node
    span: Span
    below: bool = False
    stamp: Stamp | None = None


_DEFAULT_GRAPH = InGraph(None)


@dataclass(slots=True)
class Context:
    """One query's translation.

    ``windows``: name to index in ``Query.windows``; ``streams``: the stream of each. ``graphs``:
    the named graphs of the query's dataset, in order (None: unknown, any can exist). ``base``: the
    IRI of BASE, or None. Fresh variables start with a dot, which no written variable can.
    ``groups`` translates a group within an expression, ``source`` is its source; None: there are
    none.
    """

    text: str
    windows: Mapping[str, int]
    graphs: Sequence[str] | None
    base: str | None
    groups: Callable[[ast.Group, Source, Context], Node] | None = None
    source: Source = _DEFAULT_GRAPH
    streams: tuple[str, ...] = ()
    _used: dict[str, int] = field(default_factory=dict)
    _marks: list[Marked] | None = None

    def fresh(self, letter: str) -> str:
        """Returns a new variable: ``.g0``, ``.g1``, ... for keys, ``.a0``, ... for aggregates."""
        number = self._used.get(letter, 0)
        self._used[letter] = number + 1
        return f".{letter}{number}"

    def unsupported_error(self, feature: str, span: Span, *, hint: str = "") -> UnsupportedError:
        """Returns the error for a SPARQL feature that Levada does not evaluate; ``feature`` is its
        name.
        """
        return UnsupportedError(
            f"{feature} is not supported yet.", span=span, text=self.text, hint=hint
        )

    @contextmanager
    def reading(self, source: Source) -> Iterator[None]:
        """Makes groups within expressions read this source."""
        before, self.source = self.source, source
        try:
            yield
        finally:
            self.source = before

    @contextmanager
    def marking(self) -> Iterator[list[Marked]]:
        """Collects each EXISTS of the expressions that are translated in the context."""
        before, self._marks = self._marks, []
        try:
            yield self._marks
        finally:
            self._marks = before

    def mark(self, exists: ast.Exists) -> str:
        """Returns the variable for an EXISTS in expressions; the ``marking`` caller
        adds its value.
        """
        if self._marks is None or self.groups is None:
            raise self.unsupported_error(f"{'NOT ' * exists.negated}EXISTS here", exists.span)
        marks, name = self._marks, self.fresh("e")
        marks.append(Marked(name, self.groups(exists.pattern, self.source, self), exists.span))
        return name

    def stamp(self, stamp: Stamp, span: Span) -> str:
        """Returns the variable for the time of a triple in an expression, as ``mark``."""
        if self._marks is None:
            raise self.unsupported_error("f:timestamp() here", span)
        name = self.fresh("t")
        self._marks.append(Marked(name, Unit(), span, stamp=stamp))
        return name

    def pass_on(self, marks: Iterable[Marked]) -> None:
        """Passes collected marks to the enclosing ``marking``."""
        for mark in marks:
            assert self._marks is not None, (
                "an aggregate stands in an expression that is translated with its marks"
            )
            self._marks.append(mark)
