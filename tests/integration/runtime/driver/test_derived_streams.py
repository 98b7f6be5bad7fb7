"""Streams that queries make: their names, who may read them, when makers and readers come and go,
what is told of them.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.manifest import read_manifest
from levada.cli.status import show as status_text
from levada.core.event_time import MAX, MIN
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.engine.status.status import read_status
from levada.errors import LevadaError, UnknownNameError, UsageError
from levada.testing import MemorySink
from levada.testing.compare import same_queries
from levada.testing.reference import elements_of, evaluate
from levada.testing.reference_model import ReferenceQuery
from levada.testing.stream_builders import lines, write_lines
from support.polling import is_still, until
from support.query_dsl import S, T, element, step

P = "PREFIX : <http://e/>\n"
ELEMENTS = [element(1000 * i, f"a{i % 3} p {i % 4}", f"a{i % 2} q a{i % 3}") for i in range(24)]
MOST = (
    f"{P}REGISTER RSTREAM :most AS CONSTRUCT {{ ?a :most ?m }} "
    f"FROM NAMED WINDOW :w ON <{S}> {step(4000, 2000).rspql} "
    "WHERE { { SELECT ?a (MAX(?n) AS ?m) WHERE { WINDOW :w { ?a :p ?n } } GROUP BY ?a } }"
)
READ = (
    f"{P}SELECT ?a ?m FROM NAMED WINDOW :w ON :most [RANGE PT6S STEP PT3S] WHERE {{ "
    f"WINDOW :w {{ ?a :most ?m }} }}"
)
WORDS = (
    "REGISTER STREAM hot AS CONSTRUCT { ?a <http://e/most> ?n } "
    "FROM STREAM <http://e/s> [RANGE 4s STEP 2s] "
)
CSPARQL = WORDS + "WHERE { ?a <http://e/p> ?n }"
OF_HOT = (
    "REGISTER QUERY r AS SELECT ?a FROM STREAM <http://e/hot> [RANGE 6s STEP 3s] "
    "WHERE { ?a <http://e/most> ?m }"
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    write_lines(tmp_path / "s.nt", ELEMENTS)
    write_lines(tmp_path / "t.nt", ELEMENTS[::3])
    with Engine(
        spark=False, checkpoint=tmp_path / "ck", epoch_rows=5, partitions=2, seed=7
    ) as made:
        made.stream(S, tmp_path / "s.nt")
        made.stream(T, tmp_path / "t.nt")
        yield made


def ended(engine: Any) -> None:
    engine.start(once=True)
    engine.await_end()


def made_elements() -> Any:
    """What MOST makes, as the reference sees it."""
    sparql = f"{P}SELECT ?a (MAX(?n) AS ?m) WHERE {{ GRAPH :w {{ ?a :p ?n }} }} GROUP BY ?a"
    windows = {"http://e/w": (S, step(4000, 2000).window({}))}
    first = ReferenceQuery(sparql, windows, template=(("?a", "<http://e/most>", "?m"),))
    return elements_of("most", first, evaluate(first, {S: ELEMENTS}))


def of_most(after: Any = MIN) -> Any:
    """What the reference says of READ, for a reader that comes after this time."""
    own = step(6000, 3000).window({})
    made = made_elements()
    asked = f"{P}SELECT ?a ?m WHERE {{ GRAPH :w {{ ?a :most ?m }} }}"
    return evaluate(ReferenceQuery(asked, {"http://e/w": ("m", own)}, after=after), {"m": made})


def reported(query: Any) -> dict[Any, Any]:
    return {r.time: Counter(r.rows.rows()) for r in query.results()}


def told(reports: Any) -> dict[Any, Any]:
    return {
        r.time: Counter(tuple(v for _, v in sorted(s)) for s in r.solutions.elements())
        for r in reports
        if r.solutions
    }


# -- names --


@pytest.mark.parametrize(
    ("name", "maker"), [("m", MOST), ("most", MOST.replace(":most AS", ":other AS")), ("q", MOST)]
)
def test_a_stream_is_asked_for_by_what_register_says_or_by_the_name_of_its_query(
    engine: Any, name: str, maker: Any
) -> None:
    engine.register(maker, name=name)
    reader = engine.register(READ)
    ended(engine)
    assert reported(reader) == told(of_most())


def test_csparql_registers_a_stream_by_a_word(engine: Any) -> None:
    engine.register(CSPARQL, name="q7")
    reader = engine.register(OF_HOT, name="r")
    ended(engine)
    assert reported(reader)


def test_a_description_makes_a_stream_too(engine: Any) -> None:
    window = f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT4S STEP PT2S]"
    engine.register(
        f"{P}REGISTER RSTREAM :most AS DESCRIBE ?a {window} WHERE {{ WINDOW :w {{ ?a :p 1 }} }}",
        name="d",
    )
    reader = engine.register(READ.replace("?a :most ?m", "?a :p ?m"), name="r")
    ended(engine)
    assert reported(reader)


def test_a_stream_from_outside_goes_before_one_that_a_query_makes(
    engine: Any, tmp_path: Path
) -> None:
    engine.register(MOST, name="s")  # reads the stream s itself
    reader = engine.register(
        f"{P}SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT4S] WHERE {{ WINDOW :w {{ ?a :q ?b }} }}"
    )
    ended(engine)
    assert reported(reader)
    assert list(engine._records()) == [S, T]


# -- what is refused --


def refused(engine: Any, *texts: Any, kind: Any = UsageError) -> Any:
    with pytest.raises(kind) as caught:
        engine.register_all([QueryRequest(text, f"q{i}") for i, text in enumerate(texts)])
    return str(caught.value)


def test_what_makes_no_triples_makes_no_stream(engine: Any) -> None:
    window = f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT4S] WHERE {{ WINDOW :w {{ ?a :p ?n }} }}"
    for form, head in (("SELECT", "SELECT ?a"), ("ASK", "ASK")):
        message = refused(engine, f"{P}REGISTER RSTREAM :most AS {head} {window}", READ)
        assert message == (
            f"The {form} query q0 makes no triples, and so not the stream http://e/most. "
            "Use CONSTRUCT."
        )
    assert engine.queries() == [], "all or none"


def test_a_query_without_windows_makes_no_stream(engine: Any) -> None:
    once = f"{P}REGISTER RSTREAM :most AS CONSTRUCT {{ ?a :most ?m }} WHERE {{ ?a :p ?m }}"
    assert "has no windows: its one answer has no time" in refused(engine, once, READ)


def test_two_makers_of_one_stream(engine: Any) -> None:
    message = refused(engine, MOST, MOST, READ)
    assert message.startswith("The stream http://e/most is made by the queries q0 and q1.")
    engine.register(MOST, name="a")
    engine.register(READ, name="r")
    with pytest.raises(UsageError, match="is made by the queries a and b"):
        engine.register(MOST, name="b")


def test_queries_that_read_each_other(engine: Any) -> None:
    copy = (
        "CONSTRUCT { ?s ?p ?o } FROM NAMED WINDOW :w ON :SOURCE [RANGE PT4S] WHERE { "
        "WINDOW :w { ?s ?p ?o } }"
    )
    pairs = (("a", "b"), ("b", "c"), ("c", "a"))
    loop = [f"{P}REGISTER RSTREAM :{a} AS {copy.replace('SOURCE', b)}" for a, b in pairs]
    assert "queries cannot read each other's streams in a circle" in refused(engine, *loop)
    assert refused(engine, loop[0].replace("ON :b", "ON :a")).startswith(
        "The query q0 reads the stream of q0:"
    )


def test_a_stream_that_nobody_makes(engine: Any) -> None:
    assert refused(engine, READ, kind=UnknownNameError).startswith(
        "line 2, column 38: There is no stream http://e/most."
    )
    engine.register(MOST, name="m")
    with pytest.raises(LevadaError, match="Did you mean"):
        engine.register(READ.replace(":most [", ":mots ["))


def test_cql_reads_no_triples(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,ts\n1,1\n")
    engine.stream("A", tmp_path / "t.csv", schema="k:integer")
    engine.register(MOST, name="m")
    with pytest.raises(UnknownNameError, match="There is no tuple stream m"):
        engine.register("Select * From m", dialect="cql")


def test_a_maker_that_is_read_stays(engine: Any) -> None:
    engine.register(MOST, name="m")
    one, two = engine.register(READ, name="one"), engine.register(READ, name="two")
    with pytest.raises(
        UsageError, match="The stream that the query m makes is read by one and two"
    ):
        engine.unregister("m")
    one.unregister()
    two.unregister()
    engine.unregister("m")
    assert engine.queries() == []


def test_a_stream_from_outside_with_the_name_of_one_that_is_read(
    engine: Any, tmp_path: Path
) -> None:
    engine.register_all([QueryRequest(READ, "r"), QueryRequest(MOST, "m")])
    for name in ("m", "http://e/most"):
        with pytest.raises(
            UsageError, match=f"The query r reads the stream {name}, which the query m makes"
        ):
            engine.stream(name, tmp_path / "s.nt")


def test_a_query_that_would_take_a_stream_away_from_its_reader(engine: Any) -> None:
    engine.register(MOST, name="m")
    engine.register(READ.replace(":most [", "<http://x/m> ["), name="r")
    with pytest.raises(
        UsageError, match="http://x/m is read already, and would be another one with the query n"
    ):
        engine.register(MOST.replace(":most AS", "<http://x/m> AS"), name="n")


# -- coming and going --


def runs(tmp_path: Path, *parts: Any) -> Any:
    """Runs on one checkpoint: (elements, queries by name) each, the streams open but for the last;
    the reports of all.
    """
    sink = MemorySink()
    for i, (n, queries) in enumerate(parts):
        write_lines(tmp_path / "s.nt", ELEMENTS[:n])
        with Engine(
            spark=False, checkpoint=tmp_path / "ck", epoch_rows=5, partitions=2, sink=sink, seed=7
        ) as engine:
            engine.stream(S, tmp_path / "s.nt")
            engine.register_all([QueryRequest(text, name) for name, text in queries.items()])
            engine.start(once=True, keep_open=i + 1 < len(parts))
            engine.await_end()
    return sink.reports


SIX = '"6"^^<http://www.w3.org/2001/XMLSchema#integer>'  # three reports with two solutions each
BOTH = {"r": READ, "m": MOST}


def test_a_chain_goes_on_in_the_next_run(tmp_path: Path) -> None:
    got = runs(tmp_path, (7, BOTH), (7, BOTH), (16, BOTH), (24, BOTH))
    assert same_queries({"r": of_most()}, {"r": got["r"]}) is None


def test_a_reader_that_comes_later_begins_behind_the_last_report_of_its_maker(
    tmp_path: Path,
) -> None:
    got = runs(tmp_path, (12, {"m": MOST}), (24, BOTH))
    assert same_queries({"r": of_most(after=10_000)}, {"r": got["r"]}) is None


def test_a_reader_that_goes_and_comes_again(tmp_path: Path) -> None:
    got = runs(tmp_path, (7, BOTH), (12, {"m": MOST}), (18, {"m": MOST}), (24, BOTH))
    late = [r for r in got["r"] if r.time > 16_000]
    assert same_queries({"r": of_most(after=16_000)}, {"r": late}) is None


def test_a_maker_with_another_text_is_another_stream(tmp_path: Path) -> None:
    second = {**BOTH, "m": MOST.replace("MAX", "MIN")}
    got = runs(tmp_path, (12, BOTH), (24, second))
    (tmp_path / "fresh").mkdir()
    fresh = runs(
        tmp_path / "fresh", (12, {"other": READ.replace(":most [", f"<{S}> [")}), (24, second)
    )
    assert fresh["r"]
    assert same_queries({"r": fresh["r"]}, {"r": [r for r in got["r"] if r.time > 12_000]}) is None


def test_makers_and_readers_come_while_the_engine_runs(engine: Any, tmp_path: Path) -> None:
    first = engine.register(MOST, name="m")
    epochs = []
    engine._on_epoch(epochs.append)
    engine.start()
    wait_for(lambda: engine.progress().watermarks.get(S) == 23_000)
    reader = engine.register(READ, name="r")
    wait_for(lambda: "m" in engine._records())
    with pytest.raises(UsageError, match="is read by r"):
        first.unregister()
    with (tmp_path / "s.nt").open("a") as file:
        for i in range(24, 36):
            file.write(
                "".join(f"{line}\n" for line in lines([element(1000 * i, f"a{i % 3} p {i % 4}")]))
            )
    wait_for(
        lambda: (
            engine.progress().watermarks[S] == 35_000 and engine._records()["m"].watermark == 35_001
        )
    )
    reader.unregister()
    first.unregister()
    wait_for(lambda: "m" not in engine._records())
    engine.stop()
    assert min(r.time for r in reader.results()) >= 24_000


def test_a_silent_stream_follows_those_that_what_is_made_of_it_is_read_with(tmp_path: Path) -> None:
    write_lines(tmp_path / "s.nt", ELEMENTS[:5])
    write_lines(tmp_path / "t.nt", ELEMENTS)
    with Engine(spark=False, checkpoint=tmp_path / "ck", partitions=2) as engine:
        engine.stream(S, tmp_path / "s.nt", idle="50ms")
        engine.stream(T, tmp_path / "t.nt")
        both = (
            f"FROM NAMED WINDOW :v ON <{T}> [RANGE PT6S STEP PT3S] WHERE {{ "
            f"WINDOW :v {{ ?a :q ?b }}"
        )
        engine.register_all(
            [QueryRequest(READ.replace("WHERE {", both), "r"), QueryRequest(MOST, "m")]
        )
        engine.start()
        wait_for(
            lambda: (
                engine.progress().watermarks.get(S) == 23_000
                and engine._records()["m"].watermark == 23_001
            )
        )
        until(lambda: is_still(engine), "nothing creeps on by itself")
        assert engine.progress().blocking_stream in (S, T)


def wait_for(condition: Any) -> None:
    until(condition)


# -- what is told --


def test_what_is_told_of_a_made_stream(engine: Any, tmp_path: Path) -> None:
    engine.register_all([QueryRequest(READ, "r"), QueryRequest(MOST, "m")])
    ended(engine)
    record = engine._records()["m"]
    assert (record.elements, record.late, record.watermark) == (len(made_elements()), 0, MAX)
    assert engine.progress().blocking_stream is None and engine.progress().elements == 2 * (
        24 + 8
    ), "of what comes from outside"
    status = read_status(tmp_path / "ck")
    (reader,) = [q for q in status.queries if q.name == "r"]
    assert [(p.stream, p.matched_triples) for p in reader.patterns] == [("m", record.triples)]
    assert list(status.streams) == [S, T, "m"]
    assert status_text(status)


def test_watermark_of_a_made_stream_after_each_epoch(engine: Any, tmp_path: Path) -> None:
    """No later report of the maker is below it, and it is behind the maker's own by one epoch."""
    engine.register_all([QueryRequest(READ, "r"), QueryRequest(MOST, "m")])
    seen = []

    def see(m: Any) -> None:
        plan = engine._driver.epochs.load_plan(m.plan)
        counts = m.counts.by_name(plan).get("m")
        seen.append((m.streams[S].watermark, m.streams["m#1"].watermark, counts))

    engine._on_epoch(see)
    ended(engine)
    for (w, _, _), (_, made, counts) in pairwise(seen):
        assert made == (MAX if w >= MAX else w + 1)
        assert counts is None or counts[1] >= made
    manifests = [read_manifest(p) for p in (tmp_path / "ck" / "manifests").iterdir()]
    assert all("m#1" not in m.positions for m in manifests)


# -- blank nodes --


def test_nodes_of_a_template_are_one_within_a_report_and_others_in_the_next(engine: Any) -> None:
    text = (
        f"{P}REGISTER RSTREAM :b AS CONSTRUCT {{ _:n :of ?a . _:n :n ?m }} "
        f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT2S] "
        "WHERE { WINDOW :w { ?a :p ?m } }"
    )
    count = (
        f"{P}SELECT (COUNT(DISTINCT ?x) AS ?n) (COUNT(*) AS ?k) "
        "FROM NAMED WINDOW :w ON :b [RANGE PT6S STEP PT6S] "
        "WHERE { WINDOW :w { ?x :of ?a . ?x :n ?m } }"
    )
    counted, made = engine.register_all([QueryRequest(count, "c"), QueryRequest(text, "b")])
    names = engine.register(
        f"{P}SELECT ?x FROM NAMED WINDOW :w ON :b [NOW] WHERE {{ WINDOW :w {{ ?x :of ?a }} }}"
    )
    ended(engine)
    assert [r.rows.row(0) for r in counted.results()][1:3] == [(SIX, SIX)] * 2, (
        "every solution has its own"
    )
    read = {
        t.split(" ")[0]
        for graph in (report.graph for report in made.results())
        for t in graph.splitlines()
        if "/of>" in t
    }
    assert set(names.to_polars(terms=True)["x"]) == read, "as they are published"


def test_a_node_of_the_input_that_comes_through_is_still_itself(
    engine: Any, tmp_path: Path
) -> None:
    text = (
        f"_:n{i % 2} <http://e/{p}> <http://e/o{i}> {1000 * i} .\n" for i in range(8) for p in "kl"
    )
    (tmp_path / "u.nt").write_text("".join(text))
    engine.stream("u", tmp_path / "u.nt")
    window = "FROM NAMED WINDOW :w ON :u [RANGE PT2S STEP PT2S] WHERE { WINDOW :w { ?b :k ?o } }"
    engine.register(f"{P}REGISTER RSTREAM :k AS CONSTRUCT {{ ?b :k2 ?o }} {window}", name="k")
    both = engine.register(
        f"{P}SELECT ?b ?o ?x FROM NAMED WINDOW :w ON :k [RANGE PT8S STEP PT8S] "
        "FROM NAMED WINDOW :u ON :u [RANGE PT8S STEP PT8S] "
        "WHERE { WINDOW :w { ?b :k2 ?o } WINDOW :u { ?b :l ?x } }"
    )
    ended(engine)
    first = next(r for r in both.results() if r.time == 8000)
    assert first.rows["b"].n_unique() == 2
    assert first.rows.height == 2 * 3 * 4, (
        "the reports at 2, 4 and 6 s have three of each node, the window on u four"
    )
