"""A process that is killed before its k-th change of the disk: some of its writes are done, and none of the later ones."""

import os

CALLS = ("link", "replace", "fsync", "fdatasync", "unlink")


class Killed(BaseException):
    """What the doomed process sees in place of its end."""


class Fate:
    """Counts the calls that change the disk; from the k-th on nothing is done any more."""

    def __init__(self, monkeypatch):
        self.left, self.calls = None, 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self._doomed(getattr(os, name)))

    def _doomed(self, call):
        def step(*args, **kwargs):
            self.calls += 1
            if self.left is not None:
                if self.left <= 0:
                    raise Killed
                self.left -= 1
            return call(*args, **kwargs)

        return step
