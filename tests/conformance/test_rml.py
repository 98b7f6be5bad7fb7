"""The test cases of RML-Core and RML-IO pass, but for those with targets, which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from rml_suite import CASES, TARGET, RmlCase, in_other_formats, outcome, write_as

pytestmark = pytest.mark.skipif(
    not CASES, reason="the suite of RML is not there: ../shared/data/rml is absent"
)
CORE = [case for case in CASES if case.suite == "core"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rml(case: RmlCase) -> None:
    result = outcome(case.folder, case.expected)
    if case.has_targets:
        assert TARGET in result and "line " in result
    else:
        assert not result


@pytest.mark.parametrize("form", ["csv", "xml"])
@pytest.mark.parametrize("case", CORE, ids=lambda case: case.name)
def test_core_in_other_formats(case: RmlCase, form: str, tmp_path: Path) -> None:
    if write_as(case, form, tmp_path):
        assert not outcome(tmp_path, case.expected)


def test_cases_run_in_other_formats() -> None:
    assert in_other_formats() == {"csv": 30, "xml": 28}
