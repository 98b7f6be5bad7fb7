"""The expiry of queries with an end, by the watermarks of their streams
(docs/semantics.md#queries-that-end).

A query is over once the watermarks of all its streams are beyond its end. All its reports are
published by then, and it is removed as an unregistered one is. A query whose stream others read
stays, silent, until they are gone. Cost: a look at the earliest end, in each epoch.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.core.event_time import MAX
from levada.engine.registry import Registry
from levada.errors import UsageError
from levada.runtime.publication.registered_query import Registered

MIN_KEPT_ENDS = 64  # entries of the heap below which removed queries stay in it


class QueryExpiry:
    """The ends of the queries of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._coming: list[Registered] = []  # queries that are in no plan yet
        self._ends: list[tuple[int, int, Registered]] = []
        self._numbers = count()
        self._seen, self._most = -1, MIN_KEPT_ENDS

    def end(self, last: Manifest) -> list[Registered]:
        """Removes the queries that are over after an epoch."""
        if last.epoch == self._seen or last.has_ended:
            return []
        self._seen = last.epoch
        self._take_new()
        over = self._take_expired(last)
        gone: list[Registered] = []
        for _ in range(len(over)):  # readers before their makers
            left = [query for query in over if not self._remove(query, gone)]
            if len(left) == len(over):
                break
            over = left
        for query in over:
            self._push(query)
        return gone

    def _take_new(self) -> None:
        coming, self._coming = self._coming + self._registry.expiring, []
        self._registry.expiring.clear()
        for query in coming:
            if not self._is_registered(query):
                continue
            if query.lifetime.query is None:
                self._coming.append(query)
            else:
                self._push(query)
        if len(self._ends) > 2 * self._most:  # drops queries that were removed before their ends
            self._ends = sorted(end for end in self._ends if self._is_registered(end[2]))
            self._most = max(len(self._ends), MIN_KEPT_ENDS)

    def _push(self, query: Registered) -> None:
        plan = query.lifetime.query
        if plan is not None:
            heappush(self._ends, (plan.until, next(self._numbers), query))

    def _take_expired(self, last: Manifest) -> list[Registered]:
        """Returns the queries whose streams have all passed the query's end."""
        farthest = max((s.watermark for s in last.streams.values()), default=0)
        passed: list[Registered] = []
        while self._ends and self._ends[0][0] < farthest:
            passed.append(heappop(self._ends)[2])
        expired = []
        for query in filter(self._is_registered, passed):
            plan = query.lifetime.query
            assert plan is not None, "it stood in a plan when it was pushed"
            watermarks = (last.streams.get(s, StreamRecord()).watermark for s in plan.streams)
            if plan.until < min(watermarks, default=MAX):
                expired.append(query)
            else:
                self._push(query)
        return expired

    def _is_registered(self, query: Registered) -> bool:
        """Returns whether the query is registered and not suspended; suspended queries stay in the
        status.
        """
        return (
            self._registry.lifetime_of(query.name) is query.lifetime and not query.lifetime.is_over
        )

    def _remove(self, query: Registered, gone: list[Registered]) -> bool:
        try:
            self._registry.remove(query.name)
        except UsageError:
            return False  # another query reads it
        gone.append(query)
        return True
