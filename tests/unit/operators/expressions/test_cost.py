"""The hot path stays vectorised: a range condition over a million rows takes no call a row."""

from typing import Any

import numpy as np
import pytest
from shorthand import call, const

from levada.core.expressions import Function as Fn
from levada.core.expressions import Var
from levada.core.rdf_terms import Kind
from levada.operators.expressions import Column, Scope, truth
from support.call_counter import calls

N = 1_000_000
RANGE = call(
    Fn.AND,
    call(Fn.GREATER, Var("v"), const("80")),
    call(Fn.LESS, Var("v"), const("90")),
)


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE])
def test_a_range_over_a_million_numbers(kind: Any) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 200, N)
    scale = np.full(N, 1 if kind == Kind.DECIMAL else 0, np.uint8)
    for _ in range(2):  # the first loads kernels
        man = values * 10 if kind == Kind.DECIMAL else values
        v = Column(
            N, kind=np.full(N, kind, np.uint8), dbl=values.astype(np.float64), man=man, scale=scale
        )
        kept = np.empty(0, bool)

        def judge(v: Column = v) -> None:
            nonlocal kept
            kept = truth(RANGE, Scope(N, {"v": v}))

        made = calls(judge)
        assert kept.sum() == ((values > 80) & (values < 90)).sum()
    assert made < 2_000, "calls of functions: none a row"
