"""Random group patterns over windows and static graphs, with the variables that they bind.

A ``Scope`` maps variables to what they hold: "node" (an IRI), "number", "string", "predicate",
"any" (terms of any kind), "computed" (a literal that an expression made), "maybe" (possibly
unbound). Texts say ``WINDOW :w0 {..}``; the reference's text has ``GRAPH`` in its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from support.generators.expressions import bindings, conditions
from support.generators.paths import PATHS, STATIC_PATHS
from support.generators.vocabulary import Scope

_PATTERNS: tuple[tuple[str, Scope], ...] = (
    ("?s :p ?v", {"s": "node", "v": "number"}),
    ("?s :q ?x", {"s": "node", "x": "node"}),
    ("?x :p ?u", {"x": "node", "u": "number"}),
    ("?s :r ?t", {"s": "node", "t": "string"}),
    ("?s :p ?u", {"s": "node", "u": "number"}),
    ("?y :p ?v", {"y": "node", "v": "number"}),
    ("?x :q ?y", {"x": "node", "y": "node"}),
    ("?x :r ?t", {"x": "node", "t": "string"}),
    ("?s ?k ?o", {"s": "node", "k": "predicate", "o": "any"}),
    (":a :p ?v", {"v": "number"}),
    ("?s :q :b", {"s": "node"}),
    ("?s :q ?s", {"s": "node"}),
)

_STATIC: tuple[tuple[str, Scope], ...] = (
    ("?s :kind ?c .", {"s": "node", "c": "node"}),
    ("?x :kind :K .", {"x": "node"}),
    ("?s :kind ?c . ?c :name ?n .", {"s": "node", "c": "node", "n": "string"}),
    ("GRAPH :g { ?s :rank ?j }", {"s": "node", "j": "number"}),
    ("OPTIONAL { ?s :kind ?c }", {"s": "maybe", "c": "maybe"}),
    ("GRAPH ?g { ?s :rank ?j }", {"g": "node", "s": "node", "j": "number"}),
    (
        "GRAPH ?g { ?s :rank ?j } GRAPH ?g { ?x :rank ?l FILTER(?l > 1) }",
        {"g": "node", "s": "node", "x": "node"},
    ),
    (
        "GRAPH ?g { SELECT ?s (COUNT(*) AS ?l) { ?s :rank ?j } GROUP BY ?s }",
        {"g": "node", "s": "node", "l": "number"},
    ),
    ("GRAPH ?g { SELECT (SUM(?j) AS ?l) { ?x :rank ?j } }", {"g": "node", "l": "number"}),
    ("GRAPH ?g { }", {"g": "node"}),
    ("GRAPH ?g { ?s :p ?u }", {"g": "node", "s": "node", "u": "number"}),
    ("GRAPH ?g { ?s :q ?x . ?x :p ?u }", {"g": "node", "s": "node", "x": "node", "u": "number"}),
    *STATIC_PATHS,
)

_VALUES: tuple[tuple[str, Scope], ...] = (
    ("VALUES ?s { :a :b :c }", {"s": "node"}),
    ("VALUES (?s ?z) { (:a 1) (:a 2) (:b UNDEF) }", {"s": "node", "z": "maybe"}),
    ("VALUES ?v { 1 2.5 5 }", {"v": "number"}),
    ("VALUES (?s ?z) { (:a 1) (UNDEF 2) }", {"s": "node", "z": "maybe"}),
)

_OPTIONALS: tuple[tuple[str, str], ...] = (
    ("?s :r ?opt", ""),
    ("?s :p ?opt", ""),
    ("?s :p ?opt", "FILTER(?opt > 2)"),
    ("?s :p ?opt", "FILTER(?opt > ?v)"),
    ("?s :q ?opt . ?opt :p ?w", ""),
)

_SUBSELECTS: tuple[tuple[str, Scope], ...] = (
    (
        "SELECT ?s (COUNT(*) AS ?n) WHERE {{ WINDOW {w} {{ ?s :p ?m }} }} GROUP BY ?s",
        {"s": "node", "n": "number"},
    ),
    (
        "SELECT ?s (MAX(?m) AS ?n) WHERE {{ WINDOW {w} {{ ?s :p ?m }} }} GROUP BY ?s",
        {"s": "node", "n": "number"},
    ),
    ("SELECT DISTINCT ?s WHERE {{ WINDOW {w} {{ ?s :q ?m }} }}", {"s": "node"}),
    (
        "SELECT ?s ?m WHERE {{ WINDOW {w} {{ ?s :p ?m }} }} ORDER BY DESC(?m) ?s LIMIT 2",
        {"s": "node", "m": "number"},
    ),
    ("SELECT (SUM(?m) AS ?n) WHERE {{ WINDOW {w} {{ ?z :p ?m }} }}", {"n": "number"}),
)


_MINUS = (
    "WINDOW {w} {{ ?s :q ?mx }}",
    "WINDOW {w} {{ ?s :p ?v }}",
    "WINDOW {w} {{ ?x :p ?mu }}",
    "WINDOW {w} {{ ?s :r ?mt OPTIONAL {{ ?s :p ?v }} }}",
    "WINDOW {w} {{ ?my :q ?mz }}",
    "WINDOW {w} {{ ?s :q+ ?x }}",
    "WINDOW {w} {{ ?mo :q* ?s }}",
    "?s :kind :K",
    "VALUES (?s ?z) {{ (:a UNDEF) (UNDEF 2) (UNDEF UNDEF) }}",
    "GRAPH ?g {{ ?s :rank 2 }}",
)

_EXISTS = (
    "WINDOW {w} {{ ?s :q ?ex }}",
    "WINDOW {w} {{ ?s :p ?ev FILTER(?ev > 2) }}",
    "WINDOW {w} {{ ?s :p ?ev FILTER(?ev > ?v) }}",
    "WINDOW {w} {{ ?ey :p ?ev }} FILTER(?ev < ?v && ?ey != ?s)",
    "WINDOW {w} {{ ?s :r ?et OPTIONAL {{ ?s :q ?eo }} }}",
    "WINDOW {w} {{ ?s :q ?ex FILTER NOT EXISTS {{ ?ex :r ?et }} }}",
    "{{ WINDOW {w} {{ ?x :q :b }} }} UNION {{ ?s :kind :L }}",
    "{{ SELECT ?s WHERE {{ WINDOW {w} {{ ?s :p ?em }} }} GROUP BY ?s HAVING(COUNT(*) > 1) }}",
    "WINDOW {w} {{ ?ey :q ?ey }}",
    "WINDOW {w} {{ ?s :q ?ex MINUS {{ ?s :q ?ex . ?ex :r ?et }} }}",
    "WINDOW {w} {{ ?s :q+/:p ?ev }}",
    "WINDOW {w} {{ ?s ^:q+ ?ex }}",
    "?s :kind :K",
    "GRAPH :g {{ ?s :rank ?v }}",
    "GRAPH ?g {{ ?s :rank ?ej }}",
)

# they look at ?s or ?v before they bind it, which can be done where it is always bound outside
_EARLY = (
    "WINDOW {w} {{ {{ ?ey :q ?ex FILTER(?ex = ?s) }} ?ey :p ?ev }}",
    "WINDOW {w} {{ ?ey :p ?ev BIND(?s AS ?eb) ?eb :q ?ez }}",
    "WINDOW {w} {{ ?ey :q ?ex OPTIONAL {{ ?ey :q ?s }} }}",
    "WINDOW {w} {{ ?ey :q ?ex FILTER NOT EXISTS {{ ?ey :p ?v }} }}",
    "WINDOW {w} {{ ?ey :q ?ex MINUS {{ ?ex :p ?v }} }}",
    "WINDOW {w} {{ ?ey :p ?ev MINUS {{ ?ey :q ?ex . ?ex :q ?s }} }}",
    "{{ SELECT ?s ?em WHERE {{ WINDOW {w} {{ ?s :p ?em }} }} ORDER BY DESC(?em) LIMIT 1 }}",
    "{{ SELECT ?v ?ey WHERE {{ WINDOW {w} {{ ?ey :p ?em FILTER(?em > ?v) }} }} }} ?ey :kind ?ek",
    "{{ SELECT ?v (COUNT(*) AS ?en) WHERE {{ WINDOW {w} {{ ?ey :p ?em "
    "FILTER(?em > ?v) }} }} GROUP BY ?v HAVING(COUNT(*) > 1) }}",
)


_LATEST = "<http://larkc.eu/csparql/sparql/jena/ext#timestamp>"
_TIMES: tuple[tuple[str, Scope, set[str]], ...] = (  # of triples that are in a window, or may be
    (f"BIND({_LATEST}(?s, :p, ?v) AS ?ts)", {"ts": "maybe"}, {"s", "v"}),
    (f"BIND({_LATEST}(?s, :q, ?x) AS ?ts)", {"ts": "maybe"}, {"s", "x"}),
    (f"FILTER({_LATEST}(?s, :p, ?v) >= {_LATEST}(?s, :q, ?x))", {}, {"s", "v", "x"}),
    (f"FILTER({_LATEST}(?x, :p, ?u) != {_LATEST}(?s, :q, ?x))", {}, {"s", "u", "x"}),
    (f"FILTER(!({_LATEST}(?s, :p, ?v) < 3000))", {}, {"s", "v"}),
)

_TESTS: tuple[tuple[str, Scope], ...] = (
    ("FILTER {0}", {}),
    ("FILTER {0}", {}),
    ("FILTER({0} || {condition})", {}),
    ("FILTER({condition} && ({condition} || {0}))", {}),
    ("BIND({0} AS ?eb0)", {"eb0": "computed"}),
    ('BIND(IF({0}, "yes", "no") AS ?eb0)', {"eb0": "computed"}),
)


def reference_text(body: str, graphs: Sequence[str] = ("g", "h", "both")) -> str:
    """A body as the reference reads it: windows are named graphs, and GRAPH with a variable is
    spelled out as 18.6 defines it, the union over the dataset's graphs. (pyoxigraph's own goes over
    the windows, and evaluates a sub-select once for all graphs.)

    >>> reference_text("WINDOW :w { } GRAPH ?g { ?s ?p ?o }", ["h"])
    'GRAPH :w { } { { GRAPH :h { ?s ?p ?o } VALUES ?g { :h } } }'
    """
    found = _GRAPH.search(body)
    if found is None:
        return body.replace("WINDOW", "GRAPH")
    end = _closing(body, found.end())
    inner, rest = (
        reference_text(part, graphs) for part in (body[found.end() : end], body[end + 1 :])
    )
    name = found.group(1)
    branches = [f"{{ GRAPH :{g} {{{inner}}} VALUES {name} {{ :{g} }} }}" for g in graphs]
    whole = "{ " + (" UNION ".join(branches) or f"VALUES {name} {{ }}") + " }"
    return body[: found.start()].replace("WINDOW", "GRAPH") + whole + rest


_GRAPH = re.compile(r"GRAPH (\?\w+) \{")


def _closing(text: str, at: int) -> int:
    """The place of the brace that closes the one before ``at``; strings of the cases have none."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at - 1


@st.composite
def bodies(draw: st.DrawFn, windows: Sequence[str], static: int = 3) -> tuple[str, Scope]:
    """A group's text, without its braces, and its scope; every window is read, static data in one
    of so many and one cases.
    """
    core = draw(
        st.sampled_from(("join", "join", "join", "union", "optional", "subselect", "anywhere"))
    )
    build = {
        "join": _joined,
        "union": _union,
        "optional": _optional,
        "subselect": _subselect,
        "anywhere": _anywhere,
    }[core]
    text, scope = draw(build(windows))
    for extra, chance in ((_STATIC, static), (_VALUES, 5)):
        if draw(st.integers(0, chance)) == chance:
            more, bound = draw(st.sampled_from(extra))
            text, scope = f"{text} {more}", {**bound, **scope}
    if draw(st.integers(0, 3)) == 3:
        more, kind = draw(bindings(scope))
        text, scope = f"{text} BIND({more} AS ?e)", {**scope, "e": kind}
    if windows and draw(st.integers(0, 7)) == 7:
        more, bound = draw(
            st.sampled_from([t for t in _TIMES if t[2] <= scope.keys()] or [("", {}, set())])
        )[:2]
        text, scope = f"{text} {more}", {**scope, **bound}
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        text = f"{text} FILTER({draw(conditions(scope))})"
    if draw(st.integers(0, 4)) == 4:
        text = (
            f"{text} MINUS {{ "
            f"{draw(st.sampled_from(_MINUS)).format(w=draw(st.sampled_from(windows)))} }}"
        )
    if draw(st.integers(0, 4)) == 4:
        sure = "UNDEF" not in text and "maybe" not in (scope.get("s"), scope.get("v"))
        inner = draw(st.sampled_from(_EXISTS + _EARLY if sure else _EXISTS)).format(
            w=draw(st.sampled_from(windows))
        )
        test = f"{draw(st.sampled_from(('', 'NOT ')))}EXISTS {{ {inner} }}"
        form, bound = draw(st.sampled_from(_TESTS))
        text = f"{text} {form.format(test, condition=draw(conditions(scope)))}"
        scope = {**scope, **bound}
    return text, scope


@st.composite
def _joined(draw: st.DrawFn, windows: Sequence[str]) -> tuple[str, Scope]:
    """One to three triple patterns, at least one in each window, mostly connected."""
    scope: Scope = {}
    parts = []
    budget = 3 - len(windows)
    for window in windows:
        count = 1 + (draw(st.integers(0, budget)) if budget > 0 else 0)
        budget -= count - 1
        text, scope = draw(_block(window, scope, count))
        parts.append(text)
    return " ".join(parts), scope


@st.composite
def _block(draw: st.DrawFn, window: str, scope: Scope, count: int = 1) -> tuple[str, Scope]:
    """``WINDOW w { .. }`` of so many patterns, and the scope with what they bind; seldom with a
    filter inside.
    """
    chosen: list[str] = []
    inside: Scope = {}
    for _ in range(count):
        bound = {**scope, **inside}
        every = PATHS if draw(st.integers(0, 5)) == 5 else _PATTERNS
        near = [
            p for p in every if p[0] not in chosen and (not bound or bound.keys() & p[1].keys())
        ]
        free = draw(st.integers(0, 11)) == 11
        text, binds = draw(st.sampled_from(every if free or not near else near))
        chosen.append(text)
        inside = {**inside, **binds}
    text = " . ".join(chosen)
    if draw(st.integers(0, 7)) == 7:
        text = f"{text} FILTER({draw(conditions(inside))})"
    return f"WINDOW {window} {{ {text} }}", {**scope, **inside}


@st.composite
def _anywhere(draw: st.DrawFn, windows: Sequence[str]) -> tuple[str, Scope]:
    """A block in each window, and one in whichever."""
    text, scope = draw(_joined(windows))
    more, scope = draw(_block("?in", scope, 1))
    return f"{text} {more}", {**scope, "in": "node"}


@st.composite
def _union(draw: st.DrawFn, windows: Sequence[str]) -> tuple[str, Scope]:
    left, first = draw(_block(windows[0], {}, draw(st.integers(1, 2))))
    right, second = draw(_block(windows[-1], {}, 1))
    scope = {
        name: (kind if name in first and name in second else "maybe")
        for name, kind in {**first, **second}.items()
    }
    return f"{{ {left} }} UNION {{ {right} }}", scope


@st.composite
def _optional(draw: st.DrawFn, windows: Sequence[str]) -> tuple[str, Scope]:
    left, scope = draw(_block(windows[0], {"s": "node"}, draw(st.integers(1, 2))))
    right, condition = draw(st.sampled_from(_OPTIONALS))
    scope = {**scope, "opt": "maybe"}
    if "?w" in right:
        scope["w"] = "maybe"
    if "?s" not in left:
        scope["s"] = "maybe"
    if len(windows) == 1 and draw(st.booleans()):
        return f"{left[:-2]} OPTIONAL {{ {right} {condition} }} }}", scope
    return f"{left} OPTIONAL {{ WINDOW {windows[-1]} {{ {right} }} {condition} }}", scope


@st.composite
def _subselect(draw: st.DrawFn, windows: Sequence[str]) -> tuple[str, Scope]:
    inner, binds = draw(st.sampled_from(_SUBSELECTS))
    outer, scope = draw(_block(windows[0], {"s": "node"}, draw(st.integers(1, 2))))
    if "?s" not in outer and "s" not in binds:
        scope = {name: kind for name, kind in scope.items() if name != "s"}
    return f"{outer} {{ {inner.format(w=windows[-1])} }}", {**binds, **scope}
