"""RSP-QL as the papers and the drafts of W3C's RSP community group print it: each form is read and
means what another spelling means. Sources: Dell'Aglio et al., RSP-QL semantics (IJSWIS 10(4),
2014); Tommasini and Della Valle, Yasper (2017), RSP4J (2021); the drafts of the group.
"""

from __future__ import annotations

import pytest

from levada.errors import LevadaError
from levada.language import parse
from levada.testing.reference_model import Element, Graphs
from levada.testing.stepped_engine import run_stepped

HEAD = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
BODY = "WHERE { WINDOW :w { ?a :p ?b } }"
PLAIN = "SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT10M STEP PT1M] " + BODY


def window(brackets: str, before: str = "SELECT ?a") -> str:
    return f"{before} FROM NAMED WINDOW :w ON :s [{brackets}] {BODY}"


@pytest.mark.parametrize(
    ("printed", "plain"),
    [
        (window("RANGE PT10M, STEP PT1M"), PLAIN),
        (window("RANGE PT10M SLIDE PT1M"), PLAIN),
        (window("TUMBLING PT10M"), window("RANGE PT10M STEP PT10M")),
        (window("ITEMS 10, STEP 2"), window("ELEMENTS 10 STEP 2")),
        (PLAIN.replace("WHERE", "FROM GRAPH :g FROM NAMED GRAPH :h WHERE"),
         PLAIN.replace("WHERE", "FROM :g FROM NAMED :h WHERE")),
        (PLAIN.replace("WINDOW :w ON", "WINDOW :w ON STREAM"), PLAIN),
    ],
)  # fmt: skip
def test_a_printed_form_is_another_spelling(printed: str, plain: str) -> None:
    assert parse(HEAD + printed, "rspql") == parse(HEAD + plain, "rspql")


@pytest.mark.parametrize(
    "head",
    [
        "REGISTER STREAM <http://o/s> AS CONSTRUCT RSTREAM { ?a :r ?b }",
        "REGISTER STREAM :o AS CONSTRUCT ISTREAM { ?a :r ?b }",
        "REGISTER STREAM :o AS SELECT ISTREAM ?a",
        "REGISTER RSTREAM :o AS SELECT *",
        "REGISTER DSTREAM <s> AS SELECT ?a",
        "BASE <http://e/> REGISTER ISTREAM <o> AS CONSTRUCT { ?a :r ?b }",
    ],
)
def test_printed_heads_are_read(head: str) -> None:
    for brackets in (
        "RANGE PT10M STEP PT1M",
        "RANGE PT10M",
        "FROM NOW-PT35M TO NOW-PT5M STEP PT5M",
    ):
        assert parse(HEAD + window(brackets, head), "rspql").windows


def test_a_window_without_name_in_from_is_part_of_the_default_graph() -> None:
    elements = [Element(500, ("<http://e/x> <http://e/p> <http://e/y>",))]
    text = (
        HEAD + "SELECT ?a FROM WINDOW :w ON :s [RANGE PT1S STEP PT1S] WHERE { ?a :p ?c . ?a :q ?d }"
    )
    static: Graphs = {None: ["<http://e/x> <http://e/q> <http://e/z>"]}
    found = run_stepped({"q": text}, {"http://e/s": elements}, static=static)["q"]
    assert [(r.time, [dict(s) for s in r.solutions]) for r in found] == [
        (1000, [{"a": "<http://e/x>"}])
    ]


REGIME = "UNDER ENTAILMENT REGIME <http://www.w3.org/ns/entailment/%s>"
TYPES = """REGISTER RSTREAM :o %s AS SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?a a :Upper } }"""


def test_the_regime_of_a_text_is_the_entailment_of_the_query() -> None:
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    elements = [Element(500, (f"<http://e/x> {a} <http://e/Lower>",))]
    sub_class = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    static: Graphs = {None: [f"<http://e/Lower> {sub_class} <http://e/Upper>"]}
    texts = {word: HEAD + TYPES % (REGIME % word) for word in ("RDFS", "Simple")}
    texts["none"] = HEAD + TYPES % ""
    found = run_stepped(texts, {"http://e/s": elements}, static=static)
    assert {name: len(reports) for name, reports in found.items()} == {
        "RDFS": 1, "Simple": 0, "none": 0,
    }  # fmt: skip


def test_an_unknown_regime_is_refused_by_name() -> None:
    with pytest.raises(LevadaError, match=r"The regime <.*RIF> is not supported yet") as error:
        parse(HEAD + TYPES % (REGIME % "RIF"), "rspql")
    assert "entailment/RDFS" in str(error.value)
