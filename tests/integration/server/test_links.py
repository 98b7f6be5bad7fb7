"""Results for other pages: links that read one query, allowed origins, and a proxy before all."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from levada.core.cache_folder import cache_folder
from levada.server.security.links import SECRET, Links
from levada.server.security.tokens import TokenFile, add_token
from levada.server.settings import Settings
from support.http_server import EVENTS, TEXT, Run, events, last_report, served
from support.polling import PATIENCE, until

SITE = "https://www.example.org"
PAGE = Path(__file__).parents[3] / "docs" / "deployment" / "web-pages.md"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, str]:
    """The tokens by name."""
    path = tmp_path / "tokens"
    return {name: add_token(path, name, name) for name in ("read", "push", "admin")}


@pytest.fixture
def guarded(run: Run, tokens: dict[str, str], tmp_path: Path) -> Iterator[httpx.Client]:
    """A client without a token, of a server with tokens that allows pages of one origin."""
    settings = Settings(run.root, port=0, tokens=tmp_path / "tokens", origins=(SITE,))
    with served(settings) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        with httpx.Client(base_url=url, headers=bearer(tokens["read"])) as reader:
            until(lambda: last_report(reader) == 4000)
        yield client


def make_link(client: httpx.Client, token: str, seconds: int = 3600) -> str:
    found = client.post(f"/queries/hot/links?seconds={seconds}", headers=bearer(token))
    assert found.status_code == 201, found.text
    return str(found.json()["url"])


def test_a_link_reads_one_query_and_nothing_else(
    run: Run, guarded: httpx.Client, tokens: dict[str, str]
) -> None:
    run.engine.register(TEXT, name="cold")
    link = make_link(guarded, tokens["read"])
    assert guarded.get(link).status_code == 200
    assert guarded.get(link.replace("?", "/4000?")).headers["Levada-Report"] == "4000"
    page = guarded.get(f"{link}&after=0&limit=1")
    assert guarded.get(page.links["next"]["url"]).is_success, "the next page has the link, too"
    with guarded.stream("GET", f"{link}&after=3000", headers=EVENTS) as stream:
        assert [e["id"] for e in events(stream.iter_lines(), 1)] == ["4000"]
    where = str(guarded.base_url).replace("http", "ws")
    with connect(f"{where}{link}&after=3000") as ws:
        assert json.loads(ws.recv())["id"] == "4000"
    word = link.partition("?")[2]
    for path in ("/queries/cold/results", "/queries/hot", "/queries", "/status", "/events"):
        assert guarded.get(f"{path}?{word}").status_code == 401, path
    assert guarded.post(f"/queries/hot/links?{word}").status_code == 401
    for wrong in (
        f"{link}x",
        link[:-9],
        link.replace("link=", "link=x"),
        link.split("=")[0] + "=.",
    ):
        assert guarded.get(wrong).status_code == 401, wrong
    refused = guarded.post("/queries/hot/links", headers=bearer(tokens["push"]))
    assert refused.status_code == 403
    for seconds in (0, 86_401):
        made = guarded.post(f"/queries/hot/links?seconds={seconds}", headers=bearer(tokens["read"]))
        assert made.status_code == 400
    assert guarded.post("/queries/no/links", headers=bearer(tokens["read"])).status_code == 404


def test_a_link_ends_with_its_token_and_survives_a_restart(
    run: Run, guarded: httpx.Client, tokens: dict[str, str], tmp_path: Path
) -> None:
    link, other = make_link(guarded, tokens["read"]), make_link(guarded, tokens["admin"])
    assert (run.root / SECRET).stat().st_mode & 0o077 == 0
    for read_only in (False, True):
        again = Settings(run.root, port=0, tokens=tmp_path / "tokens", read_only=read_only)
        with served(again) as url:
            assert httpx.get(url + link, timeout=PATIENCE).is_success
    with guarded.stream("GET", f"{link}&after=3000", headers=EVENTS) as stream:
        lines = stream.iter_lines()
        events(lines, 1)
        file = tmp_path / "tokens"
        text = [line for line in file.read_text().splitlines() if not line.startswith("read")]
        file.write_text("\n".join(text) + "\n")
        assert not [line for line in lines if line.startswith("data")], "the stream ends"
    assert guarded.get(link).status_code == 401
    assert guarded.get(other).status_code == 200
    add_token(file, "read", "read")
    assert guarded.get(link).status_code == 401, "a new token of the name is another one"
    (run.root / SECRET).write_bytes(b"short")
    assert guarded.get(other).status_code == 401
    made = guarded.post("/queries/hot/links", headers=bearer(tokens["admin"]))
    assert made.status_code == 500 and SECRET not in made.text


def test_a_link_ends_at_its_time_and_with_its_query(
    run: Run, guarded: httpx.Client, tokens: dict[str, str], tmp_path: Path
) -> None:
    file, now = TokenFile(tmp_path / "tokens"), [1000.0]
    links = Links(run.root, file, clock=lambda: now[0])
    owner = file.find(tokens["read"])
    assert owner is not None
    link, last_second = links.make("hot", 1, 60, owner)
    assert last_second == 1060
    assert links.find(link, "/queries/hot/results") is not None
    assert links.find(link, "/queries/hot/resultsx") is None
    now[0] = 1060.0
    assert links.find(link, "/queries/hot/results") is None
    url, admin = make_link(guarded, tokens["read"]), bearer(tokens["admin"])
    tag = guarded.get("/queries/hot", headers=admin).headers["ETag"]
    text = TEXT.replace("PT2S", "PT4S")
    put = guarded.put("/queries/hot", content=text, headers={**admin, "If-Match": tag})
    assert put.is_success, put.text
    found = guarded.get(url)
    assert (found.status_code, "older query" in found.text) == (404, True)


def test_allowed_origins_read_results_and_events_only(
    guarded: httpx.Client, tokens: dict[str, str]
) -> None:
    link, site = make_link(guarded, tokens["read"]), {"Origin": SITE}
    for headers, path in ((site, link), (site | bearer(tokens["read"]), "/queries/hot/results")):
        found = guarded.get(path, headers=headers)
        assert found.status_code == 200
        assert found.headers["access-control-allow-origin"] == SITE
        assert "Origin" in found.headers["vary"]
        assert "Levada-Report" in found.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in found.headers
    for _ in range(2):
        with guarded.stream("GET", link, headers=site | EVENTS) as stream:
            assert stream.headers.get_list("access-control-allow-origin") == [SITE]
    problem = guarded.get("/queries/hot/results", headers=site)
    assert (problem.status_code, problem.headers["access-control-allow-origin"]) == (401, SITE)
    ask = {**site, "Access-Control-Request-Method": "GET"}
    before = guarded.options("/events", headers=ask)
    assert (before.status_code, before.content) == (204, b"")
    assert before.headers["access-control-allow-methods"] == "GET"
    assert "Authorization" in before.headers["access-control-allow-headers"]
    for method, path in (("GET", "/status"), ("OPTIONS", "/queries/hot"), ("PUT", "/queries/hot")):
        refused = guarded.request(method, path, headers=site | bearer(tokens["admin"]))
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers
    assert guarded.get(link, headers={"Origin": f"{SITE}.evil"}).status_code == 403
    assert guarded.get(link, headers={"Origin": SITE.upper()}).status_code == 403


def test_every_origin_may_be_allowed(run: Run) -> None:
    with served(Settings(run.root, port=0, origins=("*",))) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        until(lambda: last_report(client) == 4000)
        for origin in ("null", "http://a.example:8"):
            found = client.get("/queries/hot/results", headers={"Origin": origin})
            assert found.headers["access-control-allow-origin"] == origin
        assert client.get("/queries", headers={"Origin": "null"}).status_code == 403
        foreign = {"Origin": "http://a.example", "Host": "a.example"}
        assert client.get("/queries/hot/results", headers=foreign).status_code == 421
        assert client.post("/queries/hot/links").status_code == 201


@pytest.mark.parametrize(
    "origin", ["example.org", "https://a.org/", "ftp://a", "https://A.org", ""]
)
def test_what_is_no_origin_is_refused(run: Run, origin: str) -> None:
    with pytest.raises(Exception, match="--allow-origin is an origin"):
        Settings(run.root, origins=(origin,)).check()


def block(language: str) -> str:
    """The first block of the how-to page in a language."""
    return PAGE.read_text().partition(f"```{language}\n")[2].partition("```")[0]


@pytest.fixture
def proxy(guarded: httpx.Client, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of nginx with the configuration of the how-to page, before the server."""
    nginx = shutil.which("nginx", path=f"/usr/sbin:/usr/local/sbin:/usr/bin:{cache_folder()}")
    openssl = shutil.which("openssl")
    if nginx is None or openssl is None:
        pytest.skip("The proxy is NOT tested: there is no nginx (make parts) or openssl.")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key -out cert"
    more = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([openssl, *words.split(), *more], cwd=tmp_path, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = block("nginx")
    for said, put in (
        ("443", f"127.0.0.1:{port}"),
        ("127.0.0.1:8790", f"{guarded.base_url.host}:{guarded.base_url.port}"),
        ("levada.example.org", "localhost"),
        ("/etc/ssl/levada.pem", str(tmp_path / "cert")),
        ("/etc/ssl/levada.key", str(tmp_path / "key")),
        ("/var/log/nginx/levada.log", str(tmp_path / "log")),
    ):
        assert said in text, f"the page has {said}"
        text = text.replace(said, put)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    text += "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in kinds)
    conf = f"user root; daemon off; pid {tmp_path}/pid; error_log stderr;\n"
    conf += f"events {{}}\nhttp {{\n{text}\n}}\n"
    (tmp_path / "nginx.conf").write_text(conf)
    asked = [nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    server = subprocess.Popen(asked, stderr=subprocess.DEVNULL)
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert"))
    try:
        with httpx.Client(
            base_url=f"https://localhost:{port}", verify=trusted, timeout=PATIENCE
        ) as client:
            until(lambda: is_there(client))
            yield client
    finally:
        server.terminate()
        server.wait(PATIENCE)


def is_there(client: httpx.Client) -> bool:
    try:
        return client.get("/").is_success
    except httpx.TransportError:
        return False


def test_a_proxy_with_tls_before_the_server(
    run: Run, proxy: httpx.Client, tokens: dict[str, str], tmp_path: Path
) -> None:
    own = bearer(tokens["admin"]) | {"Origin": str(proxy.base_url).rstrip("/")}
    put = proxy.put("/queries/warm", content=TEXT.replace("PT2S", "PT4S"), headers=own)
    assert put.status_code == 201, "the page may change something through the proxy"
    link = make_link(proxy, tokens["read"])
    with proxy.stream("GET", f"{link}&after=3000", headers=EVENTS) as stream:
        lines = stream.iter_lines()
        assert [e["id"] for e in events(lines, 1)] == ["4000"]
        run.feed(2)
        assert [e["id"] for e in events(lines, 1)] == ["5000"], "it comes at once"
    where = str(proxy.base_url).replace("https", "wss")
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert"))
    with connect(f"{where}{link}&after=4000", ssl=trusted) as ws:
        assert json.loads(ws.recv())["id"] == "5000"
    assert proxy.put("/streams/more", headers=own).status_code == 201
    rows = '<http://e/a> <http://e/p> "1" 1000 .\n' * 60_000
    quads = {**own, "Content-Type": "application/n-quads"}
    assert proxy.post("/streams/more", content=rows, headers=quads).status_code == 202, "2 MB"
    log = (tmp_path / "log").read_text()
    assert "/queries/hot/results" in log and link.partition("=")[2] not in log
