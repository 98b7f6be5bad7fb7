"""One server for all tests here."""

from collections.abc import Iterator

import pytest

from support.postgres_server import PASSWORD, Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LEVADA_PG", PASSWORD)
    return "env:LEVADA_PG"


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They run in one worker of pytest-xdist, so that there is one server."""
    for item in items:
        if "tests/connectors/postgres" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("postgres"))
