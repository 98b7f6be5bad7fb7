"""By which of its keys a join is placed: rows of few values, or of a heavy one, leave partitions
without work, so the key is the one whose busiest partition has least.

With nothing known it is the first one, as without measures.
"""

from __future__ import annotations

from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import join_keys
from levada.plan.statistics.strategy_request import JoinStrategyRequest

WORSE = 1.1  # so much more the busiest partition has by the first key, before another one is taken


def find_most_even_key(left: Op, right: Op, wanted: JoinStrategyRequest) -> str:
    """The key whose values are most even on both sides; "": the first one will do."""
    if wanted.measures is None:
        return ""
    _, keys, placed = join_keys(left, right)
    if len(keys) < 2 or placed != keys[:1]:
        return ""
    # here: who knows nothing of streams loads nothing for it
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
