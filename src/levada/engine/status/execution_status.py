"""The execution of epochs in sentences: predicted and measured times of each way to run them, and
the costs of the parts of the work. Times are of the last epoch and of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from levada.checkpoint.manifest import Choice, Costs, LearningStep
from levada.core.count_text import count_text
from levada.engine.status.partition_count_status import degree_rows, describe_degree
from levada.plan.execution.plan import Plan
from levada.runtime.cost_model.admission_control import sentence

WORDS = {
    "in_process": "in the driver's process",
    "one_task": "as one task",
    "spread": "spread over tasks",
}
SHOWN = 5
PART = ("part", "a ms", "b ns a row", "rows an element", "predicted ms", "measured ms")


def sentences(costs: Costs) -> Iterator[str]:
    """Yields sentences about the choices.

    >>> predicted = {"one_task": 31.2, "spread": 64.0}
    >>> last = Choice(7, 5000, "one_task", 1, predicted, 30.0, reason="it fits")
    >>> for sentence in sentences(Costs(last, {"one_task": [5, 151.0, 150.0]}, {})):
    ...     print(sentence)
    Epoch 7, of 5,000 elements, ran as one task: 30.0 ms, predicted 31.2; spread over tasks 64.0.
    It ran as one task because it fits.
    As one task: 5 epochs, 150 ms, predicted 151 (+0.7%).
    """
    yield _last_choice_text(costs.last_epoch)
    if costs.last_epoch.reason and costs.last_epoch.mode != "in_process":
        yield f"It ran {WORDS[costs.last_epoch.mode]} because {costs.last_epoch.reason}."
    for way, (epochs, predicted, took) in sorted(costs.totals_by_mode.items()):
        off = f" ({predicted / took - 1:+.1%})" if took else ""
        words = WORDS[way][0].upper() + WORDS[way][1:]
        yield f"{words}: {epochs:,.0f} epochs, {took:,.0f} ms, predicted {predicted:,.0f}{off}."
    if costs.interval_ms:
        cost = f"one takes {costs.fixed_cpu_ms:,.1f} ms of CPU time, whatever it reads"
        why = cost if costs.fixed_cpu_ms else "the CPU time that one takes is not known yet"
        yield f"Epochs begin at least {costs.interval_ms:,.0f} ms apart: {why}."
    if costs.predicted_ms_by_partitions:
        yield _partitions_text(costs.predicted_ms_by_partitions, costs.partitions)
    if costs.partition_policy is not None:
        yield from describe_degree(costs.partition_policy, costs.partitions)
    if costs.delay is not None:
        yield sentence(costs.delay)


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


def _last_choice_text(choice: Choice) -> str:
    elements = count_text(choice.elements, "element")
    head = f"Epoch {choice.epoch}, of {elements}, ran {WORDS[choice.mode]}"
    predicted = choice.predicted_ms.get(choice.mode)
    if predicted is None:
        return f"{head}: {choice.measured_ms:,.1f} ms; nothing was known to predict it by."
    others = (
        f"; {WORDS[way]} {ms:,.1f}"
        for way, ms in choice.predicted_ms.items()
        if way not in (choice.mode, "in_process")
    )
    return f"{head}: {choice.measured_ms:,.1f} ms, predicted {predicted:,.1f}{''.join(others)}."


def with_operator_names(costs: Costs, plan: Plan) -> Costs:
    """Converts the costs of a manifest, with operators by their names in place of their numbers."""
    parts = {
        f"{type(plan.nodes[int(name)].step).__name__} {name}"
        if name.isdigit() and int(name) in plan.nodes
        else name: values
        for name, values in costs.work_parts.items()
    }
    return msgspec.structs.replace(costs, work_parts=parts)


def rows(costs: Costs) -> list[tuple[str, ...]]:
    """Returns a table of the costs of each part of the work, the most expensive first."""
    return [
        (name, *(f"{value:,.2f}" for value in values)) for name, values in costs.work_parts.items()
    ]


def candidates(costs: Costs) -> Iterator[list[tuple[str, ...]]]:
    """Yields tables of predicted and measured times. The first is for recent epochs by the number
    of partitions, the second for the last epoch by the number of reading tasks.
    """
    if (degree := costs.partition_policy) is not None:
        tables = (
            degree_rows(
                "partitions",
                degree.predicted_ms or costs.predicted_ms_by_partitions,
                degree.measured_epochs,
            ),
            degree_rows(
                "tasks that read", costs.predicted_ms_by_readers, degree.measured_epochs_by_readers
            ),
        )
        yield from filter(None, tables)


def lessons(steps: Sequence[LearningStep]) -> Iterator[str]:
    """Yields sentences about the last steps of a learned placement.

    >>> step = LearningStep("2004-08-08", 12, 0.75, 0.1, 0.12, 900, 3, "")
    >>> print(*lessons([step]))  # doctest: +ELLIPSIS
    Learned from 2004-08-08: 900 groups and 3 readers moved at epoch 12; 75.0% of the rows ...
    """
    for lesson in steps[-SHOWN:]:
        if lesson.message:
            yield lesson.message
        if lesson.moved_groups or lesson.moved_readers:
            measured = (
                f"measured {lesson.measured_share:.1%} in the next slice"
                if lesson.measured_share >= 0
                else "not measured yet"
            )
            yield (
                f"Learned from {lesson.slice}: {lesson.moved_groups:,} groups and "
                f"{lesson.moved_readers:,} readers moved at epoch {lesson.epoch}; "
                f"{lesson.share_before:.1%} of the rows crossed machines, predicted "
                f"{lesson.predicted_share:.1%}, {measured}."
            )
        elif lesson.share_before >= 0:
            yield (
                f"Learned from {lesson.slice}: {lesson.share_before:.1%} of the rows crossed "
                "machines, and nothing much better was found."
            )
