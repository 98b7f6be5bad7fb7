"""Rates, widths and selectivities: what an operator makes a second, told from what is known of its
streams (STREAMREUSE, section 2.1: "estimated from historical observations").

Of a stream: rows a second, bytes of each attribute, and how its values are spread. Of an operator
what was measured counts where there is any, with older measurements fading; else it follows from
its parts: conditions on different attributes are independent, equal attributes meet as often as the
larger number of different values says, a condition of another form lets a third through (System R).

A join's rate is that of *new* rows: each arrival meets what the other windows hold. Windows that
end before the next report are only seen as far as they reach back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from bench.papers.streamreuse.model.conditions import Where
from bench.papers.streamreuse.model.descriptor import Descriptor, source_of, stream_of
from bench.papers.streamreuse.model.value_intervals import Cut, Spans, points
from levada.core.frozen import frozen
from levada.errors import UsageError, near

OTHER = 1 / 3
"""What a condition of another form lets through."""
TIME_BYTES = 8
"""A time for each source stands beside a row, for compensations."""
FADING = 0.9
"""What an earlier measurement still counts for, each time that a new one comes."""


@frozen
class Spread:
    """How an attribute's values are spread: over ``distinct`` equally frequent ones, or evenly from
    ``low`` to ``high``; ``shares`` of those of which it is known. ``bytes`` of a value.
    """

    distinct: int
    bytes: int = 8
    low: float = 0.0
    high: float = 0.0
    shares: Mapping[str | float, float] = field(default_factory=dict)

    def share(self, found: Spans) -> float:
        """The part of the rows whose value is in a set.

        >>> from bench.papers.streamreuse.model.value_intervals import between, values
        >>> Spread(20).share(values("DL", "CO")), Spread(100, low=0, high=10).share(between(5))
        (0.1, 0.5)
        """
        single = points(found)
        if single is not None:
            return min(1.0, sum(self.shares.get(v, 1 / self.distinct) for v in single))
        if self.high <= self.low:
            return OTHER
        return min(1.0, sum(self._to(high) - self._to(low) for low, high in found.parts))

    def _to(self, cut: Cut) -> float:
        if len(cut) == 1:
            return 1.0 if cut[0] else 0.0
        assert not cut[1], "what is spread from low to high is numbers"
        part = (float(cut[2]) - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, part))


@frozen
class StreamStatistics:
    """Rows a second, and the spread of each attribute."""

    rate: float
    attributes: Mapping[str, Spread]


class Statistics:
    """What is known of streams and of operators."""

    def __init__(self, streams: Mapping[str, StreamStatistics]) -> None:
        self._streams = streams
        self._known: dict[Descriptor, tuple[float, float]] = {}
        self._measured: dict[Descriptor, tuple[float, float]] = {}

    def check(self, wanted: Descriptor) -> None:
        """All streams and attributes are there. Raises ``UsageError``."""
        for source in wanted.sources:
            stream = stream_of(source)
            if stream not in self._streams:
                raise UsageError(f"There is no stream {stream}.", hint=near(stream, self._streams))
        arguments = frozenset(a for _, a in wanted.aggregates)
        named = wanted.columns | wanted.where.named() | (wanted.group or frozenset()) | arguments
        for attribute in sorted(named.union(*wanted.joins)):
            name = attribute.partition(".")[2]
            if source_of(attribute) not in wanted.sources:
                raise UsageError(f"{attribute} is of no stream that the query reads.")
            known = self._streams[stream_of(source_of(attribute))].attributes
            if name not in known:
                raise UsageError(f"There is no attribute {attribute}.", hint=near(name, known))

    def observe(self, operator: Descriptor, rows: float, seconds: float) -> None:
        """An operator has made ``rows`` in ``seconds``."""
        before = self._measured.get(operator, (0.0, 0.0))
        self._measured[operator] = rows + FADING * before[0], seconds + FADING * before[1]
        self._known.pop(operator, None)

    def rate(self, operator: Descriptor) -> float:
        """Rows a second that an operator sends out."""
        return self._both(operator)[0]

    def bytes(self, operator: Descriptor) -> float:
        """Bytes a second that an operator sends out."""
        rate, width = self._both(operator)
        return rate * width

    def taken(self, source: str) -> float:
        """Rows a second of a stream."""
        return self._streams[stream_of(source)].rate

    def _both(self, operator: Descriptor) -> tuple[float, float]:
        if operator not in self._known:
            if operator in self._measured:
                rows, seconds = self._measured[operator]
                rate = rows / seconds
            else:
                rate = self._estimated(operator)
            self._known[operator] = rate, self._width(operator)
        return self._known[operator]

    def _estimated(self, operator: Descriptor) -> float:
        share = self._share(operator.where)
        if len(operator.sources) == 1 and operator.group is None:
            return self.taken(operator.sources[0]) * share
        rates = [self.taken(source) for source in operator.sources]
        seconds = [ms / 1000 for ms in operator.windows.ranges]
        met = self._met(operator)
        held = math.prod(r * s for r, s in zip(rates, seconds, strict=True)) * share * met
        if operator.group is not None:
            groups = math.prod(self._spread(a).distinct for a in operator.group)
            return min(held, groups) * operator.windows.instants.rate * 1000
        new = sum(held / s for s in seconds)
        between = 0.001 / operator.windows.instants.rate
        return new * min(1.0, min(seconds) / between)

    def _share(self, conditions: Where) -> float:
        box = math.prod(self._spread(a).share(found) for a, found in conditions.box)
        clauses = math.prod(1 - (1 - OTHER) ** len(clause) for clause in conditions.clauses)
        return box * clauses

    def _met(self, operator: Descriptor) -> float:
        """The part of all pairs that is equal. What a condition leaves of equal attributes is
        counted by the condition, once for all of them.
        """
        met = 1.0
        for equal in operator.joins:
            most = sorted(self._spread(a).distinct for a in equal)[1:]
            met *= math.prod(1 / n for n in most)
        return met

    def _width(self, operator: Descriptor) -> float:
        if operator.group is not None:
            shown = sum(self._spread(a).bytes for a in operator.group)
            return shown + 8 * len(operator.aggregates) + TIME_BYTES
        columns = sum(self._spread(a).bytes for a in operator.columns)
        return columns + TIME_BYTES * len(operator.sources)

    def _spread(self, attribute: str) -> Spread:
        stream, name = stream_of(source_of(attribute)), attribute.partition(".")[2]
        return self._streams[stream].attributes[name]
