"""How rows are grouped on the edges of a topology, and why: what is spared and what is not."""

import pytest
from test_topology import text, topology

from levada.plan.topology.print_topology import describe_edges

EDGES = {
    "a group by what the join has met by is where the join is": (
        text("SELECT ?s (MAX(?o) AS ?m)", "?s :p ?o . ?s :q ?x", "GROUP BY ?s"),
        [
            "Match -> Join field(0): rows with equal terms there must meet, and every reader has "
            "some",
            "Match2 -> Join field(0): rows with equal terms there must meet, and every reader has "
            "some",
            "Join -> Panes local: no exchange: its rows are together by 0 of Join's input already",
            "Panes -> Emit local: no exchange: its rows are together by 0 of Join's input already",
        ],
    ),
    "a group by something else needs another exchange": (
        text("SELECT ?o (COUNT(*) AS ?n)", "?s :p ?o . ?s :q ?x", "GROUP BY ?o"),
        [
            "Join -> Panes field(0): rows with equal terms there must meet, and they are together "
            "by 0 of Join's input",
        ],
    ),
    "a group without keys is at home, and what follows is there": (
        text("SELECT (COUNT(*) AS ?n)", "?s :p ?o"),
        [
            "Occur -> Panes home: all rows of a member must meet, and they are together by 0,1 of "
            "Occur's input; each task sends its partial aggregates of a pane",
            "Panes -> Emit local: no exchange: its rows are together at their member's home "
            "already",
        ],
    ),
    "of distinct values that are together already partial aggregates are sent": (
        text("SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(?o) AS ?m)", "?s :p ?o . ?s :q ?x"),
        [
            "Report -> RGroup home: all rows of a member must meet, and they are together by 0 of "
            "Join's input; each task sends its partial aggregates of a report",
        ],
    ),
    "of others the values are sent": (
        text("SELECT (COUNT(DISTINCT ?x) AS ?n)", "?s :p ?o . ?s :q ?x"),
        [
            "Report -> RGroup home: all rows of a member must meet, and they are together by 0 of "
            "Join's input; each task sends the distinct values of a report once",
        ],
    ),
    "beside other aggregates all rows must meet": (
        text("SELECT (COUNT(DISTINCT ?x) AS ?n) (COUNT(?o) AS ?m)", "?s :p ?o . ?s :q ?x"),
        [
            "Report -> RGroup home: all rows of a member must meet, and they are together by 0 of "
            "Join's input; DISTINCT sees the values of all tasks, and other aggregates all rows",
        ],
    ),
    "of an order with LIMIT each task sends the first rows": (
        text("SELECT ?s ?o", "?s :p ?o", "ORDER BY ?o LIMIT 3 OFFSET 2"),
        [
            "Report -> ROrder home: all rows of a member must meet, and they are together by 0,1 "
            "of Occur's input; each task sends its first 5 of a report",
        ],
    ),
    "of one that is drawn, all": (
        text("SELECT ?s ?o", "?s :p ?o", "ORDER BY RAND() LIMIT 3"),
        [
            "Report -> ROrder home: all rows of a member must meet, and they are together by 0,1 "
            "of Occur's input; the order is drawn where all rows are",
        ],
    ),
    "a filter sees each row by itself": (
        text("SELECT ?s", "?s :p ?o FILTER(?o > 3)"),
        ["Match -> Filter local: each row by itself, where it is read"],
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_say_how_and_why(name: str) -> None:
    asked, wanted = EDGES[name]
    found = [edge.line() for edge in describe_edges(topology(asked))]
    assert [line for line in wanted if line not in found] == []
