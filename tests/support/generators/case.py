"""A case: streams, static graphs, and queries: each a text for the engine and a question for the
reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from levada.core.event_time import MIN
from levada.testing.reference import elements_of, evaluate
from levada.testing.reference_model import (
    Element,
    Graphs,
    Question,
    ReferenceQuery,
    Report,
    Row,
)
from levada.testing.stream_builders import time_term
from support.generators.windows import allows_gap


@dataclass(frozen=True, slots=True)
class CaseQuery:
    """A query: its name, its text in a dialect, its options, and what the reference is asked.

    ``options`` has those of ``bounds`` ("[)" or "(]"), ``t0`` (ms), ``report`` (a policy) and
    ``empty_reports`` (True) that are given.
    """

    name: str
    text: str
    dialect: str
    options: Mapping[str, Any]
    reference: Question

    @property
    def allows_gap(self) -> bool:
        """Whether a year without elements costs the reference nothing."""
        windows = (window for _, window in self.reference.windows.values())
        return allows_gap(windows, self.reference.empty_reports, self.reference.clock)


@dataclass(frozen=True, repr=False)
class Case:
    """All that a run needs. Elements are in order of arrival, disordered by at most ``lateness``
    (ms): none is late.

    ``streams`` are by name: an IRI, or a word for tuple streams, whose columns are in ``schemas``
    (name to type; the event time is a further column ``ts``; of ``relations`` the rows have signs).
    ``static`` maps graph IRIs, or None for the default graph, to triples; ``replaced`` has what is
    static after so many elements of each stream have been read, in their order.
    ``ontology``: the triples of an ontology that is no static data; None is the static data's.
    """

    streams: Mapping[str, tuple[Element | Row, ...]]
    queries: tuple[CaseQuery, ...]
    lateness: int = 0
    static: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    relations: frozenset[str] = frozenset()
    ontology: tuple[str, ...] | None = None
    replaced: tuple[tuple[Mapping[str, int], Graphs], ...] = ()

    def expected(
        self, after: Mapping[str, int] | None = None, since: Mapping[str, int] | None = None
    ) -> dict[str, list[Report]]:  # fmt: skip
        """The reports of each query, by its name, as the reference sees them.

        ``after`` has the time T (ms) of each query that is registered in mid-stream: it sees the
        elements after T. ``since`` has the number of replacements before it: it sees the static
        graphs of then, and later ones. A query may read what one before it makes.
        """
        found = {}
        streams = dict(self.streams)
        versions = [
            (MIN, self.static),
            *((self.latest(read), graphs) for read, graphs in self.replaced),
        ]
        for query in self.queries:
            asked = replace(
                query.reference, after=(after or {}).get(query.name, query.reference.after)
            )
            (_, first), *others = versions[(since or {}).get(query.name, 0) :]
            found[query.name] = evaluate(asked, streams, first, others)
            if isinstance(asked, ReferenceQuery) and asked.template:
                streams[f"http://e/{query.name}"] = elements_of(
                    query.name, asked, found[query.name]
                )
        return found

    def latest(self, read: Mapping[str, int]) -> int:
        """The largest event time of the first so many elements of each stream; MIN if there are
        none.
        """
        return max((e.ts for name, n in read.items() for e in self.streams[name][:n]), default=MIN)

    def describe(self) -> str:
        """Everything that is needed to reproduce the case, for people and for pasting into
        files.
        """
        parts = [f"lateness {self.lateness} ms"]
        for name, elements in self.streams.items():
            schema = f" schema {dict(self.schemas[name])}" if name in self.schemas else ""
            parts.append(f"stream {name}{schema}")
            parts += [f"  {line}" for e in elements for line in _lines(e)]
        for graph, triples in self.static.items():
            parts.append(f"static {graph or 'default graph'}")
            parts += [f"  {t} ." for t in triples]
        if self.ontology is not None:
            parts += ["ontology", *(f"  {t} ." for t in self.ontology)]
        for read, graphs in self.replaced:
            parts.append(f"after {dict(read)} elements:")
            parts += [
                f"  {g or 'default graph'}: {t} ." for g, triples in graphs.items() for t in triples
            ]
        for query in self.queries:
            parts.append(f"query {query.name} ({query.dialect}) options {dict(query.options)}")
            parts += [f"  {line}" for line in query.text.splitlines()]
            parts.append(f"  reference: {query.reference}")
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"Case:\n{self.describe()}\n"


def _lines(element: Element | Row) -> list[str]:
    if isinstance(element, Row):
        return [f"{element.values} at {element.ts}" + (" deleted" if element.sign < 0 else "")]
    return [f"{t} {time_term(element.ts)} ." for t in element.triples]
