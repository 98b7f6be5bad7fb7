"""One broker for all tests here; a test that stops or secures one has its own."""

from collections.abc import Iterator

import pytest

from support.kafka_broker import Broker

FOLDER = "tests/connectors/kafka"
_running: list[Broker] = []


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They run in one worker of pytest-xdist: the machine has one broker at a time."""
    for item in items:
        if FOLDER in str(item.path):
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker without topics, which modules share: a JVM takes ten seconds of CPU to start."""
    if not _running:
        _running.append(Broker(tmp_path_factory.mktemp("kafka")))
    yield _running[0]
    _running[0].delete_topics()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stops the broker behind the last test here: tests that measure CPU would see it."""
    try:
        yield
    finally:
        if _running and (nextitem is None or FOLDER not in str(nextitem.path)):
            _running.pop().stop()
