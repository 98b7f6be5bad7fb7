"""Totals in manifests and files are those of a dictionary of all counts, whatever comes, goes."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest

from levada.checkpoint import query_totals
from levada.checkpoint.manifest import Manifest, encode_manifest
from levada.checkpoint.result_counts import ResultCounts
from levada.core.frame import Frame
from levada.errors import CheckpointError
from levada.plan.execution.plan import Plan


@dataclass(frozen=True)
class Place:
    """Of a query's plan what totals look at."""

    name: str
    node: int
    member: int
    since: int
    formers: tuple[tuple[int, int, int], ...] = ()

    @property
    def query(self) -> str:
        return self.name

    @property
    def manner(self) -> "Place":
        return self

    @property
    def with_former_emits(self) -> list["Place"]:
        return [self, *(replace(self, node=n, member=m) for _, n, m in self.formers)]


class Places(list["Place"]):
    """The members of a node."""

    def query_at(self, at: int) -> str:
        return self[at].name


@dataclass
class Node:
    """A node whose members are the Emits of queries."""

    members: Places = field(default_factory=Places)
    gone: set[int] = field(default_factory=set)

    @property
    def alive(self) -> Any:
        return np.array([i not in self.gone for i in range(len(self.members))], np.bool_)


@dataclass(frozen=True)
class Planned:
    """Of a plan what totals look at."""

    version: int
    nodes: dict[int, Node]
    queries: dict[str, Place]

    @property
    def switched_queries(self) -> list[Place]:
        return [query for query in self.queries.values() if query.formers]


def told_of(counts: Mapping[Place, tuple[int, int]]) -> ResultCounts:
    """What queries have had in an epoch, as its tasks tell it."""
    order = sorted(counts, key=lambda place: (place.node, place.member))
    columns = {
        "node": [place.node for place in order],
        "op": [place.member for place in order],
        "n": [counts[place][0] for place in order],
        "least": [7] * len(order),
        "most": [9] * len(order),
        "reports": [counts[place][1] for place in order],
    }
    rows = {name: np.array(column, np.int64) for name, column in columns.items()}
    return ResultCounts.from_rows(Frame(rows, len(order)))


def changed(plan: Planned, rng: random.Random) -> Planned:
    """The next version: some queries go, some come, also under names of before; some have other
    Emits.
    """
    queries = dict(plan.queries)
    for name in rng.sample(sorted(queries), len(queries) // 5):
        place = queries.pop(name)
        plan.nodes[place.node].gone.add(place.member)
    for i in range(rng.randrange(12)):
        name, number = f"q{rng.randrange(60)}", rng.randrange(3) if i else 7 + plan.version
        if name not in queries:
            node = plan.nodes.setdefault(number, Node())
            queries[name] = Place(name, number, len(node.members), plan.version + 1)
            node.members.append(queries[name])
    for name in rng.sample(sorted(queries), len(queries) // 6):
        old = queries[name]
        if old.since <= plan.version:
            node = plan.nodes[old.node]
            node.gone.add(old.member)
            formers = (*old.formers, (plan.version + 1, old.node, old.member))
            queries[name] = replace(old, member=len(node.members), formers=formers)
            node.members.append(queries[name])
    return replace(plan, version=plan.version + 1, queries=queries)


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_a_dictionary(tmp_path: Path, seed: int) -> None:
    (tmp_path / "state").mkdir()
    rng, root = random.Random(seed), str(tmp_path)
    plan, last = changed(Planned(0, {}, {}), rng), Manifest(0, 0)
    known: dict[tuple[str, int], list[int]] = {}
    most = 0
    with patch.object(query_totals, "MAX_INLINE_QUERIES", 6):
        for epoch in range(1, 60):
            plan = changed(plan, rng) if rng.random() < 0.4 else plan
            some = rng.sample(sorted(plan.queries), rng.randrange(len(plan.queries) + 1))
            counts = {
                plan.queries[name]: (rng.randrange(1, 9), rng.randrange(1, 4)) for name in some
            }
            for place, (n, reports) in counts.items():
                had = known.setdefault((place.name, place.since), [0, 0])
                known[place.name, place.since] = [had[0] + n, had[1] + reports]
            told = told_of(counts)
            assert told.solutions == sum(n for n, _ in counts.values())
            totals, files = query_totals.update_totals(root, cast(Plan, plan), last, epoch, told)
            last = Manifest(epoch, plan.version, totals=totals, total_files=files)
            assert len(totals) <= 6
            most = max(most, len(files))
            here = cast(Plan, plan)
            for query in plan.queries.values():
                found = query_totals.total_of(root, last, cast(Any, query))
                assert list(found) == known.get((query.name, query.since), [0, 0])
            there = [(q.name, q.since) for q in plan.queries.values()]
            expected = {key[0]: known[key][0] for key in there if key in known}
            assert query_totals.solutions_of(root, last, here) == expected
    assert 1 < most < 6


def test_a_manifest_does_not_grow_by_queries(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    sizes = []
    for many in (2_000, 20_000):
        node = Node(Places([Place(f"query-{i}", 3, i, 1) for i in range(many)]))
        plan = cast(Plan, Planned(1, {3: node}, {place.name: place for place in node.members}))
        told = told_of(dict.fromkeys(node.members, (5, 2)))
        totals, files = query_totals.update_totals(str(tmp_path), plan, Manifest(0, 1), 1, told)
        sizes.append(len(encode_manifest(Manifest(1, 1, totals=totals, total_files=files))))
        last = Manifest(1, 1, totals=totals, total_files=files)
        assert query_totals.total_of(str(tmp_path), last, cast(Any, node.members[-1])) == (5, 2)
    assert abs(sizes[1] - sizes[0]) < 16


def test_what_is_deleted_meanwhile_is_read_by_a_newer_manifest() -> None:
    old, new = Manifest(1, 1), Manifest(2, 1)
    now = [old, new, new]

    def read(manifest: Manifest) -> int:
        if manifest is old:
            raise CheckpointError("It is deleted.")
        return manifest.epoch

    assert query_totals.read_by_last_manifest(lambda: now.pop(0), read) == 2
    with pytest.raises(CheckpointError, match="deleted"):
        query_totals.read_by_last_manifest(lambda: old, read)
