"""All queries of all public suites in one engine say what each says alone.

Every eighth test of W3C; other modes than ``relax`` are long. ``make conformance`` takes all tests.
"""

from __future__ import annotations

import os

import citybench
import csrbench
import pytest
from together import everything, wrong
from w3c_suite import suite

from support.dynamic_queries import MODES

WHOLE = bool(os.environ.get("LEVADA_CONFORMANCE"))
pytestmark = [
    pytest.mark.skipif(
        not (suite() and csrbench.available() and citybench.available()),
        reason="the public suites are not there: ../shared/data is absent",
    ),
    pytest.mark.timeout(0),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # windows that nobody reads, and the like
]


@pytest.mark.parametrize(
    "mode", [pytest.param(m, marks=[pytest.mark.long] * (m != "relax")) for m in MODES]
)
def test_all_suites_in_one_engine(mode: str) -> None:
    suites = everything(suite() if WHOLE else suite()[::8], WHOLE)
    found = list(wrong(suites, suites.queries, sharing=mode, epoch_rows=1_000))
    assert not found, "\n\n".join(found)
    assert len(suites.queries) > 150, "there are many"
