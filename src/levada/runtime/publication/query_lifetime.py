"""Where a registered query stands in the plans: what its own results are, also when its name has
been registered again.

A query has one Emit member at a time, from the plan version that first has it (``since``) to the
first that has it no more (``until``). The rows of that member in epochs of these versions are its
results, whatever other queries of the name reported before or after. Its layout, which all its
Emits have, is kept here, so that readers need no plan of long ago.
"""

from __future__ import annotations

from dataclasses import dataclass

from levada.core.event_time import MAX
from levada.plan.execution.plan import QueryPlan
from levada.plan.execution.row_layout import Layout


@dataclass(eq=False, slots=True)
class Lifetime:
    """One registration. The loop begins and ends it between epochs, so readers find it settled when
    they see an epoch's results. ``may_be_over``: it was let in before, and its end may have passed
    since; then it says nothing, and leaves. Of others that is a mistake.
    """

    query: QueryPlan | None = None  # None: in no plan yet
    layout: Layout | None = None
    until: int = MAX
    may_be_over: bool = False

    def begin(self, query: QueryPlan, layout: Layout) -> None:
        """The query is in the plan."""
        self.layout, self.query = layout, query

    def switch(self, query: QueryPlan) -> None:
        """The query has another Emit from the next plan on."""
        self.query = query

    def end(self, version: int) -> None:
        """The query is in no plan from this version on."""
        self.until = min(self.until, version)

    @property
    def is_over(self) -> bool:
        """Whether all epochs that could have results of the query are published."""
        return self.until < MAX

    def has(self, version: int) -> bool:
        """Whether results made with this plan version can be the query's."""
        return self.query is not None and self.query.since <= version < self.until
