"""Queries with ``until`` or ``lifetime`` report what they would alone up to that instant, and
leave: cut at event time, whatever the epochs; for good, also over a restart.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from levada import Engine, Query
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.cli.status import ends
from levada.engine.status.status import read_status
from levada.errors import EngineError, UsageError
from levada.plan.logical.query_options import options_of
from levada.testing.compare import same
from levada.testing.memory_sink import MemorySink
from levada.testing.reference import evaluate
from levada.testing.stream_builders import lines, write_lines
from support.generators.windows import Clause
from support.polling import PATIENCE, until
from support.query_dsl import S, at, query
from support.stepped_runs import register

ELEMENTS = [at(1000 * i, f":s{i % 3} :p {i}") for i in range(1, 20)]
END = 8_000
W = "WINDOW :w { ?s ?p ?o }"
HOPPING, CHANGING = Clause("step", 4000, 2000), Clause("range", 3000)
TEXT = query("SELECT ?s", W, windows={"w": HOPPING}).text
ASKED = (
    query("SELECT ?s", W, windows={"w": HOPPING}, name="hopping"),
    query("SELECT ?p (COUNT(*) AS ?n)", W, "GROUP BY ?p", windows={"w": HOPPING}, name="groups"),
    query("SELECT ?o", W, windows={"w": CHANGING}, output="ISTREAM", name="came"),
    query("SELECT ?o", W, windows={"w": HOPPING}, output="DSTREAM", name="went"),
    query("SELECT ?s", W, windows={"w": CHANGING}, name="clock", report="periodic:1700ms"),
    query("SELECT ?s", "WINDOW :w { ?s ?p 5 }", name="empty", empty_reports=True),
)


def engine_on(folder: Path, *, sharing: str = "exact", rows: int = 3) -> Engine:
    """An engine over the elements that are there."""
    if not (folder / "s.nt").exists():
        write_lines(folder / "s.nt", ELEMENTS)
    engine = Engine(
        spark=False, checkpoint=folder / "c", epoch_rows=rows, partitions=2, sharing=sharing
    )
    engine.stream(S, folder / "s.nt")
    return engine


def feed(folder: Path, first: int, last: int) -> None:
    """Appends elements to the stream."""
    with (folder / "s.nt").open("a") as file:
        file.writelines(f"{line}\n" for line in lines(ELEMENTS[first:last]))


def reported(found: Query) -> list[int | None]:
    """When a query has reported."""
    return [report.time for report in found.results()]


def names(engine: Engine) -> set[str]:
    """The queries that there are."""
    return {*engine._registry.queries}


def operators(engine: Engine) -> int:
    """So many there are."""
    assert engine._driver is not None and engine._driver._catalog._topology is not None
    nodes = engine._driver._catalog._topology.graph.nodes.values()
    return sum(len(node.members.index) for node in nodes)


@pytest.mark.parametrize("rows", [1, 4, 1000])
def test_what_is_reported_is_cut_at_the_instant(tmp_path: Path, rows: int) -> None:
    sink = MemorySink()
    write_lines(tmp_path / "s.nt", ELEMENTS)
    with Engine(spark=False, checkpoint=tmp_path / "c", epoch_rows=rows, sink=sink) as engine:
        engine.stream(S, tmp_path / "s.nt")
        cut = {f"{one.name}_ends": one for one in ASKED}
        register(
            engine,
            [
                replace(one, name=name, options={**one.options, "until": END})
                for name, one in cut.items()
            ],
        )
        register(engine, ASKED)
        engine.start(once=True)
        engine.await_end()
    for name, one in cut.items():
        whole = evaluate(one.reference, {S: ELEMENTS}, {}, [])
        right = [report for report in whole if report.time <= END]
        assert 0 < len(right) < len(whole)
        assert same(whole, sink.reports[one.name]) is None
        assert same(right, sink.reports[name]) is None, name


def test_one_that_ends_leaves_as_one_that_is_taken_out(tmp_path: Path) -> None:
    write_lines(tmp_path / "s.nt", ())
    other = query("SELECT ?s", "WINDOW :w { ?s ?p ?o . ?s ?q 5 }", windows={"w": HOPPING}).text
    with engine_on(tmp_path) as engine:
        engine.register(TEXT, name="stays")
        engine.start()
        until(lambda: not engine._registry.changed)
        alone = operators(engine)
        engine.register(other, name="ends", until=END)
        until(lambda: not engine._registry.changed)
        assert operators(engine) > alone
        assert read_status_of(engine, tmp_path) == {"stays": None, "ends": END}
        feed(tmp_path, 0, 12)
        until(lambda: names(engine) == {"stays"} and not engine._registry.changed)
        assert operators(engine) == alone


def read_status_of(engine: Engine, folder: Path) -> dict[str, int | None]:
    """Until when queries report, as the checkpoint says it."""
    feed(folder, 0, 1)
    until(lambda: (folder / "c" / "manifests").exists() and bool(engine._records()))
    until(lambda: len(read_status(folder / "c").queries) == 2)
    return {one.name: one.until for one in read_status(folder / "c").queries}


def test_a_lifetime_goes_on_over_a_restart_and_does_not_begin_again(tmp_path: Path) -> None:
    write_lines(tmp_path / "s.nt", ())
    feed(tmp_path, 0, 4)
    with engine_on(tmp_path) as engine:
        engine.register(TEXT, name="stays")
        engine.start(once=True, keep_open=True)
        engine.await_end()
    seen, begins = 4000, 4001

    def go_on(first: int, last: int) -> tuple[list[int | None], set[str]]:
        feed(tmp_path, first, last)
        with engine_on(tmp_path) as engine:
            engine.register(TEXT, name="stays")
            mortal = engine.register(TEXT, name="ends", lifetime="6s")
            engine.start(once=True, keep_open=True)
            engine.await_end()
            return reported(mortal), names(engine)

    assert go_on(4, 4) == ([], {"stays", "ends"})  # it begins behind what has been seen
    assert go_on(4, 8) == ([6000, 8000], {"stays", "ends"})
    ended = go_on(8, 14)
    assert ended == ([10_000], {"stays"}) and begins + 6000 < 12_000 and seen < begins
    told = [*ends(read_status(tmp_path / "c"))]
    assert told == ["ends: has ended, as it said, with its reports until 1970-01-01T00:00:10.001Z."]
    assert go_on(14, 19) == ([], {"stays"})


def test_who_reads_one_that_ends_keeps_it(tmp_path: Path) -> None:
    view = query(
        "CONSTRUCT { ?s :is ?o }", W, windows={"w": HOPPING}, select="SELECT ?s ?o", name="view"
    )
    reads = query("SELECT ?s", "WINDOW :w { ?s :is ?o }", windows={"w": ("http://e/view", HOPPING)})
    with engine_on(tmp_path) as engine:
        engine.register(view.text, name="view", until=END)
        reader = engine.register(reads.text, name="reader", until=END + 6000)
        engine.start(once=True, keep_open=True)
        engine.await_end()
        found = reported(reader)
        assert found and max(t or 0 for t in found) <= END + 4000
        assert not names(engine), "the reader has gone, and then what it read"


def test_rows_of_a_table_end_together(tmp_path: Path) -> None:
    text = TEXT.replace("?s ?p ?o", "?s ?p {{n}}")
    with engine_on(tmp_path, sharing="relax") as engine:
        engine.register_each(text, [{"n": n} for n in range(1, 20)], name="q{{n}}", until=END)
        found = engine.register(TEXT, name="stays")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        assert names(engine) == {"stays"}
        assert engine._driver is not None
        assert max(t or 0 for t in reported(found)) > END
        had = engine._driver.last.results - sum(len(r.rows) for r in found.results())
    assert had == sum(2 for i in range(1, 20) if i < 6) + sum(1 for i in (6, 7))


def test_what_cannot_end_is_refused(tmp_path: Path) -> None:
    with engine_on(tmp_path) as engine:
        with pytest.raises(UsageError, match="from 1970 on, not until=-5"):
            engine.register(TEXT, until=-5)
        with pytest.raises(UsageError, match=r"lives for some time, not lifetime=-1h.*lifetime=1h"):
            engine.register(TEXT, lifetime="-1h")
        with pytest.raises(UsageError, match="until\\) or after a time \\(lifetime\\), not both"):
            engine.register(TEXT, lifetime="1h", until=5)
        with pytest.raises(UsageError, match="before its windows begin"):
            engine.register(TEXT, t0=10, until=5)
        with pytest.raises(UsageError, match=r"no option untill.*until"):
            options_of({"untill": 5})
        with pytest.raises(UsageError, match="has no window"):
            engine.register("SELECT ?s { ?s ?p ?o }", until=5)
        assert not names(engine)
        engine.register(TEXT, name="q")
        engine.start(once=True, keep_open=True)
        engine.await_end()
    with engine_on(tmp_path) as engine:
        engine.register(TEXT, name="q")
        engine.start()
        with pytest.raises(UsageError, match=r"ends at .*:05Z \(until\), which its streams have"):
            engine.register(TEXT, name="past", until=5000)
        assert names(engine) == {"q"}
        engine.register(TEXT, name="ends", until=30_000)
    with engine_on(tmp_path) as engine:
        engine.register(TEXT, name="past", until=5000)
        engine.start(once=True)
        with pytest.raises(UsageError, match="past ends at"):
            engine.await_end()


def test_a_lifetime_needs_a_beginning(tmp_path: Path) -> None:
    with engine_on(tmp_path) as engine:
        engine.register(TEXT, name="q", lifetime="5s")
        with pytest.raises(UsageError, match=r"lifetime of the query q has no beginning.*t0"):
            engine.start(once=True)
    assert not (tmp_path / "c").exists()


VIEW = query(
    "CONSTRUCT { ?s :is ?o }", W, windows={"w": HOPPING}, select="SELECT ?s ?o", name="view"
)
READS = query("SELECT ?s", "WINDOW :w { ?s :is ?o }", windows={"w": ("http://e/view", HOPPING)})
PAIRS = query("SELECT ?a ?b", "WINDOW :w { ?a :p ?x . ?b :p ?y }", windows={"w": HOPPING}).text


def run_to_the_end(folder: Path, **options: Any) -> None:
    """Runs the view over what is there."""
    with engine_on(folder, **options) as engine:
        engine.register(VIEW.text, name="view")
        engine.start(once=True, keep_open=True)
        engine.await_end()


def test_one_that_comes_between_the_start_and_the_first_plan(tmp_path: Path) -> None:
    """What it reads of others it is known of by the plan of the run before."""
    write_lines(tmp_path / "s.nt", ())
    feed(tmp_path, 0, 10)
    run_to_the_end(tmp_path)
    with engine_on(tmp_path) as engine:
        engine.register(VIEW.text, name="view")
        with engine._registry.lock:  # the first plan waits for it
            engine.start()
            assert engine._driver is not None and engine._driver._catalog._topology is None
            with pytest.raises(UsageError, match="which its streams have"):
                engine.register(READS.text, name="past", until=5000)
            engine.register(READS.text, name="lives", lifetime="1h")
        until(lambda: not engine._registry.changed)
        assert engine.running and names(engine) == {"view", "lives"}


def full(*_: object) -> None:
    """A disk to which nothing is committed."""
    raise OSError("the disk is full")


def test_one_whose_end_passes_before_the_first_plan_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch of the run before is run again after it has come."""
    write_lines(tmp_path / "s.nt", ())
    feed(tmp_path, 0, 6)
    run_to_the_end(tmp_path)
    feed(tmp_path, 6, 12)
    monkeypatch.setattr(Checkpoint, "commit", full)
    with engine_on(tmp_path, rows=6) as engine:
        engine.register(VIEW.text, name="view")
        engine.start(once=True, keep_open=True)
        with pytest.raises(EngineError, match="the disk is full"):
            engine.await_end()
    monkeypatch.undo()
    commit, registered = Checkpoint.commit, threading.Event()

    def commit_later(*given: Any) -> Any:
        assert registered.wait(PATIENCE)
        return commit(*given)

    monkeypatch.setattr(Checkpoint, "commit", commit_later)
    with engine_on(tmp_path) as engine:
        engine.register(VIEW.text, name="view")
        with engine._registry.lock:
            engine.start()
            brief = engine.register(TEXT, name="brief", until=7500)
        registered.set()
        until(lambda: not engine._registry.changed)
        feed(tmp_path, 12, 19)
        until(lambda: names(engine) == {"view"})
        assert engine.running and not reported(brief)


def test_a_suspended_one_whose_end_is_past_leaves_when_its_limit_is_raised(tmp_path: Path) -> None:
    write_lines(tmp_path / "s.nt", ())
    feed(tmp_path, 0, 6)

    def go_on(max_rows: int) -> set[str]:
        folder = tmp_path / "c"
        with Engine(spark=False, checkpoint=folder, epoch_rows=3, max_rows=max_rows) as engine:
            engine.stream(S, tmp_path / "s.nt")
            engine.register(TEXT, name="stays")
            engine.register(PAIRS, name="pairs", until=END)
            engine.start(once=True, keep_open=True)
            engine.await_end()
            return names(engine)

    with pytest.warns(UserWarning, match="The query pairs is suspended"):
        assert go_on(3) == {"stays", "pairs"}
    feed(tmp_path, 6, 14)
    assert go_on(3) == {"stays", "pairs"}
    feed(tmp_path, 14, 19)
    assert go_on(1000) == {"stays"}
    told = [*ends(read_status(tmp_path / "c"))]
    assert told == ["pairs: has ended, as it said, with its reports until 1970-01-01T00:00:08Z."]
