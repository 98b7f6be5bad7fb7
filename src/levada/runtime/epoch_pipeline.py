"""An epoch, from decision to publication: the table of contents of the data path.

    decide                -> the intention of epoch N (the loop writes it ahead)
    run                   -> that epoch, to its publication:
        split     the input becomes payloads of tasks       driver/parallelism.py
        read      a task reads its ranges into columns      task/ingest_task.py
        exchange  each row goes to the partition of its key task/exchange.py
        evaluate  operators take the new rows               task/stage_task.py
        report    due windows become segments of results    task/result_writer.py
        commit    the manifest of all outcomes is created   checkpoint/checkpoint_folder.py
        publish   results go to sinks                       driver/after_commit.py
    without_poison_input  -> after a crash: the same intention without the input that crashes a
                             process
    fails                 -> after a failure: whether it also fails with some of its queries
    dies                  -> after a second crash: whether the epoch itself crashes the process

The tasks of one job do all from read to report. ``run`` of the same intention has the same results,
in any process and however often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from levada.checkpoint import query_totals, state_files
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import (
    EpochContext,
    Replacement,
    Setup,
    encode,
    raises_watermark,
)
from levada.checkpoint.manifest import EpochIntent, Manifest
from levada.connectors.ingest.parse import json_ld_contexts
from levada.connectors.ingest.static_files import replaced_graphs
from levada.core import user_functions
from levada.core.cpu_guard import cpu_guard
from levada.core.event_time import MIN
from levada.core.gc_control import collection_paused
from levada.core.query_limits import Limited
from levada.errors import (
    EngineError,
    EvaluationError,
    ExcessError,
    ManyReportsError,
    OverMemoryError,
    PromiseError,
    SourceError,
)
from levada.plan.execution.plan import Plan
from levada.runtime.cost_model.admission_control import Admission
from levada.runtime.cost_model.memory_admission import ReportBacklog, TooLarge, smaller
from levada.runtime.cost_model.operator_cardinalities import tell_counts
from levada.runtime.cost_model.parallelism_choice import ONE, SPREAD, Pressure
from levada.runtime.cost_model.partition_count import PartitionCountPolicy
from levada.runtime.driver import derived_streams, epoch_totals
from levada.runtime.driver.after_commit import Publishing
from levada.runtime.driver.load_static import StaticLoads
from levada.runtime.driver.parallelism import bundles
from levada.runtime.driver.source_coordinator import SourceCoordinator
from levada.runtime.driver.static_graphs import StaticGraphs
from levada.runtime.driver.stream_progress import (
    auxiliary_files,
    carry_over,
    count_passed,
    count_sent,
    decode_outcomes,
    ended_twice,
    largest_time,
    letters_of,
    record_placement,
    records_of,
    tell_executors,
    without_crashing_input,
)
from levada.runtime.executor import Executor, Job
from levada.runtime.placement.task_placement import TaskPlacement
from levada.runtime.preferred_locations import LocalityStats
from levada.runtime.publication.publication import PendingPublication, PublicationThread
from levada.runtime.publication.relation_files import hold, is_due
from levada.runtime.task.crash_probe import rehearse
from levada.runtime.task.operator_failures import as_failure, raise_failure
from levada.runtime.task.work_note import READING, note_here
from levada.runtime.warmup_executor import homes_of, is_here, jvm_seconds, runs_here

MOVE = 5e-6 / 32
"""ms for each byte of state that another executor has to read, over as many epochs as it stays."""


class EpochRunner:
    """Decides and runs the epochs of one checkpoint. ``wall`` returns the wall clock in ms,
    ``elapsed`` the clock of durations.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        statics: StaticGraphs,
        sourcing: SourceCoordinator,
        executor: Executor,
        *,
        publishing: Publishing,
        publication_thread: PublicationThread,
        admission: Admission,
        wall: Callable[[], int],
        elapsed: Callable[[], int],
        limits: Limited,
        slices: str = "",
        placed: TaskPlacement | None = None,
        degrees: PartitionCountPolicy,
    ) -> None:
        self.checkpoint, self.sourcing = checkpoint, sourcing
        self.executor, self.publishing = executor, publishing
        self._publication_thread = publication_thread
        self.admission, self.limits = admission, limits
        self.wall, self.slices = wall, slices
        self._due = publishing.publication.is_due
        self.elapsed, self._decided = elapsed, (0, 0)  # the epoch decided last, and when
        self._began_before = 0  # when the previous one was decided
        self._has_run = False  # an epoch of this run is committed
        self.placed, self.tally = placed, LocalityStats()
        self.degrees, self.balancing, self.pace = degrees, degrees.balancing, degrees.pace
        if degrees.decides:
            checkpoint.tables.dealing = degrees.deal
        degrees.always = degrees.always or bool(admission.delay)
        self.limit = ReportBacklog()
        self.plan: Plan | None = None
        self.plan_is_new = self.again = False
        self.statics = statics
        self._saved: Setup | None = None
        self._setup, self._swept, self.loads = "", ("", ""), StaticLoads(checkpoint)
        self._passing, self._file = list[str](), (-1, "")
        self._sharing: tuple[int, list[list[int]]] = (-1, [])

    @property
    def last(self) -> Manifest:
        """The last manifest, or the state before the first epoch."""
        return self.checkpoint.last or Manifest(0, 0)

    def set_plan(self, plan: Plan, *, again: bool = False) -> None:
        """Sets the plan of the next epochs. ``again``: a removed query was added again unchanged. A
        stop must not lose it: the next start identifies queries by names and texts.
        """
        self.plan, self.plan_is_new = plan, True
        self.again = self.again or again

    def decide(self, *, flush: bool = False) -> EpochIntent | None:
        """Returns the next epoch, or None if there is nothing to do. ``flush``: the epoch publishes
        held results, and reads derived streams only.
        """
        last, plan = self.last, self.plan
        # a stop does not catch up on late reports, and until they are made nothing depends on them
        says = bool(last.waiting_results or self.again or (plan and plan.made and not last.behind))
        if plan is None or last.has_ended or (flush and not says):
            return None
        last = carry_over(last, plan.streams)
        wall, began = self.wall(), self.elapsed()  # before the sources are looked at
        if not flush:
            self.sourcing.discover(last.positions, wall)
        overtaken = {} if flush else self.sourcing.overtaken_files()
        rows = 0 if flush or last.behind else self.admission.admitted_elements
        references, after = self.sourcing.assign_splits(last.positions, last.streams, rows)
        known = (plan, last, self.checkpoint, self.load_plan, self.pace.cores)
        references += derived_streams.references(*known)
        ended = self.sourcing.ended_streams(after)
        newly_ended = self.sourcing.has_newly_ended(ended, last.streams)
        vanished = {} if flush else self.sourcing.vanished_files()
        broken, after = (
            ({}, after) if flush else self.sourcing.unreadable_files(last.positions, after)
        )
        beside = derived_streams.shared_stream_names(plan, self._shared_streams(plan))
        silence = self.sourcing.idle_sources(references, last.positions, began, beside)
        setup = last.setup if flush and last.setup else self.setup()
        replacement = self._replacement(setup)
        news = references or newly_ended or replacement or overtaken or vanished or broken
        due = news or self._is_due(wall, flush=flush)
        if not (due or silence or plan.made or self.sourcing.follows_clock):
            return None
        states_by_name, finished = self.sourcing.states(
            references, after, last.streams, ended, frozenset() if flush else silence
        )
        states = [
            states_by_name[name]
            if name in states_by_name
            else derived_streams.state(name, plan, last)
            for name in plan.streams
        ]
        unread = derived_streams.unread(plan)
        if not (due or raises_watermark(states, self._shared_streams(plan), unread)):
            return None
        self._began_before, self._decided = self._decided[1], (last.epoch + 1, began)
        return EpochIntent(
            last.epoch + 1,
            plan.version,
            wall,
            references,
            after,
            states,
            finished,
            self.plan_is_new,
            self.sourcing.has_ending_streams
            and all(s.has_ended for i, s in enumerate(states) if i not in unread),
            flush,
            setup,
            replacement,
            overtaken,
            vanished,
            broken,
            until=MIN if flush and last.behind else self.limit.until,
            group_table_version=self.checkpoint.tables.version_for_epoch(last.epoch + 1, plan),
            slices=self.slices,
            balance=self.balancing.news if self.balancing is not None else None,
            partition_decision=self.degrees.news,
        )

    def _is_due(self, wall: int, *, flush: bool) -> bool:
        """Whether an epoch is due without new input."""
        last = self.last
        is_requested = (
            bool(last.waiting_results or self.again) if flush else self.plan_is_new or last.behind
        )
        return is_requested or is_due(last.waiting_results, self._due, wall)

    def setup(self) -> str:
        """Returns the present streams and static files, saved in the checkpoint."""
        now = Setup(list(self.sourcing.configs), list(self.statics.files))
        if now != self._saved:
            self._saved, self._setup = now, self.checkpoint.save_setup(now)
        return self._setup

    def _replacement(self, setup: str) -> Replacement | None:
        """Returns the static data that differ from the last epoch's, valid after all event times of
        the streams.
        """
        before = self.last.setup
        if not before or before == setup:
            return None
        graphs = replaced_graphs(
            self.checkpoint.setup(before).static, self.checkpoint.setup(setup).static
        )
        latest = max(
            (largest_time(name, record) for name, record in self.last.streams.items()), default=MIN
        )
        return Replacement(graphs, before, latest + 1) if graphs else None

    def _shared_streams(self, plan: Plan) -> list[list[int]]:
        """Returns, for each stream, the streams that share a query with it; computed once a
        plan.
        """
        if self._sharing[0] != plan.version:
            self._sharing = plan.version, derived_streams.shared_streams(plan)
        return self._sharing[1]

    def make_smaller(self, error: TooLarge, intention: EpochIntent) -> None:
        """Limits the next epochs after one that was too large. Raises ``EngineError``."""
        self.limit = smaller(self.limit, error, intention.references, self.admission.room)

    def run(self, intention: EpochIntent) -> PendingPublication | None:
        """Runs an epoch to its publication. A committed epoch is only published again. Returns the
        part of the publication that may continue beside the next epoch
        (``runtime.publication.publication``).
        """
        if self.checkpoint.last is not None and intention.epoch <= self.checkpoint.last.epoch:
            return self.publishing.publish(self.checkpoint.last)
        before = self.last.setup
        manifest = self._evaluate(intention)
        self._forget_passing()
        self._commit(intention, manifest)
        rest = self.publishing.publish(manifest)
        self.checkpoint.forget_before(manifest)
        if self._swept != (before, manifest.setup):
            self._sweep(before, manifest.setup)
        self._see(intention)
        return rest

    def _commit(self, intention: EpochIntent, manifest: Manifest) -> None:
        """Commits an epoch, and forgets what only its repetition would need."""
        self.checkpoint.commit(manifest)
        self._has_run = True
        self.loads.commit()
        self.sourcing.acknowledge_reported_files(intention.late_files, intention.deleted_files)
        self.sourcing.forget(manifest.positions, self.checkpoint.reign)
        self.limit = self.limit.for_next_epoch(behind=manifest.behind)
        if self.plan is not None and intention.plan == self.plan.version:
            self.plan_is_new = self.again = False

    def _evaluate(self, intention: EpochIntent) -> Manifest:
        """Runs the tasks of an epoch and returns its manifest. Raises ``EvaluationError`` if Levada
        fails on the tasks, or on their outcomes.
        """
        context = self._context(intention)
        try:
            job = self._split(intention, context)
            outcomes = self._run_tasks(job)  # read, exchange, evaluate, report
        except SourceError as error:
            if error.stream or not (intention.reads_static and self._has_run):
                raise
            raise EvaluationError(str(error)) from error  # of a query that came since the start
        self._publication_thread.join()  # before due results are looked up
        try:
            # decoded outcomes have no cycles, and live no longer
            with cpu_guard(), collection_paused():
                manifest = self._manifest(intention, context, outcomes)
        except BaseException as error:
            raise_failure(error)
        manifest.letter_files += letters_of(context, intention)
        return manifest

    def fails_to_intend(self, version: int, *, flush: bool) -> bool:
        """Whether deciding the next epoch fails with a version of the plan."""
        plan, self.plan = self.plan, self.load_plan(version)
        try:
            with cpu_guard():
                self.decide(flush=flush)
        except BaseException as error:
            if as_failure(error) is None:
                raise
            return True
        finally:
            self.plan = plan
        return False

    def _forget_passing(self) -> None:
        """Deletes files that live for one epoch."""
        self.checkpoint.unlink(self._passing)
        self._passing = []
        self.loads.forget_rows()

    def without_poison_input(self, intention: EpochIntent) -> EpochIntent:
        """Returns the intention of an epoch in which a process crashed, without the input that
        crashed it.
        """
        if intention.epoch <= self.last.epoch:
            return intention
        context = self._context(intention)
        static = self.loads.list_file_parts(context, self.load_plan(intention.plan))
        return without_crashing_input(intention, context, static)

    def fails(self, intention: EpochIntent, version: int) -> bool:
        """Whether an epoch fails with a version of the plan. Its results are dropped."""
        trial = msgspec.structs.replace(intention, plan=version)
        self.checkpoint.has_orphans = True
        try:
            self._evaluate(trial)
        except EvaluationError:
            return True
        except (ExcessError, ManyReportsError, OverMemoryError, PromiseError):
            return False
        finally:
            self._forget_passing()
        return False

    def dies(self, intention: EpochIntent, version: int) -> EvaluationError | None:
        """Runs an epoch with a version of the plan in a separate process; describes how that
        process crashed.
        """
        trial = msgspec.structs.replace(intention, plan=version)
        self.checkpoint.has_orphans = True
        died = rehearse(self._split(trial, self._context(trial)))
        self._forget_passing()
        if died is None:
            return None
        return EvaluationError(f"it ended each process that evaluated it ({died[1]})", node=died[0])

    def ended_twice(self, intention: EpochIntent, error: EvaluationError) -> EngineError:
        """Returns the error of an epoch that crashes each process, without a guilty query."""
        return ended_twice(
            self.load_plan(intention.plan), intention.epoch, error.node, error.message
        )

    def _see(self, intention: EpochIntent) -> None:
        """Records the time of an epoch, which limits the input of the next one."""
        epoch, began = self._decided
        if self.admission.delay and epoch == intention.epoch:
            choice, ways = self.pace.choice, self.pace.ways(here=self.pace.here)
            self.admission.see(choice.elements, self.elapsed() - began, choice.measured_ms, ways)

    def _hurries(self, intention: EpochIntent) -> bool:
        """Whether there was more input than an epoch reads, or the run reads all input and ends."""
        elements = sum(r.elements for r in intention.references)
        return self.sourcing.once or self.last.behind or elements >= self.admission.rows // 2

    def _sweep(self, before: str, setup: str) -> None:
        """Deletes static data that neither the next epoch reads, nor the last one if it runs
        again.
        """
        self._swept, setups = (before, setup), [name for name in {before, setup} if name]
        files = [file for name in setups for file in self.checkpoint.setup(name).static]
        self.statics.sweep(files, self.checkpoint.reign)
        self.checkpoint.forget_setups(*setups, self.setup())

    def _pressure(self, intention: EpochIntent) -> Pressure:
        """Returns the pressure on an epoch: the time in which its elements arrived, and the
        delay.
        """
        decided = intention.epoch == self._decided[0] and not self._hurries(intention)
        interval = float(self._decided[1] - self._began_before) if decided else 0.0
        budget = max(self.admission.budget, 1.0) if self.admission.delay else 0.0
        homes = homes_of(self.executor)
        if homes is None or homes.stats.executors < 2 or self.pace.choice.mode != SPREAD:
            return Pressure(interval, budget)
        share = 1 - 1 / homes.stats.executors
        return Pressure(interval, budget, lambda: share * self.checkpoint.names.bytes * MOVE)

    def _run_tasks(self, job: Job) -> list[bytes]:
        """Runs the tasks of a job, and measures their time. Returns their outcomes."""
        clock = time.thread_time if job.light and is_here(self.executor) else time.monotonic
        here, jvm, began = runs_here(self.executor, job), jvm_seconds(self.executor), clock()
        outcomes = self.executor.run(job)
        after = None if jvm is None or here else jvm_seconds(self.executor)
        used = None if jvm is None or after is None else after - jvm
        self.pace.took(clock() - began, here=here, jvm=used)
        if (work := note_here()) is not None:
            work.begin(READING)  # no operator is running any more
        return outcomes

    def _context(self, intention: EpochIntent) -> EpochContext:
        last, tables, names = self.last, self.checkpoint.tables, self.checkpoint.names
        self.checkpoint.check_follows(intention.epoch)
        plan = self.load_plan(intention.plan)
        # the state belongs to another table
        moved = bool(names.state) and last.group_table_version != intention.group_table_version
        return EpochContext(
            intention.epoch,
            str(self.checkpoint.root),
            self._plan_file(intention.plan),
            self.checkpoint.facts.seed,
            intention.wall_ms,
            tables.load(intention.group_table_version).partitions,
            tables.file(intention.group_table_version),
            intention.streams,
            names.state,
            f"{self.checkpoint.root}/{intention.setup}",
            self._shared_streams(plan),
            intention.reads_static,
            self._with_full_path(intention.replacement),
            intention.until,
            self.limits.all,
            intention.slicing.groups,
            tables.file(last.group_table_version) if moved else "",
            self.balancing.measures if self.balancing is not None else 0,
            dict(self.limits.by_query),
            self.placed is not None,
            self.admission.room.memory,
            names.whole,
            names.deletable,
            *(user_functions.places() if user_functions.DECLARED else ([], [])),
            list(json_ld_contexts.FILES.values()),
        )

    def _plan_file(self, version: int) -> str:
        """Returns the path of a version of the plan; looked up once a version."""
        if self._file[0] != version:
            self._file = version, str(self.checkpoint.plan_path(version))
        return self._file[1]

    def _with_full_path(self, replacement: Replacement | None) -> Replacement | None:
        """Returns a replacement with the full path of the previous files, for tasks."""
        if replacement is None:
            return None
        return msgspec.structs.replace(
            replacement, previous_setup=str(self.checkpoint.root / replacement.previous_setup)
        )

    def load_plan(self, version: int) -> Plan:
        """Loads a version of the plan."""
        if self.plan is not None and self.plan.version == version:
            return self.plan
        return self.checkpoint.load_plan(version)

    def _split(self, intention: EpochIntent, context: EpochContext) -> Job:
        """Returns the job of an epoch: its input as payloads of tasks."""
        stages, references = self.load_plan(intention.plan).stages, intention.references
        self.degrees.look()
        pressure = self._pressure(intention)
        formats = self.sourcing.message_formats
        choice = self.pace.decide(references, stages, context.partitions, pressure, formats=formats)
        fused = choice.mode == ONE
        light = fused and self.pace.is_light
        alone = fused or self.pace.here  # then a second reader shortens nothing
        readers = (1 if alone else choice.readers) if self.placed is None else context.partitions
        payloads = bundles(
            references, readers, apart=bool(context.counted_groups), placed=self.placed
        )
        if intention.reads_static or intention.replacement is not None:
            plan, last = self.load_plan(intention.plan), intention.has_ended
            static = self.loads.payloads(context, plan, self.executor, last=last)
            fused, light = fused and len(static) == 1, False
            payloads += static
        encoded = [msgspec.json.encode(p) for p in payloads]
        job = Job(encode(context), encoded, stages, context.partitions, fused=fused, light=light)
        read = [p.references for p in payloads]
        return job if self.placed is None else self.placed.prefer(job, read, self.tally)

    def _manifest(
        self, intention: EpochIntent, context: EpochContext, outcomes: Sequence[bytes]
    ) -> Manifest:
        """Adds the outcomes up to a manifest."""
        plan = self.load_plan(intention.plan)
        last = carry_over(self.last, plan.streams)
        controls, done = decode_outcomes(outcomes, intention.references, plan)
        self._passing += [
            name for outcome in done if not outcome.stage for name in outcome.unneeded_files
        ]
        counts = epoch_totals.counts(done, lambda name: state_files.map_(context.root, name))
        added, totalled = query_totals.update_totals(
            context.root, plan, last, intention.epoch, counts
        )
        late = frozenset(c.name for c in self.sourcing.configs if c.counted_late)
        records = records_of(last, intention, context, controls, plan)
        count_passed(intention, controls, plan, late)
        pieces = self.sourcing.complete(intention, controls, plan)
        manifest = Manifest(
            intention.epoch,
            intention.plan,
            intention.positions,
            records,
            segments=[d.segment for d in done if d.segment],
            letter_files=[s for c in controls for s in c.letter_files],
            counts=counts,
            totals=added,
            shown_reports={q: t for d in done for q, t in d.shown_reports.items()},
            has_ended=intention.has_ended
            and all(r.complete_until <= r.watermark for r in records.values()),
            input_rows=sum(d.input_rows for d in done),
            pattern_matches=epoch_totals.hits(plan, last, controls),
            results=last.results + counts.solutions, total_files=totalled,
            last_reports=derived_streams.latest(plan, last, counts),
            state_rows=sum(d.state_rows for d in done), setup=intention.setup,
            group_table_version=intention.group_table_version,
            balance=intention.balance or last.balance,
            measured_splits=pieces,
        )  # fmt: skip
        if self.balancing is not None:
            hurried, spread = self._hurries(intention), self.pace.choice.mode == SPREAD
            self.balancing.see(done, context, manifest.balance, hurried=hurried, spread=spread)
        count_sent(manifest, last, intention, done, context.root)
        record_placement(manifest, last, self.placed, self.tally, done)
        tell_executors(manifest, last, self.executor, done)
        self.admission.room.see(intention.references, done)
        manifest.result_bytes, manifest.excess_state_rows = (
            epoch_totals.sizes(done),
            epoch_totals.count_excess_rows(done, self.limits),
        )
        tell_counts(manifest, last, done, plan)
        manifest.epoch_costs = self.degrees.costs(intention, done, last, self.admission.status)
        hold(
            manifest,
            last.waiting_results,
            self._due,
            intention.wall_ms,
            context.root,
            flush=intention.flush,
        )
        manifest.static_load = self.loads.record_load(context, done, last.static_load)
        self.checkpoint.names.follow(
            manifest, done, auxiliary_files(manifest) | self.loads.needed_files
        )
        return manifest
