"""Queries share what is equal, whatever they read of it: projections, forms of the result, the
order of columns.
"""

from __future__ import annotations

from collections import Counter

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.row_layout import Facet
from levada.plan.execution.steps import Scan
from levada.plan.optimizer.pipeline import optimize
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
TEXT = """PREFIX : <http://e/> {}
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE {{ WINDOW :w {{ {} }} }}"""
GROUP = "?x :p ?y . ?y :q ?z . ?z :r ?v"
HEADS = (
    "SELECT ?x",
    "SELECT ?z ?x",
    "SELECT ?x ?y ?z ?v",
    "SELECT *",
    "SELECT DISTINCT ?v",
    "ASK",
    "CONSTRUCT { ?x :is ?v }",
    "SELECT ?x (COUNT(*) AS ?n)",
)


def topology(*queries: tuple[str, str], into: Topology | None = None, start: int = MIN) -> Topology:
    """Queries by head and group, which come together."""
    found = into or Topology({STREAM: StreamFacts()})
    for head, group in queries:
        tail = " GROUP BY ?x" if "COUNT" in head else ""
        text = TEXT.format(head, group) + tail
        found.add(f"q{len(found.queries)}", optimize(translate(parse(text), text=text)), start)
    found.seal()
    return found


def members(found: Topology) -> Counter[str]:
    """How many members there are of each kind of step."""
    counts: Counter[str] = Counter()
    for node in found.graph.nodes.values():
        counts[type(node.shape.step).__name__] += len(node.members.index)
    return counts


def test_what_is_shown_keeps_no_joins_apart() -> None:
    found = members(topology(*((head, GROUP) for head in HEADS)))
    assert (found["Match"], found["Join"], found["Emit"]) == (3, 2, len(HEADS))


def test_which_columns_a_cql_text_names_keeps_neither_scans_nor_joins_apart() -> None:
    tables = {name: {"k": "integer", "v": "integer", "n": "string"} for name in "ST"}
    found = Topology({name: StreamFacts(schema) for name, schema in tables.items()})
    joined = "From S [Range 3 s] As A, T [Range 3 s] As B Where A.k = B.k"
    grouped = "From S [Range 3 s] Group By k"
    for text in (
        f"Select A.v {joined}",
        f"Select A.k, B.n {joined}",
        f"Select k, Sum(v) {grouped}",
        f"Select k, Count(n) {grouped}",
        "Select n From S [Range 3 s] Where v > 1",
    ):
        found.add(text, optimize(translate_cql(text, tables)), MIN)
    plan = found.seal()
    counts = members(found)
    assert (counts["Scan"], counts["Join"], counts["Deltas"]) == (2, 1, 1)
    scans = [node.step for node in plan.nodes.values() if isinstance(node.step, Scan)]
    assert sorted(scan.columns for scan in scans) == [("k", "n"), ("k", "v", "n")]


@pytest.mark.parametrize("head", HEADS)
def test_nobody_pays_for_columns_that_nobody_reads(head: str) -> None:
    alone, twice = topology((head, GROUP)), topology((head, GROUP), (head, GROUP))
    assert [n.shape for n in alone.graph.nodes.values()] == [
        n.shape for n in twice.graph.nodes.values()
    ]


def test_rows_have_what_all_readers_read_and_no_more() -> None:
    found = topology(("SELECT ?x", "?x :p ?y"), ("SELECT ?y", "?x :p ?y"), ("SELECT ?z", "?z :q 1"))
    layouts = {
        str(member.constants[1]): node.shape.layout.slots
        for node in found.graph.nodes.values()
        for member in node.members.index
        if type(node.shape.step).__name__ == "Match"
    }
    both = Facet.ID | Facet.TEXT
    assert layouts == {"<http://e/p>": (both, both), "<http://e/q>": (both,)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("?z = :b || ?z = :a", "?z IN (:a, :b)"),
        ("?z = :c || (?z = :b || :a = ?z)", "?z IN (:c, :a) || ?z = :b"),
        ("?v > 1 || ?z = :a || ?y = :b", "?y = :b || (?z = :a || 1 < ?v)"),
        ("?v = 2 || ?v = 1", "?v = 1 || ?v = 2"),
    ],
)
def test_conditions_that_say_the_same_keep_no_joins_apart(one: str, other: str) -> None:
    found = members(topology(*(("SELECT ?x", f"{GROUP} FILTER({c})") for c in (one, other))))
    assert (found["Join"], found["Filter"], found["Emit"]) == (2, 1, 2)


def test_the_order_of_keys_and_aggregates_keeps_no_groups_apart() -> None:
    found = Topology({STREAM: StreamFacts()})
    for head, tail in (
        ("?x ?z (COUNT(*) AS ?n) (SUM(?v) AS ?m)", "?x ?z"),
        ("(SUM(?v) AS ?s) ?z ?x (COUNT(*) AS ?k)", "?z ?x"),
    ):
        text = TEXT.format(f"SELECT {head}", GROUP) + f" GROUP BY {tail}"
        found.add(f"q{len(found.queries)}", optimize(translate(parse(text), text=text)), MIN)
    found.seal()
    assert (members(found)["Join"], members(found)["Panes"]) == (2, 1)


def test_pattern_is_matched_once_although_its_variable_goes_on_to_be_joined() -> None:
    found = members(topology(("SELECT *", "?x :p ?y"), ("SELECT *", "?x :p ?y . ?y :q ?z")))
    assert found["Match"] == 2


def test_newcomer_reads_what_has_all_that_it_wants() -> None:
    found = topology(("SELECT ?x ?z", GROUP))
    before = members(found)
    topology(("SELECT ?z", GROUP), into=found)
    assert members(found) - before == Counter(Report=1, Emit=1)


def test_newcomer_that_wants_more_has_a_join_of_its_own() -> None:
    """Rows of state cannot get a column that they came without."""
    found = topology(("SELECT ?x", GROUP))
    before = members(found)
    topology(("SELECT ?x ?v", GROUP), into=found)
    assert (members(found) - before)["Join"] == 1, "of the last pattern; the first join has all"


def test_nothing_stays_of_queries_that_are_gone() -> None:
    found = Topology({STREAM: StreamFacts()})
    for i in range(20):
        text = TEXT.format(f"SELECT ?x {'?v' * (i % 2)}", GROUP)
        found.add(f"q{i}", optimize(translate(parse(text), text=text)), MIN)
        found.seal()
        if i > 2:
            found.remove(next(iter(found.queries)))
    for name in list(found.queries):
        found.remove(name)
    assert not found.graph.nodes
    assert not found.graph.common.known and not found.graph.common._numbers
    assert not found.graph.common._forms and not found.graph.common._of


def test_instant_of_registration_keeps_nothing_below_the_reports_apart() -> None:
    found = topology(("SELECT ?x ?v", GROUP))
    before = members(found)
    for start in (5, 7):
        topology(("SELECT ?x ?v", GROUP), into=found, start=start)
    assert members(found) - before == Counter(Report=2, Emit=2)


@pytest.mark.parametrize("window", ["TRIPLES 3", "SESSION PT2S"])
def test_rows_that_elements_before_the_start_decide_are_not_shared(window: str) -> None:
    found = Topology({STREAM: StreamFacts()})
    text = TEXT.format("SELECT *", GROUP).replace("RANGE PT4S STEP PT2S", window)
    for start in (MIN, 5):
        found.add(f"q{start}", optimize(translate(parse(text), text=text)), start)
        found.seal()
    assert members(found)["Join"] == 4
