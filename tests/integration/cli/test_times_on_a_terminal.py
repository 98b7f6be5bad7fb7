"""Times of results: ISO where people read them, milliseconds in pipes, or as ``--times`` says."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.polling import PATIENCE

QUERY = "Rstream(Select k From S [Now])"
RUN = [
    "run",
    "q.cql",
    "--stream",
    "S=s.csv,schema=k:integer",
    "--once",
    "--no-progress",
    "--format",
    "csv",
]
ISO, MS = "1970-01-01T00:00:01.500Z,7", "1500,7"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.cql").write_text(QUERY)
    (tmp_path / "s.csv").write_text("ts,k\n1500,7\n")
    return tmp_path


def on_a_terminal(folder: Path, *words: str) -> list[str]:
    """The lines that a command writes to a terminal."""
    here, there = pty.openpty()
    command = [sys.executable, "-m", "levada", *words]
    with subprocess.Popen(command, cwd=folder, stdout=there, stderr=subprocess.DEVNULL) as process:
        os.close(there)
        said = b""
        while True:
            try:
                block = os.read(here, 4096)
            except OSError:  # the other side is closed
                break
            said += block
        assert process.wait(PATIENCE) == 0
    os.close(here)
    return said.decode().split()


def test_people_see_instants_and_pipes_milliseconds(folder: Path) -> None:
    assert on_a_terminal(folder, *RUN) == ["report,k", ISO]
    assert on_a_terminal(folder, *RUN, "--times", "ms") == ["report,k", MS]
    piped = subprocess.run(
        [sys.executable, "-m", "levada", *RUN], cwd=folder, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert piped.stdout.split() == ["report,k", MS]


def test_tail_shows_instants_to_people(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "levada", *RUN, "--close", "--checkpoint", "state", "--keep", "1MB"],
        cwd=folder, capture_output=True, check=True,
    )  # fmt: skip
    tail = ["tail", "state", "q", "--from-start", "--format", "csv"]
    assert on_a_terminal(folder, *tail) == ["report,k", ISO]
    assert on_a_terminal(folder, *tail, "--times", "ms") == ["report,k", MS]
