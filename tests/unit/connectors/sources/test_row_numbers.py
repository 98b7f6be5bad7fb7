"""``{row}`` of a mapping: no two rows of a stream share a number, whatever files, partitions, takes
and restarts there are.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.connectors.config.mapping_file import load_mapping
from levada.connectors.config.row_mapping import RowMapping
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.tables.mapped_rows import mapped_of
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import JsonChunk, read_tuples
from levada.connectors.sources.splits import PARTITION_NUMBERS, FileSplit, OffsetSplit
from levada.core.array_types import Bytes
from levada.errors import UsageError
from levada.kernels.text.byte_ops import parsing_room

BOUNDS: dict[str, Any] = {"late_below": 0, "future_above": 1 << 60, "seed": 1}
NUMBERS = "columns: {v: integer}\ntriples: ['<http://e/{row}> <http://e/v> {v}']\n"


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    path = tmp_path / "m.yaml"
    path.write_text(NUMBERS)
    return path


def write(path: Path, values: range) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("v,ts\n" + "".join(f"{v},{v}\n" for v in values))


def subjects(rows: Any, config: StreamConfig, split: FileSplit, **more: Any) -> dict[str, str]:
    """The subject by the value of each row."""
    triples, _ = mapped_of(rows, config, split, **BOUNDS, **more)
    return {
        triples.text(triples.o, i).split('"')[1]: triples.text(triples.s, i)
        for i in range(triples.n)
    }


class Stream:
    """A folder that is read in takes; each take is made by a new source, as after a crash."""

    def __init__(self, tmp_path: Path, mapping: Path, files: str) -> None:
        self.folder, self.scratch = tmp_path / "in", tmp_path
        self.folder.mkdir()
        self.config = StreamConfig.from_options("s", self.folder, mapping=mapping, files=files,
                                                format="csv")  # fmt: skip
        self.position: dict[str, Any] = {}
        self.subjects: list[tuple[str, str]] = []

    def read(self, rows: int) -> bool:
        """Takes once, and checks that a replay returns the same; false at the end."""
        takes = []
        for _ in range(2):
            source = FileSource(self.config, self.scratch)
            source.discover(position=self.position)
            takes.append(source.take(json.loads(json.dumps(self.position)), rows))
        assert takes[0] == takes[1]
        splits, self.position = takes[0]
        for split in splits:
            rows_read = read_tuples(split, self.config)
            self.subjects += subjects(rows_read, self.config, split).items()
        return bool(splits)

    def read_all(self, rows: int) -> None:
        while self.read(rows):
            pass

    def check_unique(self, rows: int) -> None:
        assert len(self.subjects) == len({subject for _, subject in self.subjects}) == rows


@pytest.mark.parametrize("files", ["sequence", "parallel"])
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_rows_of_files_that_arrive_later_have_numbers_of_their_own(
    tmp_path: Path, mapping: Path, files: str, rows: int
) -> None:
    stream = Stream(tmp_path, mapping, files)
    write(stream.folder / "a.csv", range(4))
    write(stream.folder / "b.csv", range(4, 9))
    stream.read(rows)
    write(stream.folder / "c.csv", range(9, 12))
    stream.read_all(rows)
    stream.check_unique(12)


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_rows_of_a_replaced_file_have_numbers_of_their_own(
    tmp_path: Path, mapping: Path, files: str
) -> None:
    stream = Stream(tmp_path, mapping, files)
    write(stream.folder / "a.csv", range(4))
    stream.read_all(2)
    write(stream.folder / "new", range(10, 16))
    os.replace(stream.folder / "new", stream.folder / "a.csv")
    stream.read_all(2)
    stream.check_unique(10)


@pytest.mark.parametrize("rows", [1, 4, 1000])
def test_numbers_do_not_depend_on_the_size_of_takes(
    tmp_path: Path, mapping: Path, rows: int
) -> None:
    stream = Stream(tmp_path, mapping, "parallel")
    write(stream.folder / "a.csv", range(3))
    write(stream.folder / "b.csv", range(3, 8))
    stream.read_all(rows)
    numbers = [*range(3), *((1 << 40) + n for n in range(5))]
    assert dict(stream.subjects) == {str(v): f"<http://e/{n}>" for v, n in enumerate(numbers)}


def test_rows_of_a_sequence_are_numbered_through_its_files(tmp_path: Path, mapping: Path) -> None:
    stream = Stream(tmp_path, mapping, "sequence")
    write(stream.folder / "a.csv", range(3))
    write(stream.folder / "b.csv", range(3, 8))
    stream.read_all(2)
    assert dict(stream.subjects) == {str(v): f"<http://e/{v}>" for v in range(8)}


def message_subjects(config: StreamConfig, partition: int, first: int) -> dict[str, str]:
    texts = [b'{"v": %d, "ts": 1}\n' % (10 * partition + k) for k in range(3)]
    raw = b"".join(texts)
    data: Bytes = np.zeros(len(raw) + parsing_room(len(raw)), np.uint8)[: len(raw)]
    data[:] = np.frombuffer(raw, np.uint8)
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    messages = Messages(starts, np.arange(first, first + 3), np.ones(3, np.int64))
    split = OffsetSplit("s", "t", partition, first, first + 3, 10, 1).text(len(data), "ndjson")
    return subjects(JsonChunk(data), config, split, messages=messages)


def test_rows_of_two_partitions_of_a_topic_have_numbers_of_their_own(mapping: Path) -> None:
    config = StreamConfig.from_options(
        "s", "kafka://h:1/t", mapping=mapping, format="ndjson", time="field:ts"
    )
    read = message_subjects(config, 0, 5) | message_subjects(config, 1, 5)
    assert read == {
        str(10 * p + k): f"<http://e/{p * PARTITION_NUMBERS + 5 + k}>"
        for p in range(2)
        for k in range(3)
    }


@pytest.mark.parametrize("path", ["kafka://h:1/t", "mqtt://h/t"])
def test_a_message_of_several_rows_has_no_number_for_each(path: str, mapping: Path) -> None:
    options: dict[str, Any] = {"format": "ndjson", "time": "field:ts", "element": "line"}
    with pytest.raises(UsageError, match=r"several rows, and \{row\} has one number") as refusal:
        StreamConfig.from_options("s", path, mapping=mapping, **options)
    assert "Say element=message" in refusal.value.hint
    plain = mapping.with_name("plain.yaml")
    plain.write_text(NUMBERS.replace("{row}", "{v}"))
    assert isinstance(load_mapping(plain), RowMapping)
    StreamConfig.from_options("s", path, mapping=plain, **options)
