"""The streams of a topology: external ones, and those that queries make."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from levada.core.names import derived_by, removed_name
from levada.core.stream_facts import StreamFacts
from levada.plan.execution.plan import QueryPlan


class StreamNumbers:
    """The streams by number (``names``), their facts, and the query that makes a stream (``made``).

    A number stays in use when its stream is removed, since state refers to numbers.
    """

    def __init__(self, facts: Mapping[str, StreamFacts]) -> None:
        self.facts = dict(facts)
        self.names = tuple(self.facts)
        self.made: dict[str, str] = {}

    def stream_of(self, maker: QueryPlan) -> str:
        """Returns the stream that a query makes, which begins at the first call.

        A query that is removed and added again makes another stream, so old elements are not
        mistaken for new ones.
        """
        stream = f"{derived_by(maker.name)}{maker.since}"
        if stream not in self.made:
            self.made[stream] = maker.name
            self.facts[stream] = StreamFacts()
            self.names = (*self.names, stream)
        return stream

    def remove_makers(self, queries: Collection[str]) -> None:
        """Records that queries are removed. The streams that they made keep their numbers."""
        self.made = {s: maker for s, maker in self.made.items() if maker not in queries}

    def add(self, stream: str, facts: StreamFacts) -> None:
        """Adds an external stream after all existing ones."""
        assert stream not in self.facts, "of two streams of a name the first has left"
        self.facts[stream] = facts
        self.names = (*self.names, stream)

    def remove(self, stream: str) -> None:
        """Removes an external stream that no query reads. A later stream of its name has another
        number.
        """
        number = self.names.index(stream)
        del self.facts[stream]
        others = self.names[number + 1 :]
        self.names = (*self.names[:number], removed_name(number), *others)
