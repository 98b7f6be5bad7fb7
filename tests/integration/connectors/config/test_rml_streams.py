"""A file of RML or YARRRML is the mapping of a stream: files of tables, documents, lines, and joins
with static tables.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.config.mapping_file import load_mapping
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.rml.table_joins import join_table
from levada.engine.engine import Engine
from levada.errors import SourceError, UsageError

QUERY = """REGISTER ISTREAM <http://e/q> AS SELECT ?s ?p ?o
FROM NAMED WINDOW <http://e/w> ON <http://e/in> [RANGE PT1H STEP PT1H]
WHERE { WINDOW <http://e/w> { ?s ?p ?o } }
"""
HEAD = """@prefix rml: <http://w3id.org/rml/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <http://e/> .
"""
CSV = """
:m rml:logicalSource [ rml:source "in.csv" ; rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "http://e/{id}" ] ;
  rml:predicateObjectMap
    [ rml:predicate :v ; rml:objectMap [ rml:reference "v" ; rml:datatype xsd:integer ] ] ,
    [ rml:predicate :on ; rml:objectMap [ rml:parentTriplesMap :floors ;
        rml:joinCondition [ rml:child "floor" ; rml:parent "$.id" ] ] ] .
:floors rml:logicalSource [ rml:source "floors.json" ; rml:referenceFormulation rml:JSONPath ;
    rml:iterator "$[*]" ] ; rml:subjectMap [ rml:template "http://e/floor/{$.level}" ] .
"""
JSON = """
:m rml:logicalSource [ rml:source "in.json" ; rml:referenceFormulation rml:JSONPath ITERATOR ] ;
  rml:subjectMap [ rml:template "http://e/{$.id}" ] ;
  rml:predicateObjectMap [ rml:predicate :v ; rml:objectMap [ rml:reference "$.v[*]" ] ] ,
    [ rml:predicate :n ; rml:objectMap [ rml:termType rml:BlankNode ] ] .
"""
YAML = """
prefixes: {e: "http://e/"}
mappings:
  m:
    sources: [["in.csv~csv"]]
    s: http://e/$(id)
    po:
      - [e:name, $(v), en~lang]
      - p: e:upper
        o: {function: grel:toUpperCase, parameters: [[grel:valueParameter, $(v)]]}
"""
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


def triples_of(source: Path, **options: Any) -> tuple[set[str], list[dict[str, Any]]]:
    """The triples of the rows of a file, and its dead letters."""
    with Engine(spark=False) as engine:
        engine.stream("http://e/in", source, **options)
        query = engine.register(QUERY)
        engine.start(once=True)
        engine.await_end()
        lines = {" ".join(row[1:]) for row in query.to_polars(terms=True).rows()}
        folder = engine.root / "dead-letter"
        letters = [json.loads(line) for p in sorted(folder.glob("*")) for line in p.open()]
    return lines, letters


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    """The mapping of rows of CSV, with the table that it joins."""
    (tmp_path / "m.ttl").write_text(HEAD + CSV)
    (tmp_path / "floors.json").write_text('[{"id": "f1", "level": 1}, {"id": "f2", "level": 2}]')
    return tmp_path / "m.ttl"


def test_rows_of_csv_and_joins_with_a_table_are_triples(tmp_path: Path, mapping: Path) -> None:
    (tmp_path / "in.csv").write_text("id,v,floor,ts\na,1,f1,5\nb,x,f2,6\nc,3,f9,7\n")
    lines, letters = triples_of(tmp_path / "in.csv", mapping=mapping)
    assert lines == {
        f'<http://e/a> <http://e/v> "1"{INTEGER}',
        "<http://e/a> <http://e/on> <http://e/floor/1>",
        "<http://e/b> <http://e/on> <http://e/floor/2>",
        f'<http://e/c> <http://e/v> "3"{INTEGER}',
    }
    (letter,) = letters
    assert "it is not a xsd:integer" in letter["reason"] and '"x"' in letter["text"]


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_values_of_json_are_triples_with_their_datatypes(tmp_path: Path, form: str) -> None:
    iterator = '; rml:iterator "$.rooms[*]"'
    (tmp_path / "m.ttl").write_text(HEAD + JSON.replace("ITERATOR", iterator))
    rooms: list[dict[str, Any]] = [
        {"id": "a", "v": [1, "x"], "ts": 5}, {"id": "b", "v": [], "ts": 6},
        {"id": "c", "v": [{}], "ts": 7},
    ]  # fmt: skip
    document = {"rooms": rooms}
    path = tmp_path / f"in.{form}"
    path.write_text(json.dumps(document, indent=2 if form == "json" else None) + "\n")
    lines, letters = triples_of(path, mapping=tmp_path / "m.ttl")
    values = {line for line in lines if " <http://e/v> " in line}
    assert values == {f'<http://e/a> <http://e/v> "1"{INTEGER}', '<http://e/a> <http://e/v> "x"'}
    assert len({line.split()[2] for line in lines - values}) == 3, "a blank node for each row"
    (letter,) = letters
    assert "$.v[*] is an array or an object" in letter["reason"] and "rooms[2]" in letter["reason"]


def test_a_mapping_may_have_graphs(tmp_path: Path) -> None:
    text = JSON.replace("ITERATOR", "").replace('{$.id}" ]', '{$.id}" ; rml:graph :g ]')
    (tmp_path / "m.ttl").write_text(HEAD + text)
    (tmp_path / "in.ndjson").write_text('{"id": "a", "v": ["x"], "ts": 5}\n')
    lines, letters = triples_of(tmp_path / "in.ndjson", mapping=tmp_path / "m.ttl")
    assert '<http://e/a> <http://e/v> "x"' in lines and letters == []
    assert StreamConfig.from_options("s", "a.ndjson", mapping=tmp_path / "m.ttl").quads


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_yarrrml_is_a_mapping(tmp_path: Path, form: str) -> None:
    import polars as pl

    (tmp_path / "m.yml").write_text(YAML)
    table = pl.DataFrame({"id": ["a"], "v": ["x"], "ts": [5]})
    path = tmp_path / f"in.{form}"
    table.write_csv(path) if form == "csv" else table.write_parquet(path)
    lines, letters = triples_of(path, mapping=tmp_path / "m.yml")
    name, upper = '<http://e/a> <http://e/name> "x"@en', '<http://e/a> <http://e/upper> "X"'
    assert (lines, letters) == ({name, upper}, [])


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (HEAD + CSV.replace("floors.json", "in.csv").replace("JSONPath", "CSV")
         .replace('rml:iterator "$[*]"', "").replace("$.", ""), "m.ttl", "with itself"),
        (HEAD + CSV + CSV.partition(":floors rml")[0].replace(":m", ":n").replace("in.", "b."),
         "m.ttl", "several sources: in.csv, b.csv"),
        (HEAD + JSON.replace("JSONPath", "XPath").replace("ITERATOR", '; rml:iterator "/a"'),
         "m.ttl", "not a format of streams"),
        (HEAD + JSON.replace("ITERATOR", "").replace("$.v[*]", "$..v"), "m.ttl", "line 7"),
        ('mappings: {m: {sources: [["a.csv~csv"]], s: "e:\\uD800", po: [[a, e:C]]}}', "m.yml",
         "surrogate"),
        ("mappings: {m: 5}", "m.yml", "not YARRRML that can be translated"),
        ("mappings: {m: {sources: [['in.csv~csv']], s: 'a b', po: []}}", "m.yml", "m.yml"),
        ("a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
         "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n"
         "mappings: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d, *d, *d, *d, *d]", "m.yml", "values"),
        ("mappings: !!python/object/apply:os.system ['true']", "m.yml", "line 1"),
    ],
)  # fmt: skip
def test_a_wrong_mapping_is_refused_when_it_is_loaded(
    text: str, name: str, said: str, mapping: Path
) -> None:
    path = mapping.parent / name
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_mapping(path)
    assert said in str(error.value)


def test_a_mapping_is_of_the_format_of_its_stream(mapping: Path) -> None:
    with pytest.raises(UsageError, match=r"not those of NDJSON.*rml:JSONPath"):
        StreamConfig.from_options("s", "in.ndjson", mapping=mapping)


def test_a_table_that_has_changed_is_not_joined(mapping: Path) -> None:
    (join,) = load_mapping(mapping).joins
    assert join_table(join).height == 2
    join_table.cache_clear()
    (mapping.parent / "floors.json").write_text("[]")
    with pytest.raises(SourceError, match="has changed"):
        join_table(join)
