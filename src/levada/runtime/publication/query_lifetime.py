"""Tracks a registered query in the plans: which results are its own, also if its name has been
registered again.

A query has one Emit member at a time, from the plan version that first has it (``since``) to the
first version without it (``until``). The rows of that member in epochs of these versions are its
results, whatever other queries of the name reported before or after. The lifetime keeps the layout,
which all its Emits share, so that readers need no old plans.
"""

from __future__ import annotations

from dataclasses import dataclass

from levada.core.event_time import MAX
from levada.plan.execution.plan import QueryPlan
from levada.plan.execution.row_layout import Layout


@dataclass(eq=False, slots=True)
class Lifetime:
    """The lifetime of one registration. The loop begins and ends it between epochs, so readers find
    it final when they see an epoch's results. ``may_be_over``: the query was accepted before, and
    its end may have passed since; then it reports nothing and is removed. For other queries a past
    end is a mistake.
    """

    query: QueryPlan | None = None  # None: in no plan yet
    layout: Layout | None = None
    until: int = MAX
    may_be_over: bool = False

    def begin(self, query: QueryPlan, layout: Layout) -> None:
        """Notes that the query is in the plan."""
        self.layout, self.query = layout, query

    def switch(self, query: QueryPlan) -> None:
        """Notes that the query has another Emit from the next plan on."""
        self.query = query

    def end(self, version: int) -> None:
        """Notes that the query is in no plan from this version on."""
        self.until = min(self.until, version)

    @property
    def is_over(self) -> bool:
        """Whether all epochs that could have results of the query are published."""
        return self.until < MAX

    def has(self, version: int) -> bool:
        """Whether results of this plan version can belong to the query."""
        return self.query is not None and self.query.since <= version < self.until
