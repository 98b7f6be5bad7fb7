"""The execution of epochs in sentences: predicted and measured times of each way to run them, and
the costs of the parts of the work. Times are of the last epoch and of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from levada.checkpoint.manifest import Choice, Costs, Degree, LearningStep
from levada.core.count_text import count_text
from levada.plan.execution.plan import Plan
from levada.runtime.cost_model.admission_control import sentence

# The number of partitions, its policy and its reasons for users: sentences, and tables of
# predicted and measured times.


BY = {
    "model": "as the model says, of {most} at most",
    "cores": "as many as there are cores",
    "load": "as balance says, by their load, of {most} at most",
    "fixed": "as the checkpoint or --partitions says",
    "placement": "as many as the placement goes by",
}


def describe_degree(status: Degree, now: int) -> Iterator[str]:
    """Yields sentences about the policy, and the last changes with their reasons.

    >>> from levada.checkpoint.manifest import Resized
    >>> one = Resized(40, 4, 2, 60.0, 45.0, "it is predicted", 47.5)
    >>> for sentence in describe_degree(Degree("model", 4, {}, {}, {}, [one]), 2):
    ...     print(sentence)
    Partitions: 2, as the model says, of 4 at most.
    From epoch 40: 2 partitions, not 4, since it is predicted; measured 47.5 ms an epoch.
    """
    policy = BY.get(status.policy, status.policy).format(most=status.max_partitions or "any")
    yield f"Partitions: {now}, {policy}."
    for one in status.decisions[-SHOWN:]:
        seen = (
            "not measured yet"
            if one.measured_ms is None
            else f"measured {one.measured_ms:,.1f} ms an epoch"
        )
        change = (
            f"{one.partitions} partition{'s' * (one.partitions != 1)}, not {one.partitions_before}"
        )
        yield f"From epoch {one.epoch:,}: {change}, since {one.reason}; {seen}."


HEADS = ("predicted ms", "epochs", "predicted ms of these", "measured ms")


def degree_rows(
    what: str, predicted: Mapping[int, float], measured: Mapping[int, Sequence[float]]
) -> list[tuple[str, ...]]:
    """Returns a table: for each number the predicted ms of an epoch, the epochs that ran, and their
    mean ms as predicted and measured. Returns [] for a single number.

    >>> degree_rows("partitions", {1: 20.0, 2: 25.0}, {2: [10, 240.0, 260.0]})[1:]
    [('1', '20.0', '', '', ''), ('2', '25.0', '10', '24.0', '26.0')]
    """
    numbers = sorted({*predicted, *measured})
    if len(numbers) < 2:
        return []
    rows: list[tuple[str, ...]] = [(what, *HEADS)]
    for n in numbers:
        guess = f"{predicted[n]:,.1f}" if n in predicted else ""
        seen = ("", "", "")
        if n in measured:
            epochs, expected, took = measured[n]
            seen = (f"{epochs:,.0f}", f"{expected / epochs:,.1f}", f"{took / epochs:,.1f}")
        rows.append((str(n), guess, *seen))
    return rows


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
        return f"{head}: {choice.measured_ms:,.1f} ms; no measurement was there to predict it."
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
