"""A failure of Levada on one query suspends that query: its neighbours lack and repeat nothing."""

import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import levada.engine.query_pipeline as preparing
import levada.runtime.task.ingest_task as stage_zero
import levada.runtime.task.stage_task as stage
from levada import Engine
from levada.cli.status import drivers
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.query_isolation import OtherFaultError, UnsteadyError, find_failing_query
from levada.engine.status.sharing_report import read_sharing_report
from levada.engine.status.status import read_status
from levada.errors import EngineError, QueryFailureError
from levada.plan.execution.plan import PlanNode
from levada.plan.sharing.query_sharing import QuerySharing
from levada.plan.topology.topology import Topology
from levada.runtime.cost_model.plan_migrations import PlanMigrations
from support.injected_faults import FAULTS

S = "http://e/s"
HEAD = f"PREFIX : <http://e/> SELECT %s FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT2S] "
JOINED = HEAD % "?a ?x ?y" + "WHERE { WINDOW :w { ?a :p ?x ; :q ?y FILTER(?x != %d) } }"
GROUPED = HEAD % "?a (COUNT(?x) AS ?n)" + "WHERE { WINDOW :w { ?a :p ?x } } GROUP BY ?a"
BAD = HEAD % "?a (STR(?x) AS ?text)" + (
    "WHERE { WINDOW :w { ?a :p ?x OPTIONAL { ?a :q ?y } FILTER(STRLEN(STR(?x)) > 0) } } ORDER BY ?a"
)
NEIGHBOURS = {"joined": JOINED % 5, "grouped": GROUPED, "other": JOINED % 7}
Results = dict[str, list[Any]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lines = []
    for i in range(120):
        lines.append(f'<http://e/a{i % 9}> <http://e/p> "{i}" {100 * i} .\n')
        lines.append(f'<http://e/a{i % 9}> <http://e/q> "{i % 4}" {100 * i} .\n')
    path = tmp_path / "s.nt"
    path.write_text("".join(lines))
    return path


def run(data: Path, root: Path, queries: dict[str, str], **options: Any) -> Results:
    """The results of a whole run."""
    found = {}
    with Engine(spark=False, checkpoint=root, epoch_rows=40, partitions=2, **options) as engine:
        engine.stream(S, data)
        handles = [engine.register(text, name=name) for name, text in queries.items()]
        engine.start(once=True)
        engine.await_end()
        for handle in handles:
            found[handle.name] = [
                (r.time, sorted(map(str, r.rows.rows()))) for r in handle.results()
            ]
    return found


def works_for(node: PlanNode, name: str) -> bool:
    return any(node.alive[i] and member.query == name for i, member in enumerate(node.members))


@contextmanager
def failing_evaluation(kind: str, error: BaseException, name: str = "bad") -> Iterator[list[str]]:
    """Evaluating an operator of a kind fails if it works for a query of the name."""
    evaluate, evaluated = stage.evaluate, list[str]()

    def fail(node: PlanNode, frames: Any, env: Any) -> Any:
        evaluated.append(type(node.step).__name__)
        if type(node.step).__name__ == kind and (kind != "Emit" or works_for(node, name)):
            raise error
        return evaluate(node, frames, env)

    stage.evaluate = stage_zero.evaluate = fail  # type: ignore[assignment]
    try:
        yield evaluated
    finally:
        stage.evaluate = stage_zero.evaluate = evaluate


class PanicException(BaseException):
    """A panic of a library in Rust is no ``Exception``."""


@pytest.mark.long
@pytest.mark.parametrize("position", [0, 2, 3])
@pytest.mark.parametrize(
    "error", [KeyError("x"), MemoryError("10 GB"), RecursionError("deep"), PanicException("rust")]
)
def test_failure_of_an_operator_suspends_its_query_alone(
    tmp_path: Path, data: Path, error: BaseException, position: int
) -> None:
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    queries = list(NEIGHBOURS.items())
    queries.insert(position, ("bad", BAD))
    with (
        failing_evaluation("Emit", error),
        pytest.warns(UserWarning, match="The query bad is suspended, the others go on"),
    ):
        found = run(data, tmp_path / "ck", dict(queries))
    assert {name: found[name] for name in NEIGHBOURS} == alone
    assert all(alone.values())
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["bad"]


def kinds_of(data: Path, root: Path, queries: dict[str, str]) -> set[str]:
    """The kinds of operators that evaluate queries."""
    with failing_evaluation("", KeyError("never")) as evaluated:
        run(data, root, queries)
    return set(evaluated)


def test_failure_of_each_operator_suspends_its_query_alone(tmp_path: Path, data: Path) -> None:
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    kinds = kinds_of(data, tmp_path / "own", {"bad": BAD})
    kinds -= kinds_of(data, tmp_path / "others", NEIGHBOURS) - {"Emit"}
    assert len(kinds) >= 3
    for kind in kinds:
        with (
            failing_evaluation(kind, IndexError("list index out of range")),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            found = run(data, tmp_path / kind, {**NEIGHBOURS, "bad": BAD})
        assert {name: found[name] for name in NEIGHBOURS} == alone, kind
        assert list(read_status(tmp_path / kind).suspended_queries) == ["bad"], kind


def test_start_on_a_checkpoint_that_failed_comes_up(tmp_path: Path, data: Path) -> None:
    """The epoch that failed was written ahead, and no query of its plan could be suspended then."""
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    with failing_evaluation("Emit", KeyError("x")), pytest.MonkeyPatch.context() as patch:
        patch.setattr("levada.engine.engine_driver.Driver._suspend", _raise)
        with pytest.raises(EngineError):
            run(data, tmp_path / "ck", {**NEIGHBOURS, "bad": BAD})
    assert (tmp_path / "ck" / "intentions" / "open").exists()
    with (
        failing_evaluation("Emit", KeyError("x")),
        pytest.warns(UserWarning, match="bad is suspend"),
    ):
        found = run(data, tmp_path / "ck", {**NEIGHBOURS, "bad": BAD})
    assert {name: found[name] for name in NEIGHBOURS} == alone
    with failing_evaluation("Emit", KeyError("x")):
        run(data, tmp_path / "ck", {**NEIGHBOURS, "bad": BAD})  # it stays suspended
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["bad"]


def test_start_without_the_query_comes_up(tmp_path: Path, data: Path) -> None:
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    with failing_evaluation("Emit", KeyError("x")), pytest.MonkeyPatch.context() as patch:
        patch.setattr("levada.engine.engine_driver.Driver._suspend", _raise)
        with pytest.raises(EngineError):
            run(data, tmp_path / "ck", {**NEIGHBOURS, "bad": BAD})
    with failing_evaluation("Emit", KeyError("x")), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(data, tmp_path / "ck", NEIGHBOURS)
    assert found == alone


def _raise(self: Any, error: Exception, intention: Any) -> None:
    raise error


@pytest.mark.parametrize(("part", "method"), [(Topology, "add"), (QuerySharing, "_note_root")])
def test_failure_of_planning_suspends_the_query_alone(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, part: type, method: str
) -> None:
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    original = getattr(part, method)

    def fail(self: Any, first: Any, *rest: Any, **options: Any) -> Any:
        if getattr(first, "name", first) == "bad":
            raise ZeroDivisionError("injected")
        return original(self, first, *rest, **options)

    monkeypatch.setattr(part, method, fail)
    with pytest.warns(UserWarning, match="The query bad is suspended.*ZeroDivisionError"):
        found = run(data, tmp_path / "ck", {"bad": BAD, **NEIGHBOURS})
    assert {name: found[name] for name in NEIGHBOURS} == alone
    found = run(data, tmp_path / "ck", {"bad": BAD, **NEIGHBOURS})
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["bad"]


def test_failure_of_planning_a_newcomer_leaves_the_others(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Topology.add

    def fail(self: Topology, name: str, *rest: Any, **options: Any) -> None:
        if name == "bad":
            raise ZeroDivisionError("injected")
        original(self, name, *rest, **options)

    monkeypatch.setattr(Topology, "add", fail)
    alone = run(data, tmp_path / "alone", {"grouped": GROUPED})
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=40, partitions=2) as engine:
        engine.stream(S, tmp_path / "live.nt")
        (tmp_path / "live.nt").touch()
        grouped = engine.register(GROUPED, name="grouped")
        engine.start()
        with pytest.warns(UserWarning, match="bad is suspended"):
            engine.register(BAD, name="bad")
            lines = data.read_text().splitlines(keepends=True)
            with (tmp_path / "live.nt").open("a") as file:
                file.write("".join(lines))
            first = next(iter(grouped.results()))
        assert (first.time, sorted(map(str, first.rows.rows()))) == alone["grouped"][0]
        engine.unregister("bad")
        other = engine.register(JOINED % 9, name="younger")
        with (tmp_path / "live.nt").open("a") as file:
            file.write(
                '<http://e/b> <http://e/p> "1" 30000 .\n<http://e/b> <http://e/q> "1" 30000 .\n'
            )
            file.write('<http://e/b> <http://e/p> "1" 40000 .\n')
        assert any(report.time == 32000 for report in other.results())


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, marks=[pytest.mark.long] if n else []) for n, f in enumerate(FAULTS)],
)
@pytest.mark.parametrize("method", ["begin", pytest.param("finish", marks=pytest.mark.long)])
def test_failure_of_a_migration_leaves_queries_in_their_orders(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, method: str, fault: str
) -> None:
    monkeypatch.setenv("LEVADA_WATCHDOG", "0.5")
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    original, failed = getattr(PlanMigrations, method), list[int]()

    def fail(self: PlanMigrations, *arguments: Any, **options: Any) -> Any:
        if self.every:
            failed.append(self.every)
            FAULTS[fault]()
        return original(self, *arguments, **options)

    monkeypatch.setattr(PlanMigrations, method, fail)
    options = {"watchdog": lambda sentence: None}
    with pytest.warns(UserWarning, match=r"moved queries to other .* at levada/.*py:\d"):
        assert run(data, tmp_path / "ck", NEIGHBOURS, **options) == alone
    assert len(failed) == read_status(tmp_path / "ck").failed_migrations == 1
    assert any("moved queries" in what for _, what in read_sharing_report(tmp_path / "ck").log)
    sentences = "".join(drivers(read_status(tmp_path / "ck")))
    assert "Levada has failed 1 time as it moved queries" in sentences


@pytest.mark.parametrize("stage_name", ["translate", "optimize", "parse"])
def test_failure_on_a_text_refuses_the_query(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, stage_name: str
) -> None:
    original = getattr(preparing, stage_name)

    def fail(*arguments: Any, **options: Any) -> Any:
        if "STRLEN" in str(arguments) + str(options):
            raise ZeroDivisionError("injected")
        return original(*arguments, **options)

    monkeypatch.setattr(preparing, stage_name, fail)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream(S, data)
        with pytest.raises(
            QueryFailureError, match="Levada failed on this query with ZeroDivision"
        ):
            engine.register(BAD, name="bad")
        engine.register(GROUPED, name="grouped")


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 100])
def test_guilty_query_is_found_within_the_bound(count: int) -> None:
    names = [f"q{i}" for i in range(count)]
    for culprit in names:
        tried: list[int] = []

        def fails(without: Any, culprit: str = culprit, tried: list[int] = tried) -> bool:
            tried.append(len(without))
            return culprit not in without

        assert find_failing_query(names, fails) == culprit
        assert len(tried) <= (count - 1).bit_length() + 1


def test_guilty_of_a_pair_is_the_younger() -> None:
    pair = {"c", "f"}
    assert find_failing_query("abcdefg", lambda without: not pair & set(without)) == "f"


def test_failure_of_others_and_one_that_goes_away_are_told_apart() -> None:
    with pytest.raises(OtherFaultError):
        find_failing_query("abc", lambda without: True)
    with pytest.raises(UnsteadyError):
        find_failing_query("abc", lambda without: False)


@pytest.mark.parametrize("at", ["levada.runtime.publication.publication.publish_batch", "decode"])
def test_failure_of_writing_suspends_the_query_alone(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def written(root: Path, queries: dict[str, str]) -> dict[str, list[str]]:
        sink = FileSink(root / "out", Format.CSV)
        with Engine(spark=False, checkpoint=root / "ck", epoch_rows=40, sink=sink) as engine:
            engine.stream(S, data)
            for name, text in queries.items():
                engine.register(text, name=name)
            engine.start(once=True)
            engine.await_end()
        files = sorted((root / "out").rglob("*.csv"))
        lines = {str(f.relative_to(root)): sorted(f.read_text().splitlines()) for f in files}
        return {name: own for name, own in lines.items() if "bad" not in name}

    def fail(original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if any(getattr(each, "name", "") == "bad" for each in arguments):
                raise KeyError("injected")
            return original(*arguments)

        return call

    alone = written(tmp_path / "alone", NEIGHBOURS)
    if at == "decode":
        at = "levada.operators.results.result_segments._batch"
    module, _, name = at.rpartition(".")
    monkeypatch.setattr(at, fail(getattr(importlib.import_module(module), name)))
    with pytest.warns(UserWarning, match="The query bad is suspended.*injected"):
        assert written(tmp_path / "with", {"bad": BAD, **NEIGHBOURS}) == alone
    assert len(alone) > 3
    assert list(read_status(tmp_path / "with" / "ck").suspended_queries) == ["bad"]


@contextmanager
def failing_removal(name: str = "bad") -> Iterator[list[str]]:
    """Taking a query out of the plan fails half way."""
    remove, failed = Topology.remove, list[str]()

    def fail(self: Topology, removed: str) -> None:
        if removed == name:
            failed.append(name)
            self.queries.pop(name)
            raise KeyError("injected")
        remove(self, removed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Topology, "remove", fail)
        yield failed


@pytest.mark.parametrize("position", [0, 3])
def test_failure_of_a_removal_leaves_the_others(tmp_path: Path, data: Path, position: int) -> None:
    """The query fails in an epoch, and again when it is taken out of the plan for that."""
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    queries = list(NEIGHBOURS.items())
    queries.insert(position, ("bad", BAD))
    with (
        failing_evaluation("Emit", IndexError("x")),
        failing_removal() as failed,
        pytest.warns(UserWarning, match=r"took queries out of the plan \(bad\).*KeyError"),
    ):
        found = run(data, tmp_path / "ck", dict(queries))
    assert failed
    assert {name: found[name] for name in NEIGHBOURS} == alone
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["bad"]
    assert "bad" not in {query.name for query in read_status(tmp_path / "ck").queries}


@contextmanager
def live(
    root: Path, data: Path, queries: dict[str, str]
) -> Iterator[tuple[Engine, Callable[[int], list[int]]]]:
    """An engine that runs, and what reads the times of the reports of ``joined`` up to one."""
    with Engine(spark=False, checkpoint=root, epoch_rows=40, partitions=2) as engine:
        engine.stream(S, data)
        handles = {name: engine.register(text, name=name) for name, text in queries.items()}
        engine.start()
        reports = iter(handles["joined"].results())

        def read(last: int) -> list[int]:
            found = [next(reports).time or 0]
            while found[-1] < last:
                found.append(next(reports).time or 0)
            return found

        yield engine, read


def append(data: Path, first: int, end: int) -> None:
    with data.open("a") as file:
        for i in range(first, end):
            file.write(f'<http://e/a{i % 9}> <http://e/p> "{i}" {100 * i} .\n')
            file.write(f'<http://e/a{i % 9}> <http://e/q> "{i % 4}" {100 * i} .\n')


def test_a_query_whose_removal_fails_is_dropped_over_restarts(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "ck"
    with warnings.catch_warnings(), failing_removal() as failed:
        warnings.simplefilter("ignore")
        with live(root, data, {**NEIGHBOURS, "bad": BAD}) as (engine, read):
            times = read(10_000)
            engine.unregister("bad")
            append(data, 120, 180)
            times += read(16_000)
        assert len(failed) == 1
        append(data, 180, 240)
        with live(root, data, {**NEIGHBOURS, "bad": BAD}) as (_, read):
            times += read(22_000)
        append(data, 240, 280)
        with live(root, data, NEIGHBOURS) as (_, read):  # it fails at a start, too
            times += read(26_000)
        assert len(failed) == 2
    assert times == list(range(2000, 26_001, 2000))


def test_failure_of_planning_at_a_restart_leaves_the_others(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(tmp_path / "ck", data, NEIGHBOURS) as (_, read):
        times = read(10_000)
    append(data, 120, 180)
    original = Topology.add

    def fail(self: Topology, name: str, *rest: Any, **options: Any) -> None:
        if name == "bad":
            raise ZeroDivisionError("injected")
        original(self, name, *rest, **options)

    monkeypatch.setattr(Topology, "add", fail)
    edited = {**NEIGHBOURS, "grouped": GROUPED + " HAVING (COUNT(?x) > 0)", "bad": BAD}
    with (
        pytest.warns(UserWarning, match="bad is suspended"),
        pytest.warns(UserWarning, match="grouped is another one than in the run before"),
        live(tmp_path / "ck", data, edited) as (_, read),
    ):
        times += read(16_000)
    assert times == list(range(2000, 16_001, 2000))


def names_bad(value: Any) -> bool:
    """Whether a plan is among some arguments, and has the query."""
    return any("bad" in getattr(each, "queries", ()) for each in value)


@pytest.mark.long
@pytest.mark.parametrize(
    "at",
    [
        "levada.runtime.driver.epoch_totals.hits",
        "levada.checkpoint.query_totals.update_totals",
        "levada.runtime.epoch_pipeline.tell_counts",
        "levada.runtime.epoch_pipeline.records_of",
        "levada.runtime.driver.derived_streams.references",
        "levada.runtime.driver.derived_streams.unread",
    ],
)
@pytest.mark.parametrize("position", [0, 2])
def test_failure_of_the_drivers_part_of_an_epoch_suspends_the_query_alone(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, at: str, position: int
) -> None:
    alone = run(data, tmp_path / "alone", NEIGHBOURS)
    module, _, name = at.rpartition(".")
    original = getattr(importlib.import_module(module), name)

    def fail(*arguments: Any) -> Any:
        if names_bad(arguments):
            raise KeyError("injected")
        return original(*arguments)

    monkeypatch.setattr(at, fail)
    queries = list(NEIGHBOURS.items())
    queries.insert(position, ("bad", BAD))
    with pytest.warns(UserWarning, match="The query bad is suspended.*injected"):
        found = run(data, tmp_path / "ck", dict(queries))
    assert {name: found[name] for name in NEIGHBOURS} == alone
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["bad"]


def test_failure_of_what_counts_over_epochs_ends_nobody(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = run(data, tmp_path / "alone", NEIGHBOURS)

    def fail(*_: Any) -> Any:
        raise KeyError("injected")

    monkeypatch.setattr("levada.engine.driver.query_quotas.QueryQuotas.find_excesses", fail)
    with pytest.warns(UserWarning, match="is counted anew.*injected"):
        assert run(data, tmp_path / "ck", NEIGHBOURS) == alone
