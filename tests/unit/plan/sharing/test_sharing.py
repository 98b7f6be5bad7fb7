"""Modes of sharing by their names."""

import pytest

from levada.errors import UsageError
from levada.plan.sharing.sharing_modes import OFFERED, Sharing, sharing_of


@pytest.mark.parametrize("mode", list(Sharing))
def test_modes_are_said_by_a_word(mode: Sharing) -> None:
    assert sharing_of(str(mode) if mode in OFFERED else mode) is mode


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("relaxed", "Did you mean relax?"),
        ("of", "Did you mean off?"),
        ("containment", "Known: exact, off, relax."),
        ("lattice", "Known: exact, off, relax."),
        (None, "Known: exact, off, relax."),
    ],
)
def test_what_is_no_mode_is_told_with_what_is_meant(word: str | None, hint: str) -> None:
    with pytest.raises(UsageError, match=f"There is no sharing {word}") as told:
        sharing_of(word)  # type: ignore[arg-type]
    assert hint in str(told.value)
