"""``canonical_order``: what commutes, in an order that no text decides."""

from __future__ import annotations

import random
import re

import pytest
from pairs import asked, check, check_same

from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.lowering.join_order import Conjunction, Tree
from levada.plan.optimizer.pipeline import disable_rules, optimize
from levada.plan.optimizer.rules.canonicalize import canonical_order
from levada.plan.optimizer.rules.filter_pushdown import push_filters
from levada.plan.optimizer.rules.flatten_joins import flatten_joins
from levada.plan.sharing.join_orders.running_subjoins import Forced
from levada.plan.topology.topology import Topology

GROUPS = [
    (["?x :p ?y", "?y :q ?z", "?z :r ?u"], ["?u > 5", "?z != ?x"]),
    (["?x :p ?y", "?x :q ?z", "?x :r ?u"], ["?u > ?z"]),
    (["?x :p ?y", "?y :q ?z", "?x a :C"], ["?z = 5 || ?y = ?x", "?z + 1 < 4"]),
    (["?x :p ?y", "?x :p ?z", "?z :q :c"], []),
]


def test_patterns_with_more_constants_come_first_and_constants_stand_on_the_right() -> None:
    before = """
    (project (?s ?v ?b)
      (conjunction (< "1" ?v) (= ?b ?s)
        (bgp (window 0)
          (?s <p> ?v)
          (?v <p> ?b)
          (?b <a> <c>))))
    """
    after = """
    (project (?s ?v ?b)
      (conjunction (= ?b ?s) (> ?v "1")
        (bgp (window 0)
          (?b <a> <c>)
          (?s <p> ?v)
          (?v <p> ?b))))
    """
    group = "WINDOW :w { ?s :p ?v . ?v :p ?b . ?b :a :c } FILTER(1 < ?v && ?b = ?s)"
    check(asked(group, before=(flatten_joins, push_filters)), canonical_order, before, after)


def test_one_pattern_and_what_is_in_order_stay() -> None:
    check_same(asked("WINDOW :w { ?s :p ?v }"), canonical_order)
    check_same(asked("WINDOW :w { ?s :p ?v FILTER(?v > 1) }"), canonical_order)


def test_what_depends_on_the_report_stays_where_it_stands() -> None:
    check_same(
        asked("WINDOW :w { ?s :p ?v } FILTER(RAND() < ?v) FILTER(?v > NOW())"), canonical_order
    )


@pytest.mark.parametrize(("patterns", "filters"), GROUPS)
def test_equal_queries_are_one_whatever_their_names_and_order(
    patterns: list[str], filters: list[str]
) -> None:
    draw = random.Random(7)
    texts = [_told(patterns, filters, draw) for _ in range(12)]
    nodes, members = _size(texts[:1])
    assert _size(texts) == (nodes, members + len(texts) - 1), "an Emit more for each"
    with disable_rules("canonical_order"):
        assert _size(texts, as_written) > (nodes, members + len(texts) - 1)


def test_branches_of_a_union_in_any_order_and_nesting_are_one() -> None:
    branches = [
        "{{ ?{0} :p ?y . ?y :q ?{1} }}",
        "{{ ?{0} :r ?{1} FILTER(?{1} > 5) }}",
        "{{ ?{0} :r ?{1} }}",
    ]
    draw, texts = random.Random(5), list[str]()
    for i in range(8):
        one, two, three = (b.format(f"x{i}", f"z{i}") for b in draw.sample(branches, 3))
        nested = (
            f"{one} UNION {{ {two} UNION {three} }}"
            if i % 2
            else f"{one} UNION {two} UNION {three}"
        )
        texts.append(
            f"PREFIX : <http://e/> SELECT ?x{i} ?z{i} FROM NAMED WINDOW :w ON :s [RANGE PT2S] "
            f"WHERE {{ WINDOW :w {{ {nested} }} }}"
        )
    nodes, members = _size(texts[:1])
    assert _size(texts) == (nodes, members + len(texts) - 1), "an Emit more for each"


def test_queries_that_differ_in_constants_have_one_shape() -> None:
    patterns = ["?x :p :{0}", "?x :q ?z", "?z :r :{1}"]
    draw = random.Random(3)
    texts = [
        _told([p.format(f"a{i}", f"{'zb'[i % 2]}{i}") for p in patterns], [f"?z != :c{i}"], draw)
        for i in range(8)
    ]
    # one by one: the first keeps both sides of its join, the second has what is common kept for all
    # (decision 108)
    assert _size(texts)[0] == _size(texts[:2])[0]


def _told(patterns: list[str], filters: list[str], draw: random.Random) -> str:
    """The query in another order, with other names; it asks for the first pattern's subject."""
    old = sorted({name for text in (*patterns, *filters) for name in re.findall(r"\?\w", text)})
    new = draw.sample([f"?n{i}" for i in range(9)], len(old))
    names = dict(zip(old, new, strict=True))
    shown = names[patterns[0].split()[0]]
    one, other = (
        [re.sub(r"\?\w", lambda found: names[found[0]], text) for text in texts]
        for texts in (draw.sample(patterns, len(patterns)), draw.sample(filters, len(filters)))
    )
    conditions = " ".join(f"FILTER({condition})" for condition in other)
    return (
        f"PREFIX : <http://e/> SELECT {shown} FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT2S] "
        f"WHERE {{ WINDOW :w {{ {' . '.join(one)} }} {conditions} }}"
    )


def as_written(name: str, number: int, conjunction: Conjunction) -> tuple[Tree, ...]:
    """No other order than the rules left: it is not chosen by what others join."""
    return ()


def _size(texts: list[str], orders: Forced | None = None) -> tuple[int, int]:
    """Nodes and members of the topology with these queries."""
    topology = Topology({"http://e/s": StreamFacts()})
    topology.sharing.orders.forced = orders
    for i, text in enumerate(texts):
        topology.add(f"q{i}", optimize(translate(parse(text), text=text)), 0)
        topology.install()
    return len(topology.graph.nodes), sum(
        len(n.members.index) for n in topology.graph.nodes.values()
    )
