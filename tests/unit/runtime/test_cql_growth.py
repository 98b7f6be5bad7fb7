"""The work of an epoch of a CQL query over windows on change follows its new rows, not what the
windows hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.engine.engine import Engine
from levada.testing.question import Row
from levada.testing.streams import write_csv

SCHEMA = {"k": "integer", "v": "double"}
QUERIES = {
    "group": "Select k, Sum(v), Max(v), Count(*) From S Group By k",
    "ungrouped": "Select Count(*), Sum(v) From S Where v > 1",
    "distinct": "Select Distinct k From S",
    "except": "S Except (Select k, v From S [Rows 5])",
    "view": "Register Relation G (k Integer, n Integer) As Select k, Count(*) From S Group By k;"
    "Rstream(Select S.k, n From S [Now], G Where S.k = G.k)",
    "stream": (
        "Register Stream V (k Integer) As Select k From S Where v > 1; Select k, Count(*) "
        "From V Group By k"
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_full_window_does_not_make_an_epoch_dearer(name: str, tmp_path: Path) -> None:
    touched = []
    path = write_csv(
        tmp_path / "s.csv", [Row(10 * i, (i % 40, float(i % 7))) for i in range(1200)], list(SCHEMA)
    )
    with Engine(
        spark=False, checkpoint=tmp_path / "checkpoint", epoch_rows=100, partitions=2
    ) as engine:
        engine.stream("S", path, schema=SCHEMA)
        engine.register(QUERIES[name], name="q", dialect="cql")
        engine._on_epoch(lambda manifest: touched.append(manifest.rows_in))
        engine.start(once=True)
        engine.await_end()
    early, late = touched[2], touched[10]
    assert early > 100 and late < 1.5 * early, touched
