"""Mapping files: formulas, triples, what they refuse, and rows that become elements; CityBench's
files are the example.
"""

import json
from csv import writer
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyoxigraph as ox
import pytest

from levada.cli.help.sample_table import mapping_of
from levada.connectors.config.column_names import place_of
from levada.connectors.config.mapping_file import load_mapping
from levada.connectors.config.mapping_formula import compile_, names_of
from levada.connectors.config.row_mapping import RowMapping
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import AUTO
from levada.connectors.ingest.tables.schema_inference import sniff
from levada.connectors.sources.file_splitter import FILE_NUMBERS
from levada.engine.engine import Engine
from levada.errors import UsageError

X = "http://www.w3.org/2001/XMLSchema#"
CITYBENCH = Path(__file__).parents[4].parent / "shared" / "data" / "citybench" / "streams"


@pytest.mark.parametrize(
    ("formula", "kind", "values"),
    [
        ("a + 1", "integer", [1, 4, None]),
        ("-1 if a == 0 else 10 / a", "double", [-1.0, 10 / 3, None]),
        ("10 / a", "double", [None, 10 / 3, None]),
        ("a * 2.5 - b", "double", [-1.5, 7.5, None]),
        ("a == 0 or not (a < 3)", "boolean", [True, True, None]),
        ("replace(t, ' ', 'T')", "string", ["x|yTz", "", None]),
        ("part(t, '|', 1)", "string", ["y z", None, None]),
        ("upper(trim(t)) + '!'", "string", ["X|Y Z!", "!", None]),
        ("integer(b) + round(b)", "double", [3.0, 0.0, None]),
        ("either(double(t), 7)", "double", [7.0, 7.0, 7.0]),
        ("string(a) + '/' + string(a >= 0 and a <= 3)", "string", ["0/true", "3/true", None]),
    ],
)
def test_a_formula_is_columns(formula: str, kind: str, values: Any) -> None:
    frame = pl.DataFrame({"a": [0, 3, None], "b": [1.5, 0.0, None], "t": ["x|y z", "", None]})
    expression, found = compile_(formula, {"a": "integer", "b": "double", "t": "string"})
    assert found == kind
    assert frame.select(value=expression)["value"].to_list() == values


EDGES = [0, 1, -1, 2, 3037000499, 3037000500, -3037000500, 2**32, -(2**31), 10**18]
EDGES += [2**63 - 1, -(2**63), 2**63 - 2]


@pytest.mark.parametrize("sign", ["+", "-", "*"])
def test_an_integer_beyond_64_bits_is_no_value(sign: str) -> None:
    pairs = [(a, b) for a in EDGES for b in EDGES]
    expression, kind = compile_(f"a {sign} b", {"a": "integer", "b": "integer"})
    assert kind == "integer"
    frame = pl.DataFrame(pairs, schema={"a": pl.Int64(), "b": pl.Int64()}, orient="row")
    found = frame.select(x=expression)["x"].to_list()
    exact = [{"+": a + b, "-": a - b, "*": a * b}[sign] for a, b in pairs]
    assert found == [n if -(2**63) <= n < 2**63 else None for n in exact]


def test_constants_and_signs_do_not_wrap_either() -> None:
    frame = pl.DataFrame({"a": [2, -(2**63)]})
    for formula, values in (
        ("a * 9223372036854775807", [None, None]),
        ("2000000000 * 3 + a", [6000000002, 6000000000 - 2**63]),
        ("-a", [-2, None]),
    ):
        expression, _ = compile_(formula, {"a": "integer"})
        assert frame.select(x=expression)["x"].to_list() == values
    with pytest.raises(UsageError, match="more than 64 bits"):
        compile_("a * 9223372036854775808", {"a": "integer"})


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("a +", "not well-formed"),
        ("c + 1", "column 1: c is no column"),
        ("1 + eval('x')", "column 5: eval is no function"),
        ("a.b", "a.b is no column"),
        ("lower(a).b", "nothing that a formula has"),
        ("[a for a in b]", "nothing that a formula has"),
        ("replace(t, 'x')", "takes 3 values, not 2"),
        ("t - 1", "cannot be"),
        ("1 < a < 3", "nothing that a formula has"),
        ("a ** 2", "nothing that a formula has"),
        ("None", "nothing that a formula has"),
    ],
)
def test_a_wrong_formula_says_where(formula: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        compile_(formula, {"a": "integer", "t": "string", "b": "double"})


def test_a_formula_names_any_column() -> None:
    names = ["CO(GT)", "a b", "*", "^a.*$", "o'clock"]
    columns = dict.fromkeys(names, "string")
    frame = pl.DataFrame({name: [name] for name in names})
    for name in names:
        expression, _ = compile_(f"upper(column({name!r}))", columns)
        assert frame.select(x=expression)["x"].to_list() == [name.upper()]
    assert names_of("column('a b') + column(\"*\") + c") == ["a b", "*", "c"]
    with pytest.raises(UsageError, match=r"CO is no column. .*column\('CO\(GT\)'\)"):
        compile_("column('CO')", columns)
    with pytest.raises(UsageError, match="column is no function"):
        compile_("column(a)", {"a": "string"})


def test_the_names_of_a_formula() -> None:
    assert names_of("round(b) + a if b else part(c, '|', row)") == ["b", "a", "c", "row"]


MAPPING = """
prefixes: {e: "http://e/"}
columns: {v: integer, w: double}
let:
  ts: replace(at, ' ', 'T')
  ratio: -1 if v == 0 else w / v
triples:
  - <http://e/o/{row}/{id}> a e:Observation .
  - e:o{row} e:ratio {ratio}
  - e:o{row} e:note "{id} says \\"{v}\\""@en
  - <{link}> e:count "{v}"^^xsd:int
  - _:n{row} e:of _:x{id}
  - e:o{row} e:flag true
"""
ROWS = [
    ("a b", "0", "1.5", "http://e/l1", "1970-01-01 00:00:01"),
    ("é/\"\\", "4", "3", "", "1970-01-01 00:00:02.500"),
    ("bad link", "2", "", "no iri", "3000"),
]  # fmt: skip
EXPECTED = """
<http://e/o/0/a%20b> a e:Observation . e:o0 e:ratio "-1"^^x:double ;
  e:note "a b says \\"0\\""@en ; e:flag true .
<http://e/l1> e:count "0"^^x:int . _:n0 e:of _:xa .
<http://e/o/1/%C3%A9%2F%22%5C> a e:Observation .
  e:o1 e:ratio "0.75"^^x:double ;
  e:note "é/\\"\\\\ says \\"4\\""@en ; e:flag true .
_:n1 e:of _:xb .
<http://e/o/2/bad%20link> a e:Observation . e:o2 e:note "bad link says \\"2\\""@en ;
  e:flag true . _:n2 e:of _:xc .
"""
ALL = (
    "SELECT ?s ?p ?o FROM NAMED WINDOW <http://e/w> ON <http://e/s> [ALL] WHERE { "
    "WINDOW <http://e/w> { ?s ?p ?o } }"
)


def csv(rows: Any) -> str:
    def cell(text: Any) -> Any:
        return '"' + text.replace('"', '""') + '"' if '"' in text else text

    return "".join(",".join(map(cell, row)) + "\n" for row in rows)


def triples_of(tmp_path: Path, source: Any, epoch_rows: int = 1000, **options: Any) -> Any:
    """All triples of a mapped stream as a canonical data set, its counts, and its dead letters."""
    with Engine(spark=False, epoch_rows=epoch_rows) as engine:
        engine.stream("http://e/s", source, **options)
        query = engine.register(ALL.replace("SELECT", "REGISTER ISTREAM <http://e/q> AS SELECT"))
        engine.start(once=True)
        engine.await_end()
        lines = [" ".join(row[1:]) + " ." for row in query.to_polars(terms=True).rows()]
        folder = engine.root / "dead-letter"
        letters = [json.loads(line) for p in sorted(folder.glob("*")) for line in p.open()]
        record = engine._records()["http://e/s"]
    return dataset("\n".join(lines), ox.RdfFormat.N_TRIPLES), record, letters


def dataset(text: Any, form: Any = ox.RdfFormat.TURTLE) -> Any:
    found = ox.Dataset(ox.parse(text, form))
    found.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return found


@pytest.fixture
def mapping(tmp_path: Path) -> Any:
    (tmp_path / "m.yaml").write_text(MAPPING)
    return tmp_path / "m.yaml"


@pytest.mark.parametrize("epoch_rows", [1, 2, 1000])
@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_rows_become_triples(tmp_path: Path, mapping: Any, form: str, epoch_rows: int) -> None:
    names = ["id", "v", "w", "link", "at"]
    path = tmp_path / f"s.{form}"
    if form == "csv":
        path.write_text(",".join([*names, "more"]) + "\n" + csv((*row, "x") for row in ROWS))
    elif form == "ndjson":
        rows = [{k: v for k, v in zip(names, row, strict=True) if v} for row in ROWS]
        path.write_text("\n# dead, and not counted\n\n".join(map(json.dumps, rows)))
    else:
        frame = pl.DataFrame(ROWS, schema=names, orient="row").with_columns(
            pl.all().replace("", None)
        )
        frame.with_columns(pl.col("v").cast(pl.Int32), pl.col("w").cast(pl.Float64)).write_parquet(
            path
        )
    found, record, letters = triples_of(tmp_path, path, epoch_rows, mapping=mapping)
    expected = (
        "@prefix e: <http://e/> . @prefix x: <http://www.w3.org/2001/XMLSchema#> . " + EXPECTED
    )
    assert found == dataset(expected)
    assert (record.elements, record.triples) == (3, 15)
    malformed = [letter for letter in letters if "its triple is malformed" in letter["reason"]]
    assert len(malformed) == 1 and "<no iri>" in malformed[0]["text"]
    assert record.dead_letters == 1 + 2 * (form == "ndjson")


def test_rows_that_cannot_be_are_dead_with_their_records(tmp_path: Path, mapping: Any) -> None:
    text = "id,v,w,link,at\na,x,1,,5\nb,1,1,,never\nc,1\nd,1,1,,9000\n"
    (tmp_path / "s.csv").write_text(text)
    _, record, letters = triples_of(tmp_path, tmp_path / "s.csv", mapping=mapping)
    assert (record.elements, record.dead_letters) == (1, 3)
    assert [(x["offset"], x["text"]) for x in letters] == [
        (15, "a,x,1,,5"),
        (24, "b,1,1,,never"),
        (37, "c,1"),
    ]
    reasons = [x["reason"] for x in letters]
    assert (
        reasons[0].startswith("v is not an integer: x")
        and "never" in reasons[1]
        and "2 fields" in reasons[2]
    )


def test_a_value_that_is_an_iri_writes_no_triple_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("triples:\n  - <{link}> <http://e/p> <http://e/o>\n")
    evil = "http://e/x> <http://e/p> <http://e/mine> .\n<http://e/y"
    pl.DataFrame({"link": ["http://e/a", evil, "http://e/b"], "ts": [1, 2, 3]}).write_csv(
        tmp_path / "s.csv"
    )
    found, record, letters = triples_of(tmp_path, tmp_path / "s.csv", mapping=tmp_path / "m.yaml")
    assert found == dataset(
        "<http://e/a> <http://e/p> <http://e/o> . <http://e/b> <http://e/p> <http://e/o> ."
    )
    assert (record.triples, len(letters)) == (2, 1)


@pytest.mark.parametrize("files", ["sequence", "parallel"])
@pytest.mark.parametrize("epoch_rows", [1, 3, 1000])
def test_the_number_of_a_row_is_its_place_in_the_stream(
    tmp_path: Path, files: str, epoch_rows: int
) -> None:
    (tmp_path / "d").mkdir()
    for name, rows in (("a", 4), ("b", 5)):
        (tmp_path / "d" / f"{name}.csv").write_text("".join(f"{name},{i}\n\n" for i in range(rows)))
    (tmp_path / "m.yaml").write_text(
        "header: [f, i]\nlet: {ts: 1000 + integer(i)}\n"
        "triples: ['<http://e/{f}/{i}> <http://e/row> {row}']"
    )
    found, record, _ = triples_of(
        tmp_path, tmp_path / "d", epoch_rows, mapping=tmp_path / "m.yaml", files=files, lateness=10
    )
    numbers = {(q.subject.value, int(q.object.value)) for q in found}
    second = 4 if files == "sequence" else FILE_NUMBERS
    assert numbers == {
        (f"http://e/{f}/{i}", first + i) for f, n, first in (("a", 4, 0), ("b", 5, second))
        for i in range(n)
    }  # fmt: skip
    assert record.elements == 9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("triples: []", "has no triples"),
        ("triple: []", "triple is not an option. Did you mean triples"),
        ("triples: ['<http://e/a> e:b 1']", "the prefix e: is not declared"),
        ("triples: ['<http://e/a> <http://e/b>']", "has 2 terms"),
        ("triples: ['<http://e/a> <http://e/b> [ ]']", "column 26: no term begins here"),
        ("triples: ['\"x\" <http://e/b> 1']", "is no triple"),
        ("triples: ['<http://e/a> <http://e/b> {x}']\ncolumns: {x: int}", "int is no type"),
        (
            "triples: ['<http://e/a> <http://e/b> {x}']\nlet: {x: 1 +}",
            "let.x: the formula 1 \\+ is not well-formed",
        ),
        ("triples: ['<http://e/a> <http://e/b> {x}']\nlet: {x: y - 1}", "cannot be"),
        ("triples: ['<http://e/a> <http://e/b> {x}']\nlet: {row: 1}", "row is the number"),
        ("triples: {a: b}", "triples is a list"),
        ("a: [", "line 1, column"),
    ],
)
def test_a_wrong_mapping_says_where(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(UsageError, match=says) as error:
        load_mapping(tmp_path / "m.yaml")
    assert "m.yaml" in error.value.message


def test_a_mapping_is_for_tables(tmp_path: Path, mapping: Any) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"format": "nt"}, "a mapping is for"),
        ({"format": "csv", "schema": "k:integer"}, "columns, too"),
    )
    for options, says in wrong:
        with Engine(spark=False) as engine, pytest.raises(UsageError, match=says):
            engine.stream("s", tmp_path / "s", mapping=mapping, **options)


TRAFFIC = """
prefixes: {ssn: "http://purl.oclc.org/NET/ssnx/ssn#", sao: "http://purl.oclc.org/NET/sao/", t: "http://e/traffic/"}
columns: {avgSpeed: integer, vehicleCount: integer}
let:
  time: -1 if avgSpeed == 0 else 1030 / avgSpeed
  congestion: vehicleCount / 1030
triples:
  - t:{row}/speed a ssn:Observation
  - t:{row}/speed sao:hasValue {avgSpeed}
  - t:{row}/time sao:hasValue {time}
  - t:{row}/congestion sao:hasValue {congestion}
"""
LOCATION = """
header: [start, lon]
let:
  ts: 1406851200000 + 5000 * row
  user: part(start, "|", 0)
  lat: double(part(start, "|", 1))
  lon: double(lon)
triples:
  - <{user}> <http://e/at> _:place{row}
  - _:place{row} <http://e/lat> {lat}
  - _:place{row} <http://e/lon> {lon}
"""


@pytest.mark.skipif(
    not CITYBENCH.is_dir(), reason="CityBench is not there: ../shared/data/citybench is absent"
)
@pytest.mark.parametrize(
    ("file", "text", "options", "rows"),
    [
        ("AarhusTrafficData158505", TRAFFIC, {"time": "field:TIMESTAMP", "limit": 300}, 300),
        ("UserLocationService", LOCATION, {}, None),
    ],
)
def test_citybench(tmp_path: Path, file: str, text: Any, options: Any, rows: Any) -> None:
    (tmp_path / "m.yaml").write_text(text)
    path = CITYBENCH / f"{file}.stream"
    found, record, letters = triples_of(
        tmp_path, path, mapping=tmp_path / "m.yaml", format="csv", **options
    )
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert letters == [] and record.elements == (rows or len(lines))
    values = [(q.subject, q.predicate.value, q.object.value) for q in found]
    if file.startswith("Aarhus"):
        speeds = [int(line[2]) for line in lines[1:301]]
        times = {s.value: float(o) for s, _, o in values if s.value.endswith("/time")}
        assert times == {
            f"http://e/traffic/{i}/time": 1030 / v if v else -1.0 for i, v in enumerate(speeds)
        }
        assert record.triples == 1200
    else:
        assert {float(o) for _, p, o in values if p.endswith("lon")} == {
            float(line[1]) for line in lines
        }
        assert {s.value for s, p, _ in values if p == "http://e/at"} == {
            line[0].split("|")[0] for line in lines
        }
        assert record.triples == 3 * len(lines)


NAMES = [
    *("PM2.5", "spora-id", "CO(GT)", "Type of mobile", "humidity_%", "a,b", "a:b", "x #y", "é"),
    *("*", "^a$", 'q"q', "a{b", "a}b", "a<b>", "back\\slash", "o'clock", "two  blanks"),
]


def test_a_column_of_any_name_stands_in_every_kind_of_term(tmp_path: Path) -> None:
    lines, expected = [], []
    for i, name in enumerate(NAMES):
        place = place_of(name)
        within = place.replace("\\", "\\\\").replace('"', '\\"')
        lines += [
            f"<http://e/{place}> e:p{i}{place} {place}",
            f"_:n{place} e:p <{place}>",
            f'<http://e/{i}> e:p "{within} km"@en .',
        ]
        value, quoted = f"http://v/{i}", f"http%3A%2F%2Fv%2F{i}"
        expected += [
            f'<http://e/{quoted}> <http://e/p{i}{quoted}> "{value}" .',
            f"_:n{i} <http://e/p> <{value}> .",
            f'<http://e/{i}> <http://e/p> "{value} km"@en .',
        ]
    path = tmp_path / "map.yaml"
    path.write_text(json.dumps({"prefixes": {"e": "http://e/"}, "triples": lines}))
    with (tmp_path / "a.csv").open("w", newline="") as file:
        rows = [["ts", *NAMES], ["1", *(f"http://v/{i}" for i in range(len(NAMES)))]]
        writer(file).writerows(rows)
    found, _, letters = triples_of(tmp_path, tmp_path / "a.csv", mapping=path)
    assert not letters
    assert found == dataset("\n".join(expected))


SUMS = """SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?sum)
FROM NAMED WINDOW <http://e/w> ON <http://e/s> [RANGE PT1H STEP PT1H]
WHERE { WINDOW <http://e/w> { ?row <http://example.org/a#k> ?k ; <http://example.org/a#v> ?v } }"""


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_the_mapping_of_sample_keeps_the_rows_of_two_files_apart(
    tmp_path: Path, files: Literal["sequence", "parallel"]
) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name, first in (("a", 0), ("b", 60)):
        rows = "".join(f"k{i % 3},{i},{1000 + i}\n" for i in range(first, first + 60))
        (folder / f"{name}.csv").write_text("k,v,ts\n" + rows)
    path = folder / "a.csv"
    sampled = sniff(str(path), StreamConfig("a", str(path), "csv", schema=AUTO))
    (tmp_path / "m.yaml").write_text(mapping_of(sampled, path))
    with Engine(spark=False, epoch_rows=25) as engine:
        engine.stream("http://e/s", folder, mapping=tmp_path / "m.yaml", files=files)
        query = engine.register(SUMS)
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars().select("n", "sum").rows() == [(120, sum(range(120)))]


def test_the_mapping_of_sample_reads_messages_with_the_line_in_its_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k,the value,ts\nx,1,1000\n")
    sampled = sniff(str(path), StreamConfig("a", str(path), "csv", schema=AUTO))
    lines = mapping_of(sampled, path).splitlines()
    (comment,) = (line for line in lines if "add: header:" in line)
    assert load_text(tmp_path, lines).header == ()
    added = comment.partition("add: ")[2]
    assert load_text(tmp_path, [*lines, added]).header == ("k", "the value", "ts")


def load_text(tmp_path: Path, lines: list[str]) -> RowMapping:
    (tmp_path / "m.yaml").write_text("\n".join(lines))
    return load_mapping(tmp_path / "m.yaml")
