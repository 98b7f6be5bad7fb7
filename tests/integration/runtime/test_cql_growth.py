"""The work of an epoch of a CQL query over windows on change follows its new rows, not what the
windows hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.engine.engine import Engine
from levada.testing.reference_model import Row
from levada.testing.stream_builders import write_csv

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
        engine._on_epoch(lambda manifest: touched.append(manifest.input_rows))
        engine.start(once=True)
        engine.await_end()
    early, late = touched[2], touched[10]
    assert early > 100 and late < 1.5 * early, touched


@pytest.mark.parametrize("name", ["view", "last"])
def test_a_key_with_twice_the_rows_of_an_epoch_costs_twice(name: str, tmp_path: Path) -> None:
    """Each row meets the version of its key that stands then, not all of the epoch."""
    last = (
        "Rstream(Select A.v, B.v From S [Now] As A, S [Partition By k Rows 3] As B Where A.k=B.k)"
    )
    touched = []
    for rows in (400, 800):
        path = write_csv(
            tmp_path / f"{rows}.csv", [Row(i, (1, float(i))) for i in range(rows)], list(SCHEMA)
        )
        with Engine(spark=False, partitions=2, epoch_rows=rows) as engine:
            engine.stream("S", path, schema=SCHEMA)
            text = {"view": QUERIES["view"], "last": last}[name]
            engine.register(text, name="q", dialect="cql")
            engine.start(once=True)
            engine.await_end()
            assert engine._driver is not None
            touched.append(engine._driver.last.input_rows)
    assert touched[1] < 2.2 * touched[0], touched
