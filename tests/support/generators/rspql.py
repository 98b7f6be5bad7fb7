"""Random cases of RSP-QL queries over one or two RDF streams."""

from __future__ import annotations

from hypothesis import strategies as st

from support.generators.case import Case
from support.generators.elements import BASES, LATENESSES, elements
from support.generators.queries import queries
from support.generators.static import static_queries
from support.generators.vocabulary import STATIC
from support.generators.windows import Clause

STREAMS = ("http://e/s0", "http://e/s1")


@st.composite
def cases(draw: st.DrawFn, most: int = 4, used: tuple[Clause, ...] = (), static: int = 3) -> Case:
    """A case of one to ``most`` queries, with these window clauses or random ones, sometimes beside
    one without windows.

    ``static``: static data are read in one of so many and one queries. Streams that no query reads
    are left out; the second one may be without elements.
    """
    chosen = tuple(
        draw(queries(f"q{i}", STREAMS, used, static=static))
        for i in range(draw(st.integers(1, most)))
    )
    if draw(st.integers(0, 3)) == 3:
        chosen = (*chosen, draw(static_queries("once")))
    names = sorted({stream for query in chosen for stream, _ in query.reference.windows.values()})
    gap = all(query.allows_gap for query in chosen)
    lateness, base = draw(st.sampled_from(LATENESSES)), draw(st.sampled_from(BASES))
    streams = {
        name: draw(elements(lateness=lateness, base=base, gap=gap, least=0 if i else 1))
        for i, name in enumerate(names)
    }
    return Case(dict(streams), chosen, lateness, STATIC)
