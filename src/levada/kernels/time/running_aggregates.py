"""Running aggregates of groups after each change: exact sums of doubles, best values, counts.

A double that is added to a sum and subtracted again leaves no trace: a sum is a fixed-point number
of 68 limbs of 32 bits, the lowest bit 2**-1074, so every finite double is three limbs' worth, and
adding or subtracting it is exact in any order. It is rounded once, to the nearest double, where a
value is needed.

Cost: about 5 ns an event, and 100 ns a value.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Doubles, Longs
from levada.kernels import FLAG, I8, I32, I64, INT, inline, kernel

LIMBS = 68
_MASK = 0xFFFFFFFF
_HIDDEN = 1 << 52


@inline
def _place(bits: int) -> tuple[int, int, int, int]:
    """Returns for a double's bits the first limb, and the contributions to three limbs, without the
    sign.
    """
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & (_HIDDEN - 1)
    if exponent > 0:
        mantissa |= _HIDDEN
        exponent -= 1
    shift = exponent & 31
    low = (mantissa & _MASK) << shift
    high = (mantissa >> 32) << shift
    return exponent >> 5, low & _MASK, (low >> 32) + (high & _MASK), high >> 32


@inline
def _carry(limbs: Longs) -> int:
    """Carries all limbs to 0 <= limb < 2**32; returns the rest: below 0 if negative."""
    over = 0
    for i in range(LIMBS):
        over += limbs[i]
        limbs[i] = over & _MASK
        over >>= 32
    return over


@inline
def _round_to_double(total: Longs, limbs: Longs) -> float:
    """The double that is nearest to a number, ties to even; ``limbs`` is room to work in."""
    for i in range(LIMBS):
        limbs[i] = total[i]
    negative = _carry(limbs) < 0
    if negative:
        for i in range(LIMBS):
            limbs[i] = -total[i]
        _carry(limbs)
    top = LIMBS - 1
    while top >= 0 and limbs[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    first, second, third = limbs[top], 0, 0
    if top >= 1:
        second = limbs[top - 1]
    if top >= 2:
        third = limbs[top - 2]
    sticky = False
    for i in range(top - 2):
        sticky = sticky or limbs[i] != 0
    shift = 0
    while (first << shift) < (1 << 31):
        shift += 1
    # 64 bits from the highest one on, as two halves; what is below them only breaks ties
    upper = ((first << shift) & _MASK) | (second >> (32 - shift))
    lower = ((second << shift) & _MASK) | (third >> (32 - shift))
    sticky = sticky or ((third << shift) & _MASK) != 0
    mantissa = (upper << 21) | (lower >> 11)
    rest = lower & 0x7FF
    if rest > 0x400 or (rest == 0x400 and (sticky or (mantissa & 1) == 1)):
        mantissa += 1
    value = math.ldexp(float(mantissa), 32 * (top - 1) - shift + 11 - 1074)
    return -value if negative else value


@inline
def _carry_signed(limbs: Longs) -> None:
    """Makes room in the limbs; the last one takes the sign."""
    for i in range(LIMBS - 1):
        limbs[i + 1] += limbs[i] >> 32
        limbs[i] &= _MASK


@inline
def _round_rest(total: Longs, value: float, left: Longs, limbs: Longs) -> float:
    """The double that is nearest to what rounding to ``value`` took from a number."""
    cell = np.full(1, abs(value))
    limb, a, b, c = _place(cell.view(np.int64)[0])
    sign = -1 if value < 0 else 1
    for i in range(LIMBS):
        left[i] = total[i]
    left[limb] -= sign * a
    left[limb + 1] -= sign * b
    left[limb + 2] -= sign * c
    return _round_to_double(left, limbs)


@kernel((I64, I64, I64, I8, I64, I64, I64, INT, FLAG))
def running_sums(
    starts: Longs,
    run: Longs,
    bits: Longs,
    weights: npt.NDArray[np.int8],
    base_starts: Longs,
    base_limb: Longs,
    base: Longs,
    runs: int,
    rest: bool,
) -> tuple[Doubles, Doubles, Longs, Longs, Longs]:
    """Returns the sums of groups before, and after each run of events, and the change of each limb
    of a group. ``rest``: returns what the rounding of each sum to a double took from it.

    Group g has the events ``starts[g] : starts[g + 1]``, in order, each with its ``run`` (numbered
    over all groups), the bits of its finite double and its weight; and the previous limbs
    ``base_limb, base`` at ``base_starts[g] : base_starts[g + 1]``. Returns (sum before per group,
    sum after per run, and the changes: group, limb, amount).
    """
    groups = starts.size - 1
    before, after = np.zeros(groups), np.zeros(runs)
    most = min(3 * bits.size, groups * LIMBS)
    of_group, of_limb, change = (
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    changes = 0
    total, work, left, limb_changes = (
        np.zeros(LIMBS, np.int64),
        np.zeros(LIMBS, np.int64),
        np.zeros(LIMBS, np.int64),
        np.zeros(LIMBS, np.int64),
    )
    for g in range(groups):
        for i in range(LIMBS):
            total[i] = limb_changes[i] = 0
        for i in range(base_starts[g], base_starts[g + 1]):
            total[base_limb[i]] += base[i]
        _carry_signed(total)
        before[g] = _round_to_double(total, work)
        if rest:
            before[g] = _round_rest(total, before[g], left, work)
        for i in range(starts[g], starts[g + 1]):
            w = np.int64(weights[i])
            if w != 0 and bits[i] != 0:
                if bits[i] < 0:
                    w = -w
                limb, a, b, c = _place(bits[i])
                limb_changes[limb] += w * a
                limb_changes[limb + 1] += w * b
                limb_changes[limb + 2] += w * c
                total[limb] += w * a
                total[limb + 1] += w * b
                total[limb + 2] += w * c
            if i + 1 == starts[g + 1] or run[i + 1] != run[i]:
                after[run[i]] = _round_to_double(total, work)
                if rest:
                    after[run[i]] = _round_rest(total, after[run[i]], left, work)
        for limb in range(LIMBS):
            if limb_changes[limb] != 0:
                of_group[changes], of_limb[changes], change[changes] = g, limb, limb_changes[limb]
                changes += 1
    return (
        before,
        after,
        of_group[:changes].copy(),
        of_limb[:changes].copy(),
        change[:changes].copy(),
    )


@kernel((I64, I64, I64))
def points_of(of: Longs, base: Longs, changes: Longs) -> Longs:
    """Returns the values of groups before and after each of their steps: ``of`` the group of each
    step (in order, each has some), ``base`` the previous value of each group. The twin is a
    cumulative sum.
    """
    out = np.empty(base.size + of.size, np.int64)
    at, group = 0, np.int64(-1)
    for i in range(of.size):
        if of[i] != group:
            group = of[i]
            out[at] = base[group]
            at += 1
        out[at] = out[at - 1] + changes[i]
        at += 1
    return out


@inline
def _highest_limb(counts: Longs, low: int, top: int) -> int:
    while top >= low and counts[top] <= 0:
        top -= 1
    return top


@kernel((I64, I64, I64, I8, I64, I64, INT))
def running_best(
    starts: Longs,
    run: Longs,
    place: Longs,
    weights: npt.NDArray[np.int8],
    value_starts: Longs,
    counts: Longs,
    runs: int,
) -> tuple[Longs, Longs]:
    """Returns the highest place with a count above 0 of each group before, and after each run of
    events; -1 without such a place.

    Group g has the events ``starts[g] : starts[g + 1]`` (``place`` -1: none of its values) and the
    values ``value_starts[g] : value_starts[g + 1]``, from the worst to the best, with the previous
    ``counts``. The twin sorts.
    """
    before, after = np.full(starts.size - 1, -1, np.int64), np.full(runs, -1, np.int64)
    now = counts.copy()
    for g in range(starts.size - 1):
        low = value_starts[g]
        top = _highest_limb(now, low, value_starts[g + 1] - 1)
        before[g] = top if top >= low else -1
        for i in range(starts[g], starts[g + 1]):
            at = place[i]
            if at >= 0:
                now[at] += weights[i]
                if now[at] > 0 and at > top:
                    top = at
            if i + 1 == starts[g + 1] or run[i + 1] != run[i]:
                top = _highest_limb(now, low, top)
                after[run[i]] = top if top >= low else -1
    return before, after


@kernel((I32, I64, I64, FLAG))
def running_counts(
    codes: npt.NDArray[np.int32], change: Longs, before: Longs, floor: bool
) -> tuple[Longs, Longs]:  # fmt: skip
    """Returns the counts of groups before and after each change; ``codes`` are their numbers, all
    changes of one together.

    With ``floor`` a count does not fall below 0: a change that would take it below 0 takes it to 0.
    """
    earlier, after = np.empty(codes.size, np.int64), np.empty(codes.size, np.int64)
    for i in range(codes.size):
        earlier[i] = after[i - 1] if i > 0 and codes[i - 1] == codes[i] else before[codes[i]]
        after[i] = earlier[i] + change[i]
        if floor and after[i] < 0:
            after[i] = 0
    return earlier, after
