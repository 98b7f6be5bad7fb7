"""Results by cell: report rows that several queries want, once for each set of queries.

Picks above a report select its rows by terms and a range (late picks). All rows at a leaf of their
index belong to the same picks: a *cell*. So a row of more than one query goes into the results
once, with the number of its cell in place of a member. Next to the rows, the segment lists the
members of the Emit that have the cell, as it does for equal queries
(``plan/execution/shared_results``). Numbers of cells follow those of the members; in a segment they
are below 0.

A row that its number does not identify exactly goes to each query that wants it.

Cost: a look-up for a row; for a segment as many pairs as members have the cells in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levada.core.array_types import Ints
from levada.core.frame import Frame, concat
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.reporting.ranges.range_families import RangeCells, range_cells
from levada.operators.rows.compensation_filter import finder_of, match_picks
from levada.operators.rows.filter_extend import keep_rows
from levada.operators.rows.predicate_index import PredicateIndexReader
from levada.operators.rows.route_rows import fan_out, project_for_consumer, without_fan
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Consumer, FanOut, Plan, PlanNode
from levada.plan.execution.shared_results import drop_muted_members, find_shared_results
from levada.plan.execution.sharing_demand import sharing_demand_of


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """The cells of an Emit. ``number``: the owner of the rows at each leaf: a member, if it alone
    has them, a cell (from ``first`` on), or -1 for no owner. ``readers``: the members of each pick,
    the first of each set of equal ones.
    """

    finder: PredicateIndexReader
    first: int
    number: Ints
    readers: FanOut

    def owners(self, cells: Ints) -> Frame:
        """Returns the owners of these cells: members of the Emit (``op``), and their cell
        (``first``).
        """
        assert self.finder.numbered is not None, "it has a range"
        row, entry = self.finder.numbered.find_entries(cells.astype(np.int64) - self.first)
        owner = self.finder.numbered.owner[entry].astype(np.int32)
        at, op = fan_out(owner, self.readers)
        row = row if at is None else row[at]
        return Frame({"op": op, "first": cells[row]}, len(op))


class _CellsByEmit(dict[int, Cells | RangeCells | None]):
    """Cells by the number of the Emit."""


def cells_of(plan: Plan, number: int, seed: int) -> Cells | RangeCells | None:
    """Returns the cells of an Emit above picks of a report, or above windows that differ in ranges.
    Returns None for all other nodes. Computed once for a plan.
    """
    known: _CellsByEmit = plan.facts.setdefault(_CellsByEmit, _CellsByEmit())
    if number not in known:
        emit = plan.nodes[number].as_step(s.Emit)
        if emit is None:
            known[number] = None
        else:
            known[number] = range_cells(plan, emit, sharing_demand_of(plan)) or _find_cells(
                plan, emit, seed
            )
    return known[number]


def route_shared_rows(
    cells: Cells,
    picks: PlanNode[s.Pick],
    edges: tuple[Consumer, Consumer],
    out: Frame,
    pool: TermLookup,
) -> Frame:
    """Returns the rows of a report for an Emit, once for several queries; ``edges``: to the picks,
    and from there.
    """
    consumer, after = edges
    rows = project_for_consumer(out, without_fan(consumer), picks.input_layouts[0])  # of no window
    leaves, rest = cells.finder.leaves(rows, pool)
    number = np.where(leaves < 0, -1, cells.number[leaves])
    row = np.flatnonzero(number >= 0)
    parts = [rows.take(row).with_(op=number[row])]
    if len(left := np.flatnonzero(rest >= 0)):
        one, member = match_picks(picks, rows.take(left), pool)
        at, op = fan_out(member.astype(np.int32), cells.readers)
        parts.append(rows.take(left[one if at is None else one[at]]).with_(op=op))
    picked = keep_rows(concat(parts), None, picks.step.kept, picks.layout)
    return project_for_consumer(picked, without_fan(after), picks.layout)


def _find_cells(plan: Plan, node: PlanNode[s.Emit], seed: int) -> Cells | None:
    picks = plan.nodes[node.inputs[0]].as_step(s.Pick)
    if picks is None or picks.layout.windows or not _is_told(plan, picks):
        return None
    finder = picks.compute_once(finder_of, seed)
    index = finder.numbered
    if index is None or not index.is_decided.all():
        return None
    (fan,) = (edge.fan for edge in picks.consumers if edge.node == node.id)
    alike = find_shared_results(plan, node.id)
    readers = drop_muted_members(plan, node.id, fan) if alike is None else alike.fan
    many, first = index.owners(np.diff(readers.offsets).astype(np.int64)), len(node.members)
    number = np.where(many == 0, -1, first + np.arange(len(many))).astype(np.int32)
    cells = Cells(finder, first, number, readers)
    alone = cells.owners(number[many == 1])
    number[alone["first"] - first] = alone["op"]
    return cells


def _is_told(plan: Plan, picks: PlanNode[s.Pick]) -> bool:
    """Whether picks are above a report, and terms and one range decide their rows."""
    ranges = {test.range for test in picks.step.tests}
    above = isinstance(plan.nodes[picks.inputs[0]].step, s.Report)
    return above and len(ranges) == 1 and not picks.step.rest


def same_of(plan: Plan, node: PlanNode, present: Ints, seed: int) -> Frame | None:
    """Returns further owners of the rows of these members and cells of an Emit: ``op``, and
    ``first``, the member or cell that has the rows. Returns None if no rows are shared.
    """
    alike, cells = find_shared_results(plan, node.id), cells_of(plan, node.id, seed)
    members = present[present < len(node.members)]
    parts = [] if alike is None else [alike.find_sharers(members)]
    if cells is not None and len(members) < len(present):
        cell_members = cells.owners(present[len(members) :])
        parts += (
            [cell_members] if alike is None else [cell_members, alike.extend_sharers(cell_members)]
        )
    return concat(parts) if parts else None


def without_cells(plan: Plan, node: PlanNode, rows: Frame, seed: int) -> Frame:
    """Returns result rows of an Emit, with the rows of cells once for each first member that has
    them.
    """
    cells = cells_of(plan, node.id, seed)
    celled = rows["op"] >= len(node.members)
    if cells is None or not celled.any():
        return rows
    some = rows.where(celled)
    present, at = np.unique(some["op"], return_inverse=True)
    cell_members = cells.owners(present)
    order = np.argsort(cell_members["first"], kind="stable")
    counts = np.bincount(np.searchsorted(present, cell_members["first"]), minlength=len(present))
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    row, op = fan_out(at.astype(np.int32), FanOut(offsets, cell_members["op"][order], False))
    whole = some.take(np.arange(some.n) if row is None else row).with_(op=op)
    return concat([rows.where(~celled), whole])
