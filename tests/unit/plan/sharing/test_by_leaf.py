"""Queries that read the same patterns in one window here and in several there have one join."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.encoding.plan_codec import encode_plan, read_plan
from levada.plan.execution import steps as s
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.explain_sharing import describe_sharing, show_sharing
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology
from support.topologies import members, relaxing

CLAUSES = {"w": "[RANGE PT5S]", "u": "[RANGE PT10S]", "v": "[RANGE PT4S STEP PT2S]"}
FROM = " ".join(f"FROM NAMED WINDOW :{w} ON :s {clause}" for w, clause in CLAUSES.items())
TEXT = f"PREFIX : <http://e/> SELECT {{}} {FROM} WHERE {{{{ {{}} }}}}"
ONE, TWO = (
    "WINDOW :w { ?x :p ?y . ?x :q ?z }",
    "WINDOW :w { ?x :p ?y } WINDOW :u { ?x :q ?z }",
)


def add(found: Topology, *groups: str, head: str = "*") -> None:
    """Queries that come together."""
    for group in groups:
        text = TEXT.format(head, group)
        name = f"q{found.graph.numbers}-{len(found.queries)}"
        found.add(name, optimize(translate(parse(text), text=text)), MIN)
    found.seal()


def in_windows(patterns: tuple[str, ...], windows: tuple[str, ...]) -> str:
    """A group with each pattern in a window."""
    own = {w: [p for p, of in zip(patterns, windows, strict=True) if of == w] for w in windows}
    return " ".join(f"WINDOW :{w} {{ {' . '.join(each)} }}" for w, each in own.items())


@pytest.mark.parametrize("groups", [(ONE, TWO), (TWO, ONE)])
def test_one_window_and_two_are_one_join(groups: tuple[str, ...]) -> None:
    found = relaxing()
    add(found, *groups)
    counts = members(found)
    assert (counts["Join"], counts["Pick"], counts["Match"]) == (1, 2, 2)
    assert not counts["ByWindow"], "reports ask of each time"


def test_each_division_of_three_patterns_among_three_windows_is_one_join() -> None:
    patterns = ("?x :p ?y", "?x :q ?z", "?z :r ?u")
    found = relaxing()
    add(found, *(in_windows(patterns, windows) for windows in product(CLAUSES, repeat=3)))
    counts = members(found)
    assert (counts["Join"], counts["Pick"]) == (2, 27)


def test_where_all_have_one_window_times_stand_by_window() -> None:
    """Alone, or with others of one window, a query has the operators that it had."""
    for groups in ([ONE], [ONE, ONE.replace(":w", ":u")], [TWO, TWO.replace(":u", ":v")]):
        found = relaxing()
        add(found, *groups)
        (join,) = (n for n in found.graph.nodes.values() if isinstance(n.shape.step, s.Join))
        assert len(join.shape.layout.windows) == 1 + (groups[0] == TWO)


def test_what_reads_rows_by_their_windows_has_them_so() -> None:
    """What computes of rows, and other joins, get them as the query's own join has them."""
    more = " FILTER EXISTS { WINDOW :w { ?x :r ?e } } BIND(STR(?z) AS ?t)"
    found = relaxing()
    add(found, ONE + more, TWO)
    (node,) = (n for n in found.graph.nodes.values() if isinstance(n.shape.step, s.ByWindow))
    assert node.shape.step == s.ByWindow(((0, 1),))
    alone = relaxing()
    add(alone, ONE + more)
    (join,) = (n for n in alone.graph.nodes.values() if isinstance(n.shape.step, s.Join))
    assert node.shape.layout.windows == join.shape.layout.windows


def test_newcomers_and_departures() -> None:
    """The first keeps its own join; all that come later have one, until nobody is left."""
    found = relaxing()
    joins = []
    for group in (ONE, TWO, ONE.replace(":w", ":u"), TWO.replace(":u", ":v"), ONE):
        add(found, group)
        joins.append(members(found)["Join"])
    assert joins == [1, 2, 2, 2, 2], "the last is equal to the first"
    names = [*found.queries]
    for name in (names[1], names[3]):
        found.remove(name)
    add(found, ONE.replace(":w", ":v"))
    assert members(found)["Join"] == 2, "what runs has times of each pattern"
    for name in [*found.queries]:
        found.remove(name)
    found.seal()
    assert found.sharing.relaxations == Relaxations()


def test_windows_that_do_not_go_by_time_alone_stay_apart() -> None:
    for clause in ("[TRIPLES 5]", "[SESSION PT1S]"):
        found = relaxing()
        for i, group in enumerate((ONE, TWO)):
            text = TEXT.format("*", group).replace("[RANGE PT5S]", clause)
            found.add(f"q{i}", optimize(translate(parse(text), text=text)), MIN)
        found.seal()
        assert members(found)["Join"] == 2


def test_tables_of_cql_are_windows_of_their_own() -> None:
    tables = {"S": {"k": "integer", "v": "double"}}
    found = Topology({"S": StreamFacts(tables["S"])}, (), Sharing.RELAX)
    for a, b in ((5, 5), (5, 9), (7, 3)):
        text = f"Select a.v, b.v As w From S [Range {a}] As a, S [Range {b}] As b Where a.k = b.k"
        found.add(f"q{a}{b}", optimize(translate_cql(text, tables)), MIN)
    found.seal()
    counts = members(found)
    assert (counts["Join"], counts["Pick"]) == (1, 3)


def test_explain_names_the_windows_of_each() -> None:
    found = relaxing()
    add(found, ONE, TWO)
    told = show_sharing(describe_sharing(found, {}))
    assert "Join: 2 of window" in told
    assert "[RANGE PT5S] [RANGE PT10S]: q0-1" in told


def test_a_plan_with_times_by_window_is_written_and_read(tmp_path: Path) -> None:
    found, path = relaxing(), tmp_path / "1-ab.plan"
    add(found, f"{ONE} BIND(STR(?z) AS ?t)", TWO)
    path.write_bytes(encode_plan(found.seal()))
    (again,) = (n.step for n in read_plan(path).nodes.values() if isinstance(n.step, s.ByWindow))
    assert again == s.ByWindow(((0, 1),))
