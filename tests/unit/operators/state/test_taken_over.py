"""A move is a list: whatever goes where, each row counts in one place, and none is written."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.kernels.terms.term_dictionary import Terms
from levada.operators.state import counters, term_retention
from levada.operators.state.checksummed_frames import unpack_checked
from levada.operators.state.key_group_sets import decode, encode
from levada.operators.state.state_handover import HandedOverGroups, Part, take_over
from levada.operators.state.state_parts import State, read_head

GROUPS = 6
owners = st.lists(st.integers(0, 2), min_size=GROUPS, max_size=GROUPS)


class Partitions:
    """The state of some partitions, in memory; ``owner`` of each group."""

    def __init__(self, owner: list[int]) -> None:
        self.owner = np.array(owner)
        self.blobs: dict[str, bytes] = {}
        self.names: dict[int, str] = {}
        self.rows = 0

    def read(self, name: str) -> Any:
        return unpack_checked(np.frombuffer(self.blobs[name], np.uint8), name)

    def open(self, partition: int) -> State:
        name = self.names.get(partition, "")
        return State(read_head(self.read(name)[1]) if name else None, name, self.read)

    def close(self, partition: int, state: State) -> None:
        if state.changed:
            self.names[partition] = name = str(len(self.blobs))
            self.blobs[name] = b"".join(state.finish())

    def move(self, owner: list[int]) -> None:
        """Each partition lists what it has from now on."""
        now, states = np.array(owner), {}
        for p in sorted({*owner, *self.names}):
            parts = []
            for q in sorted(self.names, key=lambda q: q == p):
                head, theirs = read_head(self.read(self.names[q])[1]), self.owner == q
                mine = theirs & (now == p)
                taken = HandedOverGroups(None if (mine == theirs).all() else mine, theirs)
                parts.append(Part(head, self.names[q], taken))
            if parts:
                states[p] = State(take_over(None, parts), "", self.read)
        self.rows += sum(state.touched for state in states.values())
        for p, state in states.items():
            self.close(p, state)
        self.owner = now


def change(counts: dict[int, int]) -> Frame:
    """Changes of keys; a key is of a group."""
    k = np.array(list(counts), np.uint64)
    n = np.array(list(counts.values()), np.int64)
    return Frame({"#k": k, "#h": k, "g": (k % GROUPS).astype(np.uint16), "#n": n}, len(k))


keys = st.dictionaries(st.integers(0, 17), st.integers(1, 3), min_size=1, max_size=6)


@given(owners, st.lists(st.tuples(owners, keys), max_size=12))
def test_each_key_stands_in_one_place(
    first: list[int], epochs: list[tuple[list[int], dict[int, int]]]
) -> None:
    """Groups leave, and come back to where rows of theirs are left."""
    there, expected = Partitions(first), Counter[int]()
    for owner, counts in epochs:
        there.move(owner)
        assert there.rows == 0, "a move reads and writes no row"
        for p in set(owner):
            own = {k: n for k, n in counts.items() if owner[k % GROUPS] == p}
            state = there.open(p)
            if own:
                merge = lambda rows: counters.add(rows, (), ("#n",))  # noqa: E731
                counters.insert(state, "t", change(own), merge)
            there.close(p, state)
        expected.update(counts)
        for key in range(18):
            state, k = there.open(owner[key % GROUPS]), np.array([key], np.uint64)
            found = counters.sum_column(counters.find(state, "t", k, k), 1, "#n")
            assert found.tolist() == [expected[key]]
        scanned = Counter[int]()
        for p in there.names:
            state = there.open(p)
            for rows in map(state.whole, state.pieces("t")):
                scanned.update(dict(zip(rows["#k"].tolist(), rows["#n"].tolist(), strict=True)))
                assert (there.owner[rows["g"]] == p).all()
        assert scanned == expected, "who reads all reads nobody else's"


def test_what_two_had_goes_apart_again() -> None:
    """Of two owners who came together and whose groups part again each lists what it can have."""
    there = Partitions([0, 1] * 3)

    def add(p: int, *keys: int) -> None:
        state = there.open(p)
        piece = state.put({"": change(dict.fromkeys(keys, 1))}, len(keys), (90, 0, 0))
        state.replace("1.0", [*state.pieces("1.0"), piece])
        there.close(p, state)

    def listed(p: int) -> list[tuple[set[int], bool]]:
        """The groups of the rows of each piece, and whether some of them are not here."""
        state = there.open(p)
        own = state.pieces("1.0")
        return [({*state.frame(piece)["g"].tolist()}, piece.kept > 0) for piece in own]

    add(0, 0, 2)
    add(1, 1, 3)
    there.move([0] * GROUPS)
    add(0, 4, 5)
    assert listed(0) == [({0, 2}, False), ({1, 3}, False), ({4, 5}, False)]
    there.move([0, 1] * 3)
    assert listed(0) == [({0, 2}, False), ({4, 5}, True)], "it has all of the first"
    assert listed(1) == [({1, 3}, False), ({4, 5}, True)]
    there.move([0, 1, 2, 1, 2, 1])  # and once more, of what is known by now
    assert listed(2) == listed(0) == [({0, 2}, True), ({4, 5}, True)]
    assert listed(1) == [({1, 3}, False), ({4, 5}, True)]
    assert there.rows == 0, "no row was looked at"


def test_texts_come_from_all_once_and_instants_from_one() -> None:
    there = Partitions([0, 1] * 3)
    none = np.empty(0, np.int64)
    for p in (0, 1):
        state = there.open(p)
        term_retention.insert(state, _terms(f"<{p}>"), 90, 0)
        state.replace("times.0", [state.put({"": Frame({"ts": none}, 0)}, 1, (90, 0, 0))])
        there.close(p, state)
    parts = [
        Part(read_head(there.read(n)[1]), n, HandedOverGroups(None)) for n in there.names.values()
    ]
    head = take_over(parts[0], [*parts, *parts])
    assert [(p.file, p.name) for p in head.pieces["terms"]] == [("0", "1"), ("1", "1")]
    assert [p.file for p in head.pieces["times.0"]] == ["0"]
    assert head.serial == 2, "names of new pieces are none that are there"


def _terms(name: str) -> Terms:
    x = np.array([sum(map(ord, name))], np.uint64)
    data = np.frombuffer(name.encode(), np.uint8)
    return Terms.from_texts(x, x, np.array([0]), np.array([len(name)]), data)


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_a_set_is_a_text(mask: list[bool]) -> None:
    assert decode(encode(np.array(mask))).tolist() == mask


def test_groups_that_are_dealt_are_a_short_text() -> None:
    assert len(encode(np.arange(65_536) % 48 == 7)) < 200
