"""A checkpoint is its owner's alone unless an option opens it; results keep the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.checkpoint import reader_leases
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.request_files import Content, Request, place_content
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.connectors.spool.push_spool import PushLog
from levada.connectors.spool.spool_folder import spool_folder
from levada.engine.engine import Engine
from levada.errors import CheckpointError, UsageError
from support.generators import Clause
from support.query_dsl import S, query, register

QUERY = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="q", windows={"w": (S, Clause("range", 1000))}
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that all may look into, as is usual, and the usual umask."""
    tmp_path.chmod(0o755)
    before = os.umask(0o022)
    yield tmp_path
    os.umask(before)


def run(folder: Path, mode: str = "", *, letters: bool = False) -> None:
    """Pushed rows, one of which is none, static data, an index, results in files."""
    with Engine(
        spark=False, checkpoint=folder / "ck", partitions=2, keep="1h", keep_results=False,
        sink=FileSink(folder / "out", Format.NDJSON), letters=folder / "out" if letters else None,
        checkpoint_mode=mode,
    ) as engine:  # fmt: skip
        engine.stream(S, "push:", format="nq")
        engine.static(["<http://e/a> <http://e/b> <http://e/c> ."], replaceable=True)
        register(engine, [QUERY])
        engine.start(once=True, keep_open=True)
        engine.await_end()


def push(folder: Path) -> None:
    """What a server and readers write beside the engine."""
    lines = "".join(f'<http://e/a> <http://e/p> "{i}" {300 * i} .\n' for i in range(9)) + "no\n"
    data = spool_folder(folder / "ck", S) / "data"
    PushLog(data, "nq").append(lines.encode(), {"key": "digest"})
    reader_leases.ReaderLease(folder / "ck", "reader", lambda: 0.0).require_epoch(1)
    place_content(folder / "ck", Request("1", content=Content(None)), b"")


def modes(root: Path) -> dict[str, int]:
    paths = [root, *root.rglob("*")]
    return {f"{path.relative_to(root)}": stat.S_IMODE(path.stat().st_mode) for path in paths}


def others(root: Path) -> list[str]:
    """What others than the owner may read, write or enter."""
    return [name for name, mode in modes(root).items() if mode & 0o077]


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_a_new_checkpoint_is_its_owners_alone(folder: Path, umask: int) -> None:
    os.umask(umask)
    (folder / "ck").mkdir()
    for _ in range(2):
        run(folder)
        push(folder)
        assert others(folder / "ck") == []
    run(folder)
    assert others(folder / "ck") == []
    assert any("dead-letter/" in name for name in modes(folder / "ck"))


def test_results_keep_the_umask(folder: Path) -> None:
    run(folder)
    push(folder)
    run(folder, letters=True)
    found = modes(folder / "out")
    assert any(name.startswith("q/") for name in found)
    assert any(name.startswith("dead-letter/") for name in found)
    files = {mode for name, mode in found.items() if name.endswith(".ndjson")}
    assert (found["q"], found["dead-letter"], files) == (0o755, 0o755, {0o644})


@pytest.mark.parametrize(
    ("mode", "folders", "files"), [("group", 0o770, 0o660), ("all", 0o755, 0o644)]
)
def test_an_option_opens_what_is_there_and_what_comes(
    folder: Path, mode: str, folders: int, files: int
) -> None:
    os.umask(0o002)
    run(folder)
    push(folder)
    run(folder, mode)
    push(folder)
    run(folder)
    for name, found in modes(folder / "ck").items():
        assert found == (folders if (folder / "ck" / name).is_dir() else files), name
    run(folder, "owner")
    assert others(folder / "ck") == []


@pytest.mark.parametrize("mode", ["", "all"])
def test_a_folder_that_is_no_checkpoint_stays_as_it_is(folder: Path, mode: str) -> None:
    (folder / "ck").mkdir()
    (folder / "ck" / "thesis.txt").touch()
    before = modes(folder / "ck")
    with pytest.raises(CheckpointError, match=r"it holds thesis\.txt"):
        run(folder, mode)
    assert {name: before[name] for name in before} == {
        name: found for name, found in modes(folder / "ck").items() if name in before
    }


def test_a_word_that_is_no_mode(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no mode 0777"):
        Engine(spark=False, checkpoint=tmp_path / "ck", checkpoint_mode="0777")


def test_a_folder_of_somebody_else_stays_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    (folder / "ck").mkdir(0o755)
    with monkeypatch.context() as patch:
        patch.setattr("levada.core.checkpoint_files.os.chmod", refuse)
        Checkpoint(folder / "ck", partitions=1).close()
    assert stat.S_IMODE((folder / "ck").stat().st_mode) == 0o755
