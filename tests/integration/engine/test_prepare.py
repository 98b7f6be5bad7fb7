"""The query path: each stage by itself, what is told of a query that fails at one, and that what
is explained is what an engine registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from levada.cli.app.app_file import App, Options, QuerySource, StaticSource
from levada.cli.app.prepare_queries import known_to, prepare_app
from levada.cli.explain import explain
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.static_files import static_source
from levada.core.stream_facts import StreamFacts
from levada.engine.engine import Engine
from levada.engine.name_resolution import NameScope, maker_of, makers_read, order_by_makers
from levada.engine.ontology import Ontology
from levada.engine.query_pipeline import prepare, share
from levada.engine.query_request import QueryRequest
from levada.errors import QuerySyntaxError, UnknownNameError, UsageError
from levada.language.cql.ast import Script
from levada.language.sparql.ast import QueryUnit
from levada.plan.logical import nodes as a
from levada.plan.logical.ontology_schema import SUB_CLASS
from levada.plan.logical.query_options import WORDS, options_of
from levada.plan.lowering.lower import Lowered
from levada.plan.lowering.print_physical import show_operators
from levada.plan.topology import topology as topology_module
from levada.plan.topology.print_topology import show
from levada.plan.topology.topology import Topology
from levada.runtime.executor import cores

PREFIX = "PREFIX : <http://e/>\n"
OVER = "FROM NAMED WINDOW :w ON :temp [RANGE PT10S STEP PT5S] WHERE { WINDOW :w { ?s :v ?v } }"
ROOMS = f"{PREFIX}SELECT ?s (COUNT(*) AS ?n) {OVER} GROUP BY ?s"
MAKE = f"{PREFIX}REGISTER RSTREAM :made AS CONSTRUCT {{ ?s :v ?v }} {OVER}"
READ = ROOMS.replace(":temp", ":made")
CQL = "Rstream(Select k, Count(*) From A [Range 10 s Slide 5 s] Group By k)"
RDF = StreamFacts()


def known(**more: Any) -> NameScope:
    return NameScope({"temp": RDF, "A": StreamFacts({"k": "integer"})}, graphs={None}, **more)


# -- the stages --


def test_each_stage_is_made_once_from_the_one_before() -> None:
    query = prepare(QueryRequest(ROOMS, "q"), known())
    assert isinstance(query.ast, QueryUnit)
    assert query.algebra.windows[0].stream == "http://e/temp"
    assert query.bound.windows[0].stream == "temp"
    assert query.plannable is query.optimized_query
    assert query.physical is query.physical
    assert query.physical.root.variables == ("s", "n")
    assert isinstance(prepare(QueryRequest(CQL, "c"), known()).ast, Script)


def test_a_stage_needs_only_those_before_it() -> None:
    """So the tree of a query can be seen whose streams nobody has named."""
    query = prepare(QueryRequest(ROOMS, "q"), NameScope())
    assert query.algebra.windows[0].stream == "http://e/temp"
    with pytest.raises(UnknownNameError, match="There is no stream http://e/temp"):
        _ = query.bound


@pytest.mark.parametrize(
    ("text", "error"),
    [("SELECT ?s WERE {}", QuerySyntaxError), (READ, UnknownNameError), (CQL, UnknownNameError)],
)
def test_an_error_says_once_which_query_it_is_about(text: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        _ = prepare(QueryRequest(text, "storms"), NameScope({"temp": RDF})).physical
    assert caught.value.__notes__ == ["storms"]


def test_entailment_comes_before_the_rules_and_only_where_it_is_asked_for() -> None:
    ontology = Ontology([static_source([f"<http://e/Lab> {SUB_CLASS} <http://e/Room>"])])
    text = ROOMS.replace("?s :v ?v", "?s a :Room")
    asked = QueryRequest(text, "q", options=options_of({"entailment": "rdfs"}))
    assert isinstance(leaf(prepare(asked, known(ontology=ontology)).optimized_query), a.Entailed)
    assert isinstance(
        leaf(prepare(QueryRequest(text, "q"), known(ontology=ontology)).optimized_query), a.Bgp
    )
    with pytest.raises(UsageError, match="needs an ontology"):
        _ = prepare(asked, known()).optimized_query


def leaf(query: a.Query) -> a.Node:
    node: Any = query.pattern
    while hasattr(node, "child"):
        node = node.child
    return node


# -- names --


def test_names_are_kept_for_the_queries_to_come() -> None:
    names = known()
    _ = prepare(QueryRequest(ROOMS, "q"), names).bound
    assert names.said == {"http://e/temp": "temp"}
    with pytest.raises(UsageError, match="The word temp could be"):
        _ = prepare(QueryRequest(ROOMS.replace("http://e/", "http://f/"), "other"), names).bound
    assert names.said == {"http://e/temp": "temp"}


def test_a_language_reads_its_kind_of_streams() -> None:
    rows = known()
    with pytest.raises(UsageError, match="holds tuples, which a query in rspql does not read"):
        _ = prepare(QueryRequest(ROOMS.replace(":temp", "<http://e/A>"), "q"), rows).bound


def test_makers_come_before_readers_and_not_in_a_circle() -> None:
    names = known()
    for name, text in (("read", READ), ("make", MAKE)):
        names.add_query(name, prepare(QueryRequest(text, name), names).algebra)
    assert order_by_makers(["read", "make"], names) == ["make", "read"]
    assert makers_read(names.queries["read"], names) == {"make"}
    assert (maker_of("http://e/temp", names), maker_of("http://e/none", names)) == (None, None)
    again = MAKE.replace(":made AS", ":more AS").replace("ON :temp", "ON :made")
    names.add_query("more", prepare(QueryRequest(again, "more"), names).algebra)
    names.remove_query("make")
    turned = MAKE.replace("ON :temp", "ON :more")
    names.add_query("make", prepare(QueryRequest(turned, "make"), names).algebra)
    with pytest.raises(UsageError, match="in a circle"):
        order_by_makers(["make", "more"], names)
    names.remove_query("more")
    assert maker_of("http://e/more", names) is None


def test_only_a_construct_with_windows_makes_a_stream() -> None:
    names = known()
    names.add_query("made", prepare(QueryRequest(ROOMS, "made"), names).algebra)
    with pytest.raises(UsageError, match="The SELECT query made makes no triples"):
        _ = prepare(QueryRequest(READ, "read"), names).bound


# -- what is explained is what runs --

SAID: dict[str, list[Mapping[str, Any]]] = {
    "bounds": [{"bounds": "[)"}, {"bounds": "(]"}],
    "t0": [{"t0": 7000}, {"t0": "1970-01-01T00:00:03Z"}],
    "report": [
        {"report": policy}
        for policy in ("close", "change", "nonempty", "periodic:3s", "periodic:3s+nonempty")
    ],
    "empty_reports": [
        {"empty_reports": True},
        {"empty_reports": True, "report": "periodic:3s"},
        {"empty_reports": True, "bounds": "(]", "t0": 7000},
    ],
    "entailment": [{"entailment": "none"}, {"entailment": "rdfs"}, {"entailment": "owl"}],
}
TEXTS = {
    "rooms": ROOMS,
    "hot": f"{PREFIX}REGISTER ISTREAM :q AS SELECT ?s ?v {OVER.replace('} }', '} . ?s a :Room }')}",
    "any": f"{PREFIX}ASK {OVER}",
    "whole": f"{PREFIX}SELECT (COUNT(*) AS ?n) {OVER}",
    "last": f"{PREFIX}SELECT ?v {OVER.replace('[RANGE PT10S STEP PT5S]', '[TRIPLES 3]')}",
    "once": f"{PREFIX}SELECT ?s {{ ?s a :Room }}",
    "make": MAKE,
    "tuples": CQL,
    "read": READ,
}


_MADE = re.compile(r"(?<=make)#\d+")  # the stream that a query makes has a number in a topology


def test_every_option_is_walked() -> None:
    # a query that has ended is in no topology, and there is no region here:
    # tests/integration/engine/test_queries_that_end.py and test_regions.py have those
    others = ("until", "lifetime", "region")
    assert tuple(SAID) == tuple(word for word in WORDS if word not in others)
    assert all(word in said for word, cases in SAID.items() for said in cases)


@pytest.fixture
def app(tmp_path: Path) -> App:
    (tmp_path / "t.nt").write_text("<http://e/a> <http://e/v> 1 1000 .\n")
    (tmp_path / "a.csv").write_text("k,ts\n1,1000\n")
    (tmp_path / "static.nt").write_text(
        f"<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Lab> .\n"
        f"<http://e/Lab> {SUB_CLASS} <http://e/Room> .\n"
    )
    return App(
        streams=(
            StreamConfig.from_options("temp", str(tmp_path / "t.nt")),
            StreamConfig.from_options("A", str(tmp_path / "a.csv"), schema="k:integer"),
        ),
        static=(StaticSource(str(tmp_path / "static.nt"), reload=True),),
        queries=tuple(QuerySource(name, text) for name, text in TEXTS.items()),
    )


@contextmanager
def lowered(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Lowered]]:
    """What a topology has lowered, by the texts of the queries."""
    found: dict[str, Lowered] = {}
    lower = topology_module.lower

    def seen(query: a.Query, *rest: Any, **more: Any) -> Lowered:
        found[query.text] = lower(query, *rest, **more)
        return found[query.text]

    with monkeypatch.context() as patch:
        patch.setattr(topology_module, "lower", seen)
        yield found


def registered(app: App) -> Topology:
    """The topology of an engine that has registered the application's queries."""
    with Engine(spark=False, partitions=1) as engine:
        for config in app.streams:
            engine.stream(config.name, config)
        for static in app.static:
            engine.static(static.path, static.graph, static.format, reload=static.reload)
        for query in app.queries:
            engine.register(query.text, name=query.name, **{**app.options.said, **query.said})
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None
        found = engine._driver._catalog._topology
        assert found is not None
        return found


@pytest.mark.long
@pytest.mark.parametrize("said", [*chain.from_iterable(SAID.values())], ids=str)
def test_explain_shows_the_plan_that_the_engine_registers(
    app: App, said: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name for name in TEXTS if name != "last" or said.get("report") != "close"]
    sources = tuple(query for query in app.queries if query.name in names)  # it never closes
    app = App(app.streams, app.static, sources, Options(said=said))
    with lowered(monkeypatch) as operators:
        engines = registered(app)
    assert list(explain(app, names, "topology", as_json=False)) == [
        show(engines, cores("local[*]"))
    ]
    known_names = known_to(app)
    queries = {query.asked.name: query for query in prepare_app(app, known_names)}
    explained = share((queries[name] for name in names), known_names)
    assert [node.shape for node in engines.graph.nodes.values()] == [
        node.shape for node in explained.graph.nodes.values()
    ]
    assert [node.members.rows for node in engines.graph.nodes.values()] == [
        node.members.rows for node in explained.graph.nodes.values()
    ]
    for name in names:
        (shown,) = explain(app, [name], "physical", as_json=False)
        runs = operators[TEXTS[name]]
        assert shown == _MADE.sub("#", show_operators(runs.root))
        assert queries[name].physical.show_empty == runs.show_empty


def test_the_options_of_a_query_win_and_reach_the_plan(app: App) -> None:
    own = QuerySource("own", ROOMS, said={"empty_reports": True})
    both = App(app.streams, app.static, (QuerySource("plain", ROOMS), own))
    plain, empty = (next(explain(both, [n], "physical", as_json=False)) for n in ("plain", "own"))
    assert "(panes (s) ((COUNT)))" in plain
    assert "(panes (s) ((COUNT)) enumerated)" in empty
