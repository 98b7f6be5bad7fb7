"""Chooses the number of partitions by the model ``epochs``: the number with the least predicted
time of recent epochs (``ParallelismPolicy.times_by_partitions``).

Two rules prevent oscillation. A number is taken if it was the best in ``STEADY`` epochs in a row,
by at least ``GAIN`` of the time, and after ``SURE`` measured epochs over the present number. And
each change is a *trial*, since a model may be wrong. The times after a change are compared with the
measured line of the previous number at as many elements. ``SETTLES`` epochs do not count, because
state parts of other partitions are read until they are merged. If the new number is not better, the
previous one returns, and the new one rests, twice as long each time.

A choice moves groups, never results. Times are in ms. Cost: linear in the compared numbers, each
epoch.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from levada.checkpoint.manifest import Resized
from levada.runtime.cost_model.admission_control import LinearCost
from levada.runtime.cost_model.smoothing import DecayingMean

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
    """What the last epoch has brought to its end: a change, with what came of it."""
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

    def see(self, seen: EpochSample) -> None:
        """Records an epoch."""
        if seen.partitions != self._now:
            self._begin(seen.partitions)
        self._epochs += 1
        self._over += 1
        self._last, self.judged = seen, None
        if seen.expected:
            sums = self.measured.setdefault(seen.partitions, [0, 0.0, 0.0])
            self.measured[seen.partitions] = [
                sums[0] + 1, sums[1] + seen.expected, sums[2] + seen.took
            ]  # fmt: skip
        self._usual.add(seen.took / _line(seen.lines, seen.elements))
        for n, ms in seen.would.items():
            self.means.setdefault(n, DecayingMean()).add(ms)
        if self._trial is not None and self._trial.decided.partitions != self._now:
            self._trial = None  # the number was chosen elsewhere
        if self._trial is not None:
            self._judge(self._trial, seen)
        best = self._better()
        self._streak = self._streak + 1 if best == self._best else 1
        self._best = best

    def _begin(self, now: int) -> None:
        """Begins to measure another number of partitions."""
        self._now, self._over, self._streak, self._best = now, 0, 0, now
        self._failed, self._usual = None, DecayingMean()
        self.means.clear()

    def _judge(self, trial: _Trial, seen: EpochSample) -> None:
        if trial.settles:
            trial.settles -= 1
            return
        trial.off.append(seen.took / (_line(trial.lines, seen.elements) * trial.usual))
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
