"""Each message to and from PostgreSQL is lost or cut, and its connection reset. Whatever the server
had done by then, every row is in the table once.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_tables import COLUMNS, LATEST, SUMS, expected, holds, in_table, relation, stream

from levada.engine.engine import Engine
from support.fault_proxy import FaultProxy, postgres, terminated
from support.polling import PATIENCE
from support.postgres_server import Server

DISTURBED = re.compile(r"^(connect|> (SSL|Startup|[PQ] |[pdc]$)|< (C |[GNR]$))")
"""Not those of which another one of the same answer, or request, is there."""


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(f"levada.engine.delivery.delivery_thread.{name}", 0.01)


def run(root: Path, path: Path, url: str, password: str, **options: Any) -> None:
    """An engine that reads everything, and writes it to a table."""
    state = "as_" in options
    with Engine(spark=False, checkpoint=root, epoch_rows=20) as engine:
        if state:
            engine.stream("S", str(path), schema=COLUMNS)
            asked = engine.register(LATEST, name="q", dialect="cql")
        else:
            engine.stream("http://e/s", str(path))
            asked = engine.register(SUMS, name="q")
        asked.to(url, password=password, **options)
        engine.start(once=True, keep_open=state)
        assert engine.await_end(PATIENCE)


@pytest.mark.long
@pytest.mark.parametrize("shape", ["changes", "state"])
def test_a_fault_at_each_message_leaves_each_row_once(
    server: Server, tmp_path: Path, password: str, random_seed: int, shape: str
) -> None:
    more = {"as_": "state", "key": "k"} if shape == "state" else {}
    path = tmp_path / ("s.ndjson" if more else "s.nt")
    if more:
        relation(path, random.Random(random_seed), 0, 60)
    else:
        stream(path, 200)
    with FaultProxy(server.port, postgres) as proxy:
        url = server.url.replace(str(server.port), str(proxy.port))
        for table in ("undisturbed", "disturbed"):
            server.run("DROP TABLE IF EXISTS levada_outputs, undisturbed, disturbed")
            run(tmp_path / table, path, url, password, table=table, **more)
            labels = dict.fromkeys(filter(DISTURBED.search, proxy.labels))
            if table == "undisturbed":
                proxy.faults = [
                    (f"^{re.escape(label.replace(table, 'disturbed'))}", fault)
                    for label in labels
                    for fault in ("reset", "cut")
                ]
        assert not proxy.faults
    if more:
        rows = server.rows("SELECT k, n, total FROM disturbed")
        assert sorted(tuple(map(str, row)) for row in rows) == holds(path)
    else:
        assert in_table(server, "disturbed") == expected(path)


SILENT = [
    "^connect", "^> Startup", "^> P UPDATE levada_outputs SET owner",
    "^> P UPDATE levada_outputs SET epoch", "^> Q COPY", "^< C COPY", "^> Q COMMIT", "^< C COMMIT",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("label", SILENT)
def test_a_server_that_never_answers_is_reported_and_asked_again(
    server: Server, tmp_path: Path, password: str, monkeypatch: pytest.MonkeyPatch, label: str
) -> None:
    monkeypatch.setattr("levada.connectors.sinks.postgres_sink.SILENCE", 1.0)
    monkeypatch.setattr("levada.connectors.sinks.postgres_sink.ANSWER", 2)
    path, root = stream(tmp_path / "s.nt", 200), tmp_path / "ck"
    server.run("DROP TABLE IF EXISTS levada_outputs, silent")
    with FaultProxy(server.port, postgres) as proxy:
        url = server.url.replace(str(server.port), str(proxy.port))
        with Engine(spark=False, checkpoint=root, epoch_rows=20) as engine:
            engine.stream("http://e/s", str(path))
            engine.register(SUMS, name="q").to(url, table="silent", password=password)
            delivery, reasons = engine._deliveries.all[0], list[str]()
            monkeypatch.setattr(delivery, "_set_reason", reasons.append)
            proxy.faults = [("^< C COPY", "reset"), (label, "hang")]
            engine.start(once=True)
            assert engine.await_end(PATIENCE)
    assert not proxy.faults
    silent = [w for w in reasons if "timeout expired" in w or "not answered for 1 s" in w]
    assert silent, reasons
    assert in_table(server, "silent") == expected(path)


HOW = [
    ["run"],
    *(
        pytest.param(each.split(), marks=pytest.mark.long)
        for each in ("run --close", "run --standby", "serve --listen 127.0.0.1:0")
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("how", HOW)
def test_a_signal_ends_an_engine_whose_server_never_answers(
    server: Server, tmp_path: Path, password: str, how: list[str]
) -> None:
    path = stream(tmp_path / "s.nt", 200)
    server.run("DROP TABLE IF EXISTS levada_outputs, hanging")
    faults = [("^> Q COMMIT", "reset"), ("^< C COPY", "hang")]
    with FaultProxy(server.port, postgres, faults) as proxy:
        url = server.url.replace(str(server.port), str(proxy.port))
        to = {"url": url, "table": "hanging", "password": password}
        app = {
            "streams": {"http://e/s": {"path": str(path)}},
            "queries": {"q": {"text": SUMS, "to": to}},
            "options": {"checkpoint": str(tmp_path / "ck"), "master": "none"},
        }
        (tmp_path / "app.yaml").write_text(json.dumps(app))
        given = ["--app", str(tmp_path / "app.yaml")]
        command = [sys.executable, "-m", "levada", *how, *given]
        code, said = terminated(command, proxy, stdout=subprocess.DEVNULL)
        assert (code, "Traceback" in said) == (0, False), said
        assert "left to deliver by the next run" in said
        again = [sys.executable, "-m", "levada", "run", "--close", *given]
        subprocess.run(again, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
    assert in_table(server, "hanging") == expected(path)
