"""What picks in full nodes want is the same object from version to version of the plan, and another
as soon as one of them goes (decision 124).
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest

from levada.core.event_time import MIN
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.operators.matching import pattern_table
from levada.operators.matching.pattern_table import Patterns, PatternTable, patterns_of
from levada.operators.rows.predicate_groups import Form, group_predicates, number_forms
from levada.operators.rows.predicate_index import PredicateIndexReader
from levada.plan.execution import plan as sealed
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan
from levada.plan.execution.sharing_demand import sharing_demand_of
from levada.plan.optimizer.pipeline import optimize
from levada.plan.topology import catalog_members
from levada.plan.topology.topology import Topology
from support.topologies import relaxing

TEXT = """PREFIX : <http://e/> SELECT *
FROM NAMED WINDOW :w ON :s [RANGE PT{}S STEP PT2S]
WHERE {{ WINDOW :w {{ ?x :p :c{} . ?x :q ?z FILTER(?z > {}) }} }}"""
SEED = 7


@pytest.fixture(autouse=True)
def few() -> Iterator[None]:
    """Nodes are full with four members; no patterns are few."""
    with (
        patch.object(sealed, "FULL", 4),
        patch.object(catalog_members, "FULL", 4),
        patch.object(pattern_table, "MOST_COUNTED", 0),
    ):
        yield


def come(found: Topology, *numbers: int, seconds: int = 4, more: int = 0) -> Plan:
    """Queries of other constants and thresholds; the next version."""
    for number in numbers:
        text = TEXT.format(seconds, number, number)
        found.add(f"q{number + more}", optimize(translate(parse(text), text=text)), MIN)
    return found.seal()


def constants(plan: Plan) -> tuple[set[str], set[str]]:
    """The constants that full nodes want, and those of the others besides."""
    found = sharing_demand_of(plan).wanted_terms
    lasting, rest = (
        {str(term)[10:-1] for terms in of.values() for (term,) in terms} for of in found
    )
    return lasting, rest


def table_of(plan: Plan) -> Patterns:
    nodes = [node for node in plan.nodes.values() if isinstance(node.step, s.Match)]
    found = patterns_of(nodes, [n.alive for n in nodes], SEED, sharing_demand_of(plan).wanted_terms)
    assert found is not None and found.lasting is not None
    return found


def wanted(table: PatternTable) -> set[tuple[int, ...]]:
    return {tuple(record) for record in table.patterns.tolist()}


def finders(plan: Plan) -> list[PredicateIndexReader]:
    """Those of the relaxed join's first input."""
    (join,) = (n for n in plan.nodes.values() if (own := n.as_step(s.Join)) and own.step.relaxed)
    forms = [
        Form.from_join_side(one, 0, first)
        for first, one in number_forms(join, sharing_demand_of(plan))
    ]
    bits = np.ones(sum(len(form.of.members) for form in forms), np.int64)
    return [finder for told in group_predicates(forms, SEED, bits) for finder in told.finders]


def test_a_newcomer_makes_nothing_anew_of_what_was_there() -> None:
    found = relaxing()
    before = come(found, *range(5))
    assert constants(before) == ({f"c{i}" for i in range(5)}, set())
    (old,) = finders(before)
    table = table_of(before)
    after = come(found, 7)
    assert constants(after) == ({f"c{i}" for i in range(5)}, {"c7"})
    assert (
        sharing_demand_of(after).wanted_terms.lasting
        is sharing_demand_of(before).wanted_terms.lasting
    )
    last, new = finders(after)
    assert last is old, "the index of full nodes stays"
    assert new.plain.owner.tolist() == [5], "owners in full nodes come first"
    assert table.lasting is not None
    newer = table_of(after)
    assert newer.lasting is not None and newer.lasting.table is table.lasting.table
    assert not wanted(newer.table) & wanted(newer.lasting.table), "no triple is found twice"


def test_the_same_constant_is_looked_for_once() -> None:
    found = relaxing()
    come(found, *range(5))
    assert constants(come(found, 3, seconds=8, more=100)) == ({f"c{i}" for i in range(5)}, set())


def test_who_goes_takes_his_constant_along() -> None:
    found = relaxing()
    before = come(found, *range(5))
    (old,) = finders(before)
    come(found, 7)
    found.remove("q2")
    after = found.seal()
    assert constants(after) == ({"c0", "c1", "c3", "c4"}, {"c7"})
    last, new = finders(after)
    assert last is not old and sorted(last.plain.owner.tolist()) == [0, 1, 2, 3]
    assert new.plain.owner.tolist() == [4]


def test_a_node_that_becomes_full_is_one_of_them() -> None:
    found = relaxing()
    come(found, *range(5))
    plan = come(found, *range(10, 14))
    assert constants(plan) == ({f"c{i}" for i in (*range(5), *range(10, 14))}, set())
    assert len(finders(plan)) == 1, "all full nodes have one index"
