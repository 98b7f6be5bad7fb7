"""An output that goes away and comes back: an engine at half load whose reports go to a topic of
Kafka or a table of PostgreSQL, and a server of it that is stopped for a sixth of the time. Memory
stays as it was, the disk comes back to where it was, the lag goes to zero, and each row is there
once.

    make sinks      half an hour, the broker away for five minutes; SINKS=3m for less;
                    `make long` takes 40 s, and judges rows alone;
                    SINK=postgres for the other
"""

from __future__ import annotations

import csv
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from feed import BEGIN, KEYS, XSD, Load

from levada.core.event_time import parse_duration
from levada.engine.status.status import Status, read_status
from levada.errors import CheckpointError
from support.kafka_broker import Broker
from support.polling import PATIENCE, until
from support.postgres_server import PASSWORD, Server

SAID = os.environ.get("SINKS", "")
LASTS = parse_duration(SAID or "40s") / 1000  # s
# lines a second, of whole thousands
LOAD = int(os.environ.get("SINKS_LOAD", "200000" if SAID else "10000"))
KIND = os.environ.get("SINK", "kafka")
TICK = 0.25  # s
LOOK = 2.0  # s between two looks
STEP = 1000  # ms
KEPT = int(1.2 * LASTS / 6 * LOAD * 10)  # bytes, some more than waits for a server that is away
pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(int(3 * LASTS) + 1200),
    pytest.mark.long,
]
TEXT = f"""PREFIX : <http://e/>
SELECT ?n FROM NAMED WINDOW :w ON :load [RANGE PT{STEP // 1000}S STEP PT{STEP // 1000}S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} FILTER(STRENDS(STR(?n), "7")) }}"""
SLACK_MB, SLACK = 60, 1.3  # of memory
SLACK_DISK_MB = 8


Found = dict[int, tuple[int, int]]
"""By report: how many rows, and the sum of their values."""


class Target(Protocol):
    """Where the rows go, and who can be sent away."""

    to: str
    """What ``--to`` says of it."""

    def there(self) -> bool: ...
    def leave(self) -> None: ...
    def come(self) -> None: ...
    def found(self) -> Found: ...
    def close(self) -> None: ...


class Table:
    """A table of PostgreSQL."""

    def __init__(self) -> None:
        self._server = Server()
        self.to = f"{self._server.url},table=sevens,password=env:LEVADA_PG"

    def there(self) -> bool:
        return self._server.process is not None

    def leave(self) -> None:
        self._server.stop(signal.SIGQUIT)

    def come(self) -> None:
        self._server.start()

    def found(self) -> Found:
        rows = self._server.rows(
            "SELECT (extract(epoch FROM report) * 1000)::bigint, count(*), sum(n::bigint) "
            "FROM sevens GROUP BY 1"
        )
        return {report: (n, int(total)) for report, n, total in rows}

    def close(self) -> None:
        self._server.close()


class Topic:
    """A topic of Kafka, with a message a row."""

    def __init__(self, folder: Path) -> None:
        self._broker = Broker(folder)
        self.to = f"{self._broker.topic('sevens')},format=csv"

    def there(self) -> bool:
        return self._broker.process is not None

    def leave(self) -> None:
        self._broker.stop()

    def come(self) -> None:
        self._broker.start()

    def found(self) -> Found:
        """What is committed, to the end of the topic."""
        consumer = Consumer({
            "bootstrap.servers": self._broker.server, "group.id": "judge", "log_level": 0,
            "isolation.level": "read_committed", "enable.partition.eof": True,
        })  # fmt: skip
        consumer.assign([TopicPartition("sevens", 0, OFFSET_BEGINNING)])
        found: Found = {}
        while True:
            for message in consumer.consume(100_000, timeout=2):
                if message.error() is not None:
                    consumer.close()
                    return found
                ((report, value),) = csv.reader([message.value().decode()])
                n, total = found.get(int(report), (0, 0))
                found[int(report)] = n + 1, total + int(value)

    def close(self) -> None:
        self._broker.stop()


@dataclass
class Steady(Load):
    """A load whose seconds are alike but for their times, so that little is spent on writing it:
    the j-th element of a second has the value j.
    """

    known: dict[int, bytes] = field(default_factory=dict)

    def write(self, until: int) -> None:
        a_ms = self.rate // 1000
        for ms in range(self.done // a_ms, until // a_ms):
            ts = BEGIN + ms
            name = f"{ms // (1000 * self.span):06}.nt"
            with (self.path / name).open("ab", buffering=0) as file:
                file.write(self._lines(ms % 1000).replace(b"@", str(ts).encode()))
        self.done = max(self.done, until // a_ms * a_ms)

    def _lines(self, ms: int) -> bytes:
        """The elements of a millisecond, their time a sign."""
        if ms not in self.known:
            of = range(ms * self.rate // 1000, (ms + 1) * self.rate // 1000)
            texts = (f'<http://e/a{j % KEYS}> <http://e/p> "{j}"^^{XSD} @ .\n' for j in of)
            self.known[ms] = "".join(texts).encode()
        return self.known[ms]


@dataclass
class Seen:
    """What was seen, each with the second at which it was."""

    memory: list[tuple[float, float]] = field(default_factory=list)  # MB
    disk: list[tuple[float, float]] = field(default_factory=list)  # MB
    behind: list[tuple[float, int]] = field(default_factory=list)  # reports

    def look(self, at: float, process: psutil.Process, root: Path) -> None:
        own = [process, *process.children(recursive=True)]
        self.memory.append((at, sum(each.memory_info().rss for each in own) / 1e6))
        self.disk.append((at, size(root) / 1e6))
        said = status(root)
        if said is not None:
            self.behind.append((at, said.outputs[0].pending_reports))

    def line(self, server: str) -> str:
        behind = self.behind[-1][1] if self.behind else "none yet"
        memory, disk = self.memory[-1][1], self.disk[-1][1]
        at = self.memory[-1][0]
        return f"{at:6.0f} s  {server:5}  {memory:6.0f} MB  disk {disk:7.1f} MB  behind {behind}"


def size(root: Path) -> int:
    found = 0
    for path in root.rglob("*"):
        try:
            found += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # it has gone
    return found


def status(root: Path) -> Status | None:
    try:
        return read_status(root)
    except (CheckpointError, OSError):
        return None


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.setenv("LEVADA_PG", PASSWORD)
    made: Target = Table() if KIND == "postgres" else Topic(tmp_path / "broker")
    yield made
    made.close()


@pytest.fixture
def engine(tmp_path: Path, target: Target) -> Iterator[psutil.Popen]:
    (tmp_path / "q.rq").write_text(TEXT)
    (tmp_path / "load").mkdir()
    command = [
        sys.executable, "-m", "levada", "run", "q.rq", "--stream", "load=load",
        "--checkpoint", "ck", "--keep", f"{KEPT}B", "--master", "none", "--to", f"q={target.to}",
    ]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = psutil.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def test_an_output_that_is_away(tmp_path: Path, target: Target, engine: psutil.Popen) -> None:
    (tmp_path / "load").rmdir()
    load, seen = Steady(tmp_path, LOAD), Seen()
    gone, back = LASTS / 3, LASTS / 2
    load.write(LOAD)
    until(lambda: status(tmp_path / "ck"), "an epoch: kernels are compiled before", process=engine)
    began, looked, cpu, times_away = time.monotonic(), 0.0, cpu_of(engine), 0
    while (now := time.monotonic() - began) < LASTS:
        assert engine.poll() is None, (tmp_path / "log").read_text()[-3000:]
        load.write(LOAD + int(now * LOAD))
        if target.there() and gone <= now < back:
            target.leave()
            times_away += 1
        elif not target.there() and now >= back:
            target.come()
        if now - looked >= LOOK:
            looked = now
            seen.look(now, engine, tmp_path / "ck")
            if len(seen.memory) % 5 == 0:
                print(seen.line("there" if target.there() else "away"), flush=True)
            forget(load, tmp_path / "ck")
        time.sleep(TICK)
    print(f"{(cpu_of(engine) - cpu) / LASTS:.2f} cores for {LOAD} lines a second")
    last = (load.ts(load.done - 1)) // STEP * STEP
    try:
        until(lambda: has_all(status(tmp_path / "ck"), last), process=engine)
    except AssertionError:  # a machine may have been too busy for it to keep up
        print(f"the last report is at {last}: {status(tmp_path / 'ck')}")
        raise
    check_rows(target.found(), last)
    assert times_away
    if SAID:  # a short run has too few looks at memory and disk
        check_seen(seen, gone, back)
    engine.send_signal(signal.SIGINT)
    assert engine.wait(PATIENCE) == 0, (tmp_path / "log").read_text()[-3000:]


def cpu_of(process: psutil.Popen) -> float:
    """Seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def has_all(said: Status | None, last: int) -> bool:
    """Whether nothing waits, and the last report is one of those that had been due."""
    return (
        said is not None
        and said.streams["load"].watermark >= last
        and not said.outputs[0].pending_reports
    )


def forget(load: Load, root: Path) -> None:
    """Files that the engine has read, and has committed that it has, go."""
    said = status(root)
    if said is not None and "load" in said.streams:
        load.forget(said.streams["load"].watermark - 3000)


def check_rows(found: Found, last: int) -> None:
    """Each report has what is known of a second, once."""
    sevens = range(7, LOAD, 10)
    assert found == {
        report: (len(sevens), sum(sevens)) for report in range(BEGIN + STEP, last + 1, STEP)
    }


def check_seen(seen: Seen, gone: float, back: float) -> None:
    """Away it was; and all is as it was before."""
    most = max(n for at, n in seen.behind if gone < at < back + LOOK)
    assert most > (back - gone) * 1000 / STEP / 2, "it was away, and reports waited for it"
    for what, slack, own in (
        ("memory", SLACK_MB, seen.memory),
        ("disk", SLACK_DISK_MB, seen.disk),
    ):
        before = [
            value for at, value in own if 2 * gone / 3 < at < gone
        ]  # by then all is there that is kept
        after = [value for at, value in own if at > LASTS - (LASTS - back) / 3]
        first, then = statistics.median(before), statistics.median(after)
        peak = max(value for at, value in own if gone <= at)
        print(f"{what}: {first:.1f} MB before, {peak:.1f} at most, {then:.1f} after")
        assert then < first * SLACK + slack, what
    print(f"behind: {most} reports at most")
