"""Reference resolution: the examples of RFC 3986, sections 5.4.1 and 5.4.2."""

from __future__ import annotations

import pytest

from levada.language.sparql.iri import resolve


@pytest.mark.parametrize(
    ("reference", "iri"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("http:g", "http:g"),
    ],
)
def test_the_examples_of_the_rfc(reference: str, iri: str) -> None:
    assert resolve(reference, "http://a/b/c/d;p?q") == iri


def test_a_base_without_a_path() -> None:
    assert resolve("g", "http://a") == "http://a/g"
    assert resolve("?y", "http://a?x") == "http://a?y"


def test_no_base() -> None:
    assert resolve("../g", None) == "../g"
