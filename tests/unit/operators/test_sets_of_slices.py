"""What counts at a report is a set of slices: equal ones are one, and the nodes of a tree that make
one up are its places, each once.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.operators.aggregation.slicing import segment_tree
from levada.operators.aggregation.slicing.slice_state import as_sets

SETS = st.lists(st.frozensets(st.integers(0, 20), min_size=1), min_size=1, max_size=8)


def places(sets: segment_tree.Sets, number: int) -> set[int]:
    """The places of a set, by its runs."""
    runs = zip(*(column[sets.of == number].tolist() for column in sets), strict=True)
    return {place for _, begin, end in runs for place in range(begin, end)}


@given(SETS)
def test_reports_at_which_the_same_slices_count_have_one_set(found: list[frozenset[int]]) -> None:
    reports = np.repeat(np.arange(len(found)), [len(one) for one in found])
    classes = np.array([place for one in found for place in one])
    order = np.random.default_rng(1).permutation(len(classes))
    sets, of = as_sets(reports[order], classes[order])
    assert [places(sets, number) for number in of.tolist()] == found
    assert int(of.max()) + 1 == len(set(found))


@given(SETS)
def test_nodes_are_the_places_of_their_set_each_once(found: list[frozenset[int]]) -> None:
    numbers = np.repeat(np.arange(len(found)), [len(one) for one in found])
    sets = segment_tree.runs(numbers, np.array([place for one in found for place in sorted(one)]))
    uses = segment_tree.covers(sets)
    made = [list[int]() for _ in found]
    for height, use in enumerate(uses):
        for number, node in zip(use.sets.tolist(), use.nodes.tolist(), strict=True):
            made[number] += range(node << height, (node + 1) << height)
    assert [sorted(one) for one in made] == [sorted(one) for one in found]
    last = max(map(max, found))
    wanted = segment_tree.needed_nodes(uses, last + 1)
    for height, use in enumerate(uses):
        assert np.isin(use.nodes, wanted[height]).all(), "what makes a set up is made"
        if height:
            below = np.concatenate([2 * wanted[height], 2 * wanted[height] + 1])
            assert np.isin(
                below[below << height - 1 <= max(map(max, found))], wanted[height - 1]
            ).all()
