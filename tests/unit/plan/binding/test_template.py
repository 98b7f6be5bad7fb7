"""Patterns of one form over a merge are installed by what was installed before, and are what they
would be by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.binding.edges import Installed, Read
from levada.plan.binding.installer import Installer
from levada.plan.execution.row_layout import Facet
from levada.plan.optimizer.pipeline import optimize
from levada.plan.physical.operators import Op
from levada.plan.topology import catalog_members
from levada.plan.topology.topology import Topology

STREAMS = {f"http://e/{name}": StreamFacts() for name in ("s", "t")}
TEXT = """PREFIX : <http://e/>
REGISTER QUERY q AS SELECT *
FROM STREAM :s [RANGE 4s STEP 2s] FROM STREAM :t [TRIPLES 9]
WHERE {{ {} }}"""
GROUP = (
    "?x :p ?v . ?y :p ?w . ?x :q ?y . ?y :q ?z . ?z :r ?z . ?x ?k :a . ?y ?k :b . :a :p ?v . "
    ":c :p ?w FILTER(?v < ?w)"
)


def _topology(group: str = GROUP) -> list[tuple[object, object]]:
    topology = Topology(STREAMS)
    text = TEXT.format(group)
    topology.add("q", optimize(translate(parse(text), text=text)), 0)
    topology.install()
    return [(node.shape, node.members.rows) for node in topology.graph.nodes.values()]


def test_what_is_recorded_is_what_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = _topology()
    plain, read = Installer._install_applied, []

    def anew(self: Installer, op: Op, needs: dict[str, Facet]) -> Installed:
        read.append(len(self.template))
        self.template = {}
        return plain(self, op, needs)

    monkeypatch.setattr(Installer, "_install_applied", anew)
    assert _topology() == recorded
    assert len(read) == 7, "of nine patterns two are others by other names"


def test_a_further_pattern_of_a_form_costs_its_join(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []
    plain = Installer._build_shape

    def counted(self: Installer, op: Op, needs: dict[str, Facet], found: Sequence[Read]) -> Any:
        planned.append(op)
        return plain(self, op, needs, found)

    monkeypatch.setattr(Installer, "_build_shape", counted)
    costs = []
    for n in (4, 12):
        planned.clear()
        _topology(" . ".join(f"?x :p{i} ?v{i}" for i in range(n)))
        costs.append(len(planned))
    assert costs[1] - costs[0] == 8


def test_a_further_generation_of_a_node_is_read_by_those_that_are_installed_over_it() -> None:
    """Members were counted in the new node, and looked up in the old one: rows of one stream were
    taken for those of another.
    """
    topology = Topology(STREAMS)
    with patch.object(catalog_members, "EMPTY", 1), patch.object(catalog_members, "SHARE", 0):
        for n in range(6):
            text = TEXT.format(f"?x :p{n} ?v . ?y :q{n} ?v . ?x ?k :c{n} . ?x ?k :d{n}")
            topology.add(f"q{n}", optimize(translate(parse(text), text=text)), n)
            topology.install()
            if n % 3 < 2:
                topology.remove(f"q{n}")
            assert all(
                node.members.uses[at]
                for node in topology.graph.nodes.values()
                for at in node.members.living_numbers()
            )
    assert any(node.shape.generation for node in topology.graph.nodes.values())
    for node in topology.graph.nodes.values():
        assert all(
            topology.graph.nodes[i].shape is s
            for i, (s, _) in zip(node.inputs, node.shape.inputs, strict=True)
        )
