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
from levada.core.size_thresholds import register
from levada.kernels.keyed.bucket_layout import combine, mix
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.row_limit import most_rows, too_many
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
from levada.operators.windowed.replicated_inputs import Arranged, Node, Way, arranged_of, keep

# new rows of an input that go ahead, and what is found for them
SAMPLE = register(f"{__name__}.SAMPLE", 128)


class Leg(NamedTuple):
    """The next step: the input, and its arrangement to probe."""

    input: int
    way: int


def replicated_join(node: Node, inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new result rows. Rows that are dead by the horizons of the streams are dropped."""
    made = list(linked_in_pieces(node, inputs, env))
    return concat(made) if made else None


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
