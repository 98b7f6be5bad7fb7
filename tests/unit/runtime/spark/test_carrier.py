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

from levada.runtime.spark import blob_transport
from levada.runtime.spark.blob_transport import BlobLostError, BlobTransport, Sender, receive


def send(how: Any, source: Any, name: Any, blobs: Any) -> list[Any]:
    with Sender(how, source, name) as sender:
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
    how = BlobTransport(str(folder / "job"), threshold)
    by_source = {s: [blob for source, blob in sent if source == s] for s in range(6)}
    refs = [ref for s, blobs in by_source.items() for ref in send(how, s, f"task-{s}", blobs)]
    shuffle.shuffle(refs)
    assert [bytes(b) for b in receive(refs)] == [
        blob for blobs in by_source.values() for blob in blobs
    ]


def test_small_blobs_make_no_file(tmp_path: Path) -> None:
    send(BlobTransport(str(tmp_path / "job"), 10), 0, "task", [b"x" * 9])
    assert not (tmp_path / "job").exists()
    send(BlobTransport(str(tmp_path / "job"), 10), 0, "task", [b"x" * 10, b"y" * 10])
    assert os.listdir(tmp_path / "job") == ["task"]


def test_without_a_folder_all_go_by_value() -> None:
    assert [bytes(b) for b in receive(send(BlobTransport(None, 0), 0, "task", [b"x" * 100]))] == [
        b"x" * 100
    ]


@pytest.mark.parametrize("threshold", [0, 1000])
def test_arrived_blobs_are_aligned_and_read_only(tmp_path: Path, threshold: int) -> None:
    columns = [np.arange(n, dtype=np.uint64) for n in (3, 5)]
    blobs = receive(
        send(BlobTransport(str(tmp_path), threshold), 0, "task", [c.tobytes() for c in columns])
    )
    for blob, column in zip(blobs, columns, strict=True):
        view = np.frombuffer(blob, np.uint64)
        assert view.flags.aligned
        assert not view.flags.writeable
        assert view.tolist() == column.tolist()


def test_a_view_outlives_the_removal_of_its_file(tmp_path: Path) -> None:
    (blob,) = receive(send(BlobTransport(str(tmp_path), 0), 0, "task", [b"kept"]))
    (tmp_path / "task").unlink()
    assert bytes(blob) == b"kept"


def test_a_lost_or_short_file_is_an_error(tmp_path: Path) -> None:
    refs = send(BlobTransport(str(tmp_path), 0), 0, "task", [b"x" * 100, b"y" * 100])
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
    send(BlobTransport(str(tmp_path), 0), 0, "task", [b"x"])
    with pytest.raises(FileExistsError):
        send(BlobTransport(str(tmp_path), 0), 0, "task", [b"x"])


def test_a_job_removes_what_is_left_of_jobs_that_are_over(tmp_path: Path) -> None:
    """On a cluster, where the driver can't: those before it, and of engines that have ended."""
    for name in ("own/3", "own/4", "own/5", "other/9", "ended/2"):
        (tmp_path / name).mkdir(parents=True)
    os.utime(tmp_path / "ended", (0, 0))
    blob_transport._leave(str(tmp_path / "own" / "4"))
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.glob("*/*")) == [
        "other/9", "own/4", "own/5",
    ]  # fmt: skip


def test_after_a_file_that_was_not_there_jobs_go_by_value_for_longer_and_longer() -> None:
    near, told = blob_transport.HostLocality(by_host=True), [("executor_10.0.0.7_3", "")]
    for pause in (blob_transport.FIRST_PAUSE, 2 * blob_transport.FIRST_PAUSE):
        assert near.hosts(told) == (("10.0.0.7", ""),)
        near.record_miss()
        assert [near.hosts(told) for _ in range(pause)] == [None] * pause


def test_executors_that_stand_for_hosts_are_told_one_by_one() -> None:
    told = [("executor_10.0.0.7_3", "", "executor_10.0.0.7_4")]
    assert blob_transport.HostLocality(by_host=False).hosts(told) == tuple(told)


def test_only_what_is_for_this_host_or_this_executor_goes_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    monkeypatch.setattr(blob_transport, "host_here", lambda: "here")
    monkeypatch.setattr(blob_transport, "executor_here", lambda: "3")
    at = ("here", "there", "", "executor_here_3", "executor_here_4")
    with Sender(BlobTransport("job/0", 0, at), 0, "task") as sender:
        tails = [sender.wrap(b"x" * 100, target)[1] for target in range(len(at))]
    assert [tail[0] for tail in tails] == [1, 0, 0, 1, 0]
    assert os.listdir(tmp_path / "levada-xfer" / "job" / "0") == ["task"]
