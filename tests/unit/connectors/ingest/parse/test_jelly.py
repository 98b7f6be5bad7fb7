"""A frame of a Jelly file may say that it is of any length: only what is there is read."""

import io
import tracemalloc

import pytest

from levada.connectors.ingest.parse.jelly import BLOCK, _InBlocks, jelly_quads


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize("size", [1 << 31, 1 << 40, (1 << 63) - 1])
def test_a_frame_that_says_to_be_long_takes_no_memory(size: int) -> None:
    file = io.BytesIO(varint(size) + b"\x0a\x00" * 10)
    tracemalloc.start()
    try:
        with pytest.raises(SyntaxError, match="not Jelly"):
            list(jelly_quads(file))
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("back", [0, 1, 3])
@pytest.mark.parametrize("sizes", [(-1,), (2, -1), (1, 2, 5, -1), (3 * BLOCK, 10)])
def test_blocks_are_the_file(back: int, sizes: tuple[int, ...]) -> None:
    data = bytes(range(256)) * (BLOCK // 64)
    plain, file = io.BytesIO(data), _InBlocks(io.BytesIO(data))
    for each in (plain, file):
        each.read(3)
        each.seek(-back, 1)
    assert [file.read(n) for n in sizes] == [plain.read(n) for n in sizes]
