"""Matched triples, tuples and constants as rows of the plan's first nodes
(docs/architecture.md#a-triples-way).

One table matches every pattern of the plan over one stream at once; ``Patterns`` has the node and
member of each pattern. Slots are gathered from the parsed columns. Texts that travel are added to
the pool here, because their bytes are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.connectors.ingest.tables.tuple_rows import TupleColumn, Tuples
from levada.core import column_names as col
from levada.core.array_types import Ints, Longs
from levada.core.frame import Column, Frame
from levada.core.rdf_terms import SPECIAL, Kind, Literal
from levada.kernels.terms.term_ids import identify, identify_ints
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions.term_values import from_texts
from levada.operators.matching.entailed_patterns import frame_of
from levada.operators.matching.pattern_table import Patterns
from levada.operators.matching.slot_columns import Chunk, term_slot
from levada.operators.matching.star_match import Legs, stars, term_at
from levada.operators.rows.term_columns import slot
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Facet, slot_columns


def match_(
    patterns: Patterns,
    chunk: Chunk,
    keep: npt.NDArray[np.bool_] | None = None,
    subjects: npt.NDArray[np.int32] | None = None,
) -> Iterator[tuple[PlanNode, Frame]]:
    """The rows of each node that some triple matches. ``keep``: which triples count (None: all).
    ``subjects`` (int32[n]) numbers subjects, for stars.
    """
    if patterns.lasting is not None:
        yield from match_(patterns.lasting, chunk, keep)
    triples = chunk.triples
    rows, starts = patterns.table.match(triples, keep)
    if chunk.hits is not None and patterns.texts:
        chunk.hits.update(dict(zip(patterns.texts, np.diff(starts).tolist(), strict=False)))
    for node, numbers, members in patterns.nodes:
        counts = starts[numbers + 1] - starts[numbers]
        if counts.any():
            of = np.repeat(members, counts)
            yield node, _row_frame(node, of, _pattern_rows(rows, starts, numbers), chunk)
    for ways in patterns.entailed:
        frame = frame_of(ways, chunk, rows, starts)
        if frame is not None:
            yield ways.node, frame
    if patterns.stars and len(rows):
        assert subjects is not None, "a stream of stars has closed elements"
        legs = Legs.from_matches(rows, starts, subjects, triples)
        for star, of_leg in patterns.stars:
            op, leg_triples = stars(star.step, of_leg, legs, triples)
            if len(op):
                yield star, _star_frame(star, op, leg_triples, chunk)


def _pattern_rows(
    rows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], patterns: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns the rows of these patterns, which are distinct and mostly have consecutive
    numbers.
    """
    low, high = int(patterns[0]), int(patterns[-1])
    if high - low + 1 == len(patterns) and (np.diff(patterns) == 1).all():
        return rows[starts[low] : starts[high + 1]]
    return np.concatenate(
        [rows[starts[p] : starts[p + 1]] for p in patterns.tolist() if starts[p] < starts[p + 1]]
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


def scan(node: PlanNode[s.Scan], member: int, tuples: Tuples, pool: TermLookup) -> Frame:
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
    return TupleColumn(np.full(tuples.n, _INTEGER, np.uint8), man=tuples.ts)


_INTEGER = int(Kind.INTEGER)


def _value_slot(values: TupleColumn, i: int, facets: Facet, pool: TermLookup) -> dict[str, Column]:
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
    if strings.str.contains(SPECIAL).any():
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
    node: PlanNode[s.Constant], chosen: npt.NDArray[np.bool_], pool: TermLookup
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
