"""An engine and a server as those of ``tests/unit/server``, and Chromium: where it is asked for."""

import os

import pytest

from serving import client, run, serve

__all__ = ["client", "run", "serve"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They run by ``make browser`` alone."""
    if not os.environ.get("LEVADA_BROWSER"):
        for item in items:
            if "tests/browser" in str(item.path):
                item.add_marker(pytest.mark.skip(reason="make browser asks for a browser"))
