"""Star patterns inside one element, before any exchange
(docs/decisions/0010-stars-inside-closed-elements.md).

In a stream that is ``closed=element`` no subject spans two elements of a window, so all its triples
that could be joined are in one element and have one time: the patterns that share a subject are
joined where the triples are read. The output is rows of the whole star.

    matched rows by pattern  --numbers of subjects-->  legs
                             --member by member-->  rows of triples, one per leg

A member of the node is one query's star; its legs are patterns of the stream's table. The leg with
the fewest rows is processed first and is the only one that is multiplied by members; the others are
looked up by (pattern, subject). Equal triples of an element are one. Cost: 10 to 30 ns a row and
leg, whatever the number of members with other constants.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.connectors.ingest.parse.ntriples import TermColumn, Triples
from levada.core.array_types import Bools, Ints, Longs
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.core.row_ranges import ranges
from levada.kernels.keyed.bucket_layout import combine, mix
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.star_join import meet
from levada.plan.execution import steps as s


@frozen
class Legs:
    """The matched rows of all patterns, each pattern's in order of the subject's number: row and
    subject at each place.
    """

    rows: Longs
    subject: Ints
    starts: Longs

    @staticmethod
    def from_matches(rows: Longs, starts: Longs, subjects: Ints, triples: Triples) -> Legs:
        """Returns the legs of a result of ``PatternTable.match``; ``subjects`` numbers each
        triple's subject.
        """
        subject = subjects.take(rows)
        pattern = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        key = (pattern << 32) | subject
        if (key[1:] < key[:-1]).any():
            order = np.argsort(key, kind="stable")
            rows, subject, key = rows[order], subject[order], key[order]
        repeated = _repeat(rows, key, triples)
        if repeated is None:
            return Legs(rows, subject, starts)
        firsts = (~repeated).nonzero()[0]
        return Legs(rows[firsts], subject[firsts], np.searchsorted(firsts, starts).astype(np.int64))


def _repeat(rows: Longs, key: Longs, triples: Triples) -> Bools | None:
    """Returns the places of triples that their element already had for the same pattern; None: no
    repeats.
    """
    same = key[1:] == key[:-1]
    if not same.any():
        return None
    several = (np.append(same, False) | np.append(False, same)).nonzero()[0]
    at = rows[several]
    k, h = mix(triples.p.x[at], triples.p.y[at], np.zeros(len(at), np.int32))
    k, h = combine(k, h, triples.o.x[at], triples.o.y[at])
    k, h = combine(k, h, key[several].view(np.uint64), np.zeros(len(at), np.uint64))
    _, first = group(k, h)
    if len(first) == len(at):
        return None
    repeated = np.zeros(len(rows), bool)
    repeated[several] = True
    repeated[several[first]] = False
    return repeated


def subject_numbers(triples: Triples, element: Ints, kind: str) -> Ints:
    """Numbers the subject of each triple within its element. Uses the number of the element where
    each element is all lines of one subject and contains no blank node.

    A subject may come again in an element that no window contains together with this one; their
    triples are never one star.
    """
    if kind == "subject" and not (triples.s.kind == Kind.BLANK).any():
        return element
    return group(
        *combine(
            triples.s.x, triples.s.y, element.astype(np.uint64), np.zeros(len(element), np.uint64)
        )
    )[0]


def stars(step: s.Star, patterns: Longs, legs: Legs, triples: Triples) -> tuple[Ints, list[Longs]]:
    """The rows of a star's members: the member of each, and the triple that each leg has there.

    ``patterns`` (int64[legs, members]) says which pattern each leg of each member is; -1: the
    member is not over this stream.
    """
    counts = np.append(np.diff(legs.starts), 0)  # the last is that of -1
    expected = counts[patterns].sum(axis=1)
    order = np.argsort(expected, kind="stable").tolist()
    member, places = _first(patterns[order[0]], counts, legs)
    chosen: dict[int, Longs] = {order[0]: places}
    for leg in order[1:]:
        if not len(member):
            break
        pairs, leg_places = _meet_subjects(
            patterns[leg][member], legs.subject[chosen[order[0]]], legs
        )
        member = member[pairs]
        chosen = {n: at[pairs] for n, at in chosen.items()}
        chosen[leg] = leg_places
    if not len(member):
        return member, []
    rows = [legs.rows[chosen[n]] for n in range(len(step.legs))]
    keep = _has_equal_bindings(step, rows, triples)
    return (member, rows) if keep is None else (member[keep], [r[keep] for r in rows])


def _first(patterns: Longs, counts: Longs, legs: Legs) -> tuple[Ints, Longs]:
    """All places of the patterns of one leg, with the member that each is for."""
    members = (counts[patterns] > 0).nonzero()[0]
    member_patterns = patterns[members]
    many = counts[member_patterns]
    return np.repeat(members, many).astype(np.int32), ranges(legs.starts[member_patterns], many)


def _meet_subjects(patterns: Longs, centers: Ints, legs: Legs) -> tuple[Longs, Longs]:
    """Returns pairs of these rows and places of their pattern with the same subject."""
    room = max(len(centers), 1024)
    parts: list[tuple[Longs, Longs]] = []
    start = 0
    while start < len(centers):
        pairs, places = np.empty(room, np.int64), np.empty(room, np.int64)
        start, n = meet(patterns, centers, legs.subject, legs.starts, start, pairs, places)
        parts.append((pairs[:n], places[:n]))
        room = max(2 * room, len(legs.rows) if not n else 0)
    return parts[0] if len(parts) == 1 else _concatenate(parts)


def _concatenate(parts: Sequence[tuple[Longs, Longs]]) -> tuple[Longs, Longs]:
    none = np.empty(0, np.int64)
    return np.concatenate([none, *(p for p, _ in parts)]), np.concatenate(
        [none, *(r for _, r in parts)]
    )


def _has_equal_bindings(step: s.Star, rows: Sequence[Longs], triples: Triples) -> Bools | None:
    """Flags the rows that bind all variables shared by several legs alike; None: all rows (only the
    subject is shared).
    """
    keep: Bools | None = None
    for first, others in step.shared_slots():
        a = term_at(first, triples), rows[first[0]]
        for other in others:
            b = term_at(other, triples), rows[other[0]]
            same = (a[0].x[a[1]] == b[0].x[b[1]]) & (a[0].y[a[1]] == b[0].y[b[1]])
            keep = same if keep is None else keep & same
    return keep


def term_at(place: tuple[int, int], triples: Triples) -> TermColumn:
    """The column of a (leg, position)."""
    return (triples.s, triples.p, triples.o)[place[1]]
