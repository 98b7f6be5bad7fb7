"""Publication beside the next epoch in engines of one process, where it is never worth it, of
epochs of any size: what a test of the overlap needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from levada.runtime.driver import after_commit
from levada.runtime.publication import publication


@contextmanager
def overlapping(*, on: bool = True) -> Iterator[None]:
    """All publications that go to a sink go beside the next epoch, or none does."""
    with (
        patch.object(after_commit, "all_here", lambda executor: not on),
        patch.object(publication, "MIN_ASYNC_BYTES", 1),
    ):
        yield
