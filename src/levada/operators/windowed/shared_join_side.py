"""Shared arrangements of stream rows that are a side of several joins
(``plan/sharing/static_arrangements``).

    out = new rows x (arrangement before + new rows there)  +  old rows x new rows there

The arrangement makes its rows a set, keeps them as a join would keep its side, and passes the new
ones to joins (``OperatorContext.arrived``). Its previous rows are the parts at the begin of the
epoch: parts do not change, so it does not matter that the new rows are in the current list. A join
keeps the rows of its other side by the key and the member of the *arrangement*, so a new row there
searches once for the partners of all members that read it, however many they are.

Invariants: the windows of an arrangement are those of each join that reads it, so a row is there as
long as it would be in the join; rows that meet are in one partition, since both are placed by the
same terms. An arrangement for relaxed joins contains the rows that any pick above any of them
wants, as long as one does; each join passes on only the pairs that its own picks want, while they
do. Cost: of the arrangement by its new rows; of a join by the new rows of both sides and the
result, a probe per run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import chain

import numpy as np

from levada.core import column_names as col
from levada.core.event_time import Times
from levada.core.frame import Column, Frame, concat
from levada.core.frozen import frozen
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows import route_rows as r
from levada.operators.rows import shared_input_filter
from levada.operators.rows.join_pairs import Pairs, batch_pairs
from levada.operators.state import join_state
from levada.operators.state.join_state import LookupKeys
from levada.operators.windowed.deduplicate import as_set, pick
from levada.operators.windowed.split_heavy_keys import route_own_rows
from levada.operators.windowed.windowed_join import (
    longest,
    pair_rows,
    probe_runs,
    project,
    reach,
    shown_columns,
)
from levada.operators.windowing.window_intervals import by_weight, max_run_span, outer
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.shared_join_nodes import is_alone
from levada.plan.execution.sharing_demand import SharingDemand
from levada.plan.execution.window_table import WindowTable

Join = PlanNode[s.StreamJoin]


def arrange_stream(
    node: PlanNode[s.ArrangeStream], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Keeps new rows, and returns them."""
    return _arrange_rows(node, inputs, env, lambda _, end: end)


def relaxed_stream(
    node: PlanNode[s.RelaxedStream], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Keeps new rows, each as long as some pick wants it."""

    def ends(rows: Frame, end: Times) -> Times:
        if env.shares is None:
            return end
        return shared_input_filter.expiry_times(
            node, 0, rows, end, shares=env.shares, pool=env.pool
        )

    return _arrange_rows(node, inputs, env, ends)


def _arrange_rows(
    node: PlanNode[s.ArrangeStream],
    inputs: Inputs,
    env: OperatorContext,
    until: Callable[[Frame, Times], Times],
) -> Frame | None:
    """Keeps new rows ``until`` then, as far as that is before they end."""
    step, layout, (frame,) = node.step, node.input_layouts[0], inputs
    if frame is None:
        return None
    if not node.alive.all():  # rows that waited for a watermark outlive their member
        frame = frame.where(node.alive[frame["op"]])
    state, side, horizons = env.state, f"{node.id}.0", env.horizons(node)
    key, whole = r.key_of(frame, step.keys), None
    if step.raw:
        all_of = r.key_of(frame, range(len(layout.slots)))
        old = join_state.live_runs(state, side, horizons.now, LookupKeys([(key[0], frame)]))
        frame, new_places = as_set(frame, key, all_of, old)
        key, whole = pick(key, new_places), pick(all_of, new_places)[1]
    if not frame.n:
        return None
    table = node.windows.pick(range(len(layout.windows)))
    start, end = outer(frame, layout, table)
    rows = _renumber_slots(frame, node.layout, step.kept)
    run = join_state.with_run_columns(rows, key, start, until(frame, end), whole)
    new = env.arrived[node.id] = join_state.build_run(run)
    join_state.insert(
        state, side, new, max_run_span(table), horizon=horizons.next, ends=by_weight(table),
        alive=node.alive,
    )  # fmt: skip
    return rows


@frozen
class SideProbe:
    """The runs of a join in an epoch: ``new`` and ``old`` of the side that it keeps, and ``there``
    (previous) and ``come`` (new) of the arrangement.
    """

    new: join_state.Run | None
    old: Sequence[join_state.Run]
    there: Sequence[join_state.Run]
    come: Sequence[join_state.Run]


def stream_join(node: Join, inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new result rows."""
    outputs = list(stream_join_in_pieces(node, inputs, env))
    return concat(outputs) if outputs else None


def stream_join_in_pieces(node: Join, inputs: Inputs, env: OperatorContext) -> Iterator[Frame]:
    """The new result rows, some ``MOST_PAIRS`` at a time. Raises ``ExcessError``."""
    step, at = node.step, 1 - node.step.arranged
    met = _probe_side(node, at, inputs[at], env)

    def find_pairs() -> Iterator[Pairs]:
        both = [(run, met.old, at == 0) for run in met.come]
        if met.new is not None:
            both.append((met.new, [*met.there, *met.come], at == 1))
        pairs = (
            probe_runs(step, route_own_rows(node, new, env), old, turned=t) for new, old, t in both
        )
        return _wanted_pairs(node, _living_pairs(node, at, chain.from_iterable(pairs)), env)

    for pairs in batch_pairs(node, find_pairs, env):
        if (joined := pair_rows(node, step, pairs, node.input_layouts)) is not None:
            yield joined
    if met.new is not None:
        table = _windows(node, at)
        join_state.insert(
            env.state, _side(node, at), met.new, longest(node),
            horizon=env.horizons(node).next, ends=by_weight(table), alive=node.alive,
        )  # fmt: skip


def _living_pairs(node: Join, at: int, matches: Iterator[Pairs]) -> Iterator[Pairs]:
    """Drops pairs of removed members: rows of the other side are kept here until they end, and new
    rows of the arrangement are for all its members.
    """
    if node.alive.all():
        return matches
    masks = ((p, node.alive[(p.b if at else p.a)["op"][p.j if at else p.i]]) for p in matches)
    return (Pairs(p.a, p.i[living], p.b, p.j[living]) for p, living in masks)


def _wanted_pairs(node: Join, matches: Iterator[Pairs], env: OperatorContext) -> Iterator[Pairs]:
    """Drops pairs with rows of the arrangement that only other joins want, or want longer."""
    shares = env.shares
    if (
        not node.step.relaxed
        or shares is None
        or not node.compute_once(_restricts_rows, shares, env.pool.seed)
    ):
        return matches
    return (_while_wanted(node, pairs, shares, env.pool) for pairs in matches)


def _while_wanted(node: Join, pairs: Pairs, shares: SharingDemand, pool: TermLookup) -> Pairs:
    a, i, b, j = pairs.a, pairs.i, pairs.b, pairs.j
    at = node.step.arranged
    there, others = (a, b) if at == 0 else (b, a)
    row, other = (i, j) if at == 0 else (j, i)
    met = _timed_rows(others).take(other)
    some = there.take(row).with_(op=met["op"])
    begin, end = reach(some, node.input_layouts[at], _windows(node, at))
    end = shared_input_filter.shared_expiry_times(node, at, some, end, shares=shares, pool=pool)
    began, _ = reach(met, node.input_layouts[1 - at], _windows(node, 1 - at))
    keep = end > np.maximum(begin, began)
    return Pairs(a, i[keep], b, j[keep])


def _timed_rows(rows: Frame) -> Frame:
    """Rows without their terms."""
    return Frame({n: c for n, c in rows.columns.items() if not col.is_slot(n)}, rows.n)


def _restricts_rows(node: Join, shares: SharingDemand, seed: int) -> bool:
    """Whether an arrangement has rows that the picks of a join do not want, because it has other
    readers.
    """
    at = node.step.arranged
    if is_alone(shares.plan, node, at):
        return False
    readers = node.members.inputs[at][node.alive]
    reader_windows = shares.plan.nodes[node.inputs[at]].windows.select_members(readers)
    join_windows = _windows(node, at).select_members(np.flatnonzero(node.alive))
    same = all(
        np.array_equal(getattr(join_windows, f.name), getattr(reader_windows, f.name))
        for f in fields(join_windows)
    )
    return not same or shared_input_filter.wants_less(node, at, shares, seed)


def _probe_side(node: Join, at: int, frame: Frame | None, env: OperatorContext) -> SideProbe:
    step, state, now = node.step, env.state, env.horizons(node).now
    below = node.inputs[step.arranged]
    arrived = env.arrived.get(below)
    come = [] if arrived is None else [_as_join_input(node, arrived)]
    keyed_rows = [(run.rows[col.KEY], run.rows) for run in come]
    if frame is not None and not node.alive.all():
        frame = frame.where(node.alive[frame["op"]])
    if frame is None or not frame.n:
        if not come:  # of both sides only rows of members that are gone
            return SideProbe(None, (), (), ())
        return SideProbe(
            None,
            join_state.live_runs(state, _side(node, at), now, LookupKeys(keyed_rows)),
            (),
            come,
        )
    slots = step.left if at == 0 else step.right
    key = _key(node, frame, slots)
    mine = [(key[0], frame)]
    met = LookupKeys([*keyed_rows, *mine] if step.raw[at] else keyed_rows)
    old = join_state.live_runs(state, _side(node, at), now, met)
    there = join_state.runs_before(state, f"{below}.0", now, LookupKeys(mine))
    new = _new_run(node, at, frame, key, old, env=env)
    return SideProbe(new, old, [_as_join_input(node, run) for run in there], come)


def _new_run(
    node: Join,
    at: int,
    frame: Frame,
    key: r.Key,
    old: list[join_state.Run],
    *,
    env: OperatorContext,
) -> join_state.Run:
    """New rows of the side that a join keeps, by the key and member of the arrangement."""
    step, layout, whole = node.step, node.input_layouts[at], None
    if step.raw[at]:
        all_of = r.key_of(frame, range(len(layout.slots)))
        frame, new_places = as_set(frame, key, all_of, old)
        key, whole = pick(key, new_places), pick(all_of, new_places)[1]
    start, end = reach(frame, layout, _windows(node, at))
    if step.relaxed and env.shares is not None:
        end = shared_input_filter.expiry_times(
            node, at, frame, end, shares=env.shares, pool=env.pool
        )
    return join_state.build_run(
        join_state.with_run_columns(shown_columns(frame, node, step, at), key, start, end, whole)
    )


def _key(node: Join, frame: Frame, slots: Sequence[int]) -> r.Key:
    """The key of rows by the member of the arrangement that their own member reads."""
    readers = node.members.inputs[node.step.arranged]
    return r.key_of(frame.with_(op=readers[frame["op"]]), slots)


def _windows(node: Join, at: int) -> WindowTable:
    """Returns the windows of a join's side."""
    columns = tuple([pair[at] for pair in node.step.windows])
    return node.compute_once(project, columns, len(node.input_layouts[at].windows))


def _side(node: Join, at: int) -> str:
    return f"{node.id}.{at}"


def _as_join_input(node: Join, run: join_state.Run) -> join_state.Run:
    """A run of the arrangement as one of the join's input."""
    layout = node.input_layouts[node.step.arranged]
    return replace(run, rows=_renumber_slots(run.rows, layout, node.step.reads))


def _renumber_slots(rows: Frame, layout: Layout, slots: Sequence[int]) -> Frame:
    """Returns rows with these slots as those of a layout, with all their other columns."""
    columns: dict[str, Column] = {n: c for n, c in rows.columns.items() if not col.is_slot(n)}
    for i, (at, facets) in enumerate(zip(slots, layout.slots, strict=True)):
        columns |= r.renumber(rows, at, i, facets)
    return Frame(columns, rows.n)
