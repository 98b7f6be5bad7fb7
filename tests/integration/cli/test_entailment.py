"""Entailment from the outside: options, app files, explain, refusals; a changed ontology makes a
new query.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada.cli.app.app_file import App, Options, QuerySource, load_app
from levada.cli.main import main
from levada.engine.engine import Engine
from levada.errors import UsageError

SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
QUERY = """PREFIX : <http://e/>
SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S] WHERE { WINDOW :w { ?x a :Room } }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rooms.rq").write_text(QUERY)
    Path("o.nt").write_text(f"<http://e/Hall> {SUB} <http://e/Room> .\n")
    Path("more.nt").write_text(f"<http://e/Lab> {SUB} <http://e/Room> .\n")
    Path("s.nt").write_text(
        f"<http://e/h> {TYPE} <http://e/Hall> 1000 .\n<http://e/l> {TYPE} <http://e/Lab> 2000 .\n"
    )
    return tmp_path


def answer(engine: Engine, query: str = QUERY, **options: Any) -> list[str]:
    """What a query finds in ``s.nt``."""
    engine.stream("http://e/s", "s.nt")
    found = engine.register(query, **options)
    engine.start(once=True)
    engine.await_end()
    return sorted(x for report in found.results() for x in report.rows["x"].to_list())


def test_the_engine_has_a_regime_and_a_query_its_own(folder: Path) -> None:
    with Engine(spark=False, entailment="rdfs", ontology="o.nt") as engine:
        assert answer(engine) == ["<http://e/h>"]
    with Engine(spark=False, entailment="rdfs", ontology=["o.nt", "more.nt"]) as engine:
        assert answer(engine) == ["<http://e/h>", "<http://e/l>"]
    with Engine(spark=False, entailment="rdfs", ontology=["o.nt"]) as engine:
        assert answer(engine, entailment="none") == []
    with Engine(spark=False, ontology=["o.nt"]) as engine:
        assert answer(engine, entailment="owl") == ["<http://e/h>"]


def test_without_an_ontology_static_data_are_it_whatever_their_graph(folder: Path) -> None:
    with Engine(spark=False, entailment="rdfs") as engine:
        engine.static("o.nt", graph="http://e/g")
        engine.static([f"<http://e/Lab> {SUB} <http://e/Room>"])
        assert answer(engine) == ["<http://e/h>", "<http://e/l>"]
    with Engine(spark=False, entailment="rdfs", ontology="more.nt") as engine:
        engine.static("o.nt")
        assert answer(engine) == ["<http://e/l>"]


def test_static_data_that_come_after_a_query_count_for_it(folder: Path) -> None:
    with Engine(spark=False, entailment="rdfs") as engine:
        engine.stream("http://e/s", "s.nt")
        engine.static("o.nt")
        found = engine.register(QUERY)
        engine.static("more.nt")
        engine.start(once=True)
        engine.await_end()
        assert sum(len(report.rows) for report in found.results()) == 2


def test_blank_nodes_of_an_ontology_are_those_of_static_data(folder: Path) -> None:
    Path("b.ttl").write_text(f"@prefix : <http://e/> . :Hall {SUB} [ :floor 1 ] .")
    text = (
        "PREFIX : <http://e/> SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S] "
        "WHERE { WINDOW :w { ?x a ?c } ?c :floor 1 }"
    )
    with Engine(spark=False, entailment="rdfs") as engine:
        engine.static("b.ttl")
        assert answer(engine, text) == ["<http://e/h>"]
    with Engine(spark=False, entailment="rdfs") as engine:
        engine.static(
            [
                f"<http://e/Hall> {SUB} _:c",
                '_:c <http://e/floor> "1"^^<http://www.w3.org/2001/XMLSchema#integer>',
            ]
        )
        assert answer(engine, text) == ["<http://e/h>"]


def test_a_changed_ontology_makes_a_new_query(folder: Path) -> None:
    def run(ontology: str) -> list[str]:
        with Engine(spark=False, checkpoint="ck", entailment="rdfs", ontology=ontology) as engine:
            engine.stream("http://e/s", "s.nt")
            engine.register(QUERY, name="q")
            engine.start(once=True, keep_open=True)
            engine.await_end()
            plan = engine._driver.epochs.plan
            assert plan is not None
            return [str(plan.version), str(plan.queries["q"].start)]

    first = run("o.nt")
    assert run("o.nt") == first
    version, start = run("more.nt")
    assert version != first[0] and start == "2001"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--entailment", "rdfs"], "Entailment rdfs needs an ontology, and there is none."),
        (["--entailment", "rdfs", "--ontology", "no.nt"], "There is no ontology file no.nt."),
        (
            ["--entailment", "owl", "--ontology", "bad.nt"],
            "gives it a domain or range, which is not supported.",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    Path("bad.nt").write_text(
        f"<http://e/p> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> {TYPE} .\n"
    )
    assert main(["check", "rooms.rq", *options]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ").replace("  ", " ")


def test_an_unknown_regime_names_the_known(folder: Path) -> None:
    with Engine(spark=False) as engine, pytest.raises(UsageError) as caught:
        engine.register(QUERY, entailment="rdf")  # type: ignore[arg-type]
    assert "Did you mean rdfs?" in str(caught.value)
    with pytest.raises(UsageError, match="There is no entailment OWL"):
        Engine(spark=False, entailment="OWL")


def test_explain_shows_the_alternatives(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "explain",
        "rooms.rq",
        "--entailment",
        "rdfs",
        "--ontology",
        "o.nt",
        "--ontology",
        "more.nt",
    ]
    assert main([*given, "--stage", "optimized"]) == 0
    shown = capsys.readouterr().out
    assert (
        f"(entailed (window 0) (?x {TYPE} <http://e/Room>)" in shown
        and f"(?x {TYPE} <http://e/Lab>)" in shown
    )
    assert main([*given]) == 0
    assert "3 alternatives" in capsys.readouterr().out
    assert main([*given, "--stage", "algebra"]) == 0
    assert "entailed" not in capsys.readouterr().out


def test_many_alternatives_are_counted_and_not_listed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("o.nt").write_text(
        "".join(f"<http://e/C{i}> {SUB} <http://e/Room> .\n" for i in range(99))
    )
    assert (
        main(
            [
                "explain",
                "rooms.rq",
                "--stage",
                "optimized",
                "--entailment",
                "rdfs",
                "--ontology",
                "o.nt",
            ]
        )
        == 0
    )
    assert "and 76 more" in capsys.readouterr().out


def test_the_app_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("app.yaml").write_text(
        "streams: {'http://e/s': {path: s.nt}}\n"
        "queries: {rooms: {file: rooms.rq}, plain: {file: rooms.rq, entailment: none}}\n"
        "options: {entailment: rdfs, ontology: [o.nt, more.nt]}\n"
    )
    app = load_app(folder / "app.yaml")
    assert app.options.ontology == (str(folder / "o.nt"), str(folder / "more.nt"))
    assert [str(app.query_options(query).entailment) for query in app.queries] == ["rdfs", "none"]
    assert main(["explain", "rooms", "--app", "app.yaml", "--stage", "optimized"]) == 0
    assert "entailed" in capsys.readouterr().out
    Path("one.yaml").write_text("options: {ontology: o.nt}\n")
    assert load_app(folder / "one.yaml").options.ontology == (str(folder / "o.nt"),)
    Path("wrong.yaml").write_text("options: {entailment: rdf}\n")
    with pytest.raises(UsageError, match=r"options.entailment is none, rdfs or owl"):
        load_app(folder / "wrong.yaml")


def test_a_query_goes_by_the_application_unless_it_says() -> None:
    app = App(options=Options(said={"entailment": "owl"}))
    assert str(app.query_options(QuerySource("q", "")).entailment) == "owl"
    assert (
        str(app.query_options(QuerySource("q", "", said={"entailment": "rdfs"})).entailment)
        == "rdfs"
    )


def test_describe_and_construct_see_what_is_entailed(folder: Path) -> None:
    window = "FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S]"
    with Engine(spark=False, entailment="rdfs", ontology="o.nt") as engine:
        engine.stream("http://e/s", "s.nt")
        described = engine.register(f"PREFIX : <http://e/> DESCRIBE :h {window}")
        made = engine.register(
            f"PREFIX : <http://e/> CONSTRUCT {{ ?c :of ?x }} {window} {{ WINDOW :w {{ ?x a ?c }} }}"
        )
        engine.start(once=True)
        engine.await_end()
        (whole,), (graph,) = described.results(), made.results()
        assert set(str(whole.graph).split(" .\n")) == {
            f"<http://e/h> {TYPE} <http://e/{c}>" for c in ("Hall", "Room")
        } | {""}
        assert str(graph.graph).count("<http://e/of>") == 3
        patterns = [pattern for query in engine.status().queries for pattern in query.patterns]
        assert any(p.text.endswith(", entailed") and p.matched_triples for p in patterns)


def test_rows_of_tables_entail_nothing(folder: Path) -> None:
    Path("a.csv").write_text("k,ts\n1,1000\n")
    with Engine(spark=False, entailment="rdfs") as engine:
        engine.stream("A", "a.csv", schema="k:integer")
        found = engine.register("Rstream(Select k From A [Now])")
        engine.start(once=True)
        engine.await_end()
        assert sum(len(report.rows) for report in found.results()) == 1


def test_status_says_that_no_triple_entails_a_match(folder: Path) -> None:
    with Engine(spark=False, entailment="rdfs", ontology="o.nt") as engine:
        assert answer(engine, QUERY.replace("?x a :Room", "?x a :Room ; a :Garden")) == []
        (query,) = engine.status().queries
        assert (
            query.reason
            == f"No triple of http://e/s has matched the pattern ?a {TYPE} <http://e/Garden>."
        )
    with Engine(spark=False, entailment="rdfs", ontology="more.nt") as engine:
        Path("s.nt").write_text(f"<http://e/h> {TYPE} <http://e/Hall> 1000 .\n")
        assert answer(engine) == []
        (query,) = engine.status().queries
        assert query.reason == (
            f"No triple of http://e/s has matched the pattern ?a {TYPE} <http://e/Room>, entailed."
        )


OWL = "http://www.w3.org/2002/07/owl#"
AXIOMS = f"""@prefix : <http://e/> . @prefix owl: <{OWL}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://e/o> a owl:Ontology ; owl:imports <http://e/other>, <http://e/another> .
:Hall a owl:Class ; rdfs:subClassOf :Room, [ a owl:Restriction ; owl:onProperty :t ;
  owl:someValuesFrom :Value ] ; owl:disjointWith :Lab ; owl:equivalentClass :BigRoom .
:near a owl:ObjectProperty, owl:SymmetricProperty, owl:FunctionalProperty ;
  owl:propertyChainAxiom ( :in :in ) ; owl:inverseOf :beside .
"""
UNUSED = {
    "owl": "o.ttl has 6 axioms that entailment owl does not use: owl:imports 2, "
    "owl:onProperty 1, owl:propertyChainAxiom 1, owl:disjointWith 1, owl:FunctionalProperty 1. "
    "Put what follows from them into the data, or into simpler axioms.",
    "rdfs": "o.ttl has 9 axioms that entailment rdfs does not use: owl:imports 2, "
    "owl:onProperty 1, owl:propertyChainAxiom 1, owl:disjointWith 1, owl:inverseOf 1, "
    "owl:equivalentClass 1, owl:FunctionalProperty 1, owl:SymmetricProperty 1. Entailment owl "
    "uses owl:SymmetricProperty, owl:equivalentClass, owl:inverseOf.",
}


@pytest.mark.parametrize("regime", ["owl", "rdfs"])
def test_axioms_that_entail_nothing_are_named_once(folder: Path, regime: str) -> None:
    Path("o.ttl").write_text(AXIOMS)
    with Engine(spark=False, entailment=regime, ontology=["o.ttl", "more.nt"]) as engine:
        engine.stream("http://e/s", "s.nt")
        with pytest.warns(UserWarning, match="axioms") as warned:
            engine.register(QUERY, name="first")
            engine.register(QUERY.replace("Room", "Lab"), name="second")
    path = folder / UNUSED[regime]
    assert [str(w.message) for w in warned] == [f"first: Warning: The ontology {path}"]


def test_check_names_axioms_that_entail_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("o.ttl").write_text(AXIOMS)
    assert main(["check", "rooms.rq", "--entailment", "owl", "--ontology", "o.ttl"]) == 0
    assert "6 axioms that entailment owl does not use" in capsys.readouterr().err


def test_an_ontology_of_axioms_that_are_used_has_no_warning(
    folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    with Engine(spark=False, entailment="owl", ontology="o.nt") as engine:
        assert answer(engine) == ["<http://e/h>"]
    assert not [w for w in recwarn if "axiom" in str(w.message)]


def test_an_ontology_without_entailment_is_named_at_the_start(folder: Path) -> None:
    unused = pytest.warns(UserWarning, match="The ontology is not used.* Say --entailment rdfs")
    with unused, Engine(spark=False, ontology="o.nt") as engine:
        assert answer(engine) == []
