"""Term forms of the result formats: the vectorised path equals a term-by-term reading of the
specifications.
"""

import json
from typing import Any

import polars as pl
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.serialization.decode_terms import (
    csv_fields,
    csv_values,
    json_strings,
    json_terms,
    tsv_values,
)
from levada.connectors.serialization.serialize import csv_value, json_term, tsv_value
from levada.core.rdf_terms import XSD, Blank, Iri, Literal, parse_term

INTEGER = f"^^<{XSD}integer>"

lexicals = st.text(
    st.one_of(
        st.sampled_from('"\\@^<>,;\n\r\t\b\f\x01\x7fé€𝄞 ab_'),
        st.characters(codec="utf-8", exclude_categories=["Cs"]),
    ),
    max_size=8,
)
terms = st.one_of(
    st.sampled_from(["http://e/a", "urn:x", "http://e/ä?b=1,2#c"]).map(Iri),
    st.sampled_from(["b0", "x.y"]).map(Blank),
    lexicals.map(Literal),
    st.tuples(lexicals, st.sampled_from(["en", "de-at"])).map(
        lambda p: Literal(p[0], language=p[1])
    ),
    st.tuples(lexicals, st.sampled_from([XSD + "integer", XSD + "double", "http://e/t"])).map(
        lambda p: Literal(*p)
    ),
)
columns = st.lists(st.one_of(st.none(), terms), max_size=80).map(
    lambda rows: pl.Series("c", [None if t is None else str(t) for t in rows], pl.String)
)


def as_json(text: Any) -> dict[Any, Any]:
    match parse_term(text):
        case Iri(value):
            return {"type": "uri", "value": value}
        case Blank(label):
            return {"type": "bnode", "value": label}
        case Literal(lexical, datatype, language):
            more = (
                {"xml:lang": language}
                if language
                else {"datatype": datatype}
                if "^^" in text[text.rindex('"') :]
                else {}
            )
            return {"type": "literal", "value": lexical, **more}


def plain(text: Any) -> Any:
    match parse_term(text):
        case Iri(value):
            return value
        case Blank(label):
            return "_:" + label
        case Literal(lexical):
            return lexical


@given(columns)
def test_json_terms_equal_their_reading(texts: Any) -> None:
    expected = [None if t is None else as_json(t) for t in texts.to_list()]
    assert [None if t is None else json.loads(t) for t in json_terms(texts).to_list()] == expected


@given(columns)
def test_csv_values_equal_their_reading(texts: Any) -> None:
    def quoted(value: Any) -> Any:
        return '"' + value.replace('"', '""') + '"' if any(c in value for c in '",\r\n') else value

    assert csv_values(texts).to_list() == [
        None if t is None else quoted(plain(t)) for t in texts.to_list()
    ]


@given(columns)
def test_tsv_values_are_terms_of_turtle(texts: Any) -> None:
    def read(field: Any) -> Any:
        document = f"<http://s> <http://p> {field} ."
        return str(next(iter(ox.parse(document, format=ox.RdfFormat.TURTLE))).object)

    for text, field in zip(texts.to_list(), tsv_values(texts).to_list(), strict=True):
        if text is None or text.startswith("_:"):
            assert field == text
        else:
            assert "\t" not in field
            assert "\n" not in field
            assert parse_term(read(field)) == parse_term(text)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (f'"5"{INTEGER}', "5"),
        (f'"-05"{INTEGER}', "-05"),
        (f'"x"{INTEGER}', f'"x"{INTEGER}'),
        (f'"2.5"^^<{XSD}decimal>', "2.5"),
        (f'"2"^^<{XSD}decimal>', f'"2"^^<{XSD}decimal>'),
        (f'"1.0E6"^^<{XSD}double>', "1.0E6"),
        (f'"1.5"^^<{XSD}double>', f'"1.5"^^<{XSD}double>'),
        (f'"true"^^<{XSD}boolean>', f'"true"^^<{XSD}boolean>'),
        ("<http://e/a>", "<http://e/a>"),
    ],
)
def test_short_numbers_of_tsv(text: str, field: str) -> None:
    assert tsv_values(pl.Series([text])).to_list() == [field]


def test_repeated_terms_are_converted_alike() -> None:
    once = ["<http://e/a>", '"a\\"b"@en', None, f'"5"{INTEGER}', "_:x"]
    many = pl.Series(once * 1000)
    assert json_terms(many).to_list() == json_terms(pl.Series(once)).to_list() * 1000
    assert csv_values(many).to_list() == csv_values(pl.Series(once)).to_list() * 1000
    assert tsv_values(many).to_list() == tsv_values(pl.Series(once)).to_list() * 1000


def test_columns_without_a_term() -> None:
    for convert in (json_terms, csv_values, tsv_values):
        assert convert(pl.Series([None, None])).to_list() == [None, None]
        assert convert(pl.Series([], dtype=pl.String)).to_list() == []


def test_an_iri_that_needs_escapes() -> None:
    assert (
        json.loads(json_terms(pl.Series(['<http://e/a"b\\c>'])).item())["value"]
        == 'http://e/a"b\\c'
    )


@given(st.lists(st.text(st.sampled_from('ab"\\\n\r\té,'), max_size=6)))
def test_plain_texts(values: Any) -> None:
    series = pl.Series("v", values, pl.String)
    assert [json.loads(text) for text in json_strings(series).to_list()] == values
    assert [
        field[1:-1].replace('""', '"') if field[:1] == '"' else field
        for field in csv_fields(series)
    ] == values


@given(st.lists(terms.map(str), min_size=1))
def test_a_term_at_a_time_gives_the_same(texts: Any) -> None:
    column = pl.Series("c", texts, pl.String)
    assert json_terms(column).to_list() == [json_term(text) for text in texts]
    assert csv_values(column).to_list() == [csv_value(text) for text in texts]
    assert tsv_values(column).to_list() == [tsv_value(text) for text in texts]
