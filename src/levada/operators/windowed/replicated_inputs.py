"""The inputs of a join of chains and circles: each is *arranged*, as runs, by each set of variables
that it shares with another one, so that it can be probed from there (CQELS Cloud, C24 to C28).

State that is equal in all partitions has keys with ``ALIKE``, and a second arrangement a key with
``COPY_MARK``, so that it is not counted again.

Cost: an arrangement is the rows once more; most inputs have one, the middle of a chain two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.operators.operator_context import OperatorContext
from levada.operators.rows import route_rows as r
from levada.operators.state import lsm_runs
from levada.operators.state.state_parts import ALIKE, COPY_MARK
from levada.operators.windowed.deduplicate import as_set, pick
from levada.operators.windowed.multiway_inputs import Input
from levada.operators.windowing.window_intervals import max_run_span, outer
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import slot_columns

Node = PlanNode[s.LinkedJoin]
Way = tuple[int, ...]


@frozen
class Arranged:
    """An input: its arrangements, the variables of each, and the slots of the variables."""

    ways: tuple[Way, ...]
    sides: tuple[Input, ...]
    slots: dict[int, int]

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.sides[0].rows


def ways_of(node: Node, i: int) -> tuple[Way, ...]:
    """Returns the sets of variables by which an input is arranged: those that it shares with each
    other input; also the empty set, where some inputs share no variable with the others.
    """
    variables = {v for v, _ in node.step.shared[i]}
    others = [{v for v, _ in of} for j, of in enumerate(node.step.shared) if j != i]
    ways = sorted({tuple(sorted(variables & of)) for of in others if variables & of})
    return tuple(ways) if _hang_together(node.step.shared) else (*ways, ())


def _hang_together(shared: Sequence[Sequence[tuple[int, int]]]) -> bool:
    """Whether inputs share variables, directly or through others."""
    first, *left = ({v for v, _ in of} for of in shared)
    while near := [of for of in left if of & first]:
        first = first.union(*near)
        left = [of for of in left if of not in near]
    return not left


def key_of(node: Node, i: int, a: int) -> str:
    """Under which key an arrangement is kept."""
    again, alike = f".{COPY_MARK}{a}" if a else "", ALIKE if node.step.copied[i] else ""
    return f"{node.id}.{i}{again}{alike}"


def arranged_of(
    node: Node, env: OperatorContext, i: int, frame: Frame | None, horizons: lsm_runs.Horizons
) -> Arranged:
    """One input: its occurrences if it is raw, its runs."""
    ways, slots = node.compute_once(ways_of, i), dict(node.step.shared[i])
    old = [
        lsm_runs.live_runs(env.state, key_of(node, i, a), horizons.now) for a in range(len(ways))
    ]
    new_runs = _arrangements(node, i, frame, old, ways)
    sides = [_side(node, i, before, new) for before, new in zip(old, new_runs, strict=True)]
    return Arranged(ways, tuple(sides), slots)


def _side(node: Node, i: int, old: list[lsm_runs.Run], new: lsm_runs.Run) -> Input:
    every = [*old, new]
    starts = np.cumsum([0, *(run.rows.n for run in every)], dtype=np.int64)
    return Input(every, starts, node.input_layouts[i])


def _arrangements(
    node: Node, i: int, frame: Frame | None, old: list[list[lsm_runs.Run]], ways: tuple[Way, ...]
) -> Iterator[lsm_runs.Run]:
    """The new rows of an input, arranged each way."""
    layout, slots = node.input_layouts[i], dict(node.step.shared[i])
    frame = r.empty(layout) if frame is None else frame
    if not node.alive.all():  # rows that waited for a watermark outlive their member
        frame = frame.where(node.alive[frame["op"]])
    keys, whole = [r.key_of(frame, [slots[v] for v in way]) for way in ways], None
    if node.step.raw[i]:
        all_of_it = r.key_of(frame, range(len(layout.slots)))
        frame, kept = as_set(frame, keys[0], all_of_it, old[0])
        keys, whole = [pick(key, kept) for key in keys], pick(all_of_it, kept)[1]
    places = node.step.row_windows(i, len(layout.windows)) or ()
    start, end = outer(frame, layout, node.windows.pick(places))
    shown = _shown_columns(node, i, frame)
    for a, key in enumerate(keys):
        yield lsm_runs.build_run(
            lsm_runs.with_run_columns(shown, key, start, end, None if a else whole)
        )


def _shown_columns(node: Node, i: int, frame: Frame) -> Frame:
    """Returns the columns of an input that the result uses, its join columns, and times."""
    shown = {f"{n[0]}{at}" for out, (of, at) in enumerate(node.step.out) if of == i
             for n in slot_columns(out, node.layout.slots[out])}  # fmt: skip
    shown |= {name(at) for _, at in node.step.shared[i] for name in (col.x, col.y)}
    kept = {n: c for n, c in frame.columns.items() if not col.is_slot(n) or n in shown}
    return Frame(kept, frame.n)


def keep(
    node: Node, inputs: list[Arranged], env: OperatorContext, horizons: lsm_runs.Horizons
) -> None:
    """Keeps the new rows of each input, arranged each way."""
    for i, arranged_input in enumerate(inputs):
        for a, side in enumerate(arranged_input.sides):
            if side.new.rows.n:
                lsm_runs.insert(
                    env.state,
                    key_of(node, i, a),
                    side.new,
                    max_run_span(node.windows),
                    horizon=horizons.next,
                    alive=node.alive,
                )
