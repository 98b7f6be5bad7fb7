"""How sending is counted is said in a few words; what is no such thing is refused in a sentence."""

from __future__ import annotations

import pytest

import levada
from levada.checkpoint.send_graph_options import FINEST, USUAL, check_slices, slicing_of
from levada.cli.app.app_file import slice_at
from levada.errors import UsageError


@pytest.mark.parametrize(
    ("said", "kept", "groups"),
    [
        ("", "", 0),
        ("1d", "1d", USUAL),
        ("1mo,groups=4096", "1mo", USUAL),
        (" 1d , groups = 1 ", "1d,groups=1", 1),
        ("1d,groups=65536", "1d,groups=65536", FINEST),
    ],
)
def test_what_is_said_is_kept(said: str, kept: str, groups: int) -> None:
    assert check_slices(said) == kept
    assert slicing_of(kept).groups == groups


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("1w", "There are no slices of 1w"),
        (",groups=64", "There are no slices of "),
        ("1d,group=64", "Slices have no 'group'"),
        ("1d,", "Slices have no ''"),
        ("1d,groups", "cannot be counted by no number of groups"),
        ("1d,groups=0", "cannot be counted by 0 groups"),
        ("1d,groups=100", "cannot be counted by 100 groups"),
        ("1d,groups=-64", "cannot be counted by -64 groups"),
        ("1d,groups=131072", "cannot be counted by 131072 groups"),
        ("1d,groups=" + 50 * "9", "cannot be counted by 9999"),
    ],
)
def test_what_is_wrong_says_so(said: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        levada.Engine(spark=False, slices=said)


def test_what_is_learned_is_counted_finely() -> None:
    assert check_slices("", learned=True) == check_slices("1d", learned=True) == "1d,groups=65536"
    assert check_slices("1mo,groups=65536", learned=True) == "1mo,groups=65536"
    with pytest.raises(UsageError, match="of 65,536 groups, and 1d,groups=64 counts 64"):
        check_slices("1d,groups=64", learned=True)


def test_an_app_file_says_where_it_stands() -> None:
    assert slice_at("1d,groups=64", "options.slice") == "1d,groups=64"
    with pytest.raises(UsageError, match=r"options\.slice: .*cannot be counted by 100 groups"):
        slice_at("1d,groups=100", "options.slice")
