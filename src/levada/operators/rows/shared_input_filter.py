"""Drops input rows of a relaxed join that no pick above it wants, and computes when the others
expire.

A row that no pick wants goes no further than the task that knows its join: it is neither moved nor
kept. A wanted row is kept until it has left the windows of all picks that want *it*, and not those
of other picks: rows of one constant over a month do not extend the life of all others over seconds
(STREAMREUSE, minimal relaxation; CQELS Cloud keeps the longest window for all).

Picks that select rows by the same slots have one index (``PredicateGroup``). Several ranges below
one input are tested one by one, so a row may stay that satisfies another query's condition in each
range, and no query's in all. Conditions that no index decides are evaluated, but only for rows that
no other pick wants as long (``residual_predicates``). If there are more than ``CLASSES`` different
windows, windows of about the same length count as the longest of them.

Cost: a look-up and a search for each row, range and set of slots; for ends a step more for each
class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs
from levada.core.event_time import MAX, MIN, Times, Window, WindowKind
from levada.core.frame import Frame
from levada.core.query_limits import QueryLimits
from levada.core.size_thresholds import register
from levada.errors import ExcessError
from levada.kernels.terms.term_lookup import TermLookup
from levada.kernels.time.window_intervals import Params, leave
from levada.operators.row_limit import most_of
from levada.operators.rows.predicate_groups import (
    Form,
    PredicateGroup,
    count_owners,
    group_predicates,
    number_forms,
    owner_at,
)
from levada.operators.rows.predicate_index import ResidualPredicates
from levada.operators.windowing import report_count_bound as numbers
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.shared_join_nodes import window_kinds
from levada.plan.execution.sharing_demand import SharingDemand, longest_window

CLASSES = register(f"{__name__}.CLASSES", 48)
Relaxed = s.Join | s.Occur | s.RelaxedStream | s.RelaxedStatic
Windows = tuple[Window, ...]


class InputDemand(NamedTuple):
    """The wants of picks on an input: by indexes, and by residual conditions. ``sift``: some rows
    are unwanted. ``mixed``: members whose picks have several classes of windows.
    """

    predicates: tuple[PredicateGroup, ...]
    asked: tuple[ResidualPredicates, ...]
    sift: bool
    classes: tuple[Params, ...]
    mixed: Bools
    forms: tuple[Form, ...]

    def bits(self, rows: Frame, pool: TermLookup, *, all_of: bool) -> Longs:
        """Returns the classes of the picks that want each row. Without ``all_of`` only some of
        these classes; 0 means that no pick wants the row.
        """
        classes = np.zeros(rows.n, np.int64)
        for predicates in self.predicates:
            classes |= predicates.bits(rows, pool)
        for asking in self.asked:
            asking.add(classes, rows, pool, all_of=all_of)
        return classes

    def counts(self, rows: Frame, pool: TermLookup) -> Longs:
        """Returns the number of these rows that each owner wants, as far as indexes decide it."""
        totals = np.zeros(count_owners(self.forms), np.int64)
        for finder in (
            *(predicates.finders[0] for predicates in self.predicates),
            *(a.finder for a in self.asked),
        ):
            _, owner, _ = finder.find_owners(rows, pool)
            totals += np.bincount(owner, minlength=len(totals))
        return totals


def drop_unwanted(
    node: PlanNode[Relaxed], i: int, rows: Frame, shares: SharingDemand, pool: TermLookup
) -> Frame:
    """Drops the rows of input ``i`` that no pick wants. Keeps all static rows, unless they come
    again for a newcomer. Raises ``ExcessError``.
    """
    comes_again = isinstance(node.step, s.RelaxedStatic)
    if not rows.n or not (node.input_layouts[i].windows or comes_again):
        return rows
    is_wanted = find_wanted(node, i, rows, shares, pool)
    return rows if is_wanted is None else rows.where(is_wanted)


def find_wanted(
    node: PlanNode[Relaxed], i: int, rows: Frame, shares: SharingDemand, pool: TermLookup
) -> Bools | None:  # fmt: skip
    """Flags the rows of input ``i`` that some pick wants, also static ones; None: all rows. Static
    rows that are kept for several joins (``i`` is 1) are flagged as far as the kept columns decide.
    Raises ``ExcessError``.
    """
    demand = node.compute_once(_find_demand, i, shares, pool.seed)
    return demand.bits(rows, pool, all_of=False) != 0 if demand.sift else None


def expiry_times(
    node: PlanNode[Relaxed], i: int, rows: Frame, end: Times, *, shares: SharingDemand, pool:
    TermLookup
) -> Times:  # fmt: skip
    """When rows of input ``i``, which end by then, have left the windows of all that want them.
    Raises ``ExcessError``.
    """
    if not node.input_layouts[i].windows:
        return end
    demand = node.compute_once(_find_demand, i, shares, pool.seed)
    several = np.flatnonzero(demand.mixed[rows["op"]])
    if not len(several):
        return end
    some = rows.take(several)
    bits, shared_expiry_times = demand.bits(some, pool, all_of=True), np.full(some.n, MIN, np.int64)
    for number, params in enumerate(demand.classes):
        at = np.flatnonzero(bits >> number & 1)
        if len(at):
            shared_expiry_times[at] = np.maximum(
                shared_expiry_times[at], _leave_times(params, some, at)
            )
    out = end.copy()
    out[several] = np.minimum(end[several], shared_expiry_times)
    return out


def shared_expiry_times(
    node: PlanNode[Relaxed], i: int, rows: Frame, end: Times, *, shares: SharingDemand, pool:
    TermLookup
) -> Times:  # fmt: skip
    """Returns the expiry times of rows that are kept for other joins, too; a row that no pick wants
    here has always expired. Raises ``ExcessError``.
    """
    demand = node.compute_once(_find_demand, i, shares, pool.seed)
    if demand.sift and rows.n:
        end = np.where(demand.bits(rows, pool, all_of=False) != 0, end, MIN)
    return expiry_times(node, i, rows, end, shares=shares, pool=pool)


def wants_less(node: PlanNode[Relaxed], i: int, shares: SharingDemand, seed: int) -> bool:
    """Whether not all rows of input ``i`` are wanted, or not all as long."""
    demand = node.compute_once(_find_demand, i, shares, seed)
    return demand.sift or bool(demand.mixed.any())


def blame(
    node: PlanNode[Relaxed], i: int, rows: Frame, limits: QueryLimits, *, shares: SharingDemand,
    pool: TermLookup
) -> ExcessError:  # fmt: skip
    """Returns the error of the pick that wants most of these rows of input ``i``, which are too
    many.
    """
    demand = node.compute_once(_find_demand, i, shares, pool.seed)
    most = int(demand.counts(rows, pool).argmax())
    error = most_of(node, np.bincount(rows["op"]), limits)
    error.node, error.member = owner_at(demand.forms, most)
    return error


def _leave_times(params: Params, rows: Frame, at: Longs) -> Times:
    """When these rows leave the windows of one class."""
    until = np.full(len(at), MAX, np.int64)
    for j in range(len(params.kind)):
        lo = rows[col.least(j)][at]
        of = np.full(len(at), j, np.int32)
        of_number = params.kind[j] == WindowKind.NUMBERS
        leaves_window = (
            numbers.leave_numbers(int(params.range[j]), lo) if of_number else leave(*params, of, lo)
        )
        np.minimum(until, leaves_window, out=until)
    return until


def _find_demand(node: PlanNode[Relaxed], i: int, shares: SharingDemand, seed: int) -> InputDemand:
    """Returns the wants of the living picks on input ``i``."""
    forms = [Form.from_join_side(one, i, first) for first, one in number_forms(node, shares)]
    kinds, of = _kinds(forms)
    class_of, classes = _classes(kinds)
    bits = np.left_shift(1, class_of)[of]
    return InputDemand(
        tuple(group_predicates([form for form in forms if form.condition is None], seed, bits)),
        tuple(
            [form.residual_predicates(seed, bits) for form in forms if form.condition is not None]
        ),
        any(form.sifts for form in forms) and not _wants_all_rows(node, forms),
        tuple(map(Params.from_windows, classes)),
        _has_mixed_classes(node, forms, class_of[of]) & ~_all_as_long(node, forms, kinds, of),
        tuple(forms),
    )


def _wants_all_rows(node: PlanNode[Relaxed], forms: Sequence[Form]) -> bool:
    """Whether, for each member, some pick wants all rows."""
    all_ = [
        form.of.node_members for form in forms if not (form.keys or form.ranges or form.condition)
    ]
    return bool(np.isin(np.flatnonzero(node.alive), np.concatenate([[], *all_])).all())


def _has_mixed_classes(node: PlanNode[Relaxed], forms: Sequence[Form], class_of: Longs) -> Bools:
    """Flags members of a join whose picks have several classes."""
    has_class = np.zeros((len(node.members), CLASSES), np.bool_)
    has_class[_join_members(forms), class_of] = True
    several: Bools = has_class.sum(axis=1) > 1
    return several


def _all_as_long(
    node: PlanNode[Relaxed], forms: Sequence[Form], kinds: Sequence[Windows], of: Longs
) -> Bools:
    """Flags members of a join with a pick that wants all rows, for the longest time of all
    picks.
    """
    keeps_all = np.zeros(len(node.members), np.bool_)
    whole = [not (form.keys or form.ranges or form.condition) for form in forms]
    if not any(whole) or not kinds[0]:
        return keeps_all
    stays = np.array([[window.stays for window in kind] for kind in kinds], np.int64)[of]
    join_members, most = (
        _join_members(forms),
        np.full((len(keeps_all), stays.shape[1]), MIN, np.int64),
    )
    np.maximum.at(most, join_members, stays)
    of_whole = np.repeat(whole, [len(form.of.members) for form in forms])
    keeps_all[join_members[of_whole & (stays >= most[join_members]).all(axis=1)]] = True
    return keeps_all


def _join_members(forms: Sequence[Form]) -> Longs:
    """The member of a join below each owner."""
    parts = [form.of.node_members.astype(np.int64) for form in forms]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _kinds(forms: Sequence[Form]) -> tuple[list[Windows], Longs]:
    """The windows that owners have at an input, each kind once, and the number of each one's."""
    numbers: dict[Windows, int] = {}
    parts = [np.empty(0, np.int64)]
    for form in forms:
        kinds, of_member = form.of.pick.compute_once(window_kinds)
        places = form.of.sides[form.side].places
        here = [tuple([kind[place] for place in places]) for kind in kinds]
        number = np.array([numbers.setdefault(kind, len(numbers)) for kind in here], np.int64)
        parts.append(number[of_member[form.of.members]])
    of = np.concatenate(parts)
    there = np.bincount(of, minlength=len(numbers)) > 0  # empty places of a node have some, too
    kinds = [kind for kind, is_used in zip(numbers, there.tolist(), strict=True) if is_used]
    return kinds, (np.cumsum(there) - 1)[of]


def _classes(kinds: Sequence[Windows]) -> tuple[Longs, list[Windows]]:
    """The class of each kind, and the windows of each class, which rows leave last."""
    length = [[(window.stays, str(window)) for window in kind] for kind in kinds]
    order = np.array(sorted(range(len(kinds)), key=length.__getitem__), np.int64)
    class_of, classes = np.zeros(len(kinds), np.int64), list[Windows]()
    for chunk in np.array_split(order, min(CLASSES, max(len(order), 1))):
        class_of[chunk] = len(classes)
        columns = zip(*(kinds[kind] for kind in chunk.tolist()), strict=True)
        classes.append(tuple([longest_window(set(column)) for column in columns]))
    return class_of, classes
