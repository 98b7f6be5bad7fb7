"""Rules on the algebra, run in one wrapper (design, section 7): algebra -> algebra, each rule a
function in ``rules/``.

The order of joins, filters' places and exchanges are decided when the algebra is lowered
(``plan/lowering/lower``), where the facts about streams are known; rules here simplify what needs
no such facts. A rule can be disabled by name, which tests use to show that it changes no result.
"""

from __future__ import annotations

from collections.abc import Callable

from levada.algebra.nodes import Query
from levada.optimizer.rules.drop_units import drop_units
from levada.optimizer.rules.extend_by_values import extend_by_values
from levada.optimizer.rules.merge_slices import merge_slices
from levada.optimizer.rules.split_filters import split_filters

Rule = Callable[[Query], Query]
RULES: tuple[Rule, ...] = (drop_units, merge_slices, split_filters, extend_by_values)


def optimize(query: Query, *, disabled: frozenset[str] = frozenset()) -> Query:
    """The query after all rules but those disabled by name."""
    for rule in RULES:
        if rule.__name__ not in disabled:
            query = rule(query)
    return query
