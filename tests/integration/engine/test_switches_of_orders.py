"""A query that runs goes over to a better order of its joins, once no window reaches back behind
where the new operators begin; what is told of it, and what becomes of it over stops and departures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.engine.query import Query, _Cursor
from levada.engine.status.sharing_report import read_sharing_report, show_run
from levada.plan.execution.steps import Join
from levada.plan.lowering.join_order import Conjunction, Tree
from levada.plan.topology.topology import Topology
from levada.testing.compare import same
from levada.testing.memory_sink import MemorySink
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, ReferenceQuery, Report
from levada.testing.stream_builders import lines
from support.generators import Clause
from support.polling import until_engine

S = "http://e/s"
BODY = "?x :p ?y . ?y :q ?z . ?z :r ?u"
STEP = Clause("step", 4000, 2000)
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
FIG4 = (
    "?x :s1 ?y . ?y :s2 ?z . ?z :s3 ?u",
    "?y :s2 ?z . ?z :s3 ?u",
    "?y :s2 ?z . ?z :s3 ?u . ?u :s4 ?v",
    "?a :s2 ?b . ?b :s3 ?c . ?c :s4 ?d",
)


def turned(name: str, number: int, conjunction: Conjunction) -> list[Tree]:
    """The parts of a chain from its end, or from its beginning: whichever it is not."""
    if len(conjunction.parts) < 3:
        return []
    from_end: Tree = ((2, 1), 0)
    return [((0, 1), 2) if conjunction.tree == from_end else from_end]


def chains(count: int, begin: int = 0) -> list[Element]:
    """In each second the links of a chain, of which some have others beside."""
    return [
        Element(
            1000 * i,
            (
                f"<http://e/a{i % 3}> <http://e/p> <http://e/b{i % 2}>",
                f"<http://e/b{i % 2}> <http://e/q> <http://e/c{i % 5}>",
                f"<http://e/c{i % 4}> <http://e/r> <http://e/d{i % 3}>",
            ),
        )
        for i in range(begin, begin + count)
    ]


def text(body: str, output: str = "RSTREAM", name: str = "q", clause: Clause = STEP) -> str:
    return (
        f"PREFIX : <http://e/> REGISTER {output} <http://e/{name}> AS SELECT * "
        f"FROM NAMED WINDOW :w ON :s {clause.rspql} WHERE {{ WINDOW :w {{ {body} }} }}"
    )


def right(body: str, output: str, stream: Sequence[Element], shown: str = "*") -> list[Report]:
    asked = f"PREFIX : <http://e/> SELECT {shown} {{ GRAPH :w {{ {body} }} }}"
    question = ReferenceQuery(asked, {"http://e/w": (S, STEP.window({}))}, output)
    return evaluate(question, {S: stream})


class Run:
    """An engine on a stream that grows, looked at after each ``looks`` epochs."""

    def __init__(
        self,
        folder: Path,
        forced: Callable[[str, int, Conjunction], list[Tree]] | None = turned,
        looks: int = 1,
        sink: MemorySink | None = None,
        **options: Any,
    ) -> None:
        self.folder, self.file = folder, folder / "s.nt"
        self.file.touch()
        self.sink = sink or MemorySink()
        self.engine = Engine(
            spark=False, checkpoint=folder / "c", sink=self.sink, epoch="1ms",
            **{"epoch_rows": 6, "partitions": 1} | options,
        )  # fmt: skip
        planning = self.engine._registry.planning
        self.engine._registry.planning = planning._replace(orders=forced, looks=looks)
        self.engine.stream(S, self.file)

    @property
    def topology(self) -> Topology:
        assert self.engine._driver is not None
        found = self.engine._driver._catalog._topology
        assert found is not None
        return found

    @property
    def log(self) -> list[str]:
        return [what for _, what in self.topology.sharing.journal.kept.log]

    def feed(self, elements: Sequence[Element]) -> None:
        """Appends elements, and waits until they are read."""
        with self.file.open("a") as file:
            file.writelines(f"{line}\n" for line in lines(elements))
        count = sum(1 for _ in self.file.open())
        while sum(record.elements for record in self.engine._records().values()) < count:
            assert not self.engine.await_end(0.002)

    def says(self, name: str, expected: Sequence[Report]) -> None:
        """Waits until what is committed is published, too: a query's reports are these."""
        until_engine(self.engine, lambda: same(expected, self.sink.reports[name]) is None)

    def settle(self) -> None:
        """Waits until the plan is that of the queries."""
        while self.engine._registry.changed:
            assert not self.engine.await_end(0.002)

    def ended(self) -> None:
        """Ends the streams."""
        self.engine.close()

    def joins(self) -> int:
        nodes = (n for n in self.topology.graph.nodes.values() if isinstance(n.shape.step, Join))
        return sum(len(node.members.index) for node in nodes)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    open_: list[Run] = []

    def begun(**options: Any) -> Run:
        found = Run(tmp_path, **options)
        open_.append(found)
        return found

    yield begun
    for run in open_:
        run.engine.close()


def _kept(query: Query) -> int:
    return sum(len(batch.report) for batch in _Cursor(query).batches())


def test_orders_that_change_all_the_time_change_no_result(runs: Callable[..., Run]) -> None:
    run = runs(partitions=2)
    queries = {o: run.engine.register(text(BODY, o, o), name=o) for o in OUTPUTS}
    run.engine.start()
    stream = chains(24)
    run.feed(stream)
    while run.sink.reports.get("RSTREAM", [Report(0)])[-1].time < 22_000:
        assert not run.engine.await_end(0.002)
    assert sum("has gone over" in what for what in run.log) > 5, run.log
    for output, query in queries.items():
        own = [r for r in right(BODY, output, stream) if r.time <= stream[-1].ts]
        run.says(output, own)
        rows = sum(len(list(r.solutions.elements())) for r in own)
        # results of before and after are the query's; a sink has them a moment before readers do
        until_engine(run.engine, lambda q=query, n=rows: _kept(q) == n)  # type: ignore[misc]
        status = {q.name: q.results for q in run.engine.status().queries}
        assert status[output] == rows, "counts go on"


def test_a_switch_that_is_under_way_goes_on_after_a_stop(runs: Callable[..., Run]) -> None:
    run = runs()
    run.engine.register(text(BODY, "ISTREAM"), name="q")
    run.engine.start()
    stream = chains(7)
    run.feed(stream)
    while "q" not in run.topology.switches:  # the last one ended with the last element
        stream += chains(1, begin=len(stream))
        run.feed(stream[-1:])
    switch = run.topology.switches["q"]
    run.engine.close()
    other = runs(sink=run.sink, looks=0)
    other.engine.register(text(BODY, "ISTREAM"), name="q")
    other.engine.start()
    more = chains(15, begin=len(stream))
    other.feed(more)
    assert not other.topology.switches
    query = other.topology.queries["q"]
    assert (query.node, query.member) == (switch.node, switch.member)
    assert "q has gone over to its new order" in other.log
    found = right(BODY, "ISTREAM", [*stream, *more])
    assert same([r for r in found if r.time <= more[-1].ts], other.sink.reports["q"]) is None


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_first_of_two_goes_over_to_the_join_that_the_second_relaxes(
    runs: Callable[..., Run], output: str
) -> None:
    """They differ in a constant; no report is missing, and none is there twice."""
    first, second = (f"?x :p ?y . ?y :q :c{i}" for i in (1, 2))
    run = runs(forced=None)
    run.engine.register(text(first, output, "first"), name="first")
    run.engine.start()
    stream = chains(5)
    run.feed(stream)
    run.engine.register(text(second, output, "second"), name="second")
    run.settle()
    assert run.joins() == 2
    while run.joins() > 1:
        more = chains(3, begin=len(stream))
        run.feed(more)
        stream += more
        assert len(stream) < 60, run.log
    assert "first has gone over to joins that others share" in run.log
    stream += chains(9, begin=len(stream))
    run.feed(stream[-9:])
    run.says("first", [r for r in right(first, output, stream) if r.time <= stream[-1].ts])
    run.engine.unregister("second")
    run.settle()
    assert run.joins() == 1, "the join of both is that of the first alone"


def test_after_a_restart_a_newcomer_finds_the_relaxed_join(runs: Callable[..., Run]) -> None:
    bodies = [f"?x :p ?y . ?y :q :c{i}" for i in range(4)]
    run = runs(forced=None)
    for i in (1, 2):
        run.engine.register(text(bodies[i], name=f"q{i}"), name=f"q{i}")
    run.engine.start()
    stream = chains(5)
    run.feed(stream)
    assert run.joins() == 1
    run.engine.close()
    other = runs(sink=run.sink, forced=None)
    for i in (1, 2, 3):
        other.engine.register(text(bodies[i], name=f"q{i}"), name=f"q{i}")
    other.engine.start()
    stream += chains(8, begin=len(stream))
    other.feed(stream[-8:])
    assert other.joins() == 1, "q3 came with the restart"
    other.engine.register(text(bodies[0], name="q0"), name="q0")
    other.settle()
    assert other.joins() == 1
    stream += chains(8, begin=len(stream))
    other.feed(stream[-8:])
    for i in (1, 2):
        found = right(bodies[i], "RSTREAM", stream)
        other.says(f"q{i}", [r for r in found if r.time <= stream[-1].ts])


def test_a_query_that_goes_while_it_goes_over_takes_both_along(runs: Callable[..., Run]) -> None:
    run = runs()
    run.engine.register(text(BODY), name="q")
    run.engine.register(text("?x :p ?y"), name="other")
    run.engine.start()
    run.feed(chains(3))
    assert run.topology.switches
    assert run.joins() == 4
    run.engine.unregister("q")
    run.settle()
    assert not run.topology.switches
    assert run.joins() == 0
    run.feed(chains(3, begin=3))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*suspended")
@pytest.mark.parametrize("limit", ["rows=1000", "solutions=200"])
def test_a_query_that_is_suspended_while_it_goes_over(runs: Callable[..., Run], limit: str) -> None:
    """Neither of its sets of operators stays, and who shares them says all that it has to say."""
    bounds = {"max_rows": 1000} if limit.startswith("rows") else {"limits": limit}
    run = runs(**bounds)
    much = "?x :p ?y . ?y :q ?z . ?z :r ?u . ?i :p ?j"
    run.engine.register(text(much, name="much"), name="much")
    run.engine.register(text(BODY, name="few"), name="few")
    run.engine.start()
    stream = chains(3)
    run.feed(stream)
    assert "much" in run.topology.switches
    crowd = [
        Element(
            3000 + i, tuple(f"<http://e/a{i}_{j}> <http://e/p> <http://e/b{j}>" for j in (0, 1))
        )
        for i in range(60)
    ]
    rest = chains(20, begin=4)
    stream = [*stream, *crowd, *rest]
    run.feed(crowd)
    run.feed(rest)
    assert list(run.engine.status().suspended_queries) == ["much"]
    assert "much" not in run.topology.queries and "much" not in run.topology.switches
    gone = [what for what in run.log if what.startswith("few has gone over")]
    assert len(gone) > 1, run.log
    own = [r for r in right(BODY, "RSTREAM", stream) if r.time <= rest[-1].ts]
    run.says("few", own)
    run.engine.unregister("few")
    run.settle()
    assert run.joins() == 0


def test_a_query_that_comes_meanwhile_shares_the_new_operators(runs: Callable[..., Run]) -> None:
    run = runs(looks=1000)
    run.engine.register(text(BODY), name="q")
    run.engine.start()
    run.feed(chains(2))
    run.engine.register(text("?a :q ?b . ?b :r ?c", name="newcomer"), name="newcomer")
    run.settle()
    stream = chains(20, begin=2)
    run.feed(stream[:2])
    assert "q" in run.topology.switches, "a look where a query comes"
    before = run.joins()
    run.feed(stream[2:])
    assert run.joins() < before, "what the old order alone used has gone"
    for name, body in (("q", BODY), ("newcomer", "?a :q ?b . ?b :r ?c")):
        seen = [*chains(2), *stream] if name == "q" else stream
        own = [r for r in right(body, "RSTREAM", seen) if r.time <= stream[-1].ts]
        run.says(name, own)


def test_what_goes_over_is_told(runs: Callable[..., Run], tmp_path: Path) -> None:
    run = runs()
    run.engine.register(text(BODY), name="q")
    run.engine.start()
    run.feed(chains(5))
    assert run.engine.status().migrating_queries == ("q",)
    run.engine.close()
    shown = show_run(read_sharing_report(tmp_path / "c"))
    assert "begins to go over to" in shown, shown


def test_figure_4_one_by_one_becomes_three_joins(runs: Callable[..., Run]) -> None:
    run = runs(forced=None, looks=1, epoch_rows=200)
    run.engine.start()
    for i, body in enumerate(FIG4):
        run.engine.register(text(body, name=f"q{i}"), name=f"q{i}")
        run.settle()
    assert run.joins() == 4
    nodes = [[f"<http://e/n{(i + j) % 7}>" for j in range(5)] for i in range(500)]
    elements = [
        Element(100 * i, tuple(f"{own[0]} <http://e/s{j}> {own[j]}" for j in (1, 2, 3, 4)))
        for i, own in enumerate(nodes)
    ]
    run.feed(elements)
    assert run.joins() == 3, run.log
    assert "q0 has gone over to its new order" in run.log
    seen = [r for r in right(FIG4[0], "RSTREAM", elements) if r.time <= elements[-1].ts]
    run.says("q0", seen)


def test_queries_of_a_run_before_go_over_too(runs: Callable[..., Run]) -> None:
    run = runs()
    for output in OUTPUTS:
        run.engine.register(text(BODY, output, output), name=output)
    run.engine.start()
    run.feed(chains(7))
    before = len(run.log)
    run.engine.close()
    other = runs(sink=run.sink)
    for output in OUTPUTS:
        other.engine.register(text(BODY, output, output), name=output)
    other.engine.start()
    other.feed(chains(17, begin=7))
    gone = [what for what in other.log[before:] if "has gone over" in what]
    assert {what.split()[0] for what in gone} == {*OUTPUTS}
    assert len(gone) > len(OUTPUTS), "also what has gone over before"
    for output in OUTPUTS:
        own = [r for r in right(BODY, output, chains(24)) if r.time <= 23_000]
        assert same(own, other.sink.reports[output]) is None


def test_who_reads_what_a_query_makes_goes_on_when_that_goes_over(runs: Callable[..., Run]) -> None:
    run = runs()
    body = "?x :p ?y . ?y :q ?z . ?z :r ?u"
    run.engine.register(
        f"""PREFIX : <http://e/> REGISTER ISTREAM <http://e/maker> AS CONSTRUCT {{ ?x :to ?u }}
        FROM NAMED WINDOW :w ON :s {STEP.rspql} WHERE {{ WINDOW :w {{ {body} }} }}""",
        name="maker",
    )
    run.engine.register(
        """PREFIX : <http://e/> REGISTER RSTREAM <http://e/reader> AS SELECT * FROM NAMED WINDOW
        :w ON <http://e/maker> [RANGE PT6S STEP PT3S] WHERE { WINDOW :w { ?a :to ?b . ?c :to ?b .
        ?c :to ?d } }""",
        name="reader",
    )
    run.engine.start()
    stream = chains(30)
    run.feed(stream)
    made = []
    for report in right(body, "ISTREAM", stream, "?x ?u"):
        rows = [dict(solution) for solution in report.solutions]
        links = sorted(f"{row['x']} <http://e/to> {row['u']}" for row in rows)
        made.append(Element(report.time, tuple(links)))
    asked = "PREFIX : <http://e/> SELECT * { GRAPH :w { ?a :to ?b . ?c :to ?b . ?c :to ?d } }"
    window = Clause("step", 6000, 3000).window({})
    expected = evaluate(ReferenceQuery(asked, {"http://e/w": (S, window)}), {S: made})
    own = run.sink.reports["reader"]
    assert len(own) > 5
    assert same([r for r in expected if r.time <= own[-1].time], own) is None
    gone = {what.split()[0] for what in run.log if "has gone over" in what}
    assert gone == {"maker", "reader"}, run.log
