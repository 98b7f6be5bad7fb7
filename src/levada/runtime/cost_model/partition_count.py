"""Decides how many partitions there are: by the cores, by the load (balance), or by the model
``epochs``. A number that a user gave, or a placement of groups, stays.

    --partitions auto            the model, from what there is on; other cores on a cluster first
    --partitions cores           the cores, whatever an epoch takes
    --balance on                 the load (``rebalancing.partition_scaling``)

In all cases the engine measures the model's answer and shows it; it samples epochs unless the model
decides. The engine asks the model before each epoch and writes the answer into the intention, so an
epoch that runs again has the same number. Measurements stay in this process: a new run measures
anew, and keeps the table of the last run.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Costs, Degree, Delayed, EpochIntent, Manifest, Resized
from levada.core.integer_options import MOST_PARTITIONS
from levada.plan.execution.key_group_table import GroupTable, table_of_partitions
from levada.runtime.cost_model.admission_control import LinearCost
from levada.runtime.cost_model.parallelism_choice import SPREAD
from levada.runtime.cost_model.smoothing import DecayingMean
from levada.runtime.driver.parallelism import ParallelismPolicy
from levada.runtime.executor import Executor
from levada.runtime.rebalancing.partition_scaling import spread
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.warmup_executor import all_here, cores_of, is_here, is_starting

# Keeps as many partitions as executors have cores, while executors join and leave: ``--partitions
# cores``. With ``auto`` it acts when executors have joined or left, and otherwise the model decides
# (``runtime.cost_model``).
#
# A change is another group table, which copies nothing (docs/decisions/0028-a-move-is-a-list.md).
# But the first epochs after it read state files of several old partitions. So an executor is used
# after it has been present for ``MORE``, and a lost one counts for ``FEWER``: Spark replaces one
# that died within seconds. A change moves the groups of partitions that leave, and some of each for
# new ones.


MORE, FEWER = 1_000, 10_000
"""ms for which the cores must have been as many, before there are more or fewer partitions."""


class ExecutorCoreTracker:
    """Decides for one run. ``clock``: of durations, ms. ``always``: act on any difference;
    otherwise only if the cores differ from those of its last table (``table_cores``).
    """

    def __init__(
        self, clock: Callable[[], int], *, always: bool = True, table_cores: int = 0
    ) -> None:
        self._clock, self._always, self._known = clock, always, table_cores
        self._cores, self._since = 0, 0

    def deal(self, table: GroupTable, cores: int) -> GroupTable | None:
        """Returns the group table of the next epochs, if it changes. ``cores``: of the executors in
        the last epoch (0: unknown, or there is no cluster).
        """
        cores, now = min(cores, MOST_PARTITIONS), self._clock()
        if cores != self._cores:
            self._cores, self._since = cores, now
        wait = MORE if cores > table.partitions else FEWER
        if cores in (0, *(() if self._always else (self._known,))) or now - self._since < wait:
            return None
        self._known = cores
        if cores == table.partitions:
            return None
        return table_of_partitions(spread(table, np.ones(table.groups), cores), cores)


# Chooses the number of partitions by the model ``epochs``: the number with the least predicted
# time of recent epochs (``ParallelismPolicy.times_by_partitions``).
#
# Two rules prevent oscillation. A number is taken if it was the best in ``STEADY`` epochs in a row,
# by at least ``GAIN`` of the time, and after ``SURE`` measured epochs over the present number. And
# each change is a *trial*, since a model may be wrong. The times after a change are compared with
# the measured line of the previous number at as many elements. ``SETTLES`` epochs do not count,
# because state parts of other partitions are read until they are merged. If the new number is not
# better, the previous one returns, and the new one rests, twice as long each time.
#
# A choice moves groups, never results. Times are in ms. Cost: linear in the compared numbers, each
# epoch.


GAIN = 0.1
MIN_SAVING_MS = 0.5
"""ms that a change is to save at least."""
SURE, STEADY, SETTLES, JUDGED = 16, 8, 8, 16
REST, MOST_REST = 64, 4096
"""Epochs for which a number rests that was no better."""
MOST_DECIDED = 16


class EpochSample(NamedTuple):
    """The measurements of an epoch: over so many ``partitions``, of so many ``elements``; ms that
    it was ``expected`` to take (0: unknown) and ``took``; the times that a similar one ``would``
    take over each number, and by its elements over this number (``lines``).
    """

    partitions: int
    elements: int
    expected: float
    took: float
    would: Mapping[int, float]
    lines: Sequence[LinearCost]


@dataclass(slots=True)
class _Trial:
    """Tests whether ``after`` partitions are better than ``before``: by how much epochs are ``off``
    the ``lines`` of the previous number, times the ``usual`` error of these lines.
    """

    decided: Resized
    lines: Sequence[LinearCost]
    usual: float
    settles: int
    off: list[float] = field(default_factory=list)


def _line(lines: Sequence[LinearCost], elements: int) -> float:
    """Returns the time of an epoch of so many elements, by the fastest way."""
    duration = min((w.fixed + w.each * elements for w in lines if w.most >= elements), default=0.0)
    return max(duration, MIN_SAVING_MS)


@dataclass(slots=True)
class PartitionCountModel:
    """Decides for one run: ``see`` each epoch, ``propose`` a number before the next one, and call
    ``changes`` if it is taken.

    ``means``: predicted times of recent epochs over each number. ``measured``: by number, the
    epochs and the ms that were predicted and taken.
    """

    means: dict[int, DecayingMean] = field(default_factory=dict)
    measured: dict[int, list[float]] = field(default_factory=dict)
    judged: Resized | None = None
    """The change whose trial ended with the last epoch, with its measured result."""
    _now: int = 0
    _epochs: int = 0  # since it began, over any number
    _over: int = 0  # epochs over the present one
    _best: int = 0
    _streak: int = 0
    _usual: DecayingMean = field(default_factory=DecayingMean)
    _last: EpochSample | None = None
    _trial: _Trial | None = None
    _failed: _Trial | None = None
    # until when it rests, and how long
    _rests: dict[int, tuple[int, int]] = field(default_factory=dict)

    def see(self, sample: EpochSample) -> None:
        """Records an epoch."""
        if sample.partitions != self._now:
            self._begin(sample.partitions)
        self._epochs += 1
        self._over += 1
        self._last, self.judged = sample, None
        if sample.expected:
            sums = self.measured.setdefault(sample.partitions, [0, 0.0, 0.0])
            self.measured[sample.partitions] = [
                sums[0] + 1, sums[1] + sample.expected, sums[2] + sample.took
            ]  # fmt: skip
        self._usual.add(sample.took / _line(sample.lines, sample.elements))
        for n, ms in sample.would.items():
            self.means.setdefault(n, DecayingMean()).add(ms)
        if self._trial is not None and self._trial.decided.partitions != self._now:
            self._trial = None  # the number was chosen elsewhere
        if self._trial is not None:
            self._judge(self._trial, sample)
        best = self._better()
        self._streak = self._streak + 1 if best == self._best else 1
        self._best = best

    def _begin(self, now: int) -> None:
        """Begins to measure another number of partitions."""
        self._now, self._over, self._streak, self._best = now, 0, 0, now
        self._failed, self._usual = None, DecayingMean()
        self.means.clear()

    def _judge(self, trial: _Trial, sample: EpochSample) -> None:
        if trial.settles:
            trial.settles -= 1
            return
        trial.off.append(sample.took / (_line(trial.lines, sample.elements) * trial.usual))
        if len(trial.off) < JUDGED:
            return
        off, decided = statistics.median(trial.off), trial.decided
        self.judged = msgspec.structs.replace(
            decided, measured_ms=round(off * decided.ms_before, 3)
        )
        self._trial, self._failed = None, trial if off >= 1.0 else None
        if self._failed is not None:
            _, rested = self._rests.get(decided.partitions, (0, REST // 2))
            rest = min(2 * rested, MOST_REST)
            self._rests[decided.partitions] = self._epochs + rest, rest

    def _better(self, most: int = 0) -> int:
        """Returns the best number that does not rest, if it is better by enough; else the present
        one. ``most``: the largest number (0: any).
        """
        current_mean = self.means.get(self._now)
        open_ = [
            n
            for n in self.means
            if (n <= most or not most) and self._rests.get(n, (0, 0))[0] <= self._epochs
        ]
        if current_mean is None or not open_:
            return self._now
        best = min(open_, key=lambda n: (self.means[n].mean, n))
        enough = current_mean.mean - self.means[best].mean >= max(
            GAIN * current_mean.mean, MIN_SAVING_MS
        )
        return best if enough else self._now

    def propose(self, epoch: int, now: int, most: int) -> Resized | None:
        """Proposes the number of partitions of an epoch, up to ``most``; None: the present one
        stays.
        """
        if now != self._now or self._trial is not None:
            return None
        if (failed := self._failed) is not None:
            old = failed.decided
            took = round(statistics.median(failed.off) * old.ms_before, 3)
            before = f"over {old.partitions_before} they took {old.ms_before:.1f}"
            why = f"epochs take {took:.1f} ms, and {before}"
            return Resized(epoch, now, old.partitions_before, took, old.ms_before, why)
        best = self._better(most)
        if self._over < SURE or self._streak < STEADY or best != self._best or best == now:
            return None
        was, expected = (round(self.means[n].mean, 3) for n in (now, best))
        why = f"epochs like those of late are predicted to take {expected:.1f} ms, not {was:.1f}"
        return Resized(epoch, now, best, was, expected, why)

    def changes(self, decided: Resized) -> None:
        """Notes that the following epochs have that number."""
        back, self._failed = self._failed is not None, None
        if self._last is not None and not back:
            usual = self._usual.mean or 1.0
            self._trial = _Trial(decided, self._last.lines, usual, SETTLES)


def merge_decisions(
    before: Sequence[Resized], news: Resized | None, judged: Resized | None
) -> list[Resized]:  # fmt: skip
    """Returns the latest decisions, with the result of the ``judged`` one and with the ``news``.

    >>> one = Resized(7, 4, 2, 20.0, 15.0, "why")
    >>> judged = Resized(7, 4, 2, 20.0, 15.0, "why", 16.0)
    >>> [decision.measured_ms for decision in merge_decisions([one], None, judged)]
    [16.0]
    """
    decisions = [judged if judged and d.epoch == judged.epoch else d for d in before]
    if news is not None and news.epoch not in {d.epoch for d in decisions}:
        decisions.append(news)
    return decisions[-MOST_DECIDED:]


MODEL, CORES, LOAD, FIXED, PLACEMENT = "model", "cores", "load", "fixed", "placement"
FIRST, EACH = 16, 8
"""The first epochs of a run are samples, whose costs are measured, and later each so many-th."""


def chosen_of(last: Manifest | None) -> int:
    """Returns the cores from which the model chose the number of partitions of the last epoch; 0:
    the model did not choose.
    """
    costs = None if last is None else last.epoch_costs
    degree = None if costs is None else costs.partition_policy
    return degree.max_partitions if degree is not None and degree.policy == MODEL else 0


class PartitionCountPolicy:
    """Decides the number of partitions of one run. ``by``: one of the words above. ``cores``: of
    this machine, if tasks run on it (0: executors report theirs). ``table_cores``: the cores from
    which the present number was chosen.
    """

    def __init__(
        self, by: str, cores: int, executor: Executor, clock: Callable[[], int], *,
        balancing: Balancing | None = None, table_cores: int = 0,
    ) -> None:  # fmt: skip
        self.by, self.pace, self.balancing = by, ParallelismPolicy(cores), balancing
        self._has_rounds = balancing is not None and balancing.resizes
        self.always = by == MODEL or self._has_rounds
        """Whether each epoch is a sample."""
        self._epochs = 0
        self.news: Resized | None = None
        """The change for the next intention; None if there is none."""
        self._model, self._fixed_cores, self._executor = PartitionCountModel(), cores, executor
        self._intake: dict[int, list[float]] = {}
        self._following = ExecutorCoreTracker(clock, always=by == CORES, table_cores=table_cores)
        if balancing is not None and self._has_rounds:
            balancing.wanted = self._resize_by_model if by == MODEL else None

    @property
    def decides(self) -> bool:
        """Whether the number may change during the run, or groups may move."""
        return self.balancing is not None or self.by in (MODEL, CORES)

    @property
    def max_partitions(self) -> int:
        """The largest number of partitions (0: unknown)."""
        return self._fixed_cores or cores_of(self._executor)

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """Returns the group table of an epoch if it changes; None: it stays."""
        new: GroupTable | None = None
        if self.by in (MODEL, CORES):
            new = self._following.deal(table, cores_of(self._executor))
        if new is None and self.balancing is not None:
            new = self.balancing.deal(epoch, table)
        if new is not None or self.by != MODEL or self._has_rounds:
            return new
        parts = self._resize_by_model(epoch, table.partitions)
        if parts is None:
            return None
        return table_of_partitions(spread(table, np.ones(table.groups), parts[0]), parts[0])

    def _resize_by_model(self, epoch: int, now: int) -> tuple[int, str] | None:
        """Returns and applies the number of partitions that the model proposes for an epoch, with
        the reason.
        """
        most = self.max_partitions
        resized = self._model.propose(epoch, now, most) if most else None
        if resized is None:
            return None
        self._model.changes(resized)
        self.news = resized
        return resized.partitions, resized.reason

    def look(self) -> None:
        """Determines where jobs would run now, on how many cores, and whether the next epoch is a
        sample.
        """
        pace, executor = self.pace, self._executor
        self._epochs += 1
        pace.samples = self.always or self._epochs <= FIRST or self._epochs % EACH == 0
        pace.cores = self.max_partitions
        pace.here, pace.light_here = all_here(executor), is_here(executor)

    def costs(
        self,
        intention: EpochIntent,
        done: Sequence[TaskOutcome],
        last: Manifest,
        delay: Delayed | None,
    ) -> Costs:
        """Records the costs of an epoch; returns them with the report about the number of
        partitions.
        """
        if self.balancing is not None:
            self.balancing.look(cores_of(self._executor))
        usual, known = (
            not intention.reads_static and intention.replacement is None,
            last.epoch_costs,
        )
        if usual:
            self.pace.learn(done)
        if not self.pace.samples and known is not None and intention.partition_decision is None:
            choice = msgspec.structs.replace(self.pace.choice, epoch=intention.epoch)
            return msgspec.structs.replace(known, last_epoch=choice, delay=delay)
        costs, self.news = self.pace.describe_epoch(intention.epoch, delay), None
        if usual and not is_starting(self._executor):
            self._see(costs)
        before = last.epoch_costs.partition_policy if last.epoch_costs is not None else None
        decided = before.decisions if before is not None else []
        costs.partition_policy = Degree(
            self.by,
            self.max_partitions,
            {n: round(mean.mean, 3) for n, mean in sorted(self._model.means.items())},
            {n: list(sums) for n, sums in sorted(self._model.measured.items())},
            {n: list(sums) for n, sums in sorted(self._intake.items())},
            merge_decisions(decided, intention.partition_decision, self._model.judged),
        )
        return costs

    def _see(self, costs: Costs) -> None:
        choice, lines = costs.last_epoch, self.pace.ways(here=self.pace.here)
        expected = choice.predicted_ms.get(choice.mode, 0.0)
        self._model.see(
            EpochSample(
                costs.partitions,
                choice.elements,
                expected,
                choice.measured_ms,
                costs.predicted_ms_by_partitions,
                lines,
            )
        )
        if choice.mode == SPREAD and expected:
            n, guessed, took = self._intake.get(choice.readers, (0, 0.0, 0.0))
            self._intake[choice.readers] = [n + 1, guessed + expected, took + choice.measured_ms]
