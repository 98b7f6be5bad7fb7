"""How much queries have reported is counted from their rows: of one member without a sort."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from levada.core.frame import Frame
from levada.runtime.task.result_writer import _counts

REPORTS = {
    "one report": np.full(50, 7),
    "ascending": np.sort(np.random.default_rng(1).integers(0, 9, 50)),
    "in any order": np.random.default_rng(2).integers(-5, 9, 50),
}
MEMBERS = {"one member": np.full(50, 3), "several": np.random.default_rng(3).integers(0, 4, 50)}


@pytest.mark.parametrize("reports", REPORTS)
@pytest.mark.parametrize("members", MEMBERS)
def test_counts_are_those_of_the_rows(reports: str, members: str) -> None:
    op, r = MEMBERS[members].astype(np.int32), REPORTS[reports].astype(np.int64)
    rows = list(zip(op.tolist(), r.tolist(), strict=True))
    own = {member: [report for at, report in rows if at == member] for member in sorted(set(op))}
    counts, told = _counts(5, Frame({"op": op, "r": r}))
    assert {name: counts[name].tolist() for name in counts.columns} == {
        "node": [5] * len(own),
        "op": list(own),
        "n": [len(some) for some in own.values()],
        "least": [min(some) for some in own.values()],
        "most": [max(some) for some in own.values()],
        "reports": [len(set(some)) for some in own.values()],
    }
    made = list(zip(told["op"].tolist(), told["r"].tolist(), strict=True))
    assert sorted(made) == sorted(set(rows)), "each report once"


def test_the_rows_of_one_member_are_not_sorted() -> None:
    frame = Frame({"op": np.full(9, 3, np.int32), "r": np.arange(9)})
    with (
        patch("levada.runtime.task.result_writer.np.unique") as sort,
        patch("levada.runtime.task.result_writer.group") as group,
    ):
        counts, _ = _counts(5, frame)
    assert not sort.called and not group.called
    assert counts["reports"].tolist() == [9]
