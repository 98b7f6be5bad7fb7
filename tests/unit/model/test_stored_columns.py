"""A column of one value is stored as one, equal times once; zeros of both signs are two values."""

import numpy as np

from levada.model.frame import Frame, pack, unpack


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
