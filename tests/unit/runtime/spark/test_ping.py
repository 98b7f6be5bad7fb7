"""What readers have seen as latencies and bandwidths."""

import numpy as np

from levada.runtime.spark.network_probe import matrices
from levada.runtime.spark.network_probe_tasks import (
    LARGE_BLOB_BYTES,
    SMALL_BLOBS_PER_TURN,
    TURNS,
    Timed,
)


def came(small: float, large: float, first: float) -> list[float]:
    """When large blobs come if each kind takes so long; the last but one turn is disturbed."""
    steps = [SMALL_BLOBS_PER_TURN * small + large, large] * TURNS
    steps[-4:-2] = [steps[0] + 1.0, large / 100]  # stood still: one late, and the next was there
    return list(np.cumsum([first, *steps]))


def test_a_pair_is_told_by_its_median() -> None:
    near, far = (1e-4, 0.001), (5e-4, 0.004)
    seen = {
        "7": Timed("7", 2.0, (), {"7": came(*near, 0.5), "12": came(*far, 1.0)}),
        "12": Timed("12", 2.0, (), {"7": came(*far, 2.0), "12": came(*near, 9.0)}),
    }
    latency, bandwidth = matrices(["7", "12"], seen)
    assert latency.tolist() == [[0, 500_000], [500_000, 0]]
    wanted = [
        [LARGE_BLOB_BYTES / 0.001, LARGE_BLOB_BYTES / 0.004],
        [LARGE_BLOB_BYTES / 0.004, LARGE_BLOB_BYTES / 0.001],
    ]
    np.testing.assert_allclose(bandwidth, wanted)


def test_noise_makes_no_negative_latency() -> None:
    steps = [0.001, 0.002] * TURNS  # the large ones alone took longer
    seen = {
        name: Timed(name, 2.0, (), {at: list(np.cumsum([0, *steps])) for at in "01"})
        for name in "01"
    }
    assert matrices(["0", "1"], seen)[0].tolist() == [[0, 0], [0, 0]]
