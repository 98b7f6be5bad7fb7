"""Random sets of GROUP BYs over the same rows: of other windows, functions, conditions, and starts.

A set has one group of patterns, with a condition or none, and one key, mostly; each of its queries
draws its window, its options and its aggregates, and now and then another of the rest. In half of
the sets all queries have the same aggregates, in half each has a condition of its own: where only
the first is so, they differ in their windows alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from support.generators.case import CaseQuery
from support.generators.sketches import STREAM
from support.generators.texts import Asked, Drawn, rspql
from support.generators.windows import ORIGINS, PASTS, RANGES, STEPS, Clause

GROUPS = (
    ("?x :p ?v", ("?x", "?v", "")),
    ("?x :p ?v", ("?x", "")),
    ("?x :p ?v . ?x :q ?y", ("?x", "?y", "?x ?y", "")),
    ("?y :q ?x . ?x :p ?v . ?y :p ?u", ("?x", "?y", "?u", "")),
    ("?x :p ?v OPTIONAL { ?x :q ?y }", ("?x", "?y", "")),
)
FUNCTIONS = ("SUM(?v)", "AVG(?v)", "COUNT(?v)", "COUNT(*)", "MIN(?v)", "MAX(?v)", "SAMPLE(?v)")
RARE = ("COUNT(DISTINCT ?v)", "SUM(?v + 1)")
CONDITIONS = ("", "", "", "", "", "", "?v > 1", "?v > 2", "?v < 5", "?x = :a")
OWN = (
    *("", "?v > 1", "?v > 2", "?v > 4.5", "?v >= 2.5", "?v < 5", "?v <= 4.0e0", "?v = 1", "2 < ?v"),
    *("?v > 1 && ?v < 5", "?v >= 1.5 && ?v <= 4", "?v > 5", "?v != 1", "?v * 2 > 5", "?v > :a"),
    *("?x = :a", "?x = :b", "?x IN (:a, :c)", "sameTerm(?x, :c)", "?x = :a && ?v > 1"),
    *("?v < 'INF'^^xsd:double", "?v > 2 && ?x != :b", "?v > 9007199254740993", "?x = :d"),
    *('STRSTARTS(STR(?v), "1")', 'STR(?v) >= "2"', 'STRSTARTS(STR(?x), "http://e/a")', "?v < '3'"),
)
OUTPUTS = ("RSTREAM", "RSTREAM", "RSTREAM", "ISTREAM")


@st.composite
def clauses(draw: st.DrawFn) -> Clause:
    """A window with a step; some are in the past, a few are none that closes."""
    step = draw(st.sampled_from((*STEPS, 1500, 700)))
    match draw(st.integers(0, 9)):
        case 8:
            length, to = draw(st.sampled_from(PASTS))
            return Clause("step", length, step, to=to)
        case 9:
            return draw(st.sampled_from((Clause("range", 3000), Clause("count", count=4))))
        case _:
            return Clause("step", draw(st.sampled_from(RANGES)), step)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, str]:
    """A group of patterns, maybe with a condition, and what its rows are grouped by."""
    patterns, keys = draw(st.sampled_from(GROUPS))
    return body(patterns, draw(st.sampled_from(CONDITIONS))), draw(st.sampled_from(keys))


def body(patterns: str, condition: str) -> str:
    """A group of patterns with a condition, if there is one."""
    told = f" FILTER({condition})" if condition else ""
    return f"WINDOW :w {{ {patterns}{told} }}"


aggregates = st.lists(st.sampled_from((*FUNCTIONS * 3, *RARE)), min_size=1, max_size=2, unique=True)


@st.composite
def grouped(
    draw: st.DrawFn, name: str, body: str, key: str, chosen: Sequence[str] = ()
) -> CaseQuery:
    """One GROUP BY; ``chosen``: its aggregates, if these are not drawn."""
    chosen = chosen or draw(aggregates)
    shown = " ".join(f"({one} AS ?n{i})" for i, one in enumerate(chosen))
    tail = f" GROUP BY {key}" if key else ""
    if key and draw(st.integers(0, 5)) == 5:
        tail += " HAVING (COUNT(*) > 1)"
    head = f"SELECT {key} {shown}"
    if key == "?x" and draw(st.integers(0, 7)) == 7:
        names = " ".join(f"?n{i}" for i in range(len(chosen)))
        body = f"{{ {head} WHERE {{ {body} }}{tail} }} OPTIONAL {{ WINDOW :w {{ ?x :q ?o }} }}"
        head, tail = f"SELECT ?x {names} ?o", ""
    options: dict[str, object] = {}
    if draw(st.integers(0, 2)) == 2:
        options["t0"] = draw(st.sampled_from(ORIGINS))
    if draw(st.integers(0, 3)) == 3:
        options["bounds"] = "(]"
    if draw(st.integers(0, 7)) == 7:
        options["report"] = draw(st.sampled_from(("periodic:1700ms", "nonempty")))
    windows = {"w": (STREAM, draw(clauses()))}
    free = "SAMPLE(?v)" in chosen  # any is right, so there are no right differences
    return rspql(
        Drawn(
            name,
            Asked(head, tail),
            body,
            windows,
            options,
            "RSTREAM" if free else draw(st.sampled_from(OUTPUTS)),
        )
    )


@st.composite
def grouped_sets(draw: st.DrawFn, most: int) -> list[CaseQuery]:
    """3 to ``most`` GROUP BYs, most of them of the same rows."""
    one, own = draw(bodies()), draw(st.booleans())
    same = draw(aggregates) if draw(st.booleans()) else ()
    patterns, keys = draw(st.sampled_from(GROUPS))
    key = draw(st.sampled_from(keys))
    found = []
    for i in range(draw(st.integers(3, most))):
        drawn = draw(bodies()) if draw(st.integers(0, 5)) == 5 else one
        drawn = (body(patterns, draw(st.sampled_from(OWN))), key) if own else drawn
        found.append(draw(grouped(f"q{i}", *drawn, same)))
    return found


LIMITS = ("1", "2", "4.5", "2.5", "5", "4.0e0", "1.5", "-1", "9", "0.5e1", "1.50")
FORMS = (
    *("?v > {}", "?v >= {}", "?v < {}", "?v <= {}", "?v = {}", "{} < ?v"),
    *("?v > {} && ?v < {}", "?v >= {} && ?v <= {}", "?x = {where} && ?v > {}"),
    *("?x IN (:a, {where}) && ?v >= {}", 'STR(?v) >= "{}"', 'STRSTARTS(STR(?v), "{}")'),
)
BORDERS = ("'INF'^^xsd:double", "'NaN'^^xsd:double", "9007199254740993", "9007199254740992", "'2'")
CELLED = (
    ("?x :p ?v", "?x"),
    ("?x :p ?v", "?v"),
    ("?x :p ?v . ?x :q ?y", "?y"),
    ("?x :p ?v . ?x :q ?y", "?x ?y"),
)


@st.composite
def celled_sets(draw: st.DrawFn, most: int) -> list[CaseQuery]:
    """4 to ``most`` GROUP BYs of the same rows and aggregates, whose conditions are of one form or
    two and differ in their constants, and which have one window or two.
    """
    patterns, key = draw(st.sampled_from(CELLED))
    chosen = draw(aggregates.filter(lambda found: not set(found) & set(RARE)))
    forms = [draw(st.sampled_from(FORMS)) for _ in range(draw(st.sampled_from((1, 1, 2))))]
    closing = clauses().filter(lambda clause: clause.kind == "step")
    windows = [draw(closing) for _ in range(draw(st.sampled_from((1, 1, 2))))]
    limits = LIMITS + (BORDERS if draw(st.integers(0, 5)) == 5 else ())
    output = "RSTREAM" if "SAMPLE(?v)" in chosen else draw(st.sampled_from(OUTPUTS))
    shown = " ".join(f"({one} AS ?n{i})" for i, one in enumerate(chosen))
    asked = Asked(f"SELECT {key} {shown}", f" GROUP BY {key}")
    found = []
    for i in range(draw(st.integers(4, most))):
        two = (draw(st.sampled_from(limits)) for _ in range(2))
        where = draw(st.sampled_from((":a", ":b", ":c", ":d")))
        told = draw(st.sampled_from(forms)).format(*two, where=where)
        options: dict[str, object] = {"t0": 500} if draw(st.integers(0, 7)) == 7 else {}
        window = {"w": (STREAM, draw(st.sampled_from(windows)))}
        found.append(rspql(Drawn(f"q{i}", asked, body(patterns, told), window, options, output)))
    return found
