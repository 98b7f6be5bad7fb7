"""Random continuous queries, each as a text in some dialect and as a question for the reference.

The query forms: SELECT of some variables or all, DISTINCT, ORDER BY with LIMIT (always a total
order), GROUP BY with HAVING, ungrouped aggregates, SAMPLE, ASK, CONSTRUCT; the outputs RStream,
IStream, DStream.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from levada.testing.reference_model import TripleTemplate
from support.generators.case import CaseQuery
from support.generators.expressions import aggregates
from support.generators.patterns import bodies
from support.generators.texts import Asked, Drawn, texts
from support.generators.vocabulary import Scope, iri
from support.generators.windows import Clause, clauses, options, reporting

FORMS = (
    "select",
    "select",
    "star",
    "distinct",
    "limit",
    "group",
    "group",
    "ungrouped",
    "ask",
    "construct",
    "sample",
)
HAVINGS = ("COUNT(*) > 1", "COUNT(*) >= 1", "COUNT(*) != 2")


@st.composite
def queries(
    draw: st.DrawFn,
    name: str,
    streams: Sequence[str],
    used: tuple[Clause, ...] = (),
    form: str = "",
    static: int = 3,
) -> CaseQuery:
    """A query over one or two windows on these streams (IRIs), with the given clauses and form or
    random ones.

    ``static`` is that of ``bodies``.
    """
    used = used or draw(st.lists(clauses, min_size=1, max_size=2).map(tuple))
    windows = {f"w{i}": (draw(st.sampled_from(streams)), clause) for i, clause in enumerate(used)}
    chosen = draw(options(used))
    body, scope = draw(bodies([f":{w}" for w in windows], static))
    form = form or draw(st.sampled_from(FORMS))
    asked = draw(asked_of(form, scope))
    output = (
        "RSTREAM" if form == "sample" else draw(st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM")))
    )
    told = reporting(chosen)
    stepped = all(c.kind == "step" for c in used) and not told["nonempty"]
    if form != "ask" and stepped and draw(st.integers(0, 7)) == 7:
        chosen["empty_reports"] = True
    return draw(texts(Drawn(name, asked, body, windows, chosen, output)))


@st.composite
def asked_of(draw: st.DrawFn, form: str, scope: Scope) -> Asked:
    """A head of this form over the variables of a group."""
    names = sorted(scope)
    some = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    shown = " ".join(f"?{name}" for name in some)
    match form:
        case "select":
            return Asked(f"SELECT {shown}")
        case "star":
            return Asked("SELECT *")
        case "distinct":
            return Asked(f"SELECT DISTINCT {shown}")
        case "limit":
            return Asked(
                f"SELECT {draw(st.sampled_from(('', 'DISTINCT ')))}{shown}",
                _limit(draw, some, scope),
            )
        case "group" | "ungrouped":
            return draw(_grouped(scope, [] if form == "ungrouped" else some[:2]))
        case "sample":
            return Asked(
                f"SELECT {shown} (SAMPLE(?{draw(st.sampled_from(names))}) AS ?any)",
                f" GROUP BY {shown}",
            )
        case "ask":
            return Asked("ASK")
        case "made":
            return _made(draw, scope)
        case _:
            return _construct(draw, scope)


def _limit(draw: st.DrawFn, shown: Sequence[str], scope: Scope) -> str:
    """ORDER BY over all shown variables, so that ties are equal solutions, and LIMIT, with or
    without OFFSET.
    """
    keys = []
    for name in shown:
        match scope[name]:
            case "node":
                keys.append(f"DESC(?{name})")
            case "number":
                keys.append(f"?{name} STR(DATATYPE(?{name}))")
            case "string":
                keys.append(f"STR(?{name}) LANG(?{name})")
            case _:
                keys.append(f"STR(?{name}) STR(DATATYPE(?{name})) LANG(?{name})")
    offset = draw(st.sampled_from(("", "", " OFFSET 1")))
    return f" ORDER BY {' '.join(keys)} LIMIT {draw(st.integers(1, 4))}{offset}"


@st.composite
def _grouped(draw: st.DrawFn, scope: Scope, keys: Sequence[str]) -> Asked:
    found = draw(st.lists(aggregates(scope), min_size=1, max_size=3, unique=True))
    columns = [f"?{k}" for k in keys] + [f"({text} AS ?a{i})" for i, text in enumerate(found)]
    tail = f" GROUP BY {' '.join(f'?{k}' for k in keys)}" if keys else ""
    if draw(st.integers(0, 3)) == 3:
        tail += f" HAVING({draw(st.sampled_from(HAVINGS))})"
    return Asked(f"SELECT {' '.join(columns)}", tail)


_READ = {"v": "p", "u": "p", "x": "q", "y": "q", "s": "q", "t": "r"}
"""Variables that hold what streams do, and a predicate for it there."""


def _made(draw: st.DrawFn, scope: Scope) -> Asked:
    """A CONSTRUCT of triples of the vocabulary, so that other queries find something in them; one
    comes of every solution.
    """
    nodes = [f"?{name}" for name in ("s", "x", "y") if scope.get(name) == "node"] or [iri("a")]
    bound = [n for n in _READ if scope.get(n, "maybe") != "maybe"]
    sure = [(iri(_READ[n]), f"?{n}") for n in bound] or [(iri("q"), iri("b"))]
    every = [*sure, *((iri(p), f"?{n}") for n, p in _READ.items() if scope.get(n) == "maybe")]
    first = draw(st.sampled_from(nodes)), draw(st.sampled_from(sure))
    more = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(every)), max_size=2))
    template = tuple((s, p, o) for s, (p, o) in dict.fromkeys([first, *more]))
    shown = dict.fromkeys(t for triple in template for t in triple if t[0] == "?")
    text = " . ".join(" ".join(triple) for triple in template)
    select = f"SELECT {' '.join(shown)}" if shown else "SELECT (1 AS ?one)"
    return Asked(f"CONSTRUCT {{ {text} }}", select=select, template=template)


_NODES: tuple[tuple[TripleTemplate, ...], ...] = (
    (),
    (("_:n", iri("near"), "_:m"), ("_:m", iri("is"), iri("seen"))),
    (("_:n", iri("near"), "_:n"),),
)


def _construct(draw: st.DrawFn, scope: Scope) -> Asked:
    """A template whose first triple comes of every solution, so that a report is never an empty
    graph.
    """
    nodes = [f"?{name}" for name, kind in scope.items() if kind == "node"]
    subject = draw(st.sampled_from(nodes)) if nodes else iri("it")
    other = "?" + draw(st.sampled_from(sorted(scope)))
    template: tuple[TripleTemplate, ...] = (
        (subject, iri("is"), iri("seen")),
        (subject, iri("with"), other),
    )
    if draw(st.integers(0, 2)) == 2:
        template = (*template, ("_:n", iri("of"), subject), *draw(st.sampled_from(_NODES)))
    select = " ".join(dict.fromkeys(t for triple in template for t in triple if t[0] == "?"))
    text = " . ".join(" ".join(triple) for triple in template)
    return Asked(f"CONSTRUCT {{ {text} }}", select=f"SELECT {select}", template=template)
