"""Conditions of an operator: a set of values for each attribute that is compared, and what has
another form as clauses.

*Box*: attributes with their ``Spans``; one that is not there is free. *Clauses*: a conjunction of
disjunctions of conditions of which only the text is known (``a.x < b.y``). Both are monotone forms:
the least condition that two others imply is, for each attribute, the union of both sets (free if
free on one side), and for clauses the disjunction of both conjunctions, multiplied out.

``a | b`` is that least one; ``a.covers(b)`` says that b implies a. A box of several attributes lets
through what neither side wants together (carrier of one, terminal of the other); that is the
paper's relaxation, is priced, and the compensations drop it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.papers.streamreuse.model.value_intervals import Spans
from levada.core.frozen import frozen

Atom = tuple[str, tuple[str, ...]]
"""A condition of another form: its text, and its attributes."""
Clause = frozenset[Atom]

MANY = 64
"""Above so many clauses of a product only those that both sides have are kept: still implied by
both, and no longer the least."""


@frozen
class Where:
    """A box, by attribute in order, and clauses that hold all."""

    box: tuple[tuple[str, Spans], ...] = ()
    clauses: frozenset[Clause] = frozenset()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the box binds, in order."""
        return tuple(attribute for attribute, _ in self.box)

    @property
    def never(self) -> bool:
        """Whether no row can satisfy the box."""
        return any(not found.parts for _, found in self.box)

    def covers(self, other: Where) -> bool:
        """Whether all that satisfies ``other`` satisfies this."""
        if other.never:
            return True
        wanted = dict(other.box)
        for attribute, found in self.box:
            if attribute not in wanted or not found.covers(wanted[attribute]):
                return False
        return all(any(own <= clause for own in other.clauses) for clause in self.clauses)

    def __or__(self, other: Where) -> Where:
        if self.never or other.never:
            return other if self.never else self
        theirs = dict(other.box)
        box = tuple((a, found | theirs[a]) for a, found in self.box if a in theirs)
        return Where(
            tuple((a, found) for a, found in box if not _free(found)),
            _either(self.clauses, other.clauses),
        )

    def __and__(self, other: Where) -> Where:
        box = dict(self.box)
        for attribute, found in other.box:
            box[attribute] = box[attribute] & found if attribute in box else found
        return where(box, self.clauses | other.clauses)

    def named(self) -> frozenset[str]:
        """All attributes that these conditions name."""
        return frozenset(self.attributes) | {
            a for clause in self.clauses for _, names in clause for a in names
        }

    def beyond(self, wider: Where) -> frozenset[str]:
        """The attributes that must be seen to tell, of rows that satisfy ``wider``, which satisfy
        this.
        """
        theirs = dict(wider.box)
        seen = {a for a, found in self.box if theirs.get(a) != found}
        extra = self.clauses - wider.clauses
        return frozenset(seen) | {a for clause in extra for _, names in clause for a in names}

    def __str__(self) -> str:
        told = [f"{a} in ({found})" for a, found in self.box]
        told += sorted(" or ".join(sorted(text for text, _ in c)) for c in self.clauses)
        return " and ".join(told) if told else "all"


def where(box: Mapping[str, Spans], clauses: Iterable[Clause] = ()) -> Where:
    """Conditions in their one form: attributes in order, no clause that another implies.

    >>> from bench.papers.streamreuse.model.value_intervals import values
    >>> one, two = where({"c": values("DL"), "t": values("A")}), where({"c": values("DL", "CO")})
    >>> print(one | two)
    c in ('CO' or 'DL')
    """
    return Where(
        tuple((a, box[a]) for a in sorted(box) if not _free(box[a])), _needed(frozenset(clauses))
    )


def _free(found: Spans) -> bool:
    return len(found.parts) == 1 and all(len(cut) == 1 for cut in found.parts[0])


def _either(ours: frozenset[Clause], theirs: frozenset[Clause]) -> frozenset[Clause]:
    if ours == theirs:
        return ours
    if len(ours) * len(theirs) > MANY:
        return ours & theirs
    return _needed(frozenset(a | b for a in ours for b in theirs))


def _needed(clauses: frozenset[Clause]) -> frozenset[Clause]:
    return frozenset(c for c in clauses if not any(other < c for other in clauses))
