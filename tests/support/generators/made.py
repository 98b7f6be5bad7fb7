"""Random chains: queries that read what other queries make, beside streams from outside."""

from __future__ import annotations

from hypothesis import strategies as st

from support.generators.case import Case
from support.generators.elements import BASES, LATENESSES, elements
from support.generators.queries import queries
from support.generators.rspql import STREAMS
from support.generators.vocabulary import STATIC
from support.generators.windows import clauses


@st.composite
def made_cases(draw: st.DrawFn, most: int = 2) -> Case:
    """One or two makers, of which the second may read the first, and one to ``most`` readers of
    them. Makers come first.
    """
    few = draw(st.sampled_from(((), (draw(clauses),))))  # of one window more comes than of two
    chosen = [draw(queries("m0", STREAMS, few, form="made"))]
    if draw(st.booleans()):
        chosen.append(draw(queries("m1", ("http://e/m0", *STREAMS[:1]), form="made")))
    made = tuple(f"http://e/{query.name}" for query in chosen)
    over = (*made, made[-1], STREAMS[0])
    chosen += [draw(queries(f"q{i}", over)) for i in range(draw(st.integers(1, most)))]
    names = sorted(
        {stream for query in chosen for stream, _ in query.reference.windows.values()} - set(made)
    )
    gap = all(query.allows_gap for query in chosen)
    lateness, base = draw(st.sampled_from(LATENESSES)), draw(st.sampled_from(BASES))
    streams = {
        name: draw(elements(lateness=lateness, base=base, gap=gap, least=0 if i else 1))
        for i, name in enumerate(names)
    }
    return Case(dict(streams), tuple(chosen), lateness, STATIC)
