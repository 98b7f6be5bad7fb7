"""The choice of the parallelism of an epoch's job: one task or many
(docs/decisions/0007-one-task-or-many.md).

The model ``epochs`` predicts the time of an epoch for each way. It follows from the costs of
operators, the critical path and a line over measurements (below, and
``runtime.cost_model.epoch_time_trend``). It also predicts the CPU time of the tasks, and of
Spark's JVM if that is local; ``parallelism_choice`` chooses by both. Without measurements an epoch
is one task unless it is very large. A way that was not tried for long, and is nearly the better
one, is tried again. All ways return the same outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Choice, Costs, Delayed
from levada.connectors.config.input_formats import LINES
from levada.connectors.sources.splits import AnyReference, DerivedSplit, FileSplit, OffsetSplit
from levada.core.size_thresholds import register
from levada.runtime.cost_model.admission_control import LinearCost
from levada.runtime.cost_model.epoch_time_trend import (
    EpochTimeTrend,
    Interval,
    Line,
    Load,
    StageLoad,
    decay_weight,
    over_partitions,
    time_as_many_tasks,
    time_as_one_task,
)
from levada.runtime.cost_model.parallelism_choice import ONE, SPREAD, Cost, Pressure, choose
from levada.runtime.cost_model.smoothing import DecayingMean, numbers
from levada.runtime.placement.task_graph import reader
from levada.runtime.placement.task_placement import TaskPlacement
from levada.runtime.task.ingest_task import Payload

# bytes of references per intake task at most, read one after the other
BUNDLE = register(f"{__name__}.BUNDLE", 64 << 20)
FIT_ELEMENTS = (
    100_000  # elements: the lines of the ways go through the points at this number and at 0
)
# bytes, the most that one task ever receives; a job of more is spread
MOST_BYTES = register(f"{__name__}.MOST_BYTES", 512 << 20)
UNLIMITED_ELEMENTS = 10**9  # elements, if nothing limits them
# elements, of these formats; the work of more outweighs a task's cost
LIGHT = register(f"{__name__}.LIGHT", 1_000)
LIGHT_FORMATS = frozenset((*LINES, "csv", "ndjson"))
LIGHT_BYTES = register(f"{__name__}.LIGHT_BYTES", 4 << 20)  # where there are topics
_NO_FORMATS: Mapping[str, str] = {}
HERE = "in_process"
TASK = 5.0  # ms that an additional reader must save
LAUNCH = 1.0  # ms of the driver for an additional task of a stage
MAX_TRIAL_RATIO = 1.1  # how much worse a way may be predicted to be, and still be tried
TRY = 32  # epochs between trials, times how much worse
NEAR_UNKNOWN, SOON = 1.5, 8  # the same for a way whose guess has not been corrected yet
JOB, SHUFFLE = 20.0, 60.0  # CPU-ms of Spark's JVM for a job and for each shuffle, as a guess
MOST_OFF = 2.0  # the largest excess over the prediction with which an epoch counts
FIRST_OFF = 5.0  # the same for the first epochs of a way, which are forgotten soonest
SURE = 2  # epochs
FOLLOWS = 0.2  # how fast the cost of work on a way follows measurements
MOST_PARTS = 64  # of the reported parts of a plan's work
TOO_MUCH = "it is more than one task receives"
BACKLOG = Pressure()


class ParallelismPolicy:
    """Decides for one engine on so many ``cores``, epoch after epoch: call ``decide`` before each,
    and ``took`` and ``learn`` after it. ``here``, ``light_here``: whether all jobs, and light jobs,
    run in the driver's process. ``samples``: whether epochs in that process are predicted and
    measured, too. They leave no choice, so some samples are enough.
    """

    def __init__(self, cores: int = 0) -> None:
        self.cores, self.here, self.light_here, self.samples = cores, False, False, True
        self._stages = 0
        self._partitions = self._at_once = 1
        self._light, self._large, self._references = False, False, 0
        self._load: Load | None = None  # of the epoch that was decided last
        self._waits = DecayingMean()
        self.work = OperatorCosts()
        self._trends = {HERE: EpochTimeTrend(3.0, 1.0), ONE: EpochTimeTrend(20.0, 1.0)}
        self._jvm = {ONE: EpochTimeTrend(JOB, 0.0)}  # CPU time of Spark's JVM, by the work of tasks
        self._dear = {HERE: 1.0, ONE: 1.0, SPREAD: 1.0}  # CPU time of work, by what was predicted
        self._since = {ONE: 0, SPREAD: 0}  # epochs since it was measured
        self.interval = Interval(None)
        self._jvm_took: float | None = None  # ms, in the last epoch
        self.choice = Choice()
        self.sums: dict[str, list[float]] = {}

    def decide(
        self,
        references: Sequence[AnyReference],
        stages: int,
        partitions: int,
        pressure: Pressure = BACKLOG,
        *,
        formats: Mapping[str, str] = _NO_FORMATS,
    ) -> Choice:
        """Decides how an epoch of these references runs, over so many stages and partitions.
        ``formats``: of messages, by stream.
        """
        elements, size = sum([r.elements for r in references]), sum([r.size for r in references])
        if stages != self._stages:
            self._trends[SPREAD] = EpochTimeTrend(15.0 + 15.0 * stages, 1.5)
            self._jvm[SPREAD] = EpochTimeTrend(JOB + SHUFFLE * stages, 0.0)
            self._stages = stages
        self._partitions = partitions
        self._at_once = cores = self.cores or partitions
        few = elements <= LIGHT and (size <= LIGHT_BYTES or not formats)
        self._light = few and all(_is_light(r, formats) for r in references)
        self._large, self._references = size > MOST_BYTES, len(references)
        if not self.samples and self._is_here() and not self._large:
            self.choice = Choice(0, elements, ONE, partitions, reason="it runs in the driver")
            return self.choice
        self._load = load = self.work.load(elements)
        if load is None:
            self.choice = self._unknown(elements)
            return self.choice
        readers = _readers(load, len(references), cores)
        on_way = _on_way(load, partitions, cores, readers)
        predicted = {way: self._trends[way].predict(x) for way, x in on_way.items()}
        work = time_as_one_task(load, partitions)
        cpu = {way: work * self._dear[way] + self._jvm[way].predict(work) for way in (ONE, SPREAD)}
        way, why = self._way(predicted, cpu, pressure)
        expected = work * self._dear[way]
        self.choice = Choice(0, elements, way, readers, predicted, 0.0, expected, 0.0, cpu, why)
        return self.choice

    def _unknown(self, elements: int) -> Choice:
        """Decides how an epoch runs without measurements."""
        if self._large:
            return Choice(0, elements, SPREAD, self._partitions, reason=TOO_MUCH)
        return Choice(0, elements, ONE, self._partitions, reason="it is not known what it costs")

    def _is_here(self) -> bool:
        """Whether the epoch would run in the driver's process in any case."""
        return self.here or (self._light and self.light_here)

    def _way(
        self, took: Mapping[str, float], cpu: Mapping[str, float], pressure: Pressure
    ) -> tuple[str, str]:
        """Returns the way and the reason for it; now and then the other way, if it would be hardly
        worse.
        """
        if self._large:
            return SPREAD, TOO_MUCH
        one, spread = (Cost(took[w], self._trends[w].line()[0], cpu[w]) for w in (ONE, SPREAD))
        best = choose(one, spread, pressure)
        other = SPREAD if best.way == ONE else ONE
        if self._is_due(other, best.worse):
            return other, "it is tried, since it may be as good"
        return best.way, best.why

    def _is_due(self, way: str, worse: float) -> bool:
        """Whether to try a way whose prediction is so many times worse. The first trial of a way
        loads kernels into more processes and tells little, so there is a second.
        """
        epochs, measured = self._since[way], self._trends[way].measured
        if measured == 1:
            return epochs >= TRY
        if measured == 0:
            return worse < NEAR_UNKNOWN and epochs >= SOON
        return worse < MAX_TRIAL_RATIO and epochs >= TRY * worse

    @property
    def is_light(self) -> bool:
        """Whether the epoch that was decided last is light if it runs as one task: it has few
        elements, small messages, and no code that could crash its process parses them (documents,
        Parquet). The driver may run light epochs itself (``runtime.warmup_executor``).
        """
        return self._light

    def took(self, seconds: float, *, here: bool, jvm: float | None = None) -> None:
        """Records the time of the epoch. ``here``: in the driver's process. ``jvm``: CPU seconds of
        Spark's JVM (None: it runs elsewhere).
        """
        way = HERE if here else self.choice.mode
        self._jvm_took = None if here or jvm is None else jvm * 1e3
        self.choice = msgspec.structs.replace(self.choice, mode=way, measured_ms=seconds * 1e3)
        for known in self._since:
            self._since[known] = 0 if known == way else self._since[known] + 1

    def spent(self, seconds: float) -> None:
        """Records the CPU time of this process in the epoch, up to its publication."""
        apart = (
            0.0
            if self.choice.mode == HERE
            else self.choice.measured_task_cpu_ms + (self._jvm_took or 0.0)
        )
        self.interval.learn(self.choice.elements, seconds * 1e3 + apart)

    def learn(self, done: Sequence[TaskOutcome]) -> None:
        """Learns from the outcomes of the epoch's tasks, if it was predicted."""
        choice = self.choice
        if not self.samples and not choice.predicted_ms:
            return
        if waits := [
            max(outcome.seconds - outcome.cpu_seconds, 0.0) * 1e3
            for outcome in done
            if outcome.stage
        ]:
            self._waits.add(sum(waits) / len(waits))
        alone_, apart_ = measure_times(done, self._at_once, choice.readers)
        choice.measured_task_cpu_ms = alone_
        if (
            choice.predicted_task_cpu_ms
            and alone_
            and self._trends[choice.mode].measured > 2 * SURE
        ):
            # consecutive calls in one process cost less than calls in several
            off = min(max(alone_ / choice.predicted_task_cpu_ms, 1 / MOST_OFF), MOST_OFF)
            self._dear[choice.mode] *= off**FOLLOWS
        if choice.predicted_ms:
            # by the actual work, not by the predicted one, which has errors of its own
            x = apart_ if choice.mode == SPREAD else alone_
            trend = self._trends[choice.mode]
            # a delayed epoch tells little: lasting effects show soon enough
            most = MOST_OFF if trend.measured >= SURE else FIRST_OFF
            trend.learn(x, min(choice.measured_ms, most * max(trend.predict(x), 1.0)))
            if self._jvm_took is not None:
                jvm = self._jvm[choice.mode]
                jvm.learn(alone_, min(self._jvm_took, most * max(jvm.predict(alone_), 1.0)))
            epochs, guessed, took = self.sums.get(choice.mode, [0, 0.0, 0.0])
            guessed += choice.predicted_ms[choice.mode]
            self.sums[choice.mode] = [epochs + 1, guessed, took + choice.measured_ms]
        if choice.elements:
            self.work.learn(choice.elements, done)

    def ways(self, *, here: bool) -> list[LinearCost]:
        """Returns the cost of a job over its elements, for each way that it may run; [] without
        measurements. ``here``: all jobs run in the driver's process.
        """
        empty, full = self.work.load(0), self.work.load(FIT_ELEMENTS)
        if empty is None or full is None:
            return []
        shape = (self._partitions, self._at_once, self.choice.readers)
        none, many = _on_way(empty, *shape), _on_way(full, *shape)
        light = LIGHT if self._trends[HERE].measured else 0
        most = {
            HERE: UNLIMITED_ELEMENTS if here else light,
            ONE: 0 if here else UNLIMITED_ELEMENTS,
        }
        most[SPREAD] = 0 if here else UNLIMITED_ELEMENTS
        return [self._affine(w, none[w], many[w], n) for w, n in most.items() if n]

    def _affine(self, way: str, none: float, many: float, most: int) -> LinearCost:
        a, b = self._trends[way].line()
        return LinearCost(a + b * none, b * (many - none) / FIT_ELEMENTS, most)

    def describe_epoch(self, epoch: int, delay: Delayed | None = None) -> Costs:
        """Describes how the last epoch ran, what was expected, and the costs of each part of the
        work.
        """
        last = msgspec.structs.replace(self.choice, epoch=epoch)
        parts = describe_parts(self.work, self.choice.elements, self._partitions)
        dearest = {n: parts[n] for n in sorted(parts, key=lambda n: -parts[n][-1])[:MOST_PARTS]}
        now = self._partitions
        return Costs(
            last, dict(self.sums), dearest, self.times_by_partitions(), delay, partitions=now,
            predicted_ms_by_readers=self.intake(),
            interval_ms=round(self.interval.ms, 1),
            fixed_cpu_ms=round(self.interval.measured_cost, 1),
        )  # fmt: skip

    def times_by_partitions(self) -> dict[int, float]:
        """Predicts the ms of an epoch like the last one over other numbers of partitions, up to the
        number of cores. {}: there are no measurements, or no other numbers. Cost: linear in stages
        and numbers.
        """
        if self._load is None:
            return {}
        times = {
            n: self._fastest_time(self._load, n) for n in numbers(self.cores, self._partitions)
        }
        return times if len(times) > 1 else {}

    def _fastest_time(self, load: Load, parts: int) -> float:
        """Returns the time of the fastest way. A call also waits for disks and for its turn."""
        now, cores, wait = self._partitions, self._at_once, self._waits.mean
        readers = _readers(load, self._references, cores)
        on_way = _on_way(over_partitions(load, now, parts), parts, cores, readers)
        more = self._stages * (parts - now)
        waves = self._stages * (-(-parts // cores) - -(-now // cores))
        # for a light epoch here only CPU time is measured
        beside = {HERE: 0.0 if self._light else more * wait, ONE: more * wait}
        beside[SPREAD] = waves * wait + more * LAUNCH
        ways = self._open()
        return max(min(self._trends[w].predict(on_way[w]) + beside[w] for w in ways), 0.0)

    def _open(self) -> tuple[str, ...]:
        """Returns the ways that an epoch like the last one may run."""
        if self.here:
            return (HERE,)
        if self._large:
            return (SPREAD,)
        return (HERE,) if self._light and self.light_here else (ONE, SPREAD)

    def intake(self) -> dict[int, float]:
        """Predicts the ms of a spread epoch like the last one, by the number of readers. {}: there
        are no measurements, or one reference.
        """
        most = min(self._references, self.cores or self._partitions)
        if self._load is None or most < 2 or self.here:
            return {}
        shape = (self._load, self._partitions, self._at_once)
        trend = self._trends[SPREAD]
        return {
            m: trend.predict(_on_way(*shape, m)[SPREAD]) + TASK * (m - self.choice.readers)
            for m in numbers(most, self.choice.readers)
        }


def _on_way(load: Load, partitions: int, cores: int, readers: int) -> dict[str, float]:
    """Returns the ms on the critical path of an epoch, by way."""
    one = time_as_one_task(load, partitions)
    return {HERE: one, ONE: one, SPREAD: time_as_many_tasks(load, partitions, cores, readers)}


def _readers(load: Load, references: int, cores: int) -> int:
    """Returns the number of readers: each shortens the reading and costs a task."""
    most = range(1, max(min(references, cores), 1) + 1)
    return min(most, key=lambda m: load.reading / m + TASK * m)


def _is_light(reference: AnyReference, formats: Mapping[str, str]) -> bool:
    match reference:
        case FileSplit():
            return reference.format in LIGHT_FORMATS
        case OffsetSplit():
            return formats.get(reference.stream) in LIGHT_FORMATS
        case DerivedSplit():
            return True


def bundles(
    references: Sequence[AnyReference],
    tasks: int,
    *,
    apart: bool = False,
    placed: TaskPlacement | None = None,
) -> list[Payload]:
    """Bundles references up to a bounded size, at least one task's share each, in their order
    within a partition. ``apart``: each bundle has one source partition and the name of its reader,
    so that its output can be counted. ``placed``: each bundle has the references of one machine.
    """
    if not references:
        return []
    if apart:
        by_reader: dict[str, list[AnyReference]] = {}
        for r in references:
            by_reader.setdefault(reader(r.stream, r.partition), []).append(r)
        return [
            msgspec.structs.replace(payload, reader=name)
            for name, group_references in by_reader.items()
            for payload in bundles(group_references, tasks)
        ]
    if placed is not None:
        by_machine: dict[int, list[AnyReference]] = {}
        for r in references:
            by_machine.setdefault(placed.machine_of(r), []).append(r)
        each = max(tasks // len(by_machine), 1)
        return [
            payload
            for group_references in by_machine.values()
            for payload in bundles(group_references, each)
        ]
    total = sum(r.size for r in references)
    bound = max(min(BUNDLE, total // tasks), 1)
    out: list[Payload] = []
    size = bound
    for reference in references:
        if size >= bound:
            out.append(Payload([]))
            size = 0
        out[-1].references.append(reference)
        size += max(reference.size, 1)
    return out


# Learns the costs of operators from the epochs that run: a line a + b rows for each operator, and
# for the overhead of a stage around them, as in a profile (``cli/app/profile``; Zhang et al.,
# SIGMOD 2019, section 3.1).
#
# Each call of a stage is a point for the line of each operator in it. Epochs differ in size and
# partitions in their share, so fixed costs become visible. The rows of an operator follow from the
# elements of an epoch, by the ratio measured so far. Old points fade. The first epochs of a
# process, which load kernels, fade at once, and the very first completely. Cost: some microseconds
# for each operator, partition and epoch.


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
