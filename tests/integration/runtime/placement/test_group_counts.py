"""What each reader sends to each group is counted exactly: against the input, under deaths and
replays, in one file and in many; and a run by the placement that follows gives the same results.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from test_send_graph import PARTS, QUERY, run, run_again, write

import levada
from levada.checkpoint import state_files
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.epoch_context import TaskOutcome, load_groups
from levada.checkpoint.key_group_tables import name_of
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.send_graph_options import USUAL
from levada.cli.main import main
from levada.core.checkpoint_files import facts_of
from levada.core.frame import Frame
from levada.core.key_groups import group_of
from levada.engine.placement.measured_send_graph import read_group_send_graph, read_send_graph
from levada.errors import UsageError
from levada.operators.state.checksummed_frames import checked_parts
from levada.placement.placement_file import group_name, group_number
from levada.runtime.placement import key_group_counters, send_graph
from levada.runtime.placement.key_group_counters import FINEST

Sent = Counter[tuple[str, int]]


def counted(root: Path) -> Sent:
    """Rows by sender and group, of all slices, and of stages' tasks none that are not readers'."""
    manifest = newest_manifest(root)
    assert manifest is not None
    found: Sent = Counter()
    for name in manifest.group_count_files:
        for block in key_group_counters.read_slice(str(root), manifest, name):
            for group, rows in zip(block.groups.tolist(), block.rows.tolist(), strict=True):
                found[block.sender, group] += rows
    return found


def wanted(found: dict[str, list[tuple[str, int]]], groups: int = USUAL) -> Sent:
    return Counter(
        (f"http://e/s {name}", group_of(key, groups))
        for name, keys in found.items()
        for key, _ in keys
    )


@pytest.mark.parametrize("seed", range(4))
def test_counts_added_up_as_they_are_packed_are_those_of_their_groups(seed: int) -> None:
    """Numbers of all groups, groups with numbers, and pairs; against the unpacked ones."""
    rng = np.random.default_rng(seed)
    pending = []
    for _ in range(12):
        rows = np.zeros(USUAL, np.int64)
        np.add.at(rows, rng.integers(0, USUAL, int(rng.choice((3, 400, 60_000)))), rng.integers(9))
        pending.append((f"s{rng.integers(2)}", key_group_counters._pack(1, rows, int(rows.sum()))))
    for _ in range(3):
        pairs = np.unique(rng.integers(0, 1 << 32, 50))
        told = key_group_counters._of_pairs(1, pairs, rng.integers(1, 9, len(pairs)), 7, USUAL)
        pending.append((key_group_counters.BY_GROUP, told))
    added = key_group_counters._merge_packed(pending)
    assert len(added) == 3
    for one, other in zip(
        map(key_group_counters._block, added),
        key_group_counters.merge_blocks(map(key_group_counters._block, pending)),
        strict=True,
    ):
        assert (one.sender, one.node, one.size, one.of) == other[:2] + other[4:5] + other[6:]
        assert np.array_equal(one.groups, other.groups) and np.array_equal(one.rows, other.rows)
        assert (one.sources is None) == (other.sources is None)
        if one.sources is not None and other.sources is not None:
            assert np.array_equal(one.sources, other.sources)


@pytest.mark.parametrize(("most", "little"), [(2, 0), (16, 0), (2, 500), (16, 1 << 20)])
def test_groups_get_what_stands_in_the_files(most: int, little: int, tmp_path: Path) -> None:
    found = write(tmp_path / "s", days=2)
    with patch.multiple(key_group_counters, MOST_FILES=most, LITTLE=little):
        run(tmp_path / "ck", tmp_path / "s", slices=f"1mo,groups={FINEST}", epoch_rows=100)
    assert counted(tmp_path / "ck") == wanted(found, FINEST)
    manifest = newest_manifest(tmp_path / "ck")
    assert manifest is not None
    assert manifest.epoch > 5
    files = manifest.group_count_files["1970-01"]
    assert (little < 1 << 20) <= len(files) <= min(most, manifest.epoch)
    assert bool(manifest.pending_group_counts) == (not files) or little == 500


def test_one_partition_counts_groups_too(tmp_path: Path) -> None:
    found = write(tmp_path / "s")
    with levada.Engine(
        spark=False, checkpoint=tmp_path / "ck", partitions=1, slices="1d", keep_results=False
    ) as engine:
        engine.stream("http://e/s", tmp_path / "s", files="parallel")
        engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
    assert counted(tmp_path / "ck") == wanted(found)


@pytest.mark.parametrize("groups", [1, 64, USUAL])
def test_fewer_groups_have_what_finer_ones_have_together(groups: int, tmp_path: Path) -> None:
    """Counted by fewer, the graph is what the finest counts give for as many, and no finer one can
    be had.
    """
    found = write(tmp_path / "s", days=2)
    for name, finest in (("few", groups), ("all", FINEST)):
        asked = {"slices": f"1mo,groups={finest}", "epoch_rows": 100}
        run(tmp_path / name, tmp_path / "s", **asked)
    assert counted(tmp_path / "few") == wanted(found, groups)
    few, every = (read_group_send_graph(tmp_path / name, None, groups) for name in ("few", "all"))
    assert few.tasks == every.tasks
    for column in ("source", "target", "rows"):
        assert getattr(few, column).tolist() == getattr(every, column).tolist()
    with pytest.raises(UsageError, match=f"was counted by {groups:,} groups, and 65,536 are"):
        read_group_send_graph(tmp_path / "few", None, FINEST)


def test_a_slice_may_be_counted_by_few_groups_and_then_by_many(tmp_path: Path) -> None:
    """A checkpoint goes on with other groups: what a slice has is exact by the fewest of them."""
    found = write(tmp_path / "s", days=2)
    names = sorted(found)
    for groups, some in ((64, names[:1]), (USUAL, names[1:])):
        (tmp_path / "in").mkdir(exist_ok=True)
        for name in some:
            (tmp_path / "s" / name).rename(tmp_path / "in" / name)
        with levada.Engine(
            spark=False, checkpoint=tmp_path / "ck", partitions=PARTS, keep_results=False,
            slices=f"1mo,groups={groups}",
        ) as engine:  # fmt: skip
            engine.stream("http://e/s", tmp_path / "in", files="parallel", lateness="10d")
            engine.register(QUERY, name="q")
            engine.start(once=True, keep_open=True)
            engine.await_end()
    with pytest.raises(UsageError, match="was counted by 64 groups"):
        read_group_send_graph(tmp_path / "ck", None, USUAL)
    graph = read_group_send_graph(tmp_path / "ck", None, 64)
    names = [graph.tasks[i] for i in graph.source]
    got = Counter()
    for name, to, rows in zip(names, graph.target, graph.rows.tolist(), strict=True):
        got[name, group_number(graph.tasks[to])] += rows
    assert got == wanted(found, 64)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_epoch_that_is_run_again_counts_once(when: str, tmp_path: Path) -> None:
    found = write(tmp_path / "s")
    run_again(tmp_path, when)
    assert counted(tmp_path / "ck") == wanted(found)


@pytest.mark.parametrize("most", [1, 200, 60_000, 2**31])
@pytest.mark.parametrize("many", [0, 3, 40_000, FINEST])
@pytest.mark.parametrize("little", [-1, 1 << 30])
def test_what_is_packed_is_what_was_counted(
    many: int, most: int, little: int, tmp_path: Path
) -> None:
    """Whatever is shorter, in the width that the largest number needs; by way of JSON and a file;
    and together with others in one file.
    """
    rng = np.random.default_rng(5)
    groups = np.sort(rng.permutation(FINEST)[:many])
    rows = np.zeros(FINEST, np.int64)
    rows[groups] = rng.integers(1, most + 1, many)
    told = TaskOutcome(0, 0, reader="r", sent=[key_group_counters._pack(7, rows, 99)])
    done = [msgspec.convert(msgspec.json.decode(msgspec.json.encode(told)), TaskOutcome)]
    assert len(done[0].sent[0].rows) <= 8 * FINEST * 4 / 3
    (tmp_path / "graph").mkdir()
    last = Manifest(0, 0)
    with patch.multiple(key_group_counters, MOST_FILES=2, LITTLE=little):
        for epoch in range(3):
            files, pending = key_group_counters.add_to_slices(
                str(tmp_path), epoch, last, "day", done
            )
            last = Manifest(epoch, 0, group_count_files=files, pending_group_counts=pending)
    files, pending = key_group_counters.add_to_slices(str(tmp_path), 4, last, "night", [])
    last = Manifest(4, 0, group_count_files=files, pending_group_counts=pending)
    found = list(key_group_counters.read_slice(str(tmp_path), last, "day"))
    assert not list(key_group_counters.read_slice(str(tmp_path), last, "night"))
    assert {(block.sender, block.node) for block in found} == {("r", 7)}
    assert sum(block.size for block in found) == 3 * 99
    total = np.zeros(FINEST, np.int64)
    for block in found:
        assert (block.rows > 0).all(), "groups that got nothing are not told"
        total[block.groups] += block.rows
    assert (total == 3 * rows).all()


def test_a_slice_that_comes_again_has_what_was_counted_in_it(tmp_path: Path) -> None:
    """As where the length of slices changes from run to run."""
    rows = np.zeros(FINEST, np.int64)
    rows[[4, 9]] = 3, 5
    done = [TaskOutcome(0, 0, reader="r", sent=[key_group_counters._pack(7, rows, 99)])]
    (tmp_path / "graph").mkdir()
    last = Manifest(0, 0)
    for epoch, name in enumerate(("2004-08-07", "2004-08", "2004-08-07"), 1):
        slices, sent = send_graph.add_to_slices(str(tmp_path), epoch, last, name, done)
        files, pending = key_group_counters.add_to_slices(str(tmp_path), epoch, last, name, done)
        last = Manifest(
            epoch,
            0,
            group_count_files=files,
            pending_group_counts=pending,
            slices=slices,
            slice_counts=sent,
        )
    assert list(last.group_count_files) == list(last.slices) == ["2004-08", "2004-08-07"]
    for name, times in (("2004-08", 1), ("2004-08-07", 2)):
        found = list(key_group_counters.read_slice(str(tmp_path), last, name))
        assert sum(int(block.rows.sum()) for block in found) == 8 * times


def test_files_of_before_are_of_the_finest_groups(tmp_path: Path) -> None:
    """They do not say by how many groups rows were counted."""
    (tmp_path / "graph").mkdir()
    data = Frame({"bytes": np.array([7, 0, 9, 0, 3, 5], np.uint8)})
    written = checked_parts({"packed": data}, [["r", 7, 4, 2, 0, 1, 99]])
    name = state_files.write(str(tmp_path), "graph", "1", written)
    (block,) = key_group_counters.read(str(tmp_path), [name])
    assert (block.sender, block.node, block.size, block.of) == ("r", 7, 99, FINEST)
    assert (block.groups.tolist(), block.rows.tolist()) == ([7, 9], [3, 5])


def test_the_graph_by_group_adds_up_to_that_by_task(tmp_path: Path) -> None:
    write(tmp_path / "s")
    run(tmp_path / "ck", tmp_path / "s", slices=f"1d,groups={FINEST}")
    tasks = read_send_graph(tmp_path / "ck", None)
    readers = [i for i, name in enumerate(tasks.tasks) if name.startswith("http")]
    sent = sum(int(tasks.rows[tasks.source == i].sum()) for i in readers)
    for groups in (FINEST, 64):
        graph = read_group_send_graph(tmp_path / "ck", None, groups)
        assert graph.rows.sum() == sent
        assert graph.bytes is not None
        assert graph.bytes.min() > 0
        assert graph.tasks[:3] == tuple(f"http://e/s {i}.nt" for i in range(3))
        assert group_name(group_of("<http://e/k0>", groups), groups) in graph.tasks
    with pytest.raises(UsageError, match="cannot be 100 groups"):
        read_group_send_graph(tmp_path / "ck", None, 100)


def test_what_nodes_cost_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "s")
    run(tmp_path / "ck", tmp_path / "s", slices="1d")
    manifest = newest_manifest(tmp_path / "ck")
    assert manifest is not None
    (name,) = manifest.slices
    told = send_graph.read_slice(str(tmp_path / "ck"), manifest, name)
    assert told.cpu_by_node
    assert 0 < sum(told.cpu_by_node.values()) <= sum(told.cpu_by_task.values())


def test_a_measured_run_is_placed_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the first run to the second one, by the commands. Each file's keys are in one
    partition then.
    """
    found = write(tmp_path / "s")
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "ck", tmp_path / "s", slices=f"1d,groups={FINEST}")
    assert main(["graph", "export", "ck", "--groups", "65536", "--out", "g.json"]) == 0
    assert main(["place", "g.json", "--machines", "3", "--out", "p.json"]) == 0
    shown = capsys.readouterr().out
    assert next(x for x in shown.splitlines() if x.startswith("refined")).split()[1] == "0.00%"
    results = []
    for name, place in (("a", ""), ("b", "p.json")):
        with levada.Engine(
            spark=False, checkpoint=tmp_path / name, partitions=PARTS, place=place, slices="1d"
        ) as engine:
            engine.stream("http://e/s", tmp_path / "s", files="parallel")
            query = engine.register(QUERY, name="q")
            engine.start(once=True)
            results.append(
                sorted((r.time, row) for r in query.results() for row in map(tuple, r.rows.rows()))
            )
    assert results[0] == results[1] != []
    manifest = newest_manifest(tmp_path / "b")
    assert manifest is not None
    assert manifest.placement is not None
    assert manifest.placement.name == "p.json"
    table = load_groups(
        str(tmp_path / "b" / name_of(facts_of(tmp_path / "b").id, manifest.group_table_version))
    )
    machine = json.loads((tmp_path / "p.json").read_text())["machine"]
    for name, keys in found.items():
        at = {int(table.partition[group_of(key)]) % 3 for key, _ in keys}
        assert at == {machine[f"http://e/s {name}"]}
