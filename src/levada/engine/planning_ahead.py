"""Plans the queries that requests add on a thread of its own, while epochs go on with the plan
before.

    begin   -> the thread registers the texts in a copy of the registry and makes the next plan
    take    -> the plan, once it is made: the loop adopts it between two epochs

Elements that arrive meanwhile are read without the new queries. So the queries must begin behind
all that their streams have said when the plan is adopted. If they do not, they are planned again
with a margin, and the third time no epoch runs until the plan is made.

A thread that takes more seconds of CPU than it may is interrupted, and its request is refused.
While it works, threads hand over Python's lock each 0.1 ms, so an epoch is delayed by little.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from levada.engine.registry import Registry
from levada.plan.sealed.plan import Plan
from levada.runtime.driver.catalog import Registered
from levada.runtime.store.requests import Answer, Request

MAX_CPU_SECONDS = 20.0
SMALL_TEXTS = 4096
"""Characters of the texts of a request that is planned together with others."""
_SWITCH = 1e-4  # s
_WAIT = 0.05  # s between two looks at the thread's CPU time
MAX_ATTEMPTS = 3
MARGIN_MS = 100


class OutOfTimeError(BaseException):
    """Interrupts planning. No handler of ``Exception`` catches it."""


@dataclass
class Trial:
    """Requests that are planned together, in a copy of the registry after so many ``edits``.

    ``added`` has the queries, ``refused`` the answers by the ids of requests. ``margin``: ms of
    event time by which the queries begin later. ``static``: the version of the static files.
    """

    requests: Sequence[Request]
    registry: Registry
    edits: int
    attempt: int = 1
    margin: int = 0
    static: int = 0
    added: dict[str, list[Registered]] = field(default_factory=dict)
    refused: dict[str, Answer] = field(default_factory=dict)
    is_planned: bool = False
    plan: Plan | None = None
    failure: BaseException | None = None

    @property
    def names(self) -> list[str]:
        """The names of the queries that are added."""
        return [query.name for queries in self.added.values() for query in queries]

    @property
    def replaced(self) -> list[str]:
        """The names of the queries whose place others take."""
        return [r.drop for r in self.requests if r.drop and r.id in self.added]

    def again(self, lag: int) -> Trial:
        """The next attempt, after one whose queries began ``lag`` ms too early."""
        margin = 0 if self.attempt + 1 == MAX_ATTEMPTS else 2 * lag + MARGIN_MS
        return replace(self, attempt=self.attempt + 1, margin=margin, plan=None)

    @property
    def is_last_attempt(self) -> bool:
        """Whether epochs wait for the plan."""
        return self.attempt >= MAX_ATTEMPTS


class PlanningAhead:
    """One trial at a time, on a thread; ``wake`` is called when it is over."""

    def __init__(self, wake: Callable[[], None], cpu_seconds: float = MAX_CPU_SECONDS) -> None:
        self._wake, self._cpu_seconds = wake, cpu_seconds
        self._thread: threading.Thread | None = None
        self._trial: Trial | None = None
        self._interval = sys.getswitchinterval()
        self._clock: int | None = None  # of the thread's CPU time

    def begin(self, trial: Trial, plan: Callable[[Trial], None]) -> None:
        """Plans a trial; ``plan`` makes the plan, or notes why the requests are refused."""
        self.wait()
        self._trial, self._clock = trial, None
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        self._thread = threading.Thread(
            target=self._work, args=(trial, plan), name="levada planning", daemon=True
        )
        self._thread.start()

    def _work(self, trial: Trial, plan: Callable[[Trial], None]) -> None:
        try:
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
            plan(trial)
        except BaseException as error:
            trial.failure = error
        finally:
            self._wake()

    @property
    def is_busy(self) -> bool:
        """Whether a trial is being planned."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return False
        self._interrupt(thread)
        return True

    @property
    def has_trial(self) -> bool:
        """Whether a trial is planned, or over and not taken."""
        return self._trial is not None

    def wait(self) -> None:
        """Waits until the thread is over; the thread itself does not."""
        thread = self._thread
        if thread is threading.current_thread():
            return
        while thread is not None and thread.is_alive():
            thread.join(_WAIT)
            self._interrupt(thread)

    def take(self) -> Trial | None:
        """The trial that is over, once."""
        trial, self._trial = self._trial, None
        if trial is not None:
            self.wait()
            sys.setswitchinterval(self._interval)
            self._thread = None
        return trial

    def _interrupt(self, thread: threading.Thread) -> None:
        """Interrupts the thread, once, if it takes more CPU time than it may."""
        if self._clock is None or thread.ident is None:
            return
        with suppress(OSError):  # the thread is over
            if time.clock_gettime(self._clock) > self._cpu_seconds:
                self._clock = None
                error = ctypes.py_object(OutOfTimeError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), error)


def choose(requests: Sequence[Request], *, large: bool) -> list[Request]:
    """The requests that are planned together: all small ones, or the first ``large`` one alone.

    >>> from levada.runtime.store.requests import Asking
    >>> def request(id, text):
    ...     return Request(id, add=[Asking("q", text)])
    >>> waiting = [request("1", "a" * 5000), request("2", "b"), request("3", "c")]
    >>> [r.id for r in choose(waiting, large=False)], [r.id for r in choose(waiting, large=True)]
    (['2', '3'], ['1'])
    """
    sizes = {r.id: sum(len(q.text) for q in r.add) for r in requests}
    small = [r for r in requests if sizes[r.id] <= SMALL_TEXTS and not r.drop]
    others = [r for r in requests if r not in small]
    return others[:1] if others and (large or not small) else small
