"""Templates: the common meaning of queries that differ only in constants.

A template is the meaning of one text over invented terms, its *marks*, and its meaning over other
marks. Both are equal except for the marks, so the translation did not depend on the terms. The
meaning over other terms of these kinds is the template *filled*. The code that makes a template
checks this (``engine/templates``). The planner checks its plan in the same way
(``plan/sharing/template_instances``).
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
    """The texts of a template: ``pieces`` and terms (``which``) between them, each with the
    characters around it; the ``sign`` of a number belongs to the piece.
    """

    pieces: tuple[str, ...]
    which: tuple[int, ...]
    around: tuple[tuple[str, str], ...]
    signs: tuple[str, ...]

    def text(self, terms: Sequence[Term]) -> str:
        """Returns the text with these terms."""
        parts = [self.pieces[0]]
        for i, number in enumerate(self.which):
            term, (before, behind) = terms[number], self.around[i]
            said = term.lexical if isinstance(term, Literal) else str(term)[1:-1]
            parts += [before, said.removeprefix(self.signs[i]), behind, self.pieces[i + 1]]
        return "".join(parts)


@dataclass(frozen=True, eq=False)
class Template:
    """The meaning of a text over ``marks``, and its ``twin`` over ``others``; ``wording``: its
    texts.
    """

    query: a.Query
    marks: tuple[Term, ...]
    twin: a.Query
    others: tuple[Term, ...]
    wording: Wording

    def fill(self, terms: tuple[Term, ...]) -> a.Query:
        """Returns the meaning over these terms, in the order of the marks."""
        return substitute(self.query, dict(zip(self.marks, terms, strict=True)))

    @cached_property
    def fixed_terms(self) -> frozenset[Term]:
        """The terms that are equal in all instances."""
        return frozenset(terms_in(self.query)) - {*self.marks}


class TemplateInstance(NamedTuple):
    """The meaning of one query: a filled template."""

    template: Template
    terms: tuple[Term, ...]

    @property
    def text(self) -> str:
        """A text with this meaning; the query's own text may differ."""
        return self.template.wording.text(self.terms)


def substitute(value: T, terms: Mapping[Term, Term]) -> T:
    """Returns a value of the query path with other terms: itself if nothing changes.

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
    """Yields the terms in a value of the query path, with repetitions."""
    if isinstance(value, _TERMS):
        yield value
    else:
        for part in _parts(value):
            yield from terms_in(part)


def marks_outside_patterns(value: object, marks: Collection[Term]) -> Iterator[Term]:
    """Returns the marks outside patterns and comparisons, where a term has another meaning.

    Examples are an argument of ``REGEX``, a number in arithmetic, and a datatype.
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
