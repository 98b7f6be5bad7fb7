"""How many partitions there are, who says so and why, as users get it: sentences, and tables of
what was predicted for each number beside what was measured.
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
    """From ``epoch`` on there are so many ``partitions``, ``before`` as many as that, and ``why``.
    ms of an epoch: as it ``was`` over those before, as ``expected`` over these, and as ``seen``
    (None: that is not known yet).
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
    """How many partitions there are, ``by`` whom: model, cores, load (balance), given, placement;
    of ``most`` (0: that is not known). What an epoch is ``predicted`` to take over each number, of
    late, ms; of each number the epochs of this run, ms that were predicted and taken
    (``measured``); the same of spread epochs by the number of tasks that read (``intake``); what
    the model has ``decided`` of late.
    """

    by: str
    most: int
    predicted: Mapping[int, float]
    measured: Mapping[int, Sequence[float]]
    intake: Mapping[int, Sequence[float]]
    decided: Sequence[ResizedStatus]


def degree_status(degree: Degree | None) -> DegreeStatus | None:
    """What a manifest tells of the number of partitions; None: nothing."""
    if degree is None:
        return None
    decided = [ResizedStatus(**msgspec.structs.asdict(d)) for d in degree.decided]
    return DegreeStatus(
        degree.by, degree.most, degree.predicted, degree.measured, degree.intake, decided
    )


def describe_degree(status: DegreeStatus, now: int) -> Iterator[str]:
    """Who says it, and the last changes, with their reasons.

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
    """Of each number what epochs are predicted to take, and those that went over it: how many, ms
    of one as predicted and as measured. [] if there is one number only.

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
