"""Decodes segments to batches: the committed results of an epoch, by query, for sinks and readers.

A segment contains all queries' rows of one task. Rows that several queries share are in it once
(``plan/execution/shared_results``), also where the queries have other rows, too
(``reporting/shared_result_cells``). Here the rows are merged over tasks, sorted by report (keeping
their order within one), and turned into texts. CONSTRUCT's template is instantiated here, each
triple once a report; a triple that is not valid RDF (an unbound part, a literal as subject, a
predicate that is not an IRI) is left out (SPARQL 1.1, 16.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.connectors.serialization.serialize import Batch
from levada.core.array_types import Ints, Longs, Words
from levada.core.event_time import distinct, in_sorted
from levada.core.expressions import Var
from levada.core.frame import Frame, concat
from levada.core.query_model import Form, Output, TriplePattern
from levada.core.rdf_terms import Blank, Term
from levada.core.row_ranges import starts_segment
from levada.core.text_columns import join_lines
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_ids import identify, identify_one
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions.seeded_functions import blank
from levada.operators.rows.constants import copies, name_seed
from levada.operators.rows.term_columns import column
from levada.plan.execution.plan import Plan, PlanNode, QueryPlan
from levada.plan.execution.row_layout import Layout

# The blank nodes of a CONSTRUCT's template: fresh for each solution (SPARQL 1.1, 16.2.1), and
# equal however often they are made.
#
# A node derives from the query, the report, the solution (with its number among solutions that are
# equal in the template), and its label in the template (docs/semantics.md#results). Cost: a hash of
# each text.


def blank_nodes(
    query: str,
    report: npt.NDArray[np.int64],
    columns: Mapping[str, pl.Series],
    labels: Collection[str],
) -> dict[str, pl.Series]:
    """The texts of the nodes of each label, a row per solution; all of a report must be here.

    >>> nodes = blank_nodes("q", np.array([5, 5]), {"x": pl.Series(["<a:b>", "<a:b>"])}, ["n"])["n"]
    >>> nodes.n_unique(), nodes[0][:3]
    (2, '_:g')
    """
    if not labels:
        return {}
    seeds = _seeds(query, report, columns)
    return {
        label: blank(seeds ^ np.uint64(identify_one(label, 0)[0]), 0).texts() for label in labels
    }


def _seeds(query: str, report: npt.NDArray[np.int64], columns: Mapping[str, pl.Series]) -> Words:
    n = len(report)
    none = np.zeros(n, np.uint64)
    k, h = np.full(n, name_seed(query), np.uint64), none
    for texts in columns.values():
        k, h = combine(k, h, *identify(texts, 0))
    k, h = combine(k, h, np.ascontiguousarray(report).view(np.uint64), none)
    seeds: Words = combine(k, h, copies(k, h), none)[0]
    return seeds


Opener = Callable[[str], tuple[Mapping[str, Frame], Any]]


def batches(
    plan: Plan, segments: Iterable[str], opener: Opener, query_names: Container[str] | None = None
) -> Iterator[tuple[QueryPlan, Batch]]:
    """Yields the batch of each query that has rows in these segments of one epoch, and that is
    among ``query_names`` (None: all).
    """
    frames: dict[int, list[Frame]] = {}
    others: dict[int, list[Frame]] = {}
    pool = TermLookup(0)
    for segment in segments:
        parts, _ = opener(segment)
        pool.add(Terms.from_frames(parts, "terms"))
        for name, frame in parts.items():
            if name.startswith("r."):
                frames.setdefault(int(name[2:]), []).append(frame)
            elif name.startswith("same."):
                others.setdefault(int(name[5:]), []).append(frame)
    for number, node_frames in frames.items():
        rows = _Rows.from_frame(plan.nodes[number], concat(node_frames), pool)
        yield from rows.batches(plan, others.get(number, ()), query_names)


def batch_of(
    query: QueryPlan, layout: Layout, segments: Iterable[str], opener: Opener
) -> Batch | None:
    """A query's batch, if it has rows in these segments of an epoch; ``layout`` is its rows'."""
    frames, pool = _rows_of(query, segments, opener)
    if not frames:
        return None
    rows = concat(list(frames.values()))
    rows = rows.take(np.lexsort((_change(rows), rows["r"])))
    return _batch(query, rows, _texts(layout, rows, pool))


def timed_statements(
    plan: Plan,
    query: QueryPlan,
    segments: Sequence[str],
    opener: Opener,
    before: Sequence[str] = (),
) -> bytes:
    """Returns the triples of a CONSTRUCT in these segments of one epoch, as N-Triples with the
    report's time behind each statement, each once a report.

    ``before``: the earlier segments of the epoch, if the template has blank nodes: their solutions
    are counted, so that nodes are those of the whole report. The work follows from the query's rows
    (and the segments' tables of terms).
    """
    frames, pool = _rows_of(query, (*before, *segments), opener)
    if frames.keys() <= set(before):
        return b""
    rows, skipped = concat(list(frames.values())), sum(frames[n].n for n in before if n in frames)
    texts = _texts(plan.nodes[query.node].layout, rows, pool)
    parts = {name: part[skipped:] for name, part in _parts(query, rows["r"], texts).items()}
    statements = triples(rows["r"][skipped:], query.template, parts)
    return join_lines(
        statements.select(
            pl.concat_str("t", pl.lit(" "), pl.col("r").cast(pl.String), pl.lit(" .\n"))
        ).to_series()
    )


def _rows_of(
    query: QueryPlan, segments: Iterable[str], opener: Opener
) -> tuple[dict[str, Frame], TermLookup]:
    """Returns the rows of one query in the segments that have any, with their texts."""
    frames: dict[str, Frame] = {}
    pool = TermLookup(0)
    for segment in segments:
        parts, _ = opener(segment)
        frame = parts.get(f"r.{query.node}")
        if frame is None:
            continue
        rows = np.flatnonzero(np.isin(frame["op"], _members_with_rows(query, parts)))
        if len(rows):
            frames[segment] = frame.take(rows)
            pool.add(Terms.from_frames(parts, "terms"))
    return frames, pool


def _members_with_rows(query: QueryPlan, parts: Mapping[str, Frame]) -> Ints:
    """Returns the members and cells in a segment whose rows belong to the query."""
    members = np.array([query.member], np.int32)
    same = parts.get(f"same.{query.node}")
    return (
        members if same is None else np.append(members, same["first"][same["op"] == query.member])
    )


@dataclass(frozen=True)
class _Rows:
    """The rows of an Emit, by member and report, with the begin and end of each member. The texts
    of a member's rows are made once for all queries.
    """

    node: PlanNode
    rows: Frame
    places: Mapping[int, tuple[int, int]]
    pool: TermLookup

    @staticmethod
    def from_frame(node: PlanNode, frame: Frame, pool: TermLookup) -> _Rows:
        rows = frame.take(np.lexsort((np.arange(frame.n), _change(frame), frame["r"], frame["op"])))
        ops, starts = np.unique(rows["op"], return_index=True)
        stops = [*starts[1:].tolist(), rows.n]
        places = zip(starts.tolist(), stops, strict=True)
        return _Rows(node, rows, dict(zip(ops.tolist(), places, strict=True)), pool)

    def batches(
        self, plan: Plan, others: Sequence[Frame], query_names: Container[str] | None
    ) -> Iterator[tuple[QueryPlan, Batch]]:
        """Yields the batches of the members that have rows, and of ``others``, which have the rows
        of members and of cells.
        """
        having: dict[tuple[int, ...], list[QueryPlan]] = {}
        for op, of in _by_member(self.places, others):
            query = plan.queries.get(self.node.members.query_at(op))
            there = query is not None and query.member == op
            if query is not None and there and (query_names is None or query.name in query_names):
                having.setdefault(of, []).append(query)
        several = Counter(op for of in having for op in of)
        shared = [of for of in having if any(several[op] > 1 for op in of)]
        texts = self._texts(sorted({op for of in shared for op in of}))
        for of, queries in having.items():
            rows, member_texts = self._rows_and_texts(of, texts)
            yield from ((query, _batch(query, rows, member_texts)) for query in queries)

    def _rows_and_texts(
        self, of: Sequence[int], texts: _GeneratedTexts
    ) -> tuple[Frame, list[pl.Series]]:
        """The rows of members and cells by report, and their texts, which may be there."""
        at = np.concatenate([np.arange(*self.places[op]) for op in of])
        rows = self.rows.take(at)
        order = np.lexsort((_change(rows), rows["r"])) if len(of) > 1 else np.arange(rows.n)
        at, rows = at[order], rows.take(order)
        if (places := texts.places[at])[0] >= 0:
            return rows, [column.gather(places) for column in texts.texts]
        return rows, _texts(self.node.layout, rows, self.pool)

    def _texts(self, ops: Sequence[int]) -> _GeneratedTexts:
        """Returns the texts of the rows of these members and cells, made once for all queries."""
        at = np.concatenate([np.empty(0, np.int64), *(np.arange(*self.places[op]) for op in ops)])
        places = np.full(self.rows.n, -1, np.int64)
        places[at] = np.arange(len(at))
        return _GeneratedTexts(places, _texts(self.node.layout, self.rows.take(at), self.pool))


class _GeneratedTexts(NamedTuple):
    """Texts of some rows, and the place of each row's texts (-1: no place)."""

    places: Longs
    texts: list[pl.Series]


def _by_member(
    places: Mapping[int, tuple[int, int]], others: Sequence[Frame]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields each member that has rows, with the members and cells (below 0) whose rows it has."""
    members = np.array([op for op in places if op >= 0], np.int64)
    op, of = (
        np.concatenate([members, *(same[name] for same in others)]) for name in ("op", "first")
    )
    pairs = np.unique(np.stack([op, of]), axis=1)
    begins = np.flatnonzero(starts_segment(pairs[0]))
    for low, high in pairwise((*begins.tolist(), pairs.shape[1])):
        yield int(pairs[0, low]), tuple(pairs[1, low:high].tolist())


def _change(frame: Frame) -> npt.NDArray[np.int8]:
    return frame["w"] if "w" in frame else np.zeros(frame.n, np.int8)


def _texts(layout: Layout, rows: Frame, pool: TermLookup) -> list[pl.Series]:
    return [column(rows, i, pool).texts() for i in range(len(layout.slots))]


def _batch(query: QueryPlan, rows: Frame, texts: Sequence[pl.Series]) -> Batch:
    """The rows of one query, sorted by report, as a batch of its form."""
    sign = rows["w"] if query.output is Output.RELATION and "w" in rows else None
    match query.form:
        case Form.ASK:
            return Batch(
                rows["r"], Form.ASK, booleans=texts[0].str.starts_with('"true"').to_numpy()
            )
        case Form.CONSTRUCT:
            return _graphs(rows["r"], query.template, _parts(query, rows["r"], texts))
        case _:
            return Batch(
                rows["r"], columns=dict(zip(query.variables, texts, strict=True)), change=sign
            )


def with_empty(batch: Batch, times: npt.NDArray[np.int64]) -> Batch:
    """Adds these due reports to a batch, also those without a result: an ASK query gets false for
    them.
    """
    if not len(times):
        return batch
    due, nonempty = distinct(times), distinct(batch.report)
    empty = due[~in_sorted(nonempty, due)]
    if not len(empty):
        return batch
    if batch.form is not Form.ASK:
        return replace(batch, empty=empty)
    report = np.concatenate([batch.report, empty])
    assert batch.booleans is not None, "an ASK batch has booleans"
    order = np.argsort(report, kind="stable")
    return Batch(
        report[order],
        Form.ASK,
        booleans=np.concatenate([batch.booleans, np.zeros(len(empty), bool)])[order],
    )


def _parts(
    query: QueryPlan, report: npt.NDArray[np.int64], texts: Sequence[pl.Series]
) -> dict[str, pl.Series]:
    """Returns the values of a template's places: its variables by name, its blank nodes by text."""
    named = dict(zip(query.variables, texts, strict=True))
    return {**named, **_nodes(query, report, named)}


def _nodes(
    query: QueryPlan, report: npt.NDArray[np.int64], columns: Mapping[str, pl.Series]
) -> dict[str, pl.Series]:  # fmt: skip
    """The blank nodes of the template, by their texts in it."""
    labels = {str(p) for triple in query.template for p in triple.positions if isinstance(p, Blank)}
    return blank_nodes(query.name, report, columns, sorted(labels))


def empty_batch(query: QueryPlan, times: npt.NDArray[np.int64]) -> Batch:
    """Reports without a result, which are to be shown."""
    none = np.empty(0, np.int64)
    texts = pl.Series([], dtype=pl.String)
    match query.form:
        case Form.ASK:
            return Batch(times, Form.ASK, booleans=np.zeros(len(times), bool))
        case Form.CONSTRUCT:
            return Batch(none, Form.CONSTRUCT, graphs=texts, empty=times)
        case _:
            sign = np.empty(0, np.int8) if query.output is Output.RELATION else None
            return Batch(
                none, columns=dict.fromkeys(query.variables, texts), change=sign, empty=times
            )


def _graphs(
    report: npt.NDArray[np.int64],
    template: Sequence[TriplePattern],
    columns: Mapping[str, pl.Series],
) -> Batch:
    """One graph per report."""
    every = triples(report, template, columns).select("r", t=pl.col("t") + " .\n")
    graphs = every.group_by("r", maintain_order=True).agg(pl.col("t").str.join(""))
    return Batch(graphs["r"].to_numpy(), Form.CONSTRUCT, graphs=graphs["t"])


def triples(
    report: npt.NDArray[np.int64],
    template: Sequence[TriplePattern],
    columns: Mapping[str, pl.Series],
) -> pl.DataFrame:
    """The triples that a template makes of solutions (report ``r``, N-Triples text ``t``), by
    report, each once a report.
    """
    parts = [_triples(report, triple, columns) for triple in template]
    every = (
        pl.concat(parts)
        if parts
        else pl.DataFrame({"r": [], "t": []}, schema={"r": pl.Int64, "t": pl.String})
    )
    return every.unique(maintain_order=True).sort("r", maintain_order=True)


def _triples(
    report: npt.NDArray[np.int64], triple: TriplePattern, columns: Mapping[str, pl.Series]
) -> pl.DataFrame:
    n = len(report)
    frame = pl.DataFrame(
        {
            "r": report,
            **{
                name: _column(x, columns, n)
                for name, x in zip("spo", triple.positions, strict=True)
            },
        }
    )
    sound = (
        pl.col("o").is_not_null()
        & pl.col("p").str.starts_with("<")
        & ~pl.col("s").str.starts_with('"')
    )
    line = pl.concat_str("s", pl.lit(" "), "p", pl.lit(" "), "o")
    return frame.filter(sound).select("r", t=line)


def _column(position: Var | Term, columns: Mapping[str, pl.Series], n: int) -> pl.Series:
    """A position of a template in n solutions; its variables by name, its blank nodes by text."""
    match position:
        case Var(name):
            return columns[name]
        case Blank():
            return columns[str(position)]
        case _:
            return pl.Series([str(position)] * n, dtype=pl.String)
