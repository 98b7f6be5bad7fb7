"""The search for the query that makes an epoch fail, by evaluating halves.

Queries are ordered by age. The search returns the first query with which the older ones fail, so it
also detects a query that fails only together with another. Cost: at most log2(n) + 1 evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Fails = Callable[[Sequence[str]], bool]
"""Returns whether an epoch, or a plan, fails without some of the queries."""


class OtherFaultError(Exception):
    """A failure that the suspected queries do not cause."""


class UnsteadyError(Exception):
    """A failure that did not recur."""


def find_failing_query(names: Sequence[str], fails: Fails) -> str:
    """Returns the query of ``names``, the oldest first, with which the others fail.

    Raises ``OtherFaultError`` if they fail without all of these, and ``UnsteadyError`` if they do
    not fail with all of them.

    >>> find_failing_query("abcdefgh", lambda without: "f" not in without)
    'f'
    """
    low, high = 0, len(names)  # the first `low` pass, the first `high` fail
    while high - low > 1:
        middle = (low + high) // 2
        if fails(names[middle:]):
            high = middle
        else:
            low = middle
    if low == 0 and (not names or fails(names)):
        raise OtherFaultError
    if 1 < high == len(names) and not fails(()):
        raise UnsteadyError
    return names[low]
