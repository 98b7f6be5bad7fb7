"""Files, directories and globs as references: nothing dropped, nothing twice, the same from every
position.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.static_files import check_sound, static_file
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.read_split import read_bytes
from levada.connectors.sources.split_enumerator import check_grown
from levada.connectors.sources.splits import FileSplit
from levada.errors import CheckpointError, SourceError
from support.call_counter import calls


def line(i: int) -> str:
    return f"<http://e/s{i}> <http://e/p> <http://e/o> {i} .\n"


def lines(*numbers: int) -> str:
    return "".join(map(line, numbers))


def source(path: Any, scratch: Any, final: bool = True, **options: Any) -> FileSource:
    made = FileSource(StreamConfig.from_options("s", path, **options), scratch)
    made.discover(final)
    return made


def drain(made: FileSource, rows: int, position: Any = None) -> tuple[list[list[FileSplit]], dict]:
    """All takes from a position; the position goes through JSON, as it does in an intention."""
    position = position or {}
    takes = []
    while True:
        references, position = made.take(json.loads(json.dumps(position)), rows)
        if not references:
            return takes, position
        takes.append(references)


def text(references: Any) -> str:
    return "".join(read_bytes(r).tobytes().decode() for r in references)


def flat(takes: Any) -> list[FileSplit]:
    return [r for references in takes for r in references]


# -- one file --


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_exact_rows_and_nothing_lost(tmp_path: Path, rows: int) -> None:
    (tmp_path / "a.nt").write_text(lines(*range(20)))
    takes, position = drain(made := source(tmp_path / "a.nt", tmp_path), rows)
    assert [sum(r.elements for r in references) for references in takes[:-1]] == [rows] * (
        len(takes) - 1
    )
    assert text(flat(takes)) == lines(*range(20))
    assert made.is_ended(position) and not made.backlog(position)
    assert position["taken"] == 20


def test_comments_blank_lines_and_crlf_are_no_elements(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(
        b"# head\r\n\r\n" + lines(1, 2).encode().replace(b"\n", b"\r\n") + b"\n# tail\n"
    )
    made = source(tmp_path / "a.nt", tmp_path)
    takes, position = drain(made, 1)
    assert [r.elements for r in flat(takes)] == [1, 1]
    assert made.is_ended(position)


def test_a_growing_file_gives_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text(line(1) + "<http://e/s2> <http://e")
    made = source(path, tmp_path, final=False)
    first, position = made.take({}, 10)
    assert text(first) == line(1)
    assert not made.backlog(position) and not made.is_ended(position)
    assert made.partition_states(position) == {"s": False}
    path.write_text(lines(1, 2))
    made.discover()
    second, position = made.take(position, 10)
    assert text(second) == line(2)
    with path.open("a") as file:
        file.write(line(3).rstrip("\n"))
    made.discover(final=True)
    third, position = made.take(position, 10)
    assert text(third) == line(3).rstrip("\n")
    assert made.is_ended(position)


def test_freezing_fixes_the_size(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text(line(1))
    made = source(path, tmp_path)
    with path.open("a") as file:
        file.write(line(2))
    made.discover(final=True)
    takes, position = drain(made, 10)
    assert text(flat(takes)) == line(1)
    assert made.is_ended(position)
    with pytest.raises(CheckpointError, match="has grown"):
        check_grown(source(path, tmp_path, final=False), position)


def test_what_has_not_grown_may_be_started_again(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(line(1) + "# comment\n")
    _, position = drain(source(tmp_path / "a.nt", tmp_path), 10)
    check_grown(source(tmp_path / "a.nt", tmp_path, final=False), position)


def test_missing_and_shortened_files_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not there"):
        source(tmp_path / "none.nt", tmp_path)
    with pytest.raises(SourceError, match="no file matches"):
        source(tmp_path / "*.nt", tmp_path)
    path = tmp_path / "a.nt"
    path.write_text(lines(1, 2))
    made = source(path, tmp_path, final=False)
    references, position = made.take({}, 10)
    path.write_text(line(1))
    made.discover()
    with pytest.raises(SourceError, match="shorter"):
        made.take(position, 10)
    with pytest.raises(SourceError, match="shorter"):
        read_bytes(references[0])


def test_big_ranges_are_cut_for_several_tasks(tmp_path: Path) -> None:
    whole = "".join(f'<http://e/s{i}> <http://e/p> "{"x" * 100}" {i} .\n' for i in range(80_000))
    (tmp_path / "a.nt").write_text(whole)
    references, _ = source(tmp_path / "a.nt", tmp_path).take({}, 70_000)
    assert len(references) == 3
    assert [r.index for r in references] == [0, 1, 2]
    assert sum(r.elements for r in references) == 70_000
    assert all(r.stop - r.start <= 4 << 20 for r in references)
    read = text(references)
    assert whole.startswith(read) and read.endswith("\n")
    assert 65_000 < read.count("\n") < 75_000


def test_references_are_json(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(line(1))
    (reference,), _ = source(tmp_path / "a.nt", tmp_path).take({}, 5)
    assert msgspec.json.decode(msgspec.json.encode(reference), type=FileSplit) == reference
    assert (reference.stream, reference.partition, reference.name, reference.format) == (
        "s",
        "s",
        "a.nt",
        "nt",
    )


def test_limit_counts_elements(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(lines(*range(10)))
    made = source(tmp_path / "a.nt", tmp_path, limit=7)
    takes, position = drain(made, 4)
    assert text(flat(takes)) == lines(*range(7))
    assert made.is_ended(position)


def test_limit_with_bounds_is_left_to_the_task(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(
        "".join(f"{line(i).rstrip()} {' ' * 90_000}\n" for i in range(200))
    )
    made = source(tmp_path / "a.nt", tmp_path, limit=7, to=100)
    (first,), position = made.take({}, 100_000)
    assert first.limit_left == 7
    (second,), position = made.take({**position, "passed": 5}, 100_000)
    assert second.limit_left == 2
    assert second.start == first.stop
    assert made.take({**position, "passed": 7}, 100_000)[0] == []
    assert made.is_ended({**position, "passed": 7})


# -- elements of several lines --


OBSERVATIONS = "".join(
    f"<http://e/s{i // 3}> <http://e/p{i % 3}> <http://e/o> <http://e/g{i // 6}> .\n"
    for i in range(30)
)


@pytest.mark.parametrize(("element", "size"), [("subject", 3), ("graph", 6)])
@pytest.mark.parametrize("rows", [1, 2, 4, 100])
def test_never_a_cut_inside_an_element(tmp_path: Path, element: str, size: int, rows: int) -> None:
    (tmp_path / "a.nq").write_text(OBSERVATIONS)
    made = source(tmp_path / "a.nq", tmp_path, element=element)
    takes, position = drain(made, rows)
    assert text(flat(takes)) == OBSERVATIONS
    assert [sum(r.elements for r in t) for t in takes[:-1]] == [rows] * (len(takes) - 1)
    assert all(text(t).count("\n") % size == 0 for t in takes)
    assert made.is_ended(position)


def test_the_last_element_of_a_growing_file_waits_for_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    whole = OBSERVATIONS.splitlines(keepends=True)
    path.write_text("".join(whole[:5]))
    made = source(path, tmp_path, final=False, element="subject", format="nq")
    references, position = made.take({}, 10)
    assert text(references) == "".join(whole[:3])
    assert not made.backlog(position)
    path.write_text("".join(whole[:7]))
    made.discover()
    references, position = made.take(position, 10)
    assert text(references) == "".join(whole[3:6])
    made.freeze()
    assert text(made.take(position, 10)[0]) == whole[6]


def test_an_element_larger_than_a_window(tmp_path: Path) -> None:
    big = "".join(f'<http://e/s> <http://e/p> "{i:>90}" .\n' for i in range(60_000))
    (tmp_path / "a.nt").write_text(big + "<http://e/t> <http://e/p> 1 .\n")
    made = source(tmp_path / "a.nt", tmp_path, element="subject", time="predicate:http://e/p")
    takes, _ = drain(made, 1)
    assert [text(t).count("\n") for t in takes] == [60_000, 1]


def test_documents_are_whole_finished_files(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"d{i}.nt").write_text(lines(1, 2, 3))
    made = source(tmp_path, tmp_path / "x", final=False, element="document", time=r"filename:(\d+)")
    takes, position = drain(made, 1)
    assert [(r.name, r.elements) for r in flat(takes)] == [("d0.nt", 1), ("d1.nt", 1)]
    made.discover(final=True)
    rest, position = made.take(position, 9)
    assert [(r.name, text([r])) for r in rest] == [("d2.nt", lines(1, 2, 3))]
    assert made.is_ended(position)


# -- directories --


def test_a_growing_directory_is_a_sequence(tmp_path: Path) -> None:
    stream = tmp_path / "in"
    stream.mkdir()
    made = source(stream, tmp_path, final=False)
    assert made.partition_states({}) == {} and not made.backlog({})
    (stream / "b.nt").write_text(lines(1) + line(2).rstrip("\n"))
    (stream / ".hidden.nt").write_text(line(9))
    (stream / "c.nt.tmp").write_text(line(9))
    (stream / "d.nt.part").write_text(line(9))
    (stream / "_SUCCESS").touch()
    (stream / "folder").mkdir()
    made.discover()
    assert made.partition_states({}) == {"s": True}
    one, position = made.take({}, 10)
    assert text(one) == line(1)
    (stream / "c.nt").write_text(line(3))
    made.discover()
    two, position = made.take(position, 10)
    assert [(r.name, text([r])) for r in two] == [("b.nt", line(2).rstrip("\n")), ("c.nt", line(3))]
    assert [r.index for r in two] == [0, 1]
    assert two[0].document == one[0].document != two[1].document
    (stream / "a.nt").write_text(line(4))
    made.discover()
    assert made.overtaken == ["a.nt"] and not made.backlog(position)
    os.remove(stream / "b.nt")
    os.remove(stream / "c.nt")
    (stream / "e.nt").write_text(line(5))
    made.discover()
    assert text(made.take(position, 10)[0]) == line(5)


def test_a_name_between_what_is_read_and_what_was_seen_is_in_time(tmp_path: Path) -> None:
    stream = tmp_path / "in"
    stream.mkdir()
    (stream / "a.nt").write_text(line(1))
    (stream / "c.nt").write_text(line(3))
    made = source(stream, tmp_path, final=False)
    _, position = made.take({}, 1)
    assert made.backlog(position)
    (stream / "b.nt").write_text(line(2))
    made.discover()
    assert made.overtaken == []
    assert text(made.take(position, 9)[0]) == lines(2, 3)


def test_a_glob(tmp_path: Path) -> None:
    for name in ("b/2.nt", "a/1.nt", "a/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(line(int(name[2])) if name.endswith("nt") else "no")
    takes, _ = drain(source(tmp_path / "*" / "*.nt", tmp_path), 1)
    assert text(flat(takes)) == lines(1, 2)


@pytest.mark.parametrize("rows", [1, 4, 10, 1000])
def test_parallel_files_are_partitions_that_share_the_rows(tmp_path: Path, rows: int) -> None:
    stream = tmp_path / "in"
    stream.mkdir()
    sizes = {"a.nt": 30, "b.nt": 3, "c.nt": 20, "e.nt": 0}
    for name, size in sizes.items():
        (stream / name).write_text(lines(*range(size)))
    made = source(stream, tmp_path, files="parallel")
    assert made.partition_states({}) == {"a.nt": True, "b.nt": True, "c.nt": True}
    takes, position = drain(made, rows)
    assert [sum(r.elements for r in t) for t in takes[:-1]] == [rows] * (len(takes) - 1)
    for name, size in sizes.items():
        assert text(r for r in flat(takes) if r.partition == name) == lines(*range(size))
    if rows == 10:
        assert {r.partition: r.elements for r in takes[0]} == {"a.nt": 4, "b.nt": 3, "c.nt": 3}
    assert made.partition_states(position) == {"a.nt": False, "b.nt": False, "c.nt": False}
    assert made.is_ended(position)


def test_parallel_files_grow_each(tmp_path: Path) -> None:
    stream = tmp_path / "in"
    stream.mkdir()
    for name in "ab":
        (stream / f"{name}.nt").write_text(line(1) + "<http")
    made = source(stream, tmp_path, final=False, files="parallel")
    references, position = made.take({}, 10)
    assert text(references) == lines(1, 1)
    (stream / "c.nt").write_text("<partial")
    (stream / "a.nt").write_text(lines(1, 2))
    made.discover()
    assert made.partition_states(position) == {"a.nt": True, "b.nt": False}
    assert text(made.take(position, 10)[0]) == line(2)


@settings(max_examples=40, deadline=None)
@given(
    files=st.lists(st.lists(st.integers(0, 4), max_size=8), min_size=1, max_size=5),
    rows=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    parallel=st.booleans(),
    element=st.sampled_from(["line", "subject"]),
    grow=st.booleans(),
)
def test_any_takes_give_every_byte_of_every_file_once(
    tmp_path_factory: pytest.TempPathFactory,
    files: Any,
    rows: Any,
    parallel: Any,
    element: Any,
    grow: Any,
) -> None:
    """However many rows a take asks for, and also if files grow between takes: each file's elements
    once and in order.
    """
    folder = tmp_path_factory.mktemp("in")
    made = FileSource(
        StreamConfig.from_options(
            "s", folder, element=element, files="parallel" if parallel else "sequence"
        ),
        folder / "x",
    )
    texts = {f"f{i}.nt": lines(*numbers) for i, numbers in enumerate(files)}
    halves = {name: t[: len(t) // 2] for name, t in texts.items()}
    position: dict = {}
    seen: dict[str, str] = dict.fromkeys(texts, "")
    for stage in (halves, texts) if grow and parallel else (texts,):
        for name, t in stage.items():
            (folder / name).write_text(t)
        made.discover(final=stage is texts)
        for turn in range(1000):
            references, position = made.take(
                json.loads(json.dumps(position)), rows[turn % len(rows)]
            )
            if not references:
                break
            assert sum(r.elements for r in references) <= rows[turn % len(rows)]
            for r in references:
                seen[r.name] += text([r])
    assert seen == texts
    assert made.is_ended(position)


def test_takes_are_deterministic(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(lines(*range(50)))
    made, again = (source(tmp_path / "a.nt", tmp_path) for _ in range(2))
    _, position = made.take({}, 13)
    assert made.take(position, 9) == again.take(position, 9)


def test_ten_thousand_small_files_at_once(tmp_path: Path) -> None:
    stream = tmp_path / "in"
    stream.mkdir()
    made = source_of_small_files(stream, tmp_path, range(10_000))
    references, position = made.take({}, 1_000_000)
    assert [r.name for r in references] == [f"{i:05}.nt" for i in range(10_000)]
    assert sum(r.elements for r in references) == 10_000
    assert made.is_ended(position)


def test_small_files_cost_as_many_calls_as_there_are_files(tmp_path: Path) -> None:
    stream = tmp_path / "in"
    stream.mkdir()

    def take(files: range) -> int:
        made = source_of_small_files(stream, tmp_path, files)
        return calls(lambda: made.take({}, 1_000_000))

    few, twice = take(range(500)), take(range(500, 1_000))
    assert twice < 2.1 * few


def source_of_small_files(stream: Path, scratch: Path, more: range) -> FileSource:
    """A source of a folder with more files of a line each."""
    for i in more:
        (stream / f"{i:05}.nt").write_text(line(i))
    return source(stream, scratch)


# -- gzip --


def test_gzip_is_read_by_ranges_of_its_text(tmp_path: Path) -> None:
    packed = gzip.compress(lines(1, 2).encode()) + gzip.compress(lines(3).encode())
    (tmp_path / "a.nt.gz").write_bytes(packed)
    made = source(tmp_path / "a.nt.gz", tmp_path / "scratch")
    takes, position = drain(made, 2)
    assert [text(t) for t in takes] == [lines(1, 2), lines(3)]
    assert {r.name for r in flat(takes)} == {"a.nt.gz"}
    assert takes[1][0].start == len(lines(1, 2))
    assert made.is_ended(position)
    restarted, _ = drain(source(tmp_path / "a.nt.gz", tmp_path / "scratch"), 2)
    assert restarted == takes


def test_a_gzip_file_that_is_still_written_waits(tmp_path: Path) -> None:
    packed = gzip.compress(lines(*range(100)).encode())
    path = tmp_path / "a.nt.gz"
    path.write_bytes(packed[:-20])
    made = source(path, tmp_path / "scratch", final=False)
    assert not made.backlog({})
    with pytest.raises(SourceError, match="whole gzip"):
        source(path, tmp_path / "scratch").backlog({})
    path.write_bytes(packed)
    made.discover()
    assert text(made.take({}, 1000)[0]) == lines(*range(100))
    assert not list((tmp_path / "scratch").glob("*.tmp"))


@pytest.mark.parametrize("missing", [1, 4, 8, 9, 100])
def test_gzip_file_without_its_end_names_the_file_and_the_cause(
    tmp_path: Path, missing: int
) -> None:
    packed = gzip.compress(lines(*range(100)).encode())
    for name, read in (("a.nt.gz", read_stream), ("a.ttl.gz", read_static)):
        (tmp_path / name).write_bytes(packed[:-missing])
        with pytest.raises(SourceError, match=rf"{name}.*ended before the end-of-stream marker"):
            read(tmp_path / name)


def read_stream(path: Path) -> None:
    source(path, path.parent / "scratch").backlog({})


def read_static(path: Path) -> None:
    check_sound(static_file(str(path)))


def test_damaged_gzip_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.nt.gz").write_bytes(b"no gzip at all")
    with pytest.raises(SourceError, match="whole gzip"):
        source(tmp_path / "a.nt.gz", tmp_path / "scratch").take({}, 1)
