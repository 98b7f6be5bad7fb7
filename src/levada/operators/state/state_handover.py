"""State handover as a list: the state of a partition under another group table, from the lists of
the previous owners of its groups (Parallel windowed joins, W16; docs/architecture.md#state).

The new owner lists the parts of each old one, restricted to the groups that it takes from it; files
stay unchanged. Rows in a restricted part count only if their group is in its set: a look-up tests
the rows that it finds, a scan skips the others, and a part merged from it is no longer restricted.
A group's rows are in one list before and in one after, in the same order. But a part may contain
rows of a group that has left and come back since, in newer parts: the set of the part shows that
these rows belong to no partition.

A partition that receives groups notes, for each part of its own, the groups it had till then: the
part contains nothing of other groups. So a later owner takes no part that cannot have any of its
groups.

A part that several old owners list is in the new list once, restricted to the union of their
groups: otherwise lists would grow by the number of owners at each move. All new owners process the
old lists in the same order, so the parts that they share later are in the same order everywhere.

State that follows from other parts (``FOLLOWS``) is not taken over; its operator computes it again.
State that is equal in all partitions comes from one of them (the instants of elements, rows that
have gone to all); texts come from all, since the owner of a text is unknown.

Cost: by the number of parts; no row is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from levada.core.array_types import Bools
from levada.operators.state.key_group_sets import decode, encode
from levada.operators.state.state_parts import ALIKE, FOLLOWS, TERMS, TIMES, Head, StatePart

ALL_GROUPS = ""  # of a set: all groups that there are
PENDING = "pending"  # how keys begin of what waits for a watermark (``runtime/task/pending``)


class HandedOverGroups(NamedTuple):
    """The groups that are taken over from an old owner (None: all of its groups), and the groups
    that it had (None: unknown).
    """

    groups: Bools | None
    had: Bools | None = None


class Part(NamedTuple):
    """The state of one old owner: its list, the file that contains it, and its groups that are
    taken over; ``joins``: the same for nodes that have or had divided groups.
    """

    head: Head
    file: str
    taken: HandedOverGroups
    joins: Mapping[int, HandedOverGroups] = {}

    def groups_under(self, key: str) -> HandedOverGroups:
        """Returns the groups that are taken over of the state under a key."""
        words = key.split(".")
        number = words[1] if words[0] == PENDING else words[0]
        whole = not self.joins or not number.isdigit()
        return self.taken if whole else self.joins.get(int(number), self.taken)


def take_over(alike: Part | None, parts: Sequence[Part]) -> Head:
    """Returns the list of a new owner. ``alike``: the old owner from which it takes the state that
    is equal everywhere; ``parts``: the old owners of its groups, in the order of their numbers.
    """
    sets = Sets()
    lists: dict[str, list[StatePart]] = {}
    for part in parts:
        for key, pieces in part.head.pieces.items():
            if not _is_alike(key) and FOLLOWS not in key:
                key_parts = lists.setdefault(key, [])
                if key == TERMS:
                    key_parts += _texts(part, key_parts, pieces)
                else:
                    _merge(key_parts, _rows(part, part.groups_under(key), pieces, sets), sets)
    if alike is not None:
        same = {key: pieces for key, pieces in alike.head.pieces.items() if _is_alike(key)}
        lists |= {key: list(_name_files(alike, pieces)) for key, pieces in same.items()}
        if any(key.endswith(ALIKE) for key in same):
            there = lists.setdefault(TERMS, [])
            there += _texts(alike, there, alike.head.pieces.get(TERMS, ()))
    serial = max((part.head.serial for part in (*parts, *([alike] if alike else []))), default=0)
    return Head({key: pieces for key, pieces in lists.items() if pieces}, serial, sets.texts[1:])


def _is_alike(key: str) -> bool:
    return key.startswith(TIMES) or key.endswith(ALIKE)


class Sets:
    """The sets of a list, by their places; the first is that of all groups there are."""

    def __init__(self) -> None:
        self.texts = [ALL_GROUPS]
        self._places = {ALL_GROUPS: 0}

    def place(self, text: str) -> int:
        """The place of a set."""
        at = self._places.setdefault(text, len(self.texts))
        if at == len(self.texts):
            self.texts.append(text)
        return at

    def union(self, a: int, b: int) -> int:
        """The place of the union of two sets of groups, each of which is restricted."""
        assert a, "a piece that is wholly somebody's is in one list"
        assert b, "a piece that is wholly somebody's is in one list"
        return self.place(encode(decode(self.texts[a]) | decode(self.texts[b])))


def _name_files(part: Part, pieces: Iterable[StatePart]) -> Iterable[StatePart]:
    """The pieces with the file that each is in."""
    return (p if p.file else msgspec.structs.replace(p, file=part.file) for p in pieces)


def _texts(part: Part, known: Sequence[StatePart], pieces: Iterable[StatePart]) -> list[StatePart]:
    """The tables that are not listed yet."""
    there = {(p.file, p.name) for p in known}
    return [p for p in _name_files(part, pieces) if (p.file, p.name) not in there]


def _merge(target: list[StatePart], more: Iterable[StatePart], sets: Sets) -> None:
    """Adds another owner's pieces: where one is listed already, and in this order, to that; so the
    order of both lists stays.
    """
    at = 0
    places = {(p.file, p.name): i for i, p in enumerate(target)}
    out = list(target)
    shift = 0  # of places behind what has been put in
    for piece in more:
        there = places.get((piece.file, piece.name), -1)
        if there >= 0 and there + shift >= at:
            at = there + shift
            union = sets.union(out[at].kept, piece.kept)
            out[at] = msgspec.structs.replace(piece, kept=union)
        else:
            out.insert(at, piece)
            shift += 1
        at += 1
    target[:] = out


def _rows(
    part: Part, groups: HandedOverGroups, pieces: Iterable[StatePart], sets: Sets
) -> list[StatePart]:
    """Returns the parts restricted to the groups that are taken over, without parts that have none
    of them.
    """
    out: list[StatePart] = []
    new: dict[tuple[int, int], tuple[int, int] | None] = {}  # places of sets before -> now
    for piece in _name_files(part, pieces):
        set_numbers = piece.kept, piece.within
        if set_numbers not in new:
            new[set_numbers] = _restrict_groups(part.head, groups, *set_numbers, sets)
        if (places := new[set_numbers]) is not None:
            out.append(msgspec.structs.replace(piece, kept=places[0], within=places[1]))
    return out


def _restrict_groups(
    head: Head, groups: HandedOverGroups, group_set: int, within: int, sets: Sets
) -> tuple[int, int] | None:
    """Returns the places in ``sets`` of the groups to which a part of the old owner is restricted,
    and of the groups of its rows. Returns None if the part has nothing that is taken over.
    """
    known = head.sets[(group_set or within) - 1] if group_set or within else ALL_GROUPS
    if groups.groups is not None:
        left = groups.groups & decode(known) if known else groups.groups
        if not left.any():
            return None
        text = encode(left)
        is_whole = within and text == known
        return (
            (sets.place(ALL_GROUPS), sets.place(text))
            if is_whole
            else (sets.place(text), sets.place(ALL_GROUPS))
        )
    if group_set:
        return sets.place(known), sets.place(ALL_GROUPS)
    if not known and groups.had is not None:
        known = encode(groups.had)
    return sets.place(ALL_GROUPS), sets.place(known)
