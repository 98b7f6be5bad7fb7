"""The small world of the random cases: so few terms that joins hit and triples repeat.

Three subjects; ``:p`` has numbers, ``:q`` leads to subjects, ``:r`` has strings. All numbers are
binary fractions, so their sums are the same in every order, and no two of different datatypes are
equal, so MIN and MAX have one answer; equal values of different datatypes arise in expressions. All
literals are in the store's canonical form. Two static graphs have a triple in common.
"""

from __future__ import annotations

from levada.core.rdf_terms import XSD
from levada.testing.reference_model import literal

PREFIX = "PREFIX : <http://e/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
SUBJECTS = ("a", "b", "c")

Scope = dict[str, str]
"""Variables and what they hold (``patterns``)."""


def iri(name: str) -> str:
    """A term of the vocabulary as N-Triples text."""
    return f"<http://e/{name}>"


def decimal(text: str) -> str:
    """An xsd:decimal literal as N-Triples text."""
    return f'"{text}"^^<{XSD}decimal>'


NUMBERS = (literal(1), literal(5), decimal("2.5"), literal(1.5), literal(4.0))
STRINGS = ('"ab"', '"b"', '"Ba"', '"ab"@en')

TRIPLES = (
    *(f"{iri(s)} {iri('p')} {n}" for s in SUBJECTS for n in NUMBERS),
    *(f"{iri(s)} {iri('q')} {iri(o)}" for s in SUBJECTS for o in SUBJECTS),
    *(f"{iri(s)} {iri('r')} {t}" for s in SUBJECTS[:2] for t in STRINGS),
)

OVERLAP = "http://e/both"
"""A static graph of triples that streams have, too."""

STATIC: dict[str | None, tuple[str, ...]] = {
    None: (
        f"{iri('a')} {iri('kind')} {iri('K')}",
        f"{iri('b')} {iri('kind')} {iri('K')}",
        f"{iri('c')} {iri('kind')} {iri('L')}",
        f'{iri("K")} {iri("name")} "kay"',
    ),
    "http://e/g": (
        f"{iri('a')} {iri('rank')} {literal(1)}",
        f"{iri('b')} {iri('rank')} {literal(2)}",
        f"{iri('b')} {iri('rank')} {literal(3)}",
    ),
    OVERLAP: (*TRIPLES[0:20:7], *TRIPLES[20:40:3], *TRIPLES[-2:]),
    "http://e/h": (
        f"{iri('b')} {iri('rank')} {literal(2)}",
        f"{iri('c')} {iri('rank')} {literal(5)}",
        f"{iri('g')} {iri('rank')} {literal(4)}",
    ),
}
