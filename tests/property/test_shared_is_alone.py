"""Queries that are made of each other share what they have in common, and each says what it says
alone.

A set begins with a random query; each of the others is one of those before with one thing changed:
a constant, a threshold, a window, the output, what is shown, names, the order of patterns, a
pattern more or less, an OPTIONAL or an aggregate on top, or nothing. They come and go while streams
with repeated triples and disorder are read, and are compared with the naive reference, which knows
of each query alone, and one of a set with a run of its own. What is shared is counted, so that a
test of nothing fails. 60 sets; ``LEVADA_CASES`` is another number.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asking import STREAM, feed, query
from cases.case import CaseQuery
from cases.elements import elements
from cases.windows import Clause
from levada import Engine
from levada.plan.sealed.steps import Join
from levada.testing.compare import same
from levada.testing.memory_sink import MemorySink
from levada.testing.question import Element, Report
from levada.testing.reference import evaluate
from levada.testing.streams import write_lines
from stepped import register

SETS = int(os.environ.get("LEVADA_CASES", "0")) or 60
PHASES = 3
pytestmark = pytest.mark.timeout(0)

PATTERNS = ("?x :q ?y", "?y :p ?v", "?x :p ?u", "?y :q ?z", "?x :r ?s", ":a :q ?y", "?x :q :b")
WINDOWS = (
    Clause("step", 4000, 2000),
    Clause("step", 2000, 2000),
    Clause("step", 3000, 1000),
    Clause("range", 3000),
    Clause("range", 1000),
)
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
FORMS = ("select", "select", "star", "distinct", "ask", "construct", "count", "sum")


@dataclass(frozen=True)
class Sketch:
    """A query before it is a text."""

    patterns: tuple[str, ...]
    bound: int | None = None
    clause: Clause = WINDOWS[0]
    output: str = "RSTREAM"
    form: str = "select"
    shown: tuple[int, ...] = (0,)
    optional: bool = False
    renamed: bool = False

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
        bound = f" FILTER(?v > {self.bound})" if self.bound is not None and "?v" in names else ""
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
        )


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    """One to three patterns that hang together by their names."""
    first = draw(st.sampled_from(PATTERNS))
    more = draw(st.lists(st.sampled_from(PATTERNS), max_size=2))
    return Sketch(
        tuple(dict.fromkeys((first, *more))),
        draw(st.sampled_from((None, 1, 2))),
        draw(st.sampled_from(WINDOWS)),
        draw(st.sampled_from(OUTPUTS)),
        draw(st.sampled_from(FORMS)),
    )


@st.composite
def mutations(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """A query with one thing changed."""
    match draw(st.integers(0, 11)):
        case 0:
            return replace(sketch, bound=draw(st.sampled_from((None, 1, 2, 4))))
        case 1:
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
            return replace(sketch, optional=not sketch.optional)
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
    """2 to 10 queries."""
    found = [draw(sketches())]
    for _ in range(draw(st.integers(1, 9))):
        found.append(draw(mutations(draw(st.sampled_from(found)))))
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
) -> dict[str, list[Report]]:
    """What the queries report: the parts are read one after the other while queries come and go;
    then the streams end.
    """
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        path = write_lines(Path(folder) / "s.nt", [])

        def engine() -> Engine:
            found = Engine(
                spark=False, checkpoint=Path(folder) / "c", partitions=2, sink=sink, epoch="1ms"
            )
            found.stream(STREAM, path, lateness=lateness)
            return found

        with engine() as running:
            running.start()
            for phase, part in enumerate(parts):
                for one in coming:
                    if one.goes == phase:
                        running.unregister(one.query.name)
                register(running, [one.query for one in coming if one.comes == phase])
                feed(running, path, part)
                _count(running, shared)
        with engine() as running:
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
    joins = [n for n in topology.nodes.values() if isinstance(n.shape.step, Join)]
    shared["there"] += sum(len(node.members.index) for node in joins)


def check(
    coming: Sequence[Coming], stream: Sequence[Element], lateness: int, cuts: Sequence[int],
    shared: Counter[str], alone: int = 0,
) -> None:  # fmt: skip
    """Each query says what the reference says of it alone; one what it says in a run of its own."""
    at = [0, *sorted(cuts), len(stream)]
    parts = [stream[a:b] for a, b in pairwise(at)]
    got = run(coming, parts, lateness, shared)
    one = coming[alone % len(coming)]
    solo = run([one], parts, lateness, Counter())
    for each in coming:
        seen = [e.ts for part in parts[: each.comes] for e in part]
        asked = each.query.reference
        after = max(seen, default=asked.after)
        right = evaluate(replace(asked, after=after), {STREAM: stream}, {}, [])
        answers: Mapping[str, list[Report]] = {"together": got[each.query.name]}
        if each is one:
            answers = {**answers, "alone": solo[each.query.name]}
        for how, reports in answers.items():
            expected = right if each.goes == PHASES else right[: len(reports)]
            difference = same(expected, reports)
            assert difference is None, f"{how}: {each.query.text}\n{difference}"


def test_each_says_what_it_says_alone() -> None:
    shared: Counter[str] = Counter()

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
    assert shared["there"] * 3 <= shared["needed"] * 2, f"a third of the joins is shared: {shared}"


def test_an_earlier_coming_hides_no_later_one_from_a_newcomer() -> None:
    """Pairs that never count for those that saw both comings do for who saw the second alone."""
    sketch = Sketch(("?x :q ?y", "?y :q ?z"), shown=(0, 2))
    coming = [Coming(sketch.query(f"q{i}"), i, PHASES) for i in range(PHASES)]
    triples = ("<http://e/b> <http://e/q> <http://e/b>",)
    stream = [Element(ts, triples) for ts in (500, 2500, 3000, 3100, 3200, 7000)]
    shared: Counter[str] = Counter()
    check(coming, stream, 0, (2, 4), shared)
    assert shared["there"] < shared["needed"]
