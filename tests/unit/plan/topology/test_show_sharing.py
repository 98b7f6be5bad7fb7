"""What queries share, as a text and as values."""

from __future__ import annotations

from textwrap import dedent

from levada.model.time import MIN
from levada.optimizer.pipeline import optimize
from levada.plan.install.sharing import Sharing
from levada.plan.lowering.scans import StreamFacts
from levada.plan.topology.show_sharing import show_sharing, tell
from levada.plan.topology.topology import Topology
from levada.syntax import parse
from levada.translation.sparql.translate import translate

STREAM = "http://e/s"
TEXT = """PREFIX : <http://e/> SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE {{ WINDOW :w {{ {} }} }}"""
GROUPS = {
    "a": "?x :p :c0 . ?x :q ?z",
    "b": "?x :p :c1 . ?x :q ?z",
    "c": "?x :p ?y . ?x :q ?z",
    "d": "?x :r :c0 . ?x :q ?z",
}


def topology(mode: Sharing) -> Topology:
    found = Topology({STREAM: StreamFacts()}, (), mode)
    for name, group in GROUPS.items():
        text = TEXT.format(group)
        found.add(name, optimize(translate(parse(text), text=text)), MIN)
    found.seal()
    return found


def test_relaxed_joins_are_told_with_their_constants_and_others_with_the_reason() -> None:
    text = show_sharing(tell(topology(Sharing.RELAX)))
    told = """
    relaxed
      Join3: 2 of (- <http://e/p> *)
        <http://e/c0>: a
        <http://e/c1>: b
    not relaxed
      c: no other query has its join with other constants, conditions or windows
      d: no other query has its join with other constants, conditions or windows
    """
    shown = text[text.index("relaxed\n") :]
    assert shown.replace(shown.split(":")[0], "relaxed\n  Join3", 1) == dedent(told).strip()
    assert text.startswith("4 queries, sharing relax: ")


def test_counts_are_those_of_the_topology() -> None:
    found = topology(Sharing.RELAX)
    told = tell(found)
    assert told.operators == sum(len(node.members.index) for node in found.nodes.values())
    assert told.apart > told.operators
    assert all(len(one.queries) > 1 for one in told.shared)


def test_another_mode_is_the_reason() -> None:
    told = tell(topology(Sharing.EXACT))
    assert not told.relaxed and set(told.not_relaxed) == set(GROUPS)
    assert set(told.not_relaxed.values()) == {"sharing is exact"}
