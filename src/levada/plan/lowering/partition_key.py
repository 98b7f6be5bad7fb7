"""Chooses the key that places a join: the key whose busiest partition has the fewest rows.

Rows of few values, or of a heavy one, leave partitions without work. Without statistics the first
key is chosen.
"""

from __future__ import annotations

from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import join_keys
from levada.plan.statistics.choose_join_strategy import JoinStrategyRequest

WORSE = 1.1  # excess load of the busiest partition from which another key is taken


def find_most_even_key(left: Op, right: Op, wanted: JoinStrategyRequest) -> str:
    """Returns the key whose values are most even on both sides; "": use the first key."""
    if wanted.measures is None:
        return ""
    _, keys, placed = join_keys(left, right)
    if len(keys) < 2 or placed != keys[:1]:
        return ""
    # imported here: without statistics nothing is loaded
    from levada.plan.statistics.input_statistics import values_of

    many = wanted.measures.partitions
    sides = [values_of(side, wanted.measures) for side in (left, right)]
    if any(key not in values for key in keys for values in sides):
        return ""
    shares = {key: max(values[key].busiest(many) for values in sides) for key in keys}
    best = min(keys, key=lambda key: shares[key])
    if shares[keys[0]] <= shares[best] * WORSE:
        return ""
    percentages = ", ".join(f"?{key} {share:.0%}" for key, share in shares.items())
    wanted.notes.append(
        f"A join by {' '.join(f'?{key}' for key in keys)} is placed by ?{best}: of {many} "
        f"partitions the busiest would have of its rows, by {percentages}."
    )
    return best
