"""Damaged mappings of RML and YARRRML, and damaged files that they name: each is mapped or refused
with a sentence, and no quad is ill-formed.
"""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
from mutate import cases, mutated

from levada.connectors.config.rml.mapping_file import load_triples_maps
from levada.connectors.ingest.rml.map_files import FileMapper
from levada.errors import LevadaError

MAPPING = """@prefix rml: <http://w3id.org/rml/> .
@prefix grel: <http://users.ugent.be/~bjdmeest/function/grel.ttl#> .
@prefix : <http://e/> .
:m rml:logicalSource [ rml:source [ rml:path "a.csv" ; rml:null "-" ] ;
    rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "http://e/{id}" ; rml:class :C ; rml:graph :g ] ;
  rml:predicateObjectMap [ rml:predicate :p ; rml:objectMap
    [ rml:template "\\\\{{v}" ; rml:termType rml:Literal ] ,
    [ rml:reference "v" ; rml:languageMap [ rml:reference "w" ] ] ,
    [ rml:functionExecution [ rml:function grel:toUpperCase ; rml:input
      [ rml:parameter grel:valueParameter ; rml:inputValueMap [ rml:reference "v" ] ] ] ] ,
    [ rml:parentTriplesMap :n ; rml:joinCondition [ rml:child "id" ; rml:parent "$.id" ] ] ] .
:n rml:logicalSource [ rml:source "b.json" ; rml:referenceFormulation rml:JSONPath ;
    rml:iterator "$.all[*]" ] ;
  rml:subjectMap [ rml:reference "$.iri" ; rml:termType rml:IRI ] ;
  rml:predicateObjectMap [ rml:predicate :q ; rml:objectMap [ rml:reference "$.v[*]" ] ] .
:x rml:logicalSource [ rml:source "c.xml" ; rml:referenceFormulation rml:XPath ;
    rml:iterator "/all/r" ] ;
  rml:subjectMap [ rml:template "{@id}" ; rml:termType rml:BlankNode ] ;
  rml:predicateObjectMap [ rml:predicate :r ; rml:objectMap [ rml:reference "v/text()" ] ] .
"""
YARRRML = """prefixes: {e: "http://e/"}
mappings:
  m:
    sources: [["a.csv~csv"]]
    s: http://e/$(id)
    po:
      - [a, e:C]
      - p: e:q
        o: {value: $(v), datatype: e:d}
"""
FILES = {
    "a.csv": b'id,v,w\n1,"a ""b""",en\n2,-,de\n3,\xc3\xa9,x\n',
    "b.json": b'{"all": [{"id": "1", "iri": "http://e/x", "v": [1, 2.5, true, "\\u00e9", null]}]}',
    "c.xml": b'<all><r id="1"><v>a</v><v>&lt;</v></r><r id="2"/></all>',
}


def check(folder: Path, mapping: str) -> None:
    """Maps the files; each quad is one."""
    try:
        mapper = FileMapper(load_triples_maps(folder / mapping), folder)
        quads = b"".join(mapper.lines())
    except LevadaError as error:
        assert str(error).strip()
        return
    list(ox.parse(quads, ox.RdfFormat.N_QUADS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "m.ttl").write_text(MAPPING)
    return tmp_path


def test_the_sound_mapping_is_mapped(folder: Path) -> None:
    mapper = FileMapper(load_triples_maps(folder / "m.ttl"), folder)
    assert len(b"".join(mapper.lines()).splitlines()) > 10


@pytest.mark.parametrize("name", ["m.ttl", "m.yml"])
def test_damaged_mappings(folder: Path, name: str, seed: int) -> None:
    text = {"m.ttl": MAPPING, "m.yml": YARRRML}[name]
    for k in range(cases("rml", 5)):
        (folder / name).write_bytes(mutated(seed, f"{name} {k}", text.encode()))
        check(folder, name)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(folder: Path, name: str, seed: int) -> None:
    for k in range(cases("rml", 5)):
        (folder / name).write_bytes(mutated(seed, f"{name} {k}", FILES[name]))
        check(folder, "m.ttl")
