"""Matched triples, tuples and constants as rows of the plan's first nodes
(docs/architecture.md#a-triples-way).

Every pattern of the plan over one stream is matched at once by one table; ``Patterns`` says which
node and member each pattern stands for. Slots are gathered from the parsed columns; texts that
travel are made known to the pool here, where their bytes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.intake.matching.entailed import Ways, frame_of
from levada.intake.matching.match import PatternTable, distinct_records, records_of
from levada.intake.matching.slots import Chunk, term_slot
from levada.intake.matching.star import Legs, stars, term_at
from levada.intake.tables.tuples import TupleColumn, Tuples
from levada.model import columns as col
from levada.model.arrays import Ints, Longs
from levada.model.frame import Column, Frame
from levada.model.term import Kind, Literal, Term
from levada.operators.expressions.values import from_texts
from levada.operators.rows.values import slot
from levada.plan.sealed import steps as s
from levada.plan.sealed.layout import Facet, slot_columns
from levada.plan.sealed.patterns import MOST_COUNTED, pattern_text
from levada.plan.sealed.plan import PlanNode
from levada.terms.identity import identify, identify_ints
from levada.terms.term_pool import Pool

# constants and equal positions of a pattern: its number
Index = dict[tuple[tuple[str | None, ...], int], int]
Wanted = Mapping[tuple[int, int], Sequence[Sequence[Term]]]
_NOTHING: Wanted = {}
MANY = 2048  # members; patterns of so many are not counted one by one


@dataclass(frozen=True)
class Patterns:
    """The distinct patterns of some members, as one table, and which of them each node reads.

    ``nodes``: Match nodes, each with its patterns and the member that each of these is. ``stars``:
    Star nodes, each with the pattern of each (leg, member), -1 for members that are not chosen.
    ``entailed``: the ways of Entailed nodes. ``texts``: the patterns of Match and Star nodes, which
    come first in the table, for people; none if they are many.
    """

    table: PatternTable
    nodes: tuple[tuple[PlanNode[s.Match], Longs, Ints], ...]
    stars: tuple[tuple[PlanNode[s.Star], Longs], ...]
    entailed: tuple[Ways, ...]
    texts: tuple[str, ...]


def patterns_of(
    nodes: Sequence[PlanNode],
    chosen: Sequence[npt.NDArray[np.bool_]],
    seed: int,
    wanted: Wanted = _NOTHING,
) -> Patterns | None:
    """The patterns of chosen members of Match, Star and Entailed nodes; None: there are none.
    ``wanted``: the terms that relaxed ones stand for.

    Where members are very many, they are taken by columns, which a node keeps as long as it has the
    same members, in whichever version of the plan.
    """
    if sum(map(np.count_nonzero, chosen)) > MANY and all(map(_plain, nodes, chosen)):
        many = _many(nodes, chosen, seed)
        if many.table.n > MOST_COUNTED:
            return many
    index: Index = {}
    texts: dict[int, str] = {}
    matches: list[tuple[PlanNode[s.Match], Longs, Ints]] = []
    stars_: list[tuple[PlanNode[s.Star], Longs]] = []
    for node, mask in zip(nodes, chosen, strict=True):
        match, star = node.of(s.Match), node.of(s.Star)
        if not mask.any() or (match is None and star is None):
            continue
        legs = _legs(node.step)
        of: list[list[int]] = [[] for _ in legs]
        members: list[int] = []
        for m in np.flatnonzero(mask).tolist():
            for constants in _constants(node, m, wanted):
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
            own = np.array(of[0], np.int64)
            order = np.argsort(own, kind="stable")
            matches.append((match, own[order], np.array(members, np.int32)[order]))
    shown = tuple(texts.values()) if len(index) <= MOST_COUNTED else ()
    ways = tuple(
        _ways(entailed, mask, index, seed)
        for node, mask in zip(nodes, chosen, strict=True)
        if mask.any() and (entailed := node.of(s.Entailed)) is not None
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
    match = node.of(s.Match)
    return not mask.any() or (match is not None and not match.step.lifted)


def _many(
    nodes: Sequence[PlanNode], chosen: Sequence[npt.NDArray[np.bool_]], seed: int
) -> Patterns:
    """The patterns of very many members of Match nodes."""
    found = [
        (m, np.flatnonzero(c)) for n, c in zip(nodes, chosen, strict=True) if (m := n.of(s.Match))
    ]
    parts = [node.known(_records, seed)[members] for node, members in found]
    records, number = distinct_records(np.concatenate(parts))
    ends = np.cumsum([len(part) for part in parts])
    matches = []
    for (node, members), own in zip(found, np.split(number, ends[:-1]), strict=True):
        if len(members):
            order = np.argsort(own, kind="stable")
            matches.append((node, own[order], members.astype(np.int32)[order]))
    return Patterns(PatternTable.of(records), tuple(matches), (), (), ())


def _records(node: PlanNode[s.Match], seed: int) -> npt.NDArray[np.int64]:
    """The patterns of all members of a node, as records."""
    texts = [[None if t is None else str(t) for t in m.constants] for m in node.members]
    code = _repeats(node.step.positions)
    return records_of([(a, b, c) for a, b, c in texts], [code] * len(texts), seed)


def _constants(node: PlanNode, member: int, wanted: Wanted) -> Iterator[list[str | None]]:
    """The texts of the constants of a member's patterns: once, or for each term that a relaxed one
    stands for.
    """
    constants = [None if t is None else str(t) for t in node.members[member].constants]
    match = node.of(s.Match)
    if match is None or not match.step.lifted:
        yield constants
        return
    for terms in wanted.get((node.id, member), ()):
        for at, term in zip(match.step.lifted, terms, strict=True):
            constants[at] = str(term)
        yield constants


def _ways(node: PlanNode[s.Entailed], mask: npt.NDArray[np.bool_], index: Index, seed: int) -> Ways:
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
    return Ways.of(node, members, numbers, seed)


def _legs(step: s.Step) -> tuple[tuple[int, int, int], ...]:
    """The positions of each pattern of a Match or a Star."""
    if isinstance(step, s.Star):
        return step.legs
    assert isinstance(step, s.Match), "a pattern's node"
    return (step.positions,)


def _repeats(positions: tuple[int, int, int]) -> int:
    """Which positions hold the same variable: 1 s = o, 2 s = p, 4 p = o."""
    a, b, c = positions
    return (a >= 0 and a == c) * 1 + (a >= 0 and a == b) * 2 + (b >= 0 and b == c) * 4


def match_(
    patterns: Patterns,
    chunk: Chunk,
    keep: npt.NDArray[np.bool_] | None = None,
    subjects: npt.NDArray[np.int32] | None = None,
) -> Iterator[tuple[PlanNode, Frame]]:
    """The rows of each node that some triple matches. ``keep``: which triples count (None: all).
    ``subjects`` (int32[n]) numbers subjects, for stars.
    """
    triples = chunk.triples
    rows, starts = patterns.table.match(triples, keep)
    if chunk.hits is not None and patterns.texts:
        chunk.hits.update(dict(zip(patterns.texts, np.diff(starts).tolist(), strict=False)))
    for node, own, members in patterns.nodes:
        counts = starts[own + 1] - starts[own]
        if counts.any():
            of = np.repeat(members, counts)
            yield node, _row_frame(node, of, _of(rows, starts, own), chunk)
    for ways in patterns.entailed:
        frame = frame_of(ways, chunk, rows, starts)
        if frame is not None:
            yield ways.node, frame
    if patterns.stars and len(rows):
        assert subjects is not None, "a stream of stars has closed elements"
        legs = Legs.of(rows, starts, subjects, triples)
        for star, of_leg in patterns.stars:
            op, found = stars(star.step, of_leg, legs, triples)
            if len(op):
                yield star, _star_frame(star, op, found, chunk)


def _of(
    rows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], own: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The rows of these patterns, which mostly have numbers in sequence, each once."""
    low, high = int(own[0]), int(own[-1])
    if high - low + 1 == len(own) and (np.diff(own) == 1).all():
        return rows[starts[low] : starts[high + 1]]
    return np.concatenate(
        [rows[starts[p] : starts[p + 1]] for p in own.tolist() if starts[p] < starts[p + 1]]
    )


def _row_frame(
    node: PlanNode[s.Match], op: Ints, rows: npt.NDArray[np.int64], chunk: Chunk
) -> Frame:
    step, triples = node.step, chunk.triples
    columns: dict[str, Column] = {"op": op}
    for i, at in enumerate(step.kept):
        position = step.positions.index(at)
        term = (triples.s, triples.p, triples.o)[position]
        columns.update(term_slot(term, rows, i, node.layout.slots[i], chunk))
    if node.layout.windows:
        columns[col.least(0)] = chunk.ts.take(rows)
    return Frame(columns, len(rows))


def _star_frame(node: PlanNode[s.Star], op: Ints, rows: Sequence[Longs], chunk: Chunk) -> Frame:
    step = node.step
    columns: dict[str, Column] = {"op": op}
    places = step.places()
    for i, at in enumerate(step.kept):
        place = places[at][0]
        term = term_at(place, chunk.triples)
        columns.update(term_slot(term, rows[place[0]], i, node.layout.slots[i], chunk))
    columns[col.least(0)] = chunk.ts.take(rows[0])
    return Frame(columns, len(op))


def scan(node: PlanNode[s.Scan], member: int, tuples: Tuples, pool: Pool) -> Frame:
    """All tuples as rows of one member of a Scan node."""
    step = node.step
    columns: dict[str, Column] = {"op": np.full(tuples.n, member, np.int32)}
    for i, (name, facets) in enumerate(zip(step.columns, node.layout.slots, strict=True)):
        values = tuples.columns.get(name)
        columns.update(
            _value_slot(_time_column(tuples) if values is None else values, i, facets, pool)
        )
    columns["lo0"] = tuples.ts
    if step.sign:
        signs = tuples.columns[step.sign].text
        assert signs is not None, "a sign is a string"
        columns["w"] = np.where((signs == "+").to_numpy(), 1, -1).astype(np.int8)
    return Frame(columns, tuples.n)


def _time_column(tuples: Tuples) -> TupleColumn:
    return TupleColumn(np.full(tuples.n, Kind.INTEGER, np.uint8), man=tuples.ts)


def _value_slot(values: TupleColumn, i: int, facets: Facet, pool: Pool) -> dict[str, Column]:
    out: dict[str, Column] = {}
    if values.text is not None:
        texts = canonical(values.text)
        if Facet.TEXT in facets:
            out[col.x(i)], out[col.y(i)] = pool.identify(texts)
        elif Facet.ID in facets:
            out[col.x(i)], out[col.y(i)] = identify(texts, pool.seed)
    elif Facet.ID in facets or Facet.TEXT in facets:
        out[col.x(i)], out[col.y(i)] = _number_identity(values, pool.seed)
    out.update({n: values.facet(n[0]) for n in slot_columns(i, facets) if n[0] in "kdmc"})
    return out


def canonical(strings: pl.Series) -> pl.Series:
    r"""The canonical N-Triples texts of plain strings; null stays null.

    >>> canonical(pl.Series(['a"b']))[0]
    '"a\\"b"'
    """
    if strings.str.contains(r'[\x00-\x1f\x7f"\\\\]').any():
        return strings.map_elements(lambda text: str(Literal(text)), return_dtype=pl.String)
    return pl.select(pl.concat_str(pl.lit('"'), pl.lit(strings), pl.lit('"'))).to_series()


def _number_identity(
    values: TupleColumn, seed: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The identity of typed values: their kind and bits; (0, 0) for nulls."""
    tag = int(values.kind.max(initial=Kind.UNBOUND))  # UNBOUND is the least
    bits = (values.facet("d") + 0.0).view(np.int64) if tag == Kind.DOUBLE else values.facet("m")
    x, y = identify_ints(np.ascontiguousarray(bits), tag, seed)
    null = values.kind == Kind.UNBOUND
    if null.any():
        x, y = np.where(null, np.uint64(0), x), np.where(null, np.uint64(0), y)
    return x, y


def constants(
    node: PlanNode[s.Constant], chosen: npt.NDArray[np.bool_], pool: Pool
) -> Frame | None:
    """The rows of VALUES of the chosen members."""
    rows = [(m, row) for m in np.flatnonzero(chosen).tolist() for row in node.members[m].rows]
    if not rows:
        return None
    columns: dict[str, Column] = {"op": np.array([m for m, _ in rows], np.int32)}
    for i, facets in enumerate(node.layout.slots):
        texts = pl.Series(
            [None if row[i] is None else str(row[i]) for _, row in rows], dtype=pl.String
        )
        columns.update(slot(from_texts(texts), i, facets, pool))
    return Frame(columns, len(rows))
