"""What the sources cite is there: pages and headings of docs/, and anchors of the specifications.

Whoever has the repository alone can follow each of them. Anchors of specifications are those that
their texts define (``SPARQL``): a name that is not among them is a slip.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.doc_pages import anchor, anchors

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "levada").rglob("*.py"))
PAGE = re.compile(r"\b(docs/[\w/-]+\.md)(#[\w-]+)?")
ELSEWHERE = re.compile(r"\bdesign, section|\bkernels\.md\b|\bissue \d|\((?:[WCSKB]\d+[,) ])")
SPARQL = "https://www.w3.org/TR/sparql11-query/#"
DEFINED = frozenset(
    f"defn_{name}"
    for name in [
        "BasicGraphPattern",
        "TriplePattern",
        "algJoin",
        "algLeftJoin",
        "algMinus",
        "algUnion",
        "algFilter",
        "extend",
        "algProjection",
        "algDistinct",
        "algReduced",
        "algOrdered",
        "algSlice",
        "substitute",
        "evalPP_ZeroOrMorePath",
        "evalPP_ZeroOrOnePath",
    ]
) | {"aggregateAlgebra", "sparqlAlgebra"}


@pytest.mark.parametrize("heading", ["A triple's way", "Streams that queries make"])
def test_headings_become_anchors(heading: str) -> None:
    assert anchor(heading) in {"a-triples-way", "streams-that-queries-make"}


def test_pages_and_headings_that_are_cited_exist() -> None:
    wrong = []
    for source in SOURCES:
        for page, heading in PAGE.findall(source.read_text()):
            there = (ROOT / page).exists() and (not heading or heading[1:] in anchors(ROOT / page))
            wrong += [] if there else [f"{source.relative_to(ROOT)} cites {page}{heading}"]
    assert not wrong, "\n".join(wrong)


def test_anchors_of_specifications_are_defined_there() -> None:
    cited = [
        (source, name)
        for source in SOURCES
        for name in re.findall(re.escape(SPARQL) + r"([\w-]+)", source.read_text())
    ]
    assert cited, "the algebra says where SPARQL defines its nodes"
    wrong = [f"{source.name}: {name}" for source, name in cited if name not in DEFINED]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_cited_that_is_not_here() -> None:
    wrong = [
        f"{source.relative_to(ROOT)}: {found[0]}"
        for source in SOURCES
        if (found := ELSEWHERE.search(source.read_text()))
    ]
    assert not wrong, "\n".join(wrong)
