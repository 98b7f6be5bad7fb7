"""The epoch loop: decide, write ahead, run, one epoch at a time (docs/architecture.md#an-epoch).

The loop writes an intention durably into ``intentions/open`` and runs it. Then the file becomes
``intentions/done``, with which ``checkpoint.leadership.rollback`` can repeat the epoch. An
intention that is open at the start runs first. An intention promises nothing: each leader may run
it, or another one in its place. So an overtaken engine does no harm when it writes or removes one
(docs/decisions/0038-takeover-is-a-commit.md). The loop is not a Structured Streaming query, which
would cost 50 CPU-ms an epoch (docs/decisions/0006).
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from levada.checkpoint.leadership.rollback import rollback_hint
from levada.checkpoint.manifest import PUBLISHING
from levada.core.checkpoint_files import file_mode
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import make_folder, replace_file, unwritable_error, write_once
from levada.engine.engine_driver import Driver
from levada.errors import CheckpointError, DamagedError, LostTaskError, OvertakenError
from levada.runtime.publication.publication import PendingPublication

FIRST_WAIT = 0.002  # s after an epoch; each call without an epoch doubles it, up to ``ask_every``


def start_epochs(driver: Driver, held: ExitStack) -> None:
    """Starts the epochs of a driver, which end when ``held`` is closed."""
    loop = EpochLoop(driver.epochs.checkpoint.root / "intentions", driver)
    driver.start(held)
    loop.start()
    driver.watch(held)


class EpochLoop:
    """A thread that runs the epochs of a driver one after the other until it is stopped, or one
    fails (``LoopControl``).

    ``Driver.run_epoch`` may return a ``PendingPublication``, which continues beside the next epoch,
    until that commits, or until the loop ends. ``ask_every``: the longest pause without an epoch,
    in s.
    """

    def __init__(self, folder: Path, driver: Driver, *, ask_every: float = 0.02) -> None:
        try:
            make_folder(folder, parents=True)
        except OSError as error:
            raise CheckpointError(
                f"The folder {folder} cannot be made: {error.strerror}."
            ) from error
        self._files = IntentionFiles(folder)
        self._driver, self._control, self._beside = driver, driver.loop, driver.publication_thread
        self._recovery = EpochRecovery(self._files, driver)
        self._ask_every = self._wait = ask_every
        self._thread = threading.Thread(target=self._loop, name="levada loop", daemon=True)

    def start(self) -> None:
        """Starts the thread. An epoch that did not end before runs first."""
        self._control.is_started = True
        self._thread.start()

    def _loop(self) -> None:
        self._control.clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            try:
                self._epochs()
            finally:
                self._beside.join()
        except BaseException as error:
            self._control.failure = explain_failure(error, self._files.root, self._driver)
        finally:
            self._control.end()

    def _epochs(self) -> None:
        last = self._replay()
        while not self._control.stopping.is_set():
            intention = self._driver.next_intention(last)
            if intention is None:
                self._pause()
                continue
            self._write(intention)
            if not self._run_whole(intention):
                return
            last = intention
        while not self._files.open.exists():
            if (final := self._driver.last_intention()) is None:
                break
            self._write(final)
            self._run_whole(final)

    def _replay(self) -> str | None:
        """Completes the last publication, then runs the intention that the last start left open.
        Returns the intention of the last epoch.
        """
        last = self._recovery.publish_again()
        intention = self._recovery.open_intention()
        if intention is None:
            return last
        return intention if intention and self._run_whole(intention) else None

    def _run_whole(self, intention: str) -> bool:
        """Runs an intention once it may run. Returns False if the loop stops before: then it stays
        open.
        """
        while not self._driver.may_run(intention):
            if self._control.stopping.is_set():
                return False
            self._pause()
        try:
            done = self._recovery.run(intention)
        except OvertakenError:  # it belongs to the other engine by now
            raise
        except Exception:
            self._recovery.note_failure()
            raise
        if isinstance(done, PendingPublication):
            self._publish(done)
        elif done:
            with suppress(FileNotFoundError):
                os.replace(self._files.open, self._files.done)
        else:
            self._files.open.unlink(missing_ok=True)
        self._wait = min(FIRST_WAIT, self._ask_every)
        return True

    def _publish(self, rest: PendingPublication) -> None:
        """Continues a publication beside the next epoch. Its intention is
        ``intentions/publishing-EPOCH`` until then; the next start publishes such an epoch first.
        """
        sign = self._files.open.with_name(PUBLISHING.replace("*", str(rest.epoch)))
        try:
            os.replace(self._files.open, sign)
        except FileNotFoundError:  # an overtaken engine has removed it
            rest.work()
        else:
            self._beside.begin(partial(self._to_its_end, rest, sign))

    def _to_its_end(self, rest: PendingPublication, sign: Path) -> None:
        rest.work()
        # of this epoch: another engine may have taken over by now
        with suppress(FileNotFoundError):
            os.replace(sign, self._files.done)

    def _pause(self) -> None:
        """Pauses briefly after an epoch, then longer and longer. So new input is read soon, and
        waiting for a silent stream costs little.
        """
        self._beside.look()
        left = self._control.due - time.monotonic()
        self._control.woken.wait(min(self._wait, left) if left > 0 else self._wait)
        self._control.woken.clear()
        self._wait = min(2 * self._wait, self._ask_every)

    def _write(self, intention: str) -> None:
        data = seal(intention.encode())
        if write_once(self._files.open, data):
            return
        if (by := self._driver.takeover_error()) is not None:
            raise by
        replace_file(self._files.open, data)  # an overtaken engine has written one ahead


# Recovers epochs that failed: after a crash, lost tasks, or a commit that did not happen.
#
# - At a start, the publication of the last committed epoch is completed first
#   (``intentions/publishing-EPOCH``). Then the open intention runs. If its epoch is committed, the
#   driver only publishes it. A commit that failed left no trace, so the epoch is evaluated again.
# - If the last process crashed without a word, the intention is examined for the input or query
#   that crashed it, before it runs (docs/decisions/0016-what-kills-is-set-aside.md). A file
#   ``notice`` tells that the epoch failed with an error instead.
# - An epoch that loses tasks runs again after a pause, at most three times.
# - Any other error ends the loop, in a sentence for users. The intention stays open.


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
