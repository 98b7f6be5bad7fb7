"""A handle shows what its own query has reported, also when the name has been registered again."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada.engine.engine import Engine
from levada.engine.query import Report
from levada.errors import EngineError, UsageError
from levada.testing.compare import same
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.polling import PATIENCE
from support.query_dsl import S, as_expected, element, expected, feed, query, step

ALL = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="q", windows={"w": (S, Clause("range", 1500))}
)
OTHER = query("SELECT ?b", "WINDOW :w { ?b :p ?n }", name="q", windows={"w": (S, step(2000, 1000))})
EMPTY = query(
    "SELECT ?b",
    "WINDOW :w { ?b :no ?n }",
    name="q",
    windows={"w": (S, step(1000, 1000))},
    empty_reports=True,
)
ELEMENTS = [element(300 * i, f"a{i % 3} p {i}") for i in range(30)]


@pytest.fixture
def path(tmp_path: Path) -> Any:
    return write_lines(tmp_path / "s.nt", [])


@pytest.fixture
def engine(path: Any) -> Iterator[Any]:
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, path)
        yield engine


def one_after_the_other(engine: Any, path: Any, first: Any, second: Any) -> Any:
    """The handles of two queries of one name: of the first 10 elements, and of those behind the
    first 20.
    """
    old = engine.register(first.text, name="q", **first.options)
    engine.start()
    feed(engine, path, ELEMENTS[:10])
    old.unregister()
    feed(engine, path, ELEMENTS[10:20])
    new = engine.register(second.text, name="q", **second.options)
    feed(engine, path, ELEMENTS[20:])
    return old, new


@pytest.mark.parametrize(("first", "second"), [(ALL, ALL), (ALL, OTHER), (OTHER, ALL)])
def test_each_handle_shows_its_own_reports(engine: Any, path: Any, first: Any, second: Any) -> None:
    old, new = one_after_the_other(engine, path, first, second)
    engine.stop()
    before = [r for r in expected([first], {S: ELEMENTS})["q"] if r.time < ELEMENTS[9].ts]
    after = [r for r in expected([second], {S: ELEMENTS[20:]})["q"] if r.time < ELEMENTS[-1].ts]
    assert same(before, as_expected(old.results())) is None
    assert same(after, as_expected(new.results())) is None
    assert set(old.to_polars(terms=True)["report"]) == {r.time for r in before}
    assert set(new.to_polars(terms=True)["report"]) == {r.time for r in after}


def times(reports: Iterable[Report]) -> list[int]:
    """Of a query with windows every report has a time."""
    return [r.time for r in reports if r.time is not None]


def test_other_columns_under_one_name_make_two_frames(engine: Any, path: Any) -> None:
    old, new = one_after_the_other(engine, path, ALL, OTHER)
    engine.stop()
    assert old.to_polars(terms=True).schema == {"report": pl.Int64, "a": pl.String, "n": pl.String}
    assert new.to_polars(terms=True).schema == {"report": pl.Int64, "b": pl.String}


def test_empty_reports_are_those_of_their_own_query(engine: Any, path: Any) -> None:
    old, new = one_after_the_other(engine, path, EMPTY, EMPTY)
    engine.stop()
    assert [r.time for r in old.results()] == [1000, 2000]
    assert [r.time for r in new.results()] == [7000, 8000]


def test_a_subscriber_is_called_with_the_reports_of_its_query_and_ends_with_it(
    engine: Any, path: Any
) -> None:
    reports: list[Report] = []
    old = engine.register(ALL.text, name="q")
    thread = old.subscribe(reports.append)
    engine.start()
    feed(engine, path, ELEMENTS[:10])
    old.unregister()
    new = engine.register(ALL.text, name="q")
    feed(engine, path, ELEMENTS[10:])
    thread.join(PATIENCE)
    assert not thread.is_alive(), "though the engine runs on"
    engine.stop()
    assert [r.time for r in reports] == [r.time for r in old.results()]
    assert max(times(reports)) < ELEMENTS[10].ts <= min(times(new.results()))


def test_a_query_that_was_never_in_a_plan_has_no_results(engine: Any, path: Any) -> None:
    gone = engine.register(ALL.text, name="q")
    gone.unregister()
    engine.register(ALL.text, name="q")
    engine.start()
    feed(engine, path, ELEMENTS)
    assert list(gone.results()) == [], "nor does a reader wait for some"
    assert gone.to_polars(terms=True).height == 0


def test_an_old_handle_does_not_take_out_the_query_that_has_its_name_now(engine: Any) -> None:
    old = engine.register(ALL.text, name="q")
    old.unregister()
    new = engine.register(OTHER.text, name="q")
    for ask in (old.unregister, old.explain):
        with pytest.raises(
            UsageError, match="This query q has been taken out; another one has its name"
        ):
            ask()
    new.unregister()
    with pytest.raises(UsageError, match="There is no query q"):
        new.unregister()


def ran(root: Any, path: Any, query: Any, *, keep_open: bool = True) -> Any:
    """The results of a run on a checkpoint."""
    with Engine(spark=False, checkpoint=root, partitions=2) as engine:
        engine.stream(S, path)
        handle = engine.register(query.text, name="q")
        engine.start(once=True, keep_open=keep_open)
        engine.await_end()
        return list(handle.results())


@pytest.mark.parametrize("keep_open", [True, False])
def test_the_epoch_that_a_crash_left_unpublished_belongs_to_the_query_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_open: bool
) -> None:
    path = write_lines(tmp_path / "s.nt", ELEMENTS)
    replace = os.replace

    def killed(name: Any, *args: Any, **kwargs: Any) -> None:
        if str(name).endswith("open"):  # which becomes done with the epoch
            raise OSError("killed")
        replace(name, *args, **kwargs)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(EngineError):
        ran(tmp_path / "c", path, ALL, keep_open=keep_open)
    monkeypatch.undo()
    shutil.copytree(tmp_path / "c", tmp_path / "d")
    assert ran(tmp_path / "c", path, ALL, keep_open=keep_open)
    assert ran(tmp_path / "d", path, OTHER, keep_open=keep_open) == []
