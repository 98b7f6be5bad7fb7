"""Templates: what queries mean that differ in constants alone.

A template is the meaning of one text over made-up terms, its *marks*, and once more over others.
The two are the same but for the marks, so what was done with the text did not go by which terms
stood there; then the meaning over any other terms of these kinds is the template *filled*. Who
makes one checks that (``engine/templates``), who plans one checks its plan likewise
(``plan/topology/rows``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

from levada.core.expressions import Call, Const, Function
from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Blank, Iri, Literal, Term
from levada.plan.logical import nodes as a

T = TypeVar("T")
_TERMS = Iri | Literal | Blank
_COMPARING = frozenset(
    (
        Function.EQUAL,
        Function.NOT_EQUAL,
        Function.LESS,
        Function.GREATER,
        Function.LESS_EQUAL,
        Function.GREATER_EQUAL,
        Function.IN,
        Function.NOT_IN,
        Function.SAME_TERM,
    )
)


@frozen
class Wording:
    """How texts of a template read: ``pieces``, and between them terms (``which``), each with what
    stands before and behind it; a ``sign`` of a number is in the piece.
    """

    pieces: tuple[str, ...]
    which: tuple[int, ...]
    around: tuple[tuple[str, str], ...]
    signs: tuple[str, ...]

    def text(self, terms: Sequence[Term]) -> str:
        """The text of these terms."""
        parts = [self.pieces[0]]
        for i, number in enumerate(self.which):
            term, (before, behind) = terms[number], self.around[i]
            said = term.lexical if isinstance(term, Literal) else str(term)[1:-1]
            parts += [before, said.removeprefix(self.signs[i]), behind, self.pieces[i + 1]]
        return "".join(parts)


@dataclass(frozen=True, eq=False)
class Template:
    """The meaning of a text over ``marks``, and its ``twin`` over ``others``; ``wording``: its
    texts'.
    """

    query: a.Query
    marks: tuple[Term, ...]
    twin: a.Query
    others: tuple[Term, ...]
    wording: Wording

    def fill(self, terms: tuple[Term, ...]) -> a.Query:
        """The meaning over these terms, in the order of the marks."""
        return substitute(self.query, dict(zip(self.marks, terms, strict=True)))

    @cached_property
    def fixed_terms(self) -> frozenset[Term]:
        """The terms that are the same in all."""
        return frozenset(terms_in(self.query)) - {*self.marks}


class TemplateInstance(NamedTuple):
    """What one query means: a template, filled."""

    template: Template
    terms: tuple[Term, ...]

    @property
    def text(self) -> str:
        """A text that means it; that which was asked may be written in another way."""
        return self.template.wording.text(self.terms)


def substitute(value: T, terms: Mapping[Term, Term]) -> T:
    """A value of the query path with other terms: itself where nothing changes.

    >>> pattern = TriplePattern(Iri("e:a"), Iri("e:p"), Iri("e:b"))
    >>> substitute(pattern, {Iri("e:a"): Iri("e:c")}).subject
    Iri(value='e:c')
    """
    result: Any = value
    if isinstance(value, _TERMS):
        result = terms.get(value, value)
    elif isinstance(value, tuple):
        parts = [substitute(part, terms) for part in value]
        if any(one is not other for one, other in zip(parts, value, strict=True)):
            result = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif is_dataclass(value):
        changed = {}
        for field in fields(value):
            before = getattr(value, field.name)
            after = substitute(before, terms)
            if after is not before:
                changed[field.name] = after
        result = replace(cast(Any, value), **changed) if changed else value
    return cast(T, result)


def terms_in(value: object) -> Iterator[Term]:
    """The terms in a value of the query path, with repetitions."""
    if isinstance(value, _TERMS):
        yield value
    else:
        for part in _parts(value):
            yield from terms_in(part)


def marks_outside_patterns(value: object, marks: Collection[Term]) -> Iterator[Term]:
    """The marks that stand where a term means more than itself: anywhere but in patterns and
    comparisons (as what ``REGEX`` reads, as what is counted with, as a datatype).
    """
    if isinstance(value, _TERMS):
        if value in marks:
            yield value
        return
    match value:
        case TriplePattern():
            return
        case Call(function, args) if function in _COMPARING:
            parts: tuple[object, ...] = tuple(x for x in args if not isinstance(x, Const))
        case _:
            parts = _parts(value)
    for part in parts:
        yield from marks_outside_patterns(part, marks)


def _parts(value: object) -> tuple[object, ...]:
    if isinstance(value, tuple):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return tuple([getattr(value, field.name) for field in fields(value)])
    return ()
