"""Entailment, case by case, against the reference, which closes each window's content rule
by rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from levada.plan.optimizer.pipeline import disable_rules
from levada.testing.compare import same
from levada.testing.reference_model import Element, Report
from support.entailment_cases import OWL, RDFS, SUB, SUBP, under
from support.generators import Case, CaseQuery, Clause
from support.query_dsl import RANGE, TUMBLING, at, query, runs_of, triples, values
from support.stepped_runs import run_case

ROOMS = (
    f":Hall {SUB} :Room . :Lab {SUB} :Room . :Room {SUB} :Place . :t {SUBP} :measured . "
    f":t <{RDFS}domain> :Hall"
)
WITHIN = (
    f":within a <{OWL}TransitiveProperty> . :contains <{OWL}inverseOf> :within . :in {SUBP} :within"
)
ALIKE = f":a <{OWL}sameAs> :b . :b <{OWL}sameAs> :c . :near a <{OWL}SymmetricProperty>"


def check(
    schema: str, *asked: CaseQuery, static: dict[str | None, str] | None = None,
    regime: str = "owl", **streams: Sequence[Element]
) -> dict[str, list[Report]]:  # fmt: skip
    """Runs the queries in several cuts, compares each with the reference, and returns what
    it says.
    """
    graphs = {g: triples(t) for g, t in (static or {}).items()}
    queries = tuple(under(regime, schema, one) for one in asked)
    case = Case(
        {f"http://e/{n}": tuple(e) for n, e in streams.items()},
        queries,
        0,
        graphs,
        ontology=triples(schema),
    )
    expected = case.expected()
    for rows, partitions, off in runs_of(queries):
        with disable_rules(*off):
            got = run_case(case, epoch_rows=rows, partitions=partitions)
        for one in queries:
            difference = same(expected[one.name], got[one.name])
            assert difference is None, (
                f"{rows} elements an epoch, {partitions} partitions, without {sorted(off)}, "
                f"{one.text}\n{difference}"
            )
    return expected


KINDS = (
    (TUMBLING, "RSTREAM"),
    (RANGE, "ISTREAM"),
    (RANGE, "DSTREAM"),
    (Clause("count", count=5), "RSTREAM"),
    (Clause("session", 1500), "RSTREAM"),
)


def everywhere(
    schema: str, head: str, group: str, tail: str = "", **more: Any
) -> dict[str, list[Report]]:
    """A query over its one window ``:w`` of four kinds: q0 to q4."""
    asked = [
        query(head, group, tail, windows={"w": clause}, output=output, name=f"q{i}")
        for i, (clause, output) in enumerate(KINDS)
    ]
    expected = check(schema, *asked, **more)
    assert any(r.solutions for reports in expected.values() for r in reports), "it says nothing"
    return expected


STREAM = [
    at(1000, ":h a :Hall"),
    at(1000, ":h :t 20"),
    at(2500, ":h :t 21"),
    at(2500, ":l a :Lab, :Room"),
    at(4500, ":h :t 20"),
    at(5500, ":x a :Place"),
    at(9000, ":l :t 5"),
]


def test_a_triple_is_there_once_whatever_entails_it() -> None:
    found = everywhere(ROOMS, "SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?x a :Room }", s=STREAM)
    numbers = [v.partition("^")[0] for row in values(found["q0"], "n") for v in row]
    assert numbers == ['"2"', '"1"', '"1"']  # :h by its class and twice by :t, :l by two classes


def test_enter_and_leave_follow_from_the_first_and_the_last_that_entail_it() -> None:
    [found] = check(
        ROOMS,
        query("SELECT ?x", "WINDOW :w { ?x a :Hall }", windows={"w": RANGE}, output="DSTREAM"),
        s=STREAM[:5],
    ).values()
    assert [report.time for report in found if report.solutions] == [
        7500
    ]  # 3 s after the last triple of :t


@pytest.mark.long
@pytest.mark.parametrize(
    ("head", "group"),
    [
        ("SELECT *", "WINDOW :w { ?s ?p ?o }"),
        ("SELECT ?x ?v", "WINDOW :w { ?x a :Place ; :measured ?v }"),
        ("SELECT ?c (COUNT(DISTINCT ?x) AS ?n)", "WINDOW :w { ?x a ?c . ?x ?p ?o }"),
        ("SELECT ?x", "WINDOW :w { ?x a :Place OPTIONAL { ?x :measured ?v } FILTER(!BOUND(?v)) }"),
        ("SELECT ?x", "WINDOW :w { ?x a :Place FILTER NOT EXISTS { ?x a :Hall } }"),
        ("SELECT ?x ?y", "WINDOW :w { ?x a/^a ?y }"),
        ("SELECT ?x ?y", "WINDOW :w { ?x a* ?y }"),
        ("SELECT ?x ?z", "WINDOW :w { ?x !(:t|a) ?z }"),
    ],
)
def test_rdfs_over_each_kind_of_window(head: str, group: str) -> None:
    tail = "GROUP BY ?c" if "COUNT" in head else ""
    everywhere(ROOMS, head, group, tail, regime="rdfs", s=STREAM)


PARTS = [
    at(1000, ":a :in :b"),
    at(2000, ":c :contains :b"),
    at(3000, ":c :within :d"),
    at(4500, ':d :in :a ; :contains "no"'),
    at(9000, ":b :in :e"),
]


@pytest.mark.parametrize(
    "group",
    [
        "?x :contains ?y",
        ":a :within ?y",
        "?x :within ?x",
        "?x ?p ?y",
        "?x :within/:contains ?y",
        "?x :within* ?y",
        "?x ?p :d",
    ],
)
def test_transitive_and_inverse_properties(group: str) -> None:
    everywhere(WITHIN, "SELECT *", f"WINDOW :w {{ {group} }}", s=PARTS)


@pytest.mark.parametrize(
    "group",
    [
        "?x :near :c",
        "?x :near ?x",
        "?x ?p ?y",
        ":b :near :a",
        "?x a ?c",
        "?x :near ?y . ?y :r ?t",
    ],
)
def test_terms_that_are_the_same(group: str) -> None:
    head = "SELECT *" if "?" in group else "SELECT (1 AS ?one)"
    stream = [
        at(1000, ":a :near :d"),
        at(2000, ':c :near :b ; a :a ; :r "t"'),
        at(3000, ':d :r "u"'),
        at(6000, ":b :near 5"),
    ]
    everywhere(ALIKE, head, f"WINDOW :w {{ {group} }}", s=stream)


def test_a_transitive_property_with_terms_that_are_the_same() -> None:
    everywhere(f"{WITHIN} . {ALIKE}", "SELECT *", "WINDOW :w { ?x :contains ?y }", s=PARTS)
    everywhere(f"{WITHIN} . {ALIKE}", "SELECT *", "WINDOW :w { :d :within ?y }", s=PARTS)


def test_a_chain_that_ends_in_a_literal_says_nothing_of_it() -> None:
    """The property above a transitive one is symmetric: the chain's last term would be a
    subject.
    """
    schema = (
        f":within a <{OWL}TransitiveProperty> ; {SUBP} :near . :near a <{OWL}SymmetricProperty>"
    )
    elements = (at(100, ":a :within :b"), at(200, ':b :within "x"'), at(300, ":c :near :a"))
    expected = everywhere(schema, "SELECT ?x ?y", "WINDOW :w { ?x :near ?y }", s=elements)
    assert not any(value.startswith('"') for value in values(expected["q0"], "x")[0])


@pytest.mark.parametrize(
    "group", ["?x :far ?y", "?x ?p ?y", "?x a ?c", ":b :far ?y", "?x :far+ ?y"]
)
def test_what_is_turned_twice_says_nothing_of_literals_either(group: str) -> None:
    """``:near`` is symmetric and the inverse of ``:far``: of a literal neither way through a turned
    triple can be gone.
    """
    schema = f":near a <{OWL}SymmetricProperty> ; <{OWL}inverseOf> :far . :far <{RDFS}domain> :Far"
    elements = (at(100, ':a :near "x"'), at(200, ":b :near :c"), at(300, ':d :far "y"'))
    everywhere(schema, "SELECT *", f"WINDOW :w {{ {group} }}", s=elements)


def test_patterns_of_several_windows_and_of_static_graphs() -> None:
    asked = [
        query("SELECT ?x ?y ?v", "WINDOW :w { ?x :measured ?v } "
              "WINDOW :o { ?x :within ?y } ?y a :Place", name="both",
              windows={"w": TUMBLING, "o": Clause("range", 5000)}, on={"o": "p"}),
        query("SELECT ?x ?y", "WINDOW :w { ?x a :Room } GRAPH :g { ?x :within ?y }", name="graph"),
        query("SELECT ?c (COUNT(?x) AS ?n)", f"WINDOW :w {{ ?x a ?d }} ?d {SUB} ?c", "GROUP BY ?c",
              name="classes"),
    ]  # fmt: skip
    static = {
        None: f":h a :Lab . :b a :Hall . {ROOMS}",
        "http://e/g": ":h :in :b . :b :in :c . :l :within :b",
    }
    stream = [at(1000, ":h :in :a"), at(2000, ":a :in :b")]
    found = check(f"{ROOMS} . {WITHIN}", *asked, static=static, s=STREAM, p=stream)
    assert all(any(r.solutions for r in reports) for reports in found.values())


def test_static_data_alone() -> None:
    static = {
        None: f"{ROOMS} . :h a :Hall . :l :t 5",
        "http://e/g": f":Hall {SUB} :Big . :x a :Hall",
    }
    once = [
        replace(one, reference=replace(one.reference, windows={}),
                text=one.text.split("FROM NAMED")[0] + one.text[one.text.index("WHERE"):])
        for one in (
            query("SELECT ?x ?c", "?x a ?c", name="types"),
            query("SELECT ?c ?d", f"?c {SUB} ?d", name="classes"),
            query("SELECT ?p ?q", f"?p {SUBP} ?q", name="properties"),
            query("SELECT ?x ?p ?o", "?x ?p ?o", name="all"),
            query("SELECT ?x ?c", "GRAPH :g { ?x a ?c }", name="graph"),
            query("SELECT ?x", f"?x a/{SUB}+ :Place", name="path"),
        )
    ]  # fmt: skip
    found = check(f"{ROOMS} . :Hall {SUB} :Big", *once, static=static, regime="rdfs")
    assert all(any(r.solutions for r in reports) for reports in found.values())


def test_a_promise_of_unique_or_closed_elements_changes_nothing() -> None:
    # the same triple may follow from two that do not repeat, and from triples of two elements
    import tempfile
    from pathlib import Path

    from levada.engine.engine import Engine
    from levada.testing.stream_builders import write_lines

    text = query("SELECT ?x ?v", "WINDOW :w { ?x a :Room ; :measured ?v ; :t ?v }").text
    stream = [
        at(1000, ":h a :Hall ; :t 20"),
        at(1500, ":l a :Lab, :Hall ; :t 5"),
        at(1500, ":m :t 6 ; :measured 6"),
    ]
    rows = {}
    for promise in ({}, {"unique": True}, {"element": "subject", "closed": "element"}):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "o.ttl").write_text(f"@prefix : <http://e/> . {ROOMS} .")
            with Engine(spark=False, ontology=root / "o.ttl", partitions=2, seed=7) as engine:
                engine.stream("http://e/s", write_lines(root / "s.nt", stream), **promise)
                found = engine.register(text, entailment="rdfs")
                engine.start(once=True)
                engine.await_end()
                rows[str(promise)] = sorted(
                    row for report in found.results() for row in report.rows.rows()
                )
    assert len(set(map(str, rows.values()))) == 1
    assert len(rows["{}"]) == 3
