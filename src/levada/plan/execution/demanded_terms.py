"""Collects the terms that relaxed patterns represent: the terms that the picks above them want.

Picks in full nodes take no new members (``PlanNode.is_full``). Their terms ``last`` from version to
version of the plan, with everything computed from them. The ``rest`` has the other terms.

Cost: for a new pick, linear in its terms; for all picks, once for each node that becomes full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Longs
from levada.core.rdf_terms import Term
from levada.plan.execution import steps as s
from levada.plan.execution.plan import At, Plan, PlanNode

Terms = Mapping[At, Mapping[tuple[Term, ...], None]]
"""The terms at the lifted positions of patterns, once for each triple of these."""


class DemandedTerms(NamedTuple):
    """Terms by pattern, each in one of the two mappings."""

    lasting: Terms
    rest: Terms

    @property
    def all_as_rest(self) -> DemandedTerms:
        """Returns the same terms, all of them as ``rest``."""
        merged = {at: {**terms, **self.rest.get(at, {})} for at, terms in self.lasting.items()}
        return DemandedTerms({}, {**self.rest, **merged})


NOTHING = DemandedTerms({}, {})


def collect_wanted_terms(plan: Plan) -> DemandedTerms:
    """Returns the terms that living picks want."""
    picks = [pick for node in plan.nodes.values() if (pick := node.as_step(s.Pick)) is not None]
    lasting = _terms_of_full_nodes(plan, [pick for pick in picks if pick.is_full])
    others = [pick for pick in picks if not pick.is_full] if lasting else picks
    rest: dict[At, dict[tuple[Term, ...], None]] = {}
    for pick in others:
        for at, terms in _iterate_terms(plan, pick, np.flatnonzero(pick.alive)):
            if terms not in lasting.get(at, ()):
                rest.setdefault(at, {})[terms] = None
    return DemandedTerms(lasting, rest)


def collect_new_terms(plan: Plan) -> DemandedTerms:
    """Returns the terms of picks that no epoch had before this version."""
    terms_by_member: dict[At, dict[tuple[Term, ...], None]] = {}
    for node in plan.nodes.values():
        if (pick := node.as_step(s.Pick)) is not None and (new := pick.alive & pick.fresh).any():
            for at, terms in _iterate_terms(plan, pick, np.flatnonzero(new)):
                terms_by_member.setdefault(at, {})[terms] = None
    return DemandedTerms({}, terms_by_member)


def terms_of_pick(plan: Plan, number: int, member: int) -> dict[At, tuple[tuple[Term, ...], ...]]:
    """Returns the terms that a pick wants of each pattern below it; a pattern may have several
    places.
    """
    pick = plan.nodes[number].as_step(s.Pick)
    assert pick is not None, "a pick"
    terms_by_member: dict[At, list[tuple[Term, ...]]] = {}
    for at, terms in _iterate_terms(plan, pick, np.array([member])):
        terms_by_member.setdefault(at, []).append(terms)
    return {at: tuple(each) for at, each in terms_by_member.items()}


def _terms_of_full_nodes(plan: Plan, full: Sequence[PlanNode[s.Pick]]) -> Terms:
    """Returns the terms that picks in full nodes want."""
    if not full:
        return {}
    reached = [
        tuple(
            [
                (at, pattern_members.tobytes())
                for at, pattern_members in _reach_patterns(plan, pick, np.flatnonzero(pick.alive))
            ]
        )
        for pick in full
    ]
    follows = tuple([(pick.members, each) for pick, each in zip(full, reached, strict=True)])
    return full[0].compute_once_at("terms", follows, lambda: _merge_terms(plan, full))


def _merge_terms(plan: Plan, picks: Sequence[PlanNode[s.Pick]]) -> Terms:
    terms_by_member: dict[At, dict[tuple[Term, ...], None]] = {}
    for pick in picks:
        for at, terms in _iterate_terms(plan, pick, np.flatnonzero(pick.alive)):
            terms_by_member.setdefault(at, {})[terms] = None
    return terms_by_member


def _iterate_terms(
    plan: Plan, pick: PlanNode[s.Pick], members: Longs
) -> Iterator[tuple[At, tuple[Term, ...]]]:
    """Yields the patterns below some members of a pick, each with the terms that a member wants."""
    ways = _params_by_way(pick.step).values()
    constants = list(map(pick.members.constants_at, members.tolist() if ways else ()))
    for params, (at, pattern_members) in zip(
        ways, _reach_patterns(plan, pick, members), strict=True
    ):
        for member, member_constants in zip(pattern_members.tolist(), constants, strict=True):
            terms = tuple(
                [term for param in params if (term := member_constants[param]) is not None]
            )
            assert len(terms) == len(params), "a pick names terms"
            yield (at, member), terms


def _reach_patterns(
    plan: Plan, pick: PlanNode[s.Pick], members: Longs
) -> Iterator[tuple[int, Longs]]:
    """Yields the node and the members of the pattern at the end of each way from these
    ``members``.
    """
    for way in _params_by_way(pick.step):
        node, node_members = plan.nodes[pick.id], members
        for i in way:
            node, node_members = _follow_input(plan, node, node_members, i)
            if isinstance(node.step, s.RelaxedStream | s.RelaxedStatic):
                node, node_members = _follow_input(plan, node, node_members, 0)
        yield node.id, node_members


def _follow_input(plan: Plan, node: PlanNode, members: Longs, i: int) -> tuple[PlanNode, Longs]:
    return plan.nodes[node.inputs[i]], node.members.inputs[i][members].astype(np.int64)


def _params_by_way(pick: s.Pick) -> dict[tuple[int, ...], list[int]]:
    """Returns the parameters of the terms that are wanted of the pattern at the end of each way.

    They are in the order of the pattern's positions, which ascend.
    """
    params_by_way: dict[tuple[int, ...], list[int]] = {}
    for key in pick.keys:
        if key.source:
            (param,) = key.params
            params_by_way.setdefault(key.source[:-1], []).append(param)
    return params_by_way
