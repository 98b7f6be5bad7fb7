"""How epochs were run, in sentences: what each way was predicted to take and what it took, of the
last epoch and of all since the engine began; and what each part of the work costs.
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
    """How an epoch of so many ``elements`` ran: ``way`` is here (in the driver's process), one (as
    one task) or spread; the tasks that read; ms that were ``predicted`` for each way ({}: nothing
    was known yet), and ms that it ``took``; ms of CPU of its tasks, as ``expected`` and as it was
    ``worked``; ms of CPU of all processes that were predicted for each way (``cpu``); ``why`` the
    way was taken.
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
    """How results are to come within a ``delay`` (ms): epochs of so many ``rows``, whose elements
    are ``expected`` to wait so long at most (0: nothing is known yet); whether that ``keeps`` it.
    """

    delay: int
    rows: int
    expected: float
    keeps: bool


@frozen
class CostsStatus:
    """How epochs ran: the ``last`` one; of each way the epochs of the run, ms that were predicted
    and taken (``sums``); of the dearest ``parts`` of the work, operators by their names, a (ms a
    call), b (ns a row), rows for each element, ms as predicted for the last epoch and as measured;
    ms that it would take over other numbers of ``partitions`` than those that it went ``over``, and
    spread, with other numbers of tasks that read (``intake``); the ``delay`` that is kept; who
    chooses how many partitions there are (``degree``); the least time between the starts of two
    epochs (``interval``, ms), and the CPU-ms of one without elements (``fixed``).
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
    """A step of a placement that is learned: from a ``slice`` of event time, at an epoch; the share
    of rows that crossed machines ``before``, as ``predicted`` and ``measured`` (-1: not known);
    how many groups ``moved`` and how many ``readers``; what else is ``told``.
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
        """As a manifest has it."""
        return LearningStepStatus(**msgspec.structs.asdict(lesson))


def sentences(costs: CostsStatus) -> Iterator[str]:
    """What is told of the choices.

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
    """What the last epoch would take by the number of partitions.

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
    """What a manifest has, with operators by their names in place of their numbers."""
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
    """What each part of the work costs, the dearest first."""
    return [(name, *(f"{value:,.2f}" for value in values)) for name, values in costs.parts.items()]


def candidates(costs: CostsStatus) -> Iterator[list[tuple[str, ...]]]:
    """Tables of what epochs of late are predicted to take over each number of partitions, and of
    what the last one would with each number of tasks that read, beside what was measured.
    """
    if (degree := costs.degree) is not None:
        tables = (
            degree_rows("partitions", degree.predicted or costs.partitions, degree.measured),
            degree_rows("tasks that read", costs.intake, degree.intake),
        )
        yield from filter(None, tables)


def lessons(steps: Sequence[LearningStepStatus]) -> Iterator[str]:
    """What the last steps of a placement that is learned came to.

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
