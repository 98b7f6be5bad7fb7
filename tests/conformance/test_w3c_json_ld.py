"""The W3C test suite of JSON-LD 1.1 passes, but for what is listed as not supported."""

from __future__ import annotations

from typing import Any

import pytest
from w3c_json_ld import CASES, REFUSED, not_supported, number, outcome

pytestmark = pytest.mark.skipif(
    not CASES, reason="the suite of W3C is not there: ../shared/data/json-ld-api is absent"
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['suite']}-{number(case)}")
def test_json_ld(case: dict[str, Any]) -> None:
    result, fault = outcome(case), not_supported(case)
    if fault:
        assert fault.rstrip(".") in result
    else:
        assert not result


def test_all_tests_are_there() -> None:
    names = {number(case) for case in CASES}
    listed = [name for those in REFUSED.values() for name in those.split()]
    assert len(CASES) == 808 and not set(listed) - names
