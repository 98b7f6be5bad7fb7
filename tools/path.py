"""Prints the path of one epoch through the source: ``python -m tools.path``.

Runs the example of the README in this process, from its query text to its results, and notes each
file of ``src/levada`` when one of its functions is first called. Prints the files in that order,
then their number and the number of changes from one top-level package to another.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import levada

ROOT = Path(levada.__file__).parent
README = Path(__file__).parents[1] / "README.md"
FUNCTION = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
"""The flags of a function's code; bodies of modules and classes do not have them."""


class Recorder:
    """Notes the files of Levada in order of the first call of a function in each."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._names: dict[str, str | None] = {}

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function for ``sys.setprofile``."""
        code = frame.f_code
        if event != "call" or code.co_flags & FUNCTION != FUNCTION:
            return
        if code.co_filename not in self._names:
            path = Path(code.co_filename)
            name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else None
            self._names[code.co_filename] = name
            if name is not None:
                self.files.append(name)


def package_changes(files: Sequence[str]) -> int:
    """Counts how often a file is in another top-level package than the file before it.

    >>> package_changes(["engine/a.py", "engine/b.py", "plan/c.py", "engine/d.py"])
    2
    """
    packages = [name.split("/")[0] for name in files]
    return sum(a != b for a, b in pairwise(packages))


def block_of(readme: str, name: str) -> str:
    """The text of the code block that the README gives this file name."""
    head = readme.index(f" {name}\n")
    begin = readme.index("\n", head) + 1
    return readme[begin : readme.index("```", begin)]


def trace(folder: Path) -> list[str]:
    """Runs the README's example in a folder and returns the files in order of their first call."""
    readme = README.read_text()
    (folder / "rooms.nt").write_text(block_of(readme, "rooms.nt"))
    recorder = Recorder()
    threading.setprofile(recorder.note)
    sys.setprofile(recorder.note)
    try:
        with levada.Engine(spark=False) as engine:
            engine.stream("rooms", str(folder / "rooms.nt"))
            warm = engine.register(block_of(readme, "warm.rq"), name="warm")
            engine.start(once=True)
            for report in warm.results():
                report.rows.rows()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return recorder.files


def main() -> None:
    """Prints the path and its figures."""
    with tempfile.TemporaryDirectory() as folder:
        files = trace(Path(folder))
    print(*files, sep="\n")
    print(f"{len(files)} files, {package_changes(files)} changes of top-level package")


if __name__ == "__main__":
    main()
