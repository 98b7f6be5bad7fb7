"""Random sets of SPARQL queries that are made of each other by mutation.

A set begins with a random query; each of the others is one of those before with one thing changed:
a constant, a threshold, a window, the output, what is shown, names, the order of patterns, a
pattern more or less, a part in a window of its own, an OPTIONAL, MINUS or aggregate on top, the
dialect, or nothing. Half of the sets are of queries that differ in what they want of one join.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from support.generators.case import CaseQuery
from support.generators.texts import Asked, Drawn, rspql, texts
from support.generators.windows import Clause

STREAM = "http://e/s"
PATTERNS = (
    "?x :q ?y", "?y :p ?v", "?x :p ?u", "?y :q ?z", "?x :r ?s", ":a :q ?y", "?x :q :b", "?y :q :c",
    "?y :p 1", '?x :r "ab"',
)  # fmt: skip
TERMS = ((":a", ":b", ":c"), ("1", "5", "2.5", "1.5"), ('"ab"', '"b"', '"ab"@en'))
"""Constants that are alike."""
JOINS = (
    ("?x :q ?y", "?y :q :c"),
    (":a :q ?y", "?y :p ?v"),
    ("?x :p 1", "?x :q ?y"),
    ("?x :q :b", "?x :p ?v", "?x :r ?s"),
    ('?x :r "ab"', "?x :q :a"),
    ("?x :q :a", "?y :q :b", "?x :q ?y"),
    ("?x :p ?v", "?x :q ?y"),
    ("?x :p ?v", "?y :p ?v", "?x :q ?y"),
    (":a ?x :b", "?y ?x ?v"),
)
"""Patterns that hang together by a variable, and have constants besides."""
WINDOWS = (
    Clause("step", 4000, 2000),
    Clause("step", 2000, 2000),
    Clause("step", 3000, 1000),
    Clause("range", 3000),
    Clause("range", 1000),
    Clause("range", 30_000),
    Clause("step", 5000, 1500, to=1000),
    Clause("range", 4000, to=1000),
    Clause("now"),
    Clause("all"),
    Clause("count", count=4),
    Clause("session", 1000),
)
COUNTS = tuple(Clause("count", count=n) for n in (1, 2, 3, 4, 6, 9))
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {"t0": 500}, {"t0": 1300}, {"bounds": "(]"}, {"report": "change"},
    {"report": "periodic:1700ms"}, {"report": "nonempty"},
)  # fmt: skip
CONDITIONS = (
    None, "?v > 1", "?v > 2", "?v > 4", "?v >= 1.5", "?v > 1 && ?v < 5", "2.5 >= ?v", "?v = 1.0",
    "?v >= 1.5e0 && ?v <= 1.5", "?v > 1 && ?v != 2.5", "?y = :b", "?y IN (:a, :c)",
    "?v < 5 && ?y = :a", "?v IN (1, 2.5)", "?v > 4 || ?v < 2", "sameTerm(?v, 1)", "?y != :a",
    "?v > 1 && ?v > 1.5 && ?v < 5", "?u < ?v", '?s > "ab"', '?s >= "a" && ?s < "b"',
    'STRSTARTS(?s, "a")', 'STRSTARTS(STR(?v), "1")', 'STR(?y) <= "http://e/b" && ?y != :a',
    'STRSTARTS(STR(?y), "http://e/") && ?v > 1',
)  # fmt: skip
ASKED = (
    None, "?v != 1", "?v NOT IN (1, 5)", "?v + 1 > 3", "ISIRI(?y)", "?v > 1 && ?v != 2.5",
    '?v != 1 && CONTAINS(STR(?y), "a")', "?v > 4 || ?v < 2", "?y NOT IN (:b, ?x)", "?y != :a",
)  # fmt: skip
"""Conditions that no index tells, and none."""
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
FORMS = ("select", "select", "star", "distinct", "ask", "construct", "count", "sum")
MORE = (
    "", " OPTIONAL { ?x :r ?o }", " MINUS { ?x :q :c }", " FILTER EXISTS { ?x :p ?e }",
    *(f" OPTIONAL {{ ?x :q ?o . ?o :p ?e {told}}}" for told in ("", "FILTER(?e > 1) ")),
    *(f" MINUS {{ ?x :q ?o . ?o :p ?e {told}}}" for told in ("", "FILTER(?e != 1) ")),
    *(f" FILTER EXISTS {{ ?x :q ?o . ?o :p ?e {told}}}" for told in ("", "FILTER(?e < 5) ")),
)  # fmt: skip


@dataclass(frozen=True)
class Sketch:
    """A query before it is a text; ``second``: the window of its last pattern, if it is another;
    ``any_dialect``: its text may be in others than RSP-QL.
    """

    patterns: tuple[str, ...]
    condition: str | None = None
    clause: Clause = WINDOWS[0]
    output: str = "RSTREAM"
    form: str = "select"
    shown: tuple[int, ...] = (0,)
    more: str = ""
    renamed: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    second: Clause | None = None
    any_dialect: bool = False

    @property
    def names(self) -> list[str]:
        """The variables, as they come."""
        words = " ".join(self.patterns).split()
        return [*dict.fromkeys(w for w in words if w.startswith("?"))]

    @property
    def body(self) -> str:
        """The group: its windows, and the condition."""
        names, told = self.names, self.condition or ""
        more = self.more if "?x" in names else ""
        apart = self.patterns[-1:] if self.second and len(self.patterns) > 1 else ()
        there = all(v in names for v in ("?v", "?y", "?u") if v in told)
        text = (
            f"WINDOW :w {{ {' . '.join(self.patterns[: len(self.patterns) - len(apart)])}{more} }}"
        )
        text += "".join(f" WINDOW :second {{ {pattern} }}" for pattern in apart)
        return text + (f" FILTER({told})" if told and there else "")

    def drawn(self, name: str) -> Drawn:
        """It without the words of a dialect."""
        windows = {"w": (STREAM, self.clause)}
        if ":second" in self.body and self.second:
            windows["second"] = (STREAM, self.second)
        body, asked = self.body, self._asked()
        if self.renamed:
            body = body.replace("?", "?other_")
        return Drawn(name, asked, body, windows, dict(self.options), self.output)

    def query(self, name: str) -> CaseQuery:
        """It as a text in RSP-QL and a question for the reference."""
        return rspql(self.drawn(name))

    def _asked(self) -> Asked:
        names = self.names
        shown = [*dict.fromkeys(names[i % len(names)] for i in self.shown)]
        node = next(n for n in (*names, "") if n in {"?x", "?y", "?z", ""})
        found = Asked(f"SELECT {' '.join(shown)}")
        match self.form:
            case "star":
                found = Asked("SELECT *")
            case "distinct":
                found = Asked(f"SELECT DISTINCT {' '.join(shown)}")
            case "ask":
                found = Asked("ASK")
            case "construct" if node:
                some = " ".join(dict.fromkeys((node, shown[0])))
                template = ((node, "<http://e/is>", shown[0]),)
                found = Asked(
                    f"CONSTRUCT {{ {node} :is {shown[0]} }}", "", f"SELECT {some}", template
                )
            case "count":
                found = Asked(f"SELECT {shown[0]} (COUNT(*) AS ?n)", f" GROUP BY {shown[0]}")
            case "sum" if "?v" in names and node:
                found = Asked(f"SELECT {node} (SUM(?v) AS ?n)", f" GROUP BY {node}")
        if not self.renamed:
            return found
        head, tail, select = (
            text.replace("?", "?other_") for text in (found.head, found.tail, found.select)
        )
        renamed = tuple(
            (s.replace("?", "?other_"), p, o.replace("?", "?other_")) for s, p, o in found.template
        )
        return Asked(head, tail, select, renamed)


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    """One to three patterns that hang together by their names."""
    first = draw(st.sampled_from(PATTERNS))
    more = draw(st.lists(st.sampled_from(PATTERNS), max_size=2))
    return Sketch(
        tuple(dict.fromkeys((first, *more))),
        draw(st.sampled_from(CONDITIONS)),
        draw(st.sampled_from(WINDOWS)),
        draw(st.sampled_from(OUTPUTS)),
        draw(st.sampled_from(FORMS)),
    )


@st.composite
def others(draw: st.DrawFn, pattern: str) -> str:
    """A pattern with others in the place of its constants."""
    words = pattern.split()
    for place in (0, 2):
        for alike in TERMS:
            if words[place] in alike:
                words[place] = draw(st.sampled_from(alike))
    return " ".join(words)


@st.composite
def swapped(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """A query with other constants."""
    return replace(sketch, patterns=tuple(draw(others(p)) for p in sketch.patterns))


@st.composite
def differing(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """A query that wants other rows of the same join."""
    match draw(st.integers(0, 5)):
        case 0:
            return replace(sketch, condition=draw(st.sampled_from(CONDITIONS)))
        case 4:
            return replace(sketch, condition=draw(st.sampled_from(ASKED)))
        case 5:
            return replace(sketch, more=draw(st.sampled_from(MORE)))
        case 1:
            second = sketch.second and draw(st.sampled_from(WINDOWS[:-2]))
            alike = COUNTS if sketch.clause in COUNTS else WINDOWS[:-2]
            clause, options = draw(st.sampled_from(alike)), draw(st.sampled_from(OPTIONS))
            return replace(sketch, clause=clause, options=options, second=second)
        case _:
            return draw(swapped(sketch))


@st.composite
def mutations(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """A query with one thing changed."""
    match draw(st.integers(-3, 15)):
        case -3 | -2 | 0:
            return replace(sketch, condition=draw(st.sampled_from(CONDITIONS)))
        case -1 | 1:
            alike = COUNTS if sketch.clause in COUNTS and draw(st.booleans()) else WINDOWS
            return replace(sketch, clause=draw(st.sampled_from(alike)))
        case 2:
            return replace(sketch, output=draw(st.sampled_from(OUTPUTS)))
        case 3 | 4:
            return replace(sketch, form=draw(st.sampled_from(FORMS)))
        case 5 | 6:
            places = st.lists(st.integers(0, 4), min_size=1, max_size=3)
            return replace(sketch, shown=tuple(draw(places)))
        case 7:
            return replace(sketch, renamed=not sketch.renamed)
        case 8:
            return replace(sketch, patterns=tuple(draw(st.permutations(sketch.patterns))))
        case 9:
            more = (*sketch.patterns, draw(st.sampled_from(PATTERNS)))
            some = more[1:] if draw(st.booleans()) else more
            return replace(sketch, patterns=tuple(dict.fromkeys(some))[:3])
        case 10:
            if draw(st.booleans()):
                return replace(sketch, options=draw(st.sampled_from(OPTIONS)))
            return replace(sketch, more=draw(st.sampled_from(MORE)))
        case 11 | 12:
            return draw(swapped(sketch))
        case 13:
            return replace(sketch, any_dialect=not sketch.any_dialect)
        case 14:
            return replace(sketch, second=draw(st.sampled_from((None, *WINDOWS[:-2]))))
        case _:
            return sketch


@st.composite
def sketched_sets(draw: st.DrawFn, most: int) -> list[CaseQuery]:
    """2 to ``most`` queries, of which half differ in little but what they want of a join."""
    found = [draw(sketches())]
    joined = draw(st.integers(0, 2)) > 0
    if joined:
        second = draw(st.sampled_from((None, None, None, *WINDOWS[:3])))
        found = [replace(found[0], patterns=draw(st.sampled_from(JOINS)), second=second)]
        if found[0].clause is WINDOWS[-1]:
            found = [replace(found[0], clause=draw(st.sampled_from(WINDOWS[:-2])))]
    for _ in range(draw(st.sampled_from((1, 3, 5, 9, 9, 9, 20, 39))) if most > 9 else 4):
        one = draw(st.sampled_from(found))
        found.append(draw(differing(one) if joined and draw(st.integers(0, 3)) else mutations(one)))
    return [draw(_texts(sketch, f"q{i}")) for i, sketch in enumerate(found[:most])]


@st.composite
def _texts(draw: st.DrawFn, sketch: Sketch, name: str) -> CaseQuery:
    if sketch.any_dialect and "WINDOW :second" not in sketch.body:
        return draw(texts(sketch.drawn(name)))
    return sketch.query(name)
