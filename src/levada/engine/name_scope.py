"""What the names in a query's text can stand for: streams, static graphs, what other queries make;
and the ontology, by which entailment goes.

An engine's ``Registry`` keeps it; ``levada check`` and ``levada explain`` make one for an
application. It grows as streams, data and queries come, and ``prepare`` reads it, so equal
``NameScope`` means equal plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from levada.core.query_model import Form
from levada.core.stream_facts import StreamFacts
from levada.engine.ontology import Ontology
from levada.plan.execution.join_kinds import JoinForm
from levada.plan.logical import nodes as a
from levada.plan.sharing.regions.regions import Regions

if TYPE_CHECKING:
    from levada.plan.statistics.statistics import Measures


@dataclass(slots=True)
class NameScope:
    """What can be named.

    ``streams``: those from outside. ``graphs``: the static ones (None among them: the default
    graph); None in their place: whichever a text names is there. ``replaceable``: those of them
    that may be replaced while the engine runs.
    ``queries``: the queries by name, as their texts say. ``makers``: those that make a stream, by
    each name that it can be asked for by. ``said``: the streams by the names
    that the queries call them, and ``words``: how many queries use each such name. A name goes with
    the last query that uses it.
    ``regions``: those of the engine (None: it knows); ``of_streams``: those that streams name.
    ``joins``: of which form joins are where that can be chosen, by these ``measures`` of streams.
    """

    streams: dict[str, StreamFacts] = field(default_factory=dict)
    graphs: Collection[str | None] | None = None
    replaceable: frozenset[str | None] = frozenset()
    ontology: Ontology = field(default_factory=lambda: Ontology(()))
    queries: dict[str, a.Query] = field(default_factory=dict)
    makers: dict[str, list[str]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    joins: JoinForm = JoinForm.BINARY
    measures: Measures | None = None
    regions: Regions | None = field(default_factory=Regions)
    of_streams: dict[str, str] = field(default_factory=dict)

    def add_query(self, name: str, query: a.Query) -> None:
        """Adds a query, which makes a stream if it is a CONSTRUCT."""
        self.queries[name] = query
        self.words.update({window.stream for window in query.windows})
        if query.form is Form.CONSTRUCT:
            for word in _words(name, query):
                self.makers.setdefault(word, []).append(name)

    def remove_query(self, name: str) -> None:
        """Forgets a query."""
        query = self.queries.pop(name)
        for word in _words(name, query) if query.form is Form.CONSTRUCT else ():
            self.makers[word].remove(name)
            if not self.makers[word]:
                del self.makers[word]
        for word in {window.stream for window in query.windows}:
            self.words[word] -= 1
            if not self.words[word]:
                del self.words[word]
                self.said.pop(word, None)

    def copy(self) -> NameScope:
        """Returns a copy that changes independently."""
        return replace(
            self, streams=dict(self.streams), queries=dict(self.queries), said=dict(self.said),
            makers={word: list(names) for word, names in self.makers.items()},
            words=Counter(self.words), of_streams=dict(self.of_streams),
        )  # fmt: skip

    def apart(self) -> NameScope:
        """Returns a copy for a text that is only checked: its names are not kept."""
        return replace(self, said=dict(self.said))

    def others(self) -> dict[str, list[str]]:
        """Returns the queries that make no stream by their names, as ``makers`` does for the
        others.
        """
        queries_by_word: dict[str, list[str]] = {}
        for name, query in self.queries.items():
            for word in _words(name, query) if query.form is not Form.CONSTRUCT else ():
                queries_by_word.setdefault(word, []).append(name)
        return queries_by_word


def _words(name: str, query: a.Query) -> list[str]:
    """Returns the names of the stream that a query makes."""
    return list(dict.fromkeys([name, query.registered] if query.registered else [name]))
