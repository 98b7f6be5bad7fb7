"""What other processes ask of an engine: done once or refused once, durably, in whatever order
engines and askers die; and readers in other processes.
"""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.checkpoint import reader_leases
from levada.checkpoint import request_files as store
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.reader_leases import ReaderLease, RetainedEpochs
from levada.checkpoint.request_files import Answer, QuerySpec, Request, read_ledger
from levada.checkpoint.verify import verify
from levada.cli.remote.add_drop import ask
from levada.engine.status.epoch_follower import Reader
from levada.engine.status.status import read_status
from levada.errors import EngineError, SinkError
from levada.plan.topology.topology import Topology
from support.polling import until

S = "http://e/s"
TEXT = f"""PREFIX : <http://e/> SELECT ?a FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S STEP PT1S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} }}"""
MAKER = f"""PREFIX : <http://e/> REGISTER STREAM :made AS CONSTRUCT {{ ?a :q ?n }}
FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S STEP PT1S] WHERE {{ WINDOW :w {{ ?a :p ?n }} }}"""
READER = """PREFIX : <http://e/> SELECT ?a FROM NAMED WINDOW :w ON :made [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?a :q ?n } }"""
IDS = map("{:020d}".format, itertools.count())


@pytest.fixture
def feed(tmp_path: Path) -> Callable[[int], None]:
    """Writes so many more elements, half a second apart."""
    (tmp_path / "s").mkdir()
    numbers = itertools.count()

    def more(n: int) -> None:
        for i in itertools.islice(numbers, n):
            path = tmp_path / "s" / f"{i:05d}.nt"
            path.with_name(".new").write_text(f'<http://e/a{i}> <http://e/p> "{i}" {500 * i} .\n')
            path.with_name(".new").rename(path)

    return more


@contextmanager
def engine(folder: Path, **queries: str) -> Iterator[Engine]:
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False) as made:
        made.stream(S, folder / "s")
        for name, text in queries.items():
            made.register(text, name=name)
        made.start()
        yield made


def asked(folder: Path, request: Request) -> Answer:
    return ask(folder / "ck", request, lambda: time.sleep(0.002))


def add(folder: Path, text: str = TEXT, name: str = "q", **said: Any) -> Answer:
    return asked(folder, Request(next(IDS), [QuerySpec(name, text, None, said)]))


def drop(folder: Path, name: str = "q") -> Answer:
    return asked(folder, Request(next(IDS), drop=name))


def caught_up(engine: Engine, elements: int) -> None:
    until(lambda: sum(r.elements for r in engine._records().values()) >= elements)


def test_a_query_comes_and_goes(tmp_path: Path, feed: Callable[[int], None]) -> None:
    feed(8)
    with engine(tmp_path, always=TEXT) as running:
        caught_up(running, 8)
        assert add(tmp_path).messages == ["q: added, from 1970-01-01T00:00:03.501Z on"]
        ends = add(tmp_path, name="ends", lifetime=30_000).messages
        assert ends == [
            "ends: added, from 1970-01-01T00:00:03.501Z on, until 1970-01-01T00:00:33.501Z"
        ]
        drop(tmp_path, "ends")
        assert running.queries() == ["always", "q"]
        assert drop(tmp_path).messages[0].startswith("q: dropped after epoch ")
        assert running.queries() == ["always"]
    assert not list((tmp_path / "ck" / "requests").iterdir())
    report = verify(tmp_path / "ck")
    assert not report.damaged
    assert "requested" in {found.item.kind for found in report.files}


def test_what_is_refused_says_where_and_changes_nothing(
    tmp_path: Path, feed: Callable[[int], None]
) -> None:
    feed(1)
    with engine(tmp_path, always=TEXT) as running:
        wrong = add(tmp_path, TEXT.replace("WHERE", "WERE"), "bad")
        assert wrong.refusal.startswith("line 2, column 1: WERE cannot stand here.")
        assert (wrong.notes, wrong.exit_code) == (["bad"], 2)
        assert "There is a query always already" in add(tmp_path, name="always").refusal
        assert "Did you mean always?" in drop(tmp_path, "alway").refusal
        assert "bounds" in add(tmp_path, bounds="[]").refusal
        one, other = QuerySpec("one", TEXT), QuerySpec("other", "SELECT")
        assert asked(tmp_path, Request(next(IDS), [one, other])).exit_code == 2
        assert running.queries() == ["always"]


def test_a_file_that_is_no_request_is_refused(tmp_path: Path, feed: Callable[[int], None]) -> None:
    feed(1)
    folder = tmp_path / "ck" / "requests"
    with engine(tmp_path, always=TEXT):
        folder.mkdir(exist_ok=True)
        (folder / "7.json").write_text("{}")
        until((folder / "7.answer").exists)
        answer = store.take_answer(tmp_path / "ck", "7")
        assert answer is not None
        assert answer.refusal.startswith("The request cannot be read")


def test_what_results_cannot_be_written_of_is_refused(
    tmp_path: Path, feed: Callable[[int], None]
) -> None:
    def fits(query: Any, queries: int) -> None:
        raise SinkError(f"{queries} are too many.")

    feed(1)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as running:
        running._fits = fits
        running.stream(S, tmp_path / "s")
        running.start()
        assert add(tmp_path) == Answer(refusal="1 are too many.", exit_code=1)
        assert running.queries() == []


def test_makers_and_readers(tmp_path: Path, feed: Callable[[int], None]) -> None:
    feed(1)
    with engine(tmp_path) as running:
        both = [QuerySpec("reader", READER), QuerySpec("maker", MAKER)]
        assert len(asked(tmp_path, Request(next(IDS), both)).messages) == 2
        assert "is read by reader" in drop(tmp_path, "maker").refusal
        feed(8)
        caught_up(running, 8)
    with engine(tmp_path) as running:
        assert sorted(running.queries()) == ["maker", "reader"]
        assert drop(tmp_path, "reader").messages
        assert drop(tmp_path, "maker").messages
    with engine(tmp_path) as running:
        assert running.queries() == []


def test_it_lasts(tmp_path: Path, feed: Callable[[int], None]) -> None:
    feed(3)
    with engine(tmp_path, always=TEXT, other=TEXT):
        add(tmp_path)
        drop(tmp_path, "other")
    feed(3)
    with (
        pytest.warns(UserWarning, match=r"other was dropped by levada drop.*levada add takes it"),
        engine(tmp_path, always=TEXT, other=TEXT) as running,
    ):
        caught_up(running, 5)
        assert running.queries() == ["always", "q"]
        assert add(tmp_path, name="other").messages
    with engine(tmp_path, always=TEXT, other=TEXT) as running:
        assert sorted(running.queries()) == ["always", "other", "q"]
    longer = TEXT.replace("RANGE PT1S", "RANGE PT2S")
    with (
        pytest.warns(UserWarning, match=r"The query q is another one than in the run before"),
        engine(tmp_path, always=TEXT, q=longer) as running,
    ):
        feed(1)
        caught_up(running, 6)
        assert running._registry.queries["q"].text == longer


def test_without_an_engine_nothing_is_left_behind(
    tmp_path: Path, feed: Callable[[int], None]
) -> None:
    feed(1)
    with engine(tmp_path, always=TEXT):
        pass
    with pytest.raises(EngineError, match="No engine runs on the checkpoint"):
        add(tmp_path)
    assert store.list_requests(tmp_path / "ck") == []


def test_an_engine_that_ends_before_it_answers(
    tmp_path: Path, feed: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(1)
    monkeypatch.setattr("levada.engine.control_requests.LOOK", 3600.0)
    with engine(tmp_path, always=TEXT) as running:
        until(lambda: running.progress().epochs)

        def close() -> None:
            until(lambda: store.list_requests(tmp_path / "ck"), "the request")
            running.close()

        threading.Thread(target=close).start()
        with pytest.raises(EngineError, match=r"ended before it took up.*withdrawn"):
            add(tmp_path)
    assert store.list_requests(tmp_path / "ck") == []


@pytest.mark.parametrize("refused", ["", "It was refused."])
def test_a_request_that_was_done_is_not_done_again(
    tmp_path: Path, feed: Callable[[int], None], refused: str
) -> None:
    """An engine died when the ledger had the request, and before its file went."""
    feed(1)
    with engine(tmp_path, always=TEXT):
        pass
    root, name = tmp_path / "ck", next(IDS)
    store.place(root, Request(name, [QuerySpec("q", TEXT)]))
    ledger = store.read_ledger(root)
    ledger.answers[name] = Answer(refusal=refused, added=[] if refused else ["q"])
    store.write_ledger(root, ledger)
    with engine(tmp_path, always=TEXT) as running:
        answer = until(lambda: store.take_answer(root, name))
        assert answer.refusal == refused
        assert running.queries() == ["always"]


def test_a_query_that_was_dropped_and_comes_again_begins_anew(
    tmp_path: Path, feed: Callable[[int], None]
) -> None:
    """Also if the engine dies before an epoch knows it."""
    feed(6)
    with engine(tmp_path, q=TEXT) as running:
        caught_up(running, 6)
    root = tmp_path / "ck"
    manifest = store_manifest(root)
    ledger = store.read_ledger(root)
    query = running._registry.queries["q"]
    ledger.added_queries.append(store.Added("q", TEXT, query.dialect, query.options, manifest.plan))
    store.write_ledger(root, ledger)
    for elements in (7, 8):
        feed(1)
        with engine(tmp_path) as running:
            caught_up(running, elements)
            assert running._registry.queries["q"].lifetime.query.start == 2501


def store_manifest(root: Path) -> Any:
    found = newest_manifest(root)
    assert found is not None
    return found


def test_a_reader_has_each_epoch_once(tmp_path: Path, feed: Callable[[int], None]) -> None:
    feed(1)
    found: list[int] = []
    with engine(tmp_path, always=TEXT) as running:
        caught_up(running, 1)
        reader = Reader(
            tmp_path / "ck", ReaderLease(tmp_path / "ck", "r", time.monotonic), from_start=True
        )
        for elements in range(5, 41, 4):
            feed(4)
            caught_up(running, elements)
            if elements % 3 == 0:
                found += reports(reader)
        assert len(list((tmp_path / "ck" / "manifests").iterdir())) >= 2
    found += reports(reader)
    assert found == [1000 * i for i in range(1, 19)], "the last element is at 18,000"
    assert reader.missed == 0


def reports(reader: Reader) -> list[int]:
    return [
        int(time)
        for _, batches in reader.epochs()
        for _, batch in batches
        for time in dict.fromkeys(batch.report.tolist())
    ]


def test_what_is_kept_for_readers_is_bounded(
    tmp_path: Path, feed: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_leases, "MOST_EPOCHS", 3)
    feed(1)
    with engine(tmp_path, always=TEXT) as running:
        caught_up(running, 1)
        reader = Reader(
            tmp_path / "ck", ReaderLease(tmp_path / "ck", "r", time.monotonic), from_start=False
        )
        for elements in range(2, 14):
            feed(1)
            caught_up(running, elements)
        epochs = len(list((tmp_path / "ck" / "manifests").iterdir()))
        assert epochs <= 4
        read = [epoch for epoch, _ in reader.epochs()]
        assert reader.missed + len(read) == running.progress().epochs - 1
        assert len(read) <= 4


def test_a_reader_that_gives_no_sign_is_given_up(
    tmp_path: Path, feed: Callable[[int], None]
) -> None:
    feed(1)
    with engine(tmp_path, always=TEXT) as running:
        caught_up(running, 1)
    root, now = tmp_path / "ck", [0.0]
    manifest = store_manifest(root)
    kept = RetainedEpochs(root, lambda: now[0])
    sign = ReaderLease(root, "r", lambda: now[0])
    sign.require_epoch(manifest.epoch)
    first = kept.follow(manifest)
    assert first is not None
    assert first.epoch == manifest.epoch
    now[0] += reader_leases.SIGN
    sign.require_epoch(manifest.epoch)
    now[0] += reader_leases.ALIVE - 1
    assert kept.follow(manifest) is not None
    now[0] += reader_leases.ALIVE + 1
    assert kept.follow(manifest) is None
    assert not list((root / "tails").iterdir())


def test_static_files_that_have_changed_are_told(
    tmp_path: Path, feed: Callable[[int], None]
) -> None:
    static = tmp_path / "static.nt"
    static.write_text("<http://e/a0> <http://e/in> <http://e/b> .\n")
    text = TEXT.replace("WHERE {", "WHERE { ?a :in ?b .")

    def run(text: str) -> None:
        with Engine(spark=False, checkpoint=tmp_path / "ck") as made:
            made.stream(S, tmp_path / "s")
            made.static(static)
            made.register(text, name="q")
            made.start(once=True, keep_open=True)
            made.await_end()

    feed(3)
    run(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(text)
    static.write_text("<http://e/a1> <http://e/in> <http://e/b> .\n" * 2)
    with pytest.warns(UserWarning, match=r"The static file .*static.nt has changed since"):
        run(text)


def test_a_query_that_this_run_does_not_have_is_told_apart_and_dropped(
    tmp_path: Path, feed: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspended query of a run before, and one that was added and cannot be planned now."""
    root, failing = tmp_path / "ck", Topology.add

    def fail(self: Topology, name: str, *rest: Any, **options: Any) -> None:
        if name == "bad":
            raise ZeroDivisionError("injected")
        failing(self, name, *rest, **options)

    monkeypatch.setattr(Topology, "add", fail)
    feed(4)
    with (
        pytest.warns(UserWarning, match="bad is suspended"),
        engine(tmp_path, always=TEXT, bad=TEXT) as running,
    ):
        caught_up(running, 4)
        add(tmp_path, name="q")
    assert "The query bad is suspended" in read_status(root).suspended_queries["bad"]

    def refuse(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("injected")

    monkeypatch.setattr("levada.engine.query_pipeline.lower", refuse)
    with (
        pytest.warns(UserWarning, match="q, which levada add added, is not run"),
        engine(tmp_path, always=TEXT) as running,
    ):
        feed(4)
        caught_up(running, 8)
        found = read_status(root).suspended_queries["bad"]
        assert "is not part of this one" in found and "levada drop bad" in found
        assert drop(tmp_path, "bad").messages[0].startswith("bad: dropped after epoch ")
        assert drop(tmp_path, "q").messages[0].startswith("q: dropped after epoch ")
        assert "There is no query q" in drop(tmp_path, "q").refusal
        assert "There is no query bad" in drop(tmp_path, "bad").refusal
        assert not read_status(root).suspended_queries
    with engine(tmp_path, always=TEXT):
        assert not read_ledger(root).added_queries
