"""Plans a query on trial when it is registered: a query that cannot be planned must not stop the
engine that runs thousands of others.

The planner accepts every query, but it walks operators recursively, and hundreds of patterns of one
subject are a tree of that depth. So a large query is first planned on a separate thread, some calls
deeper than the engine would plan it, and the result is discarded. Small queries always pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from levada.core.event_time import MIN
from levada.core.size_thresholds import register
from levada.core.stream_facts import StreamFacts
from levada.errors import QueryError
from levada.plan.logical.nodes import Bgp, Node, Query
from levada.plan.logical.traversal import children

MAX_TRIAL_SIZE = register(f"{__name__}.MAX_TRIAL_SIZE", 40)  # operators and patterns
_MARGIN = 60  # calls


def check_plan(query: Query, streams: Mapping[str, StreamFacts], text: str) -> None:
    """Raises ``QueryError`` for a query that is too large to plan.

    Streams without facts are those that queries make.
    """
    if size(query.pattern) <= MAX_TRIAL_SIZE:
        return
    facts = {w.stream: streams.get(w.stream, StreamFacts()) for w in query.windows}
    failed: list[Exception] = []

    def plan() -> None:
        try:
            run_deeper(lambda: _plan(query, facts))
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=plan, name="levada trial")
    thread.start()
    thread.join()
    if failed and isinstance(failed[0], RecursionError):
        raise too_large(text) from failed[0]
    if failed:
        raise failed[0]


def size(pattern: Node) -> int:
    """Returns the number of operators and patterns of a query."""
    waiting, count = [pattern], 0
    while waiting:
        node = waiting.pop()
        count += max(len(node.patterns), 1) if isinstance(node, Bgp) else 1
        waiting += children(node)
    return count


def _plan(query: Query, facts: Mapping[str, StreamFacts]) -> None:
    # imported here: small queries, nearly all, do not load the code that seals plans
    from levada.plan.encoding.plan_codec import encode_plan
    from levada.plan.topology.catalog_file import encode_catalog
    from levada.plan.topology.topology import Topology

    topology = Topology(facts)
    topology.add("", query, MIN)
    encode_plan(topology.seal())
    encode_catalog(topology, {})


def too_large(text: str) -> QueryError:
    """Returns the error for a query that is too large to plan."""
    hint = (
        "Join fewer patterns in one query: the rest can be a query that makes a stream, or a "
        "sub-query."
    )
    return QueryError("The query is too large to be planned.", text=text, hint=hint)


def run_deeper(work: Callable[[], None], calls: int = _MARGIN) -> None:
    """Calls ``work`` this many calls deeper: a query that can be planned there can be planned at a
    start.
    """
    if calls:
        run_deeper(work, calls - 1)
    else:
        work()
