"""Faults of an RML mapping are found when it is read, with their names and lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.connectors.config.rml.mapping_file import load_triples_maps
from levada.connectors.config.rml.triples_maps import TriplesMap
from levada.connectors.config.row_mapping import Part
from levada.errors import UsageError

HEAD = """@prefix rml: <http://w3id.org/rml/> .
@prefix rr: <http://www.w3.org/ns/r2rml#> .
@prefix old: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix grel: <http://users.ugent.be/~bjdmeest/function/grel.ttl#> .
@prefix : <http://e/> .
"""
SOURCE = 'rml:logicalSource [ rml:source [ rml:path "a.csv" ] ; rml:referenceFormulation rml:CSV ]'
SUBJECT = 'rml:subjectMap [ rml:template "http://e/{id}" ]'


def read(text: str, folder: Path) -> tuple[TriplesMap, ...]:
    (folder / "m.ttl").write_text(HEAD + text)
    return load_triples_maps(folder / "m.ttl")


def objects(text: str, folder: Path) -> tuple[Part, ...]:
    """The object of a mapping with this object map."""
    rule = f"rml:predicateObjectMap [ rml:predicate :p ; rml:objectMap [ {text} ] ]"
    (each,) = read(f":m {SOURCE} ; {SUBJECT} ; {rule} .", folder)
    return each.triples[0][2]


def test_terms_of_r2rml_and_old_rml_are_the_same(tmp_path: Path) -> None:
    new = f"""
:m a rml:TriplesMap ; {SOURCE} ; rml:subjectMap [ rml:template "http://e/{{id}}" ; rml:class :C ] ;
   rml:predicateObjectMap [ rml:predicate :p ; rml:objectMap [ rml:reference "v" ] ] .
"""
    old = """
:m a rr:TriplesMap ; old:logicalSource [ old:source "a.csv" ; old:referenceFormulation ql:CSV ] ;
   rr:subjectMap [ rr:template "http://e/{id}" ; rr:class :C ] ;
   rr:predicateObjectMap [ rr:predicate :p ; rr:objectMap [ rr:column "v" ] ] .
"""
    assert read(new, tmp_path) == read(old, tmp_path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('rml:reference "v"', (Part("v", "natural"),)),
        ('rml:constant "a\\"b"@en', (Part('"a\\"b"@en'),)),
        ('rml:reference "v" ; rml:language "en"', (Part('"'), Part("v", "literal"), Part('"@en'))),
        ('rml:template "{v}_x" ; rml:termType rml:BlankNode',
         (Part("_:b"), Part("v", "label"), Part("_5f_x"))),
        ('rml:reference "v" ; rml:termType rml:IRI',
         (Part("<"), Part("http://example.com/", "base"), Part("v", "whole"), Part(">"))),
        ('rml:template "{v}"',
         (Part("<"), Part("http://example.com/"), Part("v", "iri_safe"), Part(">"))),
    ],
)  # fmt: skip
def test_an_object_map_is_parts(text: str, parts: tuple[Part, ...], tmp_path: Path) -> None:
    assert objects(text, tmp_path) == parts


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f":m {SOURCE} .", 8, "no rml:subjectMap"),
        (f":m {SUBJECT} .", 8, "no rml:logicalSource"),
        (f":m\n{SOURCE} ;\n{SUBJECT} ;\nrml:predicateObjectMp [] .", 11, "predicateObjectMap?"),
        (f":m {SOURCE} ;\nrml:subjectMap [\nrml:termType rml:Literal ; rml:reference 'a' ] .", 10,
         "rml:Literal"),
        (f":m {SOURCE} ;\nrml:subjectMap [ rml:template 'http://e/{{a' ] .", 9, "not closed"),
        (f":m {SOURCE} ;\nrml:subjectMap [ rml:template 'http://e/ {{a}}' ] .", 9, "not that of"),
        (f":m {SOURCE} ;\nrml:subjectMap [ rml:constant 'x' ] .", 9, "is a literal"),
        (f":m {SOURCE} ;\nrml:subjectMap [ rml:constant :x ; rml:reference 'x' ] .", 9, "has one"),
        (":m\nrr:logicalTable [ rr:tableName 'T' ] ; rr:subjectMap [ rr:constant :x ] .", 9, "SQL"),
        ("<http://e/x> <http://e/y> 1 .", 0, "no triples map"),
        (":m rml:logicalSource [ rml:source 'a.csv' ;\nrml:referenceFormulation rml:CSS ] ;"
         f"{SUBJECT} .", 9, "rml:CSS"),
        (":m rml:logicalSource [ rml:source [ rml:path 'a.csv' ;\nrml:compression rml:rar ] ] ;"
         f"{SUBJECT} .", 9, "rml:rar"),
        (":m rml:logicalSource [ rml:source [ a <http://www.w3.org/ns/dcat#Distribution> ;\n"
         "<http://www.w3.org/ns/dcat#accessURL> <http://e/a.csv> ] ] ; "
         f"{SUBJECT} .", 9, "nothing is fetched"),
        (":m rml:logicalSource [ rml:source 'a.json' ;\nrml:iterator '$.a[?(@.b)]' ] ;"
         f"{SUBJECT} .", 9, "filters"),
        ("not turtle", 8, "Parser error"),
    ],
)  # fmt: skip
def test_a_fault_has_its_line(text: str, line: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read(text, tmp_path)
    message = str(error.value)
    assert said in message and "m.ttl" in message
    assert f"line {line}:" in message if line else ", line" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('rml:reference "v" ; rml:language "a-english"', "a-english"),
        ('rml:reference "v" ; rml:language "en" ; rml:datatype xsd:int', "not both"),
        ('rml:reference "v" ; rml:datatype "int"', "not an IRI"),
        ('rml:reference "v" ; rml:termType rml:IRI ; rml:language "en"', "is for literals"),
        ('rml:termType rml:IRI', "no rml:constant"),
        ('rml:functionExecution [ rml:function :f ]', "the function http://e/f is not supported"),
        ('rml:functionExecution [ rml:function grel:toUpperCase ]', "needs valueParameter"),
        ('rml:functionExecution [ rml:function grel:toUpperCase ; rml:input '
         '[ rml:parameter grel:valueParameter ; rml:inputValue "a" ], '
         '[ rml:parameter grel:other ; rml:inputValue "b" ] ]', "has no other"),
        ('rml:parentTriplesMap :nobody', "not a triples map"),
        ('rml:reference :v', "not a text"),
    ],
)  # fmt: skip
def test_a_fault_of_an_object_map_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line") as error:
        objects(text, tmp_path)
    assert said in str(error.value)


def test_a_join_without_conditions_needs_the_same_source(tmp_path: Path) -> None:
    other = SOURCE.replace("a.csv", "b.csv")
    rule = "rml:predicateObjectMap [ rml:predicate :p ; rml:objectMap [ rml:parentTriplesMap :n ] ]"
    with pytest.raises(UsageError, match=r"no rml:joinCondition"):
        read(f":m {SOURCE} ; {SUBJECT} ; {rule} . :n {other} ; {SUBJECT} .", tmp_path)


def test_a_large_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.ttl").write_text("#" * 10_000_001)
    with pytest.raises(UsageError, match="more than"):
        load_triples_maps(tmp_path / "m.ttl")
