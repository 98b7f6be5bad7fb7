"""The registry of an engine: its current streams, static data and queries, by name.

A query may read the stream that another makes: it is added with or after its maker, and removed
with or before it. The queries of a batch may have any order. A failed registration leaves the
registry unchanged. Users' threads change the registry while the driver's thread follows it.
``lock`` is for both, and ``changed`` says that the plan must change.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.static_files import StaticFile, name_files
from levada.core.event_time import MIN
from levada.core.names import check_query_name, derived_by, display_name, match_streams
from levada.engine.name_resolution import NameScope, order_by_makers
from levada.engine.ontology import Ontology
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.query_request import QueryRequest, check_batch, note
from levada.engine.templates.query_templates import rows_of
from levada.errors import LevadaError, QueryFailureError, UsageError, near
from levada.language.cql.ast import Script
from levada.language.sparql.ast import QueryUnit
from levada.language.warnings.warning import QuerySlip, show_warnings
from levada.plan.execution.joins import JoinForm
from levada.plan.logical import nodes as a
from levada.plan.logical.ontology_schema import Regime
from levada.plan.logical.query_options import QueryOptions
from levada.plan.logical.query_template import TemplateInstance
from levada.plan.sharing.sharing_modes import Planning

if TYPE_CHECKING:
    from levada.plan.statistics.statistics import Measures
    from levada.runtime.publication.registered_query import Lifetime, Registered


MOST_NAMED = 10  # queries in a sentence


class Registry:
    """The declarations of one engine. ``dropped``: queries removed since the set was last emptied.
    ``removed_streams``: the same for streams. ``declared``: the stream declarations before spools
    were assigned. ``expiring``: queries with an end, added since the list was last emptied.
    ``begins``: the start of a query that is added now, while an engine runs. ``guard``: interrupts
    work on a number of queries.

    ``ontology``: the files of the engine's ontology. Without them the ontology is the static data,
    whose lines are written to files in ``folder``. ``regime``: the entailment of queries that do
    not set one. ``planning``: the options of query planning.
    """

    def __init__(
        self,
        ontology: Sequence[StaticFile] = (),
        folder: Path = Path(),
        regime: Regime = Regime.NONE,
        planning: Planning = Planning(),  # noqa: B008 a frozen value
    ) -> None:
        self._ontology_files, self._folder, self._regime = list(ontology), folder, regime
        self.streams: dict[str, StreamConfig] = {}
        self.planning = planning._replace(measures=_measures(planning.joins, self.streams))
        self.declared: dict[str, StreamConfig] = {}
        self.removed_streams: set[str] = set()
        ontology_ = Ontology(self._ontology_files)
        self.known = NameScope(
            graphs=frozenset(), ontology=ontology_, joins=planning.joins, regions=planning.regions,
            measures=self.planning.measures,
        )  # fmt: skip
        self.queries: dict[str, Registered] = {}
        self._folded: dict[str, str] = {}  # names by their case-folded form, where it differs
        self.dropped: set[str] = set()
        self.expiring: list[Registered] = []
        self.begins: Callable[[a.Query], int] | None = None
        self.lock = threading.RLock()
        self.guard: Callable[[int], AbstractContextManager[object]] = nullcontext
        self.changed = True
        self.edits = 0  # changes so far
        self.is_trial = False  # a copy, whose queries are planned before they are registered
        self.trees: dict[tuple[str, str | None], QueryUnit | Script] = {}  # parsed before
        self._begun = False
        self._warned_of_ontology: set[str] = set()
        self._unsure: list[str] = []  # queries without streams or data that may still be declared
        self._count = 0  # queries so far, also removed ones

    def free_name(self, number: int = 1) -> str:
        """Returns an unused name for an unnamed query, the first or a later one of a batch. Names
        of removed queries are not used again.
        """
        return f"q{self._count + number}"

    def add_stream(self, config: StreamConfig, declared: StreamConfig | None = None) -> None:
        """Adds a stream, with the declaration ``declared``. Raises ``UsageError`` if the name is
        taken, or if a name in an existing query would then mean another stream.
        """
        with self.lock:
            self.check_free(config.name)
            self.planning.regions.check_stream(config.name, config.region)
            self.known.of_streams[config.name] = config.region
            self.streams[config.name] = config
            self.declared[config.name] = declared or config
            self.known.streams[config.name] = config.facts
            self.changed, self.edits = True, self.edits + 1

    def check_free(self, name: str) -> None:
        """Checks that a stream of this name can be added. Raises ``UsageError``."""
        if name in self.streams:
            raise UsageError(f"There are two streams {name}.")
        if name in self.known.tables:
            raise UsageError(f"There is a table {name}.", hint="Give one of them another name.")
        maker = display_name(self.known.said.get(name, derived_by(name)))
        if reader := next(self._readers(maker), None):
            message = f"The query {reader} reads the stream {name}, which the query {maker} makes."
            raise UsageError(message, hint="Give one of them another name.")
        known = self.known
        after = match_streams(known.said, [*known.streams, name], known.makers)
        for said, stream in known.said.items():
            if after[said] != stream:
                message = (
                    f"Queries read the stream {display_name(stream)} as {said}, which would be the "
                    f"new stream {name} then."
                )
                raise UsageError(message, hint="Give it another name.")

    def remove_stream(self, name: str) -> None:
        """Removes a stream. Raises ``UsageError`` if it does not exist or if queries read it."""
        with self.lock:
            if name not in self.streams:
                raise UsageError(f"There is no stream {name}.", hint=near(name, self.streams))
            readers = [
                query
                for query, registered in self.queries.items()
                if any(w.stream == name for w in registered.alike.windows)
            ]
            if readers:
                message = f"The stream {name} is read by {_list(readers)}."
                raise UsageError(message, hint="Take out what reads it first.")
            del self.streams[name], self.declared[name], self.known.streams[name]
            del self.known.of_streams[name]
            said = self.known.said
            self.known.said = {text: stream for text, stream in said.items() if stream != name}
            self.removed_streams.add(name)
            self.changed, self.edits = True, self.edits + 1

    def name_static(self, files: Sequence[StaticFile]) -> None:
        """Sets all static data. The graphs of GRAPH and FROM in existing queries follow from the
        existing graphs.
        """
        self.edits += 1
        self.known.graphs = {g for file in files for g in file.graphs}
        self.known.replaceable = frozenset(g for f in files if f.replaceable for g in f.graphs)
        named = zip(files, name_files(files, self._folder), strict=True)
        rdf = [named for file, named in named if file.path or not file.copied_from]  # no tables
        self.known.ontology = Ontology(self._ontology_files or rdf)
        batch = [QueryRequest(q.text, n, q.dialect, q.options) for n, q in self.queries.items()]
        rows = rows_of(batch, self.known)
        for asked in batch:
            name = asked.name
            meaning = rows[name] if name in rows else prepare(asked, self.known).optimized_query
            said = _kept_text(asked.text, meaning)
            self.queries[name] = replace(self.queries[name], said=said, meaning=meaning)

    def name_tables(self, schemas: Mapping[str, Mapping[str, str]]) -> None:
        """Sets the columns of all static tables."""
        self.edits += 1
        self.known.tables = dict(schemas)

    def add(self, batch: Sequence[QueryRequest]) -> list[Registered]:
        """Registers all queries of a batch, or none. Returns them in the order of the batch, in any
        order of their dependencies.
        """
        check_batch(batch)
        with self.lock:
            self._check_names(batch)
            batch = self._with_entailment(batch)
            said = dict(self.known.said)
            algebra: dict[str, a.Query] = {}
            try:
                rows = self._rows_of(batch)
                with self.guard(len(batch)):
                    new = {q.name: self._prepare(q) for q in batch if q.name not in rows}
                    firsts = self._first_of(batch, rows)
                    algebra = {name: firsts[id(row.template)].algebra for name, row in rows.items()}
                    algebra |= {name: query.algebra for name, query in new.items()}
                    for name, query in algebra.items():
                        self.known.add_query(name, query)
                    registered = _registered_rows(batch, rows)
                    registered |= {
                        n: self._register_one(new[n]) for n in order_by_makers(new, self.known)
                    }
                    mortal = [query for query in registered.values() if query.options.has_end]
                    self._check_ends(mortal)
                    for prepared in [*firsts.values(), *new.values()]:
                        self._warn(prepared)
            except BaseException:
                self.known.said = said
                for name in algebra:
                    if name in self.known.queries:
                        self.known.remove_query(name)
                raise
            self.queries |= registered
            self.expiring += mortal
            self._folded |= {f: name for name in registered if (f := name.casefold()) != name}
            self._count += len(registered)
            self.changed, self.edits = True, self.edits + 1
            return [registered[asked.name] for asked in batch]

    def _prepare(self, asked: QueryRequest) -> Prepared:
        tree = self.trees.get((asked.text, asked.dialect))
        return prepare(asked, self.known, tree)

    def _register_one(self, query: Prepared) -> Registered:
        # here: commands that only check queries load no plan
        from levada.runtime.publication.registered_query import Registered

        asked = query.asked
        meaning = query.optimized_query if self.is_trial else query.plannable
        options = replace(asked.options, entailment=query.regime)
        return Registered(asked.name, asked.text, asked.spoken, options, meaning)

    def _rows_of(self, batch: Sequence[QueryRequest]) -> dict[str, TemplateInstance]:
        """Returns the queries that are instances of templates; none if the search for templates
        fails.
        """
        try:
            with self.guard(len(batch)):
                return rows_of(batch, self.known)
        except LevadaError:
            raise
        except Exception:  # each alone shows the query on which Levada fails
            return {}

    def _check_ends(self, queries: Sequence[Registered]) -> None:
        """Checks that queries with an end can end."""
        from levada.runtime.publication.registered_query import check_end

        for query in queries:
            with note(query.name):
                if not query.alike.windows:
                    raise UsageError(
                        f"The query {query.name} has no window: it is answered once, and has no "
                        "end (until, lifetime)."
                    )
                if self.begins is not None:
                    check_end(query.name, query.options, self.begins(query.alike))
                    query.lifetime.may_be_over = True  # when the plan has it

    def _first_of(
        self, batch: Sequence[QueryRequest], rows: Mapping[str, TemplateInstance]
    ) -> dict[int, Prepared]:
        """Returns one query for each template, by the template's id. All instances of a template
        share its warnings and the names of its streams.
        """
        firsts = {id(rows[q.name].template): q for q in reversed(batch) if q.name in rows}
        return {template: prepare(asked, self.known) for template, asked in firsts.items()}

    def check_start(self, *, once: bool, is_new: bool) -> None:
        """Checks queries and streams before a start makes a file. ``is_new``: there is no
        checkpoint. Raises ``UsageError``.
        """
        from levada.runtime.publication.registered_query import check_end

        for query in self.queries.values() if is_new else ():
            check_end(query.name, query.options, MIN)
        for config in self.streams.values() if once else ():
            config.check_once()

    def begin(self) -> None:
        """Ends the declarations before the start of the engine. Warns about missing streams and
        data of queries.
        """
        with self.lock:
            self._begun = True
            for name in dict.fromkeys(self._unsure):
                if (query := self.queries.get(name)) is not None:
                    asked = QueryRequest(query.text, name, query.dialect, query.options)
                    self._warn(prepare(asked, self.known), only_of_data=True)
            self._unsure = []
            self._warn_of_unused_ontology()

    def _warn_of_unused_ontology(self) -> None:
        """Warns if files of an ontology are named, and no query has entailment."""
        regimes = {query.options.entailment or Regime.NONE for query in self.queries.values()}
        if self._ontology_files and regimes == {Regime.NONE}:
            message = "The ontology is not used, since no query has entailment. "
            message += "Say --entailment rdfs or owl; in Python entailment=."
            warnings.warn(message, QuerySlip, stacklevel=4)

    def copy(self) -> Registry:
        """Returns a registry of the same streams and queries that changes independently."""
        with self.lock:
            other = copy(self)
            other.lock, other.known = threading.RLock(), self.known.copy()
            other.is_trial, other.trees = True, {}
            other.queries, other._folded = dict(self.queries), dict(self._folded)
            other.dropped, other.expiring, other._unsure = set(), [], []
            return other

    def take_over(self, other: Registry) -> None:
        """Takes over the queries of a copy. This registry must not have changed since the copy."""
        self.known, self.queries, self._folded = other.known, other.queries, other._folded
        self.expiring += other.expiring
        self._count = other._count

    def check_work(self) -> None:
        """Raises ``UsageError`` if there are neither streams nor queries, declared or restored."""
        if not self.streams and not self.queries:
            hint = (
                "Name a stream with engine.stream(name, path), or register a query without windows."
            )
            raise UsageError("The engine has no stream and no query to read once.", hint=hint)

    def _warn(self, query: Prepared, *, only_of_data: bool = False) -> None:
        try:
            query_warnings = query.warnings
        except QueryFailureError:  # only the warnings fail: the query may work
            return
        sure = []
        for warning in query_warnings:
            if warning.span is None and warning.message in self._warned_of_ontology:
                continue  # the ontology is the same for all queries
            if warning.span is None:
                self._warned_of_ontology.add(warning.message)
            if warning.of_data and not self._begun:
                self._unsure.append(query.asked.name)
            elif warning.of_data or not only_of_data:
                sure.append(warning)
        for sentence in show_warnings(sure, query.asked.text):
            _warn_about(query, sentence)

    def _check_names(self, batch: Sequence[QueryRequest]) -> None:
        """Checks that no two names are equal or differ only in case."""
        names: dict[str, str] = {}
        for asked in batch:
            with note(asked.name):
                folded = check_query_name(asked.name).casefold()
                other = names.get(folded) or self._name_ignoring_case(folded)
                if other == asked.name:
                    hint = "Unregister it first, or choose another name."
                    raise UsageError(f"There is a query {asked.name} already.", hint=hint)
                if other is not None:
                    raise UsageError(
                        f"The name of the query {asked.name} differs from {other} by case only.",
                        hint="Some disks are blind to case, and results are in a folder of the "
                        "name: choose another one.",
                    )
                names[folded] = asked.name

    def _name_ignoring_case(self, folded: str) -> str | None:
        """Returns the query whose name equals ``folded`` on a disk that ignores case."""
        return folded if folded in self.queries else self._folded.get(folded)

    def _with_entailment(self, batch: Sequence[QueryRequest]) -> list[QueryRequest]:
        """Returns the queries, with the engine's entailment where a query sets none."""
        options_by_id: dict[int, QueryOptions] = {}
        for asked in batch:
            options = asked.options
            if id(options) not in options_by_id:
                entailment = options.entailment or self._regime
                options_by_id[id(options)] = replace(options, entailment=entailment)
        return [
            QueryRequest(asked.text, asked.name, asked.dialect, options_by_id[id(asked.options)])
            for asked in batch
        ]

    def get(self, name: str, lifetime: Lifetime | None = None) -> Registered:
        """Returns the query of this name. With ``lifetime`` it must be the query with that
        lifetime. Raises ``UsageError`` for any other.
        """
        if name not in self.queries:
            raise UsageError(f"There is no query {name}.", hint=near(name, self.queries))
        query = self.queries[name]
        if lifetime is not None and query.lifetime is not lifetime:
            raise UsageError(f"This query {name} has been taken out; another one has its name.")
        return query

    def lifetime_of(self, name: str) -> Lifetime | None:
        """Returns the lifetime of the query of this name, or None without such a query."""
        query = self.queries.get(name)
        return None if query is None else query.lifetime

    def bring_back(self, query: Registered) -> None:
        """Restores a query that was removed just now, as if it had not been removed."""
        self.add([QueryRequest(query.text, query.name, query.dialect, query.options)])
        if query.lifetime.query is not None:
            self.queries[query.name] = query
            self.dropped.discard(query.name)

    def remove(self, name: str, lifetime: Lifetime | None = None) -> None:
        """Removes a query. Raises ``UsageError`` if other queries read its stream."""
        with self.lock:
            query = self.get(name, lifetime)
            self._check_unread(name)
            del self.queries[name]
            self._folded.pop(name.casefold(), None)
            self.known.remove_query(name)
            if query.lifetime.query is None:
                query.lifetime.end(0)
            self.dropped.add(name)
            self.changed, self.edits = True, self.edits + 1

    def _check_unread(self, name: str) -> None:
        if readers := list(self._readers(name)):
            message = f"The stream that the query {name} makes is read by {_list(readers)}."
            raise UsageError(message, hint="Unregister what reads it first.")

    def _readers(self, maker: str) -> Iterator[str]:
        """Yields the queries that read the stream of a query."""
        stream = derived_by(maker)
        if stream in self.known.said.values():
            yield from (
                name
                for name, registered in self.queries.items()
                if any(w.stream == stream for w in registered.alike.windows)
            )


def _measures(form: JoinForm, streams: Mapping[str, StreamConfig]) -> Measures | None:
    """Returns the source of stream statistics, if the form of joins is chosen by statistics."""
    if form not in (JoinForm.AUTO, JoinForm.REPLICATED):
        return None
    # here: only this needs modules that read streams
    from levada.engine.statistics.stream_statistics import SampledStatistics

    return SampledStatistics(streams)


def _list(names: Sequence[str]) -> str:
    """Lists names for a sentence, at most ``MOST_NAMED`` of them."""
    few = list(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        return f"{', '.join(few)} and {len(names) - MOST_NAMED:,} more"
    return " and ".join([", ".join(few[:-1]), few[-1]] if len(few) > 1 else few)


def _registered_rows(
    batch: Sequence[QueryRequest], rows: Mapping[str, TemplateInstance]
) -> dict[str, Registered]:
    """Returns the queries of a batch that are instances of templates."""
    from levada.runtime.publication.registered_query import Registered

    spoken: dict[int, str] = {}  # of a template: the words of its texts are the same
    registered: dict[str, Registered] = {}
    for asked in batch:
        row = rows.get(asked.name)
        if row is not None:
            at = id(row.template)
            dialect = spoken[at] if at in spoken else spoken.setdefault(at, asked.spoken)
            said = _kept_text(asked.text, row)
            registered[asked.name] = Registered(asked.name, said, dialect, asked.options, row)
    return registered


def _kept_text(text: str, meaning: a.Query | TemplateInstance) -> str | None:
    """Returns the text to keep, or None where the meaning of the template instance contains it."""
    return None if isinstance(meaning, TemplateInstance) and meaning.text == text else text


def _warn_about(query: Prepared, sentence: str) -> None:
    # at the caller of ``Engine.register_all`` or ``Engine.start``
    warnings.warn(f"{query.asked.name}: {sentence}", QuerySlip, stacklevel=5)
