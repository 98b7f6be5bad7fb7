"""A server logs its own faults, within a budget; requests that are none are answered alone."""

from __future__ import annotations

import logging.config
import socket

import httpx
import pytest

from levada.server.security import log_budget
from levada.server.security.log_budget import CONFIG, FACTOR, MAX_RECORD, NOTE, LogBudget
from support.polling import PATIENCE

SIZE = 10_000


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> LogBudget:
    """The budget of the process, which no time fills."""
    logging.config.dictConfig(CONFIG)
    made = LogBudget(SIZE, lambda: 0.0)
    monkeypatch.setattr(log_budget, "BUDGET", made)
    return made


def fail(depth: int) -> None:
    if depth:
        fail(depth - 1)
    raise RuntimeError("x" * 9000)


def test_a_client_that_finds_a_fault_does_not_fill_the_log(
    budget: LogBudget, capfd: pytest.CaptureFixture[str]
) -> None:
    sent = 0
    for _ in range(1000):
        budget.receive(100)
        sent += 100
        try:
            fail(20)
        except RuntimeError:
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    logged = capfd.readouterr().err
    assert logged.startswith("levada: Exception in ASGI application")
    assert "RuntimeError" in logged
    assert NOTE in logged
    assert "messages were left out. Exception in" in logged, "later ones are logged, too"
    assert MAX_RECORD < len(logged) <= SIZE + FACTOR * sent


def test_what_is_no_request_is_not_logged(
    client: httpx.Client, capfd: pytest.CaptureFixture[str]
) -> None:
    name, port = client.base_url.netloc.decode().split(":")
    for data in (b"x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n", b"\0" * 100):
        with socket.create_connection((name, int(port)), timeout=PATIENCE) as made:
            made.sendall(data)
            assert made.recv(1000).startswith(b"HTTP/1.1 4")
    assert capfd.readouterr().err == ""
