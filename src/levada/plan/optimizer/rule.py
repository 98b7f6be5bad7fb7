"""Defines a rule: a function from algebra to algebra with the same solutions.

A rule is a function in a file of its own in ``rules/``, and its name is the function's. It returns
the query itself, the same object, if it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from levada.core.frozen import frozen
from levada.plan.logical.nodes import Query
from levada.plan.logical.ontology_schema import Schema


@frozen
class Context:
    """The input of rules beside the query: ``schema`` defines entailment (None: no entailment)."""

    schema: Schema | None = None


@frozen
class Rule:
    """A rule. ``needed``: it decides the meaning of the query, so it cannot be switched off."""

    run: Callable[[Query, Context], Query]
    needed: bool = False

    @property
    def name(self) -> str:
        """The name that switches the rule off and that ``explain --steps`` shows."""
        return self.run.__name__
