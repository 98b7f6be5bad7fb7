"""Streams that go by the clock: when all fall silent, what is missing is reported; the reference
judges, and a replay gives the same.
"""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from levada.core.clock import CLOCK, wall_ms
from levada.engine.engine import Engine
from levada.errors import LevadaError
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing import MemorySink
from levada.testing.compare import same
from levada.testing.stream_builders import ManualClock, lines, write_graph, write_lines
from support.polling import PATIENCE, until, until_engine
from support.query_dsl import S, T, element, expected, query, register, step

NOW = 10**12
ELEMENTS = [element(NOW + 500 * i, f"a{i % 3} p {i}") for i in range(6)]
STEPS = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="steps", windows={"w": (S, step(2000, 1000))}
)
BOTH = query(
    "SELECT ?a ?n",
    "WINDOW :w { ?a :p ?n } OPTIONAL { WINDOW :v { ?a :q ?m } }",
    name="both",
    windows={"w": (S, step(2000, 1000)), "v": (T, step(2000, 1000))},
)
ABSENT = """PREFIX : <http://e/>
SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { ?a :kind :Sensor FILTER NOT EXISTS { WINDOW :w { ?a :p ?n } } }"""


class Clocked:
    """An engine whose clock the test moves."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, at: int = NOW) -> None:
        self.sink, self.clock = MemorySink(), ManualClock(at)
        monkeypatch.setattr("levada.engine.engine_driver.wall_clock_ms", self.clock)
        self.engine = Engine(
            spark=False, checkpoint=root / "ck", partitions=2, sink=self.sink, seed=7, epoch=0
        )

    def until(self, holds: Any) -> None:
        until_engine(self.engine, holds)

    def watermark(self, name: str = S) -> int:
        record = self.engine._records().get(name)
        return -1 if record is None else record.watermark

    def record(self) -> Any:
        return self.engine._records()[S]


def append(path: Path, *elements: Any) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines(list(elements)))


def test_silence_of_all_streams_closes_their_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = Clocked(tmp_path, monkeypatch)
    with e.engine:
        e.engine.stream(S, write_lines(tmp_path / "s.nt", ELEMENTS), heartbeat="1s")
        register(e.engine, [STEPS])
        e.engine.start()
        e.until(lambda: e.watermark() == NOW + 2500)
        e.clock.advance(2_999)
        e.engine.await_end(0.1)
        assert e.watermark() == NOW + 2500, "the last beat is before what the stream has said"
        e.clock.advance(7_001)
        e.until(lambda: e.watermark() == NOW + 10_000)
        epochs = e.engine.progress().epochs
        e.clock.advance(999)
        e.engine.await_end(0.2)
        assert e.engine.progress().epochs == epochs, "between beats nothing is to be done"
        e.engine.stop()
    assert same(expected([STEPS], {S: ELEMENTS})["steps"], e.sink.reports["steps"]) is None


def test_what_is_absent_is_reported_at_every_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = Clocked(tmp_path, monkeypatch)
    with e.engine:
        e.engine.stream(S, write_lines(tmp_path / "s.nt", ELEMENTS[:1]), heartbeat="1s")
        e.engine.static(
            write_graph(tmp_path / "g.nt", ["<http://e/a0> <http://e/kind> <http://e/Sensor>"])
        )
        e.engine.register(ABSENT, name="absent", empty_reports=True)
        e.engine.start()
        e.clock.advance(5_000)
        e.until(lambda: e.watermark() == NOW + 5_000)
        e.engine.stop()
    times = [r.time - NOW for r in e.sink.reports["absent"] if r.solutions]
    assert times == [3_000, 4_000, 5_000], "it spoke at 0, and windows are 2 s long"


def test_lateness_is_how_long_an_element_may_be_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "s.nt", ELEMENTS[:1])
    e = Clocked(tmp_path, monkeypatch)
    with e.engine:
        e.engine.stream(S, path, heartbeat="1s", lateness="2s")
        register(e.engine, [STEPS])
        e.engine.start()
        e.clock.advance(10_500)
        e.until(lambda: e.watermark() == NOW + 8_000)
        append(path, element(NOW + 8_000, "a1 p 1"), element(NOW + 7_999, "a1 p 2"))
        e.until(lambda: e.record().elements == 2 and e.record().late == 1)
        e.engine.stop()


def test_what_is_not_read_yet_holds_the_clock_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an element an epoch the clock is far ahead of what is read: nothing becomes late."""
    e = Clocked(tmp_path, monkeypatch, NOW + 60_000)
    e.engine._epoch_rows = 1
    with e.engine:
        e.engine.stream(S, write_lines(tmp_path / "s.nt", ELEMENTS), heartbeat="1s")
        register(e.engine, [STEPS])
        e.engine.start()
        e.until(lambda: e.watermark() == NOW + 60_000)
        assert (e.record().elements, e.record().late) == (6, 0)
        e.engine.stop()
    assert same(expected([STEPS], {S: ELEMENTS})["steps"], e.sink.reports["steps"]) is None


def test_a_stream_that_never_spoke_goes_by_the_clock_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds those that it shares a query with back no longer than the beat."""
    e = Clocked(tmp_path, monkeypatch)
    (tmp_path / "t").mkdir()
    with e.engine:
        e.engine.stream(S, write_lines(tmp_path / "s.nt", ELEMENTS), heartbeat="1s")
        e.engine.stream(T, tmp_path / "t", format="nt", heartbeat="500ms")
        register(e.engine, [BOTH])
        e.engine.start()
        e.clock.advance(60_000)
        e.until(lambda: e.watermark(S) == e.watermark(T) == NOW + 60_000)
        e.engine.stop()
    right = expected([BOTH], {S: ELEMENTS, T: []})["both"]
    assert same(right, e.sink.reports["both"]) is None


@pytest.mark.parametrize("last", [S, T])
@pytest.mark.parametrize("options", [{}, {"idle": "50ms"}])
def test_idle_stream_follows_the_heartbeat_of_another_stream_by_the_real_clock(
    tmp_path: Path, last: str, options: dict[str, Any]
) -> None:
    """Whichever of the two was the last with an element, and though both are silent from then on:
    beat after beat, since the next one comes anyway.
    """
    first = T if last == S else S
    paths = {S: tmp_path / "s.nt", T: tmp_path / "t.nt"}
    for path in paths.values():
        path.touch()
    with Engine(
        spark=False, checkpoint=tmp_path / "ck", partitions=2, sink=MemorySink(), epoch=0
    ) as engine:

        def record(name: str) -> Any:
            return engine._records().get(name)

        def is_read(name: str) -> bool:
            return record(name) is not None and record(name).elements + record(name).late == 1

        def is_behind_both(instant: int) -> bool:
            return min(record(name).watermark for name in (S, T)) > instant

        engine.stream(S, paths[S], format="nt", heartbeat="100ms", **options)
        engine.stream(T, paths[T], format="nt", idle="50ms")
        register(engine, [BOTH])
        engine.start()
        for name in (first, last):
            append(paths[name], element(wall_ms(), f"a {'p' if name == S else 'q'} 1"))
            until_engine(engine, partial(is_read, name))
        for _ in range(3):
            until_engine(engine, partial(is_behind_both, wall_ms()))
        engine.stop()


def test_a_beat_stands_in_the_intention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch that is run again after a crash ends where it did, whatever the clock says now."""
    manifest = EpochRunner._manifest

    def dies(self: Any, intention: Any, *rest: Any) -> Any:
        if intention.wall_ms >= NOW + 10_000:
            raise LevadaError("It dies before the manifest.")
        return manifest(self, intention, *rest)

    watermarks = []
    for dying in (True, False):
        e = Clocked(tmp_path, monkeypatch, NOW if dying else NOW + 500_000)
        monkeypatch.setattr(EpochRunner, "_manifest", dies if dying else manifest)
        with e.engine:
            if dying:
                write_lines(tmp_path / "s.nt", ELEMENTS)
            e.engine.stream(S, tmp_path / "s.nt", heartbeat="1s")
            register(e.engine, [STEPS])
            e.engine._on_epoch(lambda m: watermarks.append(m.streams[S].watermark))
            e.engine.start()
            if dying:
                e.until(lambda e=e: e.watermark() == NOW + 2_500)
                e.clock.advance(10_000)
                with pytest.raises(LevadaError, match="It dies"):
                    e.engine.await_end(PATIENCE)
            else:
                e.until(lambda e=e: e.watermark() == NOW + 500_000)
                e.engine.stop()
    assert watermarks == [NOW + 2_500, NOW + 10_000, NOW + 500_000]


@pytest.mark.parametrize("keep_open", [False, True])
def test_a_run_of_what_is_there_does_not_go_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, keep_open: bool
) -> None:
    e = Clocked(tmp_path, monkeypatch, NOW + 60_000)
    with e.engine:
        e.engine.stream(S, write_lines(tmp_path / "s.nt", ELEMENTS), heartbeat="1s")
        register(e.engine, [STEPS])
        e.engine.start(once=True, keep_open=keep_open)
        e.engine.await_end()
        assert not keep_open or e.watermark() == NOW + 2_500


def test_static_data_are_replaced_after_what_the_clock_has_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports that were made saw the content of before: the other one begins behind them."""
    kinds = tmp_path / "g.nt"
    e = Clocked(tmp_path, monkeypatch)
    with e.engine:
        e.engine.stream(S, write_lines(tmp_path / "s.nt", ELEMENTS[:1]), heartbeat="1s")
        e.engine.static(
            write_graph(kinds, ["<http://e/a0> <http://e/kind> <http://e/Sensor>"]),
            replaceable=True,
        )
        e.engine.register(ABSENT, name="absent", empty_reports=True)
        e.engine.start()
        e.clock.advance(5_000)
        e.until(lambda: e.watermark() == NOW + 5_000)
        e.engine.static(["<http://e/b> <http://e/kind> <http://e/Sensor>"], replaceable=True)
        e.clock.advance(2_000)
        e.until(lambda: e.watermark() == NOW + 7_000)
        e.engine.stop()
    told = {r.time - NOW: [dict(s)["a"] for s in r.solutions] for r in e.sink.reports["absent"]}
    a, b = ["<http://e/a0>"], ["<http://e/b>"]
    assert {t: told[t] for t in told if told[t]} == {3000: a, 4000: a, 5000: a, 6000: b, 7000: b}


@pytest.mark.long
@pytest.mark.parametrize("time", ["column", "arrival"])
@pytest.mark.parametrize("hours", [25, -25])
def test_a_step_of_the_clock_and_back_makes_nothing_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: str, hours: int
) -> None:
    """Neither does it stop the reports, and the status says that the clock stepped."""
    shift = [0]
    monkeypatch.setattr(CLOCK, "step", None)
    monkeypatch.setattr(CLOCK, "wall", lambda: wall_ms() + shift[0])
    sink, path = MemorySink(), tmp_path / "s.nt"
    path.touch()

    def append_now() -> None:
        at = "" if time == "arrival" else str(wall_ms())
        with path.open("a") as file:
            file.write(f'<http://e/a> <http://e/p> "1" {at} .\n')

    with (
        warnings.catch_warnings(record=True) as told,
        Engine(spark=False, checkpoint=tmp_path / "ck", partitions=2, sink=sink, epoch=0) as engine,
    ):
        warnings.simplefilter("always")
        engine.stream(S, path, time=time, heartbeat="1s", lateness="1h", format="nt")
        register(engine, [STEPS])
        engine.start()
        append_now()
        until_engine(engine, lambda: engine._records().get(S) and engine._records()[S].elements)
        shift[0] = hours * 3_600_000
        until(lambda: "by P1DT1H at" in engine.status().clock_step)
        append_now()
        until_engine(engine, lambda: engine._records()[S].elements == 2)
        shift[0] = 0
        until(lambda: "set right again" in engine.status().clock_step)
        append_now()
        until_engine(engine, lambda: engine._records()[S].elements == 3)
        record = engine._records()[S]
        assert (record.late, record.dead_letters) == (0, 0)
        before = record.watermark
        assert abs(before - wall_ms()) < 2 * 3_600_000
        until_engine(engine, lambda: engine._records()[S].watermark > before)
        engine.stop()
    assert len([w for w in told if "clock of this machine stepped" in str(w.message)]) == 2
