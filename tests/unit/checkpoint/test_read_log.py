"""What is read of a stream's files, partly in a log: a short position stands for the whole one,
whatever is dropped, started again or left behind on the way.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.checkpoint.file_read_log import (
    KEYS,
    MAX_SETTLED_FILES,
    ReadLog,
    logs_of,
    path_of,
    stem_of,
)
from levada.errors import CheckpointError

NAMES = [f"f{i}" for i in range(6 * MAX_SETTLED_FILES)]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("commit", "commit", "commit", "drop", "restart")),
        st.integers(0, len(NAMES) - 1),  # the first file of those that are touched
        st.integers(0, 3 * MAX_SETTLED_FILES),  # how many are
        st.lists(st.sampled_from(NAMES), max_size=3),  # of which nothing is known any more
    ),
    max_size=25,
)


def taken(position: dict[str, Any], first: int, n: int, gone: list[str], at: int) -> dict[str, Any]:
    """A position after some files have been read further, and others been forgotten."""
    after = {key: dict(position.get(key, {})) for key in KEYS}
    for name in NAMES[first : first + n]:
        after["files"][name] = after["rows"][name] = at
        after["fingerprints"][name] = f"{name}.{at}"
    for name in gone:
        for key in KEYS[:3]:
            after[key].pop(name, None)
        after["lives"][name] = at
    return {"taken": at, **{key: names for key, names in after.items() if names}}


@settings(max_examples=60, deadline=None)
@given(EVENTS)
def test_a_short_position_stands_for_the_whole_one(events: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stem = stem_of(Path(folder), "http://e/s")
        log, full, short = ReadLog(stem), dict[str, Any](), dict[str, Any]()
        for at, (what, first, n, gone) in enumerate(events, 1):
            after = taken(full, first, n, gone, at)
            said = json.loads(json.dumps(log.abbreviate(short, after)))
            assert log.expand(said) == after
            assert log.expand(short) == full, "what was said before stands for what it did"
            if what == "drop":
                continue
            full, short = after, said
            names = {name for key in KEYS for name in short.get(key, {})}
            assert len(names) <= n + len(gone) + MAX_SETTLED_FILES
            if what == "restart":
                log = ReadLog(stem)
                left = [*stem.parent.glob("*")] if stem.parent.exists() else []
                for path in left:  # as a takeover does
                    if path.relative_to(folder).as_posix() not in logs_of({"http://e/s": short}):
                        path.unlink()
                assert log.expand(short) == full
        files = [*stem.parent.glob("*")] if stem.parent.exists() else []
        assert len(files) <= 2


def test_the_log_is_written_anew_when_half_of_it_is_replaced(tmp_path: Path) -> None:
    stem = stem_of(tmp_path, "s")
    log, full, short = ReadLog(stem), dict[str, Any](), dict[str, Any]()
    for at in range(1, 60):
        first = 0 if at % 2 else 3 * MAX_SETTLED_FILES
        full = taken(full, first, 2 * MAX_SETTLED_FILES, [], at)
        short = log.abbreviate(short, full)
    assert sum(path.stat().st_size for path in stem.parent.iterdir()) < 60_000
    assert ReadLog(stem).expand(short) == full


@pytest.mark.parametrize("cut", [True, False])
def test_a_log_that_is_damaged_is_told(cut: bool, tmp_path: Path) -> None:
    stem = stem_of(tmp_path, "s")
    log = ReadLog(stem)
    full = taken({}, 0, 3 * MAX_SETTLED_FILES, [], 1)
    short = log.abbreviate({}, full)
    full = taken(full, 100, 1, [], 2)
    short = log.abbreviate(short, full)
    path = path_of(stem, 0)
    assert list(logs_of({"s": short})) == [path.relative_to(tmp_path).as_posix()]
    data = path.read_bytes()
    path.write_bytes(data[:-1] if cut else data.replace(b"f3", b"f4", 1))
    with pytest.raises(CheckpointError, match="cannot be read"):
        ReadLog(stem).expand(short)
