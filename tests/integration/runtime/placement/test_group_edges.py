"""What one stage sends to the next is counted from group to group: against the input, and the same
under deaths, attempts that are made twice, moves of groups and other numbers of partitions.
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import levada
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.key_group_tables import Dealing
from levada.core.key_groups import group_of
from levada.engine.placement.measured_send_graph import read_group_send_graph, read_send_graph
from levada.errors import EngineError
from levada.placement.cost import share
from levada.placement.placement_file import group_name
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin
from levada.runtime.executor import LocalExecutor
from levada.runtime.placement import key_group_counters
from levada.runtime.placement.key_group_counters import FINEST, Block, read_slice

KEYS, VALUES, MOST = 40, 25, 4
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT1000S STEP PT1000S]"
CHAIN = f"""PREFIX : <http://e/>
SELECT ?k ?v ?w ?z {WINDOW} WHERE {{ WINDOW :w {{ ?k :p ?v . ?k :q ?w . ?w :r ?z }} }}"""
TOTALS = f"""PREFIX : <http://e/>
SELECT ?c (COUNT(*) AS ?n) {WINDOW} WHERE {{ WINDOW :w {{ ?k :p ?c . ?k :q ?w }} }} GROUP BY ?c"""
Edges = Counter[tuple[int, int]]


def write(folder: Path) -> list[tuple[int, str, int]]:
    """Three files: who has which property with which value, all within one window."""
    folder.mkdir()
    rng = np.random.default_rng(4)
    rows = []
    lines: list[list[str]] = [[], [], []]
    for i in range(400):
        name = "pqr"[int(rng.integers(3))]
        of, to = (int(rng.integers(VALUES if name == "r" else KEYS)), int(rng.integers(VALUES)))
        rows.append((of, name, to))
        subject = f"<http://e/{'v' if name == 'r' else 'k'}{of}>"
        lines[i % 3].append(f"{subject} <http://e/{name}> <http://e/v{to}> {10 * i} .\n")
    for i, own in enumerate(lines):
        (folder / f"{i}.nt").write_text("".join(own))
    return rows


def run(
    root: Path, folder: Path, text: str = CHAIN, dealing: Dealing | None = None, **given: Any
) -> None:
    options: dict[str, Any] = {
        "partitions": 3,
        "epoch_rows": 100,
        "slices": f"1d,groups={FINEST}",
    } | given
    with levada.Engine(
        spark=False, checkpoint=root, seed=5, keep_results=False, **options
    ) as engine:
        if dealing is not None:
            engine._open().tables.dealing = dealing
        engine.stream("http://e/s", folder, files="parallel")
        engine.register(text, name="q")
        engine.start(once=True)
        engine.await_end()


def blocks(root: Path) -> list[Block]:
    manifest = newest_manifest(root)
    assert manifest is not None
    return [b for name in manifest.group_count_files for b in read_slice(str(root), manifest, name)]


def edges(found: list[Block]) -> Edges:
    told: Edges = Counter()
    for b in found:
        if b.sources is not None:
            columns = (b.sources.tolist(), b.groups.tolist(), b.rows.tolist())
            for source, target, rows in zip(*columns, strict=True):
                told[source, target] += rows
    return told


def joined(rows: list[tuple[int, str, int]]) -> Edges:
    """Each k with a p and a q, from where k is to where the q's value is."""
    left = Counter({(k, v) for k, name, v in rows if name == "p"})
    many = Counter(k for k, _ in left)
    right = {(k, w) for k, name, w in rows if name == "q"}
    found: Edges = Counter()
    for k, w in right:
        if many[k]:
            pair = group_of(f"<http://e/k{k}>"), group_of(f"<http://e/v{w}>")
            found[pair] += many[k]
    return found


def by_lot(epoch: int, table: GroupTable) -> GroupTable:
    """Before each epoch half of the groups move, among one to four partitions."""
    rng = np.random.default_rng(epoch)
    parts = int(rng.integers(1, MOST + 1))
    to = table.partition.astype(np.int32)
    moved = (rng.random(table.groups) < 0.5) | (to >= parts)
    to[moved] = rng.integers(0, parts, np.count_nonzero(moved))
    other = np.flatnonzero(to != deal_round_robin(table.groups, parts).partition).astype(np.int32)
    return GroupTable(1, table.groups, parts, other, to[other])


@pytest.mark.parametrize("most", [2, 16])
def test_a_stage_sends_from_group_to_group_what_the_input_says(most: int, tmp_path: Path) -> None:
    rows = write(tmp_path / "s")
    with patch.object(key_group_counters, "MOST_FILES", most):
        run(tmp_path / "ck", tmp_path / "s")
    found = blocks(tmp_path / "ck")
    assert edges(found) == joined(rows) and len(joined(rows)) > 100
    assert all(b.sources is not None or b.sender.startswith("http") for b in found)


@pytest.mark.parametrize("parts", [1, 7])
def test_other_partitions_send_the_same_between_groups(parts: int, tmp_path: Path) -> None:
    rows = write(tmp_path / "s")
    run(tmp_path / "ck", tmp_path / "s", partitions=parts)
    assert edges(blocks(tmp_path / "ck")) == joined(rows)


def test_moves_attempts_and_deaths_send_the_same_between_groups(tmp_path: Path) -> None:
    """Groups move before each epoch; each job is run twice; each epoch's engine dies once."""
    rows, run_job, died = write(tmp_path / "s"), LocalExecutor.run, set()

    def die(self: LocalExecutor, job: Any) -> Any:
        run_job(self, job)
        if (key := bytes(b"".join(job.payloads))) not in died:
            died.add(key)
            raise EngineError("killed")
        return run_job(self, job)

    with patch.object(LocalExecutor, "run", die):
        for _ in range(40):
            try:
                run(tmp_path / "ck", tmp_path / "s", dealing=by_lot)
                break
            except EngineError:
                continue
    assert len(died) > 3
    assert edges(blocks(tmp_path / "ck")) == joined(rows)


def test_the_graph_by_group_has_the_rows_between_stages(tmp_path: Path) -> None:
    """All of them by 65,536 groups and by few; a placement has the share that the rows say."""
    rows = write(tmp_path / "s")
    run(tmp_path / "ck", tmp_path / "s")
    wanted = joined(rows)
    for groups in (FINEST, 16):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = read_group_send_graph(tmp_path / "ck", None, groups)
        readers = sum(name.startswith("http") for name in graph.tasks)
        place = {name: i for i, name in enumerate(graph.tasks)}
        own = graph.source >= readers
        found = Counter(
            dict(
                zip(
                    zip(graph.source[own].tolist(), graph.target[own].tolist(), strict=True),
                    graph.rows[own].tolist(),
                    strict=True,
                )
            )
        )
        coarse: Edges = Counter()
        for (a, b), n in wanted.items():
            names = (group_name(g * groups // FINEST, groups) for g in (a, b))
            coarse[tuple(place[name] for name in names)] += n
        assert found == coarse
        assert graph.rows[~own].sum() == len(rows)
        machine = (np.arange(len(graph.tasks)) % 3).astype(np.int32)
        far = machine[graph.source] != machine[graph.target]
        assert share(graph, machine) == graph.rows[far].sum() / (len(rows) + wanted.total())


def test_partials_of_several_groups_are_told_and_left_out(tmp_path: Path) -> None:
    """What is added up before it is sent on is of one group, or of none: both are the rows that
    tasks of the first stage have sent.
    """
    write(tmp_path / "s")
    run(tmp_path / "ck", tmp_path / "s", TOTALS, epoch_rows=600)
    found = blocks(tmp_path / "ck")
    manifest = newest_manifest(tmp_path / "ck")
    assert manifest is not None
    none = [b for b in found if b.sources is None and not b.sender.startswith("http")]
    assert none and all(b.sender.startswith("1.") for b in none)
    lost = sum(int(b.rows.sum()) for b in none)
    tasks = read_send_graph(tmp_path / "ck", None)
    stage = [i for i, name in enumerate(tasks.tasks) if name.startswith("1.")]
    to = [i for i, name in enumerate(tasks.tasks) if name.startswith("2.")]
    sent = tasks.rows[np.isin(tasks.source, stage) & np.isin(tasks.target, to)].sum()
    assert lost + edges(found).total() == sent
    with pytest.warns(UserWarning, match=rf"^{lost:,} of .* out of several groups: no group"):
        graph = read_group_send_graph(tmp_path / "ck", None, FINEST)
    assert graph.rows.sum() == sum(int(b.rows.sum()) for b in found) - lost


def test_many_nodes_are_counted_together(tmp_path: Path) -> None:
    rows = write(tmp_path / "s")
    with patch.object(key_group_counters, "MOST_NODES", 1):
        run(tmp_path / "ck", tmp_path / "s")
    assert edges(blocks(tmp_path / "ck")) == joined(rows)
