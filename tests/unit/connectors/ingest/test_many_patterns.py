"""Very many patterns, taken by columns, are those that are taken one by one."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from levada.connectors.ingest.parse.ntriples import parse
from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.kernels.keyed.pattern_match import NEXT
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.matching import pattern_table
from levada.operators.matching.pattern_table import (
    Patterns,
    PatternTable,
    distinct_records,
    patterns_of,
)
from levada.operators.matching.scan_rows import match_
from levada.operators.matching.slot_columns import Chunk
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan
from levada.plan.topology.topology import Topology

HEAD = (
    "SELECT {0} FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT4S STEP PT2S] WHERE {{ WINDOW <e:w> {{ "
)
BODIES = ("?x <e:p> <e:c{0}>", "?x <e:p{0}> ?x", "<e:c{0}> ?p ?y", "<e:c{0}> ?x ?x")
SHOWN = ("?x", "?x", "?y", "?x")


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Patterns of four forms, some of which two nodes read; some members are gone."""
    topology = Topology({"e:s": StreamFacts()})
    for i in range(320):
        form = i % 4
        shown = "(COUNT(*) AS ?n)" if i % 5 == 0 else SHOWN[form]
        text = HEAD.format(shown) + BODIES[form].format(i // 8) + " } }"
        query = prepare(QueryRequest(text, "q"), NameScope({"e:s": StreamFacts()})).optimized_query
        topology.add(f"q{i}", query, MIN)
    topology.install()
    for i in range(0, 320, 7):
        topology.remove(f"q{i}")
    return topology.seal()


def read(found: Patterns | None) -> dict[int, dict[int, set[tuple[int, ...]]]]:
    """Of each node and member its patterns, as their records."""
    assert found is not None
    read: dict[int, dict[int, set[tuple[int, ...]]]] = {}
    for node, numbers, members in found.nodes:
        assert (np.diff(numbers) >= 0).all(), "patterns ascend"
        for number, member in zip(numbers.tolist(), members.tolist(), strict=True):
            record = tuple(found.table.patterns[number, :NEXT].tolist())
            read.setdefault(node.id, {}).setdefault(member, set()).add(record)
    return read


def test_they_are_the_same(plan: Plan) -> None:
    nodes = [node for node in plan.nodes.values() if isinstance(node.step, s.Match)]
    chosen = [node.alive for node in nodes]
    one_by_one = patterns_of(nodes, chosen, 7)
    with (
        patch.object(pattern_table, "MAX_COUNTED_MEMBERS", 0),
        patch.object(pattern_table, "MOST_COUNTED", 0),
    ):
        by_columns = patterns_of(nodes, chosen, 7)
    assert one_by_one is not None and by_columns is not None
    assert one_by_one.table.n == by_columns.table.n
    assert sorted(one_by_one.table.masks) == sorted(by_columns.table.masks)
    assert read(one_by_one) == read(by_columns)


@pytest.mark.parametrize("alike", [False, True])
def test_distinct_records_where_mixtures_meet(alike: bool) -> None:
    records = np.array([[1, 2, 0, 0, 0, 0, 3, 0], [5, 6, 0, 0, 0, 0, 3, 0]] * 3, np.int64)
    mixtures = np.zeros(6, np.uint64) if alike else pattern_table.mix_record(records)
    with patch.object(pattern_table, "mix_record", lambda _: mixtures):
        found, number = distinct_records(records)
    assert len(found) == 2 and (found[number] == records).all()
    assert PatternTable.from_records(found).n == 2


def rows_of(found: Patterns | None, chunk: Chunk) -> dict[int, set[tuple[int, ...]]]:
    """What each node is given: members, and the identities of their slots."""
    assert found is not None
    rows: dict[int, set[tuple[int, ...]]] = {}
    for node, frame in match_(found, chunk):
        columns = [frame[name].tolist() for name in frame.columns if name[0] in "ox"]
        rows.setdefault(node.id, set()).update(zip(*columns, strict=True))
    return rows


def test_full_nodes_have_a_table_that_lasts(plan: Plan) -> None:
    """The rows are the same, and a node that changes builds nothing of the others anew."""
    nodes = [node for node in plan.nodes.values() if isinstance(node.step, s.Match)]
    lines = [f"<e:c{i}> <e:p{i % 41}> <e:c{i}> .\n<e:a> <e:p> <e:c{i}> .\n" for i in range(45)]
    triples = parse("".join(lines).encode(), quads=False, timed=False, seed=7, document=1)
    chunk = Chunk(triples, np.arange(triples.n), TermLookup(7))
    expected = rows_of(patterns_of(nodes, [node.alive for node in nodes], 7), chunk)
    full = {node.id for node in nodes[::2]}
    assert 0 < len(full) < len(nodes)
    large = lambda node, mask: node.as_step(s.Match) if node.id in full and mask.any() else None  # noqa: E731
    with (
        patch.object(pattern_table, "_large", large),
        patch.object(pattern_table, "MOST_COUNTED", 0),
    ):
        found = patterns_of(nodes, [node.alive for node in nodes], 7)
        assert found is not None and found.lasting is not None
        assert rows_of(found, chunk) == expected
        newer = [replace(node) for node in nodes]
        again = patterns_of(newer, [n.alive & (n.id in full) for n in newer], 7)
        assert again is not None and again.lasting is None
        assert again.table is found.lasting.table, "it is found, not built"
        there = {id(node) for node in newer}
        assert all(id(node) in there for node, _, _ in again.nodes), "nodes are those of the plan"
