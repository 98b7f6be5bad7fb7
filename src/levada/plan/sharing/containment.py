"""The use of a running join for queries whose rows are contained in it (STREAMREUSE, containment:
the running join with a compensation on top).

    q1   ?x :p ?v . ?x :q ?z  FILTER(?v > 5)  over 10 s    leads a family
    q2   .. FILTER(?v > 7)  over 5 s                       belongs to it: a pick of q1's join
    q3   .. FILTER(?v > 3)                                 does not, and leads a family of its own

A family is a block (``share_relaxed_joins``) that is separate from all other equal ones, by the
name of the query that leads it. Its join is relaxed, but only to the demand of its leader, so
running operators get no more rows when a query is added. Containment is decided by terms, bounds
of numbers and lengths of windows. If these are not comparable, a query leads a family. In any case
the pick returns exactly the rows of the query's own join.

Cost of a query: linear in its operators, and in the families of its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from levada.core.event_time import Window
from levada.core.expressions import Function
from levada.core.rdf_terms import XSD, Literal, Term
from levada.plan.binding.installer import Installer
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sharing.parameterize import is_time_join
from levada.plan.sharing.share_equal_operators import Key
from levada.plan.sharing.share_relaxed_joins import Block, blocks, replace_operators

_BELOW = (Function.LESS, Function.LESS_EQUAL)
_ABOVE = (Function.GREATER, Function.GREATER_EQUAL)
_EXACT = frozenset(XSD + name for name in ("integer", "decimal", "int", "long", "short", "byte"))


@dataclass(slots=True)
class _Family:
    """The block of the leader, and the number of blocks that read it."""

    block: Block
    users: int = 0


@dataclass(slots=True)
class Families:
    """The families of all queries."""

    _alike: dict[Key, dict[str, _Family]] = field(default_factory=dict)
    _of: dict[str, list[tuple[Key, str]]] = field(default_factory=dict)

    def replace_blocks(self, name: str, installer: Installer, root: Op) -> Op:
        """Returns an added query with each of its blocks as a pick of its family's."""
        by: dict[int, Op] = {}
        for block in blocks(root, installer.timing.member_of_rows, static=False):
            if not is_time_join(block.join):
                continue
            key = installer.signature(block.relaxed)
            alike = self._alike.setdefault(key, {})
            leader = next((n for n, f in alike.items() if contains(f.block, block)), "")
            if not leader:
                leader = name
                while leader in alike:  # the name of a removed query whose family has other members
                    leader += "'"
                alike[leader] = _Family(block)
            alike[leader].users += 1
            self._of.setdefault(name, []).append((key, leader))
            contained_block = replace(block, relaxed=_mark_family(block.relaxed, leader))
            by[id(block.join)] = contained_block.pick()
        return replace_operators(root, by, {}) if by else root

    def forget(self, name: str) -> None:
        """Removes a query; a family ends with its last reader."""
        for key, leader in self._of.pop(name, ()):
            family = self._alike[key][leader]
            family.users -= 1
            if not family.users:
                del self._alike[key][leader]
                if not self._alike[key]:
                    del self._alike[key]


def _mark_family(op: Op, leader: str) -> Op:
    """Returns a relaxed join whose joins belong to this family alone."""
    inputs = tuple([_mark_family(child, leader) for child in op.inputs])
    spec = op.spec
    if isinstance(spec, p.Join) and spec.relaxed:
        spec = replace(spec, family=leader)
    return replace(op, spec=spec, inputs=inputs)


def contains(whole: Block, part: Block) -> bool:
    """Whether the rows of a block are certainly among those of another block of the same form."""
    wider, narrower = whole.wants, part.wants
    return (
        all(
            any(other == at and {*some} <= {*terms} for other, some in narrower.terms)
            for at, terms in wider.terms
        )
        and all(
            any(at == other and _implies(test, bound) for at, *test in narrower.tests)
            for other, *bound in wider.tests
        )
        and {*wider.rest} <= {*narrower.rest}
        and all(map(_covers, wider.windows, narrower.windows))
    )


def _implies(comparison: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether one comparison of a variable certainly implies another.

    >>> five, seven = (Literal(n, XSD + "integer") for n in "57")
    >>> above, least = Function.GREATER, Function.GREATER_EQUAL
    >>> _implies((above, seven), (above, five)), _implies((above, five), (above, seven))
    (True, False)
    >>> _implies((least, five), (above, five)), _implies((Function.EQUAL, seven), (above, five))
    (False, True)
    """
    if comparison == other:
        return True
    (function, term, *_), (wider, bound, *_) = comparison, other
    a, b = _number(term), _number(bound)
    if a is None or b is None:
        return False
    for side, beyond in ((_BELOW, a < b), (_ABOVE, a > b)):
        if wider in side and (function in side or function is Function.EQUAL):
            return beyond or (a == b and (wider is side[1] or function is side[0]))
    return False


def _number(term: Term) -> Decimal | None:
    """Returns the value of an exact number."""
    if not isinstance(term, Literal) or term.datatype not in _EXACT:
        return None
    try:
        return Decimal(term.lexical)
    except InvalidOperation:
        return None


def _covers(whole: Window, part: Window) -> bool:
    """Whether a window covers another one: equal, or longer at the same instants."""
    return part.range <= whole.range and part.to >= whole.to and (
        replace(part, range=whole.range, to=whole.to) == whole
    )  # fmt: skip
