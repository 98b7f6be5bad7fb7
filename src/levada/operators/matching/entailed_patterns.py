"""Entailed patterns at ingest: the rows of a pattern from the matches of its alternatives, by
tables (``plan.logical.entailment_alternatives``).

    matched rows by pattern  --ways: pattern, member, form-->  slots from positions or from terms
                             --alike-->  rows

A way is an alternative of a member. All ways of a node are one table, in order of their forms. All
alternatives of one form become rows in the same way, so a form is a gather. If the subject or
object is one of several equal terms (owl:sameAs), the row is then repeated for each of these terms.
A triple with several entailments gives equal rows; they become a set where the rows of a plain
pattern do. Cost: 10 to 50 ns a matched row and slot, whatever the number of alternatives; a way
without matches costs a look per chunk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.frame import Column, Frame, concat
from levada.core.rdf_terms import Blank, Kind, Term
from levada.core.row_ranges import ranges
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_ids import identify
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.matching.slot_columns import Chunk, Resources, resource_slot, term_slot
from levada.plan.execution import steps as s
from levada.plan.execution.pattern_text import MOST_COUNTED, entailed_text
from levada.plan.execution.plan import PlanNode


def table_of(terms: Sequence[Term], seed: int) -> tuple[Resources, Longs]:
    """Returns the table of these terms, and the row of each term in it."""
    distinct = {term: i for i, term in enumerate(dict.fromkeys(terms))}
    array = pa.array([str(term) for term in distinct], pa.large_string())
    x, y = identify(array, seed)
    _, offsets, data = array.buffers()
    off = np.frombuffer(offsets, np.int64, len(array) + 1) if len(array) else np.zeros(1, np.int64)
    filled = data is not None and data.size
    body = np.frombuffer(data, np.uint8) if filled else np.zeros(1, np.uint8)
    kinds = np.array([Kind.BLANK if isinstance(t, Blank) else Kind.IRI for t in distinct], np.uint8)
    return Resources(Terms(x, y, off, body), kinds), np.array(
        [distinct[t] for t in terms], np.int64
    )


@dataclass(frozen=True)
class Alike:
    """Terms that are the same: the classes' members one after the other; of each member its class's
    begin and size.
    """

    table: Resources
    start: Longs
    size: Longs

    @staticmethod
    def from_classes(groups: Sequence[Sequence[Term]], seed: int) -> Alike:
        """Builds the table of these classes, which are disjoint."""
        table, _ = table_of([term for group in groups for term in group], seed)
        sizes = np.array([len(group) for group in groups], np.int64)
        return Alike(table, np.repeat(np.cumsum(sizes) - sizes, sizes), np.repeat(sizes, sizes))

    def expand_rows(self, frame: Frame, i: int, node: PlanNode, pool: TermLookup) -> Frame:
        """Repeats each row whose slot i contains one of the terms, once for each term of its
        class.
        """
        table_rows = self.table.terms.find(frame[col.x(i)], frame[col.y(i)])
        known = table_rows >= 0
        if not known.any():
            return frame
        counts = np.where(known, self.size[table_rows], 1)
        rows = np.repeat(np.arange(frame.n), counts)
        place = ranges(np.zeros(frame.n, np.int64), counts)
        out = frame.take(rows)
        others = np.flatnonzero(known[rows])
        at = self.start[table_rows[rows[others]]] + place[others]
        columns = resource_slot(self.table, at, i, node.layout.slots[i], pool)
        changed = {name: out[name].copy() for name in columns}
        for name, values in columns.items():
            changed[name][others] = values
        return out.with_(**changed)


@dataclass(frozen=True)
class AlternativeTable:
    """The ways of a node in order of their forms: pattern and member of each, and the row of each
    term of its slots.

    ``forms``: where each form's ways begin, and the end. ``texts``: the pattern of each member for
    people; none if they are many.
    """

    node: PlanNode[s.Entailed]
    pattern: Longs
    member: npt.NDArray[np.int32]
    slots: Longs
    forms: Longs
    table: Resources
    alike: Alike
    texts: dict[int, str]

    @staticmethod
    def build(
        node: PlanNode[s.Entailed],
        chosen: Sequence[int],
        patterns: Sequence[Sequence[int]],
        seed: int,
    ) -> AlternativeTable:
        """The ways of the chosen members; ``patterns`` has the pattern of each of their ways."""
        step = node.step
        every = [
            (way, m, number)
            for m, numbers in zip(chosen, patterns, strict=True)
            for way, number in zip(node.members[m].ways, numbers, strict=True)
        ]
        every.sort(key=lambda entry: entry[0].form)
        table, rows = table_of([term for way, _, _ in every for term in way.terms], seed)
        slots = np.full((len(every), len(step.kept)), -1, np.int64)
        at = 0
        for i, (way, _, _) in enumerate(every):
            free = [slot for slot, source in enumerate(step.forms[way.form].sources) if source < 0]
            for slot in free:
                if slot in step.kept:
                    slots[i, step.kept.index(slot)] = rows[at]
                at += 1
        texts = {
            m: entailed_text(node.members[m].constants, step.positions)
            for m in chosen[: MOST_COUNTED + 1]
        }
        return AlternativeTable(
            node,
            np.array([n for _, _, n in every], np.int64),
            np.array([m for _, m, _ in every], np.int32),
            slots,
            np.searchsorted(
                [way.form for way, _, _ in every], np.arange(len(step.forms) + 1)
            ).astype(np.int64),
            table,
            Alike.from_classes(step.alike, seed),
            texts if len(texts) <= MOST_COUNTED else {},
        )

    def rows(self, chunk: Chunk, matched: Longs, starts: Longs) -> Iterator[Frame]:
        """The rows of each form, from the rows of triples that each pattern matches."""
        counts = starts[self.pattern + 1] - starts[self.pattern]
        for f, form in enumerate(self.node.step.forms):
            alternatives = np.arange(self.forms[f], self.forms[f + 1])
            alternatives = alternatives[counts[alternatives] > 0]
            if not len(alternatives):
                continue
            way = np.repeat(alternatives, counts[alternatives])
            at = matched[ranges(starts[self.pattern[alternatives]], counts[alternatives])]
            if form.resource:
                resource = chunk.triples.o.kind[at] <= Kind.BLANK
                way, at = way[resource].astype(np.int64), at[resource]
            if len(at):
                self._count(way, chunk.hits)
                yield self._frame(form, way, at, chunk)

    def _count(self, way: Longs, hits: Counter[str] | None) -> None:
        if hits is not None and self.texts:
            counts = np.bincount(self.member[way], minlength=len(self.node.members))
            hits.update({text: int(counts[m]) for m, text in self.texts.items()})

    def _frame(self, form: s.Form, way: Longs, at: Longs, chunk: Chunk) -> Frame:
        step, triples, pool = self.node.step, chunk.triples, chunk.pool
        columns: dict[str, Column] = {"op": self.member[way]}
        for i, slot in enumerate(step.kept):
            facets, source = self.node.layout.slots[i], form.sources[slot]
            if source < 0:
                columns.update(resource_slot(self.table, self.slots[way, i], i, facets, pool))
            else:
                term = (triples.s, triples.p, triples.o)[source]
                columns.update(term_slot(term, at, i, facets, chunk))
        if self.node.layout.windows:
            columns["lo0"] = chunk.ts.take(at)
        frame = Frame(columns, len(at))
        for i in step.spread:
            if form.sources[step.kept[i]] >= 0:
                frame = self.alike.expand_rows(frame, i, self.node, pool)
        return frame


def frame_of(ways: AlternativeTable, chunk: Chunk, matched: Longs, starts: Longs) -> Frame | None:
    """Returns all rows of a node, or None without rows. ``chunk.hits`` receives the number of rows
    of each member, by its pattern, also 0.
    """
    if chunk.hits is not None:
        chunk.hits.update(dict.fromkeys(ways.texts.values(), 0))
    frames = list(ways.rows(chunk, matched, starts))
    return concat(frames) if frames else None
