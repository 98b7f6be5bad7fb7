"""Random send graphs, as columns and as the JSON that a second scorer reads."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np

from levada.placement.send_graph import SendGraph


@st.composite
def graphs(draw: st.DrawFn, most: int = 30) -> SendGraph:
    """At least one message; names that are numbers, or words; with CPU times and bytes or not."""
    n = draw(st.integers(2, most))
    word = draw(st.sampled_from(["", "täsk "]))
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)),
            min_size=1,
            max_size=3 * n,
            unique=True,
        )
    )
    ends = np.array(sorted(pairs), np.int32)
    rows = draw(st.lists(st.integers(1, 10**6), min_size=len(ends), max_size=len(ends)))
    rich = draw(st.booleans())
    return SendGraph(
        tuple(f"{word}{i * 3 + 1}" for i in range(n)),
        ends[:, 0],
        ends[:, 1],
        np.array(rows, np.int64),
        np.array(rows, np.int64) * 7 if rich else None,
        np.linspace(0.5, 2.0, n) if rich else None,
    )


def naive(text: str, machine: dict[str, int], machines: int) -> tuple[float, float]:
    """Share and RSD from the JSON, one link at a time."""
    far = whole = 0
    received = [0] * machines
    for link in json.loads(text)["links"]:
        whole += link["value"]
        received[machine[link["target"]]] += link["value"]
        if machine[link["source"]] != machine[link["target"]]:
            far += link["value"]
    mean = sum(received) / machines
    if machines == 1:
        return far / whole, 0.0
    variance = sum((each - mean) ** 2 for each in received) / (machines - 1)
    return far / whole, variance**0.5 / mean
