"""The leaves of a query over its sources: patterns over windows, static graphs and merges of them,
as operators at the intake.

What a window is decides how its triples become a set: by their times (``raw`` rows, which meet in
an Occur or a join), by its operator (count windows, sessions), or by a promise (``unique``; a star
of closed elements).

A pattern over static graphs of which one may be replaced while the engine runs has rows with times
and weights, as those of a count window: they are in the query's window ``static``, which is none
that the query names and decides no report. Rows of other static graphs have no times. Cost: linear
in the patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field

from levada.core.event_time import WindowKind
from levada.core.expressions import Call, Function, Var
from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.core.stream_facts import StreamFacts
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.lowering.rdf_merge import form_of, merge, parts_of
from levada.plan.physical import build
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op

_SPO = TriplePattern(Var("s"), Var("p"), Var("o"))


def graphs_of(query: a.Query, source: a.Source) -> tuple[str | None, ...]:
    """The static graphs whose union a pattern over this source reads (None: the default graph)."""
    match source:
        case a.InGraph(str(name)):
            return (name,)
        case a.InGraph(None) | a.InMerge(_, True):
            return (None,) if query.graphs is None else tuple(query.graphs)
        case _:
            return ()


def graphs_read(query: a.Query, node: a.Node) -> frozenset[str | None]:
    """The static graphs that some pattern of this part of a query reads."""
    node_graphs = graphs_of(query, node.source) if isinstance(node, (a.Bgp, a.Entailed)) else ()
    return frozenset(node_graphs).union(*(graphs_read(query, child) for child in children(node)))


@frozen
class Leaves:
    """Makes the leaves of a query whose streams are known; ``replaceable``: the static graphs that
    may be replaced.

    ``forms``: the merges of patterns by their forms. Patterns that differ in terms and names are
    one form.
    """

    q: a.Query
    streams: Mapping[str, StreamFacts]
    replaceable: frozenset[str | None] = frozenset()
    forms: dict[tuple[a.Source, TriplePattern], Op] = field(default_factory=dict)

    def count_window_changes(self, rows: Op, window: int, partition: tuple[str, ...]) -> Op:
        """The changes of a count window over these rows."""
        count = self.q.windows[window].window.count
        return build.count_window(rows, window, count, partition, bag=True)

    def scan(
        self, source: a.InWindow, columns: tuple[tuple[str, str], ...], partition: tuple[str, ...]
    ) -> Op:
        """The rows of a window over a tuple stream."""
        on = self.q.windows[source.index]
        facts = self.streams[on.stream]
        schema = facts.schema
        assert schema is not None, "a scan reads a tuple stream"
        types = {p.TIME: "integer", **schema}
        times = {facts.time, *({"ts"} - schema.keys())}
        used = tuple((p.TIME if c in times else c, v) for c, v in columns)
        if on.window.kind is not WindowKind.COUNT:
            every = _every_column(schema, used, source.index)
            scanned = _scan_op(on.stream, source.index, every, types, sign=facts.sign)
            return in_sessions(scanned, source.index, on.window.kind, bag=True)
        variable = dict(used)
        # ties of one time are ordered by whole rows
        whole = [(c, variable.get(c, f".{c}")) for c in schema]
        rows = _scan_op(
            on.stream, source.index, (*whole, *((c, v) for c, v in used if c == p.TIME)), types
        )
        last = self.count_window_changes(
            rows, source.index, tuple(dict(whole)[c] for c in partition)
        )
        return build.rename(last, [v for _, v in used])

    def every_row(self, scan: a.Scan, columns: Collection[str]) -> tuple[Op, Callable[[str], str]]:
        """All rows of a tuple stream, whole, with these ``columns``; and the variable of each."""
        on = self.q.windows[scan.source.index]
        facts = self.streams[on.stream]
        assert facts.schema is not None, "a scan reads a tuple stream"
        times = {facts.time, *({"ts"} - facts.schema.keys())}
        whole = [(c, f".{c}") for c in (*facts.schema, *([p.TIME] if times & {*columns} else ()))]
        rows = _scan_op(on.stream, scan.source.index, whole, {p.TIME: "integer", **facts.schema})
        return rows, lambda column: f".{p.TIME if column in times else column}"

    def bgp(self, source: a.Source, patterns: Sequence[TriplePattern]) -> list[Op]:
        """The leaves of a basic graph pattern: a star for each subject where elements are closed,
        else a pattern each.
        """
        if isinstance(source, a.InWindow):
            on = self.q.windows[source.index]
            by_time = on.window.kind is not WindowKind.COUNT and not on.window.kind.by_session
            if self.streams[on.stream].closed and by_time:
                stars: dict[object, list[TriplePattern]] = {}
                for pattern in patterns:
                    stars.setdefault(pattern.subject, []).append(pattern)
                return [build.star(legs, on.stream, source.index) for legs in stars.values()]
        return [self._leaf(source, pattern) for pattern in patterns]

    def _leaf(self, source: a.Source, pattern: TriplePattern) -> Op:
        if isinstance(source, a.InMerge):
            form, names, terms = form_of(pattern)
            if (source, form) not in self.forms:
                self.forms[source, form] = merge(
                    [self._leaf(part, form) for part in parts_of(source)]
                )
            return build.apply(self.forms[source, form], names, terms)
        if isinstance(source, a.InGraph):
            return build.match(pattern, None, *self._static(source), raw=False)
        on = self.q.windows[source.index]
        if on.window.kind is WindowKind.COUNT:
            rows = build.match(_SPO, on.stream, (), source.index, raw=False)
            return build.select(
                build.count_window(rows, source.index, on.window.count, (), bag=False), pattern
            )
        unique = self.streams[on.stream].unique
        rows = build.match(
            pattern, on.stream, (), source.index, raw=not (unique or on.window.kind.by_session)
        )
        return in_sessions(rows, source.index, on.window.kind, bag=unique)

    def entailed_pattern(self, node: a.Entailed, source: a.Source) -> Op:
        """A pattern by its alternatives. Several triples may entail one match, also of a stream in
        which no triple repeats.
        """
        if isinstance(source, a.InMerge):
            return merge([self.entailed_pattern(node, part) for part in parts_of(source)])
        if isinstance(source, a.InGraph):
            return build.entail(node, None, *self._static(source), raw=False)
        on = self.q.windows[source.index]
        assert on.window.kind is not WindowKind.COUNT, (
            "over count windows the alternatives are a union of their own"
        )
        rows = build.entail(node, on.stream, (), source.index, raw=not on.window.kind.by_session)
        return in_sessions(rows, source.index, on.window.kind, bag=False)

    def occurrences(self, node: a.Came) -> Op:
        """The comings of triples, told apart by their times: an earlier one of an equal triple is
        another row.
        """
        index, on = node.source.index, self.q.windows[node.source.index]
        counted = on.window.kind is WindowKind.COUNT
        rows = build.match(_SPO if counted else node.pattern, on.stream, (), index, raw=False)
        rows = build.extend(rows, node.variable, Call(Function.EVENT_TIME, ()))
        if counted:
            return build.select(
                build.count_window(rows, index, on.window.count, (), bag=False),
                node.pattern,
                node.variable,
            )
        return in_sessions(rows, index, on.window.kind, bag=False)

    def _static(self, source: a.InGraph) -> tuple[tuple[str | None, ...], int | None]:
        """The graphs that a pattern reads, and the window of its rows where they may be replaced:
        one behind those of the query.
        """
        graphs = graphs_of(self.q, source)
        lasting = bool(self.q.windows) and not self.replaceable.isdisjoint(graphs)
        return graphs, len(self.q.windows) if lasting else None


def in_sessions(rows: Op, window: int, kind: WindowKind, *, bag: bool) -> Op:
    """Rows of a window as they are in its sessions, if it is a session window."""
    return (
        build.session(rows, window, ended=kind is WindowKind.ENDED, bag=bag)
        if kind.by_session
        else rows
    )


def _every_column(
    schema: Iterable[str], used: Sequence[tuple[str, str]], window: int
) -> list[tuple[str, str]]:
    """All columns in the order of the schema, whatever a query uses of them, so that what it shows
    keeps neither its scan nor its joins apart. Those that nobody reads have no slot; their
    variables are those of no other table.
    """
    named: dict[str, list[str]] = {}
    for column, variable in used:
        named.setdefault(column, []).append(variable)
    order = (*schema, *({p.TIME} & named.keys()))
    return [(c, v) for c in order for v in named.get(c, (f".{window}.{c}",))]


def _scan_op(
    stream: str,
    window: int,
    columns: Sequence[tuple[str, str]],
    types: Mapping[str, str],
    *,
    sign: str = "",
) -> Op:
    """These (column, variable) pairs of a tuple stream; only the event time is never null."""
    spec = p.Scan(stream, tuple(c for c, _ in columns), tuple(types[c] for c, _ in columns), sign)
    typed = frozenset(v for c, v in columns if types[c] != "string")
    maybe = frozenset(v for c, v in columns if c != p.TIME)
    variables = tuple(v for _, v in columns)
    return Op(spec, (), variables, (window,), 0, typed=typed, maybe=maybe, weighted=bool(sign))
