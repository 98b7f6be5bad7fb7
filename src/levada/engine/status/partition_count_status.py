"""The number of partitions, its policy and its reasons for users: sentences, and tables of
predicted and measured times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from levada.checkpoint.manifest import Degree

BY = {
    "model": "as the model says, of {most} at most",
    "cores": "as many as there are cores",
    "load": "as balance says, by their load, of {most} at most",
    "fixed": "as many as the checkpoint has or was told",
    "placement": "as many as the placement goes by",
}
SHOWN = 5


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
