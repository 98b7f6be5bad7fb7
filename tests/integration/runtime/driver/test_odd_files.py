"""Files of which no reader knows what to say are dead letters with their name, and byte order marks
are no data.
"""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levada.connectors.ingest.parse import documents
from levada.connectors.sources.file_errors import FileFaults
from levada.engine.engine import Engine
from levada.errors import FileFault, SourceError, UsageError
from levada.runtime.task import ingest_task

BOM = b"\xef\xbb\xbf"
CQL = "Istream(Select k, v From S [Now])"
RDF = """PREFIX : <http://e/> REGISTER ISTREAM :q AS SELECT ?o
FROM NAMED WINDOW :w ON <S> [RANGE PT1S]
WHERE { WINDOW :w { ?s :p ?o } }"""


def run(root: Path, path: Any, text: str = CQL, **options: Any) -> tuple[list[str], list[Any], Any]:
    """The first values of the rows of a run over the files, its dead letters, and the stream's
    record.
    """
    with Engine(spark=False, letters=root / "out", epoch_rows=options.pop("rows", 1000)) as engine:
        engine.stream("S", path, **options)
        query = engine.register(text, dialect="cql" if text is CQL else "rspql")
        engine.start(once=True)
        engine.await_end()
        rows = [row[1].split('"')[1] for row in query.to_polars(terms=True).rows()]
        record = engine._records()["S"]
    found = sorted((root / "out" / "dead-letter").glob("*.ndjson"))
    dead = [json.loads(line) for file in found for line in file.read_text().splitlines()]
    assert record.dead_letters == len(dead)
    return rows, dead, record


def good(folder: Path, name: str, k: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.csv").write_text(f"k,v,ts\n{k},a,{1000 * k}\n")


def parquet(path: Path, names: list[str], k: int) -> None:
    columns = {"k": [k] * 50, "v": ["a"] * 50, "ts": [1000 * k] * 50}
    pq.write_table(pa.table([pa.array(columns[name]) for name in names], names=names), path)


def test_parquet_with_a_column_twice(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i, names in enumerate((["k", "v", "ts"], ["k", "v", "v", "ts"], ["k", "v", "ts"])):
        parquet(folder / f"{i}.parquet", names, i)
    rows, dead, _ = run(tmp_path, folder)
    assert len(rows) == 100
    assert [letter["source"] for letter in dead] == ["1.parquet"]
    assert dead[0]["reason"].endswith("1.parquet has the column v twice.")


HEADERS = {
    "long": b"k,v,ts," + b"x" * 200_000 + b"\n1,a,1000\n",
    "open": b'k,"v,ts\n' + b"1,a,1000\n" * 20_000,
}


@pytest.mark.parametrize("header", list(HEADERS))
def test_a_header_that_the_reader_of_csv_refuses(tmp_path: Path, header: str) -> None:
    for name, k in (("a", 1), ("c", 3)):
        good(tmp_path / "in", name, k)
    (tmp_path / "in" / "b.csv").write_bytes(HEADERS[header])
    rows, dead, _ = run(tmp_path, tmp_path / "in", schema="k:integer;v:string")
    assert rows == ["1", "3"]
    assert [letter["source"] for letter in dead] == ["b.csv"]
    assert "b.csv" in dead[0]["reason"]


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_a_name_that_is_not_utf8_is_told_of_as_escapes(tmp_path: Path, files: str) -> None:
    for name, k in (("a", 1), ("b", 2)):
        good(tmp_path / "in", name, k)
    os.rename(tmp_path / "in" / "b.csv", os.fsencode(tmp_path) + b"/in/\xff\xfe.csv")
    good(tmp_path / "in", "c", 3)
    rows, dead, _ = run(tmp_path, tmp_path / "in", schema="k:integer;v:string", files=files, rows=1)
    assert sorted(rows) == ["1", "3"]
    assert [letter["source"] for letter in dead] == ["\\xff\\xfe.csv"]
    assert "is not UTF-8" in dead[0]["reason"]


def test_a_path_that_is_not_utf8_is_a_sentence(tmp_path: Path) -> None:
    good(tmp_path / "in", "a", 1)
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    os.rename(tmp_path / "in", odd)
    for path in (odd, f"{odd}/a.csv"):
        with pytest.raises(SourceError, match="is not UTF-8"):
            run(tmp_path, path, schema="k:integer;v:string")
    with Engine(spark=False) as engine, pytest.raises(UsageError, match="is not UTF-8"):
        engine.static(f"{odd}/a.csv", format="nt")


class PanicException(BaseException):  # as libraries in Rust call theirs
    pass


@pytest.mark.parametrize(
    "error", [OverflowError("too large"), MemoryError(), PanicException("index"),
              AssertionError("x")]
)  # fmt: skip
def test_whatever_a_parser_raises_is_the_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i in (1, 2, 3):
        (folder / f"a_{1000 * i}.ttl").write_text(f"<http://e/s> <http://e/p> {i} .")
    parse = documents.parse_document

    def parsed(data: Any, reference: Any, seed: int) -> Any:
        if reference.name == "a_2000.ttl":
            raise error
        return parse(data, reference, seed)

    monkeypatch.setattr(ingest_task, "parse_document", parsed)
    rows, dead, record = run(tmp_path, folder, RDF, time="filename:_([0-9]+)", format="ttl", rows=1)
    assert len(rows) == 2 and record.elements == 2
    assert [letter["source"] for letter in dead] == ["a_2000.ttl"]
    assert dead[0]["reason"].startswith("The file a_2000.ttl of the stream S cannot be read: ")


def test_what_the_system_says_is_no_fault_of_the_file() -> None:
    for number, kind in ((28, SourceError), (24, SourceError), (22, FileFault)):
        with pytest.raises(SourceError) as error, FileFaults("a", "s"):
            raise OSError(number, os.strerror(number))
        assert type(error.value) is kind
    with pytest.raises(KeyboardInterrupt), FileFaults("a", "s"):
        raise KeyboardInterrupt


MARKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nt": ("s.nt", "<http://e/a> <http://e/p> 1 1000 .", {}),
    "subjects": ("s.nt", "<http://e/a> <http://e/p> 1 1000 .", {"element": "subject"}),
    "nq": ("s.nq", "<http://e/a> <http://e/p> 1 <http://e/g> 1000 .", {}),
    "ttl": ("s_1000.ttl", "<http://e/a> <http://e/p> 1 .", {"time": "filename:_([0-9]+)"}),
    "trig": ("s_1000.trig", "<http://e/a> <http://e/p> 1 .", {"time": "filename:_([0-9]+)"}),
    "jsonld": ("s_1000.jsonld", '{"@id": "http://e/a", "http://e/p": 1}',
               {"time": "filename:_([0-9]+)"}),
    "rdf": (
        "s_1000.rdf",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:e="http://e/"><rdf:Description rdf:about="http://e/a" e:p="1"/></rdf:RDF>',
        {"time": "filename:_([0-9]+)"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", list(MARKED))
def test_a_byte_order_mark_before_triples_is_skipped(tmp_path: Path, form: str) -> None:
    name, text, options = MARKED[form]
    text = text.replace(" 1 1000", ' "1" 1000').replace(" 1 <", ' "1" <')
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(BOM + text.encode() + b"\n")
    rows, dead, record = run(
        tmp_path, tmp_path / "in", RDF, format=form if form != "subjects" else "nt", **options
    )
    assert (len(rows), dead, record.elements) == (1, [], 1)


TABLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "csv": ("s.csv", "k,v,ts\n1,a,1000\n", {}),
    "quoted": ("s.csv", '"k",v,ts\n1,a,1000\n', {}),
    "ndjson": ("s.ndjson", '{"k": 1, "v": "a", "ts": 1000}\n', {}),
}


@pytest.mark.parametrize("form", list(TABLES))
def test_a_byte_order_mark_before_rows_is_skipped(tmp_path: Path, form: str) -> None:
    name, text, options = TABLES[form]
    (tmp_path / name).write_bytes(BOM + text.encode())
    rows, dead, _ = run(tmp_path, tmp_path / name, schema="k:integer;v:string", **options)
    assert (rows, dead) == (["1"], [])


def test_a_byte_order_mark_before_csv_without_a_header_is_skipped(tmp_path: Path) -> None:
    mapping = tmp_path / "m.yaml"
    mapping.write_text("header: [k, ts]\ntriples:\n  - <http://e/{k}> <http://e/p> {k}\n")
    (tmp_path / "s.csv").write_bytes(BOM + b"a,1000\nb,2000\n")
    rows, dead, _ = run(tmp_path, tmp_path / "s.csv", RDF, mapping=mapping)
    assert (rows, dead) == (["a", "b"], [])
