"""The names that a query's text can use: streams, static graphs, the streams of other queries, and
the ontology for entailment.

An engine's ``Registry`` keeps one; ``levada check`` and ``levada explain`` build one for an
application. It grows with streams, data and queries, and ``prepare`` reads it. So equal
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
    """The names that a text can use.

    ``streams``: the outside streams. ``graphs``: the static graphs (None among them: the default
    graph); None instead: any graph that a text names exists. ``replaceable``: the graphs that may
    be replaced while the engine runs. ``queries``: the queries by name, with names as in their
    texts. ``makers``: the queries that make a stream, by each name of the stream. ``said``: the
    streams by their names in queries. ``words``: how many queries use each such name; a name is
    removed with its last query. ``regions``: those of the engine (None: the engine checks them).
    ``of_streams``: the regions of streams. ``joins``: the form of joins where it can be chosen, by
    these ``measures`` of streams.
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
        """Removes a query, and the names that only it uses."""
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
        """Returns a copy for a text that is only checked: its names are discarded."""
        return replace(self, said=dict(self.said))

    def others(self) -> dict[str, list[str]]:
        """Returns the queries that do not make a stream, by their names, in the form of
        ``makers``.
        """
        queries_by_word: dict[str, list[str]] = {}
        for name, query in self.queries.items():
            for word in _words(name, query) if query.form is not Form.CONSTRUCT else ():
                queries_by_word.setdefault(word, []).append(name)
        return queries_by_word


def _words(name: str, query: a.Query) -> list[str]:
    """Returns the names of the stream that a query makes."""
    return list(dict.fromkeys([name, query.registered] if query.registered else [name]))
