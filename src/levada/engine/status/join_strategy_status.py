"""The forms of joins whose form is chosen during the run, for the status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.plan.execution.joins import AT_ONCE, CHANGED, IN_TURN, PAIRWISE, PARTITIONS
from levada.plan.execution.plan import Plan, queries_of_member


@frozen
class FormStatus:
    """A join of three and more parts in these ``queries``. ``strategy``: its current form.
    ``changes``: how often that has changed. ``one_step_cpu_us``, ``two_at_a_time_cpu_us``: the
    costs of both forms in an epoch, of all partitions with work (CPU us, estimated from a sample of
    the rows).
    """

    join: str
    queries: tuple[str, ...]
    strategy: str
    changes: int
    one_step_cpu_us: int
    two_at_a_time_cpu_us: int


def forms(figures_by_node: Mapping[str, Sequence[int]], plan: Plan) -> Iterator[FormStatus]:
    """Yields the latest figures of each join, by its node."""
    for node, figures in figures_by_node.items():
        if int(node) in plan.nodes:
            members = range(len(plan.nodes[int(node)].members))
            names = (
                name for member in members for name in queries_of_member(plan, int(node), member)
            )
            yield FormStatus(
                f"Join {node}", tuple(dict.fromkeys(names)), form_of(figures), figures[CHANGED],
                figures[AT_ONCE], figures[IN_TURN],
            )  # fmt: skip


def form_of(figures: Sequence[int]) -> str:
    """Describes the form of a join.

    >>> form_of([2, 1, 1, 900, 400])
    'two at a time in 1 of 2 partitions'
    """
    partitions, pairwise = figures[PARTITIONS], figures[PAIRWISE]
    if pairwise in (0, partitions):
        return "two at a time" if pairwise else "one step"
    return f"two at a time in {pairwise} of {count_text(partitions, 'partition')}"
