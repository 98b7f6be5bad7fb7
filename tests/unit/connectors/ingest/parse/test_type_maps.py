"""JSON-LD's maps by type, whose nodes have identifiers or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import document_text
from levada.connectors.ingest.static_files import check_sound, static_source

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
CONTEXT: dict[str, Any] = {
    "@version": 1.1,
    "e": "http://e/",
    "of": {"@id": "e:of", "@container": "@type"},
    "id": "@id",
    "P": "e:P",
    "Q": "e:Q",
    "name": "e:name",
}
ROOT = "<http://e/r> <http://e/of> <http://e/a> ."
PERSON = f"<http://e/a> <{RDF_TYPE}> <http://e/P> ."
OTHER = f"<http://e/a> <{RDF_TYPE}> <http://e/Q> ."
NAME = '<http://e/a> <http://e/name> "A" .'


def statements(nodes: Any, context: Any = CONTEXT, term: str = "of") -> set[str]:
    document = {"@context": context, "@id": "e:r", term: nodes}
    return set(document_text(json.dumps(document).encode(), "jsonld").decode().splitlines())


@pytest.mark.parametrize("own", ["@id", "id"])
@pytest.mark.parametrize("container", ["@type", ["@type"], ["@set", "@type"]])
def test_a_node_of_a_type_map_may_have_an_identifier(own: str, container: Any) -> None:
    context = {**CONTEXT, "of": {"@id": "e:of", "@container": container}}
    for node in ({own: "e:a", "name": "A"}, {"name": "A", own: "e:a"}):
        for nodes in (node, [node]):
            assert statements({"P": nodes}, context) == {ROOT, PERSON, NAME}
        typed = {**node, "@type": "Q"}
        assert statements({"P": typed}, context) == {ROOT, PERSON, OTHER, NAME}
    assert statements({"P": {own: "e:a"}}, [context]) == {ROOT, PERSON}


def test_nodes_of_a_type_map_are_apart() -> None:
    found = statements({"P": [{"@id": "e:a"}, {"@id": "e:b"}], "@none": {"@id": "e:c"}, "Q": []})
    assert len(found) == 5
    assert statements({"P": "e:a"}) == {ROOT, PERSON}
    nested = {"@id": "e:a", "@nest": {"name": "A"}}
    assert statements({"P": nested}) == {ROOT, PERSON, NAME}


def test_a_type_map_within_a_scoped_context_is_one() -> None:
    context = {"e": "http://e/", "q": {"@id": "e:q", "@context": CONTEXT}, "@version": 1.1}
    document = {"@context": context, "q": {"of": {"P": {"@id": "e:a", "name": "A"}}}}
    text = document_text(json.dumps(document).encode(), "jsonld").decode()
    assert PERSON in text and NAME in text


def test_scoped_context_of_a_type_map_is_refused_where_nodes_have_nodes() -> None:
    context = {**CONTEXT, "S": {"@id": "e:P", "@context": {"name": "e:other"}}, "q": "e:q"}
    other = NAME.replace("name", "other")
    assert statements({"S": {"@id": "e:a", "name": "A"}}, context) == {ROOT, PERSON, other}
    for inner in ({"@id": "e:b", "name": "B"}, [{"name": "B"}]):
        with pytest.raises(Malformed, match="context of S"):
            statements({"S": [{"@id": "e:a", "q": inner}]}, context)
        assert len(statements({"P": [{"@id": "e:a", "q": inner}]}, context)) == 4


def test_a_damaged_document_with_a_type_map_is_refused_with_its_place(tmp_path: Path) -> None:
    text = json.dumps({"@context": CONTEXT}, indent=1).encode()
    with pytest.raises(Malformed) as fault:
        document_text(text[:-3] + b",", "jsonld")
    assert fault.value.line > 1
    with pytest.raises(Malformed) as fault:
        document_text(text[:-3] + b'}, "of": {"P": {"@id": 5}}}', "jsonld")
    assert fault.value.line == 0


def test_static_data_may_have_a_type_map(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonld"
    path.write_text(json.dumps({"@context": CONTEXT, "of": {"P": {"@id": "e:a"}}}))
    check_sound(static_source(path))
