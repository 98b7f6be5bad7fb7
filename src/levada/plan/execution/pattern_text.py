"""Prints triple patterns as text, independent of variable names, for counts and for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from levada.core.rdf_terms import Term
from levada.core.size_thresholds import register
from levada.plan.execution import steps as s
from levada.plan.execution.demanded_terms import terms_of_pick
from levada.plan.execution.plan import Plan

# matches are counted for up to this many patterns of a stream; beyond, counting is too expensive
MOST_COUNTED = register(f"{__name__}.MOST_COUNTED", 256)


def pattern_text(constants: Sequence[Term | str | None], positions: Sequence[int]) -> str:
    """Returns a pattern's text; ``positions`` are slots, equal for a repeated variable.

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
    """Returns the text of a pattern over entailed triples.

    >>> entailed_text((None, "<a:p>", None), (0, -1, 1))
    '?a <a:p> ?b, entailed'
    """
    return pattern_text(constants, positions) + ", entailed"


Given = Mapping[tuple[int, int], tuple[tuple[Term, ...], ...]]
"""The terms of relaxed patterns, by node and member."""
_NONE: Given = {}


def patterns_read(
    plan: Plan, number: int, member: int, lifted_terms: Given = _NONE
) -> Iterator[tuple[str, str]]:
    """Yields (stream, pattern) of everything that a query reads of streams; "" for rows of tuple
    streams.

    A pattern over a count window reads its stream through the window, which has all triples.
    """
    node = plan.nodes[number]
    node_member = node.members[member]
    match node.step:
        case s.Match(positions, _, False, ()):
            yield node_member.streams[0], pattern_text(node_member.constants, positions)
        case s.Match(positions, _, False, lifted):
            for terms in lifted_terms.get((number, member), ()):
                constants = list(node_member.constants)
                for at, term in zip(lifted, terms, strict=True):
                    constants[at] = term
                yield node_member.streams[0], pattern_text(constants, positions)
        case s.Entailed(positions=positions, static=False):
            yield node_member.streams[0], entailed_text(node_member.constants, positions)
        case s.Star(legs, _):
            for leg, positions in enumerate(legs):
                yield (
                    node_member.streams[0],
                    pattern_text(node_member.constants[3 * leg : 3 * leg + 3], positions),
                )
        case s.Scan():
            yield node_member.streams[0], ""
        case s.Select(positions, _):
            for stream, _ in patterns_read(plan, node.inputs[0], node_member.inputs[0]):
                yield stream, pattern_text(node_member.constants, positions[:3])
        case _:
            lifted_terms = _with_picked_terms(plan, number, member, lifted_terms)
            for below, at in zip(node.inputs, node_member.inputs, strict=True):
                yield from patterns_read(plan, below, at, lifted_terms)


def _with_picked_terms(plan: Plan, number: int, member: int, lifted_terms: Given) -> Given:
    """Adds the terms that a pick wants of relaxed patterns below it."""
    if isinstance(plan.nodes[number].step, s.Pick):
        return {**lifted_terms, **terms_of_pick(plan, number, member)}
    return lifted_terms


def starving_patterns(
    plan: Plan,
    number: int,
    member: int,
    matched: Callable[[str, str], int | None],
    lifted_terms: Given = _NONE,
) -> tuple[tuple[str, str], ...]:
    """Returns the (stream, pattern) pairs without matches that keep an operator without rows.

    (): it may have rows. ``matched``: the number of triples that a pattern has matched so far. The
    step defines the inputs that an operator requires.
    """
    node = plan.nodes[number]
    if isinstance(node.step, s.Match | s.Entailed | s.Star):
        read = patterns_read(plan, number, member, lifted_terms)
        return tuple(pattern for pattern in read if matched(*pattern) == 0)[:1]
    below = node.members[member].inputs
    lifted_terms = _with_picked_terms(plan, number, member, lifted_terms)
    for inputs in node.step.starving(len(below)):
        sides = [
            starving_patterns(plan, node.inputs[i], below[i], matched, lifted_terms) for i in inputs
        ]
        if all(sides):
            return tuple(dict.fromkeys(pattern for side in sides for pattern in side))
    return ()
