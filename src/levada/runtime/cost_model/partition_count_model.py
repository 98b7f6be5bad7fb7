"""How many partitions there are to be, by the model ``epochs``: the number over which epochs like
those of late are predicted to take least (``Pace.over``).

So that it does not swing: another number is taken when it was the best in ``STEADY`` epochs in a
row, by ``GAIN`` of the time at least, and ``SURE`` epochs have been measured over the present one.
And a model may be wrong: so each change is a *trial*. What epochs take behind it is compared with
what the line of the number before, as it was measured, says of as many elements; ``SETTLES`` epochs
do not count, since pieces of other partitions are looked into until they are merged. If it is no
better there are as many as before again, and that number rests, twice as long each time.

A choice moves groups, never results. Times are in ms. Cost: by numbers that are compared, an epoch.
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
LEAST = 0.5
"""ms that a change is to save at least."""
SURE, STEADY, SETTLES, JUDGED = 16, 8, 8, 16
REST, MOST_REST = 64, 4096
"""Epochs for which a number rests that was no better."""
MOST_DECIDED = 16


class Seen(NamedTuple):
    """An epoch: over so many ``partitions``, of so many ``elements``; ms that it was ``expected``
    to take (0: nothing was known) and ``took``; what one like it ``would`` take over each number,
    and by its elements over this one (``lines``).
    """

    partitions: int
    elements: int
    expected: float
    took: float
    would: Mapping[int, float]
    lines: Sequence[LinearCost]


@dataclass(slots=True)
class _Trial:
    """Whether ``after`` partitions are better than ``before``: epochs ``off`` what the ``lines`` of
    these say, times what they were ``usual`` off.
    """

    decided: Resized
    lines: Sequence[LinearCost]
    usual: float
    settles: int
    off: list[float] = field(default_factory=list)


def _line(lines: Sequence[LinearCost], elements: int) -> float:
    """What an epoch of so many elements takes by the fastest way that it may go."""
    duration = min((w.fixed + w.each * elements for w in lines if w.most >= elements), default=0.0)
    return max(duration, LEAST)


@dataclass(slots=True)
class PartitionCountModel:
    """Decides for one run: ``see`` each epoch, ask what is ``wanted`` before the next one, and
    tell whether that ``changes``.

    ``means``: what epochs of late were to take over each number. ``measured``: of each number the
    epochs, ms that were predicted and taken.
    """

    means: dict[int, DecayingMean] = field(default_factory=dict)
    measured: dict[int, list[float]] = field(default_factory=dict)
    judged: Resized | None = None
    """What the last epoch has brought to its end: a change, with what came of it."""
    _now: int = 0
    _epochs: int = 0  # since it began, whatever their number
    _over: int = 0  # epochs over the present one
    _best: int = 0
    _streak: int = 0
    _usual: DecayingMean = field(default_factory=DecayingMean)
    _last: Seen | None = None
    _trial: _Trial | None = None
    _failed: _Trial | None = None
    _rests: dict[int, tuple[int, int]] = field(default_factory=dict)  # until when, and how long

    def see(self, seen: Seen) -> None:
        """An epoch is over."""
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
            self._trial = None  # somebody else has chosen
        if self._trial is not None:
            self._judge(self._trial, seen)
        best = self._better()
        self._streak = self._streak + 1 if best == self._best else 1
        self._best = best

    def _begin(self, now: int) -> None:
        """Epochs go over another number from here on."""
        self._now, self._over, self._streak, self._best = now, 0, 0, now
        self._failed, self._usual = None, DecayingMean()
        self.means.clear()

    def _judge(self, trial: _Trial, seen: Seen) -> None:
        if trial.settles:
            trial.settles -= 1
            return
        trial.off.append(seen.took / (_line(trial.lines, seen.elements) * trial.usual))
        if len(trial.off) < JUDGED:
            return
        off, decided = statistics.median(trial.off), trial.decided
        self.judged = msgspec.structs.replace(decided, seen=round(off * decided.was, 3))
        self._trial, self._failed = None, trial if off >= 1.0 else None
        if self._failed is not None:
            _, rested = self._rests.get(decided.partitions, (0, REST // 2))
            rest = min(2 * rested, MOST_REST)
            self._rests[decided.partitions] = self._epochs + rest, rest

    def _better(self, most: int = 0) -> int:
        """The best number of those that do not rest, if it is better by enough; else the present
        one. ``most``: partitions that there may be (0: any).
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
        enough = current_mean.mean - self.means[best].mean >= max(GAIN * current_mean.mean, LEAST)
        return best if enough else self._now

    def propose(self, epoch: int, now: int, most: int) -> Resized | None:
        """The number of partitions from an epoch on, of ``most`` that there may be, if it is to be
        another one.
        """
        if now != self._now or self._trial is not None:
            return None
        if (failed := self._failed) is not None:
            old = failed.decided
            took = round(statistics.median(failed.off) * old.was, 3)
            why = f"epochs take {took:.1f} ms, and over {old.before} they took {old.was:.1f}"
            return Resized(epoch, now, old.before, took, old.was, why)
        best = self._better(most)
        if self._over < SURE or self._streak < STEADY or best != self._best or best == now:
            return None
        was, expected = (round(self.means[n].mean, 3) for n in (now, best))
        why = f"epochs like those of late are predicted to take {expected:.1f} ms, not {was:.1f}"
        return Resized(epoch, now, best, was, expected, why)

    def changes(self, decided: Resized) -> None:
        """Epochs go over that number from now on."""
        back, self._failed = self._failed is not None, None
        if self._last is not None and not back:
            usual = self._usual.mean or 1.0
            self._trial = _Trial(decided, self._last.lines, usual, SETTLES)


def merge_decisions(
    before: Sequence[Resized], news: Resized | None, judged: Resized | None
) -> list[Resized]:  # fmt: skip
    """The latest decisions, with what was ``judged`` of one, and the ``news``.

    >>> one = Resized(7, 4, 2, 20.0, 15.0, "why")
    >>> [d.seen for d in followed([one], None, Resized(7, 4, 2, 20.0, 15.0, "why", 16.0))]
    [16.0]
    """
    decisions = [judged if judged and d.epoch == judged.epoch else d for d in before]
    if news is not None and news.epoch not in {d.epoch for d in decisions}:
        decisions.append(news)
    return decisions[-MOST_DECIDED:]
