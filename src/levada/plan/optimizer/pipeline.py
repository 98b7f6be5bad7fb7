"""Runs the optimizer's rules, algebra to algebra, in their order.

Entailment comes first, since it decides the meaning of a query. The other rules normalize the tree:
they give equal windows one name, drop empty groups, flatten conjunctions, replace single rows by
constants, and push filters to where their variables are bound. They put commutative parts and
windows into one order, merge ORDER with LIMIT, mark static parts, and look up the last rows of a
key. Join orders and exchanges are decided later, when the algebra is lowered (``plan.lowering``)
and the facts about streams are known.

One wrapper runs each rule. It skips a rule that is switched off, verifies its output (``verify``),
and records input, output and time on request (``trace_rules``). Every rule except entailment can be
switched off (``disable_rules``). The plan then differs, but its results are the same; tests rely
on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace

from levada.core.frozen import frozen
from levada.plan.logical.nodes import Query
from levada.plan.optimizer.rule import Context, Rule, verify
from levada.plan.optimizer.rules.canonicalize import canonical_order, order_windows
from levada.plan.optimizer.rules.deduplicate_windows import equal_windows
from levada.plan.optimizer.rules.entailment import entail_patterns
from levada.plan.optimizer.rules.filter_pushdown import push_filters
from levada.plan.optimizer.rules.flatten_joins import flatten_joins
from levada.plan.optimizer.rules.hoist_static import hoist_static
from levada.plan.optimizer.rules.inline_single_row_values import one_row_values
from levada.plan.optimizer.rules.last_row_lookup import recent_rows
from levada.plan.optimizer.rules.remove_empty_groups import drop_units
from levada.plan.optimizer.rules.top_n import merge_slices

RULES: tuple[Rule, ...] = (
    Rule(entail_patterns, needed=True),
    Rule(equal_windows),
    Rule(drop_units),
    Rule(flatten_joins),
    Rule(one_row_values),
    Rule(push_filters),
    Rule(canonical_order),
    Rule(order_windows),
    Rule(merge_slices),
    Rule(hoist_static),
    Rule(recent_rows),
)
OPTIONAL = frozenset(rule.name for rule in RULES if not rule.needed)
"""The names of the rules that can be switched off."""


@frozen
class Step:
    """A rule as it ran: how long (s), and the query before and after; the same if unchanged."""

    rule: str
    seconds: float
    before: Query
    after: Query


@frozen
class _Mode:
    """The settings of the optimizer in this context."""

    off: frozenset[str] = frozenset()
    clock: Callable[[], float] | None = None
    steps: list[Step] = field(default_factory=list)


_PLAIN = _Mode()
_MODE: ContextVar[_Mode] = ContextVar("how queries are optimized")


_NOTHING = Context()


def optimize(query: Query, context: Context = _NOTHING) -> Query:
    """Applies all rules that are not switched off."""
    mode = _MODE.get(_PLAIN)
    for rule in RULES:
        if rule.name not in mode.off:
            query = _run(rule, query, context, mode)
    return query


def _run(rule: Rule, query: Query, context: Context, mode: _Mode) -> Query:
    """Runs a rule, verifies its output, and records the step on request."""
    began = mode.clock() if mode.clock else 0.0
    after = rule.run(query, context)
    if mode.clock:
        mode.steps.append(Step(rule.name, mode.clock() - began, query, after))
    verify(rule.name, query, after)
    return after


@contextmanager
def disable_rules(*names: str) -> Iterator[None]:
    """Switches these rules off within the context.

    >>> with disable_rules("push_filters"):
    ...     pass
    """
    assert OPTIONAL.issuperset(names), f"rules that can be switched off are {sorted(OPTIONAL)}"
    mode = _MODE.get(_PLAIN)
    token = _MODE.set(replace(mode, off=mode.off.union(names)))
    try:
        yield
    finally:
        _MODE.reset(token)


@contextmanager
def trace_rules(clock: Callable[[], float]) -> Iterator[list[Step]]:
    """Records each step within the context, in the returned list; ``clock`` returns seconds."""
    steps: list[Step] = []
    token = _MODE.set(replace(_MODE.get(_PLAIN), clock=clock, steps=steps))
    try:
        yield steps
    finally:
        _MODE.reset(token)
