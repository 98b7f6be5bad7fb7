"""``levada run --master spark://..`` on a standalone cluster, unchanged: paths as the user writes
them, a machine that dies.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cluster import Cluster, environment
from levada.checkpoint.checkpoint_folder import newest_manifest
from support.polling import newest_epoch, until

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1500)]

QUERY = """PREFIX : <http://e/>
SELECT ?floor (COUNT(*) AS ?n) (AVG(?v) AS ?mean) FROM NAMED WINDOW :w ON :s [RANGE PT6S STEP PT1S]
WHERE { WINDOW :w { ?room :v ?v } ?room :floor ?floor } GROUP BY ?floor
"""
ELEMENTS, EPOCH = 4000, 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mean.rq").write_text(QUERY)
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    lines = (
        f'<http://e/r{i % 7}> <http://e/v> "{i % 11}"^^{integer} {10 * i} .\n'
        for i in range(ELEMENTS)
    )
    (tmp_path / "s.nt").write_text("".join(lines))
    (tmp_path / "rooms.ttl").write_text(
        "".join(f"<http://e/r{i}> <http://e/floor> {i % 3} .\n" for i in range(7))
    )
    return tmp_path


def start(folder: Path, out: str, *more: str) -> subprocess.Popen[str]:
    given = [
        "run",
        "mean.rq",
        "--stream",
        "s=s.nt",
        "--static",
        "rooms.ttl",
        "--out",
        out,
        *more,
    ]
    command = [sys.executable, "-m", "levada", *given, "--epoch-rows", str(EPOCH)]
    return subprocess.Popen(
        command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True
    )


def published(folder: Path) -> Counter[tuple[int, str]]:
    lines = [
        json.loads(line) for file in folder.glob("mean/*") for line in file.read_text().splitlines()
    ]
    return Counter(
        (line["report"], json.dumps(row, sort_keys=True))
        for line in lines
        for row in line["results"]["bindings"]
    )


def read(checkpoint: Path) -> int:
    """How many elements have been read."""
    manifest = newest_manifest(checkpoint)
    return 0 if manifest is None else sum(r.elements for r in manifest.streams.values())


def test_a_worker_dies_and_no_result_is_lost_or_doubled(folder: Path, tmp_path: Path) -> None:
    said = start(folder, "alone", "--close", "--master", "local[2]").communicate(timeout=600)[1]
    expected = published(folder / "alone")
    assert len(expected) == 3 * (ELEMENTS // 100 + 5), said
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster", 2)
    try:
        run = start(folder, "spread", "--master", cluster.url, "--checkpoint", "ck")
        until(lambda: newest_epoch(folder / "ck") >= 3, process=run, step=0.002)
        cluster.kill_worker(0)  # in the middle, as a run without --once does not end
        until(lambda: read(folder / "ck") == ELEMENTS, process=run)
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=600)[1]
    finally:
        cluster.stop()
    assert run.returncode == 0, said
    end = 10 * ELEMENTS  # windows that are open are not reported
    assert published(folder / "spread") == {k: n for k, n in expected.items() if k[0] < end}
