"""Paths of any length against their twin, and with outputs that do not fit at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.keyed import path_reachability as r

NODES = st.integers(1, 12)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[int], list[bool]]:
    """Edges, distinct starts, and which nodes reach themselves without a step."""
    n = draw(NODES)
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=30))
    starts = draw(st.lists(node, unique=True, max_size=n))
    return edges, starts, draw(st.lists(st.booleans(), min_size=n, max_size=n))


def _arrays(edges: list[tuple[int, int]], nodes: int) -> tuple[r.Ints, r.Ints]:
    sources, targets = (np.array([e[i] for e in edges], np.int32) for i in (0, 1))
    return r.edges_of(sources, targets, nodes)


@settings(deadline=None)
@given(graphs(), st.booleans())
def test_reach_equals_its_twin(
    graph: tuple[list[tuple[int, int]], list[int], list[bool]], many: bool
) -> None:
    edges, starts, flags = graph
    zero, begins = np.array(flags, bool), np.array(starts, np.int32)
    csr = _arrays(edges, len(flags))
    found = sorted(zip(*(c.tolist() for c in r.reach(*csr, begins, zero, many=many)), strict=True))
    twin = r.reach_by_rounds(*csr, begins, zero, many=many)
    assert found == list(zip(*(c.tolist() for c in twin), strict=True))


@pytest.mark.parametrize("many", [True, False])
def test_a_cycle_of_many_nodes_does_not_fit_at_once(many: bool) -> None:
    n = 300
    csr = _arrays([(i, (i + 1) % n) for i in range(n)], n)
    starts = np.arange(n, dtype=np.int32)
    i, j = r.reach(*csr, starts, np.zeros(n, bool), many=many)
    assert len(i) == (n * n if many else n)
    assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == len(i)


@pytest.mark.parametrize("most", [0, 1, 299, 5000, 89_999, 90_000])
def test_it_ends_behind_what_is_too_much(most: int) -> None:
    n = 300
    csr = _arrays([(i, (i + 1) % n) for i in range(n)], n)
    starts = np.arange(n, dtype=np.int32)
    i, j = r.reach(*csr, starts, np.zeros(n, bool), many=True, most=most)
    assert len(i) == len(j)
    assert most < len(i) <= 3 * most + 2048 if most < n * n else len(i) == n * n


def test_without_starts_nothing_is_reached() -> None:
    none = np.empty(0, np.int32)
    i, j = r.reach(*_arrays([(0, 1)], 2), none, np.ones(2, bool), many=True)
    assert len(i) == len(j) == 0
