"""An engine and a server for each test that asks for them."""

import pytest

from support.http_server import client, run, serve

__all__ = ["client", "run", "serve"]


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They run in one worker of pytest-xdist: what they fetch is fetched once."""
    for item in items:
        if "tests/conformance/clients" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("clients"))
