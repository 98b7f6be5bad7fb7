"""The path of the README's example through the source (``python -m tools.path``) gets no longer."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.path import package_changes

ROOT = Path(__file__).parents[2]
MAX_FILES = 319
MAX_CHANGES = 153
"""Before the move to thirteen packages there were 371 files and 163 changes. Threads vary the order
of a few files. The thread that measures the unread input adds two.
"""


@pytest.mark.long
def test_the_example_of_the_readme_passes_few_files_and_packages() -> None:
    command = [sys.executable, "-m", "tools.path"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *files, last = done.stdout.splitlines()
    assert "runtime/epoch_pipeline.py" in files
    figures = re.fullmatch(r"(\d+) files, (\d+) changes of top-level package", last)
    assert figures is not None, last
    assert int(figures[1]) == len(files) <= MAX_FILES
    assert int(figures[2]) == package_changes(files) <= MAX_CHANGES
