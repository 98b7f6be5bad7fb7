"""Every element that is there is counted, late, dead or cut, whatever the bytes of the files and
whatever becomes of the files; and the engine checks that by itself.
"""

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any, Literal

import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources import source_reader
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.fingerprint import BLOCK, HEAD
from levada.connectors.sources.read_split import CsvChunk
from levada.engine.engine import Engine
from levada.errors import EngineError, SourceError

CQL = "Istream(Select k From S [Now])"
SCHEMA = "k:integer;v:string"


def counted(path: Any, rows: int = 1_000_000, **options: Any) -> Any:
    """The record of a stream that is read to its end; the engine compares the counts."""
    with Engine(spark=False, epoch_rows=rows) as engine:
        engine.stream("S", path, **{"schema": SCHEMA, **options})
        engine.register(CQL, dialect="cql")
        engine.start(once=True)
        engine.await_end()
        return engine._records()["S"]


# -- bytes --


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("rows", [1, 100])
def test_any_line_end_ends_a_line(tmp_path: Path, end: str, rows: int) -> None:
    for name, lines in (
        ("a.csv", ["k,v,ts", "1,a,1000", '2,"b\rc",2000', "3,c,3000"]),
        ("a.ndjson", [json.dumps({"k": k, "v": "a", "ts": k * 1000}) for k in (1, 2, 3)]),
    ):
        (tmp_path / name).write_bytes(end.join([*lines, ""]).encode())
        record = counted(tmp_path / name, rows)
        assert (record.elements, record.dead_letters, record.max_ts) == (3, 0, 3000)


def test_an_open_quote_takes_its_own_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    good = "".join(f"{k},c,{k * 1000}\n" for k in range(3, 103))
    path.write_text('k,v,ts\n1,a,1000\n2,"b,2000\n' + good)
    record = counted(path)
    assert (record.elements, record.dead_letters) == (101, 1)


def test_an_open_quote_does_not_stall_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('k,v,ts\n1,a,1000\n2,"b,2000\n' + "3,c,3000\n" * 20_000)
    source = FileSource(StreamConfig.from_options("S", path, schema=SCHEMA), tmp_path)
    source.discover()
    assert sum(r.elements for r in source.take({}, 1_000_000)[0]) > 10_000


def mutated(random: random.Random, text: bytes) -> bytes:
    """A text with some bytes otherwise."""
    pieces = [b'"', b"\r", b"\n", b"\r\n", b"\0", b",", b"{", b"#", b" ", b"\xff", b'""', b"\\"]
    pieces += [b"x" * 70_000, b"\n\n", b"\x01\n", b"[]\n", b"null\n", b'"\n"']
    data = bytearray(text)
    for _ in range(random.randint(1, 12)):
        at = random.randrange(len(data))
        fate = random.random()
        if fate < 0.6:
            data[at:at] = random.choice(pieces)
        elif fate < 0.8:
            del data[at : at + random.randint(1, 9)]
        else:
            data[at] = random.randrange(256)
    return bytes(data)


@pytest.mark.long
@pytest.mark.parametrize("form", ["csv", "ndjson", "nt", "mapped"])
def test_mutated_files_are_accounted_for(tmp_path: Path, form: str, random_seed: int) -> None:
    """All of it in one epoch, and in small ones: the engine compares its counts, and so does this
    test those of the two.
    """
    draw = random.Random(random_seed)
    options: dict[str, Any] = {}
    if form == "mapped":
        (tmp_path / "m.yaml").write_text(
            "columns: {k: integer}\ntriples: ['<http://e/{v}> <http://e/p> {k}', '<{v}> a <a:b>']\n"
        )
        options = {"mapping": tmp_path / "m.yaml"}
    for n in range(25):
        rows = [(k, draw.choice(["a", 'b "c"', "d,e", "f\ng"]), k * 1000) for k in range(60)]
        quoted = [(k, v.replace('"', '""'), t) for k, v, t in rows]
        text = {
            "csv": "".join(f'{k},"{v}",{t}\n' for k, v, t in quoted),
            "ndjson": "".join(json.dumps({"k": k, "v": v, "ts": t}) + "\n" for k, v, t in rows),
            "nt": "".join(f"<a:{k}> <a:b> {json.dumps(v)} {t} .\n" for k, v, t in rows),
        }["csv" if form == "mapped" else form]
        head = b"" if form in ("ndjson", "nt") else b"k,v,ts\n"
        path = tmp_path / f"{n}.{'csv' if form == 'mapped' else form}"
        path.write_bytes(head + mutated(draw, text.encode()))
        if form in ("nt", "mapped"):
            found = [counted_triples(path, most, **options) for most in (1_000_000, 7)]
        else:
            found = [counted(path, most) for most in (1_000_000, 7)]
        whole, small = (r.elements + r.late + r.dead_letters + r.cut for r in found)
        # of a row that is late no triple is written, and none can be malformed
        assert whole == small or form == "mapped", f"file {n} of seed {random_seed}"


def counted_triples(path: Path, rows: int, **options: Any) -> Any:
    with Engine(spark=False, epoch_rows=rows) as engine:
        engine.stream("http://e/s", path, **options)
        engine.start(once=True)
        engine.await_end()
        return engine._records()["http://e/s"]


def test_what_a_task_loses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k,v,ts\n1,a,1000\n2,b,2000\n")
    whole = source_reader.read_tuples

    def loses(reference: Any, config: Any) -> Any:
        chunk = whole(reference, config)
        assert isinstance(chunk, CsvChunk)
        return type(chunk)(chunk.columns, chunk.data[:9], chunk.separator)

    monkeypatch.setattr(source_reader, "read_tuples", loses)
    with pytest.raises(EngineError, match="Of the stream S 1 element is unaccounted for"):
        counted(path)


# -- files --


def line(i: int) -> str:
    return f"<http://e/s{i}> <http://e/p> <http://e/o> {i} .\n"


def texts(references: Any) -> str:
    return "".join(Path(r.path).read_text()[r.start : r.stop] for r in references)


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path, files: str) -> None:
    path = tmp_path / "in" / "a.nt"
    path.parent.mkdir()
    path.write_text("".join(map(line, range(10))))

    def source() -> FileSource:
        made = FileSource(StreamConfig.from_options("s", path.parent, files=files), tmp_path)
        made.discover()
        return made

    made = source()
    first, position = made.take({}, 100)
    new = "".join(map(line, range(100, 130)))
    (tmp_path / "new").write_text(new)
    os.replace(tmp_path / "new", path)
    made.discover(position=position)
    for one in (made, source()):  # the engine that goes on, and one that is started again
        second, after = one.take(json.loads(json.dumps(position)), 100)
        assert texts(second) == new
        assert after["replaced"] == 1
        assert second[0].document != first[0].document
        assert not one.backlog(after)
    # shorter than what was read, but another file
    (tmp_path / "new").write_text(line(7))
    os.replace(tmp_path / "new", path)
    made.discover(position=after)
    third, last = made.take(after, 100)
    assert texts(third) == line(7) and last["replaced"] == 2


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_a_file_that_is_the_same_is_read_on(tmp_path: Path, files: str) -> None:
    """A copy has another number on the disk; a file that grows has other bytes behind."""
    path = tmp_path / "in" / "a.nt"
    path.parent.mkdir()
    for size in (10, HEAD):
        path.write_text("".join(map(line, range(size))))
        made = FileSource(StreamConfig.from_options("s", path.parent, files=files), tmp_path)
        made.discover()
        position = made.take({}, 10 * HEAD)[1]
        (tmp_path / "copy").write_text(path.read_text() + line(5))
        os.replace(tmp_path / "copy", path)
        made.discover(position=position)
        references, after = made.take(position, 100)
        assert texts(references) == line(5) and "replaced" not in after
    os.truncate(path, 50)
    made.discover(position=after)
    with pytest.raises(SourceError, match="became shorter"):
        made.take(after, 100)


@pytest.mark.parametrize("files", ["sequence", "parallel"])
@pytest.mark.parametrize("other", [0, 4000, 2000, 3999])
@pytest.mark.parametrize("end", [".nt", ".nt.gz"])
def test_another_file_with_the_same_first_bytes_is_read_anew(
    tmp_path: Path, files: str, other: int, end: str
) -> None:
    """``other``: where it has another line than the file before, of which 4,000 lines were read."""
    path = tmp_path / "in" / f"a{end}"
    path.parent.mkdir()
    pack = gzip.compress if end.endswith(".gz") else bytes
    lines = [line(10_000 + i) for i in range(4000)]
    path.write_bytes(pack("".join(lines).encode()))

    def source() -> FileSource:
        made = FileSource(StreamConfig.from_options("s", path.parent, files=files), tmp_path)
        made.discover(final=True)
        return made

    made = source()
    position: Any = {}
    while (taken := made.take(position, 1500))[0]:
        position = json.loads(json.dumps(taken[1]))
    lines = [line(50_000) if i == other else old for i, old in enumerate(lines + lines)]
    (tmp_path / "new").write_bytes(pack("".join(lines).encode()))
    os.replace(tmp_path / "new", path)
    references, after = source().take(position, 100_000)
    is_same = other == 4000  # the first line behind what was read
    assert texts(references) == "".join(lines[4000:] if is_same else lines)
    assert after.get("replaced", 0) == 1 - is_same


@pytest.mark.parametrize("size", [100, 70_000, 1_000_000])
def test_a_file_that_is_written_over_with_the_same_first_bytes_is_read_anew(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "a.nt"
    head = "".join(line(10_000 + i) for i in range(HEAD // 20))
    path.write_text(head + "".join(line(20_000 + i) for i in range(size // 36)))
    made = FileSource(StreamConfig.from_options("s", path), tmp_path)
    made.discover()
    position: Any = {}
    while (taken := made.take(position, 100_000))[0]:
        position = taken[1]
    new = head + "".join(line(60_000 + i) for i in range(size // 18))
    path.write_text(new)  # in place, as `cp` does it
    made.discover(position=position)
    references, after = made.take(position, 1_000_000)
    assert texts(references) == new and after["replaced"] == 1


def test_a_file_that_grows_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.nt"
    path.write_text("".join(line(1_000_000 + i) for i in range(50_000)))
    made = FileSource(StreamConfig.from_options("s", path), tmp_path)
    made.discover()
    position: Any = {}
    while (taken := made.take(position, 100_000))[0]:
        position = taken[1]
        made.complete(position, taken[0], [])  # as if tasks had hashed nothing
    read: list[int] = []
    pread = os.pread

    def counted(file: int, size: int, at: int) -> bytes:
        read.append(size)
        return pread(file, size, at)

    monkeypatch.setattr(os, "pread", counted)
    for i in range(20):
        with path.open("a") as file:
            file.write(line(2_000_000 + i))
        made.discover(position=position)
        references, position = made.take(position, 100)
        assert texts(references) == line(2_000_000 + i)
    assert sum(read) < 20 * 2 * (HEAD + 2 * BLOCK) + 2 * BLOCK < path.stat().st_size * 3


def test_a_position_of_a_former_version_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text(line(1))
    made = FileSource(StreamConfig.from_options("s", path), tmp_path)
    made.discover()
    position = made.take({}, 10)[1]
    old = ".".join(position["fingerprints"]["a.nt"].split(".")[:4])
    with path.open("a") as file:
        file.write(line(2))
    made.discover(position=position)
    references, _ = made.take({**position, "fingerprints": {"a.nt": old}}, 10)
    assert texts(references) == line(2)


def test_a_file_that_is_deleted_before_it_was_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.csv").write_text(f"k,v,ts\n{i},a,{i}000\n")
    with Engine(
        spark=False, epoch_rows=1, letters=tmp_path / "out", checkpoint=tmp_path / "ck"
    ) as e:
        e.stream("S", folder, schema=SCHEMA)
        e.register(CQL, dialect="cql")
        seen: list[int] = []

        def delete(manifest: Any) -> None:
            seen.append(manifest.epoch)
            (folder / "2.csv").unlink(missing_ok=True)

        e._on_epoch(delete)
        e.start(once=True)
        e.await_end()
        record = e._records()["S"]
    assert (record.elements, record.dead_letters, record.deleted_files) == (3, 1, 1)
    (letter,) = (tmp_path / "out" / "dead-letter").glob("*.ndjson")
    assert json.loads(letter.read_text())["source"] == "2.csv"
    assert "was deleted" in letter.read_text()


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.csv")
    with Engine(spark=False) as engine:
        for path in (tmp_path / "p.csv", Path("/dev/null")):
            with pytest.raises(SourceError, match="is no regular file but a"):
                engine.stream("S", path, format="csv", schema=SCHEMA)


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_unpacked_copies_go_when_they_are_read(
    tmp_path: Path, files: Literal["sequence", "parallel"]
) -> None:
    folder, most = tmp_path / "in", []
    folder.mkdir()
    for i in range(20):
        rows = "".join(f"{k},a,{i * 10_000 + k}\n" for k in range(10))
        (folder / f"{i:02}.csv.gz").write_bytes(gzip.compress(f"k,v,ts\n{rows}".encode()))
    scratch = tmp_path / "ck" / "scratch"
    with Engine(spark=False, epoch_rows=7, checkpoint=tmp_path / "ck") as engine:
        engine.stream("S", folder, schema=SCHEMA, format="csv", files=files)
        engine.register(CQL, dialect="cql")
        engine._open()
        scratch.mkdir()
        (scratch / "left.plain").touch()  # by a run that was killed
        engine._on_epoch(lambda manifest: most.append(len(list(scratch.iterdir()))))
        engine.start(once=True)
        engine.await_end()
        assert engine._records()["S"].elements == 200
        assert not list(scratch.iterdir())
    if files == "sequence":
        assert max(most) <= 2


def graphs(form: str) -> bytes:
    """Forty triples, by threes of one subject, graph and time."""
    lines = {
        "nt": '<a:s{t}> <a:p> "v{k}" {t} .\n',
        "nq": '<a:s{k}> <a:p> "v" <a:g/{t}> .\n',
        "ttl": '<a:s{t}> <a:p> "v{k}" .\n',
        "trig": 'GRAPH <a:g/{t}> {{ <a:s{k}> <a:p> "v" }}\n',
    }[form]
    return "".join(lines.format(k=k, t=1000 + k // 3) for k in range(40)).encode()


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("nt", {"element": "subject"}),
        ("nt", {"element": "blankline"}),
        ("nt", {"element": "document"}),
        ("nt", {"from": "1002", "limit": "9"}),
        ("nq", {"element": "graph", "time": "graph", "limit": "7"}),
        ("ttl", {"time": "filename:_([0-9]+)"}),
        ("trig", {"time": "graph", "element": "graph"}),
    ],
)
def test_mutated_graphs_are_accounted_for(
    tmp_path: Path, form: str, options: dict[str, str], random_seed: int
) -> None:
    draw = random.Random(random_seed)
    for n, text in enumerate(
        [b"", b"\xef\xbb\xbf# c\n", *(mutated(draw, graphs(form)) for _ in range(4))]
    ):
        path = tmp_path / f"x_{n}.{form}"
        path.write_bytes(text)
        for rows in (1_000_000, 5):
            counted_triples(path, rows, format=form, **options)  # raises where one is missing
