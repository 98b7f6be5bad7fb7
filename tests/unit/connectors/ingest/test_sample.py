"""``levada sample``: the option and the mapping that it prints read the file that was sampled, as
its reader reads it.
"""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from levada.cli.argument_parsing import parse_stream
from levada.cli.help.sample_table import mapping_of, option
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import AUTO
from levada.connectors.ingest.tables.mapped_rows import mapped_of
from levada.connectors.ingest.tables.schema_inference import InferredSchema, sniff, with_columns
from levada.connectors.ingest.tables.tuple_rows import Tuples, tuples_of
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.source_reader import FileReader
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MAX, MIN
from levada.errors import SourceError

ROOT = Path(__file__).parents[4]
SHARED = ROOT.parent / "shared"
ENDINGS = ("*.csv", "*.ndjson", "*.tsv")
BOUNDS: dict[str, Any] = {"late_below": MIN, "future_above": MAX}
FILES = {
    "trips.csv": "line;km;left\nU4;1.5;31.01.2024 09:00\nS1;12;31.01.2024 09:05\n",
    "secs.csv": "timestamp,v\n1554085919,1\n1554085920,2\n",
    "us.ndjson": '{"at": 1554085919000000, "v": 1.5}\n{"at": 1554085920000000, "v": 2}\n',
    "tabs.tsv": "Zeit\tk\tv\n31.01.2024, 09:00:00\t1\t2\n01.02.2024, 09:00:00\t1\t2\n",
    "air.csv": "Date;Time;CO(GT);PM2.5;;\n10/03/2004;18.00.00;2,6;1;;\n11/03/2004;19.00.00;2;3;;\n",
    "names.csv": 'ts,,Créateur,humidity_%, temp ,"a,b",row,"q""q",a:b,a{b,x #y,*,^a$,"l\nl"\n'
    "1000,x,Zoé,40,1.5,7,r,1,2,3,4,5,6,7\n2000,y,é,41,2.5,8,s,1,2,3,4,5,6,7\n",
    "twice.csv": "t,v,v,v_1,,column_5\n2024-03-01,1,2,3,,x\n2024-03-02,4,5,6,7,y\n",
    "pandas.csv": ",v\n2024-03-01 12:00:00,1\n2024-03-01 12:04:00,2\n",
    "years.csv": "at,v\n31.01.24 09:00,1\n1.2.24 09:00,2\n",
    "months.csv": "month,v\nJan 2024,1\nFeb 2024,2\n",
    "no_times.csv": "k,v\na,1\nb,2\n",
    "odd names.ndjson": '{"ts": 1, "PM2.5": 3, "a b": "x", "c:d": 1, "": 5}\n{"ts": 2}\n',
    "nested.ndjson": '{"at": {"ts": 1554085919000}, "p": {"t": 1.5, "u": {"k": "C", "x.y": "a"}}}\n'
    '{"at": {"ts": 1554085920000}, "p": {"t": 2, "u": 7, "v": [1]}}\n',
    "dots.ndjson": '{"ts": 1, "a.b": 1, "a": {"b": "x", "": 2, "[0]": 3, "\'\\\\": 4}}\n',
}


def found_in(path: Path) -> InferredSchema:
    form = "ndjson" if path.suffix == ".ndjson" else "csv"
    return sniff(str(path), StreamConfig("s", str(path), form, "field:ts", schema=AUTO))


def chunks(config: StreamConfig, folder: Path) -> list[tuple[Any, FileSplit]]:
    source = FileSource(config, folder)
    source.discover(True)
    references, _ = source.take({}, 10**6)
    found = []
    for reference in references:
        rows = FileReader().read(reference, config).rows
        assert isinstance(rows, CsvChunk | JsonChunk)
        found.append((rows, reference))
    return found


def rows_by_module(path: Path, separator: str) -> list[dict[str, Any]]:
    """The rows by the modules ``csv`` and ``json``: values by the place of their columns."""
    text = path.read_text("utf-8-sig")
    if path.suffix == ".ndjson":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    header, *rows = (row for row in csv.reader(text.splitlines(True), delimiter=separator) if row)
    return [dict(zip(header, row, strict=False)) for row in rows]


def check(path: Path, folder: Path) -> None:
    """Reads a file by the schema and by the mapping that are proposed for it."""
    try:
        found = found_in(path)
    except SourceError:  # of which nothing is proposed
        return
    rows = rows_by_module(path, found.separator)
    assert found.texts is not None
    config = parse_stream(option(found, path))
    read = [tuples_of(c, config, r, **BOUNDS) for c, r in chunks(config, folder)]
    dead = [letter for part in read for letter in part.dead]
    assert sum(part.n for part in read) + len(dead) == len(rows)
    lines = mapping_of(found, path).splitlines()
    target = folder / "map.yaml"
    target.write_text("\n".join(lines))
    (words,) = shlex.split(lines[0].removeprefix("# --stream "))
    words = words.replace("THIS_FILE", str(target))
    mapped = parse_stream(words)
    parts = [mapped_of(c, mapped, r, seed=1, **BOUNDS) for c, r in chunks(mapped, folder)]
    assert [letter for _, elements in parts for letter in elements.dead] == dead
    times = {time for elements in read for time in elements.ts.tolist()}
    assert times == {time for _, elements in parts for time in elements.ts.tolist()}
    assert values(read, config) <= {
        triples.text(triples.o, i) for triples, _ in parts for i in range(triples.n)
    }
    columns = {triples.text(triples.p, i) for triples, _ in parts for i in range(triples.n)}
    filled = [n for n in found.types if n not in ("", "row") and found.texts[n].count()]
    assert len(columns) == len(filled)


def values(read: list[Tuples], config: StreamConfig) -> set[str]:
    """The strings of tuples as N-Triples has them."""
    return {
        f'"{text}"'
        for part in read
        for name, kind in config.schema
        if name != "row"  # which a mapping has for the number of the record
        for text in (part.columns[name].text if kind == "string" else [])
        if text is not None and not set(text) & set('"\\\\\n\r')
    }


@pytest.mark.parametrize("name", FILES)
def test_what_is_proposed_for_a_file_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.write_text(FILES[name])
    check(path, tmp_path)


def files() -> list[Path]:
    folders = [ROOT / "tests", SHARED / "data", SHARED / "cases"]
    return sorted(path for folder in folders for end in ENDINGS for path in folder.rglob(end))


@pytest.mark.long
@pytest.mark.parametrize("path", files(), ids=str)
def test_what_is_proposed_for_a_file_of_the_tests_reads_it(path: Path, tmp_path: Path) -> None:
    check(path, tmp_path)


ORDERS = [
    {
        "id": 7, "shop": {"k": "a"}, "ts": 1000,
        "items": [{"id": 1, "price": {"eur": 1.5}}, {"id": 2}],
    },
    {"id": 8, "ts": 2000, "items": []},
]  # fmt: skip


@pytest.mark.parametrize("form", ["ndjson", "json"])
def test_the_columns_of_elements_and_of_their_records_are_proposed(
    tmp_path: Path, form: str
) -> None:
    path = tmp_path / f"orders.{form}"
    lines = "\n".join(map(json.dumps, ORDERS))
    path.write_text(lines if form == "ndjson" else json.dumps({"all": ORDERS}, indent=1))
    iterator = "items[*]" if form == "ndjson" else "all[*].items[*]"
    config = StreamConfig.from_options("s", path, format=form, schema=AUTO, iterator=iterator)
    inferred = sniff(str(path), config)
    names = "record.id" if form == "ndjson" else "all.id"
    assert list(inferred.types) == ["id", "price.eur", names, "shop.k", "ts"]
    config = parse_stream(option(inferred, path, iterator))
    parts = [tuples_of(c, config, r, **BOUNDS) for c, r in chunks(config, tmp_path / "scratch")]
    (rows,) = parts
    assert rows.ts.tolist() == [1000, 1000] and not rows.dead
    assert rows.columns["id"].facet("m").tolist() == [1, 2]
    assert rows.columns[names].facet("m").tolist() == [7, 7]
    (words,) = shlex.split(mapping_of(inferred, path, iterator).splitlines()[0][11:])
    assert f"iterator={iterator}" in words


def test_a_document_is_examined_by_its_first_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + ",\n".join(f'{{"ts": {i}, "a": {{"b": "{i}"}}}}' for i in range(9)) + "]")
    config = StreamConfig.from_options("s", path, schema=AUTO)
    assert with_columns(config).schema == (("ts", "integer"), ("a.b", "string"))
    path.write_text('{"ts": 1}\n{"ts": 2}\n')
    with pytest.raises(SourceError, match="not a JSON document") as error:
        with_columns(config)
    assert "format=ndjson" in error.value.hint
