"""Delta tables in an object store: rows once, continued by a later run; a store that is away."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from levada import Engine
from levada.connectors.sinks.sink_url import Destination
from levada.connectors.sinks.transactional_sink import Position
from levada.errors import SinkError
from support.kept_checkpoint import QUERY, run_kept, write_stream
from support.polling import until
from support.s3_server import BUCKET, Server
from support.s3_server import server as started


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = started()
    running.make_bucket()
    yield running
    running.close()


@pytest.fixture
def place(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in server.environ().items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4()}"


def keys(place: str) -> list[Any]:
    table = DeltaTable(place, storage_options={"allow_http": "true"}).to_pyarrow_table()
    return sorted(zip(*(table[name].to_pylist() for name in ("report", "number")), strict=True))


def test_a_table_in_a_bucket_has_each_row_once_over_two_runs(place: str, tmp_path: Path) -> None:
    to = ["--to", f"warm=delta://{place}", "--keep-open"]
    run_kept(tmp_path, *to, rows=80)
    first = keys(place)
    run_kept(tmp_path, *to, start=80, rows=160)
    found = keys(place)
    assert first and found[: len(first)] == first
    assert len(found) == len(set(found)) == 140


def test_a_bucket_or_table_that_is_not_there_is_a_sentence(place: str) -> None:
    target = Destination(f"delta://s3://no-{uuid.uuid4()}/table").target("q", "id")
    with pytest.raises(SinkError, match=r"there is no such bucket\. Make it"):
        target.open(None)
    target = Destination(f"delta://{place}").target("q", "id")
    assert target.open(None) is None
    with pytest.raises(SinkError, match="has lost how far"):
        target.open(Position(4, 4, 1))


@pytest.mark.long
def test_a_store_that_is_away_delays_its_output_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in server.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    write_stream(tmp_path, 0, 80)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("http://e/s", str(tmp_path / "s"))
        asked = engine.register(QUERY, name="warm")
        asked.to(f"delta://s3://{BUCKET}/away")
        asked.to(f"delta://{tmp_path / 'here'}")
        engine.start()
        until(lambda: (tmp_path / "here" / "_delta_log").exists())
        until(lambda: any(o.reason for o in engine.status().outputs))
        (away,) = [o for o in engine.status().outputs if o.reason]
        assert "cannot be written to delta://s3://" in away.reason
