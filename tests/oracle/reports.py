"""What a SPARQL query reports: its windows at its instants, solved, and told apart from before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from oracle.looks import content, differences, instants
from oracle.queries import Query, Triple
from oracle.solve import Data, Three, frozen, group, solutions
from oracle.terms import normal
from oracle.windows import Clock, stays

Graphs = Mapping[str, Collection[Three]]
"""Static triples by graph, ``""`` is the default one."""
Frozen = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Report:
    """What is compared of a report: the bag of rows (and of those that are deleted), or the graph,
    or the answer. ``made``: the triples of a graph as they are.
    """

    rows: frozenset[tuple[Frozen, int]] = frozenset()
    gone: frozenset[tuple[Frozen, int]] = frozenset()
    graph: frozenset[object] = frozenset()
    answer: bool | None = None
    made: tuple[Three, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.rows or self.gone or self.graph) and self.answer is None


def bag(rows: Sequence[Frozen]) -> frozenset[tuple[Frozen, int]]:
    return frozenset(Counter(rows).items())


def reports(
    query: Query, said: Mapping[str, Sequence[tuple[int, Three]]], static: Callable[[int], Graphs]
) -> dict[int, Report]:
    """The reports of a query that say something. ``said``: what its streams say in the order of
    times, and at one time of texts, each triple once at each.
    """
    clock = Clock(query.t0, query.bounds, query.policy)
    held = [(w, stays(w, said[w.stream], clock)) for _, w in query.windows]
    times = sorted({ts for stream in query.streams for ts, _ in said[stream]})
    looked = [at for at in instants(held, clock, times) if query.until is None or at <= query.until]
    results: list[tuple[int, list[Frozen], bool]] = []
    before: tuple[object, list[Frozen]] = (None, [])
    for at in looked:
        held_now = [{*content(own, at)} for _, own in held]
        if any(held_now) or (query.empty and at > times[0]):
            graphs = static(at)
            if before[0] != (held_now, graphs):  # else what is solved is what was solved
                data = _data(query, held_now, graphs)  # type: ignore[arg-type]
                before = (held_now, graphs), _result(query, data)
            results.append((at, before[1], True))
        elif not query.nonempty:
            results.append((at, [], False))
    return {at: r for at, r in _told(query, results) if not r.empty}


def _data(query: Query, held: Sequence[set[Three]], graphs: Graphs) -> Data:
    named: dict[str, Collection[Three]] = {f"<{g}>": t for g, t in graphs.items() if g}
    default = set(graphs.get("", ()))
    if query.dialect == "csparql":
        return Data(default.union(*held), named, merged=True)
    windows = {name: own for (name, _), own in zip(query.windows, held, strict=True)}
    return Data(default, {**named, **windows})


def _result(query: Query, data: Data) -> list[Frozen]:
    if query.form == "ask":
        found = bool(group(query.select.parts, data, data.default, {}))
        return [(("", found),)]
    rows = solutions(query.select, data)
    if query.form == "construct":
        return [tuple(sorted(row.items())) for row in rows]
    return [frozen(row) for row in rows]


def _told(
    query: Query, results: Sequence[tuple[int, list[Frozen], bool]]
) -> list[tuple[int, Report]]:
    if query.form == "ask":
        return _answers(query, results)
    told = differences([(at, rows) for at, rows, _ in results], query.output)
    found = []
    for at, new, old in told:
        rows = old if query.output == "DSTREAM" else new
        found.append((at, _graph(query, rows) if query.form == "construct" else Report(bag(rows))))
    return found


def _answers(
    query: Query, results: Sequence[tuple[int, list[Frozen], bool]]
) -> list[tuple[int, Report]]:
    """The answer at each report that has one; else where it is another one than before."""
    found, before = [], None
    for at, rows, there in results:
        answer = bool(rows[0][0][1]) if there else None
        if answer is not None and (query.output == "RSTREAM" or answer != before):
            found.append((at, Report(answer=answer)))
        before = answer
    return found


def _graph(query: Query, rows: Sequence[Frozen]) -> Report:
    made = {t for row in rows for p in query.template if (t := _filled(p, dict(row))) is not None}
    return Report(
        graph=frozenset(tuple(normal(term) for term in triple) for triple in made),
        made=tuple(sorted(made)),
    )


def _filled(pattern: Triple, row: Mapping[str, object]) -> Three | None:
    s, p, o = (
        str(row.get(t, "")) if t.startswith("?") else t for t in (pattern.s, pattern.p, pattern.o)
    )
    if not (s and p and o) or s.startswith('"') or not p.startswith("<"):
        return None
    return (s, p, o)
