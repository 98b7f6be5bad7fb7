"""The lattice against a look at all operators, Figure 2 of the paper, and that a search is no look
at all.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from airport import drawn

from calls import calls
from levada.sharing.conditions import where
from levada.sharing.descriptor import Descriptor, descriptor, usable
from levada.sharing.lattice import EVERYWHERE, Lattice
from levada.sharing.relaxation import relaxable
from levada.sharing.show import order
from levada.sharing.spans import between, values
from levada.sharing.windows import Windows, every

FIGURE_2 = {
    (5, 1): {(5, 2), (5, 3), (5, 6), (4, 2)},
    (6, 2): {(6, 4), (5, 2), (4, 2), (5, 6)},
    (5, 2): {(4, 2), (5, 6)},
    (5, 3): {(5, 6)},
}


def test_figure_2() -> None:
    told = [(5, 1), (5, 2), (5, 3), (5, 6), (6, 2), (6, 4), (4, 2)]
    windows = {Windows((r,), every(s)): (r, s) for r, s in told}
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for above, under in order(list(windows)):
        found.setdefault(windows[above], set()).add(windows[under])
    assert found == FIGURE_2


def test_figure_2_in_the_lattice_with_its_regions() -> None:
    """(5, 1) is in regions 1, 2 and 4: two operators, of which one is in two of them."""
    lattice = Lattice()
    homes = {(5, 1): 0b0011, (5, 2): 0b0100, (6, 2): 0b1000, (4, 2): 0b0001}
    for number, ((range_, step), nid) in enumerate(homes.items()):
        lattice.insert(number, _window(range_, step), nid)
    lattice.insert(9, _window(5, 1), 0b1000)
    assert set(lattice.containing(_window(4, 2))) == {0, 1, 2, 3, 9}
    assert set(lattice.containing(_window(5, 2), 0b1000)) == {2, 9}
    assert set(lattice.containing(_window(5, 1), 0b0100)) == set()
    lattice.delete(9)
    assert set(lattice.containing(_window(5, 1), 0b1000)) == set()
    assert set(lattice.containing(_window(5, 1), 0b0010)) == {0}


def _window(range_: int, step: int) -> Descriptor:
    return descriptor({"S": range_}, columns=["S.a"], instants=every(step))


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_what_a_look_at_all_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lattice, kept = Lattice(), dict[int, tuple[Descriptor, int]]()
    for step in range(600):
        number = int(rng.choice(list(kept))) if kept else -1
        match rng.choice(4, p=[0.6, 0.2, 0.1, 0.1]) if kept else 0:
            case 0:
                kept[step] = drawn(rng, grouped=0.2), int(rng.integers(1, 32))
                lattice.insert(step, *kept[step])
            case 1:
                del kept[number]
                lattice.delete(number)
            case 2:
                kept[number] = kept[number][0], int(rng.integers(1, 32))
                lattice.move(number, kept[number][1])
            case _:
                kept[number] = drawn(rng, grouped=0.2), kept[number][1]
                lattice.redefine(number, kept[number][0])
        if step % 6 == 0:
            mask = int(rng.integers(1, 32)) if rng.random() < 0.7 else EVERYWHERE
            _compare(lattice, kept, drawn(rng, grouped=0.2), mask)
    assert len(lattice) == len(kept) == lattice.counts()["operators"] > 50
    for number in kept:
        lattice.delete(number)
    assert set(lattice.counts().values()) == {0}, "nothing is left"


def _compare(
    lattice: Lattice, kept: dict[int, tuple[Descriptor, int]], wanted: Descriptor, mask: int
) -> None:
    there = {n: d for n, (d, nid) in kept.items() if nid & mask}
    for found, expected in (
        (lattice.containing, {n for n, d in there.items() if usable(d, wanted)}),
        (lattice.relaxable, {n for n, d in there.items() if relaxable(d, wanted)}),
        (lattice.equal, {n for n, d in there.items() if d == wanted}),
    ):
        numbers = list(found(wanted, mask))
        assert len(numbers) == len(set(numbers)) and set(numbers) == expected


def test_regions_of_nodes_are_those_of_their_operators() -> None:
    lattice = Lattice()
    rng = np.random.default_rng(3)
    nids = [1 << int(rng.integers(5)) for _ in range(80)]
    for number, nid in enumerate(nids):
        lattice.insert(number, _window(number + 1, 1), nid)
    for number, nid in enumerate(nids[:60]):
        lattice.delete(number)
        rest = set(nids[number + 1 :])
        assert (list(lattice.relaxable(_window(1, 1), nid)) == []) == (nid not in rest)


def test_impossible_conditions_are_found_like_others() -> None:
    lattice = Lattice()
    never = where({"S.a": values()})
    lattice.insert(1, descriptor({"S": 5}, (), never, ["S.a"]), 1)
    lattice.insert(2, descriptor({"S": 5}, (), where({"S.b": values(1)}), ["S.a", "S.b"]), 1)
    wanted = descriptor({"S": 5}, (), never, ["S.a"])
    assert set(lattice.containing(wanted)) == {1, 2}
    wider = descriptor({"S": 5}, (), where({"S.a": values(), "S.b": values(1)}), ["S.b"])
    assert set(lattice.containing(wider)) == {2}


@pytest.mark.parametrize("kind", ["threshold", "constant", "window"])
def test_a_search_hardly_grows_with_the_operators(kind: str) -> None:
    """Of ten times as many operators that differ in one respect a search calls less than twice as
    many functions.
    """
    few, many = _calls(kind, 100), _calls(kind, 1000)
    assert many < 2 * few


def _calls(kind: str, count: int) -> int:
    lattice, rng = Lattice(), np.random.default_rng(4)
    for number in range(count):
        lattice.insert(number, _one(kind, int(rng.integers(0, 10**6))), 1 << number % 3)
    asked = [_one(kind, int(rng.integers(0, 10**6))) for _ in range(30)]
    searches = (lattice.equal, lattice.containing, lattice.relaxable)
    return calls(lambda: [list(islice(s(w), 16)) for w in asked for s in searches])


def _one(kind: str, n: int) -> Descriptor:
    box = {"threshold": between(n, n + 500), "constant": values(n), "window": between(0)}[kind]
    return descriptor({"S": n + 1 if kind == "window" else 5}, (), where({"S.a": box}), ["S.a"])
