"""Copies of state files on a host's own disk: as good as the files, and in nobody's way."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from levada.checkpoint import state_files
from levada.checkpoint.object_store import local_state_cache
from levada.checkpoint.object_store.local_state_cache import (
    LARGEST,
    LOOKS,
    VARIABLE,
    HostCopies,
    bytes_of,
)
from levada.core.frame import Frame
from levada.engine.engine import Engine
from levada.errors import DamagedError, UsageError
from levada.operators.state.checksummed_frames import checked_parts
from levada.runtime.spark.spark_settings import session_settings
from levada.testing.compare import same
from support.generators import Case
from support.query_dsl import STREAM, at, query, step
from support.stepped_runs import run_case


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "ck" / "state").mkdir(parents=True)
    return str(tmp_path / "ck")


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostCopies:
    found = HostCopies(tmp_path / "cache", 100_000)
    monkeypatch.setattr(state_files, "host_copies", lambda: found)
    return found


def write(root: str, stem: str, rows: int = 100) -> str:
    data = checked_parts({"a": Frame({"x": np.arange(rows)})}, meta=stem)
    return state_files.write(root, "state", stem, data)


def read(root: str, name: str) -> list[int]:
    found: list[int] = state_files.Opened(root)(name)[0]["a"]["x"].tolist()
    return found


def kept(copies: HostCopies) -> list[Path]:
    return sorted(copies.folder.iterdir()) if copies.folder.exists() else []


def test_a_file_is_read_once_from_where_it_is(root: str, copies: HostCopies) -> None:
    name = write(root, "one")
    assert read(root, name) == [*range(100)]
    (copy,) = kept(copies)
    assert copy.read_bytes() == Path(root, name).read_bytes()
    os.unlink(os.path.join(root, name))
    assert read(root, name) == [*range(100)]


def test_what_was_used_longest_ago_goes(root: str, copies: HostCopies) -> None:
    names = [write(root, f"s{i}", 500) for i in range(60)]
    for name in names:
        assert read(root, name) == [*range(500)]
        for other in kept(copies):
            os.utime(other, (10**9, 10**9))
        copies.copy(root, names[0])  # it is used all the time
    sizes = [copy.stat().st_size for copy in kept(copies)]
    assert sum(sizes) <= copies.most + copies.most // LOOKS + max(sizes)
    assert len(names) / 4 < len(sizes) < len(names) / 2
    os.unlink(os.path.join(root, names[0]))
    assert read(root, names[0]) == [*range(500)], "it was kept"


def test_a_file_as_large_as_all_is_not_copied(root: str, copies: HostCopies) -> None:
    name = write(root, "large", copies.most // LARGEST // 8 + 100)
    assert len(read(root, name)) > 3000
    assert not kept(copies)


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_damaged_copy_is_not_believed(
    root: str, copies: HostCopies, damage: bytes | None
) -> None:
    name, other = write(root, "one"), write(root, "two", 7)
    read(root, name)
    (copy,) = kept(copies)
    copy.write_bytes(Path(root, other).read_bytes() if damage is None else damage)
    assert read(root, name) == [*range(100)]


def test_a_file_that_is_missing_is_named_and_no_copy_is(root: str, copies: HostCopies) -> None:
    with pytest.raises(DamagedError, match="state/gone") as raised:
        read(root, "state/gone-0123456789abcdef")
    assert str(copies.folder) not in str(raised.value)


def test_a_disk_that_is_full_is_told_once_and_all_is_read(
    root: str, copies: HostCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local_state_cache.shutil, "copyfile", full)
    names = [write(root, f"s{i}") for i in range(3)]
    with pytest.warns(UserWarning, match=r"State cannot be kept in .*No space left") as told:
        assert [read(root, name) for name in names] == [[*range(100)]] * 3
    assert len(told) == 1
    assert not kept(copies)


def test_an_engine_says_the_same_whose_host_keeps_copies(copies: HostCopies) -> None:
    elements = tuple(at(500 * i, f":s{i % 5} :p {i} ; :q {i % 3}") for i in range(60))
    asked = query("SELECT *", "WINDOW :w { ?s :p ?v . ?s :q ?x }", windows={"w": step(9000, 3000)})
    case = Case({STREAM: elements}, (asked,), 0)
    assert same(case.expected()["q"], run_case(case, epoch_rows=7)["q"]) is None
    assert len(kept(copies)) > 3


def test_executors_are_told_how_much(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "2GB")
    settings = session_settings("local[2]", {}, tmp_path)
    assert settings[f"spark.executorEnv.{VARIABLE}"] == "2GB"
    monkeypatch.setenv(VARIABLE, "lots")
    with pytest.raises(UsageError, match=r"LEVADA_HOST_CACHE is 'lots'\. Say a size"):
        session_settings("local[2]", {}, tmp_path)
    with pytest.raises(UsageError, match="LEVADA_HOST_CACHE"):
        Engine(spark=False, checkpoint=tmp_path / "ck")
    assert not (tmp_path / "ck").exists()
    assert bytes_of({VARIABLE: "0"}) == bytes_of({}) == 0
