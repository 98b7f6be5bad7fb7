"""The outputs of an engine: which results the index keeps for them, when the intake waits for one,
and when they are complete.

Each output has a thread (``delivery_thread``). Their progress is written to the checkpoint at most
every ``WRITE_INTERVAL`` seconds, since the target also stores its position.

An output belongs to one query, not to other queries of the same name. Outputs that are added during
the run begin between two epochs, on the loop's thread (``follow``), before the plan with their
query. So they get all reports of that query, and no others (docs/decisions/0054).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from levada.checkpoint.checkpoint_folder import Checkpoint, plan_of
from levada.checkpoint.delivery_progress import Delivered, read_deliveries, write_deliveries
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.query_totals import read_by_last_manifest, total_of
from levada.checkpoint.request_files import Ledger, OutputSpec, Sent, read_ledger
from levada.checkpoint.result_index import Entry, Index, Keep
from levada.connectors.sinks.sink_url import Destination
from levada.connectors.sinks.transactional_sink import Target
from levada.core.checkpoint_files import facts_of
from levada.core.clock import counting_clock
from levada.core.event_time import MAX
from levada.core.frozen import frozen
from levada.core.query_model import Form, Output
from levada.engine.delivery.delivery_thread import ENDING, Delivery
from levada.engine.registry import Registry
from levada.errors import CheckpointError, EvaluationError, UsageError
from levada.runtime.publication.publication import Publication
from levada.runtime.publication.registered_query import Lifetime, Registered

WRITE_INTERVAL = 1.0  # s
KEEP = "256MB"  # by how much outputs may be behind, without the option keep


@frozen
class Shape:
    """The shape of the results of a query."""

    query: str
    form: Form
    output: Output
    variables: tuple[str, ...]

    @staticmethod
    def from_query(query: Registered) -> Shape:
        """Returns the shape of a registered query."""
        meant = query.query
        return Shape(query.name, meant.form, meant.output, tuple(meant.variables))


@dataclass
class Deliveries:
    """The outputs of an engine, which begin with it. ``lasting``: the checkpoint outlives the run.
    ``needs_kept_results``: outputs wait for ``follow``, or may be added.
    """

    lasting: bool = True
    all: list[Delivery] = field(default_factory=list)
    needs_kept_results: bool = False
    letters: Path | None = None
    _retention: Keep = field(default_factory=partial(Keep.parse, KEEP))
    _came: list[Delivery] = field(default_factory=list)  # while it runs
    _finished: list[Sent] = field(default_factory=list)
    _index: Index | None = None
    _since: int = 0  # the last plan when the index began
    _checkpoint: Checkpoint | None = None
    _before: dict[tuple[str, str], Delivered] = field(default_factory=dict)
    _kept: dict[tuple[str, str], Delivered] = field(default_factory=dict)
    _written: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: bool = False
    _over: bool = False

    def open(self, checkpoint: Checkpoint) -> None:
        """Opens the outputs on this checkpoint, with their recorded progress."""
        if self._checkpoint is not None:
            return
        self._checkpoint = checkpoint
        self._since = 0 if checkpoint.last is None else checkpoint.last.plan
        before = read_deliveries(checkpoint.root)
        quiet = (msgspec.structs.replace(d, reason="", blocks_intake=False) for d in before)
        self._before = {(d.query, d.target): d for d in quiet}

    def add(self, shape: Shape, lifetime: Lifetime, url: str, options: Mapping[str, Any]) -> None:
        """Adds an output of the program. While the engine runs, the output begins between two
        epochs. Raises ``UsageError``.
        """
        target = self.target(shape, url, options)
        there = [*self.all, *self._came]
        if any(_is_same_target(d, shape.query, target) and d.lifetime is lifetime for d in there):
            raise _sent_already(shape.query, target)
        known = self._before.get((shape.query, target.name))
        if target.whole and known is None and not self._is_whole(shape.query, lifetime):
            raise UsageError(
                f"What the relation {shape.query} holds is not known: the engine, or a run before "
                f"on the checkpoint, has had changes of it without {target.name}.",
                hint="Start on an empty checkpoint, or leave as=state out.",
            )
        delivery = self._create_delivery(shape.query, target, known, lifetime)
        if self._running:
            self._came, self.needs_kept_results = [*self._came, delivery], True
        else:
            self.all.append(delivery)

    def check(self, shape: Shape, outputs: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Checks outputs (URLs with options) of a query without opening the checkpoint. Raises
        ``UsageError``.
        """
        names: set[str] = set()
        for url, options in outputs:
            target = self.target(shape, url, options)
            if target.name in names:
                raise _sent_already(shape.query, target)
            names.add(target.name)

    def target(self, shape: Shape, url: str, options: Mapping[str, Any]) -> Target:
        """Returns the target of a URL for results of this shape; it has no owner before the
        checkpoint is open. Raises ``UsageError``.
        """
        if not self.lasting:
            raise UsageError(
                "An output goes on where it was, which a temporary checkpoint does not survive.",
                hint="Say where the checkpoint is: --checkpoint DIR, or Engine(checkpoint=DIR).",
            )
        owner = "" if self._checkpoint is None else self._checkpoint.facts.id
        target = Destination(url, options).target(shape.query, owner)
        target.check(shape.query, shape.form, shape.output, shape.variables)
        return target

    def _is_whole(self, query: str, lifetime: Lifetime) -> bool:
        """Returns whether all results of a query since its beginning are kept."""
        assert self._checkpoint is not None, "it is open"
        plan, last = lifetime.query, self._checkpoint.last
        if self._running and plan is None:
            return True
        if self._index is not None and plan is not None and plan.since > self._since:
            return query not in self._index.gone
        store = self._checkpoint
        if last is not None and plan is None and last.plan:
            plan = store.load_plan(last.plan).queries.get(query)
        if last is None or plan is None:
            return True
        had, _ = read_by_last_manifest(
            lambda: store.last or last, lambda now: total_of(str(store.root), now, plan)
        )
        return not had

    def _create_delivery(
        self, query: str, target: Target, known: Delivered | None, lifetime: Lifetime | None
    ) -> Delivery:
        """Creates an output. It waits for outputs to the same target of earlier queries of the
        name.
        """
        assert self._checkpoint is not None, "it is open"
        before = [d for d in (*self.all, *self._came) if _is_same_target(d, query, target)]
        begins = 0 if known is None else known.after_epoch
        delivery = Delivery(
            query, target, self._checkpoint.root, known, self._note_change, lifetime, begins,
            letters=self.letters,
        )  # fmt: skip
        delivery.after = before[-1] if before else None
        return delivery

    def first_index(self, kept: Keep | None) -> Index | None:
        """Returns the index of results for other processes (``kept``) and outputs. Returns None if
        nothing keeps results yet.
        """
        self._retention = kept or self._retention
        return self._new_index() if kept or self.all else None

    def _new_index(self) -> Index:
        assert self._checkpoint is not None, "it is open"
        root = self._checkpoint.root
        plans = partial(plan_of, root, facts_of(root))
        return Index(root, self._retention, counting_clock(), plans, self.first_needed_epoch)

    def await_some(self) -> None:
        """Makes the index keep results: a new query may get outputs at once, which must miss no
        report.
        """
        self.needs_kept_results = self.needs_kept_results or (
            self._running and self.lasting and self._index is None
        )

    # -- of requests --

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restores the outputs of requests, except those that the program names, too."""
        self.open(checkpoint)
        for sent in read_ledger(checkpoint.root).outputs:
            target = Destination(sent.output.url, sent.output.options).target(
                sent.query, checkpoint.facts.id
            )
            program = (d for d in self.all if d.asked is None)
            if not any(_is_same_target(d, sent.query, target) for d in program):
                self.all.append(self._restore_requested(sent, target))

    def _restore_requested(self, sent: Sent, target: Target) -> Delivery:
        """Restores the output of a request, with the progress in the checkpoint."""
        known = self._before.get((sent.query, target.name))
        known = known if known is not None and known.after_epoch == sent.after_epoch else None
        delivery = self._create_delivery(sent.query, target, known, None)
        delivery.asked, delivery.ends = sent, sent.last_epoch
        delivery.begins = sent.after_epoch
        delivery.reached = max(delivery.reached, sent.after_epoch)
        return delivery

    def ask(self, shape: Shape, sent: Sent) -> None:
        """Adds the output of a request from the next epoch on. Raises ``UsageError``."""
        target = self.target(shape, sent.output.url, sent.output.options)
        self._came, self.needs_kept_results = (
            [*self._came, self._restore_requested(sent, target)],
            True,
        )

    def end(self, sent: Sent) -> None:
        """Ends the output of a request whose query has been dropped."""
        for delivery in self.all:
            asked = delivery.asked
            if (
                asked is not None
                and msgspec.structs.replace(asked, last_epoch=sent.last_epoch) == sent
            ):
                delivery.end(sent.last_epoch)
                self._note_change(True)

    def display_url(self, sent: Sent) -> str:
        """Returns the URL of a request's output without secrets."""
        return Destination(sent.output.url, sent.output.options).target(sent.query, "").name

    def take_finished(self) -> list[Sent]:
        """Returns the finished outputs of requests, once."""
        finished, self._finished = self._finished, []
        return finished

    # -- between epochs --

    def follow(self, publication: Publication, last: Manifest, registry: Registry) -> None:
        """Begins new outputs, and ends those whose query was removed, before an epoch has the
        present queries. Begins to keep results if an output needs them.
        """
        if publication.index is None:
            if not self.needs_kept_results:
                return
            publication.keep_results(self._new_index())
        index = publication.index
        assert index is not None, "results are kept"
        fresh = index is not self._index
        if fresh:
            self._index, self._since = index, last.plan
        came, self._came, self.needs_kept_results = self._came, [], False
        for delivery in came:
            self.all = [*self.all, delivery]
            delivery.begin(_start_epoch(delivery, index, last, fresh=fresh))
        for delivery in self.all:
            lifetime = delivery.lifetime
            gone = lifetime is not None and registry.lifetime_of(delivery.query) is not lifetime
            if gone and delivery.ends == MAX:
                delivery.end(last.epoch)
        if came:
            self._note_change(True)

    def _sweep(self) -> None:
        """Removes the finished outputs."""
        over = [d for d in self.all if d.over]
        if over:
            self.all = [d for d in self.all if not d.over]
            self._finished += [d.asked for d in over if d.asked is not None]
            for delivery in over:
                self._before.pop((delivery.query, delivery.target.name), None)
            self._note_change(True)

    def start(self, index: Index | None) -> None:
        """Starts the outputs with the engine."""
        self._running, self._index = True, index
        for delivery in self.all:
            delivery.letters = self.letters
            delivery.start()

    def stop(self) -> None:
        """Stops all outputs, and records their progress in the checkpoint."""
        for delivery in self.all:
            delivery.stop()
        until = time.monotonic() + ENDING
        for delivery in self.all:
            delivery.join(max(until - time.monotonic(), 0.0))
        with suppress(CheckpointError):  # the checkpoint may be gone
            self._write()
        with self._lock:
            self._over = True

    def wake(self, *_: object) -> None:
        """Wakes the outputs after an epoch was published."""
        for delivery in self.all:
            delivery.wake()

    def first_needed_epoch(self) -> int:
        """Returns the first epoch that an output may need."""
        return min((d.reached + 1 for d in self.all), default=MAX)

    def held_by(self, index: Index | None) -> str:
        """Returns the reason why the intake must wait, or "" if it need not. Raises the failure of
        an output.
        """
        self._sweep()
        for delivery in self.all:
            if delivery.failure is not None:
                raise delivery.failure
        if index is None or not self.all or not index.is_full():
            self._find_slow(MAX)
            return ""
        working = [delivery for delivery in self.all if not delivery.broken]
        if not working:
            return ""
        slow = min(working, key=lambda delivery: delivery.reached)  # its thread may change it
        self._find_slow(slow.reached + 1)
        return _wait_reason(slow)

    def take_failures(self) -> dict[str, EvaluationError]:
        """Returns the queries on whose results Levada has failed since the last call."""
        failures: dict[str, EvaluationError] = {}
        for delivery in self.all:
            if delivery.fault is not None:
                failures[delivery.query], delivery.fault = delivery.fault, None
        return failures

    def _find_slow(self, needed: int) -> None:
        """Records the outputs that need this epoch: the intake waits for them."""
        for delivery in self.all:
            holds = delivery.reached + 1 <= needed < MAX
            if holds != delivery.holds:
                delivery.holds = holds
                self._note_change(True)

    def behind(self, index: Index | None) -> str:
        """Returns a sentence about an output that lacks reports of the index, or "" if all have
        them.
        """
        self._sweep()
        for delivery in self.all:
            delivery.flush()
        entries = () if index is None else index.entries
        working = (delivery for delivery in self.all if not delivery.broken)
        slow = next((d for d in working if not d.has_asked or _has_unsent(d, entries)), None)
        return "" if slow is None else _wait_reason(slow)

    def _note_change(self, at_once: bool) -> None:
        """Writes the progress to the checkpoint, unless it was written just now."""
        if at_once or time.monotonic() - self._written >= WRITE_INTERVAL:
            with suppress(CheckpointError):  # the engine reports it
                self._write()

    def _write(self) -> None:
        with self._lock:
            if self._checkpoint is None or self._over:
                return
            # of two outputs to one target the first is active
            progress = {(d.query, d.target.name): d.progress for d in reversed(self.all)}
            if progress != self._kept:
                write_deliveries(self._checkpoint.root, list((self._before | progress).values()))
                self._kept, self._written = progress, time.monotonic()


def _sent_already(query: str, target: Target) -> UsageError:
    return UsageError(f"The results of {query} go to {target.name} already.")


def _has_unsent(delivery: Delivery, entries: Sequence[Entry]) -> bool:
    """Returns whether there are reports that an output has not received."""
    for entry in reversed(entries):
        if entry.epoch <= delivery.reached:
            return False
        if delivery.has(entry):
            return True
    return False


def _is_same_target(delivery: Delivery, query: str, target: Target) -> bool:
    """Returns whether the delivery is, or was, an output of a query of this name to this target."""
    return delivery.query == query and delivery.target.name == target.name


def _start_epoch(delivery: Delivery, index: Index, last: Manifest, *, fresh: bool) -> int:
    """Returns the epoch after which a new output begins: the one before the query's first kept
    epoch. Without kept epochs it is the current one.
    """
    plan = None if delivery.lifetime is None else delivery.lifetime.query
    if delivery.asked is not None:
        return delivery.asked.after_epoch
    if plan is None or fresh:
        return last.epoch
    return max((e.epoch for e in index.entries if e.plan < plan.since), default=0)


def _wait_reason(slow: Delivery) -> str:
    return slow.why or f"The results of {slow.query} wait for {slow.target.name}."


# The outputs of requests, as recorded in the ledger of a checkpoint.
#
# An output begins and ends with its query, in the same write of the ledger, so no crash separates
# them. It stays in the ledger until it has all reports of its query. The ledger has URL and options
# unchanged, without passwords: ``env:NAME`` or ``file:PATH`` names the place of a password, which
# the engine's process reads.


Kept = tuple[list[Sent], list[tuple[Shape, Sent]], list[Sent]]


class Requested:
    """The outputs of a ledger, and their changes for the running engine."""

    def __init__(self, ledger: Ledger, deliveries: Deliveries) -> None:
        self._ledger, self._deliveries = ledger, deliveries
        self._new: list[tuple[Shape, Sent]] = []
        self._ended: list[Sent] = []

    @property
    def restore_point(self) -> Kept:
        """Returns the state to restore if the request that changes it is refused."""
        return self._ledger.outputs, self._new, self._ended

    @restore_point.setter
    def restore_point(self, before: Kept) -> None:
        self._ledger.outputs, self._new, self._ended = before

    def check(self, query: Registered, to: Sequence[OutputSpec]) -> None:
        """Checks that the query's results can go to the outputs. Raises ``UsageError``."""
        self._deliveries.check(Shape.from_query(query), [(one.url, one.options) for one in to])

    def add(self, query: Registered, to: Sequence[OutputSpec], last: Manifest) -> None:
        """Records the outputs of a query that was added after an epoch."""
        for one in to:
            sent = Sent(query.name, one, last.epoch)
            self._ledger.outputs = [*self._ledger.outputs, sent]
            self._new = [*self._new, (Shape.from_query(query), sent)]

    def end(self, name: str, epoch: int) -> list[str]:
        """Ends the outputs of a query that was dropped after an epoch. Returns their URLs without
        secrets.
        """
        urls, kept = [], []
        for sent in self._ledger.outputs:
            if sent.query == name and sent.last_epoch == MAX:
                ended = msgspec.structs.replace(sent, last_epoch=epoch)
                urls.append(self._deliveries.display_url(sent))
                self._new = [new for new in self._new if new[1] is not sent]
                if sent.after_epoch == epoch:
                    continue  # no epoch has had it
                self._ended = [*self._ended, ended]
                sent = ended
            kept.append(sent)
        self._ledger.outputs = kept
        return urls

    def settle(self) -> bool:
        """Removes finished outputs from the ledger. Returns whether there were any."""
        over = self._deliveries.take_finished()
        left = [s for s in self._ledger.outputs if not any(_is_same(s, one) for one in over)]
        changed = len(left) < len(self._ledger.outputs)
        self._ledger.outputs = left
        return changed

    def follow(self) -> None:
        """Begins and ends outputs after the ledger was written durably."""
        new, ended, self._new, self._ended = self._new, self._ended, [], []
        for shape, sent in new:
            self._deliveries.ask(shape, sent)
        for sent in ended:
            self._deliveries.end(sent)


def _is_same(one: Sent, other: Sent) -> bool:
    return (one.query, one.output, one.after_epoch) == (
        other.query,
        other.output,
        other.after_epoch,
    )
