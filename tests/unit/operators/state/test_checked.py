"""Files of frames that are checked as a whole, or by the blocks that are read: what is altered is
told when it is read, and not before.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import xxhash

from levada.core.frame import Frame
from levada.errors import CheckpointError
from levada.operators.state import checksummed_frames
from levada.operators.state.checksummed_frames import (
    BLOCK,
    CheckedFrames,
    checked_parts,
    sums_of,
    unpack_checked,
)

ROWS = 100_000
FRAMES = {
    "small": Frame({"x": np.arange(10)}),
    "large": Frame({
        "x": np.arange(ROWS), "same": np.full(ROWS, 7, np.int16), "y": np.arange(ROWS) + 1,
        "g": (np.arange(ROWS) % 1000).astype(np.uint16), "last": np.arange(ROWS)[::-1].copy(),
    }),
    "other": Frame({"z": np.arange(ROWS, dtype=np.int32)}),
}  # fmt: skip
DATA = b"".join(checked_parts(FRAMES, {"a": 1}))


def opened(data: bytes) -> CheckedFrames:
    return unpack_checked(np.frombuffer(data, np.uint8), "state/1")[0]


def altered(at: int) -> bytes:
    data = bytearray(DATA)
    data[at] ^= 1
    return bytes(data)


def place(frame: str, column: str, row: int) -> int:
    """Where in the file a row of a column lies."""
    views = opened(DATA)
    found = views[frame][column][row:]
    whole = views._rows.__array_interface__["data"][0]
    return len(DATA) - len(views._rows) + int(found.__array_interface__["data"][0]) - int(whole)


@pytest.mark.parametrize("cuts", [(), (1,), (1 << BLOCK,), (5, 6, 3 << BLOCK), (40_000,)])
def test_sums_are_those_of_all_bytes_however_they_are_cut(cuts: tuple[int, ...]) -> None:
    data = np.random.default_rng(1).integers(0, 256, 50_001).astype(np.uint8)
    parts = [data[a:b] for a, b in zip((0, *cuts), (*cuts, len(data)), strict=True)]
    blocks = [data[at : at + (1 << BLOCK)] for at in range(0, len(data), 1 << BLOCK)]
    assert sums_of(parts).tolist() == [xxhash.xxh3_64_intdigest(block.data) for block in blocks]


def test_the_sums_of_a_frame_are_taken_by_one_call() -> None:
    with patch.object(
        checksummed_frames, "hash_blocks", wraps=checksummed_frames.hash_blocks
    ) as kernel:
        data = b"".join(checked_parts({"large": FRAMES["large"]}))
        assert kernel.call_count == 1
        frames = opened(data)
        assert frames["large"].n == ROWS
        assert kernel.call_count == 2
        every = np.arange(ROWS)
        opened(data).some("large").take("x", every)
        assert kernel.call_count == 4, "one for the column of one value, one for the blocks"


def test_some_rows_are_those_of_the_whole_frame() -> None:
    rows = np.random.default_rng(2).integers(0, ROWS, 50)
    frames = opened(DATA)
    for name, frame in FRAMES.items():
        own = rows % frame.n
        found = frames.some(name)
        assert found.names == list(frame.columns)
        for column, values in frame.columns.items():
            assert found.take(column, own).tolist() == values[own].tolist()
        assert all((frames[name][column] == values).all() for column, values in
                   frame.columns.items())  # fmt: skip


def test_only_the_blocks_that_are_read_are_checked() -> None:
    row = 70_000
    frames = opened(altered(place("large", "y", row)))
    some = frames.some("large")
    there = np.array([3, row - (2 << BLOCK) // 8, row + (2 << BLOCK) // 8])
    assert some.take("y", there).tolist() == (there + 1).tolist()
    assert some.take("x", np.array([row])).tolist() == [row]
    for _ in range(2):
        with pytest.raises(CheckpointError, match="cut short or altered"):
            some.take("y", np.array([row]))
    with pytest.raises(CheckpointError, match="cut short or altered"):
        frames["large"]
    assert frames["other"].n == ROWS, "the others are whole"


def test_the_value_of_a_column_of_one_value_is_checked() -> None:
    described = next(d for d, _ in opened(DATA)._described.values() if d.name == "large")
    (offset,) = (-at - 1 for name, _, at in described.columns if name == "same")
    frames = opened(altered(len(DATA) - len(opened(DATA)._rows) + offset))
    with pytest.raises(CheckpointError, match="cut short or altered"):
        frames.some("large")


def test_an_altered_sum_is_told_by_who_reads_some() -> None:
    frames = opened(altered(len(DATA) - 1))  # of the last frame
    assert frames.some("large").take("x", np.array([5])).tolist() == [5]
    with pytest.raises(CheckpointError, match="cut short or altered"):
        frames.some("other")
    assert frames["other"].n == ROWS, "all of its bytes are what they were"


def test_a_file_without_its_last_sums_is_cut_short() -> None:
    with pytest.raises(CheckpointError, match="cut short"):
        opened(DATA[:-8])


def test_each_altered_byte_of_small_blocks_is_found() -> None:
    with (
        patch.object(checksummed_frames, "MIN_BLOCKWISE_BYTES", 64),
        patch.object(checksummed_frames, "BLOCK", 6),
    ):
        frames = {"a": Frame({"x": np.arange(40), "g": np.arange(40).astype(np.uint16)})}
        data = b"".join(checked_parts(frames))
        start = len(data) - 8 * 7 - 40 * 8 - 128
        for at in range(start, start + 40 * 8 + 80):
            wrong = bytearray(data)
            wrong[at] ^= 4
            some = opened(bytes(wrong)).some("a")
            with pytest.raises(CheckpointError):
                for name in some.names:
                    some.take(name, np.arange(40))
