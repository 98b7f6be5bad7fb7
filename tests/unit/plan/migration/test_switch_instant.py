"""From the instant on at which a query may be switched, what has seen nothing from before the start
says what the query says: so says the naive reference, of windows of all shapes.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.core.query_model import Form, Output, StreamWindow
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.plan import QueryPlan, QuerySettings
from levada.plan.logical.nodes import Query
from levada.plan.migration.migration import UNBOUNDED, reported_until, switch_instant, why_not
from levada.plan.optimizer.pipeline import optimize
from levada.testing.compare import same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, ReferenceQuery
from support.generators.windows import Clause

S, T = "http://e/s", "http://e/t"
SHAPES = (
    Clause("step", 4000, 2000), Clause("step", 2000, 2000), Clause("step", 3000, 1000),
    Clause("step", 1000, 3000), Clause("step", 5000, 1500, to=1000), Clause("range", 3000),
    Clause("range", 1000), Clause("range", 4000, to=1000), Clause("now"),
)  # fmt: skip
OPTIONS: tuple[dict[str, object], ...] = (
    {}, {}, {"t0": 500}, {"t0": 1300}, {"bounds": "(]"}, {"report": "change"},
    {"report": "nonempty"}, {"report": "periodic:1700ms"},
)  # fmt: skip
W, V = "GRAPH <http://e/w>", "GRAPH <http://e/v>"
ASKED = (
    f"SELECT ?x ?a {{ {W} {{ ?x <http://e/p> ?a }} }}",
    f"SELECT ?a ?b {{ {W} {{ ?x <http://e/p> ?a }} {V} {{ ?x <http://e/p> ?b }} }}",
    f"SELECT ?x {{ {W} {{ ?x ?p ?a }} MINUS {{ {V} {{ ?x ?p ?a }} }} }}",
    f"SELECT (COUNT(*) AS ?n) {{ {W} {{ ?x ?p ?a }} OPTIONAL {{ {V} {{ ?x ?q ?b }} }} }}",
    f"SELECT DISTINCT ?x {{ {W} {{ ?x ?p ?a }} FILTER NOT EXISTS {{ {V} {{ ?x ?p ?a }} }} }}",
)


def plan(windows: dict[str, tuple[str, Window]], clock: Window | None = None) -> QueryPlan:
    on = tuple(StreamWindow(name, stream, window) for name, (stream, window) in windows.items())
    streams = tuple({stream for stream, _ in windows.values()})
    manner = QuerySettings(Form.SELECT, Output.RSTREAM, (), (), streams, 0, False, on, clock)
    return QueryPlan("q", 0, 0, manner)


def drawn(random: Random) -> tuple[ReferenceQuery, Window | None]:
    options = dict(random.choice(OPTIONS))
    report, clock = str(options.get("report", "")), None
    if report.startswith("periodic:"):
        clock = Window(WindowKind.CLOCK, step=1700)
    windows = {
        name: (random.choice((S, S, T)), random.choice(SHAPES).window(options))
        for name in ("http://e/w", "http://e/v")
    }
    nonempty = report == "nonempty"
    outputs = ("RSTREAM",) if nonempty else ("RSTREAM", "ISTREAM", "DSTREAM")
    question = ReferenceQuery(
        random.choice(ASKED), windows, random.choice(outputs), clock=clock, nonempty=nonempty
    )
    return question, clock


def elements(random: Random) -> list[Element]:
    times = [random.randrange(0, 24_000, 250) for _ in range(random.randrange(5, 30))]
    return [
        Element(ts, (f"<http://e/{random.choice('xyz')}> <http://e/p> <http://e/{random.choice('ab')}>",))
        for ts in sorted(times)
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_behind_the_instant_elements_from_before_the_start_are_nothing(seed: int) -> None:
    random, told, other = Random(seed), 0, 0
    for _ in range(40):
        question, clock = drawn(random)
        streams = {S: elements(random), T: elements(random)}
        start = random.randrange(250, 14_000, 125)
        instant = switch_instant(plan(dict(question.windows), clock), start)
        assert instant < MAX
        whole = evaluate(question, streams)
        later = evaluate(ReferenceQuery(**{**fields(question), "after": start - 1}), streams)
        right = [r for r in whole if r.time > instant]
        difference = same(right, [r for r in later if r.time > instant])
        assert difference is None, f"{question} from {start}, {instant}: {difference}"
        told += len(right)
        other += whole != later
    assert told > 100, "something is said behind the instant"
    assert other > 10, "before it there is a difference"


def fields(question: ReferenceQuery) -> dict[str, Any]:
    return {name: getattr(question, name) for name in question.__dataclass_fields__}


REFUSED = {
    "[TRIPLES 4]": UNBOUNDED,
    "[ALL]": UNBOUNDED,
    "[SESSION PT1S]": UNBOUNDED,
    "[RANGE PT4S STEP PT2S]": "",
    "[RANGE PT4S]": "",
    "[NOW]": "",
    "[FROM NOW-PT4S TO NOW-PT1S]": "",
}


def meant(clause: str, body: str = "?x :p ?y", output: str = "RSTREAM", shown: str = "*") -> Query:
    said = (
        f"PREFIX : <http://e/> REGISTER {output} :q AS SELECT {shown} FROM NAMED WINDOW :w ON :s "
        f"{clause} WHERE {{ WINDOW :w {{ {body} }} }}"
    )
    return optimize(translate(parse(said), text=said))


@pytest.mark.parametrize("clause", REFUSED)
def test_windows_without_such_an_instant_are_refused(clause: str) -> None:
    assert why_not(meant(clause), empty_reports=False) == REFUSED[clause]


def test_what_does_not_follow_from_the_windows_is_refused() -> None:
    step = "[RANGE PT4S STEP PT2S]"
    assert why_not(meant(step), empty_reports=True) == "it shows empty reports"
    drawn = meant(step, "?x :p ?y FILTER(RAND() < 0.5)")
    assert why_not(drawn, empty_reports=False) == "it draws values by chance"
    chosen = "(SAMPLE(?y) AS ?n)"
    assert not why_not(meant(step, shown=chosen), empty_reports=False)
    told = why_not(meant(step, shown=chosen, output="ISTREAM"), empty_reports=False)
    assert told == "it reports differences of what an aggregate chooses"
    once = meant(step, "?x :p ?y VALUES ?y { :a :b }")
    assert why_not(once, empty_reports=False) == "it reads static data"
    rare = meant(step, output="DSTREAM")
    rare = replace(rare, reports=replace(rare.reports, nonempty=True))
    assert "not where nothing is there" in why_not(rare, empty_reports=False)
    assert not why_not(replace(rare, output=Output.RSTREAM), empty_reports=False)


def test_reports_are_made_up_to_the_watermark_or_before_it() -> None:
    step, change = Clause("step", 4000, 2000), Clause("range", 4000)
    for clause, reports in ((step, 7000), (change, 6999)):
        query = plan({"w": (S, clause.window({})), "v": (T, clause.window({}))})
        assert reported_until(query, {S: 9000, T: 7000}) == reports
        assert reported_until(query, {S: 9000}) == MIN
