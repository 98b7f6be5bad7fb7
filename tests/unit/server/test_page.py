"""The page: files under a policy that lets nothing else in; where Chromium is there, in a
browser.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from awaiting import PATIENCE, until
from levada.server.guard.tokens import add_token
from levada.server.settings import Settings
from serving import TEXT, Run, served

CHROMIUM = shutil.which("chromium")


def test_the_page_is_there_for_all(run: Run, tmp_path: Path) -> None:
    add_token(tmp_path / "tokens", "a", "read")
    with served(Settings(run.root, port=0, tokens=tmp_path / "tokens")) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        for path in ("/", "/page/page.css", "/page/page.js", "/page/complete.js"):
            found = client.get(path)
            assert found.status_code == 200
            policy = found.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
        assert client.get("/page/..%2f__init__.py").status_code == 404
        assert client.get("/page/x.js").status_code == 404
        assert client.get("/status").status_code == 401


def test_what_the_page_holds() -> None:
    folder = Path(__file__).parents[3] / "src" / "levada" / "server" / "page"
    html = (folder / "index.html").read_text()
    script = "".join((folder / name).read_text() for name in ("page.js", "complete.js"))
    for inline in ("style=", "onclick", "<style", "javascript:", "http://", "https://"):
        assert inline not in html
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert unsafe not in script
    assert "https://" not in script


@pytest.fixture
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    flags = "--no-sandbox --disable-gpu --disable-background-networking --disable-sync"
    with api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=flags.split())
        yield made
        made.close()


def test_a_query_is_written_and_its_rows_come(
    run: Run, serve: Callable[..., httpx.Client], browser: Any, tmp_path: Path
) -> None:
    client = serve()
    url = str(client.base_url)
    asked: list[str] = []
    wrong: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Policy" in said.text else None)
    page.goto(url)
    page.get_by_role("button", name="hot").wait_for()
    editor = page.get_by_label("The query's text")
    editor.press_sequentially("CONSTR")
    page.get_by_role("option", name="CONSTRUCT").wait_for()
    page.screenshot(path=tmp_path / "words.png")
    editor.press("Tab")
    assert editor.input_value() == "CONSTRUCT"
    page.get_by_label("Name").fill("warm")
    mistake = TEXT.replace("PT2S", "PT4S").replace("WHERE", "WERE")
    page.get_by_label("The query's text").fill(mistake)
    page.locator("#marks .wrong", has_text="WERE").wait_for(state="attached")
    assert "Did you mean WHERE?" in page.locator("#verdict").inner_text()
    page.screenshot(path=tmp_path / "mistake.png")
    page.get_by_label("The query's text").fill(mistake.replace("WERE", "WHERE"))
    page.locator("#verdict", has_text="SELECT over").wait_for()
    page.get_by_label("The query's text").press("Control+Enter")
    page.get_by_role("button", name="warm").wait_for()
    page.locator("#live", has_text="Live.").wait_for()
    page.wait_for_function("!document.getElementById('drop').disabled")
    run.feed(8)
    page.locator("#rows tr").nth(5).wait_for()
    nasty = "<img src=x onerror=alert(1)>"
    (run.folder / "s" / "90000.nt").write_text(
        f'<http://e/a> <http://e/p> "{nasty}" 9000 .\n<http://e/a> <http://e/p> "z" 20000 .\n'
    )
    page.locator("#rows td", has_text=nasty).first.wait_for()
    assert page.locator("#rows img").count() == 0
    page.screenshot(path=tmp_path / "rows.png", full_page=True)
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=tmp_path / "dark.png", full_page=True)
    page.set_viewport_size({"width": 400, "height": 900})
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    page.screenshot(path=tmp_path / "narrow.png", full_page=True)
    assert overflow <= 0
    assert all(address.startswith(url) for address in asked)
    assert not wrong
    until(lambda: client.get("/queries/warm").status_code == 200)
