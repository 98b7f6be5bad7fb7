"""One broker for all tests here; a test that stops or secures one has its own."""

from collections.abc import Iterator

import pytest

from support.kafka_broker import Broker


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They run in one worker of pytest-xdist: the machine has one broker at a time."""
    for item in items:
        if "tests/connectors/kafka" in str(item.path):
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="module")  # it is never idle, which tests that measure CPU would see
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("kafka"))
    yield made
    made.stop()
