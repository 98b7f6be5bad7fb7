"""The incremental windowed join of inputs that are joined by different variables (chains, circles)
in one step, without intermediate state (CQELS Cloud, C24 to C29).

    a.x = b.x, b.y = c.y:   new a meet b by x, the matches meet c by y; new c meet b by y, ..

As in ``multiway_join`` each combination is found by the first of its rows that is new. The
combination so far meets the next input by an arrangement of that input whose variables are all
known, and the other shared variables are compared. Inputs that all partitions have (``copied``) are
probed as any other. At least one input is not copied, and is partitioned by one key: so each
combination is found in one partition, that of the rows of this input.

The order is that of the epoch: a few new rows go ahead, and at each step the input with the fewest
matches is next.

Cost: by the new rows, and by the intermediate combinations; never by the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.frame import Column, Frame, concat
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.kernels.keyed.bucket_layout import combine, mix
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.row_limit import most_rows, too_many
from levada.operators.rows import route_rows as r
from levada.operators.state import join_state
from levada.operators.state.state_parts import ALIKE, COPY_MARK
from levada.operators.windowed.deduplicate import as_set, pick
from levada.operators.windowed.multiway_inputs import Input
from levada.operators.windowed.multiway_join import (
    JoinMatches,
    ReadRows,
    counting_rows,
    limit_matches,
    match_new_rows,
    members_of,
    merge_small_parts,
    probe_runs,
    put_together,
    slice_matches,
    take_matches,
)
from levada.operators.windowing.window_intervals import max_run_span, outer
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import slot_columns

# The inputs of a join of chains and circles: each is *arranged*, as runs, by each set of variables
# that it shares with another one, so that it can be probed from there (CQELS Cloud, C24 to C28).
#
# State that is equal in all partitions has keys with ``ALIKE``, and a second arrangement a key with
# ``COPY_MARK``, so that it is not counted again.
#
# Cost: an arrangement is the rows once more; most inputs have one, the middle of a chain two.


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
    node: Node, env: OperatorContext, i: int, frame: Frame | None, horizons: join_state.Horizons
) -> Arranged:
    """One input: its occurrences if it is raw, its runs."""
    ways, slots = node.compute_once(ways_of, i), dict(node.step.shared[i])
    old = [
        join_state.live_runs(env.state, key_of(node, i, a), horizons.now) for a in range(len(ways))
    ]
    new_runs = _arrangements(node, i, frame, old, ways)
    sides = [_side(node, i, before, new) for before, new in zip(old, new_runs, strict=True)]
    return Arranged(ways, tuple(sides), slots)


def _side(node: Node, i: int, old: list[join_state.Run], new: join_state.Run) -> Input:
    every = [*old, new]
    starts = np.cumsum([0, *(run.rows.n for run in every)], dtype=np.int64)
    return Input(every, starts, node.input_layouts[i])


def _arrangements(
    node: Node, i: int, frame: Frame | None, old: list[list[join_state.Run]], ways: tuple[Way, ...]
) -> Iterator[join_state.Run]:
    """The new rows of an input, arranged each way."""
    layout, slots = node.input_layouts[i], dict(node.step.shared[i])
    frame = r.empty(layout) if frame is None else frame
    if not node.alive.all():  # rows that waited for a watermark outlive their member
        frame = frame.where(node.alive[frame["op"]])
    keys, whole = [r.key_of(frame, [slots[v] for v in way]) for way in ways], None
    if node.step.raw[i]:
        all_of_it = r.key_of(frame, range(len(layout.slots)))
        frame, new_places = as_set(frame, keys[0], all_of_it, old[0])
        keys, whole = [pick(key, new_places) for key in keys], pick(all_of_it, new_places)[1]
    places = node.step.row_windows(i, len(layout.windows)) or ()
    start, end = outer(frame, layout, node.windows.pick(places))
    shown = _shown_columns(node, i, frame)
    for a, key in enumerate(keys):
        yield join_state.build_run(
            join_state.with_run_columns(shown, key, start, end, None if a else whole)
        )


def _shown_columns(node: Node, i: int, frame: Frame) -> Frame:
    """Returns the columns of an input that the result uses, its join columns, and times."""
    shown = {f"{n[0]}{at}" for out, (of, at) in enumerate(node.step.out) if of == i
             for n in slot_columns(out, node.layout.slots[out])}  # fmt: skip
    shown |= {name(at) for _, at in node.step.shared[i] for name in (col.x, col.y)}
    columns = {n: c for n, c in frame.columns.items() if not col.is_slot(n) or n in shown}
    return Frame(columns, frame.n)


def keep(
    node: Node, inputs: list[Arranged], env: OperatorContext, horizons: join_state.Horizons
) -> None:
    """Keeps the new rows of each input, arranged each way."""
    for i, arranged_input in enumerate(inputs):
        for a, side in enumerate(arranged_input.sides):
            if side.new.rows.n:
                join_state.insert(
                    env.state,
                    key_of(node, i, a),
                    side.new,
                    max_run_span(node.windows),
                    horizon=horizons.next,
                    alive=node.alive,
                )


# new rows of an input that go ahead, and what is found for them
SAMPLE = register(f"{__name__}.SAMPLE", 128)


class Leg(NamedTuple):
    """The next step: the input, and its arrangement to probe."""

    input: int
    way: int


def replicated_join(node: Node, inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new result rows. Rows that are dead by the horizons of the streams are dropped."""
    outputs = list(linked_in_pieces(node, inputs, env))
    return concat(outputs) if outputs else None


def linked_in_pieces(node: Node, inputs: Inputs, env: OperatorContext) -> Iterator[Frame]:
    """The new result rows, a part at a time. Raises ``ExcessError``."""
    horizons = env.horizons(node)
    sides = [arranged_of(node, env, i, frame, horizons) for i, frame in enumerate(inputs)]
    total, whose = 0, node.step.copied.index(False)
    for i in range(len(sides)):
        for part, ways in _of_new(node, sides, i, env):
            total += len(part)
            if total > most_rows(node, env.limits):
                raise too_many(node, members_of(sides[i].sides[0], part.rows[i]), env.limits)
            read = [_read(sides, j, ways, part) for j in range(len(sides))]
            if (rows := counting_rows(node, put_together(node, read, len(part), whose))).n:
                yield rows
    keep(node, sides, env, horizons)


def _read(
    sides: Sequence[Arranged], j: int, ways: dict[int, int], combinations: JoinMatches
) -> ReadRows:
    return ReadRows.from_numbers(sides[j].sides[ways[j]], combinations.rows[j])


def _of_new(
    node: Node, sides: Sequence[Arranged], i: int, env: OperatorContext
) -> Iterator[tuple[JoinMatches, dict[int, int]]]:
    """Yields the combinations whose first new row is of input ``i``, and the arrangement that
    numbers the rows of each input.
    """
    first = sides[i].sides[0]
    if not first.new.rows.n:
        return
    new = match_new_rows(node, first, i, env)
    legs, ways, parts = path(sides, i, new), {i: 0}, iter((new,))
    for leg in legs:
        parts = _join_input(sides, parts, leg, ways, i=i)
        parts = merge_small_parts(limit_matches(node, first, i, parts, env.limits))
        ways = {**ways, leg.input: leg.way}
    if legs:
        yield from ((part, ways) for part in parts)


def _join_input(
    sides: Sequence[Arranged],
    parts: Iterable[JoinMatches],
    leg: Leg,
    ways: dict[int, int],
    *,
    i: int,
) -> Iterator[JoinMatches]:
    """Joins the combinations so far with the rows of one more input."""
    target = sides[leg.input]
    way = target.ways[leg.way]
    rest = _rest(sides, leg, ways)
    probes = (_with_key(sides, part, way, ways) for part in parts)
    met = list(target.sides[leg.way].runs_to_probe(new=leg.input > i))
    for joined in probe_runs(probes, met, leg.input):
        yield (
            _agreeing_matches(sides, joined, rest, {**ways, leg.input: leg.way}) if rest else joined
        )


def _rest(sides: Sequence[Arranged], leg: Leg, ways: dict[int, int]) -> list[tuple[int, int]]:
    """Returns the further variables that an input shares with the combinations so far, each with
    the input that has it.
    """
    target = sides[leg.input]
    left = [v for v in target.slots if v not in target.ways[leg.way]]
    having = [(v, next((j for j in ways if v in sides[j].slots), -1)) for v in left]
    return [(v, j) for v, j in having if j >= 0]


def _with_key(
    sides: Sequence[Arranged], part: JoinMatches, way: Way, ways: dict[int, int]
) -> JoinMatches:
    """Returns combinations with the key of these variables."""
    read = {j: _read(sides, j, ways, part) for j in ways}
    op = next(iter(read.values())).column("op")
    none = np.zeros(len(part) if not way else 0, np.uint64)
    (x, y), *more = [_identity(sides, read, v) for v in way] or [(none, none)]
    k, h = mix(x, y, op)
    for x, y in more:
        k, h = combine(k, h, x, y)
    return replace(part, k=k, h=h)


def _identity(
    sides: Sequence[Arranged], read: dict[int, ReadRows], variable: int
) -> tuple[Column, Column]:
    j = next(j for j in read if variable in sides[j].slots)
    slot = sides[j].slots[variable]
    return read[j].column(col.x(slot)), read[j].column(col.y(slot))


def _agreeing_matches(
    sides: Sequence[Arranged],
    combinations: JoinMatches,
    rest: Sequence[tuple[int, int]],
    ways: dict[int, int],
) -> JoinMatches:
    """Keeps the combinations whose last input has the same values as the others."""
    last = next(reversed(ways))
    keep_ = np.ones(len(combinations), np.bool_)
    for variable, j in rest:
        one, other = (
            _identity(sides, {at: _read(sides, at, ways, combinations)}, variable)
            for at in (j, last)
        )
        keep_ &= (one[0] == other[0]) & (one[1] == other[1])
    return combinations if keep_.all() else take_matches(combinations, np.flatnonzero(keep_))


def path(sides: Sequence[Arranged], i: int, new: JoinMatches) -> list[Leg]:
    """In which order, and how, new rows of an input meet the others; [] if one has no rows."""
    others = {j for j in range(len(sides)) if j != i}
    if any(not list(sides[j].sides[0].runs_to_probe(new=j > i)) for j in others):
        return []
    some, ways, legs = _sample_matches(new), {i: 0}, list[Leg]()
    while others:
        looks = [_look(sides, some, Leg(j, a), ways, i=i)
                 for j in sorted(others) for a in _open(sides, j, ways)]  # fmt: skip
        _, leg, some = min(looks, key=lambda look: (look[0], look[1]))
        legs.append(leg)
        ways = {**ways, leg.input: leg.way}
        others.remove(leg.input)
    return legs


def _open(sides: Sequence[Arranged], j: int, ways: dict[int, int]) -> list[int]:
    """Returns the arrangements of an input whose variables are all known; the longest ones."""
    known = {v for at in ways for v in sides[at].slots}
    there = [a for a, way in enumerate(sides[j].ways) if known.issuperset(way)]
    most = max((len(sides[j].ways[a]) for a in there), default=0)
    return [a for a in there if len(sides[j].ways[a]) == most]


def _look(
    sides: Sequence[Arranged], some: JoinMatches, leg: Leg, ways: dict[int, int], *, i: int
) -> tuple[float, Leg, JoinMatches]:
    """Returns the estimated number of matches for one of a few combinations, by the largest run of
    an input, and a few of the matches.
    """
    side = sides[leg.input].sides[leg.way]
    met = list(side.runs_to_probe(new=leg.input > i))
    largest = max(met, key=lambda at: at[1].rows.n)
    probes = _with_key(sides, some, sides[leg.input].ways[leg.way], ways)
    parts = list(probe_runs([probes], [largest], leg.input)) if len(some) else []
    rows = sum(run.rows.n for _, run in met)
    many = sum(map(len, parts)) / max(len(some), 1) * (rows / largest[1].rows.n)
    return many, leg, _sample_matches(next(merge_small_parts(parts), _no_matches(some, leg.input)))


def _no_matches(some: JoinMatches, j: int) -> JoinMatches:
    none = slice_matches(some, 0, 0)
    return replace(none, rows={**none.rows, j: np.empty(0, np.int64)})


def _sample_matches(combinations: JoinMatches) -> JoinMatches:
    """A few of all, spread over them."""
    at = np.linspace(0, max(len(combinations) - 1, 0), min(SAMPLE, len(combinations))).astype(
        np.intp
    )
    return take_matches(combinations, at)
