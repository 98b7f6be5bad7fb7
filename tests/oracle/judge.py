"""Cases judged by the second oracle: one that differs is made small and told with its seed.

A case is a function of its seed: ``LEVADA_CASE=seed`` repeats one alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from oracle.case import Case, expected
from oracle.drive import differences, run
from oracle.small import smaller


def seeds(first: int, number: int) -> range:
    """So many from a first one on, or the one that is to be repeated."""
    if "LEVADA_CASE" in os.environ:
        first, number = int(os.environ["LEVADA_CASE"]), 1
    return range(first, first + number)


def difference(case: Case, kinds: Counter[str] | None = None) -> str:
    """What an engine says otherwise than the oracle; ``kinds`` are counted."""
    ran = run(case)
    if kinds is not None:
        kinds.update(ran.kinds)
    return differences(case, expected(case), ran.reports, ran.suspended)


def judged(
    own: range,
    drawn: Callable[[int], Case],
    difference: Callable[[Case, Counter[str]], str] = difference,
) -> Counter[str]:
    """Judges the cases of these seeds; how many of them had which kinds."""
    print(f"cases {own.start} to {own.stop - 1}")
    kinds = Counter[str]()
    for seed in own:
        case = drawn(seed)
        if found := difference(case, kinds):
            fail(seed, case, found, lambda case: difference(case, Counter()))
    return kinds


def fail(seed: int, case: Case, found: str, difference: Callable[[Case], str]) -> None:
    """Fails with a case that has been made small; one that cannot be run is another one."""

    def differs(case: Case) -> bool:
        try:
            return bool(difference(case))
        except Exception:
            return False

    small = smaller(case, differs)
    pytest.fail(f"LEVADA_CASE={seed}: {found}\n\nmade small:\n{small}\n{difference(small)}")


def show(kinds: Counter[str]) -> None:
    print("".join(f"{n:6} {kind}\n" for kind, n in kinds.most_common()))


def rare(kinds: Counter[str], needed: Iterable[str], cases: int) -> list[str]:
    """Those of these kinds that are in no case, or in no more than one of twenty of many."""
    return [kind for kind in needed if kinds[kind] <= cases // 20]
