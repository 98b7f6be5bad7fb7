"""Random cases of joins of three to five parts by one variable, which can be one step, and of some
that cannot: over two streams, windows of several kinds, repeated triples and disorder.
"""

from __future__ import annotations

from hypothesis import strategies as st

from support.generators import Case, CaseQuery, Clause, elements
from support.generators.vocabulary import STATIC
from support.query_dsl import S, T, query

PARTS = (
    "?x :q ?b", "?x :p ?n", "?x :r ?s", "?c :q ?x", "?x :q :b", "?x :p ?m", "?x :q ?d", "?d :q ?x",
    "?x :p 1", "?e :q ?x",
)  # fmt: skip
MORE = ("", "", "", " FILTER(?n > 1)", " FILTER(?b != ?c)", " ?x :kind ?k", " FILTER(?n < ?m)")
SHAPES = (
    "?x :q ?y . ?y :q ?z . ?z :q ?x",
    "?x :q ?y . ?y :q ?z . ?z :p ?n",
    "?x :q ?y . ?x :p ?n . ?y :q ?z . ?y :p ?m",
    "?x :q ?b . ?x :p ?n . ?x :r ?s . ?b :q ?x",
)
CLAUSES = (
    Clause("step", 4000, 1000),
    Clause("range", 3000),
    Clause("step", 2000, 2000),
    Clause("range", 10_000),
    Clause("step", 5000, 1500, to=1000),
    Clause("step", 4000, 1000),
    Clause("range", 3000),
    Clause("all"),
    Clause("now"),
    Clause("count", count=4),
    Clause("session", 1000),
)
OUTPUTS = ("RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM")


@st.composite
def starred(draw: st.DrawFn, least: int = 8) -> Case:
    """One to three queries over two streams."""
    late = draw(st.sampled_from((0, 0, 1500)))
    streams = {name: draw(elements(lateness=late, least=least)) for name in (S, T)}
    asked = [draw(_queries(f"q{i}")) for i in range(draw(st.integers(1, 3)))]
    return Case(streams, tuple(asked), late, STATIC)


@st.composite
def _queries(draw: st.DrawFn, name: str) -> CaseQuery:
    """A star, mostly; its parts in up to three windows."""
    windows: dict[str, Clause | tuple[str, Clause]] = {"w": (S, draw(st.sampled_from(CLAUSES)))}
    if draw(st.integers(0, 5)) == 0:
        body = f"WINDOW :w {{ {draw(st.sampled_from(SHAPES))} }}"
    else:
        some = draw(st.lists(st.sampled_from(PARTS), min_size=3, max_size=5, unique=True))
        within: dict[str, list[str]] = {"w": some[:1]}
        for part in some[1:]:
            w = draw(st.sampled_from(("w", "w", "v", "u")))
            within.setdefault(w, []).append(part)
            if w not in windows:
                windows[w] = (draw(st.sampled_from((S, T))), draw(st.sampled_from(CLAUSES)))
        body = " ".join(f"WINDOW :{w} {{ {' . '.join(own)} }}" for w, own in within.items())
    body += draw(st.sampled_from(MORE))
    shown = draw(st.sampled_from(("*", "*", "?x", "?x (COUNT(*) AS ?count)")))
    tail = " GROUP BY ?x" if "COUNT" in shown else ""
    output = draw(st.sampled_from(OUTPUTS))
    return query(f"SELECT {shown}", body, tail, windows=windows, output=output, name=name)
