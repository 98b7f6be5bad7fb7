"""Records the installed operators of a tree, to install them again with other terms.

Shapes stay, only constants differ. One pattern over the merge of two streams and static data is
eleven operators, and a query has a dozen such patterns. Their shapes follow from the pattern's form
and from its reads, not from its names and terms. So a second pattern of a form costs its members,
not its planning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from levada.core.rdf_terms import Term
from levada.plan.execution.shapes import Member, Shape

Intern = Callable[[Shape, Member], tuple[Shape, int]]


@dataclass(slots=True)
class Template:
    """The operators of a tree in the order of installation; members refer to inputs by this order.

    ``names``: the names of the last operator's slots.
    """

    entries: list[tuple[Shape, Member]] = field(default_factory=list)
    names: tuple[str, ...] = ()

    def intern(self, shape: Shape, member: Member) -> tuple[Shape, int]:
        """Records an operator."""
        self.entries.append((shape, member))
        return shape, len(self.entries) - 1

    def renew(
        self, intern: Intern, places: Sequence[Term], terms: Sequence[Term]
    ) -> tuple[Shape, int]:
        """Installs all operators with these terms; returns the last one's shape and member."""
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
                # an input may have another generation than the recorded one
                shape = replace(shape, inputs=below)
            inputs = tuple([made[at][1] for at in member.inputs])
            constants = tuple([None if t is None else term_at[t] for t in member.constants])
            interned, number = intern(shape, member.with_inputs(inputs, constants))
            # the topology's own shape compares faster
            self.entries[i] = (shape if interned.generation else interned, member)
            made.append((interned, number))
        return made[-1]
