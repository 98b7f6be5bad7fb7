"""The shared operators of queries for a status: the topmost of a query's operators that other
queries have, too, and the costs of relaxed joins. All operators below a shared one are shared.

Cost: one walk over the operators of each query. So beyond ``MAX_QUERIES`` queries the status omits
them (``explain --sharing`` lists them by operators).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from levada.core.frozen import frozen
from levada.plan.execution.joins import MADE
from levada.plan.execution.plan import Plan
from levada.plan.execution.query_charges import members_below
from levada.plan.sharing.unprofitable_joins import wasted_work_ratio

MAX_QUERIES = 10_000
"""The most queries of a plan with this status."""
At = tuple[int, int]


@frozen
class ShareStatus:
    """An operator of several queries. ``queries``: their number."""

    operator: str
    queries: int


def shares(plan: Plan) -> dict[str, tuple[ShareStatus, ...]]:
    """Returns the shared operators of each query, by name, without queries that share nothing."""
    if not 1 < len(plan.queries) <= MAX_QUERIES:
        return {}
    roots = {query.name: (query.node, query.member) for query in plan.queries.values()}
    users = Counter(at for root in roots.values() for at in members_below(plan, root))
    shares_by_query = {name: tuple(_topmost(plan, root, users)) for name, root in roots.items()}
    return {name: shared for name, shared in shares_by_query.items() if shared}


def _topmost(plan: Plan, root: At, users: Counter[At]) -> Iterator[ShareStatus]:
    seen, waiting = set[At](), [root]
    while waiting:
        at = waiting.pop(0)
        if at in seen:
            continue
        seen.add(at)
        if users[at] == 1:
            waiting += _inputs(plan, at)
            continue
        node, member = at
        name = f"{type(plan.nodes[node].step).__name__} {node}"
        yield ShareStatus(name + (f" ({member})" if member else ""), users[at])


def _inputs(plan: Plan, at: At) -> Iterator[At]:
    node = plan.nodes[at[0]]
    return zip(node.inputs, node.members[at[1]].inputs, strict=True)


@frozen
class RelaxedStatus:
    """A relaxed join from which queries pick rows, in recent epochs. ``input_rows``: input rows.
    ``joined_pairs``: joined pairs. ``needed_pairs``: pairs that some query needs. ``picked_rows``:
    rows that queries got. ``work_ratio``: its work divided by the least work of separate joins. If
    that is large, new queries get separate joins.
    """

    join: str
    input_rows: int
    joined_pairs: int
    needed_pairs: int
    picked_rows: int
    work_ratio: float


def relaxed_joins(met: Mapping[str, Sequence[int]]) -> Iterator[RelaxedStatus]:
    """Yields the counts of each relaxed join, by node and member.

    >>> [one.join for one in relaxed_joins({"3 0": [600, 0, 0, 0], "7 0": [100, 900, 30, 100]})]
    ['Join 7']
    """
    for at, counts in met.items():
        if not counts[MADE]:
            continue  # only joins with picks count pairs
        node, member = at.split()
        name = f"Join {node}" + (f" ({member})" if member != "0" else "")
        input_rows, made, wanted, picked = counts
        work = round(wasted_work_ratio(counts), 2)
        yield RelaxedStatus(name, input_rows, made, wanted, picked, work)
