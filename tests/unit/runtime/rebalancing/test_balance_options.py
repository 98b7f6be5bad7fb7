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
    wanted = BalanceOptions(reorganize_every=5, supplier_threshold=0.3, choice="best-fit")
    text = "reorganize_every=5,supplier_threshold=0.3,choice=best-fit"
    assert balance_of(text) == balance_of(f"on,{text}") == wanted
    given = {"reorganize_every": 5, "supplier_threshold": 0.3, "choice": "best-fit"}
    assert balance_of(given) == wanted


def test_the_preset_of_the_paper() -> None:
    paper = balance_of("windowed-joins")
    assert paper == BalanceOptions(10, 0.5, 0.01, 0.5, 16_384, "random")
    assert balance_of({"preset": "windowed-joins", "beta": 0.25}) == BalanceOptions(
        10, 0.5, 0.01, 0.25, 16_384, "random"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("onn", r"balance is off, on, windowed-joins, not 'onn'\. Did you mean on\?"),
        ("on,choise=random", r"no option choise\. Did you mean choice\?"),
        ("on,beta", r"beta is '', which is no number"),
        ("on,beta=0.5,beta=0.4", r"beta is there twice"),
        ("off,beta=0.4", r"balance is off, and beta=0.4 is said beside it"),
        ("beta=1", r"beta is 1, and it is to be between 0 and 1"),
        ("beta=0", r"beta is 0, and it is to be between 0 and 1"),
        ("beta=nan", r"beta is nan, and it is to be between 0 and 1"),
        ("beta=half", r"beta is 'half', which is no number"),
        ("supplier_threshold=0.01", r"consumer_threshold is 0.01 and supplier_threshold 0.01: the"),
        ("supplier_threshold=1.5", r"both from 0 to 1"),
        ("consumer_threshold=-0.1", r"both from 0 to 1"),
        ("measure=rows", r"measure is cpu, time, not rows"),
        ("choice=smallest", r"choice is random, largest, best-fit, not smallest"),
        ("reorganize_every=0", r"reorganize_every is 0, which is no whole number from 1"),
        ("quiet=1.5", r"quiet is 1.5, which is no whole number from 1"),
        ({"buffer_rows": True}, r"buffer_rows is True"),
        (7, r"balance is 7\. Say on, off, or a mapping"),
    ],
)
def test_what_is_no_option(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        balance_of(given)
