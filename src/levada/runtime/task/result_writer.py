"""Writes the results of a task: one segment file for all queries, with rows by query and report,
and the texts that they show.

A segment has one frame per Emit node (columns of its layout; ``op`` is the query) and one term
table. Rows of several queries are stored once, for the first query, or with the number of a cell in
place of a member; ``same.`` and the node lists the other queries (``plan/execution``,
``operators/reporting``). The name of the file is unique to the attempt. The manifest names the
committed segments, and publication reads them (``connectors/serialization``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import EpochContext
from levada.checkpoint.result_counts import NONE, ResultCounts
from levada.core.array_types import Ints, Longs, Words
from levada.core.event_time import Times
from levada.core.frame import Column, Frame, concat
from levada.core.query_limits import Limited
from levada.core.row_ranges import starts_segment
from levada.errors import ExcessError
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.reporting.due_reports import drop_unreported
from levada.operators.reporting.shared_result_cells import same_of, without_cells
from levada.operators.row_limit import as_solutions, attribute_to_query, check_reports
from levada.operators.state.checksummed_frames import checked_parts
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.shared_results import add_shared_rows
from levada.runtime.task.exchange import text_identities
from levada.runtime.task.operator_failures import raise_failure


class Results:
    """Collects the output of Emit nodes."""

    def __init__(self, plan: Plan, pool: TermLookup) -> None:
        self.plan = plan
        self.pool = pool
        self.frames: dict[int, list[Frame]] = {}
        self._reported_lengths: dict[int, int] = {}
        self.sizes: dict[str, int] = {}  # of each query, where they have a limit

    def add(self, node: PlanNode, frame: Frame) -> None:
        """Adds result rows of an Emit node, except those of queries that have ended."""
        if frame.n and int(frame["r"].max()) > self.plan.first_end:
            frame = without_cells(self.plan, node, frame, self.pool.seed)
        frame = drop_unreported(self.plan, node, frame)
        if not frame.n:
            return
        self.frames.setdefault(node.id, []).append(frame)

    def fresh(self) -> Iterator[tuple[Words, Words]]:
        """Returns the identities of the texts of rows that were added since the last call."""
        for node, frames in self.frames.items():
            for frame in frames[self._reported_lengths.get(node, 0) :]:
                yield from text_identities(frame, self.plan.nodes[node].layout)
            self._reported_lengths[node] = len(frames)

    def write(
        self, context: EpochContext, stage: int, partition: int
    ) -> tuple[str | None, ResultCounts]:
        """Writes the segment; returns its name (None: no rows) and the counts of results. Raises
        ``ExcessError``.
        """
        if not self.frames:
            return None, NONE
        frames = {node: concat(parts) for node, parts in sorted(self.frames.items())}
        terms, limits = self._terms(frames), context.query_limits
        for node, frame in frames.items():
            try:
                self._check(self.plan.nodes[node], frame, terms, limits)
            except BaseException as error:
                raise_failure(error, node)
        if limits.any("kept"):
            self._count_bytes(frames, terms, limits)
        counts: list[Frame] = []
        named = {f"r.{node}": self._as_written(node, frame) for node, frame in frames.items()}
        for node, frame in frames.items():
            member_counts, reports = _counts(node, frame)
            if (same := self._shared_cells(node, member_counts["op"])) is not None:
                named[f"same.{node}"] = self._as_written(node, same)
                members, list_reports = len(self.plan.nodes[node].members), context.partitions > 1
                member_counts, reports = _of_all(
                    member_counts, reports, same, members, list_reports=list_reports
                )
            counts.append(member_counts)
            if context.partitions > 1:
                named[f"reports.{node}"] = reports
        data = checked_parts({**named, **terms.frames("terms")}, {"plan": self.plan.version})
        return state_files.write(
            context.root, "results", f"{context.epoch}-{stage}-{partition}", data
        ), ResultCounts.from_rows(concat(counts))

    def _shared_cells(self, node: int, present: Ints) -> Frame | None:
        """Returns the other queries with the rows of these members of an Emit, and those with its
        cells.
        """
        return same_of(self.plan, self.plan.nodes[node], present, self.pool.seed)

    def _as_written(self, node: int, frame: Frame) -> Frame:
        """Returns a frame with cells as negative numbers, which no member of a later version
        has.
        """
        name = "first" if "first" in frame else "op"
        members, number = len(self.plan.nodes[node].members), frame[name]
        cells = number >= members
        if not cells.any():
            return frame
        return frame.with_(**{name: np.where(cells, members - 1 - number, number)})

    def _check(self, node: PlanNode, frame: Frame, terms: Terms, limits: Limited) -> None:
        """Raises ``ExcessError`` if a query would have too much in its reports."""
        self.pool.spent.turn = node.id
        same = self._shared_cells(node.id, _distinct(frame["op"]))
        try:
            check_reports(
                node, frame, terms, limits, plan=self.plan, spent=self.pool.spent, same=same
            )
        except ExcessError as error:
            raise attribute_to_query(error, node, [frame]) from None

    def _count_bytes(self, frames: dict[int, Frame], terms: Terms, limits: Limited) -> None:
        for node, frame in frames.items():
            at, members = self.plan.nodes[node], self.plan.nodes[node].members
            if (same := self._shared_cells(node, _distinct(frame["op"]))) is not None:
                frame = add_shared_rows(frame, same, len(members))
            sizes = np.bincount(frame["op"], as_solutions(at).bytes(at, frame, terms))
            for member in sizes.nonzero()[0].tolist():
                query = members[member].query
                if limits.limits_of_query(query).kept:
                    self.sizes[query] = int(sizes[member])

    def _terms(self, frames: dict[int, Frame]) -> Terms:
        pairs = [
            p
            for node, f in frames.items()
            for p in text_identities(f, self.plan.nodes[node].layout)
        ]
        if not pairs:
            return Terms.empty()
        return self.pool.pick(
            np.concatenate([x for x, _ in pairs]), np.concatenate([y for _, y in pairs])
        )


def select_stage(segments: Sequence[str], stage: int) -> list[str]:
    """Returns the segments of an epoch that tasks of a stage have written, by their names.

    >>> select_stage(["results/7-1-0-d0", "results/7-2-0-d1", "results/7-2-1-d2"], 2)
    ['results/7-2-0-d1', 'results/7-2-1-d2']
    """
    return [name for name in segments if int(name.rpartition("/")[2].split("-")[1]) == stage]


def _counts(node: int, frame: Frame) -> tuple[Frame, Frame]:
    """Counts the results of each query, by member; also returns the distinct reports (``op``,
    ``r``).

    A report with rows of two tasks is in both counts: the driver counts it once.
    """
    report: Times = frame["r"]
    op = _distinct(frame["op"])
    if len(op) == 1:
        each = _first_rows(report)
        reports_once = report[each]
        n, least, most = (
            np.array([frame.n]),
            reports_once.min(keepdims=True),
            reports_once.max(keepdims=True),
        )
        many = np.array([len(each)])
    else:
        n, least, most, each, many = _by_member(frame["op"], report)
    columns: dict[str, Column] = {
        "node": np.full(len(op), node, np.int64),
        "op": op,
        "n": n,
        "least": least,
        "most": most,
        "reports": many,
    }
    reports = Frame({"op": frame["op"][each], "r": report[each]}, len(each))
    return Frame(columns, len(op)), reports


def _distinct(op: Ints) -> Ints:
    """Returns the members of rows, ascending: nearly always one, which needs no sort."""
    return op[:1] if (op == op[0]).all() else np.unique(op)


def _first_rows(report: Times) -> Longs:
    """Returns the first row of each report, in order of appearance; ascending reports need no
    hashes.
    """
    if (report[1:] >= report[:-1]).all():
        return starts_segment(report).nonzero()[0]
    words = np.ascontiguousarray(report).view(np.uint64)
    return group(words, words)[1]


def _by_member(op: Ints, report: Times) -> tuple[Longs, Times, Times, Longs, Longs]:
    """Returns, for each member, its rows, its smallest and its largest report; also the first row
    of each report, and the number of reports of each member.
    """
    _, first, codes = np.unique(op, return_index=True, return_inverse=True)
    n, each = np.bincount(codes), first
    least = most = report[first]
    if (report != report[0]).any():
        _, each = group(codes.astype(np.uint64), np.ascontiguousarray(report).view(np.uint64))
        least, most = least.copy(), most.copy()
        np.minimum.at(least, codes[each], report[each])
        np.maximum.at(most, codes[each], report[each])
    return n, least, most, each, np.bincount(codes[each], minlength=len(first))


def _of_all(
    counts: Frame, reports: Frame, same: Frame, members: int, *, list_reports: bool
) -> tuple[Frame, Frame]:
    """Returns the counts of all members, and their distinct reports, from those of members and
    cells. The reports are computed only for ``list_reports``, or if members have several cells.
    """
    whole = add_shared_rows(counts, same, members)
    starts = starts_segment(whole["op"])
    if not list_reports and starts.all():
        return whole, reports
    rows = add_shared_rows(reports, same, members)
    if not starts.all():
        first = starts.nonzero()[0]
        r = np.ascontiguousarray(rows["r"]).view(np.uint64)
        _, each = group(rows["op"].astype(np.uint64), r)
        rows = rows.take(np.sort(each))
        whole = whole.take(first).with_(
            n=np.add.reduceat(whole["n"], first),
            least=np.minimum.reduceat(whole["least"], first),
            most=np.maximum.reduceat(whole["most"], first),
            reports=np.bincount(rows["op"])[whole["op"][first]],
        )
    return whole, rows
