"""Queries over written-down streams: what the public ``run_stepped`` and ``MemorySink`` say."""

from pathlib import Path

import pytest

import levada
from levada.testing import (
    Element,
    MemorySink,
    ReferenceQuery,
    ReferenceSql,
    Report,
    Row,
    Window,
    WindowKind,
    evaluate,
    run_stepped,
    same,
)
from levada.testing.stepped_engine import name_graphs, name_streams

S = "http://e/s"
WINDOW = "FROM NAMED WINDOW <http://e/w> ON <http://e/s> [RANGE PT4S STEP PT2S]"
BODY = "<http://e/w> { ?x <http://e/p> ?y }"
TEXT = f"SELECT ?x ?y {WINDOW} WHERE {{ WINDOW {BODY} }}"
ELEMENTS = [
    Element(500 * i, (f"<http://e/a{i % 3}> <http://e/p> <http://e/b{i}>",)) for i in range(9)
]
QUESTION = ReferenceQuery(
    f"SELECT ?x ?y WHERE {{ GRAPH {BODY} }}",
    {"http://e/w": (S, Window(WindowKind.CLOSE_OPEN, range=4000, step=2000))},
)


@pytest.mark.parametrize("epoch_rows", [1, 4, 1000])
@pytest.mark.parametrize("partitions", [1, 3])
def test_whatever_the_epochs_and_partitions_the_reference_is_right(
    epoch_rows: int, partitions: int
) -> None:
    found = run_stepped({"q": TEXT}, {S: ELEMENTS}, epoch_rows=epoch_rows, partitions=partitions)
    right = evaluate(QUESTION, {S: ELEMENTS})
    assert len(right) > 2
    assert same(right, found["q"]) is None


def test_elements_may_be_disordered_by_the_lateness_and_no_more() -> None:
    late = [ELEMENTS[1], ELEMENTS[0], *ELEMENTS[2:]]
    right = evaluate(QUESTION, {S: ELEMENTS})
    assert same(right, run_stepped({"q": TEXT}, {S: late}, lateness=500)["q"]) is None
    lost = run_stepped({"q": TEXT}, {S: late}, epoch_rows=1)["q"]
    assert same(evaluate(QUESTION, {S: ELEMENTS[1:]}), lost) is None


def test_static_graphs_are_there_and_queries_that_say_nothing_too() -> None:
    static: dict[str | None, list[str]] = {None: ["<http://e/a0> <http://e/name> <http://e/zero>"]}
    named = f"SELECT ?n {WINDOW} WHERE {{ WINDOW {BODY} ?x <http://e/name> ?n }}"
    nothing = f"SELECT ?n {WINDOW} WHERE {{ WINDOW {BODY} ?x <http://e/none> ?n }}"
    found = run_stepped({"named": named, "nothing": nothing}, {S: ELEMENTS}, static=static)
    names = {text for r in found["named"] for s in r.solutions for _, text in s}
    assert names == {"<http://e/zero>"}
    assert not any(r.solutions for r in found["nothing"])


def test_rows_with_null_and_options_of_a_query() -> None:
    rows = [Row(1000, (1, 2.5)), Row(1500, (2, None)), Row(2500, (1, 4.0))]
    batch = [
        levada.QueryRequest("Istream(Select A.k, A.v From A [Range 1 s])", "q", "cql"),
        levada.QueryRequest(TEXT, "change", options=levada.QueryOptions(report="change")),
    ]
    found = run_stepped(
        batch, {"A": rows, S: ELEMENTS}, schemas={"A": {"k": "integer", "v": "double"}}
    )
    question = ReferenceSql(
        "SELECT A.k, A.v FROM A",
        {"A": ("A", Window(WindowKind.RANGE, range=1000))},
        {"A": {"k": "integer", "v": "double"}},
        {"k": "integer", "v": "double"},
        "ISTREAM",
    )
    right = evaluate(question, {"A": rows})
    assert sum(r.solutions.total() for r in right) == 3
    assert same(right, found["q"]) is None
    assert {r.time % 2000 for r in found["change"]} == {0, 500, 1000, 1500}


def test_an_engine_of_ones_own_publishes_to_the_sink(tmp_path: Path) -> None:
    sink = MemorySink()
    assert sink.reports == {}
    with levada.Engine(spark=False, sink=sink) as engine:
        name_streams(engine, tmp_path, {S: ELEMENTS})
        name_graphs(engine, tmp_path, {None: ["<http://e/a0> <http://e/p> <http://e/b>"]})
        engine.register(f"ASK {WINDOW} WHERE {{ WINDOW {BODY} }}", name="any")
        engine.start(once=True)
        engine.await_end()
    assert sink.reports == {"any": [Report(t, boolean=True) for t in (2000, 4000, 6000, 8000)]}
    assert all(line.startswith(b'{"query": "any"') for line in sink.lines)


def test_what_the_engine_raises_comes_through() -> None:
    with pytest.raises(levada.QueryError):
        run_stepped({"q": "SELEKT"}, {S: ELEMENTS})


def test_an_empty_text_is_not_null() -> None:
    rows = [Row(1000, ("",)), Row(1500, (None,)), Row(2000, ('say "a, b"',))]
    text = "Istream(Select A.t From A [Range 1 s] Where A.t = A.t)"
    found = run_stepped({"q": text}, {"A": rows}, schemas={"A": {"t": "string"}})
    assert [dict(s) for r in found["q"] for s in r.solutions] == [
        {"t": '""'},
        {"t": '"say \\"a, b\\""'},
    ]
