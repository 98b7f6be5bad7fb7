"""The patterns of many members as one table, with the node and member of each pattern.

Every pattern of the plan over one stream is matched at once. Stable and changing patterns are kept
apart: full nodes (``plan/topology/members``) take no new members, so their table lasts from version
to version of the plan, and the other nodes have a small table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.connectors.ingest.parse.ntriples import Triples
from levada.core.array_types import Bools, Ints, Longs
from levada.core.frozen import frozen
from levada.kernels.keyed.pattern_match import (
    RECORD,
    SHAPE,
    build_table,
    group_pairs,
    match_rows,
)
from levada.kernels.terms.term_ids import identify
from levada.operators.matching.entailed_patterns import AlternativeTable
from levada.plan.execution import steps as s
from levada.plan.execution.demanded_terms import NOTHING, DemandedTerms, Terms
from levada.plan.execution.pattern_text import MOST_COUNTED, pattern_text
from levada.plan.execution.plan import PlanNode

# Matches triples with registered patterns: the patterns are one table, built once per plan and
# shipped to the tasks.
#
# A pattern has a constant or nothing at each of its three positions, and may require two positions
# to be equal (a variable that occurs twice). The patterns of a table are distinct; the plan maps
# each pattern to the operators that want its triples.
#
# Cost: building 1 to 2 us a pattern, matching 8 to 120 ns a triple
# (``kernels.keyed.pattern_match``). Twin: ``match_by_comparison``.


Pattern = tuple[str | None, str | None, str | None]

SUBJECT_IS_OBJECT, SUBJECT_IS_PREDICATE, PREDICATE_IS_OBJECT = 1, 2, 4


@frozen
class PatternTable:
    """Distinct patterns as arrays (``kernels.keyed.pattern_match``). It never changes."""

    patterns: npt.NDArray[np.int64]  # records [n, 8]
    table: npt.NDArray[np.int64]  # open addressing [2**bits, 2]
    filters: npt.NDArray[np.uint64]  # bitmaps of constants [3, words]
    masks: npt.NDArray[np.int64]  # the masks of constant positions that occur
    bits: int

    @staticmethod
    def build(patterns: Sequence[Pattern], repeats: Sequence[int], seed: int) -> PatternTable:
        """A table of patterns: texts of constants (None: a variable), codes of equal positions.

        A code adds SUBJECT_IS_OBJECT, SUBJECT_IS_PREDICATE and PREDICATE_IS_OBJECT; ``seed`` is
        that of the identities.

        >>> PatternTable.build([(None, "<a:p>", None)], [0], seed=1).n
        1
        """
        assert len(set(zip(patterns, repeats, strict=True))) == len(patterns), (
            "the patterns of a table are distinct"
        )
        return PatternTable.from_records(records_of(patterns, repeats, seed))

    @staticmethod
    def from_records(records: npt.NDArray[np.int64]) -> PatternTable:
        """A table of distinct patterns by their records."""
        bits = max(6, (2 * len(records)).bit_length())
        masks = np.unique(records[:, SHAPE] & 0xFF)
        table, filters = (
            np.zeros((1 << bits, 2), np.int64),
            np.zeros((3, 1 << (bits - 3)), np.uint64),
        )
        build_table(records, table, filters, bits)
        return PatternTable(records, table, filters, masks, bits)

    @property
    def n(self) -> int:
        """How many patterns."""
        return len(self.patterns)

    def match(self, triples: Triples, keep: Bools | None = None) -> tuple[Longs, Longs]:
        """Returns (rows, starts): the rows of triples (of those that ``keep`` flags) that each
        pattern matches.

        The rows of pattern i are ``rows[starts[i] : starts[i + 1]]``, in ascending order.
        """
        s, p, o = triples.s, triples.p, triples.o
        mask = np.zeros(0, np.bool_) if keep is None else keep
        pieces: list[tuple[Longs, npt.NDArray[np.int32]]] = []
        room, start = 2 * triples.n + self.n + 1024, 0
        while start < triples.n:
            rows, numbers = np.empty(room, np.int64), np.empty(room, np.int32)
            start, count = match_rows(
                s.x,
                s.y,
                p.x,
                p.y,
                o.x,
                o.y,
                mask,
                self.patterns,
                self.table,
                self.filters,
                self.masks,
                self.bits,
                start,
                rows,
                numbers,
            )
            pieces.append((rows[:count], numbers[:count]))
        return _group(pieces, self.n)


def records_of(
    patterns: Sequence[Pattern], repeats: Sequence[int], seed: int
) -> npt.NDArray[np.int64]:
    """Patterns as records: the identities of their constants, where these are, the codes of equal
    positions.
    """
    assert len(repeats) == len(patterns), "each pattern has a code of equal positions"
    records = np.zeros((len(patterns), RECORD), np.int64)
    for position in range(3):
        constants = pl.Series([pattern[position] for pattern in patterns], dtype=pl.String)
        x, y = identify(constants, seed)
        records[:, 2 * position], records[:, 2 * position + 1] = x.view(np.int64), y.view(np.int64)
        bound = constants.is_not_null().to_numpy().astype(np.int64)
        records[:, SHAPE] |= bound << position
    records[:, SHAPE] |= np.array(repeats, np.int64) << 8
    return records


def distinct_records(records: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Longs]:
    """Returns the distinct records, and the number of each record among them."""
    _, first, number = np.unique(mix_record(records), return_index=True, return_inverse=True)
    distinct = records[first]
    if np.array_equal(distinct[number], records):
        return distinct, number
    distinct, number = np.unique(records, axis=0, return_inverse=True)  # two of one mixture
    return distinct, number.ravel()


def mix_record(records: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """A number for each record, equal for equal ones, and seldom for others."""
    mixture = records[:, SHAPE].astype(np.uint64)
    for column in range(SHAPE):
        mixture = (mixture ^ records[:, column].view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixture ^= mixture >> np.uint64(29)
    return mixture


def _group(pieces: list[tuple[Longs, npt.NDArray[np.int32]]], patterns: int) -> tuple[Longs, Longs]:
    """The pairs of all pieces by pattern."""
    if len(pieces) == 1:
        rows, numbers = pieces[0]
    else:
        rows = np.concatenate([np.zeros(0, np.int64), *(piece[0] for piece in pieces)])
        numbers = np.concatenate([np.zeros(0, np.int32), *(piece[1] for piece in pieces)])
    out = np.empty_like(rows)
    starts = group_pairs(rows, numbers, patterns, out)
    return out, starts


def match_by_comparison(
    table: PatternTable, triples: Triples, keep: Bools | None = None
) -> tuple[Longs, Longs]:
    """Returns the result of ``PatternTable.match``, by comparing whole columns for each pattern:
    its twin.
    """
    columns = [
        half.view(np.int64) for c in (triples.s, triples.p, triples.o) for half in (c.x, c.y)
    ]
    rows = [np.zeros(0, np.int64)]
    for record in table.patterns:
        mask, equal = int(record[SHAPE]) & 7, int(record[SHAPE]) >> 8
        hit = np.ones(triples.n, np.bool_) if keep is None else keep.copy()
        for k in range(6):
            if mask & (1 << (k // 2)):
                hit &= columns[k] == record[k]
        for code, a, b in (
            (SUBJECT_IS_OBJECT, 0, 4),
            (SUBJECT_IS_PREDICATE, 0, 2),
            (PREDICATE_IS_OBJECT, 2, 4),
        ):
            if equal & code:
                hit &= (columns[a] == columns[b]) & (columns[a + 1] == columns[b + 1])
        rows.append(np.flatnonzero(hit))
    return np.concatenate(rows), np.cumsum([len(r) for r in rows])


# constants and equal positions of a pattern: its number
Index = dict[tuple[tuple[str | None, ...], int], int]
MAX_COUNTED_MEMBERS = 2048  # members; patterns of so many are not counted one by one


@dataclass(frozen=True)
class Patterns:
    """The distinct patterns of some members, as one table, and the patterns that each node reads.

    ``nodes``: Match nodes, each with its patterns and the member of each pattern. ``stars``: Star
    nodes, each with the pattern of each (leg, member), -1 for members that are not chosen.
    ``entailed``: the ways of Entailed nodes. ``texts``: the patterns of Match and Star nodes for
    display, first in the table; empty if there are many. ``lasting``: the patterns of full nodes,
    in a table of their own, which the next version of the plan has, too.
    """

    table: PatternTable
    nodes: tuple[tuple[PlanNode[s.Match], Longs, Ints], ...]
    stars: tuple[tuple[PlanNode[s.Star], Longs], ...]
    entailed: tuple[AlternativeTable, ...]
    texts: tuple[str, ...]
    lasting: Patterns | None = None

    def tables(self) -> Iterator[Patterns]:
        """Yields this table and the lasting one."""
        yield self
        if self.lasting is not None:
            yield from self.lasting.tables()


@dataclass(frozen=True, slots=True, eq=False)
class _Large:
    """Very many members of a node, equal to the same ones in any version of the plan."""

    node: PlanNode[s.Match]
    chosen: npt.NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Large)
            and self.node.id == other.node.id
            and self.node.members is other.node.members
            and np.array_equal(self.chosen, other.chosen)
        )

    def __hash__(self) -> int:
        return hash((self.node.id, id(self.node.members)))


def patterns_of(
    nodes: Sequence[PlanNode],
    chosen: Sequence[npt.NDArray[np.bool_]],
    seed: int,
    demanded: DemandedTerms = NOTHING,
) -> Patterns | None:
    """Returns the patterns of chosen members of Match, Star and Entailed nodes, or None without
    patterns. ``demanded``: the terms that relaxed patterns represent.

    Where members are very many, they are processed by columns. The patterns of full nodes are a
    table of their own, which is kept in all versions of the plan as long as these nodes have the
    same members; so are the patterns of the lasting terms. So a version costs only its differences,
    and a triple is looked up twice.
    """
    large = tuple([_Large(m, c) for n, c in zip(nodes, chosen, strict=True) if (m := _large(n, c))])
    if large and (lasting := _lasting_patterns(large, seed)).table.n > MOST_COUNTED:
        now = {one.node.id: one.node for one in large}
        small = [(n, c) for n, c in zip(nodes, chosen, strict=True) if n.id not in now]
        rest = patterns_of([n for n, _ in small], [c for _, c in small], seed, demanded)
        return _append_lasting(rest, _of_now(lasting, now))
    if sum(map(len, demanded.lasting.values())) > MOST_COUNTED:
        return _with_terms(nodes, chosen, seed, demanded)
    if all(map(_plain, nodes, chosen)) and sum(map(np.count_nonzero, chosen)) > MAX_COUNTED_MEMBERS:
        many = _build_many(nodes, chosen, seed)
        if many.table.n > MOST_COUNTED:
            return many
    return _one_by_one(nodes, chosen, seed, demanded.all_as_rest.rest)


def _large(node: PlanNode, mask: npt.NDArray[np.bool_]) -> PlanNode[s.Match] | None:
    """Whether the node is full, represents no terms, and has chosen members."""
    match = node.as_step(s.Match)
    return match if match and node.is_full and not match.step.lifted and mask.any() else None


def _append_lasting(rest: Patterns | None, lasting: Patterns) -> Patterns:
    """Appends the lasting patterns to the others; the lasting ones are then not counted."""
    if rest is None:
        return lasting
    if rest.lasting is not None:
        lasting = _append_lasting(rest.lasting, lasting)
    return replace(rest, texts=(), lasting=lasting)


def _of_now(lasting: Patterns, nodes: Mapping[int, PlanNode[s.Match]]) -> Patterns:
    """The same patterns for the nodes of this version."""
    same = tuple([(nodes[node.id], numbers, members) for node, numbers, members in lasting.nodes])
    return replace(lasting, nodes=same)


def _with_terms(
    nodes: Sequence[PlanNode],
    chosen: Sequence[npt.NDArray[np.bool_]],
    seed: int,
    demanded: DemandedTerms,
) -> Patterns | None:
    """The patterns of terms that last, and all others."""
    lifted = {
        m.id: (m, c)
        for n, c in zip(nodes, chosen, strict=True)
        if (m := n.as_step(s.Match)) is not None and m.step.lifted and c.any()
    }
    rest = _one_by_one(nodes, chosen, seed, demanded.rest)
    if not lifted:
        return rest
    first, _ = next(iter(lifted.values()))
    follows = (demanded.lasting, [(m.members, c.tobytes()) for m, c in lifted.values()])
    lasting = first.compute_once_at(
        f"terms {seed}",
        follows,
        lambda: _one_by_one(
            [m for m, _ in lifted.values()], [c for _, c in lifted.values()], seed, demanded.lasting
        ),
    )
    if lasting is None:
        return rest
    return _append_lasting(
        rest, _of_now(replace(lasting, texts=()), {n: m for n, (m, _) in lifted.items()})
    )


@lru_cache(maxsize=16)
def _lasting_patterns(large: tuple[_Large, ...], seed: int) -> Patterns:
    """The patterns of full nodes, found once while these have the same members."""
    return _build_many([one.node for one in large], [one.chosen for one in large], seed)


def _one_by_one(
    nodes: Sequence[PlanNode],
    chosen: Sequence[npt.NDArray[np.bool_]],
    seed: int,
    demanded: Terms,
) -> Patterns | None:
    """The patterns of chosen members, one after the other."""
    index: Index = {}
    texts: dict[int, str] = {}
    matches: list[tuple[PlanNode[s.Match], Longs, Ints]] = []
    stars_: list[tuple[PlanNode[s.Star], Longs]] = []
    for node, mask in zip(nodes, chosen, strict=True):
        match, star = node.as_step(s.Match), node.as_step(s.Star)
        if not mask.any() or (match is None and star is None):
            continue
        legs = _legs(node.step)
        of: list[list[int]] = [[] for _ in legs]
        members: list[int] = []
        for m in np.flatnonzero(mask).tolist():
            for constants in _constants(node, m, demanded):
                members.append(m)
                for leg, positions in enumerate(legs):
                    pattern = tuple(constants[3 * leg : 3 * leg + 3]), _repeats(positions)
                    number = index.setdefault(pattern, len(index))
                    of[leg].append(number)
                    if number < MOST_COUNTED and number not in texts:
                        texts[number] = pattern_text(pattern[0], positions)
        if star is not None:
            numbers = np.full((len(legs), len(mask)), -1, np.int64)
            numbers[:, members] = of
            stars_.append((star, numbers))
        if match is not None:
            pattern_numbers = np.array(of[0], np.int64)
            order = np.argsort(pattern_numbers, kind="stable")
            matches.append((match, pattern_numbers[order], np.array(members, np.int32)[order]))
    shown = tuple(texts.values()) if len(index) <= MOST_COUNTED else ()
    ways = tuple(
        _ways(entailed, mask, index, seed)
        for node, mask in zip(nodes, chosen, strict=True)
        if mask.any() and (entailed := node.as_step(s.Entailed)) is not None
    )
    if not index:
        return None
    triples = [(c[0], c[1], c[2]) for c, _ in index]
    table = PatternTable.build(triples, [r for _, r in index], seed)
    return Patterns(table, tuple(matches), tuple(stars_), ways, shown)


def _plain(node: PlanNode, mask: npt.NDArray[np.bool_]) -> bool:
    """Whether the patterns of a node follow from its members alone, one of each; or none is
    chosen.
    """
    match = node.as_step(s.Match)
    return not mask.any() or (match is not None and not match.step.lifted)


def _build_many(
    nodes: Sequence[PlanNode], chosen: Sequence[npt.NDArray[np.bool_]], seed: int
) -> Patterns:
    """The patterns of very many members of Match nodes."""
    node_members = [
        (m, np.flatnonzero(c))
        for n, c in zip(nodes, chosen, strict=True)
        if (m := n.as_step(s.Match))
    ]
    parts = [node.compute_once(_records, seed)[members] for node, members in node_members]
    records, number = distinct_records(np.concatenate(parts))
    ends = np.cumsum([len(part) for part in parts])
    matches = []
    for (node, members), numbers in zip(node_members, np.split(number, ends[:-1]), strict=True):
        if len(members):
            order = np.argsort(numbers, kind="stable")
            matches.append((node, numbers[order], members.astype(np.int32)[order]))
    return Patterns(PatternTable.from_records(records), tuple(matches), (), (), ())


def _records(node: PlanNode[s.Match], seed: int) -> npt.NDArray[np.int64]:
    """The patterns of all members of a node, as records."""
    texts = [
        [None if t is None else str(t) for t in constants]
        for constants in node.members.each_constants()
    ]
    code = _repeats(node.step.positions)
    return records_of([(a, b, c) for a, b, c in texts], [code] * len(texts), seed)


def _constants(node: PlanNode, member: int, demanded: Terms) -> Iterator[list[str | None]]:
    """Returns the texts of the constants of a member's patterns: once, or for each term that a
    relaxed pattern represents.
    """
    constants = [None if t is None else str(t) for t in node.members[member].constants]
    match = node.as_step(s.Match)
    if match is None or not match.step.lifted:
        yield constants
        return
    for terms in demanded.get((node.id, member), ()):
        for at, term in zip(match.step.lifted, terms, strict=True):
            constants[at] = str(term)
        yield constants


def _ways(
    node: PlanNode[s.Entailed], mask: npt.NDArray[np.bool_], index: Index, seed: int
) -> AlternativeTable:
    """The ways of the chosen members of a node; their patterns get numbers."""
    forms = node.step.forms
    members = np.flatnonzero(mask).tolist()
    numbers = [
        [
            index.setdefault(
                (
                    tuple(None if t is None else str(t) for t in way.pattern),
                    forms[way.form].repeats,
                ),
                len(index),
            )
            for way in node.members[m].ways
        ]
        for m in members
    ]
    return AlternativeTable.build(node, members, numbers, seed)


def _legs(step: s.Step) -> tuple[tuple[int, int, int], ...]:
    """The positions of each pattern of a Match or a Star."""
    if isinstance(step, s.Star):
        return step.legs
    assert isinstance(step, s.Match), "a pattern's node"
    return (step.positions,)


def _repeats(positions: tuple[int, int, int]) -> int:
    """Returns the positions with the same variable: 1 s = o, 2 s = p, 4 p = o."""
    a, b, c = positions
    return (a >= 0 and a == c) * 1 + (a >= 0 and a == b) * 2 + (b >= 0 and b == c) * 4
