"""The page in Chromium (``make browser``): what one does with it, by keyboard too, and that nothing
that comes from data is more than text.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada import Engine
from levada.checkpoint.delivery_progress import Delivered, write_deliveries
from levada.server.security.tokens import add_token
from levada.server.settings import Settings
from support.http_server import GRAPHS, TEXT, Run, served, until

CASES = Path(__file__).parent / "layout_cases.js"


def wide(browser: Any, width: int = 1280) -> Any:
    """A page of so many pixels."""
    page = browser.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    return page


def paste(editor: Any, text: str) -> None:
    """Pastes a text in place of all."""
    editor.press("Control+a")
    editor.evaluate(
        """(element, text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", text);
            const said = { clipboardData, bubbles: true, cancelable: true };
            element.dispatchEvent(new ClipboardEvent("paste", said));
        }""",
        text,
    )


@pytest.mark.long
def test_a_query_is_written_and_its_rows_come(
    run: Run, serve: Callable[..., httpx.Client], browser: Any, tmp_path: Path
) -> None:
    client = serve()
    url = str(client.base_url)
    asked: list[str] = []
    wrong: list[str] = []
    page = wide(browser)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Policy" in said.text else None)
    page.goto(url)
    page.locator("#queries button", has_text="hot").wait_for()
    editor = page.get_by_label("The query's text")
    page.locator("#name").fill("warm")
    paste(editor, TEXT.replace("PT2S", "PT4S"))
    editor.press("Control+Enter")
    page.locator("#queries button", has_text="warm").wait_for()
    page.locator("#live", has_text="Live.").wait_for()
    page.wait_for_function("!document.getElementById('drop').disabled")
    run.feed(8)
    page.locator("#rows tr").nth(5).wait_for()
    page.screenshot(path=tmp_path / "rows.png", full_page=True)
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=tmp_path / "dark.png", full_page=True)
    page.set_viewport_size({"width": 400, "height": 900})
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    page.screenshot(path=tmp_path / "narrow.png", full_page=True)
    assert overflow <= 0
    assert all(address.startswith(url) for address in asked)
    assert not wrong, "\n".join(wrong)
    until(lambda: client.get("/queries/warm").status_code == 200)


@pytest.fixture
def opened(serve: Callable[..., httpx.Client], browser: Any) -> Iterator[Any]:
    """The page, with its queries; nothing on it fails."""
    wrong: list[str] = []
    page = wide(browser)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.goto(str(serve().base_url))
    page.locator("#queries button", has_text="hot").wait_for()
    page.locator(".node.query", has_text="hot").wait_for()
    yield page
    assert not wrong


def test_the_editor(opened: Any, tmp_path: Path) -> None:
    wrong: list[str] = []
    opened.on("console", lambda said: wrong.append(said.text) if "Policy" in said.text else None)
    editor = opened.get_by_label("The query's text")
    editor.press_sequentially("CONSTR")
    opened.get_by_role("option", name="CONSTRUCT").wait_for()
    opened.screenshot(path=tmp_path / "words.png")
    editor.press("Tab")
    assert editor.inner_text() == "CONSTRUCT"
    paste(editor, "PREFIX : <http://e/>\nSELECT ?n FROM NAMED WINDOW :w ON ")
    editor.press("Control+Space")
    opened.get_by_role("option").first.wait_for()
    assert sorted(opened.get_by_role("option").all_inner_texts()) == [":sstream", "<s>stream"]
    editor.press("Escape")
    mistake = TEXT.replace("PT2S", "PT4S").replace("WHERE", "WERE")
    paste(editor, mistake)
    opened.locator(".cm-lintRange-error", has_text="WERE").wait_for()
    colours = {
        word: opened.locator(".cm-line span", has_text=re.compile(f"^{re.escape(word)}$")).first
        for word in ("SELECT", "?n", ":w", "PT4S")
    }
    seen = {each.evaluate("e => getComputedStyle(e).color") for each in colours.values()}
    assert len(seen) == 4, "a colour for each kind"
    assert opened.locator(".cm-lineNumbers .cm-gutterElement", has_text="3").count() == 1
    opened.locator("#verdict", has_text="Did you mean WHERE?").wait_for()
    opened.screenshot(path=tmp_path / "mistake.png")
    paste(editor, mistake.replace("WERE", "WHERE"))
    opened.locator("#verdict", has_text="SELECT over").wait_for()
    assert opened.locator(".cm-lintRange-error").count() == 0
    opened.locator(".cm-line", has_text="WHERE").click()
    for key in ("Home", *["ArrowRight"] * 6):
        editor.press(key)
    opened.locator(".cm-matchingBracket").first.wait_for()
    assert not wrong, "the styles of the editor are those that the policy allows"


def test_rows_pause_are_saved_and_a_drop_is_asked_for(opened: Any, run: Run) -> None:
    assert opened.locator("#save").is_disabled()
    opened.locator("#queries button", has_text="hot").click()
    opened.locator("#rows tr").first.wait_for()
    opened.locator("#pause").click()
    before = opened.locator("#rows tr").count()
    run.feed(2)
    opened.locator("#live", has_text="Paused: 1 report came").wait_for()
    assert opened.locator("#rows tr").count() == before
    opened.locator("#pause").click()
    opened.locator("#rows tr", has_text="00:00:05Z").first.wait_for()
    with opened.expect_download() as saved:
        opened.locator("#save").click()
    assert saved.value.suggested_filename == "hot.csv"
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0] == "report,a,n" and lines[-1] == "5000,http://e/a,9"
    opened.locator("#drop").click()
    opened.keyboard.press("Enter")  # the first button keeps it
    opened.locator("#queries button", has_text="hot").wait_for()
    opened.locator("#drop").click()
    opened.locator("#drop-it").click()
    opened.locator("#empty").wait_for()
    opened.locator("#live", has_text="Dropped").wait_for()
    assert opened.locator("#rows tr").count() == 0
    assert opened.get_by_label("The query's text").inner_text().strip().startswith("Ctrl Space")


def test_the_reason_for_no_rows_is_where_they_would_be(opened: Any, run: Run) -> None:
    run.engine.register(TEXT.replace(":p ?n", ":absent ?n"), name="none")
    opened.locator("#queries button", has_text="none").click()
    run.feed(6)
    opened.locator("#why", has_text="absent").wait_for()
    opened.locator("#queries button", has_text="hot").click()
    opened.locator("#rows tr").first.wait_for()
    opened.locator("#why:empty").wait_for(state="attached")


def test_a_token_is_asked_for_before_all_else(run: Run, browser: Any, tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens", "a", "read")
    with served(Settings(run.root, port=0, tokens=tmp_path / "tokens")) as url:
        page = wide(browser)
        page.goto(url)
        page.locator("#who-told", has_text="This server asks for a token.").wait_for()
        assert not page.locator("main").is_visible() and not page.locator("nav").is_visible()
        page.screenshot(path=tmp_path / "locked.png")
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        page.locator("#who-told", has_text="This token is not known.").wait_for()
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        page.locator("#queries button", has_text="hot").click()
        assert not page.locator("#who").is_visible()
        keyword = page.locator(".cm-line span", has_text=re.compile("^SELECT$"))
        keyword.wait_for()  # coloured, by words that the server has told since


@pytest.mark.long
def test_an_empty_server_runs_an_example(browser: Any, tmp_path: Path) -> None:
    with Engine(spark=False, checkpoint=tmp_path / "ck", keep="1h", keep_results=False) as engine:
        engine.start()
        with served(Settings(tmp_path / "ck", port=0)) as url:
            page = wide(browser)
            page.goto(url)
            page.locator("#example").wait_for()
            page.locator("#told", has_text="nothing to draw").wait_for()
            assert not page.locator("#zoom").is_visible(), "there is nothing to be zoomed"
            page.screenshot(path=tmp_path / "empty.png", full_page=True)
            page.locator("#example").click()
            page.locator("#rows tr", has_text="lab").first.wait_for()
            assert not page.locator("#empty").is_visible()


@pytest.mark.long
def test_a_hundred_queries_are_a_readable_picture(opened: Any, run: Run, tmp_path: Path) -> None:
    for k in range(99):
        run.engine.register(TEXT.replace(":p ?n", f":p{k % 3} ?n . FILTER(?n > {k})"), name=f"q{k}")
    opened.locator("#told", has_text="100 queries").wait_for()
    opened.screenshot(path=tmp_path / "many.png", full_page=True)
    heights = opened.locator("#graph").evaluate("g => [g.viewBox.baseVal.height, g.clientHeight]")
    assert heights[0] < 3000
    opened.locator("#queries button", has_text="q42").click()
    lit = opened.locator(".node.query:not(.dim)")
    assert lit.count() == 1
    lit.click()
    assert "They use" in opened.locator("#node").inner_text()


def test_the_layout_of_random_graphs(opened: Any) -> None:
    script = CASES.read_text().replace("export function check", "function check")
    call = f"async () => {{ {script} return check(await import('/page/layout.js'), 60); }}"
    assert opened.evaluate(call) == 60


def test_the_topology_by_mouse_and_keyboard(opened: Any, run: Run) -> None:
    run.engine.register(GRAPHS, name="made")
    opened.locator(".node.query", has_text="made").wait_for()
    assert "2 queries" in opened.locator("#told").inner_text()
    shared = opened.locator(".node.shared").first
    assert "used by 2 queries" in shared.get_attribute("aria-label")
    opened.locator(".node.query", has_text="made").click()
    assert opened.locator(".node.query.dim").count() == 1
    assert opened.locator(".node.query.dim .name").text_content() == "hot"
    assert "It uses" in opened.locator("#node").inner_text()
    opened.keyboard.press("Escape")
    assert opened.locator(".node.dim").count() == 0
    opened.locator(".node[tabindex='0']").focus()
    assert opened.locator(".node[tabindex='0']").count() == 1
    focused = "document.activeElement.getAttribute('aria-label')"
    opened.keyboard.press("ArrowLeft")
    while not opened.evaluate(focused).startswith("stream s"):
        opened.keyboard.press("ArrowLeft")
    opened.keyboard.press("ArrowRight")
    assert opened.evaluate(focused).startswith("operator Match")
    opened.keyboard.press("Enter")
    assert "http://e/p" in opened.locator("#node").inner_text()
    opened.locator("#shared summary").click()
    opened.locator("#as-text", has_text="2 queries").wait_for()


def test_streams_outputs_and_letters(opened: Any, run: Run) -> None:
    write_deliveries(run.root, [Delivered("hot", "kafka://b/hot", 0, 0, 0, 0, "b is away.", True)])
    (run.folder / "s" / "80000.nt").write_text('none\n<http://e/a> <http://e/p> "1" 9000 .\n')
    opened.locator("#outputs tr.away", has_text="b is away. The intake waits").wait_for()
    opened.locator("#letters tr", has_text="80000.nt, 0").wait_for()
    opened.locator("#plot .line").first.wait_for(state="attached")
    opened.locator("input[name=measure]").first.focus()
    opened.keyboard.press("ArrowRight")
    assert opened.locator("input[value=complete]").is_checked()
    opened.locator("#keys li", has_text="s 00:00:0").wait_for()
    for scheme in ("light", "dark"):
        opened.emulate_media(color_scheme=scheme)
        for width in (400, 1280):
            opened.set_viewport_size({"width": width, "height": 900})
            assert opened.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.long
def test_a_stream_whose_source_is_away(run: Run, browser: Any, tmp_path: Path) -> None:
    """Its source is another server, which goes and comes again."""
    run.engine.register(GRAPHS, name="made")
    with socket.create_server(("127.0.0.1", 0)) as free:
        far = Settings(run.root, port=free.getsockname()[1])
    here = f"http://127.0.0.1:{far.port}/queries/made"
    with ExitStack() as held:
        gone = held.enter_context(ExitStack())
        gone.enter_context(served(far))
        until(lambda: answers(here))
        engine = held.enter_context(Engine(spark=False, checkpoint=tmp_path / "near"))
        engine.stream("far", f"sse+{here}/results?format=nt&after=0", format="nt", element="line")
        engine.register(TEXT.replace(":s [", "<far> [").replace(":p ?n", ":q ?n"), name="hot")
        engine.start()
        page = wide(browser, 400)
        page.goto(held.enter_context(served(Settings(tmp_path / "near", port=0))))
        run.feed(12)  # the query ``made`` has not seen what was before it
        page.locator("#streams tr", has_text=re.compile("far.*00:00:1")).wait_for()
        page.locator("#away:empty").wait_for(state="attached")
        gone.close()
        waits = f"The stream far waits for 127.0.0.1:{far.port}: "
        page.locator("#away", has_text=waits).wait_for()
        assert " Since 20" in page.locator("#away").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.screenshot(path=tmp_path / "away.png", full_page=True)
        held.enter_context(served(far))
        page.locator("#away:empty").wait_for(state="attached")


NASTY = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "left \u202e thgir",
    "y" * (1 << 20),
)


def test_what_comes_from_data_is_text(opened: Any, run: Run) -> None:
    text = TEXT.replace(":p ?n", "?p ?n").replace("?a ?n FROM", "?a ?p ?n FROM")
    run.engine.register(text, name="all")
    opened.locator("#queries button", has_text="all").click()
    opened.locator("#live.on").wait_for()
    lines = [f'<http://e/a> <javascript:alert(1)> "{nasty}" 9000 .' for nasty in NASTY]
    lines += [f"{nasty} is no triple" for nasty in reversed(NASTY)]  # the longest first
    lines += ['<http://e/a> <http://e/p> "z" 20000 .', ""]
    (run.folder / "s" / "90000.nt").write_text("\n".join(lines))
    for nasty in (*NASTY[:2], "left [U+202E] thgir", "<javascript:alert(1)>", "1048576 characters"):
        opened.locator("#rows td", has_text=nasty).first.wait_for()
    opened.locator("#letters tr", has_text="90000.nt").nth(2).wait_for()
    opened.locator("#letters tr", has_text="What else is in").wait_for()
    assert opened.locator("main img, main script, main a, main iframe").count() == 0
    longest = "Math.max(...[...document.querySelectorAll('td')].map((d) => d.textContent.length))"
    assert opened.evaluate(longest) < 2100
    assert "\u202e" not in opened.locator("body").inner_text()


@pytest.mark.long
def test_the_policy_holds(opened: Any) -> None:
    ran = """() => {
        const script = document.createElement("script"), div = document.createElement("div");
        script.textContent = "window.ran = 1";
        div.innerHTML = "<img src=x onerror='window.ran = 2'>";
        document.body.append(script, div);
        return new Promise((done) => setTimeout(() => done(window.ran), 300));
    }"""
    assert opened.evaluate(ran) is None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        asked = f"fetch('{url}').then(() => 'it came', () => 'refused')"
        assert opened.evaluate(asked) == "refused"
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.long
def test_a_server_that_is_killed_costs_no_row(run: Run, browser: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"

    def start() -> subprocess.Popen[bytes]:
        words = ["serve", "--read-only", str(run.root), "--listen", listen]
        made = subprocess.Popen([str(Path(sys.executable).with_name("levada")), *words])
        until(lambda: answers(f"http://{listen}/health"))
        return made

    server = start()
    page = browser.new_page()
    page.goto(f"http://{listen}")
    page.locator("#queries button", has_text="hot").click()
    page.locator("#live.on").wait_for()
    server.send_signal(signal.SIGKILL)
    server.wait()
    run.feed(8)
    page.locator("#engine.off", has_text="does not answer").wait_for()
    server = start()
    run.feed(8)
    page.locator("#rows tr", has_text="00:00:12Z").first.wait_for()
    server.terminate()
    server.wait()
    cells = page.locator("#rows tr").evaluate_all("rows => rows.map((r) => r.innerText)")
    expected = [f"{n}" for t in range(4, 13) for n in sorted(map(str, range(2 * t - 4, 2 * t)))]
    assert [cell.split("\t")[-1].strip() for cell in reversed(cells)] == expected
    assert len(set(cells)) == len(cells)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False
