"""NDJSON that is one value over several lines, and objects with a name that comes again: the same
in files, in messages, in what is pushed and in standard input.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.config.input_formats import PUSH
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import AUTO
from levada.connectors.ingest.tables.json_rows import json_rows
from levada.connectors.ingest.tables.schema_inference import sniff
from levada.connectors.ingest.tables.tuple_rows import Tuples, tuples_of
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.json_lines import HEAD, NOT_LINES, file_spans_lines, spans_lines
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import JsonChunk
from levada.connectors.sources.source_reader import FileReader
from levada.connectors.sources.splits import FileSplit
from levada.connectors.spool.stdin_spool import StdinSpool
from levada.core.event_time import MAX, MIN
from levada.errors import FileFault, SourceError
from levada.server.problem_json import Problem
from levada.server.push.push_validation import rows_of

ROW = b'{"ts": 1, "v": 7}'
MANY = HEAD // 8
VALUES = [
    b'[\n{"ts": 1},\n{"ts": 2}\n]',
    b'[\r{"ts": 1},\r{"ts": 2}\r]',
    b'[{"ts": 1},\n{"ts": 2}]',
    b'[\n{"ts": 1}\n',
    b'[\n{"ts": 1},\n{"ts": "a',
    b'\xef\xbb\xbf\n[\r\n{"ts": 1}\r\n]',
    b"[\n" + b'{"ts": 1},\n' * MANY,
    b'{\n"ts": 1\n}',
    b'{\n"ts": 1\n}\n{\n"ts": 2\n}\n',
    b'{"rows": [\n{"ts": 1},\n{"ts": 2}\n',
    b'{"rows": [\n' + b'{"ts": 1},\n' * MANY,
    b'[\n{"ts": 1},\n{"ts": 2}\n]\n{"ts": 3}\n',
    b'{"rows": [\n{"ts": 1}\n]}\n{"ts": 2}\n',
]
LINES = [
    b"",
    b"\n\n",
    b'{"ts": 1}\r\n{"ts": 2}',
    b'{"ts": 1,\n{"ts": 2}\n{"ts": 3}',
    b'{"ts": 1, "k":\n{"ts": 2}',
    b'{\n"ts": 1}\n{"ts": 2}\n',
    b'{"ts": 1,\r\n"v": 2}\r\n{"ts": 3}\r\n',
    b'{"ts": 1,\n"v": 2}\n{"ts": "' + b"x" * 5000 + b'"}\n',
    b'{"ts": 1, "k": [\n{"ts": 2}\n{"ts": 3}',
    b'{"k": "a\n{"ts": 1}\n',
    b'[2024-01-01] start\n{"ts": 1}\n',
    b"[1, 2]\n[3, 4]",
    b'\xff\xfe\n{"ts": 1}',
    b"[" * 100_000 + b"\n",
    b'{"k": "' + b"x" * HEAD + b'"}\n{"ts": 1}',
    b'{"k": ' + b"9" * 10_000 + b'}\n{"ts": 1}',
]


@pytest.mark.parametrize(("texts", "expected"), [(VALUES, True), (LINES, False)])
def test_the_first_value_decides_whether_a_text_is_lines(
    tmp_path: Path, texts: list[bytes], expected: bool
) -> None:
    for text in texts:
        (tmp_path / "a").write_bytes(text)
        assert spans_lines(text) == file_spans_lines(tmp_path / "a") == expected, text[:50]


def bounds() -> dict[str, Any]:
    return {"late_below": MIN, "future_above": MAX}


def reference(size: int) -> FileSplit:
    return FileSplit("s", "s", "a", "a", "ndjson", 0, size, 0, 1, 0)


def of_file(text: bytes, folder: Path, **options: Any) -> list[Tuples]:
    """The rows of a file, a line a reference."""
    path = folder / "a.ndjson"
    path.write_bytes(text)
    config = StreamConfig.from_options("s", path, schema="v:integer", **options)
    source = FileSource(config, folder)
    source.discover(True)
    found: list[Tuples] = []
    position: dict[str, Any] = {}
    while True:
        (given, *_), position = source.take(position, 1)
        chunk = FileReader().read(given, config).rows
        assert isinstance(chunk, JsonChunk)
        found.append(tuples_of(chunk, config, given, **bounds()))
        if source.is_ended(position):
            return found


def of_messages(texts: list[bytes], way: str, **options: Any) -> Tuples:
    data = np.frombuffer(bytearray(b"".join(text + b"\n" for text in texts)), np.uint8)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
    number = np.arange(len(texts))
    config = StreamConfig.from_options("s", way, format="ndjson", schema="v:integer", **options)
    messages = Messages(starts, number, number)
    return tuples_of(JsonChunk(data), config, reference(len(data)), messages=messages, **bounds())


def numbers(*found: Tuples) -> list[int]:
    return [n for rows in found for n in rows.columns["v"].facet("m").tolist()]


ARRAY = b'[\n{"ts": 1, "v": 1},\n{"ts": 2, "v": 2}\n]'
PRETTY = b'{\n"a": [\n{"ts": 1, "v": 1},\n{"ts": 2, "v": 2}\n]}'


@pytest.mark.parametrize("text", [ARRAY, PRETTY])
def test_a_file_of_one_value_is_refused_as_a_whole(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(FileFault, match=NOT_LINES):
        of_file(text, tmp_path)
    assert numbers(*of_file(b'{"a": \n' + ROW + b"\n" + ROW, tmp_path)) == [7, 7]


@pytest.mark.parametrize("text", [ARRAY, PRETTY])
def test_the_columns_of_a_file_of_one_value_are_not_looked_for(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(text)
    with pytest.raises(SourceError, match=NOT_LINES):
        sniff(str(path), StreamConfig("s", str(path), "ndjson", "field:ts", schema=AUTO))


@pytest.mark.parametrize("text", [ARRAY, PRETTY])
@pytest.mark.parametrize("way", ["kafka://h:1/t", "mqtt://h/t", "ws://h/t"])
def test_a_message_of_one_value_is_dead_alone(text: bytes, way: str) -> None:
    for element in ("line", "message"):
        found = of_messages([ROW, text, ROW], way, element=element)
        assert numbers(found) == [7, 7]
        assert [dead.offset for dead in found.dead] == [1]
    found = of_messages([ROW, b"{\n" + ROW, ROW + b"\n" + ROW], way, element="line")
    assert numbers(found) == [7] * 4


@pytest.mark.parametrize("text", [ARRAY, PRETTY])
def test_a_body_of_one_value_is_refused(text: bytes) -> None:
    with pytest.raises(Problem):
        rows_of(
            StreamConfig.from_options("s", PUSH, format="ndjson", schema="v:integer"), text + b"\n"
        )


@pytest.mark.parametrize("text", [ARRAY, PRETTY])
def test_standard_input_of_one_value_has_no_row(tmp_path: Path, text: bytes) -> None:
    out, into = os.pipe()
    config = StreamConfig.from_options("s", "-", format="ndjson", schema="v:integer")
    spool = StdinSpool(config, tmp_path / "data", out)
    spool._batches.make()
    for line in text.splitlines(keepends=True):
        spool._take(line)
        spool._write()
    spool._take(b"")
    spool._write()
    files = sorted((tmp_path / "data").iterdir())
    assert files
    for file in files:
        data = np.frombuffer(file.read_bytes(), np.uint8)
        found = tuples_of(JsonChunk(data), config, reference(len(data)), **bounds())
        assert (found.n, len(found.dead) > 0) == (0, True)
    os.close(into)
    os.close(out)


AGAIN = b'{"ts": 1, "v": 1, "\\u0076": 2, "w": {"v": 9}, "v": 7}'


def test_of_a_name_that_comes_again_the_last_counts_in_every_way(tmp_path: Path) -> None:
    assert numbers(*of_file(AGAIN + b"\n" + AGAIN, tmp_path)) == [7, 7]
    for way in ("kafka://h:1/t", "mqtt://h/t", "ws://h/t"):
        assert numbers(of_messages([AGAIN, ROW], way)) == [7, 7]
    pushed = StreamConfig.from_options("s", PUSH, format="ndjson", schema="v:integer")
    assert rows_of(pushed, AGAIN.replace(b'"v": 1', b'"v": "no integer"') + b"\n") == 1
    data = np.frombuffer(AGAIN, np.uint8)
    rows = json_rows(data, ["v"], reference(len(data)))
    assert rows.text(0) == AGAIN.decode()  # a letter shows what was sent


NAMES = st.sampled_from(
    [
        *('"a"', '"b"', '"\\u0061"', '"é"', '"\\u00e9"', '"😀"', '"\\ud83d\\ude00"', '"\\n"'),
        *('"\\u000A"', '"\\""', '"\\\\"', '"x"', '"a:"', '"{"'),
    ]
)
JSON = st.sampled_from(
    [
        *("1", '"a"', "null", '{"a": 5, "a": [6]}', '[{"b": 1}, "a", []]', "true", "{}"),
        *('"\\""', '"{\\"a\\": 1"', '" , "'),
    ]
)
OBJECT = st.lists(st.tuples(NAMES, JSON), max_size=6).map(
    lambda members: "{" + ", ".join(f"{name} : {value}" for name, value in members) + "}"
)


@given(st.lists(OBJECT, min_size=1, max_size=4))
def test_names_are_read_as_pythons_reader_reads_them(lines: list[str]) -> None:
    needed = ["a", "b", "é", "😀", "\n", '"', "\\"]
    data = np.frombuffer("\n".join(lines).encode(), np.uint8)
    rows = json_rows(data, needed, reference(len(data)))
    objects = [json.loads(line) for line in lines]
    for name in needed:
        values = [value.get(name) for value in objects]
        read = [
            text if isinstance(value, str) else text and json.loads(text)
            for value, text in zip(values, rows.table[name].to_list(), strict=True)
        ]
        assert read == values


NUMBER = st.sampled_from(
    [
        *("1", "-0.5", "1700000000123.4567", "12345678901234567.891", "-1e-400", "1.5E+3", "null"),
        *("12345678901234567890", "0012345678901234567", "1234567890123456789.", '{"n": 1}'),
    ]
)
NESTED = st.sampled_from(
    [
        '{"n": 12345678901234567890}',
        '[{"n": 1.2345678901234567890}]',
        '"\\"n\\": 12345678901234567890"',
        '{"v": {"n": 12345678901234567890}, "n": 1}',
    ]
)


@given(st.lists(st.tuples(NUMBER, NESTED, st.booleans(), NUMBER), min_size=1, max_size=4))
def test_long_number_in_the_column_of_times_keeps_its_digits(
    members: list[tuple[str, str, bool, str]],
) -> None:
    lines = [
        f'{{"v": {nested}, "n": {before}, "\\u006e" : {number}}}'
        if is_twice
        else f'{{"n": {number}, "v": {nested}}}'
        for number, nested, is_twice, before in members
    ]
    data = np.frombuffer("\n".join(lines).encode(), np.uint8)
    rows = json_rows(data, ["v", "n"], reference(len(data)), "n")
    objects = []
    for line in lines:
        try:
            objects.append((json.loads(line), json.loads(line, parse_float=str, parse_int=str)))
        except ValueError:
            continue
    for (value, exact), (nested, number) in zip(objects, rows.table.rows(), strict=True):
        assert nested == value["v"] or json.loads(nested) == value["v"]
        if isinstance(exact["n"], str) and len(exact["n"]) > 16:
            assert number == exact["n"]
        else:
            assert json.loads(number or "null") == value["n"]


def test_column_of_times_may_be_metadata_of_a_message() -> None:
    data = np.frombuffer(b'{"v": 12345678901234567890}', np.uint8)
    rows = json_rows(data, ["v"], reference(len(data)), "topic_1")
    assert rows.table.rows() == [("12345678901234567890",)]
