"""Static graphs that are replaced while the engine runs: from which report on they are seen, and
what is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.engine.query import Query
from levada.errors import CheckpointError, SourceError, UsageError
from levada.testing.reference_model import Element
from levada.testing.stream_builders import lines, write_lines
from support.polling import until_engine
from support.query_dsl import S

PREFIX = "PREFIX : <http://e/>\n"
JOIN = f"""{PREFIX}SELECT ?s ?k FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S]
WHERE {{ WINDOW :w {{ ?s :p ?o }} ?s :kind ?k }}"""
ONCE = f"{PREFIX}SELECT ?s ?k {{ ?s :kind ?k }}"
OLD, NEW = (f"<http://e/a> <http://e/kind> <http://e/{k}>" for k in ("old", "new"))
ELEMENTS = [Element(500 * i, (f"<http://e/a> <http://e/p> <http://e/x{i}>",)) for i in range(12)]


def kinds(query: Any) -> list[tuple[int | None, list[str]]]:
    """What each report says of the kinds of :a."""
    return [(r.time, sorted({k[10:-1] for k in r.rows["k"].to_list()})) for r in query.results()]


def wait(engine: Engine, condition: Callable[[], bool]) -> None:
    until_engine(engine, condition)


def read(engine: Engine, n: int) -> None:
    """Waits until so many elements have been read."""
    wait(engine, lambda: S in engine._records() and engine._records()[S].elements == n)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "s.nt", ELEMENTS[:6])


def grow(path: Path, elements: list[Element]) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines(elements))


def test_reports_after_the_last_event_time_see_the_new_data(stream: Path) -> None:
    """The largest event time is 2500 when the graph is replaced: 2000 is made before, 3000 and
    later ones after.
    """
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, stream)
        engine.static([OLD], replaceable=True)
        query, once = engine.register(JOIN), engine.register(ONCE)
        engine.start()
        read(engine, 6)
        epochs = engine.progress().epochs
        engine.static([NEW])
        wait(engine, lambda: engine.progress().epochs > epochs)
        grow(stream, ELEMENTS[6:])
        read(engine, 12)
        engine.stop()
        assert kinds(query) == [
            (1000, ["old"]),
            (2000, ["old"]),
            (3000, ["new"]),
            (4000, ["new"]),
            (5000, ["new"]),
        ]
        assert kinds(once) == [(None, ["old"]), (None, ["new"])]


def test_a_replacement_alone_makes_no_report(tmp_path: Path) -> None:
    """The window reports on change: nothing changes in it when the graph does."""
    path = write_lines(tmp_path / "s.nt", ELEMENTS[:1])
    text = JOIN.replace("[RANGE PT2S STEP PT1S]", "[RANGE PT10S]").replace(
        "SELECT", "REGISTER ISTREAM :q AS SELECT", 1
    )
    with Engine(spark=False, partitions=1) as engine:
        engine.stream(S, path)
        engine.static([OLD], replaceable=True)
        query = engine.register(text)
        engine.start()
        read(engine, 1)
        engine.static([NEW])
        epochs = engine.progress().epochs
        wait(engine, lambda: engine.progress().epochs > epochs)
        grow(path, [ELEMENTS[8], ELEMENTS[11]])
        read(engine, 3)
        engine.stop()
        assert kinds(query) == [(0, ["old"]), (4000, ["new"])]


def test_of_two_replacements_between_two_epochs_the_last_one_counts(stream: Path) -> None:
    with Engine(spark=False, partitions=2, epoch=600) as engine:
        engine.stream(S, stream)
        engine.static([OLD], replaceable=True)
        query = engine.register(ONCE)
        engine.start()
        read(engine, 6)
        engine.static([OLD, NEW])
        engine.static([NEW])
        grow(stream, ELEMENTS[6:])
        read(engine, 12)
        engine.stop()
        assert kinds(query) == [(None, ["old"]), (None, ["new"])]


def test_equal_content_is_no_replacement_and_empty_content_is_one(stream: Path) -> None:
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, stream)
        engine.static([OLD], replaceable=True)
        query = engine.register(ONCE)
        engine.start()
        read(engine, 6)
        engine.static([OLD])
        grow(stream, ELEMENTS[6:8])
        read(engine, 8)
        assert epochs_with(engine, query) == 1
        engine.static([])
        epochs = engine.progress().epochs
        wait(engine, lambda: engine.progress().epochs > epochs)
        engine.stop()
        assert kinds(query) == [(None, ["old"]), (None, [])]


def epochs_with(engine: Engine, query: Query) -> int:
    return sum(
        1
        for epoch in engine._publication.kept
        for _ in engine._publication.read_one(epoch, query._lifetime)
    )


def test_a_query_that_comes_later_sees_the_newest_and_only_what_reads_the_graph_is_answered_again(
    stream: Path,
) -> None:
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, stream)
        engine.static([OLD], replaceable=True)
        engine.static([OLD], "http://e/g")
        other = engine.register(f"{PREFIX}SELECT ?k {{ GRAPH :g {{ ?s :kind ?k }} }}")
        engine.start()
        read(engine, 6)
        engine.static([NEW])
        query = engine.register(JOIN)
        once = engine.register(ONCE)
        assert next(once.results()).rows["k"].to_list() == ["<http://e/new>"]
        grow(stream, ELEMENTS[6:])
        read(engine, 12)
        engine.stop()
        assert kinds(query) == [(4000, ["new"]), (5000, ["new"])]
        assert kinds(other) == [(None, ["old"])]


def run(
    root: Path, stream: Path, static: list[str], *texts: str, keep_open: bool = False, **how: Any
) -> list:
    how = how or {"replaceable": True}
    with Engine(spark=False, checkpoint=root / "ck", partitions=2, epoch_rows=2, seed=7) as engine:
        engine.stream(S, stream)
        engine.static(static, **how)
        queries = [engine.register(text, name=f"q{i}") for i, text in enumerate(texts)]
        engine.start(once=True, keep_open=keep_open)
        engine.await_end()
        return [kinds(q) for q in queries]


def test_what_is_named_before_a_start_on_a_checkpoint_replaces_what_it_holds(
    tmp_path: Path, stream: Path
) -> None:
    first = run(tmp_path, stream, [OLD], JOIN, ONCE, keep_open=True)
    assert first == [[(1000, ["old"]), (2000, ["old"])], [(None, ["old"])]]
    assert run(tmp_path, stream, [OLD], JOIN, ONCE, keep_open=True) == [[], []]
    grow(stream, ELEMENTS[6:10])
    assert run(tmp_path, stream, [NEW], JOIN, ONCE) == [
        [(at, ["new"]) for at in (3000, 4000, 5000, 6000)],
        [(None, ["new"])],
    ]
    assert len(list((tmp_path / "ck" / "static").iterdir())) == 1, (
        "what nobody reads any more is gone, two epochs after"
    )
    assert len(list((tmp_path / "ck" / "plans").glob("setup-*"))) == 1


def test_whether_a_graph_may_be_replaced_stays_as_it_is(tmp_path: Path, stream: Path) -> None:
    run(tmp_path, stream, [OLD], JOIN, keep_open=True)
    with pytest.raises(
        CheckpointError, match="the default graph was replaceable, now it is not so"
    ):
        run(tmp_path, stream, [OLD], JOIN, replaceable=False)


def test_what_was_not_declared_is_not_replaced(stream: Path, tmp_path: Path) -> None:
    quads = tmp_path / "g.nq"
    quads.write_text("<http://e/a> <http://e/kind> <http://e/old> <http://e/g> .\n")
    with Engine(spark=False) as engine:
        engine.stream(S, stream)
        engine.static([OLD], "http://e/g", replaceable=True)
        engine.static([OLD])
        with pytest.raises(
            UsageError, match=r"g\.nq names its graphs itself: it cannot be replaced as one"
        ):
            engine.static(quads, replaceable=True)
        with pytest.raises(UsageError, match="Only a file is looked at for changes"):
            engine.static([OLD], reload=True)
        engine.register(JOIN)
        engine.start()
        with pytest.raises(UsageError, match="The default graph was not declared replaceable"):
            engine.static([NEW])
        missing = r"static graph <http://e/h> was not there when the engine started(.|\n)*http://e/g(.|\n)*empty"
        with pytest.raises(UsageError, match=missing):
            engine.static([NEW], "http://e/h")
        engine.stop()
        with pytest.raises(UsageError, match="The engine has ended"):
            engine.static([NEW], "http://e/g")


def test_a_graph_that_is_to_come_is_declared_empty() -> None:
    """GRAPH ?g goes over it from the start; that it is empty says nothing."""
    with Engine(spark=False, partitions=1) as engine:
        engine.static([], "http://e/later", replaceable=True)
        engine.static([OLD], "http://e/now")
        query = engine.register("SELECT ?g { GRAPH ?g { ?s <http://e/kind> ?k } }")
        engine.start()
        answers = query.results()
        assert next(answers).rows["g"].to_list() == ["<http://e/now>"]
        engine.static([NEW], "http://e/later")
        assert sorted(next(answers).rows["g"].to_list()) == ["<http://e/later>", "<http://e/now>"]


def test_what_is_not_well_formed_is_told_to_whoever_gives_it(stream: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ttl"
    bad.write_text("<http://e/a> <http://e/kind> .\n")
    with Engine(spark=False, partitions=1) as engine:
        engine.stream(S, stream)
        engine.static([OLD], replaceable=True)
        query = engine.register(ONCE)
        engine.start()
        wait(engine, lambda: epochs_with(engine, query) == 1)
        with pytest.raises(
            SourceError, match=r"bad\.ttl, line 1, column \d+ is not well-formed Turtle"
        ):
            engine.static(bad)
        engine.static([NEW])
        wait(engine, lambda: epochs_with(engine, query) == 2)
        engine.stop()
        assert kinds(query)[-1] == (None, ["new"])


def put(path: Path, text: str) -> None:
    """Replaces a file by rename."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    os.replace(beside, path)


def test_a_file_that_changes_is_read_anew(stream: Path, tmp_path: Path) -> None:
    path = tmp_path / "kinds.ttl"
    put(path, "<http://e/a> <http://e/kind> <old> .\n")
    with Engine(spark=False, partitions=1) as engine:
        engine.stream(S, stream)
        engine.static(path, reload=True)
        engine.static(["<http://e/b> <http://e/kind> <http://e/kept>"])
        query = engine.register(ONCE)
        engine.start()
        wait(engine, lambda: epochs_with(engine, query) == 1)
        put(path, "<http://e/a> <http://e/kind> <new> .\n")
        wait(engine, lambda: epochs_with(engine, query) == 2)
        path.unlink()
        put(
            path, "<http://e/a> <http://e/kind> <new> .\n"
        )  # equal content under another number on the disk
        time.sleep(0.5)
        with pytest.warns(
            UserWarning,
            match=r"kinds\.ttl, line \d+, column \d+ is not well-formed Turtle.* stays\.",
        ) as told:
            put(path, "<http://e/a> <http://e/kind> \n")
            wait(engine, lambda: len(told) > 0)
            time.sleep(0.5)
        assert len(told) == 1, "said once"
        put(path, "<http://e/a> <http://e/kind> <newer> .\n")
        wait(engine, lambda: epochs_with(engine, query) == 3)
        engine.stop()
        found = [sorted(r.rows["k"].to_list()) for r in query.results()]
    base = tmp_path.as_uri()
    assert found == [
        sorted((f"<{base}/{word}>", "<http://e/kept>")) for word in ("old", "new", "newer")
    ]


def test_what_reads_a_stream_that_a_query_makes_sees_the_new_data_after_the_same_instant(
    stream: Path,
) -> None:
    maker = (
        f"{PREFIX}CONSTRUCT {{ ?s :q ?o }} FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S STEP PT1S] "
        f"{{ WINDOW :w {{ ?s :p ?o }} }}"
    )
    reader = (
        f"{PREFIX}SELECT ?k FROM NAMED WINDOW :w ON :made [RANGE PT1S STEP PT1S] {{ "
        f"WINDOW :w {{ ?s :q ?o }} ?s :kind ?k }}"
    )
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, stream)
        engine.static([OLD], replaceable=True)
        engine.register(maker, name="made")
        query = engine.register(reader)
        engine.start()
        read(engine, 6)
        wait(engine, lambda: epochs_with(engine, query) == 1)
        epochs = engine.progress().epochs
        engine.static([NEW])
        wait(engine, lambda: engine.progress().epochs > epochs)
        grow(stream, ELEMENTS[6:])
        read(engine, 12)
        wait(engine, lambda: epochs_with(engine, query) >= 2)
        engine.stop()
        found = kinds(query)
        assert found[0] == (2000, ["old"]) and {k for _, (k,) in found[1:]} == {"new"}
