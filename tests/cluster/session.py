"""One Spark session for all tests of this folder; tests that need a fresh JVM run a script in a
process of its own.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from levada.runtime.spark.spark_session import start_session, stop_session

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_session("local[2]", scratch=tmp_path_factory.mktemp("spark"))
    session.sparkContext.addPyFile(str(HERE / "spark_jobs.py"))
    yield session
    stop_session(session)


@pytest.fixture
def run_script(tmp_path: Path) -> Any:
    """Start Python on a script's text, in a process group of its own, in a fresh folder."""

    def start(text: Any, *arguments: Any, **variables: Any) -> Any:
        return subprocess.Popen(
            [sys.executable, "-c", text, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    return start
