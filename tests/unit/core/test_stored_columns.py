"""A column of one value is stored as one, equal times once; zeros of both signs are two values."""

import numpy as np
import pytest

from levada.core import frame as frames_of_process
from levada.core.frame import Frame, pack, unpack


def test_the_sign_of_a_zero_survives_packing() -> None:
    values = np.zeros(100)
    values[3] = -0.0
    frames, _ = unpack(pack({"a": Frame({"d": values})}))
    assert np.signbit(frames["a"]["d"]).tolist() == np.signbit(values).tolist()


def test_a_column_of_one_value_takes_the_room_of_one() -> None:
    one, many = (
        len(pack({"a": Frame({"d": column})}))
        for column in (np.full(10_000, 2.5), np.arange(10_000.0))
    )
    assert one < 1_000 < many


def test_columns_of_equal_times_are_stored_once() -> None:
    times = np.arange(1000)
    other = times.copy()
    other[500] += 1
    frame = Frame({"lo0": times, "m1": times.copy(), "m2": other, "d1": times.astype(np.float64)})
    blob = pack({"a": frame})
    found = unpack(blob)[0]["a"]
    assert {n: c.tolist() for n, c in found.columns.items()} == {
        n: c.tolist() for n, c in frame.columns.items()
    }
    assert len(pack({"a": frame.select(["lo0", "m2", "d1"])})) + 100 > len(blob)


@pytest.mark.parametrize("value", [0.0, -0.0, 2.5, np.int32(7), np.uint64(2**63)])
def test_columns_of_one_value_are_kept_once_in_a_process(value: float) -> None:
    blobs = [pack({"a": Frame({"d": np.full(rows, value)})}) for rows in (5000, 70, 4000)]
    found = [unpack(blob)[0]["a"]["d"] for blob in blobs]
    assert [len(column) for column in found] == [5000, 70, 4000]
    assert all(column.tobytes() == np.full(len(column), value).tobytes() for column in found)
    assert all(np.shares_memory(found[0], column) for column in found)
    longer = unpack(pack({"a": Frame({"d": np.full(9000, value)})}))[0]["a"]["d"]
    assert longer.tobytes() == np.full(9000, value).tobytes()


def test_a_column_of_one_value_is_there_once_until_nobody_has_it() -> None:
    short, long = (pack({"a": Frame({"x": np.full(rows, 1234567)})}) for rows in (100, 1000))
    key = np.dtype(np.int64).str, np.int64(1234567).tobytes()
    first = unpack(short)[0]["a"]["x"]
    whole = unpack(long)[0]["a"]["x"]
    assert whole.tolist() == [1234567] * 1000
    assert unpack(short)[0]["a"]["x"].base is whole.base
    del first
    assert key in frames_of_process._alike, "the longer one took the place of the first"
    del whole
    assert key not in frames_of_process._alike
