"""Terms of a query text: names, literals, escapes, abbreviations of triples."""

from __future__ import annotations

import pytest

from levada.core.rdf_terms import RDF, XSD, Iri, Literal
from levada.errors import QuerySyntaxError, Span, UnknownNameError
from levada.language import parse
from levada.language.sparql import ast


def triples(text: str, prologue: str = "PREFIX : <http://e/> ") -> list[str]:
    """The triples of a pattern in N-Triples, as one reads them."""
    group = parse(f"{prologue}SELECT * {{ {text} }}").where
    assert group is not None
    return [
        f"{shown(triple.subject)} {shown(triple.predicate)} {shown(triple.object)}"
        for element in group.elements
        if isinstance(element, ast.Triples)
        for triple in element.triples
    ]


def shown(node: ast.Node | ast.Verb) -> str:
    match node:
        case ast.Var(name):
            return f"?{name}"
        case ast.Constant(term):
            return str(term)
        case ast.BlankNode(label):
            return f"_:{label}"
        case _:
            raise AssertionError("these tests have no paths")


def object_of(text: str) -> Iri | Literal:
    group = parse(f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> SELECT * {{ ?s ?p {text} }}").where
    assert group is not None
    element = group.elements[0]
    assert isinstance(element, ast.Triples)
    node = element.triples[0].object
    assert isinstance(node, ast.Constant)
    return node.term


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("5", Literal("5", XSD + "integer")),
        ("-5", Literal("-5", XSD + "integer")),
        ("+05", Literal("+05", XSD + "integer")),
        ("1.50", Literal("1.50", XSD + "decimal")),
        (".5", Literal(".5", XSD + "decimal")),
        ("1e0", Literal("1e0", XSD + "double")),
        ("1.E-3", Literal("1.E-3", XSD + "double")),
        ("-.5e+3", Literal("-.5e+3", XSD + "double")),
        ("TRUE", Literal("true", XSD + "boolean")),
        ('"a"', Literal("a")),
        ("'a\"'", Literal('a"')),
        (r'"tab\tquote\"back\\slash"', Literal('tab\tquote"back\\slash')),
        ('"""two\n"lines" """', Literal('two\n"lines" ')),
        ("'''it''s'''", Literal("it''s")),
        ('"chat"@FR-be', Literal("chat", RDF + "langString", "fr-be")),
        ('"5"^^xsd:byte', Literal("5", XSD + "byte")),
        ('"5"^^<http://www.w3.org/2001/XMLSchema#string>', Literal("5")),
        ("()", Iri(RDF + "nil")),
        (":a.b", Iri("http://e/a.b")),
        (":", Iri("http://e/")),
        (r":a\~b%41\,", Iri("http://e/a~b%41,")),
        (":1:2", Iri("http://e/1:2")),
        (":été·", Iri("http://e/été·")),
        (r"<http://e/\u00e9\U0001F600>", Iri("http://e/é😀")),
        (r'"\\u0041"', Literal("\\u0041")),
    ],
)
def test_a_term_is_read(text: str, term: Iri | Literal) -> None:
    assert object_of(text) == term


def test_a_dot_after_a_number_or_name_ends_the_triple() -> None:
    assert triples(":s :p 5. :s :q :a. :s :r :b.") == [
        f'<http://e/s> <http://e/p> "5"^^<{XSD}integer>',
        "<http://e/s> <http://e/q> <http://e/a>",
        "<http://e/s> <http://e/r> <http://e/b>",
    ]


def test_abbreviations_are_spelled_out_in_the_order_of_the_text() -> None:
    assert triples("?s a :C ; :p 'x', ?y ; ; :q [ :r _:b ; :t :u ] .") == [
        f"?s <{RDF}type> <http://e/C>",
        '?s <http://e/p> "x"',
        "?s <http://e/p> ?y",
        "?s <http://e/q> _:.1",
        "_:.1 <http://e/r> _:b",
        "_:.1 <http://e/t> <http://e/u>",
    ]


def test_a_list_is_a_chain_and_may_be_a_subject() -> None:
    assert triples("(?a (:b)) :p :o .") == [
        f"_:.2 <{RDF}first> ?a",
        f"_:.2 <{RDF}rest> _:.3",
        f"_:.3 <{RDF}first> _:.1",
        f"_:.1 <{RDF}first> <http://e/b>",
        f"_:.1 <{RDF}rest> <{RDF}nil>",
        f"_:.3 <{RDF}rest> <{RDF}nil>",
        "_:.2 <http://e/p> <http://e/o>",
    ]


def test_nameless_nodes_are_distinct() -> None:
    assert triples("[] :p [] . [ :q 'x' ] .") == [
        "_:.1 <http://e/p> _:.2",
        '_:.3 <http://e/q> "x"',
    ]


def test_base_and_prefixes_take_effect_where_they_stand() -> None:
    prologue = "BASE <http://e/a/> PREFIX p: <b/> BASE <c/d> PREFIX q: <#> PREFIX p: <b/> "
    assert triples("<x> p:y q:z", prologue) == [
        "<http://e/a/c/x> <http://e/a/c/b/y> <http://e/a/c/d#z>",
    ]


def test_declarations_may_stand_before_and_after_register() -> None:
    unit = parse(
        "PREFIX a: <http://a/> REGISTER istream a:o AS PREFIX b: <http://b/> BASE "
        "<http://c/> ASK { a:s b:p <o> }"
    )
    assert unit.register == ast.Register(
        "ISTREAM", ast.Constant(Iri("http://a/o"), Span(1, 1)), Span(1, 1)
    )
    assert unit.base == "http://c/"
    assert isinstance(unit.form, ast.Ask)


def test_without_a_base_a_relative_iri_stays_as_written() -> None:
    assert triples("<w1> <../x> <#y>") == ["<w1> <../x> <#y>"]


def test_an_undeclared_prefix_says_what_is_declared() -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse("PREFIX foaf: <http://f/>\nPREFIX : <http://e/>\nSELECT * { ?s foa:name 'x' }")
    assert caught.value.span == Span(3, 15)
    assert caught.value.message == "The prefix foa: is not declared."
    assert caught.value.hint == "Did you mean foaf:? Declared: :, foaf:."
    with pytest.raises(UnknownNameError) as caught:
        parse("SELECT * { ?s x:y 'x' }")
    assert caught.value.hint == "No prefix is declared."
    with pytest.raises(UnknownNameError) as caught:
        parse("SELECT * { ?s rdfs:label 'x' }")
    assert caught.value.hint == "Write PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>."


def test_keywords_match_in_any_case_but_a_does_not() -> None:
    assert parse("sElEcT * wHeRe { ?s a ?o FiLtEr(bOuNd(?s)) } lImIt 3").modifiers.limit == 3
    with pytest.raises(QuerySyntaxError):
        parse("SELECT * { ?s A ?o }")


def test_prefixes_may_look_like_keywords() -> None:
    assert triples(
        "select:a a:a filter:b", "PREFIX select: <s/> PREFIX a: <a/> PREFIX filter: <f/> "
    ) == [
        "<s/a> <a/a> <f/b>",
    ]


def test_a_number_sign_starts_a_comment_outside_of_iris_and_strings_only() -> None:
    assert triples("?s <http://e/#p> '#x' # ?t ?u ?v\n.") == ['?s <http://e/#p> "#x"']


@pytest.mark.parametrize(
    ("text", "column"),
    [("SELECT ?a\u2003b {}", 10), ("SELECT ?\u0301a {}", 9), ("PREFIX é\u2003: <x> ASK {}", 9)],
)
def test_a_character_that_no_name_has_is_an_error_at_its_place(text: str, column: int) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert caught.value.span == Span(1, column)


def test_places_are_those_of_the_text_as_written() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse('SELECT * {\n  ?s <http://e/\\u00e9> "\\U0001F600" ?x }')
    assert caught.value.span == Span(2, 37)
    with pytest.raises(QuerySyntaxError, match="D800 is no Unicode character") as caught:
        parse("SELECT * { ?s ?p '\\uD800' }")
    assert caught.value.span == Span(1, 19)


def test_spans_take_no_part_in_equality() -> None:
    assert parse("SELECT ?x { ?x ?y 1 }") == parse("SELECT\n  ?x\n{ ?x ?y 1 . }")
    assert parse("SELECT ?x { ?x ?y 1 }") != parse("SELECT ?x { ?x ?y 2 }")
