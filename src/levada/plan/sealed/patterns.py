"""Triple patterns as text, the same for the same pattern whatever its variables are called: for
counts and for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from levada.model.term import Term
from levada.plan.sealed import steps as s
from levada.plan.sealed.kinds import Semi
from levada.plan.sealed.plan import Plan

MOST_COUNTED = 256  # patterns of a stream whose matches are counted; with more, counting would cost more than it tells


def pattern_text(constants: Sequence[Term | str | None], positions: Sequence[int]) -> str:
    """A pattern's text; ``positions`` are slots, equal where a variable stands twice.

    >>> pattern_text((None, "<a:p>", None), (3, -1, 3))
    '?a <a:p> ?a'
    """
    letters: dict[int, str] = {}
    words = []
    for constant, slot in zip(constants, positions, strict=True):
        words.append(
            str(constant)
            if constant is not None
            else letters.setdefault(slot, "?" + "abc"[len(letters)])
        )
    return " ".join(words)


def entailed_text(constants: Sequence[Term | str | None], positions: Sequence[int]) -> str:
    """The text of a pattern over entailed triples.

    >>> entailed_text((None, "<a:p>", None), (0, -1, 1))
    '?a <a:p> ?b, entailed'
    """
    return pattern_text(constants, positions) + ", entailed"


def patterns_read(plan: Plan, number: int, member: int) -> Iterator[tuple[str, str]]:
    """(stream, pattern) of everything that a query reads of streams; "" for the rows of a tuple
    stream.

    A pattern over a count window sees its stream through the window, of which all triples are a
    part.
    """
    node = plan.nodes[number]
    own = node.members[member]
    match node.step:
        case s.Match(positions, _, False):
            yield own.streams[0], pattern_text(own.constants, positions)
        case s.Entailed(positions=positions, static=False):
            yield own.streams[0], entailed_text(own.constants, positions)
        case s.Star(legs, _):
            for leg, positions in enumerate(legs):
                yield own.streams[0], pattern_text(own.constants[3 * leg : 3 * leg + 3], positions)
        case s.Scan():
            yield own.streams[0], ""
        case s.Select(positions, _):
            for stream, _ in patterns_read(plan, node.inputs[0], own.inputs[0]):
                yield stream, pattern_text(own.constants, positions[:3])
        case _:
            for below, at in zip(node.inputs, own.inputs, strict=True):
                yield from patterns_read(plan, below, at)


def starved(
    plan: Plan, number: int, member: int, matched: Callable[[str, str], int | None]
) -> tuple[tuple[str, str], ...]:
    """The patterns, as (stream, pattern), for want of whose matches an operator can have no row; ()
    if it may have some.

    ``matched``: how many triples a pattern has had so far. The optional side of an operator keeps
    no row back, a union only where all of its sides are starved, and an aggregate without GROUP BY
    has a row in any case.
    """
    node = plan.nodes[number]
    inputs = list(zip(node.inputs, node.members[member].inputs, strict=True))
    match node.step:
        case s.Match() | s.Entailed() | s.Star():
            return tuple(
                read for read in patterns_read(plan, number, member) if matched(*read) == 0
            )[:1]
        case s.Union():
            sides = [starved(plan, *side, matched) for side in inputs]
            return (
                tuple(dict.fromkeys(read for side in sides for read in side)) if all(sides) else ()
            )
        case s.RGroup(keys=()) | s.Panes(keys=()) | s.Running(keys=()):
            return ()
        case s.RLeft() | s.RExcept() | s.RSemi(test=Semi.NOT_EXISTS | Semi.MINUS | Semi.MARK):
            inputs = inputs[:1]
        case s.Closure(seed=seed) if len(inputs) > 1 + (seed is not None):
            return ()  # a path of no step connects what no step does
    found = (starved(plan, *side, matched) for side in inputs)
    return next((side for side in found if side), ())
