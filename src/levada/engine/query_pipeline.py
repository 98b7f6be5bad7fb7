"""The query path: a query's text becomes a plan. This is its table of contents.

    ast        the tree of the text                       language/
    algebra    its meaning, names as in the text          language/translate/
    bound      the names of existing streams and graphs   engine/name_resolution.py
    optimized  after entailment and the other rules       plan/optimizer/pipeline.py
    physical   the operators                              plan/lowering/

The engine, ``levada check`` and ``levada explain`` share this path, so the explained plan is the
one that runs. Each stage is computed from the previous one at its first use, and kept. The engine
binds the names of a batch once it has the algebra of all its queries. It lowers them when it builds
the plan (``share``), where derived streams have numbers. All errors are the user's, with the
query's name as a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from levada.core.event_time import MIN
from levada.core.gc_control import collection_paused
from levada.core.stream_facts import StreamFacts
from levada.engine.name_resolution import NameScope, bind_names
from levada.engine.query_request import QueryRequest, note
from levada.errors import (
    LevadaError,
    QueryError,
    QueryFailureError,
    QuerySyntaxError,
    Span,
)
from levada.language import parse
from levada.language.cql.ast import Script
from levada.language.cql.parser import parse_script
from levada.language.dialects.detect import STREAM, is_cql
from levada.language.sparql.ast import Constant, QueryUnit
from levada.language.translate.sparql.translate import translate
from levada.language.translate.sparql.windows import iri
from levada.language.warnings.sparql import warnings_of
from levada.language.warnings.warning import QueryWarning
from levada.plan.logical import nodes as a
from levada.plan.logical.ontology_schema import Regime
from levada.plan.logical.traversal import memoizing
from levada.plan.lowering.lower import Lowered, lower
from levada.plan.optimizer.pipeline import optimize
from levada.plan.optimizer.rule import Context
from levada.plan.sharing.regions.regions import Regions, check_reach
from levada.plan.sharing.sharing_modes import DEFAULT, Sharing
from levada.plan.topology.trial_planning import check_plan

if TYPE_CHECKING:
    from levada.plan.topology.topology import Topology

T = TypeVar("T")
_FILE_NAME = re.compile(
    r"[\w./\\:~-]+\.(?:rq|sparql|sql|txt|cql|rspql|csparql|sparqlstream|cqels(?:ql|2)?)"
)


def prepare(
    asked: QueryRequest, known: NameScope, tree: QueryUnit | Script | None = None
) -> Prepared:
    """Returns a query's path from text to operators. A stage raises ``LevadaError`` at its first
    use. ``tree``: the parsed text, if there is one.

    >>> text = "SELECT ?s FROM NAMED WINDOW <w> ON <e:s> [RANGE PT4S STEP PT2S] "
    >>> text += "{ WINDOW <w> { ?s ?p 1 } }"
    >>> names = NameScope({"s": StreamFacts(), "e:s": StreamFacts()})
    >>> query = prepare(QueryRequest(text, "q"), names)
    >>> query.optimized_query.windows[0].stream, query.physical.root.stage
    ('e:s', 1)
    """
    query = Prepared(asked, known)
    if tree is not None:
        query.__dict__["ast"] = tree
    return query


class _stage(Generic[T]):  # noqa: N801 as a decorator
    """A stage that is computed once and adds the query's name to errors. Threads that prepare other
    queries do not wait for it, as they would with Python 3.11's ``cached_property``.
    """

    def __init__(self, make: Callable[[Prepared], T]) -> None:
        self._make, self._name = make, make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, query: Prepared, owner: type[Prepared]) -> T:
        with note(query.asked.name), collection_paused(), memoizing():
            try:
                made = query.__dict__[self._name] = self._make(query)
            except RecursionError:
                text = query.asked.text
                raise QueryError("The query is nested too deeply.", text=text) from None
            except LevadaError:
                raise
            except Exception as error:
                raise QueryFailureError.from_error(error, query.asked.text) from error
        return made


@dataclass(frozen=True)
class Prepared:
    """A query at every stage of its path."""

    asked: QueryRequest
    known: NameScope

    @_stage
    def ast(self) -> QueryUnit | Script:
        """Returns the tree of the text."""
        try:
            if is_cql(self.asked.spoken):
                return parse_script(self.asked.text, quoted_texts=self.asked.spoken == STREAM.name)
            return parse(self.asked.text, self.asked.dialect)
        except QuerySyntaxError as error:
            if _FILE_NAME.fullmatch(self.asked.text.strip()):
                error.hint = "This is the name of a file: pass its text, Path(..).read_text()."
            raise

    @_stage
    def algebra(self) -> a.Query:
        """Returns the meaning of the text. Streams have the names of the text."""
        if is_cql(self.asked.spoken):
            return _translate_cql(self.asked, self.known)  # it parses the views, too
        return _translate_sparql(self.ast, self.asked, self.known)

    @property
    def regime(self) -> Regime:
        """Returns the entailment: that of the text, else that of the options."""
        tree = None if is_cql(self.asked.spoken) else self.ast
        if isinstance(tree, QueryUnit) and tree.entailment:
            return Regime(tree.entailment)
        return self.asked.options.entailment or Regime.NONE

    @_stage
    def warnings(self) -> tuple[QueryWarning, ...]:
        """Returns the certain mistakes in a query that can be run nevertheless, and the axioms of
        the ontology that it does not use.
        """
        if not is_cql(self.asked.spoken) and isinstance(tree := self.ast, QueryUnit):
            of_rdf = [name for name, facts in self.known.streams.items() if facts.schema is None]
            slips = warnings_of(tree, self.asked.text, of_rdf, self.known.graphs)
            regime = self.regime
            unused = self.known.ontology.unused_axioms(regime) if regime is not Regime.NONE else ()
            return *slips, *(QueryWarning(axioms.message, None, axioms.hint) for axioms in unused)
        from levada.language.warnings.cql import warnings_of_cql  # as in _translate_cql

        return warnings_of_cql(self.asked.text, is_sql=self.asked.spoken != STREAM.name)

    @_stage
    def bound(self) -> a.Query:
        """Returns the query over existing streams and graphs, with its regions."""
        asked, known = self.asked, self.known
        if known.regions is not None:
            check_reach(asked.name, asked.options.region, known.regions, known.of_streams.values())
        return bind_names(self.algebra, self.asked, self.known, self._places)

    @property
    def _places(self) -> dict[str, Span]:
        """Returns the places where the text names its streams. Translation returns those of CQL."""
        if is_cql(self.asked.spoken) or not isinstance(tree := self.ast, QueryUnit):
            return {}
        named = (clause.stream for clause in tree.windows)
        return {iri(name): name.span for name in named if isinstance(name, Constant)}

    @_stage
    def optimized_query(self) -> a.Query:
        """Returns the query after entailment, if its options request it, and after the other
        rules.
        """
        entails = self.regime is not Regime.NONE and not is_cql(self.asked.spoken)
        ontology = self.known.ontology
        return optimize(self.bound, Context(ontology.schema(self.regime) if entails else None))

    @_stage
    def plannable(self) -> a.Query:
        """Returns ``optimized_query``, once it is certain that it can be planned."""
        check_plan(self.optimized_query, self.known.streams, self.asked.text)
        return self.optimized_query

    @_stage
    def physical(self) -> Lowered:
        """Returns the operators."""
        query, streams = self.plannable, self.known.streams
        return lower(
            query,
            {w.stream: streams.get(w.stream, StreamFacts()) for w in query.windows},
            empty_reports=self.asked.options.empty_reports,
            replaceable=self.known.replaceable,
            joins=self.known.joins,
            measures=self.known.measures,
        )


@collection_paused()
def share(queries: Iterable[Prepared], known: NameScope, sharing: Sharing = DEFAULT) -> Topology:
    """Returns the shared topology of queries that begin together, makers before readers."""
    from levada.plan.topology.topology import Topology  # here: `levada check` shares nothing

    topology = Topology(known.streams, known.replaceable, sharing, known.joins)
    topology.measures = known.measures
    topology.sharing.sites.regions = known.regions or Regions()
    topology.sharing.sites.of_stream = known.of_streams
    for query in queries:
        topology.add(
            query.asked.name,
            topology.place(query.plannable),
            MIN,
            empty_reports=query.asked.options.empty_reports,
            region=query.asked.options.region,
        )
    topology.install()
    return topology


def _translate_cql(asked: QueryRequest, known: NameScope) -> a.Query:
    from levada.language.translate.cql.translate import (
        translate_cql,  # here: SPARQL does not need it
    )

    streams = known.streams.items()
    schemas = {name: facts.schema for name, facts in streams if facts.schema is not None}
    relations = [name for name, facts in streams if facts.sign]
    rdf = [name for name, facts in streams if facts.schema is None]
    return translate_cql(
        asked.text, schemas, asked.options, relations,
        dialect=asked.spoken, rdf=rdf, tables=known.tables,
    )  # fmt: skip


def _translate_sparql(tree: QueryUnit | Script, asked: QueryRequest, known: NameScope) -> a.Query:
    assert isinstance(tree, QueryUnit), "all languages but CQL have one kind of tree"
    graphs = None if known.graphs is None else {g for g in known.graphs if g is not None}
    streams = [name for name, facts in known.streams.items() if facts.schema is None]
    return translate(tree, asked.options, text=asked.text, graphs=graphs, streams=streams)
