"""Versions of a mapping are the dictionaries that they say, in whichever way they were made."""

import random

import pytest

from levada.plan.execution.persistent_map import MIN_COPIED_ENTRIES, PersistentMap


@pytest.mark.parametrize("seed", range(4))
def test_versions_are_dictionaries(seed: int) -> None:
    rng = random.Random(seed)
    known = {f"k{i}": i for i in range(rng.choice((5, 400, 3000)))}
    version, bases = PersistentMap.from_entries(known), 0
    for turn in range(120):
        went = rng.sample(sorted(known), min(len(known), rng.randrange(4)))
        fresh = {f"k{rng.randrange(4000)}": 10_000 + turn for _ in range(rng.randrange(4))}
        came = {key: value for key, value in fresh.items() if key not in known or key in went}
        before, had = version, dict(known)
        for key in went:
            del known[key]
        known |= came
        version = before.with_changes(came, went)
        bases += version._base is not before._base
        assert dict(before) == had, "a version stays what it was"
        assert dict(version) == known == dict(zip(version, version.values(), strict=True))
        assert len(version) == len(known)
        assert {*version.kinds(_last)} == {*map(_last, known.values())}
        assert all(key in version and key not in had for key in known.keys() - had.keys())
        assert not any(key in version for key in had.keys() - known.keys())
    assert bases < 120, "a version has what the one before had"


def _last(value: int) -> int:
    return value % 7


def test_a_small_change_of_many_copies_none_of_them() -> None:
    first = PersistentMap.from_entries({f"k{i}": i for i in range(100_000)})
    second = first.with_changes({"new": 1}, ["k5"])
    assert second._base is first._base and len(second) == 100_000
    assert len(second._new) + len(second._gone) < MIN_COPIED_ENTRIES


@pytest.mark.parametrize("went", [["b"], ["a", "a"]])
def test_what_is_not_there_cannot_go(went: list[str]) -> None:
    with pytest.raises(LookupError):
        PersistentMap.from_entries({"a": 1}).with_changes({}, went)
