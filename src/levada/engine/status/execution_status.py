"""The execution of epochs in sentences: predicted and measured times of each way to run them, and
the costs of the parts of the work. Times are of the last epoch and of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field

import msgspec

from levada.checkpoint.manifest import Costs, Delayed, LearningStep
from levada.core.frozen import frozen
from levada.engine.status.partition_count_status import (
    DegreeStatus,
    degree_rows,
    degree_status,
    describe_degree,
)
from levada.plan.execution.plan import Plan
from levada.runtime.cost_model.admission_control import sentence

WORDS = {"here": "in the driver's process", "one": "as one task", "spread": "spread over tasks"}
SHOWN = 5
PART = ("part", "a ms", "b ns a row", "rows an element", "predicted ms", "measured ms")


@frozen
class ChoiceStatus:
    """The execution of an epoch. ``way``: here (in the driver's process), one (as one task) or
    spread. ``readers``: the tasks that read. ``predicted``: ms for each way ({} before the first
    measurement). ``took``: ms. ``expected`` and ``worked``: ms of CPU of its tasks, predicted and
    measured. ``cpu``: predicted ms of CPU of all processes for each way. ``why``: the reason for
    the way.
    """

    epoch: int
    elements: int
    way: str
    readers: int
    predicted: Mapping[str, float]
    took: float
    expected: float = 0.0
    worked: float = 0.0
    cpu: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


@frozen
class DelayStatus:
    """The state of a promised ``delay`` (ms). ``rows``: the elements of an epoch. ``expected``: the
    longest expected wait of an element, ms (0: unknown). ``keeps``: whether the delay is kept.
    """

    delay: int
    rows: int
    expected: float
    keeps: bool


@frozen
class CostsStatus:
    """The costs of epochs. ``last``: the last one. ``sums``: by way, the epochs of the run, ms
    predicted and ms taken. ``parts``: the most expensive parts of the work, operators by name.
    Their figures are a (ms a call), b (ns a row), rows for each element, and ms predicted and
    measured for the last epoch.

    ``partitions``: ms of an epoch by the number of partitions; it ran ``over`` one of them.
    ``intake``: ms of a spread epoch by the number of reading tasks. ``delay``: the promised delay.
    ``degree``: the policy for the number of partitions. ``interval``: the least time between the
    starts of two epochs, ms. ``fixed``: CPU-ms of an epoch without elements.
    """

    last: ChoiceStatus
    sums: Mapping[str, Sequence[float]]
    parts: Mapping[str, Sequence[float]]
    partitions: Mapping[int, float] = field(default_factory=dict)
    delay: DelayStatus | None = None
    over: int = 1
    intake: Mapping[int, float] = field(default_factory=dict)
    degree: DegreeStatus | None = None
    interval: float = 0.0
    fixed: float = 0.0


@frozen
class LearningStepStatus:
    """A step of a learned placement, from a ``slice`` of event time, at an epoch. ``before``,
    ``predicted``, ``measured``: the fraction of rows that crossed machines (-1: unknown).
    ``moved``, ``readers``: the groups and readers that moved. ``told``: a remark.
    """

    slice: str
    epoch: int
    before: float
    predicted: float
    measured: float
    moved: int
    readers: int
    told: str

    @staticmethod
    def from_step(lesson: LearningStep) -> LearningStepStatus:
        """Converts a step of a manifest."""
        return LearningStepStatus(**msgspec.structs.asdict(lesson))


def sentences(costs: CostsStatus) -> Iterator[str]:
    """Yields sentences about the choices.

    >>> last = ChoiceStatus(7, 5000, "one", 1, {"one": 31.2, "spread": 64.0}, 30.0, why="it fits")
    >>> for sentence in sentences(CostsStatus(last, {"one": [5, 151.0, 150.0]}, {})):
    ...     print(sentence)
    Epoch 7, of 5,000 elements, ran as one task: 30.0 ms, predicted 31.2; spread over tasks 64.0.
    It ran as one task because it fits.
    As one task: 5 epochs, 150 ms, predicted 151 (+0.7%).
    """
    yield _last_choice_text(costs.last)
    if costs.last.why and costs.last.way != "here":
        yield f"It ran {WORDS[costs.last.way]} because {costs.last.why}."
    for way, (epochs, predicted, took) in sorted(costs.sums.items()):
        off = f" ({predicted / took - 1:+.1%})" if took else ""
        words = WORDS[way][0].upper() + WORDS[way][1:]
        yield f"{words}: {epochs:,.0f} epochs, {took:,.0f} ms, predicted {predicted:,.0f}{off}."
    if costs.interval:
        cost = f"one takes {costs.fixed:,.1f} ms of CPU time, whatever it reads"
        why = cost if costs.fixed else "the CPU time that one takes is not known yet"
        yield f"Epochs begin at least {costs.interval:,.0f} ms apart: {why}."
    if costs.partitions:
        yield _partitions_text(costs.partitions, costs.over)
    if costs.degree is not None:
        yield from describe_degree(costs.degree, costs.over)
    if costs.delay is not None:
        yield sentence(Delayed(**asdict(costs.delay)))


def _partitions_text(partitions: Mapping[int, float], now: int) -> str:
    """Returns a sentence with the predicted times of the last epoch by the number of partitions.

    >>> _partitions_text({1: 25.04, 2: 27.3}, 2)
    'It would take 25.0 ms over 1 partition, 27.3 over 2 (as now).'
    """
    each = [
        f"{ms:,.1f}{' ms' * (i == 0)} over {n}{' partition' * (i == 0)}"
        f"{'s' * (i == 0 and n > 1)}{' (as now)' * (n == now)}"
        for i, (n, ms) in enumerate(sorted(partitions.items()))
    ]
    return f"It would take {', '.join(each)}."


def _last_choice_text(choice: ChoiceStatus) -> str:
    head = f"Epoch {choice.epoch}, of {choice.elements:,} elements, ran {WORDS[choice.way]}"
    predicted = choice.predicted.get(choice.way)
    if predicted is None:
        return f"{head}: {choice.took:,.1f} ms; nothing was known to predict it by."
    others = (
        f"; {WORDS[way]} {ms:,.1f}"
        for way, ms in choice.predicted.items()
        if way not in (choice.way, "here")
    )
    return f"{head}: {choice.took:,.1f} ms, predicted {predicted:,.1f}{''.join(others)}."


def with_operator_names(costs: Costs, plan: Plan) -> CostsStatus:
    """Converts the costs of a manifest, with operators by their names in place of their numbers."""
    parts = {
        f"{type(plan.nodes[int(name)].step).__name__} {name}"
        if name.isdigit() and int(name) in plan.nodes
        else name: values
        for name, values in costs.parts.items()
    }
    last = ChoiceStatus(**msgspec.structs.asdict(costs.last))
    delay = None if costs.delay is None else DelayStatus(**msgspec.structs.asdict(costs.delay))
    degree = degree_status(costs.degree)
    return CostsStatus(
        last, costs.sums, parts, costs.partitions, delay, costs.over, costs.intake, degree,
        costs.interval, costs.fixed,
    )  # fmt: skip


def rows(costs: CostsStatus) -> list[tuple[str, ...]]:
    """Returns a table of the costs of each part of the work, the most expensive first."""
    return [(name, *(f"{value:,.2f}" for value in values)) for name, values in costs.parts.items()]


def candidates(costs: CostsStatus) -> Iterator[list[tuple[str, ...]]]:
    """Yields tables of predicted and measured times. The first is for recent epochs by the number
    of partitions, the second for the last epoch by the number of reading tasks.
    """
    if (degree := costs.degree) is not None:
        tables = (
            degree_rows("partitions", degree.predicted or costs.partitions, degree.measured),
            degree_rows("tasks that read", costs.intake, degree.intake),
        )
        yield from filter(None, tables)


def lessons(steps: Sequence[LearningStepStatus]) -> Iterator[str]:
    """Yields sentences about the last steps of a learned placement.

    >>> step = LearningStepStatus("2004-08-08", 12, 0.75, 0.1, 0.12, 900, 3, "")
    >>> print(*lessons([step]))  # doctest: +ELLIPSIS
    Learned from 2004-08-08: 900 groups and 3 readers moved at epoch 12; 75.0% of the rows ...
    """
    for lesson in steps[-SHOWN:]:
        if lesson.told:
            yield lesson.told
        if lesson.moved or lesson.readers:
            measured = (
                f"measured {lesson.measured:.1%} in the next slice"
                if lesson.measured >= 0
                else "not measured yet"
            )
            yield (
                f"Learned from {lesson.slice}: {lesson.moved:,} groups and {lesson.readers:,} "
                f"readers moved at epoch {lesson.epoch}; {lesson.before:.1%} of the rows crossed "
                f"machines, predicted {lesson.predicted:.1%}, {measured}."
            )
        elif lesson.before >= 0:
            yield (
                f"Learned from {lesson.slice}: {lesson.before:.1%} of the rows crossed machines, "
                "and nothing much better was found."
            )
