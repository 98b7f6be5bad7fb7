"""The models are compiled in each process that asks them, for half a minute: one does for all."""

import pytest


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "placement/replicas" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("replicas"))
