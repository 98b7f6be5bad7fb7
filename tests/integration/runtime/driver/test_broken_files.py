"""A broken file among good ones is a dead letter, once, and the stream goes on; the first file, or
a single one, is a wrong use.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.errors import SourceError
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, element, query, step

QUERY = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="all", windows={"w": (S, step(1000, 1000))}
)
CQL = "Istream(Select k From S [Now])"


def letters(root: Any) -> list[Any]:
    found = (root / "dead-letter").glob("*.ndjson")
    return [
        json.loads(line)
        for file in sorted(found)
        for line in file.read_bytes().split(b"\n")
        if line
    ]


def table(path: Any, times: Any) -> None:
    pq.write_table(pa.table({"k": times, "ts": [t * 1000 for t in times]}), path)


def packed_stream(folder: Any) -> None:
    folder.mkdir()
    for i in (1, 3, 5):
        write_lines(folder / f"{i}.nt", [element(1000 * i, f"a p {i}")])
    whole = gzip.compress((folder / "3.nt").read_bytes() * 1000)
    (folder / "2.nt.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "4.nt.zst").write_bytes(b"no Zstandard")


@pytest.mark.parametrize("files", ["sequence", "parallel"])
@pytest.mark.parametrize("rows", [1, 1000])
def test_packed_files_that_are_damaged(
    tmp_path: Path, files: Literal["sequence", "parallel"], rows: int
) -> None:
    packed_stream(tmp_path / "in")
    with Engine(spark=False, letters=tmp_path / "out", epoch_rows=rows) as engine:
        engine.stream(S, tmp_path / "in", format="nt", files=files)
        query = engine.register(QUERY.text, name="all")
        engine.start(once=True)
        engine.await_end()
        assert sorted(query.to_polars(terms=True)["report"].to_list()) == [2000, 4000, 6000]
        assert (engine._records()[S].elements, engine._records()[S].dead_letters) == (3, 2)
    assert sorted(letter["source"] for letter in letters(tmp_path / "out")) == [
        "2.nt.gz",
        "4.nt.zst",
    ]
    assert all("is not a whole" in letter["reason"] for letter in letters(tmp_path / "out"))


def test_it_is_told_once_whatever_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine dies after the epoch that tells of the first broken file, and once more before a
    manifest.
    """
    packed_stream(tmp_path / "in")
    run, manifest = EpochRunner.run, EpochRunner._manifest
    for name, dying in (("run", run), ("_manifest", manifest), ("", None)):

        def dies(self: Any, *arguments: Any, dying: Any = dying, name: Any = name) -> Any:
            found = dying(self, *arguments)
            if self.last.epoch >= 2:
                raise KeyboardInterrupt(name)
            return found

        with monkeypatch.context() as patch:
            if dying is not None:
                patch.setattr(EpochRunner, name, dies)
            with Engine(
                spark=False, checkpoint=tmp_path / "ck", letters=tmp_path / "out", epoch_rows=1
            ) as engine:
                engine.stream(S, tmp_path / "in", format="nt")
                engine.register(QUERY.text, name="all")
                engine.start(once=True)
                if dying is None:
                    engine.await_end()
                else:
                    with pytest.raises(Exception, match=name):
                        engine.await_end()
    record = read_status(tmp_path / "ck").streams[S]
    assert (record.elements, record.dead_letters) == (3, 2)
    assert sorted(letter["source"] for letter in letters(tmp_path / "out")) == [
        "2.nt.gz",
        "4.nt.zst",
    ]


def broken_tables(folder: Any) -> None:
    folder.mkdir()
    table(folder / "1.parquet", [1])
    (folder / "2.parquet").write_bytes(b"no Parquet")
    pq.write_table(pa.table({"other": [2], "ts": [2000]}), folder / "3.parquet")
    table(folder / "4.parquet", list(range(4, 2000)))
    data = bytearray((folder / "4.parquet").read_bytes())
    data[4:2000] = bytes(1996)  # the footer is whole
    (folder / "4.parquet").write_bytes(data)
    table(folder / "5.parquet", [2005])


def broken_csv(folder: Any) -> None:
    folder.mkdir()
    for i, text in enumerate(
        (
            "k,ts\n1,1000\n",
            "z,ts\n2,2000\n",
            "k,k,ts\n3,3,3000\n",
            "k\n4\n",
            "ts,k\n2005000,2005\n",
        ),
        1,
    ):
        (folder / f"{i}.csv").write_text(text)


@pytest.mark.parametrize(("make", "form"), [(broken_tables, "parquet"), (broken_csv, "csv")])
def test_tables_without_the_columns_or_that_are_none(tmp_path: Path, make: Any, form: str) -> None:
    make(tmp_path / "in")
    with Engine(spark=False, letters=tmp_path / "out") as engine:
        engine.stream("S", tmp_path / "in", format=form, schema="k:integer")
        query = engine.register(CQL, dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars(terms=True)["report"].to_list() == [1000, 2005000]
        assert engine._records()["S"].dead_letters == 3
    assert sorted(letter["source"][0] for letter in letters(tmp_path / "out")) == ["2", "3", "4"]


def test_the_first_file_and_a_single_one_are_wrong_uses(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("z,ts\n1,1000\n")
    (tmp_path / "in" / "2.csv").write_text("k,ts\n1,1000\n")
    for path in (tmp_path / "in", tmp_path / "in" / "1.csv"):
        with Engine(spark=False) as engine:
            engine.stream("S", path, schema="k:integer")
            engine.register(CQL, dialect="cql")
            with pytest.raises(SourceError, match="has no column k"):
                engine.start(once=True)
                engine.await_end()
