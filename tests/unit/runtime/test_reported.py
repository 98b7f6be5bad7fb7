"""Counts by columns say what dictionaries of them would, in JSON too."""

import random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.result_counts import NONE, ResultCounts, ResultTotals, merge_counts
from levada.core.frame import Frame
from levada.plan.execution.member_table import MemberTable
from levada.plan.execution.plan import Plan
from levada.plan.execution.shapes import Member
from levada.runtime.driver import epoch_totals

Known = dict[tuple[int, int], tuple[int, int, int, int]]
NAMES = ("n", "least", "most", "reports")


def told_of(known: Known) -> ResultCounts:
    order = sorted(known)
    columns = {"node": [node for node, _ in order], "op": [op for _, op in order]}
    columns |= {name: [known[at][i] for at in order] for i, name in enumerate(NAMES)}
    rows = {name: np.array(column, np.int64) for name, column in columns.items()}
    return ResultCounts.from_rows(Frame(rows, len(order)))


def drawn(rng: random.Random, most: int) -> Known:
    nodes = rng.sample(range(9), rng.randrange(1, 4))
    same = rng.random() < 0.3
    found: Known = {}
    for _ in range(rng.randrange(most)):
        low = 5 if same else rng.randrange(50)
        high = low + (0 if same else rng.randrange(9))
        found[rng.choice(nodes), rng.randrange(20)] = (
            rng.randrange(1, 9), low, high, rng.randrange(1, 4)
        )  # fmt: skip
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_is_told_is_known(seed: int) -> None:
    rng = random.Random(seed)
    known = drawn(rng, 40)
    told = msgspec.json.decode(msgspec.json.encode(told_of(known)), type=ResultCounts)
    assert (len(told), told.solutions) == (len(known), sum(c[0] for c in known.values()))
    assert {(a, b): told.emit_counts(a, b) for a in range(10) for b in range(21)} == {
        (a, b): known.get((a, b)) for a in range(10) for b in range(21)
    }
    members = MemberTable.from_members([Member((0,), query=f"q{i}") for i in range(21)])
    plan = cast(Plan, SimpleNamespace(nodes={a: SimpleNamespace(members=members) for a in [4]}))
    one = {at: counts for at, counts in known.items() if at[0] == 4}
    assert told_of(one).by_name(plan) == {f"q{op}": counts for (_, op), counts in one.items()}


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_what_several_tell_is_added_up(seed: int, alike: bool) -> None:
    rng = random.Random(seed)
    several = [drawn(rng, 30) for _ in range(rng.randrange(1, 6))]
    if alike:  # all have the members of the first
        counts = [c for known in several for c in known.values()]
        several = [{at: rng.choice(counts) for at in several[0]} for _ in several]
    sums, both = ResultTotals(), dict[tuple[int, int], list[int]]()
    for known in several:
        sums.add(told_of(known))
        for at, (n, low, high, reports) in known.items():
            had = both.setdefault(at, [0, low, high, 0])
            both[at] = [had[0] + n, min(had[1], low), max(had[2], high), had[3] + reports]
    rows, shared = merge_counts([told_of(known).frame() for known in several])
    told = ResultCounts.from_rows(rows)
    assert {at: told.emit_counts(*at) for at in both} == {
        at: tuple(had) for at, had in both.items()
    }
    assert len(told) == len(both)
    times = {at: sum(at in known for known in several) for at in both}
    assert shared.tolist() == [times[at] > 1 for at in sorted(both)]
    for (node, member), had in both.items():
        query = cast(Any, SimpleNamespace(node=node, member=member))
        query.with_former_emits = (query,)
        assert sums.query_totals(query) == (had[0], had[3])
    assert (sums.solutions, sums.reports) == tuple(sum(h[i] for h in both.values()) for i in (0, 3))
    over = sums.members_above(3)
    places = zip(over["node"].tolist(), over["op"].tolist(), strict=True)
    expected = {at: had[3] for at, had in both.items() if had[3] > 3}
    assert dict(zip(places, over["reports"].tolist(), strict=True)) == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_report_of_several_tasks_is_one(seed: int) -> None:
    """Each task has rows of some reports of some queries."""
    rng = random.Random(seed)
    done, segments, rows = [], {}, dict[tuple[int, int], list[int]]()
    for task in range(rng.randrange(1, 5)):
        own: dict[tuple[int, int], list[int]] = {}
        for _ in range(rng.randrange(30)):
            at, report = (rng.choice([2, 5]), rng.randrange(4)), rng.randrange(6)
            own.setdefault(at, []).append(report)
            rows.setdefault(at, []).append(report)
        counts = {at: (len(all_), min(all_), max(all_), len({*all_})) for at, all_ in own.items()}
        frames: dict[str, Frame] = {}
        for node in {node for node, _ in own}:
            pairs = [(op, r) for (n, op), all_ in own.items() if n == node for r in {*all_}]
            op, r = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
            frames[f"reports.{node}"] = Frame({"op": op, "r": r}, len(pairs))
        segments[str(task)] = frames
        done.append(TaskOutcome(1, task, segment=str(task), counts=told_of(counts)))
    told = epoch_totals.counts(done, lambda name: (segments[name], None))
    expected = {at: (len(r), min(r), max(r), len({*r})) for at, r in rows.items()}
    assert {at: told.emit_counts(*at) for at in expected} == expected and len(told) == len(expected)


def test_nothing_is_told() -> None:
    assert (len(NONE), NONE.solutions, NONE.emit_counts(1, 1), NONE.frame().n) == (0, 0, None, 0)
    assert ResultCounts.from_rows(NONE.frame()) == NONE
    assert msgspec.json.encode(NONE) == b"{}"
    assert epoch_totals.counts([TaskOutcome(1, 0)], lambda name: ({}, None)) == NONE
