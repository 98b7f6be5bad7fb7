"""The lattice against a look at all operators, Figure 2 of the paper, and that a search is no look
at all.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from airport import drawn
from bench.papers.streamreuse.model import bound_tree
from bench.papers.streamreuse.model.conditions import where
from bench.papers.streamreuse.model.descriptor import Descriptor, descriptor, usable
from bench.papers.streamreuse.model.explain import order
from bench.papers.streamreuse.model.lattice import EVERYWHERE, Lattice
from bench.papers.streamreuse.model.relaxation import relaxable
from bench.papers.streamreuse.model.value_intervals import between, values
from bench.papers.streamreuse.model.windows import Windows, every
from bench.papers.streamreuse.wide import operators

from support.call_counter import calls

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


@pytest.mark.long
def test_of_ten_times_as_many_operators_a_search_looks_at_less_than_twice_as_many_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Random operators of many kinds, whose conditions are sets, ranges or none: the nodes whose
    marks, bound or definition a search for the first 16 looks at, with the root.
    """
    looked = _counted(monkeypatch)
    rng, lattice, found = np.random.default_rng(7), Lattice(), list[float]()
    asked = list(operators(rng, 300))
    for number, definition in enumerate(operators(rng, 10_000), start=1):
        lattice.insert(number, definition, 1 << number % 20)
        if number in (100, 1_000, 10_000):
            looked.clear()
            for wanted in asked:
                list(islice(lattice.containing(wanted), 16))
            found.append(1 + len(looked) / len(asked))
    assert found[1] < 2 * found[0] and found[2] < 2 * found[1] < 8


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets a name each time that a node is looked at."""
    looked = list[str]()

    def count(owner: object, name: str) -> None:
        asked = getattr(owner, name)

        def counted(*given: object) -> object:
            looked.append(name)
            return asked(*given)

        monkeypatch.setattr(owner, name, counted)

    count(bound_tree.Marks, "holding")
    count(bound_tree.Bound, "may_contain")
    count(bound_tree, "usable")
    return looked


def test_what_contains_a_query_comes_in_order() -> None:
    """The fewest compared attributes first; of those with the same, by values, after any changes,
    as a look at all of them in order gives it.
    """
    rng, lattice = np.random.default_rng(11), Lattice()
    kept = {n: _plain(rng) for n in range(900)}
    for number, definition in kept.items():
        lattice.insert(number, definition, 1 << number % 3)
    for number in range(0, 600, 2):
        lattice.delete(number)
        del kept[number]
    for number in range(1, 600, 4):
        kept[number] = _plain(rng)
        lattice.redefine(number, kept[number])
    for _ in range(20):
        wanted, mask = _plain(rng), int(rng.integers(1, 8))
        there = [d for n, d in kept.items() if 1 << n % 3 & mask and usable(d, wanted)]
        expected = sorted(
            (len(d.where.box), d.where.attributes, bound_tree.order_of(d)) for d in there
        )
        given = [kept[n] for n in lattice.containing(wanted, mask)]
        told = [(len(d.where.box), d.where.attributes, bound_tree.order_of(d)) for d in given]
        assert [t[0] for t in told] == [e[0] for e in expected] and sorted(told) == expected
        for names in {t[1] for t in told}:
            assert [t for t in told if t[1] == names] == [e for e in expected if e[1] == names]


def _plain(rng: np.random.Generator) -> Descriptor:
    """Of one base: one or two of a few values, a range, or nothing, on two attributes."""
    low = int(rng.integers(0, 20))
    box = {
        "S.a": values(*(int(v) for v in rng.integers(0, 5, int(rng.integers(1, 3))))),
        "S.b": between(low, low + int(rng.integers(0, 10))),
    }
    kept = {name: box[name] for name in box if rng.random() < 0.6}
    steps = every(int(rng.integers(1, 4)))
    return descriptor({"S": int(rng.integers(1, 4))}, (), where(kept), box, instants=steps)


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
