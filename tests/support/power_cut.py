"""A power cut: of a folder nothing is left but what was synced.

A file has the content that it had when it was last synced (none, if it never was), a folder the
names. So a name that nobody synced is gone, also of a file that was; and a name that was taken away
is there again until the folder is synced. That is the least that POSIX promises; file systems keep
more. The folder itself is durable, and so is what is outside of it.
"""

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest


class Disk:
    """Sees what is synced below ``root``, from its beginning on. ``pins`` is a folder beside it,
    with one more name of each file: so no other file gets its number.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path, pins: Path) -> None:
        self.root, self._pins, self._link = root, pins, os.link
        self._content, self._names = dict[int, bytes](), dict[int, dict[str, int]]()
        pins.mkdir()
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._seen(getattr(os, name)))

    def _seen(self, call: Any) -> Any:
        def sync(descriptor: int) -> None:
            call(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if path.is_relative_to(self.root):
                self._keep(path, os.fstat(descriptor))

        return sync

    def _keep(self, path: Path, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            names = self._names[found.st_ino] = {}
            for entry in os.scandir(path):
                names[entry.name] = entry.inode()
                self._pin(path / entry.name, entry.inode())
        else:
            self._pin(path, found.st_ino)
            self._content[found.st_ino] = path.read_bytes()

    def _pin(self, path: Path, number: int) -> None:
        if not path.is_dir() and not (self._pins / str(number)).exists():
            self._link(path, self._pins / str(number))

    def cut(self, to: Path) -> None:
        """Makes ``to`` what is left of the folder."""
        to.mkdir()
        self._place(self.root.stat().st_ino, to)

    def _place(self, number: int, folder: Path) -> None:
        for name, of in self._names.get(number, {}).items():
            if (self._pins / str(of)).exists():
                (folder / name).write_bytes(self._content.get(of, b""))
            else:
                (folder / name).mkdir()
                self._place(of, folder / name)

    def forget(self) -> None:
        """The pins go."""
        shutil.rmtree(self._pins)
