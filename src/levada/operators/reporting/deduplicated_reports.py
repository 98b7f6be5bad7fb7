"""The rows of a relaxed join for a report with picks above it: each row that some pick wants, once
(``plan/physical``, late picks).

Members of a report differ in windows, starts and policies. A row goes to the members with a pick
that wants it by its range and terms; the report itself decides whether the row counts there. Rows
that the index cannot decide are kept, and the pick decides.

The rows that are equal for all picks of a report are limited for all picks together. The limit of
one query is checked for each query by itself, as soon as all of them together could exceed it.

Cost: a look-up for a row and a set of slots; where picks are above more than ``CLASSES`` members
that read the same rows, a look-up for each pick that wants the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs
from levada.core.frame import Frame, concat
from levada.core.query_limits import QueryLimits
from levada.core.row_ranges import place_in_segment, starts_segment
from levada.core.size_thresholds import register
from levada.errors import ExcessError
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.operator_context import OperatorContext
from levada.operators.reporting.due_reports import Calendar
from levada.operators.row_limit import most_of
from levada.operators.rows.compensation_filter import match_picks
from levada.operators.rows.predicate_groups import (
    Form,
    PredicateGroup,
    count_owners,
    group_predicates,
    number_forms,
    owner_at,
)
from levada.operators.rows.route_rows import project_for_consumer, without_fan
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Consumer, Plan, PlanNode
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.sharing_demand import SharingDemand

CLASSES = register(f"{__name__}.CLASSES", 62)
"""Up to this many members that read the same rows are distinguished by bits."""


def is_picked(plan: Plan, node: PlanNode) -> bool:
    """Whether picks, and nothing else, read the rows of a report."""
    every = [plan.nodes[each.node].step for each in node.consumers]
    return isinstance(node.step, s.Report) and all(isinstance(step, s.Pick) for step in every)


@dataclass(frozen=True, eq=False, slots=True)
class Readers:
    """The wants of readers of a report's rows. The members of the report that read the ``i``-th
    member below are ``members[offsets[i] : offsets[i + 1]]``, by their classes; ``class_of``: the
    class of each owner.
    """

    predicates: tuple[PredicateGroup, ...]
    forms: tuple[Form, ...]
    class_of: Longs
    offsets: Longs
    members: Ints

    @property
    def classes(self) -> int:
        """The most members that read the same rows."""
        return int(np.diff(self.offsets).max(initial=0))

    def wanted_classes(self, rows: Frame, pool: TermLookup) -> tuple[Longs, Longs]:
        """(row, class) of the members of which some pick wants it, each once."""
        if self.classes <= CLASSES:
            bits = np.zeros(rows.n, np.int64)
            for predicates in self.predicates:
                bits |= predicates.bits(rows, pool)
            parts = [np.flatnonzero(bits >> number & 1) for number in range(self.classes)]
            return np.concatenate(parts), np.repeat(np.arange(len(parts)), [*map(len, parts)])
        pairs = [
            predicates.finders[0].find_owners(rows, pool)[:2] for predicates in self.predicates
        ]
        code = np.concatenate([row * self.classes + self.class_of[owner] for row, owner in pairs])
        row, of = np.divmod(np.unique(code), self.classes)
        return row, of

    def count_picks(self, rows: Frame, pool: TermLookup) -> Longs:
        """Returns the number of picks that want each row, as far as indexes decide it."""
        counts = np.zeros(rows.n, np.int64)
        for predicates in self.predicates:
            finder = predicates.finders[0]
            for leaves, of in zip(finder.leaves(rows, pool), finder.counts, strict=True):
                there = leaves >= 0
                counts[there] += of[leaves[there]]
        return counts

    def excess_error(
        self, node: PlanNode, rows: Frame, limits: QueryLimits, pool: TermLookup
    ) -> ExcessError:
        """Returns the error of the pick that wants most of these rows, which are too many."""
        counts = np.zeros(count_owners(self.forms), np.int64)
        for predicates in self.predicates:
            _, owner, _ = predicates.finders[0].find_owners(rows, pool)
            counts += np.bincount(owner, minlength=len(counts))
        error = most_of(node, np.bincount(rows["op"]), limits)
        error.node, error.member = owner_at(self.forms, int(counts.argmax()))
        return error


def readers_of(node: PlanNode[s.Report], shares: SharingDemand, seed: int) -> Readers:
    """Returns the readers of a report, computed once."""
    return node.compute_once(_readers, shares, seed)


def select_reported(
    consumer: Consumer, out: Frame, source: Layout, readers: Readers, pool: TermLookup
) -> tuple[Frame, Frame, Longs]:
    """Returns the rows for the members of a report with picks above it, the input rows, and the
    number of picks that want each input row.
    """
    rows = project_for_consumer(out, without_fan(consumer), source)
    row, of = readers.wanted_classes(rows, pool)
    selected = rows.take(row)
    members = readers.members[readers.offsets[selected["op"]] + of]
    return selected.with_(op=members.astype(np.int32)), rows, readers.count_picks(rows, pool)


def check_few(
    node: PlanNode[s.Report], calendar: Calendar, parts: Sequence[Frame], env: OperatorContext
) -> None:
    """Calls ``Calendar.check_few``. For a report with picks above it, raises ``ExcessError`` for
    one of the picks.
    """
    step = node.step
    try:
        calendar.check_few(parts, enumerated=step.enumerated)
    except ExcessError:
        if env.shares is None or not is_picked(env.shares.plan, node):
            raise
        for picks, pick_rows in _of_each(node, parts, env.shares.plan, env.pool):
            env.calendar(picks, step.kinds).check_few([pick_rows], enumerated=step.enumerated)
        free = replace(env, limits=QueryLimits()).calendar(node, step.kinds)
        free.check_few(parts, enumerated=step.enumerated)


def _of_each(
    node: PlanNode[s.Report], parts: Sequence[Frame], plan: Plan, pool: TermLookup
) -> Iterator[tuple[PlanNode, Frame]]:
    """Yields, for each node of picks of a report, a report of the picks' members, and the intervals
    of the rows that each of these wants.
    """
    every = concat([part for part in parts if part.n])
    for consumer in node.consumers:
        picks = plan.nodes[consumer.node].as_step(s.Pick)
        assert picks is not None, "picks alone read it"
        below = picks.members.inputs[0]
        schedules = replace(node.schedules, of_member=node.schedules.of_member[below])
        wide = replace(
            node, id=picks.id, alive=picks.alive, members=picks.members,
            windows=node.windows.select_members(below), schedules=schedules,
        )  # fmt: skip
        rows = project_for_consumer(every.visible(), without_fan(consumer), node.layout)
        row, member = match_picks(picks, rows, pool)
        spans = {name: every[name][row] for name in (col.BEGIN, col.END)}
        yield wide, Frame({"op": member.astype(np.int32), **spans}, len(row))


def _readers(node: PlanNode[s.Report], shares: SharingDemand, seed: int) -> Readers:
    living = np.flatnonzero(node.alive)
    below = node.members.inputs[0]
    order = living[np.argsort(below[living], kind="stable")].astype(np.int32)
    offsets = np.zeros(int(below.max(initial=0)) + 2, np.int64)
    np.cumsum(np.bincount(below[living], minlength=len(offsets) - 1), out=offsets[1:])
    class_of = np.zeros(len(node.members), np.int64)
    class_of[order] = place_in_segment(starts_segment(below[order]))
    forms, classes = list[Form](), [np.empty(0, np.int64)]
    for first, one in number_forms(node, shares):
        joined = replace(one, node_members=below[one.node_members].astype(np.int64))
        forms.append(Form.from_join_side(joined, 0, first))
        classes.append(class_of[one.node_members])
    of = np.concatenate(classes)
    predicates = tuple(group_predicates(forms, seed, np.left_shift(1, np.minimum(of, CLASSES))))
    return Readers(predicates, tuple(forms), of, offsets, order)
