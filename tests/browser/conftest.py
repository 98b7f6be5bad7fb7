"""An engine and a server as those of ``tests/unit/server``; one Chromium for all tests here."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support.http_server import client, run, serve

__all__ = ["client", "run", "serve"]
FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-sync"


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They run in one worker of pytest-xdist: there is one browser."""
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="The page is NOT tested: no playwright")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("The page is NOT tested: there is no Chromium (Debian: chromium).")
    with api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=FLAGS.split())
        yield made
        made.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """One that has nothing of the tests before."""
    made = chromium.new_context()
    yield made
    made.close()
