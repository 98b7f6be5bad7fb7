"""Adaptive join of many inputs by one key, whose strategy is chosen while it runs: in one step, or
two at a time with intermediate results kept as state (``adaptive_join``; CQELS Cloud, C27).

    one step -> two at a time   intermediate results are computed from the rows in state
    two at a time -> one step   intermediate results are dropped

The runs of the inputs are the same in both strategies, so a change loses no row and meets none
twice, and each partition changes by itself. All inputs are partitioned by one key, so new rows only
meet rows of their keys: of runs written by other partitions only these rows are read, and all rows
where intermediate results are computed. Intermediate results *follow from* the runs of the inputs:
they do not move with groups, and are computed again where the figures say so. In a node whose
groups are divided each new row meets others in one partition only, so it uses one step.

Invariant: the intermediate result of some inputs is the join of all of their rows in state; without
figures nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from typing import cast

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Doubles
from levada.core.event_time import MAX
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.errors import ExcessError
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.row_limit import most_rows
from levada.operators.rows import route_rows as r
from levada.operators.rows.join_pairs import Pairs, batch_pairs
from levada.operators.state import join_state
from levada.operators.state.join_state import Horizons, Run, build_run, living_rows, rows_of
from levada.operators.state.state_parts import FOLLOWS, State
from levada.operators.windowed.multiway_inputs import Input, inputs_of, matches
from levada.operators.windowed.multiway_join import at_once, keep
from levada.operators.windowed.windowed_join import Side, pair_rows, probe_runs
from levada.operators.windowing.window_intervals import max_run_span, outer
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Layout, Span

# The cost of a join of many inputs in one step, and two at a time, and the choice of the strategy.
#
# Two at a time keeps the join of some inputs as state, so that rows of the others meet it with one
# probe. One step computes it again and again, and keeps nothing. The cheaper strategy follows from
# the number of rows that each *set* of inputs makes in an epoch: for each input, its new rows times
# the mean of the products of their matches in the others (``multiway_inputs.matches``), so keys
# with many rows in several inputs are counted correctly.
#
#     one step    each new row probes others in turn, as do the combinations on the way
#     two         each new row probes once; intermediate results are made, written, merged, and
#                 probe, too
#
# Two at a time uses the cheapest order. Figures are recent: each epoch counts for a third of the
# remembered value, and in proportion to its rows.
#
# Invariant: the choice follows from the epochs alone, so a replay makes the same choice. (CQELS
# Cloud, C26, C27.)


PROBE, CARRY, STORE = 100.0, 60.0, 500.0
"""Nanoseconds: a probe of an input; a combination on the way; a row that is kept."""
FIRST = 3  # epochs that are looked at before the first choice
GAIN = 1.1  # so many times better another form must be at the first choice
LATER_GAIN = 2.0  # and so many times later
FADE = 0.3
MAX_INPUTS = 6  # inputs, of whose sets figures are kept


@frozen
class Figures:
    """The statistics of a join. ``order``: its current order, () for one step. ``epochs``: the
    number of observed epochs. ``rows``: by set of inputs (bits) the number of new rows of their
    join in an epoch. ``one``: the cost of one step in an epoch (ns).
    """

    order: tuple[int, ...]
    epochs: int
    one: float
    rows: Doubles

    @staticmethod
    def empty(inputs: int) -> Figures:
        """Nothing is known yet: it is one step."""
        return Figures((), 0, 0.0, np.zeros(1 << inputs))

    def with_epoch(self, looks: Sequence[Doubles], new: Sequence[int]) -> Figures:
        """With another epoch, which has so many new rows of each input."""
        one, rows = _one_step_cost(looks, new), _rows(looks, new)
        if self.epochs:
            one = self.one + FADE * (one - self.one)
            rows = self.rows + FADE * (rows - self.rows)
        return Figures(self.order, self.epochs + 1, one, rows)

    def two_way_cost(self, order: Sequence[int]) -> float:
        """Returns the cost of two at a time in an epoch (ns), in this order."""
        some, cost, left = 1 << order[0], 0.0, float(self.rows[1 << order[0]])
        for at, i in enumerate(order[1:], 2):
            cost += PROBE * (left + float(self.rows[1 << i]))
            some |= 1 << i
            left = float(self.rows[some])
            if at < len(order):
                cost += STORE * left
        return cost

    def best_order(self) -> tuple[float, tuple[int, ...]]:
        """Returns the least cost of two at a time (ns), and its order."""
        inputs = len(self.rows).bit_length() - 1
        least: dict[int, tuple[float, tuple[int, ...]]] = {
            1 << a | 1 << b: (self.two_way_cost((a, b)), (a, b))
            for a, b in combinations(range(inputs), 2)
        }
        for size in range(3, inputs + 1):
            least = dict(self._extend_orders(least, inputs, size))
        (cheapest,) = least.values()
        return cheapest

    def _extend_orders(
        self, least: dict[int, tuple[float, tuple[int, ...]]], inputs: int, size: int
    ) -> Iterator[tuple[int, tuple[float, tuple[int, ...]]]]:
        """The best orders of sets with one input more."""
        for some in (sum(1 << i for i in of) for of in combinations(range(inputs), size)):
            ways = ((*least[some & ~(1 << i)][1], i) for i in range(inputs) if some & 1 << i)
            yield some, min((self._order_cost(way), way) for way in ways)

    def _order_cost(self, order: tuple[int, ...]) -> float:
        """Returns the cost of a join of these inputs, kept as long as there are others."""
        whole = 1 << len(order) == len(self.rows)
        last = 0.0 if whole else float(self.rows[sum(1 << i for i in order)])
        return self.two_way_cost(order) + STORE * last

    def largest(self, order: Sequence[int]) -> float:
        """The most rows that are kept new in an epoch, of one of its joins of two."""
        sets = (sum(1 << i for i in order[:size]) for size in range(2, len(order)))
        return max((float(self.rows[some]) for some in sets), default=0.0)


def choose(figures: Figures) -> tuple[int, ...]:
    """Returns the order of the joins of two with which a join continues, or () for one step."""
    now = figures.order
    if figures.epochs < FIRST or figures.one <= 0:
        return now
    two, order = figures.best_order()
    current_cost = figures.two_way_cost(now) if now else figures.one
    least, best = min((figures.one, ()), (two, order))
    first = figures.epochs == FIRST and not now
    return best if best != now and current_cost > least * (GAIN if first else LATER_GAIN) else now


def _one_step_cost(looks: Sequence[Doubles], new: Sequence[int]) -> float:
    """Returns the cost of one step (ns): each input first probes the inputs with the fewest
    matches.
    """
    cost = 0.0
    for i, (look, rows) in enumerate(zip(looks, new, strict=True)):
        if not rows:
            continue
        others = sorted((j for j in range(len(looks)) if j != i), key=look.mean(axis=0).__getitem__)
        rows_made, left = np.ones(len(look)), float(rows)
        for at, j in enumerate(others, 2):
            cost += PROBE * left
            rows_made = rows_made * look[:, j]
            left = rows * float(rows_made.mean())
            cost += CARRY * left if at < len(looks) else 0.0  # results are made in each form
    return cost


def _rows(looks: Sequence[Doubles], new: Sequence[int]) -> Doubles:
    """Returns by set of inputs the number of new rows in their join."""
    inputs = len(looks)
    row_counts = np.zeros(1 << inputs)
    for i, (look, rows) in enumerate(zip(looks, new, strict=True)):
        if not rows:
            continue
        rows_by_set = {1 << i: np.ones(len(look))}
        for j in range(inputs):
            if j != i:
                rows_by_set |= {
                    some | 1 << j: each * look[:, j] for some, each in rows_by_set.items()
                }
        for some, each in rows_by_set.items():
            row_counts[some] += rows * float(each.mean())
    return row_counts


Node = PlanNode[s.AdaptiveJoin]
Order = tuple[int, ...]
LATER = 100  # epochs until a form that needed too much may be chosen again
# so many theta may be made at once of what is kept, where memory is bounded
PARTS = register(f"{__name__}.PARTS", 8)
_NO_KEYS = {name: np.empty(0, np.uint64) for name in (col.KEY, col.CHECK)}


class _TooMuchError(Exception):
    """Intermediate results would exceed the memory for them."""


def adaptive(node: Node, inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new result rows. Rows that are dead by the horizons of the streams are dropped."""
    outputs = list(adaptive_in_pieces(node, inputs, env))
    return concat(outputs) if outputs else None


def adaptive_in_pieces(node: Node, inputs: Inputs, env: OperatorContext) -> Iterator[Frame]:
    """The new result rows, a part at a time. Raises ``ExcessError``."""
    horizons = env.horizons(node)
    sides = inputs_of(node, env, inputs, horizons)
    if not any(side.new.rows.n for side in sides):
        return
    looks = [matches(sides, i) for i in range(len(sides))]
    figures = _recall(env.state, node)
    figures = figures.with_epoch(looks, [side.new.rows.n for side in sides])
    has, best_order = figures.order, _wanted_order(node, figures, env)
    order = _apply_order(node, sides, best_order, has, env=env)
    chain = _chain(node, sides, order, env) if order else None
    if chain is None:
        _forget(env.state, node)
        order = ()
        yield from at_once(node, sides, env, looks)
    else:
        yield from _join_last(chain, env)
        _keep_chain(chain, env, horizons)
    keep(node, sides, env, horizons)
    # a strategy that was too much is not tried again soon
    epochs = -LATER if best_order and not order else figures.epochs
    figures = replace(figures, order=order, epochs=epochs)
    _remember(env.state, node, figures)
    two = figures.two_way_cost(order) if order else figures.best_order()[0]
    form = [1, bool(order), has != order, figures.one / 1e3, two / 1e3]
    env.forms[str(node.id)] = [round(figure) for figure in form]


def _wanted_order(node: Node, figures: Figures, env: OperatorContext) -> Order:
    """Returns the wanted order of the joins, or ()."""
    if env.place.division.divided_groups(node.id):
        return ()
    order = choose(figures)
    return order if figures.largest(order) < most_rows(node, env.limits) / 4 else ()


def _apply_order(
    node: Node, sides: Sequence[Input], best_order: Order, has: Order, *, env: OperatorContext
) -> Order:  # fmt: skip
    """Converts the state for this strategy; returns () if that would be too much."""
    if best_order == has:
        return best_order
    _forget(env.state, node)
    if best_order and not _build_kept_joins(node, sides, best_order, env):
        _forget(env.state, node)
        return ()
    return best_order


# -- what is kept --


def _key(node: Node, some: Order) -> str:
    """Returns the state key of the join of these inputs."""
    return f"{node.id}.{FOLLOWS}" + "-".join(map(str, some))


def _forget(state: State, node: Node) -> None:
    for key in state.keys(f"{node.id}.{FOLLOWS}"):
        state.replace(key, [])


def _recall(state: State, node: Node) -> Figures:
    """Returns the previous figures; empty ones if there are none, or groups have moved since."""
    pieces = state.pieces(_key(node, ()))
    if not pieces:
        return Figures.empty(len(node.step.keys))
    numbers = state.frame(pieces[0])["f"]
    order = tuple([int(i) for i in numbers[2 : 2 + int(numbers[1])]])
    rest = numbers[2 + len(node.step.keys) :]
    return Figures(order, int(numbers[0]), float(rest[0]), rest[1:].copy())


def _remember(state: State, node: Node, figures: Figures) -> None:
    places = [*figures.order, *[-1] * (len(node.step.keys) - len(figures.order))]
    numbers = np.array([figures.epochs, len(figures.order), *places, figures.one, *figures.rows])
    frame = Frame({"f": numbers, col.PLACE: np.zeros(len(numbers), np.uint16)})
    state.replace(_key(node, ()), [state.put({"": frame}, 0, (MAX, 0, 0))])


# -- two at a time --


@frozen
class _Joined:
    """A join of two in the chain: its sides, and its state key."""

    node: PlanNode[s.Join]
    left: Side
    right: Side
    key: str


def _chain(
    node: Node, sides: Sequence[Input], order: Order, env: OperatorContext
) -> list[_Joined] | None:
    """Returns all joins except the last one; None if one of them would make too much."""
    left, joins = _side_of(sides[order[0]]), list[_Joined]()
    horizon = env.horizons(node).now
    try:
        for size in range(2, len(order) + 1):
            both, right = (
                node.compute_once(_pair_of, order[:size]),
                _side_of(sides[order[size - 1]]),
            )
            joins.append(_Joined(both, left, right, _key(node, order[:size])))
            if size < len(order):
                old = join_state.live_runs(env.state, joins[-1].key, horizon)
                left = Side(
                    _run(_join_new_rows(joins[-1], env, keyed=True), both, env.state.theta),
                    old,
                    both.layout,
                    (),
                )
    except (ExcessError, _TooMuchError):
        return None
    return joins


def _side_of(side: Input) -> Side:
    return Side(side.new, side.held[:-1], side.layout, ())


def _join_new_rows(both: _Joined, env: OperatorContext, *, keyed: bool) -> Iterator[Frame]:
    """The new rows of a join of two."""
    node, left, right = both.node, both.left, both.right
    yield from _pair_rows(both, partial(_all_pairs, node, left, right, env), env, keyed=keyed)


def _all_pairs(
    node: PlanNode[s.Join], left: Side, right: Side, env: OperatorContext
) -> Iterator[Pairs]:
    yield from probe_runs(node.step, left.new, right.runs_to_probe(env.state), turned=False)
    yield from probe_runs(node.step, right.new, left.old, turned=True)


def _pair_rows(
    both: _Joined, pairs: Callable[[], Iterator[Pairs]], env: OperatorContext, *, keyed: bool
) -> Iterator[Frame]:  # fmt: skip
    node, layouts = both.node, (both.left.layout, both.right.layout)
    for batch in batch_pairs(node, pairs, env):
        rows = pair_rows(node, node.step, batch, layouts, keyed=keyed)
        if rows is not None and rows.n:
            yield rows


def _join_last(chain: Sequence[_Joined], env: OperatorContext) -> Iterator[Frame]:
    yield from _join_new_rows(chain[-1], env, keyed=False)


def _keep_chain(chain: Sequence[_Joined], env: OperatorContext, horizons: Horizons) -> None:
    """Keeps the intermediate results."""
    for both, above in pairwise(chain):
        if above.left.new.rows.n:
            _insert(both, above.left.new, env, horizons)


def _insert(both: _Joined, run: Run, env: OperatorContext, horizons: Horizons) -> None:
    most, alive = max_run_span(both.node.windows), both.node.alive
    join_state.insert(env.state, both.key, run, most, horizon=horizons.next, alive=alive)


def _run(pieces: Iterator[Frame], both: PlanNode[s.Join], theta: int) -> Run:
    """Rows of a join, which have their keys, as a run. Raises ``_TooMuchError``."""
    frames, size = list[Frame](), 0
    for rows in pieces:
        frames.append(rows)
        size += sum(column.nbytes for column in rows.columns.values())
        if theta and size > PARTS * theta:
            raise _TooMuchError
    rows = concat(frames) if frames else r.empty(both.layout).with_(**_NO_KEYS)
    start, end = outer(rows, both.layout, both.windows)
    return build_run(rows.with_(**{col.BEGIN: start, col.END: end}))


# -- from one step to two at a time --


def _build_kept_joins(
    node: Node, sides: Sequence[Input], order: Order, env: OperatorContext
) -> bool:
    """Computes intermediate results from the rows in state; returns False if one of the joins would
    be too much.
    """
    horizons = env.horizons(node)
    key, layout = f"{node.id}.{order[0]}", sides[order[0]].layout
    try:
        for size in range(2, len(order)):
            both = node.compute_once(_pair_of, order[:size])
            right = sides[order[size - 1]]
            # all of it, in place of what the new rows of this epoch can meet
            old = join_state.live_runs(env.state, f"{node.id}.{order[size - 1]}", horizons.now)
            met = Side(right.new, old, right.layout, ())
            joined = _Joined(both, Side(met.new, [], layout, ()), met, _key(node, order[:size]))
            pairs = partial(_old_pairs, key, joined, env, horizons.now)
            run = _run(_pair_rows(joined, pairs, env, keyed=True), both, env.state.theta)
            for part in _in_time(run.rows, max_run_span(both.windows)):
                _insert(joined, build_run(part), env, Horizons(horizons.now, horizons.now))
            key, layout = joined.key, both.layout
    except (ExcessError, _TooMuchError):
        return False
    return True


def _old_pairs(key: str, both: _Joined, env: OperatorContext, horizon: int) -> Iterator[Pairs]:
    """Pairs of rows that both are in state."""
    for piece in env.state.drop_dead(key, horizon):
        rows = living_rows(rows_of(env.state, piece), horizon, both.node.alive)
        if rows.n:
            yield from probe_runs(both.node.step, build_run(rows), both.right.old, turned=False)


def _in_time(rows: Frame, most: int) -> Iterator[Frame]:
    """Rows in parts, none of which spans more than ``most``, the oldest first."""
    begin = rows[col.BEGIN]
    part = (begin - begin.min(initial=MAX)) // max(most, 1)
    for each in np.unique(part).tolist():
        yield rows.where(part == each)


# -- the joins of two as nodes --


def _pair_of(node: Node, some: Order) -> PlanNode[s.Join]:
    """Returns the join of some inputs, the last one with the join of the others."""
    whole = len(some) == len(node.step.keys)
    left = _layout(node, some[:-1])
    windows = _windows(node, some)
    step = s.Join(
        (), (), tuple(_output_slots(node, some)), (), tuple(_sides(node, some)), (False, False)
    )
    return replace(
        cast("PlanNode[s.Join]", node),
        step=step,
        layout=node.layout if whole else _layout(node, some),
        input_layouts=(left, node.input_layouts[some[-1]]),
        windows=node.windows.pick(windows),
    )


def _slots(node: Node, some: Order) -> list[int]:
    """Returns the slots of the result that come from these inputs."""
    return [n for n, (i, _) in enumerate(node.step.out) if i in some]


def _windows(node: Node, some: Order) -> list[int]:
    """Returns the windows of the result that rows of these inputs have."""
    return [w for w, at in enumerate(node.step.windows) if any(at[i] >= 0 for i in some)]


def _output_slots(node: Node, some: Order) -> Iterator[tuple[int, int]]:
    """Yields for each slot of a join of two the side and the slot there."""
    before, last = some[:-1], some[-1]
    left = _slots(node, before)
    for n in _slots(node, some):
        i, at = node.step.out[n]
        yield (1, at) if i == last else (0, at if len(before) == 1 else left.index(n))


def _sides(node: Node, some: Order) -> Iterator[tuple[int, int]]:
    """Returns for each window of a join of two its place in both sides, -1 where it is missing."""
    before, last = some[:-1], some[-1]
    left = _windows(node, before)
    for w in _windows(node, some):
        at = node.step.windows[w]
        joined = left.index(w) if w in left else -1
        yield at[before[0]] if len(before) == 1 else joined, at[last]


def _layout(node: Node, some: Order) -> Layout:
    """Returns the columns of the join of some inputs; of one input its own."""
    if len(some) == 1:
        return node.input_layouts[some[0]]
    slots = tuple([node.layout.slots[n] for n in _slots(node, some)])
    return Layout(slots, tuple([_span(node, some, w) for w in _windows(node, some)]))


def _span(node: Node, some: Order, w: int) -> Span:
    """Returns the times of a window that the join of some inputs has."""
    places = [(i, node.step.windows[w][i]) for i in some if node.step.windows[w][i] >= 0]
    spans = [(node.input_layouts[i].windows[at], node.step.raw[i]) for i, at in places]
    prev = any(span.prev or raw for span, raw in spans)
    return Span(len(spans) > 1 or any(span.hi for span, _ in spans), prev)
