"""Queries that are made of each other share what they have in common, and each says what it says
alone.

A set begins with a random query; each of the others is one of those before with one thing changed:
a constant, a threshold, a window, the output, what is shown, names, the order of patterns, a
pattern more or less, an OPTIONAL or an aggregate on top, or nothing. They come and go while streams
with repeated triples and disorder are read, in each mode of sharing, and are compared with the
naive reference, which knows of each query alone, and one of a set with a run of its own. What is
shared is counted, so that a test of nothing fails. 30 sets; ``LEVADA_CASES`` is another number.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asking import STREAM, at, feed, query
from cases.case import CaseQuery
from cases.elements import elements
from cases.windows import Clause
from levada import Engine
from levada.plan.sealed.steps import Join, Pick
from levada.testing.compare import same
from levada.testing.memory_sink import MemorySink
from levada.testing.question import Element, Report
from levada.testing.reference import evaluate
from levada.testing.streams import write_lines
from stepped import register

SETS = int(os.environ.get("LEVADA_CASES", "0")) or 30
PHASES = 3
pytestmark = pytest.mark.timeout(0)

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
    Clause("now"),
    Clause("all"),
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {"t0": 500}, {"t0": 1300}, {"bounds": "(]"}, {"report": "change"},
)  # fmt: skip
CONDITIONS = (
    None, "?v > 1", "?v > 2", "?v > 4", "?v >= 1.5", "?v > 1 && ?v < 5", "2.5 >= ?v", "?v = 1.0",
    "?v >= 1.5e0 && ?v <= 1.5", "?v > 1 && ?v != 2.5", "?y = :b", "?y IN (:a, :c)",
    "?v < 5 && ?y = :a",
)  # fmt: skip
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
FORMS = ("select", "select", "star", "distinct", "ask", "construct", "count", "sum")


@dataclass(frozen=True)
class Sketch:
    """A query before it is a text."""

    patterns: tuple[str, ...]
    condition: str | None = None
    clause: Clause = WINDOWS[0]
    output: str = "RSTREAM"
    form: str = "select"
    shown: tuple[int, ...] = (0,)
    optional: bool = False
    renamed: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The variables, as they come."""
        words = " ".join(self.patterns).split()
        return [*dict.fromkeys(w for w in words if w.startswith("?"))]

    def query(self, name: str) -> CaseQuery:
        """It as a text for the engine and a question for the reference."""
        names = self.names
        shown = [*dict.fromkeys(names[i % len(names)] for i in self.shown)]
        node = next(n for n in (*names, "") if n in {"?x", "?y", "?z", ""})
        body = " . ".join(self.patterns)
        more = " OPTIONAL { ?x :r ?o }" if self.optional and "?x" in names else ""
        told = self.condition or ""
        there = all(v in names for v in ("?v", "?y") if v in told)
        bound = f" FILTER({told})" if told and there else ""
        group = f"WINDOW :w {{ {body}{more} }}{bound}"
        head, tail, select = f"SELECT {' '.join(shown)}", "", ""
        template: tuple[tuple[str, str, str], ...] = ()
        match self.form:
            case "star":
                head = "SELECT *"
            case "distinct":
                head = f"SELECT DISTINCT {' '.join(shown)}"
            case "ask":
                head = "ASK"
            case "construct" if node:
                template = ((node, "<http://e/is>", shown[0]),)
                head = f"CONSTRUCT {{ {node} :is {shown[0]} }}"
                select = f"SELECT {' '.join(dict.fromkeys((node, shown[0])))}"
            case "count":
                head, tail = f"SELECT {shown[0]} (COUNT(*) AS ?n)", f"GROUP BY {shown[0]}"
            case "sum" if "?v" in names:
                head, tail = f"SELECT {node} (SUM(?v) AS ?n)", f"GROUP BY {node}"
        if self.renamed:
            head, group, tail, select = (
                text.replace("?", "?other_") for text in (head, group, tail, select)
            )
            template = tuple(
                (s.replace("?", "?other_"), p, o.replace("?", "?other_")) for s, p, o in template
            )
        return query(
            head,
            group,
            tail,
            windows={"w": self.clause},
            output=self.output,
            select=select,
            template=template,
            name=name,
            **self.options,
        )


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
    match draw(st.integers(0, 3)):
        case 0:
            return replace(sketch, condition=draw(st.sampled_from(CONDITIONS)))
        case 1:
            return replace(
                sketch,
                clause=draw(st.sampled_from(WINDOWS)),
                options=draw(st.sampled_from(OPTIONS)),
            )
        case _:
            return draw(swapped(sketch))


@st.composite
def mutations(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """A query with one thing changed."""
    match draw(st.integers(-3, 13)):
        case -3 | -2 | 0:
            return replace(sketch, condition=draw(st.sampled_from(CONDITIONS)))
        case -1 | 1:
            return replace(sketch, clause=draw(st.sampled_from(WINDOWS)))
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
            return replace(sketch, optional=not sketch.optional)
        case 11 | 12:
            return draw(swapped(sketch))
        case _:
            return sketch


@dataclass(frozen=True)
class Coming:
    """A query that comes before a phase, and goes before a later one, or not at all."""

    query: CaseQuery
    comes: int
    goes: int


@st.composite
def sets(draw: st.DrawFn) -> list[Coming]:
    """2 to 10 queries, of which half differ in little but the constants of a join."""
    found = [draw(sketches())]
    joined = draw(st.booleans())
    if joined:
        found = [replace(found[0], patterns=draw(st.sampled_from(JOINS)))]
    for _ in range(draw(st.integers(1, 9))):
        one = draw(st.sampled_from(found))
        found.append(draw(differing(one) if joined and draw(st.integers(0, 3)) else mutations(one)))
    coming = []
    for i, sketch in enumerate(found):
        comes = draw(st.sampled_from((0, 0, *range(1, PHASES))))
        goes = draw(st.sampled_from((PHASES, PHASES, *range(comes + 1, PHASES))))
        coming.append(Coming(sketch.query(f"q{i}"), comes, goes))
    return coming


def run(
    coming: Sequence[Coming],
    parts: Sequence[Sequence[Element]],
    lateness: int,
    shared: Counter[str],
    sharing: str = "exact",
    then: str = "",
) -> dict[str, list[Report]]:
    """What the queries report: the parts are read one after the other while queries come and go;
    then the streams end. The second engine on the checkpoint shares as the first, unless ``then``
    says otherwise.
    """
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        path = write_lines(Path(folder) / "s.nt", [])

        def engine(sharing: str) -> Engine:
            found = Engine(
                spark=False, checkpoint=Path(folder) / "c", partitions=2, sink=sink, epoch="1ms",
                sharing=sharing,
            )  # fmt: skip
            found.stream(STREAM, path, lateness=lateness)
            return found

        with engine(sharing) as running:
            running.start()
            for phase, part in enumerate(parts):
                for one in coming:
                    if one.goes == phase:
                        running.unregister(one.query.name)
                with running._registry.lock:  # together
                    register(running, [one.query for one in coming if one.comes == phase])
                feed(running, path, part)
                _count(running, shared)
        with engine(then or sharing) as running:
            register(running, [one.query for one in coming if one.goes == PHASES])
            running.start(once=True)
            running.await_end()
    return {one.query.name: sink.reports.get(one.query.name, []) for one in coming}


def _count(engine: Engine, shared: Counter[str]) -> None:
    """Counts the joins that queries need, and those that there are."""
    while engine._registry.changed:
        assert not engine.await_end(0.005), "a plan follows each change"
    assert engine._driver is not None and engine._driver._catalog._topology is not None
    topology = engine._driver._catalog._topology
    for plan in topology.queries.values():
        waiting = [(plan.node, plan.member)]
        while waiting:
            number, member = waiting.pop()
            node = topology.nodes[number]
            shared["needed"] += isinstance(node.shape.step, Join)
            waiting += zip(node.inputs, node.members[member].inputs, strict=True)
    for node in topology.nodes.values():
        if isinstance(node.shape.step, Join | Pick):
            kind = "there" if isinstance(node.shape.step, Join) else "picked"
            shared[kind] += len(node.members.index)


def check(
    coming: Sequence[Coming], stream: Sequence[Element], lateness: int, cuts: Sequence[int],
    shared: Mapping[str, Counter[str]], alone: int = 0,
) -> None:  # fmt: skip
    """Each query says what the reference says of it alone, in all modes; one what it says in a run
    of its own. ``shared``: what is counted, by mode.
    """
    parts = [stream[a:b] for a, b in pairwise([0, *sorted(cuts), len(stream)])]
    got = {mode: run(coming, parts, lateness, shared[mode], mode) for mode in shared}
    one = coming[alone % len(coming)]
    solo = run([one], parts, lateness, Counter())
    for each in coming:
        seen = [e.ts for part in parts[: each.comes] for e in part]
        asked = each.query.reference
        after = max(seen, default=asked.after)
        right = evaluate(replace(asked, after=after), {STREAM: stream}, {}, [])
        answers = {mode: reports[each.query.name] for mode, reports in got.items()}
        if each is one:
            answers = {**answers, "alone": solo[each.query.name]}
        for how, reports in answers.items():
            expected = right if each.goes == PHASES else right[: len(reports)]
            difference = same(expected, reports)
            assert difference is None, f"{how}: {each.query.text}\n{difference}"


def counters() -> dict[str, Counter[str]]:
    """What is shared, by mode."""
    return {mode: Counter() for mode in ("off", "exact", "relax")}


def test_each_says_what_it_says_alone() -> None:
    shared = counters()

    @settings(
        max_examples=SETS,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(sets(), st.sampled_from((0, 0, 1500)), st.data())
    def each(coming: list[Coming], lateness: int, data: st.DataObject) -> None:
        stream = data.draw(elements(lateness=lateness, least=6))
        cut = st.integers(0, len(stream))
        cuts = [data.draw(cut) for _ in range(PHASES - 1)]
        check(coming, stream, lateness, cuts, shared, data.draw(st.integers(0, 9)))

    each()
    off, exact, relax = shared.values()
    assert off["there"] == off["needed"] and not off["picked"] + exact["picked"]
    assert relax["there"] * 3 <= relax["needed"] * 2, f"a third of the joins is shared: {shared}"
    assert relax["there"] < exact["there"] and relax["picked"], f"some are relaxed: {shared}"


def test_an_earlier_coming_hides_no_later_one_from_a_newcomer() -> None:
    """Pairs that never count for those that saw both comings do for who saw the second alone."""
    sketch = Sketch(("?x :q ?y", "?y :q ?z"), shown=(0, 2))
    coming = [Coming(sketch.query(f"q{i}"), i, PHASES) for i in range(PHASES)]
    triples = ("<http://e/b> <http://e/q> <http://e/b>",)
    stream = [Element(ts, triples) for ts in (500, 2500, 3000, 3100, 3200, 7000)]
    shared = counters()
    check(coming, stream, 0, (2, 4), shared)
    assert shared["exact"]["there"] < shared["exact"]["needed"]


def sketched(sketches_: Sequence[Sketch], comes: Sequence[int] = ()) -> list[Coming]:
    """Queries that stay to the end."""
    return [
        Coming(sketch.query(f"q{i}"), comes[i] if comes else 0, PHASES)
        for i, sketch in enumerate(sketches_)
    ]


def test_what_a_long_window_hides_a_short_one_may_show() -> None:
    """An equal triple comes again: to a window without an end it is nothing new."""
    clauses = (Clause("all"), Clause("range", 1000), Clause("step", 2000, 1000), Clause("now"))
    found = sketched([Sketch(("?x :q ?y", "?y :r ?z"), clause=c, shown=(0, 2)) for c in clauses])
    stream = [at(ts, ":a :q :b . :b :r :c") for ts in (0, 500, 2500, 7000, 7000, 7900, 12_000)]
    shared = counters()
    check(found, stream, 0, (2, 5), shared)
    assert shared["relax"]["there"] == PHASES, "all share one, whatever their windows"


def test_ranges_are_each_ones_own_whatever_numbers_are() -> None:
    """Borders, other datatypes, what is no number: each says what its own condition says."""
    told = ("?v > 1", "?v >= 1", "?v < 1", "?v <= 1", "?v = 1", "?v > 1 && ?v < 1", "?v >= 0.5",
            "?v > 9007199254740992", "?v >= 9007199254740993", "?v < -1.0e0", "1 < ?v")  # fmt: skip
    found = sketched(
        [Sketch(("?x :p ?v", "?x :q ?y"), condition=one, shown=(0, 1)) for one in told],
        [i % PHASES for i in range(len(told))],
    )
    values = ("1", "1.0", "1.0e0", "0.99999999999999999", '"1"', "true", ":c", "2", "-3",
              "9007199254740993", "9007199254740992.0e0", '"NaN"^^xsd:double', '"1"^^xsd:float',
              "0.5", '"INF"^^xsd:double', '"x"^^xsd:integer')  # fmt: skip
    stream = [at(300 * i, f":x{i % 2} :p {v} ; :q :y{i % 3}") for i, v in enumerate(values * 2)]
    check(found, stream, 0, (9, 20), counters())


LITERALS = ('"1"', '"01"', "1", "1.0", "1.0e0", '"1"@en', '"1"^^<http://e/t>')


def test_constants_are_compared_as_terms_not_as_values() -> None:
    """Literals of one value are other terms, and each pattern has its own."""
    found = sketched([Sketch((f"?x :p {one}", "?x :q ?y"), shown=(0, 1)) for one in LITERALS])
    stream = [at(500 * i, f":x{i % 3} :p {one} ; :q :y{i}") for i, one in enumerate(LITERALS * 2)]
    shared = counters()
    check(found, stream, 0, (5, 11), shared)
    assert shared["relax"]["there"] <= 2 * PHASES, "the first may come alone, the others share one"
    assert shared["exact"]["there"] == len(LITERALS) * PHASES


def test_a_constant_may_stand_in_two_patterns() -> None:
    """Once the same, once another: ?x :q :a . ?x :t :a beside ?x :q :a . ?x :t :b."""
    pairs = [(a, b) for a in (":a", ":b", ":c") for b in (":a", ":b", ":c")]
    found = sketched([Sketch((f"?x :q {a}", f"?x :t {b}"), shown=(0,)) for a, b in pairs])
    stream = [
        at(300 * i, f":x{i % 2} :q {a} . :x{i % 3} :t {b}")
        for i, (a, b) in enumerate([*pairs, *reversed(pairs)])
    ]
    shared = counters()
    check(found, stream, 0, (4, 9), shared)
    assert shared["relax"]["there"] <= 2 * PHASES and shared["exact"]["there"] == PHASES * 9


def test_one_pattern_may_have_two_constants_of_one_join() -> None:
    """A pattern that meets itself: ?x :q :a . ?y :q :b, both through ?x :t ?y."""
    pairs = [(":a", ":b"), (":b", ":a"), (":a", ":a"), (":c", ":b")]
    found = sketched(
        [Sketch((f"?x :q {a}", f"?y :q {b}", "?x :t ?y"), shown=(0, 1)) for a, b in pairs],
        [0, 1, 0, 2],
    )
    stream = [at(250 * i, f":x{i % 4} :q :{'abc'[i % 3]} ; :t :x{(i * 3) % 4}") for i in range(24)]
    check(found, stream, 0, (6, 14), counters())


@pytest.mark.parametrize("then", ["off", "exact", "relax"])
@pytest.mark.parametrize("before", ["off", "exact", "relax"])
def test_a_checkpoint_goes_on_in_another_mode(before: str, then: str) -> None:
    """What runs goes on as it is; the mode is that of queries that come."""
    found = sketched(
        [Sketch((f"?x :q :{c}", "?x :r ?s"), shown=(0, 1), form=form)
         for c in "abc" for form in ("select", "count")],
        [0, 0, 0, 0, 1, 2],
    )  # fmt: skip
    stream = [at(300 * i, f':x{i % 2} :q :{"abc"[i % 3]} ; :r "v{i % 5}"') for i in range(18)]
    parts = [stream[:6], stream[6:12], stream[12:]]
    got = run(found, parts, 0, Counter(), before, then)
    for one in found:
        after = max((e.ts for part in parts[: one.comes] for e in part), default=None)
        asked = one.query.reference
        asked = asked if after is None else replace(asked, after=after)
        difference = same(evaluate(asked, {STREAM: stream}, {}, []), got[one.query.name])
        assert difference is None, f"{one.query.text}\n{difference}"


def test_a_long_window_on_one_constant_is_nobody_elses() -> None:
    """30 days on :a beside 5 s on the others: rows of these are gone after 5 s."""
    month = Clause("range", 30 * 86_400_000)
    brief = Clause("range", 5000)
    found = sketched(
        [
            Sketch((f"?x :q :{name}", "?x :r ?s"), clause=clause, shown=(0, 1), output=output)
            for name, clause in (("a", month), ("b", brief), ("c", brief), ("a", brief))
            for output in ("RSTREAM", "ISTREAM")
        ]
    )
    stream = [
        at(ts, f':x{i % 2} :q :{"abc"[i % 3]} ; :r "v{i % 5}"')
        for i, ts in enumerate((0, 1000, 2000, 9000, 10_000, 11_000, 86_400_000, 86_403_000))
    ]
    shared = counters()
    check(found, stream, 0, (3, 6), shared)
    assert shared["relax"]["there"] <= 4 * PHASES, "the first of each window, and one of the others"
