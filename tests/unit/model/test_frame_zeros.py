"""A column of one value is stored as one; zeros of both signs are two values."""

import numpy as np

from levada.model.frame import Frame, pack, unpack


def test_the_sign_of_a_zero_survives_packing() -> None:
    values = np.zeros(100)
    values[3] = -0.0
    frames, _ = unpack(pack({"a": Frame({"d": values})}))
    assert np.signbit(frames["a"]["d"]).tolist() == np.signbit(values).tolist()


def test_a_column_of_one_value_takes_the_room_of_one() -> None:
    one, many = (len(pack({"a": Frame({"d": column})})) for column in (np.full(10_000, 2.5), np.arange(10_000.0)))
    assert one < 1_000 < many
