"""Files of a stream's folder that another user has made something else."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import polars as pl
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.decompression import open_
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.fingerprint import open_descriptor
from levada.connectors.sources.json_lines import file_spans_lines
from levada.connectors.sources.parquet_files import layout, schema_at
from levada.connectors.sources.read_split import read_range
from levada.connectors.sources.regular_files import is_foreign_link
from levada.errors import SourceError

NOBODY = 65534


@pytest.mark.parametrize("name", ["a.nt", "a.nt.gz", "a.nt.zst"])
def test_pipe_is_opened_without_waiting_and_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="no regular file"):
        open_(tmp_path / name)


def test_pipe_is_refused_by_every_reader_of_a_stream(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    os.mkfifo(path)
    config = StreamConfig.from_options("s", path, format="parquet", schema="k:integer")
    with open_descriptor(path) as handle:
        assert handle == -1
    with pytest.raises(SourceError, match="no regular file"):
        read_range(path, 0, 1)
    with pytest.raises(SourceError, match="no regular file"):
        layout(config, path, finished=False)
    with pytest.raises(SourceError, match="no regular file"):
        schema_at(path)
    with pytest.raises(FileNotFoundError):
        file_spans_lines(path)


def test_packed_file_is_read_whole_and_closed(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    before = len(os.listdir("/dev/fd"))
    with open_(tmp_path / "a.gz") as file:
        assert file.read() == b"one\ntwo\n"
    assert len(os.listdir("/dev/fd")) == before


def test_growing_file_that_becomes_a_pipe_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text("<a:a> <a:b> <a:c> 1 .\n")
    source = FileSource(StreamConfig.from_options("s", tmp_path), tmp_path / "scratch")
    source.discover()
    _, position = source.take({}, 10)
    path.unlink()
    os.mkfifo(path)
    source.discover(position=position)
    assert not source.backlog(position)
    path.unlink()
    (tmp_path / "b.nt").write_text("<a:a> <a:b> <a:d> 2 .\n")
    source.discover(position=position)
    assert source.backlog(position)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user, which needs root")
def test_link_of_another_user_is_reported_and_not_followed(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "in"
    folder.mkdir()
    secret.write_text("<a:a> <a:b> <a:secret> 1 .\n")
    for name in ("a.nt", "b.nt"):
        (folder / name).symlink_to(secret)
    os.chown(folder / "b.nt", NOBODY, NOBODY, follow_symlinks=False)
    assert not is_foreign_link(folder / "a.nt") and is_foreign_link(folder / "b.nt")
    for path in (folder, folder / "*.nt"):
        source = FileSource(StreamConfig.from_options("s", path), tmp_path / "scratch")
        source.discover()
        assert [split.path for split in source.take({}, 10)[0]] == [str(folder / "a.nt")]
        (reason,) = source.broken.values()
        assert "is a link of another user" in reason
    single = FileSource(StreamConfig.from_options("s", folder / "b.nt"), tmp_path / "scratch")
    single.discover()
    assert single.backlog({}), "the operator has named it"


def test_parquet_file_is_read_through_its_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"k": [1, 2]}).write_parquet(path)
    assert schema_at(str(path)) == (("k", "integer"),)
