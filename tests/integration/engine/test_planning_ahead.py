"""Queries that requests add are planned on a thread of their own: epochs go on, and no result of
another query comes later, or twice, or is lacking.
"""

from __future__ import annotations

import cProfile
import itertools
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.checkpoint import epoch_context
from levada.checkpoint.request_files import Answer, QuerySpec, Request
from levada.cli.remote.add_drop import ask
from levada.engine import background_planning, control_requests
from levada.engine.background_planning import PlanningAhead
from levada.engine.control_requests import LOOK
from levada.engine.driver.loop_control import LoopControl
from levada.engine.engine_driver import Driver
from levada.engine.query import Query, collect_reports
from levada.operators.expressions import term_values
from levada.runtime.driver.query_catalog import Catalog
from support.polling import until

S = "http://e/s"
EACH = f"""PREFIX : <http://e/> SELECT ?v FROM NAMED WINDOW :w ON <{S}>
[RANGE PT2S STEP PT1S] WHERE {{ WINDOW :w {{ ?a :p ?v }} }}"""
IDS = map("{:020d}".format, itertools.count())


class Feed:
    """Writes elements, half a second of event time apart."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self.count = folder, 0

    def more(self, elements: int) -> None:
        for _ in range(elements):
            i, self.count = self.count, self.count + 1
            path = self._folder / f"{i:05d}.nt"
            path.with_name(".new").write_text(f'<http://e/a{i}> <http://e/p> "{i}" {500 * i} .\n')
            path.with_name(".new").rename(path)


@contextmanager
def started(folder: Path, *static: str, **queries: str) -> Iterator[tuple[Engine, Feed]]:
    feed = Feed(folder / "s")
    with Engine(spark=False, checkpoint=folder / "ck") as engine:
        engine.stream(S, folder / "s")
        for name in static:
            engine.static(folder / name)
        for name, text in queries.items():
            engine.register(text, name=name)
        engine.start()
        yield engine, feed


def request(folder: Path, **said: Any) -> Answer:
    return ask(folder / "ck", Request(next(IDS), **said), lambda: time.sleep(0.002))


def add(folder: Path, text: str = "", name: str = "newcomer", drop: str = "") -> Answer:
    return request(folder, add=[QuerySpec(name, text)] if text else [], drop=drop)


class Asker:
    """Adds a query from a thread of its own."""

    def __init__(self, *args: Any, **named: Any) -> None:
        self.answers: list[Answer] = []
        self._thread = threading.Thread(
            target=lambda: self.answers.append(add(*args, **named)), daemon=True
        )
        self._thread.start()

    def answer(self) -> Answer:
        self._thread.join(60)
        return self.answers[0]


class Held:
    """Holds each attempt to plan ahead until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.margins: list[int] = []
        plan_ahead = Catalog.plan_ahead

        def plan(catalog: Catalog, *args: Any) -> Any:
            self.margins.append(args[-1])
            self.begun.release()
            self.go.acquire()
            return plan_ahead(catalog, *args)

        monkeypatch.setattr(Catalog, "plan_ahead", plan)


def read(engine: Engine) -> int:
    return sum(record.elements for record in engine._records().values())


def number(literal: str) -> int:
    return int(literal.strip('"'))


def values(engine: Engine, name: str) -> dict[int, set[int]]:
    """The values of each report of a query so far, by its time."""
    return values_of(Query(engine._registry.get(name), engine))


def values_of(query: Query) -> dict[int, set[int]]:
    """The values of each report so far; each report comes once."""
    found: dict[int, set[int]] = {}
    for report in collect_reports(query).reports:
        assert report.time is not None
        assert report.time not in found
        found[report.time] = {number(value) for value in report.rows["v"]}
    return found


def start_of(answer: Answer) -> int:
    """From which instant on a query counts, as the answer says (ms)."""
    (said,) = re.findall(r"from (\S+)Z on", answer.messages[0])
    return round(datetime.fromisoformat(f"{said}+00:00").timestamp() * 1000)


def check_values(engine: Engine, answer: Answer, name: str = "newcomer") -> None:
    """Each report of the late query has what the first one has, from its start on."""
    start = start_of(answer)
    due = {
        time: {v for v in found if 500 * v >= start}
        for time, found in values(engine, "always").items()
    }
    assert values(engine, name) == {time: found for time, found in due.items() if found}


def test_epochs_go_on_while_a_query_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        asker = Asker(tmp_path, EACH)
        held.begun.acquire()
        for _ in range(3):
            feed.more(8)
            until(lambda: read(engine) == feed.count)
        held.go.release(2)
        answer = asker.answer()
        assert held.margins[0] == 0
        assert held.margins[1] > 0, "what came meanwhile would have been missed"
        assert start_of(answer) > 500 * (feed.count - 1)
        feed.more(40)
        until(lambda: read(engine) == feed.count)
        engine.stop()
        check_values(engine, answer)


def test_no_epoch_runs_while_the_last_attempt_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        asker = Asker(tmp_path, EACH)
        for _ in range(background_planning.MAX_ATTEMPTS - 1):
            held.begun.acquire()
            feed.more(held.margins[-1] // 500 + 9)  # more than the margin
            until(lambda: read(engine) == feed.count)
            held.go.release()
        held.begun.acquire()
        held.go.release()
        answer = asker.answer()
        assert held.margins[-1] == 0
        assert start_of(answer) == 500 * (feed.count - 1) + 1
        feed.more(12)
        until(lambda: read(engine) == feed.count)
        engine.stop()
        check_values(engine, answer)


def test_requests_one_after_the_other_read_static_data_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    (tmp_path / "static.nt").write_text("<http://e/x> <http://e/kind> <http://e/k> .\n")
    with started(tmp_path, "static.nt", always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        asker = Asker(tmp_path, EACH.replace("?a :p ?v }", "?a :p ?v } ?x :kind ?k"))
        held.begun.acquire()
        later = Asker(tmp_path, EACH.replace("?v", "?z"), "later")
        until(lambda: len(list((tmp_path / "ck" / "requests").glob("*.json"))) == 2)
        time.sleep(2 * LOOK)  # so the loop looks for requests when it adopts the first plan
        held.go.release()
        held.begun.acquire()
        assert engine._driver is not None
        epochs = engine._driver.epochs
        until(lambda: epochs.plan is not None and epochs.last.plan == epochs.plan.version)
        held.go.release(5)
        later.answer()
        feed.more(12)
        until(lambda: read(engine) == feed.count)
        engine.stop()
        check_values(engine, asker.answer())
        for report in collect_reports(Query(engine._registry.get("newcomer"), engine)).reports:
            assert len(report.rows["v"]) == len(set(report.rows["v"]))


def test_a_query_that_is_replaced_reports_until_the_other_one_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        first = add(tmp_path, EACH)
        feed.more(8)
        until(lambda: read(engine) == 16)
        handle = Query(engine._registry.get("newcomer"), engine)
        held = Held(monkeypatch)
        asker = Asker(tmp_path, EACH.replace("?a :p ?v", "?v0 :p ?v"), drop="newcomer")
        held.begun.acquire()
        feed.more(8)
        until(lambda: read(engine) == 24)
        until(lambda: max(values(engine, "always")) >= 10_000)
        held.go.release(3)
        second = asker.answer()
        feed.more(16)
        until(lambda: read(engine) == 40)
        engine.stop()
        check_values(engine, second)
        reports, start = values_of(handle), start_of(first)
        due = {t: {v for v in f if 500 * v >= start} for t, f in values(engine, "always").items()}
        assert reports == {t: due[t] for t in due if due[t] and t <= max(reports)}
        assert max(reports) >= 10_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "value", "step", "refusal"),
    [
        ("MAX_CPU_SECONDS", 2.0, list.clear, "s of CPU time"),
        ("MAX_BYTES", 64 << 20, lambda pieces: pieces.append(b"x" * 65536), "than 64 MB of memory"),
    ],
)
def test_a_text_whose_planning_does_not_end_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: float,
    step: Callable[[list[bytes]], None],
    refusal: str,
) -> None:
    plan_ahead, pieces = Catalog.plan_ahead, list[bytes]()

    def endless(catalog: Catalog, queries: dict[str, Any], *args: Any) -> Any:
        while "evil" in queries:
            step(pieces)
        return plan_ahead(catalog, queries, *args)

    monkeypatch.setattr(background_planning, limit, value)
    monkeypatch.setattr(control_requests, limit, value)
    monkeypatch.setattr(Catalog, "plan_ahead", endless)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        evil = Asker(tmp_path, EACH, "evil")
        feed.more(8)
        until(lambda: read(engine) == 16)
        assert refusal in evil.answer().refusal
        assert sum(map(len, pieces)) < 1 << 30
        answer = add(tmp_path, EACH)
        feed.more(12)
        until(lambda: read(engine) == 28)
        engine.stop()
        check_values(engine, answer)


def test_a_failure_of_planning_refuses_its_request_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_ahead = Catalog.plan_ahead

    def fails(catalog: Catalog, queries: dict[str, Any], *args: Any) -> Any:
        plan = plan_ahead(catalog, queries, *args)
        if "evil" in queries:
            raise ZeroDivisionError("on purpose")
        return plan

    monkeypatch.setattr(Catalog, "plan_ahead", fails)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        askers = {name: Asker(tmp_path, EACH, name) for name in ("evil", "newcomer", "later")}
        answers = {name: asker.answer() for name, asker in askers.items()}
        assert "ZeroDivisionError" in answers["evil"].refusal
        feed.more(12)
        until(lambda: read(engine) == 20)
        assert engine.queries() == ["always", "newcomer", "later"] or engine.queries() == [
            "always",
            "later",
            "newcomer",
        ]
        engine.stop()
        for name in ("newcomer", "later"):
            check_values(engine, answers[name], name)


def test_a_program_that_changes_the_queries_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        asker = Asker(tmp_path, EACH)
        held.begun.acquire()
        engine.register(EACH, name="of the program".replace(" ", "-"))
        held.go.release(5)
        answer = asker.answer()
        feed.more(12)
        until(lambda: read(engine) == 20)
        assert set(engine.queries()) == {"always", "newcomer", "of-the-program"}
        engine.stop()
        check_values(engine, answer)


def test_a_query_that_the_program_registers_during_adoption_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt, threads = control_requests.Requests.adopt, list[threading.Thread]()
    with started(tmp_path, always=EACH) as (engine, feed):

        def adopt_late(self: control_requests.Requests, *args: Any) -> Any:
            if not threads:
                said = {"name": "of-the-program"}
                threads.append(threading.Thread(target=engine.register, args=(EACH,), kwargs=said))
                threads[0].start()
                threads[0].join(0.1)
            return adopt(self, *args)

        monkeypatch.setattr(control_requests.Requests, "adopt", adopt_late)
        feed.more(8)
        until(lambda: read(engine) == 8)
        answer = add(tmp_path, EACH)
        threads[0].join()
        feed.more(12)
        until(lambda: read(engine) == 20)
        assert set(engine.queries()) == {"always", "newcomer", "of-the-program"}
        engine.stop()
        check_values(engine, answer)
        assert values(engine, "of-the-program")


def test_to_adopt_a_plan_costs_the_loop_the_same_whatever_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: dict[str, int] = {}
    use_planned = Driver._use_planned

    def counted(driver: Driver, trial: background_planning.Trial, plan: Any) -> None:
        profile = cProfile.Profile()
        profile.runcall(use_planned, driver, trial, plan)
        (name,) = trial.names
        calls[name] = sum(entry.callcount for entry in profile.getstats())

    monkeypatch.setattr(Driver, "_use_planned", counted)
    branches = " UNION ".join(f"{{ ?a :p{i} ?v{i} }}" for i in range(100))
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        add(tmp_path, EACH.replace("?v", "?w"), "small")
        add(tmp_path, EACH.replace("?a :p ?v", branches).replace("SELECT ?v", "SELECT *"), "large")
    assert calls["large"] == calls["small"] < 500


def test_no_epoch_reads_a_plan_or_constants_that_were_planned_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[str] = []

    def noted(read: Any, *arguments: Any) -> Any:
        readers.append(threading.current_thread().name)
        return read(*arguments)

    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        monkeypatch.setattr(epoch_context, "read_plan", partial(noted, epoch_context.read_plan))
        classify = term_values.classify
        monkeypatch.setattr(term_values, "classify", partial(noted, classify))
        members = ", ".join(f'"{i}"' for i in range(500))
        answer = add(tmp_path, EACH.replace("?v }", f"?v FILTER(?v IN ({members})) }}"))
        feed.more(12)
        until(lambda: read(engine) == 20)
        engine.stop()
        check_values(engine, answer)
    assert set(readers) == {"levada planning"}


def test_a_long_text_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = background_planning.Parsing._parse

    def count(parsing: background_planning.Parsing) -> None:
        time.sleep(0.5)  # the engine looks at its requests several times meanwhile
        parsed.append(parsing._request.id)
        parse(parsing)

    monkeypatch.setattr(background_planning.Parsing, "_parse", count)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        answer = add(tmp_path, f"# {'long ' * 1000}\n{EACH}")
        feed.more(12)
        until(lambda: read(engine) == 20)
        engine.stop()
        check_values(engine, answer)
    assert len(parsed) == 1


def test_a_query_that_is_dropped_reports_until_the_plan_without_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(tmp_path, always=EACH, other=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        handle = Query(engine._registry.get("other"), engine)
        held = Held(monkeypatch)
        asker = Asker(tmp_path, drop="other")
        held.begun.acquire()
        feed.more(8)
        until(lambda: read(engine) == 16)
        held.go.release()
        assert asker.answer().messages[0].startswith("other: dropped after epoch ")
        assert engine.queries() == ["always"]
        feed.more(8)
        until(lambda: read(engine) == 24)
        engine.stop()
        reports, due = values_of(handle), values(engine, "always")
        assert reports == {t: due[t] for t in due if t <= max(reports)}
        assert 6_000 <= max(reports) < max(due)
        assert handle._lifetime.is_over


def test_a_query_is_dropped_in_turn_where_planning_ahead_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(catalog: Catalog, *args: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(Catalog, "plan_ahead", fails)
    with started(tmp_path, always=EACH, other=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        assert request(tmp_path, drop="other").messages[0].startswith("other: dropped after epoch ")
        feed.more(8)
        until(lambda: read(engine) == 16)
        assert engine.queries() == ["always"]


def test_a_plan_that_is_made_while_the_loop_looks_for_it_is_adopted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_busy, ends_just_now = vars(PlanningAhead)["is_busy"].fget, iter([True])

    def first_is_late(ahead: PlanningAhead) -> bool:
        return bool(is_busy(ahead) or (ahead.has_trial and next(ends_just_now, False)))

    monkeypatch.setattr(PlanningAhead, "is_busy", property(first_is_late))
    monkeypatch.setattr(control_requests, "LOOK", 0)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        answer = add(tmp_path, EACH)
        feed.more(40)
        until(lambda: read(engine) == feed.count)
        engine.stop()
        check_values(engine, answer)


def test_a_slow_plan_that_is_late_each_time_is_refused_and_no_epoch_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_planning, "MAX_PAUSE", 0)
    held = Held(monkeypatch)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        asker = Asker(tmp_path, EACH)
        for _ in range(background_planning.MAX_ATTEMPTS - 1):
            held.begun.acquire()
            feed.more(held.margins[-1] // 500 + 9)  # more than the margin
            until(lambda: read(engine) == feed.count)
            held.go.release()
        assert "late each time" in asker.answer().refusal
        assert not held.begun.acquire(blocking=False)
        held.go.release()
        answer = add(tmp_path, EACH)
        feed.more(12)
        until(lambda: read(engine) == feed.count)
        engine.stop()
        check_values(engine, answer)


@pytest.mark.parametrize("slow", [1, background_planning.MAX_ATTEMPTS])
def test_the_loop_preempts_planning_when_it_must_plan_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: int
) -> None:
    plan_ahead, begun, attempts = Catalog.plan_ahead, threading.Semaphore(0), itertools.count(1)

    def endless(catalog: Catalog, *args: Any) -> Any:
        plan = plan_ahead(catalog, *args)  # in part
        if next(attempts) <= slow:
            begun.release()
            while True:
                pass
        return plan

    monkeypatch.setattr(Catalog, "plan_ahead", endless)
    with started(tmp_path, always=EACH) as (engine, feed):
        feed.more(8)
        until(lambda: read(engine) == 8)
        asker = Asker(tmp_path, EACH)
        for i in range(slow):
            begun.acquire()
            engine.register(EACH, name=f"p{i}")  # no client can have the loop plan so directly
        answer = asker.answer()
        if slow == background_planning.MAX_ATTEMPTS:
            assert "late each time" in answer.refusal
            answer = add(tmp_path, EACH)
        feed.more(12)
        until(lambda: read(engine) == 20)
        engine.stop()
        check_values(engine, answer)
        assert all(values(engine, f"p{i}") for i in range(slow))


def test_work_that_is_interrupted_as_it_ends_is_done_or_preempted() -> None:
    """In no case is it taken for done when it is not, or does the error reach another thread."""
    interval, done, uncaught = sys.getswitchinterval(), list[int](), list[Any]()
    before, threading.excepthook = threading.excepthook, uncaught.append
    try:
        for i in range(500):
            work = background_planning.Work(
                lambda: done.append(sum(range(500))), LoopControl(), "test"
            )
            work.preempt()
            assert work.is_over
            assert (work.failure is None) == (len(done) == 1), i
            assert work.failure is None or isinstance(
                work.failure, background_planning.PreemptedError
            )
            done.clear()
    finally:
        threading.excepthook = before
    assert not uncaught
    assert sys.getswitchinterval() == interval
