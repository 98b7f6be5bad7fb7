"""The leaves of a query over its sources: patterns over windows, static graphs and merges of them, as operators at the intake.

What a window is decides how its triples become a set: by their times (``raw`` rows, which meet in an Occur or a join), by its
operator (count windows, sessions), or by a promise (``unique``; a star of closed elements).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from levada.algebra import nodes as a
from levada.algebra.expression import Var
from levada.config import StreamConfig
from levada.model.time import WindowKind
from levada.plan import build
from levada.plan.merge import merge, parts_of
from levada.plan.physical import Op


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What the plan must know of a stream: ``schema`` of a tuple stream (None: triples), the ``unique`` and ``closed`` promises.

    ``time``: the schema's column that is the event time as it is, if any. ``sign``: the column of a relation's signs.
    """

    schema: Mapping[str, str] | None = None
    unique: bool = False
    time: str | None = None
    closed: bool = False
    sign: str = ""

    @staticmethod
    def of(config: StreamConfig) -> StreamFacts:
        """What a stream's configuration tells the plan."""
        columns = config.columns if config.tabular else None
        return StreamFacts(columns, config.unique, config.time_column, config.closed, config.sign)


@dataclass(frozen=True, slots=True)
class Leaves:
    """Makes the leaves of a query whose streams are known."""

    q: a.Query
    streams: Mapping[str, StreamFacts]

    def bgp(self, source: a.Source, patterns: Sequence[a.TriplePattern]) -> list[Op]:
        """The leaves of a basic graph pattern: a star for each subject where elements are closed, else a pattern each."""
        if isinstance(source, a.InWindow):
            on = self.q.windows[source.index]
            by_time = on.window.kind is not WindowKind.COUNT and not on.window.kind.by_session
            if self.streams[on.stream].closed and by_time:
                stars: dict[object, list[a.TriplePattern]] = {}
                for pattern in patterns:
                    stars.setdefault(pattern.subject, []).append(pattern)
                return [build.star(legs, on.stream, source.index) for legs in stars.values()]
        return [self._leaf(source, pattern) for pattern in patterns]

    def _leaf(self, source: a.Source, pattern: a.TriplePattern) -> Op:
        if isinstance(source, a.InMerge):
            return merge([self._leaf(part, pattern) for part in parts_of(source)])
        if isinstance(source, a.InGraph):
            return build.match(pattern, None, self._graphs(source), None, raw=False)
        on = self.q.windows[source.index]
        if on.window.kind is WindowKind.COUNT:
            spo = a.TriplePattern(Var("s"), Var("p"), Var("o"))
            rows = build.match(spo, on.stream, (), source.index, raw=False)
            return build.select(build.last(rows, source.index, on.window.count, bag=False), pattern)
        unique = self.streams[on.stream].unique
        rows = build.match(pattern, on.stream, (), source.index, raw=not (unique or on.window.kind.by_session))
        return in_sessions(rows, source.index, on.window.kind, bag=unique)

    def entailed(self, node: a.Entailed, source: a.Source) -> Op:
        """A pattern by its alternatives. Several triples may entail one match, also of a stream in which no triple repeats."""
        if isinstance(source, a.InMerge):
            return merge([self.entailed(node, part) for part in parts_of(source)])
        if isinstance(source, a.InGraph):
            return build.entailed(node, None, self._graphs(source), None, raw=False)
        on = self.q.windows[source.index]
        assert on.window.kind is not WindowKind.COUNT, "over count windows the alternatives are a union of their own"
        rows = build.entailed(node, on.stream, (), source.index, raw=not on.window.kind.by_session)
        return in_sessions(rows, source.index, on.window.kind, bag=False)

    def _graphs(self, source: a.InGraph) -> tuple[str | None, ...]:
        if source.name is not None:
            return (source.name,)
        return (None,) if self.q.graphs is None else tuple(self.q.graphs)


def in_sessions(rows: Op, window: int, kind: WindowKind, *, bag: bool) -> Op:
    """Rows of a window as they are in its sessions, if it is a session window."""
    return build.session(rows, window, ended=kind is WindowKind.ENDED, bag=bag) if kind.by_session else rows
