"""Shared arrangements of static rows, and the joins that read them in place
(``plan/sharing/static_arrangements``).

    out = new rows x arrangement

All rows of a member of an arrangement come in one epoch, the first epoch of the query that needs
them, and are there before any row looks for them. So new rows of the other side meet the
arrangement, by the key and the member of the *arrangement*, and are themselves kept only as far as
set semantics need it. A join keeps no static data of its own, however many joins there are. An
arrangement for relaxed joins, whose queries want other static rows, receives more rows with each
newcomer that wants some; a join meets those that its own picks want.

Invariant: rows that meet are in one partition, since both sides are placed by the same terms. Cost
of an epoch: by its new rows and the result, a probe for each run of the arrangement, of which there
are about log2 n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Ints
from levada.core.event_time import MAX, MIN
from levada.core.frame import Column, Frame, concat
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows import route_rows as r
from levada.operators.rows import shared_input_filter
from levada.operators.rows.join_pairs import Pairs, batch_pairs
from levada.operators.state import join_state
from levada.operators.state.state_parts import State
from levada.operators.windowed.deduplicate import as_set, pick
from levada.operators.windowed.split_heavy_keys import route_own_rows
from levada.operators.windowed.windowed_join import (
    horizons_of,
    longest,
    pair_rows,
    probe_runs,
    project,
    reach,
    shown_columns,
)
from levada.operators.windowing.window_intervals import by_weight
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.sharing_demand import SharingDemand

Join = PlanNode[s.ArrangedJoin]


def arrange(node: PlanNode[s.Arrange], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Keeps the rows of members that are new. None go on: joins read them here."""
    _keep(node, inputs, env)
    return None


def arrange_distinct(
    node: PlanNode[s.ArrangeDistinct], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Keeps them once each."""
    _keep(node, inputs, env, once=True)
    return None


def relaxed_static(
    node: PlanNode[s.RelaxedStatic], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Keeps new static rows. Rows that no pick wants any more are dropped together with an
    insertion, if they are more than half.
    """
    rows, key = _arriving_rows(node, inputs), _key(node.id)
    if rows is None:
        return None
    there = [join_state.rows_of(env.state, piece) for piece in env.state.pieces(key)]
    if not there:
        join_state.add_lasting(env.state, key, join_state.build_run(rows), node.alive)
        return None
    old = concat(there)
    is_needed = node.alive[old["op"]]
    if env.shares is not None:
        demand = shared_input_filter.find_wanted(node, 1, old, env.shares, env.pool)
        is_needed = is_needed if demand is None else is_needed & demand
    few = 2 * np.count_nonzero(is_needed) < old.n
    old = old.where(is_needed) if few else old
    both = concat([old, rows.select(old.columns)])
    _, first = group(*_whole_key(both, len(node.step.kept)))
    new = first[first >= old.n]
    if few:
        left = both.take(np.concatenate([np.arange(old.n), new]))
        env.state.replace(
            key, join_state.put_run(env.state, join_state.build_run(left)) if left.n else []
        )
    elif len(new):
        join_state.add_lasting(
            env.state, key, join_state.build_run(rows.take(new - old.n)), node.alive
        )
    return None


def _whole_key(rows: Frame, slots: int) -> r.Key:
    """Returns the key that distinguishes kept rows: their keys and all other columns."""
    k, h = rows[col.KEY], rows[col.CHECK]
    for i in range(slots):
        k, h = combine(k, h, rows[col.x(i)], rows[col.y(i)])
    return k, h


def _keep(
    node: PlanNode[s.Arrange], inputs: Inputs, env: OperatorContext, *, once: bool = False
) -> None:
    rows = _arriving_rows(node, inputs, once=once)
    if rows is not None:
        join_state.add_lasting(env.state, _key(node.id), join_state.build_run(rows), node.alive)


def _arriving_rows(
    node: PlanNode[s.Arrange], inputs: Inputs, *, once: bool = False
) -> Frame | None:
    """Returns the rows of living members, in the layout of the arrangement; None without rows."""
    step, (frame,) = node.step, inputs
    if frame is None:
        return None
    if not node.alive.all():
        frame = frame.where(node.alive[frame["op"]])
    if not frame.n:
        return None
    if once:
        frame = frame.take(group(*r.key_of(frame, (*step.keys, *step.kept)))[1])
    columns: dict[str, Column] = {"op": frame["op"], col.PLACE: frame[col.PLACE]}
    for i, (at, facets) in enumerate(zip(step.kept, node.layout.slots, strict=True)):
        columns |= r.renumber(frame, at, i, facets)
    begin, end = np.full(frame.n, MIN, np.int64), np.full(frame.n, MAX, np.int64)
    return join_state.with_run_columns(
        Frame(columns, frame.n), r.key_of(frame, step.keys), begin, end, None
    )


def arranged_join(node: Join, inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new result rows."""
    outputs = list(arranged_join_in_pieces(node, inputs, env))
    return concat(outputs) if outputs else None


def arranged_join_in_pieces(node: Join, inputs: Inputs, env: OperatorContext) -> Iterator[Frame]:
    """The new result rows, some ``MOST_PAIRS`` at a time. Raises ``ExcessError``."""
    step, at = node.step, 1 - node.step.arranged
    assert inputs[step.arranged] is None, "rows of an arrangement are read where they are"
    if inputs[at] is None:
        return
    new = route_own_rows(node, _new_rows(node, at, inputs, env), env)
    old = arranged_rows(node, step.arranged, step.reads, env.state)

    def find_pairs() -> Iterator[Pairs]:
        return _drop_unwanted(node, probe_runs(step, new, old, turned=at == 1), env)

    for pairs in batch_pairs(node, find_pairs, env):
        if (joined := pair_rows(node, step, pairs, node.input_layouts)) is not None:
            yield joined


def _drop_unwanted(node: Join, matches: Iterator[Pairs], env: OperatorContext) -> Iterator[Pairs]:
    """Drops pairs with static rows that are kept for other joins, or that no pick wants any
    more.
    """
    shares, at = env.shares, node.step.arranged
    if not node.step.relaxed or shares is None:
        return matches
    if not isinstance(shares.plan.nodes[node.inputs[at]].step, s.RelaxedStatic):
        return matches
    return (_of_picks(node, pairs, shares, env.pool) for pairs in matches)


def _of_picks(node: Join, pairs: Pairs, shares: SharingDemand, pool: TermLookup) -> Pairs:
    a, i, b, j = pairs.a, pairs.i, pairs.b, pairs.j
    there, row, op = (b, j, a["op"][i]) if node.step.arranged else (a, i, b["op"][j])
    keep = shared_input_filter.find_wanted(
        node, node.step.arranged, there.take(row).with_(op=op), shares, pool
    )
    return pairs if keep is None else Pairs(a, i[keep], b, j[keep])


def _key(arrangement: int) -> str:
    """Under which key its rows are kept."""
    return f"{arrangement}.arranged"


def arranged_rows(
    node: PlanNode, at: int, reads: Sequence[int], state: State
) -> list[join_state.Run]:
    """Returns the rows of the arrangement that a join reads, as those of its input ``at``."""
    layout, runs = node.input_layouts[at], list[join_state.Run]()
    for piece in state.pieces(_key(node.inputs[at])):
        run = join_state.open_(state, piece)
        columns = {name: run.rows[name] for name in ("op", col.PLACE)}
        for i, (slot, facets) in enumerate(zip(reads, layout.slots, strict=True)):
            columns |= r.renumber(run.rows, slot, i, facets)
        runs.append(replace(run, rows=Frame(columns, run.rows.n)))
    return runs


def _new_rows(node: Join, at: int, inputs: Inputs, env: OperatorContext) -> join_state.Run:
    """The new rows of the other side, a set, by the key and member of the arrangement."""
    step, layout, horizons = node.step, node.input_layouts[at], horizons_of(node, inputs, env)
    frame = inputs[at]
    assert frame is not None, "there are new rows"
    if not node.alive.all():  # rows that waited for a watermark outlive their member
        frame = frame.where(node.alive[frame["op"]])
    slots = step.left if at == 0 else step.right
    key = whole = None
    if step.raw[at]:
        key, all_of = r.key_of(frame, slots), r.key_of(frame, range(len(layout.slots)))
        old = join_state.live_runs(env.state, _side(node, at), horizons.now)
        frame, new_places = as_set(frame, key, all_of, old)
        key, whole = pick(key, new_places), pick(all_of, new_places)[1]
    table = node.compute_once(
        project, tuple([pair[at] for pair in step.windows]), len(layout.windows)
    )
    start, end = reach(frame, layout, table)
    if step.relaxed and env.shares is not None:
        end = shared_input_filter.expiry_times(
            node, at, frame, end, shares=env.shares, pool=env.pool
        )
    met = _probe_key(node, frame, slots, key)
    run = join_state.build_run(
        join_state.with_run_columns(shown_columns(frame, node, step, at), met, start, end, whole)
    )
    if key is not None:
        rest = join_state.with_run_columns(frame.select(("op", col.PLACE)), key, start, end, whole)
        new_run = replace(run, rows=rest) if met is key else join_state.build_run(rest)
        join_state.insert(
            env.state, _side(node, at), new_run, longest(node), horizon=horizons.next,
            ends=by_weight(table), alive=node.alive,
        )  # fmt: skip
    return run


def _probe_key(node: Join, frame: Frame, slots: Sequence[int], join_key: r.Key | None) -> r.Key:
    """Returns the key by which rows meet those of the arrangement.

    ``join_key`` is the key of the join, if it is known.
    """
    readers = node.compute_once(_readers)
    if join_key is not None and readers is None:
        return join_key
    return r.key_of(frame if readers is None else frame.with_(op=readers[frame["op"]]), slots)


def _side(node: Join, at: int) -> str:
    return f"{node.id}.{at}"


def _readers(node: Join) -> Ints | None:
    """The member of the arrangement that each member reads; None: that of its own number."""
    below: Ints = node.members.inputs[node.step.arranged]
    same = np.array_equal(below[node.alive], np.flatnonzero(node.alive))
    return None if same else below
