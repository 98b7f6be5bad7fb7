"""Epochs without end, of which each tenth has other partitions with other groups and is behind a
failed attempt: files of the checkpoint, their bytes, open maps and memory stay as they were, and
results are those of a run without any of it.

``make long`` has 200 of them, ``make nightly`` 10,000 (``LEVADA_EPOCHS``).
"""

from __future__ import annotations

import gc
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import psutil
import pytest

from levada.checkpoint.manifest import Manifest
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin
from levada.runtime import epoch_pipeline
from levada.runtime.driver import stream_progress
from levada.runtime.executor import LocalExecutor
from support.cluster_like_executor import Elsewhere
from support.fault_injection import nobody

EPOCHS = int(os.environ.get("LEVADA_EPOCHS", "200"))
EACH, ROWS = 10, 20  # epochs between two moves; elements of an epoch
MOST = 4  # partitions
HEAD = "PREFIX : <http://e/>\n"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT1S]"
QUERIES = {
    "join": f"{HEAD}SELECT ?b (COUNT(*) AS ?n) {WINDOW} "
    "WHERE { WINDOW :w { ?a :p ?b . ?a :q ?c } } GROUP BY ?b",
    "news": f"{HEAD}REGISTER ISTREAM :news AS SELECT ?a ?b ?c {WINDOW} "
    "WHERE { WINDOW :w { ?a :p ?b . ?a :q ?c } }",
    "texts": f"{HEAD}SELECT ?a (MAX(?t) AS ?m) {WINDOW} "
    "WHERE { WINDOW :w { ?a :t ?t } } GROUP BY ?a",
}


def write(path: Path, elements: int) -> None:
    """A stream in which each second is like the one before, but for texts that are new in each."""
    with path.open("w") as file:
        for i in range(elements):
            o = f'"text {i}"' if i % 3 == 2 else f"<http://e/b{i * 7 % 11}>"
            file.write(f"<http://e/a{i % 19}> <http://e/{'pqt'[i % 3]}> {o} {10 * i} .\n")


def deal(number: int, table: GroupTable) -> GroupTable | None:
    """Before each tenth epoch half of the groups go elsewhere, among another number of parts."""
    if number % EACH:
        return None
    rng = np.random.default_rng(number)
    parts = 1 + number // EACH % MOST
    to = table.partition.astype(np.int32)
    moved = (rng.random(table.groups) < 0.5) | (to >= parts)
    to[moved] = rng.integers(0, parts, np.count_nonzero(moved))
    other = np.flatnonzero(to != deal_round_robin(table.groups, parts).partition).astype(np.int32)
    return GroupTable(1, table.groups, parts, other, to[other])


def run(root: Path, checkpoint: str, rows: int, seen: list[tuple[float, ...]] | None) -> int:
    """A run to its end over what is in ``root``; how many epochs it had. ``seen``: with moves."""
    sink = FileSink(root / checkpoint / "out", Format.NDJSON)
    with Engine(
        spark=False, checkpoint=root / checkpoint / "ck", epoch_rows=rows, partitions=2, sink=sink,
        keep_results=False, seed=7,
    ) as engine:  # fmt: skip
        engine.stream("http://e/s", root / "s.nt")
        for name, text in QUERIES.items():
            engine.register(text, name=name)
        if seen is not None:
            engine._open().tables.dealing = deal
            engine._on_epoch(partial(look, seen, root / checkpoint / "ck"))
        engine.start(once=True)
        engine.await_end()
        return engine.progress().epochs


def look(seen: list[tuple[float, ...]], checkpoint: Path, manifest: Manifest) -> None:
    if manifest.epoch % 3 == 0:
        gc.collect()  # as Spark's workers do after each task
        seen.append(measured(checkpoint, manifest))


def measured(checkpoint: Path, manifest: Manifest) -> tuple[float, ...]:
    """Files, MB, maps, of which deleted, MB of memory, the version of the group table."""
    sizes = list(sizes_in(checkpoint))
    maps = re.findall(rf"{re.escape(str(checkpoint))}/.*", Path("/proc/self/maps").read_text())
    memory = psutil.Process().memory_info().rss
    deleted = sum(line.endswith("(deleted)") for line in maps)
    return (
        len(sizes),
        sum(sizes) / 1e6,
        len(maps),
        deleted,
        memory / 1e6,
        manifest.group_table_version,
    )


def sizes_in(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path.stat().st_size
        except FileNotFoundError:  # deleted between
            continue


def rows_of(folder: Path) -> Counter[tuple[str, int, str]]:
    """The rows of each report in files."""
    found = Counter[tuple[str, int, str]]()
    for file in folder.glob("*/*.ndjson"):
        for line in map(json.loads, file.read_text().splitlines()):
            for row in line["results"]["bindings"]:
                found[file.parent.name, line["report"], json.dumps(row, sort_keys=True)] += 1
    return found


@pytest.mark.long
@pytest.mark.timeout(600 + 5 * EPOCHS)
def test_epochs_without_end_keep_what_they_had(tmp_path: Path) -> None:
    write(tmp_path / "s.nt", EPOCHS * ROWS)
    seen: list[tuple[float, ...]] = []
    executor = Elsewhere(7, range(45, 100 * EPOCHS, 61))  # some sixty tasks are ten epochs
    with (
        patch("levada.engine.epoch_loop.PAUSES", (0.0, 0.0, 0.0)),
        patch.object(stream_progress, "find_crashes", nobody),
        patch.object(epoch_pipeline, "rehearse", lambda job: None),
        patch.object(LocalExecutor, "run", executor.run),
        warnings.catch_warnings(record=True) as lost,
    ):
        warnings.simplefilter("always")
        epochs = run(tmp_path, "moved", ROWS, seen)
    run(tmp_path, "whole", 50 * ROWS, None)
    assert rows_of(tmp_path / "moved" / "out") == rows_of(tmp_path / "whole" / "out")
    assert epochs >= EPOCHS and seen[-1][-1] > EPOCHS // EACH - 3, "it has moved"
    assert len(lost) > EPOCHS // 20, "attempts have failed"
    half = len(seen) // 2
    early, late = (np.max(some, 0) for some in (seen[half // 2 : half], seen[half:]))
    told = f"before {early.round(2).tolist()}, then {late.round(2).tolist()}; {len(lost)} failed"
    print(told)
    files, size, maps, deleted, memory = (late <= 1.3 * early + (6, 0.1, 6, 6, 30, 1e9))[:5]
    assert files and size and maps and deleted and memory, told
