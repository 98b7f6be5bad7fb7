"""Planning on trial, where a query is registered: what cannot be planned must not stop the engine
that runs a thousand others.

The planner refuses nothing by itself, but it walks operators by recursion, and hundreds of patterns
of one subject are one tree as deep as they are many. So a large query is planned once for nothing,
by a thread of its own, a little deeper in calls than the engine would do it. Small ones always
pass.
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

LARGE = register(f"{__name__}.LARGE", 40)  # operators and patterns
_MARGIN = 60  # calls


def check_plan(query: Query, streams: Mapping[str, StreamFacts], text: str) -> None:
    """Raises ``QueryError`` for a query that is too large to be planned. Streams without facts are
    what queries make.
    """
    if size(query.pattern) <= LARGE:
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
    """The operators and patterns of a query."""
    waiting, count = [pattern], 0
    while waiting:
        node = waiting.pop()
        count += max(len(node.patterns), 1) if isinstance(node, Bgp) else 1
        waiting += children(node)
    return count


def _plan(query: Query, facts: Mapping[str, StreamFacts]) -> None:
    # here: small queries, which nearly all are, are looked at without what seals plans
    from levada.plan.encoding.plan_codec import encode_plan
    from levada.plan.topology.catalog_file import encode_catalog
    from levada.plan.topology.topology import Topology

    topology = Topology(facts)
    topology.add("", query, MIN)
    encode_plan(topology.seal())
    encode_catalog(topology, {})


def too_large(text: str) -> QueryError:
    """The error for a query that is too large to be planned."""
    hint = (
        "Join fewer patterns in one query: the rest can be a query that makes a stream, or a "
        "sub-query."
    )
    return QueryError("The query is too large to be planned.", text=text, hint=hint)


def run_deeper(work: Callable[[], None], calls: int = _MARGIN) -> None:
    """Does work so many calls deeper: what can be planned there can be planned at a start."""
    if calls:
        run_deeper(work, calls - 1)
    else:
        work()
