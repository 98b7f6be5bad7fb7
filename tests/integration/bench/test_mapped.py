"""BriskStream's figures as they map onto a cluster (``bench.mapped``), stepped at a tiny size:
counts, what clocks add up to, what the model says of placements. No time is asserted.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from bench import edges, factors, mappings
from bench.mapped import placed, predicted, rowwise, runs, works
from bench.mapped.clock import lines
from bench.mapped.predicted import SHAPES, Case, Costs, case, fit, placements, remote

from levada.placement.replication.rlas import Search

COSTS = Costs(0.01, 0.005, 0.01, 4e-9, 6e-9)
TINY = 0.002  # of a work: epochs of 200
SEARCH = Search(steps=300, nodes=50)


def test_each_clock_is_within_its_call_and_all_rows_are_on_an_edge(tmp_path: Path) -> None:
    work = works.WORKS["SD"]
    written = work.write(tmp_path, work.size(TINY), False)
    root = tmp_path / "ck"
    engine, options = partial(runs.ClockedEngine, None), {"partitions": 2}
    told = runs.run(work, written, root, make=engine, options=options)
    found = lines(root)
    for line in found:
        within = Counter[str](line)
        assert within["nodes"] + within["unpack"] + within["pack"] <= line["cpu"]
        if line["stage"]:
            assert within["cut"] <= within["nodes"]
    calls = edges.calls_of(found, told)
    readings = 2 * told.rows  # one of each for the mean, one for what is joined with it
    assert calls[1]["rows"] == readings
    first, *_ = edges.edges_of(calls, [])
    parts = (first[f"{part}_us"] for part in ("kernel", "rest"))
    assert sum(parts) * readings * 1e3 < calls[1]["cpu"] and first["rows"] == readings


@pytest.mark.parametrize("name", list(rowwise.HANDS))
def test_by_hand_there_are_the_results_of_plain_python(name: str) -> None:
    told = factors.compare(name, TINY, None)  # checks the counts
    assert set(told) == set(rowwise.WAYS)
    app = works.APPLICATIONS[name]
    streams = app.make(2500, 5)
    (right,) = (app.answers(streams)[q] for q in app.measured)
    of, frame = rowwise.HANDS[name], streams[rowwise.STREAM[name]]
    state: dict[Any, Any] = {}
    pieces = [of.frame(state, frame.slice(at, 600)) for at in range(0, frame.height, 600)]
    state = {}
    assert [of.row(state, row) for row in frame.iter_rows()] == right
    assert sorted(pl.concat(pieces).rows()) == sorted(right)


def test_costs_are_those_that_jobs_were_made_of() -> None:
    def cost(stages: int, tasks: int, size: int, far: bool) -> float:
        sent = size * tasks * (4 + (stages - 1) * tasks) * (COSTS.far if far else COSTS.near)
        return COSTS.driver + COSTS.stage * stages + COSTS.task * (4 + stages * tasks) + sent

    assert fit([(shape, cost(*shape)) for shape in SHAPES]).told() == COSTS.told()
    cheaper = fit([(shape, cost(*shape) - 0.02) for shape in SHAPES])
    assert cheaper.driver == 0 and min(cheaper.told().values()) >= 0


def _by_hand() -> Case:
    """Two stages of two tasks: 1,000 elements an epoch, of which each is a row of 64 bytes."""
    calls = [Counter(cpu=2_000_000), Counter(cpu=8_000_000, rows=2000, bytes=128_000)]
    return case(calls, 2, 1000, [2, 2], COSTS)


def test_what_is_predicted_of_a_plan_by_hand() -> None:
    of = _by_hand()
    together, apart = np.array([[2, 0, 0, 0]] * 2), np.array([[2, 0, 0, 0], [0, 1, 1, 0]])
    assert remote(of, together) == 0 and remote(of, apart) == 64_000
    near, far = 64 * 4e-9, 64 * 6e-9
    # two tasks of an executor are one after the other
    read = 0.005 + 2 * (0.01 + 500 * 1e-6)
    first = 0.01 + read + 0.005 + 2 * (0.01 + 500 * (4e-6 + near))
    second = 0.01 + read + 0.005 + 0.01 + 500 * (4e-6 + far)
    for counts, seconds in ((together, first), (apart, second)):
        told = predicted.predicted(of, counts, 2)
        assert told["rows_per_s"] == pytest.approx(1000 / seconds, abs=1)
    # on one core nothing is side by side
    one = predicted.predicted(of, apart, 1)["rows_per_s_here"]
    assert one == pytest.approx(1000 / (second + 0.01 + 500 * (4e-6 + far)), abs=1)


@pytest.mark.long
def test_rlas_is_predicted_to_be_below_no_other_and_places_all_tasks() -> None:
    of = _by_hand()
    found = placements(of, SEARCH)
    rates = {way: predicted.predicted(of, counts, 4)["rows_per_s"] for way, counts in found.items()}
    assert rates["rlas"] == max(rates.values()) > min(rates.values())
    assert all(counts.sum(axis=1).tolist() == [2, 2] for counts in found.values())


def test_a_work_is_placed_by_the_names_of_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PARTITIONS", 2)
    told = mappings.compare("WC", TINY, None, COSTS, SEARCH)
    assert told["tasks"] == [works.FILES, runs.PARTITIONS]
    assert {"rlas", "ff", "rr", "os_1", "os_2"} < told.keys()
    work = works.WORKS["WC"]
    graph = placed.counted(work, work.write(tmp_path, 200, False), tmp_path / "ck")
    stages = placed.by_stage(graph)
    far, near = placed.apart(stages), placed.near(stages)
    links = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    ends = [(graph.tasks[a], graph.tasks[b]) for a, b in links if graph.tasks[b] in far]
    assert len(ends) == len(stages[0]) * runs.PARTITIONS
    assert all(far[a] != far[b] and near[a] == near[b] for a, b in ends)
    inner = [i for i, (_, b) in enumerate(links) if graph.tasks[b] in far]
    assert graph.bytes is not None
    assert predicted.sent_far(graph, far) == graph.bytes[inner].sum() > 0
    assert predicted.sent_far(graph, near) == 0


def test_which_rows_are_in_one_file() -> None:
    assert {works.place_of(key) for key in range(100)} == set(range(works.FILES))
