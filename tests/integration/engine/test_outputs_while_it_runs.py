"""Outputs that come while the engine runs: from their query's first report on, each report once,
as if they had been there; also if the engine dies at any moment, and until the query goes.
"""

from __future__ import annotations

import itertools
import json
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from levada import Engine
from levada.checkpoint import result_index
from levada.checkpoint.delivery_progress import read_deliveries
from levada.checkpoint.request_files import (
    Answer,
    OutputSpec,
    QuerySpec,
    Request,
    place,
    read_ledger,
)
from levada.cli.main import main
from levada.connectors.sinks import sink_url
from levada.connectors.sinks.transactional_sink import Position
from levada.core.durable_files import replace_file
from levada.engine.delivery import delivery_manager
from levada.engine.query import Query
from levada.engine.status.request_client import ask
from levada.engine.status.status import read_status
from levada.errors import UsageError
from levada.testing.memory_sink import MemorySink
from support.file_sink import SCHEME, FileTarget, Held, held
from support.polling import until

S = "http://e/s"
TEXT = f"""PREFIX : <http://e/> SELECT ?a FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} }}"""
IDS = map("{:020d}".format, itertools.count())
CANARY = "canary-41f0c2"
ONE = 1_000_000


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sink_url._MAKERS, SCHEME, FileTarget.from_url)
    monkeypatch.setitem(sink_url.OPTIONS, SCHEME, FileTarget.OPTIONS)


class World:
    """A checkpoint, a stream that is fed, and all that was published since the first engine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.fed, self.sink = folder, 0, MemorySink()
        (folder / "s").mkdir()

    @contextmanager
    def engine(self, *queries: str, **options: Any) -> Iterator[Engine]:
        options = {"epoch_rows": 2, "keep_results": False} | options
        made = Engine(spark=False, checkpoint=self.folder / "ck", sink=self.sink, **options)
        with made:
            made.stream(S, self.folder / "s")
            for name in queries:
                made.register(TEXT, name=name)
            made.start()
            yield made

    def feed(self, engine: Engine, n: int) -> None:
        """So many more elements, half a second apart; until the engine has them."""
        self.put(n)
        self.read(engine)

    def put(self, n: int) -> None:
        for i in range(self.fed, self.fed + n):
            path = self.folder / "s" / f"{i:05d}.nt"
            path.with_name(".new").write_text(f'<http://e/a{i}> <http://e/p> "{i}" {500 * i} .\n')
            path.with_name(".new").rename(path)
        self.fed += n

    def read(self, engine: Engine) -> None:
        def elements() -> int:
            engine.await_end(0)
            return sum(r.elements for r in engine._records().values())

        until(lambda: elements() >= self.fed)

    def ask(self, request: Request) -> Answer:
        return ask(self.folder / "ck", request, lambda: time.sleep(0.002))

    def add(self, name: str, *to: str, text: str = TEXT, **said: str) -> Answer:
        going = [OutputSpec(self.url(one), said) for one in to]
        return self.ask(Request(next(IDS), [QuerySpec(name, text, outputs=going)]))

    def drop(self, name: str) -> Answer:
        return self.ask(Request(next(IDS), drop=name))

    def url(self, name: str) -> str:
        return f"{SCHEME}{self.folder / name}"

    def had(self, name: str) -> list[str]:
        return held(self.folder / name).lines

    def said(self, query: str) -> list[str]:
        """What was published of a query; an engine that goes on publishes its last epoch again."""
        found = (line.decode() for line in self.sink.lines)
        return list(dict.fromkeys(line for line in found if json.loads(line)["query"] == query))

    def ends(self, query: str, name: str) -> bool:
        """Whether an output has the end of what is published of a query, and nothing else."""
        had = self.had(name)
        return bool(had) and had == self.said(query)[-len(had) :]

    def until_had(self, name: str, query: str, engine: Engine) -> list[str]:
        def look() -> bool:
            engine.await_end(0)
            return self.had(name) == self.said(query)

        until(look)
        return self.had(name)

    def sign(self, name: str) -> Path:
        """``away`` or ``wrong`` of a target, as its ending says."""
        return self.folder / name

    def outputs(self) -> list[str]:
        return [one.note for one in read_status(self.folder / "ck").outputs]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("keep", ["", "100MB"])
def test_a_query_of_the_program_has_its_output_from_its_first_report_on(
    world: World, keep: str
) -> None:
    with world.engine("always", keep=keep) as engine:
        world.feed(engine, 6)
        asked = engine.register(TEXT, name="tardy")
        world.feed(engine, 6)  # it has reported before it has an output
        asked.to(world.url("tardy"))
        engine.register(TEXT, name="at_once").to(world.url("at_once"))
        with pytest.raises(UsageError, match=r"go to .* already"):
            asked.to(world.url("tardy"))
        world.feed(engine, 10)
        assert len(world.until_had("tardy", "tardy", engine)) > 4
        assert world.until_had("at_once", "at_once", engine)
        until(lambda: not any(o.pending_reports for o in engine.status().outputs))
        assert [o.query for o in engine.status().outputs] == ["tardy", "at_once"]


def test_an_output_of_a_query_that_runs_begins_where_results_are_kept(world: World) -> None:
    with world.engine("always") as engine:  # keeps nothing: with the next report
        world.feed(engine, 8)
        handle = Query(engine._registry.queries["always"], engine)
        handle.to(world.url("next"))
        until(lambda: engine.status().outputs)
        world.feed(engine, 8)
        until(lambda: len(world.had("next")) >= 4 and world.ends("always", "next"))
        assert len(world.had("next")) < len(world.said("always"))
        handle.to(world.url("kept"))  # from where that was, or before
        world.feed(engine, 2)
        until(lambda: world.ends("always", "kept"))
        assert len(world.had("kept")) > len(world.had("next")) - 2


def test_what_a_request_named_goes_on_with_later_runs(world: World) -> None:
    with world.engine("always") as engine:
        world.feed(engine, 4)
        assert world.add("q", "one", "two").messages[0].startswith("q: added, from ")
        world.feed(engine, 5)
    for n in (3, 6):
        with world.engine("always") as engine:
            world.feed(engine, n)
            until(lambda: not any(o.pending_reports for o in engine.status().outputs))
    with world.engine("always") as engine:
        world.read(engine)
        assert len(world.until_had("one", "q", engine)) > 3
        assert world.until_had("two", "q", engine) == world.had("one")
    assert len(read_ledger(world.folder / "ck").outputs) == 2


class KilledError(BaseException):
    """Where the engine is to die."""


def dies(where: Any, name: str, *, after: bool) -> Callable[[pytest.MonkeyPatch], None]:
    """Has a function raise, before or after it has done what it does; once, from then on not."""

    def patch(patched: pytest.MonkeyPatch) -> None:
        whole, left = getattr(where, name), [None]

        def killed(*args: Any, **kwargs: Any) -> Any:
            found = whole(*args, **kwargs) if after or not left else None
            if left:
                left.clear()
                raise KilledError
            return found

        patched.setattr(where, name, killed)

    return patch


MOMENTS = {
    "taken": dies(delivery_manager.Requested, "follow", after=False),
    "begun": dies(delivery_manager.Deliveries, "follow", after=True),
    "not indexed": dies(result_index.Index, "add", after=False),
    "indexed": dies(result_index.Index, "add", after=True),
    "not opened": dies(FileTarget, "open", after=False),
    "not delivered": dies(FileTarget, "write", after=False),
    "delivered": dies(FileTarget, "write", after=True),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_death_at_any_moment_loses_and_doubles_nothing(
    world: World, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = world.folder / "ck"
    with pytest.raises(BaseException) as death, world.engine("always") as engine:  # noqa: PT011
        world.feed(engine, 4)
        with monkeypatch.context() as patched:
            MOMENTS[moment](patched)
            going = [OutputSpec(world.url("one"))]
            place(root, Request(next(IDS), [QuerySpec("q", TEXT, outputs=going)]))
            until(lambda: read_ledger(root).outputs or engine.await_end(0))
            world.put(8)  # which q sees
            until(lambda: engine.await_end(0.01))
    assert "Killed" in repr(death.value) + repr(death.value.__cause__)
    with world.engine("always") as engine:
        world.feed(engine, 8)
        until(lambda: "q" in engine.queries() and world.said("q"))
        world.until_had("one", "q", engine)
        assert len(world.had("one")) == len(set(world.had("one"))) > 1


def test_a_query_that_goes_takes_its_outputs_along_when_they_have_all(world: World) -> None:
    away = world.sign("one.away")
    with world.engine("always") as engine:
        world.feed(engine, 4)
        world.add("q", "one")
        world.feed(engine, 6)
        until(lambda: world.had("one") == world.said("q"))
        away.touch()
        world.feed(engine, 4)
        until(lambda: engine.status().outputs[0].reason)
        told = world.drop("q").messages
        assert told[1] == f"q: ends at {world.url('one')}, too"
        world.feed(engine, 4)
        until(lambda: "was dropped: this output ends" in str(world.outputs()))
        assert len(world.had("one")) < len(world.said("q"))
    with world.engine("always") as engine:  # so does a later run
        until(lambda: engine.status().outputs)
        away.unlink()
        before = world.until_had("one", "q", engine)
        until(lambda: not read_ledger(world.folder / "ck").outputs)
        until(lambda: not read_deliveries(world.folder / "ck"))
        # another query of the name, with and without outputs: each has its own reports
        world.add("q")
        world.feed(engine, 4)
        world.drop("q")
        without = world.said("q")
        assert len(without) > len(before)
        world.add("q", "one")
        world.feed(engine, 4)
        until(lambda: len(world.said("q")) > len(without))
        until(lambda: world.had("one") == before + world.said("q")[len(without) :])


def test_the_next_one_to_a_target_waits_for_the_one_before(world: World) -> None:
    away = world.sign("one.away")
    with world.engine("always") as engine:
        world.feed(engine, 4)
        world.add("q", "one")
        world.feed(engine, 4)
        until(lambda: world.had("one") == world.said("q"))
        away.touch()
        world.feed(engine, 4)
        world.drop("q")
        world.add("q", "one")
        world.feed(engine, 4)
    with world.engine("always") as engine:
        world.feed(engine, 4)
        away.unlink()
        world.until_had("one", "q", engine)
        until(lambda: len(read_ledger(world.folder / "ck").outputs) == 1)


def test_a_program_takes_a_query_out_and_in_again(world: World) -> None:
    with world.engine("always") as engine:
        world.feed(engine, 4)
        for n in (4, 5):
            asked = engine.register(TEXT, name="q").to(world.url("one"))
            world.feed(engine, n)
            asked.unregister()
        world.feed(engine, 4)
        world.until_had("one", "q", engine)
        until(lambda: not engine.status().outputs)
        with pytest.raises(UsageError, match="no query q"):
            asked.to(world.url("two"))


def test_what_is_wrong_with_a_target_ends_no_engine(world: World) -> None:
    wrong = world.sign("one.wrong")
    wrong.touch()
    with world.engine("always") as engine:
        world.feed(engine, 4)
        world.add("q", "one")
        world.feed(engine, 4)
        until(lambda: "is wrong" in engine.status().outputs[0].reason)
    with world.engine("always") as engine:
        world.feed(engine, 4)
        wrong.unlink()
        world.until_had("one", "q", engine)
        world.add("p", "two")
    world.sign("two.wrong").touch()
    with (
        pytest.warns(UserWarning, match=r"The output of the query p .*ends without all: .*wrong"),
        world.engine("always") as engine,
    ):
        world.feed(engine, 2)
        until(lambda: any("is wrong" in o.reason for o in engine.status().outputs))
        world.drop("p")
        until(lambda: len(read_ledger(world.folder / "ck").outputs) == 1)


def test_a_request_that_is_refused_changes_no_output(world: World) -> None:
    with world.engine("always") as engine:
        world.feed(engine, 4)
        world.add("q", "one")
        world.feed(engine, 4)
        ledger = read_ledger(world.folder / "ck")
        for text, to in (("SELECT", []), (TEXT, ["two", "two"]), ("ASK { }", ["two"])):
            going = [OutputSpec(world.url(one)) for one in to]
            wish = Request(next(IDS), [QuerySpec("q", text, outputs=going)], drop="q")
            assert world.ask(wish).refusal
            assert world.ask(Request(next(IDS), [QuerySpec("p", text, outputs=going)])).refusal
        assert "no such target" in world.ask(
            Request(next(IDS), [QuerySpec("p", TEXT, outputs=[OutputSpec("ftp://x/y")])])
        ).refusal  # fmt: skip
        assert engine.queries() == ["always", "q"]
        world.feed(engine, 4)
        world.until_had("one", "q", engine)
        assert read_ledger(world.folder / "ck").outputs == ledger.outputs
        # one that another takes the place of ends
        assert world.ask(Request(next(IDS), [QuerySpec("q", TEXT + " ")], drop="q")).added == ["q"]
        before = world.said("q")
        world.feed(engine, 4)
        until(lambda: not read_ledger(world.folder / "ck").outputs)
        assert world.had("one") == before


def test_no_password_comes_into_a_checkpoint(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    root, query = world.folder / "ck", world.folder / "p.rq"
    query.write_text(TEXT)
    with world.engine("always") as engine:
        world.feed(engine, 4)
        assert "does not stand here" in world.add("q", "one", password=CANARY).refusal
        for url in (f"{world.url('x')},password={CANARY}", f"postgresql://u:{CANARY}@h/db"):
            assert main(["add", str(root), str(query), "--to", url]) == 2
        assert main(["add", str(root), str(query), str(query), "--to", world.url("x")]) == 2
        assert main(["add", str(root), str(query), "--to", f"z={world.url('x')}"]) == 2
        assert CANARY not in "".join(capsys.readouterr())
        to = f"p={world.url('x')},password=env:THE_WORD"
        assert main(["add", str(root), str(query), "--to", to, "--to", world.url("y")]) == 0
        world.feed(engine, 4)
        world.until_had("x", "p", engine)
        world.until_had("y", "p", engine)
    # Behind its end: whoever runs deletes what it does not need any more, also while we read.
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]
    assert read_ledger(root).outputs[0].output.options == {"password": "env:THE_WORD"}


def test_what_has_no_checkpoint_has_no_output(world: World) -> None:
    with Engine(spark=False) as engine:
        engine.stream(S, world.folder / "s")
        engine.start()
        with pytest.raises(UsageError, match="does not survive"):
            engine.register(TEXT, name="q").to(world.url("one"))
        request = Request(
            next(IDS), [QuerySpec("q2", TEXT, outputs=[OutputSpec(world.url("one"))])]
        )
        answer = ask(engine.root, request, lambda: time.sleep(0.002))
        assert "does not survive" in answer.refusal
        assert engine.queries() == ["q"]
    with pytest.raises(UsageError, match="has ended"), world.engine() as engine:
        asked = engine.register(TEXT, name="q")
        engine.stop()
        asked.to(world.url("one"))


def test_whatever_comes_and_goes_each_report_is_there_once(world: World, random_seed: int) -> None:
    """Queries under four names come and go by requests, each with a target of its own, while
    targets are away for a time and the engine starts again.
    """
    draw = random.Random(random_seed)
    there: set[str] = set()
    for _ in range(3):
        with warnings.catch_warnings(), world.engine("always", epoch_rows=3) as engine:
            warnings.simplefilter("ignore")
            world.read(engine)
            for _ in range(6):
                name = draw.choice("abcd")
                if name in there:
                    assert not world.drop(name).refusal
                else:
                    world.sign(f"{name}.away").unlink(missing_ok=True)
                    assert not world.add(name, name).refusal
                there ^= {name}
                world.feed(engine, draw.randint(0, 4))
                _toggle(world, engine, draw.choice("abcd"))
    for sign in world.folder.glob("*.away"):
        sign.unlink()
    with world.engine("always") as engine:
        world.read(engine)
        for name in "abcd":
            world.until_had(name, name, engine)
    assert [len(world.had(name)) for name in "abcd"] != [0] * 4


def _toggle(world: World, engine: Engine, name: str) -> None:
    """A target goes away that has been there, or comes again."""
    sign = world.sign(f"{name}.away")
    known = any(d.query == name and d.known for d in engine._deliveries.all)
    if sign.exists():
        sign.unlink()
    elif known:
        sign.touch()


def run_once(world: World) -> None:
    """All that there is, with an output of the program."""
    with Engine(
        spark=False, checkpoint=world.folder / "ck", epoch_rows=2, keep_results=False, keep="100MB"
    ) as engine:
        engine.stream(S, world.folder / "s")
        engine.register(TEXT, name="q").to(world.url("one"))
        engine.start(once=True)
        engine.await_end()


def test_a_target_that_was_restored_is_asked_before_a_run_ends(world: World) -> None:
    """Its last transactions are gone: a later run with nothing to read delivers them again."""
    world.put(12)
    run_once(world)
    path = world.folder / "one"
    whole = held(path)
    assert whole.position is not None
    reports = sorted({json.loads(line)["report"] for line in whole.lines})
    early = [line for line in whole.lines if json.loads(line)["report"] < reports[4]]
    position = Position(whole.position.epoch - 4, reports[3], whole.position.since)
    replace_file(path, msgspec.json.encode(Held(position, early)))
    run_once(world)
    assert {*held(path).lines} == {*whole.lines}
