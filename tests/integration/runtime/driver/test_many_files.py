"""A stream of very many files (``files=parallel``): what an epoch writes does not grow with those
that were read long ago, and each is read once.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from levada.checkpoint.manifest import Manifest
from levada.checkpoint.verify import verify
from levada.engine.engine import Engine
from levada.testing.memory_sink import MemorySink
from support.polling import until

QUERY = """SELECT ?o FROM NAMED WINDOW <w> ON <s> [RANGE PT100S STEP PT100S]
WHERE { WINDOW <w> { ?s <http://e/p> ?o } }"""


def _write(folder: Path, name: str, value: int) -> None:
    """A file of one element; its name says nothing of its time."""
    beside = folder / f".{name}"
    beside.write_text(f"<http://e/a> <http://e/p> <http://e/v{value}> {value} .\n")
    os.replace(beside, folder / name)


def _engine(root: Path, sink: MemorySink, rows: int) -> Engine:
    engine = Engine(spark=False, checkpoint=root / "c", sink=sink, epoch_rows=rows, partitions=1)
    # that of a stream of files in no order of time
    engine.stream("s", root / "in", files="parallel", lateness="1h")
    engine.register(QUERY, name="q")
    return engine


def _values(sink: MemorySink) -> Counter[str]:
    return Counter(
        value.strip("<>").removeprefix("http://e/v")
        for report in sink.reports["q"]
        for solution, n in report.solutions.items()
        for _, value in solution
        for _ in range(n)
    )


def test_manifests_do_not_grow_with_the_files_that_were_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(1000):
        _write(tmp_path / "in", f"{i * 7919 % 1000:04}.nt", i)
    sink, sizes = MemorySink(), list[int]()
    with _engine(tmp_path, sink, 25) as engine:

        def tell(manifest: Manifest) -> None:
            sizes.append((tmp_path / "c" / "manifests" / str(manifest.epoch)).stat().st_size)

        engine._on_epoch(tell)
        engine.start(once=True)
        engine.await_end()
    assert len(sizes) >= 40
    assert max(sizes) < 3 * sizes[1] and max(sizes) < 20_000
    assert _values(sink) == Counter(map(str, range(1000)))
    assert not verify(tmp_path / "c").damaged


def test_files_of_any_name_and_replaced_ones_are_read_once_over_new_starts(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    sink, told = MemorySink(), list[Manifest]()
    order = [i * 7919 % 300 for i in range(300)]
    for start, part in enumerate((order[:100], order[100:200], order[200:])):
        for i in part:
            _write(tmp_path / "in", f"{i:04}.nt", i)
        if start:  # others under names of long ago
            _write(tmp_path / "in", f"{order[start]:04}.nt", 1000 + start)
        with _engine(tmp_path, sink, 9) as engine:
            engine._on_epoch(told.append)
            engine.start(once=True, keep_open=start < 2)
            engine.await_end()
    assert _values(sink) == Counter(map(str, [*range(300), 1001, 1002]))
    (record,) = told[-1].streams.values()
    assert (record.replaced_files, record.dead_letters, record.late) == (2, 0, 0)
    (position,) = told[-1].positions.values()
    assert len(position["files"]) < 60


@pytest.mark.long
def test_manifests_do_not_grow_with_files_that_may_grow(tmp_path: Path) -> None:
    """3,000 files that stay open while new ones come; who is silent holds no watermark back."""
    each, rounds = 100, 30
    (tmp_path / "in").mkdir()
    _write(tmp_path / "in", "0000.nt", 0)
    sink, told, sizes = MemorySink(), list[Manifest](), list[int]()
    with Engine(spark=False, checkpoint=tmp_path / "c", sink=sink, partitions=1) as engine:
        engine.stream("s", tmp_path / "in", files="parallel", idle="50ms")
        engine.register(QUERY, name="q")

        def tell(manifest: Manifest) -> None:
            told.append(manifest)
            sizes.append((tmp_path / "c" / "manifests" / str(manifest.epoch)).stat().st_size)

        def read(elements: int) -> bool:
            return bool(told) and told[-1].streams["s"].elements >= elements

        engine._on_epoch(tell)
        engine.start()
        for n in range(rounds):
            for i in range(n * each, (n + 1) * each):
                _write(tmp_path / "in", f"{i:04}.nt", i)
            until(partial(read, (n + 1) * each))
            time.sleep(0.1)
        with (tmp_path / "in" / "0007.nt").open("a") as file:  # one of the first speaks again
            file.write("<http://e/a> <http://e/p> <http://e/v9000> 9000 .\n")
        until(lambda: told[-1].streams["s"].watermark >= 9000)
    record = told[-1].streams["s"]
    assert (record.elements, record.late, record.dead_letters) == (each * rounds + 1, 0, 0)
    assert record.watermark == 9000
    assert max(len(m.streams["s"].partitions) for m in told) <= 3 * each
    assert max(sizes) < 3 * max(sizes[: len(sizes) // 4])
