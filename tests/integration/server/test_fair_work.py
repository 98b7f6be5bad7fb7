"""One token's work delays no other; work ends with its client and with the server."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import msgspec
import psutil
import pytest

from levada.server.run_server import ServerConfig, bind_socket, shown_address
from levada.server.security.tokens import add_token
from levada.server.settings import Limits, Settings
from support.http_server import TEXT, Run, served
from support.polling import PATIENCE, until

SPARQL = {"Content-Type": "application/sparql-query"}
NESTED = "FILTER NOT EXISTS { ?a :p ?c " * 100 + "}" * 100
LONG_TEXT = TEXT.replace("?a :p ?n", "?a :p ?n " + NESTED * 300)
"""A text whose check takes minutes of CPU."""
VALUES = "VALUES ?%s { " + " ".join(map(str, range(300))) + " } "
LONG_QUERY = (
    f"SELECT (COUNT(*) AS ?n) {{ {''.join(VALUES % v for v in 'abcd')} FILTER(?a + ?b > ?c + ?d) }}"
)
"""A query whose answer takes longer than any limit."""
LIMITS: dict[str, Any] = {"patterns": 1_000_000, "text": 4 << 20, "check_seconds": 3600}


@contextmanager
def clients(run: Run, *names: str, **limits: Any) -> Iterator[list[httpx.Client]]:
    """A client for each token of role read."""
    path = run.folder / "tokens"
    tokens = [add_token(path, name, "read") for name in names]
    settings = Settings(run.root, port=0, tokens=path, limits=Limits(**(LIMITS | limits)))
    with served(settings) as url, ExitStack() as stack:
        yield [
            stack.enter_context(
                httpx.Client(
                    base_url=url, timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"}
                )
            )
            for token in tokens
        ]


def check(client: httpx.Client, text: str = TEXT) -> httpx.Response:
    return client.post("/check", content=text, headers=SPARQL)


def processes(part: str, of: int | None = None) -> list[psutil.Process]:
    """The children of this process, or of another, that run a program."""
    found = psutil.Process(of).children(recursive=True)
    return [p for p in found if any(word.endswith(part) for word in command(p))]


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() if process.status() != psutil.STATUS_ZOMBIE else []
    except psutil.Error:
        return []


CHECKS, QUERIES = "levada.server.checks.check_workers", "server/sparql/query_worker.py"


def works(process: psutil.Process) -> bool:
    """Whether a process has taken more CPU than it takes to start."""
    return command(process) != [] and sum(process.cpu_times()[:2]) > 3


def send(client: httpx.Client, path: str, text: str) -> socket.socket:
    """A request whose answer nobody has read so far."""
    request = client.build_request("POST", path, content=text, headers=SPARQL)
    made = socket.create_connection((client.base_url.host, client.base_url.port or 80))
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    made.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n{text}".encode())
    return made


@contextmanager
def sent(client: httpx.Client, path: str, text: str, count: int, most: int) -> Iterator[None]:
    """So many requests, of which ``most`` are under way and the others are refused."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(send(client, path, text)) for _ in range(count)]
        until(lambda: len(select.select(sockets, [], [], 0)[0]) == count - most)
        yield


@pytest.mark.long
def test_slow_checks_of_one_token_delay_no_other(run: Run) -> None:
    with (
        clients(run, "slow", "other", checks_waiting=4) as (slow, other),
        sent(slow, "/check", LONG_TEXT, 6, 4),
    ):
        for _ in range(3):
            assert check(other).json()["ok"]
        assert other.post("/explain", content=TEXT, headers=SPARQL).is_success
        assert other.get("/letters").is_success
        assert other.get("/sparql", params={"query": "ASK {}"}).json()["boolean"]
        assert check(slow).status_code == 429, "its checks are under way"


@pytest.mark.long
def test_slow_queries_of_one_token_delay_no_other(run: Run) -> None:
    with (
        clients(run, "slow", "other", sparql_seconds=3600, checks_waiting=99) as (slow, other),
        sent(slow, "/sparql", LONG_QUERY, 34, 32),
    ):
        assert len(until(lambda: processes(QUERIES))) <= 2
        query = {"query": "ASK {}"}
        for _ in range(3):
            assert other.get("/sparql", params=query).json()["boolean"]
        assert slow.get("/sparql", params=query).status_code == 429, "its queries are under way"


def test_checks_and_slow_queries_leave_the_cores_to_the_engine(run: Run) -> None:
    with (
        clients(run, "slow", sparql_seconds=3600) as (slow,),
        sent(slow, "/sparql", LONG_QUERY, 1, 1),
    ):
        assert check(slow).is_success
        workers = [*processes(CHECKS), *until(lambda: processes(QUERIES))]
        until(lambda: all(worker.nice() > psutil.Process().nice() for worker in workers))


def test_checks_end_with_their_clients(run: Run) -> None:
    with clients(run, "slow", checks_waiting=2) as (slow,):
        with sent(slow, "/check", LONG_TEXT, 3, 2):
            assert check(slow).status_code == 429
        assert until(lambda: check(slow).is_success), "their clients have gone"


@pytest.mark.long
def test_a_check_that_takes_too_long_is_ended(run: Run) -> None:
    with clients(run, "slow", check_seconds=1) as (slow,):
        refusal = check(slow, LONG_TEXT)
        assert (refusal.status_code, refusal.json()["limit"]) == (503, "seconds")
        detail = refusal.json()["detail"].replace(" of CPU", "")  # time, if the machine is busy
        assert detail == "The check of the text took more than 1 s, and was ended."
        assert check(slow).json()["ok"]


@pytest.mark.long
def test_a_check_that_takes_too_much_memory_is_ended(run: Run) -> None:
    with clients(run, "large", check_memory=1 << 20) as (large,):
        refusal = check(large, LONG_TEXT)
        assert (refusal.status_code, refusal.json()["limit"]) == (503, "memory")
        assert refusal.json()["detail"] == (
            "The check of the text took more memory than it may have, and was ended."
        )
        assert large.get("/health").is_success


@pytest.mark.long
@pytest.mark.parametrize("path", ["/check", "/sparql"])
def test_work_ends_with_a_server_that_is_killed(run: Run, path: str) -> None:
    text, program = (LONG_TEXT, CHECKS) if path == "/check" else (LONG_QUERY, QUERIES)
    settings = Settings(run.root, port=0, limits=Limits(**LIMITS, sparql_seconds=3600))
    with bind_socket(settings.host, 0) as listener:
        start = ServerConfig.from_settings(settings, listener.fileno(), os.getpid())
        url = shown_address(listener)
        server = subprocess.Popen(
            [sys.executable, "-m", "levada.server"],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
        assert server.stdin is not None
        server.stdin.write(msgspec.json.encode(start))
        server.stdin.close()
    try:
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            assert check(client).is_success
            with send(client, path, text):
                workers = until(lambda: [p for p in processes(program, server.pid) if works(p)])
                server.send_signal(signal.SIGKILL)
                until(lambda: not any(map(command, workers)))
    finally:
        server.kill()
        server.wait()
