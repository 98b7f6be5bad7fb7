"""The number of partitions, its policy and its reasons for users: sentences, and tables of
predicted and measured times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from levada.checkpoint.manifest import Degree
from levada.core.frozen import frozen

BY = {
    "model": "as the model says, of {most} at most",
    "cores": "as many as there are cores",
    "load": "as balance says, by their load, of {most} at most",
    "given": "as many as the checkpoint has or was told",
    "placement": "as many as the placement goes by",
}
SHOWN = 5


@frozen
class ResizedStatus:
    """A change of the number of ``partitions`` at ``epoch``, from ``before``, for the reason
    ``why``. ``was``: ms of an epoch before the change. ``expected``: the prediction. ``seen``: the
    measurement after it (None: not yet).
    """

    epoch: int
    before: int
    partitions: int
    was: float
    expected: float
    why: str
    seen: float | None = None


@frozen
class DegreeStatus:
    """The policy for the number of partitions. ``by``: model, cores, load (balance), given or
    placement. ``most``: the upper bound (0: unknown). ``predicted``: ms of a recent epoch by
    number. ``measured``: by number, the epochs of this run, ms predicted and ms taken. ``intake``:
    the same for spread epochs, by the number of reading tasks. ``decided``: recent decisions of the
    model.
    """

    by: str
    most: int
    predicted: Mapping[int, float]
    measured: Mapping[int, Sequence[float]]
    intake: Mapping[int, Sequence[float]]
    decided: Sequence[ResizedStatus]


def degree_status(degree: Degree | None) -> DegreeStatus | None:
    """Converts the policy of a manifest; None if it has none."""
    if degree is None:
        return None
    decided = [ResizedStatus(**msgspec.structs.asdict(d)) for d in degree.decided]
    return DegreeStatus(
        degree.by, degree.most, degree.predicted, degree.measured, degree.intake, decided
    )


def describe_degree(status: DegreeStatus, now: int) -> Iterator[str]:
    """Yields sentences about the policy, and the last changes with their reasons.

    >>> one = ResizedStatus(40, 4, 2, 60.0, 45.0, "it is predicted", 47.5)
    >>> for sentence in describe_degree(DegreeStatus("model", 4, {}, {}, {}, [one]), 2):
    ...     print(sentence)
    Partitions: 2, as the model says, of 4 at most.
    From epoch 40: 2 partitions, not 4, since it is predicted; measured 47.5 ms an epoch.
    """
    yield f"Partitions: {now}, {BY.get(status.by, status.by).format(most=status.most or 'any')}."
    for one in status.decided[-SHOWN:]:
        seen = "not measured yet" if one.seen is None else f"measured {one.seen:,.1f} ms an epoch"
        change = f"{one.partitions} partition{'s' * (one.partitions != 1)}, not {one.before}"
        yield f"From epoch {one.epoch:,}: {change}, since {one.why}; {seen}."


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
