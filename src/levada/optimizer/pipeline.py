"""Rules on the algebra, run in one wrapper (design, section 7): algebra -> algebra, each rule a function in ``rules/``.

The order of joins, filters' places and exchanges are decided when the algebra is lowered (``plan/lower``), where the facts
about streams are known; rules here simplify what needs no such facts.
"""

from __future__ import annotations

from collections.abc import Callable

from levada.algebra.nodes import Query

Rule = Callable[[Query], Query]
RULES: tuple[Rule, ...] = ()


def optimize(query: Query, *, disabled: frozenset[str] = frozenset()) -> Query:
    """The query after all rules but those disabled by name."""
    for rule in RULES:
        if rule.__name__ not in disabled:
            query = rule(query)
    return query
