"""The registry: streams, static data and queries of an engine, by name, as they are now.

A query may read the stream that another makes: it comes with or after its maker, and goes with or
before it. Queries that come together may be given in any order. What cannot be registered leaves
the registry as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from levada.algebra import nodes as a
from levada.algebra.options import QueryOptions
from levada.algebra.schema import Regime
from levada.engine.ontology import Ontology
from levada.engine.registration import Around, Asked, in_order, resolved, understood
from levada.errors import UsageError, near
from levada.intake.static_files import StaticFile
from levada.intake.static_files import named as placed_as
from levada.model.names import check_query_name, is_made, made_by, shown
from levada.model.query import Form
from levada.plan.lowering.scans import StreamFacts
from levada.plan.topology.check_size import check_plan
from levada.runtime.driver.catalog import Registered
from levada.runtime.driver.lifetime import Standing
from levada.streams.stream_config import StreamConfig
from levada.syntax.dialects.recognise import dialect_of


class Registry:
    """What an engine has been told. ``dropped``: queries that were taken out since somebody last
    emptied it.

    ``ontology``: the files of the engine's ontology; none are the static data, of which lines are
    to be files in ``folder``.
    ``regime``: the entailment of queries that do not say.
    """

    def __init__(
        self,
        ontology: Sequence[StaticFile] = (),
        folder: Path = Path(),
        regime: Regime = Regime.NONE,
    ) -> None:
        self._ontology_files, self._folder, self._regime = list(ontology), folder, regime
        self._ontology: Ontology | None = None  # read when a query asks for entailment
        self.streams: dict[str, StreamConfig] = {}
        self._facts: dict[str, StreamFacts] = {}
        self._static: list[StaticFile] = []
        self.graphs: set[str | None] = set()  # of static data
        self.queries: dict[str, Registered] = {}
        self.dropped: set[str] = set()
        self._registered = 0  # queries so far, also those that have been taken out
        self._named: dict[str, str] = {}  # how queries have called streams
        self._makers: dict[
            str, list[str]
        ] = {}  # CONSTRUCT queries by the names of the streams that they may make
        self._others: dict[
            str, list[str]
        ] = {}  # the other queries in the same way: for what is said of them

    def free_name(self) -> str:
        """A name for a query that came without one: that of no other, also when some have been
        taken out.
        """
        return f"q{self._registered + 1}"

    def add_stream(self, config: StreamConfig) -> None:
        """A stream. Raises ``UsageError`` if its name is taken."""
        if config.name in self.streams:
            raise UsageError(f"There are two streams {config.name}.")
        maker = shown(self._named.get(config.name, made_by(config.name)))
        if reader := next(self._readers(maker), None):
            message = (
                f"The query {reader} reads the stream {config.name}, which the query {maker} makes."
            )
            raise UsageError(message, hint="Give one of them another name.")
        self.streams[config.name] = config
        self._facts[config.name] = StreamFacts.of(config)

    def name_static(self, files: Sequence[StaticFile]) -> None:
        """All static data. What GRAPH and FROM name in the queries that are there follows from the
        graphs that are there.
        """
        self._static = list(files)
        self.graphs = {g for file in files for g in file.graphs}
        self._ontology = None
        for known in list(self.queries.values()):
            asked = Asked(known.text, known.name, known.dialect, known.options)
            around = self._around({})
            query = resolved(asked, understood(asked, around), around, self._named)
            self.queries[known.name] = replace(known, query=query)

    def add(self, batch: Sequence[Asked]) -> list[Registered]:
        """Queries that come together, all or none; in the order given, whichever reads which."""
        batch = [replace(asked, options=self._under(asked.options)) for asked in batch]
        names: set[str] = set()
        for asked in batch:
            with noted(asked):
                if check_query_name(asked.name) in names or asked.name in self.queries:
                    hint = "Unregister it first, or choose another name."
                    raise UsageError(f"There is a query {asked.name} already.", hint=hint)
                names.add(asked.name)
        queries: dict[str, a.Query] = {}
        around = self._around(queries)
        for asked in batch:
            with noted(asked):
                queries[asked.name] = understood(asked, around)
        for name, query in queries.items():
            self._add_maker(name, query)
        try:
            found = self._resolved(batch, queries, around)
        except BaseException:
            for name, query in queries.items():
                self._remove_maker(name, query)
            raise
        self.queries |= found
        self._registered += len(found)
        return [found[asked.name] for asked in batch]

    def _under(self, options: QueryOptions) -> QueryOptions:
        """The options of a query, its entailment that of the engine if they do not say."""
        return replace(options, entailment=options.entailment or self._regime)

    def _resolved(
        self, batch: Sequence[Asked], queries: dict[str, a.Query], around: Around
    ) -> dict[str, Registered]:
        """The queries of a batch, makers before readers."""
        by_name = {asked.name: asked for asked in batch}
        named = dict(self._named) if len(batch) > 1 else self._named
        found = {}
        for name in in_order(queries, around):
            asked = by_name[name]
            with noted(asked):
                query = resolved(asked, queries[name], around, named)
                check_plan(query, self._facts, asked.text)
                spoken = dialect_of(asked.text, asked.dialect).name
                found[name] = Registered(name, asked.text, spoken, asked.options, query)
        self._named = named
        return found

    def found(self, name: str, standing: Standing | None = None) -> Registered:
        """The query of this name; with ``standing`` the one that stands there. Raises
        ``UsageError`` if there is none.
        """
        if name not in self.queries:
            raise UsageError(f"There is no query {name}.", hint=near(name, self.queries))
        query = self.queries[name]
        if standing is not None and query.standing is not standing:
            raise UsageError(f"This query {name} has been taken out; another one has its name.")
        return query

    def remove(self, name: str, standing: Standing | None = None) -> None:
        """Takes a query out. Raises ``UsageError`` if others read what it makes."""
        found = self.found(name, standing)
        if readers := list(self._readers(name)):
            told = " and ".join(
                [", ".join(readers[:-1]), readers[-1]] if len(readers) > 1 else readers
            )
            message = f"The stream that the query {name} makes is read by {told}."
            raise UsageError(message, hint="Unregister what reads it first.")
        self._remove_maker(name, self.queries.pop(name).query)
        if found.standing.query is None:
            found.standing.end(0)
        self.dropped.add(name)
        self._named = {
            said: stream
            for said, stream in self._named.items()
            if not is_made(stream) or any(self._readers(shown(stream)))
        }

    def _readers(self, maker: str) -> Iterator[str]:
        """The queries that read what a query makes."""
        if made_by(maker) in self._named.values():
            stream = made_by(maker)
            yield from (
                n
                for n, r in self.queries.items()
                if any(w.stream == stream for w in r.query.windows)
            )

    def _around(self, new: dict[str, a.Query]) -> Around:
        """What names can be; ``new``: the queries that come now."""
        if self._ontology is None:
            self._ontology = Ontology(self._ontology_files or placed_as(self._static, self._folder))
        return Around(
            self.streams,
            self.graphs,
            self._makers,
            self._others,
            lambda n: new[n] if n in new else self.queries[n].query,
            self._ontology,
        )

    def _add_maker(self, name: str, query: a.Query) -> None:
        table = self._makers if query.form is Form.CONSTRUCT else self._others
        for word in _words(name, query):
            table.setdefault(word, []).append(name)

    def _remove_maker(self, name: str, query: a.Query) -> None:
        table = self._makers if query.form is Form.CONSTRUCT else self._others
        for word in _words(name, query):
            table[word].remove(name)
            if not table[word]:
                del table[word]


def _words(name: str, query: a.Query) -> list[str]:
    """The names of the stream that a query makes."""
    return list(dict.fromkeys([name, query.registered] if query.registered else [name]))


@contextmanager
def noted(asked: Asked) -> Iterator[None]:
    """Notes on an error which query it is about."""
    try:
        yield
    except Exception as error:
        error.add_note(asked.name)
        raise
