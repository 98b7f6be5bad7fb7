"""A damaged index of what was published: a sentence, and a run that gives up what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.checkpoint.result_index import FILE
from levada.engine.engine import Engine
from levada.engine.status.result_archive import Archive
from levada.errors import CheckpointError
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, element, query, register

QUERY = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="q", windows={"w": (S, Clause("range", 1000))}
)


def run(folder: Path, elements: int, keep: str) -> None:
    """Reads so many elements, of which those of before have been read."""
    write_lines(folder / "s.nt", [element(300 * i, f"a{i} p {i}") for i in range(elements)])
    with Engine(
        spark=False, checkpoint=folder / "ck", epoch_rows=5, partitions=1, keep=keep,
        keep_results=False,
    ) as engine:  # fmt: skip
        engine.stream(S, folder / "s.nt")
        register(engine, [QUERY])
        engine.start(once=True, keep_open=True)
        engine.await_end()


def reports(folder: Path) -> list[int]:
    archive = Archive(folder / "ck")
    archive.refresh()
    return [report for found in archive.after("q", None) for report in found.ids]


@pytest.mark.parametrize("damage", ["bit", "gone", "empty", "cut"])
def test_a_damaged_index_ends_the_start_and_readers_with_a_sentence(
    tmp_path: Path, damage: str
) -> None:
    run(tmp_path, 40, "1h")
    path = tmp_path / "ck" / FILE
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    match damage:
        case "bit":
            path.write_bytes(data.replace(b'"epoch":3', b'"epoch":1'))
        case "gone":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(b"".join(lines[:-3]))
    for look in (lambda: run(tmp_path, 50, "1h"), lambda: reports(tmp_path)):
        with pytest.raises(CheckpointError, match=f"{FILE} cannot be read") as told:
            look()
        assert "run once without outputs and --keep" in told.value.hint
    run(tmp_path, 50, "")
    run(tmp_path, 60, "1h")
    kept = reports(tmp_path)
    assert kept == sorted(set(kept))
    run(tmp_path, 70, "1h")
    assert set(reports(tmp_path)) > set(kept)


def test_a_run_without_an_index_that_reads_nothing_new_gives_up_nothing(tmp_path: Path) -> None:
    run(tmp_path, 40, "1h")
    kept = reports(tmp_path)
    assert len(kept) > 5
    run(tmp_path, 40, "")
    assert reports(tmp_path) == kept
    run(tmp_path, 60, "1h")
    assert reports(tmp_path)[: len(kept)] == kept
    run(tmp_path, 70, "")
    assert not (tmp_path / "ck" / FILE).exists()
