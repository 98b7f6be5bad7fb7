"""The driver of a started engine: it chooses the epoch loop's next step, and decides when the run
is over.

    next   -> the plan for the current queries, then the next epoch, if one is due
    run    -> that epoch, to its publication
    over   -> all input is read and all results are published

The loop's thread calls these; users' threads change the ``Registry`` and wake it.
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import msgspec

from levada import kernels
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.crash_counter import forget, increment_crash_count, note_loss
from levada.checkpoint.manifest import EpochIntent, Manifest
from levada.checkpoint.request_files import Presence, Request, mark_presence
from levada.connectors.config.stream_config import StreamConfig
from levada.core.cpu_guard import cpu_guard
from levada.core.gc_control import DeferredCollection
from levada.core.query_limits import Limited
from levada.engine.background_planning import (
    ALWAYS_LATE,
    MAX_ATTEMPTS,
    PlanningAhead,
    PreemptedError,
    Trial,
)
from levada.engine.control_requests import Requests
from levada.engine.driver.driver_inputs import Inputs
from levada.engine.driver.epoch_pacing import EpochPacing, clock_ms, wall_clock_ms
from levada.engine.driver.heartbeat_thread import HeartbeatThread
from levada.engine.driver.loop_control import LoopControl
from levada.engine.driver.query_quotas import QueryQuotas
from levada.engine.driver.stream_registry import Streams
from levada.engine.placement.apply_placement import warn_about_unknown_tasks
from levada.engine.query_isolation import Fails, OtherFaultError, UnsteadyError, find_failing_query
from levada.engine.restart_checks import (
    StaticStamps,
    check_streams,
    discard_incompatible_state,
    note_of_ended,
    version_of,
    warn_about_changed_streams,
    warn_about_edited_queries,
)
from levada.engine.status.summary import check_accounts
from levada.engine.suspended_queries import Suspended
from levada.engine.watchdog import End, Watchdog
from levada.errors import (
    AwayError,
    EngineError,
    EvaluationError,
    ExcessError,
    LevadaError,
    LostError,
    LostTaskError,
    ManyReportsError,
    OverMemoryError,
    PromiseError,
    SourceError,
    unreadable,
)
from levada.plan.execution.plan import Plan, queries_of_member
from levada.plan.topology.trial_planning import run_deeper
from levada.runtime.cost_model.memory_admission import ReportBacklog
from levada.runtime.driver.after_commit import Publishing, Tell
from levada.runtime.driver.query_catalog import Catalog
from levada.runtime.driver.source_coordinator import SourceCoordinator
from levada.runtime.epoch_pipeline import EpochRunner
from levada.runtime.executor import Executor
from levada.runtime.publication.publication import (
    PendingPublication,
    Publication,
    PublicationThread,
)
from levada.runtime.publication.registered_query import Registered
from levada.runtime.task.allocator import give_back
from levada.runtime.task.operator_failures import as_failure
from levada.runtime.task.work_note import WorkNote
from levada.runtime.warmup_executor import WarmupExecutor

SPARK, STATIC = "Spark is starting", "static data are being read"
MOST_HERE = 1_000_000  # elements of an epoch that does not wait for Spark: some 2 s in one process
MOST_BYTES_HERE = 256 << 20
TWICE = 2  # deaths of an epoch, not by its input, before its queries are tested separately
MOST_STATIC_HERE = 16 << 20  # bytes
UNCOUNTED = "What queries have over several epochs is counted anew, since Levada has failed on it:"
MAX_IDLE_EPOCHS = 10
IDLE_EPOCHS = (
    f"{MAX_IDLE_EPOCHS} epochs in a row have read nothing although input waits. "
    "This is a fault of Levada; `levada status` shows where the streams stand."
)


class Driver:
    """The epochs of one engine on its checkpoint. ``tell``: called with each manifest after its
    publication. ``executor``: called once nothing prevents a start. ``end``: how the watchdog ends
    the process (None: it warns).
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        inputs: Inputs,
        tempo: EpochPacing,
        publication: Publication,
        *,
        executor: Callable[[], Executor],
        tell: Sequence[Tell] = (),
        end: End | None = None,
    ) -> None:
        self._end = end
        self.loop = LoopControl()
        self.publication_thread = PublicationThread(self.loop.wake)
        self.began = time.monotonic()
        self.publication = publication
        self._registry, self._statics = inputs.registry, inputs.statics
        self._spools, self._deliveries, self._tempo = inputs.spools, inputs.deliveries, tempo
        self.before = checkpoint.last  # the last manifest of earlier runs
        self.streams = Streams(checkpoint, self._registry, self._spools, once=tempo.once)
        self._compare_streams(checkpoint)
        self.streams.restore()
        self._requests = Requests(checkpoint.root, inputs, self.streams)
        self._requests.restore(once=tempo.once)
        mark_presence(checkpoint.root, Presence(os.getpid(), platform.node(), wall_clock_ms()))
        self._last_start, self._awaits, self._held_by = 0.0, "", ""
        self._timed = checkpoint.last.epoch if checkpoint.last else 0  # the last epoch with a time
        self._idle_epochs = self._unsteady = 0  # in a row; failures that did not come again
        self._ahead = PlanningAhead(self.loop)
        self._is_plan_awaited = False  # by requests: an epoch has not had the last plan
        self._collected = DeferredCollection()
        self._full = False  # there may be a backlog
        self._replan_at_stop = False  # a query of the plan has been suspended
        streams = self._registry.streams
        removed = self.streams.ledger.removed_streams
        configs = [streams[n] for n in checkpoint.order_streams(streams, removed)]
        self._spools.start(once=tempo.once)
        once, keep_open = tempo.once, tempo.keep_open
        sourcing = SourceCoordinator(configs, checkpoint.root, once=once, keep_open=keep_open)
        sourcing.reused_names = self.streams.strangers
        self.note = note_of_ended(checkpoint, sourcing, self._registry.queries)
        static, planning = self._statics.replaceable, self._registry.planning
        self._own_catalog = Catalog(checkpoint, configs, static, planning)
        self._stamps = StaticStamps(checkpoint.root, self._statics.files)
        self._requests.restore_static()
        self._limits = Limited(tempo.limits, self._requests.lower_limits(tempo.limits))
        self.suspended = Suspended.load(checkpoint.root, self._limits, self._registry.queries)
        self._totals = QueryQuotas(self._limits)
        self._discard_old_plans(checkpoint, configs)
        chosen = publication.executor = executor()
        self._late = chosen if isinstance(chosen, WarmupExecutor) else None
        self._publishing = Publishing(
            publication, chosen, sourcing, self._spools, tell=tell, promises=bool(tempo.delay)
        )
        self.epochs = self._epochs_of(checkpoint, sourcing, chosen)
        if tempo.learner is not None:
            tempo.learner.epochs = self.epochs
        self._registry.begins = lambda query: self._catalog.begins(query, self.last)
        self._note = WorkNote(checkpoint.root)
        self.heart = HeartbeatThread(checkpoint, self.loop, sourcing, self._spools)

    def _discard_old_plans(self, checkpoint: Checkpoint, configs: Sequence[StreamConfig]) -> None:
        """Discards state and plans that this run's queries cannot use."""
        queries = self.suspended.without(self._registry.queries)
        discard_incompatible_state(checkpoint, configs, queries)
        if self.suspended.queries:
            self._catalog.drop(checkpoint.newest_plan())

    def _compare_streams(self, checkpoint: Checkpoint) -> None:
        """Compares the options of streams with those of the previous run, before anything is
        written.
        """
        declared, strangers = list(self._registry.streams.values()), self.streams.strangers
        if not self._tempo.accept_changes:
            check_streams(checkpoint.root, checkpoint.last, declared, strangers)
        warn_about_changed_streams(checkpoint.root, checkpoint.last, declared, strangers)

    def start(self, held: ExitStack) -> None:
        """Starts all but the loop's thread (``engine.epoch_loop.start_epochs``)."""
        held.callback(self._note.close)
        held.callback(self.heart.stop)
        self.heart.start()
        held.callback(self._ahead.preempt)
        held.callback(self.loop.stop)

    def watch(self, held: ExitStack) -> None:
        """Watches the loop's thread until ``held`` is closed."""
        held.callback(Watchdog(self._note, self.loop, self._end).stop)

    def takeover_error(self) -> BaseException | None:
        """Returns the error if another engine has taken over."""
        return self.epochs.checkpoint.reign.takeover_error()

    def _epochs_of(
        self, checkpoint: Checkpoint, sourcing: SourceCoordinator, executor: Executor
    ) -> EpochRunner:
        return EpochRunner(
            checkpoint,
            self._statics,
            sourcing,
            executor,
            publishing=self._publishing,
            publication_thread=self.publication_thread,
            admission=self._tempo.admission(),
            wall=wall_clock_ms,
            elapsed=clock_ms,
            limits=self._limits,
            slices=self._tempo.slices,
            placed=self._tempo.placed,
            degrees=self._tempo.degrees(executor, checkpoint.last),
        )

    @property
    def _catalog(self) -> Catalog:
        """Returns the catalog, once no other thread plans."""
        self._ahead.preempt()
        return self._own_catalog

    @property
    def once(self) -> bool:
        """Returns whether the run reads only the input that existed at its start."""
        return self._tempo.once

    @property
    def last(self) -> Manifest:
        """Returns the last manifest."""
        return self.epochs.last

    @property
    def awaits(self) -> str:
        """Returns the condition for which epochs wait; "" without one, or if it is unknown."""
        if kernels.compiling:
            return f"kernels are being compiled for this machine, once ({kernels.compiled} so far)"
        reasons = (self._awaits or self._held_by, *self.heart.unavailable_sources.values())
        return " ".join(each for each in reasons if each)

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end. Raises their failure."""
        ended = self.loop.await_end(timeout)
        failure = self.loop.failure
        if ended and failure is None and self._tempo.once:
            check_accounts(self.last)
        if not ended or failure is None:
            return ended
        if isinstance(failure, LevadaError):
            raise failure
        epoch = self.last.epoch + 1
        raise EngineError(f"The engine stopped in epoch {epoch}: {failure}") from failure

    def next_intention(self, last: str | None) -> str | None:
        """Chooses the loop's next epoch. With a backlog it begins at once, else after the least
        interval.

        The input is looked up after the plan. Queries that arrive between the two would miss later
        elements, so the epoch is dropped and the loop chooses again with their plan.
        """
        self.epochs.checkpoint.reign.check()
        self._spools.check()
        if self._late is not None:
            self._late.check()
        self._statics.reload()
        self._take_requests()
        self._requests.answer()
        self._held_by = self._deliveries.held_by(self.publication.index)
        self._suspend_unwritten()
        if self._held_by:
            self._timed = self.last.epoch  # the duration would include the wait
            return None
        now, last_epoch = time.monotonic() * 1000, self.last
        if last_epoch.epoch > self._timed:
            self.heart.backlog.durations += [now - self._last_start]
        self._timed = last_epoch.epoch
        hurries = self._tempo.once or self._full or last_epoch.behind or self._is_plan_awaited
        due = self._last_start + self.epochs.pace.interval.ms
        if not hurries and now < due:
            self.loop.wait_until(due / 1000)
            return None
        intention = self._intend()
        if intention is None:
            if self._is_over() and self._is_delivered():
                if self._late is not None:
                    # a missing Java fails a run even if the epochs ended before Spark's start
                    self._late.await_requirements()
                self.loop.request_stop()
            return None
        if self._registry.changed:
            return None
        self._last_start = now
        elements = sum(r.elements for r in intention.references)
        self._full = elements >= self.epochs.admission.rows // 2
        return msgspec.json.encode(intention).decode()

    def _take_requests(self) -> None:
        """Executes requests, and builds the next plan. Plans with added or dropped queries are
        built ahead while epochs continue.
        """
        if not self._ahead.is_busy:
            self._adopt()
        changes, last = list[Request](), self.last
        busy = self._ahead.has_trial  # also one that just ended; the next call adopts it
        if not busy:
            goes_on = self.epochs.plan is not None and not last.has_ended and not self.once
            changes = self._requests.take(last, ahead=goes_on)
        wanted = self._deliveries.needs_kept_results
        if self._registry.changed or (
            not busy and (wanted or self._catalog.has_due_migrations(last))
        ):
            self._replan()
        elif wanted:
            with self._registry.lock:
                self._deliveries.follow(self.publication, self.last, self._registry)
        is_plan_due = self.epochs.plan_is_new and not (self._held_by or self._awaits)
        self._is_plan_awaited = is_plan_due and (bool(changes) or self._is_plan_awaited)
        if changes and (requests := self._ahead.choose(changes)) and not is_plan_due:
            self._begin_trial(self._requests.trial(requests))

    def _begin_trial(self, trial: Trial) -> None:
        """Plans a trial on a thread. At the last attempt no epoch runs meanwhile."""
        if trial.is_too_late:
            trial.failure = ALWAYS_LATE
            self._conclude(trial)
            return
        trial.static, trial.plan_before = version_of(self._statics.files), self.last.plan
        self._ahead.begin(trial, partial(self._plan_trial, self.last))
        if trial.is_last_attempt:
            self._ahead.wait()
            self._adopt()

    def _plan_trial(self, last: Manifest, trial: Trial) -> None:
        if not trial.is_planned:
            self._requests.register_apart(trial)
        if not trial.added:
            return
        trial.is_planned = True
        queries = self.suspended.without_names(trial.dropped).without(trial.registry.queries)

        def plan() -> None:
            catalog, static = self._own_catalog, trial.static
            trial.plan = catalog.plan_ahead(queries, trial.dropped, last, static, trial.margin)

        trial.in_catalog = True
        try:
            run_deeper(plan)
        except BaseException:
            self._own_catalog.restore()
            trial.in_catalog = False
            raise

    def _adopt(self) -> None:
        """Adopts the finished trial, if there is one: executes its requests and takes its plan."""
        trial = self._ahead.take()
        if trial is None:
            return
        is_preempted = isinstance(trial.failure, PreemptedError)
        if is_preempted and self._ahead.preempted >= MAX_ATTEMPTS:
            trial.failure, is_preempted = ALWAYS_LATE, False
        if not is_preempted:
            self._conclude(trial)
        elif trial.in_catalog:  # the requests come again
            self._catalog.restore()

    def _conclude(self, trial: Trial) -> None:
        """Executes the requests of a trial, refuses them, or begins another trial."""
        if trial.failure is not None and trial.in_catalog:
            self._catalog.restore()
        with self._registry.lock:  # the program changes no query between the check and the plan
            again = self._trial_after(trial)
            if again is None:
                self._requests.adopt(trial, self.last)
                self.suspended.forget(trial.dropped)
                if trial.plan is not None and trial.added:
                    self._use_planned(trial, trial.plan)
        if again is not None:
            self._begin_trial(again)

    def _trial_after(self, trial: Trial) -> Trial | None:
        """Returns the trial that replaces one that cannot be adopted, or None if it can be."""
        if trial.failure is not None:
            if len(trial.requests) > 1:  # the others come again
                return self._requests.trial(trial.requests[:1])
            self._requests.refuse(trial, trial.failure, self.last)
        if not trial.added:
            return None
        if trial.edits != self._registry.edits:  # by the program
            self._catalog.restore()
            anew = self._requests.trial(trial.requests, attempt=trial.attempt + 1)
            anew.seconds = trial.seconds
            return anew
        lag = self._catalog.lag(self.last)
        same_data = trial.static == version_of(self._statics.files)
        # else members that epochs have had by now would read all static data again
        same_plan = trial.plan_before == self.last.plan
        return None if not lag and same_data and same_plan else trial.again(lag)

    def _use_planned(self, trial: Trial, plan: Plan) -> None:
        """Makes the next epochs use the plan of a trial."""
        registry = self._registry
        with registry.lock:
            self._deliveries.follow(self.publication, self.last, registry)
            self._limits.by_query = self._requests.lower_limits(self._limits.all)
            self._catalog.settle(first=False)
        again = any(name in registry.queries for name in trial.dropped)
        self.epochs.set_plan(plan, again=again)
        warn_about_unknown_tasks(self.epochs.placed, plan)

    def _intend(self, *, flush: bool = False) -> EpochIntent | None:
        """Decides the next epoch. Suspends queries on which the decision fails."""
        while True:
            try:
                with cpu_guard():
                    return self.epochs.decide(flush=flush)
            except SourceError as error:
                self._set_aside(error)
                return None
            except BaseException as error:
                failure, plan = as_failure(error), self.epochs.plan
                if failure is None or plan is None:
                    raise
                self._suspend_undecided(failure, plan, flush=flush)
                self._replan()

    def _suspend_undecided(self, failure: EvaluationError, plan: Plan, *, flush: bool) -> None:
        """Suspends the query on which deciding the next epoch fails. Raises the failure if no query
        causes it.
        """

        def fails(without: Sequence[str]) -> bool:
            version = self._version_without(plan.version, without)
            return self.epochs.fails_to_intend(version, flush=flush)

        try:
            name = find_failing_query(list(plan.queries), fails)
        except (OtherFaultError, UnsteadyError):
            raise failure from failure.__cause__
        self.suspended.add([name], failure, self._registry.queries)
        self._registry.changed = True

    def _replan(self) -> None:
        """Makes the plan for the current queries. Before the first plan an open intention has been
        run.
        """
        registry, epochs = self._registry, self.epochs
        while self._ahead.has_trial:
            self._ahead.preempt()
            self._adopt()
        with registry.lock:
            self._deliveries.follow(self.publication, epochs.last, registry)
            self.suspended.compare(registry.queries)
        if epochs.last.has_ended:
            self._catalog.restore_lifetimes(self.suspended.without(registry.queries), epochs.last)
            return
        self._replan_at_stop = False
        with registry.lock:
            self._deliveries.follow(self.publication, epochs.last, registry)  # these queries
            self.suspended.forget(registry.dropped)
            queries = self.suspended.without(registry.queries)
            self._requests.forget(registry.dropped, epochs.last)
            self._limits.by_query = self._requests.lower_limits(self._limits.all)
            dropped = registry.dropped | self._requests.take_changed_names(epochs.last.plan)
            static = version_of(self._statics.files)
            others = self.streams.follow(self._catalog, epochs.sourcing, epochs.last.plan)
            plan = self._follow(queries, dropped, static)
            registry.changed = False
            registry.dropped.clear()
        warn_about_edited_queries(self._catalog.edited)
        self._stamps.compare(old=self._catalog.goes_on)
        if plan is not None:
            epochs.set_plan(plan, again=not dropped.isdisjoint(queries))
        elif epochs.plan is None:
            epochs.plan = self._catalog.plan(epochs.last.plan)
        warn_about_unknown_tasks(epochs.placed, epochs.plan)
        if others and epochs.plan is not None:
            self.streams.note_plan(epochs.plan.version)
            epochs.setup()  # now, for readers in other processes

    def _follow(
        self, queries: dict[str, Registered], dropped: Collection[str], static: int
    ) -> Plan | None:
        """Returns the next plan. Suspends queries on which planning fails."""
        last = self.epochs.checkpoint.last
        while True:
            try:
                with cpu_guard(len(queries)):
                    return self._catalog.follow(queries, dropped, last, static)
            except BaseException as error:
                failure = as_failure(error)
                if failure is None:
                    raise
                self._catalog.restore()
                self._suspend_newcomer(queries, failure, error)
                queries = self.suspended.without(queries)

    def _suspend_newcomer(
        self, queries: Mapping[str, Registered], failure: EvaluationError, error: BaseException
    ) -> None:
        """Suspends the new query that cannot be planned. If none is at fault, planning continues
        without other join orders. Raises the failure if it did so already.
        """
        names, last = self._catalog.newcomers(queries), self.epochs.checkpoint.last

        def fails(without: Sequence[str]) -> bool:
            left = [queries[name] for name in names if name not in without]
            return not self._catalog.can_add(left, last)

        try:
            guilty_one = find_failing_query(names, fails) if names else ""
        except (OtherFaultError, UnsteadyError):
            guilty_one = ""
        if guilty_one:
            self.suspended.add([guilty_one], failure, queries)
        elif not self._catalog.stop_switching(failure):
            raise failure from error

    def _is_over(self) -> bool:
        """Returns whether everything is read and published. That happens only with ``once``, or if
        the run had ended.
        """
        last = self.last
        if last.has_ended or not self._tempo.once:
            return last.has_ended
        sourcing = self.epochs.sourcing
        return (
            sourcing.keep_open
            and not last.behind
            and not sourcing.has_backlog(last.positions, last.streams)
        )

    def _is_delivered(self) -> bool:
        """Returns whether all outputs have everything."""
        self._held_by = self._deliveries.behind(self.publication.index)
        return not self._held_by

    def may_run(self, text: str) -> bool:
        """Returns whether an epoch may run now. Until Spark is up only small epochs run, in this
        process.

        An epoch is not reduced for that, since lateness would then depend on the start of Spark.
        """
        late = self._late
        if late is None or late.is_warm:
            return True
        late.check()
        if late.here and self._is_small(self._intention(text)):
            return True
        self._awaits = SPARK
        return False

    def _is_small(self, intention: EpochIntent) -> bool:
        static = intention.reads_static or intention.replacement is not None
        return (
            sum(r.elements for r in intention.references) <= MOST_HERE
            and sum(r.size for r in intention.references) <= MOST_BYTES_HERE
            and not (static and self._statics.size > MOST_STATIC_HERE)
        )

    def await_spark(self) -> None:
        """Waits until a starting Spark is up. Raises the failure of its start."""
        if self._late is not None:
            self._late.await_warm()

    def last_intention(self) -> str | None:
        """Chooses the loop's last epoch. Results that may not be published here stay held back."""
        if self._replan_at_stop or not self._registry.dropped.isdisjoint(self._registry.queries):
            self._replan()  # else the next start would use former queries of the same names
        if (intention := self._intend(flush=True)) is None:
            return None
        final = msgspec.json.encode(intention).decode()
        return final if self.may_run(final) else None

    def run_epoch(self, text: str) -> bool | PendingPublication:
        """Runs an epoch. An epoch that would need too much memory is dropped, and the next
        intention reads less. Returns whether it is done, or the unfinished publication.
        """
        intention, before = self._intention(text), self.last
        self._note.begin_epoch(intention.epoch)
        try:
            return self._run_noted(intention, before)
        finally:
            self._note.end_epoch()

    def _run_noted(self, intention: EpochIntent, before: Manifest) -> bool | PendingPublication:
        """Runs an epoch (``run_epoch``), while the operators at work are recorded."""
        self._awaits = STATIC if intention.reads_static and self._statics.files else ""
        rest, suspended, began = None, False, time.process_time()
        try:
            rest = self.epochs.run(intention)
            self.streams.settle(self.last.plan)
            self.epochs.pace.spent(time.process_time() - began)
            self._check_totals()
            self._collected.collect_after(len(self._registry.queries))
        except SourceError as error:  # decided anew
            self._set_aside(error)
            return False
        except (ManyReportsError, OverMemoryError) as error:
            self.epochs.make_smaller(error, intention)
        except (ExcessError, EvaluationError, PromiseError) as error:
            self._suspend(error, intention)
            self._catalog.drop(intention.plan)
            suspended = True
        if suspended:  # its rows hang on the error's traceback until here
            give_back()
        self._awaits = ""
        self._watch_idle_epochs(intention, before)
        return rest or self.last.epoch == intention.epoch

    def _set_aside(self, error: SourceError) -> None:
        """Leaves out the stream that cannot be read, or raises the error. The last one that does
        not answer is waited for.
        """
        try:
            self.epochs.sourcing.set_aside(error)
        except AwayError:
            self._awaits = error.message
        except LostError as lost:
            raise lost.with_epoch(self.last.epoch + 1) from error

    def _watch_idle_epochs(self, intention: EpochIntent, before: Manifest) -> None:
        """Warns if epochs repeatedly do nothing while input waits."""
        last = self.last
        read = last.epoch == intention.epoch and bool(intention.references)
        if read or _watermarks(last) != _watermarks(before):
            self._idle_epochs = 0
            return
        self._idle_epochs += 1
        if self._idle_epochs == MAX_IDLE_EPOCHS:
            if self.epochs.sourcing.has_unread(last.positions):
                warnings.warn(IDLE_EPOCHS, stacklevel=2)
            else:
                self._idle_epochs = 0

    def _suspend(
        self, error: ExcessError | EvaluationError | PromiseError, intention: EpochIntent
    ) -> None:
        """Suspends the queries at fault before the epoch runs again. Raises the error if no query
        is at fault, since the epoch would run for ever.
        """
        plan, queries = self._catalog.plan(intention.plan), self._registry.queries
        match error:
            case ExcessError():
                names = queries_of_member(plan, error.node, error.member)
            case PromiseError():
                names = [q.name for q in plan.queries.values() if error.stream in q.streams]
            case EvaluationError():
                names = [n for n in plan.queries if n not in queries]  # of an earlier run
                names = names or self._find_failing(error, intention, plan)
        if not names and not isinstance(error, EvaluationError):
            raise error
        self.suspended.add(names, error, queries)
        self._registry.changed = self._replan_at_stop = True

    def _find_failing(
        self, error: EvaluationError, intention: EpochIntent, plan: Plan
    ) -> list[str]:
        """Returns the query on which an epoch fails; [] if the failure did not recur."""

        def fails(without: Sequence[str]) -> bool:
            return self.epochs.fails(intention, self._version_without(intention.plan, without))

        try:
            return [self._find_failing_by(error, plan, fails)]
        except OtherFaultError:
            raise error from error.__cause__
        except UnsteadyError:
            self._unsteady += 1
            if self._unsteady > TWICE:
                raise error from error.__cause__
            return []

    def _find_failing_by(self, error: EvaluationError, plan: Plan, fails: Fails) -> str:
        """Returns the query at fault: the operator's only query, or the result of a binary
        search.
        """
        suspects = (
            queries_of_member(plan, error.node, -1) if error.node >= 0 else list(plan.queries)
        )
        if len(suspects) == 1 and error.node >= 0:
            return suspects[0]
        self._awaits = "looking for the query that makes an epoch fail"
        try:
            return find_failing_query(suspects, fails)
        except OtherFaultError:
            if len(suspects) == len(plan.queries):
                raise
            return find_failing_query(list(plan.queries), fails)

    def _version_without(self, version: int, names: Sequence[str]) -> int:
        """Returns the version of a plan without some of its queries."""
        return self._catalog.without(version, names) if names else version

    def _suspend_deadly(self, intention: EpochIntent) -> bool:
        """Suspends the query that kills each process in which it runs. Returns False if the epoch
        kills no process. Raises ``EngineError`` if no query is at fault.
        """
        error = self.epochs.dies(intention, intention.plan)
        if error is None:
            return False

        def fails(without: Sequence[str]) -> bool:
            version = self._version_without(intention.plan, without)
            return self.epochs.dies(intention, version) is not None

        try:
            name = self._find_failing_by(error, self._catalog.plan(intention.plan), fails)
        except (OtherFaultError, UnsteadyError):
            raise self.epochs.ended_twice(intention, error) from error
        self.suspended.add([name], error, self._registry.queries)
        return True

    def _suspend_unwritten(self) -> None:
        """Suspends the queries whose results cannot be written."""
        failures = self.publication.take_failures() | self._deliveries.take_failures()
        for name, failure in failures.items():
            self.suspended.add([name], failure, self._registry.queries)
            self._registry.changed = self._replan_at_stop = True

    def _check_totals(self) -> None:
        """Suspends the queries that exceed a limit over several epochs."""
        try:
            with cpu_guard():
                over = self._totals.find_excesses(self.epochs, self.publication.index)
        except BaseException as error:
            if (failure := as_failure(error)) is None:
                raise
            self._totals, over = QueryQuotas(self._limits), {}
            warnings.warn(f"{UNCOUNTED} {failure} at {failure.place}.", stacklevel=2)
        for name, excess in over.items():
            self.suspended.add([name], excess, self._registry.queries)
            self._registry.changed = True
            self.epochs.limit = ReportBacklog()  # other queries may not need one

    def _intention(self, text: str) -> EpochIntent:
        """Decodes the intention that was written ahead. Raises ``CheckpointError`` if it is
        something else.
        """
        try:
            return msgspec.json.decode(text, type=EpochIntent)
        except msgspec.MsgspecError as error:
            path = self.epochs.checkpoint.root / "intentions" / "open"
            raise unreadable(path, "it is no intention") from error

    def examine(self, text: str) -> str:
        """Returns the intention to run in place of an epoch that died, or "" if a changed set of
        queries replaces it.
        """
        intention = self._intention(text)
        examined = self.epochs.without_poison_input(intention)
        if examined is not intention:
            return msgspec.json.encode(examined).decode()
        checkpoint = self.epochs.checkpoint
        if intention.epoch <= self.last.epoch:
            return text
        times = increment_crash_count(checkpoint.root, intention.epoch)
        if times < TWICE and not self._note.has_exceeded(intention.epoch):
            return text
        asked = self._registry.queries
        known = checkpoint.load_topology(intention.plan)[1]
        if any(name not in asked or asked[name].identity != was for name, was in known.items()):
            forget(checkpoint.root)
            self._catalog.drop(intention.plan)
            return ""
        if not self._suspend_deadly(intention):
            return text
        forget(checkpoint.root)
        self._catalog.drop(intention.plan)
        self._registry.changed = True
        return ""

    def warn_of_loss(self, text: str, error: LostTaskError, pause: float | None) -> None:
        """Warns that an epoch has lost tasks."""
        epoch, checkpoint = self._intention(text).epoch, self.epochs.checkpoint
        message = str(note_loss(checkpoint.root, epoch, error.message, again=pause is not None))
        checkpoint.has_orphans = True
        self._awaits = message
        if pause is not None:
            warnings.warn(f"{message} It begins in {pause:g} s.", stacklevel=2)

    def publish_again(self, text: str) -> bool:
        """Publishes the last epoch again if the intention belongs to it. Returns whether it
        does.
        """
        again = self._publishing.again(self._intention(text).epoch, self.last)
        if again:
            self.streams.settle(self.last.plan)
        return again


def _watermarks(manifest: Manifest) -> list[int]:
    return [record.watermark for record in manifest.streams.values()]
