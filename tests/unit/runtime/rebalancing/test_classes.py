"""Who gives and who takes, with hysteresis."""

from __future__ import annotations

import numpy as np

from levada.runtime.rebalancing.partition_load import Kind, classes
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions

F = np.array([0.0, 0.009, 0.01, 0.5, 0.51, 1.0])
GIVES, NEUTRAL, TAKES = Kind.SUPPLIER, Kind.NEUTRAL, Kind.CONSUMER


def test_classes_lie_between_thresholds() -> None:
    found = classes(F, BalanceOptions(), (), ())
    assert found == [TAKES, TAKES, NEUTRAL, NEUTRAL, GIVES, GIVES]


def test_who_has_taken_does_not_give_and_who_has_given_does_not_take() -> None:
    found = classes(F, BalanceOptions(), {0, 5}, {1, 4})
    assert found == [NEUTRAL, TAKES, NEUTRAL, NEUTRAL, NEUTRAL, GIVES]
