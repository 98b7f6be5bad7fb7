"""Who may ask, and what asking can do: hosts, origins, tokens, roles; and bytes that are no
requests, or never end.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from levada.cli.status import drivers
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.errors import UsageError
from levada.server.app import WAYS
from levada.server.security.bounded_http import room
from levada.server.security.tokens import Role, TokenFile, add_token, read_tokens
from levada.server.settings import Limits, Settings
from levada.server.status_routes import ADMIN_FIELDS
from support.http_server import TEXT, Run, last_report, served
from support.polling import PATIENCE, until

SPARQL = {"Content-Type": "application/sparql-query"}
WARM = TEXT.replace("PT2S", "PT4S")


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, str]:
    """A token for each role, by its name, and the file's path as ``file``."""
    path = tmp_path / "tokens"
    made = {role.value: add_token(path, role.value, role.value) for role in Role}
    return {**made, "other": add_token(path, "other", "register"), "file": str(path)}


@pytest.fixture
def guarded(run: Run, tokens: dict[str, str]) -> Iterator[httpx.Client]:
    settings = Settings(run.root, port=0, tokens=Path(tokens["file"]), limits=Limits(own_queries=1))
    with served(settings) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        until(lambda: client.get("/status", headers=bearer(tokens["read"])).is_success)
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_hosts_and_origins(client: httpx.Client) -> None:
    for host, status in (
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("localhost:80", 200),
        ("localhost:<>", 421),
        ("localhost:80/..", 421),
        ("[::1]:8790", 200),
    ):
        assert client.get("/health", headers={"Host": host}).status_code == status, host
    own = f"http://{client.base_url.host}:{client.base_url.port}"
    for origin, status in (
        (own, 200),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        (f"{own}/x", 403),
        (f"http://a@{own[7:]}", 403),
        ("", 403),
    ):
        assert client.get("/health", headers={"Origin": origin}).status_code == status, origin
    picture = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/sparql?query=ASK{}", headers=picture).status_code == 403
    assert client.get("/", headers=picture).status_code == 200, "a link may be followed"
    assert client.get("/health", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    put = client.put(
        "/queries/x", content=TEXT, headers={**SPARQL, "Origin": "http://evil.example"}
    )
    assert put.status_code == 403
    found = client.get("/health")
    assert "access-control-allow-origin" not in found.headers
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in found.headers["content-security-policy"]


def test_a_server_that_others_reach_needs_tokens(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no tokens"):
        Settings(tmp_path, host="0.0.0.0").check()
    with pytest.raises(UsageError, match="there are no tokens"):
        Settings(tmp_path, host="example.org").check()
    Settings(tmp_path, host="localhost").check()


def test_a_token_comes_in_the_header_alone(guarded: httpx.Client, tokens: dict[str, str]) -> None:
    token = tokens["admin"]
    for headers in (
        {},
        {"Authorization": token},
        {"Authorization": f"Basic {token}"},
        {"Cookie": f"token={token}; Authorization=Bearer {token}"},
        bearer(token[:-1]),
        bearer(token + "x"),
        {"Authorization": "Bearer \xff".encode("latin-1")},
    ):
        found = guarded.get("/status", headers=headers)  # type: ignore[arg-type]
        assert found.status_code == 401
        assert found.headers["www-authenticate"].startswith("Bearer")
        assert token not in found.text
    assert guarded.get(f"/status?token={token}&access_token={token}").status_code == 401
    assert guarded.get("/status", headers=bearer(token)).status_code == 200


PROBES = ["/health", "/health/ready", "/health/live"]


@pytest.mark.parametrize("path", PROBES)
def test_probes_without_a_token_say_ok_and_nothing_else(
    guarded: httpx.Client, tokens: dict[str, str], path: str
) -> None:
    for headers in ({}, bearer(tokens["push"])):
        answer = guarded.get(path, headers=headers)
        assert (answer.status_code, answer.json()) == (200, {"ok": True})


def test_probes_of_a_server_without_an_engine_say_not_ok(
    tmp_path: Path, tokens: dict[str, str]
) -> None:
    (tmp_path / "s.nt").write_text("<http://e/a> <http://e/p> 1 1000 .\n")
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("http://e/s", tmp_path / "s.nt")
        engine.register("SELECT * { ?s ?p ?o }")
        engine.start(once=True)
        engine.await_end()
    settings = Settings(tmp_path / "ck", port=0, tokens=Path(tokens["file"]))
    with served(settings) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        answers = [client.get(path) for path in PROBES]
        assert [answer.status_code for answer in answers] == [503, 503, 200]
        assert [answer.json() for answer in answers] == [{"ok": False}, {"ok": False}, {"ok": True}]
        said = client.get("/health", headers=bearer(tokens["read"])).json()
        assert said == {"ok": False, "engine": "stopped", "read_only": False}


def test_a_wrong_token_has_a_sentence_of_its_own(
    guarded: httpx.Client, tokens: dict[str, str]
) -> None:
    for path in ("/status", "/health", "/health/live"):
        wrong = guarded.get(path, headers=bearer(tokens["admin"] + "x"))
        assert wrong.status_code == 401
        assert wrong.json()["detail"] == "This token is not known."
        assert "cut short" in wrong.json()["hint"]
    for headers in ({}, {"Authorization": "Basic abc"}, {"Authorization": "Bearer"}):
        none = guarded.get("/status", headers=headers)
        assert (none.status_code, none.json()["detail"][:19]) == (401, "A token is asked fo")


def test_roles(guarded: httpx.Client, tokens: dict[str, str]) -> None:
    def code(method: str, path: str, role: str, content: str = "") -> int:
        headers = {**bearer(tokens[role]), **(SPARQL if content else {})}
        return guarded.request(method, path, content=content, headers=headers).status_code

    assert [code("GET", "/status", role) for role in Role] == [200, 403, 200, 200]
    assert [code("POST", "/streams/s", role) for role in ("read", "register")] == [403, 403]
    assert code("POST", "/streams/s", "push") == 409, "it may, but the stream is one of files"
    assert [code("PUT", "/queries/w", role, WARM) for role in ("read", "push")] == [403, 403]
    assert code("PUT", "/queries/w", "register", WARM) == 201
    assert code("DELETE", "/queries/w", "other") == 403, "another's"
    assert code("DELETE", "/queries/hot", "register") == 403, "the operator's"
    assert code("PUT", "/queries/w2", "register", WARM) == 429, "one is all that it may have"
    assert code("PUT", "/queries/w2", "other", WARM) == 201
    assert code("DELETE", "/queries/w", "register") == 200
    assert code("DELETE", "/queries/w2", "admin") == 200


PLACES = {
    "{stream:path}": "none", "{query}": "none", "{report}": "1", "{graph:path}": "none",
    "{file}": "none",
}  # fmt: skip


def test_fields_that_name_machines_need_the_role_admin(
    guarded: httpx.Client, tokens: dict[str, str]
) -> None:
    fields = {
        role: guarded.get("/status", headers=bearer(tokens[role])).json().keys()
        for role in ("read", "admin")
    }
    assert fields["admin"] - fields["read"] == set(ADMIN_FIELDS)
    assert fields["read"] < fields["admin"]


def test_every_way_asks_for_its_role(guarded: httpx.Client, tokens: dict[str, str]) -> None:
    for way in WAYS:
        if way.role is None:
            continue
        path = way.path
        for name, given in PLACES.items():
            path = path.replace(name, given)
        may = {Role.READ: ("read", "register", "admin")}.get(way.role, (way.role, "admin"))
        media = {"Content-Type": way.takes[0]} if way.takes else {}
        for role in Role:
            headers = {**bearer(tokens[role]), **media}
            with guarded.stream(way.method, path, headers=headers) as found:  # some do not end
                assert (found.status_code != 403) == (role in may), (way, role)
                assert found.status_code < 500, (way, role)
        for headers in ({}, bearer(tokens["file"]), {"Authorization": "Bearer"}):
            assert guarded.request(way.method, path, headers=headers).status_code == 401, way


def test_the_file_of_tokens_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    first = add_token(path, "a", "read")
    known = TokenFile(path)
    assert known.find(first) is not None
    second = add_token(path, "b", "push")
    found = known.find(second)
    assert found is not None and (found.name, found.roles) == ("b", frozenset({Role.PUSH}))
    path.write_text("# nobody\n")
    assert known.find(first) is None


ZEROS = "sha256:" + 64 * "0"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"carl raed %s\n" % ZEROS.encode(), "Line 3 is not taken: There is no role raed. Did"),
        (b"carl\xe9 read %s\n" % ZEROS.encode(), "Line 3 is not taken: It is not UTF-8."),
        (b"carl read\n", "Line 3 is not taken: A line is NAME"),
        (b"carl read %s queries=x" % ZEROS.encode(), "Line 3 is not taken: The limit queries"),
        (b"bob read %s\n" % ZEROS.encode(), ""),
    ],
)
def test_a_broken_line_takes_no_other_token_away_and_keeps_none(
    tmp_path: Path, broken: bytes, said: str
) -> None:
    path, reports = tmp_path / "tokens", list[str]()
    anna, bob = add_token(path, "anna", "read"), add_token(path, "bob", "read")
    known = TokenFile(path, reports.append)
    assert known.find(anna) is not None and not reports
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[1], b"# caf\xe9: no UTF-8, in a comment\n", broken]))
    assert known.find(anna) is None, "her line is deleted"
    if said:
        assert known.find(bob) is not None, "his line is sound"
        assert [said in report for report in reports] == [True]
        assert f"The tokens {path}: " in reports[0]
    else:
        assert known.find(bob) is None, "two lines with one name contradict each other"
        assert len(reports) == 2 and all("is there twice" in report for report in reports)
    before = len(reports)
    assert known.find(anna) is None and len(reports) == before, "each fault is reported once"
    path.write_bytes(lines[1])
    assert known.find(bob) is not None
    assert reports[before:] == [f"The tokens {path}: all lines are taken."]


def test_a_file_of_tokens_that_cannot_be_read_has_no_token(tmp_path: Path) -> None:
    path, reports = tmp_path / "tokens", list[str]()
    anna = add_token(path, "anna", "read")
    known = TokenFile(path, reports.append)
    assert known.find(anna) is not None
    text = path.read_bytes()
    path.unlink()
    assert known.find(anna) is None
    assert reports == [f"The tokens {path}: No line can be read: No such file or directory."]
    path.mkdir()
    assert known.find(anna) is None
    assert reports[1:] == [f"The tokens {path}: No line can be read: Is a directory."]
    path.rmdir()
    path.write_bytes(b"\xef\xbb\xbf" + text)
    assert known.find(anna) is not None, "it is back, with a byte order mark"
    path.write_bytes(text.decode().encode("utf-16"))
    assert known.find(anna) is None
    assert "Line 1 is not taken" in "".join(reports)


def test_of_many_faults_some_are_reported(tmp_path: Path) -> None:
    path, reports = tmp_path / "tokens", list[str]()
    path.write_text("broken\n" * 500)
    TokenFile(path, reports.append).now()
    assert len(reports) == 11
    assert reports[-1] == f"The tokens {path}: 490 more lines are not taken."


def test_a_file_with_the_time_and_size_of_before_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    anna = add_token(path, "anna", "read")
    stat = path.stat()
    known = TokenFile(path)
    assert known.find(anna) is not None
    path.write_bytes(path.read_bytes().replace(b"read", b"push"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    found = known.find(anna)
    assert found is not None and found.roles == {Role.PUSH}


def test_faults_of_the_tokens_are_in_status_metrics_and_the_health_of_admins(
    guarded: httpx.Client, run: Run, tokens: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    def ask(path: str, role: str) -> httpx.Response:
        return guarded.get(path, headers=bearer(tokens[role]))

    def faults() -> float:
        samples = text_string_to_metric_families(ask("/metrics", "read").text)
        return next(s.value for f in samples for s in f.samples if s.name == "levada_token_faults")

    assert ask("/status", "read").json()["token_faults"] == faults() == 0
    assert ask("/health", "admin").json()["token_faults"] == []
    with Path(tokens["file"]).open("a") as file:
        file.write("carl raed " + ZEROS)
    line = len(Path(tokens["file"]).read_text().splitlines())
    until(lambda: f"Line {line} is not taken: There is no role raed." in capfd.readouterr().err)
    assert ask("/status", "read").json()["token_faults"] == faults() == 1
    (sentence,) = ask("/health", "admin").json()["token_faults"]
    assert sentence.startswith(f"Line {line} is not taken: There is no role raed.")
    until(lambda: read_status(run.root).token_faults == 1)
    assert any(
        "does not take 1 line of its file of tokens" in s for s in drivers(read_status(run.root))
    )
    for role in ("read", "register"):
        assert "token_faults" not in ask("/health", role).json()
        assert "raed" not in ask("/status", role).text + ask("/metrics", role).text
    Path(tokens["file"]).unlink()
    until(lambda: "No line can be read: No such file" in capfd.readouterr().err)
    assert ask("/health", "admin").status_code == 401
    until(lambda: read_status(run.root).token_faults == 1)
    Path(tokens["file"]).write_text("# nobody")
    until(lambda: read_status(run.root).token_faults == 0)


def test_a_server_that_is_started_again_takes_the_sound_lines(
    run: Run, tokens: dict[str, str]
) -> None:
    path = Path(tokens["file"])
    path.write_text(path.read_text() + "carl raed " + ZEROS)
    settings = Settings(run.root, port=0, tokens=path)
    with pytest.raises(UsageError, match="There is no role raed"):
        settings.check()  # as one who starts an engine is told
    with served(settings) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        assert client.get("/streams", headers=bearer(tokens["read"])).status_code == 200


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a read", "A line is NAME ROLES"),
        ("a red sha256:" + 64 * "0", "There is no role red"),
        ("a read sha256:00", "no SHA-256"),
        ("a read md5:00", "A line is NAME ROLES"),
        ("a/b read sha256:" + 64 * "0", "A line is NAME ROLES"),
        ("a read sha256:" + 64 * "0" + "\na read sha256:" + 64 * "0", "is there twice"),
    ],
)
def test_lines_that_are_no_tokens(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "tokens").write_text(line)
    with pytest.raises(UsageError, match=said):
        read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize("end", ["", "\n", "\r\n", " # no line end"])
def test_a_token_is_added_on_a_line_of_its_own(tmp_path: Path, end: str) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(f"bob read {ZEROS}{end}".encode())
    add_token(path, "anna", "push")
    assert [token.name for token in read_tokens(path).all] == ["bob", "anna"]


# -- bytes --


@pytest.fixture
def raw(serve: Callable[..., httpx.Client]) -> Iterator[Callable[..., tuple[bytes, int]]]:
    """Sends bytes, and gives what comes back until the server closes; ``waits``: so many seconds
    for what is not whole.
    """
    clients: list[httpx.Client] = []

    def send(data: bytes, waits: float, pause: float = 0.0) -> tuple[bytes, int]:
        limits = Limits(body=10_000, head=4_000, head_seconds=waits, body_seconds=waits, text=5_000)
        client = serve(limits)
        clients.append(client)
        until(lambda: client.get("/health").status_code == 200)
        found, sent = b"", 0
        with socket.create_connection((client.base_url.host, client.base_url.port)) as made:
            made.settimeout(PATIENCE)
            try:
                for at in range(0, len(data), 1 if pause else len(data)):
                    made.sendall(data[at : at + (1 if pause else len(data))])
                    sent += 1
                    time.sleep(pause)
                while part := made.recv(65536):
                    found += part
            except (ConnectionError, BrokenPipeError):
                pass
        return found, sent

    yield send
    assert all(client.get("/health").status_code == 200 for client in clients), "it goes on"


HEAD = b"POST /check HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (HEAD + b"Content-Length: 100\r\n\r\nhalf", 408),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nSELEC\r\n", 408),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n%b\r\n" % (b"x" * 1024) * 20, 413),
        (HEAD + b"Content-Length: 1000000000\r\n\r\n", 413),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 40\r\n\r\n" + b"x" * 40, 415),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 415),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Encoding: identity\r\n\r\n", 400),
        (HEAD + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n", 431),
        (HEAD + b"X: y\r\n" * 2_000 + b"\r\n", 431),  # whole, in one piece
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n", 431),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 1_000_000, 431),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 200_000, 431),
        (HEAD, 408),
        (
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
            400,
        ),
        (b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 421),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"HELO there\r\n\r\n", 400),
    ],
)
def test_bytes_that_are_no_request(
    raw: Callable[..., tuple[bytes, int]], data: bytes, status: int
) -> None:
    found, _ = raw(data, 0.5 if status == 408 else PATIENCE)
    unseen = not found and len(data) > 50_000  # who still sends may not see the answer
    assert unseen or found.startswith(b"HTTP/1.1 %d " % status)


def test_what_is_refused_is_told_and_counted(serve: Callable[..., httpx.Client]) -> None:
    """No half body, and nothing that is no HTTP, is a fault of the server."""
    client = serve(Limits(head=4_000))
    until(lambda: client.get("/health").status_code == 200)

    def count(status: int) -> float:
        found = text_string_to_metric_families(client.get("/metrics").text)
        samples = (s for f in found if f.name == "levada_http_requests" for s in f.samples)
        return next((s.value for s in samples if s.labels["status"] == str(status)), 0)

    for data, status in ((b"HELO there\r\n\r\n", 400), (HEAD + b"X: " + b"a" * 5_000, 431)):
        with socket.create_connection((client.base_url.host, client.base_url.port)) as made:
            made.settimeout(PATIENCE)
            made.sendall(data)
            found = b""
            while part := made.recv(65536):
                found += part
        assert b"content-type: application/problem+json" in found
        assert json.loads(found.partition(b"\r\n\r\n")[2])["status"] == status
        assert count(status) == 1
    for path in (b"/check", b"/streams/s", b"/sparql", b"/queries/x"):
        with socket.create_connection((client.base_url.host, client.base_url.port)) as made:
            made.sendall(HEAD.replace(b"/check", path) + b"Content-Length: 100\r\n\r\nhalf")
    until(lambda: count(408) + count(409) + count(415) + count(405) >= 4)
    assert count(500) == 0


def test_all_bodies_together_are_bounded(serve: Callable[..., httpx.Client]) -> None:
    client = serve(Limits(body=10_000, text=10_000, bodies=15_000, body_seconds=2 * PATIENCE))
    until(lambda: client.get("/health").status_code == 200)
    text = TEXT + "#" * 8_000

    def asked() -> int:
        return client.post("/check", content=text, headers=SPARQL).status_code

    assert asked() == 200
    with socket.create_connection((client.base_url.host, client.base_url.port)) as made:
        made.sendall(HEAD + b"Content-Length: 9000\r\n\r\n" + b"x" * 8_900)
        # whichever came second is refused
        until(lambda: asked() == 503 or select.select([made], [], [], 0)[0])
        if select.select([made], [], [], 0)[0]:
            assert made.recv(100).startswith(b"HTTP/1.1 503 ")
        assert client.get("/health").status_code == 200
    until(lambda: asked() == 200)


def test_a_byte_now_and_then(raw: Callable[..., tuple[bytes, int]]) -> None:
    found, sent = raw(HEAD + b"X: " + b"a" * 1_000, 0.5, pause=0.05)
    assert sent < 1_000, "it is not waited for"
    assert found.startswith(b"HTTP/1.1 408 ") or not found, "who still sends may not see it"


def test_nothing_is_unpacked(client: httpx.Client) -> None:
    bomb = gzip.compress(b"\0" * (1 << 24))
    found = client.post("/check", content=bomb, headers={**SPARQL, "Content-Encoding": "gzip"})
    assert found.status_code == 415


def test_reports_in_one_answer_are_bounded_by_bytes(serve: Callable[..., httpx.Client]) -> None:
    """At least one comes; none is left out, none comes twice."""
    client = serve(Limits(answer=1))
    until(lambda: last_report(client) == 4000)
    ids, after = [], 0
    while True:
        found = client.get(f"/queries/hot/results?after={after}")
        ids += [json.loads(line)["report"] for line in found.text.splitlines()]
        if "link" not in found.headers:
            break
        assert ids[-1] == int(found.headers["levada-report"])
        after = ids[-1]
    assert ids == [1000, 2000, 3000, 4000]


@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    [
        "/queries/..%2f..%2fetc%2fpasswd",
        "/queries/%2e%2e/%2e%2e/levada.json",
        "/queries/hot/results/..%2f..%2flevada.json",
        "/streams/../levada.json",
        "/streams/%2e%2e%2flevada.json",
        "/static/../../levada.json",
        "/queries/hot%00",
        "/queries/hot%0d%0aSet-Cookie:%20a=b",
    ],
)
def test_no_path_leads_to_a_file(client: httpx.Client, path: str) -> None:
    url = client.base_url
    with socket.create_connection((url.host, url.port)) as made:
        made.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        found = b""
        while part := made.recv(65536):
            found += part
    assert found.split(b" ")[1] in (b"400", b"404")
    assert b"seed" not in found
    assert b"set-cookie" not in found.lower().split(b"\r\n\r\n")[0]


@pytest.mark.parametrize(
    ("soft", "hard", "found", "raised"),
    [
        (1024, 1 << 20, 10_000, 10_256),
        (1024, 4096, 3840, 4096),
        (1 << 20, 1 << 20, 10_000, None),
        (1024, resource.RLIM_INFINITY, 10_000, 10_256),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 10_000, None),
    ],
)
def test_connections_are_open_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, found: int, raised: int | None
) -> None:
    said: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: said.append(both))
    assert room(10_000) == found
    assert said == ([] if raised is None else [(raised, hard)])


def test_too_many_connections(serve: Callable[..., httpx.Client]) -> None:
    client = serve(Limits(connections=3))
    until(lambda: client.get("/health").status_code == 200)
    url = client.base_url
    made = [socket.create_connection((url.host, url.port)) for _ in range(6)]
    last = made[-1]
    last.settimeout(PATIENCE)
    assert last.recv(100).startswith(b"HTTP/1.1 503 ")
    for each in made:
        each.close()
    until(lambda: client.get("/health").status_code == 200)
