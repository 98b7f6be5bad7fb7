"""The patterns that a query reads, and those for want of which it has no row."""

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.pattern_text import patterns_read, starving_patterns
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
P, Q = "?a <http://e/p> ?b", "?a <http://e/q> ?b"


def asked(
    group: str, head: str = "SELECT *", clause: str = "[RANGE PT4S STEP PT2S]", missing: str = ""
) -> tuple[list[str], list[str]]:
    """The patterns that a query reads; of those whose predicates ``missing`` names nothing has
    matched: for want of which of them does it have no row?
    """
    text = f"PREFIX : <http://e/> {head} FROM NAMED WINDOW :w ON <{STREAM}> {clause} {{ {group} }}"
    topology = Topology({STREAM: StreamFacts()})
    topology.add("q", translate(parse(text), text=text), MIN)
    plan = topology.seal()
    query = plan.queries["q"]

    def matched(stream: str, pattern: str) -> int:
        assert stream == STREAM
        return 0 if any(f"/{name}>" in pattern for name in missing) else 5

    read = [pattern for _, pattern in patterns_read(plan, query.node, query.member)]
    wanting = [pattern for _, pattern in starving_patterns(plan, query.node, query.member, matched)]
    return read, wanting


def test_patterns_are_read_whatever_their_variables_are_called() -> None:
    read, _ = asked("WINDOW :w { ?x :p ?y . ?x :p ?x . ?z :q 1 }")
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert sorted(read) == sorted([P, "?a <http://e/p> ?a", f"?a <http://e/q> {one}"])


def test_a_count_window_is_asked_for_its_patterns_too() -> None:
    read, _ = asked("WINDOW :w { ?x :p ?y . ?y :q ?z }", clause="[TRIPLES 5]")
    assert sorted(read) == [P, Q]


@pytest.mark.parametrize(
    ("group", "missing", "wanting"),
    [
        ("WINDOW :w { ?x :p ?y . ?x :q ?z }", "q", [Q]),
        ("WINDOW :w { ?x :p ?y . ?x :q ?z }", "", []),
        ("WINDOW :w { ?x :p ?y } OPTIONAL { WINDOW :w { ?x :q ?z } }", "q", []),
        ("WINDOW :w { ?x :p ?y } OPTIONAL { WINDOW :w { ?x :q ?z } }", "p", [P]),
        ("WINDOW :w { ?x :p ?y } MINUS { WINDOW :w { ?x :q ?z } }", "q", []),
        ("WINDOW :w { ?x :p ?y } FILTER EXISTS { WINDOW :w { ?x :q ?z } }", "q", [Q]),
        ("WINDOW :w { ?x :p ?y } FILTER NOT EXISTS { WINDOW :w { ?x :q ?z } }", "q", []),
        ("{ WINDOW :w { ?x :p ?y } } UNION { WINDOW :w { ?x :q ?y } }", "q", []),
        ("{ WINDOW :w { ?x :p ?y } } UNION { WINDOW :w { ?x :q ?y } }", "pq", [P, Q]),
        ("WINDOW :w { ?x :p+ ?y }", "p", [P]),
    ],
)
def test_only_what_every_row_needs_is_wanting(group: str, missing: str, wanting: list[str]) -> None:
    assert sorted(asked(group, missing=missing)[1]) == wanting


def test_an_aggregate_without_groups_has_a_row_in_any_case() -> None:
    group = "WINDOW :w { ?x :p ?y }"
    assert asked(group, "SELECT (COUNT(*) AS ?n)", missing="p")[1] == []
    by_subject = f"{{ SELECT ?x (COUNT(*) AS ?n) {{ {group} }} GROUP BY ?x }}"
    assert asked(by_subject, missing="p")[1] == [P]
