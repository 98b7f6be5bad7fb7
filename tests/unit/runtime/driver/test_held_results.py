"""Results that are held back for fuller files: when they are due."""

import pytest

from levada.checkpoint.manifest import UnpublishedResults
from levada.runtime.publication.relation_files import is_due

HOUR = 3_600_000
HELD = [UnpublishedResults(1, 1, [], {}, 100 * HOUR, 7)]


@pytest.mark.parametrize(
    ("hours", "due"), [(100, False), (101, True), (76, True)], ids=["young", "old", "clock back"]
)
def test_results_are_due_when_they_are_old_or_the_clock_went_back(hours: int, due: bool) -> None:
    assert is_due(HELD, lambda size, age: age >= HOUR, hours * HOUR) == due


def test_nothing_held_is_never_due() -> None:
    assert not is_due([], lambda size, age: True, 0)
