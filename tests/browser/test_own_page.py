"""The how-to's page of another site in Chromium: rows come, and go on when a link has ended."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada.server.security.tokens import add_token
from levada.server.settings import Settings
from support.http_server import Run, last_report, served
from support.polling import until

PAGE = Path(__file__).parents[2] / "docs" / "deployment" / "web-pages.md"


@contextmanager
def site(html: str, url: str, tokens: list[str], port: int) -> Iterator[None]:
    """Another site with the page. Makes each link with the next token."""
    next_token = iter(tokens)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = html.encode()
            if self.path == "/link":
                headers = {"Authorization": f"Bearer {next(next_token)}"}
                body = httpx.post(f"{url}/queries/hot/links", headers=headers).content
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
def test_the_page_of_another_site_follows_a_query(run: Run, browser: Any, tmp_path: Path) -> None:
    html = PAGE.read_text().partition("```html\n")[2].partition("```")[0]
    file = tmp_path / "tokens"
    tokens = [add_token(file, name, "read") for name in ("first", "second")]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    origin = f"http://127.0.0.1:{port}"
    with served(Settings(run.root, port=0, tokens=file, origins=(origin,))) as url:
        reader = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {tokens[1]}"})
        until(lambda: last_report(reader) == 4000)
        with site(html.replace("https://levada.example.org", url), url, tokens, port):
            page = browser.new_page()
            with page.expect_response(f"{url}/**"):
                page.goto(origin)
            run.feed(2)
            page.locator("#rows tr", has_text="9").wait_for()
            with page.expect_response(f"{url}/**"):  # with the second link
                file.write_text(file.read_text().partition("\n")[2])
            run.feed(2)
            page.locator("#rows tr", has_text="11").wait_for()
            cells = page.locator("#rows td:last-child").all_inner_texts()
    assert list(reversed(cells)) == ["6", "7", "8", "9", "10", "11", "8", "9"]
