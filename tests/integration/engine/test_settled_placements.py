"""What a placement file becomes: a group table, preferences, or a sentence that says what is wrong
with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import levada
from levada.checkpoint.checkpoint_folder import Checkpoint, newest_manifest
from levada.checkpoint.epoch_context import load_groups
from levada.checkpoint.key_group_tables import name_of
from levada.cli.main import main
from levada.connectors.sources.splits import FileSplit
from levada.core.checkpoint_files import facts_of
from levada.engine.placement.apply_placement import apply_placement
from levada.engine.placement.placement_options import read_placement
from levada.errors import UsageError
from levada.placement.placement_file import FINEST, group_name
from levada.runtime.driver.parallelism import bundles
from levada.runtime.executor import Job
from levada.runtime.placement.task_placement import TaskPlacement
from levada.runtime.preferred_locations import LocalityStats


def write(folder: Path, machines: int, machine: Any, more: dict[str, Any] | None = None) -> Path:
    path = folder / "p.json"
    whole = {"levada": "placement", "machines": machines, "machine": machine}
    path.write_text(json.dumps(whole | (more or {})))
    return path


def settled(folder: Path, path: Path, partitions: int) -> tuple[TaskPlacement, np.ndarray]:
    checkpoint = Checkpoint(folder / "ck", partitions=partitions, seed=1)
    try:
        placed, _ = apply_placement(read_placement(path), checkpoint)
        assert placed is not None
        return placed, checkpoint.tables.load(checkpoint.tables.current).partition
    finally:
        checkpoint.close()


@pytest.mark.parametrize("partitions", [3, 5, 8])
@pytest.mark.parametrize("groups", [64, FINEST])
def test_groups_go_to_partitions_of_their_machine(
    partitions: int, groups: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(groups + partitions)
    machine = {group_name(g, groups): int(m) for g, m in enumerate(rng.integers(0, 3, groups))}
    placed, table = settled(tmp_path, write(tmp_path, 3, machine), partitions)
    wanted = np.repeat(np.array(list(machine.values())), FINEST // groups)
    assert (table % 3 == wanted).all()
    assert placed.partitions == tuple(p % 3 for p in range(partitions))
    used = np.bincount(table, minlength=partitions)
    for m in range(3):  # each machine's groups are dealt evenly
        assert np.ptp(used[m::3]) <= 1


def test_what_is_not_placed_stays_where_it_was_dealt(tmp_path: Path) -> None:
    machine = {group_name(7, FINEST): 1, "http://e/s a.nt": 0, "output": 1}
    placed, table = settled(tmp_path, write(tmp_path, 2, machine), 4)
    others = np.delete(np.arange(FINEST), 7)
    assert (table[others] == others % 4).all()
    assert table[7] == 1
    assert placed.machine["http://e/s a.nt"] == 0


def test_tasks_by_their_names_are_placed_and_the_table_stays(tmp_path: Path) -> None:
    placed, table = settled(tmp_path, write(tmp_path, 9, {"1.0": 8, "2.3": 4}), 4)
    assert (table == np.arange(FINEST) % 4).all()
    job = placed.prefer(Job(b"", [], 2, 4), [], LocalityStats())
    assert job.places is not None
    assert job.places.stages == ((8, -1, -1, -1), (-1, -1, -1, 4))


def reference(stream: str, partition: str, start: int) -> FileSplit:
    return FileSplit(stream, partition, partition, "", "nt", start, start + 10, 0, 0, 1)


def test_payloads_are_those_of_one_machine_and_keep_their_order() -> None:
    placed = TaskPlacement("p", 2, {"s a": 1, "s b": 0, "s c": 1}, (0, 1))
    given = [reference("s", name, 10 * i) for i in range(3) for name in "abcd"]
    payloads = [p.references for p in bundles(given, 4, placed=placed)]
    assert sorted(map(repr, given)) == sorted(repr(r) for p in payloads for r in p)
    for payload in payloads:
        assert len({placed.machine_of(r) for r in payload}) == 1
    for name in "abcd":
        starts = [r.start for p in payloads for r in p if r.partition == name]
        assert starts == [0, 10, 20]
    job = placed.prefer(Job(b"", [b""] * len(payloads), 1, 2), payloads, LocalityStats())
    assert job.places is not None
    assert job.places.payloads == tuple(placed.machine_of(p[0]) for p in payloads)
    fused = Job(b"", [b""], 1, 2, fused=True)
    assert placed.prefer(fused, payloads[:1], LocalityStats()) is fused


def test_state_of_a_checkpoint_that_has_run_moves(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text("<e:a> <e:p> <e:b> 1 .\n")
    path = write(tmp_path, 2, {group_name(g, 4): 1 - g % 2 for g in range(4)})

    def run(**given: Any) -> None:
        with levada.Engine(
            spark=False, checkpoint=tmp_path / "ck", partitions=2, **given
        ) as engine:
            engine.stream("e:s", tmp_path / "s.nt")
            engine.register(
                "SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1S STEP PT1S] "
                "WHERE { WINDOW <e:w> { ?x <e:p> ?y } }",
                name="q",
            )
            engine.start(once=True, keep_open=True)
            engine.await_end()

    run()
    with (tmp_path / "s.nt").open("a") as file:
        file.write("<e:a> <e:p> <e:b> 900 .\n")
    run(place=path)
    manifest = newest_manifest(tmp_path / "ck")
    assert manifest is not None
    name = name_of(facts_of(tmp_path / "ck").id, manifest.group_table_version)
    table = load_groups(str(tmp_path / "ck" / name))
    assert (table.partition == 1 - (np.arange(FINEST) // (FINEST // 4)) % 2).all()


def test_a_new_checkpoint_has_partitions_for_all_machines(tmp_path: Path) -> None:
    wish = read_placement(write(tmp_path, 3, {group_name(0, 4): 2}))
    assert wish is not None
    assert (wish.partitions(4), wish.partitions(3)) == (6, 3)


def test_a_placement_in_vain_is_not_gone_by(tmp_path: Path) -> None:
    write(tmp_path, 3, {"group 0/2": 0, "group 1/2": 1}, {"vain": True})
    (tmp_path / "s.csv").write_text("k,ts\n1,1\n2,2\n")
    with (
        pytest.warns(UserWarning, match="that no placement helps: the run does not go by it"),
        levada.Engine(
            spark=False, checkpoint=tmp_path / "ck", partitions=2, place=tmp_path / "p.json"
        ) as engine,
    ):
        engine.stream("S", tmp_path / "s.csv", schema="k:integer")
        query = engine.register("Istream(Select k From S [Now])", name="q", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars()["k"].to_list() == [1, 2]
    manifest = newest_manifest(tmp_path / "ck")
    assert manifest is not None
    assert manifest.placement is None, "two partitions would be too few for three machines"


@pytest.mark.parametrize(
    ("machine", "more", "said"),
    [
        ({"group 1/100": 0}, {}, "there is no group 1/100"),
        ({"group 64/64": 0}, {}, "there is no group 64/64"),
        ({"group 0/2": 0, "group 1/4": 0}, {}, "are in it twice"),
        ({"group 0/2": 7}, {}, "on machine 7; there are 0 to 1"),
        ({"group 0/2": True}, {}, "on machine True"),
        ({"group 0/2": -1}, {}, "on machine -1"),
        ({"group 0/2": 0}, {"machines": 0}, "a placement on 0 machines"),
        ({"group 0/2": 0}, {"levada": "graph"}, "no machines of tasks"),
        ({"group 0/2": 0}, {"vain": "no"}, "vain is true or false, and not 'no'"),
        ({}, {}, "places nothing"),
        ([], {}, "no machines of tasks"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_says_so(machine: Any, more: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        read_placement(write(tmp_path, 2, machine, more))


def test_a_task_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text('{"levada": "placement", "machines": 2, "machine": {"1.0": 0, "1.0": 1}}')
    with pytest.raises(UsageError, match=r"1.0 is in it twice"):
        read_placement(path)
    path.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="is no placement"):
        read_placement(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_placement(tmp_path / "none.json")
    assert read_placement("off") is None


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"1.4": 0}, "places the task 1.4, and the checkpoint .* has 4 partitions"),
        ({"group 0/2": 4}, "a placement on 5 machines, and the checkpoint .* has 4 partitions"),
    ],
)
def test_a_placement_for_other_partitions_is_refused(
    machine: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        settled(tmp_path, write(tmp_path, 5, machine), 4)


def test_a_placement_of_other_streams_says_what_is_left_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    gone = {"e:t f.nt": 1, "e:t g.nt": 0, "7.0": 0, "8.1": 1}
    write(tmp_path, 2, {"group 0/2": 0, "1.0": 1, "output": 0, **gone})
    (tmp_path / "s.nt").write_text("<e:a> <e:p> <e:b> 1 .\n")
    (tmp_path / "q.rq").write_text(
        "SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1S] "
        "WHERE { WINDOW <e:w> { ?x ?p ?y } }"
    )
    run = ["run", "q.rq", "--stream", "e:s=s.nt", "--place", "p.json", "--master", "none", "--once"]
    assert main(run) == 0
    told = capsys.readouterr().err
    assert "p.json places e:t f.nt and 1 more, which this run has no stream for" in told
    assert "p.json has no place for the stream e:s: any executor may read it" in told
    assert "p.json places the task 7.0 and 1 more, and the queries have 1 stage" in told


def test_the_command_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text("SELECT ?x { ?x <e:p> ?y }")
    assert main(["run", "q.rq", "--place", "none.json", "--master", "none"]) == 2
    assert "none.json cannot be read" in capsys.readouterr().err
