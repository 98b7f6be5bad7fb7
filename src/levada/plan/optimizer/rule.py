"""What a rule is: algebra in, algebra out, with the same solutions.

A rule is a function of a file of its own in ``rules/``; its name is the function's. It gives the
query itself, the same object, where it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from levada.core.frozen import frozen
from levada.plan.logical.nodes import Query
from levada.plan.logical.ontology_schema import Schema


@frozen
class Context:
    """What rules know beside the query: ``schema`` is what entailment goes by (None: none)."""

    schema: Schema | None = None


@frozen
class Rule:
    """A rule. ``needed``: it says what the query means, and so cannot be switched off."""

    run: Callable[[Query, Context], Query]
    needed: bool = False

    @property
    def name(self) -> str:
        """What switches it off, and what ``explain --steps`` calls it."""
        return self.run.__name__
