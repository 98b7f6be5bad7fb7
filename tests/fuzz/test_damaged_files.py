"""Damaged files of every format: the engine goes on, sound neighbours are read, every element is
counted, and whatever is refused is refused with a sentence.
"""

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mutate import cases, mutated

from levada.connectors.config.input_formats import LINES, RDF
from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import document_chunks
from levada.connectors.ingest.static_files import check_sound, static_file
from levada.engine.engine import Engine
from levada.errors import SourceError, UsageError
from levada.testing.stream_builders import write_rdf

BATCH = 50
FORMS = ("nt", "nq", "ttl", "trig", "rdf", "jsonld", "jelly", "csv", "ndjson", "json", "parquet")
TABLES = ("csv", "ndjson", "json", "parquet")
ERROR = re.compile("[a-z]Error|PanicException|Traceback")  # what is no sentence
OF_RANGE = re.compile(r"The file ([^/]*|.*\.parquet) of the stream S cannot be read")
OF_FILE = re.compile("The (file|header|column|name) ")
ROWS = 12  # elements of a file of lines or rows

TURTLE = b"""@prefix : <http://e/> . # [ a comment (
:a :p [ :q "x", 'y'@en, \"\"\"long "[" \\" text\"\"\" ; :r ( 1 2.5 true [] ) ] ; a :C .
<#b> :p "1"^^<http://www.w3.org/2001/XMLSchema#integer>, _:b .
"""
SEEDS = {
    "ttl": TURTLE,
    "trig": TURTLE + b":g { :a :p [ :q ( :b ) ] } GRAPH _:g { :b :p 1 }",
    "rdf": b"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ <!ENTITY e "http://e/"> <!ENTITY f "&e;f"> ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<e:C rdf:about="&e;a" e:q="&f;"><e:p rdf:parseType="Collection"><e:D/><e:D rdf:nodeID="x"/></e:p>
<e:r rdf:parseType="Literal"><b>x</b></e:r><!-- > -->\
<e:s xml:lang="en"><![CDATA[<x>]]></e:s></e:C></rdf:RDF>""",
    "jsonld": b"""{"@context": {"e": "http://e/", "p": {"@id": "e:p", "@type": "@id"}, \
"l": {"@id": "e:l", "@container": "@list"}},
"@id": "e:a", "@graph": [{"@id": "e:b", "p": ["e:c", {"@id": "_:x"}], \
"l": [1, 2.5, true, "\\u00e9"], "@type": "e:C",
"e:q": {"@value": "x", "@language": "en"}, "@reverse": {"e:r": {"@id": "e:d"}}}]}""",
}  # fmt: skip


def line(form: str, k: int) -> str:
    ts = 1000 + k
    return {
        "nt": f'<http://e/a> <http://e/p> "v {k}\\n"@en {ts} .\n',
        "nq": (
            f'_:b{k} <http://e/p> "{k}"^^<http://www.w3.org/2001/XMLSchema#integer> '
            f"<http://e/g> {ts} .\n"
        ),
        "csv": f'{k},"a ""b"", {k}",{ts}\n',
        "ndjson": json.dumps({"k": k, "v": f"a {k}", "ts": ts}) + "\n",
    }[form]


def sound(form: str, folder: Path) -> bytes:
    """A file of the format, as bytes."""
    path = folder / f"seed.{form}"
    if form in SEEDS:
        return SEEDS[form]
    if form == "jelly":
        write_rdf(path, [f'<http://e/a{i % 3}> <http://e/p> "{i}"@en' for i in range(9)])
        return path.read_bytes()
    if form == "parquet":
        rows = {"k": range(ROWS), "v": [f"a {i}" for i in range(ROWS)], "ts": [1000] * ROWS}
        pq.write_table(pa.table({n: list(v) for n, v in rows.items()}), path, row_group_size=5)
        return path.read_bytes()
    if form == "json":
        members = [{"k": k, "p": {"v": f'a "{k}"'}, "ts": 1000} for k in range(ROWS)]
        return json.dumps(
            {"rows": members, "n": [1e5, -0, True, "\ud83d\ude00"]}, indent=1
        ).encode()
    head = "k,v,ts\n" if form == "csv" else ""
    return (head + "".join(line(form, k) for k in range(ROWS))).encode()


def options(form: str) -> dict[str, Any]:
    if form == "json":
        return {"iterator": "rows[*]", "schema": "k:integer;p.v:string", "lateness": "1h"}
    if form in TABLES:
        return {"format": form, "schema": "k:integer;v:string", "lateness": "1h"}
    if form in ("nt", "nq"):
        return {"format": form, "lateness": "1h"}
    return {"format": form, "time": "filename:_([0-9]+)"}


def run(root: Path, folder: Path, form: str) -> tuple[Any, int, list[Any]]:
    """A stream's record, how many elements were given out, and the dead letters."""
    with Engine(spark=False, letters=root, epoch_rows=97, partitions=1) as engine:
        engine.stream("S", folder, **options(form))
        if form in TABLES:
            engine.register("Istream(Select k From S [Now])", dialect="cql")
        else:
            engine.register(
                "SELECT ?o FROM NAMED WINDOW <w> ON <S> [RANGE 1s STEP 1s] WHERE { "
                "WINDOW <w> { ?s <http://e/p> ?o } }"
            )
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None
        taken = engine._driver.last.positions["S"]["taken"]
        record = engine._records()["S"]
    found = sorted((root / "dead-letter").glob("*")) if (root / "dead-letter").exists() else []
    letters = [json.loads(text) for path in found for text in path.read_bytes().splitlines()]
    return record, taken, letters


def check_told(folder: Path, form: str, record: Any, taken: int, letters: list[Any]) -> None:
    """Every element is read, late or dead, and every refusal is a sentence about its file."""
    assert record.dead_letters == len(letters)
    for letter in letters:
        reason = letter["reason"]
        assert len(reason.split()) > 1 and "\n" not in reason, letter
        assert not ERROR.search(reason), letter
        assert (folder / letter["source"]).exists(), letter
    files = sorted(folder.iterdir())
    told = record.elements + record.dead_letters + record.late
    if form in SEEDS or form == "jelly":
        assert told == len(files) - sum(says_nothing(path, form) for path in files), letters
        return
    assert record.elements >= 2 * ROWS, "what is sound is read"
    if form == "json":
        return  # the driver does not count the rows of a document
    of_files = sum(bool(OF_FILE.match(letter["reason"])) for letter in letters)
    # a range that a task cannot read is one letter for all its elements
    if not any(OF_RANGE.match(letter["reason"]) for letter in letters):
        slack = sum(more_to_tell(path.read_bytes(), form) for path in files)
        assert taken <= told - of_files <= taken + slack, (record, taken, letters)


def more_to_tell(data: bytes, form: str) -> int:
    """What the driver does not count as elements and a task tells of: lines that end in a carriage
    return alone, and what would be a comment elsewhere.
    """
    if form in LINES:
        return data.count(b"\r")
    return sum(line.lstrip()[:1] == b"#" for line in data.split(b"\n")) if form == "ndjson" else 0


def says_nothing(path: Path, form: str) -> bool:
    """Whether a document is sound and has no statement, or no byte: it is no element."""
    try:
        return not path.stat().st_size or not b"".join(
            document_chunks(lambda: path.open("rb"), form, "http://e/")
        )
    except Malformed:
        return False


def check_static(path: Path) -> None:
    """As static data it is read, or refused with a sentence that names it."""
    try:
        check_sound(static_file(str(path)))
    except (SourceError, UsageError) as error:
        assert str(path) in str(error) and "\n" not in str(error)
        assert not ERROR.search(str(error)), error


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_damaged_files(tmp_path: Path, seed: int, form: str) -> None:
    count = cases("files", len(FORMS))
    whole = sound(form, tmp_path)
    for first in range(0, count, BATCH):
        names = [f"{k:06}_{1000 + k}.{form}" for k in range(first, min(first + BATCH, count))]
        root = tmp_path / str(first)
        folder = root / "in"
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_bytes(mutated(seed, name, whole))
        for name in (f"+_1.{form}", f"9_{2000 + count}.{form}"):
            (folder / name).write_bytes(whole)
        told = f"LEVADA_SEED={seed}, files {names[0]} to {names[-1]}"
        try:
            check_told(folder, form, *run(root / "out", folder, form))
            if form in RDF:
                for name in random.Random(f"{seed} {first}").sample(names, min(10, len(names))):
                    check_static(folder / name)
        except BaseException as error:
            error.add_note(told)
            raise
