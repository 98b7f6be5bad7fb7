"""A standby: it waits by its own clock, takes over from an engine that is silent, and goes on to
the letter; the one that was stopped wakes, commits nothing and says who has taken over.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.leadership.commit_log import Driver, ElectionLostError, last_takeover
from levada.checkpoint.leadership.heartbeat import (
    Heartbeat,
    LeaderWatch,
    Sign,
    read_standbys,
    write_pulse,
)
from levada.cli.app.run_app import await_turn, check_same, take_turn
from levada.cli.app.signals import Stopped
from levada.cli.run import Mode
from levada.engine.engine import Engine
from levada.engine.registry import Registry
from levada.engine.status.status import read_status
from levada.errors import CheckpointError, UsageError
from levada.testing.compare import read_ndjson
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, element, judge, query, step

PATIENCE = 120  # s
QUERY = query(
    "SELECT ?a (SUM(?n) AS ?m)", "WINDOW :w { ?a :p ?n }", tail=" GROUP BY ?a", name="sum",
    windows={"w": (S, step(2000, 1000))},
)  # fmt: skip
ELEMENTS = [element(300 * i, f"a{i % 3} p {i}") for i in range(60)]


def until(met: Callable[[], Any], *processes: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end
        for process in processes:
            assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "levada", "run", "sum.rq", "--stream", f"{S}=s.nt",
        "--master", "none", "--checkpoint", "ck", "--out", "out", "--epoch-rows", "5", *more,
    ]  # fmt: skip
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(tmp_path / "s.nt", ELEMENTS)
    (tmp_path / "sum.rq").write_text(QUERY.text)
    return tmp_path


@pytest.mark.long
def test_a_stopped_engine_is_taken_over_and_says_so_when_it_wakes(folder: Path) -> None:
    active = start(folder, "--epoch", "200ms")
    standby = None
    try:
        until(lambda: any(int(p.name) >= 2 for p in folder.glob("ck/manifests/[0-9]*")), active)
        standby = start(folder, "--close", "--standby", "--lease", "3s")
        until(lambda: read_standbys(folder / "ck"), active, standby)
        status = read_status(folder / "ck")
        assert status.active_driver is not None
        assert status.active_driver.pid == active.pid
        assert [one.pid for one in status.standby_drivers] == [standby.pid]
        os.kill(active.pid, signal.SIGSTOP)
        said = standby.communicate(timeout=PATIENCE)[1]
        assert standby.returncode == 0, said
        os.kill(active.pid, signal.SIGCONT)
        told = active.communicate(timeout=PATIENCE)[1]
    finally:
        for process in (active, standby):
            if process is not None:
                process.kill()
                process.wait()
    assert active.returncode == 4, told
    assert f"taken over the checkpoint {folder}/ck: process {standby.pid} on " in told
    found = read_ndjson(
        line for p in sorted((folder / "out" / "sum").iterdir()) for line in p.open()
    )
    judge([QUERY], {S: ELEMENTS}, found)
    assert read_status(folder / "ck").has_ended


def test_a_lease_runs_by_the_clock_of_who_waits(tmp_path: Path) -> None:
    now = [100.0]
    watch = LeaderWatch(tmp_path, 10, lambda: now[0])
    for count in range(5):
        write_pulse(tmp_path, Heartbeat(1, count))
        assert not watch.is_due()
        now[0] += 9
        assert not watch.is_due()
    now[0] += 1
    assert watch.is_due()
    write_pulse(tmp_path, Heartbeat(1, 9))  # it was slow, and beats again
    assert not watch.is_due()
    write_pulse(tmp_path, Heartbeat(1, 10, is_last=True))
    assert watch.is_due()


@pytest.mark.filterwarnings("ignore:This is a standby")
def test_of_several_that_wait_one_gets_the_turn(folder: Path, ck: Path) -> None:
    """Found: all took over, one after the other, and ended but for the last one."""
    assert read_status(ck).active_driver is None
    app, stopped = folder / "ck", Stopped()
    with standing_by(folder) as first, standing_by(folder) as second:
        at = await_turn(app, second._registry, 10, stopped)
        assert take_turn(first, 10, stopped) is not None
        with pytest.raises(ElectionLostError, match="Another engine is at work"):
            second._open(locked=False, behind=at)
        now = [100.0]
        watch = LeaderWatch(app, 10, lambda: now[0])
        assert not watch.is_due(), "the pulse says who has left, and another one has come since"
        now[0] += 10
        assert watch.is_due(), "who has no pulse either"
        write_pulse(app, Heartbeat(first._open().reign.number, 1))
        assert not watch.is_due()
        stopped.set()
        assert take_turn(second, 10, stopped) is None


@pytest.mark.filterwarnings("ignore:This is a standby")
def test_one_that_waits_may_be_there_before_the_engine(folder: Path) -> None:
    """Found: its sign was taken for a stranger's file, and nobody could make the checkpoint."""
    app = folder / "ck"
    app.mkdir()
    Sign(app, Driver("h", 7, 1000)).renew()
    with standing_by(folder) as engine:
        assert take_turn(engine, 0, Stopped()) is not None
        engine.start(once=True)
        engine.await_end()
    (folder / "ours").mkdir()
    (folder / "ours" / "holidays.jpg").touch()
    with pytest.raises(CheckpointError, match=r"ours is not a checkpoint .* it holds holidays.jpg"):
        await_turn(folder / "ours", registry(folder), 0, Stopped())
    assert [path.name for path in (folder / "ours").iterdir()] == ["holidays.jpg"]


def standing_by(folder: Path) -> Engine:
    engine = Engine(spark=False, checkpoint=folder / "ck", epoch_rows=20)
    engine.stream(S, folder / "s.nt")
    engine.register(QUERY.text, name="sum")
    return engine


def test_who_waits_is_seen_until_it_waits_no_more(tmp_path: Path) -> None:
    sign = Sign(tmp_path, Driver("h", 7, 1000))
    sign.renew()
    sign.renew()
    assert [(who.host, who.pid, who.since_ms) for who in read_standbys(tmp_path).values()] == [
        ("h", 7, 1000)
    ]
    sign.close()
    assert not read_standbys(tmp_path)


@pytest.fixture
def ck(folder: Path) -> Path:
    with Engine(spark=False, checkpoint=folder / "ck", epoch_rows=20) as engine:
        engine.stream(S, folder / "s.nt")
        engine.register(QUERY.text, name="sum")
        engine.start(once=True, keep_open=True)
        engine.await_end()
    return folder / "ck"


def registry(folder: Path, text: str = QUERY.text, name: str = "sum", stream: str = S) -> Registry:
    with Engine(spark=False) as engine:
        engine.stream(S, folder / "s.nt")
        if stream != S:
            engine.stream(stream, folder / "s.nt")
        engine.register(text, name=name)
        return engine._registry


def test_a_standby_runs_what_the_engine_runs(folder: Path, ck: Path) -> None:
    check_same(ck, registry(folder))
    with pytest.raises(UsageError, match="this one has another query sum than that one"):
        check_same(ck, registry(folder, QUERY.text.replace("PT2S", "PT4S")))
    with pytest.raises(UsageError, match=r"lacks the query sum, which that one has.*mean sums\?"):
        check_same(ck, registry(folder, name="sums"))
    with pytest.raises(UsageError, match="has a stream http://e/new, which that one has not"):
        check_same(ck, registry(folder, stream="http://e/new"))
    facts = json.loads((ck / "levada.json").read_text().splitlines()[0])
    (ck / "levada.json").write_text(json.dumps(facts | {"format": 99}))
    with pytest.raises(CheckpointError, match="has format 99, and this version"):
        check_same(ck, registry(folder))


def test_who_has_left_is_not_at_work(ck: Path) -> None:
    assert last_takeover(ck) is not None
    assert read_status(ck).active_driver is None


def test_options_of_a_standby() -> None:
    assert Mode(standby=True).silence == 10
    assert Mode(standby=True, lease="1m").silence == 60
    with pytest.raises(UsageError, match="a pulse comes each second"):
        _ = Mode(standby=True, lease="1s").silence


@pytest.mark.long
def test_a_standby_with_an_output_waits_and_takes_over(folder: Path) -> None:
    """Naming an output opens the checkpoint, which is the other engine's until it is gone."""
    root, to = folder / "ck", ("--to", "sum=postgresql://me@127.0.0.1:1/none,table=sums")
    first = start(folder, *to)
    started = [first]
    try:
        until((root / "commits").exists, first)
        second = start(folder, *to, "--standby", "--lease", "3s")
        started.append(second)
        until(
            lambda: second.pid in [each.pid for each in read_standbys(root).values()], first, second
        )
        first.kill()
        until(lambda: takeover_of(root) == second.pid, second)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def takeover_of(root: Path) -> int:
    """The process that has taken a checkpoint over last."""
    active = read_status(root).active_driver
    return 0 if active is None else active.pid
