"""One broker for all tests here; a test that stops or secures one has its own."""

from collections.abc import Iterator

import pytest

from support.mqtt_broker import Broker


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/connectors/mqtt" in str(item.path):
            item.add_marker(pytest.mark.mqtt)
            item.add_marker(pytest.mark.xdist_group("mqtt"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("mqtt"))
    yield made
    made.stop()
