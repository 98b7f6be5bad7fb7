"""The planning of added and removed queries on a thread, while epochs continue with the previous
plan.

    begin   -> the thread registers the texts in a copy of the registry and builds the next plan
    take    -> the finished plan: the loop adopts it between two epochs

New queries must begin after all elements that their streams have at the adoption, since epochs read
those without them. Otherwise they are planned again with a margin. At the last attempt no epoch
runs until the plan is ready; a request for which that would take long is refused.

If the loop itself must plan meanwhile (a query is suspended), it preempts the thread, and the
requests are planned again. A thread over its limit of CPU seconds or memory is interrupted and its
request refused. While it works, threads hand over Python's lock each 0.1 ms, which delays an epoch
little.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from levada.checkpoint.request_files import Answer, QuerySpec, Request
from levada.core.thread_interrupt import Interrupt
from levada.engine.driver.loop_control import LoopControl
from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.engine.registry import Registry
from levada.engine.syntax_tree_transfer import SMALL_TEXTS, Tree, decode_tree
from levada.errors import LevadaError, UsageError
from levada.plan.execution.plan import Plan
from levada.runtime.publication.registered_query import Registered

MAX_CPU_SECONDS = 20.0
MAX_BYTES = 1 << 30
"""Memory that a thread may be the first to touch, and may have given back."""
_SWITCH = 1e-4  # s
_switches, _working = threading.Lock(), list[float]()
_CHECK_INTERVAL = 0.05  # s between two looks at the thread's CPU time
MAX_ATTEMPTS = 4
MAX_PARSING = 4
"""Requests whose texts are parsed at once."""
MARGIN_MS = 1000
MAX_PAUSE = 0.25
"""CPU seconds of planning for which epochs wait at the last attempt."""
ALWAYS_LATE = UsageError(
    "The plan of the query was late each time: its streams, or the queries of the engine, change "
    "faster than it is made.",
    hint="Send it again, or write a simpler text.",
)


class OutOfTimeError(BaseException):
    """Interrupts planning. No handler of ``Exception`` catches it."""


class OutOfMemoryError(OutOfTimeError):
    """Interrupts planning that takes too much memory."""


class PreemptedError(OutOfTimeError):
    """Interrupts planning, since the loop itself must plan. The requests are planned again."""


@dataclass
class Trial:
    """A set of requests that are planned together, in a copy of the registry after ``edits``
    changes.

    ``added`` has the queries, ``refused`` the answers by the ids of requests. ``margin``: ms of
    event time by which the queries begin later. ``static``: the version of the static files.
    ``plan_before``: the last plan version that an epoch has had. ``seconds``: CPU time of an
    attempt. ``in_catalog``: the catalog may have the queries.
    """

    requests: Sequence[Request]
    registry: Registry
    edits: int
    attempt: int = 1
    margin: int = 0
    static: int = 0
    plan_before: int = 0
    added: dict[str, list[Registered]] = field(default_factory=dict)
    refused: dict[str, Answer] = field(default_factory=dict)
    is_planned: bool = False
    in_catalog: bool = False
    seconds: float = 0.0
    plan: Plan | None = None
    failure: BaseException | None = None

    @property
    def names(self) -> list[str]:
        """Returns the names of the added queries."""
        return [query.name for queries in self.added.values() for query in queries]

    @property
    def dropped(self) -> list[str]:
        """Returns the names of the removed queries, also of those that others replace."""
        return [r.drop for r in self.requests if r.drop and r.id in self.added]

    def again(self, lag: int) -> Trial:
        """Returns the next attempt, after an attempt whose queries began ``lag`` ms too early."""
        margin = self.margin + (4 * lag + MARGIN_MS if lag else 0)
        margin = 0 if self.attempt + 1 >= MAX_ATTEMPTS else margin
        return replace(self, attempt=self.attempt + 1, margin=margin, plan=None)

    @property
    def is_last_attempt(self) -> bool:
        """Returns whether epochs wait for the plan."""
        return self.attempt >= MAX_ATTEMPTS

    @property
    def is_too_late(self) -> bool:
        """Returns whether epochs would have to wait too long for the plan."""
        return self.is_last_attempt and self.seconds > MAX_PAUSE


class Work:
    """A thread that is interrupted when it takes too much CPU time or memory. It wakes
    ``loop`` at its end. ``failure``: the exception that it raised.
    """

    def __init__(self, work: Callable[[], None], loop: LoopControl, name: str) -> None:
        self._work, self._loop = work, loop
        self.failure: BaseException | None = PreemptedError()
        self.seconds = 0.0  # of CPU, at the end
        self._interrupt: Interrupt | None = None  # once the thread has begun
        self._thread = threading.Thread(target=self._run, name=f"levada {name}", daemon=True)
        self._thread.start()
        threading.Thread(target=self.wait, name=f"levada {name} limits", daemon=True).start()

    def _run(self) -> None:
        with _frequent_switches():
            interrupt = Interrupt(OutOfTimeError)
            try:  # not ``suppress``: an interrupt may arrive as that is left
                try:
                    self._interrupt = interrupt
                    self._work()
                    self.failure = None
                except BaseException as error:
                    self.failure = error
            except OutOfTimeError:  # while another error is noted
                pass
            with suppress(OutOfTimeError):
                interrupt.end()
            self.seconds = time.thread_time()
        self._loop.wake()

    @property
    def is_over(self) -> bool:
        """Returns whether the thread has ended. The call interrupts a thread over a limit."""
        if not self._thread.is_alive():
            return True
        with suppress(OSError):  # it ends just now
            if self._interrupt is not None and self._interrupt.cpu_seconds() > MAX_CPU_SECONDS:
                self._interrupt.interrupt(OutOfTimeError)
        if self._interrupt is not None and self._interrupt.touched_bytes() > MAX_BYTES:
            self._interrupt.interrupt(OutOfMemoryError)
        return False

    def preempt(self) -> None:
        """Ends the thread early, and waits until it has ended; the thread itself does not."""
        if self._thread is not threading.current_thread():
            while self._interrupt is None and self._thread.is_alive():  # it begins just now
                time.sleep(0)
            if self._interrupt is not None:
                self._interrupt.interrupt(PreemptedError)
            self.wait()

    def wait(self) -> None:
        """Waits until the thread has ended; the thread itself does not."""
        if self._thread is not threading.current_thread():
            while not self.is_over:
                self._thread.join(_CHECK_INTERVAL)


class PlanningAhead:
    """The threads that plan one trial at a time and parse texts for the next trials. They wake
    ``loop`` at their ends.
    """

    def __init__(self, loop: LoopControl) -> None:
        self._loop = loop
        self._work: Work | None = None
        self._trial: Trial | None = None
        self._parsing: dict[str, Parsing] = {}  # by the ids of requests
        self._large_first = False
        self.preempted = 0  # trials in a row

    def begin(self, trial: Trial, plan: Callable[[Trial], None]) -> None:
        """Plans a trial. ``plan`` builds the plan, or records the reason of a refusal."""
        self.wait()
        for request in trial.requests:
            if (parsing := self._parsing.pop(request.id, None)) is not None:
                trial.registry.trees |= parsing.trees
        self._trial, self._work = trial, Work(partial(plan, trial), self._loop, "planning")

    @property
    def is_busy(self) -> bool:
        """Returns whether a trial is being planned."""
        return self._work is not None and not self._work.is_over

    @property
    def has_trial(self) -> bool:
        """Returns whether a trial is being planned, or is over and not yet taken."""
        return self._trial is not None

    def wait(self) -> None:
        """Waits until the trial is over."""
        work = self._work  # users' threads wait, too
        if work is not None:
            work.wait()

    def preempt(self) -> None:
        """Ends the running trial early; it fails with ``PreemptedError``."""
        work = self._work  # users' threads preempt, too
        if work is not None:
            work.preempt()

    def take(self) -> Trial | None:
        """Returns the finished trial, once."""
        trial, self._trial = self._trial, None
        if trial is not None and self._work is not None:
            self._work.wait()
            trial.seconds = max(trial.seconds, self._work.seconds)
            trial.failure, self._work = self._work.failure, None
            is_preempted = isinstance(trial.failure, PreemptedError)
            self.preempted = self.preempted + 1 if is_preempted else 0
        return trial

    def choose(self, requests: Sequence[Request]) -> list[Request]:
        """Chooses the requests of the next trial: all those with short texts, or one with long
        texts, in turn. Long texts are parsed first, on separate threads.
        """
        there = {request.id for request in requests}
        self._parsing = {name: work for name, work in self._parsing.items() if name in there}
        for request in requests:
            is_new = size_of(request) > SMALL_TEXTS and request.id not in self._parsing
            if is_new and len(self._parsing) < MAX_PARSING:
                self._parsing[request.id] = Parsing(request, self._loop)
        self._large_first = not self._large_first
        return choose([r for r in requests if self._is_parsed(r)], large=self._large_first)

    def _is_parsed(self, request: Request) -> bool:
        if size_of(request) <= SMALL_TEXTS:
            return True
        parsing = self._parsing.get(request.id)
        return parsing is not None and parsing.work.is_over


class Parsing:
    """The parsing of a request's texts into ``trees``. A text that cannot be parsed gets no
    tree.
    """

    def __init__(self, request: Request, loop: LoopControl) -> None:
        self.trees: dict[tuple[str, str | None], Tree] = {}
        self._request = request
        self.work = Work(self._parse, loop, "parsing")

    def _parse(self) -> None:
        for query in self._request.add:
            with suppress(LevadaError):
                self.trees[query.text, query.dialect] = _tree_of(query)


def _tree_of(query: QuerySpec) -> Tree:
    """Returns the tree of a text: the transferred tree, else the parsed one."""
    with suppress(ValueError):
        if query.tree:
            return decode_tree(query.tree)
    return prepare(QueryRequest(query.text, query.name, query.dialect), NameScope()).ast


@contextmanager
def _frequent_switches() -> Iterator[None]:
    """Makes threads hand over Python's lock often."""
    with _switches:
        _working.append(sys.getswitchinterval())
        sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        with _switches:
            interval = _working.pop()
            if not _working:
                sys.setswitchinterval(interval)


def size_of(request: Request) -> int:
    """Counts the characters of the texts that a request adds."""
    return sum(len(query.text) for query in request.add)


def choose(requests: Sequence[Request], *, large: bool) -> list[Request]:
    """Returns the requests to plan together: all small ones, or the first ``large`` one alone.

    >>> from levada.checkpoint.request_files import QuerySpec
    >>> def request(id, text):
    ...     return Request(id, add=[QuerySpec("q", text)])
    >>> waiting = [request("1", "a" * 5000), request("2", "b"), request("3", "c")]
    >>> [r.id for r in choose(waiting, large=False)], [r.id for r in choose(waiting, large=True)]
    (['2', '3'], ['1'])
    """
    small = [r for r in requests if size_of(r) <= SMALL_TEXTS and not (r.add and r.drop)]
    others = [r for r in requests if r not in small]
    return others[:1] if others and (large or not small) else small
