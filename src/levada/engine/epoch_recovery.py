"""Recovers epochs that failed: after a crash, lost tasks, or a commit that did not happen.

- At a start, the publication of the last committed epoch is completed first
  (``intentions/publishing-EPOCH``). Then the open intention runs. If its epoch is committed, the
  driver only publishes it. A commit that failed left no trace, so the epoch is evaluated again.
- If the last process crashed without a word, the intention is examined for the input or query that
  crashed it, before it runs (docs/decisions/0016-what-kills-is-set-aside.md). A file ``notice``
  tells that the epoch failed with an error instead.
- An epoch that loses tasks runs again after a pause, at most three times.
- Any other error ends the loop, in a sentence for users. The intention stays open.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from levada.checkpoint.leadership.rollback import rollback_hint
from levada.checkpoint.manifest import PUBLISHING
from levada.core.checkpoint_files import file_mode
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import replace_file, unwritable_error
from levada.engine.engine_driver import Driver
from levada.errors import CheckpointError, DamagedError, LostTaskError, OvertakenError
from levada.runtime.publication.publication import PendingPublication

PAUSES = (1.0, 4.0, 16.0)  # s before each further attempt at an epoch that has lost tasks
EXAMINED = 2  # attempts after which the crashed tasks are examined
FOR_MEMORY = (
    "If the system has killed them for want of memory (its log says so), --memory 512MB bounds "
    "what a task takes."
)
"""The hint if all attempts have lost tasks."""


class IntentionFiles:
    """The files of a checkpoint's folder ``intentions``: the intention that runs (``open``), the
    last that ran to its end (``done``), and a file that exists if the open one failed with an error
    (``notice``).
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder.parent
        self.open, self.done, self.notice = folder / "open", folder / "done", folder / "notice"


class EpochRecovery:
    """Repeats epochs of a driver that did not come to their end."""

    def __init__(self, files: IntentionFiles, driver: Driver) -> None:
        self._files, self._driver = files, driver

    def note_failure(self) -> None:
        """Notes that the open intention failed with an error, so the next start runs it without an
        examination.
        """
        with suppress(OSError):  # then it is examined in vain
            self._files.notice.touch(file_mode(self._files.notice.parent))

    def open_intention(self) -> str | None:
        """Returns the intention that the last start left open, as it is to run now: "" if its epoch
        is dropped, None if there is none.
        """
        if not self._files.open.exists():
            return None
        intention = read_sealed(self._files.open).decode()
        if self._files.notice.exists():
            self._files.notice.unlink(missing_ok=True)
        else:
            intention = self._without_poison(intention)
        if not intention:
            self._files.open.unlink(missing_ok=True)
        return intention

    def publish_again(self) -> str | None:
        """Completes the last publication. Returns its intention if there was one."""
        last = None
        for path in self._files.open.parent.glob(PUBLISHING):
            try:
                intention = read_sealed(path).decode()
            except CheckpointError:
                if path.exists():
                    raise
                continue  # an overtaken engine has ended meanwhile
            is_last = self._driver.publish_again(intention)
            with suppress(FileNotFoundError):  # so has the engine of this one
                if is_last:
                    last = intention
                    os.replace(path, self._files.done)
                else:
                    path.unlink()
        return last

    def run(self, intention: str) -> bool | PendingPublication:
        """Runs an epoch. If it lost tasks, runs it again after growing pauses: first without the
        input that crashed them. If no input is guilty, an executor is lost, or data that it has
        sent: the epoch runs three more times. Returns False if the epoch is not done.
        """
        for attempt, pause in enumerate((*PAUSES, None), 1):
            try:
                left = self._driver.run_epoch(intention)
                return True if left is None else left
            except LostTaskError as error:
                self._driver.publication_thread.join()
                if attempt <= EXAMINED:
                    examined = self._without_poison(intention)
                    if not examined:
                        return False
                    if examined != intention:
                        intention = examined
                        continue
                self._driver.warn_of_loss(intention, error, pause)
                if pause is None:
                    error.hint = error.hint or FOR_MEMORY
                if pause is None or self._driver.loop.stopping.wait(pause):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _without_poison(self, intention: str) -> str:
        """Returns the intention that replaces one that lost a task or its process, durable before
        it runs; "" drops the epoch (docs/decisions/0016-what-kills-is-set-aside.md).
        """
        examined = self._driver.examine(intention)
        if examined not in ("", intention):
            replace_file(self._files.open, seal(examined.encode()))
        return examined


def explain_failure(error: BaseException, root: Path, driver: Driver) -> BaseException:
    """Returns the failure as an error for users. Damage to the checkpoint has a sentence of its
    own. After a takeover by another engine, that is the reason of any failure.
    """
    if isinstance(error, OvertakenError):
        return error
    if (by := driver.takeover_error()) is not None:
        by.__cause__ = error
        return by
    if isinstance(error, OSError | CheckpointError) and not root.is_dir():
        explained = unwritable_error(root, OSError())
    elif isinstance(error, OSError) and str(error.filename).startswith(f"{root}{os.sep}"):
        explained = unwritable_error(root, error)
    elif isinstance(error, DamagedError) and (hint := rollback_hint(root)):
        explained = DamagedError(error.message, hint=hint)
    else:
        return error
    explained.__cause__ = error
    return explained
