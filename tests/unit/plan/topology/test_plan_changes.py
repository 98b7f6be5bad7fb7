"""Versions of a plan that are written as what is new in them are, read again, what was sealed: with
queries that come and go in every way, by a process that has the version before and by one that has
none.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.errors import CheckpointError
from levada.plan.encoding.plan_codec import encode_plan, read_plan
from levada.plan.execution.plan import Plan
from levada.plan.logical.nodes import Query
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology import catalog_members
from levada.plan.topology.catalog_file import encode_catalog, read_catalog
from levada.plan.topology.prune import drop_queries
from levada.plan.topology.topology import Topology

HEAD = "SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT4S STEP PT2S] WHERE { WINDOW <e:w> { "
BODIES = (
    "?x <e:p> <e:c{0}>",
    "?x <e:p> <e:c{0}> . ?x <e:q> ?y",
    "?x <e:p> ?y FILTER(?y > {0})",
    "?x <e:p> <e:c{0}> OPTIONAL {{ ?x <e:q> ?y }}",
)


def query(number: int) -> Query:
    """One of many queries."""
    text = HEAD + BODIES[number % len(BODIES)].format(number // 8) + " } }"
    return prepare(QueryRequest(text, "q"), NameScope({"e:s": StreamFacts()})).optimized_query


def changed(topology: Topology, rng: random.Random, start: int) -> None:
    """Some queries go, some come, some both."""
    there = sorted(topology.queries)
    for name in rng.sample(there, min(len(there), rng.choice((0, 0, 1, 3, 40)))):
        topology.remove(name)
    for _ in range(rng.choice((0, 1, 2, 30))):
        number = rng.randrange(400)
        if f"q{number}" not in topology.queries:
            topology.add(f"q{number}", query(number), start)
    topology.install()
    if topology.queries and rng.random() < 0.3:
        name = rng.choice(sorted(topology.queries))
        topology.remove(name)
        topology.add(name, query(int(name[1:])), start)


@pytest.mark.long
@pytest.mark.parametrize("sharing", [Sharing.EXACT, Sharing.RELAX, Sharing.OFF])
def test_a_chain_of_versions_is_what_was_sealed(
    tmp_path: Path, sharing: Sharing, random_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_members, "FULL", 16)
    rng = random.Random(random_seed)
    topology = Topology({"e:s": StreamFacts()}, sharing=sharing)
    topology.add("q0", query(0), MIN)
    kept: Plan | None = None
    small = 0
    for version in range(1, 25):
        if version > 1:
            changed(topology, rng, MIN if version < 8 else 1000 * version)
        plan = topology.seal(max(version - rng.choice((1, 1, 2)), 0))
        change = topology.change
        assert (change is None) == (version == 1)
        path, catalog = tmp_path / f"{version}-a.plan", tmp_path / f"{version}-a.catalog"
        whole = encode_plan(plan)
        path.write_bytes(encode_plan(change or plan))
        catalog.write_bytes(encode_catalog(topology, dict.fromkeys(topology.queries, "x"), change))
        small += path.stat().st_size < len(whole) / 2
        cold = read_plan(path)
        warm = cold if kept is None or change is None else change.apply_to(kept)
        kept = warm
        assert encode_plan(cold) == whole and encode_plan(warm) == whole
        again, identities = read_catalog(catalog)
        assert identities == dict.fromkeys(topology.queries, "x")
        assert {
            n: (list(v.members.uses), v.members.rows) for n, v in again.graph.nodes.items()
        } == {n: (_uses(v.members), v.members.rows) for n, v in topology.graph.nodes.items()}
        assert again.queries == topology.queries and list(again.queries) == list(topology.queries)
    assert small, "some versions say little"


def _uses(table: catalog_members.Members) -> list[int]:
    """Of empty places nothing is kept."""
    return [0 if row is None else n for n, row in zip(table.uses, table.rows, strict=True)]


def test_what_stays_is_the_same_object() -> None:
    topology = Topology({"e:s": StreamFacts()})
    for number in range(0, 800, 4):
        topology.add(f"q{number}", query(number), MIN)
    first = topology.seal()
    topology.add("other", query(1), 5)
    second = topology.seal(1)
    assert topology.change is not None
    whole = {n for n, node in second.nodes.items() if node is not first.nodes.get(n)}
    assert whole == topology.change.nodes.keys() | topology.change.revised.keys()
    for number in topology.change.revised:
        assert second.nodes[number].members is first.nodes[number].members


def test_a_change_of_another_plan_is_told(tmp_path: Path) -> None:
    topology = Topology({"e:s": StreamFacts()})
    topology.add("q", query(0), MIN)
    first = topology.seal()
    topology.add("r", query(8), MIN)
    topology.seal(1)
    assert topology.change is not None
    (tmp_path / "2-a.plan").write_bytes(encode_plan(topology.change))
    with pytest.raises(CheckpointError, match="1-a"):
        read_plan(tmp_path / "2-a.plan")
    for name in ("1-a.plan", "0-a.plan"):
        (tmp_path / name).write_bytes(encode_plan(first))
    (tmp_path / "1-b.plan").write_bytes(encode_plan(topology.change))
    with pytest.raises(CheckpointError, match="the version before it is none"):
        read_plan(tmp_path / "1-b.plan")


@pytest.mark.parametrize("sharing", [Sharing.EXACT, Sharing.RELAX, Sharing.OFF])
def test_queries_that_are_dropped_from_a_file_are_gone_as_removed_ones(
    tmp_path: Path, sharing: Sharing, random_seed: int
) -> None:
    rng = random.Random(random_seed)
    topology = Topology({"e:s": StreamFacts()}, sharing=sharing)
    path = tmp_path / "catalog"
    for version in range(1, 8):
        changed(topology, rng, 1000 * version)
        topology.seal()
        path.write_bytes(encode_catalog(topology, {}))
        removed, dropped = read_catalog(path)[0], read_catalog(path)[0]
        names = rng.sample(sorted(topology.queries), rng.randint(0, len(topology.queries)))
        for name in names:
            removed.remove(name)
        drop_queries(dropped, names)
        assert (dropped.graph.index, dropped.graph.alike) == (
            removed.graph.index,
            removed.graph.alike,
        )
        assert encode_plan(dropped.seal()) == encode_plan(removed.seal())
        assert encode_catalog(dropped, {}) == encode_catalog(removed, {})
