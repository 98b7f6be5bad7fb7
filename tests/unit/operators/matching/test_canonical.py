"""Canonical texts are those that pyoxigraph prints, by which the intake tells terms apart."""

from __future__ import annotations

import polars as pl
import pyoxigraph as ox

import levada
from levada.core.rdf_terms import Literal, parse_term
from levada.operators.matching.scan_rows import canonical

SURROGATES = range(0xD800, 0xE000)
CODES = (*range(1, 0x10000), 0x1FFFE, 0x1FFFF, 0x10FFFF)
CHARACTERS = [chr(code) for code in CODES if code not in SURROGATES]
TEXT = """SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [TRIPLES 2]
WHERE {{ WINDOW <e:w> {{ ?x <e:p> ?v }} FILTER({}) }}"""


def test_each_character_is_written_as_pyoxigraph_does() -> None:
    printed = [str(ox.Literal(c)) for c in CHARACTERS]
    assert [str(Literal(c)) for c in CHARACTERS] == printed
    assert canonical(pl.Series(CHARACTERS)).to_list() == printed
    assert [parse_term(text) for text in printed] == [Literal(c) for c in CHARACTERS]


def test_what_is_written_by_its_number_equals_a_constant() -> None:
    """U+FFFE and U+FFFF are no characters of XML, and are written so."""
    stream = ['<e:a> <e:p> "\\uFFFF" 1 .', '<e:b> <e:p> "x" 2 .']
    for condition in ('?v = "\uffff"', '?v IN ("\\uFFFF", 5)', '?v = REPLACE(?v, "x", "\uffff")'):
        found = levada.query(TEXT.format(condition), {"e:s": stream})
        assert found.to_dicts()[-1]["x"] == "e:a"
        assert len(found.reports) == 2
