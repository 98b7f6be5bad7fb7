"""What was installed of a tree of operators, to be installed again with other terms: shapes stay,
only constants differ.

Eleven operators stand for one pattern over the merge of two streams and static data, and a query
has a dozen such patterns. Their shapes follow from the pattern's form and from what is read of it,
and not from its names and terms; so the second one of a form costs its members, and not its
planning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from levada.core.rdf_terms import Term
from levada.plan.execution.shapes import Member, Shape

Intern = Callable[[Shape, Member], tuple[Shape, int]]


@dataclass(slots=True)
class Template:
    """The operators of a tree in the order in which they were installed; members name their inputs
    by their places in it.

    ``names``: of the slots of the last one.
    """

    entries: list[tuple[Shape, Member]] = field(default_factory=list)
    names: tuple[str, ...] = ()

    def intern(self, shape: Shape, member: Member) -> tuple[Shape, int]:
        """Takes an operator down."""
        self.entries.append((shape, member))
        return shape, len(self.entries) - 1

    def renew(
        self, intern: Intern, places: Sequence[Term], terms: Sequence[Term]
    ) -> tuple[Shape, int]:
        """Installs all with these terms at these places; the last one's shape and member."""
        term_at = dict(zip(places, terms, strict=False))
        made: list[tuple[Shape, int]] = []
        for i, (shape, member) in enumerate(self.entries):
            below = tuple(
                [
                    (made[at][0], edge)
                    for at, (_, edge) in zip(member.inputs, shape.inputs, strict=True)
                ]
            )
            if any(a is not b for (a, _), (b, _) in zip(below, shape.inputs, strict=True)):
                # an input may be of another generation than when it was recorded
                shape = replace(shape, inputs=below)
            inputs = tuple([made[at][1] for at in member.inputs])
            constants = tuple([None if t is None else term_at[t] for t in member.constants])
            interned, number = intern(shape, member.over(inputs, constants))
            # the topology's own is found faster
            self.entries[i] = (shape if interned.generation else interned, member)
            made.append((interned, number))
        return made[-1]
