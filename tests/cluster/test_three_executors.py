"""Queries on a cluster of three executors: in each way in which a cluster is used they have the
rows of a run without Spark, and the cluster is really used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from levada.core.key_groups import group_of
from levada.placement.placement_file import FINEST, group_name

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

EXECUTORS, FILES, ELEMENTS = 3, 3, 900


def write(folder: Path) -> None:
    """Three files of triples in each half of the time, and a placement of their keys."""
    machine = {f"http://e/s {i}.nt": i for i in range(FILES)}
    for i in range(60):
        machine[group_name(group_of(f"<http://e/k{i}>"), FINEST)] = i % EXECUTORS
    halves: dict[str, list[list[str]]] = {name: [[], [], []] for name in ("first", "later")}
    for i in range(ELEMENTS):
        value = f'"{i % 7}"' if i % 2 else f'"{i % 5}"'
        line = f"<http://e/k{i // 2 % 60}> <http://e/{'pq'[i % 2]}> {value} {10 * i} .\n"
        halves["first" if i < ELEMENTS // 2 else "later"][i // 2 % FILES].append(line)
    for name, files in halves.items():
        (folder / name).mkdir()
        for i, lines in enumerate(files):
            (folder / name / f"{name} {i}.nt").write_text("".join(lines))
    (folder / "whole").mkdir()
    for i in range(FILES):
        lines = halves["first"][i] + halves["later"][i]
        (folder / "whole" / f"{i}.nt").write_text("".join(lines))
    placement = {"levada": "placement", "machines": EXECUTORS, "machine": machine}
    (folder / "p.json").write_text(json.dumps(placement))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("three")
    write(folder)
    command = [sys.executable, str(Path(__file__).with_name("three_executors.py"))]
    done = subprocess.run(
        command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "name", ["by default", "placed", "balanced", "bounded", "resized", "killed", "by file"]
)
def test_rows_are_those_of_a_run_without_spark(runs: Any, name: str) -> None:
    expected = runs["rows"]["alone"]
    assert min(map(len, expected.values())) > 20
    assert runs["rows"][name] == expected


def test_the_cluster_is_used(runs: Any) -> None:
    figures = runs["figures"]
    assert figures["by default"]["partitions"] == EXECUTORS, "as many as the executors have cores"
    executors, stayed = figures["by default"]["homes"]
    assert executors == EXECUTORS and stayed > 10, "tasks stay where their state is"
    assert figures["placed"]["placed"] > 10, "tasks ran where the placement has them"
    assert figures["by default"]["carried"]["shuffle_blobs"] > 10, "executors send rows"
    assert figures["by file"]["carried"]["file_blobs"] > 10, "within a host, also by file"
    assert figures["balanced"]["moves"] > 2, "groups went to other executors"
    assert figures["resized"]["partitions"] == 5
    assert runs["killed"], "an executor was killed"
