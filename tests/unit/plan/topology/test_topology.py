"""Topologies of a few queries as text: a line a node, ``stage step flags layout <- inputs``, an
exchange with what rows go by; and who uses what.

A change here is a change of what travels between machines: read it as one.
"""

from __future__ import annotations

from collections import Counter
from textwrap import dedent

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.steps import Join
from levada.plan.logical.query_options import QueryOptions
from levada.plan.optimizer.pipeline import optimize
from levada.plan.topology.print_topology import describe, show
from levada.plan.topology.topology import Topology

PREFIX = "PREFIX : <http://e/>\n"
STREAM = "http://e/s"
STEPPED = "[RANGE PT10S STEP PT5S]"


def text(
    head: str, group: str, tail: str = "", output: str = "RSTREAM", clause: str = STEPPED
) -> str:
    """A query over one window."""
    window = f"FROM NAMED WINDOW :w ON <{STREAM}> {clause}"
    return (
        f"{PREFIX}REGISTER {output} :q AS {head} {window} WHERE {{ "
        f"WINDOW :w {{ {group} }} }} {tail}"
    )


def topology(*texts: str, unique: bool = False) -> Topology:
    """The shared topology of these queries."""
    found = Topology({STREAM: StreamFacts(unique=unique)})
    for i, one in enumerate(texts):
        found.add(f"q{i}", optimize(translate(parse(one), QueryOptions(), text=one)), MIN)
    return found


def lines(found: Topology) -> str:
    """The nodes, without their members."""
    return "\n".join(node.line() for node in describe(found))


SNAPSHOTS = {
    "a pattern: its rows meet by all variables, to be a set": (
        text("SELECT ?s ?o", "?s :p ?o"),
        """
        0 Match [ID+TEXT ID+TEXT] lo
        1 Occur [ID+TEXT ID+TEXT] lo/prev <- Match by 0,1
        1 Report [TEXT TEXT] r <- Occur
        1 Emit [TEXT TEXT] r <- Report
        """,
    ),
    "a star joins and groups by its subject in one stage; the filter is at the intake": (
        text("SELECT ?s (MAX(?o) AS ?m)", "?s :p ?o . ?s :q ?x FILTER(?o > 3)", "GROUP BY ?s"),
        """
        0 Match [ID+TEXT ID+NUM+TEXT] lo
        0 Match2 [ID+TEXT ID] lo
        0 Filter [ID+TEXT ID+NUM+TEXT] lo <- Match
        1 Join [ID+TEXT ID+NUM+TEXT] lo/hi/prev <- Filter by 0; Match2 by 0
        1 Panes [TEXT TEXT] r <- Join
        1 Emit [TEXT TEXT] r <- Panes
        """,
    ),
    "a chain under IStream: equal solutions must meet": (
        text("SELECT ?s ?z", "?s :p ?o . ?o :q ?z", output="ISTREAM"),
        """
        0 Match [ID+TEXT ID] lo
        0 Match2 [ID ID+TEXT] lo
        1 Join [ID+TEXT ID+TEXT] lo/hi/prev <- Match by 1; Match2 by 0
        2 Changes [ID+TEXT ID+TEXT] w r <- Join by 0,1
        2 Emit changes [TEXT TEXT] w r <- Changes
        """,
    ),
    "an ungrouped count is at home; no text travels": (
        text("SELECT (COUNT(*) AS ?n)", "?s :p ?o"),
        """
        0 Match [ID ID] lo
        1 Occur wide [ID ID] lo/prev <- Match by 0,1
        2 Panes enumerated [NUM] r <- Occur by home
        2 Emit [NUM] r <- Panes
        """,
    ),
    "OPTIONAL joins report rows": (
        text("SELECT ?s ?z", "?s :p ?o OPTIONAL { ?s :q ?z }"),
        """
        0 Match [ID+TEXT ID] lo
        0 Match2 [ID+TEXT ID+TEXT] lo
        1 Occur [ID+TEXT ID] lo/prev <- Match by 0
        1 Occur2 [ID+TEXT ID+TEXT] lo/prev <- Match2 by 0
        1 Report [ID+TEXT] r <- Occur
        1 Report2 [ID+TEXT TEXT] r <- Occur2
        1 ReportJoin left [TEXT TEXT] r <- Report; Report2
        1 Emit [TEXT TEXT] r <- ReportJoin
        """,
    ),
    "MINUS needs no more than what is shared of its right side": (
        text("SELECT ?s ?o", "?s :p ?o MINUS { ?s :q ?z }"),
        """
        0 Match [ID+TEXT ID+TEXT] lo
        0 Match2 [ID ID] lo
        1 Occur [ID+TEXT ID+TEXT] lo/prev <- Match by 0
        1 Occur2 [ID ID] lo/prev <- Match2 by 0
        1 Report [ID+TEXT TEXT] r <- Occur
        1 Report2 [ID] r <- Occur2
        1 ReportJoin minus [TEXT TEXT] r <- Report; Report2
        1 Emit [TEXT TEXT] r <- ReportJoin
        """,
    ),
    "a count window sees the whole stream at its home": (
        text("SELECT ?s ?o", "?s :p ?o", clause="[TRIPLES 3]"),
        """
        0 Match [ID+TEXT ID+TEXT ID+TEXT] lo
        1 CountWindow [ID+TEXT ID+TEXT ID+TEXT] lo/hi w <- Match by home
        1 Select [ID+TEXT ID+TEXT] lo/hi w <- CountWindow
        1 Report enumerated [ID+TEXT ID+TEXT] r <- Select
        1 Emit [TEXT TEXT] r <- Report
        """,
    ),
    "what draws values has the whole solution": (
        text("SELECT ?s (RAND() AS ?x)", "?s :p ?o"),
        """
        0 Match [ID+TEXT ID] lo
        1 Occur [ID+TEXT ID] lo/prev <- Match by 0,1
        1 Report [ID+TEXT ID] r <- Occur
        1 Extend [TEXT TEXT] r <- Report
        1 Emit [TEXT TEXT] r <- Extend
        """,
    ),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_topology(name: str) -> None:
    asked, expected = SNAPSHOTS[name]
    assert lines(topology(asked)) == dedent(expected).strip()


def test_unique_stream_needs_no_occurrences() -> None:
    found = lines(topology(text("SELECT ?s ?o", "?s :p ?o"), unique=True))
    assert "Occur" not in found
    assert "prev" not in found


def test_queries_that_differ_in_constants_and_windows_share_every_node() -> None:
    one = text("SELECT ?s ?o", "?s :p ?o FILTER(?o > 3)")
    other = text("SELECT ?s ?o", "?s :q ?o FILTER(?o > 5)", clause="[RANGE PT20S STEP PT1S]")
    assert lines(topology(one, other)) == lines(topology(one))
    assert {len(n.members) for n in topology(one, other).seal().nodes.values()} == {2}


def test_the_text_says_what_is_shared_and_who_uses_it() -> None:
    one = text("SELECT ?s ?o", "?s :p ?o")
    other = text("SELECT ?s ?o", "?s :p ?o", clause="[RANGE PT20S STEP PT1S]")
    assert (
        show(topology(one, other, one), 3)
        == dedent(
            f"""
            3 queries: 4 nodes with 8 members; apart they would be 12 nodes with 12 members
            0 Match [ID+TEXT ID+TEXT] lo
              0 of {STREAM}, (- <http://e/p> -): q0, q1, q2
            1 Occur [ID+TEXT ID+TEXT] lo/prev <- Match by 0,1
              0 of {STREAM}, [RANGE PT10S STEP PT5S close [)]: q0, q2
              1 of {STREAM}, [RANGE PT20S STEP PT1S close [)]: q1
            1 Report [TEXT TEXT] r <- Occur
              0 of {STREAM}, [RANGE PT10S STEP PT5S close [)]: q0, q2
              1 of {STREAM}, [RANGE PT20S STEP PT1S close [)]: q1
            1 Emit [TEXT TEXT] r <- Report
              0: q0
              1: q1
              2: q2
            edges
              Match -> Occur field(0,1): rows with equal terms there must meet, and every reader has some
              Occur -> Report local: no exchange: its rows are together by 0,1 of Occur's input already
              Report -> Emit local: no exchange: its rows are together by 0,1 of Occur's input already
            tasks: one for each source partition of {STREAM}, 3 in stage 1, the output
            """  # noqa: E501
        ).strip()
    )


def test_users_are_those_whose_rows_go_through_a_member() -> None:
    one, other = text("SELECT ?s ?o", "?s :p ?o"), text("SELECT ?s ?x", "?s :p ?o . ?s :q ?x")
    found = topology(one, other, other)
    uses = Counter(q for node in describe(found) for m in node.members for q in m.queries)
    alone = [sum(len(node.members) for node in describe(topology(t))) for t in (one, other)]
    assert [uses["q0"], uses["q1"], uses["q2"]] == [alone[0], alone[1], alone[1]]
    found.remove("q1")
    left = Counter(q for node in describe(found) for m in node.members for q in m.queries)
    assert left == {"q0": alone[0], "q2": alone[1]}


def test_flags_are_told_by_name() -> None:
    named = text("SELECT (COUNT(*) AS ?n)", "?s :p ?o")
    assert "2 Panes enumerated [NUM] r <- Occur by home" in lines(topology(named))
    assert "True" not in show(topology(named), 1)


def test_an_equal_query_adds_one_member_at_the_end_only() -> None:
    one = text("SELECT ?s ?o", "?s :p ?o")
    plan = topology(one, one).seal()
    assert {type(n.step).__name__: len(n.members) for n in plan.nodes.values()} == {
        "Match": 1,
        "Occur": 1,
        "Report": 1,
        "Emit": 2,
    }


def test_queries_that_draw_values_do_not_share_them() -> None:
    one = text("SELECT ?s (RAND() AS ?x)", "?s :p ?o")
    sizes = {
        type(n.step).__name__: len(n.members) for n in topology(one, one).seal().nodes.values()
    }
    assert (sizes["Report"], sizes["Extend"]) == (1, 2)


def test_removing_a_query_leaves_what_others_use() -> None:
    found = topology(text("SELECT ?s ?o", "?s :p ?o"), text("SELECT ?s ?x", "?s :p ?o . ?s :q ?x"))
    found.seal()
    found.remove("q1")
    assert lines(found) == lines(topology(text("SELECT ?s ?o", "?s :p ?o")))
    found.remove("q0")
    assert lines(found) == ""


def test_numbers_of_members_are_never_used_again() -> None:
    one, other = text("SELECT ?s", "?s :p 1"), text("SELECT ?s", "?s :p 2")
    found = topology(one, other)
    found.remove("q0")
    found.add("again", optimize(translate(parse(one), QueryOptions(), text=one)), MIN)
    (emit,) = [n for n in found.seal().nodes.values() if type(n.step).__name__ == "Emit"]
    assert emit.alive.tolist() == [False, True, True]


def test_tuple_columns_travel_as_values() -> None:
    schema = {"k": "integer", "v": "double"}
    query = translate_cql(
        "Rstream(Select k, Min(v) From S [Range 60 s Slide 10 s] Group By k)",
        {"S": schema},
        QueryOptions(),
    )
    found = Topology({"S": StreamFacts(schema)})
    found.add("q", query, MIN)
    first, second, *_ = lines(found).splitlines()
    assert first == "0 Scan [ID+INT DBL] lo"
    assert second == "1 Panes tuples [INT NUM] r <- Scan by 0"


def test_a_merge_of_many_windows_is_planned_at_once() -> None:
    """The operators of a merge are a graph and no tree: walked as a tree, 40 windows would take for
    ever.
    """
    clauses = " ".join(f"FROM STREAM <{STREAM}> [RANGE {i + 2}s STEP 2s]" for i in range(40))
    found = topology(f"{PREFIX}SELECT ?s ?o {clauses} {{ ?s :p ?o }}")
    assert sum(isinstance(node.step, Join) for node in found.seal().nodes.values()) == 40
