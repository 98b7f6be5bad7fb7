"""Random cases in which static graphs are replaced while the streams are read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from levada.testing.reference_model import Graphs, literal
from support.generators.case import Case
from support.generators.rspql import cases
from support.generators.vocabulary import OVERLAP, STATIC, TRIPLES, iri

_MORE: dict[str | None, tuple[str, ...]] = {
    None: (
        f"{iri('a')} {iri('kind')} {iri('L')}",
        f'{iri("L")} {iri("name")} "ell"',
        f"{iri('c')} {iri('kind')} {iri('K')}",
    ),
    "http://e/g": (
        f"{iri('a')} {iri('rank')} {literal(2)}",
        f"{iri('c')} {iri('rank')} {literal(7)}",
    ),
    OVERLAP: TRIPLES[3:20:5],
    "http://e/h": (f"{iri('a')} {iri('rank')} {literal(1)}",),
}


@st.composite
def contents(draw: st.DrawFn, before: Graphs) -> Graphs:
    """Static graphs that come after others: each as before, or of some of the triples that it ever
    has, or none.
    """
    now = dict(before)
    for graph in draw(
        st.lists(st.sampled_from(sorted(STATIC, key=str)), min_size=1, max_size=3, unique=True)
    ):
        every = (*STATIC[graph], *_MORE[graph])
        now[graph] = tuple(draw(st.lists(st.sampled_from(every), unique=True)))
    return now


@st.composite
def replaced_cases(draw: st.DrawFn, most: int = 3) -> Case:
    """A case with one or two replacements, between any two elements, or both between the
    same two.
    """
    case = draw(cases(most=most, static=draw(st.sampled_from((0, 0, 2)))))
    read = dict.fromkeys(case.streams, 0)
    replaced = []
    static: Graphs = case.static
    for _ in range(draw(st.integers(1, 2))):
        read = {name: draw(st.integers(n, len(case.streams[name]))) for name, n in read.items()}
        static = draw(contents(static))
        replaced.append((read, static))
    return replace(case, replaced=tuple(replaced))
