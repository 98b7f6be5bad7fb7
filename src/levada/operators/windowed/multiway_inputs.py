"""The inputs of a multiway join: their runs, their new rows, and estimates of the matches between
inputs.

A sample of new rows probes the largest run of each other input, and the matches are scaled to all
its rows; so skewed keys are counted correctly, and no statistics are kept for it. A restricted run,
with only the rows that new rows can meet, cannot be scaled: each of these runs is probed. The
estimates follow from the epoch and the state alone, so a replay computes the same. (CQELS Cloud,
C26.)

Cost: ``SAMPLE`` probes for each two inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Doubles, Longs, Words
from levada.core.event_time import Times
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows import route_rows as r
from levada.operators.state import join_state
from levada.operators.state.join_state import LookupKeys, Run
from levada.operators.windowed.deduplicate import as_set, pick
from levada.operators.windowing.window_intervals import outer
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Layout, slot_columns

SAMPLE = register(f"{__name__}.SAMPLE", 128)  # new rows of an input that are looked at
MAX_PROBED_PAIRS = register(
    f"{__name__}.MAX_PROBED_PAIRS", 1 << 18
)  # pairs that are looked at, at most


class ProbeSample(NamedTuple):
    """Some rows as probes: their keys and instants."""

    k: Words
    h: Words
    s: Times
    e: Times


@frozen
class Input:
    """An input's runs, the new one last, and where the rows of each begin when all are counted
    through.
    """

    held: list[Run]
    starts: Longs
    layout: Layout

    @property
    def new(self) -> Run:
        """The rows of this epoch."""
        return self.held[-1]

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.starts[-1])

    def runs_to_probe(self, *, new: bool) -> Iterator[tuple[int, Run]]:
        """The runs with the numbers of their first rows; with the new one or without."""
        many = len(self.held) if new else len(self.held) - 1
        return ((int(self.starts[i]), self.held[i]) for i in range(many) if self.held[i].rows.n)


def inputs_of(
    node: PlanNode[s.MultiwayJoin],
    env: OperatorContext,
    inputs: Inputs,
    horizons: join_state.Horizons,
) -> list[Input]:
    """Returns all inputs; runs written by other partitions are restricted to the rows that the new
    rows of this epoch can meet.
    """
    arrived_inputs = [_arrived_rows(node, i, frame) for i, frame in enumerate(inputs)]
    sides = []
    for i, arrived in enumerate(arrived_inputs):
        meet = (
            arrived_inputs if node.step.raw[i] else [*arrived_inputs[:i], *arrived_inputs[i + 1 :]]
        )
        lookup_keys = LookupKeys([(key[0], rows) for rows, key in meet])
        sides.append(_input(node, env, i, arrived, horizons, lookup_keys=lookup_keys))
    return sides


def _arrived_rows(
    node: PlanNode[s.MultiwayJoin], i: int, frame: Frame | None
) -> tuple[Frame, r.Key]:  # fmt: skip
    """The new rows of an input, with their keys."""
    frame = r.empty(node.input_layouts[i]) if frame is None else frame
    if not node.alive.all():  # rows that waited for a watermark outlive their member
        frame = frame.where(node.alive[frame["op"]])
    return frame, r.key_of(frame, node.step.keys[i])


def _input(
    node: PlanNode[s.MultiwayJoin], env: OperatorContext, i: int, arrived: tuple[Frame, r.Key],
    horizons: join_state.Horizons, *, lookup_keys: LookupKeys,
) -> Input:  # fmt: skip
    (frame, key), layout, whole = arrived, node.input_layouts[i], None
    old = join_state.live_runs(env.state, f"{node.id}.{i}", horizons.now, lookup_keys)
    if node.step.raw[i]:
        all_of_it = r.key_of(frame, range(len(layout.slots)))
        frame, new_places = as_set(frame, key, all_of_it, old)
        key, whole = pick(key, new_places), pick(all_of_it, new_places)[1]
    width = len(layout.windows)
    places = node.step.row_windows(i, width) or ()
    start, end = outer(frame, layout, node.windows.pick(places))
    new = join_state.build_run(
        join_state.with_run_columns(_shown_columns(node, i, frame), key, start, end, whole)
    )
    every = [*old, new]
    starts = np.cumsum([0, *(run.rows.n for run in every)], dtype=np.int64)
    return Input(every, starts, layout)


def _shown_columns(node: PlanNode[s.MultiwayJoin], i: int, frame: Frame) -> Frame:
    """Returns the columns of an input that the result uses: shown slots, and times; keys are in the
    # columns.
    """
    shown = {f"{n[0]}{at}" for out, (of, at) in enumerate(node.step.out) if of == i
             for n in slot_columns(out, node.layout.slots[out])}  # fmt: skip
    columns = {n: c for n, c in frame.columns.items() if not col.is_slot(n) or n in shown}
    return Frame(columns, frame.n)


def matches(sides: Sequence[Input], i: int) -> Doubles:
    """Returns the number of matching rows in each input for a sample of new rows of input ``i``,
    spread over all: a row for each of these, with 1 for itself.
    """
    new = sides[i].new.buckets
    at = np.linspace(0, max(len(new.k) - 1, 0), min(SAMPLE, len(new.k))).astype(np.intp)
    few = ProbeSample(new.k[at], new.h[at], new.s[at], new.ends[at])
    counts = np.ones((len(at), len(sides)))
    for j, side in enumerate(sides):
        if j != i and len(at):
            counts[:, j] = _count_matches(few, side, new=j > i)
    return counts


def order_of(sides: Sequence[Input], i: int, look: Doubles) -> tuple[int, ...]:
    """Returns the other inputs, those with the fewest matches first; () if one has none."""
    others = [j for j in range(len(sides)) if j != i]
    if not len(look) or any(not list(sides[j].runs_to_probe(new=j > i)) for j in others):
        return ()
    many = look.mean(axis=0)
    return tuple(sorted(others, key=lambda j: (many[j], sides[j].rows, j)))


def _count_matches(few: ProbeSample, side: Input, *, new: bool) -> Doubles:
    """Returns the number of rows of an input for each of a few, by its largest run, and by its
    restricted runs.
    """
    there = [run for _, run in side.runs_to_probe(new=new)]
    whole = [run for run in there if not run.is_part]
    counts = sum((_of_run(few, run) for run in there if run.is_part), np.zeros(len(few.k)))
    if whole:
        largest = max(whole, key=lambda run: run.rows.n)
        counts += _of_run(few, largest) * (sum(run.rows.n for run in whole) / largest.rows.n)
    return counts


def _of_run(few: ProbeSample, run: Run) -> Doubles:
    probe_rows, _ = run.find_pairs(*few, MAX_PROBED_PAIRS)
    probed = len(few.k) if len(probe_rows) <= MAX_PROBED_PAIRS else int(probe_rows[-1]) + 1
    many = np.bincount(probe_rows, minlength=len(few.k)).astype(np.float64)
    many[probed:] = many[:probed].mean()  # probes that were not looked at
    return many
