"""What tasks send is counted exactly: against the input, under deaths and replays, by slices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import levada
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.core.key_groups import FINEST, group_of
from levada.engine.placement.measured_send_graph import read_send_graph
from levada.errors import CheckpointError, EngineError, UsageError
from levada.plan.execution.key_group_table import deal_round_robin
from levada.runtime.executor import LocalExecutor
from levada.runtime.placement import send_graph
from levada.runtime.placement.send_graph import SentCounts, read_slice, slice_of
from levada.runtime.placement.task_graph import STATIC

PARTS = 3
DAY = 86_400_000
QUERY = """
PREFIX : <http://e/>
SELECT ?k ?v ?w FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?k :p ?v . ?k :q ?w } }
"""


def write(folder: Path, days: int = 1) -> dict[str, list[tuple[str, int]]]:
    """Three files of triples, each with some of the keys; the keys and times of each."""
    folder.mkdir()
    found: dict[str, list[tuple[str, int]]] = {f"{i}.nt": [] for i in range(3)}
    for day in range(days):
        for i in range(300):
            at, name = day * DAY + 1000 + 10 * i, f"{i % 3}.nt"
            found[name] += [(f"<http://e/k{i % 50 + 50 * (i % 3)}>", at)] * 2
    for name, rows in found.items():
        lines = [
            f'{key} <http://e/{"pq"[n % 2]}> "{n}" {at} .\n' for n, (key, at) in enumerate(rows)
        ]
        (folder / name).write_text("".join(lines))
    return found


def run(root: Path, folder: Path, **options: Any) -> None:
    with levada.Engine(
        spark=False, checkpoint=root, partitions=PARTS, seed=5, keep_results=False, **options
    ) as engine:
        engine.stream("http://e/s", folder, files="parallel")
        engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()


def sent(root: Path) -> dict[str, SentCounts]:
    manifest = newest_manifest(root)
    assert manifest is not None
    return {name: read_slice(str(root), manifest, name) for name in manifest.slices}


def rows(links: dict[str, dict[str, list[int]]]) -> Counter[tuple[str, str]]:
    return Counter({(a, b): n for a, to in links.items() for b, (n, _, _) in to.items() if n})


@pytest.fixture(params=[0, send_graph.LITTLE], ids=["in files", "in manifests"])
def _little(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_graph, "LITTLE", request.param)


@pytest.mark.usefixtures("_little")
def test_what_readers_send_is_what_stands_in_the_files(tmp_path: Path) -> None:
    found = write(tmp_path / "s")
    run(tmp_path / "ck", tmp_path / "s", slices="1d")
    (graph,) = sent(tmp_path / "ck").values()
    table = deal_round_robin(FINEST, PARTS).partition
    wanted = Counter(
        (f"http://e/s {name}", f"1.{table[group_of(key)]}")
        for name, keys in found.items()
        for key, _ in keys
    )
    readers = {(a, b): n for (a, b), n in rows(graph.links).items() if "http" in a}
    assert readers == wanted
    manifest = newest_manifest(tmp_path / "ck")
    assert manifest is not None
    results = sum(n for (_, b), n in rows(graph.links).items() if b == "output")
    assert results == manifest.totals.solutions > 0
    assert set(graph.cpu_by_task) == {
        *(f"http://e/s {n}" for n in found),
        STATIC,
        "1.0",
        "1.1",
        "1.2",
    }


def blobs(links: dict[str, dict[str, list[int]]]) -> dict[tuple[str, str], int]:
    return {(a, b): n for a, to in links.items() for b, (_, _, n) in to.items()}


def run_again(tmp_path: Path, when: str) -> None:
    """Runs to the end, dying once in each epoch, before or after its tasks have run."""
    run_job = LocalExecutor.run
    died: set[bytes] = set()

    def die(self: LocalExecutor, job: Any) -> list[bytes]:
        key = bytes(b"".join(job.payloads))
        if key not in died:
            died.add(key)
            if when == "after":
                run_job(self, job)
            raise EngineError("killed")
        return run_job(self, job)

    with patch.object(LocalExecutor, "run", die):
        for _ in range(40):
            try:
                run(tmp_path / "ck", tmp_path / "s", slices="1d", epoch_rows=100)
                break
            except EngineError:
                continue
    assert len(died) > 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_epoch_that_is_run_again_counts_once(when: str, tmp_path: Path) -> None:
    """It dies before or after its tasks have run, in each epoch."""
    write(tmp_path / "s")
    run(tmp_path / "whole", tmp_path / "s", slices="1d", epoch_rows=100)
    run_again(tmp_path, when)
    whole, again = sent(tmp_path / "whole"), sent(tmp_path / "ck")
    assert list(again) == list(whole)
    for name, graph in whole.items():
        assert rows(again[name].links) == rows(graph.links)
        assert blobs(again[name].links) == blobs(graph.links)


@pytest.mark.usefixtures("_little")
def test_days_are_counted_apart_and_add_up(tmp_path: Path) -> None:
    write(tmp_path / "s", days=3)
    run(tmp_path / "days", tmp_path / "s", slices="1d", epoch_rows=150)
    run(tmp_path / "months", tmp_path / "s", slices="1mo", epoch_rows=150)
    days, months = sent(tmp_path / "days"), sent(tmp_path / "months")
    assert list(months) == ["1970-01"]
    assert set(days) == {"1970-01-01", "1970-01-02", "1970-01-03"}
    total: Counter[tuple[str, str]] = Counter()
    for graph in days.values():
        total += rows(graph.links)
    assert total == rows(months["1970-01"].links)


def test_a_run_that_counts_nothing_keeps_what_was_counted(tmp_path: Path) -> None:
    write(tmp_path / "s")
    run(tmp_path / "ck", tmp_path / "s")
    assert sent(tmp_path / "ck") == {}
    with pytest.raises(UsageError, match="has counted nothing"):
        read_send_graph(tmp_path / "ck", None)


def test_the_measured_graph_is_placed(tmp_path: Path) -> None:
    write(tmp_path / "s", days=2)
    run(tmp_path / "ck", tmp_path / "s", slices="1d", epoch_rows=150)
    graph = read_send_graph(tmp_path / "ck", "1970-01-01")
    assert graph.tasks[:3] == ("http://e/s 0.nt", "http://e/s 1.nt", "http://e/s 2.nt")
    assert graph.tasks[3:] == (STATIC, "1.0", "1.1", "1.2", "output")
    assert graph.bytes is not None
    assert graph.bytes.min() > 0
    assert read_send_graph(tmp_path / "ck", None).rows.sum() > 0
    with pytest.raises(UsageError, match="has no slice 1970-01-09"):
        read_send_graph(tmp_path / "ck", "1970-01-09")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        read_send_graph(tmp_path / "s", None)


def test_there_are_no_other_slices() -> None:
    with pytest.raises(UsageError, match="no slices of 1w"):
        levada.Engine(spark=False, slices="1w")


@pytest.mark.parametrize(
    ("instant", "length", "name"),
    [
        (-(2**63), "1d", "start"), (0, "1d", "1970-01-01"), (-1, "1mo", "1969-12"),
        (2**62, "1d", "end"), (-(2**62), "1mo", "start"),
    ],
)  # fmt: skip
def test_slices_have_names(instant: int, length: str, name: str) -> None:
    assert slice_of(instant, length) == name
