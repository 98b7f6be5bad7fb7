"""Runs in which no blob goes by file, not even to a task of its sender's executor: what Spark
carries is then all that is sent, and what a blob costs follows from the distance alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from levada.runtime.spark.blob_transport import HostLocality


@contextmanager
def by_value() -> Iterator[None]:
    """All jobs meanwhile."""
    with patch.object(HostLocality, "hosts", lambda near, stages: None):
        yield
