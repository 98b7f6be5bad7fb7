"""JSON-LD contexts from files in the place of their URLs: the same statements as with the contexts
in the documents, and faults that name the URL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.ingest.parse import json_ld_contexts
from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import document_text
from levada.connectors.ingest.parse.json_ld_contexts import (
    declare_as_driver,
    declare_contexts,
    declared_contexts,
)
from levada.errors import EngineError, UsageError

CORE = {"temp": {"@id": "http://e/temp", "@type": "http://www.w3.org/2001/XMLSchema#integer"}}
MORE = {"hum": "http://e/hum", "part": {"@id": "http://e/part", "@type": "@id"}}
URL = "https://x.org/ctx/"


@pytest.fixture(autouse=True)
def contexts(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "contexts"
    (folder / "v1").mkdir(parents=True)
    (folder / "core.jsonld").write_text(json.dumps({"@context": CORE}))
    (folder / "v1" / "more.jsonld").write_text(json.dumps({"@context": ["../core.jsonld", MORE]}))
    (folder / "loop.jsonld").write_text(json.dumps({"@context": ["loop.jsonld"]}))
    declare_contexts({URL: folder})
    yield folder
    json_ld_contexts.FILES.clear()
    json_ld_contexts._contents.clear()
    json_ld_contexts._whole.clear()


def statements(document: Any) -> list[bytes]:
    return sorted(document_text(json.dumps(document).encode(), "jsonld", "http://e/d").splitlines())


def node(context: Any, **more: Any) -> dict[str, Any]:
    return {"@context": context, "@id": "http://e/a", "temp": 5, "hum": 3, **more}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    ("named", "written"),
    [
        (URL + "core.jsonld", CORE),
        ([URL + "v1/more.jsonld", {"x": "http://e/x"}], [CORE, MORE, {"x": "http://e/x"}]),
        ({"@version": 1.1, "@import": URL + "core.jsonld", "hum": "http://e/other"},
         {**CORE, "hum": "http://e/other"}),
        ({"x": {"@id": "http://e/x", "@context": URL + "core.jsonld"}},
         {"x": {"@id": "http://e/x", "@context": CORE}}),
        ([None, URL + "core.jsonld"], [None, CORE]),
        ([URL + "core.jsonld", URL + "core.jsonld"], CORE),
    ],
)  # fmt: skip
def test_a_context_by_its_url_means_what_it_means_in_the_document(named: Any, written: Any) -> None:
    more, inline = (
        {"x": {"temp": 7, "@context": [*as_list(context), {"in": "http://e/in"}], "in": 1}}
        for context in (named, written)
    )
    assert statements(node(named, **more)) == statements(node(written, **inline)) != []


def test_a_text_that_looks_like_a_context_stays() -> None:
    text = f'"@context": "{URL}nothing.jsonld"'
    (line,) = statements({"@context": CORE, "@id": "http://e/a", "http://e/p": text})
    assert b"nothing.jsonld" in line


def test_an_unknown_context_is_named_with_its_place() -> None:
    document = b'{"@id": "http://e/a",\n "@context": ["' + URL.encode() + b'cor.jsonld"]}'
    with pytest.raises(Malformed) as fault:
        document_text(document, "jsonld")
    assert (fault.value.line, fault.value.column) == (2, 15)
    assert f"its context {URL}cor.jsonld has no file; give it by --context" in str(fault.value)
    assert f"Did you mean {URL}core.jsonld" in str(fault.value)


def test_a_fault_behind_a_context_keeps_its_line() -> None:
    document = f'{{"@context":\n"{URL}core.jsonld",\n"temp": 5,\n"hum" 3}}'.encode()
    with pytest.raises(Malformed) as fault:
        document_text(document, "jsonld")
    assert fault.value.line == 4


def test_contexts_that_name_each_other_and_many_contexts_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Malformed, match="no file"):
        statements(node(URL + "loop.jsonld"))
    monkeypatch.setattr(json_ld_contexts, "MAX_ADDED_BYTES", 1000)
    with pytest.raises(Malformed, match="larger by more than"):
        statements([node(URL + "core.jsonld") for _ in range(50)])


def test_many_names_of_one_context_and_deep_lists_cost_little() -> None:
    many = json.dumps(node([URL + "v1/more.jsonld"] * 1_000_000)).encode()
    with pytest.raises(Malformed, match="larger by more than 64 MB"):
        document_text(many, "jsonld")
    deep = b'{"@context": ' + b"[" * 450 + b"]" * 450 + b', "@id": "http://e/a"}'
    with pytest.raises(Malformed, match="context"):
        document_text(deep, "jsonld")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"http://e/c": "none.jsonld"}, "cannot be read"),
        ({"http://e/c": "bad.jsonld"}, "is no JSON"),
        ({"http://e/c": "other.jsonld"}, "has no @context"),
        ({"word": "core.jsonld"}, "is no URL"),
        ({"http://e/c": "v1"}, "does not end in /"),
        ({"http://e/c/": "empty"}, "has no file"),
        ({URL + "core.jsonld": "v1/more.jsonld"}, "for another engine already"),
    ],
)
def test_a_wrong_declaration_is_refused(
    declared: dict[str, str], message: str, contexts: Path
) -> None:
    (contexts / "bad.jsonld").write_text("{")
    (contexts / "other.jsonld").write_text("{}")
    (contexts / "empty").mkdir()
    with pytest.raises(UsageError, match=message):
        declare_contexts({url: contexts / path for url, path in declared.items()})


def test_a_task_reads_the_files_of_the_driver_and_no_others(contexts: Path) -> None:
    files = declared_contexts()
    right = statements(node(URL + "core.jsonld"))
    json_ld_contexts.FILES.clear()
    json_ld_contexts._contents.clear()
    json_ld_contexts._whole.clear()
    declare_as_driver(files)
    assert statements(node(URL + "core.jsonld")) == right and declared_contexts() == files
    json_ld_contexts.FILES.clear()
    (contexts / "core.jsonld").write_text(json.dumps({"@context": MORE}))
    with pytest.raises(EngineError, match="is another one than at the start"):
        declare_as_driver(files)


LONG = 600
CHAINS = {
    "prefix": {f"t{i}": {"@id": f"t{i + 1}:x", "@prefix": True} for i in range(LONG)},
    "term": {f"t{i}": f"t{i + 1}" for i in range(LONG)},
    "type": {f"t{i}": {"@id": "a:x", "@type": f"t{i + 1}"} for i in range(LONG)},
    "reverse": {f"t{i}": {"@reverse": f"t{i + 1}"} for i in range(LONG)},
    "backwards": {f"t{i}": f"t{i - 1}:x" for i in range(LONG, 0, -1)},
    "circle": {f"t{i}": f"t{(i + 1) % LONG}" for i in range(LONG)},
    "name": {f"t{i}:x": f"t{i + 1}:x:y" for i in range(LONG)}
    | {f"t{i}": f"t{i}:x" for i in range(LONG)},
}


@pytest.mark.parametrize("form", list(CHAINS))
def test_long_chain_of_terms_is_malformed(form: str) -> None:
    """Thousands of them end a process: the parser recurses."""
    for context in (
        CHAINS[form],
        [{}, CHAINS[form]],
        {"a": {"@id": "a:a", "@context": CHAINS[form]}},
    ):
        with pytest.raises(Malformed, match="chain of more than 500"):
            statements({"@context": context, "@id": "http://e/a", "t0": 1})
    written = json.dumps({"@context": CHAINS[form], "@id": "http://e/a"})
    for key in ('"\\u0040context"', '"@\\u0063onte\\u0078t"'):
        with pytest.raises(Malformed, match="chain of more than 500"):
            document_text(written.replace('"@context"', key).encode() + b"\xff", "jsonld", "")


def test_many_terms_of_one_prefix_are_read() -> None:
    context = {
        "e": "http://e/",
        **{f"t{i}": {"@id": f"e:{i}", "@type": "e:T"} for i in range(LONG)},
    }
    assert statements({"@context": context, "@id": "e:a", "t7": 1})
