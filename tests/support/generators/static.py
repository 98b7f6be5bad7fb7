"""Random queries without windows, over the static graphs: GRAPH with a name and with a variable,
FROM and FROM NAMED.

Such a query is answered once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from levada.testing.reference_model import ReferenceQuery
from support.generators.case import CaseQuery
from support.generators.patterns import reference_text
from support.generators.queries import FORMS, asked_of
from support.generators.vocabulary import PREFIX, Scope

_CORES: tuple[tuple[str, Scope], ...] = (
    ("?s :kind ?c", {"s": "node", "c": "node"}),
    ("?s :rank ?j", {"s": "node", "j": "number"}),
    ("?s ?k ?o", {"s": "node", "k": "predicate", "o": "any"}),
    ("GRAPH :g { ?s :rank ?j }", {"s": "node", "j": "number"}),
    ("GRAPH ?g { ?s :rank ?j }", {"g": "node", "s": "node", "j": "number"}),
    (
        "GRAPH ?g { ?s ?k ?o FILTER(?o > 1) }",
        {"g": "node", "s": "node", "k": "predicate", "o": "any"},
    ),
    ("GRAPH ?g { ?g :rank ?j }", {"g": "node", "j": "number"}),
    ("GRAPH :none { ?s :rank ?j }", {"s": "node", "j": "number"}),
    (
        "GRAPH ?g { SELECT ?s (MAX(?j) AS ?l) { ?s :rank ?j } GROUP BY ?s }",
        {"g": "node", "s": "node", "l": "number"},
    ),
    (
        "GRAPH ?g { SELECT ?s { ?s :rank ?j } ORDER BY DESC(?j) ?s LIMIT 1 }",
        {"g": "node", "s": "node"},
    ),
    ("GRAPH ?g { SELECT (COUNT(*) AS ?l) { ?s :kind ?j } }", {"g": "node", "l": "number"}),
    ("GRAPH ?g { ?s :rank ?j MINUS { ?s :rank 2 } }", {"g": "node", "s": "node", "j": "number"}),
    (
        "GRAPH ?g { ?s :rank ?j OPTIONAL { ?s :rank ?l FILTER(?l > ?j) } }",
        {"g": "node", "s": "node", "l": "maybe"},
    ),
    (
        "{ ?s :kind :K } UNION { GRAPH ?g { ?s :rank ?j } }",
        {"s": "node", "g": "maybe", "j": "maybe"},
    ),
    ("VALUES (?s ?z) { (:a 1) (:b UNDEF) }", {"s": "node", "z": "maybe"}),
)
_MORE: tuple[tuple[str, Scope], ...] = (
    ("?s :kind ?c", {"s": "node", "c": "node"}),
    ("OPTIONAL { ?s :kind ?d . ?d :name ?n }", {"s": "maybe", "d": "maybe", "n": "maybe"}),
    ("GRAPH ?g { ?s :rank ?m }", {"g": "node", "s": "node", "m": "number"}),
    ("GRAPH ?g { }", {"g": "node"}),
    ("GRAPH ?h { ?s :rank 2 }", {"h": "node", "s": "node"}),
    ("OPTIONAL { GRAPH ?g { ?s :rank ?m } }", {"g": "maybe", "s": "maybe", "m": "maybe"}),
    ("MINUS { GRAPH ?g { ?s :rank 2 } }", {}),
    ("FILTER EXISTS { GRAPH ?g { ?s :rank ?ej } }", {}),
    ("FILTER NOT EXISTS { GRAPH :h { ?s :rank ?ej } }", {}),
    ("VALUES ?c { :K }", {"c": "node"}),
    ("VALUES ?only { 7 }", {"only": "number"}),
)
_DATASETS: tuple[tuple[tuple[str, ...] | None, tuple[str, ...]], ...] = (
    (None, ()),
    (None, ()),
    (None, ()),
    (("g",), ()),
    (("g", "h"), ()),
    ((), ("h",)),
    (("h",), ("g", "h")),
)
"""The graphs of FROM (None: no clauses) and of FROM NAMED."""


def judged_in(body: str, named: Sequence[str]) -> str:
    """A body as the reference reads it in a dataset of these named graphs; it has others, which
    GRAPH does not reach.

    >>> judged_in("GRAPH :g { ?s :rank ?j }", ("h",))
    'GRAPH :none { ?s :rank ?j }'
    """
    return re.sub(
        r"GRAPH :(\w+)",
        lambda found: found[0] if found[1] in named else "GRAPH :none",
        reference_text(body, named),
    )


@st.composite
def static_queries(draw: st.DrawFn, name: str) -> CaseQuery:
    """A query over static data alone."""
    body, scope = draw(st.sampled_from(_CORES))
    for more, bound in draw(st.lists(st.sampled_from(_MORE), max_size=2)):
        body, scope = f"{body} . {more}", {**bound, **scope}
    asked = draw(asked_of(draw(st.sampled_from(FORMS)), scope))
    default, named = draw(st.sampled_from(_DATASETS))
    clauses = [f"FROM :{g}" for g in default or ()] + [f"FROM NAMED :{g}" for g in named]
    judged = reference_text(body) if default is None else judged_in(body, named)
    reference = ReferenceQuery(
        f"{PREFIX}{asked.select or asked.head} WHERE {{ {judged} }}{asked.tail}",
        {},
        template=asked.template,
        graphs=None if default is None else tuple(f"http://e/{g}" for g in default),
    )
    text = f"{PREFIX}{asked.head} {' '.join(clauses)} WHERE {{ {body} }}{asked.tail}"
    return CaseQuery(name, text, "rspql", {}, reference)
