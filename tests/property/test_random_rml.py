"""Random mappings of RML over random rows, against a naive mapping that is written from the meaning
of the terms: value by value, without columns.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyoxigraph as ox
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.connectors.config.rml.mapping_file import load_triples_maps
from levada.connectors.ingest.rml.map_files import FileMapper

XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = f"@prefix rml: <http://w3id.org/rml/> .\n@prefix xsd: <{XSD}> .\n@prefix : <http://e/> .\n"
TEXTS = [
    "x", "", "a b", 'q"\\', "ü/ß", "http://e/x y", "http://e/ok", "en", "de-CH", "a-english", "5",
    "-07", "1.5", "true", "<>", "l\nm", "%20", "😀", "a_20_b", "integer", "{}", "urn:a:é", "\x7f",
    "a:[", "a:%2g", "a:#b#",
]  # fmt: skip
SCALARS = st.sampled_from([*TEXTS, 0, -3, 10, 2.5, True, False, None])
CELLS = SCALARS | st.lists(SCALARS, max_size=3) | st.just({"x": 1})
NAMES = ("a", "b", "c")
ROWS = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, CELLS)), max_size=6)
TABLES = st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from(TEXTS))), max_size=6)
REFERENCES = st.sampled_from(["a", "b", "c", "a[*]", "b[*]"])
PIECES = st.sampled_from(["http://e/", "{a}", "{b}", "/", "{a[*]}", "k", r"\{", "é"])
TEMPLATES = st.lists(PIECES, min_size=1, max_size=4).map("".join)
EXPRESSIONS = st.tuples(st.just("reference"), REFERENCES) | st.tuples(
    st.just("template"), TEMPLATES
)
IRI_TYPES = ["IRI", "URI", "UnsafeIRI"]
SUFFIXES = st.sampled_from(
    [("", ""), ("language", "en"), ("languageMap", "c"), ("datatype", "integer"),
     ("datatype", "boolean"), ("datatype", "anyURI"), ("datatypeMap", "c")]
)  # fmt: skip
Expression = tuple[str, str]
Object = tuple[Expression, str, tuple[str, str]]
LITERALS = st.tuples(EXPRESSIONS, st.just("Literal"), SUFFIXES)
NODES = st.tuples(EXPRESSIONS, st.sampled_from([*IRI_TYPES, "BlankNode"]), st.just(("", "")))
RULES = st.tuples(LITERALS | NODES, st.booleans())
MAPPINGS = st.tuples(NODES, st.lists(RULES, min_size=1, max_size=3))


# -- the mapping in Turtle --


def turtle_expression(expression: Expression, form: str) -> str:
    kind, text = expression
    if form == "json":
        text = f"$.{text}" if kind == "reference" else re.sub(r"(?<!\\){", "{$.", text)
    return f"rml:{kind} {json.dumps(text, ensure_ascii=False)}"


def turtle_term(term: Object, form: str) -> str:
    expression, kind, (suffix, word) = term
    name = f"$.{word}" if form == "json" else word
    more = {
        "": "",
        "language": f'; rml:language "{word}"',
        "languageMap": f'; rml:languageMap [ rml:reference "{name}" ]',
        "datatype": f"; rml:datatype xsd:{word}",
        "datatypeMap": f'; rml:datatypeMap [ rml:template "{XSD}{{{name}}}" ]',
    }[suffix]
    return f"[ {turtle_expression(expression, form)} ; rml:termType rml:{kind} {more} ]"


def turtle(mapping: Any, form: str) -> str:
    subject, rules = mapping
    source = {
        "json": '"in.json" ; rml:referenceFormulation rml:JSONPath ; rml:iterator "$[*]"',
        "csv": '"in.csv" ; rml:referenceFormulation rml:CSV',
    }[form]
    text = f"{HEAD}:m rml:logicalSource [ rml:source {source} ] ; "
    text += f"rml:subjectMap {turtle_term(subject, form)}"
    for term, in_graph in rules:
        graph = "; rml:graph :g" if in_graph else ""
        text += (
            f" ;\nrml:predicateObjectMap [ rml:predicate :p {graph} ; "
            f"rml:objectMap {turtle_term(term, form)} ]"
        )
    return text + " ."


# -- the naive mapping --


class UnfitError(Exception):
    """A value that cannot be part of a term."""


def values(row: dict[str, Any], name: str) -> list[Any]:
    """The values of a reference in a row."""
    value = row.get(name.removesuffix("[*]"))
    if name.endswith("[*]"):
        members = (
            value
            if isinstance(value, list)
            else value.values()
            if value and (isinstance(value, dict))
            else []
        )
        return [each for each in members if each is not None]
    if isinstance(value, (list, dict)):
        raise UnfitError(value)
    return [] if value is None else [value]


def lexical(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def parts(expression: Expression) -> list[tuple[str, bool]]:
    kind, text = expression
    if kind == "reference":
        return [(text, True)]
    found = re.findall(r"\{([^}]*)\}|((?:\\.|[^{\\])+)", text)
    return [
        (name, True) if name else (re.sub(r"\\(.)", r"\1", rest), False) for name, rest in found
    ]


def combinations(row: dict[str, Any], expression: Expression) -> Iterator[list[Any]]:
    """The values of an expression: a list of its parts each. A reference that is in a template
    twice has one value.
    """
    names = list(dict.fromkeys(text for text, is_name in parts(expression) if is_name))
    for each in product(*(values(row, name) for name in names)):
        value = dict(zip(names, each, strict=True))
        yield [value[text] if is_name else text for text, is_name in parts(expression)]


def encode(value: str, kind: str) -> str:
    if kind == "URI":
        return quote(value, safe="~")
    return "".join(
        c
        if c in "-._~"
        or (c.isalnum() and c.isascii())
        or 0xA0 <= ord(c) < 0xE000
        or 0xF900 <= ord(c) < 0xF0000
        else quote(c, safe="")
        for c in value
    )


def iri(texts: list[Any], expression: Expression, kind: str) -> str | None:
    encoded = expression[0] == "template" and kind != "UnsafeIRI"
    text = "".join(
        encode(lexical(each), kind) if encoded and name else lexical(each)
        for each, (_, name) in zip(texts, parts(expression), strict=True)
    )
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        text = f"http://example.com/{text}"
    odd = r"""[\x00-\x20\x7f<>"{}|^`\\\[\]]|%(?![0-9A-Fa-f]{2})|#.*#"""
    odd = r'[\x00-\x1f<>"\\]' if kind == "UnsafeIRI" else odd
    return None if re.search(odd, text) else f"<{text}>"


LEXICAL = {"integer": r"[+-]?[0-9]+", "boolean": "true|false|0|1", "double": r"[+-]?[0-9.]+"}


def literal(text: str, suffix: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{quoted}"{suffix}'


def literals(row: dict[str, Any], term: Object) -> Iterator[str | None]:
    """The literals of a term map; None for an unfit value."""
    expression, _, (suffix, word) = term
    for texts in combinations(row, expression):
        text = "".join(map(lexical, texts))
        if suffix == "" and expression[0] == "reference" and not isinstance(texts[0], str):
            kind = {bool: "boolean", int: "integer", float: "double"}[type(texts[0])]
            yield literal(text, f"^^<{XSD}{kind}>")
        elif suffix == "":
            yield literal(text, "")
        elif suffix == "language":
            yield literal(text, f"@{word}")
        elif suffix == "languageMap":
            for tag in map(lexical, values(row, word)):
                fits = re.fullmatch(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", tag)
                yield literal(text, f"@{tag}") if fits else None
        else:
            kinds = (
                [word]
                if suffix == "datatype"
                else [encode(lexical(v), "IRI") for v in values(row, word)]
            )
            for kind in kinds:
                fits = re.fullmatch(LEXICAL.get(kind, r"(?s:.*)"), text)
                yield literal(text, f"^^<{XSD}{kind}>") if fits else None


def terms(row: dict[str, Any], term: Object) -> list[str | None]:
    """The texts of a term map in a row; None for an unfit value."""
    expression, kind, _ = term
    if kind == "Literal":
        return list(literals(row, term))
    made: list[str | None] = []
    for texts in combinations(row, expression):
        if kind == "BlankNode":
            made.append("_:n" + "".join(map(lexical, texts)).encode().hex())
        else:
            made.append(iri(texts, expression, kind))
    return made


def naive(mapping: Any, rows: list[dict[str, Any]]) -> tuple[set[str], bool]:
    """The quads of rows, and whether a value is unfit. A term with an unfit value is left out."""
    subject, rules = mapping
    quads, unfit = set(), False

    def every(row: dict[str, Any], term: Object) -> list[str]:
        nonlocal unfit
        try:
            made = terms(row, term)
        except UnfitError:
            made = [None]
        unfit |= None in made
        return [text for text in made if text is not None]

    names = {
        name
        for expression, _, (_, word) in [subject, *(term for term, _ in rules)]
        for name in [*(text for text, is_name in parts(expression) if is_name), word]
    }
    for row in rows:
        unfit |= any(isinstance(row.get(name), (list, dict)) for name in names)
        for s in every(row, subject) or [""]:
            for term, in_graph in rules:
                for o in every(row, term):
                    if s:
                        quads.add(f"{s} <http://e/p> {o} {'<http://e/g> ' * in_graph}.")
    return quads, unfit


def is_supported(mapping: Any) -> bool:
    """Whether Levada takes a mapping: a template of an IRI has no brace in its texts."""
    subject, rules = mapping
    return not any(
        kind == "template" and term_type in ("IRI", "URI") and "\\{" in text
        for (kind, text), term_type, _ in [subject, *(term for term, _ in rules)]
    )


def mapped(mapping: Any, rows: list[dict[str, Any]], form: str) -> tuple[bytes, int]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m.ttl").write_text(turtle(mapping, form))
        if form == "json":
            (folder / "in.json").write_text(json.dumps(rows))
        else:
            with (folder / "in.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, NAMES, quoting=csv.QUOTE_ALL)
                writer.writeheader()
                writer.writerows(rows)
        mapper = FileMapper(load_triples_maps(folder / "m.ttl"), folder)
        quads = b"".join(mapper.lines())
    sentences = mapper.report.sentences
    return quads, sum("has no value in any record" not in each for each in sentences)


def canonical(quads: bytes) -> ox.Dataset:
    dataset = ox.Dataset(ox.parse(quads, ox.RdfFormat.N_QUADS, lenient=True))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def check(mapping: Any, rows: list[dict[str, Any]], form: str) -> None:
    expected, unfit = naive(mapping, rows)
    quads, faults = mapped(mapping, rows, form)
    lines = {line for line in quads.decode().split("\n") if line and "_:" not in line}
    assert lines == {quad for quad in expected if "_:" not in quad}
    assert canonical(quads) == canonical("\n".join(expected).encode())
    assert bool(faults) == unfit


@settings(max_examples=60, deadline=None)
@given(MAPPINGS.filter(is_supported), ROWS)
def test_rows_of_json(mapping: Any, rows: list[dict[str, Any]]) -> None:
    check(mapping, rows, "json")


@settings(max_examples=60, deadline=None)
@given(MAPPINGS.filter(is_supported).filter(lambda mapping: "[*]" not in str(mapping)), TABLES)
def test_rows_of_csv(mapping: Any, rows: list[dict[str, Any]]) -> None:
    check(mapping, rows, "csv")
