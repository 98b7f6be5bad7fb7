"""A process holds open the state of partitions that it runs, and of no others for long."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np

from levada.checkpoint import state_files
from levada.core.frame import Frame
from levada.operators.state.checksummed_frames import checked_parts


def test_what_another_process_has_now_is_closed(tmp_path: Path) -> None:
    root = str(tmp_path)
    (tmp_path / "state").mkdir()
    data = checked_parts({"a": Frame({"x": np.arange(4)})})
    name = state_files.write(root, "state", "1-1-0", data)
    first = state_files.open_(root, 1, 0, 1)
    first(name)
    assert state_files.open_(root, 1, 0, 2) is first
    for epoch in range(3, 3 + state_files.UNUSED):
        state_files.open_(root, 1, 1, epoch)
    assert state_files.open_(root, 1, 0, 3 + state_files.UNUSED - 1) is first
    (tmp_path / name).unlink()
    state_files.open_(root, 1, 1, 60)
    assert name not in maps(), "a deleted file would keep its room on the disk"
    del first
    assert state_files.open_(root, 1, 0, 60)._files == {}


def test_partitions_share_what_they_have_open(tmp_path: Path) -> None:
    """As long as one of them has it open, no longer."""
    root = str(tmp_path)
    (tmp_path / "state").mkdir()
    data = checked_parts({"a": Frame({"x": np.arange(4)})})
    name = state_files.write(root, "state", "1-1-0", data)
    one, other = (state_files.open_(root, 1, partition, 1) for partition in (0, 1))
    with patch.object(state_files, "map_", Mock(wraps=state_files.map_)) as mapped:
        frames, _ = one(name)
        assert frames["a"]["x"].tolist() == [0, 1, 2, 3]
        assert other(name)[0] is frames
        assert mapped.call_count == 1
        one.keep(())
        assert other(name)[0] is frames
        other.keep(())
        del frames
        assert (root, name) not in state_files._files
        one(name)
        assert mapped.call_count == 2


def maps() -> str:
    """What of this process's opened state is known."""
    return " ".join(n for _, opened in state_files._opened.values() for n in opened._files)


def test_names_of_a_forged_manifest_delete_nothing_outside(tmp_path: Path) -> None:
    (root := tmp_path / "ck").mkdir()
    for path in (tmp_path / "other", root / "state", root / "with..dots"):
        path.touch()
    state_files.delete(str(root), ["../other", "x/../../other", str(tmp_path / "other"), "state"])
    assert (tmp_path / "other").exists()
    assert not (root / "state").exists()
    state_files.delete(str(root), ["with..dots"])
    assert not (root / "with..dots").exists()
