"""What is said of balance, and what is no option of it."""

from __future__ import annotations

from typing import Any

import pytest

from levada.errors import UsageError
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, balance_of


@pytest.mark.parametrize("off", [None, False, "", "off"])
def test_off(off: Any) -> None:
    assert balance_of(off) is None


@pytest.mark.parametrize("on", [True, "on", {}, {"preset": "on"}, BalanceOptions()])
def test_on(on: Any) -> None:
    assert balance_of(on) == BalanceOptions()


def test_options_by_name() -> None:
    wanted = BalanceOptions(reorganize_every=5, supplier_threshold=0.3)
    text = "reorganize_every=5,supplier_threshold=0.3"
    assert balance_of(text) == balance_of(f"on,{text}") == wanted
    given = {"reorganize_every": 5, "supplier_threshold": 0.3}
    assert balance_of(given) == wanted


def test_the_preset_of_the_paper() -> None:
    paper = balance_of("windowed-joins")
    assert paper == BalanceOptions(10, 0.5, 0.01, 0.5, 16_384, "random")
    assert balance_of({"preset": "windowed-joins", "reorganize_every": 5}) == BalanceOptions(
        5, 0.5, 0.01, 0.5, 16_384, "random"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("onn", r"balance is off, on, windowed-joins, not 'onn'\. Did you mean on\?"),
        ("on,reorganise_every=5", r"no option reorganise_every\. Did you mean reorganize_every\?"),
        ("on,beta=0.5", r"no option beta\. Known: reorganize_every, supplier_threshold\."),
        ("supplier_threshold=", r"supplier_threshold is '', which is no number"),
        ("reorganize_every=5,reorganize_every=4", r"reorganize_every is there twice"),
        ("off,reorganize_every=5", r"balance is off, and reorganize_every=5 is said beside it"),
        ("supplier_threshold=nan", r"supplier_threshold is nan, not above 0.01 and up to 1"),
        ("supplier_threshold=0.01", r"supplier_threshold is 0.01, not above 0.01 and up to 1"),
        ("supplier_threshold=1.5", r"not above 0.01 and up to 1"),
        ({"supplier_threshold": True}, r"supplier_threshold is True, which is no number"),
        ("reorganize_every=0", r"reorganize_every is 0, which is no whole number from 1"),
        (7, r"balance is 7\. Say on, off, or a mapping"),
    ],
)
def test_what_is_no_option(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        balance_of(given)
