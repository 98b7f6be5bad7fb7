"""Lowers the leaves of a query to operators at the intake: patterns over windows, static graphs and
merges of them.

The kind of a window decides how its triples become a set: by their times (``raw`` rows, which meet
in an Occur or a join), by the window's operator (count windows, sessions), or by a promise
(``unique``; a star of closed elements).

A static graph may be replaceable while the engine runs. Patterns over it have rows with times and
weights, as those of a count window. These rows are in the query's window ``static``, which the
query does not name and which decides no report. Rows of other static graphs have no times. Cost:
linear in the patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field

from levada.core.event_time import WindowKind
from levada.core.expressions import Call, Function, Var
from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.core.stream_facts import StreamFacts
from levada.core.user_functions import operator_of
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.lowering.rdf_merge import form_of, merge, parts_of
from levada.plan.physical import build
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op

_SPO = TriplePattern(Var("s"), Var("p"), Var("o"))


def graphs_of(query: a.Query, source: a.Source) -> tuple[str | None, ...]:
    """Returns the static graphs whose union a pattern over this source reads (None: the default
    graph).
    """
    match source:
        case a.InGraph(str(name)):
            return (name,)
        case a.InGraph(None) | a.InMerge(_, True):
            return (None,) if query.graphs is None else tuple(query.graphs)
        case _:
            return ()


def graphs_read(query: a.Query, node: a.Node) -> frozenset[str | None]:
    """Returns the static graphs that patterns in this part of a query read."""
    node_graphs = graphs_of(query, node.source) if isinstance(node, (a.Bgp, a.Entailed)) else ()
    return frozenset(node_graphs).union(*(graphs_read(query, child) for child in children(node)))


@frozen
class Leaves:
    """Makes the leaves of a query whose streams are known; ``replaceable``: the static graphs that
    may be replaced.

    ``forms``: the merges of patterns by form. Patterns that differ only in terms and names have one
    form.
    """

    q: a.Query
    streams: Mapping[str, StreamFacts]
    replaceable: frozenset[str | None] = frozenset()
    forms: dict[tuple[a.Source, TriplePattern], Op] = field(default_factory=dict)

    def count_window_changes(self, rows: Op, window: int, partition: tuple[str, ...]) -> Op:
        """Returns the changes of a count window over these rows."""
        count = self.q.windows[window].window.count
        return build.count_window(rows, window, count, partition, bag=True)

    def scan(
        self, source: a.InWindow, columns: tuple[tuple[str, str], ...], partition: tuple[str, ...]
    ) -> Op:
        """Returns the rows of a window over a tuple stream."""
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
        # rows of one time are ordered by all columns
        whole = [(c, variable.get(c, f".{c}")) for c in schema]
        rows = _scan_op(
            on.stream, source.index, (*whole, *((c, v) for c, v in used if c == p.TIME)), types
        )
        last = self.count_window_changes(
            rows, source.index, tuple(dict(whole)[c] for c in partition)
        )
        return build.rename(last, [v for _, v in used])

    def rows(self, scan: a.Scan) -> Op:
        """Returns the rows of a window over a tuple stream, or over operators of the user."""
        if scan.operators:
            return self.user_operators(scan)
        return self.scan(scan.source, scan.columns, scan.partition)

    def user_operators(self, scan: a.Scan) -> Op:
        """Returns the rows that operators of the user make of all rows of a tuple stream."""
        on, index = self.q.windows[scan.source.index], scan.source.index
        facts = self.streams[on.stream]
        assert facts.schema is not None, "an operator reads a tuple stream"
        made = [(operator_of(iri), keys) for iri, keys in scan.operators]
        read = dict.fromkeys((*made[0][1], *made[0][0].takes, p.TIME))
        types = {**facts.schema, p.TIME: "integer"}
        known = {c: f".{c}" for c in read}
        times = {facts.time, *({"ts"} - facts.schema.keys())}
        pairs = [(p.TIME if c in times else c, v) for c, v in known.items()]
        rows = _scan_op(on.stream, index, pairs, types)
        for i, (operator, keys) in enumerate(made):
            columns = (*keys, *operator.returns, p.TIME)
            named = [(c, f"{'.' * (i + 2)}{c}") for c in columns]
            if i + 1 == len(made):
                used = [(p.TIME if c == "ts" else c, v) for c, v in scan.columns]
                named = _every_column((*keys, *operator.returns), used, index)
            rows = build.user_operator(rows, operator.iri, keys, known, named)
            known = dict(named)
        if on.window.kind is not WindowKind.COUNT:
            return rows
        last = self.count_window_changes(rows, index, tuple(known[c] for c in scan.partition))
        return build.rename(last, [v for _, v in used])

    def every_row(self, scan: a.Scan, columns: Collection[str]) -> tuple[Op, Callable[[str], str]]:
        """Returns all whole rows of a tuple stream with these ``columns``, and the variable of each
        column.
        """
        on = self.q.windows[scan.source.index]
        facts = self.streams[on.stream]
        assert facts.schema is not None, "a scan reads a tuple stream"
        times = {facts.time, *({"ts"} - facts.schema.keys())}
        whole = [(c, f".{c}") for c in (*facts.schema, *([p.TIME] if times & {*columns} else ()))]
        rows = _scan_op(on.stream, scan.source.index, whole, {p.TIME: "integer", **facts.schema})
        return rows, lambda column: f".{p.TIME if column in times else column}"

    def bgp(self, source: a.Source, patterns: Sequence[TriplePattern]) -> list[Op]:
        """Returns the leaves of a basic graph pattern.

        Each subject is a star if elements are closed; otherwise each pattern is a leaf.
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
        """Lowers a pattern with its alternatives.

        Several triples may entail one match, even in a stream in which no triple repeats.
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

    def occurrences(self, node: a.TripleArrivals) -> Op:
        """Returns the occurrences of triples as rows that differ by their times.

        An earlier occurrence of an equal triple is a separate row.
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
        """Returns the graphs that a pattern reads, and the window of its rows if they may be
        replaced.

        That window follows the windows of the query.
        """
        graphs = graphs_of(self.q, source)
        lasting = bool(self.q.windows) and not self.replaceable.isdisjoint(graphs)
        return graphs, len(self.q.windows) if lasting else None


def in_sessions(rows: Op, window: int, kind: WindowKind, *, bag: bool) -> Op:
    """Returns the rows of a session window in their sessions; other rows are unchanged."""
    return (
        build.session(rows, window, ended=kind is WindowKind.ENDED, bag=bag)
        if kind.by_session
        else rows
    )


def _every_column(
    schema: Iterable[str], used: Sequence[tuple[str, str]], window: int
) -> list[tuple[str, str]]:
    """Returns all columns in the order of the schema, regardless of those that a query uses.

    So queries that show different columns share a scan and joins. Unread columns have no slot; no
    other table has their variables.
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
    """Returns the scan of (column, variable) pairs; only the event time is never null."""
    spec = p.Scan(stream, tuple(c for c, _ in columns), tuple(types[c] for c, _ in columns), sign)
    typed = frozenset(v for c, v in columns if types[c] != "string")
    maybe = frozenset(v for c, v in columns if c != p.TIME)
    variables = tuple(v for _, v in columns)
    return Op(spec, (), variables, (window,), 0, typed=typed, maybe=maybe, weighted=bool(sign))
