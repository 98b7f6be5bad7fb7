"""Blobs by value and by reference: what goes in comes out, in order, aligned, and a loss is an
error.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.runtime.spark.carrier import BlobLostError, Carrier, Sender, receive


def send(carrier: Any, source: Any, name: Any, blobs: Any) -> list[Any]:
    with Sender(carrier, source, name) as sender:
        return [b"".join(map(bytes, sender.wrap(blob, 0))) for blob in blobs]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=300))),
    st.integers(0, 310),
    st.randoms(),
)
def test_what_is_sent_arrives_in_the_order_of_sources_and_places(
    tmp_path_factory: pytest.TempPathFactory, sent: Any, threshold: Any, shuffle: Any
) -> None:
    folder = tmp_path_factory.mktemp("xfer")
    carrier = Carrier(str(folder / "job"), threshold)
    by_source = {s: [blob for source, blob in sent if source == s] for s in range(6)}
    refs = [ref for s, blobs in by_source.items() for ref in send(carrier, s, f"task-{s}", blobs)]
    shuffle.shuffle(refs)
    assert [bytes(b) for b in receive(refs)] == [
        blob for blobs in by_source.values() for blob in blobs
    ]


def test_small_blobs_make_no_file(tmp_path: Path) -> None:
    send(Carrier(str(tmp_path / "job"), 10), 0, "task", [b"x" * 9])
    assert not (tmp_path / "job").exists()
    send(Carrier(str(tmp_path / "job"), 10), 0, "task", [b"x" * 10, b"y" * 10])
    assert os.listdir(tmp_path / "job") == ["task"]


def test_without_a_folder_all_go_by_value() -> None:
    assert [bytes(b) for b in receive(send(Carrier(None, 0), 0, "task", [b"x" * 100]))] == [
        b"x" * 100
    ]


@pytest.mark.parametrize("threshold", [0, 1000])
def test_arrived_blobs_are_aligned_and_read_only(tmp_path: Path, threshold: int) -> None:
    columns = [np.arange(n, dtype=np.uint64) for n in (3, 5)]
    blobs = receive(
        send(Carrier(str(tmp_path), threshold), 0, "task", [c.tobytes() for c in columns])
    )
    for blob, column in zip(blobs, columns, strict=True):
        view = np.frombuffer(blob, np.uint64)
        assert view.flags.aligned
        assert not view.flags.writeable
        assert view.tolist() == column.tolist()


def test_a_view_outlives_the_removal_of_its_file(tmp_path: Path) -> None:
    (blob,) = receive(send(Carrier(str(tmp_path), 0), 0, "task", [b"kept"]))
    (tmp_path / "task").unlink()
    assert bytes(blob) == b"kept"


def test_a_lost_or_short_file_is_an_error(tmp_path: Path) -> None:
    refs = send(Carrier(str(tmp_path), 0), 0, "task", [b"x" * 100, b"y" * 100])
    os.truncate(tmp_path / "task", 150)
    with pytest.raises(BlobLostError, match="shorter"):
        receive(refs)
    os.truncate(tmp_path / "task", 0)
    with pytest.raises(BlobLostError, match="lost"):
        receive(refs)
    (tmp_path / "task").unlink()
    with pytest.raises(BlobLostError, match="lost"):
        receive(refs)


def test_two_attempts_never_write_one_file(tmp_path: Path) -> None:
    send(Carrier(str(tmp_path), 0), 0, "task", [b"x"])
    with pytest.raises(FileExistsError):
        send(Carrier(str(tmp_path), 0), 0, "task", [b"x"])
