"""The evaluation of joins that differ in constants, conditions and windows as one join
(STREAMREUSE, relaxed operators; NiagaraCQ, constants as a table; CQELS Cloud, windows).

    ?x :p :c . ?x :q ?z        for each of a thousand constants
    ?x :p ?0 . ?x :q ?z        once; the pattern keeps the triples whose object is one of them
    Pick ?0 = :c               each query's rows, by a table of the constants

A *block* is a join with the operators below it that only join, filter and compute single rows.
``lift`` takes out of the block everything in which its queries may differ. The picks above it
decide its windows. A pick returns exactly the rows of the query's own join, with their times, so
the operators above see no difference.

    state of a block              a pattern keeps the triples that some pick above wants, and a join
                                  input keeps such rows, in each version of the plan
                                  (``plan/execution/sharing_demand``). A new query widens a running
                                  join without moving state: old state lacks only triples from
                                  before the start of the new query
    when a block is relaxed       when another query differs from it. A single query does not pay
                                  for columns that nobody reads. If the whole join is not relaxed,
                                  the joins within it are separate blocks
    when it is not                if both sides of a join have constants of their own, and it is
                                  not a star of one subject. The relaxed join would pair the rows
                                  of each query with those of all others, and nothing has measured
                                  how many these are
    one window or several         rows have times of each pattern if some queries read the patterns
                                  in one window and others in several (``per_leaf_times``)
    count windows                 joins over one count window are by row number
                                  (``join_by_number``), so windows of any length share them
    static rows                   rows of a static pattern that a join reads from an arrangement
                                  (``lift``)
    not shared                    entailed patterns, session windows and paths; count windows that
                                  change with each m-th element or count by value; joins without a
                                  key; other rows with weights. Joins on the right of OPTIONAL,
                                  MINUS and EXISTS are separate blocks

Cost: linear in the operators of the queries that have such joins; a walk for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from levada.core.event_time import Window
from levada.core.expressions import Expression, Function, show
from levada.core.frozen import frozen
from levada.core.query_model import Output
from levada.core.rdf_terms import Term
from levada.plan.binding.slot_resolution import parameterize_expression, resolve_slots
from levada.plan.execution.joins import Order
from levada.plan.execution.shapes import Member
from levada.plan.execution.sharing_demand import LOOSE
from levada.plan.lowering.join_order import center_of
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sharing.count_window_sharing import ByNumber, join_by_number, narrow_rows
from levada.plan.sharing.parameterize import Parameterizer, is_time_join, makes_set
from levada.plan.sharing.per_leaf_times import (
    as_reported,
    merge_leaf_times,
    window_of,
    with_leaf_times,
)

# The sharing of IStreams of the same rows over windows of different ranges.
#
#     Emit <- Changes <- Pick <- Join    of a relaxed join; queries differ in windows alone
#
# The windows of the queries have the same rows, which begin in all of them at once and end in each
# at its own instant. So the rows are combined where queries are distinguished
# (``execution/joins.RangedChanges``), if the windows allow it; the query's times decide that.
#
# This applies only to final results: other operators would need each query's rows.


def share_istream(op: Op) -> Op:
    """Returns the results of an IStream of picked rows in the shared form, or unchanged."""
    if not isinstance(op.spec, p.Emit):
        return op
    (changes,) = op.inputs
    spec = changes.spec
    if not isinstance(spec, p.Changes) or not _is_netted(changes, spec):
        return op
    (below,) = changes.inputs
    windows = below.windows
    while isinstance(below.spec, p.Rename):
        (below,) = below.inputs
    if not isinstance(below.spec, p.Pick) or windows is None or len(windows) != 1:
        return op
    if below.spec.keys or below.spec.tests or below.spec.rest or below.weighted:
        return op
    return replace(op, inputs=(replace(changes, spec=replace(spec, ranged=True)),))


def _is_netted(op: Op, spec: p.Changes) -> bool:
    """Whether it is an IStream that remembers ended rows by their shown columns."""
    return spec.output is Output.ISTREAM and op.weighted and bool(op.variables)


# The move of picks above reports: rows that several queries pick from a relaxed join are reported
# once.
#
#     Emit <- Report <- Pick <- Join    from the join on, each row once for each query that wants it
#     Emit <- Pick <- Report <- Join    once, up to the results
#
# A condition commutes with the report of rows that are only added: a row belongs to the query at
# each report at which it counts, or at none. So queries with equal reports (windows, policy, start)
# have one report. It keeps a row as long as any of them wants it, with the columns of their
# conditions. Picked rows then go into the results as (row, cell), where a cell is the set of
# queries that want it (CQELS Cloud, C32 and C56).
#
# This applies to picks by one range. With terms alone few rows belong to several queries, and other
# conditions would be evaluated again at each report.


def share_report(op: Op, below: Op) -> Op | None:
    """Returns a report of picked rows as picked rows of a report; None: the pick stays below.

    ``below``: the input of the report.
    """
    names = []
    while isinstance(below.spec, p.Rename):
        names.append(below)
        (below,) = below.inputs
    pick = below.spec
    if not isinstance(op.spec, p.Report) or not isinstance(pick, p.Pick) or not _is_indexed(pick):
        return None
    (source,) = below.inputs
    if op.exchange != (None,) or op.weighted or source.weighted or source.windows is None:
        return None
    report = replace(
        op, inputs=(source,), variables=source.variables, maybe=source.maybe, typed=source.typed
    )
    keys = tuple([replace(k, source=(0, *k.source)) if k.source else k for k in pick.keys])
    shown = replace(
        below, spec=replace(pick, keys=keys), inputs=(report,), windows=None, stage=op.stage
    )
    for name in reversed(names):
        shown = replace(name, inputs=(shown,), windows=None, stage=op.stage)
    return shown


def _is_indexed(pick: p.Pick) -> bool:
    """Whether an index finds the rows, and queries may want the same ones."""
    return len({test.range for test in pick.tests}) == 1 and not pick.rest


WHOLE = (
    p.Closure
    | p.StaticSubplan
    | p.SubqueryWindow
    | p.CountWindow
    | p.UserOperator
    | p.Recent
    | p.Session
    | p.Applied
)
"""Operators below which nothing is lifted."""


@frozen
class BlockDemand:
    """The demand of a query on a block, by columns of the relaxed join.

    It has the terms of its keys, its comparisons with their orders, conditions of other forms, and
    its windows.
    """

    terms: tuple[tuple[int, tuple[Term, ...]], ...]
    tests: tuple[tuple[int, Function, Term, Order], ...]
    rest: tuple[Expression, ...]
    windows: tuple[Window, ...]

    def select_windows(self, places: tuple[int, ...]) -> BlockDemand:
        """Returns the demand with the windows at these places."""
        return replace(self, windows=tuple([self.windows[at] for at in places]))


@frozen
class Block:
    """A join of a query, or the rows that a GROUP BY reads, with its relaxed form and the query's
    demand.

    ``counted``: the join by numbers, if it is over a count window.
    """

    join: Op
    relaxed: Op
    keys: tuple[p.Key, ...]
    tests: tuple[p.Comparison, ...]
    rest: tuple[Expression, ...]
    wants: BlockDemand
    counted: ByNumber | None = None

    @property
    def is_join(self) -> bool:
        """Whether it is a join, not the rows of a GROUP BY."""
        return self.counted is not None or is_time_join(self.join)

    def pick(self) -> Op:
        """Returns the rows of the join, picked from the relaxed one."""
        exact_join = self.join if self.counted is None else self.counted.join
        spec, windows = p.Pick(self.keys, self.tests, self.rest), self.relaxed.windows
        pick = replace(
            exact_join, spec=spec, inputs=(self.relaxed,), windows=windows, exchange=(None,)
        )
        if windows != exact_join.windows:
            return merge_leaf_times(exact_join, pick)
        return pick if self.counted is None else narrow_rows(self.join, pick, self.counted.instants)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The position of each leaf's window among the windows of the demand.

        (): each leaf has a separate window, in order, or rows cannot have times of each leaf.
        """
        loose = self.is_join and all(window.kind in LOOSE for window in self.wants.windows)
        by_leaf_times = with_leaf_times(self.relaxed) if loose and self.counted is None else None
        if by_leaf_times is None:
            return ()
        windows, join_windows = map(window_of, by_leaf_times.windows or ()), self.join.windows or ()
        places = tuple(map(join_windows.index, windows))
        return () if places == tuple(range(len(places))) else places

    def with_leaf_times(self) -> Block:
        """Returns the block with times of each leaf; it has ``leaves``."""
        relaxed = with_leaf_times(self.relaxed)
        assert relaxed is not None, "it has leaves"
        return replace(self, relaxed=relaxed, wants=self.wants.select_windows(self.leaves))


def blocks(
    root: Op, windows: Callable[[tuple[int, ...]], Member], *, static: bool = True
) -> Iterator[Block]:
    """Yields the blocks of a query; ``windows`` returns the member of rows with times of these
    windows.

    ``static``: queries may differ in the static rows that they join.
    """
    waiting, seen = [root], set()
    while waiting:
        op = waiting.pop()
        if id(op) in seen:
            continue
        seen.add(id(op))
        if isinstance(op.spec, p.Panes) and _read_alone(op.inputs[0], windows):
            yield from _group_by_blocks(op.inputs[0])
        elif (join_blocks := tuple(_join_blocks(op, windows, static=static))) or (
            is_time_join(op) and not pairs_constants(op)
        ):
            yield from join_blocks
        else:
            waiting += inputs_with_blocks(op)


def sub_blocks(
    join: Op, windows: Callable[[tuple[int, ...]], Member]
) -> Iterator[tuple[int, Block]]:
    """Yields the blocks within a block, larger ones first, each with the identity of the join
    above.
    """
    waiting = [join]
    while waiting:
        above = waiting.pop(0)
        below = list(above.inputs)
        while below:
            op = below.pop(0)
            if (join_blocks := tuple(_join_blocks(op, windows))) or is_time_join(op):
                yield from ((id(above), block) for block in join_blocks)
                waiting.append(op)
            else:
                below += inputs_with_blocks(op)


def _join_blocks(
    op: Op, windows: Callable[[tuple[int, ...]], Member], *, static: bool = True
) -> Iterator[Block]:  # fmt: skip
    """Yields a join as a block, if it is a join and queries may differ below it."""
    counted = join_by_number(op, windows)
    if counted is None and not is_time_join(op):
        return
    join = op if counted is None else counted.join
    assert join.windows is not None, "a join of rows with event times"
    join_windows = windows(join.windows).windows[: len(join.windows)]
    lifting = Parameterizer(join.windows, static=static)
    relaxed = lifting.lift(join, (0,))
    if _pairs_lifted(relaxed, lifting):
        return
    if counted or lifting.lifted or any(window.kind in LOOSE for window in join_windows):
        yield replace(_block(op, relaxed, lifting, join_windows), counted=counted)


def pairs_constants(join: Op) -> bool:
    """Whether a join of a block pairs constants of different queries."""
    assert join.windows is not None, "a join of rows with event times"
    lifting = Parameterizer(join.windows)
    return _pairs_lifted(lifting.lift(join, (0,)), lifting)


def _pairs_lifted(relaxed: Op, lifting: Parameterizer) -> bool:
    """Whether both sides of a join have lifted constants that the other side lacks, and are no
    patterns of one subject.
    """
    equal = (r.name for r in lifting.ranges if any(f is Function.EQUAL for f, _ in r.tests))
    lifted = {*(key.name for key in lifting.keys), *equal}
    for op in p.all_operators(relaxed):
        if isinstance(op.spec, p.Join):
            left, right = ({v for v in side.variables if v in lifted} for side in op.inputs)
            if left - right and right - left and center_of(op) is None:
                return True
    return False


def _read_alone(op: Op, windows: Callable[[tuple[int, ...]], Member]) -> bool:
    """Whether a GROUP BY's rows are a set that is made for its windows, or those of a table's
    stream.
    """
    if makes_set(op) or not _has_one_window(op, windows):
        return makes_set(op)
    while isinstance(op.spec, p.Filter | p.Extend | p.Rename):
        op = op.inputs[0]
    return isinstance(op.spec, p.Scan)


def _group_by_blocks(op: Op) -> Iterator[Block]:
    """Yields the rows of GROUP BYs that may differ in conditions, or have none.

    The rows are the same for all windows. Rows with other constants are not shared. Several ranges
    at once are not supported by an index.
    """
    assert op.windows is not None, "rows with event times"
    lifting = Parameterizer(op.windows, joined=False)
    relaxed = lifting.lift(op, (0,))
    if len(lifting.ranges) <= 1:
        yield _block(op, relaxed, lifting, ())


def _block(op: Op, relaxed: Op, lifting: Parameterizer, windows: tuple[Window, ...]) -> Block:
    names = relaxed.variables
    keys = tuple([p.Key(one.name, one.terms, one.source) for one in lifting.keys])
    tests = tuple(
        [
            p.Comparison(number, one.name, function, term, one.order)
            for number, one in enumerate(lifting.ranges)
            for function, term in sorted(one.tests, key=str)
        ]
    )
    # in an order that follows neither from texts nor, before all else, from constants
    rest = sorted(dict.fromkeys(lifting.rest), key=lambda one: _show_parameterized(one, names))
    wants = BlockDemand(
        tuple([(names.index(key.name), key.terms) for key in keys]),
        tuple([(names.index(t.name), t.function, t.term, t.order) for t in tests]),
        tuple([resolve_slots(one, names) for one in rest]),
        windows,
    )
    return Block(op, relaxed, keys, tests, tuple(rest), wants)


def _show_parameterized(condition: Expression, names: tuple[str, ...]) -> tuple[str, str]:
    parameterized, terms = parameterize_expression(condition, names)
    return show(parameterized), " ".join(map(str, terms))


def inputs_with_blocks(op: Op) -> tuple[Op, ...]:
    """Returns the inputs that may contain blocks.

    Inputs that only decide on other rows may have blocks, too: the rows of a new query are those
    from its start on, by the time of their report.
    """
    return () if isinstance(op.spec, WHOLE) else op.inputs


def with_wide_sets(root: Op, windows: Callable[[tuple[int, ...]], Member]) -> Op:
    """Returns a query whose GROUP BYs read sets that are made once for all windows.

    This applies where rows are only added: an earlier occurrence that has left hides nothing.
    """
    by: dict[int, Op] = {}
    for op in p.all_operators(root):
        if isinstance(op.spec, p.Panes) and _can_be_wide(below := op.inputs[0], windows):
            by[id(below)] = replace(below, spec=p.Occur(wide=True))
    return replace_operators(root, by, {}) if by else root


def _can_be_wide(op: Op, windows: Callable[[tuple[int, ...]], Member]) -> bool:
    return isinstance(op.spec, p.Occur) and _has_one_window(op, windows)


def _has_one_window(op: Op, windows: Callable[[tuple[int, ...]], Member]) -> bool:
    if op.weighted or op.windows is None:
        return False
    row_windows = windows(op.windows).windows
    return len(row_windows) == 1 and row_windows[0].kind in LOOSE


def replace_operators(op: Op, by: dict[int, Op], done: dict[int, Op], *, late: bool = False) -> Op:
    """Returns the tree with these operators replaced; ``late``: picks are moved above reports."""
    if id(op) in by:
        return by[id(op)]
    if id(op) not in done:
        inputs = tuple([replace_operators(child, by, done, late=late) for child in op.inputs])
        inputs = tuple([as_reported(op, child) for child in inputs])
        same = all(a is b for a, b in zip(inputs, op.inputs, strict=True))
        picked = share_report(op, *inputs) if late and not same and len(inputs) == 1 else None
        rebuilt = op if same else picked or replace(op, inputs=inputs)
        done[id(op)] = share_istream(rebuilt) if late and not same else rebuilt
    return done[id(op)]
