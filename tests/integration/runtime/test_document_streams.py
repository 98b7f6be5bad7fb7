"""Streams of documents, of blocks of lines and of JSON lines, end to end; the reference judges."""

import json
from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.errors import UsageError
from levada.testing.stream_builders import (
    write_documents,
    write_graphs,
    write_packed,
    write_rdf,
)
from support.generators import Clause
from support.query_dsl import S, element, judge, query, run, step

ELEMENTS = [element(500 * i, f"a{i % 3} p {i}", f"a{i % 3} q {i % 2}") for i in range(12)]
QUERIES = [
    query(
        "SELECT ?a ?n ?m",
        "WINDOW :w { ?a :p ?n ; :q ?m }",
        name="steps",
        windows={"w": (S, step(2000, 1000))},
    ),
    query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :p ?n }",
        name="range",
        windows={"w": (S, Clause("range", 800))},
        output="ISTREAM",
    ),
]
CUTS = pytest.mark.parametrize("epoch_rows", [1, 5, 1000])
FILENAME = r"filename:_(-?[0-9]+)"


def check(
    tmp_path: Path, path: Any, elements: Any = ELEMENTS, epoch_rows: int = 1000, **options: Any
) -> Any:
    got, engine = run(
        tmp_path / f"ck{epoch_rows}", {S: {"path": path, **options}}, QUERIES, epoch_rows=epoch_rows
    )
    judge(QUERIES, {S: elements}, got)
    return engine._records()[S]


@CUTS
@pytest.mark.parametrize("ending", [".ttl", ".trig.gz", ".rdf.zst", ".jsonld", ".jelly", ".nq.zst"])
def test_each_file_is_an_element(tmp_path: Path, ending: str, epoch_rows: Any) -> None:
    folder = write_documents(tmp_path / "d", ELEMENTS, ending)
    options = {"format": "nq", "element": "document"} if "nq" in ending else {}
    record = check(tmp_path, folder, epoch_rows=epoch_rows, time=FILENAME, **options)
    assert (record.elements, record.triples, record.dead_letters) == (12, 24, 0)


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_files_of_several_formats(tmp_path: Path, files: str) -> None:
    write_documents(tmp_path / "d", ELEMENTS[:6], ".ttl")
    for i, e in enumerate(ELEMENTS[6:]):
        write_rdf(tmp_path / "d" / f"1{i}_{e.ts}.{('trig', 'nt', 'jelly')[i % 3]}", e.triples)
    record = check(tmp_path, tmp_path / "d", format="turtle", time=FILENAME, files=files)
    assert record.elements == 12


@CUTS
@pytest.mark.parametrize("ending", ["trig", "jsonld.gz", "jelly", "nq"])
def test_each_graph_is_an_element(tmp_path: Path, ending: str, epoch_rows: Any) -> None:
    path = write_graphs(tmp_path / f"s.{ending}", ELEMENTS)
    record = check(tmp_path, path, epoch_rows=epoch_rows, time="graph", element="graph")
    assert (record.elements, record.triples) == (12, 24)


def test_each_subject_is_an_element_with_its_time(tmp_path: Path) -> None:
    at = '<http://e/at> "{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    elements = [element(500 * i, f"o{i} p {i}", f"o{i} q {i + 1}") for i in range(8)]
    timed = [
        type(e)(e.ts, (*e.triples, f"<http://e/o{i}> {at.format(e.ts)}"))
        for i, e in enumerate(elements)
    ]
    path = write_rdf(tmp_path / "s.ttl", [t for e in timed for t in e.triples])
    record = check(tmp_path, path, elements=timed, time="predicate:http://e/at", element="subject")
    assert (record.elements, record.triples) == (8, 24)


def test_from_to_and_limit_count_elements_within_documents(tmp_path: Path) -> None:
    write_graphs(tmp_path / "0.trig", ELEMENTS[:5])
    write_graphs(tmp_path / "1.trig", ELEMENTS[5:])
    for name in ("0", "1"):
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / f"{name}.trig").rename(tmp_path / "d" / f"{name}.trig")
    bounds = {"from": 1000, "to": 5500, "limit": 6}
    record = check(
        tmp_path, tmp_path / "d", ELEMENTS[2:8], 2, time="graph", element="graph", **bounds
    )
    assert record.elements == 6
    record = check(
        tmp_path, tmp_path / "d", ELEMENTS[:7], 3, time="graph", element="graph", limit=7
    )
    assert record.elements == 7


def test_a_malformed_document_is_dead_as_a_whole(tmp_path: Path) -> None:
    folder = write_documents(tmp_path / "d", ELEMENTS)
    bad = b"<http://e/a1> <http://e/p> 77 .\n<http://e/a1> oops .\n"
    write_packed(folder / "0005_2600.ttl.gz", bad)
    record = check(tmp_path, folder, time=FILENAME)
    assert (record.elements, record.dead_letters) == (12, 1)
    (letters,) = (tmp_path / "ck1000" / "dead-letter").iterdir()
    letter = json.loads(letters.read_text())
    assert (letter["source"], letter["offset"]) == ("0005_2600.ttl.gz", 32)
    assert (
        letter["reason"].startswith("Malformed document: line 2, column 15: ")
        and "oops" in letter["text"]
    )


@CUTS
def test_lines_between_blank_ones_are_an_element(tmp_path: Path, epoch_rows: Any) -> None:
    blocks = ["".join(f"{t} {e.ts} .\n" for t in e.triples) for e in ELEMENTS]
    text = "# comment\n\n" + "\n \t\n\n".join("# told\n" + block for block in blocks) + "\n# end\n"
    path = write_packed(tmp_path / "s.nt.zst", text.encode())
    record = check(tmp_path, path, epoch_rows=epoch_rows, element="blankline")
    assert (record.elements, record.triples) == (12, 24)


def test_a_block_with_two_times_is_dead_whole(tmp_path: Path) -> None:
    good = "".join(f"{t} {e.ts} .\n" for e in ELEMENTS for t in e.triples).replace(".\n<", ".\n<")
    blocks = ["".join(f"{t} {e.ts} .\n" for t in e.triples) for e in ELEMENTS]
    blocks.insert(
        3,
        "<http://e/a> <http://e/p> <http://e/b> 1600 .\n"
        "<http://e/a> <http://e/p> <http://e/c> 1700 .\n",
    )
    assert good
    (tmp_path / "s.nt").write_text("\n".join(blocks))
    record = check(tmp_path, tmp_path / "s.nt", element="blankline")
    assert (record.elements, record.dead_letters) == (12, 1)


@CUTS
def test_a_block_of_a_growing_file_waits_for_a_blank_line(tmp_path: Path, epoch_rows: Any) -> None:
    blocks = ["".join(f"{t} {e.ts} .\n" for t in e.triples) for e in ELEMENTS]
    whole = "\n".join(blocks)
    (tmp_path / "s.nt").write_text(whole[: len(whole) // 2])
    config = {S: {"path": tmp_path / "s.nt", "element": "blankline"}}
    # The first run ends in the middle of a block, which is read as one with --once; so it is cut at
    # a block here.
    half = "\n".join(blocks[:5]) + "\n"
    (tmp_path / "s.nt").write_text(half)
    first, _ = run(tmp_path / "ck", config, QUERIES, keep_open=True, epoch_rows=epoch_rows)
    (tmp_path / "s.nt").write_text(whole)
    second, _ = run(tmp_path / "ck", config, QUERIES, epoch_rows=epoch_rows)
    judge(
        QUERIES,
        {S: ELEMENTS},
        {q: [*first.get(q, []), *second.get(q, [])] for q in {*first, *second}},
    )


def test_what_makes_no_sense_is_refused() -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"format": "ttl"}, "carry no times"),
        ({"format": "trig", "time": "graph", "element": "blankline"}, "for lines"),
        ({"format": "ttl", "time": "graph"}, "need quads"),
        ({"format": "ndjson"}, "NDJSON needs a schema"),
        ({"format": "ttl", "time": "predicate:http://e/at", "element": "line"}, "more than a line"),
    )
    for options, says in wrong:
        with Engine(spark=False) as engine, pytest.raises(UsageError, match=says):
            engine.stream("s", "x", **options)


ROWS = [
    {"k": 1, "v": 1.5, "name": "a", "ok": True, "ts": 1000},
    {"ts": "1970-01-01T00:00:02Z", "name": "b\n\"c\"", "k": "2", "v": 2},
    {"k": 3, "v": None, "name": 7, "ok": False, "ts": 3000, "more": [1, {"x": 2}]},
]  # fmt: skip


@pytest.mark.parametrize("epoch_rows", [1, 2, 1000])
def test_json_lines_are_tuples(tmp_path: Path, epoch_rows: int) -> None:
    bad = [
        '{"k": 1',
        "[1]",
        "# no comment",
        '{"k": 1.5, "ts": 1000}',
        '{"k": 1}',
        '{"k": 1, "ok": "perhaps", "ts": 1}',
    ]
    lines = [json.dumps(row) for row in ROWS]
    text = "\n".join([bad[0], lines[0], "", bad[1], bad[2], lines[1], *bad[3:], "  ", lines[2]])
    write_packed(tmp_path / "s.jsonl.gz", text.encode())
    with Engine(spark=False, epoch_rows=epoch_rows) as engine:
        engine.stream(
            "S", tmp_path / "s.jsonl.gz", schema="k:integer;v:double;name:string;ok:boolean"
        )
        query = engine.register(
            "Istream(Select S.k, S.v, S.name, S.ok From S [Range 1 s])", dialect="cql"
        )
        engine.start(once=True)
        engine.await_end()
        x = "http://www.w3.org/2001/XMLSchema#"
        assert query.to_polars(terms=True).rows() == [
            (1000, f'"1"^^<{x}integer>', f'"1.5"^^<{x}double>', '"a"', f'"true"^^<{x}boolean>'),
            (2000, f'"2"^^<{x}integer>', f'"2"^^<{x}double>', '"b\\n\\"c\\""', None),
            (3000, f'"3"^^<{x}integer>', None, '"7"', f'"false"^^<{x}boolean>'),
        ]
        record = engine._records()["S"]
        assert (record.elements, record.dead_letters) == (3, 6)
        letters = [
            json.loads(line)
            for p in sorted((engine.root / "dead-letter").iterdir())
            for line in p.open()
        ]
    raw = text.encode()
    assert sorted(x["text"] for x in letters) == sorted(bad)
    assert all(raw[x["offset"] :].startswith(x["text"].encode()) for x in letters)
    assert {x["reason"].split(":")[0] for x in letters} == {
        "not a JSON object",
        "a JSON array, and NDJSON has an object on each line",
        "k is not an integer",
        "no time",
        "ok is not a boolean",
    }
