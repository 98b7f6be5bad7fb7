"""The number of partitions while an engine runs: who says it, what is told of it, what a start on
the same checkpoint keeps, and what is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.manifest import Manifest
from levada.cli.explain import explain_placement
from levada.core.integer_options import check_partitions
from levada.engine.engine import Engine
from levada.engine.status.execution_status import sentences
from levada.engine.status.status import read_status
from levada.errors import UsageError
from levada.runtime.cost_model import partition_count
from levada.runtime.cost_model.partition_count import chosen_of
from levada.runtime.driver.parallelism import ParallelismPolicy
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, element, judge, query, register, step

STREAM = [element(20 * i, f"a{i % 40} p b{i * 7 % 97}") for i in range(600)]
PAIRS = query(
    "SELECT ?a ?c",
    "WINDOW :w { ?a :p ?b . ?c :p ?b }",
    name="pairs",
    windows={"w": (S, step(4000, 4000))},
)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is asked of a change, and epochs over two partitions are said to take least."""
    for name in ("SURE", "STEADY", "SETTLES", "JUDGED"):
        monkeypatch.setattr(partition_count, name, 2)
    monkeypatch.setattr(
        ParallelismPolicy, "times_by_partitions", lambda pace: {1: 30.0, 2: 20.0, 3: 40.0}
    )


def run(root: Path, until: int, **given: Any) -> tuple[list[Manifest], MemorySink]:
    told, sink = list[Manifest](), MemorySink()
    options: dict[str, Any] = {
        "spark": False,
        "master": "local[3]",
        "epoch_rows": 20,
        "sink": sink,
        "seed": 7,
    }
    with Engine(checkpoint=root / "ck", **options | given) as engine:
        path = root / "s.nt"
        engine.stream(S, write_lines(path, [e for e in STREAM if e.ts < until]))
        register(engine, [PAIRS])
        engine._on_epoch(told.append)
        engine.start(once=True, keep_open=until < 10**9)
        engine.await_end()
    return told, sink


def partitions(told: list[Manifest]) -> list[int]:
    return [1 + max(int(key.split(".")[1]) for key in m.state) for m in told]


@pytest.mark.usefixtures("soon")
def test_the_model_says_how_many_there_are_and_why(tmp_path: Path) -> None:
    told, sink = run(tmp_path, 10**9, partitions="auto")
    judge([PAIRS], {S: STREAM}, sink.reports)
    numbers = partitions(told)
    assert numbers[0] == 3 and 2 in numbers, numbers
    costs = told[-1].epoch_costs
    assert costs is not None and costs.partition_policy is not None
    first = costs.partition_policy.decisions[0]
    assert (first.partitions_before, first.partitions, first.ms_before, first.expected_ms) == (
        3,
        2,
        40.0,
        20.0,
    )
    assert numbers.index(2) + 1 == first.epoch, "from its epoch on"
    assert first.measured_ms is not None, "what it came to"
    assert set(costs.partition_policy.measured_epochs) >= {2, 3}
    status = read_status(tmp_path / "ck")
    assert status.epoch_costs is not None
    lines = list(sentences(status.epoch_costs))
    assert any("as the model says, of 3 at most" in line for line in lines), lines
    assert any(
        line.startswith(f"From epoch {first.epoch}: 2 partitions, not 3, since epochs like")
        for line in lines
    ), lines
    text = explain_placement(tmp_path / "ck", as_json=False)
    assert "partitions  predicted ms  epochs  predicted ms of these  measured ms" in text, text
    found = json.loads(explain_placement(tmp_path / "ck", as_json=True))["partition_policy"]
    assert found["policy"] == "model" and found["max_partitions"] == 3
    assert found["decisions"][0]["reason"] == first.reason
    assert set(found["predicted_ms"]) == {"1", "2", "3"}
    assert {"2", "3"} <= set(found["measured_epochs"])


@pytest.mark.usefixtures("soon")
def test_a_start_goes_on_over_what_was_chosen_of_as_many_cores(tmp_path: Path) -> None:
    told, _ = run(tmp_path, 2000, partitions="auto")
    assert partitions(told)[-1] == 2 and chosen_of(told[-1]) == 3
    again, _ = run(tmp_path, 4000, partitions="auto")
    assert partitions(again)[0] == 2
    more, _ = run(tmp_path, 6000, partitions="auto", master="local[4]")
    assert partitions(more)[0] == 4, "other cores: all of them, until it is known"
    fixed, _ = run(tmp_path, 8000, partitions="cores")
    assert set(partitions(fixed)) == {3}
    assert fixed[-1].epoch_costs is not None and fixed[-1].epoch_costs.partition_policy is not None
    assert fixed[-1].epoch_costs.partition_policy.policy == "cores"
    last, _ = run(tmp_path, 10**9)
    assert set(partitions(last)) == {3}, "as it is"
    assert last[-1].epoch_costs is not None and last[-1].epoch_costs.partition_policy is not None
    assert last[-1].epoch_costs.partition_policy.policy == "fixed"
    assert last[-1].epoch_costs.partition_policy.predicted_ms[2] == 20.0, "told, and not gone by"


@pytest.mark.usefixtures("soon")
def test_balance_may_leave_the_number_to_the_model(tmp_path: Path) -> None:
    balance = {"reorganize_every": 3}
    told, sink = run(tmp_path, 10**9, balance=balance, partitions="auto")
    judge([PAIRS], {S: STREAM}, sink.reports)
    assert 2 in partitions(told)
    balanced, costs = told[-1].balance, told[-1].epoch_costs
    assert balanced is not None and costs is not None and costs.partition_policy is not None
    assert costs.partition_policy.policy == "model" and costs.partition_policy.decisions
    assert any(
        d.reason == costs.partition_policy.decisions[0].reason for d in balanced.decisions
    ), "told in both"


def test_without_it_the_load_says(tmp_path: Path) -> None:
    told, _ = run(tmp_path, 4000, balance="on")
    assert told[-1].epoch_costs is not None and told[-1].epoch_costs.partition_policy is not None
    assert told[-1].epoch_costs.partition_policy.policy == "load"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"partitions": "cores", "balance": "on"}, "partitions is cores, and balance says"),
        ({"partitions": "atuo"}, "partitions is 'atuo'"),
        ({"partitions": 0}, "partitions is 0, which is no whole number from 1 to 10,000"),
        ({"partitions": 100_000}, "partitions is 100000, which is no whole number from 1"),
    ],
)
def test_what_does_not_go_together_is_told(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Engine(spark=False, **given)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(UsageError) as error:
        check_partitions("atuo")
    assert error.value.hint == "Did you mean auto?"


def test_a_placement_for_another_number_is_refused(tmp_path: Path) -> None:
    """With a placement the number stays: nothing chooses another one under it."""
    place = tmp_path / "p.json"

    def written(task: str) -> Path:
        machine = {task: 0}
        place.write_text(json.dumps({"levada": "placement", "machines": 2, "machine": machine}))
        return place

    with pytest.raises(UsageError, match=r"places the task 1\.3, and .* has 3 partitions"):
        run(tmp_path, 4000, partitions=3, place=written("1.3"))
    with pytest.raises(UsageError, match="partitions is auto, and place says how many"):
        run(tmp_path, 4000, partitions="auto", place=written("1.2"))
    told, _ = run(tmp_path, 4000, partitions=3, place=written("1.2"))
    assert told[-1].epoch_costs is not None and told[-1].epoch_costs.partition_policy is not None
    assert told[-1].epoch_costs.partition_policy.policy == "placement"
