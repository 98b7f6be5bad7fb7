"""How often files are opened: once for what a take looks at, and once for what lies behind it."""

from __future__ import annotations

import builtins
import os
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.fingerprint import BLOCK, Fingerprint, open_descriptor


def line(i: int) -> str:
    return f"<http://e/s{i:09}> <http://e/p> <http://e/o> {i} .\n"


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often files of a name are opened from here on."""
    found: Counter[str] = Counter()

    def counting(call: Any) -> Any:
        def counted(path: Any, *given: Any, **named: Any) -> Any:
            found[os.path.basename(str(path))] += 1
            return call(path, *given, **named)

        return counted

    for module in (os, builtins):
        monkeypatch.setattr(module, "open", counting(module.open))
    return found


def test_fingerprint_of_a_parquet_file_opens_it_once(tmp_path: Path, opens: Counter[str]) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"ts": range(1000), "v": range(1000)}).write_parquet(path)
    made = FileSource(StreamConfig.from_options("s", path, schema="v:integer"), tmp_path)
    made.discover(final=True)
    assert made.backlog({})
    opens.clear()
    _, position = made.take({}, 100)
    assert opens == {"a.parquet": 1}
    for _ in range(3):
        assert made.backlog(position) and not made.is_ended(position)
    assert opens == {"a.parquet": 1}


def test_backlog_reads_a_file_of_lines_once_for_each_position(
    tmp_path: Path, opens: Counter[str]
) -> None:
    path = tmp_path / "a.nt"
    path.write_text("".join(map(line, range(100))))
    made = FileSource(StreamConfig.from_options("s", path), tmp_path)
    made.discover()
    _, position = made.take({}, 10)
    opens.clear()
    for _ in range(3):
        assert made.backlog(position) and made.partition_states(position) == {"s": True}
    assert opens == {"a.nt": 1}
    path.write_text("".join(map(line, range(10))))
    made.discover()
    assert not made.backlog(position)


def test_backlog_follows_what_a_position_counts(tmp_path: Path) -> None:
    """The caller adds to a position in place what tasks have counted."""
    path = tmp_path / "a.nt"
    path.write_text("".join(map(line, range(10))))
    made = FileSource(StreamConfig.from_options("s", path, limit=5, to=100), tmp_path)
    made.discover(final=True)
    position: dict[str, Any] = {}
    assert made.backlog(position)
    position["passed"] = 5
    assert not made.backlog(position)


def test_comparing_a_file_with_its_fingerprint_opens_it_once(
    tmp_path: Path, opens: Counter[str]
) -> None:
    path = tmp_path / "a.nt"
    path.write_text("".join(map(line, range(10_000))))
    size = path.stat().st_size
    assert size > 3 * BLOCK
    opens.clear()
    made = Fingerprint.from_file(str(path), (1, size), whole=-1, read=size)
    assert opens == {"a.nt": 1}
    with open_descriptor(str(path)) as file:
        assert made.is_of(file, 2, size)  # a copy: all that was read of it is compared
        assert not made._replace(blocks="0").is_of(file, 2, size)
    assert opens == {"a.nt": 2}


def test_file_that_is_gone_has_the_fingerprint_of_an_empty_one(tmp_path: Path) -> None:
    gone = Fingerprint.from_file(str(tmp_path / "gone"), (1, 100), whole=-1, read=100)
    (tmp_path / "empty").touch()
    empty = Fingerprint.from_file(str(tmp_path / "empty"), (1, 100), whole=-1, read=100)
    assert gone == empty and Fingerprint.parse(gone.text()) == gone
