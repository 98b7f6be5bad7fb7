"""Spike detection: each reading of a device against the mean of its last thousand, itself among
them; a spike is more than 3 % off.
"""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
import polars as pl

from bench.streaming.application import Answer, Application, Frames, text

DEVICES, LAST, OFF = 54, 1000, 0.03
SPIKES = 0.01
"""The part of the readings that are drawn far away."""


def make(n: int, seed: int) -> Frames:
    """``n`` readings of temperatures, in hundredths, one a ms; of fewer devices where there are few
    readings, so that more than a thousand come of each.
    """
    rng = np.random.default_rng(seed)
    devices = min(max(n // (2 * LAST), 1), DEVICES)
    device = rng.integers(0, devices, n)
    level = rng.uniform(15, 30, devices)[device]
    off = np.where(rng.random(n) < SPIKES, rng.uniform(0.9, 1.1, n), 1.0)
    value = np.round(level * off + rng.normal(0, 0.1, n), 2)
    return {"Readings": pl.DataFrame({"device": device, "value": value, "ts": np.arange(n)})}


def answers(streams: Frames) -> dict[str, list[Answer]]:
    """The mean beside each reading. A running sum of whole hundredths is exact, whatever goes."""
    last: dict[int, deque[int]] = defaultdict(deque)
    sums: dict[int, int] = defaultdict(int)
    signals: list[Answer] = []
    spikes: list[Answer] = []
    for device, value, ts in streams["Readings"].iter_rows():
        seen = last[device]
        seen.append(round(value * 100))
        sums[device] += seen[-1]
        if len(seen) > LAST:
            sums[device] -= seen.popleft()
        mean = sums[device] / (100 * len(seen))
        row: Answer = (ts, device, mean, value)
        signals.append(row)
        if abs(value - mean) > OFF * mean:
            spikes.append(row)
    return {"signals": signals, "spikes": spikes}


SPIKE_DETECTION = Application(
    "SD",
    {
        "signals": text("spike_views", "spike_signals"),
        "spikes": text("spike_views", "spikes"),
    },
    ("signals",),
    make,
    answers,
    target=0.5,
    brisk=0.09,
    events=1_000_000,
    epoch=50_000,
)
