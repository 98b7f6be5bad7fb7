"""Learns the costs of operators from the epochs that run: a line a + b rows for each operator, and
for the overhead of a stage around them, as in a profile (``cli/app/profile``; Zhang et al., SIGMOD
2019, section 3.1).

Each call of a stage is a point for the line of each operator in it. Epochs differ in size and
partitions in their share, so fixed costs become visible. The rows of an operator follow from the
elements of an epoch, by the ratio measured so far. Old points fade. The first epochs of a process,
which load kernels, fade at once, and the very first completely. Cost: some microseconds for each
operator, partition and epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from levada.checkpoint.epoch_context import TaskOutcome
from levada.runtime.cost_model.epoch_time_trend import Load, StageLoad, decay_weight
from levada.runtime.cost_model.least_squares import Line

READING = "reading"
KEEP = 0.9
"""The weight of earlier measurements when an epoch adds its own."""
MS = 1e3


def overhead_name(stage: int) -> str:
    """Names the overhead of a stage around its operators."""
    return f"around {stage}"


@dataclass(slots=True)
class Part:
    """An operator, the overhead of a stage, or reading: its line (ms over rows), its rows for each
    element, and the share of an epoch's rows that the fullest call has.
    """

    stage: int
    line: Line = field(default_factory=Line)
    per_element: float = 0.0
    fullest: float = 1.0
    measured: float = 0.0  # ms in the last epoch
    known: bool = False
    epochs: int = 0

    def learn(self, points: Sequence[tuple[float, float]], elements: int) -> None:
        """Records the calls of one epoch: rows and ms of each."""
        self.line.fade(decay_weight(max(self.epochs - 1, 0), KEEP))
        self.epochs += 1
        for rows, ms in points:
            self.line.add(rows, ms)
        total = sum(rows for rows, _ in points)
        self.measured = sum(ms for _, ms in points)
        if total and elements:
            self.per_element = self._mean(self.per_element, total / elements)
            self.fullest = self._mean(self.fullest, max(rows for rows, _ in points) / total)
            self.known = True

    def _mean(self, before: float, now: float) -> float:
        return (before + now) / 2 if self.known else now

    def predict(self, elements: int, calls: int) -> float:
        """Predicts the ms of an epoch of so many elements."""
        a, b = self.line.fit_damped()
        return calls * a + b * self.per_element * elements


@dataclass(slots=True)
class OperatorCosts:
    """The costs of all parts of a plan's work."""

    parts: dict[str, Part] = field(default_factory=dict)

    def learn(self, elements: int, done: Sequence[TaskOutcome]) -> None:
        """Records the outcomes of the tasks of an epoch of so many elements."""
        points: dict[tuple[str, int], list[tuple[float, float]]] = {}
        readers = [outcome for outcome in done if outcome.stage == 0]
        for outcome in readers:
            points.setdefault((READING, 0), []).append(
                (elements / len(readers), outcome.cpu_seconds * MS)
            )
        for outcome in done:
            if outcome.stage:
                for name, rows, ms in _parts(outcome):
                    points.setdefault((name, outcome.stage), []).append((rows, ms))
        self.parts = {name: p for name, p in self.parts.items() if (name, p.stage) in points}
        for (name, stage), part_points in points.items():
            self.parts.setdefault(name, Part(stage)).learn(part_points, elements)

    def load(self, elements: int) -> Load | None:
        """Predicts the load of an epoch of so many elements; None without measurements."""
        if READING not in self.parts:
            return None
        stages: dict[int, list[Part]] = {}
        for part in self.parts.values():
            stages.setdefault(part.stage, []).append(part)
        (reading,) = stages.pop(0)
        return Load(
            reading.predict(elements, 1),
            tuple(_stage(stage_parts, elements) for _, stage_parts in sorted(stages.items())),
        )


def measure_times(done: Sequence[TaskOutcome], cores: int, readers: int) -> tuple[float, float]:
    """Returns the ms on the critical path of an epoch, from the times of its tasks: as one task,
    and spread over so many cores and readers.
    """
    stages: dict[int, list[float]] = {}
    for outcome in done:
        stages.setdefault(outcome.stage, []).append(outcome.cpu_seconds * MS)
    reading = stages.pop(0, [0.0])
    spread = sum(max(*task_times, sum(task_times) / cores) for task_times in stages.values())
    alone = sum(reading) + sum(map(sum, stages.values()))
    return alone, sum(reading) / max(min(readers, cores), 1) + spread


def _parts(outcome: TaskOutcome) -> list[tuple[str, float, float]]:
    """Returns the operators of a call with their rows and ms, and the overhead around them."""
    nodes = [
        (name, outcome.rows_by_node.get(name, 0), s * MS) for name, s in outcome.cpu_by_node.items()
    ]
    rest = max(outcome.cpu_seconds * MS - sum(ms for *_, ms in nodes), 0.0)
    return [*nodes, (overhead_name(outcome.stage), sum(rows for _, rows, _ in nodes), rest)]


def _stage(parts: Sequence[Part], elements: int) -> StageLoad:
    fixed = rows = most = 0.0
    for part in parts:
        a, b = part.line.fit_damped()
        fixed += a
        rows += b * part.per_element * elements
        most += b * part.per_element * elements * part.fullest
    return StageLoad(fixed, rows, most / rows if rows else 1.0)


def describe_parts(
    work: OperatorCosts, elements: int, partitions: int
) -> Mapping[str, list[float]]:
    """Describes each part: a (ms), b (ns a row), rows for each element, predicted ms of an epoch of
    so many elements, measured ms of the last one.
    """
    costs = {}
    for name, part in work.parts.items():
        a, b = part.line.fit_damped()
        calls = partitions if part.stage else 1
        guess = part.predict(elements, calls)
        costs[name] = [a, b * 1e6, part.per_element, guess, part.measured]
    return costs
