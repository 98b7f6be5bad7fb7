"""Random cases on real Spark: the same as the reference, in several partitions, with plans of one
stage and of more.

A smaller set of ``tests/property``: LEVADA_SPARK_CASES of each kind, 3 unless said, in one session.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from levada.engine.engine import Engine
from levada.testing import MemorySink
from levada.testing.compare import same_queries
from levada.testing.stream_builders import write_lines
from support.generators import Clause, cases, cql_cases, made_cases
from support.polling import PATIENCE
from support.query_dsl import S, T, element, judge, query, register
from support.stepped_runs import run_case

EXAMPLES = int(os.environ.get("LEVADA_SPARK_CASES", "3"))
pytestmark = [pytest.mark.spark, pytest.mark.timeout(400 * EXAMPLES)]
FEW = settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def check(case: Any, rows: Any, spark: Any) -> None:
    got = run_case(case, epoch_rows=rows, partitions=2, spark=spark)
    difference = same_queries(case.expected(), got)
    assert difference is None, difference


@FEW
@given(case=cases(most=5), rows=st.sampled_from((5, 1000)))
def test_rsp_ql(case: Any, rows: Any, spark: Any) -> None:
    check(case, rows, spark)


@FEW
@given(case=cql_cases(most=5), rows=st.sampled_from((5, 1000)))
def test_cql(case: Any, rows: Any, spark: Any) -> None:
    check(case, rows, spark)


@FEW
@given(case=made_cases(most=2), rows=st.sampled_from((5, 1000)))
def test_streams_that_queries_make(case: Any, rows: Any, spark: Any) -> None:
    check(case, rows, spark)


def test_a_plan_of_several_stages(spark: Any, tmp_path: Path) -> None:
    """Three patterns on three keys need an exchange between joins; each of them is a stage."""

    streams = {
        S: [element(100 * i, f"a{i % 7} p b{i % 5}", f"b{i % 5} q c{i % 3}") for i in range(60)],
        T: [element(150 * i, f"c{i % 3} r {i}") for i in range(40)],
    }
    windows = {"w": (S, Clause("step", 2000, 1000)), "v": (T, Clause("step", 1000, 1000))}
    body = "WINDOW :w { ?a :p ?b . ?b :q ?c } WINDOW :v { ?c :r ?n }"
    queries = [
        query("SELECT ?a ?n", body, name="chain", windows=windows),
        query(
            "SELECT ?a (SUM(?n) AS ?m)",
            body,
            tail=" GROUP BY ?a ORDER BY ?m ?a LIMIT 3",
            name="groups",
            windows=windows,
        ),
    ]
    sink, stages = MemorySink(), set()
    with Engine(
        spark=spark, checkpoint=tmp_path / "ck", epoch_rows=40, partitions=2, sink=sink
    ) as engine:
        for name, elements in streams.items():
            engine.stream(name, write_lines(tmp_path / f"{name[-1]}.nt", elements))
        register(engine, queries)
        engine._on_epoch(
            lambda manifest: stages.update(key.split(".")[0] for key in manifest.state)
        )
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    assert len(stages) > 1, "the plan has several stages with state"
    judge(queries, streams, sink.reports)
